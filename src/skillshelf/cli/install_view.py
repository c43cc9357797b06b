"""Show what installing would do: reviews of skills, differences of trees, states of folders; and their JSON forms."""

import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from skillshelf.core.console import PathDisplay, screen
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import fold, plural, shorten, visible

if TYPE_CHECKING:
    from skillshelf.catalog.source import SourceIdentity
    from skillshelf.install.difference import TreeDifference
    from skillshelf.install.review import SkillReview
    from skillshelf.install.verify import SkillFound

__all__ = [
    "ActionKind",
    "InstallAction",
    "InstallPlan",
    "difference_json",
    "difference_view",
    "plan_json",
    "plan_view",
    "review_json",
    "review_view",
    "slow_work",
    "verify_json",
    "verify_view",
]

ActionKind = Literal["add", "install", "update", "restore", "accept", "remove", "rollback", "collect", "import"]

_FILES_SHOWN = 40
_WIDEST = 72


class InstallAction(NamedTuple):
    """One skill that is installed, changed or removed: its tree, where it comes from, and its folder."""

    kind: ActionKind
    name: str
    tree: str | None
    source: str
    path: str


class InstallPlan(NamedTuple):
    """The actions of a command, the skills that need none, and those that are left alone with the reason."""

    actions: tuple[InstallAction, ...] = ()
    unchanged: tuple[tuple[str, str, str], ...] = ()
    """The name, tree and path of each."""
    refused: tuple[tuple[str, str], ...] = ()
    """The name and the reason of each."""


_DONE: Mapping[ActionKind, str] = {
    "add": "added",
    "install": "installed",
    "update": "updated",
    "restore": "restored",
    "accept": "accepted",
    "remove": "removed",
    "rollback": "rolled back",
    "collect": "collected",
    "import": "imported",
}


def plan_json(plan: InstallPlan, **more: Any) -> dict[str, Any]:
    """Return the JSON form of a plan; `more` are further members."""
    return {
        "actions": [
            {"kind": one.kind, "name": one.name, "tree": one.tree, "from": one.source, "path": one.path}
            for one in plan.actions
        ],
        "unchanged": [{"name": name, "tree": tree, "path": path} for name, tree, path in plan.unchanged],
        "refused": [{"name": name, "reason": reason} for name, reason in plan.refused],
        **more,
    }


def plan_view(plan: InstallPlan, display: PathDisplay, env: Mapping[str, str], *, planned: bool) -> str:
    """Render what was done, or would be, with one line for each skill that is changed or refused."""
    rows = [
        (f"would be {_DONE[one.kind]}" if planned else _DONE[one.kind], visible(one.name), _where(one, display))
        for one in plan.actions
    ]
    rows += [("refused", visible(name), visible(reason)) for name, reason in plan.refused]
    lines = screen(env).table(rows, ("green", "bold", None), wrap=True) if rows else []
    if plan.unchanged:
        lines.append(f"{plural(len(plan.unchanged), 'skill')} unchanged")
    return "".join(f"{line}\n" for line in lines)


def _where(action: InstallAction, display: PathDisplay) -> str:
    parts = [visible(display.short(action.path)) if action.path else "", action.tree or ""]
    return "  ".join(part for part in parts if part)


# Reviews ------------------------------------------------------------------------------------------


def review_view(review: "SkillReview", path: str, hosts: str, display: PathDisplay) -> str:
    """Render a skill that nobody agreed to yet: where it is from, its files, scripts and findings."""
    head = f"{visible(review.name)}  {shorten(visible(fold(review.description)), _WIDEST)}"
    facts = [
        ("source", _source(review.identity)),
        ("publisher", visible(review.identity.publisher) or "not named"),
        ("tree", review.tree),
        ("goes to", visible(display.short(path))),
        ("seen by", visible(hosts)),
        ("files", f"{len(review.listed)}, {review.size:,} bytes"),
        *(("", line) for line in _files(review)),
        ("scripts", f"{len(review.scripts)}: {', '.join(map(visible, review.scripts))}" if review.scripts else "none"),
        ("check", _findings(len(review.problems))),
        *(
            ("", visible(f"{one.path}:{one.line or 1}: {one.severity}: {one.rule}: {one.message}"))
            for one in review.problems
        ),
        ("security", _findings(sum(one.severity != "info" for one in review.security))),
        *(("note", visible(one)) for one in review.notes),
        *(("attention", visible(one)) for one in review.claims),
    ]
    return f"{head}\n" + "".join(f"  {label:<10} {text}\n" for label, text in facts)


def _findings(count: int) -> str:
    return plural(count, "finding") if count else "no findings"


def _source(identity: "SourceIdentity") -> str:
    ref = f" at {identity.ref}" if identity.ref else ""
    version = identity.commit or identity.artifact
    inside = f", folder {identity.path}" if identity.path else ""
    return visible(f"{identity.source}{inside}{ref}" + (f" ({version[:19]})" if version else ""))


def _files(review: "SkillReview") -> Iterator[str]:
    """Yield the first files of a skill; scripts are named on a line of their own anyway."""
    for path in sorted(review.listed)[:_FILES_SHOWN]:
        file = review.listed[path]
        yield f"  {file.size:>9,}  {'x' if file.executable else '-'}  {visible(path)}"
    if len(review.listed) > _FILES_SHOWN:
        yield f"  and {len(review.listed) - _FILES_SHOWN} more (all of them: --dry-run --json)"


