"""Loads and failures to tool results: the data, the words and the codes a model and a host get."""

from typing import Any

from skillshelf.catalog.load import LoadedSkill
from skillshelf.core.text import attribute, cut, path_text, visible
from skillshelf.errors import (
    AmbiguousSkill,
    ConfigurationError,
    LimitExceeded,
    PathEscape,
    PermissionDenied,
    ResourceNotFound,
    SkillError,
    SkillFileNotFound,
    SkillNotFound,
    SkillsDisabled,
)
from skillshelf.session.tools import ErrorCode, ToolError, ToolResult

__all__ = ["clean", "code_of", "failure", "load_data", "reminder", "told_message"]

_MESSAGE_CHARS = 1000

_CODES: tuple[tuple[type[SkillError], ErrorCode], ...] = (
    (AmbiguousSkill, "ambiguous"),
    (SkillNotFound, "not_found"),
    (ResourceNotFound, "not_found"),
    (SkillFileNotFound, "gone"),
    (PermissionDenied, "denied"),
    (SkillsDisabled, "denied"),
    (PathEscape, "invalid_params"),
    (ConfigurationError, "invalid_params"),
    (LimitExceeded, "too_large"),
    (SkillError, "failed"),
)


def code_of(error: SkillError) -> ErrorCode:
    """The code for an error; what has none of its own failed."""
    return next(code for kind, code in _CODES if isinstance(error, kind))


def clean(value: Any) -> Any:
    """The value without lone surrogates, which cannot be sent to anybody."""
    if isinstance(value, list | tuple):
        return [clean(item) for item in value]
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def told_message(message: str) -> str:
    """A message without what is no text, and not at length."""
    return cut(visible(message), _MESSAGE_CHARS)


def failure(code: ErrorCode, message: str, candidates: tuple[str, ...] = ()) -> ToolResult:
    """The result of a call that gave nothing; what the model sent is not sent back at length."""
    message = told_message(message)
    text = "\n".join([f"Error: {message}", *candidates])
    return ToolResult(False, text, {}, ToolError(code, message, candidates))


def load_data(loaded: LoadedSkill, ref: str, *, already_loaded: bool) -> dict[str, Any]:
    """What a host gets of a load."""
    return {
        "skill_id": loaded.skill.id,
        "name": loaded.skill.name,
        "path": loaded.skill.path,
        "dir": loaded.skill.dir,
        "mtime_ms": loaded.mtime_ms,
        "digest": loaded.digest,
        "ref": ref,
        "already_loaded": already_loaded,
        "files": list(loaded.files),
        "files_truncated": loaded.files_truncated,
    }


def reminder(loaded: LoadedSkill, ref: str) -> str:
    """What a model gets instead of a text that it has."""
    return (
        f'<skill_context_reminder name="{attribute(loaded.skill.name)}" path="{path_text(loaded.skill.path)}" '
        f'ref="{attribute(ref)}">This skill is already loaded and has not changed.</skill_context_reminder>'
    )
