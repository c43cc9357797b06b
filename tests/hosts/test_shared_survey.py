"""One scan for all hosts: what it finds, what a question about one skill builds, and what a kept survey may say."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.host_cases import PLACE_CASES, PlaceCase, trust
from support.host_runs import Run, json_output
from support.trees import Machine, write_skill

from skillshelf.catalog import prompt
from skillshelf.catalog.discovery import Repeat, discover
from skillshelf.catalog.search_roots import resolve_roots
from skillshelf.catalog.shared_scan import SharedScan
from skillshelf.config.hosts import HOSTS
from skillshelf.config.profile import Profile
from skillshelf.config.settings import Settings
from skillshelf.core.environment import Environment, user_cache_folder
from skillshelf.core.limits import LINKED_FOLDERS
from skillshelf.core.values import Candidate
from skillshelf.hosts import packed_survey, survey
from skillshelf.hosts.overview import overview_of
from skillshelf.hosts.stages import judge
from skillshelf.hosts.survey import Survey, take_survey

MANY = 70


def place_of(machine: Machine, cwd: Path | None = None) -> Environment:
    return Environment(str(cwd or machine.repo), str(machine.home), {})


def built(case: PlaceCase, machine: Machine) -> Environment:
    case.build(machine)
    cwd = machine.base / case.cwd
    cwd.mkdir(parents=True, exist_ok=True)
    trust(machine, cwd)
    return place_of(machine, cwd)


def write_many(root: Path) -> None:
    for number in range(MANY):
        write_skill(root, f"skill-{number}")


# The walk -----------------------------------------------------------------------------------------


def assert_walks_agree(place: Environment) -> None:
    scan = SharedScan()
    for profile in HOSTS.values():
        roots = resolve_roots(profile, place, Settings(), trust="all")
        alone = list(discover(roots.roots, profile, repository=roots.repository))
        shared = scan.walk(roots.roots, profile, repository=roots.repository).found()
        files = [[one for one in found if isinstance(one, Candidate | Repeat)] for found in (alone, shared)]
        others = [{one for one in found if not isinstance(one, Candidate | Repeat)} for found in (alone, shared)]
        assert files[0] == files[1], profile.name
        assert others[0] == others[1], profile.name


@pytest.mark.parametrize("case", PLACE_CASES, ids=lambda case: f"{case.number} {case.title}")
def test_a_shared_scan_finds_what_each_host_finds_alone(case: PlaceCase, machine: Machine) -> None:
    assert_walks_agree(built(case, machine))


def test_a_shared_scan_finds_the_same_among_odd_entries(machine: Machine) -> None:
    root = machine.home / ".agents/skills"
    for name in ("alpha", "beta", "gamma", "node_modules", ".hidden", "delta"):
        write_skill(root, name)
    write_skill(root, "inner", folder="beta/inner")
    write_skill(root, "grouped", folder="group/grouped")
    (root / "alpha/scripts").mkdir()
    (root / "alpha/scripts/run.py").write_text("")
    (root / "gamma/skill.md").write_text("a twin")
    (root / "delta/references").mkdir()
    (root / "delta/references/skill.md").write_text("a near miss")
    (root / "another").symlink_to(root / "alpha")
    (root / "zeta").symlink_to(root / "beta")
    (root / "loose.md").write_text("---\nname: loose\ndescription: Loose.\n---\n")
    (root / "link-inside").mkdir()
    (root / "link-inside/SKILL.md").symlink_to(root / "alpha/SKILL.md")
    shutil.copytree(root, machine.repo / ".claude/skills", symlinks=True)

    assert_walks_agree(place_of(machine))


def test_the_limit_of_a_walk_counts_what_lies_in_plain_folders(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = machine.home / ".agents/skills"
    for number in range(12):
        path = write_skill(root, f"skill-{number:02}")
        for name in ("a.txt", "b.txt", "c.txt", "d.txt"):
            (path.parent / name).write_text("")
    for limit in range(1, 15):
        for name in ("codex", "goose", "pi"):
            monkeypatch.setitem(HOSTS, name, HOSTS[name]._replace(max_directories=limit))
        assert_walks_agree(place_of(machine))


# Questions about one skill ------------------------------------------------------------------------


@pytest.mark.parametrize("case", PLACE_CASES, ids=lambda case: f"{case.number} {case.title}")
def test_what_matters_to_a_file_gives_the_verdict_of_the_whole_catalog(case: PlaceCase, machine: Machine) -> None:
    place = built(case, machine)
    part, whole = take_survey(place, tuple(HOSTS)), take_survey(place, tuple(HOSTS))

    for skill_file in whole.skill_files:
        for host, state in whole.states.items():
            assert judge(skill_file, part.state_about(host, skill_file), part) == judge(skill_file, state, whole)


def count_builds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets the number of files of every catalog that is built."""
    sizes: list[int] = []
    build: Callable[..., Any] = vars(survey)["build"]

    def counted(found: Sequence[Any], *arguments: Any, **options: Any) -> Any:
        sizes.append(sum(isinstance(one, Candidate) for one in found))
        return build(found, *arguments, **options)

    monkeypatch.setattr(survey, "build", counted)
    return sizes


