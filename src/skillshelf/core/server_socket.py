"""Open the socket that a server listens on."""

import errno
import socket

from skillshelf.errors import ConfigurationError

__all__ = ["listening_socket"]


def listening_socket(host: str, port: int, *, backlog: int, hint: str) -> socket.socket:
    """Return a socket that listens at an address, or raise `ConfigurationError` with a hint."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The event loop sends each part of a response at once only where the protocol is named. Otherwise the system keeps
    # the second part back until the client confirms the first, which takes 40 ms.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
        bound.listen(backlog)
    except OSError as error:
        bound.close()
        advice = _advice(error, hint)
        raise ConfigurationError(f"cannot listen on {host}:{port}: {error.strerror or error} ({advice})") from None
    return bound


def _advice(error: OSError, hint: str) -> str:
    """Return what to do about an address that cannot be had; the hint is about a port that is in use."""
    if isinstance(error, socket.gaierror) or error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
        return "name an address of this machine, such as 127.0.0.1 or 0.0.0.0"
    return "ports below 1024 are for root" if error.errno == errno.EACCES else hint
