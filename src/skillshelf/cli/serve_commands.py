"""Run `serve`: the server of a team, its tokens, tenants and members, and the migration of its database."""

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from typing import Final

from skillshelf.cli.commands import Values, shelf_for
from skillshelf.cli.host_commands import environment_of
from skillshelf.core.console import as_json, note, screen, write
from skillshelf.core.environment import secret_in, unread_variables
from skillshelf.core.text import plural, visible
from skillshelf.errors import DONE, NEGATIVE, ConfigurationError, SourceNotFound
from skillshelf.servers.team.command import open_team_database, require_extra
from skillshelf.servers.team.command import serve as serve_team
from skillshelf.servers.team.database import Database, SqliteDatabase, list_tenants, migrate_postgres
from skillshelf.servers.team.database_address import DATABASE_VARIABLE, AddressFile, DatabaseAddress, database_address
from skillshelf.servers.team.journal_intake import set_content
from skillshelf.servers.team.journal_removal import apply_retention, forget, kept_days
from skillshelf.servers.team.migrations import APP_ROLE, VERSION
from skillshelf.servers.team.tokens import create_token, list_members, list_tokens, revoke_tokens, set_member
from skillshelf.servers.team.values import DEFAULT_TENANT, NoSuchTenant, checked_slug

__all__ = ["serve"]

_UNITS = {"h": 3600, "d": 86_400, "w": 7 * 86_400}


def serve(values: Values) -> int:
    """Serve a team, or change what its database has."""
    words = [values["action"], *values["word"]] if values["action"] else []
    if unread := unread_variables(environment_of(values).env):
        note(f"nothing reads {', '.join(map(visible, unread))}")
    if not words:
        _require_own_options(values, "")
        serve_team(shelf_for(values, trust="all" if values["trust"] else "ask"), values)
        return DONE
    for length in (2, 1):
        action = " ".join(words[:length])
        if action in _ACTIONS:
            _require_own_options(values, action)
            try:
                return _ACTIONS[action](values, words[length:])
            except NoSuchTenant as error:
                raise SourceNotFound(str(error)) from None
    known = ", ".join(_ACTIONS)
    raise ConfigurationError(f"no action {' '.join(words[:2])!r}; without one it serves, else it is one of: {known}")


def _require_own_options(values: Values, action: str) -> None:
    """Raise `ConfigurationError` for an option of another action, which would be ignored."""
    for name, owners in _OWN_OPTIONS.items():
        is_given = values[name] not in (None, False, [])
        if is_given and action not in owners and action.partition(" ")[0] not in owners:
            shown = " and ".join(f"`{f'serve {owner}'.strip()}`" for owner in owners)
            raise ConfigurationError(f"--{name.replace('_', '-')} is an option of {shown} alone")


def _one(words: list[str], what: str) -> str:
    if len(words) != 1:
        raise ConfigurationError(
            f"unexpected argument {words[1]!r} after {what}" if words else f"missing argument {what}"
        )
    return words[0]


@contextmanager
def _database(values: Values) -> Iterator[Database]:
    """Open the database for an action; say which it was if nobody named it."""
    address = _address(values)
    with closing(open_team_database(address)) as database:
        yield database
    _name_default(address)


def _name_default(address: DatabaseAddress) -> None:
    if address.is_default:
        note(f"database: {address.place} (--database-file or ${DATABASE_VARIABLE} names another)")


def _address(values: Values) -> DatabaseAddress:
    return database_address(values["database"], environment_of(values), path=values["database_file"])


def _tenant(values: Values) -> str:
    return checked_slug(values["tenant"] or DEFAULT_TENANT)


# Tokens -------------------------------------------------------------------------------------------


def _create_token(values: Values, words: list[str]) -> int:
    subject = _one(words, "SUBJECT")
    expires = _expiry(values["expires"])
    scopes = [scope for given in values["scope"] for scope in given.replace(",", " ").split()]
    with _database(values) as database:
        made = create_token(database, _tenant(values), subject, scopes, expires)
    if values["json"]:
        write(as_json(made.to_dict()))
    else:
        note(f"token {made.id} of {made.subject} in {made.tenant}; it is shown this once:")
        write(f"{made.token}\n")
    return DONE


def _expiry(text: str | None) -> int | None:
    """Return when a token ends, in milliseconds: after a time such as 90d, or at a date."""
    if text is None:
        return None
    found = re.fullmatch(r"([1-9][0-9]{0,4})([hdw])", text)
    if found:
        return int((time.time() + int(found[1]) * _UNITS[found[2]]) * 1000)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigurationError(
            f"--expires takes a time such as 90d, or a date such as 2027-01-31, not {text!r}"
        ) from None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    if moment.timestamp() <= time.time():
        raise ConfigurationError(f"--expires is in the past: {text}")
    return int(moment.timestamp() * 1000)


