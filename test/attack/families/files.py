# class: files and copies, both ways
# order: 12
# where: client
# What a box puts in the way of the files API and of cp reaches nothing of the host, and
# what a client sends reaches nothing but the box.

import http.client
import os
import sys
import tempfile
import threading
from urllib.parse import quote

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "client"))
from board import *

UP = "/.." * 12
FILES = "/v1/boxes/%s/files" % BOX

# Names in the box through which the host could be reached.
MAGIC = ["/proc/self/root", "/proc/self/cwd", "/proc/1/root", "/proc/1/cwd", "/proc/thread-self/root", "/tmp/to-root", "/tmp/to-cwd", "/tmp/to-one"]
MAGIC += ["/proc/self/fd/%d%s" % (fd, UP) for fd in range(3, 12)] + ["/tmp/fd%d%s" % (fd, UP) for fd in range(3, 12)]
MAGIC += ["/proc/1/task/1/root", "/proc/1/map_files", "/proc/1/fd/3" + UP, "/dev/fd/5" + UP, "/tmp/up", "/tmp/twice/up"]

# Files that are none.
ODD = ["/dev/zero", "/dev/full", "/dev/urandom", "/dev/ptmx", "/dev/pts/ptmx", "/dev/tty", "/tmp/pipe", "/tmp/socket", "/tmp/loop", "/tmp/link-to-pipe",
       "/proc/kcore", "/proc/kmsg", "/proc/sysrq-trigger", "/proc/self/mem", "/proc/1/mem", "/proc/1/environ", "/sys/kernel/notes", "/proc/1/exe"]

PREPARE = """
cd /tmp; mkdir -p twice there; echo kept >there/file; echo x >spare
ln -s /proc/self/root to-root; ln -s /proc/self/cwd to-cwd; ln -s /proc/1/root to-one
for n in 3 4 5 6 7 8 9 10 11; do ln -s /proc/self/fd/$n fd$n; done
ln -s /../../../../../../.. up; ln -s ../../../../../../../.. twice/up
mkfifo pipe; ln -s pipe link-to-pipe; ln -s loop loop; truncate -s 8E huge 2>/dev/null || truncate -s 4T huge
python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("/tmp/socket")'
mkdir tree; cd tree; ln -s /etc/shadow link; ln -s ../../../../../../../etc/passwd up; mkfifo pipe; echo x >plain; ln plain hard
touch "$(printf 'new\\nline')" "$(printf 'tab\\tand\\033[2Jscreen')" -- '-rf' "$(printf 'not\\377utf')"; mkdir deep; ln -s . deep/again
"""


def files(path, **more):
    return FILES + "?" + "&".join("%s=%s" % (k, quote(v)) for k, v in {"path": path, **more}.items())


def read(path, **more):
    """Reads what must be refused."""
    answer = ask("GET", files(path, **more))
    silent(answer.body)
    return refused(answer)


def read_any(path):
    """Reads a file of the host by a name of the box: what comes is the box's own, if it is whole."""
    try:
        answer = ask("GET", files(path))
    except http.client.IncompleteRead as broken:
        return silent(broken.partial)
    silent(answer.body)
    return "in the box" if answer.status < 400 else refused(answer)


def write(path):
    """Writes over a file of the host: who watches the host tells whether that was done."""
    answer = ask("PUT", files(path), b"evil")
    return "in the box" if answer.status < 400 else refused(answer)


def change(verb, path):
    """Does something else with a file of the host by a name of the box."""
    query = "?path=" + quote(path)
    answer = {
        "look at": lambda: ask("GET", FILES + ":stat" + query),
        "list": lambda: ask("GET", FILES + ":list" + query),
        "remove": lambda: ask("DELETE", FILES + query + "&recursive=true"),
        "make a directory at": lambda: ask("POST", FILES + ":mkdir", {"path": path}),
        "move a file to": lambda: ask("POST", FILES + ":move", {"from": "/tmp/spare", "to": path}),
    }[verb]()
    silent(answer.body)
    return "in the box" if answer.status < 400 else refused(answer)


