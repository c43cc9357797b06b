"""The catalog text stays within its budget to the byte, and is shortened in steps."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any
from xml.etree import ElementTree

import pytest
from support.trees import Machine, write_skill

from skillshelf.catalog.prompt import CatalogText, catalog_text, tokens_in
from skillshelf.config.builtin_profiles import SYSTEMS
from skillshelf.config.settings import Settings
from skillshelf.core.values import CatalogSkill

PLENTY = 10**6


def skill(name: str, description: str = "Does it.", path: str = "") -> CatalogSkill:
    """Return a skill of a catalog that does not exist on disk."""
    path = path or f"/repo/.agents/skills/{name}/SKILL.md"
    return CatalogSkill(
        name=name,
        description=description,
        path=path,
        real_path=path,
        real_dir=path.removesuffix("/SKILL.md"),
        scope="repo",
        source="project:.agents/skills",
        root=0,
        mtime_ns=0,
        size=100,
        enabled=True,
        trusted=True,
        hidden=None,
        frontmatter={"name": name, "description": description},
    )


def catalog_for(profile: str, skills: Sequence[CatalogSkill], **limits: Any) -> CatalogText:
    """The catalog text of a profile within these limits, without limits where none are given."""
    endless = Settings(max_entries=PLENTY, max_bytes=PLENTY, max_tokens=PLENTY, max_chars=PLENTY)
    return catalog_text(skills, SYSTEMS[profile], endless._replace(**limits))


def names_in(text: str) -> list[str]:
    """The names of the skills in a text with an element for each."""
    return re.findall("^    <name>(.*)</name>$", text, flags=re.MULTILINE)


# The standard: tokens, in steps -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("é", 1), ("éé", 1), ("ééé", 2), ("日本", 2), ("🧾", 1), ("🧾a", 2)],
)
def test_a_token_is_four_bytes_of_utf8_rounded_up(text: str, tokens: int) -> None:
    assert tokens_in(text) == tokens


def written(skills: Sequence[CatalogSkill], first: str, entries: int, texts: Sequence[str] | None, cut: bool) -> str:
    """The text that the design describes, with descriptions or without."""
    lines = [first, f'<available_skills truncated="{"true" if cut else "false"}">']
    for position, each in enumerate(skills[:entries]):
        lines += ["  <skill>", f"    <name>{each.name}</name>"]
        lines += [f"    <description>{texts[position]}</description>"] if texts else []
        lines += ["  </skill>"]
    if entries < len(skills):
        lines.append(f'  <omitted count="{len(skills) - entries}"/>')
    return "\n".join([*lines, "</available_skills>"])


def choices(skills: Sequence[CatalogSkill], descriptions: Sequence[str]) -> Iterator[CatalogText]:
    """Every text that the design allows, best first."""
    use = catalog_for("standard", skills).text.partition("\n")[0]
    hint = catalog_for("standard", skills, max_tokens=100).text.partition("\n")[0]
    count = len(skills)
    yield CatalogText(written(skills, use, count, descriptions, cut=False), count, 0, truncated=False)
    for length in range(max(map(len, descriptions)) - 1, 59, -1):
        texts = [d if len(d) <= length else d[: length - 1].rstrip() + "…" for d in descriptions]
        yield CatalogText(written(skills, hint, count, texts, cut=True), count, 0, truncated=True)
    for entries in range(count, -1, -1):
        yield CatalogText(written(skills, hint, entries, None, cut=True), entries, count - entries, truncated=True)
    yield CatalogText("", 0, count, truncated=True)


TEXTS = {
    "long ones": ["x" * 140, "y" * 120, "z" * 70, "short"],
    "of many bytes": ["日本語の説明文" * 14, "größe und maß " * 8 + "x", "🧾" * 80],
    # An ellipsis has three bytes: cut to 60 characters, these 61 would have more bytes than before.
    "one character above the least": ["x" * 61] * 8 + ["y" * 200],
    "all as short as the least": ["x" * 60] * 4,
}


@pytest.mark.req("C-06")
@pytest.mark.parametrize("case", sorted(TEXTS))
def test_at_every_budget_the_text_is_the_best_that_fits(case: str) -> None:
    skills = [skill(f"skill-{position}", text) for position, text in enumerate(TEXTS[case])]
    allowed = [*choices(skills, TEXTS[case])]
    budgets = {each.tokens + off for each in allowed for off in (-1, 0, 1)}
    wrong = [
        (budget, result.tokens, best.tokens)
        for budget in sorted(budgets - {-1, 0})
        for result in [catalog_for("standard", skills, max_tokens=budget)]
        for best in [next(each for each in allowed if each.tokens <= budget)]
        if result != best
    ]
    assert not wrong, "budget, tokens of the text, tokens of the best text"


def test_what_folds_away_does_not_count_against_the_budget() -> None:
    skills = [skill("a", "one" + "\x01\x9b" * 2000 + "two")]
    folded = [skill("a", "one two")]
    budget = catalog_for("standard", folded).tokens
    assert catalog_for("standard", skills, max_tokens=budget) == catalog_for("standard", folded)


@pytest.mark.req("C-06")
def test_the_steps_of_the_standard_in_their_order() -> None:
    skills = [skill(f"skill-{number}", "x" * 100) for number in range(6)]
    seen: list[str] = []
    for budget in range(catalog_for("standard", skills).tokens, 0, -1):
        result = catalog_for("standard", skills, max_tokens=budget)
        lengths = [len(found) for found in re.findall("<description>(.*)</description>", result.text)]
        assert result.tokens <= budget
        assert result.entries + result.omitted == 6
        assert not result.truncated or len(set(lengths)) <= 1
        assert not lengths or min(lengths) >= 60
        step = "empty" if not result.text else "some names" if result.omitted else "cut" if lengths else "names"
        step = step if result.truncated else "whole"
        seen += [] if seen[-1:] == [step] else [step]
    assert seen == ["whole", "cut", "names", "some names", "empty"]


def test_a_text_that_leaves_names_out_counts_them_and_points_to_search() -> None:
    skills = [skill(f"skill-{number:02}", "x" * 300) for number in range(20)]
    result = catalog_for("standard", skills, max_tokens=120)
    element = ElementTree.fromstring(result.text[result.text.index("\n") + 1 :])
    *listed, omitted = element
    assert [each.findtext("name") for each in listed] == [f"skill-{n:02}" for n in range(result.entries)]
    assert (omitted.tag, omitted.attrib) == ("omitted", {"count": str(20 - result.entries)})
    assert element.attrib == {"truncated": "true"}
    assert result.text.partition("\n")[0].endswith("find skills with `skill_search`.")


@pytest.mark.parametrize("max_tokens", [120, 300, 600])
def test_a_profile_without_a_search_tool_says_that_it_shortened_and_does_not_mention_search(max_tokens: int) -> None:
    skills = [skill(f"skill-{number:02}", "x" * 300) for number in range(20)]
    result = catalog_for("rip", skills, max_tokens=max_tokens)
    assert result.truncated
    assert "shortened" in result.text
    assert "skill_search" not in result.text


@pytest.mark.parametrize("off", [-1, 0, 1])
def test_the_setting_bounds_the_text_to_the_token(machine: Machine, off: int) -> None:
    for name in ("build", "deploy", "test"):
        write_skill(machine.repo / ".agents/skills", name)
    whole = machine.shelf().session().catalog_text()
    config = {"skills": {"initial": {"max_tokens": whole.tokens + off}}}
    result = machine.shelf(config=config).session().catalog_text()
    assert result.truncated is (off < 0)
    assert (result == whole) is (off >= 0)


def test_without_a_setting_two_thousand_tokens_are_spent(machine: Machine) -> None:
    for number in range(40):
        text = f"---\nname: skill-{number}\ndescription: {'x' * 300}\n---\n"
        write_skill(machine.repo / ".agents/skills", f"skill-{number}", text)
    result = machine.shelf().session().catalog_text()
    # One character more in each description would be 40 bytes, that is 10 tokens, more.
    assert (result.truncated, result.omitted, 2000 - 10 < result.tokens <= 2000) == (True, 0, True)


# Codelia: entries and bytes -----------------------------------------------------------------------


@pytest.mark.req("C-60", "C-62", "C-65")
@pytest.mark.parametrize(("most", "listed"), [(4, 4), (5, 5), (6, 5), (1, 1)])
def test_codelia_lists_at_most_the_maximum_of_entries(machine: Machine, most: int, listed: int) -> None:
    for name in "edcba":
        write_skill(machine.repo / ".agents/skills", name)
    result = machine.shelf("codelia", config={"skills": {"initial": {"maxEntries": most}}}).session().catalog_text()
    assert names_in(result.text) == list("abcde"[:listed])
    assert (result.entries, result.omitted, result.truncated) == (listed, 5 - listed, listed < 5)
    catalog = ElementTree.fromstring(result.text).find("skills_catalog")
    assert catalog is not None
    assert catalog.attrib == {"scope": "initial", "truncated": "true" if listed < 5 else "false"}
    assert ("skill_search" in "".join(note.text or "" for note in catalog.iter("note"))) is (listed < 5)


def block_bytes(text: str) -> list[int]:
    """The bytes of each `<skill>` element in a text, with the line end after it."""
    return [len(block.encode()) for block in re.findall("^  <skill>\n.*?^  </skill>\n", text, re.DOTALL | re.MULTILINE)]


@pytest.mark.req("C-61", "C-62")
@pytest.mark.parametrize(("off", "listed"), [(-1, 2), (0, 3), (1, 3)])
def test_codelia_lists_at_most_the_maximum_of_bytes(machine: Machine, off: int, listed: int) -> None:
    for name in "abc":
        write_skill(machine.repo / ".agents/skills", name, f"---\nname: {name}\ndescription: 日本語と🧾\n---\n")
    whole = machine.shelf("codelia").prompt()
    sizes, most = block_bytes(whole), len(whole.encode()) + off
    config = {"skills": {"initial": {"maxBytes": most}}}
    result = machine.shelf("codelia", config=config).session().catalog_text()
    assert block_bytes(result.text) == sizes[:listed]
    assert len(result.text.encode()) <= most
    assert f'truncated="{"true" if listed < 3 else "false"}"' in result.text
    assert (f"{3 - listed} more skills are not listed" in result.text) is (listed < 3)


@pytest.mark.req("C-61")
def test_the_first_entry_that_does_not_fit_ends_the_list() -> None:
    skills = [skill("a"), skill("b", "x" * 900), skill("c")]
    most = len(catalog_for("codelia", [skills[0], skills[2]]).text.encode())
    result = catalog_for("codelia", skills, max_bytes=most)
    assert names_in(result.text) == ["a"]
    assert len(result.text.encode()) <= most


@pytest.mark.req("C-61", "C-62")
def test_a_list_may_be_empty_and_still_point_to_search() -> None:
    result = catalog_for("codelia", [skill("a"), skill("b")], max_bytes=200)
    assert (names_in(result.text), result.omitted, result.truncated) == ([], 2, True)
    assert "skill_search" in result.text.partition("<skills_catalog")[2]
    assert len(result.text.encode()) <= 200


@pytest.mark.req("C-61")
def test_a_budget_in_which_nothing_fits_leaves_nothing() -> None:
    result = catalog_for("codelia", [skill("a"), skill("b")], max_bytes=1)
    assert (result.text, result.omitted, result.truncated) == ("", 2, True)


@pytest.mark.req("C-60", "C-61", "C-06")
def test_without_settings_codelia_lists_200_entries_and_32768_bytes() -> None:
    short = catalog_text([skill(f"s-{n:04}", "x") for n in range(500)], SYSTEMS["codelia"], Settings())
    assert (short.entries, short.omitted) == (200, 300)
    longer = [skill(f"s-{n:04}", "x" * 1000) for n in range(500)]
    size = block_bytes(catalog_for("codelia", longer[:1]).text)[0]
    text = catalog_text(longer, SYSTEMS["codelia"], Settings()).text
    assert 32768 - size < len(text.encode()) <= 32768


# Mycodeagent: characters --------------------------------------------------------------------------


@pytest.mark.req("M-40", "M-42")
def test_mycodeagent_lists_at_most_the_maximum_of_characters() -> None:
    skills = [skill("a", "größe"), skill("b", "日本語" * 30), skill("c", "🧾 x" * 30)]
    whole = catalog_for("mycodeagent", skills, max_chars=500)
    lines = whole.text.partition("\nAvailable skills:\n")[2].split("\n")
    assert (whole.entries, len(lines)) == (3, 3)
    before = 0
    for most in range(60, 500):
        result = catalog_for("mycodeagent", skills, max_chars=most)
        listing = result.text.partition("\nAvailable skills:\n")[2].split("\n")
        assert len(result.text) <= most or result.entries == 0
        assert result.entries >= before
        assert (result.entries == 3) is (most >= len(whole.text))
        assert listing[: result.entries] == lines[: result.entries]
        assert (result.omitted, result.truncated) == (3 - result.entries, result.entries < 3)
        assert bool(re.fullmatch(r"\(\d more are not listed.*\)", listing[-1])) is result.truncated
        before = result.entries


@pytest.mark.req("M-42")
def test_the_first_line_that_does_not_fit_ends_the_list_and_what_is_left_out_is_said() -> None:
    skills = [skill("a"), skill("b", "x" * 900), skill("c")]
    result = catalog_for("mycodeagent", skills, max_chars=200)
    listing = result.text.partition("\nAvailable skills:\n")[2].split("\n")
    assert listing[0] == "- a: Does it."
    assert re.fullmatch(r"\(2 more are not listed.*\)", listing[1])
    assert len(listing) == 2


@pytest.mark.req("M-42")
def test_where_not_even_one_line_fits_the_list_says_none() -> None:
    listing = catalog_for("mycodeagent", [skill("a")], max_chars=1).text.partition("\nAvailable skills:\n")[2]
    assert listing.split("\n")[0] == "(none)"


@pytest.mark.req("M-41", "M-40")
@pytest.mark.parametrize(
    ("env", "config", "budget"),
    [
        ({}, {}, 12000),
        ({"SKILLS_PROMPT_CHAR_BUDGET": "500"}, {}, 500),
        ({}, {"skills": {"initial": {"max_chars": 700}}}, 700),
        ({"SKILLS_PROMPT_CHAR_BUDGET": "500"}, {"skills": {"initial": {"max_chars": 700}}}, 500),
        ({"SKILLS_PROMPT_CHAR_BUDGET": ""}, {}, 12000),
    ],
)
def test_the_environment_sets_the_characters_of_the_list(
    machine: Machine, env: dict[str, str], config: dict[str, Any], budget: int
) -> None:
    for number in range(150):
        text = f"---\nname: s-{number:03}\ndescription: {'x' * 91}\n---\n"
        write_skill(machine.repo / "skills", f"s-{number:03}", text)
    machine.env.update(env)
    shelf = machine.shelf("mycodeagent", config=config)
    # A line of this list is 100 characters and its end; rules are a part of the prompt unless the budget is small.
    text = shelf.session().catalog_text().text
    used = len(shelf.session().system_prompt()) if budget > 2500 else len(text)
    assert budget - 101 < used <= budget
    assert shelf.prompt() == text


@pytest.mark.req("M-41")
@pytest.mark.parametrize("value", ["abc", "0", "-5", "1e3", "٣", "9" * 30])
def test_a_budget_that_is_no_number_is_warned_about_and_the_default_holds(machine: Machine, value: str) -> None:
    write_skill(machine.repo / "skills", "deploy")
    machine.env["SKILLS_PROMPT_CHAR_BUDGET"] = value
    session = machine.shelf("mycodeagent").session()
    (warning,) = session.warnings
    assert session.shelf.settings_in_force.max_chars == 12000
    assert (warning.path, "the budget is 12000 characters" in warning.message) == ("SKILLS_PROMPT_CHAR_BUDGET", True)


@pytest.mark.req("M-41")
@pytest.mark.parametrize("value", ["", "500", " 500 "])
def test_a_good_budget_brings_no_warning(machine: Machine, value: str) -> None:
    machine.env["SKILLS_PROMPT_CHAR_BUDGET"] = value
    assert machine.shelf("mycodeagent").session().warnings == []


@pytest.mark.req("M-41")
@pytest.mark.parametrize("profile", ["standard", "codelia", "swiftagent"])
def test_the_variable_of_one_profile_means_nothing_to_the_others(machine: Machine, profile: str) -> None:
    root = {"swiftagent": ".agent/skills"}.get(profile, ".agents/skills")
    write_skill(machine.repo / root, "deploy")
    machine.env["SKILLS_PROMPT_CHAR_BUDGET"] = "1"
    assert "deploy" in machine.shelf(profile).prompt()


# All of them --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("profile", "budget", "tiny"),
    [
        ("standard", [], {"max_tokens": 100}),
        ("codelia", ["entries"], {"max_bytes": 100}),
        ("codelia", ["bytes"], {"max_entries": 1}),
        ("mycodeagent", [], {"max_chars": 10}),
    ],
)
def test_a_profile_names_the_numbers_that_bound_its_text(
    machine: Machine, profile: str, budget: list[str], tiny: dict[str, int]
) -> None:
    root = {"mycodeagent": "skills"}.get(profile, ".agents/skills")
    for name in ("build", "deploy", "test"):
        write_skill(machine.repo / root, name)
    config = {"skills": {"initial": tiny}, "profiles": {"lab": {"extends": profile, "catalog_budget": budget}}}
    assert machine.shelf(profile, config=config).session().catalog_text().truncated
    assert not machine.shelf("lab", config=config).session().catalog_text().truncated


@pytest.mark.req("C-06", "M-42")
@pytest.mark.parametrize("profile", ["standard", "strict", "rip", "codelia", "mycodeagent"])
def test_ten_thousand_skills_stay_within_the_budget(profile: str) -> None:
    skills = [skill(f"skill-{number:05}", f"Does the thing with number {number}. " * 9) for number in range(10_000)]
    result = catalog_text(skills, SYSTEMS[profile], Settings())
    frame = len(catalog_for(profile, skills[:1]).text)
    most = {"standard": 2000 * 4, "strict": 2000 * 4, "rip": 2000 * 4, "codelia": 32768 + frame}
    assert len(result.text.encode()) <= most.get(profile, 12000 + frame)
    assert result.truncated
    assert result.entries + result.omitted == 10_000
    assert result.entries > 10
