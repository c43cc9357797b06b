"""A script of a skill to a tool result: permission for exactly these bytes, the run, and its output as frames."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from skillshelf.core.limits import OUTPUT_BLOCK
from skillshelf.core.values import CatalogSkill
from skillshelf.session.effects import World
from skillshelf.session.permissions import Guard
from skillshelf.session.policy import Policy
from skillshelf.session.recorder import Act, Recorder
from skillshelf.session.results import failure
from skillshelf.session.tools import ToolResult

if TYPE_CHECKING:
    from skillshelf.sandbox.runner import OnOutput, Run

__all__ = ["can_run", "run_skill"]


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
    guard: Guard,
    world: World,
    recorder: Recorder,
    act: Act,
    by_user: bool,
    on_output: "OnOutput | None" = None,
) -> "tuple[Run, ToolResult]":
    """Run a script after the policy said yes to that skill, script and digest."""
    found = world.find_script(skill.real_dir, script)
    guard.permit(
        "skill_run", skill, by_user=by_user, script=found.path, digest=found.digest, folder_digest=found.folder_digest
    )
    policy = guard.policy
    run = world.run(
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
        "artifacts": [world.artifact(run.artifact)] if run.artifact else [],
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
