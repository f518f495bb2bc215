from __future__ import annotations

import re
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import libsandbox
from libsandbox import (
    ApiKeyCredential,
    ArgumentTypeError,
    Box,
    CanceledError,
    ClientOptions,
    ClosedError,
    ConfigError,
    ExecStatus,
    Execution,
    InvalidArgumentError,
    InvalidStateError,
    NotFoundError,
    Port,
    Registry,
    Runtime,
    Sandbox,
    SandboxError,
    Stream,
    Terminal,
    Volume,
)
from libsandbox._documents import FAILURES
from libsandbox._library import FALLIBLE, INFALLIBLE, library

from .scripts import TOP, run

Attempt = Callable[[Any], object]  # on a box or a runtime, which takes what mypy would not

WRONG_TYPES: list[Attempt] = [
    lambda box: box.run(1),
    lambda box: box.run("true", 1),
    lambda box: box.run(["true"]),
    lambda box: box.run(b"true"),
    lambda box: box.run("true", env=[("A", "b")]),
    lambda box: box.run("true", env={"A": 1}),
    lambda box: box.run("true", cwd=1),
    lambda box: box.run("true", user=0),
    lambda box: box.run("true", timeout="1"),
    lambda box: box.run("true", timeout=True),
    lambda box: box.run("true", input=1),
    lambda box: box.run("true", max_output="1"),
    lambda box: box.run("true", shell=True),
    lambda box: box.exec("true", stdin=1),
    lambda box: box.exec("true", terminal=(80, 24)),
    lambda box: box.exec("true", terminal=Terminal("80")),  # type: ignore[arg-type]
    lambda box: box.attach(None),
    lambda box: box.copy_in(1, "/a"),
    lambda box: box.copy_in("a", None),
    lambda box: box.copy_out("/a", "a", progress=1),
    lambda box: box.read_file(Path("/a")),
    lambda box: box.write_file("/a", 1),
    lambda box: box.copy_in("a", "/a", user=1),
    lambda box: box.stat_file(b"/a"),
    lambda box: box.list_files("/", depth="2").__next__(),
    lambda box: box.make_directory("/a", mode="755"),
    lambda box: box.move_file("/a", None),
    lambda box: box.remove_file("/a", recursive=1),
    lambda box: box.watch_files("/", user=0),
    lambda box: box.connect("80"),
    lambda box: box.connect(80.0),
    lambda box: box.share("80"),
    lambda box: box.share(80, expires_in="1"),
    lambda box: box.snapshot(b"a"),
    lambda box: box.clone("2"),
    lambda box: box.clone(memory_mib="96"),
    lambda box: box.clone(name="a"),
    lambda box: box.rollback(None),
    lambda box: list(box.diff(1)),
    lambda box: box.metrics_series(3600),
    lambda box: box.metrics_series(step="1"),
    lambda box: box.run_code(b"1"),
    lambda box: box.run_code("1", language=1),
    lambda box: box.run_code("1", context=box.id.encode()),
    lambda box: box.run_code("1", env=["A=1"]),
    lambda box: box.run_code("1", timeout="1"),
    lambda box: box.run_code("1", max_output="1"),
    lambda box: box.run_code("1", cwd="/"),
    lambda box: box.create_context(timeout=1),
    lambda box: box.create_context(cwd=1),
    lambda box: box.interrupt_context(None),
    lambda box: box.remove_context(1),
    lambda box: box.remove(force=1),
]

WRONG_TYPES_OF_RUNTIMES: list[Attempt] = [
    lambda runtime: runtime.create(1),
    lambda runtime: runtime.create("default", cpus="1"),
    lambda runtime: runtime.create("default", cpus=1.5),
    lambda runtime: runtime.create("default", auto_remove=1),
    lambda runtime: runtime.create("default", volumes=["/a:/b"]),
    lambda runtime: runtime.create("default", ports={80: 80}),
    lambda runtime: runtime.create("default", image="x"),
    lambda runtime: runtime.create("default", colour="red"),
    lambda runtime: runtime.get(1),
    lambda runtime: runtime.remove("a", force="yes"),
    lambda runtime: runtime.shutdown("1"),
    lambda runtime: runtime.images.import_("a", 1),
    lambda runtime: Sandbox("default", runtime="here"),  # type: ignore[arg-type]
    lambda runtime: Runtime.remote("http://127.0.0.1:1"),  # type: ignore[arg-type]
    lambda runtime: Runtime.local(registries=["docker.io"]),  # type: ignore[list-item]
    lambda runtime: ApiKeyCredential(1),  # type: ignore[arg-type]
]

