"""Prepare a command of installing: its scope, lock and policy, and the questions before it reads or writes."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from shlex import quote
from typing import TYPE_CHECKING, Any

from skillshelf.catalog.lock import LockedSkill, read_lock
from skillshelf.catalog.store import Store, store_of
from skillshelf.cli.command_table import command_again
from skillshelf.cli.commands import Values, environment_for
from skillshelf.cli.install_view import slow_work
from skillshelf.config.approvals import read_approvals
from skillshelf.config.settings import Settings, is_trusted, load_settings, load_system_policy
from skillshelf.config.system_policy import require_source
from skillshelf.core import files
from skillshelf.core.console import PathDisplay, ask, can_ask, note
from skillshelf.core.text import did_you_mean, plural, visible
from skillshelf.errors import (
    ConfigurationError,
    PermissionDenied,
    SkillDirectoryNotFound,
    SkillError,
    SourceNotFound,
    SourceRefused,
)
from skillshelf.install.scope import scope_of
from skillshelf.install.wishes import Wish, read_wishes

if TYPE_CHECKING:
    from skillshelf.core.values import Catalog
    from skillshelf.hosts.link_records import LinkRecord
    from skillshelf.install.reference import SourceContext, SourceReference
    from skillshelf.install.sources import SourceReader
    from skillshelf.install.verify import SkillFound
    from skillshelf.lint.consent import Consent

__all__ = ["InstallRun"]

_NAMES_SHOWN = 8


class InstallRun:
    """One command of installing: where it works, what is installed there, and what its user may be asked.

    Opening it finishes what a process that was killed has begun, unless nothing may be written.
    """

    def __init__(self, command: str, values: Values, *, user: bool | None = None) -> None:
        self.command = command
        self.values = values
        self.environment = environment_for(values)
        if files.kind_at(self.environment.cwd) != "folder":
            raise SkillDirectoryNotFound(self.environment.cwd)
        self.scope = scope_of(self.environment, user=values["user"] if user is None else user)
        self.policy = load_system_policy(self.environment)
        self.store = store_of(self.environment)
        if not self.dry_run:
            from skillshelf.install.transaction import recover

            recover(self.scope, self.environment)
        self.locked: Mapping[str, LockedSkill] = read_lock(self.scope.lock_path) or {}

    @property
    def dry_run(self) -> bool:
        """Whether nothing may be written."""
        return bool(self.values.get("dry_run"))

    @property
    def display(self) -> PathDisplay:
        """How paths are shown."""
        return PathDisplay(self.environment.cwd, self.environment.home)

    @cached_property
    def wishes(self) -> tuple[Wish, ...]:
        """The wishes of the scope."""
        return read_wishes(self.scope)

    @cached_property
    def settings(self) -> Settings:
        """The settings; a file that cannot be used is named, and nothing in it counts."""
        try:
            return load_settings(self.environment, trust="ask")
        except ConfigurationError as error:
            note(str(error))
            return Settings()

    @cached_property
    def catalog(self) -> "Catalog":
        """The skills that are there now, from whichever root."""
        from skillshelf.cli.commands import shelf_for

        return shelf_for(self.values).catalog

    def folder_of(self, name: str, skill: LockedSkill) -> str:
        """Return the folder that must hold exactly the tree of a skill."""
        if self.scope.skills_folder is None:
            return self.store.path_of(skill.tree)
        return f"{self.scope.skills_folder}/{name}"

    def places_of(self, name: str, skill: LockedSkill) -> list[str]:
        """Return every folder that must hold the tree of a skill: the installed one, and those made for hosts."""
        folder = self.folder_of(name, skill)
        if self.scope.skills_folder is not None and not skill.hosts:
            return [folder]
        made = [record.path for record in self._records if self._is_made_of(record, name, folder)]
        return [folder, *made] if self.scope.skills_folder is not None else made or [folder]

    def _is_made_of(self, record: "LinkRecord", name: str, folder: str) -> bool:
        source = files.real_path(record.source) if record.source is not None else ""
        is_stored = self.scope.skills_folder is None and self._real_store.tree_at(source) is not None
        return record.path.endswith(f"/{name}") and (source == files.real_path(folder) or is_stored)

    @cached_property
    def _real_store(self) -> Store:
        return Store(files.real_path(self.store.folder))

    @cached_property
    def _records(self) -> "list[LinkRecord]":
        from skillshelf.hosts.link_records import read_records

        return list(read_records(self.environment))

    def found(self, name: str, skill: LockedSkill) -> "SkillFound":
        """Return what lies in the folders of a skill: the first that is not as locked, else the installed one."""
        found = self.all_found(name, skill)
        return next((one for one in found if not one.ok), found[0])

    def all_found(self, name: str, skill: LockedSkill) -> "list[SkillFound]":
        """Return what lies in each folder of a skill, the installed one first."""
        from skillshelf.install.verify import verify_folder

        places = self.places_of(name, skill)
        # Nothing is installed through a link: what one leads to may be right now, and is not ours.
        own = f"{self.scope.skills_folder}/{name}"
        return [verify_folder(name, path, skill.tree, self.store, through_links=path != own) for path in places]

    def shown_folder(self, name: str, skill: LockedSkill | None = None) -> str:
        """Return the folder in which people find a skill of this scope.

        A skill of the user that hosts are named for is in the store, and beside it only where those hosts look.
        """
        skill = skill or self.locked.get(name)
        if self.scope.kind == "user" and skill is not None and skill.hosts:
            return self.store.path_of(skill.tree)
        above = self.scope.skills_folder or f"{self.environment.home}/.agents/skills"
        return f"{above}/{name}"

    def again(self, **changes: Any) -> str:
        """Return this command with changed options, as it is typed."""
        return command_again(self.values, self.command, **changes)

    def named(self, names: Sequence[str]) -> dict[str, LockedSkill]:
        """Return the locked skills of these names, or all; raise SourceNotFound for a name that is not locked."""
        for name in names:
            if name not in self.locked:
                raise SourceNotFound(f"{visible(name)} is not installed {self._here}{self._hint(name)}")
        return {name: self.locked[name] for name in (dict.fromkeys(names) or sorted(self.locked))}

    @property
    def _here(self) -> str:
        return "in this project" if self.scope.kind == "project" else "for you"

    def _hint(self, name: str) -> str:
        """Return where a skill is that is not installed here, or which names are near, or which there are."""
        other = scope_of(self.environment, user=self.scope.kind == "project")
        try:
            if name in (read_lock(other.lock_path) or {}):
                return (
                    "; it is for you: add --user" if other.kind == "user" else "; it is in this project: without --user"
                )
        except SkillError as error:
            note(str(error))
        known = ", ".join(sorted(self.locked)[:_NAMES_SHOWN]) or "none"
        return (
            did_you_mean(name, self.locked)
            or f" (installed: {known}{', ...' if len(self.locked) > _NAMES_SHOWN else ''})"
        )

    # Sources --------------------------------------------------------------------------------------

    @contextmanager
    def sources(self, references: Sequence["SourceReference"], label: str) -> "Iterator[SourceReader]":
        """Open a reader of sources, with a line on the terminal if that takes longer than a second."""
        from skillshelf.install.sources import SourceReader

        with slow_work(label) as progress:
            yield SourceReader(self.context(progress), shared=references)

    def context(self, progress: Any = None) -> "SourceContext":
        """Return the conditions under which sources are read."""
        from skillshelf.install.reference import SourceContext

        return SourceContext(
            self.environment,
            allow_http=bool(self.values.get("allow_http")),
            ask=can_ask() and not self.values["json"],
            offline=bool(self.values.get("offline")),
            progress=progress,
            permit=lambda reference: self.require_permitted([reference]),
            token_file=self.token_file,
        )

    @property
    def token_file(self) -> str | None:
        """The file with the token for a team server, if one was named."""
        from skillshelf.core.environment import expand

        given = self.values.get("token_file")
        return expand(given, self.environment, base=self.environment.cwd) if given else None

    def require_permitted(self, references: Sequence["SourceReference"]) -> None:
        """Raise PermissionDenied for the first source that the system policy does not allow."""
        from skillshelf.install.reference import names_of

        for reference in references:
            require_source(self.policy, *names_of(reference))

    @property
    def is_trusted(self) -> bool:
        """Whether the scope is the user's own, or a project that the user trusts."""
        return self.scope.kind == "user" or is_trusted(self.scope.root, self.settings.trusted_folders)

    def is_vouched(self, skills: Mapping[str, Wish | LockedSkill], *, as_locked: bool = False) -> bool:
        """Return whether the user, and not only a project's file, stands behind these skills and their sources.

        `as_locked` asks for the locked bytes alone: what was approved from another source needs none if it is stored.
        """
        if self.is_trusted:
            return True
        trees = {tree for tree, _ in self._approved} if as_locked else set()
        return all(
            isinstance(one, LockedSkill)
            and ((one.tree, one.source) in self._approved or (one.tree in trees and self.store.is_intact(one.tree)))
            for one in skills.values()
        )

    @cached_property
    def _approved(self) -> set[tuple[str, str | None]]:
        """The trees that the user approved wherever they are installed, each with its source."""
        try:
            return {(one.tree, one.origin) for one in read_approvals(self.environment) if one.path is None}
        except SkillError as error:
            note(str(error))
            return set()

    def require_own_list(self, path: str, wishes: Mapping[str, Wish]) -> None:
        """Ask before the first connection to sources that a list names which is a part of an untrusted project.

        It is one like the lock of that project, in whichever scope its skills are installed.
        """
        project = scope_of(self.environment, user=False).root
        inside = any(files.is_inside(one, project) for one in (path, files.real_path(path)))
        if inside and not is_trusted(project, self.settings.trusted_folders):
            self._ask_about(project, wishes)

    def require_vouched(self, skills: Mapping[str, Wish | LockedSkill], *, as_locked: bool = False) -> None:
        """Ask before the first connection to sources that only the files of a stranger's project name.

        Raise PermissionDenied if nobody agrees; `--yes` alone is no agreement.
        """
        if not self.is_vouched(skills, as_locked=as_locked):
            self._ask_about(self.scope.root, skills)

    def _ask_about(self, root: str, skills: Mapping[str, Wish | LockedSkill]) -> None:
        """Show every source, host and target that the files of an untrusted project name, and ask."""
        for name, one in skills.items():
            hosts = f", for {', '.join(one.hosts)}" if one.hosts else ""
            ref = f" at {one.ref}" if one.ref else ""
            # A wish without a name goes by its source.
            folder = self.shown_folder("" if name == one.source else name).rstrip("/")
            note(f"{name}: from {one.source}{ref} to {self.display.short(folder)}{hosts}")
        if self.values["json"] or not can_ask():
            raise PermissionDenied(
                f"{root} is not trusted, and its files name these sources: nothing was read or written "
                f"(if you trust it: skillshelf trust {quote(root)}; then: {self.again(yes=True)})"
            )
        if not ask(f"{visible(root)} is not trusted. Read {plural(len(skills), 'skill')} from these sources? [y/N] "):
            raise PermissionDenied("nothing was read or written")

    def require_own_place(self) -> None:
        """Raise before anybody is asked if nothing can be written here: through no link, and over no unusable file."""
        folder = self.scope.skills_folder
        if folder is not None and (real := files.real_path(folder)) != folder:
            reason = f"{self.display.short(folder)} is behind a link to {real}, and nothing is written through links"
            raise SourceRefused("link", f"{reason}; put a folder in its place")
        _ = self.wishes

    # The question ---------------------------------------------------------------------------------

    def may_write(self, question: str, consent: "Consent | None" = None) -> bool:
        """Return whether the user agrees to what was shown; `--yes` never accepts findings of severity error."""
        if consent is not None and consent.findings:
            from skillshelf.cli.consent_view import refusal, show_findings

            show_findings(consent, self.environment.cwd)
            if consent.errors and (self.values["yes"] or self.values["json"] or not can_ask()):
                line = self.again(yes=True)
                raise refusal(consent, "nothing was written: the skills", line, consent.errors)
        if self.values["yes"]:
            return True
        if self.values["json"] or not can_ask():
            note(f"nothing was written; to do this: {self.again(yes=True)}")
            return False
        spite = f" in spite of these findings{consent.warning}" if consent is not None and consent.rules else ""
        if ask(f"{question}{spite}? [y/N] "):
            return True
        note("nothing was written")
        return False
