"""Puts the library and the two programs that it needs into the wheel, and names the oldest system that it runs on."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FILES = ("libsandbox.so", "sandbox-shim", "sandbox-init")


class NativeFiles(BuildHookInterface):  # type: ignore[type-arg]
    """Hatchling calls initialize before it packs the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Adds the files of the build, which the variable SANDBOX_BUILD names."""
        top = Path(self.root).parents[1]
        build = Path(os.environ.get("SANDBOX_BUILD", top / "build"))
        files = [build / name for name in FILES]
        major, minor = max(map(glibc, files))
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-manylinux_{major}_{minor}_{platform.machine()}"
        for file in (*files, top / "LICENSE", top / "NOTICE"):
            build_data["force_include"][str(file)] = f"libsandbox/lib/{file.name}"


def glibc(file: Path) -> tuple[int, int]:
    """The newest version of glibc's symbols that a file needs; 2.17 if it needs none."""
    newest = (2, 17)
    with file.open("rb") as stream:
        for section in ELFFile(stream).iter_sections():
            if isinstance(section, GNUVerNeedSection):
                for _, symbols in section.iter_versions():
                    for symbol in symbols:
                        library, _, number = symbol.name.partition("_")
                        if library == "GLIBC":
                            major, minor, *_ = map(int, number.split("."))
                            newest = max(newest, (major, minor))
    return newest
