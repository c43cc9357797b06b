"""Frontmatter fields that ask for something: `allowed-tools` narrows, and overrides are only proposed."""

from __future__ import annotations

from typing import Any

import pytest
from support.policies import GIT_ONLY, prepare, put
from support.trees import Machine

from skillshelf import ConfigurationError, Decision

# allowed-tools ------------------------------------------------------------------------------------


@pytest.mark.req("K-34", "K-35")
def test_a_window_opens_with_a_load_and_closes_with_the_skill(machine: Machine) -> None:
    prepare(machine)
    session = machine.shelf().session()
    before = (session.effective_allowed_tools, session.decide("Write").verdict)
    session.call("skill_load", {"name": "deploy"})
    during = (session.effective_allowed_tools, session.decide("Write").verdict)
    session.deactivate("deploy")

    assert before == (None, "confirm")
    assert during == (("Bash(git:*)", "Read"), "deny")
    assert (session.effective_allowed_tools, session.decide("Write").verdict) == before


@pytest.mark.req("K-34")
@pytest.mark.parametrize(
    ("one", "other", "effective"),
    [
        ("Bash Read", "Bash(git:*) Write", ("Bash(git:*)",)),
        ("Bash(git:*)", "Bash(git log:*)", ("Bash(git log:*)",)),
        ("Bash(git:*)", "Bash(git status)", ("Bash(git status)",)),
        ("Bash(git:*)", "Bash(gitx:*)", ()),
        ("Bash(git:*)", "Bash(git; rm:*)", ()),
        ("Read", "Write", ()),
        ("Read, Grep", "Grep Read", ("Read", "Grep")),
        ("Bash(*)", "Bash(ls)", ("Bash(ls)",)),
    ],
)
def test_two_active_skills_leave_what_both_allow(
    machine: Machine, one: str, other: str, effective: tuple[str, ...]
) -> None:
    put(machine.repo / ".agents/skills", "one", f"allowed-tools: '{one}'\n")
    put(machine.repo / ".agents/skills", "other", f"allowed-tools: '{other}'\n")
    session = machine.shelf().session()
    for name in ("one", "other"):
        session.activate(name)

    assert session.effective_allowed_tools == effective


@pytest.mark.parametrize(
    "value",
    [
        *("Ba*", "Bash(git * log)", "**", "Read(src/**)", "Bash (npm *)", "Bash [npm *]"),
        *("Bash \uff08npm *\uff09", "Bash \u200b(npm *)", "Bash npm:*", "Bash((npm *))", "Bash(npm) (x)", "Bash )"),
        *("Bash(*) (npm:*)", 'Bash "npm * x"', "Bash {npm * x}", "Bash \u201cnpm * x\u201d"),
    ],
)
def test_an_entry_that_is_no_pattern_allows_nothing_and_is_said(machine: Machine, value: str) -> None:
    path = put(machine.repo / ".agents/skills", "one", f"allowed-tools: ['{value}', Read]\n")
    events: list[Any] = []
    session = machine.shelf().session(on_event=events.append)
    result = session.call("skill_load", {"name": "one"})
    again = session.call("skill_load", {"name": "one"})

    told = f"not understood in allowed-tools, so it allows nothing: {value}"
    assert session.effective_allowed_tools == ("Read",)
    assert [warning["message"] for warning in result.data["warnings"]] == [told]
    assert again.data["warnings"] == result.data["warnings"]
    assert [(warning.path, warning.message) for warning in session.warnings] == [(str(path), told)]
    assert [event.warnings[0]["message"] for event in events if hasattr(event, "frontmatter")] == [told]


