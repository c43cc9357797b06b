"""Skills are read from plugins of a marketplace; what else a plugin has is left out, and said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.git_server import GitPlace, needs_git, serving_git

from skillshelf.catalog.source import SourceLimits
from skillshelf.errors import SkillError, SourceNotFound, SourceRefused
from skillshelf.install.plugins import MarketplaceSource
from skillshelf.install.reference import parse_reference

SKILL = b"---\nname: pdf\ndescription: Reads PDF files.\n---\n\nRead it.\n"
CLAUDE, CODEX = ".claude-plugin/marketplace.json", ".agents/plugins/marketplace.json"


@pytest.fixture
def place(tmp_path: Path) -> GitPlace:
    return GitPlace(tmp_path)


def write(place: GitPlace, files: dict[str, bytes]) -> None:
    """Write a marketplace as a folder."""
    for name, data in files.items():
        path = place.folder / "market" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def market(source: Any, **members: Any) -> bytes:
    """Return the file of a marketplace with one plugin, `office`."""
    return json.dumps({"name": "m", "plugins": [{"name": "office", "source": source, **members}]}).encode()


def plugin(place: GitPlace, text: str = "plugin:./market/office", path: str | None = None) -> MarketplaceSource:
    return MarketplaceSource(parse_reference(text, place.environment, path=path), place.context())


@pytest.mark.parametrize(
    ("listed", "source"),
    [
        (CLAUDE, "./plugins/office"),
        (CODEX, {"source": "local", "path": "./plugins/office"}),
        (CODEX, "./plugins/office"),
    ],
)
def test_the_skills_of_a_plugin_are_read_and_the_rest_is_named(place: GitPlace, listed: str, source: Any) -> None:
    write(
        place,
        {
            listed: market(source),
            "plugins/office/.claude-plugin/plugin.json": b'{"name": "office", "mcpServers": {"x": {}}}',
            "plugins/office/skills/pdf/SKILL.md": SKILL,
            "plugins/office/skills/pdf/more.md": b"more",
            "plugins/office/hooks/hooks.json": b"{}",
            "plugins/office/commands/go.md": b"",
            "plugins/office/agents/x.md": b"",
            "plugins/other/skills/no/SKILL.md": SKILL,
        },
    )
    found = plugin(place)
    (entry,) = found.list()

    assert (entry.name, entry.path) == ("pdf", "skills/pdf")
    assert found.fetch(entry, (), SourceLimits()) == {"SKILL.md": SKILL, "more.md": b"more"}
    assert found.notes == ["only skills are installed; left out of the plugin: MCP servers, agents, commands, hooks"]
    identity = found.identity(entry)
    assert (identity.source, identity.path) == (f"plugin:{place.folder}/market/office", "skills/pdf")
    again = plugin(place, identity.source, path=identity.path)
    assert list(again.list()) == [entry]


def test_a_marketplace_can_name_the_skills_of_a_plugin(place: GitPlace) -> None:
    skills = {f"skills/{name}/SKILL.md": SKILL for name in ("pdf", "xlsx", "art")}
    write(place, {CLAUDE: market("./", strict=False, skills=["./skills/pdf", "./skills/xlsx"]), **skills})

    assert [entry.path for entry in plugin(place).list()] == ["skills/pdf", "skills/xlsx"]


def test_a_plugin_can_be_one_skill_and_lie_below_a_common_folder(place: GitPlace) -> None:
    listed = {"metadata": {"pluginRoot": "./all"}, "plugins": [{"name": "office", "source": "office"}]}
    write(place, {CLAUDE: json.dumps(listed).encode(), "all/office/SKILL.md": b"text"})

    assert [(entry.path, entry.name) for entry in plugin(place).list()] == [("", "office")]


@needs_git
@pytest.mark.slow
def test_a_plugin_can_be_in_another_repository(place: GitPlace) -> None:
    repository = place.repository("office")
    commit = repository.commit({"deep/skills/pdf/SKILL.md": SKILL})
    repository.commit({"deep/skills/pdf/SKILL.md": SKILL + b"newer"})
    with serving_git(place.folder / "repositories") as address:
        url = f"{address}/office.git"
        place.repository("market").commit(
            {CLAUDE: market({"source": "git-subdir", "url": url, "path": "deep", "sha": commit})}
        )
        found = plugin(place, f"plugin:git+{address}/market.git@main/office")
        (entry,) = found.list()

        assert found.fetch(entry, (), SourceLimits()) == {"SKILL.md": SKILL}
        identity = found.identity(entry)
    assert identity[:4] == (f"plugin:git+{address}/market.git/office", "skills/pdf", "main", commit)


@pytest.mark.parametrize(
    ("source", "rule"),
    [
        ("../outside", "path-escape"),
        ("./plugins/../../x", "path-escape"),
        ("/etc", "path-escape"),
        ({"source": "npm", "package": "@acme/office"}, "plugin-source"),
        ({"source": "pip", "package": "office"}, "plugin-source"),
        ({"source": "local", "path": "../x"}, "path-escape"),
        ({"source": "url", "url": "file:///etc"}, "transport"),
        ({"source": "url", "url": "/etc"}, "transport"),
        ({"source": "url", "url": "./plugins"}, "transport"),
        ({"source": "url", "url": "ext::sh -c id"}, "transport"),
        ({"source": "url", "url": "https://me:secret@example.org/x"}, "secret-in-url"),
        ({"source": "url", "url": "http://example.org/x"}, "plain-http"),
        ({"source": "url"}, "plugin-source"),
        ({"source": "github", "repo": "-x/y"}, "plugin-source"),
        ({"source": "github", "repo": "o/r", "ref": "--upload-pack=id"}, "ref"),
        ({"source": "github", "repo": "o/r", "sha": "main"}, "ref"),
        ({"source": "git-subdir", "url": "https://example.org/x", "path": "../y"}, "path-escape"),
        (None, "plugin-source"),
        (7, "plugin-source"),
    ],
)
def test_a_place_that_a_marketplace_may_not_name_is_refused(place: GitPlace, source: Any, rule: str) -> None:
    write(place, {CLAUDE: market(source)})
    with pytest.raises(SourceRefused) as caught:
        plugin(place).list()
    assert caught.value.rule == rule
    assert "secret@" not in str(caught.value)


@needs_git
@pytest.mark.slow
@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1/x",
        "https://localhost/x",
        "https://169.254.169.254/x",
        "https://10.0.0.1:8443/x",
        "https://[::1]/x",
        "https://[::ffff:10.0.0.1]/x",
        "ssh://git@intranet/x",
        "http://127.0.0.1:80/x",
    ],
)
def test_a_marketplace_of_a_stranger_names_no_address_of_this_network(place: GitPlace, url: str) -> None:
    place.repository("market").commit({CLAUDE: market({"source": "url", "url": url})})
    place.serve_by_ssh()
    with pytest.raises(SourceRefused) as caught:
        plugin(place, "plugin:git+ssh://git@example.org/market.git/office").list()
    assert caught.value.rule == "private-address"


@pytest.mark.parametrize(
    ("files", "error", "said"),
    [
        ({"x": b""}, SourceNotFound, "not a marketplace"),
        ({CLAUDE: b"{"}, SourceRefused, "not a JSON object"),
        ({CLAUDE: b"[" * 100_000}, SourceRefused, "not a JSON object"),
        ({CLAUDE: b"[]"}, SourceRefused, "not a JSON object"),
        ({CLAUDE: b'{"plugins": 7}'}, SourceNotFound, "no plugin 'office'"),
        ({CLAUDE: b'{"plugins": [{"name": "ofice"}]}'}, SourceNotFound, "did you mean ofice?"),
        ({CLAUDE: b'{"plugins": [{"name": "office"}, {"name": "office"}]}'}, SourceRefused, "twice"),
        ({CLAUDE: market("./plugins/office")}, SourceNotFound, "is not there"),
        ({CLAUDE: market("./p"), "p/README.md": b""}, SourceNotFound, "has no skill"),
        ({CLAUDE: market("./p", skills="../../x"), "p/README.md": b""}, SourceRefused, "leads out"),
    ],
)
def test_a_marketplace_that_cannot_be_used_is_named(
    place: GitPlace, files: dict[str, bytes], error: type[SkillError], said: str
) -> None:
    write(place, files)
    with pytest.raises(error) as caught:
        plugin(place).list()
    assert said in str(caught.value)


def test_a_link_in_a_marketplace_is_not_followed(place: GitPlace, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(SKILL)
    write(place, {CLAUDE: market("./p"), "p/skills/pdf/SKILL.md": SKILL})
    (tmp_path / "market/p/skills/pdf/key").symlink_to(tmp_path / "secret")
    found = plugin(place)
    (entry,) = found.list()
    with pytest.raises(SourceRefused, match="link"):
        found.fetch(entry, (), SourceLimits())
