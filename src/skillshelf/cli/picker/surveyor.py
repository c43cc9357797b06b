"""A place to what every host makes of a file in it, found out by a process of its own.

With ten thousand skills that is work for half a minute. A thread of the program that draws would take turns with it,
and every key would wait.
"""

import os
from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, Any

from skillshelf.core.environment import Place
from skillshelf.core.worker_process import Partner, PartnerLost
from skillshelf.errors import SkillError

# What only the other process needs is imported there.
if TYPE_CHECKING:
    from skillshelf.hosts.verdicts import Verdict

__all__ = ["Surveyor", "answers"]

_POLITE = 10
"""How much less than the program that draws the other one counts, where there is too little of the machine for both."""


class Surveyor:
    """Asks the process, which is started with the first question and ended by `close`."""

    def __init__(self, place: Place) -> None:
        self._partner = Partner("skillshelf.cli.picker.surveyor", place._replace(env=dict(place.env)))
        self._lock = Lock()
        self._is_ready = False
        self.failure = ""

    def look(self) -> None:
        """Look at the place as every host does, if that is still to be done."""
        self._ask("look")
        self._is_ready = True

    def verdicts(self, path: str) -> "list[Verdict] | None":
        """What each host makes of a file; None as long as the answer would have to wait for something longer."""
        if not self._is_ready or not self._lock.acquire(blocking=False):
            return None
        self._lock.release()
        return list(self._ask("verdicts", path))

    def seen_by(self, host: str) -> frozenset[str]:
        """Every path to a file that a host tells its model about."""
        return frozenset(self._ask("seen_by", host))

    def close(self) -> None:
        """End the process, whatever it does; nothing can be asked any more."""
        self._partner.close()

    def _ask(self, *question: str) -> Any:
        with self._lock:
            try:
                answer = self._partner.ask(question)
            except PartnerLost as lost:
                self._is_ready = False
                self.failure = f"the process that asks them {lost}; skillshelf hosts may say why"
                raise SkillError(f"no host could be asked: {self.failure}") from None
            self.failure = ""
            return answer


# The other process --------------------------------------------------------------------------------


def answers(place: Place) -> Callable[[tuple[str, ...]], Any]:
    """What the other process answers: a question is the name of a method of its eyes, with words."""
    os.nice(_POLITE)
    eyes = _Eyes(place)
    return lambda question: getattr(eyes, question[0])(*question[1:])


class _Eyes:
    """One survey of a place."""

    def __init__(self, place: Place) -> None:
        from skillshelf.config.hosts import HOSTS
        from skillshelf.hosts.survey import take_survey

        self._survey = take_survey(place, list(HOSTS))

    def look(self) -> None:
        """Nothing: the look was taken."""

    def verdicts(self, path: str) -> "list[Verdict]":
        """What each host makes of a file; nothing where there is none."""
        from skillshelf.hosts.survey import sight
        from skillshelf.hosts.verdicts import judge

        sighting = self._survey.by_path.get(path) or sight(path)
        return [judge(sighting, view, self._survey) for view in self._survey.views.values()] if sighting else []

    def seen_by(self, host: str) -> list[str]:
        """Every path to a file that a host tells its model about."""
        from skillshelf.hosts.verdicts import judge

        view = self._survey.views[host]
        visible = {found.real_path for found in self._survey.sightings if judge(found, view, self._survey).visible}
        return [path for path, sighting in self._survey.by_path.items() if sighting.real_path in visible]