@pytest.mark.parametrize(
    ("value", "effective"),
    [
        ("Bash\u00a0(npm *)", ()),
        ("Bash\u3000( npm )", ()),
        ("Bash, (npm:*)", ()),
        ("Bash(npm, Read", ()),
        ("Bash: npm *", ()),
        ("* (npm)", ()),
        ("Read *", ()),
        ("Read, *", ("Read", "*")),
        ("Read mcp:shop:buy Grep", ("Read", "Grep")),
        ("Read, 5x, Grep", ("Read", "Grep")),
    ],
)
def test_what_stands_around_an_entry_decides_whether_it_is_one(
    machine: Machine, value: str, effective: tuple[str, ...]
) -> None:
    put(machine.repo / ".agents/skills", "one", f"allowed-tools: '{value}'\n")
    session = machine.shelf().session()
    session.activate("one")
    assert session.effective_allowed_tools == effective


def test_what_the_policy_denies_is_not_among_the_effective_tools(machine: Machine) -> None:
    prepare(machine)
    session = machine.shelf().session({"deny": [{"tool": "Bash"}]})
    session.activate("deploy")
    assert session.effective_allowed_tools == ("Read",)


@pytest.mark.parametrize(
    "pattern",
    [
        "Bash(",
        "Bash)",
        "Ba*",
        "(git)",
        "Bash(a)(b)",
        "Bash(:*)",
        "Bash( *)",
        "Bash(g*t:*)",
        "Bash(*git)",
        "*(git)",
        "__*x",
    ],
)
def test_a_pattern_that_is_none_allows_nothing(machine: Machine, pattern: str) -> None:
    put(machine.repo / ".agents/skills", "odd", f"allowed-tools: '{pattern}'\n")
    session = machine.shelf().session({"grant_from_skills": ["odd"]})
    session.activate("odd")

    for command in ("git status", "git *", "git", ""):
        assert session.decide("Bash", {"command": command}).verdict == "deny"


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"command": ["git", "status"]},
        {"command": "git status", "cmd": "rm x"},
        {"script": "git status", "other": "rm"},
        {"command": None},
    ],
)
def test_a_call_whose_command_is_not_clear_is_covered_by_no_prefix(machine: Machine, arguments: dict[str, Any]) -> None:
    prepare(machine)
    session = machine.shelf().session({"grant_from_skills": ["deploy"]})
    session.activate("deploy")
    assert session.decide("Bash", arguments).verdict == "deny"
    assert session.decide("Read", arguments).verdict == "allow"


@pytest.mark.req("S-123", "S-125", "M-75")
@pytest.mark.parametrize(
    ("profile", "root", "effective"),
    [("swiftagent", ".agent/skills", ("Bash(git:*)", "Read")), ("mycodeagent", "skills", None)],
)
def test_where_allowed_tools_is_only_advice_it_changes_no_decision(
    machine: Machine, profile: str, root: str, effective: tuple[str, ...] | None
) -> None:
    put(machine.repo / root, "deploy", GIT_ONLY)
    session = machine.shelf(profile).session({"grant_from_skills": ["deploy"]})
    before = session.decide("Write")
    session.activate("deploy")

    assert session.effective_allowed_tools == effective
    assert session.decide("Write") == before
    assert session.decide("Bash", {"command": "git status"}).verdict == "confirm"


@pytest.mark.req("K-10", "K-36", "S-125")
def test_a_skill_widens_only_by_the_policys_word_and_that_leaves_an_event(machine: Machine) -> None:
    prepare(machine)
    told: dict[bool, list[Any]] = {True: [], False: []}
    for granted in (True, False):
        policy = {"grant_from_skills": ["deploy"]} if granted else None
        session = machine.shelf().session(policy, on_event=told[granted].append)
        session.call("skill_load", {"name": "deploy"})
        verdict = session.decide("Bash", {"command": "git log"}).verdict
        assert verdict == ("allow" if granted else "confirm")

    (widened,) = [event for event in told[True] if type(event).__name__ == "PolicyWidened"]
    assert (widened.name, widened.tools) == ("deploy", ["Bash(git:*)", "Read"])
    assert not [event for event in told[False] if type(event).__name__ == "PolicyWidened"]


