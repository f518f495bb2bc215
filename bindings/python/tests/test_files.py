from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from libsandbox import (
    AsyncRuntime,
    AsyncSandbox,
    Box,
    CanceledError,
    ClosedError,
    FileEvent,
    FileEventType,
    FileType,
    InvalidArgumentError,
    InvalidStateError,
    NotFoundError,
    PermissionDeniedError,
    Progress,
    Runtime,
    TimeoutError,
    WatchEnd,
)

from .scripts import Daemon, interrupt


@pytest.fixture(scope="module", params=["in process", "on a daemon"])
def runtime(request: pytest.FixtureRequest, home: Path, daemon: Daemon) -> Iterator[Runtime]:
    """All that a box can do is the same in this process and on a daemon."""
    with Runtime.local(home) if request.param == "in process" else Runtime.remote(daemon.socket) as runtime:
        yield runtime


def test_copies(box: Box, tmp_path: Path) -> None:
    box.write_file("/work/deep/data", b"\0\xff", mode=0o600)
    assert box.read_file("/work/deep/data") == b"\0\xff"
    assert box.run("stat", "-c", "%a", "/work/deep/data").stdout == "600\n"
    seen: list[Progress] = []
    box.copy_out("/work", tmp_path / "out", seen.append)
    assert (tmp_path / "out/deep/data").read_bytes() == b"\0\xff"
    assert seen[-1].stage == "copy" and seen[-1].done > 0
    box.copy_in(tmp_path / "out", "/copy")
    assert box.run("ls", "/copy/deep").stdout == "data\n"
    for path, failure in (
        ("/none", NotFoundError),
        ("/work", InvalidArgumentError),
        ("relative", InvalidArgumentError),
    ):
        with pytest.raises(failure):
            box.read_file(path)


