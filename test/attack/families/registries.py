# class: hostile registries
# order: 14
# where: client
# A registry leads a pull neither to the host's own addresses nor to another's credentials,
# and takes no more of its memory, disk and time than an image may.

import itertools
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "client"))
from board import *
from board import send as respond
from images import *

MANIFEST, INDEX = "application/vnd.oci.image.manifest.v1+json", "application/vnd.oci.image.index.v1+json"
LAYER = tar(("f", FILE, {"data": b"x" * 20_000}))
ABOUT = config([LAYER])
BLOB = digest(LAYER)
serial = itertools.count()
PATIENCE = 45  # seconds that a pull may take: a registry that is silent is left after 30


def manifest(**change):
    doc = {"schemaVersion": 2, "mediaType": MANIFEST, "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": digest(ABOUT), "size": len(ABOUT)},
           "layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": digest(LAYER), "size": len(LAYER)}]}
    doc.update(change)
    return json.dumps(doc).encode()


def layer(**change):
    return {"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": digest(LAYER), "size": len(LAYER), **change}


def honest(handler):
    """Answers as a registry that has one image."""
    path = handler.path
    if path.endswith("/v2/"):
        return send(handler, b"{}")
    if "/manifests/" in path:
        return send(handler, manifest(), kind=MANIFEST)
    for blob in (ABOUT, LAYER):
        if path.endswith(digest(blob)):
            return send(handler, blob)
    return send(handler, b"{}", 404)


def on(part, do):
    """Answers honestly but for the paths with part in them."""
    return lambda handler: do(handler) if part in handler.path else honest(handler)


def say(body, status=200, kind=MANIFEST, **headers):
    return lambda handler: send(handler, body, status, kind, **headers)


def lead(to):
    return say(b"", 302, Location=to)


def endless(piece, pause=0.0, length=None):
    """Sends pieces until the client has gone."""
    def do(handler):
        handler.send_response(200)
        handler.send_header("Content-Type", MANIFEST)
        if length:
            handler.send_header("Content-Length", str(length))
        handler.end_headers()
        while True:
            handler.wfile.write(piece)
            handler.wfile.flush()
            time.sleep(pause)
    return do


def challenge(scheme, **members):
    """Asks for a login at another place."""
    text = ",".join('%s="%s"' % (name, value) for name, value in members.items())
    return say(b"{}", 401, "application/json", WWW_Authenticate="%s %s" % (scheme, text))


def own_image(answer):
    """Gives the layer that answer speaks of to one pull alone: pulls of the same one would wait for each other."""
    mine = LAYER.replace(b"x" * 20_000, b"%020000d" % next(serial))
    about = ABOUT.replace(BLOB.encode(), digest(mine).encode())
    names = {BLOB: digest(mine), digest(ABOUT): digest(about)}

    def renamed(body):
        if body in (LAYER, ABOUT):
            return mine if body == LAYER else about
        for name, other in names.items():
            body = body.replace(name.encode(), other.encode())
        return body

    def own(handler):
        for name, other in names.items():
            handler.path = handler.path.replace(other, name)
        handler.renamed = renamed
        answer(handler)

    return own


def send(handler, body=b"", *how, **headers):
    respond(handler, handler.renamed(body), *how, **headers)


def pull(answer, host="127.0.0.1", tag="latest", good=False):
    """Pulls from a registry that answers so. The pull fails in time, unless it is good."""
    registry = Server(own_image(answer), host)
    name = "%s/evil%d:%s" % (registry.host, next(serial), tag) if tag is not None else registry.host
    start = time.monotonic()
    try:
        got = ask("POST", "/v1/images:pull", {"reference": name})
    finally:
        registry.shutdown()
        registry.server_close()
    silent(got.body)
    if time.monotonic() - start > PATIENCE:
        raise Through("it took %d s" % (time.monotonic() - start))
    if got.status < 400:
        ask("DELETE", "/v1/images/" + name.replace("/", "%2F"))
        if good:
            return "pulled"
    return refused(got)


TOP = "/manifests/"
EARS = "127.0.0.1:%d" % PORT
# Where a registry leads a pull that must not go there.
WAYS = {"the host's loopback": EARS, "loopback by another name": "localhost:%d" % PORT, "loopback of IPv6": "[::1]:%d" % PORT, "loopback in IPv6": "[::ffff:127.0.0.1]:%d" % PORT, "another address of loopback": "127.1.2.3:%d" % PORT,
        "no address": "0.0.0.0:%d" % PORT, "no address of IPv6": "[::]:%d" % PORT, "metadata": "169.254.169.254", "metadata of containers": "169.254.170.2", "metadata of IPv6": "[fd00:ec2::254]", "a link's own addresses": "[fe80::1]"}
LOCAL = ("metadata", "metadata of containers", "a link's own addresses")

