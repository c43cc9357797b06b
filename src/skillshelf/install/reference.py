"""Read the text that names a source of skills: a folder, an archive, a repository, a site, a registry, a server.

The grammar is closed, and nothing is looked up to read it:

    ./dir  ../dir  /dir  ~/dir               a folder
    ./file.zip .skill .tar.gz .tgz           an archive; a folder of such a name is written with a final slash
    owner/repo[/path][@ref]                  a repository on GitHub
    git+https://host/path[@ref][#path]       any repository; also git+ssh://, git+file:/// and git+http:// to loopback
    https://host[/path]                      a site with an index of skills; http:// to loopback
    oci://host/repo[:tag | @sha256:hex]      a registry
    mcp:LABEL[/NAME]                         an MCP server of the user's configuration
    plugin:MARKETPLACE/PLUGIN                a plugin: MARKETPLACE is a folder, owner/repo[@ref] or git+URL[@ref]

The name of a plugin has no slash, so the last one ends the marketplace, whatever its ref holds. A ref starts at the
first `@` of a path; one that has `#` in it, and a path that has `@`, are given by the options `--ref` and `--path`.
"""

import os
import re
from collections.abc import Callable
from ipaddress import ip_address
from typing import Literal
from urllib.parse import unquote

from skillshelf.catalog.source import SourceLimits
from skillshelf.catalog.tree import name_problem
from skillshelf.core import files
from skillshelf.core.environment import Environment, expand
from skillshelf.core.limits import ADDRESS_CHARS, ADDRESS_SEGMENTS
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import visible
from skillshelf.errors import ConfigurationError, SourceRefused

__all__ = [
    "ARCHIVE_SUFFIXES",
    "SourceContext",
    "SourceKind",
    "SourceReference",
    "check_path",
    "check_ref",
    "is_loopback",
    "names_of",
    "parse_reference",
]

SourceKind = Literal["folder", "archive", "git", "site", "oci", "mcp", "plugin"]

ARCHIVE_SUFFIXES = (".zip", ".skill", ".tar.gz", ".tgz")
"""The ends of names that make a path an archive."""

_GITHUB = "github.com"
_PATH_STARTS = ("./", "../", "/", "~/")
_PORTS = {"https": "443", "http": "80", "ssh": "22"}
_GRAMMAR = (
    "a source is ./folder, ./file.zip, owner/repo, git+https://..., https://site, oci://..., mcp:LABEL/NAME "
    "or plugin:MARKETPLACE/PLUGIN"
)

_OWNER = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})\Z")
_REPOSITORY = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.-]{0,99}\Z")
_HOST = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]{0,252})|\[[0-9A-Fa-f:.]+\])\Z")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}\Z")
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}\Z")
_OCI_SEGMENT = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*\Z")
_OCI_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}\Z")
_OCI_DIGEST = re.compile(r"sha256:[0-9a-f]{64}\Z")
_URL_PATH = re.compile(r"(?:/(?:[A-Za-z0-9._~!$&'()*+,;=:-]|%[0-9A-Fa-f]{2})*)*\Z")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_NOT_IN_REF = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//")
_SECRET = re.compile(r"[?&#;][^=]*(?:token|key|secret|sig|pass|auth|cred)[^=]*=", re.IGNORECASE)
_LOGINS = "use the credentials of git or .netrc, for a team server --token-file or SKILLSHELF_TOKEN"
_NO_TOKEN = f"an address must not have a token in it; {_LOGINS}"
_SCP = re.compile(r"[A-Za-z0-9_.-]+@[A-Za-z0-9.-]+:(?!//)")


class SourceReference(NamedTuple):
    """The meaning of a SOURCE text; nothing is fetched to know it.

    `canonical` stands in a lock, without secrets, ref and path. `location` is an absolute path, a URL, `host/repo` of
    a registry, the label of a server, or the marketplace. `path` is the folder inside the source, empty if not said.
    `name` is that of `mcp:LABEL/NAME` and `plugin:MARKETPLACE/PLUGIN`.
    """

    kind: SourceKind
    canonical: str
    location: str
    path: str = ""
    ref: str | None = None
    name: str | None = None


