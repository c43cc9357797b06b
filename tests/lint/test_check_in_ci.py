"""The GitHub Action and the hooks for pre-commit: what they run is run here, on a real repository."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support.needs import needs_program
from support.trees import SOURCE, Machine, run_command, write_skill

from skillshelf.catalog.frontmatter import load_yaml

REPOSITORY = Path(__file__).parents[2]
GOOD = "Does it. Use when asked for it, please."
BAD = "---\nname: {name}\ndescription: Short.\n---\n# x\n"
ODD_NAMES = ["with blank", "-dash", "--fix", "quote'\"$(touch hacked)"]


def odd_repository(machine: Machine) -> list[str]:
    """Write a skill with a warning to folders of awkward names; return the paths of the files."""
    for name in ODD_NAMES:
        write_skill(machine.repo, "x", f"---\nname: x\ndescription: {GOOD}\n---\n# x\n[a](gone.md)\n", folder=name)
    return [f"{name}/SKILL.md" for name in ODD_NAMES]


# The action ---------------------------------------------------------------------------------------


class Runner:
    """The steps of the action, run by bash with what GitHub puts into the environment."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.action: Any = load_yaml((REPOSITORY / "action.yml").read_text(encoding="utf-8"))
        self.temporary = machine.base / "runner temp"
        self.output = machine.base / "output"
        self.output.touch()
        program = self.temporary / "skillshelf" / "bin" / "skillshelf"
        program.parent.mkdir(parents=True)
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m skillshelf "$@"\n')
        program.chmod(0o755)

    def run(self, step: int, **inputs: str) -> subprocess.CompletedProcess[str]:
        """Run a step with some inputs; the others have their defaults."""
        given = {name: row["default"] for name, row in self.action["inputs"].items()}
        given |= {name.replace("_", "-"): value for name, value in inputs.items()}
        row = self.action["runs"]["steps"][step]
        assert row["shell"] == "bash"
        assert "${{" not in row["run"]
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": SOURCE,
            "HOME": str(self.machine.home),
            "RUNNER_TEMP": str(self.temporary),
            "GITHUB_ACTION_PATH": str(REPOSITORY),
            "GITHUB_WORKSPACE": str(self.machine.repo),
            "GITHUB_OUTPUT": str(self.output),
            "GITHUB_ACTIONS": "true",
            "CI": "true",
            **{name: self._filled(value, given) for name, value in row["env"].items()},
        }
        script = self.machine.base / "step.sh"
        script.write_text(row["run"])
        folder = self.machine.repo / self._filled(row.get("working-directory", "."), given)
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(script)],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    @staticmethod
    def _filled(text: str, given: Mapping[str, str]) -> str:
        return re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda match: given[match[1]], text)


@pytest.fixture
def runner(machine: Machine) -> Runner:
    """The runner of the action."""
    return Runner(machine)


@pytest.mark.slow
@needs_program("bash")
def test_the_action_annotates_the_whole_repository(machine: Machine, runner: Runner) -> None:
    odd_repository(machine)

    done = runner.run(1)

    assert (done.returncode, done.stderr) == (1, "")
    assert "::warning file=-dash/SKILL.md,line=6,col=5,title=reference-missing::gone.md does not exist\n" in done.stdout
    assert done.stdout.count("title=reference-missing") == len(ODD_NAMES)
    assert "4 skills checked: 4 errors, 4 warnings\n" in done.stdout


@pytest.mark.slow
@needs_program("bash")
def test_the_action_takes_paths_with_blanks_dashes_and_quotes(machine: Machine, runner: Runner) -> None:
    paths = odd_repository(machine)

    done = runner.run(1, paths="\n".join([*paths[:2], "", f"{paths[3]}\r", "--fix"]))

    assert (done.returncode, done.stderr) == (1, "")
    assert "4 skills checked" in done.stdout
    assert not (machine.repo / "hacked").exists()
    assert "gone.md" in (machine.repo / "--fix/SKILL.md").read_text()


@pytest.mark.slow
@needs_program("bash")
def test_the_action_takes_severity_baseline_rules_and_writes_sarif(machine: Machine, runner: Runner) -> None:
    odd_repository(machine)
    machine.run("check", "--write-baseline=-known.json")
    write_skill(machine.repo / "skills", "new", BAD.format(name="new"))

    known = runner.run(1, baseline="-known.json", sarif="out put.sarif")
    quiet = runner.run(1, baseline="-known.json", severity="error")
    chosen = runner.run(1, select="name", ignore="name-directory")

    assert (known.returncode, quiet.returncode, chosen.returncode) == (1, 0, 0)
    assert known.stdout.count("::warning") == 1
    assert runner.output.read_text() == f"sarif={machine.repo}/out put.sarif\n"
    results = json.loads((machine.repo / "out put.sarif").read_text())["runs"][0]["results"]
    assert [result["baselineState"] for result in results].count("new") == 1


