"""The failures that are the binding's own. They belong to classes of the C library's codes."""

from ._documents import EngineError, InvalidArgumentError, InvalidStateError


class ArgumentTypeError(InvalidArgumentError, TypeError):
    """An argument has a type that the function does not take. Nothing was done."""


class ClosedError(InvalidArgumentError):
    """What is used was closed."""


class ForkedError(InvalidStateError):
    """The library is used in a child that fork made, where it can't work: its threads stayed in the parent."""


class LibraryError(EngineError):
    """libsandbox.so is missing, can't be loaded, or is of another version."""
