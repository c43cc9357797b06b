"""Every later change of a journal is found, with its line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from hashlib import sha256
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.examples import examples

from skillshelf.core.limits import JOURNAL_PROBLEMS
from skillshelf.journal.file import Journal, Problem, Verification, verify
from skillshelf.journal.format import seal
from skillshelf.journal.stored_chain import StoredVerification, verify_stored

same_every_time = settings(max_examples=examples(50), deadline=None, derandomize=True, database=None)

LINES = 12


def written(*, sessions: int = 2, ended: bool = True) -> list[bytes]:
    """Return the lines of a journal with interleaved sessions."""
    ticks = count(1000)
    with TemporaryDirectory() as folder:
        path = f"{folder}/run.jsonl"
        journals = [Journal(path, session=f"s{number}", now_ms=lambda: next(ticks)) for number in range(sessions)]
        for journal in journals:
            journal.append("session_started", {"profile": "standard"})
        for number in range(LINES - 2 * sessions):
            journals[number % sessions].append("skill_read", {"uri": f"skill://größe/{number}", "size": number})
        for journal in journals:
            journal.append("session_ended" if ended else "skill_read", {})
        return Path(path).read_bytes().splitlines()


INTACT = written()


def verified(lines: list[bytes], *, head: str | None = None, end: bytes = b"\n") -> Verification:
    """Verify a file of these lines."""
    return verified_bytes(b"\n".join(lines) + (end if lines else b""), head=head)


def verified_bytes(data: bytes, *, head: str | None = None) -> Verification:
    """Verify a file of these bytes; its name does not matter."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run.jsonl"
        path.write_bytes(data)
        return verify(str(path), head)._replace(file="")


def sum_of(line: bytes) -> str:
    """Return the `sum` of a line."""
    total = json.loads(line)["sum"]
    assert isinstance(total, str)
    return total


def forged(line: bytes, **changes: Any) -> bytes:
    """Return a line with other members and a matching sum."""
    record = {**json.loads(line), **changes}
    del record["sum"]
    record["sum"] = sha256(canonical(record)).hexdigest()
    return canonical(record)


