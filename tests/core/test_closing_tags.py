"""No spelling of a closing tag of ours gets through, and nothing else is changed."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.trees import Machine, write_skill

from skillshelf.core.text import OWN_ELEMENTS, closing_tags, escape_closing_tags, for_model

CHARACTERS = [chr(point) for point in range(sys.maxunicode + 1) if not 0xD800 <= point <= 0xDFFF]
IGNORABLE = [c for c in CHARACTERS if unicodedata.category(c) in ("Cf", "Cc") and not c.isspace()] + [
    chr(point)
    for first, last in (
        *((0x34F, 0x34F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x2065, 0x2065), (0x3164, 0x3164)),
        *((0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0xE0000, 0xE0FFF)),
    )
    for point in range(first, last + 1)
]
BLANKS = [c for c in CHARACTERS if c.isspace()]
OPENERS = [c for c in CHARACTERS if unicodedata.normalize("NFKC", c) == "<"]
SLASHES = [c for c in CHARACTERS if unicodedata.normalize("NFKC", c) == "/"]
LETTERS: dict[str, list[str]] = {}
for one in CHARACTERS:
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", one).casefold())
    if len(plain) == 1 and plain.isascii():
        LETTERS.setdefault(plain, []).append(one)

gaps = st.text(st.sampled_from([*IGNORABLE, *BLANKS]), max_size=4)
unseen = st.text(st.sampled_from(IGNORABLE), max_size=2)
elements = st.sampled_from(OWN_ELEMENTS)
endings = st.sampled_from(["", ">", " >", "/>", ' x="1">', "\n", "\u200bx>", "&", ">>", "</", "\u3000", '"', "(", "\0"])


@st.composite
def spellings(draw: st.DrawFn) -> tuple[str, str]:
    """Return an element and a spelling of its closing tag."""
    element = draw(elements)
    name = "".join(draw(st.sampled_from(LETTERS[letter])) + draw(unseen) for letter in element[:-1])
    name += draw(st.sampled_from(LETTERS[element[-1]]))
    head = draw(st.sampled_from(OPENERS)) + draw(gaps) + draw(st.sampled_from(SLASHES)) + draw(gaps)
    return element, head + name + draw(endings)


def read_as_a_model_would(text: str) -> str:
    """Return a text without what nobody sees, in compatibility form and lower case."""
    kept = "".join(c for c in text if c not in set(IGNORABLE) and not c.isspace())
    return unicodedata.normalize("NFKC", kept).casefold()


@given(spellings(), st.text(max_size=8), st.text("<>/ \u200bskill_content", max_size=8))
def test_no_spelling_of_a_closing_tag_survives(case: tuple[str, str], before: str, after: str) -> None:
    element, tag = case
    text = f"{before}{tag} {after}"

    sealed, count = escape_closing_tags(text, element)

    assert count >= 1
    assert closing_tags(sealed, element) == []
    assert f"</{element}" not in read_as_a_model_would(sealed).replace(f"</{element}s", "").replace(f"</{element}_", "")
    # Backslashes were added, and every other character is where it was.
    assert len(sealed) == len(text) + count
    rest = iter(sealed)
    assert all(character in rest for character in text)


@given(st.text(), elements)
@example("</skill_contents> </skill_content-x> </skill_content.x> </skill_content:x> <skill_content>", "skill_content")
@example("<\\/skill_content> < \\/ skill_content>", "skill_content")
@example("</skill content> </skill-content> </ skill>", "skill_content")
def test_a_text_without_a_closing_tag_stays_as_it_is(text: str, element: str) -> None:
    if f"/{element}" not in read_as_a_model_would(text) or "</" not in read_as_a_model_would(text):
        assert escape_closing_tags(text, element) == (text, 0)
    sealed, _ = escape_closing_tags(text, element)
    assert escape_closing_tags(sealed, element) == (sealed, 0)


@pytest.mark.parametrize(
    "text",
    ["<", "< ", "</", "<\u200b", "</skill", "</skill\u200b", "<\u3000/", "</skill_conten", "</s\0", "\u226e\u0338"],
)
def test_the_time_is_linear_whatever_the_text(text: str) -> None:
    # A quadratic scan of a mebibyte would take hours; the limit of the test run ends it.
    whole = text * ((1 << 20) // len(text))
    sealed, count = escape_closing_tags(whole, *OWN_ELEMENTS, "skill")
    assert len(sealed) == len(whole) + count


@pytest.mark.parametrize("filler", [" ", "\0", "\u200b", "\u3164"])
def test_a_run_of_blanks_of_any_length_hides_nothing(filler: str) -> None:
    run = filler * (1 << 18)
    assert escape_closing_tags(f"<{run}/{run}skill_content>", "skill_content")[1] == 1


@pytest.mark.parametrize("shift", range(len("</skill_contents>")))
def test_a_page_that_ends_within_a_longer_name_does_not_close_the_element(machine: Machine, shift: int) -> None:
    # The page ends at a fixed number of bytes; with one of these shifts it ends behind the name of the element.
    body = "x" * shift + "</skill_contents>" * 20_000
    write_skill(machine.repo / ".agents/skills", "deploy", f"---\nname: deploy\ndescription: Deploys.\n---\n{body}\n")
    session = machine.shelf("standard").session()

    first = session.call("skill_load", {"name": "deploy"})
    second = session.call("skill_load", {"name": "deploy", "offset": first.data["next_offset"]})

    for result in (first, second):
        assert closing_tags(result.text, "skill_content") == [len(result.text) - len("</skill_content>")]
    parts = [result.text.partition(">\n")[2].partition("\n[cut; ")[0] for result in (first, second)]
    assert "".join(parts).partition("\n<skill_resources")[0] == body


@pytest.mark.parametrize(
    "tag",
    [
        "\u2039/skill_content\u203a",
        "<\u2215skill_content>",
        "</\u0455kill_\u0441\u043entent>",
        "</SK\u0130LL_\u0421ONTENT>",
        "</sk\u0131ll_content>",
        "</skill\u203fcontent>",
        "</skill_conte\u0301nt>",
    ],
)
def test_a_tag_in_letters_that_look_the_same_is_broken_too(tag: str) -> None:
    assert escape_closing_tags(f"a {tag} b", "skill_content") == (f"a {tag[0]}\\{tag[1:]} b", 1)


@pytest.mark.parametrize("text", ["\uff1c/name\uff1e", "\uff1c\uff0fskill>", "\u2039/available_skills\u203a"])
def test_a_field_of_the_catalog_cannot_close_its_element_in_look_alikes(text: str) -> None:
    assert closing_tags(for_model(f"a {text} b")) == []
    assert for_model(f"a {text} b").replace("\\", "") == f"a {text} b"
