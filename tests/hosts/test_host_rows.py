"""What the rows of the hosts say, on trees they were not written from: each was tried on the released program."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support.host_cases import skill, trust
from support.host_text_cases import ASKED, HIDDEN, ODD_TEXTS, ON_USE, OddText
from support.trees import Machine, write_skill

from skillshelf.catalog.prompt import catalog_text
from skillshelf.config.hosts import HOSTS
from skillshelf.config.settings import Settings
from skillshelf.core.environment import Environment
from skillshelf.hosts.fixes import fix_for
from skillshelf.hosts.placement import Placement, placement_for
from skillshelf.hosts.stages import Verdict, judge
from skillshelf.hosts.survey import Survey, survey_one, take_survey


def survey_of(machine: Machine, host: str, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> Survey:
    """Take a survey for one host, which trusts the folder."""
    cwd = cwd or machine.repo
    trust(machine, cwd)
    return take_survey(Environment(str(cwd), str(machine.home), env or {}), [host])


def verdict_in(seen: Survey, path: Path) -> Verdict:
    """The verdict of the one host of a survey on a file."""
    (host,) = seen.hosts
    return judge(seen.by_path[str(path)], seen.states[host], seen)


def verdict_on(
    machine: Machine, host: str, path: Path, *, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> Verdict:
    """The verdict of a host on a file."""
    return verdict_in(survey_of(machine, host, cwd, env), path)


# Roots --------------------------------------------------------------------------------------------

ORDERS = {
    "goose": [
        *("repo/.agents", "repo/.goose", "repo/.claude"),
        *("home/.agents", "home/.config/goose", "home/.claude", "home/.config/agents"),
    ],
    "kilo": [
        *("home/.kilo", "home/.kilocode", "repo/.kilo", "repo/.kilocode", "repo/packages/api/.kilo"),
        *("repo/packages/api/.kilocode", "home/.config/kilo", "repo/.agents", "repo/.claude"),
        *("home/.agents", "home/.claude"),
    ],
    "copilot-cli": [
        *("repo/packages/api/.github", "repo/packages/.github", "repo/.github"),
        *("repo/packages/api/.agents", "repo/.agents", "repo/packages/api/.claude", "repo/.claude"),
        *("home/.copilot", "home/.agents"),
    ],
}
"""The roots of one name from the strongest to the weakest: each wins once those before it are gone."""


@pytest.mark.parametrize("host", ORDERS)
def test_one_name_in_all_roots_is_that_of_the_first_and_then_of_the_next(host: str, machine: Machine) -> None:
    cwd = machine.repo / "packages/api" if any("api" in top for top in ORDERS[host]) else machine.repo
    cwd.mkdir(parents=True, exist_ok=True)
    paths = {
        top: write_skill(machine.base / top / "skills", "deploy", skill(body=f"# {top}\n")) for top in ORDERS[host]
    }

    won = []
    while paths:
        seen = survey_of(machine, host, cwd)
        (top,) = [top for top, path in paths.items() if verdict_in(seen, path).visible]
        won.append(top)
        paths.pop(top).unlink()

    assert won == ORDERS[host]


@pytest.mark.parametrize("is_repository", [True, False])
def test_a_home_above_the_project_is_read_for_some_roots_and_not_for_others(
    machine: Machine, is_repository: bool
) -> None:
    if is_repository:
        (machine.home / ".git").mkdir()
    cwd = machine.home / "work/project"
    cwd.mkdir(parents=True)
    tops = (".github", ".agents", ".claude", ".copilot")
    paths = {top: write_skill(machine.home / top / "skills", f"in-{top[1:]}") for top in tops}

    for place in (cwd, machine.home):
        seen = survey_of(machine, "copilot-cli", place)
        visible = {top for top, path in paths.items() if verdict_in(seen, path).visible}
        assert visible == {".github", ".agents", ".copilot"}, place


@pytest.mark.parametrize("top", [".codex", ".opencode", ".github"])
def test_some_roots_are_read_in_the_working_directory_alone(machine: Machine, top: str) -> None:
    path = write_skill(machine.repo / top / "skills", "deploy")
    below = machine.repo / "packages/api"
    below.mkdir(parents=True)

    assert verdict_on(machine, "oh-my-pi", path).verdict == "visible"
    assert verdict_on(machine, "oh-my-pi", path, cwd=below).verdict == "outside-boundary"


def test_a_folder_that_is_off_for_the_user_may_be_one_of_the_project(machine: Machine) -> None:
    codex = write_skill(machine.home / ".codex/skills", "deploy")

    assert verdict_on(machine, "oh-my-pi", codex).verdict == "disabled-by-config"
    assert verdict_on(machine, "oh-my-pi", codex, cwd=machine.home).verdict == "visible"


MOVED = (
    ("copilot-cli", "COPILOT_HOME", "skills", ".copilot/skills"),
    ("gemini-cli", "GEMINI_CLI_HOME", ".gemini/skills", ".gemini/skills"),
    ("gemini-cli", "GEMINI_CLI_HOME", ".agents/skills", ".agents/skills"),
    ("pi", "PI_CODING_AGENT_DIR", "skills", ".pi/agent/skills"),
    ("oh-my-pi", "PI_CODING_AGENT_DIR", "skills", ".omp/agent/skills"),
    ("oh-my-pi", "CLAUDE_CONFIG_DIR", "skills", ".claude/skills"),
)


@pytest.mark.parametrize(("host", "variable", "there", "at_home"), MOVED, ids=lambda value: str(value))
def test_a_variable_moves_the_folder_of_a_host(
    machine: Machine, host: str, variable: str, there: str, at_home: str
) -> None:
    moved = write_skill(machine.base / "moved" / there, "deploy")
    left = write_skill(machine.home / at_home, "other")

    seen = survey_of(machine, host, env={variable: str(machine.base / "moved")})

    assert verdict_in(seen, moved).verdict == "visible"
    assert str(left) not in seen.by_path or not verdict_in(seen, left).visible


def test_a_variable_moves_one_folder_below_another_and_not_its_neighbour(machine: Machine) -> None:
    env = {"XDG_CONFIG_HOME": str(machine.base / "xdg")}
    moved = write_skill(machine.base / "xdg/goose/skills", "deploy")
    stays = write_skill(machine.home / ".config/agents/skills", "other")

    assert verdict_on(machine, "goose", moved, env=env).verdict == "visible"
    assert verdict_on(machine, "goose", stays, env=env).verdict == "visible"


def test_settings_and_trust_move_with_their_folder(machine: Machine) -> None:
    path = write_skill(machine.repo / ".agents/skills", "deploy")
    moved = machine.base / "moved"
    (moved / ".gemini").mkdir(parents=True)
    env = {"GEMINI_CLI_HOME": str(moved)}

    assert verdict_on(machine, "gemini-cli", path, env=env).verdict == "untrusted"
    (moved / ".gemini/trustedFolders.json").write_text(f'{{"{machine.repo}": "TRUST_FOLDER"}}')
    assert verdict_on(machine, "gemini-cli", path, env=env).verdict == "visible"
    (moved / ".gemini/settings.json").write_text('{"skills": {"disabled": ["deploy"]}}')
    assert verdict_on(machine, "gemini-cli", path, env=env).verdict == "disabled-by-config"


def test_a_variable_with_any_value_turns_a_folder_off(machine: Machine) -> None:
    path = write_skill(machine.home / ".agents/skills", "deploy")
    env = {"COPILOT_HOME": str(machine.base / "moved")}

    seen = survey_of(machine, "copilot-cli", env=env)
    verdict = verdict_in(seen, path)

    assert (verdict.verdict, verdict.detail) == (
        "disabled-by-config",
        "the variable COPILOT_HOME turns its folder off",
    )
    assert fix_for(verdict, seen.by_path[str(path)], seen) == "unset COPILOT_HOME"


# The walk -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["pi", "copilot-cli"])
def test_a_skill_in_the_root_itself_ends_the_walk(machine: Machine, host: str) -> None:
    root = machine.repo / ".agents/skills"
    beside = write_skill(root, "deploy")
    assert verdict_on(machine, host, beside).verdict == "visible"

    (root / "SKILL.md").write_text(skill("name: all\ndescription: One.\n"))

    assert verdict_on(machine, host, root / "SKILL.md").visible
    verdict = verdict_on(machine, host, beside)
    assert (verdict.verdict, verdict.detail) == ("ignored", "the SKILL.md in .agents/skills makes it one skill")
    assert machine.names(f"host:{host}") == ["all"]


@pytest.mark.parametrize(
    ("pattern", "left"),
    [
        ("deploy", ["review", "sub-deploy"]),
        ("deploy/", ["review", "sub-deploy"]),
        ("/deploy", ["review", "sub-deploy"]),
        ("*deploy", ["review"]),
        ("*deploy\n!sub-deploy", ["review", "sub-deploy"]),
        ("sub/*\nDEPLOY", ["review"]),
        ("SKILL.md", []),
        ("# deploy\n\n", ["deploy", "review", "sub-deploy"]),
    ],
)
def test_an_ignore_file_in_a_skills_folder_leaves_skills_out(machine: Machine, pattern: str, left: list[str]) -> None:
    root = machine.repo / ".agents/skills"
    paths = {name: write_skill(root, name) for name in ("deploy", "review")}
    paths["sub-deploy"] = write_skill(root / "sub", "sub-deploy")

    (root / ".gitignore").write_text(pattern)
    seen = survey_of(machine, "pi")

    assert sorted(name for name, path in paths.items() if verdict_in(seen, path).visible) == left
    assert machine.names("host:pi") == left
    for path in (path for name, path in paths.items() if name not in left):
        assert verdict_in(seen, path).verdict == "ignored"
        assert "an ignore file" in verdict_in(seen, path).detail
    assert all(verdict_on(machine, "goose", path).visible for path in paths.values())


def test_a_glance_knows_ignore_files_and_no_link_is_advised_into_what_they_leave_out(machine: Machine) -> None:
    path = write_skill(machine.repo / ".claude/skills", "deploy")
    linked = machine.repo / ".agents/skills"
    linked.mkdir(parents=True)
    trust(machine, machine.repo)
    assert "skillshelf link deploy --to pi" in machine.run("why", "deploy", "--host", "pi").stdout

    (linked / ".gitignore").write_text("deploy\n")
    (machine.repo / ".pi/skills").mkdir(parents=True)
    (machine.repo / ".pi/skills/.gitignore").write_text("*\n")
    assert "skillshelf link" not in machine.run("why", "deploy", "--host", "pi").stdout

    (linked / "deploy").symlink_to(path.parent)
    place = Environment(str(machine.repo), str(machine.home), {})
    seen = survey_one(place, ["pi"], str(linked / "deploy/SKILL.md"))
    assert judge(seen.by_path[str(path)], seen.states["pi"], seen).verdict == "ignored"


# Texts --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ODD_TEXTS, ids=lambda case: case.title)
def test_an_odd_text_is_told_as_each_program_told_it(case: OddText, machine: Machine) -> None:
    hosts = [*ASKED, *(host for host in case.but if host not in ASKED)]
    told: dict[str, str | None] = {}
    names = {}
    for host in hosts:
        # One name in two roots would be a race.
        cwd = machine.base / ("claude" if host in ("claude-code", "openskills") else "agents")
        path = cwd / f".{cwd.name}/skills/odd/SKILL.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        (cwd / ".git").mkdir(exist_ok=True)
        path.write_bytes(case.text.encode())
        seen = survey_of(machine, host, cwd)
        verdict = verdict_in(seen, path)
        listed = seen.states[host].by_file.get(str(path))
        if verdict.visible is None:
            told[host] = ON_USE if "not at its start" in verdict.detail else f"unknown: {verdict.detail}"
        elif verdict.verdict == "hidden-from-model":
            told[host] = HIDDEN
        else:
            told[host] = " ".join(listed.description.split()) if verdict.visible and listed else None
        if listed is not None and listed.name != "odd":
            names[host] = listed.name

    assert told == {host: case.told_by(host) for host in hosts}
    assert names == {host: name for host, name in case.names.items() if told[host] is not None and name != "odd"}


def test_a_name_that_skillshelf_refuses_is_judged_as_each_host_takes_it(machine: Machine) -> None:
    path = write_skill(machine.repo / ".agents/skills", "odd", skill("name: a/b\ndescription: It.\n"))

    found = {
        host: verdict_on(machine, host, path) for host in ("codex", "opencode", "goose", "gemini-cli", "copilot-cli")
    }

    assert {host: verdict.visible for host, verdict in found.items()} == {
        "codex": True,
        "opencode": True,
        "goose": False,
        "gemini-cli": True,
        "copilot-cli": False,
    }
    assert "accepts what skillshelf does not" in found["codex"].detail
    assert (found["goose"].verdict, found["copilot-cli"].verdict) == ("name-rejected", "name-rejected")


def test_what_neither_the_model_nor_a_person_can_call_is_called_that(machine: Machine) -> None:
    text = skill("name: odd\ndescription: It.\ndisable-model-invocation: true\nuser-invocable: false\n")
    path = write_skill(machine.repo / ".claude/skills", "odd", text)

    verdict = verdict_on(machine, "claude-code", path)

    assert (verdict.verdict, verdict.detail) == (
        "hidden-from-model",
        "disable-model-invocation is set; nobody can invoke it: it is kept from users too",
    )


def test_a_skill_that_waits_for_files_takes_no_room_in_the_list(machine: Machine) -> None:
    write_skill(machine.repo / ".claude/skills", "odd", skill("name: odd\ndescription: It.\npaths: '*.py'\n"))
    seen = survey_of(machine, "claude-code")

    assert seen.states["claude-code"].size().entries == 0
    assert [one.hidden for one in machine.catalog("host:claude-code").skills] == ["on-use"]


# Plugins ------------------------------------------------------------------------------------------


def put_plugin(machine: Machine, plugin: str, *, manifest: str | None = None, **entry: str) -> Path:
    """Install a plugin of Claude Code with one skill, in its cache; gives the skill's file."""
    folder = machine.home / f".claude/plugins/cache/market/{plugin}/1.0.0"
    path = write_skill(folder / "skills", f"{plugin}-skill")
    if manifest is not None:
        (folder / ".claude-plugin").mkdir()
        (folder / ".claude-plugin/plugin.json").write_text(json.dumps({"name": manifest}))
    listed = machine.home / ".claude/plugins/installed_plugins.json"
    known: dict[str, Any] = json.loads(listed.read_text()) if listed.exists() else {"version": 2, "plugins": {}}
    known["plugins"][f"{plugin}@market"] = [{"scope": "user", "installPath": str(folder), **entry}]
    listed.write_text(json.dumps(known))
    return path


