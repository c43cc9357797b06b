"""Recompute the rates of the security rules: false alarms on real skills, and what is found in samples.

    python tools/security_rates.py real FOLDER              findings by rule, and every file with a warning or an error
    python tools/security_rates.py draw FOLDER --seed 20    60 files with findings of any severity, drawn by a seed
    python tools/security_rates.py samples FOLDER...        what is found in folders of malicious or benign samples

FOLDER holds skills at any depth; a folder of samples holds one skill in each folder. Only paths and rules are printed,
never a text of a skill. A folder with an `expected.json` says which rules should find each of its samples.
"""

import argparse
import json
import random
import resource
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from skillshelf.catalog.tree import covered_entries
from skillshelf.config.rules import RULES
from skillshelf.core import files
from skillshelf.lint.security import SecurityFinding, folder_findings

DRAWN = 60


def skills_in(folder: Path) -> Iterator[tuple[str, list[SecurityFinding]]]:
    """Yield the path of each skill below a folder, and the findings in it."""
    for page in sorted(folder.rglob("SKILL.md")):
        with files.Folder(str(page.parent.resolve())) as opened:
            entries = covered_entries(opened)
            # A skill with others below it is judged by its own page, as a collection is.
            if any(name.endswith("/SKILL.md") for name in entries.files):
                entries.files.clear()
                entries.files["SKILL.md"] = files.stamp_of(page.stat())
            yield str(page.parent.relative_to(folder)), folder_findings(opened, entries)


def worst(findings: list[SecurityFinding]) -> str:
    """Return the highest severity among findings, or nothing."""
    return next((level for level in ("reject", "warn", "info") if any(f.severity == level for f in findings)), "")


def real(folder: Path) -> None:
    """Print findings by rule, the share of files at warning and above, and each of them."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    found = dict(skills_in(folder))
    seconds = resource.getrusage(resource.RUSAGE_SELF).ru_utime - before
    rules = Counter(rule for findings in found.values() for rule in {one.rule for one in findings})
    print(f"{len(found)} skills, {seconds:.1f} s of CPU in user code")
    for rule, count in rules.most_common():
        print(f"{count:6} {RULES[rule].severity:7} {rule}")
    grave = {path: findings for path, findings in found.items() if worst(findings) in ("reject", "warn")}
    print(f"\nat warning or above: {len(grave)} of {len(found)}, {100 * len(grave) / len(found):.2f} %")
    for path, findings in grave.items():
        places = sorted({f"{one.rule}:{one.line}" for one in findings if one.severity != "info"})
        print(f"  {worst(findings):7} {path} ({', '.join(places)})")


def draw(folder: Path, seed: int) -> None:
    """Print files with findings of any severity, drawn by a seed."""
    found = {path: findings for path, findings in skills_in(folder) if findings}
    drawn = random.Random(seed).sample(sorted(found), min(DRAWN, len(found)))
    print(f"{len(drawn)} of {len(found)} skills with findings, seed {seed}")
    for path in sorted(drawn):
        places = sorted({f"{one.rule}:{one.line}" for one in found[path]})
        print(f"  {worst(found[path]):7} {path} ({', '.join(places)})")


def samples(folder: Path) -> None:
    """Print which samples are found at warning or above, and by which rules."""
    file = folder / "expected.json"
    expected = json.loads(file.read_text("utf-8")) if file.exists() else {}
    hits = total = 0
    for path, findings in skills_in(folder):
        rules = sorted({one.rule for one in findings if one.severity != "info"})
        total += 1
        hits += bool(rules)
        wanted = expected.get(path)
        other = "" if wanted is None or set(wanted) & set(rules) else f" (expected {', '.join(wanted)})"
        print(f"  {'found' if rules else 'not found':10}{path}: {', '.join(rules) or '-'}{other if rules else ''}")
    print(f"{folder}: {hits} of {total} found at warning or above\n")


def main() -> None:
    """Read the command line and print one of the reports."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", choices=("real", "draw", "samples"))
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--seed", type=int, default=20)
    options = parser.parse_args()
    for folder in options.folders:
        if options.report == "draw":
            draw(folder, options.seed)
        else:
            {"real": real, "samples": samples}[options.report](folder)


if __name__ == "__main__":
    main()
