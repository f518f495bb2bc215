"""Code in an image that has IPython, matplotlib and pandas: by the command line, and by E2B's SDK, unmodified."""

import json
import os
import pathlib
import subprocess
import unittest

from e2b_code_interpreter import Sandbox
from e2b_code_interpreter.charts import ChartType
from harness import BUILD, SANDBOX, Daemon

CHARTS = (pathlib.Path(__file__).parent / "charts.py").read_text()


def setUpModule():
    global daemon
    daemon = Daemon()
    unittest.addModuleCleanup(daemon.close)
    daemon.sandbox("--local", "images", "import", "science", str(BUILD / "e2b/science.tar"))
    os.environ.update(daemon.environment())


class Run:
    """What a run of code has told."""

    def __init__(self, events):
        self.stdout = "".join(e["text"] for e in events if e["type"] == "stdout")
        self.stderr = "".join(e["text"] for e in events if e["type"] == "stderr")
        self.results = [e["result"] for e in events if e["type"] == "result"]
        self.texts = [("=" if r["is_main"] else "") + r.get("text", "-") for r in self.results]
        self.error = next((e["error"] for e in events if e["type"] == "error"), None)
        self.end = events[-1]


class Notebook(unittest.TestCase):
    """IPython, in a box of its own for each test."""

    def setUp(self):
        self.box = daemon.sandbox("create", "science").strip()
        self.addCleanup(daemon.sandbox, "rm", "-f", self.box)

    def run_code(self, code, *flags):
        ran = subprocess.run([SANDBOX, "code", "-o", "json", *flags, self.box, "-"], env=daemon.env, input=code, capture_output=True, text=True)
        return Run([json.loads(line) for line in ran.stdout.splitlines()])

    def test_magics(self):
        for code, stdout, texts in (
            ("!echo hi; echo trouble >&2", "hi\n", []),
            ("found = !echo a; echo b\nfound", "", ["=['a', 'b']"]),
            ("%%bash\necho in bash $((1 + 1))", "in bash 2\n", []),
            ("%cd -q /tmp\n%pwd", "", ["='/tmp'"]),
            ("x = 20\n!echo {x + 1}", "21\n", []),
            ("%%capture held\nprint('unseen')\n7", "", []),
            ("held.stdout", "", ["='unseen\\n'"]),
            ("1 + 1", "", ["=2"]),
            ("_ + Out[8], len(In)", "", ["=(4, 10)"]),
            ("3;", "", []),
            ("import asyncio\nawait asyncio.sleep(0.001, 'slept')", "", ["='slept'"]),
            ("get_ipython().user_ns is globals()", "", ["=True"]),
            ("class A: pass\nimport pickle; type(pickle.loads(pickle.dumps(A()))).__name__", "", ["='A'"]),
            ("import os\nif os.fork() == 0: print('child')\nelse: os.wait(); print('parent')", "child\nparent\n", []),
        ):
            with self.subTest(code):
                ran = self.run_code(code)
                self.assertEqual((ran.stdout, ran.texts, ran.error, ran.end["status"]), (stdout, texts, None, "succeeded"))
        self.assertIn("per loop", self.run_code("%timeit -n 1 -r 1 pass").stdout)
        (told,) = self.run_code("len?").texts
        self.assertIn("Return the number of items", told)

    def test_errors(self):
        """Errors are told as without IPython: once, without escape codes, and from the code's own line on."""
        for code, name, value, trace in (
            ("1 / 0", "ZeroDivisionError", "division by zero", 'Traceback (most recent call last):\n  File "<code 1>", line 1, in <module>\n    1 / 0\n'),
            ("def f():\n  raise ValueError('no')\nf()", "ValueError", "no", 'Traceback (most recent call last):\n  File "<code 2>", line 3, in <module>\n    f()\n'),
            ("x y", "SyntaxError", "invalid syntax (<code 3>, line 1)", '  File "<code 3>", line 1\n'),
            ("%nosuch", "UsageError", "Line magic function `%nosuch` not found.", ""),
            ("raise SystemExit(3)", "SystemExit", "3", ""),
            ("exit()", "SystemExit", "", ""),
            ("input()", "EOFError", "EOF when reading a line", ""),
            ("%%bash\nexit 3", "CalledProcessError", "", ""),
        ):
            with self.subTest(code):
                ran = self.run_code(code)
                self.assertEqual((ran.stdout, ran.stderr, ran.texts, ran.end["status"]), ("", "", [], "failed"))
                self.assertEqual((ran.error["name"], ran.error["value"] if name != "CalledProcessError" else ""), (name, value))
                self.assertTrue(ran.error["traceback"].startswith(trace), ran.error["traceback"])
                self.assertNotRegex(ran.error["traceback"], r"\x1b|<kernel>")
        ran = self.run_code("class Bad:\n  def __repr__(self): return 'bad'\n  def _repr_html_(self): 1 / 0\nBad()")
        self.assertEqual((ran.texts, ran.error), (["=bad"], None))
        self.assertIn("ZeroDivisionError", ran.stderr)
        self.assertEqual(self.run_code("'goes on'").texts, ["='goes on'"])

    def test_interrupt(self):
        self.run_code("kept = 1")
        for code, name in (
            ("while True: pass", "KeyboardInterrupt"),
            ("!sleep 1000", "KeyboardInterrupt"),
            ("%%bash\nsleep 1000", "CalledProcessError"),  # the interrupt is for the command, too
            ("import asyncio\nawait asyncio.sleep(1000)", "KeyboardInterrupt"),
            ("%timeit -n 1 -r 1 __import__('time').sleep(1000)", "KeyboardInterrupt"),
        ):
            with self.subTest(code):
                ran = self.run_code(code, "--timeout", "1")
                self.assertEqual((ran.end["status"], ran.end.get("restarted", False), ran.error["name"]), ("timed_out", False, name))
        self.assertEqual(self.run_code("kept").texts, ["=1"])

    def test_display(self):
        shown = self.run_code(
            "from IPython.display import HTML, Image, Markdown, display as show\n"
            "print('before')\n"
            "show(HTML('<b>'), Markdown('**b**'))\n"
            "Image(data=b'\\x89PNG', format='png')"
        )
        html, markdown, image = shown.results
        self.assertEqual((html["html"], markdown["markdown"], image["png"], image["is_main"]), ("<b>", "**b**", "iVBORw==", True))
        ran = self.run_code(
            "class Own: pass\n"
            "get_ipython().display_formatter.formatters['text/html'].for_type(Own, lambda own: '<i>own</i>')\n"
            "display(Own())\n"
            "class Itself:\n  def _ipython_display_(self): print('by itself')\n"
            "Itself()"
        )
        self.assertEqual((ran.results[0]["html"], len(ran.results), ran.stdout), ("<i>own</i>", 1, "by itself\n"))

    def test_frames(self):
        code = "import pandas\nframe = pandas.DataFrame({'n': [1, 2], 'x': [0.5, None]})\ndisplay(frame)\nframe"
        for ran in self.run_code(code), self.run_code(code, "--context", self.without()):
            self.assertEqual(len(ran.results), 2)
            for result in ran.results:
                self.assertEqual(result["table"], {"columns": [{"name": "n", "type": "int64"}, {"name": "x", "type": "float64"}], "rows": [[1, 0.5], [2, None]], "total_rows": 2})
                self.assertIn("<table", result["html"])

    def without(self):
        """Makes a context without IPython."""
        return daemon.sandbox("contexts", "create", "-e", "SANDBOX_IPYTHON=off", self.box).strip()

    def test_off(self):
        context = self.without()
        self.assertEqual(self.run_code("%pwd", "--context", context).error["name"], "SyntaxError")
        self.assertEqual(self.run_code("import sys; 'IPython' in sys.modules", "--context", context).texts, ["=False"])

    def test_broken(self):
        """An IPython that can't be had is told of once, and code runs without it."""
        self.run_code("import os; os.makedirs('/broken/IPython'); open('/broken/IPython/__init__.py', 'w').write('1 / 0')")
        context = daemon.sandbox("contexts", "create", "-e", "PYTHONPATH=/broken", self.box).strip()
        first, second = (self.run_code("6 * 7", "--context", context) for _ in range(2))
        self.assertEqual((first.texts, first.stderr), (["=42"], "IPython can't be used: ZeroDivisionError: division by zero\n"))
        self.assertEqual((second.texts, second.stderr), (["=42"], ""))

    def test_figures(self):
        """Figures are shown once, whoever shows them, and in the formats that were asked for."""
        draw = "import matplotlib.pyplot as plt\nfigure = plt.figure(); plt.plot([1, 2])\n"
        for context in "python", self.without():
            for show in "None", "plt.show()", "display(figure)", "figure":
                with self.subTest(show, context=context):
                    ran = self.run_code(draw + show, "--context", context)
                    self.assertEqual([(sorted(r.keys() - {"is_main"}), r["chart"]["type"]) for r in ran.results], [(["chart", "png", "text"], "line")])
        ran = self.run_code("%matplotlib inline\n%config InlineBackend.figure_formats = ['svg']\n" + draw + "None")
        self.assertEqual([sorted(r.keys() - {"is_main"}) for r in ran.results], [["chart", "svg", "text"]])


