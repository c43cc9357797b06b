"""The tables of the team database, in numbered steps, for SQLite and PostgreSQL.

Every key begins with the tenant where a row belongs to one. Times are milliseconds since 1970, a day is a number such
as 20261117, flags are 0 or 1, and documents are JSON text: both databases keep them alike.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from skillshelf.core.records import NamedTuple

__all__ = [
    "APP_ROLE",
    "MIGRATIONS",
    "RETAINED_TABLES",
    "SCHEMA",
    "SHARED_TABLES",
    "TENANT_TABLES",
    "VERSION",
    "Migration",
    "RowPolicy",
    "postgres_grants",
    "postgres_policies",
    "postgres_statements",
    "row_policies",
    "sqlite_statements",
]

SCHEMA: Final = "skillshelf"
"""The schema of the tables in PostgreSQL."""

APP_ROLE: Final = "skillshelf_app"
"""The role that the server connects as in PostgreSQL: it owns nothing, and sees the rows of one tenant at a time."""


class Migration(NamedTuple):
    """One step: statements with `{bytes}` for the type of bytes, and what each database needs besides."""

    statements: tuple[str, ...]
    only_sqlite: tuple[str, ...] = ()
    only_postgres: tuple[str, ...] = ()


_EVENT = """create table event (
    tenant text not null, stream text not null, seq bigint not null, day integer not null, ts bigint not null,
    type text not null, session text not null, skill text, tree text, line {bytes} not null,
    primary key (tenant, stream, seq, day))"""

_FIRST = Migration(
    (
        "create table tenant (id text primary key, slug text not null unique, created bigint not null)",
        """create table member (
            tenant text not null, subject text not null, role text not null, primary key (tenant, subject))""",
        """create table token (
            tenant text not null, id text not null, hash text not null, subject text not null, scopes text not null,
            created bigint not null, expires bigint, revoked bigint,
            primary key (tenant, id), unique (tenant, hash))""",
        """create table login (
            tenant text not null, hash text not null, token text not null, subject text not null, scopes text not null,
            issuer text not null, expires bigint not null, primary key (tenant, hash))""",
        # Shared by tenants, so there are no names in it; a tenant sees the trees of its releases.
        """create table tree (
            digest text primary key, manifest {bytes} not null, bytes bigint not null, files integer not null,
            artifact text not null, artifact_bytes bigint not null, first_seen bigint not null)""",
        """create table verdict (
            tree text not null, checker text not null, version text not null, result text not null,
            primary key (tree, checker, version))""",
        """create table skill (
            tenant text not null, name text not null, description text not null default '',
            primary key (tenant, name))""",
        """create table release (
            tenant text not null, name text not null, version text not null, tree text not null,
            source text not null default '', revision text not null default '', publisher text not null,
            published bigint not null, yanked integer not null default 0, yanked_by text, yanked_why text,
            rev bigint not null default 0, description text not null default '', fields text not null default '{}',
            size bigint not null default 0, primary key (tenant, name, version))""",
        "create index release_tree on release (tenant, tree)",
        """create table channel (
            tenant text not null, name text not null, channel text not null, version text not null,
            rev bigint not null, primary key (tenant, name, channel))""",
        """create table catalog_rev (
            tenant text primary key, rev bigint not null, snapshot text, snapshot_rev bigint)""",
        """create table approval (
            tenant text not null, tree text not null, approver text not null, at bigint not null,
            primary key (tenant, tree, approver))""",
        """create table policy (
            tenant text not null, name text not null, value text not null, primary key (tenant, name))""",
        """create table stream (
            tenant text not null, id text not null, machine text not null, subject text not null default '',
            origin text not null, content text not null, first_seq bigint not null, head_seq bigint not null,
            head_sum text not null, head_digest text not null, updated bigint not null, primary key (tenant, id))""",
        """create table journal_session (
            tenant text not null, stream text not null, session text not null, subject text, client text,
            started bigint not null, latest bigint not null, ended bigint, events bigint not null default 0,
            primary key (tenant, stream, session))""",
        "create index session_latest on journal_session (tenant, latest)",
        """create table usage_day (
            tenant text not null, day integer not null, skill text not null, tree text not null,
            loads bigint not null default 0, reads bigint not null default 0, runs bigint not null default 0,
            denials bigint not null default 0, machines integer not null default 0,
            primary key (tenant, day, skill, tree))""",
        """create table usage_person (
            tenant text not null, day integer not null, subject text not null, skill text not null,
            loads bigint not null default 0, reads bigint not null default 0, runs bigint not null default 0,
            denials bigint not null default 0, primary key (tenant, day, subject, skill))""",
        """create table usage_machine (
            tenant text not null, day integer not null, skill text not null, tree text not null,
            machine text not null, primary key (tenant, day, skill, tree, machine))""",
        """create table alarm (
            tenant text not null, id text not null, at bigint not null, stream text not null, kind text not null,
            detail text not null, primary key (tenant, id))""",
        """create table tombstone (
            tenant text not null, stream text not null, seq bigint not null, day integer not null, sum text not null,
            digest text not null, at bigint not null, primary key (tenant, stream, seq))""",
    ),
    only_sqlite=(_EVENT, "create index event_day on event (tenant, day)", "create index event_ts on event (ts)"),
    only_postgres=(
        f"{_EVENT} partition by range (day)",
        "create index event_ts on event using brin (ts)",
        "create index event_session on event (tenant, session)",
        # The application owns nothing, so it cannot make or drop a partition itself.
        """create function add_event_day(wanted integer) returns void
            language plpgsql security definer set search_path = {schema}, pg_temp as $$
            begin
                if wanted not between 19700101 and 99991231 then raise exception 'not a day: %', wanted; end if;
                if to_regclass(format('{schema}.event_%s', wanted)) is null then
                    perform pg_advisory_xact_lock(hashtext('skillshelf.event'));
                    if to_regclass(format('{schema}.event_%s', wanted)) is null then
                        execute format('create table {schema}.event_%s partition of {schema}.event '
                            'for values from (%s) to (%s)', wanted, wanted, wanted + 1);
                        execute format('alter table {schema}.event_%s enable row level security', wanted);
                        execute format('alter table {schema}.event_%s force row level security', wanted);
                    end if;
                end if;
            end $$""",
        """create function event_days() returns setof integer
            language sql stable security definer set search_path = {schema}, pg_temp as $$
            select substring(c.relname from 7)::integer from pg_inherits i join pg_class c on c.oid = i.inhrelid
            where i.inhparent = '{schema}.event'::regclass order by 1 $$""",
        """create function drop_event_days(before integer) returns integer
            language plpgsql security definer set search_path = {schema}, pg_temp as $$
            declare found integer; dropped integer := 0;
            begin
                perform pg_advisory_xact_lock(hashtext('skillshelf.event'));
                for found in select d from event_days() as d where d < before loop
                    execute format('drop table {schema}.event_%s', found);
                    dropped := dropped + 1;
                end loop;
                return dropped;
            end $$""",
    ),
)

_RETENTION = Migration(
    (),
    only_postgres=(
        # Days are those on which lines arrived. What belongs to them in other tables goes with them, for all tenants:
        # the policies of retention let this function see these rows, and nobody else.
        """create or replace function drop_event_days(before integer) returns integer
            language plpgsql security definer set search_path = {schema}, pg_temp as $$
            declare
                found integer; dropped integer := 0;
                midnight timestamptz := to_date(before::text, 'YYYYMMDD')::timestamp at time zone 'UTC';
            begin
                perform pg_advisory_xact_lock(hashtext('skillshelf.event'));
                for found in select d from event_days() as d where d < before loop
                    execute format('drop table {schema}.event_%s', found);
                    dropped := dropped + 1;
                end loop;
                perform set_config('skillshelf.retention', 'on', true);
                delete from tombstone where day < before;
                delete from journal_session where latest < extract(epoch from midnight) * 1000;
                perform set_config('skillshelf.retention', '', true);
                return dropped;
            end $$""",
    ),
)

_CHANGES = Migration(("create index channel_rev on channel (tenant, channel, rev)",))
"""What changed after a revision is found without reading all names."""

_DAYS = Migration(
    (),
    only_postgres=(
        # After the lock the table of the system is asked: what `to_regclass` has found is kept, and a partition that
        # another server made meanwhile would be made again.
        """create or replace function add_event_day(wanted integer) returns void
            language plpgsql security definer set search_path = {schema}, pg_temp as $$
            declare name text := format('event_%s', wanted);
            begin
                if wanted not between 19700101 and 99991231 then raise exception 'not a day: %', wanted; end if;
                if to_regclass(format('{schema}.%s', name)) is null then
                    perform pg_advisory_xact_lock(hashtext('skillshelf.event'));
                    if not exists (select 1 from pg_catalog.pg_class
                            where relname = name and relnamespace = '{schema}'::regnamespace) then
                        execute format('create table {schema}.%s partition of {schema}.event '
                            'for values from (%s) to (%s)', name, wanted, wanted + 1);
                        execute format('alter table {schema}.%s enable row level security', name);
                        execute format('alter table {schema}.%s force row level security', name);
                    end if;
                end if;
            end $$""",
    ),
)
"""Two servers may store the first lines of a day at once."""

_DAYS_OF_SESSIONS = (
    # Joined through a table of its own: a stream of a server has many sessions and many more lines.
    "create table session_day as "
    "select tenant, stream, session, max(day) as day from event group by tenant, stream, session",
    "create unique index session_day_key on session_day (tenant, stream, session)",
    """update journal_session set day = coalesce((select found.day from session_day as found
        where found.tenant = journal_session.tenant and found.stream = journal_session.stream
        and found.session = journal_session.session), 0)""",
    "drop table session_day",
)
"""Give each session the day on which its latest line came; one whose lines are gone is removed next."""

_SESSION_DAY = Migration(
    (),
    only_sqlite=("alter table journal_session add column day integer not null default 0", *_DAYS_OF_SESSIONS),
    only_postgres=(
        # Servers of the version before go on until they are restarted, and do not write the column.
        """alter table journal_session add column day integer not null
            default to_char(now() at time zone 'UTC', 'YYYYMMDD')::integer""",
        # The owner sees the rows of all tenants here; the policies that follow the steps end it.
        "alter table event no force row level security",
        "alter table journal_session no force row level security",
        *_DAYS_OF_SESSIONS,
        """create or replace function drop_event_days(before integer) returns integer
            language plpgsql security definer set search_path = {schema}, pg_temp as $$
            declare found integer; dropped integer := 0;
            begin
                perform pg_advisory_xact_lock(hashtext('skillshelf.event'));
                for found in select d from event_days() as d where d < before loop
                    execute format('drop table {schema}.event_%s', found);
                    dropped := dropped + 1;
                end loop;
                perform set_config('skillshelf.retention', 'on', true);
                delete from tombstone where day < before;
                delete from journal_session where day < before;
                perform set_config('skillshelf.retention', '', true);
                return dropped;
            end $$""",
    ),
)
"""Retention of sessions counts from the day on which their latest line came, not by the clock of a machine."""

_FORGOTTEN_SESSION = Migration(
    ("alter table journal_session add column forgotten integer not null default 0",),
    only_postgres=(
        """create or replace function drop_event_days(before integer) returns integer
            language plpgsql security definer set search_path = {schema}, pg_temp as $$
            declare found integer; dropped integer := 0;
            begin
                perform pg_advisory_xact_lock(hashtext('skillshelf.event'));
                for found in select d from event_days() as d where d < before loop
                    execute format('drop table {schema}.event_%s', found);
                    dropped := dropped + 1;
                end loop;
                perform set_config('skillshelf.retention', 'on', true);
                delete from tombstone where day < before;
                delete from journal_session where day < before;
                delete from usage_machine where day < before;
                perform set_config('skillshelf.retention', '', true);
                return dropped;
            end $$""",
    ),
)
"""A session of a server whose person was forgotten leaves a row without a name, by which its later lines are known.

