"""Runs the tests of E2B's SDK for JavaScript, unmodified."""

import os
import pathlib
import subprocess
import unittest

from harness import BUILD, Daemon

HERE = pathlib.Path(__file__).parent


class Node(unittest.TestCase):
    def test_node(self):
        daemon = Daemon()
        try:
            env = {**os.environ, **daemon.environment(), "NODE_MODULES": os.environ.get("NODE_MODULES", str(BUILD / "e2b/node/node_modules"))}
            # The time bounds each file as a whole, and is there for what hangs.
            # The SDK of the code interpreter leaves a timer of minutes behind.
            ran = subprocess.run(["node", "--test", "--test-timeout=1800000", "--test-force-exit", HERE / "node"], env=env, capture_output=True, text=True)
            self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
            self.assertEqual(daemon.boxes(), [])
        finally:
            daemon.close()


if __name__ == "__main__":
    unittest.main()
