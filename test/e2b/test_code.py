"""E2B's SDK of the code interpreter for Python, unmodified."""

import os
import unittest

import e2b
from e2b_code_interpreter import Sandbox
from harness import Daemon


class Code(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon()
        cls.addClassCleanup(cls.daemon.close)
        os.environ.update(cls.daemon.environment())
        cls.box = Sandbox.create(timeout=300)
        cls.addClassCleanup(cls.box.kill)

    def test_run(self):
        said = []
        ran = self.box.run_code(
            "import sys\nprint('out')\nprint('err', file=sys.stderr)\n2 ** 100", on_stdout=lambda m: said.append(m.line), on_stderr=lambda m: said.append(m.line)
        )
        self.assertEqual(("".join(ran.logs.stdout), "".join(ran.logs.stderr), ran.text), ("out\n", "err\n", str(2**100)))
        self.assertEqual("".join(sorted(said)), "err\nout\n")
        self.assertTrue(ran.results[0].is_main_result)
        self.assertIsNone(ran.error)

    def test_state(self):
        self.box.run_code("kept = 41")
        first = self.box.run_code("kept + 1")
        second = self.box.run_code("kept + 2")
        self.assertEqual((first.text, second.text, second.execution_count - first.execution_count), ("42", "43", 1))

    def test_error(self):
        seen = []
        ran = self.box.run_code("def f():\n    return 1 / 0\nf()", on_error=seen.append)
        self.assertEqual((ran.error.name, ran.error.value), ("ZeroDivisionError", "division by zero"))
        self.assertIn("in f", ran.error.traceback)
        self.assertEqual(seen, [ran.error])
        self.assertEqual(self.box.run_code("this is no code").error.name, "SyntaxError")

    def test_results(self):
        shown = []
        ran = self.box.run_code(
            "class A:\n"
            "    def _repr_html_(self): return '<b>hi</b>'\n"
            "    def _repr_png_(self): return b'\\x89PNG'\n"
            "    def _repr_json_(self): return {'a': 1}\n"
            "A()",
            on_result=shown.append,
        )
        (result,) = ran.results
        self.assertEqual((result.html, result.png, result.json), ("<b>hi</b>", "iVBORw==", {"a": 1}))
        self.assertEqual(len(shown), 1)

    def test_where(self):
        """Code runs as the user of commands, where files are relative to."""
        ran = self.box.run_code("import getpass, os\nopen('left', 'w').write('by code')\nprint(getpass.getuser(), os.getcwd(), os.environ['MINE'])", envs={"MINE": "yes"})
        self.assertEqual("".join(ran.logs.stdout), "user /home/user yes\n")
        self.assertEqual(self.box.files.read("left"), "by code")
        self.assertEqual(self.box.run_code("os.environ.get('MINE')").text, None)

    def test_contexts(self):
        one = self.box.create_code_context(cwd="/tmp")
        other = self.box.create_code_context(language="python")
        self.assertEqual((one.language, one.cwd, other.cwd), ("python", "/tmp", "/home/user"))
        self.box.run_code("x = 1", context=one)
        self.assertEqual(self.box.run_code("x", context=other).error.name, "NameError")
        self.assertEqual(self.box.run_code("x", context=one).text, "1")
        self.box.restart_code_context(one)
        self.assertEqual(self.box.run_code("x", context=one).error.name, "NameError")
        self.assertLessEqual({one.id, other.id}, {c.id for c in self.box.list_code_contexts()})
        self.box.remove_code_context(one.id)
        self.assertNotIn(one.id, {c.id for c in self.box.list_code_contexts()})
        with self.assertRaises(e2b.NotFoundException):
            self.box.run_code("1", context=one)

    def test_refused(self):
        with self.assertRaises(e2b.SandboxException):
            self.box.run_code("1", language="cobol")
        endless = self.box.create_code_context()
        with self.assertRaises(e2b.TimeoutException):
            self.box.run_code("import time\nwhile True: time.sleep(1)", context=endless, timeout=1)
        self.box.restart_code_context(endless)
        self.assertEqual(self.box.run_code("'goes on'", context=endless).text, "'goes on'")
        self.assertEqual(self.box.run_code("import os\nos._exit(1)").error.name, "ContextLost")
        self.assertEqual(self.box.run_code("1 + 1").text, "2")


if __name__ == "__main__":
    unittest.main()
