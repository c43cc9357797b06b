"""`sync`: many skills made visible to many hosts in one plan, and undone without a trace."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
from pathlib import Path
from shlex import quote
from typing import Any

import pytest
from support.host_cases import skill
from support.host_runs import Run, json_output
from support.trees import Machine, write_skill

from skillshelf.config.hosts import HOSTS
from skillshelf.core.environment import Environment
from skillshelf.hosts.link_records import MANIFEST, LinkRecord, read_records
from skillshelf.hosts.survey import take_survey

NAMES = [f"skill-{number:02}" for number in range(12)]
TO = ("--to", "claude-code,codex")
RUNNING = f"Running sessions: claude-code {HOSTS['claude-code'].on_change}\n"


def snapshot(folder: Path) -> dict[str, tuple[str, int]]:
    """Every path below a folder, with the text of a file or the target of a link, and the mode."""
    found = {}
    for path in sorted(folder.rglob("*")):
        content = os.readlink(path) if path.is_symlink() else path.read_text() if path.is_file() else ""
        found[str(path.relative_to(folder))] = (content, stat.S_IMODE(path.lstat().st_mode))
    return found


def records(machine: Machine) -> list[LinkRecord]:
    """Return the records in the user's state folder."""
    return read_records(Environment(str(machine.repo), str(machine.home), {}, home_moved=True))


def remove(path: Path) -> None:
    """Remove a link or a folder."""
    if path.is_symlink():
        path.unlink()
    else:
        shutil.rmtree(path)


def state_file(machine: Machine) -> Path:
    """Return the path of the records."""
    return machine.home / ".local/state/skillshelf/links.json"


@pytest.fixture
def twelve(machine: Machine) -> Machine:
    """Twelve skills: four that codex reads, four that claude-code reads, four at home that both have to be given."""
    for number, name in enumerate(NAMES):
        root = (machine.repo / ".agents/skills", machine.repo / ".claude/skills", machine.home / ".copilot/skills")
        write_skill(root[number % 3], name)
    return machine


def seen_by(run: Run, *hosts: str) -> dict[str, set[str]]:
    """Return the names that each host sees."""
    skills = json_output(run, "hosts", "--all-hosts", schema="hosts")["skills"]
    return {host: {one["name"] for one in skills if one["hosts"][host]} for host in hosts}


def sync_json(run: Run, *words: str) -> Any:
    """The plan of a run."""
    return json_output(run, "sync", *words, schema="sync")


# The plan -----------------------------------------------------------------------------------------


def test_twelve_skills_are_made_visible_to_two_hosts_and_undone_without_a_trace(twelve: Machine, run: Run) -> None:
    before = snapshot(twelve.repo), snapshot(twelve.home)

    assert run("sync", *TO, "--yes")[0] == 0

    assert seen_by(run, "claude-code", "codex") == {"claude-code": set(NAMES), "codex": set(NAMES)}
    assert not list(twelve.base.rglob(MANIFEST))
    status, out, _ = run("sync", *TO)
    assert (status, out) == (0, "0 actions, 24 unchanged, 0 refused\n")

    assert run("sync", *TO, "--remove", "--yes")[0] == 0

    after = snapshot(twelve.home)
    kept = {path: entry for path, entry in after.items() if not path.startswith((".local", ".cache"))}
    assert (snapshot(twelve.repo), kept) == before
    assert records(twelve) == []


def test_a_plan_says_for_every_skill_and_host_what_would_be_done_and_does_nothing(twelve: Machine, run: Run) -> None:
    before = snapshot(twelve.repo), snapshot(twelve.home)

    plan = sync_json(run, *TO, "--dry-run")

    pairs = [(one["skill"], one["host"]) for part in plan.values() for one in part]
    assert sorted(pairs) == sorted((name, host) for name in NAMES for host in ("claude-code", "codex"))
    assert plan["actions"][0] == {
        "kind": "link",
        "skill": "skill-00",
        "host": "claude-code",
        "from": str(twelve.repo / ".agents/skills/skill-00"),
        "to": str(twelve.repo / ".claude/skills/skill-00"),
        "reason": "",
    }
    kept = {path: entry for path, entry in snapshot(twelve.home).items() if not path.startswith(".cache")}
    assert (snapshot(twelve.repo), kept) == before


