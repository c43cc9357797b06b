"""A session that keeps its inputs is repeated from them, where the skills, the folder and the home are gone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.policies import put
from support.trees import Machine

import skillshelf
from skillshelf import ConfigurationError, Replay, Session
from skillshelf.journal.file import Journal
from skillshelf.journal.format import RESERVED

PROFILES = {"mycodeagent": "skills", "swiftagent": ".agent/skills", "omp": ".omp/skills"}
TOOLS = {"mycodeagent": "Skill", "swiftagent": "activate_skill", "omp": "read"}


def elsewhere(machine: Machine, tmp_path: Path) -> Path:
    """Move a journal with its kept inputs away, remove the machine, and return the journal."""
    target = tmp_path / "elsewhere"
    target.mkdir()
    shutil.move(machine.base / "run.jsonl", target / "run.jsonl")
    shutil.move(machine.base / "run.jsonl.d", target / "run.jsonl.d")
    shutil.rmtree(machine.base)
    return target / "run.jsonl"


def replayed(path: Path, **options: Any) -> Replay:
    """The journal repeated from its kept inputs, with the environment of nobody."""
    return skillshelf.replay(path, home=path.parent / "nobody", env={}, **{"against": "kept", **options})


def edit(path: Path, old: str, new: str) -> None:
    """Replace a text in a file."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


# Sessions -----------------------------------------------------------------------------------------


@pytest.mark.req("K-59", "K-49")
def test_a_session_with_edits_replays_clean_where_the_skills_are_gone(machine: Machine, tmp_path: Path) -> None:
    skill = put(machine.home / ".agents/skills", "deploy", "allowed-tools: Read\n").parent
    put(machine.repo / ".agents/skills", "review")
    (skill / "logo.png").write_bytes(bytes(range(256)))
    shelf = machine.shelf()
    with shelf.session(journal=machine.base / "run.jsonl", keep=True, preload=["review"]) as session:
        session.system_prompt("You are helpful.")
        session.call("skill_load", {"name": "deploy"})
        session.call("skill_load", {"name": "deploy"})
        edit(skill / "SKILL.md", "Body of", "Another body of")
        (skill / "more.md").write_text("More.\n")
        assert not session.call("skill_load", {"name": "deploy"}).data["already_loaded"]
        session.call("skill_search", {"query": "review the code"})
        session.call("skill_read", {"uri": "skill://deploy/logo.png"})
        session.call("skill_read", {"uri": "skill://deploy/nothing"})
        session.call("skill_read", {"uri": "skill://deploy/scripts"})
        session.call("skill_load", {"path": str(skill)})
        session.call("skill_load", {"path": "/nowhere/at/all"})
        edit(skill / "SKILL.md", "Does deploy", "Ships deploy")
        put(machine.repo / ".agents/skills", "another")
        shelf.refresh()
        session.system_prompt("You are helpful.")
        session.call("skill_load", {"name": "another"})
        (machine.repo / ".agents/skills/another/SKILL.md").unlink()
        assert not session.call("skill_load", {"name": "another"}).ok
        session.command("/skill:deploy now")
        session.resolve_mentions("use $review and $deplo")
        session.activate("review")
        session.decide("Bash", {"command": "ls"})
        session.compact()
        session.load("deploy")
        session.read("skill://deploy/more.md")
        session.search("deploy")

    found = replayed(elsewhere(machine, tmp_path))

    assert (found.differences, found.skipped) == ((), ())


@pytest.mark.req("K-59")
@pytest.mark.parametrize("profile", ["standard", "strict", "codelia", "swiftagent", "mycodeagent", "rip", "omp"])
def test_a_kept_session_of_every_profile_replays_clean(machine: Machine, profile: str, tmp_path: Path) -> None:
    file = put(machine.repo / PROFILES.get(profile, ".agents/skills"), "deploy")
    given = {"swiftagent": {"skillName": "deploy"}, "omp": {"path": "skill://deploy"}}.get(profile, {"name": "deploy"})
    shelf = machine.shelf(profile)
    with shelf.session(journal=machine.base / "run.jsonl", keep=True) as session:
        for text in ("Body of", "A new body of"):
            session.system_prompt("base")
            assert session.call(TOOLS.get(profile, "skill_load"), given).ok
            edit(file, text, f"A new {text[0].lower()}{text[1:]}")
        session.command("/skill:deploy now")
        session.load("deploy")
        session.read("skill://deploy/scripts/hello.sh")

    assert replayed(elsewhere(machine, tmp_path)).differences == ()


@pytest.mark.req("K-59")
def test_directories_and_profiles_of_a_configuration_are_kept(machine: Machine, tmp_path: Path) -> None:
    put(machine.base / "custom", "deploy")
    put(machine.base / "by-variable", "review")
    config = {
        "skills": {"custom_directories": [str(machine.base / "custom")], "initial": {"max_tokens": 20}},
        "permissions": {"deny": [{"tool": "skill_load", "skill_name": "review"}]},
        "profiles": {"mine": {"extends": "standard", "reload": "repeat"}},
    }
    variables = {"AGENT_SKILLS_PATH": str(machine.base / "by-variable")}
    shelf = skillshelf.open_shelf(machine.repo, "mine", home=machine.home, env=variables, config=config)
    with shelf.session(journal=machine.base / "run.jsonl", keep=True) as session:
        session.system_prompt()
        for name in ("deploy", "review", "deploy"):
            session.call("skill_load", {"name": name})
        session.call("skill_search", {"query": "deploy"})

    found = replayed(elsewhere(machine, tmp_path))

    assert found.differences == ()
    assert len(found.state.loaded) == 1


