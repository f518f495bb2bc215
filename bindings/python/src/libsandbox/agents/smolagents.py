"""An executor for smolagents: the agent's Python code runs in a box.

    with Sandbox("python:3.12") as box:
        agent = CodeAgent(tools=[], model=model, executor=BoxExecutor(box))

The box needs python3, and pip if packages are to be installed.
"""

from __future__ import annotations

import json
import re
import select
import signal
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from smolagents import AgentError, AgentLogger, LogLevel
from smolagents.local_python_executor import CodeOutput
from smolagents.remote_executors import RemotePythonExecutor
from smolagents.tools import get_tools_definition_code

from .. import Box, ExecutionError, SandboxError
from ..execution import MAX_OUTPUT

_OPTIONAL_IMPORT = re.compile(r"^import (numpy|PIL)$", re.MULTILINE)
_GRACE = 2  # seconds that code has to end after its interruption
_SOURCE = Path(__file__).with_name("_interpreter.py").read_text(encoding="utf-8")


class _Interpreter:
    """Python in the box. It answers one piece of code after the other."""

    def __init__(self, box: Box) -> None:
        self._execution = box.exec("python3", "-c", _SOURCE, stdin=True)
        self._answer = b""

    def ask(self, code: str, timeout: float) -> dict[str, Any]:
        """Runs code. After the timeout it is interrupted, and timed_out is in the answer."""
        self._execution.write(json.dumps(code) + "\n")
        if not self._wait(timeout):
            self._execution.signal(signal.SIGINT)
            if not self._wait(_GRACE):
                raise ExecutionError(f"the code ran for more than {timeout:g} s and could not be interrupted")
            return {**self._take(), "timed_out": True}
        return self._take()

    def _wait(self, timeout: float) -> bool:
        """Whether an answer is there in time."""
        end = time.monotonic() + timeout
        ready = select.poll()
        ready.register(self._execution, select.POLLIN)
        while not self._answer.endswith(b"\n"):
            if not ready.poll(max(0, end - time.monotonic()) * 1000):
                return False
            piece = self._execution.read()
            if piece is None:
                raise ExecutionError(f"the interpreter ended with exit code {self._execution.wait()}")
            self._answer += piece.data
            if len(self._answer) > MAX_OUTPUT:
                raise ExecutionError(f"the value has more than {MAX_OUTPUT} bytes")
        return True

    def _take(self) -> dict[str, Any]:
        taken, self._answer = self._answer, b""
        answer: dict[str, Any] = json.loads(taken)
        return answer

    def close(self) -> None:
        """Kills it."""
        self._execution.end()


class BoxExecutor(RemotePythonExecutor):  # type: ignore[misc]
    """Runs an agent's code in a box, which stays the caller's. Names live from step to step.

    Code that takes longer than timeout seconds is interrupted. If that does not help, or if the
    interpreter ends, a new one begins with the tools and variables that the agent was given.
    Values come back as JSON, never as pickles, which could run code here.
    """

    def __init__(
        self,
        box: Box,
        additional_imports: Iterable[str] = (),
        logger: AgentLogger | None = None,
        *,
        timeout: float = 30,
    ) -> None:
        super().__init__(list(additional_imports), logger or AgentLogger(LogLevel.OFF))
        self._box, self._timeout = box, timeout
        self._interpreter: _Interpreter | None = None
        self._given: list[str] = []
        self.installed_packages = self.install_packages(self.additional_imports)

    def __call__(self, code_action: str) -> CodeOutput:
        """Runs a step of the agent. What fails in it raises AgentError, with all that was printed."""
        return self._output(self._ask(code_action))

    def run_code_raise_errors(self, code: str) -> CodeOutput:
        """Runs what makes tools and variables. A new interpreter runs it again."""
        output = self._output(self._ask(code))
        if code not in self._given:
            self._given.append(code)
        return output

    def send_tools(self, tools: dict[str, Any]) -> None:
        """Gives the code its tools, and installs the packages that they need.

        The tool of the final answer can do without the packages that smolagents would have it import.
        """
        super().send_tools({name: tool for name, tool in tools.items() if name != "final_answer"})
        final = tools.get("final_answer")
        if final is not None:
            if not hasattr(final, "_forward"):  # the change for other processes can't be made twice
                self._patch_final_answer_with_exception(final)
            code = get_tools_definition_code({"final_answer": final})
            self.run_code_raise_errors(_OPTIONAL_IMPORT.sub("", code))

    def install_packages(self, additional_imports: list[str]) -> list[str]:
        """Installs packages with the box's pip, which needs a way to their index."""
        if additional_imports:
            result = self._box.run("python3", "-m", "pip", "install", "--quiet", *additional_imports)
            if result.exit_code != 0:
                raise AgentError(f"{', '.join(additional_imports)} can't be installed: {result.stderr}", self.logger)
        return additional_imports

    def _ask(self, code: str) -> dict[str, Any]:
        try:
            return self._running().ask(code, self._timeout)
        except (SandboxError, ValueError) as e:
            self.cleanup()
            raise AgentError(f"{e}. The variables of earlier steps are lost.", self.logger) from e
        except BaseException:
            self.cleanup()  # its answer would be taken for that of the next code
            raise

    def _running(self) -> _Interpreter:
        if self._interpreter is None:
            self._interpreter = _Interpreter(self._box)
            for code in self._given:
                self._interpreter.ask(code, self._timeout)
        return self._interpreter

    def _output(self, answer: dict[str, Any]) -> CodeOutput:
        error, logs = answer["error"], answer["logs"]
        if error is None:
            return CodeOutput(output=answer["output"], logs=logs, is_final_answer=False)
        if error["name"] == self.FINAL_ANSWER_EXCEPTION:
            final = self._deserialize_final_answer(error["value"])
            return CodeOutput(output=final, logs=logs, is_final_answer=True)
        late = f"The code ran for more than {self._timeout:g} s.\n" if "timed_out" in answer else ""
        raise AgentError(f"{logs}\n{late}{error['traceback']}", self.logger)

    def cleanup(self) -> None:
        """Ends the interpreter. The box stays."""
        if self._interpreter is not None:
            self._interpreter.close()
            self._interpreter = None
