"""The pages as static files: relative links, the same bytes each time, and a folder of its own."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from urllib.parse import unquote

import pytest
from support.trees import Machine, write_skill
from support.web import account_folder, hostile_machine, links_in

from skillshelf.core.limits import WEB_FILE_BYTES, WEB_SITE_FILE_BYTES
from skillshelf.servers.web.site import MARKER


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def _write(machine: Machine, *words: str) -> dict[str, bytes]:
    out = machine.base / "out"
    done = machine.run("site", str(out), *words)
    assert done.returncode == 0, done.stderr
    return _files(out)


def test_every_link_of_a_site_is_relative_and_leads_to_a_file(tmp_path: Path) -> None:
    machine = hostile_machine(tmp_path, files=20)
    found = _write(machine)

    pages = [name for name in found if name.endswith(".html")]
    assert len(pages) > 30
    for name in pages:
        for link in links_in(found[name].decode()):
            if link.startswith("#"):
                continue
            assert not re.match(r"/|[a-z]+:", link), (name, link)
            target = (Path("/site") / name).parent / unquote(link.partition("#")[0])
            assert str(target.resolve().relative_to("/site")) in found, (name, link)


def test_no_file_of_a_skill_has_a_name_that_a_web_server_takes_for_a_page(tmp_path: Path) -> None:
    found = _write(hostile_machine(tmp_path, files=0))

    copies = [name for name in found if "/files/" in name]
    assert copies
    assert all(name.endswith(".txt") for name in copies)
    assert b"is not text" in found["skills/hostile-script/files/data.bin.txt"]


def test_a_file_that_cannot_be_copied_is_described(machine: Machine) -> None:
    folder = write_skill(machine.repo / ".agents/skills", "deploy").parent
    for name, size in {"large.txt": WEB_SITE_FILE_BYTES + 1, "huge.txt": WEB_FILE_BYTES + 1}.items():
        with (folder / name).open("wb") as file:
            file.write(b"x" * (WEB_SITE_FILE_BYTES + 1))
            file.truncate(size)

    found = _write(machine)

    assert b"has 262,145 bytes, more than" in found["skills/deploy/files/large.txt.txt"]
    assert b"has 16,777,217 bytes, more than" in found["skills/deploy/files/huge.txt.txt"]


def test_the_same_skills_give_the_same_bytes(machine: Machine) -> None:
    for name in ("deploy", "notes", "Deploy"):
        write_skill(machine.repo / ".agents/skills", name)
    first = _write(machine)

    assert _write(machine) == first


def test_a_site_takes_the_repository_and_home_only_when_asked(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "of-project")
    write_skill(machine.home / ".agents/skills", "of-home")

    alone = b"".join(_write(machine).values())
    both = _write(machine, "--user")

    assert b"of-home" not in alone
    assert b"of-project" in alone
    assert "skills/of-home/index.html" in both
    for secret in (str(machine.home), str(machine.base), account_folder()):
        assert secret.encode() not in b"".join(both.values())


def test_a_site_takes_no_skill_from_outside_the_repository_through_a_link(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "of-project")
    private = write_skill(machine.home / ".agents/skills", "private-notes").parent
    elsewhere = write_skill(machine.base / "elsewhere", "shared-notes").parent
    for folder in (private, elsewhere):
        (folder / "notes.md").write_text("The secret plan.\n")
        (machine.repo / ".agents/skills" / folder.name).symlink_to(folder)
    (machine.repo / ".claude/skills").mkdir(parents=True)
    (machine.repo / ".claude/skills/of-project").symlink_to("../../.agents/skills/of-project")

    found = _write(machine)

    assert "skills/of-project/index.html" in found
    assert not [name for name in found if "notes" in name]
    assert not [name for name, data in found.items() if b"secret plan" in data]
    assert found["problems/index.html"].count(b"link-outside") >= 2
    assert "skills/private-notes/index.html" in _write(machine, "--user")


@pytest.mark.parametrize("above", [False, True])
def test_a_site_of_the_home_folder_must_be_asked_for(machine: Machine, above: bool) -> None:
    write_skill(machine.home / ".agents/skills", "private-notes")
    out = machine.base / "out"

    done = machine.run("site", str(out), cwd=machine.home.parent if above else machine.home)

    assert done.returncode == 2
    assert "--user" in done.stderr
    assert not out.exists()


def test_a_site_of_a_repository_below_the_home_folder_takes_nothing_above_it(machine: Machine) -> None:
    repository = machine.home / "work/shop"
    (repository / ".git").mkdir(parents=True)
    write_skill(
        repository / ".agents/skills",
        "of-project",
        f"---\nname: of-project\ndescription: In {machine.home}/x\n---\n{machine.home}/y\n",
    )
    for root in (".agents/skills", ".claude/skills", "work/.claude/skills"):
        write_skill(machine.home / root, "of-home")

    assert machine.run("site", str(machine.base / "out"), cwd=repository).returncode == 0

    written = {path: path.read_bytes() for path in (machine.base / "out").rglob("*.html")}
    assert machine.base / "out/skills/of-project/index.html" in written
    for secret in ("of-home", str(machine.home), str(machine.base), "home-missing"):
        assert [path for path, data in written.items() if secret.encode() in data] == [], secret


def test_skills_and_files_with_the_names_of_pages_have_files_of_their_own(machine: Machine) -> None:
    for name in ("index.html", "page-2", "a.txt"):
        write_skill(machine.repo / ".agents/skills", name)
    inner = machine.repo / ".agents/skills/a.txt"
    (inner / "b.txt").mkdir()
    (inner / "b.txt/c").write_text("x")
    (inner / "b").write_text("x")

    written = _write(machine)

    assert "skills/index.html" in written
    assert "skills/index.html~/index.html" in written
    assert "skills/a.txt~/files/b.txt" in written
    assert "skills/a.txt~/files/b.txt~/c.txt" in written


def test_a_site_is_the_same_whoever_writes_it(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    first = _write(machine)
    machine.configure('hosts = ["codex"]\n')
    write_skill(machine.home / ".agents/skills", "deploy")

    assert _write(machine) == first


def test_a_site_is_the_same_wherever_its_repository_was_cloned(machine: Machine) -> None:
    for number in range(60):
        about = f"Does thing {number} in {'every possible way ' * 12}."
        text = f"---\nname: skill-{number}\ndescription: {about}\n---\nx\n"
        write_skill(machine.repo / ".agents/skills", f"skill-{number}", text)
    first = _write(machine)
    clone = machine.base / ("far/" * 20) / machine.repo.name
    shutil.copytree(machine.repo, clone)
    out = machine.base / "other"

    assert machine.run("site", str(out), cwd=clone).returncode == 0

    assert _files(out) == first


def test_a_site_is_written_again_and_what_is_gone_is_removed(machine: Machine) -> None:
    gone = write_skill(machine.repo / ".agents/skills", "gone")
    write_skill(machine.repo / ".agents/skills", "deploy")
    _write(machine)
    (machine.base / "out/CNAME").write_text("skills.example")
    gone.unlink()
    gone.parent.rmdir()

    found = _write(machine)

    assert not any(name.startswith("skills/gone") for name in found)
    assert not (machine.base / "out/skills/gone").exists()
    assert found["CNAME"] == b"skills.example"


def test_what_an_interrupted_run_wrote_is_removed_by_the_next_one(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    _write(machine)
    gone = [write_skill(machine.repo / ".agents/skills", name).parent for name in ("aaa", "zzz")]
    in_the_way = machine.base / "out/skills/zzz/index.html"
    in_the_way.mkdir(parents=True)
    assert machine.run("site", str(machine.base / "out")).returncode == 2
    assert (machine.base / "out/skills/aaa/index.html").exists()

    in_the_way.rmdir()
    for folder in gone:
        shutil.rmtree(folder)
    _write(machine)

    assert not (machine.base / "out/skills/aaa").exists()


def test_a_site_of_a_newer_version_is_left_as_it_is(machine: Machine) -> None:
    _write(machine)
    marker = machine.base / "out/.skillshelf-site.json"
    marker.write_text(json.dumps({"site": 2, "files": []}))
    before = {path: path.read_bytes() for path in (machine.base / "out").rglob("*") if path.is_file()}

    done = machine.run("site", str(machine.base / "out"))

    assert (done.returncode, done.stdout) == (2, "")
    assert f"{marker}: version 2 is of a newer skillshelf" in done.stderr
    assert {path: path.read_bytes() for path in (machine.base / "out").rglob("*") if path.is_file()} == before


def test_a_folder_of_somebody_else_is_left_alone(machine: Machine) -> None:
    out = machine.base / "out"
    out.mkdir()
    (out / "index.html").write_text("mine")

    done = machine.run("site", str(out))

    assert done.returncode == 2
    assert "neither empty nor a site" in done.stderr
    assert _files(out) == {"index.html": b"mine"}


@pytest.mark.parametrize("marker", ["", "[]", "{}", '{"site": 9, "files": []}'])
def test_a_marker_that_is_not_ours_counts_for_nothing(machine: Machine, marker: str) -> None:
    out = machine.base / "out"
    out.mkdir()
    (out / MARKER).write_text(marker)

    assert machine.run("site", str(out)).returncode == 2


def test_nothing_is_written_or_removed_through_a_link(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    _write(machine)
    outside = machine.base / "outside"
    outside.mkdir()
    static = machine.base / "out/static"
    for file in static.iterdir():
        file.rename(outside / file.name)
    static.rmdir()
    static.symlink_to(outside)
    before = _files(outside)

    assert machine.run("site", str(machine.base / "out")).returncode == 2
    assert _files(outside) == before


def test_nothing_is_removed_that_a_marker_names_outside_of_its_site(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    _write(machine)
    outside = machine.base / "outside.css"
    outside.write_text("mine")
    (machine.base / "out/old.html").write_text("of an earlier site")
    names = ["../outside.css", str(outside), "static/../../outside.css", "\u0000", "old.html"]
    (machine.base / "out" / MARKER).write_text(json.dumps({"site": 1, "files": names}))

    _write(machine)

    assert outside.read_text() == "mine"
    assert not (machine.base / "out/old.html").exists()
