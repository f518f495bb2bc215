"""Commands that run in a box."""

from __future__ import annotations

import ctypes
import os
import select
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple

from . import _check
from ._calls import HEED, Call, call, one_reader
from ._documents import (
    CanceledError,
    ExecInfo,
    ExecutionError,
    InvalidStateError,
    ResourceExhaustedError,
    Stream,
)
from ._library import EXIT, STDERR, STDOUT, Handle, library
from ._support import SandboxError
from .errors import ClosedError

if TYPE_CHECKING:
    from .runtime import Runtime

PIECE = 256 << 10  # what a pipe holds after some output
MAX_OUTPUT = 64 << 20
_STREAMS = {STDOUT: Stream.STDOUT, STDERR: Stream.STDERR}


class Piece(NamedTuple):
    """A piece of output, as the command wrote it."""

    stream: Stream
    data: bytes


@dataclass(frozen=True)
class Result:
    """What a command gave that ran to its end."""

    exit_code: int
    """0 to 255; -N if signal N ended the command."""

    stdout_bytes: bytes
    stderr_bytes: bytes

    @property
    def stdout(self) -> str:
        """The output as text. Bytes that are not UTF-8 are U+FFFD."""
        return self.stdout_bytes.decode(errors="replace")

    @property
    def stderr(self) -> str:
        """The same of standard error."""
        return self.stderr_bytes.decode(errors="replace")


class Captured:
    """The output of a command, kept up to a limit a stream."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept = {stream: bytearray() for stream in _STREAMS.values()}

    def add(self, piece: Piece) -> None:
        """Keeps a piece. Raises ResourceExhaustedError if it is too much."""
        kept = self._kept[piece.stream]
        if len(kept) + len(piece.data) > self._limit:
            raise ResourceExhaustedError(f"the command printed more than {self._limit} bytes on {piece.stream}")
        kept += piece.data

    def result(self, exit_code: int) -> Result:
        """The result of a command that ended so."""
        return Result(exit_code, *map(bytes, self._kept.values()))

    def explain(self, error: SandboxError) -> None:
        """Adds what there is of output to a failure."""
        result = self.result(0)
        error.stdout, error.stderr = result.stdout, result.stderr


def payload(data: object) -> bytes:
    """Input for a command: bytes, or text."""
    if isinstance(data, (bytes, bytearray, memoryview)):
        return bytes(data)
    return bytes(_check.typed("data", data, str, bytes).encode())


class _Scratch(threading.local):
    """A buffer for the pieces that a thread reads."""

    def __init__(self) -> None:
        # glibc's malloc maps blocks of 128 KiB and more one by one until a larger one is freed (mallopt(3),
        # M_MMAP_THRESHOLD). Pieces in maps of their own come half as fast.
        bytes(4 * PIECE)
        self.buffer = ctypes.create_string_buffer(PIECE)


_scratch = _Scratch()


def _read(pointer: int, length: ctypes.c_size_t, stream: ctypes.c_int) -> Piece | None:
    """Reads a piece, which may wait. None is the end."""
    buffer, out = _scratch.buffer, (ctypes.byref(length), ctypes.byref(stream))
    library().call("exec_read", pointer, buffer, PIECE, *out)
    return Piece(_STREAMS[stream.value], ctypes.string_at(buffer, length.value)) if length.value else None


class Output:
    """The output of an execution: when there is some, and a piece of it.

    One thread at a time uses it. The last one to leave after close releases the handle.
    """

    pending: Call[Piece | None] | None = None
    """A read that a worker makes, where there is no descriptor to wait for."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._reading = threading.Lock()
        self._closed = self.ended = False
        self._length, self._stream = ctypes.c_size_t(), ctypes.c_int()

    def fileno(self) -> int:
        """The descriptor that is readable when ready says so. Raises InvalidStateError where there is none."""
        raise NotImplementedError

    def reading(self) -> threading.Lock:
        """What one reader holds while it uses ready and piece. It calls leave afterwards."""
        if self._closed:
            raise ClosedError("this execution was closed")
        return one_reader(self._reading, "reads this execution or waits for its end")

    def ready(self, timeout: float | None) -> bool:
        """Waits until there is a piece, or the end. Only the library knows which."""
        raise NotImplementedError

    @property
    def lingers(self) -> bool:
        """Whether piece may wait: the command has ended, and a child that it left may hold its output."""
        return False

    def _check_open(self) -> None:
        if self._closed:
            raise CanceledError("the execution was closed while it was read")

    def piece(self) -> Piece | None:
        """Reads what ready has seen. None is the end. Where the output lingers, it may wait 200 ms."""
        piece = None if self.ended else self._take()
        self.ended = piece is None
        return piece

    def _take(self) -> Piece | None:
        return _read(self._handle.pointer, self._length, self._stream)

    def read(self) -> Piece | None:
        """Waits for a piece and reads it. None is the end."""
        try:
            with self.reading():
                while not self.ended:
                    if self.ready(HEED):
                        return self.piece()
                return None
        finally:
            self.leave()

    def close(self) -> None:
        """Ends the use, and a read that another thread waits in. A forked child shares the epoll with its parent."""
        library().check()
        self._closed = True
        self._wake()
        self.leave()

    def _wake(self) -> None:
        """Ends the wait of a reader."""
        raise NotImplementedError

    def leave(self) -> None:
        """Releases what the output has, if it was closed and nobody reads. Who comes later sees that it was closed."""
        if self._closed and not self._reading.locked():
            self._release()

    def _release(self) -> None:
        self._handle.close()


