"""Remember which versions of skills were sent in a conversation, and every text by its reference."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from skillshelf.catalog.load import LoadedSkill
from skillshelf.core.records import NamedTuple
from skillshelf.errors import ResourceNotFound

__all__ = ["ConversationMark", "Memory", "SentSkill", "SentTexts"]


class SentSkill(NamedTuple):
    """One version of a skill that was sent.

    `in_context` is False after the context was compacted. `whole` is False if the text was cut, or was the bare file:
    such a version is not a reason to leave out the text of the next load.
    """

    name: str
    path: str
    mtime_ms: int
    digest: str
    arguments: str
    ref: str
    in_context: bool
    whole: bool = True

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, in which a version that was sent whole needs no word about it."""
        return {key: value for key, value in self._asdict().items() if key != "whole" or not value}

    def is_version(self, loaded: LoadedSkill, arguments: str) -> bool:
        """Return True if this version was sent; a changed time counts as much as a changed text."""
        return (self.mtime_ms, self.digest, self.arguments) == (loaded.mtime_ms, loaded.digest, arguments)


class SentTexts:
    """The versions of skills that were sent, by path, and every text by its reference."""

    def __init__(self) -> None:
        self.skills: dict[str, SentSkill] = {}
        self._texts: dict[str, str] = {}
        self._refs: dict[str, str] = {}

    def in_context(self, loaded: LoadedSkill, arguments: str) -> SentSkill | None:
        """Return the entry of this version if it was sent and is still in the context."""
        sent = self.skills.get(loaded.skill.path)
        return sent if sent and sent.in_context and sent.whole and sent.is_version(loaded, arguments) else None

    def has_other_text(self, loaded: LoadedSkill) -> bool:
        """Return True if another text of this skill is in the context, so that a page of this one does not fit it."""
        sent = self.skills.get(loaded.skill.path)
        return sent is not None and sent.in_context and sent.digest != loaded.digest

    def keep(self, loaded: LoadedSkill, arguments: str, text: str) -> str:
        """Keep the text of a version and return its reference, which is the same for the same version."""
        sent = self.skills.get(loaded.skill.path)
        if sent is None or not sent.is_version(loaded, arguments) or not sent.ref.startswith("load-"):
            return self.add_text("load", text)
        self._texts[sent.ref] = text
        return sent.ref

    def add_version(self, loaded: LoadedSkill, arguments: str, ref: str, *, whole: bool) -> None:
        """Record that a version was sent: whole, or only a part or the bare file."""
        skill = loaded.skill
        known = self.skills.get(skill.path)
        has_whole = known is not None and known.in_context and known.whole and known.is_version(loaded, arguments)
        self.skills[skill.path] = SentSkill(
            skill.name, skill.path, loaded.mtime_ms, loaded.digest, arguments, ref, True, whole or has_whole
        )

    def add_file(self, loaded: LoadedSkill, ref: str) -> None:
        """Record that the SKILL.md of a version was sent as a file, under the reference of its text."""
        known = self.skills.get(loaded.skill.path)
        if known is None or not known.in_context or not known.is_version(loaded, known.arguments):
            self.add_version(loaded, "", ref, whole=False)

    def add_text(self, kind: str, text: str, *, key: str | None = None) -> str:
        """Keep a text until the session ends and return its reference; the same `key` gives the same reference."""
        if key is not None and key in self._refs:
            return self._refs[key]
        ref = f"{kind}-{len(self._texts) + 1}"
        self._texts[ref] = text
        if key is not None:
            self._refs[key] = ref
        return ref

    def recall(self, ref: str) -> str:
        """Return the whole text of a reference, or raise ResourceNotFound."""
        if ref not in self._texts:
            raise ResourceNotFound(f"reference {ref}")
        return self._texts[ref]

    def drop_texts(self) -> None:
        """Drop the texts; a reference stays taken, so that no later text gets it."""
        self._texts = dict.fromkeys(self._texts, "")

    def compact(self) -> None:
        """Mark everything as no longer in the context; references still resolve."""
        self.skills = {path: sent._replace(in_context=False) for path, sent in self.skills.items()}

    def drop(self, paths: Iterable[str]) -> None:
        """Mark the skills of these paths as not in the context."""
        for path in paths:
            if path in self.skills:
                self.skills[path] = self.skills[path]._replace(in_context=False)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON value that `from_dict` reads."""
        return {"loaded": [sent.to_dict() for sent in self.skills.values()], "texts": dict(self._texts)}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> "SentTexts":
        """Return the texts that `to_dict` wrote."""
        texts = cls()
        texts.skills = {entry["path"]: SentSkill(**entry) for entry in value["loaded"]}
        texts._texts = dict(value["texts"])
        return texts


Memory = Literal["session", "messages", "none"]
"""The memory that decides whether a text is still in the context, so that a second load is only a reminder.

`session` is this session's own record until it is compacted, `messages` are those that the model sees (`visible` in a
call), and with `none` every load is whole.
"""


class ConversationMark(NamedTuple):
    """The skills that were sent and active at one time."""

    sent: Mapping[str, SentSkill]
    active: frozenset[str]
