"""The sandbox of openai-agents for E2B, unmodified, with a session of it and all that it does with a sandbox."""

import io
import os
import pathlib
import unittest

from agents.extensions.sandbox.e2b import E2BSandboxClient, E2BSandboxClientOptions, E2BSandboxType
from agents.sandbox.entries import File
from agents.sandbox.manifest import Manifest
from harness import Daemon

Path = pathlib.Path


class Agents(unittest.IsolatedAsyncioTestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon()
        cls.addClassCleanup(cls.daemon.close)
        os.environ.update(cls.daemon.environment())
        # The package reports what agents do to its makers, unless it is told not to.
        os.environ["OPENAI_AGENTS_DISABLE_TRACING"] = "1"

    async def asyncSetUp(self):
        self.client = E2BSandboxClient()

    async def session(self, **options):
        options = E2BSandboxClientOptions(sandbox_type=E2BSandboxType.E2B, timeout=120, **options)
        manifest = Manifest(entries={"given.txt": File(content=b"given")})
        session = await self.client.create(options=options, manifest=manifest)
        self.addAsyncCleanup(self.client.delete, session)
        await session.start()
        return session

    async def test_session(self):
        session = await self.session(exposed_ports=(8000,), envs={"A": "b"}, metadata={"by": "agents"})
        self.assertTrue(await session.running())
        ran = await session.exec("pwd; echo $A; cat given.txt; exit 3", shell=True)
        self.assertEqual((ran.exit_code, ran.stdout), (3, b"/workspace\nb\ngiven"))
        self.assertEqual((await session.exec("sh", "-c", "echo no >&2", shell=False)).stderr, b"no\n")
        await session.mkdir(Path("made/deep"), parents=True)
        await session.write(Path("made/deep/a"), io.BytesIO(b"\x00text"))
        self.assertEqual((await session.read(Path("made/deep/a"))).read(), b"\x00text")
        self.assertEqual([Path(f.path).name for f in await session.ls(Path("made"))], ["deep"])
        await session.rm(Path("made"), recursive=True)
        with self.assertRaises(Exception) as missing:
            await session.read(Path("made/deep/a"))
        self.assertIn("NotFound", type(missing.exception).__name__)
        port = await session.resolve_exposed_port(8000)
        self.assertTrue(port.host.startswith("8000-box_"), port)
        self.assertFalse(port.tls)

    async def test_terminal(self):
        session = await self.session()
        started = await session.pty_exec_start("sh", "-c", "stty size; read line; echo got $line", shell=False, tty=True, yield_time_s=1)
        written = await session.pty_write_stdin(session_id=started.process_id, chars="something\n", yield_time_s=5)
        said = started.output + written.output
        self.assertIn(b"got something", said)

    async def test_stop_and_resume(self):
        session = await self.session(pause_on_exit=True)
        await session.write(Path("kept"), io.BytesIO(b"kept"))
        state = session.state
        await session.stop()
        await session.shutdown()
        self.assertIn("paused", self.daemon.sandbox("ls", "-a").lower())
        again = await self.client.resume(state)
        self.addAsyncCleanup(self.client.delete, again)
        await again.start()
        self.assertEqual((await again.read(Path("kept"))).read(), b"kept")


if __name__ == "__main__":
    unittest.main()
