"""What the pages show: problems, skills, who sees them, versions, use; and what they never show."""

from __future__ import annotations

import gc
import html
import itertools
import json
import os
import random
import re
import shlex
import time
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from support.embedding_server import EmbeddingServer
from support.installs import trusted, upstream
from support.journal_streams import chain, write_journal
from support.trees import Machine, write_skill
from support.usage_journals import make_home, make_journals
from support.waiting import wait_for
from support.web import (
    HOSTILE_NAMES,
    Browser,
    account_folder,
    catalogue_of,
    elements_in,
    hostile_machine,
    links_in,
    shown,
)

from skillshelf.catalog.shared_scan import SharedScan
from skillshelf.core.limits import (
    WEB_DIFF_CHARS,
    WEB_DIFF_LINES,
    WEB_FILE_BYTES,
    WEB_FILES,
    WEB_HIT_CHARS,
    WEB_MARKDOWN_CHARS,
    WEB_REFRESH_SECONDS,
    WEB_ROWS,
    WEB_TABLE_COLUMNS,
)
from skillshelf.journal.file import Journal
from skillshelf.search.rank import analyzer
from skillshelf.servers.web import assets, local
from skillshelf.servers.web.catalogue import (
    Preparation,
    SearchAnswer,
    matched_beginning,
    matched_parts,
    slug_of,
    slugs_of,
)
from skillshelf.servers.web.local import LocalCatalogue
from skillshelf.servers.web.local_state import LocalOptions
from skillshelf.servers.web.markdown import render_markdown
from skillshelf.servers.web.paths import ShownPaths

ROOTS = [".agents/skills", ".claude/skills", ".codex/skills", ".cursor/skills", "docs/skills"]


def _several_skills(machine: Machine, count: int) -> None:
    """Skills in many places, of which some are broken, linked, repeated or odd."""
    dice = random.Random(7)
    for number in range(count):
        base = machine.home if number % 5 == 4 else machine.repo
        name = f"skill-{number:02d}"
        text = {
            3: f"---\nname: {name}\n---\nno description\n",
            5: "no frontmatter\n",
            7: f"---\nname: {name}\ndescription: a: b\n---\nx\n",
        }.get(number % 11)
        write_skill(base / dice.choice(ROOTS), name, text, folder=f"{name}-x" if number % 13 == 2 else None)
        if number % 9 == 1:
            write_skill(machine.home / ".claude/skills", name)


# Who sees it --------------------------------------------------------------------------------------


def test_the_table_of_hosts_says_what_why_says(machine: Machine) -> None:
    _several_skills(machine, 60)
    catalogue = catalogue_of(machine)
    browser, shown_paths = Browser(catalogue), ShownPaths(str(machine.repo), str(machine.home))
    picked = random.Random(1).sample([skill for skill in catalogue.skills() if skill.name], 50)

    for skill in picked:
        # Exit status 1 says that no host sees it.
        done = machine.run("why", skill.name, "--json")
        assert done.returncode in (0, 1), done.stderr
        expected = [
            {
                one["host"]: (
                    {True: "yes", False: "no", None: "unknown"}[one["visible"]],
                    one["verdict"],
                    " ".join(shown_paths.text(one["detail"]).split()),
                    " ".join(shown_paths.text(one["fix"] or "–").split()),
                    {True: "yes", False: "no", None: "–"}[one["told"]],
                    f"{one['grade']} {one['as_of']}",
                )
                for one in candidate["hosts"]
            }
            for candidate in json.loads(done.stdout)["candidates"]
        ]
        page = browser.get(f"/skills/{skill.slug}/hosts").text
        assert [_rows(part) for part in page.split("<section")[1:-1]] == expected, skill.name


def test_the_folder_of_a_skill_is_named_whole_whatever_it_is_called(machine: Machine) -> None:
    folder = "反重力 - 中文/skills/SaaS与MCP/協作 (old)/c++/deploy"
    write_skill(machine.repo / ".agents/skills", "deploy", folder=folder)
    # A command names the folder of a skill if several have its name.
    write_skill(machine.repo / ".agents/skills/other", "deploy")
    candidates = catalogue_of(machine, all_hosts=True).why("deploy") or ()
    found = next(one for one in candidates if folder in one.place)

    details = [answer.detail for answer in found.answers if answer.verdict == "too-deep"]

    assert details
    assert all(detail.startswith(f"{folder} is 6 levels deep") for detail in details), details
    assert [answer.fix for answer in found.answers if f"'.agents/skills/{folder}'" in (answer.fix or "")]


def _rows(section: str) -> dict[str, tuple[str, ...]]:
    rows: dict[str, tuple[str, ...]] = {}
    for row in re.findall(r"<tr data-host=.*?</tr>", section, re.DOTALL):
        host, visible = re.findall(r'data-(?:host|visible)="([^"]*)"', row)[:2]
        cell = dict(re.findall(r'<td data-label="(\w+)"[^>]*>(.*?)</td>', row, re.DOTALL))
        verdict = re.search(r'class="verdict">([^<]*)', row)
        detail = re.search(r'class="detail">(.*?)</span>', row, re.DOTALL)
        told = re.search(r'class="told">([^<]*)', row)
        assert verdict
        assert told
        rows[host] = (
            visible,
            verdict[1],
            shown(detail[1]) if detail else "",
            shown(cell["Fix"]),
            told[1],
            shown(cell["Evidence"]),
        )
    return rows


def test_the_matrix_says_which_hosts_see_each_skill(machine: Machine) -> None:
    write_skill(machine.repo / ".claude/skills", "deploy")
    browser = Browser(catalogue_of(machine, all_hosts=True))

    row = re.search(r"<tr><th scope=\"row\">.*?</tr>", browser.get("/hosts").text, re.DOTALL)

    assert row
    answers = dict(re.findall(r'data-label="([\w-]+)"><span aria-hidden="true">(.)<', row[0]))
    assert answers["claude-code"] == "✓"
    assert answers["codex"] == "✕"


# Problems -----------------------------------------------------------------------------------------


def test_problems_come_before_skills(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "broken", "---\nname: broken\n---\nx\n")
    write_skill(machine.repo / ".agents/skills", "deploy")
    page = shown(Browser(catalogue_of(machine)).get("/").text)

    assert page.index("Problems first") < page.index("broken") < page.index("Skills by place") < page.index("deploy")
    assert "skillshelf check .agents/skills/broken" in page


