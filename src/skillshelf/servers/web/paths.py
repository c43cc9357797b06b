"""Show paths without telling where they are: pages are looked at by others, and name no home, account or machine."""

import os
import re
from collections.abc import Iterable

from skillshelf.core import files

__all__ = ["ShownPaths"]

_PART = r"[^\s/\\\"'`()<>|;,:]+"
"""A part of a path; a backslash begins an escape of JSON."""
_PLACE = r"[^\s/\\\"'`<>|;,][^\s\\\"'`<>|;,]*"
_ADDRESS = rf"(?<!file)://{_PLACE}"
"""An address from its `://` on, as far as it names a host: what follows is no path of this machine."""
_SHORT_ADDRESS = rf"(?<![:/])//(?!home/|Users/){_PLACE}"
"""An address without its protocol."""
_RELATIVE = r"(?<![A-Za-z0-9_.~…/\\-])(?!~[A-Za-z_])[A-Za-z0-9_.~…][A-Za-z0-9_.~…-]*/[\w.~…/-]*"
"""A path that starts with a word, not with the `~` of an account. `-I/opt/x` and the JSON `\n/opt/x` are none."""
_END = r"(?![\w-]|\.+[\w/-])"
"""Where the name of a folder ends; the full stop of a sentence is no part of it."""
_BEGIN = r"(?:(?<![\w.~…)\]}>*%+#&!?-])|(?<=-[A-Za-z])|(?<=\\[nrt]))"
"""Where a path begins whose only folder could as well be a part of a relative one: `/src` in `lib/src/x` is none."""
_HOME = (
    rf"(?<![/~….])(?:/var|/export|(?:/mnt)?/[a-z])?/+(?:home|Users)/+{_PART}"
    rf"|\b[A-Za-z]:[\\/]+Users[\\/]+{_PART}|(?<![/~….])/root{_END}|(?<![\w/~….-])~[A-Za-z_][\w.-]*(?=/)"
)
"""The home folder of anybody."""
_ABSOLUTE = rf"(?<![/~….)\]}}+#%&!])(?<![^\Wa-zA-Z0-9_])/(?:{_PART}/+)+(?P<end>(?:{_PART})?)"
_PATHS = re.compile(rf"(?P<kept>{_ADDRESS}|{_SHORT_ADDRESS}|{_RELATIVE})|(?P<home>{_HOME})|{_ABSOLUTE}")
_ACCOUNT = re.compile(r"(?<=://)[^\s/@]+@")
_FILE_ADDRESS = re.compile(r"\bfile://(?:[^\s/]*)/(?:[^\s]*/)?([^\s/]*)")


class ShownPaths:
    """The folders that shown paths start from: the working directory and the home folder."""

    def __init__(self, cwd: str, home: str | None, above: str | None = None) -> None:
        self._cwd = cwd.rstrip("/")
        self._home = home.rstrip("/") if home else None
        self._above = above.rstrip("/") if above else None
        folders = dict.fromkeys(_forms(self._home), "~")
        folders |= {one: os.path.relpath(self._above or "/", self._cwd or "/") for one in _forms(self._above)}
        folders |= dict.fromkeys(_forms(self._cwd), ".")
        # The longest first: the working directory is often below the home folder.
        self._names = folders
        ordered = map(_written, sorted(filter(None, folders), key=len, reverse=True))
        self._known = re.compile(rf"{_ADDRESS}|({'|'.join(ordered)}){_END}(/?)") if any(folders) else None

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
        """Return a text in which the working directory and the home folder have their short names.

        The address of another machine stays as it is, also if its path is called the same.
        """
        if self._known is None or "/" not in text:
            return text

        def short(found: re.Match[str]) -> str:
            folder, slash = found.groups()
            if folder is None:
                return found[0]
            name = self._names[folder]
            if name == "." and not slash and text.startswith(".", found.end()):
                # With the full stop of a sentence it would be the folder above.
                return "./"
            # `./x` is shorter as `x`.
            return "" if name == "." and slash else f"{name}{slash}"

        return self._known.sub(short, text)

    def text(self, text: str, about: Iterable[str] = ()) -> str:
        """Return a message without absolute paths: of those that are not below a known folder only the end stays.

        An address loses the account that is named in it. A relative path that is the end of a path in `about` stays
        whole: a folder whose name has blanks or signs cannot be told from the words before an absolute path.
        """
        if "/" not in text and "\\" not in text:
            return text
        ends = sorted(map(re.escape, _ends(about)), key=len, reverse=True)
        if not ends:
            return self._without_paths(text)
        parts = re.split(rf"(?<![^\s'\"(:=])({'|'.join(ends)}){_END}", text)
        # Every second part is a relative path.
        parts[::2] = map(self._without_paths, parts[::2])
        return "".join(parts)

    def _without_paths(self, text: str) -> str:
        text = _ACCOUNT.sub("", text)
        text = _FILE_ADDRESS.sub(lambda found: f"file://…/{found[1]}", self.known(text))
        return _PATHS.sub(_without_folder, text)


def _without_folder(found: re.Match[str]) -> str:
    if found["kept"] is not None:
        return found["kept"]
    return "~" if found["home"] is not None else f"…/{found['end']}"


def _ends(paths: Iterable[str]) -> set[str]:
    """Return the last parts of some paths, two or more each."""
    parts = [path.strip("/").split("/") for path in paths]
    return {"/".join(one[start:]) for one in parts for start in range(1, len(one) - 1)}


def _written(folder: str) -> str:
    """Return the pattern of a folder in a text."""
    return f"{_BEGIN if folder.count('/') == 1 else ''}{re.escape(folder)}"


def _forms(folder: str | None) -> Iterable[str]:
    """Return the ways in which a folder may be written: as it is named, and as links lead to it."""
    return {folder, files.real_path(folder)} if folder else set()
