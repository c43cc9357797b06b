"""`doctor` names what is wrong with an installation, and repairs only what can be made again."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from support.host_runs import Run, json_output
from support.trees import Machine, write_skill

from skillshelf.cli.command_table import COMMANDS
from skillshelf.cli.doctor import CHECKS

FAST = ("folders", "cache", "packed", "index", "runs", "approvals", "usage", "configuration", "links")
"""Checks that start no process."""


@pytest.fixture(autouse=True)
def own_temporary_folder(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let temporary folders of other tests out of the game."""
    folder = machine.base / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    for variable in ("XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def used(machine: Machine, run: Run, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine with many skills that was used: every kind of cache file is there."""
    for module in ("cache", "disk_state"):
        monkeypatch.setattr(f"skillshelf.catalog.{module}.SETTLED_NS", 0)
    for number in range(80):
        write_skill(machine.repo / ".agents/skills", f"skill-{number}")
    for words in (("list",), ("search", "things that are asked for"), ("why", "skill-1"), ("hosts",)):
        assert run(*words)[0] == 0
    return machine


def problems(run: Run, *words: str) -> dict[str, list[str]]:
    """The problems that are left, by check."""
    found: dict[str, list[str]] = {}
    for check in json_output(run, "doctor", *(words or FAST), schema="doctor")["checks"]:
        if check["state"] == "problem":
            found.setdefault(check["check"], []).append(check["detail"])
    return found


def test_an_empty_home_has_no_problems(machine: Machine, run: Run) -> None:
    status, out, err = run("doctor", *FAST)

    assert (status, err) == (0, "")
    assert out.endswith("\nNo problems\n")
    assert list(machine.home.iterdir()) == []


def test_a_search_where_there_is_no_skill_leaves_an_index_that_is_complete(machine: Machine, run: Run) -> None:
    assert run("search", "anything")[0] == 1

    assert [path.name for path in machine.home.glob(".cache/skillshelf/search/*/seal")] == ["seal"]
    assert problems(run) == {}


def test_a_home_in_use_has_no_problems(used: Machine, run: Run) -> None:
    run("link", "skill-1", "--to", "claude-code")

    assert problems(run) == {}


@pytest.mark.slow
def test_every_check_runs_on_this_machine(machine: Machine, run: Run) -> None:
    found = json_output(run, "doctor", schema="doctor")

    assert {"python", "packages", "native", "sandbox", *FAST} <= {check["check"] for check in found["checks"]}
    assert [check for check in found["checks"] if check["state"] == "problem"] == []


def _damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2 :] = bytes(len(data) - len(data) // 2)
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("check", "pattern"),
    [
        ("cache", "skills.sqlite3"),
        ("packed", "packed/*"),
        ("index", "search/*/seal"),
        ("index", "search/*/index/meta.json"),
    ],
)
def test_a_damaged_part_of_the_cache_is_named_and_made_again(used: Machine, run: Run, check: str, pattern: str) -> None:
    cache = used.home / ".cache/skillshelf"
    paths = list(cache.glob(pattern))
    assert paths
    for path in paths:
        _damage(path)

    assert set(problems(run)) == {check}
    assert run("doctor", *FAST)[0] == 1
    fixed = json_output(run, "doctor", "--fix", *FAST, schema="doctor")
    assert fixed["ok"]
    assert {one["check"] for one in fixed["checks"] if one["fixed"]} == {check}
    assert problems(run) == {}
    for words in (("list",), ("search", "things that are asked for"), ("why", "skill-1")):
        assert run(*words)[0] == 0
    assert problems(run) == {}


APPROVALS = {"version": 1, "approvals": []}


@pytest.mark.parametrize("text", [json.dumps(APPROVALS | {"version": 2}), "{", "[]", '{"version": 1}'])
def test_approvals_that_cannot_be_used_are_named_and_never_emptied(machine: Machine, run: Run, text: str) -> None:
    path = machine.home / ".local/state/skillshelf/approvals.json"
    path.parent.mkdir(parents=True, mode=0o700)
    path.write_text(text)
    path.chmod(0o600)

    status, _, _ = run("doctor", "--fix", *FAST)

    assert status == 1
    assert list(problems(run)) == ["approvals"]
    assert path.read_text() == text


@pytest.mark.parametrize("text", ["profile = 1\n", "[", "unknown_key = true\n", "version = 99\n"])
def test_a_configuration_that_cannot_be_used_is_named_and_stays(machine: Machine, run: Run, text: str) -> None:
    path = machine.configure(text)

    assert run("doctor", "--fix", *FAST)[0] == 1

    assert list(problems(run)) == ["configuration"]
    assert path.read_text() == text


