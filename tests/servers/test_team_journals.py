"""The journals of many machines in the database of a team, with SQLite and with PostgreSQL."""

from __future__ import annotations

import gzip
import itertools
import json
import threading
import tracemalloc
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.journal_streams import ADA, BEN, NOW, chain, database_on, events
from support.postgres import PASSWORD, PostgresCluster
from support.waiting import wait_for

from skillshelf.core.limits import JOURNAL_ALARMS, JOURNAL_BATCH_BYTES, JOURNAL_BATCH_LINES, JOURNAL_LINE_BYTES
from skillshelf.errors import ConfigurationError, LimitExceeded
from skillshelf.journal.events import MEMBERS
from skillshelf.journal.format import canonical, digest_of, seal
from skillshelf.journal.sent_lines import SentLine, is_reduced, parse_sent, reduced_line
from skillshelf.servers.team.database import Database, SqliteDatabase, Transaction, migrate_postgres
from skillshelf.servers.team.journal_intake import SERVER, head_of, lines_in, set_content, take
from skillshelf.servers.team.journal_records import (
    alarms,
    journal_lines,
    journal_sessions,
    sessions_by_person,
    streams,
    usage,
)
from skillshelf.servers.team.journal_removal import apply_retention, forget, kept_days, remove_days
from skillshelf.servers.team.journal_rows import StoredBatch, day_of
from skillshelf.servers.team.values import Caller, TeamError

ID = "ab" * 16
DAY_MS = 24 * 60 * 60 * 1000
Place = tuple[Database, Caller]


@pytest.fixture(scope="module")
def address(cluster: PostgresCluster) -> str:
    """A database of PostgreSQL for the tests of this module, each of which has a tenant of its own."""
    return migrate_postgres(cluster.new_database(), PASSWORD).address


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """A database with a new tenant, and a caller of that tenant."""
    place = request.getfixturevalue("address") if request.param == "postgresql" else ""
    with database_on(place, tmp_path) as found:
        yield found


def stored(place: Place, stream: str = ID) -> list[Any]:
    """The stored lines of a stream, in their order; None for one that was removed with a person."""
    database, caller = place
    found: list[Any] = []
    with database.transaction(caller.tenant, readonly=True) as transaction:
        after: int | None = -1
        while after is not None:
            lines, after = journal_lines(transaction, stream, after=after)
            found += lines
    return [line["line"].encode() if line["line"] is not None else None for line in found]


def push(place: Place, lines: list[bytes], **options: Any) -> Any:
    database, caller = place
    return take(database, caller, options.pop("stream", ID), lines, now=options.pop("now", NOW), **options)


def alarms_of(place: Place) -> list[str]:
    database, caller = place
    with database.transaction(caller.tenant, readonly=True) as transaction:
        return [alarm["kind"] for alarm in alarms(transaction)]


def used(place: Place, **options: Any) -> list[dict[str, Any]]:
    database, caller = place
    with database.transaction(caller.tenant, readonly=True) as transaction:
        return usage(transaction, **options)


# Chains -------------------------------------------------------------------------------------------


def test_lines_are_stored_as_they_were_sent_and_the_last_is_acknowledged(place: Place) -> None:
    lines = chain(events(7))

    first, second = push(place, lines[:4]), push(place, lines[4:])

    assert (first.acknowledged, first.stored, first.status) == (3, 4, 200)
    assert (second.acknowledged, second.stored, second.head) == (6, 3, json.loads(lines[-1])["sum"])
    assert stored(place) == lines


def test_a_page_of_lines_ends_at_its_size_with_one_line_at_least(place: Place) -> None:
    database, caller = place
    lines = chain([*events(4, session="z", subject="zoe"), *events(8, session="b", subject="ben")])
    push(place, lines, origin=SERVER)
    forget(database, caller.tenant, "zoe")
    size = len(lines[4]) + len(lines[5])

    def pages(**options: Any) -> list[list[int]]:
        found: list[list[int]] = []
        after: int | None = -1
        with database.transaction(caller.tenant, readonly=True) as transaction:
            while after is not None:
                rows, after = journal_lines(transaction, ID, after=after, **options)
                found.append([row["seq"] for row in rows])
        return found

    assert pages(size=size)[0] == [0, 1, 2, 3, 4, 5]
    assert list(itertools.chain(*pages(size=size))) == list(range(12))
    assert pages(size=1) == [[0, 1, 2, 3, 4], *([seq] for seq in range(5, 12))]
    assert pages(session="b", size=1, limit=3) == [[seq] for seq in range(4, 12)]
    assert pages(limit=5) == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9], [10, 11]]


def test_a_batch_that_is_sent_again_changes_nothing(place: Place) -> None:
    lines = chain(events(6))
    push(place, lines)
    before = used(place)

    again = push(place, lines)

    assert (again.acknowledged, again.stored, again.status) == (5, 0, 200)
    assert stored(place) == lines
    assert used(place) == before
    assert alarms_of(place) == []


def test_a_batch_that_overlaps_is_stored_from_its_first_new_line(place: Place) -> None:
    lines = chain(events(6))
    push(place, lines[:4])

    assert push(place, lines[2:]).stored == 2
    assert stored(place) == lines


def test_a_gap_is_refused_with_the_line_that_is_wanted(place: Place) -> None:
    lines = chain(events(6))
    push(place, lines[:2])

    answer = push(place, lines[3:])

    assert (answer.status, answer.problem, answer.acknowledged, answer.wanted) == (409, "gap", 1, 2)
    assert stored(place) == lines[:2]
    assert alarms_of(place) == ["gap"]


def test_another_text_for_a_stored_line_is_a_fork_that_overwrites_nothing(place: Place) -> None:
    lines = chain(events(4))
    push(place, lines)
    other = chain([*events(2), {"session": "s1", "type": "skill_warning"}])

    answer = push(place, [*other, *chain(events(1), seq=3, prev=digest_of(other[-1]))])

    assert (answer.status, answer.problem, answer.seq, answer.acknowledged) == (409, "fork", 2, 3)
    assert stored(place) == lines
    # A machine that tries again later is the same alarm.
    push(place, other, now=NOW + DAY_MS)
    assert alarms_of(place) == ["fork"]