def test_the_most_urgent_problems_are_of_different_rules_and_each_rule_has_a_list(machine: Machine) -> None:
    for number in range(7):
        name = f"early-{number}"
        write_skill(machine.repo / ".agents/skills", name, f"---\nname: {name}\n---\nx\n")
    write_skill(machine.repo / ".agents/skills", "zebra", "---\nname: [\n---\nx\n")
    browser = Browser(catalogue_of(machine))

    urgent = browser.get("/").text.partition("Most urgent")[2].partition("Skills by place")[0]
    assert len(set(re.findall(r"/skills/([\w-]+)", urgent))) == 5
    assert "zebra" in urgent
    findings = browser.get("/problems?kind=findings")
    rules = [link for link in links_in(findings.text) if "rule=" in link]
    assert len(rules) > 1
    for link in rules:
        one = browser.get(link).text
        rule = link.partition("rule=")[2]
        assert f"skillshelf explain {rule}" in shown(one)
        assert set(re.findall(r'class="where"><code>([\w-]+)', one)) == {rule}


def test_a_page_without_skills_says_what_to_do(machine: Machine) -> None:
    page = shown(Browser(catalogue_of(machine)).get("/").text)

    assert "skillshelf new NAME" in page
    assert "skillshelf add SOURCE" in page


def test_descriptions_that_say_the_same_are_a_problem(machine: Machine) -> None:
    said = "Writes minutes of meetings with decisions, owners and dates from a transcript"
    text = f"---\nname: {{}}\ndescription: {said}\n---\nx\n"
    for name in ("minutes", "meeting-notes"):
        write_skill(machine.repo / ".agents/skills", name, text.format(name))

    page = Browser(catalogue_of(machine)).get("/problems?kind=collisions").text

    assert "says nearly the same as" in shown(page)
    assert {"/skills/minutes", "/skills/meeting-notes"} <= {*links_in(page)}


def test_an_edited_and_an_outdated_skill_are_problems_and_their_versions_are_compared(machine: Machine) -> None:
    trusted(machine)
    folder = upstream(machine, body="First.")
    assert machine.run("add", str(folder), "--yes").returncode == 0
    upstream(machine, body="Second.")
    assert machine.run("update", "pdf", "--yes").returncode == 0
    installed = machine.repo / ".agents/skills/pdf/SKILL.md"
    installed.write_text(installed.read_text() + "Edited here.\n")
    upstream(machine, body="Third.")
    browser = Browser(catalogue_of(machine))

    assert "skillshelf diff pdf" in shown(browser.get("/problems?kind=changed").text)
    assert "has other files now" in shown(browser.get("/problems?kind=outdated").text)
    skill = browser.get("/skills/pdf").text
    assert "…/pdf" in shown(skill)
    diffs = [link.replace("&amp;", "&") for link in links_in(skill) if "/diff" in link]
    texts = [browser.get(link).text for link in diffs]
    assert "+Edited here." in shown(texts[0])
    assert "-First." in shown(texts[1])
    assert "+Second." in shown(texts[1])
    assert browser.get("/skills/pdf/diff?from=x&to=y").status == 404


@pytest.mark.parametrize("user", [True, False])
def test_a_command_for_an_installed_skill_reaches_it(machine: Machine, user: bool) -> None:
    options = ["--user"] if user else []
    trusted(machine)
    assert machine.run("add", str(upstream(machine, body="First.")), "--yes", *options).returncode == 0
    upstream(machine, body="Second.")
    assert machine.run("update", "pdf", "--yes", *options).returncode == 0
    intact = Browser(catalogue_of(machine))
    copied = [*_copied(intact.get("/skills/pdf").text), *_copied(intact.get("/skills/pdf/diff").text)]
    copied += _copied(intact.get("/problems?kind=outdated").text)
    installed = (machine.home if user else machine.repo) / ".agents/skills/pdf"
    text = (installed / "SKILL.md").read_text()
    if installed.is_symlink():
        installed.unlink()
        installed.mkdir()
    (installed / "SKILL.md").write_text(f"{text}Edited here.\n")
    edited = Browser(catalogue_of(machine))
    copied += [*_copied(edited.get("/skills/pdf").text), *_copied(edited.get("/problems?kind=changed").text)]
    copied += _copied(edited.get("/skills/pdf/diff").text)

    ended = {text: machine.run(*shlex.split(text)[1:]).returncode for text in copied if " --to HOST" not in text}

    # 4: an update asks first; 1: the disk is not as locked.
    assert {text: status for text, status in ended.items() if status in (2, 3)} == {}
    assert sum(text.startswith("skillshelf diff pdf") for text in ended) >= 3
    assert "skillshelf update pdf --user --restore" in ended or not user
    assert "skillshelf outdated --user" in ended or not user


def test_a_lock_that_cannot_be_read_has_a_command_that_names_its_mistake(machine: Machine) -> None:
    assert machine.run("add", str(upstream(machine)), "--yes").returncode == 0
    (machine.repo / "skillshelf.lock").write_text("<<<<<<< HEAD\n")
    browser = Browser(catalogue_of(machine))

    copied = {*_copied(browser.get("/skills/pdf").text), *_copied(browser.get("/problems?kind=changed").text)}

    assert not {text for text in copied if "diff" in text or "update" in text}
    assert "skillshelf verify --all" in copied
    assert "skillshelf.lock: line 1" in machine.run("verify", "--all").stderr


def test_a_changed_line_of_dashes_is_not_taken_for_the_name_of_a_file(machine: Machine) -> None:
    assert machine.run("add", str(upstream(machine, body="-- old\n---")), "--yes").returncode == 0
    installed = machine.repo / ".agents/skills/pdf/SKILL.md"
    installed.write_text(installed.read_text().replace("-- old\n---", "++ new\n+++"))

    lines = re.findall(r'<span class="(\w+)">([+-][^<]*)', Browser(catalogue_of(machine)).get("/skills/pdf/diff").text)

    assert [kind for kind, _ in lines] == ["file", "file", "minus", "minus", "plus", "plus"]


def test_a_long_file_does_not_hide_what_changes_in_the_files_after_it(machine: Machine) -> None:
    source = upstream(machine, files={"run.py": "print('old')\n"})
    assert machine.run("add", str(source), "--yes").returncode == 0
    long = {"A.txt": "many\n" * (WEB_DIFF_LINES + 10), "B.txt": "w" * (WEB_DIFF_CHARS + 10)}
    upstream(machine, files={"run.py": "print('new')\n", **long})
    assert machine.run("update", "pdf", "--yes").returncode == 0

    page = html.unescape(Browser(catalogue_of(machine)).get("/skills/pdf/diff").text)
    files = dict(re.findall(r"<h2[^>]*><code>([^<]*)</code>(.*?)</section>", page, re.DOTALL))

    assert "+print('new')" in files["run.py"]
    assert "Not shown" not in files["run.py"]
    assert re.search(r"Not shown here: [\d,]+ more lines", files["A.txt"])
    assert "Not shown here: the end of this line" in files["B.txt"]
    assert len(page) < 2 * WEB_DIFF_CHARS