def test_skills_of_plugins_that_are_on_are_seen_under_the_name_of_their_plugin(machine: Machine) -> None:
    paths = {
        "fmt": put_plugin(machine, "fmt", manifest="fmt"),
        "bare": put_plugin(machine, "bare"),
        "named": put_plugin(machine, "named", manifest="other"),
        "idle": put_plugin(machine, "idle", manifest="idle"),
        "unset": put_plugin(machine, "unset", manifest="unset"),
        "far": put_plugin(machine, "far", manifest="far", projectPath=str(machine.base / "elsewhere")),
    }
    on = {f"{name}@market": name != "idle" for name in paths if name != "unset"}
    (machine.home / ".claude/settings.json").write_text(json.dumps({"enabledPlugins": on}))

    seen = survey_of(machine, "claude-code")
    found = {name: verdict_in(seen, path) for name, path in paths.items() if str(path) in seen.by_path}

    assert machine.names("host:claude-code") == ["bare:bare-skill", "fmt:fmt-skill", "other:named-skill"]
    assert {name: verdict.verdict for name, verdict in found.items()} == {
        "fmt": "renamed-by-plugin",
        "bare": "renamed-by-plugin",
        "named": "renamed-by-plugin",
        "idle": "disabled-by-config",
        "unset": "disabled-by-config",
    }
    assert found["idle"].detail == "its plugin idle is off"
    assert fix_for(found["idle"], seen.by_path[str(paths["idle"])], seen) == "turn the plugin idle on in claude-code"
    assert verdict_on(machine, "codex", paths["fmt"]).verdict == "root-not-read"