@pytest.mark.req("K-37")
def test_full_auto_must_be_named_and_leaves_an_event(machine: Machine) -> None:
    told: list[Any] = []
    quiet: list[Any] = []
    machine.shelf().session("full-auto", on_event=told.append)
    machine.shelf().session(on_event=quiet.append)

    assert [type(event).__name__ for event in told[:2]] == ["SessionStarted", "PolicyWidened"]
    assert (told[0].policy["name"], told[1].rule) == ("full-auto", "full-auto")
    assert quiet[0].policy["name"] == "default"
    assert "PolicyWidened" not in [type(event).__name__ for event in quiet]


@pytest.mark.req("M-74")
def test_without_rules_nothing_stands_between_a_model_and_a_trusted_skill(machine: Machine) -> None:
    put(machine.repo / "skills", "deploy")
    session = machine.shelf("mycodeagent").session()
    assert session.decide("Skill", {"name": "deploy"}) == Decision(
        "allow", None, "the skill is trusted and no rule matches"
    )
    assert session.call("Skill", {"name": "deploy"}).ok


# Overrides ----------------------------------------------------------------------------------------


@pytest.mark.req("K-40", "K-41", "K-42", "K-43", "M-76")
@pytest.mark.parametrize(("rules", "verdict"), [("", "confirm"), ("allow", "allow"), ("deny", "deny")])
def test_overrides_are_proposals_that_the_policy_judges_and_nobody_follows(
    machine: Machine, rules: str, verdict: str
) -> None:
    more = "model: big\ntool-defaults:\n  Bash: {timeout: 5}\ncontext: fork\n"
    put(machine.repo / ".agents/skills", "deploy", more)
    events: list[Any] = []
    policy = {rules: [{"tool": "skill_override", "skill_name": "deploy"}]} if rules else None
    session = machine.shelf().session(policy, on_event=events.append)
    plain = machine.shelf().session()

    result = session.call("skill_load", {"name": "deploy"})

    wishes = [
        ("model", "model", "big"),
        ("tools", "tool-defaults", {"Bash": {"timeout": 5}}),
        ("context", "context", "fork"),
    ]
    proposed = [event for event in events if type(event).__name__ == "OverrideProposed"]
    assert [(event.kind, event.key, event.value, event.verdict) for event in proposed] == [
        (*wish, verdict) for wish in wishes
    ]
    reported = [] if verdict == "deny" else [(*wish, verdict) for wish in wishes]
    assert [(p.kind, p.key, p.value, p.verdict) for p in session.proposals] == reported
    assert result == plain.call("skill_load", {"name": "deploy"})
    assert session.decide("Bash") == plain.decide("Bash")


RUNS = {"allow": [{"tool": "skill_run", "skill_name": "other"}]}


@pytest.mark.req("K-34", "K-35")
@pytest.mark.parametrize(
    ("tools", "verdict"),
    [
        ("Read", "confirm"),
        ("Bash(git:*)", "confirm"),
        ("Bash", "allow"),
        ("Bash(scripts/hello.sh:*)", "allow"),
        ("skill_run", "allow"),
        ("skill_run(other:*)", "allow"),
        ("skill_run(third:*)", "confirm"),
    ],
)
def test_a_script_that_a_window_does_not_cover_is_asked_about(machine: Machine, tools: str, verdict: str) -> None:
    put(machine.home / ".agents/skills", "one", f"allowed-tools: '{tools}'\n")
    put(machine.home / ".agents/skills", "other")
    session = machine.shelf().session(RUNS)
    run = {"name": "other", "script": "scripts/hello.sh", "args": ["a"]}
    before = session.decide("skill_run", run).verdict
    session.call("skill_load", {"name": "one"})

    assert (before, session.decide("skill_run", run).verdict) == ("allow", verdict)
    assert session.decide("skill_load", {"name": "other"}).verdict == "allow"


