"""Everything that the pages of `ui` and `site` show of one look at the disk."""

import os
import threading
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from skillshelf.catalog.document import body, parse
from skillshelf.catalog.load import SKILL_FILE, near_names
from skillshelf.catalog.lock_places import CHANGED
from skillshelf.catalog.locked_catalog import LockState
from skillshelf.catalog.prompt import tokens_in
from skillshelf.catalog.tree import PROBLEMS, covered_entries, skill_tree
from skillshelf.config.hosts import HOSTS
from skillshelf.config.profile import Profile
from skillshelf.config.settings import Settings
from skillshelf.core import files
from skillshelf.core.console import as_json
from skillshelf.core.digests import sha256
from skillshelf.core.environment import Environment
from skillshelf.core.limits import (
    SKILL_FILE_BYTES,
    WEB_FILE_BYTES,
    WEB_FILES,
    WEB_HIT_CHARS,
    WEB_MARKDOWN_CHARS,
)
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import cut, fold, plural, visible
from skillshelf.core.values import CatalogSkill
from skillshelf.errors import SkillError
from skillshelf.hosts.explain import FileExplanation, explain, hidden_files, named_in, why_candidates
from skillshelf.hosts.inventory import Inventory, InventoryProblem, InventorySkill, catalog_of
from skillshelf.hosts.overview import host_count, overview_of
from skillshelf.hosts.placement import link_name
from skillshelf.hosts.stages import VERDICTS
from skillshelf.hosts.survey import Survey, roots_of_hosts, take_survey
from skillshelf.search.query import SearchReport, excerpt, terms_in
from skillshelf.servers.web.catalogue import (
    CommandHint,
    FileBytes,
    FileEntry,
    HostAnswer,
    HostSummary,
    Preparation,
    ProblemEntry,
    ProblemGroup,
    SearchAnswer,
    SearchHit,
    SkillDetail,
    SkillDiff,
    SkillSummary,
    SkillVersion,
    WhyCandidate,
    file_order,
    findings_group,
    matched_beginning,
    matched_parts,
    slugs_of,
)
from skillshelf.servers.web.installed import VERIFY, InstalledSkills, typed_names
from skillshelf.servers.web.paths import ShownPaths
from skillshelf.shelf import Shelf

__all__ = ["LocalOptions", "LocalState", "shown_paths"]

_RESULTS = 20
_FIELD_CHARS = 2_000
_NEAR = 3


class LocalOptions(NamedTuple):
    """What a local catalogue is made of: where it starts, whose rules count, and the journals it reads.

    `cache` is the folder of the cache, None to use none. `waits` reads everything before the first answer and never
    again, as a static site needs it.
    """

    environment: Environment
    settings: Settings
    profile: Profile
    cache: str | None
    journals: tuple[str, ...] = ()
    waits: bool = False
    all_hosts: bool = False
    hidden_home: str | None = None
    """The home folder that texts must not name, where the environment has none."""
    within: str | None = None
    """The folder that skills must really lie in; None for anywhere."""


def shown_paths(options: LocalOptions, repository: str | None) -> ShownPaths:
    """Return how paths are shown: without the home folder, below a repository if it is known."""
    environment = options.environment
    return ShownPaths(environment.cwd, environment.home or options.hidden_home, repository)


def _is_skill_file(path: str) -> bool:
    return os.path.basename(path).lower() == SKILL_FILE.lower()


