"""A query meets a skill in other spellings and languages, and inside messages and traces, with bounded work."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.trees import Machine, write_skill

from skillshelf import SearchReport
from skillshelf.core.limits import QUERY_SEGMENTS, QUERY_TERMS
from skillshelf.search.query import places
from skillshelf.search.rank import analyzer
from skillshelf.search.segments import kept_segments, segments


def put(machine: Machine, name: str, description: str, body: str = "") -> Path:
    """A skill of the repository."""
    root = machine.repo / ".agents" / "skills"
    return write_skill(root, name, f"---\nname: {name}\ndescription: {description}\n---\n{body}\n")


def names(report: SearchReport) -> list[str]:
    """The names of the results."""
    return [result.skill.name for result in report.results]


# Words --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Optimizes queries.", "optimise"),
        ("Analyses the colours of a catalogue.", "analyze color catalog"),
        ("Plans an organization.", "organisation"),
        ("Handles labelling and licences.", "labeling license"),
        ("Centres a title.", "centering centers"),
        ("Improves a r\u00e9sum\u00e9.", "resume"),
        ("Improves a resume.", "r\u00e9sum\u00e9"),
        ("Writes e-mail campaigns.", "email"),
        ("Writes email campaigns.", "e-mail"),
        ("Builds a frontend.", "front end"),
        ("Builds a frontend.", "front-end"),
        ("Builds the front-end.", "frontend"),
        ("Keeps a database.", "data base"),
        ("Writes C# services.", "csharp"),
        ("Writes services with csharp.", "C#"),
        ("Ports C++ code.", "cpp"),
        ("Publishes .NET packages.", "dotnet"),
        ("Builds ASP.NET sites.", ".net"),
        ("Runs node.js.", "nodejs"),
        ("Plans ab tests.", "A/B"),
        (
            "Prüft Verträge und erstellt für die Kunden eine Übersicht mit der Frist.",
            "welche Verträgen sind für die Kunden",
        ),
        ("Переводит документы на английский язык.", "перевести документ"),
        (
            "Crea facturas para los clientes y las envía por correo con el resumen.",
            "necesito la facturación para mis clientes",
        ),
    ],
)
def test_other_spellings_and_inflections_of_a_word_meet_it(machine: Machine, text: str, query: str) -> None:
    put(machine, "alpha", "Bakes bread.")
    put(machine, "beta", text)

    assert names(machine.shelf().search(query)) == ["beta"]


@pytest.mark.parametrize(("query", "other"), [("C#", "C"), ("F#", "F"), ("C++", "C"), (".net", "net")])
def test_a_word_with_a_sign_is_another_word_than_without(machine: Machine, query: str, other: str) -> None:
    put(machine, "alpha", f"Teaches {other} to beginners.")
    put(machine, "beta", f"Teaches {query} to beginners.")

    assert names(machine.shelf().search(query)) == ["beta"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("帮我写单元测试", "unit-tests"),
        ("数据库迁移", "move-a-database"),
        ("請求書を作成したい", "billing"),
        ("プレゼンを作って", "slides"),
        ("이메일 번역해줘", "letters"),
    ],
)
def test_a_request_in_chinese_japanese_or_korean_meets_an_english_skill(
    machine: Machine, query: str, expected: str
) -> None:
    put(machine, "unit-tests", "Writes a test for each unit.")
    put(machine, "move-a-database", "Plans the migration of a database.")
    put(machine, "billing", "Makes an invoice.")
    put(machine, "slides", "Prepares a presentation.")
    put(machine, "letters", "Reads an email and gives its translation.")

    assert names(machine.shelf().search(query))[0] == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("資料庫遷移", "database"),
        ("開發資料庫", "database"),
        ("サーバの監視", "server"),
        ("サーバーの監視", "server"),
        ("ソフトウエア", "software"),
        ("할 일을 정리", "todo"),
        ("할일을 정리", "todo"),
        ("웹을 만들", "website"),
    ],
)
def test_a_foreign_term_is_translated_in_each_of_its_spellings(machine: Machine, query: str, expected: str) -> None:
    put(machine, "alpha", "Keeps a database.")
    put(machine, "beta", "Watches a server.")
    put(machine, "gamma", "Installs software.")
    put(machine, "delta", "Keeps a todo list.")
    put(machine, "epsilon", "Makes a website.")
    by_word = {"database": "alpha", "server": "beta", "software": "gamma", "todo": "delta", "website": "epsilon"}

    assert names(machine.shelf().search(query))[0] == by_word[expected]


@pytest.mark.parametrize(("query", "part"), [("コンテスト", "test"), ("日本", "book"), ("并发送", "concurrency")])
def test_a_part_of_another_foreign_word_is_not_translated(machine: Machine, query: str, part: str) -> None:
    put(machine, "alpha", f"Is about a {part}.")

    assert names(machine.shelf().search(query)) == []


def test_a_foreign_request_finds_its_english_skill_beside_texts_that_share_its_grammar(machine: Machine) -> None:
    put(machine, "alpha", "Tracks sleep.")
    for number, topic in enumerate(("料理のレシピ", "旅行の予定", "写真のアルバム")):
        put(machine, f"other-{number}", f"{topic}をまとめるためのスキルです。記録したいときに使います。")

    assert names(machine.shelf().search("睡眠をまとめて記録したい"))[0] == "alpha"


def test_a_very_long_foreign_request_is_translated_as_well(machine: Machine) -> None:
    filler = "".join(map(chr, range(0x4E00, 0x4E00 + 900)))
    put(machine, "alpha", "Makes an invoice.")
    put(machine, "beta", filler)

    assert names(machine.shelf().search(f"{filler}发票")) == ["beta", "alpha"]


@pytest.mark.parametrize("query", ["meine Rechnungen in Excel", "was kosten die Rechnungen an Weihnachten"])
def test_a_german_query_with_a_word_that_english_has_too_is_stemmed_in_german(machine: Machine, query: str) -> None:
    put(machine, "alpha", "Bakes bread.")
    put(machine, "beta", "Schreibt eine Rechnung für den Kunden und ist mit der Buchhaltung verbunden.")

    assert names(machine.shelf().search(query)) == ["beta"]


def test_two_words_are_taken_for_the_one_that_more_skills_have(machine: Machine) -> None:
    put(machine, "alpha", "Answers at the front desk until the end.")
    put(machine, "beta", "Builds a frontend.")
    put(machine, "gamma", "Tunes a frontend.")
    for query in ("front end", "front-end"):
        assert names(machine.shelf().search(query)) == ["beta", "gamma", "alpha"]


def test_a_compound_with_a_slash_is_found_at_the_end_of_a_sentence(machine: Machine) -> None:
    put(machine, "alpha", "Sets up CI/CD.")

    assert names(machine.shelf().search("cicd")) == ["alpha"]


def test_the_name_of_a_system_is_not_the_plural_of_another_word(machine: Machine) -> None:
    put(machine, "alpha", "Builds apps for iOS.")
    put(machine, "beta", "Measures I/O waits.")

    assert names(machine.shelf().search("I/O")) == ["beta"]


def test_a_skill_in_the_language_of_the_query_comes_before_its_translation(machine: Machine) -> None:
    put(machine, "alpha", "Plans the migration of a database.")
    put(machine, "beta", "规划数据库迁移。")

    assert names(machine.shelf().search("数据库迁移")) == ["beta", "alpha"]


@pytest.mark.parametrize(
    ("text", "query", "marked"),
    [
        ("Writes e-mail now", "email", ["e-mail"]),
        ("Writes e-mail now", "mail", ["mail"]),
        ("Uses C# here", "csharp", ["C#"]),
        ("An optimised build", "optimize", ["optimised"]),
        ("A r\u00e9sum\u00e9 here", "resume", ["r\u00e9sum\u00e9"]),
    ],
)
def test_a_match_is_marked_as_it_is_written(text: str, query: str, marked: list[str]) -> None:
    terms = frozenset(analyzer().query_terms(query))

    assert [text[start:end] for start, end in places(text, terms)] == marked


# Long and noisy requests --------------------------------------------------------------------------

GREETING = (
    "Hi there! Hope you had a good weekend, mine went by in the garden with the neighbours. The quarterly review got"
    " moved to Thursday and the kitchen is being painted. Sandra is on holiday and the printer is out of toner again."
)
THANKS = "The deploy of the billing service can wait until Monday, Miguel looks at it. Thanks a lot and see you soon!"
TRACE = """Traceback (most recent call last):
  File "/srv/billing/worker.py", line 91, in run
    payload = self.serializer.dump(invoice, deploy=False)
  File "/srv/billing/printer.py", line 12, in dump
    raise ConnectionError(host)