@pytest.mark.slow
@needs_program("bash")
def test_the_action_fails_on_a_wrong_input_and_not_as_if_there_were_findings(machine: Machine, runner: Runner) -> None:
    write_skill(machine.repo / "skills", "demo")

    done = runner.run(1, severity="fatal", sarif="out.sarif")

    assert done.returncode == 2
    assert "unknown severity 'fatal'" in done.stderr


@pytest.mark.slow
@needs_program("bash")
@pytest.mark.parametrize(
    ("version", "what"), [("", str(REPOSITORY)), ("0.2.0", "skillshelf==0.2.0"), ("0; echo", "skillshelf==0; echo")]
)
def test_the_action_installs_itself_or_a_release(machine: Machine, runner: Runner, version: str, what: str) -> None:
    tools = machine.base / "tools"
    tools.mkdir()
    said = machine.base / "said"
    # In the place of python3: an environment whose pip writes down what it was told.
    (tools / "python3").write_text(
        f"""#!/bin/sh
mkdir -p "$3/bin"
printf '#!/bin/sh\\nprintf "%%s\\\\n" "$@" > "{said}"\\n' > "$3/bin/python"
chmod +x "$3/bin/python"
"""
    )
    (tools / "python3").chmod(0o755)
    before = os.environ["PATH"]
    os.environ["PATH"] = f"{tools}{os.pathsep}{before}"
    try:
        done = runner.run(0, version=version)
    finally:
        os.environ["PATH"] = before

    assert (done.returncode, done.stderr) == (0, "")
    assert said.read_text().splitlines()[-2:] == ["--", what]


def test_every_input_of_the_action_is_described_and_used() -> None:
    text = (REPOSITORY / "action.yml").read_text(encoding="utf-8")
    action: Any = load_yaml(text)

    assert all(row["description"] and isinstance(row["default"], str) for row in action["inputs"].values())
    assert sorted(set(re.findall(r"\$\{\{ inputs\.([\w-]+) \}\}", text))) == sorted(action["inputs"])
    assert {"paths", "severity", "baseline", "version"} <= set(action["inputs"])


# The hooks ----------------------------------------------------------------------------------------

HOOKS: Any = load_yaml((REPOSITORY / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))


def test_the_hooks_take_every_skill_file_and_no_other() -> None:
    files = [".agents/skills/deploy/SKILL.md", "SKILL.md", "-x/SKILL.md"]

    assert [hook["id"] for hook in HOOKS] == ["skillshelf-check", "skillshelf-fix", "skillshelf-check-repository"]
    for hook in HOOKS[:2]:
        assert all(re.search(hook["files"], file) for file in files)
        assert not re.search(hook["files"], "MY-SKILL.md")


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook["id"])
def test_a_hook_is_a_command_that_takes_the_staged_files(machine: Machine, hook: dict[str, Any]) -> None:
    files = odd_repository(machine)
    write_skill(machine.repo, "-colon", f"---\nname: -colon\ndescription: 'Or so: {GOOD}'\n---\n# x\n")
    write_skill(machine.repo, "plain", f"---\nname: plain\ndescription: Or so: {GOOD}\n---\n# x\n")
    given = [*files, "plain/SKILL.md"] if hook.get("pass_filenames", True) else []

    program, *words = hook["entry"].split()
    home = ["--home", str(machine.home)]
    done = run_command(*words, *home, *hook.get("args", []), *given, cwd=machine.repo)

    assert (program, done.returncode, done.stderr) == ("skillshelf", 1, "")
    assert f"{5 if given else 6} skills checked" in done.stdout
    fixed = "description: 'Or so: " in (machine.repo / "plain/SKILL.md").read_text()
    assert fixed == (hook["id"] == "skillshelf-fix")


@pytest.mark.slow
@needs_program("git")
@needs_program("pre-commit")
def test_the_hooks_run_by_pre_commit(machine: Machine, tmp_path: Path) -> None:
    odd_repository(machine)
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "skillshelf").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m skillshelf "$@"\n')
    (tools / "skillshelf").chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(machine.home),
        "PRE_COMMIT_HOME": str(tmp_path / "kept"),
        "PYTHONPATH": SOURCE,
        "GIT_CONFIG_GLOBAL": os.devnull,
    }

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words, cwd=machine.repo, env=environment, capture_output=True, text=True, timeout=60, check=False
        )

    shutil.rmtree(machine.repo / ".git")
    run("git", "init", "--quiet")
    # The program of this checkout: to install it as pre-commit would takes a network.
    hooks = [{**hook, "language": "system"} for hook in HOOKS]
    config = {"repos": [{"repo": "local", "hooks": hooks}]}
    (machine.repo / ".pre-commit-config.yaml").write_text(json.dumps(config))
    run("git", "add", "--all")

    found = {hook["id"]: run("pre-commit", "run", hook["id"]) for hook in HOOKS}

    assert [(name, done.returncode) for name, done in found.items()] == [(hook["id"], 1) for hook in HOOKS]
    for done in found.values():
        assert "4 skills checked: 4 errors, 4 warnings" in done.stdout, done.stdout + done.stderr
