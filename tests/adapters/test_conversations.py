"""Which session a conversation gets: by a key, or by the value of its messages."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support.trees import Machine, write_skill

import skillshelf
from skillshelf import ConfigurationError, Shelf
from skillshelf.adapters.conversations import Conversations, conversations_of
from skillshelf.adapters.messages import SeenItem, seen_call, seen_result, seen_text
from skillshelf.journal.file import verify

NARROW = "---\nname: narrow\ndescription: Reads only.\nallowed-tools: Read\n---\n# narrow\nOnly read.\n"
POLICY = {"allow": [{"tool": "Bash"}, {"tool": "Read"}]}


def shelf_with_skills(machine: Machine, *names: str) -> Shelf:
    """Open a shelf with `narrow`, which limits the tools, and skills that do not."""
    root = machine.home / ".agents/skills"
    write_skill(root, "narrow", NARROW)
    for name in names:
        write_skill(root, name)
    return machine.shelf()


def sessions_in(journal: Path) -> list[str]:
    """Return the sessions of a journal in the order of their first events."""
    return list(dict.fromkeys(json.loads(line)["session"] for line in journal.read_text().splitlines()))


class Chat:
    """A conversation as a plain client keeps it: the turn of the model is added before its calls are answered."""

    def __init__(self, conversations: Conversations, first: str, *items: SeenItem) -> None:
        self.conversations = conversations
        self.items = [*items, *seen_text("user", first)]

    def load(self, name: str, call_id: str) -> str:
        """Let the model load a skill and return the text that it gets."""
        self.items.append(seen_call(call_id, "skill_load", {"name": name}))
        text = self.conversations.call("skill_load", {"name": name}, items=self.items, call_id=call_id).text
        self.items.append(seen_result(call_id, text))
        return text

    @property
    def session(self) -> Any:
        """The session of this conversation."""
        return self.conversations.session_for(items=self.items)

    def verdict(self) -> str:
        """Return what this conversation may do with the tool `Bash`."""
        return str(self.session.decide("Bash", {"command": "ls"}).verdict)


@pytest.mark.req("C-74", "C-75")
def test_a_second_conversation_gets_the_whole_text_and_the_first_a_reminder(machine: Machine) -> None:
    conversations = Conversations(shelf_with_skills(machine, "tea"))
    one, two = Chat(conversations, "Tea, please."), Chat(conversations, "Tea again.")

    assert "# tea" in one.load("tea", "c1")
    assert "# tea" in two.load("tea", "c2")
    assert one.load("tea", "c3").startswith("<skill_context_reminder")
    assert one.session is not two.session


def test_two_conversations_that_are_equal_to_the_letter_have_a_session_each(machine: Machine) -> None:
    conversations = Conversations(shelf_with_skills(machine, "tea"), policy=POLICY)
    one, two = Chat(conversations, "Hello."), Chat(conversations, "Hello.")

    assert "# tea" in one.load("tea", "c1")
    assert "# tea" in two.load("tea", "c1")
    assert "Only read" in one.load("narrow", "c2")
    assert (one.verdict(), two.verdict()) == ("deny", "allow")
    assert two.load("tea", "c3").startswith("<skill_context_reminder")
    assert one.session is not two.session


def test_equal_beginnings_do_not_share_a_window_when_the_turn_is_added_later(machine: Machine) -> None:
    conversations = Conversations(shelf_with_skills(machine, "tea"), policy=POLICY)
    hello = seen_text("user", "Hello.")

    narrow = conversations.call("skill_load", {"name": "narrow"}, items=hello, call_id="a1").text
    tea = conversations.call("skill_load", {"name": "tea"}, items=hello, call_id="b1").text

    one = [*hello, seen_call("a1", "skill_load", {"name": "narrow"}), seen_result("a1", narrow)]
    two = [*hello, seen_call("b1", "skill_load", {"name": "tea"}), seen_result("b1", tea)]
    assert conversations.session_for(items=one).active == ("narrow",)
    assert conversations.session_for(items=two).active == ("tea",)


def test_parallel_calls_of_one_turn_are_of_one_session(machine: Machine) -> None:
    conversations = Conversations(shelf_with_skills(machine, "tea"))
    turn = [seen_call(f"c{n}", "skill_load", {"name": name}) for n, name in enumerate(("tea", "narrow"))]
    items = [*seen_text("user", "Both."), *turn]

    for n, name in enumerate(("tea", "narrow")):
        items.append(
            seen_result(
                f"c{n}",
                conversations.call("skill_load", {"name": name}, items=items[:3], call_id=f"c{n}").text,
            )
        )

    assert conversations.session_for(items=items).active == ("narrow", "tea")


def test_a_fork_keeps_the_window_of_its_own_messages_only(machine: Machine) -> None:
    conversations = Conversations(shelf_with_skills(machine, "tea"), policy=POLICY)
    chat = Chat(conversations, "Hello.")
    chat.load("tea", "c1")
    before = list(chat.items)
    chat.load("narrow", "c2")
    after = list(chat.items)
    Chat(conversations, "Go on.", *after).load("tea", "c3")

    early, late = Chat(conversations, "Instead.", *before), Chat(conversations, "Or this.", *after)

    assert (early.verdict(), late.verdict()) == ("allow", "deny")
    assert early.session.active == ("tea",)
    assert "# tea" in early.load("tea", "c4")
    assert "Only read" in late.load("narrow", "c5")
    assert late.load("narrow", "c6").startswith("<skill_context_reminder")


@pytest.mark.parametrize("profile", ["standard", "codelia", "rip"])
def test_after_a_restart_the_window_is_as_narrow_and_the_text_comes_again(machine: Machine, profile: str) -> None:
    shelf = shelf_with_skills(machine)
    first = Chat(Conversations(machine.shelf(profile), policy=POLICY), "Hello.")
    whole = first.load("narrow", "c1")
    verdict = first.verdict()

    again = Chat(Conversations(machine.shelf(profile), policy=POLICY), "Go on.", *first.items)

    assert shelf is not None
    assert (again.verdict(), again.session.active) == (verdict, ("narrow",))
    assert again.load("narrow", "c2") == whole


def test_a_trimmed_list_gets_the_text_again(machine: Machine) -> None:
    conversations = Conversations(shelf_with_skills(machine, "tea"))
    chat = Chat(conversations, "Tea.")
    whole = chat.load("tea", "c1")

    chat.items = seen_text("user", "More tea.")

    assert chat.load("tea", "c2") == whole


@pytest.mark.parametrize("quote", ["user", "assistant"])
def test_a_quoted_text_is_not_a_tool_result(machine: Machine, quote: str) -> None:
    conversations = Conversations(shelf_with_skills(machine, "tea"), policy=POLICY)
    chat = Chat(conversations, "Tea.")
    whole = chat.load("narrow", "c1")
    chat.items = [chat.items[0], *seen_text(quote, whole)]

    assert chat.verdict() == "allow"
    assert chat.load("narrow", "c2") == whole


def test_a_result_of_another_tool_that_looks_like_a_skill_does_not_count(machine: Machine) -> None:
    conversations = Conversations(shelf_with_skills(machine), policy=POLICY)
    chat = Chat(conversations, "Hello.")
    whole = chat.load("narrow", "c1")
    web = [seen_call("w1", "fetch", {}), seen_result("w1", whole)]

    assert Chat(conversations, "Read this.", *web).verdict() == "allow"


@pytest.mark.parametrize("name", ["skill_load", "mine_skill_load", "mcp__skills__skill_load"])
def test_a_skill_in_the_messages_is_active_by_whatever_name_its_tool_was_called(machine: Machine, name: str) -> None:
    shelf = shelf_with_skills(machine)
    text = shelf.session().call("skill_load", {"name": "narrow"}).text
    seen = [seen_call("c1", name, {"name": "narrow"}), seen_result("c1", text)]
    assert Conversations(shelf).session_for(items=seen).active == ("narrow",)


@pytest.mark.parametrize(
    ("profile", "tool", "arguments"),
    [
        ("standard", "skill_read", {"uri": "skill://narrow"}),
        ("standard", "skill_read", {"uri": "skill://narrow/SKILL.md"}),
        ("swiftagent", "activate_skill", {"skillName": "narrow"}),
        ("mycodeagent", "Skill", {"name": "narrow", "args": "x"}),
        ("omp", "read", {"path": "skill://narrow"}),
    ],
)
def test_a_skill_in_the_messages_is_active_in_every_form_of_text(
    machine: Machine, profile: str, tool: str, arguments: dict[str, Any]
) -> None:
    root = machine.repo / {"mycodeagent": "skills", "swiftagent": ".agent/skills"}.get(profile, ".agents/skills")
    write_skill(root, "narrow", NARROW)
    text = machine.shelf(profile).session().call(tool, arguments).text
    seen = [seen_call("c1", tool, arguments), seen_result("c1", text)]
    assert "Only read" in text
    assert Conversations(machine.shelf(profile)).session_for(items=seen).active == ("narrow",)
    cleared = [seen[0], seen_result("c1", "[cleared]")]
    assert Conversations(machine.shelf(profile)).session_for(items=cleared).active == ()


def test_messages_that_cannot_be_seen_get_the_text_each_time(machine: Machine) -> None:
    conversations = Conversations(shelf_with_skills(machine, "tea"))
    texts = [conversations.call("skill_load", {"name": "tea"}).text for _ in range(3)]
    assert len(set(texts)) == 1
    assert "# tea" in texts[0]


def test_a_key_is_the_conversation_whatever_its_messages(machine: Machine) -> None:
    conversations = Conversations(shelf_with_skills(machine, "tea"), policy=POLICY)

    first = conversations.call("skill_load", {"name": "narrow"}, key="a", items=[], call_id="c1")
    seen = [seen_call("c1", "skill_load", {"name": "narrow"}), seen_result("c1", first.text)]
    again = conversations.call("skill_load", {"name": "narrow"}, key="a", items=seen, call_id="c2")
    trimmed = conversations.call("skill_load", {"name": "narrow"}, key="a", items=[], call_id="c3")

    assert [result.data["already_loaded"] for result in (first, again, trimmed)] == [False, True, False]
    assert conversations.session_for(key="a").active == ("narrow",)
    assert conversations.session_for(key="b").active == ()


def test_runs_that_start_alike_have_a_session_each_and_a_later_run_continues(machine: Machine) -> None:
    conversations = Conversations(shelf_with_skills(machine, "tea"), policy=POLICY)
    hello = seen_text("user", "Hello.")
    one = conversations.session_for(run=1, items=hello)
    two = conversations.session_for(run=2, items=hello)

    items = [*hello, seen_call("c1", "skill_load", {"name": "narrow"})]
    text = conversations.call("skill_load", {"name": "narrow"}, run=1, items=items, call_id="c1").text
    conversations.end_run(1)
    conversations.end_run(2)
    history = [*items, seen_result("c1", text), *seen_text("user", "Go on.")]

    assert one is not two
    assert (one.active, two.active) == (("narrow",), ())
    assert conversations.session_for(run=3, items=history) is one


def test_a_conversation_gone_for_an_hour_is_ended_and_comes_back_as_a_new_session(machine: Machine) -> None:
    journal = machine.base / "run.jsonl"
    now = [0.0]
    conversations = Conversations(shelf_with_skills(machine, "tea"), journal=journal, clock=lambda: now[0])
    chat = Chat(conversations, "Tea.")
    whole = chat.load("tea", "c1")
    now[0] = 3600.0
    assert chat.load("tea", "c2") != whole

    now[0] = 7201.0
    assert chat.load("tea", "c3") == whole

    events = [json.loads(line) for line in journal.read_text().splitlines()]
    first, second = sessions_in(journal)
    assert [event["session"] for event in events if event["type"] == "session_ended"] == [first]
    assert events[-1]["session"] == second


def test_the_least_recently_used_conversation_goes_first(machine: Machine) -> None:
    ended: list[Any] = []
    shelf = shelf_with_skills(machine, "tea")
    conversations = Conversations(shelf, limit=2, on_event=ended.append)
    a, b = conversations.session_for(key="a"), conversations.session_for(key="b")

    conversations.session_for(key="a")
    conversations.session_for(key="c")

    assert conversations.session_for(key="a") is a
    assert conversations.session_for(key="b") is not b
    assert sum(type(event).__name__ == "SessionEnded" for event in ended) == 2


@pytest.mark.req("C-74")
def test_conversations_at_the_same_time_each_get_their_own_skill(machine: Machine) -> None:
    names = [f"skill-{n}" for n in range(20)]
    journal = machine.base / "run.jsonl"
    conversations = Conversations(shelf_with_skills(machine, *names), journal=journal)

    def talk(name: str) -> tuple[str, str, tuple[str, ...]]:
        chat = Chat(conversations, f"Use {name}.")
        return chat.load(name, "c1"), chat.load(name, "c2"), chat.session.active

    with ThreadPoolExecutor(20) as pool:
        said = dict(zip(names, pool.map(talk, names), strict=True))
    conversations.close()

    for name, (first, second, active) in said.items():
        assert f"# {name}" in first
        assert second.startswith("<skill_context_reminder")
        assert active == (name,)
    assert len(sessions_in(journal)) == 20


def test_a_session_is_one_conversation_and_takes_no_options(machine: Machine) -> None:
    session = shelf_with_skills(machine, "tea").session()
    conversations = Conversations(session)

    assert "# tea" in conversations.call("skill_load", {"name": "tea"}).text
    assert conversations.call("skill_load", {"name": "tea"}).text.startswith("<skill_context_reminder")
    assert conversations.session_for(key="any") is session
    with pytest.raises(Exception, match="options"):
        Conversations(session, journal="run.jsonl")


def test_a_shelf_has_one_set_of_conversations(machine: Machine) -> None:
    shelf = shelf_with_skills(machine)
    assert conversations_of(shelf) is conversations_of(shelf)
    own = Conversations(shelf)
    assert conversations_of(own) is own


def test_names_may_have_a_prefix(machine: Machine) -> None:
    conversations = Conversations(shelf_with_skills(machine), prefix="skills_", policy=POLICY)
    session = conversations.session_for(key=1)
    assert "skills_skill_load" in [tool.name for tool in conversations.tools(session)]
    text = conversations.call("skills_skill_load", {"name": "narrow"}, key=1, call_id="c1").text
    seen = [seen_call("c1", "skills_skill_load", {"name": "narrow"}), seen_result("c1", text)]
    assert conversations.session_for(items=seen).active == ("narrow",)


def test_a_call_id_that_comes_again_is_a_later_call(machine: Machine) -> None:
    conversations = Conversations(shelf_with_skills(machine, "tea"))
    chat = Chat(conversations, "Tea.")
    chat.load("tea", "c1")
    session = chat.session
    chat.items += seen_text("user", "Again.")

    result = conversations.call("skill_load", {"name": "tea"}, items=chat.items, call_id="c1")

    assert result.data["already_loaded"]
    chat.items += [seen_call("c1", "skill_load", {"name": "tea"}), seen_result("c1", result.text)]
    assert chat.session is session


def test_the_prompt_of_no_conversation_leaves_no_session_behind(machine: Machine) -> None:
    events: list[Any] = []
    conversations = Conversations(shelf_with_skills(machine, "tea"), on_event=events.append)
    assert "tea" in conversations.system_prompt("Base.", items=[])
    assert type(events[-1]).__name__ == "SessionEnded"


def test_a_session_whose_opening_fails_leaves_nothing_behind(machine: Machine) -> None:
    conversations = Conversations(shelf_with_skills(machine), preload=["absent"])
    for _ in range(2):
        with pytest.raises(ConfigurationError, match="absent"):
            conversations.session_for(key="a")


def test_a_file_that_looks_like_the_text_of_another_skill_does_not_make_that_one_active(machine: Machine) -> None:
    shelf = shelf_with_skills(machine, "other")
    text = shelf.session().call("skill_load", {"name": "narrow"}).text
    (machine.home / ".agents/skills/other/trap.md").write_text(text)
    arguments = {"uri": "skill://other/trap.md"}
    assert shelf.session().call("skill_read", arguments).text == text

    seen = [seen_call("c1", "skill_read", arguments), seen_result("c1", text), seen_result("orphan", text)]

    assert Conversations(shelf).session_for(items=seen).active == ()


@pytest.mark.req("K-59")
def test_the_journal_of_conversations_replays_without_a_difference(machine: Machine) -> None:
    journal = machine.base / "run.jsonl"
    first = Conversations(shelf_with_skills(machine, "tea"), journal=journal)
    chats = [Chat(first, f"Hello, {n}.") for n in range(2)]
    for chat in chats:
        chat.load("narrow", "c1")
        chat.load("narrow", "c2")
        chat.items = chat.items[-2:]
        chat.load("narrow", "c3")
    first.close()
    again = Chat(Conversations(machine.shelf(), journal=journal), "Go on.", *chats[0].items)
    again.load("tea", "c4")
    assert again.session.active == ("narrow", "tea")

    replay = skillshelf.replay(journal, home=machine.home, env={"HOME": str(machine.home)})

    assert replay.differences == ()
    assert verify(str(journal)).problems == ()
    # Each list that was trimmed is a conversation of its own, because nothing proves whose it was.
    assert len(sessions_in(journal)) == 5


def test_a_result_belongs_to_the_call_before_it_where_ids_come_again(machine: Machine) -> None:
    shelf = shelf_with_skills(machine, "tea")
    chat = Chat(Conversations(shelf), "Read.")
    text = chat.load("narrow", "call_0")
    chat.items += [seen_call("call_0", "Bash", {"command": "ls"}), seen_result("call_0", "SKILL.md")]

    restarted = Conversations(machine.shelf(), policy=POLICY).session_for(items=chat.items)
    assert restarted.decide("Bash", {"command": "ls"}).verdict == "deny"
    # A text that another tool brought stays one of another tool, whatever is called by its id later.
    fetched = [seen_call("call_0", "fetch", {}), seen_result("call_0", text)]
    later = [*fetched, seen_call("call_0", "skill_load", {"name": "tea"})]
    assert Conversations(machine.shelf()).session_for(items=later).active == ()


def test_results_without_ids_belong_to_calls_of_their_tool(machine: Machine) -> None:
    text = shelf_with_skills(machine).session().call("skill_load", {"name": "narrow"}).text
    calls = [seen_call(None, "skill_load", {"name": "narrow"}), seen_call(None, "fetch", {})]
    items = [*calls, seen_result(None, text, "skill_load"), seen_result(None, "page", "fetch")]
    assert Conversations(machine.shelf()).session_for(items=items).active == ("narrow",)
    swapped = [*calls, seen_result(None, "Error", "skill_load"), seen_result(None, text, "fetch")]
    assert Conversations(machine.shelf()).session_for(items=swapped).active == ()


def test_a_text_whose_call_was_trimmed_away_does_not_count_though_its_id_comes_again(machine: Machine) -> None:
    conversations = Conversations(shelf_with_skills(machine, "tea"))
    text = conversations.call("skill_load", {"name": "tea"}, key=1, call_id="call_0").text
    items = [seen_result("call_0", text), seen_call("call_0", "skill_load", {"name": "tea"})]
    assert conversations.call("skill_load", {"name": "tea"}, key=1, items=items, call_id="call_0").text == text


def test_a_file_that_was_read_and_then_changed_is_still_active_after_a_restart(machine: Machine) -> None:
    shelf = shelf_with_skills(machine)
    arguments = {"uri": "skill://narrow"}
    seen = [
        seen_call("c1", "skill_read", arguments),
        seen_result("c1", shelf.session().call("skill_read", arguments).text),
    ]
    write_skill(machine.home / ".agents/skills", "narrow", NARROW + "And write nothing.\n")
    assert Conversations(machine.shelf()).session_for(items=seen).active == ("narrow",)


def test_memory_none_repeats_every_text_and_keeps_conversations_apart(machine: Machine) -> None:
    conversations = Conversations(shelf_with_skills(machine, "tea"), memory="none", policy=POLICY)
    one, two = Chat(conversations, "One."), Chat(conversations, "Two.")
    assert one.load("narrow", "c1") == one.load("narrow", "c2")
    two.load("tea", "c1")
    assert (one.verdict(), two.verdict()) == ("deny", "allow")
    with pytest.raises(ConfigurationError, match="only a session remembers"):
        Conversations(machine.shelf(), memory="session")


def test_conversations_that_are_given_take_no_options(machine: Machine) -> None:
    conversations = Conversations(shelf_with_skills(machine))
    with pytest.raises(ConfigurationError, match="options already: policy"):
        conversations_of(conversations, policy="read-only")


def test_a_turn_stays_one_conversation_when_the_result_of_another_tool_comes_first(machine: Machine) -> None:
    conversations = Conversations(shelf_with_skills(machine, "tea"), policy=POLICY)
    names = {"c1": "narrow", "c3": "tea"}
    calls = [seen_call(number, "skill_load", {"name": name}) for number, name in names.items()]
    items = [*seen_text("user", "Go."), calls[0], seen_call("c2", "Read", {}), calls[1]]
    texts = [conversations.call("skill_load", {"name": "narrow"}, items=items, call_id="c1").text]
    items.append(seen_result("c2", "read"))

    assert conversations.session_for(items=items).decide("Bash", {"command": "ls"}).verdict == "deny"
    texts.append(conversations.call("skill_load", {"name": "tea"}, items=items, call_id="c3").text)
    items += [seen_result(number, text) for number, text in zip(names, texts, strict=True)]
    assert conversations.session_for(items=items).active == ("narrow", "tea")
