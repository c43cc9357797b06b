"""The tables `[[install]]` of a configuration file, and the lock as it is written."""

import json
from pathlib import Path

import pytest
from support.trees import Machine

from skillshelf.catalog.lock import LockedSkill, UnusableLock, parse_lock
from skillshelf.config.settings import load_settings
from skillshelf.core.environment import Environment, make_environment
from skillshelf.errors import ConfigurationError
from skillshelf.install.lock_file import encode_lock
from skillshelf.install.scope import scope_of
from skillshelf.install.wishes import Wish, changed_wishes, read_wishes, wishes_in, with_wishes, without_wishes

FILE = """\
# our skills
profile = "standard"  # for now

[[install]]  # the first
source = "acme/pdf"   # from there
name = "pdf"

# notes are in another place
[[install]]
source = "acme/notes"
name = "notes"
hosts = [
  "codex",  # only
]

[skills]
disabled = ["x"]  # no
"""


def environment_of(machine: Machine) -> Environment:
    return make_environment(str(machine.repo), str(machine.home), {})


def changed(text: str, *wishes: Wish) -> str:
    return with_wishes(text.encode(), wishes, "skillshelf.toml").decode()


def test_a_new_wish_goes_behind_the_last_one_and_everything_else_stays() -> None:
    before = wishes_in(FILE.encode(), "skillshelf.toml")
    after = changed_wishes(before, "web", Wish("acme/web", path="skills/web", ref="v1", hosts=("codex",)))

    new = '\n[[install]]\nsource = "acme/web"\npath = "skills/web"\nref = "v1"\nname = "web"\nhosts = ["codex"]\n'
    assert changed(FILE, *after) == FILE.replace("]\n\n[skills]", f"]\n{new}\n[skills]")


def test_a_changed_wish_keeps_its_place_and_its_comments() -> None:
    before = wishes_in(FILE.encode(), "skillshelf.toml")
    after = changed_wishes(before, "pdf", Wish("acme/pdf", ref="v2"))

    assert changed(FILE, *after) == FILE.replace('name = "pdf"\n', 'name = "pdf"\nref = "v2"\n')


def test_a_removed_wish_leaves_the_comments_around_it() -> None:
    before = wishes_in(FILE.encode(), "skillshelf.toml")
    after = changed(FILE, *without_wishes(before, "notes", "", ""))

    assert "acme/notes" not in after
    assert "# notes are in another place" in after
    assert after.endswith('\n[skills]\ndisabled = ["x"]  # no\n')
    assert changed(after) == '# our skills\nprofile = "standard"  # for now\n' + after.partition('name = "pdf"\n')[2]


def test_an_empty_file_gets_one_table_and_is_empty_again_without_it() -> None:
    one = changed("", Wish("acme/pdf", name="pdf"))
    assert one == '[[install]]\nsource = "acme/pdf"\nname = "pdf"\n'
    assert changed(one) == ""


@pytest.mark.parametrize(
    "text",
    [
        'install = [{ source = "acme/pdf", name = "pdf" }]\n',
        '"install" = [{ source = "acme/pdf", name = "pdf" }]\n',
        '[[ install ]]\nsource = "acme/pdf"\nname = "pdf"\n',
        '[["install"]]\nsource = "acme/pdf"\nname = "pdf"\n',
        'note = """\n[[install]]\n"""\n\n[[install]]\nsource = "acme/pdf"\nname = "pdf"\n',
    ],
)
def test_wishes_in_any_spelling_are_changed(text: str) -> None:
    wishes = (Wish("acme/pdf", name="pdf"), Wish("acme/web", name="web"))
    assert set(wishes_in(changed(text, *wishes).encode(), "x")) == set(wishes)


