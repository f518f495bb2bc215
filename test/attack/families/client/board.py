"""What the families have in common whose attacks are clients' on the host.

An attack is a name and a function that returns what it met. It raises Through if it
got through; if it raises anything else, it did not run."""

import functools
import http.client
import io
import json
import os
import socket
import ssl
import subprocess
import tarfile
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BUILD, HOME, BOX = os.environ["BOARD_BUILD"], os.environ["BOARD_HOME"], os.environ["BOARD_BOX"]
OUTSIDE, SECRET = os.environ["BOARD_OUTSIDE"], os.environ["BOARD_SECRET"]
ADDRESS, SOCKET, SHARED = os.environ["BOARD_ADDRESS"], os.environ["BOARD_SOCKET"], os.environ["BOARD_SHARED"]
PORT = int(os.environ["BOARD_PORT"])
HOSTS = [host for host in os.environ["BOARD_HOSTS"].split(",") if host]
TIME = 60


class Through(Exception):
    """An attack got through."""


class ByFile(http.client.HTTPConnection):
    """A connection to the daemon's Unix socket, which has every right."""

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(SOCKET)


class Answer:
    """What the daemon answered."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def text(self):
        return self.body.decode(errors="replace")

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def code(self):
        """The code of a failure, or the status."""
        try:
            doc = self.json
            return doc["code"] if "code" in doc else doc["error"]["code"]
        except (ValueError, KeyError, TypeError):
            return str(self.status)


def ask(method, path, body=None, headers=None, key=None, host=None):
    """Asks the daemon: over TCP with a key ("" for none), else over its socket."""
    conn = ByFile("box", timeout=TIME) if key is None else http.client.HTTPConnection(ADDRESS, timeout=TIME)
    headers = dict(headers or {})
    if key:
        headers["Authorization"] = "Bearer " + key
    if host:
        headers["Host"] = host
    if isinstance(body, (dict, list)):
        body = json.dumps(body)
    if isinstance(body, str):
        body = body.encode()
        headers.setdefault("Content-Type", "application/json")
    try:
        conn.connect()
        # The head leaves together with the body. A host that is none is answered before a body
        # is read, and a body that comes behind that answer resets the connection.
        if key is not None:
            conn.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
        conn.request(method, path, body, headers)
        if key is not None:
            conn.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)
        answer = conn.getresponse()
        return Answer(answer.status, answer.headers, answer.read())
    finally:
        conn.close()


def sandbox(*args, stdin=None, check=False):
    """Runs the command line on the home, and returns its exit code, stdout and stderr."""
    done = subprocess.run([BUILD + "/sandbox", "--local", *args], input=stdin, capture_output=True, timeout=TIME, check=False)
    if check and done.returncode:
        raise RuntimeError("sandbox %s: %s" % (args[0], done.stderr.decode(errors="replace")))
    return done.returncode, done.stdout, done.stderr


def inside(script, box=BOX, user="0"):
    """Runs a script of sh in a box, and returns what it prints."""
    return sandbox("exec", "-u", user, box, "--", "sh", "-c", script, check=True)[1].decode(errors="replace")


def refused(answer):
    """The attack must have been refused with a failure of the client's."""
    if answer.status < 400:
        raise Through("status %d: %.80s" % (answer.status, answer.text))
    if answer.status == 500:
        raise RuntimeError(answer.text[:200])
    return answer.code


def failed(result):
    """The command must have failed, with a reason, and not by a panic or a signal."""
    code, out, err = result
    text = err.decode(errors="replace")
    if code == 0:
        raise Through("it was done: %.80r" % out)
    if code < 0 or "panic" in text or "internal error" in text:
        raise RuntimeError(text[:200])
    return "refused"


def silent(data, what="the secret was read"):
    """Nothing of the host may be in data."""
    if isinstance(data, str):
        data = data.encode()
    if SECRET.encode() in data:
        raise Through(what)
    return "nothing of the host"


def tar(*entries, format=tarfile.PAX_FORMAT):
    """Returns a tar of entries: a name, a type, and members of tarfile.TarInfo, with "data" for content."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format) as archive:
        for name, kind, more in entries:
            info, data = tarfile.TarInfo(name), more.get("data", b"")
            info.type, info.size, info.mode = kind, len(data), more.get("mode", 0o755 if kind == tarfile.DIRTYPE else 0o644)
            info.linkname, info.uid, info.gid = more.get("to", ""), more.get("uid", 0), more.get("gid", 0)
            info.devmajor, info.devminor = more.get("device", (0, 0))
            info.pax_headers = more.get("pax", {})
            archive.addfile(info, io.BytesIO(data) if data else None)
    return out.getvalue()


FILE, DIRECTORY, LINK, HARD = tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE
DEVICE, BLOCK, PIPE = tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE


class Server(ThreadingHTTPServer):
    """A server of an attacker's, with TLS unless it is on loopback; answer(handler) answers what it is asked."""

    daemon_threads = True

    def __init__(self, answer, host="127.0.0.1"):
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                self.server.asked.append((self.path, dict(self.headers)))
                try:
                    answer(self)
                except OSError:
                    pass
                self.close_connection = True

            do_HEAD = do_POST = do_PUT = do_GET

            def log_message(self, *args):
                pass

        super().__init__((host, 0), Handler)
        if host != "127.0.0.1":
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(os.environ["BOARD_CERTIFICATE"], os.environ["BOARD_KEY"])
            self.socket = context.wrap_socket(self.socket, server_side=True)
        self.asked = []
        self.host = "%s:%d" % (host, self.server_address[1])
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        pass


def send(handler, body=b"", status=200, kind="application/octet-stream", **headers):
    """Answers a request of a Server's."""
    handler.send_response(status)
    handler.send_header("Content-Type", kind)
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    if "Content_Length" not in headers:
        handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    if handler.command != "HEAD":
        handler.wfile.write(body)


def judge(attack):
    try:
        return "held", str(attack()).replace("\t", " ").replace("\n", " ") or "nothing"
    except Through as e:
        return "GOT THROUGH", str(e)
    except Exception as e:
        return "NOT RUN", "%s: %s" % (type(e).__name__, str(e).replace("\n", " ").replace("\t", " "))


def run(attacks, several=4):
    """Announces the attacks, runs several at once, and tells what became of each."""
    attacks = list(attacks)
    print("plan\t%d" % len(attacks))
    with ThreadPoolExecutor(several) as pool:
        for (name, _), told in zip(attacks, pool.map(judge, [do for _, do in attacks])):
            print("\t".join((name.replace("\t", " ").replace("\n", " "),) + told), flush=True)


bound = functools.partial
