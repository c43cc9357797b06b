"""Run `serve`: the server of a team, its tokens, tenants and members, and the migration of its database."""

import os
import re
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import UTC, datetime

from skillshelf.cli.commands import Values, shelf_for
from skillshelf.cli.host_commands import environment_of
from skillshelf.core import files
from skillshelf.core.console import as_json, note, screen, write
from skillshelf.core.text import plural, visible
from skillshelf.errors import DONE, NEGATIVE, ConfigurationError
from skillshelf.servers.team.command import database_url, open_team_database, require_extra
from skillshelf.servers.team.command import serve as serve_team
from skillshelf.servers.team.database import Database, migrate_postgres
from skillshelf.servers.team.journal_intake import set_content
from skillshelf.servers.team.journal_removal import apply_retention, forget, kept_days
from skillshelf.servers.team.migrations import APP_ROLE, VERSION
from skillshelf.servers.team.tokens import create_token, list_tokens, revoke_tokens, set_member
from skillshelf.servers.team.values import DEFAULT_TENANT, checked_slug

__all__ = ["serve"]

_UNITS = {"h": 3600, "d": 86_400, "w": 7 * 86_400}


def serve(values: Values) -> int:
    """Serve a team, or change what its database has."""
    words = [values["action"], *values["word"]] if values["action"] else []
    if not words:
        serve_team(shelf_for(values, trust="all" if values["trust"] else "ask"), values)
        return DONE
    for length in (2, 1):
        run = _ACTIONS.get(" ".join(words[:length]))
        if run is not None:
            return run(values, words[length:])
    known = ", ".join(_ACTIONS)
    raise ConfigurationError(f"no action {' '.join(words[:2])!r}; without one it serves, else it is one of: {known}")


def _one(words: list[str], what: str) -> str:
    if len(words) != 1:
        raise ConfigurationError(f"missing argument {what}" if not words else f"one {what} only, not {words[1]!r}")
    return words[0]


def _database(values: Values) -> "closing[Database]":
    return closing(open_team_database(values["database"], environment_of(values), path=values["database_file"]))


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
        rows.append((one.id, visible(one.subject), " ".join(one.scopes) or "of the role", _day(one.created), ends))
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


def _set_member(values: Values, words: list[str]) -> int:
    if len(words) != 2:
        raise ConfigurationError("`member set` takes a SUBJECT and a ROLE")
    return _changed_member(values, words[0], words[1])


def _remove_member(values: Values, words: list[str]) -> int:
    return _changed_member(values, _one(words, "SUBJECT"), None)


def _changed_member(values: Values, subject: str, role: str | None) -> int:
    with _database(values) as database:
        set_member(database, _tenant(values), subject, role)
    if values["json"]:
        write(as_json({"tenant": _tenant(values), "subject": subject, "role": role}))
    else:
        write(f"{visible(subject)} is {role or 'no member'} in {_tenant(values)}\n")
    return DONE


# Migration ----------------------------------------------------------------------------------------


def _migrate(values: Values, words: list[str]) -> int:
    if words:
        raise ConfigurationError(f"`migrate` takes no argument, not {words[0]!r}")
    url = database_url(values["database"], environment_of(values), path=values["database_file"])
    require_extra(url, to_serve=False)
    if not url.startswith("postgres"):
        with _database(values):
            pass
        now = {"before": VERSION, "version": VERSION, "address": url, "role": None, "password": False}
        return _migrated(values, now)
    done = migrate_postgres(url, _password(values["password_file"]))
    found = {
        "before": done.before,
        "version": done.version,
        "address": done.address,
        "role": APP_ROLE,
        "password": done.has_password,
    }
    if not done.has_password and not values["json"]:
        note(f"the role {APP_ROLE} existed before: add its password to the address, or set one with --password-file")
    return _migrated(values, found)


def _migrated(values: Values, found: Mapping[str, object]) -> int:
    if values["json"]:
        write(as_json(found))
        return DONE
    note(f"the database has version {found['version']}; start the server with this address:")
    write(f"{found['address']}\n")
    return DONE


def _password(path: str | None) -> str | None:
    if path is None:
        return None
    try:
        data = files.read_file(os.path.abspath(path), limit=4096, links="follow")
    except OSError as error:
        raise ConfigurationError(f"password file {path} cannot be read: {error.strerror}") from None
    password = (data or b"").decode("utf-8", "replace").strip()
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
    if values["json"]:
        write(as_json({"tenant": _tenant(values), "subject": subject, **found._asdict()}))
    elif any(found):
        write(f"removed {plural(found.lines, 'line')} of {plural(found.streams, 'journal')} of {visible(subject)}\n")
        note(f"tokens stay valid; end them with `skillshelf serve token revoke {visible(subject)}`")
    else:
        note(f"the journals of {_tenant(values)} know nothing about {visible(subject)!r}")
    return DONE if any(found) else NEGATIVE


_ACTIONS: Mapping[str, Callable[[Values, list[str]], int]] = {
    "token create": _create_token,
    "token list": _list_tokens,
    "token revoke": _revoke_tokens,
    "tenant create": _create_tenant,
    "member set": _set_member,
    "member remove": _remove_member,
    "migrate": _migrate,
    "journal": _demand_content,
    "retention": _apply_retention,
    "forget": _forget,
}
"""The actions of `serve` besides serving."""
