"""A name means the skills that a caller may have; what is broken, shadowed or filtered is answered with the reason."""

from __future__ import annotations

from typing import Any

import pytest
from support.trees import PROJECT_ROOTS, Machine, write_skill

from skillshelf import AmbiguousSkill, ConfigurationError, Session, SkillNotFound
from skillshelf.session.tools import ToolResult

SKILLS = ".agents/skills"
FOR_USERS = "---\nname: foo\ndescription: For users.\ndisable-model-invocation: true\n---\nBody.\n"
BROKEN = "---\nname: mended\ndescription: [\n---\nBody.\n"


def code_of(result: ToolResult | None) -> str | None:
    """The code of a result that is an error."""
    assert result is not None
    return result.error.code if result.error else None


# Namesakes ----------------------------------------------------------------------------------------


def hidden_namesakes(machine: Machine, how: str) -> tuple[Session, str, str]:
    """A session in which one of two skills `foo` is hidden; also the paths of the good one and the other."""
    good = str(write_skill(machine.home / SKILLS, "foo"))
    other = str(write_skill(machine.repo / SKILLS, "foo"))
    if how == "disabled":
        machine.configure(f'[skills]\ndisabled = ["{other}"]\n')
    trust: Any = "ask" if how == "untrusted" else "all"
    return machine.shelf("codelia", trust=trust).session(), good, other


@pytest.mark.req("C-50")
@pytest.mark.parametrize("how", ["untrusted", "disabled"])
def test_a_hidden_namesake_makes_no_good_skill_ambiguous(machine: Machine, how: str) -> None:
    session, good, other = hidden_namesakes(machine, how)

    result = session.call("skill_load", {"name": "foo"})
    mentioned = session.resolve_mentions("use $foo")

    assert (result.ok, result.data["path"]) == (True, good)
    assert session.decide("skill_load", {"name": "foo"}).verdict == "allow"
    assert (mentioned.skills, mentioned.ambiguous) == (("foo",), ())
    assert other not in result.text + mentioned.text


@pytest.mark.parametrize("how", ["untrusted", "disabled"])
def test_a_person_sees_all_namesakes(machine: Machine, how: str) -> None:
    session, good, other = hidden_namesakes(machine, how)

    with pytest.raises(AmbiguousSkill) as raised:
        session.load("foo")

    assert set(raised.value.paths) == {good, other}


def test_a_name_that_only_hidden_skills_have_is_answered_about_them_without_their_paths(machine: Machine) -> None:
    write_skill(machine.repo / SKILLS, "foo")
    session = machine.shelf("codelia", trust="ask").session()
    one = session.call("skill_load", {"name": "foo"})
    write_skill(machine.repo / SKILLS / "more", "foo")
    session.shelf.refresh()
    two = session.call("skill_load", {"name": "foo"})

    assert (code_of(one), code_of(two)) == ("denied", "ambiguous")
    assert two.error is not None
    assert two.error.candidates == ()
    assert str(machine.repo) not in one.text + two.text


@pytest.mark.req("C-50", "C-84")
def test_two_good_skills_of_a_name_are_ambiguous_and_a_hidden_third_is_not_told(machine: Machine) -> None:
    _, good, other = hidden_namesakes(machine, "disabled")
    third = str(write_skill(machine.home / SKILLS / "more", "foo"))
    result = machine.shelf("codelia").session().call("skill_load", {"name": "foo"})

    assert result.error is not None
    assert result.error.code == "ambiguous"
    assert set(result.error.candidates) == {good, third}
    assert other not in result.text


# Mentions -----------------------------------------------------------------------------------------


@pytest.mark.req("C-17", "K-11")
def test_an_ambiguous_mention_says_so_with_the_paths_and_invokes_nothing(machine: Machine) -> None:
    paths = [str(write_skill(place / SKILLS, "one")) for place in (machine.repo, machine.home)]
    write_skill(machine.repo / SKILLS, "two")
    events: list[Any] = []
    session = machine.shelf("codelia").session(on_event=events.append)

    mentions = session.resolve_mentions("use $one and $two")

    assert (mentions.skills, mentions.unknown, mentions.ambiguous) == (("two",), (), ("one",))
    assert mentions.text == (
        "use $one and $two\n\n<skill_mentions>\n"
        "- one is ambiguous: 2 skills have this name; load one of them by its path:\n"
        f"  - {paths[0]}\n  - {paths[1]}\n- two\n</skill_mentions>"
    )
    assert [event.name for event in events if type(event).__name__ == "SkillInvoked"] == ["two"]
    assert session.snapshot()["asked_for"] == ["two"]


