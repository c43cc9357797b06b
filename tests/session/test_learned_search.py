"""A search ranks by earlier use where it may, says so, and leaves what it used to the journal and to replay."""

from __future__ import annotations

import json
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support.trees import Machine, write_skill

import skillshelf
from skillshelf import SearchReport, Shelf
from skillshelf.search.usage_history import UsageHistory, usage_path
from skillshelf.search.usage_prior import UsagePrior

QUERY = "prepare the release"


def put(machine: Machine, name: str, description: str, *, where: Path | None = None) -> Path:
    """A skill of the user, or elsewhere."""
    root = (where or machine.home) / ".agents" / "skills"
    return write_skill(root, name, f"---\nname: {name}\ndescription: {description}\n---\nDo it.\n")


@pytest.fixture
def skills(machine: Machine) -> Machine:
    """A machine on which two skills fit a query nearly as well."""
    put(machine, "notes", "Prepare the release: notes for each release.")
    put(machine, "checks", "Prepare the checks that come before a release.")
    put(machine, "deploy", "Deploys a service.")
    return machine


def names(report: SearchReport) -> list[str]:
    return [result.skill.name for result in report.results]


def use(shelf: Shelf, name: str, times: int = 3, query: str = QUERY) -> None:
    """Search and load, as a model does."""
    with shelf.session(memory="none") as session:
        for _ in range(times):
            session.call("skill_search", {"query": query})
            assert session.call("skill_load", {"name": name}).ok


def history(machine: Machine) -> Path:
    return machine.home / ".local" / "state" / "skillshelf" / "usage.sqlite"


def test_a_skill_that_was_loaded_after_a_search_ranks_higher_in_the_next_and_says_why(skills: Machine) -> None:
    shelf = skills.shelf(learn=True)
    before = shelf.search(QUERY)
    use(shelf, "checks")

    after = shelf.search(QUERY)

    assert names(before)[:2] == ["notes", "checks"]
    assert names(after)[:2] == ["checks", "notes"]
    assert after.results[0].why[-1] == "loaded 3 times after similar searches"
    assert not any("loaded" in why for why in after.results[1].why)
    assert names(shelf.search("deploy a service")) == names(skills.shelf().search("deploy a service"))


def test_without_a_history_nothing_changes_not_even_a_score(skills: Machine) -> None:
    plain, learning = skills.shelf(), skills.shelf(learn=True)
    queries = (QUERY, "deploy", "checks", "service release notes", "nothing of this kind")

    assert [learning.search(query).to_dict() for query in queries] == [
        plain.search(query).to_dict() for query in queries
    ]
    assert learning.search("deploy a service").prior is None


def test_a_shelf_does_not_learn_unless_it_is_told_to(skills: Machine) -> None:
    skills.configure("[search]\nlearn = true\n")
    use(skills.shelf(), "checks")

    assert not history(skills).exists()


@pytest.mark.parametrize(
    ("learn", "said", "learns"),
    [
        (True, "", True),
        (True, "search.learn = true", True),
        (True, "search.learn = false", False),
        (None, "", False),
        (None, "search.learn = true", True),
        (None, "[search]\nlearn = false", False),
        (False, "search.learn = true", False),
    ],
)
def test_who_may_learn_is_decided_by_the_caller_and_the_users_file(
    skills: Machine, learn: bool | None, said: str, learns: bool
) -> None:
    skills.configure(f"{said}\n")

    assert skills.shelf(learn=learn).learn is learns


def test_a_project_cannot_make_a_search_learn(skills: Machine) -> None:
    (skills.repo / "skillshelf.toml").write_text("[search]\nlearn = true\n")
    shelf = skills.shelf(learn=None, trust="all")

    assert not shelf.learn
    assert [warning.message for warning in shelf.settings.warnings] == [
        "`search.learn` counts in the user's own file only"
    ]


@pytest.mark.parametrize("profile", ["strict", "codelia", "swiftagent", "mycodeagent", "rip", "omp"])
def test_other_profiles_rank_by_words_alone(skills: Machine, profile: str) -> None:
    use(skills.shelf(learn=True), "checks")

    shelf = skills.shelf(profile, learn=True)

    assert not shelf.learn
    assert shelf.search(QUERY).prior is None


def test_a_skill_that_is_not_trusted_neither_counts_nor_profits(skills: Machine) -> None:
    put(skills, "strange", "Prepare the release, prepare the release.", where=skills.repo)
    strange = next(skill for skill in skills.shelf().catalog.skills if skill.name == "strange")
    trusting, asking = skills.shelf(learn=True), skills.shelf(learn=True, trust="ask")
    asking.search(QUERY)
    asking.load("strange")
    assert asking.usage is not None
    assert not asking.usage.summary().skills

    trusting.search(QUERY)
    trusting.load("strange")
    assert [one.path for one in asking.usage.summary().skills] == [strange.real_path]
    report = asking.search(QUERY)
    assert report.prior is None
    assert report.to_dict() == skills.shelf(trust="ask").search(QUERY).to_dict()


def test_two_links_to_one_skill_are_one_skill(skills: Machine) -> None:
    elsewhere = skills.base / "elsewhere"
    shutil.move(skills.home / ".agents/skills/checks", elsewhere)
    (skills.home / ".agents/skills/checks").symlink_to(elsewhere)
    shelf = skills.shelf(learn=True)
    use(shelf, "checks", times=1)

    assert shelf.usage is not None
    assert [one.path for one in shelf.usage.summary().skills] == [str(elsewhere / "SKILL.md")]
    assert names(shelf.search(QUERY))[0] in ("checks", "notes")
    assert shelf.search(QUERY).prior is not None


