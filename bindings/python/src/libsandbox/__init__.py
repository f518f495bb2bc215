"""Isolated Linux boxes from inside your own program.

    from libsandbox import Sandbox

    with Sandbox("python:3.12") as box:
        print(box.run("python3", "-c", "print(2**100)").stdout)

Runtime, Box, Execution and Sandbox have asynchronous twins for asyncio: AsyncRuntime and so on.
"""

from ._documents import VERSION as __version__
from ._documents import (
    AlreadyExistsError,
    BoxInfo,
    BoxMetrics,
    BoxState,
    BoxStatus,
    CanceledError,
    ConfigError,
    EngineError,
    ExecInfo,
    ExecStatus,
    ExecutionError,
    Failure,
    Image,
    ImageError,
    ImageStage,
    InternalError,
    InvalidArgumentError,
    InvalidStateError,
    NetworkError,
    NotFoundError,
    PermissionDeniedError,
    Port,
    Reason,
    ResourceExhaustedError,
    RuntimeMetrics,
    StoppedError,
    StorageError,
    Stream,
    TimeoutError,
    UnauthenticatedError,
    UnavailableError,
    UnsupportedError,
    Volume,
)
from ._support import SandboxError
from .aio import AsyncBox, AsyncExecution, AsyncImages, AsyncRuntime, AsyncSandbox
from .box import Box
from .errors import ArgumentTypeError, ClosedError, ForkedError, LibraryError
from .execution import Execution, Piece, Result
from .options import ApiKeyCredential, BoxChanges, BoxOptions, ClientOptions, ExecOptions, Progress, Registry, Terminal
from .runtime import Images, Runtime, Sandbox

__all__ = [
    "AlreadyExistsError",
    "ApiKeyCredential",
    "ArgumentTypeError",
    "AsyncBox",
    "AsyncExecution",
    "AsyncImages",
    "AsyncRuntime",
    "AsyncSandbox",
    "Box",
    "BoxChanges",
    "BoxInfo",
    "BoxMetrics",
    "BoxOptions",
    "BoxState",
    "BoxStatus",
    "CanceledError",
    "ClientOptions",
    "ClosedError",
    "ConfigError",
    "EngineError",
    "ExecInfo",
    "ExecOptions",
    "ExecStatus",
    "Execution",
    "ExecutionError",
    "Failure",
    "ForkedError",
    "Image",
    "ImageError",
    "ImageStage",
    "Images",
    "InternalError",
    "InvalidArgumentError",
    "InvalidStateError",
    "LibraryError",
    "NetworkError",
    "NotFoundError",
    "PermissionDeniedError",
    "Piece",
    "Port",
    "Progress",
    "Reason",
    "Registry",
    "ResourceExhaustedError",
    "Result",
    "Runtime",
    "RuntimeMetrics",
    "Sandbox",
    "SandboxError",
    "StoppedError",
    "StorageError",
    "Stream",
    "Terminal",
    "TimeoutError",
    "UnauthenticatedError",
    "UnavailableError",
    "UnsupportedError",
    "Volume",
    "__version__",
]
