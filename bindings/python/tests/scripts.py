"""Programs that tests start: what happens when Python exits, is interrupted, or forks can only be seen from outside."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from libsandbox import ApiKeyCredential, ClientOptions, Runtime

BUILD = Path(os.environ["SANDBOX_BUILD"])
TOP = BUILD.parent


class Daemon:
    """A daemon of the tests' own, on its home's socket and a port of the loopback."""

    def __init__(self, home: Path) -> None:
        self._program = subprocess.Popen(
            [BUILD / "sandbox", "serve", "--listen", "127.0.0.1:0"],
            stderr=subprocess.PIPE,
            text=True,
            env={"SANDBOX_HOME": str(home), "HOME": str(home), "PATH": os.environ["PATH"]},
        )
        stderr = self._program.stderr
        assert stderr is not None
        said = ""
        while "sandbox: ready on " not in said:
            line = stderr.readline()
            assert line, said
            said += line
        # Its log is read to the end: a daemon whose pipe is full waits.
        self._log = threading.Thread(target=stderr.read, daemon=True)
        self._log.start()
        profile = (home / ".sandbox/credentials.toml").read_text()
        url, key = (re.findall(f'{name} = "(.*)"', profile)[0] for name in ("url", "api_key"))
        self.options = ClientOptions(url, ApiKeyCredential(key))
        self.socket = ClientOptions(f"unix://{home}/sandbox.sock")

    def end(self, number: int = signal.SIGTERM) -> None:
        """Ends the daemon."""
        self._program.send_signal(number)
        self._program.wait(timeout=300)
        self._log.join()
        assert self._program.stderr is not None
        self._program.stderr.close()

    def __enter__(self) -> Daemon:
        return self

    def __exit__(self, *_: object) -> None:
        if self._program.poll() is None:
            self.end()


# What a shell starts in the background ignores an interrupt, and hands that on.
HEED = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"


def start(source: str) -> subprocess.Popen[str]:
    """Starts a program that prints "ready" when it waits."""
    return subprocess.Popen(
        [sys.executable, "-c", HEED + source], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
    )


def run(source: str, limit: float = 300) -> tuple[int, str, str]:
    """Runs a program to its end: its exit code, stdout and stderr."""
    return ended(start(source), limit)


def ended(program: subprocess.Popen[str], limit: float = 300) -> tuple[int, str, str]:
    """The same of one that was started. One that takes longer than the limit has failed."""
    try:
        stdout, stderr = program.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        program.kill()
        raise AssertionError(f"still runs after {limit} s: {program.communicate()}") from None
    return program.returncode, stdout, stderr


def interrupt(source: str, delay: float = 0.1) -> tuple[int, str, str, float]:
    """Interrupts a program a little after it is ready, as Ctrl-C does. Adds how long it took to end."""
    program = start(source)
    assert program.stdout is not None
    assert program.stdout.readline() == "ready\n", program.communicate()
    time.sleep(delay)
    program.send_signal(signal.SIGINT)
    begin = time.monotonic()
    return (*ended(program), time.monotonic() - begin)


def made(runtime: Runtime) -> set[str]:
    return {box.id for box in runtime.boxes()}


def gone(runtime: Runtime, before: set[str], limit: float = 120) -> bool:
    """Whether nothing is left of a process or a task. What was being made when it ended is removed then."""
    end = time.monotonic() + limit
    while made(runtime) - before and time.monotonic() < end:
        time.sleep(0.02)
    return made(runtime) == before
