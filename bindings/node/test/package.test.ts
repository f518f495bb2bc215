/** The package as users get it: packed, installed in an empty project, and used as the README says. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { project, top } from "./lib.js";

const run = promisify(execFile);
const directory = mkdtempSync(join(tmpdir(), "package-"));
const { version } = JSON.parse(readFileSync(join(top, "package.json"), "utf8")) as { version: string };
// Nothing of this tree's environment may help.
const { SANDBOX_HELPER_DIR: _, SANDBOX_LIBRARY: __, ...env } = process.env;
const options = { cwd: join(directory, "empty"), env: { ...env, HOME: directory, SANDBOX_HOME: join(directory, "home"), npm_config_cache: undefined } };

before(async () => {
  mkdirSync(options.cwd);
  writeFileSync(join(options.cwd, "package.json"), '{"name": "empty", "private": true}');
  await run("npm", ["install", "--prefer-offline", "--no-audit", "--no-fund", join(project, `build/libsandbox-${version}.tgz`)], { ...options, env: { ...options.env, HOME: process.env["HOME"] } });
  await run(join(project, "build/sandbox"), ["--local", "images", "import", "python:3.12", join(project, "build/debian.tar")], options);
});
after(() => rmSync(directory, { recursive: true, force: true }));

test("the package has the library, its programs, its types and nothing of the tests", () => {
  const installed = join(options.cwd, "node_modules/libsandbox");
  for (const file of ["lib/libsandbox.so", "lib/sandbox-shim", "lib/sandbox-init", "dist/node/index.d.ts", "dist/remote/index.js", "LICENSE", "NOTICE"]) {
    assert.ok(statSync(join(installed, file)).isFile(), file);
  }
  assert.throws(() => statSync(join(installed, "test")));
  assert.equal(statSync(join(installed, "lib/sandbox-shim")).mode & 0o111, 0o111);
});

test("the version is that of the library's source", () => {
  assert.match(readFileSync(join(project, "core/runtime.go"), "utf8"), new RegExp(`^const Version = "${version}"$`, "m"));
});

test("the README's lines, in JavaScript", async () => {
  cpSync(join(top, "examples/hello.mjs"), join(options.cwd, "hello.mjs"));
  assert.equal((await run("node", ["hello.mjs"], options)).stdout, "1267650600228229401496703205376\n\n");
});

for (const [example, printed] of [
  ["hello", "1267650600228229401496703205376\n\n"],
  ["streaming", "144\n{ exit_code: 0, signal: null }\n"],
  ["files", "['1', '2', '3']\n\nnot_found\n"],
  ["code", "30\nfailed IndexError\n0\n1\n4\n9\n16\n"],
  ["watch", "create /work/out\nrename /work/results\ndirectory /work/results 0\n"],
] as const) {
  test(`the README's lines and the documents', in TypeScript: ${example}`, async () => {
    cpSync(join(top, `examples/${example}.mts`), join(options.cwd, `${example}.mts`));
    const types = join(top, "node_modules/@types");
    await run(join(top, "node_modules/.bin/tsc"), ["--module", "NodeNext", "--target", "ES2022", "--lib", "ES2023,ESNext.Disposable,DOM", "--strict", "--typeRoots", types, "--types", "node", `${example}.mts`], options);
    assert.equal((await run("node", [`${example}.mjs`], options)).stdout, printed);
  });
}
