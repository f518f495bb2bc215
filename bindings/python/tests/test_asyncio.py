from __future__ import annotations

import asyncio
import select
import threading
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from libsandbox import (
    AsyncBox,
    AsyncRuntime,
    AsyncSandbox,
    CanceledError,
    ClosedError,
    ExecStatus,
    ExecutionError,
    InvalidStateError,
    NotFoundError,
    Piece,
    Progress,
    Runtime,
    Sandbox,
    Stream,
    Terminal,
    TimeoutError,
)

from .scripts import gone, made


@asynccontextmanager
async def sandbox(home: Path) -> AsyncIterator[AsyncBox]:
    async with await AsyncRuntime.local(home) as runtime, AsyncSandbox("default", runtime=runtime) as box:
        yield box


def go(main: Coroutine[None, None, None]) -> None:
    asyncio.run(asyncio.wait_for(main, 600), debug=True)


def test_commands(home: Path, tmp_path: Path) -> None:
    async def main() -> None:
        async with sandbox(home) as box:
            assert (await box.run("sh", "-c", "echo $A; exit 4", env={"A": "ü"})).stdout == "ü\n"
            data = b"\xff" * 1_000_000
            assert (await box.run("cat", input=data)).stdout_bytes == data
            with pytest.raises(ExecutionError) as missing:
                await box.run("no-such-command")
            assert missing.value.exit_code == 127
            with pytest.raises(TimeoutError) as late:
                await box.run("sh", "-c", "echo begun; exec sleep 1000", timeout=15)
            assert late.value.stdout == "begun\n"
            await box.write_file("/work/a", "b")
            assert await box.read_file("/work/a") == b"b"
            seen: list[Progress] = []
            await box.copy_out("/work", tmp_path / "out", seen.append)
            await box.copy_in(tmp_path / "out", "/again")
            assert seen and (await box.run("cat", "/again/a")).stdout == "b"
            info, metrics, execs = await asyncio.gather(box.info(), box.metrics(), box.execs())
            assert info.id == box.id and metrics.commands_executed_total == len(execs)
            assert await box.ports() == ()

    go(main())


def test_conversation(home: Path) -> None:
    async def main() -> None:
        async with sandbox(home) as box:
            async with await box.exec("sh", stdin=True) as shell:
                await shell.write("echo $((6 * 7))\n")
                assert await shell.read() == (Stream.STDOUT, b"42\n")
                await shell.write("echo no >&2; sleep 0.1; exit 3\n")
                await shell.close_stdin()
                assert [piece async for piece in shell] == [(Stream.STDERR, b"no\n")]
                assert await shell.wait() == 3
                assert (await shell.info()).status is ExecStatus.FAILED
            async with await box.exec("bash", "--norc", terminal=Terminal(100, 30)) as terminal:
                await terminal.resize(80, 20)
                await terminal.write("stty size; exit\n")
                assert b"20 80" in b"".join([piece.data async for piece in terminal])
            async with await box.exec("sleep", "1000") as sleeper:
                await sleeper.signal(15)
                assert await sleeper.wait() == -15
            execution = await box.exec("sh", "-c", "sleep 0.2; echo after")
            await execution.detach()
            async with await box.attach(execution.id) as again:
                assert await again.read() == (Stream.STDOUT, b"after\n")

    go(main())


def test_many_at_once(home: Path) -> None:
    async def main() -> None:
        async with sandbox(home) as box:
            ended = threading.Event()
            ticks = elsewhere = 0

            async def tick() -> None:
                nonlocal ticks
                while True:
                    await asyncio.sleep(0.01)
                    ticks += 1

            def tick_elsewhere() -> None:  # as the host lets a thread of this process run
                nonlocal elsewhere
                while not ended.wait(0.01):
                    elsewhere += 1

            other = threading.Thread(target=tick_elsewhere, daemon=True)
            other.start()
            ticking = asyncio.create_task(tick())
            busy = box.run("sh", "-c", "head -c 100000000 /dev/zero", max_output=1 << 30)
            results = await asyncio.gather(
                busy, *[box.run("sh", "-c", "sleep 0.5; cat", input=str(n)) for n in range(40)]
            )
            ticking.cancel()
            ended.set()
            other.join()
            assert [result.stdout for result in results[1:]] == [str(n) for n in range(40)]
            assert ticks > elsewhere / 10  # the loop was not held up

    go(main())


