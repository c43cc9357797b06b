"""The loaders under the API names of the described systems, and the forms of their results."""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
from importlib import resources
from pathlib import Path
from typing import Any, get_type_hints

import jsonschema
import pytest
from schemas import SCHEMAS
from support.trees import FIXTURES, Machine, write_skill

import skillshelf
from skillshelf import Skill, SkillDiscovery, SkillError, SkillLoader, SkillMetadata, SkillRegistry, ValidationFailed
from skillshelf.core.json_types import CatalogForm, FilteredForm, LoadErrorForm, MetadataForm, ShadowedForm
from skillshelf.core.limits import SKILL_FILE_BYTES

VALID = SkillMetadata(
    name="valid-skill",
    description="A skill that uses every field of the standard. Use it to test a loader.",
    license="Apache-2.0",
    compatibility="Requires git and jq",
    metadata={"author": "example-org", "version": "1.0"},
    allowed_tools="Bash(git log:*) Read",
)


def without_place(metadata: SkillMetadata) -> SkillMetadata:
    """Return the metadata that depends on the text alone."""
    return metadata._replace(id="", path="", dir="", scope="", mtime_ms=0, frontmatter={})


# The fixture folders ------------------------------------------------------------------------------


@pytest.mark.req("S-137", "S-14", "S-15", "S-16", "S-17", "S-26", "S-28", "S-131")
def test_the_valid_skill_has_every_field_and_two_kinds_of_resources() -> None:
    folder = FIXTURES / "valid-skill"
    skill = SkillLoader.load_metadata(folder)
    assert without_place(skill.metadata) == VALID
    assert (skill.has_scripts, skill.has_references, skill.has_assets) == (True, True, False)
    assert (folder / "scripts" / "example.py").is_file()
    assert (folder / "references" / "REFERENCE.md").is_file()


@pytest.mark.req("S-138", "S-09", "S-10", "S-11", "S-26")
def test_the_minimal_skill_is_a_folder_with_nothing_but_a_skill_file() -> None:
    skill = SkillLoader.load_metadata(FIXTURES / "minimal-skill")
    assert without_place(skill.metadata) == SkillMetadata("minimal-skill", "The least a skill can be.")
    assert (skill.has_scripts, skill.has_references, skill.has_assets) == (False, False, False)
    assert os.listdir(FIXTURES / "minimal-skill") == ["SKILL.md"]


@pytest.mark.req("S-139", "S-31", "S-86")
@pytest.mark.parametrize("load", [SkillLoader.load_metadata, SkillLoader.load_full])
def test_the_skill_with_an_invalid_name_fails(load: Any) -> None:
    with pytest.raises(ValidationFailed) as caught:
        load(FIXTURES / "invalid-name-skill")
    assert caught.value.field == "name"
    assert caught.value.reason == "'another-name' lives in the folder 'invalid-name-skill'"


@pytest.mark.req("S-140", "S-90")
@pytest.mark.parametrize("load", [SkillLoader.load_metadata, SkillLoader.load_full])
def test_the_skill_with_malformed_yaml_fails(load: Any) -> None:
    with pytest.raises(skillshelf.YamlParsingError) as caught:
        load(FIXTURES / "invalid-format")
    assert "line" in caught.value.reason


@pytest.mark.req("S-23", "S-02")
def test_discovery_returns_the_skills_of_the_loader_without_instructions() -> None:
    found = SkillDiscovery.discover(FIXTURES)
    loaded = [SkillLoader.load_metadata(FIXTURES / name) for name in ("minimal-skill", "valid-skill")]
    assert [skill.directory_path for skill in found] == [skill.directory_path for skill in loaded]
    assert [skill.metadata._replace(scope="") for skill in found] == [skill.metadata for skill in loaded]
    assert [skill.instructions for skill in found] == [None, None]
    registry = SkillRegistry()
    registry.register(found)
    assert (registry.registered_names, registry.all_skills) == (["minimal-skill", "valid-skill"], found)


@pytest.mark.req("S-23")
def test_a_skill_that_discovery_finds_behind_a_link_can_be_loaded(tmp_path: Path) -> None:
    write_skill(tmp_path / "skills", "a", folder="a").rename(tmp_path / "skills" / "a.md")
    (tmp_path / "skills" / "a" / "SKILL.md").symlink_to("../a.md")
    (found,) = SkillDiscovery.discover(tmp_path / "skills")
    assert SkillLoader.load_metadata(found.directory_path).metadata == found.metadata._replace(scope="")


# One skill ----------------------------------------------------------------------------------------


