"""A backend for deepagents: the agent's commands and files are in a box.

    with Sandbox("python:3.12") as box:
        agent = create_deep_agent(model=model, backend=BoxBackend(box))

The box needs a shell and, as all sandboxes of deepagents, python3.
"""

from __future__ import annotations

import errno

from deepagents.backends.protocol import (
    FILE_NOT_FOUND,
    INVALID_PATH,
    IS_DIRECTORY,
    PERMISSION_DENIED,
    ExecuteResponse,
    FileDownloadResponse,
    FileUploadResponse,
)
from deepagents.backends.sandbox import BaseSandbox

from .. import AsyncBox, Box, ExecOptions, InvalidArgumentError, ResourceExhaustedError, Result, TimeoutError
from ._commands import by, failure, file_options, reading, status, writing

_WORDS = {
    errno.ENOENT: FILE_NOT_FOUND,
    errno.EACCES: PERMISSION_DENIED,
    errno.EISDIR: IS_DIRECTORY,
    errno.ENOTDIR: INVALID_PATH,
}


class BoxBackend(BaseSandbox):
    """Runs an agent's commands in a box and keeps its files there. The box stays the caller's."""

    def __init__(self, box: Box, *, user: str | None = None, timeout: float = 120) -> None:
        """A user other than the box's own, and the seconds that a command may take unless it says otherwise; 0: any."""
        self._box, self._async = box, AsyncBox(box)
        self._user, self._timeout = user, timeout

    @property
    def id(self) -> str:
        """The id of the box."""
        return self._box.id

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        """Runs a command of the shell. Its exit code is 124 after a timeout."""
        try:
            return _response(self._box.run(*_shell(command), **self._options(timeout)))
        except (TimeoutError, ResourceExhaustedError) as e:
            return _cut_off(e)
        except InvalidArgumentError as e:  # such as a command that is too long: the model can send another
            return ExecuteResponse(e.message, 126)

    async def aexecute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        """The same for asyncio: a command whose task is cancelled is killed."""
        try:
            return _response(await self._async.run(*_shell(command), **self._options(timeout)))
        except (TimeoutError, ResourceExhaustedError) as e:
            return _cut_off(e)
        except InvalidArgumentError as e:  # such as a command that is too long: the model can send another
            return ExecuteResponse(e.message, 126)

    def _options(self, timeout: int | None) -> ExecOptions:
        seconds = self._timeout if timeout is None else timeout
        return {**by(self._user), "timeout": seconds} if seconds else by(self._user)

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        """Writes files. Missing directories are made."""
        return [FileUploadResponse(path, self._upload(path, content)) for path, content in files]

    def _upload(self, path: str, content: bytes) -> str | None:
        if not path.startswith("/"):
            return INVALID_PATH
        return _word(path, self._box.run(*writing(path), input=content, **file_options(self._user)))

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        """Reads files."""
        return [self._download(path) for path in paths]

    def _download(self, path: str) -> FileDownloadResponse:
        if not path.startswith("/"):
            return FileDownloadResponse(path, error=INVALID_PATH)
        result = self._box.run(*reading(path), **file_options(self._user))
        error = _word(path, result)
        return FileDownloadResponse(path, None if error else result.stdout_bytes, error)


def _shell(command: str) -> tuple[str, ...]:
    """A command whose output and errors come in the order in which they were written."""
    return "/bin/sh", "-c", 'exec /bin/sh -c "$1" 2>&1', "sh", command


def _response(result: Result) -> ExecuteResponse:
    return ExecuteResponse(result.stdout, status(result.exit_code))


def _cut_off(error: TimeoutError | ResourceExhaustedError) -> ExecuteResponse:
    timed_out = isinstance(error, TimeoutError)
    return ExecuteResponse(f"{error.stdout}\n{error.message}", 124 if timed_out else None, truncated=not timed_out)


def _word(path: str, result: Result) -> str | None:
    """What deepagents calls the failure, or None."""
    if result.exit_code == 0:
        return None
    error = failure(path, result)
    return _WORDS.get(error.errno or 0, str(error))
