"""Read and write the lists and locks of other programs that install skills.

What they record is turned into sources of our own grammar. Their hashes are recomputed where files alone decide them,
so that an import can say where the bytes of today are not those that were recorded.
"""

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

from skillshelf.catalog.document import parse
from skillshelf.catalog.frontmatter import YamlProblem, load_yaml
from skillshelf.catalog.lock import LockedSkill, is_installable_name
from skillshelf.catalog.source import ExecutableFile
from skillshelf.core import files
from skillshelf.core.limits import FOREIGN_BYTES
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import cut, visible
from skillshelf.errors import ConfigurationError, ResourceNotFound, SourceRefused
from skillshelf.install.skill_entries import SKILL_FILE
from skillshelf.install.well_known import json_value

__all__ = [
    "FOREIGN_FILES",
    "ExportFormat",
    "ExportResult",
    "ForeignDigest",
    "ForeignSkill",
    "collated",
    "export_lock",
    "folder_hash",
    "git_tree",
    "is_as_recorded",
    "read_foreign",
]

DigestKind = Literal["computed-hash", "git-tree", "manifest"]
ExportFormat = Literal["vercel", "apm", "oci"]

_GITHUB = "https://github.com/"
_HTTPS = re.compile(r"https?://", re.IGNORECASE)
_SCP = re.compile(r"(?:(?P<user>[A-Za-z0-9_.-]+)@)?(?P<host>[A-Za-z0-9.-]+):(?P<path>[^/\\].*)\Z")
_SHORTHAND = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9_.-]+\Z")


class ForeignDigest(NamedTuple):
    """A hash that another program recorded, and how it is computed."""

    kind: DigestKind
    value: str


class ForeignSkill(NamedTuple):
    """A skill that another program installed or lists: what to wish for, and what its hash was.

    `source` is a text of our grammar. If there is none, `problem` says why it cannot be installed here.
    """

    name: str
    source: str | None
    path: str = ""
    ref: str | None = None
    digest: ForeignDigest | None = None
    problem: str | None = None


def read_foreign(path: str) -> list[ForeignSkill]:
    """Return the skills that a file of another program lists; the name of the file says what it is.

    A folder, or a SKILL.md, is a skill that another program installed and left a note in. Raise ConfigurationError for
    a file that is not known, SourceRefused for one that is not what its name says.
    """
    if files.kind_at(files.real_path(path)) == "folder":
        path = f"{path.rstrip('/')}/{_OPENSKILLS}"
        path = path if files.kind_at(path) is not None else f"{os.path.dirname(path)}/{SKILL_FILE}"
    name = os.path.basename(path)
    if name not in FOREIGN_FILES:
        raise ConfigurationError(f"not a file that can be imported: {path} (known: {', '.join(FOREIGN_FILES)})")
    try:
        data = files.read_file(path, limit=FOREIGN_BYTES, links="follow")
    except FileNotFoundError:
        raise ResourceNotFound(path) from None
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from None
    if data is None:
        raise SourceRefused("too-large", f"{path} is not a file of at most {FOREIGN_BYTES} bytes (FOREIGN_BYTES)")
    return [_checked(skill) for skill in FOREIGN_FILES[name](data, path)]


def _checked(skill: ForeignSkill) -> ForeignSkill:
    if skill.problem is None and not is_installable_name(skill.name):
        return skill._replace(source=None, problem="not a name that a skill can be installed as")
    return skill


def _yaml(data: bytes, path: str) -> Any:
    try:
        return load_yaml(data.decode("utf-8"))
    except (YamlProblem, UnicodeDecodeError) as error:
        raise SourceRefused("foreign", f"{path} is not readable YAML: {visible(cut(str(error), 200))}") from None


def _text(row: Mapping[str, Any], key: str) -> str | None:
    value = row.get(key)
    return value if isinstance(value, str) and value else None


# The two locks of `skills` ------------------------------------------------------------------------