def test_a_link_leads_to_no_file_of_the_host(box: Box, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of the host")
    box.run("ln", "-s", str(secret), "/link")
    with pytest.raises((NotFoundError, InvalidArgumentError)):
        box.read_file("/link")


def test_progress_that_raises(box: Box, tmp_path: Path) -> None:
    def broken(progress: Progress) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        box.copy_out("/etc/passwd", tmp_path / "passwd", broken)


def test_in_place(box: Box) -> None:
    made = box.make_directory("/place/deep", mode=0o2770)
    assert (made.created, made.type, made.mode) == (True, FileType.DIRECTORY, "2770")
    assert not box.make_directory("/place/deep").created
    box.write_file("/place/deep/data", "12345", mode=0o600)
    box.run("ln", "-s", "/nosuch", "/place/link")
    data = box.stat_file("/place/deep/data")
    assert (data.name, data.type, data.size, data.mode, data.owner, data.target) == (
        "data",
        FileType.FILE,
        5,
        "0600",
        "root",
        None,
    )
    assert [file.path for file in box.list_files("/place")] == ["/place/deep", "/place/link"]
    deep = {file.path: file for file in box.list_files("/place", depth=2)}
    assert list(deep) == ["/place/deep", "/place/deep/data", "/place/link"]
    assert (deep["/place/link"].type, deep["/place/link"].target) == (FileType.SYMLINK, "/nosuch")
    assert box.file_exists("/place/link") and not box.file_exists("/nosuch")
    assert box.move_file("/place/deep/data", "/place/moved").path == "/place/moved"
    with pytest.raises(InvalidArgumentError, match="recursive"):
        box.remove_file("/place")
    assert box.remove_file("/place", recursive=True).removed == 4
    with pytest.raises(NotFoundError):
        box.stat_file("/place")
    with pytest.raises(NotFoundError):
        next(box.list_files("/place"))


def test_more_files_than_a_page_has(box: Box) -> None:
    box.run("sh", "-c", "mkdir /many; cd /many; seq 10100 | xargs touch")
    listed = [int(file.name) for file in box.list_files("/many")]
    assert len(listed) == len(set(listed)) == 10100
    box.remove_file("/many", recursive=True)


def test_the_rights_of_a_user(box: Box, tmp_path: Path) -> None:
    box.run("sh", "-c", "mkdir -m 777 /open; mkdir -m 700 /closed; echo secret > /closed/file")
    box.write_file("/open/mine", "x", user="nobody")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/file").write_text("y")
    box.copy_in(tmp_path / "tree", "/open/tree", user="1000:7")
    assert box.stat_file("/open/mine").owner == "nobody"
    assert [(file.uid, file.gid) for file in box.list_files("/open/tree")] == [(1000, 7)]
    assert box.make_directory("/open/made", user="nobody").owner == "nobody"
    for refused in (
        lambda: box.read_file("/closed/file", user="nobody"),
        lambda: box.write_file("/closed/other", "x", user="nobody"),
        lambda: box.copy_out("/closed/file", tmp_path / "out", user="nobody"),
        lambda: box.stat_file("/closed/file", user="nobody"),
        lambda: box.file_exists("/closed/file", user="nobody"),
        lambda: list(box.list_files("/closed", user="nobody")),
        lambda: box.make_directory("/closed/made", user="nobody"),
        lambda: box.move_file("/open/mine", "/closed/mine", user="nobody"),
        lambda: box.remove_file("/closed", user="nobody"),
        lambda: box.watch_files("/closed", user="nobody"),
    ):
        with pytest.raises(PermissionDeniedError):
            refused()
    with pytest.raises(InvalidArgumentError):
        box.stat_file("/", user="nobodyknows")


def test_watch(box: Box) -> None:
    box.run("mkdir", "-p", "/watched/below")
    with box.watch_files("/watched", recursive=True) as watch:
        with pytest.raises(TimeoutError):
            watch.read(timeout=0)
        with pytest.raises(TimeoutError):
            watch.read(timeout=0.05)
        box.run("sh", "-c", "cd /watched; mkfifo below/p; mv below/p q; rm q; rmdir below; cd /; rmdir /watched")
        created = watch.read(timeout=30)
        assert created is not None and (created.type, created.path, created.directory) == (
            FileEventType.CREATE,
            "/watched/below/p",
            False,
        )
        renamed, *rest = list(watch)
        assert (renamed.type, renamed.from_, renamed.path) == (
            FileEventType.RENAME,
            "/watched/below/p",
            "/watched/q",
        )
        assert (rest[-1].type, rest[-1].reason) == (FileEventType.END, WatchEnd.REMOVED)
        assert watch.read() is None
    with pytest.raises(NotFoundError):
        box.watch_files("/watched")


def test_close_while_a_watch_is_read(box: Box) -> None:
    box.make_directory("/still")
    watch = box.watch_files("/still")
    raised: list[BaseException] = []

    def read() -> None:
        try:
            watch.read()
        except CanceledError as e:
            raised.append(e)

    reader = threading.Thread(target=read)
    reader.start()
    while watch._pending is None:
        pass
    with pytest.raises(InvalidStateError, match="another thread"):
        watch.read()
    watch.close()
    watch.close()
    reader.join(10)
    assert [type(e) for e in raised] == [CanceledError]
    with pytest.raises(ClosedError):
        watch.read()


def test_an_interrupted_watch(runtime: Runtime) -> None:
    code, out, err, took = interrupt(
        "from libsandbox import Sandbox\n"
        "with Sandbox('default') as box, box.watch_files('/tmp') as watch:\n"
        "    try:\n"
        "        print('ready', flush=True)\n"
        "        watch.read()\n"
        "    except KeyboardInterrupt:\n"
        "        box.make_directory('/tmp/made')\n"
        "        print(watch.read().path)\n"
    )
    assert (code, out, err) == (0, "/tmp/made\n", "") and took < 20


def test_asyncio(home: Path) -> None:
    async def main() -> None:
        async with await AsyncRuntime.local(home) as runtime, AsyncSandbox("default", runtime=runtime) as box:
            assert (await box.make_directory("/d")).created
            await box.write_file("/d/f", "x")
            assert (await box.stat_file("/d/f")).size == 1
            assert [file.name async for file in box.list_files("/d")] == ["f"]
            assert await box.file_exists("/d/f") and not await box.file_exists("/d/g")
            async with await box.watch_files("/d") as watch:
                with pytest.raises(TimeoutError):
                    await watch.read(timeout=0.05)
                with pytest.raises(asyncio.TimeoutError):
                    await asyncio.wait_for(watch.read(), 0.05)
                assert (await box.move_file("/d/f", "/d/g")).name == "g"
                event = await watch.read()
                assert isinstance(event, FileEvent) and (event.from_, event.path) == ("/d/f", "/d/g")
                assert (await box.remove_file("/d", recursive=True)).removed == 2
                assert [seen.type async for seen in watch] == [FileEventType.REMOVE, FileEventType.END]
                assert await watch.read() is None

    asyncio.run(asyncio.wait_for(main(), 60), debug=True)
