"""Golden files hold what a model sees of one small shelf, in every profile.

With `SKILLSHELF_REGENERATE=1` in the environment the files are written again; review the difference before you
keep it. The tests below the first one do not use the files: they assert what may never change.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from support.trees import Machine, write_skill

from skillshelf import Session
from skillshelf.config.builtin_profiles import SYSTEMS

GOLDENS = Path(__file__).parent / "goldens"
REGENERATE = os.environ.get("SKILLSHELF_REGENERATE") == "1"

ROOTS = {"swiftagent": ".agent/skills", "mycodeagent": "skills", "omp": ".omp/skills"}
"""The folder of a project's skills, for profiles that do not use `.agents/skills`."""

HOME_ROOTS = {"swiftagent": ".agent/skills", "omp": ".omp/agent/skills"}
"""The same in the home folder, which mycodeagent does not read."""

CALLS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "standard": ("skill_load", {"name": "release-notes", "args": "v2.1"}),
    "strict": ("skill_load", {"name": "release-notes", "args": "v2.1"}),
    "codelia": ("skill_load", {"name": "release-notes"}),
    "swiftagent": ("activate_skill", {"skillName": "release-notes"}),
    "mycodeagent": ("Skill", {"name": "release-notes", "args": "v2.1"}),
    "rip": ("skill_load", {"name": "release-notes", "args": "v2.1"}),
    "omp": ("read", {"path": "skill://release-notes"}),
}
"""The call by which a model of each profile loads the same skill."""

RELEASE_NOTES = """\
---
name: release-notes
description: Drafts release notes & changelogs from commits. Use it when the user asks for "what's new" <or similar>.
license: Apache-2.0
compatibility: Needs git
metadata:
  version: "1.2"
allowed-tools: Bash(git log:*) Read
---
# Release notes

Read [the style](references/style.md), then run `scripts/commits.sh $ARGUMENTS`.

- Escape nothing: `a < b && c > d`.
- A body may not end our element: </skill_content> </skill_context>
"""


def shelf_of(machine: Machine, profile: str) -> Session:
    """A session on the one small shelf: two skills of the project and one of the home folder."""
    root = machine.repo / ROOTS.get(profile, ".agents/skills")
    folder = write_skill(root, "release-notes", RELEASE_NOTES).parent
    for name, text in {"references/style.md": "# Style\n", "scripts/commits.sh": "git log\n"}.items():
        (folder / name).parent.mkdir()
        (folder / name).write_text(text)
    write_skill(root, "deploy")
    write_skill(machine.home / HOME_ROOTS.get(profile, ".agents/skills"), "tidy-up")
    for path in machine.base.rglob("*"):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    return machine.shelf(profile).session()


def without_place(text: str, machine: Machine) -> str:
    """The text as it would read on any machine and at any time."""
    text = text.replace(str(machine.repo), "<REPO>").replace(str(machine.home), "<HOME>")
    text = re.sub(r'("skill_id": )"[0-9a-f]{24}"', r'\1"<ID>"', text)
    return re.sub(r'(\\?"time_ms\\?": )\d+', r"\1<TIME>", text)


