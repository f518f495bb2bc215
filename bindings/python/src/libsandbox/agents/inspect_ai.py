"""The sandbox provider "libsandbox" of inspect_ai: a box for each sample.

inspect_ai finds it by its entry point. It works with asyncio, which is inspect_ai's default.
"""

from __future__ import annotations

import errno
from contextlib import AsyncExitStack
from pathlib import PurePosixPath
from typing import Any, Literal, cast, overload

from inspect_ai.util import (
    ExecResult,
    OutputLimitExceededError,
    SandboxEnvironment,
    SandboxEnvironmentLimits,
    SandboxUnavailableError,
    sandboxenv,
)
from inspect_ai.util._sandbox.environment import SandboxEnvironmentConfigType
from pydantic import BaseModel

from .. import (
    AsyncBox,
    AsyncSandbox,
    BoxOptions,
    CanceledError,
    ClosedError,
    EngineError,
    ExecOptions,
    ExecutionError,
    InvalidArgumentError,
    InvalidStateError,
    NotFoundError,
    ResourceExhaustedError,
    Result,
    SandboxError,
    StoppedError,
    TimeoutError,
    UnavailableError,
)
from ._commands import by, failure, file_options, reading, status, writing

_GONE = (CanceledError, ClosedError, EngineError, InvalidStateError, NotFoundError, StoppedError, UnavailableError)


class BoxConfig(BaseModel, frozen=True, extra="forbid"):
    """What the boxes of a task or a sample are made with. A str in its place is the image."""

    image: str = "default"
    user: str | None = None
    """Runs commands that name no user, and reads and writes files; the image's own if it is not given."""

    working_dir: str | None = None
    network: Literal["None", "Isolated"] = "None"
    cpus: int | None = None
    memory_mib: int | None = None
    disk_size_gb: int | None = None

    def options(self) -> BoxOptions:
        """The options of a box."""
        return cast(BoxOptions, self.model_dump(exclude={"image", "user"}, exclude_none=True))


@sandboxenv(name="libsandbox")
class BoxEnvironment(SandboxEnvironment):
    """The box of a sample. It is where Runtime.open says, and is removed with the sample."""

    def __init__(self, box: AsyncBox, user: str | None, directory: str, owned: AsyncExitStack) -> None:
        super().__init__()
        self.box = box
        self._user, self._directory, self._owned = user, PurePosixPath(directory), owned

    @classmethod
    async def sample_init(
        cls, task_name: str, config: SandboxEnvironmentConfigType | None, metadata: dict[str, str]
    ) -> dict[str, SandboxEnvironment]:
        """Makes the box."""
        settings = _settings(config)
        async with AsyncExitStack() as stack:
            box = await stack.enter_async_context(AsyncSandbox(settings.image, **settings.options()))
            where = await box.run("/bin/sh", "-c", "pwd", **by(settings.user))
            return {"default": cls(box, settings.user, where.stdout.rstrip("\n"), stack.pop_all())}

    @classmethod
    async def sample_cleanup(
        cls,
        task_name: str,
        config: SandboxEnvironmentConfigType | None,
        environments: dict[str, SandboxEnvironment],
        interrupted: bool,
    ) -> None:
        """Removes the box, also after an interruption."""
        for environment in environments.values():
            await environment.as_type(BoxEnvironment)._owned.aclose()

    @classmethod
    def config_deserialize(cls, config: dict[str, Any]) -> BaseModel:
        """Reads a BoxConfig of a log."""
        return BoxConfig(**config)

    async def exec(
        self,
        cmd: list[str],
        input: str | bytes | None = None,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        user: str | None = None,
        timeout: int | None = None,
        timeout_retry: bool = True,
        concurrency: bool = True,
    ) -> ExecResult[str]:
        """Runs a command. After a timeout all that it started is killed, so nothing is tried again."""
        options: ExecOptions = {**by(user or self._user), "cwd": self._path(cwd or "."), "env": env or {}}
        if timeout is not None:
            options["timeout"] = timeout
        try:
            result = await self._run(*cmd, input=input, options=options)
        except (ExecutionError, InvalidArgumentError) as e:
            return _not_started(cmd, e)
        except TimeoutError as e:
            vars(e).update(truncated_output=e.stdout + e.stderr)  # inspect_ai shows it to the model
            raise
        code = status(result.exit_code)
        return ExecResult(code == 0, code, result.stdout, result.stderr)

    async def _run(
        self, *cmd: str, input: str | bytes | None = None, limit: int | None = None, options: ExecOptions
    ) -> Result:
        most = SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE if limit is None else limit
        try:
            return await self.box.run(*cmd, input=input, max_output=most, **options)
        except ResourceExhaustedError as e:
            raise _exceeded(e, limit) from None
        except _GONE as e:
            raise SandboxUnavailableError(f"the box can't run commands: {e.message}") from e

    async def write_file(self, file: str, contents: str | bytes) -> None:
        """Makes or replaces a file."""
        result = await self._run(*writing(self._path(file)), input=contents, options=file_options(self._user))
        if result.exit_code != 0:
            raise failure(file, result)

    @overload
    async def read_file(self, file: str, text: Literal[True] = True) -> str: ...

    @overload
    async def read_file(self, file: str, text: Literal[False]) -> bytes: ...

    async def read_file(self, file: str, text: bool = True) -> str | bytes:
        """The content of a file."""
        limit = SandboxEnvironmentLimits.MAX_READ_FILE_SIZE
        result = await self._run(*reading(self._path(file)), limit=limit, options=file_options(self._user))
        if result.exit_code != 0:
            raise failure(file, result)
        return result.stdout_bytes.decode() if text else result.stdout_bytes

    def default_polling_interval(self) -> float:
        """Seconds. A command costs little here."""
        return 0.2

    def _path(self, path: str) -> str:
        return str(self._directory / path)


def _settings(config: SandboxEnvironmentConfigType | None) -> BoxConfig:
    if isinstance(config, BoxConfig):
        return config
    if isinstance(config, BaseModel):
        raise TypeError(f"the provider libsandbox takes a BoxConfig or an image, not {type(config).__name__}")
    return BoxConfig() if config is None else BoxConfig(image=config)


def _not_started(cmd: list[str], error: SandboxError) -> ExecResult[str]:
    if error.message.endswith("permission denied"):
        raise PermissionError(errno.EACCES, error.message, cmd[0]) from None
    return ExecResult(False, error.exit_code or 126, error.stdout, error.stderr or error.message)


def _exceeded(error: SandboxError, limit: int | None) -> OutputLimitExceededError:
    if limit is not None:
        return OutputLimitExceededError(SandboxEnvironmentLimits.MAX_READ_FILE_SIZE_STR, None)
    return OutputLimitExceededError(SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE_STR, error.stdout + error.stderr)
