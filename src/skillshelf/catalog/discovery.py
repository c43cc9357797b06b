"""Roots to candidates: a bounded walk that reads the head of each SKILL.md and nothing else.

`<child>/SKILL.md` is probed before a folder is listed, because listing every skill's folder would cost twice
the whole scan. A folder that holds no SKILL.md is listed and walked.
"""

import errno
import os
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from typing import NamedTuple

from skillshelf.config.profile import Profile, how_to_allow
from skillshelf.core import files
from skillshelf.core.limits import CACHE_FROM, SKILL_FILE_BYTES, WALK_DEPTH
from skillshelf.core.values import Candidate, Diagnostic, Entry, Filtered, FilterReason, Kept, Root

__all__ = ["NEAR_MISSES", "SKILL_FILE", "Found", "Repeat", "discover", "probe"]

SKILL_FILE = "SKILL.md"
NEAR_MISSES = frozenset({"skill.md", "skills.md", "skill.txt", "skill"})


class Repeat(NamedTuple):
    """A SKILL.md that was already found by another way."""

    root: int
    path: str
    real_path: str
    real_dir: str


Found = Candidate | Kept | Repeat | Filtered | Diagnostic

Remembered = Callable[[Root], Mapping[str, Entry]]
"""What is remembered of the skills below a root, by their paths."""


def discover(
    roots: Sequence[Root],
    profile: Profile,
    *,
    repository: str,
    account: bool = False,
    remembered: Remembered = lambda root: {},
    heads: dict[str, files.Head] | None = None,
    only: Mapping[str, Collection[str]] | None = None,
) -> Iterator[Found]:
    """Everything the roots hold, root by root in order; `account` also tells what lies where no skill is looked for.

    A file of which an entry is `remembered`, and which has not changed since, is not read again. `heads` keeps what
    was read by real path, for looks of several profiles at one disk. With `only` nothing is listed: it has the names to
    look at in each folder, by the folder's path.
    """
    reachable = [repository, *(root.real_path for root in roots if root.real_path)]
    seen: set[str] = set()
    for index, root in enumerate(roots):
        if root.real_path is not None:
            walk = _Walk(index, root, profile, reachable, seen, account, remembered)
            walk.heads = heads
            walk.only = only
            yield from walk.run()


def probe(root: Root, profile: Profile, *, repository: str) -> Iterator[Found]:
    """The SKILL.md of one folder; nothing below it is looked at."""
    assert root.real_path is not None
    try:
        folder = files.open_folder(root.real_path)
    except OSError as error:
        yield Diagnostic(root.path, "unreadable", _reason(error))
        return
    try:
        walk = _Walk(0, root, profile, [repository, root.real_path], set(), account=False)
        yield from walk._probe(folder, _WalkFrame(root.path, root.real_path, 0, None))
    finally:
        files.close(folder)


class _WalkFrame(NamedTuple):
    """A folder under way: how it was reached, where it really is, how deep, and why its skills do not count."""

    path: str
    real_path: str
    depth: int
    verdict: FilterReason | None


