"""Count what the team server does, and write the counts in the text format of Prometheus."""

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import get_args

from skillshelf.core.records import NamedTuple
from skillshelf.journal.sent_lines import Reported
from skillshelf.servers.team.journal_intake import Refusal

__all__ = ["MEDIA_TYPE", "Metrics"]

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Labels = tuple[tuple[str, str], ...]

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""The upper bounds of durations, in seconds."""


class _Metric(NamedTuple):
    kind: str
    help: str
    known: tuple[Labels, ...] = ()
    """The labels of the counts that begin at 0, so that the first event is an increase."""


_PLAIN: tuple[Labels, ...] = ((),)


def _each(label: str, values: Iterable[str]) -> tuple[Labels, ...]:
    return tuple(((label, value),) for value in values)


METRICS: Mapping[str, _Metric] = {
    "skillshelf_requests_total": _Metric("counter", "Requests by route, method and status."),
    "skillshelf_request_seconds": _Metric("histogram", "Duration of requests by route."),
    "skillshelf_requests_running": _Metric("gauge", "Requests that are being answered."),
    "skillshelf_sessions": _Metric("gauge", "Client sessions of the older protocol that are open."),
    "skillshelf_catalogs": _Metric("gauge", "Catalogs in memory, one for each tenant and subset in use."),
    "skillshelf_searches_total": _Metric("counter", "Searches over the API and the pages.", _PLAIN),
    "skillshelf_tool_calls_total": _Metric("counter", "Requests of the Model Context Protocol by method."),
    "skillshelf_logins_total": _Metric(
        "counter", "Logins in a browser by outcome.", _each("outcome", ("done", "refused"))
    ),
    "skillshelf_refused_tokens_total": _Metric("counter", "Requests without a valid token.", _PLAIN),
    "skillshelf_journal_lines_total": _Metric("counter", "Lines of journals that were stored.", _PLAIN),
    "skillshelf_journal_refused_total": _Metric(
        "counter",
        "Journals refused, or reported changed, by kind.",
        _each("kind", sorted({*get_args(Refusal), *get_args(Reported)})),
    ),
    "skillshelf_releases_total": _Metric("counter", "Releases that were published.", _PLAIN),
    "skillshelf_database_up": _Metric("gauge", "1 if the database answered last time, else 0."),
}
"""Every metric, its kind and what it counts."""


class Metrics:
    """Counts by name and labels; many threads may add to them. A gauge may be a function that is asked when needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values = {name: dict.fromkeys(metric.known, 0.0) for name, metric in METRICS.items()}
        self._buckets: dict[tuple[str, Labels], list[int]] = {}
        self._gauges: dict[str, Callable[[], float]] = {}

    def add(self, name: str, amount: float = 1, **labels: str) -> None:
        """Add to a counter or gauge."""
        assert name in METRICS, name
        key = tuple(sorted(labels.items()))
        with self._lock:
            values = self._values[name]
            values[key] = values.get(key, 0) + amount

    def set(self, name: str, value: float) -> None:
        """Set a gauge."""
        assert name in METRICS, name
        with self._lock:
            self._values[name][()] = value

    def watch(self, name: str, read: Callable[[], float]) -> None:
        """Let a gauge be what a function returns."""
        assert name in METRICS, name
        self._gauges[name] = read

    def observe(self, name: str, seconds: float, **labels: str) -> None:
        """Add a duration to a histogram."""
        key = tuple(sorted(labels.items()))
        with self._lock:
            counts = self._buckets.setdefault((name, key), [0] * (len(_BUCKETS) + 1))
            counts[bisect_left(_BUCKETS, seconds)] += 1
            values = self._values[name]
            values[key] = values.get(key, 0) + seconds

    def text(self) -> str:
        """Return all of them in the text format."""
        for name, read in self._gauges.items():
            self.set(name, read())
        with self._lock:
            return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        for name, metric in METRICS.items():
            yield f"# HELP {name} {metric.help}"
            yield f"# TYPE {name} {metric.kind}"
            for labels, value in sorted(self._values[name].items()):
                if metric.kind == "histogram":
                    yield from self._histogram(name, labels, value)
                else:
                    yield f"{name}{_labels(labels)} {_number(value)}"

    def _histogram(self, name: str, labels: Labels, total: float) -> Iterator[str]:
        count = 0
        for bound, added in zip((*map(str, _BUCKETS), "+Inf"), self._buckets[name, labels], strict=True):
            count += added
            yield f"{name}_bucket{_labels((*labels, ('le', bound)))} {count}"
        yield f"{name}_sum{_labels(labels)} {total:.6f}"
        yield f"{name}_count{_labels(labels)} {count}"


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    escaped = (value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"') for _, value in labels)
    return "{" + ",".join(f'{key}="{value}"' for (key, _), value in zip(labels, escaped, strict=True)) + "}"


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:.6f}"