def test_without_a_terminal_nothing_is_done_until_yes(twelve: Machine, run: Run) -> None:
    before = snapshot(twelve.repo)

    status, out, err = run("sync", *TO)

    assert status == 4
    assert "16 actions, 8 unchanged, 0 refused" in out
    assert err == "skillshelf: nothing was done; to carry out this plan: --yes\n"
    assert run("sync", *TO, "--json")[0] == 4
    assert snapshot(twelve.repo) == before


def test_only_the_skills_that_are_named_are_synced(twelve: Machine, run: Run) -> None:
    status, _, err = run("sync", "skill-00", ".claude/skills/skill-01", *TO, "--yes")

    assert status == 0
    assert "to undo: skillshelf sync skill-00 .claude/skills/skill-01 --to claude-code,codex --remove" in err
    assert err.rstrip().endswith(f"--cwd {quote(str(twelve.repo))} --home {quote(str(twelve.home))}")
    assert [os.path.basename(record.path) for record in records(twelve)] == ["skill-01", "skill-00"]
    assert run("sync", "skill-99", *TO, "--yes")[0] == 3


def test_without_hosts_it_is_for_the_users_own(twelve: Machine, run: Run) -> None:
    assert run("sync", "--yes")[0] == 2
    twelve.configure("hosts = ['codex']\n")

    plan = sync_json(run, "--dry-run")

    assert {one["host"] for part in plan.values() for one in part} == {"codex"}


def test_what_is_refused_is_no_action_and_the_rest_is_done(machine: Machine, run: Run) -> None:
    write_skill(machine.repo / ".agents/skills", "fine")
    write_skill(machine.repo / ".agents/skills", "taken")
    (machine.repo / ".claude/skills/taken").mkdir(parents=True)
    write_skill(machine.repo / ".claude/skills", "bare", "# No frontmatter\n")

    status, _, _ = run("sync", *TO, "--yes")
    plan = sync_json(run, *TO, "--dry-run")

    assert status == 1
    assert (machine.repo / ".claude/skills/fine").is_symlink()
    refused = {(one["skill"], one["host"]): one["reason"] for one in plan["refused"]}
    assert set(refused) == {("taken", "claude-code"), ("bare", "codex")}
    assert "move it away" in refused["taken", "claude-code"]
    assert "first: start the file with frontmatter" in refused["bare", "codex"]
    assert plan["actions"] == []


def test_skills_that_a_host_keeps_in_a_hidden_folder_are_synced_only_by_name(machine: Machine, run: Run) -> None:
    write_skill(machine.home / ".codex/skills/.system", "imagegen")
    write_skill(machine.home / ".codex/skills", "mine")

    everything = sync_json(run, "--to", "claude-code", "--dry-run")
    named = sync_json(run, "imagegen", "--to", "claude-code", "--dry-run")

    assert [one["skill"] for one in everything["actions"]] == ["mine"]
    assert [one["skill"] for one in named["actions"]] == ["imagegen"]


def test_two_skills_of_one_name_are_not_both_linked_for_a_host(machine: Machine, run: Run) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy", skill("name: deploy\ndescription: One.\n"))
    write_skill(machine.repo / ".github/skills", "deploy", skill("name: deploy\ndescription: Two.\n"))

    plan = sync_json(run, "--to", "claude-code", "--dry-run")
    named = run("sync", "deploy", "--to", "claude-code", "--dry-run")

    assert len(plan["actions"]) == len(plan["refused"]) == 1
    assert "another skill of this name" in plan["refused"][0]["reason"]
    assert named[0] == 3


def test_a_host_that_sees_the_same_text_elsewhere_needs_nothing(machine: Machine, run: Run) -> None:
    for root in (".agents/skills", ".claude/skills"):
        write_skill(machine.repo / root, "deploy")

    assert run("sync", *TO) == (0, "0 actions, 2 unchanged, 0 refused\n", "")


