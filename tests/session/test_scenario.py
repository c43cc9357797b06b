"""The page about one skill in every system is what the code gives today."""

from __future__ import annotations

import os
import re
from tempfile import gettempdir

import pytest
from support import scenario

from skillshelf.config.builtin_profiles import SYSTEMS


def test_the_page_of_the_scenario_is_as_the_code_makes_it() -> None:
    assert scenario.PAGE.read_text(encoding="utf-8") == scenario.page(), "run: python tests/support/scenario.py"


def test_the_scenario_goes_through_every_system_and_every_step() -> None:
    headings = re.sub(r"^```text\n.*?^```\n", "", scenario.page(), flags=re.MULTILINE | re.DOTALL)

    assert re.findall(r"^## (.+)$", headings, re.MULTILINE) == [*SYSTEMS]
    assert re.findall(r"^(\d)\. ", headings, re.MULTILINE) == [*"1234567"] * len(SYSTEMS)


def test_the_page_holds_nothing_of_the_machine_it_was_made_on() -> None:
    page = scenario.page()

    assert os.path.realpath(gettempdir()) not in page
    assert re.findall(r"[0-9a-f]{24}", page) == []


@pytest.mark.req("C-116", "C-118")
@pytest.mark.parametrize("profile", [name for name, row in SYSTEMS.items() if row.reload == "remind"])
def test_a_body_is_sent_once_for_each_version_and_again_when_the_context_lost_it(profile: str) -> None:
    chapter = scenario.page().partition(f"\n## {profile}\n")[2].partition("\n## ")[0]
    steps = re.split(r"^\d\. ", chapter, flags=re.MULTILINE)

    assert ["one line" in step for step in steps[3:]] == [True, False, False, False, False]
    assert ["two lines" in step for step in steps[3:]] == [False, False, True, False, False]
    assert ["The same text as in step 5." in step for step in steps[3:]] == [False, False, False, True, True]
