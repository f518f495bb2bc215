"""Archives of images, as an attacker makes them."""

import hashlib
import json
import platform

from board import *

MACHINE = "arm64" if platform.machine() == "aarch64" else "amd64"


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def system(*more):
    """Returns a layer with busybox, and with more entries."""
    with open("/bin/busybox", "rb") as f:
        program = f.read()
    entries = [("bin/", DIRECTORY, {}), ("bin/busybox", FILE, {"data": program, "mode": 0o755}), ("etc/", DIRECTORY, {}), ("tmp/", DIRECTORY, {"mode": 0o1777})]
    entries += [("bin/" + name, LINK, {"to": "busybox"}) for name in ("sh", "cat", "ls", "id", "pwd", "head", "find", "stat", "sleep", "readlink", "ln", "echo", "mkdir", "rm", "cp", "mv")]
    entries.append(("etc/passwd", FILE, {"data": b"root:x:0:0::/:/bin/sh\nuser:x:1000:1000::/:/bin/sh\n"}))
    return tar(*entries, *more)


def config(layers, **more):
    return json.dumps({"os": "linux", "architecture": MACHINE, "rootfs": {"type": "layers", "diff_ids": [digest(layer) for layer in layers]}, "config": more}).encode()


def docker(layers, names=None, about=None, extra=(), **more):
    """Returns what docker save writes; names are those of the layers' files in it."""
    names = names or ["%d/layer.tar" % i for i in range(len(layers))]
    about = about or config(layers, **more)
    manifest = json.dumps([{"Config": "config.json", "RepoTags": None, "Layers": names}]).encode()
    return tar(("manifest.json", FILE, {"data": manifest}), ("config.json", FILE, {"data": about}), *[(name, FILE, {"data": layer}) for name, layer in zip(names, layers)], *extra)


def layout(layers, kind="application/vnd.oci.image.layer.v1.tar", change=None, extra=(), **more):
    """Returns a tar of an OCI layout. change may change its manifest and its index."""
    about = config(layers, **more)
    manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": digest(about), "size": len(about)},
                "layers": [{"mediaType": kind, "digest": digest(layer), "size": len(layer)} for layer in layers]}
    index = {"schemaVersion": 2, "manifests": []}
    if change:
        change(manifest, index)
    text = json.dumps(manifest).encode()
    index["manifests"] = index["manifests"] or [{"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": digest(text), "size": len(text)}]
    blobs = [("blobs/sha256/" + digest(data)[7:], FILE, {"data": data}) for data in [about, text, *layers]]
    return tar(("oci-layout", FILE, {"data": b'{"imageLayoutVersion": "1.0.0"}'}), ("index.json", FILE, {"data": json.dumps(index).encode()}), *blobs, *extra)
