"""The inventory: every SKILL.md of a machine once, whoever reads it, and what is wrong with it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from support.newcomer import AGENTS, PLACES, all_files, make_newcomer
from support.trees import Machine, write_skill

import skillshelf
from skillshelf.catalog.disk_state import ScanRecord
from skillshelf.catalog.tree import skill_tree
from skillshelf.config.hosts import HOSTS
from skillshelf.core.console import as_json
from skillshelf.core.environment import Environment
from skillshelf.core.limits import REPOSITORY_FOLDERS
from skillshelf.core.values import Diagnostic
from skillshelf.hosts import inventory
from skillshelf.hosts.repository_walk import walk_repository
from skillshelf.lint.run import file_problems

SCHEMA = json.loads((Path(skillshelf.__file__).parent / "json_schemas/inventory.json").read_text(encoding="utf-8"))


def taken(machine: Machine, *words: str, **options: Any) -> Any:
    """The inventory as JSON, which fits its schema."""
    found = machine.run_json("inventory", *words, **options)
    jsonschema.validate(found, SCHEMA)
    return found


def by_name(found: Any) -> dict[str, Any]:
    return {skill["name"]: skill for skill in found["skills"]}


def rules_of(skill: Any) -> list[str]:
    return [problem["rule"] for problem in skill["problems"]]


def other_rules(found: Any) -> dict[str, str]:
    return {problem["path"]: problem["rule"] for problem in found["problems"]}


# A newcomer's machine -----------------------------------------------------------------------------


def test_every_skill_of_the_machine_is_in_the_inventory_once(machine: Machine) -> None:
    make_newcomer(machine)

    found = taken(machine)

    assert {skill["path"] for skill in found["skills"]} == all_files(machine)
    assert found["counts"]["skills"] == found["counts"]["files"] == 46
    assert {place["path"]: place["skills"] for place in found["places"]} == {
        f"{machine.base}/{place}": count for place, count in PLACES.items()
    }
    kinds = {os.path.relpath(place["path"], machine.base): place["kind"] for place in found["places"]}
    assert Counter(kinds.values()) == {"user": 2, "project": 3, "package": 2, "unread": 1}
    assert kinds["repo/packages/api/.claude/skills"] == "package"
    assert kinds["repo/packages/api/skills"] == "unread"


def test_the_inventory_speaks_of_the_users_hosts_and_of_all_when_asked(machine: Machine) -> None:
    make_newcomer(machine)

    found, everybody = taken(machine), taken(machine, "--all-hosts")

    assert all(tuple(skill["hosts"]) == AGENTS for skill in found["skills"])
    assert [host["host"] for host in found["hosts"] if host["enabled"]] == list(AGENTS)
    assert all(list(skill["hosts"]) == list(HOSTS) for skill in everybody["skills"])
    github = [skill for skill in found["skills"] if "/.github/" in skill["path"]]
    assert [skill["hosts"] for skill in github] == [{"claude-code": False, "codex": False}] * 5
    assert found["counts"]["unseen"] > everybody["counts"]["unseen"]


def test_what_a_host_sees_is_what_the_command_hosts_says(machine: Machine) -> None:
    make_newcomer(machine)
    told = {skill["path"]: skill["hosts"] for skill in machine.run_json("hosts")["skills"]}

    for skill in taken(machine)["skills"]:
        assert told.get(skill["path"], skill["hosts"]) == skill["hosts"]


def test_the_problems_are_the_errors_and_warnings_of_check(machine: Machine) -> None:
    make_newcomer(machine)
    write_skill(machine.repo / ".agents/skills", "dead", None)
    text = "---\nname: dead\ndescription: Points to a page. Use when asked for it.\n---\nSee [it](references/no.md).\n"
    write_skill(machine.repo / ".agents/skills", "dead", text)

    for skill in taken(machine)["skills"]:
        done = machine.run("check", skill["path"], "--json")
        findings = [one for one in json.loads(done.stdout)["findings"] if one["severity"] != "info"]
        assert [(one["rule"], one["severity"], one["message"], one["line"]) for one in findings] == [
            (one["rule"], one["severity"], one["message"], one["line"]) for one in skill["problems"]
        ]
    found = by_name(taken(machine))
    assert rules_of(found["dead"]) == ["reference-missing"]
    assert rules_of(found["bare"]) == ["description-missing"]
    assert {name for name, skill in found.items() if skill["problems"]} == {
        *("dead", "bare", "colon", "under_score", "翻译")
    }


def test_a_broken_skill_has_the_name_of_its_folder(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "other", "---\nname: Wrong Name\n---\n", folder="folder")

    found = taken(machine)

    assert [skill["name"] for skill in found["skills"]] == ["folder"]
    assert found["counts"]["broken"] == 1


# Copies -------------------------------------------------------------------------------------------


def test_the_same_tree_and_the_same_file_are_one_skill_and_another_tree_is_another(machine: Machine) -> None:
    first = write_skill(machine.repo / ".agents/skills", "plain")
    copy = write_skill(machine.home / ".claude/skills", "plain")
    other = write_skill(machine.home / ".codex/skills", "plain")
    (other.parent / "more.txt").write_text("more\n")
    link = machine.repo / ".claude/skills/linked"
    link.parent.mkdir(parents=True)
    link.symlink_to(first.parent)

    one, two = sorted(taken(machine)["skills"], key=lambda skill: -len(skill["copies"]))

    assert (one["path"], one["copies"]) == (str(first), [f"{link}/SKILL.md", str(copy)])
    assert (two["path"], two["copies"]) == (str(other), [])
    assert one["tree"] != two["tree"]
    assert one["tree"] == machine.run("digest", str(first)).stdout.strip()
    assert one["hosts"]["claude-code"] is True
    assert taken(machine)["counts"] | {"unseen": 0} == {"skills": 2, "files": 3, "broken": 0, "unseen": 0}


def test_without_trees_the_copies_are_the_same(machine: Machine) -> None:
    make_newcomer(machine)
    for place in ("repo/.agents/skills", "repo/packages/api/skills"):
        shutil.copytree(machine.home / ".claude/skills/task-01", machine.base / place / "task-01")
    here = Environment(str(machine.repo), str(machine.home), {})
    settings = machine.shelf(trust="ask").settings

    whole, short = (inventory.take_inventory(here, settings, trees=trees) for trees in (True, False))

    assert [skill._replace(tree=None) for skill in whole.skills] == [
        skill._replace(tree=None) for skill in short.skills
    ]
    assert [len(skill.copies) for skill in whole.skills if skill.copies] == [2]
    assert all(skill.tree is None for skill in short.skills if not skill.copies)


def test_a_link_to_a_file_that_is_no_skill_has_no_tree(machine: Machine) -> None:
    text = "---\nname: notes\ndescription: Notes of the day. Use when notes are asked for.\n---\n# Notes\n"
    for place in (machine.home, machine.base / "outside"):
        place.mkdir(exist_ok=True)
        for name in ("notes.md", "SKILL.md"):
            (place / name).write_text(text)
            folder = machine.repo / f"from-{place.name}-{name}"
            folder.mkdir()
            (folder / "SKILL.md").symlink_to(place / name)
    own = machine.repo / "own"
    own.mkdir()
    (own / "README.md").write_text(text)
    (own / "SKILL.md").symlink_to("README.md")

    trees = {os.path.relpath(skill["path"], machine.repo): skill["tree"] for skill in taken(machine)["skills"]}

    assert [path for path, tree in trees.items() if tree is not None] == ["from-outside-SKILL.md/SKILL.md"]
    assert len(trees) == 5


def test_a_link_that_may_not_be_read_costs_one_line(machine: Machine) -> None:
    root = machine.repo / ".agents/skills"
    write_skill(root, "fine")
    read_link = os.readlink

    def refused(path: Any, **options: Any) -> Any:
        # As for the links below /proc of the processes of others.
        if os.fsencode(path).endswith(b"secret"):
            raise PermissionError(13, "Permission denied", path)
        return read_link(path, **options)

    (root / "secret").symlink_to(machine.base / "nowhere")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "readlink", refused)
        found = taken(machine)

    assert [skill["name"] for skill in found["skills"]] == ["fine"]
    assert list(other_rules(found)) == [str(root / "secret")]


# Places -------------------------------------------------------------------------------------------


def test_packages_plugins_custom_folders_and_misspelt_roots_are_places(machine: Machine) -> None:
    write_skill(machine.repo / "node_modules/tool/skills", "shipped")
    write_skill(machine.repo / "node_modules/@scope/tool/.claude/skills", "scoped")
    write_skill(machine.repo / "node_modules/tool/lib", "not-looked-at")
    write_skill(machine.repo / "apps/web/.agents/skills", "web")
    write_skill(machine.home / "plugin/skills", "plugged")
    write_skill(machine.home / "own", "own")
    write_skill(machine.home / ".claude/skill", "misspelt")
    (machine.repo / ".gitignore").write_text("node_modules/\n")
    plugins = machine.home / ".claude/plugins/installed_plugins.json"
    plugins.parent.mkdir(parents=True)
    plugins.write_text(json.dumps({"plugins": {"p": [{"installPath": f"{machine.home}/plugin"}]}}))
    machine.configure(f'[skills]\ncustom_directories = ["{machine.home}/own"]\n')

    found = taken(machine)

    kinds = {place["path"]: (place["kind"], place["scope"]) for place in found["places"]}
    shown = {skill["name"]: kinds[os.path.dirname(os.path.dirname(skill["path"]))] for skill in found["skills"]}
    assert shown == {
        "shipped": ("package", "project"),
        "scoped": ("package", "project"),
        "web": ("package", "project"),
        "plugged": ("plugin", "user"),
        "own": ("custom", "custom"),
        "misspelt": ("unread", "project"),
    }
    assert other_rules(found)[str(machine.home / ".claude/skill")] == "file-name"


def test_the_home_folder_is_never_walked(machine: Machine) -> None:
    write_skill(machine.home / "Documents", "private")
    write_skill(machine.home / ".claude/skills", "mine")
    (machine.home / ".git").mkdir()
    (machine.home / "work").mkdir()
    write_skill(machine.home / "work/tool/skills", "at-work")
    trap = machine.repo / ".agents/skills/trap"
    trap.parent.mkdir(parents=True)
    trap.symlink_to(machine.home)

    assert list(by_name(taken(machine, cwd=machine.home))) == ["mine"]
    assert list(by_name(taken(machine, cwd=machine.home / "work"))) == ["at-work", "mine"]
    inside = taken(machine)
    assert list(by_name(inside)) == ["mine"]
    assert other_rules(inside) == {str(trap): "link-outside"}


def test_without_a_repository_only_known_folders_are_searched(machine: Machine) -> None:
    (machine.repo / ".git").rmdir()
    write_skill(machine.repo / "packages/api/skills", "elsewhere")
    write_skill(machine.repo / ".agents/skills", "here")

    assert list(by_name(taken(machine))) == ["here"]


# Hostile trees ------------------------------------------------------------------------------------


def test_what_cannot_be_read_and_links_that_lead_nowhere_cost_a_line_each(machine: Machine) -> None:
    root = machine.repo / ".agents/skills"
    write_skill(root, "fine")
    for name, target in {"loop": ".", "up": "..", "broken": "/nonexistent/folder"}.items():
        (root / name).symlink_to(target)
    for name in ("pipe", "folder", "dangling", "huge", "misnamed"):
        (root / name).mkdir()
    os.mkfifo(root / "pipe/SKILL.md")
    (root / "folder/SKILL.md").mkdir()
    (root / "dangling/SKILL.md").symlink_to("nowhere")
    (root / "huge/SKILL.md").write_bytes(b"x" * (2 << 20))
    (root / "misnamed/skill.md").write_text("---\nname: misnamed\n---\n")
    outside = machine.repo / "apps/a/.claude"
    outside.mkdir(parents=True)
    (outside / "skills").symlink_to("/etc")
    (machine.repo / "everything").symlink_to("/")

    found = taken(machine)

    assert {name: rules_of(skill) for name, skill in by_name(found).items()} == {
        "dangling": ["not-a-file"],
        "fine": [],
        "huge": ["file-size"],
        "pipe": ["not-a-file"],
    }
    assert {os.path.relpath(path, machine.repo): rule for path, rule in other_rules(found).items()} == {
        ".agents/skills/broken": "link-broken",
        ".agents/skills/folder": "not-a-file",
        ".agents/skills/loop": "link-loop",
        ".agents/skills/misnamed/skill.md": "file-name",
        ".agents/skills/up": "link-loop",
        "apps/a/.claude/skills": "root-link",
    }


def test_what_is_no_file_outside_every_root_is_called_what_it_is(machine: Machine) -> None:
    for name in ("pipe", "device", "huge"):
        (machine.repo / name).mkdir()
    os.mkfifo(machine.repo / "pipe/SKILL.md")
    (machine.repo / "device/SKILL.md").symlink_to("/dev/null")
    (machine.repo / "huge/SKILL.md").write_bytes(b"x" * (2 << 20))

    found = by_name(taken(machine))

    assert {name: [problem["message"] for problem in skill["problems"]] for name, skill in found.items()} == {
        "device": ["it is a device, not a file"],
        "huge": ["it has 2,097,152 bytes, more than are read"],
        "pipe": ["it is a pipe, not a file"],
    }


def test_names_that_are_no_text_are_printed_escaped(machine: Machine) -> None:
    root = machine.repo / ".agents/skills"
    write_skill(root, "loud\x1b[31m")
    raw = os.fsencode(root) + b"/bad\xff"
    os.mkdir(raw)
    with open(raw + b"/SKILL.md", "w") as file:
        file.write("---\nname: bad\n---\n")
    os.mkdir(os.fsencode(machine.repo) + b"/stray\xff")

    found, shown = taken(machine), machine.run("inventory").stdout + machine.run().stdout

    assert [rules_of(skill) for skill in found["skills"]] == [["path-encoding"]] * 2
    assert shown.replace("\n", "").isprintable()


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_folder_that_may_not_be_listed_costs_one_line(machine: Machine) -> None:
    closed = machine.repo / "packages/closed"
    write_skill(machine.repo / "packages/open/skills", "seen")
    closed.mkdir()
    closed.chmod(0)
    try:
        found = taken(machine)
    finally:
        closed.chmod(0o700)

    assert list(by_name(found)) == ["seen"]
    assert other_rules(found) == {str(closed): "unreadable"}


def test_a_walk_ends_after_its_limit_of_folders_and_says_so(tmp_path: Path) -> None:
    for number in range(12):
        (tmp_path / f"folder-{number:02}").mkdir()
    shallow = write_skill(tmp_path, "folder-03")
    write_skill(tmp_path / "a/b/c/skills", "deep")

    walked = walk_repository(str(tmp_path), str(tmp_path), labels=[], known=[], record=ScanRecord(0), most=10)

    assert REPOSITORY_FOLDERS == 20_000
    assert walked.skills == [str(shallow.parent)]
    message = "stopped after 10 folders; 5 more were not entered"
    assert walked.problems == [Diagnostic(str(tmp_path), "walk-limit", message)]


def test_packages_beyond_the_limit_of_folders_are_told(tmp_path: Path) -> None:
    packages = tmp_path / "node_modules"
    for name in ("a", "b", "c", "d", "@scope/e", "@scope/f"):
        (packages / name).mkdir(parents=True)
    write_skill(packages / "d/skills", "late")

    walked = [
        walk_repository(str(tmp_path), str(tmp_path), labels=[], known=[], record=ScanRecord(0), most=most)
        for most in (5, 9)
    ]

    assert [one.roots for one in walked] == [[], [str(packages / "d/skills")]]
    message = "stopped after 5 folders; 4 more were not entered"
    assert [one.problems for one in walked] == [[Diagnostic(str(tmp_path), "walk-limit", message)], []]


def test_a_folder_below_the_deepest_level_is_named(machine: Machine) -> None:
    descriptor = os.open(machine.repo, os.O_RDONLY)
    for _ in range(80):
        os.mkdir("d", dir_fd=descriptor)
        below = os.open("d", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    os.close(descriptor)

    assert list(other_rules(taken(machine)).values()) == ["walk-limit"]


# Ignored folders ----------------------------------------------------------------------------------

IGNORED = [
    ("build/\n", ["build/a"], ["buildings/a"]),
    ("*.tmp\n", ["x.tmp/a", "deep/y.tmp/a"], ["tmp/a"]),
    ("/top\n", ["top/a"], ["below/top/a"]),
    ("one/two\n", ["one/two/a"], ["zero/one/two/a"]),
    ("**/gone\n", ["gone/a", "x/y/gone/a"], ["going/a"]),
    ("out/**\n", ["out/a"], ["in/a"]),
    ("a/**/z\n", ["a/z/s", "a/b/c/z/s"], ["a/b/y/s"]),
    ("*\n!kept\n", ["other/a"], ["kept"]),
    ("# build\n\\#odd\n", ["#odd/a"], ["build/a"]),
    ("[ab]?\n", ["ax/s", "b1/s"], ["cx/s", "a/s"]),
    ("[!ab]x\n", ["cx/s"], ["ax/s"]),
    ("[\n", [], ["x/s"]),
]


@pytest.mark.parametrize(("rules", "ignored", "kept"), IGNORED, ids=[rules for rules, _, _ in IGNORED])
def test_folders_that_git_ignores_are_not_walked(
    machine: Machine, rules: str, ignored: list[str], kept: list[str]
) -> None:
    (machine.repo / ".gitignore").write_text(rules)
    for path in (*ignored, *kept):
        write_skill(machine.repo, path.replace("/", "-"), folder=path)

    assert {skill["path"] for skill in taken(machine)["skills"]} == {f"{machine.repo}/{path}/SKILL.md" for path in kept}


def test_rules_nearer_to_a_folder_win_and_those_of_the_clone_count(machine: Machine) -> None:
    (machine.repo / ".git/info").mkdir()
    (machine.repo / ".git/info/exclude").write_text("private\n")
    (machine.repo / ".gitignore").write_text("dist\n")
    (machine.repo / "app").mkdir()
    (machine.repo / "app/.gitignore").write_text("!dist\n")
    for path in ("private/a", "dist/b", "app/dist/c"):
        write_skill(machine.repo, path[-1], folder=path)

    assert list(by_name(taken(machine))) == ["c"]
    assert list(by_name(taken(machine, cwd=machine.repo / "app"))) == ["c"]


def test_a_rule_of_many_stars_takes_no_time(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*a" * 40 + "*b\n" + "**/*a/" * 20 + "b\n")
    (tmp_path / ("a" * 200)).mkdir()

    walked = walk_repository(str(tmp_path), str(tmp_path), labels=[], known=[], record=ScanRecord(0))

    assert walked.problems == []


@pytest.mark.parametrize("rules", ["**/" * 300_000 + "x", "\n".join("**/a*/" * 20 + f"x{n}" for n in range(1000))])
def test_a_walk_ends_when_its_ignore_files_have_too_many_patterns(tmp_path: Path, rules: str) -> None:
    (tmp_path / ".gitignore").write_text(rules)
    for number in range(150):
        (tmp_path / f"folder-{number}").mkdir()

    walked = walk_repository(str(tmp_path), str(tmp_path), labels=[], known=[], record=ScanRecord(0))

    message = "stopped after 1 folders; 150 more were not entered, as its ignore files have too many patterns"
    assert walked.problems == [Diagnostic(str(tmp_path), "walk-limit", message)]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
def test_git_agrees_about_what_it_ignores(machine: Machine) -> None:
    shutil.rmtree(machine.repo / ".git")
    subprocess.run(["git", "init", "-q", str(machine.repo)], check=True, env={"PATH": os.environ["PATH"]})
    rules = "\n".join(line for lines, _, _ in IGNORED if lines != "*\n!kept\n" for line in lines.split("\n"))
    (machine.repo / ".gitignore").write_text(rules)
    paths = [path for _, ignored, kept in IGNORED for path in (*ignored, *kept)]
    for path in paths:
        write_skill(machine.repo, path.replace("/", "-"), folder=path)
    done = subprocess.run(
        ["git", "-C", str(machine.repo), "ls-files", "-co", "--exclude-standard", "-z"],
        check=True,
        capture_output=True,
        env={"PATH": os.environ["PATH"]},
    )
    named = {os.fsdecode(path) for path in done.stdout.split(b"\0") if path.endswith(b"SKILL.md")}

    assert {os.path.relpath(skill["path"], machine.repo) for skill in taken(machine)["skills"]} == named


# What is kept -------------------------------------------------------------------------------------


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache that does not wait for files to settle."""
    for module in ("skillshelf.catalog.disk_state", "skillshelf.catalog.cache", "skillshelf.hosts.inventory"):
        monkeypatch.setattr(f"{module}.SETTLED_NS", 0)