ANSWERS = {
    "a greeting without end": on("/v2/", endless(b"x" * 65536)) , "a manifest without end": on(TOP, endless(b"x" * 65536)), "a layer without end": on(BLOB, endless(b"x" * 65536)),
    "a config without end": on(digest(ABOUT), endless(b" " * 65536)), "a manifest that lies of its length": on(TOP, say(b"{}", Content_Length="99999999999")), "a manifest of 5 MB": on(TOP, say(b" " * (5 << 20))),
    "a manifest of brackets": on(TOP, say(b"[" * 4_000_000)), "a manifest of another digest": lambda h: honest(h), "a manifest that is no JSON": on(TOP, say(b"<html>")), "a manifest of another kind": on(TOP, say(manifest(), kind="text/html")),
    "an old manifest": on(TOP, say(b'{"schemaVersion": 1, "fsLayers": []}', kind="application/vnd.docker.distribution.manifest.v1+prettyjws")),
    "a layer of 1 EB": on(TOP, say(manifest(layers=[layer(size=1 << 60)]))), "a layer of a negative size": on(TOP, say(manifest(layers=[layer(size=-1)]))), "a layer that is shorter": on(TOP, say(manifest(layers=[layer(size=len(LAYER) + 1)]))),
    "a layer that is longer": on(TOP, say(manifest(layers=[layer(size=len(LAYER) - 1)]))), "a layer of another digest": on(BLOB, say(b"y" * len(LAYER))), "a config of another digest": on(digest(ABOUT), say(b"{}")), "100,000 layers": on(TOP, say(manifest(layers=[layer()] * 20_000))),
    "500 layers": on(TOP, say(manifest(layers=[layer()] * 500))), "no layers": on(TOP, say(manifest(layers=[]))), "a digest that is a path": on(TOP, say(manifest(layers=[layer(digest="sha256:../../../../records/x")]))),
    "an algorithm that is a path": on(TOP, say(manifest(layers=[layer(digest="../../x:" + "0" * 64)]))), "a digest of another algorithm": on(TOP, say(manifest(layers=[layer(digest="md5:" + "0" * 32)]))), "a digest in capitals": on(TOP, say(manifest(layers=[layer(digest=BLOB.upper())]))),
    "a layer of another kind": on(TOP, say(manifest(layers=[layer(mediaType="application/evil")]))), "a layer encrypted": on(TOP, say(manifest(layers=[layer(mediaType="application/vnd.oci.image.layer.v1.tar+encrypted")]))),
    "an index of 100 indexes": on(TOP, say(json.dumps({"schemaVersion": 2, "manifests": [{"mediaType": INDEX, "digest": "sha256:%064x" % n, "size": 9} for n in range(100)]}).encode(), kind=INDEX)),
    "an index of itself": on(TOP, say(json.dumps({"schemaVersion": 2, "manifests": [{"mediaType": INDEX, "digest": "sha256:" + "0" * 64, "size": 9}]}).encode(), kind=INDEX)),
    "a redirect without end": on(BLOB, lambda h: send(h, b"", 302, Location=h.path)), "a redirect to a file": on(BLOB, lead("file://" + OUTSIDE + "/file")), "a redirect to gopher": on(BLOB, lead("gopher://%s/x" % EARS)), "a redirect to nothing": on(BLOB, lead("")),
    "a redirect to a user": on(BLOB, lead("http://user:password@%s:x/" % EARS)), "a redirect to a name of 100 kB": on(BLOB, lead("http://" + "a" * 100_000)), "a redirect to /proc": on(TOP, lead("file:///proc/self/environ")),
    "a header of 2 MB": on(TOP, lambda h: send(h, b"", X="x" * (2 << 20))), "50,000 headers": on(TOP, lambda h: send(h, b"", **{"X%d" % n: "y" for n in range(50_000)})), "a status of 1xx for ever": on(TOP, lambda h: [h.wfile.write(b"HTTP/1.1 103 x\r\n\r\n") for _ in range(1_000_000)]),
    "no HTTP": lambda h: h.wfile.write(b"\0" * 100_000), "chunks that lie": on(BLOB, lambda h: h.wfile.write(b"HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nx")), "a range that nobody asked for": on(BLOB, say(LAYER[5:], 206, Content_Range="bytes 5-9/9")),
    "gzip on the way": on(TOP, say(b"\x1f\x8b" + b"\0" * 100, Content_Encoding="gzip")), "a login without end": lambda h: challenge("Bearer", realm="http://%s/token" % h.headers["Host"], service="x")(h) if "token" not in h.path else send(h, b'{"token": "%s"}' % (b"t" * 9_000_000)),
    "a login that is none": on("/v2/", challenge("Bearer", realm="")), "a login at a file": on("/v2/", challenge("Bearer", realm="file://" + OUTSIDE + "/file")), "a login of Basic": on("/v2/", challenge("Basic", realm="x")), "a login of another kind": on("/v2/", challenge("Negotiate")),
    "a login of a giant scope": on("/v2/", challenge("Bearer", realm="http://127.0.0.1:1/", scope="x" * 500_000)), "errors with control characters": on(TOP, say(b'{"errors": [{"code": "\\u001b[2J", "message": "\\u001b]0;evil\\u0007"}]}', 400)),
    "an error of 5 MB": on(TOP, say(b'{"errors": [{"code": "' + b"x" * (5 << 20) + b'"}]}', 404)), "500 for ever": on(TOP, say(b"", 500)), "429 for a day": on(TOP, say(b"", 429, Retry_After="86400")), "a foreign layer": on(TOP, say(manifest(layers=[layer(mediaType="application/vnd.docker.image.rootfs.foreign.diff.tar.gzip", digest="sha256:" + "1" * 64, urls=["http://%s/x" % EARS, "file:///etc/shadow"])]))),
    "a mount of another's layer": on(TOP, say(manifest(layers=[layer(digest="sha256:" + "2" * 64)]))),
}
SLOW = {
    "a manifest byte by byte": on(TOP, endless(b" ", 0.5)), "a layer byte by byte": on(BLOB, endless(b"x", 0.5, len(LAYER))), "silence at first": lambda h: time.sleep(PATIENCE), "silence in a layer": on(BLOB, lambda h: (send(h, b"", Content_Length=str(len(LAYER))), time.sleep(PATIENCE))),
    "silence in a login": lambda h: time.sleep(PATIENCE) if "token" in h.path else challenge("Bearer", realm="http://%s/token" % h.headers["Host"])(h),
}
NAMES = ["", "..", "../../etc", "127.0.0.1:%d" % PORT + "/../x", "http://127.0.0.1/x", "file:///etc/passwd", "x@sha256:zz", "evil:" + "t" * 200, "a" * 300, "user:password@127.0.0.1/x", "127.0.0.1:99999/x", "x y", "x\n", "\0", "-rf", "[::1/x", "127.0.0.1:%d/x?y=z" % PORT, "127.0.0.1:%d/x#y" % PORT]