The machines that used a skill on a day are needed as long as lines of that day may come.
"""

_ATTACHED_DAYS = Migration(
    (),
    only_postgres=(
        # A table that is made as a partition waits for everybody who reads events, and all others wait behind it: for
        # hours, if a backup runs at midnight. One that is attached waits for nobody who reads or writes.
        """create or replace function add_event_day(wanted integer) returns void
            language plpgsql security definer set search_path = {schema}, pg_temp as $$
            declare name text := format('event_%s', wanted);
            begin
                if wanted not between 19700101 and 99991231 then raise exception 'not a day: %', wanted; end if;
                if to_regclass(format('{schema}.%s', name)) is null then
                    perform pg_advisory_xact_lock(hashtext('skillshelf.event'));
                    if not exists (select 1 from pg_catalog.pg_class
                            where relname = name and relnamespace = '{schema}'::regnamespace) then
                        execute format('create table {schema}.%s (like {schema}.event including all)', name);
                        execute format('alter table {schema}.%s enable row level security', name);
                        execute format('alter table {schema}.%s force row level security', name);
                        execute format('alter table {schema}.event attach partition {schema}.%s '
                            'for values from (%s) to (%s)', name, wanted, wanted + 1);
                    end if;
                end if;
            end $$""",
    ),
)
"""The first lines of a day are stored while a backup runs."""

_CHECKED_RELEASE = Migration(("alter table release add column checked text not null default ''",))
"""For which rules a tenant had the files of a release checked; the verdict itself is shared by tenants."""

MIGRATIONS: tuple[Migration, ...] = (
    _FIRST,
    _RETENTION,
    _CHANGES,
    _DAYS,
    _SESSION_DAY,
    _FORGOTTEN_SESSION,
    _ATTACHED_DAYS,
    _CHECKED_RELEASE,
)
"""The steps, oldest first; a database has the version of the last one that it went through."""

VERSION: Final = len(MIGRATIONS)

SHARED_TABLES = ("tree", "verdict")
"""Tables without a tenant: a row is visible to a tenant that has a release of the tree."""

TENANT_TABLES = (
    "tenant",
    "member",
    "token",
    "login",
    "skill",
    "release",
    "channel",
    "catalog_rev",
    "approval",
    "policy",
    "stream",
    "journal_session",
    "event",
    "usage_day",
    "usage_person",
    "usage_machine",
    "alarm",
    "tombstone",
)
"""Tables whose rows belong to a tenant."""


RETAINED_TABLES = ("tombstone", "journal_session", "usage_machine")
"""Tables whose old rows are removed for all tenants at once; those of events are dropped as partitions."""

_RETAINED_ROWS: Final = (
    "current_setting('skillshelf.retention', true) = 'on' and current_user = "
    "(select pg_get_userbyid(pg_class.relowner) from pg_class where pg_class.oid = '{schema}.{table}'::regclass)"
)
"""The rows that the owner of the tables sees, as whom the function that removes old rows runs, while it runs.

