"""The C library: where its file is, its prototypes, and calls that raise."""

from __future__ import annotations

import ctypes
import functools
import json
import os
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ._documents import FAILURES, VERSION, InternalError, ResourceExhaustedError
from .errors import ClosedError, ForkedError, LibraryError

STDIN, STDOUT, STDERR, EXIT = range(4)  # SandboxStream


class _Error(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int), ("message", ctypes.c_char_p)]


class Command(ctypes.Structure):
    """SandboxCommand."""

    _fields_ = [
        ("command", ctypes.c_char_p),
        ("args_json", ctypes.c_char_p),
        ("env_json", ctypes.c_char_p),
        ("workdir", ctypes.c_char_p),
        ("user", ctypes.c_char_p),
        ("timeout_secs", ctypes.c_double),
    ]


class TerminalSize(ctypes.Structure):
    """SandboxTerminal."""

    _fields_ = [("cols", ctypes.c_int), ("rows", ctypes.c_int)]


class ProgressRecord(ctypes.Structure):
    """SandboxProgress."""

    _fields_ = [
        ("stage", ctypes.c_char_p),
        ("part", ctypes.c_int),
        ("parts", ctypes.c_int),
        ("done", ctypes.c_longlong),
        ("total", ctypes.c_longlong),
    ]


ProgressCallback = ctypes.CFUNCTYPE(None, ctypes.POINTER(ProgressRecord), ctypes.c_void_p)

_HANDLE, _TEXT, _INT, _REAL, _SIZE = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_double, ctypes.c_size_t
_OUT_HANDLE, _OUT_INT, _OUT_SIZE = map(ctypes.POINTER, (_HANDLE, _INT, _SIZE))
_PROGRESS = (ProgressCallback, ctypes.c_void_p)

