"""Whatever is written in `allowed-tools`, it never allows more than its most cautious reading."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from skillshelf.session.policy import covered, parse_patterns

PIECES = [
    *("Bash", "Read", "git", "(", ")", "(git:*)", "(git *)", " ", "  ", "\n", "\t", "\u00a0", "\u3000", ",", ", "),
    *("*", ":*", "[", "]", "{", "\uff08", "\uff09", "\u200b", '"', "'", "((", "))", ":", "-", "mcp__x__*", ";", "\\"),
]
texts = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
# A tool alone, where neither a bracket nor a quote could belong to it, outside of every parenthesis.
ALONE = r"(?:^|[\s,])({})(?=[\s,]*$|[\s,]+[\w*])"


def outside(text: str) -> str:
    """Return the text with all that is inside parentheses as one mark; what follows an open one is inside."""
    kept, depth = "", 0
    for character in text:
        kept += character if depth == 0 or (depth == 1 and character == ")") else "#"
        depth = max(0, depth + (character == "(") - (character == ")"))
    return kept


@given(texts)
@example("Bash (git:*)")
@example("Bash\n(git:*)")
@example("Bash, (git:*)")
@example("Read Bash(git Bash")
@example("Bash(*) (git:*)")
def test_a_whole_tool_is_allowed_only_where_it_stands_alone(text: str) -> None:
    parsed = parse_patterns(text)
    if parsed is None:
        assert not text.strip()
        return
    for tool in ("Bash", "Read", "git"):
        if covered(parsed[0], tool, {"command": "rm -rf x; y"}):
            whole = rf"{tool}\(#\)|{tool}|\*"
            assert re.search(ALONE.format(whole), outside(text)), parsed


@given(texts)
def test_a_prefix_is_allowed_only_where_it_is_written(text: str) -> None:
    parsed = parse_patterns(text)
    if parsed is not None and covered(parsed[0], "Bash", {"command": "git status"}):
        whole = covered(parsed[0], "Bash", {"command": "rm -rf x; y"})
        assert whole or re.search(r"Bash\(git ?:?\*\)", text), parsed


@given(st.lists(texts, max_size=4))
def test_a_list_allows_no_more_than_the_same_text_with_commas(items: list[str]) -> None:
    as_list, as_text = parse_patterns(items), parse_patterns(",".join(items))
    assert as_list is not None
    assert as_text is None or as_list == as_text


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=3)))
def test_a_value_of_any_kind_gives_an_answer(value: object) -> None:
    parsed = parse_patterns(value)
    assert parsed is None or not covered(parsed[0], "Bash", {"command": "x"}) or re.search(r"Bash|\*", str(value))
