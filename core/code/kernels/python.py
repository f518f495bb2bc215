# The kernel of Python contexts: the program that runs the code of a context.
#
# It reads requests from its standard input and answers with frames on its standard
# output and standard error, in between what the code prints; package code says how
# both look. It needs nothing but Python 3.8 or later and its standard library. What
# matplotlib and pandas add is used where the code imports them. Code runs in IPython
# where the image has it. Two parts of the kernel stand in files of their own, which are
# compiled when they are needed: ipython.py and charts.py.

import ast
import base64
import builtins
import importlib.util
import io
import json
import linecache
import os
import select
import signal
import sys
import threading
import traceback
import types

# PIECE is how many bytes of a frame are written at once: pipes do not mix a write of
# up to PIPE_BUF bytes with those of other processes. HEAD is the size of what stands
# before the payload.
PIECE = 4096
HEAD = 1 + 32 + 4 + 1

# The host refuses larger frames.
MAX_FRAME = 8 << 20

# The most rows and cells of a table, and the most characters of an error's texts.
MAX_ROWS = 10000
MAX_CELLS = 100000
MAX_ERROR = 256 << 10

# The flag of code that awaits something, as in inspect.CO_COROUTINE.
CO_COROUTINE = 0x80


# What a bundle has of a value beside its media types. These are no texts, so that no
# bundle of the code's own has them.
TABLE = object()
CHART = object()


class Host:
    """The host's side: requests come from it, and frames go to it."""

    def __init__(self, buffer):
        # The code has descriptors of its own for its input and output, and may close
        # them. Those of the host are not passed on to the programs that it starts.
        self.requests = os.dup(0)
        self.pipes = (os.dup(1), os.dup(2))
        empty = os.open(os.devnull, os.O_RDONLY)
        os.dup2(empty, 0)
        os.close(empty)
        self.buffer = buffer
        self.pid = os.getpid()
        self.asked = b""  # the nonce of the request that was read last
        self.nonce = b""  # that of the run, between its first frame and its last one
        self.lock = threading.Lock()
        self.sending = False  # the main thread sends a frame, and must not be interrupted
        self.interrupted = False  # it was, meanwhile

    def field(self):
        """Return the next field of a request. Raise EOFError when the host has left."""
        start = 0
        while True:
            end = self.buffer.find(b"\0", start)
            if end >= 0:
                field, self.buffer = self.buffer[:end], self.buffer[end + 1 :]
                return field
            start = len(self.buffer)
            piece = os.read(self.requests, 1 << 20)
            if not piece:
                raise EOFError
            self.buffer += piece

    def request(self):
        """Return the environment and the code of the next request."""
        self.asked = self.field()
        env = {}
        for _ in range(int(self.field())):
            name, _, value = os.fsdecode(self.field()).partition("=")
            env[name] = value
        return env, self.field().decode("utf-8", "replace")

    def begin(self, count):
        """Begin the run that was asked for. A thread that an earlier run has left sends nothing before."""
        self.mark(self.asked)
        flush()
        with self.lock:
            self.frame(self.asked, encode({"kind": "begin", "count": count}))
            self.nonce = self.asked

    def end(self, status):
        """End the run. A thread that it has left sends nothing behind."""
        flush()
        self.mark(self.nonce)
        with self.lock:
            nonce, self.nonce = self.nonce, b""
            self.frame(nonce, encode({"kind": "end", "status": status}))

    def send(self, **frame):
        """Send a frame to the host, behind all that was printed before."""
        if not self.nonce or os.getpid() != self.pid:
            return  # no code runs, or this is a child that the code has forked
        flush()
        text = encode(frame)
        main = threading.current_thread() is threading.main_thread()
        with self.lock:
            self.sending = self.sending or main
            if self.nonce:  # else the run has ended meanwhile
                self.frame(self.nonce, text)
            self.sending = self.sending and not main
        if main and self.interrupted:
            self.interrupted = False
            raise KeyboardInterrupt

    def frame(self, nonce, text):
        """Write a frame. The lock is held, so that no other one comes between its pieces."""
        for at in range(0, len(text), PIECE - HEAD):
            piece = text[at : at + PIECE - HEAD]
            self.write(0, nonce, piece, b"." if at + len(piece) == len(text) else b"+")

    def mark(self, nonce):
        """Mark on standard error where a run begins or ends."""
        self.write(1, nonce, b"", b".")

    def write(self, stream, nonce, piece, more):
        piece = b"\x1e" + nonce + b"%04x" % len(piece) + more + piece
        while True:
            try:
                os.write(self.pipes[stream], piece)
                return
            except BlockingIOError:  # the code has changed the mode of the pipe
                select.select([], [self.pipes[stream]], [])


