# class: volumes and host roots
# order: 15
# where: client
# A volume shows what lies in its host root and nothing else, however its path is swapped
# while it is checked and mounted, and what the box does in it stays in it.

import ctypes
import itertools
import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "client"))
from board import *

serial = itertools.count()
UP, OUT = "../" * 12, OUTSIDE.strip("/")
# Only files are read, and their beginnings: a box that is given the whole host root finds
# the pipes of other attacks there, and their links to devices without an end.
LOOK = 'for f in /v /v/* /v/*/* /proc/self/cwd/v/file; do [ -f "$f" ] && head -c 65536 "$f"; done 2>/dev/null; ls -lan /v /v/.. 2>/dev/null'


def key():
    return ask("POST", "/v1/keys", {"name": "board", "permissions": ["Boxes"]}).json["key"]


KEY = key()


def fresh(*links):
    """Makes a directory in the host root, with a file and links."""
    own = os.path.join(SHARED, "d%d" % next(serial))
    os.mkdir(own)
    with open(own + "/mine", "w") as f:
        f.write("the client's\n")
    for name, to in links:
        os.symlink(to, os.path.join(own, name))
    return own


def box(volumes, script, **more):
    """Runs a script in a box with volumes, as a client over TCP."""
    volumes = [{"host_path": host, "guest_path": guest, **extra} for host, guest, *rest in volumes for extra in (rest or [{}])]
    answer = ask("POST", "/v1/run", {"image": "default", "cmd": ["sh", "-c", script], "network": "None", "volumes": volumes, **more}, key=KEY)
    silent(answer.body)
    return answer


def shown(volumes, script=LOOK, **more):
    answer = box(volumes, script, **more)
    return "the client's own" if answer.status < 400 else refused(answer)


def finds():
    """A look must find the secret where it is in a volume, or it says nothing where it finds none."""
    own = fresh()
    os.mkdir(own + "/d")
    for name, volume in (("a file", own), ("d/file", own), ("a file", own + "/a file")):
        with open(os.path.join(own, name), "w") as f:
            f.write(SECRET)
        try:
            shown([(volume, "/v")])
        except Through:
            os.unlink(os.path.join(own, name))
        else:
            raise RuntimeError("a look does not find %s in a volume of %s" % (name, volume))


def linked(to, below=""):
    """Names a volume by a link, or by a name through one."""
    return shown([(fresh(("l", to)) + "/l" + below, "/v")])


def planted(to, then):
    """The box plants a link in its volume, and the next box is given a volume by it."""
    own = fresh()
    box([(own, "/v")], "ln -s %s /v/l; mkdir -p /v/d" % to)
    return shown([(own + "/l" + then, "/v")])


def raced(swap):
    """Makes boxes with a volume whose path is swapped all the time for a link out of the root."""
    own, stop = fresh(), threading.Event()
    os.mkdir(own + "/d")
    os.mkdir(own + "/other")
    os.symlink(OUTSIDE, own + "/out")

    def go():
        while not stop.is_set():
            swap(own)

    swapper = threading.Thread(target=go)
    swapper.start()
    try:
        return max((shown([(own + "/d/directory" if swap is swap_parent else own + "/d", "/v")]) for _ in range(5)), key=len)
    finally:
        stop.set()
        swapper.join()


def swap_link(own):
    """A directory and a link out."""
    for to in (OUTSIDE, own + "/other"):
        try:
            if os.path.islink(own + "/d"):
                os.unlink(own + "/d")
            else:
                os.rmdir(own + "/d")
            os.symlink(to, own + "/d")
        except OSError:
            pass


def swap_exchange(own):
    """A directory and a link out change places at once."""
    rename(own + "/d", own + "/out", 2)


def swap_parent(own):
    """The directory above becomes a link out, which has the same names."""
    os.makedirs(own + "/other/directory", exist_ok=True)
    for to in (own + "/other", OUTSIDE):
        try:
            os.symlink(to, own + "/new")
            if os.path.isdir(own + "/d") and not os.path.islink(own + "/d"):
                os.rmdir(own + "/d")
            os.rename(own + "/new", own + "/d")
        except OSError:
            pass


def swap_out(own):
    """The directory is moved out of the host root, to beside it, and back."""
    aside = SHARED + "-aside%d" % threading.get_ident()
    for a, b in ((own + "/d", aside), (aside, own + "/d")):
        try:
            os.rename(a, b)
        except OSError:
            pass


