"""Compare results of `eval` with former ones, and write them as JUnit XML."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, get_args
from xml.sax.saxutils import escape, quoteattr

from skillshelf.core import files
from skillshelf.core.limits import EVAL_FILE_BYTES
from skillshelf.core.patterns import lazy_pattern
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import visible
from skillshelf.errors import ConfigurationError
from skillshelf.evals.findability import FOUND_AMONG, Outcome, QueryResult, SkillResult

__all__ = ["FormerResults", "Worsening", "junit_report", "read_former", "reason_of", "untested", "worsenings"]

_Key = tuple[str | None, str, str, str]
FormerResults = Mapping[_Key, str]
"""The outcome of each query, task and file of tests by host, skill, text and kind."""


class Worsening(NamedTuple):
    """A query or a task of a skill that passed before and does not pass any more, or a new problem of its tests."""

    skill: str
    host: str | None
    query: str
    before: str
    now: str


def read_former(path: str) -> FormerResults:
    """Return the outcomes in a file that `eval --json` wrote; raise ConfigurationError if it is not such a file."""
    try:
        data = files.read_file(path, limit=EVAL_FILE_BYTES, links="follow")
    except OSError as error:
        raise ConfigurationError(f"baseline {path} cannot be read: {(error.strerror or str(error)).lower()}") from None
    if data is None:
        raise ConfigurationError(f"baseline {path} has more than {EVAL_FILE_BYTES:,} bytes (EVAL_FILE_BYTES)")
    try:
        return _outcomes(json.loads(data)["skills"])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise ConfigurationError(f"{path} is not a result of `skillshelf eval --json`") from None


def _outcomes(skills: Iterable[Mapping[str, Any]]) -> dict[_Key, str]:
    """Return all outcomes in the JSON form of results; where two skills have one name, the worse."""
    found: dict[_Key, str] = {}
    for skill in skills:
        start = (skill.get("host"), skill["name"])
        rows = [((*start, str(one["query"]), _kind(one["should_trigger"])), one["outcome"]) for one in skill["queries"]]
        rows += [((*start, str(one["id"]), "task"), one["outcome"]) for one in skill.get("outputs", ())]
        rows += [((*start, str(note), "file"), "fail") for note in skill.get("notes", ())]
        for key, outcome in rows:
            if outcome not in _OUTCOMES or not isinstance(key[1], str):
                raise ValueError("not an outcome of a skill")
            found[key] = outcome if found.get(key, "pass") == "pass" else found[key]
    return found


_OUTCOMES = get_args(Outcome)


def _kind(should_trigger: object) -> str:
    return "query" if should_trigger else "negative query"


def worsenings(results: Sequence[SkillResult], former: FormerResults) -> list[Worsening]:
    """Return what passed before and does not now; a query that is new has no former outcome.

    A file of tests that could be read before is worse too: its queries would be missing without a word.
    """
    worse: dict[_Key, Worsening] = {}
    for key, outcome in _outcomes(result.to_dict() for result in results).items():
        host, skill, text, kind = key
        before = former.get(key, "pass" if kind == "file" else "")
        if outcome != "pass" and before == "pass":
            worse[key] = Worsening(skill, host, f"task {text}" if kind == "task" else text, before, outcome)
    return list(worse.values())


def untested(results: Sequence[SkillResult], former: FormerResults) -> Mapping[str, int]:
    """Return the skills whose former queries and tasks are not tested any more, with the number of these."""
    now = _outcomes(result.to_dict() for result in results)
    return Counter(skill for key in former if (skill := key[1]) and key[3] != "file" and key not in now)


# JUnit --------------------------------------------------------------------------------------------

_NOT_IN_XML = lazy_pattern("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_report(results: Sequence[SkillResult]) -> str:
    """Return the results as JUnit XML: a suite for each skill, a case for each query, task and unreadable file."""
    suites = [(result, cases) for result in results if (cases := list(_cases(result)))]
    counts = _counts([case for _, cases in suites for case in cases])
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f"<testsuites{_attributes(name='skillshelf eval', **counts)}>"]
    for result, cases in suites:
        name = f"{result.name} ({result.host})" if result.host else result.name
        lines.append(f"  <testsuite{_attributes(name=name, file=result.path, **_counts(cases))}>")
        lines += [line for case in cases for line in _case(case, name)]
        lines.append("  </testsuite>")
    return "\n".join([*lines, "</testsuites>", ""])


class _Case(NamedTuple):
    """One case of a suite, with the reason if it did not pass."""

    name: str
    outcome: str
    reason: str = ""


def _cases(result: SkillResult) -> Iterator[_Case]:
    for query in result.queries:
        yield _Case(query.query, query.outcome, reason_of(query, result.host))
    for task in result.outputs:
        is_error = task["outcome"] == "error"
        reason = "no run gave a result that can be judged" if is_error else "an assertion does not hold with the skill"
        yield _Case(f"task {task['id']}", task["outcome"], reason)
    for note in result.notes:
        yield _Case(note.partition(": ")[0], "error", note)


def _counts(cases: Sequence[_Case]) -> dict[str, int]:
    outcomes = [case.outcome for case in cases]
    return {"tests": len(outcomes), "failures": outcomes.count("fail"), "errors": outcomes.count("error")}


def _case(case: _Case, suite: str) -> Iterator[str]:
    start = f"    <testcase{_attributes(name=case.name, classname=suite)}"
    if case.outcome == "pass":
        yield f"{start}/>"
        return
    element = "failure" if case.outcome == "fail" else "error"
    yield f"{start}>"
    yield f"      <{element}{_attributes(message=case.reason)}>{escape(_xml(case.reason))}</{element}>"
    yield "    </testcase>"


def reason_of(query: QueryResult, host: str | None = None) -> str:
    """Return why a query did not pass; on a host, what it shows of the description counts."""
    if query.model is not None:
        loaded = f"the model loaded the skill in {query.model['triggered']} of {query.model['runs']} runs"
        return "; ".join([loaded, *query.model["details"][:1]])
    words = ", ".join(query.words)
    if not query.should_trigger:
        return f"should not find this skill, but it is first, by {words or 'what is below its description'}"
    if query.rank is not None and query.rank <= FOUND_AMONG:
        return f"rank {query.rank}, but not in the list that a model is shown"
    place = "not found" if query.rank is None else f"rank {query.rank}"
    text = "description" if host is None else f"what {host} shows"
    parts = [place, f"first is {query.winner}" if query.winner else "", f"{text} lacks {words}" if words else ""]
    return "; ".join(part for part in parts if part)


def _attributes(**values: object) -> str:
    return "".join(f" {name}={quoteattr(_xml(str(value)))}" for name, value in values.items())


def _xml(text: str) -> str:
    """Return a text with only characters that XML can hold."""
    return _NOT_IN_XML.sub(lambda match: visible(match[0]) if visible(match[0]) != match[0] else "\ufffd", text)
