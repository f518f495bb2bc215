"""What the tests have in common: a home with a small image, its boxes, and a client of the official SDK."""

import asyncio
import contextlib
import os
import pathlib
import shutil
import subprocess
import tempfile
import threading
import time
import unittest

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

BUILD = pathlib.Path(os.environ["SANDBOX_HELPER_DIR"])
SANDBOX = str(BUILD / "sandbox")


def busybox(rootfs):
    """Makes a root file system of busybox, which Debian's busybox-static has."""
    program = pathlib.Path("/bin/busybox")
    for name in ("bin", "sbin", "usr/bin", "usr/sbin", "etc", "dev", "proc", "sys", "tmp", "root"):
        (rootfs / name).mkdir(parents=True, exist_ok=True)
    shutil.copy(program, rootfs / "bin")
    for applet in subprocess.check_output([program, "--list-full"], text=True).split():
        if not (rootfs / applet).exists():
            (rootfs / applet).symlink_to(program)
    (rootfs / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")


class Case(unittest.IsolatedAsyncioTestCase):
    """A test whose event loop does not tell of every slow step."""

    async def asyncSetUp(self):
        asyncio.get_running_loop().set_debug(False)


class Home:
    """A home of the test's own, whose boxes are made in process or by a daemon on it."""

    def __init__(self):
        self.directory = tempfile.TemporaryDirectory()
        self.path = self.directory.name
        self.env = {**os.environ, "SANDBOX_HOME": self.path, "HOME": self.path}
        for name in ("SANDBOX_REST_URL", "SANDBOX_API_KEY", "SANDBOX_PROFILE"):
            self.env.pop(name, None)
        with tempfile.TemporaryDirectory() as rootfs:
            busybox(pathlib.Path(rootfs))
            self.sandbox("--local", "images", "import", "default", rootfs)

    def sandbox(self, *args):
        """Runs the command line and returns what it prints."""
        return subprocess.run([SANDBOX, *args], env=self.env, check=True, capture_output=True, text=True).stdout

    def boxes(self, *where):
        """The ids of all boxes of the home."""
        return self.sandbox(*where, "ls", "-a", "-q").split()

    def emptied(self, *where):
        """Waits until the home has no box. The shim and the daemon remove boxes in their own time."""
        end = time.monotonic() + 20
        while left := self.boxes(*where):
            assert time.monotonic() < end, f"boxes are left: {left}"

    def close(self):
        self.directory.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    @contextlib.asynccontextmanager
    async def client(self, *flags, where=("--local",)):
        """A client of `sandbox mcp`, whose process it starts and ends."""
        server = StdioServerParameters(command=SANDBOX, args=[*where, "mcp", *flags], env=self.env)
        async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
            await session.initialize()
            yield Client(session)


class Daemon:
    """`sandbox serve` on a home."""

    def __init__(self, home, config=""):
        file = pathlib.Path(home.path) / "serve.toml"
        file.write_text(config)
        self.home = home
        self.process = subprocess.Popen(
            [SANDBOX, "serve", "--listen", "127.0.0.1:0", "--config", str(file)], env=home.env, stderr=subprocess.PIPE, text=True
        )
        for line in self.process.stderr:
            if line.startswith("sandbox: ready on "):
                self.url = line.split()[3]
                break
        self.reader = threading.Thread(target=self.process.stderr.read)
        self.reader.start()

    def key(self, *permissions):
        """Makes a key."""
        flags = [word for p in permissions for word in ("--permission", p)]
        return self.home.sandbox("--url", f"unix://{self.home.path}/sandbox.sock", "keys", "create", "test", *flags).strip()

    def close(self, stop=subprocess.Popen.terminate):
        stop(self.process)
        code = self.process.wait()
        assert stop != subprocess.Popen.terminate or code == 0, code
        self.reader.join()
        self.process.stderr.close()

    @contextlib.asynccontextmanager
    async def client(self, key):
        """A client of the daemon, with a session of its own."""
        async with create_mcp_http_client(headers={"Authorization": f"Bearer {key}"}) as http:
            async with streamable_http_client(self.url + "/v1/mcp", http_client=http) as streams, ClientSession(*streams[:2]) as session:
                await session.initialize()
                yield Client(session)


class Client:
    """Calls tools."""

    def __init__(self, session):
        self.session = session

    async def call(self, tool, **arguments):
        """Returns the document that a tool answers with."""
        result = await self.session.call_tool(tool, arguments)
        assert not result.is_error, result.content[0].text
        return result.structured_content

    async def text(self, tool, **arguments):
        """Returns the text that a model reads."""
        return (await self.session.call_tool(tool, arguments)).content[0].text

    async def refused(self, tool, **arguments):
        """Returns the code and the message of a call that fails."""
        result = await self.session.call_tool(tool, arguments)
        assert result.is_error, result
        return tuple(result.content[0].text.split(": ", 1))