def rename(a, b, flags):
    import ctypes
    ctypes.CDLL(None).renameat2(-100, a.encode(), -100, b.encode(), flags)


def kept(script, check, **extra):
    """The box acts in a volume; check is what must hold on the host afterwards."""
    own = fresh()
    box([(own, "/v", extra)], script)
    check(own)
    return "it stayed as it was"


def no_change(own):
    with open(own + "/mine") as f:
        if f.read() != "the client's\n" or sorted(os.listdir(own)) != ["mine"]:
            raise Through("a read-only volume has changed")


def nothing_special(own):
    for base, dirs, names in os.walk(own):
        for name in dirs + names:
            st = os.lstat(os.path.join(base, name))
            if st.st_mode & 0o170000 in (0o020000, 0o060000):
                raise Through("%r is a device" % name)


def nested(outer, inner, script=LOOK):
    return shown([(fresh(), outer), (fresh(), inner)], script)


def after_life(script):
    """The box changes what its next start mounts a volume on."""
    own = fresh()
    made = ask("POST", "/v1/boxes", {"image": "default", "network": "None", "auto_remove": False, "volumes": [{"host_path": own, "guest_path": "/mnt/a/b"}]}, key=KEY)
    if made.status >= 300:
        raise RuntimeError(made.text)
    one = made.json["id"]
    try:
        inside(script, one)
        ask("POST", "/v1/boxes/%s:stop?timeout_seconds=0" % one)
        again = ask("POST", "/v1/boxes/%s:start" % one)
        if again.status >= 400:
            return refused(again)
        silent(inside("cat /mnt/a/b/* /mnt/* 2>/dev/null || true", one))
        return "mounted in the box"
    finally:
        ask("DELETE", "/v1/boxes/%s?force=true" % one)


def replaced(by):
    """The host path is a link out when the box starts again."""
    own = fresh()
    made = ask("POST", "/v1/boxes", {"image": "default", "network": "None", "auto_remove": False, "volumes": [{"host_path": own, "guest_path": "/v"}]}, key=KEY).json["id"]
    try:
        ask("POST", "/v1/boxes/%s:stop?timeout_seconds=0" % made)
        os.unlink(own + "/mine")
        os.rmdir(own)
        by(own)
        again = ask("POST", "/v1/boxes/%s:start" % made)
        if again.status >= 400:
            return refused(again)
        silent(inside(LOOK, made))
        return "the client's own"
    finally:
        ask("DELETE", "/v1/boxes/%s?force=true" % made)