class SourceContext(NamedTuple):
    """The conditions under which a source is read.

    `ask` lets programs ask for credentials on the terminal, `progress` is called with one line about slow work.
    `permit` is called before a source reads another one that it names, and raises if nobody may install from there.
    `token_file` holds a token for a team server, which gets it if the user `typed` its address, or named it before.
    """

    environment: Environment
    allow_http: bool = False
    ask: bool = False
    offline: bool = False
    limits: SourceLimits = SourceLimits()
    progress: Callable[[str], None] | None = None
    permit: Callable[[SourceReference], None] | None = None
    token_file: str | None = None
    typed: bool = False


def parse_reference(
    text: str,
    environment: Environment,
    *,
    path: str | None = None,
    ref: str | None = None,
    base: str | None = None,
    root: str | None = None,
) -> SourceReference:
    """Return what a SOURCE text means; `path` and `ref` are the options of the same names.

    A relative folder starts from `base`, else from the working directory; it is `./x` in `canonical` if it lies below
    `root`, the folder of the project's lock, and absolute without a root. The canonical text of a lock, with its path
    and ref and `base` and `root` the folder of the lock, gives an equal reference.
    Raise ConfigurationError for a text outside the grammar, SourceRefused for one that must not be used.
    """
    if _CONTROLS.search(text):
        raise SourceRefused("control-character", f"the source {text!r} has a control character")
    if len(text) > ADDRESS_CHARS:
        raise ConfigurationError(f"a source has at most {ADDRESS_CHARS} characters (ADDRESS_CHARS)")
    if text.startswith("plugin:"):
        found = _plugin(text, environment, ref=ref, base=base, root=root)
    elif text.startswith(_PATH_STARTS) or text in (".", "..", "~"):
        found = _local(text, environment, base=base, root=root)
    else:
        found = _remote(text)
    found = found._replace(path=check_path(_one(text, "path", found.path or None, path) or ""))
    found = found._replace(ref=_one(text, "ref", found.ref, ref))
    if found.ref is not None:
        _check_ref_of(found, text)
    return found


def names_of(reference: SourceReference) -> tuple[str, ...]:
    """Return every text that means a source: as a lock has it, and the place that it leads to.

    One folder is `../x` from here and `/srv/x` from there, and a plugin comes out of its marketplace: who allows or
    denies a source means the place.
    """
    found = [reference.canonical]
    if reference.kind == "plugin":
        found.append(reference.canonical.removeprefix("plugin:").rpartition("/")[0])
    place = reference.location.removeprefix("git+").removeprefix("file://")
    if place.startswith("/"):
        is_git = "file://" in reference.location
        found += [f"git+file://{path}" if is_git else path for path in (place, files.real_path(place))]
    return tuple(dict.fromkeys(found))


def _remote(text: str) -> SourceReference:
    scheme, has_scheme, _ = text.partition("://")
    if text.startswith("git+"):
        return _git(text)
    if text.startswith("mcp:"):
        return _mcp(text)
    if has_scheme and scheme in ("https", "http"):
        return _site(text)
    if has_scheme and scheme == "oci":
        return _registry(text)
    if "::" in text:
        raise SourceRefused("transport", f"the source {_shown(text)} names a transport that is never used")
    if has_scheme or _SCP.match(text):
        raise ConfigurationError(f"not a source: {_shown(text)}; {_hint(text)}")
    return _github(text)


def _hint(text: str) -> str:
    if (scp := _SCP.match(text)) is not None:
        return f"did you mean git+ssh://{scp[0][:-1]}/{visible(text[scp.end() :])}?"
    scheme = text.partition("://")[0]
    return f"did you mean git+{visible(text)}?" if scheme in ("ssh", "file") and "@" not in text else _GRAMMAR


def _one(text: str, what: str, written: str | None, option: str | None) -> str | None:
    if written is not None and option is not None and written != option:
        raise ConfigurationError(f"{_shown(text)} names a {what}, and --{what} another one")
    return written if option is None else option


# Paths and refs -----------------------------------------------------------------------------------


def check_path(path: str) -> str:
    """Return the path of a folder inside a source, empty for its root; raise SourceRefused if it cannot be one."""
    while path.startswith("./"):
        path = path[2:]
    path = path.rstrip("/") if path != "/" else path
    if path in ("", "."):
        return ""
    if path.startswith("/") or ".." in path.split("/"):
        raise SourceRefused("path-escape", f"the path {path!r} leads out of the source")
    if path.startswith("-") or len(path) > ADDRESS_CHARS or name_problem([path]) is not None:
        raise SourceRefused("path", f"the path {path!r} is not one that every machine can have")
    if path.count("/") >= ADDRESS_SEGMENTS:
        raise SourceRefused("path", f"the path has more than {ADDRESS_SEGMENTS} segments (ADDRESS_SEGMENTS)")
    return path


