"""Attempts to get around the policy of the machine on surfaces that are not the main road: each is refused and said."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from support.system_policies import POLICY, PolicyMachine, policy_machine

pytestmark = pytest.mark.slow

FORBIDDEN = f"{POLICY}: skills.forbidden"


@pytest.fixture
def machine(tmp_path: Path) -> PolicyMachine:
    return policy_machine(tmp_path)


def said_by(machine: PolicyMachine, code: str, *words: str) -> dict[str, str]:
    """Run a program that fills `said` by `tell(label, act)`: what the act returned, or the error."""
    begin = """
import json, os, sys, skillshelf
from skillshelf import *
said = {}
def tell(label, act):
    try:
        said[label] = str(act())
    except SkillError as error:
        said[label] = f"{type(error).__name__}: {error}"
"""
    ended = machine.python("-c", f"{begin}{code}\nprint(json.dumps(said))", *words)
    assert ended.status == 0, ended.err
    said = json.loads(ended.out.splitlines()[-1])
    assert isinstance(said, dict)
    return said


# Hosts --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mine", "claude-code", "standard-like"])
def test_a_profile_that_extends_a_forbidden_host_serves_no_model(machine: PolicyMachine, name: str) -> None:
    machine.skill("notes", root=machine.home / ".claude/skills")
    machine.configure(f'[profiles.{name}]\nextends = "middle"\n[profiles.middle]\nextends = "host:claude-code"\n')
    machine.configure(
        f'[profiles.middle]\nextends = "host:claude-code"\nmax_depth = 3\n[profiles.{name}]\nextends = "middle"\n'
    )
    machine.write('[hosts]\nallow = ["codex"]\n')

    for command in ("prompt", "tools", "mcp"):
        ended = machine.run(command, "--profile", name)
        assert (ended.status, f"{POLICY}: hosts.allow" in ended.err) == (4, True), ended
    assert machine.run("prompt").status == 0


def test_no_profile_says_of_itself_which_host_it_is(machine: PolicyMachine) -> None:
    machine.configure('[profiles.mine]\nextends = "host:claude-code"\nhost = "codex"\n')

    ended = machine.run("prompt", "--profile", "mine")

    assert (ended.status, "`profiles.mine.host`" in ended.err) == (2, True)


def test_why_neither_advises_nor_makes_what_the_policy_forbids(machine: PolicyMachine) -> None:
    machine.skill("notes")
    machine.skill("deploy")
    machine.write('[hosts]\nallow = ["codex"]\n[skills]\nforbidden = ["deploy"]\n')

    fixed = machine.run("why", "notes", "--fix", "--host", "claude-code")
    asked = machine.run("why", "notes", "--host", "claude-code")
    forbidden = machine.run("why", "deploy", "--fix", "--host", "codex")

    assert (fixed.status, f"{POLICY}: hosts.allow" in fixed.err) == (4, True)
    assert "skillshelf link" not in asked.out
    assert "hosts.allow" in asked.out
    assert (forbidden.status, FORBIDDEN in forbidden.err) == (4, True)
    assert not (machine.home / ".claude").exists()


# Forbidden skills ---------------------------------------------------------------------------------


def test_a_forbidden_skill_is_neither_made_nor_turned_on(machine: PolicyMachine) -> None:
    machine.skill("deploy")
    (machine.home / ".codex").mkdir()
    machine.configure('[skills]\ndisabled = ["deploy"]\n')
    assert machine.run("disable", "deploy", "--in", "codex").status == 0
    before = (machine.home / ".codex/config.toml").read_bytes()
    machine.write(f'[skills]\nforbidden = ["deploy", "{machine.project}/.agents/skills/placed", "sha256:{"0" * 64}"]\n')

    for words in (
        ("enable", "deploy"),
        ("enable", "deploy", "--in", "codex"),
        ("new", "deploy"),
        ("new", "deploy", "--for", "codex"),
        ("new", "placed"),
        ("new", "deploy", "--dry-run"),
    ):
        ended = machine.run(*words)
        assert (ended.status, FORBIDDEN in ended.err) == (4, True), (words, ended)
    assert (machine.home / ".codex/config.toml").read_bytes() == before
    assert not (machine.project / ".agents").exists()
    assert machine.run("new", "other").status == 0


def test_no_switch_of_a_host_is_turned_on_under_a_broken_policy(machine: PolicyMachine) -> None:
    machine.skill("deploy")
    (machine.home / ".codex").mkdir()
    assert machine.run("disable", "deploy", "--in", "codex").status == 0
    machine.write("broken")

    ended = machine.run("enable", "deploy", "--in", "codex")

    assert (ended.status, "the system policy cannot be used" in ended.err) == (4, True)


def test_the_name_of_a_folder_is_forbidden_to_hosts_that_name_skills_by_it(machine: PolicyMachine) -> None:
    folder = machine.skill("deploy")
    (folder / "SKILL.md").write_text("---\nname: harmless\ndescription: Use it whenever it is needed.\n---\nText.\n")
    machine.write('[skills]\nforbidden = ["deploy"]\n')

    ended = machine.run("link", str(folder), "--to", "claude-code")

    assert (ended.status, FORBIDDEN in ended.err) == (4, True)


@pytest.mark.parametrize("forbidden", ["deploy", "acme"])
def test_no_profile_gives_a_forbidden_skill_another_name(machine: PolicyMachine, forbidden: str) -> None:
    folder = machine.skill("deploy")
    folder.rename(folder.with_name("acme"))
    machine.configure('[profiles.folders]\nname_source = "directory"\n[profiles.fields]\nname_source = "frontmatter"\n')
    machine.write(f'[skills]\nforbidden = ["{forbidden}"]\n')

    for profile, name in (("folders", "acme"), ("fields", "deploy")):
        for words in (("show", name), ("read", f"skill://{name}/SKILL.md"), ("show", str(folder.with_name("acme")))):
            ended = machine.run(*words, "--profile", profile)
            assert (ended.status, FORBIDDEN in ended.err) == (4, True), (profile, words, ended)
        assert name not in machine.run("prompt", "--profile", profile).out
        said = said_by(
            machine,
            f"""
