"""The package's own check of sandbox providers, and an evaluation."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from inspect_ai import eval
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.util import (
    OutputLimitExceededError,
    SandboxEnvironment,
    SandboxEnvironmentSpec,
    SandboxUnavailableError,
)
from inspect_ai.util._sandbox import self_check
from inspect_ai.util._sandbox.limits import override_max_exec_output_size
from inspect_ai.util._sandbox.registry import registry_find_sandboxenv
from inspect_ai.util._sandbox.self_check import *  # noqa: F403
from pydantic import ValidationError

from examples.agents.evaluation import power
from libsandbox import Runtime
from libsandbox.agents.inspect_ai import BoxConfig, BoxEnvironment

from ..scripts import made
from .conftest import BUSYBOX

CONFIG = BoxConfig(user="nobody", working_dir="/tmp")  # root may read and write everything
ALLOWED_FAILURES = {"test_exec_large_command": "the arguments of a command have at most 128 KiB (contract, section 1)"}


async def begin(config: BoxConfig | str | None = None) -> SandboxEnvironment:
    return (await registry_find_sandboxenv("libsandbox").sample_init("task", config, {}))["default"]


async def end(environment: SandboxEnvironment) -> None:
    await BoxEnvironment.sample_cleanup("task", None, {"default": environment}, False)


@pytest.fixture
def sandbox_env(request: pytest.FixtureRequest, shared: SandboxEnvironment) -> SandboxEnvironment:
    if reason := ALLOWED_FAILURES.get(request.node.name):
        request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
    return shared


@pytest.fixture(scope="session")
async def shared(home: Path) -> AsyncIterator[SandboxEnvironment]:
    """A box with ps, which the self check looks for processes with."""
    environment = await begin(CONFIG)
    await environment.write_file("/tmp/ps", BUSYBOX.read_bytes())
    installed = await environment.exec(["install", "-m", "755", "/tmp/ps", "/usr/bin/ps"], user="root")
    assert installed.success and (await environment.exec(["ps", "aux"])).success
    yield environment
    await end(environment)


def test_the_whole_self_check_runs() -> None:
    assert len(self_check.__all__) == 44
    assert not set(self_check.__all__) - globals().keys()


async def test_commands_that_fail(sandbox_env: SandboxEnvironment) -> None:
    missing = await sandbox_env.exec(["no-such-command"])
    assert (missing.returncode, missing.success) == (127, False) and "no-such-command" in missing.stderr
    long = await sandbox_env.exec(["echo", "x" * 200_000])
    assert long.returncode == 126 and "at most" in long.stderr
    assert "no such user" in (await sandbox_env.exec(["id"], user="nonexistent")).stderr
    with pytest.raises(TimeoutError) as late:
        await sandbox_env.exec(["sh", "-c", "echo begun; sleep 1000"], timeout=3)
    assert vars(late.value)["truncated_output"] == "begun\n"
    with override_max_exec_output_size(3), pytest.raises(OutputLimitExceededError, match="3 bytes"):
        await sandbox_env.exec(["echo", "long"])


async def test_image_and_end(home: Path, runtime: Runtime) -> None:
    before = made(runtime)
    environment = await begin("default")
    assert (await environment.exec(["id", "-un"])).stdout == "root\n"
    await environment.as_type(BoxEnvironment).box.stop()
    with pytest.raises(SandboxUnavailableError):
        await environment.exec(["true"])
    await end(environment)
    assert made(runtime) == before


def test_evaluation(runtime: Runtime, tmp_path: Path) -> None:
    command = {"command": "python3 -c 'print(2**100)' | tee answer"}
    steps = [
        ModelOutput.for_tool_call("mockllm", "bash", command),
        ModelOutput.for_tool_call("mockllm", "bash", {"command": "cat answer >&2; id -un"}),
        ModelOutput.from_content("mockllm", str(2**100)),
    ]
    for step in steps:
        step.usage = ModelUsage()  # to count tokens would need the network
    before = made(runtime)
    model = get_model("mockllm/model", custom_outputs=steps)
    [log] = eval(power("default"), model=model, log_dir=str(tmp_path), display="none")
    assert log.status == "success", log.error
    assert log.results is not None and log.samples is not None
    assert log.results.scores[0].metrics["accuracy"].value == 1
    answers = [message.text for message in log.samples[0].messages if message.role == "tool"]
    assert answers == [f"{2**100}\n", f"{2**100}\n\nroot\n"], log.samples[0].messages
    assert made(runtime) == before


def test_config() -> None:
    config = BoxConfig(image="a", user="b", cpus=1)
    assert SandboxEnvironmentSpec("libsandbox", config).model_dump()["config"] == config.model_dump()
    assert BoxEnvironment.config_deserialize(config.model_dump(exclude_none=True)) == config
    with pytest.raises(ValidationError):
        BoxEnvironment.config_deserialize({"memory": 1})