@pytest.mark.usefixtures("settled")
def test_an_inventory_from_the_cache_is_the_same_and_every_change_counts(machine: Machine) -> None:
    make_newcomer(machine)
    page = machine.repo / ".claude/skills/task-33/notes.md"

    commands: list[list[str]] = [[], ["inventory"], ["inventory", "--json"]]

    def both() -> tuple[str, str]:
        warm = [machine.run(*words).stdout for words in commands]
        cold = [machine.run(*words, "--no-cache").stdout for words in commands]
        return "".join(warm), "".join(cold)

    seen = set()
    for change in (
        lambda: None,
        lambda: page.write_text("one\n"),
        lambda: page.write_text("two\n"),
        lambda: write_skill(machine.repo / "tools/skills", "new"),
        lambda: shutil.rmtree(machine.home / ".codex/skills/bare"),
        lambda: (machine.repo / ".gitignore").write_text("packages\n"),
        lambda: write_skill(machine.home / ".claude/skills", "colon"),
    ):
        change()
        for _ in range(2):
            warm, cold = both()
            assert warm == cold
        seen.add(cold)
    assert len(seen) == 7


@pytest.mark.usefixtures("settled")
def test_what_was_read_is_not_read_again(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    make_newcomer(machine)
    machine.run("inventory", "--json")
    read: list[str] = []

    def counted(targets: Any, profile: Any) -> Any:
        read.extend(target.path for target in targets)
        return file_problems(targets, profile)

    def digested(path: str) -> Any:
        read.append(path)
        return skill_tree(path)

    monkeypatch.setattr("skillshelf.hosts.inventory.file_problems", counted)
    monkeypatch.setattr("skillshelf.hosts.inventory.skill_tree", digested)
    taken(machine)
    assert read == []
    (machine.home / ".codex/skills/task-13/more.md").write_text("more\n")
    taken(machine)
    assert len(read) == 2


def test_a_damaged_cache_costs_time_and_nothing_else(machine: Machine, settled: None) -> None:
    make_newcomer(machine)
    before = as_json(taken(machine))
    for path in (machine.home / ".cache/skillshelf/packed").iterdir():
        path.write_bytes(path.read_bytes()[:-7] + b"garbage")

    assert as_json(taken(machine)) == before


@pytest.mark.parametrize("below", ["", "deep/er"])
def test_who_stands_in_an_ignored_folder_sees_what_lies_there(machine: Machine, below: str) -> None:
    (machine.repo / ".gitignore").write_text("build/\n")
    here = machine.repo / "build" / below
    write_skill(here / "drafts", "ignored")
    write_skill(machine.repo / "build/other", "beside")
    write_skill(machine.repo / "docs", "plain")

    assert set(by_name(taken(machine))) == {"plain"}
    assert set(by_name(taken(machine, cwd=here))) == {"plain", "ignored", *([] if below else ["beside"])}


def test_a_place_is_seen_by_the_hosts_that_read_it_whatever_copies_there_are(machine: Machine) -> None:
    for place in (machine.repo / ".claude/skills", machine.repo / "docs/skills"):
        write_skill(place, "deploy")
    machine.configure('hosts = ["claude-code"]\n')

    done = machine.run()

    rows = [line.split()[:4] for line in done.stdout.splitlines() if "skills " in line]
    assert ["1", ".claude/skills", "project", "claude-code"] in rows
    assert ["1", "docs/skills", "unread", "none"] in rows
    assert "unseen" not in done.stdout
