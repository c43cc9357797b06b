"""Find the signs of an attack in every text file of a skill: in prose, in commands, in what is hidden or encoded.

`security_findings` takes paths and bytes, so that a skill can be judged before anything of it is on the disk. It knows
no configuration, no baseline and no comment that switches a rule off: a stranger must not silence it.
"""

import re
from base64 import b64decode
from binascii import Error as NotBase64
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import compress, islice
from types import MappingProxyType

from skillshelf.config.rules import RULES
from skillshelf.core import files
from skillshelf.core.hidden_text import fold_to_ascii, hidden_text
from skillshelf.core.limits import SECURITY_BYTES, SECURITY_FILE_BYTES, SECURITY_FILES, SECURITY_HITS, SECURITY_WINDOWS
from skillshelf.core.patterns import lazy_pattern
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import visible
from skillshelf.core.values import Severity
from skillshelf.lint.security_code import CODE_TOKENS, CODE_WORDS, block_signs, program_signs, unmasked
from skillshelf.lint.security_context import rule_in_context
from skillshelf.lint.security_intents import INTENT_TOKENS, INTENT_WORDS, hides_orders, intent_signs
from skillshelf.lint.security_prose import PROSE_TOKENS, PROSE_WORDS, prose_signs
from skillshelf.lint.security_signals import (
    ADDRESS,
    DEFENCE,
    FOREIGN,
    KNOWN_HOSTS,
    ODD_HOST,
    SENDS,
    SIGNALS,
    STRONG_SECRET,
    TOKENS,
    Signal,
    Sought,
    pattern_of,
    words_by_token,
)
from skillshelf.lint.security_words import AFTER, BEFORE, FOLLOWING, Mark, Sighting, Words, WordSearch, near_pattern

__all__ = ["SecurityFinding", "folder_findings", "security_findings", "unchecked"]


class SecurityFinding(NamedTuple):
    """A sign of an attack in a file of a skill: its place, what it does, and the matched text as evidence."""

    path: str
    line: int
    column: int
    rule: str
    severity: Severity
    message: str
    evidence: str


class _Hit(NamedTuple):
    rule: str
    line: int
    column: int
    says: str
    evidence: str


_EVIDENCE = 80
_PAGES = (".md", ".mdx", ".markdown", ".txt", ".rst", ".adoc", ".html", ".htm")


def security_findings(entries: "Mapping[str, bytes] | Iterable[tuple[str, bytes]]") -> list[SecurityFinding]:
    """Return the findings of all security rules in the files of one skill, sorted by path and line.

    `entries` are the paths inside the skill with `/` and the bytes of each file. Nothing is read from a disk. A file
    that is too large, or comes after too many others, is a finding of `security-unchecked`.
    """
    found: list[SecurityFinding] = []
    facts: dict[str, list[tuple[str, _Hit]]] = {"read": [], "send": []}
    left = SECURITY_BYTES
    pairs = entries.items() if isinstance(entries, Mapping) else entries
    for number, (path, data) in enumerate(pairs):
        if number >= SECURITY_FILES:
            found.append(unchecked(path, f"only the first {SECURITY_FILES} files were checked"))
            break
        if len(data) > SECURITY_FILE_BYTES or len(data) > left:
            found.append(unchecked(path, f"{len(data):,} bytes are more than are checked"))
            continue
        left -= len(data)
        found += _capped(path, _hits_in_file(path, data, facts))
    found += _across_files(found, facts)
    return sorted(dict.fromkeys(found), key=_order)


def folder_findings(
    folder: files.Folder, entries: files.Tree, known: Mapping[str, bytes] = MappingProxyType({})
) -> list[SecurityFinding]:
    """Return the findings in an open folder: in the files that its digest covers, and for links and special files.

    No link is followed, so nothing outside is read. `known` has the bytes of files that were read already.
    """
    problems = [
        unchecked(path, f"is a {kind}, which was not followed or read") for path, kind in entries.others.items()
    ]
    if not entries.complete:
        problems.append(unchecked("SKILL.md", "the folder has more entries than are checked"))
    if len(entries.files) == 1 and not problems and "SKILL.md" in known and "SKILL.md" in entries.files:
        return security_findings(known)
    found = security_findings(_contents(folder, entries, known, problems))
    return sorted([*found, *problems], key=_order)


def _contents(
    folder: files.Folder, entries: files.Tree, known: Mapping[str, bytes], problems: list[SecurityFinding]
) -> Iterator[tuple[str, bytes]]:
    """Yield path and bytes of the files of a folder, SKILL.md first; those that are not read are added to problems."""
    left = SECURITY_BYTES
    for path in sorted(entries.files, key=lambda path: (path != "SKILL.md", files.path_bytes(path))):
        size = entries.files[path][2]
        if size > min(SECURITY_FILE_BYTES, left):
            problems.append(unchecked(path, f"{size:,} bytes are more than are checked"))
            continue
        left -= size
        try:
            yield path, known[path] if path in known else folder.read(path.split("/"), limit=SECURITY_FILE_BYTES).data
        except OSError as error:
            problems.append(unchecked(path, f"cannot be read: {error.strerror or type(error).__name__}"))


def _order(one: SecurityFinding) -> tuple[bool, str, int, str]:
    return one.path != "SKILL.md", one.path, one.line, one.rule


def unchecked(path: str, reason: str) -> SecurityFinding:
    """Return the finding for a file that was not searched."""
    return _finding(path, _Hit("security-unchecked", 1, 1, reason, ""))


def _finding(path: str, hit: _Hit) -> SecurityFinding:
    shown = visible(" ".join(hit.evidence.split()))
    evidence = shown if len(shown) <= _EVIDENCE else shown[: _EVIDENCE - 1] + "…"
    message = f"{hit.says}: {evidence}" if evidence else hit.says
    return SecurityFinding(path, hit.line, hit.column, hit.rule, RULES[hit.rule].severity, message, evidence)


def _capped(path: str, hits: Iterable[_Hit]) -> Iterator[SecurityFinding]:
    """Yield the findings of a file: one for each rule and line, and of every rule only the first ones."""
    counts: dict[str, int] = {}
    seen: set[tuple[str, int]] = set()
    for hit in sorted(hits, key=lambda hit: (hit.line, hit.column)):
        if (hit.rule, hit.line) in seen:
            continue
        seen.add((hit.rule, hit.line))
        counts[hit.rule] = counts.get(hit.rule, 0) + 1
        if counts[hit.rule] < SECURITY_HITS:
            yield _finding(path, hit)
        elif counts[hit.rule] == SECURITY_HITS:
            yield _finding(path, hit._replace(says=f"{hit.says} (there may be more of this rule in the file)"))