WRONG_VALUES: list[Attempt] = [
    lambda box: box.run(),
    lambda box: box.run("a\0b"),
    lambda box: box.run("\udcff"),
    lambda box: box.run("true", env={"A": "\0"}),
    lambda box: box.run("true", env={"": "a"}),
    lambda box: box.run("true", cwd="relative"),
    lambda box: box.run("true", timeout=0),
    lambda box: box.run("true", timeout=float("nan")),
    lambda box: box.run("true", max_output=-1),
    lambda box: box.exec("true", terminal=Terminal(-1)),
    lambda box: box.exec("true", terminal=Terminal(2**40)),
    lambda box: box.write_file("relative", b""),
    lambda box: box.write_file("/a", b"", mode=0o1777),
    lambda box: box.stat_file("/a/../b"),
    lambda box: box.stat_file("/" + "a" * 4096),
    lambda box: box.list_files("/", depth=65).__next__(),
    lambda box: box.make_directory("/a", mode=0o10000),
    lambda box: box.watch_files("/etc/passwd"),
    lambda box: box.connect(0),
    lambda box: box.connect(65536),
    lambda box: box.share(80, expires_in=0),
    lambda box: box.snapshot("../a"),
    lambda box: box.clone(0),
    lambda box: box.clone(memory_mib=1),
    lambda box: box.metrics_series(step=0),
    lambda box: box.run_code("a\0b"),
    lambda box: box.run_code("1", language="cobol"),
    lambda box: box.run_code("1", language="bash", context="python"),
    lambda box: box.run_code("1", context="../python"),
    lambda box: box.run_code("1", timeout=0),
    lambda box: box.create_context(cwd="relative"),
]


@pytest.mark.parametrize("attempt", WRONG_TYPES)
def test_wrong_types(box: Box, attempt: Attempt) -> None:
    before = box.metrics().commands_executed_total
    with pytest.raises(ArgumentTypeError) as failure:
        attempt(box)
    assert isinstance(failure.value, (TypeError, InvalidArgumentError)) and failure.value.message
    assert box.metrics().commands_executed_total == before


@pytest.mark.parametrize("attempt", WRONG_TYPES_OF_RUNTIMES)
def test_wrong_types_of_runtimes(runtime: Runtime, attempt: Attempt) -> None:
    with pytest.raises((ArgumentTypeError, TypeError)):
        attempt(runtime)


@pytest.mark.parametrize("attempt", WRONG_VALUES)
def test_wrong_values(box: Box, attempt: Attempt) -> None:
    with pytest.raises(InvalidArgumentError) as failure:
        attempt(box)
    assert not isinstance(failure.value, TypeError)


def test_wrong_options(runtime: Runtime) -> None:
    for options in ({}, {"rootfs_path": "/none"}, {"rootfs_path": "relative"}):
        with pytest.raises(InvalidArgumentError):
            runtime.create(**options)  # type: ignore[arg-type]
    for more in (
        {"cpus": 0},
        {"memory_mib": 10**9},
        {"name": "-"},
        {"network": "Host"},
        {"ports": [Port(guest_port=0)]},
    ):
        with pytest.raises(InvalidArgumentError):
            runtime.create("default", **more)
    with pytest.raises(InvalidArgumentError, match="host_path"):
        runtime.create("default", volumes=[Volume(host_path="relative", guest_path="/data")])


def test_every_code_has_a_class() -> None:
    header = (TOP / "include/sandbox.h").read_text()
    codes = {name: int(code) for name, code in re.findall(r"^  SANDBOX_([A-Z_]+) = (\d+),? +/\*", header, re.M)}
    codes.pop("EXIT")
    assert set(FAILURES) == set(codes.values())
    for name, code in codes.items():
        failure = FAILURES[code]("what failed")
        assert type(failure).__name__ == name.title().replace("_", "") + "Error"
        assert (failure.code, failure.message, str(failure)) == (code, "what failed", "what failed")
        assert isinstance(failure, SandboxError)
        assert getattr(libsandbox, type(failure).__name__) is type(failure)


