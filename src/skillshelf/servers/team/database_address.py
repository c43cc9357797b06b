"""The address of a team's database: found in an option, a file or a variable, shown without its password, written."""

import os
from urllib.parse import urlsplit

from skillshelf.core import disk_writes, files
from skillshelf.core.environment import Environment, secret_in, user_data_folder
from skillshelf.core.limits import SECRET_FILE_BYTES
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import visible
from skillshelf.errors import ConfigurationError

__all__ = ["DATABASE_VARIABLE", "AddressFile", "DatabaseAddress", "database_address"]

DATABASE_VARIABLE = "SKILLSHELF_DATABASE"
"""The variable with the address of the database, so that a password is not in the list of processes."""

_SCHEMES = ("sqlite:///", "postgresql://", "postgres://")


class DatabaseAddress(NamedTuple):
    """The address of a database; the default one is a SQLite file that nobody named."""

    url: str
    is_default: bool = False

    @property
    def is_postgres(self) -> bool:
        """Whether it is an address of PostgreSQL."""
        return self.url.startswith("postgres")

    @property
    def has_password(self) -> bool:
        """Whether the address holds a password."""
        return self.is_postgres and bool(_settings(self.url).get("password"))

    @property
    def role(self) -> str | None:
        """The role of PostgreSQL that connects; None for SQLite and for an address that names none."""
        return _settings(self.url).get("user") if self.is_postgres else None

    @property
    def place(self) -> str:
        """The kind of database and where it is, in words that hold no password."""
        if not self.is_postgres:
            return f"SQLite, {visible(os.path.abspath(self.url.removeprefix('sqlite:///')))}"
        known = _settings(self.url)
        host = known.get("host") or known.get("hostaddr") or "the local socket"
        port = f":{known['port']}" if known.get("port") else ""
        return visible(f"PostgreSQL, {known.get('dbname', '')} at {host}{port} as {known.get('user', '')}")

    def without_password(self) -> str:
        """Return the address without the password of its role."""
        parts = urlsplit(self.url)
        login, at, host = parts.netloc.rpartition("@")
        return parts._replace(netloc=f"{login.partition(':')[0]}{at}{host}").geturl() if self.is_postgres else self.url


def _settings(url: str) -> dict[str, str]:
    """Return what an address of PostgreSQL says; nothing if it is malformed, which opening it reports."""
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    try:
        return {key: str(value) for key, value in conninfo_to_dict(url).items() if value}
    except psycopg.ProgrammingError:
        return {}


def database_address(given: str | None, environment: Environment, *, path: str | None = None) -> DatabaseAddress:
    """Return the address of the database: the given one, that in a file or the environment, or one of our own."""
    if given is not None and path is not None:
        raise ConfigurationError("--database and --database-file name one address; give one of them")
    if path is not None:
        return DatabaseAddress(_address_in(path))
    where = "--database" if given is not None else f"${DATABASE_VARIABLE}"
    given = given if given is not None else environment.env.get(DATABASE_VARIABLE)
    if given is not None:
        if not given.strip():
            # Another database than the one that was meant would be taken silently.
            raise ConfigurationError(f"{where} is empty; give it an address, or leave it out for a SQLite file")
        return DatabaseAddress(_required(given, where))
    folder = user_data_folder(environment)
    if folder is None:
        raise ConfigurationError("there is no home folder for the database (name one with --database)")
    return DatabaseAddress(f"sqlite:///{folder}/team/team.sqlite", is_default=True)


def _address_in(path: str) -> str:
    if not path:
        raise ConfigurationError("--database-file is empty; name a file with an address")
    address = secret_in(path, what="database file")
    if not address or not address.isprintable():
        raise ConfigurationError(f"database file {path} does not hold one address")
    return _required(address, f"database file {path}")


def _required(address: str, where: str) -> str:
    """Return an address of a kind that is known; else raise `ConfigurationError` with no more than its scheme."""
    if address.startswith(_SCHEMES):
        return address
    # What is none may be a token, or hold a password.
    scheme, mark, _ = address.partition("://")
    shown = f", not {scheme}://..." if mark and scheme.replace("+", "").isalnum() else ""
    raise ConfigurationError(f"{where} takes sqlite:///FILE or postgresql://...{shown}")


class AddressFile:
    """A file for the address that a migration prints; what it has before is looked at first, and kept if in doubt."""

    def __init__(self, path: str, *, role: str | None) -> None:
        """Look at the file; raise `ConfigurationError` if it has anything else than an address of this role."""
        self.path = path
        self._target = files.real_path(os.path.abspath(path))
        self._role = role
        self.before = self._address()

    def _address(self) -> DatabaseAddress | None:
        if files.kind_at(self._target) is None:
            if files.kind_at(os.path.dirname(self._target)) != "folder":
                raise ConfigurationError(f"--write-address: there is no folder for {self.path}")
            return None
        try:
            data = files.read_file(self._target, limit=SECRET_FILE_BYTES, links="never")
        except OSError as error:
            raise ConfigurationError(f"--write-address: {self.path} cannot be read: {error.strerror}") from None
        if data is not None and not data.strip():
            return None
        address = DatabaseAddress((data or b"").decode("utf-8", "replace").strip())
        role = self._role
        if address.is_postgres != (role is not None) or (role is None and not address.url.startswith("sqlite:")):
            raise ConfigurationError(f"--write-address: {self.path} has something else; name another file")
        if address.role != role:
            raise ConfigurationError(f"--write-address: {self.path} has the address of another role; name another file")
        return address

    def write(self, address: DatabaseAddress) -> bool:
        """Write an address, closed to others; return False if the file keeps one with a password that this one lacks.

        Raise OSError if it cannot be written.
        """
        if not address.has_password:
            # Again: the migration that this one waited for may have made the role, and written its password.
            self.before = self._address()
            if self.before is not None and self.before.has_password:
                return False
        disk_writes.replace_file(self._target, f"{address.url}\n".encode(), closed=True)
        return True
