"""A home of the tests' own with the image "default", and a runtime on it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from libsandbox import Box, Runtime

from .scripts import BUILD, Daemon

# The tests are about this wheel and this machine's own home is not theirs.
for name in [name for name in os.environ if name.startswith("SANDBOX_") and name != "SANDBOX_BUILD"]:
    del os.environ[name]


@pytest.fixture(scope="session")
def home() -> Iterator[Path]:
    """A home with the image. Its boxes are gone at the end, or the tests fail."""
    with tempfile.TemporaryDirectory(prefix="libsandbox-", ignore_cleanup_errors=True) as directory:
        os.environ["SANDBOX_HOME"] = os.environ["HOME"] = directory
        with Runtime.local() as runtime:
            for name in ("default", "python:3.12"):  # the second is what the examples name
                runtime.images.import_(name, BUILD / "debian.tar")
        yield Path(directory)
        with Runtime.local() as runtime:
            assert runtime.boxes() == []


@pytest.fixture(scope="session")
def runtime(home: Path) -> Iterator[Runtime]:
    """A runtime of this process."""
    with Runtime.local(home) as runtime:
        yield runtime


@pytest.fixture(scope="session")
def daemon(home: Path) -> Iterator[Daemon]:
    """A daemon on the home."""
    with Daemon(home) as daemon:
        yield daemon


@pytest.fixture(scope="module")
def box(runtime: Runtime) -> Iterator[Box]:
    """A box that the tests of a module share."""
    box = runtime.create("default", env={"GREETING": "grüße"})
    yield box
    box.remove()
