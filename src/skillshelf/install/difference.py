"""Compare two trees of a skill: texts by lines, binary files by digest, modes, and what gives a skill more power."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from skillshelf.catalog.document import parse
from skillshelf.catalog.source import ExecutableFile
from skillshelf.core.digests import sha256
from skillshelf.core.limits import DIFF_LINES
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import visible

__all__ = ["FileDifference", "FileState", "TreeDifference", "difference_of", "is_script"]

FileState = Literal["added", "removed", "changed", "mode"]

_CONTEXT = 3
_SCRIPTS = (".sh", ".bash", ".zsh", ".fish", ".py", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".ps1", ".bat", ".cmd")
_POWERS = ("allowed-tools", "permissions", "hooks", "disable-model-invocation", "user-invocable", "context", "agent")
"""Fields of the frontmatter that change what a skill may do, or who starts it; some hosts read more than others."""


class FileDifference(NamedTuple):
    """One file that differs; `lines` is its unified diff, safe to print, or one line about a file that is no text."""

    path: str
    state: FileState
    script: bool
    lines: tuple[str, ...]


class TreeDifference(NamedTuple):
    """All files that differ, sorted by path, and what deserves a second look: permissions, scripts, modes."""

    files: tuple[FileDifference, ...]
    remarks: tuple[str, ...]


def is_script(path: str, data: bytes) -> bool:
    """Return whether a file of a skill is made to be run: by its mode, its first line, its folder or its name."""
    in_folder = path.startswith("scripts/") and not path.endswith((".md", ".txt", ".json"))
    is_marked = isinstance(data, ExecutableFile) or data.startswith(b"#!")
    return is_marked or in_folder or path.lower().endswith(_SCRIPTS)


def difference_of(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> TreeDifference:
    """Return how one tree becomes the other."""
    found = []
    for path in sorted({*before, *after}):
        old, new = before.get(path), after.get(path)
        if (state := _state(old, new)) is None:
            continue
        script = any(is_script(path, data) for data in (old, new) if data is not None)
        found.append(FileDifference(path, state, script, (*_head(path, old, new), *_lines(old, new))))
    return TreeDifference(tuple(found), tuple(_remarks(found, before, after)))


def _state(old: bytes | None, new: bytes | None) -> FileState | None:
    if old is None or new is None:
        return "added" if old is None else "removed"
    if old != new:
        return "changed"
    return "mode" if _mode(old) != _mode(new) else None


def _mode(data: bytes) -> str:
    return "executable" if isinstance(data, ExecutableFile) else "not executable"


def _head(path: str, old: bytes | None, new: bytes | None) -> Iterator[str]:
    yield f"--- {'/dev/null' if old is None else f'a/{visible(path)}'}"
    yield f"+++ {'/dev/null' if new is None else f'b/{visible(path)}'}"
    if old is not None and new is not None and _mode(old) != _mode(new):
        yield f"# {_mode(old)} before, {_mode(new)} now"
    elif old is None and isinstance(new, ExecutableFile):
        yield "# executable"


def _lines(old: bytes | None, new: bytes | None) -> Iterator[str]:
    """Return the changed lines of a text; of anything else its size and digest on both sides."""
    texts = [_text(data) if data is not None else [] for data in (old, new)]
    if texts[0] is None or texts[1] is None:
        yield from (f"{sign} {_measured(data)}" for sign, data in (("-", old), ("+", new)) if data is not None)
        return
    for line in _compared(texts[0], texts[1]):
        # A tab moves the cursor and nothing else; everything that a terminal obeys or hides is escaped.
        yield "\t".join(visible(part) for part in line.split("\t"))


def _measured(data: bytes) -> str:
    return f"{len(data)} bytes that are not text, sha256:{sha256(data).hexdigest()}"


def _text(data: bytes) -> list[str] | None:
    """Return the lines of a text, the last one marked if it has no line end; None for a file that is not a text."""
    if b"\0" in data:
        return None
    try:
        lines = data.decode("utf-8").split("\n")
    except UnicodeDecodeError:
        return None
    if lines[-1] == "":
        return lines[:-1]
    lines[-1] += "  (no line end)"
    return lines


def _compared(old: list[str], new: list[str]) -> Iterator[str]:
    """Yield the hunks of a unified diff; what is too long to be compared is removed and added whole, never left out."""
    if max(len(old), len(new)) <= DIFF_LINES:
        from difflib import unified_diff

        hunks = unified_diff(old, new, lineterm="", n=_CONTEXT)
        yield from (line for number, line in enumerate(hunks) if number > 1)
        return
    start = _common(old, new)
    end = _common(old[start:][::-1], new[start:][::-1])
    gone, come = old[start : len(old) - end], new[start : len(new) - end]
    if gone or come:
        yield f"@@ -{start + 1},{len(gone)} +{start + 1},{len(come)} @@"
    yield from (f"-{line}" for line in gone)
    yield from (f"+{line}" for line in come)


def _common(old: Sequence[str], new: Sequence[str]) -> int:
    """Return how many lines both begin with."""
    pairs = enumerate(zip(old, new, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(old), len(new)))


def _remarks(found: Sequence[FileDifference], before: Mapping[str, bytes], after: Mapping[str, bytes]) -> Iterator[str]:
    """Yield what changes the power of a skill, which is easily missed in a long text."""
    old, new = (_fields(contents) for contents in (before, after))
    for field in _POWERS:
        if old.get(field) != new.get(field):
            yield f"{field}: {_shown(old.get(field))} becomes {_shown(new.get(field))}"
    if old.get("name") != new.get("name"):
        yield f"name: {_shown(old.get('name'))} becomes {_shown(new.get('name'))}"
    for one in found:
        if one.script:
            acts = [f"is {one.state}"] if one.state != "mode" else []
            modes = [isinstance(side.get(one.path), ExecutableFile) for side in (before, after)]
            if one.state in ("changed", "mode") and modes[0] != modes[1]:
                acts.append("is executable now" if modes[1] else "is no longer executable")
            yield f"script {visible(one.path)} {' and '.join(acts)}"
        elif one.state == "mode":
            yield f"mode of {visible(one.path)}"


def _fields(contents: Mapping[str, bytes]) -> Mapping[str, Any]:
    data = contents.get("SKILL.md")
    return parse(data, whole=True).fields if data is not None else {}


def _shown(value: object) -> str:
    return "nothing" if value is None else visible(value if isinstance(value, str) else repr(value))
