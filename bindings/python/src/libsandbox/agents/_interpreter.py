"""An interpreter that keeps its names. It runs in the box, where it needs Python 3.8 and nothing else.

Each line of its input is a piece of code in JSON, and each line of its output what came of it. What the
code prints, and what the programs print that it starts, is kept in memory until the answer.
"""

import ast
import itertools
import json
import linecache
import os
import signal
import sys
import traceback

LIMIT = 1 << 20  # bytes of what is printed


def evaluate(code: str, file: str, names: dict) -> object:  # type: ignore[type-arg]
    """Runs code. The value is that of its last statement, if that is an expression."""
    tree = ast.parse(code, file)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, file, "exec"), names)
    return eval(compile(ast.Expression(last.value), file, "eval"), names) if isinstance(last, ast.Expr) else None


def described(e: BaseException) -> dict:  # type: ignore[type-arg]
    """An exception, with its traceback from the given code on."""
    known = traceback.TracebackException.from_exception(e)
    frames = itertools.dropwhile(lambda frame: not frame.filename.startswith("<code "), known.stack)
    known.stack = traceback.StackSummary.from_list(list(frames))
    return {"name": type(e).__name__, "value": str(e), "traceback": "".join(known.format())}


def answer(code: str, file: str, names: dict) -> dict:  # type: ignore[type-arg]
    """Runs code, which may be interrupted, and says what came of it."""
    linecache.cache[file] = (len(code), None, code.splitlines(True), file)
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        value = evaluate(code, file, names)
        return {"output": None if value is None else repr(value), "error": None}
    except BaseException as e:
        return {"output": None, "error": described(e)}
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def printed(prints: int) -> str:
    """What was printed since the last time."""
    sys.stdout.flush()
    sys.stderr.flush()
    data = os.pread(prints, LIMIT, 0)
    cut = f"\n(cut off after {LIMIT} bytes)" if os.fstat(prints).st_size > LIMIT else ""
    os.ftruncate(prints, 0)
    os.lseek(prints, 0, os.SEEK_SET)
    return data.decode(errors="replace") + cut


def main() -> None:
    """Answers until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requests, answers, prints = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w"), os.memfd_create("prints")
    for number, file in enumerate((os.open(os.devnull, os.O_RDONLY), prints, prints)):
        os.dup2(file, number)
    names = {"__name__": "__main__"}
    for number, line in enumerate(requests, start=1):
        result = answer(json.loads(line), f"<code {number}>", names)
        print(json.dumps({**result, "logs": printed(prints)}), file=answers, flush=True)


if __name__ == "__main__":
    main()
