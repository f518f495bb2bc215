"""Code in contexts of a box for asyncio."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._aio_feed import AsyncFeed
from ._calls import acall
from ._documents import CodeContext, CodeEvent
from ._support import SandboxError
from .code import BoxCode, CodeOutcome, CodeRun
from .execution import MAX_OUTPUT
from .options import CodeOptions, ContextOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack


class AsyncCodeRun(AsyncFeed[CodeEvent]):
    """The twin of CodeRun. async for yields its events; leaving async with interrupts code that still runs."""

    _sync: CodeRun

    def __init__(self, run: CodeRun) -> None:
        self._sync = run

    async def result(self, max_output: int = MAX_OUTPUT) -> CodeOutcome:
        """See CodeRun.result."""
        gathered = self._sync.gathered(max_output)
        try:
            async for event in self:
                gathered.add(event)
        except SandboxError as e:
            gathered.explain(e)
            raise
        return self._sync.outcome(gathered)


class AsyncBoxCode:
    """The twin of BoxCode."""

    _sync: BoxCode

    async def run_code(self, code: str, *, max_output: int = MAX_OUTPUT, **options: Unpack[CodeOptions]) -> CodeOutcome:
        """See Box.run_code."""
        CodeRun.gathered(max_output)
        async with await self.start_code(code, **options) as run:
            return await run.result(max_output)

    async def start_code(self, code: str, **options: Unpack[CodeOptions]) -> AsyncCodeRun:
        """See Box.start_code."""
        return AsyncCodeRun(await acall(lambda: self._sync.start_code(code, **options), CodeRun.close))

    async def contexts(self) -> list[CodeContext]:
        """See Box.contexts."""
        return await acall(self._sync.contexts)

    async def create_context(self, **options: Unpack[ContextOptions]) -> CodeContext:
        """See Box.create_context."""
        return await acall(lambda: self._sync.create_context(**options))

    async def interrupt_context(self, context_id: str) -> CodeContext:
        """See Box.interrupt_context."""
        return await acall(lambda: self._sync.interrupt_context(context_id))

    async def restart_context(self, context_id: str) -> CodeContext:
        """See Box.restart_context."""
        return await acall(lambda: self._sync.restart_context(context_id))

    async def remove_context(self, context_id: str) -> None:
        """See Box.remove_context."""
        await acall(lambda: self._sync.remove_context(context_id))
