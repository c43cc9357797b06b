"""Makes harder queries out of clean ones: inside messages, beside traces, misspelled, short, in other languages.

    python bench/search_variants.py --queries queries.jsonl --corpus FOLDER [--kind chat] > variants.jsonl

The same queries give the same variants on every machine. The texts around a query are in `search_texts.toml`
and `search_texts_apart.toml`.
"""

import argparse
import json
import random
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple


def _texts(name: str) -> Mapping[str, Any]:
    return tomllib.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))


TEXTS = _texts("search_texts.toml")
APART = _texts("search_texts_apart.toml")
"""Texts that neither patterns nor constants were chosen with."""

SHORT_CHARS = 140
"""The longest query that is put into a message: a longer one is a message itself."""
PER_QUERY = 3
"""The number of different messages, traces and so on in which a query is asked."""
CJK = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")


class Query(NamedTuple):
    """A query, the paths of the skills that answer it, and the kind of text that surrounds it."""

    text: str
    lang: str
    gold: frozenset[str]
    kind: str = ""


class SkillText(NamedTuple):
    """The name and description of a skill."""

    name: str
    description: str


Variant = Callable[[Sequence[Query], Mapping[str, SkillText]], Iterator[Query]]
"""Clean queries and the skills by path to harder queries."""


