"""Blob stores of a team server: bytes under their SHA-256, in a folder, in S3, or in an OCI registry.

Bytes are compared with their digest whenever they are read. Writing costs the same whether or not they are there, so
nobody can tell by the time what others have.
"""

import errno
import os
import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from skillshelf.core import files
from skillshelf.core.digests import sha256
from skillshelf.core.disk_writes import free_bytes, make_own_folder, remove, replace_file
from skillshelf.core.environment import Environment
from skillshelf.core.http_client import HttpRequest, is_loopback_name, require_found
from skillshelf.core.limits import BLOB_BYTES, BLOB_SECONDS, DISK_LEAST_BYTES, OCI_MANIFEST_BYTES
from skillshelf.core.text import cut, fold
from skillshelf.errors import ConfigurationError, SkillError
from skillshelf.servers.team.values import NO_SPACE, BlobsAway, BlobsFull

if TYPE_CHECKING:
    from skillshelf.install.oci import RegistryClient

__all__ = ["BlobStore", "FolderBlobs", "RegistryBlobs", "S3Blobs", "digest_of", "open_blobs", "require_room"]

_REASON_CHARS = 200
_PAGE = 4096


def digest_of(data: bytes) -> str:
    """Return the digest that bytes are stored under."""
    return f"sha256:{sha256(data).hexdigest()}"


_NOTHING = digest_of(b"")


class BlobStore(Protocol):
    """A store of bytes by digest. Its methods may be called by many threads; they raise `BlobsAway`."""

    def get(self, digest: str) -> bytes | None:
        """Return the bytes of a digest, compared with it; None if they are not there."""

    def put_new(self, digest: str, data: bytes) -> None:
        """Store bytes under their digest; the same bytes again change nothing."""

    def has(self, digest: str) -> bool:
        """Return whether there are bytes under a digest."""

    def remove(self, digest: str) -> None:
        """Remove bytes that nobody needs any more, if the store can do that."""

    def check(self) -> None:
        """Raise `BlobsAway` if the store cannot be used: a folder not be written, another store not be asked."""


def open_blobs(url: str, environment: Environment) -> BlobStore:
    """Return the store at a folder, `s3://BUCKET/PREFIX` or `oci://HOST/REPOSITORY`; raise `ConfigurationError`."""
    if url.startswith("s3://"):
        return S3Blobs(url, environment)
    if url.startswith("oci://"):
        return RegistryBlobs(url, environment)
    if "://" in url and not url.startswith("file:///"):
        raise ConfigurationError(f"--blobs takes a folder, s3://BUCKET/PREFIX or oci://HOST/REPOSITORY, not {url!r}")
    return FolderBlobs(os.path.abspath(url.removeprefix("file://")))


def _hex(digest: str) -> str:
    """Return the hex digits of a digest; raise ValueError for anything else, which could be a path."""
    value = digest.removeprefix("sha256:")
    if digest == value or len(value) != 64 or not set(value) <= set("0123456789abcdef"):
        raise ValueError(f"not a digest: {digest!r}")
    return value


def _checked(digest: str, data: bytes, where: str) -> bytes:
    if digest_of(data) != digest:
        raise BlobsAway(f"{where} has other bytes under {digest} than were stored there")
    return data


def _to_store(digest: str, data: bytes) -> str:
    """Return the hex digits under which bytes are stored; raise for bytes that are not those of the digest."""
    if len(data) > BLOB_BYTES:
        raise BlobsAway(f"a blob has {len(data)} bytes; at most {BLOB_BYTES} (BLOB_BYTES)")
    if digest_of(data) != digest:
        raise ValueError(f"not the bytes of {digest}")
    return _hex(digest)


def _reason(error: BaseException) -> str:
    return cut(fold(str(error)), _REASON_CHARS) or type(error).__name__


def require_room(folder: str, named: str) -> None:
    """Write a small file into a folder, and remove it; raise `BlobsAway` with its name if that is not possible."""
    try:
        make_own_folder(folder)
        path = f"{folder}/.check-{os.getpid()}-{threading.get_ident()}"
        try:
            replace_file(path, bytes(_PAGE), durable=False)
        finally:
            remove(path)
        if free_bytes(folder) < DISK_LEAST_BYTES:
            raise BlobsFull(NO_SPACE)
    except OSError as error:
        raise _away_for(named, error) from None


