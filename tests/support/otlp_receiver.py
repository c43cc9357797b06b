"""A receiver of OpenTelemetry spans over HTTP, as a process of its own: it decodes what comes, and writes it as JSON.

Run as a program it prints its port, then one line of JSON for each request, until its standard input ends.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(item) for item in value.array_value.values]
    return getattr(value, kind) if kind else None


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _spans(body: bytes) -> Iterator[dict[str, Any]]:
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield {
                    "name": span.name,
                    "trace": span.trace_id.hex(),
                    "id": span.span_id.hex(),
                    "parent": span.parent_span_id.hex(),
                    "start_ms": span.start_time_unix_nano // 1_000_000,
                    "end_ms": span.end_time_unix_nano // 1_000_000,
                    "status": span.status.code,
                    "attributes": _attributes(span.attributes),
                    "resource": _attributes(resource.resource.attributes),
                    "links": [link.span_id.hex() for link in span.links],
                    "events": [
                        {"name": e.name, "ms": e.time_unix_nano // 1_000_000, "attributes": _attributes(e.attributes)}
                        for e in span.events
                    ],
                }


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/v1/traces":
            print(json.dumps({"path": self.path, "spans": list(_spans(body))}), flush=True)
        self.send_response(200 if self.path == "/v1/traces" else 404)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        """Print nothing: standard output is for the spans."""


class Received:
    """What a receiver got."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.spans: list[dict[str, Any]] = []

    def named(self, name: str) -> list[dict[str, Any]]:
        """Return the spans of a name."""
        return [span for span in self.spans if span["name"] == name]

    def events(self, name: str) -> list[dict[str, Any]]:
        """Return the events of a name, of all spans."""
        return [event for span in self.spans for event in span["events"] if event["name"] == name]

    def count(self, name: str, *attributes: str) -> Counter[tuple[Any, ...]]:
        """Return how often the events of a name have these attributes."""
        return Counter(tuple(event["attributes"].get(key) for key in attributes) for event in self.events(name))


@contextmanager
def receiver() -> Iterator[Received]:
    """Run a receiver; what it got is complete when the block ends."""
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__))], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    received = Received(f"http://127.0.0.1:{int(process.stdout.readline())}")
    try:
        yield received
    finally:
        output, _ = process.communicate(timeout=30)
        received.spans += [span for line in output.splitlines() for span in json.loads(line)["spans"]]


def main() -> None:
    """Serve on a free port of the loopback interface until standard input ends."""
    import threading

    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    print(server.server_port, flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()
    server.shutdown()


if __name__ == "__main__":
    main()
