"""Let a model do the tasks of a skill with and without the skill, and grade what it made. Needs the extra `eval`."""

import asyncio
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from skillshelf.adapters.agent import usable_model
from skillshelf.catalog.tree import is_portable
from skillshelf.core import files
from skillshelf.core.limits import (
    DESCRIPTION_SHOWN,
    EVAL_JUDGE_SECONDS,
    EVAL_JUDGED_CHARS,
    EVAL_WORK_BYTES,
    EVAL_WORK_FILES,
)
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import cut, visible
from skillshelf.core.values import Catalog, CatalogSkill
from skillshelf.errors import SkillError
from skillshelf.evals.assertions import (
    JUDGE_INSTRUCTIONS,
    AssertionVerdict,
    Product,
    checked,
    is_by_code,
    judge_prompt,
    judge_verdict,
)
from skillshelf.evals.benchmark import CONFIGURATIONS, Configuration, NumberedCase, OutputRun, ResultFolder
from skillshelf.evals.model_runs import (
    TRIGGER_THRESHOLD,
    UNAVAILABLE,
    ModelAnswer,
    ModelOptions,
    RunFailure,
    ask_model,
    attempted,
    check_runs,
    end_session,
    gather,
    host_tools,
    open_session,
)
from skillshelf.session.threads import in_thread
from skillshelf.shelf import Shelf

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from skillshelf.core.json_types import EvalConfigurationForm, EvalOutputForm
    from skillshelf.evals.cases import OutputCase

__all__ = ["CaseRuns", "OutputWork", "check_outputs", "most_output_requests", "run_outputs"]

OutputWork = Sequence[tuple[CatalogSkill, Sequence["OutputCase"]]]
"""Each skill with its tasks."""


class CaseRuns(NamedTuple):
    """All runs of one task."""

    case: "OutputCase"
    runs: tuple[OutputRun, ...]

    @property
    def outcome(self) -> Literal["pass", "fail", "error"]:
        """The outcome with the skill: each assertion must hold in enough of the runs in which it was decided."""
        with_skill = [run for run in self.runs if run.configuration == "with_skill" and run.verdicts]
        if not with_skill:
            return "error"
        columns = zip(*([verdict.passed for verdict in run.verdicts] for run in with_skill), strict=True)
        decided = [[passed for passed in column if passed is not None] for column in columns]
        if any(column and sum(column) / len(column) < TRIGGER_THRESHOLD for column in decided):
            return "fail"
        return "pass" if all(decided) else "error"

    def to_dict(self) -> "EvalOutputForm":
        """Return the JSON form."""
        with_skill, without_skill = (
            _configuration_form([run for run in self.runs if run.configuration == configuration])
            for configuration in CONFIGURATIONS
        )
        return {
            "id": self.case.id,
            "prompt": self.case.prompt,
            "outcome": self.outcome,
            "with_skill": with_skill,
            "without_skill": without_skill,
        }


def _configuration_form(runs: Sequence[OutputRun]) -> "EvalConfigurationForm":
    done = [(run, run.answer) for run in runs if isinstance(run.answer, ModelAnswer)]
    rates = [run.pass_rate for run in runs if run.pass_rate is not None]
    failures = [run.answer.detail for run in runs if isinstance(run.answer, RunFailure)]
    undecided = [verdict.evidence for run in runs for verdict in run.verdicts if verdict.passed is None]
    return {
        "runs": len(runs),
        "errors": len(failures),
        "passed": sum(run.passed for run in runs),
        "failed": sum(run.failed for run in runs),
        "unjudged": sum(run.unjudged for run in runs),
        "pass_rate": sum(rates) / len(rates) if rates else None,
        "time_seconds": round(sum(run.seconds for run, _ in done) / len(done), 3) if done else None,
        "tokens": sum(answer.tokens for _, answer in done) / len(done) if done else None,
        "details": list(dict.fromkeys([*failures, *undecided])),
    }


def statements_of(case: "OutputCase") -> tuple[str, ...]:
    """Return what a result must fulfil: the assertions, or the expected output where there are none."""
    if case.assertions or not case.expected_output.strip():
        return case.assertions
    return (f"The result is as expected: {case.expected_output.strip()}",)


def most_output_requests(work: OutputWork, options: ModelOptions) -> int:
    """Return the number of requests to models that `run_outputs` makes at most, those of the judge included."""
    cases = [case for _, found in work for case in found]
    judged = sum(not is_by_code(statement) for case in cases for statement in statements_of(case))
    return (len(cases) * options.limits.requests + judged) * options.runs * len(CONFIGURATIONS)


def check_outputs(judge: "Model | str | None", output: str) -> None:
    """Raise ConfigurationError if a judge or a folder for the results cannot be used."""
    if judge is not None:
        usable_model(judge)
    ResultFolder.at(output)


