"""Results to the response envelope of a tool protocol."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from skillshelf.catalog.load import LoadedSkill
from skillshelf.config.profile import Profile
from skillshelf.core.limits import OUTPUT_BLOCK
from skillshelf.core.text import attribute, cut, path_text, visible
from skillshelf.core.values import CatalogSkill, Diagnostic
from skillshelf.errors import ErrorCode
from skillshelf.session.effects import Effects
from skillshelf.session.permissions import Permissions
from skillshelf.session.policy import Policy
from skillshelf.session.recorder import Act, Recorder
from skillshelf.session.tools import ToolError, ToolResult

if TYPE_CHECKING:
    from skillshelf.sandbox.run import OnOutput, Run

__all__ = [
    "ERROR_CODES",
    "Shown",
    "acting",
    "can_run",
    "clean",
    "code_for",
    "cut_result",
    "envelope",
    "error_envelope",
    "failure",
    "in_envelope",
    "load_data",
    "load_result",
    "reminder",
    "run_skill",
    "to_json",
    "told_message",
]


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


_MESSAGE_CHARS = 1000


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
        code, message = code_for(result.error, cause), acting(result.error.message)
        whole = error_envelope(code, message, params=given, cwd=here, time_ms=time_ms)
    else:
        path = os.path.relpath(result.data["path"], root)
        data = {key: value for key, value in result.data.items() if key != "path"}
        text = f"Loaded skill '{data['name']}'."
        if data.get("truncated"):
            text += f" It was cut for size; use the reference {data['ref']} to recall the rest."
        whole = envelope(data, text, params=given, cwd=here, path=path, time_ms=time_ms)
    return result._replace(text=to_json(whole), data=whole)


def can_run(policy: Policy, *, asked: bool) -> bool:
    """Whether the policy can ever allow a script: somebody can be asked, or a rule or the policy itself allows it."""
    rules = [rule for rule in policy.allow if rule.tool == "skill_run"]
    closed = any(rule.tool == "skill_run" and rule.skill_name is None for rule in policy.deny)
    return not closed and policy.name != "read-only" and (asked or bool(rules) or policy.name == "full-auto")


def run_skill(
    skill: CatalogSkill,
    script: str,
    args: Sequence[str],
    *,
    permissions: Permissions,
    effects: Effects,
    recorder: Recorder,
    act: Act,
    by_user: bool,
    on_output: "OnOutput | None" = None,
) -> "tuple[Run, ToolResult]":
    """Run a script after the policy said yes to that skill, script and digest."""
    found = effects.find_script(skill.real_dir, script)
    permissions.require(
        "skill_run", skill, by_user=by_user, script=found.path, digest=found.digest, folder_digest=found.folder_digest
    )
    policy = permissions.policy
    run = effects.run(
        skill.real_dir,
        found.path,
        list(args),
        digest=found.digest,
        folder_digest=found.folder_digest,
        grants=(policy.run_network, policy.run_read, policy.run_write, policy.run_unsandboxed),
        on_output=on_output,
        artifacts=recorder.artifacts_folder(),
    )
    act.ended = {
        "exit_code": run.exit_code,
        "artifacts": [effects.artifact(run.artifact)] if run.artifact else [],
        "truncated": run.truncated,
        "reason": run.reason,
    }
    _tell(run, recorder, act)
    return run, _result(skill, found.path, run)


def _tell(run: "Run", recorder: Recorder, act: Act) -> None:
    """The output as frames: stream after stream in blocks of one size, so that the same output is the same frames."""
    for kind, data in (("tool_stdout", run.stdout), ("tool_stderr", run.stderr)):
        for chunk in _blocks(data.decode("utf-8", "replace")):
            recorder.note(kind, tool_id=act.tool_id, chunk=chunk)


def _blocks(text: str) -> Iterator[str]:
    for start in range(0, len(text), OUTPUT_BLOCK):
        yield text[start : start + OUTPUT_BLOCK]


def _result(skill: CatalogSkill, script: str, run: "Run") -> ToolResult:
    stdout, stderr = run.stdout.decode("utf-8", "replace"), run.stderr.decode("utf-8", "replace")
    parts = [
        f"{script} of {skill.name} ended with exit code {run.exit_code}." + (f" {run.reason}." if run.reason else "")
    ]
    parts += [f"--- {name}\n{text}" for name, text in (("stdout", stdout), ("stderr", stderr)) if text]
    if run.truncated:
        parts.append(f"[output cut; {run.stdout_bytes} and {run.stderr_bytes} bytes in all]")
    text = "\n".join(parts)
    data: dict[str, Any] = {
        "name": skill.name,
        "script": script,
        "exit_code": run.exit_code,
        "stdout": stdout,
        "stderr": stderr,
        "truncated": run.truncated,
        "timed_out": run.timed_out,
        "artifact": run.artifact,
        "sandbox": run.sandbox,
    }
    if run.exit_code == 0:
        return ToolResult(True, text, data)
    failed = failure("failed", f"{script} ended with exit code {run.exit_code}")
    return failed._replace(text=text, data=data)
