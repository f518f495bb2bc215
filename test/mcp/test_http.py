"""The tools of a daemon over streamable HTTP, with the official SDK for Python."""

import asyncio
import concurrent.futures
import json
import subprocess
import time
import unittest
import urllib.error
import urllib.request

from harness import Case, Daemon, Home

CONFIG = """
[mcp]
memory_mib = 64
max_boxes = 2
"""

BOXES, LOGS = "Boxes", "observability.logs.query"


class Served(Case):
    """Tests that talk to a daemon of their own."""

    config = CONFIG

    @classmethod
    def setUpClass(cls):
        cls.home = Home()
        cls.addClassCleanup(cls.home.close)
        cls.daemon = Daemon(cls.home, cls.config)
        cls.addClassCleanup(cls.daemon.close)
        cls.socket = ("--url", f"unix://{cls.home.path}/sandbox.sock")
        cls.key = cls.daemon.key(BOXES)

    def post(self, message, **headers):
        """Sends a message and returns the status, the headers and the body of the answer."""
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **headers}
        request = urllib.request.Request(self.daemon.url + "/v1/mcp", json.dumps(message).encode(), headers)
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as answer:
            return answer.code, answer.headers, answer.read()

    def open(self, key):
        """Opens a session and returns its id."""
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
        status, headers, _ = self.post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}, Authorization=f"Bearer {key}")
        self.assertEqual(status, 200)
        self.assertEqual(self.call(key, headers["Mcp-Session-Id"], {"jsonrpc": "2.0", "method": "notifications/initialized"})[0], 202)
        return headers["Mcp-Session-Id"]

    def call(self, key, session, message):
        return self.post(message, Authorization=f"Bearer {key}", **{"Mcp-Session-Id": session})

    def tool(self, key, session, number, name, **arguments):
        return self.call(key, session, {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": name, "arguments": arguments}})


class HTTP(Served):
    async def test_box(self):
        async with self.daemon.client(self.key) as client:
            box = await client.call("create_box", name="web")
            self.assertEqual((box["memory_mib"], box["auto_remove"]), (64, True))
            await client.call("write_file", box="web", path="/a", content="hi")
            self.assertEqual(await client.text("exec", box="web", cmd=["cat", "/a"]), "exit code 0\nstdout:\nhi")
            self.assertEqual((await client.call("run", cmd=["echo", "hi"]))["stdout"], "hi\n")
            await client.call("create_box")
            self.assertEqual((await client.refused("create_box"))[0], "resource_exhausted")
            async with self.daemon.client(self.key) as other:
                self.assertEqual((await other.refused("exec", box="web", cmd=["true"]))[0], "box_not_found")
            self.assertEqual(len(self.home.boxes(*self.socket)), 2)
        self.home.emptied(*self.socket)

    async def test_logs(self):
        both = self.daemon.key(BOXES, LOGS)
        async with self.daemon.client(self.key) as client:
            self.assertEqual((await client.refused("query_logs", sql="SELECT 1"))[0], "permission_denied")
        async with self.daemon.client(both) as client:
            await client.call("run", cmd=["echo", "said in a box"])
            query = {"sql": "SELECT Body FROM otel_logs WHERE Body = {said:String}", "parameters": {"said": "said in a box"}}
            async with asyncio.timeout(30):  # rows are written behind the command's end
                while not (found := await client.call("query_logs", **query))["rows"]:
                    pass
            self.assertEqual((found["rows"], found["columns"][0]["name"]), ([{"Body": "said in a box"}], "Body"))
            self.assertEqual((await client.refused("query_logs", sql="DROP TABLE otel_logs"))[0], "sql_rejected")
            self.assertEqual((await client.refused("query_logs", sql="SELECT repeat('a', 70000)"))[0], "result_too_large")

    async def test_standard_streams_on_a_daemon(self):
        async with self.home.client(where=self.socket) as client:
            await client.call("create_box", name="far")
            self.assertEqual(await client.text("exec", box="far", cmd=["cat"], stdin="hi"), "exit code 0\nstdout:\nhi")
            self.assertEqual((await client.refused("query_logs", sql="DROP TABLE otel_logs"))[0], "sql_rejected")
        self.home.emptied(*self.socket)

    async def test_session_of_another_key(self):
        session, ping = self.open(self.key), {"jsonrpc": "2.0", "id": 2, "method": "ping"}
        self.assertEqual(self.call(self.key, session, ping)[0], 200)
        self.assertEqual(self.call(self.daemon.key(BOXES), session, ping)[0], 404)

    def test_canceled_at_its_start(self):
        """No command is left of calls that are canceled around the moment in which it starts."""
        session = self.open(self.key)

        def exec_in(box, number, cmd):
            return json.loads(self.tool(self.key, session, number, "exec", box=box, cmd=cmd)[2])["result"]

        def cancel(number):
            self.call(self.key, session, {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})

        box = json.loads(self.tool(self.key, session, 2, "create_box")[2])["result"]["structuredContent"]["id"]
        calls = range(100, 160)
        with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
            for number in calls:
                pool.submit(exec_in, box, number, ["sleep", "600"])
                time.sleep((number - calls[0]) / 5000)
                cancel(number)
            end = time.monotonic() + 20
            while "sleep" in exec_in(box, 3, ["sh", "-c", "cat /proc/[0-9]*/comm"])["structuredContent"]["stdout"]:
                self.assertLess(time.monotonic(), end)
                for number in calls:  # a server ignores a cancellation that has overtaken its call
                    cancel(number)
        self.assertEqual(self.tool(self.key, session, 4, "remove_box", box=box)[0], 200)

    async def test_refusals(self):
        for headers, status, code in (
            ({}, 401, "unauthenticated"),
            ({"Authorization": "Bearer sbx_live_none"}, 401, "unauthenticated"),
            ({"Authorization": "Bearer " + self.daemon.key(LOGS)}, 403, "permission_denied"),
        ):
            got, _, body = self.post({}, **headers)
            self.assertEqual((got, json.loads(body)["error"]["code"]), (status, code))
        for headers, status in (({"Mcp-Session-Id": "none"}, 404), ({"Content-Type": "text/plain"}, 415), ({"Accept": "text/html"}, 400)):
            self.assertEqual(self.post({"jsonrpc": "2.0", "id": 1, "method": "ping"}, Authorization=f"Bearer {self.key}", **headers)[0], status)


class Idle(Served):
    """A daemon whose sessions end when they were idle for a moment: any other test may take that long between two calls."""

    config = CONFIG + 'idle = "3s"\n'

    def test_idle_session_ends(self):
        session = self.open(self.key)
        box = json.loads(self.tool(self.key, session, 2, "create_box")[2])["result"]["structuredContent"]
        self.assertTrue(box["id"], box)
        self.home.emptied(*self.socket)
        self.assertEqual(self.call(self.key, session, {"jsonrpc": "2.0", "id": 3, "method": "ping"})[0], 404)


class Ends(Case):
    """A daemon that ends takes the boxes of its sessions with it."""

    async def test_daemon(self):
        for stop in (subprocess.Popen.terminate, subprocess.Popen.kill):
            with self.subTest(stop=stop.__name__), Home() as home:
                daemon = Daemon(home)
                async with asyncio.timeout(30):
                    with self.assertRaises(BaseException):
                        async with daemon.client(daemon.key(BOXES)) as client:
                            await client.call("create_box")
                            self.assertEqual(len(home.boxes("--local")), 1)
                            daemon.close(stop)
                            await client.call("list_boxes")
                home.emptied("--local")


if __name__ == "__main__":
    unittest.main()
