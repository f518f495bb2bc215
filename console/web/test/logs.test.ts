/** Logs: searches, counts and SQL. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Route } from "playwright-core";
import { look } from "./browser.js";
import { create, enter, run, setUp, status } from "./steps.js";

const { host, chromium } = setUp();

test("logs: search, counts, attributes, live tail, SQL and its errors", async () => {
  const user = await chromium().user(status(422));
  const page = await enter(host, user);
  const id = await create(host, page, "talker", "execs");
  await run(page, "echo '<u>needle</u> in a box'; echo other");
  await page.getByRole("link", { name: "Logs of this box" }).click();
  const rows = page.locator(".log");
  await assert.doesNotReject(async () => {
    while (!(await rows.filter({ hasText: "needle" }).count())) {
      // the engine stores them in a moment
      await page.getByRole("button", { name: "Search" }).click();
      // While the engine still starts there are none, and the next search is due.
      await rows.first().waitFor({ timeout: 10_000 }).catch(() => {});
    }
  });
  assert.equal(await page.getByLabel("Service", { exact: true }).inputValue(), `box-${id}`);
  await page.getByLabel("Text", { exact: true }).fill("NEEDLE");
  await page.getByRole("button", { name: "Search" }).click();
  await page.getByText(/^Rows: 1\. Read [\d,]+ rows, .* in [\d.]+ ms$/).waitFor();
  await rows.first().locator("summary").click();
  await page.locator(".attributes").getByText("<u>needle</u> in a box").waitFor();
  await page.locator(".attributes").getByText("stdout").first().waitFor();
  const chart = page.getByRole("img", { name: /^Logs by time and severity: 1\./ });
  await chart.locator("canvas").waitFor();
  await page.getByRole("button", { name: "Copy as CLI" }).click();
  assert.match(
    await page.evaluate(() => navigator.clipboard.readText()),
    /^sandbox logs search --from \S+ --to \S+ --service box-\S+ --text NEEDLE --limit 100$/,
  );
  await page.getByRole("button", { name: "Copy as curl" }).click();
  assert.match(await page.evaluate(() => navigator.clipboard.readText()), /^curl -sS http:\S+\/v1\/observability\/logs\/search \\\n/);

  const area = (await chart.locator(".u-over").boundingBox())!;
  await page.mouse.move(area.x + area.width / 2, area.y + 20);
  await page.mouse.down();
  await page.mouse.move(area.x + area.width - 2, area.y + 20, { steps: 4 });
  await page.mouse.up();
  await page.waitForURL(/range=custom/);
  await page.getByLabel("Time", { exact: true }).locator("option[value=custom]:checked").waitFor({ state: "attached" });

  await page.goto(`${host.url}/ui/#/logs?service=box-${id}`);
  await page.getByLabel("Live tail").check();
  host.run("exec", "talker", "--", "echo", "comes later");
  await rows.filter({ hasText: "comes later" }).waitFor();
  await page.goto(`${host.url}/ui/#/logs?text=nobody-says-this`);
  await page.getByText("No logs match.").waitFor();

  await page.getByRole("link", { name: "SQL" }).click();
  await page.getByRole("button", { name: "Insert SeverityNumber" }).waitFor();
  const editor = page.getByRole("textbox", { name: "Statement" });
  const write = async (statement: string) => {
    await editor.press("Control+A");
    await page.keyboard.type(statement);
  };
  await write("SELECT Body, '<s>' AS tag FROM otel_logs WHERE Body LIKE '%needle%'");
  await editor.press("Control+Enter");
  await page.getByRole("cell", { name: "<u>needle</u> in a box" }).first().waitFor();
  await page.getByText(/^Rows: /).waitFor();
  await look(page, "sql");
  await write("DROP TABLE otel_logs");
  await page.getByRole("button", { name: "Run" }).click();
  await page.getByRole("alert").getByText("sql_rejected").waitFor();
  await write("SELECT toDate('never') FROM otel_logs");
  await page.getByRole("button", { name: "Run" }).click();
  await page.getByRole("alert").getByText("sql_error").waitFor();
  await user.close();
});

test("the answer to a statement is dropped once another is run", async () => {
  const user = await chromium().user();
  const page = await enter(host, user);
  await page.goto(`${host.url}/ui/#/logs/sql`);
  const editor = page.getByRole("textbox", { name: "Statement" });
  const execute = async (statement: string) => {
    await editor.press("Control+A");
    await page.keyboard.type(statement);
    await editor.press("Control+Enter");
  };
  const held = new Promise<Route>(
    (resolve) =>
      void page.route("**/observability/query", (route) =>
        route.request().postData()!.includes("older") ? resolve(route) : route.continue(),
      ),
  );
  await execute("SELECT count() AS older FROM otel_logs");
  const route = await held;
  const ended = Promise.race(
    (["requestfinished", "requestfailed"] as const).map((event) =>
      page.waitForEvent(event as "requestfinished", (request) => request === route.request()),
    ),
  );
  await execute("SELECT count() AS newer FROM otel_logs");
  const newer = page.getByRole("columnheader", { name: "newer" });
  await newer.waitFor();
  await route.continue();
  await ended;
  await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
  assert.ok(await newer.isVisible());
  assert.ok(await page.getByRole("button", { name: "Run" }).isEnabled());
  await user.close();
});

