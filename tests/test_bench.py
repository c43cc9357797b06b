"""The benchmark in `bench/` runs, finds every skill, and counts what a scan costs. No time is asserted."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent


def _table(page: str, title: str) -> dict[str, list[str]]:
    """The rows of the table below a title, by the cell that names them."""
    text = re.split(r"^## ", page, flags=re.MULTILINE)
    section = next(part for part in text if part.startswith(title))
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if "|" in line]
    return {row[1] if row[0].replace(",", "").isdecimal() else row[0]: row for row in rows[2:]}


@pytest.mark.slow
@pytest.mark.req("K-61", "K-62")
@pytest.mark.skipif(not (shutil.which("cc") and shutil.which("strace")), reason="needs a C compiler and strace")
def test_a_scan_makes_few_system_calls_and_allocations_for_each_skill_and_parsing_is_timed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    options = [
        "--sizes",
        "120",
        "--rounds",
        "1",
        "--peers",
        "none",
        "--environments",
        str(tmp_path),
        "--write",
        str(page),
    ]
    done = subprocess.run(
        [sys.executable, str(REPOSITORY / "bench" / "scan.py"), *options],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    text = page.read_text(encoding="utf-8")

    listing, counts = _table(text, "Listing"), _table(text, "For each skill")
    listed = {name: row[2] for name, row in listing.items() if row[2] != "–"}
    assert "skillshelf, cold" in listed
    assert set(listed.values()) == {"120"}
    calls, allocations = (float(cell) for cell in counts["skillshelf, cold"][1:])
    assert calls < 8
    assert allocations < 400
    assert {row[1].replace(",", "").isdecimal() for row in _table(text, "Parsing frontmatter").values()} == {True}


def test_the_page_of_figures_says_when_where_and_how_to_repeat_them() -> None:
    text = (REPOSITORY / "docs" / "benchmarks.md").read_text(encoding="utf-8")

    assert re.search(r"Written by `bench/scan.py` on \d{4}-\d\d-\d\d\.\n\d+ cores", text)
    assert "python bench/scan.py --write docs/benchmarks.md" in text
    assert {"C floor", "skillshelf, cold", "skillshelf, warm cache", "`skillshelf list`, cold"} <= set(
        _table(text, "Listing")
    )
