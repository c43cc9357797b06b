"""Read the test cases of a skill: queries that should or should not find it, and tasks with expected results.

Formats of several programs are read, none is written. A file that cannot be used costs one problem and nothing else.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from skillshelf.catalog.frontmatter import YamlProblem, load_yaml
from skillshelf.core import files
from skillshelf.core.limits import (
    EVAL_FILE_BYTES,
    EVAL_OUTPUTS,
    EVAL_QUERIES,
    EVAL_TASK_FILES,
    EVAL_YAML_KEYS,
)
from skillshelf.core.records import NamedTuple
from skillshelf.core.state_file import unique_members
from skillshelf.core.text import cut
from skillshelf.errors import ConfigurationError

__all__ = ["QUERY_FILE", "CaseProblem", "OutputCase", "SkillCases", "TriggerQuery", "read_cases", "read_queries"]

QUERY_FILE = "eval_queries.json"
_OUTPUT_FILE = "evals.json"
_TASK_INDEX = ("eval.yaml", "eval.yml")
_QUERY_FILES = (
    QUERY_FILE,
    *(
        f"{name}.{end}"
        for name in (
            "trigger-eval",
            "trigger_eval",
            "trigger-evals",
            "trigger_evals",
            "trigger-queries",
            "trigger_queries",
            "trigger-cases",
            "trigger_cases",
            "trigger-tests",
            "trigger_tests",
            "test-triggers",
            "test_triggers",
            "triggers",
        )
        for end in ("json", "yaml", "yml")
    ),
)
"""Names of lists of queries, in the folder of a skill or in its `evals`."""

_YES_LISTS = ("should_trigger", "should_trigger_prompts", "shouldTrigger", "shouldTriggerPrompts", "positive")
_NO_LISTS = (
    "should_not_trigger",
    "should_not_trigger_prompts",
    "shouldNotTrigger",
    "shouldNotTriggerPrompts",
    "negative",
)
_ITEM_LISTS = ("queries", "evals", "cases", "test_cases", "tests", "trigger_queries", "trigger_evals", "prompts")
_TEXTS = ("query", "prompt", "request", "text", "input")
_VERDICTS = ("should_trigger", "shouldTrigger", "expected_trigger", "expected", "type")
_WORDS: Mapping[object, bool] = {
    "trigger": True,
    "should_trigger": True,
    "should-trigger": True,
    "no-trigger": False,
    "no_trigger": False,
    "should_not_trigger": False,
    "should-not-trigger": False,
}
_NEGATIVE_TAGS = frozenset({"anti-trigger", "negative-trigger", "should-not-trigger", "no-trigger"})


class TriggerQuery(NamedTuple):
    """A request, whether the skill should be found by it, and the file that it is from."""

    query: str
    should_trigger: bool
    origin: str


class OutputCase(NamedTuple):
    """A task for a model with the skill, what to expect of its result, and the files that it works on."""

    id: str
    prompt: str
    expected_output: str
    files: tuple[str, ...]
    assertions: tuple[str, ...]


class CaseProblem(NamedTuple):
    """A file of test cases, and why it or a part of it does not count."""

    file: str
    message: str

    def __str__(self) -> str:
        return f"{self.file}: {self.message}"


class SkillCases(NamedTuple):
    """The test cases of one skill; `problems` name what could not be read, `skill` the skill that a file is for."""

    queries: tuple[TriggerQuery, ...] = ()
    outputs: tuple[OutputCase, ...] = ()
    problems: tuple[CaseProblem, ...] = ()
    skill: str | None = None


class _Unusable(Exception):
    """A file of test cases that does not count, with the reason."""


class _Collected:
    """The cases of a skill as they are read, within the limits; a query that occurs twice counts once."""

    def __init__(self) -> None:
        self.queries: dict[str, TriggerQuery] = {}
        self.outputs: list[OutputCase] = []
        self.problems: list[CaseProblem] = []

    def add_queries(self, found: "Iterator[TriggerQuery | str]", origin: str) -> None:
        """Add queries; entries that are none are counted, and the first is named."""
        wrong: list[str] = []
        for item in found:
            if isinstance(item, str):
                wrong.append(item)
            elif (known := self.queries.get(item.query)) is not None:
                if known.should_trigger != item.should_trigger:
                    wrong.append(f"{_quoted(item.query)} both should and should not find the skill")
            elif len(self.queries) >= EVAL_QUERIES:
                wrong = [f"more than {EVAL_QUERIES:,} queries (EVAL_QUERIES); the others do not count"]
                break
            else:
                self.queries[item.query] = item
        if wrong:
            more = f", and {len(wrong) - 1:,} more entries do not count" if len(wrong) > 1 else ""
            self.problems.append(CaseProblem(origin, wrong[0] + more))

    def result(self) -> SkillCases:
        """Return the cases in the order in which they were read."""
        return SkillCases(tuple(self.queries.values()), tuple(self.outputs), tuple(self.problems))


def read_cases(skill_dir: str) -> SkillCases:
    """Return the test cases in a skill's folder and its `evals`, and in `evals/NAME` beside the folder of skills."""
    collected = _Collected()
    real = files.real_path(skill_dir)
    _read_folder(collected, real, (), with_tasks=False)
    _read_folder(collected, real, ("evals",), with_tasks=True)
    beside = f"{os.path.dirname(os.path.dirname(real))}/evals"
    # Where one folder has the skills and one beside it their tests, as waza lays out a repository.
    if files.kind_at(f"{beside}/{os.path.basename(real)}") == "folder":
        _read_folder(collected, beside, (os.path.basename(real),), with_tasks=True)
    return collected.result()


