"""Run the queries of skills with a model, and measure how often it loads the right skill.

A run is one session with the catalog, system prompt and tools of the profile, and one journal. Needs the extra `eval`.
"""

import asyncio
import os
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, TextIO, TypeVar

from skillshelf.adapters.agent import cut_reason, usable_model
from skillshelf.core import disk_writes, files
from skillshelf.core.console import Progress, as_json
from skillshelf.core.limits import (
    DESCRIPTION_SHOWN,
    EVAL_CONCURRENT_RUNS,
    EVAL_RUN_REQUESTS,
    EVAL_RUN_SECONDS,
    EVAL_RUN_TOKENS,
    EVAL_RUN_TOOL_CALLS,
    EVAL_RUNS,
)
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import cut, visible
from skillshelf.core.values import CatalogSkill
from skillshelf.errors import ConfigurationError, SkillError
from skillshelf.evals.trigger_grades import INDEX_FILE, RUN_FAILED, RunGrade, TriggerWatch, grade_journal
from skillshelf.session.threads import in_thread

if TYPE_CHECKING:
    from pydantic_ai.models import Model
    from pydantic_ai.tools import Tool

    from skillshelf.core.json_types import EvalModelForm
    from skillshelf.evals.cases import TriggerQuery
    from skillshelf.session.policy import Policy
    from skillshelf.session.session import Session
    from skillshelf.shelf import Shelf

__all__ = [
    "TRIGGER_THRESHOLD",
    "ModelLimits",
    "ModelOptions",
    "ModelRun",
    "QueryRuns",
    "TriggerWork",
    "most_requests",
    "run_model",
]

TRIGGER_THRESHOLD = 0.5
"""The share of completed runs from which on a skill counts as triggered."""

INSTRUCTIONS = "You are a helpful assistant with tools. Do what the user asks for."

CLIENT = "skillshelf eval"
"""The client in the journals of runs."""


class ModelLimits(NamedTuple):
    """The limits of one run; a run that reaches one has ended in an error."""

    requests: int = EVAL_RUN_REQUESTS
    tool_calls: int = EVAL_RUN_TOOL_CALLS
    tokens: int = EVAL_RUN_TOKENS
    seconds: float = EVAL_RUN_SECONDS


class ModelOptions(NamedTuple):
    """How runs are made: the model, the number of runs of each case, and where their journals are kept.

    `model` is any model that pydantic-ai accepts: a name or a model object. Without `journals`, a folder that is empty
    or does not exist yet, the journals are removed when they are graded. With `keep` each has its inputs beside it, so
    that it can be replayed where the skills are changed. If `progress` is a terminal, it shows a bar.
    """

    model: "Model | str"
    runs: int = 3
    journals: str | None = None
    keep: bool = False
    limits: ModelLimits = ModelLimits()
    concurrent: int = EVAL_CONCURRENT_RUNS
    policy: "Policy | Mapping[str, Any] | str | None" = None
    progress: TextIO | None = None


class ModelRun(NamedTuple):
    """One run of a query: its grade, and its journal if that is kept."""

    grade: RunGrade
    journal: str | None


class QueryRuns(NamedTuple):
    """All runs of one query for one skill."""

    query: str
    should_trigger: bool
    runs: tuple[ModelRun, ...]

    @property
    def triggered(self) -> int:
        """The number of runs in which the model loaded the skill."""
        return sum(run.grade.outcome == "triggered" for run in self.runs)

    @property
    def errors(self) -> int:
        """The number of runs that ended in an error; they count neither for the skill nor against it."""
        return sum(run.grade.outcome == "error" for run in self.runs)

    @property
    def rate(self) -> float | None:
        """The share of completed runs in which the model loaded the skill; None if no run was completed."""
        completed = len(self.runs) - self.errors
        return self.triggered / completed if completed else None

    @property
    def outcome(self) -> Literal["pass", "fail", "error"]:
        """The outcome of the query; `error` if no run was completed."""
        if self.rate is None:
            return "error"
        return "pass" if (self.rate >= TRIGGER_THRESHOLD) == self.should_trigger else "fail"

    def to_dict(self) -> "EvalModelForm":
        """Return the JSON form."""
        loaded = [name for run in self.runs for name in dict.fromkeys(run.grade.loaded)]
        details = dict.fromkeys(run.grade.detail for run in self.runs if run.grade.detail)
        return {
            "runs": len(self.runs),
            "triggered": self.triggered,
            "errors": self.errors,
            "rate": self.rate,
            "outcome": self.outcome,
            "loaded": {name: loaded.count(name) for name in sorted(set(loaded))},
            "details": list(details),
            "journals": [run.journal for run in self.runs if run.journal is not None],
        }


TriggerWork = Sequence[tuple[CatalogSkill, Sequence["TriggerQuery"]]]
"""Each skill with its queries."""


def most_requests(work: TriggerWork, options: ModelOptions) -> int:
    """Return the number of requests to the model that `run_model` makes at most."""
    return sum(len(queries) for _, queries in work) * options.runs * options.limits.requests