class Charts(unittest.TestCase):
    """What figures show, as the SDK reads it."""

    def charts(self, sandbox):
        ran = sandbox.run_code(CHARTS)
        self.assertIsNone(ran.error)
        self.assertTrue(all(result.png for result in ran.results))
        return [result.chart for result in ran.results]

    def test_charts(self):
        with Sandbox.create("science", timeout=300) as sandbox:
            line, scatter, bar, across, grouped, pie, box, several, mixed, unknown, blank, large = self.charts(sandbox)
        self.line(line)
        self.assertEqual((scatter.type, scatter.x_unit, scatter.x_scale, scatter.elements[0].label), (ChartType.SCATTER, None, "log", "Dataset 1"))
        self.assertEqual(scatter.elements[0].points, [(1.0, 2.0), (None, None)])
        self.bars(bar, across, grouped)
        self.assertEqual((pie.type, pie.title, [(one.label, one.angle, one.radius) for one in pie.elements]), (ChartType.PIE, "Up early?", [("No", 324, 1), ("No, in blue", 36, 1)]))
        (first, second) = box.elements
        self.assertEqual((box.type, first.label, first.min, first.first_quartile, first.median, first.third_quartile, first.max, first.outliers), (ChartType.BOX_AND_WHISKER, "a", 1, 2, 3, 4, 5, [50]))
        self.assertEqual((second.label, second.median, second.outliers), ("b", 2, []))
        self.assertEqual((several.type, several.title, [(one.type, one.title) for one in several.elements]), (ChartType.SUPERCHART, "Several", [(ChartType.LINE, "Sine"), (ChartType.SCATTER, None)]))
        self.assertEqual((mixed.type, [one.type for one in mixed.elements]), (ChartType.SUPERCHART, [ChartType.BAR, ChartType.LINE]))
        self.assertEqual((unknown.type, unknown.title, unknown.elements), (ChartType.UNKNOWN, "A picture", []))
        self.assertIsNone(blank)
        self.assertIsNone(large)

    def line(self, line):
        self.assertEqual((line.type, line.title, line.x_label, line.x_unit, line.y_label, line.y_unit), (ChartType.LINE, "Waves", "Time (s)", "s", "Amplitude [V]", "V"))
        self.assertEqual((line.x_scale, line.y_scale), ("datetime", "linear"))
        self.assertEqual([(one.label, one.points) for one in line.elements], [("sin(x)", [("2023-09-01T00:00:00+00:00", 0.0), ("2023-09-02T00:00:00+00:00", 1.5)]), ("Line 2", [("2023-09-01T00:00:00+00:00", 2.0), ("2023-09-02T00:00:00+00:00", 3.0)])])
        self.assertTrue(all(isinstance(tick, str) for tick in line.x_ticks) and len(line.x_ticks) == len(line.x_tick_labels))
        self.assertTrue(all(isinstance(tick, float) for tick in line.y_ticks) and len(line.y_ticks) == len(line.y_tick_labels))

    def bars(self, bar, across, grouped):
        self.assertEqual((bar.type, bar.x_label, bar.y_label), (ChartType.BAR, "Authors", None))
        self.assertEqual([(one.label, one.group, one.value) for one in bar.elements], [("A", "sold", 100), ("B", "sold", 200)])
        self.assertEqual([(one.label, one.group, one.value) for one in across.elements], [("A", "", 3), ("B", "", 4)])
        self.assertEqual([(one.label, one.group, one.value) for one in grouped.elements], [("x", "one", 1), ("y", "one", 2), ("x", "two", 3), ("y", "two", 4)])


if __name__ == "__main__":
    unittest.main()
