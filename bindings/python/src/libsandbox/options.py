"""Where a runtime is, and what boxes and commands are made with."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict

from . import _check
from ._documents import ConfigError, InvalidArgumentError, Port, Volume
from .errors import ArgumentTypeError


@dataclass(frozen=True, repr=False)
class ApiKeyCredential:
    """An API key. However it is printed, it shows no more than its beginning and its last three characters."""

    key: str

    def __post_init__(self) -> None:
        _check.text("key", self.key)

    def __repr__(self) -> str:
        before, live, opaque = self.key.partition("_live_")
        shown = before + live + "*" * 12 + opaque[-3:] if len(opaque) >= 12 else "*" * 12
        return f"ApiKeyCredential({shown!r})"


@dataclass(frozen=True)
class ClientOptions:
    """The address of a daemon and the key for it."""

    url: str
    """http://HOST:PORT, https://HOST, or unix:///PATH, which needs no key."""

    credential: ApiKeyCredential | None = None
    path_prefix: str | None = None
    """The prefix of the server's routes of boxes, if it has one."""

    @classmethod
    def from_env(cls) -> ClientOptions:
        """Reads SANDBOX_REST_URL, SANDBOX_API_KEY and SANDBOX_REST_PATH_PREFIX. Raises ConfigError without a URL."""
        url = os.environ.get("SANDBOX_REST_URL")
        if not url:
            raise ConfigError("SANDBOX_REST_URL is not set: set it to the server's address")
        key = os.environ.get("SANDBOX_API_KEY")
        return cls(url, ApiKeyCredential(key) if key else None, os.environ.get("SANDBOX_REST_PATH_PREFIX") or None)


@dataclass(frozen=True)
class Registry:
    """A host that images are pulled from."""

    host: str
    transport: str = "https"
    """Or http."""

    username: str | None = None
    password: str | None = field(default=None, repr=False)
    bearer_token: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Terminal:
    """The size of a terminal in characters."""

    cols: int = 80
    rows: int = 24


@dataclass(frozen=True)
class Progress:
    """How far a copy, or the pull or import of an image, has come."""

    stage: str
    """copy; of an image's layer one of ImageStage."""

    part: int
    """Which layer, from 1; 1 of a copy."""

    parts: int
    done: int
    """Bytes."""

    total: int | None


ProgressFunction = Callable[[Progress], object]


class HealthCheckOptions(TypedDict, total=False):
    """How it is found out whether the main command works. What is left out is as the image says."""

    test: Sequence[str]
    """CMD and a command, CMD-SHELL and a line for /bin/sh -c, or NONE alone."""

    interval_ms: int
    """Between the end of a check and the next one: 30000."""

    timeout_ms: int
    """Of one check, which has failed then: 30000."""

    start_period_ms: int
    """From the start of the command; until then no failure counts."""

    start_interval_ms: int
    """As interval_ms, within the start period: 5000."""

    retries: int
    """How many checks fail one after another until the command is unhealthy: 3."""


class CloneOptions(TypedDict, total=False):
    """In what a clone can differ from its box. What is left out is as the box has it."""

    env: Mapping[str, str]
    volumes: Iterable[Volume]
    network: str
    """Isolated, or None for no network."""

    ports: Iterable[Port]
    cpus: int
    memory_mib: int
    disk_size_gb: int
    working_dir: str
    auto_remove: bool
    """Remove the box when it stops, or when its runtime is closed: True."""

    ttl_seconds: int
    """How long the box lives from each start and resume, at most a year. Without end."""

    idle_seconds: int
    """How long nobody may use it: no command, no stream, no file and no connection. Without end."""

    on_expiry: str
    """What becomes of it then: stop, pause or remove: stop."""

    auto_start: bool
    """What needs the box to run starts it where it is stopped, and resumes it where it is paused: False."""

    seccomp: str
    """Which system calls it has: strict is what Python, bash and compilers need. default."""

    allow_unenforced_limits: bool
    """Run where the host gives the user no cgroups to enforce limits with, too: False."""

    command: str | Sequence[str]
    """The main command, which is started with the box: its arguments, or "image" for the image's own. None."""

    restart: str
    """When it is started again: always, on-failure, on-failure:N or no: no."""

    stop_with_command: bool
    """Stop the box when the command has ended for good: False."""

    healthcheck: HealthCheckOptions


