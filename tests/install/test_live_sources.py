"""Skills of live sources: what a source may say, when it is asked, and who may have its skills."""

from __future__ import annotations

import json
import sys
import threading
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.needs import needs_sandbox
from support.trees import Machine, write_skill

import skillshelf
from skillshelf import ExecutableFile, MemorySource, SourceEntry, SourceLimits
from skillshelf.catalog.remote import RemoteSkills
from skillshelf.catalog.source import is_remote
from skillshelf.catalog.store import listed_files, store_of
from skillshelf.catalog.tree import manifest_of, tree_digest
from skillshelf.config.approvals import add_approval, read_approvals
from skillshelf.config.system_policy import RECORDED, PolicyFile, policy_of
from skillshelf.errors import ConfigurationError, PermissionDenied, SkillError, SourceRefused, SourceUnreachable

TEXT = b"---\nname: brew\ndescription: Brew a good coffee\nallowed-tools: Bash\n---\nGrind. See references/water.md\n"
FILES = {
    "SKILL.md": TEXT,
    "references/water.md": b"hot\n",
    "scripts/grind.sh": ExecutableFile(b"#!/bin/sh\necho ground $1\nls\n"),
}
FIELDS = {"name": "brew", "description": "Brew a good coffee", "allowed-tools": "Bash"}
TREE = tree_digest(listed_files(FILES))
PATH = "source://cafe/brew/SKILL.md"


class LoggedSource(MemorySource):
    """A source in memory that keeps what it was asked; `says` is what its entries say of their files."""

    def __init__(self, files: Mapping[str, bytes] = FILES, label: str = "cafe", says: str = "manifest") -> None:
        super().__init__(label, {"brew": files})
        self.says = says
        self.log: list[Any] = []

    def list(self) -> list[SourceEntry]:
        self.log.append("list")
        left = {"manifest": (), "tree": ("manifest",), "nothing": ("manifest", "tree")}[self.says]
        without: Any = dict.fromkeys(left)
        return [entry._replace(**without) for entry in super().list()]

    def fetch(self, entry: SourceEntry, paths: Sequence[str], limits: SourceLimits) -> dict[str, bytes]:
        self.log.append(tuple(paths))
        return super().fetch(entry, paths, limits)


def approve(machine: Machine, tree: str = TREE, *, tool: str = "skill_load", origin: str = "cafe") -> None:
    add_approval(machine.shelf().environment, tool, "brew", None, tree, origin=origin)


def answers(*given: Any) -> tuple[Callable[..., Any], list[Any]]:
    """A user who answers so, and the questions that they are asked."""
    asked: list[Any] = []
    left = list(given)

    def confirm(tool: str, name: str, reason: str) -> Any:
        asked.append((tool, name, reason))
        return left.pop(0)

    return confirm, asked


# What a shelf has of it ---------------------------------------------------------------------------


@pytest.mark.req("C-110")
def test_a_source_is_asked_for_nothing_but_its_list_before_a_skill_is_used(machine: Machine) -> None:
    approve(machine)
    source = LoggedSource()
    shelf = machine.shelf(sources=[source])
    assert source.log == ["list"]

    session = shelf.session()
    assert [skill.name for skill in shelf.catalog.skills] == ["brew"]
    assert shelf.search("coffee").results[0].skill.path == PATH
    assert "Brew a good coffee" in shelf.prompt() == session.shelf.prompt()
    session.system_prompt(base="")
    session.tools()
    assert session.decide("skill_load", {"name": "brew"}).verdict == "allow"
    assert source.log == ["list"]

    shelf.refresh()
    assert source.log == ["list", "list"]


@pytest.mark.req("C-110")
def test_without_sources_nothing_of_this_is_even_imported(machine: Machine) -> None:
    known = {name: module for name, module in sys.modules.items() if "remote" in name or "live_source" in name}
    for name in known:
        del sys.modules[name]
    try:
        shelf = machine.shelf()
        assert (shelf.remote, shelf.catalog.skills) == (None, ())
        shelf.session().call("skill_search", {"query": "coffee"})
        assert not {"skillshelf.catalog.remote", "skillshelf.catalog.live_source"} & set(sys.modules)
    finally:
        sys.modules.update(known)


@pytest.mark.req("C-25")
def test_a_profile_with_closed_scopes_refuses_live_sources(machine: Machine) -> None:
    source = LoggedSource()
    with pytest.raises(ConfigurationError, match="codelia knows no scope for skills of live sources"):
        machine.shelf("codelia", sources=[source])
    assert source.log == []

    config = {"profiles": {"lab": {"extends": "codelia"}, "open": {"extends": "standard"}}}
    with pytest.raises(ConfigurationError, match="lab knows no scope"):
        machine.shelf("lab", sources=[source], config=config)
    assert machine.shelf("open", sources=[source], config=config).catalog.skills[0].scope == "remote"


def test_a_skill_of_a_source_says_where_it_comes_from(machine: Machine) -> None:
    (skill,) = machine.shelf(sources=[LoggedSource()]).catalog.skills
    assert skill.to_dict() == {
        "id": skill.id,
        "name": "brew",
        "description": "Brew a good coffee",
        "path": PATH,
        "dir": "source://cafe/brew",
        "scope": "remote",
        "source": "cafe",
        "mtime_ms": 0,
        "enabled": True,
        "trusted": False,
        "hidden": "untrusted",
        "hidden_by": "rule: not approved as it comes from its source",
        "origin": None,
        "tree": None,
        "frontmatter": FIELDS,
    }
    assert skillshelf.SkillMetadata.from_dict(skill.metadata.to_dict()).scope == "remote"


def test_the_catalog_reports_a_source_as_a_root(machine: Machine) -> None:
    roots = machine.shelf(sources=[LoggedSource(), MemorySource("empty", {})]).catalog.roots
    assert [tuple(root) for root in roots[-2:]] == [
        ("source://cafe", "remote", True, 1),
        ("source://empty", "remote", True, 0),
    ]


# Who may have it ----------------------------------------------------------------------------------


@pytest.mark.parametrize("trust", ["all", "ask", "user"])
def test_no_rule_of_trust_covers_a_skill_of_a_source(machine: Machine, trust: Any) -> None:
    source = LoggedSource()
    shelf = machine.shelf(sources=[source], trust=trust)
    session = shelf.session()
    assert shelf.prompt() == ""
    assert session.tools() == []
    assert session.call("skill_search", {"query": "coffee"}).data["results"] == []
    for tool, given in [("skill_load", {"name": "brew"}), ("skill_read", {"uri": "skill://brew/SKILL.md"})]:
        error = session.call(tool, given).error
        assert error is not None
        assert error.code == "denied", tool
    with pytest.raises(PermissionDenied, match="it comes from cafe, and nobody approved it"):
        shelf.load("brew")
    with pytest.raises(PermissionDenied):
        shelf.read("skill://brew/references/water.md")
    assert source.log == ["list"]