def test_prototypes_are_those_of_the_header() -> None:
    header = re.sub(r"/\*.*?\*/", "", (TOP / "include/sandbox.h").read_text(), flags=re.S)
    declared = dict(re.findall(r"^SandboxErrorCode sandbox_(\w+)\((.*?)\);", header, re.M | re.S))
    unused = {"execute", "execute_cmd", "simple_new", "simple_run"}  # for languages in which a callback is simplest
    unused |= {"watch_fd", "code_fd", "build_fd"}  # a thread waits here
    assert set(declared) - unused <= set(FALLIBLE)
    for name, parameters in declared.items():
        if name not in unused:
            assert len(FALLIBLE[name]) == parameters.count(","), name


def refused(what: str, *attempts: Callable[[], object]) -> None:
    for attempt in attempts:
        with pytest.raises(ClosedError, match=f"{what} was closed"):
            attempt()


def test_closed(runtime: Runtime, home: Path) -> None:
    box = runtime.create("default")
    execution = box.exec("sleep", "1000", stdin=True)
    execution.close()
    execution.close()
    refused("execution", execution.read, execution.wait, execution.kill, execution.info, lambda: execution.write(b"x"))
    box.remove()
    box.close()
    refused("box", box.info, box.stop, lambda: box.run("true"), lambda: box.read_file("/etc/passwd"))
    other = Runtime.local(home)
    kept = other.create("default")
    other.close()
    other.close()
    refused("runtime", other.boxes, other.images.list, lambda: other.create("default"), kept.remove)
    with pytest.raises(InvalidArgumentError):  # its handle went with the runtime
        kept.info()
    with pytest.raises(NotFoundError):
        runtime.get(kept.id)


def test_the_runtime_is_closed_when_a_call_has_just_made_something(home: Path) -> None:
    runtime = Runtime.local(home)
    made = runtime.make("default", {})
    execution = runtime.create("default").exec("true")
    begun = execution._handle.pointer
    runtime.close()
    with pytest.raises(ClosedError):  # not the end of the process
        Box(runtime, made)
    with pytest.raises(ClosedError):
        library().text("exec_id", begun)