def unpack(data, to="/tmp/in"):
    """Unpacks a tar in the box: nothing of it may leave the directory."""
    answer = ask("PUT", files(to, archive="tar"), data, {"Content-Type": "application/x-tar"})
    if inside("cat /tmp/there/file; ls /tmp/there") != "kept\nfile\n":
        raise Through("it left its directory")
    return "in its directory" if answer.status < 400 else refused(answer)


def unpack_by_cp(data):
    """Does the same with the command line."""
    code, _, _ = sandbox("cp", "-", BOX + ":/tmp/in/", stdin=data)
    if inside("cat /tmp/there/file; ls /tmp/there") != "kept\nfile\n":
        raise Through("it left its directory")
    return "refused" if code else "in its directory"


def copy_out(path, to="out"):
    """Copies out of the box: nothing that it makes may lead, or be, outside of the copy."""
    with tempfile.TemporaryDirectory(dir=".") as own:
        target = os.path.join(own, to)
        code, _, err = sandbox("cp", BOX + ":" + path, target)
        for base, dirs, names in os.walk(own):
            for name in dirs + names:
                full = os.path.join(base, name)
                st = os.lstat(full)
                if st.st_mode & 0o170000 not in (0o100000, 0o040000, 0o120000):
                    raise Through("%r is a file of mode %o" % (name, st.st_mode))
                if st.st_mode & 0o6000 and not os.path.islink(full):
                    raise Through("%r is set-user-id" % name)
                if st.st_uid != os.getuid():
                    raise Through("%r belongs to %d" % (name, st.st_uid))
                if os.path.isfile(full) and not os.path.islink(full):
                    with open(full, "rb") as f:
                        silent(f.read(1 << 20))
        if code < 0 or b"panic" in err:
            raise RuntimeError(err.decode(errors="replace")[:200])
        return "copied" if code == 0 else "refused"


def copy_in(make, dest="/tmp/copied"):
    """Copies a directory into the box that has make's file: what that leads to stays here."""
    with tempfile.TemporaryDirectory(dir=".") as own:
        make(own)
        code, _, err = sandbox("cp", own, BOX + ":" + dest + "-%d" % threading.get_ident())
        if code < 0 or b"panic" in err:
            raise RuntimeError(err.decode(errors="replace")[:200])
    silent(inside("cat $(find %s-* -type f) </dev/null 2>/dev/null | head -c 1000000" % dest))
    return "copied as it is" if code == 0 else "refused"


def device(path):
    """Makes a device, which a client who is not root can't."""
    try:
        os.mknod(path, 0o20666, os.makedev(1, 5))
    except PermissionError:
        if os.geteuid() == 0:
            raise


def copy_onto(planted):
    """Copies out of the box to where a link to the host's file was planted before."""
    with tempfile.TemporaryDirectory(dir=".") as own:
        os.mkdir(own + "/out")
        os.symlink(OUTSIDE + planted, own + "/out/" + ("tree" if planted.endswith("directory") else "plain"))
        code, _, err = sandbox("cp", BOX + ":/tmp/tree" + ("" if planted.endswith("directory") else "/plain"), own + "/out/")
    return "copied" if code == 0 else "refused"


def race(swap, act, times=12):
    """Acts on a path while the box swaps what it leads to."""
    stop = "/tmp/stop%d" % threading.get_ident()
    sandbox("exec", "-d", BOX, "--", "sh", "-c", "rm -f %s; while [ ! -e %s ]; do %s; done" % (stop, stop, swap), check=True)
    try:
        return max((act() for _ in range(times)), key=len)
    finally:
        inside("touch " + stop)