def test_a_file_of_an_untrusted_project_is_no_problem(machine: Machine, run: Run) -> None:
    (machine.repo / "skillshelf.toml").write_text("profile = 'strict'\n")

    found = json_output(run, "doctor", "configuration", schema="doctor")

    assert found["ok"]
    assert str(machine.repo / "skillshelf.toml") in {check["path"] for check in found["checks"]}


def test_a_folder_that_others_can_write_is_tightened(used: Machine, run: Run) -> None:
    cache = used.home / ".cache/skillshelf"
    cache.chmod(0o777)

    assert "other users can write here" in problems(run)["folders"]
    run("doctor", "--fix", *FAST)

    assert cache.stat().st_mode & 0o777 == 0o755
    assert problems(run) == {}


def test_a_link_in_place_of_a_folder_is_a_problem_that_fix_leaves_alone(machine: Machine, run: Run) -> None:
    elsewhere = machine.base / "elsewhere"
    elsewhere.mkdir()
    elsewhere.chmod(0o777)
    (machine.home / ".cache").mkdir()
    (machine.home / ".cache/skillshelf").symlink_to(elsewhere)

    assert run("doctor", "--fix", "folders")[0] == 1

    assert elsewhere.stat().st_mode & 0o777 == 0o777
    assert (machine.home / ".cache/skillshelf").is_symlink()


def test_a_dry_run_says_what_would_be_repaired_and_leaves_it(used: Machine, run: Run) -> None:
    folder = used.home / ".cache/skillshelf"
    folder.chmod(0o777)

    status, out, err = run("doctor", "folders", "--fix", "--dry-run")

    assert (status, folder.stat().st_mode & 0o777) == (1, 0o777)
    assert out.startswith("would fix  folders  ~/.cache/skillshelf: other users can write here\n")
    again = f"skillshelf doctor --cwd {used.repo} --home {used.home} --fix folders"
    assert err == f"skillshelf: run `{again}` to repair what can be made again\n"
    (status, out, _) = run("doctor", "folders", "--fix", "--dry-run", "--json")
    assert [one["fixable"] for one in json.loads(out)["checks"] if one["state"] == "problem"] == [True]
    assert run("doctor", "--dry-run")[0] == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_a_folder_of_another_user_is_a_problem(used: Machine, run: Run) -> None:
    os.chown(used.home / ".cache/skillshelf", 12345, 12345)

    (problem,) = problems(run)["folders"]
    assert problem.startswith("it belongs to another user")


def test_links_and_copies_that_are_no_longer_as_made_are_named(machine: Machine, run: Run) -> None:
    for name in ("gone", "moved", "kept"):
        write_skill(machine.repo / ".agents/skills", name)
        run("link", name, "--to", "claude-code")
    (machine.repo / ".claude/skills/gone").unlink()
    (machine.repo / ".agents/skills/moved").rename(machine.repo / "moved")

    found = json_output(run, "doctor", "links", schema="doctor")["checks"]

    assert [(check["detail"], check["run"]) for check in found] == [
        ("it is no longer there", "skillshelf link gone --to claude-code --remove"),
        ("the skill that this link leads to is gone", "skillshelf link moved --to claude-code --remove"),
        ("1 as made", None),
    ]


def test_what_doctor_advises_about_links_helps(machine: Machine, run: Run) -> None:
    for name in ("gone", "moved"):
        write_skill(machine.repo / ".agents/skills", name)
        run("link", name, "--to", "claude-code")
    (machine.repo / ".claude/skills/gone").unlink()
    (machine.repo / ".agents/skills/moved").rename(machine.repo / "moved")

    for check in json_output(run, "doctor", "links", schema="doctor")["checks"]:
        if check["run"]:
            run(*check["run"].split()[1:])

    assert problems(run, "links") == {}


@pytest.mark.parametrize("members", [{"version": 2}, {"links": 3}, {"version": 1, "folders": [1]}])
def test_records_that_cannot_be_used_are_named_and_never_emptied(
    machine: Machine, run: Run, members: dict[str, object]
) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    run("link", "deploy", "--to", "claude-code")
    path = machine.home / ".local/state/skillshelf/links.json"
    text = json.dumps(json.loads(path.read_text()) | members)
    path.write_text(text)

    assert run("doctor", "--fix", *FAST)[0] == 1

    assert list(problems(run)) == ["links"]
    assert path.read_text() == text


