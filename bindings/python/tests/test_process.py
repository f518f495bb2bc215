from __future__ import annotations

import multiprocessing
import pickle
import socket
from pathlib import Path

import pytest

from libsandbox import Box, NotFoundError, Runtime, Sandbox, SandboxError

from .scripts import gone, interrupt, made, run

WITH_BOX = """
from libsandbox import *
import threading
runtime = Runtime.local()
box = Sandbox("default", runtime=runtime)
begun = threading.Event()
def busy():
    try:
        for piece in box.exec("sh", "-c", "echo; sleep 1000"): begun.set()
    except SandboxError: pass
"""


@pytest.mark.parametrize(
    "end",
    [
        "",  # nothing was closed
        "execution = box.exec('sleep', '1000')",
        "threading.Thread(target=busy, daemon=True).start(); begun.wait()",
        "del box, runtime; import gc; gc.collect()",
        "raise SystemExit(0)",
        "box = runtime.create('default')",
    ],
)
def test_exit_with_live_boxes(runtime: Runtime, end: str) -> None:
    before = made(runtime)
    assert run(WITH_BOX + end) == (0, "", "")
    assert made(runtime) == before


def test_an_execution_keeps_what_it_is_of(runtime: Runtime) -> None:
    before = made(runtime)
    command = "Sandbox('default').exec('sh', '-c', 'echo begun; sleep 0.2; echo ended')"
    source = f"from libsandbox import *\nfor piece in {command}: print(piece.data.decode(), end='')"
    assert run(source) == (0, "begun\nended\n", "")
    assert made(runtime) == before


@pytest.mark.parametrize(
    "work",
    [
        "box.run('sleep', '1000')",
        "box.run('sh', '-c', 'cat >/dev/null; sleep 1000', input='x' * (1 << 25))",
        "box.run('sleep', '1000', input='x' * (1 << 20))",
        "box.run('sh', '-c', 'exec >&- 2>&-; sleep 1000')",
        "box.run('yes', max_output=1 << 40)",
        "execution = box.exec('sleep', '1000', stdin=True); execution.write('x' * (1 << 20))",
        "execution = box.exec('sleep', '1000'); execution.wait()",
    ],
)
def test_ctrl_c_during_a_command(runtime: Runtime, work: str) -> None:
    before = made(runtime)
    code, _, stderr, seconds = interrupt(WITH_BOX + f"with box:\n    print('ready', flush=True)\n    {work}\n")
    assert code == -2 and stderr.endswith("KeyboardInterrupt\n"), stderr
    assert seconds < 60 and gone(runtime, before)


@pytest.mark.parametrize("delay", [0.0, 0.01, 0.03, 0.06, 0.1])
def test_ctrl_c_while_boxes_are_made(runtime: Runtime, delay: float) -> None:
    before = made(runtime)
    source = WITH_BOX + "print('ready', flush=True)\nwhile True:\n    with Sandbox('default', runtime=runtime): pass\n"
    code, _, stderr, seconds = interrupt(source, delay)
    assert code == -2 and "KeyboardInterrupt" in stderr and seconds < 60, stderr
    assert gone(runtime, before)


def test_ctrl_c_during_a_pull() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections and never answers
        host = f"127.0.0.1:{silent.getsockname()[1]}"
        code, _, stderr, seconds = interrupt(
            "from libsandbox import *\n"
            f"runtime = Runtime.local(registries=[Registry({host!r}, transport='http')])\n"
            f"print('ready', flush=True)\nruntime.images.pull('{host}/a:1', print)\n"
        )
    assert code == -2 and stderr.endswith("KeyboardInterrupt\n") and seconds < 60


def test_ctrl_c_during_a_copy_with_progress(tmp_path: Path) -> None:
    copy = f"box.copy_out('/big', {str(tmp_path / 'big')!r}, lambda progress: None)"
    code, _, stderr, seconds = interrupt(
        WITH_BOX + f"box.run('truncate', '-s', '3G', '/big')\nwith box:\n    print('ready', flush=True)\n    {copy}\n"
    )
    assert code == -2 and stderr.endswith("KeyboardInterrupt\n") and seconds < 60, (code, stderr)


# What another thread takes does not wake the main thread, as a signal does not that comes just before it waits.
TAKEN_BY_ANOTHER = """
from libsandbox._calls import call
import signal, threading, time
def take(seconds=0):
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)
    time.sleep(seconds)
"""


@pytest.mark.parametrize(
    "wait",
    [
        "call(lambda: take(1000))",
        "execution = box.exec('sleep', '1000')\nthreading.Timer(0.1, take).start()\nexecution.read()",
        "with box.watch_files('/tmp') as watch:\n    threading.Timer(0.1, take).start()\n    watch.read()",
        "with box.watch_files('/tmp') as watch:\n    threading.Timer(0.1, take).start()\n    watch.read(1000)",
    ],
)
def test_ctrl_c_that_does_not_wake_the_main_thread(runtime: Runtime, wait: str) -> None:
    code, _, stderr = run(WITH_BOX + TAKEN_BY_ANOTHER + wait)
    assert code == -2 and stderr.endswith("KeyboardInterrupt\n")


