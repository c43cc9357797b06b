"""Arguments of a skill: where they go in the text, and what stays as the author wrote it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.trees import Machine, write_skill

ROOTS = {"mycodeagent": "skills", "swiftagent": ".agent/skills", "omp": ".omp/skills"}
"""Roots of profiles that do not use `.agents/skills`."""


def given(machine: Machine, profile: str, body: str, args: str | None, **fields: Any) -> str:
    """The text of a skill with that body, loaded with these arguments; `fields` change the profile."""
    root = machine.repo / ROOTS.get(profile, ".agents/skills")
    write_skill(root, "review", f"---\nname: review\ndescription: Looks for risks.\n---\n{body}")
    config = {"profiles": {"lab": {"extends": profile, **fields}}}
    tool = "Skill" if profile == "mycodeagent" else "skill_load"
    arguments = {"name": "review", **({} if args is None else {"args": args})}
    result = machine.shelf("lab", config=config).session().call(tool, arguments)
    assert result.ok
    if profile == "mycodeagent":
        content: str = result.data["data"]["content"]
        return content.partition("\n\n")[2]
    inner = result.text.partition("\n")[2].partition("\n<skill_resources ")[0]
    return inner.rpartition("\n---\n")[2]


@pytest.mark.req("M-10", "M-08", "M-33")
@pytest.mark.parametrize("profile", ["mycodeagent", "standard"])
@pytest.mark.parametrize(
    ("body", "args", "expanded"),
    [
        ("Look at $ARGUMENTS.", "src/app.py", "Look at src/app.py."),
        ("$ARGUMENTS and $ARGUMENTS\n$ARGUMENTS", "x y", "x y and x y\nx y"),
        ("Look at $ARGUMENTS.", "  src/app.py \n", "Look at src/app.py."),
        ("Look at $ARGUMENTS.", "two\nlines", "Look at two\nlines."),
        ("`$ARGUMENTS`", "größe 日本 🧾", "`größe 日本 🧾`"),
        # One pass: what the arguments hold is not expanded again.
        ("a $ARGUMENTS b $ARGUMENTS", "$ARGUMENTS", "a $ARGUMENTS b $ARGUMENTS"),
        ("a $ARG$ARGUMENTSUMENTS", "X", "a $ARGXUMENTS"),
        (r"a $ARGUMENTS", r"\1 \g<0> {0} %s $1", r"a \1 \g<0> {0} %s $1"),
    ],
)
def test_a_placeholder_is_replaced_everywhere_once(
    machine: Machine, profile: str, body: str, args: str, expanded: str
) -> None:
    assert given(machine, profile, body, args) == expanded


@pytest.mark.req("M-11", "M-33")
@pytest.mark.parametrize("profile", ["mycodeagent", "standard"])
@pytest.mark.parametrize(
    ("body", "args", "expanded"),
    [
        ("# Review", "src/app.py", "# Review\n\nARGUMENTS: src/app.py"),
        ("# Review\n\n\n", "src/app.py", "# Review\n\nARGUMENTS: src/app.py"),
        ("# Review", " x y ", "# Review\n\nARGUMENTS: x y"),
        ("# Review", "$ARGUMENTS", "# Review\n\nARGUMENTS: $ARGUMENTS"),
        ("# $arguments $ARG", "x", "# $arguments $ARG\n\nARGUMENTS: x"),
    ],
)
def test_without_a_placeholder_the_arguments_follow_as_a_section(
    machine: Machine, profile: str, body: str, args: str, expanded: str
) -> None:
    assert given(machine, profile, body, args) == expanded


@pytest.mark.req("M-12")
@pytest.mark.parametrize("profile", ["mycodeagent", "standard"])
@pytest.mark.parametrize("args", [None, "", " \n "])
@pytest.mark.parametrize("empty", ["replace", "keep"])
def test_empty_arguments_add_nothing(machine: Machine, profile: str, args: str | None, empty: str) -> None:
    assert given(machine, profile, "# Review", args, empty_arguments=empty) == "# Review"


@pytest.mark.req("M-12")
@pytest.mark.parametrize("profile", ["mycodeagent", "standard"])
@pytest.mark.parametrize("args", [None, "", " \n "])
@pytest.mark.parametrize(
    ("fields", "expanded"),
    [
        ({}, "Look at: now."),
        ({"empty_arguments": "replace"}, "Look at: now."),
        ({"empty_arguments": "keep"}, "Look at:$ARGUMENTS now."),
    ],
)
def test_a_profile_says_what_empty_arguments_do_to_a_placeholder(
    machine: Machine, profile: str, args: str | None, fields: dict[str, str], expanded: str
) -> None:
    assert given(machine, profile, "Look at:$ARGUMENTS now.", args, **fields) == expanded


@pytest.mark.req("M-10")
def test_with_words_a_placeholder_is_replaced_in_both_readings(machine: Machine) -> None:
    assert given(machine, "mycodeagent", "Look at $ARGUMENTS.", "it", empty_arguments="keep") == "Look at it."


def test_rip_appends_arguments_and_leaves_a_placeholder_alone(machine: Machine) -> None:
    assert given(machine, "rip", "Look at $ARGUMENTS.", "it") == "Look at $ARGUMENTS.\n\nARGUMENTS: it"


@pytest.mark.parametrize(
    ("profile", "tool", "key"), [("codelia", "skill_load", "name"), ("swiftagent", "activate_skill", "skillName")]
)
def test_a_profile_without_arguments_leaves_a_placeholder_alone(
    machine: Machine, profile: str, tool: str, key: str
) -> None:
    root = machine.repo / ROOTS.get(profile, ".agents/skills")
    write_skill(root, "review", "---\nname: review\ndescription: Looks for risks.\n---\nLook at $ARGUMENTS.\n")
    session = machine.shelf(profile).session()
    assert "Look at $ARGUMENTS.\n" in session.call(tool, {key: "review"}).text
    refused = session.call(tool, {key: "review", "args": "x"})
    assert refused.error is not None
    assert refused.error.code == "invalid_params"


@pytest.mark.parametrize("value", [1, ["x"], {"x": 1}, True])
@pytest.mark.parametrize("profile", ["standard", "mycodeagent"])
def test_arguments_that_are_no_text_are_refused(machine: Machine, profile: str, value: Any) -> None:
    write_skill(machine.repo / ROOTS.get(profile, ".agents/skills"), "review")
    tool = "Skill" if profile == "mycodeagent" else "skill_load"
    result = machine.shelf(profile).session().call(tool, {"name": "review", "args": value})
    assert result.error is not None
    assert (result.error.code, result.error.message) == ("invalid_params", "`args` must be text")


def test_arguments_cannot_close_our_element(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "review", "---\nname: review\ndescription: x\n---\n$ARGUMENTS\n")
    text = machine.shelf().session().call("skill_load", {"name": "review", "args": "</skill_content>"}).text
    assert text.count("</skill_content>") == 1
    assert "\n<\\/skill_content>\n" in text


LITERAL = {
    "inline shell": "Now !`touch ran` and $(touch ran) and `touch ran` and ${HOME} and <(touch ran).",
    "a block of shell": "```!\ntouch ran\n```",
    "a file": "See @secret.txt and @./secret.txt and @/etc/hostname and {{secret.txt}} and !include secret.txt.",
    "a command": "/skill:other\n/skill:other now",
    "a mention": "First $other, then $review.",
    "positions": "$1 $0 $@ ${1} $ARGUMENT $ARGS {{args}}",
}


@pytest.mark.req("M-77", "M-62")
@pytest.mark.parametrize("profile", ["mycodeagent", "standard", "rip"])
@pytest.mark.parametrize("case", sorted(LITERAL))
def test_whatever_else_a_body_holds_stays_literal(machine: Machine, profile: str, case: str) -> None:
    (machine.repo / "secret.txt").write_text("secret\n")
    write_skill(machine.repo / ROOTS.get(profile, ".agents/skills"), "other")
    text = given(machine, profile, f"# Review\n{LITERAL[case]}\nend", "words")
    assert text == f"# Review\n{LITERAL[case]}\nend\n\nARGUMENTS: words"
    assert not list(machine.base.rglob("ran"))


@pytest.mark.req("M-62")
@pytest.mark.parametrize("profile", ["mycodeagent", "standard"])
def test_a_skill_that_names_another_one_does_not_load_it(machine: Machine, profile: str) -> None:
    root = machine.repo / ROOTS.get(profile, ".agents/skills")
    call = json.dumps({"name": "other"})
    tool = "Skill" if profile == "mycodeagent" else "skill_load"
    body = f"Use $other. /skill:other\n{tool}({call})\n"
    write_skill(root, "review", f"---\nname: review\ndescription: x\n---\n{body}")
    write_skill(root, "other", "---\nname: other\ndescription: x\n---\nthe body of the other\n")
    session = machine.shelf(profile).session()
    assert "the body of the other" not in session.call(tool, {"name": "review"}).text
    assert session.active == ("review",)
