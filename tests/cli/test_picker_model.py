"""The data of the picker: skills that are disabled in the user's file, and what hosts see."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import closing

import pytest
from support.trees import Machine, write_skill

from skillshelf.cli.picker.model import PickerModel
from skillshelf.cli.picker.rows import RowFilter
from skillshelf.config.hosts import HOSTS
from skillshelf.errors import ConfigurationError, SkillError
from skillshelf.sandbox.reaper import descendants
from skillshelf.shelf import Shelf


def states(model: PickerModel) -> list[tuple[str, str]]:
    """The rows there are now."""
    return [(row.name, row.state) for row in model.rows()]


@pytest.mark.req("C-121")
def test_a_switch_is_kept_in_the_users_file_and_seen_at_once(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    model = PickerModel(machine.shelf)

    said = model.toggle(model.rows()[0])

    assert said == "deploy is disabled (~/.config/skillshelf/config.toml)"
    assert states(model) == [("deploy", "off")]
    assert [skill.enabled for skill in machine.catalog().skills] == [False]

    assert model.toggle(model.rows()[0]).startswith("deploy is enabled")
    assert states(model) == [("deploy", "on")]
    assert machine.names() == ["deploy"]


def test_a_switch_is_kept_in_the_file_that_was_named_in_place_of_the_users(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    named = machine.base / "named.toml"
    named.touch()
    model = PickerModel(lambda: machine.shelf(config=named))

    assert model.toggle(model.rows()[0]) == f"deploy is disabled ({named})"

    assert states(model) == [("deploy", "off")]
    assert [skill.enabled for skill in machine.catalog().skills] == [True]


@pytest.mark.parametrize("entry", ["deploy", "~/.agents/skills/deploy", "../../.agents/skills/deploy/SKILL.md"])
def test_enabling_takes_off_whatever_means_the_skill(machine: Machine, entry: str) -> None:
    write_skill(machine.home / ".agents/skills", "deploy")
    path = machine.configure(f'[skills]\ndisabled = ["other", "{entry}"]  # mine\n')
    model = PickerModel(machine.shelf)
    assert states(model) == [("deploy", "off")]

    model.toggle(model.rows()[0])

    assert states(model) == [("deploy", "on")]
    assert path.read_text() == '[skills]\ndisabled = ["other"]  # mine\n'


def test_one_of_two_skills_of_a_name_is_disabled_by_its_path(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    write_skill(machine.home / ".agents/skills", "deploy")
    model = PickerModel(lambda: machine.shelf("codelia"))
    assert states(model) == [("deploy", "on"), ("deploy", "on")]

    model.toggle(model.rows()[1])

    assert states(model) == [("deploy", "on"), ("deploy", "off")]


def test_a_skill_that_loses_its_name_to_nobody_else_stays_where_it_is(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    write_skill(machine.home / ".agents/skills", "deploy")
    model = PickerModel(machine.shelf)

    model.toggle(model.rows()[0])

    assert states(model) == [("deploy", "off"), ("deploy", "shadowed")]


def test_a_switch_that_another_file_overrules_says_so(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    (machine.repo / "skillshelf.toml").write_text('[skills]\ndisabled = ["deploy"]\n')
    model = PickerModel(machine.shelf)

    assert model.toggle(model.rows()[0]) == "deploy is still disabled: another configuration file sets it"


def test_what_is_not_in_the_catalog_has_no_switch(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "broken", "---\nname: broken\n---\n")
    model = PickerModel(machine.shelf)

    with pytest.raises(ConfigurationError, match="broken is not in the catalog"):
        model.toggle(model.rows()[0])


@pytest.mark.slow
def test_a_look_at_a_host_holds_what_it_tells_its_model(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    write_skill(machine.repo / ".claude/skills", "review")
    with closing(PickerModel(machine.shelf)) as model:
        host = next(iter(HOSTS))
        model.load_host(host)

        assert [row.name for row in model.select(RowFilter(host=host)).rows] == ["review"]
        assert [row.name for row in model.select(RowFilter("deploy", host=host)).rows] == []


@pytest.mark.slow
def test_a_host_as_filter_is_its_own_catalog_and_not_a_cut_of_the_profiles(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    outside = write_skill(machine.home / ".codex/skills", "review")
    write_skill(machine.home / ".codex/skills", "broken", "---\nname: broken\n---\n")
    with closing(PickerModel(machine.shelf)) as model:
        model.load_host("codex")
        shown = model.select(RowFilter(host="codex"))

        assert [row.name for row in model.select(RowFilter()).rows] == ["deploy"]
        assert ([row.name for row in shown.rows], shown.total) == (["deploy", "review"], 2)
        assert [row.name for row in shown.rows] == machine.names("host:codex")
        # Other commands do not know the second by its name.
        assert [row.identifier for row in shown.rows] == ["deploy", str(outside)]
        assert [row.name for row in model.select(RowFilter(shown="problems", host="codex")).rows] == ["broken"]
        assert any("# review" in line.text for line in model.describe(shown.rows[1], "codex"))
        model.build_index()
        assert [row.name for row in model.select(RowFilter("asked review", host="codex")).rows][:1] == ["review"]
        model.toggle(shown.rows[1])
        assert [row.state for row in model.select(RowFilter(host="codex")).rows] == ["on", "off"]


@pytest.mark.slow
def test_hosts_are_asked_by_a_process_of_its_own_and_a_new_one_where_it_was_killed(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    with closing(PickerModel(machine.shelf)) as model:
        [row] = model.rows()

        def hosts() -> list[str]:
            texts = [line.text for line in model.describe(row)]
            return [text for text in texts if text.startswith(("hosts", "seen by", "not by", "unknown"))]

        at_first = hosts()
        model.survey_hosts()
        assert at_first == [*hosts(), "hosts    checking their budgets …"]
        assert at_first[0].startswith("seen by ")
        for process in descendants(os.getpid()):
            os.kill(process, signal.SIGKILL)
        ended = "the process that surveys them ended (-9); skillshelf hosts may show why"
        assert hosts() == [f"hosts    {ended}"]
        model.survey_hosts()
        assert hosts() == at_first[:-1]
    with pytest.raises(SkillError, match="hosts cannot be surveyed"):
        model.survey_hosts()


def test_before_the_index_is_there_names_are_compared(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy", "---\nname: deploy\ndescription: Ships it.\n---\n")
    model = PickerModel(machine.shelf)
    before = model.select(RowFilter("ships")), model.select(RowFilter("plo"))
    model.build_index()
    after = model.select(RowFilter("ships"))

    assert [(len(found.rows), found.ranked) for found in (*before, after)] == [(0, False), (1, False), (1, True)]


def test_a_preview_leaves_no_trace(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    model = PickerModel(lambda: machine.shelf(use_cache=False))
    row = model.rows()[0]
    before = sorted(machine.base.rglob("*"))

    model.describe(row)

    assert sorted(machine.base.rglob("*")) == before


def test_nothing_says_how_far_it_is_on_the_terminal_that_the_picker_draws_on(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")

    def open_shelf() -> Shelf:
        shelf = machine.shelf()
        shelf.progress = sys.stderr
        return shelf

    model = PickerModel(open_shelf)
    assert model.shelf.progress is None
    model.toggle(model.rows()[0])
    assert model.shelf.progress is None
