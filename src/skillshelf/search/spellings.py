"""Bring different spellings of a word together: British and American, with and without accents, joined and apart."""

from collections.abc import Iterator

from skillshelf.core.patterns import lazy_pattern
from skillshelf.core.records import NamedTuple

__all__ = ["Compound", "american", "compounds", "joined_words", "signs", "without_accents", "without_signs"]

# The same rules change a text and a query, so a word that only looks British, such as `promise`, is still found.
_ENDING = lazy_pattern(
    r"(?<=[a-z]{3}i)s(?=(?:e|es|ed|er|ers|ing|ation|ations|able)$)|(?<=[a-z]{2}y)s(?=(?:e|es|ed|er|ers|ing)$)"
)
_OUR = (
    "arm behavi cand clam col demean enam endeav fav ferv flav glam harb hon hum lab misbehavi misdemean neighb od parl"
    " ranc rig rum sav splend succ tum val vap vig discol"
)
_RE = "calib cent epicent fib goit lit lust meag sab scept somb spect theat kilomet centimet millimet met"
_DOUBLED = (
    "bevel cancel channel chisel counsel dial duel equal fuel fulfil grovel initial jewel label level libel marshal"
    " marvel model panel pedal quarrel refuel rival shovel signal spiral total towel travel trial tunnel"
    " unravel enrol instal"
)
_OG = "anal catal dial monol epil prol ideol"
_BEFORE_OUR = frozenset(_OUR.split())
# The ends of British words and of American ones, with the beginnings of the words that have them.
_ENDS = (
    *((end, american, frozenset(_RE.split())) for end, american in (("re", "er"), ("res", "ers"), ("red", "ered"))),
    *((f"l{end}", end, frozenset(_DOUBLED.split())) for end in ("ed", "ing", "ings", "er", "ers", "ation")),
    *((f"og{end}", f"og{end[2:]}", frozenset(_OG.split())) for end in ("ue", "ues", "ued")),
    ("oguing", "oging", frozenset(_OG.split())),
)
_FIRST_LETTERS = frozenset(
    word[:2] for word in f"{_OUR} {_RE} {_DOUBLED} analogue prologue monologue ideologue".split()
)
_PAIRS = (
    "licence:license licences:licenses licenced:licensed defence:defense offence:offense pretence:pretense"
    " practise:practice practised:practiced practising:practicing programme:program programmes:programs"
    " cheque:check cheques:checks grey:gray greyscale:grayscale artefact:artifact artefacts:artifacts"
    " judgement:judgment acknowledgement:acknowledgment enrolment:enrollment fulfilment:fulfillment fulfil:fulfill"
    " instalment:installment skilful:skillful ageing:aging manoeuvre:maneuver mould:mold aluminium:aluminum"
    " sceptical:skeptical aeroplane:airplane tyre:tire tyres:tires jewellery:jewelry storey:story storeys:stories"
    " learnt:learned spelt:spelled encyclopaedia:encyclopedia paediatric:pediatric orthopaedic:orthopedic"
    " anaesthesia:anesthesia haematology:hematology oestrogen:estrogen foetal:fetal diarrhoea:diarrhea"
    " pyjamas:pajamas plough:plow cosy:cozy moustache:mustache draught:draft draughts:drafts enrol:enroll"
    " instal:install distil:distill ise:ize"
)
_AMERICAN = {british: american for british, _, american in (pair.partition(":") for pair in _PAIRS.split())}


def american(word: str) -> str:
    """Return the American spelling of an English word in small letters; any other word mostly as it is."""
    if word in _AMERICAN:
        return _AMERICAN[word]
    if "is" in word or "ys" in word:
        word = _ENDING.sub("z", word)
    return _without_british_ends(word) if word[:2] in _FIRST_LETTERS else word


def _without_british_ends(word: str) -> str:
    # Without a pattern: this one would take as long to compile as a search.
    start, our, rest = word.partition("our")
    if our and start in _BEFORE_OUR:
        return f"{start}or{rest}"
    for end, american_end, starts in _ENDS:
        if word.endswith(end) and word[: -len(end)] in starts:
            return word[: -len(end)] + american_end
    return word


_ACCENTED = lazy_pattern("[\u00c0-\u024f\u1e00-\u1eff]")
_PLAIN = str.maketrans({"ß": "ss", "ø": "o", "Ø": "O", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "ł": "l", "đ": "d"})


