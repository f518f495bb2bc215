from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from libsandbox import (
    ArgumentTypeError,
    AsyncRuntime,
    BuildEventType,
    BuildStage,
    CanceledError,
    ClosedError,
    ImageError,
    InvalidArgumentError,
    NotFoundError,
    Runtime,
    TimeoutError,
)

from .scripts import Daemon


@pytest.fixture(scope="module", params=["in process", "on a daemon"])
def runtime(request: pytest.FixtureRequest, home: Path, daemon: Daemon) -> Iterator[Runtime]:
    """Images are built the same in this process and on a daemon."""
    with Runtime.local(home) if request.param == "in process" else Runtime.remote(daemon.socket) as runtime:
        yield runtime


RECIPE = 'FROM default\nARG A\nRUN echo $A "grüße 🚧"\nCOPY file /copied\nLABEL a=b\n'


def test_build(runtime: Runtime, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("copied\n")
    build = runtime.images.start_build(tmp_path, recipe=RECIPE, name="built:1", args={"A": "now"}, no_cache=True)
    with build:
        events = list(build)
        image = build.result()
    printed = "".join(event.output.data for event in events if event.output)
    assert printed == "now grüße 🚧\n" and events[-1].type is BuildEventType.END and events[-1].image == image
    assert image.name == "built:1" and image.labels == {"a": "b"}
    assert BuildStage.BEGUN in {event.step.stage for event in events if event.step}
    (tmp_path / "Dockerfile").write_text(RECIPE)
    again = runtime.images.build(tmp_path, name="built:2", args={"A": "now"})
    assert again.layers == image.layers
    with runtime.create("built:2", network="None") as box:
        assert box.run("cat", "/copied").stdout == "copied\n"
        box.remove()
    for name in "built:1", "built:2":
        runtime.images.remove(name, force=True)


def test_failures(runtime: Runtime, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="line 2"):
        runtime.images.start_build(recipe="FROM default\nRUM x\n")
    with pytest.raises(NotFoundError, match="line 2"):
        runtime.images.build(tmp_path, recipe="FROM default\nCOPY nothing /\n")
    with pytest.raises(TimeoutError, match="line 2"):
        runtime.images.build(recipe="FROM default\nRUN sleep 1000\n", timeout=3)
    with runtime.images.start_build(recipe="FROM default\nRUN echo on; exit 3\n") as build:
        last = list(build)[-1]
        assert last.error and last.error.code == "image_error"
        with pytest.raises(ImageError, match="exit code 3"):
            build.result()
    with pytest.raises(ClosedError):
        build.result()
    for wrong in ({"network": "Host"}, {"timeout": -1}):
        with pytest.raises(InvalidArgumentError):
            runtime.images.build(recipe="FROM default\n", **wrong)
    for unknown in ({"x": 1}, {"no_cache": "yes"}, {"args": ["a"]}):
        with pytest.raises(ArgumentTypeError):
            runtime.images.build(recipe="FROM default\n", **unknown)


def test_closed(runtime: Runtime) -> None:
    build = runtime.images.start_build(recipe="FROM default\nRUN echo on; sleep 1000\n")
    assert next(event for event in build if event.output)
    with pytest.raises(TimeoutError):
        build.read(0)
    build.close()
    with pytest.raises((ClosedError, CanceledError)):
        build.read()
    end = time.monotonic() + 60
    while runtime.boxes():  # a daemon ends it when it notices
        assert time.monotonic() < end


def test_asyncio(home: Path) -> None:
    async def script() -> None:
        async with await AsyncRuntime.local(home) as runtime:
            recipe = "FROM default\nRUN echo async\n"
            async with await runtime.images.start_build(recipe=recipe, no_cache=True) as build:
                printed = [event.output.data async for event in build if event.output]
                image = await build.result()
            assert printed == ["async\n"] and image == await runtime.images.build(recipe=recipe)

    asyncio.run(script())