def test_a_link_that_serves_a_second_host_is_made_once_and_stays_while_one_needs_it(machine: Machine, run: Run) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    hosts = ("--to", "claude-code,openskills")

    plan = sync_json(run, *hosts, "--yes")

    assert [(one["host"], one["to"]) for one in plan["actions"]] == [
        ("claude-code", str(machine.repo / ".claude/skills/deploy")),
        ("openskills", str(machine.repo / ".claude/skills/deploy")),
    ]
    assert [record.hosts for record in records(machine)] == [("claude-code", "openskills")]
    run("sync", "--to", "openskills", "--remove", "--yes")
    assert (machine.repo / ".claude/skills/deploy").is_symlink()
    run("sync", "--to", "claude-code", "--remove", "--yes")
    assert not (machine.repo / ".claude").exists()


def test_a_copy_follows_its_skill_and_one_that_was_edited_is_left(machine: Machine, run: Run) -> None:
    paths = {name: write_skill(machine.repo / ".agents/skills", name) for name in ("old", "edited")}
    run("sync", "--to", "kiro", "--yes")
    for path in paths.values():
        path.write_text(path.read_text() + "More.\n")
    copies = machine.repo / ".kiro/skills"
    (copies / "edited/SKILL.md").write_text("Mine.\n")

    plan = sync_json(run, "--to", "kiro", "--yes")

    assert [(one["kind"], one["skill"]) for one in plan["actions"]] == [("update", "old")]
    assert [one["skill"] for one in plan["refused"]] == ["edited"]
    assert (copies / "old/SKILL.md").read_text() == paths["old"].read_text()

    plan = sync_json(run, "--remove", "--yes")

    assert [one["skill"] for one in plan["actions"]] == ["old"]
    assert sorted(os.listdir(copies)) == ["edited"]
    assert (copies / "edited/SKILL.md").read_text() == "Mine.\n"


@pytest.mark.parametrize("host", ["claude-code", "kiro"])
def test_what_somebody_removed_by_hand_is_made_again(machine: Machine, run: Run, host: str) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    run("sync", "--to", host, "--yes")
    (made,) = records(machine)
    after = snapshot(machine.repo)
    remove(Path(made.path))

    plan = sync_json(run, "--to", host, "--yes")

    assert len(plan["actions"]) == 1
    assert snapshot(machine.repo) == after
    assert run("sync", "--remove", "--yes")[0] == 0
    assert not Path(made.path).parent.exists()


@pytest.mark.parametrize("words", [("sync", "--remove", "--yes"), ("link", "deploy", "--remove")])
def test_what_somebody_put_in_the_place_of_a_link_stays_and_is_said_once(
    machine: Machine, run: Run, words: tuple[str, ...]
) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    run("sync", "--to", "claude-code", "--yes")
    link = machine.repo / ".claude/skills/deploy"
    link.unlink()
    write_skill(machine.repo / ".claude/skills", "deploy", skill("name: deploy\ndescription: Mine.\n"))
    before = snapshot(machine.repo)

    assert run(*words, "--dry-run")[0] == 0
    assert len(records(machine)) == 1
    status, out, _ = run(*words)

    assert (status, "what is there now is not what skillshelf made; it stays" in out) == (0, True)
    assert (snapshot(machine.repo), records(machine)) == (before, [])
    assert "not what skillshelf made" not in run(*words)[1]


