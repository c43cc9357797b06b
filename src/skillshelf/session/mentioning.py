"""A user's text to the skills that `$name` means in it."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from skillshelf.catalog.load import near_names
from skillshelf.core.values import CatalogSkill
from skillshelf.session.desk import Desk

__all__ = ["Mentions", "is_for_users", "names_in", "resolve_mentions"]

_NEAR_MISSES = 10
# ASCII on both sides: in Japanese or Chinese a mention stands between letters.
_MENTION = re.compile(r"(?<![A-Za-z0-9_$\\])\$([a-z0-9]+(?:-[a-z0-9]+)*)(?!-*[A-Za-z0-9_])")


class Mentions(NamedTuple):
    """A user's text with its mentions listed for the model, the skills they mean, and near misses."""

    text: str
    skills: tuple[str, ...]
    unknown: tuple[str, ...]


def names_in(text: str) -> list[str]:
    """What is written as a mention, each once."""
    return list(dict.fromkeys(_MENTION.findall(text)))


def resolve_mentions(text: str, named: Sequence[str], desk: Desk) -> Mentions:
    """The skills that these names in a text mean; what is no skill is no mention."""
    known = {skill.name for skill in desk.skills if skill.enabled and is_for_users(skill)}
    # Only what resembles a skill: `$100` and `$home` are something else.
    strange = [name for name in named if name not in known][:_NEAR_MISSES]
    unknown = tuple(name for name in strange if near_names(name, desk.skills))
    meant = _mentioned([name for name in named if name in known], unknown, desk)
    if not meant:
        return Mentions(text, meant, unknown)
    block = "\n".join(["<skill_mentions>", *(f"- {name}" for name in meant), "</skill_mentions>"])
    return Mentions(f"{text}\n\n{block}", meant, unknown)


def is_for_users(skill: CatalogSkill) -> bool:
    """Whether its author lets users ask for a skill."""
    flag = skill.frontmatter.get("user-invocable")
    return not (flag is False or str(flag).strip().lower() in ("false", "no", "off", "0"))


def _mentioned(names: Sequence[str], unknown: Sequence[str], desk: Desk) -> tuple[str, ...]:
    """The names that may reach the model; the user asked for them."""
    if not names and not unknown:
        return ()
    desk.begin()
    desk.recorder.by_person()
    desk.recorder.note("skill_mentioned", names=list(names), unknown=list(unknown))
    meant = []
    for name in names:
        allowed = [skill for skill in desk.skills if skill.name == name and desk.guard.may_mention(skill)]
        if allowed:
            meant.append(name)
        for skill in allowed:
            tools = desk.effective(desk.active.values())
            desk.recorder.invoked(skill, "", ref=None, repeat=False, tools=tools)
    desk.guard.asked_for.update(meant)
    return tuple(meant)
