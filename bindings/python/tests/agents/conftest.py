"""What the adapters' tests share: a box with what the packages' own tests use besides a shell."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from libsandbox import Box, Runtime, Sandbox

from ..conftest import home, runtime

__all__ = ["box", "home", "runtime"]

# No telemetry and no traces, whatever this machine's user has set.
os.environ.update(
    HF_HUB_DISABLE_TELEMETRY="1", HF_HUB_OFFLINE="1", LANGSMITH_TRACING="false", LANGCHAIN_TRACING_V2="false"
)

BUSYBOX = Path("/bin/busybox")


@pytest.fixture(scope="module")
def box(runtime: Runtime) -> Iterator[Box]:
    """A box without a network, where python is python3."""
    with Sandbox("default", runtime=runtime, network="None") as box:
        assert box.run("ln", "-s", "python3", "/usr/bin/python").exit_code == 0
        yield box
