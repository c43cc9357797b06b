"""Run `eval`: test whether skills are found."""

import os
from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any

from skillshelf.cli.commands import shelf_for
from skillshelf.cli.eval_view import EvalView, eval_text
from skillshelf.cli.host_commands import listed_names
from skillshelf.core import files
from skillshelf.core.console import PathDisplay, as_json, note, screen, write
from skillshelf.core.limits import EVAL_COLLISION_SKILLS
from skillshelf.core.text import did_you_mean, plural, visible
from skillshelf.errors import DONE, NEGATIVE, ConfigurationError
from skillshelf.evals.cases import SkillCases, read_queries
from skillshelf.evals.findability import SkillResult, SkillUnderTest, judge_skills, skills_under_test, with_folders
from skillshelf.evals.reports import FormerResults, junit_report, read_former, untested, worsenings
from skillshelf.evals.rivals import Rivals, rivals_against, rivals_in_catalog, rivals_on_host
from skillshelf.hosts.explain import requested_hosts

if TYPE_CHECKING:
    from skillshelf.core.json_types import EvalConfigurationForm
    from skillshelf.evals.model_runs import ModelOptions
    from skillshelf.shelf import Shelf

__all__ = ["evaluate"]

Values = Mapping[str, Any]
_FORMATS = ("text", "json", "junit")
_RUNS = 3
"""Runs of each query with a model."""
_NAMES_SHOWN = 5


def evaluate(values: Values) -> int:
    """Test whether skills are found, and print the results."""
    form = _format(values)
    runs = _runs(values)
    former = read_former(_typed(values["baseline"])) if values["baseline"] else None
    own = shelf_for(values)
    shelf = with_folders(own, values["name"])
    if shelf is not own and values["model"] and not values["trust"]:
        raise ConfigurationError("a folder that is no root of skills is shown to a model only with --trust")
    queries = read_queries(_typed(values["queries"])) if values["queries"] else None
    tested = skills_under_test(shelf, _names(values, queries, shelf), queries)
    rivals = _all_rivals(values, shelf, tested)
    results = [result for among in rivals for result in judge_skills(tested, among, progress=shelf.progress)]
    if len(tested) > EVAL_COLLISION_SKILLS:
        note(f"only the first {EVAL_COLLISION_SKILLS:,} skills were compared with others (EVAL_COLLISION_SKILLS)")
    if values["model"]:
        results = _with_model(results, tested, values, runs)
    elif unused := next((name for name in ("journals", "judge", "output") if values[name]), None):
        raise ConfigurationError(f"--{unused} is for runs with a model; add --model M")
    _write(form, results, rivals, values, shelf, former)
    return NEGATIVE if _has_failed(results, former) else DONE


def _format(values: Values) -> str:
    form: str = values["format"] or ("json" if values["json"] else "text")
    if form not in _FORMATS:
        known = f"{did_you_mean(form, _FORMATS)} (known: {', '.join(_FORMATS)})"
        raise ConfigurationError(f"unknown format {form!r}{known}")
    if values["json"] and form != "json":
        raise ConfigurationError(f"--json and --format {form} exclude each other")
    return form


def _runs(values: Values) -> int:
    given = values["runs"]
    if given is None:
        return _RUNS
    if not values["model"]:
        raise ConfigurationError("--runs counts the runs with a model; add --model M")
    if not given.isdecimal() or not int(given):
        raise ConfigurationError(f"--runs takes a whole number of at least 1, not {given!r}")
    return int(given)


def _with_model(
    results: Sequence[SkillResult], tested: Sequence[SkillUnderTest], values: Values, runs: int
) -> list[SkillResult]:
    """Return the results with what a model does, of the skills that it is told of."""
    # Imported here: most tests ask no model, and pydantic-ai takes long to load.
    from skillshelf.adapters.agent import check_installed
    from skillshelf.cli.chat import choose_model
    from skillshelf.evals.model_runs import ModelOptions, most_requests, run_model
    from skillshelf.evals.output_runs import check_outputs

    check_installed()
    # Without this the framework prints an advertisement.
    os.environ.setdefault("PYDANTIC_AI_NO_BANNER", "1")

    if values["host"] or values["against"]:
        raise ConfigurationError("--model asks about the skills of this catalog; leave out --host and --against")
    shelf = with_folders(shelf_for(values, trust="all" if values["trust"] else "ask"), values["name"])
    model = choose_model(values["model"], shelf.environment.env)
    options = ModelOptions(model, runs, journals=values["journals"], progress=shelf.progress)
    if values["output"] and any(one.skill is not None and one.cases.outputs for one in tested):
        # Before the first request: requests cost money.
        check_outputs(_judge(values, shelf), _typed(values["output"]))
    at = [n for n, one in enumerate(tested) if one.skill is not None and one.cases.queries]
    work = [(skill, tested[n].cases.queries) for n in at if (skill := tested[n].skill) is not None]
    _note_hidden(shelf, {skill.path for skill, _ in work})
    note(f"asking {model}: at most {most_requests(work, options):,} requests")
    done = list(results)
    for n, found in zip(at, run_model(shelf, work, options), strict=True):
        queries = zip(done[n].queries, found, strict=True)
        done[n] = done[n]._replace(queries=tuple(query.with_model(one.to_dict()) for query, one in queries))
    return _with_outputs(done, tested, values, shelf, options) if values["output"] else done