# One file -------------------------------------------------------------------------------------------

_PROGRAMS = {
    b"\x7fELF": "a program of Linux",
    b"MZ": "a program of Windows",
    b"\xcf\xfa\xed\xfe": "a program of macOS",
    b"\xca\xfe\xba\xbe": "a program of macOS or Java",
    b"\xfe\xed\xfa\xcf": "a program of macOS",
}
_ARCHIVES = (".zip", ".rar", ".7z", ".tar", ".gz", ".tgz", ".xz", ".bz2", ".dmg", ".pkg", ".whl", ".jar", ".pyc")


def _hits_in_file(path: str, data: bytes, facts: dict[str, list[tuple[str, _Hit]]]) -> Iterator[_Hit]:
    text = _text_bytes(data)
    if text is None:
        yield from _hits_in_binary(path, data)
        return
    is_page = path.lower().endswith(_PAGES)
    if path != "SKILL.md":
        yield from _hits_in_name(path)
    yield from _hits_in_text(text, is_page=is_page)
    if not is_page:
        yield from _hits_in_program(path, _PATH_PARTS.sub(b"/", text.lower()).decode("utf-8", "replace"), facts)


def _text_bytes(data: bytes) -> bytes | None:
    """Return the text of a file as UTF-8, or None if it is not a text."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace").encode("utf-8", "replace")
    if b"\0" in data[:8192]:
        if data[1:2] == b"\0" and data[3:4] == b"\0":
            return data.decode("utf-16-le", "replace").encode("utf-8", "replace")
        return None
    return data


def _hits_in_binary(path: str, data: bytes) -> Iterator[_Hit]:
    kind = next((name for magic, name in _PROGRAMS.items() if data.startswith(magic)), None)
    if kind is not None:
        yield _Hit("security-binary", 1, 1, f"is {kind}, which nobody can read before it runs", "")
    elif path.lower().endswith(_ARCHIVES):
        yield _Hit("security-unchecked", 1, 1, "is packed or compiled; what it holds was not checked", "")


def _hits_in_name(path: str) -> Iterator[_Hit]:
    """Yield the signs in the name of a file, which a model reads as well."""
    name = path.replace("_", " ").replace("-", " ")
    for hit in _hits_in_text(f"{path}\n{name}".encode("utf-8", "replace"), is_page=False):
        yield hit._replace(line=1, column=1, says=f"the name of the file {hit.says.removeprefix('the line ')}")


def _hits_in_text(data: bytes, *, is_page: bool) -> Iterator[_Hit]:
    look = _Look(_prepared(data.lower(), is_page=is_page))
    marks = look.marks
    if marks[_UNSEEN]:
        yield from _invisible(data)
    if marks[_UNSEEN] or (marks[_OTHER_LETTERS] and _is_disguised(data)):
        look = _Look(_prepared(_folded(data), is_page=is_page))
    yield from _hits_in_look(data, look, marks, is_page=is_page)


def _prepared(lowered: bytes, *, is_page: bool) -> bytes:
    return lowered if is_page else _PATH_PARTS.sub(b"/", lowered)


_PATH_PARTS = lazy_pattern(rb"[\"'][ \t]*(?:,|/)[ \t]*[\"']")
"""What stands between the parts of a path that a program joins."""


def _folded(data: bytes) -> bytes:
    """Return the text in lower case with look-alikes of Latin letters as those, without unseen characters."""
    return fold_to_ascii(data.decode("utf-8", "replace")).replace("\0", "").lower().encode("utf-8", "replace")


class _Look:
    """A text in lower case, its marks, and where signals are to be tried: by the extension, or word by word."""

    words: Words

    def __init__(self, lowered: bytes) -> None:
        self.lowered = lowered
        self._sighting = _SEARCH.seen_in(lowered)
        if self._sighting is not None:
            self.marks, self.words, self.tokens = self._sighting.marks, self._sighting.words, self._sighting.tokens
            return
        self.words = lowered
        self.tokens = _vocabulary().intersection(lowered.translate(TOKENS).split())
        self.marks = bytes(mark.is_in(lowered, self.tokens) for mark in _MARKS)

    def hits(self, *, is_page: bool) -> Iterator[_Hit]:
        """Yield the signs of the text."""
        if self._sighting is not None:
            return _sighted_hits(self.lowered, self._sighting, is_page=is_page)
        return _signal_hits(self.lowered, self.tokens, is_page=is_page)


def _hits_in_look(data: bytes, look: _Look, unfolded: bytes, *, is_page: bool) -> Iterator[_Hit]:
    """Yield the signs of a text; the marks of `look` are those of the folded text, the others of the text as it is."""
    lowered, marks = look.lowered, look.marks
    found = [*look.hits(is_page=is_page)]
    found += _hits_in_addresses(lowered) if b"://" in look.words else ()
    signs = [*prose_signs(lowered, look.tokens, look.words, is_page=is_page)]
    signs += intent_signs(lowered, look.tokens, look.words, is_page=is_page)
    for sign in (*signs, *(block_signs(lowered, look.tokens, look.words) if is_page else ())):
        rule = rule_in_context(sign.rule, lowered, sign.at, sign.evidence, is_page=is_page)
        found.append(_Hit(rule, *_place(lowered, sign.at), sign.says, sign.evidence))
    if marks[_FOREIGN_TOKEN] or unfolded[_FOREIGN_LETTERS]:
        found += _foreign(data, unfolded, is_latin=bool(marks[_FOREIGN_TOKEN]))
    if not is_page and (b"\x1b" in data or b"\x08" in data):
        says = "the line has a control character, which a terminal obeys"
        place = _place(data, max(data.find(b"\x1b"), data.find(b"\x08")))
        found.append(_Hit("security-hidden-text", *place, says, ""))
    if is_page and (marks[_COMMENT] or (marks[_ELEMENT] and _UNSHOWN_MARK.search(lowered))):
        found += _hits_in_comments(lowered)
    if not is_page or unfolded[_GAPS]:
        found += _hits_in_gaps(data)
    if not is_page or marks[_ENCODED] or _CELL.search(data):
        found += _hits_in_decoded(data)
    if not is_page or marks[_SPELT]:
        found += _hits_in_spelling(lowered, found)
    yield from found


# Signals --------------------------------------------------------------------------------------------


def _place(data: bytes, at: int) -> tuple[int, int]:
    """Return line and column of an offset, from 1."""
    start = data.rfind(b"\n", 0, at) + 1
    return data.count(b"\n", 0, at) + 1, len(data[start:at].decode("utf-8", "replace")) + 1


def _window(data: bytes, at: int, following: int) -> tuple[int, int]:
    """Return start and end of the line of an offset with some lines after it, and lines that it continues."""
    start = max(data.rfind(b"\n", 0, at) + 1, at - BEFORE)
    for _ in range(3):
        if data[start - 2 : start] != b"\\\n" or at - start > BEFORE:
            break
        start = max(data.rfind(b"\n", 0, start - 1) + 1, at - 2 * BEFORE)
    end = at
    while following >= 0:
        end = data.find(b"\n", end)
        if end < 0 or end > at + AFTER:
            return start, min(len(data), at + AFTER) if end < 0 else at + AFTER
        if data[end - 1 : end] not in (b"\\", b"`", b"^", b"|"):
            following -= 1
        end += 1
    return start, end - 1


def _signal_hits(data: bytes, tokens: frozenset[bytes], *, is_page: bool) -> Iterator[_Hit]:
    """Yield the signs of a text: at each word that may be part of one its pattern is tried on the text around it."""
    known = words_by_token()
    looked: dict[int, tuple[int, int]] = {}
    tries: dict[int, float] = {}
    for token in (b"", *sorted(tokens)):
        for word, all_tokens, signals in known.get(token, ()):
            at = data.find(word) if all_tokens <= tokens else -1
            while at >= 0:
                for sought in signals:
                    start, end = looked.get(sought.number, (0, 0))
                    if start <= at < end or tries.get(sought.number, 0) > SECURITY_WINDOWS:
                        continue
                    # A place that is looked at in passing counts for a tenth.
                    tries[sought.number] = tries.get(sought.number, 0) + 0.1
                    if tries[sought.number] > SECURITY_WINDOWS:
                        says = f"more than {SECURITY_WINDOWS} places may be signs of one kind; the rest was not checked"
                        yield _Hit("security-unchecked", *_place(data, at), says, "")
                    if not _is_near(data, at, sought):
                        continue
                    tries[sought.number] += 0.9
                    window = _window(data, at, FOLLOWING[sought.signal.reach])
                    hit, looked[sought.number] = _match(sought.signal, data, at, window, is_page=is_page)
                    if hit is not None:
                        yield hit
                at = data.find(word, at + len(word))


def _sighted_hits(data: bytes, sighting: Sighting, *, is_page: bool) -> Iterator[_Hit]:
    """Yield the same as `_signal_hits` from what the extension saw in the text."""
    looked: dict[int, tuple[int, int]] = {}
    for number, at, start, end, may_match in sighting.candidates():
        first, last = looked.get(number, (0, 0))
        if first <= at < last:
            continue
        signal = SIGNALS[number]
        if signal.near and not near_pattern(signal.near).search(data[max(at - BEFORE, 0) : at + AFTER]):
            continue
        if not may_match:
            looked[number] = at, min(at + 60, end)
            continue
        hit, looked[number] = _match(signal, data, at, (start, end), is_page=is_page)
        if hit is not None:
            yield hit


def _is_near(data: bytes, at: int, sought: Sought) -> bool:
    """Return whether the other words of a signal are near an offset."""
    if not sought.needs and sought.near is None:
        return True
    near = data[max(at - BEFORE, 0) : at + AFTER]
    if sought.near is not None and not sought.near.search(near):
        return False
    for group in sought.needs:
        for word in group:
            if word in near:
                break
        else:
            return False
    return True


def _match(
    signal: Signal, data: bytes, at: int, window_at: tuple[int, int], *, is_page: bool
) -> tuple[_Hit | None, tuple[int, int]]:
    """Return the hit of a signal in the window of an offset, and the part of the text that needs no other look."""
    start, end = window_at
    raw = data[start:end]
    window = raw.decode("utf-8", "replace")
    if "\n" in window:
        window = re.sub(r"[ \t]*[\\`^]\n", " ", window)
        if is_page and signal.reach == "lines":
            window = window.replace("\n", " ")
        window = window.partition("\n```")[0] if signal.reach == "block" else window
    if "  " in window or "\t" in window or "\xa0" in window:
        window = _BLANKS.sub(" ", window)
    match = pattern_of(signal.pattern).search(window)
    if match is None:
        return None, (at, min(at + 60, end))
    head = match[0][:12].encode("utf-8", "replace")
    return _judged(signal, data, max(raw.find(head), 0) + start, match, is_page=is_page), (start, end)


_BLANKS = lazy_pattern(r"[ \t\x0b\x0c\xa0]{2,}|\t")


def _judged(signal: Signal, data: bytes, at: int, match: re.Match[str], *, is_page: bool) -> _Hit:
    """Return the hit for a match: by another rule if the publisher is known, or if the page only speaks of it."""
    line, column = _place(data, at)
    rule, says = signal.rule, signal.says
    rest = match.string[match.end() :][:200].partition("\n" if signal.reach == "line" else " ")[0]
    if signal.trusted and _is_known(match[0] + rest):
        rule = signal.trusted
    if rule == "security-startup-file" and not is_page:
        rule = "security-persistence"
    if is_page and signal.quotable and RULES[rule].severity != "info" and _is_mention(data, at, match[0]):
        rule, says = "security-mention", f"shows or names what {says}"
    if RULES[rule].severity != "info":
        rule = rule_in_context(rule, data, at, match[0], is_page=is_page)
    return _Hit(rule, line, column, says, match[0])


def _is_known(text: str) -> bool:
    """Return whether every address of a text belongs to a known publisher and is not in clear text."""
    hosts = [match[1] for match in pattern_of(ADDRESS).finditer(text)]
    if not hosts or "http://" in text.replace("http://localhost", "").replace("http://127.0.0.1", ""):
        return False
    return all(re.split(r"[/:?#]", host)[0] in KNOWN_HOSTS for host in hosts)


_LABEL = lazy_pattern(
    r"(?:never|only|avoid|do not|don't|don’t|must not|should not|shouldn't|no)\s+(?:\w+\s+){0,3}[\"'`(]{0,2}$"
)

_QUOTES = (b'"', b"'", b"`", b"\x9c", b"\x98", b"*")
_TOPIC = lazy_pattern(
    rb"\b(?:security|audit\w*|safety|injections?|malicious|threats?|guard|defen[cs]e|scan\w*|vulnerab\w*|red.?team\w*)\b"
)


def _is_mention(data: bytes, at: int, matched: str) -> bool:
    """Return whether a page warns of a text or quotes it: by the words around it, the lines above, or its heading."""
    start = data.rfind(b"\n", 0, at) + 1
    if _LABEL.search(data[max(start, at - 200) : at].decode("utf-8", "replace")):
        return True
    in_frontmatter = data.startswith(b"---") and 0 < at < data.find(b"\n---", 3)
    above = start if in_frontmatter else data.rfind(b"\n", 0, max(data.rfind(b"\n", 0, max(start - 1, 0)), 0)) + 1
    after = at + len(matched.encode("utf-8", "replace"))
    end = data.find(b"\n", after)
    line = data[max(above, at - 300) : at] + b" " + data[after : min(end if end > 0 else len(data), after + 200)]
    heading = data.rfind(b"\n#", 0, at)
    title = data[heading + 1 : heading + 120].split(b"\n")[0] if heading >= 0 else b""
    around = (line + b" " + title).decode("utf-8", "replace")
    if pattern_of(DEFENCE).search(around):
        return True
    # A quotation in a page about such things.
    return (
        data[at - 1 : at] in _QUOTES
        and _TOPIC.search(data[: data.find(b"\n---", 3)] if not in_frontmatter else b"") is not None
    )


_ODD_ADDRESS = lazy_pattern(
    rb"://(?:(?!127\.|10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|0\.0\.0\.0|169\.254\.)\d{1,3}(?:\.\d{1,3}){3}(?![\d.])|[\w.-]{0,60}?(?:webhook\.site|requestbin|pipedream\.net|ngrok|trycloudflare\.com|loca\.lt|serveo\.net|pastebin\.com|rentry\.|glot\.io|transfer\.sh|bit\.ly/|tinyurl\.com|oastify|burpcollab|interact\.sh|0x0\.st|ix\.io|termbin|file\.io|gofile\.io|duckdns\.org|\.onion))[^\s\"'`<>)]{0,60}"
)


def _hits_in_addresses(lowered: bytes) -> Iterator[_Hit]:
    """Yield addresses that say nothing about who is behind them."""
    for match in islice(_ODD_ADDRESS.finditer(lowered), SECURITY_HITS):
        says = "an address leads to a number, a paste, a tunnel, a hook or a short link"
        yield _Hit("security-odd-host", *_place(lowered, match.start()), says, match[0][3:].decode("utf-8", "replace"))


# Hidden text ----------------------------------------------------------------------------------------

_GREEK_TO_ARMENIAN = bytes(range(0xCD, 0xD7))
_UNMARKED = bytes(byte for byte in range(256) if byte not in (*_GREEK_TO_ARMENIAN, 0xEF, 0xF0))
_MIXED = lazy_pattern(rb"[\xcd-\xd6][\x80-\xbf][A-Za-z]|[A-Za-z][\xcd-\xd6]")
_WIDE = lazy_pattern(rb"\xef(?:\xbc[\xa1-\xba]|\xbd[\x81-\x9a])")


def _is_disguised(data: bytes) -> bool:
    """Return whether words mix Latin letters with those of other scripts, or are made of letters of other forms."""
    marks = data.translate(None, _UNMARKED)
    if not marks:
        return False
    if marks.translate(None, b"\xef\xf0\x9d\x93") and _MIXED.search(data):
        return True
    if b"\xf0" in marks and b"\xf0\x9d" in data:
        return True
    return b"\xef" in marks and _WIDE.search(data) is not None


def _invisible(data: bytes) -> Iterator[_Hit]:
    text = data.decode("utf-8", "replace").removeprefix("\ufeff")
    for number, line in enumerate(text.split("\n"), 1):
        if not line.isascii() and (hidden := hidden_text(line)):
            yield _Hit("security-hidden-text", number, 1, f"the line has {hidden}, which a reader does not see", "")


def _foreign(data: bytes, marks: bytes, *, is_latin: bool) -> Iterator[_Hit]:
    """Yield orders against the agent in other languages."""
    rows = [row for row, mark in zip(FOREIGN, marks[-len(FOREIGN) :], strict=True) if mark]
    if not rows:
        return
    lowered = data.lower()
    text = data.decode("utf-8", "replace").lower()
    languages = {language for language, mark in _SCRIPTS.items() if mark in data}
    languages |= {"zh"} if b"\xe3" in data or b"\xe4" in data or b"\xe5" in data or b"\xe6" in data else set()
    languages |= {"latin"} if is_latin else set()
    for rule, language, _, pattern in rows:
        if language not in languages:
            continue
        for match in pattern_of(pattern).finditer(text):
            at = len(text[: match.start()].encode("utf-8", "replace"))
            says = _ORDERS[rule]
            mention = _is_mention(lowered, at, match[0])
            yield _Hit(
                "security-mention" if mention else rule,
                *_place(data, at),
                f"shows or names what {says}" if mention else says,
                match[0],
            )


_SCRIPTS = {"ja": b"\xe3\x81", "ko": b"\xec", "ru": b"\xd0"}
"""Bytes of letters that every text of a language has."""

_ORDERS = {
    "security-override": "tells the agent to ignore or override its instructions",
    "security-concealment": "tells the agent to hide something from the user",
}


_COMMENT_ORDERS = (
    r"\b(?:ai|agents?|assistants?|models?|llms?|claude|gpt|chatgpt|copilot|codex|gemini|cursor|you|your|system|bot)\b"
)
_COMMENT_ACTS = (
    r"\b(?:ignore|disregard|override|execute|send|upload|curl|wget|exfiltrate|do not (?:tell|mention|show|reveal|inform|disclose)|don't (?:tell|mention)|never (?:tell|mention)|without (?:asking|telling)|secretly|silently|"
    r"credentials?|api keys?|tokens|passwords?|https?://|before (?:any|each|every|responding|doing)|first (?:run|read|execute)|hidden instructions?|bypass|approv\w+|run (?:the|this|bash|sh|python|`)|include the|web request|you must|when you load|always)|\.ssh\b|\.env\b|\.aws\b"
)
_MILD = frozenset(
    {
        "always",
        "you must",
        "https://",
        "http://",
        "include the",
        "run the",
        "run this",
        "approve",
        "approval",
        "approved",
    }
)
_MARKDOWN_COMMENT = lazy_pattern(
    r"\n\[(?://|comment|_|hidden|\^?note)[^\]\n]{0,20}\]:\s*(?:#|<>)\s*[\"'(]([^\n]{8,1000})"
)
_ELEMENTS = "span|div|p|font|section|details|small|i|b"
_UNSHOWN_MARK = lazy_pattern(rf"<(?:{_ELEMENTS})\b[^>\n]{{0,60}}(?:style|hidden|color)".encode())
_UNSHOWN = lazy_pattern(
    rf"<(?:{_ELEMENTS})\b"
    r"[^>\n]{0,160}(?:display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*[01](?:px|pt|em)?\b|opacity\s*:\s*0(?:\.0+)?\b|color\s*[:=]\s*[\"']?(?:white|#fff(?:fff)?\b|transparent)|\bhidden\b)[^>\n]{0,100}>([^<]{8,2000})"
)


def _hits_in_comments(lowered: bytes) -> Iterator[_Hit]:
    """Yield orders in parts of a page that are not shown to a reader but are sent to a model."""
    plain = lowered.decode("utf-8", "replace")
    # Found once: a page may have as many comments as it has room for.
    fences = [match.end() for match in re.finditer("\n```", plain)]
    for at, inner in _unshown_parts(plain):
        if (bisect_right(fences, at) + plain.startswith("```")) % 2 == 1 or _is_code(plain, at):
            continue
        inner = inner[:4000]
        acts = {match[0] for match in pattern_of(_COMMENT_ACTS).finditer(inner)}
        part = inner.encode("utf-8", "replace")
        signs = [hit for hit in _Look(part).hits(is_page=False) if RULES[hit.rule].severity != "info"]
        loud = len(acts) >= 2 and pattern_of(_COMMENT_ORDERS).search(inner) and acts - _MILD
        if signs or loud or hides_orders(inner):
            says = "hides orders for a model in a comment or in text that is not shown"
            place = _place(plain.encode("utf-8", "replace"), len(plain[:at].encode("utf-8", "replace")))
            yield _Hit("security-hidden-instructions", *place, says, signs[0].evidence if signs else inner)


def _unshown_parts(plain: str) -> Iterator[tuple[int, str]]:
    at = plain.find("<!--")
    while at >= 0 and (end := plain.find("-->", at + 4)) >= 0:
        yield at, plain[at + 4 : end]
        at = plain.find("<!--", end)
    if at >= 0:
        yield at, plain[at + 4 :]
    if "]:" in plain:
        for match in _MARKDOWN_COMMENT.finditer(plain):
            yield match.start(1), match[1]
    if "style" in plain or "hidden" in plain or "color" in plain:
        for match in _UNSHOWN.finditer(plain):
            yield match.start(1), match[1]


def _is_code(plain: str, at: int) -> bool:
    """Return whether a comment stands between backticks, where a reader sees it."""
    end = plain.find("-->", at)
    return plain[at - 1 : at] == "`" and plain[end + 3 : end + 4] == "`"


_GAP = b"\n" * 50
_FAR = lazy_pattern(rb"\n[^|\n][^\n]{0,300}?\S[ \t]{180,}\S")


def _hits_in_gaps(data: bytes) -> Iterator[_Hit]:
    """Yield text that is far below or far to the right of all other, where nobody scrolls."""
    if b"\r" in data and b"\r\n\r\n\r\n" in data:
        data = data.replace(b"\r\n", b"\n")
    if b"\n \n \n" in data:
        data = re.sub(rb"(?m)^[ \t]+$", b"", data)
    at = data.find(_GAP)
    if at >= 0 and (rest := data[at:].lstrip(b"\n")).strip():
        line = data.count(b"\n", 0, len(data) - len(rest)) + 1
        yield _Hit("security-hidden-text", line, 1, "text follows a long run of empty lines", _shown(rest))
    if b" " * 180 in data and (far := _FAR.search(data)):
        line = data.count(b"\n", 0, far.end()) + 1
        yield _Hit("security-hidden-text", line, 1, "text follows a long run of blanks", _shown(data[far.end() - 1 :]))


def _shown(data: bytes) -> str:
    return data[: 2 * _EVIDENCE].decode("utf-8", "replace")


# Encoded text ---------------------------------------------------------------------------------------

_BASE64 = lazy_pattern(r"[A-Za-z0-9+/_-]{24,}={0,2}")
_RUN = b"a" * 24
_AS_RUN = bytes(97 if (chr(c).isalnum() and c < 128) or c in b"+/_-" else 32 for c in range(256))
"""The table that makes every character of base64 the same, so that a run of them is found."""
_CELL = lazy_pattern(rb"`[A-Za-z0-9+/]{24,}={0,2}`")
_CELLS = lazy_pattern(r"[`\"']([A-Za-z0-9+/]{16,}={0,2})[`\"']")
"""Encoded text in the cells of a table, or in parts that are joined."""
_HEX = tuple(
    (mark, lazy_pattern(f"{re.escape(mark)}[0-9a-fA-F]{{2}};?(?:{re.escape(mark)}[0-9a-fA-F]{{2}};?){{{least},2000}}"))
    for mark, least in (("\\x", 5), ("\\u00", 5), ("%", 7), ("&#x", 5))
)
_OCTAL = lazy_pattern(r"\\[0-3][0-7]{2}(?:\\[0-3][0-7]{2}){5,}")
_HEX_DIGITS = 40
_BARE_HEX = lazy_pattern(rf"(?<![0-9A-Za-z])(?:[0-9a-fA-F]{{2}}){{{_HEX_DIGITS // 2},}}(?![0-9A-Za-z])")
_CODES = (
    ("hr(", lazy_pattern(r"hr\(\s?\d{2,3}\s?\)(?:\s?[+.&]?\s?[cC]hr\(\s?\d{2,3}\s?\)){4,400}")),
    ("[", lazy_pattern(r"\[\s{0,9}\d{2,3}(?:\s{0,9},\s{0,9}\d{2,3}){8,600}")),
    ("(", lazy_pattern(r"\(\s{0,9}\d{2,3}(?:\s{0,9},\s{0,9}\d{2,3}){8,600}")),
)
_SUSPECT = (
    r"\bcurl\b|\bwget\b|https?://|/bin/(?:ba)?sh|\bbash\b|import os|subprocess|os\.system|\beval\b|\bexec\b|socket|powershell|invoke-|iex\b|\.ssh|/dev/tcp|child_process|rm -rf|"
    r"ignore (?:all|previous|prior)|do not tell|system prompt|api[_ ]key|environ|chmod|\bnc\b|credential|instructions"
)
_TURNED = r"https?://\w|\bcurl -|\bcurl http|\bwget |/bin/(?:ba)?sh|import os|subprocess|\beval\(|powershell|/dev/tcp"
_QUOTED = lazy_pattern(r"[\"']([^\"'\n]{12,300})[\"']")
_FOREIGN_WORDS = frozenset(
    b"regras utilizador istruzioni regole consignes instrucciones ignora olvida olvide descarta descarte omite omita"
    b" anula haz haga usuario usuaria ignoriere ignorieren ignorier vergiss vergesse missachte umgehe benutzer nutzer"
    b" benutzern heimlich oublie oubliez ignorez utilisateur utente insu".split()
)
"""Tokens of orders in other languages that are spelt in ASCII."""

_DECODERS = frozenset(
    b"base64 b64decode b64 atob eval exec fromcharcode frombase64string rot13 encodedcommand marshal xxd unhexlify"
    b" fromhex decode decoded x63 x62 x68 x2f x20 u0063 rev codecs chr 2f2f payload".split()
)
"""Tokens of texts that decode something."""

_SHELLS = frozenset(b"ifs bash sh curl wget eval nc".split())
"""Tokens of pages that may hold commands for a shell."""


def _each(head: bytes, last: Iterable[int]) -> tuple[bytes, ...]:
    return tuple(head + bytes([byte]) for byte in last)


_UNSEEN, _OTHER_LETTERS, _FOREIGN_LETTERS, _FOREIGN_TOKEN, _COMMENT, _GAPS, _ENCODED, _SPELT, _ELEMENT = range(9)
_MARKS = (
    # Bytes that begin or are a character which a reader may not see; `hidden_text` decides.
    Mark(
        (
            *_each(b"\xe2\x80", (*range(0x8B, 0x90), *range(0xAA, 0xAF))),
            *_each(b"\xe2\x81", range(0xA0, 0xB0)),
            *_each(b"\xe1\x85", (0x9F, 0xA0)),
            *(b"\xe2\xa0\x80", b"\xf3\xa0", b"\xc2\xad", b"\xe3\x85\xa4", b"\xef\xbe\xa0", b"\xcd\x8f"),
        )
    ),
    Mark(_each(b"", (*_GREEK_TO_ARMENIAN, 0xEF, 0xF0))),
    # What begins a letter of Cyrillic, Chinese, Japanese or Korean.
    Mark(_each(b"", (0xD0, *range(0xE3, 0xEE)))),
    Mark(tokens=tuple(sorted(_FOREIGN_WORDS))),
    Mark((b"<!--", b"\n[//", b"]: #")),
    Mark((b"\n" * 50, b" " * 180, b"\n \n \n", b"\r\n\r\n\r\n")),
    Mark(tokens=tuple(sorted(_DECODERS))),
    Mark(tokens=tuple(sorted(_SHELLS))),
    Mark(tuple(f"<{name}".encode() for name in _ELEMENTS.split("|"))),
    # What signs in sections and blocks are asked about.
    Mark(PROSE_WORDS, tuple(sorted(PROSE_TOKENS))),
    Mark((*CODE_WORDS, *INTENT_WORDS), tuple(sorted(CODE_TOKENS | INTENT_TOKENS))),
    *(Mark(tuple(word.encode() for word in words.split())) for _, _, words, _ in FOREIGN),
)
"""What a text is asked for before anything is tried; those of other languages are the last ones."""

_SEARCH = WordSearch(_MARKS)


@cache
def _vocabulary() -> frozenset[bytes]:
    words = frozenset().union(*(word.tokens for found in words_by_token().values() for word in found))
    return words.union(*(mark.tokens for mark in _MARKS))


def _hits_in_decoded(data: bytes) -> Iterator[_Hit]:
    """Yield runs of encoded text that decode to commands, addresses or orders."""
    text = data.decode("utf-8", "replace")
    for at, suspect, inner in _decodings(text, data):
        if pattern_of(suspect).search(inner.lower()):
            place = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
            yield _Hit("security-encoded-payload", *place, "is encoded text that decodes to", inner)


def _decodings(text: str, data: bytes) -> Iterator[tuple[int, str, str]]:
    """Yield the offset of each run of encoded text, the pattern that makes it suspect, and what it decodes to.

    `data` are the bytes of the text.
    """
    for at, word in _long_words(text) if _RUN in data.translate(_AS_RUN) else ():
        for match in _BASE64.finditer(word):
            if (inner := _readable(_from_base64(match[0]))) is not None:
                again = _BASE64.fullmatch(inner.strip())
                yield at, _SUSPECT, (again and _readable(_from_base64(again[0]))) or inner
        if len(word) >= _HEX_DIGITS and (digits := _BARE_HEX.search(word)):
            yield at, _SUSPECT, _readable(bytes.fromhex(digits[0])) or ""
    if (cells := _CELLS.findall(text)) and len(cells) > 1:
        joined = "".join(cell.rstrip("=") for cell in cells[:SECURITY_WINDOWS])
        yield text.find(cells[0]), _SUSPECT, _readable(_from_base64(joined)) or ""
    for match in _each_match(_HEX, text):
        pairs = re.findall("[0-9a-fA-F]{2}", re.sub(r"\\u00|\\x|%|&#x", " ", match[0]))
        yield match.start(), _SUSPECT, _readable(bytes(int(pair, 16) for pair in pairs)) or ""
    if "\\1" in text:
        for match in _OCTAL.finditer(text):
            codes = [int(code, 8) for code in match[0].split("\\")[1:]]
            yield match.start(), _SUSPECT, _readable(bytes(code & 255 for code in codes)) or ""
    for match in _each_match(_CODES, text):
        numbers = [int(number) for number in re.findall(r"\d{2,3}", match[0])]
        if all(9 <= number < 127 for number in numbers):
            yield match.start(), _SUSPECT, "".join(map(chr, numbers))
    yield from _turned(text, data.lower())
    for at, inner in unmasked(text):
        yield at, f"{_SUSPECT}|{STRONG_SECRET}", inner


def _each_match(rows: Iterable[tuple[str, re.Pattern[str]]], text: str) -> Iterator[re.Match[str]]:
    """Yield the first matches of each pattern whose mark a text has."""
    for mark, pattern in rows:
        if mark in text:
            yield from islice(pattern.finditer(text), SECURITY_WINDOWS)


def _long_words(text: str) -> Iterator[tuple[int, str]]:
    """Yield the words of a text that are long enough to be encoded, as many as are looked at."""
    at = 0
    words = text.split()
    for word in islice(compress(words, map(len(_RUN).__le__, map(len, words))), SECURITY_WINDOWS):
        at = text.find(word, at)
        yield at, word
        at += len(word)


def _turned(text: str, lowered: bytes) -> Iterator[tuple[int, str, str]]:
    """Yield texts in quotes backwards, or with letters rotated, where a program does that; `lowered` are its bytes."""
    if "[::-1]" in text or "| rev" in text or "|rev" in text or "reverse()" in text:
        for match in _QUOTED.finditer(text):
            yield match.start(), _TURNED, match[1][::-1]
    if b"rot13" in lowered or b"rot_13" in lowered or b"n-za-m" in lowered:
        import codecs

        for match in _QUOTED.finditer(text):
            yield match.start(), _TURNED, codecs.decode(match[1], "rot13")


def _from_base64(source: str) -> bytes | None:
    source = source.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return b64decode(source + "=" * (-len(source) % 4), validate=True)
    except (NotBase64, ValueError):
        return None


def _readable(data: bytes | None) -> str | None:
    """Return decoded bytes as text if they are one."""
    if not data or len(data) < 10:
        return None
    if data[1::2].count(0) > len(data) // 3:
        data = data.replace(b"\0", b"")
    text = data.decode("utf-8", "replace")
    return None if _UNREADABLE.search(text, 0, 400) else text


_UNREADABLE = lazy_pattern("[\ufffd\0-\x08\x0b\x0c\x0e-\x1f]")


# Broken spelling ------------------------------------------------------------------------------------

_BROKEN = (
    (b"$", lazy_pattern(r"\$(?:\{?ifs|'\\|\{?\w{1,20}\}?\$\{?\w|[@*]\w|\(\)\w)")),
    (b"''", lazy_pattern(r"''(?<=\w'')\w")),
    (b'""', lazy_pattern(r'""(?<=\w"")\w')),
    (b"\\", lazy_pattern(r"\\(?<=[a-z]\\)[a-z]{1,}(?<!\\n)(?=[\s\\\w])")),
    (b"{", lazy_pattern(r"\{\w+,[^\s{}]{1,60}\}")),
    (b"+", lazy_pattern(r"\+(?<=[\"'] \+) ?[\"']|\+(?<=[\"']\+)[\"']")),
    (b"$", lazy_pattern(r"\|\s?\$\{?\w")),
    (b"'", lazy_pattern(r"'\w{1,3}'(?<=\w'\w')\w|'\w{2,3}'\w")),
    (b'"', lazy_pattern(r'"\w{1,3}"(?<=\w"\w")\w|"\w{2,3}"\w')),
    (b"$", lazy_pattern(r"\n[ \t]{0,8}\$\{?\w+\}?\s")),
)
"""Signs that a command is put together from parts: what a text must have, and the pattern."""

_ASSIGNED = lazy_pattern(
    r"(?:^|[\s;&(])(?:export\s+|local\s+|const\s+|let\s+|var\s+|\$)?(\w{1,24})\s?=\s?([\"']?)([\w./:@|<>+\- ]{1,60}?)\2(?=[\s;&)]|$)",
    re.MULTILINE,
)


def _hits_in_spelling(lowered: bytes, known: Sequence[_Hit]) -> Iterator[_Hit]:
    """Yield commands that appear only after a shell has put their words together."""
    patterns = [pattern for mark, pattern in _BROKEN if mark in lowered]
    plain = lowered.decode("utf-8", "replace")
    marks = {match.start() for pattern in patterns for match in islice(pattern.finditer(plain), SECURITY_WINDOWS)}
    if not marks:
        return
    values: dict[str, str] | None = None
    seen = {(hit.rule, hit.line) for hit in known}
    for start in sorted({plain.rfind("\n", 0, mark) + 1 for mark in marks})[:SECURITY_WINDOWS]:
        end = plain.find("\n", start)
        line = plain[start : min(end if end >= 0 else len(plain), start + 2000)]
        if values is None and "$" in line:
            values = {match[1]: match[3] for match in islice(_ASSIGNED.finditer(plain), SECURITY_WINDOWS)}
        mended = _mended(line, values or {})
        if mended == line:
            continue
        part = mended.encode("utf-8", "replace")
        for hit in _Look(part).hits(is_page=False):
            number = plain.count("\n", 0, start) + 1
            if (hit.rule, number) not in seen and hit.rule in _COMMAND_RULES:
                seen.add((hit.rule, number))
                says = f"spells a command so that a search misses it; it {hit.says}"
                yield _Hit("security-obfuscated-command", number, 1, says, hit.evidence)


_COMMAND_RULES = frozenset(
    {
        "security-pipe-to-shell",
        "security-download-run",
        "security-reverse-shell",
        "security-exfiltration",
        "security-encoded-payload",
        "security-installer",
        "security-credentials",
        "security-persistence",
        "security-destruction",
    }
)


def _mended(line: str, values: Mapping[str, str]) -> str:
    """Return a line as a shell, or a program that joins texts, would read it."""
    if "$" in line:
        line = re.sub(r"\$'((?:\\x[0-9a-f]{2}|\\[0-7]{3}|[^'\\\n])*)'", lambda m: _unescaped(m[1]), line)
        line = re.sub(r"\$\{?ifs\}?(?:\$\d)?", " ", line)
    if "+" in line:
        line = re.sub(r"[\"']\s*\+\s*[\"']", "", line)
    for _ in range(3 if "$" in line else 0):
        changed = re.sub(r"\$\{?(\w{1,24})\}?", lambda m: values.get(m[1], m[0]), line)
        if changed == line or len(changed) > 4000:
            break
        line = changed
    if "{" in line:
        line = re.sub(r"\{(\w+(?:,[^\s{}]{1,60}){1,8})\}", lambda m: m[1].replace(",", " "), line)
    line = re.sub(r"(?<=\w)(?:''|\"\"|``|\$\(\)|\$@|\$\*)(?=\w)", "", line)
    if "\\" in line:
        line = re.sub(r"\\(?=[a-z])", "", line)
    if "'" not in line and '"' not in line:
        return line
    line = re.sub(r"\b(\w{1,8})([\"'])(\w{1,8})\2(\w{0,8})", r"\1\3\4", line)
    return re.sub(r"(?:^|(?<=[\s|;&(]))[\"'](\w{1,12})[\"'](\w{0,12})", r"\1\2", line)


def _unescaped(text: str) -> str:
    return re.sub(r"\\x([0-9a-f]{2})|\\([0-7]{3})", lambda m: chr(int(m[1], 16) if m[1] else int(m[2], 8)), text)


# Across files ---------------------------------------------------------------------------------------

_READS = (
    rf"{STRONG_SECRET}|dict\(os\.environ\)|os\.environ\.copy\(\)|os\.environ\.items|json\.dumps\([^\n]{{0,20}}os\.environ|json\.stringify\(process\.env|object\.(?:entries|keys)\(process\.env|\bprintenv\b|/\.ssh\b|/\.aws\b"
    r"|\bpynput\b|keyboard\.listener|\bpbpaste\b|xclip[^\n]{0,20}-o|screencapture|imagegrab\.grab|(?:open|read\w*|path)\([^)\n]{0,60}\.env\b[\"']|os\.walk\(\s*(?:os\.path\.expanduser|path\.home)|(?:glob|find)\b[^\n]{0,60}\.(?:pem|env|kdbx|key|tfstate|tfvars|p12|ovpn)\b"
    r"|get-clipboard|getclipboard|metamask|/local storage/leveldb|\bwallet\.dat"
)
_KEYS = r"aws_secret_access_key|aws_access_key_id|github_token|gh_token|openai_api_key|anthropic_api_key|npm_token|stripe_(?:secret|api)_key|google_api_key|slack_(?:bot_)?token|database_url|azure_client_secret|hf_token|gitlab_token|private_key"
_ANY_KEY = rf"{_KEYS}|\w{{0,30}}(?:api_key|secret|token|password)\b|process\.env|os\.environ|getenv"
_GETS = r"requests\.get|urlopen|urlretrieve|httpx\.get|fetch\(|axios|https?\.get\(|net::http|\bcurl\b|\bwget\b|invoke-webrequest|downloadfile|downloadstring"
_WRITES = r"write_text|write_bytes|open\([^)\n]{0,120}[\"'][wa]\+?b?[\"']|writefile|appendfile|json\.dump\(|>>?\s*[\"']?[~$./\w]|\btee\b|sed -i|shutil\.(?:copy|move)|copyfile|os\.symlink|\bcp\b|\bln -s"
_SETTINGS = r"\.claude/settings(?:\.local)?\.json|\.claude\.json|\.codex/config\.toml|\.cursor/(?:mcp|permissions|cli-config)\.json|\.gemini/settings\.json|\.openclaw/openclaw\.json|\.(?:claude|agents|codex|openclaw)/(?:skills|commands|agents|hooks)\b|(?:~|home\(\)|homedir\(\)|\$home|\.claude|\.codex|\.\.)/(?:claude|agents|soul|memory|gemini)\.md|\bsoul\.md\b"
_STARTERS = r"\.bashrc|\.zshrc|\.bash_profile|\.zprofile|\.zshenv|/\.profile\b|authorized_keys|launchagents|systemd/(?:user|system)|/etc/cron|\.git/hooks|\.config/autostart|start menu/programs/startup|currentversion.{1,3}run\b"
_RUNS = r"\bexec\(|\beval\(|new function\(|\.runin(?:this|new)context|os\.system\(|__import__\([\"']os|\bcompile\("
_DECODES = r"b64decode|\batob\(|base64\s+(?:-d|--decode)|unhexlify|fromhex|fromcharcode|codecs\.decode|zlib\.decompress|marshal\.loads|decodebytes|buffer\.from\([^)\n]{1,200}[\"'](?:base64|hex)"
_STARTS = r"subprocess\.|popen|os\.system|os\.exec|child_process|spawn\(|execfile|execsync|start-process|os\.startfile"

_PAIRS = (
    (
        "security-exfiltration",
        _KEYS,
        rf"https?://(?:{ODD_HOST})",
        "takes keys from the environment, and sends data to a host without a name of its own",
    ),
    ("security-agent-settings", _SETTINGS, _WRITES, "writes to the settings, skills or memory of an agent"),
    ("security-persistence", _STARTERS, _WRITES, "writes to a file that starts programs later"),
    ("security-pipe-to-shell", _GETS, _RUNS, "loads text from the network, and runs text as a program"),
    ("security-encoded-payload", _DECODES, _RUNS, "decodes text, and runs text as a program"),
    (
        "security-download-run",
        _GETS,
        r"\bchmod\b[^\n]{0,40}(?:\+x|0o?[57]\d\d)|s_i[rwx]exec|start-process|os\.startfile|\bchmod\b",
        "loads a file from the network, and makes it executable",
    ),
    (
        "security-exfiltration",
        r"\.git/config|git diff|git log|\bsource code\b|os\.walk|rglob|glob\(",
        rf"https?://(?:{ODD_HOST})",
        "collects files, and sends data to a host without a name of its own",
    ),
)
"""What is a sign only together in one program: rule, both parts, and what it means."""


def _hits_in_program(path: str, text: str, facts: dict[str, list[tuple[str, _Hit]]]) -> Iterator[_Hit]:
    """Yield signs of which a program has both parts in different lines; note what it reads and sends."""
    for key, pattern in (("read", _READS), ("send", SENDS)):
        if match := pattern_of(pattern).search(text):
            place = text.count("\n", 0, match.start()) + 1, 1
            facts[key].append((path, _Hit("security-exfiltration", *place, "", match[0])))
    for rule, one, other, says in _PAIRS:
        first = pattern_of(one).search(text)
        if first and (second := pattern_of(other).search(text)):
            line = text.count("\n", 0, first.start()) + 1
            rule = rule_in_context(rule, text.encode("utf-8", "replace"), first.start(), first[0], is_page=False)
            yield _Hit(rule, line, 1, says, f"{first[0]} ... {second[0]}")
    for sign in program_signs(text):
        yield _Hit(sign.rule, *_place(text.encode("utf-8", "replace"), sign.at), sign.says, sign.evidence)


def _across_files(
    found: Sequence[SecurityFinding], facts: Mapping[str, list[tuple[str, _Hit]]]
) -> Iterator[SecurityFinding]:
    """Yield a finding if programs of a skill together read secrets and send something."""
    if facts["read"] and facts["send"] and not any(one.rule == "security-exfiltration" for one in found):
        path, hit = facts["read"][0]
        other, sends = facts["send"][0]
        says = f"reads secrets of this machine, and the skill sends data ({other}, line {sends.line})"
        yield _finding(path, hit._replace(says=says))
