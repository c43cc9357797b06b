"""`link` as a person or a program uses it, and links that lead nowhere."""

from __future__ import annotations

import os

import pytest
from support.host_cases import skill, trust
from support.host_runs import Run, json_output, verdicts
from support.trees import Machine, write_skill

from skillshelf.core.limits import COPIED_BYTES

# Link ---------------------------------------------------------------------------------------------


def test_a_link_makes_a_skill_visible_and_is_taken_back_without_a_trace(machine: Machine, run: Run) -> None:
    write_skill(machine.repo / ".claude/skills", "deploy")

    made = json_output(run, "link", "deploy", "--to", "codex", "--to", "kiro", schema="link")["made"]

    assert [(one["host"], one["how"], one["visible"]) for one in made] == [
        ("codex", "link", True),
        ("kiro", "copy", True),
    ]
    assert os.readlink(machine.repo / ".agents/skills/deploy") == "../../.claude/skills/deploy"
    assert verdicts(run, ".claude/skills/deploy", "--host", "codex") == {"codex": "visible"}

    assert run("link", "deploy", "--to", "codex", "--to", "kiro", "--remove")[0] == 0

    assert sorted(path.name for path in machine.repo.iterdir()) == [".claude", ".git"]
    assert (machine.repo / ".claude/skills/deploy/SKILL.md").exists()


def test_a_host_that_follows_no_links_gets_a_copy(machine: Machine, run: Run) -> None:
    folder = write_skill(machine.repo / ".claude/skills", "deploy").parent
    (folder / "scripts").mkdir()
    (folder / "scripts/run.sh").write_text("#!/bin/sh\n")
    (folder / "scripts/run.sh").chmod(0o755)

    made = json_output(run, "link", "deploy", "--to", "codelia", schema="link")["made"]

    copy = machine.repo / ".agents/skills/deploy"
    assert [(one["how"], one["path"], one["visible"]) for one in made] == [("copy", str(copy), True)]
    assert not copy.is_symlink()
    assert os.access(copy / "scripts/run.sh", os.X_OK)

    (copy / "SKILL.md").write_text("changed")
    status, out, _ = run("link", "deploy", "--to", "codelia", "--remove")
    assert (status, "this copy was modified" in out, copy.exists()) == (1, True, True)


def test_a_link_of_our_own_gives_way_to_a_copy_that_says_so(machine: Machine, run: Run) -> None:
    write_skill(machine.repo / ".claude/skills", "deploy")
    place = machine.repo / ".agents/skills/deploy"
    assert run("link", "deploy", "--to", "codex")[0] == 0
    assert place.is_symlink()

    status, out, _ = run("link", "deploy", "--to", "codelia")

    assert (status, place.is_symlink(), (place / "SKILL.md").exists()) == (0, False, True)
    assert "codelia: copied to .agents/skills/deploy (replaces the link made by skillshelf; 1 file" in out
    assert "(codex needs it)" in run("link", "deploy", "--to", "codelia", "--remove")[1]
    assert run("link", "deploy", "--to", "codex", "--remove")[0] == 0
    assert sorted(path.name for path in machine.repo.iterdir()) == [".claude", ".git"]


def test_a_link_of_our_own_that_lost_its_skill_is_led_to_where_that_is_now(machine: Machine, run: Run) -> None:
    old = write_skill(machine.repo / ".claude/skills", "deploy").parent
    assert run("link", "deploy", "--to", "codex")[0] == 0
    (machine.repo / ".github/skills").mkdir(parents=True)
    old.rename(machine.repo / ".github/skills/deploy")

    status, out, _ = run("link", "deploy", "--to", "codex")

    assert (status, "replaces the link made by skillshelf" in out) == (0, True)
    assert os.readlink(machine.repo / ".agents/skills/deploy") == "../../.github/skills/deploy"


def test_a_link_of_somebody_else_stays_where_a_copy_is_wanted(machine: Machine, run: Run) -> None:
    folder = write_skill(machine.repo / ".claude/skills", "deploy").parent
    theirs = machine.repo / ".agents/skills/deploy"
    theirs.parent.mkdir(parents=True)
    theirs.symlink_to(folder)

    status, out, _ = run("link", "deploy", "--to", "codelia")

    assert (status, os.readlink(theirs)) == (1, str(folder))
    assert f"is a link that skillshelf did not make, to {folder}: move it away and try again" in out