def test_a_plugin_of_a_market_that_is_a_folder_is_read_there(machine: Machine) -> None:
    cached = put_plugin(machine, "fmt", manifest="fmt")
    market = machine.base / "market"
    live = write_skill(market / "tools/fmt/skills", "live-skill")
    (market / ".claude-plugin").mkdir()
    offered = {"plugins": [{"name": "fmt", "source": "./tools/fmt"}]}
    (market / ".claude-plugin/marketplace.json").write_text(json.dumps(offered))
    known = {"market": {"source": {"source": "directory", "path": str(market)}}}
    (machine.home / ".claude/plugins/known_marketplaces.json").write_text(json.dumps(known))
    (machine.home / ".claude/settings.json").write_text('{"enabledPlugins": {"fmt@market": true}}')

    assert verdict_on(machine, "claude-code", live).verdict == "renamed-by-plugin"
    assert machine.names("host:claude-code") == ["fmt:live-skill"]
    assert cached.exists()


@pytest.mark.parametrize("text", ["{", "[]", '{"plugins": [1]}'])
def test_a_list_of_plugins_that_cannot_be_read_leaves_their_skills_open(machine: Machine, text: str) -> None:
    path = put_plugin(machine, "fmt")
    (machine.home / ".claude/plugins/installed_plugins.json").write_text(text)
    seen = take_survey(Environment(str(machine.repo), str(machine.home), {}), ["claude-code"], path=str(path))

    verdict = verdict_in(seen, path)

    assert (verdict.visible, verdict.detail) == (
        None,
        "~/.claude/plugins/installed_plugins.json is not a list of installed plugins",
    )