def review_json(review: "SkillReview", path: str) -> dict[str, Any]:
    """Return the JSON form of a review."""
    one = review.identity
    return {
        "name": review.name,
        "description": review.description,
        "source": one.source,
        "source_path": one.path,
        "ref": one.ref,
        "commit": one.commit,
        "artifact": one.artifact,
        "publisher": one.publisher,
        "tree": review.tree,
        "path": path,
        "files": [
            {"path": name, "size": file.size, "executable": file.executable, "script": name in review.scripts}
            for name, file in sorted(review.listed.items())
        ],
        "problems": [
            {"path": one.path, "line": one.line, "rule": one.rule, "severity": one.severity, "message": one.message}
            for one in review.problems
        ],
        "notes": [*review.notes],
        "claims": [*review.claims],
    }


# Differences --------------------------------------------------------------------------------------


def difference_view(name: str, difference: "TreeDifference", env: Mapping[str, str]) -> str:
    """Render what changes: first what deserves a second look, then every file."""
    display = screen(env)
    lines = [display.paint(f"{visible(name)}: {_number(difference)}", "bold")]
    lines += [display.paint(f"  attention: {remark}", "yellow") for remark in difference.remarks]
    for file in difference.files:
        lines += [display.paint(line, _COLOURS.get(line[:1])) for line in file.lines]
    return "".join(f"{line}\n" for line in lines)


def _number(difference: "TreeDifference") -> str:
    return "1 file differs" if len(difference.files) == 1 else f"{len(difference.files)} files differ"


_COLOURS: Mapping[str, Literal["red", "green", "dim"]] = {"-": "red", "+": "green", "@": "dim", "#": "dim"}


def difference_json(name: str, trees: tuple[str | None, str | None], difference: "TreeDifference") -> dict[str, Any]:
    """Return the JSON form of a difference between two trees."""
    return {
        "name": name,
        "from": trees[0],
        "to": trees[1],
        "files": [
            {"path": one.path, "state": one.state, "script": one.script, "diff": "".join(f"{x}\n" for x in one.lines)}
            for one in difference.files
        ],
        "remarks": [*difference.remarks],
    }


# Verification -------------------------------------------------------------------------------------


def verify_json(found: Sequence["SkillFound"]) -> dict[str, Any]:
    """Return the JSON form of the states of skills."""
    return {
        "ok": all(one.ok for one in found),
        "skills": [
            {
                "name": one.name,
                "path": one.path,
                "tree": one.tree,
                "found": one.found,
                "state": one.state,
                "files": [{"path": file.path, "state": file.state} for file in one.files],
                "cause": one.cause or None,
            }
            for one in found
        ],
    }


def verify_view(found: Sequence["SkillFound"], display: PathDisplay, settle: Mapping[str, Sequence[str]]) -> str:
    """Render the skills that are not as locked, with what differs and how to settle it, then the number of others."""
    lines = []
    for one in found:
        if one.state == "ok":
            continue
        lines.append(f"{one.state:<8} {visible(one.name)}  {visible(display.short(one.path))}")
        lines += [f"         {file.state:<8} {visible(file.path)}" for file in one.files[:_FILES_SHOWN]]
        if len(one.files) > _FILES_SHOWN:
            lines.append(f"         and {len(one.files) - _FILES_SHOWN} more")
        if one.state == "changed":
            lines += [f"         locked {one.tree}", f"         found  {one.found or 'no tree'}"]
        lines += [f"         {visible(one.cause)}"] if one.cause else []
        lines += [f"         {step}" for step in settle.get(one.path, ())]
    names, bad = {one.name for one in found}, {one.name for one in found if not one.ok}
    good = f"{len(names) - len(bad)} of {plural(len(names), 'skill')} as locked"
    lines.append(good if found else "No skill is installed here (to add one: skillshelf add SOURCE).")
    return "".join(f"{line}\n" for line in lines)


# Progress -----------------------------------------------------------------------------------------

_QUIET_SECONDS = 1.0


class _SlowLine:
    """One line on a terminal about work that takes longer than a second."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._shown = False
        self._over = False
        self._lock = threading.Lock()

    def show(self) -> None:
        with self._lock:
            if not self._over:
                self._shown = True
                self._draw(self._label)

    def change(self, label: str) -> None:
        with self._lock:
            self._label = visible(label)
            if self._shown and not self._over:
                self._draw(self._label)

    def end(self) -> None:
        with self._lock:
            self._over = True
            if self._shown:
                self._draw("")

    def _draw(self, text: str) -> None:
        if sys.stderr is not None:
            sys.stderr.write(f"\r\x1b[K{shorten(text, _WIDEST)}")
            sys.stderr.flush()


@contextmanager
def slow_work(label: str) -> Iterator[Any]:
    """Show a line on a terminal if this takes longer than a second; yield the function that changes the line."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda text: None
        return
    line = _SlowLine(label)
    timer = threading.Timer(_QUIET_SECONDS, line.show)
    timer.daemon = True
    timer.start()
    try:
        yield line.change
    finally:
        timer.cancel()
        line.end()
