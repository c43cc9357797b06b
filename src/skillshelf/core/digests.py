"""SHA-256 without the import of OpenSSL, which takes longer than most digests of a skill."""

import sys

TYPE_CHECKING = False

if TYPE_CHECKING:
    from hashlib import _Hash

__all__ = ["sha256"]


def sha256(data: bytes = b"") -> "_Hash":
    """Return a SHA-256 object: by `hashlib` if that is loaded or much is to be read, else by Python's own module."""
    if "hashlib" not in sys.modules and len(data) < _MUCH:
        try:
            if sys.version_info >= (3, 12):
                from _sha2 import sha256 as small
            else:
                from _sha256 import sha256 as small  # type: ignore[import-not-found]
            return small(data)  # type: ignore[no-any-return]
        except ImportError:
            # Another Python than CPython.
            pass
    from hashlib import sha256 as large

    return large(data)


_MUCH = 1 << 20
