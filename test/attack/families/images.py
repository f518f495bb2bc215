# class: images, tars and recipes
# order: 13
# where: client
# An image reaches nothing but its own layers, whatever its tars, its config and the recipe
# that it is made of say: after the holes of runc, containerd, buildah, podman and docker.

import gzip
import hashlib
import itertools
import os
import sys
import tempfile
import zlib
from urllib.parse import quote

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "client"))
from board import *
from images import *

UP, OUT, EVIL = "../" * 12, OUTSIDE.strip("/"), {"data": b"evil"}
SYSTEM = system()
serial = itertools.count()

# Layers, each as it is in a tar of a system, in a docker archive and in an OCI layout.
LAYERS = {
    "a name that goes up": [(UP + OUT + "/file", FILE, EVIL)],
    "an absolute name": [(OUTSIDE + "/file", FILE, EVIL)],
    "dots in the middle": [("a/", DIRECTORY, {}), ("a/../../%s%s/file" % (UP, OUT), FILE, EVIL)],
    "an absolute link and a name through it": [("l", LINK, {"to": OUTSIDE}), ("l/file", FILE, EVIL)],
    "a link up and a name through it": [("l", LINK, {"to": UP + OUT}), ("l/file", FILE, EVIL)],
    "a chain of links": [("a", LINK, {"to": "b"}), ("b", LINK, {"to": UP + OUT}), ("a/file", FILE, EVIL)],
    "a directory made through a link": [("l", LINK, {"to": OUTSIDE}), ("l/made/", DIRECTORY, {})],
    "a mode set through a link": [("l", LINK, {"to": OUTSIDE + "/directory"}), ("l/", DIRECTORY, {"mode": 0o777})],
    "a link to descriptors": [("l", LINK, {"to": "/proc/self/fd"}), ("l/3/x", FILE, EVIL)],
    "a link to a root of a process": [("l", LINK, {"to": "/proc/1/root" + OUTSIDE}), ("l/file", FILE, EVIL)],
    "a hard link up": [("h", HARD, {"to": UP + OUT + "/file"}), ("h", FILE, EVIL)],
    "a hard link to an absolute name": [("h", HARD, {"to": OUTSIDE + "/file"})],
    "a hard link through a link": [("l", LINK, {"to": OUTSIDE}), ("h", HARD, {"to": "l/file"})],
    "a hard link to a link": [("l", LINK, {"to": OUTSIDE + "/file"}), ("h", HARD, {"to": "l"}), ("h", FILE, EVIL)],
    "a name twice, a link first": [("f", LINK, {"to": OUTSIDE + "/file"}), ("f", FILE, EVIL)],
    "a directory over a link": [("d", LINK, {"to": OUTSIDE}), ("d/", DIRECTORY, {"mode": 0o777}), ("d/file", FILE, EVIL)],
    "a PAX name that goes up": [("f", FILE, {"pax": {"path": UP + OUT + "/file"}, **EVIL})],
    "a PAX link that goes up": [("h", HARD, {"to": "f", "pax": {"linkpath": UP + OUT + "/file"}})],
    "a PAX size that lies": [("f", FILE, {"pax": {"size": "8000000000000"}, **EVIL})],
    "a PAX name with a NUL": [("f", FILE, {"pax": {"path": "a\0b"}, **EVIL})],
    "a sparse PAX file": [("f", FILE, {"pax": {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": UP + OUT + "/file", "GNU.sparse.realsize": "9000000000000"}, **EVIL})],
    "the root as a link": [(".", LINK, {"to": OUTSIDE}), ("file", FILE, EVIL)],
    "the root as a file": [("./", FILE, EVIL)],
    "a whiteout that goes up": [(UP + OUT + "/.wh.file", FILE, {})],
    "a whiteout through a link": [("l", LINK, {"to": OUTSIDE}), ("l/.wh.file", FILE, {})],
    "a whiteout of dots": [("a/.wh...", FILE, {})],
    "a whiteout of the root": [(".wh..", FILE, {})],
    "an opaque link": [("l", LINK, {"to": OUTSIDE}), ("l/.wh..wh..opq", FILE, {})],
    "a whiteout of overlayfs": [("x", DEVICE, {"device": (0, 0)})],
    "a disk": [("d", BLOCK, {"device": (8, 0), "mode": 0o666})],
    "the memory": [("mem", DEVICE, {"device": (1, 1), "mode": 0o666})],
    "an owner beyond the box's": [("f", FILE, {"uid": 1 << 21, **EVIL})],
    "a negative owner": [("f", FILE, {"uid": -1, "gid": -1, **EVIL})],
    "a redirect of overlayfs": [("d", DIRECTORY, {"pax": {"SCHILY.xattr.%s.overlay.redirect" % of: OUTSIDE for of in ("trusted", "user")}}), ("d/x", FILE, EVIL)],
    "a metacopy of overlayfs": [("m", FILE, {"pax": {"SCHILY.xattr.%s.overlay.%s" % (of, what): text for of in ("trusted", "user") for what, text in {"metacopy": "x", "redirect": OUTSIDE + "/file"}.items()}, **EVIL})],
    "an opaque mark of overlayfs": [("bin", DIRECTORY, {"pax": {"SCHILY.xattr.%s.overlay.opaque" % of: "y" for of in ("trusted", "user")}})],
    "an attribute that trusts": [("f", FILE, {"pax": {"SCHILY.xattr.trusted.evil": "x"}, **EVIL})],
    "a capability": [("bin/cap", FILE, {"mode": 0o755, "pax": {"SCHILY.xattr.security.capability": "\x01\x00\x00\x02\x00\x00 \x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"}, **EVIL})],
    "a label of SELinux": [("f", FILE, {"pax": {"SCHILY.xattr.security.selinux": "system_u:object_r:shadow_t:s0"}, **EVIL})],
    "a name of 5000": [("n" * 5000, FILE, EVIL)],
    "a depth of 2000": [("d/" * 2000 + "f", FILE, EVIL)],
    "a loop of links": [("a", LINK, {"to": "b"}), ("b", LINK, {"to": "a"}), ("a/f", FILE, EVIL)],
    "a pipe where a file is": [("etc/hosts", PIPE, {}), ("etc/hosts", FILE, EVIL)],
    "etc as a link to the host's": [("etc", LINK, {"to": OUTSIDE})],
    "hosts as a link to the host's": [("etc/hosts", LINK, {"to": OUTSIDE + "/file"}), ("etc/resolv.conf", LINK, {"to": UP + OUT + "/file"}), ("etc/hostname", LINK, {"to": "/proc/self/fd/4"})],
    "proc as a link": [("proc", LINK, {"to": OUTSIDE})],
    "dev as a link": [("dev", LINK, {"to": OUTSIDE})],
    "sys as a link": [("sys", LINK, {"to": UP + OUT})],
    "passwd as a link to the host's": [("etc/passwd", LINK, {"to": OUTSIDE + "/file"})],
    "passwd as a device's name": [("etc/passwd", LINK, {"to": "/dev/zero"})],
    "a shell that is the program of init": [("bin/sh", LINK, {"to": "/proc/self/exe"})],
    "set-user-id programs": [("bin/su%d" % n, HARD, {"to": "bin/busybox"}) for n in range(2)] + [("bin/set", FILE, {"mode": 0o6755, **EVIL})],
}

# Two layers, of which the second goes through what the first has put there.
PAIRS = {
    "a file through a lower link": ([("l", LINK, {"to": OUTSIDE})], [("l/file", FILE, EVIL)]),
    "a directory over a lower link": ([("l", LINK, {"to": OUTSIDE})], [("l/", DIRECTORY, {}), ("l/file", FILE, EVIL)]),
    "a whiteout below a lower link": ([("l", LINK, {"to": OUTSIDE})], [("l/.wh.file", FILE, {})]),
    "an opaque lower link": ([("l", LINK, {"to": OUTSIDE})], [("l/.wh..wh..opq", FILE, {})]),
    "a hard link to a lower link": ([("l", LINK, {"to": OUTSIDE + "/file"})], [("h", HARD, {"to": "l"})]),
    "a hard link to a lower file": ([("f", FILE, EVIL)], [("h", HARD, {"to": "f"})]),
    "a link in the place of a lower directory": ([("d/", DIRECTORY, {}), ("d/file", FILE, EVIL)], [("d", LINK, {"to": OUTSIDE})]),
    "a whiteout of all that is below": ([("a/b/c", FILE, EVIL)], [(".wh..wh..opq", FILE, {})]),
}

# What is odd about the archive itself.
ARCHIVES = {
    "a layer's name that goes up": lambda: docker([SYSTEM], [UP + OUT + "/file"]),
    "a layer's absolute name": lambda: docker([SYSTEM], [OUTSIDE + "/file"]),
    "a layer that is not there": lambda: tar(("manifest.json", FILE, {"data": json.dumps([{"Config": "c", "Layers": [OUTSIDE + "/file"]}]).encode()}), ("c", FILE, {"data": config([SYSTEM])})),
    "a layer that is a link to the host's": lambda: linked(LINK, OUTSIDE + "/file"),
    "a layer that is a link up": lambda: linked(LINK, UP + OUT + "/file"),
    "a layer that is a hard link to the host's": lambda: linked(HARD, OUTSIDE + "/file"),
    "a layer that is a link to a descriptor": lambda: linked(LINK, "/proc/self/fd/0"),
    "a layer that is a pipe": lambda: linked(PIPE, ""),
    "a layer that is a device": lambda: linked(DEVICE, ""),
    "a layer's directory that is a link": lambda: docker([SYSTEM], ["d/layer.tar"], extra=[("d", LINK, {"to": OUTSIDE})]),
    "a manifest that is a link": lambda: tar(("manifest.json", LINK, {"to": OUTSIDE + "/file"})),
    "an index that is a link": lambda: tar(("oci-layout", FILE, {"data": b"{}"}), ("index.json", LINK, {"to": OUTSIDE + "/file"})),
    "two manifests": lambda: docker([SYSTEM], extra=[("manifest.json", FILE, {"data": b'[{"Config": "%s/file", "Layers": []}]' % OUTSIDE.encode()})]),
    "a config that is the host's": lambda: tar(("manifest.json", FILE, {"data": json.dumps([{"Config": OUTSIDE + "/file", "Layers": []}]).encode()})),
    "a digest that is a path": lambda: layout([SYSTEM], change=lambda m, i: m["layers"][0].update(digest="sha256:" + UP + OUT + "/file")),
    "an algorithm that is a path": lambda: layout([SYSTEM], change=lambda m, i: m["layers"][0].update(digest="../../" + OUT + ":file")),
    "a digest of another layer": lambda: layout([SYSTEM], change=lambda m, i: m["layers"][0].update(digest="sha256:" + "0" * 64)),
    "a config's digest that is a path": lambda: layout([SYSTEM], change=lambda m, i: m["config"].update(digest="sha256:" + UP + OUT)),
    "an index of itself, 100 times": lambda: layout([SYSTEM], change=lambda m, i: i["manifests"].extend({"mediaType": "application/vnd.oci.image.index.v1+json", "digest": "sha256:%064x" % n, "size": 9} for n in range(100))),
    "a foreign layer with an address": lambda: layout([SYSTEM], change=lambda m, i: m["layers"][0].update(mediaType="application/vnd.docker.image.rootfs.foreign.diff.tar.gzip", digest="sha256:" + "1" * 64, urls=["http://127.0.0.1:%d/layer" % PORT, "file://" + OUTSIDE + "/file"])),
    "500 layers": lambda: layout([SYSTEM], change=lambda m, i: m.update(layers=m["layers"] * 500)),
    "a config of 100,000 brackets": lambda: docker([SYSTEM], about=b"[" * 100_000),
    "a manifest of 20 MB": lambda: tar(("manifest.json", FILE, {"data": b" " * (20 << 20)})),
    "20,000 files": lambda: tar(*[("f%d" % n, FILE, {}) for n in range(20_000)], ("manifest.json", FILE, {"data": b"[]"})),
    "gzip in gzip": lambda: gzip.compress(gzip.compress(SYSTEM, 1), 1),
    "gzip with a wrong sum": lambda: gzip.compress(SYSTEM, 1)[:-8] + b"\0" * 8,
    "gzip with garbage behind": lambda: gzip.compress(SYSTEM, 1) + b"garbage" * 99,
    "a gzip of one header and 2 GB": lambda: bomb(),
    "a layer of 1000 names for one directory": lambda: docker([tar(*[("d/" * n + "x", DIRECTORY, {}) for n in range(1, 1000)])]),
    "a layer with a header of 8 MB": lambda: docker([tar(("f", FILE, {"pax": {"comment": "x" * (8 << 20)}}))]),
    "a layer with 10,000 attributes": lambda: docker([tar(("f", FILE, {"pax": {"SCHILY.xattr.user.%d" % n: "x" for n in range(10_000)}}))]),
    "zstd that wants 2 GB": lambda: b"\x28\xb5\x2f\xfd\x00\xa8" + b"\0" * 64,
}


def linked(kind, to):
    """Returns a docker archive whose layer is no file."""
    manifest = json.dumps([{"Config": "c", "Layers": ["layer.tar"]}]).encode()
    return tar(("manifest.json", FILE, {"data": manifest}), ("c", FILE, {"data": config([SYSTEM])}), ("layer.tar", kind, {"to": to, "device": (1, 5)}))


def bomb():
    """Returns 2 GB of zeros behind the header of a file of 8 GB, packed a thousandfold."""
    pack = zlib.compressobj(9, zlib.DEFLATED, 31)
    info = tarfile.TarInfo("f")
    info.size = 8 << 40
    return pack.compress(info.tobuf(tarfile.GNU_FORMAT)) + b"".join(pack.compress(b"\0" * (1 << 24)) for _ in range(8)) + pack.flush()


# What a config says. Of each a box is made, in which a look around shows nothing of the host.
CONFIGS = {"WorkingDir " + d: {"WorkingDir": d} for d in
           ["/proc/self/fd/%d" % fd for fd in range(3, 15)] + ["/proc/self/fd/7/" + UP, "/proc/1/cwd", "/proc/self/cwd/..", "/proc/thread-self/root", "/l", "/l/" + UP, UP, "relative", "/" + "d/" * 3000, "/new\nline", "/proc", "/sys/fs/cgroup"]}
CONFIGS.update({"User %r" % u: {"User": u} for u in ("0:0:0", "-1", "4294967295", "65536", "../root", "root\nevil", "1000:99999999", "evil", "0x0")})
CONFIGS.update({"Entrypoint %r" % (e,): {"Entrypoint": e} for e in (["/proc/self/exe"], ["/proc/1/exe"], ["/proc/self/fd/3"], ["/proc/self/fd/4"], ["/bin/../../../.." + OUTSIDE + "/file"], ["/bin/sh\0"], [""], ["/"], ["x" * 200_000])})
CONFIGS.update({
    "a PATH of descriptors": {"Env": ["PATH=/proc/self/fd/3:/proc/self/fd/7:/proc/1/root/bin:/bin"]},
    "a loader's settings": {"Env": ["LD_PRELOAD=/proc/self/fd/3", "LD_LIBRARY_PATH=" + OUTSIDE, "LD_AUDIT=/tmp/x"]},
    "settings of Go": {"Env": ["GODEBUG=inittrace=1", "GOTRACEBACK=crash", "GOMAXPROCS=1000", "_LIBCONTAINER_INITPIPE=3", "LISTEN_FDS=9"]},
    "an environment that is none": {"Env": ["", "=", "=x", "\n", "A", "B=\nC", "A" * 100_000 + "=x"]},
    "volumes over all": {"Volumes": {"/": {}, "/proc": {}, "/dev": {}, OUTSIDE: {}, UP: {}}},
    "ports that are none": {"ExposedPorts": {"0/tcp": {}, "-1/udp": {}, "70000/x": {}, "22": {}}},
    "a signal that is none": {"StopSignal": "SIGKILL; reboot"},
    "labels of 1 MB": {"Labels": {"a" * 1000: "b" * 1_000_000}},
    "a check that is none": {"Healthcheck": {"Test": ["CMD", "/proc/self/exe"], "Interval": 1, "Timeout": -1, "Retries": -5}},
    "a check of another word": {"Healthcheck": {"Test": ["EVIL", "x"]}},
    "a shell of the host": {"Shell": ["/proc/1/root/bin/sh"]},
    "an OnBuild": {"OnBuild": ["COPY --from=scratch " + OUTSIDE + " /x"]},
    "members that nobody knows": {"HostConfig": {"Privileged": True, "Binds": ["/:/host"]}, "Mounts": [{"source": "/", "target": "/host"}], "Runtime": "evil", "Annotations": {"run.oci.hooks": "x"}},
})

LOOK = "cat /proc/self/cwd/file /proc/self/cwd/../file %s %s/file %s%s/file /l /l/file /d/file /m /h /f 2>/dev/null; ls -lan . .. /l/ /d/ 2>/dev/null; pwd" % (OUTSIDE, OUTSIDE, UP, OUT)


def programs():
    """Returns a sum of the programs that the host runs beside boxes."""
    sums = []
    for name in ("sandbox", "sandbox-shim", "sandbox-init"):
        with open(os.path.join(BUILD, name), "rb") as f:
            sums.append(hashlib.sha256(f.read()).hexdigest())
    return sums


def bring(data):
    """Imports a tar, and looks around in a box of it if there is one."""
    name = "evil%d" % next(serial)
    answer = ask("POST", "/v1/images:import?name=" + name, data, {"Content-Type": "application/x-tar"})
    silent(answer.body)
    if answer.status >= 400:
        return refused(answer)
    try:
        return look(name)
    finally:
        ask("DELETE", "/v1/images/" + name)


def look(name, **more):
    answer = ask("POST", "/v1/run", {"image": name, "cmd": ["/bin/busybox", "sh", "-c", LOOK], "network": "None", "memory_mib": 64, **more})
    silent(answer.body)
    return "the box's own" if answer.status < 400 else refused(answer)


def configured(about):
    """Imports an image with a config, and runs in a box of it a look around and its own command."""
    name = "evil%d" % next(serial)
    answer = ask("POST", "/v1/images:import?name=" + name, docker([system(("l", LINK, {"to": "/proc/self/fd/7"}))], **about), {"Content-Type": "application/x-tar"})
    silent(answer.body)
    if answer.status >= 400:
        return refused(answer)
    try:
        met = look(name)
        if "Entrypoint" in about:
            answer = ask("POST", "/v1/run", {"image": name, "network": "None", "memory_mib": 64, "timeout_ms": 5000})
            silent(answer.body)
        return met
    finally:
        ask("DELETE", "/v1/images/" + name)


# Recipes, with the entries of their context beside. They stand on an image of this family's.
RECIPES = {
    "COPY of what is above": ("COPY ../outside/file /x", []),
    "COPY of an absolute path": ("COPY %s/file /x" % OUTSIDE, []),
    "COPY of a link to the host's": ("COPY l /x", [("l", LINK, {"to": OUTSIDE + "/file"})]),
    "COPY through a link to the host's": ("COPY l/file /x", [("l", LINK, {"to": OUTSIDE})]),
    "COPY of a directory with links": ("COPY d /x", [("d/", DIRECTORY, {}), ("d/l", LINK, {"to": OUTSIDE + "/file"}), ("d/up", LINK, {"to": UP + OUT})]),
    "COPY of all, with a link up": ("COPY . /x", [("l", LINK, {"to": UP + OUT})]),
    "COPY of a hard link to the host's": ("COPY h /x", [("h", HARD, {"to": OUTSIDE + "/file"})]),
    "COPY of a device": ("COPY d /x", [("d", BLOCK, {"device": (8, 0)})]),
    "COPY to a link out": ("COPY f /l/file", [("f", FILE, EVIL)]),
    "COPY to a link to descriptors": ("COPY f /fds/3/x", [("f", FILE, EVIL)]),
    "COPY to above": ("COPY f /../../../.." + OUTSIDE + "/file", [("f", FILE, EVIL)]),
    "COPY into proc": ("COPY f /proc/sys/kernel/core_pattern", [("f", FILE, EVIL)]),
    "COPY into sys": ("COPY f /sys/kernel/uevent_helper", [("f", FILE, EVIL)]),
    "COPY of the recipe's own name": ("COPY Dockerfile /x", [("Dockerfile", LINK, {"to": OUTSIDE + "/file"})]),
    "COPY with a chown to nobody known": ("COPY --chown=4294967296:-1 f /x", [("f", FILE, EVIL)]),
    "COPY from a stage through a link": ("RUN ln -s %s /evil; ln -s /proc/1/root%s /more\nFROM base\nCOPY --from=0 /evil/file /x" % (OUTSIDE, OUTSIDE), []),
    "COPY from a stage of a link": ("RUN ln -s %s/file /evil\nFROM base\nCOPY --from=0 /evil /x" % OUTSIDE, []),
    "COPY from a stage by its descriptors": ("RUN ln -s /proc/self/fd/7/%s%s /evil\nFROM base\nCOPY --from=0 /evil/file /x" % (UP, OUT), []),
    "COPY from a stage above its root": ("FROM base\nCOPY --from=0 ../../../.." + OUTSIDE + "/file /x", []),
    "COPY from the host by a name": ("COPY --from=%s /file /x" % OUTSIDE, []),
    "COPY from a file of the host": ("COPY --from=file://%s /file /x" % OUTSIDE, []),
    "COPY over a link that RUN has made": ("RUN rm -rf /tmp; ln -s %s /tmp\nCOPY f /tmp/file" % OUTSIDE, [("f", FILE, EVIL)]),
    "COPY over a link of a link": ("RUN ln -s /proc/self/root%s /a; ln -s a /b\nCOPY f /b/file" % OUTSIDE, [("f", FILE, EVIL)]),
    "ADD of an address": ("ADD http://127.0.0.1:%d/x /x" % PORT, []),
    "ADD of a repository": ("ADD git@127.0.0.1:%d/x.git /x" % PORT, []),
    "ADD of a file of the host": ("ADD file://%s/file /x" % OUTSIDE, []),
    "ADD of a tar that goes up": ("ADD t.tar /x/", [("t.tar", FILE, {"data": tar((UP + OUT + "/file", FILE, EVIL))})]),
    "ADD of a tar with a link out": ("ADD t.tar /x/", [("t.tar", FILE, {"data": tar(("l", LINK, {"to": OUTSIDE}), ("l/file", FILE, EVIL))})]),
    "ADD of a tar onto a link": ("ADD t.tar /l/", [("t.tar", FILE, {"data": tar(("file", FILE, EVIL))})]),
    "ADD of a tar with a hard link out": ("ADD t.tar /x/", [("t.tar", FILE, {"data": tar(("h", HARD, {"to": OUTSIDE + "/file"}), ("h", FILE, EVIL))})]),
    "WORKDIR of a descriptor": ("WORKDIR /proc/self/fd/7\nRUN cat ../../../../..%s/file" % OUTSIDE, []),
    "WORKDIR of a link out": ("WORKDIR /l\nRUN echo evil >file", []),
    "WORKDIR above": ("WORKDIR ../../../../..%s\nRUN echo evil >file" % OUTSIDE, []),
    "RUN with a mount of the host": ("RUN --mount=type=bind,source=/,target=/host cat /host" + OUTSIDE + "/file", []),
    "RUN with a mount of a stage's link": ("RUN --mount=type=bind,from=base,source=/l,target=/host,rw echo evil >/host/file", []),
    "RUN with a cache above": ("RUN --mount=type=cache,source=../../..,target=/host cat /host/file", []),
    "RUN with a secret": ("RUN --mount=type=secret,id=x,src=%s/file cat /run/secrets/x" % OUTSIDE, []),
    "RUN without walls": ("RUN --security=insecure cat " + OUTSIDE + "/file", []),
    "RUN on the host's network": ("RUN --network=host echo", []),
    "a frontend of the attacker's": ("#syntax=127.0.0.1:%d/evil\nRUN echo" % PORT, []),
    "a USER that is none": ("USER 4294967295:0\nRUN id", []),
    "an ENV of the loader's": ("ENV LD_PRELOAD=%s/file PATH=/proc/self/fd/3:/bin\nRUN cat %s/file; true" % (OUTSIDE, OUTSIDE), []),
    "a SHELL of the host's": ("SHELL [\"/proc/1/root/bin/sh\", \"-c\"]\nRUN cat %s/file" % OUTSIDE, []),
    "a VOLUME": ("VOLUME " + OUTSIDE, []),
    "an ONBUILD": ("ONBUILD COPY / /", []),
    "a .dockerignore that is a link": ("COPY . /x", [(".dockerignore", LINK, {"to": OUTSIDE + "/file"})]),
    "a .dockerignore that is a device": ("COPY . /x", [(".dockerignore", DEVICE, {"device": (1, 5)})]),
    "a .dockerignore of 10,000 stars": ("COPY . /x", [(".dockerignore", FILE, {"data": b"*/**/" * 10_000})]),
    "a .dockerignore that goes up": ("COPY . /x", [(".dockerignore", FILE, {"data": b"!../../**\n!/etc\n"})]),
    "a context with a name that goes up": ("COPY . /x", [(UP + OUT + "/file", FILE, EVIL)]),
    "a context with an absolute name": ("COPY . /x", [(OUTSIDE + "/file", FILE, EVIL)]),
    "a context with a name through a link": ("COPY . /x", [("l", LINK, {"to": OUTSIDE}), ("l/file", FILE, EVIL)]),
    "FROM a path": ("FROM " + OUTSIDE + "/file\nRUN id", []),
    "FROM a path that goes up": ("FROM ../../records\nRUN id", []),
}


def build(recipe, entries):
    """Builds a recipe and looks around in a box of it."""
    name = "built%d" % next(serial)
    if not recipe.startswith("FROM"):
        recipe = "FROM base\n" + recipe
    context = tar((".sandbox-recipe", FILE, {"data": recipe.encode()}), *entries)
    answer = ask("POST", "/v1/images:build?no_network=true&memory_mib=64&timeout_ms=20000&name=" + name, context, {"Content-Type": "application/x-tar"})
    silent(answer.body)
    if answer.status >= 400:
        return refused(answer)
    try:
        silent(ask("POST", "/v1/run", {"image": name, "cmd": ["/bin/busybox", "sh", "-c", "cat /x /x/* /x/*/* 2>/dev/null; " + LOOK], "network": "None", "memory_mib": 64}).body)
        return "the box's own"
    finally:
        ask("DELETE", "/v1/images/" + name)


def directory(make, *flags):
    """Builds, with the command line, a directory with links to the host's files."""
    with tempfile.TemporaryDirectory(dir=".") as own:
        make(own)
        name = "built%d" % next(serial)
        code, out, err = sandbox("build", "-t", name, "--network", "None", *flags, own)
        silent(out + err)
        if code < 0 or b"panic" in err:
            raise RuntimeError(err.decode(errors="replace")[:200])
        if code:
            return "refused"
        silent(ask("POST", "/v1/run", {"image": name, "cmd": ["/bin/busybox", "sh", "-c", "cat /x /x/* 2>/dev/null; " + LOOK], "network": "None"}).body)
        ask("DELETE", "/v1/images/" + name)
        return "the box's own"


def put(own, name, text):
    with open(os.path.join(own, name), "w") as f:
        f.write(text)


DIRECTORIES = {
    "a recipe that is a link to the host's": lambda d: os.symlink(OUTSIDE + "/file", d + "/Dockerfile"),
    "a .dockerignore that is a link to the host's": lambda d: (put(d, "Dockerfile", "FROM base\nCOPY . /x\n"), os.symlink(OUTSIDE + "/file", d + "/.dockerignore")),
    "a link to the host's file": lambda d: (put(d, "Dockerfile", "FROM base\nCOPY l /x\n"), os.symlink(OUTSIDE + "/file", d + "/l")),
    "a link to the host's directory": lambda d: (put(d, "Dockerfile", "FROM base\nCOPY l/ /x\n"), os.symlink(OUTSIDE, d + "/l")),
    "a name through a link": lambda d: (put(d, "Dockerfile", "FROM base\nCOPY l/file /x\n"), os.symlink(OUTSIDE, d + "/l")),
    "a path above": lambda d: put(d, "Dockerfile", "FROM base\nCOPY ../../outside/file /x\n"),
    "a pipe": lambda d: (put(d, "Dockerfile", "FROM base\nCOPY p /x\n"), os.mkfifo(d + "/p")),
    "a pipe as the recipe": lambda d: os.mkfifo(d + "/Dockerfile"),
}


def cache(recipe, first, second):
    """Builds twice with contexts that look alike: the second image has the second file."""
    name = "cached%d" % next(serial)
    for text in (first, second):
        context = tar((".sandbox-recipe", FILE, {"data": recipe.encode()}), ("f", FILE, {"data": text}))
        answer = ask("POST", "/v1/images:build?no_network=true&memory_mib=64&name=" + name, context, {"Content-Type": "application/x-tar"})
        if answer.status >= 400:
            raise RuntimeError(answer.text[:200])
    seen = ask("POST", "/v1/run", {"image": name, "cmd": ["/bin/busybox", "cat", "/x"], "network": "None"}).json["stdout"].encode()
    ask("DELETE", "/v1/images/" + name)
    if seen != second:
        raise Through("the cache gave %r" % seen)
    return "the second file"


def attacks():
    for name, entries in LAYERS.items():
        yield "a tar with " + name, bound(bring, system(*entries))
        yield "a docker archive with " + name, bound(bring, docker([SYSTEM, tar(*entries)]))
        yield "an OCI layout with " + name, bound(bring, layout([tar(*entries), SYSTEM]))
    for name, (low, high) in PAIRS.items():
        yield "layers with " + name, bound(bring, docker([SYSTEM, tar(*low), tar(*high)]))
    for name, make in ARCHIVES.items():
        yield "an archive with " + name, lambda make=make: bring(make())
    for name, about in CONFIGS.items():
        yield "a config with %.60s" % name, bound(configured, about)
    for name, (recipe, entries) in RECIPES.items():
        yield "a recipe with " + name, bound(build, recipe, entries)
    for name, make in DIRECTORIES.items():
        yield "a directory with " + name, bound(directory, make)
    yield "a cache with a file of the same size and time", bound(cache, "FROM base\nCOPY f /x", b"one", b"two")
    yield "a cache with a link of the same name", bound(cache, "FROM base\nCOPY f /y\nRUN cp /y /x", b"one", b"two")
    for name in (OUTSIDE + "/file", "../../outside/file", "evil/../../x", "a" * 300, "x:y:z", "x@sha256:../..", "\0", "-rf"):
        yield "an image's name %.40r" % name, bound(lambda name: refused(ask("POST", "/v1/images:import?name=" + quote(name), tar(("f", FILE, {})), {"Content-Type": "application/x-tar"})), name)


BEFORE = programs()
if ask("POST", "/v1/images:import?name=base", system(("l", LINK, {"to": OUTSIDE}), ("fds", LINK, {"to": "/proc/self/fd"})), {"Content-Type": "application/x-tar"}).status != 200:
    raise SystemExit("there is no image to stand on")
run(attacks())
if programs() != BEFORE:
    raise SystemExit("a program of the host has changed")