def test_a_change_of_links_that_was_interrupted_is_undone_by_fix(machine: Machine, run: Run) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    run("link", "deploy", "--to", "claude-code")
    path = machine.home / ".local/state/skillshelf/links.json"
    half_made = machine.repo / ".claude/skills/half"
    half_made.symlink_to("../nowhere")
    step = {"path": str(half_made), "target": "../nowhere"}
    pending = {"process": 1, "done": False, "steps": [step], "folders": []}
    path.write_text(json.dumps(json.loads(path.read_text()) | {"pending": pending}))

    assert problems(run) == {"links": ["a change of links was interrupted; the next one undoes it"]}
    run("doctor", "--fix", *FAST)

    assert problems(run) == {}
    assert not half_made.is_symlink()
    assert (machine.repo / ".claude/skills/deploy").is_symlink()


def test_abandoned_run_folders_are_swept(machine: Machine, run: Run) -> None:
    from skillshelf.core.disk_writes import make_owned_folder

    folder = make_owned_folder("skillshelf-run-")
    assert problems(run, "runs") == {}
    os.close(folder.owner)

    assert problems(run, "runs") == {"runs": ["1 folder of runs that were killed"]}
    run("doctor", "--fix", "runs")

    assert not Path(folder.path).exists()


def test_a_folder_that_is_only_called_like_one_of_a_run_is_nobodys_problem(machine: Machine, run: Run) -> None:
    folder = Path(tempfile.mkdtemp(prefix="skillshelf-run-"))
    (folder / "notes").touch()
    try:
        assert problems(run, "runs") == {}
    finally:
        shutil.rmtree(folder)


def test_hosts_that_are_found_and_those_that_are_only_set_are_named(machine: Machine, run: Run) -> None:
    (machine.home / ".codex").mkdir()
    (machine.home / ".codex/config.toml").touch()
    machine.configure('hosts = ["codex", "kiro"]\n')

    found = json_output(run, "doctor", "hosts", schema="doctor")

    assert found["ok"]
    assert ("ok", "codex") in [(check["state"], check["detail"]) for check in found["checks"]]
    assert "kiro is set, but was not found on this machine" in [check["detail"] for check in found["checks"]]


def test_completion_knows_every_check() -> None:
    (argument,) = COMMANDS["doctor"].arguments

    assert argument.of.split() == [check.name for check in CHECKS]


def test_an_unknown_check_is_wrong_usage(machine: Machine, run: Run) -> None:
    status, _, err = run("doctor", "cach")

    assert status == 2
    assert "did you mean cache?" in err


@pytest.mark.parametrize(
    "name",
    [
        f".cache/skillshelf/packed/{'0' * 16}",
        f".cache/skillshelf/search/{'0' * 24}/seal",
        ".local/state/skillshelf/approvals.json",
        ".local/state/skillshelf/links.json",
        ".config/skillshelf/config.toml",
    ],
)
@pytest.mark.parametrize("command", ["doctor", "uninstall"])
def test_files_that_a_killed_process_left_are_removed(machine: Machine, run: Run, name: str, command: str) -> None:
    # No process has this number.
    dead, alive = (machine.home / f"{name}.{process}-00000000.new" for process in (2**30, os.getpid()))
    dead.parent.mkdir(parents=True, mode=0o700)
    for path in (dead, alive):
        path.write_bytes(b"half")

    if command == "uninstall":
        assert run("uninstall", "--yes")[0] == 0
        assert not dead.exists()
        return
    assert problems(run, "folders") == {"folders": ["a process ended while it wrote this"]}
    run("doctor", "--fix", "folders")

    assert not dead.exists()
    assert alive.exists()


def test_installed_skills_are_checked_and_what_a_killed_process_left_is_removed(machine: Machine, run: Run) -> None:
    from support.install_driver import main

    from skillshelf.catalog.store import store_of
    from skillshelf.core.environment import make_environment

    for kind in ("user", "project"):
        main(str(machine.base), kind, "add")
    assert run("doctor", "store", "locks", "folders")[0] == 0

    store = store_of(make_environment(str(machine.repo), str(machine.home), {}))
    half = Path(store.folder, ".new-99999999-00000000")
    half.mkdir(mode=0o555)
    assert run("doctor", "store")[0] == 1
    assert run("doctor", "store", "--fix")[0] == 0
    assert not half.exists()

    file = Path(store.path_of(next(iter(store.trees()))), "SKILL.md")
    file.chmod(0o644)
    file.write_text("other")
    status, out, _ = run("doctor", "store")
    assert status == 1
    assert "skillshelf install" in out

    (machine.repo / "skillshelf.lock").write_text('{"lock": 2, "skills": {}}')
    (machine.home / ".local/share/skillshelf/pending.json").write_text("{")
    status, out, _ = run("doctor", "locks")
    assert status == 1
    assert "another version of skillshelf" in out
    assert "not the record of a change" in out