def test_a_place_that_comes_twice_is_a_fork_also_where_its_line_continues_the_one_before(place: Place) -> None:
    lines = chain(events(3))
    twice = chain(events(1), seq=2, prev=digest_of(lines[-1]))

    answer = push(place, [*lines, *twice])

    assert (answer.status, answer.problem, answer.seq, answer.acknowledged) == (409, "fork", 2, 2)
    assert stored(place) == lines


def test_a_line_that_continues_another_end_is_a_fork(place: Place) -> None:
    lines = chain(events(4))
    push(place, lines)

    answer = push(place, chain(events(1), seq=4, prev=digest_of(b"another end")))

    assert (answer.problem, answer.seq, answer.acknowledged) == ("fork", 4, 3)
    assert alarms_of(place) == ["fork"]


@pytest.mark.parametrize(
    ("spoil", "kind", "kept"),
    [
        (lambda lines: [*lines[:2], lines[2].replace(b"skill_read", b"skill_seen"), *lines[3:]], "edited", 2),
        (lambda lines: [*lines[:2], lines[2].replace(b":", b": ", 1), *lines[3:]], "edited", 2),
        (lambda lines: [lines[0], lines[2], lines[1]], "gap", 1),
        (lambda lines: [lines[0], lines[1], lines[1]], "fork", 2),
        (lambda lines: [lines[0], b"", *lines[1:]], "edited", 1),
        (lambda lines: [lines[0], b"\xff\xfe"], "edited", 1),
        (lambda lines: [lines[0], b'{"seq":1,"text":"\\ud800"}'], "edited", 1),
        (lambda lines: [lines[0], b"[" * 100_000], "edited", 1),
        (lambda lines: [lines[0], b'{"seq":' + b"9" * 5000 + b"}"], "edited", 1),
        (lambda lines: [lines[0], b"x" * (JOURNAL_LINE_BYTES + 1)], "edited", 1),
        (lambda lines: [lines[0], b"null"], "edited", 1),
    ],
    ids=["edited", "blanks", "reordered", "twice", "empty", "utf8", "surrogate", "deep", "digits", "huge", "null"],
)
def test_lines_before_the_first_bad_one_are_kept_and_nothing_after_it(
    place: Place, spoil: Any, kind: str, kept: int
) -> None:
    lines = chain(events(5))

    answer = push(place, spoil(lines))

    assert (answer.problem, answer.stored, answer.acknowledged) == (kind, kept, kept - 1)
    assert stored(place) == lines[:kept]


@pytest.mark.parametrize("seq", [2**63 - 1, 2**63, 2**64 - 1, -1])
def test_a_place_that_no_database_can_count_is_refused(place: Place, seq: int) -> None:
    line, _ = seal({"session": "s", "type": "t", "ts_ms": 1, "prev": "0" * 64, "seq": seq})

    assert push(place, [line]).problem == "edited"
    assert stored(place) == []


def test_strange_times_and_names_are_stored_exactly_and_cost_no_partition(place: Place) -> None:
    records = [
        {"session": "s\0\u202e" + "x" * 5000, "type": "skill_loaded", "name": "a\0b" * 500, "ts_ms": at}
        for at in (-(2**63), 2**64 - 1, 0, NOW + 400 * DAY_MS)
    ]
    lines = chain(records)

    assert push(place, lines).stored == 4
    assert stored(place) == lines
    assert {row["day"] for row in used(place, by="day")} == {19700101, day_of(NOW)}
    longer = [{"session": "s", "type": "skill_loaded", "name": "n" * 5000 + end} for end in "12"]
    push(place, chain(longer), stream="cd" * 16)
    names = {row["skill"] for row in used(place)}
    assert len(names) == 3
    assert max(map(len, names)) <= 256


def test_a_journal_may_begin_where_rotation_left_it(place: Place) -> None:
    lines = chain(events(5))

    assert push(place, lines[2:]).acknowledged == 4
    assert stored(place) == lines[2:]
    database, caller = place
    with database.transaction(caller.tenant) as transaction:
        assert [row["first_seq"] for row in streams(transaction)] == [2]


def test_a_first_line_that_names_one_before_it_is_refused(place: Place) -> None:
    answer = push(place, chain(events(2), prev="1" * 64))

    assert (answer.problem, answer.acknowledged) == ("edited", None)
    assert push(place, []).acknowledged is None


def test_pushes_of_prefixes_in_any_order_end_in_exactly_the_lines(tmp_path: Path) -> None:
    lines, numbers = chain(events(12)), itertools.count()

    def loads(place: Place) -> int:
        return sum(row["loads"] for row in used(place))

    with database_on("", tmp_path) as place:

        @settings(max_examples=60)
        @given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)).map(sorted), min_size=1, max_size=8))
        def check(parts: list[list[int]]) -> None:
            stream, before = f"{next(numbers):032x}", loads(place)
            for begin, end in parts:
                push(place, lines[begin:end] if stored(place, stream) else lines[:end], stream=stream)
                assert stored(place, stream) == lines[: len(stored(place, stream))]
            assert push(place, lines, stream=stream).acknowledged == 11
            assert stored(place, stream) == lines
            assert loads(place) - before == sum(b'"skill_loaded"' in line for line in lines)

        check()


def test_two_programs_that_push_one_journal_at_once_store_each_line_once(place: Place) -> None:
    lines = chain(events(400))
    problems = []

    def send() -> None:
        for end in range(20, 401, 20):
            answer = push(place, lines[max(0, end - 60) : end] if end > 60 else lines[:end])
            if answer.problem:
                problems.append(answer)

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert problems == []
    assert stored(place) == lines
    assert sum(row["loads"] for row in used(place)) == sum(b'"skill_loaded"' in line for line in lines)


# People -------------------------------------------------------------------------------------------


