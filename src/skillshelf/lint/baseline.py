"""Keep the baseline of a repository: the findings that are known, so that only new ones are reported.

A finding is known by its rule, its file and its text, so it stays known when lines move. Two equal findings count
twice.
"""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Literal

from skillshelf.core import files
from skillshelf.core.disk_writes import replace_file
from skillshelf.core.limits import BASELINE_BYTES
from skillshelf.core.records import NamedTuple
from skillshelf.errors import ConfigurationError
from skillshelf.lint.run import CheckFinding

__all__ = [
    "BASELINE_VERSION",
    "Baseline",
    "BaselineKey",
    "Comparison",
    "KnownFinding",
    "compare",
    "read_baseline",
    "write_baseline",
]

BASELINE_VERSION = 1
"""The version of baseline files."""

_MOST = 1_000_000


class KnownFinding(NamedTuple):
    """A finding as a baseline names it; the file is relative to the repository."""

    file: str
    rule: str
    text: str


Baseline = Mapping[KnownFinding, int]
"""The known findings, each with how often it is known."""


class BaselineKey(NamedTuple):
    """How findings are named in a baseline: without the folders that differ from one machine to the next."""

    repository: str
    home: str | None

    def of(self, finding: CheckFinding) -> KnownFinding:
        """Return the name of a finding."""
        return KnownFinding(self._file(finding.path), finding.rule, self._short(finding.message))

    def path(self, known: KnownFinding) -> str:
        """Return the path of the file of a known finding."""
        if known.file.startswith("~/") and self.home:
            return f"{self.home}/{known.file[2:]}"
        return os.path.normpath(os.path.join(self.repository, known.file))

    def _file(self, path: str) -> str:
        inside = path.removeprefix(f"{self.repository.rstrip('/')}/")
        if inside != path:
            return f"./{inside}" if inside.startswith("~/") else inside
        home = f"{self.home.rstrip('/')}/" if self.home else "/"
        return f"~/{path.removeprefix(home)}" if home != "/" and path.startswith(home) else path

    def _short(self, text: str) -> str:
        """Return a message without the folders; which of them it names, if any, only its rule knows."""
        text = text.replace(f"{self.repository.rstrip('/')}/", "") if self.repository != "/" else text
        return text.replace(f"{self.home.rstrip('/')}/", "~/") if self.home and self.home != "/" else text


class Comparison(NamedTuple):
    """Findings compared with a baseline: those that it knows, new ones, and known ones that are fixed.

    `gone` has each of the fixed ones once, with its path. `written` is the number of findings that the file has now, if
    it was written.
    """

    path: str
    known: tuple[CheckFinding, ...] = ()
    new: tuple[CheckFinding, ...] = ()
    fixed: Baseline = MappingProxyType({})
    gone: tuple[CheckFinding, ...] = ()
    written: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        counts = {"known": len(self.known), "new": len(self.new), "fixed": sum(self.fixed.values())}
        return {"file": self.path, **counts, "written": self.written is not None}


def compare(
    findings: Iterable[CheckFinding],
    baseline: Baseline,
    path: str,
    key: BaselineKey,
    was_checked: Callable[[KnownFinding], bool],
) -> Comparison:
    """Compare findings with a baseline; what it knows of files and rules that were not checked is not fixed."""
    left = Counter(baseline)
    known, new = [], []
    for finding in findings:
        name = key.of(finding)
        if left[name] > 0:
            left[name] -= 1
            known.append(finding)
        else:
            new.append(finding)
    fixed = {name: count for name, count in sorted(left.items()) if count > 0 and was_checked(name)}
    gone = tuple(CheckFinding(key.path(name), None, None, name.rule, "info", name.text) for name in fixed)
    return Comparison(path, tuple(known), tuple(new), fixed, gone)


# The file -----------------------------------------------------------------------------------------


def read_baseline(path: str, *, links: Literal["follow", "never"]) -> Baseline:
    """Return the known findings in a file; raise ConfigurationError if it is not a baseline."""
    found = _read(path, links)
    if found is None:
        raise ConfigurationError(f"baseline {path} does not exist; to write it: skillshelf check --write-baseline FILE")
    return found


def write_baseline(path: str, known: Baseline) -> None:
    """Write a baseline atomically, sorted, one finding a line; only a baseline is replaced."""
    _read(path, "follow")
    rows = [
        {"file": name.file, "rule": name.rule, "text": name.text, "count": count}
        for name, count in sorted(known.items())
    ]
    lines = ",\n".join(f"    {json.dumps(row)}" for row in rows)
    listed = f"[\n{lines}\n  ]" if rows else "[]"
    data = f'{{\n  "version": {BASELINE_VERSION},\n  "findings": {listed}\n}}\n'
    try:
        replace_file(path, data.encode(), mode=0o666)
    except FileNotFoundError:
        raise ConfigurationError(f"baseline {path} cannot be written: there is no such folder") from None


def _read(path: str, links: Literal["follow", "never"]) -> Baseline | None:
    """Return the known findings in a file, or None if there is none."""
    if "\0" in path:
        raise ConfigurationError(f"baseline {path!r}: not a path")
    try:
        if files.kind_at(files.real_path(path) if links == "follow" else path) is None:
            return None
        data = files.read_file(path, limit=BASELINE_BYTES, links=links)
    except OSError as error:
        raise ConfigurationError(f"baseline {path} cannot be read: {(error.strerror or 'failed').lower()}") from None
    if data is None:
        raise _not_a_baseline(path, f"it is not a file of at most {BASELINE_BYTES:,} bytes")
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        raise _not_a_baseline(path, "it is not JSON; after a conflict in git, remove it and write it again") from None
    version = document.get("version") if isinstance(document, dict) else None
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise _not_a_baseline(path, "it has no `version`")
    if version > BASELINE_VERSION:
        newer = f"version {version} is of a newer skillshelf (this one reads {BASELINE_VERSION})"
        raise ConfigurationError(f"baseline {path}: {newer}; update skillshelf")
    return _parsed(path, document.get("findings"))


def _parsed(path: str, rows: object) -> Baseline:
    known: Counter[KnownFinding] = Counter()
    for number, row in enumerate(rows if isinstance(rows, list) else [None], 1):
        texts = [row.get(name) for name in KnownFinding._fields] if isinstance(row, dict) else []
        count = row.get("count", 1) if isinstance(row, dict) else 0
        if not texts or not all(isinstance(text, str) for text in texts) or not _is_count(count):
            raise _not_a_baseline(path, f"finding {number} is not one: it needs `file`, `rule`, `text` and `count`")
        # A finding may be there twice after a merge.
        known[KnownFinding(*map(str, texts))] += count
    return known


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _MOST


def _not_a_baseline(path: str, reason: str) -> ConfigurationError:
    return ConfigurationError(f"{path} is not a baseline of skillshelf check: {reason}")
