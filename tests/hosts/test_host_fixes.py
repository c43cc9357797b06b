"""The fixes of `why`, applied: exactly the predicted hosts see the skill afterwards."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from support.host_cases import linked_file, linked_folder, skill, trust
from support.host_runs import Run, json_output
from support.trees import Machine, write_skill

from skillshelf.config.hosts import HOSTS
from skillshelf.core.environment import Environment
from skillshelf.hosts.fixes import Fix, ranked_fixes
from skillshelf.hosts.stages import Verdict, judge
from skillshelf.hosts.survey import SkillFile, Survey, take_survey

Build = Callable[[Machine], None]


def in_root(root: str, text: str | None = None, folder: str = "probe-x") -> Build:
    """A skill called probe-x in a root."""
    return lambda machine: (write_skill(machine.base / root, "probe-x", text, folder=folder), None)[1]


def trusted(build: Build) -> Build:
    """The same, in a folder that every host trusts."""

    def both(machine: Machine) -> None:
        build(machine)
        trust(machine, machine.repo)

    return both


def with_a_rival(machine: Machine) -> None:
    """A skill whose name a personal skill has as well."""
    in_root("repo/.agents/skills")(machine)
    write_skill(machine.home / ".claude/skills", "probe-x", skill("name: probe-x\ndescription: Mine.\n"))


def taken(machine: Machine) -> None:
    """A skill whose place in another root is taken by a folder that is none."""
    in_root("repo/.agents/skills")(machine)
    (machine.repo / ".claude/skills/probe-x/notes").mkdir(parents=True)


def odd_names(machine: Machine) -> None:
    """A skill in a folder with a blank, and one with a name that differs from it by what some hosts change."""
    write_skill(machine.repo / ".claude/skills", "", skill("description: Probes.\n"), folder="probe x")
    write_skill(machine.home / ".copilot/skills", "probe-x", skill("name: probe-x\ndescription: Mine.\n"))


def broken_roots(machine: Machine) -> None:
    """A skill where few look, and two roots that cannot be entered."""
    in_root("repo/.github/skills")(machine)
    (machine.repo / ".claude").mkdir()
    (machine.repo / ".claude/skills").symlink_to("gone")
    (machine.repo / ".agents").mkdir()
    (machine.repo / ".agents/skills").write_text("not a folder")


HELD_BACK = skill("name: probe-x\ndescription: Deploys.\ndisable-model-invocation: true\n")

TREES: Mapping[str, Build] = {
    "claude": in_root("repo/.claude/skills"),
    "claude-trusted": trusted(in_root("repo/.claude/skills")),
    "agents": in_root("repo/.agents/skills"),
    "agents-trusted": trusted(in_root("repo/.agents/skills")),
    "kiro": in_root("repo/.kiro/skills"),
    "category": in_root("repo/.agents/skills", folder="ops/probe-x"),
    "category-trusted": trusted(in_root("repo/.agents/skills", folder="ops/probe-x")),
    "drafts": in_root("repo/.claude/skills", folder=".drafts/probe-x"),
    "other-folder": in_root("repo/.claude/skills", folder="elsewhere-x"),
    "misspelt": in_root("repo/.claude/skill"),
    "misspelt-other-folder": in_root("repo/.claude/skill", folder="elsewhere-x"),
    "odd-names": odd_names,
    "broken-roots": broken_roots,
    "package": in_root("repo/packages/api/.claude/skills"),
    "at-home": in_root("home/.claude/skills"),
    "at-home-codex": in_root("home/.codex/skills"),
    "linked-folder": linked_folder(".agents/skills", "store"),
    "linked-file": linked_file(".claude/skills"),
    "held-back": in_root("repo/.claude/skills", HELD_BACK),
    "no-name": in_root("repo/.claude/skills", skill("description: Probes.\n")),
    "colon": in_root("repo/.claude/skills", skill("name: probe-x\ndescription: Use when: asked\n")),
    "rival": with_a_rival,
    "taken": taken,
}


class Seen:
    """Every skill called probe-x that is no personal rival, and the best that each host makes of any of them."""

    def __init__(self, machine: Machine, path: str | None = None) -> None:
        place = Environment(str(machine.repo), str(machine.home), {})
        self.survey: Survey = take_survey(place, tuple(HOSTS), path=path)
        named = [found for found in self.survey.skill_files if {"probe-x", "probe x"} & {found.folder, found.declared}]
        self.skill_files = [found for found in named if b"Mine." not in found.head]

    def of(self, skill_file: SkillFile) -> list[Verdict]:
        """Return the verdicts of all hosts on one file."""
        return [judge(skill_file, state, self.survey) for state in self.survey.states.values()]

    @property
    def best(self) -> dict[str, Verdict]:
        """The best verdict of each host on any of the files."""
        rank = {True: 2, None: 1, False: 0}
        rows = zip(*(self.of(skill_file) for skill_file in self.skill_files), strict=True)

        def rating(verdict: Verdict) -> tuple[int, bool]:
            # A copy that is hidden from the model is read, and so is better than one that is not.
            return rank[verdict.visible], verdict.verdict == "hidden-from-model"

        return {row[0].host: max(row, key=rating) for row in rows}

    def fixes(self) -> list[Fix]:
        """Return the fixes for the only file."""
        (skill_file,) = self.skill_files
        return ranked_fixes(skill_file, self.of(skill_file), self.survey)


def stray_path(machine: Machine) -> str | None:
    """Return the path of the skill if it is in no root."""
    found = [*machine.repo.glob("packages/**/SKILL.md"), *machine.repo.glob(".claude/skill/*/SKILL.md")]
    return str(found[0]) if found else None


def rebuild(machine: Machine, build: Build) -> None:
    """The tree as it was at first."""
    for folder in machine.base.iterdir():
        shutil.rmtree(folder)
    machine.home.mkdir()
    (machine.repo / ".git").mkdir(parents=True)
    build(machine)


@pytest.mark.parametrize("tree", TREES)
def test_every_command_that_is_advised_works_as_it_stands(machine: Machine, run: Run, tree: str) -> None:
    TREES[tree](machine)
    path = stray_path(machine)
    (skill_file,) = Seen(machine, path).skill_files
    (candidate,) = json_output(run, "why", skill_file.path, schema="why")["candidates"]
    fixes = {row["host"]: row["fix"] for row in candidate["hosts"] if row["fix"]}

    for host, fix in fixes.items():
        if fix.startswith("skillshelf link "):
            rebuild(machine, TREES[tree])
            status, out, _ = run(*shlex.split(fix)[1:])
            now = Seen(machine, path).best[host]
            assert (status, now.visible or now.verdict == "hidden-from-model") == (0, True), (host, fix, out, now)


@pytest.mark.parametrize("tree", TREES)
def test_what_helps_counts_the_hosts_that_see_the_skill_afterwards(machine: Machine, run: Run, tree: str) -> None:
    TREES[tree](machine)
    path = stray_path(machine)
    before = Seen(machine, path).best
    promised = [fix for fix in Seen(machine, path).fixes() if fix.placement]
    met: set[str] = set()

    for fix in promised:
        rebuild(machine, TREES[tree])
        status, out, _ = run(*shlex.split(fix.what)[1:])
        after = Seen(machine, path).best
        gained = {host for host in HOSTS if after[host].visible and not before[host].visible}
        lost = {host for host in HOSTS if before[host].visible and not after[host].visible}
        assert status == 0, (fix, out)
        assert {*fix.hosts} <= gained
        assert gained - met <= {*fix.hosts, *(host for one in promised for host in one.hosts)}
        assert {after[host].verdict for host in fix.need_trust} <= {"untrusted"}
        assert {after[host].verdict for host in fix.users_only} <= {"hidden-from-model"}
        assert lost == {*fix.in_doubt}
        met |= {*fix.hosts}


def test_all_that_is_advised_can_be_done_one_after_the_other(machine: Machine, run: Run) -> None:
    in_root("repo/.claude/skills")(machine)
    trust(machine, machine.repo)
    commands = [fix.what for fix in Seen(machine).fixes()]

    statuses = [run(*shlex.split(command)[1:])[0] for command in commands]

    assert statuses == [0] * len(commands)
    unseen = [host for host, verdict in Seen(machine).best.items() if not verdict.visible]
    assert unseen == ["opencode", "cursor"], "the copy for one host leaves the winner open for these"


BROKEN = "name: probe-x\ndescription: Use when: asked\n"
BOM = b"\xef\xbb\xbf"


@pytest.mark.parametrize(
    ("text", "what", "mended"),
    [
        (BOM + skill().encode(), "remove the byte order mark", skill().encode()),
        (
            BOM + skill("name: Probe X\ndescription: D.\n").encode(),
            "remove the byte order mark",
            skill("name: Probe X\ndescription: D.\n").encode(),
        ),
        (
            skill(BROKEN).encode(),
            "put quotes around the value in line 3",
            skill(BROKEN.replace("Use when: asked", "'Use when: asked'")).encode(),
        ),
        (
            skill(f"name: probe-x\ndescription: {'d' * 1300}: x\n").encode(),
            "put quotes around the value in line 3",
            skill(f"name: probe-x\ndescription: '{'d' * 1300}: x'\n").encode(),
        ),
        (
            skill(BROKEN + "disable-model-invocation: true\n").encode(),
            "put quotes around the value in line 3",
            skill(BROKEN.replace("Use when: asked", "'Use when: asked'") + "disable-model-invocation: true\n").encode(),
        ),
        (skill("description: D.\n").encode(), "add `name: probe-x`", skill().encode()),
        (
            skill("description: D.\n").replace("---\n", "--- \n", 1).encode(),
            "remove the spaces after the opening ---",
            skill("description: D.\n").encode(),
        ),
        (skill("name: probe-x\n").encode(), "add a description", skill().encode()),
        (skill(f"name: probe-x\ndescription: {'d' * 1300}\n").encode(), "shorten the description to 1,024", None),
        (skill("name: probe-x\ndescription: Prob\u00e9s.\n").encode("latin-1"), "save the file as UTF-8", None),
        (b"---\nname: probe-x\ndescription: Probes.\n", "end the frontmatter with a line ---", None),
        (skill("name: probe-x\ndescription: 'it's fine'\n").encode(), "make line 3 valid YAML", None),
        (b"---\nname: probe-x\ndescription: D.\n---\n", "write the instructions below the frontmatter", None),
        (b"", "start the file with frontmatter: a line ---, name and description, a line ---", None),
        (skill("name: probe-x\ndescription: [a]\n").encode(), "write the description as one quoted string", None),
        (skill("name: probe-x\ndescription:\n").encode(), "add a description", None),
        (
            skill("name: probe-x\ndescription: D.\nargument-hint: [x]\n").encode(),
            "put quotes around the value in line 4",
            skill("name: probe-x\ndescription: D.\nargument-hint: '[x]'\n").encode(),
        ),
        (
            skill("name: probe-x\ndescription: D.\nargument-hint:\n").encode(),
            "write a value after `argument-hint:`, or remove the line",
            None,
        ),
    ],
)
def test_a_change_of_the_text_counts_where_nothing_else_is_wrong(
    machine: Machine, text: bytes, what: str, mended: bytes | None
) -> None:
    path = write_skill(machine.repo / ".agents/skills", "probe-x", text)
    trust(machine, machine.repo)
    before = Seen(machine)
    (fix,) = [one for one in before.fixes() if one.what.startswith(what)]

    path.write_bytes(mended or skill().encode())

    after = Seen(machine).best
    now = {host for host in HOSTS if after[host].visible and before.best[host].visible is False}
    assert {*fix.hosts} == now


def test_a_file_of_another_name_counts_where_hosts_look(machine: Machine) -> None:
    path = write_skill(machine.repo / ".agents/skills", "probe-x", skill())
    path.rename(path.with_name("skill.md"))
    before = Seen(machine)
    (fix,) = [one for one in before.fixes() if one.what == "rename the file to SKILL.md"]

    path.with_name("skill.md").rename(path)

    after = Seen(machine).best
    now = {host for host in HOSTS if after[host].visible and before.best[host].visible is False}
    assert {*fix.hosts} == now


def test_a_folder_whose_name_is_nearly_right_is_to_be_renamed(machine: Machine) -> None:
    write_skill(machine.repo / ".claude/skill", "probe-x", skill())
    before = Seen(machine, path=stray_path(machine))
    (fix,) = before.fixes()

    (machine.repo / ".claude/skill").rename(machine.repo / ".claude/skills")

    now = {host for host, verdict in Seen(machine).best.items() if verdict.visible}
    assert (fix.what, {*fix.hosts}) == ("mv .claude/skill .claude/skills", now)


def test_a_key_that_stands_twice_is_told_with_its_line_and_trust_helps_who_takes_the_last(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "probe-x", skill("name: probe-x\ndescription: D.\ndescription: E.\n"))

    helping = Seen(machine).fixes()

    assert [one.what for one in helping if one.kind == "manual"] == [
        "remove one of the two keys, see line 4",
        "trust this folder in gemini-cli and in grok",
    ]


@pytest.mark.parametrize("tabs", ["metadata:\n\ta: b\n", "metadata:\n\t- 'it's'\n"])
def test_advice_never_speaks_of_a_line_that_it_does_not_know(machine: Machine, tabs: str) -> None:
    write_skill(machine.repo / ".agents/skills", "probe-x", skill(f"name: probe-x\ndescription: D.\n{tabs}"))

    assert "None" not in repr([one.what for one in Seen(machine).fixes()])


@pytest.mark.parametrize("host", ["gemini-cli", "pi"])
def test_trust_counts_where_the_host_sees_the_skill_then(machine: Machine, host: str) -> None:
    write_skill(machine.repo / ".agents/skills", "probe-x", skill("name: probe-x\ndescription: Use when: asked\n"))

    helping = Seen(machine).fixes()
    trust(machine, machine.repo)

    sees = Seen(machine).best[host].visible
    assert any(host in fix.hosts for fix in helping if fix.what.startswith("trust ")) is sees
    (quoting,) = [fix for fix in helping if fix.kind == "text"]
    assert (host in quoting.need_more) is not sees


@pytest.mark.parametrize("root", [".claude/skills", ".agents/skills"])
def test_a_skill_that_its_author_holds_back_is_promised_to_people_only(machine: Machine, root: str) -> None:
    in_root(f"repo/{root}", HELD_BACK)(machine)

    (fix,) = [fix for fix in Seen(machine).fixes() if fix.what.startswith("trust this folder in pi")]

    assert (fix.hosts, fix.users_only) == ((), ("pi",))


def test_hosts_that_would_only_ask_for_trust_are_counted_apart(machine: Machine, run: Run) -> None:
    in_root("repo/.claude/skills")(machine)

    out = run("why", "probe-x")[1]

    assert "codex  " in out
    assert "skillshelf link probe-x --to codex  (link in .agents/skills; 2 more would then require trust)" in out


def test_a_link_that_is_to_be_moved_away_is_not_what_the_next_command_goes_by(machine: Machine, run: Run) -> None:
    write_skill(machine.repo / "lib", "probe-x", skill())
    link = machine.repo / ".agents/skills/probe-x"
    link.parent.mkdir(parents=True)
    link.symlink_to("../../lib/probe-x")

    told = run("why", "probe-x", "--host", "codelia")[1]
    link.unlink()

    assert "skillshelf link lib/probe-x --to codelia" in told
    assert run("link", "lib/probe-x", "--to", "codelia")[0] == 0


def test_what_stands_in_the_way_is_named_with_what_to_do(machine: Machine, run: Run) -> None:
    taken(machine)

    status, out, _ = run("link", "probe-x", "--to", "claude-code")

    assert status == 1
    said = ".claude/skills/probe-x is a folder without a SKILL.md: move it away"
    assert f"claude-code: no change ({said} and try again)" in out
    assert (
        f"{said}, then: skillshelf link probe-x --to claude-code" in run("why", "probe-x", "--host", "claude-code")[1]
    )


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: path.write_text("x"), "is a file, not a folder"),
        (lambda path: path.symlink_to("gone"), "is a link that skillshelf did not make, to gone"),
        (lambda path: write_skill(path.parent, "probe-x", skill(body="# Theirs\n")), "is another skill"),
    ],
)
def test_whatever_stands_in_the_way_is_called_what_it_is(
    machine: Machine, run: Run, make: Callable[[Path], object], said: str
) -> None:
    in_root("repo/.agents/skills")(machine)
    (machine.repo / ".kiro/skills").mkdir(parents=True)
    make(machine.repo / ".kiro/skills/probe-x")

    status, out, _ = run("link", ".agents/skills/probe-x", "--to", "kiro")

    assert (status, f".kiro/skills/probe-x {said}: move it away and try again" in out) == (1, True)


def test_roots_that_cannot_be_entered_are_told(machine: Machine, run: Run) -> None:
    broken_roots(machine)

    told = run("hosts")[1]

    assert "warning: .claude/skills cannot be read by any host: the link leads nowhere: target gone" in told
    assert "warning: .agents/skills cannot be read by any host: it is not a folder" in told
    assert ".claude/skills cannot be read by any host" in run("why", "nothing-like-it")[2]
    assert ".claude/skills cannot be read by any host" in run("why", "probe-x")[2]


# Safe fixes, done and asked again ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("root", "frontmatter", "host", "fixed"),
    [
        (".github/skills", "name: 2.5\ndescription: D.\n", "copilot-cli", 'name: "2.5"\n'),
        (".github/skills", "name: true\ndescription: D.\n", "copilot-cli", 'name: "true"\n'),
        (
            ".agents/skills",
            "name: deploy\ndescription: * for `it's` use\n",
            "codex",
            "description: '* for `it''s` use'\n",
        ),
        (".agents/skills", "name: deploy\ndescription: @all of it\n", "goose", "description: '@all of it'\n"),
    ],
)
def test_advice_to_put_quotes_around_a_value_is_done_by_fix(
    machine: Machine, run: Run, root: str, frontmatter: str, host: str, fixed: str
) -> None:
    path = write_skill(machine.repo / root, "deploy", skill(frontmatter))
    before = path.read_text()

    advised = json_output(run, "why", f"{root}/deploy", "--host", host, schema="why")["candidates"][0]["hosts"][0]
    status, _, err = run("why", f"{root}/deploy", "--host", host, "--fix", "--dry-run")

    assert advised["fix"].startswith("put quotes around ")
    assert (status, path.read_text()) == (1, before)
    assert f"would fix {path}" in err

    status, _, err = run("why", f"{root}/deploy", "--host", host, "--fix")

    assert (status, fixed in path.read_text()) == (0, True)


@pytest.mark.parametrize(
    ("text", "host"),
    [("name: deploy\n", "codex"), ("name: deploy\n", "gemini-cli"), ("name: deploy\n", "pi")],
)
def test_nothing_is_linked_until_the_first_step_is_done(machine: Machine, run: Run, text: str, host: str) -> None:
    write_skill(machine.repo / ".claude/skills", "deploy", skill(text))
    trust(machine, machine.repo)

    for words in (("why", "deploy", "--fix", "--host", host), ("link", "deploy", "--to", host)):
        status, out, err = run(*words)
        assert status == 1
        assert "first: add a description, then: skillshelf link deploy" in out + err
    assert sorted(path.name for path in machine.repo.iterdir()) == [".claude", ".git"]


def test_why_names_the_command_that_makes_all_its_links(machine: Machine, run: Run) -> None:
    write_skill(machine.repo / ".github/skills", "deploy")

    _, out, _ = run("why", "deploy", "--host", "claude-code", "--host", "codex")
    status, _, _ = run("why", "deploy", "--fix", "--host", "claude-code,codex")

    assert "To make the links: skillshelf why deploy --fix --host claude-code,codex\n" in out
    assert status == 0
