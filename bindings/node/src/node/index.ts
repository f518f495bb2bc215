/**
 * Boxes from Node.js: in process through the C library, or of a server over fetch and WebSocket.
 *
 * @module
 */
import { openAsBlob } from "node:fs";
import type { Socket } from "node:net";
import type { Connection } from "../box.js";
import { Build, type BuildOptions } from "../build.js";
import type { Copies, Files } from "../files.js";
import type { CreateOptions, RemoteOptions } from "../options.js";
import { Client, type Sockets } from "../remote/client.js";
import { RemoteRuntime } from "../remote/runtime.js";
import { boxOf, type Images, type Runtime as AnyRuntime } from "../runtime.js";
import { NativeRuntime } from "./runtime.js";

export * from "../exports.js";
export { version } from "./library.js";

declare module "../box.js" {
  interface Connection extends Socket {}
}

/** A place where boxes are. */
export type Runtime = AnyRuntime;

export const Runtime = {
  /**
   * What the command line would use: the server of SANDBOX_REST_URL, with SANDBOX_API_KEY and
   * SANDBOX_REST_PATH_PREFIX; that of SANDBOX_PROFILE, or of the profile "default"; the daemon of the home, if
   * it runs; else, as root, the home itself, in this process. With `profile`, the server of that stored profile.
   */
  async open(profile?: string): Promise<Runtime> {
    const { SANDBOX_REST_URL: url, SANDBOX_API_KEY: apiKey, SANDBOX_REST_PATH_PREFIX: pathPrefix } = process.env;
    if (!url || profile !== undefined) return NativeRuntime.anywhere(profile);
    return Runtime.remote({ url, ...(apiKey ? { apiKey } : {}), ...(pathPrefix ? { pathPrefix } : {}) });
  },
  /** A home of this host, in process: `home`, else SANDBOX_HOME, else /var/lib/sandbox. */
  local: (home?: string): Promise<Runtime> => NativeRuntime.local(home),
  /** A server by its address; the C library talks to one at unix:///PATH. Nothing is sent yet. */
  async remote(options: RemoteOptions): Promise<Runtime> {
    if (String(options.url).startsWith("unix:")) return NativeRuntime.server(options);
    return new RemoteRuntime(new Client(options, sockets), {
      open: openAsBlob,
      exported: (...args) => exported(options, ...args),
      startBuild: (...args) => startBuild(options, ...args),
      copies: (box) => copies(options, box),
      connect: (box, port) => connect(options, box, port),
    });
  },
};

export const Sandbox = {
  /** Makes a box where the environment says, in a runtime of its own, which ends with the box. */
  create: async (image: string | null, options?: CreateOptions) => boxOf(await Runtime.open(), image, options),
};

/** exported writes the file with the C library, which replaces one that is there once the new one is whole. */
async function exported(options: RemoteOptions, ...args: Parameters<Images["export"]>): Promise<void> {
  await using runtime = await NativeRuntime.server(options);
  await runtime.images.export(...args);
}

/** startBuild builds with the C library, which knows how to send a context, in a runtime of its own. */
async function startBuild(options: RemoteOptions, ...args: [BuildOptions]): Promise<Build> {
  const runtime = await NativeRuntime.server(options);
  try {
    const build = await runtime.images.startBuild(...args);
    const close = build.close.bind(build);
    build.close = async () => {
      try {
        await close();
      } finally {
        await runtime.close();
      }
    };
    return build;
  } catch (failure) {
    await runtime.close();
    throw failure;
  }
}

/** copies copies with the C library, which knows how to walk trees. */
function copies(options: RemoteOptions, id: string): Copies {
  const within = async (f: (files: Files) => Promise<void>) => {
    await using runtime = await NativeRuntime.server(options);
    await f((await runtime.get(id)).files);
  };
  return {
    copyIn: (...args) => within((files) => files.copyIn(...args)),
    copyOut: (...args) => within((files) => files.copyOut(...args)),
  };
}

/** connect connects with the C library, in a runtime of its own, which ends with the socket. */
async function connect(options: RemoteOptions, id: string, port: number): Promise<Connection> {
  const runtime = await NativeRuntime.server(options);
  try {
    const socket = await (await runtime.get(id)).connect(port);
    return socket.once("close", () => void runtime.close());
  } catch (failure) {
    await runtime.close();
    throw failure;
  }
}

/** sockets returns the class of WebSockets, which Node.js has since version 22. */
async function sockets(): Promise<Sockets> {
  return globalThis.WebSocket ?? (await import("ws")).WebSocket as unknown as Sockets;
}