def test_a_copy_that_cannot_be_made_leaves_the_link_there(machine: Machine, run: Run) -> None:
    folder = write_skill(machine.repo / ".claude/skills", "deploy").parent
    (folder / "data.bin").touch()
    # A sparse file: large, but without any bytes on disk.
    os.truncate(folder / "data.bin", COPIED_BYTES)
    run("link", "deploy", "--to", "codex")

    status, out, _ = run("link", "deploy", "--to", "codelia")

    assert (status, f"failed: the skill has more than {COPIED_BYTES:,} bytes" in out) == (1, True)
    assert (machine.repo / ".agents/skills/deploy").is_symlink()
    assert verdicts(run, "deploy", "--host", "codex") == {"codex": "visible"}


def test_hosts_that_a_copy_leaves_in_doubt_are_named_before_it_is_made(machine: Machine, run: Run) -> None:
    write_skill(machine.repo / ".claude/skills", "deploy")

    advised = run("why", "deploy")[1]
    _, out, err = run("link", "deploy", "--to", "codelia")

    assert "opencode, cursor would then find two skills of this name, either may win" in advised
    assert err.splitlines() == [
        "skillshelf: with a copy in .agents/skills, these hosts find two skills of this name, either may win: "
        "opencode, cursor",
        "skillshelf: to undo this: skillshelf link deploy --to codelia --remove",
    ]
    assert "codelia: copied to .agents/skills/deploy" in out


def test_a_copy_that_was_made_serves_the_next_host_and_is_no_other_skill(machine: Machine, run: Run) -> None:
    write_skill(machine.repo / ".claude/skills", "deploy")
    run("link", "deploy", "--to", "codelia")

    status, out, _ = run("link", "deploy", "--to", "codex")

    assert (status, "codex: already visible as .agents/skills/deploy/SKILL.md" in out) == (0, True)
    assert not (machine.repo / ".codex").exists()


def test_nothing_is_overwritten_and_nothing_of_others_is_removed(machine: Machine, run: Run) -> None:
    write_skill(machine.repo / ".claude/skills", "deploy")
    theirs = write_skill(machine.repo / ".kiro/skills", "deploy", "---\nname: deploy\n---\nTheirs.\n")
    before = theirs.read_bytes()

    assert run("link", "deploy", "--to", "kiro")[0] == 3
    path = str(machine.repo / ".claude/skills/deploy")
    assert run("link", path, "--to", "kiro")[0] == 1
    assert run("link", "deploy", "--to", "kiro", "--remove")[0] == 1
    assert theirs.read_bytes() == before


def test_what_was_made_by_a_path_is_taken_back_by_it_and_also_when_the_skill_is_gone(
    machine: Machine, run: Run
) -> None:
    folder = write_skill(machine.repo / ".claude/skills", "deploy", folder="ship").parent
    run("link", ".claude/skills/ship", "--to", "codex")
    assert run("link", ".claude/skills/ship", "--to", "codex", "--remove")[0] == 0
    assert not (machine.repo / ".agents").exists()

    run("link", ".claude/skills/ship", "--to", "codex")
    folder.rename(machine.base / "away")
    assert run("link", "deploy", "--to", "codex", "--remove")[0] == 0
    assert not (machine.repo / ".agents").exists()


def test_a_personal_skill_is_linked_at_home(machine: Machine, run: Run) -> None:
    write_skill(machine.home / ".claude/skills", "deploy")

    assert run("link", "deploy", "--to", "gemini-cli")[0] == 0

    assert os.readlink(machine.home / ".agents/skills/deploy") == "../../.claude/skills/deploy"
    assert sorted(path.name for path in machine.repo.iterdir()) == [".git"]


def test_a_link_says_what_still_keeps_the_skill_out(machine: Machine, run: Run) -> None:
    write_skill(machine.repo / ".claude/skills", "deploy", skill("description: No name.\n"))

    status, out, _ = run("link", "deploy", "--to", "opencode", "--to", "gemini-cli")

    assert status == 1
    assert "opencode: no change: .claude/skills/deploy/SKILL.md (a link would not help; add `name: deploy`)" in out
    assert "gemini-cli: no change (link not made, it would be untrusted; first: trust this folder in gemini-cli" in out
    assert not (machine.repo / ".agents").exists()


