"""Sent texts: a body is sent once for each version while it is in the context, and it is never lost."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from support.scenario import SYSTEMS
from support.trees import Machine, write_skill

from skillshelf import ConfigurationError, ResourceNotFound, Session, ToolResult
from skillshelf.config.builtin_profiles import SYSTEMS as PROFILES

BODY = "This line is in the body only."
REMINDING = [name for name, profile in PROFILES.items() if profile.reload == "remind"]
REPEATING = [name for name, profile in PROFILES.items() if profile.reload == "repeat"]


def put(machine: Machine, name: str, profile: str = "standard", *, more: str = "", body: str = BODY) -> Path:
    """Write a skill where the profile looks in a project; always at the same time, so that only its text differs."""
    text = f"---\nname: {name}\ndescription: Does {name} things.\n{more}---\n{body}\n"
    path = write_skill(machine.repo / SYSTEMS[profile].root, name, text)
    os.utime(path, (1_700_000_000, 1_700_000_000))
    return path


def load(session: Session, name: str = "deploy") -> ToolResult:
    """Load the skill as the model does."""
    return SYSTEMS[session.profile.name].load(session, name)


# The same version ---------------------------------------------------------------------------------


@pytest.mark.req("C-75", "C-76", "C-116")
@pytest.mark.parametrize("profile", REMINDING)
def test_the_same_version_again_is_a_short_reminder_with_its_reference(machine: Machine, profile: str) -> None:
    path = put(machine, "deploy", profile)
    session = machine.shelf(profile).session()

    first, second = load(session), load(session)

    assert BODY in first.text
    assert second.text == (
        f'<skill_context_reminder name="deploy" path="{path}" ref="{first.data["ref"]}">'
        "This skill is already loaded and has not changed. For its text again: skill_load with offset=0."
        "</skill_context_reminder>"
    )
    assert (first.data["already_loaded"], second.data["already_loaded"]) == (False, True)
    assert second.data == {**first.data, "already_loaded": True}
    assert session.recall(first.data["ref"]) == first.text


@pytest.mark.req("C-74")
def test_a_session_knows_the_time_of_each_version_by_its_path(machine: Machine) -> None:
    paths = [put(machine, name, "codelia") for name in ("deploy", "review", "unused")]
    session = machine.shelf("codelia").session()
    load(session, "deploy")
    os.utime(paths[1], ns=(0, 1_700_000_123_456_789_000))
    load(session, "review")

    versions = {sent["path"]: sent["mtime_ms"] for sent in session.snapshot()["loaded"]}

    assert versions == {str(paths[0]): 1_700_000_000_000, str(paths[1]): 1_700_000_123_456}


@pytest.mark.parametrize("profile", REPEATING)
def test_systems_that_repeat_send_the_same_text_again(machine: Machine, profile: str) -> None:
    put(machine, "deploy", profile)
    session = machine.shelf(profile).session()

    first, second = load(session), load(session)

    assert BODY in first.text
    assert re.sub(r'"time_ms": \d+', "", second.text) == re.sub(r'"time_ms": \d+', "", first.text)


@pytest.mark.parametrize("way", ["name", "path", "folder", "relative path", "command"])
def test_a_skill_is_the_same_however_it_was_asked_for(machine: Machine, way: str) -> None:
    path = put(machine, "deploy")
    session = machine.shelf().session()
    asked: dict[str, dict[str, Any]] = {
        "name": {"name": "deploy"},
        "path": {"path": str(path)},
        "folder": {"path": str(path.parent)},
        "relative path": {"path": os.path.relpath(path, machine.repo)},
    }

    first = session.command("/skill:deploy") if way == "command" else session.call("skill_load", asked[way])

    assert first is not None
    assert BODY in first.text
    assert load(session).data["already_loaded"] is True


# Another version ----------------------------------------------------------------------------------


@pytest.mark.req("C-77")
@pytest.mark.parametrize("profile", REMINDING)
def test_a_new_time_alone_sends_the_body_again(machine: Machine, profile: str) -> None:
    path = put(machine, "deploy", profile)
    session = machine.shelf(profile).session()
    first = load(session)
    os.utime(path, (1_700_000_001, 1_700_000_001))

    again = load(session)

    assert again.text == first.text
    assert (again.data["already_loaded"], again.data["mtime_ms"]) == (False, 1_700_000_001_000)
    assert again.data["ref"] != first.data["ref"]
    assert load(session).data["already_loaded"] is True


@pytest.mark.parametrize("profile", SYSTEMS)
def test_an_edit_sends_the_new_body_even_if_size_and_time_stay(machine: Machine, profile: str) -> None:
    put(machine, "deploy", profile, body="Version one.")
    session = machine.shelf(profile).session()
    first = load(session)
    put(machine, "deploy", profile, body="Version two.")

    second = load(session)

    assert "Version one." in first.text
    assert "Version two." in second.text
    assert "Version one." not in second.text


def test_other_arguments_send_the_body_again(machine: Machine) -> None:
    put(machine, "deploy", body="Deploy $ARGUMENTS.")
    session = machine.shelf().session()

    def asked(**more: str) -> ToolResult:
        return session.call("skill_load", {"name": "deploy", **more})

    assert "Deploy v1." in asked(args="v1").text
    assert "Deploy v2." in asked(args="v2").text
    assert asked(args="v2").data["already_loaded"] is True
    assert "Deploy ." in asked().text
    assert "Deploy v1." in asked(args="v1").text


# Compaction ---------------------------------------------------------------------------------------


@pytest.mark.req("C-68", "C-118")
@pytest.mark.parametrize("profile", REMINDING)
def test_after_compaction_a_reference_still_works_and_a_load_sends_the_body(machine: Machine, profile: str) -> None:
    put(machine, "deploy", profile)
    session = machine.shelf(profile).session()
    first = load(session)

    session.compact()

    assert session.recall(first.data["ref"]) == first.text
    again = load(session)
    assert (again.text, again.data) == (first.text, first.data)
    assert load(session).data["already_loaded"] is True


def test_references_of_older_versions_still_give_the_older_text(machine: Machine) -> None:
    session = machine.shelf("codelia").session()
    refs = []
    for version in ("one", "two", "three"):
        put(machine, "deploy", "codelia", body=f"Version {version}.")
        session.shelf.refresh()
        refs.append(load(session).data["ref"])
        session.compact()

    assert [re.findall(r"Version \w+", session.recall(ref)) for ref in refs] == [
        ["Version one"],
        ["Version two"],
        ["Version three"],
    ]


def test_a_reference_nobody_gave_is_not_found(machine: Machine) -> None:
    with pytest.raises(ResourceNotFound):
        machine.shelf().session().recall("load-1")


# Results that are too long ------------------------------------------------------------------------


def whole_and_cut(machine: Machine, profile: str, character: str) -> tuple[ToolResult, ToolResult, Session]:
    """The result that just fits, and the one with one more byte of body."""
    put(machine, "deploy", profile, body="x")
    overhead = len(load(machine.shelf(profile).session()).text.encode()) - 1
    room = PROFILES[profile].result_bytes - overhead
    body = character * (room // len(character.encode()))
    body += "x" * (room - len(body.encode()))
    put(machine, "deploy", profile, body=body)
    session = machine.shelf(profile).session()
    fits = load(session)
    put(machine, "deploy", profile, body=body + "x")
    return fits, load(session), session


CUT = re.compile(r"\n\[cut; ref=(\S+); the rest: skill_load with offset=(\d+)\]\n")


@pytest.mark.req("C-67", "C-69", "C-70", "C-115", "C-118")
@pytest.mark.parametrize("character", ["x", "é", "🧾"])
@pytest.mark.parametrize("profile", ["standard", "codelia", "rip"])
def test_a_result_is_cut_above_its_limit_and_keeps_its_frame(machine: Machine, profile: str, character: str) -> None:
    fits, cut, session = whole_and_cut(machine, profile, character)

    limit = PROFILES[profile].result_bytes
    assert len(fits.text.encode()) == limit
    match = CUT.search(cut.text)
    assert match is not None
    head, tail = cut.text[: match.start()], cut.text[match.end() :]
    whole = session.recall(match[1])
    assert whole.startswith(head)
    assert whole.endswith(tail)
    assert str(machine.repo) in head.partition("\n")[0]
    assert tail.endswith(("</skill_content>", "</skill_context>"))
    assert limit - 200 < len(cut.text.encode()) <= limit
    assert (cut.data["ref"], cut.data["truncated"], cut.data["next_offset"]) == (match[1], True, int(match[2]))


@pytest.mark.req("C-67", "C-115")
@pytest.mark.parametrize("files", [0, 3, 200], ids=["no file", "files", "a list beyond the limit"])
@pytest.mark.parametrize("profile", ["standard", "codelia", "rip"])
def test_the_offsets_of_a_cut_text_cover_it_exactly_once(machine: Machine, profile: str, files: int) -> None:
    body = "".join(f"{n} é🧾日本\n" for n in range(30_000)) + "</skill_content></skill_context>\nthe end\n\n"
    folder = put(machine, "deploy", profile, body=body).parent
    for number in range(files):
        name = "/".join([f"{number:03}" + "n" * 200] * (8 if files > 100 else 1))
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
    session = machine.shelf(profile).session()
    texts: list[ToolResult] = []
    offset: int | None = 0
    while offset is not None:
        result = session.call("skill_load", {"name": "deploy", "offset": offset})
        assert len(result.text.encode()) <= PROFILES[profile].result_bytes
        assert result.text.endswith(("</skill_content>", "</skill_context>"))
        texts.append(result)
        offset = result.data["next_offset"]

    starts = [result.data["offset"] for result in texts]
    closing = "\n<skill_resources" if profile != "codelia" else "\n\nBase directory: "
    parts = [CUT.sub("\n", result.text).partition("\n")[2].rpartition(closing)[0] for result in texts]
    whole = session.recall(texts[0].data["ref"])
    assert len(texts) > 2
    assert starts == [sum(len(part) for part in parts[:number]) for number in range(len(parts))]
    assert "".join(parts) == whole.partition("\n")[2].rpartition(closing)[0]
    assert "the end" in parts[-1]


@pytest.mark.req("C-115", "C-76")
def test_a_cut_version_does_not_count_as_loaded_and_offset_0_gives_any_text_again(machine: Machine) -> None:
    put(machine, "deploy", "codelia", body="x" * 60_000)
    put(machine, "short", "codelia")
    session = machine.shelf("codelia").session()
    first, second = load(session), load(session)
    short = [session.call("skill_load", {"name": "short"}) for _ in range(2)]
    again = session.call("skill_load", {"name": "short", "offset": 0})
    third = session.call("skill_load", {"name": "short"})

    assert first.text == second.text
    assert second.data["already_loaded"] is False
    assert [result.data["already_loaded"] for result in (*short, again, third)] == [False, True, False, True]
    assert again.text == short[0].text
    assert "offset" not in again.data


def test_the_rest_of_a_text_with_arguments_is_asked_for_with_the_same_arguments(machine: Machine) -> None:
    put(machine, "deploy", body="".join(f"{number} $ARGUMENTS\n" for number in range(30_000)))
    put(machine, "short", body="On $ARGUMENTS.")
    session = machine.shelf().session()
    first = session.call("skill_load", {"name": "deploy", "args": "stage"})
    short = [session.call("skill_load", {"name": "short", "args": "stage"}) for _ in range(2)]

    assert f"skill_load with offset={first.data['next_offset']} and the same args]" in first.text
    assert "skill_load with offset=0 and the same args." in short[1].text
    assert "same args" not in session.call("skill_load", {"name": "deploy"}).text


def test_a_page_of_a_file_that_changed_after_the_page_before_is_refused(machine: Machine) -> None:
    file = put(machine, "deploy", "codelia", body="x" * 60_000)
    session = machine.shelf("codelia").session()
    first = load(session)
    file.write_text(file.read_text().replace("xxxx", "y", 1))
    rest = {"name": "deploy", "offset": first.data["next_offset"]}
    refused = session.call("skill_load", rest)
    again = session.call("skill_load", {"name": "deploy", "offset": 0})

    assert refused.error is not None
    assert refused.error.code == "invalid_params"
    assert "changed since its beginning was sent; load it again with offset=0" in refused.text
    assert "yxxx" in again.text
    assert session.call("skill_load", {"name": "deploy", "offset": again.data["next_offset"]}).ok


@pytest.mark.parametrize("offset", [-1, 10_000_000, "0", 1.5, True])
def test_an_offset_is_a_place_in_the_text(machine: Machine, offset: Any) -> None:
    put(machine, "deploy")
    result = machine.shelf().session().call("skill_load", {"name": "deploy", "offset": offset})

    assert result.error is not None
    assert result.error.code == "invalid_params"
    assert "offset" in result.error.message


@pytest.mark.parametrize("profile", ["swiftagent", "mycodeagent", "omp"])
def test_a_profile_whose_tools_could_not_give_the_rest_cuts_nothing(machine: Machine, profile: str) -> None:
    put(machine, "deploy", profile, body="x" * 300_000)
    result = load(machine.shelf(profile).session())

    assert "x" * 300_000 in result.text
    assert "[cut" not in result.text


def test_a_long_file_is_cut_too_and_recalled_whole(machine: Machine) -> None:
    text = "".join(f"line {number}\n" for number in range(50_000))
    (put(machine, "deploy").parent / "long.txt").write_text(text)
    session = machine.shelf().session()

    result = session.call("skill_read", {"uri": "skill://deploy/long.txt"})

    assert result.text.endswith(f"\n[cut; ref={result.data['ref']}]")
    assert len(result.text) < 300_000 < len(text)
    assert session.recall(result.data["ref"]) == text


def test_a_long_file_is_not_cut_where_nothing_could_give_the_rest(machine: Machine) -> None:
    text = "".join(f"line {number}\n" for number in range(50_000))
    (put(machine, "deploy", "omp").parent / "long.txt").write_text(text)

    assert machine.shelf("omp").session().call("read", {"path": "skill://deploy/long.txt"}).text == text


# Restarts -----------------------------------------------------------------------------------------


def restarted(session: Session, machine: Machine) -> Session:
    """The session after a restart of its program, by way of a file."""
    return Session.restore(json.loads(json.dumps(session.snapshot())), machine.shelf(session.profile.name))


@pytest.mark.parametrize("profile", SYSTEMS)
def test_a_snapshot_is_a_json_value_and_gives_an_equal_session(machine: Machine, profile: str) -> None:
    put(machine, "deploy", profile)
    session = machine.shelf(profile).session()
    load(session)
    session.compact()

    again = restarted(session, machine)

    assert again.snapshot() == session.snapshot() == json.loads(json.dumps(session.snapshot()))
    assert (again.changes, again.active) == ((), session.active)


def test_a_restart_changes_nothing_about_what_the_model_has(machine: Machine) -> None:
    for name in ("deploy", "review"):
        put(machine, name)
    session = machine.shelf().session()
    first = load(session, "deploy")
    session.compact()
    second = load(session, "review")

    again = restarted(session, machine)

    assert [again.recall(result.data["ref"]) for result in (first, second)] == [first.text, second.text]
    assert load(again, "deploy").data["already_loaded"] is False
    assert load(again, "review").data["already_loaded"] is True
    put(machine, "review", body="An edit after the restart.")
    assert load(again, "review").data["ref"] not in (first.data["ref"], second.data["ref"])


def test_a_restart_reports_what_changed_on_disk(machine: Machine) -> None:
    paths = {name: put(machine, name) for name in ("broken", "gone", "same", "touched", "updated")}
    session = machine.shelf().session()
    for name in paths:
        load(session, name)
    put(machine, "updated", body="Another body.")
    os.utime(paths["touched"], (1_800_000_000, 1_800_000_000))
    paths["gone"].unlink()
    paths["broken"].write_text("---\nname: broken\n---\n")

    again = restarted(session, machine)

    assert [change.split()[:2] for change in again.changes if not change.startswith("no longer active")] == [
        ["missing:", "broken"],
        ["missing:", "gone"],
        ["updated:", "updated"],
    ]
    assert again.active == ("same", "touched", "updated")
    assert load(again, "updated").data["already_loaded"] is False
    assert load(again, "touched").data["already_loaded"] is False
    assert load(again, "same").data["already_loaded"] is True


def test_a_restart_keeps_what_a_sub_agent_began_with(machine: Machine) -> None:
    put(machine, "deploy", "omp")
    child = machine.shelf("omp").session().child(["deploy"])

    assert restarted(child, machine).system_prompt() == child.system_prompt()


def test_a_restart_keeps_what_the_user_asked_for(machine: Machine) -> None:
    put(machine, "deploy", more="disable-model-invocation: true\n")
    session = machine.shelf().session()
    session.resolve_mentions("please use $deploy")

    assert restarted(session, machine).call("skill_load", {"name": "deploy"}).ok


@pytest.mark.parametrize(
    "change", [{"version": 2}, {"version": None}, {"profile": "codelia"}, {"profile": None}], ids=str
)
def test_what_is_no_snapshot_of_this_profile_is_refused(machine: Machine, change: dict[str, Any]) -> None:
    snapshot = machine.shelf().session().snapshot()
    with pytest.raises(ConfigurationError):
        Session.restore({**snapshot, **change}, machine.shelf())
