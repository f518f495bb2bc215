"""E2B's SDK for Python, unmodified: everything that the daemon answers, and the exceptions that it answers with."""

import asyncio
import datetime
import http.client
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

import e2b
from e2b import AsyncSandbox, CommandExitException, FileType, FilesystemEventType, PtySize, Sandbox, SandboxQuery, SandboxState
from harness import Daemon

HERE = pathlib.Path(__file__).parent


def setUpModule():
    global daemon
    daemon = Daemon()
    unittest.addModuleCleanup(daemon.close)
    os.environ.update(daemon.environment())


def until(found):
    """Waits until found returns something true, and returns that."""
    end = time.monotonic() + 120
    while not (it := found()):
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.02)
    return it


class Boxes(unittest.TestCase):
    """The control plane."""

    def sandbox(self, **opts):
        sandbox = Sandbox.create(timeout=60, **opts)
        self.addCleanup(sandbox.kill)
        return sandbox

    def test_create_and_kill(self):
        sandbox = self.sandbox(metadata={"user": "a b&c=é"}, envs={"MINE": "yes"})
        info = sandbox.get_info()
        self.assertEqual((info.sandbox_id, info.template_id, info.state), (sandbox.sandbox_id, "default", SandboxState.RUNNING))
        self.assertEqual((info.metadata, info.cpu_count, info.memory_mb), ({"user": "a b&c=é"}, 2, 512))
        self.assertEqual(sandbox.commands.run("echo $MINE $E2B_SANDBOX $E2B_SANDBOX_ID").stdout, f"yes true {sandbox.sandbox_id}\n")
        self.assertIn(sandbox.sandbox_id, daemon.boxes())
        self.assertTrue(sandbox.is_running())
        self.assertTrue(sandbox.kill())
        self.assertFalse(sandbox.is_running())
        self.assertFalse(Sandbox.kill(sandbox.sandbox_id))
        self.assertNotIn(sandbox.sandbox_id, daemon.boxes())
        with self.assertRaises(e2b.SandboxNotFoundException):
            sandbox.get_info()
        with self.assertRaises(e2b.SandboxNotRunningException):
            sandbox.commands.run("true")
        with self.assertRaises(e2b.SandboxNotRunningException):
            sandbox.files.read("/etc/passwd")

    def test_context_manager(self):
        with Sandbox.create() as sandbox:
            self.assertTrue(sandbox.is_running())
        self.assertNotIn(sandbox.sandbox_id, daemon.boxes())

    def test_template(self):
        with tempfile.TemporaryDirectory() as rootfs:
            (pathlib.Path(rootfs) / "etc").mkdir()
            daemon.sandbox("images", "import", "mine", rootfs)
        self.assertEqual(self.sandbox(template="mine").get_info().template_id, "mine")
        with self.assertRaises(e2b.SandboxException):
            Sandbox.create(template="127.0.0.1:1/nothing", request_timeout=30)

    def test_list(self):
        made = [self.sandbox(metadata={"list": "yes", "n": str(n)}).sandbox_id for n in range(3)]
        found, pages = [], Sandbox.list(SandboxQuery(metadata={"list": "yes"}), limit=2)
        while pages.has_next:
            page = pages.next_items()
            self.assertLessEqual(len(page), 2)
            found += [one.sandbox_id for one in page]
        self.assertEqual(found, made[::-1])
        oldest = Sandbox.list(SandboxQuery(metadata={"list": "yes"}), order="asc").next_items()
        self.assertEqual([one.sandbox_id for one in oldest], made)
        one = Sandbox.list(SandboxQuery(metadata={"list": "yes", "n": "1"}, state=[SandboxState.RUNNING], template="base")).next_items()
        self.assertEqual([it.sandbox_id for it in one], made[1:2])
        later = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=1)
        self.assertEqual(Sandbox.list(SandboxQuery(started_after=later)).next_items(), [])
        with self.assertRaises(e2b.SandboxException):
            Sandbox.list(next_token="no token").next_items()

    def test_timeout(self):
        sandbox = self.sandbox()
        before = sandbox.get_info().end_at
        sandbox.set_timeout(600)
        self.assertGreater(sandbox.get_info().end_at, before + datetime.timedelta(seconds=500))
        Sandbox.connect(sandbox.sandbox_id, timeout=10)  # which never shortens the time
        self.assertGreater(sandbox.get_info().end_at, before + datetime.timedelta(seconds=500))
        with self.assertRaises(e2b.SandboxException):
            sandbox.set_timeout(-1)
        with self.assertRaises(e2b.SandboxException):
            sandbox.set_timeout(100 * 365 * 24 * 3600)
        sandbox.set_timeout(1)
        until(lambda: not sandbox.is_running())
        until(lambda: sandbox.sandbox_id not in daemon.boxes())

    def test_pause(self):
        sandbox = self.sandbox(lifecycle={"on_timeout": "pause"})
        ticker = sandbox.commands.run("while true; do echo tick; sleep 0.1; done", background=True)
        self.assertTrue(sandbox.pause())
        self.assertFalse(sandbox.pause())
        self.assertEqual(sandbox.get_info().state, SandboxState.PAUSED)
        self.assertFalse(sandbox.is_running())
        with self.assertRaises(e2b.SandboxNotRunningException):
            sandbox.files.list("/")
        again = Sandbox.connect(sandbox.sandbox_id, timeout=60)
        self.assertEqual(again.get_info().state, SandboxState.RUNNING)
        self.assertIn(ticker.pid, [p.pid for p in again.commands.list()])
        again.set_timeout(1)
        until(lambda: again.get_info().state == SandboxState.PAUSED)
        with self.assertRaises(e2b.SandboxException):
            again.pause(mode="filesystem")

    def test_auto_resume(self):
        sandbox = self.sandbox(lifecycle={"on_timeout": "pause", "auto_resume": True})
        self.assertTrue(sandbox.get_info().lifecycle["auto_resume"])
        sandbox.pause()
        self.assertFalse(sandbox.is_running())
        self.assertEqual(sandbox.get_info().state, SandboxState.PAUSED)
        self.assertEqual(sandbox.commands.run("echo hi").stdout, "hi\n")
        self.assertTrue(sandbox.is_running())

    def test_network(self):
        self.assertFalse(self.sandbox(allow_internet_access=False).get_info().allow_internet_access)
        box = self.sandbox(network={"deny_out": ["0.0.0.0/0"]})
        self.assertEqual(box.commands.run("ls /sys/class/net").stdout.split(), ["lo"])
        with self.assertRaisesRegex(e2b.SandboxException, "unimplemented"):
            Sandbox.create(network={"allow_out": ["1.1.1.1"]})
        with self.assertRaisesRegex(e2b.SandboxException, "unimplemented"):
            box.update_network({"deny_out": ["0.0.0.0/0"]})

    def test_metrics(self):
        now = self.sandbox().get_metrics()[-1]
        self.assertEqual((now.cpu_count, now.mem_total), (2, 512 << 20))
        self.assertGreater(now.mem_used, 0)

    def test_series_of_metrics(self):
        """What a sandbox used over time: the daemon measures each second here."""
        begin = datetime.datetime.now(datetime.timezone.utc)
        sandbox = self.sandbox()
        sandbox.commands.run("while :; do :; done", background=True)
        series = until(lambda: (found := sandbox.get_metrics()) and len(found) > 4 and found)
        times = [one.timestamp for one in series]
        self.assertEqual(times, sorted(times))
        self.assertGreater(max(one.cpu_used_pct for one in series), 1)
        self.assertTrue(all(one.mem_used > 0 and one.mem_total == 512 << 20 for one in series))
        end = series[1].timestamp
        part = sandbox.get_metrics(start=begin, end=end)
        self.assertTrue(part)
        self.assertTrue(all(one.timestamp <= end + datetime.timedelta(seconds=1) for one in part), part)
        self.assertEqual(Sandbox.get_metrics(sandbox.sandbox_id, start=begin + datetime.timedelta(days=1)), [])
        with self.assertRaises(e2b.SandboxException):
            sandbox.get_metrics(start=end, end=begin - datetime.timedelta(days=1))

    def test_idempotency_key(self):
        first, second = (self.sandbox(idempotency_key="one-and-the-same") for _ in range(2))
        self.assertEqual(first.sandbox_id, second.sandbox_id)

    def test_refused(self):
        for key, error in ((None, e2b.AuthenticationException), ("e2b_wrong", e2b.AuthenticationException), (daemon.key("Keys"), e2b.SandboxException)):
            with self.subTest(key=key), self.assertRaises(error):
                Sandbox.create(api_key=key or "none")
        with self.assertRaises(e2b.SandboxNotFoundException):
            Sandbox.connect("box_aaaaaaaaaaaaaaaaaaaa")
        with self.assertRaises(e2b.SandboxException):
            Sandbox.create(metadata={str(n): "" for n in range(100)})
        for absent in (lambda s: s.create_snapshot(), lambda s: s.fork()):
            with self.assertRaisesRegex(e2b.SandboxException, "unimplemented"):
                absent(self.sandbox())

    def test_other_box(self):
        """The token of one box opens no other."""
        mine, other = self.sandbox(), self.sandbox()
        stolen = Sandbox(
            sandbox_id=other.sandbox_id, envd_version=mine._envd_version, envd_access_token=mine._envd_access_token, sandbox_domain=None,
            connection_config=e2b.ConnectionConfig(
                extra_sandbox_headers={"E2b-Sandbox-Id": other.sandbox_id, "X-Access-Token": mine._envd_access_token}
            ),
        )
        with self.assertRaises(e2b.AuthenticationException):
            stolen.commands.run("true")
        with self.assertRaises(e2b.AuthenticationException):
            stolen.files.read("/etc/passwd")


