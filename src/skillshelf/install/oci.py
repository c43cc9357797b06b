"""Read skills from OCI registries, and talk to a registry with the user's own credentials."""

import os
import re
from base64 import b64decode
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode, urljoin

from skillshelf.catalog.source import SourceEntry, SourceIdentity, SourceLimits
from skillshelf.core import files
from skillshelf.core.digests import sha256
from skillshelf.core.environment import Environment
from skillshelf.core.http_client import (
    HttpAnswer,
    HttpClient,
    HttpRequest,
    basic,
    is_loopback_name,
    origin_of,
    require_found,
)
from skillshelf.core.limits import CONFIG_BYTES, HELPER_BYTES, OCI_MANIFEST_BYTES, SOURCE_SECONDS
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import cut, visible
from skillshelf.errors import ConfigurationError, SourceNotFound, SourceRefused
from skillshelf.install.archive import unpack
from skillshelf.install.reference import SourceContext, SourceReference
from skillshelf.install.skill_entries import check_sizes, files_below, skill_folders, some_of
from skillshelf.install.well_known import DIGEST, json_value, require_digest, skill_fields

__all__ = [
    "ARTIFACT_TYPE",
    "CONFIG_TYPE",
    "LAYER_TYPE",
    "MANIFEST_TYPE",
    "NAME_ANNOTATION",
    "RegistryClient",
    "RegistrySource",
    "docker_login",
    "realm_belongs",
]

MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
ARTIFACT_TYPE = "application/vnd.agentskills.skill.v1"
CONFIG_TYPE = "application/vnd.agentskills.skill.config.v1+json"
LAYER_TYPE = "application/vnd.agentskills.skill.content.v1.tar+gzip"
NAME_ANNOTATION = "io.agentskills.skill.name"

_INDEX_TYPES = frozenset(
    {"application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json"}
)
_MANIFEST_TYPES = frozenset({MANIFEST_TYPE, "application/vnd.docker.distribution.manifest.v2+json"})
_DEFAULT_TAG = "latest"
_LAYER_OVERHEAD = 1024 * 1024

# The registry whose name is not the host that serves it, and the key that its users' configurations have for it.
_SERVING_HOSTS = {"docker.io": "registry-1.docker.io"}
_LOGIN_KEYS = {"docker.io": ("https://index.docker.io/v1/", "index.docker.io", "registry-1.docker.io")}


class _Descriptor(NamedTuple):
    """The entry of a manifest about a blob."""

    media_type: str
    digest: str
    size: int


