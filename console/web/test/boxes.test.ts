/** Boxes: their life, terminals, commands and files. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { Route } from "playwright-core";
import { look } from "./browser.js";
import { create, enter, gone, printed, run, setUp, status } from "./steps.js";

const { host, chromium } = setUp();

test("a box is created, stopped, started, found and removed, in two tabs", async () => {
  const user = await chromium().user(status(404, 422));
  const page = await enter(host, user);
  await page.getByText("There are no boxes yet.").waitFor();
  await look(page, "boxes-empty");
  await page.getByRole("button", { name: "Create box" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name", { exact: true }).fill("not a name");
  await dialog.getByLabel("Environment", { exact: true }).fill("A=1\nwrong");
  await dialog.getByRole("button", { name: "Create", exact: true }).click();
  await dialog.getByText("“wrong” is not NAME=value").waitFor();
  await dialog.getByLabel("Environment", { exact: true }).fill("A=1\nB=<b>bold</b>");
  await dialog.getByRole("button", { name: "Create", exact: true }).click();
  await dialog
    .getByText(/^name /)
    .first()
    .waitFor();
  await look(page, "create");
  await dialog.getByLabel("Name", { exact: true }).fill("web");
  await dialog.getByLabel("Memory (MiB)").fill("128");
  await dialog.getByRole("button", { name: "Add: Ports" }).click();
  await dialog.getByLabel("Port in the box 1").fill("80");
  await dialog.getByRole("button", { name: "Create", exact: true }).click();
  await page.getByRole("heading", { name: "web" }).waitFor();
  await page.getByText("B=<b>bold</b>").waitFor();
  await page.getByRole("link", { name: /→ 80 Tcp/ }).waitFor();
  await page
    .getByRole("img", { name: /Memory/ })
    .locator("canvas")
    .waitFor();
  await look(page, "box");

  const list = await user.open(`${host.url}/ui/`);
  const row = list.getByRole("row").filter({ hasText: "web" });
  await row.getByText("Running").waitFor();
  await row.locator("canvas").waitFor(); // its sparkline
  await row.getByRole("button", { name: "Stop web" }).click();
  await row.getByText("Stopped").waitFor();
  await page.getByText("Stopped", { exact: true }).first().waitFor();
  await page.getByRole("button", { name: "Start web" }).click();
  await row.getByText("Running").waitFor();
  await list.keyboard.press("/");
  await list.keyboard.type("nothing has this");
  await list.getByText("No box matches.").waitFor();
  await list.getByRole("searchbox").fill("we");
  await list.getByLabel("State", { exact: true }).selectOption("stopped");
  await list.getByText("No box matches.").waitFor();
  await list.getByLabel("State", { exact: true }).selectOption("running");
  await row.getByRole("button", { name: "Remove web" }).click();
  await list.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
  await list.getByText("There are no boxes yet.").waitFor();
  await page.getByText("There is no such box.").waitFor();
  await user.close();
});

test("terminals: a command and its output, sizes, several, and after a reload", async () => {
  const user = await chromium().user();
  const page = await enter(host, user);
  await create(host, page, "shell", "terminal");
  const screen = page.locator(".xterm-rows");
  const says = (text: string) => screen.filter({ hasText: text }).waitFor();
  await page.getByRole("button", { name: "New terminal" }).click();
  await says("/ #");
  await page.keyboard.type("printf '\\033[38;2;9;99;200mcolor\\033[0m %s\\n' $((6*7)); stty size\n");
  await says("color 42");
  await screen.filter({ hasText: /\d+ \d+/ }).waitFor();
  const [, rows, cols] = /^(\d+) (\d+)\s*$/m.exec(await screen.innerText()) ?? [];
  assert.ok(Number(rows) > 20 && Number(cols) > 80, `the terminal has ${rows} rows and ${cols} columns`);
  await look(page, "terminal");
  await page.getByRole("button", { name: "New terminal" }).click();
  await page.getByRole("tab", { name: "Terminal 2" }).waitFor();
  await says("/ #");
  await page.evaluate(() => navigator.clipboard.writeText("echo pasted$((1+1))\n"));
  await page.getByRole("button", { name: "Paste" }).click();
  await says("pasted2");
  await page.keyboard.press("Shift+F6");
  await page.getByRole("tab", { name: "Terminal 2", selected: true }).and(page.locator(":focus")).waitFor();
  await page.getByRole("tab", { name: "Terminal 1" }).click();
  await says("color 42");
  await page.reload();
  await page.getByRole("tab", { name: "Terminal 1" }).click();
  await says("color 42");
  await page.locator(".xterm-screen").click();
  await page.keyboard.type("echo still$((1+1)); exit 3\n");
  await says("still2");
  await page.getByText("The shell has ended with 3.").waitFor();
  await user.close();
});

test("a part of the page that could not be loaded is asked for again", async () => {
  const user = await chromium().user(gone);
  const page = await enter(host, user);
  let asked = 0;
  await page.route(/\/assets\/terminal-.*\.js$/, (route) => (++asked <= 3 ? route.abort("failed") : route.continue()));
  // The bundler would have a style sheet of terminals alone asked for once.
  await page.route(/\/assets\/terminal-.*\.css$/, (route) => route.abort("failed"));
  await create(host, page, "cut", "terminal");
  await page.getByRole("button", { name: "New terminal" }).click();
  assert.equal(asked, 4);
  const input = page.locator(".xterm-helper-textarea");
  assert.equal(await input.evaluate((e) => getComputedStyle(e).opacity), "0"); // as the style sheet of terminals has it
  await user.close();
});

test("a terminal leaves on the server what it can't draw yet", async () => {
  const user = await chromium().user();
  const asked: string[] = [];
  const left = new Promise<void>(
    (resolve) =>
      void user.context.routeWebSocket(/attach/, (socket) => {
        const [server, first] = [socket.connectToServer(), asked.push(socket.url()) === 1];
        server.onMessage((message) => {
          socket.send(message);
          if (first && typeof message === "string") socket.send(Buffer.alloc(2 << 20, "x"));
        });
        if (!first) resolve();
      }),
  );
  const page = await enter(host, user);
  await create(host, page, "flood", "terminal");
  await page.getByRole("button", { name: "New terminal" }).click();
  await left;
  assert.ok(Number(/after_stdout=(\d+)$/.exec(asked[1]!)?.[1]) >= 2 << 20, asked[1]);
  await user.close();
});

test("a terminal takes keys after output that came in many pieces, faster than it is drawn", async () => {
  const user = await chromium().user();
  const asked: string[] = [];
  const all: Buffer[] = [];
  let flood = false;
  await user.context.routeWebSocket(/attach/, (socket) => {
    const [server, first] = [socket.connectToServer(), asked.push(socket.url()) === 1];
    server.onMessage((message) => {
      if (!first || !flood || typeof message === "string") return socket.send(message);
      all.push(message);
      if (Buffer.concat(all).length < 3 << 19) return;
      socket.send(Buffer.concat(all));
      flood = false;
    });
  });
  const page = await enter(host, user);
  await page.evaluate(() => {
    // All pieces of a large message come before one of them is drawn.
    window.WebSocket = class extends WebSocket {
      constructor(url: string | URL, protocols?: string | string[]) {
        super(url, protocols);
        this.addEventListener("message", (event: MessageEvent<string | ArrayBuffer>) => {
          if (typeof event.data === "string" || event.data.byteLength < 1 << 20) return;
          event.stopImmediatePropagation();
          for (let at = 0; at < event.data.byteLength; at += 32 << 10)
            this.dispatchEvent(new MessageEvent("message", { data: event.data.slice(at, at + (32 << 10)) }));
        });
      }
    };
  });
  await create(host, page, "pieces", "terminal");
  const says = (text: string) => page.locator(".xterm-rows").filter({ hasText: text }).waitFor();
  await page.getByRole("button", { name: "New terminal" }).click();
  await says("/ #");
  flood = true;
  await page.keyboard.type("head -c 1572864 /dev/zero | tr '\\0' x; echo end$((1+1))\n");
  await says("end2");
  await page.keyboard.type("echo still$((1+1))\n");
  await says("still2");
  assert.equal(asked.length, 2, asked.join("\n"));
  await user.close();
});

test("what boxes print is shown and never done", async () => {
  const user = await chromium().user();
  const page = await enter(host, user);
  await create(host, page, "hostile", "execs");
  await page.getByText("No command has run yet.").waitFor();
  const output = page.getByRole("log");
  await run(
    page,
    `printf '<img src=x onerror="document.title=1"><b>bold</b>\\n\\033[31mred\\033[0m\\033]0;title\\007\\n\\342\\200\\256gnp.exe\\n\\363\\240\\201\\201tag\\n\\342\\235\\244\\357\\270\\217\\n'; printf 'oops\\n' >&2`,
  );
  const text = await printed(page);
  for (const want of [
    '<img src=x onerror="document.title=1"><b>bold</b>',
    "red\u27e8ESC\u27e9]0;title\u27e8BEL\u27e9",
    "\u27e8U+202E\u27e9gnp.exe",
    "\u27e8U+E0041\u27e9tag",
    "\u2764\ufe0f",
    "oops",
  ])
    assert.ok(text.includes(want), `${JSON.stringify(text)} lacks ${want}`);
  assert.equal(await output.locator("img, b").count(), 0);
  assert.equal(await page.title(), "sandbox");
  await look(page, "commands");
  await run(page, "head -c 1048576 /dev/zero | tr '\\0' x");
  assert.ok((await printed(page)).length < 10_000);
  await page.getByRole("button", { name: "Show all 1 MiB" }).click();
  assert.ok((await printed(page)).length >= 1048576);
  await run(page, "head -c 3000 /bin/busybox; echo; echo end of it");
  await output.getByText("end of it").waitFor();
  await run(page, "seq 1 20000");
  await page.getByRole("button", { name: "Show all 20,000 lines" }).waitFor();
  await page.getByLabel("Command", { exact: true }).fill("echo first; sleep 300");
  await page.getByRole("button", { name: "Run" }).click();
  await output.getByText("first").waitFor();
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByText(/^Ended with .*: canceled/).waitFor();
  await user.close();
});

test("files go up, are listed, and come down as they were", async () => {
  const user = await chromium().user(status(404));
  const page = await enter(host, user);
  await create(host, page, "files", "files");
  await page.getByRole("textbox", { name: "Directory" }).fill("/tmp");
  await page.getByRole("button", { name: "Go" }).click();
  await page.getByText("This directory is empty.").waitFor();
  const bytes = Buffer.from(Array.from({ length: 70_000 }, (_, i) => (i * i) % 256));
  await page.getByLabel("Upload", { exact: true }).setInputFiles({ name: "data.bin", mimeType: "application/octet-stream", buffer: bytes });
  await page.getByText("data.bin is there").waitFor();
  const transfer = await page.evaluateHandle(() => {
    const data = new DataTransfer();
    data.items.add(new File(["dropped"], "<i>a b\u202e.txt"));
    return data;
  });
  for (const event of ["dragover", "drop"]) await page.locator(".drop").dispatchEvent(event, { dataTransfer: transfer });
  await page.getByRole("cell", { name: "<i>a b\u27e8U+202E\u27e9.txt", exact: true }).waitFor();
  await look(page, "files");
  for (const [name, want] of [
    ["data.bin", bytes],
    ["<i>a b", Buffer.from("dropped")],
  ] as const) {
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: `Download ${name}` }).click()]);
    assert.deepEqual(readFileSync(await download.path()), want);
  }
  await page.getByRole("textbox", { name: "Directory" }).fill("/nowhere");
  await page.getByRole("button", { name: "Go" }).click();
  await page.getByRole("alert").getByText("file_not_found").waitFor();
  await user.close();
});

test("a directory is shown as it is, and its files are made, moved, removed and uploaded as trees", async () => {
  const user = await chromium().user(status(404));
  const page = await enter(host, user);
  await create(host, page, "tree", "files");
  await page.getByText("This directory is empty.").waitFor();
  host.run("exec", "tree", "--", "sh", "-c", "echo text > /root/live; ln -s live /root/link");
  const row = (name: string) => page.getByRole("row").filter({ hasText: name });
  await row("link → live").waitFor();
  const dialog = page.getByRole("dialog");
  await page.getByRole("button", { name: "New directory" }).click();
  await dialog.getByLabel("New path").fill("/root/made/below");
  await dialog.getByRole("button", { name: "Make" }).click();
  await page.getByRole("button", { name: "made/" }).waitFor();
  await page.getByRole("button", { name: "Move live", exact: true }).click();
  await dialog.getByLabel("New path").fill("/nowhere/moved");
  await dialog.getByRole("button", { name: "Move", exact: true }).click();
  await dialog.getByRole("alert").getByText("file_not_found").waitFor();
  await dialog.getByLabel("New path").fill("/root/made/moved");
  await dialog.getByRole("button", { name: "Move", exact: true }).click();
  await row("live").filter({ hasNotText: "link" }).waitFor({ state: "detached" });
  assert.equal(host.run("exec", "tree", "--", "cat", "/root/made/moved"), "text\n");
  await look(page, "files-tree");
  await page.getByRole("button", { name: "Remove made" }).click();
  await dialog.getByText("All that is in it is removed too.").waitFor();
  await dialog.getByRole("button", { name: "Remove" }).click();
  await page.getByRole("button", { name: "made/" }).waitFor({ state: "detached" });
  const outer = mkdtempSync(join(tmpdir(), "tree"));
  mkdirSync(join(outer, "top/below"), { recursive: true });
  writeFileSync(join(outer, "top/a"), "1");
  writeFileSync(join(outer, "top/below/b"), "22");
  await page.getByLabel("Upload directory").setInputFiles(join(outer, "top"));
  await page.getByRole("button", { name: "top/" }).click();
  await page.getByRole("button", { name: "below/" }).waitFor();
  assert.equal(host.run("exec", "tree", "--", "sh", "-c", "cd /root/top; cat a below/b"), "122");
  rmSync(outer, { recursive: true });
  await user.close();
});

test("a refused upload stays told, and a late answer about a directory that was left is dropped", async () => {
  const user = await chromium().user(status(422));
  const page = await enter(host, user);
  await create(host, page, "late", "files");
  await page.getByText("This directory is empty.").waitFor();
  host.run("exec", "late", "--", "sh", "-c", "mkdir /root/taken; touch /tmp/other");
  await page.getByRole("button", { name: "taken/" }).waitFor();
  const [mimeType, buffer] = ["text/plain", Buffer.from("text")];
  await page.getByLabel("Upload", { exact: true }).setInputFiles(["first", "taken"].map((name) => ({ name, mimeType, buffer })));
  const refused = page.getByRole("alert");
  await refused.waitFor();
  host.run("exec", "late", "--", "touch", "/root/later");
  const later = page.getByRole("cell", { name: "later", exact: true });
  await later.waitFor();
  assert.ok(await refused.isVisible());
  const listing = /files:list\?path=%2Froot&/;
  const held = new Promise<Route>((resolve) => void page.route(listing, resolve));
  host.run("exec", "late", "--", "touch", "/root/last");
  const route = await held;
  await page.getByRole("textbox", { name: "Directory" }).fill("/tmp");
  await page.getByRole("button", { name: "Go" }).click();
  const other = page.getByRole("cell", { name: "other", exact: true });
  await other.waitFor();
  const answered = page.waitForResponse(listing);
  await route.continue();
  await (await answered).finished();
  await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
  assert.ok(await other.isVisible());
  assert.ok(!(await later.isVisible()));
  await user.close();
});

test("a directory is watched again when its watch has ended", async () => {
  const user = await chromium().user();
  const page = await enter(host, user);
  let watches = 0;
  await page.route(/files:watch/, (route) =>
    ++watches === 1 ? route.fulfill({ contentType: "text/event-stream", body: "" }) : route.continue(),
  );
  await create(host, page, "again", "files");
  await page.getByText("This directory is empty.").waitFor();
  host.run("exec", "again", "--", "touch", "/root/missed");
  const cell = (name: string) => page.getByRole("cell", { name, exact: true });
  await cell("missed").waitFor();
  host.run("exec", "again", "--", "touch", "/root/seen");
  await cell("seen").waitFor();
  await user.close();
});

test("a box is paused and resumed, says when it ends, and has links to its ports", async () => {
  const user = await chromium().user();
  const page = await enter(host, user);
  const id = await create(host, page, "life", "overview");
  host.run("update", "--ttl", "1h", "--idle", "90m", "--on-expiry", "pause", "life");
  await page.getByText(/: it is paused$/).waitFor();
  await page.getByText("1 h 30 min").waitFor();
  await page.getByRole("button", { name: "Pause life" }).click();
  await page.getByText("Paused", { exact: true }).first().waitFor();
  await page.getByRole("button", { name: "Resume life" }).click();
  await page.getByText("Running", { exact: true }).first().waitFor();
  host.run("exec", "life", "--", "sh", "-c", "mkdir /www; echo from the box > /www/f; httpd -p 80 -h /www");
  await page.getByLabel("Port in the box").fill("80");
  await page.getByRole("button", { name: "Share" }).click();
  const link = await page.locator(".command code").filter({ hasText: "/v1/shares/" }).innerText();
  assert.equal(await (await fetch(`${link}f`)).text(), "from the box\n");
  await look(page, "share");
  await user.close(); // the page would ask for a box that is gone
  assert.match(host.run("rm", "-f", id), /life|box_/);
});

test("a main command is asked for, shown with its health and its output as it comes, and ends", async () => {
  const user = await chromium().user();
  const page = await enter(host, user);
  await page.getByRole("button", { name: "Create box" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name", { exact: true }).fill("served");
  await dialog
    .getByLabel("Main command", { exact: true })
    .fill("echo begun; until [ -e /tmp/go ]; do sleep 0.1; done; echo '<b>went</b>'; sleep 1; rm /tmp/go; exit 3");
  await dialog.getByLabel("When it ends").selectOption("on-failure");
  await dialog.getByLabel("Health check").fill("[ -e /tmp/up ]");
  await look(page, "create-service");
  await dialog.getByRole("button", { name: "Create", exact: true }).click();
  await page.getByRole("heading", { name: "served" }).waitFor();
  const shown = page.getByRole("region", { name: "Main command" });
  await shown.getByText("begun").last().waitFor();
  await shown.getByText("started again 0 times (restart: on-failure)").waitFor();
  await shown.getByText("Starting").waitFor();
  await look(page, "box-service");
  host.run("exec", "served", "--", "touch", "/tmp/go");
  await shown.getByText("<b>went</b>").last().waitFor();
  await shown.getByText("started again once (restart: on-failure), last exit code 3").waitFor();
});