def _project_lock(data: bytes, path: str) -> Iterator[ForeignSkill]:
    for name, row in _locked_rows(data, path, version=1):
        digest = _text(row, "computedHash")
        source, problem = _source_of(row)
        yield ForeignSkill(
            name,
            source,
            _folder_of(_text(row, "skillPath")),
            _text(row, "ref") if source and source.startswith("git+") else None,
            ForeignDigest("computed-hash", digest) if digest else None,
            problem,
        )


def _user_lock(data: bytes, path: str) -> Iterator[ForeignSkill]:
    for name, row in _locked_rows(data, path, version=3):
        digest = _text(row, "skillFolderHash")
        source, problem = _source_of(row)
        yield ForeignSkill(
            name,
            source,
            _folder_of(_text(row, "skillPath")),
            _text(row, "pinnedRef") or _text(row, "ref") if source and source.startswith("git+") else None,
            ForeignDigest("git-tree", digest) if digest else None,
            problem,
        )


def _locked_rows(data: bytes, path: str, *, version: int) -> list[tuple[str, Mapping[str, Any]]]:
    document = json_value(data, path, "foreign")
    if not isinstance(document, dict) or document.get("version") != version:
        raise SourceRefused("foreign", f"{path} is not a lock of version {version}")
    skills = document.get("skills")
    if not isinstance(skills, dict) or not all(isinstance(row, dict) for row in skills.values()):
        raise SourceRefused("foreign", f"{path} has no table of skills")
    return sorted(skills.items())


