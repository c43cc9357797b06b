"""Score skills by embeddings: how near the text of each one is to the query, in the space of a model.

The model is the user's choice: a server that speaks the embeddings API of OpenAI, on this machine or elsewhere, or an
object of the caller's own. It gets the names and descriptions of all skills, and every query.
"""

import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

from skillshelf.config.settings import Settings
from skillshelf.core.environment import Environment, make_environment
from skillshelf.core.http_client import HttpAnswer, HttpClient, HttpRequest, require_found
from skillshelf.core.limits import (
    EMBEDDING_ANSWER_BYTES,
    EMBEDDING_CHARS,
    EMBEDDING_NUMBERS,
    EMBEDDING_REST_SECONDS,
    EMBEDDING_SECONDS,
    EMBEDDING_TRIES,
    EMBEDDING_WAIT_SECONDS,
    EMBEDDING_WHOLE_SECONDS,
    EMBEDDINGS_AT_ONCE,
    EMBEDDINGS_KEPT,
)
from skillshelf.core.patterns import lazy_pattern
from skillshelf.core.values import CatalogSkill
from skillshelf.errors import ConfigurationError, SourceRefused, SourceUnreachable
from skillshelf.search.rank import is_mostly_unspaced
from skillshelf.search.vector_cache import VectorCache

if TYPE_CHECKING:
    import numpy

__all__ = ["ConfiguredScorer", "Embedder", "EmbeddingEndpoint", "EmbeddingScorer"]

_NEAREST = 20
"""The most skills that get a score, a tenth of the catalog if it is small: every further one would be a result."""
_WEIGHT = 0.2
"""The score of the nearest skill, where the best match by words has 1; `docs/search.md` says how it was chosen."""
_QUERIES_KEPT = 256


