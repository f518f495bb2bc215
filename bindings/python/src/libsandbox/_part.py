"""What the parts of a box's interface share."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from ._calls import call
from ._library import library


class BoxPart:
    """A part of what a box does."""

    def _second(self) -> AbstractContextManager[int]:
        """A handle of its own for a call that takes long."""
        raise NotImplementedError

    def _document(self, name: str, *arguments: object) -> Any:
        """Calls a function of the library that answers with a document."""
        with self._second() as pointer:
            return call(lambda: library().json(name, pointer, *arguments))
