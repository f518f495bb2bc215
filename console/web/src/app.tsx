/** The frame of all pages. */
import type { JSX } from "preact";
import { away, ended, may, session } from "./api/client.js";
import type { Session } from "./api/documents.js";
import { time } from "./format.js";
import icon from "./icon.svg";
import { Box } from "./pages/box.js";
import { Boxes } from "./pages/boxes.js";
import { SignIn } from "./pages/signin.js";
import { route, to } from "./router.js";
import { signOut } from "./session.js";
import { t } from "./texts.js";
import { theme, type Theme } from "./theme.js";
import { lazy } from "./ui/lazy.js";
import { Denied, Dialog, useAct } from "./ui/parts.js";

const Logs = lazy(async () => (await import("./pages/logs.js")).Logs);
const Keys = lazy(async () => (await import("./pages/keys.js")).Keys);

/** App is the whole console: the sign-in page, or a page in its frame. */
export function App(): JSX.Element {
  if (session.value === undefined)
    return (
      <main class="alone">
        <p aria-busy="true">{away.value ? t.away.message : t.signIn.waiting}</p>
      </main>
    );
  if (session.value === null)
    return (
      <main class="alone" id="content">
        <h1>{t.signIn.title}</h1>
        <SignIn />
      </main>
    );
  return (
    <>
      <a class="skip" href="#content" onClick={skip}>
        {t.skip}
      </a>
      <Bar session={session.value} />
      {away.value && (
        <p class="banner" role="status">
          {t.away.message}
        </p>
      )}
      <main id="content" tabIndex={-1}>
        <Page />
      </main>
      {ended.value && (
        <Dialog title={t.signIn.ended}>
          <p>{t.signIn.kept}</p>
          <SignIn />
        </Dialog>
      )}
    </>
  );
}

/** skip focuses the content. The address of the page stays. */
function skip(event: Event): void {
  event.preventDefault();
  document.getElementById("content")?.focus();
}

function Page(): JSX.Element {
  const {
    parts: [page, id, tab],
    query,
  } = route.value;
  const permission = { logs: "observability.logs.query", keys: "Keys" }[page ?? ""] ?? "Boxes";
  if (!may(permission)) return <Denied permission={permission} />;
  if (page === "logs") return <Logs sql={id === "sql"} query={query} />;
  if (page === "keys") return <Keys />;
  if (page === "boxes" && id) return <Box key={id} id={id} tab={tab ?? "overview"} />;
  return <Boxes />;
}

/** close closes the menu that an event belongs to. */
const close = (event: { currentTarget: Element }) => event.currentTarget.removeAttribute("open");

function Bar({ session: { principal, expires_at, version } }: { session: Session }): JSX.Element {
  const page = route.value.parts[0] ?? "boxes";
  const links = [
    ["boxes", t.nav.boxes],
    ["logs", t.nav.logs],
    ["keys", t.nav.keys],
  ] as const;
  const { run } = useAct();
  return (
    <header class="bar">
      <a class="brand" href={to(["boxes"])}>
        <img src={icon} alt="" width="24" height="24" />
        {t.name}
      </a>
      <nav aria-label={t.nav.label}>
        {links.map(([id, name]) => (
          <a key={id} href={to([id])} aria-current={page === id ? "page" : undefined}>
            {name}
          </a>
        ))}
      </nav>
      <details
        class="menu"
        onKeyDown={(e) => e.key === "Escape" && close(e)}
        onFocusOut={(e) => !e.currentTarget.contains(e.relatedTarget as Node | null) && close(e)}
      >
        <summary aria-label={`${t.user.menu}: ${principal.name}`}>{principal.name}</summary>
        <div>
          <p class="quiet">{t.user.until(time(expires_at))}</p>
          <label>
            {t.user.theme}{" "}
            <select value={theme.value} onChange={(e) => (theme.value = e.currentTarget.value as Theme)}>
              {Object.entries(t.user.themes).map(([id, name]) => (
                <option key={id} value={id}>
                  {name}
                </option>
              ))}
            </select>
          </label>
          <button type="button" onClick={() => void run(() => signOut(false))}>
            {t.user.signOut}
          </button>
          <button type="button" onClick={() => void run(() => signOut(true))}>
            {t.user.everywhere}
          </button>
          <p class="quiet">{t.user.version(version)}</p>
        </div>
      </details>
    </header>
  );
}
