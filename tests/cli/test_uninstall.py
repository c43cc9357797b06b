"""`uninstall` removes what skillshelf made, and nothing that a person wrote or that lies elsewhere."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support.host_runs import Run, json_output
from support.needs import needs_tmux
from support.terminals import COMMAND, terminal
from support.trees import SOURCE, Machine, write_skill
from support.users import ordinary_user


@pytest.fixture(autouse=True)
def own_temporary_folder(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let temporary folders of other tests out of the game."""
    folder = machine.base / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    for variable in ("XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def used(machine: Machine, run: Run) -> Machine:
    """A machine on which skillshelf was used: a cache, an index, a link, a copy, an approval, a setting."""
    from skillshelf.config.approvals import add_approval
    from skillshelf.core.environment import make_environment

    path = write_skill(machine.repo / ".agents/skills", "deploy")
    assert run("list")[0] == 0
    assert run("search", "deploy")[0] == 0
    assert run("link", "deploy", "--to", "claude-code")[0] == 0
    assert run("trust", ".", cwd=machine.repo)[0] == 0
    environment = make_environment(str(machine.repo), str(machine.home), {})
    add_approval(environment, "skill_load", "deploy", str(path), "sha256:" + "0" * 64)
    return machine


def made_copy(machine: Machine, run: Run, name: str = "notes") -> Path:
    """A copy that `link` makes: codex-like hosts follow links, so its SKILL.md is a link to elsewhere."""
    real = machine.repo / "texts" / f"{name}.md"
    real.parent.mkdir(exist_ok=True)
    real.write_text(f"---\nname: {name}\ndescription: Writes {name}. Use for {name}.\n---\n# {name}\n\nWrite.\n")
    folder = machine.repo / ".agents/skills" / name
    folder.mkdir(parents=True)
    (folder / "SKILL.md").symlink_to(real)
    assert run("link", name, "--to", "claude-code")[0] == 0
    copy = machine.repo / ".claude/skills" / name
    assert copy.is_dir()
    assert not copy.is_symlink()
    return copy


def files_below(folder: Path) -> dict[str, Any]:
    """Every entry below a folder, with what is in it."""
    return {
        str(path.relative_to(folder)): os.readlink(path) if path.is_symlink() else path.is_file() and path.read_bytes()
        for path in sorted(folder.rglob("*"))
    }


def test_uninstall_removes_links_cache_and_state_and_leaves_configuration_and_skills(used: Machine, run: Run) -> None:
    before = files_below(used.repo / ".agents")

    found = json_output(run, "uninstall", "--yes", schema="uninstall")

    assert found["applied"]
    assert {action["kind"]: action["state"] for action in found["actions"]} == dict.fromkeys(
        ("link", "cache", "state", "config"), "done"
    )
    assert set(files_below(used.home)) == {
        ".cache",
        ".config",
        ".config/skillshelf",
        ".config/skillshelf/config.toml",
    } | {
        ".local",
        ".local/state",
    }
    assert files_below(used.repo / ".agents") == before
    assert not (used.repo / ".claude").exists()
    left = {one["kind"]: one for one in found["left"]}
    assert left["configuration"]["path"].endswith("config.toml")
    assert "uninstall skillshelf" in left["program"]["run"]


def test_uninstall_twice_removes_nothing_more(used: Machine, run: Run) -> None:
    run("uninstall", "--yes")
    before = files_below(used.base)

    status, out, err = run("uninstall", "--yes")

    assert (status, err) == (0, "")
    assert out.startswith("Nothing to remove")
    assert files_below(used.base) == before


@pytest.mark.parametrize("words", [("--dry-run",), ("--dry-run", "--yes"), ("--json", "--dry-run")])
def test_a_dry_run_changes_nothing(used: Machine, run: Run, words: tuple[str, ...]) -> None:
    before = files_below(used.base)

    status, out, _ = run("uninstall", *words)

    assert status == 0
    assert "deploy" in out
    assert files_below(used.base) == before


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_without_a_terminal_and_without_yes_nothing_is_removed(used: Machine, run: Run, words: tuple[str, ...]) -> None:
    before = files_below(used.base)

    status, out, err = run("uninstall", *words)

    assert status == 4
    assert "uninstall --yes" in err
    assert "deploy" in out
    assert files_below(used.base) == before


def test_a_copy_as_it_was_made_is_removed_and_an_edited_one_stays(machine: Machine, run: Run) -> None:
    plain, edited = made_copy(machine, run), made_copy(machine, run, "minutes")
    (edited / "more.md").write_text("Mine.")

    found = json_output(run, "uninstall", "--yes", schema="uninstall")

    assert not plain.exists()
    assert (edited / "more.md").read_text() == "Mine."
    assert [(one["kind"], one["reason"]) for one in found["left"] if one["path"] == str(edited)] == [
        ("copy", "this copy was modified")
    ]
    again = json_output(run, "uninstall", "--yes", schema="uninstall")
    assert str(edited) in [one["path"] for one in again["left"]]


def test_a_copy_with_a_link_of_a_person_in_it_stays(machine: Machine, run: Run) -> None:
    copy = made_copy(machine, run)
    (copy / "mine").symlink_to(machine.home)

    run("uninstall", "--yes")

    assert (copy / "mine").is_symlink()


def test_the_only_copy_that_is_left_of_a_skill_stays(machine: Machine, run: Run) -> None:
    copy = made_copy(machine, run)
    (machine.repo / ".agents/skills/notes/SKILL.md").unlink()

    run("uninstall", "--yes")

    assert (copy / "SKILL.md").is_file()


def test_a_link_that_was_redirected_stays(used: Machine, run: Run) -> None:
    link = used.repo / ".claude/skills/deploy"
    link.unlink()
    link.symlink_to(used.home)

    found = json_output(run, "uninstall", "--yes", schema="uninstall")

    assert link.is_symlink()
    assert str(link) in [one["path"] for one in found["left"]]


@pytest.mark.parametrize("place", [".cache/skillshelf", ".local/state/skillshelf"])
def test_a_folder_that_is_a_link_is_named_and_nothing_behind_it_is_touched(
    machine: Machine, run: Run, place: str
) -> None:
    elsewhere = machine.base / "elsewhere"
    (elsewhere / "packed").mkdir(parents=True)
    for name in ("skills.sqlite3", "approvals.json", f"packed/{'0' * 16}"):
        (elsewhere / name).write_text("precious")
    folder = machine.home / place
    folder.parent.mkdir(parents=True)
    folder.symlink_to(elsewhere)
    before = files_below(machine.base)

    found = json_output(run, "uninstall", "--yes", schema="uninstall")

    assert files_below(machine.base) == before
    assert f"it is a link to {elsewhere}" in [one["reason"] for one in found["left"]]


def test_links_inside_our_folders_are_neither_followed_nor_removed(machine: Machine, run: Run) -> None:
    elsewhere = machine.base / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / ("0" * 16)).write_text("precious")
    cache = machine.home / ".cache/skillshelf"
    cache.mkdir(parents=True)
    (cache / "packed").symlink_to(elsewhere)
    (cache / "skills.sqlite3").symlink_to(elsewhere / ("0" * 16))
    before = files_below(machine.base)

    status, _, _ = run("uninstall", "--yes")

    assert status == 0
    assert files_below(machine.base) == before