def _source_of(row: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Return the source of an entry in our grammar, or None and why there is none."""
    kind, source, url = _text(row, "sourceType") or "", _text(row, "source"), _text(row, "sourceUrl")
    if kind == "node_modules":
        return None, "it comes from a package of npm, which its own program installs"
    if kind == "local" and source:
        return source if source.startswith(("./", "../", "/", "~/")) else f"./{source}", None
    if kind == "well-known":
        host = (source or "").removeprefix("wellknown/")
        site = (url or host).partition("/.well-known/")[0]
        return (site if _HTTPS.match(site) else f"https://{site}", None) if site else (None, "it names no site")
    for one in (url, source):
        if one is not None and (found := _git_source(one)) is not None:
            return found, None
    return None, f"a source of type {visible(cut(kind or 'unknown', 40))!r} that is not known here"


def _git_source(text: str) -> str | None:
    """Return a repository in our grammar, from the spellings that git takes."""
    if _SHORTHAND.match(text):
        return f"git+{_GITHUB}{text.removesuffix('.git')}"
    if text.startswith(("https://", "http://", "ssh://", "file://")):
        url = text.rstrip("/")
        return f"git+{url.removesuffix('.git') if url.startswith(_GITHUB) else url}"
    if (found := _SCP.match(text)) is not None:
        user = f"{found['user']}@" if found["user"] else ""
        return f"git+ssh://{user}{found['host']}/{found['path']}"
    return None


def _folder_of(path: str | None) -> str:
    """Return the folder of a skill from the path of its SKILL.md, or of the folder itself."""
    path = (path or "").strip("/")
    folder = path.removesuffix(SKILL_FILE).rstrip("/") if path.rpartition("/")[2] == SKILL_FILE else path
    return "" if folder == "." else folder


# APM ----------------------------------------------------------------------------------------------

_SKILL_TYPES = frozenset({"claude_skill", "hybrid", "skill_bundle"})


def _apm_manifest(data: bytes, path: str) -> Iterator[ForeignSkill]:
    """Yield the dependencies of a manifest, one level; which of them are skills is known when they are fetched."""
    document = _yaml(data, path)
    dependencies = document.get("dependencies") if isinstance(document, dict) else None
    rows = dependencies.get("apm") if isinstance(dependencies, dict) else None
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, str):
            yield _apm_text(row)
        elif isinstance(row, dict):
            yield _apm_table(row)


def _apm_text(text: str) -> ForeignSkill:
    if text.startswith(("./", "../", "/", "~/")):
        return ForeignSkill(os.path.basename(text.rstrip("/")), text)
    place, _, ref = text.partition("#")
    host, _, rest = place.partition("/")
    base = f"https://{host}/" if "." in host and rest.count("/") >= 1 else _GITHUB
    place = rest if base != _GITHUB or host == "github.com" else place
    owner, _, rest = place.partition("/")
    repository, _, folder = rest.partition("/")
    if _HTTPS.match(text) or _SCP.match(text.partition("#")[0]) or text.startswith("ssh://"):
        source = _git_source(text.partition("#")[0])
        name = os.path.basename((source or "").removesuffix(".git"))
        return ForeignSkill(name, source, "", ref or None)
    if not owner or not repository:
        return ForeignSkill(text, None, problem="a dependency that is not a repository")
    name = os.path.basename(folder or repository)
    if "." in name and name.rpartition(".")[2] == "md":
        return ForeignSkill(name, None, problem="a single file, which is not a skill")
    return ForeignSkill(name, f"git+{base}{owner}/{repository}", folder, ref or None)


def _apm_table(row: Mapping[str, Any]) -> ForeignSkill:
    git, path, ref = _text(row, "git"), _text(row, "path"), _text(row, "ref")
    if git is not None and (source := _git_source(git)) is not None:
        name = os.path.basename((path or source).rstrip("/").removesuffix(".git"))
        return ForeignSkill(name, source, _folder_of(path), ref)
    if path is not None:
        return ForeignSkill(os.path.basename(path.rstrip("/")), path)
    name = _text(row, "name") or "unnamed"
    return ForeignSkill(name, None, problem="it comes from a marketplace that only its own program knows")


def _apm_lock(data: bytes, path: str) -> Iterator[ForeignSkill]:
    document = _yaml(data, path)
    if not isinstance(document, dict) or str(document.get("lockfile_version")) not in ("1", "2", "3"):
        raise SourceRefused("foreign", f"{path} is not a lock of APM of version 1, 2 or 3")
    rows = document.get("dependencies")
    for row in rows if isinstance(rows, list) else ():
        if not isinstance(row, dict) or row.get("depth", 1) != 1:
            continue
        local, repository = _text(row, "local_path"), _text(row, "repo_url")
        folder = _text(row, "virtual_path") or ""
        name = _text(row, "name") or os.path.basename((folder or local or repository or "").rstrip("/"))
        if (kind := _text(row, "package_type")) is not None and kind not in _SKILL_TYPES:
            yield ForeignSkill(name, None, problem=f"a package of type {visible(cut(kind, 40))!r}, not a skill")
        elif local is not None:
            yield ForeignSkill(name, local)
        else:
            host = _text(row, "host")
            full = (
                f"https://{host}/{repository}" if host and repository and not _HTTPS.match(repository) else repository
            )
            source = _git_source(full) if full else None
            ref = _text(row, "resolved_commit") or _text(row, "resolved_ref")
            yield ForeignSkill(name, source, folder, ref, None, None if source else "it names no repository")


# Registries ---------------------------------------------------------------------------------------


def _oci_manifest(data: bytes, path: str) -> Iterator[ForeignSkill]:
    for row in _oci_rows(data, path):
        source = _text(row, "source")
        problem = None if source else "it names no repository"
        yield ForeignSkill(
            str(row["name"]), f"oci://{source}" if source else None, "", _text(row, "version"), None, problem
        )


def _oci_lock(data: bytes, path: str) -> Iterator[ForeignSkill]:
    for row in _oci_rows(data, path):
        source = row.get("source")
        place = source if isinstance(source, dict) else {}
        registry, repository, digest = (_text(place, key) for key in ("registry", "repository", "digest"))
        if registry is None or repository is None:
            yield ForeignSkill(str(row["name"]), None, problem="it names no repository")
            continue
        found = ForeignDigest("manifest", digest) if digest else None
        yield ForeignSkill(str(row["name"]), f"oci://{registry}/{repository}", "", _text(place, "tag") or digest, found)


def _oci_rows(data: bytes, path: str) -> list[Mapping[str, Any]]:
    document = json_value(data, path, "foreign")
    rows = document.get("skills") if isinstance(document, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) and _text(row, "name") for row in rows):
        raise SourceRefused("foreign", f"{path} has no list of skills with names")
    return rows


# Notes in the folder of a skill -------------------------------------------------------------------

_OPENSKILLS = ".openskills.json"


def _openskills(data: bytes, path: str) -> Iterator[ForeignSkill]:
    row = json_value(data, path, "foreign")
    name = os.path.basename(os.path.dirname(files.real_path(path)))
    if not isinstance(row, dict):
        raise SourceRefused("foreign", f"{path} says nothing about a source")
    if _text(row, "sourceType") == "local":
        yield ForeignSkill(name, _text(row, "localPath"), problem=None if _text(row, "localPath") else "no path")
        return
    source = _git_source(_text(row, "repoUrl") or _text(row, "source") or "")
    yield ForeignSkill(name, source, _folder_of(_text(row, "subpath")), None, None, None if source else "no repository")


def _provenance(data: bytes, path: str) -> Iterator[ForeignSkill]:
    """Yield the skill whose SKILL.md says in its metadata where `gh` took it from."""
    fields = parse(data, whole=True).fields
    metadata = fields.get("metadata")
    row = metadata if isinstance(metadata, dict) else {}
    name = fields["name"] if isinstance(fields.get("name"), str) else os.path.basename(os.path.dirname(path))
    repository, tree = _text(row, "github-repo"), _text(row, "github-tree-sha")
    if repository is None and (local := _text(row, "local-path")) is not None:
        yield ForeignSkill(name, local)
        return
    source = _git_source(repository.removeprefix("github.com/")) if repository else None
    if source is None:
        raise SourceRefused("foreign", f"{path} does not say where the skill came from")
    ref = _text(row, "github-pinned") or _text(row, "github-ref")
    for start in ("refs/heads/", "refs/tags/"):
        ref = ref.removeprefix(start) if ref else None
    digest = ForeignDigest("git-tree", tree) if tree else None
    yield ForeignSkill(name, source, _folder_of(_text(row, "github-path")), ref, digest)


FOREIGN_FILES: Mapping[str, Callable[[bytes, str], Iterator[ForeignSkill]]] = {
    "skills-lock.json": _project_lock,
    ".skill-lock.json": _user_lock,
    "apm.yml": _apm_manifest,
    "apm.lock.yaml": _apm_lock,
    "skills.json": _oci_manifest,
    "skills.lock.json": _oci_lock,
    _OPENSKILLS: _openskills,
    SKILL_FILE: _provenance,
}
"""The files that can be imported, by their names, and the function that reads each."""


# Hashes of others ---------------------------------------------------------------------------------


def is_as_recorded(digest: ForeignDigest, contents: Mapping[str, bytes], artifact: str | None) -> bool | None:
    """Return whether the files of a skill, or the digest of its artifact, are those that were recorded.

    None if that cannot be said: two different skills can have one `computedHash`, but not the other way round.
    """
    if digest.kind == "manifest":
        return artifact == digest.value
    if digest.kind == "git-tree":
        return git_tree(contents) == digest.value
    found = folder_hash(contents)
    return None if found is None else found == digest.value


# As `localeCompare` sorts ASCII: every sign has its place before the digits, and capitals follow their small letters.
_COLLATION = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789abcdefghijklmnopqrstuvwxyz"
_WEIGHTS = {character: place for place, character in enumerate(_COLLATION)}


def folder_hash(contents: Mapping[str, bytes]) -> str | None:
    """Return the `computedHash` of a skill; None if a path is not ASCII, whose order depends on a language.

    It is the SHA-256 of all paths and bytes without anything between them, so that it proves nothing about where one
    ends and the next begins.
    """
    if not all(path.isascii() for path in contents):
        return None
    found = hashlib.sha256()
    for path in sorted(contents, key=collated):
        if not {".git", "node_modules"} & set(path.split("/")[:-1]):
            found.update(path.encode("ascii") + contents[path])
    return found.hexdigest()


def collated(path: str) -> tuple[list[int], list[bool]]:
    """Return the key by which `localeCompare` sorts a path of ASCII."""
    return [_WEIGHTS.get(character.lower(), -1) for character in path], [character.isupper() for character in path]


def git_tree(contents: Mapping[str, bytes]) -> str:
    """Return the SHA-1 that git gives to a folder with these files."""
    folders: dict[str, dict[str, bytes]] = {}
    entries: list[tuple[bytes, bytes, bytes]] = []
    for path, data in contents.items():
        head, slash, rest = path.partition("/")
        if slash:
            folders.setdefault(head, {})[rest] = data
        else:
            mode = b"100755" if isinstance(data, ExecutableFile) else b"100644"
            entries.append((head.encode(), mode, bytes.fromhex(_git_object(b"blob", data))))
    for name, inner in folders.items():
        entries.append((name.encode(), b"40000", bytes.fromhex(git_tree(inner))))
    # Git sorts a folder as if its name ended in a slash.
    entries.sort(key=lambda one: one[0] + (b"/" if one[1] == b"40000" else b""))
    return _git_object(b"tree", b"".join(mode + b" " + name + b"\0" + value for name, mode, value in entries))


def _git_object(kind: bytes, data: bytes) -> str:
    return hashlib.sha1(b"%s %d\0" % (kind, len(data)) + data, usedforsecurity=False).hexdigest()


# Export -------------------------------------------------------------------------------------------


class ExportResult(NamedTuple):
    """The files to write, by name, the skills that are in them, and why others are not."""

    files: dict[str, bytes]
    skills: list[str]
    refused: dict[str, str]


def export_lock(
    form: ExportFormat,
    skills: Mapping[str, LockedSkill],
    contents_of: Callable[[LockedSkill], Mapping[str, bytes] | None],
    before: Callable[[str], bytes | None],
    name: str,
) -> ExportResult:
    """Return the files of another program for the skills of a lock.

    `contents_of` gives the files of a skill, `before` the bytes of a file that is there: what it lists besides these
    skills stays. `name` is that of the project.
    """
    if form == "vercel":
        return _export_project_lock(skills, contents_of, before)
    if form == "oci":
        return _export_oci(skills, before)
    return _export_apm(skills, before, name)


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass")


def _export_project_lock(
    skills: Mapping[str, LockedSkill],
    contents_of: Callable[[LockedSkill], Mapping[str, bytes] | None],
    before: Callable[[str], bytes | None],
) -> ExportResult:
    file = "skills-lock.json"
    known = dict(_locked_rows(data, file, version=1)) if (data := before(file)) is not None else {}
    done, refused = {}, {}
    for name, skill in skills.items():
        row = _project_row(skill)
        contents = contents_of(skill) if row is not None else None
        if row is None:
            refused[name] = f"skills-lock.json has no form for {skill.source}"
        elif contents is None or (value := folder_hash(contents)) is None:
            refused[name] = "its files are not in the store, or have names that are not ASCII"
        else:
            done[name] = {**row, "computedHash": value}
    # The order in which that program sorts them: by UTF-16.
    rows = sorted({**known, **done}.items(), key=lambda item: item[0].encode("utf-16-be"))
    return ExportResult({file: _json({"version": 1, "skills": dict(rows)})} if done else {}, list(done), refused)


def _project_row(skill: LockedSkill) -> dict[str, str] | None:
    inner = f"{skill.path}/{SKILL_FILE}" if skill.path else SKILL_FILE
    url = skill.source.removeprefix("git+")
    ref = {"ref": skill.ref} if skill.ref else {}
    if url.startswith(_GITHUB):
        return {"source": url.removeprefix(_GITHUB), **ref, "sourceType": "github", "skillPath": inner}
    if skill.source.startswith("git+"):
        return {"source": url, "sourceUrl": url, **ref, "sourceType": "git", "skillPath": inner}
    if _HTTPS.match(skill.source):
        return {"source": skill.source, "sourceType": "well-known"}
    if skill.source.startswith((".", "/")) and not skill.source.endswith((".zip", ".skill", ".gz", ".tgz")):
        return {"source": f"{skill.source}/{skill.path}".rstrip("/"), "sourceType": "local"}
    return None


def _export_oci(skills: Mapping[str, LockedSkill], before: Callable[[str], bytes | None]) -> ExportResult:
    wishes = {str(row["name"]): dict(row) for row in _known_rows(before, "skills.json")}
    locked = {str(row["name"]): dict(row) for row in _known_rows(before, "skills.lock.json")}
    done, refused = [], {}
    for name, skill in skills.items():
        place = skill.source.removeprefix("oci://")
        if place == skill.source or skill.artifact is None:
            refused[name] = f"skills.json has no form for {skill.source}"
            continue
        done.append(name)
        registry, _, repository = place.partition("/")
        tag = skill.ref if skill.ref and not skill.ref.startswith("sha256:") else "latest"
        wishes[name] = {"name": name, "source": place, "version": tag}
        source = {"registry": registry, "repository": repository, "tag": tag, "digest": skill.artifact}
        source["ref"] = f"{place}:{tag}@{skill.artifact}"
        locked[name] = {"name": name, "path": f".agents/skills/{name}", "source": source}
    if not done:
        return ExportResult({}, [], refused)
    listed = [[rows[name] for name in sorted(rows)] for rows in (wishes, locked)]
    made = {
        "skills.json": _json({"skills": listed[0]}),
        "skills.lock.json": _json({"lockfileVersion": 1, "skills": listed[1]}),
    }
    return ExportResult(made, done, refused)


def _known_rows(before: Callable[[str], bytes | None], file: str) -> Sequence[Mapping[str, Any]]:
    data = before(file)
    return _oci_rows(data, file) if data is not None else ()


def _export_apm(skills: Mapping[str, LockedSkill], before: Callable[[str], bytes | None], name: str) -> ExportResult:
    """Return a manifest whose dependencies are pinned to commits; one that is there belongs to its authors."""
    file = "apm.yml"
    done, refused, lines = [], {}, []
    for skill_name, skill in skills.items():
        if skill.source.startswith("git+"):
            row = {"git": skill.source.removeprefix("git+"), "path": skill.path, "ref": skill.commit or skill.ref}
        elif skill.source.startswith((".", "/")) and not skill.source.endswith((".zip", ".skill", ".gz", ".tgz")):
            row = {"path": f"{skill.source}/{skill.path}".rstrip("/")}
        else:
            refused[skill_name] = f"apm.yml has no form for {skill.source}"
            continue
        done.append(skill_name)
        parts = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in row.items() if value]
        lines += [f"    {'- ' if number == 0 else '  '}{part}" for number, part in enumerate(parts)]
    head = [f"name: {json.dumps(name, ensure_ascii=False)}", 'version: "1.0.0"', "dependencies:", "  apm:"]
    data = "".join(f"{line}\n" for line in [*head, *lines]).encode("utf-8", "surrogatepass")
    if done and before(file) not in (None, data):
        refused.update(dict.fromkeys(done, "apm.yml is there and has other things in it; name another folder with -o"))
        return ExportResult({}, [], refused)
    return ExportResult({file: data} if done else {}, done, refused)