def _away_for(named: str, error: OSError) -> BlobsAway:
    kind = BlobsFull if error.errno in (errno.ENOSPC, errno.EDQUOT) else BlobsAway
    return kind(f"{named} cannot be used: {error.strerror or error}")


class FolderBlobs:
    """Blobs as read-only files below a folder, each moved to its place by one rename."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._named = f"the blobs in {folder}"

    def get(self, digest: str) -> bytes | None:
        """Return the bytes of a file."""
        path = self._path(_hex(digest))
        try:
            data = files.read_file(path, limit=BLOB_BYTES, links="never")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._away(error) from None
        if data is None:
            raise BlobsAway(f"{path} is no file, or has more than {BLOB_BYTES} bytes (BLOB_BYTES)")
        return _checked(digest, data, self.folder)

    def put_new(self, digest: str, data: bytes) -> None:
        """Write a file; a damaged one is replaced."""
        path = self._path(_to_store(digest, data))
        try:
            make_own_folder(os.path.dirname(path))
            replace_file(path, data, mode=0o400)
        except OSError as error:
            raise self._away(error) from None

    def has(self, digest: str) -> bool:
        """Look for the file."""
        return files.kind_at(self._path(_hex(digest))) == "file"

    def remove(self, digest: str) -> None:
        """Remove the file."""
        remove(self._path(_hex(digest)))

    def check(self) -> None:
        """Write a small file where all of them are, and remove it."""
        require_room(self.folder, self._named)

    def _path(self, value: str) -> str:
        return f"{self.folder}/{value[:2]}/{value[2:]}"

    def _away(self, error: OSError) -> BlobsAway:
        return _away_for(self._named, error)


class S3Blobs:
    """Blobs as objects of a bucket. The usual variables of AWS say where it is and who may use it."""

    def __init__(self, url: str, environment: Environment, *, seconds: float = BLOB_SECONDS) -> None:
        try:
            from obstore.exceptions import BaseError
            from obstore.store import S3Store
        except ImportError:
            raise ConfigurationError("s3:// needs obstore: pip install 'skillshelf[server]'") from None
        parts = urlsplit(url)
        if not parts.netloc or parts.query or parts.fragment or "@" in parts.netloc:
            raise ConfigurationError(
                "a bucket is written s3://BUCKET/PREFIX; credentials come from the variables of AWS"
            )
        self._where = f"s3://{parts.netloc}{parts.path}"
        endpoint = environment.env.get("AWS_ENDPOINT_URL_S3") or environment.env.get("AWS_ENDPOINT_URL") or ""
        named = urlsplit(endpoint)
        if named.scheme == "http" and not is_loopback_name(named.hostname or ""):
            raise ConfigurationError(f"plain http goes to this machine alone, not to {named.hostname}; use https")
        most = timedelta(seconds=seconds)
        options: Any = {
            "prefix": parts.path.strip("/") or None,
            "client_options": {"allow_http": named.scheme == "http", "timeout": most},
            # What failed at once is tried again; what took its whole time is not.
            "retry_config": {"max_retries": 2, "retry_timeout": most},
            **({"endpoint": endpoint} if endpoint else {}),
        }
        try:
            self._store = S3Store(parts.netloc, **options)
        except (BaseError, ValueError) as error:
            raise ConfigurationError(f"{self._where} cannot be used: {_reason(error)}") from None

    def get(self, digest: str) -> bytes | None:
        """Return the bytes of an object."""
        import obstore
        from obstore.exceptions import BaseError

        try:
            found = obstore.get(self._store, _hex(digest))
            if found.meta["size"] > BLOB_BYTES:
                raise BlobsAway(f"{self._where} has a blob of more than {BLOB_BYTES} bytes (BLOB_BYTES)")
            return _checked(digest, bytes(found.bytes()), self._where)
        except FileNotFoundError:
            return None
        except (BaseError, OSError) as error:
            raise self._away(error) from None

    def put_new(self, digest: str, data: bytes) -> None:
        """Put an object; one that is there has the same bytes, or is damaged and replaced."""
        import obstore
        from obstore.exceptions import BaseError

        try:
            obstore.put(self._store, _to_store(digest, data), data, use_multipart=False)
        except (BaseError, OSError) as error:
            raise self._away(error) from None

    def has(self, digest: str) -> bool:
        """Ask for the size of an object."""
        import obstore
        from obstore.exceptions import BaseError

        try:
            obstore.head(self._store, _hex(digest))
        except FileNotFoundError:
            return False
        except (BaseError, OSError) as error:
            raise self._away(error) from None
        return True

    def remove(self, digest: str) -> None:
        """Delete an object."""
        import obstore
        from obstore.exceptions import BaseError

        try:
            obstore.delete(self._store, _hex(digest))
        except FileNotFoundError:
            return
        except (BaseError, OSError) as error:
            raise self._away(error) from None

    def check(self) -> None:
        """Ask for an object that need not be there, in a bucket that must be."""
        import obstore
        from obstore.exceptions import BaseError

        try:
            obstore.get(self._store, _hex(_NOTHING))
        except FileNotFoundError as error:
            # Both have the status 404, and only the body of the answer says which of them is missing.
            if "NoSuchBucket" in str(error):
                raise BlobsAway(f"{self._where} cannot be used: there is no such bucket") from None
        except (BaseError, OSError) as error:
            raise self._away(error) from None

    def _away(self, error: BaseException) -> BlobsAway:
        return BlobsAway(f"{self._where} cannot be used: {_reason(error)}")


class RegistryBlobs:
    """Blobs of a repository in a registry. A registry that collects garbage must leave this repository out."""

    def __init__(self, url: str, environment: Environment, *, seconds: float = BLOB_SECONDS) -> None:
        from skillshelf.install.reference import parse_reference

        if not urlsplit(url).path.strip("/"):
            raise ConfigurationError(f"a repository is written oci://HOST/REPOSITORY, not {url!r}")
        reference = parse_reference(url, environment)
        if reference.ref is not None:
            raise ConfigurationError(f"{url}: blobs have no tag; write oci://HOST/REPOSITORY")
        self._where = reference.canonical
        self._location = reference.location
        self._environment = environment
        self._seconds = seconds

    def _client(self) -> "RegistryClient":
        # A client for each request: it keeps a login, and threads would share it.
        from skillshelf.install.oci import RegistryClient

        host = self._location.partition("/")[0].rpartition(":")[0] or self._location.partition("/")[0]
        return RegistryClient(
            self._location,
            self._environment,
            allow_http=is_loopback_name(host),
            seconds=self._seconds,
            limit="BLOB_SECONDS",
            actions="pull,push",
        )

    def get(self, digest: str) -> bytes | None:
        """Return the bytes of a blob."""
        client = self._client()
        try:
            answer = client.send(HttpRequest(client.address(f"blobs/sha256:{_hex(digest)}"), BLOB_BYTES))
            if answer.status == 404:
                return None
            return _checked(digest, require_found(answer).data, self._where)
        except BlobsAway:
            raise
        except SkillError as error:
            raise self._away(error) from None

    def put_new(self, digest: str, data: bytes) -> None:
        """Upload a blob, also one that is there, and read it back: a registry may keep a damaged one that it has."""
        from skillshelf.install.publish import upload_blob

        _to_store(digest, data)
        try:
            upload_blob(self._client(), data)
        except SkillError as error:
            raise self._away(error) from None
        if self.get(digest) is None:
            raise BlobsAway(f"{self._where} took {digest}, and does not have it")

    def has(self, digest: str) -> bool:
        """Ask for a blob."""
        return self._status("HEAD", digest) == 200

    def remove(self, digest: str) -> None:
        """Delete a blob; many registries do not allow that, and keep it."""
        self._status("DELETE", digest)

    def check(self) -> None:
        """Ask for a blob that need not be there."""
        if (status := self._status("HEAD", _NOTHING)) not in (200, 404):
            raise BlobsAway(f"{self._where} cannot be used: it answers {status}")

    def _status(self, method: str, digest: str) -> int:
        client = self._client()
        try:
            address = client.address(f"blobs/sha256:{_hex(digest)}")
            return client.send(HttpRequest(address, OCI_MANIFEST_BYTES, method)).status
        except SkillError as error:
            raise self._away(error) from None

    def _away(self, error: SkillError) -> BlobsAway:
        return BlobsAway(f"{self._where} cannot be used: {_reason(error)}")
