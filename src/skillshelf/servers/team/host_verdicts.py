"""Say what each known host makes of a published skill: as if it were installed there, and were the only one.

A server does not know the machines of its clients. So each host is given a home folder that cannot exist, with the
skill in the folder of the user's skills that the host reads first; nothing is written.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from math import inf

from skillshelf.catalog.load import SKILL_FILE
from skillshelf.catalog.shared_scan import SharedScan
from skillshelf.config.hosts import HOSTS
from skillshelf.core.console import note
from skillshelf.core.environment import make_environment
from skillshelf.core.limits import HOST_VERDICTS_KEPT
from skillshelf.core.text import cut, visible
from skillshelf.core.values import CatalogSkill
from skillshelf.hosts.placement import Placement
from skillshelf.hosts.skill_files import SkillFile, declared_in
from skillshelf.hosts.stages import Verdict
from skillshelf.hosts.survey import HostScan, Survey, take_survey
from skillshelf.hosts.verdict import VERDICTS
from skillshelf.hosts.what_if import after_link
from skillshelf.servers.team.values import BlobsAway
from skillshelf.servers.web.catalogue import HostAnswer, Preparation
from skillshelf.servers.web.paths import ShownPaths

__all__ = ["HostVerdicts"]

# Nothing can exist below a device.
_HOME = "/dev/null/home"
_CWD = "/dev/null/work"
_AGAIN_SECONDS = 30.0
"""Time after which skills whose files were not asked for are tried again, because the blob store lacked others."""
_LOST_SECONDS = 120.0
"""Time after which a skill that could not be read is tried again: the others come first."""
_FAILURES = 3
"""Skills whose files cannot be had, after which the blob store is left alone for a while."""

ReadText = Callable[[CatalogSkill], bytes | None]
"""Return the SKILL.md of a skill, None if it cannot be read; raise `BlobsAway` while it cannot be had."""

Answers = tuple[HostAnswer, ...]


class HostVerdicts:
    """What the known hosts make of the skills of one catalog; the last ones that were asked for are kept."""

    def __init__(self, *, most: int = HOST_VERDICTS_KEPT, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[object, ...], tuple[Answers, float]] = OrderedDict()
        self._is_judging = False

    def of(self, skill: CatalogSkill, read: ReadText) -> Answers:
        """Return the verdict of every host; none for a skill that cannot be read."""
        known = self._known(skill)
        return known if known is not None else self._judge(skill, read, _empty_hosts())

    def of_all(self, skills: Sequence[CatalogSkill], read: ReadText) -> Mapping[str, Answers] | Preparation:
        """Return the verdicts on some skills by path, none for one that cannot be read.

        What is not known is found out behind the answers, one request at a time; until then, return how far that is.
        """
        known = {skill.path: self._known(skill) for skill in skills}
        missing = [skill for skill in skills if known[skill.path] is None]
        if not missing:
            return {path: answers or () for path, answers in known.items()}
        with self._lock:
            is_new, self._is_judging = not self._is_judging, True
        if is_new:
            threading.Thread(target=self._judge_all, args=(missing, read), name="skillshelf-hosts", daemon=True).start()
        return Preparation("Asking what each host makes of these skills", len(skills) - len(missing), len(skills))

    def _judge_all(self, skills: Sequence[CatalogSkill], read: ReadText) -> None:
        failures = 0
        try:
            survey = _empty_hosts()
            for skill in skills:
                if failures == _FAILURES:
                    self._keep(skill, (), self._clock() + _AGAIN_SECONDS)
                elif not self._judge_behind(skill, read, survey):
                    failures += 1
        finally:
            self._is_judging = False

    def _judge_behind(self, skill: CatalogSkill, read: ReadText, survey: Survey) -> bool:
        """Judge a skill, and leave as much time to requests; return False if its files cannot be had."""
        began = time.monotonic()
        try:
            self._judge(skill, read, survey)
        except BlobsAway:
            self._keep(skill, (), self._clock() + _LOST_SECONDS)
            return False
        except Exception as error:  # the outermost frame of the thread: the other skills are judged
            self._keep(skill, (), inf)
            problem = cut(visible(f"{skill.name}: {type(error).__name__}: {error}"), 300)
            note(f"what hosts make of a skill is not known: {problem}")
        time.sleep(time.monotonic() - began)
        return True

    def _judge(self, skill: CatalogSkill, read: ReadText, survey: Survey) -> Answers:
        data = read(skill)
        found = _answers(skill.name, data, survey) if data is not None else ()
        self._keep(skill, found, inf if data is not None else self._clock() + _LOST_SECONDS)
        return found

    def _known(self, skill: CatalogSkill) -> Answers | None:
        with self._lock:
            answers, until = self._kept.get(_key_of(skill), ((), -inf))
        return answers if until > self._clock() else None

    def _keep(self, skill: CatalogSkill, answers: Answers, until: float) -> None:
        with self._lock:
            self._kept[_key_of(skill)] = answers, until
            self._kept.move_to_end(_key_of(skill))
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)


def _key_of(skill: CatalogSkill) -> tuple[object, ...]:
    return skill.name, skill.tree, skill.path, skill.mtime_ms, skill.size


def _empty_hosts() -> Survey:
    """Return a survey in which every host reads one folder of the user alone, which has nothing in it."""
    survey = take_survey(make_environment(_CWD, _HOME, {}), list(HOSTS))
    for name, profile in HOSTS.items():
        roots = tuple(root for root in survey.hosts[name].roots if root.path.startswith(f"{_HOME}/"))[:1]
        entered = survey.hosts[name].entered._replace(roots=roots)
        walk = SharedScan().walk(roots, profile, repository=entered.repository)
        survey = survey.with_host(HostScan(profile, roots, entered, walk))
    return survey


def _answers(name: str, data: bytes, survey: Survey) -> Answers:
    found = SkillFile(f"{_CWD}/{name}/{SKILL_FILE}", (f"{_CWD}/{name}/{SKILL_FILE}",), data, len(data))
    file = declared_in(found, SharedScan().facts)
    verdicts = (
        after_link(Placement(root.path, name, "copy", root.path), file, survey, [host])[0]
        for host in HOSTS
        for root in survey.hosts[host].roots
    )
    return tuple(map(_answer, verdicts))


def _answer(verdict: Verdict) -> HostAnswer:
    host, detail = HOSTS[verdict.host], ShownPaths(_CWD, _HOME, None).text(verdict.detail)
    meaning = VERDICTS[verdict.verdict][1]
    return HostAnswer(
        host.name, verdict.visible, verdict.verdict, detail, verdict.warns, None, host.as_of, host.grade, meaning
    )
