"""One disk, one answer: whatever the seed, the locale, the time zone, and the order in which things were made."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples
from support.trees import Machine, write_skill

from skillshelf import Catalog

WRITTEN = 1_700_000_000_000_000_000
"""The modification time of every file in these tests."""

TREE: Mapping[str, str] = {
    "repo/.agents/skills/beta/SKILL.md": "---\nname: beta\ndescription: Second.\nmetadata: {b: '2', a: '1'}\n---\n",
    "repo/.agents/skills/alpha/SKILL.md": "---\nname: alpha\ndescription: First.\nzeta: 1\neta: 2\n---\n",
    "repo/.agents/skills/group/größe/SKILL.md": "---\nname: größe\ndescription: Maße und Gewichte.\n---\n",
    "repo/.agents/skills/日本/SKILL.md": "---\nname: 日本\ndescription: 日本語。\n---\n",
    "repo/.agents/skills/broken/SKILL.md": "no frontmatter\n",
    "repo/.agents/skills/Twin/SKILL.md": "---\nname: Alpha\ndescription: A twin.\n---\n",
    "repo/.agents/skills/alpha/inner/SKILL.md": "---\nname: inner\ndescription: Inside.\n---\n",
    "repo/.claude/skills/beta/SKILL.md": "---\nname: beta\ndescription: Also second.\n---\n",
    "home/.agents/skills/gamma/SKILL.md": "---\nname: gamma\ndescription: Third.\n---\n",
    "home/.agents/skills/nfd-e\u0301/SKILL.md": "---\nname: nfd-\u00e9\ndescription: Composed.\n---\n",
}


def build(base: Path, paths: Iterable[str], tree: Mapping[str, str] = TREE) -> None:
    """Write the files in that order, all with one modification time."""
    for path in paths:
        file = base / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(tree[path], encoding="utf-8")
        os.utime(file, ns=(WRITTEN, WRITTEN))


ENVIRONMENTS: Mapping[str, Mapping[str, str]] = {
    "as it is": {},
    "seed 0": {"PYTHONHASHSEED": "0"},
    "seed 1": {"PYTHONHASHSEED": "1"},
    "seed 4242": {"PYTHONHASHSEED": "4242"},
    "locale C": {"LC_ALL": "C"},
    "locale C.UTF-8": {"LC_ALL": "C.UTF-8"},
    "locale C without any UTF-8": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "locale POSIX without any UTF-8": {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "output in ASCII": {"PYTHONIOENCODING": "ascii"},
    "a missing locale": {"LC_ALL": "xx_XX.ISO-8859-1"},
    "time zone of Auckland": {"TZ": "Pacific/Auckland"},
    "time zone of Honolulu": {"TZ": "HST10"},
    "no colours": {"NO_COLOR": "1", "COLUMNS": "20", "TERM": "dumb"},
    "optimised": {"PYTHONOPTIMIZE": "2"},
}


@pytest.mark.slow
@pytest.mark.req("K-44")
@pytest.mark.parametrize("words", [("list", "--json"), ("list", "--all"), ()], ids=["json", "table", "overview"])
def test_the_environment_does_not_change_a_byte(machine: Machine, words: tuple[str, ...]) -> None:
    build(machine.base, TREE)
    answers = {}

    for environment, variables in ENVIRONMENTS.items():
        machine.env = dict(variables)
        done = machine.run(*words)
        assert (done.returncode, done.stderr) == (0, ""), environment
        answers[environment] = done.stdout

    expected = answers["as it is"]
    assert {name for name, answer in answers.items() if answer != expected} == set()
    assert "größe" in expected
    assert "日本" in expected


@pytest.mark.slow
@pytest.mark.req("K-44")
@pytest.mark.parametrize("words", [("digest",), ("show", "--json")], ids=["digest", "show"])
def test_the_locale_does_not_change_the_digest_and_the_files_of_a_skill(
    machine: Machine, words: tuple[str, ...]
) -> None:
    folder = machine.repo / ".agents/skills/beta"
    build(machine.base, ["repo/.agents/skills/beta/SKILL.md"])
    (folder / "größe.md").write_text("x")
    (folder / "日本.md").write_text("y")
    answers = set()

    for environment in ("as it is", "locale C without any UTF-8"):
        machine.env = dict(ENVIRONMENTS[environment])
        done = machine.run(*words, str(folder))
        assert (done.returncode, done.stderr) == (0, ""), environment
        answers.add(done.stdout)

    assert len(answers) == 1


@pytest.mark.req("K-44", "K-45")
@pytest.mark.parametrize("profile", ["standard", "strict", "codelia", "swiftagent", "mycodeagent", "rip", "omp"])
def test_the_order_in_which_things_were_made_does_not_change_the_catalog(machine: Machine, profile: str) -> None:
    answers = []
    for paths in (sorted(TREE), sorted(TREE, reverse=True), sorted(TREE, key=lambda path: path[::-1])):
        for folder in (machine.home, machine.repo / ".agents", machine.repo / ".claude"):
            shutil.rmtree(folder, ignore_errors=True)
        build(machine.base, paths)
        answers.append(json.dumps(machine.catalog(profile).to_dict()))

    assert answers == [answers[0]] * 3


@pytest.mark.req("K-44")
def test_a_second_scan_of_the_same_disk_gives_an_equal_catalog(machine: Machine) -> None:
    build(machine.base, TREE)
    shelf = machine.shelf()

    first = shelf.catalog

    assert [shelf.scan() for _ in range(3)] == [first] * 3
    assert not shelf.refresh()
    assert machine.catalog() == first


@pytest.mark.req("K-44")
def test_the_rights_of_files_do_not_change_the_catalog(machine: Machine) -> None:
    build(machine.base, TREE)
    before = machine.catalog()

    for path in TREE:
        (machine.base / path).chmod(0o400)
        (machine.base / path).parent.chmod(0o700)

    assert machine.catalog() == before


@pytest.mark.req("K-45")
def test_skills_stand_in_the_order_of_code_points(machine: Machine) -> None:
    build(machine.base, TREE)

    # `Alpha` lies in the folder `Twin`, which comes before `alpha`; the two names count as one.
    assert machine.names() == ["Alpha", "beta", "gamma", "größe", "nfd-\u00e9", "日本"]


@pytest.mark.req("K-45")
def test_paths_are_absolute_and_plain_however_the_place_was_named(machine: Machine) -> None:
    build(machine.base, TREE)
    named = machine.base / "named"
    write_skill(named, "delta")
    os.utime(named / "delta" / "SKILL.md", ns=(WRITTEN, WRITTEN))
    answers = []

    for cwd, root in (
        (str(machine.repo), str(named)),
        (f"{machine.repo}/", f"{named}/"),
        (f"{machine.repo}//.agents/../.", f"{machine.base}//named/./"),
        (f"{machine.home}/../repo", f"{machine.repo}/../named//"),
    ):
        machine.env["AGENT_SKILLS_PATH"] = root
        answers.append(machine.catalog(cwd=cwd).to_dict())

    assert answers == [answers[0]] * 4
    paths = [skill["path"] for skill in answers[0]["skills"]] + [root["path"] for root in answers[0]["roots"]]
    assert [path for path in paths if path != os.path.normpath(path) or not os.path.isabs(path)] == []


def test_a_place_named_relative_to_the_working_directory_is_the_same_place(machine: Machine) -> None:
    build(machine.base, TREE)
    absolute = machine.run_json("list")

    assert machine.run_json("list", "--cwd", ".") == absolute
    assert machine.run_json("list", "--cwd", "../repo", cwd=machine.home) == absolute
    assert machine.run_json("list", "--cwd", ".agents/..", "--home", "../home") == absolute


# Any tree -----------------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "c-d", "e.f", "é", "日", ".hidden", "node_modules", "x y"])
ROOTS = st.sampled_from(["repo/.agents/skills", "repo/.claude/skills", "home/.agents/skills"])
TEXTS = st.sampled_from(
    [
        "---\nname: a\ndescription: One.\n---\n",
        "---\nname: b\ndescription: 'Two: quoted'\n---\n",
        "---\nname: B\ndescription: Unquoted: colon\n---\n",
        "---\ndescription: No name.\n---\n",
        "---\nname: c-d\n---\n",
        "no frontmatter",
    ]
)
FILES = st.dictionaries(
    st.builds(
        lambda root, folders: "/".join([root, *folders, "SKILL.md"]), ROOTS, st.lists(NAMES, min_size=1, max_size=3)
    ),
    TEXTS,
    min_size=1,
    max_size=8,
)
LINKS = st.dictionaries(
    st.builds(lambda root, name: f"{root}/{name}-link", ROOTS, NAMES),
    st.sampled_from(["a", "b", "..", ".", "c-d/a", "../../.claude/skills", "/", "nothing", "a-link", "b-link"]),
    max_size=4,
)


def catalog_of(base: Path, files: Mapping[str, str], links: Mapping[str, str], order: Iterable[str]) -> Catalog:
    """Return the catalog of a tree written in that order; the tree is removed afterwards."""
    machine = Machine(base)
    try:
        for path in order:
            if path in files:
                build(base, [path], files)
            else:
                (base / path).parent.mkdir(parents=True, exist_ok=True)
                (base / path).symlink_to(links[path])
        return machine.catalog()
    finally:
        shutil.rmtree(machine.home)
        shutil.rmtree(machine.repo)


@pytest.mark.req("K-44")
@given(files=FILES, links=LINKS, data=st.data())
@settings(max_examples=examples(25), deadline=None)
def test_any_tree_gives_one_catalog_in_whatever_order_it_was_made(
    files: dict[str, str], links: dict[str, str], data: st.DataObject
) -> None:
    paths = [*files, *links]
    one, other = data.draw(st.permutations(paths)), data.draw(st.permutations(paths))

    with tempfile.TemporaryDirectory() as folder:
        base = Path(os.path.realpath(folder))
        assert catalog_of(base, files, links, one) == catalog_of(base, files, links, other)
