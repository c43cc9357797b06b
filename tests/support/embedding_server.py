"""A server on this machine that speaks the embeddings API: near are texts that share words or meanings."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from support.http_sites import Request, Site, answer

__all__ = ["EmbeddingServer", "embedded"]

_MEANINGS = {"paint": "colour", "paints": "colour", "colours": "colour", "bake": "bread", "bakes": "bread"}
_SIZE = 64


def embedded(text: str) -> list[float]:
    """Return a vector with a number for each word of a text; words of one meaning share theirs."""
    vector = [0.0] * _SIZE
    for word in re.findall(r"\w+", text.lower()):
        vector[sha256(_MEANINGS.get(word, word).encode()).digest()[0] % _SIZE] += 1.0
    return vector


class EmbeddingServer(Site):
    """A site with one route, `/v1/embeddings`; `sent` are the texts of all requests."""

    def __init__(self) -> None:
        super().__init__({"/v1/embeddings": self._embed})
        self.address = f"{self.url}/v1"
        self.size = _SIZE

    @property
    def sent(self) -> list[Sequence[str]]:
        return [json.loads(request.body)["input"] for request in self.requests]

    def _embed(self, request: Request, connection: socket.socket) -> None:
        texts = json.loads(request.body)["input"]
        data: list[Any] = [{"index": n, "embedding": embedded(text)[: self.size]} for n, text in enumerate(texts)]
        # In another order than asked: the index counts.
        connection.sendall(answer(json.dumps({"object": "list", "data": data[::-1]}).encode()))
