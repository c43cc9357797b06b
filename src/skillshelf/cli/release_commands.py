"""Run `release`: list the releases of a team server, approve and yank them, move channels, and change the policy."""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from skillshelf.cli.commands import Values
from skillshelf.cli.consent_view import agreed, show_findings
from skillshelf.cli.host_commands import environment_of
from skillshelf.cli.install_view import difference_json, difference_view
from skillshelf.cli.publish_commands import file_lines, release_client
from skillshelf.core.console import as_json, note, screen, write
from skillshelf.core.environment import Environment
from skillshelf.core.json_types import (
    ReleaseActForm,
    ReleasePolicyForm,
    TeamPolicyForm,
    TeamReleaseForm,
    TeamReleasesForm,
)
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import did_you_mean, near, plural, visible
from skillshelf.core.validation import members_of
from skillshelf.errors import DENIED, DONE, ConfigurationError, SourceNotFound
from skillshelf.install.reference import parse_reference
from skillshelf.install.skill_entries import SKILL_FILE
from skillshelf.install.team_server import ReleaseAct, ReleaseClient

if TYPE_CHECKING:
    from skillshelf.lint.consent import Consent

__all__ = ["release"]

_CHANNELS = ("latest", "approved")
_TREE_SHOWN = 19
_ADDRESS = re.compile(r"(https?://.+?)/api/v1/skills/([^/]+)(?:/versions/([^/]+))?/?\Z")
_MOST_APPROVALS = 100


def release(values: Values) -> int:
    """Do one action about the releases of a team server."""
    action = values["action"]
    if action not in _ACTIONS:
        known = f"{did_you_mean(action, _ACTIONS)} (known: {', '.join(_ACTIONS)})"
        raise ConfigurationError(f"no action {action!r} of release{known}")
    environment = environment_of(values)
    address, named = _address(values["server"])
    reference = parse_reference(address, environment) if "://" in address else None
    if reference is None or reference.kind != "site":
        raise ConfigurationError(
            f"SERVER is the address of a team server, https://HOST, not {visible(values['server'])!r}"
        )
    request = _ReleaseRequest(values, environment, release_client(values, environment, reference.location))
    return _ACTIONS[action](request, [*named, *values["word"]])


def _address(given: str) -> tuple[str, list[str]]:
    """Return the address of a server, and the name and version if it is that of a release, as `publish` prints it."""
    found = _ADDRESS.match(given)
    return (found[1], [unquote(part) for part in found.groups()[1:] if part]) if found else (given, [])


class _ReleaseRequest(NamedTuple):
    """The words that a user typed, and the client that asks the server for them."""

    values: Values
    environment: Environment
    client: ReleaseClient

    @property
    def is_json(self) -> bool:
        """Whether one JSON value is printed, and nothing else."""
        return bool(self.values["json"])

    def meant(self, words: Sequence[str], what: str) -> tuple[list[TeamReleaseForm], TeamReleaseForm]:
        """Return all releases of a name, and the one of a version; raise SourceNotFound with what is near."""
        if len(words) != 2:
            raise ConfigurationError(
                f"`release {self.values['action']}` takes {what}, not {plural(len(words), 'word')}"
            )
        name, version = words
        found = self.client.versions(name)["versions"]
        for one in found:
            if one["version"] == version:
                return found, one
        error = SourceNotFound(f"{self.client.base} has no release {visible(name)} {visible(version)}")
        error.near = tuple(near(version, [one["version"] for one in found], 3))
        raise error


# Looking ------------------------------------------------------------------------------------------


def _list(request: _ReleaseRequest, words: list[str]) -> int:
    if len(words) > 1:
        raise ConfigurationError(f"`release list` takes one NAME, not {plural(len(words), 'word')}")
    if words:
        known = request.client.versions(words[0])
        rev, found = known["rev"], known["versions"]
        found = [one for one in found if request.values["yanked"] or not one["yanked"]]
    else:
        rev, found = request.client.releases(yanked=request.values["yanked"])
    if request.is_json:
        listed: TeamReleasesForm = {"server": request.client.base, "rev": rev, "releases": found}
        write(as_json(listed))
        return DONE
    if not found:
        note(f"{request.client.base} lists no release{f' of {visible(words[0])}' if words else ''} for this token")
        return DONE
    rows = [("NAME", "VERSION", "CHANNELS", "APPROVED BY", "PUBLISHED", "TREE")]
    for one in found:
        people = ", ".join(visible(approval["by"]) for approval in one["approvals"]) or "nobody"
        rows.append(
            (
                visible(one["name"]),
                visible(one["version"]),
                "yanked" if one["yanked"] else visible(" ".join(one["channels"])) or "-",
                people,
                f"{_day(one['published'])} by {visible(one['publisher'])}",
                visible(one["tree"])[:_TREE_SHOWN],
            )
        )
    _print(request, rows)
    return DONE