def test_what_a_host_preloads_or_a_reminder_is_no_use(skills: Machine) -> None:
    shelf = skills.shelf(learn=True)
    shelf.search(QUERY)
    with shelf.session(preload=["checks"]):
        pass

    assert shelf.usage is not None
    assert not shelf.usage.summary().skills


def test_a_damaged_history_costs_one_note_and_no_result(skills: Machine) -> None:
    use(skills.shelf(learn=True), "checks")
    history(skills).write_bytes(b"not a database" * 500)

    report = skills.shelf(learn=True).search(QUERY)

    assert names(report) == names(skills.shelf().search(QUERY))
    (note,) = report.notes
    assert note.startswith("earlier use does not count: ")
    assert "not a history of use" in note
    assert history(skills).read_bytes().startswith(b"not a database")
    skills.shelf(learn=True).load("checks")


def test_a_history_that_can_be_read_alone_still_ranks(skills: Machine) -> None:
    use(skills.shelf(learn=True), "checks")
    # SQLite writes no journal through a link, and so nothing.
    history(skills).with_name("usage.sqlite-journal").symlink_to(skills.base / "elsewhere")

    report = skills.shelf(learn=True).search(QUERY)

    assert "loaded 3 times after similar searches" in report.results[0].why
    (note,) = report.notes
    assert note.startswith("a load after this search will not count: ")
    assert not (skills.base / "elsewhere").exists()


def test_a_history_that_another_process_holds_holds_up_no_other_search(skills: Machine) -> None:
    shelf = skills.shelf(learn=True)
    use(shelf, "checks")
    asked, may_answer = threading.Event(), threading.Event()

    class HeldHistory(UsageHistory):
        """A history whose first question waits, as it does for the lock of another process."""

        def prior(self) -> UsagePrior | None:
            if not asked.is_set():
                asked.set()
                assert may_answer.wait(60)
            return super().prior()

    shelf._usage = HeldHistory(str(history(skills)))
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(shelf.search, QUERY)
        assert asked.wait(60)
        found = shelf.search(QUERY)
        assert not waiting.done()
        may_answer.set()

    assert names(waiting.result()) == names(found)


# The journal --------------------------------------------------------------------------------------


def recorded(machine: Machine, *, keep: bool) -> Path:
    """A journal of a search that ranks by earlier use, and of one that does not."""
    shelf = machine.shelf(learn=True)
    use(shelf, "checks")
    journal = machine.base / "run.jsonl"
    with shelf.session(journal=journal, keep=keep) as session:
        session.call("skill_search", {"query": QUERY})
        session.call("skill_search", {"query": "deploy a service"})
        session.search(QUERY)
    return journal


def ends(journal: Path) -> list[dict[str, Any]]:
    events = [json.loads(line) for line in journal.read_text().splitlines()]
    return [event for event in events if event["type"] == "tool_ended"]


def replayed(machine: Machine, journal: Path, **options: Any) -> skillshelf.Replay:
    return skillshelf.replay(journal, home=machine.home, env={}, trust="all", **options)


def test_the_end_of_a_search_has_the_digest_of_what_earlier_use_added(skills: Machine) -> None:
    journal = recorded(skills, keep=True)
    first, other, third = [end.get("prior") for end in ends(journal)]
    contents = skills.base / "run.jsonl.d" / "sha256"

    assert first is not None
    assert (first, other) == (third, None)
    kept = json.loads((contents / first.removeprefix("sha256:")).read_text())
    assert [Path(path).parent.name for path in kept["bonuses"]] == ["checks"]
    assert set(kept) == {"version", "bonuses"}


@pytest.mark.parametrize("against", ["kept", "disk"])
def test_replay_uses_the_recorded_prior_and_not_that_of_today(skills: Machine, against: Any) -> None:
    journal = recorded(skills, keep=True)
    history(skills).unlink()

    assert replayed(skills, journal, against=against).differences == ()
    assert not history(skills).exists()


def test_replay_in_another_folder_uses_the_prior_for_the_skills_there(skills: Machine, tmp_path: Path) -> None:
    put(skills, "checks", "Prepare the checks that come before a release.", where=skills.repo)
    journal = recorded(skills, keep=True)
    moved = tmp_path / "moved"
    shutil.copytree(skills.repo, moved)

    assert "prior" in ends(journal)[0]
    assert replayed(skills, journal, against="disk", cwd=moved).differences == ()


@pytest.mark.parametrize("keep", [False, True])
def test_a_prior_that_is_not_there_is_called_missing_and_hides_no_other_difference(skills: Machine, keep: bool) -> None:
    journal = recorded(skills, keep=keep)
    if keep:
        digest = ends(journal)[0]["prior"].removeprefix("sha256:")
        (skills.base / "run.jsonl.d" / "sha256" / digest).unlink()

    found = replayed(skills, journal)
    assert [(one.kind, one.detail.partition(":")[0]) for one in found.differences] == [
        ("prior-missing", "prior-missing")
    ] * 2
    put(skills, "another", "Deploys a service, too.")
    found = replayed(skills, journal, against="disk")
    assert {one.kind for one in found.differences} == {"event"}


def test_a_replay_adds_nothing_to_the_history(skills: Machine) -> None:
    journal = recorded(skills, keep=True)
    before = history(skills).read_bytes()
    skills.configure("search.learn = true\n")

    replayed(skills, journal, against="disk")

    assert history(skills).read_bytes() == before


def test_the_history_is_the_users_and_moves_with_the_home(skills: Machine) -> None:
    assert usage_path(skills.shelf().environment) == str(history(skills))
