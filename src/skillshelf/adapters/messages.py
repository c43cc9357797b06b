"""Reduce the messages of every framework to one form, and find in it the results and skills that a model sees."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Any, Literal

from skillshelf.catalog.document import parse
from skillshelf.catalog.load import SKILL_FILE, digest_of, parse_address
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import path_text
from skillshelf.errors import SkillError
from skillshelf.session.permissions import NAMES_OF_TOOLS
from skillshelf.session.render import render
from skillshelf.session.session import Session

__all__ = [
    "SeenItem",
    "joined",
    "marks_of",
    "result_digest",
    "resume_skills",
    "seen_call",
    "seen_result",
    "seen_text",
    "visible_digests",
    "with_call",
    "with_calls",
]


class SeenItem(NamedTuple):
    """One item of a conversation by value: a text of a role, a call of a tool, or the result of one.

    A message of a framework becomes one item or several. Whatever else it carries does not count, so that the
    dictionaries of an API and the objects of its package give the same items.
    """

    kind: Literal["text", "call", "result"]
    text: str
    role: str = ""
    id: str = ""
    name: str = ""


def seen_text(role: str, text: str) -> list[SeenItem]:
    """Return a text of a role as items: none if it is empty, and none for the system prompt, which may change."""
    return [SeenItem("text", text, role)] if text and role not in ("system", "developer") else []


def seen_call(id: str | None, name: str, arguments: Any) -> SeenItem:  # noqa: A002 - it is called so everywhere.
    """Return a call of a tool as an item; arguments count by their value, not by their spelling as JSON."""
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")
        except (ValueError, RecursionError):
            return SeenItem("call", arguments, id=id or "", name=name)
    return SeenItem("call", _canonical(arguments or {}), id=id or "", name=name)


def seen_result(id: str | None, text: str, name: str | None = None) -> SeenItem:  # noqa: A002
    """Return the result of a tool call as an item; `name` is the name of the tool where the message has it."""
    return SeenItem("result", text, id=id or "", name=name or "")


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def result_digest(text: str) -> str:
    """Return the digest by which a result is known."""
    return digest_of(text.encode("utf-8", "surrogatepass"))


def visible_digests(items: Sequence[SeenItem] | None) -> set[str]:
    """Return the digests of the results that a model sees with these items."""
    # A result whose call was trimmed away is not sent to the model.
    return {result_digest(result.text) for result, call in _pairs(items or ()) if call is not None}


def _pairs(items: Iterable[SeenItem]) -> Iterator[tuple[SeenItem, SeenItem | None]]:
    """Return each result with the call that it answers; None if that is not there.

    Ids may come again in a later turn, and some services have none: a result answers the oldest call of its id, and of
    its tool where it names one, that has no result yet.
    """
    waiting: dict[str, list[SeenItem]] = {}
    for item in items:
        calls = waiting.setdefault(item.id, [])
        if item.kind == "call":
            calls.append(item)
        elif item.kind == "result":
            named = [call for call in calls if item.name in ("", call.name)]
            call = next(iter(named or (calls if item.id else ())), None)
            if call is not None:
                calls.remove(call)
            yield item, call


def joined(items: Sequence[SeenItem] | None, since: Sequence[SeenItem] | None) -> Sequence[SeenItem] | None:
    """Return the items of a request with those that came since; None if none can be seen."""
    return items if not since else [*(items or ()), *since]


def with_call(items: Sequence[SeenItem], call: SeenItem | None) -> list[SeenItem]:
    """Return the items with the call that is answered now, for callers that add the model's turn only afterwards."""
    if call is None:
        return list(items)
    for item in reversed(items):
        # Ids may come again in a later turn: a call that has its result is an earlier one.
        if item.kind == "result" and item.id == call.id:
            break
        if item.kind == "call" and (item.id, item.name) == (call.id, call.name):
            return list(items)
    return [*items, call]