class _Walk:
    """The walk of one root."""

    def __init__(
        self,
        index: int,
        root: Root,
        profile: Profile,
        reachable: list[str],
        seen: set[str],
        account: bool,
        remembered: Remembered = lambda root: {},
    ) -> None:
        self.index = index
        self.root = root
        self.profile = profile
        self.reachable = reachable
        self.seen = seen
        self.account = account
        self.depth_limit = WALK_DEPTH if profile.max_depth is None else profile.max_depth
        # Two budgets: looking where no skill counts must not end the search where one does.
        self.budget = {True: profile.max_directories, False: profile.max_directories}
        self.others = {True: 0, False: 0}
        self.left = {True: 0, False: 0}
        self.too_deep = 0
        self.followed: set[str] = set()
        self.heads: dict[str, files.Head] | None = None
        self.only: Mapping[str, Collection[str]] | None = None
        self.remembered = remembered
        self.entries: Mapping[str, Entry] | None = None
        self.files = 0

    def run(self) -> Iterator[Found]:
        """Everything below the root."""
        assert self.root.real_path is not None
        try:
            folder = files.open_folder(self.root.real_path)
        except OSError as error:
            yield Diagnostic(self.root.path, "root-unreadable", _reason(error))
            return
        place = _WalkFrame(self.root.path, self.root.real_path, 0, None)
        try:
            if self.profile.root_file == "skill":
                yield from self._probe(folder, place)
            yield from self._children(folder, place)
        finally:
            files.close(folder)
        yield from self._limits_hit()

    def _limits_hit(self) -> Iterator[Diagnostic]:
        limit = self.profile.max_directories
        if self.left[True]:
            message = (
                f"stopped after {limit} folders without a skill; {self.left[True]} entries were not visited; "
                "to look further, raise `max_directories` in a profile of your own"
            )
            yield Diagnostic(self.root.path, "walk-limit", message)
        if self.left[False]:
            message = f"did not look further where no skill counts; {self.left[False]} entries were not visited"
            yield Diagnostic(self.root.path, "walk-limit", message)
        if self.too_deep:
            message = f"{self.too_deep} entries lie deeper than {WALK_DEPTH} levels and were not visited"
            yield Diagnostic(self.root.path, "walk-limit", message)

    def _children(self, folder: int, place: _WalkFrame) -> Iterator[Found]:
        """What lies below a folder that is itself no skill, or below a skill where that counts."""
        counts = place.verdict is None
        try:
            entries = files.entries_in(folder) if self.only is None else self._named(folder, self.only, place)
        except OSError as error:
            rule = "unreadable" if place.depth else "root-unreadable"
            yield Diagnostic(place.path, rule, _reason(error))
            return
        if counts:
            names = [name for name, _ in entries]
            yield from self._odd_names(place, names)
            yield from self._loose_files(folder, place, names)
        recall = counts and self._is_worth_recalling(len(entries))
        ordered = entries if self.profile.folder_order == "sorted" else entries[::-1]
        for position, (name, is_folder) in enumerate(ordered):
            if self.budget[counts] <= 0:
                self.left[counts] += len(entries) - position
                return
            if recall and is_folder:
                below = f"{name}/{SKILL_FILE}"
                kept = self._unchanged(folder, below, f"{place.path}/{below}", f"{place.real_path}/{below}")
                if kept is not None:
                    yield kept
                    continue
            if counts and is_folder and (known := self._known_skill(place, name)) is not None:
                yield from self._read(folder, SKILL_FILE, known, f"{known.real_path}/{SKILL_FILE}")
                continue
            if self.heads and name == SKILL_FILE and f"{place.real_path}/{name}" in self.heads:
                self._charge(place, "file")
                continue
            yield from self._child(folder, place, name)

    def _named(self, folder: int, only: Mapping[str, Collection[str]], place: _WalkFrame) -> list[tuple[str, bool]]:
        """Those of the names to look at that a folder holds, each with whether it is a folder itself."""
        found = []
        for name in sorted(only.get(place.path, ()), key=os.fsencode):
            try:
                found.append((name, files.kind_of(files.stat_at(folder, name).st_mode) == "folder"))
            except FileNotFoundError:
                continue
        return found

    def _known_skill(self, place: _WalkFrame, name: str) -> _WalkFrame | None:
        """The place of a child whose SKILL.md another walk of the same look has read, where nothing below it counts."""
        if not self.heads or self.profile.below_skill == "enter" or self.account:
            return None
        head = self.heads.get(f"{place.real_path}/{name}/{SKILL_FILE}")
        below = self._below(place, name) if head is not None and head.data is not None else None
        return below if below is not None and below.verdict is None else None

    def _loose_files(self, folder: int, place: _WalkFrame, names: list[str]) -> Iterator[Found]:
        """Markdown files that count as skills without being called SKILL.md, where a root has such."""
        least_depth = {"none": WALK_DEPTH, "in-folders": 1, "everywhere": 0}[self.root.loose_files]
        if place.depth < least_depth or SKILL_FILE in names:
            return
        for name in names:
            if name.endswith(".md") and files.kind_of(files.stat_at(folder, name).st_mode) == "file":
                yield from self._read(folder, name, place, f"{place.real_path}/{name}", shown=name)

    # Remembering ----------------------------------------------------------------------------------

    def _is_worth_recalling(self, coming: int) -> bool:
        """Whether files can be told by what is remembered; that is asked for once there are enough of them."""
        if self.entries is None and self.files + coming >= CACHE_FROM:
            self.entries = self.remembered(self.root)
        return bool(self.entries) and self.profile.below_skill == "skip" and not self.account

    def _unchanged(self, folder: int, name: str, path: str, real_path: str) -> Kept | None:
        """The skill of a SKILL.md by one look at it, if it is as it is remembered."""
        entry = self.entries.get(path) if self.entries else None
        if entry is None or entry.real_path != real_path or real_path in self.seen:
            return None
        if files.stamp_below(folder, name) != entry.stamp:
            return None
        self.seen.add(real_path)
        return Kept(self.index, path, real_path.rpartition("/")[0], entry)

    # Walking --------------------------------------------------------------------------------------

    def _odd_names(self, place: _WalkFrame, names: list[str]) -> Iterator[Diagnostic]:
        if place.depth == 0 and SKILL_FILE in names and self.profile.root_file == "report":
            message = "a SKILL.md in the root itself is no skill; give it a folder of its own, or name the folder above"
            yield Diagnostic(f"{place.path}/{SKILL_FILE}", "root-file", message)
        for name in names if self.root.loose_files == "none" else ():
            if name == SKILL_FILE or name.lower() not in NEAR_MISSES or SKILL_FILE in names:
                continue
            # A folder may well be called so.
            if "." in name or files.kind_at(f"{place.real_path}/{name}") == "file":
                yield Diagnostic(f"{place.path}/{name}", "file-name", f"{name!r} is not read; rename it to SKILL.md")

    def _child(self, parent: int, place: _WalkFrame, name: str) -> Iterator[Found]:
        below = self._below(place, name)
        if below is None:
            return
        try:
            folder = files.open_folder_at(parent, name)
        except OSError as error:
            yield from self._not_a_folder(parent, below, name, error)
            return
        try:
            yield from self._folder(folder, below)
        finally:
            files.close(folder)

    def _below(self, place: _WalkFrame, name: str) -> _WalkFrame | None:
        """The place of a child, with the reason why skills in it do not count; None where nobody looks."""
        verdict = place.verdict
        depth = place.depth + 1
        if verdict is None:
            skipped = name in self.profile.skip_directories
            if skipped or (self.root.hidden == "skip" and name.startswith(".")):
                if not self.account:
                    return None
                verdict = "ignored"
            elif depth > self.depth_limit:
                verdict = "too-deep"
        if depth > WALK_DEPTH:
            self.too_deep += 1
            return None
        return _WalkFrame(f"{place.path}/{name}", f"{place.real_path}/{name}", depth, verdict)

    def _folder(self, folder: int, place: _WalkFrame) -> Iterator[Found]:
        is_skill = yield from self._probe(folder, place)
        if is_skill and self.profile.below_skill == "skip" and place.verdict is None:
            if not self.account:
                return
            place = place._replace(verdict="inside-skill")
        elif not is_skill:
            self.budget[place.verdict is None] -= 1
        yield from self._children(folder, place)

    def _probe(self, folder: int, place: _WalkFrame) -> Generator[Found, None, bool]:
        """The SKILL.md of a folder, if it has one; returns whether it has."""
        path = f"{place.path}/{SKILL_FILE}"
        try:
            status = files.stat_at(folder, SKILL_FILE)
        except FileNotFoundError:
            return False
        except OSError as error:
            yield Diagnostic(path, "unreadable", _reason(error))
            return True
        if place.verdict is not None:
            yield Filtered(os.path.basename(place.path), path, place.verdict)
            return True
        kind = files.kind_of(status.st_mode)
        if kind == "link":
            if self.profile.linked_file == "skip":
                yield Diagnostic(path, "link-skipped", "SKILL.md is a link; this profile reads only real files")
            else:
                yield from self._linked_file(place, path)
            return True
        if kind != "file":
            yield Diagnostic(path, "not-a-file", f"SKILL.md is a {kind}, not a file")
            return kind != "folder"
        yield from self._read(folder, SKILL_FILE, place, f"{place.real_path}/{SKILL_FILE}")
        return True

    def _read(
        self, folder: int, name: str, place: _WalkFrame, real_path: str, *, shown: str = SKILL_FILE
    ) -> Iterator[Found]:
        path = f"{place.path}/{shown}"
        if not _is_text(path):
            yield Diagnostic(path, "path-encoding", "the path is not UTF-8 or holds a control character")
            return
        if real_path in self.seen:
            yield Repeat(self.index, path, real_path, place.real_path)
            return
        self.files += 1
        if (kept := self._unchanged(folder, name, path, real_path)) is not None:
            yield kept._replace(real_dir=place.real_path)
            return
        try:
            head = self._head(folder, name, real_path)
        except FileNotFoundError:
            return
        except OSError as error:
            yield Diagnostic(path, "unreadable", _reason(error))
            return
        if head.data is not None:
            self.seen.add(real_path)
            yield Candidate(self.index, path, real_path, place.real_path, head.data, head.stamp)
        elif head.kind != "file":
            yield Diagnostic(path, "not-a-file", f"SKILL.md is a {head.kind}, not a file")
        else:
            yield Diagnostic(path, "file-size", f"{head.size} bytes; the limit is {SKILL_FILE_BYTES}")

    def _head(self, folder: int, name: str, real_path: str) -> files.Head:
        known = self.heads.get(real_path) if self.heads is not None else None
        if known is not None:
            return known
        # Imported here, as in the catalog: where nothing changed nothing is parsed.
        from skillshelf.catalog.document import has_frontmatter_end

        head = files.read_head(folder, name, limit=SKILL_FILE_BYTES, enough=has_frontmatter_end)
        if self.heads is not None:
            self.heads[real_path] = head
        return head

    # Links ----------------------------------------------------------------------------------------

    def _not_a_folder(self, parent: int, place: _WalkFrame, name: str, error: OSError) -> Iterator[Found]:
        """What to do with a child that could not be opened as a folder."""
        try:
            kind = files.kind_of(files.stat_at(parent, name).st_mode)
        except OSError:
            return
        self._charge(place, kind)
        if kind == "link" and place.verdict is None:
            yield from self._linked_folder(place)
        elif kind == "folder":
            yield Diagnostic(place.path, "unreadable", _reason(error))

    def _charge(self, place: _WalkFrame, kind: files.Kind) -> None:
        """Count what is no folder too: a link costs as much as a folder, five files as much as one."""
        counts = place.verdict is None
        self.others[counts] += 5 if kind == "link" else 1
        if self.others[counts] >= 5:
            self.others[counts] -= 5
            self.budget[counts] -= 1

    def _linked_folder(self, place: _WalkFrame) -> Iterator[Found]:
        try:
            target = files.resolve_link(place.path)
        except OSError as error:
            # A SKILL.md that leads nowhere was told of when its folder was looked at.
            if os.path.basename(place.path) != SKILL_FILE:
                yield _nowhere(place.path, error)
            return
        if files.kind_at(target) != "folder":
            return
        is_skill = files.kind_at(f"{target}/{SKILL_FILE}") is not None
        if (refusal := self._refusal(place.path, target, os.path.dirname(target) if is_skill else None)) is not None:
            yield refusal
            return
        if files.is_inside(os.path.dirname(place.real_path), target):
            yield Diagnostic(place.path, "link-loop", "the link leads back to a folder above it")
            return
        try:
            folder = files.open_folder(target)
        except OSError as error:
            yield Diagnostic(place.path, "unreadable", _reason(error))
            return
        try:
            yield from self._followed(folder, place._replace(real_path=target))
        finally:
            files.close(folder)

    def _followed(self, folder: int, place: _WalkFrame) -> Iterator[Found]:
        """A folder reached by a link: a skill, or a folder of skills that is walked once."""
        try:
            files.stat_at(folder, SKILL_FILE)
        except OSError:
            if place.real_path in self.followed:
                yield Diagnostic(place.path, "link-loop", "another link led to the same folder; it is walked once")
                return
            self.followed.add(place.real_path)
        yield from self._folder(folder, place)

    def _linked_file(self, place: _WalkFrame, path: str) -> Iterator[Found]:
        try:
            target = files.resolve_link(path)
        except OSError as error:
            yield Diagnostic(path, "not-a-file", f"SKILL.md is a link; {_nowhere(path, error).message}")
            return
        folder_of_skills = os.path.dirname(os.path.dirname(target))
        is_skill = os.path.basename(target) == SKILL_FILE
        if (refusal := self._refusal(path, target, folder_of_skills if is_skill else None)) is not None:
            yield refusal
            return
        kind = files.kind_at(target)
        if kind != "file":
            yield Diagnostic(path, "not-a-file", f"SKILL.md leads to a {kind}, not a file")
            return
        try:
            folder = files.open_folder(os.path.dirname(target))
        except OSError as error:
            yield Diagnostic(path, "unreadable", _reason(error))
            return
        try:
            yield from self._read(folder, os.path.basename(target), place, target)
        finally:
            files.close(folder)

    def _refusal(self, path: str, target: str, root: str | None) -> Diagnostic | None:
        """Why a link is not followed, decided on where it really leads; `root` would allow it as a root.

        No root is advised where there is no skill: a stranger's link must not talk anybody into naming `/etc`.
        """
        if self.root.links == "follow":
            return None
        if self.root.links == "never":
            return Diagnostic(path, "link-skipped", f"a link (to {target}); this profile follows none")
        if any(files.is_inside(target, folder) for folder in self.reachable):
            return None
        message = f"a link to {target}, outside the repository and every root"
        message += how_to_allow(root, self.profile) if root and root != "/" else ""
        return Diagnostic(path, "link-outside", message)


def _nowhere(path: str, error: OSError) -> Diagnostic:
    try:
        target = files.link_target(path)
    except OSError:
        # It was taken away in the meantime.
        return Diagnostic(path, "link-broken", _reason(error))
    why = "" if isinstance(error, FileNotFoundError) else f" ({_reason(error)})"
    rule = "link-loop" if error.errno == errno.ELOOP else "link-broken"
    return Diagnostic(path, rule, f"the link leads nowhere: target {target}{why}")


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def _is_text(path: str) -> bool:
    """Whether a path can be printed, stored and sent as it is."""
    if path.isascii():
        return path.isprintable()
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return not any(c < " " or "\x7f" <= c < "\xa0" for c in path)
