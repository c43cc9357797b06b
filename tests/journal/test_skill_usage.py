"""Journals answer which skills are never used, who uses the others, when, after which search, and what was denied."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from schemas import SCHEMAS
from support.needs import needs
from support.otlp_receiver import Received, receiver
from support.trees import SOURCE, Machine, write_skill
from support.usage_journals import NEVER_USED, SKILLS, USERS, WEEKS, make_journals

from skillshelf.errors import ConfigurationError
from skillshelf.journal.file import Journal, read, verify
from skillshelf.journal.parts import Rotation
from skillshelf.journal.usage import count_usage

CATALOG = "skill_catalog_updated"


@pytest.fixture(scope="module")
def journals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the journals of three users over four weeks, in parts."""
    folder = tmp_path_factory.mktemp("journals")
    make_journals(folder, rotation=Rotation(max_bytes=8192))
    return folder


def rows(entries: list[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    """The values of some members of each row."""
    return [tuple(entry[name] for name in names) for entry in entries]


# Three users, four weeks --------------------------------------------------------------------------


def test_stats_over_many_journals_name_what_is_never_used_by_whom_the_rest_is_and_what_was_denied(
    machine: Machine, journals: Path
) -> None:
    stats = machine.run_json("log", "stats", str(journals))

    jsonschema.validate(stats, SCHEMAS["log-stats"])
    assert (stats["sessions"], stats["catalog"], stats["unlisted"], stats["broken"]) == (12, len(SKILLS), 0, 0)
    # Each user has the skills in another home folder; a warning about one is not usage.
    assert [row["name"] for row in stats["never_used"]] == NEVER_USED
    assert [len(row["paths"]) for row in stats["never_used"]] == [3, 3]
    used = {row["name"]: row for row in stats["skills"]}
    assert {name: rows(used[name]["users"], "user", "uses") for name in SKILLS if name not in NEVER_USED} == {
        "code-review": [("cem", 4), ("ben", 2), ("ada", 1)],
        "deploy": [("cem", 4)],
        "release-notes": [("ada", 8)],
        "triage": [("cem", 2)],
    }
    assert rows(used["triage"]["weeks"], "week", "uses") == [(WEEKS[0], 1), (WEEKS[1], 1)]
    assert rows(stats["weeks"], "week", "uses", "sessions", "denied") == [
        (week, uses, 3, 1) for week, uses in zip(WEEKS, (5, 6, 4, 6), strict=True)
    ]
    assert rows(stats["users"], "user", "kind", "uses", "sessions", "denied", "failed", "skills") == [
        ("cem", "subject", 10, 4, 0, 0, 3),
        ("ada", "subject", 9, 4, 0, 0, 2),
        ("ben", "subject", 2, 4, 4, 4, 1),
    ]
    assert rows(stats["denials"], "tool", "skill", "by", "count") == [("skill_run", "deploy", "rule", 4)]
    assert rows(stats["denials"][0]["users"], "user", "count") == [("ben", 4)]
    assert rows(stats["searches"], "query", "searches", "loads") == [
        ("write release notes", 4, 5),
        ("review my change", 2, 2),
    ]
    assert rows(stats["errors"], "tool", "skill", "code", "count") == [("skill_load", "no-such-skill", "not_found", 4)]
    assert [(Path(entry["file"]).name, entry["ok"]) for entry in stats["files"]] == [
        (f"{user}.jsonl", True) for user in USERS
    ]


def test_stats_are_the_same_for_a_folder_for_files_and_for_files_with_their_parts(
    machine: Machine, journals: Path
) -> None:
    parts = sorted(str(path) for path in journals.iterdir())
    assert any(".part-" in path for path in parts)

    found = [
        machine.run_json("log", "stats", *words)
        for words in ([str(journals)], [path for path in parts if path.endswith(".jsonl")], parts)
    ]

    for stats in found:
        stats.pop("file")
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("columns", [60, 100, 200])
def test_a_person_sees_first_what_is_never_used(machine: Machine, journals: Path, columns: int) -> None:
    from skillshelf.cli.usage_view import stats_view
    from skillshelf.core.console import Screen

    lines = [line for path in sorted(journals.glob("*.jsonl")) for line in read(str(path))]

    text = stats_view(count_usage(lines), Screen(columns=columns))

    assert text.splitlines()[:2] == ["Never used: 2 of 6 skills", "  invoices, migrations"]
    assert max(len(line) for line in text.splitlines()) <= columns
    for title in ("Used", "By user", "Per week (ISO, UTC)", "Loaded after a search", "Denied", "Failed"):
        assert f"\n{title}\n" in text
    assert text.endswith(" of 12 sessions\n")


@pytest.mark.parametrize("view", ["skill", "user", "week", "search", "denial", "error", "tool"])
def test_each_view_can_be_had_alone_and_whole(machine: Machine, journals: Path, view: str) -> None:
    shown = machine.run("log", "stats", str(journals), "--by", view)

    words = {"skill": "migrations", "user": "cem", "week": "2026-W45", "search": "review my change"}
    assert shown.returncode == 0
    assert words.get(view, "skill_load" if view in ("error", "tool") else "skill_run") in shown.stdout
    wrong = machine.run("log", "stats", str(journals), "--by", f"{view}x")
    assert (wrong.returncode, "--by needs one of" in wrong.stderr) == (2, True)


def test_a_period_counts_only_what_happened_in_it_and_only_the_catalogs_of_its_sessions(
    machine: Machine, journals: Path
) -> None:
    words = ("log", "stats", str(journals), "--since", "2026-10-26", "--until", "2026-11-02")

    stats = machine.run_json(*words)

    assert rows(stats["weeks"], "week", "sessions") == [("2026-W44", 3)]
    assert [row["name"] for row in stats["never_used"]] == ["invoices", "migrations", "triage"]
    shown = machine.run_json("log", "show", str(journals / "ada.jsonl"), *words[3:])
    assert len({entry["session"] for entry in shown if entry["session"]}) == 1
    assert machine.run_json("log", "stats", str(journals), "--until", "2001-01-01")["events"] == 0
    assert machine.run("log", "stats", str(journals), "--since", "yesterday").returncode == 2


def test_a_damaged_journal_is_counted_as_far_as_it_verifies_and_named(
    machine: Machine, journals: Path, tmp_path: Path
) -> None:
    for path in journals.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    damaged = next(path for path in sorted(tmp_path.glob("ben.*")) if b'"verdict":"deny"' in path.read_bytes())
    damaged.write_bytes(damaged.read_bytes().replace(b'"verdict":"deny"', b'"verdict":"dent"', 1))
    (tmp_path / "cem.jsonl.part-000001").unlink()
    (tmp_path / "notes.txt").write_text("no journal\n")

    stats = machine.run_json("log", "stats", str(tmp_path))
    shown = machine.run("log", "stats", str(tmp_path)).stdout

    assert (stats["broken"], stats["denials"][0]["count"]) == (1, 3)
    assert [entry["ok"] for entry in stats["files"]] == [True, False, False]
    assert "1 line damaged or changed, not counted" in shown
    assert "ben.jsonl: 1 problem, the first at line" in shown
    assert "cem.jsonl: 1 problem, the first at line 1:" in shown


# Whose skill it is --------------------------------------------------------------------------------


def listed(path: str, *skills: list[str]) -> dict[str, Any]:
    """The members of an event with a list of skills in one folder."""
    folder = {"folder": path, "skills": list(skills)}
    return {"count": len(skills), "listing": f"{path} {skills}", "listed": [folder]}


def use(journal: Journal, name: str, path: str) -> None:
    for kind, members in (
        ("tool_started", {"tool_id": "t1", "name": "skill_load", "args": {"name": name}, "mode": "auto"}),
        ("permission_decided", {"tool": "skill_load", "name": name, "path": path, "verdict": "allow"}),
        ("skill_invoked", {"name": name, "path": path, "mode": "auto"}),
        ("tool_ended", {"tool_id": "t1", "exit_code": 0}),
    ):
        assert journal.append(kind, members)


def test_two_skills_of_one_name_and_a_renamed_one_are_kept_apart_and_an_edited_one_is_not(tmp_path: Path) -> None:
    path = str(tmp_path / "run.jsonl")
    first, second = Journal(path, session="s1"), Journal(path, session="s2")
    first.append("session_started", {"subject": "ada"})
    first.append(CATALOG, listed("/a", ["deploy", "11"], ["old", "22"], ["edited", "33"]))
    first.append(CATALOG, listed("/b", ["deploy", "99"]))
    use(first, "deploy", "/b/deploy/SKILL.md")
    second.append("session_started", {"client": "probe/2.0"})
    second.append(CATALOG, listed("/a", ["deploy", "11"], ["new", "22", "old/SKILL.md"], ["edited", "44"]))
    use(second, "edited", "/a/edited/SKILL.md")

    usage = count_usage(read(path))

    assert {(row["name"], tuple(row["paths"])): row["uses"] for row in usage.skills} == {
        ("deploy", ("/a/deploy/SKILL.md",)): 0,
        ("deploy", ("/b/deploy/SKILL.md",)): 1,
        ("old", ("/a/old/SKILL.md",)): 0,
        ("new", ("/a/old/SKILL.md",)): 0,
        ("edited", ("/a/edited/SKILL.md",)): 1,
    }
    assert rows(usage.users, "user", "kind") == [("ada", "subject"), ("probe", "client")]
    assert [row["name"] for row in usage.never_used] == ["deploy", "new", "old"]


def test_one_call_is_one_use_and_a_journal_without_lists_says_so(machine: Machine) -> None:
    write_skill(machine.home / ".agents/skills", "deploy")
    path = machine.repo / "run.jsonl"
    with machine.shelf().session(journal=path) as session:
        session.call("skill_read", {"uri": "skill://deploy/SKILL.md"})
        session.load("deploy")
    records = [line.record for line in read(str(path)) if line.record]
    old = Journal(str(machine.repo / "old.jsonl"), session="s")
    for record in records:
        payload = {name: value for name, value in record.items() if name not in ("listed", "listing")}
        for name in ("seq", "session", "ts_ms", "prev", "sum", "type"):
            payload.pop(name)
        old.append(record["type"], payload)

    for file, unlisted, catalog in (("run.jsonl", 0, 1), ("old.jsonl", 1, 0)):
        usage = count_usage(read(str(machine.repo / file)))
        assert rows(usage.skills, "name", "uses", "sessions") == [("deploy", 2, catalog)]
        assert (usage.unlisted, usage.catalog) == (unlisted, catalog)


def test_a_list_is_written_once_into_a_file_by_a_process_and_again_into_a_new_part(machine: Machine) -> None:
    write_skill(machine.home / ".agents/skills", "deploy")
    path = machine.repo / "run.jsonl"
    shelf = machine.shelf()
    for _ in range(3):
        shelf.session(journal=path).close()
    first = [line.record for line in read(str(path)) if line.record and line.record["type"] == CATALOG]
    path.rename(machine.repo / "run.jsonl.part-000001")
    shelf.session(journal=path).close()

    assert [("listed" in record, record["listing"] == first[0]["listing"]) for record in first if record] == [
        (True, True),
        (False, True),
        (False, True),
    ]
    assert sum("listed" in line.record for line in read(str(path)) if line.record) == 2
    assert count_usage(read(str(path))).skills[0]["sessions"] == 4


@pytest.mark.heavy
@pytest.mark.slow
def test_a_long_journal_is_counted_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    program = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (400 << 20,) * 2)\n"
        "from skillshelf.journal.format import Line\n"
        "from skillshelf.journal.usage import UsageCounter\n"
        "counter = UsageCounter()\n"
        "for number in range(200_000):\n"
        "    record = {'session': f's{number // 5}', 'ts_ms': number * 10**7, 'type': 'skill_invoked',"
        " 'name': f'n{number % 50_000}', 'path': f'/{number}', 'mode': 'auto'}\n"
        "    counter.add(Line(number, record, None))\n"
        "usage = counter.usage()\n"
        "print(usage.events, len(usage.skills) <= 10_001, sum(row['uses'] for row in usage.skills))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONPATH": SOURCE}, capture_output=True, text=True, timeout=120
    )

    assert (done.stdout, done.stderr) == ("200000 True 200000\n", "")
    assert not path.exists()


