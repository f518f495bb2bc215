/** What the tests of all pages begin with. */
import { after, before } from "node:test";
import type { Page } from "playwright-core";
import { Browser, type User } from "./browser.js";
import { Host } from "./host.js";

/** What Chromium itself says of answers that are no success, and of a server that is not there. */
export const status = (...codes: number[]) =>
  new RegExp(`Failed to load resource: the server responded with a status of (${codes.join("|")})`);
export const gone = /Failed to load resource: net::ERR_|WebSocket connection to .* failed/;

/** setUp gives the tests of a file a daemon on a home of its own, and a browser. */
export function setUp(): { host: Host; chromium: () => Browser } {
  const host = new Host();
  let browser: Browser;
  before(async () => {
    [browser] = await Promise.all([Browser.open(), host.start()]);
  });
  after(async () => {
    await browser?.close();
    await host.leave();
  });
  return { host, chromium: () => browser };
}

/** enter signs a user in. */
export async function enter(host: Host, user: User): Promise<Page> {
  const page = await user.open(host.link());
  await page.getByRole("heading", { name: "Boxes" }).waitFor();
  return page;
}

/** create creates a box on the command line, and shows a tab of it. */
export async function create(host: Host, page: Page, name: string, tab: string): Promise<string> {
  const id = host.run("create", "--name", name, "default").trim();
  await page.goto(`${host.url}/ui/#/boxes/${id}/${tab}`);
  await page.getByRole("heading", { name }).waitFor();
  return id;
}

/** printed returns the output on the page of a box, also what Chromium has not drawn yet, which has no inner text. */
export const printed = async (page: Page): Promise<string> => (await page.getByRole("log").textContent()) ?? "";

/**
 * run runs a command on the page of a box, and waits until its output is whole. The output of the command before is
 * shown until this one's is asked for.
 */
export async function run(page: Page, command: string): Promise<void> {
  const asked = page.waitForRequest(/\/exec\/[^/]+\/events$/);
  await page.getByLabel("Command", { exact: true }).fill(command);
  await page.getByRole("button", { name: "Run" }).click();
  await asked;
  await page.getByText(/^Ended with/).waitFor();
}
