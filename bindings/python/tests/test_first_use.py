"""What a user does first: install the wheel in an empty environment, and run the lines of the documents."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .scripts import BUILD, TOP

HERE = TOP / "bindings/python"
EXAMPLES = HERE / "examples"


def wheel() -> Path:
    (wheel,) = (BUILD / "python").glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with nothing but the wheel."""
    directory = tmp_path_factory.mktemp("empty")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", directory], check=True)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(directory / "bin/python")]
    subprocess.run([*pip, "install", "--quiet", "--no-index", str(wheel())], check=True)
    return directory / "bin/python"


def example(python: Path, home: Path, name: str, *arguments: str | Path) -> str:
    """Runs an example with nothing of the build tree in its environment."""
    environment = {"HOME": str(home), "SANDBOX_HOME": str(home), "PATH": os.environ["PATH"]}
    program = [python, "-W", "error", EXAMPLES / name, *arguments]
    done = subprocess.run(program, env=environment, cwd=home, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_lines_of_the_readme(python: Path, home: Path) -> None:
    assert example(python, home, "hello.py") == "1267650600228229401496703205376\n\n"
    assert f"```python\n{(EXAMPLES / 'hello.py').read_text()}```" in (HERE / "README.md").read_text()


def test_notebook(python: Path, home: Path, tmp_path: Path) -> None:
    assert example(python, home, "notebook.py", "default", tmp_path).splitlines() == [
        "[1] made 40 310",
        "[2] a plot",
        "[3] failed: ZeroDivisionError: division by zero",
        "[4] timed_out: KeyboardInterrupt",
        "[5] 40",
    ]
    assert "<polyline" in (tmp_path / "plot-2.svg").read_text()


def test_tasks(python: Path, home: Path) -> None:
    printed = example(python, home, "tasks.py", "default")
    assert "'0 ended with 0', TimeoutError(), TimeoutError()" in printed and "2 stdout b'begun\\n'" in printed


def test_the_tag_of_the_wheel_is_true() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "auditwheel", "show", wheel()], capture_output=True, text=True, check=True
    ).stdout
    tag = wheel().stem.split("-")[-1]
    assert f'platform tag: "{tag}"' in " ".join(shown.split())


def test_typed_for_users(tmp_path: Path) -> None:
    (tmp_path / "use.py").write_text("from libsandbox import Sandbox\nSandbox(1)\nSandbox('a', cpu=1)\n")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache", tmp_path / "use.py"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Found 2 errors" in done.stdout
