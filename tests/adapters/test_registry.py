"""The registry: skills by name, active skills with their instructions, and the tool that activates one."""

from __future__ import annotations

import shutil
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from support.trees import FIXTURES, Machine, write_skill

import skillshelf
from skillshelf import Skill, SkillLoader, SkillRegistry, SkillTool

VALID = FIXTURES / "valid-skill"
MINIMAL = FIXTURES / "minimal-skill"


def light(folder: Path, *names: str) -> list[Skill]:
    """Write skills of these names into the folder; return them without their instructions."""
    return [SkillLoader.load_metadata(write_skill(folder, name).parent) for name in names]


# A skill ------------------------------------------------------------------------------------------


@pytest.mark.req("S-35", "S-36", "S-38", "S-39", "S-44")
def test_a_skill_after_discovery_has_everything_but_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FIXTURES)
    skill = SkillLoader.load_metadata("valid-skill")
    assert skill.id == skill.metadata.name == "valid-skill"
    assert skill.instructions is None
    assert skill.directory_path == str(VALID)
    assert skill.skill_file_path == str(VALID / "SKILL.md")


@pytest.mark.req("S-37", "S-45", "S-20")
def test_a_full_skill_has_all_of_its_body_however_long(tmp_path: Path) -> None:
    body = "\n".join(f"Line {number} of many." for number in range(20_000))
    path = write_skill(tmp_path, "long", f"---\nname: long\ndescription: x\n---\n{body}\n")
    assert SkillLoader.load_full(path.parent) == SkillLoader.load_metadata(path.parent)._replace(instructions=body)


@pytest.mark.req("S-46")
@pytest.mark.parametrize("load", [SkillLoader.load_metadata, SkillLoader.load_full])
@pytest.mark.parametrize(
    ("folder", "error"),
    [
        ("no-such-folder", skillshelf.SkillDirectoryNotFound),
        ("empty", skillshelf.SkillFileNotFound),
        ("plain", skillshelf.InvalidFormat),
        ("renamed", skillshelf.ValidationFailed),
        ("yaml", skillshelf.YamlParsingError),
        ("a-folder", skillshelf.InvalidFormat),
    ],
)
def test_every_failure_is_a_skill_error(
    tmp_path: Path, load: Callable[[Path], Skill], folder: str, error: type[Exception]
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "a-folder" / "SKILL.md").mkdir(parents=True)
    write_skill(tmp_path, "plain", "no frontmatter\n")
    write_skill(tmp_path, "other", folder="renamed")
    write_skill(tmp_path, "yaml", "---\nname: [a\n---\n")
    with pytest.raises(error) as caught:
        load(tmp_path / folder)
    assert isinstance(caught.value, skillshelf.SkillError)


@pytest.mark.req("S-40", "S-41", "S-42")
@pytest.mark.parametrize("kind", ["scripts", "references", "assets"])
@pytest.mark.parametrize(("made", "there"), [("folder", True), ("nothing", False), ("file", False)])
def test_a_skill_has_scripts_references_or_assets_if_there_is_a_folder_of_that_name(
    tmp_path: Path, kind: str, made: str, there: bool
) -> None:
    (skill,) = light(tmp_path, "a")
    if made == "folder":
        (tmp_path / "a" / kind).mkdir()
    elif made == "file":
        (tmp_path / "a" / kind).write_text("x")
    has = {"scripts": skill.has_scripts, "references": skill.has_references, "assets": skill.has_assets}
    assert has == {"scripts": False, "references": False, "assets": False, kind: there}


@pytest.mark.req("S-43", "S-21")
@pytest.mark.parametrize("relative", ["references/REFERENCE.md", "./references//REFERENCE.md"])
def test_a_resource_is_found_by_its_path_and_is_not_part_of_the_instructions(relative: str) -> None:
    path = SkillLoader.load_metadata(VALID).resource_path(relative)
    assert path == str(VALID / "references" / "REFERENCE.md")
    assert Path(path).read_text() not in (SkillLoader.load_full(VALID).instructions or "")


