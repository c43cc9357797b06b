"""Keep git from changing the line ends of installed skills, by lines in the `.gitattributes` of a repository."""

import re
from collections.abc import Collection

__all__ = ["ATTRIBUTES_FILE", "attributes_line", "with_attributes"]

ATTRIBUTES_FILE = ".gitattributes"

_PATTERN_CHARACTERS = re.compile(r"([*?\[\]\\])")


def attributes_line(name: str) -> str:
    """Return the line for the folder of one skill."""
    pattern = f"/.agents/skills/{_PATTERN_CHARACTERS.sub(_escaped, name)}/**"
    if re.search(r'[\s"]', pattern):
        quoted = pattern.replace("\\", "\\\\").replace('"', '\\"')
        pattern = f'"{quoted}"'
    return f"{pattern} -text"


def _escaped(found: re.Match[str]) -> str:
    return f"\\{found[1]}"


def with_attributes(data: bytes, added: Collection[str], removed: Collection[str]) -> bytes:
    """Return the bytes of the file with the lines of some skills, and without those of others."""
    gone = {attributes_line(name).encode() for name in removed}
    lines = [line for line in data.splitlines(keepends=True) if line.strip() not in gone]
    known = {line.strip() for line in lines}
    new = [line for line in (attributes_line(name).encode() for name in sorted(added)) if line not in known]
    if new and lines and not lines[-1].endswith(b"\n"):
        lines[-1] += b"\n"
    end = b"\r\n" if lines and lines[0].endswith(b"\r\n") else b"\n"
    return b"".join([*lines, *(line + end for line in new)])
