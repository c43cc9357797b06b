"""Divide a query into segments: sentences, lines, and blocks of machine text such as traces, logs and code."""

from collections.abc import Iterator, Sequence
from typing import Literal

from skillshelf.core.limits import QUERY_SEGMENTS
from skillshelf.core.patterns import lazy_pattern
from skillshelf.core.records import NamedTuple

__all__ = ["Kind", "Segment", "kept_segments", "segments"]


Kind = Literal["request", "prose", "courtesy", "machine"]
"""Who speaks in a segment: a person who asks, tells or is polite, or a machine."""


class Segment(NamedTuple):
    """A part of a query, and its kind."""

    text: str
    kind: Kind


def _any_of(*phrases: str) -> str:
    """Return a pattern for some phrases, each a pattern itself, that end at the end of a word."""
    return rf"(?:{'|'.join(phrases)})\b"


_IGNORE_CASE = 2
"""The flag of `re`, which is imported at the first use of a pattern only."""
_FENCE = lazy_pattern(r"\s*(?:```|~~~)")
_QUOTED = lazy_pattern(r"\s*>+ ?")
"""A mail quotes a mail with these, and a chat a message."""
_SENTENCE_END = lazy_pattern(
    r"(?<=[.!?;:\u2026])[\"')\]\u201d\u2019]*\s+|(?<=[\u3002\uff01\uff1f\uff1b])|\s+[\u2013\u2014]\s+"
)
_CLAUSES = _any_of(
    *("but", "so", "because", "although", "though", "anyways?", "also", "btw", "since", "while", "which", "thanks?"),
    *("cheers", "hey", "hi", "hello", "and then", "and so", "(?:can|could|would|will) you", "please", "pls"),
    *("i need", "i want", "i would like", "i'd like", "i was wondering", "we need", "we want", "help me"),
    *("how (?:do|can|to)", "what is", "what's", "let me know"),
)
_CLAUSE_END = lazy_pattern(rf"(?<=[,\u3001\uff0c])\s*|\s+(?={_CLAUSES})", _IGNORE_CASE)

_WISH = (
    r"(?:i|we)(?:'d| would| really|'m| am| are|'re)* (?:need|want|like|love|have|trying|looking|going|wondering|hoping)"
    r" (?:to|you|a|an|the|some|for|how|if|help)"
)
_ASKED = _any_of(
    *("(?:can|could|would|will) (?:you|we|i|someone|anyone)", "please", "pls", "plz", "help", _WISH, "let's"),
    *("how (?:do|can|should|to|would|does)", "(?:what|which)(?:'s| is| are)? (?:the )?(?:best|right|way)"),
    "(?:the|my|our) (?:task|ask|request|question|goal) is",
)
_ASKED_UNSPACED = "[请帮怎如]|我想|需要|想要|为什么|ください|したい|教えて|ほしい|方法|해줘|싶|어떻게|해주세요|부탁"
_REQUEST = lazy_pattern(rf"[?\uff1f]|\b{_ASKED}|{_ASKED_UNSPACED}", _IGNORE_CASE)
# A sentence that begins with one of these asks for something, with or without a sign.
_VERBS = (
    "add adjust analy[sz]e annotate answer apply assess audit automate build calculate change check clean clone collect"
    " combine compare compile complete compose compress compute configure connect convert copy create crop customi[sz]e"
    " debug define delete deploy describe design detect develop diagnose document download draft draw edit embed enable"
    " estimate evaluate examine explain explore export extract fetch fill filter find fix forecast format generate get"
    " give guide help host identify implement import improve initiali[sz]e inspect install integrate investigate label"
    " launch list locali[sz]e look make manage map measure merge migrate model monitor move open optimi[sz]e"
    " organi[sz]e outline package parse patch perform plan plot port predict prepare process produce profile propose"
    " protect provide publish pull push query rank read rebuild recommend record redesign reduce refactor remove rename"
    " render replace report reproduce research resize resolve restore restructure review rewrite run scaffold scan"
    " schedule scrape search secure send set setup share show simplify simulate solve sort split start structure style"
    " suggest summari[sz]e sync tell test track train transcribe transform translate troubleshoot tune turn update"
    " upgrade upload use validate verify visuali[sz]e walk watch wire write"
)
_FIRST_WORDS = "ok|okay|now|so|then|next|first|also|and|just|kindly|please|hey|hi"
_IMPERATIVE = lazy_pattern(
    rf"\W*(?:(?:{_FIRST_WORDS}),? )*{_any_of(*_VERBS.split())}",
    _IGNORE_CASE,
)
_POLITE = _any_of(
    *("hi", "hello", "hey", "dear", "good (?:morning|afternoon|evening|day)", "greetings", "hope (?:you|this|all)"),
    *("many", "thanks?", "thx", "cheers", "appreciate", "much appreciated", "(?:kind |best )?regards", "best wishes"),
    *("sincerely", "yours", "have a (?:good|great|nice)", "talk (?:soon|later)", "no (?:rush|hurry)"),
    *("take your time", "sorry", "apologies", "let me know", "looking forward", "have fun", "see you"),
)
_POLITE_UNSPACED = "你好|您好|谢谢|感谢|こんにちは|お疲れ|ありがとう|よろしく|안녕|감사|고맙"
_COURTESY = lazy_pattern(rf"\s*(?:{_POLITE}|{_POLITE_UNSPACED})", _IGNORE_CASE)