def encode(frame):
    """Return a frame as JSON. Raise ValueError if it is too large."""
    text = dump(frame)
    for form in ("table", "chart"):
        if len(text) > MAX_FRAME and frame.get("result", {}).pop(form, None):
            text = dump(frame)
    if len(text) > MAX_FRAME:
        raise ValueError("a result of %d bytes is too large to be shown: it may have %d" % (len(text), MAX_FRAME))
    return text


def dump(frame):
    try:
        text = json.dumps(frame, default=repr, skipkeys=True, allow_nan=False)
    except ValueError:  # JSON has no NaN
        frame = json.loads(json.dumps(frame, default=repr, skipkeys=True), parse_constant=lambda _: None)
        text = json.dumps(frame)
    return text.encode("ascii")


def flush():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # the code has closed or replaced it
            pass


# The members of a result by their media types.
MEMBERS = {
    "text/plain": "text",
    "text/html": "html",
    "text/markdown": "markdown",
    "image/svg+xml": "svg",
    "image/png": "png",
    "image/jpeg": "jpeg",
    "application/pdf": "pdf",
    "text/latex": "latex",
    "application/json": "json",
    "application/javascript": "javascript",
    TABLE: "table",
    CHART: "chart",
}

# The methods by which an object shows itself, as IPython names them.
METHODS = {
    "_repr_html_": "text/html",
    "_repr_markdown_": "text/markdown",
    "_repr_svg_": "image/svg+xml",
    "_repr_png_": "image/png",
    "_repr_jpeg_": "image/jpeg",
    "_repr_pdf_": "application/pdf",
    "_repr_latex_": "text/latex",
    "_repr_json_": "application/json",
    "_repr_javascript_": "application/javascript",
}


def bundle_of(value):
    """Return all forms in which a value shows itself, by their media types."""
    bundle = {}
    # A class has the methods of its objects, and an object that has the canary's
    # attribute has any.
    if not isinstance(value, type) and not hasattr(value, "_ipython_canary_method_should_not_exist_"):
        for method, kind in METHODS.items():
            put(bundle, kind, call(value, method))
        more = call(value, "_repr_mimebundle_", include=None, exclude=None)
        more = more[0] if isinstance(more, tuple) and more else more
        for kind, data in more.items() if isinstance(more, dict) else ():
            put(bundle, kind, data)
    bundle.setdefault("text/plain", text_of(value))
    return add_own(bundle, value)


def add_own(bundle, value):
    """Add to a bundle what only this kernel knows of a value, and return it."""
    table = table_of(value)
    if table is not None:
        bundle[TABLE] = table
    if is_figure(value):
        try:
            if not bundle.keys() & {"image/png", "image/svg+xml", "image/jpeg", "application/pdf"}:
                bundle["image/png"] = picture(value)
            chart = chart_of(value)
            if chart is not None:
                bundle[CHART] = chart
        finally:
            close(value)
    return bundle


def call(value, method, **options):
    """Call a method by which a value shows itself. Print why it fails."""
    try:
        found = getattr(value, method, None)
        return found(**options) if callable(found) else None
    except NotImplementedError:
        return None
    except Exception:
        traceback.print_exc()
        return None


def put(bundle, kind, data):
    data = data[0] if isinstance(data, tuple) and data else data  # the rest is metadata
    if data is not None:
        bundle[str(kind)] = data


def text_of(value):
    try:
        if type(value) in (dict, list, tuple, set):
            import pprint

            return pprint.pformat(value)
        return repr(value)
    except Exception as error:
        return "<%s whose text can't be made: %s>" % (type(value).__name__, type(error).__name__)