def test_the_runtime_is_closed_while_a_command_starts(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = Runtime.local(home)
    box = runtime.create("default")
    adopt = runtime.adopt

    def late(execution: Execution) -> Execution:
        runtime.close()
        return adopt(execution)

    monkeypatch.setattr(runtime, "adopt", late)
    with pytest.raises(ClosedError):  # not a command whose end is never seen
        box.exec("sleep", "1000")


def test_what_a_closed_runtime_starts_is_killed(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    with Sandbox("default", runtime=runtime) as box:
        monkeypatch.setattr(runtime, "_closed", True)  # its handles are there for a moment longer
        with pytest.raises(ClosedError):
            box.exec("sleep", "1000")
        monkeypatch.undo()
        deadline = time.monotonic() + 60
        while box.execs()[0].status is ExecStatus.RUNNING:
            assert time.monotonic() < deadline
        assert box.execs()[0].status is ExecStatus.CANCELED


def test_removed_by_another(runtime: Runtime) -> None:
    with Sandbox("default", runtime=runtime) as box:
        runtime.remove(box.id, force=True)
        with pytest.raises(NotFoundError):
            box.info()


@pytest.mark.parametrize("end", ["execution", "box", "runtime"])
def test_close_while_another_thread_reads(home: Path, end: str) -> None:
    runtime = Runtime.local(home)
    box = runtime.create("default")
    execution = box.exec("sh", "-c", "echo begun; exec sleep 1000")
    raised: list[BaseException] = []
    begun = threading.Event()

    def read() -> None:
        try:
            for _ in execution:
                begun.set()
            execution.wait()
        except SandboxError as e:
            raised.append(e)

    reader = threading.Thread(target=read)
    reader.start()
    assert begun.wait(10)
    with pytest.raises(InvalidStateError, match="another thread"):
        execution.read()
    {"execution": execution.close, "box": box.remove, "runtime": runtime.close}[end]()
    reader.join(10)
    assert not reader.is_alive() and [type(e) for e in raised] == [CanceledError]
    runtime.close()


def test_a_failed_attach_leaves_the_command(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    execution = box.exec("sh", "-c", "until [ -e /tmp/go ]; do sleep 0.05; done; echo alive")
    execution.detach()

    def fail() -> None:
        raise OSError("no descriptor is left")

    with monkeypatch.context() as patch, pytest.raises(OSError, match="is left"):
        patch.setattr("select.epoll", fail)
        box.attach(execution.id)
    box.write_file("/tmp/go", b"")
    with box.attach(execution.id) as again:
        assert again.read() == (Stream.STDOUT, b"alive\n")


def test_the_main_command_has_no_descriptor(runtime: Runtime) -> None:
    with Sandbox("default", runtime=runtime, command=["sleep", "1000"], network="None") as box:
        execution = box.attach(box.execs()[0].id)
        with pytest.raises(InvalidStateError, match="no descriptors"):
            execution.fileno()
        closer = threading.Timer(0.1, execution.close)
        closer.start()
        with pytest.raises(CanceledError):
            execution.read()
        closer.join()
        refused("execution", execution.read, execution.fileno)


def test_close_while_a_reader_has_its_turn(box: Box) -> None:
    output = box.exec("sleep", "1000").output
    with output.reading():
        output.close()
        with pytest.raises(CanceledError):
            output.ready(None)
        output.fileno()  # raises if it was released while the reader has it
    output.leave()
    with pytest.raises(ClosedError):
        output.read()
    with pytest.raises(ValueError, match="closed"):
        output.fileno()


def test_close_just_before_a_read(box: Box) -> None:
    output = box.exec("sleep", "1000").output
    turn = output.reading()
    output.close()
    with turn, pytest.raises(CanceledError):
        output.ready(None)


def test_threads_share_a_box(box: Box) -> None:
    results: list[str] = []

    def work(number: int) -> None:
        results.append(box.run("cat", input=str(number) * 100000).stdout[-1:])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == list("01234567")


def test_options_of_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="SANDBOX_REST_URL"):
        ClientOptions.from_env()
    monkeypatch.setenv("SANDBOX_REST_URL", "http://127.0.0.1:9090")
    assert ClientOptions.from_env() == ClientOptions("http://127.0.0.1:9090")
    monkeypatch.setenv("SANDBOX_API_KEY", "sbx_live_0123456789abcdef")
    monkeypatch.setenv("SANDBOX_REST_PATH_PREFIX", "team")
    options = ClientOptions.from_env()
    assert options.credential == ApiKeyCredential("sbx_live_0123456789abcdef") and options.path_prefix == "team"
    assert "0123456789" not in repr(options) + str(options.credential) and "def" in repr(options)
    assert "secret" not in repr(Registry("host", password="secret", bearer_token="secret"))
    assert "short" not in repr(ApiKeyCredential("short"))


@pytest.mark.parametrize("file", ["missing", "empty", "another library", "another version"])
def test_wrong_library(tmp_path: Path, file: str) -> None:
    path = tmp_path / "lib.so"
    if file == "empty":
        path.touch()
    elif file != "missing":
        functions = (
            ""
            if file == "another library"
            else "".join(f"int sandbox_{name}(void) {{ return 0; }}" for name in {*FALLIBLE, *INFALLIBLE} - {"version"})
        )
        compile_library(path, functions + 'const char *sandbox_version(void) { return "9.8.7"; }')
    code, stdout, stderr = run(
        f"import os; os.environ['SANDBOX_LIBRARY'] = {str(path)!r}; import libsandbox\n"
        "try: libsandbox.Sandbox('default')\n"
        "except libsandbox.LibraryError as e: print(e.code, e)\n"
    )
    assert (code, stderr) == (0, "") and stdout.startswith("12 ") and str(path) in stdout
    if file == "another version":
        assert "9.8.7" in stdout and libsandbox.__version__ in stdout


def compile_library(path: Path, source: str) -> None:
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(path)], input=source, text=True, check=True)
