/** The driver of the conformance suite: test/conformance/DRIVERS.md. */
import { createInterface } from "node:readline";
import { InternalError, Runtime, SandboxError, version, type Box, type Change, type CreateOptions, type Execution, type FileInfo, type Watch } from "libsandbox";

// What comes in is for the package to judge, so it has no types here.
type Asked = Record<string, any>;

let runtime: Runtime | undefined;
const boxes = new Map<string, Box>();
const executions = new Map<string, Execution>();
const watches: Watch[] = [];

/** given leaves out members that are absent or null. */
function given(members: Asked): any {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== null && value !== undefined));
}

/** pairs makes an object of pairs, of which the last one counts. */
const pairs = (list: unknown) => Array.isArray(list) ? Object.fromEntries(list) : list;

/** box finds a box by what it is called. */
async function box(asked: Asked): Promise<Box> {
  const found = await runtime!.get(asked["box"]);
  const known = boxes.get(found.id) ?? found;
  boxes.set(found.id, known);
  if (known !== found) await found.close();
  return known;
}

const by = (asked: Asked) => given({ user: asked["user"] });
const execution = (asked: Asked) => executions.get(asked["exec"])!;
const encoded = (parts: Uint8Array[]) => Buffer.concat(parts).toString("base64");

const operations: Record<string, (asked: Asked) => Promise<unknown>> = {
  async open({ url, api_key, path_prefix }) {
    runtime = url ? await Runtime.remote(given({ url, apiKey: api_key, pathPrefix: path_prefix })) : await Runtime.local();
  },
  close: () => runtime!.close(),
  version: async () => version,
  metrics: () => runtime!.metrics(),
  shutdown: (asked) => runtime!.shutdown(given({ timeout_seconds: asked["timeout_seconds"] })),
  async create({ op: _, image, env, ...options }) {
    const made = await runtime!.create(image ?? null, given({ ...options, env: pairs(env) }) as CreateOptions);
    boxes.set(made.id, made);
    return made.info();
  },
  get: async (asked) => (await box(asked)).info(),
  box_metrics: async (asked) => (await box(asked)).metrics(),
  list: () => runtime!.list(),
  start: async (asked) => (await box(asked)).start(),
  stop: async (asked) => (await box(asked)).stop(),
  pause: async (asked) => (await box(asked)).pause({ reclaim: asked["reclaim"] ?? false }),
  update: async (asked) => (await box(asked)).update(asked["changes"]),
  resume: async (asked) => (await box(asked)).resume(),
  snapshot: async (asked) => (await box(asked)).snapshot(asked["name"] ?? undefined),
  async clone({ op: _, box: where, ...options }) {
    const clones = await (await box({ box: where })).clone(given(options));
    return Promise.all(clones.map((clone) => clone.info()));
  },
  rollback: async (asked) => (await box(asked)).rollback(asked["snapshot"]),
  async diff(asked) {
    const changes: Change[] = [];
    for await (const change of (await box(asked)).diff(asked["from"] ?? undefined)) changes.push(change);
    return changes;
  },
  snapshots: (asked) => runtime!.snapshots(asked["box"] ?? undefined),
  remove: (asked) => runtime!.remove(asked["box"], given({ force: asked["force"] })),
  async exec_start({ op: _, box: __, cmd, env, stdin, ...options }) {
    const where = await box({ box: __ });
    const begun = await where.exec(cmd, given({ ...options, env: pairs(env), stdin: stdin == null ? undefined : Buffer.from(stdin, "base64") }));
    executions.set(begun.id, begun);
    return { id: begun.id };
  },
  async exec_wait(asked) {
    const begun = execution(asked);
    const read = { stdout: [] as Uint8Array[], stderr: [] as Uint8Array[] };
    for await (const { stream, data } of begun) read[stream].push(data);
    const output = { stdout: encoded(read.stdout), stderr: encoded(read.stderr) };
    return begun.wait().then(
      ({ exit_code }) => ({ exit_code, ...output, failure: null }),
      (failure: SandboxError) => ({ exit_code: failure.exit_code ?? null, ...output, failure: told(failure) }),
    );
  },
  exec_info: (asked) => execution(asked).info(),
  exec_kill: (asked) => execution(asked).kill(given({ grace_ms: asked["grace_ms"] })),
  exec_signal: (asked) => execution(asked).signal(asked["signal"]),
  exec_list: async (asked) => (await box(asked)).execs(),
  copy_in: async (asked) => (await box(asked)).files.copyIn(asked["host_path"], asked["box_path"], undefined, by(asked)),
  copy_out: async (asked) => (await box(asked)).files.copyOut(asked["box_path"], asked["host_path"], undefined, by(asked)),
  stat_file: async (asked) => (await box(asked)).files.stat(asked["path"], by(asked)),
  async list_files(asked) {
    const files: FileInfo[] = [];
    for await (const file of (await box(asked)).files.list(asked["path"], { ...by(asked), ...given({ depth: asked["depth"] }) })) files.push(file);
    return files;
  },
  make_directory: async (asked) => (await box(asked)).files.makeDirectory(asked["path"], { ...by(asked), ...given({ mode: asked["mode"] }) }),
  move_file: async (asked) => (await box(asked)).files.move(asked["from"], asked["to"], by(asked)),
  remove_file: async (asked) => (await box(asked)).files.remove(asked["path"], { ...by(asked), ...given({ recursive: asked["recursive"] }) }),
  async watch_start(asked) {
    const begun = await (await box(asked)).files.watch(asked["path"], { ...by(asked), ...given({ recursive: asked["recursive"] }) });
    return { watch: watches.push(begun) - 1 };
  },
  watch_read: (asked) => watches[asked["watch"]]!.read(),
  async code({ op: _, box: where, code, ...options }) {
    const events: unknown[] = [];
    await using run = await (await box({ box: where })).startCode(code, given(options));
    for await (const event of run) events.push(event);
    return events;
  },
  context_create: async ({ op: _, box: where, ...options }) => (await box({ box: where })).contexts.create(given(options)),
  context_list: async (asked) => (await box(asked)).contexts.list(),
  context_interrupt: async (asked) => (await box(asked)).contexts.interrupt(asked["context"]),
  context_restart: async (asked) => (await box(asked)).contexts.restart(asked["context"]),
  context_remove: async (asked) => (await box(asked)).contexts.remove(asked["context"]),
  image_list: () => runtime!.images.list(),
  image_import: (asked) => runtime!.images.import(asked["name"], asked["source"]),
  async image_build({ op: _, ...options }) {
    const events: unknown[] = [];
    await using build = await runtime!.images.startBuild(given(options));
    for await (const event of build) events.push(event);
    await build.result();
    return events;
  },
  image_remove: (asked) => runtime!.images.remove(asked["reference"], given({ force: asked["force"] })),
};

/** told describes a failure. What is none of the package's is a fault of it. */
function told(failure: unknown): unknown {
  const known = failure instanceof SandboxError ? failure : new InternalError(String((failure as Error).stack));
  return { code: known.number, class: known.name, message: known.message };
}

for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line) as Asked;
  const answer = await operations[asked["op"]]!(asked).then((result) => ({ result: result ?? null }), (failure) => ({ failure: told(failure) }));
  console.log(JSON.stringify(answer));
}
await runtime?.close();
