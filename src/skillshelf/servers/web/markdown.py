"""Render the Markdown of strangers as HTML that can do nothing: no script, no request, no link to elsewhere.

Raw HTML is text. A link or picture is text followed by its address, unless it leads to a file of the same skill. What
the renderer makes goes through a sanitiser with a short list of elements.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from html import escape, unescape
from posixpath import normpath
from urllib.parse import unquote

import nh3
from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

from skillshelf.core.limits import WEB_MARKDOWN_CHARS, WEB_TABLE_COLUMNS
from skillshelf.core.text import visible_for_model

__all__ = ["render_markdown", "shown_lines"]

_TAGS = {
    *("p", "br", "wbr", "hr", "em", "strong", "s", "code", "pre", "blockquote", "ul", "ol", "li", "a", "span", "div"),
    *("h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"),
}
_ATTRIBUTES = {
    "a": {"href"},
    "span": {"class"},
    "div": {"class", "tabindex", "role", "aria-label"},
    "pre": {"tabindex"},
    "ol": {"start"},
    "code": {"class"},
}
_HEADING_SHIFT = 2
"""The page has a heading of the first level, and the text is in a section of the second."""

ToFile = Callable[[str], str | None]
"""Returns the address of a file of the skill by its path, or None if there is no such file."""


def shown_lines(text: str) -> str:
    """Return a text of several lines with every character escaped that is hidden, or hides or moves others; tabs stay.

    A reader sees what a model reads: hidden variation selectors can spell whole sentences.
    """
    if text.replace("\n", "").replace("\t", "").isprintable() and text.isascii():
        return text
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join("\t".join(visible_for_model(part) for part in line.split("\t")) for line in lines)


@lru_cache(maxsize=2)
def _parser(*, tables: bool) -> MarkdownIt:
    rules = ["table", "strikethrough"] if tables else ["strikethrough"]
    return MarkdownIt("commonmark", {"html": False, "linkify": False}).enable(rules)


def _has_wide_table(text: str) -> bool:
    """Return whether a table has more than `WEB_TABLE_COLUMNS`: each of its rows costs as much, also an empty one.

    The line below the head of a table is counted. No pattern finds it: that takes minutes for a long line.
    """
    lines = (line for line in text.split("\n") if line.count("|") > WEB_TABLE_COLUMNS + 1)
    return any(not line.lstrip(" \t>").strip("|:- \t") for line in lines)


def render_markdown(text: str, to_file: ToFile) -> Markup:
    """Return the HTML of a Markdown text, cut after `WEB_MARKDOWN_CHARS`; the caller says that it was cut.

    A text with a very wide table keeps its tables as text. Lines of which Markdown shows only a part follow at the end.
    """
    text = _BLANKS.sub(lambda found: found[0][:_MOST_BLANKS], shown_lines(text[:WEB_MARKDOWN_CHARS]))
    parser = _parser(tables=not _has_wide_table(text))
    tokens = parser.parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + _HEADING_SHIFT)}"
        if token.children is not None:
            token.children = _without_addresses(token.children, to_file)
    html = _with_breaks(parser.renderer.render(tokens, parser.options, {}))
    html = re.sub("<pre>", '<pre tabindex="0">', html)
    html = html.replace("<table>", '<div class="scroll" tabindex="0" role="region" aria-label="table"><table>')
    html = html.replace("</table>", "</table></div>")
    if unseen := _unseen_lines(text, html):
        lines = "\n".join(map(escape, unseen))
        html += f'<p><strong>Also written there, and not shown above:</strong></p><pre tabindex="0">{lines}</pre>'
    cleaned = nh3.clean(html, tags=_TAGS, attributes=_ATTRIBUTES, url_schemes=set(), link_rel=None)
    # The sanitiser is what makes this safe.
    return Markup(cleaned)


def _unseen_lines(text: str, html: str) -> list[str]:
    """Return the lines of a text with words that its HTML does not have, as they are written.

    Markdown leaves out the definitions and titles of links, what follows the language of a code block, cells beyond the
    head of a table, and what is nested very deeply: a model reads all of that.
    """
    # An address that is its own text is not said twice.
    missing = _words(re.sub(r"\[([^\[\]\n]+)\]\(\1\)", r"\1", text))
    missing.subtract(_words(html.replace("<wbr>", "")))
    found = []
    for line in text.split("\n") if max(missing.values(), default=0) > 0 else ():
        words = _words(line)
        if any(missing[word] > 0 for word in words):
            missing.subtract(words)
            found.append(line)
    return found


def _words(text: str) -> "Counter[str]":
    return Counter(_WORD.findall(unescape(unquote(text))))


_WORD = re.compile(r"[^\W\d_]{2,}")
"""A word that could say something: the numbers of lists are not in HTML."""
_MOST_BLANKS = 500
_BLANKS = re.compile(rf"[ \t]{{{_MOST_BLANKS + 1},}}")
"""More blanks in a row than any text needs: the renderer takes seconds for thousands of tabs."""
_LONG_WORD = re.compile(r"[^\s<>&]{100}(?=[^\s<>&]{100})")


def _with_breaks(html: str) -> str:
    """Return HTML in which a line may end within a very long word: a browser takes seconds to find that out itself."""
    if _LONG_WORD.search(html) is None:
        return html
    parts = re.split(r"(<[^>]*>)", html)
    # Every second part is a tag, whose attributes stay as they are.
    parts[::2] = [_LONG_WORD.sub(r"\g<0><wbr>", part) for part in parts[::2]]
    return "".join(parts)


def _without_addresses(children: Sequence[Token], to_file: ToFile) -> list[Token]:
    """Return the tokens of a line with links and pictures as text, but for links to files of the skill."""
    result: list[Token] = []
    open_links: list[tuple[str, bool, int]] = []
    for token in children:
        if token.type == "link_open":
            address = str(token.attrGet("href") or "")
            inner = _inner(address, to_file)
            # Of a link to elsewhere the text stays, and its address follows it.
            open_links.append((address, inner is not None, len(result)))
            if inner is not None:
                result.append(Token("link_open", "a", 1, attrs={"href": inner}))
        elif token.type == "link_close":
            address, is_link, start = open_links.pop()
            if is_link:
                result += [] if any(one.content.strip() for one in result[start:]) else _address(address)
                result.append(Token("link_close", "a", -1))
            elif not result or result[-1].content != address:
                # An address that is its own text is not said twice.
                result += _address(address)
        elif token.type == "image":
            result += [_text(f"[picture: {token.content or 'without a text'}]")]
            result += _address(str(token.attrGet("src") or ""))
        else:
            # An entity such as `&#x202e;` is a character by now.
            token.content = shown_lines(token.content)
            result.append(token)
    return result


def _inner(address: str, to_file: ToFile) -> str | None:
    path = unquote(address.partition("#")[0])
    if not path or ":" in path or path.startswith("/"):
        return None
    return to_file(normpath(path))


def _text(content: str) -> Token:
    return Token("text", "", 0, content=content)


def _address(address: str) -> list[Token]:
    if not address:
        return []
    shown = visible_for_model(unquote(address))
    shown = shown if len(shown) <= 200 else f"{shown[:200]}…"
    return [_text(" "), Token("code_inline", "code", 0, markup="`", content=shown)]
