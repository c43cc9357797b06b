"""Results to the response envelope of a tool protocol."""

import json
from collections.abc import Mapping
from typing import Any

from skillshelf.session.tools import ErrorCode, ToolError

__all__ = ["ERROR_CODES", "acting", "code_for", "envelope", "error_envelope", "to_json"]

ERROR_CODES = (
    "NOT_FOUND",
    "ACCESS_DENIED",
    "PERMISSION_DENIED",
    "INVALID_PARAM",
    "TIMEOUT",
    "INTERNAL_ERROR",
    "EXECUTION_ERROR",
    "CONFLICT",
    "IS_DIRECTORY",
    "BINARY_FILE",
)


def envelope(
    data: Mapping[str, Any],
    text: str,
    *,
    params: Mapping[str, Any],
    cwd: str,
    path: str | None = None,
    time_ms: int,
) -> dict[str, Any]:
    """An answer that can be used; `partial` where something of it is missing."""
    context: dict[str, Any] = {"cwd": cwd, "params_input": dict(params)}
    if path is not None:
        context["path_resolved"] = path
    return {
        "status": "partial" if data.get("truncated") else "success",
        "data": dict(data),
        "text": text,
        "stats": {"time_ms": max(1, time_ms)},
        "context": context,
    }


def error_envelope(code: str, message: str, *, params: Mapping[str, Any], cwd: str, time_ms: int) -> dict[str, Any]:
    """No answer, and why not."""
    assert code in ERROR_CODES, code
    return {
        "status": "error",
        "data": {},
        "text": message,
        "error": {"code": code, "message": message},
        "stats": {"time_ms": time_ms},
        "context": {"cwd": cwd, "params_input": dict(params)},
    }


def to_json(value: Mapping[str, Any]) -> str:
    """The envelope as the text a model reads."""
    return json.dumps(value, indent=2, ensure_ascii=False)


_CODES: Mapping[ErrorCode, str] = {
    "not_found": "NOT_FOUND",
    "ambiguous": "CONFLICT",
    "denied": "ACCESS_DENIED",
    "invalid_params": "INVALID_PARAM",
    "unknown_tool": "INVALID_PARAM",
    "too_large": "EXECUTION_ERROR",
    "gone": "NOT_FOUND",
    "failed": "INTERNAL_ERROR",
}


def code_for(error: ToolError, cause: Exception | None) -> str:
    """The protocol's code for an error of ours; `cause` is a failure of the machine behind it."""
    if cause is not None:
        return "PERMISSION_DENIED" if isinstance(cause, PermissionError) else "EXECUTION_ERROR"
    return _CODES[error.code]


def acting(message: str) -> str:
    """The message with a next step, which the protocol asks for."""
    return f"{message.rstrip('.')}. Check the name against the list of available skills and try again."