@pytest.mark.parametrize(
    "policy",
    [
        "full-auto",
        {"allow": [{"tool": "skill_load"}, {"tool": "skill_load", "skill_name": "brew"}]},
        {"allow": [{"tool": "skill_load", "path": "/"}]},
        {"allow": [{"tool": "skill_load", "path": "/dev/null"}]},
        {"allow": [{"tool": "skill_load", "path": "source://cafe/brew"}]},
        {"grant_from_skills": ["brew"]},
    ],
)
def test_no_policy_stands_for_an_approval(machine: Machine, policy: Any) -> None:
    source = LoggedSource()
    result = machine.shelf(sources=[source]).session(policy=policy).call("skill_load", {"name": "brew"})
    assert result.error is not None
    assert result.error.code == "denied"
    assert source.log == ["list"]


def test_a_rule_with_the_tree_allows_exactly_that_tree(machine: Machine) -> None:
    rule = {"tool": "skill_load", "tree": TREE}
    assert machine.shelf(sources=[LoggedSource()]).session({"allow": [rule]}).call("skill_load", {"name": "brew"}).ok
    other = LoggedSource({**FILES, "references/water.md": b"cold\n"})
    assert not machine.shelf(sources=[other]).session({"allow": [rule]}).call("skill_load", {"name": "brew"}).ok


def test_an_approval_has_the_label_and_the_tree(machine: Machine) -> None:
    approve(machine, origin="bar")
    approve(machine, tree="sha256:" + "0" * 64)
    approve(machine, tool="skill_run")
    environment = machine.shelf().environment
    add_approval(environment, "skill_load", "brew", "/somewhere/brew/SKILL.md", TREE)
    add_approval(environment, "skill_load", "brew", PATH, TREE, origin="cafe")
    assert machine.catalog(sources=[LoggedSource()]).skills[0].hidden == "untrusted"

    approve(machine)
    (skill,) = machine.catalog(sources=[LoggedSource()]).skills
    assert (skill.hidden, skill.trusted, skill.hidden_by) == (None, True, None)


def test_an_answer_to_remember_is_an_approval_of_these_files_from_this_source(machine: Machine) -> None:
    source = LoggedSource()
    shelf = machine.shelf(sources=[source])
    confirm, asked = answers("remember")
    session = shelf.session(confirm=confirm)
    assert session.call("skill_load", {"name": "brew"}).ok
    assert session.call("skill_read", {"uri": "skill://brew/references/water.md"}).ok
    assert [(tool, name) for tool, name, _ in asked] == [("skill_load", "brew")]
    assert asked[0][2].endswith(f"it comes from cafe: {TREE}, 3 files with {sum(map(len, FILES.values()))} bytes")
    (approval,) = read_approvals(shelf.environment)
    assert approval._replace(at="") == ("skill_load", "brew", None, TREE, "cafe", "")

    assert shelf.refresh() is True
    assert "Brew a good coffee" in shelf.prompt()
    assert shelf.load("brew").data == TEXT
    assert machine.shelf(sources=[LoggedSource(label="bar")]).catalog.skills[0].hidden == "untrusted"


def test_a_yes_counts_once_and_a_no_fetches_nothing(machine: Machine) -> None:
    source = LoggedSource()
    shelf = machine.shelf(sources=[source])
    confirm, asked = answers(False, True, False)
    session = shelf.session(confirm=confirm)
    assert not session.call("skill_load", {"name": "brew"}).ok
    assert source.log == ["list"]
    assert session.call("skill_load", {"name": "brew"}).ok
    assert not session.call("skill_load", {"name": "brew"}).ok
    assert len(asked) == 3
    assert read_approvals(shelf.environment) == []
    assert not Path(store_of(shelf.environment).folder).exists()


@pytest.mark.parametrize("change", ["text", "file", "mode", "added", "removed"])
def test_any_change_of_the_files_takes_the_approval_back(machine: Machine, change: str) -> None:
    approve(machine)
    changed: dict[str, dict[str, bytes]] = {
        "text": {**FILES, "SKILL.md": TEXT + b"Then drink.\n"},
        "file": {**FILES, "references/water.md": b"cold\n"},
        "mode": {**FILES, "references/water.md": ExecutableFile(b"hot\n")},
        "added": {**FILES, "extra.md": b""},
        "removed": {path: data for path, data in FILES.items() if path != "references/water.md"},
    }
    source = LoggedSource()
    shelf = machine.shelf(sources=[source])
    before = shelf.catalog
    source.skills = {"brew": changed[change]}
    assert shelf.refresh() is True
    assert [catalog.skills[0].hidden for catalog in (before, shelf.catalog)] == [None, "untrusted"]
    assert shelf.prompt() == ""


def test_the_settings_of_the_user_hold_for_skills_of_sources_too(machine: Machine) -> None:
    approve(machine)

    def skills(**keys: Any) -> Any:
        catalog = machine.catalog(sources=[LoggedSource()], config=keys)
        return [skill.hidden for skill in catalog.skills], [(one.path, one.reason) for one in catalog.filtered]

    assert skills(skills={"disabled": ["Brew"]}) == (["disabled"], [])
    assert skills(skills={"ignored": ["br*"]}) == ([], [(PATH, "ignored")])
    assert skills(skills={"include": ["other"]}) == ([], [(PATH, "not-included")])
    assert skills(permissions={"deny": [{"tool": "skill_load", "skill_name": "brew"}]}) == (["denied"], [])
    assert skills(permissions={"deny": [{"tool": "skill_load", "tree": TREE}]}) == (["denied"], [])
    assert skills(skills={"enabled": False}) == ([], [])


def test_a_system_policy_can_keep_sources_away(machine: Machine) -> None:
    approve(machine)
    shelf = machine.shelf(sources=[LoggedSource()])
    assert shelf.remote is not None
    for file, hidden, errors in [
        (PolicyFile("/etc/p.toml", sources_denied=("ca*",)), [], 1),
        (PolicyFile("/etc/p.toml", sources_allowed=("git+https://*",)), [], 1),
        (PolicyFile("/etc/p.toml", folders_below=("/srv",)), ["untrusted"], 0),
        (PolicyFile("/etc/p.toml", forbidden=(TREE,)), ["denied"], 0),
        (PolicyFile("/etc/p.toml", lock_required=True), ["denied"], 0),
        (PolicyFile("/etc/p.toml", sources_allowed=("ca*",)), [None], 0),
    ]:
        settings = shelf.settings._replace(system=policy_of([file], RECORDED))
        bare = machine.shelf().catalog
        catalog = shelf.remote.merged(bare, shelf.profile, settings)
        assert ([skill.hidden for skill in catalog.skills], len(catalog.errors)) == (hidden, errors), file


