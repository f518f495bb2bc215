# The part of Python's kernel that runs code in IPython, where the image has it: with
# magics, `!`, `?`, In and Out, and whatever libraries register with its display system.
# It has the names of python.py.

import subprocess
import warnings

from IPython.core import page
from IPython.core.compilerop import CachingCompiler
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.formatters import DisplayFormatter
from IPython.core.interactiveshell import InteractiveShell
from traitlets import Type
from traitlets.config import Config


class Compiler(CachingCompiler):
    """Names code as the kernel does without IPython."""

    def get_code_name(self, raw_code, transformed_code, number):
        return "<code %d>" % number


class Forms(DisplayFormatter):
    """Adds to the forms that IPython knows of a value those that the kernel knows."""

    def format(self, obj, include=None, exclude=None):
        bundle, metadata = super().format(obj, include, exclude)
        if bundle:  # else the value has shown itself
            add_own(bundle, obj)
        return bundle, metadata


class Publisher(DisplayPublisher):
    """Sends what code displays."""

    def publish(self, data, *_, **__):
        self.parent.host.send(kind="result", result=result_of(data))

    def clear_output(self, wait=False):
        """Do nothing: what was sent was sent."""


class Hook(DisplayHook):
    """Sends the value of the last expression."""

    def start_displayhook(self):
        """Print nothing before a value."""

    write_output_prompt = finish_displayhook = start_displayhook

    def write_format_data(self, format_dict, md_dict=None):
        self.shell.host.send(kind="result", result=dict(result_of(format_dict), is_main=True))


class Interactive(InteractiveShell):
    """IPython's shell, whose results go to the host, and which prints no errors itself."""

    compiler_class = Type(Compiler)
    displayhook_class = Type(Hook)
    display_pub_class = Type(Publisher)

    def __init__(self, host, **options):
        self.host = host
        self.raised = []  # the errors that IPython would have printed
        super().__init__(**options)

    def init_display_formatter(self):
        self.display_formatter = Forms(parent=self)
        self.configurables.append(self.display_formatter)

    def showtraceback(self, exc_tuple=None, *_, **__):
        self.raised.append((exc_tuple or sys.exc_info())[1])

    showsyntaxerror = showindentationerror = showtraceback

    def system(self, cmd):
        """Run a command whose output is that of the code, without a terminal in between."""
        flush()
        shell = os.environ.get("SHELL", "/bin/sh")
        self.user_ns["_exit_code"] = subprocess.call(self.var_expand(cmd, depth=1), shell=True, executable=shell)

    def ask_exit(self):
        raise SystemExit

    def enable_gui(self, gui=None):
        """Do nothing: there are no windows."""

    def enable_matplotlib(self, gui=None):
        """Let figures be configured by IPython. They are shown by the kernel all the same."""
        enabled = super().enable_matplotlib(gui)
        for shown in list(self.events.callbacks["post_execute"]):
            if getattr(shown, "__name__", "") == "flush_figures":
                self.events.unregister("post_execute", shown)
        return enabled


class Notebook(Shell):
    """Runs code in IPython."""

    def __init__(self, host):
        super().__init__(host)
        config = Config()
        config.HistoryManager.enabled = False
        config.InteractiveShell.colors = "nocolor"
        self.shell = Interactive.instance(host, user_module=sys.modules["__main__"], config=config)
        self.shell.loop_runner = self.awaited
        self.shell.set_hook("show_in_pager", page.as_hook(page.display_page), 99)
        warnings.filterwarnings("ignore", "To exit: use", UserWarning)

    def forms(self, value):
        return self.shell.display_formatter.format(value)[0]

    def run(self, code):
        self.count += 1
        self.shell.execution_count = self.count
        result = self.shell.run_cell(code, store_history=True)
        error = result.error_before_exec or result.error_in_exec
        raised, self.shell.raised = self.shell.raised, []
        for other in raised:
            if other is not error:
                sys.stderr.write(self.explain(other))
        if error is not None:
            raise error
