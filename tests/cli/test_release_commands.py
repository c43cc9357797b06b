"""The command `release`: people list, approve and yank releases, move channels and set the policy, over real HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.host_runs import Run, json_output
from support.http_sites import Site, answer
from support.installs import skill_text
from support.needs import require
from support.published_servers import serving, token_for
from support.trees import Machine, write_skill

pytestmark = pytest.mark.slow


class TeamUnderTest(NamedTuple):
    url: str
    database: str
    folder: Path

    def access(self, subject: str, *scopes: str, tenant: str = "default") -> list[str]:
        """The options of somebody with a new token."""
        path = self.folder / f"{subject}-{len(list(self.folder.iterdir()))}.token"
        path.write_text(token_for(self.database, subject, *scopes, tenant=tenant))
        return ["--allow-http", "--token-file", str(path)]


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TeamUnderTest]:
    for package in ("mcp", "starlette", "uvicorn", "jwt"):
        require(package)
    folder = tmp_path_factory.mktemp("team")
    database = f"sqlite:///{folder}/team.sqlite"
    with serving(folder / "home", database, folder / "blobs") as url:
        yield TeamUnderTest(url, database, folder)


def published(machine: Machine, run: Run, team: TeamUnderTest, access: list[str], name: str, *bodies: str) -> list[Any]:
    """Publish the bodies as versions 1, 2 and so on; return what was done."""
    done = []
    for body in bodies:
        write_skill(machine.repo / "drafts", name, skill_text(name, body))
        sent = ["publish", f"./drafts/{name}", "--to", team.url, *access, "--yes"]
        done.append(json_output(run, *sent, schema="publish")["actions"][0])
    return done


def test_a_release_is_shown_with_its_tree_and_approved_by_somebody_else(
    machine: Machine, run: Run, team: TeamUnderTest
) -> None:
    ada = team.access("ada", "skills:read", "skills:publish", tenant="one")
    root = team.access("root", "admin", tenant="one")
    tree = published(machine, run, team, ada, "deploy", "First.")[0]["tree"]
    status, out, err = run("release", "policy", team.url, "approved_only=true", "approve_own=false", *root, "--yes")
    assert (status, err) == (0, "skillshelf: changed approved_only, approve_own\n")
    assert "approve_own    true   -> false\n" in out

    denied = run("release", "approve", team.url, "deploy", "1", *ada, "--yes")
    assert denied[0] == 4
    assert "somebody else approves it" in denied[2]
    asked = run("release", "approve", team.url, "deploy", "1", *root)
    assert asked[0] == 4
    assert f"  tree      {tree}\n" in asked[1]
    assert "  file      SKILL.md (" in asked[1]
    assert "would be approved  deploy  1  now latest\n" in asked[1]
    assert "nothing was written; to do this: skillshelf release" in asked[2]
    done = json_output(run, "release", "approve", team.url, "deploy", "1", *root, "--yes", schema="release")
    assert (done["changed"], done["planned"], done["subject"]) == (True, False, "root")
    assert done["release"]["tree"] == tree
    assert done["release"]["channels"] == ["approved", "latest"]
    again = json_output(run, "release", "approve", team.url, "deploy", "1", *root, "--yes", schema="release")
    assert again["changed"] is False


def test_an_approval_shows_what_differs_from_the_approved_release(
    machine: Machine, run: Run, team: TeamUnderTest
) -> None:
    root = team.access("root", "admin", tenant="two")
    published(machine, run, team, root, "deploy", "First.", "Second.")
    assert run("release", "approve", team.url, "deploy", "1", *root, "--yes")[0] == 0

    status, out, _ = run("release", "approve", f"{team.url}/api/v1/skills/deploy/versions/2", *root, "--dry-run")

    assert status == 0
    assert "deploy, approved 1 to 2: 1 file differs\n" in out
    assert "-First." in out
    assert "+Second." in out
    found = json_output(run, "release", "list", team.url, *root, schema="release-list")
    assert {one["version"]: one["channels"] for one in found["releases"]} == {"1": ["approved"], "2": ["latest"]}


def test_a_release_is_yanked_with_a_reason_and_a_channel_moves_back(
    machine: Machine, run: Run, team: TeamUnderTest
) -> None:
    root = team.access("root", "admin", tenant="three")
    published(machine, run, team, root, "deploy", "First.", "Second.", "Third.")

    moved = json_output(run, "release", "channel", team.url, "deploy", "latest", "2", *root, "--yes", schema="release")
    assert moved["release"]["channels"] == ["latest"]
    unapproved = run("release", "channel", team.url, "deploy", "approved", "2", *root, "--yes")
    assert unapproved[0] == 4
    planned = json_output(run, "release", "yank", team.url, "deploy", "2", *root, "--dry-run", schema="release")
    assert (planned["planned"], planned["changed"], planned["release"]["yanked"]) == (True, True, False)
    status, out, _ = run("release", "yank", team.url, "deploy", "2", "--why", "it was wrong", *root, "--yes")
    assert status == 0
    assert out.endswith("yanked  deploy  2  in no channel\n")
    listed = run("release", "list", team.url, "deploy", *root)[1]
    assert [line.split()[1] for line in listed.splitlines()] == ["VERSION", "3", "1"]
    everything = json_output(run, "release", "list", team.url, "--yanked", *root, schema="release-list")["releases"]
    assert {one["version"]: one["yanked_why"] for one in everything} == {"1": None, "2": "it was wrong", "3": None}


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("aprove", "URL"), 2, "did you mean approve?"),
        (("approve", "URL", "deplyo", "1"), 3, "did you mean deploy?"),
        (("approve", "URL", "deploy", "1.1"), 3, "has no release deploy 1.1; did you mean 1.0?"),
        (("approve", "URL", "deploy"), 2, "takes NAME VERSION"),
        (("channel", "URL", "deploy", "lates", "1.0"), 2, "did you mean latest?"),
        (("policy", "URL", "approvd_only=true"), 2, "did you mean approved_only?"),
        (("policy", "URL", "approvals=0"), 2, "a whole number from 1 to 100"),
        (("policy", "URL", "approve_own=no"), 2, "is true or false"),
        (("policy", "URL", "accept_rules=security-pipe-to-shel"), 2, "did you mean security-pipe-to-shell?"),
        (("list", "oci://ghcr.io/acme/x"), 2, "SERVER is the address of a team server, https://HOST, not 'oci://"),
        (("list", "127.0.0.1:8000"), 2, "SERVER is the address of a team server, https://HOST, not '127.0.0.1:8000'"),
        (("list", "http://127.0.0.1:1"), 5, "cannot be reached"),
    ],
)
def test_a_mistake_is_named_with_what_was_meant(
    machine: Machine, run: Run, team: TeamUnderTest, words: tuple[str, ...], status: int, said: str
) -> None:
    root = team.access("root", "admin", tenant="four")
    write_skill(machine.repo / "drafts", "deploy", skill_text("deploy", "First."))
    run("publish", "./drafts/deploy", "--to", team.url, "--version", "1.0", *root, "--yes")

    found = run("release", *(word.replace("URL", team.url) for word in words), *root, "--yes")

    assert (found[0], len(found[2].splitlines())) == (status, 1), found
    assert said in found[2]


def test_without_a_token_or_with_one_of_a_reader_nothing_changes(
    machine: Machine, run: Run, team: TeamUnderTest
) -> None:
    root = team.access("root", "admin", tenant="five")
    reader = team.access("ray", "skills:read", tenant="five")
    published(machine, run, team, root, "deploy", "First.")

    assert run("release", "list", team.url, "--allow-http")[0] == 2
    assert run("release", "policy", team.url, "approvals=2", *reader, "--yes")[0] == 4
    assert run("release", "approve", team.url, "deploy", "1", *reader, "--yes")[0] == 4
    assert json_output(run, "release", "policy", team.url, *reader, schema="release-policy")["policy"]["approvals"] == 1
    (only,) = json_output(run, "release", "list", team.url, *reader, schema="release-list")["releases"]
    assert only["approvals"] == []


RELEASE = {
    "name": "deploy",
    "version": "1",
    "tree": f"sha256:{'0' * 64}",
    "artifact": f"sha256:{'0' * 64}",
    "bytes": 1,
    "description": "",
    "source": "",
    "commit": "",
    "publisher": "ada",
    "published": 10**30,
    "yanked": False,
    "yanked_by": None,
    "yanked_why": None,
    "rev": 1,
    "approvals": [],
    "channels": ["latest"],
}


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"<html>", 5, "does not answer as a team server"),
        (b"[" * 100_000, 5, "does not answer as a team server"),
        (json.dumps({"rev": 1}).encode(), 5, "does not answer as a team server"),
        (json.dumps({"rev": 1, "releases": [{**RELEASE, "tree": 7}], "next": None}).encode(), 5, "as a team server"),
        (json.dumps({"rev": 1, "releases": [RELEASE], "next": "x"}).encode(), 4, "RELEASE_PAGES"),
    ],
)
def test_a_server_that_lies_costs_one_error_line(
    machine: Machine, run: Run, tmp_path: Path, body: bytes, status: int, said: str
) -> None:
    token = tmp_path / "token"
    token.write_text("sks_default_" + "A" * 43)
    with Site() as site:
        site.routes["/api/v1/releases"] = answer(body)
        found = run("release", "list", site.url, "--allow-http", "--token-file", str(token))

    assert (found[0], len(found[2].splitlines())) == (status, 1), found
    assert said in found[2]


@pytest.mark.parametrize(
    ("status", "message", "exit_status", "said"),
    [
        (503, "the database does not answer", 5, "the database does not answer (try again later)"),
        (401, "the token is not valid here, or no longer", 4, "the token is not valid here, or no longer"),
    ],
)
def test_a_refusal_names_the_server_that_it_comes_from(
    run: Run, tmp_path: Path, status: int, message: str, exit_status: int, said: str
) -> None:
    token = tmp_path / "token"
    token.write_text("sks_default_" + "A" * 43)
    body = json.dumps({"error": {"code": "failed", "message": message}}).encode()
    with Site() as site:
        site.routes["/api/v1/releases"] = answer(body, status=status)
        found = run("release", "list", site.url, "--allow-http", "--token-file", str(token))
        url = site.url

    assert found == (exit_status, "", f"skillshelf: {url}: {said}\n")


def test_files_that_are_not_those_of_the_tree_are_not_approved(machine: Machine, run: Run, tmp_path: Path) -> None:
    from skillshelf.install.pack import zip_of

    token = tmp_path / "token"
    token.write_text("sks_default_" + "A" * 43)
    archive = zip_of({"SKILL.md": b"---\nname: deploy\ndescription: Other.\n---\n"})
    newer = {**RELEASE, "added": "by a newer server"}
    with Site() as site:
        versions = {"rev": 1, "name": "deploy", "channels": {}, "versions": [newer], "added": 1}
        site.routes["/api/v1/skills/deploy/versions"] = answer(json.dumps(versions).encode())
        site.routes["/api/v1/me"] = answer(b'{"subject": "ada", "tenant": "default", "scopes": []}')
        site.routes["/api/v1/skills/deploy/versions/1/artifact"] = answer(archive)
        found = run("release", "approve", site.url, "deploy", "1", "--allow-http", "--token-file", str(token), "--yes")

    assert found[0] == 4
    assert "sends other files of deploy 1 than those of its tree" in found[2]
    assert {one.method for one in site.requests} == {"GET"}
