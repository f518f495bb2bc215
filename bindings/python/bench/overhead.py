"""Measures Python beside C in one run: python overhead.py ROUNDS.

Both make a box of the same root file system. In turns, each runs a command that does
nothing, and each reads 1 GiB of output. It wants Python's median to be at most 0.3 ms
over C's, its output to be 1 GB/s and 0.6 of C's. Needs root, and the environment
variable SANDBOX_BUILD.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from libsandbox import Box, Runtime

BUILD = Path(os.environ["SANDBOX_BUILD"])
GIB = 1 << 30


class C:
    """A C program in which a box runs one command again and again: bench/c/stream.c."""

    def __init__(self, home: Path, root: Path, command: str, argument: str) -> None:
        arguments = [str(BUILD / "bench/stream"), str(home), str(root), command, argument]
        self._program = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._line()

    def _line(self) -> str:
        assert self._program.stdout is not None
        return str(self._program.stdout.readline())

    def run(self, size: int) -> float:
        """Runs the command once: how many seconds it took."""
        assert self._program.stdin is not None
        self._program.stdin.write("\n")
        self._program.stdin.flush()
        nanoseconds, length = map(int, self._line().split())
        assert length == size, length
        return nanoseconds / 1e9

    def close(self) -> None:
        """Ends the program and its box."""
        self._program.communicate()


def run(box: Box, *argv: str) -> float:
    """The same in Python for a command without output."""
    begin = time.perf_counter()
    assert box.run(*argv).exit_code == 0
    return time.perf_counter() - begin


def read(box: Box, *argv: str) -> float:
    """The same for 1 GiB, by the iterator."""
    begin = time.perf_counter()
    with box.exec(*argv) as execution:
        assert sum(len(data) for _, data in execution) == GIB and execution.wait() == 0
    return time.perf_counter() - begin


def compare(rounds: int, ours: Callable[[], float], theirs: Callable[[], float]) -> tuple[float, float]:
    """The medians of both, measured in turns after one round that does not count."""
    pairs = [(ours(), theirs()) for _ in range(rounds + 1)][1:]
    return statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs)


def main(rounds: int) -> int:
    """Measures both and tells whether the bars are held."""
    with tempfile.TemporaryDirectory() as directory:
        home, root = Path(directory, "home"), Path(directory, "root")
        (root / "bin").mkdir(parents=True)
        shutil.copy(BUILD / "bench/text", root / "bin/text")
        with Runtime.local(home) as runtime:
            box = runtime.create(rootfs_path=str(root), cpus=1)
            peers = C(home, root, "/bin/text", "0"), C(home, root, "/bin/text", str(GIB))
            ours, theirs = compare(rounds, lambda: run(box, "/bin/text", "0"), lambda: peers[0].run(0))
            over = (ours - theirs) * 1e3
            print(f"exec, p50 of {rounds}: C {theirs * 1e3:.2f} ms, Python {over:+.2f} ms (<= 0.3)")
            ours, theirs = compare(rounds, lambda: read(box, "/bin/text", str(GIB)), lambda: peers[1].run(GIB))
            speed, ratio = GIB / 1e9 / ours, theirs / ours
            print(
                f"1 GiB, p50 of {rounds}: C {speed / ratio:.2f} GB/s, Python {speed:.2f} (>= 1): x {ratio:.2f} (>= 0.6)"
            )
            for peer in peers:
                peer.close()
    return int(over > 0.3 or speed < 1 or ratio < 0.6)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