def test_the_subject_of_record_is_that_of_the_token_and_another_in_a_line_is_an_alarm(place: Place) -> None:
    database, caller = place

    push(place, chain([*events(2, session="own", subject="ada"), *events(2, session="odd", subject="ben")]))

    with database.transaction(caller.tenant) as transaction:
        found = {row["session"]: row["subject"] for row in journal_sessions(transaction)}
    assert found == {"own": "ada", "odd": "ada"}
    assert alarms_of(place) == ["subject"]


@pytest.mark.parametrize(
    "odd",
    [
        [{"type": "session_started", "subject": "eve"}, {"type": "session_started", "subject": "ada"}],
        [{"type": "session_started", "subject": "ada"}, {"type": "skill_loaded", "name": "x", "subject": "eve"}],
        [{"type": "session_started", "subject": {"name": "ada"}}],
        [{"type": "journal_continued", "subject": "eve"}],
    ],
    ids=["first of two starts", "another type", "no text", "no session"],
)
@pytest.mark.parametrize("batch", [1, 10])
def test_any_line_that_names_another_subject_is_one_alarm_of_its_session(
    place: Place, odd: list[dict[str, Any]], batch: int
) -> None:
    lines = chain([*({"session": "odd", **one} for one in [*odd, *odd]), *events(2, session="own", subject="ada")])

    for begin in range(0, len(lines), batch):
        push(place, lines[begin : begin + batch])

    assert stored(place) == lines
    assert alarms_of(place) == ["subject"]


def test_the_stream_of_another_person_is_refused_without_a_word_about_it(place: Place) -> None:
    database, caller = place
    lines = chain(events(3))
    push(place, lines)

    answer = take(database, BEN._replace(tenant=caller.tenant), ID, chain(events(1), seq=3, prev=digest_of(lines[-1])))

    assert (answer.status, answer.problem, answer.acknowledged, answer.head) == (409, "owner", None, None)
    assert stored(place) == lines
    assert alarms_of(place) == ["owner"]


def test_a_server_continues_no_journal_of_a_machine_and_a_machine_none_of_a_server(place: Place) -> None:
    lines = chain([*events(2, session="own", subject="ada"), *events(2, session="more", subject="ben")])

    for stream, first, second in (("ab" * 16, "machine", "server"), ("cd" * 16, "server", "machine")):
        push(place, lines[:3], stream=stream, origin=first)
        answer = push(place, lines, stream=stream, origin=second)
        assert (answer.problem, answer.acknowledged, answer.stored) == ("owner", None, 0)
        assert stored(place, stream) == lines[:3]
    assert alarms_of(place).count("owner") == 2


def test_whole_lines_for_the_stream_of_another_tell_nothing_where_digests_are_demanded(place: Place) -> None:
    database, caller = place
    push(place, chain(events(3)))
    set_content(database, caller.tenant, "digest")

    answer = take(database, BEN._replace(tenant=caller.tenant), ID, chain(events(1)))

    assert (answer.problem, answer.acknowledged, answer.head, answer.wanted) == ("owner", None, None, None)
    assert alarms_of(place) == ["owner"]
    assert push(place, chain(events(4))).problem == "content"


def test_the_same_id_in_another_tenant_is_another_stream(place: Place) -> None:
    database, caller = place
    other = caller._replace(tenant=f"{caller.tenant}-other")
    database.add_tenant(other.tenant)
    lines = chain(events(3))
    push(place, lines)

    assert push((database, other), chain(events(5))).acknowledged == 4
    assert stored(place) == lines
    assert used((database, other), by="person")[0]["subject"] == "ada"


def test_alarms_of_one_stream_are_bounded(place: Place) -> None:
    number = JOURNAL_ALARMS + 5
    push(place, chain(events(number)))

    raise_forks(place, number)

    assert alarms_of(place) == ["fork"] * JOURNAL_ALARMS
    with place[0].transaction(place[1].tenant, readonly=True) as transaction:
        details = [alarm["detail"] for alarm in alarms(transaction)]
    assert sum("later ones of this kind are not recorded" in detail for detail in details) == 1


def test_alarms_of_a_batch_are_counted_once_however_many_sessions_it_has(place: Place) -> None:
    counted: list[str] = []

    class Counting:
        """A transaction that keeps the statements which count alarms."""

        def __init__(self, transaction: Transaction) -> None:
            self._transaction = transaction

        def __getattr__(self, name: str) -> Any:
            return getattr(self._transaction, name)

        def row(self, sql: str, parameters: Sequence[Any] = ()) -> Any:
            counted.extend([sql] if "count(*) from alarm" in sql else [])
            return self._transaction.row(sql, parameters)

    records = [{"session": f"s{number}", "type": "session_started", "subject": "zoe"} for number in range(50)]
    sent = [line for line in parse_sent(chain(records)) if isinstance(line, SentLine)]
    with place[0].transaction(place[1].tenant) as transaction:
        StoredBatch(cast(Transaction, Counting(transaction)), ID, sent, "ada", "m1", NOW).store()

    assert alarms_of(place) == ["subject"] * 50
    assert len(counted) == 1


def raise_forks(place: Place, number: int) -> None:
    """Send another text for each of the first lines of a stream."""
    for seq in range(1, number):
        push(place, chain([{"session": "s1", "type": "skill_warning"}], seq=seq))


def test_alarms_of_one_kind_do_not_hide_those_of_another(place: Place) -> None:
    number = JOURNAL_ALARMS + 5
    lines = chain([*events(number), *events(2, session="odd", subject="ben")])
    push(place, lines[:number])
    raise_forks(place, number)

    push(place, lines[number:])

    assert sorted(alarms_of(place)) == [*["fork"] * JOURNAL_ALARMS, "subject"]


def test_sessions_are_found_by_subject_client_and_time(place: Place) -> None:
    database, caller = place
    lines = chain(
        [
            *(*events(3), {"session": "s1", "type": "session_ended", "events": 4}),
            *(*events(2, session="s2"), {"session": "", "type": "journal_continued"}),
        ]
    )
    for begin in range(0, len(lines), 2):
        push(place, lines[begin : begin + 2])

    with database.transaction(caller.tenant) as transaction:
        found = journal_sessions(transaction, subject="ada", client="probe/1.0", since=NOW - DAY_MS)
        assert journal_sessions(transaction, subject="ben") == []
        assert journal_sessions(transaction, until=NOW - DAY_MS) == []
        assert {row["session"] for row in journal_sessions(transaction)} == {"s1", "s2"}
    assert [(row["session"], row["events"], row["ended_ms"] is not None) for row in found] == [
        ("s2", 2, False),
        ("s1", 4, True),
    ]