def test_a_file_of_another_name_in_our_folders_stays_and_is_named(used: Machine, run: Run) -> None:
    mine = used.home / ".cache/skillshelf/packed/notes.txt"
    mine.parent.mkdir(exist_ok=True)
    mine.write_text("mine")

    found = json_output(run, "uninstall", "--yes", schema="uninstall")

    assert mine.read_text() == "mine"
    assert [path for path in (used.home / ".cache/skillshelf").rglob("*") if path.is_file()] == [mine]
    assert [one["reason"] for one in found["left"] if one["path"] == str(mine)] == ["skillshelf did not make it"]


def test_a_folder_that_is_left_because_of_files_of_others_is_not_called_removed(used: Machine, run: Run) -> None:
    (used.home / ".cache/skillshelf/notes.txt").write_text("mine")

    _, out, _ = run("uninstall", "--yes")

    assert "removed our files in ~/.cache/skillshelf\n" in out
    assert "removed ~/.cache/skillshelf\n" not in out


@pytest.mark.parametrize("name", ["../../../secret", "/etc", "..", "", "a/b", "a\x00b"])
def test_a_manifest_that_names_a_path_outside_its_folder_is_ignored(machine: Machine, run: Run, name: str) -> None:
    secret = write_skill(machine.base, "secret")
    root = machine.repo / ".claude/skills"
    root.mkdir(parents=True)
    tree = json_output(run, "digest", str(secret), schema="digest")["tree"]
    entry = {"how": "copy", "tree": tree, "source": str(secret.parent)}
    (root / ".skillshelf-made.json").write_text(json.dumps({name: entry}))

    status, _, _ = run("uninstall", "--yes")

    assert status == 0
    assert secret.is_file()


