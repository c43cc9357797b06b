"""Sites and registries that try to do harm, each with the rule that refuses it, and healthy ones beside them."""

from __future__ import annotations

import gzip
import io
import json
import socket
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from support.http_sites import Request, Route, Site, answer, digest_of, drip, endless, index, redirect, skill_text

from skillshelf.install.oci import ARTIFACT_TYPE, CONFIG_TYPE, LAYER_TYPE, MANIFEST_TYPE, NAME_ANNOTATION
from skillshelf.install.well_known import INDEX_PATH, INDEX_SCHEMA

__all__ = ["HEALTHY_REGISTRIES", "HEALTHY_SITES", "HOSTILE_REGISTRIES", "HOSTILE_SITES", "Registry", "SiteCase"]

FORMER_PATH = "/.well-known/skills/index.json"
PAGE = skill_text()


class SiteCase(NamedTuple):
    """A site or registry: what it is, how it is set up, and the rule that refuses it.

    Other outcomes than a refusal are `not-found` and `unreachable`, and `ok` for a healthy one.
    """

    what: str
    prepare: Callable[[Any], None]
    rule: str


def zip_with(*entries: tuple[str, bytes], **options: Any) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries:
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data, **options)
    return made.getvalue()


def tar_with(*entries: tuple[str, bytes], kind: bytes = tarfile.REGTYPE, link: str = "") -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for number, (name, data) in enumerate(entries):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            if number == len(entries) - 1 and kind != tarfile.REGTYPE:
                member.type, member.linkname, member.size = kind, link, 0
            archive.addfile(member, io.BytesIO(data) if member.size else None)
    return made.getvalue()


def tar_gz(*entries: tuple[str, bytes], **options: Any) -> bytes:
    return gzip.compress(tar_with(*entries, **options), mtime=0)


# Sites --------------------------------------------------------------------------------------------


def page(**changes: Any) -> Callable[[Site], None]:
    """A site that offers one page, with changes to its entry."""
    return lambda site: site.offer(PAGE, **changes)


def archive(data: bytes, **changes: Any) -> Callable[[Site], None]:
    return lambda site: site.offer(data, kind="archive", **changes)


def served(path: str, route: Route) -> Callable[[Site], None]:
    """A site that offers one page and answers something else at a path."""

    def prepare(site: Site) -> None:
        site.offer(PAGE)
        site.routes[path] = route

    return prepare


def listed(route: bytes) -> Callable[[Site], None]:
    return served(INDEX_PATH, route)


def former(rows: Any, **files: bytes) -> Callable[[Site], None]:
    """A site of version 0.1."""

    def prepare(site: Site) -> None:
        site.routes[FORMER_PATH] = answer(json.dumps({"skills": rows}).encode())
        for name, data in files.items():
            site.routes["/.well-known/skills/deploy/" + name.replace("__", "/").replace("_", ".")] = answer(data)

    return prepare


ENTRY = {"name": "deploy", "type": "skill-md", "description": "x", "url": "deploy/artifact", "digest": digest_of(PAGE)}
ARTIFACT = "/.well-known/agent-skills/deploy/artifact"
OLD = {"name": "deploy", "description": "x", "files": ["SKILL.md"]}
BOMB = b"\0" * (40 << 20)


def without(key: str) -> dict[str, Any]:
    return {name: value for name, value in ENTRY.items() if name != key}


def raw(head: str, body: bytes = b"") -> bytes:
    return head.replace("\n", "\r\n").encode("latin-1") + b"\r\n\r\n" + body


def silent(_: Request, connection: socket.socket) -> None:
    connection.recv(1)


def chunks_of_one(_: Request, connection: socket.socket) -> None:
    connection.sendall(raw("HTTP/1.1 200 OK\nTransfer-Encoding: chunked"))
    while True:
        connection.sendall(b"1;" + b"x" * 4000 + b"\r\na\r\n")