def test_a_link_that_is_there_again_is_not_forgotten(
    machine: Machine, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from skillshelf.cli import link_commands

    write_skill(machine.repo / ".agents/skills", "deploy")
    run("sync", "--to", "claude-code", "--yes")
    link = machine.repo / ".claude/skills/deploy"
    target = os.readlink(link)
    link.unlink()
    link.mkdir()

    def agree(*_: object) -> bool:
        link.rmdir()
        link.symlink_to(target)
        return True

    monkeypatch.setattr(link_commands, "_may_apply", agree)
    run("sync", "--remove")

    assert len(records(machine)) == (1 if link.is_symlink() else 0)


@pytest.mark.parametrize("words", [("sync", "--remove", "--yes", "deplyo"), ("link", "--remove", "deplyo")])
def test_a_name_for_which_nothing_was_ever_made_is_not_found(
    machine: Machine, run: Run, words: tuple[str, ...]
) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    run("sync", "--to", "claude-code", "--yes")
    remove(machine.repo / ".agents/skills/deploy")

    status, _, err = run(*words)

    assert (status, "deplyo" in err, "did you mean deploy" in err) == (3, True, True), err


def test_what_was_removed_already_is_nothing_to_do(machine: Machine, run: Run) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")

    assert run("sync", "deploy", "--remove", "--yes")[:2] == (0, "0 actions, 0 unchanged, 0 refused\n")
    assert run("sync", "deplyo", "--to", "claude-code", "--yes")[0] == 3


def test_if_one_step_fails_those_before_it_are_undone(machine: Machine, run: Run) -> None:
    write_skill(machine.repo / ".agents/skills", "first")
    # The folder in which its copy is prepared has a longer name, which is too long.
    write_skill(machine.repo / ".agents/skills", "z" * 250)
    before = snapshot(machine.repo)

    status, _, err = run("sync", "--to", "kiro", "--yes")

    assert status == 5
    assert "nothing was done" in err
    assert (snapshot(machine.repo), records(machine)) == (before, [])
    assert run("sync", "first", "--to", "kiro", "--yes")[0] == 0


# Records ------------------------------------------------------------------------------------------


def test_records_lie_in_the_state_folder_with_a_version_and_are_only_the_users(machine: Machine, run: Run) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    mask = os.umask(0)
    try:
        run("link", "deploy", "--to", "claude-code")
    finally:
        os.umask(mask)

    path = state_file(machine)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text()) == {
        "version": 1,
        "links": [
            {
                "path": str(machine.repo / ".claude/skills/deploy"),
                "how": "link",
                "source": str(machine.repo / ".agents/skills/deploy"),
                "target": "../../.agents/skills/deploy",
                "hosts": ["claude-code"],
            }
        ],
        "folders": [str(machine.repo / ".claude/skills"), str(machine.repo / ".claude")],
        "pending": None,
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"version": 2, "links": []}', "version 2 is of a newer skillshelf"),
        ('{"version": 1}', "not a list of links and copies"),
        ('{"version": 1, "links": [{"path": 5}]}', "not a list of links and copies"),
        ("[" * 100_000, "not a list of links and copies"),
        ("", "not a list of links and copies"),
    ],
)
def test_records_that_cannot_be_used_are_named_in_one_line_and_never_written_over(
    machine: Machine, run: Run, text: str, said: str
) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    state_file(machine).parent.mkdir(parents=True)
    state_file(machine).write_text(text)
    state_file(machine).chmod(0o600)

    status, _, err = run("link", "deploy", "--to", "claude-code")

    assert status == 2
    assert said in err
    assert state_file(machine).read_text() == text
    assert not (machine.repo / ".claude").exists()
    status, out, err = run("why", "deploy", "--host", "codex")
    assert (status, "visible" in out) == (0, True)
    assert run("sync", *TO, "--yes")[0] == 2


def test_a_file_of_records_that_others_can_write_does_not_count(machine: Machine, run: Run) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    run("link", "deploy", "--to", "claude-code")
    state_file(machine).chmod(0o666)

    assert run("sync", "--remove", "--yes")[0] == 2
    assert (machine.repo / ".claude/skills/deploy").is_symlink()


def test_a_manifest_of_0_1_is_read_and_moved(machine: Machine, run: Run) -> None:
    for name in ("deploy", "review"):
        write_skill(machine.repo / ".agents/skills", name)
    (machine.repo / ".claude/skills").mkdir(parents=True)
    for name in ("deploy", "review"):
        (machine.repo / ".claude/skills" / name).symlink_to(f"../../.agents/skills/{name}")
    entries = {
        name: {"how": "link", "target": f"../../.agents/skills/{name}", "folders": 2, "for": ["claude-code"]}
        for name in ("deploy", "review")
    }
    manifest = machine.repo / ".claude/skills" / MANIFEST
    text = json.dumps({**entries, "../../../escape": entries["deploy"], "odd": 5})
    manifest.write_text(text)

    status, _, err = run("link", "deploy", "--to", "claude-code", "--remove")

    assert status == 0
    (kept,) = (state_file(machine).parent / "manifests").iterdir()
    assert f"moved the records in {manifest} to your state folder; the old file is {kept}" in err
    assert (manifest.exists(), kept.read_text(), kept.stat().st_mode & 0o777) == (False, text, 0o600)
    assert [os.path.basename(record.path) for record in records(machine)] == ["review"]
    assert run("sync", "--remove", "--yes")[0] == 0
    assert not (machine.repo / ".claude").exists()