def test_a_file_that_is_not_called_skill_md_is_renamed_not_linked(machine: Machine, run: Run) -> None:
    folder = write_skill(machine.repo / ".claude/skills", "deploy").parent
    (folder / "SKILL.md").rename(folder / "skill.md")

    status, out, err = run("link", "deploy", "--to", "codex")

    assert (status, err) == (1, "")
    assert "a link would not help; rename the file to SKILL.md" in out
    assert sorted(path.name for path in machine.repo.iterdir()) == [".claude", ".git"]


@pytest.mark.parametrize("words", [("link", "deploy", "--to", "codex"), ("why", "deploy", "--fix", "--host", "codex")])
def test_no_host_that_ignores_what_the_author_holds_back_is_handed_a_skill_unasked(
    machine: Machine, run: Run, words: tuple[str, ...]
) -> None:
    text = skill("name: deploy\ndescription: D.\ndisable-model-invocation: true\n")
    write_skill(machine.repo / ".claude/skills", "deploy", text)

    status, out, err = run(*words)

    assert (status, "link deploy --to codex" in run("why", "deploy")[1]) == (1, False)
    assert "codex ignores disable-model-invocation: its model could call deploy without the user's request" in out + err
    assert "to do it anyway: skillshelf link deploy --to codex --force" in out + err
    assert sorted(path.name for path in machine.repo.iterdir()) == [".claude", ".git"]


@pytest.mark.parametrize("option", ["--force", "--even-so"])
def test_a_skill_can_be_given_to_such_a_host_by_force_after_a_warning(machine: Machine, run: Run, option: str) -> None:
    text = skill("name: deploy\ndescription: D.\ndisable-model-invocation: true\n")
    write_skill(machine.repo / ".claude/skills", "deploy", text)

    status, out, err = run("link", "deploy", "--to", "codex", option)

    assert (status, "codex: linked .codex/skills/deploy" in out) == (0, True)
    warning = "codex ignores disable-model-invocation: its model could call deploy without the user's request"
    assert err == f"skillshelf: {warning}\n"
    # Where the fewest others read it who ignore that, too.
    assert verdicts(run, ".claude/skills/deploy", "--host", "gemini-cli") == {"gemini-cli": "root-not-read"}


def test_a_folder_that_careless_hosts_read_too_is_not_opened_to_them(machine: Machine, run: Run) -> None:
    text = skill("name: deploy\ndescription: D.\ndisable-model-invocation: true\n")
    write_skill(machine.repo / ".pi/skills", "deploy", text)

    status, out, _ = run("link", "deploy", "--to", "claude-code")

    assert (status, (machine.repo / ".claude").exists()) == (1, False)
    assert "ignore disable-model-invocation: their models could call deploy without the user's request" in out


def test_a_link_for_a_host_that_heeds_the_author_hands_the_skill_to_no_other(machine: Machine, run: Run) -> None:
    text = skill("name: deploy\ndescription: D.\ndisable-model-invocation: true\n")
    write_skill(machine.repo / ".claude/skills", "deploy", text)
    trust(machine, machine.repo)
    before = verdicts(run, "deploy", "--host", "codex")

    run("link", "deploy", "--to", "pi")

    assert (machine.repo / ".pi/skills/deploy").is_symlink()
    assert verdicts(run, "deploy", "--host", "codex") == before == {"codex": "root-not-read"}


def test_what_was_made_for_two_hosts_stays_until_neither_needs_it(machine: Machine, run: Run) -> None:
    write_skill(machine.home / ".claude/skills", "deploy")
    link = machine.home / ".agents/skills/deploy"
    assert run("link", "deploy", "--to", "codex", "--to", "gemini-cli")[0] == 0

    status, out, _ = run("link", "deploy", "--to", "codex", "--remove")
    assert (status, link.exists()) == (0, True)
    assert "codex: kept ~/.agents/skills/deploy (gemini-cli needs it)" in out

    assert run("link", "deploy", "--to", "gemini-cli", "--remove")[0] == 0
    assert not link.is_symlink()


