"""The documentation is made from the code, and every example in it runs."""

import importlib.util
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from reference import undocumented
from support.needs import REQUIRED, require
from support.trees import SOURCE, Machine

import skillshelf
from skillshelf.cli.command_table import COMMANDS, SHARED
from skillshelf.config.builtin_profiles import SYSTEMS
from skillshelf.config.profile import RULES, Profile, profile_to_dict

REPOSITORY = Path(__file__).parent.parent
PACKAGE = Path(skillshelf.__file__).parent
PAGES = [REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]


def name_of(page: Path) -> str:
    """Return the path of a page in the repository."""
    return page.relative_to(REPOSITORY).as_posix()


def _tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_tool", REPOSITORY / "tools" / "docs.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _missing_package(block: str) -> str | None:
    """A package that an example imports and that is not here; packages of our own extras may be absent."""
    packages = re.findall(r"^(?:from|import) (\w+)", block, re.MULTILINE)
    return next((name for name in packages if name not in REQUIRED and importlib.util.find_spec(name) is None), None)


def _blocks(page: Path, language: str) -> list[str]:
    """Return the blocks of a language; those that need a model are run by tests/adapters/test_adapters_page.py."""
    text = re.sub(
        r"^<!-- model.*?^```\w+\n.*?^```\n", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def _is_scratch(page: Path) -> bool:
    return re.search(r"^<!-- scratch", page.read_text(encoding="utf-8"), re.MULTILINE) is not None


def _pages_to_make() -> list[object]:
    """Return every page; those that run commands are slow."""
    return [pytest.param(page, marks=[pytest.mark.slow] if _blocks(page, "console") else []) for page in PAGES]


@pytest.mark.parametrize("page", _pages_to_make(), ids=name_of)
def test_a_page_is_as_the_code_makes_it(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    if any("skillshelf site" in block for block in _blocks(page, "console")):
        require("nh3")

    assert text == _tool().render(text), "run: python tools/docs.py"


RUN_ALL = """
import json, sys, traceback

for number, block in json.load(sys.stdin):
    try:
        exec(compile(block, f"example {number}", "exec"), {"__name__": "__main__"})
    except BaseException:
        sys.exit(f"example {number}:\\n{traceback.format_exc()}")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [page for page in PAGES if _blocks(page, "python") and not _is_scratch(page)], ids=name_of
)
def test_python_examples_run_as_written(page: Path) -> None:
    """One process for a page: most of the time is spent on importing what its examples import."""
    blocks = dict(enumerate(_blocks(page, "python"), 1))
    absent = {number: package for number, block in blocks.items() if (package := _missing_package(block))}
    done = subprocess.run(
        [sys.executable, "-c", RUN_ALL],
        input=json.dumps([(number, block) for number, block in blocks.items() if number not in absent]),
        cwd=REPOSITORY,
        env={"PYTHONPATH": SOURCE, "HOME": "/nonexistent"},
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert done.returncode == 0, done.stderr
    if absent:
        pytest.skip(f"not installed: {', '.join(sorted(set(absent.values())))}")


@pytest.mark.parametrize("page", [page for page in PAGES if _is_scratch(page)], ids=name_of)
def test_a_page_with_a_scratch_folder_runs_all_its_python(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    programs = re.findall(r"<!-- file: (\S+) -->\n+```python\n", text)

    assert len(programs) == len(_blocks(page, "python"))
    assert [program for program in programs if f"\n$ python {program}\n" not in text] == []


# The file of a system policy has other keys, and a test of its own in `tests/config/test_system_policy.py`.
@pytest.mark.parametrize(
    "page", [page for page in PAGES if _blocks(page, "toml") and page.name != "policy.md"], ids=name_of
)
def test_configuration_examples_are_accepted(page: Path, machine: Machine) -> None:
    for block in _blocks(page, "toml"):
        machine.configure(block)
        wishes = tomllib.loads(block)
        for name in ["standard", *wishes.get("profiles", {})]:
            assert machine.shelf(name).profile.name == name


def test_every_field_of_a_profile_is_documented_and_nothing_else() -> None:
    page = REPOSITORY / "docs" / "reference" / "profiles.md"
    text = page.read_text(encoding="utf-8").partition("## Every field")[2]
    documented = re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)

    assert documented == list(Profile._fields)


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_command_prints_every_field_of_a_profile(name: str, machine: Machine) -> None:
    assert machine.run_json("profile", name) == profile_to_dict(SYSTEMS[name])


def test_every_rule_and_every_command_has_its_place_in_the_documentation() -> None:
    rules = (REPOSITORY / "docs" / "reference" / "rules.md").read_text(encoding="utf-8")
    commands = (REPOSITORY / "docs" / "commands.md").read_text(encoding="utf-8")

    assert [rule for rule in RULES if f"`{rule}`" not in rules] == []
    assert [name for name in COMMANDS if name and name != "help" and f"## `skillshelf {name}" not in commands] == []


def test_every_public_name_has_a_docstring() -> None:
    assert undocumented() == []


def test_the_reference_shows_every_public_name_once() -> None:
    text = (REPOSITORY / "docs" / "python.md").read_text(encoding="utf-8")

    assert sorted(re.findall(r"^### `(\w+)`$", text, re.MULTILINE)) == sorted({*skillshelf.__all__} - {"__version__"})


def test_every_command_takes_the_shared_options() -> None:
    for name, command in COMMANDS.items():
        assert name == "help" or set(SHARED) <= set(command.options)


def test_the_page_about_the_architecture_names_modules_that_exist() -> None:
    text = (REPOSITORY / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:\w+/)+\w+)`", text))

    assert {"catalog/load", "hosts/stages"} <= named
    assert [name for name in named if not (PACKAGE / f"{name}.py").exists() and not (PACKAGE / name).is_dir()] == []
    assert {name for name in packages() if f"| `{name}` |" not in text} == set()


def packages() -> set[str]:
    """Return the names of the packages and modules directly below `skillshelf`."""
    found = PACKAGE.iterdir()
    named = {path.stem for path in found if path.suffix == ".py" or (path / "__init__.py").exists()}
    return named - {"__init__", "__main__"}


def _without_code(text: str) -> str:
    return re.sub(r"^(`{3,}).*?^\1", "", text, flags=re.DOTALL | re.MULTILINE)


def test_links_between_the_pages_lead_somewhere() -> None:
    dead = [
        (name_of(page), target)
        for page in PAGES
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", _without_code(page.read_text(encoding="utf-8")))
        if not (page.parent / target).exists()
    ]
    assert dead == []


def test_the_pages_give_one_shell_line_for_a_digest() -> None:
    pages = ("docs/reference/files.md", "docs/install.md")
    texts = [(REPOSITORY / page).read_text(encoding="utf-8") for page in pages]
    lines = [re.findall(r"^\{ echo skill-tree-v1;.*?sha256sum$", text, re.DOTALL | re.MULTILINE) for text in texts]

    assert len(lines[0]) == 1
    assert lines[0] == lines[1]


def test_pages_that_the_code_names_exist() -> None:
    named = {
        (path.name, page)
        for path in PACKAGE.rglob("*.py")
        for page in re.findall(r"(?<![\w/.])docs/[\w/-]+\.md", path.read_text(encoding="utf-8"))
    }

    assert named
    assert {(module, page) for module, page in named if not (REPOSITORY / page).exists()} == set()


def test_the_readme_stays_short_and_continuous_integration_runs_its_test_command() -> None:
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    script = (REPOSITORY / ".ci" / "run").read_text(encoding="utf-8")

    assert len(readme.splitlines()) <= 120
    assert "-m pytest" in readme
    assert "README.md" in script