def test_a_skill_is_not_linked_into_a_plugin(machine: Machine) -> None:
    put_plugin(machine, "fmt", manifest="fmt")
    (machine.home / ".claude/settings.json").write_text('{"enabledPlugins": {"fmt@market": true}}')
    path = write_skill(machine.home / ".agents/skills", "deploy")
    seen = survey_of(machine, "claude-code")

    placement = placement_for(seen.by_path[str(path)], seen.hosts["claude-code"], seen)

    assert isinstance(placement, Placement)
    assert placement.path == str(machine.home / ".claude/skills/deploy")


def test_what_comes_with_a_host_is_left_to_it(machine: Machine) -> None:
    path = write_skill(machine.home / ".codex/skills/.system", "imagegen")

    verdict = verdict_on(machine, "codex", path)

    assert (verdict.verdict, verdict.detail) == ("unknown", "it comes with the host, which decides about it")


# Budgets ------------------------------------------------------------------------------------------


def put_many(machine: Machine, root: str, count: int, length: int) -> list[Path]:
    """Write many skills with descriptions of one length."""
    text = "name: skill-{number:03}\ndescription: {description}\n"
    return [
        write_skill(
            machine.repo / root,
            f"skill-{number:03}",
            skill(text.format(number=number, description="x" * length), body=f"{number}\n"),
        )
        for number in range(count)
    ]