@pytest.mark.parametrize("text", ['{"deploy": {"how": "link"', "[]", "<<<<<<< ours\n{}\n=======\n"])
def test_a_manifest_that_cannot_be_read_is_left(machine: Machine, run: Run, text: str) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    manifest = machine.repo / ".claude/skills" / MANIFEST
    manifest.parent.mkdir(parents=True)
    manifest.write_text(text)

    assert run("link", "deploy", "--to", "claude-code")[0] == 0

    assert manifest.read_text() == text


def test_a_manifest_of_a_stranger_names_no_folder_above_the_root(machine: Machine, run: Run) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    manifest = machine.repo / ".claude/skills" / MANIFEST
    manifest.parent.mkdir(parents=True)
    entry = {"how": "link", "target": "../x", "folders": 8}
    manifest.write_text(json.dumps({"gone": entry}))

    run("link", "deploy", "--to", "claude-code")

    root = machine.repo / ".claude"
    assert json.loads(state_file(machine).read_text())["folders"] == [str(root / "skills"), str(root)]


def test_a_manifest_of_a_stranger_puts_no_words_into_commands(machine: Machine, run: Run) -> None:
    manifest = machine.repo / ".claude/skills" / MANIFEST
    manifest.parent.mkdir(parents=True)
    entry = {"how": "link", "target": "../gone", "for": ["x; touch owned", "claude-code"]}
    manifest.write_text(json.dumps({"deploy": entry}))
    (manifest.parent / "deploy").symlink_to("../gone")

    _, out, _ = run("doctor", "links", "--json")

    assert [check["run"] for check in json.loads(out)["checks"]] == ["skillshelf link deploy --to claude-code --remove"]


def test_what_lies_behind_a_link_out_of_the_project_is_not_removed(machine: Machine, run: Run) -> None:
    other = machine.home / "other"
    write_skill(other / ".agents/skills", "deploy")
    (other / ".git").mkdir()
    assert run("link", "deploy", "--to", "claude-code", cwd=other)[0] == 0
    (machine.repo / ".claude").symlink_to(other / ".claude")

    assert sync_json(run, "--remove", "--yes")["actions"] == []
    run("link", "deploy", "--remove")

    assert (other / ".claude/skills/deploy").is_symlink()
    assert run("sync", "--remove", "--yes", cwd=other)[0] == 0
    assert not (other / ".claude").exists()


def test_a_link_put_into_a_stale_copy_keeps_only_that_copy_from_being_updated(machine: Machine, run: Run) -> None:
    for name in ("deploy", "review"):
        write_skill(machine.repo / ".agents/skills", name)
    run("sync", "--to", "kiro", "--yes")
    copies = machine.repo / ".kiro/skills"
    (copies / "deploy/mine").symlink_to("/etc/hostname")
    for path in (machine.repo / ".agents/skills").rglob("SKILL.md"):
        path.write_text(path.read_text() + "More.\n")

    assert run("sync", "--to", "kiro", "--yes")[0] == 1

    assert "More." not in (copies / "deploy/SKILL.md").read_text()
    assert (copies / "deploy/mine").is_symlink()
    assert "More." in (copies / "review/SKILL.md").read_text()


def test_a_skill_in_the_place_of_a_link_keeps_no_other_skill_from_being_linked(machine: Machine, run: Run) -> None:
    for name in ("deploy", "review"):
        write_skill(machine.repo / ".agents/skills", name)
    run("link", "deploy", "--to", "claude-code")
    remove(machine.repo / ".claude/skills/deploy")
    remove(machine.repo / ".agents/skills/deploy")
    write_skill(machine.repo / ".claude/skills", "deploy")

    assert run("sync", "--to", "claude-code,opencode", "--yes")[0] == 0

    assert (machine.repo / ".claude/skills/review").is_symlink()
    assert [record.hosts for record in records(machine) if record.path.endswith("deploy")] == [("claude-code",)]


def test_a_copy_that_was_edited_is_given_up_for_one_of_its_hosts(machine: Machine, run: Run) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    entry = {"how": "copy", "source": "../../.agents/skills/deploy", "tree": "x", "for": ["kiro", "cursor"]}
    write_skill(machine.repo / ".kiro/skills", "deploy")
    (machine.repo / ".kiro/skills" / MANIFEST).write_text(json.dumps({"deploy": entry}))

    assert run("sync", "--remove", "--to", "kiro", "--yes")[0] == 0

    assert [record.hosts for record in records(machine)] == [("cursor",)]
    assert (machine.repo / ".kiro/skills/deploy/SKILL.md").is_file()