@pytest.mark.req("S-43")
@pytest.mark.parametrize("relative", ["", "..", "../x", "a/../../x", "a/../b", "/etc/passwd", "//x", "a\0b", "a/.."])
def test_a_resource_path_never_leaves_the_skill(relative: str) -> None:
    with pytest.raises(skillshelf.PathEscape):
        SkillLoader.load_metadata(VALID).resource_path(relative)


# Registration -------------------------------------------------------------------------------------


@pytest.mark.req("S-53", "S-59", "S-60", "S-62", "S-68", "S-70", "S-73")
def test_a_new_registry_is_empty() -> None:
    registry = SkillRegistry()
    assert (registry.count, registry.registered_names, registry.all_skills) == (0, [], [])
    assert registry.active_skill_names == []
    assert registry.generate_available_skills_prompt() == ""
    assert registry.generate_active_skills_prompt() == ""


@pytest.mark.req("S-55", "S-56", "S-58", "S-59", "S-60", "S-61", "S-62", "S-133")
def test_skills_are_registered_one_by_one_or_together(tmp_path: Path) -> None:
    a, b, c = light(tmp_path, "a", "b", "c")
    registry = SkillRegistry()
    registry.register(c)
    registry.register([b, a])
    assert (registry.count, registry.registered_names, registry.all_skills) == (3, ["a", "b", "c"], [a, b, c])
    assert [registry.get(name) for name in ("a", "b", "c", "d")] == [a, b, c, None]
    assert [registry.contains(name) for name in ("a", "d", "A")] == [True, False, False]


@pytest.mark.req("S-57", "S-133")
def test_unregistering_returns_the_skill(tmp_path: Path) -> None:
    a, b = light(tmp_path, "a", "b")
    registry = SkillRegistry()
    registry.register([a, b])
    registry.activate("a")
    gone = registry.unregister("a")
    assert gone is not None
    assert (gone.id, registry.unregister("a"), registry.unregister("nobody")) == ("a", None, None)
    assert (registry.registered_names, registry.active_skill_names, registry.is_active("a")) == (["b"], [], False)


@pytest.mark.req("S-69")
def test_registering_a_name_again_replaces_its_skill(tmp_path: Path) -> None:
    (old,), (new,) = light(tmp_path / "old", "a"), light(tmp_path / "new", "a")
    registry = SkillRegistry()
    registry.register(old)
    registry.activate("a")
    registry.register(new)
    assert (registry.count, registry.get("a"), registry.is_active("a")) == (1, new, False)
    assert registry.activate("a").directory_path == new.directory_path


