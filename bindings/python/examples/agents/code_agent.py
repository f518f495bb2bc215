"""An agent of smolagents whose code runs in a box."""

from smolagents import CodeAgent, Model

from libsandbox import Sandbox
from libsandbox.agents.smolagents import BoxExecutor


def ask(model: Model, task: str, image: str = "python:3.12") -> object:
    """Gives an agent a box of its own for one task."""
    with Sandbox(image, network="None") as box, CodeAgent([], model, executor=BoxExecutor(box)) as agent:
        return agent.run(task)