def test_a_clock_that_goes_ahead_keeps_no_session_above_those_that_come_later(place: Place) -> None:
    database, caller = place
    ahead = [{**event, "ts_ms": at} for event in events(1, session="ahead") for at in (2**62, NOW + 400 * DAY_MS)]
    push(place, chain(ahead))
    push(place, chain([{**events(1, session="later")[0], "ts_ms": NOW + 1}]), stream="cd" * 16, now=NOW + 2)

    with database.transaction(caller.tenant, readonly=True) as transaction:
        found = journal_sessions(transaction)

    times = {one["session"]: (one["started_ms"], one["latest_ms"]) for one in found}
    assert list(times.items()) == [("later", (NOW + 1, NOW + 1)), ("ahead", (NOW, NOW))]


def test_a_stream_of_a_server_has_the_subjects_of_its_lines(place: Place) -> None:
    database, caller = place
    lines = chain([*events(2, session="a", subject="ada"), *events(2, session="b", subject="ben")])

    for line in lines:
        push(place, [line], origin=SERVER)

    with database.transaction(caller.tenant) as transaction:
        assert {row["session"]: row["subject"] for row in journal_sessions(transaction)} == {"a": "ada", "b": "ben"}
    assert {row["subject"] for row in used(place, by="person")} == {"ada", "ben"}
    assert alarms_of(place) == []


# Use ----------------------------------------------------------------------------------------------


def test_use_is_counted_by_day_skill_tree_person_and_machine(place: Place) -> None:
    lines = chain(events(6))
    push(place, lines, machine="m1")
    push(place, chain(events(6)), stream="cd" * 16, machine="m2")
    push(place, chain(events(6)), stream="ef" * 16, machine="m2")

    found = {(row["skill"], row["tree"]): row for row in used(place)}

    assert {key: row["machines"] for key, row in found.items()} == {
        ("release-notes", "t1"): 2,
        ("release-notes", ""): 2,
        ("deploy", "t2"): 2,
        ("deploy", ""): 2,
    }
    assert found["release-notes", "t1"]["loads"] == found["release-notes", ""]["reads"] == 3
    assert found["deploy", "t2"]["runs"] == found["deploy", ""]["denials"] == 3
    assert used(place, by="person", skill="deploy") == [
        {
            "subject": "ada",
            "skill": "deploy",
            "loads": 0,
            "reads": 0,
            "runs": 3,
            "denials": 3,
            "first_day": day_of(NOW - 1000),
            "last_day": day_of(NOW - 1000),
        }
    ]


def test_a_use_that_several_lines_tell_of_is_counted_once(place: Place) -> None:
    loaded: list[dict[str, Any]] = [
        {"type": "permission_decided", "tool": "skill_load", "name": "deploy", "verdict": "allow"},
        {"type": "skill_loaded", "name": "deploy", "tree": "t1"},
        {"type": "skill_invoked", "name": "deploy", "mode": "auto", "tree": "t1"},
    ]
    again = [loaded[0], {**loaded[2], "repeat": True}]
    ran = [{"type": "permission_decided", "tool": "skill_run", "name": "deploy", "verdict": "allow", "tree": "t1"}]

    push(place, chain([{"session": "s1", **one} for one in [*loaded, *again, *ran]]))

    (row,) = used(place)
    assert [row[name] for name in ("skill", "tree", "loads", "reads", "runs", "denials")] == [
        "deploy",
        "t1",
        2,
        0,
        1,
        0,
    ]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 11])
@pytest.mark.parametrize("content", ["full", "digest"])
def test_a_skill_file_that_is_read_as_a_file_is_one_use_wherever_a_batch_ends(
    place: Place, size: int, content: str
) -> None:
    instructions, other = (f"sha256:{digit * 64}" for digit in "ab")
    acts: list[dict[str, Any]] = [
        {"type": "skill_loaded", "digest": instructions},
        {"type": "override_proposed", "kind": "model"},
        {"session": "s2", "type": "skill_loaded", "digest": other},
        {"type": "skill_read", "digest": instructions},
        {"session": "s2", "type": "skill_invoked"},
        {"type": "skill_invoked"},
        {"session": "s2", "type": "skill_read", "digest": other},
        {"type": "skill_read", "digest": other},
        {"type": "skill_loaded", "digest": instructions},
        {"type": "skill_read", "digest": other},
        {"type": "skill_read", "digest": instructions},
    ]
    lines = chain([{"session": "s1", "name": "deploy", **act} for act in acts])
    sent = reduced(lines) if content == "digest" else lines

    for at in range(0, len(sent), size):
        push(place, sent[at : at + size])

    (found,) = used(place)
    assert (found["loads"], found["reads"]) == (3, 4)


# Reduced lines ------------------------------------------------------------------------------------


def reduced(lines: list[bytes]) -> list[bytes]:
    return [reduced_line(line, json.loads(line)) for line in lines]


def test_reduced_lines_have_no_content_and_are_still_one_chain(place: Place) -> None:
    lines = chain(
        [*events(6), {"session": "s1", "type": "tool_started", "name": "skill_load", "args": {"q": "secret"}}]
    )
    sent = reduced(lines)

    answer = push(place, sent)

    assert (answer.acknowledged, answer.head) == (6, json.loads(lines[-1])["sum"])
    assert b"secret" not in b"".join(sent)
    assert stored(place) == sent
    assert {row["skill"] for row in used(place)} == {"release-notes", "deploy"}
    # The machine may go on with whole lines: both say the same about the chain.
    assert push(place, [*lines[-1:], *chain(events(1), seq=7, prev=digest_of(lines[-1]))]).stored == 1
    database, caller = place
    with database.transaction(caller.tenant) as transaction:
        assert [row["content"] for row in streams(transaction)] == ["mixed"]


