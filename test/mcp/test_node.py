"""Runs the tests that are written for Node.js, with a home and a daemon."""

import os
import pathlib
import subprocess
import unittest

from harness import BUILD, SANDBOX, Daemon, Home

HERE = pathlib.Path(__file__).parent


class Node(unittest.TestCase):
    def test_node(self):
        with Home() as home, Home() as other:
            daemon = Daemon(other)
            try:
                env = {
                    **home.env,
                    "PATH": f"{BUILD}:{os.environ['PATH']}",
                    "SANDBOX": SANDBOX,
                    "STDIO_JSON": str(HERE / "stdio.json"),
                    "HTTP_JSON": str(HERE / "http.json"),
                    "NODE_MODULES": str(BUILD / "mcp/node/node_modules"),
                    "MCP_URL": daemon.url + "/v1/mcp",
                    "MCP_KEY": daemon.key("Boxes"),
                }
                # The time bounds the file as a whole, and is there for what hangs.
                ran = subprocess.run(["node", "--test", "--test-timeout=1800000", HERE / "node/test.mjs"], env=env, capture_output=True, text=True)
                self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
                home.emptied("--local")
                other.emptied("--url", f"unix://{other.path}/sandbox.sock")
            finally:
                daemon.close()


if __name__ == "__main__":
    unittest.main()
