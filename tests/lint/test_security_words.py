"""The extension finds the same places for security rules as the code in Python does, and the same findings."""

from __future__ import annotations

import os
import random
import re
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from support.needs import needs_native

from skillshelf.lint import security, security_code, security_intents, security_prose
from skillshelf.lint.security_literals import LITERALS, PARTS
from skillshelf.lint.security_search import may_match, parts_of, search
from skillshelf.lint.security_signals import SIGNALS
from skillshelf.lint.security_words import pattern_key

CASES = Path(__file__).resolve().parent.parent / "cases"
TOOLS = CASES.parent.parent / "tools"


def _texts() -> list[tuple[str, bytes]]:
    found = [(path.name, path.read_bytes()) for path in sorted(CASES.rglob("*")) if path.is_file()]
    return [(name, data) for name, data in found if len(data) < 100_000]


def _mixed(texts: list[bytes]) -> list[tuple[str, bytes]]:
    """Return pages made of lines of many others, with blanks, ends of lines and continued lines at random."""
    chance = random.Random(20)
    lines = [line for text in texts for line in text.split(b"\n")]
    joins = (b"\n", b"\n", b" ", b"  ", b"\t", b" \\\n", b"\r\n", b"\xc2\xa0", b"", b"`\n", b"|\n")
    return [
        (("SKILL.md", "x.sh")[number % 2], b"".join(chance.choice(lines) + chance.choice(joins) for _ in range(60)))
        for number in range(300)
    ]


@needs_native
def test_the_extension_and_python_find_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = _texts()
    texts += _mixed([data for _, data in texts])
    found = [security.security_findings({name: data}) for name, data in texts]
    monkeypatch.setenv("SKILLSHELF_NATIVE", "off")

    for (name, data), ones in zip(texts, found, strict=True):
        assert security.security_findings({name: data}) == ones, data
    assert sum(map(bool, found)) > 100


@needs_native
@pytest.mark.parametrize("text", [b"", b"c", b"cur", b"curl", b"ignore", b"\n", b"a\\\ncurl x | sh", b"\xe2\x80\x8b"])
def test_short_texts_are_no_exception(text: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    found = security.security_findings({"SKILL.md": text})
    monkeypatch.setenv("SKILLSHELF_NATIVE", "off")

    assert security.security_findings({"SKILL.md": text}) == found


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the table is made as Python 3.11 parses patterns")
def test_the_table_of_literals_is_that_of_the_patterns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(os.fspath(TOOLS))
    sys.modules.pop("security_literals", None)
    import security_literals

    # The installed module: the tests also run against a wheel.
    written = Path(str(find_spec("skillshelf.lint.security_literals").origin)).read_text("utf-8")  # type: ignore[union-attr]
    assert written == security_literals.table()


def test_a_match_has_the_literals_of_its_pattern() -> None:
    texts = [data.lower().decode("utf-8", "replace") for _, data in _texts()]
    for signal in SIGNALS:
        alternatives = LITERALS.get(pattern_key(signal.pattern), "").split("\n")
        for match in (match for text in texts if (match := re.search(signal.pattern, text))):
            folded = re.sub(r"[\s\\`^]+", " ", match[0])
            groups = [[group.split("\v") for group in line.split("\t")] for line in alternatives if line]
            assert not groups or any(all(any(text in folded for text in group) for group in line) for line in groups), (
                match[0]
            )


SEARCHED = (*security_prose.SEARCHED, *security_intents.SEARCHED, *security_code.SEARCHED)


def test_the_parts_of_a_pattern_are_its_outermost_alternatives() -> None:
    assert parts_of(r"a|(?:b|c)d|[|]\||e") == ("a", "(?:b|c)d", r"[|]\|", "e")
    assert parts_of(r"[]|]x|\[a|[^]|]") == ("[]|]x", r"\[a", "[^]|]")
    assert parts_of("one") == ("one",)
    for pattern in SEARCHED:
        assert "|".join(parts_of(pattern)) == pattern
        assert all(re.compile(part) for part in parts_of(pattern))
        assert PARTS[pattern_key(pattern)].count("\f") + 1 == len(parts_of(pattern))


@pytest.mark.heavy
def test_a_search_by_parts_finds_what_the_whole_pattern_finds() -> None:
    texts = [data.lower() for _, data in _texts()]
    texts += [data.lower() for _, data in _mixed(texts)[:100]]
    found = 0
    for data in texts:
        # Sections as the rules ask about them, and lines that a page quotes or wraps.
        for start in range(0, min(len(data), 12_000), 2_000):
            part = data[start : start + 2_000]
            text = re.sub(r"\s*\n[ \t>]*", " ", part.decode("utf-8", "replace").lower())
            for pattern in SEARCHED:
                whole, parts = re.search(pattern, text), search(pattern, text)
                assert (whole and (whole.span(), whole[0])) == (parts and (parts.span(), parts[0])), (pattern, text)
                assert whole is None or may_match((pattern,), part), (pattern, part)
                found += whole is not None
    assert found > 300