def test_of_every_member_of_an_event_only_names_and_fixed_words_stay_as_text_in_a_reduced_line() -> None:
    said = dict.fromkeys({*MEMBERS, "subject", "output", "stdout", "message"}, "a secret")
    line, _ = seal({**said, "session": "s", "type": "t", "ts_ms": 1, "seq": 0, "prev": "0" * 64})

    left = json.loads(reduced_line(line, json.loads(line)))

    kept = {name for name, value in left.items() if isinstance(value, str) and name in said}
    assert kept == {
        *("by", "client", "code", "kind", "memory", "mode", "name", "profile", "subject", "tool", "tool_id", "trust"),
        *("verdict", "version"),
    }
    assert all(left[name].keys() == {"bytes", "digest"} for name in said.keys() - kept)


def test_reduced_lines_that_are_moved_or_replaced_are_found(place: Place) -> None:
    sent = reduced(chain(events(4)))
    push(place, sent[:2])

    assert push(place, [sent[3]]).problem == "gap"
    assert push(place, reduced(chain(events(1), seq=2, prev="1" * 64))).problem == "fork"
    assert push(place, reduced(chain([{"session": "x", "type": "y"}]))).problem == "fork"
    assert push(place, [sent[2].replace(b'"digest":"', b'"digest":"zz', 1)]).problem == "edited"


def test_a_tenant_may_demand_reduced_lines(place: Place) -> None:
    database, caller = place
    set_content(database, caller.tenant, "digest")
    lines = chain(events(3))

    refused = push(place, lines)

    assert (refused.status, refused.problem, refused.stored) == (422, "content", 0)
    assert push(place, reduced(lines)).acknowledged == 2


def with_member(line: bytes, **members: Any) -> bytes:
    return canonical({**json.loads(line), **members})


_SIZE = {"bytes": 9, "digest": "sha256:" + "0" * 64}


@pytest.mark.parametrize(
    "members",
    [
        {"args": {"q": "PASSWORD"}},
        {"args": {**_SIZE, "text": "PASSWORD"}},
        {"args": {**_SIZE, "bytes": -5}},
        {"args": {**_SIZE, "bytes": True}},
        {"args": {**_SIZE, "bytes": 1.5}},
        {"args": {**_SIZE, "digest": "PASSWORD"}},
        {"args": [_SIZE, "PASSWORD"]},
        {"!line": {"bytes": -5, "digest": "0" * 64}},
        {"!line": {"bytes": True, "digest": "0" * 64}},
        {"!line": {"bytes": 5, "digest": "0" * 64, "text": "PASSWORD"}},
        {"the PASSWORD": _SIZE},
        {"name": "PASSWORD" * 100},
        {"name": "PASS\nWORD"},
        {"name": ["PASSWORD"]},
        {"digest": "PASSWORD"},
        {"count": "PASSWORD"},
        {"count": 10**20},
        {"output_bytes": [1] * 1000},
        {"session": "PASSWORD" * 100},
        {"type": "PASSWORD" * 100},
        {f"member{number}": _SIZE for number in range(100)},
    ],
    ids=lambda members: canonical(members)[:40].decode(),
)
@pytest.mark.parametrize("content", ["full", "digest"])
def test_a_line_that_only_claims_to_be_reduced_is_refused(place: Place, members: dict[str, Any], content: str) -> None:
    database, caller = place
    set_content(database, caller.tenant, content)
    honest = reduced(chain([{"session": "s", "type": "tool_started", "name": "skill_load", "args": {"q": "x"}}]))[0]

    answer = push(place, [with_member(honest, **members)])

    assert (answer.status, answer.problem, answer.stored) == (422, "edited", 0)
    assert "PASSWORD" not in answer.detail
    assert push(place, [honest]).stored == 1


def test_a_reduced_line_in_other_bytes_than_a_machine_writes_is_refused(place: Place) -> None:
    """A member that is there twice, or a long blank, could hold what the last one of that name does not say."""
    honest = reduced(chain([{"session": "s", "type": "tool_started", "name": "skill_load", "args": {"q": "x"}}]))[0]

    for odd in (
        honest.replace(b'"args":', b'"args":"PASSWORD","args":', 1),
        honest.replace(b'"!line":{', b'"!line":{"digest":"PASSWORD",', 1),
        honest.replace(b'"name":"skill_load"', b'"name":"skill\\u005fload"', 1),
        honest[:-1] + b" \t \t}",
    ):
        assert odd != honest
        answer = push(place, [odd])
        assert (answer.status, answer.problem, answer.stored) == (422, "edited", 0)
        assert "PASSWORD" not in answer.detail
    assert push(place, [honest]).stored == 1


def test_every_line_that_a_machine_reduces_is_taken(place: Place) -> None:
    odd = [
        {
            "session": "s" * 5000,
            "type": "tool_started",
            "the name is content": 1,
            "name": "n" * 300,
            "count": 2**64 - 1,
        },
        {"session": "s\0", "type": "t" * 300, "output_bytes": [1, 2], "digest": "short", "ts_ms": 2**64 - 1},
        {"session": "s", "type": "tool_ended", "exit_code": -9, "truncated": True, "tree": None, "rule": 1.5},
        {"session": "s", "type": "skill_read", "digest": "sha256:" + "a" * 64, "size": 12, "uri": "skill://x/y"},
    ]

    assert push(place, reduced(chain(odd))).acknowledged == 3
    assert json.loads(stored(place)[3])["size"] == 12
    assert b"content" not in stored(place)[0]


def test_a_line_that_was_stored_before_it_was_checked_still_stands_for_the_whole_one(place: Place) -> None:
    database, caller = place
    lines = chain(events(3))
    sent = reduced(lines)
    push(place, sent[:2])
    with database.transaction(caller.tenant) as transaction:
        transaction.execute(
            "update event set line = ? where tenant = ? and seq = 1",
            (with_member(sent[1], args={"q": "x"}), caller.tenant),
        )

    assert push(place, sent).acknowledged == 2
    assert forget(database, caller.tenant, "ada").lines == 3
    with database.transaction(caller.tenant) as transaction:
        assert [row["digest"] for row in journal_lines(transaction, ID).lines] == [digest_of(line) for line in lines]


