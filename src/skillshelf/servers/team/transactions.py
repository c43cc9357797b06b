"""The protocols of the team's databases: transactions that see one tenant, with the same statements for each engine.

Statements have `?` for a parameter.
"""

import time
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, Literal, Protocol

from skillshelf.errors import ConfigurationError

__all__ = ["NOT_KEPT", "Database", "Engine", "Row", "Transaction", "Transactions", "now_ms", "require_version"]

Row = tuple[Any, ...]
Engine = Literal["sqlite", "postgresql"]

NOT_KEPT: Final = "a value has characters or digits that no database keeps"
"""The message about a value of a request that is no mistake of the database."""


def now_ms() -> int:
    """Return the time in milliseconds, as the database keeps it."""
    return time.time_ns() // 1_000_000


class Transaction(Protocol):
    """A transaction of one tenant. It is committed at the end of its block, and rolled back by an exception.

    `row_lock` ends a `select` whose rows stay locked until the end; SQLite has one writer anyway, and needs none.
    """

    tenant: str
    engine: Engine
    row_lock: str

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        """Run a statement, and return the number of rows that it changed."""

    def execute_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement for each row of parameters."""

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """Return all rows of a query."""

    def row(self, sql: str, parameters: Sequence[Any] = ()) -> Row | None:
        """Return the first row of a query, or None."""


class Database(Protocol):
    """A database of many tenants. Its methods may be called by many threads; they raise `DatabaseAway`."""

    engine: Engine

    def transaction(self, tenant: str, *, readonly: bool = False) -> "Transactions":
        """Return the block of a transaction that sees the rows of this tenant only."""

    def add_tenant(self, slug: str) -> bool:
        """Add a tenant; return False if there is one of this name."""

    def alone(self, task: str) -> AbstractContextManager[bool]:
        """Return the block of a task that one server does at a time; it gets False while another one does it."""

    def check(self) -> None:
        """Raise `DatabaseAway` if the database does not answer."""

    def close(self) -> None:
        """Close the connections that are not used."""


class Transactions(Protocol):
    """The block of a transaction."""

    def __enter__(self) -> Transaction: ...

    def __exit__(self, *error: Any) -> bool | None: ...


def require_version(found: int, current: int, what: str) -> None:
    """Raise `ConfigurationError` for a database of a newer version."""
    if found > current:
        raise ConfigurationError(
            f"{what} has version {found}, and this program knows versions up to {current} (update skillshelf)"
        )
