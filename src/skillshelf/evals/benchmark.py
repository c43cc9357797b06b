"""Write the results of tasks as files that viewers of other programs read.

`OUTPUT/SKILL/iteration-N` has `benchmark.json` and one folder `eval-ID/CONFIGURATION/run-N` for each run, with
`grading.json`, `timing.json`, `eval_metadata.json`, the journal, and what the run made in `outputs`.
"""

import os
import re
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, Literal

from skillshelf.catalog.rules import NAME_FORMS
from skillshelf.catalog.tree import folded_path
from skillshelf.core import disk_writes, files
from skillshelf.core.console import as_json
from skillshelf.core.records import NamedTuple
from skillshelf.core.values import CatalogSkill
from skillshelf.errors import ConfigurationError
from skillshelf.evals.assertions import AssertionVerdict, Product
from skillshelf.evals.model_runs import ModelAnswer, ModelOptions, RunFailure

if TYPE_CHECKING:
    from skillshelf.evals.cases import OutputCase

__all__ = ["CONFIGURATIONS", "Configuration", "Iteration", "NumberedCase", "OutputRun", "ResultFolder"]

MARKER = "skillshelf-eval.json"
"""The file by which a folder is known as one of results."""

Configuration = Literal["with_skill", "without_skill"]

CONFIGURATIONS: tuple[Configuration, ...] = ("with_skill", "without_skill")

_ITERATION = re.compile(r"iteration-([0-9]{1,9})/?")


class OutputRun(NamedTuple):
    """One run of a task: the answer or why there is none, the time, what was made, and the verdicts about it."""

    configuration: Configuration
    number: int
    answer: ModelAnswer | RunFailure
    seconds: float = 0.0
    product: Product = Product("", {})
    verdicts: tuple[AssertionVerdict, ...] = ()

    @property
    def passed(self) -> int:
        """The number of assertions that hold."""
        return sum(verdict.passed is True for verdict in self.verdicts)

    @property
    def failed(self) -> int:
        """The number of assertions that do not hold."""
        return sum(verdict.passed is False for verdict in self.verdicts)

    @property
    def unjudged(self) -> int:
        """The number of assertions that could not be decided; they count neither as passed nor as failed."""
        return sum(verdict.passed is None for verdict in self.verdicts)

    @property
    def pass_rate(self) -> float | None:
        """The share of the decided assertions that hold; None for a failed run, or if none was decided."""
        decided = self.passed + self.failed
        return self.passed / decided if decided else None


class NumberedCase(NamedTuple):
    """A task and its number, by which viewers sort."""

    number: int
    case: "OutputCase"

    @classmethod
    def of(cls, cases: "Sequence[OutputCase]") -> "list[NumberedCase]":
        """Return the tasks with their ids where these are different numbers, else counted from 1."""
        ids = [case.id for case in cases]
        plain = all(id_.isascii() and id_.isdecimal() and len(id_) < 10 for id_ in ids)
        if plain and len({int(id_) for id_ in ids}) == len(ids):
            return [cls(int(case.id), case) for case in cases]
        return [cls(n, case) for n, case in enumerate(cases, 1)]


class ResultFolder(NamedTuple):
    """A folder for results, which was empty or has earlier ones; nothing in it is ever replaced."""

    path: str

    @classmethod
    def at(cls, path: str) -> "ResultFolder":
        """Return the folder, made and marked if need be; raise ConfigurationError if it holds something else."""
        folder = os.path.abspath(path)
        try:
            disk_writes.make_parents(folder)
            names = _names(folder)
            if names and MARKER not in names:
                raise ConfigurationError(f"{folder} holds something else; name a new folder for the results")
            if not names:
                _write(folder, MARKER, {"format": 1})
        except OSError as error:
            raise ConfigurationError(f"{folder} cannot be used: {(error.strerror or str(error)).lower()}") from None
        return cls(folder)

    def new_iteration(self, skill: CatalogSkill) -> "Iteration":
        """Return the folder for new results of a skill."""
        above = os.path.join(self.path, NAME_FORMS["slug"](skill.name) or "skill")
        disk_writes.make_parents(above)
        used = [int(match[1]) for name in _names(above) if (match := _ITERATION.fullmatch(name))]
        folder = os.path.join(above, f"iteration-{max(used, default=0) + 1}")
        disk_writes.make_parents(folder)
        return Iteration(folder, skill)