# OpenTelemetry ------------------------------------------------------------------------------------


needs_otlp = needs("opentelemetry.exporter.otlp.proto.http")


def figures(received: Received) -> dict[str, Any]:
    """The figures of `log stats`, from spans."""
    used = received.count("skillshelf.skill.used", "gen_ai.skill.name", "skillshelf.user")
    catalogs = {
        name for span in received.named("skill_catalog") for name in span["attributes"]["skillshelf.catalog.skills"]
    }
    return {
        "sessions": len(received.named("skill_session")),
        "catalog": len(catalogs),
        "never_used": sorted(catalogs - {name for name, _ in used}),
        "uses": used,
        "weeks": weeks_of(received),
        "denied": received.count("skillshelf.denied", "gen_ai.tool.name", "gen_ai.skill.name", "skillshelf.by"),
        "denied_to": received.count("skillshelf.denied", "skillshelf.user"),
        "after_search": received.count("skillshelf.skill.used", "skillshelf.after_search")[(True,)],
        "errors": Counter(
            span["attributes"]["error.type"]
            for span in received.spans
            if span["attributes"].get("error.type", "denied") != "denied"
        ),
    }


def weeks_of(received: Received) -> Counter[str]:
    from skillshelf.journal.usage import week_of

    return Counter(week_of(event["ms"]) for event in received.events("skillshelf.skill.used"))


