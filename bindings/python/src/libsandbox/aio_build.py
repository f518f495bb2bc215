"""Images that are built of recipes, for asyncio."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ._aio_feed import AsyncFeed
from ._calls import acall
from ._documents import BuildEvent, Image
from .build import Build, Builds
from .options import BuildOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack


class AsyncBuild(AsyncFeed[BuildEvent]):
    """The twin of Build. async for yields its events; leaving async with ends a build that goes on."""

    _sync: Build

    def __init__(self, build: Build) -> None:
        self._sync = build

    async def result(self) -> Image:
        """See Build.result."""
        return await acall(self._sync.result)


class AsyncBuilds:
    """The twin of Builds."""

    _sync: Builds

    async def build(self, context: str | os.PathLike[str] | None = None, **options: Unpack[BuildOptions]) -> Image:
        """See Images.build."""
        async with await self.start_build(context, **options) as build:
            return await build.result()

    async def start_build(
        self, context: str | os.PathLike[str] | None = None, **options: Unpack[BuildOptions]
    ) -> AsyncBuild:
        """See Images.start_build."""
        return AsyncBuild(await acall(lambda: self._sync.start_build(context, **options), Build.close))
