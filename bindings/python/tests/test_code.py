from __future__ import annotations

import asyncio
import base64
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from libsandbox import (
    AsyncRuntime,
    AsyncSandbox,
    Box,
    CanceledError,
    ClosedError,
    CodeEventType,
    CodeStatus,
    ExecutionError,
    InvalidStateError,
    Language,
    NotFoundError,
    ResourceExhaustedError,
    Runtime,
    TimeoutError,
)

from .scripts import Daemon, interrupt

SHOWN = """
class Shown:
    def _repr_mimebundle_(self, **kwargs):
        return {
            "text/plain": "shown", "text/html": "<b>", "image/svg+xml": "<svg/>", "text/latex": "$x$",
            "image/png": b"\\x89PNG", "application/json": {"a": [1, None]}, "application/x-own": {"b": 1},
        }
display(Shown())
6 * 7
"""


@pytest.fixture(scope="module", params=["in process", "on a daemon"])
def runtime(request: pytest.FixtureRequest, home: Path, daemon: Daemon) -> Iterator[Runtime]:
    """Code runs the same in this process and on a daemon."""
    with Runtime.local(home) if request.param == "in process" else Runtime.remote(daemon.socket) as runtime:
        yield runtime


def test_a_whole_run(box: Box) -> None:
    first = box.run_code("import os, sys; print('out'); print('grüße', file=sys.stderr); x = 41", env={"A": "b"})
    assert (first.stdout, first.stderr, first.text, first.results) == ("out\n", "grüße\n", None, ())
    assert (first.context_id, first.execution_count, first.fresh) == ("python", 1, True)
    assert (first.status, first.error, first.restarted) == (CodeStatus.SUCCEEDED, None, False)
    assert first.duration_ms >= 0
    second = box.run_code("x + 1")
    assert (second.text, second.execution_count, second.fresh) == ("42", 2, False)
    assert [(result.is_main, result.text) for result in second.results] == [(True, "42")]


def test_forms_of_results(box: Box) -> None:
    shown, main = box.run_code(SHOWN).results
    assert (shown.is_main, shown.text, shown.html, shown.svg, shown.latex) == (False, "shown", "<b>", "<svg/>", "$x$")
    assert base64.b64decode(shown.png or "") == b"\x89PNG"
    assert shown.json == {"a": [1, None]} and shown.extra == {"application/x-own": {"b": 1}}
    assert (main.is_main, main.text, main.html, main.table) == (True, "42", None, None)


def test_events_as_they_come(box: Box) -> None:
    with box.start_code("print('on', flush=True); input_ = 1\nwhile True: pass") as run:
        begun, printed = run.read(), run.read(timeout=30)
        assert begun is not None and (begun.type, begun.context_id) == (CodeEventType.START, "python")
        assert printed is not None and (printed.type, printed.text) == (CodeEventType.STDOUT, "on\n")
        for late in (0, 0.05):
            with pytest.raises(TimeoutError):
                run.read(timeout=late)
        assert box.interrupt_context("python").id == "python"
        *_, error, end = list(run)
        assert error.error is not None and error.error.name == "KeyboardInterrupt"
        assert (end.type, end.status, end.restarted) == (CodeEventType.END, CodeStatus.INTERRUPTED, False)
        assert run.read() is None
        outcome = run.result()
        assert (outcome.stdout, outcome.status, outcome.context_id) == ("", CodeStatus.INTERRUPTED, "python")


def test_failures_of_code(box: Box) -> None:
    failed = box.run_code("def f(): 1 / 0\nf()")
    assert failed.status is CodeStatus.FAILED and failed.error is not None
    assert (failed.error.name, failed.error.value) == ("ZeroDivisionError", "division by zero")
    assert "f()" in failed.error.traceback
    late = box.run_code("y = 1\nwhile True: pass", timeout=0.3)
    assert (late.status, late.restarted) == (CodeStatus.TIMED_OUT, False)
    assert box.run_code("y").text == "1"
    lost = box.run_code("import os; os._exit(3)")
    assert (lost.status, lost.restarted) == (CodeStatus.LOST, True)
    assert lost.error is not None and lost.error.name == "ContextLost"
    assert box.run_code("'y' in globals()").text == "False"


