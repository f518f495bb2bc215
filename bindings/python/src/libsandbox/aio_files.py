"""The files of a box for asyncio."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator

from ._aio_feed import AsyncFeed
from ._calls import acall
from ._documents import FileEvent, FileInfo, MadeDirectory, RemovedFiles
from .files import BoxFiles, Watch
from .options import ProgressFunction


class AsyncBoxFiles:
    """The twin of BoxFiles."""

    _sync: BoxFiles

    async def copy_in(
        self,
        host_path: str | os.PathLike[str],
        box_path: str,
        progress: ProgressFunction | None = None,
        user: str | None = None,
    ) -> None:
        """See Box.copy_in."""
        await acall(lambda: self._sync.copy_in(host_path, box_path, progress, user))

    async def copy_out(
        self,
        box_path: str,
        host_path: str | os.PathLike[str],
        progress: ProgressFunction | None = None,
        user: str | None = None,
    ) -> None:
        """See Box.copy_out."""
        await acall(lambda: self._sync.copy_out(box_path, host_path, progress, user))

    async def read_file(self, path: str, user: str | None = None) -> bytes:
        """See Box.read_file."""
        return await acall(lambda: self._sync.read_file(path, user))

    async def write_file(self, path: str, data: bytes | str, mode: int = 0o644, user: str | None = None) -> None:
        """See Box.write_file."""
        await acall(lambda: self._sync.write_file(path, data, mode, user))

    async def stat_file(self, path: str, user: str | None = None) -> FileInfo:
        """See Box.stat_file."""
        return await acall(lambda: self._sync.stat_file(path, user))

    async def file_exists(self, path: str, user: str | None = None) -> bool:
        """See Box.file_exists."""
        return await acall(lambda: self._sync.file_exists(path, user))

    async def list_files(self, path: str, depth: int = 1, user: str | None = None) -> AsyncIterator[FileInfo]:
        """See Box.list_files. For async for; it begins when the first file is asked for."""
        pages = self._sync.file_pages(path, depth, user)
        while page := await acall(lambda: next(pages, ())):
            for file in page:
                yield file

    async def make_directory(self, path: str, mode: int = 0o755, user: str | None = None) -> MadeDirectory:
        """See Box.make_directory."""
        return await acall(lambda: self._sync.make_directory(path, mode, user))

    async def move_file(self, source: str, target: str, user: str | None = None) -> FileInfo:
        """See Box.move_file."""
        return await acall(lambda: self._sync.move_file(source, target, user))

    async def remove_file(self, path: str, recursive: bool = False, user: str | None = None) -> RemovedFiles:
        """See Box.remove_file."""
        return await acall(lambda: self._sync.remove_file(path, recursive, user))

    async def watch_files(self, path: str, recursive: bool = False, user: str | None = None) -> AsyncWatch:
        """See Box.watch_files."""
        return AsyncWatch(await acall(lambda: self._sync.watch_files(path, recursive, user), Watch.close))


class AsyncWatch(AsyncFeed[FileEvent]):
    """The twin of Watch. async for yields its events; leaving async with closes it."""

    def __init__(self, watch: Watch) -> None:
        self._sync = watch