def head_of(path, **more):
    """Reads the beginning of a file that has no end, and goes away."""
    conn = ByFile("box", timeout=TIME)
    try:
        conn.request("GET", files(path, **more))
        answer = conn.getresponse()
        if answer.status >= 400:
            return refused(Answer(answer.status, answer.headers, answer.read()))
        silent(answer.read(1 << 20))
        return "as much as was read"
    finally:
        conn.close()


def quick(path):
    """Asks with the rights of a user of the box who has none for the path."""
    answer = ask("GET", files(path, user="65534:65534"))
    return refused(answer)


def attacks():
    for at in MAGIC:
        yield "read by " + at, bound(read_any, at + OUTSIDE + "/file")
        yield "write by " + at, bound(write, at + OUTSIDE + "/file")
        for verb, name in {"look at": "/file", "list": "", "remove": "/directory", "make a directory at": "/made", "move a file to": "/file"}.items():
            yield verb + " " + at, bound(change, verb, at + OUTSIDE + name)
        yield "copy out " + at, bound(copy_out, at + OUTSIDE)
    for at in ODD:
        yield "read " + at, bound(read, at)
        yield "read as a tar " + at, bound(read, at, archive="tar")
        yield "copy out " + at, bound(copy_out, at)
    out = OUTSIDE.strip("/")
    data = {"data": b"evil"}
    for name, entries in {
        "a name that goes up": [("../there/file", FILE, data)],
        "an absolute name": [("/tmp/there/file", FILE, data)],
        "a link and a name through it": [("l", LINK, {"to": "../there"}), ("l/file", FILE, data)],
        "an absolute link and a name through it": [("l", LINK, {"to": "/tmp/there"}), ("l/file", FILE, data)],
        "two links in a chain": [("a", LINK, {"to": "b"}), ("b", LINK, {"to": "../there"}), ("a/file", FILE, data)],
        "a link to descriptors": [("l", LINK, {"to": "/proc/self/fd"}), ("l/3/x", FILE, data)],
        "a link to init's root": [("l", LINK, {"to": "/proc/1/root/" + out}), ("l/file", FILE, data)],
        "a hard link to another directory": [("h", HARD, {"to": "../there/file"}), ("h", FILE, data)],
        "a hard link by a link": [("l", LINK, {"to": "../there"}), ("h", HARD, {"to": "l/file"}), ("h", FILE, data)],
        "a hard link to an absolute name": [("h", HARD, {"to": "/tmp/there/file"}), ("h", FILE, data)],
        "a directory in the place of a link": [("l", LINK, {"to": "../there"}), ("l", DIRECTORY, {"mode": 0o777}), ("l/file", FILE, data)],
        "a name twice, a link first": [("f", LINK, {"to": "../there/file"}), ("f", FILE, data)],
        "a PAX name that goes up": [("f", FILE, {"pax": {"path": "../there/file"}, **data})],
        "a PAX link that goes up": [("f", HARD, {"to": "x", "pax": {"linkpath": "../there/file"}}), ("f", FILE, data)],
        "a character device": [("d", DEVICE, {"device": (1, 1)})],
        "a disk": [("d", BLOCK, {"device": (8, 0)})],
        "a pipe over a file": [("f", FILE, data), ("f", PIPE, {})],
        "an owner beyond the box's": [("f", FILE, {"uid": 1 << 20, **data})],
        "the directory itself as a link": [(".", LINK, {"to": "../there"}), ("file", FILE, data)],
        "dots in the middle": [("a/", DIRECTORY, {}), ("a/../../there/file", FILE, data)],
        "an attribute of overlayfs": [("d", DIRECTORY, {"pax": {"SCHILY.xattr.trusted.overlay.redirect": "/tmp/there", "SCHILY.xattr.user.overlay.redirect": "/tmp/there"}}), ("d/file", FILE, data)],
        "a whiteout": [("../there/.wh.file", FILE, {})],
    }.items():
        yield "unpack " + name, bound(unpack, tar(*entries))
        yield "unpack with cp " + name, bound(unpack_by_cp, tar(*entries))
    for name, data in {"nothing": b"", "garbage": b"garbage" * 999, "half a header": tar(("f", FILE, {}))[:200], "a size of 8 EB": b"f".ljust(124, b"\0") + b"\x80" + b"\x7f" * 11 + b"\0" * 376}.items():
        yield "unpack " + name, bound(unpack, data)
    yield "copy out names with newlines, links, pipes and hard links", bound(copy_out, "/tmp/tree")
    yield "copy out as a tar to nowhere", lambda: silent(sandbox("cp", BOX + ":/tmp/tree", "-")[1])
    yield "read a file of 4 TB and go", bound(head_of, "/tmp/huge")
    yield "read a tar of a file of 4 TB and go", bound(head_of, "/tmp/huge", archive="tar")
    for name, make in {
        "a link to the host's file": lambda d: os.symlink(OUTSIDE + "/file", d + "/l"),
        "a link to the host's directory": lambda d: os.symlink(OUTSIDE, d + "/l"),
        "a link up": lambda d: os.symlink("../../outside/file", d + "/l"),
        "a pipe": lambda d: os.mkfifo(d + "/p"),
        "a device": lambda d: device(d + "/zero"),
        "a name with a newline": lambda d: os.symlink(OUTSIDE + "/file", d + "/new\nline"),
        "a magic link": lambda d: os.symlink("/proc/self/root" + OUTSIDE + "/file", d + "/l"),
        "a link to a descriptor": lambda d: os.symlink("/dev/fd/0", d + "/l"),
    }.items():
        yield "copy in " + name, bound(copy_in, make)
    for planted in ("/file", "/directory"):
        yield "copy out onto a planted link to the host's " + planted.strip("/"), bound(copy_onto, planted)
    for path in ("/etc/shadow", "/root/.bashrc", "/proc/1/environ", "/tmp/../etc/shadow"):
        yield "read %s as nobody" % path, bound(quick, path)
    for user in ("0:0:0", "../root", "-1", "4294967296", "root\nroot", "99999999"):
        yield "be the user %r" % user, bound(lambda user: refused(ask("GET", files("/etc/hostname", user=user))), user)
    for mode in ("7777777", "-1", "0x1ff", "8", "u+s"):
        yield "put a file of mode %r" % mode, bound(lambda mode: refused(ask("PUT", files("/tmp/mode", mode=mode), b"x")), mode)
    for name, path in {"a NUL": "/tmp/a\0b", "no slash": "tmp/x", "nothing": "", "a part of 5000": "/" + "n" * 5000, "4000 parts": "/a" * 4000}.items():
        yield "read a path with " + name, bound(read, path)
        yield "write a path with " + name, bound(lambda path: refused(ask("PUT", files(path), b"x")), path)
    swap = "ln -sfn /proc/1/root%s /tmp/swap/d 2>/dev/null; rm -rf /tmp/swap/d; mkdir -p /tmp/swap/d; echo x >/tmp/swap/d/file; rm -rf /tmp/swap/d; ln -sfn /proc/self/fd/4%s%s /tmp/swap/d" % (OUTSIDE, UP, OUTSIDE)
    for name, act in {
        "read": lambda: read_any("/tmp/swap/d/file"), "write": lambda: write("/tmp/swap/d/file"), "list": lambda: change("list", "/tmp/swap/d"),
        "remove": lambda: change("remove", "/tmp/swap/d"), "unpack": lambda: unpack(tar(("file", FILE, {"data": b"evil"})), "/tmp/swap/d"),
    }.items():
        yield name + " while the box swaps a directory for a link", bound(race, swap, act)
    yield "copy out while the box swaps a directory for a link", bound(race, swap, bound(copy_out, "/tmp/swap"), 4)


inside(PREPARE)
run(attacks(), several=6)