class BoxOptions(CloneOptions, total=False):
    """What a box can be made with besides an image. All may be left out."""

    name: str
    rootfs_path: str
    """A directory of the host in place of an image. It is used read-only."""


class BoxChanges(TypedDict, total=False):
    """What can be changed of a box. What is left out stays as it is."""

    ttl_seconds: int | None
    """How long the box lives from now on, and from each start and resume; None for no end."""

    idle_seconds: int | None
    """How long nobody may use it; None for no end."""

    on_expiry: str

    auto_start: bool


class ExecOptions(TypedDict, total=False):
    """How a command can be run. All may be left out."""

    env: Mapping[str, str]
    """Added to the box's."""

    cwd: str
    """Absolute, in the box."""

    user: str
    """A name or a number, optionally with :group."""

    timeout: float
    """Seconds, after which the command and all that it started are killed."""


_BOX_TYPES: dict[str, type] = {
    **{"auto_remove": bool, "auto_start": bool, "stop_with_command": bool, "allow_unenforced_limits": bool},
    **{"working_dir": str, "on_expiry": str, "restart": str, "seccomp": str},
}
"""The types of the options of a box that are no numbers."""


class CodeOptions(TypedDict, total=False):
    """How code can be run. All may be left out."""

    language: str
    """One of Language: python."""

    context: str
    """The id of a context. The one that the language has of its own, which is made when it is needed."""

    env: Mapping[str, str]
    """Variables that only this run sees."""

    timeout: float
    """Seconds, after which the code is interrupted."""


class BuildOptions(TypedDict, total=False):
    """How an image can be built. All may be left out."""

    recipe: str
    """Its text. Else it is read from recipe_path."""

    recipe_path: str | os.PathLike[str]
    """A file of this host: Dockerfile in the context."""

    name: str
    """Of the image. It is made of the image's id."""

    target: str
    """The stage that becomes the image: the last one."""

    args: Mapping[str, str]
    """The values for ARG."""

    no_cache: bool
    """Carry out every step: False."""

    network: str
    """What the commands have: Isolated, or None for no network."""

    timeout: float
    """Seconds, of each command: 3600."""

    cpus: int
    """Of each box."""

    memory_mib: int


class ContextOptions(TypedDict, total=False):
    """What a context can be made with. All may be left out."""

    language: str
    """One of Language: python."""

    cwd: str
    """Absolute, in the box."""

    user: str
    """A name or a number, optionally with :group."""

    env: Mapping[str, str]
    """Added to the box's."""


def known(options: Mapping[str, Any], kind: type, what: str) -> dict[str, Any]:
    """The options that are set. Raises ArgumentTypeError for one that there is not."""
    unknown = options.keys() - kind.__annotations__
    if unknown:
        raise ArgumentTypeError(f"there is no option {', '.join(sorted(unknown))} of {what}")
    return {option: value for option, value in options.items() if value is not None}


def changes_document(changes: BoxChanges) -> bytes:
    """A document that changes a box, as C takes it."""
    known(changes, BoxChanges, "boxes that can be changed")
    for option, value in changes.items():
        if value is not None:
            _check.typed(option, value, _BOX_TYPES.get(option, int))
    return json.dumps(changes).encode()


def box_document(image: str | None, options: BoxOptions) -> tuple[bytes | None, bytes]:
    """The name of a box and its options document, as C takes them."""
    given = known(options, BoxOptions, "boxes")
    name, rootfs_path = given.pop("name", None), given.pop("rootfs_path", None)
    if (image is None) == (rootfs_path is None):
        raise InvalidArgumentError("give an image or rootfs_path")
    rootfs = {"RootfsPath": _text("rootfs_path", rootfs_path)} if image is None else {"Image": _text("image", image)}
    document = {"rootfs": rootfs, "env": [], "volumes": [], "network": "Isolated", "ports": [], **_members(given)}
    return _check.optional("name", name), json.dumps(document).encode()