class PolledOutput(Output):
    """Output that is waited for on the descriptors of the command.

    What waits is one epoll descriptor over these, in Python, so that signals come through and asyncio
    can wait for it. The C library reads: it knows when the output of a command has ended.
    """

    def __init__(self, handle: Handle, exit_fd: int) -> None:
        super().__init__(handle)
        self._epoll = select.epoll()
        self._exit, self.exited = exit_fd, False
        self._open: list[int] = []  # the streams whose end has not been seen
        for stream in (STDOUT, STDERR):
            with suppress(InvalidStateError):  # a terminal has no stderr
                self._open.append(library().integer("exec_fd", handle.pointer, stream))
        self._terminal = len(self._open) == 1
        for fd in (*self._open, exit_fd):
            self._epoll.register(fd, select.EPOLLIN)

    def fileno(self) -> int:
        """See Output.fileno."""
        return self._epoll.fileno()

    def ready(self, timeout: float | None) -> bool:
        """See Output.ready. A stream that has ended is not waited for any more; it also ends where a server is lost."""
        self._check_open()
        readable = self.exited
        for fd, events in () if readable else self._epoll.poll(timeout, 4):
            self._check_open()
            if fd == self._exit:
                self.exited = readable = True
            elif events & select.EPOLLIN:
                readable = True
            else:
                self._epoll.unregister(fd)
                self._open.remove(fd)
        return readable

    @property
    def lingers(self) -> bool:
        """See Output.lingers."""
        return self.exited and (self._terminal or bool(self._open))

    def _wake(self) -> None:
        with suppress(ValueError, FileExistsError):  # closed already, or by two at once
            self._epoll.register(_always_readable(), select.EPOLLIN)

    def _release(self) -> None:
        self._epoll.close()
        super()._release()


class KeptOutput(Output):
    """Output without descriptors: the home keeps what the main command of a box of this process prints.

    A worker reads it. A piece that a read was interrupted in is given to the next one.
    """

    def fileno(self) -> int:
        """Raises InvalidStateError, as the library says it."""
        return library().integer("exec_fd", self._handle.pointer, EXIT)

    def ready(self, timeout: float | None) -> bool:
        """See Output.ready."""
        self._check_open()
        if self.pending is None:
            self.pending = Call(partial(_read, self._handle.pointer, self._length, self._stream))
        self.pending.start()
        self.pending.wait(timeout)
        self._check_open()
        return self.pending.done

    def _take(self) -> Piece | None:
        assert self.pending is not None  # ready has seen it
        try:
            return self.pending.result()
        finally:
            self.pending = None

    def _wake(self) -> None:
        self._handle.close()  # ends the read of the worker


def _output(handle: Handle) -> Output:
    """The output of an execution, as its command has descriptors or not."""
    try:
        exit_fd = library().integer("exec_fd", handle.pointer, EXIT)
    except InvalidStateError:
        return KeptOutput(handle)
    return PolledOutput(handle, exit_fd)


_readable: list[int] = []


def _always_readable() -> int:
    """A descriptor that wakes every epoll that it is added to. The process has one."""
    if not _readable:
        _readable.append(os.eventfd(1, os.EFD_CLOEXEC))
    return _readable[0]


