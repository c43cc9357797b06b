"""Make `catalog/confusables.py`: the characters that look like others, by Unicode's security data (UTS #39).

`python tools/confusables.py [FILE]` reads the skeletons from the ICU library of this machine, or from a file
`confusables.txt` of Unicode, and writes the table. Characters that normalisation replaces anyway are left out, and so
are symbols.
"""

import ctypes
import sys
import unicodedata
from collections.abc import Callable
from ctypes.util import find_library
from pathlib import Path
from typing import Any

TARGET = Path(__file__).resolve().parent.parent / "src/skillshelf/catalog/confusables.py"
_WIDTH = 110
_HEAD = '''"""Characters that look like others, by Unicode's security data (UTS #39). Made by `tools/confusables.py`.

{source}. Each line of the table is a text, a tab, and the characters that look like it; ASCII is in
`catalog.look_alikes`.
"""

__all__ = ["TABLE"]

TABLE = (
'''


def from_icu() -> tuple[Callable[[str], str], str]:
    """Return the function that gives the skeleton of a text, and the name of its source."""
    name = find_library("icui18n") or ""
    library = ctypes.CDLL(name)
    version = name.rpartition(".")[2]
    status = ctypes.c_int(0)
    opened = library[f"uspoof_open_{version}"]
    opened.restype, opened.argtypes = ctypes.c_void_p, [ctypes.POINTER(ctypes.c_int)]
    checker = opened(ctypes.byref(status))
    function = library[f"uspoof_getSkeletonUTF8_{version}"]
    function.restype = ctypes.c_int32
    texts: list[Any] = [ctypes.c_char_p, ctypes.c_int32, ctypes.c_char_p, ctypes.c_int32]
    function.argtypes = [ctypes.c_void_p, ctypes.c_uint32, *texts, ctypes.POINTER(ctypes.c_int)]

    def skeleton(text: str) -> str:
        data = text.encode("utf-8")
        out, status = ctypes.create_string_buffer(256), ctypes.c_int(0)
        length = function(checker, 0, data, len(data), out, 256, ctypes.byref(status))
        assert status.value <= 0, f"ICU refused {text!r}: {status.value}"
        return out.raw[:length].decode("utf-8")

    return skeleton, f"Source: ICU {version}"


def from_file(path: str) -> tuple[Callable[[str], str], str]:
    """Return the same for a `confusables.txt`, whose first lines name its version."""
    lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
    version = next(line.removeprefix("# ") for line in lines if line.startswith("# Version"))
    table = {}
    for line in lines:
        fields = line.partition("#")[0].split(";")
        if len(fields) >= 3:
            table[chr(int(fields[0], 16))] = "".join(chr(int(point, 16)) for point in fields[1].split())

    def skeleton(text: str) -> str:
        mapped = "".join(table.get(c, c) for c in unicodedata.normalize("NFD", text))
        return unicodedata.normalize("NFD", mapped)

    return skeleton, f"Source: confusables.txt of Unicode, {version}"


def entries(skeleton: Callable[[str], str]) -> dict[str, str]:
    """Return each text with the characters that look like it."""
    found: dict[str, str] = {}
    for point in [*range(0x80, 0xD800), *range(0xE000, 0x110000)]:
        character = chr(point)
        # Symbols are left out: a name is letters, digits, marks and punctuation.
        if unicodedata.category(character)[0] not in "LNMP" or unicodedata.normalize("NFKD", character) != character:
            continue
        # Twice: one entry of the data leads to another.
        looks_like = skeleton(skeleton(character))
        if looks_like and looks_like != character:
            found[looks_like] = found.get(looks_like, "") + character
    return found


def module(skeleton: Callable[[str], str], source: str) -> str:
    """Return the text of the module."""
    lines = []
    for looks_like, characters in sorted(entries(skeleton).items()):
        rest = _escaped(f"{looks_like}\t") + "".join(map(_escaped, characters)) + "\\n"
        while rest:
            piece = rest[:_WIDTH]
            # No escape is cut in two.
            if len(rest) > _WIDTH and "\\" in piece[-10:]:
                piece = piece[: piece.rindex("\\")]
            lines.append(f'    "{piece}"\n')
            rest = rest[len(piece) :]
    return _HEAD.format(source=source) + "".join(lines) + ")\n"


def _escaped(text: str) -> str:
    return text.encode("unicode_escape").decode("ascii").replace('"', '\\"')


if __name__ == "__main__":
    made = module(*(from_file(sys.argv[1]) if len(sys.argv) > 1 else from_icu()))
    TARGET.write_text(made, encoding="ascii")
    print(f"{TARGET.name}: {len(made)} bytes")