def clone_document(n: int, name_prefix: str | None, snapshot: str | None, options: CloneOptions) -> bytes:
    """The document that clones a box, as C takes it."""
    document: dict[str, Any] = {"n": _check.integer("n", n)}
    for name, value in (("name_prefix", name_prefix), ("snapshot", snapshot)):
        if value is not None:
            document[name] = _text(name, value)
    changed = _members(known(options, CloneOptions, "clones"))
    return json.dumps(document | ({"options": changed} if changed else {})).encode()


def _members(given: dict[str, Any]) -> dict[str, Any]:
    """The options of a box as documents have them."""
    readers: dict[str, Callable[[Any], Any]] = {
        "env": lambda value: _check.pairs("env", value),
        "volumes": lambda value: _check.records("volumes", value, Volume),
        "network": lambda value: _text("network", value),
        "ports": lambda value: _check.records("ports", value, Port),
        "command": lambda value: value if isinstance(value, str) else _texts("command", value),
        "healthcheck": _health,
    }
    return {
        option: readers[option](value)
        if option in readers
        else _check.typed(option, value, _BOX_TYPES.get(option, int))
        for option, value in given.items()
    }


def _health(value: Any) -> dict[str, Any]:
    """A health check as documents have it."""
    if not isinstance(value, Mapping):
        raise ArgumentTypeError(f"healthcheck must be a mapping, not {type(value).__name__}")
    given = known(value, HealthCheckOptions, "health checks")
    return {
        name: _texts("healthcheck test", member) if name == "test" else _check.integer(name, member)
        for name, member in given.items()
    }


def _texts(name: str, values: object) -> list[str]:
    return [_text(f"{name}[{i}]", value) for i, value in enumerate(_check.typed(name, values, list, tuple))]


def code_document(code: str, options: CodeOptions) -> bytes:
    """The document that runs code, as C takes it."""
    given = known(options, CodeOptions, "code")
    document: dict[str, Any] = {"code": _text("code", code)}
    if "timeout" in given:
        document["timeout_ms"] = math.ceil(_check.number("timeout", given.pop("timeout"), low=1e-9) * 1000)
    return _with_env(document, given)


def build_document(context: bytes | None, options: BuildOptions) -> bytes:
    """The document that builds an image, as C takes it."""
    given = known(options, BuildOptions, "builds")
    document: dict[str, Any] = {} if context is None else {"context": os.fsdecode(context)}
    if "timeout" in given:
        document["timeout_ms"] = math.ceil(_check.number("timeout", given.pop("timeout"), low=1e-9) * 1000)
    if "network" in given:
        network = _text("network", given.pop("network"))
        if network not in ("Isolated", "None"):
            raise InvalidArgumentError(f"network is {network!r} and must be Isolated or None")
        document["no_network"] = network == "None"
    readers: dict[str, Callable[[Any], Any]] = {
        "recipe_path": lambda value: os.fsdecode(_check.path("recipe_path", value)),
        "args": lambda value: dict(_check.pairs("args", value)),
        "no_cache": lambda value: _check.typed("no_cache", value, bool),
        "cpus": lambda value: _check.integer("cpus", value),
        "memory_mib": lambda value: _check.integer("memory_mib", value),
    }
    read = {name: readers[name](value) if name in readers else _text(name, value) for name, value in given.items()}
    return json.dumps(document | read).encode()


def context_document(options: ContextOptions) -> bytes:
    """The document that makes a context, as C takes it."""
    given = known(options, ContextOptions, "contexts")
    document = {"working_dir": _text("cwd", given.pop("cwd"))} if "cwd" in given else {}
    return _with_env(document, given)


def _with_env(document: dict[str, Any], given: dict[str, Any]) -> bytes:
    """The document with an environment and texts."""
    document["env"] = dict(_check.pairs("env", given.pop("env", {})))
    return json.dumps(document | {option: _text(option, value) for option, value in given.items()}).encode()


def _text(name: str, value: object) -> str:
    return _check.text(name, value).decode()
