"""Run the commands that give skills to others: pack, publish, export."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, get_args

from skillshelf.catalog.document import parse
from skillshelf.catalog.lock import LockedSkill, read_lock
from skillshelf.catalog.store import store_of
from skillshelf.catalog.tree import skill_tree
from skillshelf.cli.commands import Values, shelf_for
from skillshelf.cli.consent_view import agreed, show_findings
from skillshelf.cli.host_commands import environment_of
from skillshelf.core import files
from skillshelf.core.console import PathDisplay, as_json, note, screen, write
from skillshelf.core.disk_writes import make_parents, replace_file
from skillshelf.core.environment import Environment, expand
from skillshelf.core.limits import FOREIGN_BYTES, TREE_BYTES
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import did_you_mean, near, plural, visible
from skillshelf.errors import (
    DENIED,
    DONE,
    NEGATIVE,
    AmbiguousSkill,
    ConfigurationError,
    SkillChanged,
    SkillError,
    SkillFileNotFound,
    SkillNotFound,
)
from skillshelf.install.foreign import ExportFormat, export_lock
from skillshelf.install.pack import skill_files, zip_of
from skillshelf.install.publish import (
    Published,
    checked_fields,
    publish_to_registry,
    publish_to_site,
)
from skillshelf.install.reference import parse_reference
from skillshelf.install.scope import scope_of
from skillshelf.install.skill_entries import SKILL_FILE

if TYPE_CHECKING:
    from skillshelf.install.reference import SourceReference
    from skillshelf.install.team_server import ReleaseClient
    from skillshelf.lint.consent import Consent

__all__ = ["export", "file_lines", "pack", "publish", "release_client"]

_FILES_SHOWN = 40


class _Subject(NamedTuple):
    """The skill that is given to others: its name and folder, and the bytes that were read from it."""

    name: str
    folder: str
    contents: Mapping[str, bytes]
    tree: str


def _subject(values: Values, environment: Environment) -> _Subject:
    """Read the skill that a command names, by its name or path."""
    folder = _folder(values, environment)
    if files.kind_at(f"{folder}/{SKILL_FILE}") is None:
        raise SkillFileNotFound(folder)
    contents, tree = skill_files(folder)
    subject = _Subject(checked_fields(contents)["name"], folder, contents, tree)
    for finding in parse(contents[SKILL_FILE], whole=True).findings:
        # Other installers drop such a skill without a word.
        note(f"{visible(subject.name)}: {finding.rule}: {visible(finding.message)}; others may not be able to read it")
    return subject


def _folder(values: Values, environment: Environment) -> str:
    given = files.from_system(values["name"])
    if "/" in given or given in (".", "..", "~"):
        path = expand(given, environment, base=environment.cwd)
        return files.real_path(os.path.dirname(path) if os.path.basename(path) == SKILL_FILE else path)
    skills = [one for one in shelf_for(values).catalog.skills if not values["user"] or one.scope == "user"]
    found = {one.real_dir: one for one in skills if one.name == given}
    if not found:
        error = SkillNotFound(given)
        error.near = tuple(near(given, [one.name for one in skills], 3))
        raise error
    if len(found) > 1:
        raise AmbiguousSkill(given, tuple(one.path for one in found.values()))
    return next(iter(found))


# Pack ---------------------------------------------------------------------------------------------


def pack(values: Values) -> int:
    """Write a skill into one archive whose bytes follow from its files alone."""
    environment = environment_of(values)
    subject = _subject(values, environment)
    path = expand(values["o"] or f"{subject.name}.skill", environment, base=environment.cwd)
    if not path.lower().endswith((".skill", ".zip")):
        raise ConfigurationError(f"{path}: the name of an archive ends in .skill or .zip")
    data = zip_of(subject.contents, wrapper=subject.name)
    kind = files.kind_at(path)
    if kind not in (None, "file"):
        raise ConfigurationError(f"{path} is a {kind}, and is left alone")
    is_there = kind == "file" and _read(path, limit=2 * TREE_BYTES) == data
    plan = _plan("pack", subject, path, changed=not is_there)
    if not is_there and not values["dry_run"]:
        if kind == "file" and not agreed(values, "pack", f"Replace {visible(path)}"):
            return _finish(values, environment, plan, planned=True, status=DENIED)
        _write(path, data)
    return _finish(values, environment, plan, planned=values["dry_run"])


def _read(path: str, *, limit: int) -> bytes | None:
    try:
        return files.read_file(path, limit=limit, links="never")
    except OSError as error:
        raise SkillError(f"{path}: {(error.strerror or str(error)).lower()}") from None


def _write(path: str, data: bytes) -> None:
    try:
        make_parents(os.path.dirname(path))
        replace_file(path, data, mode=0o644)
    except OSError as error:
        raise SkillError(f"{path}: {(error.strerror or str(error)).lower()}") from None


# Publish ------------------------------------------------------------------------------------------


def publish(values: Values) -> int:
    """Publish a skill, after showing what it is: as files of a web site, or in a registry."""
    from skillshelf.lint.consent import accepted_rules, consent_needed
    from skillshelf.lint.security import security_findings

    environment = environment_of(values)
    if bool(values["site"]) == bool(values["to"]):
        raise ConfigurationError("name one place: --site DIR, --to oci://HOST/REPOSITORY or --to https://SERVER")
    if values["to"] and not values["to"].startswith(("oci://", "https://", "http://")):
        raise ConfigurationError(
            f"--to takes oci://HOST/REPOSITORY[:TAG] or https://SERVER, not {visible(values['to'])!r}"
        )
    if values["version"] and not (values["to"] or "").startswith("http"):
        raise ConfigurationError("--version is for a server; in a registry the version is the tag")
    accepted = accepted_rules(values["accept_rule"])
    subject = _subject(values, environment)
    # In the bytes that are published, whatever happens to the folder meanwhile.
    consent = consent_needed({f"{subject.folder}/{SKILL_FILE}": security_findings(subject.contents)}, accepted)
    before = _published(values, environment, subject, dry_run=True)
    plan = _plan("publish", subject, before.place, changed=before.changed)
    if not values["json"]:
        write(_subject_view(subject, before))
    if values["dry_run"] or not before.changed:
        show_findings(consent, environment.cwd)
        return _finish(values, environment, plan, consent, planned=values["dry_run"])
    if not agreed(values, "publish", f"Publish {visible(subject.name)}", consent, environment.cwd):
        return _finish(values, environment, plan, consent, planned=True, status=DENIED)
    done = _published(values, environment, subject, dry_run=False)
    # A server may have chosen the version.
    plan = _plan("publish", subject, done.place, changed=done.changed)
    return _finish(values, environment, plan, consent, planned=False)


def _published(values: Values, environment: Environment, subject: _Subject, *, dry_run: bool) -> Published:
    if values["site"]:
        folder = expand(files.from_system(values["site"]), environment, base=environment.cwd)
        return publish_to_site(subject.contents, folder, dry_run=dry_run)
    reference = parse_reference(values["to"], environment)
    if reference.kind == "site":
        return _published_to_server(values, environment, subject, reference, dry_run=dry_run)
    return publish_to_registry(
        subject.contents, reference, environment, allow_http=values["allow_http"], dry_run=dry_run
    )


def _published_to_server(
    values: Values, environment: Environment, subject: _Subject, reference: "SourceReference", *, dry_run: bool
) -> Published:
    from skillshelf.install.team_server import ServerRelease

    accepted = tuple(name for words in values["accept_rule"] for name in words.split(",") if name)
    release = ServerRelease(values["version"], accept=accepted)
    return release_client(values, environment, reference.location).publish(subject.contents, release, dry_run=dry_run)


def release_client(values: Values, environment: Environment, location: str) -> "ReleaseClient":
    """Return what sends requests to the team server that the user typed, with the token of the user."""
    from skillshelf.install.server_account import missing_account, server_account
    from skillshelf.install.team_server import ReleaseClient

    given = values["token_file"]
    token_file = expand(given, environment, base=environment.cwd) if given else None
    account = server_account(location, environment, token_file=token_file, typed=True)
    if account is None:
        raise ConfigurationError(f"a team server needs a token: {missing_account(location, environment, token_file)}")
    return ReleaseClient(location, account, allow_http=values["allow_http"])


def _subject_view(subject: _Subject, published: Published) -> str:
    """Render what is about to be published: the name, the place, every file."""
    size = sum(map(len, subject.contents.values()))
    lines = [
        f"{visible(subject.name)}  {plural(len(subject.contents), 'file')}, {plural(size, 'byte')}",
        f"  to        {visible(published.place)}",
        f"  tree      {subject.tree}",
        f"  artifact  {published.digest}",
        *file_lines(subject.contents),
    ]
    return "".join(f"{line}\n" for line in lines)


def file_lines(contents: Mapping[str, bytes]) -> list[str]:
    """Return a line for each file of a skill, and one for those that are not shown."""
    shown = sorted(contents)[:_FILES_SHOWN]
    lines = [f"  file      {visible(path)} ({len(contents[path])} bytes)" for path in shown]
    return [*lines, *([f"  file      and {len(contents) - len(shown)} more"] if len(contents) > len(shown) else [])]


# Export -------------------------------------------------------------------------------------------


def export(values: Values) -> int:
    """Write the lock of another program from the lock of this project, or of the user."""
    environment = environment_of(values)
    form = _format(values["format"])
    scope = scope_of(environment, user=values["user"])
    locked = read_lock(scope.lock_path)
    if not locked:
        raise ConfigurationError(f"{scope.lock_path}: no skill is installed that could be exported")
    folder = expand(values["o"], environment, base=environment.cwd) if values["o"] else scope.root
    store = store_of(environment)

    def contents_of(skill: LockedSkill) -> Mapping[str, bytes] | None:
        try:
            return store.read(skill.tree)
        except SkillChanged:
            name = next(name for name, one in placed.items() if one is skill)
            return _copied(f"{scope.skills_folder}/{name}", skill.tree) if scope.skills_folder else None

    def before(name: str) -> bytes | None:
        path = f"{folder}/{name}"
        return _read(path, limit=FOREIGN_BYTES) if files.kind_at(path) is not None else None

    placed = {name: _seen_from(folder, scope.root, skill) for name, skill in locked.items()}
    result = export_lock(form, placed, contents_of, before, os.path.basename(scope.root))
    changed = {name: data for name, data in result.files.items() if before(name) != data}
    place = f"{folder}/{next(iter(result.files), '')}"
    rows = [{"name": name, "tree": locked[name].tree, "path": place} for name in result.skills]
    actions = [{"kind": "export", **row, "from": locked[str(row["name"])].source} for row in rows]
    refused = [{"name": name, "reason": reason} for name, reason in result.refused.items()]
    plan = {"actions": actions if changed else [], "unchanged": [] if changed else rows, "refused": refused}
    status = NEGATIVE if refused else DONE
    if changed and not values["dry_run"]:
        taken = [name for name in changed if before(name) is not None]
        if taken and not agreed(values, "export", f"Change {', '.join(taken)}"):
            return _finish(values, environment, plan, planned=True, status=DENIED)
        for name, data in changed.items():
            _write(f"{folder}/{name}", data)
    return _finish(values, environment, plan, planned=values["dry_run"], status=status)


def _seen_from(folder: str, root: str, skill: LockedSkill) -> LockedSkill:
    """Return an entry whose relative source starts from the folder that is written to, not from that of the lock."""
    if not skill.source.startswith(".") or folder == root:
        return skill
    source = os.path.relpath(os.path.join(root, skill.source), folder)
    return skill._replace(source=source if source.startswith("../") else f"./{source}")


def _copied(folder: str, tree: str) -> Mapping[str, bytes] | None:
    """Return the files of an installed copy, if they are those of its lock."""
    if files.kind_at(folder) != "folder" or skill_tree(files.real_path(folder)).digest != tree:
        return None
    return skill_files(files.real_path(folder))[0]


def _format(given: str | None) -> ExportFormat:
    known: tuple[ExportFormat, ...] = get_args(ExportFormat)
    for form in known:
        if given == form:
            return form
    if given is None:
        raise ConfigurationError(f"name a format: --format {', '.join(known)}")
    raise ConfigurationError(f"unknown format {given!r}{did_you_mean(given, known)} (known: {', '.join(known)})")


# What all three do --------------------------------------------------------------------------------


def _plan(kind: str, subject: _Subject, path: str, *, changed: bool) -> dict[str, Any]:
    row = {"name": subject.name, "tree": subject.tree, "path": path}
    action = {"kind": kind, **row, "from": subject.folder}
    return {"actions": [action] if changed else [], "unchanged": [] if changed else [row], "refused": []}


_DONE = {"pack": "packed", "publish": "published", "export": "exported"}


def _finish(
    values: Values,
    environment: Environment,
    plan: Mapping[str, Any],
    consent: "Consent | None" = None,
    *,
    planned: bool,
    status: int = DONE,
) -> int:
    """Print a plan as JSON or in lines, and return the status of the command."""
    if values["json"]:
        write(as_json({**plan, "findings": consent.rows() if consent is not None else []}))
        return status
    display = PathDisplay(environment.cwd, environment.home)
    would = "would be " if planned else ""
    rows = [
        (f"{would}{_DONE[one['kind']]}", visible(one["name"]), visible(display.short(one["path"])))
        for one in plan["actions"]
    ]
    rows += [("unchanged", visible(one["name"]), visible(display.short(one["path"]))) for one in plan["unchanged"]]
    rows += [("refused", visible(one["name"]), visible(one["reason"])) for one in plan["refused"]]
    lines = screen(environment.env).table(rows, ("green", "bold", None), wrap=True)
    write("".join(f"{line}\n" for line in lines))
    return status