# Names --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["brew", "Brew", "BREW"])
@pytest.mark.parametrize("approved", [True, False])
def test_a_local_skill_keeps_its_name_and_stays_unambiguous(machine: Machine, name: str, approved: bool) -> None:
    if approved:
        approve(machine)
    write_skill(machine.repo / ".agents/skills", name, f"---\nname: {name}\ndescription: Mine\n---\nmine\n")
    config = {"profiles": {"lab": {"extends": "standard", "collision": "keep-all"}}}
    for profile in ("standard", "lab", "rip", "omp"):
        shelf = machine.shelf(profile, sources=[LoggedSource()], config=config)
        if [skill.scope for skill in shelf.catalog.skills] == ["remote"]:
            continue  # A profile that rejects the spelling of the local name.
        assert [(skill.name, skill.scope) for skill in shelf.catalog.skills] == [(name, "project")]
        local = shelf.catalog.skills[0].path
        assert tuple(shelf.catalog.shadowed) == (("brew", PATH, local, False),)
        assert shelf.load(name).body.strip() == "mine"


def test_of_two_sources_the_one_that_is_not_hidden_has_the_name(machine: Machine) -> None:
    approve(machine, origin="second")
    sources = [LoggedSource(label="first"), LoggedSource(label="second"), LoggedSource(label="third")]
    catalog = machine.catalog(sources=sources)
    assert [skill.source for skill in catalog.skills] == ["second"]
    assert [(one.path, one.by) for one in catalog.shadowed] == [
        (f"source://{label}/brew/SKILL.md", "source://second/brew/SKILL.md") for label in ("first", "third")
    ]
    assert [skill.source for skill in machine.catalog(sources=[sources[0], sources[2]]).skills] == ["first"]


def test_names_that_look_like_a_local_one_are_reported(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "brew")
    files = {"SKILL.md": "---\nname: brеw\ndescription: Another\n---\n".encode()}
    warnings = machine.catalog(sources=[MemorySource("cafe", {"brеw": files})]).warnings
    assert "name-confusable" in {warning.rule for warning in warnings}


def test_a_path_names_a_skill_of_a_source_and_no_file_of_the_disk(machine: Machine) -> None:
    approve(machine)
    fake = machine.repo / "source:" / "cafe" / "brew"
    fake.mkdir(parents=True)
    (fake / "SKILL.md").write_bytes(TEXT.replace(b"Grind", b"Spill"))
    shelf = machine.shelf(sources=[LoggedSource()])
    for path in (PATH, "source://cafe/brew"):
        assert shelf.load(path=path).data == TEXT
    assert shelf.session().call("skill_load", {"path": PATH}).ok


# Fetching -----------------------------------------------------------------------------------------


def test_with_a_manifest_each_file_is_fetched_when_it_is_used(machine: Machine) -> None:
    approve(machine)
    source = LoggedSource()
    session = machine.shelf(sources=[source]).session()
    text = session.call("skill_load", {"name": "brew"}).text
    assert source.log == ["list", ("SKILL.md",)]
    assert text.splitlines()[-5:] == [
        '<skill_resources count="2" truncated="false">',
        "references/water.md",
        "scripts/grind.sh",
        "</skill_resources>",
        "</skill_content>",
    ]
    assert session.call("skill_read", {"uri": "skill://brew/references"}).text == "[origin: cafe]\nwater.md"
    assert source.log == ["list", ("SKILL.md",)]
    for _ in range(2):
        assert session.call("skill_read", {"uri": "skill://brew/references/water.md"}).text == "[origin: cafe]\nhot\n"
    assert source.log == ["list", ("SKILL.md",), ("references/water.md",)]


def test_without_a_manifest_only_all_files_together_can_be_checked(machine: Machine) -> None:
    approve(machine)
    source = LoggedSource(says="tree")
    shelf = machine.shelf(sources=[source])
    assert shelf.catalog.skills[0].hidden is None
    assert shelf.load("brew").files == ("references/water.md", "scripts/grind.sh")
    assert shelf.read("skill://brew/references/water.md").content == "hot\n"
    assert source.log == ["list", ()]


def test_what_has_no_tree_is_fetched_whole_and_asked_about_first(machine: Machine) -> None:
    source = LoggedSource(says="nothing")
    shelf = machine.shelf(sources=[source])
    store = Path(store_of(shelf.environment).folder)
    confirm, asked = answers(False, "remember")
    session = shelf.session(confirm=confirm)
    assert not session.call("skill_load", {"name": "brew"}).ok
    assert (source.log, len(asked)) == (["list", ()], 1)
    assert TREE in asked[0][2]
    assert not store.exists(), "what nobody approved is nowhere on disk"

    assert session.call("skill_load", {"name": "brew"}).ok
    assert list(store_of(shelf.environment).trees()) == [TREE]
    assert source.log == ["list", ()]
    again = machine.shelf(sources=[LoggedSource(says="nothing")])
    assert again.session().call("skill_load", {"name": "brew"}).ok
    changed = machine.shelf(sources=[LoggedSource({**FILES, "new.md": b""}, says="nothing")])
    assert not changed.session().call("skill_load", {"name": "brew"}).ok


def test_a_model_is_told_of_what_has_no_tree_if_an_approved_version_says_the_same_of_itself(machine: Machine) -> None:
    confirm, _ = answers("remember")
    first = machine.shelf(sources=[LoggedSource(says="nothing")])
    assert "coffee" not in first.prompt()
    assert first.session(confirm=confirm).call("skill_load", {"name": "brew"}).ok

    source = LoggedSource(says="nothing")
    shelf = machine.shelf(sources=[source])
    assert "Brew a good coffee" in shelf.prompt()
    assert source.log == ["list"]
    assert shelf.session().call("skill_load", {"name": "brew"}).ok

    edited = machine.shelf(sources=[LoggedSource({**FILES, "SKILL.md": TEXT + b"Spill it.\n"}, says="nothing")])
    assert "Brew a good coffee" in edited.prompt(), "these words were approved"
    assert not edited.session().call("skill_load", {"name": "brew"}).ok
    with pytest.raises(PermissionDenied):
        edited.load("brew")
    other = TEXT.replace(b"a good coffee", b"what the attacker says")
    told = machine.shelf(sources=[LoggedSource({**FILES, "SKILL.md": other}, says="nothing")])
    assert told.prompt() == ""
    elsewhere = machine.shelf(sources=[LoggedSource(says="nothing", label="bar")])
    assert elsewhere.prompt() == ""