def leak():
    """A registry that leads elsewhere must not carry credentials there: of the host's user for the first, there are some."""
    seen = []
    other = Server(own_image(lambda h: (seen.append(h.headers.get("Authorization")), send(h, LAYER))))
    first = Server(own_image(on(BLOB, lambda h: send(h, b"", 307, Location="http://%s/x" % other.host))))
    folder = os.path.join(os.environ["HOME"], ".docker")
    os.makedirs(folder, exist_ok=True)
    with open(folder + "/config.json", "w") as f:
        json.dump({"auths": {first.host: {"auth": "dXNlcjpwYXNzd29yZA=="}}}, f)
    got = ask("POST", "/v1/images:pull", {"reference": first.host + "/x"})
    os.unlink(folder + "/config.json")
    told = [headers.get("Authorization") for _, headers in first.asked]
    first.shutdown(), other.shutdown()
    if any(seen):
        raise Through("another host was told %r" % seen)
    if not any(told):
        raise RuntimeError("the registry itself was not told: %r %s" % (told, got.code))
    return "not told"


def another():
    """A token server of another host must not hear the credentials of a registry that has none for it."""
    seen = []
    other = Server(own_image(lambda h: (seen.append(h.headers.get("Authorization")), send(h, b'{"token": "x"}'))))
    pull(on("/v2/", challenge("Bearer", realm="http://%s/token" % other.host, service="x")))
    if any(seen):
        raise Through("it was told %r" % seen)
    return "not told"


def attacks():
    for name, answer in ANSWERS.items():
        yield name, bound(pull, answer, tag="latest@sha256:" + "0" * 64 if name == "a manifest of another digest" else "latest")
    for name, answer in SLOW.items():
        yield name, bound(pull, answer)
    for name in NAMES:
        yield "an image called %.40r" % name, bound(lambda name: refused(ask("POST", "/v1/images:pull", {"reference": name})), name)
    outer = next((host for host in HOSTS if ":" not in host), None)
    for name, to in WAYS.items():
        for scheme in ("http", "https"):
            url = "%s://%s/x" % (scheme, to)
            for part, what in ((TOP, "manifest"), (BLOB, "layer")):
                if name in LOCAL:
                    yield "a %s led to %s by %s" % (what, name, scheme), bound(pull, on(part, lead(url)))
                if outer:
                    yield "a %s led from outside to %s by %s" % (what, name, scheme), bound(pull, on(part, lead(url)), outer)
            if name in LOCAL:
                yield "a login at %s by %s" % (name, scheme), bound(pull, on("/v2/", challenge("Bearer", realm=url, service="x")))
            if outer:
                yield "a login from outside at %s by %s" % (name, scheme), bound(pull, on("/v2/", challenge("Bearer", realm=url, service="x")), outer)
    yield "credentials of one registry for another host", leak
    yield "credentials for a token server of another host", another


for host in ["127.0.0.1"] + [host for host in HOSTS if ":" not in host][:1]:
    told = pull(honest, host, good=True)
    if told != "pulled":
        raise SystemExit("an honest registry at %s does not work: %s" % (host, told))
run(attacks(), several=24)
