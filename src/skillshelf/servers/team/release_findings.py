"""What `check` finds in the skills that a tenant serves: computed once for a tree, and kept in the database.

A release has its findings from the moment that it is published. One of an older version of the program, or of other
rules, is checked again behind the answers, when somebody looks. A release says itself for which rules it was checked:
findings that are there at once would tell a tenant that another one has the same files.
"""

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256

from skillshelf import __version__
from skillshelf.catalog.load import SKILL_FILE
from skillshelf.catalog.tree import skill_tree
from skillshelf.config.profile import Profile
from skillshelf.core.limits import RELEASE_FINDINGS
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import cut, plural
from skillshelf.core.values import CatalogSkill
from skillshelf.errors import SkillError
from skillshelf.lint.run import CheckFinding, Target, file_problems
from skillshelf.servers.team.database import Database, Transaction
from skillshelf.servers.team.releases import PUBLISHED
from skillshelf.servers.team.values import DatabaseAway, NoSuchTenant
from skillshelf.servers.web.catalogue import Preparation
from skillshelf.shelf import Shelf

__all__ = ["KnownFindings", "SkillFindings", "TenantFindings", "found_by", "keep_findings"]

_CHECKER = "check"
_ASKED = 500
"""Trees in one statement; databases bound the values that one takes."""
_READ_AT_ONCE = 5_000
"""Releases whose findings are read before an answer; those of the others are read behind it."""
_AGAIN_SECONDS = 30.0
"""Time after which skills that could not be checked are tried again."""
_FAILURES = 3
"""Skills in a row whose files cannot be had, after which the blob store is left alone for a while."""
_MESSAGE_CHARS = 500
_Key = str | tuple[str, int | None, int]
"""What findings belong to: the tree of a release, or a file of the server's own disk with its time and size."""

_PATH_CHARS = 500


class SkillFindings(NamedTuple):
    """The errors and warnings in the files of a skill: how many there are, and the first ones.

    `rules` is a text that differs whenever other findings would be made; paths start at the folder of the skill.
    """

    rules: str
    errors: int = 0
    warnings: int = 0
    first: tuple[CheckFinding, ...] = ()

    @property
    def left_out(self) -> int:
        """The number of findings that are not among the first."""
        return self.errors + self.warnings - len(self.first)

    @property
    def is_kept(self) -> bool:
        """Whether they are of the files alone, and not of a disk that could not be read."""
        return not any(one.rule == "unreadable" for one in self.first)

    def to_text(self) -> str:
        """The JSON text that the database keeps."""
        rows = [[one.path, one.line, one.column, one.rule, one.severity, one.message] for one in self.first]
        return json.dumps({"errors": self.errors, "warnings": self.warnings, "findings": rows})

    @classmethod
    def from_text(cls, rules: str, text: str) -> "SkillFindings":
        """Return the findings in a text that the database keeps."""
        found = json.loads(text)
        first = tuple(CheckFinding(*row) for row in found["findings"])
        return cls(rules, found["errors"], found["warnings"], first)


def _rules_of(profile: Profile) -> str:
    """Return the version of the findings that this program makes with a profile."""
    return f"{__version__} {profile.name} {sha256(repr(profile).encode()).hexdigest()[:16]}"


def found_by(profile: Profile, problems: Sequence[CheckFinding]) -> SkillFindings:
    """Return what the rules of a profile found in a skill."""
    errors, first = sum(one.severity == "error" for one in problems), problems
    if len(problems) > RELEASE_FINDINGS:
        first = sorted(problems, key=lambda one: one.severity != "error")[:RELEASE_FINDINGS]
    listed = tuple(
        one._replace(path=cut(one.path, _PATH_CHARS), message=cut(one.message, _MESSAGE_CHARS)) for one in first
    )
    return SkillFindings(_rules_of(profile), errors, len(problems) - errors, listed)


