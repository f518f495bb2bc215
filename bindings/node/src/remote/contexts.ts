import { contextOptions, text } from "../check.js";
import type { Contexts } from "../code.js";
import type { CodeContext } from "../contract.js";
import { path, type Client } from "./client.js";

/** contexts returns the contexts of a box of a server. `client` fails of a box that was closed, `where` is the box's path. */
export function contexts(client: () => Client, where: () => string): Contexts {
  const of = (id: string) => `${where()}/contexts${path(text("id", id))}`;
  return {
    list: async () => (await client().call<{ contexts: CodeContext[] }>(`${where()}/contexts`, { again: true })).contexts,
    create: async (options = {}) => client().call(`${where()}/contexts`, { method: "POST", json: contextOptions(options) }),
    interrupt: async (id) => client().call(`${of(id)}:interrupt`, { method: "POST" }),
    restart: async (id) => client().call(`${of(id)}:restart`, { method: "POST" }),
    remove: async (id) => {
      await client().call(of(id), { method: "DELETE", again: true });
    },
  };
}
