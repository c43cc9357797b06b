"""The skills of a catalog to an index of their terms, kept up to date with the disk.

An index holds one document a skill: a stamp, which stands for the file as it was read and for the name and
description the catalog gives it, and the skill's terms with their impacts (`impacts.entry`). What has to be
done to an index follows from its stamps alone: those that no skill has any more go, those that are missing
come. Scores are sums of whole numbers, so that they do not depend on the order or the segments in which the
documents came, and frequencies are counted among the documents that are there, not among those deleted.

On disk an index lies in a folder of its own with a seal beside it, which says what its files were after the
last commit. An index whose files do not fit its seal was damaged, or its writer was killed: it is made anew.
"""

import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from skillshelf import files, resources, writing
from skillshelf.document import body
from skillshelf.errors import SkillError
from skillshelf.impacts import PER_UNIT, WEIGHTS, Weights, entry
from skillshelf.limits import INDEX_WAIT_SECONDS, INDEXES_KEPT, SETTLED_NS, SKILL_FILE_BYTES
from skillshelf.progress import Progress, progress
from skillshelf.terms import analyzer, is_single
from skillshelf.values import CatalogSkill, Stamp

if TYPE_CHECKING:
    from typing import TextIO

    import tantivy

__all__ = ["SkillIndex", "body_of", "folder_for", "open_index"]

FORMAT = 1
"""Changes whenever an index of an earlier version would give other answers."""

_UNIT = 256
"""Parts of a point in which scores are counted; sums stay whole numbers that 32-bit floats hold exactly."""

_HEAP_BYTES = 64_000_000
_SMALL_HEAP_BYTES = 15_000_000
_FEW = 200
_REMEMBERED = 50_000
_LOCKS = ".tantivy"


class _Damaged(Exception):
    """What lies on disk is no index of ours, or one that cannot be used."""


class _Postings(NamedTuple):
    """A term's tokens with their steps, and in how many skills it is."""

    steps: tuple[tuple[str, int], ...]
    skills: int


class SkillIndex:
    """One state of an index, for asking; what others do to the files does not change it."""

    def __init__(
        self,
        searcher: "tantivy.Searcher",
        schema: "tantivy.Schema",
        positions: Mapping[int, int],
        coverage: float,
    ) -> None:
        self.coverage = coverage
        self._searcher = searcher
        self._schema = schema
        self._positions = positions
        self._whole = searcher.doc_freq("terms", "/") == searcher.num_docs
        self._known: dict[str, _Postings] = {}

    def weight(self, term: str) -> float:
        """How rare a term is among the skills; 0 if none has it."""
        skills = self._postings(term).skills
        return math.log(1 + (len(self._positions) - skills + 0.5) / (skills + 0.5)) if skills else 0.0

    def skills_with(self, term: str) -> int:
        """In how many skills a term is."""
        return self._postings(term).skills

    def best(self, asked: Mapping[str, float], most: int) -> list[tuple[int, int]]:
        """The scores and positions of the skills that fit weighted terms best, in no order where scores are equal."""
        from tantivy import Occur, Query

        clauses = [
            (Occur.Should, Query.const_score_query(self._token(token), float(round(_UNIT * weight * step / PER_UNIT))))
            for term, weight in asked.items()
            for token, step in self._postings(term).steps
        ]
        if not clauses:
            return []
        found = self._searcher.search(
            Query.boolean_query(clauses), limit=min(most, len(self._positions)), count=False
        ).hits
        stamps = self._searcher.fast_field_values("stamp", [address for _, address in found])
        return [(int(score), self._positions[int(stamp or 0)]) for (score, _), stamp in zip(found, stamps, strict=True)]

    def _token(self, token: str) -> "tantivy.Query":
        from tantivy import Query

        return Query.term_query(self._schema, "terms", token, index_option="basic")

    def _postings(self, term: str) -> _Postings:
        known = self._known.get(term)
        if known is None:
            # A single character of a run is at the beginning of every pair it stands in, or at the end of the run.
            single = is_single(term)
            found = self._searcher.terms_with_prefix("terms", term if single else f"{term}/")
            counted = self._whole and not single
            skills = sum(skills for _, skills in found) if counted else self._count([token for token, _ in found])
            steps = tuple((token, int(token.rpartition("/")[2])) for token, _ in found)
            known = _Postings(steps, skills)
            if steps:
                if len(self._known) >= _REMEMBERED:
                    self._known.clear()
                self._known[term] = known
        return known

    def _count(self, tokens: Sequence[str]) -> int:
        """How many skills have one of the tokens: an index counts deleted documents until it gets rid of them."""
        from tantivy import Occur, Query

        if not tokens:
            return 0
        query = Query.boolean_query([(Occur.Should, self._token(token)) for token in tokens])
        return int(self._searcher.search(query, limit=1, count=True).count)  # type: ignore[attr-defined]


