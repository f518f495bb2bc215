"""Makes a box, runs a command in it and removes it, by E2B's own SDK, once for each line that it reads.

Its arguments are the server's address, a key and an image. Each answer is how many nanoseconds it took
from before the create to the command's result.
"""

import os
import sys
import time

url, key, image = sys.argv[1:]
os.environ.update(E2B_API_URL=url, E2B_SANDBOX_URL=url, E2B_API_KEY=key)

from e2b import Sandbox  # noqa: E402 # it reads the environment

print("ready", flush=True)
for _ in sys.stdin:
    start = time.perf_counter_ns()
    box = Sandbox.create(image, timeout=300)
    try:
        ran = box.commands.run("echo hi")
        took = time.perf_counter_ns() - start
        assert ran.stdout == "hi\n", ran
    finally:
        box.kill()
    print(took, flush=True)
