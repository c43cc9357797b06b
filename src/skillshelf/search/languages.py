"""Tell the language of a text by its script or its commonest words, and stem words in languages other than English."""

from collections.abc import Callable, Mapping, Sequence, Set
from functools import cache

from skillshelf.core.patterns import lazy_pattern
from skillshelf.search.spellings import without_accents

__all__ = ["LANGUAGES", "language_of", "language_of_query", "stemmed"]

_STOP_WORDS: Mapping[str, str] = {
    "german": "der die das und ist nicht ein eine einen einer mit für auf den dem des von zu sich auch wenn oder wie"
    " ich werden wird sind bei aus nach zum zur im kann mein meine bitte",
    "french": "le la les et est une des pour dans du que qui pas avec sur ce cette au aux sont ou vous nous je mon ma"
    " mes comment votre plus être",
    "spanish": "el la los las y es una del para con por que se como su sus más está son al lo mi mis cómo cuando este"
    " esta necesito",
    "portuguese": "o os as e é uma do da dos das para com por que se como não em no na são ao você meu minha mais"
    " quando este esta preciso",
    "italian": "il lo gli e è una del della dei delle per con che si come non di nel sono al più mio mia questo questa"
    " quando voglio",
    "dutch": "de het een en is van voor met niet op aan dat te zijn ook als bij naar uit wordt kan mijn deze ik je hoe",
    "swedish": "och att det är en ett för med på av som till inte kan om från den när hur jag min mitt",
    "danish": "og at det er en et for med på af som til ikke kan om fra den når hvordan jeg min mit",
    "turkish": "ve bir bu için ile da de çok daha olarak ne nasıl gibi benim bana var",
    "romanian": "și este un o în la de cu pentru care din sau nu mai să cum",
}
_WORDS = {language: frozenset(words.split()) for language, words in _STOP_WORDS.items()}
_SHARED: Mapping[str, str] = {
    "german": "in an was so am all man will her",
    "french": "on a me as d",
    "spanish": "a me no he",
    "portuguese": "a me as do no",
    "italian": "a i in me no",
    "dutch": "in is was of over we me had so",
    "swedish": "i for at so",
    "danish": "i for at so",
    "turkish": "her",
    "romanian": "a in",
}
"""Words that a language has in common with English: in a query, they speak for neither."""
_ANY_WORD = frozenset().union(*_WORDS.values())
_WITH_SHARED = {language: words.union(_SHARED[language].split()) for language, words in _WORDS.items()}
_ENGLISH_TEXT = "the and of to is in for with a on this that you it are be or as from how do i my your"
_ENGLISH = frozenset(_ENGLISH_TEXT.split())
_COMMON: dict[str, list[str]] = {word: [] for word in _ENGLISH}
for _language, _words in _STOP_WORDS.items():
    for _word in dict.fromkeys(_words.split()):
        _COMMON.setdefault(_word, []).append(_language)
"""The commonest words of all languages, with the languages other than English that have them."""
_SCRIPTS = {
    "russian": lazy_pattern("[\u0430-\u044f\u0410-\u042f\u0451]{3}"),
    "greek": lazy_pattern("[\u03b1-\u03c9\u0391-\u03a9\u03ac-\u03ce]{3}"),
    "arabic": lazy_pattern("[\u0621-\u064a]{3}"),
    "tamil": lazy_pattern("[\u0b80-\u0bff]{3}"),
}
_ANY_SCRIPT = lazy_pattern("[\u0370-\u06ff\u0b80-\u0bff]")
LANGUAGES: Sequence[str] = (*_SCRIPTS, *_STOP_WORDS)
"""The languages that are known beside English."""
_SHORTEST = 4


def language_of(words: Mapping[str, int], *, least: int) -> str | None:
    """Return the language of a text by its words and their counts; None for English and for what is not known.

    It has at least so many of the commonest words of that language, and fewer of those of English.
    """
    if language := _by_script(words, least):
        return language
    english = 0
    counts = dict.fromkeys(_STOP_WORDS, 0)
    for word in filter(words.__contains__, _COMMON):
        times = words[word]
        english += times if word in _ENGLISH else 0
        for language in _COMMON[word]:
            counts[language] += times
    best = max(counts, key=counts.__getitem__)
    return best if counts[best] >= least and counts[best] > english else None


def language_of_query(words: Mapping[str, int], english: Set[str]) -> str | None:
    """Return the language of a query; None for English and for what is not known.

    It has more words that are common in that language alone than common words of English that the language lacks.
    """
    if language := _by_script(words, 1):
        return language
    in_english = words.keys() & english
    others = words.keys() - in_english
    if others.isdisjoint(_ANY_WORD):
        return None

    def lead(language: str) -> int:
        own, foreign = others & _WORDS[language], in_english - _WITH_SHARED[language]
        return sum(map(words.__getitem__, own)) - sum(map(words.__getitem__, foreign))

    best = max(_WORDS, key=lead)
    return best if lead(best) > 0 else None


def _by_script(words: Mapping[str, int], least: int) -> str | None:
    """Return the language whose script at least so many words are in."""
    if "".join(words).isascii():
        return None
    sample = " ".join([word for word in words if not word.isascii()][:500])
    if not _ANY_SCRIPT.search(sample):
        return None
    return next((name for name, script in _SCRIPTS.items() if len(script.findall(sample)) >= least), None)


@cache
def _stemmer(language: str) -> Callable[[str], str]:
    import tantivy

    analyzer = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.raw()).filter(tantivy.Filter.stemmer(language)).build()
    return lambda word: analyzer.analyze(word)[0]


def stemmed(word: str, language: str) -> str:
    """Return the stem of a word in small letters, without accents; empty for a short one and for what is no word."""
    if len(word) < _SHORTEST or not word.isalpha():
        return ""
    return without_accents(_stemmer(language)(word))
