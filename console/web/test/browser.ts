/** Chromium for the tests, which holds every page to what all pages must keep. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium, type Browser as Chromium, type BrowserContext, type ConsoleMessage, type Page } from "playwright-core";
import { project } from "./host.js";

const args = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
const shots = process.env["CONSOLE_SHOTS"] ?? join(project, "build/console-shots");

/**
 * What Chromium says when it has broken off a request because an interface of the host came or went, as it does with each box
 * that has a network, of other tests too. The page asks again.
 */
const networkChanged = /net::ERR_NETWORK_CHANGED/;

/** Browser is a Chromium without a window. */
export class Browser {
  private constructor(
    readonly chromium: Chromium,
    readonly profile: string,
  ) {}

  static async open(): Promise<Browser> {
    const profile = mkdtempSync(join(tmpdir(), "chromium-"));
    mkdirSync(shots, { recursive: true });
    return new Browser(
      await chromium.launch({
        executablePath: "/usr/bin/chromium",
        headless: true,
        args,
        env: { ...process.env, HOME: profile, TMPDIR: profile },
      }),
      profile,
    );
  }

  async close(): Promise<void> {
    await this.chromium.close();
    rmSync(this.profile, { recursive: true, force: true, maxRetries: 5 });
  }

  /** Opens a user's session of the browser. expected are patterns of what its console may say beside nothing. */
  async user(...expected: RegExp[]): Promise<User> {
    const context = await this.chromium.newContext({
      viewport: { width: 1280, height: 800 },
      colorScheme: "light",
      acceptDownloads: true,
      permissions: ["clipboard-read", "clipboard-write"],
    });
    return new User(context, [networkChanged, ...expected]);
  }
}

/** User is one session of the browser, with a cookie of its own. */
export class User {
  readonly wrong: string[] = [];

  constructor(
    readonly context: BrowserContext,
    readonly expected: RegExp[],
  ) {
    context.setDefaultTimeout(120_000); // for what hangs
    context.on("page", (page) => this.#watch(page));
  }

  #watch(page: Page): void {
    const heard = (message: ConsoleMessage) => {
      const text = `${message.type()}: ${message.text()} (${message.location().url})`;
      if (["error", "warning", "assert"].includes(message.type()) && !this.expected.some((pattern) => pattern.test(text)))
        this.wrong.push(text);
    };
    page.on("console", heard);
    page.on("pageerror", (error) => this.wrong.push(`uncaught: ${error.stack}`));
    page.on("dialog", (dialog) => {
      this.wrong.push(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on("request", (request) => {
      const [asked, own] = [new URL(request.url()), new URL(page.url())];
      if (/^(http|ws)/.test(asked.protocol) && /^http/.test(own.protocol) && asked.host !== own.host)
        this.wrong.push(`request to ${asked}`);
    });
  }

  /** Opens a page. Violations of the policy are told on the console. */
  async open(url: string): Promise<Page> {
    const page = await this.context.newPage();
    await page.addInitScript(() =>
      addEventListener("securitypolicyviolation", (e) =>
        console.error(`policy: ${e.violatedDirective} ${e.blockedURI} ${e.sourceFile}:${e.lineNumber}`),
      ),
    );
    await page.goto(url);
    return page;
  }

  /** Ends the session, and wants that nothing went wrong in it. */
  async close(): Promise<void> {
    await this.context.close();
    assert.deepEqual(this.wrong, []);
  }
}

/** look wants that axe finds nothing on a page, in light, dark and narrow, and keeps pictures of it. */
export async function look(page: Page, name: string): Promise<void> {
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    await page.locator(`html[data-theme=${colorScheme}]`).waitFor();
    await page.screenshot({ path: join(shots, `${name}-${colorScheme}.png`) });
    const rules = colorScheme === "light" ? tags : ["color-contrast"]; // the rest does not depend on colors
    assert.deepEqual(await violations(page, rules), [], `${name}, ${colorScheme}`);
  }
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize({ width: 360, height: 740 });
  await page.screenshot({ path: join(shots, `${name}-narrow.png`) });
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${name} is wider than 360 px`);
  assert.deepEqual(await violations(page, tags), [], `${name}, narrow`);
  await page.setViewportSize({ width: 1280, height: 800 });
}

async function violations(page: Page, rules: string[]): Promise<string[]> {
  return page.evaluate(
    async ([source, rules]) => {
      type Found = { violations: { id: string; nodes: { html: string; failureSummary: string }[] }[] };
      const scope = globalThis as unknown as { axe?: { run(root: Document, options: object): Promise<Found> } };
      if (!scope.axe) new Function(source as string).call(globalThis);
      const found = await scope.axe!.run(document, { runOnly: rules });
      return found.violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html.slice(0, 200)} ${node.failureSummary}`));
    },
    [axe, rules] as const,
  );
}
