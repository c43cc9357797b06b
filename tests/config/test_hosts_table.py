"""The table of hosts: found by name, documented, and one engine with the listing."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.host_cases import PLACE_CASES, PlaceCase, skill, trust
from support.host_runs import Run, json_output
from support.trees import Machine, write_skill

from skillshelf.catalog.document import ParsedFrontmatter
from skillshelf.config.builtin_profiles import SYSTEMS, find_profile
from skillshelf.config.hosts import HOSTS, find_host
from skillshelf.config.profile import RULES, Profile, RootRule
from skillshelf.core.environment import Environment
from skillshelf.core.values import Finding
from skillshelf.errors import ConfigurationError
from skillshelf.hosts.stages import RULE_VERDICTS, VERDICTS, judge
from skillshelf.hosts.survey import survey_one, take_survey
from skillshelf.lint.portability import portability

REPOSITORY = Path(__file__).parents[2]


def test_the_hosts_that_must_exist_do() -> None:
    assert set(HOSTS) >= {
        *("claude-code", "codex", "opencode", "gemini-cli", "goose", "pi", "oh-my-pi", "codelia", "vscode"),
        *("copilot-cli", "cursor", "kiro", "openskills"),
        *("amp", "kilo", "grok", "qoder", "qwen-code", "kimi-code", "cline"),
    }


def test_a_profile_is_looked_for_among_systems_first_and_a_host_only_among_hosts() -> None:
    assert find_profile("codelia") is SYSTEMS["codelia"]
    assert find_profile("host:codelia") is HOSTS["codelia"] is find_host("codelia")
    assert find_profile("codex") is HOSTS["codex"]
    for name in ("host:standard", "host:", "nonsense"):
        with pytest.raises(ConfigurationError, match="codex"):
            find_profile(name)


@pytest.mark.parametrize("host", HOSTS.values(), ids=lambda host: host.name)
def test_a_host_says_how_it_is_known_and_is_documented(host: Profile) -> None:
    page = (REPOSITORY / "docs/hosts.md").read_text(encoding="utf-8")

    assert host.grade in ("R", "S", "D", "T")
    assert host.evidence
    assert (host.version != "") == (host.grade == "R")
    assert f"| `{host.name}` | {host.version or '-'} | {host.as_of} | {host.grade} | {host.evidence} |" in page
    assert {root for rule in host.roots for root in rule.paths if f"`{root}`" not in page} == set()


@pytest.mark.parametrize("host", HOSTS.values(), ids=lambda host: host.name)
def test_what_is_unknown_of_a_host_is_a_rule_or_a_field(host: Profile) -> None:
    others = {"above-cwd", "links", "other-fields"}

    assert [name for name in host.unknown if name not in {*RULES, *Profile._fields, *others}] == []
    assert set(host.tells) >= {"place", "link", "trust", "invalid", "collision"}


def test_every_verdict_of_a_rule_is_in_the_closed_list() -> None:
    assert set(RULE_VERDICTS) <= set(RULES)
    assert set(RULE_VERDICTS.values()) <= set(VERDICTS)


@pytest.mark.parametrize("case", PLACE_CASES, ids=lambda case: f"{case.number} {case.title}")
def test_why_and_a_listing_with_the_profile_agree(case: PlaceCase, machine: Machine) -> None:
    case.build(machine)
    cwd = machine.base / case.cwd
    cwd.mkdir(parents=True, exist_ok=True)
    trust(machine, cwd)
    survey = take_survey(Environment(str(cwd), str(machine.home), {}), tuple(HOSTS))

    for host, state in survey.states.items():
        listed = {s.real_path for s in machine.catalog(f"host:{host}", cwd=cwd).skills if s.hidden is None}
        for skill_file in survey.skill_files:
            verdict = judge(skill_file, state, survey)
            assert verdict.visible is None or verdict.visible == (skill_file.real_path in listed), verdict


@pytest.mark.parametrize("case", PLACE_CASES, ids=lambda case: f"{case.number} {case.title}")
def test_a_glance_at_one_skill_and_its_rivals_gives_the_same_verdicts(case: PlaceCase, machine: Machine) -> None:
    case.build(machine)
    cwd = machine.base / case.cwd
    cwd.mkdir(parents=True, exist_ok=True)
    trust(machine, cwd)
    place = Environment(str(cwd), str(machine.home), {})
    whole = take_survey(place, tuple(HOSTS))

    for skill_file in whole.skill_files:
        rivals = [path for other in whole.skill_files for path in other.paths]
        quick = survey_one(place, tuple(HOSTS), skill_file.path, rivals)
        for host in HOSTS:
            got = judge(quick.by_path[skill_file.real_path], quick.states[host], quick)
            assert got == judge(skill_file, whole.states[host], whole)


def test_a_glance_looks_at_nothing_else(machine: Machine) -> None:
    root = machine.repo / ".agents/skills"
    path = write_skill(root, "deploy", folder="ops/deploy")
    write_skill(root, "deploy")
    write_skill(root, "review")
    place = Environment(str(machine.repo), str(machine.home), {})

    seen = survey_one(place, ["codex"], str(path))

    assert [skill_file.path for skill_file in seen.skill_files] == [str(root / "deploy/SKILL.md"), str(path)]
    assert judge(seen.by_path[str(path)], seen.states["codex"], seen).verdict == "ambiguous"


def test_a_new_host_is_one_row(machine: Machine, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    row = HOSTS["codex"]._replace(
        name="new-host",
        roots=(RootRule("project", "chain", (".new/skills",)),),
        settings=(),
        on_change="needs a restart",
    )
    monkeypatch.setitem(HOSTS, row.name, row)
    write_skill(machine.repo / ".claude/skills", "deploy")

    (before,) = json_output(run, "why", "deploy", "--host", "new-host", schema="why")["candidates"]
    status, out, _ = run("link", "deploy", "--to", "new-host")
    (after,) = json_output(run, "why", "deploy", "--host", "new-host", schema="why")["candidates"]

    told = [(host["verdict"], host["detail"], host["fix"]) for host in (before["hosts"][0], after["hosts"][0])]
    assert told == [
        ("root-not-read", "reads .new/skills", "skillshelf link deploy --to new-host"),
        ("visible", "", None),
    ]
    assert (status, out.splitlines()) == (
        0,
        [
            "new-host: linked .new/skills/deploy -> ../../.claude/skills/deploy (now visible)",
            "Running sessions: new-host needs a restart",
        ],
    )
    assert [host["host"] for host in json_output(run, "hosts", schema="hosts")["hosts"]][-1] == "new-host"
    assert machine.names("host:new-host") == ["deploy"]


def test_a_host_can_be_the_start_of_a_profile_of_ones_own(machine: Machine) -> None:
    machine.configure('[profiles.mine]\nextends = "host:claude-code"\nmax_depth = 3\n')
    write_skill(machine.repo / ".claude/skills", "deploy", folder="ops/deploy")

    assert machine.names("mine") == ["deploy"]


def test_switches_of_a_host_decide_before_names_are_settled(machine: Machine) -> None:
    for root in (".claude/skills", ".codex/skills"):
        write_skill(machine.home / root, "deploy", skill("name: deploy\ndescription: D.\n", body=root))
    assert machine.names("host:oh-my-pi") == []

    root = '{kind = "user", base = "home", paths = [".codex/skills"]}'
    machine.configure(f'[profiles.on]\nextends = "host:oh-my-pi"\nroots = [{root}]\n')

    assert machine.names("on") == ["deploy"]


@pytest.mark.parametrize(
    ("variable", "value", "host", "root"),
    [
        ("CODEX_HOME", "store/codex", "codex", "store/codex/skills"),
        ("CLAUDE_CONFIG_DIR", "store/claude", "claude-code", "store/claude/skills"),
        ("XDG_CONFIG_HOME", "store/xdg", "opencode", "store/xdg/opencode/skills"),
        ("XDG_CONFIG_HOME", "store/xdg", "goose", "store/xdg/goose/skills"),
    ],
)
def test_a_variable_moves_a_root(machine: Machine, variable: str, value: str, host: str, root: str) -> None:
    write_skill(machine.base / root, "deploy")
    assert machine.names(f"host:{host}") == []

    machine.env[variable] = str(machine.base / value)

    assert machine.names(f"host:{host}") == ["deploy"]


def test_user_arguments_reach_a_skill_where_the_host_substitutes_them() -> None:
    assert {name for name, host in HOSTS.items() if host.arguments == "substitute"} == {
        *("claude-code", "opencode", "goose"),
    }


def test_a_worktree_is_a_repository(machine: Machine) -> None:
    (machine.repo / ".git").rmdir()
    (machine.repo / ".git").write_text("gitdir: /elsewhere\n")
    write_skill(machine.repo / ".agents/skills", "deploy")
    cwd = machine.repo / "packages/api"
    cwd.mkdir(parents=True)

    assert machine.names("host:codex", cwd=cwd) == ["deploy"]


STANDARD = {"name", "description", "license", "compatibility", "metadata"}

# Portability --------------------------------------------------------------------------------------


def test_a_safeguard_that_hosts_ignore_comes_first_and_says_why_that_is_dangerous() -> None:
    found = portability(
        ParsedFrontmatter(
            {"name": "deploy", "model": "fast", "disable-model-invocation": True, "license": "MIT"}, "", ()
        )
    )

    assert found == [
        Finding(
            "portability-safeguard",
            "dangerous: the model may still call this skill on its own in codex, opencode, gemini-cli, goose, codelia, "
            "openskills, cline: `disable-model-invocation` is not known there",
        ),
        Finding(
            "portability-field",
            "no effect in codex, opencode, gemini-cli, goose, pi, oh-my-pi, codelia, vscode, openskills and "
            "copilot-cli, cursor (by their documentation): `model` is not known there",
        ),
    ]


def test_safeguards_come_in_the_order_of_their_danger() -> None:
    fields = {"paths": "src/**", "user-invocable": False, "hide": True, "hooks": {}, "disallowed-tools": "Bash"}

    found = portability(ParsedFrontmatter({**fields, "disable-model-invocation": "yes"}, "", ()))

    assert (found[0].rule, found[0].message.split(":")[0]) == (
        "field-type",
        "the whole skill is skipped by copilot-cli",
    )
    assert [finding.message.split("`")[1] for finding in found[1:]] == [
        *("disable-model-invocation", "disallowed-tools", "hooks", "hide", "user-invocable", "paths"),
    ]


def told(field: str, value: object) -> list[Finding]:
    """Return the findings about a field that only some hosts honour, except those about its type."""
    found = portability(ParsedFrontmatter({"name": "x", "description": "d", field: value}, "", ()))
    return [finding for finding in found if finding.rule != "field-type"]


@pytest.mark.parametrize("field", sorted({field for host in HOSTS.values() for field in host.fields} - STANDARD))
def test_every_field_that_only_some_hosts_honour_is_told(field: str) -> None:
    value = field != "user-invocable"

    (finding,) = told(field, value)

    untried = {"kiro", "amp", "kilo", "grok", "qoder"}
    if field != "disable-model-invocation":
        untried |= {"qwen-code", "kimi-code", "cline"}
    ignoring = [host.name for host in HOSTS.values() if field not in host.fields and host.name not in untried]
    assert [host for host in ignoring if host not in finding.message] == []
    assert told(field, not value) == []


def test_fields_of_the_standard_and_fields_nobody_knows_are_portable() -> None:
    assert portability(ParsedFrontmatter({"name": "x", "description": "d", "metadata": {}, "x-team": 1}, "", ())) == []
    assert portability(ParsedFrontmatter({"disable-model-invocation": False}, "", ())) == []
