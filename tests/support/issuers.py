"""An issuer of signed tokens for tests, in this process or over HTTP."""

from __future__ import annotations

import base64
import functools
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from skillshelf.errors import SkillError

pytest.importorskip("jwt", reason="needs the extra: pip install 'skillshelf[server]'")
pytest.importorskip("cryptography", reason="needs the extra: pip install 'skillshelf[server]'")

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

__all__ = ["AUDIENCE", "URL", "IssuerUnderTest", "issuer_over_http", "unsigned"]

URL = "https://login.example"
AUDIENCE = "https://skills.example/mcp"


@functools.cache
def _keys() -> dict[str, Any]:
    return {
        "rsa": rsa.generate_private_key(public_exponent=65537, key_size=2048),
        "ec": ec.generate_private_key(ec.SECP256R1()),
        "ed": ed25519.Ed25519PrivateKey.generate(),
    }


class IssuerUnderTest:
    """An issuer with keys of several kinds, which can be away, slow or wrong."""

    def __init__(self, url: str = URL) -> None:
        self.url = self.name = url
        self.keys = dict(_keys())
        self.offered = list(self.keys)
        self.is_away = False
        self.asked = 0

    def fetch(self, url: str) -> Mapping[str, Any]:
        """The document at an address."""
        self.asked += 1
        if self.is_away:
            raise SkillError("away")
        if url == f"{self.url}/.well-known/openid-configuration":
            return {"issuer": self.name, "jwks_uri": f"{self.url}/keys"}
        if url != f"{self.url}/keys":
            raise SkillError("not found")
        return {"keys": [{"kty": "oct", "k": "AAAA", "kid": "shared"}, "odd", *map(self.public, self.offered)]}

    def public(self, name: str) -> dict[str, Any]:
        """A key as the issuer publishes it."""
        algorithm = {"rsa": "RS256", "ec": "ES256", "ed": "EdDSA"}[name.partition("-")[0]]
        found = json.loads(jwt.get_algorithm_by_name(algorithm).to_jwk(self.keys[name].public_key()))
        return {**found, "kid": name, "use": "sig", "alg": algorithm}

    def token(self, name: str = "rsa", *, headers: Mapping[str, Any] | None = None, **claims: Any) -> str:
        """A token with good claims, but for those that a test gives; None leaves one out."""
        algorithm = {"rsa": "RS256", "ec": "ES256", "ed": "EdDSA"}[name.partition("-")[0]]
        now = int(time.time())
        given = {"iss": self.url, "aud": AUDIENCE, "sub": "ada", "exp": now + 600, "iat": now, **claims}
        kept = {key: value for key, value in given.items() if value is not None}
        named = {key: value for key, value in {"kid": name, **(headers or {})}.items() if value is not None}
        made: str = jwt.encode(kept, self.keys[name], algorithm, headers=named)
        return made


def unsigned(claims: Mapping[str, Any], header: Mapping[str, Any]) -> str:
    """A token without a signature."""
    parts = (base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in (header, claims))
    return ".".join((*parts, ""))


@contextmanager
def issuer_over_http() -> Iterator[IssuerUnderTest]:
    """An issuer that listens on this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            try:
                body, status = json.dumps(issuer.fetch(issuer.url + self.path)).encode(), 200
            except SkillError:
                body, status = b"", 404
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    issuer = IssuerUnderTest(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield issuer
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
