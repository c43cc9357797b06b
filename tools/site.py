"""Build the documentation as a static site: `python tools/site.py DIR`. Needs the extra `docs`.

README.md is the first page. Each page becomes plain HTML without scripts. A link or anchor that leads nowhere is
reported and fails the build.
"""

import html
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.token import Token

__all__ = ["build", "slug_of"]

REPOSITORY = Path(__file__).resolve().parent.parent
_TOP = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
_MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable("table")

_TEMPLATE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ margin: 0 auto; max-width: 62rem; padding: 1rem; font: 1rem/1.5 system-ui, sans-serif; color: #1c1c1c; background: #fff; }}
nav a {{ margin-right: 1rem; }}
pre {{ overflow-x: auto; padding: .75rem; background: #f4f4f4; }}
code {{ font-size: .9em; }}
table {{ display: block; overflow-x: auto; border-collapse: collapse; }}
th, td {{ padding: .3rem .6rem; border: 1px solid #ccc; text-align: left; vertical-align: top; }}
img {{ max-width: 100%; }}
@media (prefers-color-scheme: dark) {{
  body {{ color: #e6e6e6; background: #161616; }} pre {{ background: #242424; }} a {{ color: #8ab4f8; }} th, td {{ border-color: #444; }}
}}
</style>
</head>
<body>
<nav>{nav}</nav>
<main>
{body}</main>
</body>
</html>
"""  # noqa: E501 - one rule of style a line.

_NAV = {
    "README.md": "skillshelf",
    "docs/index.md": "documentation",
    "docs/commands.md": "commands",
    "docs/python.md": "Python",
    "docs/hosts.md": "hosts",
    "CHANGELOG.md": "changelog",
}


class Page(NamedTuple):
    """One page: its path in the repository, its syntax, and the anchors that links may name."""

    path: str
    tokens: list[Token]
    anchors: frozenset[str]

    @property
    def title(self) -> str:
        """The text of the first heading, or the path."""
        headings = (self.tokens[n + 1].content for n, token in enumerate(self.tokens) if token.type == "heading_open")
        return re.sub(r"`", "", next(headings, self.path))


def build(target: Path, repository: Path = REPOSITORY) -> list[str]:
    """Write the site below `target` and return the problems found; nothing is written if there are any."""
    found = [repository / name for name in _TOP] + sorted((repository / "docs").rglob("*.md"))
    pages = {page.path: page for page in (_read(path, repository) for path in found)}
    files: set[str] = set()
    problems = [problem for page in pages.values() for problem in _resolve(page, pages, files, repository)]
    if problems:
        return problems
    for page in pages.values():
        out = target / _address(page.path)
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(_html(page), encoding="utf-8")
    for name in sorted(files):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(repository / name, target / name)
    return []


def slug_of(heading: str) -> str:
    """Return the anchor of a heading, by the rule of GitHub."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _read(path: Path, repository: Path) -> Page:
    """Return a page with an id at each heading; a second heading of the same text has a number."""
    tokens = _MARKDOWN.parse(path.read_text(encoding="utf-8"))
    seen: dict[str, int] = {}
    for number, token in enumerate(tokens):
        if token.type == "heading_open":
            slug = slug_of(_plain(tokens[number + 1]))
            count = seen.setdefault(slug, 0)
            seen[slug] += 1
            token.attrSet("id", f"{slug}-{count}" if count else slug)
    anchors = frozenset(str(token.attrGet("id")) for token in tokens if token.type == "heading_open")
    return Page(path.relative_to(repository).as_posix(), tokens, anchors)


def _plain(inline: Token) -> str:
    return "".join(child.content for child in inline.children or ())


def _resolve(page: Page, pages: dict[str, Page], files: set[str], repository: Path) -> Iterator[str]:
    """Point each link of a page into the site, collect the files it shows, and yield what leads nowhere."""
    for token, end in _links(page.tokens):
        key = "src" if token.type == "image" else "href"
        link = str(token.attrGet(key))
        if re.match(r"[a-z][a-z0-9+.-]*:", link):
            continue
        name, _, anchor = unquote(link).partition("#")
        path = os.path.normpath(os.path.join(os.path.dirname(page.path), name)) if name else page.path
        if path in pages:
            if anchor and anchor not in pages[path].anchors:
                yield f"{page.path}: no heading for the link {link}"
            token.attrSet(key, _relative(_address(path), page) + (f"#{anchor}" if anchor else ""))
        elif (repository / path).is_file():
            files.add(path)
            token.attrSet(key, _relative(path, page))
        elif (repository / path).is_dir():
            # A folder of the repository is not part of the site: the words stay without a link.
            token.tag = end.tag = "span"
            token.attrs.clear()
        else:
            yield f"{page.path}: the link {link} leads nowhere"


def _links(tokens: list[Token]) -> Iterator[tuple[Token, Token]]:
    """Yield each link and image with the token that ends it; links are not nested."""
    for inline in tokens:
        children = inline.children or []
        for number, token in enumerate(children):
            if token.type == "image":
                yield token, token
            elif token.type == "link_open":
                yield token, next(child for child in children[number:] if child.type == "link_close")


def _address(path: str) -> str:
    return "index.html" if path == "README.md" else path.removesuffix(".md") + ".html"


def _relative(target: str, page: Page) -> str:
    return os.path.relpath(target, os.path.dirname(_address(page.path)) or ".")


def _html(page: Page) -> str:
    body = _MARKDOWN.renderer.render(page.tokens, _MARKDOWN.options, {})
    nav = "".join(f'<a href="{_relative(_address(path), page)}">{text}</a>' for path, text in _NAV.items())
    return _TEMPLATE.format(title=html.escape(page.title), nav=nav, body=body)


def main() -> int:
    """Build the site into the folder that the command line names."""
    if len(sys.argv) != 2:
        print("usage: python tools/site.py DIR", file=sys.stderr)
        return 2
    problems = build(Path(sys.argv[1]))
    print("\n".join(problems) or f"written: {sys.argv[1]}/index.html")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
