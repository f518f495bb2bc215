"""The driver of the conformance suite in Python: test/conformance/DRIVERS.md."""

from __future__ import annotations

import json
import signal
import sys
from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any

import libsandbox
from libsandbox import (
    ApiKeyCredential,
    Box,
    ClientOptions,
    Execution,
    Port,
    Runtime,
    SandboxError,
    Stream,
    Terminal,
    Volume,
    Watch,
)

IMAGE = {
    "digest",
    "architecture",
    "env",
    "working_dir",
    "user",
    "entrypoint",
    "cmd",
    "healthcheck",
    "stop_signal",
    "labels",
    "exposed_ports",
}

# Members that a document leaves out where it has nothing to say. The records have None or () there.
ABSENT = {
    "CodeEvent": {
        *("context_id", "execution_count", "fresh", "text", "result", "error", "status", "duration_ms", "restarted"),
    },
    "CodeResult": {
        *("text", "html", "markdown", "svg", "png", "jpeg", "pdf", "latex", "json", "javascript"),
        *("table", "chart", "extra"),
    },
    "BoxInfo": {"env", "seccomp", "unenforced_limits", "command", "restart", "stop_with_command", "healthcheck"},
    "FileEvent": {"path", "path_base64", "from_", "from_base64", "directory", "reason", "message"},
    "FileInfo": {"path_base64", "target_base64", "unreadable"},
    "MadeDirectory": {"path_base64", "target_base64", "unreadable"},
    "BoxState": {"reason", "command", "health"},
    "ExecInfo": {"env", "main"},
    "Image": {*IMAGE, "parent", "box"},
    "Port": {"host_ip"},
    "Snapshot": {*IMAGE, "parent"},
    "SnapshotNode": {*IMAGE, "parent"},
}


def plain(value: Any) -> Any:
    """A record as JSON has it."""
    if is_dataclass(value):
        absent = ABSENT.get(type(value).__name__, set())
        members = {field.name: getattr(value, field.name) for field in fields(value)}
        return {
            name.rstrip("_"): plain(member)
            for name, member in members.items()
            if (member is not False and member not in (None, ())) or name not in absent
        }
    if isinstance(value, (tuple, list)):
        return [plain(member) for member in value]
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return value


