"""The standard tests of sandboxes of langchain-tests, and what they don't ask."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deepagents.backends.protocol import SandboxBackendProtocol
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_tests.integration_tests import SandboxIntegrationTests

from examples.agents.deep_agent import ask
from libsandbox import Box, ExecStatus
from libsandbox.agents.deepagents import BoxBackend


class TestStandard(SandboxIntegrationTests):
    @pytest.fixture(scope="class", params=[None, "nobody"])
    def sandbox(self, request: pytest.FixtureRequest, box: Box) -> SandboxBackendProtocol:
        """As root and as somebody, who has to be able to write what the other left."""
        box.run("rm", "-rf", self.sandbox_root_dir)
        return BoxBackend(box, user=request.param)


def test_a_user_owns_what_it_writes(box: Box) -> None:
    backend = BoxBackend(box, user="nobody")
    assert backend.write("/tmp/mine/file", "x").error is None
    assert backend.execute("stat -c %U /tmp/mine/file").output == "nobody\n"
    assert backend.upload_files([("/etc/passwd", b"")])[0].error == "permission_denied"
    assert backend.upload_files([("/tmp/mine", b"")])[0].error == "is_directory"
    assert backend.upload_files([("/etc/passwd/x", b"")])[0].error is not None


def test_execute(box: Box) -> None:
    backend = BoxBackend(box, timeout=2)
    assert backend.id == box.id
    both = backend.execute("echo a; echo b >&2; echo c; kill -9 $$")
    assert (both.output, both.exit_code) == ("a\nb\nc\n", 137)
    late = backend.execute("echo begun; sleep 1000")
    assert late.exit_code == 124 and late.output.startswith("begun\n")
    assert backend.execute("sleep 3", timeout=0).exit_code == 0
    long = backend.execute("echo " + "x" * 200_000)
    assert long.exit_code == 126 and "at most" in long.output
    flood = backend.execute("head -c 100000000 /dev/zero", timeout=60)
    assert flood.truncated and flood.exit_code is None


async def test_a_cancelled_command_is_killed(box: Box) -> None:
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(BoxBackend(box).aexecute("sleep 1000"), 2)
    while (last := box.execs()[0]).status is ExecStatus.RUNNING:
        await asyncio.sleep(0.01)
    assert last.status is ExecStatus.CANCELED


class Fixed(GenericFakeChatModel):
    """A model that says one thing after the other."""

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self


def test_agent(home: Path) -> None:
    def call(name: str, **arguments: str) -> AIMessage:
        return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": name}])

    def steps() -> Iterator[AIMessage]:
        yield call("write_file", file_path="/work/a.py", content="print(6 * 7)")
        yield call("execute", command="python3 /work/a.py > /work/out; cat /work/out")
        yield AIMessage("done")

    assert ask(Fixed(messages=steps()), "compute", "default") == "done"