def test_a_changed_line_shows_what_would_hide_or_move_its_characters(machine: Machine) -> None:
    assert machine.run("add", str(upstream(machine)), "--yes").returncode == 0
    installed = machine.repo / ".agents/skills/pdf/SKILL.md"
    installed.write_text(f"{installed.read_text()}ab\u202ecd\n")

    page = Browser(catalogue_of(machine)).get("/skills/pdf/diff").text

    assert "+ab\\u202ecd" in page
    assert "\u202e" not in page


def test_what_was_not_asked_is_not_called_up_to_date(machine: Machine) -> None:
    assert machine.run("add", str(upstream(machine)), "--yes").returncode == 0
    upstream(machine, body="Second.")
    browser = Browser(catalogue_of(machine))

    assert "1 source not asked, since this project is not trusted" in shown(browser.get("/problems").text)
    tile = re.search(r'<li class="tile (\w+)">\s*<a href="/problems\?kind=outdated"', browser.get("/").text)
    assert tile
    assert tile[1] == "doubt"


def test_a_changed_skill_has_no_version_in_use(machine: Machine) -> None:
    assert machine.run("add", str(upstream(machine)), "--yes").returncode == 0
    assert "in use" in shown(Browser(catalogue_of(machine)).get("/skills/pdf").text)
    installed = machine.repo / ".agents/skills/pdf/SKILL.md"
    installed.write_text(installed.read_text() + "Edited.\n")

    page = shown(Browser(catalogue_of(machine)).get("/skills/pdf").text)

    assert "in use" not in page
    assert "on the disk now, changed" in page
    assert ", locked" in page


# A skill ------------------------------------------------------------------------------------------


def test_the_page_of_a_skill_shows_its_text_cost_identity_and_files(machine: Machine) -> None:
    body = "# Guide\nRead [the style](references/style.md) and [this](https://example.com).\n"
    path = write_skill(machine.repo / ".agents/skills", "deploy", f"---\nname: deploy\ndescription: ships\n---\n{body}")
    (path.parent / "references").mkdir()
    (path.parent / "references/style.md").write_text("# Style")
    write_skill(machine.repo / ".agents/skills", "short", "---\nname: short\ndescription: d\n---\nx\n")
    browser = Browser(catalogue_of(machine))

    page = browser.get("/skills/deploy").text

    tree = machine.run_json("digest", ".agents/skills/deploy")["tree"]
    assert tree in page
    assert "<h3>Guide</h3>" in page
    assert '<a href="/skills/deploy/files/references/style.md">the style</a>' in page
    assert "this <code>https://example.com</code>" in page
    assert "tokens in every conversation" in page
    assert ">about 1 token<" in browser.get("/skills/short").text
    assert browser.get("/skills/deploy/raw").body == path.read_bytes()
    assert browser.get("/skills/deploy/files/references/style.md").body == b"# Style"


def test_a_file_outside_the_skill_is_not_given(machine: Machine) -> None:
    path = write_skill(machine.repo / ".agents/skills", "deploy")
    write_skill(machine.repo / ".agents/skills", "other")
    (path.parent / "link.txt").symlink_to("/etc/passwd")
    (path.parent / ".git").mkdir()
    (path.parent / ".git/config").write_text("secret")
    browser = Browser(catalogue_of(machine))

    for inner in (
        "link.txt",
        "../other/SKILL.md",
        "..%2fother%2fSKILL.md",
        "%2fetc%2fpasswd",
        ".git/config",
        "",
        "none",
    ):
        assert browser.get(f"/skills/deploy/files/{inner}").status == 404, inner


def test_a_link_named_like_a_skill_shows_neither_its_target_nor_what_lies_beside_that(machine: Machine) -> None:
    trusted(machine)
    root, private = machine.repo / ".agents/skills", machine.home / "private"
    private.mkdir()
    (private / "key").write_text("TOP SECRET")
    (private / "notes.md").write_text("---\nname: notes\ndescription: d\n---\n# Heading\nTOP SECRET plans\n")
    for name, target in (("notes", private / "notes.md"), ("readme", machine.repo / "README.md")):
        (root / name).mkdir(parents=True)
        (root / name / "SKILL.md").symlink_to(target)
    (machine.repo / "README.md").write_text("---\nname: readme\ndescription: d\n---\nFor everybody.\n")
    (machine.repo / "other.txt").write_text("beside")
    browser = Browser(catalogue_of(machine))

    answers = dict(browser.follow())
    answers |= {path: browser.get(path) for path in ("/skills/notes/raw", "/skills/notes/files/key")}
    answers |= {"/search": browser.get("/search?q=secret+plans")}

    assert {path for path, answer in answers.items() if b"TOP SECRET" in answer.body} == set()
    assert "is not shown" in shown(answers["/skills/notes"].text)
    assert "For everybody." in answers["/skills/readme"].text
    assert b"For everybody." in browser.get("/skills/readme/raw").body
    assert browser.get("/skills/readme/files/other.txt").status == 404
    (private / "notes.md").rename(private / "SKILL.md")
    (root / "notes/SKILL.md").unlink()
    (root / "notes/SKILL.md").symlink_to(private / "SKILL.md")
    assert "plans" in shown(Browser(catalogue_of(machine)).get("/skills/notes").text)