def without_accents(text: str) -> str:
    """Return a text with plain Latin letters; letters of other scripts keep their marks."""
    if not _ACCENTED.search(text):
        return text
    from unicodedata import combining, normalize

    kept: list[str] = []
    base = ""
    for character in normalize("NFD", text.translate(_PLAIN)):
        if not combining(character):
            base = character
        elif base.isascii():
            continue
        kept.append(character)
    return normalize("NFC", "".join(kept))


_BEFORE_SHARP = frozenset("cCfF")
_PLUS = ("c" + 2 * "+", "C" + 2 * "+")
_NET = (".net", ".NET", ".Net")
_SCRIPT_TEXT = "node vue next nuxt three express react angular chart nest ember alpine discord socket moment backbone"
_SCRIPTS = frozenset(_SCRIPT_TEXT.split())
"""Names that are written with and without `.js`; other words before it are names of files."""
_SIGN = lazy_pattern(
    r"(?<![^\W_])(?:(?P<sharp>[cf])#|(?P<plus>c\+\+)|(?P<of>asp|vb|ado|ml)\.net\b|(?P<net>\.net)\b)",
    2,  # re.IGNORECASE
)


def _has_signs(text: str) -> bool:
    # One character is found ten times as fast as two, and many texts have headings.
    if "#" in text and any(before[-1:] in _BEFORE_SHARP for before in text.split("#")[:-1]):
        return True
    return ("+" in text and any(map(text.__contains__, _PLUS))) or any(map(text.__contains__, _NET))


def without_signs(text: str) -> str:
    """Return a text with `csharp` for `C#`, `cpp` for C and two plus signs, `dotnet` for `.NET`."""
    if not _has_signs(text):
        return text
    return _SIGN.sub(lambda match: _SIGN_WORDS[kind := match.lastgroup or ""].format(match[kind].lower()), text)


_SIGN_WORDS = {"sharp": "{}sharp ", "plus": "cpp ", "of": "{} dotnet", "net": "dotnet"}


class Compound(NamedTuple):
    """A place in a text with signs, and the one word that is searched for it."""

    start: int
    end: int
    joined: str


def signs(text: str) -> Iterator[Compound]:
    """Yield the words of a text that are searched for without their signs."""
    if _has_signs(text):
        for match in _SIGN.finditer(text):
            kind = match.lastgroup or ""
            yield Compound(match.start(), match.end(), _SIGN_WORDS[kind].format(match[kind].lower()).split()[-1])


_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_PART_CHARS = 20
# Each begins with a sign, which is found fast, and looks back from there.
_JOINTS = {
    "-": lazy_pattern(r"-(?<=[A-Za-z]-)([A-Za-z]{1,20})"),
    "/": lazy_pattern(r"/(?<=[A-Za-z]/)([A-Za-z]{1,2})(?![\w/]|\.\w)"),
    ".": lazy_pattern(r"\.(?<=[A-Za-z]\.)(js)(?![\w-])", 2),
}


def compounds(text: str) -> Iterator[Compound]:
    """Yield the compounds of a text: `front-end`, `e-mail`, `a/b`, `node.js`; one of three parts gives two."""
    for at, first, second in _joints(text):
        yield Compound(at - len(first), at + 1 + len(second), f"{first}{second}".lower())


def joined_words(text: str) -> list[str]:
    """Return the one word for each compound of a text."""
    return [f"{first}{second}".lower() for _, first, second in _joints(text)]


def _joints(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the places of the signs inside compounds, with the letters before and after each."""
    for sign, pattern in _JOINTS.items():
        for match in pattern.finditer(text) if sign in text else ():
            at = match.start()
            tail = text[max(0, at - _PART_CHARS) : at]
            first = tail[len(tail.rstrip(_LETTERS)) :]
            if sign != "-" and not _is_joint(text, at, first):
                continue
            yield at, first, match[1]


def _is_joint(text: str, at: int, first: str) -> bool:
    """Return whether a slash or a dot is inside a compound, not in a path or before the ending of a file."""
    if text[at] == ".":
        return first.lower() in _SCRIPTS
    before = text[at - len(first) - 1 : at - len(first)]
    return len(first) <= 2 and before not in ("/", ".")