@pytest.mark.req("S-18", "S-02")
def test_metadata_comes_first_and_instructions_only_with_the_full_skill() -> None:
    light = SkillLoader.load_metadata(FIXTURES / "valid-skill")
    full = SkillLoader.load_full(FIXTURES / "valid-skill")
    text = "Run [the example](scripts/example.py), then read [the reference](references/REFERENCE.md)."
    assert light.instructions is None
    assert full == light._replace(instructions=f"# Valid skill\n\n{text}")


@pytest.mark.req("S-51", "S-19", "K-20")
def test_metadata_is_loaded_although_the_body_cannot_be_read(machine: Machine) -> None:
    text = b"---\nname: odd\ndescription: Its body is no text.\n---\n" + b"\xff\x00" * 5000
    path = write_skill(machine.repo / ".agent/skills", "odd", text)
    assert without_place(SkillLoader.load_metadata(path.parent).metadata) == SkillMetadata(
        "odd", "Its body is no text."
    )
    assert [skill.id for skill in SkillDiscovery.discover(path.parent.parent)] == ["odd"]
    assert machine.names("swiftagent") == ["odd"]
    with pytest.raises(skillshelf.InvalidFormat):
        SkillLoader.load_full(path.parent)


@pytest.mark.req("S-51", "S-19", "K-20")
@pytest.mark.skipif(not os.access("/proc/self/io", os.R_OK), reason="the system does not count the bytes we read")
def test_metadata_is_read_without_most_of_a_long_body(tmp_path: Path) -> None:
    text = "---\nname: long\ndescription: b\n---\n" + "x" * (SKILL_FILE_BYTES - 100)
    folder = write_skill(tmp_path, "long", text).parent

    def bytes_read() -> int:
        return int(Path("/proc/self/io").read_text().split()[1])

    SkillLoader.load_metadata(folder)
    before = bytes_read()
    SkillLoader.load_metadata(folder)
    between = bytes_read()
    SkillLoader.load_full(folder)
    after = bytes_read()

    assert between - before < SKILL_FILE_BYTES // 2 < after - between


@pytest.mark.req("S-19", "K-20", "K-17", "S-02")
@pytest.mark.parametrize("profile", ["swiftagent", "rip"])
def test_no_word_of_a_body_is_in_a_catalog(machine: Machine, profile: str) -> None:
    root = {"swiftagent": ".agent/skills", "rip": ".agents/skills"}[profile]
    write_skill(machine.repo / root, "a", "---\nname: a\ndescription: Does a.\nlicense: MIT\n---\n# unspoken\n")
    catalog = machine.catalog(profile)
    assert [(skill.name, skill.description, skill.metadata.license) for skill in catalog.skills] == [
        ("a", "Does a.", "MIT")
    ]
    assert "unspoken" not in json.dumps(catalog.to_dict())


@pytest.mark.req("S-47", "S-49", "S-50", "S-131", "K-56")
def test_parsing_returns_metadata_and_body() -> None:
    text = "---\nname: a\ndescription: >-\n  Does a\n  and b.\nmetadata:\n  k: v\nx-own: [1]\n---\n\n# Body\n---\n"
    metadata, body = SkillLoader.parse_frontmatter(text)
    fields = {"name": "a", "description": "Does a and b.", "metadata": {"k": "v"}, "x-own": [1]}
    assert metadata == SkillMetadata("a", "Does a and b.", metadata={"k": "v"}, frontmatter=fields)
    assert body == "\n# Body\n---\n"


@pytest.mark.req("S-47", "S-85", "S-131")
@pytest.mark.parametrize(
    "text", ["", "no frontmatter", "---\nname: a\n", "---\n- a\n---\n", "---\nname: \ud800\n---\n"]
)
def test_bad_structure_is_an_invalid_format(text: str) -> None:
    with pytest.raises(skillshelf.InvalidFormat):
        SkillLoader.parse_frontmatter(text)


@pytest.mark.req("S-90", "S-50", "S-131")
@pytest.mark.parametrize("block", ["name: [a", "name: 'a", "name: a\nname: b", "name: &a b\nc: *a", "name: !!str a"])
def test_a_block_that_is_not_yaml_is_a_yaml_parsing_error(block: str) -> None:
    with pytest.raises(skillshelf.YamlParsingError):
        SkillLoader.parse_frontmatter(f"---\n{block}\n---\n")