def marks_of(scope: str, items: Sequence[SeenItem]) -> list[bytes]:
    """Return one digest for each beginning of the items; the first is that of no items."""
    marks = [sha256(scope.encode("utf-8", "surrogatepass")).digest()]
    for item in items:
        # The tool of a result is in its call; only some frameworks repeat it.
        value = item._replace(name="") if item.kind == "result" else item
        marks.append(sha256(marks[-1] + json.dumps(value).encode()).digest())
    return marks


# Skills that the messages hold --------------------------------------------------------------------

_HEADS = (
    re.compile(r'<skill_content name="[^"\n]*" directory="(?P<place>[^"\n]*)" digest="[^"\n]*">\n'),
    re.compile(r'<skill_context name="[^"\n]*" path="(?P<place>[^"\n]*)">\n'),
)


def with_calls(
    results: Iterable[SeenItem], items: Iterable[SeenItem], prefix: str
) -> list[tuple[SeenItem, SeenItem | None]]:
    """Return results with the calls that they answer among the items, without the prefix of their tools."""
    wanted = {id(item) for item in results}
    return [
        (result, call and call._replace(name=call.name.removeprefix(prefix)))
        for result, call in _pairs(items)
        if id(result) in wanted
    ]


def resume_skills(session: Session, results: Iterable[tuple[SeenItem, SeenItem | None]]) -> None:
    """Make the skills active whose texts are among the results, so that a new session never allows more tools."""
    paths = {path for result, call in results if (path := _skill_path(session, result, call))}
    for path in sorted(paths - set(session.snapshot()["active"])):
        try:
            session.resume(path)
        except SkillError as error:
            session.warn("not-resumed", f"a skill in the messages cannot be made active: {error}")


def _skill_path(session: Session, result: SeenItem, call: SeenItem | None) -> str | None:
    """Return the path of the skill whose text this result is; None if it is anything else.

    Only results of our own tools count, and a head only as the result of a load: any other text can be written by
    someone who wants a skill to be active.
    """
    name = call.name if call is not None else result.name
    # A framework or a server may have put a name of its own before that of the tool.
    tools = [tool for tool in session.profile.tools if name == tool or ("_" in tool and name.endswith(tool))]
    if not tools:
        return None
    what = NAMES_OF_TOOLS[tools[0]]
    for head in _HEADS if what == "skill_load" else ():
        if match := head.match(result.text):
            places = {path_text(place): skill.path for skill in session.skills for place in (skill.path, skill.dir)}
            return places.get(match["place"])
    return _path_by_call(session, result.text, what, call.text) if call is not None else None


def _path_by_call(session: Session, text: str, what: str, arguments: str) -> str | None:
    """Return the path of a skill whose text has no head of its own: by the call, if text or file is the same."""
    try:
        given = json.loads(arguments)
        if what == "skill_read":
            address = parse_address(str(given.get("uri") or given.get("path")))
            name = address.name if address.segments in ((), (SKILL_FILE,)) else ""
        else:
            name = str(given.get("name") or given.get("skillName") or "") if what == "skill_load" else ""
        if not name:
            return None
        loaded = session.shelf.load(name)
        arguments = str(given.get("args") or "")
        whole = render(loaded, session.profile, arguments, root=session.shelf.project_root).text
    except (SkillError, ValueError, AttributeError):
        return None
    same = text in (whole, loaded.content) or _in_envelope(text, whole)
    return loaded.skill.path if same or (what == "skill_read" and _is_file_of(text, loaded.skill.name)) else None


def _is_file_of(text: str, name: str) -> bool:
    """Return True for a SKILL.md of this name, also an earlier version of the file."""
    return parse(text.encode("utf-8", "replace"), whole=True).fields.get("name") == name


def _in_envelope(text: str, whole: str) -> bool:
    try:
        return bool(json.loads(text)["data"]["content"] == whole)
    except (ValueError, TypeError, KeyError, RecursionError):
        return False
