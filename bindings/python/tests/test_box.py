from __future__ import annotations

import signal
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from libsandbox import (
    Box,
    BoxStatus,
    CanceledError,
    ExecStatus,
    Execution,
    ExecutionError,
    InvalidArgumentError,
    InvalidStateError,
    NetworkError,
    NotFoundError,
    Port,
    Progress,
    Reason,
    ResourceExhaustedError,
    Runtime,
    Sandbox,
    Stream,
    Terminal,
    TimeoutError,
    Volume,
)

from .scripts import Daemon


@pytest.fixture(scope="module", params=["in process", "on a daemon"])
def runtime(request: pytest.FixtureRequest, home: Path, daemon: Daemon) -> Iterator[Runtime]:
    """All that a box can do is the same in this process and on a daemon."""
    with Runtime.local(home) if request.param == "in process" else Runtime.remote(daemon.socket) as runtime:
        yield runtime


def test_run(box: Box) -> None:
    result = box.run(
        "sh", "-c", "echo $GREETING $MORE; pwd; id -un; echo no >&2; exit 4", env={"MORE": "x"}, cwd="/tmp"
    )
    assert (result.exit_code, result.stdout, result.stderr) == (4, "grüße x\n/tmp\nroot\n", "no\n")
    assert box.run("id", "-un", user="nobody").stdout == "nobody\n"
    assert box.run("sh", "-c", "kill -9 $$").exit_code == -9
    assert box.run("printf", r"\377\0").stdout_bytes == b"\xff\0"


def test_input(box: Box) -> None:
    data = bytes(range(256)) * 4096  # more than a pipe holds
    assert box.run("cat", input=data).stdout_bytes == data
    assert box.run("cat", input="grüße").stdout == "grüße"
    assert box.run("true", input=data).exit_code == 0  # which does not read it


def test_failures_of_commands(box: Box) -> None:
    with pytest.raises(ExecutionError, match="not found") as missing:
        box.run("no-such-command")
    assert missing.value.exit_code == 127
    with pytest.raises(TimeoutError) as late:
        box.run("sh", "-c", "echo begun; echo no >&2; exec sleep 1000", timeout=15)
    assert (late.value.stdout, late.value.stderr) == ("begun\n", "no\n")
    with pytest.raises(ResourceExhaustedError, match="1000 bytes on stdout"):
        box.run("yes", max_output=1000)


def test_conversation(box: Box) -> None:
    with box.exec("sh", stdin=True) as shell:
        shell.write("echo $((6 * 7))\n")
        assert shell.read() == (Stream.STDOUT, b"42\n")
        shell.write(b"echo no >&2; exit 3\n")
        assert list(shell) == [(Stream.STDERR, b"no\n")]
        assert shell.read() is None
        assert shell.wait() == shell.wait() == 3
        info = shell.info()
    assert (info.id, info.status, info.reason, info.exit_code) == (shell.id, ExecStatus.FAILED, Reason.EXITED, 3)
    assert box.execs()[0].id == shell.id


def test_a_stream_that_ends_early(box: Box) -> None:
    with box.exec("sh", "-c", "echo out; exec >&-; sleep 0.2; echo err >&2") as execution:
        assert [piece.data for piece in execution] == [b"out\n", b"err\n"]


def test_terminal(box: Box) -> None:
    with box.exec("bash", "--norc", terminal=Terminal(100, 30)) as shell:
        shell.write("stty size; read line\n")
        seen = read_until(shell, b"30 100")
        shell.resize(80, 20)
        shell.write("x\nstty size; exit 5\n")
        seen = read_until(shell, b"20 80")
        assert {piece.stream for piece in shell} <= {Stream.STDOUT}, seen
        assert shell.wait() == 5


def read_until(execution: Execution, wanted: bytes) -> bytes:
    seen = b""
    for piece in execution:
        seen += piece.data
        if wanted in seen:
            return seen
    raise AssertionError(seen)


