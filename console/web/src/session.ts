/** Signing in and out, in all tabs at once. */
import { ask, ended, failureOf, session } from "./api/client.js";
import type { Failure } from "./api/client.js";
import { signal } from "@preact/signals";
import type { Session } from "./api/documents.js";

/** Why the last sign-in failed. */
export const refused = signal<Failure | null>(null);

const tabs = new BroadcastChannel("sandbox-console");

/** Where the console lies: /ui/ or, behind a proxy, below its prefix. */
const here = new URL(".", document.baseURI).pathname;

/** resume asks the server for the session that the cookie names. */
export async function resume(): Promise<void> {
  try {
    session.value = (await (await ask(`${here}session`)).json()) as Session;
    ended.value = false;
  } catch (thrown) {
    if (failureOf(thrown).status === 401) session.value ??= null;
    else if (session.value === undefined) setTimeout(() => void resume(), 1000);
  }
}

/** tokenOf returns the token of a sign-in link, or of what was pasted. */
export function tokenOf(text: string): string {
  return /#?sign-in=([^&\s]+)/.exec(text)?.[1] ?? text.trim();
}

/** signIn uses a link's token. */
export async function signIn(token: string): Promise<void> {
  refused.value = null;
  try {
    await ask(`${here}session`, { method: "POST", body: { token } });
    tabs.postMessage("in");
  } catch (thrown) {
    refused.value = failureOf(thrown);
  }
  await resume();
}

/** signOut ends this session, or all of this principal's. */
export async function signOut(everywhere: boolean): Promise<void> {
  await ask(here + (everywhere ? "sessions" : "session"), { method: "DELETE" });
  tabs.postMessage("out");
  left();
}

function left(): void {
  session.value = null;
  ended.value = false;
  location.hash = "";
}

tabs.onmessage = ({ data }) => (data === "out" ? left() : void resume());

/** start signs in with the link that the page was opened with, or goes on with the session of the cookie. */
export async function start(): Promise<void> {
  const follow = async () => {
    if (!location.hash.startsWith("#sign-in=")) return false;
    const token = tokenOf(location.hash);
    history.replaceState(null, "", location.pathname); // the token is not kept in the history
    dispatchEvent(new HashChangeEvent("hashchange"));
    await signIn(token);
    return true;
  };
  addEventListener("hashchange", () => void follow());
  if (!(await follow())) await resume();
}