def _print(request: _ReleaseRequest, rows: Sequence[tuple[str, ...]]) -> None:
    lines = screen(request.environment.env).table(rows, ("bold", *(None,) * (len(rows[0]) - 1)))
    write("".join(f"{line}\n" for line in lines))


def _day(milliseconds: int) -> str:
    # A lying server may send a time that no calendar has.
    seconds = min(max(milliseconds // 1000, 0), 253_402_300_799)
    return time.strftime("%Y-%m-%d", time.gmtime(seconds))


# Changing a release -------------------------------------------------------------------------------


def _approve(request: _ReleaseRequest, words: list[str]) -> int:
    """Show the files of a release, and what differs from the approved one; approve its tree if the user agrees."""
    from skillshelf.install.difference import difference_of
    from skillshelf.lint.consent import accepted_rules, consent_needed
    from skillshelf.lint.security import security_findings

    accepted = accepted_rules(request.values["accept_rule"])
    every, one = request.meant(words, "NAME VERSION")
    subject, contents = request.client.subject(), request.client.files(one)
    consent = consent_needed({f"{one['name']}/{SKILL_FILE}": security_findings(contents)}, accepted)
    before = next((other for other in every if "approved" in other["channels"] and other is not one), None)
    difference = difference_of(request.client.files(before), contents) if before is not None else None
    if not request.is_json:
        write(_release_view(request, one, [f"  as        {visible(subject)}", *file_lines(contents)]))
        if before is not None and difference is not None:
            title = f"{one['name']}, approved {before['version']} to {one['version']}"
            write(difference_view(title, difference, request.environment.env))
    act = _Act("approve", None, subject, changed=subject not in [two["by"] for two in one["approvals"]])
    if before is not None and difference is not None:
        act = act._replace(differences=(difference_json(one["name"], (before["tree"], one["tree"]), difference),))
    question = f"Approve {visible(one['name'])} {visible(one['version'])}, tree {one['tree']},"
    return _finish(request, act, one, question, lambda: request.client.approve(one), consent)


def _yank(request: _ReleaseRequest, words: list[str]) -> int:
    _, one = request.meant(words, "NAME VERSION")
    act = _Act("yank", None, request.client.subject(), changed=not one["yanked"])
    if not request.is_json:
        write(_release_view(request, one))
    question = f"Yank {visible(one['name'])} {visible(one['version'])}"
    return _finish(request, act, one, question, lambda: request.client.yank(one, request.values["why"] or ""))


def _channel(request: _ReleaseRequest, words: list[str]) -> int:
    # In any order: the address of a release brings its version before the channel.
    name, channels = next(iter(words), ""), [word for word in words[1:] if word in _CHANNELS]
    versions = [word for word in words[1:] if word not in _CHANNELS]
    if len(channels) != 1 or len(versions) != 1:
        hint = "".join(did_you_mean(word, _CHANNELS) for word in versions[:1])
        raise ConfigurationError(f"`release channel` takes NAME, {' or '.join(_CHANNELS)}, and VERSION{hint}")
    (channel,) = channels
    every, one = request.meant([name, *versions], "NAME CHANNEL VERSION")
    act = _Act("channel", channel, request.client.subject(), changed=channel not in one["channels"])
    before = next((other["version"] for other in every if channel in other["channels"]), None)
    if not request.is_json:
        write(_release_view(request, one, [f"  {channel:<9} {visible(before or 'no release')} now"]))
    question = f"Let {channel} of {visible(name)} mean {visible(one['version'])}"
    return _finish(request, act, one, question, lambda: request.client.move_channel(one, channel))


class _Act(NamedTuple):
    """The act on a release, who does it, and whether it changes something."""

    action: ReleaseAct
    channel: str | None
    subject: str
    changed: bool
    differences: tuple[Any, ...] = ()


_DONE: Mapping[ReleaseAct, str] = {"approve": "approved", "yank": "yanked", "channel": "moved"}


def _finish(
    request: _ReleaseRequest,
    act: _Act,
    one: TeamReleaseForm,
    question: str,
    send: Callable[[], Any],
    consent: "Consent | None" = None,
) -> int:
    """Ask, let the server do it, and print what was done; a dry run or a refusal sends nothing."""
    values, status, planned = request.values, DONE, bool(request.values["dry_run"])
    if consent is not None and (planned or not act.changed):
        show_findings(consent, "")
    if act.changed and not planned:
        if agreed(values, "release", question, consent, done=_DONE[act.action]):
            sent = send()
            act, one = act._replace(changed=sent["changed"]), sent["release"]
        else:
            planned, status = True, DENIED
    if request.is_json:
        shown: ReleaseActForm = {
            "server": request.client.base,
            "action": act.action,
            "channel": act.channel,
            "subject": act.subject,
            "planned": planned,
            "changed": act.changed,
            "release": one,
            "findings": consent.rows() if consent is not None else [],
            "differences": [*act.differences],
        }
        write(as_json(shown))
        return status
    word = f"would be {_DONE[act.action]}" if planned and act.changed else _DONE[act.action]
    channels = f"now {visible(' and '.join(one['channels']))}" if one["channels"] else "in no channel"
    _print(request, [(word if act.changed else "unchanged", visible(one["name"]), visible(one["version"]), channels)])
    return status


def _release_view(request: _ReleaseRequest, one: TeamReleaseForm, more: Sequence[str] = ()) -> str:
    """Render a release that something is about to be done to."""
    origin = " ".join(visible(part) for part in (one["source"], one["commit"]) if part)
    people = ", ".join(visible(approval["by"]) for approval in one["approvals"]) or "nobody"
    lines = [
        f"{visible(one['name'])} {visible(one['version'])}  {plural(one['bytes'], 'byte')}",
        f"  at        {visible(request.client.base)}",
        f"  tree      {visible(one['tree'])}",
        f"  published {_day(one['published'])} by {visible(one['publisher'])}{f' from {origin}' if origin else ''}",
        f"  approved  by {people}",
        f"  channels  {visible(' '.join(one['channels'])) or 'none'}",
    ]
    if one["yanked"]:
        why = f": {visible(one['yanked_why'])}" if one["yanked_why"] else ""
        lines.append(f"  yanked    by {visible(one['yanked_by'] or 'somebody')}{why}")
    return "".join(f"{line}\n" for line in [*lines, *more])


# The policy ---------------------------------------------------------------------------------------


def _policy(request: _ReleaseRequest, words: list[str]) -> int:
    """Show the policy of the tenant, or change some of it after showing what changes."""
    wanted = dict(map(_setting, words))
    if len(wanted) != len(words):
        raise ConfigurationError("each policy is given once")
    before: Mapping[str, Any] = request.client.policy()
    changed = [name for name, value in wanted.items() if before[name] != value]
    planned, status, policy = bool(request.values["dry_run"]), DONE, {**before, **wanted}
    if not request.is_json:
        _print(request, [(name, _shown(before[name]), _becomes(name, policy, changed)) for name in before])
    if changed and not planned:
        if agreed(request.values, "release", f"Change the policy of {visible(request.client.base)}"):
            policy = {**request.client.set_policy({name: wanted[name] for name in changed})}
        else:
            planned, status = True, DENIED
    if request.is_json:
        shown: ReleasePolicyForm = {
            "server": request.client.base,
            "planned": planned,
            "changed": changed,
            "policy": TeamPolicyForm(**policy),  # type: ignore[typeddict-item]
        }
        write(as_json(shown))
    elif words:
        note(("would change " if planned else "changed ") + ", ".join(changed) if changed else "nothing changes")
    return status


def _setting(word: str) -> tuple[str, Any]:
    """Return the name and the value of a word such as `approvals=2`."""
    name, is_there, text = word.partition("=")
    name = name.replace("-", "_")
    known, _ = members_of(TeamPolicyForm)
    if name not in known:
        raise ConfigurationError(
            f"no policy {visible(name)!r}{did_you_mean(name, known)} (known: {', '.join(known)}; write KEY=VALUE)"
        )
    if not is_there:
        raise ConfigurationError(f"{name} needs a value: {name}=VALUE")
    if known[name] is bool:
        if text not in ("true", "false"):
            raise ConfigurationError(
                f"{name} is true or false, not {visible(text)!r}{did_you_mean(text, ('true', 'false'))}"
            )
        return name, text == "true"
    if known[name] is int:
        if not re.fullmatch(r"[1-9][0-9]{0,2}", text) or int(text) > _MOST_APPROVALS:
            raise ConfigurationError(f"{name} is a whole number from 1 to {_MOST_APPROVALS}, not {visible(text)!r}")
        return name, int(text)
    from skillshelf.lint.consent import accepted_rules

    return name, sorted(accepted_rules([text]))


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return visible(",".join(value)) or "none"
    return str(value).lower()


def _becomes(name: str, policy: Mapping[str, Any], changed: Sequence[str]) -> str:
    return f"-> {_shown(policy[name])}" if name in changed else ""


_ACTIONS: Mapping[str, Callable[[_ReleaseRequest, list[str]], int]] = {
    "list": _list,
    "approve": _approve,
    "yank": _yank,
    "channel": _channel,
    "policy": _policy,
}
"""The actions of `release`."""