class RegistrySource:
    """The one skill of a repository in a registry, at a tag or a digest."""

    def __init__(self, reference: SourceReference, context: SourceContext) -> None:
        self._reference = reference
        self._context = context
        self._client = RegistryClient(
            reference.location,
            context.environment,
            allow_http=context.allow_http,
            offline=context.offline,
            seconds=context.limits.seconds,
        )
        self.label = reference.location
        self.notes: Sequence[str] = ()
        self._pulled: tuple[str, Mapping[str, bytes]] | None = None

    def list(self) -> Iterable[SourceEntry]:
        """Return the skill of the repository; its files are pulled for that, since only they say what it is."""
        self.notes = ()
        self._pulled = self._pull(self._context.limits)
        fields = skill_fields(self._pulled[1])
        return [SourceEntry(fields["name"], str(fields.get("description") or ""), fields)]

    def fetch(self, entry: SourceEntry, paths: Sequence[str], limits: SourceLimits) -> Mapping[str, bytes]:
        """Return files of the skill, from the version that was listed."""
        contents = self._listed()[1]
        check_sizes({path: len(data) for path, data in contents.items()}, limits)
        if skill_fields(contents)["name"] != entry.name:
            raise SourceNotFound(f"{self.label} does not hold a skill {visible(entry.name)!r}")
        return some_of(contents, paths)

    def identity(self, entry: SourceEntry) -> SourceIdentity:
        """Return what the skill is recorded as: its repository, tag, and the digest of the manifest."""
        publisher = self.label.rpartition("/")[0]
        return SourceIdentity(self._reference.canonical, "", self._reference.ref, None, self._listed()[0], publisher)

    def _listed(self) -> tuple[str, Mapping[str, bytes]]:
        if self._pulled is None:
            self.list()
        assert self._pulled is not None
        return self._pulled

    def _pull(self, limits: SourceLimits) -> tuple[str, Mapping[str, bytes]]:
        """Return the digest that the reference stands for, and the files of the skill."""
        if self._context.progress is not None:
            self._context.progress(f"pulling {self.label}")
        digest, manifest = self._client.manifest(self._reference.ref or _DEFAULT_TAG)
        if "manifests" in manifest:
            manifest = self._client.manifest(_only_manifest(manifest).digest)[1]
            if "manifests" in manifest:
                raise SourceRefused("manifest", f"{self.label}: an index leads to another index")
        layer = self._layer(manifest)
        if layer.size > limits.bytes + _LAYER_OVERHEAD:
            raise SourceRefused("too-large", f"{self.label}: the layer has {layer.size} bytes; at most {limits.bytes}")
        contents, wrapper = _skill_in(_unpacked(self._client.blob(layer), layer.media_type, limits))
        check_sizes({path: len(data) for path, data in contents.items()}, limits)
        self._check_profile(manifest, wrapper, contents)
        return digest, contents

    def _layer(self, manifest: Mapping[str, Any]) -> _Descriptor:
        layers = manifest.get("layers")
        if not isinstance(layers, list) or len(layers) != 1:
            count = len(layers) if isinstance(layers, list) else "no"
            raise SourceRefused("layers", f"{self.label}: the manifest has {count} layers; a skill is exactly one")
        return _descriptor(layers[0], f"{self.label}: the layer")

    def _check_profile(self, manifest: Mapping[str, Any], wrapper: str, contents: Mapping[str, bytes]) -> None:
        """Compare every name that a manifest gives with the skill's own; note a shape that is not the profile's."""
        name = skill_fields(contents)["name"]
        config = _descriptor(manifest.get("config"), f"{self.label}: the configuration")
        annotations = manifest.get("annotations")
        said = [annotations.get(NAME_ANNOTATION)] if isinstance(annotations, dict) else []
        if config.media_type == CONFIG_TYPE or manifest.get("artifactType") == ARTIFACT_TYPE:
            if config.size > OCI_MANIFEST_BYTES:
                raise SourceRefused("too-large", f"{self.label}: the configuration has {config.size} bytes")
            value = json_value(self._client.blob(config), f"{self.label}: the configuration", "manifest")
            said += [value.get("name") if isinstance(value, dict) else None, wrapper]
        else:
            shape = visible(cut(str(manifest.get("artifactType") or config.media_type), 100))
            self.notes = (f"{self.label} is not of the agentskills profile ({shape}); read as one layer of files",)
        wrong = next((one for one in said if one is not None and one != name), None)
        if wrong is not None:
            raise SourceRefused(
                "name", f"{self.label} is offered as {visible(cut(str(wrong), 100))!r}, but its SKILL.md says {name!r}"
            )


def _only_manifest(index: Mapping[str, Any]) -> _Descriptor:
    """Return the manifest of an index; raise SourceRefused if a machine would have to choose one."""
    rows = index.get("manifests")
    if not isinstance(rows, list) or len(rows) != 1:
        count = len(rows) if isinstance(rows, list) else "no"
        raise SourceRefused(
            "platform", f"an index of {count} manifests: which one is the skill would depend on the machine"
        )
    return _descriptor(rows[0], "the manifest")


def _descriptor(value: Any, what: str) -> _Descriptor:
    """Return what a manifest says about a blob; raise SourceRefused if that is not all that is needed to check it."""
    if not isinstance(value, dict):
        raise SourceRefused("manifest", f"{what} is not described")
    kind, digest, size = value.get("mediaType"), value.get("digest"), value.get("size")
    if value.get("urls"):
        raise SourceRefused("urls", f"{what} names other addresses for its bytes, which are never asked")
    if not isinstance(digest, str) or not DIGEST.match(digest):
        raise SourceRefused("digest", f"{what}: digest is not sha256: and 64 hex digits in small letters")
    if not isinstance(kind, str) or not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise SourceRefused("manifest", f"{what} has no media type or no size")
    return _Descriptor(kind, digest, size)


