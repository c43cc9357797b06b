"""Score skills by the history of their use: those that were loaded after similar searches get a bonus.

A term of a query is known by its salted hash only. The weights of the hashed terms come from the query that is ranked,
so the history needs no index.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b, sha256

from skillshelf.core.limits import USAGE_TERMS
from skillshelf.core.records import NamedTuple
from skillshelf.core.validation import validate

__all__ = [
    "HASH_BYTES",
    "MOST_BONUS",
    "PRIOR_VERSION",
    "PastUse",
    "Prior",
    "QueryPrior",
    "UsageBonus",
    "UsagePrior",
    "hashed_term",
    "rarest",
]

PRIOR_VERSION = 1
"""The version of the document of a prior."""

MOST_BONUS = 0.3
"""The largest bonus, as a share of the best score by words."""

_HALF_USES = 0.5
"""The sum of similarities that gives half of the largest bonus; `bench/search.py` shows how it was chosen."""

_LEAST_SIMILARITY = 0.05
"""A search that shares less of the query's weight is not similar: it has a common word or two."""

HASH_BYTES = 8


def hashed_term(term: str, salt: bytes) -> bytes:
    """Return the hash of a term of a query; without the salt nobody can try words."""
    return blake2b(term.encode("utf-8", "surrogatepass"), digest_size=HASH_BYTES, key=salt).digest()


def rarest(weights: Mapping[str, float]) -> dict[str, float]:
    """Return the terms of a query that count here: those that weigh most."""
    known = [term for term, weight in weights.items() if weight > 0]
    return {term: weights[term] for term in sorted(known, key=lambda term: (-weights[term], term))[:USAGE_TERMS]}


class PastUse(NamedTuple):
    """A load of a skill after a search: the real path of its SKILL.md, and the hashed terms of that search."""

    path: str
    terms: frozenset[bytes]


class UsageBonus(NamedTuple):
    """The bonus of one skill for one query, as a share of the best score by words, and the similar uses behind it."""

    share: float
    times: int


class QueryPrior(NamedTuple):
    """The bonus of each skill for one query, by the real path of its SKILL.md.

    It holds neither terms nor hashes, so a journal can keep it.
    """

    version: int
    bonuses: Mapping[str, UsageBonus]

    def document(self) -> bytes:
        """Return the prior as JSON, with the same bytes for equal priors."""
        bonuses = {path: bonus._asdict() for path, bonus in self.bonuses.items()}
        return json.dumps({"version": self.version, "bonuses": bonuses}, sort_keys=True, separators=(",", ":")).encode()

    @property
    def digest(self) -> str:
        """The digest of the document."""
        return f"sha256:{sha256(self.document()).hexdigest()}"

    @classmethod
    def parse(cls, data: bytes) -> "QueryPrior":
        """Return the prior of a document, which may come from anywhere; raise ValueError if it is none."""
        try:
            value = json.loads(data)
        except RecursionError:
            raise ValueError("nested too deeply") from None
        if wrong := validate(value, QueryPrior):
            raise ValueError(str(wrong))
        if value["version"] != PRIOR_VERSION:
            raise ValueError(f"its version is {value['version']}; this program reads {PRIOR_VERSION}")
        bonuses = {path: UsageBonus(**bonus) for path, bonus in value["bonuses"].items()}
        if not all(0 <= bonus.share <= MOST_BONUS for bonus in bonuses.values()):
            raise ValueError("a bonus is out of bounds")
        return cls(PRIOR_VERSION, bonuses)


Prior = Callable[[Mapping[str, float]], QueryPrior | None]
"""Return the bonuses for the weighted terms of a query; None if no skill gets one."""


class UsagePrior:
    """The past uses of skills, ready to be compared with queries."""

    def __init__(self, uses: Iterable[PastUse], salt: bytes) -> None:
        self._uses = tuple(uses)
        self._salt = salt

    @classmethod
    def from_searches(cls, searches: Iterable[tuple[Iterable[str], str]], *, salt: bytes = b"salt") -> "UsagePrior":
        """Return the prior of searches, each given by its terms and the real path of the skill that was loaded."""
        hashed = ((frozenset(hashed_term(term, salt) for term in terms), path) for terms, path in searches)
        return cls((PastUse(path, terms) for terms, path in hashed), salt)

    def for_query(self, weights: Mapping[str, float]) -> QueryPrior | None:
        """Return the bonuses for the weighted terms of a query; None if no skill gets one.

        The similarity of a past search is the share of the query's weight that its terms have. Similarities add up,
        and saturate: a single use of one skill cannot win over its words.
        """
        wanted = {hashed_term(term, self._salt): weight for term, weight in rarest(weights).items()}
        whole = sum(wanted.values())
        sums: dict[str, float] = {}
        times: dict[str, int] = {}
        for path, terms in self._uses:
            if terms.isdisjoint(wanted):
                continue
            # Sorted, since the sum of floats depends on their order.
            similarity = sum([wanted[term] for term in sorted(terms & wanted.keys())]) / whole
            if similarity >= _LEAST_SIMILARITY:
                sums[path] = sums.get(path, 0.0) + similarity
                times[path] = times.get(path, 0) + 1
        bonuses = {
            path: UsageBonus(round(MOST_BONUS * total / (total + _HALF_USES), 6), times[path])
            for path, total in sums.items()
        }
        return QueryPrior(PRIOR_VERSION, bonuses) if bonuses else None