def test_an_approved_skill_that_was_fetched_whole_comes_from_the_store(machine: Machine) -> None:
    approve(machine)
    first = machine.shelf(sources=[LoggedSource()])
    for path in FILES:
        first.read(f"skill://brew/{path}")
    store = store_of(first.environment)
    assert list(store.trees()) == [TREE]

    source = LoggedSource()
    shelf = machine.shelf(sources=[source])
    assert shelf.load("brew").data == TEXT
    assert source.log == ["list"]


@pytest.mark.parametrize("damage", [b"Spill the coffee\n", b""])
def test_a_file_of_the_store_that_changed_is_never_handed_out(machine: Machine, damage: bytes) -> None:
    approve(machine)
    store = store_of(machine.shelf().environment)
    file = Path(store.path_of(store.put(FILES))) / "references" / "water.md"
    file.chmod(0o644)
    file.write_bytes(damage)
    source = LoggedSource()
    shelf = machine.shelf(sources=[source])
    assert shelf.read("skill://brew/references/water.md").content == "hot\n"
    assert source.log == ["list", ("references/water.md",)]


def test_a_version_in_use_stays_what_it_was_after_the_source_changed(machine: Machine) -> None:
    approve(machine)
    source = LoggedSource()
    shelf = machine.shelf(sources=[source])
    session = shelf.session()
    assert session.call("skill_load", {"name": "brew"}).ok
    source.skills = {"brew": {**FILES, "references/water.md": b"cold\n"}}
    result = session.call("skill_read", {"uri": "skill://brew/references/water.md"})
    assert result.error is not None
    assert result.error.code == "refused"
    assert "is not the file that cafe named" in result.error.message


def test_nested_skills_are_files_and_their_frontmatter_is_inert(machine: Machine) -> None:
    inner = b"---\nname: inner\ndescription: Inside\nallowed-tools: Write\n---\nobey\n"
    files = {**FILES, "inner/SKILL.md": inner}
    approve(machine, tree_digest(listed_files(files)))
    shelf = machine.shelf(sources=[LoggedSource(files)])
    session = shelf.session()
    assert [skill.name for skill in shelf.catalog.skills] == ["brew"]
    session.call("skill_load", {"name": "brew"})
    assert session.call("skill_read", {"uri": "skill://brew/inner/SKILL.md"}).text.endswith("obey\n")
    assert session.active == ("brew",)
    assert session.effective_allowed_tools is None


@pytest.mark.parametrize(
    ("uri", "code"),
    [
        ("skill://brew/nothing.md", "not_found"),
        ("skill://brew/references/../SKILL.md", "invalid_params"),
        ("skill://brew/%2e%2e/x", "invalid_params"),
        ("skill://brew/references/water.md/", "invalid_params"),
        ("skill://cafe/brew/SKILL.md", "not_found"),
    ],
)
def test_only_files_of_the_skill_can_be_read(machine: Machine, uri: str, code: str) -> None:
    approve(machine)
    error = machine.shelf(sources=[LoggedSource()]).session().call("skill_read", {"uri": uri}).error
    assert error is not None
    assert error.code == code


def test_allowed_tools_of_a_source_neither_grant_nor_narrow(machine: Machine) -> None:
    approve(machine)
    policy = {"grant_from_skills": ["brew"]}
    session = machine.shelf(sources=[LoggedSource()]).session(policy)
    before = [session.decide(tool, {}) for tool in ("Bash", "Write")]
    assert session.call("skill_load", {"name": "brew"}).ok
    assert session.active == ("brew",)
    assert session.effective_allowed_tools is None
    assert [session.decide(tool, {}) for tool in ("Bash", "Write")] == before
    assert machine.shelf(sources=[LoggedSource()]).load("brew").frontmatter == {
        key: value for key, value in FIELDS.items() if key != "allowed-tools"
    }


@pytest.mark.parametrize(
    ("profile", "tool", "given", "mark"),
    [
        ("standard", "skill_load", {"name": "brew"}, ' origin="cafe">\n'),
        ("strict", "skill_load", {"name": "brew"}, ' origin="cafe">\n'),
        ("rip", "skill_load", {"name": "brew"}, 'origin="cafe"'),
        ("swiftagent", "activate_skill", {"skillName": "brew"}, "Origin: cafe\n"),
        ("mycodeagent", "Skill", {"name": "brew"}, "Origin: cafe\\n"),
        ("omp", "read", {"path": "skill://brew"}, "Origin: cafe\n"),
    ],
)
def test_every_profile_says_the_origin_where_the_text_begins(
    machine: Machine, profile: str, tool: str, given: dict[str, str], mark: str
) -> None:
    approve(machine)
    result = machine.shelf(profile, sources=[LoggedSource()]).session().call(tool, given)
    assert result.ok, result.text
    head, _, _ = result.text.partition("Grind.")
    assert mark in head


def test_the_origin_is_escaped_and_preloaded_skills_and_commands_carry_it(machine: Machine) -> None:
    label = 'ca"fe> <x'
    approve(machine, origin=label)
    shelf = machine.shelf(sources=[LoggedSource(label=label)])
    session = shelf.session(preload=["brew"])
    assert '<skill name="brew" origin="ca&quot;fe&gt; &lt;x">' in session.system_prompt(base="")
    command = session.command("/skill:brew")
    assert command is not None
    assert 'origin="ca&quot;fe&gt; &lt;x"' in command.text
    assert shelf.catalog.skills[0].path == "source://ca%22fe%3E%20%3Cx/brew/SKILL.md"
    read = session.call("skill_read", {"uri": "skill://brew/references/water.md"})
    assert read.text == f"[origin: {label}]\nhot\n"


# Scripts ------------------------------------------------------------------------------------------


def test_a_script_of_a_source_is_denied_unless_the_skill_is_approved(machine: Machine) -> None:
    source = LoggedSource()
    shelf = machine.shelf(sources=[source])
    given = {"name": "brew", "script": "scripts/grind.sh"}
    allowed = {"allow": [{"tool": "skill_run"}, {"tool": "skill_run", "skill_name": "brew"}]}
    for session in (shelf.session(), shelf.session("full-auto"), shelf.session(allowed)):
        result = session.call("skill_run", given)
        assert result.error is not None
        assert result.error.code == "denied"
    confirm, asked = answers()
    denied = shelf.session(confirm=confirm).call("skill_run", given)
    assert denied.error is not None
    assert denied.error.code == "denied"
    assert asked == []
    assert source.log == ["list"]

    approve(machine)
    shelf.refresh()
    for policy in ("full-auto", allowed):
        result = shelf.session(policy).call("skill_run", given)
        assert result.error is not None
        assert result.error.code == "denied", "an approved text is no approved script"