class Inside(unittest.TestCase):
    """Tests of what is in a box, which they share."""

    @classmethod
    def setUpClass(cls):
        cls.box = Sandbox.create(timeout=300)
        cls.addClassCleanup(cls.box.kill)


class Commands(Inside):
    def test_run(self):
        said = []
        result = self.box.commands.run(
            "whoami; pwd; echo $A >&2", envs={"A": "b"}, on_stdout=lambda s: said.append(("out", s)), on_stderr=lambda s: said.append(("err", s))
        )
        self.assertEqual((result.stdout, result.stderr, result.exit_code), ("user\n/home/user\n", "b\n", 0))
        self.assertEqual("".join(s for name, s in said if name == "out"), result.stdout)
        self.assertEqual(self.box.commands.run("whoami; pwd", user="root", cwd="/tmp").stdout, "root\n/tmp\n")
        self.assertEqual(len(self.box.commands.run("head -c 3000000 /dev/zero | tr '\\0' x").stdout), 3_000_000)
        self.assertEqual(self.box.commands.run("printf 'ä€😀'").stdout, "ä€😀")

    def test_failures(self):
        with self.assertRaises(CommandExitException) as failed:
            self.box.commands.run("echo no >&2; exit 3")
        self.assertEqual((failed.exception.exit_code, failed.exception.stderr), (3, "no\n"))
        with self.assertRaises(CommandExitException) as killed:
            self.box.commands.run("kill -9 $$")
        self.assertEqual(killed.exception.exit_code, 137)
        with self.assertRaises(e2b.InvalidArgumentException):
            self.box.commands.run("true", user="nobody-of-this-name")
        with self.assertRaises(CommandExitException):
            self.box.commands.run("true", cwd="/not/there")

    def test_timeout(self):
        with self.assertRaises(e2b.TimeoutException):
            self.box.commands.run("sleep 61.5", timeout=1)
        until(lambda: "sleep" not in str([p.args for p in self.box.commands.list()]))

    def test_background(self):
        handle = self.box.commands.run("echo first; read line; echo got $line; sleep 60.5", background=True, stdin=True)
        listed = {p.pid: p for p in self.box.commands.list()}
        self.assertEqual((listed[handle.pid].cmd, listed[handle.pid].cwd), ("/bin/bash", "/home/user"))
        events = iter(handle)
        self.assertEqual(next(events), ("first\n", None, None))
        self.box.commands.send_stdin(handle.pid, "something\n")
        self.assertEqual(next(events), ("got something\n", None, None))
        native = daemon.sandbox("ps", self.box.sandbox_id)
        self.assertIn("sleep 60.5", native)
        handle.disconnect()
        again = self.box.commands.connect(handle.pid)
        self.assertTrue(self.box.commands.kill(handle.pid))
        with self.assertRaises(CommandExitException) as killed:
            again.wait()
        self.assertEqual(killed.exception.exit_code, 137)
        until(lambda: not self.box.commands.kill(handle.pid))
        with self.assertRaises(e2b.NotFoundException):
            self.box.commands.connect(handle.pid)
        with self.assertRaises(e2b.NotFoundException):
            self.box.commands.send_stdin(handle.pid, "more")

    def test_main_command(self):
        """The main command of a box is listed, its output is read from now on, and it is ended."""
        script = "echo begun; until [ -e /tmp/go ]; do sleep 0.05; done; echo went >&2; sleep 600"
        made = daemon.sandbox("create", "--ttl", "300s", "default", "--", "/bin/sh", "-c", script).strip()
        box = Sandbox.connect(made)
        self.addCleanup(box.kill)
        (listed,) = box.commands.list()
        self.assertEqual((listed.cmd, listed.args), ("/bin/sh", ["-c", script]))
        handle = box.commands.connect(listed.pid)
        box.commands.run("touch /tmp/go")
        self.assertEqual(next(iter(handle)), (None, "went\n", None))
        self.assertTrue(box.commands.kill(listed.pid))
        with self.assertRaises(CommandExitException) as killed:
            handle.wait()
        self.assertEqual(killed.exception.exit_code, 137)

    def test_stdin(self):
        handle = self.box.commands.run("cat", background=True, stdin=True)
        handle.send_stdin("one ")
        self.box.commands.stream_input(handle.pid, iter(["two ", b"three"]))
        handle.close_stdin()
        self.assertEqual(handle.wait().stdout, "one two three")
        self.assertEqual(self.box.commands.run("cat").stdout, "")

    def test_killed_from_outside(self):
        """A command of the SDK is an exec of the daemon, which the command line can end."""
        handle = self.box.commands.run("sleep 62.5", background=True)
        (exec,) = [line.split()[0] for line in daemon.sandbox("ps", self.box.sandbox_id).splitlines() if "sleep 62.5" in line]
        daemon.sandbox("kill", self.box.sandbox_id, exec)
        with self.assertRaises(CommandExitException):
            handle.wait()

    def test_box_ends_under_a_command(self):
        box = Sandbox.create(timeout=60)
        handle = box.commands.run("sleep 63.5", background=True)
        threading.Timer(0.2, box.kill).start()
        with self.assertRaises((e2b.SandboxNotRunningException, e2b.TimeoutException)):
            handle.wait()


