"""For clients without the extension: tools, resources, prompts, completion and instructions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.mcps import ERAS, INVALID_PARAMS, ask, client_of, code_of, run, text_of
from support.trees import Machine, write_skill

import skillshelf
from skillshelf.catalog.tree import skill_tree
from skillshelf.session.permissions import NAMES_OF_TOOLS


def user_root(machine: Machine) -> Path:
    return machine.home / ".agents/skills"


@pytest.mark.parametrize("era", ERAS)
def test_the_tools_are_the_same_for_every_client_and_are_marked_read_only(machine: Machine, era: str) -> None:
    async def check() -> None:
        async with client_of(machine, era) as client:
            before = (await client.list_tools()).tools
            write_skill(user_root(machine), "alpha")
            after = (await client.list_tools()).tools

        assert [tool.name for tool in before] == ["skill_search", "skill_load", "skill_read", "skill_list"]
        assert [tool.model_dump() for tool in after] == [tool.model_dump() for tool in before]
        for tool in after:
            assert tool.annotations is not None
            assert (tool.annotations.read_only_hint, tool.annotations.destructive_hint) == (True, False)
            assert tool.title
            assert tool.description

    run(check)


@pytest.mark.parametrize("era", ERAS)
def test_the_first_search_waits_for_the_whole_index_and_reports_its_progress(machine: Machine, era: str) -> None:
    for number in range(120):
        text = " ".join(f"word{number}x{word}" for word in range(600))
        description = f"---\nname: skill-{number}\ndescription: Skill {number}.\n---\n{text}\n"
        write_skill(user_root(machine), f"skill-{number}", description)
    reports: list[tuple[float, float | None, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        reports.append((progress, total, message))

    async def check() -> None:
        async with client_of(machine, era, progress_seconds=0.001) as client:
            found = await client.call_tool("skill_search", {"query": "word119x3"}, progress_callback=note)
            after = len(reports)
            await client.call_tool("skill_search", {"query": "word1x3"}, progress_callback=note)

        assert [hit["name"] for hit in (found.structured_content or {})["results"]] == ["skill-119"]
        done = [report[0] for report in reports]
        assert done == sorted(set(done))
        assert {report[1:] for report in reports} == {(120, "indexing skills")}
        assert len(reports) == after

    run(check)


@pytest.mark.parametrize(
    ("profile", "words"),
    [
        ("standard", "look with skill_search for a skill that fits, load it with skill_load and"),
        ("codelia", "look with skill_search for a skill that fits, load it with skill_load and"),
        ("swiftagent", "look with skill_list for a skill that fits, load it with activate_skill and"),
        ("mycodeagent", "look with skill_list for a skill that fits, load it with Skill and"),
        ("omp", "look with skill_list for a skill that fits, load it with read and"),
    ],
)
def test_the_instructions_name_the_tools_of_the_profile(machine: Machine, profile: str, words: str) -> None:
    async def check() -> None:
        async with client_of(machine, "older", profile=profile) as client:
            offered = [tool.name for tool in (await client.list_tools()).tools]
            assert words in (client.instructions or "")
            assert all(word in offered for word in words.split() if word in NAMES_OF_TOOLS)

    run(check)


def test_scripts_can_be_run_only_where_the_policy_can_allow_it(machine: Machine) -> None:
    write_skill(user_root(machine), "alpha")
    rule = {"allow": [{"tool": "skill_run", "skill_name": "alpha"}]}

    async def check() -> None:
        async with client_of(machine) as client:
            assert await code_of(client, "tools/call", name="skill_run", arguments={}) == INVALID_PARAMS
        async with client_of(machine, policy=rule) as client:
            (tool,) = [tool for tool in (await client.list_tools()).tools if tool.name == "skill_run"]
            assert tool.annotations is not None
            assert (tool.annotations.read_only_hint, tool.annotations.destructive_hint) == (False, True)
            refused = await client.call_tool("skill_run", {"name": "alpha", "script": "none.sh"})
            assert refused.is_error

    run(check)


def test_a_model_finds_lists_loads_and_reads(machine: Machine) -> None:
    folder = write_skill(user_root(machine), "alpha").parent
    (folder / "page.md").write_text("the page\n")

    async def check() -> None:
        async with client_of(machine) as client:
            found = await client.call_tool("skill_search", {"query": "alpha"})
            listed = await client.call_tool("skill_list", {})
            loaded = [await text_of(client, "skill_load", name=name) for name in ("alpha", "skill://alpha/SKILL.md")]
            read = await text_of(client, "skill_read", uri="skill://alpha/page.md")

        row = {
            "name": "alpha",
            "description": "Does alpha things. Use when alpha is asked for.",
            "uri": "skill://alpha/SKILL.md",
            "scope": "user",
        }
        assert found.structured_content == {
            "query": "alpha",
            "count": 1,
            "truncated": False,
            "confidence": 1.0,
            "weak": False,
            "notes": [],
            "results": [{**row, "score": 900, "reason": "exact_name", "why": ["its name is the query"], "copies": []}],
        }
        assert listed.structured_content == {"skills": [row], "total": 1, "held_back": 0}
        # The server cannot know what its client still has: the second load is as whole as the first.
        assert loaded[0] == loaded[1]
        assert "# alpha" in loaded[1]
        assert "page.md" in loaded[1]
        assert read == "the page\n"

    run(check)


def test_a_listing_for_a_model_has_pages(machine: Machine) -> None:
    for number in range(60):
        write_skill(user_root(machine), f"skill-{number:02}")

    async def check() -> None:
        async with client_of(machine) as client:
            first = await client.call_tool("skill_list", {})
            cursor = first.structured_content["next_page"]
            second = await client.call_tool("skill_list", {"page": cursor})
            wrong = [await client.call_tool("skill_list", given) for given in ({"page": "x"}, {"page": 1}, {"x": 1})]

        names = [row["name"] for page in (first, second) for row in page.structured_content["skills"]]
        assert names == [f"skill-{number:02}" for number in range(60)]
        assert "next_page" not in second.structured_content
        assert all(result.is_error for result in wrong)

    run(check)


@pytest.mark.parametrize("method", ["tools/call", "skills/list", "resources/list"])
def test_a_listing_records_a_changed_catalog_and_nothing_else(machine: Machine, method: str) -> None:
    journal = machine.base / "run.jsonl"
    write_skill(user_root(machine), "alpha")

    async def check() -> None:
        given = {"name": "skill_list", "arguments": {}} if method == "tools/call" else {}
        async with client_of(machine, journal=journal, refresh_seconds=0) as client:
            await ask(client, method, **given)
            write_skill(user_root(machine), "beta")
            await ask(client, method, **given)
            await ask(client, method, **given)

    run(check)
    events = [json.loads(line) for line in journal.read_text().splitlines()]
    assert [event["type"] for event in events] == [
        *("session_started", "skill_catalog_updated", "skill_catalog_updated", "session_ended")
    ]
    assert [event["count"] for event in events[1:3]] == [1, 2]


MISTAKES: dict[str, tuple[str, dict[str, Any], str]] = {
    "a near miss": ("skill_load", {"name": "alpa"}, "did you mean alpha?"),
    "no name": ("skill_load", {}, "name or path is required"),
    "a strange parameter": ("skill_load", {"nam": "alpha"}, "it has name, path, args"),
    "a wrong type": ("skill_search", {"query": 5}, "`query` must be text"),
    "a path that climbs": ("skill_read", {"uri": "skill://alpha/../x"}, "Path traversal (..) is not allowed"),
    "no such file": ("skill_read", {"uri": "skill://alpha/none.md"}, "none.md"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_of_a_model_is_a_result_that_says_what_to_do(machine: Machine, name: str) -> None:
    write_skill(user_root(machine), "alpha")
    tool, arguments, words = MISTAKES[name]

    async def check() -> None:
        async with client_of(machine) as client:
            result = await client.call_tool(tool, arguments)
            assert result.is_error
            assert words in await text_of(client, tool, **arguments)

    run(check)


def test_skills_of_an_untrusted_project_are_hidden_and_counted(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "stranger")

    async def check() -> None:
        async with client_of(machine, "older") as client:
            instructions = client.instructions or ""
            page = await ask(client, "skills/list")
            codes = [
                await code_of(client, method, uri="skill://stranger/SKILL.md")
                for method in ("skills/get", "resources/read")
            ]
            texts = [
                await text_of(client, "skill_search", query="stranger"),
                await text_of(client, "skill_list"),
                await text_of(client, "skill_load", name="stranger"),
            ]

        assert page["skills"] == []
        assert codes == [INVALID_PARAMS] * 2
        assert "1 more skill of this project is hidden" in instructions
        assert "skillshelf trust" in instructions
        assert all("skillshelf trust" in text for text in texts)

    run(check)


def test_a_denied_skill_is_in_no_listing(machine: Machine) -> None:
    write_skill(user_root(machine), "alpha")
    write_skill(user_root(machine), "secret")

    async def check() -> None:
        async with client_of(machine, policy={"deny": [{"tool": "skill_load", "skill_name": "secret"}]}) as client:
            listed = (await ask(client, "skills/list"))["skills"]
            named = await client.call_tool("skill_list", {})
            codes = [
                await code_of(client, method, uri="skill://secret/SKILL.md")
                for method in ("skills/get", "resources/read")
            ]

        assert [skill["uri"] for skill in listed] == ["skill://alpha/SKILL.md"]
        assert [row["name"] for row in named.structured_content["skills"]] == ["alpha"]
        assert codes == [INVALID_PARAMS] * 2

    run(check)


@pytest.mark.parametrize("member", ["name", "path", "tree"])
def test_a_rule_about_a_name_a_place_or_files_is_the_same_for_a_client(machine: Machine, member: str) -> None:
    folder = write_skill(machine.repo / ".agents/skills", "stranger").parent
    digest = skill_tree(str(folder)).digest
    rule = {"tool": "skill_load"} | {
        "name": {"skill_name": "stranger"},
        "path": {"path": str(machine.repo)},
        "tree": {"tree": str(digest)},
    }[member]

    async def check() -> None:
        async with client_of(machine, policy={"allow": [rule]}) as client:
            allowed = await client.call_tool("skill_load", {"name": "Stranger"})
        denial = {"deny": [rule], "allow": [{"tool": "skill_load", "path": "/"}]}
        async with client_of(machine, policy=denial) as client:
            denied = await client.call_tool("skill_load", {"name": "STRANGER"})

        assert bool(allowed.is_error) is (member == "name")
        assert denied.is_error

    run(check)


def test_few_skills_are_prompts_and_many_are_not(machine: Machine) -> None:
    write_skill(user_root(machine), "alpha")
    write_skill(
        user_root(machine),
        "by-hand",
        "---\nname: by-hand\ndescription: Only by hand.\ndisable-model-invocation: true\n---\n# By hand: $ARGUMENTS\n",
    )

    async def check() -> None:
        async with client_of(machine) as client:
            prompts = (await client.list_prompts()).prompts
            got = (await client.get_prompt("by-hand", {"args": "v2"})).messages[0]
            codes = [
                await code_of(client, "prompts/get", name="none"),
                await code_of(client, "prompts/get", name="alpha", arguments={"nonsense": "x"}),
            ]
        for number in range(30):
            write_skill(user_root(machine), f"skill-{number}")
        async with client_of(machine) as client:
            many = (await client.list_prompts()).prompts

        assert [prompt.name for prompt in prompts] == ["alpha", "by-hand"]
        assert got.role == "user"
        assert "# By hand: v2" in got.content.text  # type: ignore[union-attr]
        assert codes == [INVALID_PARAMS] * 2
        assert many == []

    run(check)


def test_names_and_paths_can_be_completed(machine: Machine) -> None:
    folder = write_skill(user_root(machine), "alpha").parent
    (folder / "page.md").write_text("page")
    write_skill(user_root(machine), "alps")
    write_skill(user_root(machine), "beta")

    async def completed(argument: dict[str, str], **context: object) -> list[str]:
        async with client_of(machine) as client:
            (template,) = (await ask(client, "resources/templates/list"))["resourceTemplates"]
            ref = {"type": "ref/resource", "uri": template["uriTemplate"]}
            result = await ask(client, "completion/complete", ref=ref, argument=argument, **context)
            return list(result["completion"]["values"])

    async def check() -> None:
        assert await completed({"name": "name", "value": "al"}) == ["alpha", "alps"]
        known = {"context": {"arguments": {"name": "alpha"}}}
        assert await completed({"name": "path", "value": "p"}, **known) == ["page.md"]
        assert await completed({"name": "other", "value": ""}) == []

    run(check)


def test_a_remote_client_does_not_see_the_paths_of_skills(machine: Machine) -> None:
    write_skill(user_root(machine), "alpha")
    write_skill(machine.repo / ".agents/skills", "stranger")
    (user_root(machine) / "gone").mkdir()

    async def everything(show_paths: bool) -> str:
        async with client_of(machine, "older", show_paths=show_paths) as client:
            answers = [
                await client.call_tool(tool, arguments)
                for tool, arguments in (
                    ("skill_search", {"query": "alpha"}),
                    ("skill_list", {}),
                    ("skill_load", {"name": "alpha"}),
                    ("skill_load", {"path": str(user_root(machine) / "gone")}),
                    ("skill_load", {"name": "stranger"}),
                    ("skill_read", {"uri": "skill://alpha/SKILL.md"}),
                    ("skill_read", {"uri": "skill://alpha/none"}),
                )
            ]
            prompt = await client.get_prompt("alpha")
            texts = [answer.model_dump_json() for answer in answers]
            return "\n".join([client.instructions or "", prompt.model_dump_json(), *texts])

    async def check() -> None:
        hidden, shown = await everything(show_paths=False), await everything(show_paths=True)
        assert str(machine.base) in shown
        assert str(machine.base) not in hidden
        assert 'directory=\\"skill://alpha\\"' in hidden

    run(check)


def test_a_read_by_the_protocol_is_recorded_as_a_read_by_a_tool_and_can_be_replayed(machine: Machine) -> None:
    folder = write_skill(user_root(machine), "alpha").parent
    (folder / "page.md").write_text("page")
    (folder / "large.txt").write_text("x" * 2_000_000)
    journals = [machine.base / "resource.jsonl", machine.base / "tool.jsonl"]

    async def check() -> None:
        async with client_of(machine, journal=journals[0]) as client:
            await ask(client, "resources/read", uri="skill://alpha/page.md")
        async with client_of(machine, journal=journals[1]) as client:
            await text_of(client, "skill_read", uri="skill://alpha/page.md")
        async with client_of(machine, journal=machine.base / "large.jsonl") as client:
            await ask(client, "resources/read", uri="skill://alpha/large.txt")
            await text_of(client, "skill_load", name="alpha")
            await text_of(client, "skill_load", name="alpha")

    run(check)
    changing = {"session", "ts_ms", "prev", "sum"}
    events = [
        [
            {key: value for key, value in json.loads(line).items() if key not in changing}
            for line in journal.read_text().splitlines()
        ]
        for journal in journals
    ]
    assert events[0] == events[1]
    replayed = skillshelf.replay(machine.base / "large.jsonl", home=machine.home, env={"HOME": str(machine.home)})
    assert replayed.differences == ()


def test_a_search_that_may_wait_for_something_has_no_turn_that_others_wait_for(machine: Machine) -> None:
    class Slow:
        def score(self, query: str, skills: Sequence[Any]) -> Sequence[float]:
            return [0.0] * len(skills)

    write_skill(user_root(machine), "deploy")
    shelf = machine.shelf("standard")
    brief = {"before the index": shelf.is_search_brief}
    shelf.prepare_search()
    brief["with the index"] = shelf.is_search_brief
    shelf.scorer = Slow()
    brief["with a scorer"] = shelf.is_search_brief
    shelf.scorer = None
    write_skill(user_root(machine), "review")
    shelf.refresh()
    brief["after a change"] = shelf.is_search_brief
    assert brief == {
        "before the index": False,
        "with the index": True,
        "with a scorer": False,
        "after a change": False,
    }
