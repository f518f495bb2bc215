"""The files of a box, without their programs: copies, looks, changes and watches."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from . import _check
from ._calls import call
from ._documents import (
    FileEvent,
    FileEventType,
    FileInfo,
    InvalidArgumentError,
    MadeDirectory,
    NotFoundError,
    RemovedFiles,
)
from ._feed import Feed
from ._library import library
from ._part import BoxPart
from ._progress import reporting
from .options import ProgressFunction


class BoxFiles(BoxPart):
    """What a box does with its files. It must run, and needs no program for it.

    Paths of the box are absolute. user is whose rights count and who owns what is made: a name
    or an id of the box, with :group if wanted; None is the box's root. All raise NotFoundError,
    InvalidStateError (the box does not run), InvalidArgumentError (a path, a user that there is
    not) and PermissionDeniedError (the user lacks the right).
    """

    def copy_in(
        self,
        host_path: str | os.PathLike[str],
        box_path: str,
        progress: ProgressFunction | None = None,
        user: str | None = None,
    ) -> None:
        """Copies a file or directory of this host into the box, as cp -r does. progress runs on another thread."""
        self._copy("copy_in", _check.path("host_path", host_path), _check.text("box_path", box_path), progress, user)

    def copy_out(
        self,
        box_path: str,
        host_path: str | os.PathLike[str],
        progress: ProgressFunction | None = None,
        user: str | None = None,
    ) -> None:
        """The other way. What is made belongs to this process's user; nothing is made outside of host_path."""
        self._copy("copy_out", _check.text("box_path", box_path), _check.path("host_path", host_path), progress, user)

    def _copy(
        self, name: str, source: bytes, target: bytes, progress: ProgressFunction | None, user: str | None
    ) -> None:
        owner = _check.optional("user", user)
        with self._second() as pointer, reporting(progress) as callback:
            call(lambda: library().call(name, pointer, source, target, owner, callback, None))

    def read_file(self, path: str, user: str | None = None) -> bytes:
        """The content of a file of the box."""
        with tempfile.TemporaryDirectory() as directory:
            copy = Path(directory, "file")
            self.copy_out(path, copy, user=user)
            try:  # a link must not lead to a file of this host
                with os.fdopen(os.open(copy, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
                    return file.read()
            except OSError:
                raise InvalidArgumentError(f"{path} is not a file") from None

    def write_file(self, path: str, data: bytes | str, mode: int = 0o644, user: str | None = None) -> None:
        """Makes or replaces a file of the box. Missing directories are made."""
        content = _check.typed("data", data, bytes, str)
        with tempfile.TemporaryDirectory() as directory:
            copy = Path(directory, Path(_check.text("path", path).decode()).name or "file")
            copy.write_bytes(content.encode() if isinstance(content, str) else content)
            copy.chmod(_check.integer("mode", mode, 0, 0o777))
            self.copy_in(copy, path, user=user)

    def stat_file(self, path: str, user: str | None = None) -> FileInfo:
        """A file without its content. A link that the path leads to is not followed."""
        return FileInfo.parse(self._document("file_stat", _check.text("path", path), _check.optional("user", user)))

    def file_exists(self, path: str, user: str | None = None) -> bool:
        """Whether there is a file of any type, a link that leads nowhere too."""
        given = _check.text("path", path), _check.optional("user", user)
        with self._second() as pointer:  # of a box that is gone, this raises NotFoundError
            try:
                call(lambda: library().json("file_stat", pointer, *given))
            except NotFoundError:
                return False
            return True

    def list_files(self, path: str, depth: int = 1, user: str | None = None) -> Iterator[FileInfo]:
        """The files below a directory, in the order of their paths: what is in a directory comes right behind it.

        depth is how many levels of directories are listed, 1 to 64. Links below the directory are
        not followed. Files are asked for when they are needed, up to 10,000 at once: the first one
        raises what is wrong.
        """
        return chain.from_iterable(self.file_pages(path, depth, user))

    def file_pages(self, path: str, depth: int, user: str | None) -> Iterator[tuple[FileInfo, ...]]:
        """The same, page by page."""
        given = _check.text("path", path), _check.integer("depth", depth, 1, 64)
        owner, token = _check.optional("user", user), None
        while True:
            page = self._document("file_list", *given, 0, token, owner)
            yield tuple(map(FileInfo.parse, page["files"]))
            if page["next_page_token"] is None:
                return
            token = page["next_page_token"].encode()

    def make_directory(self, path: str, mode: int = 0o755, user: str | None = None) -> MadeDirectory:
        """Makes a directory, and those missing on the way to it. One that is there is left as it is."""
        bits = _check.integer("mode", mode, 0, 0o7777)
        made = self._document("file_make_dir", _check.text("path", path), bits, _check.optional("user", user))
        return MadeDirectory.parse(made)

    def move_file(self, source: str, target: str, user: str | None = None) -> FileInfo:
        """Gives a file another path, which is target itself. Replaces a file, and a directory only if it is empty."""
        paths = _check.text("source", source), _check.text("target", target)
        return FileInfo.parse(self._document("file_move", *paths, _check.optional("user", user)))

    def remove_file(self, path: str, recursive: bool = False, user: str | None = None) -> RemovedFiles:
        """Removes a file or a directory; one that is not empty with recursive. Follows no link."""
        tree = int(_check.typed("recursive", recursive, bool))
        removed = self._document("file_remove", _check.text("path", path), tree, _check.optional("user", user))
        return RemovedFiles.parse(removed)

    def watch_files(self, path: str, recursive: bool = False, user: str | None = None) -> Watch:
        """Watches a directory, and with recursive all below it. It returns when the watch stands.

        Raises ResourceExhaustedError too: the box has as many watches as it may have.
        """
        tree = int(_check.typed("recursive", recursive, bool))
        given = _check.text("path", path), tree, _check.optional("user", user)
        with self._second() as pointer:
            made = call(
                lambda: library().handle("watch_start", pointer, *given),
                lambda late: library().free("watch_free", late),
            )
        return Watch(made)


class Watch(Feed[FileEvent]):
    """A watch of a directory of a box. Iterating yields its events as they come; the last one has the type END.

    One thread at a time reads; close is allowed from others. An event that a read was interrupted
    in, or that came after its timeout, is given to the next read. The end of a with block closes it.
    """

    _what = _name = "watch"
    _quiet = "nothing has changed in this time"
    _parse = staticmethod(FileEvent.parse)

    def _take(self, event: FileEvent) -> bool:
        return event.type is FileEventType.END
