"""The catalogue of this machine: what its inventory, its hosts, its locks and some journals say.

The disk is read behind the pages. A page shows the last state that was read whole, and has it read again if it is older
than `WEB_REFRESH_SECONDS`; nothing is written but the caches that every command keeps.
"""

import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from skillshelf.core.console import note
from skillshelf.core.limits import (
    WEB_REFRESH_SECONDS,
)
from skillshelf.core.text import cut, visible
from skillshelf.errors import SkillError
from skillshelf.hosts.inventory import take_inventory
from skillshelf.servers.web.catalogue import (
    FileBytes,
    HostSummary,
    Preparation,
    ProblemGroup,
    SearchAnswer,
    SessionStory,
    SessionSummary,
    SkillDetail,
    SkillDiff,
    SkillSummary,
    SkillVersion,
    UsageReport,
    WhyCandidate,
)
from skillshelf.servers.web.journals import JournalReader, Journals
from skillshelf.servers.web.local_state import LocalOptions, LocalState, shown_paths
from skillshelf.servers.web.paths import ShownPaths

__all__ = ["LocalCatalogue"]


class LocalCatalogue:
    """The skills of this machine, or of one repository of it, for one reader."""

    def __init__(self, options: LocalOptions, *, now: Callable[[], float] = time.monotonic) -> None:
        self._options = options
        self._now = now
        self._state: LocalState | None = None
        self._read_at = 0.0
        self._clock = ""
        self._failure = ""
        self._lock = threading.RLock()
        self._worker: threading.Thread | None = None
        self._wanted = threading.Event()
        self._is_reading = False
        self._journals = JournalReader(options.journals, shown_paths(options, None))
        if options.waits:
            self._read()
        else:
            self._start()

    # Reading --------------------------------------------------------------------------------------

    def _start(self) -> None:
        """Have the disk read by a thread that stays: what each new one allocates would not be given back."""
        with self._lock:
            if self._is_reading:
                return
            self._is_reading = True
            if self._worker is None:
                self._worker = threading.Thread(target=self._read_when_wanted, name="skillshelf-pages", daemon=True)
                self._worker.start()
        self._wanted.set()

    def _read_when_wanted(self) -> None:
        while True:
            self._wanted.wait()
            self._wanted.clear()
            try:
                self._read()
                _return_free_memory()
            except Exception as error:  # the outermost frame of the thread: the next reading must still begin
                self._failure = f"{type(error).__name__}: {error}"
                note(f"the skills cannot be read for the pages: {visible(cut(self._failure, 300))}")
            finally:
                self._is_reading = False

    def _read(self) -> None:
        """Read the disk, and make what takes long; by then nothing refers to the state before."""
        if self._look() and not self._options.waits:
            assert self._state is not None, "a look that succeeds has a state"
            self._state.prepare()

    def _look(self) -> bool:
        """Read the disk; what has not changed keeps the state with everything that was learned from it.

        Return False if the disk cannot be read.
        """
        options = self._options
        try:
            found = take_inventory(
                options.environment,
                options.settings,
                all_hosts=options.all_hosts,
                cache_folder=options.cache,
                within=options.within,
            )
            journals = self._journals.read()
        except (SkillError, OSError) as error:
            self._failure = str(error)
            return False
        before = self._state
        state = before if before is not None and before.shows(found) else LocalState(options, found)
        with self._lock:
            self._state, self.journals = state, journals
            self._read_at, self._failure = self._now(), ""
            self._clock = "" if options.waits else time.strftime("%H:%M:%S")
        return True

    def _current(self) -> LocalState:
        """Return the last state that was read, and have it read again if that was long ago."""
        with self._lock:
            state = self._state
            is_old = self._now() - self._read_at > WEB_REFRESH_SECONDS
        assert state is not None, "pages wait until something was read"
        if is_old and not self._options.waits:
            self._start()
        return state

    # What every page shows ------------------------------------------------------------------------

    @property
    def title(self) -> str:
        """The name of the repository or working directory."""
        state = self._state
        top = (state.found.repository if state is not None else None) or self._options.environment.cwd
        if self._shown.path(top) == "~" or top == self._options.environment.home:
            # The name of a home folder is that of an account.
            return "home folder"
        return os.path.basename(top) or "skills"

    @property
    def as_of(self) -> str:
        """The time of the last look at the disk; empty for a static site."""
        return self._clock

    @property
    def notice(self) -> str:
        """Nothing: what cannot be read is a problem of its own."""
        return ""

    @property
    def reader(self) -> str:
        """Nobody: whoever started the command looks."""
        return ""

    @property
    def parts(self) -> frozenset[str]:
        """What this catalogue has: a static site cannot search, and without journals there is no use to show."""
        found = {"hosts", "seen"}
        found |= set() if self._options.waits else {"search"}
        found |= {"usage", "journal"} if self._options.journals or not self._options.waits else set()
        return frozenset(found)

    def preparing(self) -> Preparation | None:
        """Return that the skills are being read for the first time, or why they cannot be."""
        with self._lock:
            if self._state is not None:
                return None
        if self._failure:
            self._start()
            return Preparation(f"The skills cannot be read: {self._shown.text(self._failure)}")
        return Preparation("Reading the skills of this machine")

    @cached_property
    def _shown(self) -> ShownPaths:
        return shown_paths(self._options, None)

    def skills(self) -> Sequence[SkillSummary]:
        """Return all skills, by place and name."""
        return self._current().summaries

    def places(self) -> Mapping[str, Sequence[SkillSummary]]:
        """Return all skills by place, sorted by name."""
        return self._current().places

    def slug_named(self, name: str) -> str:
        """Return the slug of the first skill that has a name, or calls itself so; empty if there is none."""
        return self._current().slug_by_name.get(name, "")

    # Pages ----------------------------------------------------------------------------------------

    def search(self, query: str) -> SearchAnswer:
        """Search as `search --everywhere` does; while the index is made, say how far that is."""
        if (waiting := self.preparing()) is not None:
            return SearchAnswer(query, preparing=waiting)
        return self._current().search(query)

    def skill(self, slug: str) -> SkillDetail | None:
        """Return a skill as its files are now."""
        state = self._current()
        with state.lock:
            return state.detail(slug)

    def file(self, slug: str, path: str) -> FileBytes | None:
        """Return a regular file of a skill; links are not followed."""
        return self._current().file(slug, path)

    def why(self, slug: str) -> Sequence[WhyCandidate] | None:
        """Return what `why NAME --json` says of the skill."""
        state = self._current()
        with state.lock:
            return state.why(slug)

    def hosts(self) -> Sequence[HostSummary]:
        """Return what every host sees, as `hosts --json` counts it."""
        state = self._current()
        with state.lock:
            return state.hosts

    def seen_by_hosts(self, skills: Sequence[SkillSummary]) -> Sequence[SkillSummary]:
        """Return the skills as they are: every list says who sees them."""
        return skills

    def problems(self) -> Sequence[ProblemGroup]:
        """Return findings, changes, unseen and outdated skills, and descriptions that collide."""
        state = self._current()
        with state.lock:
            return state.problems()

    def versions(self, slug: str) -> Sequence[SkillVersion] | None:
        """Return the versions of an installed skill: what lies on the disk, and what was installed before."""
        state = self._current()
        with state.lock:
            return state.versions(slug)

    def difference(self, slug: str, before: str, after: str) -> SkillDiff | None:
        """Compare two versions of an installed skill."""
        state = self._current()
        with state.lock:
            return state.difference(slug, before, after)

    def usage(self) -> UsageReport | None:
        """Return what the journals say of the use of skills."""
        self._current()
        return self.journals.usage

    def use(self, skill: SkillSummary) -> Mapping[str, Any] | None:
        """Return what the journals say of the use of one skill."""
        found, names = self.journals.usage, (skill.declared or skill.name, skill.name)
        return next((row for row in found.skills if row["name"] in names), None) if found is not None else None

    def sessions(self) -> Sequence[SessionSummary]:
        """Return the sessions of the journals."""
        self._current()
        return self.journals.sessions

    def session(self, key: str) -> SessionStory | None:
        """Read one session again, from its journal."""
        return self._journals.story(self.journals, key)

    journals: Journals = Journals(None, (), {})


def _return_free_memory() -> None:
    """Return to the system what the allocator of glibc keeps after a reading; others keep little."""
    if sys.platform == "linux":
        import ctypes

        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