requests.exceptions.ConnectionError: billing.internal:443 refused the deploy of the printer kitchen"""


@pytest.fixture
def crowded(machine: Machine) -> Machine:
    """A few skills that noise is about, and one that the request is about."""
    put(machine, "garden-planner", "Plans a garden, the painting of a kitchen and a weekend with neighbours.")
    put(machine, "billing-deploy", "Deploys the billing service and its worker, and reviews it on Monday.")
    put(machine, "connection-errors", "Explains requests, exceptions and a connection that was refused by a host.")
    put(machine, "printer-setup", "Installs a printer and orders toner.")
    put(machine, "changelog-writer", "Writes a changelog from merged pull requests.")
    return machine


@pytest.mark.parametrize(
    "message",
    [
        "{greeting} {request} {thanks}",
        "{request} {greeting} {thanks}",
        "{greeting} {thanks}\n\n{request}",
        "{request}\n\n{trace}",
        "{trace}\n\n{request}",
        "{request}\n```\n{trace}\n```",
        "{greeting}\n{request}\n\n{trace}\n\n{thanks}",
    ],
)
def test_a_request_is_found_in_a_message_and_beside_a_trace(crowded: Machine, message: str) -> None:
    request = "Can you write a changelog from the merged pull requests?"
    query = message.format(request=request, greeting=GREETING, thanks=THANKS, trace=TRACE)

    assert names(crowded.shelf().search(query))[0] == "changelog-writer"


def test_a_request_without_punctuation_is_found_in_a_message(crowded: Machine) -> None:
    words = f"{GREETING} can you write a changelog from the merged pull requests {THANKS}"
    query = "".join(letter for letter in words.lower() if letter.isalpha() or letter == " ")

    assert names(crowded.shelf().search(query))[0] == "changelog-writer"


def test_a_text_is_divided_into_sentences_and_blocks_of_machine_text() -> None:
    found = segments(f"Hello! I was away.\nPlease write a changelog.\n{TRACE}\nThanks!")

    assert [segment.kind for segment in found] == ["courtesy", "prose", "request", "machine", "courtesy"]
    assert found[3].text == TRACE


def test_what_asks_for_something_is_kept_of_too_many_segments() -> None:
    text = "The sky is blue today. " * 200 + "Can you write a changelog? " + "The sky is blue today. " * 200

    kept, left_out = kept_segments(segments(text))

    assert (len(kept), left_out) == (QUERY_SEGMENTS, 401 - QUERY_SEGMENTS)
    assert "Can you write a changelog?" in [segment.text for segment in kept]


@pytest.mark.parametrize(
    "query",
    [
        "a. " * 22_000,
        "x\n" * 10_000,
        "paint " * 12_000,
        "#!?.-/" * 8_000,
        "```\n" * 9_000,
        "漢" * 60_000,
        "-a" * 30_000,
    ],
    ids=["letters", "lines", "no punctuation", "signs", "fences", "one character", "hyphens"],
)
def test_a_hostile_query_is_answered(crowded: Machine, query: str) -> None:
    report = crowded.shelf().search(query)

    assert report.count <= 8
    assert len(report.terms) <= QUERY_TERMS


@pytest.mark.parametrize(
    "text",
    [
        f"please fix{' ' * 300_000}it, and then tell me",
        f"words{chr(9) * 300_000}\u2014 more",
        f"a{chr(34) * 300_000}x b c d",
        f"{' ' * 300_000}> x",
    ],
    ids=["blanks", "tabs", "quotes", "blanks before a quotation"],
)
def test_dividing_a_text_takes_no_square_of_its_length(text: str) -> None:
    # A square of this length would take longer than anybody waits.
    assert segments(text)


def test_only_the_beginning_of_a_line_is_a_mark_of_a_quotation() -> None:
    assert [segment.text for segment in segments("> convert one -> two")] == ["convert one -> two"]
    assert [segment.text for segment in segments("keep what is > ten")] == ["keep what is > ten"]


def test_two_long_words_beside_each_other_are_searched_for(crowded: Machine) -> None:
    put(crowded, "long-word", f"Knows {'a' * 40}.")

    assert names(crowded.shelf().search(f"{'a' * 40} {'b' * 40}")) == ["long-word"]


def test_terms_and_sentences_that_are_left_out_are_told(machine: Machine) -> None:
    letters = "bcdfghjklmnpqrstvwxyz"
    words = [f"{first}o{second}ax" for first in letters for second in letters][: QUERY_TERMS + 1]
    put(machine, "alpha", "Knows words.", " ".join(words))

    many = machine.shelf().search(" ".join(words))
    long = machine.shelf().search(". ".join(words))

    assert f"of {QUERY_TERMS + 1} different words of the query, {QUERY_TERMS} were searched for" in many.notes
    assert "337 of the sentences of the query were not searched for" in long.notes


def test_of_many_single_characters_the_first_are_searched_for(machine: Machine) -> None:
    put(machine, "weather", "Tell the weather in Chinese: \u4e00 \u4e01.")
    query = " ".join(chr(0x4E00 + number) for number in range(1_000))

    report = machine.shelf().search(query)

    assert [result.skill.name for result in report.results] == ["weather"]
    assert "of 1000 single characters of the query, 32 were searched for" in report.notes