class Driver:
    """The operations, and what they hold."""

    runtime: Runtime

    def __init__(self) -> None:
        self.executions: dict[str, Execution] = {}
        self.watches: list[Watch] = []

    def box(self, asked: dict[str, Any]) -> Box:
        """The box that an operation names."""
        return self.runtime.get(asked["box"])

    def open(self, asked: dict[str, Any]) -> None:
        """Opens the runtime."""
        if asked.get("url") is None:
            self.runtime = Runtime.local()
            return
        key = asked.get("api_key")
        credential = None if key is None else ApiKeyCredential(key)
        self.runtime = Runtime.remote(ClientOptions(asked["url"], credential, asked.get("path_prefix")))

    def create(self, asked: dict[str, Any]) -> Any:
        """Makes a box of the binding's own options."""
        options = {name: value for name, value in asked.items() if name not in ("op", "image")}
        for name, kind in (("volumes", Volume), ("ports", Port)):
            if options.get(name) is not None:
                options[name] = [kind(**record) for record in options[name]]
        if options.get("env") is not None:
            options["env"] = dict(options["env"])
        return self.runtime.create(asked.get("image"), **options).info()

    def clone(self, asked: dict[str, Any]) -> Any:
        """Makes boxes like one, and answers with what is known of them."""
        options: dict[str, Any] = asked.get("options") or {}
        prefix, snapshot = asked.get("name_prefix"), asked.get("snapshot")
        clones = self.box(asked).clone(asked.get("n") or 1, name_prefix=prefix, snapshot=snapshot, **options)
        return [clone.info() for clone in clones]

    def exec_start(self, asked: dict[str, Any]) -> Any:
        """Starts a command and writes its input."""
        options: dict[str, Any] = {
            "env": dict(asked.get("env") or ()),
            "cwd": asked.get("working_dir"),
            "user": asked.get("user"),
        }
        if asked.get("timeout_ms"):
            options["timeout"] = asked["timeout_ms"] / 1000
        stdin, terminal = asked.get("stdin"), Terminal() if asked.get("tty") else None
        execution = self.box(asked).exec(*asked["cmd"], stdin=stdin is not None, terminal=terminal, **options)
        if stdin is not None:
            execution.write(b64decode(stdin))
            execution.close_stdin()
        self.executions[execution.id] = execution
        return {"id": execution.id}

    def exec_wait(self, asked: dict[str, Any]) -> Any:
        """Reads a command's output to its end."""
        execution = self.executions[asked["exec"]]
        output = {Stream.STDOUT: b"", Stream.STDERR: b""}
        for stream, data in execution:
            output[stream] += data
        answer: dict[str, Any] = {str(stream): b64encode(data).decode() for stream, data in output.items()}
        try:
            return {**answer, "exit_code": execution.wait(), "failure": None}
        except SandboxError as e:
            return {**answer, "exit_code": e.exit_code, "failure": failure(e)}

    def operation(self, op: str, asked: dict[str, Any]) -> Any:
        """Does one of the operations that are a call."""
        a, runtime = asked.get, self.runtime
        calls: dict[str, Callable[[], Any]] = {
            "close": runtime.close,
            "version": lambda: libsandbox.__version__,
            "metrics": runtime.metrics,
            "shutdown": lambda: runtime.shutdown(a("timeout_seconds") or 10),
            "get": lambda: runtime.info(asked["box"]),
            "list": runtime.boxes,
            "box_metrics": lambda: self.box(asked).metrics(),
            "start": lambda: self.box(asked).start(),
            "stop": lambda: self.box(asked).stop(),
            "pause": lambda: self.box(asked).pause(a("reclaim") or False),
            "update": lambda: self.box(asked).update(**asked["changes"]),
            "resume": lambda: self.box(asked).resume(),
            "snapshot": lambda: self.box(asked).snapshot(a("name")),
            "clone": lambda: self.clone(asked),
            "rollback": lambda: self.box(asked).rollback(asked["snapshot"]),
            "diff": lambda: list(self.box(asked).diff(a("from"))),
            "snapshots": lambda: runtime.snapshots(a("box")),
            "remove": lambda: runtime.remove(asked["box"], a("force") or False),
            "exec_info": lambda: self.executions[asked["exec"]].info(),
            "exec_kill": lambda: self.executions[asked["exec"]].kill(asked.get("grace_ms", 2000) / 1000),
            "exec_signal": lambda: self.executions[asked["exec"]].signal(asked["signal"]),
            "exec_list": lambda: self.box(asked).execs(),
            **self.on_files(asked),
            **self.on_code(asked),
            "copy_in": lambda: self.box(asked).copy_in(asked["host_path"], asked["box_path"], user=a("user")),
            "copy_out": lambda: self.box(asked).copy_out(asked["box_path"], asked["host_path"], user=a("user")),
            "image_list": runtime.images.list,
            "image_import": lambda: runtime.images.import_(asked["name"], asked["source"]),
            "image_build": lambda: self.image_build(asked),
            "image_remove": lambda: runtime.images.remove(asked["reference"], a("force") or False),
        }
        return calls[op]()

    def on_files(self, asked: dict[str, Any]) -> dict[str, Callable[[], Any]]:
        """The operations on the files of a box."""
        a, user = asked.get, asked.get("user")
        return {
            "stat_file": lambda: self.box(asked).stat_file(asked["path"], user),
            "list_files": lambda: list(self.box(asked).list_files(asked["path"], a("depth") or 1, user)),
            "make_directory": lambda: self.box(asked).make_directory(asked["path"], a("mode") or 0o755, user),
            "move_file": lambda: self.box(asked).move_file(asked["from"], asked["to"], user),
            "remove_file": lambda: self.box(asked).remove_file(asked["path"], a("recursive") or False, user),
            "watch_start": lambda: self.watch_start(asked),
            "watch_read": lambda: self.watches[asked["watch"]].read(30),
        }

    def on_code(self, asked: dict[str, Any]) -> dict[str, Callable[[], Any]]:
        """The operations on code and contexts of a box."""
        names = {"language": "language", "context": "context", "working_dir": "cwd", "user": "user", "env": "env"}
        options = {option: asked[name] for name, option in names.items() if asked.get(name) is not None}
        if asked.get("timeout_ms"):
            options["timeout"] = asked["timeout_ms"] / 1000
        return {
            "code": lambda: list(self.box(asked).start_code(asked["code"], **options)),
            "context_create": lambda: self.box(asked).create_context(**options),
            "context_list": lambda: self.box(asked).contexts(),
            "context_interrupt": lambda: self.box(asked).interrupt_context(asked["context"]),
            "context_restart": lambda: self.box(asked).restart_context(asked["context"]),
            "context_remove": lambda: self.box(asked).remove_context(asked["context"]),
        }

    def image_build(self, asked: dict[str, Any]) -> list[Any]:
        """Builds an image and answers with all events."""
        assert self.runtime
        names = ("context", "recipe", "name", "target", "args", "no_cache")
        options = {name: asked[name] for name in names if asked.get(name) is not None}
        if asked.get("timeout_ms"):
            options["timeout"] = asked["timeout_ms"] / 1000
        with self.runtime.images.start_build(**options) as build:
            events = list(build)
            build.result()
        return events

    def watch_start(self, asked: dict[str, Any]) -> Any:
        """Begins to watch a directory."""
        watch = self.box(asked).watch_files(asked["path"], asked.get("recursive") or False, asked.get("user"))
        self.watches.append(watch)
        return {"watch": len(self.watches) - 1}

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Does an operation and says what came of it."""
        op = asked["op"]
        try:
            own = {"open": self.open, "create": self.create, "exec_start": self.exec_start, "exec_wait": self.exec_wait}
            return {"result": plain(own[op](asked) if op in own else self.operation(op, asked))}
        except SandboxError as e:
            return {"failure": failure(e)}


def failure(e: SandboxError) -> dict[str, Any]:
    """A failure with the class of its code, which one of the binding's own exceptions is below."""
    kind = next(kind for kind in type(e).__mro__ if "code" in vars(kind))
    return {"code": e.code, "class": kind.__name__, "message": e.message}


def main() -> None:
    """Answers line by line."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    driver = Driver()
    for line in sys.stdin:
        print(json.dumps(driver.answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
