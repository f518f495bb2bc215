"""A task of inspect_ai where each sample has a box of its own: inspect eval evaluation.py --model ..."""

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import includes
from inspect_ai.solver import generate, use_tools
from inspect_ai.tool import bash
from inspect_ai.util import SandboxEnvironmentSpec

from libsandbox.agents.inspect_ai import BoxConfig


@task
def power(image: str = "python:3.12") -> Task:
    """Asks for a number that is better computed than guessed."""
    return Task(
        [Sample("What is 2 to the power of 100?", target=str(2**100))],
        solver=[use_tools(bash()), generate()],
        scorer=includes(),
        sandbox=SandboxEnvironmentSpec("libsandbox", BoxConfig(image=image, memory_mib=256)),
    )
