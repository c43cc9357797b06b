"""Show paths without telling where they are: pages are looked at by others, and name no home, account or machine."""

import os
import re
from collections.abc import Iterable

from skillshelf.core import files

__all__ = ["ShownPaths"]

_HOMES = re.compile(r"(?<![\w.~…/@-])/(?:(?:home|Users)/[^\s/\"'`()<>|;,:]+|root)(?![\w.-])")
_ABSOLUTE = re.compile(r"(?<![\w.~…/@-])/(?:[^\s/\"'`()<>|;,:]+/)+([^\s\"'`()<>|;,:/]*)/?")
_ACCOUNT = re.compile(r"(?<=://)[^\s/@]+@")
_FILE_ADDRESS = re.compile(r"\bfile://(?:[^\s/]*)/(?:[^\s]*/)?([^\s/]*)")


class ShownPaths:
    """The folders that shown paths start from: the working directory and the home folder."""

    def __init__(self, cwd: str, home: str | None, above: str | None = None) -> None:
        self._cwd = cwd.rstrip("/")
        self._home = home.rstrip("/") if home else None
        self._above = above.rstrip("/") if above else None
        folders = dict.fromkeys(_forms(self._home), "~")
        folders |= dict.fromkeys(_forms(self._above), "..")
        folders |= dict.fromkeys(_forms(self._cwd), ".")
        # The longest first: the working directory is often below the home folder.
        self._names = folders
        ordered = sorted((re.escape(folder) for folder in folders if folder), key=len, reverse=True)
        self._known = re.compile(rf"(?:{'|'.join(ordered)})(?![\w.-])(/?)") if ordered else None

    def path(self, path: str) -> str:
        """Return a path from the working directory or from `~`; of any other only its end."""
        if path == self._cwd:
            return "."
        if self._cwd and path.startswith(f"{self._cwd}/"):
            return path[len(self._cwd) + 1 :]
        if self._above and files.is_inside(path, self._above):
            return os.path.relpath(path, self._cwd)
        if self._home and (path == self._home or path.startswith(f"{self._home}/")):
            return f"~{path[len(self._home) :]}"
        return self.text(path) if path.startswith("/") else path

    def known(self, text: str) -> str:
        """Return a text in which the working directory and the home folder have their short names."""
        if self._known is None or "/" not in text:
            return text

        def short(found: re.Match[str]) -> str:
            slash = found[1]
            name = self._names[found[0].removesuffix("/") if slash else found[0]]
            # `./x` is shorter as `x`.
            return "" if name == "." and slash else f"{name}{slash}"

        return self._known.sub(short, text)

    def text(self, text: str) -> str:
        """Return a message without absolute paths: of those that are not below a known folder only the end stays.

        An address loses the account that is named in it.
        """
        if "/" not in text:
            return text
        text = _ACCOUNT.sub("", text)
        text = _FILE_ADDRESS.sub(lambda found: f"file://…/{found[1]}", self.known(text))
        text = _HOMES.sub("~", text)
        return _ABSOLUTE.sub(lambda found: f"…/{found[1]}", text)


def _forms(folder: str | None) -> Iterable[str]:
    """Return the ways in which a folder may be written: as it is named, and as links lead to it."""
    return {folder, files.real_path(folder)} if folder else set()
