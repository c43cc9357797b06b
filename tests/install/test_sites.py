"""Skills from a site with a well-known index, and from a registry."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hostile_sites import (
    HEALTHY_REGISTRIES,
    HEALTHY_SITES,
    HOSTILE_REGISTRIES,
    HOSTILE_SITES,
    PAGE,
    Registry,
    SiteCase,
    former,
    tar_gz,
    zip_with,
)
from support.host_runs import Run
from support.http_sites import Request, Site, answer, digest_of, index, skill_text
from support.trees import Machine

from skillshelf.catalog.source import InstallableSource, SourceIdentity, SourceLimits
from skillshelf.core.environment import Environment
from skillshelf.errors import SkillError, SourceNotFound, SourceRefused, SourceUnreachable
from skillshelf.install.oci import RegistrySource
from skillshelf.install.reference import SourceContext, parse_reference
from skillshelf.install.well_known import SiteSource

pytestmark = pytest.mark.slow

QUICK = SourceLimits(seconds=1.5)


def context(home: Path | None = None, **env: str) -> SourceContext:
    environment = Environment("/", str(home) if home else None, env)
    return SourceContext(environment, allow_http=True, limits=QUICK)


def site_source(site: Site, within: SourceContext | None = None) -> SiteSource:
    within = within or context()
    return SiteSource(parse_reference(site.url, within.environment), within)


def registry_source(site: Site, ref: str = "", within: SourceContext | None = None) -> RegistrySource:
    within = within or context()
    return RegistrySource(parse_reference(f"oci://127.0.0.1:{site.port}/shop/deploy{ref}", within.environment), within)


def fetched(source: InstallableSource) -> Mapping[str, bytes]:
    entry = next(one for one in source.list() if one.name == "deploy")
    contents = source.fetch(entry, (), QUICK)
    source.identity(entry)
    return contents


def outcome(source: InstallableSource) -> str:
    """Fetch a skill; return the rule that refused it, or another word for what happened."""
    try:
        fetched(source)
    except SourceRefused as error:
        shown, rule = str(error), error.rule
    except SourceNotFound as error:
        shown, rule = str(error), "not-found"
    except SourceUnreachable as error:
        shown, rule = str(error), "unreachable"
    else:
        return "ok"
    assert shown.isprintable(), shown
    assert len(shown) < 600
    return rule


def ids(cases: list[SiteCase]) -> list[str]:
    return [case.what.replace(" ", "-") for case in cases]


@pytest.mark.parametrize("case", HOSTILE_SITES, ids=ids(HOSTILE_SITES))
def test_a_hostile_site_is_refused_by_its_rule(case: SiteCase) -> None:
    with Site() as site:
        case.prepare(site)
        found = outcome(site_source(site))

    assert found == case.rule if case.rule != "*" else found not in ("ok", "unreachable")


@pytest.mark.parametrize("case", HEALTHY_SITES, ids=ids(HEALTHY_SITES))
def test_a_healthy_site_is_read(case: SiteCase) -> None:
    with Site() as site:
        case.prepare(site)
        assert fetched(site_source(site))["SKILL.md"] == PAGE


@pytest.mark.parametrize("case", HOSTILE_REGISTRIES, ids=ids(HOSTILE_REGISTRIES))
def test_a_hostile_registry_is_refused_by_its_rule(case: SiteCase) -> None:
    registry = Registry()
    case.prepare(registry)
    with Site() as site:
        registry.serve(site)
        found = outcome(registry_source(site))

    assert found == case.rule if case.rule != "*" else found not in ("ok", "unreachable")


@pytest.mark.parametrize("case", HEALTHY_REGISTRIES, ids=ids(HEALTHY_REGISTRIES))
def test_a_healthy_registry_is_read(case: SiteCase) -> None:
    registry = Registry()
    case.prepare(registry)
    with Site() as site:
        registry.serve(site)
        assert fetched(registry_source(site)) == {"SKILL.md": PAGE}


def test_there_are_enough_hostile_places() -> None:
    cases = [*HOSTILE_SITES, *HOSTILE_REGISTRIES]
    assert len(cases) >= 120
    assert len({case.what for case in cases}) == len(cases)


# Sites --------------------------------------------------------------------------------------------


def test_a_skill_of_a_site_is_known_by_the_digest_of_its_artifact() -> None:
    data = zip_with(("SKILL.md", PAGE), ("scripts/a.py", b"print()\n"))
    with Site() as site:
        site.offer(data, kind="archive")
        source = site_source(site)
        (entry,) = source.list()
        assert source.fetch(entry, ("scripts/a.py",), QUICK) == {"scripts/a.py": b"print()\n"}
        assert source.identity(entry) == SourceIdentity(site.url, "deploy", None, None, digest_of(data), "127.0.0.1")
        assert source.notes == ()
        with pytest.raises(SourceNotFound):
            source.fetch(entry, ("scripts/b.py",), QUICK)
        with pytest.raises(SourceNotFound):
            source.fetch(entry._replace(name="other"), (), QUICK)
    # The index once, and the artifact once for all of its files.
    assert [one.path for one in site.requests] == [
        "/.well-known/agent-skills/index.json",
        f"{site.base}deploy/artifact",
    ]


def test_a_site_of_version_0_1_is_read_with_a_warning_and_has_no_digest() -> None:
    with Site() as site:
        former([{"name": "deploy", "description": "x", "files": ["SKILL.md"]}], SKILL_md=PAGE)(site)
        source = site_source(site)
        (entry,) = source.list()
        assert source.fetch(entry, (), QUICK) == {"SKILL.md": PAGE}
        assert source.identity(entry).artifact is None
        assert "without digests" in source.notes[0]


def test_an_entry_of_an_unknown_type_is_left_out_and_said() -> None:
    with Site() as site:
        site.offer(PAGE)
        row = {"name": "x", "type": "wasm", "description": "x", "url": "x", "digest": digest_of(PAGE)}
        site.routes["/.well-known/agent-skills/index.json"] = index(row)
        source = site_source(site)
        assert list(source.list()) == []
        assert "unknown type" in source.notes[0]


def test_a_site_below_a_path_has_its_index_there() -> None:
    with Site() as site:
        base = "/docs/.well-known/agent-skills/"
        row = {"name": "deploy", "type": "skill-md", "description": "x", "url": "a", "digest": digest_of(PAGE)}
        site.routes |= {f"{base}index.json": index(row), f"{base}a": answer(PAGE)}
        within = context()
        assert fetched(SiteSource(parse_reference(f"{site.url}/docs", within.environment), within))


def test_several_skills_of_a_site_are_listed_in_its_order() -> None:
    rows = [
        {"name": name, "type": "skill-md", "description": name, "url": name, "digest": digest_of(skill_text(name))}
        for name in ("b", "a", "c")
    ]
    with Site({"/.well-known/agent-skills/index.json": index(*rows)}) as site:
        assert [(one.name, one.description) for one in site_source(site).list()] == [("b", "b"), ("a", "a"), ("c", "c")]


# Registries ---------------------------------------------------------------------------------------


def test_a_skill_of_a_registry_is_known_by_the_digest_of_its_manifest() -> None:
    registry = Registry()
    digest = digest_of(json.dumps(registry.manifest).encode())
    with Site() as site:
        registry.serve(site)
        by_tag, by_digest = registry_source(site), registry_source(site, f"@{digest}")
        (entry,) = by_tag.list()
        place = f"127.0.0.1:{site.port}/shop"
        assert by_tag.identity(entry) == SourceIdentity(f"oci://{place}/deploy", "", None, None, digest, place)
        assert by_digest.identity(next(iter(by_digest.list()))).artifact == digest
        assert by_tag.notes == ()


def test_a_manifest_asked_for_by_its_digest_must_have_it() -> None:
    with Site({"*": answer(b"{}", Content_Type="application/vnd.oci.image.manifest.v1+json")}) as site:
        assert outcome(registry_source(site, "@sha256:" + "0" * 64)) == "digest"


def test_another_shape_is_read_with_a_note() -> None:
    registry = Registry()
    HEALTHY_REGISTRIES[-1].prepare(registry)
    with Site() as site:
        registry.serve(site)
        source = registry_source(site)
        fetched(source)
    assert "not of the agentskills profile" in source.notes[0]


# Logins -------------------------------------------------------------------------------------------


def docker_config(home: Path, value: Mapping[str, Any]) -> Path:
    (home / ".docker").mkdir(parents=True)
    (home / ".docker" / "config.json").write_text(json.dumps(value))
    (home / ".docker" / "config.json").chmod(0o600)
    return home


AUTH = "bWU6czNjcmV0"  # me:s3cret


def with_token(site: Site, realm: str) -> None:
    """Serve a registry that wants a token of a realm, which gives one only to `me`."""
    Registry().serve(site)
    for path, route in list(site.routes.items()):

        def guarded(request: Request, connection: Any, route: Any = route) -> None:
            if request.headers.get("authorization") == "Bearer good":
                connection.sendall(route)
            else:
                where = f'Bearer realm="{realm}",service="shop",scope="repository:*:*"'
                connection.sendall(answer(b"", 401, WWW_Authenticate=where))

        site.routes[path] = guarded


def realm_answer(request: Request, connection: Any) -> None:
    good = request.headers.get("authorization") == f"Basic {AUTH}"
    connection.sendall(answer(b'{"token": "good"}' if good else b'{"token": "anonymous"}'))


def test_a_login_of_the_docker_configuration_gets_a_token_from_the_realm_of_the_registry(tmp_path: Path) -> None:
    with Site({"/token": realm_answer}) as realm, Site() as site:
        with_token(site, f"{realm.url}/token")
        home = docker_config(tmp_path, {"auths": {f"127.0.0.1:{site.port}": {"auth": AUTH}}})
        assert fetched(registry_source(site, within=context(home))) == {"SKILL.md": PAGE}
    # The scope is that of the repository, whatever the registry would like to have.
    assert realm.requests[0].path == "/token?service=shop&scope=repository%3Ashop%2Fdeploy%3Apull"
    assert "basic" not in {one.headers.get("authorization", "").partition(" ")[0].lower() for one in site.requests}


def test_a_realm_of_another_host_gets_no_login_of_the_registry(tmp_path: Path) -> None:
    with Site({"/token": realm_answer}) as site:
        home = docker_config(tmp_path, {"auths": {f"127.0.0.1:{site.port}": {"auth": AUTH}}})
        with_token(site, f"http://localhost:{site.port}/token")
        assert outcome(registry_source(site, within=context(home))) == "address"
    assert [one.path for one in site.requests if one.path.startswith("/token")] == []


@pytest.mark.parametrize(
    ("realm", "host", "belongs"),
    [
        ("ghcr.io", "ghcr.io", True),
        ("auth.docker.io", "docker.io", True),
        ("gitlab.com", "registry.gitlab.com", True),
        ("evil.io", "ghcr.io", False),
        ("io", "ghcr.io", False),
        ("evilghcr.io", "ghcr.io", False),
        ("ghcr.io.evil.test", "ghcr.io", False),
        ("b.azurecr.io", "a.azurecr.io", False),
    ],
)
def test_a_realm_belongs_to_a_registry_by_its_domain(realm: str, host: str, belongs: bool) -> None:
    from skillshelf.install.oci import realm_belongs

    assert realm_belongs(realm, host) is belongs


def helper(folder: Path, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "docker-credential-test").write_text(text)
    (folder / "docker-credential-test").chmod(0o755)


@pytest.mark.parametrize("key", ["credHelpers", "credsStore"])
def test_a_credential_helper_is_asked_without_a_shell(tmp_path: Path, key: str) -> None:
    with Site({"/token": realm_answer}) as realm, Site() as site:
        with_token(site, f"{realm.url}/token")
        server = f"127.0.0.1:{site.port}"
        home = docker_config(tmp_path, {key: {server: "test"} if key == "credHelpers" else "test"})
        script = 'read -r host\n[ "$1 $host" = "get SERVER" ] && echo \'{"Username": "me", "Secret": "s3cret"}\'\n'
        helper(tmp_path / "bin", "#!/bin/sh\n" + script.replace("SERVER", server))
        within = context(home, PATH=f"{tmp_path / 'bin'}:/usr/bin:/bin")
        assert fetched(registry_source(site, within=within)) == {"SKILL.md": PAGE}


@pytest.mark.parametrize("script", ["exit 1", "echo none", "yes", "cat /dev/zero", "echo '{\"Username\": 1}'"])
def test_a_helper_that_gives_nothing_useful_means_no_login(tmp_path: Path, script: str) -> None:
    with Site({"/token": realm_answer}) as realm, Site() as site:
        with_token(site, f"{realm.url}/token")
        home = docker_config(tmp_path, {"credsStore": "test"})
        helper(tmp_path / "bin", f"#!/bin/sh\n{script}\n")
        within = context(home, PATH=f"{tmp_path / 'bin'}:/usr/bin:/bin")
        assert outcome(registry_source(site, within=within)) == "credentials"
    assert "authorization" not in realm.requests[0].headers


@pytest.mark.parametrize("value", [{"credsStore": "../../evil"}, {"credsStore": "missing"}, []])
def test_a_docker_configuration_that_cannot_be_used_is_one_line(tmp_path: Path, value: Any) -> None:
    with Site() as site:
        with_token(site, f"{site.url}/token")
        with pytest.raises(SkillError, match=r"Docker|config\.json|not installed"):
            fetched(registry_source(site, within=context(docker_config(tmp_path, value), PATH="/nowhere")))


def test_no_secret_is_in_a_message(tmp_path: Path) -> None:
    with Site({"/token": answer(b"", 403)}) as realm, Site() as site:
        with_token(site, f"{realm.url}/token")
        home = docker_config(tmp_path, {"auths": {f"127.0.0.1:{site.port}": {"auth": AUTH}}})
        with pytest.raises(SourceRefused) as caught:
            fetched(registry_source(site, within=context(home)))
    assert "s3cret" not in str(caught.value)
    assert AUTH not in str(caught.value)


def test_a_skill_with_several_files_keeps_its_executable_bits() -> None:
    from skillshelf.catalog.source import ExecutableFile
    from skillshelf.install.pack import tar_gzip_of

    contents = {"SKILL.md": PAGE, "scripts/run.sh": ExecutableFile(b"#!/bin/sh\n")}
    registry = Registry()
    registry.layer = tar_gzip_of(contents, wrapper="deploy")
    registry.manifest["layers"] = [
        {**registry.manifest["layers"][0], **registry.described(registry.layer, "x.tar+gzip")}
    ]
    with Site() as site:
        registry.serve(site)
        got = fetched(registry_source(site))
    assert got == contents
    assert isinstance(got["scripts/run.sh"], ExecutableFile)
    assert tar_gz(("a", b"")) != b""


# The command --------------------------------------------------------------------------------------

SLOW = ("silence", "headers byte by byte", "a body byte by byte", "chunks of one byte without end")
"""They take the whole time of a request, which the command cannot be told to shorten."""


def state(machine: Machine) -> dict[str, bytes | None]:
    """Every file and folder of a machine, without what only makes the next run faster."""
    return {
        str(path): path.read_bytes() if path.is_file() else None
        for path in sorted(machine.base.rglob("*"))
        if ".cache" not in path.parts
    }


@pytest.mark.parametrize("kind", ["site", "registry"])
def test_a_hostile_place_changes_nothing_on_the_disk(machine: Machine, run: Run, kind: str) -> None:
    run("list")
    before, wrong = state(machine), []
    for case in HOSTILE_SITES if kind == "site" else HOSTILE_REGISTRIES:
        if case.what in SLOW:
            continue
        with Site() as site:
            case.prepare(site if kind == "site" else (registry := Registry()))
            if kind == "registry":
                registry.serve(site)
            where = site.url if kind == "site" else f"oci://127.0.0.1:{site.port}/shop/deploy"
            status, out, err = run("add", where, "--skill", "deploy", "--allow-http", "--yes")
        expected = {"not-found": 3, "unreachable": 5}.get(case.rule, 4)
        if status != expected or out or state(machine) != before or not err.startswith("skillshelf: "):
            wrong.append((case.what, status, out, err))

    assert wrong == []


def test_a_healthy_place_is_installed_from(machine: Machine, run: Run) -> None:
    registry = Registry()
    with Site() as site:
        registry.serve(site)
        site.offer(skill_text("review"), name="review")
        assert run("add", f"oci://127.0.0.1:{site.port}/shop/deploy", "--allow-http", "--yes")[0] == 0
        assert run("add", site.url, "--allow-http", "--yes")[0] == 0
    assert run("verify")[0] == 0
    assert {path.name for path in (machine.repo / ".agents/skills").iterdir()} == {"deploy", "review"}
