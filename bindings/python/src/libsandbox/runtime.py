"""A runtime: the home or the daemon that boxes and images are on."""

from __future__ import annotations

import json
import os
import threading
import weakref
from collections.abc import Iterable
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any

from . import _check
from ._calls import call
from ._documents import BoxInfo, Image, NotFoundError, Pushed, RuntimeMetrics, SnapshotNode
from ._library import Handle, library
from ._progress import reporting
from ._support import SandboxError
from .box import Box
from .build import Builds
from .errors import ClosedError
from .execution import Execution
from .options import BoxOptions, ClientOptions, ProgressFunction, Registry, box_document

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Runtime:
    """The boxes and images of a home on this host, or of a daemon. Threads may share it.

    Make one with open, local or remote. At the end of a with block, or of Python, it is
    closed: the boxes that it made are removed, but for those with auto_remove=False.
    """

    def __init__(self, pointer: int) -> None:
        self._handle = Handle("runtime", pointer, "runtime_free")
        self._executions: weakref.WeakSet[Execution] = weakref.WeakSet()
        self._closed = False
        self._lock = threading.RLock()  # of these two; a signal handler may close, too
        self.images = Images(self)

    @classmethod
    def open(cls, profile: str | None = None) -> Runtime:
        """Chooses as the command line does: a profile, or what the environment says, or the daemon, or this process.

        With no profile it is the server of SANDBOX_REST_URL and SANDBOX_API_KEY, else the daemon of
        the home, else the home itself.
        """
        return cls._make("runtime_open", _check.optional("profile", profile))

    @classmethod
    def local(cls, home: str | os.PathLike[str] | None = None, registries: Iterable[Registry] | None = None) -> Runtime:
        """Opens a home in this process, which needs root for boxes. Without registries the home's own are used."""
        directory = None if home is None else _check.path("home", home)
        hosts = None if registries is None else json.dumps(_check.records("registries", registries, Registry)).encode()
        return cls._make("runtime_new", directory, hosts)

    @classmethod
    def remote(cls, options: ClientOptions) -> Runtime:
        """Uses a daemon."""
        checked: ClientOptions = _check.typed("options", options, ClientOptions)
        key = checked.credential and checked.credential.key
        return cls._make(
            "runtime_new_remote",
            _check.text("url", checked.url),
            _check.optional("credential", key),
            _check.optional("path_prefix", checked.path_prefix),
        )

    @classmethod
    def _make(cls, name: str, *arguments: bytes | None) -> Runtime:
        return cls(call(lambda: library().handle(name, *arguments), lambda made: library().free("runtime_free", made)))

    @property
    def pointer(self) -> int:
        """The handle as C has it."""
        return self._handle.pointer

    def create(self, image: str | None = None, **options: Unpack[BoxOptions]) -> Box:
        """Makes a box of an image, which is pulled if it is not there, and starts it. BoxOptions has the options."""
        return Box(self, self.make(image, options))

    def make(self, image: str | None, options: BoxOptions) -> int:
        """A new box as a handle of C."""
        name, document = box_document(image, options)
        arguments = [document] if name is None else [name, document]
        function = "create_box" if name is None else "create_named_box"
        return call(lambda: library().handle(function, self.pointer, *arguments), self._abandon)

    def _abandon(self, pointer: int) -> None:
        """Removes a box whose maker was interrupted."""
        library().call("remove", self.pointer, library().text("box_id", pointer).encode(), 1)
        library().free("box_free", pointer)

    def get(self, id_or_name: str) -> Box:
        """A box that is there, by its name, its id or the beginning of that."""
        reference = _check.text("id_or_name", id_or_name)
        free = library().free
        get = call(lambda: library().handle("get", self.pointer, reference), lambda got: free("box_free", got))
        return Box(self, get)

    def boxes(self) -> list[BoxInfo]:
        """All boxes, the newest first, whoever made them. Their env is None."""
        return [BoxInfo.parse(document) for document in self._json("list_info")]

    def info(self, id_or_name: str) -> BoxInfo:
        """One box, found as by get."""
        return BoxInfo.parse(self._json("get_info", _check.text("id_or_name", id_or_name)))

    def remove(self, id_or_name: str, force: bool = False) -> None:
        """Removes a box and its disk. One that runs is removed only with force."""
        arguments = _check.text("id_or_name", id_or_name), int(_check.typed("force", force, bool))
        call(lambda: library().call("remove", self.pointer, *arguments))

    def snapshots(self, box: str | None = None) -> list[SnapshotNode]:
        """The snapshots of a box, which may be gone, or of all boxes: each behind the one that it stands on."""
        reference = _check.optional("box", box)
        found = call(lambda: library().json("snapshots", self.pointer, reference))
        return [SnapshotNode.parse(document) for document in found]

    def metrics(self) -> RuntimeMetrics:
        """What the runtime has counted."""
        return RuntimeMetrics.parse(self._json("runtime_metrics"))

    def shutdown(self, timeout: int | None = 10) -> None:
        """Stops the boxes that this runtime made, with as many seconds between SIGTERM and SIGKILL; None waits."""
        seconds = -1 if timeout is None else _check.integer("timeout", timeout, 1)
        call(lambda: library().call("runtime_shutdown", self.pointer, seconds))

    def _json(self, name: str, *arguments: bytes) -> Any:
        return call(lambda: library().json(name, self.pointer, *arguments))

    def adopt(self, execution: Execution) -> Execution:
        """Has an execution closed with the runtime.

        Raises ClosedError if that is being closed already: who waits for the descriptors would never be woken.
        The caller ends the execution then.
        """
        with self._lock:
            self._executions.add(execution)
            closed = self._closed
        if closed:
            raise ClosedError("the runtime was closed during the call")
        return execution

    def close(self) -> None:
        """Closes what was made with this runtime, and removes its boxes. A second call does nothing."""
        library().check()  # a forked child may have a lock that nobody releases
        with self._lock:
            self._closed = True
            executions = list(self._executions)
        for execution in executions:
            execution.close()
        call(self._handle.close)

    def __enter__(self) -> Runtime:
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class Images(Builds):
    """The images of a runtime."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = weakref.ref(runtime)

    def _pointer(self) -> int:
        runtime = self._runtime()
        return 0 if runtime is None else runtime.pointer

    def list(self) -> list[Image]:
        """All images."""
        return [Image.parse(document) for document in call(lambda: library().json("image_list", self._pointer()))]

    def pull(self, reference: str, progress: ProgressFunction | None = None) -> Image:
        """Gets an image from its registry, also if there is one of that name. progress runs on another thread."""
        return self._get("image_pull", progress, _check.text("reference", reference))

    def import_(self, name: str, source: str | os.PathLike[str], progress: ProgressFunction | None = None) -> Image:
        """Makes an image of a directory, a tar, a docker-archive or an OCI layout of this host."""
        return self._get("image_import", progress, _check.text("name", name), _check.path("source", source))

    def export(
        self,
        reference: str,
        path: str | os.PathLike[str],
        compression: str = "zstd",
        progress: ProgressFunction | None = None,
    ) -> None:
        """Writes an image to a file of this host, as an OCI archive. compression is zstd, gzip or none."""
        arguments = (
            _check.text("reference", reference),
            _check.path("path", path),
            _check.text("compression", compression),
        )
        with reporting(progress) as callback:
            call(lambda: library().call("image_export", self._pointer(), *arguments, callback, None))

    def push(
        self, reference: str, as_: str = "", compression: str = "zstd", progress: ProgressFunction | None = None
    ) -> Pushed:
        """Sends an image to the registry that as_ names, or its own name. What the registry has is not sent."""
        arguments = (
            _check.text("reference", reference),
            _check.text("as_", as_),
            _check.text("compression", compression),
        )
        pointer = self._pointer()
        with reporting(progress) as callback:
            return Pushed.parse(call(lambda: library().json("image_push", pointer, *arguments, callback, None)))

    def _get(self, function: str, progress: ProgressFunction | None, *arguments: bytes) -> Image:
        pointer = self._pointer()
        with reporting(progress) as callback:
            return Image.parse(call(lambda: library().json(function, pointer, *arguments, callback, None)))

    def remove(self, reference: str, force: bool = False) -> None:
        """Removes an image. One that boxes were made from, or that has aliases, is removed only with force."""
        arguments = _check.text("reference", reference), int(_check.typed("force", force, bool))
        call(lambda: library().call("image_remove", self._pointer(), *arguments))


class Sandbox(Box):
    """A box that is removed at the end of its with block, by close, or when Python exits.

    It is where Runtime.open says, unless a runtime is given.
    """

    def __init__(
        self, image: str | None = None, *, runtime: Runtime | None = None, **options: Unpack[BoxOptions]
    ) -> None:
        self._own = runtime is None
        where = Runtime.open() if runtime is None else _check.typed("runtime", runtime, Runtime)
        try:
            super().__init__(where, where.make(image, options))
        except SandboxError:
            if self._own:
                where.close()
            raise

    def close(self) -> None:
        """Removes the box. A second call does nothing."""
        if not self._handle.closed:
            with suppress(NotFoundError):  # removed already
                self._runtime.remove(self.id, force=True)
        super().close()
        if self._own:
            self._runtime.close()
