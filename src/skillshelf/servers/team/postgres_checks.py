"""Check a PostgreSQL database before it is used: why there is no connection, the role, and what keeps tenants apart.

What is said never holds a password, although the errors of the library may quote the address.
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from skillshelf.core.text import cut, fold
from skillshelf.errors import ConfigurationError
from skillshelf.servers.team.migrations import APP_ROLE, SCHEMA, RowPolicy, row_policies
from skillshelf.servers.team.transactions import Row

if TYPE_CHECKING:
    import psycopg

__all__ = ["MALFORMED", "connection_problem", "require_kept_apart", "require_plain_role", "require_utf8"]

MALFORMED: Final = (
    "the address of the database is not valid: it is written postgresql://USER:PASSWORD@HOST:PORT/NAME, "
    "with %40 for @, %3A for : and %2F for / in a password"
)

_REASON_CHARS = 200

# Connections -------------------------------------------------------------------------------------

_NEW_PASSWORD = (
    "; `skillshelf serve migrate --password-file` gives this role another one, for every server of the PostgreSQL "
    "cluster"
)

_PROBLEMS: Mapping[str, str] = {
    r"connection refused|no such file or directory": "nothing listens at {place} (is PostgreSQL running there?)",
    r"name or service not known|not known|translate host name|no address associated|resolve|name resolution": (
        "the host of {place} is not known (check the address)"
    ),
    r"password authentication failed|no password supplied|fe_sendauth": (
        "{place} does not take the password of {user} (check the address{new_password})"
    ),
    r"role .* does not exist": "{place} has no role {user} (use the address that `skillshelf serve migrate` prints)",
    r"database .* does not exist": "{place} has no database {name} (create it, then run `skillshelf serve migrate`)",
    r"pg_hba": "{place} does not let {user} connect to {name} from here (see its pg_hba.conf)",
    r"too many (clients|connections)|remaining connection slots": "{place} has no connection left (max_connections)",
    r"timeout expired|timed out": "{place} does not answer (check the address and the network)",
    r"\bssl\b|certificate": "{place} and this program do not agree about TLS ({reason})",
    r"starting up|shutting down|recovery mode": "{place} is starting or stopping; try again",
}
"""What the library says about a connection, and what is to be done about it."""


def connection_problem(url: str, error: Exception) -> str:
    """Return in one line why there is no connection to the database at an address, and what to do."""
    from psycopg.conninfo import conninfo_to_dict

    known = {key: str(value) for key, value in conninfo_to_dict(url).items() if value}
    port = known.get("port", "5432")
    if not port.replace(",", "").isdecimal() or "@" in known.get("host", "") + known.get("dbname", ""):
        # A password with a slash or an at sign, of which a part was taken for something else.
        return MALFORMED
    reason = fold(str(error)).rpartition(" failed: ")[2]
    for secret in filter(None, (known.get("password"), known.get("sslpassword"))):
        reason = reason.replace(secret, "...")
    place = f"{known.get('host', 'this machine')}:{port}"
    user = known.get("user", "this user")
    told = {"place": place, "user": user, "name": known.get("dbname", user), "reason": cut(reason, _REASON_CHARS)}
    told["new_password"] = _NEW_PASSWORD if user == APP_ROLE else ""
    for pattern, message in _PROBLEMS.items():
        if re.search(pattern, reason, re.IGNORECASE):
            return f"the database cannot be reached: {message.format(**told)}"
    return "the database cannot be reached: {place}: {reason}".format(**told)


def require_utf8(connection: "psycopg.Connection[Row]") -> None:
    """Raise `ConfigurationError` for a database that does not keep every character; one made without a locale is so."""
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise ConfigurationError(
            f"the database has the encoding {encoding}, and the text of skills needs UTF8 (make another one: "
            f"`create database {connection.info.dbname} encoding 'UTF8' locale 'C' template template0`)"
        )


# Roles -------------------------------------------------------------------------------------------

_ROLE = """select session_user, bool_or(r.rolsuper), bool_or(r.rolbypassrls), bool_or(r.rolcreaterole),
    bool_or(r.rolreplication), bool_or(r.rolname = any(%s)),
    bool_or(exists (select 1 from pg_shdepend d
        where d.refclassid = 'pg_authid'::regclass and d.refobjid = r.oid and d.deptype = 'o')),
    bool_or(r.rolname = %s)
    from pg_roles r
    where pg_has_role(session_user, r.oid, 'member') or pg_has_role(current_user, r.oid, 'member')"""
"""The role that logged in, and what holds for it or for a role that it may take on, or has taken on already.

