"""List every way in which a skill enters a conversation, with the steps that each one takes."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from skillshelf.core.records import NamedTuple

if TYPE_CHECKING:
    from skillshelf.journal.events import Mode

__all__ = ["ENTRIES", "EntryName", "EntrySteps", "PermissionStep"]

EntryName = Literal[
    "tool_load",
    "tool_read",
    "command",
    "load",
    "load_for_model",
    "read",
    "read_for_model",
    "activate",
    "preload",
    "mention",
    "resume",
]


PermissionStep = Literal["model", "user", "command", "show", "mention", "none"]


class EntrySteps(NamedTuple):
    """The steps of one entry.

    mode           `mode` of the events: the model acts (`auto`) or a person (`manual`).
    event_tool     Tool name in `tool_started`; None is the profile's tool for `rule`.
    rule           Tool name that permission rules are matched against.
    resolve        `current` takes the one skill of the catalog; `listed` falls back to the catalog at the start of the
                   session, so that a deleted skill is reported as gone.
    permission     Names are resolved among the skills that such a caller may have. `model` asks as for a model. `user`
                   does too, but ignores `disable-model-invocation`. `command` is `user`, and refuses
                   `user-invocable: false` first. `show` refuses nothing. `mention` refuses only what a rule denies, and
                   skips it without an error. `none` decides nothing.
    request        When the skill counts as requested by the user, which overrides `disable-model-invocation` for its
                   later loads: `before` the decision, only if `permitted`, or `never`.
    render         `result` is the text of a tool result, `command` the follow-up message where the profile has one,
                   `none` is no text. A mention is not even loaded (`unloaded`).
    text           `sent` puts the text into the context: the same version again is only a reminder (if the profile
                   reminds), and warnings are added to the session's. `kept` can only be recalled. `none` keeps nothing.
    event          The event that records the use; `skill_activated` follows `skill_invoked`.
    counts_itself  `effective_allowed_tools` of `skill_invoked` includes those of the skill itself.
    activates      The instructions enter a model's context: the skill becomes active, and its `allowed-tools` narrow
                   the host's tools. Every entry does so except those for a person and a mention, which loads nothing.
    preloads       The whole file becomes part of the system prompt.
    """

    mode: "Mode" = "auto"
    event_tool: str | None = None
    rule: Literal["skill_load", "skill_read"] = "skill_load"
    resolve: Literal["current", "listed"] = "current"
    permission: PermissionStep = "model"
    request: Literal["never", "before", "permitted"] = "never"
    render: Literal["result", "command", "none", "unloaded"] = "result"
    text: Literal["sent", "kept", "none"] = "sent"
    event: Literal["skill_invoked", "skill_activated"] = "skill_invoked"
    counts_itself: bool = True
    activates: bool = False
    preloads: bool = False


_BY_USER = EntrySteps(mode="manual", event_tool="skill_load", permission="user", request="before")

ENTRIES: Mapping[EntryName, EntrySteps] = {
    "tool_load": EntrySteps(resolve="listed", activates=True),
    "tool_read": EntrySteps(rule="skill_read", activates=True),
    "command": _BY_USER._replace(permission="command", render="command", activates=True),
    "load": EntrySteps(mode="manual", permission="show", text="kept"),
    "load_for_model": EntrySteps(text="kept", activates=True),
    "read": EntrySteps(mode="manual", rule="skill_read", permission="show", text="kept"),
    "read_for_model": EntrySteps(rule="skill_read", text="kept", activates=True),
    "activate": _BY_USER._replace(
        event_tool="activate", render="none", text="none", event="skill_activated", activates=True
    ),
    "preload": _BY_USER._replace(render="none", text="none", activates=True, preloads=True),
    "mention": EntrySteps(
        mode="manual",
        permission="mention",
        request="permitted",
        render="unloaded",
        text="none",
        counts_itself=False,
    ),
    "resume": EntrySteps(
        mode="manual",
        event_tool="resume",
        permission="none",
        render="none",
        text="none",
        event="skill_activated",
        activates=True,
    ),
}
"""The steps of each entry. What an entry does or leaves out is decided here and nowhere else.

`tool_load` is a call of `skill_load`, `activate_skill` or `Skill`; `tool_read` a call of `skill_read` or `read`. A read
whose file is the SKILL.md of a skill takes every step; of any other file only resolving and permission. `load` and
`read` are the methods of `Session` for a person, `*_for_model` the same for a host that passes the text on to a model,
such as a server of resources. A child session uses `preload`. `resume` is for instructions that are in the
messages already when a session starts.
"""