def result_of(bundle):
    """Return the result that shows a bundle."""
    result = {}
    for kind, data in bundle.items():
        if isinstance(data, (bytes, bytearray)):
            data = base64.b64encode(bytes(data)).decode("ascii")
        member = MEMBERS.get(kind)
        if member is None:
            result.setdefault("extra", {})[kind] = data
        elif member in ("json", "table", "chart"):
            result[member] = data
        elif member in ("png", "jpeg", "pdf"):
            data = "".join(str(data).split())
            try:
                base64.b64decode(data, validate=True)
            except ValueError:
                continue  # neither bytes nor base64
            result[member] = data
        else:
            result[member] = str(data)
    return result


def table_of(value):
    """Return the table that a data frame of pandas is, or None."""
    frame = getattr(sys.modules.get("pandas"), "DataFrame", None)
    if frame is None or not isinstance(value, frame):
        return None
    try:
        rows = min(MAX_ROWS, MAX_CELLS // max(1, len(value.columns)))
        text = value.head(rows).to_json(orient="split", date_format="iso", default_handler=str)
        columns = [{"name": str(name), "type": str(kind)} for name, kind in zip(value.columns, value.dtypes)]
        return {"columns": columns, "rows": json.loads(text)["data"], "total_rows": len(value)}
    except Exception:
        return None  # its other forms show it


def is_figure(value):
    return isinstance(value, getattr(sys.modules.get("matplotlib.figure"), "Figure", ()))


def picture(figure):
    """Return a figure of matplotlib as a PNG."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", bbox_inches="tight")
    return buffer.getvalue()


def chart_of(figure):
    """Return what a figure of matplotlib shows, as data, or None if that can't be told."""
    try:
        part("charts")
        return figure_chart(figure)
    except Exception:
        return None  # its picture shows it


def close(figure):
    """Close a figure that was shown, so that the end of the run does not show it again."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close(figure)


def part(name):
    """Run a part of the kernel, which has the same names, when it is first needed."""
    source = PARTS.pop(name, None)
    if source is not None:
        exec(compile(source, "<kernel>", "exec"), globals())


class Figures:
    """Finds matplotlib.pyplot when the code imports it, and has it show figures here."""

    def __init__(self, host, shell):
        self.host = host
        self.shell = shell
        os.environ.setdefault("MPLBACKEND", "agg")
        sys.meta_path.insert(0, self)

    def find_spec(self, name, path=None, target=None):
        if name != "matplotlib.pyplot" or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            part("charts")
            remember_boxes(sys.modules["matplotlib.axes"].Axes)
            module.show = lambda *_, **__: self.show()  # a function, which pyplot gives attributes

        spec.loader.exec_module = exec_module
        return spec

    def show(self):
        """Show all open figures and close them."""
        pyplot = sys.modules.get("matplotlib.pyplot")
        for number in getattr(pyplot, "get_fignums", list)():
            bundle = self.shell.forms(pyplot.figure(number))
            self.host.send(kind="result", result=result_of(bundle))


class Shell:
    """Runs code in a module of its own, and shows the values that it asks for."""

    def __init__(self, host):
        self.host = host
        self.count = 0
        self.loop = None
        self.notice = ""  # what the first run tells on standard error
        module = types.ModuleType("__main__")
        sys.modules["__main__"] = module
        self.names = module.__dict__
        self.names.update(__builtins__=builtins)
        builtins.display = self.display

    def display(self, *values, raw=False, **_):
        """Show values, each as a result."""
        for value in values:
            bundle = value if raw else self.forms(value)
            self.host.send(kind="result", result=result_of(bundle))

    def forms(self, value):
        """Return the bundle that shows a value."""
        return bundle_of(value)

    def run(self, code):
        """Run code, and show the value of its last expression."""
        self.count += 1
        name = "<code %d>" % self.count
        linecache.cache[name] = (len(code), None, code.splitlines(True), name)
        body, last = self.compile(code, name)
        self.execute(body)
        value = None if last is None else self.execute(last)
        if value is not None:
            self.names["_"] = value
            self.host.send(kind="result", result=dict(result_of(self.forms(value)), is_main=True))

    def compile(self, code, name):
        """Return the compiled code without its last expression, and that, if it ends in one."""
        tree = ast.parse(code, name)
        last = None
        if tree.body and isinstance(tree.body[-1], ast.Expr) and not code.rstrip().endswith(";"):
            last = ast.Expression(tree.body.pop().value)
        flags = getattr(ast, "PyCF_ALLOW_TOP_LEVEL_AWAIT", 0)
        body = compile(tree, name, "exec", flags, True)
        return body, last and compile(last, name, "eval", flags, True)

    def execute(self, code):
        value = eval(code, self.names)
        return self.awaited(value) if code.co_flags & CO_COROUTINE else value

    def awaited(self, coroutine):
        import asyncio

        if self.loop is None or self.loop.is_closed():
            self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        task = self.loop.create_task(coroutine)
        try:
            return self.loop.run_until_complete(task)
        except BaseException:
            if not task.done():  # it was interrupted, and must not go on in the next run
                task.cancel()
                self.loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
            raise

    def explain(self, error):
        """Return the traceback of an error, from the code's own first line on."""
        trace = error.__traceback__
        while trace is not None and not trace.tb_frame.f_code.co_filename.startswith("<code "):
            trace = trace.tb_next
        told = traceback.TracebackException(type(error), error, trace)
        frames = [frame for frame in told.stack if frame.filename != "<kernel>"]
        told.stack = traceback.StackSummary.from_list(frames)
        return "".join(told.format())


def shell_for(host):
    """Return the shell that runs the code: that of IPython where it can be had."""
    try:
        if os.environ.get("SANDBOX_IPYTHON") != "off" and importlib.util.find_spec("IPython"):
            part("ipython")
            return Notebook(host)
    except Exception as error:
        shell = Shell(host)
        shell.notice = "IPython can't be used: %s: %s\n" % (type(error).__name__, error)
        return shell
    return Shell(host)


class Kernel:
    """Serves the requests of the host, one after another."""

    def __init__(self, host):
        self.host = host
        self.begun = False  # a run has begun, which an interrupt is for
        self.running = False  # its code runs
        self.interrupted = False
        signal.signal(signal.SIGINT, self.interrupt)
        self.shell = shell_for(host)
        self.figures = Figures(host, self.shell)

    def interrupt(self, *_):
        """Interrupt the code. Between two runs nothing happens."""
        self.interrupted = self.interrupted or self.begun
        if self.running and self.host.sending:
            self.host.interrupted = True
        elif self.running:
            raise KeyboardInterrupt

    def serve(self):
        while True:
            try:
                env, code = self.host.request()
            except EOFError:
                return
            self.run(env, code)

    def run(self, env, code):
        self.interrupted = False
        self.begun = True
        self.host.begin(self.shell.count + 1)
        before = {name: os.environ.get(name) for name in env}
        os.environ.update(env)
        error = self.guarded(code)
        if os.getpid() != self.host.pid:  # the code has forked, and its child has come back here
            flush()
            os._exit(0 if error is None else 1)
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        self.end(error)

    def guarded(self, code):
        """Run code, and return the error that it ends with."""
        try:
            try:
                self.running = True
                if self.interrupted:
                    raise KeyboardInterrupt
                if code:  # a run without code is not counted
                    self.notify()
                    self.shell.run(code)
                self.figures.show()
            finally:
                self.begun = self.running = False
        except BaseException as error:
            self.begun = self.running = False
            self.leave()
            return error
        return None

    def notify(self):
        notice, self.shell.notice = self.shell.notice, ""
        sys.stderr.write(notice)

    def leave(self):
        """Show what code that failed has drawn, lest the next run shows it."""
        try:
            self.figures.show()
        except BaseException:
            pass

    def end(self, error):
        status = "succeeded"
        if error is not None:
            status = "interrupted" if self.interrupted and isinstance(error, KeyboardInterrupt) else "failed"
            self.tell(error)
        self.host.end(status)

    def tell(self, error):
        try:
            value, trace = str(error), self.shell.explain(error)
        except BaseException as second:  # the error's own methods fail
            value, trace = "", "%s, whose text can't be made: %s" % (type(error).__name__, type(second).__name__)
        told = {"name": type(error).__name__, "value": value[:MAX_ERROR], "traceback": trace[-MAX_ERROR:]}
        self.host.send(kind="error", error=told)


for stream in (sys.stdout, sys.stderr):
    stream.reconfigure(line_buffering=True, errors="backslashreplace")
host = Host(buffer)
PARTS = {name: host.field().decode() for name in ("ipython", "charts")}
Kernel(host).serve()