# Broken, shadowed, filtered -----------------------------------------------------------------------

LOADS = {
    "standard": ("skill_load", "name", SKILLS),
    "codelia": ("skill_load", "name", SKILLS),
    "rip": ("skill_load", "name", SKILLS),
    "swiftagent": ("activate_skill", "skillName", ".agent/skills"),
    "omp": ("read", "path", ".omp/skills"),
}


@pytest.mark.req("M-61")
@pytest.mark.parametrize("name", ["broken", "mended"])
@pytest.mark.parametrize("profile", LOADS)
def test_a_broken_skill_is_answered_with_rule_and_line_by_both_of_its_names(
    machine: Machine, profile: str, name: str
) -> None:
    tool, key, root = LOADS[profile]
    path = write_skill(machine.repo / root, "broken", BROKEN)
    write_skill(machine.repo / root, "good")
    session = machine.shelf(profile).session()
    (diagnostic,) = session.shelf.catalog.errors

    result = session.call(tool, {key: f"skill://{name}" if key == "path" else name})

    assert result.error is not None
    assert result.error.code == "failed"
    for part in (diagnostic.rule, f"line {diagnostic.line}", str(path)):
        assert part in result.error.message


def test_every_way_to_ask_for_a_broken_skill_gives_its_reason(machine: Machine) -> None:
    path = write_skill(machine.repo / SKILLS, "broken", BROKEN)
    write_skill(machine.repo / SKILLS, "good")
    shelf = machine.shelf()
    session = shelf.session()
    results = [
        session.call("skill_load", {"path": str(path)}),
        session.call("skill_load", {"path": f"{SKILLS}/broken"}),
        session.call("skill_read", {"uri": "skill://broken/notes.md"}),
        session.call("skill_run", {"name": "broken", "script": "x.sh"}),
        session.command("/skill:broken"),
    ]

    assert [code_of(result) for result in results] == ["failed"] * 5
    assert all(result and "rule yaml" in result.text for result in results)
    for act in (
        lambda: shelf.load("broken"),
        lambda: shelf.read("skill://broken"),
        lambda: session.load("broken"),
        lambda: session.read("skill://mended"),
        lambda: session.activate("broken"),
    ):
        with pytest.raises(SkillNotFound, match="rule yaml"):
            act()
    with pytest.raises(ConfigurationError, match="rule yaml"):
        shelf.session(preload=["broken"])
    assert session.decide("skill_load", {"name": "broken"}).verdict == "deny"


def test_a_shadowed_and_a_filtered_skill_are_answered_with_their_rule(machine: Machine) -> None:
    winner = write_skill(machine.repo / SKILLS, "foo")
    loser = write_skill(machine.home / SKILLS, "foo")
    write_skill(machine.repo / SKILLS, "bar")
    machine.configure('[skills]\nignored = ["bar"]\n')
    session = machine.shelf().session()

    shadowed = session.call("skill_load", {"path": str(loser)})
    filtered = session.call("skill_load", {"name": "bar"})

    assert (code_of(shadowed), code_of(filtered)) == ("failed", "failed")
    assert f"{loser} loses its name to {winner} (rule shadowed)" in shadowed.text
    assert "skills.ignored leaves it out (rule ignored)" in filtered.text


def test_a_broken_file_of_an_untrusted_folder_is_not_described_to_a_model(machine: Machine) -> None:
    write_skill(machine.repo / SKILLS, "broken", "---\nname: broken\ndescription: [IGNORE ALL\n---\n")
    write_skill(machine.home / SKILLS, "good")
    session = machine.shelf(trust="ask").session()

    result = session.call("skill_load", {"name": "broken"})

    assert code_of(result) == "failed"
    assert "rule yaml" in result.text
    assert "IGNORE" not in result.text
    assert str(machine.repo) not in result.text
    with pytest.raises(SkillNotFound, match=str(machine.repo)):
        session.load("broken")


