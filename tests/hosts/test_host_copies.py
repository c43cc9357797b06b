"""Copies that `link` made: recognized, updated or left alone; and places where nothing is written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest
from support.host_cases import skill, trust
from support.host_runs import Run, json_output, verdicts
from support.trees import Machine, write_skill

from skillshelf.catalog.tree import skill_tree
from skillshelf.config.hosts import HOSTS
from skillshelf.core.console import Screen
from skillshelf.core.environment import Environment
from skillshelf.core.limits import COPIED_BYTES
from skillshelf.hosts.link_records import MANIFEST, LinkRecord, read_records


def records(machine: Machine) -> list[LinkRecord]:
    """Return the records in the user's state folder."""
    return read_records(Environment(str(machine.repo), str(machine.home), {}, home_moved=True))


def tree(folder: Path) -> dict[str, bytes | str]:
    """Every file below a folder with its bytes, and every link with its target."""
    found: dict[str, bytes | str] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            found[str(path.relative_to(folder))] = os.readlink(path)
        elif path.is_file() and ".git" not in path.parts:
            found[str(path.relative_to(folder))] = path.read_bytes()
    return found


# `link` and `why --fix` are one -------------------------------------------------------------------


@pytest.mark.parametrize("host", sorted(HOSTS))
def test_a_fix_for_a_host_does_what_link_does_and_nothing_when_done_again(
    machine: Machine, run: Run, host: str
) -> None:
    write_skill(machine.repo / ".claude/skills", "deploy")
    trust(machine, machine.repo)
    run("link", "deploy", "--to", host)
    linked = tree(machine.repo)
    run("link", "deploy", "--to", host, "--remove")

    run("why", "deploy", "--fix", "--host", host)
    fixed = tree(machine.repo)
    _, _, err = run("why", "deploy", "--fix", "--host", host)

    assert linked == fixed == tree(machine.repo)
    assert err == f"skillshelf: nothing to fix automatically for {host}\n"


def test_a_fix_links_nothing_where_two_skills_have_the_name(machine: Machine, run: Run) -> None:
    write_skill(machine.repo / ".codex/skills", "deploy", skill("name: deploy\ndescription: One.\n"))
    write_skill(machine.repo / ".cursor/skills", "deploy", skill("name: deploy\ndescription: Two.\n"))
    before = tree(machine.repo)

    fixed = run("why", "deploy", "--fix", "--host", "claude-code")

    assert fixed == run("link", "deploy", "--to", "claude-code")
    assert (fixed[0], "2 skills are named 'deploy'; name one by its path: " in fixed[2]) == (3, True)
    assert tree(machine.repo) == before


def test_a_fix_names_hosts_in_doubt_and_a_copy_serves_the_next_host(machine: Machine, run: Run) -> None:
    write_skill(machine.repo / ".claude/skills", "deploy")

    _, _, err = run("why", "deploy", "--fix", "--host", "codelia")
    assert "these hosts find two skills of this name, either may win: opencode" in err

    run("why", "deploy", "--fix", "--host", "codex")
    assert not (machine.repo / ".codex").exists()


def test_a_fix_repairs_the_skill_and_its_copy_follows(machine: Machine, run: Run) -> None:
    source = write_skill(machine.repo / ".claude/skills", "deploy", "\ufeff---\nname: deploy\ndescription: D.\n---\n")
    run("link", "deploy", "--to", "codelia")

    run("why", "deploy", "--fix", "--host", "codelia")

    copy = machine.repo / ".agents/skills/deploy/SKILL.md"
    assert source.read_bytes() == copy.read_bytes() == b"---\nname: deploy\ndescription: D.\n---\n"


# Copies are known ---------------------------------------------------------------------------------


def test_why_of_a_path_knows_its_copies(machine: Machine, run: Run) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    run("link", "deploy", "--to", "claude-code", "--to", "kiro")

    (found,) = json_output(run, "why", ".agents/skills/deploy", "--host", "kiro", schema="why")["candidates"]
    status, out, _ = run("why", ".agents/skills/deploy")

    assert (found["hosts"][0]["detail"], found["hosts"][0]["fix"]) == ("sees the copy .kiro/skills/deploy", None)
    assert status == run("why", ".agents/skills/deploy", "--host", "kiro")[0] == 0
    assert f"Visible to 16 of {len(HOSTS)} hosts, and to 1 more through a copy made by skillshelf." in out
    assert "move it away" not in out
    assert run("hosts", "--diff", "codex", "kiro")[1] == "codex and kiro see the same skills here.\n"