def read_queries(path: str) -> SkillCases:
    """Return the queries of a file that the user named; raise ConfigurationError if it cannot be read at all."""
    name = os.path.basename(path)
    try:
        data = files.read_file(path, limit=EVAL_FILE_BYTES, links="follow")
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from None
    collected = _Collected()
    try:
        if data is None:
            raise _Unusable(_TOO_LARGE)
        value = _parsed(name, data)
        collected.add_queries(_queries_in(value, path, unless_said=name == _OUTPUT_FILE or None), path)
    except _Unusable as problem:
        raise ConfigurationError(f"{path}: {problem}") from None
    members = [value.get(name) for name in ("skill", "skill_name")] if isinstance(value, dict) else []
    return collected.result()._replace(skill=next((name for name in members if isinstance(name, str)), None))


# Files --------------------------------------------------------------------------------------------

_TOO_LARGE = f"not a regular file of at most {EVAL_FILE_BYTES:,} bytes (EVAL_FILE_BYTES)"


def _read_folder(collected: _Collected, top: str, below: tuple[str, ...], *, with_tasks: bool) -> None:
    """Read all files of test cases directly in a folder, and the tasks below it."""
    try:
        with files.Folder(top) as folder:
            segments = folder.resolve(below)
            listed = set(folder.children(segments, links="inside"))
            readers = [(name, _read_query_list) for name in _QUERY_FILES if name in listed]
            if with_tasks:
                readers += [(_OUTPUT_FILE, _read_outputs)] if _OUTPUT_FILE in listed else []
                readers += [(name, _read_tasks) for name in _TASK_INDEX if name in listed]
            _note_others(collected, folder, segments, listed)
            for name, read in readers:
                _try(collected, folder, (*segments, name), read)
    except OSError as error:
        if below and not isinstance(error, FileNotFoundError | NotADirectoryError):
            collected.problems.append(CaseProblem("/".join(below), _why(error)))


def _note_others(collected: _Collected, folder: files.Folder, segments: tuple[str, ...], listed: set[str]) -> None:
    """Report what has the name of a file of test cases and is none: links out of the skill, folders, pipes."""
    for name in (*_QUERY_FILES, _OUTPUT_FILE):
        path = "/".join((*segments, name))
        if name not in listed and folder.kind(path) is not None:
            collected.problems.append(CaseProblem(path, "not a regular file inside the skill"))


_Reader = Callable[[_Collected, files.Folder, tuple[str, ...], Any], None]


