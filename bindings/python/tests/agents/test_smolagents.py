"""Steps of an agent whose model has fixed answers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from smolagents import AgentError, ChatMessage, CodeAgent, Model, tool
from smolagents.models import MessageRole

from examples.agents.code_agent import ask
from libsandbox import Box
from libsandbox.agents.smolagents import BoxExecutor


class Fixed(Model):  # type: ignore[misc]
    """A model that says one thing after the other."""

    def __init__(self, *steps: str) -> None:
        super().__init__(model_id="fixed")
        self._steps = iter(steps)

    def generate(self, messages: Any, **options: Any) -> ChatMessage:
        code = next(self._steps)
        return ChatMessage(role=MessageRole.ASSISTANT, content=f"Thought: so be it.\n<code>\n{code}\n</code>")


@tool  # type: ignore[untyped-decorator]
def double(number: int) -> int:
    """Doubles a number.

    Args:
        number: which.
    """
    return 2 * number


@pytest.fixture
def executor(box: Box) -> Iterator[BoxExecutor]:
    executor = BoxExecutor(box, timeout=3)
    yield executor
    executor.cleanup()


def test_names_live_on(executor: BoxExecutor) -> None:
    first = executor("import math\nx = [1, 2]\nprint('hello')")
    assert (first.output, first.logs, first.is_final_answer) == (None, "hello\n", False)
    assert executor("x.append(3); x").output == "[1, 2, 3]"
    assert executor("def f(): return x\nclass A: pass\nlen(f())").output == "3"
    executor.send_variables({"given": {"a": (1, "ü")}})
    assert executor("given['a'][1]").output == "'ü'"


def test_all_that_is_printed_comes_in_order(executor: BoxExecutor) -> None:
    code = "import os, sys\nprint('a', flush=True); os.system('echo b; echo c >&2'); print('d', file=sys.stderr)"
    assert executor(code).logs == "a\nb\nc\nd\n"
    assert executor("print('x' * 2_000_000)").logs.endswith("(cut off after 1048576 bytes)")
    assert executor("1").logs == ""


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("print('before')\n1 / 0", r"before\n(.|\n)*line 2(.|\n)*ZeroDivisionError"),
        ("if", "SyntaxError"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("while True: pass", "more than 3 s.*\n(.|\n)*KeyboardInterrupt"),
    ],
)
def test_a_failure_keeps_names(executor: BoxExecutor, code: str, message: str) -> None:
    executor("kept = 1")
    with pytest.raises(AgentError, match=message):
        executor(code)
    assert executor("kept").output == "1"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import os; os._exit(7)", "ended with exit code 7.*are lost"),
        ("import signal; signal.signal(2, signal.SIG_IGN)\nwhile True: pass", "could not be interrupted.*are lost"),
        ("import os\nfor fd in range(3, 9):\n  try: os.write(fd, b'forged\\n')\n  except OSError: pass", "are lost"),
    ],
)
def test_a_new_interpreter_has_what_was_given(executor: BoxExecutor, code: str, message: str) -> None:
    executor.send_variables({"given": 1})
    executor.send_tools({"double": double})
    executor("lost = 1")
    with pytest.raises(AgentError, match=message):
        executor(code)
    assert executor("double(given)").output == "2"
    with pytest.raises(AgentError, match="NameError"):
        executor("lost")


def test_packages_that_cannot_be_installed(box: Box) -> None:
    with pytest.raises(AgentError, match=r"numpy can't be installed: .*pip"):
        BoxExecutor(box, ["numpy"])


def test_no_pickle_is_read(executor: BoxExecutor) -> None:
    with pytest.raises(Exception, match="Pickle data rejected"):
        executor("class FinalAnswerException(BaseException): pass\nraise FinalAnswerException('pickle:gASV')")


def test_agent(box: Box) -> None:
    model = Fixed("n = double(20)\nprint('so far', n)", "n += missing", "final_answer({'n': n + 2, 'of': ('a', 1)})")
    with CodeAgent(tools=[double], model=model, executor=BoxExecutor(box), verbosity_level=0) as agent:
        assert agent.run("compute") == {"n": 42, "of": ("a", 1)}
        observed = [step.observations for step in agent.memory.steps if getattr(step, "observations", None)]
    assert "so far 40" in observed[0]
    begin = time.monotonic()
    while any(info.status == "running" for info in box.execs()):
        assert time.monotonic() - begin < 10


def test_example(home: Path) -> None:
    assert ask(Fixed("final_answer(6 * 7)"), "compute", "default") == 42


def test_an_agent_runs_twice(box: Box) -> None:
    with CodeAgent([], Fixed("a = 1; final_answer(a)", "final_answer(a + 1)"), executor=BoxExecutor(box)) as agent:
        assert agent.run("first") == 1
        assert agent.run("second", reset=False) == 2