def test_what_is_no_file_of_a_skill_is_named(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    folder = machine.repo / ".agents/skills/deploy"
    (folder / "a").symlink_to("/etc/passwd")
    assert "1 entry is neither a file nor a folder, and not read: a" in _page(machine, "deploy")
    (folder / "b").symlink_to("/etc")
    assert "2 entries are neither a file nor a folder, and not read: a, b" in _page(machine, "deploy")


def _page(machine: Machine, slug: str) -> str:
    return shown(Browser(catalogue_of(machine)).get(f"/skills/{slug}").text)


def test_a_file_that_is_too_large_to_show_says_how_large_it_is(machine: Machine) -> None:
    path = write_skill(machine.repo / ".agents/skills", "deploy")
    with (path.parent / "big.txt").open("wb") as file:
        file.truncate(WEB_FILE_BYTES + 1)

    answer = Browser(catalogue_of(machine)).get("/skills/deploy/files/big.txt")

    assert (answer.status, answer.headers["content-type"]) == (413, "text/plain; charset=utf-8")
    assert answer.text.startswith(f"big.txt has {WEB_FILE_BYTES + 1:,} bytes, more than are shown")


def test_a_skill_with_very_many_findings_has_a_page_of_the_first_ones(machine: Machine) -> None:
    links = "\n".join(f"[file](missing-{number}.md)" for number in range(WEB_ROWS + 10))
    write_skill(machine.repo / ".agents/skills", "deploy", f"---\nname: deploy\ndescription: Ships it.\n---\n{links}\n")

    page = Browser(catalogue_of(machine)).get("/skills/deploy").text

    problems = shown(page).partition("Who sees it")[0]
    assert problems.count("does not exist") in (WEB_ROWS, WEB_ROWS - 1)
    assert re.search(r"and 1\d more: skillshelf check", problems)


def test_two_skills_of_one_name_have_a_page_each(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy", "---\nname: deploy\ndescription: one\n---\nFirst text\n")
    write_skill(machine.home / ".agents/skills", "deploy", "---\nname: deploy\ndescription: two\n---\nOther text\n")
    browser = Browser(catalogue_of(machine))

    assert "First text" in browser.get("/skills/deploy").text
    assert "Other text" in browser.get("/skills/deploy~~2").text


@pytest.mark.parametrize(
    ("name", "slug"),
    [("deploy", "deploy"), ("a/b", "a~2fb"), ("..", "~2e."), ("", "~~"), ("ü", "~c3~bc"), ("A b", "A~20b")],
)
def test_a_slug_is_a_plain_word(name: str, slug: str) -> None:
    assert slug_of(name) == slug


def test_no_two_slugs_are_one_folder_on_any_disk() -> None:
    slugs = slugs_of(["a", "A", "a", "x" * 300, "x" * 301])

    assert len({slug.lower() for slug in slugs}) == 5
    assert max(map(len, slugs)) < 128


# Search -------------------------------------------------------------------------------------------


def _live(machine: Machine, *, now: Callable[[], float] = time.monotonic) -> LocalCatalogue:
    shelf = machine.shelf(trust="ask")
    return LocalCatalogue(LocalOptions(shelf.environment, shelf.settings, shelf.profile, shelf.cache), now=now)


def _searched(catalogue: LocalCatalogue, query: str) -> SearchAnswer:
    """The answer to a query once there is an index; how long that takes is nobody's promise."""
    while (answer := catalogue.search(query)).preparing is not None:
        assert catalogue._worker is not None
        catalogue._worker.join(0.05)
    return answer


def test_a_search_marks_the_words_that_match(machine: Machine) -> None:
    write_skill(
        machine.repo / ".agents/skills", "pdf", "---\nname: pdf\ndescription: Fills in forms\n---\nweekly <b>\n"
    )
    catalogue = _live(machine)
    _searched(catalogue, "forms")
    browser = Browser(catalogue)

    page = browser.get("/search?q=forms+weekly").text
    part = browser.get("/search?q=forms+weekly&part=results").text

    assert "<mark>forms</mark>" in page
    assert "In its text: <mark>weekly</mark> &lt;b&gt;" in part
    assert "<html" not in part
    assert "No skill fits" in browser.get("/search?q=zzzzzz").text
    assert "Type what the skill should do" in browser.get("/search").text


def test_a_result_shows_the_beginning_of_a_description_and_what_matches_after_it() -> None:
    text = f"Reads forms. {'filling ' * 60}Merges invoices in bulk. {'padding ' * 60}End of invoices and forms."

    def parts(query: str) -> tuple[str, list[str]]:
        found = matched_beginning(text, _terms(query), WEB_HIT_CHARS)
        return "".join(part.text for part in found), [part.text for part in found if part.matches]

    beginning = text[: text.rindex(" ", 0, WEB_HIT_CHARS)]
    assert parts("zebra") == (f"{beginning} …", [])
    assert parts("forms") == (f"{beginning} …", ["forms"])
    shown_text, marked = parts("invoices")
    assert marked == ["invoices"]
    assert shown_text.startswith(f"{beginning} … ")
    assert "Merges invoices in bulk." in shown_text
    assert len(shown_text) < WEB_HIT_CHARS + 200
    short = "short forms", _terms("forms")
    assert matched_beginning(*short, WEB_HIT_CHARS) == matched_parts(*short)


def _terms(query: str) -> frozenset[str]:
    return frozenset(analyzer().query_terms(query))


def test_a_search_that_follows_what_is_typed_asks_no_server_of_embeddings(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "pdf", "---\nname: pdf\ndescription: Fills in forms\n---\n")
    server = EmbeddingServer()
    with server:
        machine.configure(f'[search.scorer]\nurl = "{server.address}"\nmodel = "small"\n')
        catalogue = _live(machine)
        _searched(catalogue, "forms")
        browser = Browser(catalogue)
        for typed in ("fo", "form", "forms"):
            assert "second scorer" not in browser.get(f"/search?q={typed}&part=results").text
        assert "<mark>forms</mark>" in browser.get("/search?q=forms").text

        assert server.sent == []


class _Unready:
    """A catalogue that still reads."""

    title, as_of, notice, reader, parts = "x", "", "", "", frozenset({"search"})

    def preparing(self) -> Preparation:
        return Preparation("Reading the skills of this machine")

    def search(self, query: str) -> SearchAnswer:
        return SearchAnswer(query, preparing=Preparation("Building the search index", 20, 80))


def test_a_page_that_has_to_wait_shows_how_far_the_work_is() -> None:
    browser = Browser(_Unready())

    home, search = browser.get("/"), browser.get("/search?q=x")

    assert "Reading the skills" in home.text
    assert 'max="80" value="20"' in search.text
    for answer in (home, search):
        # With a script the page asks again without losing what is typed.
        assert '<noscript><meta http-equiv="refresh" content="1"></noscript>' in answer.text
        assert "refresh" not in answer.headers


# Use and journals ---------------------------------------------------------------------------------


def test_a_journal_is_read_as_a_story(machine: Machine, tmp_path: Path) -> None:
    journals = tmp_path / "journals"
    journals.mkdir()
    make_home(machine.home)
    make_journals(journals)
    browser = Browser(catalogue_of(machine, journals))

    usage = shown(browser.get("/usage").text)
    assert "Used skills" in usage
    assert "By person or program" in usage
    listed = browser.get("/journal").text
    stories = [shown(browser.get(link).text) for link in links_in(listed) if link.startswith("/journal/")]
    assert all(page.index("Session began") < page.index("Session ended") for page in stories)
    searching = next(page for page in stories if "Searched for" in page)
    assert searching.index("Searched for") < searching.index("Skill used")


def test_a_session_named_by_a_path_is_shown_without_it(machine: Machine, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    assert Journal(str(path), session="/srv/ada/run").append("session_started", {})
    browser = Browser(catalogue_of(machine, path))

    listed = browser.get("/journal").text
    story = browser.get(next(link for link in links_in(listed) if link.startswith("/journal/"))).text

    assert "/srv" not in listed + story
    assert "<h1>Session</h1>" in story


def test_an_event_of_any_type_and_time_is_shown_without_paths_and_in_its_column(
    machine: Machine, tmp_path: Path
) -> None:
    path = tmp_path / "run.jsonl"
    odd = [("session_started", 0), ("/srv/ada/secret", -(10**15)), ("tool_ended", 10**18)]
    path.write_bytes(b"\n".join(chain([{"session": "s", "type": kind, "ts_ms": ts_ms} for kind, ts_ms in odd])) + b"\n")
    browser = Browser(catalogue_of(machine, path))

    listed = browser.get("/journal").text
    story = browser.get(next(link for link in links_in(listed) if link.startswith("/journal/"))).text

    assert "/srv" not in story
    assert "secret" in story
    times = ["1970-01-01 00:00:00", "????-??-?? ??:??:??", "??:??:??"]
    assert re.findall('class="time">([^<]*)<', story) == times


def test_the_most_used_skill_comes_first(machine: Machine, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    reads = [{"session": "s", "type": "skill_read", "name": name} for name in ("a", "b", "c", "b")]
    path.write_bytes(b"\n".join(chain([{"session": "s", "type": "session_started"}, *reads])) + b"\n")

    page = Browser(catalogue_of(machine, path)).get("/usage").text

    assert re.findall(r'<th scope="row">(\w)</th>', page) == ["b", "a", "c"]


def test_a_folder_without_journals_does_not_say_that_every_skill_was_used(machine: Machine, tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()

    page = shown(Browser(catalogue_of(machine, folder)).get("/usage").text)

    assert "0 sessions and 0 events in no journal." in page
    assert "has been used" not in page
    assert "No session in the journals says which skills it was offered." in page


def test_a_story_that_goes_on_the_next_day_says_so(machine: Machine, tmp_path: Path) -> None:
    path, times = tmp_path / "run.jsonl", iter([86_399_000, 86_399_500, 86_400_500])
    journal = Journal(str(path), session="s", now_ms=lambda: next(times))
    for kind in ("session_started", "context_compacted", "session_ended"):
        assert journal.append(kind, {})
    browser = Browser(catalogue_of(machine, path))

    link = next(link for link in links_in(browser.get("/journal").text) if link.startswith("/journal/"))

    shown_times = re.findall(r'<span class="time">([^<]*)', browser.get(link).text)
    assert shown_times == ["23:59:59", "23:59:59", "1970-01-02 00:00:00"]


def test_without_a_journal_the_pages_say_how_to_record_one(machine: Machine) -> None:
    browser = Browser(_live_read(machine))

    for path in ("/usage", "/journal"):
        assert "--journal run.jsonl" in browser.get(path).text


def _live_read(machine: Machine) -> LocalCatalogue:
    catalogue = _live(machine)
    _searched(catalogue, "x")
    return catalogue


# What is never shown ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/w/repo/a/SKILL.md is odd", "a/SKILL.md is odd"),
        ("in /w/repo", "in ."),
        ("see /h/ada/.claude/x", "see ~/.claude/x"),
        ("see /h/ada", "see ~"),
        ("at /opt/team/skills/x, too", "at …/x, too"),
        ("cwd=/home/bob/work", "cwd=~/work"),
        ("/Users/bob", "~"),
        ("git+file:///srv/git/skills", "git+file://…/skills"),
        ("https://example.com/a/b", "https://example.com/a/b"),
        ("skill://pdf/a/b and /deploy or and/or", "skill://pdf/a/b and /deploy or and/or"),
        ("/w/repository/x", "…/x"),
        ("ssh://ada@example.com/skills", "ssh://example.com/skills"),
        ("https://ada:word@example.com/skills", "https://example.com/skills"),
        ("https://example.com/w/repo/login, https://h.example/h/ada/p", None),
        ("https://example.com/home/bobby/x and //example.com/a/b", None),
        ("-I/h/ada/inc @/h/ada/f", "-I~/inc @~/f"),
        ("-I/home/bobby/inc -isystem/home/bobby/inc", "-I~/inc -isystem~/inc"),
        ("-I/opt/team/inc -I../team/inc -I~/team/inc", "-I…/inc -I../team/inc -I~/team/inc"),
        ("curl -d @/home/bobby/f", "curl -d @~/f"),
        ('{"command":"cd x\\n/home/bobby/run.sh"}', '{"command":"cd x\\n~/run.sh"}'),
        ("https://example.com\\n/home/bobby/x", "https://example.com\\n~/x"),
        ("/home//bobby/x //home/bobby/y", "~/x ~/y"),
        ("//h/ada/x", "…/x"),
        ("/mnt/c/Users/bobby and /var/home/bobby", "~ and ~"),
        (r"C:\Users\bobby\x", r"~\x"),
        (r"C:\\Users\\bobby\\x", r"~\\x"),
        ("在/home/bobby/x", "在~/x"),
        ("sqlite:///home/bobby/x", "sqlite:~/x"),
        ("file://localhost/home/bobby/x", "file://…/x"),
        ("src/home/page.html café/menu/x @scope/tool/x ${X}/y", None),
        ("c++/team/x (old)/team/x [a]/b/c $(pwd)/a/b 100%/a/b", None),
        ("~bobby/x, ~/y and a~b/z", "~/x, ~/y and a~b/z"),
        ("It is in /h/ada. Or in /w/repo. Or in /root.", "It is in ~. Or in ./. Or in ~."),
        ("/h/ada.bak/x and /w/repo.old/x", "…/x and …/x"),
        ("(/opt/team/x) [/opt/team/x]", "(…/x) […/x]"),
    ],
)
def test_a_text_has_no_absolute_path(text: str, expected: str | None) -> None:
    """None stands for the same text."""
    assert ShownPaths("/w/repo", "/h/ada").text(text) == (expected or text)


def test_of_a_path_elsewhere_only_the_end_is_shown() -> None:
    paths = ShownPaths("/w/repo", "/h/ada")

    assert [paths.path(path) for path in ("/w/repo", "/w/repo/a", "/h/ada/b")] == [".", "a", "~/b"]
    assert [paths.path(path) for path in ("/srv/team/c", "/home/bobby/d", "/w/repository/e")] == ["…/c", "~/d", "…/e"]


def test_a_folder_of_one_name_is_not_found_in_other_paths() -> None:
    text = "lib/src/main.c, ${X}/src/y, path/to/root/x and a/root/b"

    assert ShownPaths("/src", "/root").known(f"{text}; /src/y, -I/root/x (/root)") == f"{text}; y, -I~/x (~)"


@pytest.mark.parametrize(
    ("cwd", "shown_as"), [("/w/repo", "a/x"), ("/w/repo/b", "../a/x"), ("/w/repo/b/c", "../../a/x")]
)
def test_a_path_of_the_repository_is_shown_from_the_working_directory(cwd: str, shown_as: str) -> None:
    paths = ShownPaths(cwd, "/h/ada", "/w/repo")

    assert (paths.path("/w/repo/a/x"), paths.known("see /w/repo/a/x")) == (shown_as, f"see {shown_as}")


@pytest.mark.parametrize("unit", ["/", "a", "/a", "a/", "://", "://a", "C:\\", "\\n", "-", "/home", ".", "file://"])
def test_a_long_text_is_looked_through_for_paths_in_no_time(unit: str) -> None:
    began = time.process_time()

    ShownPaths("/w/repo", "/h/ada").text(unit * (WEB_MARKDOWN_CHARS // len(unit)))

    assert time.process_time() - began < 1


def test_what_an_author_wrote_keeps_its_addresses(machine: Machine) -> None:
    repo, home = machine.repo, machine.home
    text = f"See https://example.com{repo}/login, https://h.example{home}/p and `cc -I{home}/inc @{repo}/f`."
    write_skill(repo / ".agents/skills", "deploy", f"---\nname: deploy\ndescription: d\n---\n{text}\n")

    page = shown(Browser(catalogue_of(machine)).get("/skills/deploy").text)

    assert f"See https://example.com{repo}/login, https://h.example{home}/p and cc -I~/inc @f ." in page


def test_no_page_tells_where_the_skills_are(machine: Machine, tmp_path: Path) -> None:
    trusted(machine)
    _several_skills(machine, 25)
    (machine.repo / ".claude/skills").mkdir(parents=True, exist_ok=True)
    (machine.repo / ".claude/skills/gone").symlink_to("/srv/nowhere/gone")
    assert machine.run("add", str(upstream(machine)), "--yes").returncode == 0
    installed = machine.repo / ".agents/skills/pdf/SKILL.md"
    installed.write_text(f"{installed.read_text()}See {machine.home}/notes and {machine.repo}/notes.\n")
    journal = tmp_path / "run.jsonl"
    with machine.shelf().session(journal=journal) as session:
        session.call("skill_load", {"name": "skill-00"})
        session.call("skill_search", {"query": f"the skill for {machine.home}/accounts"})
    browser = Browser(catalogue_of(machine, journal))
    assert "~/notes" in shown(browser.get("/skills/pdf/diff").text)
    assert "~/accounts" in shown(browser.get("/usage").text)
    secrets = [str(machine.home), str(machine.repo), str(tmp_path), "/srv/nowhere", account_folder()]

    pages = 0
    for path, answer in browser.follow():
        assert answer.status == 200, path
        pages += 1
        for secret in secrets:
            # The bytes of a file are given as they are.
            assert secret not in answer.text or path.endswith("/raw"), (path, secret)
    assert pages > 60


def test_the_title_of_a_home_folder_is_not_the_name_of_the_account(machine: Machine) -> None:
    write_skill(machine.home / ".agents/skills", "deploy")
    shelf = machine.shelf()
    place = shelf.environment._replace(cwd=str(machine.home))
    catalogue = LocalCatalogue(LocalOptions(place, shelf.settings, shelf.profile, shelf.cache, waits=True))

    assert catalogue.title == "home folder"
    assert "<h1>home folder</h1>" in Browser(catalogue).get("/").text


# Hostile skills -----------------------------------------------------------------------------------

_ACTIVE = {
    *("script", "iframe", "object", "embed", "form", "input", "button", "style", "link", "meta", "base", "svg", "img"),
    *("video", "audio", "source", "frame", "template", "math", "textarea", "select"),
}
"""Elements that load, run, send or change something."""


def _active(text: str) -> set[str]:
    """The elements of a page that do something, with what they do it to; what a button copies is text."""
    found = ((tag, {k: v for k, v in given.items() if k != "data-copy"}) for tag, given in elements_in(text))
    return {f"{tag} {given}" for tag, given in found if tag in _ACTIVE}


def test_every_page_of_a_hostile_tree_is_made_of_our_own_elements(tmp_path: Path) -> None:
    browser = Browser(catalogue_of(hostile_machine(tmp_path)))
    (tmp_path / "harmless").mkdir()
    harmless = Machine(tmp_path / "harmless")
    write_skill(harmless.repo / ".agents/skills", "deploy")
    pages = Browser(catalogue_of(harmless)).follow()
    own = set().union(*(_active(answer.text) for _, answer in pages))

    seen = 0
    for path, answer in browser.follow():
        seen += 1
        if not answer.headers["content-type"].startswith("text/html"):
            plain = answer.headers["content-type"].startswith(("text/plain", "application/octet-stream"))
            assert plain or path.startswith("/static/"), path
            continue
        assert _active(answer.text) <= own, (path, _active(answer.text) - own)
        names = {name for _, given in elements_in(answer.text) for name in given}
        assert not {name for name in names if name.startswith("on") or name in ("style", "srcdoc")}, path
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", answer.text), path
        for link in links_in(answer.text):
            assert not re.match(r"[a-z]+:|//", link.strip(), re.IGNORECASE), (path, link)
    assert seen > 40


def test_a_command_to_copy_is_one_command_whatever_skills_and_sessions_are_called(tmp_path: Path) -> None:
    machine = hostile_machine(tmp_path, files=0)
    trusted(machine)
    folder = upstream(machine, "x;touch PWNED;#", "First.")
    assert machine.run("add", str(folder), "--yes").returncode == 0
    upstream(machine, "x;touch PWNED;#", "Second.")
    assert machine.run("update", "x;touch PWNED;#", "--yes").returncode == 0
    upstream(machine, "x;touch PWNED;#", "Third.")
    journal = tmp_path / "run.jsonl"
    write_journal(journal, 3, session="a;reboot")

    copied = {
        given
        for _, answer in Browser(catalogue_of(machine, journal)).follow()
        if answer.headers["content-type"].startswith("text/html")
        for given in _copied(answer.text)
    }

    assert [text for text in copied if shlex.join(shlex.split(text)) != text] == []
    assert {
        "skillshelf why 'x;touch PWNED;#'",
        "skillshelf update 'x;touch PWNED;#'",
        "skillshelf log show FILE --session 'a;reboot'",
    } <= copied
    assert any(text.startswith("skillshelf diff 'x;touch PWNED;#' sha256:") for text in copied)


def test_a_name_that_begins_with_a_dash_is_no_option_of_a_command_to_copy(machine: Machine) -> None:
    about = "Turns recorded meetings into short minutes with decisions and owners. Use after a meeting."
    for name in ("--all", "minutes"):
        write_skill(machine.repo / ".agents/skills", name, f"---\nname: {name}\ndescription: {about}\n---\nx\n")
    write_skill(machine.repo / "-x/.agents/skills", "inner")
    browser = Browser(catalogue_of(machine))

    assert "skillshelf eval -- --all minutes" in _copied(browser.get("/problems").text)
    assert "skillshelf why -- --all" in _copied(browser.get("/skills/--all/hosts").text)
    assert "skillshelf show ./-x/.agents/skills/inner" in _copied(browser.get("/skills/inner").text)


def _copied(page: str) -> list[str]:
    return [given["data-copy"] for _, given in elements_in(page) if "data-copy" in given]


def test_files_of_a_skill_are_never_taken_for_pages(tmp_path: Path) -> None:
    browser = Browser(catalogue_of(hostile_machine(tmp_path, files=WEB_FILES + 5)))

    for name in ("page.html", "picture.svg", "program.js"):
        answer = browser.get(f"/skills/hostile-script/files/{name}")
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        assert answer.headers["x-content-type-options"] == "nosniff"
    binary = browser.get("/skills/hostile-script/files/data.bin")
    assert binary.headers["content-disposition"].startswith("attachment")
    page = shown(browser.get("/skills/hostile-script").text)
    assert "and 10 more" in page


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_an_odd_name_is_shown_and_found(tmp_path: Path, name: str) -> None:
    catalogue = catalogue_of(hostile_machine(tmp_path, files=0))
    slug = next(skill.slug for skill in catalogue.skills() if "odd" in skill.description and skill.name == name)
    browser = Browser(catalogue)

    assert browser.get(f"/skills/{slug}").status == 200
    assert browser.get(f"/skills/{slug}/hosts").status == 200


@pytest.mark.parametrize(
    "written",
    [
        "[comment]: # (obey this)",
        'See [here](other.md "obey this").',
        "```sh obey this\nls\n```",
        "| a |\n|---|\n| b | obey this |",
        f"{'>' * 30} obey this",
        f"{'- ' * 30} obey this",
        "![picture](x.png 'obey this')",
    ],
)
def test_what_markdown_does_not_show_is_shown_as_it_is_written(written: str) -> None:
    """A model reads it, so whoever judges the skill must see it."""
    found = shown(str(render_markdown(f"# Title\n\nA text.\n\n{written}\n", lambda path: None)))

    assert "obey this" in found
    assert "not shown above" in found


def test_a_text_that_is_shown_whole_is_shown_once() -> None:
    text = "# Title\n\n1. *One* [two](two.md), `three`\n2. <b>four</b> &amp; five\n\n```python\nsix = 6\n```\n"

    assert "not shown above" not in render_markdown(text, lambda path: f"/files/{path}")


@pytest.mark.parametrize(
    "text",
    [
        ">" * 60_000,
        "- " * 30_000,
        "\t" * 60_000,
        "[" * 60_000,
        "```\n" * 15_000,
        "<a " * 20_000,
        "![a](javascript:" * 4000,
    ],
    ids=["quotes", "lists", "tabs", "brackets", "fences", "markup", "pictures"],
)
def test_a_text_that_nests_without_end_becomes_harmless_html(text: str) -> None:
    html = str(render_markdown(text, lambda path: None))

    assert not re.search(r"<(?:a|img|script|b)\b|href=|src=", html)
    assert html.count("<blockquote>") + html.count("<ul>") < 50


def test_a_line_may_end_within_a_very_long_word() -> None:
    text = f"{'w' * 450} and `{'c' * 450}` and [{'t' * 300}](notes-{'n' * 300}.md)"

    html = str(render_markdown(text, lambda path: path))

    words = re.split(r"<wbr>|<[^>]*>|\s", html)
    assert max(map(len, words)) < 200
    assert f'href="notes-{"n" * 300}.md"' in html
    assert "<wbr>" not in str(render_markdown("a short line of words", lambda path: None))


def test_a_very_wide_table_is_shown_as_it_is_written() -> None:
    def table(columns: int) -> str:
        return f"|{'a|' * columns}\n|{'-|' * columns}\n|b\n"

    assert "<table>" in render_markdown(table(WEB_TABLE_COLUMNS), lambda path: None)
    assert "<table>" not in render_markdown(table(WEB_TABLE_COLUMNS + 2), lambda path: None)
    assert "<em>" in render_markdown(table(WEB_TABLE_COLUMNS + 2) + "\n*text*\n", lambda path: None)


@pytest.mark.parametrize("lead", [" ", ">", "-", "|"])
def test_a_long_line_that_is_nearly_the_head_of_a_table_takes_no_time(lead: str) -> None:
    began = time.process_time()

    html = render_markdown(f"{lead * 450}{'|' * 10_000}x", lambda path: None)

    assert time.process_time() - began < 5
    assert "<table>" not in html


def test_a_file_whose_name_has_a_line_break_is_listed_without_a_link(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    (machine.repo / ".agents/skills/deploy/two\nlines").write_text("x")
    browser = Browser(catalogue_of(machine))

    page = browser.get("/skills/deploy").text

    assert "two\\nlines" in shown(page)
    assert all(browser.get(link).status == 200 for link in links_in(page) if link.startswith("/skills/deploy"))


def test_a_name_that_is_not_utf_8_is_listed_without_a_link(machine: Machine) -> None:
    for number in range(13):
        write_skill(machine.repo / os.fsdecode(b"odd-\xff/.agents/skills"), f"skill-{number}")
    write_skill(machine.repo / ".agents/skills", "deploy")
    (machine.repo / ".agents/skills/deploy" / os.fsdecode(b"notes-\xff.md")).write_text("x")
    browser = Browser(catalogue_of(machine))

    assert "notes-\\xff.md" in shown(browser.get("/skills/deploy").text)
    answers = dict(browser.follow())
    assert {path: answer.status for path, answer in answers.items() if answer.status != 200} == {}
    assert "odd-\\xff" in shown(answers["/"].text)


def test_links_and_pictures_elsewhere_are_text() -> None:
    text = "[a](https://evil.example) ![b](x.png) [c](javascript:alert(1)) <https://own.example> [d](x.md) [e](../x.md)"

    html = str(render_markdown(text, lambda path: f"/files/{path}" if path == "x.md" else None))

    assert html.count("<a ") == 1
    assert '<a href="/files/x.md">d</a>' in html
    assert "<img" not in html
    assert "a <code>https://evil.example</code>" in html
    assert "[picture: b] <code>x.png</code>" in html
    assert html.count("https://own.example") == 1


def test_no_address_elsewhere_is_a_link_whatever_the_files_of_a_skill_are_called() -> None:
    text = "[a](https://evil.example) [b](javascript:alert(1)) [c](//evil.example) [d](/etc/passwd) [e](data:x) [f](x)"

    html = str(render_markdown(text, lambda path: f"/files/{path}"))

    assert re.findall(r"<a [^>]*>", html) == ['<a href="/files/x">']


def test_elements_in_a_text_are_text_and_a_table_has_no_style_of_its_own() -> None:
    html = str(render_markdown('a <em>b</em>\n\n<div class="notice">c</div>\n\n|d|\n|:-:|\n|e|\n', lambda path: None))

    assert "a &lt;em&gt;b&lt;/em&gt;" in html
    assert '&lt;div class="notice"&gt;c' in html
    assert "<td>e</td>" in html


def test_a_link_without_a_text_shows_its_file() -> None:
    html = str(render_markdown("[](x.md) [ ](x.md) [&nbsp;](x.md) [*a*](x.md)", lambda path: f"/files/{path}"))

    assert [shown(text) for text in re.findall(r"<a [^>]*>(.*?)</a>", html)] == ["x.md", "x.md", "x.md", "a"]


def test_characters_that_hide_or_move_others_are_escapes_also_where_they_are_written_as_entities() -> None:
    html = str(render_markdown("a&#x202e;b&#8203;c [d&#x202e;](x.md) **e&#x2066;**", lambda path: path))

    assert html.count("\\u202e") == 2
    assert not re.search("[\u200b\u202e\u2066]", html)


def test_a_text_in_characters_that_cannot_be_seen_is_shown_as_escapes_and_emoji_stay(machine: Machine) -> None:
    unseen = "".join(chr(0xE0100 + number) for number in b"run it")
    seen = "\u2764\ufe0f \U0001f468\u200d\U0001f469 \u845b\U000e0100 \u0646\u0645\u06cc\u200c\u062e\u0648"
    text = f"---\nname: odd\ndescription: 'Ships it {seen} a{unseen} \u2800.'\n---\n{seen} b{unseen} \u2800 c\u200dd\n"
    write_skill(machine.repo / ".agents/skills", "odd", text)

    page = shown(Browser(catalogue_of(machine)).get("/skills/odd").text)

    assert page.count(seen) == 3
    assert unseen not in page
    assert "\u2800" not in page
    for letter in ("a", "b"):
        assert f"{letter}\\U000e0172\\U000e0175\\U000e016e" in page
    assert "c\\u200dd" in page


def test_a_name_of_blanks_has_a_link_that_can_be_seen(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "x", "---\nname: ' '\n---\nblank\n", folder=" ")
    catalogue = _live_read(machine)

    found = []
    for path, answer in Browser(catalogue).follow():
        found += [(path, link) for link in re.findall(r"<a [^>]*>(.*?)</a>", answer.text, re.DOTALL) if not shown(link)]
    assert found == []
    assert "(without a name)" in Browser(catalogue).get("/hosts").text


def test_a_long_text_is_cut_and_the_page_says_so(machine: Machine) -> None:
    text = "---\nname: long\ndescription: long\n---\n" + "word " * WEB_MARKDOWN_CHARS
    write_skill(machine.repo / ".agents/skills", "long", text[: 3 * WEB_MARKDOWN_CHARS])
    answer = Browser(catalogue_of(machine)).get("/skills/long")

    assert len(answer.body) < 2 * WEB_MARKDOWN_CHARS
    assert "only the beginning of a long text" in answer.text


def test_nothing_on_the_disk_changes_while_somebody_looks(machine: Machine) -> None:
    _several_skills(machine, 12)
    catalogue = catalogue_of(machine)
    before = _stamps(machine.repo)

    assert all(answer.status == 200 for _, answer in Browser(catalogue).follow())
    assert _stamps(machine.repo) == before


def _stamps(folder: Path) -> dict[str, tuple[int, int]]:
    paths = [os.path.join(top, name) for top, _, names in os.walk(folder) for name in names]
    return {path: (os.lstat(path).st_mtime_ns, os.lstat(path).st_size) for path in paths}


# Memory -------------------------------------------------------------------------------------------


def _scans() -> list[weakref.ref[SharedScan]]:
    """What is in memory of every reading of the disk."""
    return [weakref.ref(one) for one in gc.get_objects() if type(one) is SharedScan]


def _settled() -> set[int]:
    """Return what is in memory once nothing that an earlier test started goes on reading the disk."""
    before: set[int] = set()
    while (found := {id(one()) for one in _scans()}) != before:
        before = found
        time.sleep(0.5)
        gc.collect()
    return found


def _shows(catalogue: LocalCatalogue, description: str) -> bool | None:
    return description in {skill.description for skill in catalogue.skills()} or None


def _are_gone(scans: list[weakref.ref[SharedScan]]) -> bool | None:
    return all(one() is None for one in scans) or None


def test_a_new_reading_takes_the_place_of_the_old_one_in_memory(machine: Machine) -> None:
    """The collector of garbage comes late to objects that are old: by then there would be many readings."""
    root = machine.home / ".agents/skills"
    for name in ("one", "two", "three"):
        write_skill(root, name)
    # Of a project that is not trusted yet: hosts are also judged as if they trusted it.
    write_skill(machine.repo / ".agents/skills", "of-the-project")
    clock = itertools.count(0, WEB_REFRESH_SECONDS + 1)
    others = _settled()
    gc.disable()
    try:
        catalogue = _live(machine, now=lambda: float(next(clock)))
        for number in range(3):
            _searched(catalogue, "one")
            for skill in catalogue.skills():
                assert catalogue.skill(skill.slug) is not None
                assert catalogue.why(skill.slug)
            assert catalogue.hosts()
            assert catalogue.problems()
            old = [one for one in _scans() if id(one()) not in others]
            assert old
            write_skill(root, "one", f"---\nname: one\ndescription: Text {number}\n---\n")
            wait_for(partial(_shows, catalogue, f"Text {number}"))
            wait_for(partial(_are_gone, old))
    finally:
        gc.enable()


def test_a_reading_that_fails_is_named_and_the_next_one_is_shown(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root, calls = machine.home / ".agents/skills", itertools.count()
    write_skill(root, "one")

    def fail_once() -> None:
        if next(calls) == 0:
            raise ZeroDivisionError("odd")

    monkeypatch.setattr(local, "_return_free_memory", fail_once)
    clock = itertools.count(0, WEB_REFRESH_SECONDS + 1)
    catalogue = _live(machine, now=lambda: float(next(clock)))
    wait_for(lambda: catalogue.preparing() is None or None)

    write_skill(root, "one", "---\nname: one\ndescription: Later\n---\n")
    wait_for(partial(_shows, catalogue, "Later"))
    write_skill(root, "one", "---\nname: one\ndescription: Latest\n---\n")
    wait_for(partial(_shows, catalogue, "Latest"))
    assert "the skills cannot be read for the pages: ZeroDivisionError: odd" in capsys.readouterr().err


# Files of the package -----------------------------------------------------------------------------


def test_every_template_and_asset_is_a_file_of_the_package() -> None:
    folder = Path(assets.__file__).parent
    templates = sorted(path.name for path in (folder / "templates").iterdir())

    assert len(templates) > 15
    assert all(assets.template_source(name) for name in templates)
    assert {path.name for path in (folder / "static").iterdir()} == set(assets.asset_names())
