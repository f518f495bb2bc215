"""Runs generated code in a box, as a notebook does: cell after cell, with its output, its files and a plot.

The box lives from cell to cell, and so do its files. Code that fails, or that runs for
too long, harms nothing but its box.
"""

import sys
from pathlib import Path

from libsandbox import Result, Sandbox, SandboxError, TimeoutError

# What a model might have written.
CELLS = [
    "import json; json.dump([n * n % 17 for n in range(40)], open('data.json', 'w')); print('saved')",
    """
import json
points = ' '.join(f'{10 + 10 * n},{180 - 10 * y}' for n, y in enumerate(json.load(open('data.json'))))
with open('plot.svg', 'w') as plot:
    plot.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="420" height="200">'
               f'<polyline points="{points}" fill="none" stroke="navy"/></svg>')
print('plotted', len(points.split()), 'points')
""",
    "1 / 0",
    "while True: pass",
]


def run_cell(box: Sandbox, code: str) -> Result:
    """Runs code in the directory of the notebook."""
    box.write_file("/notebook/cell.py", code)
    return box.run("python3", "cell.py", cwd="/notebook", timeout=2)


def main(image: str, directory: Path) -> None:
    """Runs all cells and saves what they leave behind."""
    with Sandbox(image, network="None", memory_mib=256) as box:
        for number, code in enumerate(CELLS, start=1):
            try:
                result = run_cell(box, code)
                print(f"[{number}] exit code {result.exit_code}: {(result.stdout or result.stderr).splitlines()[-1]}")
            except TimeoutError as late:
                print(f"[{number}] {late.message}")
        box.copy_out("/notebook", directory)
    print("saved", (directory / "notebook/plot.svg").stat().st_size, "bytes of plot")


if __name__ == "__main__":
    try:
        main(sys.argv[1], Path(sys.argv[2]))
    except SandboxError as failure:
        sys.exit(f"{type(failure).__name__}: {failure.message}")
