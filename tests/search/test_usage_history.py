"""The history of use counts loads after searches, within bounds, and holds no word of a query."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from skillshelf.core.limits import USAGE_A_DAY, USAGE_BYTES, USAGE_ROWS, USAGE_SEARCHES, USAGE_SECONDS, USAGE_TERMS
from skillshelf.search.usage_history import UnusableUsage, UsageHistory, UsageSummary
from skillshelf.search.usage_prior import MOST_BONUS, QueryPrior, UsageBonus, UsagePrior

NOON = 1_800_014_400
SKILL = "/home/me/.agents/skills/notes/SKILL.md"


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def history(tmp_path: Path, clock: Clock) -> UsageHistory:
    return UsageHistory(str(tmp_path / "state" / "usage.sqlite"), clock=clock)


def loads(history: UsageHistory) -> dict[str, int]:
    """The loads by path."""
    return {one.path: one.loads for one in history.summary().skills}


def bonus(history: UsageHistory, *terms: str) -> dict[str, UsageBonus]:
    """The bonuses for a query whose terms weigh the same."""
    prior = history.prior()
    found = prior.for_query(dict.fromkeys(terms, 1.0)) if prior is not None else None
    return dict(found.bonuses) if found is not None else {}


def test_a_load_of_a_result_counts_for_the_terms_of_its_search(history: UsageHistory) -> None:
    history.add_search(["draft", "release", "note"], [SKILL, "/other/SKILL.md"])

    assert history.add_load(SKILL)
    assert loads(history) == {SKILL: 1}
    assert bonus(history, "draft", "release", "note") == {SKILL: UsageBonus(0.2, 1)}
    assert bonus(history, "deploy", "service") == {}


@pytest.mark.parametrize("path", ["/never/found/SKILL.md", SKILL + "x"])
def test_a_load_of_what_no_search_found_does_not_count(history: UsageHistory, path: str) -> None:
    history.add_search(["draft"], [SKILL])

    assert not history.add_load(path)
    assert loads(history) == {}


def test_a_load_without_any_search_makes_no_file(history: UsageHistory) -> None:
    assert not history.add_load(SKILL)
    assert not os.path.exists(history.path)


@pytest.mark.parametrize(
    ("seconds", "counts"), [(0, True), (USAGE_SECONDS, True), (USAGE_SECONDS + 1, False), (-1, False)]
)
def test_a_load_counts_within_ten_minutes_and_never_before_its_search(
    history: UsageHistory, clock: Clock, seconds: int, counts: bool
) -> None:
    history.add_search(["draft"], [SKILL])
    clock.now += seconds

    assert history.add_load(SKILL) is counts


def test_one_search_counts_once_for_a_skill(history: UsageHistory) -> None:
    history.add_search(["draft"], [SKILL])

    assert [history.add_load(SKILL) for _ in range(3)] == [True, False, False]


def test_the_last_search_that_found_it_counts(history: UsageHistory) -> None:
    history.add_search(["draft"], [SKILL])
    history.add_search(["publish"], [SKILL])
    history.add_search(["deploy"], ["/other/SKILL.md"])
    history.add_load(SKILL)

    assert set(bonus(history, "publish")) == {SKILL}
    assert bonus(history, "draft") == bonus(history, "deploy") == {}


def test_three_loads_a_day_count_for_a_skill(history: UsageHistory, clock: Clock) -> None:
    for _ in range(2 * USAGE_A_DAY):
        history.add_search(["draft"], [SKILL])
        history.add_load(SKILL)
    assert loads(history) == {SKILL: USAGE_A_DAY}

    clock.now += 86_400
    history.add_search(["draft"], [SKILL])
    assert history.add_load(SKILL)


def test_a_clock_that_is_set_back_neither_loses_uses_nor_counts_old_searches(
    history: UsageHistory, clock: Clock
) -> None:
    history.add_search(["draft"], [SKILL])
    history.add_load(SKILL)
    history.add_search(["publish"], [SKILL])
    clock.now -= 10 * 86_400

    assert not history.add_load(SKILL)
    history.add_search(["draft"], [SKILL])
    assert history.add_load(SKILL)
    assert loads(history) == {SKILL: 2}


def test_the_file_has_at_most_so_many_rows_and_tells_what_it_dropped(history: UsageHistory, clock: Clock) -> None:
    history.add_search(["first"], [SKILL])
    history.add_load(SKILL)
    with sqlite3.connect(history.path) as connection:
        row = connection.execute("SELECT at, path, terms FROM uses").fetchone()
        connection.executemany("INSERT INTO uses (at, path, terms) VALUES (?, ?, ?)", [row] * (USAGE_ROWS + 10))
    for number in range(USAGE_SEARCHES + 10):
        history.add_search([f"term{number}"], ["/new/SKILL.md"])
    clock.now += 1
    assert history.add_load("/new/SKILL.md")

    summary = history.summary()
    # The search of the load that counted is gone, and one row is that of the salt.
    assert summary.rows + 2 == USAGE_ROWS
    assert summary.removed == USAGE_ROWS + 12 - (USAGE_ROWS - USAGE_SEARCHES - 1)
    assert loads(history)["/new/SKILL.md"] == 1


def test_a_search_keeps_its_first_terms_only(history: UsageHistory) -> None:
    history.add_search([f"term{number}" for number in range(USAGE_TERMS + 5)], [SKILL])
    history.add_load(SKILL)

    assert bonus(history, f"term{USAGE_TERMS - 1}")
    assert not bonus(history, f"term{USAGE_TERMS}")


def test_no_word_of_a_query_and_no_unused_result_is_in_the_file(history: UsageHistory) -> None:
    terms = ["confidential", "acquisition", "机密", "zürich"]
    history.add_search(terms, [SKILL, "/home/me/.agents/skills/unused/SKILL.md"])
    history.add_load(SKILL)
    history.add_search(terms, [SKILL])

    data = Path(history.path).read_bytes()

    assert SKILL.encode() in data
    assert not [term for term in (*terms, "unused") if term.encode() in data]
    assert oct(os.stat(history.path).st_mode & 0o777) == "0o600"


def test_equal_terms_have_other_hashes_in_another_file(history: UsageHistory, tmp_path: Path, clock: Clock) -> None:
    other = UsageHistory(str(tmp_path / "other" / "usage.sqlite"), clock=clock)
    for one in (history, other):
        one.add_search(["draft"], [SKILL])
        one.add_load(SKILL)

    hashes = []
    for one in (history, other):
        with sqlite3.connect(one.path) as connection:
            hashes.append(connection.execute("SELECT terms FROM uses").fetchone()[0])

    assert hashes[0] != hashes[1]


def test_clear_removes_the_file_and_what_follows_begins_anew(history: UsageHistory) -> None:
    history.add_search(["draft"], [SKILL])
    history.add_load(SKILL)

    assert history.clear()
    assert not list(Path(history.path).parent.iterdir())
    assert not history.clear()
    assert history.prior() is None
    history.add_search(["draft"], [SKILL])
    assert history.add_load(SKILL)


# Files that are not as they should be -------------------------------------------------------------


_ENDLESS = "WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n)"
_ADDED = {
    "view without end": [
        "DROP TABLE uses",
        f"CREATE VIEW uses AS {_ENDLESS} SELECT id, 1 AS at, x'2f' AS path, x'00' AS terms FROM n",
    ],
    "trigger": ["CREATE TRIGGER odd AFTER INSERT ON searches BEGIN DELETE FROM history; END"],
}


def planted(history: UsageHistory, kind: str) -> str:
    """Put something else in the place of the file, and return what the sentence about it says."""
    path = Path(history.path)
    path.parent.mkdir(mode=0o700)
    if kind == "link":
        victim = path.parent / "victim"
        victim.write_bytes(b"")
        path.symlink_to(victim)
        return "not a file of yours"
    if kind == "writable by all":
        path.write_bytes(b"")
        path.chmod(0o666)
        return "not a file of yours"
    if kind == "folder":
        path.mkdir()
        return "not a file of yours"
    if kind == "text":
        path.write_bytes(b"not a database, but long enough to be looked at" * 40)
        path.chmod(0o600)
        return "not a history of use"
    if kind == "huge":
        with path.open("wb") as file:
            file.truncate(USAGE_BYTES + 1)
        path.chmod(0o600)
        return f"more than {USAGE_BYTES} bytes"
    if kind in _ADDED:
        history.add_search(["draft"], [SKILL])
        with sqlite3.connect(path) as connection:
            for statement in _ADDED[kind]:
                connection.execute(statement)
        return "not a history of use"
    with sqlite3.connect(path) as connection:
        if kind == "newer":
            connection.execute("PRAGMA user_version = 7")
            connection.execute("CREATE TABLE history (other TEXT)")
        elif kind == "no salt":
            connection.execute("PRAGMA user_version = 1")
            connection.execute("CREATE TABLE history (salt BLOB, removed INTEGER)")
        else:
            connection.execute("CREATE TABLE stranger (text TEXT)")
    path.chmod(0o600)
    return "version 7 is of a newer skillshelf (this one reads 1)" if kind == "newer" else "not a history of use"


KINDS = ("link", "writable by all", "folder", "text", "huge", "newer", "no salt", "another database", *_ADDED)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_a_history_costs_one_sentence_and_is_never_written_over(history: UsageHistory, kind: str) -> None:
    sentence = planted(history, kind)
    before = Path(history.path).read_bytes() if kind != "folder" else b""

    for act in (
        history.prior,
        lambda: history.add_search(["a"], [SKILL]),
        lambda: history.add_load(SKILL),
        history.summary,
    ):
        with pytest.raises(UnusableUsage) as told:
            act()
        assert sentence in str(told.value)
        assert "\n" not in str(told.value)
    assert kind == "folder" or Path(history.path).read_bytes() == before


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a file to another user")
def test_a_file_of_another_user_does_not_count(history: UsageHistory) -> None:
    history.add_search(["draft"], [SKILL])
    history.add_load(SKILL)
    os.chown(history.path, 12345, -1)

    with pytest.raises(UnusableUsage, match="not a file of yours"):
        history.prior()
    with pytest.raises(UnusableUsage, match="not a file of yours"):
        history.add_search(["draft"], [SKILL])


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "folder"])
def test_clear_removes_whatever_is_there_and_no_target_of_a_link(history: UsageHistory, kind: str) -> None:
    planted(history, kind)

    assert history.clear()
    assert [entry.name for entry in Path(history.path).parent.iterdir()] == (["victim"] if kind == "link" else [])


def test_a_file_without_tables_is_an_empty_history(history: UsageHistory) -> None:
    path = Path(history.path)
    path.parent.mkdir(mode=0o700)
    path.touch(0o600)

    assert history.prior() is None
    assert history.summary() == UsageSummary()
    history.add_search(["draft"], [SKILL])
    assert history.add_load(SKILL)


def test_what_a_process_left_when_it_was_ended_does_not_keep_the_file_from_being_read(history: UsageHistory) -> None:
    history.add_search(["draft"], [SKILL])
    history.add_load(SKILL)
    Path(f"{history.path}-journal").write_bytes(b"half of a journal" * 100)

    assert set(bonus(history, "draft")) == {SKILL}


def test_rows_of_another_shape_are_left_out(history: UsageHistory) -> None:
    history.add_search(["draft"], [SKILL])
    history.add_load(SKILL)
    with sqlite3.connect(history.path) as connection:
        odd = [("text", b"x" * 8), (b"/a", "text"), (b"/b", b"x" * 8 * (USAGE_TERMS + 1)), (b"/c", 5)]
        connection.executemany("INSERT INTO uses (at, path, terms) VALUES (0, ?, ?)", odd)

    assert set(bonus(history, "draft")) == {SKILL}


def test_a_path_that_is_not_utf8_is_kept_as_it_is(history: UsageHistory) -> None:
    path = b"/home/me/caf\xe9/SKILL.md".decode("utf-8", "surrogateescape")
    history.add_search(["draft"], [path])
    history.add_load(path)

    (prior,) = [bonus(history, "draft")]
    assert set(prior) == set(loads(history)) == {path}


def test_a_file_that_another_process_holds_costs_a_sentence(history: UsageHistory) -> None:
    history.add_search(["draft"], [SKILL])
    holder = sqlite3.connect(history.path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    try:
        with pytest.raises(UnusableUsage, match="locked"):
            history.add_load(SKILL)
    finally:
        holder.close()


_PROCESS = """
import sys
from skillshelf.search.usage_history import UsageHistory
history = UsageHistory(sys.argv[1])
for number in range(3):
    history.add_search(["draft", sys.argv[2]], [f"/skills/{sys.argv[2]}/SKILL.md"])
    assert history.add_load(f"/skills/{sys.argv[2]}/SKILL.md")
    assert history.prior() is not None
