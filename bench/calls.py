"""Time one kind of call in this process: `python bench/calls.py CALL SMALL HOME`.

SMALL and HOME are home folders with skills in `.agents/skills`; SMALL has a single skill. What is done before the clock
starts (imports, opening a shelf, a first answer) is in the function of the call; the clock runs over what it returns.
It prints a line like the drivers in `peers/`; the CPU time includes processes that the call started and waited for.
Each call imports what only it needs, because the time of the whole process is a figure too.
"""

import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal, NamedTuple

import skillshelf

__all__ = ["CALLS"]

Work = Callable[[], Any]
QUERIES = (
    *("draft release notes", "review a pull request", "convert a PDF form", "deploy containers to kubernetes"),
    *("write unit tests", "summarise a spreadsheet", "audit security of dependencies", "translate documents"),
    *("profile slow database queries", "design a landing page"),
)
EVENT = {"name": "release-notes", "path": "/home/ada/.agents/skills/release-notes/SKILL.md", "mode": "auto"}
EVENT_LINE = b"x" * 380 + b"\n"
WRITERS = 8
TEMPORARY = ExitStack()


class Call(NamedTuple):
    """A call: a function that prepares it, how often it is timed, and how many single acts one timing covers."""

    prepare: Callable[[Path, Path], Work | Sequence[Work]]
    times: int = 5
    acts: int = 1


def shelf_of(home: Path, *, use_cache: bool = True) -> skillshelf.Shelf:
    """Return a new shelf on a home folder."""
    return skillshelf.open_shelf(home / "work", home=home, env={}, use_cache=use_cache)


def scan(small: Path, home: Path, *, use_cache: bool, reads_all: bool = False) -> Work:
    """List all skills with a new shelf, and make an object of each if they are all read."""

    def work(home: Path) -> Sequence[Any]:
        skills = shelf_of(home, use_cache=use_cache).catalog.skills
        return [(skill.name, skill.description) for skill in skills] if reads_all else skills

    work(small)
    return lambda: work(home)


def refresh(_: Path, home: Path) -> Work:
    """Verify a catalog that did not change."""
    shelf = shelf_of(home)
    shelf.refresh()
    return shelf.refresh


def prompt(_: Path, home: Path) -> Work:
    """Write the text of the catalog for a model."""
    shelf = shelf_of(home)
    shelf.prompt()
    return shelf.prompt


def index(small: Path, home: Path) -> Work:
    """Build the index of a search from nothing, with the skills already listed."""
    shelf_of(small).search("first")
    # Not `home=`: with it the cache is always below that folder.
    env = {"HOME": str(home), "XDG_CACHE_HOME": temporary()}
    shelf = skillshelf.open_shelf(home / "work", env=env)
    shelf.catalog.skills  # noqa: B018 - it is read on access.
    return lambda: shelf.search("first").results


def queries(_: Path, home: Path) -> list[Work]:
    """Answer queries with an open index."""
    shelf = shelf_of(home)
    shelf.search("first")
    return [lambda query=query: shelf.search(query).results for query in QUERIES]


def agent_turn(_: Path, home: Path) -> Work:
    """Take a turn of an `AgentSession` whose model is a function and answers at once."""
    import asyncio

    from pydantic_ai import ModelResponse, TextPart
    from pydantic_ai.models.function import FunctionModel

    model = FunctionModel(lambda messages, info: ModelResponse(parts=[TextPart("done")]))
    runner = TEMPORARY.enter_context(asyncio.Runner())
    configuration = skillshelf.AgentConfiguration("Be brief.", model)
    session = runner.run(skillshelf.AgentSession.create(configuration, shelf=shelf_of(home)))
    if not runner.run(session.list_skills()):
        sys.exit("the session has no skills")
    runner.run(session.prompt("Hello."))
    return lambda: runner.run(session.prompt("Hello."))


def journal(_small: Path, _home: Path, *, fsync: Literal["never", "always"], acts: int) -> Work:
    """Append events to a journal."""
    path = f"{temporary()}/journal"
    return lambda: append(path, acts, fsync)


def append(path: str, acts: int, fsync: Literal["never", "always"]) -> None:
    """Append so many events by one writer."""
    from skillshelf.journal.file import Journal

    writer = Journal(path, session="0123456789abcdef", fsync=fsync)
    for _ in range(acts):
        if not writer.append("skill_invoked", EVENT):
            sys.exit(f"the journal was not written: {writer.problem}")
    writer.close()


