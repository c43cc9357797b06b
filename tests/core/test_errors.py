"""Errors survive a process boundary and a copy, with their members and one text."""

from __future__ import annotations

import copy
import inspect
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from support.trees import write_skill

from skillshelf import SkillLoader, errors

ARGUMENTS: dict[str, Any] = {
    "field": "name",
    "files": ("SKILL.md", "scripts/run.py"),
    "message": "no skills today",
    "name": "deploy",
    "path": "/skills/deploy",
    "paths": ("/a/SKILL.md", "/b/SKILL.md"),
    "reason": "no reason",
    "rule": "name",
    "underlying": PermissionError(13, "Permission denied"),
}


def example_of(kind: type[errors.SkillError]) -> errors.SkillError:
    """Return an error of a class with an argument for each parameter."""
    if kind.__init__ is Exception.__init__ or "self" not in inspect.signature(kind.__init__).parameters:
        return kind("it went wrong")
    names = [name for name in inspect.signature(kind.__init__).parameters if name in ARGUMENTS]
    return kind(*(ARGUMENTS[name] for name in names)) if names else kind("it went wrong")


KINDS = [getattr(errors, name) for name in errors.__all__]


@pytest.mark.req("S-46", "S-91")
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.__name__))
@pytest.mark.parametrize("travel", [lambda e: pickle.loads(pickle.dumps(e)), copy.copy, copy.deepcopy])
def test_an_error_is_the_same_after_a_journey(kind: type[errors.SkillError], travel: Any) -> None:
    error = example_of(kind)

    found = travel(error)

    assert type(found) is kind
    assert str(found) == str(error)
    assert str(found).count(str(ARGUMENTS["name"])) <= str(error).count("deploy")
    members = {key: repr(value) for key, value in vars(error).items()}
    assert {key: repr(value) for key, value in vars(found).items()} == members
    assert issubclass(kind, errors.SkillError)


@pytest.mark.req("S-46", "S-91")
def test_the_near_names_of_a_missing_skill_travel_with_it() -> None:
    error = errors.SkillNotFound("deplyo")
    error.near = ("deploy",)

    found = pickle.loads(pickle.dumps(error))

    assert (str(found), found.name, found.near) == ("Skill not found: deplyo", "deplyo", ("deploy",))


def validated(folder: str) -> str:
    """Return the name of the skill in a folder; runs in another process."""
    return SkillLoader.load_metadata(folder).id


@pytest.mark.slow
@pytest.mark.req("S-46", "S-91")
def test_one_invalid_skill_does_not_end_a_pool_of_processes(tmp_path: Path) -> None:
    write_skill(tmp_path, "good")
    write_skill(tmp_path, "bad", "---\nname: Bad Name\ndescription: d\n---\n")
    write_skill(tmp_path, "worse", "---\nname: [\n---\n")
    (tmp_path / "empty").mkdir()
    outcomes: dict[str, str] = {}

    # Forked: a spawned pool leaves a process that tracks its resources until the tests end.
    with ProcessPoolExecutor(2, mp_context=get_context("fork")) as pool:
        for name in ("bad", "worse", "empty", "good", "nowhere"):
            try:
                outcomes[name] = pool.submit(validated, str(tmp_path / name)).result(60)
            except errors.SkillError as error:
                outcomes[name] = f"{type(error).__name__}: {error}"

    assert outcomes["good"] == "good"
    assert outcomes["bad"].startswith("ValidationFailed: Validation failed for 'name': ")
    assert outcomes["worse"].startswith("YamlParsingError: YAML parsing error: ")
    assert outcomes["empty"] == f"SkillFileNotFound: SKILL.md not found: {tmp_path}/empty/SKILL.md"
    assert outcomes["nowhere"] == f"SkillDirectoryNotFound: Skill directory not found: {tmp_path}/nowhere"
