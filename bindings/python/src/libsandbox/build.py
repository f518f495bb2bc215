"""Images that are built of recipes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from . import _check
from ._calls import call
from ._documents import BuildEvent, BuildEventType, Image
from ._feed import Feed
from ._library import library
from .options import BuildOptions, build_document

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Build(Feed[BuildEvent]):
    """A build of an image. Iterating yields its events; the last has the type END, with the image or the error.

    One thread at a time reads; close is allowed from others. While nobody reads or waits, the build
    waits. The end of a with block closes it, which ends a build that goes on: what its steps have
    made stays for the next one.
    """

    _what, _name = "build", "build"
    _quiet = "the build has told nothing in this time"
    _parse = staticmethod(BuildEvent.parse)

    def _take(self, event: BuildEvent) -> bool:
        return event.type is BuildEventType.END

    def result(self) -> Image:
        """Waits for the end, and returns the image. What was not read is dropped.

        Raises why the build failed: InvalidArgumentError (the recipe), NotFoundError (a file to be
        copied), ImageError (a base image; a command that failed), TimeoutError (a command that took
        too long), and what making a box raises.
        """
        return Image.parse(call(lambda: library().json("build_wait", self._handle.pointer)))

    def close(self) -> None:
        """Ends a build that goes on. A read that another thread waits in raises CanceledError."""
        call(super().close)


class Builds:
    """What builds images."""

    def _pointer(self) -> int:
        raise NotImplementedError

    def build(self, context: str | os.PathLike[str] | None = None, **options: Unpack[BuildOptions]) -> Image:
        """Builds an image of a recipe, and of the files of a directory of this host. BuildOptions has the options.

        Raises what start_build and Build.result do.
        """
        with self.start_build(context, **options) as build:
            return build.result()

    def start_build(self, context: str | os.PathLike[str] | None = None, **options: Unpack[BuildOptions]) -> Build:
        """Begins a build. The recipe is read before it returns.

        Raises InvalidArgumentError (the recipe, with all that is wrong by its line; the context).
        """
        directory = None if context is None else _check.path("context", context)
        document, pointer = build_document(directory, options), self._pointer()
        return Build(
            call(
                lambda: library().handle("build_start", pointer, document),
                lambda late: library().free("build_free", late),
            )
        )