def test_what_was_made_for_another_host_is_not_removed(machine: Machine, run: Run) -> None:
    write_skill(machine.repo / ".claude/skills", "deploy")
    copy, link = machine.repo / ".agents/skills/deploy", machine.repo / ".codex/skills/deploy"
    run("link", "deploy", "--to", "codex", "--to", "codelia")

    assert run("link", "deploy", "--to", "codex", "--remove")[0] == 0
    assert (copy.exists(), link.exists()) == (True, False)

    status, out, _ = run("link", "deploy", "--to", "opencode", "--remove")
    assert (status, copy.exists()) == (1, True)
    assert "what is here was made for codelia" in out

    assert run("link", "deploy", "--to", "codelia", "--remove")[0] == 0
    assert sorted(path.name for path in machine.repo.iterdir()) == [".claude", ".git"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["link"],
            "missing argument NAME-or-PATH: a skill, its folder or its SKILL.md "
            "(usage: skillshelf link NAME-or-PATH ...)",
        ),
        (
            ["link", "deploy"],
            "missing option --to HOST,... "
            "(no host is set or found here; to set yours: skillshelf hosts --set HOST,...)",
        ),
        (["link", "deploy", "--to", "codexx"], "unknown host 'codexx'; did you mean codex?"),
    ],
)
def test_wrong_usage_is_said_in_one_line(run: Run, words: list[str], message: str) -> None:
    status, _, err = run(*words)

    assert (status, err) == (2, f"skillshelf: {message}\n")


# Links that lead nowhere --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("link", "said"),
    [
        (".claude/skills/deploy", "the link leads nowhere: target ../../gone/deploy"),
        (".claude/skills/deploy/SKILL.md", "SKILL.md is a link; the link leads nowhere: target ../../gone/deploy"),
        (".claude/skills/ops/deploy", "the link leads nowhere: target ../../gone/deploy"),
    ],
)
def test_a_skill_whose_link_leads_nowhere_is_found_by_its_name(
    machine: Machine, run: Run, link: str, said: str
) -> None:
    path = machine.repo / link
    path.parent.mkdir(parents=True)
    path.symlink_to("../../gone/deploy")

    (found,) = json_output(run, "why", "deploy", "--host", "opencode", schema="why")["candidates"]
    status, out, _ = run("why", "deploy")

    assert (found["hosts"][0]["verdict"], found["hosts"][0]["detail"], found["hosts"][0]["told"]) == (
        *("wrong-type", said),
        None,
    )
    assert status == 1
    assert f"target ../../gone/deploy; restore the target or remove the link: rm {link}\n" in out
    assert "deploy" in run("hosts")[1]


def test_a_link_inside_a_skill_is_no_skill(machine: Machine, run: Run) -> None:
    folder = write_skill(machine.repo / ".claude/skills", "deploy").parent
    (folder / "data").mkdir()
    (folder / "data/latest").symlink_to("gone")

    assert [row["name"] for row in json_output(run, "hosts", schema="hosts")["skills"]] == ["deploy"]


def test_what_leads_nowhere_is_not_linked(machine: Machine, run: Run) -> None:
    (machine.repo / ".claude/skills").mkdir(parents=True)
    (machine.repo / ".claude/skills/deploy").symlink_to("gone")

    status, out, err = run("link", "deploy", "--to", "codex")

    assert (status, err) == (1, "")
    assert "codex: no change (the link leads nowhere: target gone; restore the target or remove the link" in out


@pytest.mark.parametrize("profile", ["standard", "strict", "host:opencode", "host:codex", "host:goose", "codelia"])
@pytest.mark.parametrize("place", ["deploy/SKILL.md", "SKILL.md"])
def test_a_skill_md_that_leads_nowhere_is_told_once(machine: Machine, profile: str, place: str) -> None:
    path = machine.repo / ".agents/skills" / place
    path.parent.mkdir(parents=True)
    path.symlink_to("gone.md")

    catalog = machine.catalog(profile)

    assert [problem.path for problem in (*catalog.errors, *catalog.warnings)] == [str(path)]