def records(machine: Machine, *links: dict[str, Any], **members: Any) -> Path:
    """The file of records, with these links."""
    path = machine.home / ".local/state/skillshelf/links.json"
    path.parent.mkdir(parents=True, mode=0o700)
    path.write_text(json.dumps({"version": 1, "links": links, "folders": [], "pending": None} | members))
    path.chmod(0o600)
    return path


def test_a_record_of_what_is_not_a_copy_of_another_skill_removes_nothing(machine: Machine, run: Run) -> None:
    secret = write_skill(machine.base, "secret")
    tree = json_output(run, "digest", str(secret), schema="digest")["tree"]
    real = os.path.realpath(secret.parent)
    path = records(
        machine,
        {"path": real, "how": "copy", "tree": tree, "source": real},
        {"path": f"{real}/SKILL.md", "how": "link", "target": "elsewhere"},
        {"path": str(machine.repo), "how": "copy", "tree": tree, "source": real},
    )
    before = files_below(machine.base)

    found = json_output(run, "uninstall", "--yes", schema="uninstall")

    assert {path: data for path, data in files_below(machine.base).items() if "lock" not in path} == before
    assert {one["kind"] for one in found["left"]} >= {"copy", "link", "record of links"}
    assert path.is_file()


@pytest.mark.parametrize("members", [{"version": 99}, {"links": 3}, {"more": 1}])
def test_records_that_cannot_be_used_are_left_and_named(used: Machine, run: Run, members: dict[str, Any]) -> None:
    path = used.home / ".local/state/skillshelf/links.json"
    text = json.dumps(json.loads(path.read_text()) | members)
    path.write_text(text)

    found = json_output(run, "uninstall", "--yes", schema="uninstall")

    assert path.read_text() == text
    assert (used.repo / ".claude/skills/deploy").is_symlink()
    assert str(path) in [one["path"] for one in found["left"]]


def test_links_of_version_0_1_are_removed_with_their_manifest(machine: Machine, run: Run) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    root = machine.repo / ".claude/skills"
    root.mkdir(parents=True)
    (root / "deploy").symlink_to("../../.agents/skills/deploy")
    entry = {"how": "link", "target": "../../.agents/skills/deploy", "folders": 2, "for": ["claude-code"]}
    (root / ".skillshelf-made.json").write_text(json.dumps({"deploy": entry}))

    status, _, _ = run("uninstall", "--yes")

    assert status == 0
    assert not (machine.repo / ".claude").exists()
    assert not (machine.home / ".local/state/skillshelf").exists()


def test_copies_of_older_records_are_removed_with_the_state(used: Machine, run: Run) -> None:
    state = used.home / ".local/state/skillshelf"
    (state / "links.json.v0").write_text("{}")
    (state / "manifests").mkdir()
    (state / "manifests/0123456789abcdef.json").write_text("{}")

    assert run("uninstall", "--yes")[0] == 0

    assert not state.exists()


def test_the_record_of_a_place_that_somebody_else_uses_now_is_removed_and_nothing_there(
    used: Machine, run: Run
) -> None:
    (link,) = [path for path in (used.repo / ".claude/skills").iterdir() if path.is_symlink()]
    link.unlink()
    write_skill(link.parent, link.name)

    status, out, _ = run("uninstall", "--yes")

    assert (status, "something else is there now, which skillshelf did not make" in out) == (0, True)
    assert (link / "SKILL.md").is_file()
    assert not (used.home / ".local/state/skillshelf").exists()


def test_a_folder_that_was_made_for_links_and_is_used_by_others_stays(used: Machine, run: Run) -> None:
    mine = write_skill(used.repo / ".claude/skills", "mine")

    assert run("uninstall", "--yes")[0] == 0

    assert mine.is_file()
    assert not (used.home / ".local/state/skillshelf").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_a_folder_of_another_user_is_left(used: Machine, run: Run) -> None:
    cache = used.home / ".cache/skillshelf"
    before = files_below(cache)
    os.chown(cache, 12345, 12345)

    found = json_output(run, "uninstall", "--yes", schema="uninstall")

    assert files_below(cache) == before
    assert [one["reason"] for one in found["left"] if one["path"] == str(cache)] == ["it belongs to another user"]


