from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from libsandbox import (
    AlreadyExistsError,
    AsyncBox,
    AsyncRuntime,
    Box,
    InvalidArgumentError,
    NotFoundError,
    ResourceExhaustedError,
    Runtime,
    UnsupportedError,
)

from .scripts import Daemon, gone, made


@pytest.fixture(scope="module", params=["in process", "on a daemon"])
def runtime(request: pytest.FixtureRequest, home: Path, daemon: Daemon) -> Iterator[Runtime]:
    """Snapshots are taken the same in this process and on a daemon."""
    with Runtime.local(home) if request.param == "in process" else Runtime.remote(daemon.socket) as runtime:
        yield runtime


def changes(box: Box, since: str | None = None) -> list[tuple[str, str]]:
    return [(change.kind, change.path) for change in box.diff(since)]


def test_snapshot(runtime: Runtime) -> None:
    with runtime.create("default", network="None") as box:
        box.run("sh", "-c", "echo good > /file; mkdir /d")
        taken = box.snapshot("good:1")
        assert (taken.name, taken.box, len(taken.layers)) == ("good:1", box.id, 2) and taken.paused_ms > 0
        assert changes(box, "good:1") == []
        box.run("sh", "-c", "echo bad > /file; rmdir /d; seq 10100 | sed s,^,/tmp/f, | xargs touch")
        assert ("removed", "/d") in changes(box, "good:1") and len(changes(box, "good:1")) > 10100
        box.rollback("good:1")
        assert box.run("cat", "/file").stdout == "good\n"
        clones = box.clone(2, name_prefix="copy", snapshot="good:1", memory_mib=96, env={"A": "1"}, auto_remove=False)
        assert [clone.info().name for clone in clones] == ["copy-1", "copy-2"]
        assert clones[1].info().memory_mib == 96
        assert clones[1].run("sh", "-c", "cat /file; echo $A").stdout == "good\n1\n"
        (node,) = runtime.snapshots(box.id)
        assert node.name == "good:1" and {"copy-1", "copy-2"} <= set(node.boxes) and node.added_bytes > 0
        for clone in clones:
            clone.remove()
        (again,) = box.clone()
        assert again.run("cat", "/file").stdout == "good\n"
        box.remove()
    for node in runtime.snapshots():
        runtime.images.remove(node.name, force=True)
    again.remove()


def test_a_clone_that_ends_at_once(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    with runtime.create("default", network="None") as box:
        before = made(runtime)
        get = runtime.get

        def late(id_or_name: str) -> Box:
            if len(made(runtime) - before) == 3:
                runtime.remove(id_or_name, force=True)
            return get(id_or_name)

        with monkeypatch.context() as patch, pytest.raises(NotFoundError):
            patch.setattr(runtime, "get", late)
            box.clone(3)
        assert not made(runtime) - before
        box.remove()


def test_refused(runtime: Runtime) -> None:
    with runtime.create("default", network="None") as box:
        with pytest.raises(AlreadyExistsError, match="default"):
            box.snapshot("default")
        with pytest.raises(InvalidArgumentError, match="no snapshot"):
            box.rollback("default")
        with pytest.raises(NotFoundError):
            list(box.diff("nobody:1"))
        with pytest.raises(InvalidArgumentError):
            box.clone(101)
        with pytest.raises(InvalidArgumentError):
            box.clone(snapshot="default")
        box.remove()


def test_series(home: Path, daemon: Daemon) -> None:
    with Runtime.local(home) as runtime, runtime.create("default", network="None") as box:
        with pytest.raises(UnsupportedError, match="server"):
            box.metrics_series()
        box.remove()
    with Runtime.remote(daemon.options) as runtime, runtime.create("default", network="None") as box:
        now = datetime.now(timezone.utc)
        series = box.metrics_series(now - timedelta(minutes=10), now, step=60)
        assert (series.box_id, series.step_seconds) == (box.id, 60)
        assert box.metrics_series("90m").points is not None
        with pytest.raises(InvalidArgumentError, match="from"):
            box.metrics_series(now, now - timedelta(minutes=1))
        with pytest.raises(InvalidArgumentError):
            box.metrics_series("yesterday")
        box.remove()


def test_asyncio(home: Path) -> None:
    async def main() -> None:
        async with await AsyncRuntime.local(home) as runtime:
            box = await runtime.create("default", network="None")
            taken = await box.snapshot()
            await box.run("touch", "/new")
            assert [change.path async for change in box.diff(taken.name)] == ["/new"]
            await box.rollback(taken.name)
            (clone,) = await box.clone(snapshot=taken.name)
            assert (await clone.run("ls", "/new")).exit_code != 0
            assert [node.name for node in await runtime.snapshots(box.id)] == [taken.name]
            with pytest.raises(UnsupportedError):
                await box.metrics_series()
            await clone.remove()
            await box.remove()
            await runtime.images.remove(taken.name)

    asyncio.run(main())


def test_clones_of_a_cancelled_task(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are removed, also behind one that is gone."""
    with Runtime.local(home) as runtime, runtime.create("default", network="None") as box:
        before = made(runtime)
        begun, go_on = threading.Event(), threading.Event()
        clone = box.clone

        def late(*arguments: Any, **options: Any) -> list[Box]:
            clones = clone(*arguments, **options)
            runtime.remove(clones[0].id, force=True)
            begun.set()
            go_on.wait(30)
            return clones

        async def main() -> None:
            cloning = asyncio.create_task(AsyncBox(box).clone(3))
            assert await asyncio.to_thread(begun.wait, 30)
            cloning.cancel()
            await asyncio.gather(cloning, return_exceptions=True)
            go_on.set()

        monkeypatch.setattr(box, "clone", late)
        asyncio.run(main())
        assert gone(runtime, before)
        box.remove()


DEEP = """
import sys
sys.setrecursionlimit(100000)
class Deep:
    def _repr_mimebundle_(self, **_):
        nested = []
        for _ in range(3000):
            nested = [nested]
        return {"application/json": nested}
Deep()
"""


def test_deep_json(home: Path) -> None:
    """A document of a box that is nested too deep is a failure of its own, and the box goes on."""
    with Runtime.local(home) as runtime, runtime.create("default", network="None") as box:
        with pytest.raises(ResourceExhaustedError, match="nested deeper"):
            box.run_code(DEEP)
        assert box.run_code("print(1)").stdout == "1\n"
        box.remove()
