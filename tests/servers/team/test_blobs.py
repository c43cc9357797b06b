"""The blob stores of a team server keep bytes under their digests, and say with one error when they cannot."""

from __future__ import annotations

import os
import socket
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from support.docker_registry import docker_registry, needs_docker_registry
from support.needs import require

from skillshelf.core.environment import make_environment
from skillshelf.errors import ConfigurationError
from skillshelf.servers.team.blobs import BlobStore, RegistryBlobs, S3Blobs, digest_of, open_blobs
from skillshelf.servers.team.values import BlobsAway


@contextmanager
def s3_server() -> Iterator[str]:
    """Run an S3 server with a bucket `team` until the end of the block."""
    require("moto")
    require("flask")
    require("obstore")
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        address = f"http://{host}:{port}"
        urllib.request.urlopen(urllib.request.Request(f"{address}/team", method="PUT")).close()
        yield address
    finally:
        server.stop()


@contextmanager
def opened(kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[BlobStore]:
    """Open a store of each kind."""
    environment = make_environment(str(folder), str(folder), {})
    if kind == "folder":
        yield open_blobs(str(folder / "blobs"), environment)
    elif kind == "s3":
        with s3_server() as address:
            env = {
                "AWS_ACCESS_KEY_ID": "id",
                "AWS_SECRET_ACCESS_KEY": "key",
                "AWS_REGION": "us-east-1",
                "AWS_ENDPOINT_URL": address,
            }
            for name, value in env.items():
                monkeypatch.setenv(name, value)
            yield open_blobs("s3://team/some/prefix", make_environment(str(folder), str(folder), env))
    else:
        with docker_registry(folder / "registry") as host:
            yield open_blobs(f"oci://{host}/team/blobs", environment)


KINDS = [
    "folder",
    pytest.param("s3", marks=pytest.mark.slow),
    pytest.param("oci", marks=[pytest.mark.slow, needs_docker_registry]),
]


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_are_kept_under_their_digest_and_the_same_bytes_again_change_nothing(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = b"some bytes\x00" * 1000
    digest = digest_of(data)
    with opened(kind, tmp_path, monkeypatch) as blobs:
        assert blobs.get(digest) is None
        assert not blobs.has(digest)
        blobs.put_new(digest, data)
        blobs.put_new(digest, data)
        assert blobs.get(digest) == data
        assert blobs.has(digest)
        with pytest.raises(ValueError, match="not the bytes of"):
            blobs.put_new(digest, b"others")


@pytest.mark.parametrize("kind", KINDS)
def test_a_store_that_can_be_used_is_told_and_keeps_nothing_of_the_look(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(kind, tmp_path, monkeypatch) as blobs:
        blobs.check()
        assert not blobs.has(digest_of(b""))
        if kind == "folder":
            assert list((tmp_path / "blobs").iterdir()) == []


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for place in ("file", "file/below"):
        with pytest.raises(BlobsAway, match=f"the blobs in {tmp_path}/{place} cannot be used"):
            open_blobs(f"{tmp_path}/{place}", make_environment(str(tmp_path), str(tmp_path), {})).check()


@pytest.mark.slow
def test_a_bucket_that_does_not_exist_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened("s3", tmp_path, monkeypatch):
        blobs = open_blobs("s3://teem/some/prefix", make_environment(str(tmp_path), str(tmp_path), dict(os.environ)))
        with pytest.raises(BlobsAway, match="s3://teem/some/prefix cannot be used: there is no such bucket"):
            blobs.check()


@pytest.mark.parametrize("kind", ["folder", pytest.param("s3", marks=pytest.mark.slow)])
def test_a_blob_that_nobody_needs_is_removed(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(kind, tmp_path, monkeypatch) as blobs:
        blobs.put_new(digest_of(b"x"), b"x")
        blobs.remove(digest_of(b"x"))
        blobs.remove(digest_of(b"x"))
        assert blobs.get(digest_of(b"x")) is None


@pytest.mark.slow
def test_a_damaged_object_is_replaced_by_its_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digest = digest_of(b"right")
    with opened("s3", tmp_path, monkeypatch) as blobs:
        address = f"{os.environ['AWS_ENDPOINT_URL']}/team/some/prefix/{digest.removeprefix('sha256:')}"
        urllib.request.urlopen(urllib.request.Request(address, data=b"wrong", method="PUT")).close()
        with pytest.raises(BlobsAway, match="other bytes"):
            blobs.get(digest)
        blobs.put_new(digest, b"right")
        assert blobs.get(digest) == b"right"


def test_a_damaged_blob_is_an_error_and_never_handed_out(tmp_path: Path) -> None:
    blobs = open_blobs(str(tmp_path), make_environment(str(tmp_path), str(tmp_path), {}))
    blobs.put_new(digest_of(b"right"), b"right")
    path = next(path for path in tmp_path.rglob("*") if path.is_file())
    assert path.stat().st_mode & 0o777 == 0o400
    path.chmod(0o600)
    path.write_bytes(b"wrong")
    with pytest.raises(BlobsAway, match="other bytes"):
        blobs.get(digest_of(b"right"))
    blobs.put_new(digest_of(b"right"), b"right")
    assert blobs.get(digest_of(b"right")) == b"right"


@pytest.mark.parametrize("kind", [pytest.param("s3", marks=pytest.mark.slow)])
def test_a_store_that_does_not_answer_is_one_error(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(kind, tmp_path, monkeypatch) as blobs:
        pass
    for act in (blobs.get, blobs.has):
        with pytest.raises(BlobsAway, match=r"s3://team/some/prefix cannot be used"):
            act(digest_of(b"x"))
    with pytest.raises(BlobsAway, match=r"s3://team/some/prefix cannot be used"):
        blobs.check()


@pytest.mark.parametrize("url", ["oci://", "oci://host"])
def test_an_address_of_a_registry_without_a_repository_says_how_it_is_written(url: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=f"a repository is written oci://HOST/REPOSITORY, not '{url}'"):
        open_blobs(url, make_environment(str(tmp_path), str(tmp_path), {}))


@pytest.mark.parametrize("kind", ["s3", "oci"])
def test_a_store_that_hangs_is_asked_once(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require("obstore")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host = f"127.0.0.1:{silent.getsockname()[1]}"
        env = {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "key", "AWS_REGION": "us-east-1"}
        env["AWS_ENDPOINT_URL"] = f"http://{host}"
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        environment = make_environment(str(tmp_path), str(tmp_path), env)
        blobs: BlobStore = RegistryBlobs(f"oci://{host}/team/blobs", environment, seconds=1)
        if kind == "s3":
            blobs = S3Blobs("s3://team/prefix", environment, seconds=1)
        with pytest.raises(BlobsAway, match=r"cannot be used"):
            blobs.get(digest_of(b"x"))
        with pytest.raises(BlobsAway, match=r"cannot be used"):
            blobs.put_new(digest_of(b"x"), b"x")
        assert len(_waiting(silent)) == 2


def _waiting(listener: socket.socket) -> list[socket.socket]:
    """Return the connections that nobody has accepted yet."""
    listener.setblocking(False)
    found = []
    with suppress(BlockingIOError):
        while True:
            found.append(listener.accept()[0])
    for connection in found:
        connection.close()
    return found


@pytest.mark.parametrize("url", ["ftp://host/x", "s3://", "s3://id:key@bucket/x", "oci://host/repo:tag"])
def test_an_address_that_is_no_store_is_refused(url: str, tmp_path: Path) -> None:
    if url.startswith("s3"):
        require("obstore")
    with pytest.raises(ConfigurationError):
        open_blobs(url, make_environment(str(tmp_path), str(tmp_path), {}))


@pytest.mark.parametrize("digest", ["sha256:../../etc/passwd", "abc", "sha256:" + "A" * 64])
def test_what_is_no_digest_never_becomes_a_path(digest: str, tmp_path: Path) -> None:
    blobs = open_blobs(str(tmp_path), make_environment(str(tmp_path), str(tmp_path), {}))
    with pytest.raises(ValueError, match="not a digest"):
        blobs.get(digest)
