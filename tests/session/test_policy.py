"""The policy: what may be done with which skill, who is asked, and what is remembered of the answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from support.policies import BROKEN_RULES, CASES, DENY_DEPLOY, Case, prepare, put
from support.trees import Machine, write_skill

from skillshelf import ConfigurationError, Decision, PermissionDenied, Policy, Session
from skillshelf.config.permission_rules import rule_to_dict
from skillshelf.journal.events import PermissionDecided

# The table ----------------------------------------------------------------------------------------


@pytest.mark.req("C-87", "C-88", "C-89", "C-90", "C-92", "C-120", "K-33", "K-34", "K-35", "K-36", "S-124")
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_question_to_the_policy_has_one_answer(machine: Machine, case: Case) -> None:
    folders = prepare(machine)
    machine.configure(case.user.replace("{repo}", str(machine.repo)))
    (machine.repo / "skillshelf.toml").write_text(case.project.replace("{repo}", str(machine.repo)))
    session = machine.shelf(trust="ask").session(case.policy)
    for name in case.active:
        session.call("skill_load", {"name": name})

    given = dict(case.arguments)
    for place, folder in folders.items():
        given = {key: text.replace(f"{{{place}}}", folder) for key, text in given.items()}
    decision = session.decide(case.tool, given)

    assert decision.verdict == case.verdict, decision
    assert decision.reason
    if case.rule:
        assert decision.rule == case.rule


def test_the_table_is_as_long_as_it_should_be() -> None:
    assert len(CASES) >= 60
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.req("C-88")
@pytest.mark.parametrize("kind", ["allow", "deny"])
@pytest.mark.parametrize(("entry", "word"), BROKEN_RULES, ids=[repr(entry) for entry, _ in BROKEN_RULES])
def test_a_rule_that_cannot_be_understood_is_an_error_that_names_it(
    machine: Machine, kind: str, entry: Any, word: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        machine.shelf().session({kind: [entry]})

    assert word in str(caught.value)
    assert f"`{kind}`" in str(caught.value)


@pytest.mark.parametrize(("entry", "word"), [rule for rule in BROKEN_RULES if isinstance(rule[0], dict)])
def test_in_a_file_the_error_names_file_line_and_key(machine: Machine, entry: Any, word: str) -> None:
    table = ", ".join(f"{key} = {json.dumps(value)}" for key, value in entry.items())
    path = machine.configure(f"\n\npermissions.deny = [{{ {table} }}]\n")

    with pytest.raises(ConfigurationError) as caught:
        machine.shelf()

    assert str(caught.value).startswith(f"{path}, line 3: `permissions.deny` ")
    assert word in str(caught.value)


@pytest.mark.parametrize(
    "policy",
    [
        "yolo",
        {"name": "yolo"},
        {"alow": []},
        {"allow": "skill_load"},
        {"deny": {"tool": "skill_load"}},
        {"grant_from_skills": "deploy"},
        {"grant_from_skills": [5]},
        {"run_network": "yes"},
        {"run_unsandboxed": 1},
        Policy(deny=({"tool": "skill_load", "skill_name": "A/B"},)),  # type: ignore[arg-type]
    ],
)
def test_a_policy_that_cannot_be_understood_is_an_error(machine: Machine, policy: Any) -> None:
    with pytest.raises(ConfigurationError):
        machine.shelf().session(policy)


# Every way to a skill -----------------------------------------------------------------------------

WAYS: dict[str, Callable[[Session], Any]] = {
    "call by name": lambda session: session.call("skill_load", {"name": "deploy"}).error,
    "call by path": lambda session: session.call("skill_load", {"path": session.skills[0].path}).error,
    "call by another's name": lambda s: s.call("skill_load", {"name": "review", "path": s.skills[0].path}).error,
    "read": lambda session: session.call("skill_read", {"uri": "skill://deploy/scripts/hello.sh"}).error,
    "read of the file itself": lambda session: session.call("skill_read", {"uri": "skill://deploy"}).error,
    "run": lambda session: session.call("skill_run", {"name": "deploy", "script": "hello.sh"}).error,
    "command": lambda session: session.command("/skill:deploy"),
    "activation": lambda session: session.activate("deploy"),
    "sub-agent": lambda session: session.child(["deploy"]),
}


@pytest.mark.req("K-03", "C-89", "S-122")
@pytest.mark.parametrize("way", WAYS)
def test_a_denied_skill_is_denied_by_every_way(machine: Machine, way: str) -> None:
    prepare(machine)
    events: list[Any] = []
    session = machine.shelf().session(DENY_DEPLOY, confirm=lambda *_: True, on_event=events.append)

    try:
        found = WAYS[way](session)
    except PermissionDenied as error:
        found = error

    assert "denied" in str(found) or isinstance(found, PermissionDenied)
    (told,) = [event for event in events if isinstance(event, PermissionDecided)]
    assert (told.name, told.verdict, told.rule, told.by) == (
        "deploy",
        "deny",
        "permissions.deny: skill_load deploy",
        "rule",
    )
    assert session.active == ()


def test_a_denied_skill_is_neither_mentioned_nor_preloaded_nor_told_of(machine: Machine) -> None:
    prepare(machine)
    shelf = machine.shelf()
    session = shelf.session(DENY_DEPLOY)

    mentions = session.resolve_mentions("use $deploy and $review")

    assert mentions.skills == ("review",)
    assert "deploy" not in session.system_prompt()
    assert session.call("skill_search", {"query": "deploy"}).data["results"] == []
    with pytest.raises(PermissionDenied):
        shelf.session(DENY_DEPLOY, preload=["deploy"])


@pytest.mark.parametrize(
    ("profile", "tool", "arguments"),
    [
        ("mycodeagent", "Skill", {"name": "deploy"}),
        ("swiftagent", "activate_skill", {"skillName": "deploy"}),
        ("omp", "read", {"path": "skill://deploy"}),
    ],
)
@pytest.mark.parametrize("named", ["its own name", "the common name"])
def test_a_rule_may_name_a_tool_as_its_profile_does(
    machine: Machine, profile: str, tool: str, arguments: dict[str, str], named: str
) -> None:
    root = {"mycodeagent": "skills", "swiftagent": ".agent/skills", "omp": ".omp/skills"}[profile]
    put(machine.repo / root, "deploy")
    rule = {"tool": tool if named == "its own name" else "skill_load", "skill_name": "deploy"}

    denied = machine.shelf(profile).session({"deny": [rule]}).call(tool, arguments)

    assert machine.shelf(profile).session().call(tool, arguments).ok
    assert denied.error is not None
    assert denied.error.code == "denied"


def test_a_held_back_skill_neither_shadows_one_of_the_user_nor_has_its_rule(machine: Machine) -> None:
    prepare(machine)
    put(machine.repo / ".agents/skills", "deploy")
    session = machine.shelf(trust="ask").session({"allow": [{"tool": "skill_run", "skill_name": "deploy"}]})

    loaded = session.call("skill_load", {"name": "deploy"})

    assert loaded.data["path"].startswith(str(machine.home))
    path = f"{machine.repo}/.agents/skills/deploy"
    assert session.decide("skill_load", {"path": path}).verdict == "deny"


@pytest.mark.parametrize("profile", ["standard", "swiftagent", "mycodeagent"])
@pytest.mark.parametrize("tool", ["skill_load", "activate_skill", "Skill"])
def test_a_load_that_is_denied_by_the_name_of_another_profile_is_denied_here_too(
    machine: Machine, tool: str, profile: str
) -> None:
    for root in (".agents/skills", ".agent/skills", "skills"):
        put(machine.repo / root, "deploy")
    called, key = {"swiftagent": ("activate_skill", "skillName"), "mycodeagent": ("Skill", "name")}.get(
        profile, ("skill_load", "name")
    )
    session = machine.shelf(profile).session({"deny": [{"tool": tool, "skill_name": "deploy"}]})

    decision = session.decide(called, {key: "deploy"})

    assert decision == Decision("deny", f"permissions.deny: {tool} deploy", "a rule denies it")


@pytest.mark.parametrize("folder", ["~/.agents/skills/deploy", "{home}/.agents/skills/deploy/SKILL.md"])
def test_a_project_cannot_take_the_name_of_a_skill_with_a_rule_by_disabling_it(machine: Machine, folder: str) -> None:
    prepare(machine)
    put(machine.repo / ".agents/skills", "deploy")
    disabled = folder.format(home=machine.home)
    (machine.repo / "skillshelf.toml").write_text(f"skills.disabled = ['{disabled}']\n")
    rules = [{"tool": tool, "skill_name": "deploy"} for tool in ("skill_load", "skill_run")]
    session = machine.shelf(trust="ask").session({"allow": rules})

    loaded = session.call("skill_load", {"name": "deploy"})

    # The word of a stranger does not count for a skill of the user, so name and rules stay where they were.
    assert loaded.data["path"] == f"{machine.home}/.agents/skills/deploy/SKILL.md"
    machine.configure(f"skills.disabled = ['{disabled}']\n")
    session = machine.shelf(trust="ask").session({"allow": rules})
    loaded = session.call("skill_load", {"name": "deploy"})
    ran = session.call("skill_run", {"name": "deploy", "script": "hello.sh"})
    assert [result.error and result.error.message for result in (loaded, ran)] == ["deploy is disabled"] * 2


@pytest.mark.parametrize(
    ("settings", "more", "reason"),
    [
        ("skills.disabled = ['deploy']\n", "", "is disabled"),
        ("", "disable-model-invocation: true\n", "may only be invoked by the user"),
    ],
    ids=["disabled", "closed to models"],
)
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("skill_load", {"name": "deploy"}),
        ("skill_read", {"uri": "skill://deploy/scripts/hello.sh"}),
        ("skill_run", {"name": "deploy", "script": "hello.sh"}),
    ],
)
def test_what_is_decided_for_a_host_is_what_a_call_is_told(
    machine: Machine, settings: str, more: str, reason: str, tool: str, arguments: dict[str, str]
) -> None:
    put(machine.home / ".agents/skills", "deploy", more)
    machine.configure(settings)
    session = machine.shelf().session({"allow": [{"tool": tool, "skill_name": "deploy"}]})

    called = session.call(tool, arguments)

    assert session.decide(tool, arguments) == Decision("deny", None, reason)
    assert called.error is not None
    assert (called.error.code, called.error.message) == ("denied", f"deploy {reason}")


# Asking -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "ok", "by"),
    [
        (True, True, "user"),
        ("remember", True, "remembered"),
        (False, False, "user"),
        (None, False, "user"),
        ("yes", False, "user"),
        (1, False, "user"),
    ],
)
def test_only_a_plain_yes_is_a_yes(machine: Machine, answer: Any, ok: bool, by: str) -> None:
    prepare(machine)
    asked: list[tuple[str, str, str]] = []
    events: list[Any] = []

    def confirm(*question: str) -> Any:
        asked.append(question)  # type: ignore[arg-type]
        return answer

    session = machine.shelf(trust="ask").session(confirm=confirm, on_event=events.append)
    result = session.call("skill_load", {"name": "stranger"})

    assert result.ok is ok
    assert asked == [("skill_load", "stranger", "the skill belongs to a project that is not trusted")]
    (told,) = [event for event in events if isinstance(event, PermissionDecided)]
    assert (told.verdict, told.by) == ("allow" if ok else "deny", by)


def test_with_nobody_to_ask_confirm_means_no(machine: Machine) -> None:
    prepare(machine)
    events: list[Any] = []
    session = machine.shelf(trust="ask").session(on_event=events.append)

    result = session.call("skill_load", {"name": "stranger"})

    assert result.error is not None
    assert result.error.code == "denied"
    assert result.error.message.endswith("To allow all skills of this project: skillshelf trust, in its folder")
    assert str(machine.repo) not in result.text
    assert [event.by for event in events if isinstance(event, PermissionDecided)] == ["nobody"]


def approvals(machine: Machine) -> list[dict[str, Any]]:
    """The approvals on disk."""
    path = machine.home / ".local/state/skillshelf/approvals.json"
    found: list[dict[str, Any]] = json.loads(path.read_text())["approvals"] if path.exists() else []
    return found


@pytest.mark.req("C-91")
def test_codelia_stores_the_exact_rule_once_besides_the_approval_and_keeps_the_comments(machine: Machine) -> None:
    prepare(machine)
    path = machine.configure("# Mine.\n[skills]\nignored = ['x']  # not ready\n")
    shelf = machine.shelf("codelia", trust="ask")
    for _ in range(2):
        shelf.session(confirm=lambda *_: "remember").call("skill_load", {"name": "stranger"})

    text = path.read_text()
    assert text.startswith("# Mine.\n[skills]\nignored = ['x']  # not ready\n")
    assert text.count("stranger") == 1
    later = machine.shelf("codelia", trust="ask")
    assert [rule_to_dict(rule) for rule in later.settings.allow] == [{"tool": "skill_load", "skill_name": "stranger"}]
    assert later.session().call("skill_load", {"name": "stranger"}).ok
    assert [one["name"] for one in approvals(machine)] == ["stranger"]


@pytest.mark.parametrize(
    "before", ["[[permissions.allow]]\ntool = 'Grep'\n", "permissions.allow = [{ tool = 'Grep' }]\n"]
)
def test_a_remembered_rule_is_added_to_those_that_are_there(machine: Machine, before: str) -> None:
    prepare(machine)
    machine.configure(before)
    shelf = machine.shelf("codelia", trust="ask")
    shelf.session(confirm=lambda *_: "remember").call("skill_load", {"name": "stranger"})

    assert [rule.tool for rule in machine.shelf().settings.allow] == ["Grep", "skill_load"]


def test_what_cannot_be_remembered_is_said_and_holds_for_the_session(machine: Machine) -> None:
    folder = put(machine.repo / ".agents/skills", "linking").parent
    (folder / "link").symlink_to("SKILL.md")
    events: list[Any] = []
    questions: list[str] = []

    def confirm(tool: str, name: str, reason: str) -> Any:
        questions.append(reason)
        return "remember"

    session = machine.shelf(trust="ask").session(confirm=confirm, on_event=events.append)
    loads = [session.call("skill_load", {"name": "linking"}).ok for _ in range(2)]
    (folder / "more.md").write_text("new")
    loads.append(session.call("skill_load", {"name": "linking"}).ok)

    assert loads == [True, True, True]
    assert (
        questions
        == ["the skill belongs to a project that is not trusted (the answer cannot be remembered: it holds a link)"] * 2
    )
    assert [event.kind for event in events if type(event).__name__ == "SkillWarning"][-1] == "not-remembered"
    assert (approvals(machine), (machine.home / ".config").exists()) == ([], False)


def test_a_host_that_fails_to_ask_has_decided_nothing_and_the_call_is_denied(machine: Machine) -> None:
    prepare(machine)
    events: list[Any] = []

    def confirm(*_: str) -> bool:
        raise RuntimeError("the window is gone")

    session = machine.shelf(trust="ask").session(confirm=confirm, on_event=events.append)
    result = session.call("skill_load", {"name": "stranger"})
    with pytest.raises(PermissionDenied) as caught:
        session.activate("stranger")

    assert result.error is not None
    assert result.error.code == "denied"
    assert isinstance(caught.value.__cause__, RuntimeError)
    (told, _) = [event for event in events if isinstance(event, PermissionDecided)]
    assert (told.verdict, told.by) == ("deny", "failed")
    warnings = [event.detail for event in events if type(event).__name__ == "SkillWarning"]
    assert warnings == ["RuntimeError: the window is gone"] * 2


@pytest.mark.req("C-91")
def test_a_rule_for_a_name_is_not_for_a_stranger_who_took_it_from_another_skill(machine: Machine) -> None:
    write_skill(machine.home / ".omp" / "agent" / "skills", "deploy", "---\nname: deploy\ndescription: Mine.\n---\n")
    write_skill(machine.repo / ".omp" / "skills", "deploy", "---\nname: deploy\ndescription: Theirs.\n---\nStolen.\n")
    shelf = machine.shelf("omp", trust="ask")
    session = shelf.session({"allow": [{"tool": "skill_read", "skill_name": "deploy"}]})

    result = session.call("read", {"path": "skill://deploy"})
    theirs = session.decide("read", {"path": f"{machine.repo}/.omp/skills/deploy"})

    assert [skill.description for skill in shelf.catalog.skills] == ["Mine."]
    assert result.ok
    assert "Stolen" not in result.text
    assert theirs.verdict != "allow"