class Iteration(NamedTuple):
    """The folder of the results of one skill."""

    path: str
    skill: CatalogSkill

    def new_run(self, numbered: NumberedCase, configuration: Configuration, number: int) -> str:
        """Make the folder of a run."""
        above = os.path.join(self.path, f"eval-{numbered.number}")
        folder = os.path.join(above, configuration, f"run-{number}")
        disk_writes.make_parents(os.path.join(folder, "outputs"))
        case = numbered.case
        about = {"eval_id": numbered.number, "eval_name": case.id, "prompt": case.prompt}
        for place in (above, folder):
            _write(place, "eval_metadata.json", {**about, "assertions": list(case.assertions)})
        return folder

    def write_run(self, folder: str, run: OutputRun) -> None:
        """Write what a run made and its grades; a run without an answer has no grades.

        Raise ConfigurationError if the disk does not take it.
        """
        try:
            if isinstance(run.answer, ModelAnswer):
                self._write_graded(folder, run, run.answer)
            else:
                _write(folder, "error.json", {"error": run.answer.detail})
        except OSError as error:
            raise ConfigurationError(f"{folder} cannot be written: {(error.strerror or str(error)).lower()}") from None

    def _write_graded(self, folder: str, run: OutputRun, answer: ModelAnswer) -> None:
        outputs = os.path.join(folder, "outputs")
        for path, data in run.product.files.items():
            disk_writes.write_new(os.path.join(outputs, path), data, mode=0o644)
        taken = {folded_path(path.partition("/")[0]) for path in run.product.files}
        name = next(name for name in _answer_names() if name not in taken)
        disk_writes.write_new(os.path.join(outputs, name), answer.text.encode("utf-8", "replace"), mode=0o644)
        _write(folder, "grading.json", _grading(run, answer))
        seconds = round(run.seconds, 3)
        duration = {"duration_ms": round(run.seconds * 1000), "total_duration_seconds": seconds}
        _write(folder, "timing.json", {"total_tokens": answer.tokens, **duration})

    def write_benchmark(
        self, runs: Sequence[tuple[NumberedCase, OutputRun]], options: ModelOptions, models: Sequence[str]
    ) -> None:
        """Write the summary of all runs; one that failed counts nowhere and is named in the notes."""
        graded = [run for _, run in runs if run.pass_rate is not None]
        summary: dict[str, dict[str, dict[str, float]]] = {
            configuration: _statistics([run for run in graded if run.configuration == configuration])
            for configuration in CONFIGURATIONS
        }
        metadata = {
            "skill_name": self.skill.name,
            "skill_path": self.skill.dir,
            "executor_model": models[0],
            "analyzer_model": models[1],
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "evals_run": sorted({numbered.number for numbered, _ in runs}),
            "runs_per_configuration": options.runs,
        }
        notes = [note for numbered, run in runs for note in _notes(numbered, run)]
        rows = [_row(numbered, run) for numbered, run in runs if run.pass_rate is not None]
        whole = {"metadata": metadata, "runs": rows, "run_summary": {**summary, "delta": _delta(summary)}}
        _write(self.path, "benchmark.json", {**whole, "notes": notes})


def _answer_names() -> Iterator[str]:
    """Yield names for the file of the answer, of which a run may have made some itself."""
    yield "answer.md"
    yield "final-answer.md"
    yield from (f"final-answer-{n}.md" for n in count(2))


