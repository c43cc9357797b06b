"""`skillshelf check` over a folder of real skills: which rules fire how often, and what `--fix` does to a copy.

    python bench/check_corpus.py DIR

DIR holds SKILL.md files at any depth. It is copied, never written to.
"""

import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import skillshelf
from skillshelf.catalog.document import body, parse
from skillshelf.lint.fix import FIXERS
from skillshelf.lint.run import Mode, Report, check_targets, in_paths

FIXABLE = {rule for rules, _ in FIXERS for rule in rules}


def run(folder: Path, mode: Mode) -> tuple[Report, float]:
    """The report on a folder, and how long it took."""
    with tempfile.TemporaryDirectory() as nowhere:
        shelf = skillshelf.open_shelf(nowhere, home=nowhere, env={})
        started = time.perf_counter()
        report = check_targets(in_paths([str(folder)], shelf), shelf.profile, mode=mode)
        return report, time.perf_counter() - started


def table(before: Report, after: Report) -> str:
    """Rules by the share of files they fire on, before and after the repair."""
    lines = [f"{'rule':<24}{'severity':<10}{'files':>7}{'share':>8}{'fixable':>9}{'after --fix':>13}"]
    severity = {finding.rule: finding.severity for finding in before.findings}
    later = Counter(rule for rule, _ in {(finding.rule, finding.path) for finding in after.findings})
    fixes = Counter(rule for rule, _ in {(f.rule, f.path) for f in before.findings if f.fix is not None})
    files = Counter(rule for rule, _ in {(finding.rule, finding.path) for finding in before.findings})
    for rule, count in files.most_common():
        share = f"{100 * count / before.checked:.1f} %"
        lines.append(
            f"{rule:<24}{severity[rule]:<10}{count:>7}{share:>8}{fixes[rule] or '-':>9}{later[rule] or '-':>13}"
        )
    return "\n".join(lines)


def unexpected(old: Path, new: Path) -> list[str]:
    """Return the changes in a copy that no fix explains."""
    problems = []
    for path in sorted(old.rglob("SKILL.md")):
        was, now = path.read_bytes(), (new / path.relative_to(old)).read_bytes()
        if was == now:
            continue
        fields, repaired = parse(was, whole=True).fields, parse(now, whole=True).fields
        # A name may be another one, and a hint in brackets is now the text that it was meant to be.
        mended = {"name": "", "argument-hint": ""}
        if {**fields, **mended} != {**repaired, **mended}:
            problems.append(f"{path}: another field changed")
        if body(was).replace(b"\r\n", b"\n") != body(now):
            problems.append(f"{path}: the body changed")
        if was.endswith(b"\n") != now.endswith(b"\n"):
            problems.append(f"{path}: the last line end changed")
        if _letters(was) != _letters(now) and fields.get("name") == repaired.get("name"):
            problems.append(f"{path}: more than quotes and blanks changed")
    return problems


def _letters(data: bytes) -> bytes:
    return re.sub(rb"[\s'\xef\xbb\xbf]", b"", data)


def main() -> int:
    """Print the table; 1 if something is not as it should be."""
    source = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        shutil.copytree(source, copy)
        before, seconds = run(copy, "look")
        repaired, repair_seconds = run(copy, "fix")
        after, _ = run(copy, "look")
        again, _ = run(copy, "fix")
        changed = sum(change.refusal is None for change in repaired.changes)
        problems = unexpected(source, copy)
    print(table(before, after))
    levels = Counter(finding.severity for finding in before.findings)
    print(f"\n{before.checked} skills in {seconds:.2f} s, with --fix {repair_seconds:.2f} s: {dict(levels)}")
    print(f"--fix: {repaired.fixed} findings in {changed} files; again: {again.fixed}")
    files = Counter(rule for rule, _ in {(f.rule, f.path) for f in before.findings if f.severity != "info"})
    often = [rule for rule, count in files.items() if count > 0.3 * before.checked]
    left = [finding for finding in after.findings if finding.fix is not None]
    crashed = [finding for finding in before.findings if finding.rule == "internal"]
    print(f"rules that are no advice and fire on more than 30 %: {often or 'none'}")
    print(f"left although fixable: {len(left)}; changed beyond the repair: {len(problems)}; crashes: {len(crashed)}")
    for problem in [*problems, *map(str, crashed), *map(str, left)]:
        print(problem)
    return 1 if often or left or problems or crashed or again.fixed else 0


if __name__ == "__main__":
    sys.exit(main())