def test_a_link_that_a_path_goes_through_is_resolved_as_it_was(machine: Machine, tmp_path: Path) -> None:
    skill = put(machine.home / ".agents/skills", "deploy").parent
    (machine.base / "link").symlink_to(skill)
    with machine.shelf().session(journal=machine.base / "run.jsonl", keep=True) as session:
        assert session.call("skill_load", {"path": str(machine.base / "link")}).ok

    assert replayed(elsewhere(machine, tmp_path)).differences == ()


def test_every_effect_whose_result_is_kept_can_be_given_back() -> None:
    from skillshelf.session import inputs
    from skillshelf.session.effects import Effects

    assert set(inputs._RESULTS) | set(inputs._FROM_JOURNAL) == set(Effects._fields)


@pytest.mark.parametrize("answer", [True, False, "remember"])
def test_answers_about_an_untrusted_skill_are_repeated_without_its_files(
    machine: Machine, tmp_path: Path, answer: Any
) -> None:
    put(machine.repo / ".agents/skills", "stranger")
    shelf = machine.shelf(trust="ask")
    with shelf.session(journal=machine.base / "run.jsonl", keep=True, confirm=lambda *_: answer) as session:
        for _ in range(2):
            session.call("skill_load", {"name": "stranger"})
        session.call("skill_load", {"path": str(machine.repo / ".agents/skills/nothing")})
        session.call("skill_load", {"name": "nonsense"})

    assert replayed(elsewhere(machine, tmp_path)).differences == ()


@pytest.mark.slow
def test_a_script_that_ran_is_repeated_without_it(machine: Machine, tmp_path: Path) -> None:
    put(machine.home / ".agents/skills", "deploy")
    policy = {"allow": [{"tool": "skill_run"}], "run_unsandboxed": True}
    with machine.shelf().session(policy, journal=machine.base / "run.jsonl", keep=True) as session:
        assert session.call("skill_run", {"name": "deploy", "script": "hello.sh"}).ok
        assert not session.call("skill_run", {"name": "deploy", "script": "nothing.sh"}).ok

    assert replayed(elsewhere(machine, tmp_path)).differences == ()


@pytest.mark.slow
@pytest.mark.parametrize("against", ["kept", "disk"])
def test_an_output_that_was_cut_is_repeated_as_the_model_got_it(machine: Machine, against: Any) -> None:
    skill = put(machine.home / ".agents/skills", "deploy").parent
    (skill / "scripts/big.sh").write_text("#!/bin/sh\nhead -c 3000000 /dev/zero | tr '\\0' x\nprintf '\\377' >&2\n")
    policy = {"allow": [{"tool": "skill_run"}], "run_unsandboxed": True}
    path = machine.base / "run.jsonl"
    with machine.shelf().session(policy, journal=path, keep=True) as session:
        assert session.call("skill_run", {"name": "deploy", "script": "big.sh"}).data["truncated"]

    assert skillshelf.replay(path, home=machine.home, env={}, against=against).differences == ()


def test_a_file_that_could_not_be_read_fails_again_in_the_same_words(machine: Machine, tmp_path: Path) -> None:
    file = put(machine.repo / "skills", "deploy")
    with machine.shelf("mycodeagent").session(journal=machine.base / "run.jsonl", keep=True) as session:
        session.call("Skill", {"name": "deploy"})
        file.write_text("---\nname: [\n---\n")
        assert not session.call("Skill", {"name": "deploy"}).ok

    assert replayed(elsewhere(machine, tmp_path)).differences == ()


def test_the_inputs_of_a_child_are_its_own(machine: Machine, tmp_path: Path) -> None:
    put(machine.home / ".agents/skills", "deploy")
    with machine.shelf().session(journal=machine.base / "run.jsonl", keep=True) as session:
        with session.child(["deploy"]) as child:
            child.call("skill_load", {"name": "deploy"})
        session.call("skill_load", {"name": "deploy"})

    found = replayed(elsewhere(machine, tmp_path))

    assert (found.differences, len(found.sessions)) == ((), 2)


# The second question ------------------------------------------------------------------------------


def one_load(machine: Machine, act: Callable[[Session], object] | None = None) -> tuple[Path, Path]:
    """The journal of a load with its inputs kept, and the SKILL.md."""
    file = put(machine.home / ".agents/skills", "deploy")
    path = machine.base / "run.jsonl"
    with machine.shelf().session(journal=path, keep=True) as session:
        session.call("skill_load", {"name": "deploy"})
        if act:
            act(session)
    return path, file