def test_a_host_whose_window_decides_is_not_said_to_leave_skills_out(machine: Machine) -> None:
    paths = put_many(machine, ".agents/skills", 300, 150)
    seen = survey_of(machine, "codex")
    found = [verdict_in(seen, path) for path in paths]

    assert {verdict.verdict for verdict in found} == {"description-cut"}
    assert {verdict.detail for verdict in found} == {
        "its list has room for 8,000 to 21,760 characters, by the model's context window: the description is shortened"
    }


def test_a_list_in_tokens_counts_bytes_and_not_characters(machine: Machine) -> None:
    text = "---\nname: skill-{0:02}\ndescription: {1}\n---\n{0}\n"
    for number in range(60):
        write_skill(machine.repo / ".agents/skills", f"skill-{number:02}", text.format(number, "あ" * 150))

    assert len(survey_of(machine, "codex").states["codex"].size().cut) == 60


def test_what_a_smaller_window_would_cut_is_said_as_a_possibility(machine: Machine) -> None:
    (path, *_) = put_many(machine, ".agents/skills", 60, 150)

    verdict = verdict_on(machine, "codex", path)

    assert verdict.visible
    assert verdict.detail.endswith("by the model's context window: the description may be shortened")


def test_even_more_skills_than_names_fit_are_open_and_not_missing(machine: Machine) -> None:
    paths = put_many(machine, ".agents/skills", 700, 20)
    seen = survey_of(machine, "codex")

    assert verdict_in(seen, paths[0]).visible
    assert verdict_in(seen, paths[-1]).verdict == "unknown"


