# class: HTTP, keys and WebSocket origins
# order: 17
# where: client
# Nobody uses the daemon over TCP without a key, or with a key for something else, and no
# page of another origin uses a browser's session: on each route that the document has.

import base64
import os
import re
import socket
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "client"))
from board import *

HOST, TCP = ADDRESS.rsplit(":", 1)
SCOPES = ("Boxes", "observability.logs.query", "observability.logs.write", "Keys")


def make_key(*permissions):
    answer = ask("POST", "/v1/keys", {"name": "board", "permissions": list(permissions)})
    if answer.status != 201:
        raise SystemExit("no key: " + answer.text)
    return answer.json["key"], answer.json["id"]


def routes():
    """Reads the document of routes: method, path, and the permission that the key must have ("" for any), or None."""
    path, found = None, []
    for line in ask("GET", "/openapi.yaml").text.splitlines():
        if line.startswith("components:"):
            break
        if m := re.match(r"  (/\S*):$", line):
            path = m[1]
        elif m := re.match(r"    (get|post|put|patch|delete|head):$", line):
            found.append([m[1].upper(), path, None])
        elif m := re.match(r"      security: \[\{apiKey: \[(.*)\]\}\]", line):
            found[-1][2] = m[1]
    return found


PARTS = {"id": BOX, "eid": "exec_aaaaaaaaaaaaaaaaaaaa", "port": "80", "path": "x", "cid": "python", "token": "80-aaaaaaaaaaaaaaaaaaaa-1900000000-x", "reference": "default"}
BODY = {"image": "default", "cmd": ["true"], "name": "planted", "permissions": ["Boxes"], "reference": "default", "port": 80, "path": "/tmp/planted"}


def filled(path):
    for name, value in PARTS.items():
        path = path.replace("{%s}" % name, value)
    return path + ("?path=/etc/passwd" if re.search(r"/files(:stat|:list|:watch)?$", path) else "")


def kept_out(method, path, statuses, headers=None, **how):
    """Asks what must be refused with one of the statuses."""
    answer = ask(method, filled(path), None if method in ("GET", "HEAD") else BODY, headers, **how)
    silent(answer.body)
    if answer.status not in statuses:
        raise Through("status %d: %.80s" % (answer.status, answer.text))
    return str(answer.status)


def raw(data):
    """Sends bytes over TCP, which must not be answered with anything that needs a key."""
    got = b""
    with socket.create_connection((HOST, int(TCP)), timeout=8) as s:
        try:
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
            while piece := s.recv(65536):
                got += piece
        except OSError:
            pass
    silent(got)
    if b'"principal_type"' in got or b'"box_' in got or b"root:x:0" in got:
        raise Through(got[:100].decode(errors="replace"))
    statuses = re.findall(rb"HTTP/1\.[01] (\d+)", got)
    if b"500" in statuses:
        raise RuntimeError(got[:200].decode(errors="replace"))
    return b" ".join(statuses).decode() or "closed"