class Pty(Inside):
    def test_pty(self):
        shown = bytearray()
        pty = self.box.pty.create(PtySize(rows=24, cols=80), envs={"PS1": "> "}, timeout=60)
        reader = threading.Thread(target=lambda: self.swallow(pty, shown))
        reader.start()
        self.box.pty.send_stdin(pty.pid, b"stty size; tty\n")
        until(lambda: b"24 80" in shown and b"/dev/pts/" in shown)
        self.box.pty.resize(pty.pid, PtySize(rows=40, cols=100))
        self.box.pty.send_stdin(pty.pid, b"stty size\n")
        until(lambda: b"40 100" in shown)
        other = self.box.pty.connect(pty.pid)
        self.assertTrue(self.box.pty.kill(pty.pid))
        reader.join()
        self.swallow(other, bytearray())
        self.assertFalse(self.box.pty.kill(pty.pid))

    def swallow(self, pty, shown):
        try:
            pty.wait(on_pty=shown.extend)
        except CommandExitException:
            pass


class Files(Inside):
    def test_read_and_write(self):
        files = self.box.files
        written = files.write("some/where/a.txt", "text ä")
        self.assertEqual((written.path, written.name, written.type), ("/home/user/some/where/a.txt", "a.txt", FileType.FILE))
        self.assertEqual(files.read("~/some/where/a.txt"), "text ä")
        files.write("/tmp/b", b"\x00\xff" * 500_000)
        self.assertEqual(bytes(files.read("/tmp/b", format="bytes")), b"\x00\xff" * 500_000)
        self.assertEqual(b"".join(files.read("/tmp/b", format="stream")), b"\x00\xff" * 500_000)
        two = files.write_files([{"path": "x/1", "data": "1"}, {"path": "x/2", "data": b"2"}])
        self.assertEqual([f.path for f in two], ["/home/user/x/1", "/home/user/x/2"])
        files.write("octets", b"octets" * 1000, use_octet_stream=True, gzip=True)
        self.assertEqual(files.read("octets", gzip=True), "octets" * 1000)
        files.write("empty", "")
        self.assertEqual(files.read("empty"), "")
        files.write("/root/r", "root's", user="root")
        self.assertEqual((files.read("/root/r"), files.get_info("/root/r").owner), ("root's", "root"))
        files.write("/srv/new/mine", "the user's")  # where only root may write
        files.make_dir("/srv/new/deep/er")
        for path in ("/srv/new", "/srv/new/mine", "/srv/new/deep", "/srv/new/deep/er"):
            self.assertEqual((files.get_info(path).owner, files.get_info(path).group), ("user", "user"), path)
        files.write("/root/r", "again")
        self.assertEqual(files.get_info("/root/r").owner, "root")  # what is replaced keeps its owner

    def test_refused(self):
        files = self.box.files
        for path in ("/not/there", "/" + "x" * 300, "/" + "a/" * 2100):
            with self.subTest(path=path[:20]), self.assertRaises(e2b.SandboxException):
                files.read(path)
        with self.assertRaises(e2b.FileNotFoundException):
            files.read("/not/there")
        with self.assertRaises(e2b.FileNotFoundException):
            files.get_info("/not/there")
        with self.assertRaises(e2b.FileNotFoundException):
            files.list("/not/there")
        with self.assertRaises(e2b.InvalidArgumentException):
            files.read("/etc")
        with self.assertRaises(e2b.InvalidArgumentException):
            files.write("x", "", user="nobody-of-this-name")
        with self.assertRaises(e2b.SandboxException):
            files.list("/etc/passwd")
        with self.assertRaisesRegex(e2b.SandboxException, "unimplemented"):
            files.write("m", "", metadata={"a": "b"})
        with self.assertRaises(e2b.InvalidArgumentException):
            files.read("/proc/self/root/../../etc/passwd")  # a magic link

    def test_look(self):
        files = self.box.files
        self.box.commands.run("mkdir -p look/deep && echo hi >look/f && chmod 640 look/f && ln -s f look/l && touch look/deep/g")
        info = files.get_info("look/f")
        self.assertEqual((info.name, info.path, info.type, info.size), ("f", "/home/user/look/f", FileType.FILE, 3))
        self.assertEqual((info.mode, info.permissions, info.owner, info.group), (0o640, "-rw-r-----", "user", "user"))
        self.assertLess(abs(info.modified_time - datetime.datetime.now(datetime.UTC)), datetime.timedelta(hours=1))
        link = files.get_info("look/l")
        self.assertEqual((link.type, link.symlink_target), (FileType.SYMLINK, "f"))
        self.assertEqual([(e.name, e.type) for e in files.list("look")], [("deep", FileType.DIR), ("f", FileType.FILE), ("l", FileType.SYMLINK)])
        self.assertEqual([e.path for e in files.list("look", depth=2)][1], "/home/user/look/deep/g")
        self.assertTrue(files.exists("look/f"))
        self.assertFalse(files.exists("look/none"))

    def test_change(self):
        files = self.box.files
        self.assertTrue(files.make_dir("change/a/b"))
        self.assertFalse(files.make_dir("change/a/b"))
        files.write("change/f", "f")
        moved = files.rename("change/f", "change/new/g")
        self.assertEqual((moved.path, files.read("change/new/g")), ("/home/user/change/new/g", "f"))
        with self.assertRaises(e2b.FileNotFoundException):
            files.rename("change/none", "change/other")
        files.remove("change")
        self.assertFalse(files.exists("change"))
        files.remove("change")

    def test_many(self):
        self.box.commands.run("mkdir many && cd many && seq 12000 | xargs touch")
        self.assertEqual(len(self.box.files.list("many")), 12_000)

    def test_watch(self):
        files = self.box.files
        files.make_dir("watched/sub")
        watch = files.watch_dir("watched", recursive=True, include_entry=True)
        self.box.commands.run("cd watched && echo a >sub/new && mv sub/new moved && chmod 600 moved && rm moved")
        seen = []
        until(lambda: seen.extend(watch.get_new_events()) or any(e.type == FilesystemEventType.REMOVE for e in seen))
        kinds = [(e.name, e.type) for e in seen]
        for event in (
            ("sub/new", FilesystemEventType.CREATE), ("sub/new", FilesystemEventType.WRITE), ("sub/new", FilesystemEventType.RENAME),
            ("moved", FilesystemEventType.CREATE), ("moved", FilesystemEventType.CHMOD), ("moved", FilesystemEventType.REMOVE),
        ):
            self.assertIn(event, kinds)
        watch.stop()
        with self.assertRaises(e2b.SandboxException):
            watch.get_new_events()
        with self.assertRaises(e2b.FileNotFoundException):
            files.watch_dir("not/there")

    def test_signed_links(self):
        files = self.box.files
        files.write("linked", "for all")

        def get(url, data=None, **headers):
            with urllib.request.urlopen(urllib.request.Request(url, data, headers)) as answer:
                return answer.read().decode()

        link = self.box.download_url("linked", use_signature_expiration=60)
        self.assertEqual(get(link), "for all")
        form = b'--b\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\nby a link\r\n--b--\r\n'
        get(self.box.upload_url("up"), form, **{"Content-Type": "multipart/form-data; boundary=b"})
        self.assertEqual(files.read("up"), "by a link")
        over = self.box.download_url("linked", use_signature_expiration=-1)
        for name, wrong in {
            "over": over,
            "changed": link.replace("path=linked", "path=up"),
            "of another operation": self.box.upload_url("linked"),
            "later": link.replace("signature_expiration=1", "signature_expiration=2"),
            "none": f"{daemon.url}/files?path=linked",
        }.items():
            with self.subTest(name), self.assertRaises(urllib.error.HTTPError) as refused:
                get(wrong)
            self.assertEqual(refused.exception.code, 401)
            refused.exception.close()