def test_descriptions_are_told_up_to_the_entry_that_would_pass_the_budget_and_then_names(machine: Machine) -> None:
    paths = put_many(machine, ".agents/skills", 300, 150)
    seen = survey_of(machine, "copilot-cli")

    cut = [verdict_in(seen, path).verdict == "description-cut" for path in paths]
    text = catalog_text(seen.states["copilot-cli"].listed, HOSTS["copilot-cli"], Settings()).text

    assert cut == [False] * 59 + [True] * 241
    assert text.count("<description>") == 59
    assert text.endswith("skill-298, skill-299")
    assert "(invoke by name): skill-059, skill-060" in text


def test_the_skills_of_a_host_itself_take_a_share_of_its_list(machine: Machine) -> None:
    paths = put_many(machine, ".claude/skills", 120, 400)
    seen = survey_of(machine, "claude-code")

    assert len(seen.states["claude-code"].size().cut) == 120 - 55
    dropped = (
        "its list has room for 8,000 to 30,000 characters, by the model's context window: 65 to 119 of 120 "
        "descriptions are dropped, the least used first"
    )
    assert verdict_in(seen, paths[0])[2:4] == ("visible", f"{dropped}, perhaps this one")
    assert verdict_in(seen, paths[-1])[2:4] == ("description-cut", f"{dropped}, this one unless it is used more")


def test_a_short_description_still_gets_the_room_that_a_long_one_before_it_did_not_have(machine: Machine) -> None:
    put_many(machine, ".claude/skills", 60, 500)
    room = 30_000 - sum(len(f"- {name}") + 1 for name in HOSTS["claude-code"].bundled) + 1
    last = HOSTS["claude-code"].bundled_last
    room -= sum(length + 2 for name, length in HOSTS["claude-code"].bundled.items() if name not in last)
    paths = sorted((machine.repo / ".claude/skills").glob("*/SKILL.md"))
    room -= sum(len(f"- {path.parent.name}") + 1 for path in paths) + 2 * len("- z-0\n")
    whole = len(paths) - len(survey_of(machine, "claude-code").states["claude-code"].size().cut)
    described = len(survey_of(machine, "claude-code").states["claude-code"].listed[0].description)
    left = room - whole * (described + 2)
    for number, more in enumerate((1, 0)):
        text = skill(f"name: z-{number}\ndescription: {'z' * (left + more)}\n")
        write_skill(machine.repo / ".claude/skills", f"z-{number}", text)

    cut = {Path(path).parent.name for path in survey_of(machine, "claude-code").states["claude-code"].size().cut}

    assert {"z-0", "z-1"} & cut == {"z-0"}


def test_a_list_that_is_too_long_is_cut_to_one_length_within_words(machine: Machine) -> None:
    put_many(machine, ".agents/skills", 80, 500)
    seen = survey_of(machine, "codex")

    text = catalog_text(seen.states["codex"].listed, HOSTS["codex"], Settings()).text
    lengths = {len(line.partition(": ")[2].rpartition(" (file")[0]) for line in text.splitlines()}

    assert "…" not in text
    assert len(lengths) == 1


def test_of_a_list_with_a_frame_of_its_own_only_the_entries_count(machine: Machine) -> None:
    paths = put_many(machine, ".agents/skills", 80, 400)
    seen = survey_of(machine, "codelia")
    entry = (
        "  <skill>\n    <name>{}</name>\n    <description>{}</description>\n"
        "    <path>{}</path>\n    <scope>repo</scope>\n  </skill>\n"
    )
    sizes = [len(entry.format(one.name, one.description, one.path)) for one in seen.states["codelia"].listed]
    fits = sum(sum(sizes[: count + 1]) <= 32 * 1024 for count in range(len(sizes)))

    assert [verdict_in(seen, path).verdict == "over-budget" for path in paths].count(False) == fits


