import { Build, type BuildOptions, type BuildSource } from "../build.js";
import { buildOptions } from "../check.js";
import type { BuildEvent, Image } from "../contract.js";
import { Polled } from "./polled.js";
import type { NativeRuntime } from "./runtime.js";

/** A build that the C library carries out. */
class NativeBuild extends Polled<BuildEvent> implements BuildSource {
  constructor(readonly runtime: NativeRuntime, readonly build: bigint) {
    super(runtime.library, "sandbox_build", build, runtime.held);
  }

  /** wait reads to the end first, which takes no thread. */
  async wait(): Promise<Image> {
    while (await this.next() !== null);
    return this.runtime.library.json<Image>("now", "sandbox_build_wait", this.build);
  }
}

/** startBuild begins a build of a runtime. */
export async function startBuild(runtime: NativeRuntime, options: BuildOptions): Promise<Build> {
  const document = JSON.stringify(buildOptions(options));
  const handle = await runtime.library.handle("wait", "sandbox_build_start", runtime.handle, document);
  return runtime.hold("sandbox_build_free", handle, () => new Build(new NativeBuild(runtime, handle)));
}

/** build builds an image. */
export async function build(runtime: NativeRuntime, options: BuildOptions): Promise<Image> {
  await using begun = await startBuild(runtime, options);
  return await begun.result();
}