def test_a_wish_without_a_name_is_that_of_the_skill_from_its_source() -> None:
    written = Wish("acme/pdf", path="skills/pdf")

    assert changed_wishes([written], "pdf", written) == (written,)
    moved = written._replace(ref="v2")
    assert changed_wishes([written], "pdf", moved) == (moved._replace(name="pdf"),)
    assert without_wishes([written], "pdf", "acme/pdf", "skills/pdf") == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[install]]\nname = 'x'\n", "line 1: `install[0].source` is missing"),
        ("\n[[install]]\nsource = 'a/b'\nversion = 1\n", "`install[0].version` is not a known member"),
        ("[[install]]\nsource = 'a/b'\nhosts = 'codex'\n", "must be a list of texts"),
        ("[[install]]\nsource = 'a/b'\nhosts = ['nobody']\n", "unknown host"),
        ("[[install]]\nsource = ''\n", "must not hold an empty text"),
        ("[install]\nsource = 'a/b'\n", "must be a list"),
        ("[[install]]\nsource = 'a'\nname = 'x'\n[[install]]\nsource = 'b'\nname = 'x'\n", "names 'x' twice"),
        ("[[install]]\nsource = 'a'\nname = '../x'\n", "is not a name to install a skill as"),
    ],
)
def test_wishes_that_are_none_are_refused(text: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=r"skillshelf\.toml") as caught:
        wishes_in(text.encode(), "skillshelf.toml")
    assert said in str(caught.value)


# Settings beside wishes ---------------------------------------------------------------------------


def test_a_list_of_wishes_hides_no_settings_of_the_project(machine: Machine) -> None:
    (machine.repo / "pyproject.toml").write_text('[tool.skillshelf]\nprofile = "strict"\n')
    (machine.repo / "skillshelf.toml").write_text('[[install]]\nsource = "acme/pdf"\n')
    assert load_settings(environment_of(machine)).profile == "strict"

    (machine.repo / "skillshelf.toml").write_text('profile = "rip"\n[[install]]\nsource = "acme/pdf"\n')
    assert load_settings(environment_of(machine)).profile == "rip"


def test_wishes_of_an_untrusted_project_are_no_warning(machine: Machine) -> None:
    (machine.repo / "skillshelf.toml").write_text('[[install]]\nsource = "acme/pdf"\n')
    assert load_settings(environment_of(machine), trust="ask").warnings == ()


def test_the_wishes_of_the_user_stand_beside_the_settings(machine: Machine) -> None:
    machine.configure('profile = "strict"\n[[install]]\nsource = "acme/pdf"\n')
    environment = environment_of(machine)

    assert load_settings(environment).profile == "strict"
    assert read_wishes(scope_of(environment, user=True)) == (Wish("acme/pdf"),)


# Where it all lies --------------------------------------------------------------------------------


def test_a_project_is_the_repository_and_else_the_working_directory(machine: Machine, tmp_path: Path) -> None:
    inner, other = machine.repo / "deep" / "er", tmp_path / "other"
    inner.mkdir(parents=True)
    other.mkdir()

    scope = scope_of(environment_of(machine)._replace(cwd=str(inner)), user=False)
    assert (scope.root, scope.skills_folder) == (str(machine.repo), f"{machine.repo}/.agents/skills")
    assert scope_of(environment_of(machine)._replace(cwd=str(other)), user=False).root == str(other)


def test_another_configuration_for_one_command_does_not_move_what_is_installed(machine: Machine) -> None:
    environment = environment_of(machine)
    for config in (str(machine.base / "other.toml"), {"profile": "strict"}):
        assert scope_of(environment._replace(config=config), user=True) == scope_of(environment, user=True)


def test_without_a_home_folder_nothing_can_be_installed(machine: Machine) -> None:
    with pytest.raises(ConfigurationError, match="--home"):
        scope_of(environment_of(machine)._replace(home=None, home_moved=False), user=False)


# The lock -----------------------------------------------------------------------------------------

LOCKED = LockedSkill("./pdf", "", None, None, None, f"sha256:{'0' * 64}", 1, 2, ["codex", "claude-code"])


def test_a_lock_is_sorted_has_all_members_and_ends_with_a_newline() -> None:
    data = encode_lock({"web": LOCKED, "pdf": LOCKED}, "skillshelf.lock")

    assert data == (json.dumps(json.loads(data), indent=2, sort_keys=True) + "\n").encode()
    assert list(json.loads(data)["skills"]) == ["pdf", "web"]
    assert parse_lock(data, "x")["pdf"] == LOCKED._replace(hosts=["claude-code", "codex"])


def test_a_lock_that_would_be_refused_is_not_written() -> None:
    with pytest.raises(UnusableLock, match="nearly the same name"):
        encode_lock({"pdf": LOCKED, "PDF": LOCKED}, "skillshelf.lock")
