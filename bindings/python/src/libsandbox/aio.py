"""The same for asyncio. What these classes do is said at those that they are twins of.

Calls that may wait are made by other threads; output is waited for by the event loop
itself, on the descriptors. A task that is cancelled while it makes a box or starts a
command leaves neither behind.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING

from ._calls import acall, wake
from ._closing import Closing
from ._documents import (
    BoxInfo,
    BoxMetrics,
    BoxSeries,
    ExecInfo,
    Image,
    Port,
    Pushed,
    RuntimeMetrics,
    Share,
    SnapshotNode,
)
from ._support import SandboxError
from .aio_build import AsyncBuilds
from .aio_code import AsyncBoxCode
from .aio_files import AsyncBoxFiles
from .aio_snapshots import AsyncBoxSnapshots
from .box import Box
from .execution import MAX_OUTPUT, Captured, Execution, Piece, Result, payload
from .options import (
    BoxChanges,
    BoxOptions,
    ClientOptions,
    CloneOptions,
    ExecOptions,
    ProgressFunction,
    Registry,
    Terminal,
)
from .runtime import Images, Runtime, Sandbox

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack


def _remove_all(boxes: list[Box]) -> None:
    for box in boxes:
        with suppress(SandboxError):  # the others are removed all the same
            box.remove()


class AsyncExecution(Closing):
    """The twin of Execution. async for yields its output; leaving async with kills it if it has not ended."""

    def __init__(self, execution: Execution) -> None:
        self._sync = execution
        self._output = execution.output
        self._pending: asyncio.Future[Piece | None] | None = None
        self.id = execution.id

    async def info(self) -> ExecInfo:
        """See Execution.info."""
        return await acall(self._sync.info)

    async def __aiter__(self) -> AsyncIterator[Piece]:
        while (piece := await self.read()) is not None:
            yield piece

    async def read(self) -> Piece | None:
        """See Execution.read."""
        output = self._output
        try:
            with output.reading():
                await asyncio.sleep(0)  # other tasks have their turn, however much it prints; nothing is read yet
                while not output.ended:
                    if not output.ready(0):
                        await self._ready()
                    elif output.lingers:
                        return await self._last()
                    else:
                        return output.piece()
            return None
        finally:
            output.leave()

    async def _last(self) -> Piece | None:
        """Reads when the command has ended, which may wait. A read that is cancelled leaves its piece to the next."""
        if self._pending is None:
            self._pending = asyncio.ensure_future(acall(self._output.piece))
        piece = await asyncio.shield(self._pending)
        self._pending = None
        return piece

    async def _ready(self) -> None:
        """Waits for the descriptor of the output, or for the worker that reads it."""
        if self._output.pending is not None:
            return await self._output.pending.ready()
        loop, fd = asyncio.get_running_loop(), self._output.fileno()
        ready: asyncio.Future[None] = loop.create_future()
        loop.add_reader(fd, wake, ready)
        try:
            await ready
        finally:
            loop.remove_reader(fd)

    async def wait(self) -> int:
        """See Execution.wait."""
        while await self.read() is not None:
            pass
        return self._sync.wait()

    async def communicate(self, input: bytes | str | None = None, max_output: int = MAX_OUTPUT) -> Result:
        """See Execution.communicate."""
        feeder = None if input is None else asyncio.ensure_future(self._feed(payload(input)))
        captured = Captured(max_output)
        try:
            async for piece in self:
                captured.add(piece)
            return captured.result(await self.wait())
        except SandboxError as e:
            captured.explain(e)
            raise
        finally:
            if feeder is not None:
                feeder.cancel()

    async def _feed(self, data: bytes) -> None:
        with suppress(SandboxError):  # the command need not read it
            await self.write(data)
            await self.close_stdin()

    async def write(self, data: bytes | str) -> None:
        """See Execution.write."""
        await acall(lambda: self._sync.write(data))

    async def close_stdin(self) -> None:
        """See Execution.close_stdin."""
        await acall(self._sync.close_stdin)

    async def kill(self, grace: float = 2) -> None:
        """See Execution.kill."""
        await acall(lambda: self._sync.kill(grace))

    async def signal(self, number: int) -> None:
        """See Execution.signal."""
        await acall(lambda: self._sync.signal(number))

    async def resize(self, cols: int, rows: int) -> None:
        """See Execution.resize."""
        await acall(lambda: self._sync.resize(cols, rows))

    async def detach(self) -> None:
        """See Execution.detach."""
        await acall(self._sync.detach)

    async def close(self) -> None:
        """See Execution.close."""
        self._sync.close()

    async def __aexit__(
        self, kind: type[BaseException] | None, e: BaseException | None, at: TracebackType | None
    ) -> None:
        await acall(self._sync.end)


class AsyncBox(AsyncBoxFiles, AsyncBoxCode, AsyncBoxSnapshots, Closing):
    """The twin of Box."""

    _sync: Box

    def __init__(self, box: Box) -> None:
        self._sync = box
        self.id = box.id

    async def info(self) -> BoxInfo:
        """See Box.info."""
        return await acall(self._sync.info)

    async def metrics(self) -> BoxMetrics:
        """See Box.metrics."""
        return await acall(self._sync.metrics)

    async def metrics_series(
        self, since: datetime | str | None = None, until: datetime | str | None = None, step: int | None = None
    ) -> BoxSeries:
        """See Box.metrics_series."""
        return await acall(lambda: self._sync.metrics_series(since, until, step))

    async def clone(
        self,
        n: int = 1,
        *,
        name_prefix: str | None = None,
        snapshot: str | None = None,
        **options: Unpack[CloneOptions],
    ) -> list[AsyncBox]:
        """See Box.clone."""
        make = partial(self._sync.clone, n, name_prefix=name_prefix, snapshot=snapshot, **options)
        return [AsyncBox(box) for box in await acall(make, _remove_all)]

    async def ports(self) -> tuple[Port, ...]:
        """See Box.ports."""
        return await acall(lambda: self._sync.ports)

    async def execs(self) -> list[ExecInfo]:
        """See Box.execs."""
        return await acall(self._sync.execs)

    async def start(self) -> None:
        """See Box.start."""
        await acall(self._sync.start)

    async def stop(self) -> None:
        """See Box.stop."""
        await acall(self._sync.stop)

    async def pause(self, reclaim: bool = False) -> None:
        """See Box.pause."""
        await acall(lambda: self._sync.pause(reclaim))

    async def resume(self) -> None:
        """See Box.resume."""
        await acall(self._sync.resume)

    async def update(self, **changes: Unpack[BoxChanges]) -> None:
        """See Box.update."""
        await acall(lambda: self._sync.update(**changes))

    async def remove(self, force: bool = True) -> None:
        """See Box.remove."""
        await acall(lambda: self._sync.remove(force))

    async def connect(self, port: int) -> socket.socket:
        """See Box.connect. The socket does not block: asyncio.open_connection(sock=...) makes streams of it."""
        connected = await acall(lambda: self._sync.connect(port), socket.socket.close)
        connected.setblocking(False)
        return connected

    async def share(self, port: int, expires_in: int | None = None) -> Share:
        """See Box.share."""
        return await acall(lambda: self._sync.share(port, expires_in))

    async def run(
        self, *argv: str, input: bytes | str | None = None, max_output: int = MAX_OUTPUT, **options: Unpack[ExecOptions]
    ) -> Result:
        """See Box.run."""
        data = None if input is None else payload(input)
        async with await self.exec(*argv, stdin=data is not None, **options) as execution:
            return await execution.communicate(data, max_output)

    async def exec(
        self, *argv: str, stdin: bool = False, terminal: Terminal | None = None, **options: Unpack[ExecOptions]
    ) -> AsyncExecution:
        """See Box.exec."""
        start = partial(self._sync.exec, *argv, stdin=stdin, terminal=terminal, **options)
        return AsyncExecution(await acall(start, Execution.end))

    async def attach(self, exec_id: str) -> AsyncExecution:
        """See Box.attach."""
        return AsyncExecution(await acall(lambda: self._sync.attach(exec_id), Execution.detach))

    async def close(self) -> None:
        """See Box.close."""
        await acall(self._sync.close)


class AsyncRuntime(Closing):
    """The twin of Runtime."""

    def __init__(self, runtime: Runtime) -> None:
        self._sync = runtime
        self.images = AsyncImages(runtime)

    @classmethod
    async def open(cls, profile: str | None = None) -> AsyncRuntime:
        """See Runtime.open."""
        return cls(await acall(lambda: Runtime.open(profile), Runtime.close))

    @classmethod
    async def local(
        cls, home: str | os.PathLike[str] | None = None, registries: Iterable[Registry] | None = None
    ) -> AsyncRuntime:
        """See Runtime.local."""
        return cls(await acall(lambda: Runtime.local(home, registries), Runtime.close))

    @classmethod
    async def remote(cls, options: ClientOptions) -> AsyncRuntime:
        """See Runtime.remote."""
        return cls(await acall(lambda: Runtime.remote(options), Runtime.close))

    async def create(self, image: str | None = None, **options: Unpack[BoxOptions]) -> AsyncBox:
        """See Runtime.create."""
        return AsyncBox(await acall(lambda: self._sync.create(image, **options), Box.remove))

    async def get(self, id_or_name: str) -> AsyncBox:
        """See Runtime.get."""
        return AsyncBox(await acall(lambda: self._sync.get(id_or_name), Box.close))

    async def boxes(self) -> list[BoxInfo]:
        """See Runtime.boxes."""
        return await acall(self._sync.boxes)

    async def info(self, id_or_name: str) -> BoxInfo:
        """See Runtime.info."""
        return await acall(lambda: self._sync.info(id_or_name))

    async def remove(self, id_or_name: str, force: bool = False) -> None:
        """See Runtime.remove."""
        await acall(lambda: self._sync.remove(id_or_name, force))

    async def snapshots(self, box: str | None = None) -> list[SnapshotNode]:
        """See Runtime.snapshots."""
        return await acall(lambda: self._sync.snapshots(box))

    async def metrics(self) -> RuntimeMetrics:
        """See Runtime.metrics."""
        return await acall(self._sync.metrics)

    async def shutdown(self, timeout: int | None = 10) -> None:
        """See Runtime.shutdown."""
        await acall(lambda: self._sync.shutdown(timeout))

    async def close(self) -> None:
        """See Runtime.close."""
        await acall(self._sync.close)


class AsyncImages(AsyncBuilds):
    """The twin of Images."""

    _sync: Images

    def __init__(self, runtime: Runtime) -> None:
        self._sync = runtime.images

    async def list(self) -> list[Image]:
        """See Images.list."""
        return await acall(self._sync.list)

    async def pull(self, reference: str, progress: ProgressFunction | None = None) -> Image:
        """See Images.pull."""
        return await acall(lambda: self._sync.pull(reference, progress))

    async def import_(
        self, name: str, source: str | os.PathLike[str], progress: ProgressFunction | None = None
    ) -> Image:
        """See Images.import_."""
        return await acall(lambda: self._sync.import_(name, source, progress))

    async def export(
        self,
        reference: str,
        path: str | os.PathLike[str],
        compression: str = "zstd",
        progress: ProgressFunction | None = None,
    ) -> None:
        """See Images.export."""
        await acall(lambda: self._sync.export(reference, path, compression, progress))

    async def push(
        self, reference: str, as_: str = "", compression: str = "zstd", progress: ProgressFunction | None = None
    ) -> Pushed:
        """See Images.push."""
        return await acall(lambda: self._sync.push(reference, as_, compression, progress))

    async def remove(self, reference: str, force: bool = False) -> None:
        """See Images.remove."""
        await acall(lambda: self._sync.remove(reference, force))


class AsyncSandbox(AsyncBox):
    """The twin of Sandbox. The box is made when async with begins."""

    def __init__(
        self, image: str | None = None, *, runtime: AsyncRuntime | None = None, **options: Unpack[BoxOptions]
    ) -> None:
        where = None if runtime is None else runtime._sync
        self._make = partial(Sandbox, image, runtime=where, **options)

    async def __aenter__(self) -> Self:
        box = await acall(self._make, Sandbox.close)
        super().__init__(box)
        return self
