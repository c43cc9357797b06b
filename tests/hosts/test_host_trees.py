"""The trees on which real hosts are compared: drawn by chance, and the same for the same seed."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.host_trees import LAYOUTS, PLACES, SETTINGS, TEXTS, draw_trees, one_name_everywhere, put_tree
from support.trees import Machine

from skillshelf.config.hosts import HOSTS
from skillshelf.core.environment import Environment
from skillshelf.hosts.survey import take_survey


def test_a_seed_gives_the_same_trees_and_another_seed_others() -> None:
    first, again, other = (list(draw_trees("codex", seed=seed, count=20)) for seed in (7, 7, 8))

    assert first == again
    assert first != other
    assert list(draw_trees("codex", seed=7, count=5)) == first[:5]


def test_every_layout_place_text_and_setting_occurs() -> None:
    drawn = {
        kind for host in ("gemini-cli", "codex") for tree in draw_trees(host, seed=1, count=600) for kind in tree.kinds
    }

    assert {*LAYOUTS, *PLACES, *TEXTS, *SETTINGS} - drawn == set()


@pytest.mark.heavy
@pytest.mark.parametrize("host", HOSTS)
def test_a_tree_is_on_disk_as_it_was_drawn(host: str, tmp_path: Path) -> None:
    for number, tree in enumerate([*draw_trees(host, seed=3, count=25), one_name_everywhere(host, below=True)]):
        base = tmp_path / str(number)
        base.mkdir()
        machine = Machine(base)

        cwd = put_tree(tree, machine)

        assert [path for path in tree.skills if not (base / path).is_file()] == [], tree.title
        take_survey(Environment(str(cwd), str(machine.home), tree.env), [host])


def test_one_name_lies_in_every_root_of_a_host() -> None:
    here, below = one_name_everywhere("goose"), one_name_everywhere("copilot-cli", below=True)

    assert len(here.skills) == 7
    assert len(below.skills) == 8