def _try(collected: _Collected, folder: files.Folder, segments: tuple[str, ...], read: _Reader) -> None:
    path = "/".join(segments)
    try:
        value = _read(folder, segments)
        read(collected, folder, segments, value)
    except _Unusable as problem:
        collected.problems.append(CaseProblem(path, str(problem)))


def _read(folder: files.Folder, segments: Sequence[str]) -> Any:
    """Return the value of a JSON or YAML file; a link is followed if it stays inside the folder."""
    try:
        data = folder.read(folder.resolve(segments), limit=EVAL_FILE_BYTES).data
    except OSError as error:
        raise _Unusable(_why(error)) from None
    return _parsed(segments[-1], data)


def _why(error: OSError) -> str:
    if isinstance(error, files.TooLarge):
        return f"more than {EVAL_FILE_BYTES:,} bytes (EVAL_FILE_BYTES)"
    if isinstance(error, files.NotRegular | IsADirectoryError):
        return "not a regular file inside the skill"
    return f"cannot be read: {(error.strerror or str(error)).lower()}"


def _parsed(name: str, data: bytes) -> Any:
    """Return the value of a text; raise _Unusable if it is not valid JSON or YAML."""
    try:
        text = data.decode("utf-8-sig")
        if name.endswith((".yaml", ".yml")):
            return load_yaml(text, most_keys=EVAL_YAML_KEYS)
        return json.loads(text, object_pairs_hook=unique_members)
    except YamlProblem as problem:
        raise _Unusable(f"not valid YAML: {problem.message}, line {problem.line}") from None
    except RecursionError:
        raise _Unusable("nested too deep") from None
    except ValueError as error:
        raise _Unusable(f"not valid JSON: {cut(str(error), 120)}") from None


# Queries ------------------------------------------------------------------------------------------


def _read_query_list(collected: _Collected, folder: files.Folder, segments: tuple[str, ...], value: Any) -> None:
    origin = "/".join(segments)
    collected.add_queries(_queries_in(value, origin), origin)


def _queries_in(value: Any, origin: str, *, unless_said: bool | None = None) -> Iterator[TriggerQuery | str]:
    """Yield the queries of a list or of an object with lists, and a message for each entry that is none.

    `unless_said` is the verdict of an entry that has none of its own.
    """
    if isinstance(value, list):
        yield from (_query(item, f"[{n}]", origin, unless_said) for n, item in enumerate(value))
        return
    lists: list[tuple[str, bool | None]] = [(name, True) for name in _YES_LISTS]
    lists += [(name, False) for name in _NO_LISTS]
    lists += [(name, unless_said) for name in _ITEM_LISTS]
    found = [
        (name, verdict) for name, verdict in lists if isinstance(value, dict) and isinstance(value.get(name), list)
    ]
    if not found:
        known = f"{_YES_LISTS[0]}, {_NO_LISTS[0]}, {', '.join(_ITEM_LISTS[:3])}"
        raise _Unusable(f"must be a list of queries, or an object with such a list (as {known})")
    for name, verdict in found:
        for n, item in enumerate(value[name]):
            if isinstance(item, dict) and any(isinstance(item.get(inner), list) for inner in (*_YES_LISTS, *_NO_LISTS)):
                # A case for each skill, with both lists.
                yield from _queries_in(item, origin)
            else:
                yield _query(item, f"{name}[{n}]", origin, verdict)


def _query(item: Any, place: str, origin: str, verdict: bool | None) -> TriggerQuery | str:
    """Return one query, or what is wrong with it."""
    text = item if isinstance(item, str) else _first_text(item)
    if text is None or not text.strip():
        return f"{place} has no text (as a member `query`)"
    members = [item.get(name) for name in _VERDICTS] if isinstance(item, dict) else []
    said = [_WORDS.get(word, word) for word in members if isinstance(word, str | bool)]
    should = next((word for word in said if isinstance(word, bool)), verdict)
    if should is None:
        return f"{place} does not say whether the skill should be found (should_trigger: true or false)"
    return TriggerQuery(text.strip(), should, origin)


def _first_text(item: Any) -> str | None:
    if not isinstance(item, dict):
        return None
    return next((item[name] for name in _TEXTS if isinstance(item.get(name), str)), None)


