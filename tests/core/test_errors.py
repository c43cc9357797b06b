"""The one table of error codes and exit statuses, and the surfaces that use it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
from support.rpcclient import rpc_in_process
from support.trees import Machine, write_skill

from skillshelf import errors
from skillshelf.cli.main import COMMANDS
from skillshelf.errors import ERROR_KINDS, ErrorKind, SkillError, kind_of
from skillshelf.session.effects import real_effects
from skillshelf.session.session import Session

if TYPE_CHECKING:
    from support.host_runs import Run

SAMPLES: dict[type[SkillError], tuple[Any, ...]] = {
    errors.SkillsDisabled: (),
    errors.ValidationFailed: ("name", "why"),
    errors.AmbiguousSkill: ("deploy", ["/a", "/b"]),
    errors.FileReadError: ("/a", OSError("why")),
}
ERRORS = [kind(*SAMPLES.get(kind, ("why",))) for kind in ERROR_KINDS]


def test_every_exception_class_has_a_row() -> None:
    defined = {value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, SkillError)}

    assert set(ERROR_KINDS) == defined
    assert {kind.__name__ for kind in defined} == set(errors.__all__)


def test_a_class_without_a_row_has_that_of_its_base() -> None:
    class Missing(errors.SkillNotFound):
        """A class that somebody else derived."""

    assert kind_of(Missing("deploy")) == ErrorKind("not_found", 3)


def test_each_code_has_the_exit_status_that_the_documentation_gives() -> None:
    assert {kind.code: kind.exit_status for kind in ERROR_KINDS.values() if kind.code != "failed"} == {
        "not_found": 3,
        "ambiguous": 3,
        "gone": 3,
        "denied": 4,
        "invalid_params": 2,
        "too_large": 5,
    }


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_the_command_line_and_a_session_use_the_table(
    error: SkillError, machine: Machine, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> NoReturn:
        raise error

    write_skill(machine.repo / ".agents" / "skills", "deploy")
    monkeypatch.setitem(COMMANDS, "list", COMMANDS["list"]._replace(run=fail))

    status, out, _ = run("list", "--json")
    shelf = machine.shelf(trust="all")
    with Session(shelf, effects=real_effects()._replace(load=fail)) as session:
        from_session = session.call("skill_load", {"name": "deploy"}).error

    assert ErrorKind(json.loads(out)["error"]["code"], status) == kind_of(error)
    assert from_session is not None
    assert from_session.code == kind_of(error).code


def test_the_rpc_server_uses_the_table(machine: Machine) -> None:
    write_skill(machine.repo / ".agents" / "skills", "deploy")
    with rpc_in_process(machine) as client:
        asked = {
            errors.SkillNotFound: client.fail("skills.load", name="missing"),
            errors.ConfigurationError: client.fail("skills.list", cwd=str(machine.base / "missing")),
            errors.PathEscape: client.fail("skills.read", uri="skill://deploy/../x"),
        }
        machine.configure("skills.enabled = false\n")
        client.ask("skills.list", force_reload=True)
        asked[errors.SkillsDisabled] = client.fail("skills.load", name="deploy")

    assert {kind: code for kind, (_, code) in asked.items()} == {kind: ERROR_KINDS[kind].code for kind in asked}


@pytest.mark.parametrize("words", [["show", "deploy"], ["read", "skill://deploy"], ["run", "deploy", "scripts/a.sh"]])
def test_with_skills_switched_off_a_command_is_denied(machine: Machine, run: Run, words: list[str]) -> None:
    write_skill(machine.repo / ".agents" / "skills", "deploy")
    machine.configure("skills.enabled = false\n")

    status, out, err = run(*words, "--json")

    assert (status, err) == (4, "skillshelf: skills are disabled\n")
    assert json.loads(out)["error"]["code"] == "denied"
