"""What real programs answered about drawn trees, kept in a file, beside what their rows say."""

from __future__ import annotations

import shutil
from argparse import Namespace
from pathlib import Path

import pytest
from compare import Record, Result, asker, compare_tree, drawn_trees, results
from support.host_programs import Answer, Entry

RECORDED = Path(__file__).parent / "recorded"


def results_of(host: str, record: Path, **given: object) -> list[Result]:
    """What a comparison finds that asks nothing."""
    asked = asker(host, Path(), None, Record(record))
    assert asked is not None
    return list(results(asked, Namespace(fixed=False, number=None, **given)))


@pytest.mark.heavy
def test_the_row_of_codelia_says_what_its_resolver_answered_on_every_recorded_tree() -> None:
    found = results_of("codelia", RECORDED / "codelia.tsv", seed=90210, trees=60)

    assert [one for one in found if one.outcome != "right"] == []
    assert len(found) >= 60


def test_an_answer_is_found_again_wherever_the_tree_is(tmp_path: Path) -> None:
    answer = Answer([Entry("deploy", "/one/repo/SKILL.md", "Deploys.", hidden=False)], "told: /one/repo")

    Record(tmp_path / "answers").add("key", answer, Path("/one"))
    again = Record(tmp_path / "answers").answer("key", Path("/two"))

    assert again == Answer([Entry("deploy", "/two/repo/SKILL.md", "Deploys.", hidden=False)], "told: /two/repo")
    assert Record(tmp_path / "answers").answer("other", Path("/two")) is None


@pytest.mark.heavy
def test_a_tree_that_was_not_asked_about_is_left_out_and_a_false_answer_is_found(tmp_path: Path) -> None:
    record = tmp_path / "answers"
    shutil.copy(RECORDED / "codelia.tsv", record)
    asked = asker("codelia", Path(), None, Record(record))
    assert asked is not None
    tree = next(tree for tree in drawn_trees("codelia", 90210, 60) if compare_tree(asked, tree).taken)
    lines = record.read_text().splitlines()
    key = f"codelia {asked.program.version} {tree.digest}\t"
    record.write_text("".join(f"{key}[[], null]\n" for line in lines if line.startswith(key)))

    (found,) = results_of("codelia", record, seed=90210, trees=60)

    assert (found.title, found.outcome) == (tree.title, "wrong")
    assert all(difference.endswith("not listed") for difference in found.differences)


@pytest.mark.parametrize("host", ["codelia"])
def test_a_host_without_a_program_is_skipped(host: str, tmp_path: Path) -> None:
    from support.prompt_server import PromptServer

    assert asker(host, tmp_path, PromptServer()) is None
