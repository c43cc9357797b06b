"""Judge every file for every host, and say how the list of each host fits its budget."""

from collections.abc import Collection, Mapping, Sequence

from skillshelf.catalog.prompt import entry_sizes, is_sum_of_entries, size_of_entries, visible_to_model
from skillshelf.config.hosts import HOSTS
from skillshelf.config.settings import Settings
from skillshelf.core.records import NamedTuple
from skillshelf.hosts.overview_table import ANSWERS, HostColumns, ListSummary, OverviewTable
from skillshelf.hosts.stages import judge
from skillshelf.hosts.survey import HostState, ListSize, Survey
from skillshelf.hosts.survey_update import finds_known_files

__all__ = ["HostCount", "HostOverview", "Overview", "SkillText", "host_count", "overview_of"]

SkillText = tuple[str, tuple[bytes, int]]
"""The name and text of a skill: files that agree in both count as one."""

_NUMBERS: Mapping[bool | None, int] = {answer: number for number, answer in enumerate(ANSWERS)}

_FEW = 8
"""Of so many files one that is judged anew is not worth the whole list of a host."""


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
    """Return what every host of a survey sees; only what no earlier survey has found out is judged."""
    count = len(survey.skill_files)
    known = OverviewTable.unpacked(survey.recall("overview"), survey.hosts, count)
    table = known or OverviewTable.empty(survey.hosts, count)
    if not table.is_complete:
        columns = [_judged(one, survey) for one in table.hosts]
        table = OverviewTable(columns, _lengths(table, survey))
        survey.learned["overview"] = table.packed()
    longest = sorted((table.lengths or {}).items(), key=lambda pair: (-pair[1], pair[0]))[:3]
    return Overview([_overview(one) for one in table.hosts], longest)


def _overview(columns: HostColumns) -> HostOverview:
    assert columns.summary is not None
    return HostOverview(columns.host, _answers(columns.visible), _answers(columns.warns), *columns.summary)


def _answers(numbers: bytes) -> list[bool | None]:
    return [ANSWERS[number] for number in numbers]


def _judged(columns: HostColumns, survey: Survey) -> HostColumns:
    """Return the columns of a host with every file judged."""
    host, waiting = columns.host, columns.waiting
    if columns.summary is not None and not waiting:
        return columns
    scan = survey.hosts[host]
    is_sum = is_sum_of_entries(scan.profile) and finds_known_files(scan.walk, survey.names)
    size = ListSize() if is_sum else survey.list_size(host)
    # Whether a skill fits into the list may have changed for others than those that changed.
    moved = {survey.by_path[path].real_path for path in {*columns.dropped} ^ size.dropped if path in survey.by_path}
    again = {*waiting, *(at for at, one in enumerate(survey.skill_files) if moved and one.real_path in moved)}
    state = _state(host, again, survey)
    visible, warns = bytearray(columns.visible), bytearray(columns.warns)
    for at in again:
        verdict = judge(survey.skill_files[at], state, survey)
        visible[at], warns[at] = _NUMBERS[verdict.visible], _NUMBERS[verdict.warns]
    answers = columns._replace(visible=bytes(visible), warns=bytes(warns), dropped=sorted(size.dropped))
    if is_sum:
        return _measured(answers, waiting, state, survey)
    return answers._replace(summary=_summary(host, size, survey))


def _state(host: str, positions: Collection[int], survey: Survey) -> HostState:
    """Return the state of a host as far as it matters to some files."""
    if len(positions) * _FEW > len(survey.skill_files):
        return survey.state(host)
    names = {name for at in positions for name in survey.names.of(survey.skill_files[at])}
    return survey.state_among(host, survey.names.rivals(names))


def _measured(columns: HostColumns, positions: Collection[int], state: HostState, survey: Survey) -> HostColumns:
    """Return the columns of a host with the sizes of some files in its list, and with their sums."""
    profile, listed = state.profile, visible_to_model(state.listed)
    sizes = dict(
        zip((one.real_path for one in listed), entry_sizes(listed, profile, survey.scan.facts.sizes), strict=True)
    )
    chars, total = columns.numbers()
    for at in positions:
        chars[at], total[at] = sizes.get(survey.skill_files[at].real_path, (0, 0))
    count = sum(map(bool, chars))
    size = size_of_entries(count, sum(chars), sum(total), profile)
    summary = ListSummary(size.chars, size.tokens, (), ())
    return columns._replace(chars=chars.tobytes(), bytes=total.tobytes(), summary=summary)


def _summary(host: str, size: ListSize, survey: Survey) -> ListSummary:
    listed = survey.visible_list(host) if size.cut or size.dropped else []
    names = ([skill.name for skill in listed if skill.path in paths] for paths in (size.cut, size.dropped))
    return ListSummary(size.chars, size.tokens, *names)


def _lengths(table: OverviewTable, survey: Survey) -> dict[str, int]:
    """Return the length of the description of each skill by its name; the last host that lists the name counts."""
    if table.lengths is None:
        states = survey.states.values()
        return {skill.name: len(skill.description) for state in states for skill in state.catalog.skills}
    doubtful = {*table.doubtful}
    rivals = survey.names.rivals(doubtful)
    names = {name for path in rivals for name in survey.names.of(survey.names.files[path])}
    lengths = {**table.lengths}
    for host in survey.hosts if rivals else ():
        skills = survey.state_among(host, survey.names.rivals(names)).catalog.skills
        lengths.update((skill.name, len(skill.description)) for skill in skills if skill.name in doubtful)
    return lengths


# Numbers ------------------------------------------------------------------------------------------


class HostCount(NamedTuple):
    """The numbers of one host: visible, missing and unknown skills, the size of its list, and the skills it cuts.

    `silent` are the missing skills that the host does not report to its user.
    """

    host: str
    visible: int
    missing: int
    silent: int
    unknown: int
    chars: int
    tokens: int
    budget: int | None
    cut: Sequence[str]
    dropped: Sequence[str]


def host_count(host: HostOverview, texts: Sequence[SkillText]) -> HostCount:
    """Count what one host sees and misses; a file is not missing if the host sees another with the same text."""
    seen = {text for text, visible in zip(texts, host.visible, strict=True) if visible}
    unseen = [
        (text, warns) for text, visible, warns in zip(texts, host.visible, host.warns, strict=True) if visible is False
    ]
    missing = [warns for text, warns in unseen if text not in seen]
    profile = HOSTS[host.host]
    kinds = profile.catalog_budget
    budget = profile.budget_chars if "chars" in kinds else Settings().max_bytes if "bytes" in kinds else None
    return HostCount(
        host=host.host,
        visible=host.visible.count(True),
        missing=len(missing),
        silent=missing.count(False),
        unknown=host.visible.count(None),
        chars=host.chars,
        tokens=host.tokens,
        budget=budget,
        cut=host.cut,
        dropped=host.dropped,
    )