@pytest.mark.req("K-34")
def test_nobody_to_ask_means_that_a_script_outside_the_window_does_not_run(machine: Machine) -> None:
    put(machine.home / ".agents/skills", "one", "allowed-tools: Read\n")
    put(machine.home / ".agents/skills", "other")
    events: list[Any] = []
    session = machine.shelf().session(RUNS, on_event=events.append)
    session.call("skill_load", {"name": "one"})
    result = session.call("skill_run", {"name": "other", "script": "hello.sh"})

    assert result.error is not None
    assert result.error.code == "denied"
    assert "allowed-tools of one" in result.error.message
    assert [(e.verdict, e.by) for e in events if type(e).__name__ == "PermissionDecided"][-1] == ("deny", "nobody")


@pytest.mark.req("K-34")
@pytest.mark.parametrize(
    ("pattern", "tool", "command", "covered"),
    [
        ("Bash(npm *)", "Bash", "npm install", True),
        ("Bash(npm *)", "Bash", "npm", True),
        ("Bash(npm *)", "Bash", "npmx install", False),
        ("Bash(npm *)", "Bash", "npm install; rm -rf x", False),
        ("Bash(npm *)", "Bash", "npm run a && b", False),
        ("Bash(go test*)", "Bash", "go test ./...", True),
        ("Bash(go test*)", "Bash", "go testx", True),
        ("Bash(go test*)", "Bash", "go vet", False),
        ("Bash(go test*)", "Bash", "go test | sh", False),
        ("Bash(go test*)", "Bash", "go test $(x)", False),
        ("Bash(go test*)", "Bash", "go test\nrm x", False),
        ("Write(docs/*)", "Write", "docs/a.md", True),
        ("Write(docs/*)", "Write", "docs/../x", False),
        ("*", "Bash", "rm -rf x; y", True),
        ("*", "mcp__shop__buy", "x", True),
        ("mcp__shop__*", "mcp__shop__buy", "x", True),
        ("mcp__shop__*", "mcp__shopping__buy", "x", False),
        ("mcp__*", "mcp__shop__buy", "x", True),
        ("mcp__shop__get_*", "mcp__shop__get_price", "x", True),
        ("mcp__shop__get_*", "mcp__shop__buy", "x", False),
    ],
)
def test_patterns_that_real_skills_use_are_understood_and_pass_no_second_command(
    machine: Machine, pattern: str, tool: str, command: str, covered: bool
) -> None:
    put(machine.home / ".agents/skills", "one", f"allowed-tools: ['{pattern}']\n")
    session = machine.shelf().session({"allow": [{"tool": tool}]})
    result = session.call("skill_load", {"name": "one"})

    assert session.decide(tool, {"command": command}).verdict == ("allow" if covered else "deny")
    assert "warnings" not in result.data


@pytest.mark.parametrize(
    ("one", "other", "effective"),
    [
        ("*", "Bash(git:*) Read", ("Bash(git:*)", "Read")),
        ("mcp__*", "mcp__shop__* Read", ("mcp__shop__*",)),
        ("Bash(git*)", "Bash(git:*)", ("Bash(git:*)",)),
        ("Bash(git:*)", "Bash(git log*)", ("Bash(git log*)",)),
        ("Bash(npm *)", "Bash(npm:*)", ("Bash(npm:*)",)),
        ("mcp__shop__buy", "mcp__shop__*", ("mcp__shop__buy",)),
    ],
)
def test_stars_leave_what_both_skills_allow(machine: Machine, one: str, other: str, effective: tuple[str, ...]) -> None:
    for name, value in (("one", one), ("other", other)):
        put(machine.repo / ".agents/skills", name, f"allowed-tools: '{value}'\n")
    session = machine.shelf().session()
    session.activate("one")
    session.activate("other")

    assert session.effective_allowed_tools == effective


@pytest.mark.req("K-26")
def test_a_field_that_no_catalog_can_show_is_a_mistake_in_a_policy(machine: Machine) -> None:
    with pytest.raises(ConfigurationError, match="'licence'; the catalog can show compatibility, allowed-tools"):
        machine.shelf().session({"catalog_fields": ["licence"]})