@pytest.mark.req("S-12", "S-13", "S-86")
@pytest.mark.parametrize(("block", "field"), [("description: b", "name"), ("name: a", "description")])
def test_a_missing_field_fails_validation(block: str, field: str) -> None:
    with pytest.raises(ValidationFailed) as caught:
        SkillLoader.parse_frontmatter(f"---\n{block}\n---\n")
    assert caught.value.field == field


@pytest.mark.req("S-48", "S-132")
def test_valid_metadata_passes_validation() -> None:
    SkillLoader.validate(VALID, "valid-skill")
    SkillLoader.validate(SkillMetadata("a", "b"), "a")


@pytest.mark.req("S-48", "S-29", "S-30", "S-31", "S-32", "S-33", "S-132")
@pytest.mark.parametrize(
    ("change", "directory", "field"),
    [
        ({"name": ""}, "", "name"),
        ({"name": "a" * 65}, "a" * 65, "name"),
        ({"name": "Upper"}, "Upper", "name"),
        ({"name": "a--b"}, "a--b", "name"),
        ({"name": "-a"}, "-a", "name"),
        ({"name": "a-"}, "a-", "name"),
        ({"name": "a_b"}, "a_b", "name"),
        ({}, "other", "name"),
        ({"description": ""}, "a", "description"),
        ({"description": "x" * 1025}, "a", "description"),
        ({"compatibility": ""}, "a", "compatibility"),
        ({"compatibility": "x" * 501}, "a", "compatibility"),
    ],
)
def test_metadata_that_breaks_a_rule_fails_validation_with_its_field(
    change: dict[str, Any], directory: str, field: str
) -> None:
    with pytest.raises(ValidationFailed) as caught:
        SkillLoader.validate(SkillMetadata("a", "b")._replace(**change), directory)
    assert caught.value.field == field


@pytest.mark.req("M-26", "M-60", "M-22", "M-06")
def test_a_project_loader_skips_and_logs_unreadable_files(machine: Machine, caplog: pytest.LogCaptureFixture) -> None:
    root = machine.repo / "skills"
    good = write_skill(root, "declared", folder="folder")
    bad = [
        write_skill(root, "unclosed", "---\nname: unclosed\ndescription: b\n"),
        write_skill(root, "no-yaml", "---\nname: 'no-yaml\ndescription: b\n---\n"),
        write_skill(root, "nothing", "just text\n"),
        write_skill(root, "nameless", "---\ndescription: b\n---\n"),
    ]
    with caplog.at_level(logging.WARNING, "skillshelf"):
        listed = SkillLoader(machine.repo).scan()
    assert [(meta.name, meta.path) for meta in listed] == [("declared", str(good))]
    assert sorted(record.message.partition(":")[0] for record in caplog.records) == sorted(map(str, bad))


# SkillMetadata and Skill --------------------------------------------------------------------------


@pytest.mark.req("S-27")
def test_metadata_is_an_immutable_value() -> None:
    metadata = SkillLoader.load_metadata(FIXTURES / "valid-skill").metadata
    with pytest.raises(AttributeError):
        metadata.name = "other"
    assert metadata == SkillLoader.load_metadata(FIXTURES / "valid-skill").metadata
    assert metadata != metadata._replace(license=None)


@pytest.mark.req("S-27")
def test_metadata_survives_a_round_trip_through_json() -> None:
    metadata = SkillLoader.load_metadata(FIXTURES / "valid-skill").metadata
    assert SkillMetadata.from_dict(json.loads(json.dumps(metadata.to_dict()))) == metadata
    with pytest.raises(TypeError):
        SkillMetadata.from_dict({**metadata.to_dict(), "unknown": 1})


@pytest.mark.req("S-28", "S-34")
@pytest.mark.parametrize(
    ("written", "tools"),
    [("Bash(git:*) Read", "Bash(git:*) Read"), ("[Bash(git log:*), Read]", "Bash(git log:*) Read"), ("~", None)],
)
def test_allowed_tools_are_one_text_with_blanks_between(written: str, tools: str | None) -> None:
    metadata, _ = SkillLoader.parse_frontmatter(f"---\nname: a\ndescription: b\nallowed-tools: {written}\n---\n")
    assert metadata.allowed_tools == tools


@pytest.mark.req("C-26", "C-27", "C-28", "C-29", "S-08")
def test_metadata_has_path_and_modification_time(machine: Machine) -> None:
    path = write_skill(machine.repo / ".agents/skills", "a")
    os.utime(path, ns=(0, 1_700_000_000_123_456_789))
    digest = hashlib.sha256(os.path.realpath(path).encode()).hexdigest()[:24]
    fields = {"name": "a", "description": "Does a things. Use when a is asked for."}

    (skill,) = machine.catalog("codelia").skills

    assert skill.metadata == SkillMetadata(
        name=fields["name"],
        description=fields["description"],
        id=digest,
        path=str(path),
        dir=str(path.parent),
        scope="repo",
        mtime_ms=1_700_000_000_123,
        frontmatter=fields,
    )
    assert SkillLoader.load_metadata(path.parent).metadata == skill.metadata._replace(scope="")