def _found_in(skill: CatalogSkill, profile: Profile) -> SkillFindings:
    """Check the files of a skill on this machine."""
    path = f"{skill.real_dir}/{SKILL_FILE}"
    (found,) = file_problems([Target(path, path, skill.name)], profile)
    inside = f"{skill.real_dir}/"
    return found_by(profile, [one._replace(path=one.path.removeprefix(inside)) for one in found])


# Database -----------------------------------------------------------------------------------------


def keep_findings(transaction: Transaction, tree: str, found: SkillFindings) -> None:
    """Store the findings in a tree of which the tenant has a release; they may be there already."""
    transaction.execute(
        "insert into verdict (tree, checker, version, result) values (?, ?, ?, ?) on conflict do nothing",
        (tree, _CHECKER, found.rules, found.to_text()),
    )
    transaction.execute(
        "update release set checked = ? where tenant = ? and tree = ?", (found.rules, transaction.tenant, tree)
    )


def _stored(transaction: Transaction, trees: Sequence[str], rules: str) -> dict[_Key, SkillFindings]:
    """Return the findings of some trees that the tenant had checked by these rules."""
    found: dict[_Key, SkillFindings] = {}
    for start in range(0, len(trees), _ASKED):
        asked = trees[start : start + _ASKED]
        for tree, text in transaction.rows(
            "select r.tree, v.result from release r join verdict v on v.tree = r.tree and v.version = r.checked "
            f"where r.tenant = ? and r.checked = ? and v.checker = ? and r.tree in ({', '.join('?' * len(asked))})",
            (transaction.tenant, rules, _CHECKER, *asked),
        ):
            found[str(tree)] = SkillFindings.from_text(rules, text)
    return found


# The skills of a tenant ---------------------------------------------------------------------------


class KnownFindings(NamedTuple):
    """What is known of some skills: their findings by path, what to wait for, and why some are not known."""

    by_path: Mapping[str, SkillFindings]
    preparing: Preparation | None
    problem: str