class LocalState:
    """Everything that follows from one look at the disk; what takes long is found out when it is asked for."""

    def __init__(self, options: LocalOptions, found: Inventory) -> None:
        self._options = options
        self.found = found
        self._shown = shown_paths(options, found.repository)
        order = {place.path: number for number, place in enumerate(found.places)}
        self._ordered = sorted(
            found.skills, key=lambda skill: (order.get(found.place_of(skill.path), len(order)), skill.name, skill.path)
        )
        self.slugs = slugs_of([skill.name for skill in self._ordered])
        self._by_slug = dict(zip(self.slugs, self._ordered, strict=True))
        self._slug_by_path = {
            path: slug for slug, skill in self._by_slug.items() for path in (skill.path, *skill.copies)
        }
        self._slug_by_real = {skill.skill_file.real_path: slug for slug, skill in self._by_slug.items()}
        self.installed = InstalledSkills(options.environment, options.settings, self._shown)
        catalog = catalog_of(found, options.profile, options.settings)
        self._descriptions = {skill.real_path: skill.description for skill in catalog.skills}
        self._declared = {skill.real_path: skill.name for skill in catalog.skills}
        # Pages search with every key: a server of embeddings would get each beginning of a word.
        profile = options.profile._replace(configured_scorer="ignored")
        place = (options.environment, profile, options.settings, "ask")
        self._shelf = Shelf(*place, use_cache=options.cache is not None, catalog=catalog)  # type: ignore[arg-type]
        self._ready = threading.Event()
        self._search_problem = ""
        self._collisions: ProblemGroup | None = None
        self._outdated: ProblemGroup | None = None
        self._details: dict[str, Sequence[WhyCandidate]] = {}
        # A survey remembers what it is asked, and two threads must not ask at once.
        self.lock = threading.RLock()

    def shows(self, found: Inventory) -> bool:
        """Return whether a later look at the disk found the same."""
        mine = self.found
        return (mine.skills, mine.problems, mine.places, mine.names, mine.hosts) == (
            found.skills,
            found.problems,
            found.places,
            found.names,
            found.hosts,
        )

    def prepare(self) -> None:
        """Make what pages show that takes long: the index of the search, then collisions and what is outdated."""
        if self._ready.is_set():
            return
        _ = self._survey
        with self.lock:
            _ = self.summaries, self.hosts, self.why(self.slugs[0]) if self.slugs else None
        try:
            self._shelf.prepare_search()
        except OSError as error:
            self._search_problem = str(error)
        self._ready.set()
        _ = self.collisions, self.outdated

    # Lists ----------------------------------------------------------------------------------------

    @cached_property
    def summaries(self) -> list[SkillSummary]:
        """All skills in short."""
        return [self._summary(slug, skill) for slug, skill in self._by_slug.items()]

    def _summary(self, slug: str, skill: InventorySkill) -> SkillSummary:
        real = skill.skill_file.real_path
        lock = self.found.survey.lock_members(os.path.dirname(real), os.path.dirname(skill.path))
        labels = ["changed"] if lock["changed"] else []
        labels += [plural(len(skill.copies), "copy").replace("copys", "copies")] if skill.copies else []
        errors = sum(problem.severity == "error" for problem in skill.problems)
        return SkillSummary(
            slug,
            skill.name,
            self._shown.known(fold(self._descriptions.get(real, ""))),
            self._shown.path(self.found.place_of(skill.path)),
            skill.hosts,
            errors,
            len(skill.problems) - errors,
            str(lock["version"] or ""),
            tuple(labels),
            declared if (declared := self._declared.get(real, "")) != skill.name else "",
        )

    @cached_property
    def _summary_by_slug(self) -> dict[str, SkillSummary]:
        return {summary.slug: summary for summary in self.summaries}

    @cached_property
    def places(self) -> dict[str, list[SkillSummary]]:
        """All skills in short, by place."""
        found: dict[str, list[SkillSummary]] = {}
        for summary in self.summaries:
            found.setdefault(summary.place, []).append(summary)
        return found

    @cached_property
    def slug_by_name(self) -> dict[str, str]:
        """The slug of the first skill of each name, and of each name that a skill gives itself."""
        declared = {summary.declared: summary.slug for summary in reversed(self.summaries) if summary.declared}
        return declared | {summary.name: summary.slug for summary in reversed(self.summaries)}

    # Search ---------------------------------------------------------------------------------------

    def search(self, query: str) -> SearchAnswer:
        """Search the skills of all places."""
        count = len(self._shelf.catalog.skills)
        if not self._ready.is_set():
            total, done = self._shelf.indexing or (0, 0)
            return SearchAnswer(query, searched=count, preparing=Preparation("Building the search index", done, total))
        if self._search_problem:
            problem = self._shown.text(self._search_problem)
            return SearchAnswer(query, notes=(f"there is no search index: {problem}",), searched=count)
        report = self._shelf.search(query, limit=_RESULTS)
        hits = tuple(hit for result in report.results if (hit := self._hit(result, report)) is not None)
        notes = [self._shown.text(note) for note in report.notes]
        if report.weak and hits:
            notes.append("no skill clearly fits; these are the closest")
        near = () if hits else tuple(near_names(query, self._shelf.catalog.skills)[:_NEAR])
        return SearchAnswer(query, hits, report.truncated and not report.weak, tuple(notes), near, count)

    def _hit(self, result: Any, report: SearchReport) -> SearchHit | None:
        from skillshelf.search.index import body_of
        from skillshelf.search.rank import analyzer

        slug = self._slug_by_real.get(result.skill.real_path)
        if slug is None:
            return None
        summary = self._summary_by_slug[slug]
        terms = report.terms or frozenset(analyzer().query_terms(report.query))
        missing = terms - terms_in(f"{summary.name} {summary.description}", terms)
        line = excerpt(body_of(result.skill), missing) if missing and self._is_shown(self._by_slug[slug]) else ""
        why = [f"{result.reason}"] if not result.why else [*result.why]
        return SearchHit(
            summary,
            matched_parts(summary.name, terms),
            matched_beginning(summary.description, terms, WEB_HIT_CHARS),
            matched_parts(cut(self._shown.known(fold(line)), 240), missing),
            result.score,
            tuple(self._shown.text(one) for one in why),
        )

    # One skill ------------------------------------------------------------------------------------

    def detail(self, slug: str) -> SkillDetail | None:
        """Return everything about a skill."""
        skill = self._by_slug.get(slug)
        if skill is None:
            return None
        summary = self._summary_by_slug[slug]
        notes: list[str] = []
        data = self._read(skill, notes)
        text = body(data).decode("utf-8", "replace")
        entries, left_out = self._files(skill, notes)
        tree, problem = self._tree(skill)
        names = [one for one in self.summaries if one.name == skill.name and one.slug != slug]
        lock = self.found.survey.lock_members(*self._folders(skill))
        return SkillDetail(
            summary,
            self._shown.known(text),
            self._fields(data),
            entries,
            left_out,
            tokens_in(f"{skill.name}: {summary.description}"),
            tokens_in(text),
            f"sha256:{sha256(data).hexdigest()}" if data else "",
            tree,
            problem,
            self._shown.text(str(lock["origin"] or "")),
            facts=(("Size of SKILL.md", f"{len(data):,} bytes"),),
            problems=tuple(self._problem(slug, problem) for problem in skill.problems),
            commands=tuple(self._commands(skill)),
            others=tuple(names),
            copies=tuple(self._shown.path(os.path.dirname(path)) for path in skill.copies),
            notes=tuple(notes),
            text_cut=len(text) > WEB_MARKDOWN_CHARS,
        )

    @staticmethod
    def _folders(skill: InventorySkill) -> tuple[str, str]:
        return os.path.dirname(skill.skill_file.real_path), os.path.dirname(skill.path)

    @staticmethod
    def _folder(skill: InventorySkill) -> str:
        """Return the folder with the files of a skill.

        A link to a file of another name does not make a skill of whatever lies beside that file.
        """
        real = skill.skill_file.real_path
        return os.path.dirname(real) if _is_skill_file(real) else files.real_path(os.path.dirname(skill.path))

    def _is_shown(self, skill: InventorySkill) -> bool:
        """Return whether the text of a skill may be shown: a link in a clone could lead to any file of the reader."""
        real, top = skill.skill_file.real_path, self.found.repository or self._options.environment.cwd
        return _is_skill_file(real) or files.is_inside(real, top) or not files.is_inside(skill.path, top)

    def _read(self, skill: InventorySkill, notes: list[str]) -> bytes:
        real = skill.skill_file.real_path
        if not self._is_shown(skill):
            notes.append("SKILL.md is a link to a file outside this project that is no SKILL.md, and is not shown")
            return b""
        try:
            with files.Folder(os.path.dirname(real)) as folder:
                return folder.read([os.path.basename(real)], limit=SKILL_FILE_BYTES).data
        except files.TooLarge as error:
            notes.append(f"SKILL.md has {error.size:,} bytes, more than are read (SKILL_FILE_BYTES)")
        except OSError as error:
            notes.append(f"SKILL.md cannot be read: {(error.strerror or str(error)).lower()}")
        return b""

    def _fields(self, data: bytes) -> tuple[tuple[str, str], ...]:
        fields = parse(data, whole=True).fields if data else {}
        texts = ((key, value if isinstance(value, str) else as_json(value).strip()) for key, value in fields.items())
        known = self._shown.known
        return tuple((cut(known(key), 100), cut(known(text), _FIELD_CHARS)) for key, text in texts)

    def _files(self, skill: InventorySkill, notes: list[str]) -> tuple[tuple[FileEntry, ...], int]:
        """Return the first files of a skill, and the number of the others."""
        try:
            with files.Folder(self._folder(skill)) as folder:
                found = covered_entries(folder)
                paths = sorted(found.files, key=file_order)
                listed = [
                    FileEntry(path, found.files[path][2], bool(folder.mode(path.split("/")) & 0o100))
                    for path in paths[:WEB_FILES]
                ]
        except OSError as error:
            notes.append(f"the files cannot be listed: {(error.strerror or str(error)).lower()}")
            return (), 0
        if found.others:
            what = ", ".join(visible(path) for path in sorted(found.others)[:3])
            which = "1 entry is" if len(found.others) == 1 else f"{len(found.others):,} entries are"
            notes.append(f"{which} neither a file nor a folder, and not read: {what}")
        if not found.complete:
            notes.append("not all files were listed")
        return tuple(listed), len(paths) - len(listed)

    def _tree(self, skill: InventorySkill) -> tuple[str, str]:
        folder = self._folder(skill)
        if skill.tree is not None and folder == os.path.dirname(skill.skill_file.real_path):
            return skill.tree, ""
        try:
            found = skill_tree(folder)
        except SkillError as error:
            return "", self._shown.text(str(error))
        return found.digest or "", PROBLEMS[found.problem] if found.problem is not None else ""

    def _commands(self, skill: InventorySkill) -> list[CommandHint]:
        place, state = self._typed(skill), self._lock_state(skill)
        found = [
            CommandHint(f"skillshelf show {place}", "exactly what a model gets"),
            CommandHint(f"skillshelf why {place}", "which agents see it, and how to fix the others"),
        ]
        if (folder := self._typed_folder(skill)) is not None:
            found.append(CommandHint(f"skillshelf check {folder}", "every finding, with advice"))
        if state is None:
            return [*found, CommandHint(f"skillshelf link {place} --to HOST", "let another agent see it")]
        name = self.installed.typed(state)
        if name is None:
            return [*found, CommandHint(VERIFY, "what is wrong with its lock")] if state.changed else found
        if state.changed:
            return [
                *found,
                CommandHint(f"skillshelf diff {name}", "what was changed since it was installed"),
                CommandHint(f"skillshelf update {name} --restore", "bring the installed files back"),
            ]
        return [*found, CommandHint(f"skillshelf update {name}", "take what the source has now, after its difference")]

    def _lock_state(self, skill: InventorySkill) -> LockState | None:
        return self.found.survey.lock_state(*self._folders(skill))

    def _typed(self, skill: InventorySkill) -> str:
        """Return how a skill is named in a command: by its folder, or by its name if that is outside."""
        return self._typed_folder(skill) or typed_names(skill.name)

    def _typed_folder(self, skill: InventorySkill) -> str | None:
        """Return the folder of a skill as it is typed; None if only an absolute path names it."""
        folder = self.found.survey.typed(os.path.dirname(skill.path))
        return None if folder.startswith(("/", "'/")) else folder

    def file(self, slug: str, path: str) -> FileBytes | None:
        """Return a regular file inside a skill."""
        skill = self._by_slug.get(slug)
        segments = path.split("/")
        if skill is None or not path or any(segment in ("", ".", "..", ".git") for segment in segments):
            return None
        place = self._folder(skill)
        if path == "SKILL.md":
            if not self._is_shown(skill):
                return None
            place, name = os.path.split(skill.skill_file.real_path)
            segments = [name]
        try:
            with files.Folder(place) as folder:
                if path != "SKILL.md" and path not in covered_entries(folder).files:
                    return None
                return FileBytes(path, folder.read(segments, limit=WEB_FILE_BYTES).data)
        except files.TooLarge as error:
            return FileBytes(path, b"", error.size)
        except (OSError, ValueError):
            return None

    # Hosts ----------------------------------------------------------------------------------------

    def why(self, slug: str) -> Sequence[WhyCandidate] | None:
        """Return what `why` says of the name of a skill."""
        skill = self._by_slug.get(slug)
        if skill is None:
            return None
        if skill.name not in self._details:
            survey = self._survey
            found = named_in(skill.name, survey)
            if not found:
                survey = self.found.survey
                named = named_in(skill.name, survey)
                below = [one for one in named if files.is_inside(one.path, self._options.environment.cwd)]
                found = below or named or [skill.skill_file]
            explanations = explain(found, survey, self.found.names, ranked=False)
            hidden = hidden_files(self._catalog_for_models, found, survey)
            rows = why_candidates(explanations, survey, hidden)
            pairs = zip(rows, explanations, strict=True)
            self._details[skill.name] = tuple(self._candidate(row, explanation) for row, explanation in pairs)
        return self._details[skill.name]

    @cached_property
    def _survey(self) -> Survey:
        """The survey that `why` takes: of what hosts read; another one only if the repository has more than that."""
        options, whole = self._options, self.found.survey
        read = roots_of_hosts(options.environment)
        below = tuple({f"{root.path}/" for roots in read.values() for root in roots.roots})
        if all(any(path.startswith(below) for path in one.paths) for one in whole.skill_files):
            return whole
        survey = take_survey(options.environment, self.found.names, cache_folder=options.cache)
        if options.cache is not None:
            survey.keep(options.cache)
        return survey

    @cached_property
    def _catalog_for_models(self) -> Any:
        options = self._options
        shelf = Shelf(
            options.environment, options.profile, options.settings, "ask", use_cache=options.cache is not None
        )
        return shelf.catalog

    def _candidate(self, row: Mapping[str, Any], explanation: FileExplanation) -> WhyCandidate:
        text = self._shown.text
        about = row["path"], os.path.dirname(row["path"])
        answers = tuple(
            HostAnswer(
                one["host"],
                one["visible"],
                one["verdict"],
                text(one["detail"], about),
                one["told"],
                text(one["fix"], about) if one["fix"] is not None else None,
                one["as_of"],
                one["grade"],
                VERDICTS[one["verdict"]][1],
            )
            for one in row["hosts"]
        )
        hidden = row["hidden"] or ""
        if hidden and row["hidden_by"]:
            hidden = f"{hidden} ({text(row['hidden_by'])})"
        return WhyCandidate(self._shown.path(row["path"]), answers, text(explanation.note), hidden)

    @cached_property
    def hosts(self) -> list[HostSummary]:
        """The numbers of every host."""
        survey = self.found.survey
        texts = [(link_name(one), one.text) for one in survey.skill_files]
        found = []
        for one in overview_of(survey).hosts:
            count, host = host_count(one, texts), HOSTS[one.host]
            numbers = (count.visible, count.missing, count.unknown, count.tokens, count.chars, count.budget)
            found.append(HostSummary(one.host, *numbers, len(count.cut), len(count.dropped), host.grade, host.as_of))
        return found

    # Problems -------------------------------------------------------------------------------------

    def _problem(self, slug: str, problem: InventoryProblem) -> ProblemEntry:
        skill = self._by_slug.get(slug)
        where = self._shown.path(problem.path) + (f":{problem.line}" if problem.line else "")
        command = f"skillshelf explain {problem.rule}"
        if skill is not None and problem.rule == CHANGED:
            state = self._lock_state(skill)
            name = self.installed.typed(state) if state is not None else None
            command = f"skillshelf diff {name}" if name is not None else VERIFY
        elif skill is not None and (folder := self._typed_folder(skill)) is not None:
            command = f"skillshelf check {folder}"
        subject = skill.name if skill is not None else self._shown.path(problem.path)
        message = self._shown.text(fold(problem.message))
        return ProblemEntry(problem.severity, subject, message, problem.rule, slug, where, command)

    @cached_property
    def _findings(self) -> list[ProblemEntry]:
        found = [self._problem("", problem) for problem in self.found.problems]
        return found + [self._problem(slug, one) for slug, skill in self._by_slug.items() for one in skill.problems]

    def problems(self) -> list[ProblemGroup]:
        """Return all kinds of problems."""
        changed = tuple(one for one in self._findings if one.rule == CHANGED)
        findings = [one for one in self._findings if one.rule != CHANGED]
        check = CommandHint("skillshelf check", "every finding, with its line and how to fix it")
        verify = CommandHint(VERIFY, "every file that differs from its lock")
        preparing = None if self._options.waits else Preparation("Comparing descriptions")
        return [
            ProblemGroup("changed", "Changed since installed", changed, "Installed skills are as installed.", verify),
            findings_group(findings, check),
            self._unseen,
            self.outdated
            if self._options.waits or self._outdated is not None
            else ProblemGroup("outdated", "Outdated", (), "", None, Preparation("Asking the sources on this disk")),
            self.collisions
            if self._options.waits or self._collisions is not None
            else ProblemGroup("collisions", "Similar descriptions", (), "", None, preparing),
        ]

    @cached_property
    def _unseen(self) -> ProblemGroup:
        entries = [
            ProblemEntry(
                "warning",
                skill.name,
                "none of these agents sees it" if self.found.chosen_by != "all" else "no agent sees it",
                "",
                slug,
                self._shown.path(os.path.dirname(skill.path)),
                f"skillshelf why {self._typed(skill)}",
            )
            for slug, skill in self._by_slug.items()
            if skill.is_unseen
        ]
        hint = CommandHint("skillshelf sync --dry-run", "what would be linked so that agents see your skills")
        return ProblemGroup("unseen", "Seen by no agent", tuple(entries), "Every skill is seen by an agent.", hint)

    @property
    def outdated(self) -> ProblemGroup:
        """The installed skills whose sources on this disk have other files; other sources are not asked."""
        if self._outdated is None:
            slugs = {self._by_slug[slug].name: slug for slug in reversed(self.slugs)}
            self._outdated = self.installed.outdated(slugs)
        return self._outdated

    @property
    def collisions(self) -> ProblemGroup:
        """The skills whose descriptions say nearly the same."""
        if self._collisions is None:
            self._collisions = self._find_collisions()
        return self._collisions

    def _find_collisions(self) -> ProblemGroup:
        from skillshelf.search.collisions import near_duplicates

        skills: list[CatalogSkill] = [skill for skill in self._shelf.catalog.skills if skill.description.strip()]
        found = []
        for first, second in near_duplicates([skill.description for skill in skills]):
            one, other = skills[first], skills[second]
            slug = self._slug_by_real.get(one.real_path, "")
            # A skill of the same name is its copy for another agent.
            if one.name != other.name:
                message = "says nearly the same as"
                command = f"skillshelf eval {typed_names(one.name, other.name)}"
                both = other.name, self._slug_by_real.get(other.real_path, "")
                rule = "description-collision"
                found.append(ProblemEntry("warning", one.name, message, rule, slug, "", command, both))
        hint = CommandHint("skillshelf eval", "which skill wins each request")
        return ProblemGroup("collisions", "Similar descriptions", tuple(found), "No two descriptions collide.", hint)

    # Versions -------------------------------------------------------------------------------------

    def versions(self, slug: str) -> Sequence[SkillVersion] | None:
        """Return the versions of an installed skill; none of any other."""
        skill = self._by_slug.get(slug)
        if skill is None:
            return None
        state = self._lock_state(skill)
        return self.installed.versions(state) if state is not None else ()

    def difference(self, slug: str, before: str, after: str) -> SkillDiff | None:
        """Return how one version becomes another."""
        skill = self._by_slug.get(slug)
        state = self._lock_state(skill) if skill is not None else None
        if skill is None or state is None:
            return None
        by_key = {version.key: version for version in self.installed.versions(state)}
        if before not in by_key or after not in by_key:
            return None
        return self.installed.difference(by_key[before], by_key[after], state, self._folder(skill))