def check_ref(ref: str) -> str:
    """Return the name of a branch or tag, or a commit; raise SourceRefused if git would not take it as one."""
    parts = ref.split("/")
    wrong = (
        _NOT_IN_REF.search(ref)
        or _CONTROLS.search(ref)
        or ref in ("", "@")
        or len(ref.encode("utf-8", "replace")) > 255
        or ref[0] in "-/+"
        or ref[-1] in "./"
        or any(part.startswith(".") or part.endswith(".lock") for part in parts)
    )
    if wrong:
        raise SourceRefused("ref", f"{ref!r} is not the name of a branch, a tag or a commit")
    return ref


def _check_ref_of(found: SourceReference, text: str) -> None:
    ref = found.ref or ""
    if found.kind in ("git", "plugin"):
        check_ref(ref)
    elif found.kind != "oci":
        raise ConfigurationError(f"{_shown(text)} has no versions; leave the ref out")
    elif not (_OCI_DIGEST.match(ref) or _OCI_TAG.match(ref)):
        raise SourceRefused("ref", f"{ref!r} is neither a tag nor sha256: and 64 hex digits")


# Files on this machine ----------------------------------------------------------------------------


def _local(text: str, environment: Environment, *, base: str | None, root: str | None) -> SourceReference:
    location = expand(text, environment, base=base or environment.cwd)
    is_archive = text.lower().endswith(ARCHIVE_SUFFIXES)
    canonical = location
    if root is not None and files.is_inside(location, root):
        canonical = "./" + os.path.relpath(location, root) if location != root else "."
    elif root is not None and text.startswith("."):
        canonical = os.path.relpath(location, root)
        canonical = canonical if canonical.startswith("../") else f"{canonical}/"
    if not is_archive and location.lower().endswith(ARCHIVE_SUFFIXES):
        # Without the slash it would be an archive when it is read from a lock.
        location, canonical = f"{location}/", f"{canonical}/"
    return SourceReference("archive" if is_archive else "folder", canonical, location)


# Repositories -------------------------------------------------------------------------------------


def _github(text: str) -> SourceReference:
    place, has_ref, ref = text.partition("@")
    owner, _, rest = place.partition("/")
    name, _, path = rest.partition("/")
    name = name.removesuffix(".git")
    if not _OWNER.match(owner) or not _REPOSITORY.match(name) or name in (".", ".."):
        raise ConfigurationError(f"not a source: {_shown(text)}; {_GRAMMAR}")
    url = f"https://{_GITHUB}/{owner}/{name}"
    return SourceReference("git", f"git+{url}", url, path, ref if has_ref else None)


def _git(text: str) -> SourceReference:
    address, has_path, path = text.removeprefix("git+").partition("#")
    scheme, has_scheme, rest = address.partition("://")
    if not has_scheme or scheme not in ("https", "ssh", "file", "http"):
        raise SourceRefused("transport", "a repository is read by git+https://, git+ssh:// or git+file:/// alone")
    authority, slash, place = rest.partition("/")
    place, has_ref, ref = place.partition("@")
    url = _url(text, scheme, authority, slash + place.rstrip("/"))
    if not place.strip("/"):
        raise ConfigurationError(f"not a source: {_shown(text)}; the address of a repository has a path")
    return SourceReference("git", f"git+{url}", url, path if has_path else "", ref if has_ref else None)


def _plugin(
    text: str, environment: Environment, *, ref: str | None, base: str | None, root: str | None
) -> SourceReference:
    marketplace, slash, name = text.removeprefix("plugin:").rpartition("/")
    if not slash or not _LABEL.match(name):
        raise ConfigurationError(f"not a source: {_shown(text)}; a plugin is written plugin:MARKETPLACE/PLUGIN")
    if marketplace in ("", ".", "..", "~"):
        marketplace += "/"
    found = parse_reference(marketplace, environment, base=base, root=root)
    if found.kind not in ("folder", "git") or found.path:
        raise ConfigurationError(f"{_shown(text)}: a marketplace is a folder, owner/repo[@ref] or git+URL[@ref]")
    location = found.canonical if found.kind == "git" else found.location
    return SourceReference("plugin", f"plugin:{found.canonical}/{name}", location, "", found.ref, name)