@pytest.mark.parametrize("prev", ["zz\0", "", "A" * 64, "1" * 63])
def test_a_first_line_whose_prev_is_no_digest_is_refused_by_both_databases(place: Place, prev: str) -> None:
    answer = push(place, chain(events(1), seq=5, prev=prev))

    assert (answer.status, answer.problem) == (422, "edited")
    assert stored(place) == []


# Bodies -------------------------------------------------------------------------------------------


def test_a_body_is_whole_lines_plain_or_compressed() -> None:
    lines = chain(events(3))
    body = b"".join(line + b"\n" for line in lines)

    assert lines_in(body) == lines_in(gzip.compress(body), "gzip") == lines
    assert lines_in(b"") == []


@pytest.mark.parametrize(
    ("body", "encoding", "error"),
    [
        (b"no end", "", TeamError),
        (b"not gzip", "gzip", TeamError),
        (gzip.compress(b"a\n" * 1000)[:-9], "gzip", TeamError),
        (gzip.compress(b"a\n") + b"more", "gzip", TeamError),
        (gzip.compress(b"a\n") * 2, "gzip", TeamError),
        (zlib.compress(b"a\n"), "gzip", TeamError),
        (gzip.compress(b"\n" * (JOURNAL_BATCH_LINES + 1)), "gzip", LimitExceeded),
        (b"\n" * 1_000_000, "", LimitExceeded),
        (b"x" * JOURNAL_BATCH_BYTES + b"\n", "", LimitExceeded),
    ],
    ids=["no-newline", "no-gzip", "cut", "trailing", "two", "zlib", "many-gzip", "many", "large"],
)
def test_a_body_of_another_form_or_size_is_refused(body: bytes, encoding: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        lines_in(body, encoding)


def test_a_body_that_unpacks_to_more_than_a_batch_is_not_unpacked_whole() -> None:
    body = gzip.compress(b"\0" * (16 * JOURNAL_BATCH_BYTES), 1)
    tracemalloc.start()
    try:
        with pytest.raises(LimitExceeded, match="JOURNAL_BATCH_BYTES"):
            lines_in(body, "gzip")
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 4 * JOURNAL_BATCH_BYTES


@pytest.mark.parametrize("name", ["", "x" * 32, "AB" * 16, "../../etc/passwd/", "a" * 65, "ab"])
def test_a_stream_is_named_by_hex_digits(tmp_path: Path, name: str) -> None:
    with pytest.raises(TeamError):
        take(SqliteDatabase(str(tmp_path / "team.db")), ADA, name, [])


# Removal ------------------------------------------------------------------------------------------


def test_days_that_are_not_kept_go_and_the_stream_goes_on(place: Place) -> None:
    database, caller = place
    lines = chain(events(9))
    for day, begin in enumerate((0, 3, 6)):
        push(place, lines[begin : begin + 3], now=NOW + day * DAY_MS)

    removed = apply_retention(database, 1, now=NOW + 2 * DAY_MS)

    assert removed.days >= 1 if database.engine == "postgresql" else removed.lines == 3

    assert stored(place) == lines[3:]
    assert [found.seq for found in parse_sent(stored(place)) if not isinstance(found, str)] == list(range(3, 9))
    assert push(place, lines, now=NOW + 2 * DAY_MS).acknowledged == 8
    more = chain(events(1), seq=9, prev=digest_of(lines[-1]))
    assert push(place, more, now=NOW + 2 * DAY_MS).acknowledged == 9
    with database.transaction(caller.tenant) as transaction:
        assert [(row["first_seq"], row["kept_seq"]) for row in streams(transaction)] == [(0, 3)]
    assert sum(row["loads"] for row in used(place)) > 0


def test_retention_leaves_no_hole_where_the_clocks_of_two_servers_differ(place: Place) -> None:
    database, caller = place
    lines = chain(events(9))
    midnight = NOW + 10 * DAY_MS
    for first, now in ((0, midnight + 5), (3, midnight - 5), (6, midnight + 10)):
        push(place, lines[first : first + 3], now=now)

    remove_days(database, caller.tenant, 5, now=midnight + 5 * DAY_MS)
    assert stored(place) == lines

    remove_days(database, caller.tenant, 5, now=midnight + 6 * DAY_MS)
    assert stored(place) == []


def test_a_clock_that_was_far_ahead_once_keeps_no_later_line_for_long(place: Place) -> None:
    database, caller = place
    lines = chain(events(4))
    push(place, lines[:2], now=NOW + 400 * DAY_MS)
    push(place, lines[2:], now=NOW)

    assert remove_days(database, caller.tenant, 5, now=NOW + 6 * DAY_MS) == 2


@pytest.mark.parametrize("clock", [1000, NOW + 900 * DAY_MS], ids=["behind", "ahead"])
def test_a_session_is_kept_as_long_as_its_lines_whatever_the_clock_of_its_machine(place: Place, clock: int) -> None:
    database, caller = place

    def kept() -> list[str]:
        with database.transaction(caller.tenant) as transaction:
            return sorted(row["session"] for row in journal_sessions(transaction))

    old = chain([{"ts_ms": clock, **one} for one in [*events(2, session="old"), *events(2, session="both")]])
    push(place, old)
    late = [
        {"ts_ms": clock, "session": "both", "type": "session_ended"},
        {"ts_ms": clock, **events(1, session="new")[0]},
    ]
    push(place, chain(late, seq=4, prev=digest_of(old[-1])), now=NOW + 3 * DAY_MS)

    apply_retention(database, 3, tenant=caller.tenant, now=NOW + 3 * DAY_MS)
    assert kept() == ["both", "new", "old"]
    apply_retention(database, 1, tenant=caller.tenant, now=NOW + 3 * DAY_MS)
    assert kept() == ["both", "new"]
    apply_retention(database, 1, now=NOW + 9 * DAY_MS)
    assert kept() == []


def test_forgetting_a_person_leaves_what_the_chain_needs_and_counts_without_the_name(place: Place) -> None:
    database, caller = place
    lines = chain([*events(4, session="a", subject="ada"), *events(3, session="b", subject="ben")])
    push(place, lines, origin=SERVER)
    own = chain(events(5))
    push(place, own, stream="cd" * 16, machine="m1")
    loads = sum(row["loads"] for row in used(place))

    found = forget(database, caller.tenant, "ada")

    assert (found.streams, found.lines) == (1, 9)
    assert stored(place) == [None] * 4 + lines[4:]
    assert stored(place, "cd" * 16) == [None] * 5
    with database.transaction(caller.tenant) as transaction:
        kept = journal_lines(transaction, ID).lines
        assert journal_sessions(transaction, subject="ada") == []
        assert len(journal_sessions(transaction)) == 1
        assert head_of(transaction, ID) is not None
    assert [line["sum"] for line in kept[:4]] == [json.loads(line)["sum"] for line in lines[:4]]
    assert json.loads(lines[4])["prev"] == kept[3]["digest"]
    assert {row["subject"] for row in used(place, by="person")} == {"", "ben"}
    assert sum(row["loads"] for row in used(place)) == loads
    # Their machine still knows the stream, which is no attack.
    assert push(place, own, stream="cd" * 16).problem == "forgotten"
    assert alarms_of(place) == []
    assert forget(database, caller.tenant, "ada") == (0, 0, 0)


def test_the_counts_of_all_who_were_forgotten_are_added(place: Place) -> None:
    database, caller = place
    sent = [*events(5, session="a", subject="ada"), *events(5, session="b", subject="ben")]
    push(place, chain([*sent, *events(5, session="c", subject="cyd")]), origin=SERVER)

    def counts() -> dict[tuple[str, str], list[int]]:
        rows = used(place, by="person")
        names = ("loads", "reads", "runs", "denials")
        return {(row["subject"], row["skill"]): [row[name] for name in names] for row in rows}

    before = counts()
    forget(database, caller.tenant, "ada")
    forget(database, caller.tenant, "ben")

    added = {("", skill): [2 * number for number in row] for (who, skill), row in before.items() if who == "ada"}
    assert counts() == added | {key: row for key, row in before.items() if key[0] == "cyd"}


def test_forgetting_a_person_removes_the_machines_that_nobody_else_uses(place: Place) -> None:
    database, caller = place
    ben = caller._replace(subject="ben")
    for stream, sender, machine in (("a1", caller, "own"), ("a2", caller, ""), ("a3", caller, "shared")):
        take(database, sender, stream * 16, chain(events(5, session=stream)), machine=machine)
    take(database, ben, "b1" * 16, chain(events(5, session="b1")), machine="shared")

    def machines() -> set[str]:
        with database.transaction(caller.tenant, readonly=True) as transaction:
            return {machine for (machine,) in transaction.rows("select machine from usage_machine")}

    before = used(place)
    assert machines() == {"own", "a2" * 16, "shared"}
    forget(database, caller.tenant, "ada")

    assert machines() == {"shared"}
    assert used(place) == before


@pytest.mark.slow
def test_forgetting_a_person_removes_the_machine_of_a_batch_that_is_stored_meanwhile(
    address: str, tmp_path: Path
) -> None:
    with database_on(address, tmp_path) as (database, caller):
        take(database, caller, ID, chain(events(5)), machine="own")
        with ThreadPoolExecutor(1) as threads:
            with database.transaction(caller.tenant) as transaction:
                head_of(transaction, ID, locked=True)
                forgetting = threads.submit(forget, database, caller.tenant, "ada")
                wait_for(lambda: transaction.row("select pid from pg_locks where not granted"))
                transaction.execute(
                    "insert into usage_machine (tenant, day, skill, tree, machine) values (?, ?, ?, ?, ?)",
                    (caller.tenant, 20261118, "deploy", "t3", "own"),
                )
            assert forgetting.result().lines == 5

        with database.transaction(caller.tenant, readonly=True) as transaction:
            assert transaction.rows("select machine from usage_machine") == []


def test_no_file_of_sqlite_has_the_text_of_a_forgotten_person_also_while_a_server_runs(tmp_path: Path) -> None:
    database, served = SqliteDatabase(str(tmp_path / "team.db")), SqliteDatabase(str(tmp_path / "team.db"))
    take(served, ADA, ID, chain(events(300)), now=NOW)

    def texts() -> bytes:
        return b"".join(path.read_bytes() for path in tmp_path.iterdir())

    assert b"the secret is 4711" in texts()
    forget(database, "default", "ada")

    assert b"the secret is 4711" not in texts()
    served.close()
    database.close()


def test_a_session_that_names_a_forgotten_person_in_the_journal_of_another_goes_too(place: Place) -> None:
    database, caller = place
    lines = chain([*events(3, session="a"), *events(4, session="z", subject="zoe"), *events(2, session="b")])
    push(place, lines)

    found = forget(database, caller.tenant, "zoe")

    assert (found.streams, found.lines) == (0, 4)
    assert stored(place) == [*lines[:3], *[None] * 4, *lines[7:]]
    with database.transaction(caller.tenant) as transaction:
        assert sorted(row["session"] for row in journal_sessions(transaction)) == ["a", "b"]
    assert forget(database, caller.tenant, "zoe") == (0, 0, 0)
    assert push(place, lines).acknowledged == 8


def test_what_an_open_session_of_a_forgotten_person_does_later_is_never_stored(place: Place) -> None:
    database, caller = place
    later = [{"session": "z", "type": "skill_loaded", "name": "late"}, {"session": "z", "type": "session_ended"}]
    lines = chain([*events(4, session="z", subject="zoe"), *later, *events(3, session="b", subject="ben"), *later])
    push(place, lines[:4], origin=SERVER)
    forget(database, caller.tenant, "zoe")

    # First with nothing else in the batch, then beside a session of somebody else.
    push(place, lines[4:6], origin=SERVER, now=NOW + 5 * DAY_MS)
    apply_retention(database, 2, tenant=caller.tenant, now=NOW + 5 * DAY_MS)
    receipt = push(place, lines[6:], origin=SERVER, now=NOW + 5 * DAY_MS)

    assert (receipt.acknowledged, receipt.stored, receipt.problem) == (10, 5, None)
    assert stored(place) == [*[None] * 2, *lines[6:9], *[None] * 2]
    with database.transaction(caller.tenant) as transaction:
        assert [(row["session"], row["subject"]) for row in journal_sessions(transaction)] == [("b", "ben")]
        assert sessions_by_person(transaction) == {"ben": (1, 3)}
        kept = journal_lines(transaction, ID).lines
    assert json.loads(lines[6])["prev"] == kept[1]["digest"]
    people = {(row["subject"], row["skill"]): row["loads"] for row in used(place, by="person")}
    assert people[("", "late")] == 2
    assert {subject for subject, _ in people} == {"", "ben"}
    with database.transaction(caller.tenant) as transaction:
        # What is left of it says neither who it was nor with what program, when, or how much.
        left = "select subject, client, started, latest, ended, events from journal_session where session = 'z'"
        assert transaction.rows(left) == [(None, None, 0, 0, None, 0)]
    assert forget(database, caller.tenant, "zoe") == (0, 0, 0)


@pytest.mark.parametrize("stopped", range(1, 11))
def test_what_is_left_when_forgetting_was_stopped_is_removed_when_it_is_run_again(place: Place, stopped: int) -> None:
    database, caller = place
    long = [{"session": "z", "type": "tool_stdout", "chunk": "a secret"}] * (JOURNAL_BATCH_LINES + 10)
    push(place, chain(events(5)), machine="m1")
    named = chain([*events(3, session="a"), *events(4, session="z", subject="ada"), *long])
    ben = caller._replace(subject="ben")
    for at in range(0, len(named), JOURNAL_BATCH_LINES):
        take(database, ben, "b1" * 16, named[at : at + JOURNAL_BATCH_LINES], now=NOW)
    push(
        place,
        chain([*events(3, session="b", subject="ben"), *events(4, subject="ada")]),
        stream="5e" * 16,
        origin=SERVER,
    )

    class Stopping:
        """A database that ends the program before one of its transactions."""

        begun = 0

        def transaction(self, tenant: str, *, readonly: bool = False) -> Any:
            self.begun += 1
            if self.begun > stopped:
                raise KeyboardInterrupt
            return database.transaction(tenant, readonly=readonly)

    with pytest.raises(KeyboardInterrupt):
        forget(cast(Database, Stopping()), caller.tenant, "ada")
    forget(database, caller.tenant, "ada")

    assert stored(place) == [None] * 5
    assert stored(place, "b1" * 16) == [*named[:3], *[None] * (len(named) - 3)]
    assert [line is None for line in stored(place, "5e" * 16)] == [False] * 3 + [True] * 4
    with database.transaction(caller.tenant, readonly=True) as transaction:
        assert {(one["session"], one["subject"]) for one in journal_sessions(transaction)} == {
            ("a", "ben"),
            ("b", "ben"),
        }
    assert {row["subject"] for row in used(place, by="person")} == {"", "ben"}


@pytest.mark.parametrize("moment", range(1, 6))
def test_what_began_while_a_person_was_forgotten_is_removed_when_it_is_run_again(place: Place, moment: int) -> None:
    database, caller = place
    served = chain([*events(3, session="b", subject="ben"), *events(4, session="c", subject="ada")])
    push(place, chain(events(5)))
    push(place, served[:3], stream="5e" * 16, origin=SERVER)

    class Meanwhile:
        """A database with which a server stores a new session, and a machine a new journal, at some moment."""

        begun = 0

        def transaction(self, tenant: str, *, readonly: bool = False) -> Any:
            self.begun += 1
            if self.begun == moment:
                push(place, served[3:], stream="5e" * 16, origin=SERVER)
                push(place, chain(events(2)), stream="cd" * 16)
            return database.transaction(tenant, readonly=readonly)

    forget(cast(Database, Meanwhile()), caller.tenant, "ada")
    forget(database, caller.tenant, "ada")

    assert stored(place, "5e" * 16) == [*served[:3], *[None] * 4]
    assert stored(place, "cd" * 16) == [None] * 2
    with database.transaction(caller.tenant, readonly=True) as transaction:
        assert {one["subject"] for one in journal_sessions(transaction)} == {"ben"}
        assert {one["subject"] for one in streams(transaction)} == {""}
    assert {row["subject"] for row in used(place, by="person")} == {"", "ben"}


@pytest.mark.parametrize("subject", ["", " ", "\t", "a\0b", "x" * 5000])
def test_what_is_no_name_cannot_be_forgotten_and_costs_no_count(place: Place, subject: str) -> None:
    database, caller = place
    push(place, chain(events(6)))
    forget(database, caller.tenant, "ada")
    before = used(place, by="person")

    with pytest.raises(ConfigurationError, match="a subject has 1 to"):
        forget(database, caller.tenant, subject)

    assert before
    assert used(place, by="person") == before


def test_a_time_to_keep_is_days_weeks_or_years() -> None:
    assert [kept_days(text) for text in ("90d", "2w", "1y")] == [90, 14, 365]
    for text in ("0d", "x", "90", "-1d", "9999999d"):
        with pytest.raises(Exception, match="--keep-lines needs"):
            kept_days(text)


@pytest.mark.slow
def test_in_postgresql_a_query_without_a_tenant_sees_no_line_of_another(address: str, tmp_path: Path) -> None:
    with database_on(address, tmp_path) as place, database_on(address, tmp_path) as other:
        push(place, chain(events(3)))
        for table in ("event", "stream", "journal_session", "usage_day", "usage_person", "usage_machine"):
            with other[0].transaction(other[1].tenant) as transaction:
                assert transaction.rows(f"select * from {table}") == []
    assert not is_reduced(chain(events(1))[0])
