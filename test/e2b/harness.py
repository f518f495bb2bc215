"""What the tests have in common: a daemon that answers E2B's SDKs, on a home with the image `default`."""

import os
import pathlib
import subprocess
import tempfile
import threading

BUILD = pathlib.Path(os.environ["SANDBOX_HELPER_DIR"])
SANDBOX = str(BUILD / "sandbox")


class Daemon:
    """`sandbox serve --e2b`, on a home of its own."""

    def __init__(self):
        self.home = tempfile.TemporaryDirectory()
        self.env = {**os.environ, "SANDBOX_HOME": self.home.name, "HOME": self.home.name}
        for name in ("SANDBOX_REST_URL", "SANDBOX_API_KEY", "SANDBOX_PROFILE"):
            self.env.pop(name, None)
        self.sandbox("--local", "images", "import", "default", str(BUILD / "debian.tar"))
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [SANDBOX, "serve", "--listen", "none", "--e2b", "127.0.0.1:0", "--metrics-interval", "1s"],
            env=self.env,
            stderr=subprocess.PIPE,
            text=True,
        )
        for line in self.process.stderr:
            if line.startswith("sandbox: ready on "):
                self.url = line.split()[-2]
                break
        self.reader = threading.Thread(target=self.process.stderr.read)
        self.reader.start()

    def sandbox(self, *args):
        """Runs the command line and returns what it prints."""
        return subprocess.run([SANDBOX, *args], env=self.env, check=True, capture_output=True, text=True).stdout

    def key(self, permission="Boxes"):
        """Makes a key."""
        return self.sandbox("keys", "create", "test", "--permission", permission).strip()

    def environment(self):
        """What takes an E2B user over: two variables beside the key that they have already."""
        return {"E2B_API_URL": self.url, "E2B_SANDBOX_URL": self.url, "E2B_API_KEY": self.key()}

    def boxes(self):
        """The ids of all boxes."""
        return self.sandbox("ls", "-a", "-q").split()

    def stop(self):
        self.process.terminate()
        code = self.process.wait()
        self.reader.join()
        self.process.stderr.close()
        assert code == 0, code

    def close(self):
        for box in self.boxes():
            self.sandbox("rm", "-f", box)
        self.stop()
        self.home.cleanup()
