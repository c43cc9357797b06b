"""Run the conformance suite and the Inspector of the protocol on a real server, in both eras and on both transports.

    npm install @modelcontextprotocol/conformance@0.2.0-alpha.12 @modelcontextprotocol/inspector@2.12.0
    python bench/mcp/conformance.py NODE_MODULES [--node NODE]

Node 22 or later is needed. The suite exits with 0 even if it skipped everything, so this script reads `checks.json`:
every check must succeed, except two of members that the older era does not have.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from fixtures import command, fixture, http_server

ERAS = {"2026-07-28": "modern", "2025-11-25": "legacy"}
CHECKS = {"sep-2640-skills-enumeration": 32, "sep-2640-skills-manifest": 6, "sep-2640-skills-directory": 7}
NOT_IN_OLDER_ERA = {"sep-2640-skills-list-cache-attributes", "sep-2640-skills-get-cache-attributes"}
OTHERS = (
    *("server-initialize", "server-session-lifecycle", "ping", "tools-list", "resources-list", "prompts-list"),
    *("dns-rebinding-protection", "caching", "http-header-validation", "sep-2164-resource-not-found"),
    *("completion-complete", "server-sse-multiple-streams", "input-required-result-unsupported-methods"),
)


def main() -> int:
    """Run everything; return 1 if any check fails."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("modules", type=Path, help="the folder node_modules")
    parser.add_argument("--node", default="node")
    given = parser.parse_args()
    modules = given.modules.resolve() / "@modelcontextprotocol"
    with tempfile.TemporaryDirectory() as folder:
        base = fixture(Path(folder))
        with http_server(base) as (url, _):
            suite = [given.node, str(modules / "conformance/dist/index.js"), "server", "--url", url]
            good = [scenario(suite, name, era, base) for era in ERAS for name in CHECKS]
            good += [other_scenario(suite, name, base) for name in OTHERS]
            line = inspector(given.modules, given.node)
            for era in ERAS.values():
                good.append(verified(line, era, "http", ["--transport", "http", url], base))
                good.append(verified(line, era, "stdio", command(base), base))
    print(f"{sum(good)} of {len(good)} passed")
    return 0 if all(good) else 1


def scenario(suite: list[str], name: str, era: str, base: Path) -> bool:
    """Return True if every check of a scenario was run and succeeded."""
    results = base / f"results-{name}-{era}"
    words = [*suite, "--scenario", name, "--spec-version", era, "--force", "-o", str(results)]
    done = subprocess.run(words, capture_output=True, text=True)
    files = list(results.rglob("checks.json"))
    checks = [check for file in files for check in json.loads(file.read_text())]
    exempt = NOT_IN_OLDER_ERA if ERAS[era] == "legacy" else set()
    wrong = [check for check in checks if check["status"] != "SUCCESS" and check["id"] not in exempt]
    for check in wrong:
        print("   ", check["id"], check["status"], check.get("errorMessage"))
    print(f"{era} {name}: {len(checks)} checks, {len(wrong)} failed")
    if not checks:
        print("   ", *done.stderr.strip().splitlines()[-1:])
    return len(checks) >= CHECKS[name] and not wrong


def other_scenario(suite: list[str], name: str, base: Path) -> bool:
    """Return True if a scenario of the base protocol passes."""
    done = subprocess.run([*suite, "--scenario", name, "-o", str(base / name)], capture_output=True, text=True)
    passed = [line for line in done.stdout.splitlines() if line.startswith("Passed")]
    print(f"{name}: exit {done.returncode} {' '.join(passed)}")
    return done.returncode == 0


def inspector(modules: Path, node: str) -> list[str]:
    """Return the command line of the Inspector."""
    program = modules.resolve() / "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
    return [node, str(program), "--cli"]


def verified(started: list[str], era: str, transport: str, target: list[str], base: Path) -> bool:
    """Return True if the Inspector finds the digests of all files correct."""
    words = [
        "--protocol-era",
        era,
        "--method",
        "skills/list",
        "--verify",
        "--require-digests",
        "--format",
        "json",
        "-q",
    ]
    environment = {**os.environ, "HOME": str(base)}
    line = [*started, *words, "--format", "json", "-q", *target]
    done = subprocess.run(line, capture_output=True, text=True, cwd=base, env=environment, timeout=300)
    skills = done.stdout.count('"outcome"')
    print(f"Inspector, {era} era over {transport}: exit {done.returncode}, {skills} skills")
    if done.returncode:
        print(done.stdout[-2000:], done.stderr[-2000:])
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