class Embedder(Protocol):
    """A model that turns texts into lists of numbers.

    `identity` names it: embeddings are kept under this name, so a model with other numbers needs another one. One that
    is `english_only` is not asked about queries that are mostly Chinese, Japanese or Korean. Searches of several
    threads call `embed` at the same time.
    """

    identity: str
    english_only: bool

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return one list of numbers for each text, all of one length."""
        ...


class EmbeddingScorer:
    """A second scorer: the skills whose names and descriptions are nearest to the query, by cosine.

    The embeddings of skills are kept in the folder `cache`, without one in memory. The nearest skill gets `weight`,
    those after it less, and at most twenty, or a tenth of the catalog, get anything. One search spends at most
    `seconds` on skills that have no embedding yet. A model that failed is not asked again for `rest_seconds`. Safe to
    use from several threads: one of them asks for the skills, and the others wait `wait_seconds` for it.
    """

    def __init__(
        self,
        embedder: Embedder,
        *,
        cache: str | os.PathLike[str] | None = None,
        weight: float = _WEIGHT,
        seconds: float = EMBEDDING_WHOLE_SECONDS,
        rest_seconds: float = EMBEDDING_REST_SECONDS,
        wait_seconds: float = EMBEDDING_WAIT_SECONDS,
    ) -> None:
        _require_numpy()
        self._embedder = embedder
        self._vectors = VectorCache(os.fspath(cache) if cache is not None else None, embedder.identity)
        self._weight = weight
        self._seconds = seconds
        self._rest_seconds = rest_seconds
        self._wait_seconds = wait_seconds
        self._rests_until = 0.0
        self._known: tuple[Sequence[CatalogSkill], numpy.ndarray[Any, Any]] | None = None
        self._queries: dict[str, numpy.ndarray[Any, Any]] = {}
        self._lock = Lock()
        self._asking_for_skills = Lock()

    def score(self, query: str, skills: Sequence[CatalogSkill]) -> Sequence[float]:
        """Return the score of each skill; raise an error if the model does not answer as it should."""
        if not skills or (self._embedder.english_only and is_mostly_unspaced(query)):
            return [0.0] * len(skills)
        matrix, vector = self._matrix(skills), self._query_vector(query)
        if matrix.shape[1] != len(vector):
            self._forget()
            before = f"{len(vector)} numbers and gave {matrix.shape[1]} before"
            raise SourceRefused("embedding", f"it gives {before}; all are asked again")
        return _scores(matrix @ vector, self._weight)

    def _forget(self) -> None:
        with self._lock:
            self._vectors.forget()
            self._known = None

    def _matrix(self, skills: Sequence[CatalogSkill]) -> "numpy.ndarray[Any, Any]":
        """Return the embeddings of skills as rows; those of the same catalog are kept."""
        known = self._known
        if known is not None and known[0] is skills:
            return known[1]
        if len(skills) > EMBEDDINGS_KEPT:
            raise SourceRefused("embedding", f"more than {EMBEDDINGS_KEPT} skills are not embedded (EMBEDDINGS_KEPT)")
        import numpy

        texts = [_text_of(skill) for skill in skills]
        found = self._all_vectors(texts)
        sizes = set(map(len, found.values()))
        if len(sizes) > 1 or max(sizes) % 2:
            self._forget()
            raise SourceRefused("embedding", "it gives another number of numbers than before; all are asked again")
        rows = numpy.frombuffer(b"".join(map(found.__getitem__, texts)), "<f2").reshape(len(texts), -1).astype("f4")
        self._known = skills, rows
        return rows

    def _all_vectors(self, texts: Sequence[str]) -> Mapping[str, bytes]:
        """Return the embedding of each text; raise SourceUnreachable while another search asks for them."""
        found = self._fetched(texts)
        if len(found) == len(set(texts)):
            return found
        # A slow server must not hold up every search, but a fast one is worth the wait.
        if not self._asking_for_skills.acquire(timeout=self._wait_seconds):
            raise SourceUnreachable("another search is asking for the embeddings of the skills")
        try:
            found = self._fetched(texts)
            self._add_missing(found, list(dict.fromkeys(text for text in texts if text not in found)))
        finally:
            self._asking_for_skills.release()
        return found

    def _fetched(self, texts: Sequence[str]) -> dict[str, bytes]:
        with self._lock:
            return self._vectors.fetch(texts)

    def _add_missing(self, found: dict[str, bytes], missing: Sequence[str]) -> None:
        """Embed what is missing, some texts at a time; what was embedded stays if the time is over."""
        end, total = time.monotonic() + self._seconds, len(found) + len(missing)
        for start in range(0, len(missing), EMBEDDINGS_AT_ONCE):
            if start and time.monotonic() >= end:
                limit = f"{self._seconds:g} seconds (EMBEDDING_WHOLE_SECONDS)"
                raise SourceUnreachable(f"{len(found)} of {total} texts are embedded after {limit}; the next goes on")
            some = missing[start : start + EMBEDDINGS_AT_ONCE]
            # Half precision: the order of cosines is the same, and the file half as large.
            rows = [row.astype("<f2").tobytes() for row in self._embedded(some)]
            new = dict(zip(some, rows, strict=True))
            with self._lock:
                self._vectors.store(new)
            found |= new

    def _query_vector(self, query: str) -> "numpy.ndarray[Any, Any]":
        with self._lock:
            known = self._queries.get(query)
        if known is not None:
            return known
        vector: numpy.ndarray[Any, Any] = self._embedded([_sendable(query)])[0]
        with self._lock:
            if len(self._queries) >= _QUERIES_KEPT:
                self._queries.clear()
            self._queries[query] = vector
        return vector

    def _embedded(self, texts: Sequence[str]) -> "numpy.ndarray[Any, Any]":
        """Return the embeddings of texts as rows of length 1, by the model, which no lock waits for."""
        if time.monotonic() < self._rests_until:
            rest = f"{self._rest_seconds:g} seconds (EMBEDDING_REST_SECONDS)"
            raise SourceUnreachable(f"it failed, and is not asked again for {rest}")
        try:
            rows = _unit_rows(self._embedder.embed(texts), len(texts))
        except Exception:
            self._rests_until = time.monotonic() + self._rest_seconds
            raise
        self._rests_until = 0.0
        return rows


def _require_numpy() -> None:
    try:
        import numpy  # noqa: F401
    except ImportError:
        raise ConfigurationError("embeddings need the extra: pip install 'skillshelf[embeddings]'") from None


def _text_of(skill: CatalogSkill) -> str:
    """Return the text of a skill that is embedded."""
    return _sendable(f"{skill.name.replace('-', ' ')}: {skill.description}")


def _sendable(text: str) -> str:
    """Return the beginning of a text, with what no JSON may have replaced."""
    return text[:EMBEDDING_CHARS].encode("utf-8", "replace").decode()


def _unit_rows(given: Sequence[Sequence[float]], count: int) -> "numpy.ndarray[Any, Any]":
    """Return the answer of a model as rows of length 1; raise SourceRefused if it is none."""
    import numpy

    if len(given) != count:
        raise SourceRefused("embedding", f"it gives {len(given)} embeddings for {count} texts")
    sizes = set(map(len, given))
    if len(sizes) != 1 or not 0 < max(sizes) <= EMBEDDING_NUMBERS:
        limit = f"at most {EMBEDDING_NUMBERS} numbers (EMBEDDING_NUMBERS)"
        raise SourceRefused("embedding", f"it gives embeddings that are not all of one length and {limit}")
    try:
        # Numbers without end become infinite here, which is refused below.
        with numpy.errstate(all="ignore"):
            rows = numpy.asarray(given, "f8")
            rows = rows / numpy.linalg.norm(rows, axis=1, keepdims=True)
    except (OverflowError, TypeError, ValueError):
        rows = numpy.full((count, 1), numpy.nan)
    if not numpy.isfinite(rows).all() or not rows.any(axis=1).all():
        raise SourceRefused("embedding", "it gives embeddings that are not finite numbers, or zero")
    return rows


def _scores(cosines: "numpy.ndarray[Any, Any]", weight: float) -> list[float]:
    """Return the weight for the nearest skill, less for those after it, and nothing from a certain place on.

    The cosines of one model lie between 0 and 1, those of another between 0.7 and 0.9; only their differences count.
    """
    ordered = sorted(map(float, cosines), reverse=True)
    nearest = max(1, min(_NEAREST, len(ordered) // 10))
    best, floor = ordered[0], ordered[min(nearest, len(ordered) - 1)]
    if best <= floor:
        return [0.0] * len(ordered)
    return [weight * max(0.0, (float(cosine) - floor) / (best - floor)) for cosine in cosines]


# Servers ------------------------------------------------------------------------------------------

_KEY = lazy_pattern(r"[\x21-\x7e]{1,4096}")
_BUSY = (429, 500, 502, 503, 504)


class EmbeddingEndpoint:
    """A server that speaks the embeddings API of OpenAI, by the address before `/embeddings`.

    Plain HTTP goes to this machine alone, redirects are not followed, and no credentials are sent but `api_key`, which
    is neither stored nor shown. `env` replaces the environment, which may name a proxy and certificates.
    """

    def __init__(
        self,
        url: str,
        model: str,
        *,
        api_key: str | None = None,
        english_only: bool = False,
        env: Mapping[str, str] | None = None,
        seconds: float = EMBEDDING_SECONDS,
    ) -> None:
        if api_key is not None and not _KEY.fullmatch(api_key):
            raise ConfigurationError("the key of a server of embeddings must be printable ASCII without blanks")
        self.identity = f"{url.rstrip('/')} {model}"
        self.english_only = english_only
        self._url = f"{url.rstrip('/').removesuffix('/embeddings')}/embeddings"
        self._model = model
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if api_key is not None:
            self._headers["Authorization"] = f"Bearer {api_key}"
        environment = make_environment(None, None, env)
        self._client = HttpClient(
            self._url, environment, allow_http=True, seconds=seconds, limit="EMBEDDING_SECONDS", netrc=False
        )

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return the embedding of each text; raise SourceUnreachable or SourceRefused."""
        body = json.dumps({"model": self._model, "input": list(texts)}).encode()
        request = HttpRequest(self._url, EMBEDDING_ANSWER_BYTES, "POST", self._headers, body)
        answer = require_found(self._answer(request))
        return _embeddings_in(answer.data, len(texts))

    def _answer(self, request: HttpRequest) -> HttpAnswer:
        """Return the answer to a request, which is sent again if the server is busy and says when."""
        for _ in range(EMBEDDING_TRIES - 1):
            answer = self._client.send(request)
            pause = answer.headers.get("retry-after", "0").strip()
            if answer.status not in _BUSY or not re.fullmatch(r"\d{1,2}", pause) or int(pause) > EMBEDDING_SECONDS:
                return answer
            time.sleep(int(pause))
        return self._client.send(request)


