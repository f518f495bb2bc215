"""Calls that may wait, made so that their caller can be interrupted.

A C function that waits does not return when a signal comes, so Python could not raise
KeyboardInterrupt before its end. The main thread therefore lets another thread make the
call and waits for that; asyncio does the same. Other threads get no signals and call
directly.
"""

from __future__ import annotations

import asyncio
import atexit
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from ._library import library
from ._support import SandboxError

T = TypeVar("T")

# How long the main thread waits at once, in seconds. Python looks at signals between two
# instructions, so one that comes when the wait has just begun would be heeded at its end only.
HEED = 0.2


class _Workers:
    """Threads that make calls for others. There is one for each call that waits; idle ones are used again."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = queue.SimpleQueue()
        self._idle = threading.Semaphore(0)

    def submit(self, do: Callable[[], T]) -> Future[T]:
        """Has a worker call do. In a forked child, which has no workers, it raises ForkedError."""
        library().check()
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()  # a call that has begun can't be taken back
        self._jobs.put((future, do))
        if not self._idle.acquire(blocking=False):
            threading.Thread(target=self._work, name="libsandbox", daemon=True).start()
        return future

    def _work(self) -> None:
        while True:
            self._job()
            self._idle.release()

    def _job(self) -> None:
        future, do = self._jobs.get()
        try:
            future.set_result(do())
        except BaseException as e:
            future.set_exception(e)


_workers = _Workers()
submit = _workers.submit


def call(do: Callable[[], T], undo: Callable[[T], object] | None = None) -> T:
    """Returns what do returns. If the caller is interrupted meanwhile, undo gets the result when it is there."""
    if threading.current_thread() is not threading.main_thread():
        return do()
    future = submit(do)
    ended = threading.Lock()
    ended.acquire()
    try:
        future.add_done_callback(lambda _: ended.release())
        # Not future.result(), whose Condition raises RuntimeError when it is interrupted in between.
        while not ended.acquire(timeout=HEED):
            pass
        return future.result()
    except BaseException:
        _undo(future, undo)
        raise


async def acall(do: Callable[[], T], undo: Callable[[T], object] | None = None) -> T:
    """The same for asyncio, where a task is interrupted by its cancellation."""
    future = submit(do)
    try:
        return await asyncio.wrap_future(future)
    except BaseException:
        _undo(future, undo)
        raise


def _undo(future: Future[T], undo: Callable[[T], object] | None) -> None:
    if undo is None:
        return
    undone = threading.Event()

    def after(ended: Future[T]) -> None:
        try:
            if ended.exception() is None:
                with suppress(SandboxError):  # nobody is there to be told
                    undo(ended.result())
        finally:
            undone.set()
            atexit.unregister(undone.wait)

    atexit.register(undone.wait, 5)  # runs before the runtimes are closed
    future.add_done_callback(after)
