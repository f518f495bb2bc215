"""Code that runs in contexts of a box, which keep what it defines."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _check
from ._calls import call
from ._documents import (
    CodeContext,
    CodeError,
    CodeEvent,
    CodeEventType,
    CodeResult,
    CodeStatus,
    ResourceExhaustedError,
)
from ._feed import Feed
from ._library import library
from ._part import BoxPart
from ._support import SandboxError
from .execution import MAX_OUTPUT
from .options import CodeOptions, ContextOptions, code_document, context_document

if TYPE_CHECKING:
    from typing_extensions import Unpack


@dataclass(frozen=True, kw_only=True)
class CodeOutcome:
    """What came of code that ran to its end."""

    context_id: str
    execution_count: int
    """From 1 on, since the context was made or restarted."""

    fresh: bool
    """The context was made for this run."""

    stdout: str
    stderr: str
    results: tuple[CodeResult, ...]
    """What the code has shown, in its order."""

    error: CodeError | None
    """Why it ended, unless it succeeded."""

    status: CodeStatus
    duration_ms: int
    restarted: bool
    """The process of the context has ended, and what the code had defined is lost: the context has begun anew."""

    @property
    def text(self) -> str | None:
        """The value of the last expression as text; None if it has none."""
        return next((result.text for result in self.results if result.is_main), None)


class _Gathered:
    """What code told, kept up to a limit of characters."""

    def __init__(self, limit: int) -> None:
        self._limit, self._size = limit, 0
        self._texts: dict[CodeEventType, list[str]] = {CodeEventType.STDOUT: [], CodeEventType.STDERR: []}
        self._results: list[CodeResult] = []
        self._error: CodeError | None = None

    def add(self, event: CodeEvent) -> None:
        """Keeps an event. Raises ResourceExhaustedError if it is too much."""
        self._size += _size((event.text, event.result))
        if self._size > self._limit:
            raise ResourceExhaustedError(f"the code printed and showed more than {self._limit} characters")
        if event.text is not None:
            self._texts[event.type].append(event.text)
        if event.result is not None:
            self._results.append(event.result)
        self._error = event.error or self._error

    def printed(self, kind: CodeEventType) -> str:
        """What was printed on a stream."""
        return "".join(self._texts[kind])

    def explain(self, error: SandboxError) -> None:
        """Adds what there is of output to a failure."""
        error.stdout, error.stderr = self.printed(CodeEventType.STDOUT), self.printed(CodeEventType.STDERR)

    def outcome(self, start: CodeEvent, end: CodeEvent) -> CodeOutcome:
        """The whole of a run."""
        return CodeOutcome(
            context_id=start.context_id or "",
            execution_count=start.execution_count or 0,
            fresh=start.fresh,
            stdout=self.printed(CodeEventType.STDOUT),
            stderr=self.printed(CodeEventType.STDERR),
            results=tuple(self._results),
            error=self._error,
            status=end.status or CodeStatus.LOST,
            duration_ms=end.duration_ms or 0,
            restarted=end.restarted,
        )


def _size(value: object) -> int:
    """How many characters a value holds."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return _size((*value, *value.values()))
    if isinstance(value, (tuple, list)):
        return sum(map(_size, value), len(value))
    return _size(vars(value)) if hasattr(value, "__dict__") else 1


class CodeRun(Feed[CodeEvent]):
    """Code that runs in a context of a box. Iterating yields its events; the first has the type START, the last END.

    One thread at a time reads; close is allowed from others. An event that a read was interrupted
    in, or that came after its timeout, is given to the next read. While nobody reads, code that
    prints much waits. The end of a with block closes it, which interrupts code that still runs.
    """

    _what, _name = "run", "code"
    _quiet = "the code has told nothing in this time"
    _parse = staticmethod(CodeEvent.parse)

    _start: CodeEvent
    _end: CodeEvent

    def _take(self, event: CodeEvent) -> bool:
        if event.type is CodeEventType.START:
            self._start = event
        self._end = event
        return event.type is CodeEventType.END

    def result(self, max_output: int = MAX_OUTPUT) -> CodeOutcome:
        """Waits for the end, and returns all that was not read before.

        Raises ResourceExhaustedError (more than max_output characters), and what read raises.
        """
        gathered = self.gathered(max_output)
        try:
            for event in self:
                gathered.add(event)
        except SandboxError as e:
            gathered.explain(e)
            raise
        return self.outcome(gathered)

    @staticmethod
    def gathered(max_output: int) -> _Gathered:
        """Room for what the code tells."""
        return _Gathered(_check.integer("max_output", max_output, 0, sys.maxsize))

    def outcome(self, gathered: _Gathered) -> CodeOutcome:
        """The whole of a run that was read to its end."""
        return gathered.outcome(self._start, self._end)

    def close(self) -> None:
        """Interrupts code that still runs, and waits for its end. Code that goes on for 2 seconds is killed.

        A read that another thread waits in raises CanceledError. A second call does nothing.
        """
        call(super().close)


class BoxCode(BoxPart):
    """What a box does with code. It must run, and have the language: python3, node or bash.

    A context is a process of a language, which keeps what code defines for the next run. All raise
    NotFoundError (the box, the context), InvalidStateError (the box does not run) and
    InvalidArgumentError.
    """

    def run_code(self, code: str, *, max_output: int = MAX_OUTPUT, **options: Unpack[CodeOptions]) -> CodeOutcome:
        """Runs code to its end and returns all that it told. CodeOptions has the options.

        Code that fails, or runs out of its timeout, raises nothing: the status and the error of the
        outcome say so. Code whose run raises, or is interrupted here, is interrupted. Raises what
        start_code and CodeRun.result do.
        """
        CodeRun.gathered(max_output)  # a limit that can't be is refused before the code runs
        with self.start_code(code, **options) as run:
            return run.result(max_output)

    def start_code(self, code: str, **options: Unpack[CodeOptions]) -> CodeRun:
        """Runs code, and returns when it has begun: runs in the same context wait for each other.

        Raises ExecutionError (the box does not have the language), InvalidStateError too (another
        program runs code in the context), ResourceExhaustedError (too many runs wait) and
        TimeoutError (the language does not start).
        """
        document = code_document(code, options)
        with self._second() as pointer:
            made = call(
                lambda: library().handle("code_start", pointer, document),
                lambda late: library().free("code_free", late),
            )
        return CodeRun(made)

    def contexts(self) -> list[CodeContext]:
        """The contexts of the box, the newest first."""
        return [CodeContext.parse(document) for document in self._document("context_list")]

    def create_context(self, **options: Unpack[ContextOptions]) -> CodeContext:
        """Makes a context. ContextOptions has the options.

        Raises ExecutionError (the box does not have the language) and ResourceExhaustedError (it has
        as many contexts as it may have).
        """
        return self._on_context("context_create", context_document(options))

    def interrupt_context(self, context_id: str) -> CodeContext:
        """Interrupts the code that a context runs, as Ctrl-C does. Between two runs nothing happens."""
        return self._on_context("context_interrupt", _check.text("context_id", context_id))

    def restart_context(self, context_id: str) -> CodeContext:
        """Ends the processes of a context and starts it anew, with nothing of what code has defined."""
        return self._on_context("context_restart", _check.text("context_id", context_id))

    def remove_context(self, context_id: str) -> None:
        """Ends a context with all of its processes."""
        given = _check.text("context_id", context_id)
        with self._second() as pointer:
            call(lambda: library().call("context_remove", pointer, given))

    def _on_context(self, name: str, argument: bytes) -> CodeContext:
        document: Any = self._document(name, argument)
        return CodeContext.parse(document)
