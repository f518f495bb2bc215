import { contextOptions, text } from "../check.js";
import type { Contexts } from "../code.js";
import type { CodeContext } from "../contract.js";
import type { NativeBox } from "./box.js";

/** contexts returns the contexts of a box. An interrupt does not wait for calls that take long. */
export function contexts(box: NativeBox): Contexts {
  const on = (lane: "call" | "wait", name: string, ...args: string[]) =>
    box.use((handle) => box.runtime.library.json<CodeContext>(lane, name, handle, ...args));
  return {
    list: async () => box.use((handle) => box.runtime.library.json<CodeContext[]>("call", "sandbox_context_list", handle)),
    create: async (options = {}) => on("wait", "sandbox_context_create", JSON.stringify(contextOptions(options))),
    interrupt: async (id) => on("call", "sandbox_context_interrupt", text("id", id)),
    restart: async (id) => on("wait", "sandbox_context_restart", text("id", id)),
    remove: async (id) => {
      const given = text("id", id);
      await box.use((handle) => box.runtime.library.call("sandbox_context_remove", handle, given));
    },
  };
}