# Where the rows end -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "file", "text"),
    [
        ("pi", "home/.pi/agent/settings.json", '{"skills": ["~/team"]}'),
        ("opencode", "repo/opencode.json", '{"skills": {"paths": ["HOME/team"]}}'),
        ("vscode", "repo/.vscode/settings.json", '{"chat.agentSkillsLocations": {"~/team": true}}'),
    ],
)
def test_a_folder_that_a_setting_names_is_open(machine: Machine, host: str, file: str, text: str) -> None:
    path = write_skill(machine.home / "team", "deploy")
    place = Environment(str(machine.repo), str(machine.home), {})
    before = verdict_in(take_survey(place, [host], path=str(path)), path)
    settings = machine.base / file
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(text.replace("HOME", str(machine.home)))

    after = verdict_in(take_survey(place, [host], path=str(path)), path)

    assert (before.verdict, after.verdict) == ("root-not-read", "unknown")
    assert after.detail.endswith("names this folder")


@pytest.mark.parametrize(
    ("host", "variable", "there"),
    [("copilot-cli", "COPILOT_HOME", "skills"), ("gemini-cli", "GEMINI_CLI_HOME", ".agents/skills")],
)
def test_a_link_goes_where_the_host_reads_once_its_folder_is_moved(
    machine: Machine, host: str, variable: str, there: str
) -> None:
    write_skill(machine.home / ".claude/skills", "deploy")
    moved = machine.base / "moved"
    (moved / ".gemini").mkdir(parents=True)
    machine.env[variable] = str(moved)

    shown = machine.run("link", "deploy", "--to", host)

    linked = [path for path in moved.rglob("deploy") if path.is_symlink()]
    assert [path.parent.parent.name for path in linked] == [Path(there).parent.name or "moved"], shown
    assert not (machine.home / ".copilot").exists()


def test_no_link_is_put_into_a_folder_of_home_that_is_not_read(machine: Machine) -> None:
    (machine.home / ".git").mkdir()
    write_skill(machine.home / ".pi/agent/skills", "deploy")

    shown = machine.run("link", "deploy", "--to", "copilot-cli", cwd=machine.home)

    assert not (machine.home / ".claude").exists(), shown
    seen = survey_of(machine, "copilot-cli", machine.home)
    (path,) = [path for path in machine.home.rglob("deploy") if path.is_symlink()]
    assert verdict_in(seen, path / "SKILL.md").visible


HOSTILE_LISTS = (
    '{"plugins": {"a@m": [{"installPath": 7}, null, "x"], "b@m": {"installPath": "\\u0000"}, "c@m": 3}}',
    '{"plugins": {"a/b@m": [{"installPath": "/tmp"}], "": [{"installPath": "/tmp", "projectPath": []}]}}',
    '{"plugins": ' + "[" * 200_000,
)


@pytest.mark.parametrize("text", HOSTILE_LISTS, ids=["types", "names", "depth"])
def test_a_hostile_list_of_plugins_costs_nothing_else(machine: Machine, text: str) -> None:
    path = write_skill(machine.repo / ".claude/skills", "deploy")
    (machine.home / ".claude/plugins").mkdir(parents=True)
    (machine.home / ".claude/plugins/installed_plugins.json").write_text(text)

    assert verdict_on(machine, "claude-code", path).verdict == "visible"
    assert machine.names("host:claude-code") == ["deploy"]


def test_many_equal_keys_and_an_endless_ignore_file_cost_one_line(machine: Machine) -> None:
    many = skill("name: odd\n" + "description: It.\n" * 3_000)
    path = write_skill(machine.repo / ".claude/skills", "odd", many)
    other = write_skill(machine.repo / ".agents/skills", "deploy")
    (machine.repo / ".agents/skills/.gitignore").write_text("*a" * 20_000 + "\n" + "[" * 1_000 + "\n**/x" * 500)
    (machine.repo / ".agents/skills/.ignore").symlink_to("/dev/zero")

    assert verdict_on(machine, "claude-code", path).verdict == "unknown"
    assert verdict_on(machine, "pi", other).visible