def _list_tokens(values: Values, words: list[str]) -> int:
    if words:
        raise ConfigurationError(f"`token list` takes no argument, not {words[0]!r}")
    with _database(values) as database:
        found = list_tokens(database, _tenant(values))
    if values["json"]:
        write(as_json({"tenant": _tenant(values), "tokens": [one.to_dict() for one in found]}))
        return DONE
    rows = [("ID", "SUBJECT", "SCOPES", "CREATED", "ENDS")]
    for one in found:
        ends = f"revoked {_day(one.revoked)}" if one.revoked else _day(one.expires) if one.expires else "never"
        scopes = " ".join(one.scopes) or (f"of the role {one.role}" if one.role else "none, without a role")
        rows.append((one.id, visible(one.subject), scopes, _day(one.created), ends))
    write("".join(f"{line}\n" for line in screen(environment_of(values).env).table(rows, ("dim",) * 5)))
    return DONE


def _day(milliseconds: int) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(milliseconds / 1000))


def _revoke_tokens(values: Values, words: list[str]) -> int:
    which = _one(words, "ID or SUBJECT")
    with _database(values) as database:
        found = revoke_tokens(database, _tenant(values), which)
    if values["json"]:
        write(as_json({"tenant": _tenant(values), "revoked": found.tokens, "logins": found.logins}))
    elif found.tokens:
        write(f"revoked {plural(found.tokens, 'token')} of {visible(which)}; servers notice within 60 seconds\n")
    elif found.logins:
        write(f"ended {plural(found.logins, 'login')} of {visible(which)}; servers notice within 60 seconds\n")
    else:
        note(f"no valid token or login has the id or subject {visible(which)!r} in {_tenant(values)}")
    return DONE if found.tokens or found.logins else NEGATIVE


# Tenants and members ------------------------------------------------------------------------------


def _create_tenant(values: Values, words: list[str]) -> int:
    slug = checked_slug(_one(words, "SLUG"))
    with _database(values) as database:
        is_new = database.add_tenant(slug)
    if values["json"]:
        write(as_json({"tenant": slug, "created": is_new}))
    elif is_new:
        write(f"created tenant {slug}\n")
    else:
        note(f"tenant {slug} exists")
    return DONE if is_new else NEGATIVE


def _list_tenants(values: Values, words: list[str]) -> int:
    if words:
        raise ConfigurationError(f"`tenant list` takes no argument, not {words[0]!r}")
    address = _address(values)
    require_extra(address, to_serve=False)
    found = list_tenants(address.url)
    _name_default(address)
    if values["json"]:
        write(as_json({"tenants": [one._asdict() for one in found]}))
        return DONE
    rows = [("TENANT", "CREATED"), *((one.tenant, _day(one.created)) for one in found)]
    write("".join(f"{line}\n" for line in screen(environment_of(values).env).table(rows, ("dim",) * 2)))
    return DONE


def _list_members(values: Values, words: list[str]) -> int:
    if words:
        raise ConfigurationError(f"`member list` takes no argument, not {words[0]!r}")
    with _database(values) as database:
        found = list_members(database, _tenant(values))
    if values["json"]:
        write(as_json({"tenant": _tenant(values), "members": [one._asdict() for one in found]}))
        return DONE
    rows = [("SUBJECT", "ROLE"), *((visible(one.subject), one.role) for one in found)]
    write("".join(f"{line}\n" for line in screen(environment_of(values).env).table(rows, ("dim",) * 2)))
    return DONE


def _set_member(values: Values, words: list[str]) -> int:
    if len(words) != 2:
        raise ConfigurationError("`member set` takes a SUBJECT and a ROLE")
    return _changed_member(values, words[0], words[1])


def _remove_member(values: Values, words: list[str]) -> int:
    return _changed_member(values, _one(words, "SUBJECT"), None)


def _changed_member(values: Values, subject: str, role: str | None) -> int:
    with _database(values) as database:
        had_role = set_member(database, _tenant(values), subject, role)
    if values["json"]:
        write(as_json({"tenant": _tenant(values), "subject": subject, "role": role}))
    elif role or had_role:
        became = f"has the role {role}" if role else "no longer has a role"
        write(f"{visible(subject)} {became} in {_tenant(values)}\n")
    else:
        note(f"{visible(subject)!r} has no role in {_tenant(values)}")
    return DONE if role or had_role else NEGATIVE


# Migration ----------------------------------------------------------------------------------------


def _migrate(values: Values, words: list[str]) -> int:
    if words:
        raise ConfigurationError(f"`migrate` takes no argument, not {words[0]!r}")
    owner = _address(values)
    require_extra(owner, to_serve=False)
    role = APP_ROLE if owner.is_postgres else None
    file = AddressFile(values["write_address"], role=role) if values["write_address"] is not None else None
    if not owner.is_postgres:
        if values["password_file"] is not None:
            raise ConfigurationError("--password-file is for PostgreSQL; the database is " + owner.place)
        with _database(values) as database:
            assert isinstance(database, SqliteDatabase), "the other kind is migrated below"
            before = database.version_before
        return _migrated(values, before, VERSION, owner, file)
    done = migrate_postgres(owner.url, _password(values["password_file"]))
    if not done.has_password and not values["json"]:
        note(
            f"the role {APP_ROLE} existed before and keeps its password: running servers keep their address, elsewhere "
            "add the password to this one (--password-file sets another, for every server of the PostgreSQL cluster)"
        )
    return _migrated(values, done.before, done.version, DatabaseAddress(done.address), file)