def _with_outputs(
    results: list[SkillResult],
    tested: Sequence[SkillUnderTest],
    values: Values,
    shelf: "Shelf",
    options: "ModelOptions",
) -> list[SkillResult]:
    """Return the results with those of the tasks, which a model does with and without the skill."""
    from skillshelf.evals.output_runs import most_output_requests, run_outputs

    judge = _judge(values, shelf)
    at = [n for n, one in enumerate(tested) if one.skill is not None and one.cases.outputs]
    work = [(skill, tested[n].cases.outputs) for n in at if (skill := tested[n].skill) is not None]
    if not work:
        note("no skill has tasks with expected results (evals/evals.json); nothing is written")
        return results
    note(f"doing tasks with {options.model}: at most {most_output_requests(work, options):,} requests")
    output = _typed(values["output"])
    for n, found in zip(at, run_outputs(shelf, work, options, judge=judge, output=output), strict=True):
        results[n] = results[n]._replace(outputs=tuple(case.to_dict() for case in found))
    note(f"the results of the tasks are in {output}")
    return results


def _note_hidden(shelf: "Shelf", paths: Set[str]) -> None:
    """Report the skills that the model is not told of, so that no run can find them."""
    for skill in shelf.catalog.skills:
        if skill.path in paths and skill.hidden is not None:
            how = " (--trust shows it)" if skill.hidden == "untrusted" else ""
            note(f"{skill.name} is hidden from the model: {skill.hidden}{how}")


def _judge(values: Values, shelf: "Shelf") -> str | None:
    from skillshelf.cli.chat import choose_model

    return choose_model(values["judge"], shelf.environment.env) if values["judge"] else None


def _task_lines(results: Sequence[SkillResult]) -> list[str]:
    """Return a line for each task that a model did."""

    def share(configuration: "EvalConfigurationForm") -> str:
        rate = configuration["pass_rate"]
        return "not known" if rate is None else f"{rate:.0%}"

    return [
        f"{task['outcome'].upper()}  {visible(result.name)}, task {visible(task['id'])}: assertions that hold with the "
        f"skill {share(task['with_skill'])}, without it {share(task['without_skill'])}"
        for result in results
        for task in result.outputs
    ]


def _typed(path: str) -> str:
    return os.path.abspath(files.from_system(path))


def _names(values: Values, queries: SkillCases | None, shelf: "Shelf") -> Sequence[str]:
    """Return the skills that are tested; a file of queries is for one skill."""
    names: Sequence[str] = values["name"]
    if queries is None or len(names) == 1:
        return names
    if not names and queries.skill is not None:
        return [queries.skill]
    if not names and len(shelf.catalog.skills) == 1:
        return [shelf.catalog.skills[0].name]
    raise ConfigurationError("--queries needs the NAME of the one skill that the queries are for")


def _all_rivals(values: Values, shelf: "Shelf", tested: Sequence[SkillUnderTest]) -> list[Rivals]:
    """Return the catalogs that the skills are tested in: those of hosts, one with another root, or the shelf's own."""
    hosts = requested_hosts(listed_names(values["host"])) if values["host"] else []
    if hosts and values["against"]:
        raise ConfigurationError("--host and --against exclude each other")
    if hosts:
        from skillshelf.core.environment import user_cache_folder
        from skillshelf.hosts.survey import take_survey

        cache = None if values["no_cache"] else user_cache_folder(shelf.environment)
        survey = take_survey(shelf.environment, hosts, cache_folder=cache)
        return [rivals_on_host(survey, host) for host in hosts]
    if values["against"]:
        judged = [one.skill for one in tested if one.skill is not None]
        return [rivals_against(shelf, judged, _typed(values["against"]))]
    return [rivals_in_catalog(shelf)]


def _write(
    form: str,
    results: Sequence[SkillResult],
    rivals: Sequence[Rivals],
    values: Values,
    shelf: "Shelf",
    former: FormerResults | None,
) -> None:
    if form == "json":
        write(as_json({"skills": [result.to_dict() for result in results]}))
    elif form == "junit":
        write(junit_report(results))
    else:
        where = PathDisplay(shelf.project_root, shelf.environment.home)
        view = EvalView(results, len(rivals[0].skills), shelf.profile.name, worsenings(results, former or {}), where)
        write(eval_text(view, screen(shelf.environment.env), compared=former is not None))
        write("".join(f"{line}\n" for line in _task_lines(results)))
    for notes in dict.fromkeys(f"{result.path}: {text}" for result in results for text in result.notes):
        note(notes)
    # Whoever names skills leaves out the others on purpose.
    if former is not None and not values["name"] and (gone := untested(results, former)):
        names = sorted(gone)
        more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
        shown = ", ".join(names[:_NAMES_SHOWN]) + more
        note(f"{plural(sum(gone.values()), 'result')} of the baseline not tested now: {shown}")


def _has_failed(results: Sequence[SkillResult], former: FormerResults | None) -> bool:
    """Return whether a query did not pass or tests could not be read; with former results only if one is worse."""
    if former is not None:
        return bool(worsenings(results, former))
    return any(
        result.notes
        or any(query.outcome != "pass" for query in result.queries)
        or any(task["outcome"] != "pass" for task in result.outputs)
        for result in results
    )