READ_ONLY = {
    "writes": "echo evil >/v/mine; echo evil >/v/new", "removes": "rm -rf /v/*", "renames": "mv /v/mine /v/yours", "links": "ln /v/mine /v/hard; ln -s x /v/soft", "changes modes": "chmod 777 /v /v/mine; chown 1:1 /v/mine", "changes times": "touch -d @1 /v/mine",
    "makes directories": "mkdir /v/d", "mounts it anew": "mount -o remount,rw /v; echo evil >/v/new", "mounts it elsewhere": "mkdir /m; mount --bind /v /m && mount -o remount,bind,rw /m; echo evil >/m/new", "opens it by its descriptor": "exec 3</v; echo evil >/proc/self/fd/3/new",
    "goes by another root": "echo evil >/proc/self/root/v/new; echo evil >/proc/1/root/v/new", "maps it": "python3 -c 'import mmap; f = open(\"/v/mine\", \"r+b\"); mmap.mmap(f.fileno(), 0)[0:4] = b\"evil\"'", "truncates": "truncate -s 0 /v/mine", "allocates": "fallocate -l 1M /v/mine; fallocate -l 1M /v/new",
    "gives attributes": "setfattr -n user.x -v y /v/mine; python3 -c 'import os; os.setxattr(\"/v/mine\", \"user.x\", b\"y\")'", "unmounts it": "umount /v; umount -l /v; echo evil >/v/new", "makes a namespace for it": "unshare -Urm sh -c 'mount -o remount,rw,bind /v; echo evil >/v/new'",
}
SPECIAL = {
    "a device": "mknod /v/mem c 1 1; mknod /v/sda b 8 0", "a device by a copy": "cp -a /dev/null /v/null", "a device by a tar": "tar cf - -C /dev null zero | tar xf - -C /v", "a whiteout": "mknod /v/w c 0 0",
}
GUESTS = ["/", "/proc", "/proc/sys", "/sys", "/sys/fs/cgroup", "/dev", "/dev/pts", "/proc/self/fd/5", "/etc/../proc", "/./sys", "relative", "/../..", "", "/v\0", "/" + "n" * 300, "/proc/1/root", "/etc/hostname/x"]
STARTS = {
    "a link to the host's": "rm -rf /mnt/a; ln -s %s /mnt/a" % OUTSIDE, "a link up": "rm -rf /mnt/a; ln -s ../../../../../../..%s /mnt/a" % OUTSIDE, "a link to proc": "umount /mnt/a/b; rm -rf /mnt; ln -s /proc/self/root%s /mnt" % OUTSIDE, "a link to init's root": "mv /mnt /n; ln -s /proc/1/root /mnt",
    "a link to sys": "mv /mnt /n; mkdir /mnt; ln -s /sys/fs/cgroup /mnt/a", "a link to itself": "mv /mnt /n; ln -s mnt /mnt", "a pipe": "mv /mnt /n; mkdir /mnt; mkfifo /mnt/a", "a link to dev": "mv /mnt /n; ln -s /dev /mnt", "a link to descriptors": "mv /mnt /n; ln -s /proc/self/fd/7 /mnt",
}
REPLACED = {"a link to the host's": lambda own: os.symlink(OUTSIDE, own), "a link up": lambda own: os.symlink(UP + OUT, own), "a link to a link": lambda own: (os.symlink(OUTSIDE, own + "-l"), os.symlink(own + "-l", own)), "a link to a descriptor": lambda own: os.symlink("/proc/self/fd/7", own),
            "a link to init's root": lambda own: os.symlink("/proc/1/root" + OUTSIDE, own), "a pipe": os.mkfifo, "a link to the home": lambda own: os.symlink(HOME, own)}
TARGETS = {"the host's": OUTSIDE, "the host's by dots": UP + OUT, "the home": HOME, "proc": "/proc", "a root of a process": "/proc/1/root" + OUTSIDE, "its own root": "/proc/self/root" + OUTSIDE, "a descriptor": "/proc/self/fd/5", "the root": "/", "another link": "l", "etc": "/etc", "a device": "/dev/zero", "run": "/run"}


def attacks():
    for name, to in TARGETS.items():
        yield "a volume that is a link to " + name, bound(linked, to)
        yield "a volume through a link to " + name, bound(linked, to, "/directory")
        yield "a link that a box has planted to " + name, bound(planted, to, "")
        yield "a path through a link that a box has planted to " + name, bound(planted, to, "/directory")
        yield "a look through a link in a volume to " + name, bound(lambda to: shown([(fresh(("l", to)), "/v")], "cat /v/l /v/l/* /v/l/*/file 2>/dev/null | head -c 100000"), to)
    for path in (SHARED + "/../outside", SHARED + "/./../outside", SHARED + "//..//outside", SHARED + "/d/../../outside", SHARED + "/..", SHARED + "/../home", OUTSIDE):
        yield "a volume of " + path, bound(lambda path: shown([(path, "/v")]), path)
    for swap in (swap_link, swap_exchange, swap_parent, swap_out):
        yield "a race: " + swap.__doc__.strip("."), bound(raced, swap)
    for name, script in READ_ONLY.items():
        yield "a read-only volume that the box " + name, bound(kept, "(%s) 2>/dev/null; true" % script, no_change, read_only=True)
    for name, script in SPECIAL.items():
        yield "a volume in which the box makes " + name, bound(kept, "(%s) 2>/dev/null; true" % script, nothing_special)
    for guest in GUESTS:
        yield "a volume mounted on %.40r" % guest, bound(lambda guest: refused(box([(fresh(), guest)], "true")), guest)
    for outer, inner in (("/v", "/v/d"), ("/v/d", "/v"), ("/v", "/v/../v"), ("/v", "/v/l"), ("/v", "/v")):
        yield "a volume on %s in one on %s" % (inner, outer), bound(nested, outer, inner)
    for name, script in STARTS.items():
        yield "a next start whose mount point is " + name, bound(after_life, "(%s) 2>/dev/null; true" % script)
    for name, by in REPLACED.items():
        yield "a next start whose host path is " + name, bound(replaced, by)


finds()  # before the attacks, which may be given this directory, too
run(attacks(), several=4)