def journal_together(_small: Path, _home: Path, *, acts: int) -> Work:
    """Append events by several processes at once."""
    from multiprocessing import Process

    path = f"{temporary()}/journal"

    def work() -> None:
        writers = [Process(target=append, args=(path, acts // WRITERS, "never")) for _ in range(WRITERS)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()

    return work


def plain_lines(_small: Path, _home: Path, *, acts: int) -> Work:
    """Append lines of the same length without lock, chain and JSON."""
    path = f"{temporary()}/lines"

    def work() -> None:
        with open(path, "ab", buffering=0) as file:
            for _ in range(acts):
                file.write(EVENT_LINE)

    return work


def skill_run(_small: Path, _home: Path) -> Work:
    """Run a script of a skill with the tool `skill_run`."""
    home = Path(temporary())
    script(home / ".agents" / "skills" / "greet" / "scripts")
    head = "---\nname: greet\ndescription: Greets. Use when a greeting is asked for.\n---\nRun scripts/hi.sh.\n"
    (home / ".agents" / "skills" / "greet" / "SKILL.md").write_text(head, encoding="utf-8")
    (home / "work").mkdir()
    session = skillshelf.open_shelf(home / "work", home=home, env={"PATH": os.environ["PATH"]}).session(
        {"allow": [{"tool": "skill_run"}]}
    )

    def work() -> None:
        result = session.call("skill_run", {"name": "greet", "script": "hi.sh"})
        if not result.ok:
            sys.exit(result.text)

    work()
    return work


def program(_small: Path, _home: Path, *, words: Sequence[str]) -> Work:
    """Run the same script as a program, with these words before it."""
    import shutil
    import subprocess

    if words and not shutil.which(words[0]):
        sys.exit(f"{words[0]} is not installed")
    path = script(Path(temporary()))
    return lambda: subprocess.run([*words, "sh", str(path)], capture_output=True, check=True)


def script(folder: Path) -> Path:
    """Write a script that prints two letters."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "hi.sh"
    path.write_text("#!/bin/sh\necho hi\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def temporary() -> str:
    """Return a folder that lives as long as this process."""
    return TEMPORARY.enter_context(tempfile.TemporaryDirectory())


def using(prepare: Callable[..., Work], **options: Any) -> Callable[[Path, Path], Work]:
    """Return the function with these options."""
    return lambda small, home: prepare(small, home, **options)


BUBBLEWRAP = ("bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-all", "--die-with-parent")

CALLS = {
    "scan-cold": Call(using(scan, use_cache=False), times=1),
    "scan-warm": Call(using(scan, use_cache=True), times=1),
    "scan-read": Call(using(scan, use_cache=True, reads_all=True), times=1),
    "refresh": Call(refresh),
    "prompt": Call(prompt),
    "index": Call(index, times=1),
    "query": Call(queries, times=3),
    "agent-turn": Call(agent_turn),
    "journal-lines": Call(using(plain_lines, acts=5_000), acts=5_000),
    "journal-never": Call(using(journal, fsync="never", acts=1_000), acts=1_000),
    "journal-always": Call(using(journal, fsync="always", acts=100), times=3, acts=100),
    "journal-together": Call(using(journal_together, acts=2_000), times=2, acts=2_000),
    "skill-run": Call(skill_run),
    "bubblewrap": Call(using(program, words=BUBBLEWRAP)),
    "subprocess": Call(using(program, words=())),
}


def cpu() -> float:
    """Return the CPU seconds of this process and of those that it waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def timings(work: Work, times: int) -> Iterator[tuple[float, float, Any]]:
    """Yield wall and CPU seconds and the result of each repetition."""
    for _ in range(times):
        before = time.perf_counter(), cpu()
        result = work()
        yield time.perf_counter() - before[0], cpu() - before[1], result


def main() -> None:
    """Print the least time of an act; of several acts that differ, the median."""
    name, small, home = sys.argv[1:]
    call = CALLS[name]
    with TEMPORARY:
        works = call.prepare(Path(small), Path(home))
        taken = [list(timings(work, call.times)) for work in ([works] if callable(works) else works)]
        result = taken[0][0][2]
        told: dict[str, Any] = {"listed": len(result) if name.startswith("scan") else None}
        for number, clock in enumerate(("wall_ms", "cpu_ms")):
            least = sorted(min(each[number] for each in of_one) for of_one in taken)
            told[clock] = least[len(least) // 2] * 1e3 / call.acts
    print(json.dumps(told))


if __name__ == "__main__":
    main()