def canonical(record: dict[str, Any]) -> bytes:
    """Return the canonical form of a record."""
    return json.dumps(record, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


places = st.integers(min_value=0, max_value=LINES - 1)

# Nothing was done ---------------------------------------------------------------------------------


def test_an_untouched_journal_verifies() -> None:
    assert verified(INTACT) == Verification("", True, LINES, 2, False, (), sum_of(INTACT[-1]), False)


def test_an_empty_journal_verifies() -> None:
    assert verified([]) == Verification("", True, 0, 0, False, (), None, False)


def test_a_session_without_an_end_leaves_the_end_open_and_the_journal_valid() -> None:
    found = verified(INTACT[:-1])

    assert (found.ok, found.open_end) == (True, True)
    assert verified(written(sessions=1, ended=False)).open_end


# One thing was done -------------------------------------------------------------------------------


@same_every_time
@given(position=st.integers(min_value=0, max_value=len(b"\n".join(INTACT))), byte=st.integers(0, 255))
@example(position=len(b"\n".join(INTACT)) - 1, byte=0x20)
@example(position=len(b"\n".join(INTACT)), byte=0x20)
@example(position=len(INTACT[0]), byte=0x20)
@example(position=5, byte=0x0A)
def test_one_changed_byte_is_found_at_its_line(position: int, byte: int) -> None:
    data = b"\n".join(INTACT) + b"\n"
    changed = data[:position] + bytes([byte]) + data[position + 1 :]
    line = data.count(b"\n", 0, position) + 1

    found = verified_bytes(changed)

    if changed == data:
        assert found.ok
        return
    assert not found.ok
    assert (found.problems[0].line, found.problems[0].kind) == (line, "torn" if position == len(data) - 1 else "edited")
    if byte != 0x0A and data[position] != 0x0A:
        # One line was edited: that is all there is to say, and the rest still follows it.
        assert len(found.problems) == 1


@same_every_time
@given(first=places, size=st.integers(1, 4))
def test_removed_lines_are_missed_where_they_were(first: int, size: int) -> None:
    left = INTACT[:first] + INTACT[first + size :]

    found = verified(left)

    if first + size >= LINES:
        # Nothing in the file says how long it was.
        assert found.ok
    else:
        assert [problem[:3] for problem in found.problems] == [(first + 1, first, "removed")]


@same_every_time
@given(one=places, other=places)
def test_two_swapped_lines_are_reordered_and_not_edited(one: int, other: int) -> None:
    one, other = sorted((one, other))
    lines = [*INTACT]
    lines[one], lines[other] = lines[other], lines[one]

    found = verified(lines)

    told = [problem[:3] for problem in found.problems]
    if one == other:
        assert told == []
    elif other == one + 1:
        # Either may be said to stand before the other.
        assert told in ([(one + 1, other, "reordered")], [(other + 1, one, "reordered")])
    elif other == one + 2 and told != [(one + 1, other, "reordered"), (other + 1, one, "reordered")]:
        # Three lines turned around: any one of them may be the one that stayed.
        assert len(told) == 2
        assert {kind for _, _, kind in told} == {"reordered"}
    else:
        assert told == [(one + 1, other, "reordered"), (other + 1, one, "reordered")]


@same_every_time
@given(source=places, target=st.integers(0, LINES))
def test_a_copied_line_is_found_where_it_stands_or_where_its_twin_does(source: int, target: int) -> None:
    found = verified([*INTACT[:target], INTACT[source], *INTACT[target:]])

    ((line, seq, kind, detail, *_),) = found.problems
    assert (seq, kind, detail) == (source, "reordered", f"seq {source} is here a second time")
    assert line == target + 1 or target in (source, source + 1)
    assert line in (source + 1, source + 2, target + 1)


@same_every_time
@given(line=places)
def test_an_edit_whose_sum_was_made_anew_is_found_by_the_line_after_it(line: int) -> None:
    lines = [*INTACT]
    lines[line] = forged(lines[line], type="skill_invoked")

    found = verified(lines)

    if line == LINES - 1:
        assert found.ok
        assert verified(lines, head=sum_of(INTACT[-1])).problems[0].kind == "cut"
    else:
        assert [problem[:3] for problem in found.problems] == [(line + 1, line, "edited")]


@same_every_time
@given(after=st.integers(0, LINES - 2))
def test_a_line_that_was_put_into_the_chain_is_found(after: int) -> None:
    prev = sha256(INTACT[after]).hexdigest()
    stranger = forged(INTACT[after], seq=after + 1, prev=prev, type="skill_invoked")

    found = verified([*INTACT[: after + 1], stranger, *INTACT[after + 1 :]])

    ((line, seq, kind, *_),) = found.problems
    assert (seq, kind) == (after + 1, "reordered")
    # Of two lines at the end that continue the same one it is unknown which was first.
    assert line == after + 2 or after == LINES - 2


@same_every_time
@given(kept=st.integers(0, LINES - 1))
def test_a_cut_end_is_found_by_a_sum_that_was_kept(kept: int) -> None:
    found = verified(INTACT[:kept], head=sum_of(INTACT[-1]))

    assert [problem[:3] for problem in found.problems] == [(kept + 1, kept, "cut")]
    assert verified(INTACT[:kept]).ok


@same_every_time
@given(cut=st.integers(0, len(b"\n".join(INTACT))))
def test_a_file_cut_at_any_byte_is_torn_at_its_last_line(cut: int) -> None:
    data = (b"\n".join(INTACT) + b"\n")[:cut]

    found = verified_bytes(data)

    whole = data.count(b"\n")
    torn = [] if not data or data.endswith(b"\n") else [(whole + 1, None, "torn")]
    assert [problem[:3] for problem in found.problems] == torn
    assert (found.lines, found.torn_tail) == (whole, bool(torn))
    if whole:
        assert found.head == sum_of(INTACT[whole - 1])


@pytest.mark.parametrize("form", ["{}", "sha256:{}"])
def test_a_kept_sum_also_proves_the_beginning_of_a_journal_that_has_grown(form: str) -> None:
    for line in INTACT:
        assert verified(INTACT, head=form.format(sum_of(line)).upper().replace("SHA256", "sha256")).ok


# Other bytes of the same meaning ------------------------------------------------------------------

REWRITTEN: dict[str, Callable[[bytes], bytes]] = {
    "blanks": lambda line: json.dumps(json.loads(line), ensure_ascii=False, sort_keys=True).encode(),
    "a blank at the end": lambda line: line + b" ",
    "a carriage return": lambda line: line + b"\r",
    "another order": lambda line: json.dumps(
        dict(reversed(json.loads(line).items())), ensure_ascii=False, separators=(",", ":")
    ).encode(),
    "escapes": lambda line: json.dumps(json.loads(line), sort_keys=True, separators=(",", ":")).encode(),
    "a member twice": lambda line: line[:-1] + b',"type":"skill_read"}',
    "a number as float": lambda line: line.replace(b'"seq":5', b'"seq":5.0'),
    "a byte order mark": lambda line: b"\xef\xbb\xbf" + line,
}


@pytest.mark.parametrize("way", REWRITTEN)
def test_a_line_of_the_same_meaning_and_other_bytes_is_edited(way: str) -> None:
    lines = [*INTACT]
    lines[5] = REWRITTEN[way](lines[5])
    assert lines[5] != INTACT[5]

    assert [(problem.line, problem.kind) for problem in verified(lines).problems] == [(6, "edited")]


# Several things were done -------------------------------------------------------------------------


def swap(lines: list[bytes], one: int, other: int) -> list[bytes]:
    """Return the lines with two of them swapped."""
    changed = [*lines]
    changed[one], changed[other] = lines[other], lines[one]
    return changed


SEVERAL: dict[str, tuple[list[bytes], list[tuple[int, int | None, str]]]] = {
    "an edit and a removal": (
        [*INTACT[:2], INTACT[2] + b" ", *INTACT[3:6], *INTACT[7:]],
        [(3, 2, "edited"), (7, 6, "removed")],
    ),
    "two removals": ([*INTACT[1:4], *INTACT[6:]], [(1, 0, "removed"), (4, 4, "removed")]),
    "a swap and a removal": (
        [*swap(INTACT, 2, 8)[:5], *swap(INTACT, 2, 8)[6:]],
        [(3, 8, "reordered"), (6, 5, "removed"), (8, 2, "reordered")],
    ),
    "a block moved": ([*INTACT[:2], *INTACT[4:10], *INTACT[2:4], *INTACT[10:]], [(9, 2, "reordered")]),
    "a block copied": ([*INTACT[:6], *INTACT[3:6], *INTACT[6:]], [(7, 3, "reordered")]),
    "text put in": ([*INTACT[:4], b"hello", *INTACT[4:]], [(5, None, "edited")]),
    "two journals in one file": ([*INTACT, *INTACT[:3]], [(13, 0, "reordered")]),
    "two lines joined": (
        [*INTACT[:3], INTACT[3] + INTACT[4], *INTACT[5:]],
        [(4, None, "edited"), (5, 4, "removed")],
    ),
    "a wrong beginning": ([forged(INTACT[0], prev="1" * 64)], [(1, 0, "edited")]),
    "nothing but text": ([b"a", b"", b"c"], [(1, None, "edited"), (2, None, "edited"), (3, None, "edited")]),
}


@pytest.mark.parametrize("case", SEVERAL)
def test_several_changes_are_told_apart(case: str) -> None:
    lines, problems = SEVERAL[case]

    assert [problem[:3] for problem in verified(lines).problems] == problems


def test_details_are_sentences() -> None:
    found = verified([*INTACT[:4], b"hello", *INTACT[4:6], *INTACT[8:10], INTACT[11], INTACT[10]])

    assert found.problems == (
        Problem(
            5,
            None,
            "edited",
            "not JSON: Expecting value at character 0; it was inserted: the lines around it follow each other",
        ),
        Problem(8, 6, "removed", "2 lines are missing here, from seq 6 on"),
        Problem(10, 11, "reordered", "seq 11 is here after seq 9 and before seq 10"),
    )


def broken_lines() -> Iterator[bytes]:
    """Return more broken lines than the limit."""
    return (b"x" for _ in range(5 * JOURNAL_PROBLEMS))


def shuffled_lines() -> Iterator[bytes]:
    """Yield one line repeatedly; each repetition breaks the chain."""
    return (INTACT[number % 2 * 5] for number in range(5 * JOURNAL_PROBLEMS))


@pytest.mark.parametrize("lines", [broken_lines, shuffled_lines])
def test_a_file_in_which_everything_is_wrong_is_not_read_to_its_end(lines: Callable[[], Iterator[bytes]]) -> None:
    found = verified([*lines()])

    assert not found.ok
    assert found.lines <= JOURNAL_PROBLEMS + 2
    assert found.problems[-1].detail == "too many problems; the lines after this were not read"


# What a server stores -----------------------------------------------------------------------------

Rows = list[dict[str, Any]]


def rows_of(lines: list[bytes]) -> Rows:
    return [{"seq": seq, "line": line.decode()} for seq, line in enumerate(lines)]


def stored(rows: Rows, last: bytes) -> StoredVerification:
    """What verifying some rows says if the server names a last line."""
    named = json.loads(last)
    return verify_stored("ab" * 16, rows, acknowledged=named["seq"], head=named["sum"])


def removed(rows: Rows, seq: int, **changed: str) -> Rows:
    """The rows with one whose text was removed with a person."""
    data = rows[seq]["line"].encode()
    left = {"seq": seq, "line": None, "sum": json.loads(data)["sum"], "digest": sha256(data).hexdigest()}
    return [*rows[:seq], {**left, **changed}, *rows[seq + 1 :]]


def test_the_lines_that_a_server_stores_verify_whole_and_without_what_it_removed() -> None:
    lines = written()
    rows, head = rows_of(lines), json.loads(lines[-1])["sum"]

    assert stored(rows, lines[-1]) == ("ab" * 16, True, LINES, 0, 0, 0, head, ())
    assert stored(removed(rows, 3), lines[-1])[1:6] == (True, LINES, 0, 1, 0)
    assert stored(rows[5:], lines[-1])[1:6] == (True, LINES - 5, 0, 0, 5)
    assert stored([], lines[-1])[1:6] == (True, 0, 0, 0, None)
    # Lines that came after the server named the last one.
    assert stored(rows, lines[5]).ok


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (lambda rows: [*rows[:3], *rows[4:]], "removed 3: lines are missing here, from seq 3 to 3"),
        (lambda rows: rows[:7], "cut 7: seq 11 is the last line, and nothing is left of it"),
        (lambda rows: [*rows[:4], *rows[3:]], "reordered 3: seq 3 is here after seq 3"),
        (lambda rows: [*rows[:3], {**rows[4], "seq": 3}, *rows[4:]], "edited 3: its text has seq 4"),
        (lambda rows: removed(rows, 3, digest="0" * 64), "edited 4: it continues another line than the one before"),
        (lambda rows: removed(rows, 3, digest=""), "edited 3: it was removed, and its sum and digest are missing"),
        (lambda rows: [{**rows[0], "digest": "0" * 64}, *rows[1:]], "edited 0: the server gives another digest"),
        (lambda rows: [*rows[:3], {**rows[3], "seq": "3"}, *rows[4:]], "edited None: it has no place in a journal"),
        (lambda rows: [{"seq": 0, "line": orphan()}], "edited 0: it continues another line than the one before it"),
    ],
)
def test_what_a_server_changed_in_the_lines_that_it_stores_is_named(
    spoil: Callable[[Rows], Rows], problem: str
) -> None:
    lines = written()

    found = stored(spoil(rows_of(lines)), lines[-1])

    assert not found.ok
    first = found.problems[0]
    assert f"{first.kind} {first.seq}: {first.detail}".startswith(problem)


def orphan() -> str:
    """A first line that names one before it."""
    line, _ = seal({"session": "s", "type": "t", "ts_ms": 1, "seq": 0, "prev": "1" * 64})
    return line.decode()


def test_another_last_line_is_named_and_of_many_problems_the_first_ones() -> None:
    lines = written()

    (found,) = verify_stored("ab" * 16, rows_of(lines), acknowledged=LINES - 1, head="0" * 64).problems
    assert (found.kind, found.seq) == ("edited", LINES - 1)
    assert len(stored([{"seq": seq, "line": ""} for seq in range(500)], lines[-1]).problems) == 20