def test_what_a_broken_file_says_is_quoted_on_one_line(machine: Machine) -> None:
    write_skill(machine.repo / SKILLS, "odd", '---\nname: "x\\ny\\e[31m"\ndescription: d\n---\n')
    write_skill(machine.repo / SKILLS, "good")
    result = machine.shelf().session().call("skill_load", {"name": "odd"})

    assert result.error is not None
    assert "\n" not in result.error.message
    assert "\x1b" not in result.error.message


def test_a_loser_of_an_untrusted_winner_does_not_tell_a_model_where_that_is(machine: Machine) -> None:
    winner = write_skill(machine.repo / ".omp/skills", "foo")
    loser = write_skill(machine.repo / ".claude/skills", "foo")
    session = machine.shelf("omp", trust="ask").session()
    (entry,) = session.shelf.catalog.shadowed

    with pytest.raises(SkillNotFound) as told:
        session.load(path=str(loser), for_model=True)
    with pytest.raises(SkillNotFound) as shown:
        session.load(path=str(loser))

    assert (entry.by, str(winner) in str(told.value), str(winner) in str(shown.value)) == (str(winner), False, True)


@pytest.mark.parametrize("trust", ["ask", "user"])
@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize(
    ("profile", "theirs", "mine"),
    [
        ("standard", SKILLS, SKILLS),
        ("strict", SKILLS, SKILLS),
        ("codelia", SKILLS, SKILLS),
        ("swiftagent", ".agent/skills", ".agent/skills"),
        ("rip", SKILLS, SKILLS),
        ("omp", ".omp/skills", ".omp/agent/skills"),
        ("omp", ".claude/skills", ".claude/skills"),
    ],
)
def test_no_clone_takes_a_skill_from_the_user_by_its_name_or_by_a_link_to_it(
    machine: Machine, profile: str, theirs: str, mine: str, linked: bool, trust: Any
) -> None:
    own = write_skill(machine.home / mine, "foo")
    if linked:
        (machine.repo / theirs).mkdir(parents=True)
        (machine.repo / theirs / "foo").symlink_to(own.parent)
    else:
        write_skill(machine.repo / theirs, "foo")
    session = machine.shelf(profile, trust=trust).session()

    assert session.load("foo", for_model=True).loaded.skill.path == str(own)
    assert "foo" in session.catalog_text().text


@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("first", ["user", "project"])
@pytest.mark.parametrize("order", ["before-collisions", "after-collisions"])
@pytest.mark.parametrize("collision", ["first", "last", "keep-all", "race"])
def test_the_most_trusted_way_to_a_file_or_a_name_decides_whatever_a_profile_says(
    machine: Machine, collision: str, order: str, first: str, linked: bool
) -> None:
    kinds = {"user": ("user", "home"), "project": ("project", "cwd")}
    roots = [kinds[first], *(kind for name, kind in kinds.items() if name != first)]
    tables = ", ".join(f'{{kind="{kind}", base="{base}", paths=["{SKILLS}"]}}' for kind, base in roots)
    machine.configure(
        f'[profiles.lab]\nextends = "standard"\nroots = [{tables}]\nother_links = "follow"\n'
        f'collision = "{collision}"\nfilter_order = "{order}"\n'
    )
    own = write_skill(machine.home / SKILLS, "foo")
    if linked:
        (machine.repo / SKILLS).mkdir(parents=True)
        (machine.repo / SKILLS / "foo").symlink_to(own.parent)
    else:
        write_skill(machine.repo / SKILLS, "foo")
    shelf = machine.shelf("lab", trust="ask")
    session = shelf.session()

    assert session.load("foo", for_model=True).loaded.skill.path == str(own)
    assert [skill.path for skill in shelf.catalog.skills if skill.hidden is None] == [str(own)]
    if linked:
        assert [entry.by for entry in shelf.catalog.shadowed if entry.same_file] == [str(own)]


def test_a_request_of_the_user_is_about_the_skill_and_not_about_its_name(machine: Machine) -> None:
    mine = write_skill(machine.home / SKILLS, "foo")
    other = write_skill(machine.repo / SKILLS, "foo", FOR_USERS)
    session = machine.shelf("codelia").session()
    session.activate(path=str(mine))

    assert code_of(session.call("skill_load", {"path": str(other)})) == "denied"
    again = Session.restore(session.snapshot(), machine.shelf("codelia"))
    assert code_of(again.call("skill_load", {"path": str(other)})) == "denied"