A setting of the role or of the address may take one on at the start of a session, and `reset role` goes back.
"""

_MACHINE_ROLES = ("pg_execute_server_program", "pg_read_server_files", "pg_write_server_files")
"""Roles of PostgreSQL that reach the machine of the database, and so all of its files."""

_AS_ITSELF = "run `skillshelf serve migrate` as this role, and use the address that it prints"
_AS_OWNER = "use the address that `skillshelf serve migrate` prints when the owner of the tables runs it"


def require_plain_role(connection: "psycopg.Connection[Row]") -> None:
    """Raise `ConfigurationError` unless the role is that of the server, or a member of it, and may do nothing else."""
    row = connection.execute(_ROLE, ([*_MACHINE_ROLES], APP_ROLE)).fetchone()
    assert row is not None, "an aggregate has a row"
    name, is_super, bypasses, creates, replicates, reaches, owns, is_member = row
    why, advice = None, _AS_OWNER
    if is_super:
        why, advice = "is a superuser, or may become one", _AS_ITSELF
    elif owns:
        why, advice = "owns tables or other things, or may become a role that does", _AS_ITSELF
    elif bypasses:
        why = "has BYPASSRLS, or may become a role that has it"
    elif creates:
        why = "may create roles"
    elif replicates:
        why = "has REPLICATION, or may become a role that has it"
    elif reaches:
        why = "may use the files or programs of the database's machine"
    if why is not None:
        raise ConfigurationError(f"the role {name} {why}, so tenants would not be kept apart ({advice})")
    if not is_member:
        raise ConfigurationError(f"the role {name} is neither {APP_ROLE} nor a member of it ({_AS_OWNER})")


# Row-level security ------------------------------------------------------------------------------

_TABLES = """select t.name, c.relrowsecurity, c.relforcerowsecurity
    from unnest(%(tables)s::text[]) as t(name)
    left join (pg_class c join pg_namespace n on n.oid = c.relnamespace and n.nspname = %(schema)s)
        on c.relname = t.name and c.relkind in ('r', 'p')"""
"""Each table, and the switches of its row-level security."""

_POLICIES = """select tablename::text, policyname::text, lower(cmd), qual, with_check,
    permissive = 'PERMISSIVE' and roles::text[] = '{public}'
    from pg_policies where schemaname = %s"""

# The text of an expression depends on the search path of whoever asks, and a little on the version.
_UNIMPORTANT = re.compile(rf"\s|[()]|::\w+|\b{SCHEMA}\.|\bas pg_get_userbyid\b", re.IGNORECASE)


def require_kept_apart(connection: "psycopg.Connection[Row]") -> None:
    """Raise `ConfigurationError` if a table is missing, or its row-level security is not as the migration left it."""
    wanted: dict[str, dict[str, RowPolicy]] = {}
    for policy in row_policies():
        wanted.setdefault(policy.table, {})[policy.name] = _compared(policy)
    found: dict[str, dict[str, RowPolicy | None]] = {}
    for *values, is_for_all in connection.execute(_POLICIES, (SCHEMA,)).fetchall():
        policy = _compared(RowPolicy(*values))
        found.setdefault(policy.table, {})[policy.name] = policy if is_for_all else None
    given = {"schema": SCHEMA, "tables": [*wanted]}
    for table, enabled, forced in connection.execute(_TABLES, given).fetchall():
        problem, advice = None, "run `skillshelf serve migrate` as the owner of the tables"
        mine, expected = found.get(table, {}), wanted[table]
        if enabled is None:
            problem, advice = "is missing", "restore the database from a backup"
        elif not enabled or not forced:
            problem = f"has no row-level security{'' if not enabled else ' for its owner'}"
        elif mine.get("of_tenant") != expected["of_tenant"]:
            problem = "has no policy that shows a tenant its own rows alone"
        elif more := sorted({*mine} - {*expected}):
            problem, advice = f"has a policy that skillshelf did not make: {more[0]}", "drop it as the owner"
        elif other := sorted(name for name in expected if mine.get(name) != expected[name]):
            problem = f"has another policy {other[0]} than skillshelf makes"
        if problem is not None:
            raise ConfigurationError(
                f"the table {SCHEMA}.{table} {problem}, so tenants would not be kept apart ({advice})"
            )


def _compared(policy: RowPolicy) -> RowPolicy:
    """Return a policy with its expressions as they are compared: no parentheses, since none of ours has an `or`."""
    using, check = (text and _UNIMPORTANT.sub("", text).lower() for text in (policy.using, policy.check))
    return policy._replace(using=using, check=check)
