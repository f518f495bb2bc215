/** Sessions and keys, and a daemon that goes away. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { look } from "./browser.js";
import { create, enter, gone, setUp, status } from "./steps.js";

const { host, chromium } = setUp();

test("a link signs in once; signing out ends the session, here or everywhere", async () => {
  const user = await chromium().user(status(401));
  const page = await user.open(`${host.url}/ui/`);
  await page.getByText("sandbox console").waitFor();
  await look(page, "sign-in");
  const link = host.link();
  await page.goto(link);
  await page.getByRole("heading", { name: "Boxes" }).waitFor();
  assert.ok(!page.url().includes("sign-in"), "the token stays in the address");
  const cookies = await user.context.cookies();
  assert.ok(cookies.every((c) => c.httpOnly && c.sameSite === "Strict" && c.path === "/ui"));

  const other = await chromium().user(status(401));
  const second = await other.open(link);
  await second.getByText("This link has been used").waitFor();
  await second.getByLabel("Or paste the link here").fill(host.link());
  await second.getByRole("button", { name: "Sign in" }).click();
  await second.getByRole("heading", { name: "Boxes" }).waitFor();

  const tab = await user.open(`${host.url}/ui/#/keys`);
  await tab.getByRole("heading", { name: "API keys" }).waitFor();
  await page.getByLabel("Account").click();
  await page.getByRole("button", { name: "Sign out", exact: true }).click();
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  await tab.getByRole("heading", { name: "Sign in" }).waitFor();
  await second.getByRole("heading", { name: "Boxes" }).waitFor();

  await page.goto(host.link());
  await page.getByLabel("Account").click();
  await page.getByRole("button", { name: "Sign out everywhere" }).click();
  await second.getByText("Your session has ended").waitFor();
  await user.close();
  await other.close();
});

test("a session that ends in the middle of a form loses nothing", async () => {
  const [user, other] = [await chromium().user(status(401)), await chromium().user()];
  const page = await enter(host, user);
  await page.getByRole("button", { name: "Create box" }).click();
  await page.getByLabel("Name", { exact: true }).fill("kept");
  const second = await enter(host, other);
  await second.getByLabel("Account").click();
  await second.getByRole("button", { name: "Sign out everywhere" }).click();
  const ended = page.getByRole("dialog", { name: "Your session has ended" });
  await ended.waitFor();
  await look(page, "ended");
  await ended.getByLabel("Or paste the link here").fill(host.link());
  await ended.getByRole("button", { name: "Sign in" }).click();
  await ended.waitFor({ state: "detached" });
  assert.equal(await page.getByLabel("Name", { exact: true }).inputValue(), "kept");
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await page.getByRole("heading", { name: "kept" }).waitFor();
  await user.close();
  await other.close();
});

test("output goes on in the next session, in the page of the one that ended", async () => {
  const [user, other] = [await chromium().user(status(401)), await chromium().user()];
  const page = await enter(host, user);
  await create(host, page, "goes-on", "execs");
  await page.getByLabel("Command", { exact: true }).fill("echo first; until [ -e /tmp/go ]; do sleep 0.1; done; echo second");
  await page.getByRole("button", { name: "Run" }).click();
  const output = page.getByRole("log");
  await output.getByText("first").waitFor();
  // What else the page asks for is never answered: the output is told first that the session has ended.
  await page.route(/\/boxes\/[^/]+(\/execs\?.*)?$/, () => {});
  const second = await enter(host, other);
  await second.getByLabel("Account").click();
  await second.getByRole("button", { name: "Sign out everywhere" }).click();
  const ended = page.getByRole("dialog", { name: "Your session has ended" });
  await ended.getByLabel("Or paste the link here").fill(host.link());
  assert.equal(await output.textContent(), "first");
  await ended.getByRole("button", { name: "Sign in" }).click();
  await ended.waitFor({ state: "detached" });
  host.run("exec", "goes-on", "--", "touch", "/tmp/go");
  await output.getByText("second").waitFor();
  assert.equal(await output.textContent(), "firstsecond");
  await user.close();
  await other.close();
});

test("a daemon that goes away and comes back is waited for", async () => {
  const user = await chromium().user(gone, status(401, 503));
  const page = await enter(host, user);
  await create(host, page, "patient", "terminal");
  await page.getByRole("button", { name: "New terminal" }).click();
  const says = (text: string) => page.locator(".xterm-rows").filter({ hasText: text }).waitFor();
  await says("/ #");
  await page.keyboard.type("x=kept; echo set$((1+1))\n");
  await says("set2");
  await host.stop("SIGKILL");
  await page.getByText("The daemon does not answer. Trying again…").waitFor();
  await page.getByText("The connection was lost; the shell goes on. Reconnecting…").waitFor();
  await host.start();
  await page.getByText("The daemon does not answer. Trying again…").waitFor({ state: "detached" });
  await page.locator(".terminal-note").waitFor({ state: "detached" });
  await page.locator(".xterm-screen").click();
  await page.keyboard.type("echo $x$((1+1))\n");
  await says("kept2");
  await user.close();
});

test("keys are created, shown once, used and deleted", async () => {
  const user = await chromium().user();
  const page = await enter(host, user);
  await page.getByRole("link", { name: "API keys" }).click();
  for (const column of ["NAME", "KEY", "PERMISSIONS", "CREATED", "LAST USED", "EXPIRES"])
    await page.getByRole("columnheader", { name: column, exact: true }).waitFor();
  await page.getByRole("button", { name: "Create Key" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Key Name").fill("<b>ci</b>\u202e");
  await dialog.getByRole("button", { name: "Create Key" }).click();
  await dialog.getByText("Choose at least one.").waitFor();
  await dialog.getByLabel(/Make and use boxes/).check();
  await dialog.getByLabel(/Query logs/).check();
  await dialog.getByLabel("Environment", { exact: true }).waitFor();
  await look(page, "key-create");
  await dialog.getByLabel("Key Name").fill("<b>ci</b>");
  await dialog.getByRole("button", { name: "Create Key" }).click();
  await dialog.getByText("This is the only time that it is shown.").waitFor();
  const key = await dialog.getByLabel("Full key").inputValue();
  for (const way of ["curl", "Python", "C"]) {
    await dialog.getByRole("button", { name: way, exact: true }).click();
    assert.ok((await dialog.locator("pre").innerText()).includes(key));
  }
  await dialog.getByRole("button", { name: "Copy" }).first().click();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), key);
  const me = await fetch(`${host.url}/v1/me`, { headers: { Authorization: `Bearer ${key}` } });
  assert.equal(me.status, 200);
  await dialog.getByRole("button", { name: "I have copied it" }).click();
  const row = page.getByRole("row").filter({ hasText: "<b>ci</b>" });
  await row.getByText(/_live_\*+/).waitFor();
  assert.ok(!(await page.content()).includes(key));
  await look(page, "keys");
  await row.getByRole("button", { name: "Delete <b>ci</b>" }).click();
  await dialog.getByRole("button", { name: "Delete" }).click();
  await row.waitFor({ state: "detached" });
  assert.equal((await fetch(`${host.url}/v1/me`, { headers: { Authorization: `Bearer ${key}` } })).status, 401);
  await user.close();
});

test("a session has the rights of its key, and ends with it", async () => {
  const user = await chromium().user(status(401));
  const key = host.run("keys", "create", "reader", "--permission", "observability.logs.query").trim();
  const page = await user.open(host.link(key));
  await page.getByText("This session lacks the permission Boxes.").waitFor();
  await look(page, "denied");
  await page.getByRole("link", { name: "API keys" }).click();
  await page.getByText("This session lacks the permission Keys.").waitFor();
  await page.getByRole("link", { name: "Logs" }).click();
  await page.getByText(/^Rows: /).waitFor();
  const { keys } = JSON.parse(host.run("keys", "ls", "-o", "json")) as { keys: { id: string; name: string }[] };
  host.run("keys", "rm", keys.find(({ name }) => name === "reader")!.id);
  await page.getByRole("button", { name: "Search" }).click();
  await page.getByRole("dialog", { name: "Your session has ended" }).waitFor();
  await user.close();
});

test("a page that nobody touches lets its session be idle", async () => {
  const user = await chromium().user();
  const page = await enter(host, user);
  const polled = (background: string | undefined) =>
    page.waitForRequest((request) => request.url().includes("/ui/api/") && request.headers()["x-background"] === background);
  await polled("1");
  const touched = polled(undefined);
  await page.mouse.wheel(0, 1);
  await touched;
  await polled("1");
  const watched = page.waitForRequest((request) => request.url().includes("files:watch") && request.headers()["x-background"] === "1");
  const measured = page.waitForRequest((request) => request.url().endsWith("/metrics") && request.headers()["x-background"] === "1");
  await create(host, page, "watched", "files");
  await watched;
  await page.getByRole("link", { name: "Overview" }).click();
  await measured;
  await user.close();
});
