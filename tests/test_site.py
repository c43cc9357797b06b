"""The documentation as a static site: every page, every link, no scripts."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest
from support.needs import require

REPOSITORY = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def site() -> ModuleType:
    """The tool, which is not imported by its name because Python has a module of that name."""
    require("markdown_it")
    spec = importlib.util.spec_from_file_location("site_tool", REPOSITORY / "tools" / "site.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def repository_with(folder: Path, **pages: str) -> Path:
    """Write a repository whose pages are empty but for those given by the name of their file."""
    (folder / "docs").mkdir()
    for name in ("README", "CONTRIBUTING", "CHANGELOG"):
        (folder / f"{name}.md").write_text(pages.get(name, f"# {name}\n"))
    for name in pages.keys() - {"README", "CONTRIBUTING", "CHANGELOG"}:
        (folder / "docs" / f"{name}.md").write_text(pages[name])
    return folder


def test_the_documentation_has_no_dead_link_and_every_link_of_the_site_leads_to_a_file(
    site: ModuleType, tmp_path: Path
) -> None:
    assert site.build(tmp_path) == []

    pages = list(tmp_path.rglob("*.html"))
    texts = {page: page.read_text(encoding="utf-8") for page in pages}
    assert len(pages) == 3 + len(list((REPOSITORY / "docs").rglob("*.md")))
    assert [page for page, text in texts.items() if "<script" in text] == []
    links = [
        (page, link)
        for page, text in texts.items()
        for link in re.findall(r'<(?:a|img) [^>]*(?:href|src)="([^"#:]+)[^":]*"', text)
    ]
    assert [(page, link) for page, link in links if not (page.parent / link).is_file()] == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[a](gone.md)", "docs/guide.md: the link gone.md leads nowhere"),
        ("![a](gone.svg)", "docs/guide.md: the link gone.svg leads nowhere"),
        ("[a](../README.md#gone)", "docs/guide.md: no heading for the link ../README.md#gone"),
        ("[a](#gone)", "docs/guide.md: no heading for the link #gone"),
    ],
)
def test_a_dead_link_or_anchor_is_reported_and_nothing_is_written(
    site: ModuleType, tmp_path: Path, text: str, problem: str
) -> None:
    repository = repository_with(tmp_path, guide=text)

    assert site.build(tmp_path / "out", repository) == [problem]
    assert not (tmp_path / "out").exists()


def test_links_lead_from_page_to_page_and_to_their_headings(site: ModuleType, tmp_path: Path) -> None:
    repository = repository_with(
        tmp_path,
        README="[guide](docs/guide.md#the-second-step) [folder](docs) [web](https://example.org/a.md)\n",
        guide="# Guide\n\n## The `second` step!\n\n[up](../README.md)\n",
    )

    assert site.build(tmp_path / "out", repository) == []

    first = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert '<a href="docs/guide.html#the-second-step">guide</a>' in first
    assert "<span>folder</span>" in first
    assert '<a href="https://example.org/a.md">web</a>' in first
    guide = (tmp_path / "out" / "docs" / "guide.html").read_text(encoding="utf-8")
    assert '<h2 id="the-second-step">' in guide
    assert '<a href="../index.html">up</a>' in guide


def test_headings_of_the_same_text_have_different_anchors(site: ModuleType, tmp_path: Path) -> None:
    repository = repository_with(tmp_path, guide="## Next\n\n## Next\n\n[a](#next-1)\n")

    assert site.build(tmp_path / "out", repository) == []