def _quoted(text: str) -> str:
    return repr(cut(text, 60))


# Tasks --------------------------------------------------------------------------------------------


def _read_outputs(collected: _Collected, folder: files.Folder, segments: tuple[str, ...], value: Any) -> None:
    """Read `evals.json`: tasks with expected results, whose prompts should find the skill unless one says otherwise."""
    origin = "/".join(segments)
    collected.add_queries(_queries_in(value, origin, unless_said=True), origin)
    items = (
        value if isinstance(value, list) else next((v for v in map(value.get, _ITEM_LISTS) if isinstance(v, list)), [])
    )
    for n, item in enumerate(items):
        if len(collected.outputs) >= EVAL_OUTPUTS:
            collected.problems.append(CaseProblem(origin, f"more than {EVAL_OUTPUTS:,} tasks (EVAL_OUTPUTS)"))
            return
        prompt = _first_text(item)
        if prompt is not None and prompt.strip():
            collected.outputs.append(_output(item, prompt, n + 1))


def _output(item: Mapping[str, Any], prompt: str, number: int) -> OutputCase:
    said = item.get("id", number)
    expected = item.get("expected_output", "")
    return OutputCase(
        id=str(said) if isinstance(said, str | int) else str(number),
        prompt=prompt,
        expected_output=expected if isinstance(expected, str) else "",
        files=_texts(item.get("files")),
        assertions=_texts(item.get("assertions", item.get("expectations"))),
    )


def _texts(value: Any) -> tuple[str, ...]:
    """Return the texts of a list; an object counts by its member `text`."""
    items = value if isinstance(value, list) else []
    texts = [item.get("text") if isinstance(item, dict) else item for item in items]
    return tuple(text for text in texts if isinstance(text, str) and text.strip())


def _read_tasks(collected: _Collected, folder: files.Folder, segments: tuple[str, ...], value: Any) -> None:
    """Read the prompts of the tasks beside an `eval.yaml`, as waza has them."""
    del value
    below = (*segments[:-1], "tasks")
    try:
        names = [name for name in folder.children(folder.resolve(below)) if name.endswith((".yaml", ".yml"))]
    except FileNotFoundError:
        return
    except OSError as error:
        raise _Unusable(_why(error)) from None
    if len(names) > EVAL_TASK_FILES:
        message = f"more than {EVAL_TASK_FILES:,} tasks (EVAL_TASK_FILES); the others do not count"
        collected.problems.append(CaseProblem("/".join(below), message))
    for name in names[:EVAL_TASK_FILES]:
        _try(collected, folder, (*below, name), _read_task)


def _read_task(collected: _Collected, folder: files.Folder, segments: tuple[str, ...], value: Any) -> None:
    origin = "/".join(segments)
    inputs = value.get("inputs") if isinstance(value, dict) else None
    prompt = inputs.get("prompt") if isinstance(inputs, dict) else None
    if not isinstance(prompt, str) or not prompt.strip():
        raise _Unusable("a task has no prompt (inputs.prompt)")
    query = TriggerQuery(prompt.strip(), not _is_negative(value, segments[-1]), origin)
    collected.add_queries(iter([query]), origin)


def _is_negative(task: Mapping[str, Any], name: str) -> bool:
    """Return whether a task is one that the skill should not be found by: it, a grader, a tag or its name says so."""
    expected, tags, graders = task.get("expected"), task.get("tags"), task.get("graders")
    if isinstance(expected, dict) and isinstance(expected.get("should_trigger"), bool):
        return not expected["should_trigger"]
    for grader in graders if isinstance(graders, list) else []:
        if isinstance(grader, dict) and grader.get("type") == "trigger":
            settings = grader.get("config")
            mode = settings.get("mode") if isinstance(settings, dict) else grader.get("mode")
            return mode == "negative"
    if isinstance(tags, list) and any(tag in _NEGATIVE_TAGS for tag in tags if isinstance(tag, str)):
        return True
    return name.startswith(("should-not-trigger", "should_not_trigger"))
