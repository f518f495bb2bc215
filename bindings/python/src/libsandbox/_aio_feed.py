"""Events that come one by one, for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Generic, TypeVar

from ._calls import acall
from ._closing import Closing
from ._feed import Feed

T = TypeVar("T")


class AsyncFeed(Closing, Generic[T]):
    """Events as they come. async for yields them; leaving async with closes it."""

    _sync: Feed[T]

    async def __aiter__(self) -> AsyncIterator[T]:
        while (event := await self.read()) is not None:
            yield event

    async def read(self, timeout: float | None = None) -> T | None:
        """See Watch.read. An event that comes after a cancellation is given to the next read."""
        with self._sync.reading():
            waiting = self._sync.waiting()
            if waiting is None:
                return None
            with suppress(asyncio.TimeoutError):  # take says it
                await asyncio.wait_for(waiting.ready(), timeout)
            return self._sync.take(waiting)

    async def close(self) -> None:
        """See Watch.close."""
        await acall(self._sync.close)
