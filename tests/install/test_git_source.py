"""Skills are read from git repositories: over HTTP from a real server, and from a path."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from support.git_server import GitEntry, GitPlace, needs_git, serving_git
from support.loopback import serving

from skillshelf.catalog.source import ExecutableFile, SourceEntry, SourceIdentity, SourceLimits
from skillshelf.errors import SkillError, SourceNotFound, SourceRefused, SourceUnreachable
from skillshelf.install.git import GitSource
from skillshelf.install.reference import SourceContext, parse_reference

pytestmark = [pytest.mark.slow, needs_git]

SKILL = b"---\nname: pdf\ndescription: Reads PDF files.\n---\n\nRead it.\n"
FILES: dict[str, bytes | GitEntry] = {
    "README.md": b"# Skills\n",
    "skills/pdf/SKILL.md": SKILL,
    "skills/pdf/run.sh": GitEntry("100755", b"#!/bin/sh\r\n"),
    "skills/pdf/empty": b"",
    "skills/pdf/\u65e5\u672c\u8a9e.md": b"x",
    "skills/pdf/examples/SKILL.md": SKILL,
    ".agents/skills/web/SKILL.md": b"no frontmatter",
    "elsewhere": GitEntry("120000", b"/etc/passwd"),
}


@pytest.fixture
def place(tmp_path: Path) -> GitPlace:
    return GitPlace(tmp_path)


@pytest.fixture
def address(place: GitPlace) -> Iterator[str]:
    with serving_git(place.folder / "repositories") as found:
        yield found


def text_of(place: GitPlace, address: str, transport: str) -> str:
    if transport == "http":
        return f"git+{address}/skills.git"
    return f"git+file://{place.folder}/repositories/skills.git"


@pytest.mark.parametrize("transport", ["http", "file"])
def test_a_skill_is_read_exactly_as_it_was_committed(place: GitPlace, address: str, transport: str) -> None:
    commit = place.repository().commit(FILES)
    source = place.source(text_of(place, address, transport) + "@main#skills/pdf")
    (entry,) = source.list()

    assert entry == SourceEntry(
        "pdf", "Reads PDF files.", {"name": "pdf", "description": "Reads PDF files."}, None, "skills/pdf"
    )
    files = source.fetch(entry, (), SourceLimits())
    assert files == {
        "SKILL.md": SKILL,
        "run.sh": b"#!/bin/sh\r\n",
        "empty": b"",
        "\u65e5\u672c\u8a9e.md": b"x",
        "examples/SKILL.md": SKILL,
    }
    assert [path for path, data in files.items() if isinstance(data, ExecutableFile)] == ["run.sh"]
    publisher = address.removeprefix("http://") if transport == "http" else "a repository on this machine"
    canonical = text_of(place, address, transport)
    assert source.identity(entry) == SourceIdentity(canonical, "skills/pdf", "main", commit, None, publisher)


def test_a_repository_lists_its_skills_but_none_below_another(place: GitPlace, address: str) -> None:
    place.repository().commit(FILES)

    found = [(entry.path, entry.name) for entry in place.source(f"git+{address}/skills.git").list()]

    assert found == [(".agents/skills/web", "web"), ("skills/pdf", "pdf")]


def test_a_repository_that_is_a_skill_has_its_own_name(place: GitPlace, address: str) -> None:
    place.repository().commit({"SKILL.md": b"text", "a/SKILL.md": SKILL})

    (entry,) = place.source(f"git+{address}/skills.git").list()

    assert (entry.path, entry.name) == ("", "skills")


def test_some_files_of_a_skill_can_be_fetched(place: GitPlace, address: str) -> None:
    place.repository().commit(FILES)
    source = place.source(f"git+{address}/skills.git#skills/pdf")
    (entry,) = source.list()

    assert source.fetch(entry, ["SKILL.md"], SourceLimits()) == {"SKILL.md": SKILL}
    with pytest.raises(SourceNotFound, match="no file 'nope'"):
        source.fetch(entry, ["nope"], SourceLimits())


def test_branches_tags_and_commits_name_versions(place: GitPlace, address: str) -> None:
    repository = place.repository()
    first = repository.commit({"SKILL.md": SKILL})
    repository.git("tag", "light", first)
    repository.git("tag", "-a", "-m", "x", "v1", first)
    repository.git("tag", "-a", "-m", "x", "twice", "v1")
    second = repository.commit({"SKILL.md": SKILL + b"more"}, branch="feature/x")

    def commit_of(ref: str | None) -> str | None:
        source = place.source(f"git+{address}/skills.git", ref=ref)
        (entry,) = source.list()
        return source.identity(entry).commit

    assert [commit_of(ref) for ref in (None, "main", "light", "v1", "twice", "refs/heads/main", first)] == [first] * 7
    assert [commit_of(ref) for ref in ("feature/x", second)] == [second] * 2


def test_a_moved_tag_is_another_commit(place: GitPlace, address: str) -> None:
    repository = place.repository()
    commits = []
    for text in (b"1", b"2"):
        repository.git("tag", "-f", "v1", repository.commit({"SKILL.md": SKILL + text}))
        source = place.source(f"git+{address}/skills.git@v1")
        (entry,) = source.list()
        commits.append(source.identity(entry).commit)

    assert len(set(commits)) == 2


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("/skills.git@nope", SourceNotFound, "no branch, tag or commit 'nope'"),
        ("/skills.git@0123456", SourceNotFound, "by its 40 hex digits"),
        (f"/skills.git@{'0' * 39}1", SourceNotFound, "no branch, tag or commit"),
        ("/other.git", SourceNotFound, "is not a repository"),
        ("/skills.git#nope", SourceNotFound, "no SKILL.md found in its folder 'nope'"),
        ("/skills.git@tree", SourceRefused, "does not name a commit"),
    ],
)
def test_what_is_not_there_is_named(
    place: GitPlace, address: str, text: str, error: type[SkillError], said: str
) -> None:
    repository = place.repository()
    repository.commit({"a/SKILL.md": SKILL})
    repository.git("tag", "tree", "main^{tree}")

    with pytest.raises(error) as caught:
        place.source(f"git+{address}{text}").list()
    assert said in str(caught.value)


def test_nothing_stays_in_the_temporary_folder(
    place: GitPlace, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    place.repository().commit(FILES)

    source = place.source(f"git+{address}/skills.git")
    source.list()
    assert len(os.listdir(temporary)) == 1
    del source
    with pytest.raises(SourceNotFound):
        place.source(f"git+{address}/skills.git@nope").list()
    assert os.listdir(temporary) == []


def test_plain_http_needs_the_users_word(place: GitPlace, address: str) -> None:
    place.repository().commit(FILES)
    reference = parse_reference(f"git+{address}/skills.git", place.environment)

    with pytest.raises(SourceRefused, match="plain-http"):
        GitSource(reference, SourceContext(place.environment)).list()


def test_nothing_is_fetched_offline(place: GitPlace, address: str) -> None:
    reference = parse_reference(f"git+{address}/skills.git", place.environment)

    with pytest.raises(SourceUnreachable, match="offline"):
        GitSource(reference, SourceContext(place.environment, allow_http=True, offline=True)).list()


def test_the_credentials_of_the_users_git_are_used_and_never_printed(place: GitPlace) -> None:
    place.repository().commit(FILES)
    with serving_git(place.folder / "repositories", password="s3cret") as address:
        with pytest.raises(SourceUnreachable, match="no credentials"):
            place.source(f"git+{address}/skills.git").list()
        store = place.folder / "home" / ".git-credentials"
        store.write_text(address.replace("://", "://me:s3cret@") + "\n")
        (place.folder / "home" / ".gitconfig").write_text("[credential]\n\thelper = store\n")
        assert [entry.name for entry in place.source(f"git+{address}/skills.git").list()] == ["web", "pdf"]
        # A wrong password that the user's own configuration puts into the address is no news for anybody.
        (place.folder / "home" / ".gitconfig").write_text(
            f'[url "{address.replace("://", "://me:wr0ng@")}/"]\n\tinsteadOf = {address}/\n'
        )
        with pytest.raises(SourceUnreachable) as caught:
            place.source(f"git+{address}/skills.git").list()
    assert "wr0ng" not in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_a_repository_is_read_by_ssh(place: GitPlace) -> None:
    commit = place.repository().commit(FILES)
    place.serve_by_ssh()
    source = place.source("git+ssh://git@example.org/skills.git#skills/pdf")
    (entry,) = source.list()

    identity = source.identity(entry)
    assert (identity.source, identity.commit) == ("git+ssh://git@example.org/skills.git", commit)
    assert identity.publisher == "example.org"


def test_a_redirect_is_not_followed(place: GitPlace, address: str) -> None:
    place.repository().commit(FILES)
    with serving_git(place.folder, redirect=address) as other, pytest.raises(SourceRefused, match="redirect"):
        place.source(f"git+{other}/skills.git").list()


def test_a_server_that_is_silent_costs_a_bounded_time(place: GitPlace) -> None:
    class Silent(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            time.sleep(5)

        def log_message(self, *_: object) -> None:
            """Nothing is logged."""

    with serving(Silent) as address, pytest.raises(SourceUnreachable, match="sent nothing for 1 s"):
        place.source(f"git+{address}/skills.git", seconds=1).list()


def test_a_server_that_is_not_there_is_unreachable(place: GitPlace) -> None:
    with serving(BaseHTTPRequestHandler) as address:
        pass
    with pytest.raises(SourceUnreachable, match="cannot be fetched"):
        place.source(f"git+{address}/skills.git").list()


def test_git_that_is_missing_or_too_old_is_named(place: GitPlace, tmp_path: Path) -> None:
    place.repository().commit(FILES)
    programs = tmp_path / "programs"
    programs.mkdir()
    place.environment = place.environment._replace(env={"PATH": str(programs)})
    text = f"git+file://{place.folder}/repositories/skills.git"
    with pytest.raises(SourceUnreachable, match="not installed"):
        place.source(text).list()
    (programs / "git").write_text("#!/bin/sh\necho git version 2.30.1\n")
    (programs / "git").chmod(0o755)
    with pytest.raises(SourceUnreachable, match=r"2\.38 or newer"):
        place.source(text).list()


def test_no_variable_of_git_reaches_another_repository(place: GitPlace, tmp_path: Path) -> None:
    place.repository().commit(FILES)
    marker = tmp_path / "ran"
    place.environment = place.environment._replace(
        env={
            **place.environment.env,
            "GIT_DIR": "/nonexistent",
            "GIT_OBJECT_DIRECTORY": "/nonexistent",
            "GIT_EXTERNAL_DIFF": "false",
            "GIT_SSL_NO_VERIFY": "1",
            "GIT_TRACE": str(marker),
            "GIT_ALLOW_PROTOCOL": "ext",
        }
    )

    assert len(list(place.source(f"git+file://{place.folder}/repositories/skills.git").list())) == 2
    assert not marker.exists()