# Opening ------------------------------------------------------------------------------------------


def folder_for(cache: str, roots: Sequence[str], profile: str) -> str:
    """Where the index for a set of roots lies: another set, version or profile has another."""
    from tantivy.tantivy import __version__ as library

    key = repr((FORMAT, library, profile, *roots))
    return f"{cache}/search/{blake2b(key.encode('utf-8', 'surrogateescape'), digest_size=12).hexdigest()}"


def open_index(
    skills: Sequence[CatalogSkill],
    folder: str | None,
    *,
    stream: "TextIO | None" = None,
    weights: Weights = WEIGHTS,
) -> SkillIndex:
    """An index of exactly these skills as they are on disk now.

    Without a folder, or where nothing can be kept there, it is made in memory.
    """
    work = _Work(skills, weights, stream)
    if folder is not None:
        try:
            return _open_kept(work, folder)
        except (OSError, _Damaged):
            # Read-only, full, held by another for long, or damaged even after it was made anew.
            pass
    with _failures():
        index, schema = _new_index(None)
        return work.settle(index, schema, {})


def _open_kept(work: "_Work", folder: str) -> SkillIndex:
    """The index in a folder: as it is if nothing changed, or else with what changed."""
    writing.make_own_folder(folder)
    kept = _Kept(folder)
    if (found := kept.look()) and work.fits(found[2]):
        return work.asking(*found[:2])
    with writing.locked_within(f"{folder}/lock", INDEX_WAIT_SECONDS) as held:
        if not held:
            raise BlockingIOError("another process is busy with this index")
        if found is None or kept.changed():
            found = kept.look()
        if found is None:
            _forget_others(folder)
            found = kept.start()
        index, schema, have = found
        if work.fits(have):
            return work.asking(index, schema)
        with _failures():
            settled = work.settle(index, schema, have)
        kept.seal()
        return settled


class _Kept:
    """An index in a folder, with its seal."""

    def __init__(self, folder: str) -> None:
        self._files = f"{folder}/index"
        self._seal = f"{folder}/seal"
        self._looked_at = b""

    def look(self) -> "tuple[tantivy.Index, tantivy.Schema, dict[int, None]] | None":
        """The index as its seal describes it, with its stamps; None for everything else."""
        try:
            self._looked_at = self._state()
            if self._looked_at != files.read_file(self._seal, limit=1 << 20, links="never"):
                return None
            with _failures():
                index, schema = _new_index(self._files)
                return index, schema, _stamps_of(index.searcher())
        except (OSError, _Damaged):
            return None

    def changed(self) -> bool:
        """Whether the files are others than at the last look."""
        return self._looked_at != self._state()

    def start(self) -> "tuple[tantivy.Index, tantivy.Schema, dict[int, None]]":
        """An empty index in the place of what is there."""
        writing.remove_folder(self._files)
        writing.make_own_folder(self._files)
        with _failures():
            index, schema = _new_index(self._files)
        return index, schema, {}

    def seal(self) -> None:
        """Write down what the files are now."""
        writing.replace_file(self._seal, self._state())

    def _state(self) -> bytes:
        stamps = files.stamps_in(self._files)
        return repr(sorted((name, *stamp) for name, stamp in stamps.items() if not name.startswith(_LOCKS))).encode()


def _forget_others(folder: str) -> None:
    """Remove the indexes that were not changed for longest, where there are too many beside this one."""
    parent = os.path.dirname(folder)
    seals = {name: files.stamp_at(f"{parent}/{name}/seal") for name in files.stamps_in(parent)}
    by_age = sorted(seals, key=lambda name: (seals[name] or (0,) * 5)[3], reverse=True)
    for name in by_age[INDEXES_KEPT:]:
        if f"{parent}/{name}" != folder:
            writing.remove_folder(f"{parent}/{name}")


def _new_index(folder: str | None) -> "tuple[tantivy.Index, tantivy.Schema]":
    """An index in a folder, new or opened, or in memory."""
    import tantivy

    schema = (
        tantivy.SchemaBuilder()
        .add_integer_field("stamp", stored=False, indexed=True, fast=True)
        .add_text_field("terms", stored=False, tokenizer_name="blanks", index_option="basic")
        .build()
    )
    index = tantivy.Index(schema, folder)
    index.register_tokenizer("blanks", tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build())
    index.config_reader("manual")
    return index, schema