def _embeddings_in(data: bytes, count: int) -> Sequence[Sequence[float]]:
    """Return the embeddings of an answer in the order of the texts."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        raise SourceRefused("embedding", "it answers with something that is no JSON") from None
    entries = document.get("data") if isinstance(document, dict) else None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise SourceRefused("embedding", "its answer has no list `data`")
    ordered = {str(entry.get("index", n)): entry.get("embedding") for n, entry in enumerate(entries)}
    if len(entries) != count or ordered.keys() != set(map(str, range(count))):
        raise SourceRefused("embedding", f"it gives {len(entries)} embeddings for {count} texts, or not one for each")
    vectors = [ordered[str(n)] for n in range(count)]
    if not all(isinstance(one, list) and set(map(type, one)) <= {int, float} for one in vectors):
        raise SourceRefused("embedding", "it gives embeddings that are not lists of numbers")
    return vectors


# Configuration ------------------------------------------------------------------------------------


class ConfiguredScorer:
    """The scorer that the user's own configuration names; it is made by the first search, which notes what it lacks."""

    def __init__(self, settings: Settings, environment: Environment, cache: str | None) -> None:
        self._settings = settings
        self._environment = environment
        self._cache = cache
        self._made: EmbeddingScorer | None = None
        self._lock = Lock()

    def score(self, query: str, skills: Sequence[CatalogSkill]) -> Sequence[float]:
        """Return the score of each skill."""
        with self._lock:
            if self._made is None:
                self._made = EmbeddingScorer(self._endpoint(), cache=self._cache)
        return self._made.score(query, skills)

    def _endpoint(self) -> EmbeddingEndpoint:
        settings, env = self._settings, self._environment.env
        variable = settings.scorer_key_variable
        if variable and not env.get(variable):
            raise ConfigurationError(f"the variable {variable}, which `search.scorer.key_variable` names, is not set")
        return EmbeddingEndpoint(
            settings.scorer_url or "",
            settings.scorer_model or "",
            api_key=env[variable] if variable else None,
            english_only=settings.scorer_english_only,
            env=env,
        )
