"""Runs generated code in a box, as a notebook does: cell after cell, with what it prints, its values and a plot.

The context of the box keeps what cells define. Code that fails, or that runs for too long,
harms nothing but its box.
"""

import sys
from pathlib import Path

from libsandbox import CodeOutcome, Sandbox, SandboxError

# What a model might have written.
CELLS = [
    "points = [n * n % 17 for n in range(40)]; print('made', len(points)); sum(points)",
    """
class Plot:
    def __init__(self, values):
        self.line = ' '.join(f'{10 + 10 * n},{180 - 10 * y}' for n, y in enumerate(values))

    def _repr_svg_(self):
        return ('<svg xmlns="http://www.w3.org/2000/svg" width="420" height="200">'
                f'<polyline points="{self.line}" fill="none" stroke="navy"/></svg>')
Plot(points)
""",
    "1 / 0",
    "while True: pass",
    "len(points)",
]


def told(cell: CodeOutcome) -> str:
    """What became of a cell, on a line."""
    if cell.error is not None:
        return f"{cell.status}: {cell.error.name}: {cell.error.value}".rstrip(": ")
    return f"{cell.stdout}{cell.text}".replace("\n", " ")


def main(image: str, directory: Path) -> None:
    """Runs all cells, and saves the plots that they show."""
    with Sandbox(image, network="None", memory_mib=256) as box:
        for code in CELLS:
            cell = box.run_code(code, timeout=2)
            plots = [result.svg for result in cell.results if result.svg is not None]
            for plot in plots:
                (directory / f"plot-{cell.execution_count}.svg").write_text(plot)
            print(f"[{cell.execution_count}] {'a plot' if plots else told(cell)}")


if __name__ == "__main__":
    try:
        main(sys.argv[1], Path(sys.argv[2]))
    except SandboxError as failure:
        sys.exit(f"{type(failure).__name__}: {failure.message}")