@pytest.mark.req("C-27")
def test_an_id_is_the_hash_of_the_canonical_path_and_does_not_change_with_an_edit(machine: Machine) -> None:
    path = write_skill(machine.home / "store", "a")
    root = machine.home / ".agents/skills"
    root.mkdir(parents=True)
    (root / "a").symlink_to(path.parent)
    shelf = machine.shelf()
    (before,) = shelf.catalog.skills
    write_skill(machine.home / "store", "a", "---\nname: a\ndescription: edited\n---\n")
    shelf.refresh()
    (after,) = shelf.catalog.skills
    assert after.description == "edited"
    assert before.id == after.id == hashlib.sha256(os.path.realpath(path).encode()).hexdigest()[:24]


@pytest.mark.req("C-12", "S-08", "K-16")
def test_a_skill_is_a_folder_with_a_file_of_exactly_that_name(machine: Machine) -> None:
    root = machine.repo / ".agents/skills"
    path = write_skill(root, "a")
    for other in ("SKILLS.md", "SKILL.txt", "SKILL.md.bak", "README.md"):
        (root / "b").mkdir(exist_ok=True)
        (root / "b" / other).write_text("---\nname: b\ndescription: b\n---\n")
    assert [skill.path for skill in machine.catalog("codelia").skills] == [str(path)]
    with pytest.raises(skillshelf.SkillFileNotFound):
        SkillLoader.load_metadata(root / "b")


def test_a_skill_has_the_paths_of_its_files() -> None:
    skill = SkillLoader.load_metadata(FIXTURES / "valid-skill")
    assert (skill.id, skill.directory_path) == ("valid-skill", str(FIXTURES / "valid-skill"))
    assert skill.skill_file_path == str(FIXTURES / "valid-skill" / "SKILL.md")
    assert skill.resource_path("scripts/example.py") == str(FIXTURES / "valid-skill" / "scripts" / "example.py")


@pytest.mark.parametrize("relative", ["", "../x", "a/../../x", "/etc/passwd", "a\0b"])
def test_a_resource_path_stays_inside_the_skill(relative: str) -> None:
    with pytest.raises(skillshelf.PathEscape):
        Skill(VALID, None, "/skills/valid-skill").resource_path(relative)


# Errors -------------------------------------------------------------------------------------------

OUCH = OSError(errno.EIO, "ouch")


