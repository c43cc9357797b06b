"""BLAKE2 without the import of OpenSSL, which takes longer than most of its digests."""

try:
    from _blake2 import blake2b
except ImportError:
    # Another Python than CPython.
    from hashlib import blake2b

__all__ = ["blake2b"]
