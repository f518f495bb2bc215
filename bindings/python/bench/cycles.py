"""Makes a box, runs a command in it and removes it, again and again: python cycles.py COUNT IMAGE.

It wants the memory of the process to grow by 5 MB at most after the first tenth, and no
handle, descriptor or box to be left. Needs root and the image in the home.
"""

from __future__ import annotations

import gc
import sys
import time
from pathlib import Path

from libsandbox import Runtime, Sandbox
from libsandbox._library import Handle


def resident() -> float:
    """The memory of this process in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


def descriptors() -> int:
    """How many this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


def handles() -> int:
    """How many of the library's are held."""
    gc.collect()
    return sum(isinstance(each, Handle) and not each.closed for each in gc.get_objects())


def cycles(runtime: Runtime, image: str, count: int) -> None:
    """Makes and removes as many boxes."""
    for _ in range(count):
        with Sandbox(image, runtime=runtime, network="None") as box:
            assert box.run("echo", "x").stdout == "x\n"


def main(count: int, image: str) -> int:
    """Prints what is left and tells whether the bars are held."""
    with Runtime.local() as runtime:
        cycles(runtime, image, max(1, count // 10))
        before, opened, held = resident(), descriptors(), handles()
        begin = time.monotonic()
        cycles(runtime, image, count)
        grown, left = resident() - before, (handles() - held, descriptors() - opened, len(runtime.boxes()))
        each = (time.monotonic() - begin) / count * 1e3
    print(f"{count} cycles of {each:.1f} ms: {before:.1f} MB and {grown:+.1f} MB (<= 5)")
    print(f"left: {left[0]} handles, {left[1]} descriptors, {left[2]} boxes (0)")
    return int(grown > 5 or any(left))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2]))