def test_contexts(box: Box) -> None:
    made = box.create_context(language=Language.BASH, cwd="/tmp", user="nobody", env={"A": "made"})
    assert (made.language, made.working_dir, made.user, made.box_id) == (Language.BASH, "/tmp", "nobody", box.id)
    assert box.contexts()[0] == made
    assert box.run_code("echo $A $B; id -un; B=kept", context=made.id).stdout == "made\nnobody\n"
    assert box.run_code("echo $A $B", context=made.id, env={"A": "run"}).stdout == "run kept\n"
    again = box.restart_context(made.id)
    assert again.id == made.id and again.exec_id != made.exec_id
    assert box.run_code("echo $A $B", context=made.id).stdout == "made\n"
    box.remove_context(made.id)
    for attempt in (box.remove_context, box.interrupt_context, box.restart_context):
        with pytest.raises(NotFoundError, match=made.id):
            attempt(made.id)
    with pytest.raises(NotFoundError, match=made.id):
        box.run_code("echo", context=made.id)
    with pytest.raises(ExecutionError, match="node"):
        box.run_code("1", language="javascript")


def test_too_much_output(box: Box) -> None:
    for code in ("while True: print('x' * 1000)", "while True: display('x' * 1000)"):
        with pytest.raises(ResourceExhaustedError) as failure:
            box.run_code(code, max_output=100_000)
        assert set(failure.value.stdout) <= {"x", "\n"} and len(failure.value.stdout) <= 100_000
        assert box.run_code("1").text == "1"  # it was interrupted


def test_close_while_a_run_is_read(box: Box) -> None:
    run = box.start_code("import time\nwhile True: time.sleep(1)")
    assert run.read() is not None
    raised: list[BaseException] = []

    def read() -> None:
        try:
            run.read()
        except CanceledError as e:
            raised.append(e)

    reader = threading.Thread(target=read)
    reader.start()
    while run._pending is None:
        pass
    with pytest.raises(InvalidStateError, match="another thread"):
        run.read()
    run.close()
    run.close()
    reader.join(10)
    assert [type(e) for e in raised] == [CanceledError]
    with pytest.raises(ClosedError):
        run.read()
    assert box.run_code("1").text == "1"


def test_an_interrupted_run(runtime: Runtime) -> None:
    code, out, err, took = interrupt(
        "from libsandbox import Sandbox\n"
        "with Sandbox('default') as box:\n"
        "    box.run_code('x = 5')\n"
        "    try:\n"
        "        print('ready', flush=True)\n"
        "        box.run_code('while True: pass')\n"
        "    except KeyboardInterrupt:\n"
        "        print(box.run_code('x').text)\n"
    )
    assert (code, out, err) == (0, "5\n", "") and took < 20


def test_asyncio(home: Path) -> None:
    async def main() -> None:
        async with await AsyncRuntime.local(home) as runtime, AsyncSandbox("default", runtime=runtime) as box:
            assert (await box.run_code("x = 20; print('on'); x * 2 + 2")).text == "42"
            async with await box.start_code("print('on'); 1 / 0") as run:
                kinds = [event.type async for event in run]
                assert kinds == [CodeEventType(kind) for kind in ("start", "stdout", "error", "end")]
                assert await run.read() is None
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(box.run_code("while True: pass"), 0.5)
            assert (await box.run_code("x")).text == "20"  # it was interrupted
            run = await box.start_code("import time\nwhile True: time.sleep(1)")
            assert (await run.read()) is not None
            with pytest.raises(TimeoutError):
                await run.read(timeout=0.05)
            assert (await box.interrupt_context("python")).id == "python"
            assert (await run.result()).status is CodeStatus.INTERRUPTED
            made = await box.create_context(cwd="/tmp")
            assert [context.id for context in await box.contexts()] == [made.id, "python"]
            assert (await box.restart_context(made.id)).id == made.id
            await box.remove_context(made.id)
            with pytest.raises(ResourceExhaustedError):
                await box.run_code("print('x' * 1000)", max_output=100)

    asyncio.run(asyncio.wait_for(main(), 60), debug=True)