class Async(unittest.IsolatedAsyncioTestCase):
    async def test_async(self):
        async with await AsyncSandbox.create(timeout=60) as box:
            results = await asyncio.gather(*(box.commands.run(f"echo {n}") for n in range(10)))
            self.assertEqual([r.stdout for r in results], [f"{n}\n" for n in range(10)])
            await box.files.make_dir("w")
            events, done = [], asyncio.Event()
            watch = await box.files.watch_dir("w", on_event=lambda e: (events.append(e), done.set()))
            await box.files.write("w/f", "x")
            await asyncio.wait_for(done.wait(), 20)
            await watch.stop()
            self.assertEqual(await box.files.read("w/f"), "x")


class Ports(unittest.TestCase):
    """What listens in a box, at the hosts that get_host names."""

    def get(self, box, port, path="/", **headers):
        """Asks the daemon for a host of the box. The host's name need not be known here."""
        connection = http.client.HTTPConnection(daemon.url.removeprefix("http://"), timeout=20)
        self.addCleanup(connection.close)
        connection.request("GET", path, headers={"Host": box.get_host(port), **headers})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()

    def test_ports(self):
        box = Sandbox.create(timeout=60, allow_internet_access=False)
        self.addCleanup(box.kill)
        self.assertRegex(box.get_host(8000), f"^8000-{box.sandbox_id}\\.localhost:[0-9]+$")
        box.files.write("www/a", "served")
        box.commands.run("cd www && python3 -m http.server 8000", background=True, timeout=0)
        until(lambda: self.get(box, 8000, "/a") == (200, "served"))
        status, said = self.get(box, 8001)
        self.assertEqual(status, 502, said)
        self.assertEqual(self.get(box, 0)[0], 400)
        box.pause()
        self.assertEqual(self.get(box, 8000, "/a")[0], 502)

    def test_private(self):
        box = Sandbox.create(timeout=60, network={"allow_public_traffic": False})
        self.addCleanup(box.kill)
        self.assertEqual(box.get_info().metadata, {})
        self.assertEqual(self.get(box, 8000)[0], 401)
        self.assertEqual(self.get(box, 8000, **{"e2b-traffic-access-token": box.traffic_access_token})[0], 502)


class Example(unittest.TestCase):
    """The program that docs/agents.md shows."""

    def test_example(self):
        ran = subprocess.run([sys.executable, HERE / "example.py"], check=True, capture_output=True, text=True)
        self.assertEqual(ran.stdout, "45\n\n")


class Restart(unittest.TestCase):
    """Boxes, tokens and commands outlive the daemon."""

    def test_restart(self):
        box = Sandbox.create(timeout=60)
        handle = box.commands.run("read line; echo after $line", background=True, stdin=True)
        daemon.stop()
        daemon.start()
        os.environ.update(daemon.environment())
        again = Sandbox.connect(box.sandbox_id)
        self.assertEqual(again._envd_access_token, box._envd_access_token)
        other = again.commands.connect(handle.pid)
        again.commands.send_stdin(handle.pid, "all\n")
        self.assertEqual(other.wait().stdout, "after all\n")
        again.kill()


if __name__ == "__main__":
    unittest.main()