def _unpacked(data: bytes, media_type: str, limits: SourceLimits) -> Mapping[str, bytes]:
    kind = media_type.lower()
    if kind.endswith(("tar+gzip", "tar.gzip")):
        return unpack(data, limits, kind="tar.gz")
    if kind.endswith(("+zstd", ".zstd")):
        return unpack(_without_zstd(data, limits), limits, kind="tar")
    if kind.endswith("tar"):
        return unpack(data, limits, kind="tar")
    raise SourceRefused("layers", f"a layer of type {visible(cut(media_type, 100))}; only tar, tar+gzip and tar+zstd")


def _without_zstd(data: bytes, limits: SourceLimits) -> bytes:
    """Return the bytes of a zstd stream; the standard library reads it from Python 3.14 on."""
    try:
        from compression.zstd import ZstdDecompressor, ZstdError  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise SourceRefused("zstd", "a layer is compressed with zstd, which this Python cannot read") from None
    most = 2 * limits.bytes + _LAYER_OVERHEAD
    try:
        stream = ZstdDecompressor()
        result: bytes = stream.decompress(data, most)
    except ZstdError:
        raise SourceRefused("archive", "a layer is damaged: it is not zstd") from None
    if not stream.eof or stream.unused_data:
        raise SourceRefused("too-large", f"a layer unpacks to more than {most} bytes, or has more behind its end")
    return result


def _skill_in(contents: Mapping[str, bytes]) -> tuple[dict[str, bytes], str]:
    """Return the files of the one skill in a layer, and the name of its folder; raise SourceRefused for any other."""
    for path in contents:
        if any(part.startswith(".wh.") for part in path.split("/")):
            raise SourceRefused("whiteout", f"the layer removes files of others: {visible(cut(path, 100))!r}")
    folders = skill_folders(contents)
    if len(folders) != 1:
        raise SourceRefused("layers", f"the layer holds {len(folders)} skills, not one")
    found = files_below(contents, folders[0])
    if len(found) != len(contents):
        raise SourceRefused("layers", f"the layer holds files outside of its skill {visible(folders[0])!r}")
    return found, folders[0].rpartition("/")[2]


# Requests -----------------------------------------------------------------------------------------


