"""A rendered skill to the result of its load: cut to size, with the data and the envelope of the profile."""

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from skillshelf.catalog.load import LoadedSkill
from skillshelf.config.profile import Profile
from skillshelf.core.values import Diagnostic
from skillshelf.session import envelope as envelopes
from skillshelf.session.results import load_data
from skillshelf.session.tools import ToolResult

__all__ = ["Shown", "cut_result", "in_envelope", "load_result"]


class Shown(NamedTuple):
    """A skill as a model would get it, for a person who asked for it."""

    loaded: LoadedSkill
    text: str
    warnings: tuple[Diagnostic, ...]

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "skill": self.loaded.skill.to_dict(),
            "text": self.text,
            "files": list(self.loaded.files),
            "files_truncated": self.loaded.files_truncated,
            "digest": self.loaded.digest,
            "warnings": [warning.to_dict() for warning in self.warnings],
        }


def cut_result(text: str, ref: str, profile: Profile) -> str:
    """The text as far as the profile's limit lets it be, with the reference to the whole."""
    data = text.encode()
    if len(data) <= profile.result_bytes:
        return text
    return data[: profile.result_bytes].decode("utf-8", "ignore") + f"\n[cut; ref={ref}]"


def load_result(loaded: LoadedSkill, text: str, ref: str, profile: Profile, *, root: str) -> ToolResult:
    """What a load gives; `root` is the folder that an envelope's paths start from."""
    content = cut_result(text, ref, profile)
    return ToolResult(True, content, _form_data(loaded, text, content, ref, profile, root))


def _form_data(
    loaded: LoadedSkill, text: str, content: str, ref: str, profile: Profile, root: str
) -> Mapping[str, Any]:
    if profile.load_form == "skill-activated":
        return {
            "skillName": loaded.skill.name,
            "instructions": loaded.body.strip(),
            "resourcesAvailable": {
                "hasScripts": loaded.has_scripts,
                "hasReferences": loaded.has_references,
                "hasAssets": loaded.has_assets,
            },
        }
    if profile.load_form == "envelope":
        truncated = {"truncated": True, "ref": ref} if content != text else {}
        return {
            "name": loaded.skill.name,
            "base_dir": os.path.relpath(loaded.skill.dir, root),
            "content": content,
            "path": loaded.skill.path,
            **truncated,
        }
    return load_data(loaded, ref, already_loaded=False)


def in_envelope(
    given: Mapping[str, Any], result: ToolResult, *, root: str, cwd: str, time_ms: int, cause: Exception | None
) -> ToolResult:
    """The result as the response envelope of the profile's tool protocol."""
    here = os.path.relpath(cwd, root)
    if result.error is not None:
        code, message = envelopes.code_for(result.error, cause), envelopes.acting(result.error.message)
        whole = envelopes.error_envelope(code, message, params=given, cwd=here, time_ms=time_ms)
    else:
        path = os.path.relpath(result.data["path"], root)
        data = {key: value for key, value in result.data.items() if key != "path"}
        text = f"Loaded skill '{data['name']}'."
        if data.get("truncated"):
            text += f" It was cut for size; use the reference {data['ref']} to recall the rest."
        whole = envelopes.envelope(data, text, params=given, cwd=here, path=path, time_ms=time_ms)
    return result._replace(text=envelopes.to_json(whole), data=whole)