@pytest.mark.req("S-83", "S-84", "S-85", "S-86", "S-87", "S-88", "S-89", "S-90", "S-91")
@pytest.mark.parametrize(
    ("error", "attributes", "message"),
    [
        (skillshelf.SkillDirectoryNotFound("/x"), {"path": "/x"}, "Skill directory not found: /x"),
        (skillshelf.SkillFileNotFound("/x/SKILL.md"), {"path": "/x/SKILL.md"}, "SKILL.md not found: /x/SKILL.md"),
        (skillshelf.InvalidFormat("why"), {"reason": "why"}, "Invalid SKILL.md format: why"),
        (ValidationFailed("name", "why"), {"field": "name", "reason": "why"}, "Validation failed for 'name': why"),
        (skillshelf.SkillNotFound("a"), {"name": "a"}, "Skill not found: a"),
        (skillshelf.SkillAlreadyExists("a"), {"name": "a"}, "Skill already exists: a"),
        (
            skillshelf.FileReadError("/x", OUCH),
            {"path": "/x", "underlying": OUCH},
            f"Failed to read file '/x': [Errno {errno.EIO}] ouch",
        ),
        (skillshelf.YamlParsingError("why"), {"reason": "why"}, "YAML parsing error: why"),
        (
            skillshelf.AmbiguousSkill("a", ["/x", "/y"]),
            {"name": "a", "paths": ("/x", "/y")},
            "Ambiguous skill name: a (2 skills have it)",
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_an_error_has_attributes_and_a_message(error: SkillError, attributes: dict[str, Any], message: str) -> None:
    assert isinstance(error, SkillError)
    assert vars(error) == attributes
    assert str(error) == message


@pytest.mark.parametrize(
    "name", ["PathEscape", "LimitExceeded", "PermissionDenied", "SkillsDisabled", "ConfigurationError"]
)
def test_our_own_errors_are_skill_errors_too(name: str) -> None:
    error = getattr(skillshelf, name)("why")
    assert isinstance(error, SkillError)
    assert str(error) == "why"


@pytest.mark.req("S-83", "S-84", "S-88")
def test_loading_from_a_folder_without_a_skill_says_what_is_missing(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(skillshelf.SkillDirectoryNotFound) as no_folder:
        SkillLoader.load_metadata(tmp_path / "nowhere")
    with pytest.raises(skillshelf.SkillFileNotFound) as no_file:
        SkillLoader.load_full(empty)
    with pytest.raises(skillshelf.FileReadError) as unreadable:
        SkillLoader.load_metadata(tmp_path / ("x" * 300))
    assert no_folder.value.path == str(tmp_path / "nowhere")
    assert no_file.value.path == str(empty / "SKILL.md")
    assert isinstance(unreadable.value.underlying, OSError)
    assert unreadable.value.underlying.errno == errno.ENAMETOOLONG


@pytest.mark.parametrize("kind", ["folder", "pipe", "large"])
def test_a_skill_file_that_is_not_a_small_file_is_an_invalid_format(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a" / "SKILL.md"
    path.parent.mkdir()
    match kind:
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case _:
            path.write_bytes(b"---\nname: a\ndescription: b\n---\n")
            os.truncate(path, SKILL_FILE_BYTES + 1)
    with pytest.raises(skillshelf.InvalidFormat):
        SkillLoader.load_metadata(path.parent)


# Schemas ------------------------------------------------------------------------------------------


@pytest.mark.req("C-02")
@pytest.mark.parametrize("name", ["scope", "metadata", "load-error", "catalog", "search-result"])
def test_the_shipped_schemas_match_the_types(name: str) -> None:
    shipped = json.loads((resources.files("skillshelf") / "json_schemas" / f"{name}.json").read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(shipped)
    assert shipped == SCHEMAS[name]


@pytest.mark.req("C-02", "C-26", "C-31", "K-17")
@pytest.mark.parametrize(
    ("form", "value"),
    [
        (MetadataForm, SkillMetadata),
        (LoadErrorForm, skillshelf.Diagnostic),
        (CatalogForm, skillshelf.Catalog),
        (FilteredForm, skillshelf.Filtered),
        (ShadowedForm, skillshelf.Shadowed),
    ],
)
def test_the_json_types_have_the_members_of_the_values(form: type, value: Any) -> None:
    examples: dict[Any, Any] = {
        SkillMetadata: SkillMetadata("", ""),
        skillshelf.Diagnostic: skillshelf.Diagnostic("", "", ""),
    }
    members = tuple(examples[value].to_dict()) if value in examples else value._fields
    assert tuple(get_type_hints(form)) == members


@pytest.mark.req("C-02", "C-26", "C-30", "C-31", "K-17")
def test_real_values_match_their_schemas_and_others_do_not(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "a", "---\nname: a\ndescription: b\nx-own: {c: [1, ~]}\n---\n")
    write_skill(machine.repo / ".agents/skills", "b", "---\nname: b\n---\n")
    write_skill(machine.home / ".agents/skills", "a")
    catalog = machine.catalog("codelia").to_dict()
    metadata = SkillLoader.load_metadata(FIXTURES / "valid-skill").metadata.to_dict()
    result = machine.shelf("codelia").search("a").results[0].to_dict()
    values = {
        "scope": catalog["skills"][0]["scope"],
        "metadata": metadata,
        "load-error": catalog["errors"][0],
        "catalog": catalog,
        "search-result": result,
    }
    wrong: dict[str, Any] = {
        "scope": 5,
        "metadata": {**metadata, "name": None},
        "load-error": {"path": "/x"},
        "catalog": {**catalog, "truncated": "no"},
        "search-result": {**result, "extra": 1},
    }
    for name, value in values.items():
        jsonschema.validate(value, SCHEMAS[name])
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong[name], SCHEMAS[name])


@pytest.mark.req("C-30", "C-31")
def test_a_catalog_has_skills_errors_and_a_truncation_flag(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "a")
    path = write_skill(machine.repo / ".agents/skills", "b", "---\nname: b\n---\n")
    catalog = machine.catalog("codelia").to_dict()
    (error,) = catalog["errors"]
    assert [skill["name"] for skill in catalog["skills"]] == ["a"]
    assert (error["path"], type(error["message"])) == (str(path), str)
    assert catalog["truncated"] is False
