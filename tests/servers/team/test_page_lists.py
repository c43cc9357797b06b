"""The lists on the pages of a team server, while its catalog changes and when it has many skills."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest
from support.journal_streams import ADA, chain, events
from support.published_servers import packed
from support.teams import running_team
from support.trees import Machine, write_skill
from support.waiting import wait_for
from support.web import links_in, shown

from skillshelf.core.limits import JOURNAL_ROWS, WEB_FILE_BYTES, WEB_PEOPLE_DAYS, WEB_ROWS
from skillshelf.core.text import encoded_path
from skillshelf.core.values import CatalogSkill
from skillshelf.install.pack import zip_of
from skillshelf.journal.sent_lines import reduced_line
from skillshelf.search.collisions import near_duplicates
from skillshelf.servers.team.blobs import FolderBlobs
from skillshelf.servers.team.database import Database, open_database
from skillshelf.servers.team.journal_intake import take
from skillshelf.servers.team.journal_removal import first_kept
from skillshelf.servers.team.similar_skills import SimilarSkills
from skillshelf.servers.team.skill_lists import SkillList
from skillshelf.servers.web.paths import ShownPaths

SUBJECTS = ("invoices", "contracts", "payslips", "receipts", "statements", "passports", "tickets", "parcels")
VERBS = ("Extracts", "Translates", "Archives", "Compares")


@pytest.fixture
def skills(machine: Machine) -> tuple[CatalogSkill, ...]:
    """Skills of which some say nearly the same, sorted by name."""
    root = machine.home / ".agents/skills"
    for subject in SUBJECTS:
        for verb in VERBS:
            text = f"{verb} the totals of scanned {subject} for the yearly {verb.lower()} audit of {subject}"
            _write(root, f"{verb}-{subject}".lower(), text)
            if subject in SUBJECTS[:3]:
                _write(root, f"{verb}-{subject}-copy".lower(), f"{text} again")
    return tuple(sorted(machine.catalog().skills, key=lambda skill: skill.name))


def _write(root: Path, name: str, description: str) -> None:
    write_skill(root, name, f"---\nname: {name}\ndescription: {description}\n---\nText.\n")


def _named(similar: SimilarSkills, skills: tuple[CatalogSkill, ...]) -> set[str]:
    return {path for pair in similar.update(skills) for path in (pair.path, pair.other)}


def test_the_same_skills_are_similar_as_when_all_are_compared(skills: tuple[CatalogSkill, ...]) -> None:
    pairs = near_duplicates([skill.description for skill in skills])

    assert len(pairs) > 10
    assert _named(SimilarSkills(), skills) == {skills[place].path for pair in pairs for place in pair}


def test_similar_skills_follow_every_change(skills: tuple[CatalogSkill, ...]) -> None:
    similar, first = SimilarSkills(), skills[0]
    similar.update(skills)
    edited = first._replace(description="Plants tulips beside the garden wall every autumn morning")

    for now in ((edited, *skills[1:]), skills[1:], skills, skills[5:], (), skills):
        assert _named(similar, now) == _named(SimilarSkills(), now), len(now)


def test_many_copies_are_as_many_pairs_as_copies(skills: tuple[CatalogSkill, ...]) -> None:
    copies = tuple(skills[0]._replace(name=f"copy-{number}", path=f"/copy-{number}") for number in range(300))

    assert len(SimilarSkills().update(copies)) == len(copies) - 1


def test_addresses_after_a_change_are_those_of_a_new_list(skills: tuple[CatalogSkill, ...]) -> None:
    shown = ShownPaths("/work", None)
    added = skills[0]._replace(name="new-one", path="/new-one")
    twin = skills[0]._replace(name="NEW-one", path="/twin")
    before = SkillList(skills[:-1], shown)

    for now in (skills[:-1], (*skills[:-2], added), (added, twin), (added, *skills[3:]), skills):
        assert before.slug_by_path
        before = SkillList(now, shown, before)
        assert before.slug_by_path == SkillList(now, shown).slug_by_path
        assert [*before.by_slug.values()] == [*now]


def test_a_list_shows_what_was_similar_until_it_is_compared_again(skills: tuple[CatalogSkill, ...]) -> None:
    first = SkillList(skills, ShownPaths("/work", None))
    assert first.collisions().preparing is not None
    wait_for(lambda: first.collisions().problems or None)

    second = SkillList(skills[:-1], ShownPaths("/work", None), first)

    assert second.collisions().preparing is None
    assert second.collisions().problems


@pytest.fixture
def database(tmp_path: Path) -> Database:
    """A database with more sessions, and more skills that were used, than one answer of the API has."""
    opened = open_database(f"sqlite:///{tmp_path}/many.sqlite")
    with opened.transaction("default") as transaction:
        transaction.execute_many(
            "insert into journal_session (tenant, stream, session, subject, client, started, latest, events) "
            "values ('default', 'ab', ?, 'ada', 'probe', 1, ?, 2)",
            [(f"s{number:05}", number) for number in range(JOURNAL_ROWS + 50)],
        )
        transaction.execute_many(
            "insert into usage_day (tenant, day, skill, tree, loads) values ('default', 20261117, ?, 't', ?)",
            [(f"skill-{number:05}", number + 1) for number in range(JOURNAL_ROWS + 50)],
        )
    return opened


def test_no_session_and_no_use_is_left_out(machine: Machine, database: Database) -> None:
    write_skill(machine.home / ".agents/skills", "skill-00000")
    write_skill(machine.home / ".agents/skills", "skill-never")
    total = JOURNAL_ROWS + 50
    with running_team(machine, database) as team:
        team.wait_until_ready()
        token = team.token("ada", "admin")
        journal, usage = team.get("/journal", token).body.decode(), team.get("/usage", token).body.decode()
        last = total // WEB_ROWS + 1
        end = {path: team.get(f"{path}?page={last}", token).body.decode() for path in ("/journal", "/usage")}
        oldest = team.get("/journal/ab.s00000", token)

    assert f"{total:,} sessions" in journal
    assert f"Page 1 of {last}" in journal
    assert f"Page 1 of {last}" in usage
    assert "s00000" in end["/journal"]
    assert "skill-00000" in end["/usage"]
    # The least used one is not called unused.
    assert "skill-00000" not in usage
    assert "skill-never" in usage
    assert oldest.status == 200


def test_the_use_by_people_is_that_of_the_last_days_and_says_so(machine: Machine, database: Database) -> None:
    today = first_kept(0)
    with database.transaction("default") as transaction:
        transaction.execute_many(
            "insert into usage_person (tenant, day, subject, skill, loads) values ('default', ?, ?, ?, 3)",
            [(20200101, "zoe", "a"), (today, "bob", "a"), (today, "bob", "b"), (first_kept(1), "bob", "a")],
        )
    with running_team(machine, database) as team:
        token = team.token("ada", "admin")
        page = team.get("/usage", token).body.decode()
        everybody = team.get("/api/v1/usage?by=person", token).body.decode()

    assert f"in the last {WEB_PEOPLE_DAYS} days" in page
    row = page[page.index(">bob ") :]
    assert [int(number) for number in re.findall(r"<span>(?:<b>)?(\d+)", row)[:2]] == [9, 2]
    assert "zoe" not in page
    assert "zoe" in everybody


@pytest.mark.parametrize("name", ["a b.md", "%41.md", "ünï.md", "q'uote\".md", "#1?.md", "sub/{{7}}.md"])
def test_a_file_of_any_name_is_listed_under_that_name_and_its_link_gives_it(
    machine: Machine, database: Database, name: str
) -> None:
    path = write_skill(machine.home / ".agents/skills", "deploy").parent / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("found")

    with running_team(machine, database) as team:
        token = team.token("ada", "skills:read")
        page = team.get("/skills/deploy", token).body.decode()
        (link,) = [link for link in links_in(page) if "/files/" in link]
        answer = team.get(link, token)
        listed = team.get("/api/v1/skills/deploy", token).json["files"]

    assert name in shown(page)
    assert (answer.status, answer.body) == (200, b"found")
    assert page.index("/skills/deploy/raw") < page.index(link)
    assert {file["path"] for file in listed} == {"SKILL.md", encoded_path(name)}


def test_a_file_that_may_be_executed_is_listed_as_such(machine: Machine, database: Database) -> None:
    script = write_skill(machine.home / ".agents/skills", "deploy").parent / "run.sh"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)

    with running_team(machine, database) as team:
        page = shown(team.get("/skills/deploy", team.token("ada", "skills:read")).body.decode())

    assert "run.sh 10 B, executable" in page
    assert page.count(", executable") == 1


def test_the_page_of_a_release_says_what_check_finds_in_it(
    machine: Machine, database: Database, tmp_path: Path
) -> None:
    head = "description: Ships a release to the servers of the shop. Use it when a release is ready to go out."
    files = {
        "SKILL.md": f"---\nname: odd\n{head}\n---\n# Odd\n\nRead [the guide](guide.md).\n".encode(),
        "run\u200b.sh": b"ls\n",
    }
    clean = {"SKILL.md": f"---\nname: clean\n{head}\n---\n# Clean\n\nDo it.\n".encode()}
    with running_team(machine, database, blobs=FolderBlobs(str(tmp_path / "blobs"))) as team:
        token = team.token("ada", "admin")
        for name, contents in (("odd", files), ("clean", clean)):
            done = team.ask("POST", "/api/v1/releases", token, body=zip_of(contents, wrapper=name))
            assert done.status == 201, done.body
        wait_for(lambda: True if team.get("/skills/clean", token).status == 200 else None)
        page, plain = (shown(team.get(f"/skills/{name}", token).body.decode()) for name in ("odd", "clean"))

    write_skill(machine.repo / "work", "odd", files["SKILL.md"]).parent.joinpath("run\u200b.sh").write_bytes(b"ls\n")
    checked = machine.run("check", "work/odd", "--severity", "warning", "--json")
    rules = {one["rule"] for one in json.loads(checked.stdout)["findings"]}
    assert {"reference-missing", "security-hidden-text"} <= rules
    assert all(rule in page for rule in rules), rules
    assert "SKILL.md:7" in page
    assert "Problems" in page.partition("Who sees it")[0]
    assert str(tmp_path) not in page
    assert "skillshelf explain" not in plain


def test_a_yanked_release_says_who_yanked_it_and_why(machine: Machine, database: Database, tmp_path: Path) -> None:
    with running_team(machine, database, blobs=FolderBlobs(str(tmp_path / "blobs"))) as team:
        token = team.token("ada", "admin")
        for version in ("1", "2"):
            body = packed("deploy", f"Text {version}.")
            assert team.ask("POST", f"/api/v1/releases?version={version}", token, body=body).status == 201
        why = json.dumps({"why": "it removes the wrong tag"}).encode()
        assert team.ask("POST", "/api/v1/skills/deploy/versions/1/yank", token, body=why).status == 200
        page = shown(team.get("/skills/deploy", token).body.decode())

    assert "1 (yanked)" in page
    assert "yanked by ada: it removes the wrong tag" in page
    assert page.count("yanked by") == 1


def test_a_file_that_is_too_large_to_show_says_how_large_it_is(machine: Machine, database: Database) -> None:
    path = write_skill(machine.home / ".agents/skills", "deploy")
    with (path.parent / "big.txt").open("wb") as file:
        file.truncate(WEB_FILE_BYTES + 1)

    with running_team(machine, database) as team:
        answer = team.get("/skills/deploy/files/big.txt", team.token("ada", "skills:read"))

    assert answer.status == 413
    assert b"big.txt has 16,777,217 bytes, more than are shown" in answer.body


def test_a_skill_that_was_read_or_run_is_used_and_one_that_was_only_denied_is_not(
    machine: Machine, tmp_path: Path
) -> None:
    for name in ("only-read", "only-run", "only-denied"):
        write_skill(machine.home / ".agents/skills", name)
    opened = open_database(f"sqlite:///{tmp_path}/use.sqlite")
    with opened.transaction("default") as transaction:
        for table, more in (("usage_day", ("tree", "t")), ("usage_person", ("subject", "ada"))):
            transaction.execute_many(
                f"insert into {table} (tenant, day, skill, {more[0]}, reads, runs, denials) "
                "values ('default', ?, ?, ?, ?, ?, ?)",
                [
                    (first_kept(0), "only-read", more[1], 2, 0, 0),
                    (first_kept(0), "only-run", more[1], 0, 3, 0),
                    (first_kept(0), "only-denied", more[1], 0, 0, 4),
                ],
            )
    with running_team(machine, opened) as team:
        team.wait_until_ready()
        page = team.get("/usage", team.token("ada", "admin")).body.decode()

    row = page[page.index(">ada ") :]
    assert [int(number) for number in re.findall(r"<span>(?:<b>)?(\d+)", row)[:2]] == [5, 2]
    used, never = page.split('id="never"')
    assert re.findall(r">(only-\w+)<", used) == ["only-run", "only-read"]
    assert re.findall(r">(only-\w+)<", never) == ["only-denied"]


def test_a_reduced_session_is_not_shown_as_changed_and_says_once_that_it_is_reduced(
    machine: Machine, database: Database
) -> None:
    lines = chain(events(7))
    reduced = [reduced_line(line, json.loads(line)) for line in lines]
    for stream, sent in {"aa" * 16: reduced, "bb" * 16: [*lines[:5], *reduced[5:]], "cc" * 16: lines}.items():
        take(database, ADA, stream, sent)
    with running_team(machine, database) as team:
        token = team.token("ada", "admin")
        pages = [team.get(f"/journal/{one * 16}.s1", token).body.decode() for one in ("aa", "bb", "cc")]

    for page, said in zip(pages, ("Reduced, all events:", "Reduced, 2 events:", ""), strict=True):
        assert "does not match" not in page
        assert page.count("sizes and digests only") == bool(said)
        assert said in page
        assert "release-notes" in page


@pytest.mark.parametrize("session", ["a/b", "x/../../y", "50%2F?#.&"])
def test_the_page_of_a_session_with_any_name_is_found_by_its_link(
    machine: Machine, database: Database, session: str
) -> None:
    take(database, ADA, "aa" * 16, chain(events(4, session=session)))
    with running_team(machine, database) as team:
        token = team.token("ada", "admin")
        links = re.findall(r'href="(/journal/aaaa[^"]*)"', team.get("/journal", token).body.decode())
        page = team.get(html.unescape(links[0]), token)

    assert "/" not in links[0].removeprefix("/journal/")
    assert (len(links), page.status) == (1, 200)
    assert "release-notes" in page.body.decode()