def test_signal_and_kill(box: Box) -> None:
    with box.exec("sh", "-c", "trap 'exit 7' USR1; echo ready; while :; do sleep 0.01; done") as execution:
        execution.read()
        execution.signal(signal.SIGUSR1)
        assert execution.wait() == 7
        with pytest.raises(InvalidStateError):
            execution.kill()
    with box.exec("sleep", "1000") as execution:
        pass
    assert box.execs()[0].status in (ExecStatus.CANCELED, ExecStatus.RUNNING)  # killed, and not waited for


def test_detach_and_attach(box: Box) -> None:
    execution = box.exec("sh", "-c", "echo before; sleep 0.3; echo after")
    execution.detach()
    with box.attach(execution.id) as again:
        assert again.id == execution.id
        assert b"".join(piece.data for piece in again).endswith(b"after\n")
        assert again.wait() == 0


def test_attach_to_a_main_command(runtime: Runtime) -> None:
    command = ["sh", "-c", "echo begun; exec sleep 1000"]
    with Sandbox("default", runtime=runtime, command=command, network="None") as box:
        (run,) = box.execs()
        assert run.main
        for leave in (Execution.close, Execution.detach):
            execution = box.attach(run.id)
            assert execution.read() == (Stream.STDOUT, b"begun\n")
            leave(execution)
            assert [(known.id, known.status) for known in box.execs()] == [(run.id, ExecStatus.RUNNING)]
        execution = box.attach(run.id)
        execution.kill(0)
        assert [piece.data for piece in execution] == [b"begun\n"]
        with pytest.raises(CanceledError):
            execution.wait()
        execution.close()


def test_life(runtime: Runtime) -> None:
    box = runtime.create("default", name="life", auto_remove=False, memory_mib=64, cpus=1, network="None")
    info = box.info()
    assert (info.name, info.status, info.memory_mib, info.auto_remove) == ("life", BoxStatus.RUNNING, 64, False)
    assert timedelta(0) <= datetime.now(timezone.utc) - info.created_at < timedelta(minutes=1)
    with runtime.get("life") as again:
        assert again.id == box.id
    box.stop()
    assert runtime.info("life").status is BoxStatus.STOPPED
    with pytest.raises(InvalidStateError):
        box.run("true")
    box.start()
    assert box.run("true").exit_code == 0
    assert box.metrics().commands_executed_total >= 1
    assert box.id in [listed.id for listed in runtime.boxes()]
    with pytest.raises(InvalidStateError):
        runtime.remove("life")
    box.remove()
    with pytest.raises(NotFoundError):
        runtime.get("life")
    assert runtime.metrics().boxes_created_total >= 1


def test_volume_and_port(runtime: Runtime, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("shared")
    volume = Volume(host_path=str(tmp_path), guest_path="/data", read_only=True)
    with Sandbox("default", runtime=runtime, volumes=[volume], ports=[Port(guest_port=80)]) as box:
        assert box.run("cat", "/data/file").stdout == "shared"
        (port,) = box.ports
        assert (port.guest_port, port.protocol) == (80, "Tcp") and port.host_port > 0


def test_images(runtime: Runtime, tmp_path: Path) -> None:
    (tmp_path / "root/etc").mkdir(parents=True)
    seen: list[Progress] = []
    image = runtime.images.import_("mine:1", tmp_path / "root", seen.append)
    assert image.name.endswith("mine:1") and all(progress.stage == "done" for progress in seen[-1:])
    assert image.id in [listed.id for listed in runtime.images.list()]
    runtime.images.export("mine:1", tmp_path / "mine.tar")
    again = runtime.images.import_("again:1", tmp_path / "mine.tar")
    runtime.images.export("again:1", tmp_path / "again.tar", "gzip", seen.append)
    assert len(again.layers) == 1 and (tmp_path / "again.tar").stat().st_size > 0
    with pytest.raises(InvalidArgumentError):
        runtime.images.export("mine:1", tmp_path / "x.tar", "xz")
    with pytest.raises(InvalidArgumentError, match="names no registry"):
        runtime.images.push("mine:1")
    with pytest.raises(NetworkError):
        runtime.images.push("mine:1", "127.0.0.1:1/mine:1")
    runtime.images.remove("again:1")
    runtime.images.remove("mine:1")
    with pytest.raises(NotFoundError):
        runtime.images.remove("mine:1")
