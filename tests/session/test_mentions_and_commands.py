"""Skills named by a user: `$name` in a text, `/skill:name` as a command, and what the author allows."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.scenario import SYSTEMS
from support.trees import Machine, write_skill

from skillshelf import Mentions, Session, ToolResult

BODY = "This line is in the body only."
MENTIONING = ["standard", "strict", "codelia", "mycodeagent"]
COMMANDING = ["standard", "strict", "rip", "omp"]
FORMS_OF_COMMANDS = ["standard", "omp"]
"""One profile for each form in which a command gives its text."""


def put(machine: Machine, name: str, profile: str = "standard", *, more: str = "", body: str = BODY) -> Path:
    """Write a skill where the profile looks in a project."""
    text = f"---\nname: {name}\ndescription: Does {name} things.\n{more}---\n{body}\n"
    return write_skill(machine.repo / SYSTEMS[profile].root, name, text)


def ran(session: Session, text: str) -> ToolResult:
    """The result of a text that is a command."""
    result = session.command(text)
    assert result is not None
    return result


# Mentions -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", MENTIONING)
def test_a_mention_is_listed_for_the_model_below_the_users_text(machine: Machine, profile: str) -> None:
    for name in ("deploy", "release-notes"):
        put(machine, name, profile)

    mentions = machine.shelf(profile).session().resolve_mentions("First $release-notes, then $deploy and $HOME.")

    assert mentions == Mentions(
        text="First $release-notes, then $deploy and $HOME.\n\n"
        "<skill_mentions>\n- release-notes\n- deploy\n</skill_mentions>",
        skills=("release-notes", "deploy"),
        unknown=(),
    )


@pytest.mark.parametrize("profile", [profile for profile in SYSTEMS if profile not in MENTIONING])
def test_other_systems_have_no_mentions(machine: Machine, profile: str) -> None:
    put(machine, "deploy", profile)
    mentions = machine.shelf(profile).session().resolve_mentions("use $deploy and $deplyo")
    assert mentions == Mentions("use $deploy and $deplyo", (), ())


@pytest.mark.parametrize(
    ("text", "skills"),
    [
        ("$deploy", ["deploy"]),
        ("use $deploy.", ["deploy"]),
        ("($deploy)", ["deploy"]),
        ('"$deploy", please', ["deploy"]),
        ("$deploy\n$release-notes", ["deploy", "release-notes"]),
        ("$release-notes $deploy $release-notes", ["release-notes", "deploy"]),
        ("**$deploy**: go", ["deploy"]),
        ("$deploy's text", ["deploy"]),
        ("costs $5, use $deploy", ["deploy"]),
        ("$x1", ["x1"]),
        ("次に$deployを使って", ["deploy"]),
        ("сделай $deploy，пожалуйста", ["deploy"]),
    ],
)
def test_a_mention_is_a_dollar_and_the_name_of_a_skill(machine: Machine, text: str, skills: list[str]) -> None:
    for name in ("deploy", "release-notes", "x1"):
        put(machine, name)
    assert machine.shelf().session().resolve_mentions(text).skills == tuple(skills)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "$",
        "deploy",
        "$ deploy",
        "$HOME",
        "$PATH:$HOME",
        "$100",
        "$1.50",
        "US$100",
        "${deploy}",
        "$(deploy)",
        "\\$deploy",
        "a$deploy",
        "5$deploy",
        "_$deploy",
        "$$deploy",
        "$Deploy",
        "$DEPLOY",
        "$-deploy",
        "$deploy_all",
        "$home",
        "$ARGUMENTS",
    ],
)
def test_what_is_no_mention_leaves_the_text_as_it_is(machine: Machine, text: str) -> None:
    put(machine, "deploy")
    assert machine.shelf().session().resolve_mentions(text) == Mentions(text, (), ())


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ("$deplyo", ["deplyo"]),
        ("$deploys", ["deploys"]),
        ("$deploy-all", ["deploy-all"]),
        ("$relese-notes, $deplyo, $relese-notes", ["relese-notes", "deplyo"]),
        ("$deplyo costs $100 in $home", ["deplyo"]),
    ],
)
def test_a_typo_is_told_apart_from_what_is_no_skill_at_all(machine: Machine, text: str, unknown: list[str]) -> None:
    for name in ("deploy", "release-notes"):
        put(machine, name)
    assert machine.shelf().session().resolve_mentions(text) == Mentions(text, (), tuple(unknown))


def test_a_skill_that_is_switched_off_cannot_be_mentioned(machine: Machine) -> None:
    put(machine, "deploy")
    machine.configure('skills.disabled = ["deploy"]\n')
    assert machine.shelf().session().resolve_mentions("use $deploy").skills == ()


@pytest.mark.parametrize(
    "text",
    ["$a" * 100_000, "$" * 1_000_000, "$a-" * 100_000, "\0$deploy\0", "\ud800$deploy"],
    ids=lambda text: ascii(text[:9]),
)
def test_any_text_may_hold_mentions(machine: Machine, text: str) -> None:
    put(machine, "deploy")
    assert machine.shelf().session().resolve_mentions(text).skills == (("deploy",) if "deploy" in text else ())


# Commands -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", [profile for profile in SYSTEMS if profile not in COMMANDING])
def test_other_systems_have_no_commands(machine: Machine, profile: str) -> None:
    put(machine, "deploy", profile)
    session = machine.shelf(profile).session()
    assert (session.command("/skill:deploy"), session.commands()) == (None, [])


@pytest.mark.parametrize(
    "text", ["", "deploy", "/deploy", "/skill", "/skill deploy", "/skills:deploy", "/SKILL:deploy", " /skill:deploy"]
)
def test_other_text_is_no_command(machine: Machine, text: str) -> None:
    put(machine, "deploy")
    assert machine.shelf().session().command(text) is None


def test_a_command_gives_what_a_load_gives(machine: Machine) -> None:
    put(machine, "deploy", body="Deploy $ARGUMENTS now, $ARGUMENTS.")
    shelf = machine.shelf()

    command = ran(shelf.session(), "/skill:deploy v2.1 --dry-run")
    call = shelf.session().call("skill_load", {"name": "deploy", "args": "v2.1 --dry-run"})

    assert command == call
    assert "Deploy v2.1 --dry-run now, v2.1 --dry-run." in command.text


@pytest.mark.req("K-38")
def test_a_command_appends_the_users_words_to_the_skill(machine: Machine) -> None:
    path = put(machine, "deploy", "rip", body="Deploy $ARGUMENTS.")
    session = machine.shelf("rip").session()

    plain, with_words = ran(session, "/skill:deploy"), ran(session, "/skill:deploy v2.1 to $HOME  and back ")

    text = path.read_text().rstrip()
    assert f"{text}\n<skill_resources" in plain.text
    assert f"{text}\n\nARGUMENTS: v2.1 to $HOME  and back\n<skill_resources" in with_words.text


@pytest.mark.req("O-44", "O-45", "O-46", "O-47", "O-48")
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_a_command_injects_the_body_as_it_is_on_disk_with_its_path_and_the_users_words(
    machine: Machine, ending: str
) -> None:
    path = put(machine, "deploy", "omp", body="The first text.")
    session = machine.shelf("omp").session()
    prompt = session.system_prompt()
    text = "---\nname: deploy\ndescription: d\n---\n\n# Deploy\n\nThe second text.\n\n"
    path.write_bytes(text.replace("\n", ending).encode())

    plain, with_words = ran(session, "/skill:deploy"), ran(session, "/skill:deploy v2.1 --dry-run")

    message = f"# Deploy{ending}{ending}The second text.\n\n---\n\nSkill: {path}"
    assert plain.text == message
    assert with_words.text == f"{message}\nUser: v2.1 --dry-run"
    assert session.system_prompt() == prompt


@pytest.mark.parametrize("profile", FORMS_OF_COMMANDS)
@pytest.mark.parametrize("separator", [" ", "  ", "\t", "\n", "\n\n"], ids=ascii)
def test_any_blank_ends_the_name(machine: Machine, profile: str, separator: str) -> None:
    put(machine, "deploy", profile)
    result = ran(machine.shelf(profile).session(), f"/skill:deploy{separator}two words\nand a line")
    assert "two words\nand a line" in result.text


@pytest.mark.parametrize("profile", FORMS_OF_COMMANDS)
def test_a_command_for_an_unknown_skill_is_an_error_with_the_names_it_may_have_meant(
    machine: Machine, profile: str
) -> None:
    put(machine, "deploy", profile)
    session = machine.shelf(profile).session()

    error = ran(session, "/skill:deplyo now").error

    assert error is not None
    assert (error.code, error.candidates) == ("not_found", ("deploy",))
    for text in ("/skill:", "/skill: ", "/skill:\0", "/skill:../deploy", "/skill:\ud800"):
        result = ran(session, text)
        assert result.error is not None
        assert result.error.code == "not_found"


@pytest.mark.req("O-03", "O-43")
@pytest.mark.parametrize("spelling", ["skills.commands", "skills.enableSkillCommands"])
def test_there_is_one_command_for_each_skill_unless_the_user_wants_none(machine: Machine, spelling: str) -> None:
    for name in ("review", "deploy"):
        put(machine, name, "omp")
    machine.configure(f"{spelling} = true\n")
    session = machine.shelf("omp").session()
    assert session.commands() == ["/skill:deploy", "/skill:review"]
    assert ran(session, "/skill:deploy").ok

    machine.configure(f"{spelling} = false\n")
    session = machine.shelf("omp").session()
    assert (session.commands(), session.command("/skill:deploy")) == ([], None)
    assert session.call("read", {"path": "skill://deploy"}).ok


@pytest.mark.req("O-63")
@pytest.mark.parametrize("profile", COMMANDING)
def test_a_command_changes_nothing_about_what_is_found(machine: Machine, profile: str) -> None:
    for name in ("deploy", "review"):
        put(machine, name, profile)
    shelf = machine.shelf(profile)
    session = shelf.session()
    before = (shelf.catalog, session.system_prompt(), session.tools(), session.commands())

    assert ran(session, "/skill:deploy").ok

    assert (shelf.catalog, session.system_prompt(), session.tools(), session.commands()) == before
    assert shelf.refresh() is False


# What the author allows ---------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["true", "True", "'true'"])
@pytest.mark.parametrize("profile", ["standard", "rip"])
def test_a_skill_for_users_only_is_kept_from_the_model_until_a_user_asks(
    machine: Machine, profile: str, value: str
) -> None:
    put(machine, "deploy", profile, more=f"disable-model-invocation: {value}\n")
    put(machine, "review", profile)
    shelf = machine.shelf(profile)
    session = shelf.session()

    denied = [
        session.call("skill_load", {"name": "deploy"}),
        session.call("skill_read", {"uri": "skill://deploy"}),
    ]

    assert "Does deploy things." not in session.system_prompt()
    assert "'deploy'" not in repr(session.tools())
    assert shelf.search("deploy", model=True).results == ()
    assert [result.error and result.error.code for result in denied] == ["denied", "denied"]
    assert session.commands() == ["/skill:deploy", "/skill:review"]
    assert BODY in ran(session, "/skill:deploy").text


def test_a_mention_by_the_user_lets_the_model_load_a_skill_for_users_only(machine: Machine) -> None:
    put(machine, "deploy", more="disable-model-invocation: true\n")
    session = machine.shelf().session()
    assert not session.call("skill_load", {"name": "deploy"}).ok

    session.resolve_mentions("please use $deploy")

    assert BODY in session.call("skill_load", {"name": "deploy"}).text


@pytest.mark.parametrize("value", ["false", "False", "'false'"])
@pytest.mark.parametrize("profile", ["standard", "rip"])
def test_a_skill_for_models_only_has_no_command(machine: Machine, profile: str, value: str) -> None:
    put(machine, "deploy", profile, more=f"user-invocable: {value}\n")
    session = machine.shelf(profile).session()

    refused = ran(session, "/skill:deploy")

    assert refused.error is not None
    assert refused.error.code == "denied"
    assert session.commands() == []
    assert "<name>deploy</name>" in session.system_prompt()
    assert BODY in session.call("skill_load", {"name": "deploy"}).text


@pytest.mark.parametrize(("invocable", "hidden"), [("true", "false"), ("maybe", "0")])
def test_other_values_hide_nothing(machine: Machine, invocable: str, hidden: str) -> None:
    put(machine, "deploy", more=f"user-invocable: {invocable}\ndisable-model-invocation: {hidden}\n")
    session = machine.shelf().session()
    assert session.commands() == ["/skill:deploy"]
    assert session.call("skill_load", {"name": "deploy"}).ok


def test_a_skill_of_a_stranger_needs_a_yes_also_from_the_user_who_named_it(machine: Machine) -> None:
    put(machine, "deploy")
    asked: list[tuple[str, str]] = []

    def confirm(tool: str, name: str, reason: str) -> bool:
        asked.append((tool, name))
        return len(asked) > 1

    session = machine.shelf(trust="ask").session(confirm=confirm)

    results = [ran(session, "/skill:deploy"), ran(session, "/skill:deploy")]
    assert [result.ok for result in results] == [False, True]
    assert asked == [("skill_load", "deploy")] * 2
    assert not ran(machine.shelf(trust="ask").session(), "/skill:deploy").ok


# Skills are passive -------------------------------------------------------------------------------


@pytest.mark.req("O-64", "O-65")
def test_a_skill_is_text_to_read_and_never_a_tool_or_a_hook(machine: Machine) -> None:
    trace = machine.base / "trace"
    hooks = f"hooks:\n  PreToolUse:\n  - command: touch {trace}\n"
    tools = f"tools:\n- name: deploy_now\n  command: touch {trace}\n"
    path = put(machine, "deploy", "omp", more=hooks + tools, body=f"!`touch {trace}`\n$(touch {trace})")
    script = path.parent / "scripts" / "run.sh"
    script.parent.mkdir()
    script.write_text(f"#!/bin/sh\ntouch {trace}\n")
    script.chmod(0o755)
    session = machine.shelf("omp").session()

    read = session.call("read", {"path": "skill://deploy/scripts/run.sh"})
    whole = session.call("read", {"path": "skill://deploy"})
    command = ran(session, "/skill:deploy now")

    assert [tool.name for tool in session.tools()] == ["read"]
    assert session.call("deploy_now", {}).error is not None
    assert (read.text, whole.text) == (script.read_text(), path.read_text())
    assert f"!`touch {trace}`\n$(touch {trace})" in command.text
    assert not os.path.lexists(trace)
