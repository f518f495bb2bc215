"""Calls that may wait, made so that their caller can be interrupted.

A C function that waits does not return when a signal comes, so Python could not raise
KeyboardInterrupt before its end. The main thread therefore lets another thread make the
call and waits for that; asyncio does the same. Other threads get no signals and call
directly.

Python raises KeyboardInterrupt between two instructions, also in the middle of the
standard library, where it leaves a lock of Condition, Semaphore or Future held for ever.
What the main thread shares with the workers is therefore written in C, as Lock and
SimpleQueue are, and each step that must not be lost is a single call of it. A lock that
is held for some time is given to with itself, which takes and releases it in C.
"""

from __future__ import annotations

import asyncio
import atexit
import math
import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

from ._documents import InvalidStateError
from ._library import library
from ._support import SandboxError

T = TypeVar("T")

# How long a thread waits at once, in seconds. Python looks at signals between two
# instructions, so one that comes when the wait has just begun would be heeded at its end only.
HEED = 0.2


class _Workers:
    """Threads that do work for others. There is one for each work that waits; idle ones are used again."""

    def __init__(self) -> None:
        self._work: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._idle: queue.SimpleQueue[None] = queue.SimpleQueue()  # an entry for each idle worker

    def run(self, work: Callable[[], None]) -> None:
        """Has a worker do the work, which raises nothing. In a forked child, which has no workers, raises ForkedError.

        There is a worker for it before it is handed over, so work never waits for one: an
        interrupt in between leaves an idle worker that nobody counts.
        """
        library().check()
        try:
            self._idle.get_nowait()
        except queue.Empty:
            threading.Thread(target=self._serve, name="libsandbox", daemon=True).start()
        self._work.put(work)

    def _serve(self) -> None:
        while True:
            self._work.get()()
            self._idle.put(None)


_workers = _Workers()


class Call(Generic[T]):
    """A call of do by a worker. One thread or task uses it, and may be interrupted at any instruction."""

    def __init__(self, do: Callable[[], T]) -> None:
        self._do = do
        self._started = False
        self._begun = threading.Lock()  # taken by the worker, or by abandon before a worker has begun
        self._settled = threading.Lock()  # taken by the worker at the end, or by abandon before it
        self._ended = threading.Lock()  # released at the end
        self._ended.acquire()
        self._wake: Callable[[], object] | None = None
        self._take_back: Callable[[], None] | None = None
        self._results: list[T] = []  # of one call: one, or none where it failed
        self._error: BaseException | None = None
        self.done = False

    @classmethod
    def of(cls, result: T) -> Call[T]:
        """A call that has been made already."""
        made = cls(lambda: result)
        made._started = made.done = True
        made._results.append(result)
        return made

    def start(self) -> None:
        """Hands it to a worker. A second time does nothing, or takes up a start that was interrupted."""
        if not self._started:
            _workers.run(self._make)
            self._started = True

    def wait(self, timeout: float | None = None) -> None:
        """Waits until it is done, at most timeout seconds."""
        end = math.inf if timeout is None else time.monotonic() + timeout
        while not self.done and not self._ended.acquire(timeout=max(0, min(HEED, end - time.monotonic()))):
            if time.monotonic() >= end:
                return

    async def ready(self) -> None:
        """Waits until it is done, for asyncio."""
        loop = asyncio.get_running_loop()
        woken = loop.create_future()
        self._wake = lambda: loop.call_soon_threadsafe(wake, woken)
        if not self.done:
            await woken

    def result(self) -> T:
        """Returns what do returned, or raises what it raised, when it is done."""
        if self._error is not None:
            raise self._error
        return self._results[0]

    def abandon(self, undo: Callable[[T], object] | None) -> None:
        """Gives it up. If a worker has begun it, undo gets the result when it is there."""
        if undo is None or self._error is not None or self._begun.acquire(blocking=False):
            return
        undone = threading.Event()

        def take_back() -> None:
            try:
                for result in self._results:
                    with suppress(SandboxError):  # nobody is there to be told
                        undo(result)
            finally:
                undone.set()
                atexit.unregister(undone.wait)

        atexit.register(undone.wait, 5)  # runs before the runtimes are closed
        self._take_back = take_back
        if not self._settled.acquire(blocking=False):
            _workers.run(take_back)

    def _make(self) -> None:
        if not self._begun.acquire(blocking=False):
            return
        try:
            self._results.append(self._do())
        except BaseException as e:
            self._error = e
        if self._settled.acquire(blocking=False):
            self._end()
        elif self._take_back is not None:
            self._take_back()

    def _end(self) -> None:
        self.done = True
        self._ended.release()
        if self._wake is not None:
            with suppress(RuntimeError):  # the loop has ended
                self._wake()


def wake(ready: asyncio.Future[None]) -> None:
    """Ends the wait for a future, in its loop."""
    if not ready.done():
        ready.set_result(None)


def call(do: Callable[[], T], undo: Callable[[T], object] | None = None) -> T:
    """Returns what do returns. If the caller is interrupted meanwhile, undo gets the result when it is there."""
    if threading.current_thread() is not threading.main_thread():
        return do()
    made = Call(do)
    try:
        made.start()
        made.wait()
        return made.result()
    except BaseException:
        made.abandon(undo)
        raise


async def acall(do: Callable[[], T], undo: Callable[[T], object] | None = None) -> T:
    """The same for asyncio, where a task is interrupted by its cancellation."""
    made = Call(do)
    try:
        made.start()
        await made.ready()
        return made.result()
    except BaseException:
        made.abandon(undo)
        raise


def one_reader(lock: threading.Lock, reads: str) -> threading.Lock:
    """Returns the lock that one reader at a time holds, for with. Raises InvalidStateError if another one holds it.

    reads is what another thread does then. One that comes in the same instant waits for its turn.
    """
    if lock.locked():
        raise InvalidStateError(f"another thread {reads}: one does at a time")
    return lock