def _notes(numbered: NumberedCase, run: OutputRun) -> Iterator[str]:
    """Yield what went wrong in a run, which no number of the summary shows."""
    where = f"eval {numbered.number}, {run.configuration}, run {run.number}"
    if isinstance(run.answer, RunFailure):
        yield f"{where} ended in an error: {run.answer.detail}"
    for verdict in run.verdicts:
        if verdict.passed is None:
            yield f"{where}: {verdict.text!r} was not decided: {verdict.evidence}"


def _row(numbered: NumberedCase, run: OutputRun) -> dict[str, Any]:
    assert isinstance(run.answer, ModelAnswer)
    cost = {"time_seconds": round(run.seconds, 3), "tokens": run.answer.tokens}
    return {
        "eval_id": numbered.number,
        "eval_name": numbered.case.id,
        "configuration": run.configuration,
        "run_number": run.number,
        "result": {**_summary(run), **cost, "tool_calls": sum(run.answer.calls.values())},
        "expectations": _decided(run),
        "notes": [],
    }


def _grading(run: OutputRun, answer: ModelAnswer) -> dict[str, Any]:
    """Return `grading.json`. It has no `timing`: readers then take time and tokens from `timing.json`."""
    decided = _decided(run)
    undecided = [{"text": one.text, "evidence": one.evidence} for one in run.verdicts if one.passed is None]
    metrics = {
        "tool_calls": dict(sorted(answer.calls.items())),
        "total_tool_calls": sum(answer.calls.values()),
        "errors_encountered": len(undecided),
        "output_chars": len(answer.text),
    }
    # One program reads `expectations`, the guide of the format says `assertion_results`.
    grades = {"assertion_results": decided, "expectations": decided, "undecided": undecided}
    return {**grades, "summary": _summary(run), "execution_metrics": metrics}


def _summary(run: OutputRun) -> dict[str, Any]:
    rate = 0.0 if run.pass_rate is None else round(run.pass_rate, 4)
    counts = {"passed": run.passed, "failed": run.failed, "total": run.passed + run.failed}
    return {**counts, "pass_rate": rate, "errors": run.unjudged}


def _decided(run: OutputRun) -> list[dict[str, Any]]:
    return [verdict._asdict() for verdict in run.verdicts if verdict.passed is not None]


def _statistics(runs: Sequence[OutputRun]) -> dict[str, dict[str, float]]:
    values: dict[str, list[float]] = {
        "pass_rate": [run.pass_rate for run in runs if run.pass_rate is not None],
        "time_seconds": [run.seconds for run in runs],
        "tokens": [run.answer.tokens for run in runs if isinstance(run.answer, ModelAnswer)],
    }
    return {name: _spread(found) for name, found in values.items()}


def _spread(values: Sequence[float]) -> dict[str, float]:
    """Return mean, standard deviation of a sample, least and most; zeros if there are no values."""
    if not values:
        return dict.fromkeys(("mean", "stddev", "min", "max"), 0.0)
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    spread = {"mean": statistics.fmean(values), "stddev": deviation, "min": min(values), "max": max(values)}
    return {name: round(value, 4) for name, value in spread.items()}


def _delta(summary: Mapping[str, Mapping[str, Mapping[str, float]]]) -> dict[str, str]:
    """Return the differences of the means as texts with a sign, which is how readers show them."""

    def difference(name: str) -> float:
        return summary["with_skill"][name]["mean"] - summary["without_skill"][name]["mean"]

    forms = {"pass_rate": "+.2f", "time_seconds": "+.1f", "tokens": "+.0f"}
    return {name: format(difference(name), form) for name, form in forms.items()}


def _names(folder: str) -> list[str]:
    with files.Folder(files.real_path(folder)) as opened:
        return opened.children((), links="inside")


def _write(folder: str, name: str, value: Mapping[str, Any]) -> None:
    disk_writes.replace_file(os.path.join(folder, name), as_json(value).encode(), mode=0o644, durable=False)
