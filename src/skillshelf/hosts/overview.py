"""Judge every file for every host, and say how the list of each host fits its budget."""

from collections.abc import Mapping, Sequence
from typing import Any

from skillshelf.core.records import NamedTuple
from skillshelf.hosts.stages import judge
from skillshelf.hosts.survey import Survey

__all__ = ["HostOverview", "Overview", "overview_of"]

_ANSWERS = (False, True, None)
_NUMBERS: Mapping[bool | None, int] = {answer: number for number, answer in enumerate(_ANSWERS)}


class HostOverview(NamedTuple):
    """The view of one host: for each file of the survey whether it is visible, and whether the host warns its user.

    `chars` and `tokens` are the size of its list, `cut` and `dropped` the names that do not fit into it.
    """

    host: str
    visible: Sequence[bool | None]
    warns: Sequence[bool | None]
    chars: int
    tokens: int
    cut: Sequence[str]
    dropped: Sequence[str]


class Overview(NamedTuple):
    """The views of all hosts, and the three longest descriptions with the names of their skills."""

    hosts: Sequence[HostOverview]
    longest: Sequence[tuple[str, int]]


def overview_of(survey: Survey) -> Overview:
    """Return what every host of a survey sees."""
    known = _unpacked(survey.recall("overview"), len(survey.skill_files))
    if known is not None:
        return known
    overview = Overview([_overview(host, survey) for host in survey.hosts], _longest(survey))
    survey.learned["overview"] = _packed(overview)
    return overview


def _overview(host: str, survey: Survey) -> HostOverview:
    state = survey.state(host)
    size, skills = state.size(), state.catalog.skills
    verdicts = [judge(skill_file, state, survey) for skill_file in survey.skill_files]
    return HostOverview(
        host,
        [verdict.visible for verdict in verdicts],
        [verdict.warns for verdict in verdicts],
        size.chars,
        size.tokens,
        [skill.name for skill in skills if skill.path in size.cut],
        [skill.name for skill in skills if skill.path in size.dropped],
    )


def _longest(survey: Survey) -> list[tuple[str, int]]:
    states = survey.states.values()
    lengths = {skill.name: len(skill.description) for state in states for skill in state.catalog.skills}
    return sorted(lengths.items(), key=lambda pair: (-pair[1], pair[0]))[:3]


def _packed(overview: Overview) -> tuple[Any, ...]:
    rows = []
    for host, visible, warns, *rest in overview.hosts:
        answers = (bytes(_NUMBERS[answer] for answer in column) for column in (visible, warns))
        rows.append((host, *answers, *rest))
    return rows, list(overview.longest)


def _unpacked(values: Any, count: int) -> Overview | None:
    """Return the overview in some values; None if they hold none of so many files."""
    try:
        rows, longest = values
        made = [HostOverview(host, _answers(visible), _answers(warns), *rest) for host, visible, warns, *rest in rows]
    except (IndexError, TypeError, ValueError):
        return None
    is_whole = all(len(host.visible) == len(host.warns) == count for host in made)
    return Overview(made, longest) if is_whole else None


def _answers(numbers: bytes) -> list[bool | None]:
    return [_ANSWERS[number] for number in numbers]
