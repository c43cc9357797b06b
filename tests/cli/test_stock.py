"""What the picker asks of a place: switches that are kept, and what hosts see."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import closing

import pytest
from support.trees import Machine, write_skill

from skillshelf.cli.picker.model import PickerModel
from skillshelf.cli.picker.rows import RowFilter
from skillshelf.errors import ConfigurationError, SkillError
from skillshelf.sandbox.reaper import descendants
from skillshelf.shelf import Shelf


def states(stock: PickerModel) -> list[tuple[str, str]]:
    """The rows there are now."""
    return [(row.name, row.state) for row in stock.rows()]


@pytest.mark.req("C-121")
def test_a_switch_is_kept_in_the_users_file_and_seen_at_once(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    stock = PickerModel(machine.shelf)

    said = stock.switch(stock.rows()[0])

    assert said == "deploy is disabled (~/.config/skillshelf/config.toml)"
    assert states(stock) == [("deploy", "off")]
    assert [skill.enabled for skill in machine.catalog().skills] == [False]

    assert stock.switch(stock.rows()[0]).startswith("deploy is enabled")
    assert states(stock) == [("deploy", "on")]
    assert machine.names() == ["deploy"]


def test_a_switch_is_kept_in_the_file_that_was_named_in_place_of_the_users(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    named = machine.base / "named.toml"
    named.touch()
    stock = PickerModel(lambda: machine.shelf(config=named))

    assert stock.switch(stock.rows()[0]) == f"deploy is disabled ({named})"

    assert states(stock) == [("deploy", "off")]
    assert [skill.enabled for skill in machine.catalog().skills] == [True]


@pytest.mark.parametrize("entry", ["deploy", "~/.agents/skills/deploy", "../../.agents/skills/deploy/SKILL.md"])
def test_enabling_takes_off_whatever_means_the_skill(machine: Machine, entry: str) -> None:
    write_skill(machine.home / ".agents/skills", "deploy")
    path = machine.configure(f'[skills]\ndisabled = ["other", "{entry}"]  # mine\n')
    stock = PickerModel(machine.shelf)
    assert states(stock) == [("deploy", "off")]

    stock.switch(stock.rows()[0])

    assert states(stock) == [("deploy", "on")]
    assert path.read_text() == '[skills]\ndisabled = ["other"]  # mine\n'


def test_one_of_two_skills_of_a_name_is_disabled_by_its_path(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    write_skill(machine.home / ".agents/skills", "deploy")
    stock = PickerModel(lambda: machine.shelf("codelia"))
    assert states(stock) == [("deploy", "on"), ("deploy", "on")]

    stock.switch(stock.rows()[1])

    assert states(stock) == [("deploy", "on"), ("deploy", "off")]


def test_a_skill_that_loses_its_name_to_nobody_else_stays_where_it_is(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    write_skill(machine.home / ".agents/skills", "deploy")
    stock = PickerModel(machine.shelf)

    stock.switch(stock.rows()[0])

    assert states(stock) == [("deploy", "off"), ("deploy", "shadowed")]


def test_a_switch_that_another_file_overrules_says_so(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    (machine.repo / "skillshelf.toml").write_text('[skills]\ndisabled = ["deploy"]\n')
    stock = PickerModel(machine.shelf)

    assert stock.switch(stock.rows()[0]) == "deploy stays disabled: another configuration file decides"


def test_what_is_not_in_the_catalog_has_no_switch(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "broken", "---\nname: broken\n---\n")
    stock = PickerModel(machine.shelf)

    with pytest.raises(ConfigurationError, match="broken is not in the catalog"):
        stock.switch(stock.rows()[0])


def test_a_look_at_a_host_holds_what_it_tells_its_model(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    write_skill(machine.repo / ".claude/skills", "review")
    with closing(PickerModel(machine.shelf)) as stock:
        host = next(iter(stock.hosts))
        stock.ask_host(host)

        assert [row.name for row in stock.answer(RowFilter(host=host)).rows] == ["review"]
        assert [row.name for row in stock.answer(RowFilter("deploy", host=host)).rows] == []


def test_hosts_are_asked_by_a_process_of_its_own_and_a_new_one_where_it_was_killed(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    with closing(PickerModel(machine.shelf)) as stock:
        [row] = stock.rows()

        def hosts() -> list[str]:
            told = [line.text for line in stock.about(row)]
            return [text for text in told if text.startswith(("hosts", "seen by", "not by", "unknown"))]

        at_first = hosts()
        stock.ask_hosts()
        assert at_first == [*hosts(), "hosts    looking at their budgets …"]
        assert at_first[0].startswith("seen by ")
        for process in descendants(os.getpid()):
            os.kill(process, signal.SIGKILL)
        ended = "the process that asks them ended (-9); skillshelf hosts may say why"
        assert hosts() == [f"hosts    {ended}"]
        stock.ask_hosts()
        assert hosts() == at_first[:-1]
    with pytest.raises(SkillError, match="no host could be asked"):
        stock.ask_hosts()


def test_before_the_index_is_there_names_are_compared(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy", "---\nname: deploy\ndescription: Ships it.\n---\n")
    stock = PickerModel(machine.shelf)
    before = stock.answer(RowFilter("ships")), stock.answer(RowFilter("plo"))
    stock.make_index()
    after = stock.answer(RowFilter("ships"))

    assert [(len(found.rows), found.ranked) for found in (*before, after)] == [(0, False), (1, False), (1, True)]


def test_a_preview_leaves_no_trace(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    stock = PickerModel(lambda: machine.shelf(use_cache=False))
    row = stock.rows()[0]
    before = sorted(machine.base.rglob("*"))

    stock.about(row)

    assert sorted(machine.base.rglob("*")) == before


def test_nothing_says_how_far_it_is_on_the_terminal_that_the_picker_draws_on(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")

    def open_shelf() -> Shelf:
        shelf = machine.shelf()
        shelf.progress = sys.stderr
        return shelf

    stock = PickerModel(open_shelf)
    assert stock.shelf.progress is None
    stock.switch(stock.rows()[0])
    assert stock.shelf.progress is None