def test_a_failure_says_what_is_left_and_the_rest_is_removed(
    reachable_machine: Machine, capfd: pytest.CaptureFixture[str]
) -> None:
    from skillshelf.cli.main import main

    os.chmod(reachable_machine.base, 0o777)
    with ordinary_user():
        machine = Machine(Path(tempfile.mkdtemp(dir=reachable_machine.base)))
        options = ["--cwd", str(machine.repo), "--home", str(machine.home)]
        write_skill(machine.repo / ".agents/skills", "deploy")
        main(["link", "deploy", "--to", "claude-code", *options])
        main(["search", "deploy", *options])
        capfd.readouterr()
        root = machine.repo / ".claude/skills"
        root.chmod(0o555)
        try:
            failed = main(["uninstall", "--yes", "--json", *options])
        finally:
            root.chmod(0o755)
        out = capfd.readouterr().out
        again = main(["uninstall", "--yes", *options])

    states = {action["kind"]: action["state"] for action in json.loads(out)["actions"]}
    assert failed == 1
    assert states["link"] == "failed"
    assert states["cache"] == "done"
    assert again == 0
    assert not (machine.repo / ".claude/skills/deploy").is_symlink()


def test_journals_of_this_folder_are_listed(machine: Machine, run: Run) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    assert run("show", "deploy", "--journal", str(machine.repo / "run.jsonl"))[0] == 0
    (machine.repo / "other.jsonl").write_text('{"type":"other"}\n')

    found = json_output(run, "uninstall", "--dry-run", schema="uninstall")

    assert [one["path"] for one in found["left"] if one["kind"] == "journal"] == [str(machine.repo / "run.jsonl")]


def test_abandoned_run_folders_are_removed_and_those_in_use_are_not(machine: Machine, run: Run) -> None:
    from skillshelf.core.disk_writes import make_owned_folder, remove_owned_folder

    used, abandoned = make_owned_folder("skillshelf-run-"), make_owned_folder("skillshelf-run-")
    os.close(abandoned.owner)
    try:
        assert run("uninstall", "--yes")[0] == 0

        assert Path(used.path).is_dir()
        assert not Path(abandoned.path).exists()
    finally:
        remove_owned_folder(used)


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.2, 0.3, 0.4, 0.5])
def test_after_a_kill_in_the_middle_the_next_run_removes_the_rest(machine: Machine, seconds: float) -> None:
    for number in range(8):
        write_skill(machine.repo / ".agents/skills", f"skill-{number}")
    before = files_below(machine.repo)
    assert machine.run("sync", "--to", "claude-code,kiro", "--yes").returncode == 0
    machine.run("search", "things")

    words = [*COMMAND, "uninstall", "--yes", "--home", str(machine.home)]
    variables = {"PATH": os.environ["PATH"], "PYTHONPATH": SOURCE, "TMPDIR": str(machine.base / "tmp")}
    with subprocess.Popen(words, cwd=machine.repo, env=variables, stdout=subprocess.DEVNULL) as process:
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        process.kill()

    assert machine.run("uninstall", "--yes").returncode == 0
    assert files_below(machine.repo) == before
    assert set(files_below(machine.home)) <= {".cache", ".local", ".local/state"}


@pytest.mark.slow
@needs_tmux
@pytest.mark.parametrize(("answer", "status"), [("y", 0), ("n", 4), ("", 4)])
def test_on_a_terminal_the_plan_is_shown_and_asked_about(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, answer: str, status: int
) -> None:
    # The path of the terminal's socket must be short.
    monkeypatch.undo()
    write_skill(machine.repo / ".agents/skills", "deploy")
    assert machine.run("link", "deploy", "--to", "claude-code").returncode == 0
    link = machine.repo / ".claude/skills/deploy"

    with terminal(columns=100, lines=40) as screen:
        line = shlex.join([*COMMAND, "uninstall", "--home", str(machine.home)])
        screen.start(line, cwd=machine.repo, env={"TMPDIR": str(machine.base / "tmp")})
        screen.wait("To remove:", ".claude/skills/deploy", "Left:", "Remove these? [y/N]")
        screen.keys(answer, "Enter")
        shown = screen.wait(f"exit {status}")

    assert link.is_symlink() == (status != 0)
    assert ("nothing was removed" in shown) == (status != 0)


def test_installed_skills_are_removed_and_what_belongs_to_a_project_is_left(machine: Machine, run: Run) -> None:
    from support.install_driver import main

    for kind in ("user", "project"):
        main(str(machine.base), kind, "add")
    removed = run("uninstall", "--yes")

    assert removed[0] == 0, removed
    assert not (machine.home / ".local/share/skillshelf").exists()
    assert not (machine.home / ".claude").exists()
    assert not (machine.repo / ".claude").exists()
    assert (machine.home / ".config/skillshelf/skillshelf.lock").exists()
    assert (machine.repo / ".agents/skills/pdf/SKILL.md").exists()
    assert "the copies in .agents/skills belong to it" in " ".join(removed[1].split())