def _stamps_of(searcher: "tantivy.Searcher") -> dict[int, None]:
    from tantivy import Query

    if not searcher.num_docs:
        return {}
    found = searcher.search(Query.all_query(), limit=searcher.num_docs, count=False).hits
    stamps = searcher.fast_field_values("stamp", [address for _, address in found])
    return dict.fromkeys(int(stamp or 0) for stamp in stamps)


@contextmanager
def _failures() -> Iterator[None]:
    """Turn every failure of the library into one kind: it raises ValueError, and its panics are no Exception."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError):
        raise
    except BaseException as error:
        if not isinstance(error, ValueError) and type(error).__name__ != "PanicException":
            raise
        raise _Damaged(str(error)) from error


# Bringing up to date ------------------------------------------------------------------------------


class _Work:
    """The skills an index shall hold, by the stamps they have now."""

    def __init__(self, skills: Sequence[CatalogSkill], weights: Weights, stream: "TextIO | None") -> None:
        self._skills = skills
        self._weights = weights
        self._stream = stream
        now = time.time_ns()
        self._seen = [files.stamp_at(skill.real_path) for skill in skills]
        self._positions = {
            _stamp(skill, seen, once=None if _is_settled(seen, now) else now): position
            for position, (skill, seen) in enumerate(zip(skills, self._seen, strict=True))
        }

    def fits(self, have: Mapping[int, None]) -> bool:
        """Whether an index with these stamps needs no change."""
        return have.keys() == self._positions.keys()

    def asking(self, index: "tantivy.Index", schema: "tantivy.Schema") -> SkillIndex:
        """An index that fits, for asking."""
        return SkillIndex(index.searcher(), schema, self._positions, self._weights.coverage)

    def settle(self, index: "tantivy.Index", schema: "tantivy.Schema", have: Mapping[int, None]) -> SkillIndex:
        """Take out of an index what is no longer there, put in what is missing, and commit."""
        missing = [(stamp, position) for stamp, position in self._positions.items() if stamp not in have]
        writer = index.writer(_HEAP_BYTES if len(missing) > _FEW else _SMALL_HEAP_BYTES, 1)
        for stamp in have.keys() - self._positions.keys():
            writer.delete_documents_by_term("stamp", stamp)
        with progress("Indexing skills", len(missing), self._stream) as bar:
            self._add(writer, missing, bar)
        writer.commit()
        writer.wait_merging_threads()
        index.reload()
        return SkillIndex(index.searcher(), schema, self._positions, self._weights.coverage)

    def _add(self, writer: "tantivy.IndexWriter", missing: Sequence[tuple[int, int]], bar: Progress) -> None:
        from tantivy import Document

        for stamp, position in missing:
            skill, seen = self._skills[position], self._seen[position]
            text = body_of(skill)
            if files.stamp_at(skill.real_path) != seen:
                # Written while it was read: what was read may be half of it.
                del self._positions[stamp]
                stamp = _stamp(skill, seen, once=time.time_ns())
                self._positions[stamp] = position
            document = Document()
            document.add_integer("stamp", stamp)
            terms = entry(skill.name, skill.description, text, analyzer(), self._weights)
            # The token that every document has: it tells how many there are, deleted ones included.
            document.add_text("terms", f"/ {terms}")
            writer.add_document(document)
            bar.advance()


def _stamp(skill: CatalogSkill, seen: Stamp | None, *, once: int | None) -> int:
    """A number that stands for a skill with its file as it is; with `once`, one that no later look will find."""
    file = "%d %d %d %d %d" % seen if seen else ""  # noqa: UP031 - half the time of an f-string, for every skill.
    told = f"{skill.path}\0{skill.name}\0{skill.description}\0{file}\0{once}"
    digest = blake2b(told.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def _is_settled(seen: Stamp | None, now: int) -> bool:
    """Whether another change would show; two within one tick of the clock leave the same stamp."""
    return seen is None or now - max(seen[3:]) > SETTLED_NS


def body_of(skill: CatalogSkill) -> str:
    """The text after the frontmatter; empty where the file is gone or cannot be read, as a load would say."""
    try:
        data = resources.read_skill(skill, limit=SKILL_FILE_BYTES).data
    except (OSError, SkillError):
        return ""
    return body(data).decode("utf-8", "replace")