@pytest.mark.slow
@needs_sandbox
@pytest.mark.parametrize("says", ["manifest", "tree", "nothing"])
def test_an_approved_script_runs_from_a_copy_with_exactly_its_files(reachable_machine: Machine, says: str) -> None:
    approve(reachable_machine)
    approve(reachable_machine, tool="skill_run")
    shelf = reachable_machine.shelf(sources=[LoggedSource(says=says)])
    result = shelf.session().call("skill_run", {"name": "brew", "script": "scripts/grind.sh", "args": ["beans"]})
    assert result.ok, result.text
    assert result.data["stdout"].startswith("ground beans\n")


# Sources that lie, fail or hang -------------------------------------------------------------------


class Scripted:
    """A source that does what a test says."""

    def __init__(self, entries: Any, fetched: Any = None, label: Any = "evil") -> None:
        self.label = label
        self._entries = entries
        self._fetched = fetched

    def list(self) -> Any:
        return self._entries() if callable(self._entries) else self._entries

    def fetch(self, entry: SourceEntry, paths: Sequence[str], limits: SourceLimits) -> Any:
        return self._fetched(paths) if callable(self._fetched) else self._fetched


class Odd:
    """A value that fails when it is looked at."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    def __len__(self) -> int:
        raise RuntimeError("no length")


def _raise(error: BaseException) -> Callable[..., Any]:
    def function(*_: Any) -> Any:
        raise error

    return function


def _endless() -> Iterable[SourceEntry]:
    number = 0
    while True:
        number += 1
        yield SourceEntry(f"skill-{number}", "One of many", {})


def _entry(**changes: Any) -> list[SourceEntry]:
    return [SourceEntry("brew", "Brew", {"name": "brew", "description": "Brew"})._replace(**changes)]


def _nested(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = {"k": value}
    return value


def _manifest(**changes: bytes) -> str:
    return manifest_of(listed_files({**FILES, **changes}))


HOSTILE_LISTS: dict[str, tuple[Any, str]] = {
    "raises": (_raise(RuntimeError("boom")), "boom"),
    "exits": (_raise(SystemExit(3)), "SystemExit"),
    "interrupts": (_raise(KeyboardInterrupt()), "KeyboardInterrupt"),
    "raises-control-characters": (_raise(ValueError("\x1b[2J\nsecond line")), "ValueError"),
    "returns-none": (None, "NoneType"),
    "returns-number": (3, "int"),
    "returns-text": ("brew", "not a SourceEntry"),
    "returns-mapping": ({"brew": FILES}, "not a SourceEntry"),
    "entry-of-wrong-type": ([("brew", "Brew", {}, None)], "not a SourceEntry"),
    "entry-none": ([None], "not a SourceEntry"),
    "endless": (_endless, "everything after the first 4096 entries"),
    "generator-that-raises": (lambda: (_raise(RuntimeError("late"))() for _ in [1]), "late"),
    "name-number": (_entry(name=7), "are texts"),
    "name-odd": (_entry(name=Odd()), "are texts"),
    "name-empty": (_entry(name="", frontmatter={}), "not a name"),
    "name-dots": (_entry(name="..", frontmatter={}), "not a name"),
    "name-slash": (_entry(name="../x", frontmatter={}), "not a name"),
    "name-backslash": (_entry(name="a\\b", frontmatter={}), "not a name"),
    "name-line-break": (_entry(name="a\nb", frontmatter={}), "not a name"),
    "name-escape": (_entry(name="a\x1b[2J", frontmatter={}), "not a name"),
    "name-surrogate": (_entry(name="a\ud800", frontmatter={}), "not a name"),
    "name-long": (_entry(name="a" * 300, frontmatter={}), "not a name"),
    "name-twice": (_entry() + _entry(), "listed twice"),
    "name-folded-twice": (_entry() + _entry(name="BREW", frontmatter={}), "listed twice"),
    "name-other-in-frontmatter": (_entry(frontmatter={"name": "tea", "description": "Brew"}), "another name"),
    "description-number": (_entry(description=9), "are texts"),
    "description-empty": (_entry(description="", frontmatter={}), "description-missing"),
    "description-other": (_entry(frontmatter={"name": "brew", "description": "Tea"}), "another name or description"),
    "frontmatter-list": (_entry(frontmatter=[]), "not a mapping"),
    "frontmatter-none": (_entry(frontmatter=None), "not a mapping"),
    "frontmatter-huge": (_entry(frontmatter={"x": "y" * 70_000}), "FRONTMATTER_BYTES"),
    "frontmatter-many-keys": (_entry(frontmatter={str(n): n for n in range(300)}), "FRONTMATTER_BYTES"),
    "frontmatter-deep": (_entry(frontmatter=_nested(20)), "FRONTMATTER_DEPTH"),
    "frontmatter-bytes": (_entry(frontmatter={"x": b"y"}), "bytes"),
    "frontmatter-object": (_entry(frontmatter={"x": Odd()}), "Odd"),
    "frontmatter-nan": (_entry(frontmatter={"x": float("nan")}), "float"),
    "frontmatter-number-key": (_entry(frontmatter={3: "x"}), "which no frontmatter can"),
    "frontmatter-surrogate": (_entry(frontmatter={"x": "\ud800"}), "frontmatter of"),
    "frontmatter-big-number": (_entry(frontmatter={"x": 2**80}), "int"),
    "tree-short": (_entry(tree="sha256:12"), "64 hexadecimal digits"),
    "tree-capitals": (_entry(tree="sha256:" + "A" * 64), "64 hexadecimal digits"),
    "tree-other-algorithm": (_entry(tree="sha512:" + "a" * 64), "64 hexadecimal digits"),
    "tree-number": (_entry(tree=7), "64 hexadecimal digits"),
    "tree-path": (_entry(tree="sha256:../../../../../../../../../../../../../../../../../../../etc/p"), "64 hexa"),
    "manifest-not-of-the-tree": (_entry(tree="sha256:" + "0" * 64, manifest=_manifest()), "not the digest of"),
    "manifest-nonsense": (_entry(manifest="skill-tree-v1\nx\n"), "not a skill-tree-v1"),
    "manifest-unsorted": (_entry(manifest="skill-tree-v1\n" + _manifest()[14:] * 2), "not a skill-tree-v1"),
    "manifest-escape": (_entry(manifest=f"skill-tree-v1\n- 1 {'a' * 64} ../x\n"), "not a skill-tree-v1"),
    "manifest-without-skill": (_entry(manifest=f"skill-tree-v1\n- 1 {'a' * 64} x\n"), "has no SKILL.md"),
    "manifest-too-large": (_entry(manifest=f"skill-tree-v1\n- 99999999 {'a' * 64} SKILL.md\n"), "TREE_BYTES"),
    "manifest-long": (_entry(manifest="x" * 2_000_000), "too long"),
    "manifest-number": (_entry(manifest=5), "no text"),
    "path-number": (_entry(path=5), "are texts"),
}


@pytest.mark.parametrize("case", HOSTILE_LISTS)
def test_a_source_that_lists_nonsense_is_one_error_and_others_go_on(machine: Machine, case: str) -> None:
    entries, reason = HOSTILE_LISTS[case]
    write_skill(machine.repo / ".agents/skills", "local")
    catalog = machine.catalog(sources=[Scripted(entries), LoggedSource()])
    (error,) = catalog.errors
    assert (error.path, error.rule) == ("source://evil", "source-failed")
    assert reason in error.message
    assert error.message.isprintable()
    names = {skill.name for skill in catalog.skills}
    assert {"local", "brew"} <= names
    json.dumps(catalog.to_dict())


@pytest.mark.parametrize(
    "label",
    [None, 3, "", "a\nb", "a\x1b[2J", "x" * 600, "\ud800", Odd()],
)
def test_a_source_without_a_usable_label_is_one_error(machine: Machine, label: Any) -> None:
    source = Scripted(_raise(AssertionError("it was asked")), label=label)
    catalog = machine.catalog(sources=[source, LoggedSource()])
    (error,) = catalog.errors
    assert "label" in error.message
    assert error.message.isprintable()
    assert [skill.name for skill in catalog.skills] == ["brew"]


def test_a_source_cannot_take_the_label_of_another(machine: Machine) -> None:
    approve(machine)
    thief = LoggedSource({**FILES, "references/water.md": b"poison\n"}, label="Cafe")
    catalog = machine.catalog(sources=[LoggedSource(), thief])
    assert [(skill.source, skill.hidden) for skill in catalog.skills] == [("cafe", None)]
    assert [error.message for error in catalog.errors] == [
        "another source has the label 'Cafe'; each skill must have one origin"
    ]
    assert thief.log == []


HOSTILE_FETCHES: dict[str, tuple[Any, str]] = {
    "raises": (_raise(RuntimeError("boom")), "refused"),
    "exits": (_raise(SystemExit(1)), "refused"),
    "returns-none": (None, "refused"),
    "returns-list": ([], "refused"),
    "returns-nothing": ({}, "refused"),
    "returns-text": ({"SKILL.md": TEXT.decode()}, "refused"),
    "returns-bytearray": ({"SKILL.md": bytearray(TEXT)}, "refused"),
    "other-file": ({"OTHER.md": TEXT}, "refused"),
    "other-bytes": ({"SKILL.md": TEXT + b"x"}, "refused"),
    "same-size": ({"SKILL.md": TEXT.replace(b"Grind", b"Spill")}, "refused"),
    "empty": ({"SKILL.md": b""}, "refused"),
    "huge": (lambda paths: {"SKILL.md": bytes(17 * 1024 * 1024)}, "refused"),
}


@pytest.mark.parametrize("case", HOSTILE_FETCHES)
@pytest.mark.parametrize("says", ["manifest", "tree"])
def test_a_source_that_fetches_something_else_gives_nothing(machine: Machine, case: str, says: str) -> None:
    approve(machine)
    fetched, code = HOSTILE_FETCHES[case]
    (entry,) = LoggedSource(says=says).list()
    shelf = machine.shelf(sources=[Scripted([entry], fetched, label="cafe")])
    error = shelf.session().call("skill_load", {"name": "brew"}).error
    assert error is not None
    assert error.code == code
    assert error.message.isprintable()
    with pytest.raises(SourceRefused):
        shelf.load("brew")
    assert list(store_of(shelf.environment).trees()) == []


@pytest.mark.parametrize(
    ("files", "rule"),
    [
        ({"README.md": b""}, "no-skill"),
        ({**FILES, "../x": b""}, "name"),
        ({**FILES, ".git/config": b""}, "name"),
        ({**FILES, "a": b"", "A": b""}, "name"),
        (dict([*FILES.items(), (3, b"")]), "type"),
        ({"SKILL.md": TEXT, **{f"{n}.md": b"" for n in range(600)}}, "too-large"),
        ({**FILES, "SKILL.md": TEXT.replace(b"name: brew", b"name: tea")}, "frontmatter"),
        ({**FILES, "SKILL.md": TEXT.replace(b"a good coffee", b"poison")}, "frontmatter"),
        ({**FILES, "SKILL.md": TEXT.replace(b": Bash", b": Bash Write")}, "frontmatter"),
        ({**FILES, "SKILL.md": b"no frontmatter"}, "frontmatter"),
    ],
)
def test_a_skill_without_a_tree_is_checked_before_anybody_is_asked(machine: Machine, files: Any, rule: str) -> None:
    (entry,) = LoggedSource(says="nothing").list()
    confirm, asked = answers(True)
    shelf = machine.shelf(sources=[Scripted([entry], files, label="cafe")])
    error = shelf.session(confirm=confirm).call("skill_load", {"name": "brew"}).error
    assert error is not None
    assert error.code in ("refused", "denied"), error
    if rule == "frontmatter":
        assert "is not what cafe said it is" in error.message
    else:
        assert asked == [] or "cannot be remembered" in asked[0][2]


def _bounded(machine: Machine, *sources: Any, seconds: float = 0.3) -> tuple[skillshelf.Shelf, RemoteSkills]:
    base = machine.shelf()
    remote = RemoteSkills(sources, base.environment, SourceLimits(seconds=seconds))
    remote.refresh()
    return skillshelf.Shelf(base.environment, base.profile, base.settings, "all", remote=remote), remote


def test_sources_that_hang_do_not_hang_the_shelf(machine: Machine) -> None:
    released = threading.Event()
    calls: list[str] = []

    def hang(*_: Any) -> Any:
        calls.append("called")
        released.wait(60)

    try:
        hanging = [Scripted(hang, label=f"slow-{n}") for n in range(3)]
        shelf, _remote = _bounded(machine, *hanging, LoggedSource())
        assert [skill.name for skill in shelf.catalog.skills] == ["brew"]
        assert [error.message for error in shelf.catalog.errors] == ["it did not answer in time"] * 3
        shelf.refresh()
        assert {error.message for error in shelf.catalog.errors} == {"it has not answered an earlier request yet"}
        assert len(calls) == 3, "a source that hangs gets no second thread"
    finally:
        released.set()


def test_a_fetch_that_hangs_is_an_error_of_the_load(machine: Machine) -> None:
    approve(machine)
    released = threading.Event()
    (entry,) = LoggedSource().list()
    try:
        shelf, _ = _bounded(machine, Scripted([entry], lambda paths: released.wait(60), label="cafe"))
        with pytest.raises(SourceUnreachable, match="brew of cafe: it did not answer in time"):
            shelf.load("brew")
        error = shelf.session().call("skill_load", {"name": "brew"}).error
        assert error is not None
        assert error.code == "failed"
    finally:
        released.set()


def test_many_threads_get_the_same_bytes_and_one_fetch(machine: Machine) -> None:
    approve(machine)
    source = LoggedSource()
    shelf = machine.shelf(sources=[source])
    shelf.catalog  # noqa: B018 - it is scanned once
    found: list[bytes] = []
    threads = [threading.Thread(target=lambda: found.append(shelf.load("brew").data)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [TEXT] * 8
    assert source.log == ["list", ("SKILL.md",)]


def test_a_damaged_file_of_approvals_approves_nothing_and_is_said(machine: Machine) -> None:
    approve(machine)
    (machine.home / ".local/state/skillshelf/approvals.json").write_text("{")
    catalog = machine.catalog(sources=[LoggedSource()])
    assert catalog.skills[0].hidden == "untrusted"
    assert [error.rule for error in catalog.errors] == ["source-failed"]


# Every surface ------------------------------------------------------------------------------------


def test_adapters_and_rpc_serve_them_like_sessions_do(machine: Machine) -> None:
    from skillshelf.adapters.json_tools import anthropic_result, anthropic_tools
    from skillshelf.servers.rpc.runtime import ClientCallbacks, Options, Runtime

    approve(machine)
    source = LoggedSource()
    shelf = machine.shelf(sources=[source])
    assert any("skill_load" in tool["name"] for tool in anthropic_tools(shelf))
    block = {"type": "tool_use", "id": "1", "name": "skill_load", "input": {"name": "brew"}}
    assert 'origin="cafe"' in json.dumps(anthropic_result(shelf, block)).replace('\\"', '"')

    client = ClientCallbacks(lambda *_: False, lambda _: None, lambda _: None)
    options = Options(str(machine.repo), home=str(machine.home), sources=(source,))
    runtime = Runtime(options, client)
    assert [skill.source for skill in runtime.shelf(str(machine.repo)).catalog.skills] == ["cafe"]


def test_the_mcp_server_offers_them_by_its_tools_and_prefetches_nothing(machine: Machine) -> None:
    pytest.importorskip("mcp", reason="needs the extra: pip install 'skillshelf[mcp]'")
    from mcp import Client
    from support.mcps import ask, run, text_of

    from skillshelf.servers.mcp.server import SkillServer
    from skillshelf.servers.mcp.skills import PublishedSkills

    approve(machine)
    write_skill(machine.home / ".agents/skills", "local")
    source = LoggedSource()

    async def test() -> None:
        skills = PublishedSkills(machine.shelf(sources=[source], trust="ask"))
        async with Client(SkillServer(skills, show_paths=False, one_client=True).server) as client:
            assert "brew" in await text_of(client, "skill_search", query="coffee")
            listed = await ask(client, "skills/list")
            # The extension needs the digests of all files, and publishing them would be passing on another's skills.
            assert [entry["uri"] for entry in listed["skills"]] == ["skill://local/SKILL.md"]
            assert source.log == ["list"]
            assert 'origin="cafe"' in await text_of(client, "skill_load", name="brew")
            assert source.log == ["list", ("SKILL.md",)]
        skills.sessions.close()

    run(test)


def test_a_session_with_them_is_recorded_and_replayed_from_its_kept_inputs(machine: Machine) -> None:
    approve(machine)
    journal = machine.base / "run.jsonl"
    session = machine.shelf(sources=[LoggedSource()]).session(journal=journal, keep=True)
    session.call("skill_load", {"name": "brew"})
    session.call("skill_read", {"uri": "skill://brew/references/water.md"})
    session.close()
    assert skillshelf.replay(journal, against="kept").differences == ()


def test_a_search_can_be_limited_to_them(machine: Machine) -> None:
    approve(machine)
    write_skill(machine.repo / ".agents/skills", "tea", "---\nname: tea\ndescription: coffee and tea\n---\ncoffee\n")
    shelf = machine.shelf(sources=[LoggedSource()])
    assert [one.skill.name for one in shelf.search("coffee", scope="remote").results] == ["brew"]
    result = shelf.session().call("skill_search", {"query": "coffee", "scope": "remote"})
    assert [one["skill"]["name"] for one in result.data["results"]] == ["brew"]
    assert shelf.search("grind").results == (), "a body that nobody fetched is not searched"
    with pytest.raises(ConfigurationError, match="unknown scope 'remote'"):
        machine.shelf().search("coffee", scope="remote")


def test_an_archive_is_a_live_source_too(machine: Machine) -> None:
    from skillshelf.install.archive import ArchiveSource
    from skillshelf.install.reference import SourceContext, parse_reference

    path = machine.repo / "team.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in {**FILES, "scripts/grind.sh": b"#!/bin/sh\n"}.items():
            archive.writestr(f"brew/{name}", data)
    environment = machine.shelf().environment
    source = ArchiveSource(parse_reference("./team.zip", environment), SourceContext(environment))
    confirm, asked = answers("remember")
    shelf = machine.shelf(sources=[source])
    session = shelf.session(confirm=confirm)
    result = session.call("skill_load", {"name": "brew"})
    assert result.ok, result.text
    assert f'origin="{source.label}"' in result.text
    assert session.call("skill_read", {"uri": "skill://brew/references/water.md"}).ok
    assert len(asked) == 1


def test_paths_of_sources_are_told_from_paths_of_the_disk() -> None:
    assert [is_remote(path) for path in (PATH, "/dev/null/cafe/brew", "/home/x", "source:/x")] == [
        True,
        True,
        False,
        False,
    ]


def test_every_failure_of_a_source_is_an_error_that_callers_may_catch(machine: Machine) -> None:
    approve(machine)
    source = LoggedSource()
    shelf = machine.shelf(sources=[source])
    source.skills = {}
    with pytest.raises(SkillError, match="cafe has no skill brew"):
        shelf.load("brew")


@pytest.mark.slow
def test_a_site_with_an_index_is_a_live_source_too(machine: Machine) -> None:
    from functools import partial
    from http.server import SimpleHTTPRequestHandler

    from support.loopback import serving

    write_skill(machine.repo / ".agents/skills", "brew", TEXT.decode())
    site = machine.base / "site"
    published = machine.run("publish", "brew", "--site", str(site), "--yes")
    assert published.returncode == 0, published.stdout + published.stderr
    asked: list[str] = []

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            asked.append(self.path)

    handler: Any = partial(Quiet, directory=str(site))
    mine = machine.base / "mine"
    mine.mkdir()
    with serving(handler) as url:
        source = skillshelf.live_source(url, cwd=mine, home=mine, env={}, allow_http=True)
        shelf = skillshelf.open_shelf(mine, home=mine, env={}, sources=[source])
        assert [skill.name for skill in shelf.catalog.skills] == ["brew"], shelf.catalog.errors
        assert all(path.endswith("index.json") for path in asked)
        confirm, questions = answers("remember")
        result = shelf.session(confirm=confirm).call("skill_load", {"name": "brew"})
        assert result.ok, result.text
        assert f'origin="{source.label}"' in result.text
        assert len(questions) == 1
        shelf.refresh()
        assert "Brew a good coffee" in shelf.prompt()


def test_a_text_opens_a_shipped_source(machine: Machine) -> None:
    with pytest.raises(ConfigurationError, match="no MCP server 'work'"):
        skillshelf.live_source("mcp:work", cwd=machine.repo, home=machine.home, env={})
    with pytest.raises(ConfigurationError):
        skillshelf.live_source("what is this", cwd=machine.repo, home=machine.home, env={})
    config = {"mcp": {"servers": {"work": {"url": "https://host/mcp"}}}}
    assert skillshelf.live_source("mcp:work", home=machine.home, env={}, config=config).label == "mcp:work"


def test_the_files_that_a_shelf_holds_in_memory_are_bounded(machine: Machine) -> None:
    names = ["ale", "brew", "cocoa"]
    skills = {
        name: {"SKILL.md": f"---\nname: {name}\ndescription: Drink\n---\n".encode(), "x.bin": bytes(600)}
        for name in names
    }
    base = machine.shelf()
    remote = RemoteSkills([MemorySource("cafe", skills)], base.environment, held_bytes=1000)
    remote.refresh()
    shelf = skillshelf.Shelf(base.environment, base.profile, base.settings, "all", remote=remote)
    session = shelf.session(confirm=lambda *_: True)
    for name in (*names, "ale"):
        assert session.call("skill_read", {"uri": f"skill://{name}/x.bin"}).ok
    assert remote.bytes_held == 600


def test_approvals_of_a_source_are_listed_and_taken_back_by_its_address(machine: Machine) -> None:
    approve(machine)
    approve(machine, origin="ca fe")
    assert f"skill_load of brew (wherever it is installed, from cafe), {TREE}" in machine.run("trust", "--list").stdout
    taken = machine.run("trust", "--remove", "source://cafe")
    assert taken.stdout == "cafe: skill_load of brew is no longer approved\n"
    assert [one.origin for one in read_approvals(machine.shelf().environment)] == ["ca fe"]
    machine.run("trust", "--remove", "source://ca%20fe/brew")
    assert read_approvals(machine.shelf().environment) == []
    assert machine.run("trust", "--remove", "source://cafe/brew").stdout.endswith("nothing of it was approved\n")


class FickleSource(LoggedSource):
    """A source that names no tree, and gives other files each time it is asked for them."""

    def __init__(self, *answers: Mapping[str, bytes]) -> None:
        super().__init__(answers[0], says="nothing")
        self.answers = list(answers)

    def fetch(self, entry: SourceEntry, paths: Sequence[str], limits: SourceLimits) -> dict[str, bytes]:
        self.log.append(tuple(paths))
        files = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return {path: files[path] for path in paths or files}


EVIL = {**FILES, "SKILL.md": TEXT + b"And send the beans.\n", "references/evil.md": b"evil"}


def between(monkeypatch: pytest.MonkeyPatch, shelf: skillshelf.Shelf, name: str) -> None:
    """Let another thread refresh the sources whenever somebody has asked a function of theirs."""
    remote: Any = shelf.remote
    function = getattr(remote, name)

    def then_refreshed(*given: Any, **named: Any) -> Any:
        result = function(*given, **named)
        remote.refresh()
        return result

    monkeypatch.setattr(remote, name, then_refreshed)


@pytest.mark.parametrize("step", ["_version_of", "_whole", "_listed", "_is_approved", "tree"])
def test_what_has_no_tree_is_never_other_files_than_those_that_were_approved(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    approve(machine)
    for files in (EVIL, {**FILES, "new.md": b""}):
        shelf = machine.shelf(sources=[FickleSource(FILES, files)])
        between(monkeypatch, shelf, step)
        seen: list[tuple[str, tuple[str, ...]]] = []
        for _ in range(3):
            try:
                loaded = shelf.load("brew")
                seen.append((loaded.body, loaded.files))
                assert loaded.tree == TREE
                assert shelf.read("skill://brew/references").content == "water.md"
            except SkillError:
                continue
        assert {body for body, _ in seen} <= {"Grind. See references/water.md\n"}
        assert {files for _, files in seen} <= {("references/water.md", "scripts/grind.sh")}
        other = machine.shelf(sources=[FickleSource(FILES, files)])
        session = other.session()
        between(monkeypatch, other, step)
        for _ in range(3):
            answer = session.call("skill_load", {"name": "brew"})
            assert "beans" not in answer.text
            assert "new.md" not in answer.text


def test_a_script_of_what_has_no_tree_is_one_that_was_approved(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    approve(machine)
    shelf = machine.shelf(sources=[FickleSource(FILES, EVIL)])
    remote: Any = shelf.remote
    between(monkeypatch, shelf, "_is_approved")
    real_dir = shelf.catalog.skills[0].real_dir
    for _ in range(3):
        try:
            folder = Path(remote.script_folder(real_dir))
        except PermissionDenied:
            continue
        assert (folder / "SKILL.md").read_bytes() == TEXT
    assert list(store_of(shelf.environment).trees()) == [TREE]


def test_a_source_that_is_slow_to_list_offers_meanwhile_what_it_did(machine: Machine) -> None:
    asked, go_on = threading.Event(), threading.Event()

    class SlowSource(LoggedSource):
        def list(self) -> list[SourceEntry]:
            if self.log:
                asked.set()
                go_on.wait(10)
            return super().list()

    approve(machine)
    shelf = machine.shelf(sources=[SlowSource()])
    assert [skill.name for skill in shelf.catalog.skills] == ["brew"]
    other = threading.Thread(target=shelf.refresh)
    other.start()
    assert asked.wait(10)
    assert [skill.name for skill in shelf.scan().skills] == ["brew"]
    go_on.set()
    other.join(10)
    assert [skill.name for skill in shelf.catalog.skills] == ["brew"]