def _migrated(values: Values, before: int, version: int, address: DatabaseAddress, file: AddressFile | None) -> int:
    """Print the address for the server, or write it into a file, which then is the one place with its password."""
    is_written = file is not None and _written(file, address)
    if values["json"]:
        found = {
            "before": before,
            "version": version,
            "address": address.without_password() if is_written else address.url,
            "role": address.role,
            "password": address.has_password,
        }
        write(as_json(found))
    elif file is None:
        note(f"the database has version {version}; start the server with this address:")
        write(f"{address.url}\n")
    else:
        note(f"the database has version {version}; start the server with --database-file {visible(file.path)}")
    return DONE


def _written(file: AddressFile, address: DatabaseAddress) -> bool:
    """Write an address into a file; return whether it was not kept as it is."""
    try:
        is_written = file.write(address)
    except OSError as error:
        # Nobody else knows a password that was made now.
        write(f"{address.url}\n")
        raise ConfigurationError(f"{file.path} cannot be written (the address is printed): {error.strerror}") from None
    if not is_written and file.before is not None:
        other = "" if file.before.place == address.place else f" (it names {file.before.place}, not {address.place})"
        note(f"{visible(file.path)} keeps its address, which has a password{other}")
    return is_written


def _password(path: str | None) -> str | None:
    if path is None:
        return None
    password = secret_in(path, what="password file")
    if len(password) < 12:
        raise ConfigurationError("a password has at least 12 characters")
    return password


# Journals -----------------------------------------------------------------------------------------


def _demand_content(values: Values, words: list[str]) -> int:
    """Say whether machines may send whole lines to a tenant, or sizes and digests only."""
    content = _one(words, "full or digest")
    if content not in ("full", "digest"):
        raise ConfigurationError(f"`serve journal` takes full or digest, not {content!r}")
    with _database(values) as database:
        set_content(database, _tenant(values), content)
    if values["json"]:
        write(as_json({"tenant": _tenant(values), "content": content}))
    else:
        what = "whole lines" if content == "full" else "sizes and digests only"
        write(f"{_tenant(values)} takes {what}\n")
    return DONE


def _apply_retention(values: Values, words: list[str]) -> int:
    """Remove lines of journals that came before a time."""
    if words or not values["keep_lines"]:
        raise ConfigurationError("`serve retention` takes --keep-lines TIME, such as 90d, and no other argument")
    days = kept_days(values["keep_lines"])
    with _database(values) as database:
        removed = apply_retention(database, days, tenant=_tenant(values) if values["tenant"] else None)
    if values["json"]:
        write(as_json({"keep_days": days, "lines": removed.lines, "days": removed.days}))
    elif removed.days:
        write(f"removed {plural(removed.days, 'day')} of all tenants\n")
    else:
        write(f"removed {plural(removed.lines, 'line')}\n")
    return DONE


def _forget(values: Values, words: list[str]) -> int:
    """Remove what the journals of a tenant know about a person."""
    subject = _one(words, "SUBJECT")
    with _database(values) as database:
        found = forget(database, _tenant(values), subject)
        is_valid = any(one.subject == subject and one.is_valid for one in list_tokens(database, _tenant(values)))
    if values["json"]:
        write(as_json({"tenant": _tenant(values), "subject": subject, **found._asdict()}))
    elif any(found):
        write(f"removed {plural(found.lines, 'line')} of {plural(found.streams, 'journal')} of {visible(subject)}\n")
        if is_valid:
            note(f"tokens stay valid; end them with `skillshelf serve token revoke {visible(subject)}`")
    else:
        note(f"the journals of {_tenant(values)} know nothing about {visible(subject)!r}")
    return DONE if any(found) else NEGATIVE


_ACTIONS: Mapping[str, Callable[[Values, list[str]], int]] = {
    "token create": _create_token,
    "token list": _list_tokens,
    "token revoke": _revoke_tokens,
    "tenant create": _create_tenant,
    "tenant list": _list_tenants,
    "member list": _list_members,
    "member set": _set_member,
    "member remove": _remove_member,
    "migrate": _migrate,
    "journal": _demand_content,
    "retention": _apply_retention,
    "forget": _forget,
}
"""The actions of `serve` besides serving."""

_SERVING: Final = ""

_OWN_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "scope": ("token create",),
    "expires": ("token create",),
    "password_file": ("migrate",),
    "write_address": ("migrate",),
    "tenant": ("token", "member", "journal", "retention", "forget"),
    "keep_lines": (_SERVING, "retention"),
    **dict.fromkeys(("listen", "issuer", "audience", "tenant_claim", "roles_claim", "access_log"), (_SERVING,)),
    **dict.fromkeys(("allow_host", "blobs", "journal", "keep", "rotate", "otlp", "otlp_content", "trust"), (_SERVING,)),
}
"""The options that some actions have, and those actions or their first words; none is for serving."""
