"""Run the command `usage`: show or clear what searches learned from use."""

from datetime import UTC, datetime

from skillshelf.cli.commands import Values, environment_for
from skillshelf.core.console import PathDisplay, Screen, as_json, screen, write
from skillshelf.core.limits import USAGE_ROWS
from skillshelf.core.text import plural, visible
from skillshelf.errors import DONE, ConfigurationError
from skillshelf.search.usage_history import UsageHistory, UsageSummary, usage_path

__all__ = ["usage"]


def usage(values: Values) -> int:
    """Print what is kept about the use of skills, or remove it."""
    from skillshelf.config.settings import load_settings

    environment = environment_for(values)
    path = usage_path(environment)
    if path is None:
        raise ConfigurationError("there is no home folder for a history of use; name one with --home")
    history, learn = UsageHistory(path), load_settings(environment, trust="user").learn
    cleared = history.clear() if values["clear"] else False
    summary = history.summary()
    if values["json"]:
        write(as_json(_to_dict(path, summary, learn=learn, cleared=cleared)))
        return DONE
    display = PathDisplay(environment.cwd, environment.home)
    if values["clear"]:
        write(f"{display.short(path)}: {'removed' if cleared else 'there was none'}\n")
        return DONE
    write(_view(summary, display, path, screen(environment.env), learn))
    return DONE


def _view(summary: UsageSummary, display: PathDisplay, path: str, view: Screen, learn: bool | None) -> str:
    """Return what is kept: the state of learning, the file, and the skills, the most used first."""
    hint = "searches do not learn from use; `search.learn = true` in your configuration file turns it on"
    state = "searches learn from use" if learn else hint
    rows = f"{display.short(path)}: {summary.rows:,} of at most {USAGE_ROWS:,} rows"
    since = f", since {_time(summary.since)[:10]}" if summary.since is not None else ""
    removed = f"; {plural(summary.removed, 'older load')} removed" if summary.removed else ""
    lines = [state, f"{visible(rows)}{since}{removed}"]
    cells = [(str(one.loads), _time(one.last)[:10], display.short(one.path)) for one in summary.skills]
    if cells:
        lines += ["", *view.table([("loads", "last", "skill"), *cells], ("bold", "dim", None))]
    return "\n".join(lines) + "\n"


def _time(seconds: int) -> str:
    """Return a time as text; a clock may have been anything."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return "unknown"


def _to_dict(path: str, summary: UsageSummary, *, learn: bool | None, cleared: bool) -> dict[str, object]:
    return {
        "file": path,
        "learn": learn,
        "cleared": cleared,
        "rows": summary.rows,
        "most_rows": USAGE_ROWS,
        "removed": summary.removed,
        "since": _time(summary.since) if summary.since is not None else None,
        "skills": [{"path": one.path, "loads": one.loads, "last": _time(one.last)} for one in summary.skills],
    }
