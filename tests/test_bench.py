"""The benchmark in `bench/` runs, finds every skill, and counts what a scan costs. No time is asserted."""

import importlib
import json
import math
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from skillshelf import open_shelf

REPOSITORY = Path(__file__).parent.parent
BENCH = REPOSITORY / "bench"
SECTIONS = {
    "listing": "Listing",
    "commands": "Commands, whole process",
    "calls": "Servers, sessions and calls in process",
}


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Import a module of the benchmark by its name, and forget all of them afterwards."""
    names = [path.stem for path in BENCH.glob("*.py")]
    before = {name: sys.modules.pop(name) for name in names if name in sys.modules}
    monkeypatch.syspath_prepend(str(BENCH))
    yield importlib.import_module
    for name in names:
        sys.modules.pop(name, None)
    sys.modules.update(before)


def _table(page: str, title: str) -> dict[str, list[str]]:
    """The rows of the table below a title, by the cell that names them."""
    text = re.split(r"^## ", page, flags=re.MULTILINE)
    section = next(part for part in text if part.startswith(title))
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if "|" in line]
    return {row[1] if re.match(r"[\d,]+ \w+$", row[0]) else row[0]: row for row in rows[2:]}


def _real_skills(folder: Path) -> Path:
    """A collection of skills such as people publish them: with quotes, a long name, a foreign one, and a broken one."""
    texts = {
        "plain/notes": "---\nname: notes\ndescription: Writes notes. Use for notes.\n---\n# Notes\n",
        "quoted/forms": '---\ndescription: "Fills forms. Use for forms."\nname: "forms"  \n---\n# Forms\n',
        f"long/{'a' * 64}": f"---\nname: {'a' * 64}\ndescription: Has a long name. Use it never.\n---\n",
        "broken/none": "# No frontmatter\n\nname: none\n",
    }
    for path, text in texts.items():
        (folder / path).mkdir(parents=True)
        (folder / path / "SKILL.md").write_text(text, encoding="utf-8")
    return folder


# The tables of rows and goals ---------------------------------------------------------------------


def test_each_goal_is_about_a_row_and_each_driver_has_one(bench: Any, tmp_path: Path) -> None:
    rows, report = bench("rows"), bench("report")
    tree = rows.Tree("synthetic", 2, tmp_path, tmp_path)
    names = [row.name for row in rows.OURS]
    words = [row.command(tree) for row in rows.OURS if row.section == "calls"]

    assert len(set(names)) == len(names)
    assert {goal.row for goal in report.GOALS} <= set(names)
    assert {row.section for row in rows.OURS} == set(report.COLUMNS) == set(SECTIONS)
    scans = {"scan-cold", "scan-warm", "scan-read"}
    calls, asks = bench("calls").CALLS, bench("servers").ASKS
    assert {line[2] for line in words} == (calls.keys() - scans) | asks.keys()


def test_each_goal_is_given_once_and_for_a_size_that_a_whole_run_has(bench: Any) -> None:
    rows, goals, sizes = bench("rows"), bench("report").GOALS, bench("scan").SIZES
    skipped = {row.name: row.skip for row in rows.OURS}

    assert len({(goal.what, goal.size) for goal in goals}) == len(goals)
    assert {goal.size for goal in goals} <= {0, *sizes}
    assert not [goal for goal in goals if goal.size in skipped[goal.row]]


def test_a_goal_is_reached_missed_or_not_measured(bench: Any) -> None:
    goal = bench("report").GOALS[0]
    faster = goal._replace(at_least=True, good=6, excellent=None)

    assert [goal.verdict(value) for value in (None, 12.1, 12, 10)] == ["not measured", "missed", "reached", "excellent"]
    assert [faster.verdict(value) for value in (5.9, 6)] == ["missed", "reached"]


def test_a_note_has_no_path_of_the_machine(bench: Any) -> None:
    table = bench("report")._table([["what", "note"], ["MCP: `resources/read`", "failed: /home/ada/x/skills: no 1/2"]])

    assert table.splitlines()[-1] == "| MCP: `resources/read` | failed: …/skills: no 1/2 |"


# Trees --------------------------------------------------------------------------------------------


def test_real_skills_are_copied_under_unique_names_and_stay_as_valid_as_they_were(bench: Any, tmp_path: Path) -> None:
    trees = bench("trees")
    files = trees.real_files(_real_skills(tmp_path / "collection"))

    trees.write_real_tree(tmp_path / "home" / ".agents" / "skills", 9, files)

    catalog = open_shelf(tmp_path / "home", home=tmp_path / "home", env={}).catalog
    names = [skill.name for skill in catalog.skills]
    broken = sorted((tmp_path / "home" / ".agents" / "skills").glob("none-*/SKILL.md"))
    # The files are sorted by path: broken, long, plain, quoted, and from the start again.
    assert sorted(names) == sorted(
        [f"{'a' * 58}-00001", f"{'a' * 58}-00005", "notes-00002", "notes-00006", "forms-00003", "forms-00007"]
    )
    assert not catalog.warnings
    assert len(catalog.errors) == len(broken) == 3
    assert {path.read_text(encoding="utf-8") for path in broken} == {"# No frontmatter\n\nname: none\n"}


def test_an_index_is_built_from_nothing_though_the_home_folder_has_one(bench: Any, tmp_path: Path) -> None:
    calls, trees = bench("calls"), bench("trees")
    homes = tmp_path / "small", tmp_path / "home"
    for home, count in zip(homes, (1, 120), strict=True):
        trees.write_tree(home / ".agents" / "skills", count)
        (home / "work").mkdir()
    calls.shelf_of(homes[1]).search("first")

    with calls.TEMPORARY:
        folder = Path(calls.temporary())
        calls.temporary = lambda: str(folder)
        calls.index(*homes)()
        built = [path for path in folder.rglob("*") if path.is_file()]

    assert built


# Runs ---------------------------------------------------------------------------------------------


def _run(page: Path, *options: str) -> str:
    words = ["--rounds", "1", "--peers", "none", "--environments", str(page.parent), "--write", str(page), *options]
    done = subprocess.run([sys.executable, str(BENCH / "scan.py"), *words], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return page.read_text(encoding="utf-8")


@pytest.mark.heavy
@pytest.mark.slow
@pytest.mark.req("K-61", "K-62")
@pytest.mark.skipif(not (shutil.which("cc") and shutil.which("strace")), reason="needs a C compiler and strace")
def test_a_scan_makes_few_system_calls_and_allocations_for_each_skill_and_parsing_is_timed(
    bench: Any, tmp_path: Path
) -> None:
    text = _run(tmp_path / "page.md", "--sizes", "120")

    listing, counts = _table(text, "Listing"), _table(text, "For each skill")
    listed = {name: row[2] for name, row in listing.items() if row[2] != "–"}
    assert "skillshelf, cold" in listed
    assert set(listed.values()) == {"120"}
    calls, allocations = (float(cell) for cell in counts["skillshelf, cold"][1:])
    assert calls < 8
    assert allocations < 400
    assert {row[1].replace(",", "").isdecimal() for row in _table(text, "Parsing frontmatter").values()} == {True}
    assert "No real skills were given to this run" in text
    for row in bench("rows").OURS:
        line = _table(text, SECTIONS[row.section])[row.name]
        # Without an extra or a program the row says so; nothing else may keep it from being measured.
        assert line[-2] == "1" or re.search("No module named|not installed|bubblewrap|pip install", line[-1]), line


@pytest.mark.heavy
@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")
def test_real_skills_are_measured_beside_synthetic_ones_and_decide_the_goals(tmp_path: Path) -> None:
    real = _real_skills(tmp_path / "collection")

    text = _run(tmp_path / "page.md", "--sizes", "8", "--real", str(real))

    kinds = re.findall(r"^\| 8 (\w+) +\| `skillshelf list`, cold +\| (\d) ", text, re.MULTILINE)
    assert kinds == [("real", "6"), ("synthetic", "8")]
    assert "| real, by CPU | real, by wall | synthetic, by CPU | synthetic, by wall |" in text
    assert "The last column is about real skills" in text
    assert str(tmp_path) not in text


def test_the_page_of_figures_says_when_where_and_how_to_repeat_them() -> None:
    text = (REPOSITORY / "docs" / "benchmarks.md").read_text(encoding="utf-8")

    assert re.search(r"Written by `bench/scan.py` on \d{4}-\d\d-\d\d\.\n\d+ cores", text)
    assert "python bench/scan.py --write docs/benchmarks.md" in text
    assert "## Goals" in text
    assert "| C floor " in text
    assert "| skillshelf, cold " in text


# Search -------------------------------------------------------------------------------------------

_TOPICS = {
    "git-history": "Reads the history of a repository. Use to analyze who changed a line and when.",
    "invoice-reader": "Extracts the totals of invoices from PDF files. Use for bills and receipts.",
    "chart-maker": "Draws bar charts of tables in many colors. Use to visualize numbers.",
    "mail-sorter": "Sorts email into folders. Use to organize an inbox.",
    "garden-planner": "Plans the beds of a garden by season. Use for vegetables and flowers.",
    "unit-converter": "Converts lengths, weights and temperatures. Use to optimize recipes.",
    "meeting-notes": "Summarizes a meeting from its transcript. Use for minutes and decisions.",
    "log-reader": "Finds errors in the logs of a server. Use to customize alerts.",
    "knot-tyer": "Ties knots in ropes.",
}


def _search_corpus(folder: Path) -> tuple[Path, Path]:
    """A collection for searching with queries for its skills, in English and Chinese."""
    root, lines = folder / "corpus", []
    for name, description in _TOPICS.items():
        path = root / "skills" / name / "SKILL.md"
        path.parent.mkdir(parents=True)
        text = (
            f"---\nname: {name}\ndescription: {description}\n---\n# {name}\n\n{description}\nAsk for what is missing.\n"
        )
        path.write_text(text, encoding="utf-8")
        if name == "knot-tyer":
            continue  # Nobody asks for it.
        gold = [str(path.relative_to(root))]
        lines += [{"query": description.partition(". ")[2], "lang": "en", "gold": gold}]
        lines += [{"query": f"help me with {name}", "lang": "en", "gold": gold}]
    lines.append({"query": "用 PDF 发票", "lang": "zh", "gold": ["skills/invoice-reader/SKILL.md"]})
    queries = folder / "queries.jsonl"
    queries.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return root, queries


def _search_tables(folder: Path, *options: str) -> dict[str, list[list[str]]]:
    """The rows of each table that a run over a small collection prints."""
    root, queries = _search_corpus(folder)
    words = [str(BENCH / "search.py"), "--corpus", str(root), "--queries", str(queries), *options]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    parts = re.split(r"^([a-z-]+)\n\n", done.stdout.lstrip(), flags=re.MULTILINE)[1:]
    return {
        name: [[cell.strip() for cell in line.strip("|").split("|")] for line in text.strip().splitlines()]
        for name, text in zip(parts[::2], parts[1::2], strict=True)
    }


@pytest.mark.heavy
@pytest.mark.slow
def test_search_is_measured_with_harder_queries_hostile_skills_and_another_version_beside_it(tmp_path: Path) -> None:
    off_topic = tmp_path / "elsewhere.txt"
    off_topic.write_text("is a tomato a fruit\nwhere is my hat\n", encoding="utf-8")

    tables = _search_tables(
        *(tmp_path, "--tables", "quality,variants,confidence,hostile,large,short", "--before", sys.executable),
        *("--off-topic", str(off_topic), "--synthetic", "5"),
    )

    ours = {row[0]: row for row in tables["quality"]}["**skillshelf**"]
    assert ours[1].startswith("100.0 / 100.0")
    variants = {(row[0], row[1]): row for row in tables["variants"]}
    assert variants["clean, all", "English"][2] == "16"
    assert {"chat", "trace", "harsh", "British spelling", "chat, kept apart"} <= {name for name, _ in variants}
    # The version beside it is the same one, so nothing differs.
    assert {row[-1] for row in tables["variants"][2:]} == {"0.0 (0.0 to 0.0)"}
    assert {"elsewhere", "conversation", "right skill and its copies removed"} <= {
        row[0] for row in tables["confidence"]
    }
    assert {row[0] for row in tables["hostile"]} >= {"eight copies of each right skill", "four stuffed skills"}
    assert {row[0] for row in tables["large"]} >= {"the corpus (9)", "and 5 synthetic (14)"}
    assert all(row[1] == row[2] for row in tables["short"][2:])


@pytest.mark.slow
def test_a_history_without_uses_changes_no_result(tmp_path: Path) -> None:
    pytest.importorskip("skillshelf.search.usage_prior")

    rows = _search_tables(tmp_path, "--tables", "history")["history"]

    assert rows[-1][2] == "17 of 17 reports are the same to the last digit"


def test_the_same_queries_give_the_same_variants_and_each_has_its_request(bench: Any, tmp_path: Path) -> None:
    variants = bench("search_variants")
    root, path = _search_corpus(tmp_path)
    queries, skills = variants.read_queries(path), variants.skill_texts(root)

    made = {name: list(variant(queries, skills)) for name, variant in variants.VARIANTS.items()}

    assert made == {name: list(variant(queries, skills)) for name, variant in variants.VARIANTS.items()}
    requests = {query.text for query in queries}
    for name in ("chat", "trace", "chat and trace", "harsh", "decoy", "chat, kept apart"):
        heard = [query for query in made[name] if query.lang == "en" and "dictated" not in query.kind]
        assert heard
        assert all(any(request in query.text for request in requests) for query in heard)
    assert {query.text for query in made["British spelling"]} == {
        "Use to analyse who changed a line and when.",
        "Use to visualise numbers.",
        "Use to organise an inbox.",
        "Use to optimise recipes.",
        "Use to customise alerts.",
    }


def test_an_area_is_the_share_of_pairs_in_order_and_ties_count_half(bench: Any) -> None:
    measures = bench("search_measures")

    assert measures.area([0.9, 0.5], [0.1, 0.5]) == 0.875
    assert math.isnan(measures.area([], [0.1]))


def test_a_copy_stands_for_the_right_skill_once(bench: Any) -> None:
    measures, answers = bench("search_measures"), bench("search_answers")
    answer = answers.Answer(["a", "b", "c"], [["x"], ["x"], []], 0.0)

    assert measures.rights(answer, frozenset({"x", "c"})) == [True, False, True]
