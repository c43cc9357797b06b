"""Break the code on purpose, one small change at a time, and check that a test of the broken statement fails.

`python tools/mutants.py [--list] [--only ID ...] [--changed [REVISION]] [-j N]`. The changes are the rows of
`tools/mutants.toml`. Each names a statement of `tests/requirements.py`, a text of the source that occurs once, the text
that replaces it, and the tests that must fail then. Only tests marked with the statement count, so that a mark stands
where the proof is; what the team server and the pages promise has no statement there, so the rows `team` need no mark.
Prints a line for each row; the exit status is 1 if a change survives or cannot be made.
"""

import argparse
import ast
import compileall
import contextlib
import functools
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["TEAM", "Mutant", "Verdict", "marked_tests", "problem_of", "read_table"]

REPOSITORY = Path(__file__).resolve().parent.parent
TABLE = REPOSITORY / "tools" / "mutants.toml"
SECONDS = 120
"""A test run that takes longer is ended; a change that makes the code run for ever is noticed too."""

TEAM = "team"
"""The id of the rows of the team server and the pages; their tests need no mark."""


class Mutant(NamedTuple):
    """One change: the statement, what it breaks in words, the replacement in a file, the tests that must fail."""

    id: str
    breaks: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    @property
    def row(self) -> str:
        """The statement and the words."""
        return f"{self.id:6} {self.breaks}"

    @property
    def mark(self) -> str:
        """The statement that its tests are marked with; empty if they need no mark."""
        return "" if self.id == TEAM else self.id


class Verdict(NamedTuple):
    """What became of a change: `killed`, `SURVIVED` or `does not apply`, and the failed test or the reason."""

    word: str
    detail: str = ""


def read_table(path: Path = TABLE) -> list[Mutant]:
    """Return the rows of the table in order; raise ValueError for a row with missing or unknown members."""
    rows = []
    for number, row in enumerate(tomllib.loads(path.read_text(encoding="utf-8"))["mutant"], 1):
        tests = row.pop("test")
        try:
            rows.append(Mutant(**row, tests=(tests,) if isinstance(tests, str) else tuple(tests)))
        except TypeError as error:
            raise ValueError(f"row {number} of {path.name}, {row.get('id')}: {error}") from None
    return rows


# What can be said without running anything --------------------------------------------------------


def problem_of(mutant: Mutant, repository: Path = REPOSITORY) -> str | None:
    """Return why a change cannot be made or proves nothing, or None; reads files and runs nothing."""
    path = repository / "src" / "skillshelf" / mutant.file
    if not path.is_file():
        return f"no such file: {mutant.file}"
    count = path.read_text(encoding="utf-8").count(mutant.old)
    if count != 1:
        return f"the old text occurs {count} times in {mutant.file}"
    if mutant.old == mutant.new:
        return "the new text is the old one"
    for test in mutant.tests:
        file, _, function = test.partition("::")
        known = marked_tests(repository / file) if (repository / file).is_file() else {}
        if function not in known:
            return f"no such test: {test}"
        if mutant.mark and mutant.mark not in known[function]:
            return f"not marked with {mutant.id}: {test}"
    return None