shelf = open_shelf(home=os.environ["HOME"], profile={profile!r}, trust="all")
session = shelf.session("full-auto")
tell("call", lambda: session.call("skill_load", {{"name": {name!r}}}).error)
tell("load", lambda: shelf.load({name!r}))
""",
        )
        assert all(FORBIDDEN in text for text in said.values()), said


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("/srv/*/deploy", "a path has no patterns"),
        ("SHA256:" + "0" * 64, "64 hexadecimal digits"),
        ("sha256:" + "A" * 64, "64 hexadecimal digits"),
    ],
)
def test_an_entry_that_would_match_nothing_makes_the_policy_unusable(
    machine: PolicyMachine, entry: str, reason: str
) -> None:
    machine.write(f'[skills]\nforbidden = ["{entry}"]\n')

    ended = machine.run("prompt")

    assert (ended.status, "line 2: `skills.forbidden`" in ended.err, reason in ended.err) == (4, True, True)
    machine.write('[permissions]\ndeny = [{ tool = "skill_load", path = "/srv/*" }]\n')
    assert "a path has no patterns" in machine.run("prompt").err


def test_a_denied_path_may_name_the_file_and_finds_a_hard_link_to_it(machine: PolicyMachine) -> None:
    store = machine.skill("deploy", root=machine.base / "store")
    (machine.home / ".agents/skills/deploy").mkdir(parents=True)
    os.link(store / "SKILL.md", machine.home / ".agents/skills/deploy/SKILL.md")
    for path in (store, f"{store}/", store / "SKILL.md"):
        machine.write(f'[permissions]\ndeny = [{{ tool = "skill_load", path = "{path}" }}]\n')

        assert machine.run("list", "--json").json["skills"][0]["hidden"] == "denied", path


def test_the_picker_says_who_denies_a_skill_and_turns_nothing_on_or_off_against_the_policy(
    machine: PolicyMachine,
) -> None:
    for name in ("deploy", "guide", "notes"):
        machine.skill(name)
    machine.write('[skills]\nforbidden = ["deploy"]\nrequired = ["guide"]\n')

    said = said_by(
        machine,
        """
from contextlib import closing
from skillshelf.cli.picker.model import PickerModel
with closing(PickerModel(lambda: open_shelf(home=os.environ["HOME"]))) as model:
    for row in model.rows():
        tell(row.name, lambda: [line.text for line in model.describe(row)])
        tell(f"toggle {row.name}", lambda: model.toggle(row))