# Servers ------------------------------------------------------------------------------------------


def _site(text: str) -> SourceReference:
    scheme, _, rest = text.partition("://")
    if "#" in rest:
        raise ConfigurationError(f"not a source: {_shown(text)}; a site has no part after #")
    authority, slash, place = rest.partition("/")
    url = _url(text, scheme, authority, slash + place).rstrip("/")
    if authority.lower() == _GITHUB or url.endswith(".git"):
        raise ConfigurationError(f"not a site with skills: {url}; did you mean git+{url}?")
    return SourceReference("site", url, url)


def _registry(text: str) -> SourceReference:
    authority, _, place = text.removeprefix("oci://").partition("/")
    host = _host(text, "oci", authority)
    place, has_digest, digest = place.partition("@")
    repository, has_tag, tag = place.partition(":")
    if "?" in place or "#" in place:
        _refuse_query(text)
    if (has_digest and has_tag) or not all(map(_OCI_SEGMENT.match, repository.split("/"))) or len(repository) > 255:
        raise ConfigurationError(f"not a source: {_shown(text)}; a registry is oci://host/repo:tag or @sha256:...")
    ref = digest if has_digest else tag if has_tag else None
    return SourceReference("oci", f"oci://{host}/{repository}", f"{host}/{repository}", "", ref)


def _mcp(text: str) -> SourceReference:
    label, slash, name = text.removeprefix("mcp:").partition("/")
    if not _LABEL.match(label) or (slash and not name):
        raise ConfigurationError(f"not a source: {_shown(text)}; a server's skill is written mcp:LABEL/NAME")
    if name:
        check_path(name)
    return SourceReference("mcp", text, label, "", None, name or None)


def is_loopback(host: str) -> bool:
    """Return whether a host is written as this machine: `localhost` or an address of its loopback interface."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _url(text: str, scheme: str, authority: str, place: str) -> str:
    """Return a URL whose parts are checked, with its host in small letters and without its usual port."""
    if "?" in authority or "?" in place:
        _refuse_query(text)
    if scheme == "file":
        # The path of this machine that git opens: there are no escapes in it.
        path = os.path.normpath(f"/{place.lstrip('/')}")
        if authority or path == "/":
            raise ConfigurationError(f"not a source: {_shown(text)}; a repository on this machine is git+file:///path")
        return f"file://{path}"
    host = _host(text, scheme, authority)
    if _SECRET.search(place):
        raise SourceRefused("secret-in-url", _NO_TOKEN)
    if not _URL_PATH.match(place):
        raise ConfigurationError(f"not a source: {_shown(text)}; its path has a character that a URL cannot have")
    decoded = unquote(place, errors="replace")
    if _CONTROLS.search(decoded) or "\\" in decoded or ".." in decoded.split("/"):
        raise SourceRefused("path-escape", f"the address {_shown(text)} has a path that must not be used")
    return f"{scheme}://{host}{place}"


def _host(text: str, scheme: str, authority: str) -> str:
    user, has_user, rest = authority.rpartition("@")
    if has_user and (scheme != "ssh" or ":" in user):
        raise SourceRefused("secret-in-url", f"an address must not have a user or a password in it; {_LOGINS}")
    host, has_port, port = rest.rpartition(":") if re.search(r":[0-9]*\Z", rest) else (rest, "", "")
    if not _HOST.match(host) or (has_user and not _USER.match(user)) or (has_port and not 0 < int(port or 0) < 65536):
        raise ConfigurationError(f"not a source: {_shown(text)}; {visible(rest)!r} is not a host")
    if scheme == "http" and not is_loopback(host):
        raise SourceRefused("plain-http", f"plain HTTP reaches this machine alone, not {visible(host)}; use https://")
    port = f":{int(port)}" if has_port and port != _PORTS.get(scheme) else ""
    return f"{user}@{host.lower()}{port}" if has_user else f"{host.lower()}{port}"


def _refuse_query(text: str) -> None:
    if _SECRET.search(text):
        raise SourceRefused("secret-in-url", _NO_TOKEN)
    raise ConfigurationError(f"not a source: {_shown(text)}; an address has no part after ? here")


def _shown(text: str) -> str:
    """Return a source for a message: without what may be a password."""
    return visible(re.sub(r"(?<=://)[^/@]*@|[^/@:]*:[^/@]*@|[?#].*", "...", text))
