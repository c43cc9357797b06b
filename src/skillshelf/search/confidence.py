"""Estimate how probable it is that the first result of a search fits, from numbers of its ranking."""

import math

from skillshelf.core.patterns import lazy_pattern
from skillshelf.core.records import NamedTuple
from skillshelf.search.rank import STOP_WORDS

__all__ = [
    "BEGUN",
    "COEFFICIENTS",
    "INTERCEPT",
    "NAMED",
    "WEAK_BELOW",
    "MatchFeatures",
    "estimate",
    "has_content",
    "of_shared_words",
]


class MatchFeatures(NamedTuple):
    """The numbers from which a confidence is computed.

    `share` is the score relative to the weight of the query, `known` the share of the words of the query that any skill
    has. Skills with the same description count once in `second` and `others`.
    """

    score: float
    share: float
    matched: float
    summary: float
    second: float
    others: float
    terms: float
    known: float


INTERCEPT = -4.7720
COEFFICIENTS = MatchFeatures(
    score=0.9997,
    share=0.2105,
    matched=2.9450,
    summary=2.4125,
    second=-0.5372,
    others=-4.6320,
    terms=1.4001,
    known=-2.2094,
)
"""The coefficients of a logistic model; `bench/confidence.py` fits them."""

WEAK_BELOW = 0.30
"""The confidence below which no skill clearly fits."""

NAMED = 1.0
"""The confidence where the query is the path or name of a skill."""
BEGUN = 0.75
"""The least confidence where the query is the first words of the name of a skill."""

_DIGITS = 2


def estimate(features: MatchFeatures) -> float:
    """Return the estimated probability, from 0 to 1, that the first result fits."""
    total = INTERCEPT + sum(map(float.__mul__, COEFFICIENTS, features))
    return round(1 / (1 + math.exp(-max(-30.0, min(30.0, total)))), _DIGITS)


def of_shared_words(shared: int, words: int) -> float:
    """Return a confidence for a ranking that counts shared words: the share of the query, less if they are few."""
    return round(shared / words * (1 - 0.5**shared), _DIGITS) if shared else 0.0


_SMALL_TALK_TEXT = (
    "afternoon again ahead alright amazing awesome bye cancel continue cool correct done evening exactly excellent"
    " fine forget go going good goodbye got great hello hey hi hmm hold k later lgtm lol maybe mind minute moment"
    " morning never next nice night nope ok okay one ones perfect proceed really repeat right said say second see"
    " sorry stop sure thank thanks thx today tomorrow try understand wait welcome well work worked works wow wrong"
    " yeah yep yes yup 你好 谢谢 好的 是的 不是 可以 继续 没问题 ありがとう ありがとうございます はい いいえ こんにちは"
    " お願いします 続けて 네 아니요 감사합니다 안녕하세요 계속 좋아요"
)
_SMALL_TALK = STOP_WORDS.union(_SMALL_TALK_TEXT.split())
"""Words that occur in any conversation and name no task."""
_WORD = lazy_pattern(r"[^\W_]+")


def has_content(query: str) -> bool:
    """Return whether a query has a word besides those that any conversation has."""
    return any(word[0] not in _SMALL_TALK for word in _WORD.finditer(query.casefold()))
