from __future__ import annotations

import asyncio
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from libsandbox import (
    ApiKeyCredential,
    AsyncRuntime,
    AsyncSandbox,
    ClientOptions,
    ClosedError,
    NotFoundError,
    Runtime,
    Sandbox,
    SandboxError,
    Terminal,
    UnauthenticatedError,
    UnavailableError,
)

from .scripts import Daemon, interrupt, run


def test_key(daemon: Daemon) -> None:
    for credential in (None, ApiKeyCredential("sbx_live_wrong000000000000")):
        runtime = Runtime.remote(ClientOptions(daemon.options.url, credential))
        with runtime, pytest.raises(UnauthenticatedError):
            runtime.boxes()
    with Runtime.remote(daemon.options) as runtime, Sandbox("default", runtime=runtime) as box:
        assert box.run("echo", "over TCP").stdout == "over TCP\n"


def test_what_the_environment_says(daemon: Daemon, home: Path) -> None:
    assert daemon.options.credential is not None
    program = "from libsandbox import *\nwith Sandbox('default') as box: print(box.run('echo', 'hi').stdout, end='')"
    for variables in (
        {"SANDBOX_REST_URL": daemon.options.url, "SANDBOX_API_KEY": daemon.options.credential.key},
        {"SANDBOX_HOME": str(home)},  # whose daemon it is
    ):
        assert run(f"import os; os.environ.update({variables!r})\n{program}") == (0, "hi\n", "")
    with pytest.raises(SandboxError):
        Runtime.open(profile="nobody")


def test_ctrl_c_removes_the_box_of_a_daemon(daemon: Daemon) -> None:
    with Runtime.remote(daemon.socket) as runtime:
        for work in ("box.run('sleep', '1000')", "while True: Sandbox('default', runtime=runtime).close()"):
            before = runtime.boxes()
            source = (
                f"from libsandbox import *\nruntime = Runtime.remote(ClientOptions({daemon.socket.url!r}))\n"
                f"with Sandbox('default', runtime=runtime) as box:\n    print('ready', flush=True)\n    {work}\n"
            )
            code, _, stderr, seconds = interrupt(source)
            assert code == -2 and "KeyboardInterrupt" in stderr and seconds < 60
            assert runtime.boxes() == before


@pytest.fixture
def mortal(home: Path) -> Iterator[Daemon]:
    """A daemon that a test may kill, on a home of its own with the same image."""
    with tempfile.TemporaryDirectory(prefix="libsandbox-", ignore_cleanup_errors=True) as directory:
        for part in ("images", "layers"):
            subprocess.run(["cp", "--archive", "--link", home / part, directory], check=True)
        with Daemon(Path(directory)) as daemon:
            yield daemon
        with Runtime.local(directory) as runtime:
            for box in runtime.boxes():
                runtime.remove(box.id, force=True)


def test_a_daemon_that_goes_away(mortal: Daemon) -> None:
    with Runtime.remote(mortal.socket) as runtime:
        box = runtime.create("default")
        execution = box.exec("sh", "-c", "while :; do echo x; sleep 0.01; done", stdin=True)
        assert execution.read() is not None
        mortal.end(signal.SIGKILL)
        with pytest.raises(UnavailableError):
            while execution.read() is not None:
                pass
            execution.wait()
        for attempt in (box.info, runtime.boxes, lambda: box.run("true"), execution.kill):
            with pytest.raises(UnavailableError):
                attempt()
        execution.close()
        box.close()


def test_a_failed_detach_closes(mortal: Daemon) -> None:
    with Runtime.remote(mortal.socket) as runtime:
        box = runtime.create("default")
        execution = box.exec("sleep", "1000")
        mortal.end(signal.SIGKILL)
        with pytest.raises(UnavailableError):
            execution.detach()
        for attempt in (execution.kill, execution.read):  # which would wait for ever
            with pytest.raises(ClosedError):
                attempt()
        box.close()


@pytest.mark.parametrize("terminal", [None, Terminal()])
def test_a_lost_connection_is_no_end_of_output(mortal: Daemon, terminal: Terminal | None) -> None:
    with Runtime.remote(mortal.socket) as runtime:
        box = runtime.create("default")
        execution = box.exec("sh", "-c", "echo begun; exec sleep 1000", terminal=terminal)
        assert execution.read() is not None
        mortal.end(signal.SIGKILL)
        for _ in range(2):
            with pytest.raises(UnavailableError):
                list(execution)
        execution.close()
        box.close()


def test_a_lost_connection_with_asyncio(mortal: Daemon) -> None:
    async def main() -> None:
        async with await AsyncRuntime.remote(mortal.socket) as runtime:
            box = await runtime.create("default")
            execution = await box.exec("sh", "-c", "echo begun; exec sleep 1000")
            assert await execution.read() is not None
            mortal.end(signal.SIGKILL)
            with pytest.raises(UnavailableError):
                [piece async for piece in execution]
            await execution.close()
            await box.close()

    asyncio.run(asyncio.wait_for(main(), 60))


def test_asyncio(daemon: Daemon) -> None:
    async def main() -> None:
        async with await AsyncRuntime.remote(daemon.options) as runtime:
            async with AsyncSandbox("default", runtime=runtime) as box:
                assert (await box.run("cat", input="x" * 200_000)).stdout == "x" * 200_000
            with pytest.raises(NotFoundError):
                await runtime.get(box.id)

    asyncio.run(main())