def figures_of_stats(stats: dict[str, Any]) -> dict[str, Any]:
    return {
        "sessions": stats["sessions"],
        "catalog": stats["catalog"],
        "never_used": [row["name"] for row in stats["never_used"]],
        "uses": Counter(
            {(row["name"], user["user"]): user["uses"] for row in stats["skills"] for user in row["users"]}
        ),
        "weeks": Counter({row["week"]: row["uses"] for row in stats["weeks"]}),
        "denied": Counter({(row["tool"], row["skill"], row["by"]): row["count"] for row in stats["denials"]}),
        "denied_to": Counter({(user["user"],): user["count"] for row in stats["denials"] for user in row["users"]}),
        "after_search": sum(row["loads"] for row in stats["searches"]),
        "errors": Counter({row["code"]: row["count"] for row in stats["errors"]}),
    }


@pytest.mark.slow
@needs_otlp
def test_the_same_figures_arrive_at_a_receiver_without_content(machine: Machine, journals: Path) -> None:
    with receiver() as received:
        done = machine.run_json("log", "export", str(journals), "--otlp", received.url)

    jsonschema.validate(done, SCHEMAS["log-export"])
    assert (done["spans"], done["lost"], done["problem"]) == (len(received.spans), 0, None)
    assert figures(received) == figures_of_stats(machine.run_json("log", "stats", str(journals)))
    text = str(received.spans)
    for secret in ("write release notes", "no-such-skill", "/.agents/skills", str(machine.base), "Does deploy things"):
        assert secret not in text
    # The loads that followed a search are linked to it.
    searches = {span["id"] for span in received.named("execute_tool skill_search")}
    links = [link for span in received.spans for link in span["links"]]
    assert len(links) == 7
    assert set(links) <= searches