@functools.cache
def marked_tests(path: Path) -> dict[str, frozenset[str]]:
    """Return the tests of a file, methods as `Class::method`, with the statements that their marks name."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    everywhere = _ids([node.value for node in tree.body if isinstance(node, ast.Assign) and _is_pytestmark(node)])
    found = {}
    for name, decorators in _tests(tree.body, prefix="", above=[]):
        found[name] = everywhere | _ids(decorators)
    return found


def _is_pytestmark(node: ast.Assign) -> bool:
    return any(isinstance(target, ast.Name) and target.id == "pytestmark" for target in node.targets)


def _tests(body: Sequence[ast.stmt], *, prefix: str, above: list[ast.expr]) -> Iterator[tuple[str, list[ast.expr]]]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            yield prefix + node.name, [*above, *node.decorator_list]
        elif isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            yield from _tests(node.body, prefix=f"{prefix}{node.name}::", above=[*above, *node.decorator_list])


def _ids(expressions: Sequence[ast.expr]) -> frozenset[str]:
    calls = [node for expression in expressions for node in ast.walk(expression) if isinstance(node, ast.Call)]
    marks = [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "req"]
    return frozenset(str(arg.value) for mark in marks for arg in mark.args if isinstance(arg, ast.Constant))


# Running tests in a child of this process ---------------------------------------------------------


class _Results:
    """A plugin of pytest that keeps the tests of one statement (all, if empty) and writes down how they ended."""

    def __init__(self, key: str, at_failure: Callable[[], object] = lambda: None) -> None:
        self._key = key
        self._at_failure = at_failure
        self.ids: dict[str, list[str]] = {}
        self.outcomes: dict[str, str] = {}
        self.failure = ""
        self.broken = ""

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Drop the tests without the mark."""
        for item in items:
            self.ids[item.nodeid] = [key for mark in item.iter_markers("req") for key in mark.args]
        items[:] = [item for item in items if not self._key or self._key in self.ids[item.nodeid]]

    def pytest_collectreport(self, report: Any) -> None:
        """Note that a file of tests could not be imported."""
        if report.failed:
            self.broken = str(report.longrepr).strip().splitlines()[-1]

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note how a test ended."""
        if report.failed:
            self.outcomes[report.nodeid] = "failed"
            crash = getattr(report.longrepr, "reprcrash", None)
            message = str(crash.message if crash else report.longrepr).strip().splitlines()
            self.failure = ": ".join([report.nodeid, *message[:1]])
            self._at_failure()
        elif report.when == "call" or report.skipped:
            self.outcomes.setdefault(report.nodeid, report.outcome)

    def to_dict(self) -> dict[str, Any]:
        """Return what the parent wants to know."""
        return {"ids": self.ids, "outcomes": self.outcomes, "failure": self.failure, "broken": self.broken}


class _Slot(NamedTuple):
    """A folder of its own for one child at a time: a copy of the source, temporary files and the result."""

    folder: Path

    @property
    def source(self) -> Path:
        """The copy of `src`."""
        return self.folder / "src"

    @property
    def result(self) -> Path:
        """The file that a child writes."""
        return self.folder / "result.json"


class _Job(NamedTuple):
    """Tests to run, only those of a statement if there is one, with the source changed by a mutant if there is one."""

    tests: tuple[str, ...]
    mutant: Mutant | None = None


def _run(slot: _Slot, job: _Job) -> int:
    """Start a child that runs the tests of a job on the copy of a slot; return its process id."""
    slot.result.unlink(missing_ok=True)
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        os.setsid()
        _in_child(slot, job)
        status = 0
    finally:
        os._exit(status)


def _in_child(slot: _Slot, job: _Job) -> None:
    import pytest

    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    os.chdir(REPOSITORY)
    sys.path.insert(0, str(slot.source))
    os.environ["PYTHONPATH"] = str(slot.source)
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(slot.folder / "hypothesis")
    # The options of whoever started this are for other runs; some are of plugins that are off here.
    os.environ.pop("PYTEST_ADDOPTS", None)
    found = importlib.util.find_spec("skillshelf")
    assert found is not None
    assert Path(found.origin or "").is_relative_to(slot.source), found.origin
    if job.mutant:
        sys.dont_write_bytecode = True
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"

    def write() -> None:
        slot.result.write_text(json.dumps(results.to_dict()))

    def write_and_leave() -> None:
        # One failure is enough, and what broke may keep the rest of the test from ever ending.
        write()
        os._exit(0)

    results = _Results(job.mutant.mark, write_and_leave) if job.mutant else _Results("")
    options = ["-q", "-o", "addopts=", "-p", "no:langsmith_plugin", "-p", "no:xdist", "-p", "no:cacheprovider"]
    pytest.main([*options, "--basetemp", str(slot.folder / "tmp"), *job.tests], plugins=[results])
    write()


def _run_all(slots: Sequence[_Slot], jobs: Sequence[_Job], done: Callable[[_Job, dict[str, Any] | None], None]) -> None:
    """Run the jobs, one child for each slot at a time; `done` gets the result of each, None if it took too long."""
    free, waiting = list(slots), list(reversed(jobs))
    running: dict[int, tuple[_Slot, _Job, float, contextlib.ExitStack]] = {}
    try:
        while waiting or running:
            while waiting and free:
                slot, job, change = free.pop(), waiting.pop(), contextlib.ExitStack()
                if job.mutant:
                    change.enter_context(_changed(slot, job.mutant))
                running[_run(slot, job)] = (slot, job, time.monotonic() + SECONDS, change)
            for child, (slot, job, deadline, change) in list(running.items()):
                if os.waitpid(child, os.WNOHANG)[0] == child or time.monotonic() > deadline:
                    del running[child]
                    _end(child)
                    change.close()
                    free.append(slot)
                    done(job, json.loads(slot.result.read_text()) if slot.result.exists() else None)
            time.sleep(0.02)
    finally:
        for child in running:
            _end(child)


def _end(child: int) -> None:
    """End a child that this tool started, with everything that its tests started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(child, 0)


@contextlib.contextmanager
def _changed(slot: _Slot, mutant: Mutant) -> Iterator[None]:
    """Hold the change in the copy of a slot; the compiled form of the file is set aside meanwhile."""
    path = slot.source / "skillshelf" / mutant.file
    compiled = [(file, slot.folder / file.name) for file in path.parent.glob(f"__pycache__/{path.stem}.*.pyc")]
    for file, aside in compiled:
        file.rename(aside)
    path.write_text(path.read_text(encoding="utf-8").replace(mutant.old, mutant.new), encoding="utf-8")
    try:
        yield
    finally:
        shutil.copy2(REPOSITORY / "src" / "skillshelf" / mutant.file, path)
        for file, aside in compiled:
            aside.rename(file)


@contextlib.contextmanager
def _copies(count: int) -> Iterator[list[_Slot]]:
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        slots = [_Slot(Path(os.path.realpath(folder)) / str(number)) for number in range(count)]
        for slot in slots:
            shutil.copytree(REPOSITORY / "src", slot.source)
            compileall.compile_dir(slot.source, quiet=2)
        yield slots


