"""An agent of deepagents whose commands and files are in a box."""

from deepagents import create_deep_agent
from langchain_core.language_models import BaseChatModel

from libsandbox import Sandbox
from libsandbox.agents.deepagents import BoxBackend


def ask(model: BaseChatModel, task: str, image: str = "python:3.12") -> object:
    """Gives an agent a box of its own for one task."""
    with Sandbox(image, network="None") as box:
        agent = create_deep_agent(model, backend=BoxBackend(box))
        return agent.invoke({"messages": [{"role": "user", "content": task}]})["messages"][-1].content
