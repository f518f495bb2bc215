"""What the generated records stand on."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from enum import Enum
from typing import Any, ClassVar, TypeVar

T = TypeVar("T")


class SandboxError(Exception):
    """A failure. Each code of the C library has a class of its own below this one."""

    code: ClassVar[int] = 0
    """The SandboxErrorCode."""

    exit_code: int | None = None
    """Of a command that could not be started: 127 if there is none of that name, else 126."""

    stdout: str = ""
    """What a command had printed when run gave up on it."""

    stderr: str = ""

    def __init__(self, message: str = "") -> None:
        super().__init__(message)
        self.message = message


class Word(str, Enum):
    """One of a set of words. A word that this version does not know is kept as it came."""

    @classmethod
    def _missing_(cls, value: object) -> Word:
        word = str.__new__(cls, value)
        word._name_ = word._value_ = str(value)
        return word

    def __str__(self) -> str:
        return str(self.value)


def maybe(read: Callable[[Any], T], value: Any) -> T | None:
    """Reads a value that may be None."""
    return None if value is None else read(value)


_TIME = re.compile(r"(\d+-\d+-\d+T\d+:\d+:\d+)(\.\d+)?(Z|[+-]\d\d:\d\d)")


def time(text: str) -> datetime:
    """Reads a time of RFC 3339, to the microsecond."""
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a time of RFC 3339")
    seconds, fraction, zone = match.groups()
    whole = datetime.fromisoformat(seconds + zone.replace("Z", "+00:00")).astimezone(timezone.utc)
    return whole + timedelta(microseconds=int(float(fraction or 0) * 1e6))