def test_cancellation_leaves_nothing(home: Path, runtime: Runtime) -> None:
    async def main() -> None:
        before = made(runtime)
        async with await AsyncRuntime.local(home) as other:
            for delay in (0, 0.001, 0.005, 0.02, 0.05):

                async def make() -> None:
                    async with AsyncSandbox("default", runtime=other) as box:
                        await box.run("sleep", "1000")

                with pytest.raises(asyncio.TimeoutError):
                    await asyncio.wait_for(make(), delay)
        assert gone(runtime, before)

    go(main())


def test_a_cancelled_command_is_killed(home: Path) -> None:
    async def main() -> None:
        async with sandbox(home) as box:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(box.run("sleep", "1000", input="x" * 1_000_000), 0.3)
            while (await box.execs())[0].status is ExecStatus.RUNNING:
                await asyncio.sleep(0.01)
            assert (await box.execs())[0].status is ExecStatus.CANCELED

    go(main())


@pytest.mark.parametrize("steps", range(4))
def test_a_cancelled_read_loses_nothing(home: Path, steps: int) -> None:
    async def main() -> None:
        async with sandbox(home) as box, await box.exec("sh", "-c", "echo one; exec cat", stdin=True) as execution:
            assert select.select([execution._sync], [], [], 30)[0]
            reader = asyncio.create_task(execution.read())
            for _ in range(steps):
                await asyncio.sleep(0)
            reader.cancel()
            (first,) = await asyncio.gather(reader, return_exceptions=True)
            await execution.close_stdin()
            rest = [piece async for piece in execution]
            assert [piece for piece in (first, *rest) if isinstance(piece, Piece)] == [(Stream.STDOUT, b"one\n")]

    go(main())


def test_close_while_a_task_reads(home: Path) -> None:
    async def main() -> None:
        async with sandbox(home) as box:
            execution = await box.exec("sleep", "1000")
            reader = asyncio.create_task(execution.read())
            await asyncio.sleep(0.1)
            with pytest.raises(InvalidStateError, match="another"):
                await execution.read()
            await execution.close()
            with pytest.raises(CanceledError):
                await reader
            with pytest.raises(ClosedError):
                await execution.read()
            left = await box.exec("sleep", "1000")
            reader = asyncio.create_task(left.read())
        assert await reader is None  # the box was removed

    go(main())


def test_a_main_command(runtime: Runtime) -> None:
    waits = ["sh", "-c", "echo begun; until [ -e /tmp/go ]; do sleep 0.1; done; echo after; exec sleep 1000"]

    async def main(box: AsyncBox) -> None:
        (run,) = await box.execs()
        execution = await box.attach(run.id)
        assert await execution.read() == (Stream.STDOUT, b"begun\n")
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(execution.read(), 0.2)
        await box.write_file("/tmp/go", b"")
        assert await execution.read() == (Stream.STDOUT, b"after\n")
        reader = asyncio.create_task(execution.read())
        await asyncio.sleep(0.1)
        await execution.close()
        with pytest.raises(CanceledError):
            await reader
        assert (await box.execs())[0].status is ExecStatus.RUNNING

    with Sandbox("default", runtime=runtime, command=waits, network="None") as box:
        go(main(AsyncBox(box)))


def test_life(home: Path) -> None:
    async def main() -> None:
        async with await AsyncRuntime.local(home) as runtime:
            box = await runtime.create("default", auto_remove=False, name="asleep")
            await box.stop()
            await box.start()
            async with await runtime.get("asleep") as again:
                assert (await again.info()).name == (await runtime.info("asleep")).name == "asleep"
            assert box.id in [listed.id for listed in await runtime.boxes()]
            await box.remove()
            with pytest.raises(NotFoundError):
                await runtime.remove("asleep")
            assert [image.name for image in await runtime.images.list()]
            with pytest.raises(NotFoundError):
                await runtime.images.remove("nobody:1")
            with pytest.raises(NotFoundError):
                await runtime.images.export("nobody:1", home / "nobody.tar")
            with pytest.raises(NotFoundError):
                await runtime.images.push("nobody:1", "127.0.0.1:1/nobody:1")
            assert (await runtime.metrics()).boxes_created_total == 1
            await runtime.shutdown()

    go(main())
