from __future__ import annotations

import asyncio
import socket
import urllib.request
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

import pytest

from libsandbox import (
    AsyncRuntime,
    AsyncSandbox,
    Box,
    InvalidStateError,
    NetworkError,
    Runtime,
    UnsupportedError,
)

from .scripts import Daemon

SERVER = """
import socket, threading
def serve(connection):
    with connection:
        while data := connection.recv(65536):
            connection.sendall(data.upper())
        connection.sendall(b"END")
listener = socket.create_server(("127.0.0.1", 8080))
print("ready", flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],)).start()
"""


def listen(box: Box) -> None:
    """Starts a program that listens on port 8080 of a box without a network."""
    execution = box.exec("python3", "-c", SERVER)
    assert execution.read() is not None
    execution.detach()


@pytest.fixture(scope="module", params=["in process", "on a daemon"])
def runtime(request: pytest.FixtureRequest, home: Path, daemon: Daemon) -> Iterator[Runtime]:
    """Ports are reached the same in this process and on a daemon."""
    with Runtime.local(home) if request.param == "in process" else Runtime.remote(daemon.socket) as runtime:
        yield runtime


def whole(connection: socket.socket) -> bytes:
    data = b""
    while piece := connection.recv(65536):
        data += piece
    return data


def test_connect(runtime: Runtime) -> None:
    with runtime.create("default", network="None") as box:
        listen(box)
        with box.connect(8080) as connection:
            connection.sendall(b"ping")
            assert connection.recv(4) == b"PING"
            connection.sendall(b"last")
            connection.shutdown(socket.SHUT_WR)
            assert whole(connection) == b"LASTEND"
        with pytest.raises(NetworkError, match="port 1 "):
            box.connect(1)
        kept = box.connect(8080)
        box.remove()
        with kept:
            assert whole(kept) == b""
    with runtime.create("default", auto_remove=False) as box:
        box.stop()
        with pytest.raises(InvalidStateError):
            box.connect(8080)
        box.remove()


def test_much_goes_through(runtime: Runtime) -> None:
    with runtime.create("default", network="None") as box:
        listen(box)
        sent = b"0123456789abcdef" * (1 << 20)
        with box.connect(8080) as connection:
            connection.settimeout(60)
            got = bytearray()
            for at in range(0, len(sent), 1 << 16):
                connection.sendall(sent[at : at + (1 << 16)])
                while len(got) < at:
                    got += connection.recv(1 << 20)
            connection.shutdown(socket.SHUT_WR)
            assert bytes(got) + whole(connection) == sent.upper() + b"END"
        box.remove()


def test_share_in_process(home: Path) -> None:
    with Runtime.local(home) as runtime, runtime.create("default", network="None") as box:
        with pytest.raises(UnsupportedError, match="server"):
            box.share(8080)
        box.remove()


def test_share(daemon: Daemon) -> None:
    with Runtime.remote(daemon.options) as runtime, runtime.create("default", network="None") as box:
        box.run("sh", "-c", "mkdir /www; echo shared > /www/file")
        program = "import http.server as h, os; os.chdir('/www'); s = h.ThreadingHTTPServer(('127.0.0.1', 80), "
        execution = box.exec(
            "python3", "-c", program + "h.SimpleHTTPRequestHandler); print(1, flush=True); s.serve_forever()"
        )
        assert execution.read() is not None
        share = box.share(80, expires_in=60)
        assert (share.box_id, share.port) == (box.id, 80)
        assert 0 < (share.expires_at - datetime.now(timezone.utc)).total_seconds() <= 60
        with urllib.request.urlopen(share.url.rstrip("/") + "/file") as reply:
            assert reply.read() == b"shared\n"
        box.remove()


def test_asyncio(home: Path) -> None:
    async def main() -> None:
        async with await AsyncRuntime.local(home) as runtime, AsyncSandbox("default", runtime=runtime) as box:
            execution = await box.exec("python3", "-c", SERVER)
            assert await execution.read() is not None
            reader, writer = await asyncio.open_connection(sock=await box.connect(8080))
            writer.write(b"ping")
            assert await reader.readexactly(4) == b"PING"
            writer.write_eof()
            assert await reader.read() == b"END"
            writer.close()
            await writer.wait_closed()
            with pytest.raises(UnsupportedError):
                await box.share(8080)

    asyncio.run(asyncio.wait_for(main(), 60), debug=True)