class Execution:
    """A command that runs in a box. Iterating yields its output, piece by piece, as it comes.

    One thread at a time reads or waits; writing, signals and close are allowed from others
    meanwhile. At the end of a with block a command that still runs is killed.
    """

    def __init__(self, runtime: Runtime, pointer: int) -> None:
        self._runtime = runtime  # keeps it open
        self._handle = Handle("execution", pointer, "exec_free")
        self.output = _output(self._handle)
        self.id = library().text("exec_id", pointer)

    def info(self) -> ExecInfo:
        """The record of the command."""
        return call(lambda: ExecInfo.parse(library().json("exec_info", self._handle.pointer)))

    def __iter__(self) -> Iterator[Piece]:
        while (piece := self.read()) is not None:
            yield piece

    def read(self) -> Piece | None:
        """Waits for a piece of output. None is the end."""
        return self.output.read()

    def fileno(self) -> int:
        """A descriptor for select, poll and epoll, which is readable when read would not wait long.

        Raises InvalidStateError (the main command of a box of this process, which has none).
        """
        return self.output.fileno()

    def wait(self) -> int:
        """Drops what has not been read, waits for the end and returns the exit code, which is -N after signal N.

        Raises ExecutionError (it could not be started), TimeoutError and CanceledError (it was
        killed, or its box stopped).
        """
        while self.read() is not None:
            pass
        code = ctypes.c_int()
        try:
            library().call("exec_wait", self._handle.pointer, ctypes.byref(code))
        except ExecutionError as e:
            e.exit_code = code.value
            raise
        return code.value

    def communicate(self, input: bytes | str | None = None, max_output: int = MAX_OUTPUT) -> Result:
        """Writes the input and ends it, reads all output and waits. A failure has the output until then."""
        if input is not None:
            data = payload(input)
            Call(lambda: self._feed(data)).start()
        captured = Captured(max_output)
        try:
            for piece in self:
                captured.add(piece)
            return captured.result(self.wait())
        except SandboxError as e:
            captured.explain(e)
            raise

    def _feed(self, data: bytes) -> None:
        with suppress(SandboxError):  # the command need not read it
            self._write(data)
            self._close_stdin()

    def write(self, data: bytes | str) -> None:
        """Writes to the input, or types on the terminal. Returns when the command's pipe has taken all."""
        encoded = payload(data)
        call(lambda: self._write(encoded))

    def _write(self, data: bytes) -> None:
        library().call("exec_write_stdin", self._handle.pointer, data, len(data))

    def close_stdin(self) -> None:
        """Ends the input. A second call does nothing."""
        call(self._close_stdin)

    def _close_stdin(self) -> None:
        library().call("exec_close_stdin", self._handle.pointer)

    def kill(self, grace: float = 2) -> None:
        """Ends the command and all that it started: SIGTERM, and SIGKILL after grace seconds. Does not wait."""
        seconds = _check.number("grace", grace)
        call(lambda: library().call("exec_kill", self._handle.pointer, seconds))

    def signal(self, number: int) -> None:
        """Sends a signal, such as signal.SIGINT, to the command's own process."""
        value = _check.integer("number", number)
        call(lambda: library().call("exec_signal", self._handle.pointer, value))

    def resize(self, cols: int, rows: int) -> None:
        """Sets the size of the terminal."""
        size = _check.integer("cols", cols), _check.integer("rows", rows)
        call(lambda: library().call("exec_resize", self._handle.pointer, *size))

    def detach(self) -> None:
        """Leaves the command, and its output that was not read yet, to the next Box.attach, and closes this."""
        call(self._detach)

    def _detach(self) -> None:
        try:
            library().call("exec_detach", self._handle.pointer)
        finally:  # the library has released the handle, also where a server could not be told
            self.close()

    def close(self) -> None:
        """Ends the use of the command, which goes on. A read that another thread waits in raises CanceledError."""
        self.output.close()

    def __enter__(self) -> Execution:
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, at: TracebackType | None) -> None:
        self.end()

    def end(self) -> None:
        """Kills the command if it has not ended, and closes."""
        try:
            if not self.output.ended:
                with suppress(SandboxError):  # it has ended meanwhile, or its box has
                    self.kill(0)
        finally:
            self.close()