def test_a_name_too_long_for_a_folder_keeps_no_other_skill_from_being_linked(machine: Machine, run: Run) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    write_skill(machine.repo / ".agents/skills", "d" * 300, folder="odd")

    run("sync", "--to", "claude-code", "--yes")

    assert (machine.repo / ".claude/skills/deploy").is_symlink()


def test_a_folder_that_becomes_a_link_after_the_plan_is_not_written_through(
    machine: Machine, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from skillshelf.cli import link_commands

    write_skill(machine.repo / ".agents/skills", "deploy")
    elsewhere = machine.base / "elsewhere"
    elsewhere.mkdir()

    def agree(*_: object) -> bool:
        (machine.repo / ".claude").symlink_to(elsewhere)
        return True

    monkeypatch.setattr(link_commands, "_may_apply", agree)

    assert run("sync", "--to", "claude-code")[0] == 1
    assert not list(elsewhere.iterdir())


def test_a_plan_made_while_another_process_changes_links_is_made_again(
    machine: Machine, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    made, target = machine.repo / ".claude/skills/deploy", "../../.agents/skills/deploy"

    def survey(*arguments: Any, **options: Any) -> Any:
        found = take_survey(*arguments, **options)
        if not made.parent.exists():
            made.parent.mkdir(parents=True)
            made.symlink_to(target)
            step = {"path": str(made), "target": target}
            pending = {"process": 1, "done": False, "steps": [step], "folders": []}
            state_file(machine).parent.mkdir(parents=True, exist_ok=True)
            state_file(machine).write_text(json.dumps({"version": 1, "links": [], "pending": pending}))
            state_file(machine).chmod(0o600)
        return found

    monkeypatch.setattr("skillshelf.hosts.explain.take_survey", survey)

    status, out, err = run("sync", "--to", "claude-code", "--yes")

    assert status == 0, (out, err)
    assert [record.path for record in records(machine)] == [str(made)]


def test_a_link_that_cannot_be_made_is_named_by_its_own_path(
    machine: Machine, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")

    def refuse(path: str, target: str) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), target, None, path)

    monkeypatch.setattr("skillshelf.hosts.link_changes.make_link", refuse)

    status, _, err = run("sync", "--to", "claude-code", "--yes")

    assert status == 5
    assert f"nothing was done: {machine.repo}/.claude/skills/deploy: permission denied" in err


def test_a_link_made_before_its_folder_led_elsewhere_is_not_removed_there(machine: Machine, run: Run) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    assert run("link", "deploy", "--to", "claude-code")[0] == 0
    elsewhere = machine.base / "elsewhere"
    (machine.repo / ".claude").rename(elsewhere)
    (machine.repo / ".claude").symlink_to(elsewhere)

    run("uninstall", "--yes")

    assert (elsewhere / "skills/deploy").is_symlink()


def test_several_skills_are_linked_for_several_hosts_by_one_command(machine: Machine, run: Run) -> None:
    for name in ("deploy", "review"):
        write_skill(machine.repo / ".agents/skills", name)

    status, out, _ = run("link", "deploy", "review", "--to", "claude-code,codex", "--dry-run")
    assert status == 0
    assert "deploy  claude-code: would link .claude/skills/deploy -> ../../.agents/skills/deploy\n" in out
    assert not (machine.repo / ".claude").exists()

    status, out, _ = run("link", "deploy", "review", "--to", "claude-code,codex")
    assert status == 0
    assert "review  claude-code: linked .claude/skills/review -> ../../.agents/skills/review (now visible)\n" in out

    assert run("link", "deploy", "review", "--to", "claude-code,codex", "--remove", "--dry-run")[0] == 0
    assert (machine.repo / ".claude/skills/review").is_symlink()
    assert run("link", "deploy", "--to", "claude-code", "--remove")[0] == 0
    assert run("link", "review", "--remove")[:2] == (0, "claude-code: removed .claude/skills/review\n" + RUNNING)
    assert not (machine.repo / ".claude").exists()
    assert run("link", "review", "--remove")[0] == 1