class TenantFindings:
    """The findings in the skills of one tenant, in memory since somebody asked for them.

    Skills of the server's own disk are checked again when their SKILL.md changes; they are not in the database.
    """

    def __init__(
        self, database: Database, tenant: str, profile: Profile, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._database = database
        self._tenant = tenant
        self._profile = profile
        self._rules = _rules_of(profile)
        self._clock = clock
        self._lock = threading.Lock()
        self._checking = threading.Lock()
        self._known: dict[_Key, SkillFindings] = {}
        self._is_checking = False
        # The skills that the last look could not check.
        self._left: frozenset[_Key] = frozenset()
        self._try_after = 0.0
        self._most = 0
        self._problem = ""
        self.changes = 0

    def of(self, skill: CatalogSkill) -> SkillFindings:
        """Return the findings in a skill whose files are on this machine."""
        key = _key_of(skill)
        if not isinstance(key, str):
            # On the disk of the server, where it may change at any time.
            return _found_in(skill, self._profile)
        known = self._known.get(key)
        if known is not None:
            return known
        # One at a time: those of a large release take seconds. Nobody waits for what is known.
        with self._checking:
            answers = key in self._known or self._is_read([skill])
            if (known := self._known.get(key)) is not None:
                return known
            found = _found_in(skill, self._profile)
            with suppress(SkillError):
                if answers:
                    self._keep(skill, found)
            self._remember({key: found})
            return found

    def of_all(self, skills: Sequence[CatalogSkill], shelf: Shelf) -> KnownFindings:
        """Return the findings in some skills; those that are not known are looked for behind the answers."""
        missing = self._missing(skills)
        away = bool(missing) and not self._is_read(missing[:_READ_AT_ONCE])
        missing = self._missing(missing)
        new = [skill for skill in missing if _key_of(skill) not in self._left]
        if missing and not away and (new or self._clock() >= self._try_after):
            self._begin(missing, shelf)
        self._forget_others(skills)
        known = self._known
        by_path = {skill.path: found for skill in skills if (found := known.get(_key_of(skill))) is not None}
        if new and not away:
            return KnownFindings(by_path, Preparation("Checking the skills", len(by_path), len(skills)), "")
        return KnownFindings(by_path, None, self._why(len(missing), away=away))

    def _why(self, missing: int, *, away: bool) -> str:
        """Return why skills are without findings; empty if none is."""
        if not missing:
            return ""
        what = f"{plural(missing, 'skill')} {'is' if missing == 1 else 'are'} not checked"
        if away:
            return f"The database does not answer, and {what}."
        return f"{what}: the files cannot be had at the moment." if self._problem else f"{what} yet."

    def _missing(self, skills: Sequence[CatalogSkill]) -> list[CatalogSkill]:
        return [skill for skill in skills if _key_of(skill) not in self._known]

    def _is_read(self, skills: Sequence[CatalogSkill]) -> bool:
        """Read the stored findings of some skills; return False if the database does not answer."""
        trees = [key for skill in skills if isinstance(key := _key_of(skill), str)]
        try:
            if trees:
                with self._database.transaction(self._tenant, readonly=True) as transaction:
                    self._remember(_stored(transaction, trees, self._rules))
        except (DatabaseAway, NoSuchTenant):
            return False
        return True

    def _remember(self, found: Mapping[_Key, SkillFindings]) -> None:
        if found:
            with self._lock:
                self._known.update(found)
                self.changes += 1

    def _forget_others(self, skills: Sequence[CatalogSkill]) -> None:
        """Forget the findings in other skills once there are too many; what is still served is read again."""
        self._most = max(self._most, len(skills))
        if len(self._known) > 2 * self._most + _ASKED:
            keys = {_key_of(skill) for skill in skills}
            with self._lock:
                self._known = {key: found for key, found in self._known.items() if key in keys}

    # Checking behind the answers ------------------------------------------------------------------

    def _begin(self, skills: Sequence[CatalogSkill], shelf: Shelf) -> None:
        with self._lock:
            if self._is_checking:
                return
            self._is_checking = True
        threading.Thread(target=self._check_all, args=(skills, shelf), name="skillshelf-findings", daemon=True).start()

    def _check_all(self, skills: Sequence[CatalogSkill], shelf: Shelf) -> None:
        """Check skills; when the blob store or the database is away, the others are left for later."""
        failures, problem = 0, ""
        try:
            for start in range(0, len(skills), _ASKED):
                asked = skills[start : start + _ASKED]
                if not self._is_read(asked):
                    return
                for skill in self._missing(asked):
                    failed = self._check_behind(skill, shelf)
                    failures, problem = failures + 1 if failed else 0, problem or failed
                    if failures == _FAILURES:
                        return
        finally:
            self._problem, self._left = problem, frozenset(map(_key_of, self._missing(skills)))
            self._try_after = self._clock() + _AGAIN_SECONDS
            self._is_checking = False

    def _check_behind(self, skill: CatalogSkill, shelf: Shelf) -> str:
        """Check a skill, and leave as much time to requests; return why that is not possible, else nothing."""
        began = time.monotonic()
        try:
            shelf.make_ready(skill)
            found = _found_in(skill, self._profile)
            try:
                self._keep(skill, found)
            finally:
                self._remember({_key_of(skill): found})
        except (SkillError, OSError) as error:
            return str(error) or type(error).__name__
        time.sleep(min(time.monotonic() - began, 1.0))
        return ""

    def _keep(self, skill: CatalogSkill, found: SkillFindings) -> None:
        """Store what was found in a release; raise `DatabaseAway`."""
        key = _key_of(skill)
        # Other servers and tenants get it, so a disk on which a file was changed or lost must not say it.
        if isinstance(key, str) and found.is_kept and skill_tree(skill.real_dir).digest == key:
            with self._database.transaction(self._tenant) as transaction:
                keep_findings(transaction, key, found)


def _key_of(skill: CatalogSkill) -> _Key:
    if skill.source == PUBLISHED and skill.tree is not None:
        return skill.tree
    return skill.path, skill.mtime_ms, skill.size