It names no role: a dump of one cluster is restored in another, where the owner may have another name.
"""


def sqlite_statements(migration: Migration) -> Iterator[str]:
    """Yield the statements of a step for SQLite."""
    for statement in (*migration.statements, *migration.only_sqlite):
        yield statement.replace("{bytes}", "blob")


def postgres_statements(migration: Migration) -> Iterator[str]:
    """Yield the statements of a step for PostgreSQL, without those of row-level security."""
    for statement in (*migration.statements, *migration.only_postgres):
        yield statement.replace("{bytes}", "bytea").replace("{schema}", SCHEMA)


class RowPolicy(NamedTuple):
    """A policy of row-level security: which rows of a table a command sees (`using`), and which it may write."""

    table: str
    name: str
    command: str
    using: str | None
    check: str | None

    @property
    def statement(self) -> str:
        """The statement that makes it."""
        using = f" using ({self.using})" if self.using else ""
        check = f" with check ({self.check})" if self.check else ""
        return f"create policy {self.name} on {self.table} for {self.command}{using}{check}"


def row_policies(
    tenant_tables: Sequence[str] = TENANT_TABLES, shared_tables: Sequence[str] = SHARED_TABLES
) -> Iterator[RowPolicy]:
    """Yield the policies that let a transaction see the rows of its tenant only, also for the owner of the tables."""
    for table in tenant_tables:
        own = f"{'id' if table == 'tenant' else 'tenant'} = current_setting('skillshelf.tenant', true)"
        yield RowPolicy(table, "of_tenant", "all", own, own)
    for table in RETAINED_TABLES:
        if table in tenant_tables:
            yield RowPolicy(table, "of_retention", "all", _RETAINED_ROWS.format(table=table, schema=SCHEMA), None)
    for table in shared_tables:
        # The releases in the subquery are those of the tenant, by their own policy.
        tree = f"{table}.{'digest' if table == 'tree' else 'tree'}"
        known = f"exists (select 1 from release where release.tree = {tree})"
        yield RowPolicy(table, "of_tenant", "select", known, None)
        yield RowPolicy(table, "added", "insert", None, "true")


def postgres_policies(
    tenant_tables: Sequence[str] = TENANT_TABLES, shared_tables: Sequence[str] = SHARED_TABLES
) -> Iterator[str]:
    """Yield the statements that make the policies; they can be run again: each replaces the policy of its table."""
    for table in (*tenant_tables, *shared_tables):
        yield f"alter table {table} enable row level security"
        yield f"alter table {table} force row level security"
        yield f"drop policy if exists of_tenant on {table}"
        yield f"drop policy if exists added on {table}"
        yield f"drop policy if exists of_retention on {table}"
    for policy in row_policies(tenant_tables, shared_tables):
        yield policy.statement


def postgres_grants() -> Iterator[str]:
    """Yield the statements that give the role of the server what it needs, and nothing else."""
    yield f"revoke all on schema {SCHEMA} from public"
    yield f"grant usage on schema {SCHEMA} to {APP_ROLE}"
    yield f"grant select on schema_version to {APP_ROLE}"
    yield f"grant select, insert, update, delete on {', '.join(TENANT_TABLES)} to {APP_ROLE}"
    yield f"revoke delete on tenant from {APP_ROLE}"
    yield f"grant select, insert on {', '.join(SHARED_TABLES)} to {APP_ROLE}"
    for function in ("add_event_day(integer)", "drop_event_days(integer)", "event_days()"):
        yield f"revoke all on function {function} from public"
        yield f"grant execute on function {function} to {APP_ROLE}"
