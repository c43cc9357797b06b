"""Measures what an index costs at several sizes, and whether another version costs less."""

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from search_answers import our_settings, our_shelf
from search_measures import percentile
from search_pools import mixed_tree
from search_variants import Query


def cost_table(sizes: Sequence[int], queries: Sequence[Query], real: Path, cap: int) -> list[list[str]]:
    """Measure an index at several sizes, each in its own process, so that memory is measured alone."""
    rows = [
        [
            *("skills", "build, CPU s (wall)", "after one edit, CPU ms (wall)", "rebuild / edit"),
            *("ms a query, p50 / p99", "new process, bare starts", "index MB", "peak memory MiB"),
        ]
    ]
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder) / "skills"
            mixed_tree(real, root, size)
            work = {"root": str(root), "home": folder, "queries": [query.text for query in queries]}
            words = [sys.executable, __file__]
            try:
                done = subprocess.run(words, input=json.dumps(work), stdout=-1, text=True, check=True, timeout=cap)
                cells = json.loads(done.stdout)
            except subprocess.TimeoutExpired:
                cells = [f"over {cap} s", *[""] * (len(rows[0]) - 2)]
            rows.append([f"{size:,}", *cells])
            print(rows[-1], file=sys.stderr, flush=True)
    return rows


def one_size(work: Mapping[str, Any]) -> list[str]:
    """The numbers for the skills below one folder."""
    root, home = Path(work["root"]), Path(work["home"])
    shelf = our_shelf(root, home=home)
    count = len(shelf.catalog.skills)
    before = peak_memory()
    with memory_of_children() as helper:
        build = timed(lambda: shelf.search("a first query"))
    edited = Path(shelf.catalog.skills[count // 2].path)
    text = edited.read_text(encoding="utf-8")
    edits = []
    for turn in range(5):
        edited.write_text(f"{text}\nxylophonequartet{turn}\n", encoding="utf-8")
        time.sleep(0.06)
        shelf.refresh()
        edits.append(timed(lambda: shelf.search("what changed")))
        found = shelf.search(f"xylophonequartet{turn}").results
        assert [result.skill.path for result in found] == [str(edited)], found
    edited.write_text(text, encoding="utf-8")
    times = [1000 * timed(lambda query=query: shelf.search(query))[0] for query in work["queries"]]
    size = sum(path.stat().st_size for path in (home / ".cache").rglob("*") if path.is_file())
    edit = sorted(edits)[2]
    return [
        f"{build[0]:.2f} ({build[1]:.2f})",
        f"{1000 * edit[0]:.0f} ({1000 * edit[1]:.0f})",
        f"{build[0] / edit[0]:.0f}",
        f"{statistics.median(times):.1f} / {percentile(times, 99):.1f}",
        f"{starts(root, home):.1f}",
        f"{size / 1e6:.1f}",
        f"{peak_memory():.0f} ({before:.0f} before) + {max(helper):.0f} while building",
    ]


def starts(root: Path, home: Path) -> float:
    """Measure a search in a new process, in bare Python starts; the minimum CPU time of both counts."""
    lines = [f"{table} = {json.dumps(value)}" for table, value in our_settings(root)["skills"].items()]
    profile = [f"{key} = {json.dumps(value)}" for key, value in our_settings(root)["profiles"]["bench"].items()]
    config = home / "bench.toml"
    config.write_text("\n".join(["[skills]", *lines, "[profiles.bench]", *profile]), encoding="utf-8")
    options = ["--config", str(config), "--profile", "bench", "--home", str(home), "--cwd", str(home), "--json"]
    search = [sys.executable, "-m", "skillshelf", "search", "draft release notes", *options]
    least = {}
    for name, words in (("bare", [sys.executable, "-c", "pass"]), ("search", search)):
        least[name] = min(cpu_of(words) for _ in range(7))
    return least["search"] / least["bare"]


def cpu_of(words: Sequence[str]) -> float:
    """CPU seconds of a process."""
    before = cpu_of_children()
    subprocess.run(words, stdout=subprocess.DEVNULL, check=True)
    return cpu_of_children() - before


def cpu_of_children() -> float:
    """CPU seconds of all processes that this one had started and that ended."""
    taken = resource.getrusage(resource.RUSAGE_CHILDREN)
    return taken.ru_utime + taken.ru_stime


def peak_memory(process: str = "self") -> float:
    """The most memory a process ever held, in MiB; what its parent held before it does not count."""
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


@contextmanager
def memory_of_children() -> Iterator[list[float]]:
    """The peaks of memory that were seen in processes which this one started meanwhile."""
    seen, done = [0.0], threading.Event()

    def look() -> None:
        while not done.wait(0.05):
            for children in Path("/proc/self/task").glob("*/children"):
                # One may end between two looks.
                with suppress(OSError, IndexError, ValueError):
                    seen.extend(peak_memory(child) for child in children.read_text(encoding="utf-8").split())

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield seen
    finally:
        done.set()
        watcher.join()


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """CPU seconds, with those of processes that were started for the work, and wall seconds."""
    cpu, wall = time.process_time() + cpu_of_children(), time.perf_counter()
    work()
    return time.process_time() + cpu_of_children() - cpu, time.perf_counter() - wall


if __name__ == "__main__":
    print(json.dumps(one_size(json.load(sys.stdin))))
