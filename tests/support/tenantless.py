"""Databases whose statements have lost their tenant, as if every query of the application had forgotten it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import skillshelf.servers.team
from skillshelf.servers.team.database import PostgresDatabase, SqliteDatabase, Transaction

__all__ = ["TenantlessPostgres", "TenantlessSqlite", "conditions_in_source", "without_tenant"]

_COLUMN = r"(?:\w+\.)?tenant"
_VALUE = re.compile(rf"\b{_COLUMN} = \?|(?<=from tenant where )id = \?")
_JOINED = re.compile(rf"\b{_COLUMN} = {_COLUMN}\b")


def without_tenant(sql: str, engine: str) -> str:
    """The statement with conditions that are always true in place of those about the tenant."""
    always = "(cast(? as text) is not null)" if engine == "postgresql" else "(? is not null)"
    return _JOINED.sub("1 = 1", _VALUE.sub(always, sql))


class _TenantlessTransaction:
    """A transaction that strips every statement and notes which ones it changed."""

    def __init__(self, own: Transaction, stripped: list[str]) -> None:
        self._own = own
        self._stripped = stripped
        self.tenant, self.engine, self.row_lock = own.tenant, own.engine, own.row_lock

    def _changed(self, sql: str) -> str:
        found = without_tenant(sql, self.engine)
        if found != sql:
            self._stripped.append(sql)
        assert not re.search(rf"\b{_COLUMN} =", found), f"a condition about the tenant is left: {found}"
        return found

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        return self._own.execute(self._changed(sql), parameters)

    def execute_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        self._own.execute_many(self._changed(sql), rows)

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._own.rows(self._changed(sql), parameters)

    def row(self, sql: str, parameters: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        return self._own.row(self._changed(sql), parameters)


class TenantlessPostgres(PostgresDatabase):
    """PostgreSQL as the server uses it, but for the tenant in its statements."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.stripped: list[str] = []

    @contextmanager
    def transaction(self, tenant: str, *, readonly: bool = False) -> Iterator[Transaction]:
        with super().transaction(tenant, readonly=readonly) as own:
            yield _TenantlessTransaction(own, self.stripped)


class TenantlessSqlite(SqliteDatabase):
    """SQLite as the server uses it, but for the tenant in its statements."""

    def __init__(self, path: str) -> None:
        self.stripped: list[str] = []
        super().__init__(path)

    @contextmanager
    def transaction(self, tenant: str, *, readonly: bool = False) -> Iterator[Transaction]:
        with super().transaction(tenant, readonly=readonly) as own:
            yield _TenantlessTransaction(own, self.stripped)


def conditions_in_source() -> set[str]:
    """The parts of all statements in the source of the server that name a tenant, each with some words around it."""
    found = set()
    for path in sorted(Path(skillshelf.servers.team.__file__).parent.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            # A docstring names no value.
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and _VALUE.search(node.value):
                found |= {re.sub(r"\s+", " ", line) for line in node.value.splitlines() if _VALUE.search(line)}
    return found
