/** Commands and programs to copy: what the console does, done elsewhere. */
import { session } from "./api/client.js";
import type { Key, LogFilter } from "./api/documents.js";
import { quote } from "./format.js";

/** The server as other programs name it: its address, and the path of a route. */
const server = () => location.origin + (session.value?.base ?? "").replace(/\/ui\/api\/v1$/, "").replace(/\/v1$/, "");
const url = (route: string) => `${server()}/v1${route}`;

/** curl returns a command line that sends a request. The key is that of the environment, unless one is given. */
export function curl(route: string, body?: unknown, key?: string): string {
  const auth = key ? `-H ${quote(`Authorization: Bearer ${key}`)}` : '-H "Authorization: Bearer $SANDBOX_API_KEY"';
  return [
    `curl -sS ${quote(url(route))}`,
    auth,
    ...(body === undefined ? [] : ["-H 'Content-Type: application/json'", `-d ${quote(JSON.stringify(body))}`]),
  ].join(" \\\n  ");
}

/** searchLine returns the command line that searches logs. */
export function searchLine({ from, to, service, severity, text, traceId, limit }: LogFilter): string {
  const flags = { from, to, service, severity, text, trace: traceId, limit: String(limit ?? "") };
  return [
    "sandbox logs search",
    ...Object.entries(flags)
      .filter(([, value]) => value)
      .map(([name, value]) => `--${name} ${quote(value!)}`),
  ].join(" ");
}

/** queryLine returns the command line that runs a statement. */
export const queryLine = (sql: string): string => `sandbox logs query ${quote(sql)}`;

interface Request {
  route: string;
  body?: unknown;
}

/** A request that a key with a permission may send. */
const tries: Record<string, Request> = {
  Boxes: { route: "/run", body: { image: "default", cmd: ["echo", "hello"] } },
  "observability.logs.query": {
    route: "/observability/query",
    body: { sql: "SELECT ServiceName, count() AS n FROM otel_logs GROUP BY ALL ORDER BY n DESC" },
  },
  "observability.logs.write": {
    route: "/logs",
    body: {
      resourceLogs: [
        {
          resource: { attributes: [{ key: "service.name", value: { stringValue: "example" } }] },
          scopeLogs: [{ logRecords: [{ severityNumber: 9, severityText: "INFO", body: { stringValue: "hello" } }] }],
        },
      ],
    },
  },
  Keys: { route: "/keys" },
};

/** snippets returns first programs with a key, by language. With boxes they use the library, else HTTP alone. */
export function snippets({ key, permissions }: Key): Record<string, string> {
  const first = Object.keys(tries).find((permission) => permissions.includes(permission)) ?? "Keys";
  const request = tries[first]!;
  const boxes = first === "Boxes";
  return {
    curl: curl(request.route, request.body, key),
    Python: boxes ? pythonBoxes(key) : pythonHTTP(request, key),
    C: boxes ? cBoxes(key) : cHTTP(request, key),
  };
}

const string = (text: string) => JSON.stringify(text); // as Python and C write it, too: addresses, keys and documents are ASCII

const prefix = () => session.value?.principal.path_prefix ?? null;

function pythonBoxes(key: string): string {
  return `import os
os.environ["SANDBOX_REST_URL"] = ${string(server())}
os.environ["SANDBOX_API_KEY"] = ${string(key)}${prefix() ? `\nos.environ["SANDBOX_REST_PATH_PREFIX"] = ${string(prefix()!)}` : ""}

from libsandbox import Sandbox

with Sandbox("default") as box:
    print(box.run("echo", "hello").stdout)`;
}

function pythonHTTP({ route, body }: Request, key: string): string {
  return `import json, urllib.request

request = urllib.request.Request(
    ${string(url(route))},${body === undefined ? "" : `\n    data=${string(JSON.stringify(body))}.encode(),`}
    headers={"Authorization": ${string(`Bearer ${key}`)}, "Content-Type": "application/json"},
)
print(json.load(urllib.request.urlopen(request)))`;
}

function cBoxes(key: string): string {
  return `/* cc hello.c $(pkg-config --cflags --libs sandbox) */
#include <stdio.h>
#include <sandbox.h>

static void show(const char *text, int is_stderr, void *user_data) {
  (void)user_data;
  fputs(text, is_stderr ? stderr : stdout);
}

int main(void) {
  const char *options = "{\\"rootfs\\": {\\"Image\\": \\"default\\"}, \\"env\\": [], \\"volumes\\": [],"
                        " \\"network\\": \\"Isolated\\", \\"ports\\": []}";
  CSandboxRuntime *runtime = NULL;
  CBoxHandle *box = NULL;
  CSandboxError err = {SANDBOX_OK, NULL};
  int exit_code = 1;
  if (sandbox_runtime_new_remote(${string(server())}, ${string(key)}, ${prefix() ? string(prefix()!) : "NULL"}, &runtime, &err) ||
      sandbox_create_box(runtime, options, &box, &err) ||
      sandbox_execute(box, "echo", "[\\"hello\\"]", show, NULL, &exit_code, &err))
    fprintf(stderr, "%s\\n", err.message);
  sandbox_error_free(&err);
  sandbox_runtime_free(runtime); /* removes the box, too */
  return exit_code;
}`;
}

function cHTTP({ route, body }: Request, key: string): string {
  return `/* cc query.c $(pkg-config --cflags --libs libcurl) */
#include <curl/curl.h>

int main(void) {
  CURL *curl = curl_easy_init();
  struct curl_slist *headers = curl_slist_append(NULL, ${string(`Authorization: Bearer ${key}`)});
  headers = curl_slist_append(headers, "Content-Type: application/json");
  curl_easy_setopt(curl, CURLOPT_URL, ${string(url(route))});
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);${body === undefined ? "" : `\n  curl_easy_setopt(curl, CURLOPT_POSTFIELDS, ${string(JSON.stringify(body))});`}
  CURLcode failed = curl_easy_perform(curl); /* prints the answer */
  curl_slist_free_all(headers);
  curl_easy_cleanup(curl);
  return failed != CURLE_OK;
}`;
}
