"""`trust`, `link` and `sync` show what the security rules find in skills of a stranger, and ask for an answer."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import jsonschema
import pytest
from schemas import SCHEMAS
from support.trees import Machine

from skillshelf.cli.main import main
from skillshelf.lint.consent import consent_needed
from skillshelf.lint.security import SecurityFinding

PUBLISHED = Path(__file__).resolve().parent.parent / "cases" / "malicious" / "published"


def _trust(machine: Machine, *words: str) -> int:
    return main(["trust", "--cwd", str(machine.repo), "--home", str(machine.home), *words])


@pytest.fixture
def project(machine: Machine) -> Machine:
    """Return a machine whose repository has a malicious skill and a configuration that tries to silence rules."""
    skills = machine.repo / ".agents" / "skills"
    shutil.copytree(PUBLISHED / "07-ignore-instructions", skills / "07-ignore-instructions")
    return machine


def test_without_a_terminal_a_folder_with_findings_is_not_trusted(
    project: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _trust(project) == 4

    said = capsys.readouterr().err
    assert "security-override" in said
    assert "--accept-rule security-override" in said


def test_a_folder_is_trusted_after_each_rule_is_named(project: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    assert _trust(project, "--json", "--accept-rule", "security-override") == 0

    form = json.loads(capsys.readouterr().out)
    assert form["changed"]
    assert [(one["rule"], one["severity"]) for one in form["findings"]] == [("security-override", "error")]


def test_an_unknown_rule_is_refused(project: Machine) -> None:
    assert _trust(project, "--accept-rule", "security-nothing") == 2


def test_a_refusal_has_the_findings_on_standard_output(project: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    assert _trust(project, "--json") == 4

    form = json.loads(capsys.readouterr().out)
    jsonschema.validate(form, SCHEMAS["failure"])
    assert form["error"]["code"] == "denied"
    assert [one["rule"] for one in form["findings"]] == ["security-override"]


def test_the_form_of_trust_has_a_schema(project: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    _trust(project, "--json", "--accept-rule", "security-override")

    jsonschema.validate(json.loads(capsys.readouterr().out), SCHEMAS["trust"])


# link and sync ------------------------------------------------------------------------------------


def _sync(machine: Machine, *words: str) -> int:
    where = ("--cwd", str(machine.repo), "--home", str(machine.home), "--to", "claude-code")
    return main(["sync", *where, *words])


def test_sync_refuses_a_skill_of_a_stranger_with_errors_although_it_says_yes(
    project: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _sync(project, "--yes", "--json") == 4

    form = json.loads(capsys.readouterr().out)
    assert [one["rule"] for one in form["findings"]] == ["security-override"]
    assert "sync --yes --to claude-code --accept-rule security-override" in form["error"]["message"]
    assert not (project.repo / ".claude").exists()


def test_sync_links_it_after_the_rule_is_accepted(project: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    assert _sync(project, "--yes", "--json", "--accept-rule", "security-override") == 0

    form = json.loads(capsys.readouterr().out)
    jsonschema.validate(form, SCHEMAS["sync"])
    assert [one["rule"] for one in form["findings"]] == ["security-override"]
    assert (project.repo / ".claude" / "skills").exists()


def test_a_dry_run_of_sync_shows_the_findings(project: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    assert _sync(project, "--dry-run") == 0
    assert "error: security-override" in capsys.readouterr().err


def test_link_refuses_without_a_terminal_and_links_a_trusted_skill(
    project: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["link", "07-ignore-instructions", "--to", "claude-code", "--cwd", str(project.repo)]
    words += ["--home", str(project.home), "--json"]

    assert main(words) == 4
    assert json.loads(capsys.readouterr().out)["findings"]

    _trust(project, "--accept-rule", "security-override")
    capsys.readouterr()
    main(words)
    form = json.loads(capsys.readouterr().out)
    jsonschema.validate(form, SCHEMAS["link"])
    assert form["findings"] == []
    assert [one["how"] for one in form["made"]] == ["link"]


# What must be asked -------------------------------------------------------------------------------


def _found(rule: str, severity: str) -> SecurityFinding:
    return SecurityFinding("SKILL.md", 1, 1, rule, severity, "says", "text")  # type: ignore[arg-type]


def test_consent_is_needed_for_what_nobody_accepted() -> None:
    found = {
        "/a/SKILL.md": [_found("security-override", "reject"), _found("security-credentials", "warn")],
        "/b/SKILL.md": [_found("security-mention", "info")],
    }

    consent = consent_needed(found)
    assert list(consent.findings) == ["/a/SKILL.md"]
    assert (consent.rules, consent.errors) == (("security-credentials", "security-override"), ("security-override",))
    assert "1 finding of severity error" in consent.warning

    consent = consent_needed(found, {"security-override"})
    assert (consent.rules, consent.errors, consent.warning) == (("security-credentials",), (), "")