# Verdicts -----------------------------------------------------------------------------------------


def judge(mutants: Sequence[Mutant], workers: int, say: Callable[[Mutant, Verdict], None]) -> bool:
    """Try each change and say its verdict; return True if all were killed."""
    verdicts: list[Verdict] = []

    def tell(mutant: Mutant, verdict: Verdict) -> None:
        verdicts.append(verdict)
        say(mutant, verdict)

    sound = []
    for mutant in mutants:
        if problem := problem_of(mutant):
            tell(mutant, Verdict("does not apply", problem))
        else:
            sound.append(mutant)
    with _copies(workers) as slots:
        ready = []
        passed = _passed_unchanged(slots, sound)
        for mutant in sound:
            if problem := _unproven(mutant, passed):
                tell(mutant, Verdict("does not apply", problem))
            else:
                ready.append(_Job(mutant.tests, mutant))

        def done(job: _Job, result: dict[str, Any] | None) -> None:
            assert job.mutant is not None
            tell(job.mutant, _verdict(result))

        _run_all(slots, ready, done)
    return all(verdict.word == "killed" for verdict in verdicts)


def _passed_unchanged(slots: Sequence[_Slot], mutants: Sequence[Mutant]) -> dict[str, tuple[str, list[str]]]:
    """Return the outcome and the marked statements of each named test on the unchanged source."""
    found: dict[str, tuple[str, list[str]]] = {}
    by_file: dict[str, dict[str, None]] = {}
    for test in (test for mutant in mutants for test in mutant.tests):
        by_file.setdefault(test.partition("::")[0], {})[test] = None

    def done(job: _Job, result: dict[str, Any] | None) -> None:
        for node, outcome in (result or {"outcomes": {}})["outcomes"].items():
            assert result is not None
            found[node] = (outcome, result["ids"][node])

    _run_all(slots, [_Job(tuple(tests)) for tests in by_file.values()], done)
    return found


def _unproven(mutant: Mutant, outcomes: dict[str, tuple[str, list[str]]]) -> str | None:
    """Return why the tests of a change say nothing about it: they fail, or are skipped, without the change too."""
    for test in mutant.tests:
        cases = [
            outcome
            for node, (outcome, ids) in outcomes.items()
            if (node == test or node.startswith(f"{test}[")) and (not mutant.mark or mutant.mark in ids)
        ]
        if "failed" in cases:
            return f"fails without the change too: {test}"
        if "passed" not in cases:
            return f"{'was skipped here' if cases else 'did not run'}: {test}"
    return None


def _verdict(result: dict[str, Any] | None) -> Verdict:
    if result is None:
        return Verdict("does not apply", f"the tests gave no result within {SECONDS} seconds")
    if result["broken"]:
        return Verdict("does not apply", f"the changed source cannot be imported: {result['broken']}")
    if result["failure"]:
        return Verdict("killed", result["failure"])
    return Verdict("SURVIVED")


def _changed_files(revision: str) -> set[str]:
    """Return the files of the repository that differ from a revision, new ones included."""
    commands = (["diff", "--name-only", revision], ["ls-files", "--others", "--exclude-standard"])
    outputs = [
        subprocess.run(["git", *command], cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
        for command in commands
    ]
    return {line for output in outputs for line in output.splitlines()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge the rows that were asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--list", action="store_true", help="print the rows and run nothing")
    parser.add_argument("--only", nargs="+", metavar="ID", help="only the rows of these statements")
    parser.add_argument(
        "--changed",
        nargs="?",
        const="HEAD",
        metavar="REVISION",
        help="only rows whose source or test differs from a revision, HEAD if none is named",
    )
    parser.add_argument("-j", type=int, default=os.cpu_count() or 1, metavar="N", help="how many run at a time")
    parser.add_argument("-v", "--verbose", action="store_true", help="name the test that failed")
    parser.add_argument("--table", type=Path, default=TABLE, help="another table of changes")
    given = parser.parse_args(arguments)
    rows = read_table(given.table)
    if given.only:
        rows = [row for row in rows if row.id in given.only]
    if given.changed:
        changed = _changed_files(given.changed)
        rows = [row for row in rows if {f"src/skillshelf/{row.file}", *(t.split("::")[0] for t in row.tests)} & changed]
    if given.list:
        print("".join(f"{row.row}\n       {row.file}\n       {' '.join(row.tests)}\n" for row in rows), end="")
        return 0

    counts: dict[str, int] = {}

    def say(mutant: Mutant, verdict: Verdict) -> None:
        counts[verdict.word] = counts.get(verdict.word, 0) + 1
        detail = verdict.detail if given.verbose or verdict.word != "killed" else ""
        print(f"{verdict.word:14} {mutant.row}" + (f": {detail}" if detail else ""), flush=True)

    good = judge(rows, max(1, given.j), say)
    print(f"{len(rows)} changes: " + (", ".join(f"{count} {word}" for word, count in counts.items()) or "none"))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
