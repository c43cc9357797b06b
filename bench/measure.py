"""A command to what it cost: one fresh process, its wall and CPU time, its peak memory, and what it says it listed."""

import json
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Failed", "Run", "count_allocations", "count_calls", "run", "run_for_peak"]


class Run(NamedTuple):
    """One run, times in milliseconds. `wall` and `cpu` are of the listing alone, where a driver tells them."""

    listed: int | None
    wall: float | None
    cpu: float | None
    process_wall: float
    process_cpu: float
    is_partial: bool = False
    """True if the command said that it did not look at everything."""


class Failed(Exception):
    """Why a run gave no figures."""


ANSWERED = frozenset({0})
"""The exit codes of a command that answered, unless it says otherwise."""


def run(
    command: list[str],
    home: Path,
    *,
    cap: float,
    codes: frozenset[int] = ANSWERED,
    env: dict[str, str] | None = None,
) -> Run:
    """Run a command in an empty home and stop it after `cap` seconds."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        start = time.perf_counter()
        child = subprocess.Popen(
            command, cwd=home, env=_environment(home) | (env or {}), stdout=out, stderr=err, start_new_session=True
        )
        stop = threading.Timer(cap, os.killpg, (child.pid, signal.SIGKILL))
        stop.start()
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - start
        stop.cancel()
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        errors = err.read()
        if child.returncode not in codes:
            raise Failed(_reason(child.returncode, errors, cap, wall))
        said = _said(out.read())
    cpu = usage.ru_utime + usage.ru_stime
    is_partial = b"not everything was scanned" in errors
    return Run(said.get("listed"), said.get("wall_ms"), said.get("cpu_ms"), wall * 1e3, cpu * 1e3, is_partial)


def run_for_peak(
    command: list[str], home: Path, program: Path, *, cap: float, codes: frozenset[int] = ANSWERED
) -> tuple[Run, float]:
    """The same by way of `peak.c`, with the peak memory in MiB."""
    with tempfile.NamedTemporaryFile("r") as file:
        once = run([str(program), file.name, *command], home, cap=cap, codes=codes)
        return once, int(file.read()) / 1024


def _environment(home: Path) -> dict[str, str]:
    # Nothing is inherited: with PYTHONDONTWRITEBYTECODE each start would compile what it imports.
    return {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"}


def _reason(code: int, errors: bytes, cap: float, wall: float) -> str:
    if wall >= cap:
        return f"stopped after {cap:.0f} s"
    lines = errors.decode("utf-8", "replace").strip().splitlines() or [f"ended with {code}"]
    return lines[-1][:160]


def _said(output: bytes) -> dict[str, Any]:
    """Return the number in the last line of a driver, or the number of skills in one of our listings."""
    last = output.rstrip().rpartition(b"\n")[2]
    if last.startswith(b'{"listed"'):
        return dict(json.loads(last))
    if output.startswith(b"{") and b'"skills"' in output:
        return {"listed": len(json.loads(output)["skills"])}
    counted = re.search(rb"^([\d,]+) skills? \(", output, re.MULTILINE)
    return {"listed": int(counted[1].replace(b",", b""))} if counted else {}


# Counts: they depend on neither the clock nor on who else uses the machine ---------------------------


def count_calls(command: list[str], home: Path, *, cap: float) -> int:
    """The system calls of a command and of the processes it starts."""
    with tempfile.NamedTemporaryFile("r") as summary:
        run(["strace", "-c", "-f", "-o", summary.name, *command], home, cap=cap)
        total = summary.read().strip().splitlines()[-1].split()
    return int(total[3])


def count_allocations(command: list[str], home: Path, library: Path, *, cap: float) -> int:
    """The calls of malloc, calloc and realloc with Python's own pools switched off, so that each object counts."""
    with tempfile.NamedTemporaryFile("r") as file:
        extra = {"LD_PRELOAD": str(library), "PYTHONMALLOC": "malloc", "COUNT_ALLOCATIONS": file.name}
        run(command, home, cap=cap, env=extra)
        return sum(int(line) for line in file)
