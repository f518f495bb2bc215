"""Files of a box read and written by commands, so that the rights of the agent's user hold, and not those of root."""

from __future__ import annotations

import errno
import os
from pathlib import PurePosixPath

from ..execution import Result
from ..options import ExecOptions

# What the commands below say and where their programs are must not depend on the image or on the agent.
_ENVIRONMENT = {"LC_ALL": "C", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
_LIMIT = 600  # seconds: a file may be a pipe that nobody writes to

_NUMBERS = {
    "No such file or directory": errno.ENOENT,
    "Permission denied": errno.EACCES,
    "Is a directory": errno.EISDIR,
    "Not a directory": errno.ENOTDIR,
}


def reading(path: str) -> tuple[str, ...]:
    """A command that prints a file."""
    return "/bin/sh", "-c", 'exec cat -- "$1"', "sh", path


def writing(path: str) -> tuple[str, ...]:
    """A command that makes or replaces a file with its input. Missing directories are made."""
    parent = str(PurePosixPath(path).parent)
    return "/bin/sh", "-c", 'mkdir -p -- "$2" && exec cat > "$1"', "sh", path, parent


def file_options(user: str | None) -> ExecOptions:
    """The options of both."""
    return {**by(user), "env": _ENVIRONMENT, "timeout": _LIMIT}


def by(user: str | None) -> ExecOptions:
    """The options of a command of a user. None is the box's own."""
    return {} if user is None else {"user": user}


def failure(path: str, result: Result) -> OSError:
    """Why one of both has failed. Python makes it a FileNotFoundError and so on."""
    said = result.stderr.strip()
    number = next((number for text, number in _NUMBERS.items() if said.endswith(text)), errno.EIO)
    return OSError(number, said if number == errno.EIO else os.strerror(number), path)


def status(exit_code: int) -> int:
    """The exit code as shells tell it: 128+N after signal N."""
    return exit_code if exit_code >= 0 else 128 - exit_code
