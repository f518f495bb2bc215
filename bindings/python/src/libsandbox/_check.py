"""Checks of arguments, before they reach C. What has the wrong type raises ArgumentTypeError."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from typing import Any

from ._documents import InvalidArgumentError
from .errors import ArgumentTypeError


def typed(name: str, value: Any, *types: type) -> Any:
    """Returns the value if it is of one of the types; True and False are no numbers."""
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        wanted = " or ".join(t.__name__ for t in types)
        raise ArgumentTypeError(f"{name} must be {wanted}, not {type(value).__name__}")
    return value


def text(name: str, value: object) -> bytes:
    """A str as C takes it."""
    try:
        encoded: bytes = typed(name, value, str).encode()
    except UnicodeEncodeError:
        raise InvalidArgumentError(f"{name} must be text that UTF-8 can hold") from None
    if b"\0" in encoded:
        raise InvalidArgumentError(f"{name} must not contain a NUL byte")
    return encoded


def optional(name: str, value: object) -> bytes | None:
    """A str, or None."""
    return None if value is None else text(name, value)


def moment(name: str, value: object) -> bytes | None:
    """A time as C takes it: a datetime (without a zone it is local), a text, or None."""
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc).isoformat().encode()
    return optional(name, value)


def path(name: str, value: object) -> bytes:
    """A path of this host: a str or a PathLike of one."""
    return text(name, os.fspath(value) if isinstance(value, os.PathLike) else value)


def texts(name: str, values: object) -> bytes:
    """A JSON array of strings."""
    listed = list(typed(name, values, list, tuple))
    for i, value in enumerate(listed):
        text(f"{name}[{i}]", value)
    return json.dumps(listed).encode()


def pairs(name: str, values: object) -> list[tuple[str, str]]:
    """The pairs of a mapping of str to str."""
    if not isinstance(values, Mapping):
        raise ArgumentTypeError(f"{name} must be a mapping, not {type(values).__name__}")
    for key, value in values.items():
        text(f"a key of {name}", key)
        text(f"{name}[{key!r}]", value)
    return list(values.items())


def number(name: str, value: object, low: float = 0, high: float = 1e9) -> float:
    """A number of a range."""
    checked = float(typed(name, value, int, float))
    if not low <= checked <= high:
        raise InvalidArgumentError(f"{name} is {value} and must be from {low:g} to {high:g}")
    return checked


def integer(name: str, value: object, low: int = -(2**31), high: int = 2**31 - 1) -> int:
    """A whole number of a range, which is C's int if none is given."""
    number(name, typed(name, value, int), low, high)
    return int(typed(name, value, int))


def records(name: str, values: object, kind: type) -> list[dict[str, Any]]:
    """The members of each record, without those that are None."""
    if not isinstance(values, Iterable) or isinstance(values, (str, bytes, Mapping)):
        raise ArgumentTypeError(f"{name} must be a list of {kind.__name__}, not {type(values).__name__}")
    return [
        {member: value for member, value in vars(typed(f"{name}[{i}]", record, kind)).items() if value is not None}
        for i, record in enumerate(values)
    ]