class RegistryClient:
    """Sends requests for one repository to its registry, with a token that the registry's own realm gives.

    `location` is the host and the repository. What a manifest or blob is, is decided by its digest alone.
    """

    def __init__(
        self,
        location: str,
        environment: Environment,
        *,
        allow_http: bool = False,
        offline: bool = False,
        seconds: float = SOURCE_SECONDS,
        limit: str = "SOURCE_SECONDS",
        actions: str = "pull",
    ) -> None:
        self.host, _, self.repository = location.partition("/")
        serving = _SERVING_HOSTS.get(self.host, self.host)
        scheme = "http" if allow_http and is_loopback_name(origin_of(f"https://{serving}").host) else "https"
        self.base = f"{scheme}://{serving}"
        self._environment = environment
        self._actions = actions
        self._authorization: str | None = None
        self._client = HttpClient(
            self.base, environment, allow_http=allow_http, offline=offline, seconds=seconds, limit=limit, netrc=False
        )

    def manifest(self, ref: str) -> tuple[str, dict[str, Any]]:
        """Return the digest and the value of a manifest, by its tag or digest."""
        accept = ", ".join(sorted(_MANIFEST_TYPES | _INDEX_TYPES))
        request = HttpRequest(self.address(f"manifests/{ref}"), OCI_MANIFEST_BYTES, headers={"Accept": accept})
        answer = require_found(self.send(request))
        where = f"{self.host}/{self.repository}: the manifest"
        digest = f"sha256:{sha256(answer.data).hexdigest()}"
        if ref.startswith("sha256:"):
            require_digest(answer.data, ref, where)
        if answer.headers.get("docker-content-digest", digest) != digest:
            raise SourceRefused("digest", f"{where}: the registry says another digest than its bytes have")
        value = json_value(answer.data, where, "manifest")
        _check_manifest(value, answer.headers.get("content-type", ""), where)
        return digest, value

    def blob(self, descriptor: _Descriptor) -> bytes:
        """Return the bytes of a blob, which have exactly the digest and the size that a manifest says."""
        what = f"{self.host}/{self.repository}: a blob"
        answer = require_found(
            self.send(HttpRequest(self.address(f"blobs/{descriptor.digest}"), max(descriptor.size, 1)))
        )
        if len(answer.data) != descriptor.size:
            raise SourceRefused("size", f"{what} has {len(answer.data)} bytes, not {descriptor.size}")
        require_digest(answer.data, descriptor.digest, what)
        return answer.data

    def address(self, path: str) -> str:
        """Return the address of something in the repository."""
        return f"{self.base}/v2/{self.repository}/{path}"

    def resolve(self, location: str) -> str:
        """Return the address that a registry names for an upload; raise SourceRefused if it is not its own."""
        url = urljoin(self.base, location)
        if origin_of(url) != self._client.named:
            raise SourceRefused("redirects", f"{self.host} sends an upload to another host")
        return url

    def send(self, request: HttpRequest) -> HttpAnswer:
        """Send a request; if the registry asks for a login, once more with one."""
        answer = self._client.send(self._with_login(request))
        if answer.status == 401 and origin_of(answer.url) == self._client.named:
            self._authorization = self._login(answer.headers.get("www-authenticate", ""))
            answer = self._client.send(self._with_login(request))
        return answer

    def _with_login(self, request: HttpRequest) -> HttpRequest:
        if self._authorization is None:
            return request
        return request._replace(headers={**request.headers, "Authorization": self._authorization})

    def _login(self, challenge: str) -> str:
        """Return the header that a challenge asks for."""
        scheme, _, rest = challenge[:4096].strip().partition(" ")
        login = docker_login(self.host, self._environment)
        if scheme.lower() == "basic":
            if login is None:
                raise SourceRefused("credentials", f"{self.host} asks for a login, and there is none for it")
            return basic(*login)
        values = dict(re.findall(r'([A-Za-z_]+)="([^"]*)"', rest))
        if scheme.lower() != "bearer" or not values.get("realm"):
            raise SourceRefused("credentials", f"{self.host} asks for a login in a way that is not known")
        return f"Bearer {self._token(values['realm'], values.get('service', ''), login)}"

    def _token(self, realm: str, service: str, login: tuple[str, str] | None) -> str:
        """Return a token from a realm; the login goes there only if the realm belongs to the registry."""
        origin = origin_of(realm)
        if self._client.named.scheme == "https" and origin.scheme != "https":
            raise SourceRefused("downgrade", f"{self.host} asks for a login over plain http")
        if not realm_belongs(origin.host, origin_of(f"https://{self.host}").host):
            # The user's own word about that host; a registry's word gives nothing away.
            login = docker_login(origin.text.partition("://")[2], self._environment)
        if login is not None:
            # A private registry often has its tokens from another host of the same network.
            self._client.allow_host(origin.host)
        query = {"service": service, "scope": f"repository:{self.repository}:{self._actions}"}
        url = f"{realm}{'&' if '?' in realm else '?'}{urlencode(query)}"
        request = HttpRequest(url, OCI_MANIFEST_BYTES, headers={"Authorization": basic(*login)} if login else {})
        if login is not None and login[0] == _TOKEN_USER:
            form = {"grant_type": "refresh_token", "refresh_token": login[1], "client_id": "skillshelf", **query}
            headers = {"Content-Type": "application/x-www-form-urlencoded"}
            request = HttpRequest(realm, OCI_MANIFEST_BYTES, "POST", headers, urlencode(form).encode("ascii"))
        answer = require_found(self._client.send(request))
        value = json_value(answer.data, f"the answer of {origin.text}", "credentials")
        token = (value.get("token") or value.get("access_token")) if isinstance(value, dict) else None
        if not isinstance(token, str) or not re.fullmatch(r"[\x21-\x7e]{1,65536}", token):
            raise SourceRefused("credentials", f"{origin.text} gives no usable token")
        return token


def _check_manifest(value: Any, content_type: str, where: str) -> None:
    """Raise SourceRefused unless a manifest is of one known kind, and only of that."""
    said = content_type.partition(";")[0].strip().lower()
    if not isinstance(value, dict) or value.get("schemaVersion") != 2:
        raise SourceRefused("manifest", f"{where} is not one of schema version 2")
    kind = value.get("mediaType", said)
    if said != kind or said not in _MANIFEST_TYPES | _INDEX_TYPES:
        raise SourceRefused("manifest", f"{where} is sent as {visible(cut(said or 'nothing', 100))}, but says another")
    is_index = said in _INDEX_TYPES
    if is_index != ("manifests" in value) or is_index == ("layers" in value):
        raise SourceRefused("manifest", f"{where} is an index and a manifest at once, or neither")