@pytest.mark.req("S-54")
def test_a_registry_can_discover_skills_when_it_is_created(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    write_skill(machine.home / ".agent/skills", "mine")
    write_skill(machine.repo / ".agent/skills", "ours")
    write_skill(machine.base / "more", "extra")
    monkeypatch.chdir(machine.repo)
    monkeypatch.setenv("HOME", str(machine.home))
    monkeypatch.setenv("AGENT_SKILLS_PATH", str(machine.base / "more"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    assert SkillRegistry(discover_from_standard_paths=True).registered_names == ["extra", "mine", "ours"]
    assert SkillRegistry(discover_from_standard_paths=False).count == 0
    (machine.repo / "skillshelf.toml").write_text("no toml")
    with pytest.raises(skillshelf.ConfigurationError):
        SkillRegistry(discover_from_standard_paths=True)


# Activation ---------------------------------------------------------------------------------------


@pytest.mark.req("S-63", "S-67", "S-68", "S-37", "S-133")
def test_activating_loads_the_instructions_and_returns_the_skill(tmp_path: Path) -> None:
    a, b = light(tmp_path, "a", "b")
    registry = SkillRegistry()
    registry.register([a, b])
    assert registry.activate("b") == b._replace(instructions="# b")
    assert (registry.get("b"), registry.get("a")) == (b._replace(instructions="# b"), a)
    assert (registry.active_skill_names, registry.is_active("b"), registry.is_active("a")) == (["b"], True, False)
    registry.activate("a")
    assert registry.active_skill_names == ["a", "b"]


@pytest.mark.req("S-63", "S-20")
def test_activating_again_reads_the_file_again(tmp_path: Path) -> None:
    registry = SkillRegistry()
    registry.register(light(tmp_path, "a"))
    registry.activate("a")
    write_skill(tmp_path, "a", "---\nname: a\ndescription: Changed.\n---\nNew.\n")
    skill = registry.activate("a")
    assert (skill.instructions, skill.metadata.description) == ("New.", "Changed.")
    assert "Changed." in registry.generate_available_skills_prompt()
    assert registry.active_skill_names == ["a"]


@pytest.mark.req("S-64")
@pytest.mark.parametrize("name", ["nobody", "A", ""])
def test_activating_an_unknown_name_is_an_error(tmp_path: Path, name: str) -> None:
    registry = SkillRegistry()
    registry.register(light(tmp_path, "a"))
    with pytest.raises(skillshelf.SkillNotFound) as caught:
        registry.activate(name)
    assert (caught.value.name, registry.active_skill_names) == (name, [])


@pytest.mark.req("S-65")
@pytest.mark.parametrize(
    ("text", "error"),
    [
        (None, skillshelf.SkillDirectoryNotFound),
        ("no frontmatter\n", skillshelf.InvalidFormat),
        ("---\nname: b\ndescription: x\n---\n", skillshelf.ValidationFailed),
        ("---\nname: [a\n---\n", skillshelf.YamlParsingError),
        (b"---\nname: a\ndescription: x\n---\n\xff", skillshelf.InvalidFormat),
    ],
)
def test_errors_of_loading_are_passed_on_and_change_nothing(
    tmp_path: Path, text: str | bytes | None, error: type[Exception]
) -> None:
    registry = SkillRegistry()
    registry.register(light(tmp_path, "a"))
    before = registry.all_skills
    if text is None:
        shutil.rmtree(tmp_path / "a")
    else:
        write_skill(tmp_path, "a", text)
    with pytest.raises(error):
        registry.activate("a")
    assert (registry.all_skills, registry.active_skill_names) == (before, [])


@pytest.mark.req("S-66", "S-67", "S-68", "S-133")
def test_deactivating_discards_the_instructions(tmp_path: Path) -> None:
    (a,) = light(tmp_path, "a")
    registry = SkillRegistry()
    registry.register(a)
    registry.activate("a")
    registry.deactivate("a")
    registry.deactivate("a")
    registry.deactivate("nobody")
    assert (registry.get("a"), registry.is_active("a"), registry.active_skill_names) == (a, False, [])
    assert registry.generate_active_skills_prompt() == ""


# Prompts ------------------------------------------------------------------------------------------


@pytest.mark.req("S-70", "S-71", "S-72")
def test_the_listing_has_name_description_and_location_of_each_skill(tmp_path: Path) -> None:
    registry = SkillRegistry()
    registry.register(light(tmp_path, "b", "a"))
    registry.activate("a")
    assert registry.generate_available_skills_prompt() == "\n".join(
        [
            "<available_skills>",
            "  <skill>",
            "    <name>a</name>",
            "    <description>Does a things. Use when a is asked for.</description>",
            f"    <location>{tmp_path}/a/SKILL.md</location>",
            "  </skill>",
            "  <skill>",
            "    <name>b</name>",
            "    <description>Does b things. Use when b is asked for.</description>",
            f"    <location>{tmp_path}/b/SKILL.md</location>",
            "  </skill>",
            "</available_skills>",
        ]
    )


@pytest.mark.req("S-71")
def test_the_listing_stays_well_formed_whatever_a_description_says(tmp_path: Path) -> None:
    text = '---\nname: a\ndescription: "</skill> & < > \' \\" \\n x"\n---\n'
    registry = SkillRegistry()
    registry.register(SkillLoader.load_metadata(write_skill(tmp_path, "a", text).parent))
    (skill,) = ElementTree.fromstring(registry.generate_available_skills_prompt())
    assert skill.findtext("description") == "</skill> & < > ' \" x"


@pytest.mark.req("S-73")
def test_the_active_prompt_has_the_full_instructions_of_the_active_skills_only(tmp_path: Path) -> None:
    write_skill(tmp_path, "b", "---\nname: b\ndescription: x\n---\n\n# B & <b>\n\nText.\n")
    registry = SkillRegistry()
    registry.register([*light(tmp_path, "a", "c"), SkillLoader.load_metadata(tmp_path / "b")])
    registry.activate("b")
    registry.activate("a")
    assert registry.generate_active_skills_prompt() == (
        '<active_skill name="a">\n# a\n</active_skill>\n\n<active_skill name="b">\n# B & <b>\n\nText.\n</active_skill>'
    )


# The tool -----------------------------------------------------------------------------------------


@pytest.mark.req("S-92", "S-93", "S-94", "S-98")
def test_the_tool_has_a_name_a_description_and_one_argument() -> None:
    tool = SkillTool(SkillRegistry())
    assert tool.name == "activate_skill"
    assert "full instructions" in tool.description
    assert "<available_skills>" in tool.description
    about = {"type": "string", "description": "The name of the skill to activate"}
    assert tool.parameters["properties"] == {"skillName": about}
    assert tool.parameters["required"] == ["skillName"]


@pytest.mark.req("S-25", "S-95", "S-97", "S-136")
@pytest.mark.parametrize(
    ("folder", "has", "yes"),
    [(VALID, (True, True, False), ("yes", "yes", "no")), (MINIMAL, (False, False, False), ("no", "no", "no"))],
)
def test_a_call_activates_the_skill_and_returns_its_instructions(
    folder: Path, has: tuple[bool, bool, bool], yes: tuple[str, str, str]
) -> None:
    registry = SkillRegistry()
    registry.register(SkillLoader.load_metadata(folder))
    output = SkillTool(registry).call(folder.name)
    instructions = SkillLoader.load_full(folder).instructions
    assert registry.is_active(folder.name)
    assert instructions
    assert output.to_dict() == {
        "skillName": folder.name,
        "instructions": instructions,
        "resourcesAvailable": {"hasScripts": has[0], "hasReferences": has[1], "hasAssets": has[2]},
    }
    assert str(output) == (
        f"# Skill Activated: {folder.name}\n\n{instructions}\n\n## Available Resources\n"
        f"- Scripts: {yes[0]}\n- References: {yes[1]}\n- Assets: {yes[2]}"
    )


@pytest.mark.req("S-96")
def test_a_skill_without_a_body_has_an_empty_text_for_instructions(tmp_path: Path) -> None:
    registry = SkillRegistry()
    folder = write_skill(tmp_path, "a", "---\nname: a\ndescription: x\n---\n").parent
    registry.register(SkillLoader.load_metadata(folder))
    assert SkillTool(registry).call("a").to_dict()["instructions"] == ""


@pytest.mark.req("S-136", "S-64")
def test_a_call_for_an_unknown_skill_raises_what_the_registry_raises() -> None:
    with pytest.raises(skillshelf.SkillNotFound):
        SkillTool(SkillRegistry()).call("nobody")


@pytest.mark.req("S-25", "S-92", "S-94", "S-95", "S-97", "S-136")
def test_a_session_of_the_profile_runs_the_same_tool(machine: Machine) -> None:
    folder = machine.repo / ".agent/skills/valid-skill"
    shutil.copytree(VALID, folder)
    session = machine.shelf("swiftagent").session()
    registry = SkillRegistry()
    registry.register(SkillLoader.load_metadata(folder))
    output = SkillTool(registry).call("valid-skill")
    result = session.call("activate_skill", {"skillName": "valid-skill"})
    assert (result.ok, result.text, result.data) == (True, str(output), output.to_dict())
    (tool,) = session.tools()
    assert (tool.name, tool.description) == (SkillTool.name, SkillTool.description)
    schema: Any = tool.input_schema
    assert [*schema["properties"]] == schema["required"] == ["skillName"]
    assert session.active == ("valid-skill",)


# Many threads -------------------------------------------------------------------------------------


@contextmanager
def restless_threads() -> Iterator[None]:
    """Switch threads as often as possible, so that a missing lock becomes visible."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def together(changes: Sequence[Callable[[], None]], look: Callable[[], None]) -> list[BaseException]:
    """Make the changes concurrently while two threads read; return the exceptions of all."""
    barrier = threading.Barrier(len(changes) + 2)
    changing = set(range(len(changes)))
    raised: list[BaseException] = []

    def run(number: int, job: Callable[[], None]) -> None:
        barrier.wait()
        try:
            job()
        except BaseException as error:
            raised.append(error)
        finally:
            changing.discard(number)

    def look_on() -> None:
        while changing:
            look()

    jobs = [*changes, look_on, look_on]
    threads = [threading.Thread(target=run, args=(number, job)) for number, job in enumerate(jobs)]
    with restless_threads():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return raised


@pytest.mark.req("S-52")
def test_many_threads_may_register_unregister_and_list_concurrently(tmp_path: Path) -> None:
    (pattern,) = light(tmp_path, "a")
    skills = [pattern._replace(metadata=pattern.metadata._replace(name=f"skill-{n:03}")) for n in range(100)]
    registry = SkillRegistry()

    def come_and_go() -> None:
        for _ in range(50):
            registry.register(skills)
            for skill in skills[1:]:
                registry.unregister(skill.id)

    def look() -> None:
        assert registry.all_skills[:1] in ([], skills[:1])

    assert together([come_and_go, come_and_go], look) == []
    assert registry.registered_names == ["skill-000"]


@pytest.mark.req("S-52", "S-66")
def test_every_thread_sees_a_skill_either_active_with_its_text_or_not_active(tmp_path: Path) -> None:
    names = [f"skill-{number:02}" for number in range(40)]
    registry = SkillRegistry()
    registry.register(light(tmp_path, *names))

    def toggle(mine: list[str]) -> None:
        for _ in range(10):
            for name in mine:
                assert registry.activate(name).instructions == f"# {name}"
            for name in mine:
                registry.deactivate(name)

    def look() -> None:
        prompt = registry.generate_active_skills_prompt()
        assert prompt.count("\n# skill-") == prompt.count("<active_skill ")

    togglers = [lambda mine=names[start::4]: toggle(mine) for start in range(4)]
    assert together(togglers, look) == []
    assert registry.active_skill_names == []


# Links --------------------------------------------------------------------------------------------


@pytest.mark.req("S-43")
def test_a_resource_path_through_a_link_that_leaves_the_skill_is_refused(tmp_path: Path) -> None:
    (skill,) = light(tmp_path / "skills", "a")
    folder = Path(skill.directory_path)
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/key").write_text("x")
    (folder / "out").symlink_to(tmp_path / "secret")
    (folder / "key").symlink_to("../../secret/key")
    (folder / "gone").symlink_to("/nowhere/at/all")
    (folder / "v2.md").write_text("2")
    (folder / "latest.md").symlink_to("v2.md")

    for relative in ("out", "out/key", "key", "gone", "out/missing"):
        with pytest.raises(skillshelf.PathEscape, match="leads out"):
            skill.resource_path(relative)
    assert skill.resource_path("latest.md") == str(folder / "latest.md")
    assert skill.resource_path("not/yet/there") == str(folder / "not/yet/there")


@pytest.mark.req("S-43")
def test_a_skill_that_is_itself_a_link_has_resources(tmp_path: Path) -> None:
    write_skill(tmp_path / "store", "a")
    (tmp_path / "skills").mkdir()
    (tmp_path / "skills/a").symlink_to(tmp_path / "store/a")

    skill = SkillLoader.load_metadata(tmp_path / "skills/a")

    assert skill.resource_path("x.md") == str(tmp_path / "skills/a/x.md")


@pytest.mark.req("S-80")
def test_a_skill_directory_has_a_real_file_and_a_tilde_is_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_skill(tmp_path / "home", "good")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name, target in (("linked", file), ("dangling", tmp_path / "gone"), ("folder", tmp_path)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "SKILL.md").symlink_to(target)
    (tmp_path / "loop").mkdir()
    (tmp_path / "loop/SKILL.md").symlink_to("SKILL.md")

    is_skill = skillshelf.SkillDiscovery.is_skill_directory
    names = ("linked", "dangling", "folder", "loop", "nowhere")
    assert {name: is_skill(tmp_path / name) for name in names} == {
        "linked": True,
        "dangling": False,
        "folder": False,
        "loop": False,
        "nowhere": False,
    }
    assert is_skill("~/good") is True
    assert is_skill("no\0path") is False