# The parameters of the functions that can fail, without the error at their end.
FALLIBLE: dict[str, tuple[Any, ...]] = {
    "runtime_new": (_TEXT, _TEXT, _OUT_HANDLE),
    "runtime_open": (_TEXT, _OUT_HANDLE),
    "runtime_new_remote": (_TEXT, _TEXT, _TEXT, _OUT_HANDLE),
    "runtime_shutdown": (_HANDLE, _INT),
    "runtime_metrics": (_HANDLE, _OUT_HANDLE),
    "create_box": (_HANDLE, _TEXT, _OUT_HANDLE),
    "create_named_box": (_HANDLE, _TEXT, _TEXT, _OUT_HANDLE),
    "start_box": (_HANDLE,),
    "pause_box": (_HANDLE, ctypes.c_int),
    "resume_box": (_HANDLE,),
    "update_box": (_HANDLE, ctypes.c_char_p),
    "stop_box": (_HANDLE,),
    "get": (_HANDLE, _TEXT, _OUT_HANDLE),
    "remove": (_HANDLE, _TEXT, _INT),
    "list_info": (_HANDLE, _OUT_HANDLE),
    "get_info": (_HANDLE, _TEXT, _OUT_HANDLE),
    "box_info": (_HANDLE, _OUT_HANDLE),
    "box_metrics": (_HANDLE, _OUT_HANDLE),
    "box_metrics_series": (_HANDLE, _TEXT, _TEXT, _INT, _OUT_HANDLE),
    "box_snapshot": (_HANDLE, _TEXT, _OUT_HANDLE),
    "box_clone": (_HANDLE, _TEXT, _OUT_HANDLE),
    "box_rollback": (_HANDLE, _TEXT),
    "box_diff": (_HANDLE, _TEXT, _INT, _TEXT, _OUT_HANDLE),
    "snapshots": (_HANDLE, _TEXT, _OUT_HANDLE),
    "exec_start": (_HANDLE, ctypes.POINTER(Command), _INT, ctypes.POINTER(TerminalSize), _OUT_HANDLE),
    "exec_list": (_HANDLE, _OUT_HANDLE),
    "exec_attach": (_HANDLE, _TEXT, _OUT_HANDLE),
    "exec_info": (_HANDLE, _OUT_HANDLE),
    "exec_read": (_HANDLE, ctypes.c_void_p, _SIZE, _OUT_SIZE, _OUT_INT),
    "exec_fd": (_HANDLE, _INT, _OUT_INT),
    "exec_write_stdin": (_HANDLE, _TEXT, _SIZE),
    "exec_close_stdin": (_HANDLE,),
    "exec_wait": (_HANDLE, _OUT_INT),
    "exec_kill": (_HANDLE, _REAL),
    "exec_signal": (_HANDLE, _INT),
    "exec_resize": (_HANDLE, _INT, _INT),
    "exec_detach": (_HANDLE,),
    "copy_in": (_HANDLE, _TEXT, _TEXT, _TEXT, *_PROGRESS),
    "copy_out": (_HANDLE, _TEXT, _TEXT, _TEXT, *_PROGRESS),
    "file_stat": (_HANDLE, _TEXT, _TEXT, _OUT_HANDLE),
    "file_list": (_HANDLE, _TEXT, _INT, _INT, _TEXT, _TEXT, _OUT_HANDLE),
    "file_make_dir": (_HANDLE, _TEXT, _INT, _TEXT, _OUT_HANDLE),
    "file_move": (_HANDLE, _TEXT, _TEXT, _TEXT, _OUT_HANDLE),
    "file_remove": (_HANDLE, _TEXT, _INT, _TEXT, _OUT_HANDLE),
    "watch_start": (_HANDLE, _TEXT, _INT, _TEXT, _OUT_HANDLE),
    "watch_read": (_HANDLE, _REAL, _OUT_HANDLE),
    "box_connect": (_HANDLE, _INT, _OUT_INT),
    "box_share": (_HANDLE, _INT, _INT, _OUT_HANDLE),
    "code_start": (_HANDLE, _TEXT, _OUT_HANDLE),
    "code_read": (_HANDLE, _REAL, _OUT_HANDLE),
    "context_create": (_HANDLE, _TEXT, _OUT_HANDLE),
    "context_list": (_HANDLE, _OUT_HANDLE),
    "context_interrupt": (_HANDLE, _TEXT, _OUT_HANDLE),
    "context_restart": (_HANDLE, _TEXT, _OUT_HANDLE),
    "context_remove": (_HANDLE, _TEXT),
    "image_list": (_HANDLE, _OUT_HANDLE),
    "image_pull": (_HANDLE, _TEXT, *_PROGRESS, _OUT_HANDLE),
    "image_import": (_HANDLE, _TEXT, _TEXT, *_PROGRESS, _OUT_HANDLE),
    "image_export": (_HANDLE, _TEXT, _TEXT, _TEXT, *_PROGRESS),
    "image_push": (_HANDLE, _TEXT, _TEXT, _TEXT, *_PROGRESS, _OUT_HANDLE),
    "image_remove": (_HANDLE, _TEXT, _INT),
    "build_start": (_HANDLE, _TEXT, _OUT_HANDLE),
    "build_read": (_HANDLE, _REAL, _OUT_HANDLE),
    "build_wait": (_HANDLE, _OUT_HANDLE),
}

# Result and parameters of those that can't.
INFALLIBLE: dict[str, tuple[Any, ...]] = {
    "version": (_TEXT,),
    "box_id": (_HANDLE, _HANDLE),
    "exec_id": (_HANDLE, _HANDLE),
    "runtime_free": (None, _HANDLE),
    "box_free": (None, _HANDLE),
    "exec_free": (None, _HANDLE),
    "watch_free": (None, _HANDLE),
    "code_free": (None, _HANDLE),
    "build_free": (None, _HANDLE),
    "free_string": (None, _HANDLE),
    "error_free": (None, ctypes.POINTER(_Error)),
}

_forked = False


def _mark_child() -> None:
    global _forked
    _forked = True


