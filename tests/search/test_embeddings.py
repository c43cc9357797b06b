"""The second scorer by embeddings: what it asks, what it keeps, and what a bad server costs."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from support.embedding_server import EmbeddingServer, embedded
from support.http_sites import Request, Route, answer, drip, endless, redirect
from support.needs import is_absent, needs
from support.trees import SOURCE, Machine, write_skill

import skillshelf
from skillshelf.core.limits import EMBEDDINGS_AT_ONCE
from skillshelf.errors import ConfigurationError, SourceRefused

needs_numpy = needs("numpy")
FAILED = "ranked by words alone, since the second scorer failed: "


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    running = EmbeddingServer()
    with running:
        yield running


@pytest.fixture
def shop(machine: Machine) -> Machine:
    for name, description in SKILLS.items():
        text = f"---\nname: {name}\ndescription: {description}\n---\n"
        write_skill(machine.repo / ".agents" / "skills", name, text)
    return machine


SKILLS = {"alpha": "Paints fences.", "beta": "Colours wooden things.", "gamma": "Bakes bread."}


def scorer(server: EmbeddingServer, cache: Path | None = None, **options: Any) -> skillshelf.EmbeddingScorer:
    endpoint = skillshelf.EmbeddingEndpoint(server.address, "small", env={}, seconds=5)
    return skillshelf.EmbeddingScorer(endpoint, cache=cache, **options)


def names(report: skillshelf.SearchReport) -> list[str]:
    return [result.skill.name for result in report.results]


def configured(server: EmbeddingServer, more: str = "") -> str:
    return f'[search.scorer]\nurl = "{server.address}"\nmodel = "small"\n{more}'


# Scores -------------------------------------------------------------------------------------------


@needs_numpy
def test_a_skill_that_is_near_in_meaning_is_found_without_a_common_word(shop: Machine, server: EmbeddingServer) -> None:
    query = "a wooden colour"

    assert names(shop.shelf().search("bread maker")) == ["gamma"]
    assert names(shop.shelf().search("bake")) == ["gamma"]
    report = shop.shelf(scorer=scorer(server)).search(query)

    assert names(report)[0] == "beta"
    assert report.notes == ()


@needs_numpy
def test_only_the_nearest_skills_are_added_to_the_results(machine: Machine, server: EmbeddingServer) -> None:
    for number in range(40):
        text = f"---\nname: skill-{number}\ndescription: Does thing{number} and more{number}.\n---\n"
        write_skill(machine.repo / ".agents" / "skills", f"skill-{number}", text)
    skills = machine.shelf().catalog.skills

    scores = scorer(server).score("thing7 skill", skills)

    assert max(scores) == scores[[skill.name for skill in skills].index("skill-7")] == pytest.approx(0.2)
    assert 1 <= sum(score > 0 for score in scores) <= 4


@needs_numpy
def test_a_model_for_english_is_not_asked_about_other_scripts(shop: Machine, server: EmbeddingServer) -> None:
    endpoint = skillshelf.EmbeddingEndpoint(server.address, "small", english_only=True, env={})
    english = skillshelf.EmbeddingScorer(endpoint)

    assert list(english.score("请帮我画栅栏 fence", shop.shelf().catalog.skills)) == [0.0, 0.0, 0.0]
    assert server.requests == []
    assert any(english.score("paint 栅", shop.shelf().catalog.skills))


@needs_numpy
def test_an_object_of_the_callers_own_is_a_model_too(shop: Machine) -> None:
    class Own:
        identity, english_only = "own", False

        def embed(self, texts: Sequence[str]) -> list[list[float]]:
            return [embedded(text) for text in texts]

    assert names(shop.shelf(scorer=skillshelf.EmbeddingScorer(Own())).search("colour"))[0] in ("alpha", "beta")


# Requests -----------------------------------------------------------------------------------------


@needs_numpy
def test_a_request_has_the_model_and_names_with_descriptions(shop: Machine, server: EmbeddingServer) -> None:
    endpoint = skillshelf.EmbeddingEndpoint(f"{server.address}/", "small", api_key="sk-secret", env={})
    shop.shelf(scorer=skillshelf.EmbeddingScorer(endpoint)).search("bake")

    first, second = (json.loads(request.body) for request in server.requests)
    assert first == {"model": "small", "input": [f"{name}: {text}" for name, text in SKILLS.items()]}
    assert second == {"model": "small", "input": ["bake"]}
    assert {request.headers["authorization"] for request in server.requests} == {"Bearer sk-secret"}


@needs_numpy
def test_many_skills_are_embedded_some_at_a_time_and_a_search_without_time_leaves_the_rest(
    machine: Machine, server: EmbeddingServer
) -> None:
    count = EMBEDDINGS_AT_ONCE + 5
    for number in range(count):
        write_skill(machine.repo / ".agents" / "skills", f"skill-{number}")
    shelf = machine.shelf(scorer=scorer(server, machine.base / "cache", seconds=0))

    (note,) = shelf.search("thing").notes
    assert note.startswith(f"{FAILED}SourceUnreachable: {EMBEDDINGS_AT_ONCE} of {count} texts are embedded after 0 s")
    assert shelf.search("thing").notes == ()
    assert [len(texts) for texts in server.sent] == [EMBEDDINGS_AT_ONCE, 5, 1]


@needs_numpy
def test_a_busy_server_is_asked_once_more(shop: Machine, server: EmbeddingServer) -> None:
    whole = server.routes["/v1/embeddings"]
    answers: list[Route] = [answer(b"busy", 429, Retry_After="0"), whole, answer(b"down", 503), answer(b"down", 503)]

    def one_by_one(request: Any, connection: Any) -> None:
        route = answers.pop(0)
        connection.sendall(route) if isinstance(route, bytes) else route(request, connection)

    server.routes["/v1/embeddings"] = one_by_one
    (note,) = shop.shelf(scorer=scorer(server)).search("bake").notes

    assert len(server.requests) == 4
    assert note.endswith("answers with status 503")


@needs_numpy
def test_a_server_that_failed_rests_and_is_asked_again_later(shop: Machine, server: EmbeddingServer) -> None:
    whole, down = server.routes["/v1/embeddings"], answer(b"no", 400)
    server.routes["/v1/embeddings"] = down
    resting, eager = shop.shelf(scorer=scorer(server)), shop.shelf(scorer=scorer(server, rest_seconds=0))
    first = [shelf.search("bake").notes[0] for shelf in (resting, eager)]
    assert all(note.endswith("/v1/embeddings answers with status 400") for note in first)

    server.routes["/v1/embeddings"] = whole
    before = len(server.requests)
    assert "not asked again for 60 seconds (EMBEDDING_REST_SECONDS)" in resting.search("bake").notes[0]
    assert len(server.requests) == before
    assert eager.search("bake").notes == ()


def listed(*vectors: Any) -> bytes:
    return answer(json.dumps({"data": [{"embedding": vector} for vector in vectors]}).encode())


HOSTILE: dict[str, tuple[Route, str]] = {
    "an error page": (answer(b"<html>sk-echo</html>", 500), "answers with status 500"),
    "a refusal": (answer(b"who are you", 401), "refuses access (status 401)"),
    "a redirect": (redirect("http://127.0.0.1:9/v1/embeddings", 307), "answers with status 307"),
    "no JSON": (answer(b"<html>"), "it answers with something that is no JSON"),
    "deep JSON": (answer(b"[" * 100_000), "it answers with something that is no JSON"),
    "a list": (answer(b"[1]"), "its answer has no list `data`"),
    "other entries": (answer(b'{"data": [1, 2, 3]}'), "its answer has no list `data`"),
    "fewer": (listed([1.0], [1.0]), "it gives 2 embeddings for 3 texts, or not one for each"),
    "one twice": (
        answer(json.dumps({"data": [{"index": 0, "embedding": [1]}] * 3}).encode()),
        "it gives 3 embeddings for 3 texts, or not one for each",
    ),
    "no index": (
        answer(json.dumps({"data": [{"index": [n], "embedding": [1]} for n in range(3)]}).encode()),
        "it gives 3 embeddings for 3 texts, or not one for each",
    ),
    "texts": (listed(["1"], ["1"], ["1"]), "it gives embeddings that are not lists of numbers"),
    "no list": (listed("x", None, 1), "it gives embeddings that are not lists of numbers"),
    "two lengths": (listed([1.0], [1.0], [1.0, 2.0]), "not all of one length and at most 4096 numbers"),
    "none": (listed([], [], []), "not all of one length and at most 4096 numbers"),
    "too long": (listed(*[[1.0] * 4097] * 3), "at most 4096 numbers (EMBEDDING_NUMBERS)"),
    "NaN": (answer(b'{"data": [%s]}' % b",".join([b'{"embedding": [NaN, 1]}'] * 3)), "not finite numbers, or zero"),
    "infinite": (answer(b'{"data": [%s]}' % b",".join([b'{"embedding": [1e999]}'] * 3)), "not finite numbers"),
    "huge numbers": (listed(*[[10**400, 1]] * 3), "not finite numbers, or zero"),
    "zeros": (listed(*[[0, 0]] * 3), "not finite numbers, or zero"),
    "a large answer": (
        endless(b"HTTP/1.1 200 OK\r\n\r\n", b" " * 65536),
        "sends more than 8388608 bytes",
    ),
    "a closed connection": (b"", "breaks off or does not speak HTTP"),
}


@needs_numpy
@pytest.mark.parametrize("case", HOSTILE)
def test_a_bad_answer_costs_one_note_and_no_result(shop: Machine, server: EmbeddingServer, case: str) -> None:
    server.routes["/v1/embeddings"], said = HOSTILE[case]

    report = shop.shelf(scorer=scorer(server, shop.base / "cache")).search("bake bread")

    (note,) = report.notes
    assert note.startswith(FAILED)
    assert said in note
    assert "echo" not in note
    assert names(report) == ["gamma"]
    assert not (shop.base / "cache").exists()


@needs_numpy
def test_a_slow_server_is_left_after_its_time(shop: Machine, server: EmbeddingServer) -> None:
    server.routes["/v1/embeddings"] = drip(listed([1.0]), 0.05)
    endpoint = skillshelf.EmbeddingEndpoint(server.address, "small", env={}, seconds=0.2)

    (note,) = shop.shelf(scorer=skillshelf.EmbeddingScorer(endpoint)).search("bake").notes

    assert note.endswith("does not answer within 0.2 seconds (EMBEDDING_SECONDS)")


@needs_numpy
def test_a_server_that_does_not_answer_holds_up_no_other_search(shop: Machine, server: EmbeddingServer) -> None:
    whole, asked, may_answer = server.routes["/v1/embeddings"], threading.Event(), threading.Event()

    def late(request: Request, connection: socket.socket) -> None:
        asked.set()
        assert may_answer.wait(60)
        assert callable(whole)
        whole(request, connection)

    shelf = shop.shelf(scorer=scorer(server))
    assert shelf.search("bake").notes == ()
    server.routes["/v1/embeddings"] = late
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(shelf.search, "paint")
        assert asked.wait(60)
        # Its query is known, so it needs no answer; the other one is still waiting.
        assert names(shelf.search("bake")) == ["gamma"]
        assert names(shelf.search("bake", scorer=OwnScorer())) == ["gamma"]
        assert not waiting.done()
        may_answer.set()

    assert names(waiting.result()) == ["alpha"]


@needs_numpy
def test_a_search_does_not_wait_until_another_one_has_embedded_all_skills(
    shop: Machine, server: EmbeddingServer
) -> None:
    whole, asked, may_answer = server.routes["/v1/embeddings"], threading.Event(), threading.Event()

    def late(request: Request, connection: socket.socket) -> None:
        asked.set()
        assert may_answer.wait(60)
        assert callable(whole)
        whole(request, connection)

    server.routes["/v1/embeddings"] = late
    shelf = shop.shelf(scorer=scorer(server, wait_seconds=0.01))
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(shelf.search, "paint")
        assert asked.wait(60)
        report = shelf.search("bake")
        assert not waiting.done()
        may_answer.set()

    assert report.notes == (f"{FAILED}SourceUnreachable: another search is asking for the embeddings of the skills",)
    assert names(report) == ["gamma"]
    assert waiting.result().notes == ()
    assert shelf.search("bake").notes == ()


class OwnScorer:
    def score(self, query: str, skills: Sequence[skillshelf.CatalogSkill]) -> list[float]:
        return [0.0] * len(skills)


@pytest.mark.parametrize("key", ["", "a b", "sk-1\r\nX-Evil: 1", "schlüssel"])
def test_a_key_that_no_header_may_have_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        skillshelf.EmbeddingEndpoint("https://models.example/v1", "small", api_key=key, env={})

    assert str(error.value) == "the key of a server of embeddings must be printable ASCII without blanks"


def test_plain_http_goes_to_this_machine_alone_and_no_address_has_credentials() -> None:
    with pytest.raises(SourceRefused, match=r"plain http goes to this machine alone, not to 192\.0\.2\.1"):
        skillshelf.EmbeddingEndpoint("http://192.0.2.1/v1", "small", env={}).embed(["text"])
    with pytest.raises(SourceRefused) as error:
        skillshelf.EmbeddingEndpoint("https://me:sk-secret@models.example/v1", "small", env={})
    assert "sk-secret" not in str(error.value)


# The cache ----------------------------------------------------------------------------------------


@needs_numpy
def test_what_was_embedded_is_not_asked_again(shop: Machine, server: EmbeddingServer) -> None:
    cache = shop.base / "cache"
    first = shop.shelf(scorer=scorer(server, cache))
    scores = [first.search("bake").results, first.search("bake").results]
    assert [len(texts) for texts in server.sent] == [3, 1]

    again = shop.shelf(scorer=scorer(server, cache)).search("bake")

    assert scores == [again.results] * 2
    assert [len(texts) for texts in server.sent] == [3, 1, 1]
    data = (cache / "embeddings.sqlite3").read_bytes()
    assert not any(word in data for word in (b"fences", b"bake", b"alpha", b"small"))
    assert stat.S_IMODE((cache / "embeddings.sqlite3").stat().st_mode) & 0o077 == 0


@needs_numpy
def test_an_edited_description_is_embedded_alone_and_another_model_embeds_all(
    shop: Machine, server: EmbeddingServer
) -> None:
    cache = shop.base / "cache"
    shop.shelf(scorer=scorer(server, cache)).search("bake")
    text = "---\nname: gamma\ndescription: Bakes cakes.\n---\n"
    write_skill(shop.repo / ".agents" / "skills", "gamma", text)

    shop.shelf(scorer=scorer(server, cache)).search("bake")
    assert server.sent[2] == ["gamma: Bakes cakes."]

    other = skillshelf.EmbeddingEndpoint(server.address, "large", env={})
    shop.shelf(scorer=skillshelf.EmbeddingScorer(other, cache=cache)).search("bake")
    assert [len(texts) for texts in server.sent] == [3, 1, 1, 1, 3, 1]


@needs_numpy
def test_a_model_that_changed_behind_its_name_is_asked_about_all_skills_again(
    shop: Machine, server: EmbeddingServer
) -> None:
    cache = shop.base / "cache"
    shop.shelf(scorer=scorer(server, cache)).search("bake")
    server.size = 32
    shelf = shop.shelf(scorer=scorer(server, cache))

    (note,) = shelf.search("bake").notes
    assert "it gives 32 numbers and gave 64 before; all are asked again" in note
    assert shelf.search("bake").notes == ()


def flip_byte(path: Path) -> None:
    with sqlite3.connect(path) as base:
        base.execute("UPDATE vectors SET data = x'0000000011' || substr(data, 6)")
    base.close()


def odd_rows(path: Path) -> None:
    with sqlite3.connect(path) as base:
        base.execute("UPDATE vectors SET data = ?", (crc32(b"odd").to_bytes(4, "big") + b"odd",))
    base.close()


def other_table(path: Path) -> None:
    path.unlink()
    with sqlite3.connect(path) as base:
        base.execute("CREATE TABLE vectors (text)")
    base.close()
    path.chmod(0o600)


DAMAGES = {
    "no database": lambda path: path.write_bytes(b"nonsense" * 1000),
    "a flipped byte": flip_byte,
    "another table": other_table,
    "empty": lambda path: path.write_bytes(b""),
    "rows of odd length": odd_rows,
}


@needs_numpy
@pytest.mark.parametrize("case", DAMAGES)
def test_a_damaged_file_is_made_again(shop: Machine, server: EmbeddingServer, case: str) -> None:
    cache = shop.base / "cache"
    expected = shop.shelf(scorer=scorer(server, cache)).search("bake").results
    DAMAGES[case](cache / "embeddings.sqlite3")

    # Rows that are whole and make no sense cost one search its scores.
    assert len(shop.shelf(scorer=scorer(server, cache)).search("bake").notes) == (case == "rows of odd length")
    for _ in range(2):
        report = shop.shelf(scorer=scorer(server, cache)).search("bake")
        assert (report.results, report.notes) == (expected, ())

    before = len(server.requests)
    shop.shelf(scorer=scorer(server, cache)).search("bake")
    assert len(server.requests) == before + 1


@needs_numpy
def test_a_file_of_somebody_else_or_a_place_without_room_costs_requests_alone(
    shop: Machine, server: EmbeddingServer
) -> None:
    link = shop.base / "linked"
    link.mkdir(mode=0o700)
    (link / "embeddings.sqlite3").symlink_to(shop.base / "elsewhere")
    file = shop.base / "file"
    file.write_text("not a folder")

    for cache in (link, file):
        assert shop.shelf(scorer=scorer(server, cache)).search("bake").notes == ()
    assert not (shop.base / "elsewhere").exists()


WRITER = """
import sys, skillshelf
repo, home, address, cache = sys.argv[1:]
endpoint = skillshelf.EmbeddingEndpoint(address, "small", env={})
shelf = skillshelf.open_shelf(repo, home=home, env={}, scorer=skillshelf.EmbeddingScorer(endpoint, cache=cache))
report = shelf.search("skill-7 things")
print(report.results[0].skill.name, *report.notes)
"""


@needs_numpy
@pytest.mark.slow
def test_two_processes_fill_one_cache(machine: Machine, server: EmbeddingServer) -> None:
    count = 3 * EMBEDDINGS_AT_ONCE
    for number in range(count):
        write_skill(machine.repo / ".agents" / "skills", f"skill-{number}")
    words = [str(machine.repo), str(machine.home), server.address, str(machine.base / "cache")]
    environment = {"PYTHONPATH": SOURCE, "PATH": os.environ.get("PATH", ""), "HOME": str(machine.home)}
    running = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, *words], env=environment, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )
        for _ in range(2)
    ]

    assert [one.communicate(timeout=60)[0] for one in running] == ["skill-7\n"] * 2
    before = len(server.requests)
    assert machine.shelf(scorer=scorer(server, machine.base / "cache")).search("thing").notes == ()
    assert len(server.requests) == before + 1


# Configuration ------------------------------------------------------------------------------------


@needs_numpy
def test_the_users_own_file_names_a_server_for_every_search(shop: Machine, server: EmbeddingServer) -> None:
    shop.configure(configured(server, 'key_variable = "MODEL_KEY"\n'))
    shop.env["MODEL_KEY"] = "sk-secret"
    report = shop.shelf().search("a wooden colour")
    assert names(report)[0] == "beta"
    assert server.requests[0].headers["authorization"] == "Bearer sk-secret"

    assert shop.shelf().session().call("skill_search", {"query": "a wooden colour"}).ok
    found = shop.run_json("search", "a wooden colour")

    assert [entry["skill"]["name"] for entry in found["results"]] == names(report)
    assert [len(texts) for texts in server.sent] == [3, 1, 1, 1]
    assert (shop.home / ".cache" / "skillshelf" / "embeddings.sqlite3").exists()
    kept = [path for path in shop.home.rglob("*") if path.is_file() and b"sk-secret" in path.read_bytes()]
    assert kept == []


@needs_numpy
def test_a_project_names_no_server(shop: Machine, server: EmbeddingServer) -> None:
    (shop.repo / "skillshelf.toml").write_text(configured(server))

    trusted = shop.shelf(trust="all")
    assert trusted.search("bake").notes == ()
    warnings = [warning.message for warning in trusted.settings.warnings]
    assert "`search.scorer.url` counts in the user's own file only" in warnings
    assert shop.shelf(trust="ask").search("bake").notes == ()
    assert server.requests == []


@needs_numpy
@pytest.mark.parametrize("profile", ["strict", "codelia", "swiftagent", "mycodeagent", "rip", "omp"])
def test_the_users_server_is_not_asked_in_other_profiles(shop: Machine, server: EmbeddingServer, profile: str) -> None:
    shop.configure(configured(server))

    shop.shelf(profile).search("bake")

    assert server.requests == []


@needs_numpy
def test_a_missing_key_is_a_note(shop: Machine, server: EmbeddingServer) -> None:
    shop.configure(configured(server, 'key_variable = "MODEL_KEY"\n'))

    report = shop.shelf().search("bake bread")

    said = "the variable MODEL_KEY, which `search.scorer.key_variable` names, is not set"
    assert report.notes == (f"{FAILED}ConfigurationError: {said}",)
    assert names(report) == ["gamma"]
    assert server.requests == []


@pytest.mark.skipif(not is_absent("numpy"), reason="numpy is installed")
def test_without_the_extra_a_note_says_how_to_install_it(shop: Machine, server: EmbeddingServer) -> None:
    shop.configure(configured(server))

    report = shop.shelf().search("bake bread")

    said = "embeddings need the extra: pip install 'skillshelf[embeddings]'"
    assert report.notes == (f"{FAILED}ConfigurationError: {said}",)
    assert names(report) == ["gamma"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('url = "https://models.example/v1"', "must have both a `url` and a `model`"),
        ('model = "small"', "must have both a `url` and a `model`"),
        (
            'url = "http://models.example/v1"\nmodel = "a"',
            "must begin with https: plain http",
        ),
        ('url = "ftp://models.example"\nmodel = "a"', "cannot be used: only https is fetched, not ftp"),
        ('url = "https://a:b@models.example"\nmodel = "a"', "cannot be used: an address with credentials in it"),
        ('url = "https://models.example"\nmodel = ""', "must be the name of a model"),
        ('key_variable = "sk-12345"', "must be the name of an environment variable, not the key itself"),
        ("url = 1", "must be text"),
        ("key = 'sk-12345'", "is not a key of skillshelf"),
    ],
)
def test_a_wrong_setting_is_an_error_with_its_line(machine: Machine, text: str, said: str) -> None:
    machine.configure(f"[search.scorer]\n{text}\n")

    with pytest.raises(ConfigurationError, match=r"config\.toml, line \d") as error:
        machine.shelf()

    assert said in str(error.value)
    assert "sk-12345" not in str(error.value)


@needs_numpy
def test_a_replay_asks_no_server_and_reports_another_order_as_a_difference(
    shop: Machine, server: EmbeddingServer
) -> None:
    shop.configure(configured(server))
    journal = shop.base / "journal.jsonl"
    with shop.shelf().session(journal=journal) as session:
        session.call("skill_search", {"query": "a wooden colour"})
    before = len(server.requests)

    replayed = skillshelf.replay(journal, home=shop.home, env={})

    assert len(replayed.differences) == 1
    assert len(server.requests) == before


@needs_numpy
def test_doctor_finds_damaged_embeddings(shop: Machine, server: EmbeddingServer) -> None:
    shop.configure(configured(server))
    shop.shelf().search("bake")
    path = shop.home / ".cache" / "skillshelf" / "embeddings.sqlite3"

    def found() -> list[Any]:
        checks = json.loads(shop.run("doctor", "--json").stdout)["checks"]
        return [check for check in checks if check["check"] == "embeddings"]

    assert [row["state"] for row in found()] == ["ok"]
    path.write_bytes(b"nonsense" * 100)
    assert any(row["state"] == "problem" for row in found())
