"""The version, for modules that may not import the package itself; a test holds it equal to the package's own."""

__all__ = ["VERSION"]

VERSION = "0.1.0"
