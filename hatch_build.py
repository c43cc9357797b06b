"""Compile the optional extension `skillshelf/core/_native` into a wheel or beside the sources of an editable install.

Without a compiler or the headers of Python the wheel is pure, and the program does the same in Python. The environment
variable `SKILLSHELF_NATIVE` decides: `off` does not try, `require` makes a failure an error.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCE = "src/skillshelf/core/_native.c"
TARGET = "skillshelf/core/_native.abi3.so"
FLAGS = ("-O2", "-Wall", "-Wextra", "-fstack-protector-strong", "-shared", "-fPIC")
# Two builds are equal byte by byte, wherever the sources lie.
REPRODUCIBLE = ("-s", "-Wl,--build-id=none")


class NativeBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Add the extension to a wheel if it can be compiled."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and tag the wheel for this platform; leave it pure if that is not possible."""
        wanted = os.environ.get("SKILLSHELF_NATIVE", "")
        if self.target_name != "wheel":
            return
        built = Path(self.root, "src", TARGET)
        if version == "editable":
            # One of other sources must not stay, whatever comes of this.
            with suppress(OSError):
                built.unlink()
        else:
            self._folder = tempfile.TemporaryDirectory()
            built = Path(self._folder.name, built.name)
        problem = "it is switched off" if wanted == "off" else compile_extension(Path(self.root, SOURCE), built)
        if problem is not None:
            if wanted == "require":
                raise RuntimeError(f"the extension was not built: {problem}")
            return
        if version == "editable":
            return
        build_data["force_include"][str(built)] = TARGET
        build_data["pure_python"] = False
        # The stable ABI: one wheel for Python 3.11 and every later one.
        build_data["tag"] = f"cp311-abi3-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"


def compile_extension(source: Path, target: Path) -> str | None:
    """Compile the extension; return None, or why that is not possible."""
    if sys.platform != "linux" or sys.implementation.name != "cpython":
        return "it is for CPython on Linux"
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return "a Python without the lock has no stable ABI"
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return "there is no C compiler"
    include = sysconfig.get_paths()["include"]
    if not Path(include, "Python.h").exists():
        return f"there is no Python.h in {include}"
    words = [compiler, *FLAGS, *REPRODUCIBLE, "-I", include, "-o", str(target), str(source)]
    try:
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=300)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{compiler}: {error}"
    return f"{compiler}: {done.stderr.strip()}" if done.returncode else None