@pytest.mark.slow
@needs_otlp
def test_content_is_sent_if_asked_for_and_a_period_counts(machine: Machine, journals: Path) -> None:
    words = ("log", "export", str(journals), "--since", "2026-10-26", "--until", "2026-11-02")
    with receiver() as received:
        machine.run_json(*words, "--otlp", received.url, "--otlp-content")

    assert figures(received) == figures_of_stats(machine.run_json("log", "stats", *words[2:]))
    text = str(received.spans)
    for content in ("write release notes", "no-such-skill", "/.agents/skills/release-notes/SKILL.md"):
        assert content in text


@pytest.mark.slow
@needs_otlp
def test_a_session_sends_its_use_with_the_names_of_the_conventions(machine: Machine) -> None:
    write_skill(machine.home / ".agents/skills", "deploy")
    with receiver() as received:
        with machine.shelf().session(otlp=received.url, subject="ada") as session:
            session.call("skill_load", {"name": "deploy"})
        shown = machine.run("show", "deploy", "--otlp", received.url)

    assert (shown.returncode, shown.stderr) == (0, "")
    loads = received.named("execute_tool skill_load")
    assert [span["attributes"]["gen_ai.skill.name"] for span in loads] == ["deploy", "deploy"]
    first = loads[0]["attributes"]
    assert (first["gen_ai.operation.name"], first["gen_ai.tool.name"]) == ("execute_tool", "skill_load")
    assert (first["skillshelf.user"], first["skillshelf.mode"]) == ("ada", "auto")
    assert first["skillshelf.skill.digest"].startswith("sha256:")
    assert first["gen_ai.conversation.id"] == received.named("skill_session")[0]["attributes"]["gen_ai.conversation.id"]
    assert loads[0]["resource"]["service.name"] == "skillshelf"


@pytest.mark.slow
@needs_otlp
def test_a_receiver_that_is_away_costs_one_line_and_no_session(machine: Machine) -> None:
    write_skill(machine.home / ".agents/skills", "deploy")
    # Port 9 of the loopback interface: nothing listens there.
    shown = machine.run("show", "deploy", "--otlp", "http://ada:secret@127.0.0.1:9", "--journal", "run.jsonl")

    assert shown.returncode == 0
    assert "# deploy" in shown.stdout
    assert shown.stderr.splitlines() == [
        "skillshelf: events were not sent to http://127.0.0.1:9/v1/traces: the receiver is away or refuses them"
    ]
    assert verify(str(machine.repo / "run.jsonl")).ok
    done = machine.run("log", "export", "run.jsonl", "--otlp", "http://127.0.0.1:9")
    assert (done.returncode, len(done.stderr.splitlines())) == (5, 1)


@pytest.mark.parametrize("address", ["127.0.0.1:4318", "ftp://x", "http://", "http://[", "file:///etc/passwd", ""])
def test_an_address_that_is_none_is_said_before_anything_is_done(machine: Machine, address: str) -> None:
    write_skill(machine.home / ".agents/skills", "deploy")
    with pytest.raises(ConfigurationError, match="address"):
        machine.shelf().session(otlp=address)


def test_a_project_cannot_name_a_receiver(machine: Machine) -> None:
    (machine.repo / "skillshelf.toml").write_text('[journal]\notlp = "http://127.0.0.1:9"\n')

    warnings = machine.shelf(trust="all").settings.warnings
    assert [warning.message for warning in warnings] == ["`journal.otlp` counts in the user's own file only"]