def test_a_copy_is_what_it_was_made_from_for_link(machine: Machine, run: Run) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    run("link", "deploy", "--to", "kiro")

    run("link", ".kiro/skills/deploy", "--to", "claude-code")

    assert os.readlink(machine.repo / ".claude/skills/deploy") == "../../.agents/skills/deploy"


def test_a_copy_of_another_skill_in_the_way_is_called_that(machine: Machine, run: Run) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    other = write_skill(machine.repo / ".codex/skills", "deploy", skill("name: deploy\ndescription: Other.\n"))
    run("link", ".agents/skills/deploy", "--to", "kiro")

    status, out, _ = run("link", str(other.parent), "--to", "kiro")

    said = ".kiro/skills/deploy is a copy made by skillshelf from .agents/skills/deploy: move it away and try again"
    assert (status, said in out) == (1, True)


def test_several_files_are_told_by_their_texts_with_a_total_and_no_advice_for_copies(
    machine: Machine, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    run("link", "deploy", "--to", "claude-code", "--to", "kiro")
    monkeypatch.setattr("skillshelf.core.console.screen", lambda env: Screen(columns=80))

    lines = run("why", "deploy", "--all-hosts")[1].splitlines()

    assert lines[:4] == [
        "deploy  2 files have this name, all with the same text",
        f"17 of {len(HOSTS)} hosts see one of them.",
        f"  16 of {len(HOSTS)} hosts  .agents/skills/deploy/SKILL.md",
        f"  1 of {len(HOSTS)} hosts   .kiro/skills/deploy/SKILL.md  (a copy made by skillshelf)",
    ]
    assert lines[-3:-1] == ["How to fix:", "  3 hosts  trust this folder in gemini-cli and in pi and in grok"]
    assert "How to fix" not in run("why", ".kiro/skills/deploy")[1]


def test_a_host_that_takes_one_of_two_is_counted_although_nobody_knows_which(machine: Machine, run: Run) -> None:
    for root in (".agents/skills", ".claude/skills"):
        write_skill(machine.repo / root, "deploy")

    assert "2 of 2 hosts see one of them." in run(*("why", "deploy", "--host", "opencode", "--host", "codex"))[1]


def test_a_copy_that_a_host_does_not_accept_is_told_with_what_helps(machine: Machine, run: Run) -> None:
    source = write_skill(machine.repo / ".claude/skills", "deploy")
    run("link", "deploy", "--to", "codelia")
    source.write_text("\ufeff---\nname: deploy\ndescription: D.\n---\n")
    status, out, _ = run("link", "deploy", "--to", "codelia")
    assert (status, "updated because the skill changed: 1 file; still bom" in out) == (1, True)

    (found,) = json_output(run, "why", ".claude/skills/deploy", schema="why")["candidates"]
    status, out, _ = run("link", "deploy", "--to", "codelia")

    told = {host["host"]: (host["detail"], host["fix"]) for host in found["hosts"]}
    assert told["codelia"] == ("bom: the copy .agents/skills/deploy", "remove the byte order mark")
    assert told["pi"] == ("untrusted: the copy .agents/skills/deploy", "trust this folder in pi")
    assert (status, "a link would not help; remove the byte order mark" in out) == (1, True)


def test_a_skill_that_was_moved_keeps_its_copy(machine: Machine, run: Run) -> None:
    folder = write_skill(machine.repo / ".claude/skills", "deploy").parent
    run("link", "deploy", "--to", "codelia")
    (machine.repo / ".github/skills").mkdir(parents=True)
    moved = folder.rename(machine.repo / ".github/skills/deploy")

    assert "codelia: already visible" in run("link", "deploy", "--to", "codelia")[1]
    (moved / "SKILL.md").write_text(skill("name: deploy\ndescription: New.\n"))
    assert "updated because the skill changed" in run("link", "deploy", "--to", "codelia")[1]


def test_a_copy_whose_skill_is_gone_is_not_removed(machine: Machine, run: Run) -> None:
    folder = write_skill(machine.repo / ".claude/skills", "deploy").parent
    run("link", "deploy", "--to", "codelia")
    folder.rename(machine.base / "away")

    status, out, _ = run("link", "deploy", "--to", "codelia", "--remove")

    assert (status, (machine.repo / ".agents/skills/deploy/SKILL.md").exists()) == (1, True)
    assert f"{folder} is gone, so this may be the only copy left; remove it by hand" in out


# Stale copies -------------------------------------------------------------------------------------


def test_a_stale_copy_is_reported_and_updated(machine: Machine, run: Run) -> None:
    source = write_skill(machine.repo / ".agents/skills", "deploy")
    run("link", "deploy", "--to", "kiro")
    source.write_text(source.read_text() + "More.\n")

    told = run("why", "deploy")[1]
    (found,) = json_output(run, "why", ".agents/skills/deploy", "--host", "kiro", schema="why")["candidates"]
    status, out, _ = run("link", "deploy", "--to", "kiro")

    assert "(a stale copy made by skillshelf)" in told
    assert "skillshelf link .agents/skills/deploy --to kiro  (.kiro/skills/deploy is stale)" in told
    assert found["hosts"][0]["fix"] == "skillshelf link .agents/skills/deploy --to kiro"
    assert (
        status,
        "kiro: copied to .kiro/skills/deploy (updated because the skill changed: 1 file; now visible)" in out,
    ) == (0, True)
    assert (machine.repo / ".kiro/skills/deploy/SKILL.md").read_bytes() == source.read_bytes()
    assert os.listdir(machine.repo / ".kiro/skills") == ["deploy"]
    assert "already visible" in run("link", "deploy", "--to", "kiro")[1]
    assert run("link", "deploy", "--to", "kiro", "--remove")[0] == 0
    assert not (machine.repo / ".kiro").exists()


def test_a_host_that_sees_the_skill_itself_updates_a_copy_without_needing_it(machine: Machine, run: Run) -> None:
    source = write_skill(machine.repo / ".claude/skills", "deploy")
    run("link", "deploy", "--to", "codelia")
    source.write_text(source.read_text() + "More.\n")

    assert "oh-my-pi: copied to .agents/skills/deploy (updated" in run("link", "deploy", "--to", "oh-my-pi")[1]
    assert run("link", "deploy", "--to", "codelia", "--remove")[0] == 0
    assert not (machine.repo / ".agents").exists()


def test_another_file_of_a_skill_makes_a_copy_stale_too(machine: Machine, run: Run) -> None:
    source = write_skill(machine.repo / ".agents/skills", "deploy")
    run("link", "deploy", "--to", "kiro")
    (source.parent / "notes.md").write_text("New.\n")

    assert "a stale copy" in run("why", "deploy")[1]
    assert run("link", "deploy", "--to", "kiro")[0] == 0
    assert (machine.repo / ".kiro/skills/deploy/notes.md").read_text() == "New.\n"


def test_a_modified_copy_is_left_with_the_reason(machine: Machine, run: Run) -> None:
    source = write_skill(machine.repo / ".agents/skills", "deploy")
    run("link", "deploy", "--to", "kiro")
    copy = machine.repo / ".kiro/skills/deploy/SKILL.md"
    copy.write_text(source.read_text() + "Mine.\n")
    source.write_text(source.read_text() + "Theirs.\n")
    before = copy.read_bytes()

    status, out, _ = run("link", "deploy", "--to", "kiro")

    assert (status, copy.read_bytes()) == (1, before)
    assert "kiro: no change: .kiro/skills/deploy (this copy was modified: move your changes" in out
    assert ".kiro/skills/deploy was modified: move your changes to .agents/skills/deploy" in run("why", "deploy")[1]


def test_a_copy_that_cannot_be_updated_stays(machine: Machine, run: Run) -> None:
    source = write_skill(machine.repo / ".agents/skills", "deploy")
    run("link", "deploy", "--to", "kiro")
    before = tree(machine.repo / ".kiro")
    (source.parent / "data.bin").touch()
    # A sparse file: large, but without any bytes on disk.
    os.truncate(source.parent / "data.bin", COPIED_BYTES)

    status, out, _ = run("link", "deploy", "--to", "kiro")

    assert (status, f"failed: the skill has more than {COPIED_BYTES:,} bytes" in out) == (1, True)
    assert tree(machine.repo / ".kiro") == before


def test_a_copy_says_that_it_has_no_links_in_it(machine: Machine, run: Run) -> None:
    folder = write_skill(machine.repo / ".agents/skills", "deploy").parent
    (folder / "latest").symlink_to("SKILL.md")

    assert "copied to .kiro/skills/deploy (1 file without 1 link, because" in run("link", "deploy", "--to", "kiro")[1]
    assert "already visible" in run("link", "deploy", "--to", "kiro")[1]


# Where nothing is written -------------------------------------------------------------------------


@pytest.mark.parametrize("words", [("link", "deploy", "--to"), ("why", "deploy", "--fix", "--host")])
def test_nothing_is_written_where_a_link_leads_out_of_the_project(
    machine: Machine, run: Run, words: tuple[str, ...]
) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    elsewhere = machine.base / "elsewhere"
    elsewhere.mkdir()
    (machine.repo / ".claude").symlink_to(elsewhere)

    status, out, err = run(*words, "claude-code")

    assert (status, list(elsewhere.iterdir())) == (1, [])
    assert f".claude/skills is behind a link out of this project, to {elsewhere}/skills: move it away" in out + err


SECRET = skill("name: deploy\ndescription: Mine alone.\n")


def reach_out(machine: Machine, form: str) -> Path:
    """Let a skill of the repository be a link to a file of the user's that is no skill of any root."""
    private = machine.home / "private"
    private.mkdir()
    (private / "SKILL.md").write_text(SECRET)
    folder = machine.repo / ".agents/skills/deploy"
    if form == "folder":
        folder.parent.mkdir(parents=True)
        folder.symlink_to(private)
    else:
        folder.mkdir(parents=True)
        (folder / "SKILL.md").symlink_to(private / "SKILL.md")
    return private / "SKILL.md"


@pytest.mark.parametrize("form", ["folder", "file"])
@pytest.mark.parametrize("words", [("link", "deploy", "--to"), ("why", "deploy", "--fix", "--host")])
def test_a_copy_never_takes_a_file_from_outside_the_project(
    machine: Machine, run: Run, words: tuple[str, ...], form: str
) -> None:
    private = reach_out(machine, form)

    status, out, err = run(*words, "kiro")

    said = f".agents/skills/deploy/SKILL.md is behind a link out of this project, to {private}, and is not copied"
    assert (status, f"{said}: replace the link with the file itself" in out + err) == (1, True)
    assert not (machine.repo / ".kiro").exists()
    (candidate,) = json_output(run, "why", "deploy", schema="why")["candidates"]
    fix = {row["host"]: row["fix"] for row in candidate["hosts"]}["kiro"]
    assert fix.startswith(f"{said}: replace the link with the file itself, then: skillshelf link ")
    status, out, _ = run("sync", "deploy", "--to", "kiro", "--yes", "--json")
    assert (status, said in out, (machine.repo / ".kiro").exists()) == (1, True, False)


def test_an_update_of_a_copy_takes_no_file_from_outside_the_project(machine: Machine, run: Run) -> None:
    source = write_skill(machine.repo / ".agents/skills", "deploy")
    run("link", "deploy", "--to", "kiro")
    before = tree(machine.repo / ".kiro")
    private = machine.home / "private.md"
    private.write_text(SECRET)
    source.unlink()
    source.symlink_to(private)

    status, out, _ = run("link", "deploy", "--to", "kiro")

    assert (status, tree(machine.repo / ".kiro")) == (1, before)
    assert "is behind a link out of this project" in out
    assert ".kiro/skills/deploy is stale, and .agents/skills/deploy/SKILL.md is behind a" in run("why", "deploy")[1]


@pytest.mark.parametrize("place", ["repo/store", "home/.claude/skills"])
def test_a_copy_takes_what_a_link_leads_to_in_the_project_or_in_another_root(
    machine: Machine, run: Run, place: str
) -> None:
    target = write_skill(machine.base / place, "deploy").parent
    (machine.repo / ".agents/skills").mkdir(parents=True)
    (machine.repo / ".agents/skills/deploy").symlink_to(target)

    status, out, _ = run("link", ".agents/skills/deploy", "--to", "kiro")

    assert (status, "copied to" in out) == (0, True)


def test_a_home_folder_that_is_a_link_is_called_by_its_real_place_before(machine: Machine, run: Run) -> None:
    write_skill(machine.home / ".agents/skills", "deploy")
    dotfiles = machine.base / "dotfiles"
    dotfiles.mkdir()
    (machine.home / ".claude").symlink_to(dotfiles)

    status, _, err = run("link", "deploy", "--to", "claude-code")

    assert (status, err) == (0, f"skillshelf: ~/.claude/skills is really {dotfiles}/skills\n")
    assert verdicts(run, "deploy", "--host", "claude-code") == {"claude-code": "visible"}


def test_a_manifest_that_is_a_link_is_neither_read_nor_written(machine: Machine, run: Run) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    diary = machine.home / "diary.md"
    diary.write_text('{"deploy": {"how": "copy"}}')
    (machine.repo / ".claude/skills").mkdir(parents=True)
    (machine.repo / f".claude/skills/{MANIFEST}").symlink_to(diary)

    status, _, _ = run("link", "deploy", "--to", "claude-code")

    assert (status, diary.read_text()) == (0, '{"deploy": {"how": "copy"}}')
    assert (machine.repo / f".claude/skills/{MANIFEST}").is_symlink()


# Words and counts ---------------------------------------------------------------------------------


def test_a_comparison_counts_all_skills(machine: Machine, run: Run) -> None:
    for name in ("deploy", "review"):
        write_skill(machine.repo / ".agents/skills", name)
    write_skill(machine.repo / ".claude/skills", "ship")
    every = {host["host"]: host for host in json_output(run, "hosts", schema="hosts")["hosts"]}

    found = json_output(run, "hosts", "--diff", "codex", "opencode", schema="hosts")

    assert [row["name"] for row in found["skills"]] == ["ship"]
    assert found["hosts"] == [every["codex"], every["opencode"]]


def test_a_host_that_is_nearly_named_is_suggested(run: Run) -> None:
    assert run("why", "deploy", "--host", "CODEX")[2] == "skillshelf: unknown host 'CODEX'; did you mean codex?\n"
    assert "(known: claude-code, codex" in run("why", "deploy", "--host", "zzz")[2]


@pytest.mark.slow
def test_the_script_that_asks_real_hosts_says_what_it_needs() -> None:
    script = Path(__file__).parent / "apply_fixes.py"

    done = subprocess.run([sys.executable, "-I", "-S", script, "codex"], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (
        1,
        "apply_fixes.py needs skillshelf, pytest, jsonschema: pip install -e '.[test]'\n",
    )


# Digests of copies --------------------------------------------------------------------------------


def test_a_copy_has_the_tree_of_its_source_and_its_record_names_it(machine: Machine, run: Run) -> None:
    source = write_skill(machine.repo / ".claude/skills", "deploy").parent
    for name, mode in (("run.sh", 0o755), ("plain.sh", 0o644)):
        (source / name).write_text("#!/bin/sh\n")
        (source / name).chmod(mode)

    run("link", "deploy", "--to", "codelia")

    tree = skill_tree(str(source)).digest
    assert skill_tree(str(machine.repo / ".agents/skills/deploy")).digest == tree
    assert [(record.path, record.tree) for record in records(machine)] == [
        (str(machine.repo / ".agents/skills/deploy"), tree)
    ]


def test_a_copy_whose_mode_was_changed_is_modified(machine: Machine, run: Run) -> None:
    write_skill(machine.repo / ".claude/skills", "deploy")
    run("link", "deploy", "--to", "codelia")
    (machine.repo / ".agents/skills/deploy/SKILL.md").chmod(0o755)

    _, out, _ = run("link", "deploy", "--to", "codelia", "--remove")

    assert "this copy was modified" in out


@pytest.mark.parametrize("changed", ["nothing", "the source", "the copy"])
def test_a_copy_that_version_0_1_recorded_is_known_by_its_old_digest(machine: Machine, run: Run, changed: str) -> None:
    source = write_skill(machine.repo / ".claude/skills", "deploy")
    run("link", "deploy", "--to", "codelia")
    manifest = machine.repo / ".agents/skills" / MANIFEST
    copy = machine.repo / ".agents/skills/deploy/SKILL.md"
    line = f"SKILL.md\0{sha256(copy.read_bytes()).hexdigest()}\n"
    entry = {"how": "copy", "source": "../../.claude/skills/deploy", "folders": 2, "for": ["codelia"]}
    (machine.home / ".local/state/skillshelf/links.json").unlink()
    manifest.write_text(json.dumps({"deploy": {**entry, "digest": f"sha256:{sha256(line.encode()).hexdigest()}"}}))
    if changed != "nothing":
        file = source if changed == "the source" else copy
        file.write_text(file.read_text() + "More.\n")

    _, out, _ = run("link", "deploy", "--to", "codelia")

    assert ("this copy was modified" in out) is (changed == "the copy")
    assert ("updated because the skill changed" in out) is (changed == "the source")
    assert [record.tree is not None for record in records(machine)] == ([True] if changed == "the source" else [])
    assert manifest.exists() is (changed != "the source")
    status, _, _ = run("link", "deploy", "--to", "codelia", "--remove")
    assert (status, (machine.repo / ".agents").exists()) == ((1, True) if changed == "the copy" else (0, False))