"""


@pytest.mark.slow
def test_twenty_processes_at_once_lose_nothing(tmp_path: Path) -> None:
    path = str(tmp_path / "state" / "usage.sqlite")
    words = [sys.executable, "-c", _PROCESS, path]
    started = [subprocess.Popen([*words, str(number)], stderr=subprocess.PIPE) for number in range(20)]
    problems = [process.communicate()[1] for process in started]

    assert problems == [b""] * 20
    counts = loads(UsageHistory(path))
    assert len(counts) == 20
    assert set(counts.values()) == {3}


# Bonuses ------------------------------------------------------------------------------------------


def prior_of(*searches: tuple[str, str]) -> UsagePrior:
    """The prior of searches, each with the path that was loaded."""
    return UsagePrior.from_searches((query.split(), path) for query, path in searches)


def shares(prior: UsagePrior, query: str) -> Iterator[tuple[str, float]]:
    found = prior.for_query(dict.fromkeys(query.split(), 1.0))
    return ((path, one.share) for path, one in (found.bonuses.items() if found else ()))


def test_more_uses_and_more_similar_ones_give_more_and_never_more_than_the_most() -> None:
    few = dict(shares(prior_of(("draft release", "/a"), ("draft", "/b")), "draft release"))
    many = dict(shares(prior_of(*[("draft release", "/a")] * 1000), "draft release"))

    assert 0 < few["/b"] < few["/a"] < many["/a"] <= MOST_BONUS


def test_a_single_use_gives_at_most_two_thirds_of_the_most() -> None:
    assert dict(shares(prior_of(("draft release", "/a")), "draft release")) == {"/a": 0.2}


def test_rare_terms_count_more_than_common_ones() -> None:
    prior = prior_of(("common", "/a"), ("rare", "/b"))
    found = prior.for_query({"common": 1.0, "rare": 5.0})

    assert found is not None
    assert found.bonuses["/b"].share > found.bonuses["/a"].share


def test_a_shared_word_of_little_weight_is_no_similarity() -> None:
    assert prior_of(("common", "/a")).for_query({"common": 1.0, "rare": 50.0}) is None


def test_a_prior_has_one_document_and_one_digest_whatever_the_order() -> None:
    one = prior_of(("draft", "/a"), ("release", "/b")).for_query({"draft": 1.0, "release": 2.0})
    other = prior_of(("release", "/b"), ("draft", "/a")).for_query({"release": 2.0, "draft": 1.0})

    assert one is not None
    assert other is not None
    assert one.document() == other.document()
    assert one.digest == other.digest
    assert QueryPrior.parse(one.document()) == one


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b'{"version":2,"bonuses":{}}',
        b'{"version":1,"bonuses":{"/a":{"share":3.0,"times":1}}}',
        b'{"version":1,"bonuses":{"/a":{"share":-1.0,"times":1}}}',
        b'{"version":1,"bonuses":{"/a":1}}',
        b"[" * 100_000,
    ],
)
def test_a_document_that_is_no_prior_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        QueryPrior.parse(data)