# What a person writes: a word of letters, perhaps with a quote or a hyphen inside and a sign of punctuation after it.
_SPOKEN = (
    r"[A-Z]?[^\W\d_A-Z]{1,24}(?:['\u2019-][^\W\d_]{1,20})*",
    r"I|A|I'[a-z]{1,3}",
    r"[A-Z]{2,6}s?",
    r"\d{1,4}%?",
)
_PERSON = lazy_pattern(
    rf"[\"'(\[*\u201c\u2018]*(?:{'|'.join(_SPOKEN)})[\"')\]*\u201d\u2019]*[.,;:!?\u2026]*[\"')]*|[-\u2013\u2014&+*]"
)
_LOG_STARTS = (
    *(r"at [\w.$<>/@]+[ (:]", 'File "', "Traceback ", "Caused by:", r"\.\.\. \d+ more", r"goroutine \d+", r"\d+: 0x"),
    *(r"\[?\d{4}-\d\d-\d\d[T ]", r"\[?\d\d:\d\d:\d\d", r"\[[A-Z]{3,8}\]", r"npm ERR!", r"error\[E\d+\]"),
    *(
        r"(?:INFO|WARN|WARNING|ERROR|DEBUG|FATAL|TRACE)\b",
        r"[\w.]*(?:Error|Exception|Warning): ",
        "thread '",
        "panic: ",
    ),
    *("[+-]{3} [ab]/", "@@ ", "diff --git", "index [0-9a-f]{7}", r"#\d+ +\d", r"\$ \S"),
    *("(?:From|To|Cc|Subject|Date|Sent): ", "On .{6,80} wrote:$", "_{5}", "={5}", "-{5}"),
)
_LOG = lazy_pattern(rf"\s*(?:{'|'.join(_LOG_STARTS)})")
_UNSPACED_RUN = lazy_pattern("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2}")
_PROSE_SHARE = 0.6
"""The share of words in a line that a person would write; with less, it is machine text."""
_LONG_WORDS = 20
"""From this number of words on, a sentence is divided at its clauses."""
_WINDOW_WORDS = 14
_KEY_CHARS = 40
"""A longer word that stands alone in a line is a key or an encoded file."""
_SPOKEN_CHARS = 80
"""A longer word is none of a person, whatever it looks like."""


def segments(text: str) -> list[Segment]:
    """Return the segments of a text in order; consecutive lines of machine text are one segment."""
    found: list[Segment] = []
    block: list[str] = []
    for line, is_machine in _lines(text):
        if is_machine:
            block.append(line)
            continue
        found += _block(block)
        block = []
        found += [Segment(part, _kind(part)) for part in _sentences(line)]
    return found + list(_block(block))


def _block(lines: Sequence[str]) -> Iterator[Segment]:
    if lines:
        yield Segment("\n".join(lines), "machine")


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the lines that are not blank, and whether each is machine text; a paragraph of prose is one line."""
    in_fence = False
    prose: list[str] = []
    for line in text.splitlines():
        if _FENCE.match(line):
            in_fence = not in_fence
            continue
        if quoted := _QUOTED.match(line):
            line = line[quoted.end() :]
        is_machine = bool(line.strip()) and (in_fence or _is_machine(line))
        if prose and (is_machine or not line.strip()):
            yield " ".join(prose), False
            prose = []
        if is_machine:
            yield line, True
        elif line.strip():
            # A pattern that begins with blanks takes the square of their number.
            prose.append(" ".join(line.split()))
    if prose:
        yield " ".join(prose), False


def _is_machine(line: str) -> bool:
    if _LOG.match(line):
        return True
    words = line.split()
    if _UNSPACED_RUN.search(line):
        return False
    written = sum(len(word) <= _SPOKEN_CHARS and _PERSON.fullmatch(word) is not None for word in words)
    return len(words[0]) > _KEY_CHARS if len(words) == 1 else written < _PROSE_SHARE * len(words)


def _sentences(line: str) -> Iterator[str]:
    for sentence in filter(None, map(str.strip, _SENTENCE_END.split(line))):
        words = sentence.split()
        if len(words) < _LONG_WORDS:
            yield sentence
            continue
        yield from _windows([part for part in _CLAUSE_END.split(sentence) if part and part.strip()])


def _windows(clauses: Sequence[str]) -> Iterator[str]:
    """Yield clauses, short ones together with the next, long ones as overlapping windows."""
    waiting = ""
    for clause in clauses:
        waiting = f"{waiting} {clause}".strip()
        words = waiting.split()
        if len(words) < _WINDOW_WORDS // 2:
            continue
        if len(words) <= _LONG_WORDS:
            yield waiting
        else:
            step = _WINDOW_WORDS // 2
            yield from (" ".join(words[at : at + _WINDOW_WORDS]) for at in range(0, len(words) - step, step))
        waiting = ""
    if waiting:
        yield waiting


def _kind(text: str) -> Kind:
    if _COURTESY.match(text) and len(text.split()) < _WINDOW_WORDS:
        return "courtesy"
    return "request" if _REQUEST.search(text) or _IMPERATIVE.match(text) else "prose"


_ORDER: Sequence[Kind] = ("request", "prose", "machine", "courtesy")


def kept_segments(found: Sequence[Segment]) -> tuple[Sequence[Segment], int]:
    """Return at most QUERY_SEGMENTS in order, and the number left out: requests stay first, then from both ends."""
    if len(found) <= QUERY_SEGMENTS:
        return found, 0
    last = len(found) - 1
    by_use = sorted(range(len(found)), key=lambda n: (_ORDER.index(found[n].kind), min(n, last - n), n))
    kept = sorted(by_use[:QUERY_SEGMENTS])
    return [found[n] for n in kept], len(found) - QUERY_SEGMENTS
