"""`sandbox mcp` with the official SDK for Python, and with raw lines where a client behaves badly."""

import asyncio
import base64
import json
import signal
import subprocess
import unittest

import anyio
from harness import SANDBOX, Case, Home
from mcp import MCPError


def setUpModule():
    Stdio.home = Raw.home = Home()
    unittest.addModuleCleanup(Stdio.home.close)


class Stdio(Case):
    home: Home

    async def test_tools(self):
        async with self.home.client() as client:
            tools = (await client.session.list_tools()).tools
        self.assertEqual({t.name for t in tools}, {"run", "create_box", "exec", "read_file", "write_file", "list_boxes", "remove_box"})
        for tool in tools:
            self.assertLess(len(tool.description), 300, tool.name)
            self.assertEqual(tool.annotations.read_only_hint, tool.name in ("read_file", "list_boxes"), tool.name)
        run = next(t for t in tools if t.name == "run")
        self.assertEqual(run.input_schema["required"], ["cmd"])
        self.assertIn("exit_code", run.output_schema["properties"])

    async def test_run(self):
        async with self.home.client("--memory", "64m", "--network", "None") as client:
            ran = await client.call("run", cmd=["sh", "-c", "cat; echo err >&2; exit 3"], stdin="hällo\n")
            self.assertEqual((ran["exit_code"], ran["stdout"], ran["stderr"], ran["truncated"]), (3, "hällo\n", "err\n", False))
            text = await client.text("run", cmd=["sh", "-c", "ls /sys/class/net; echo $A; kill -9 $$"], env={"A": "a"})
            self.assertEqual(text, "exit code 137 (signaled)\nstdout:\nlo\na\n")
            self.assertEqual((await client.call("list_boxes"))["boxes"], [])

    async def test_box(self):
        async with self.home.client("--cpus", "1", "--memory", "64m") as client:
            box = await client.call("create_box", name="first")
            self.assertEqual((box["status"], box["cpus"], box["memory_mib"], box["network"]), ("running", 1, 64, "Isolated"))
            self.assertEqual((await client.call("write_file", box="first", path="/srv/a/b", content="ä", mode=0o600))["size"], 2)
            ran = await client.call("exec", box=box["id"], cmd=["stat", "-c", "%a %s", "b"], working_dir="/srv/a", user="root")
            self.assertEqual(ran["stdout"], "600 2\n")
            self.assertEqual([b["id"] for b in (await client.call("list_boxes"))["boxes"]], [box["id"]])
            self.assertEqual(await client.call("remove_box", box="first"), {"id": box["id"]})
            self.assertEqual((await client.call("list_boxes"))["boxes"], [])

    async def test_files(self):
        content = bytes(range(256))
        async with self.home.client("--max-output", "300") as client:
            await client.call("create_box", name="files")
            await client.call("write_file", box="files", path="/b", content=base64.b64encode(content).decode(), encoding="base64")
            read = await client.call("read_file", box="files", path="/b")
            self.assertEqual((base64.b64decode(read["content"]), read["encoding"], read["truncated"]), (content, "base64", False))
            await client.call("write_file", box="files", path="/t", content="x" + "ä" * 200)
            read = await client.call("read_file", box="files", path="/t")
            self.assertEqual((read["content"], read["next"], read["size"], read["truncated"]), ("x" + "ä" * 149, 299, 401, True))
            self.assertEqual(await client.text("read_file", box="files", path="/t", offset=299), "ä" * 51)
            text = await client.text("read_file", box="files", path="/t")
            self.assertTrue(text.startswith("up to byte 299 of 401; offset 299 reads on\nxä"), text)

    async def test_output_is_bounded(self):
        async with self.home.client("--max-output", "1000") as client:
            ran = await client.call("run", cmd=["sh", "-c", "yes ä | head -c 50000000; echo end >&2"])
            self.assertEqual((ran["exit_code"], ran["truncated"], ran["stderr"]), (0, True, "end\n"))
            self.assertEqual(ran["stdout"], ("ä\n" * 500)[: len(ran["stdout"])])
            self.assertIn(len(ran["stdout"].encode()), range(997, 1001))

    async def test_gone_boxes_make_room(self):
        async with self.home.client("--max-boxes", "1") as client:
            for _ in range(2):
                box = await client.call("create_box")
                self.home.sandbox("--local", "rm", "-f", box["id"])

    async def test_refusals(self):
        async with self.home.client("--max-boxes", "1", "--max-timeout", "100") as client:
            with self.assertRaisesRegex(MCPError, "unknown tool"):
                await client.call("no_tool")
            for tool, arguments, code, words in (
                ("run", {}, "malformed", "cmd is missing"),
                ("run", {"cmd": "ls", "cpus": 64}, "malformed", "cmd must be a list; cpus is not a member of this document"),
                ("run", {"cmd": []}, "invalid_argument", "cmd must name a command"),
                ("run", {"cmd": ["a"], "timeout_ms": 100001, "working_dir": "a"}, "invalid_argument", "timeout_ms is 100001 and must be at most 100000"),
                ("run", {"cmd": ["a"], "image": "no such image"}, "image_error", ""),
                ("create_box", {"name": "a b"}, "invalid_argument", "name"),
                ("exec", {"box": "none", "cmd": ["a"]}, "box_not_found", 'no box "none" in this session'),
                ("exec", {"box": 1, "cmd": ["a"]}, "malformed", "box must be a string"),
                ("remove_box", {"box": "none"}, "box_not_found", 'made no box "none"'),
            ):
                with self.subTest(tool=tool, arguments=arguments):
                    got, message = await client.refused(tool, **arguments)
                    self.assertEqual(got, code, message)
                    self.assertIn(words, message)
            await client.call("create_box", name="one")
            self.assertEqual((await client.refused("run", cmd=["true"]))[0], "resource_exhausted")
            for tool, arguments, code in (
                ("read_file", {"path": "/none"}, "file_not_found"),
                ("read_file", {"path": "/etc"}, "is_directory"),
                ("read_file", {"path": "/etc/passwd", "offset": -1}, "invalid_argument"),
                ("write_file", {"path": "/a", "content": "!", "encoding": "base64"}, "invalid_argument"),
                ("write_file", {"path": "/a", "content": "a", "encoding": "utf-16"}, "invalid_argument"),
            ):
                with self.subTest(tool=tool, arguments=arguments):
                    got, message = await client.refused(tool, box="one", **arguments)
                    self.assertEqual(got, code, message)
            missing = await client.call("exec", box="one", cmd=["no-such-command"])
            self.assertEqual((missing["exit_code"], missing["reason"]), (127, "not_found"))

    async def test_another_sessions_box(self):
        async with self.home.client() as first, self.home.client() as second, self.home.client("--share", "shared") as third:
            box = await first.call("create_box", name="shared")
            for ref in ("shared", box["id"]):
                self.assertEqual((await second.refused("exec", box=ref, cmd=["true"]))[0], "box_not_found")
                self.assertEqual((await second.refused("remove_box", box=ref))[0], "box_not_found")
            self.assertEqual((await second.call("list_boxes"))["boxes"], [])
            self.assertEqual((await third.call("exec", box="shared", cmd=["echo", "hi"]))["stdout"], "hi\n")
            self.assertEqual(len((await third.call("list_boxes"))["boxes"]), 1)
            self.assertEqual((await third.refused("remove_box", box="shared"))[0], "box_not_found")

    async def test_timeout(self):
        async with self.home.client("--timeout", "3") as client:
            await client.call("create_box", name="slow")
            for arguments in ({}, {"timeout_ms": 4000}):
                ran = await client.call("exec", box="slow", cmd=["sh", "-c", "echo begun; sleep 60"], **arguments)
                self.assertEqual((ran["reason"], ran["stdout"]), ("timed_out", "begun\n"))
            self.assertEqual(await self.processes(client, "slow"), 0)

    async def test_cancel(self):
        async with self.home.client() as client:
            await client.call("create_box", name="busy")
            with anyio.move_on_after(0.5):
                await client.call("exec", box="busy", cmd=["sleep", "500"])
            async with asyncio.timeout(20):
                while await self.processes(client, "busy"):
                    pass

    async def processes(self, client, box):
        """How many commands run in a box beside the one that counts."""
        ran = await client.call("exec", box=box, cmd=["sh", "-c", "cat /proc/[0-9]*/comm | grep -c sleep"])
        return int(ran["stdout"])

    async def test_boxes_end_with_the_client(self):
        async with self.home.client() as client:
            await client.call("create_box")
            await client.call("create_box")
            self.assertEqual(len(self.home.boxes("--local")), 2)
        self.assertEqual(self.home.boxes("--local"), [])