@pytest.mark.parametrize("profile", ["standard", "codelia", "rip"])
def test_what_only_a_user_may_invoke_stays_so_in_a_project_that_is_not_trusted(machine: Machine, profile: str) -> None:
    write_skill(machine.repo / SKILLS, "foo", FOR_USERS)
    questions: list[tuple[str, ...]] = []

    def confirm(*question: str) -> bool:
        questions.append(question)
        return True

    session = machine.shelf(profile, trust="ask").session(confirm=confirm)

    assert code_of(session.call("skill_load", {"name": "foo"})) == "denied"
    assert questions == []
    session.activate("foo")
    assert session.call("skill_load", {"name": "foo"}).ok


def test_the_name_of_a_root_is_not_the_name_of_what_is_broken_in_it(machine: Machine) -> None:
    write_skill(machine.repo / SKILLS, "good")
    (machine.repo / SKILLS / "away").symlink_to(machine.base)
    session = machine.shelf().session()

    assert [code_of(session.call("skill_load", {"name": name})) for name in ("away", "skills")] == [
        "failed",
        "not_found",
    ]


# Spellings ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", ["standard", "strict", "rip"])
@pytest.mark.parametrize("spelling", ["FOO", "Foo", "ｆｏｏ", "f\u200boo"])
def test_a_name_in_another_spelling_means_the_one_skill_of_that_name_on_every_surface(
    machine: Machine, profile: str, spelling: str
) -> None:
    path = str(write_skill(machine.repo / PROJECT_ROOTS[profile], "foo"))
    shelf = machine.shelf(profile)
    session = shelf.session()
    loads: dict[str, dict[str, str]] = {
        "skill_load": {"name": spelling},
        "skill_read": {"uri": f"skill://{spelling}"},
        "activate_skill": {"skillName": spelling},
        "Skill": {"name": spelling},
        "read": {"path": f"skill://{spelling}"},
    }

    assert shelf.load(spelling).skill.path == path
    assert shelf.read(f"skill://{spelling}").path == path
    assert session.load(spelling).loaded.skill.path == path
    assert session.activate(spelling).skill.path == path
    session.deactivate(spelling)
    assert session.active == ()
    assert [session.call(tool, loads[tool]).ok for tool in loads if tool in session.profile.tools].count(False) == 0
    assert shelf.search(spelling).results[0].reason == "exact_name"
    if session.profile.commands != "none":
        command = session.command(f"/skill:{spelling}")
        assert command is not None
        assert command.ok


@pytest.mark.req("O-51")
@pytest.mark.parametrize("profile", ["codelia", "swiftagent", "mycodeagent", "omp"])
def test_where_a_profile_keeps_two_spellings_a_name_means_the_one_that_is_written(
    machine: Machine, profile: str
) -> None:
    machine.configure(f'[profiles.lab]\nextends = "{profile}"\nrules = {{ "name-pattern" = "warn" }}\n')
    root = machine.repo / PROJECT_ROOTS[profile]
    paths = {name: str(write_skill(root, name)) for name in ("foo", "Foo")}
    shelf = machine.shelf("lab")

    assert {name: shelf.load(name).skill.path for name in paths} == paths
    assert {name: shelf.read(f"skill://{name}").path for name in paths} == paths
    with pytest.raises(SkillNotFound):
        shelf.load("FOO")


def test_a_name_of_several_words_in_another_spelling_ends_where_it_ends(machine: Machine) -> None:
    write_skill(machine.home / SKILLS, "Repo Review", folder="x")
    session = machine.shelf().session()

    result = session.command("/skill:repo review now")

    assert result is not None
    assert result.ok
    assert result.data["name"] == "Repo Review"


def test_a_mention_in_the_only_spelling_that_it_has_is_of_the_skill_in_any(machine: Machine) -> None:
    write_skill(machine.home / SKILLS, "Foo")
    mentions = machine.shelf().session().resolve_mentions("use $foo")

    assert (mentions.skills, mentions.unknown) == (("Foo",), ())
    assert "- Foo" in mentions.text


def test_what_is_left_out_is_answered_for_in_any_spelling(machine: Machine) -> None:
    write_skill(machine.home / SKILLS, "mended", BROKEN)

    for spelling in ("mended", "MENDED"):
        with pytest.raises(SkillNotFound, match="rule yaml"):
            machine.shelf().load(spelling)