def run_outputs(
    shelf: Shelf, work: OutputWork, options: ModelOptions, *, judge: "Model | str | None" = None, output: str
) -> list[list[CaseRuns]]:
    """Run every task with and without its skill; return the runs of each skill's tasks, in the order of `work`.

    `judge` is the model that judges assertions, by default the one that does the tasks. The results are written to
    `output`, a folder that is empty or has earlier results. `options.journals` does not count: the journal of a run is
    in its folder. Raise ConfigurationError if a model or the folder cannot be used.
    """
    models = usable_model(options.model), usable_model(judge if judge is not None else options.model)
    check_runs(options.runs)
    results = ResultFolder.at(output)
    return [_run_skill(shelf, skill, cases, options, models, results) for skill, cases in work]


def _run_skill(
    shelf: Shelf,
    skill: CatalogSkill,
    cases: "Sequence[OutputCase]",
    options: ModelOptions,
    models: "tuple[Model, Model]",
    results: ResultFolder,
) -> list[CaseRuns]:
    model, judge = models
    iteration = results.new_iteration(skill)
    numbered = NumberedCase.of(cases)
    shelves: dict[Configuration, Shelf] = {"with_skill": shelf, "without_skill": ShelfWithout(shelf, skill)}

    async def play(numbered_case: NumberedCase, configuration: Configuration, number: int) -> OutputRun:
        case = numbered_case.case
        folder = await in_thread(lambda: iteration.new_run(numbered_case, configuration, number))
        task = _TaskRun(model, shelves[configuration], skill, case, options, f"{folder}/journal.jsonl")
        run = await task.run(configuration, number)
        if isinstance(run.answer, ModelAnswer):
            verdicts = [await _verdict(judge, case, text, run.product, shelf) for text in statements_of(case)]
            run = run._replace(verdicts=tuple(verdicts))
        await in_thread(lambda: iteration.write_run(folder, run))
        return run

    plan = [(case, one, n) for case in numbered for one in CONFIGURATIONS for n in range(1, options.runs + 1)]
    calls = [lambda planned=planned: play(*planned) for planned in plan]
    found = asyncio.run(gather(calls, options, f"doing the tasks of {skill.name}"))
    each = len(CONFIGURATIONS) * options.runs
    done = [CaseRuns(case, tuple(found[n * each : (n + 1) * each])) for n, case in enumerate(cases)]
    names = [str(getattr(one, "model_name", one)) for one in models]
    runs = [(case, run) for case, made in zip(numbered, done, strict=True) for run in made.runs]
    iteration.write_benchmark(runs, options, names)
    return done


class ShelfWithout(Shelf):
    """A shelf on which one skill is not there; it follows the shelf below."""

    def __init__(self, base: Shelf, skill: CatalogSkill) -> None:
        super().__init__(base.environment, base.profile, base.settings, base.trust, use_cache=False, scorer=base.scorer)
        self._base = base
        self._path = skill.path

    def scan(self, *, account: bool = False) -> Catalog:
        """Return the catalog of the shelf below without the skill; `account` has no effect here."""
        found = self._base.catalog
        return found._replace(skills=tuple(skill for skill in found.skills if skill.path != self._path))

    def refresh(self, *, sources_after: float = 0.0) -> bool:
        """Refresh the shelf below; return True if the catalog has changed."""
        before = self.catalog
        self._base.refresh(sources_after=sources_after)
        self._catalog = self.scan()
        return before != self._catalog


# One run ------------------------------------------------------------------------------------------


class _TaskRun(NamedTuple):
    """The inputs of one run."""

    model: "Model"
    shelf: Shelf
    skill: CatalogSkill
    case: "OutputCase"
    options: ModelOptions
    journal: str

    async def run(self, configuration: Configuration, number: int) -> OutputRun:
        """Do the task once."""
        try:
            given = await in_thread(lambda: _input_files(self.skill, self.case.files))
            # The instructions are in the prompt: this measures what the skill does, not whether it is found.
            preload = [self.skill.name] if configuration == "with_skill" else []
            session = await in_thread(lambda: open_session(self.shelf, self.journal, self.options, preload=preload))
        except SkillError as error:
            return OutputRun(configuration, number, RunFailure(str(error)))
        folder = WorkingFolder(given)
        limits, began = self.options.limits, time.monotonic()
        asked = ask_model(self.model, session, self._prompt(given), host_tools(session, folder.call), limits)
        answer = await attempted(asked, limits.seconds, self.shelf.environment.env)
        seconds = time.monotonic() - began
        await in_thread(lambda: end_session(session, answer))
        text = answer.text if isinstance(answer, ModelAnswer) else ""
        return OutputRun(configuration, number, answer, seconds, Product(text, folder.files))

    def _prompt(self, given: Iterable[str]) -> str:
        names = ", ".join(sorted(given))
        return f"{self.case.prompt}\n\nFiles in the working folder: {names}" if names else self.case.prompt