def realm_belongs(realm: str, host: str) -> bool:
    """Return whether a realm is the registry's host, one below it, or a domain above it.

    Whoever has a domain has all names below it; what two names share at their ends proves nothing.
    """
    above = host.endswith(f".{realm}") and "." in realm
    return realm == host or realm.endswith(f".{host}") or above


# Logins -------------------------------------------------------------------------------------------

_TOKEN_USER = "<token>"
"""The user name with which a helper marks a token that is exchanged for another."""


def docker_login(host: str, environment: Environment) -> tuple[str, str] | None:
    """Return the name and password that the user's Docker configuration has for a registry, itself or by a helper."""
    folder = environment.env.get("DOCKER_CONFIG") or (f"{environment.home}/.docker" if environment.home else None)
    path = f"{folder}/config.json"
    if folder is None or files.kind_at(path) is None:
        return None
    try:
        data = files.read_own_file(files.real_path(path), limit=CONFIG_BYTES)
        config = json_value(data or b"", path, "configuration")
    except (OSError, SourceRefused):
        config = None
    if not isinstance(config, dict):
        raise ConfigurationError(
            f"{path} cannot be used: it must be JSON in a file of yours that nobody else can write"
        )
    keys = (*_LOGIN_KEYS.get(host, ()), host)
    given = config.get("credHelpers")
    helpers = given if isinstance(given, dict) else {}
    for key in keys:
        if isinstance(helpers.get(key), str):
            return _helper_login(helpers[key], key, environment)
    if isinstance(config.get("credsStore"), str) and config["credsStore"]:
        found = _helper_login(config["credsStore"], keys[0], environment)
        if found is not None:
            return found
    auths = config.get("auths")
    return _kept_login(auths, keys) if isinstance(auths, dict) else None


def _kept_login(auths: Mapping[str, Any], keys: Sequence[str]) -> tuple[str, str] | None:
    hosts = {_login_host(key) for key in keys}
    for key, value in auths.items():
        if _login_host(key) not in hosts or not isinstance(value, dict):
            continue
        if isinstance(value.get("identitytoken"), str) and value["identitytoken"]:
            return _TOKEN_USER, value["identitytoken"]
        try:
            text = b64decode(value.get("auth") or "", validate=True).decode("utf-8")
        except (ValueError, TypeError):
            continue
        name, colon, password = text.partition(":")
        if colon:
            return name, password.rstrip("\0")
    return None


def _login_host(key: str) -> str:
    return key.partition("://")[2].partition("/")[0].lower() if "://" in key else key.partition("/")[0].lower()


def _helper_login(name: str, server: str, environment: Environment) -> tuple[str, str] | None:
    """Ask a credential helper of the user; None if it has nothing for this server."""
    import subprocess
    from threading import Timer

    program = _helper_program(name, environment)
    started = subprocess.Popen(
        [program, "get"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=dict(environment.env),
        cwd="/",
        start_new_session=True,
    )
    timer = Timer(SOURCE_SECONDS, started.kill)
    timer.start()
    try:
        assert started.stdin is not None
        assert started.stdout is not None
        with started.stdout, started.stdin:
            try:
                started.stdin.write(server.encode())
                started.stdin.close()
            except BrokenPipeError:
                pass
            data = started.stdout.read(HELPER_BYTES + 1)
        if len(data) > HELPER_BYTES:
            started.kill()
        status = started.wait()
    finally:
        timer.cancel()
    if status != 0 or len(data) > HELPER_BYTES:
        return None
    try:
        value = json_value(data, program, "credentials")
    except SourceRefused:
        return None
    login, secret = (value.get("Username"), value.get("Secret")) if isinstance(value, dict) else (None, None)
    return (login, secret) if isinstance(login, str) and isinstance(secret, str) else None


def _helper_program(name: str, environment: Environment) -> str:
    """Return the path of a credential helper; raise ConfigurationError if there is none."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise ConfigurationError(f"the Docker configuration names a credential helper {visible(name)!r}, which is none")
    for folder in environment.env.get("PATH", "").split(":"):
        # A relative folder would be one of the project.
        if os.path.isabs(folder) and files.is_program(path := f"{folder}/docker-credential-{name}"):
            return path
    raise ConfigurationError(f"the credential helper docker-credential-{name} is not installed")