def get(path):
    return ("GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % (path, ADDRESS)).encode()


def signed_in():
    """Signs a browser in, and returns its cookie, its token against forged requests and the link's token."""
    token = ask("POST", "/ui/links").json["token"]
    cookie = ask("POST", "/ui/session", {"token": token}, key="").headers["Set-Cookie"].split(";")[0]
    return cookie, ask("GET", "/ui/session", headers={"Cookie": cookie}, key="").json["csrf"], token


def forged(method, path, headers, **how):
    """A request that a page of another origin makes a browser send, or that lacks its token."""
    answer = ask(method, "/ui/api" + filled(path), None if method == "GET" else BODY, headers, key="", **how)
    if answer.status < 400:
        raise Through("status %d: %.80s" % (answer.status, answer.text))
    return str(answer.status)


def upgrade(path, headers):
    """Asks for a WebSocket, which must not begin."""
    head = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": base64.b64encode(b"k" * 16).decode()}
    answer = ask("GET", path, headers={**head, **headers}, key="")
    if answer.status < 400:
        raise Through("status %d" % answer.status)
    return str(answer.status)


def altered(change):
    """Alters a link to a port, which must not work, neither by its path nor by its host."""
    url = ask("POST", "/v1/boxes/%s:share" % BOX, {"port": 80, "expires_in_seconds": 60}).json["url"]
    token = change(re.search(r"(\d+-[a-z0-9]+-\d+-[A-Za-z0-9_-]+)", url)[1])
    met = []
    for answer in (ask("GET", "/v1/shares/%s/" % token, key=""), ask("GET", "/?sandbox_share=" + token, key="", host="80-%s.ports.test" % BOX[4:])):
        if answer.status not in (400, 401, 403, 404):
            raise Through("status %d: %.80s" % (answer.status, answer.text))
        met.append(str(answer.status))
    return " ".join(met)


def proxied(path):
    """Reaches through the proxy of ports for something other than a program in a box."""
    answer = ask("GET", path, key=KEYS["Boxes"])
    silent(answer.body)
    if answer.status < 400:
        raise Through("status %d: %.80s" % (answer.status, answer.text))
    return answer.code


def made(body):
    """Makes a box of what the client's key may not have, or what makes no sense."""
    body = {name: value for name, value in {"image": "default", "network": "None", **body}.items() if value is not None}
    answer = ask("POST", "/v1/boxes", body, key=KEYS["Boxes"])
    if answer.status < 300:
        ask("DELETE", "/v1/boxes/%s?force=true" % answer.json["id"])
        raise Through("a box was made")
    return refused(answer)


ALL = routes()
KEYS = {scope: make_key(scope)[0] for scope in SCOPES}
EVERY, _ = make_key(*SCOPES)
GONE, gone = make_key(*SCOPES)
ask("DELETE", "/v1/keys/" + gone)
COOKIE, CSRF, TOKEN = signed_in()
NAME, VALUE = COOKIE.split("=", 1)
HALF, OWN = EVERY[:len(EVERY) // 2], BOX[4:]

NOBODY = {
    "half a key": {"Authorization": "Bearer " + HALF}, "another scheme": {"Authorization": "Basic " + EVERY}, "a bare key": {"Authorization": EVERY},
    "a space in a key": {"Authorization": "Bearer " + HALF + " " + EVERY[len(HALF):]}, "a key of the other case": {"Authorization": "Bearer " + EVERY.swapcase()}, "a star": {"Authorization": "Bearer *"},
    "a key of another header": {"X-Api-Key": EVERY}, "a forwarded address": {"X-Forwarded-For": "127.0.0.1", "X-Real-Ip": "127.0.0.1"}, "a forwarded user": {"X-Forwarded-User": "root", "Remote-User": "root"},
    "a cookie with the key": {"Cookie": "Authorization=Bearer " + EVERY}, "a proxy's authorization": {"Proxy-Authorization": "Bearer " + EVERY},
    "another method by a header": {"X-HTTP-Method-Override": "GET"}, "another path by a header": {"X-Original-Url": "/healthz", "X-Rewrite-Url": "/healthz"},
}
PATHS = """/v1//me //v1/me /v1/./me /v1/x/../me /%76%31/me /v1/me/ /V1/me /v1/me%00 /v1/me;x /v1/me%2f /healthz/../v1/me /docs/..%2fv1/me /ui/../v1/me /ui/api/../../v1/me
/ui/%2e%2e/v1/me /ui/..%2f..%2fv1/me /v1/boxes/..%2fkeys /openapi.yaml/../v1/keys /v1\\me http://127.0.0.1/v1/me /api/v1/me /ui/api/v1/../v1/me /ui/../../../../../../etc/passwd
/ui/%2e%2e/%2e%2e/etc/passwd /ui/..%5c..%5cetc /ui//etc/passwd /ui/assets/../../../etc/passwd /docs/../../etc/passwd""".split()
INNER = "GET /v1/me HTTP/1.1\r\nHost: x\r\n\r\n"
HEADS = {
    "two lengths": "Content-Length: 0\r\nContent-Length: %d\r\n" % len(INNER), "a length and chunks": "Content-Length: %d\r\nTransfer-Encoding: chunked\r\n" % len(INNER), "chunks by another name": "Transfer-Encoding: xchunked\r\n",
    "chunks twice": "Transfer-Encoding: chunked, identity\r\n", "a space before the colon": "Content-Length : %d\r\n" % len(INNER), "a folded header": "X: y\r\n Transfer-Encoding: chunked\r\n", "a tab": "Transfer-Encoding:\tchunked\r\n",
    "a negative length": "Content-Length: -1\r\n", "a length with a plus": "Content-Length: +5\r\n", "a length in hex": "Content-Length: 0x10\r\n", "a bare newline": "X: y\nTransfer-Encoding: chunked\r\n", "a bare return": "X: y\rTransfer-Encoding: chunked\r\n",
    "a NUL": "X: a\0b\r\n", "two hosts": "Host: evil\r\n", "an upgrade to HTTP/2": "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n", "a chunk that lies": "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
    "a trailer with a key": "Transfer-Encoding: chunked\r\nTrailer: Authorization\r\n\r\n0\r\nAuthorization: Bearer %s\r\n" % EVERY, "a length of 8 EB": "Content-Length: 9223372036854775807\r\n",
}
BYTES = {
    "no host": "GET /v1/me HTTP/1.1\r\n\r\n", "HTTP/0.9": "GET /v1/me\r\n\r\n", "HTTP/1.0 without a host": "GET /v1/me HTTP/1.0\r\n\r\n", "HTTP/2 at once": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "CONNECT": "CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: x\r\n\r\n" % PORT,
    "another host's address": "GET http://127.0.0.1:%d/ HTTP/1.1\r\nHost: x\r\n\r\n" % PORT, "TRACE": "TRACE /v1/me HTTP/1.1\r\nHost: x\r\n\r\n", "OPTIONS *": "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", "a head of 2 MB": "GET /v1/me HTTP/1.1\r\nHost: x\r\nX: " + "x" * (2 << 20) + "\r\n\r\n",
    "20,000 headers": "GET /v1/me HTTP/1.1\r\nHost: x\r\n" + "".join("X%d: y\r\n" % n for n in range(20_000)) + "\r\n", "a path of 1 MB": "GET /v1/" + "a" * (1 << 20) + " HTTP/1.1\r\nHost: x\r\n\r\n", "a method of 100 kB": "G" * 100_000 + " /v1/me HTTP/1.1\r\nHost: x\r\n\r\n",
    "garbage": "\0\1\2\3" * 1000, "TLS": "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + "x" * 500,
}
HOSTNAMES = ["evil.test", "169.254.169.254", "localhost:1", "127.0.0.1@evil.test", "[::1]:9090", "ports.test", "x.ports.test", "80-%s.ports.test" % OWN, "80-box_x.ports.test", "0-%s.ports.test" % OWN,
             "99999-%s.ports.test" % OWN, "-1-%s.ports.test" % OWN, "080-%s.ports.test" % OWN, "80-%s.PORTS.test." % OWN, "80-..%2f..ports.test", "80-%s.ports.test.evil.test" % OWN]
COOKIES = {"two cookies": "%s; %s=x" % (COOKIE, NAME), "an altered one": NAME + "=" + VALUE[:-2] + ("AA" if VALUE[-2:] != "AA" else "BB"), "one of another port": "sandbox_session1=" + VALUE, "an empty one": NAME + "=", "one of 100 kB": NAME + "=" + "x" * 100_000, "one that is a path": NAME + "=../../../etc"}
FORGED = {
    "another origin": {"Origin": "http://evil.test"}, "a null origin": {"Origin": "null"}, "another port": {"Origin": "http://127.0.0.1:1"}, "a longer host": {"Origin": "http://%s.evil.test" % ADDRESS}, "a user in the origin": {"Origin": "http://%s@evil.test" % ADDRESS},
    "another scheme": {"Origin": "file://" + ADDRESS}, "a sister site": {"Sec-Fetch-Site": "same-site"}, "another site": {"Sec-Fetch-Site": "cross-site"}, "no token": {"Origin": "http://" + ADDRESS, "X-CSRF-Token": ""}, "another's token": {"X-CSRF-Token": "A" * len(CSRF)},
    "a form": {"Content-Type": "application/x-www-form-urlencoded", "X-CSRF-Token": ""}, "a text": {"Content-Type": "text/plain", "X-CSRF-Token": ""},
}
SOCKETS = {
    "nothing": ("/v1", {}), "a session's cookie alone": ("/v1", {"Cookie": COOKIE, "Origin": "http://" + ADDRESS}), "a lone protocol": ("/v1", {"Sec-WebSocket-Protocol": "sandbox.v1"}), "a key that is gone": ("/v1", {"Sec-WebSocket-Protocol": "sandbox.v1, bearer." + GONE}),
    "a key for logs": ("/v1", {"Sec-WebSocket-Protocol": "sandbox.v1, bearer." + KEYS["observability.logs.query"]}), "a session and no origin": ("/ui/api/v1", {"Cookie": COOKIE}), "a session and another origin": ("/ui/api/v1", {"Cookie": COOKIE, "Origin": "http://evil.test"}),
    "a session and a null origin": ("/ui/api/v1", {"Cookie": COOKIE, "Origin": "null"}), "a session and a longer host": ("/ui/api/v1", {"Cookie": COOKIE, "Origin": "http://%s.evil.test" % ADDRESS}), "a session of another site": ("/ui/api/v1", {"Cookie": COOKIE, "Origin": "http://" + ADDRESS, "Sec-Fetch-Site": "cross-site"}),
}
LINKS = {
    "another port": lambda t: "8" + t, "a port of the daemon": lambda t: TCP + t[t.index("-"):], "another box": lambda t: t.replace(OWN, "a" * len(OWN)), "a later end": lambda t: re.sub(r"-(\d{10})-", lambda m: "-%d-" % (int(m[1]) + 9999), t), "half a signature": lambda t: t[:-20],
    "no signature": lambda t: "-".join(t.split("-")[:3]) + "-", "another signature": lambda t: t[:-4] + ("AAAA" if t[-4:] != "AAAA" else "BBBB"), "a path before": lambda t: "..%2f" + t, "more parts": lambda t: t + "-x", "a zero before": lambda t: "0" + t, "a space before": lambda t: "%20" + t,
}
PORTS = {
    "port 0": "/v1/boxes/%s/ports/0/" % BOX, "a port too high": "/v1/boxes/%s/ports/65536/" % BOX, "a name": "/v1/boxes/%s/ports/daemon/" % BOX, "an address": "/v1/boxes/%s/ports/127.0.0.1:%d/" % (BOX, PORT), "another box by a path": "/v1/boxes/%s/ports/80%%2f..%%2f..%%2fx/" % BOX,
    "the daemon's own port": "/v1/boxes/%s/ports/%s/v1/me" % (BOX, TCP), "the host's ears": "/v1/boxes/%s/ports/%d/" % (BOX, PORT), "a user": "/v1/boxes/%s/ports/80@127.0.0.1:%d/" % (BOX, PORT), "a box that is the host": "/v1/boxes/localhost/ports/%d/" % PORT, "a box that is an address": "/v1/boxes/127.0.0.1/ports/%d/" % PORT,
    "a negative port": "/v1/boxes/%s/ports/-80/" % BOX, "a port in hex": "/v1/boxes/%s/ports/0x50/" % BOX,
}
HOST_PATHS = [OUTSIDE, OUTSIDE + "/file", "/", "/etc", HOME, HOME + "/records", SHARED + "/../outside", SHARED + "/./../outside", SHARED + "/../shared/../outside", SHARED + "x", "/proc/self/root" + OUTSIDE, "/dev", "/run", "relative", SHARED + "/\0", SHARED + "/none"]
BOXES = {
    "a port of every address": {"ports": [{"guest_port": 80, "host_port": 0, "host_ip": "0.0.0.0"}]}, "the daemon's port": {"network": "Isolated", "ports": [{"guest_port": 80, "host_port": int(TCP)}]}, "the host's network": {"network": "host"}, "a member that nobody knows": {"privileged": True},
    "a name that is a path": {"name": "../../x"}, "a name with a NUL": {"name": "a\0b"}, "a name with a newline": {"name": "a\nb"}, "memory without end": {"memory_mib": 1 << 60}, "negative memory": {"memory_mib": -1}, "a million CPUs": {"cpus": 1_000_000}, "an environment of 1 MB": {"env": {"A": "x" * (1 << 20)}},
    "a working directory up": {"working_dir": "../.."}, "a host name with a newline": {"hostname": "a\n127.0.0.1 evil"}, "a user with a NUL": {"user": "root\0x"},
}


def attacks():
    for method, path, scope in ALL:
        name = "%s %s " % (method, path)
        if scope is None:
            continue
        yield name + "without a key", bound(kept_out, method, path, (401,), key="")
        yield name + "with a key that is gone", bound(kept_out, method, path, (401,), key=GONE)
        for other in SCOPES:
            if scope and other != scope:
                yield name + "with a key for " + other, bound(kept_out, method, path, (403,), key=KEYS[other])
        yield name + "with a session's cookie alone", bound(kept_out, method, path, (401,), {"Cookie": COOKIE}, key="")
        if method in ("GET", "HEAD"):
            yield name + "by a session from another site", bound(forged, method, path, {"Cookie": COOKIE, "Sec-Fetch-Site": "cross-site"})
        else:
            yield name + "by a session without its token", bound(forged, method, path, {"Cookie": COOKIE})
            yield name + "by a session from another origin", bound(forged, method, path, {"Cookie": COOKIE, "X-CSRF-Token": CSRF, "Origin": "http://evil.test"})
    for name, headers in NOBODY.items():
        yield "be somebody by " + name, bound(kept_out, "GET", "/v1/me", (401,), headers, key="")
    for name in ("api_key", "access_token", "key", "token"):
        yield "a key in the query as " + name, bound(kept_out, "GET", "/v1/me?%s=%s" % (name, EVERY), (401,), key="")
    for permissions in (list(SCOPES), *[[scope] for scope in SCOPES[:3]], [], ["*"], ["Keys", "keys"], [""]):
        yield "make a key for %s with one for keys" % permissions, bound(lambda p: refused(ask("POST", "/v1/keys", {"name": "x", "permissions": p}, key=KEYS["Keys"])), permissions)
    for path in PATHS:
        yield "the path " + path, bound(raw, get(path))
    for name, head in HEADS.items():
        yield "smuggle with " + name, bound(raw, ("POST /v1/boxes HTTP/1.1\r\nHost: %s\r\n%s\r\n%s" % (ADDRESS, head, INNER)).encode())
    for name, data in BYTES.items():
        yield "send " + name, bound(raw, data.encode("latin-1"))
    for host in HOSTNAMES:
        yield "be the host " + host, bound(kept_out, "GET", "/v1/me", (400, 401, 403, 404), key="", host=host)
        yield "a session's request to the host " + host, bound(forged, "POST", "/v1/boxes", {"Cookie": COOKIE, "X-CSRF-Token": CSRF, "Origin": "http://" + ADDRESS}, host=host)
    yield "use a link twice", lambda: refused(ask("POST", "/ui/session", {"token": TOKEN}, key=""))
    for token in ("", "x", "\0", TOKEN + "x", TOKEN[:-1], TOKEN.swapcase(), "*"):
        yield "sign in with %.12r" % token, bound(lambda token: refused(ask("POST", "/ui/session", {"token": token}, key="")), token)
    for name, cookie in COOKIES.items():
        yield "a session by " + name, bound(kept_out, "GET", "/ui/session", (400, 401, 431), {"Cookie": cookie}, key="")
    for name, headers in FORGED.items():
        yield "a session's request with " + name, bound(forged, "POST", "/v1/boxes", {"Cookie": COOKIE, "X-CSRF-Token": CSRF, **headers})
    for name, (below, headers) in SOCKETS.items():
        yield "a WebSocket with " + name, bound(upgrade, "%s/boxes/%s/attach" % (below, BOX), headers)
    yield "a WebSocket with a key in the query", bound(upgrade, "/v1/boxes/%s/attach?key=%s" % (BOX, EVERY), {})
    for name, change in LINKS.items():
        yield "a link with " + name, bound(altered, change)
    for name, path in PORTS.items():
        yield "through the proxy to " + name, bound(proxied, path)
    for path in HOST_PATHS:
        yield "a volume of %.60r" % path, bound(made, {"volumes": [{"host_path": path, "guest_path": "/v"}]})
        yield "a root file system of %.60r" % path, bound(made, {"image": None, "rootfs_path": path})
    for name, body in BOXES.items():
        yield "a box with " + name, bound(made, body)


if len(ALL) < 60 or ask("GET", "/v1/me", key=EVERY).status != 200 or ask("GET", "/ui/session", headers={"Cookie": COOKIE}, key="").status != 200:
    raise SystemExit("the routes, a key or a session do not work where they must")
run(attacks(), several=8)