def read_queries(path: Path) -> list[Query]:
    """Return the queries of a file of JSON lines."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [Query(line["query"], line["lang"], frozenset(line["gold"])) for line in lines]


def short(queries: Iterable[Query], lang: str | None = "en") -> list[Query]:
    """Return the queries of one language, or of all, that fit into a message."""
    return [query for query in queries if len(query.text) <= SHORT_CHARS and lang in (None, query.lang)]


def _dice(*parts: object) -> random.Random:
    return random.Random("|".join(map(str, parts)))


def _in_turn(query_number: int, kinds: Sequence[str], salt: str) -> list[str]:
    """Return the kinds for one query, so that all kinds occur equally often."""
    order = sorted(kinds, key=lambda kind: _dice(salt, kind).random())
    return [order[(query_number * PER_QUERY + turn) % len(order)] for turn in range(PER_QUERY)]


# Text around a query ------------------------------------------------------------------------------


def clean(queries: Sequence[Query], skills: Mapping[str, SkillText]) -> Iterator[Query]:
    """Yield the queries as they are."""
    yield from queries


def clean_short(queries: Sequence[Query], skills: Mapping[str, SkillText]) -> Iterator[Query]:
    """Yield the queries that the other variants are made of, as they are."""
    yield from short(queries, None)


def chat(queries: Sequence[Query], skills: Mapping[str, SkillText]) -> Iterator[Query]:
    """Yield each query in messages of 60 to 250 words: greeting, something else, the request, thanks."""
    yield from _in_messages(queries, TEXTS["chats"])
    for query in short(queries, None):
        for kind, text in TEXTS.get(f"chats_{query.lang}", {}).items():
            yield query._replace(text=text.replace("{request}", query.text), kind=kind)


def chat_apart(queries: Sequence[Query], skills: Mapping[str, SkillText]) -> Iterator[Query]:
    """Yield each query in messages that were kept apart."""
    return _in_messages(queries, APART["chats"])


def _in_messages(queries: Sequence[Query], chats: Mapping[str, str]) -> Iterator[Query]:
    for number, query in enumerate(short(queries)):
        for kind in _in_turn(number, list(chats), "chat"):
            yield query._replace(text=_message(kind, query.text, chats), kind=kind)


def _message(kind: str, request: str, chats: Mapping[str, str] = TEXTS["chats"]) -> str:
    if kind == "dictated":
        request = " ".join(re.sub(r"[.,;:!?()\"]", " ", request.lower()).split())
    return chats[kind].replace("{request}", request)


def decoy(queries: Sequence[Query], skills: Mapping[str, SkillText]) -> Iterator[Query]:
    """Yield each query in messages that mention another request, which is not meant."""
    for query in short(queries):
        for kind, text in TEXTS["decoys"].items():
            other = _dice("decoy", kind, query.text).choice(TEXTS["decoy_tasks"])
            yield query._replace(text=text.replace("{decoy}", other).replace("{request}", query.text), kind=kind)


def trace(queries: Sequence[Query], skills: Mapping[str, SkillText]) -> Iterator[Query]:
    """Yield each query before or after traces, logs and files, fenced or not."""
    return _beside_traces(short(queries, None), TEXTS["traces"])


def trace_apart(queries: Sequence[Query], skills: Mapping[str, SkillText]) -> Iterator[Query]:
    """Yield each query before or after traces, logs and files that were kept apart."""
    return _beside_traces(short(queries), APART["traces"])


def _beside_traces(queries: Sequence[Query], traces: Mapping[str, str]) -> Iterator[Query]:
    for number, query in enumerate(queries):
        for kind in _in_turn(number, list(traces), "trace"):
            yield query._replace(text=_with_trace(query.text, kind, traces), kind=kind)


def _with_trace(request: str, kind: str, traces: Mapping[str, str] = TEXTS["traces"]) -> str:
    dice = _dice("trace", kind, request)
    text = traces[kind]
    if dice.random() < 0.5:
        text = f"```\n{text}\n```"
    return str(dice.choice(TEXTS["around_trace"])).replace("{trace}", text).replace("{request}", request)


def both(queries: Sequence[Query], skills: Mapping[str, SkillText]) -> Iterator[Query]:
    """Yield each query in messages that also have a trace."""
    return _in_both(queries, TEXTS)


def both_apart(queries: Sequence[Query], skills: Mapping[str, SkillText]) -> Iterator[Query]:
    """Yield each query in messages that also have a trace, both kept apart."""
    return _in_both(queries, APART)


def _in_both(queries: Sequence[Query], texts: Mapping[str, Any]) -> Iterator[Query]:
    chats, traces = texts["chats"], texts["traces"]
    for number, query in enumerate(short(queries)):
        kinds = zip(_in_turn(number, list(chats), "both"), _in_turn(number, list(traces), "paste"), strict=True)
        for kind, paste in kinds:
            text = _with_trace(_message(kind, query.text, chats), paste, traces)
            yield query._replace(text=text, kind=f"{kind} + {paste}")


def harsh(queries: Sequence[Query], skills: Mapping[str, SkillText]) -> Iterator[Query]:
    """Yield each query in messages of 300 to 600 words with sentences about many other things and a trace."""
    for number, query in enumerate(short(queries)):
        chats = _in_turn(number, list(TEXTS["chats"]), "harsh")
        for kind, paste in zip(chats, _in_turn(number, list(TEXTS["traces"]), "pasted"), strict=True):
            dice = _dice("harsh", kind, query.text)
            asides = dice.sample(TEXTS["asides"], dice.randint(11, 17))
            middle = dice.randint(0, len(asides))
            message = _with_trace(_message(kind, query.text), paste)
            parts = [" ".join(asides[:middle]), message, " ".join(asides[middle:])]
            yield query._replace(text="\n\n".join(filter(None, parts)), kind=f"{kind} + {paste}")


# Words of a query ---------------------------------------------------------------------------------

_WORD = re.compile(r"[A-Za-z]+")


def _edited(word: str, dice: random.Random) -> str:
    """Return a word with one letter left out, doubled, replaced or swapped with the next; the first one stays."""
    place = dice.randrange(1, len(word) - 1)
    letter = dice.choice("abcdefghijklmnopqrstuvwxyz")
    return dice.choice(
        [
            word[:place] + word[place + 1 :],
            word[:place] + word[place] + word[place:],
            word[:place] + letter + word[place + 1 :],
            word[:place] + word[place + 1] + word[place] + word[place + 2 :],
        ]
    )


def _misspelled(queries: Sequence[Query], words: int) -> Iterator[Query]:
    for query in short(queries):
        dice = _dice("typo", words, query.text)
        found = [match for match in _WORD.finditer(query.text) if len(match[0]) >= 4]
        text = query.text
        longest = sorted(found, key=lambda match: (-len(match[0]), match.start()))[:words]
        for match in sorted(longest, key=lambda match: -match.start()):
            text = text[: match.start()] + _edited(match[0], dice) + text[match.end() :]
        yield query._replace(text=text)


def typo(queries: Sequence[Query], skills: Mapping[str, SkillText]) -> Iterator[Query]:
    """Yield each query with one edit in its longest word."""
    return _misspelled(queries, 1)


def typos(queries: Sequence[Query], skills: Mapping[str, SkillText]) -> Iterator[Query]:
    """Yield each query with one edit in each of its three longest words."""
    return _misspelled(queries, 3)


def upper(queries: Sequence[Query], skills: Mapping[str, SkillText]) -> Iterator[Query]:
    """Yield each query in capitals."""
    return (query._replace(text=query.text.upper()) for query in short(queries, None))


def shuffled(queries: Sequence[Query], skills: Mapping[str, SkillText]) -> Iterator[Query]:
    """Yield each query with its words in another order."""
    for query in short(queries):
        words = query.text.split()
        _dice("shuffled", query.text).shuffle(words)
        yield query._replace(text=" ".join(words))


Spellings = Sequence[tuple[str, str]]
_BRITISH: Spellings = (
    (r"(?<=[a-z]{3})iz(?=(?:e|es|ed|er|ers|ing|ation|ations|able)$)", "is"),
    (r"(?<=[a-z]{2})yz(?=(?:e|es|ed|er|ers|ing)$)", "ys"),
    (r"^(behavi|col|flav|fav|hon|lab|neighb|harb|hum)or(?=$|s$|ed$|ing$|ite|ful|al)", r"\1our"),
    (r"^(cent|lit|theat)er(?=$|s$)", r"\1re"),
    (r"^(catal|dial|anal)og(?=$|s$)", r"\1ogue"),
    (r"^(model|label|cancel|travel|signal)(?=ed$|ing$|er$)", r"\1l"),
    (r"^license$", "licence"),
)
_PROSE_WORD = re.compile(r"(?<![\w.-])[A-Za-z][a-z]+(?![\w-])")
"""A word of a sentence; a part of an identifier is none."""
_COMPOUNDS: Spellings = (
    (r"(?i)\be-mail", "email"),
    (r"(?i)\bemail", "e-mail"),
    (r"(?i)\b(front|back)[ -]end\b", r"\1end"),
    (r"(?i)\b(front|back)end\b", r"\1-end"),
    (r"(?i)\bdataset", "data set"),
    (r"(?i)\bdatabase", "data base"),
    (r"(?i)\bcodebase", "code base"),
    (r"(?i)\bwebsite", "web site"),
    (r"(?i)\bworkflow", "work-flow"),
    (r"(?i)\bspreadsheet", "spread sheet"),
    (r"(?i)\bopen[ -]source\b", "opensource"),
    (r"(?i)\breal[ -]time\b", "realtime"),
    (r"(?i)\b(sub)(agents?)\b", r"\1-\2"),
    (r"(?i)\bresume\b", "résumé"),
)


def _respelled(queries: Iterable[Query], respell: Callable[[str], str]) -> Iterator[tuple[Query, Query]]:
    """Yield each English query that a spelling changes, before and after."""
    for query in queries:
        text = respell(query.text)
        if query.lang == "en" and text != query.text:
            yield query, query._replace(text=text)


def _in_britain(text: str) -> str:
    """Return a text with the words of its sentences spelled as in Britain."""

    def respelled(match: re.Match[str]) -> str:
        word, first = match[0][1:], match[0][0]
        whole = first.lower() + word
        for before, after in _BRITISH:
            whole = re.sub(before, after, whole)
        return first + whole[1:]

    return _PROSE_WORD.sub(respelled, text)


def _recompounded(text: str) -> str:
    """Return a text with the other spelling of each compound word; the first rule that changes a word counts."""
    for before, after in _COMPOUNDS:
        if (other := re.sub(before, after, text)) != text:
            return other
    return text


def british(queries: Sequence[Query], skills: Mapping[str, SkillText]) -> Iterator[Query]:
    """Yield the queries that a British spelling changes, so spelled."""
    return (after for _, after in _respelled(queries, _in_britain))


def american(queries: Sequence[Query], skills: Mapping[str, SkillText]) -> Iterator[Query]:
    """Yield the queries that a British spelling would change, as they are."""
    return (before for before, _ in _respelled(queries, _in_britain))


def _from_descriptions(skills: Mapping[str, SkillText]) -> Iterator[tuple[Query, Query]]:
    """Yield the words around one with a British spelling in the descriptions of skills, before and after."""
    for path, skill in sorted(skills.items()):
        words = skill.description.split()
        for place, word in enumerate(words):
            if _in_britain(word) != word and not CJK.search(skill.description):
                text = " ".join(words[max(0, place - 2) : place + 3])
                yield Query(text, "en", frozenset([path])), Query(_in_britain(text), "en", frozenset([path]))
                break


def british_descriptions(queries: Sequence[Query], skills: Mapping[str, SkillText]) -> Iterator[Query]:
    """Yield five words of each description that a British spelling changes, so spelled."""
    return (after for _, after in list(_from_descriptions(skills))[::2])


def american_descriptions(queries: Sequence[Query], skills: Mapping[str, SkillText]) -> Iterator[Query]:
    """Yield five words of each description that a British spelling would change, as they are."""
    return (before for before, _ in list(_from_descriptions(skills))[::2])


def compounds(queries: Sequence[Query], skills: Mapping[str, SkillText]) -> Iterator[Query]:
    """Yield the queries with a compound word, spelled in another way: `e-mail`, `front-end`, `data set`."""
    return (after for _, after in _respelled(queries, _recompounded))


def compounds_clean(queries: Sequence[Query], skills: Mapping[str, SkillText]) -> Iterator[Query]:
    """Yield the queries with a compound word as they are."""
    return (before for before, _ in _respelled(queries, _recompounded))


# Queries from names -------------------------------------------------------------------------------


def _name_words(name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word for word in re.findall(r"[a-z0-9]+", name.lower()) if not word.isdecimal()))


def _from_names(queries: Sequence[Query], skills: Mapping[str, SkillText], words: int) -> Iterator[Query]:
    """Yield the rarest words of names, answered by all skills that have them in their names."""
    known = {path: _name_words(skill.name) for path, skill in skills.items()}
    counts = Counter(word for name in known.values() for word in name)
    golds = sorted({min(query.gold) for query in queries} & known.keys())
    others = sorted(known.keys() - set(golds))
    chosen = golds + _dice("names").sample(others, min(len(others), 2 * len(golds)))
    asked = set()
    for path in chosen:
        rarest = sorted(known[path], key=lambda word: (counts[word], word))[:words]
        text = " ".join(word for word in known[path] if word in rarest)
        if len(rarest) < words or len(known[path]) <= words or text in asked:
            continue
        asked.add(text)
        yield Query(text, "en", frozenset(other for other, name in known.items() if set(rarest) <= set(name)))


def one_word(queries: Sequence[Query], skills: Mapping[str, SkillText]) -> Iterator[Query]:
    """Yield the rarest word of names of two words or more."""
    return _from_names(queries, skills, 1)


def two_words(queries: Sequence[Query], skills: Mapping[str, SkillText]) -> Iterator[Query]:
    """Yield the two rarest words of names of three words or more."""
    return _from_names(queries, skills, 2)


# Other languages ----------------------------------------------------------------------------------


def cross_lingual(queries: Sequence[Query], skills: Mapping[str, SkillText]) -> Iterator[Query]:
    """Yield the queries in Chinese, Japanese or Korean whose skills are described in other scripts."""
    for query in queries:
        described = "".join(skills[path].description for path in query.gold if path in skills)
        if query.lang != "en" and CJK.search(query.text) and not CJK.search(described):
            yield query


def cross_lingual_own(queries: Sequence[Query], skills: Mapping[str, SkillText]) -> Iterator[Query]:
    """Yield the tasks in `search_texts.toml` that name a skill of this corpus."""
    paths: dict[str, set[str]] = {}
    for path, skill in skills.items():
        paths.setdefault(skill.name, set()).add(path)
    for lang, tasks in TEXTS["cross_lingual"].items():
        for text, name in tasks:
            if name in paths:
                yield Query(text, lang, frozenset(paths[name]))


VARIANTS: Mapping[str, Variant] = {
    "clean, all": clean,
    "clean, short": clean_short,
    "chat": chat,
    "trace": trace,
    "chat and trace": both,
    "harsh": harsh,
    "decoy": decoy,
    "chat, kept apart": chat_apart,
    "trace, kept apart": trace_apart,
    "chat and trace, kept apart": both_apart,
    "one typo": typo,
    "three typos": typos,
    "capitals": upper,
    "shuffled": shuffled,
    "American spelling": american,
    "British spelling": british,
    "five words of a description, American": american_descriptions,
    "five words of a description, British": british_descriptions,
    "compounds": compounds_clean,
    "compounds respelled": compounds,
    "one word of a name": one_word,
    "two words of a name": two_words,
    "cross-lingual, open": cross_lingual,
    "cross-lingual, own": cross_lingual_own,
}


def skill_texts(root: Path) -> dict[str, SkillText]:
    """Return name and first line of the description of the skills below a folder, read without the product."""
    found = {}
    for path in sorted(root.rglob("SKILL.md")):
        text = path.read_text(encoding="utf-8", errors="replace")[:4000]
        name = re.search(r"^name:\s*(.+)$", text, re.MULTILINE)
        description = re.search(r"^description:\s*(.+(?:\n[ \t]+.+)*)", text, re.MULTILINE)
        plain = name[1].strip(" \"'") if name else path.parent.name
        found[str(path.relative_to(root))] = SkillText(plain, description[1] if description else "")
    return found


def read_corpus(queries: Path, root: Path) -> tuple[list[Query], dict[str, SkillText]]:
    """Return the queries of a file and the skills below a folder, or exit if these have no right answer."""
    asked, skills = read_queries(queries), skill_texts(root)
    if not any(query.gold & skills.keys() for query in asked):
        raise SystemExit(f"no right answer of {queries} is below {root}; its paths are relative to the corpus")
    return asked, skills


def main() -> None:
    """Print the variants as JSON lines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=Path, required=True)
    parser.add_argument("--corpus", type=Path, required=True, help="the folder of the unpacked skills")
    parser.add_argument("--kind", choices=VARIANTS, action="append", help="one of the variants; all if none is given")
    given = parser.parse_args()
    queries, skills = read_corpus(given.queries, given.corpus)
    for name in given.kind or VARIANTS:
        for query in VARIANTS[name](queries, skills):
            line = {"variant": name, "kind": query.kind, "lang": query.lang, "query": query.text}
            print(json.dumps({**line, "gold": sorted(query.gold)}, ensure_ascii=False), file=sys.stdout)


if __name__ == "__main__":
    main()