def run_model(shelf: "Shelf", work: TriggerWork, options: ModelOptions) -> list[list[QueryRuns]]:
    """Run every query with the model; return the runs of each skill's queries, in the order of `work`.

    Raise ConfigurationError if the model cannot be used, or the folder for the journals is not empty. Whatever a model
    does is an outcome.
    """
    model = usable_model(options.model)
    check_runs(options.runs)
    with ExitStack() as at_end:
        folder = journal_folder(options.journals, at_end)
        cases = [(skill, query) for skill, queries in work for query in queries]
        plan = [
            _PlannedRun(f"query-{n:04}-run-{run}.jsonl", skill, query)
            for n, (skill, query) in enumerate(cases, 1)
            for run in range(1, options.runs + 1)
        ]

        async def play(planned: _PlannedRun) -> ModelRun:
            journal = os.path.join(folder, planned.journal)
            grade = await _trigger_run(model, shelf, planned.skill, planned.query.query, journal, options)
            return ModelRun(grade, journal if options.journals is not None else None)

        # Written first, so that an interrupted evaluation leaves journals that can be graded.
        _write_index(folder, plan)
        calls = [lambda planned=planned: play(planned) for planned in plan]
        found = iter(asyncio.run(gather(calls, options, "asking the model")))
    return [
        [QueryRuns(query.query, query.should_trigger, tuple(islice(found, options.runs))) for query in queries]
        for _, queries in work
    ]


class _PlannedRun(NamedTuple):
    """A run to be made, with the name of its journal."""

    journal: str
    skill: CatalogSkill
    query: "TriggerQuery"


def check_runs(runs: int) -> None:
    """Raise ConfigurationError for a number of runs that cannot be made."""
    if not 1 <= runs <= EVAL_RUNS:
        raise ConfigurationError(f"a case can be run 1 to {EVAL_RUNS} times (EVAL_RUNS), not {runs:,}")


# Journals -----------------------------------------------------------------------------------------


def journal_folder(wanted: str | None, at_end: ExitStack) -> str:
    """Return a folder for journals: the wanted one, or one that is removed at the end."""
    if wanted is None:
        temporary = disk_writes.make_private_folder("skillshelf-eval-")
        at_end.callback(disk_writes.remove_folder, temporary)
        return temporary
    folder = os.path.abspath(wanted)
    try:
        disk_writes.make_parents(folder)
        with files.Folder(files.real_path(folder)) as opened:
            names = opened.children((), links="inside")
    except OSError as error:
        raise ConfigurationError(f"{folder} cannot be used for journals: {(error.strerror or '').lower()}") from None
    if names:
        raise ConfigurationError(f"{folder} is not empty; name a new folder for the journals")
    return folder


def _write_index(folder: str, plan: Iterable[_PlannedRun]) -> None:
    runs = [
        {
            "journal": run.journal,
            "skill": run.skill.name,
            "path": run.skill.path,
            "query": run.query.query,
            "should_trigger": run.query.should_trigger,
        }
        for run in plan
    ]
    disk_writes.replace_file(os.path.join(folder, INDEX_FILE), as_json({"runs": runs}).encode(), durable=False)


# One run ------------------------------------------------------------------------------------------

Result = TypeVar("Result")


async def gather(
    calls: "Sequence[Callable[[], Awaitable[Result]]]", options: ModelOptions, label: str
) -> "list[Result]":
    """Return the results of all calls in their order; a limited number runs at one time. Raise what one raises."""
    places = asyncio.Semaphore(max(1, min(options.concurrent, EVAL_CONCURRENT_RUNS)))
    with Progress(label, len(calls), options.progress) as bar:

        async def in_turn(call: "Callable[[], Awaitable[Result]]") -> "Result":
            async with places:
                result = await call()
            bar.advance()
            return result

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(in_turn(call)) for call in calls]
        except ExceptionGroup as failed:
            # One reason is enough for a person; the others are mostly the same.
            raise failed.exceptions[0] from None
    return [task.result() for task in tasks]


async def _trigger_run(
    model: "Model", shelf: "Shelf", skill: CatalogSkill, query: str, journal: str, options: ModelOptions
) -> RunGrade:
    watch = TriggerWatch(skill.path)
    try:
        session = await in_thread(lambda: open_session(shelf, journal, options, on_event=watch.take))
    except SkillError as error:
        return RunGrade("error", str(error))
    # Once the skill is loaded the outcome is decided, and further requests would only cost.
    asked = ask_model(model, session, query, unavailable_tools(session), options.limits, lambda: watch.is_triggered)
    answer = await attempted(asked, options.limits.seconds, shelf.environment.env)
    await in_thread(lambda: end_session(session, answer))
    return await in_thread(lambda: grade_journal(journal, skill.path))


class ModelAnswer(NamedTuple):
    """The text with which a model answered, the tokens of all its requests, and its tool calls by name."""

    text: str
    tokens: int
    calls: Mapping[str, int]


class RunFailure(NamedTuple):
    """A run that gave no answer, with the reason."""

    detail: str


def open_session(shelf: "Shelf", journal: str, options: ModelOptions, **more: Any) -> "Session":
    """Return the session of one run."""
    return shelf.session(options.policy, journal=journal, keep=options.keep, client=CLIENT, **more)


