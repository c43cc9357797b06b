"""Rules name a tool, a name, a place and files: what each form reaches, from each source and on each surface."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.policies import put
from support.rpcclient import rpc_in_process
from support.trees import PROJECT_ROOTS, Machine, write_skill

from skillshelf import ConfigurationError, Policy, Session
from skillshelf.catalog.tree import skill_tree
from skillshelf.config.permission_rules import PermissionRule, rule_to_dict
from skillshelf.session.effects import real_effects

PROFILES = sorted(PROJECT_ROOTS)
CALLS: dict[str, tuple[str, Callable[[str], dict[str, str]]]] = {
    "swiftagent": ("activate_skill", lambda name: {"skillName": name}),
    "mycodeagent": ("Skill", lambda name: {"name": name}),
    "omp": ("read", lambda name: {"path": f"skill://{name}"}),
}
NAMED: tuple[str, Callable[[str], dict[str, str]]] = ("skill_load", lambda name: {"name": name})


def verdict(session: Session, name: str = "stranger") -> str:
    """The decision on a load of a skill, in the words of the profile."""
    tool, arguments = CALLS.get(session.profile.name, NAMED)
    return session.decide(tool, arguments(name)).verdict


def toml(kind: str, *rules: PermissionRule) -> str:
    """A configuration file with these rules."""
    tables = (", ".join(f"{key} = {json.dumps(value)}" for key, value in rule_to_dict(rule).items()) for rule in rules)
    return f"permissions.{kind} = [{', '.join('{ ' + table + ' }' for table in tables)}]\n"


# Every form ----------------------------------------------------------------------------------------


class Form(NamedTuple):
    """One rule by its members, and what it means for `stranger`: allowed if trusted or not, denied."""

    members: dict[str, str]
    trusted: bool
    untrusted: bool
    denied: bool


FORMS = {
    "tool": Form({}, True, False, True),
    "name": Form({"skill_name": "stranger"}, True, False, True),
    "name in other letters": Form({"skill_name": "STRANGER"}, False, False, True),
    "name in wide letters": Form({"skill_name": "ｓｔｒａｎｇｅｒ"}, False, False, True),
    "name with an invisible letter": Form({"skill_name": "stran\u200bger"}, False, False, True),
    "name with a blank": Form({"skill_name": "stranger "}, False, False, True),
    "pattern of names": Form({"skill_name": "Stran*"}, False, False, True),
    "another name": Form({"skill_name": "strange"}, False, False, False),
    "its folder": Form({"path": "{skill}"}, True, True, True),
    "its file": Form({"path": "{skill}/SKILL.md"}, True, True, True),
    "a folder above": Form({"path": "{repo}"}, True, True, True),
    "a link to a folder above": Form({"path": "{link}"}, True, True, True),
    "a folder with the same beginning": Form({"path": "{skill}-x"}, False, False, False),
    "a folder beside": Form({"path": "{base}/other"}, False, False, False),
    "a folder that is not there": Form({"path": "{base}/nowhere"}, False, False, False),
    "its files": Form({"tree": "{tree}"}, True, True, True),
    "other files": Form({"tree": f"sha256:{'0' * 64}"}, False, False, False),
    "name and folder": Form({"skill_name": "stranger", "path": "{repo}"}, True, True, True),
    "another name and its folder": Form({"skill_name": "other", "path": "{repo}"}, False, False, False),
    "other letters and its folder": Form({"skill_name": "Stranger", "path": "{repo}"}, False, False, True),
    "name and a folder beside": Form({"skill_name": "stranger", "path": "{base}/other"}, False, False, False),
    "name and files": Form({"skill_name": "stranger", "tree": "{tree}"}, True, True, True),
    "another name and its files": Form({"skill_name": "other", "tree": "{tree}"}, False, False, False),
    "folder and files": Form({"path": "{repo}", "tree": "{tree}"}, True, True, True),
    "folder and other files": Form({"path": "{repo}", "tree": f"sha256:{'0' * 64}"}, False, False, False),
    "a folder beside and its files": Form({"path": "{base}/other", "tree": "{tree}"}, False, False, False),
    "all": Form({"skill_name": "stranger", "path": "{skill}", "tree": "{tree}"}, True, True, True),
}


def the_rule(machine: Machine, form: Form, *, profile: str = "standard", tool: str | None = None) -> PermissionRule:
    """Put the stranger on disk, and return the rule of a form."""
    skill = put(machine.repo / PROJECT_ROOTS[profile], "stranger").parent
    link = machine.base / "link"
    if not link.is_symlink():
        link.symlink_to(machine.repo)
    words = {"skill": skill, "repo": machine.repo, "base": machine.base, "link": link}
    members = dict(form.members)
    if "tree" in members:
        members["tree"] = members["tree"].replace("{tree}", skill_tree(os.path.realpath(skill)).digest or "")
    if "path" in members:
        members["path"] = members["path"].format(**words)
    return PermissionRule(tool or ("skill_read" if profile == "omp" else "skill_load"), **members)


@pytest.mark.req("C-87", "C-90")
@pytest.mark.parametrize("form", FORMS)
def test_a_rule_allows_and_denies_what_all_its_members_mean(machine: Machine, form: str) -> None:
    rule = the_rule(machine, FORMS[form])
    run = rule._replace(tool="skill_run")
    asks, all_trusted = machine.shelf(trust="ask"), machine.shelf(trust="all")
    to_run = ("skill_run", {"name": "stranger", "script": "hello.sh"})

    assert (verdict(asks.session({"allow": [rule]})) == "allow") is FORMS[form].untrusted
    assert (asks.session({"allow": [run]}).decide(*to_run).verdict == "allow") is FORMS[form].untrusted
    assert (all_trusted.session({"allow": [run]}).decide(*to_run).verdict == "allow") is FORMS[form].trusted
    for shelf in (asks, all_trusted):
        denied = shelf.session({"deny": [rule], "allow": [PermissionRule("skill_load", path=str(machine.repo))]})
        assert (verdict(denied) == "deny") is FORMS[form].denied
        assert (denied.decide(*to_run).verdict == "deny") is FORMS[form].denied


CHOSEN = ("name", "name in other letters", "its folder", "its files", "other files", "folder and files")


@pytest.mark.parametrize("form", CHOSEN)
@pytest.mark.parametrize("profile", PROFILES)
def test_a_rule_means_the_same_in_every_profile(machine: Machine, profile: str, form: str) -> None:
    rule = the_rule(machine, FORMS[form], profile=profile)
    shelf = machine.shelf(profile, trust="ask")
    tool, arguments = CALLS.get(profile, NAMED)

    if (profile, form) != ("codelia", "name in other letters"):
        allowed = shelf.session({"allow": [rule]}).call(tool, arguments("stranger"))
        assert allowed.ok is FORMS[form].untrusted
    denied = shelf.session({"deny": [rule]}, confirm=lambda *_: True).call(tool, arguments("stranger"))

    assert denied.ok is not FORMS[form].denied


@pytest.mark.req("C-88")
@pytest.mark.parametrize("name", ["Deploy", "my_skill", "a.b", "Repo Review", "*", "デプロイ"])
def test_a_rule_takes_any_name_that_the_catalog_can_hold(machine: Machine, name: str) -> None:
    text = f"---\nname: {json.dumps(name)}\ndescription: Does x.\n---\n"
    write_skill(machine.repo / ".agents/skills", name, text, folder="x")
    rule = PermissionRule("skill_load", name)
    machine.configure(toml("deny", rule))
    shelf = machine.shelf()

    assert [skill.hidden for skill in shelf.catalog.skills] == ["denied"]
    assert verdict(shelf.session(), name) == "deny"
    machine.configure(toml("allow", rule._replace(tool="skill_run")))
    (machine.repo / ".agents/skills/x/scripts").mkdir()
    (machine.repo / ".agents/skills/x/scripts/hello.sh").write_text("#!/bin/sh\n")
    session = machine.shelf().session()
    assert session.decide("skill_run", {"name": name, "script": "hello.sh"}).verdict == "allow"


@pytest.mark.req("C-88")
def test_codelia_refuses_an_allow_rule_with_another_name_than_kebab_case(machine: Machine) -> None:
    rule = PermissionRule("skill_load", "Deploy")
    with pytest.raises(ConfigurationError, match="kebab-case"):
        machine.shelf("codelia").session({"allow": [rule]})
    machine.shelf("codelia").session({"deny": [rule]})
    path = machine.configure(f"\n{toml('allow', rule)}")

    with pytest.raises(ConfigurationError) as caught:
        machine.shelf("codelia")

    assert str(caught.value).startswith(f"{path}, line 2: `permissions.allow` holds skill_name 'Deploy'")
    machine.shelf()


@pytest.mark.parametrize("tool", ["skill_read", "read", "READ"])
@pytest.mark.parametrize("profile", ["standard", "rip", "omp"])
def test_a_rule_for_the_files_of_a_skill_denies_them_by_any_name_of_the_tool(
    machine: Machine, profile: str, tool: str
) -> None:
    put(machine.repo / PROJECT_ROOTS[profile], "stranger")
    rule = PermissionRule(tool, "Stranger")
    name, key = ("read", "path") if profile == "omp" else ("skill_read", "uri")
    call = (name, {key: "skill://stranger/scripts/hello.sh"})

    assert machine.shelf(profile).session().call(*call).ok
    assert not machine.shelf(profile).session({"deny": [rule]}).call(*call).ok


def test_a_rule_for_a_tool_of_the_host_alone_leaves_the_files_of_skills(machine: Machine) -> None:
    put(machine.repo / ".agents/skills", "stranger")
    session = machine.shelf().session({"deny": [{"tool": "read"}]})

    assert session.call("skill_read", {"uri": "skill://stranger/scripts/hello.sh"}).ok
    assert session.decide("read", {"path": "x"}).verdict == "deny"


@pytest.mark.parametrize("profile", ["standard", "lab"])
def test_an_answer_about_a_skill_of_any_name_is_remembered_and_leaves_a_file_that_can_be_read(
    machine: Machine, profile: str
) -> None:
    lab = '[profiles.lab]\nextends = "codelia"\nrules = { "name-pattern" = "warn", "name-directory" = "off" }\n'
    path = machine.configure(lab)
    write_skill(machine.repo / ".agents/skills", "Repo Review", folder="x")
    shelf = machine.shelf(profile, trust="ask")
    call = ("skill_load", {"name": "Repo Review"})

    assert shelf.session(confirm=lambda *_: "remember").call(*call).ok
    assert machine.shelf(profile, trust="ask").session().call(*call).ok
    assert path.read_text() == lab


# Every source --------------------------------------------------------------------------------------


def _in_user_file(machine: Machine, kind: str, rule: PermissionRule) -> Session:
    machine.configure(toml(kind, rule))
    return machine.shelf(trust="ask").session()


def _in_named_file(machine: Machine, kind: str, rule: PermissionRule) -> Session:
    path = machine.base / "named.toml"
    path.write_text(toml(kind, rule))
    return machine.shelf(trust="ask", config=path).session()


def _in_mapping(machine: Machine, kind: str, rule: PermissionRule) -> Session:
    return machine.shelf(trust="ask", config={"permissions": {kind: [rule_to_dict(rule)]}}).session()


def _in_project_file(machine: Machine, kind: str, rule: PermissionRule) -> Session:
    (machine.repo / "skillshelf.toml").write_text(toml(kind, rule))
    return machine.shelf(trust="ask").session()


SOURCES: dict[str, Callable[[Machine, str, PermissionRule], Session]] = {
    "the user's file": _in_user_file,
    "--config": _in_named_file,
    "config as a mapping": _in_mapping,
    "a policy as a mapping": lambda m, kind, rule: m.shelf(trust="ask").session({kind: [rule_to_dict(rule)]}),
    "a Policy": lambda m, kind, rule: m.shelf(trust="ask").session(Policy(**{kind: (rule,)})),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("form", ["name", "its folder", "its files"])
@pytest.mark.parametrize("source", SOURCES)
def test_a_rule_counts_from_every_source_of_the_user(machine: Machine, source: str, form: str) -> None:
    rule = the_rule(machine, FORMS[form])

    assert (verdict(SOURCES[source](machine, "allow", rule)) == "allow") is FORMS[form].untrusted
    assert verdict(SOURCES[source](machine, "deny", rule)) == "deny"


@pytest.mark.parametrize("trust", ["all", "ask", "user"])
@pytest.mark.parametrize("kind", ["allow", "deny"])
@pytest.mark.parametrize("form", ["its folder", "its files"])
def test_a_rule_about_a_place_or_files_does_not_count_in_a_project_and_is_named(
    machine: Machine, form: str, kind: str, trust: Any
) -> None:
    rule = the_rule(machine, FORMS[form], tool="skill_run")
    path = machine.repo / "skillshelf.toml"
    path.write_text(toml(kind, rule))
    shelf = machine.shelf(trust=trust)

    member = "path" if rule.path else "tree"
    warned = [warning for warning in shelf.settings.warnings if member in warning.message or "trust" in warning.message]
    assert (shelf.settings.allow, shelf.settings.deny) == ((), ())
    assert [(warning.path, warning.rule, warning.line) for warning in warned] == [(str(path), "config-untrusted", 1)]
    assert shelf.session().decide("skill_run", {"name": "stranger", "script": "hello.sh"}).verdict == "confirm"


@pytest.mark.parametrize("written", ["../../repo", "./x/../../../repo", "~/link"])
def test_a_relative_path_starts_from_the_folder_of_its_file(machine: Machine, written: str) -> None:
    put(machine.repo / ".agents/skills", "stranger")
    (machine.home / "link").symlink_to(machine.repo)
    folder = machine.base / "a" / "conf"
    folder.mkdir(parents=True)
    (machine.base / "a" / "repo").symlink_to(machine.repo)
    (folder / "c.toml").write_text(toml("allow", PermissionRule("skill_load", path=written)))

    assert verdict(machine.shelf(trust="ask", config=folder / "c.toml").session()) == "allow"


def test_a_relative_path_from_python_starts_from_the_working_directory(machine: Machine) -> None:
    put(machine.repo / ".agents/skills", "stranger")
    shelf = machine.shelf(trust="ask")

    assert verdict(shelf.session({"allow": [{"tool": "skill_load", "path": ".agents"}]})) == "allow"
    assert verdict(shelf.session({"allow": [{"tool": "skill_load", "path": "agents"}]})) == "confirm"
    assert verdict(shelf.session(shelf.session({"deny": [{"tool": "skill_load", "path": "."}]}).policy)) == "deny"


# Places --------------------------------------------------------------------------------------------


def test_a_folder_does_not_allow_scripts_beside_a_link_into_it(machine: Machine) -> None:
    good = put(machine.repo / "good", "stranger")
    linked = put(machine.repo / ".agents/skills", "stranger")
    linked.unlink()
    linked.symlink_to(good)
    shelf = machine.shelf(trust="ask")
    session = shelf.session({"allow": [{"tool": "skill_run", "path": str(good.parent)}]})

    assert [skill.real_path for skill in shelf.catalog.skills] == [str(good)]
    assert session.decide("skill_run", {"name": "stranger", "script": "hello.sh"}).verdict == "confirm"


def test_a_denied_folder_denies_what_is_linked_into_it_and_what_it_links_to(machine: Machine) -> None:
    real = put(machine.base / "elsewhere", "stranger").parent
    root = machine.home / ".agents/skills"
    root.mkdir(parents=True)
    (root / "stranger").symlink_to(real)
    shelf = machine.shelf()

    for folder in (root, real, real.parent, machine.home):
        assert verdict(shelf.session({"deny": [{"tool": "skill_load", "path": str(folder)}]})) == "deny"
        machine.configure(toml("deny", PermissionRule("skill_load", path=str(folder))))
        assert [skill.hidden for skill in machine.catalog().skills] == ["denied"]


# Files ---------------------------------------------------------------------------------------------


def test_a_rule_for_files_ends_with_any_change_of_them(machine: Machine) -> None:
    rule = the_rule(machine, FORMS["its files"])
    session = machine.shelf(trust="ask").session({"allow": [rule, rule._replace(tool="skill_read")]})
    folder = machine.repo / ".agents/skills/stranger"

    before = session.call("skill_load", {"name": "stranger"})
    (folder / "scripts/hello.sh").write_text("#!/bin/sh\necho other\n")
    after = session.call("skill_read", {"uri": "skill://stranger/scripts/hello.sh"})

    assert before.ok
    assert after.error is not None
    assert after.error.code == "denied"


@pytest.mark.parametrize("kind", ["allow", "deny"])
def test_what_a_rule_for_files_was_compared_with_is_what_is_loaded(machine: Machine, kind: str) -> None:
    rule = the_rule(machine, FORMS["its files" if kind == "allow" else "other files"])
    file = machine.repo / ".agents/skills/stranger/SKILL.md"
    effects = real_effects()

    def load_after_a_swap(*given: Any) -> Any:
        file.write_text(file.read_text().replace("Body", "Evil"))
        return effects.load(*given)

    shelf = machine.shelf(trust="ask" if kind == "allow" else "all")
    session = Session(shelf, policy={kind: [rule]}, effects=effects._replace(load=load_after_a_swap))
    result = session.call("skill_load", {"name": "stranger"})

    assert result.error is not None
    assert result.error.code == "denied"
    assert "Evil" not in result.text


def test_files_that_cannot_be_compared_are_denied_and_not_allowed(machine: Machine) -> None:
    rule = the_rule(machine, FORMS["its files"])
    effects = real_effects()
    (machine.repo / ".agents/skills/stranger/link").symlink_to("SKILL.md")

    def fail(skill: Any) -> Any:
        from skillshelf.errors import FileReadError

        raise FileReadError(skill.path, PermissionError(13, "no"))

    def decided(kind: str, **changed: Any) -> str:
        shelf = machine.shelf(trust="ask")
        return verdict(Session(shelf, policy={kind: [rule]}, effects=effects._replace(**changed)))

    # A link in a skill means that there is no digest: these are not the files of the rule.
    assert [decided("allow"), decided("deny")] == ["confirm", "confirm"]
    assert [decided("allow", tree=fail), decided("deny", tree=fail)] == ["confirm", "deny"]


def test_files_are_read_for_a_rule_only_if_it_could_decide(machine: Machine) -> None:
    rule = the_rule(machine, FORMS["its files"])
    write_skill(machine.home / ".agents/skills", "mine")
    read = []
    effects = real_effects()

    def tree(skill: Any) -> Any:
        read.append(skill.name)
        return effects.tree(skill)

    rules = {"allow": [rule, rule._replace(skill_name="other")], "deny": [rule._replace(skill_name="third")]}
    session = Session(machine.shelf(trust="ask"), policy=rules, effects=effects._replace(tree=tree))
    session.call("skill_search", {"query": "mine"})
    session.system_prompt()
    nothing = list(read)
    session.call("skill_load", {"name": "stranger"})

    assert (nothing, read) == ([], ["stranger"])


# Every surface -------------------------------------------------------------------------------------


def _by_rpc(machine: Machine) -> bool:
    with rpc_in_process(machine) as client:
        client.confirm = lambda question: False
        try:
            client.ask("skills.load", name="stranger")
        except AssertionError:
            return False
        return True


def _command(session: Session) -> bool:
    result = session.command("/skill:Stranger now")
    assert result is not None
    return result.ok


def _raises_not(call: Callable[[], Any]) -> bool:
    from skillshelf import PermissionDenied

    try:
        call()
    except PermissionDenied:
        return False
    return True


SURFACES: dict[str, Callable[[Machine], bool]] = {
    "a call": lambda m: m.shelf(trust="ask").session().call("skill_load", {"name": "stranger"}).ok,
    "a call by path": lambda m: (
        m.shelf(trust="ask").session().call("skill_load", {"path": ".agents/skills/stranger"}).ok
    ),
    "a read": lambda m: m.shelf(trust="ask").session().call("skill_read", {"uri": "skill://STRANGER"}).ok,
    "a load for a model": lambda m: _raises_not(
        lambda: m.shelf(trust="ask").session().load("stranger", for_model=True)
    ),
    "a command": lambda m: _command(m.shelf(trust="ask").session()),
    "an activation": lambda m: _raises_not(lambda: m.shelf(trust="ask").session().activate("stranger")),
    "a preload": lambda m: _raises_not(lambda: m.shelf(trust="ask").session(preload=["stranger"])),
    "rpc": _by_rpc,
}


@pytest.mark.parametrize("form", ["nothing", "name", "its folder", "its files", "folder and other files"])
@pytest.mark.parametrize("surface", SURFACES)
def test_a_rule_reaches_every_surface(machine: Machine, surface: str, form: str) -> None:
    rule = the_rule(machine, FORMS.get(form, FORMS["tool"]))
    if form != "nothing":
        machine.configure(toml("allow", rule, rule._replace(tool="skill_read")))
    allowed = SURFACES[surface](machine)
    everything = PermissionRule("skill_load", path="/")
    machine.configure("" if form == "nothing" else toml("deny", rule) + toml("allow", everything))
    denied = SURFACES[surface](machine)

    assert allowed is (form in FORMS and FORMS[form].untrusted)
    assert denied is (form in FORMS and not FORMS[form].denied and surface != "a read")


def test_a_person_is_shown_what_is_denied_and_a_mention_of_it_is_none(machine: Machine) -> None:
    machine.configure(toml("deny", the_rule(machine, FORMS["its files"])))

    assert machine.run("show", "Stranger").returncode == 0
    assert machine.shelf(trust="all").session().resolve_mentions("use $stranger").skills == ()
    assert "stranger" not in machine.shelf(trust="all").session().system_prompt()


@pytest.mark.slow
@pytest.mark.parametrize(("form", "runs"), [("name", False), ("its folder", True), ("its files", True)])
def test_a_script_runs_without_a_question_only_by_a_rule_for_its_place_or_its_files(
    machine: Machine, form: str, runs: bool
) -> None:
    rule = the_rule(machine, FORMS[form], tool="skill_run")
    machine.configure(toml("allow", rule) + "permissions.run.unsandboxed = true\n")

    done = machine.run("run", "STRANGER", "hello.sh")

    assert (done.returncode, done.stdout) == ((0, "hello\n") if runs else (4, ""))
    if form == "name":
        assert f"skillshelf trust --home {machine.home}" in done.stderr


def test_a_rule_by_name_that_does_not_reach_a_stranger_is_named_once_with_the_command(machine: Machine) -> None:
    machine.configure(toml("allow", the_rule(machine, FORMS["name"])))
    events: list[Any] = []
    session = machine.shelf(trust="ask").session(on_event=events.append)

    results = [session.call("skill_load", {"name": "Stranger"}) for _ in range(2)]

    warned = [event.detail for event in events if getattr(event, "kind", None) == "rule-untrusted"]
    assert len(warned) == 1
    assert f"skillshelf trust {machine.repo}" in warned[0]
    # A model is not told where the project lies; the user is.
    assert "counts for trusted skills only" in results[0].text
    assert str(machine.repo) not in results[0].text
    asked: list[str] = []

    def no(tool: str, name: str, reason: str) -> bool:
        asked.append(reason)
        return False

    other = machine.shelf(trust="ask").session(confirm=no)
    assert str(machine.repo) not in other.call("skill_load", {"name": "Stranger"}).text
    assert f"to trust this project: skillshelf trust {machine.repo}" in asked[0]
    found = session.call("skill_search", {"query": "stranger"})
    assert "skillshelf trust, in its folder" in found.text
    assert str(machine.repo) not in found.text


# Replay --------------------------------------------------------------------------------------------


def test_a_session_with_rules_for_places_and_files_is_repeated_from_its_journal(machine: Machine) -> None:
    import skillshelf

    rule = the_rule(machine, FORMS["all"])
    rules = {"allow": [rule], "deny": [rule._replace(tool="skill_run"), PermissionRule("skill_load", path="/nowhere")]}
    journal = machine.base / "run.jsonl"
    machine.configure(toml("deny", rule._replace(tool="skill_read"), PermissionRule("skill_load", "Other")))
    with machine.shelf(trust="ask").session(rules, journal=journal, keep=True) as session:
        assert session.call("skill_load", {"name": "stranger"}).ok
        assert not session.call("skill_run", {"name": "stranger", "script": "hello.sh"}).ok
        assert not session.call("skill_read", {"uri": "skill://Stranger/scripts/hello.sh"}).ok

    assert skillshelf.replay(journal, home=machine.home, env={}, against="disk").differences == ()
    shutil.rmtree(machine.repo / ".agents")
    assert skillshelf.replay(journal, home=machine.home, env={}, against="kept").differences == ()


def test_the_policy_of_a_session_is_given_whole(machine: Machine) -> None:
    rule = the_rule(machine, FORMS["all"])
    started: list[Any] = []
    machine.shelf().session({"deny": [rule]}, on_event=started.append).close()

    assert started[0].policy["deny"] == [rule_to_dict(rule)]


# The host's tools ------------------------------------------------------------------------------------


def test_a_rule_about_a_place_or_files_counts_for_a_tool_of_the_host_while_such_a_skill_is_active(
    machine: Machine,
) -> None:
    folder = Path(the_rule(machine, FORMS["its folder"]).path or "")
    tree = the_rule(machine, FORMS["its files"]).tree
    load = {"tool": "skill_load", "path": str(folder)}
    for member in ({"path": str(folder)}, {"tree": tree}):
        shelf = machine.shelf(trust="ask")
        allowing = shelf.session({"allow": [load, {"tool": "Bash", **member}]})
        denying = shelf.session({"allow": [load], "deny": [{"tool": "bash", **member}]})
        before = [session.decide("Bash", {"command": "ls"}).verdict for session in (allowing, denying)]
        for session in (allowing, denying):
            assert session.call("skill_load", {"name": "stranger"}).ok
        after = [session.decide("Bash", {"command": "ls"}).verdict for session in (allowing, denying)]

        assert (before, after) == (["confirm", "confirm"], ["allow", "deny"])