# Python raises KeyboardInterrupt where a function begins and where one of C has returned. Each of
# these places is tried.
AT_EACH_INSTRUCTION = """
import sys, threading, time

def attempt(do, place):
    passed = 0
    def interrupt(frame, event, argument):
        nonlocal passed
        passed += event in ("call", "c_return")
        if passed == place: raise KeyboardInterrupt
    sys.setprofile(interrupt)
    try: return do()
    except KeyboardInterrupt: return None
    finally: sys.setprofile(None)
"""

# What had been made is undone, and later calls are made.
CALLS = """
from libsandbox._calls import call
made, undone = [], []
call(lambda: None)  # loads the library

def settled():
    end = time.monotonic() + 10
    while made != undone and time.monotonic() < end: time.sleep(0.001)
    assert made == undone, (made, undone)
    late = threading.Timer(10, lambda: print("a later call is never made", flush=True))
    late.start()
    call(late.cancel)

for slow in (False, True):
    place = 0
    while True:
        place += 1
        over = threading.Event()
        def make():
            made.append(place)
            if slow: over.wait(0.1)
            return place
        result = attempt(lambda: call(make, undone.append), place)
        over.set()
        if result is not None: break
        settled()
    made.clear(), undone.clear()
    assert place > 10, place
"""


# Events come in their order. One that C has returned just then is lost, as any result can be.
EVENTS = """
from itertools import count
from libsandbox._calls import call
from libsandbox._feed import Feed
call(lambda: None)  # loads the library

class Numbers(Feed):
    _what, _name, _quiet = "feed", "watch", "nothing came"
    def __init__(self):
        super().__init__(None)
        self._numbers = count(1)
    def _ready(self, pointer): return None
    def _next(self, pointer, timeout):
        time.sleep(0.001)
        return next(self._numbers)
    def _take(self, event): return False

numbers, last, place = Numbers(), 0, 0
while True:
    place += 1
    read = attempt(numbers.read, place)
    late = threading.Timer(10, lambda: print("a later read never ends", flush=True))
    late.start()
    event = numbers.read()
    late.cancel()
    assert last < event <= last + 2, (last, event)
    last = event
    if read is not None: break
assert place > 10, place
"""

# Output is read on, and what was closed is released.
OUTPUT = """
place = 0
while True:
    place += 1
    execution = box.exec("yes")
    read = attempt(execution.read, place)
    assert execution.read().data
    execution.kill(0)
    attempt(execution.close, place)
    execution.close()
    assert execution.output._epoll.closed and execution._handle.closed, place
    if read is not None: break
assert place > 10, place
"""


@pytest.mark.parametrize("program", [CALLS, EVENTS, WITH_BOX + OUTPUT], ids=["calls", "events", "output"])
def test_ctrl_c_at_each_instruction(runtime: Runtime, program: str) -> None:
    assert run(AT_EACH_INSTRUCTION + program) == (0, "", "")


def use(box_id: str) -> str:
    with Runtime.local() as runtime, runtime.get(box_id) as box:
        return box.run("echo", "from another process").stdout


def fail(box_id: str) -> None:
    with Runtime.local() as runtime:
        runtime.get(box_id + "x")


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_multiprocessing(box: Box, method: str) -> None:
    with multiprocessing.get_context(method).Pool(1) as pool:
        assert pool.apply(use, [box.id]) == "from another process\n"
        with pytest.raises(NotFoundError, match="x"):
            pool.apply(fail, [box.id])


FORKING = """
def attempt(do):
    try: do(); print("no failure")
    except SandboxError as e: print(type(e).__name__, "spawn" in str(e))
execution = box.exec("echo", "hi")
import os, sys, gc
sys.stdout.flush()
child = os.fork()
if child == 0:
    for do in (box.info, lambda: box.run("true"), lambda: Sandbox("default"), execution.read, execution.kill,
               box.close, execution.close, runtime.close, Runtime.local):
        attempt(do)
    del box, execution, runtime; gc.collect()
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
print(execution.read().data, box.run("echo", "still there").stdout, end="")
"""


def test_fork() -> None:
    code, stdout, stderr = run(WITH_BOX + FORKING)
    assert (code, stderr) == (0, ""), stderr
    *child, last = stdout.splitlines()
    assert last == "b'hi\\n' still there" and set(child) == {"ForkedError True"} and len(child) == 9, stdout


def test_fork_before_the_first_use() -> None:
    source = "import libsandbox, os\nif os.fork() == 0:\n" + "".join(
        f"    {line}\n" for line in (WITH_BOX + "print(box.run('echo', 'hi').stdout)").splitlines()
    )
    code, stdout, _ = run(source + "else: os.wait()")
    assert (code, stdout) == (0, "hi\n\n")


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_nothing_is_left_of_cycles(home: Path) -> None:
    def cycle() -> None:
        with Runtime.local(home) as runtime, Sandbox("default", runtime=runtime) as box:
            assert box.run("cat", input="x").stdout == "x"

    cycle()
    before = descriptors()
    for _ in range(5):
        cycle()
    assert descriptors() <= before


def test_failures_travel(box: Box) -> None:
    with pytest.raises(SandboxError) as failure:
        box.run("no-such-command")
    again = pickle.loads(pickle.dumps(failure.value))
    assert type(again) is type(failure.value) and (again.exit_code, again.message) == (127, failure.value.message)
