"""What a session sent to its model: which version of which skill, whether the model still has it, and the texts."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from skillshelf.catalog.load import LoadedSkill
from skillshelf.errors import ResourceNotFound

__all__ = ["Memory", "Sent"]


class Sent(NamedTuple):
    """One version of a skill that was sent, and whether the model still has it."""

    name: str
    path: str
    mtime_ms: int
    digest: str
    arguments: str
    ref: str
    in_context: bool

    def is_version(self, loaded: LoadedSkill, arguments: str) -> bool:
        """Whether this is what was sent; a new time counts as much as a new text."""
        return (self.mtime_ms, self.digest, self.arguments) == (loaded.mtime_ms, loaded.digest, arguments)


class Memory:
    """The versions by path, and every text behind its reference."""

    def __init__(self) -> None:
        self.sent: dict[str, Sent] = {}
        self._texts: dict[str, str] = {}
        self._kept: dict[str, str] = {}

    def reminder_for(self, loaded: LoadedSkill, arguments: str) -> Sent | None:
        """What was sent, if it is this version and the model still has it."""
        sent = self.sent.get(loaded.skill.path)
        return sent if sent and sent.in_context and sent.is_version(loaded, arguments) else None

    def remember(self, loaded: LoadedSkill, arguments: str, text: str) -> str:
        """Note that a version was sent; returns its reference, which stays the same for the same version."""
        path = loaded.skill.path
        sent = self.sent.get(path)
        if sent is not None and sent.is_version(loaded, arguments):
            ref = sent.ref
            self._texts[ref] = text
        else:
            ref = self.keep("load", text)
        self.sent[path] = Sent(loaded.skill.name, path, loaded.mtime_ms, loaded.digest, arguments, ref, in_context=True)
        return ref

    def keep(self, kind: str, text: str) -> str:
        """Keep a text until the session ends; returns its reference."""
        ref = f"{kind}-{len(self._texts) + 1}"
        self._texts[ref] = text
        return ref

    def keep_once(self, key: str, kind: str, text: str) -> str:
        """The same for a text that may come again under the same key."""
        if key not in self._kept:
            self._kept[key] = self.keep(kind, text)
        return self._kept[key]

    def recall(self, ref: str) -> str:
        """The whole text behind a reference."""
        if ref not in self._texts:
            raise ResourceNotFound(f"reference {ref}")
        return self._texts[ref]

    def compact(self) -> None:
        """Nothing that was sent is in the model's context any more; references still resolve."""
        self.sent = {path: sent._replace(in_context=False) for path, sent in self.sent.items()}

    def to_dict(self) -> dict[str, Any]:
        """A JSON value that `from_dict` turns back."""
        return {"loaded": [sent._asdict() for sent in self.sent.values()], "texts": dict(self._texts)}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> "Memory":
        """The memory that `to_dict` wrote."""
        memory = cls()
        memory.sent = {entry["path"]: Sent(**entry) for entry in value["loaded"]}
        memory._texts = dict(value["texts"])
        return memory
