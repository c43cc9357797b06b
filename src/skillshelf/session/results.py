"""Turn loads, runs and errors into tool results, and results into the response envelope of a tool protocol."""

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

from skillshelf.catalog.load import LoadedSkill
from skillshelf.catalog.prompt import as_shown
from skillshelf.config.profile import Profile, SearchForm
from skillshelf.core.limits import DESCRIPTION_SHOWN
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import attribute, cut, field, fold, path_text, plural, visible_for_model
from skillshelf.core.values import CatalogSkill, Diagnostic
from skillshelf.errors import ErrorCode, SkillError
from skillshelf.session.render import Page, base_directory, load_again
from skillshelf.session.tools import ToolError, ToolResult

if TYPE_CHECKING:
    from skillshelf.sandbox.run import Run
    from skillshelf.search.query import SearchReport

__all__ = [
    "ERROR_CODES",
    "ShownSkill",
    "clean",
    "cut_result",
    "envelope",
    "error_envelope",
    "failure",
    "in_envelope",
    "load_result",
    "message_text",
    "recorded_text",
    "reminder_result",
    "run_result",
    "search_result",
    "with_warnings",
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
    """Return the envelope of a success; its status is `partial` if the content was truncated."""
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
    """Return the envelope of an error."""
    assert code in ERROR_CODES, code
    return {
        "status": "error",
        "data": {},
        "text": message,
        "error": {"code": code, "message": message},
        "stats": {"time_ms": time_ms},
        "context": {"cwd": cwd, "params_input": dict(params)},
    }


_ENVELOPE_CODES: Mapping[ErrorCode, str] = {
    "not_found": "NOT_FOUND",
    "ambiguous": "CONFLICT",
    "denied": "ACCESS_DENIED",
    "invalid_params": "INVALID_PARAM",
    "unknown_tool": "INVALID_PARAM",
    "too_large": "EXECUTION_ERROR",
    "gone": "NOT_FOUND",
    "failed": "INTERNAL_ERROR",
    "changed": "ACCESS_DENIED",
    "refused": "ACCESS_DENIED",
}


_MESSAGE_CHARS = 1000


def clean(value: Any) -> Any:
    """Return the value with lone surrogates replaced, because they cannot be encoded.

    A number that portable JSON cannot hold is the nearest one, or text, so that an event can hold what was given.
    """
    if isinstance(value, list | tuple):
        return [clean(item) for item in value]
    if isinstance(value, int) and abs(value) >= 2**63:
        return 2**63 - 1 if value > 0 else 1 - 2**63
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def message_text(message: str) -> str:
    """Return a message with control characters made visible, cut to a fixed length."""
    return cut(visible_for_model(message), _MESSAGE_CHARS)


def failure(code: ErrorCode, message: str, candidates: tuple[str, ...] = ()) -> ToolResult:
    """Return the result of a failed call."""
    message = message_text(message)
    text = "\n".join([f"Error: {message}", *map(visible_for_model, candidates)])
    return ToolResult(False, text, {}, ToolError(code, message, candidates))


def _load_data(loaded: LoadedSkill, ref: str, *, already_loaded: bool) -> dict[str, Any]:
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


def reminder_result(loaded: LoadedSkill, ref: str, profile: Profile, *, with_arguments: bool = False) -> ToolResult:
    """Return the result of a load whose text is already in the context."""
    call = load_again(0, with_arguments=with_arguments)
    again = f" For its text again: {call}." if "skill_load" in profile.tools else ""
    text = (
        f'<skill_context_reminder name="{attribute(loaded.skill.name)}" path="{path_text(loaded.skill.path)}" '
        f'ref="{attribute(ref)}">This skill is already loaded and has not changed.{again}</skill_context_reminder>'
    )
    return ToolResult(True, text, _load_data(loaded, ref, already_loaded=True))


def with_warnings(result: ToolResult, warnings: Sequence[Diagnostic]) -> ToolResult:
    """Return the result with warnings for the host in its data, if there are any."""
    if not warnings:
        return result
    return result._replace(data={**result.data, "warnings": [warning.to_dict() for warning in warnings]})


class ShownSkill(NamedTuple):
    """A skill as a model would get it, loaded for a person."""

    loaded: LoadedSkill
    text: str
    warnings: tuple[Diagnostic, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, with the digest of all files of the skill as they are now."""
        return {
            "skill": self.loaded.skill.to_dict(),
            "text": self.text,
            "files": list(self.loaded.files),
            "files_truncated": self.loaded.files_truncated,
            "digest": self.loaded.digest,
            "warnings": [warning.to_dict() for warning in self.warnings],
            **_tree_of(self.loaded),
        }


def _tree_of(loaded: LoadedSkill) -> dict[str, str | None]:
    """Return the members about the tree of a skill; no digest where it cannot be read."""
    if loaded.tree is not None:
        return {"tree": loaded.tree}
    from skillshelf.catalog.source import is_remote, tree_named_in
    from skillshelf.catalog.tree import skill_tree

    if is_remote(loaded.skill.path):
        return {"tree": tree_named_in(loaded.skill.real_dir)}
    try:
        tree = skill_tree(loaded.skill.real_dir)
    except SkillError:
        return {"tree": None}
    return {"tree": tree.digest, **({"tree_problem": tree.problem} if tree.problem else {})}


def cut_result(text: str, ref: str, profile: Profile, rest: str = "") -> str:
    """Cut a text to the profile's limit and add the reference of the whole text, and how to get the `rest`."""
    data = text.encode()
    if len(data) <= profile.result_bytes or "skill_load" not in profile.tools:
        return text
    return data[: profile.result_bytes].decode("utf-8", "ignore") + f"\n[cut; ref={ref}{rest}]"


def load_result(loaded: LoadedSkill, sent: Page, ref: str, profile: Profile, *, root: str) -> ToolResult:
    """Return the result of a load in the profile's form; `root` is that of the project, for relative paths."""
    data: dict[str, Any]
    if profile.load_form == "skill-activated":
        data = {
            "skillName": loaded.skill.name,
            "instructions": loaded.body.strip(),
            "resourcesAvailable": {
                "hasScripts": loaded.has_scripts,
                "hasReferences": loaded.has_references,
                "hasAssets": loaded.has_assets,
            },
        }
    elif profile.load_form == "envelope":
        data = {
            "name": loaded.skill.name,
            "base_dir": base_directory(loaded, root),
            "content": sent.text,
            "path": loaded.skill.path,
        }
    else:
        data = _load_data(loaded, ref, already_loaded=False)
    if not sent.whole:
        data |= {"truncated": sent.next_offset is not None, "offset": sent.offset, "next_offset": sent.next_offset}
    return ToolResult(True, sent.text, data)


_NEXT_STEPS: Mapping[str, str] = {
    "NOT_FOUND": "Check the name against the list of available skills and try again",
    "ACCESS_DENIED": "Do not try again: ask the user to allow it, or use another skill",
    "PERMISSION_DENIED": "Check the permissions of the file, or ask the user to; another name will not help",
    "INVALID_PARAM": "Check the parameters of the tool and try again",
    "INTERNAL_ERROR": "Check the file named here, or ask the user to correct it, then try again",
    "EXECUTION_ERROR": "Check that the file can be read, and try again",
    "CONFLICT": "Use the path of one of them, or ask the user which one is meant",
}
"""The next step after each error, which the protocol requires in a message."""


def search_result(report: "SearchReport", profile: Profile, *, nothing: str) -> ToolResult:
    """Return search results in the profile's form; `nothing` is the text if there are none."""
    shown = as_shown((result.skill for result in report.results), profile)
    results = [result._replace(skill=skill) for result, skill in zip(report.results, shown, strict=True)]
    text = SEARCH_FORMS[profile.search_form](report._replace(results=tuple(results)), profile) if results else nothing
    return ToolResult(True, "\n".join([text, *(f"({note})" for note in report.notes)]), report.to_dict())


_WEAK = "No skill clearly fits; the closest are"


def _shown_of(report: "SearchReport") -> str:
    """Return how many skills are shown, and of how many; of weak results, that they are."""
    if report.weak:
        return _WEAK
    if not report.truncated:
        return f"{plural(len(report.results), 'skill')} found"
    of = f"{len(report.results)} of {report.total}" if report.total else f"the best {len(report.results)} of more"
    return f"{of} skills shown; a larger limit or a narrower query shows others"


def _number(score: float) -> str:
    return f"{score:.4f}".rstrip("0").rstrip(".")


def _numbered_results(report: "SearchReport", profile: Profile) -> str:
    names = Counter(result.skill.name for result in report.results)
    lines = [f"{_shown_of(report)}:"]
    for number, result in enumerate(report.results, 1):
        skill = result.skill
        about = f"{skill.scope}, {result.reason}, score {_number(result.score)}"
        description = cut(fold(skill.description), DESCRIPTION_SHOWN)
        lines.append(f"{number}. {fold(skill.name)} ({about}): {description}")
        if "path" in profile.load_by or names[skill.name] > 1:
            copies = f" ({result.and_copies})" if result.copies else ""
            lines.append(f"   path: {visible_for_model(skill.path)}{copies}")
    return "\n".join(lines)


def _search_element(report: "SearchReport", profile: Profile) -> str:
    truncated = "true" if report.truncated else "false"
    lines = [f'<skill_search_results count="{len(report.results)}" truncated="{truncated}">']
    for result in report.results:
        skill = result.skill
        lines += [
            "  <skill>",
            f"    <name>{field(skill.name)}</name>",
            f"    <description>{field(cut(fold(skill.description), DESCRIPTION_SHOWN))}</description>",
            f"    <path>{path_text(skill.path)}</path>",
            f"    <scope>{field(skill.scope)}</scope>",
            f"    <reason>{result.reason}</reason>",
            f"    <score>{_number(result.score)}</score>",
            "  </skill>",
        ]
    weak = [f"  <note>{_WEAK} these.</note>"] if report.weak else []
    note = [f"  <note>{_shown_of(report._replace(weak=False))}.</note>"] if report.truncated else []
    return "\n".join([*lines, *weak, *note, "</skill_search_results>"])


SEARCH_FORMS: Mapping[SearchForm, Callable[["SearchReport", Profile], str]] = {
    "numbered": _numbered_results,
    "elements": _search_element,
}


def in_envelope(
    given: Mapping[str, Any], result: ToolResult, *, root: str, cwd: str, time_ms: int, cause: Exception | None
) -> ToolResult:
    """Return the result as the response envelope of a tool protocol.

    `cause` is the machine's error behind a failed result; it decides the code of the envelope.
    """
    from skillshelf.journal.events import plain

    here = os.path.relpath(cwd, root)
    # A program may pass what JSON cannot hold.
    given = plain(dict(given))
    if result.error is not None:
        code = _ENVELOPE_CODES[result.error.code]
        if cause is not None:
            code = "PERMISSION_DENIED" if isinstance(cause, PermissionError) else "EXECUTION_ERROR"
        message = f"{result.error.message.rstrip('.')}. {_NEXT_STEPS[code]}."
        whole = error_envelope(code, message, params=given, cwd=here, time_ms=time_ms)
    else:
        path = os.path.relpath(result.data["path"], root)
        data = {key: value for key, value in result.data.items() if key != "path"}
        text = f"Loaded skill '{data['name']}'."
        if data.get("truncated"):
            text += f" It was cut for size; use offset={data['next_offset']} for the rest."
        whole = envelope(data, text, params=given, cwd=here, path=path, time_ms=time_ms)
    return result._replace(text=_as_text(whole), data=whole)


def recorded_text(result: ToolResult) -> str:
    """Return the text of an envelope with `time_ms` as 0, so that equal calls have equal texts in the journal.

    The parameters are sorted by name, as they are in the event of the call.
    """
    # Imported here: most results have no envelope, and the import takes as long as a small catalog.
    import json

    context = result.data["context"]
    params = json.loads(json.dumps(context["params_input"], sort_keys=True))
    return _as_text({**result.data, "stats": {"time_ms": 0}, "context": {**context, "params_input": params}})


def _as_text(envelope: Mapping[str, Any]) -> str:
    import json

    return json.dumps(envelope, indent=2, ensure_ascii=False)


def run_result(skill: CatalogSkill, script: str, run: "Run") -> ToolResult:
    """Return the result of a script that ran."""
    stdout, stderr = run.stdout.decode("utf-8", "replace"), run.stderr.decode("utf-8", "replace")
    parts = [
        f"{visible_for_model(script)} of {visible_for_model(skill.name)} ended with exit code {run.exit_code}."
        + (f" {run.reason}." if run.reason else "")
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
        "missing": list(run.missing),
    }
    if run.exit_code == 0:
        return ToolResult(True, text, data)
    failed = failure("failed", f"{script} ended with exit code {run.exit_code}")
    return failed._replace(text=text, data=data)
