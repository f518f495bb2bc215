"""A box: its life, its commands and its files."""

from __future__ import annotations

import ctypes
import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any

from . import _check
from ._calls import call
from ._documents import BoxInfo, BoxMetrics, BoxSeries, ExecInfo, InvalidArgumentError, Port
from ._library import Command, Handle, TerminalSize, library
from ._support import SandboxError
from .code import BoxCode
from .execution import MAX_OUTPUT, Execution, Result, payload
from .files import BoxFiles
from .options import BoxChanges, ExecOptions, Terminal, changes_document, known
from .ports import BoxPorts
from .snapshots import BoxSnapshots

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from .runtime import Runtime


class Box(BoxFiles, BoxPorts, BoxCode, BoxSnapshots):
    """A box of a runtime. Threads may share it.

    Leaving a with block closes it, which leaves the box as it is; a Sandbox removes its box.
    """

    def __init__(self, runtime: Runtime, pointer: int) -> None:
        self._runtime = runtime  # also keeps it open
        self._handle = Handle("box", pointer, "box_free")
        self._lock = threading.RLock()  # C lets one thread at a time use a handle
        self.id = library().text("box_id", pointer)

    def info(self) -> BoxInfo:
        """The box as it is now."""
        return BoxInfo.parse(self._json("box_info"))

    def metrics(self) -> BoxMetrics:
        """What is measured of the box."""
        return BoxMetrics.parse(self._json("box_metrics"))

    def metrics_series(
        self, since: datetime | str | None = None, until: datetime | str | None = None, step: int | None = None
    ) -> BoxSeries:
        """What the box of a daemon used over time, from an hour ago until now if nothing is said.

        A time is a datetime, RFC 3339, or how long ago, such as "90m". step is in seconds; None is as short as the
        daemon has it. Raises UnsupportedError (a box of this process), UnavailableError (the daemon keeps nothing).
        """
        times = _check.moment("since", since), _check.moment("until", until)
        seconds = 0 if step is None else _check.integer("step", step, low=1)
        return BoxSeries.parse(self._document("box_metrics_series", *times, seconds))

    @property
    def ports(self) -> tuple[Port, ...]:
        """The published ports, with the numbers that were chosen on the host."""
        return self.info().ports

    def execs(self) -> list[ExecInfo]:
        """The last 1,024 commands of the box, the newest first."""
        return [ExecInfo.parse(document) for document in self._json("exec_list")]

    def _json(self, name: str) -> Any:
        with self._lock:
            return call(lambda: library().json(name, self._handle.pointer))

    def start(self) -> None:
        """Starts the box after a stop. Its disk is as it was."""
        with self._second() as pointer:
            call(lambda: library().call("start_box", pointer))

    def stop(self) -> None:
        """Stops the box: SIGTERM to all in it, SIGKILL after 10 seconds. One with auto_remove is gone then."""
        with self._second() as pointer:
            call(lambda: library().call("stop_box", pointer))

    def pause(self, reclaim: bool = False) -> None:
        """Has all processes of the box stand still, until resume. Their timeouts wait, their readers too.

        With reclaim, the kernel takes back what it can of the box's memory. Raises TimeoutError (a process waits
        in the kernel, as for a disk), UnsupportedError (reclaim, where the kernel can't).
        """
        given = int(_check.typed("reclaim", reclaim, bool))
        with self._second() as pointer:
            call(lambda: library().call("pause_box", pointer, given))

    def resume(self) -> None:
        """Lets the processes of a paused box go on."""
        with self._second() as pointer:
            call(lambda: library().call("resume_box", pointer))

    def update(self, **changes: Unpack[BoxChanges]) -> None:
        """Changes how long the box lives. BoxChanges has what can be changed."""
        document = changes_document(changes)
        with self._second() as pointer:
            call(lambda: library().call("update_box", pointer, document))

    def remove(self, force: bool = True) -> None:
        """Removes the box and closes this. One that runs is removed only with force."""
        self._runtime.remove(self.id, force=force)
        self._handle.close()

    @contextmanager
    def _second(self) -> Iterator[int]:
        """A handle of its own for a call that takes long, so that other threads can use the box meanwhile."""
        runtime, box_id = self._handle.pointer and self._runtime.pointer, self.id.encode()
        free = library().free
        pointer = call(lambda: library().handle("get", runtime, box_id), lambda got: free("box_free", got))
        try:
            yield pointer
        finally:
            free("box_free", pointer)

    def run(
        self, *argv: str, input: bytes | str | None = None, max_output: int = MAX_OUTPUT, **options: Unpack[ExecOptions]
    ) -> Result:
        """Runs a command to its end and returns its exit code and output.

        argv is the command and its arguments; there is no shell. ExecOptions has the options. A
        command whose run raises, or is interrupted, is killed. Raises ExecutionError (it can't be
        started), TimeoutError, CanceledError (the box was stopped), ResourceExhaustedError (more
        than max_output bytes on a stream).
        """
        limit = _check.integer("max_output", max_output, 0, sys.maxsize)
        data = None if input is None else payload(input)
        with self.exec(*argv, stdin=data is not None, **options) as execution:
            return execution.communicate(data, limit)

    def exec(
        self, *argv: str, stdin: bool = False, terminal: Terminal | None = None, **options: Unpack[ExecOptions]
    ) -> Execution:
        """Starts a command. With stdin its input is open for write; with a terminal it always is."""
        command, size = _command(argv, options), _size(terminal)
        opened = int(_check.typed("stdin", stdin, bool))
        return self._execution(_kill, "exec_start", ctypes.byref(command), opened, size and ctypes.byref(size))

    def attach(self, exec_id: str) -> Execution:
        """Takes over a command that its reader has detached from, or whose reader's process has ended."""
        return self._execution(_detach, "exec_attach", _check.text("exec_id", exec_id))

    def _execution(self, undo: Callable[[int], object], name: str, *arguments: object) -> Execution:
        """Starts or takes over a command. That takes a millisecond: handing it to another thread would add a third.

        If it is interrupted, or fails when the command is there, undo gets that.
        """
        out = ctypes.c_void_p()
        try:
            with self._lock:
                library().call(name, self._handle.pointer, *arguments, ctypes.byref(out))
            return self._runtime.adopt(Execution(self._runtime, out.value or 0))
        except BaseException:  # an interrupt, too, that came during the call
            if out.value:
                with suppress(SandboxError):  # it has ended
                    undo(out.value)
                library().free("exec_free", out.value)
            raise

    def close(self) -> None:
        """Ends the use of the box, which stays as it is. A second call does nothing."""
        self._handle.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def _command(argv: tuple[str, ...], options: ExecOptions) -> Command:
    if not argv:
        raise InvalidArgumentError("argv is empty: give the command and its arguments")
    given = known(options, ExecOptions, "commands")
    env = _check.pairs("env", given.get("env", {}))
    return Command(
        command=_check.text("argv[0]", argv[0]),
        args_json=_check.texts("argv", argv[1:]),
        env_json=json.dumps(env).encode() if env else None,
        workdir=_check.optional("cwd", given.get("cwd")),
        user=_check.optional("user", given.get("user")),
        timeout_secs=_check.number("timeout", given["timeout"], low=1e-9) if "timeout" in given else 0,
    )


def _size(terminal: Terminal | None) -> TerminalSize | None:
    if terminal is None:
        return None
    size: Terminal = _check.typed("terminal", terminal, Terminal)
    return TerminalSize(_check.integer("cols", size.cols), _check.integer("rows", size.rows))


def _kill(pointer: int) -> None:
    """Ends a command whose start was interrupted."""
    library().call("exec_kill", pointer, 0)


def _detach(pointer: int) -> None:
    """Leaves a command that was there before to the next attach."""
    library().call("exec_detach", pointer)