def test_why_builds_whole_catalogs_only_for_budgets(
    machine: Machine, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_many(machine.home / ".agents/skills")
    sizes = count_builds(monkeypatch)
    written: list[str] = []
    write_text: Callable[..., Any] = prompt.catalog_text

    def counted(skills: Any, profile: Profile, *rest: Any) -> Any:
        written.append(profile.name)
        return write_text(skills, profile, *rest)

    monkeypatch.setattr(prompt, "catalog_text", counted)

    run("why", "skill-7", "--no-cache")

    # Lists without a budget are not measured, and of the others most without their text.
    assert all(HOSTS[host].catalog_budget for host in written)
    assert len(written) <= 3
    reading = [host for host in HOSTS.values() if any(".agents/skills" in rule.paths for rule in host.roots)]
    assert sum(size == MANY for size in sizes) <= sum(bool(host.catalog_budget) for host in reading)
    assert [size for size in sizes if 2 < size < MANY] == []


def test_a_file_is_parsed_as_yaml_once_for_all_hosts(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    write_many(machine.home / ".agents/skills")
    from skillshelf.catalog import document

    texts: list[str] = []
    load: Callable[[str], Any] = document.YAML_MODES["full"]

    def counted(text: str) -> Any:
        texts.append(text)
        return load(text)

    monkeypatch.setattr(document, "YAML_MODES", {**document.YAML_MODES, "full": counted})

    overview_of(take_survey(place_of(machine), tuple(HOSTS)))

    assert len(texts) == MANY


# Kept surveys -------------------------------------------------------------------------------------


@pytest.fixture
def kept(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Callable[[], tuple[Survey, bool]]:
    """Return a function that takes a survey with a cache, and says whether it came from there."""
    monkeypatch.setattr("skillshelf.catalog.disk_state.SETTLED_NS", 0)
    monkeypatch.setattr(packed_survey, "CACHE_FROM", 0)
    place = place_of(machine)
    folder = user_cache_folder(place)
    assert folder is not None

    def take(learn: str = "both") -> tuple[Survey, bool]:
        taken = take_survey(place, tuple(HOSTS), cache_folder=folder)
        if learn in ("overview", "both"):
            overview_of(taken)
        for host in HOSTS if learn in ("sizes", "both") else ():
            taken.list_size(host)
        taken.keep(folder)
        return taken, taken.packed is not None

    return take


def everything_in(taken: Survey) -> Any:
    """Return all that a survey says, judged file by file."""
    verdicts = [
        judge(skill_file, taken.state_about(host, skill_file), taken)
        for skill_file in taken.skill_files
        for host in taken.hosts
    ]
    sizes = {host: taken.list_size(host) for host in taken.hosts}
    plain = [skill_file._replace(data=None, digest=skill_file.text[0]) for skill_file in taken.skill_files]
    return plain, verdicts, sizes, overview_of(taken), taken.unseen


def test_a_kept_survey_says_the_same(machine: Machine, kept: Callable[[], tuple[Survey, bool]]) -> None:
    write_many(machine.home / ".agents/skills")
    write_skill(machine.repo / ".claude/skills", "skill-3")
    write_skill(machine.repo / ".claude/skills", "broken", "---\nname: [\n---\n")
    (machine.repo / ".claude/skills/linked").symlink_to(machine.home / ".agents/skills/skill-5")
    (machine.home / ".agents/skills/odd").mkdir()
    (machine.home / ".agents/skills/odd/skill.md").write_text("---\nname: odd\ndescription: Odd.\n---\n")

    first, was_kept = kept()
    second, is_kept = kept()

    assert (was_kept, is_kept) == (False, True)
    assert everything_in(second) == everything_in(first)


def _edit_in_place(root: Path) -> None:
    path = root / "skill-1/SKILL.md"
    before = path.stat()
    path.write_text(path.read_text().replace("Does skill-1 things", "Does other things!")[: before.st_size])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _turn_folder_into_link(root: Path) -> None:
    shutil.rmtree(root / "skill-1")
    (root / "skill-1").symlink_to(root / "skill-2")


def _turn_file_into_link(root: Path) -> None:
    (root / "skill-1/SKILL.md").unlink()
    (root / "skill-1/SKILL.md").symlink_to(root / "skill-2/SKILL.md")


def _redirect_link(root: Path) -> None:
    (root / "link").unlink()
    (root / "link").symlink_to(root / "skill-4")


def _turn_off_in_codex(root: Path) -> None:
    folder = root.parents[1] / ".codex"
    folder.mkdir()
    (folder / "config.toml").write_text('[[skills.config]]\nname = "skill-1"\nenabled = false\n')


CHANGES: dict[str, Callable[[Path], object]] = {
    "an edit that keeps size and time": _edit_in_place,
    "a new skill": lambda root: write_skill(root, "new"),
    "a skill inside a skill": lambda root: write_skill(root, "inner", folder="skill-1/inner"),
    "a skill below a folder of a skill": lambda root: write_skill(root, "deep", folder="skill-2/scripts/deep"),
    "a removed skill": lambda root: shutil.rmtree(root / "skill-1"),
    "a renamed folder": lambda root: (root / "skill-1").rename(root / "renamed"),
    "a folder that became a link": _turn_folder_into_link,
    "a file that became a link": _turn_file_into_link,
    "a link that leads elsewhere": _redirect_link,
    "another root": lambda root: write_skill(root.parents[1] / ".claude/skills", "skill-1"),
    "a setting of a host": _turn_off_in_codex,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_kept_survey_does_not_survive(
    change: Callable[[Path], object], machine: Machine, kept: Callable[[], tuple[Survey, bool]]
) -> None:
    root = machine.home / ".agents/skills"
    for number in range(5):
        path = write_skill(root, f"skill-{number}")
        (path.parent / "scripts").mkdir()
    (root / "link").symlink_to(root / "skill-3")
    kept()
    assert kept()[1]

    change(root)
    seen, is_kept = kept()

    assert not is_kept
    assert everything_in(seen) == everything_in(take_survey(place_of(machine), tuple(HOSTS)))


@pytest.mark.heavy
def test_a_damaged_survey_costs_time_and_nothing_else(
    machine: Machine, kept: Callable[[], tuple[Survey, bool]]
) -> None:
    write_many(machine.home / ".agents/skills")
    right = everything_in(kept()[0])
    (path,) = Path(user_cache_folder(place_of(machine)) or "").glob("packed/*")
    data = path.read_bytes()

    for at in range(0, len(data), max(1, len(data) // 40)):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :])
        assert everything_in(kept()[0]) == right
    for at in (0, 10, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:at])
        assert everything_in(kept()[0]) == right


def test_files_that_just_changed_are_not_kept(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_survey, "CACHE_FROM", 0)
    write_skill(machine.home / ".agents/skills", "deploy")
    folder = user_cache_folder(place_of(machine))
    assert folder is not None

    for _ in range(2):
        taken = take_survey(place_of(machine), tuple(HOSTS), cache_folder=folder)
        taken.keep(folder)

    assert taken.packed is None


def test_commands_print_the_same_from_a_kept_survey(
    machine: Machine, run: Run, kept: Callable[[], tuple[Survey, bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_many(machine.repo / ".claude/skills")
    sizes = count_builds(monkeypatch)

    for words, schema, built in ((("hosts",), "hosts", 0), (("why", "skill-5"), "why", 2)):
        first = json_output(run, *words, schema=schema)
        sizes.clear()
        assert json_output(run, *words, schema=schema) == first
        assert all(size <= built for size in sizes)
        assert json_output(run, *words, "--no-cache", schema=schema) == first


def test_a_broken_link_through_another_link_and_a_linked_home_are_seen_when_they_change(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skillshelf.catalog.disk_state.SETTLED_NS", 0)
    root, place = machine.home / ".claude" / "skills", machine.base / "place"
    for number in range(70):
        write_skill(root, f"s{number:03}")
    place.mkdir()
    for link in ("one", "two"):
        (place / link).symlink_to(machine.base / "nowhere" / "first")
        (root / link).symlink_to(place / link)
    (machine.base / "other" / ".claude").mkdir(parents=True)
    (machine.base / "other" / ".claude" / "skills").symlink_to(root)
    home = machine.base / "linked-home"
    home.symlink_to(machine.home)

    def compare() -> None:
        for words in (("hosts", "--json"), ("why", "one", "--json")):
            options = ("--home", str(home))
            assert machine.run(*words, *options).stdout == machine.run(*words, *options, "--no-cache").stdout, words

    compare()
    (place / "one").unlink()
    (place / "one").symlink_to(machine.base / "nowhere" / "second")
    compare()
    home.unlink()
    home.symlink_to(machine.base / "other")
    compare()


# Surveys that are brought up to date --------------------------------------------------------------

_NAMES = [f"skill-{number}" for number in range(6)] + ["Skill-1", "other"]


def _text(dice: random.Random) -> str:
    """Return a SKILL.md, mostly an ordinary one, whose name others may have too."""
    name, words = dice.choice(_NAMES), " ".join(["words"] * dice.choice((1, 5, 90)))
    return dice.choice(
        [
            f"---\nname: {name}\ndescription: About {words}.\n---\n",
            f"---\nname: {name}\ndescription: About {words}.\n---\nA body.\n",
            f'---\nname: "{name}"\ndescription: "{words} --- more"\ndisable-model-invocation: true\n---\n',
            f"---\nname: {name}\ndescription: a: b {words}\n---\n",
            f"---\ndescription: No name, {words}.\n---\n",
            f"---\nname: {name}\n---\n",
            "no frontmatter\n",
            "---\nname: [\n---\n",
        ]
    )


def _a_skill(root: Path, dice: random.Random) -> Path:
    return root / dice.choice(sorted(path.name for path in root.iterdir() if (path / "SKILL.md").is_file()))


def _write_by_name(folder: Path, dice: random.Random) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "SKILL.md").write_text(_text(dice))


def _write_by_rename(folder: Path, dice: random.Random) -> None:
    (folder / "new").write_text(_text(dice))
    (folder / "new").rename(folder / "SKILL.md")


def _link(root: Path, dice: random.Random) -> None:
    with contextlib.suppress(FileExistsError):
        (root / f"link-{dice.randrange(3)}").symlink_to(_a_skill(root, dice))


def _remove(folder: Path) -> None:
    folder.unlink() if folder.is_symlink() else shutil.rmtree(folder)


EDITS: tuple[Callable[[Path, random.Random], object], ...] = (
    lambda root, dice: _write_by_name(_a_skill(root, dice), dice),
    lambda root, dice: _write_by_name(_a_skill(root, dice), dice),
    lambda root, dice: _write_by_rename(_a_skill(root, dice), dice),
    lambda root, dice: _write_by_name(root / f"new-{dice.randrange(9)}", dice),
    lambda root, dice: _write_by_name(root / f"new-{dice.randrange(9)}", dice),
    lambda root, dice: _remove(_a_skill(root, dice)),
    lambda root, dice: _a_skill(root, dice).rename(root / f"moved-{dice.randrange(1000)}"),
    lambda root, dice: (_a_skill(root, dice) / "scripts" / str(dice.randrange(3))).mkdir(parents=True, exist_ok=True),
    lambda root, dice: (_a_skill(root, dice) / dice.choice(("a.txt", "skill.md", "b.txt"))).write_text(""),
    lambda root, dice: write_skill(root, "inner", folder=f"{_a_skill(root, dice).name}/inner"),
    lambda root, dice: write_skill(root, "grouped", folder=f"group/{dice.choice(_NAMES)}"),
    _link,
)


@pytest.mark.heavy
@pytest.mark.parametrize("seed", range(int(os.environ.get("SKILLSHELF_SURVEY_SEQUENCES", "6"))))
def test_a_survey_says_after_every_edit_what_a_new_one_says(
    seed: int, machine: Machine, kept: Callable[..., tuple[Survey, bool]]
) -> None:
    dice = random.Random(seed)
    roots = [machine.home / ".agents/skills", machine.home / ".claude/skills"]
    for root in roots:
        for number in range(12):
            write_skill(
                root, f"{root.parent.name[1:]}-{number}", f"---\nname: skill-{number}\ndescription: One.\n---\n"
            )
    kept()
    is_updated = 0
    for _ in range(10):
        time.sleep(0.01)
        # Few of the walks that are not plain, or nothing would ever be brought up to date.
        edits = EDITS if dice.random() < 0.2 else EDITS[:8]
        for _ in range(dice.choice((1, 1, 1, 3))):
            dice.choice(edits)(dice.choice(roots), dice)
        time.sleep(0.01)

        seen, _ = kept(dice.choice(("overview", "sizes", "both", "nothing")))

        is_updated += seen.disk is not None
        assert everything_in(seen) == everything_in(take_survey(place_of(machine), tuple(HOSTS)))
    assert is_updated


@pytest.mark.parametrize("edit", EDITS[:6])
def test_an_edit_opens_no_file_that_has_not_changed(
    edit: Callable[[Path, random.Random], object],
    machine: Machine,
    kept: Callable[..., tuple[Survey, bool]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root = machine.home / ".agents/skills"
    write_many(root)
    kept()
    edit(root, random.Random(3))
    time.sleep(0.01)
    opened: list[str] = []
    open_file: Callable[..., int] = os.open

    def counted(path: Any, *arguments: Any, **options: Any) -> int:
        opened.append(os.fsdecode(path) if isinstance(path, str | bytes) else "")
        return open_file(path, *arguments, **options)

    monkeypatch.setattr(os, "open", counted)

    seen, _ = kept("overview")

    assert seen.disk is not None
    assert opened.count("SKILL.md") <= 8


def test_a_file_that_leaves_a_host_without_a_list_counts_for_all_its_skills(
    machine: Machine, kept: Callable[..., tuple[Survey, bool]]
) -> None:
    root = machine.home / ".agents/skills"
    write_many(root)
    kept()
    seen = []
    for text in ("---\nname: odd\ndescription: {a: b}\n---\n", "---\nname: odd\ndescription: One.\n---\n"):
        time.sleep(0.01)
        write_skill(root, "odd", text)
        time.sleep(0.01)

        survey, _ = kept()

        assert survey.disk is not None
        other = survey.by_path[str(root / "skill-7/SKILL.md")]
        seen.append(judge(other, survey.state_about("amp", other), survey).visible)
        assert everything_in(survey) == everything_in(take_survey(place_of(machine), tuple(HOSTS)))
    assert seen == [None, True]


def test_a_limit_that_a_new_skill_reaches_is_seen(
    machine: Machine, kept: Callable[..., tuple[Survey, bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = machine.home / ".agents/skills"
    for number in range(20):
        write_skill(root, f"skill-{number}")
    for name in ("codex", "goose"):
        monkeypatch.setitem(HOSTS, name, HOSTS[name]._replace(max_directories=5))
    for number in range(20, 32):
        kept()
        time.sleep(0.01)
        write_skill(root, f"skill-{number}")
        time.sleep(0.01)
        assert everything_in(kept()[0]) == everything_in(take_survey(place_of(machine), tuple(HOSTS)))


@pytest.mark.heavy
@pytest.mark.slow
def test_commands_print_after_every_edit_what_they_print_without_a_cache(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skillshelf.catalog.disk_state.SETTLED_NS", 0)
    root, dice = machine.home / ".agents/skills", random.Random(7)
    write_many(root)
    questions = (("hosts", "--json"), ("why", "skill-5", "--json"), ("hosts",), ("why", "skill-5"))
    for words in questions:
        machine.run(*words)
    for _ in range(12):
        dice.choice(EDITS)(root, dice)
        time.sleep(0.01)
        words = dice.choice(questions)
        first, second = machine.run(*words), machine.run(*words, "--no-cache")
        assert (first.returncode, first.stdout, first.stderr) == (second.returncode, second.stdout, second.stderr), (
            words
        )


# Links out of a project ---------------------------------------------------------------------------


def test_a_link_of_a_project_to_a_large_folder_costs_one_line_and_a_linked_skill_is_still_seen(
    machine: Machine, run: Run
) -> None:
    elsewhere = machine.base / "elsewhere"
    for number in range(40):
        (elsewhere / f"tree/{number:02}/a/b").mkdir(parents=True)
        (elsewhere / f"tree/{number:02}/gone").symlink_to("nowhere")
    write_skill(elsewhere, "zeta")
    skills = machine.repo / ".agents/skills"
    skills.mkdir(parents=True)
    (skills / "large").symlink_to(elsewhere / "tree")
    (skills / "zeta").symlink_to(elsewhere / "zeta")

    status, _, err = run("why", "zeta", "--host", "codex")

    assert status == 0
    (line,) = [line for line in err.splitlines() if "not everything was scanned" in line]
    stopped = f"stopped after {LINKED_FOLDERS} folders without a skill behind links of the project; "
    assert line.startswith(f"skillshelf: not everything was scanned: {skills}: {stopped}")
    assert machine.names("host:codex") == ["zeta"]