class Library:
    """The functions of the loaded library."""

    def __init__(self, file: Path) -> None:
        try:
            cdll = ctypes.CDLL(str(file))
            functions = {name: self._prototype(cdll, name) for name in (*FALLIBLE, *INFALLIBLE)}
        except (OSError, AttributeError) as e:
            raise LibraryError(f"{file} is not the library of version {VERSION}: {e}") from None
        found = functions["version"]().decode()
        if found != VERSION:
            raise LibraryError(f"{file} is version {found}, and this package needs {VERSION}")
        self.functions: dict[str, Callable[..., Any]] = functions
        os.register_at_fork(after_in_child=_mark_child)

    @staticmethod
    def _prototype(cdll: ctypes.CDLL, name: str) -> Any:
        function = getattr(cdll, "sandbox_" + name)
        if name in FALLIBLE:
            function.restype, function.argtypes = _INT, (*FALLIBLE[name], ctypes.POINTER(_Error))
        else:
            function.restype, *function.argtypes = INFALLIBLE[name]
        return function

    def call(self, name: str, *arguments: Any) -> None:
        """Calls a function that can fail, and raises its failure."""
        self.check()
        error = _Error()
        code = self.functions[name](*arguments, ctypes.byref(error))
        if code != 0:
            message = (error.message or b"").decode(errors="replace")
            self.functions["error_free"](ctypes.byref(error))
            raise FAILURES.get(code, InternalError)(message)

    def handle(self, name: str, *arguments: Any) -> int:
        """Calls a function whose last parameter is a handle that it makes."""
        out = ctypes.c_void_p()
        self.call(name, *arguments, ctypes.byref(out))
        return out.value or 0

    def integer(self, name: str, *arguments: Any) -> int:
        """Calls a function whose last parameter is a number that it gives."""
        out = ctypes.c_int()
        self.call(name, *arguments, ctypes.byref(out))
        return out.value

    def json(self, name: str, *arguments: Any) -> Any:
        """Calls a function whose last parameter is a document that it gives.

        Raises ResourceExhaustedError for one that Python can't read: what a box says may be nested as deep as it likes.
        """
        text = self._take(self.handle(name, *arguments))
        try:
            return json.loads(text)
        except RecursionError:
            raise ResourceExhaustedError(f"what sandbox_{name} gave is nested deeper than Python reads JSON") from None

    def text(self, name: str, handle: int) -> str:
        """Calls a function that returns a text of a handle, and NULL if that was released.

        Raises ClosedError then: another thread may close the runtime, and with it what a call has just made.
        """
        self.check()
        pointer = self.functions[name](handle)
        if not pointer:
            raise ClosedError("the runtime was closed during the call")
        return self._take(pointer)

    def _take(self, pointer: int) -> str:
        try:
            return ctypes.string_at(pointer).decode()
        finally:
            self.functions["free_string"](pointer)

    def free(self, name: str, handle: int) -> None:
        """Releases a handle. In a forked child it does nothing: the parent has the handle."""
        if not _forked:
            self.functions[name](handle)

    def check(self) -> None:
        """Raises ForkedError in a forked child."""
        if _forked:
            raise ForkedError(
                "this process was forked from one that had loaded libsandbox: start it with multiprocessing's"
                ' "spawn" or with subprocess instead'
            )


@functools.cache
def library() -> Library:
    """The library, loaded once: the file that SANDBOX_LIBRARY names, else the one in this package."""
    named = os.environ.get("SANDBOX_LIBRARY")
    file = Path(named) if named else Path(__file__).with_name("lib") / "libsandbox.so"
    if not file.is_file():
        raise LibraryError(f"there is no {file}: install the package's wheel, or name the library in SANDBOX_LIBRARY")
    return Library(file)


class Handle:
    """A handle of the library. It is released once: by close, when nobody refers to it, or when Python exits."""

    def __init__(self, what: str, pointer: int, free: str) -> None:
        self._what, self._pointer = what, pointer
        self._finalizer = weakref.finalize(self, library().free, free, pointer)

    @property
    def pointer(self) -> int:
        """The handle as C has it. Raises ClosedError after close, ForkedError in a forked child."""
        library().check()
        if self.closed:
            raise ClosedError(f"this {self._what} was closed")
        return self._pointer

    @property
    def closed(self) -> bool:
        """Whether the handle was released."""
        return not self._finalizer.alive

    def close(self) -> None:
        """Releases the handle. A second call does nothing."""
        self._finalizer()
