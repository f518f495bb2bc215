/**
 * The half of the package that needs nothing but fetch and WebSocket: boxes of a server, from browsers, Deno
 * and Node.js. It imports nothing of Node.js.
 *
 * @module
 */
import { ConfigError, UnsupportedError } from "../contract.js";
import type { CreateOptions, RemoteOptions } from "../options.js";
import { boxOf, type Runtime as AnyRuntime } from "../runtime.js";
import { Client, type Sockets } from "./client.js";
import { RemoteRuntime } from "./runtime.js";

export * from "../exports.js";

/** A place where boxes are; see the class of the name in the documentation. */
export type Runtime = AnyRuntime;

export const Runtime = {
  /** A server by its address. Nothing is sent yet. */
  remote: async (options: RemoteOptions): Promise<Runtime> => new RemoteRuntime(new Client(options, sockets)),
  /** The server that the environment names, where there is an environment. */
  async open(): Promise<Runtime> {
    const { url, apiKey, pathPrefix } = environment();
    if (!url) throw new ConfigError("which server? call Runtime.remote with its address, or set SANDBOX_REST_URL");
    return Runtime.remote({ url, ...(apiKey ? { apiKey } : {}), ...(pathPrefix ? { pathPrefix } : {}) });
  },
};

export const Sandbox = {
  /** Makes a box on the server that the environment names. */
  create: async (image: string | null, options?: CreateOptions) => boxOf(await Runtime.open(), image, options),
};

/** sockets returns the class of WebSockets. Errors: Unsupported. */
async function sockets(): Promise<Sockets> {
  if (!globalThis.WebSocket) throw new UnsupportedError("there is no WebSocket here, which open input and terminals need: on Node.js import \"libsandbox\"");
  return WebSocket;
}

/** environment reads Deno's environment; browsers have none. */
function environment(): { url?: string | undefined; apiKey?: string | undefined; pathPrefix?: string | undefined } {
  const { Deno } = globalThis as { Deno?: { env: { get(name: string): string | undefined } } };
  const get = (name: string) => Deno?.env.get(name);
  return { url: get("SANDBOX_REST_URL"), apiKey: get("SANDBOX_API_KEY"), pathPrefix: get("SANDBOX_REST_PATH_PREFIX") };
}
