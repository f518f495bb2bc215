"""Events that come one by one, for one reader at a time, who may be interrupted."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from . import _check
from ._calls import Call, one_reader
from ._documents import CanceledError, InvalidArgumentError, TimeoutError
from ._library import Handle, library

if TYPE_CHECKING:
    from typing_extensions import Self

T = TypeVar("T")


class Feed(Generic[T]):
    """Events as they come: iterating yields them.

    One thread at a time reads; close is allowed from others. An event that a read was interrupted
    in, or that came after its timeout, is given to the next read. The end of a with block closes it.
    """

    _what: ClassVar[str]
    """What it is, in messages."""

    _name: ClassVar[str]
    """The beginning of the names of its functions in C."""

    _quiet: ClassVar[str]
    """What is said when nothing came in time."""

    def __init__(self, pointer: int) -> None:
        self._handle = Handle(self._what, pointer, f"{self._name}_free")
        self._reading = threading.Lock()
        self._pending: Call[T] | None = None
        self._ended = False

    @staticmethod
    def _parse(document: Any) -> T:
        """The event of a document."""
        raise NotImplementedError

    def _take(self, event: T) -> bool:
        """Takes notice of an event. Returns whether it is the last one."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[T]:
        while (event := self.read()) is not None:
            yield event

    def read(self, timeout: float | None = None) -> T | None:
        """Waits for the next event, at most timeout seconds. None is the end, behind the event that says why.

        Raises TimeoutError, CanceledError (closed meanwhile) and UnavailableError (the server).
        """
        limit = None if timeout is None else _check.number("timeout", timeout)
        with self.reading():
            waiting = self.waiting()
            if waiting is None:
                return None
            waiting.wait(limit)
            return self.take(waiting)

    def reading(self) -> threading.Lock:
        """What one reader holds while it uses waiting and take."""
        return one_reader(self._reading, f"reads this {self._what}")

    def waiting(self) -> Call[T] | None:
        """The event that comes next, which may be there already; None behind the last one."""
        if self._ended:
            return None
        if self._pending is None:
            pointer = self._handle.pointer
            self._pending = self._ready(pointer) or Call(lambda: self._next(pointer, -1))
        self._pending.start()
        return self._pending

    def _ready(self, pointer: int) -> Call[T] | None:
        """An event that has come already, for which no other thread is needed."""
        with suppress(TimeoutError):
            return Call.of(self._next(pointer, 0))
        return None

    def _next(self, pointer: int, timeout: float) -> T:
        return self._parse(library().json(f"{self._name}_read", pointer, timeout))

    def take(self, waiting: Call[T]) -> T:
        """The event, if it has come. Else it is left to the next read."""
        if not waiting.done:
            raise TimeoutError(self._quiet)
        self._pending = None
        try:
            event = waiting.result()
        except InvalidArgumentError:
            raise CanceledError(f"the {self._what} was closed while it was read") from None
        self._ended = self._take(event)
        return event

    def close(self) -> None:
        """Ends it. A read that another thread waits in raises CanceledError. A second call does nothing."""
        self._handle.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, at: TracebackType | None) -> None:
        self.close()