/** tell sends logs to the daemon as programs do: a few of each severity over the last hour, and such as are made to deceive. */
async function tell(): Promise<void> {
  const key = host.run("keys", "create", "teller", "--permission", "observability.logs.write").trim();
  const plain = ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"].flatMap((severityText, i) =>
    Array.from({ length: 40 - 6 * i }, (_, n) => ({
      timeUnixNano: `${BigInt(Date.now() - ((n * 97 + i * 31) % 58) * 60_000) * 1_000_000n}`,
      severityNumber: 1 + 4 * i,
      severityText,
      body: { stringValue: `request ${n} took ${(n * 37) % 400} ms` },
      attributes: [{ key: "http.route", value: { stringValue: "/orders" } }],
    })),
  );
  const hostile = [
    "<script>document.title = 1</script>",
    "\u001b[2J\u001b[31mgone",
    "\u202egnp.exe",
    "\u0000\u0001\ufffd binary",
    `long ${"y".repeat(1 << 20)}`,
  ].map((body) => ({
    timeUnixNano: `${BigInt(Date.now()) * 1_000_000n}`,
    severityNumber: 9,
    body: { stringValue: `mean ${body}` },
    attributes: [{ key: "<i>k</i>", value: { stringValue: body.slice(0, 99) } }],
  }));
  const sent = await fetch(`${host.url}/v1/logs`, {
    method: "POST",
    headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
    body: JSON.stringify({
      resourceLogs: [
        {
          resource: { attributes: [{ key: "service.name", value: { stringValue: "shop" } }] },
          scopeLogs: [{ logRecords: [...plain, ...hostile] }],
        },
      ],
    }),
  });
  assert.equal(sent.status, 200, await sent.text());
}

test("logs of programs are counted by severity, and shown as text", async () => {
  await tell();
  const user = await chromium().user();
  const page = await enter(host, user);
  await page.goto(`${host.url}/ui/#/logs?service=shop`);
  await page.getByText(/^FATAL 10$/).waitFor();
  await page.getByText(/^TRACE 40$/).waitFor();
  await page.locator(".log").first().waitFor();
  await page.getByLabel("Text", { exact: true }).fill("request");
  await page.getByRole("button", { name: "Search" }).click();
  await page.waitForURL(/text=request/);
  await page.getByText(/^Rows: 100\./).waitFor();
  await look(page, "logs");
  await page.getByRole("button", { name: "Show more" }).click();
  await page.getByText(/^Rows: 150\./).waitFor();
  await page.getByLabel("Severity", { exact: true }).selectOption("ERROR");
  await page.getByRole("button", { name: "Search" }).click();
  await page.getByText(/^Rows: 16\./).waitFor();
  await page.goto(`${host.url}/ui/#/logs?service=shop&text=mean`);
  const rows = page.locator(".log");
  await page.getByText(/^Rows: 5\./).waitFor();
  for (const row of await rows.all()) {
    await row.locator("summary").click();
    await row.locator("dl").waitFor();
  }
  const text = (await page.locator(".logs").textContent()) ?? ""; // also of rows that Chromium has not drawn yet
  for (const want of [
    "<script>document.title = 1</script>",
    "\u27e8ESC\u27e9[2J",
    "\u27e8U+202E\u27e9gnp.exe",
    "\u27e8NUL\u27e9\u27e8SOH\u27e9",
    "Show all 1 MiB",
  ])
    assert.ok(text.includes(want), `the rows lack ${want}`);
  assert.ok(text.length < 30_000);
  assert.equal(await page.locator(".logs script, .logs i").count(), 0);
  assert.equal(await page.title(), "sandbox");
  await user.close();
});