HOSTILE_SITES = [
    # The index.
    SiteCase("an index that is not JSON", listed(answer(b"<html>")), "index"),
    SiteCase("an index that is not UTF-8", listed(answer(b'{"skills": "\xff"}')), "index"),
    SiteCase("an index that is a list", listed(answer(b"[]")), "index"),
    SiteCase("an index without skills", listed(answer(b'{"$schema": "x"}')), "index"),
    SiteCase("an index with a member twice", listed(answer(b'{"skills": [], "skills": [1]}')), "index"),
    SiteCase("an index nested without end", listed(answer(b"[" * 100_000)), "index"),
    SiteCase("an index with NaN", listed(answer(b'{"skills": [NaN]}')), "index"),
    SiteCase("an index of an unknown schema", listed(index(ENTRY, schema="https://evil.test/schema.json")), "schema"),
    SiteCase("a schema that differs in a letter", listed(index(ENTRY, schema=INDEX_SCHEMA.upper())), "schema"),
    SiteCase("a schema that is a number", listed(index(ENTRY, schema=2)), "schema"),
    SiteCase("a schema of null", listed(index(ENTRY, schema=None)), "schema"),
    SiteCase(
        "an index of 5,000 skills",
        listed(index(*({**ENTRY, "name": f"s{n}"} for n in range(5000)))),
        "too-many-entries",
    ),
    SiteCase("an index of 9 MiB", listed(answer(b" " * (9 << 20))), "too-large"),
    SiteCase("an index without an end", listed(b""), "unreachable"),
    SiteCase("an empty index", listed(index()), "not-found"),
    SiteCase("no index", lambda site: None, "not-found"),
    SiteCase("an index that is gone", listed(answer(b"", 410)), "not-found"),
    SiteCase("an index that is forbidden", listed(answer(b"", 403)), "credentials"),
    SiteCase("an index behind a login", listed(answer(b"", 401, WWW_Authenticate="Basic")), "credentials"),
    SiteCase("an index that fails", listed(answer(b"", 500)), "unreachable"),
    # Entries.
    SiteCase("an entry that is a text", listed(index("deploy")), "index"),  # type: ignore[arg-type]
    SiteCase("an entry without a name", listed(index(without("name"))), "index"),
    SiteCase("an entry without a description", listed(index(without("description"))), "index"),
    SiteCase("an entry without a url", listed(index(without("url"))), "index"),
    SiteCase("an entry without a digest", listed(index(without("digest"))), "digest"),
    SiteCase("one name twice", listed(index(ENTRY, ENTRY)), "index"),
    SiteCase("two names that differ in case", listed(index(ENTRY, {**ENTRY, "name": "Deploy"})), "index"),
    SiteCase("a name that is a path", page(name="../../x"), "name"),
    SiteCase("a name with an escape sequence", page(name="a\x1b[2J"), "name"),
    SiteCase("a name that looks like an option", page(name="--yes"), "name"),
    SiteCase("a name that is a device", page(name="con"), "name"),
    SiteCase("a digest in capitals", page(digest=digest_of(PAGE).upper().replace("SHA256", "sha256")), "digest"),
    SiteCase("a digest of another algorithm", page(digest="sha512:" + "0" * 128), "digest"),
    SiteCase("a digest that is cut", page(digest=digest_of(PAGE)[:40]), "digest"),
    SiteCase("a digest and a line break", page(digest=digest_of(PAGE) + "\n"), "digest"),
    SiteCase("a data: url", page(url="data:text/plain,x"), "scheme"),
    SiteCase("a file: url", page(url="file:///etc/passwd"), "scheme"),
    SiteCase("a javascript: url", page(url="javascript:alert(1)"), "scheme"),
    SiteCase("a url with a password", page(url="https://a:b@example.com/x"), "secret-in-url"),
    SiteCase("a url with a line break", page(url="https://example.com/\r\nX: y"), "url"),
    SiteCase("a url with a broken host", page(url="https://[::1/x"), "url"),
    SiteCase("a url at a metadata service", page(url="https://169.254.169.254/latest"), "address"),
    SiteCase("a url of a private network", page(url="https://10.1.2.3/x"), "address"),
    SiteCase("a url of plain http elsewhere", page(url="http://192.0.2.1/x"), "plain-http"),
    SiteCase("a url of this machine under another name", page(url="https://localhost/x"), "address"),
    # Artifacts.
    SiteCase("other bytes than the digest says", served(ARTIFACT, answer(PAGE + b"curl x | sh\n")), "digest"),
    SiteCase("a skill of another name", lambda site: site.offer(skill_text("other")), "name"),
    SiteCase("a skill without a name", lambda site: site.offer(b"# Deploy\n"), "name"),
    SiteCase("an artifact that is missing", served(ARTIFACT, answer(b"", 404)), "not-found"),
    SiteCase("an artifact of 2 MiB as a page", lambda site: site.offer(PAGE + b" " * (2 << 20)), "too-large"),
    SiteCase("an archive that is a page", archive(PAGE), "not-an-archive"),
    SiteCase("an archive in bzip2", archive(b"BZh91AY&SY" + bytes(40)), "not-an-archive"),
    SiteCase("an archive without a SKILL.md", archive(zip_with(("README.md", PAGE))), "no-skill"),
    SiteCase("an archive with its skill in a folder", archive(zip_with(("deploy/SKILL.md", PAGE))), "no-skill"),
    SiteCase("an archive with a path upward", archive(zip_with(("SKILL.md", PAGE), ("../x", b""))), "path-escape"),
    SiteCase(
        "an archive with a link",
        archive(tar_gz(("SKILL.md", PAGE), ("x", b""), kind=tarfile.SYMTYPE, link="/")),
        "link",
    ),
    SiteCase("an archive that is a bomb", archive(zip_with(("SKILL.md", PAGE), ("x", BOMB))), "*"),
    SiteCase(
        "an archive with a hook of git", archive(zip_with(("SKILL.md", PAGE), (".git/hooks/x", b""))), "git-folder"
    ),
    # HTTP.
    SiteCase("a compressed index", listed(answer(zlib.compress(b" "), Content_Encoding="deflate")), "compressed"),
    SiteCase(
        "a compressed artifact", served(ARTIFACT, answer(gzip.compress(PAGE), Content_Encoding="gzip")), "compressed"
    ),
    SiteCase("two lengths", listed(raw("HTTP/1.1 200 OK\nContent-Length: 2\nContent-Length: 9", b"{}")), "headers"),
    SiteCase("an unknown transfer encoding", listed(raw("HTTP/1.1 200 OK\nTransfer-Encoding: gzip", b"x")), "headers"),
    SiteCase("a header without an end", listed(raw("HTTP/1.1 200 OK\nX: " + "y" * 200_000)), "headers"),
    SiteCase("headers without end", served(INDEX_PATH, endless(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n" * 99)), "headers"),
    SiteCase("informational answers without end", served(INDEX_PATH, endless(b"", raw("HTTP/1.1 100 Go"))), "headers"),
    SiteCase("a body that breaks off", listed(raw("HTTP/1.1 200 OK\nContent-Length: 99", b"{}")), "unreachable"),
    SiteCase("a body without an end", served(INDEX_PATH, endless(raw("HTTP/1.1 200 OK"), b" " * 65536)), "too-large"),
    SiteCase("chunks of one byte without end", served(ARTIFACT, chunks_of_one), "*"),
    SiteCase("an answer of another protocol", listed(b"SSH-2.0-OpenSSH_9.2\r\n"), "unreachable"),
    SiteCase("silence", served(INDEX_PATH, silent), "unreachable"),
    SiteCase("headers byte by byte", served(INDEX_PATH, drip(answer(b"{}"), 0.1)), "unreachable"),
    SiteCase("a body byte by byte", served(ARTIFACT, drip(answer(PAGE), 0.05)), "unreachable"),
    SiteCase("a redirect to itself", listed(redirect(INDEX_PATH)), "redirects"),
    SiteCase("a redirect to nowhere", listed(answer(b"", 302)), "unreachable"),
    SiteCase("a redirect to a file", listed(redirect("file:///etc/passwd")), "scheme"),
    SiteCase("a redirect to a private network", listed(redirect("https://192.168.0.1/")), "address"),
    SiteCase("a redirect to a metadata service", listed(redirect("https://[fd00:ec2::254]/")), "address"),
    SiteCase("a redirect to a decimal address", listed(redirect("https://2130706433/")), "address"),
    SiteCase("a redirect of an artifact to this machine", served(ARTIFACT, redirect("https://127.0.0.2/")), "address"),
    # Version 0.1.
    SiteCase("0.1 without files", former([{**OLD, "files": None}]), "index"),
    SiteCase("0.1 without a SKILL.md", former([{**OLD, "files": ["x"]}]), "index"),
    SiteCase("0.1 with a path upward", former([{**OLD, "files": ["SKILL.md", "../../x"]}]), "path-escape"),
    SiteCase("0.1 with an absolute path", former([{**OLD, "files": ["SKILL.md", "/etc/x"]}]), "path-escape"),
    SiteCase("0.1 with twins", former([{**OLD, "files": ["SKILL.md", "a", "A"]}]), "twin"),
    SiteCase(
        "0.1 with 600 files",
        former([{**OLD, "files": ["SKILL.md", *(f"f{n}" for n in range(600))]}], SKILL_md=PAGE),
        "too-many-files",
    ),
    SiteCase(
        "0.1 with a file that is missing", former([{**OLD, "files": ["SKILL.md", "x"]}], SKILL_md=PAGE), "not-found"
    ),
    SiteCase("0.1 with another name", former([OLD], SKILL_md=skill_text("other")), "name"),
]

HEALTHY_SITES = [
    SiteCase("a page", page(), "ok"),
    SiteCase("a zip", archive(zip_with(("SKILL.md", PAGE), ("scripts/run.py", b"print()\n"))), "ok"),
    SiteCase("a tar.gz", archive(tar_gz(("SKILL.md", PAGE), ("references/a.md", b"# A\n"))), "ok"),
    SiteCase("a zip with a leading dot", archive(tar_gz(("./SKILL.md", PAGE))), "ok"),
    SiteCase("an absolute path as url", page(url=ARTIFACT), "ok"),
    SiteCase("an entry of a type to come", listed(index(ENTRY, {**ENTRY, "name": "x", "type": "wasm"})), "ok"),
    SiteCase("members to come", listed(index({**ENTRY, "version": "2"}, generated="today")), "ok"),
    SiteCase("an index that moved", served(INDEX_PATH, redirect(f"{ARTIFACT}/../../index.json")), "ok"),
    SiteCase("0.1", former([{**OLD, "files": ["SKILL.md", "a/b c.md"]}], SKILL_md=PAGE, **{"a__b%20c_md": b"x"}), "ok"),
]


def _moved(site: Site) -> None:
    site.offer(PAGE)
    site.routes["/moved/index.json"] = index({**ENTRY, "url": ARTIFACT})
    site.routes[INDEX_PATH] = redirect("/moved/index.json")


HEALTHY_SITES[-2] = SiteCase("an index that moved", _moved, "ok")


# Registries ---------------------------------------------------------------------------------------


class Registry:
    """The parts of a repository in a registry, from which its answers are made."""

    def __init__(self, layer: bytes | None = None) -> None:
        self.layer = tar_gz(("deploy/SKILL.md", PAGE)) if layer is None else layer
        self.config = json.dumps({"schemaVersion": "1", "name": "deploy"}).encode()
        self.manifest: dict[str, Any] = {
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "artifactType": ARTIFACT_TYPE,
            "config": self.described(self.config, CONFIG_TYPE),
            "layers": [self.described(self.layer, LAYER_TYPE)],
            "annotations": {NAME_ANNOTATION: "deploy"},
        }
        self.headers = {"Content_Type": MANIFEST_TYPE}
        self.routes: dict[str, Route] = {}

    def described(self, data: bytes, kind: str) -> dict[str, Any]:
        return {"mediaType": kind, "digest": digest_of(data), "size": len(data)}

    def change(self, part: str, **changes: Any) -> None:
        """Change what the manifest says about its configuration or its layer."""
        row = self.manifest["config"] if part == "config" else self.manifest["layers"][0]
        row.update(changes)

    def serve(self, site: Site) -> None:
        """Answer as a registry does, but for the routes of this case."""
        data = json.dumps(self.manifest).encode()
        for blob in (self.layer, self.config):
            site.routes[f"/v2/shop/deploy/blobs/{digest_of(blob)}"] = answer(blob)
        for ref in ("latest", digest_of(data)):
            site.routes[f"/v2/shop/deploy/manifests/{ref}"] = answer(data, 200, **self.headers)
        site.routes |= self.routes


LATEST = "/v2/shop/deploy/manifests/latest"
INDEX_TYPE = "application/vnd.oci.image.index.v1+json"


def manifest(**changes: Any) -> Callable[[Registry], None]:
    return lambda registry: registry.manifest.update(changes)


def layer(data: bytes, kind: str = LAYER_TYPE) -> Callable[[Registry], None]:
    def prepare(registry: Registry) -> None:
        registry.layer = data
        registry.manifest["layers"] = [registry.described(data, kind)]

    return prepare


def described(part: str, **changes: Any) -> Callable[[Registry], None]:
    return lambda registry: registry.change(part, **changes)


def route(path: str, made: Callable[[Registry], Route]) -> Callable[[Registry], None]:
    return lambda registry: registry.routes.update({path: made(registry)})


def blob(made: Callable[[bytes], Route]) -> Callable[[Registry], None]:
    return lambda registry: registry.routes.update(
        {f"/v2/shop/deploy/blobs/{digest_of(registry.layer)}": made(registry.layer)}
    )


def config(value: Any) -> Callable[[Registry], None]:
    def prepare(registry: Registry) -> None:
        registry.config = value if isinstance(value, bytes) else json.dumps(value).encode()
        registry.manifest["config"] = registry.described(registry.config, CONFIG_TYPE)

    return prepare


def image_index(*, count: int, nested: bool = False) -> Callable[[Registry], None]:
    """A list of manifests, of which each platform would take another one."""

    def prepare(registry: Registry) -> None:
        inner = json.dumps(registry.manifest).encode()
        row = registry.described(inner, INDEX_TYPE if nested else MANIFEST_TYPE)
        registry.routes[f"/v2/shop/deploy/manifests/{row['digest']}"] = answer(inner, 200, **registry.headers)
        listing: dict[str, Any] = {"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": [row] * count}
        if nested:
            deeper = json.dumps(listing).encode()
            row = registry.described(deeper, INDEX_TYPE)
            registry.routes[f"/v2/shop/deploy/manifests/{row['digest']}"] = answer(deeper, Content_Type=INDEX_TYPE)
            listing = {**listing, "manifests": [row]}
        registry.routes[LATEST] = answer(json.dumps(listing).encode(), Content_Type=INDEX_TYPE)

    return prepare


def challenge(text: str) -> Callable[[Registry], None]:
    return route(LATEST, lambda _: answer(b"", 401, WWW_Authenticate=text))


def token(data: bytes) -> Callable[[Registry], None]:
    """A registry whose realm, on the same host, answers something that is not a token."""

    def ask(request: Request, connection: socket.socket) -> None:
        where = f'Bearer realm="http://{request.headers["host"]}/token",service="x"'
        connection.sendall(answer(b"", 401, WWW_Authenticate=where))

    return lambda registry: registry.routes.update({LATEST: ask, "/token": answer(data)})


def other_shape(registry: Registry) -> None:
    registry.layer = tar_with(("skills/deploy/SKILL.md", PAGE))
    kinds: Mapping[str, str] = {
        "layer": "application/vnd.oci.image.layer.v1.tar",
        "config": "application/vnd.oci.empty.v1+json",
    }
    registry.config = b"{}"
    registry.manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "config": registry.described(b"{}", kinds["config"]),
        "layers": [registry.described(registry.layer, kinds["layer"])],
    }


HOSTILE_REGISTRIES = [
    SiteCase("a tag that is missing", route(LATEST, lambda _: answer(b"", 404)), "not-found"),
    SiteCase(
        "a manifest that is not JSON", route(LATEST, lambda _: answer(b"x", Content_Type=MANIFEST_TYPE)), "manifest"
    ),
    SiteCase("a manifest of version 1", manifest(schemaVersion=1), "manifest"),
    SiteCase("a manifest of another type than sent", manifest(mediaType=INDEX_TYPE), "manifest"),
    SiteCase(
        "a manifest sent as text", lambda registry: registry.headers.update(Content_Type="text/plain"), "manifest"
    ),
    SiteCase("a manifest that is an index too", manifest(manifests=[]), "manifest"),
    SiteCase(
        "a manifest of 5 MiB",
        route(LATEST, lambda _: answer(b" " * (5 << 20), Content_Type=MANIFEST_TYPE)),
        "too-large",
    ),
    SiteCase(
        "a manifest with another digest in its header",
        lambda registry: registry.headers.update(Docker_Content_Digest="sha256:" + "0" * 64),
        "digest",
    ),
    SiteCase("an index for two platforms", image_index(count=2), "platform"),
    SiteCase("an index without manifests", image_index(count=0), "platform"),
    SiteCase("an index that leads to an index", image_index(count=1, nested=True), "manifest"),
    SiteCase("no layer", manifest(layers=[]), "layers"),
    SiteCase("layers that are a text", manifest(layers="x"), "layers"),
    SiteCase(
        "two layers", lambda registry: registry.manifest.update(layers=[*registry.manifest["layers"]] * 2), "layers"
    ),
    SiteCase("a layer that is a text", manifest(layers=["x"]), "manifest"),
    SiteCase("a layer at another address", described("layer", urls=["https://evil.test/x"]), "urls"),
    SiteCase("a layer without a size", described("layer", size=None), "manifest"),
    SiteCase("a layer of a negative size", described("layer", size=-1), "manifest"),
    SiteCase("a layer of a terabyte", described("layer", size=1 << 40), "too-large"),
    SiteCase("a layer that is longer than it says", described("layer", size=10), "too-large"),
    SiteCase("a layer that is shorter than it says", described("layer", size=99_999), "size"),
    SiteCase("a layer with a digest of sha512", described("layer", digest="sha512:" + "0" * 128), "digest"),
    SiteCase("a layer with a path as digest", described("layer", digest="../../x"), "digest"),
    SiteCase("a layer of an unknown type", described("layer", mediaType="application/x-lha"), "layers"),
    SiteCase("a layer of other bytes", blob(lambda data: answer(data[:-1] + b"x")), "digest"),
    SiteCase("a layer that moved to this machine", blob(lambda _: redirect("https://127.0.0.2/x")), "address"),
    SiteCase("a layer that is no archive", layer(b"x" * 99), "not-an-archive"),
    SiteCase("a layer in broken zstd", layer(b"(\xb5/\xfdx", "application/vnd.oci.image.layer.v1.tar+zstd"), "*"),
    SiteCase("a layer with a whiteout", layer(tar_gz(("deploy/SKILL.md", PAGE), ("deploy/.wh.x", b""))), "whiteout"),
    SiteCase(
        "a layer that hides a folder",
        layer(tar_gz(("deploy/SKILL.md", PAGE), ("deploy/a/.wh..wh..opq", b""))),
        "whiteout",
    ),
    SiteCase("a layer with two skills", layer(tar_gz(("deploy/SKILL.md", PAGE), ("b/SKILL.md", PAGE))), "layers"),
    SiteCase("a layer with a file beside", layer(tar_gz(("deploy/SKILL.md", PAGE), ("etc/passwd", b""))), "layers"),
    SiteCase("a layer without a skill", layer(tar_gz(("deploy/README.md", PAGE))), "layers"),
    SiteCase(
        "a layer with a hard link",
        layer(tar_gz(("deploy/SKILL.md", PAGE), ("deploy/x", b""), kind=tarfile.LNKTYPE, link="deploy/SKILL.md")),
        "link",
    ),
    SiteCase(
        "a layer with a device",
        layer(tar_gz(("deploy/SKILL.md", PAGE), ("deploy/x", b""), kind=tarfile.CHRTYPE)),
        "special-file",
    ),
    SiteCase("a layer that is a bomb", layer(tar_gz(("deploy/SKILL.md", PAGE), ("deploy/x", BOMB))), "*"),
    SiteCase("a folder of another name", layer(tar_gz(("other/SKILL.md", PAGE))), "name"),
    SiteCase("an annotation of another name", manifest(annotations={NAME_ANNOTATION: "other"}), "name"),
    SiteCase("a configuration of another name", config({"name": "other"}), "name"),
    SiteCase("a configuration that is not JSON", config(b"x"), "manifest"),
    SiteCase("a configuration of other bytes", described("config", digest="sha256:" + "0" * 64), "not-found"),
    SiteCase("a configuration of 5 MiB", described("config", size=5 << 20), "too-large"),
    SiteCase("no configuration", manifest(config=None), "manifest"),
    SiteCase("a login in an unknown way", challenge('Digest realm="x"'), "credentials"),
    SiteCase("a login without a realm", challenge("Bearer"), "credentials"),
    SiteCase("a basic login without one here", challenge('Basic realm="x"'), "credentials"),
    SiteCase("a realm that is a file", challenge('Bearer realm="file:///etc/passwd"'), "scheme"),
    SiteCase("a realm in a private network", challenge('Bearer realm="https://10.0.0.1/token"'), "address"),
    SiteCase("a realm with a password", challenge('Bearer realm="https://a:b@x.test/"'), "secret-in-url"),
    SiteCase("a token that is a list", token(b"[]"), "credentials"),
    SiteCase("a token with a line break", token(b'{"token": "a\\r\\nX: y"}'), "credentials"),
    SiteCase("a token that does not help", token(b'{"token": "abc"}'), "credentials"),
]

HEALTHY_REGISTRIES = [
    SiteCase("the profile", lambda _: None, "ok"),
    SiteCase("an index of one", image_index(count=1), "ok"),
    SiteCase("a plain tar", layer(tar_with(("deploy/SKILL.md", PAGE)), "application/vnd.oci.image.layer.v1.tar"), "ok"),
    SiteCase("another shape, deeper in the layer", other_shape, "ok"),
]