def as_json(value: Any) -> str:
    """A JSON value for people."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def answer(here: Session, profile: str) -> str:
    """Text and data of a load."""
    tool, arguments = CALLS[profile]
    result = here.call(tool, arguments)
    return f"{result.text}\n\n=== data ===\n{as_json(dict(result.data))}"


def shown_by(machine: Machine, profile: str) -> Iterator[tuple[str, str]]:
    """The golden files of a profile, and what is in them."""
    here = shelf_of(machine, profile)
    yield "catalog.txt", here.system_prompt()
    yield "tools.json", as_json([tool.to_dict() for tool in here.tools()])
    yield "load.txt", answer(here, profile)
    yield "load-again.txt", answer(here, profile)


@pytest.mark.parametrize("profile", sorted(SYSTEMS))
def test_a_model_sees_what_the_golden_files_hold(machine: Machine, profile: str) -> None:
    seen = {name: without_place(text, machine) + "\n" for name, text in shown_by(machine, profile)}
    folder = GOLDENS / profile
    if REGENERATE:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in seen.items():
            (folder / name).write_text(text, encoding="utf-8")
    assert {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()} == seen


def test_every_folder_of_goldens_belongs_to_a_profile() -> None:
    assert sorted(path.name for path in GOLDENS.iterdir()) == sorted(SYSTEMS) == sorted(CALLS)


def test_no_golden_file_knows_the_machine_it_was_made_on() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in GOLDENS.rglob("*.*")}
    assert len(texts) == 4 * len(SYSTEMS)
    own_paths = re.compile(r"/(tmp|private|home|root|Users|work|var)/|pytest-of")
    assert [path for path, text in texts.items() if own_paths.search(text)] == []


# What may never change, whatever a golden file says -----------------------------------------------


@pytest.mark.parametrize("profile", sorted(SYSTEMS))
def test_every_profile_tells_of_every_skill_in_the_same_order(machine: Machine, profile: str) -> None:
    here = shelf_of(machine, profile)
    text = here.catalog_text().text
    names = ["deploy", "release-notes", *(["tidy-up"] if profile != "mycodeagent" else [])]
    found = re.findall(r"<name>([a-z-]+)</name>|<skill name=\"([a-z-]+)\">|^- ([a-z-]+):", text, re.MULTILINE)
    listed = ["".join(groups) for groups in found]
    assert [name for name in listed if name not in ("name", "args")] == names
    assert here.catalog_text().truncated is False


@pytest.mark.req("C-59", "C-63", "C-64", "C-65", "S-71", "S-72", "K-07", "K-25")
@pytest.mark.parametrize(
    ("profile", "attributes", "children"),
    [
        ("standard", {"truncated": "false"}, ["name", "description"]),
        ("strict", {"truncated": "false"}, ["name", "description"]),
        ("rip", {"truncated": "false"}, ["name", "description"]),
        ("swiftagent", {}, ["name", "description", "location"]),
        ("codelia", {"scope": "initial", "truncated": "false"}, ["name", "description", "path", "scope"]),
    ],
)
def test_the_elements_of_a_catalog_have_these_attributes_and_children_in_this_order(
    machine: Machine, profile: str, attributes: dict[str, str], children: list[str]
) -> None:
    text = shelf_of(machine, profile).catalog_text().text
    outer = ElementTree.fromstring(text[text.index("<skills_context>" if profile == "codelia" else "<available_") :])
    if profile == "codelia":
        assert [element.tag for element in outer] == ["skills_usage", "skills_catalog"]
        assert {rule.tag for rule in outer[0]} == {"rule"}
    catalog = outer[1] if profile == "codelia" else outer
    assert catalog.tag == ("skills_catalog" if profile == "codelia" else "available_skills")
    assert catalog.attrib == attributes
    assert [element.tag for element in catalog] == ["skill"] * 3
    assert [[child.tag for child in skill] for skill in catalog] == [children] * 3
    assert not any(skill.attrib for skill in catalog)


@pytest.mark.req("C-81", "S-94", "M-28", "M-29", "M-30")
@pytest.mark.parametrize(
    ("profile", "tools"),
    [
        (
            "standard",
            {"skill_search": "query limit? scope?", "skill_load": "name? path? args? offset?", "skill_read": "uri"},
        ),
        (
            "strict",
            {"skill_search": "query limit? scope?", "skill_load": "name? path? args? offset?", "skill_read": "uri"},
        ),
        ("codelia", {"skill_search": "query limit? scope?", "skill_load": "name? path? offset?"}),
        ("swiftagent", {"activate_skill": "skillName"}),
        ("mycodeagent", {"Skill": "name args?"}),
        ("rip", {"skill_load": "name args? offset?", "skill_read": "uri"}),
        ("omp", {"read": "path"}),
    ],
)
def test_the_tools_of_a_profile_have_these_parameters(machine: Machine, profile: str, tools: dict[str, str]) -> None:
    offered = {}
    for tool in shelf_of(machine, profile).tools():
        schema: Any = tool.input_schema
        assert (schema["type"], schema["additionalProperties"]) == ("object", False)
        needed = schema["required"]
        offered[tool.name] = " ".join(name + ("" if name in needed else "?") for name in schema["properties"])
        assert tool.description
    offered.pop("skill_run", None)
    assert offered == tools


@pytest.mark.req("C-69", "C-70", "C-71", "C-72", "C-73")
def test_the_parts_of_a_load_in_codelia_stand_in_this_order(machine: Machine) -> None:
    text = shelf_of(machine, "codelia").call(*CALLS["codelia"]).text
    folder = machine.repo / ".agents/skills/release-notes"
    lines = text.split("\n")
    assert lines[0] == f'<skill_context name="release-notes" path="{folder}/SKILL.md">'
    content = RELEASE_NOTES.replace("</skill_context>", "<\\/skill_context>").rstrip("\n").split("\n")
    assert lines[1 : 1 + len(content)] == content
    assert [line for line in lines[1 + len(content) :] if line] == [
        f"Base directory: file://{folder}/",
        "Relative paths in this skill are resolved from this directory.",
        "<skill_files>",
        f"<file>{folder}/references/style.md</file>",
        f"<file>{folder}/scripts/commits.sh</file>",
        "</skill_files>",
        "</skill_context>",
    ]


@pytest.mark.parametrize("profile", ["standard", "strict", "rip"])
def test_the_parts_of_a_load_in_the_standard_stand_in_this_order(machine: Machine, profile: str) -> None:
    text = shelf_of(machine, profile).call(*CALLS[profile]).text
    head, inner, resources = re.split('\n(?=<skill_resources)|(?<=">)\n', text, maxsplit=2)
    attributes = re.findall(r'([a-z]+)="([^"]*)"', head)
    assert [name for name, _ in attributes] == ["name", "directory", "digest"]
    assert dict(attributes)["directory"] == str(machine.repo / ".agents/skills/release-notes")
    assert re.fullmatch("sha256:[0-9a-f]{64}", dict(attributes)["digest"])
    assert inner.startswith("---\nname:" if profile == "rip" else "# Release notes\n")
    assert resources.split("\n") == [
        '<skill_resources count="2" truncated="false">',
        "references/style.md",
        "scripts/commits.sh",
        "</skill_resources>",
        "</skill_content>",
    ]


@pytest.mark.req("S-95", "S-97")
def test_the_parts_of_an_activation_stand_in_this_order(machine: Machine) -> None:
    result = shelf_of(machine, "swiftagent").call(*CALLS["swiftagent"])
    body = RELEASE_NOTES.split("---\n", 2)[2].strip()
    resources = "## Available Resources\n- Scripts: yes\n- References: yes\n- Assets: no"
    assert result.text == f"# Skill Activated: release-notes\n\n{body}\n\n{resources}"
    assert list(result.data) == ["skillName", "instructions", "resourcesAvailable"]
    assert list(result.data["resourcesAvailable"]) == ["hasScripts", "hasReferences", "hasAssets"]


@pytest.mark.req("M-31", "M-32", "M-33", "M-35", "M-36", "M-37")
def test_the_parts_of_an_envelope_stand_in_this_order(machine: Machine) -> None:
    envelope = json.loads(shelf_of(machine, "mycodeagent").call(*CALLS["mycodeagent"]).text)
    assert list(envelope) == ["status", "data", "text", "stats", "context"]
    assert list(envelope["data"]) == ["name", "base_dir", "content"]
    first, blank, *body = envelope["data"]["content"].split("\n")
    prefix, _, folder = first.partition(": ")
    assert (prefix, blank) == ("Base directory for this skill", "")
    assert machine.repo / folder == machine.repo / "skills/release-notes"
    expanded = RELEASE_NOTES.split("---\n", 2)[2].strip().replace("$ARGUMENTS", "v2.1")
    assert "\n".join(body) == expanded


@pytest.mark.parametrize("profile", ["standard", "strict", "codelia", "rip"])
def test_a_second_load_is_short_and_names_the_reference_of_the_first(machine: Machine, profile: str) -> None:
    here = shelf_of(machine, profile)
    first, second = here.call(*CALLS[profile]), here.call(*CALLS[profile])
    assert "# Release notes" not in second.text
    assert second.data == {**first.data, "already_loaded": True}
    assert f'ref="{first.data["ref"]}"' in second.text


@pytest.mark.parametrize("profile", ["swiftagent", "omp"])
def test_a_second_load_is_like_the_first_where_a_profile_says_so(machine: Machine, profile: str) -> None:
    here = shelf_of(machine, profile)
    assert here.call(*CALLS[profile]).text == here.call(*CALLS[profile]).text