def _input_files(skill: CatalogSkill, paths: Sequence[str]) -> dict[str, bytes]:
    """Return the files of a task by their names in the working folder; raise SkillError if one is not there."""
    if len(paths) > EVAL_WORK_FILES:
        raise SkillError(f"a task has at most {EVAL_WORK_FILES:,} files (EVAL_WORK_FILES)")
    names = [os.path.basename(os.path.normpath(path)) for path in paths]
    # Tasks speak of a file by its name; where two have the same, by its path.
    chosen = names if len(set(names)) == len(names) else [os.path.normpath(path).lstrip("./") for path in paths]
    return {name: _input_file(skill, path) for name, path in zip(chosen, paths, strict=True)}


def _input_file(skill: CatalogSkill, path: str) -> bytes:
    segments = [part for part in path.split("/") if part not in ("", ".")]
    with files.Folder(skill.real_dir) as folder:
        # Some write the path from the skill's folder, some from the folder of the test cases.
        for start in ([], ["evals"]):
            try:
                return folder.read(folder.resolve([*start, *segments]), limit=EVAL_WORK_BYTES).data
            except (FileNotFoundError, NotADirectoryError):
                continue
            except (OSError, IndexError) as error:
                why = f"it has more than {EVAL_WORK_BYTES:,} bytes" if isinstance(error, files.TooLarge) else "no file"
                raise SkillError(f"the file {path} of the task cannot be used: {why}") from None
    raise SkillError(f"the file {path} of the task is not in the skill's folder")


class WorkingFolder:
    """The working folder of a run, in memory: nothing that a model writes touches the disk of the user."""

    def __init__(self, given: Mapping[str, bytes]) -> None:
        self.files = dict(given)

    def call(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """Answer a call of a host tool."""
        if tool not in ("Read", "Write"):
            return UNAVAILABLE.format(tool)
        given = str(arguments.get("file_path", "")).strip() or "."
        path = os.path.normpath(given)
        if path.startswith("/") or path.split("/")[0] == "..":
            return f"Error: {given} is outside the working folder; use a relative path"
        return self._read(path) if tool == "Read" else self._write(path, str(arguments.get("content", "")))

    def _read(self, path: str) -> str:
        if path == ".":
            return "\n".join(sorted(self.files)) or "(the working folder is empty)"
        data = self.files.get(path)
        if data is None:
            return f"Error: there is no {path}; the working folder has: {', '.join(sorted(self.files)) or 'no file'}"
        return cut(data.decode("utf-8", "replace"), EVAL_JUDGED_CHARS)

    def _write(self, path: str, content: str) -> str:
        data = content.encode("utf-8", "replace")
        parts = path.split("/")
        above = {"/".join(parts[:n]) for n in range(1, len(parts))}
        if path == "." or above & self.files.keys() or any(known.startswith(f"{path}/") for known in self.files):
            return f"Error: {path} cannot be a file: there is a folder or a file in its place"
        if not is_portable(path):
            return f"Error: {cut(visible(path), DESCRIPTION_SHOWN)} cannot be the name of a file"
        if len(data) > EVAL_WORK_BYTES or (path not in self.files and len(self.files) >= EVAL_WORK_FILES):
            return f"Error: the working folder takes {EVAL_WORK_FILES} files of {EVAL_WORK_BYTES:,} bytes each"
        self.files[path] = data
        return f"wrote {len(data):,} bytes to {path}"


# The judge ----------------------------------------------------------------------------------------


async def _verdict(
    judge: "Model", case: "OutputCase", statement: str, product: Product, shelf: Shelf
) -> AssertionVerdict:
    if is_by_code(statement):
        return await in_thread(lambda: checked(statement, product))
    asked = _ask_judge(judge, judge_prompt(case, statement, product))
    answer = await attempted(asked, EVAL_JUDGE_SECONDS, shelf.environment.env)
    if isinstance(answer, RunFailure):
        return AssertionVerdict(statement, None, f"the judge failed: {answer.detail}")
    return judge_verdict(statement, answer.text)


async def _ask_judge(judge: "Model", prompt: str) -> ModelAnswer:
    from pydantic_ai import Agent, UsageLimits

    agent = Agent(judge, instructions=JUDGE_INSTRUCTIONS, retries=0)
    result = await agent.run(prompt, usage_limits=UsageLimits(request_limit=1))
    return ModelAnswer(result.output, result.usage.total_tokens, {})