@pytest.mark.req("K-59")
def test_comparing_with_the_disk_is_another_question(machine: Machine) -> None:
    path, file = one_load(machine)
    (file.parent / "more.md").write_text("More.\n")

    def ask(**options: Any) -> int:
        return len(skillshelf.replay(path, home=machine.home, env={}, **options).differences)

    assert (ask(), ask(against="kept"), ask(against="disk"), ask(kept=False)) == (0, 0, 1, 1)
    words = {flag: machine.run("log", "replay", str(path), *flag.split()).returncode for flag in ("", "--disk")}
    words |= {what: machine.run("log", "replay", str(path), "--against", what).returncode for what in ("kept", "disk")}
    assert words == {"": 0, "--disk": 1, "kept": 0, "disk": 1}
    assert machine.run("log", "replay", str(path), "--against", "moon").returncode == 2


def test_kept_inputs_that_are_asked_for_must_be_there(machine: Machine) -> None:
    path, _ = one_load(machine)
    shutil.rmtree(f"{path}.d")

    assert skillshelf.replay(path, home=machine.home, env={}).differences == ()
    with pytest.raises(ConfigurationError, match="nothing was kept"):
        replayed(path)


def test_a_killed_session_is_compared_up_to_the_call_that_did_not_end(machine: Machine, tmp_path: Path) -> None:
    path, _ = one_load(machine, lambda session: session.call("skill_search", {"query": "deploy"}))
    lines = path.read_text().splitlines(keepends=True)
    path = elsewhere(machine, tmp_path)
    for number in range(1, len(lines)):
        path.write_text("".join(lines[:number]))
        assert replayed(path).differences == (), number
    path.write_text("".join(lines[:6]))
    assert "did not end" in replayed(path).skipped[0]


# Strangers ----------------------------------------------------------------------------------------


@pytest.mark.req("K-49")
def test_a_kept_content_that_somebody_changed_is_never_trusted(machine: Machine, tmp_path: Path) -> None:
    one_load(machine, lambda session: session.call("skill_read", {"uri": "skill://deploy/scripts/hello.sh"}))
    path = elsewhere(machine, tmp_path)
    kept = sorted((path.parent / "run.jsonl.d/sha256").iterdir())
    assert len(kept) == 5
    for file in kept:
        data = file.read_bytes()
        file.write_bytes(data[:-2] + b"x" + data[-2:])
        (difference,) = replayed(path).differences
        assert "missing or was changed" in difference.detail
        assert f"sha256:{file.name}" in difference.detail
        file.unlink()
        assert replayed(path).differences
        file.write_bytes(data)
    assert replayed(path).differences == ()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda value: {**value, "version": 99}, "version 99"),
        (lambda value: [value], "version None"),
        (lambda value: {**value, "more": 1}, "more is not a known member"),
        (lambda value: {**value, "catalog": {**value["catalog"], "skills": [{"name": 5}]}}, "not valid"),
        (lambda value: {**value, "env": 5}, "env must be"),
    ],
)
def test_a_document_that_is_not_what_it_should_be_is_said_in_one_line(
    machine: Machine, change: Callable[[Any], Any], words: str
) -> None:
    path, _ = one_load(machine)
    events = [json.loads(line) for line in path.read_text().splitlines()]
    folder = machine.base / "run.jsonl.d/sha256"
    old = events[1]["inputs"].removeprefix("sha256:")
    data = json.dumps(change(json.loads((folder / old).read_text()))).encode()
    from skillshelf.catalog.load import digest_of

    events[1]["inputs"] = digest_of(data)
    (folder / digest_of(data).removeprefix("sha256:")).write_bytes(data)
    path.unlink()
    journal = Journal(str(path), session="x")
    for event in events:
        journal.append(event["type"], {key: value for key, value in event.items() if key not in RESERVED})

    (difference,) = replayed(path).differences

    assert words in difference.detail
    assert "\n" not in difference.detail


@pytest.mark.req("K-59", "M-61")
def test_a_rejected_file_is_still_known_by_its_own_name(machine: Machine, tmp_path: Path) -> None:
    file = put(machine.repo / ".agents/skills", "deploy")
    file.parent.rename(file.parent.with_name("other"))
    with machine.shelf("strict").session(journal=machine.base / "run.jsonl", keep=True) as session:
        result = session.call("skill_load", {"name": "deploy"})
    assert result.error is not None
    assert result.error.code == "failed"

    assert replayed(elsewhere(machine, tmp_path)).differences == ()


@pytest.mark.req("K-59")
def test_the_project_that_a_user_is_told_to_trust_is_the_one_of_that_day(machine: Machine, tmp_path: Path) -> None:
    put(machine.repo / ".agents/skills", "deploy")
    below = machine.repo / "below"
    below.mkdir()
    shelf = skillshelf.open_shelf(below, home=machine.home, env={}, trust="ask")
    policy = {"allow": [{"tool": "skill_load", "skill_name": "deploy"}]}
    with shelf.session(journal=machine.base / "run.jsonl", keep=True, policy=policy) as session:
        assert str(below) not in session.call("skill_load", {"name": "deploy"}).text

    assert replayed(elsewhere(machine, tmp_path)).differences == ()