""",
    )

    assert f"models do not see it because of {FORBIDDEN}" in said["deploy"]
    assert said["toggle deploy"] == f"PermissionDenied: deploy is forbidden by the system policy ({FORBIDDEN})"
    assert said["toggle guide"].endswith(f"the system policy requires it ({POLICY}: skills.required)")
    assert said["toggle notes"].startswith("notes is disabled")
    written = (machine.home / ".config/skillshelf/config.toml").read_text(encoding="utf-8")
    assert "notes" in written
    assert "guide" not in written


# Required skills ----------------------------------------------------------------------------------


def test_no_rule_of_a_session_takes_a_required_skill_away(machine: PolicyMachine) -> None:
    machine.skill("guide")
    machine.skill("notes")
    machine.write('[skills]\nrequired = ["guide"]\n')

    said = said_by(
        machine,
        """
shelf = open_shelf(home=os.environ["HOME"])
for rule in ({"skill_name": "guide"}, {"skill_name": "g*"}, {}):
    deny = {"deny": [{"tool": "skill_load", **rule}]}
    tell(str(rule), lambda: shelf.session(deny, journal="run.jsonl").system_prompt())
tell("other", lambda: shelf.session({"deny": [{"tool": "skill_load", "skill_name": "notes"}]}).system_prompt())
""",
    )

    assert "guide" in said.pop("other")
    for text in said.values():
        assert text.startswith("PermissionDenied: no model is served: the required skill guide is hidden"), text
    assert machine.run("log", "verify", "run.jsonl").status == 0


def test_no_budget_takes_a_required_skill_away(machine: PolicyMachine) -> None:
    for number in range(40):
        machine.skill(f"notes-{number:02}")
    machine.skill("zebra")
    machine.write('[skills]\nrequired = ["zebra"]\n')

    machine.configure("[skills.initial]\nmax_tokens = 120\n")
    small = machine.run("prompt")
    machine.configure("[skills.initial]\nmax_tokens = 1\n")
    none = machine.run("prompt")

    assert (small.status, "<name>zebra</name>" in small.out, "<omitted" in small.out) == (0, True, True)
    assert (none.status, f"{POLICY}: skills.required" in none.err) == (4, True)


# Registries ---------------------------------------------------------------------------------------

REGISTRY = """
from skillshelf.adapters.loaders import SkillLoader
from skillshelf.adapters.registry import SkillRegistry, SkillTool
folder = sys.argv[1]
full = SkillLoader.load_full(folder)
registry, active = SkillRegistry(), SkillRegistry()
registry.register(SkillLoader.load_metadata(folder))
active.register_active(full)
open("/etc/skillshelf/policy.toml", "w").write(sys.argv[2])
tell("available", registry.generate_available_skills_prompt)
tell("active", active.generate_active_skills_prompt)
tell("activate", lambda: registry.activate("deploy"))
tell("tool", lambda: SkillTool(registry).call("deploy"))
"""


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('[skills]\nforbidden = ["deploy"]\n', "skills.forbidden"),
        ('[permissions]\ndeny = [{ tool = "skill_load", skill_name = "deploy" }]\n', "permissions.deny"),
        ('[trust]\nfolders_below = ["/srv/approved"]\n', "trust.folders_below"),
        ('[skills]\nrequired = ["guide"]\n', "skills.required"),
        ("broken", "not valid TOML"),
    ],
)
def test_a_registry_gives_models_nothing_that_the_policy_denies(machine: PolicyMachine, text: str, key: str) -> None:
    folder = machine.skill("deploy", root=machine.base / "elsewhere", body="the secret text\n")
    machine.write("")

    said = said_by(machine, REGISTRY, str(folder), text)

    assert "deploy" not in said["available"]
    assert "secret" not in said["active"]
    for label in ("activate", "tool"):
        assert said[label].startswith("PermissionDenied: "), said
        assert key in said[label]


def test_a_registry_works_under_a_policy_that_is_about_something_else(machine: PolicyMachine) -> None:
    folder = machine.skill("deploy", root=machine.base / "elsewhere", body="the secret text\n")
    machine.write("")
    rules = f'[skills]\nforbidden = ["other"]\n[run]\nallow = false\n[trust]\nfolders_below = ["{machine.base}"]\n'

    said = said_by(machine, REGISTRY, str(folder), rules)

    assert "<name>deploy</name>" in said["available"]
    assert all("secret" in said[label] for label in ("active", "activate", "tool"))