class Raw(unittest.TestCase):
    """Clients that end without a word, and what is on the standard streams."""

    home: Home

    def setUp(self):
        self.server = subprocess.Popen(
            [SANDBOX, "--local", "mcp"], env=self.home.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
        )
        self.addCleanup(self.end)
        self.send(id=1, method="initialize", params={"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}})
        self.assertEqual(self.receive()["result"]["serverInfo"]["name"], "sandbox")
        self.send(method="notifications/initialized")

    def end(self):
        self.server.kill()
        self.server.wait()
        for stream in (self.server.stdin, self.server.stdout, self.server.stderr):
            stream.close()

    def send(self, **message):
        self.server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")

    def receive(self):
        return json.loads(self.server.stdout.readline())

    def call(self, number, tool, **arguments):
        self.send(id=number, method="tools/call", params={"name": tool, "arguments": arguments})

    def begin(self):
        """Makes a box and starts a command in it that goes on."""
        self.call(2, "create_box", name="raw")
        self.assertFalse(self.receive()["result"].get("isError"))
        self.call(3, "exec", box="raw", cmd=["sh", "-c", "touch /begun; sleep 50"])
        self.call(4, "exec", box="raw", cmd=["sh", "-c", "until [ -e /begun ]; do sleep 0.01; done"])
        self.assertEqual(self.receive()["id"], 4)

    def ended(self, code):
        out, err = self.server.communicate(timeout=20)
        self.assertEqual((self.server.returncode, err), (code, ""))
        for line in out.splitlines():
            json.loads(line)  # nothing but the protocol
        self.assertEqual(self.home.boxes("--local"), [])

    def test_client_leaves(self):
        self.begin()
        self.ended(0)  # communicate closes its input

    def test_client_is_gone(self):
        self.begin()
        self.server.stdout.close()
        self.server.stdin.close()
        self.assertEqual(self.server.wait(20), 0)
        self.assertEqual(self.home.boxes("--local"), [])

    def test_signal(self):
        self.begin()
        self.server.send_signal(signal.SIGTERM)
        self.assertEqual(self.server.wait(20), 128 + signal.SIGTERM)
        self.assertEqual(self.home.boxes("--local"), [])

    def test_killed(self):
        self.begin()
        self.server.kill()
        self.server.wait(20)
        self.home.emptied("--local")

    def test_not_the_protocol(self):
        self.server.stdin.write("hello\n")
        self.assertEqual(self.server.wait(20), 2)
        self.assertIn("sandbox: read what the client sends", self.server.stderr.read())


if __name__ == "__main__":
    unittest.main()
