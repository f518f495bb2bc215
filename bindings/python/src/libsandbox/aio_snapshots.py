"""Snapshots of the disk of a box for asyncio."""

from __future__ import annotations

from collections.abc import AsyncIterator

from ._calls import acall
from ._documents import Change, Snapshot
from .snapshots import BoxSnapshots


class AsyncBoxSnapshots:
    """The twin of BoxSnapshots, but for clone, which AsyncBox has."""

    _sync: BoxSnapshots

    async def snapshot(self, name: str | None = None) -> Snapshot:
        """See Box.snapshot."""
        return await acall(lambda: self._sync.snapshot(name))

    async def rollback(self, snapshot: str) -> None:
        """See Box.rollback."""
        await acall(lambda: self._sync.rollback(snapshot))

    async def diff(self, since: str | None = None) -> AsyncIterator[Change]:
        """See Box.diff. For async for; it begins when the first change is asked for."""
        pages = self._sync.diff_pages(since)
        more = True
        while more:
            page = await acall(lambda: next(pages, None))
            more = page is not None
            for change in page or ():
                yield change
