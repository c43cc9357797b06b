"""The examples of rules: the bad one is found, the good one is not; and what `explain` prints of them."""

from __future__ import annotations

import json

import jsonschema
import pytest
from schemas import SCHEMAS
from support.trees import Machine, write_skill

from skillshelf.config.rule_examples import EXAMPLE_FOLDER, EXAMPLES, example_file, grouped_rules
from skillshelf.config.rules import RULES
from skillshelf.lint.run import check_paths

SHOWN = [rule for rule, example in EXAMPLES.items() if example.part != "place"]


def test_every_rule_has_an_example_and_a_group() -> None:
    assert [rule for rule in RULES if rule not in EXAMPLES] == []
    assert [rule for rule in EXAMPLES if rule not in RULES] == []
    assert sorted(rule for rules in grouped_rules().values() for rule in rules) == sorted(RULES)


@pytest.mark.parametrize("rule", SHOWN)
def test_the_bad_example_gives_the_finding_and_the_good_one_does_not(machine: Machine, rule: str) -> None:
    example = EXAMPLES[rule]
    shelf = machine.shelf()
    found = []
    for text in (example.bad, example.good):
        path = write_skill(machine.repo / "skills", EXAMPLE_FOLDER, example_file(text, example.part))
        found.append([finding.rule for finding in check_paths([str(path)], shelf).findings])

    assert rule in found[0]
    assert rule not in found[1]


# explain ------------------------------------------------------------------------------------------


def test_explain_says_why_how_and_how_to_switch_a_rule_off(machine: Machine) -> None:
    done = machine.run("explain", "description-vague")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("description-vague  warning\n")
    for part in (
        RULES["description-vague"].how_to_fix.split(",")[0],
        "description: Helps with forms.",
        "skillshelf check --ignore description-vague",
        "<!-- skillshelf: ignore description-vague -->",
        "warning in standard",
    ):
        assert part in done.stdout


def test_explain_names_the_profiles_in_which_the_severity_differs(machine: Machine) -> None:
    assert "error in standard; off in mycodeagent, omp\n" in machine.run("explain", "name-directory").stdout


def test_explain_says_that_no_comment_switches_off_a_rule_that_rejects(machine: Machine) -> None:
    out = machine.run("explain", "yaml").stdout

    assert "a file must not vouch for itself" in out
    assert "<!--" not in out


def test_explain_cuts_a_long_example(machine: Machine) -> None:
    assert "... 493 more lines\n" in machine.run("explain", "body-lines").stdout


def test_explain_without_a_rule_lists_all_in_groups(machine: Machine) -> None:
    out = machine.run("explain").stdout

    assert [line for line in out.splitlines() if line in grouped_rules()] == list(grouped_rules())
    assert all(f"  {rule} " in out for rule in RULES)


@pytest.mark.parametrize(("words", "schema"), [(("explain", "bom"), "explain"), (("explain",), "rules")])
def test_explain_has_a_form_for_programs(machine: Machine, words: tuple[str, ...], schema: str) -> None:
    jsonschema.validate(machine.run_json(*words), SCHEMAS[schema])


def test_explain_tells_programs_which_fix_there_is(machine: Machine) -> None:
    rules = {row["rule"]: row for row in machine.run_json("explain")["rules"]}

    assert [rules[name]["fix"] for name in ("bom", "name-directory", "name-type", "description-vague")] == [
        *("safe", "names", "safe", "no")
    ]
    assert (rules["yaml"]["inline"], rules["name-directory"]["inline"]) == (False, True)


def test_explain_of_an_unknown_rule_names_the_nearest_one(machine: Machine) -> None:
    done = machine.run("explain", "description-vage", "--json")

    assert done.returncode == 2
    assert done.stderr == "skillshelf: unknown rule 'description-vage'; did you mean description-vague?\n"
    assert json.loads(done.stdout)["error"]["code"]
