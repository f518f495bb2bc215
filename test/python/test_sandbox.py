"""The C library from Python: ctypes, nothing but the standard library.

Needs root and three variables: LIBSANDBOX names the library's file, ROOTFS a
root file system and SANDBOX_HOME a directory for the boxes.
"""

import ctypes
import json
import os
import threading
import unittest

OK, NOT_FOUND, INVALID_ARGUMENT, EXECUTION, TIMEOUT, CANCELED = 0, 2, 5, 10, 32, 33

# Set after the interpreter has started: the library must see it nevertheless.
os.environ["SANDBOX_HOME"] = os.environ["LATE_HOME"]

LIB = ctypes.CDLL(os.environ["LIBSANDBOX"])


class Error(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int), ("message", ctypes.c_char_p)]


class Command(ctypes.Structure):
    _fields_ = [
        ("command", ctypes.c_char_p),
        ("args_json", ctypes.c_char_p),
        ("env_json", ctypes.c_char_p),
        ("workdir", ctypes.c_char_p),
        ("user", ctypes.c_char_p),
        ("timeout_secs", ctypes.c_double),
    ]


Callback = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p)
Handle, Text, Int = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
OutHandle, OutInt, Err = map(ctypes.POINTER, (Handle, Int, Error))

for name, result, *parameters in [
    ("version", Text),
    ("runtime_new", Int, Text, Text, OutHandle, Err),
    ("runtime_free", None, Handle),
    ("create_box", Int, Handle, Text, OutHandle, Err),
    ("create_named_box", Int, Handle, Text, Text, OutHandle, Err),
    ("get", Int, Handle, Text, OutHandle, Err),
    ("stop_box", Int, Handle, Err),
    ("box_info", Int, Handle, OutHandle, Err),
    ("list_info", Int, Handle, OutHandle, Err),
    ("box_free", None, Handle),
    ("execute", Int, Handle, Text, Text, Callback, Handle, OutInt, Err),
    ("execute_cmd", Int, Handle, ctypes.POINTER(Command), Callback, Handle, OutInt, Err),
    ("free_string", None, Handle),
    ("error_free", None, Err),
]:
    function = getattr(LIB, "sandbox_" + name)
    function.restype, function.argtypes = result, parameters


class Failure(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def call(name, *arguments):
    """Calls a function that reports to an error struct."""
    err = Error()
    code = getattr(LIB, "sandbox_" + name)(*arguments, ctypes.byref(err))
    if code != OK:
        failure = Failure(err.code, err.message.decode())
        LIB.sandbox_error_free(ctypes.byref(err))
        assert failure.code == code and err.message is None
        raise failure


def handle(name, *arguments):
    out = Handle()
    call(name, *arguments, ctypes.byref(out))
    return out


def document(name, *arguments):
    text = handle(name, *arguments)
    try:
        return json.loads(ctypes.string_at(text).decode())
    finally:
        LIB.sandbox_free_string(text)


OPTIONS = json.dumps(
    {
        "rootfs": {"RootfsPath": os.environ["ROOTFS"]},
        "env": [["GREETING", "grüße"]],
        "volumes": [],
        "network": "Isolated",
        "ports": [],
        "cpus": 1,
        "memory_mib": 128,
    }
).encode()


class Sandbox(unittest.TestCase):
    def setUp(self):
        self.runtime = handle("runtime_new", None, None)
        self.addCleanup(LIB.sandbox_runtime_free, self.runtime)

    def box(self):
        return handle("create_box", self.runtime, OPTIONS)

    def run_in(self, box, *command, **more):
        """Runs a command; returns its exit code, stdout and stderr."""
        streams, threads, code = (bytearray(), bytearray()), set(), Int(77)

        @Callback
        def collect(text, is_stderr, _):
            streams[is_stderr].extend(text)
            threads.add(threading.get_ident())

        cmd = Command(command[0].encode(), json.dumps(command[1:]).encode(), **more)
        call("execute_cmd", box, ctypes.byref(cmd), collect, None, ctypes.byref(code))
        self.assertLessEqual(threads, {threading.get_ident()})
        return code.value, streams[0].decode(), streams[1].decode()

    def test_version(self):
        self.assertEqual(LIB.sandbox_version(), b"0.1.0")

    def test_commands(self):
        box = self.box()
        self.assertEqual(self.run_in(box, "sh", "-c", "echo $GREETING; echo no >&2; exit 4"), (4, "grüße\n", "no\n"))
        self.assertEqual(self.run_in(box, "sh", "-c", "kill -9 $$")[0], -9)
        self.assertEqual(self.run_in(box, "pwd", workdir=b"/tmp"), (0, "/tmp\n", ""))
        code = Int(77)
        call("execute", box, b"true", None, Callback(), None, ctypes.byref(code))
        self.assertEqual(code.value, 0)

    def test_failures(self):
        box = self.box()
        for code, attempt in [
            (INVALID_ARGUMENT, lambda: handle("create_box", self.runtime, b"{}")),
            (INVALID_ARGUMENT, lambda: handle("create_box", None, OPTIONS)),
            (NOT_FOUND, lambda: handle("get", self.runtime, b"nobody")),
            (EXECUTION, lambda: self.run_in(box, "no-such-command")),
            (TIMEOUT, lambda: self.run_in(box, "sleep", "100", timeout_secs=0.1)),
        ]:
            with self.assertRaises(Failure) as caught:
                attempt()
            self.assertEqual(caught.exception.code, code, caught.exception)

    def test_info(self):
        box = handle("create_named_box", self.runtime, b"python", OPTIONS)
        info = document("box_info", box)
        self.assertEqual((info["name"], info["state"]["status"]), ("python", "running"))
        self.assertIn(info["id"], [listed["id"] for listed in document("list_info", self.runtime)])
        LIB.sandbox_box_free(box)
        LIB.sandbox_box_free(box)
        with self.assertRaises(Failure) as caught:
            document("box_info", box)
        self.assertEqual(caught.exception.code, INVALID_ARGUMENT)

    def test_stop_from_another_thread(self):
        handle("create_named_box", self.runtime, b"busy", OPTIONS)
        mine, code = handle("get", self.runtime, b"busy"), Int(77)
        stopper = threading.Thread(target=lambda: call("stop_box", handle("get", self.runtime, b"busy")))

        @Callback
        def begun(_text, _is_stderr, _user_data):
            stopper.start()

        with self.assertRaises(Failure) as caught:
            call("execute", mine, b"sh", b'["-c", "echo begun; sleep 1000"]', begun, None, ctypes.byref(code))
        stopper.join()
        self.assertEqual((caught.exception.code, code.value), (CANCELED, 77))

    def test_threads_share_a_runtime(self):
        results = []

        def work():
            box = self.box()
            results.append(self.run_in(box, "echo", "x")[:2])
            call("stop_box", box)
            LIB.sandbox_box_free(box)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(results, [(0, "x\n")] * 8)


if __name__ == "__main__":
    unittest.main()
