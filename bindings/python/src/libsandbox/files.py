"""The files of a box, without their programs: copies, looks, changes and watches."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from . import _check
from ._calls import call, submit
from ._documents import (
    CanceledError,
    FileEvent,
    FileEventType,
    FileInfo,
    InvalidArgumentError,
    InvalidStateError,
    MadeDirectory,
    NotFoundError,
    RemovedFiles,
    TimeoutError,
)
from ._library import Handle, library
from ._progress import reporting
from .options import ProgressFunction

if TYPE_CHECKING:
    from typing_extensions import Self


class BoxFiles:
    """What a box does with its files. It must run, and needs no program for it.

    Paths of the box are absolute. user is whose rights count and who owns what is made: a name
    or an id of the box, with :group if wanted; None is the box's root. All raise NotFoundError,
    InvalidStateError (the box does not run), InvalidArgumentError (a path, a user that there is
    not) and PermissionDeniedError (the user lacks the right).
    """

    def _second(self) -> AbstractContextManager[int]:
        """A handle of its own for a call that takes long."""
        raise NotImplementedError

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
        return FileInfo.parse(self._on_file("file_stat", _check.text("path", path), _check.optional("user", user)))

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
            page = self._on_file("file_list", *given, 0, token, owner)
            yield tuple(map(FileInfo.parse, page["files"]))
            if page["next_page_token"] is None:
                return
            token = page["next_page_token"].encode()

    def make_directory(self, path: str, mode: int = 0o755, user: str | None = None) -> MadeDirectory:
        """Makes a directory, and those missing on the way to it. One that is there is left as it is."""
        bits = _check.integer("mode", mode, 0, 0o7777)
        made = self._on_file("file_make_dir", _check.text("path", path), bits, _check.optional("user", user))
        return MadeDirectory.parse(made)

    def move_file(self, source: str, target: str, user: str | None = None) -> FileInfo:
        """Gives a file another path, which is target itself. Replaces a file, and a directory only if it is empty."""
        paths = _check.text("source", source), _check.text("target", target)
        return FileInfo.parse(self._on_file("file_move", *paths, _check.optional("user", user)))

    def remove_file(self, path: str, recursive: bool = False, user: str | None = None) -> RemovedFiles:
        """Removes a file or a directory; one that is not empty with recursive. Follows no link."""
        tree = int(_check.typed("recursive", recursive, bool))
        removed = self._on_file("file_remove", _check.text("path", path), tree, _check.optional("user", user))
        return RemovedFiles.parse(removed)

    def _on_file(self, name: str, *arguments: object) -> Any:
        with self._second() as pointer:
            return call(lambda: library().json(name, pointer, *arguments))

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


class Watch:
    """A watch of a directory of a box. Iterating yields its events as they come; the last one has the type END.

    One thread at a time reads; close is allowed from others. An event that a read was interrupted
    in, or that came after its timeout, is given to the next read. The end of a with block closes it.
    """

    def __init__(self, pointer: int) -> None:
        self._handle = Handle("watch", pointer, "watch_free")
        self._reading = threading.Lock()
        self._pending: Future[FileEvent] | None = None
        self._ended = False

    def __iter__(self) -> Iterator[FileEvent]:
        while (event := self.read()) is not None:
            yield event

    def read(self, timeout: float | None = None) -> FileEvent | None:
        """Waits for the next event, at most timeout seconds. None is the end, behind the event that says why.

        Raises TimeoutError, CanceledError (closed meanwhile) and UnavailableError (the server).
        """
        limit = None if timeout is None else _check.number("timeout", timeout)
        with self.reading():
            waiting = self.waiting()
            if waiting is None:
                return None
            wait((waiting,), limit)
            return self.take(waiting)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """The time in which one reader uses waiting and take."""
        if not self._reading.acquire(blocking=False):
            raise InvalidStateError("another thread reads this watch: one does at a time")
        try:
            yield
        finally:
            self._reading.release()

    def waiting(self) -> Future[FileEvent] | None:
        """The event that comes next, which may be there already; None behind the last one."""
        if self._ended:
            return None
        if self._pending is None:
            pointer = self._handle.pointer
            self._pending = self._ready(pointer) or submit(lambda: self._next(pointer, -1))
        return self._pending

    def _ready(self, pointer: int) -> Future[FileEvent] | None:
        """An event that has come already, for which no other thread is needed."""
        with suppress(TimeoutError):
            ready: Future[FileEvent] = Future()
            ready.set_result(self._next(pointer, 0))
            return ready
        return None

    @staticmethod
    def _next(pointer: int, timeout: float) -> FileEvent:
        return FileEvent.parse(library().json("watch_read", pointer, timeout))

    def take(self, waiting: Future[FileEvent]) -> FileEvent:
        """The event, if it has come. Else it is left to the next read."""
        if not waiting.done():
            raise TimeoutError("nothing has changed in this time")
        self._pending = None
        try:
            event = waiting.result()
        except InvalidArgumentError:
            raise CanceledError("the watch was closed while it was read") from None
        self._ended = event.type is FileEventType.END
        return event

    def close(self) -> None:
        """Ends the watch. A read that another thread waits in raises CanceledError. A second call does nothing."""
        self._handle.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, at: TracebackType | None) -> None:
        self.close()