def end_session(session: "Session", answer: ModelAnswer | RunFailure) -> None:
    """Close the session of a run; its journal says if the run failed."""
    if isinstance(answer, RunFailure):
        session.warn(RUN_FAILED, answer.detail)
    session.close()


async def ask_model(
    model: "Model",
    session: "Session",
    prompt: str,
    tools: "Sequence[Tool[None]]",
    limits: ModelLimits,
    is_enough: Callable[[], bool] = lambda: False,
) -> ModelAnswer:
    """Return the answer of a model with the skills of a session, which may make any number of tool calls first.

    It is asked no more once `is_enough`. Raise what the framework and the model raise.
    """
    from pydantic_ai import Agent, ModelResponse, ToolCallPart, UsageLimits

    from skillshelf.adapters.pydantic_ai import SkillToolset

    skills = SkillToolset(session, instructions=lambda: session.system_prompt(INSTRUCTIONS))
    # A call of an unknown tool is answered with the names of the others, and costs a request: their number is limited.
    agent = Agent(model, toolsets=[skills], tools=tools, retries=limits.requests)
    bounds = UsageLimits(
        request_limit=limits.requests, tool_calls_limit=limits.tool_calls, total_tokens_limit=limits.tokens
    )
    async with agent.iter(prompt, usage_limits=bounds) as run:
        async for _ in run:
            if is_enough():
                break
        responses = [message for message in run.all_messages() if isinstance(message, ModelResponse)]
        calls = [part.tool_name for message in responses for part in message.parts if isinstance(part, ToolCallPart)]
        text = "" if run.result is None else run.result.output
        if run.result is not None and (reason := cut_reason(run.result.response)):
            raise SkillError(reason)
        return ModelAnswer(text, run.usage.total_tokens, Counter(calls))


async def attempted(asked: Awaitable[ModelAnswer], seconds: float, env: Mapping[str, str]) -> ModelAnswer | RunFailure:
    """Return the answer, or why there is none."""
    try:
        async with asyncio.timeout(seconds):
            return await asked
    except TimeoutError:
        return RunFailure(f"there was no answer within {seconds:g} seconds")
    except asyncio.CancelledError as error:
        # Nobody cancelled this run: the model, or a library below it, did that to itself.
        if (task := asyncio.current_task()) is None or task.cancelling():
            raise
        return RunFailure(described(error, env))
    except Exception as error:  # A model is a program of somebody else: whatever it raises is an outcome of the run.
        return RunFailure(described(error, env))


def described(error: BaseException, env: Mapping[str, str]) -> str:
    """Return an error of a model in one line, without the keys of the environment: some servers repeat them."""
    text = f"{type(error).__name__}: {error}"
    secrets = [value for name, value in (os.environ | env).items() if _SECRET.search(name) and len(value) >= _SHORTEST]
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
    return cut(visible(" ".join(text.split())), DESCRIPTION_SHOWN)


_SECRET = re.compile(r"(?i)key|token|secret|password|credential")
"""The name of a variable whose value is never shown."""

_SHORTEST = 4
"""A shorter value is no secret, and replacing it would garble the message."""


# Tools of a host ----------------------------------------------------------------------------------

UNAVAILABLE = "{} is not available in this evaluation. Go on without it."

HOST_TOOLS: Mapping[str, Mapping[str, str]] = {
    "Bash": {"command": "The command to run."},
    "Read": {"file_path": "The file to read."},
    "Write": {"file_path": "The file to write.", "content": "Its new content."},
}
"""The tools that models expect of a host, with their parameters."""

_DESCRIPTIONS = {
    "Bash": "Run a shell command.",
    "Read": "Read a file of the working folder.",
    "Write": "Write a file of the working folder.",
}

HostCall = Callable[[str, Mapping[str, Any]], str]
"""Answers a call of a host tool: its name and its arguments."""


def unavailable_tools(session: "Session") -> "list[Tool[None]]":
    """Return tools of a host that do nothing: without them, skill tools would be all that a model can call."""
    return host_tools(session, lambda name, arguments: UNAVAILABLE.format(name))


def host_tools(session: "Session", answer: HostCall) -> "list[Tool[None]]":
    """Return the tools of a host; the session decides and records every call, and a tool of ours keeps its name."""
    from skillshelf.adapters.pydantic_ai import text_tool

    def tool(name: str) -> "Tool[None]":
        async def call(ctx: object, arguments: dict[str, Any]) -> str:
            decision = await in_thread(lambda: session.decide(name, arguments))
            if decision.verdict == "deny":
                return f"Error: {name} may not be used: {decision.reason}"
            return await in_thread(lambda: answer(name, arguments))

        properties = {key: {"type": "string", "description": text} for key, text in HOST_TOOLS[name].items()}
        schema = {"type": "object", "properties": properties, "required": list(properties)}
        return text_tool(call, name, _DESCRIPTIONS[name], schema)

    taken = {name.lower() for name in session.profile.tools}
    return [tool(name) for name in HOST_TOOLS if name.lower() not in taken]
