"""Progress functions, called from C."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ._library import ProgressCallback
from .errors import ArgumentTypeError
from .options import Progress, ProgressFunction


@contextmanager
def reporting(progress: ProgressFunction | None) -> Iterator[Any]:
    """A C callback that tells progress. What that raises is raised at the end: C can't stop for it."""
    if progress is not None and not callable(progress):
        raise ArgumentTypeError(f"progress must be callable, not {type(progress).__name__}")
    raised: list[BaseException] = []

    def tell(pointer: Any, _: object) -> None:
        record = pointer.contents
        total = record.total if record.total >= 0 else None
        try:
            if progress is not None and not raised:
                progress(Progress(record.stage.decode(), record.part, record.parts, record.done, total))
        except BaseException as e:
            raised.append(e)

    yield ProgressCallback(tell) if progress else ProgressCallback()
    if raised:
        raise raised[0]
