"""`skill://` addresses of files and folders of a skill are served byte for byte, within limits."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from support.addresses import FILES, SECRET, TOKEN, bytes_of, lay_out
from support.trees import PROJECT_ROOTS, Machine, write_skill

from skillshelf import AmbiguousSkill, LimitExceeded, PathEscape


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    """The tree above; the tests only read it."""
    return lay_out(tmp_path_factory.mktemp("addresses"))


def lower_hex(text: str) -> str:
    """The text with every byte percent-encoded in lower case."""
    return "".join("/" if byte == ord("/") else f"%{byte:02x}" for byte in os.fsencode(text))


@pytest.mark.parametrize("name", FILES, ids=ascii)
def test_every_file_of_a_skill_is_served_byte_for_byte(tree: Machine, name: str) -> None:
    content = FILES[name]
    data = content if isinstance(content, bytes) else content.encode()
    shelf = tree.shelf()
    folder = f"{tree.home}/.agents/skills/deploy"
    # As a program writes it, with as much encoding as there can be, and with as little.
    spellings = [quote(os.fsencode(name)), lower_hex(name), quote(os.fsencode(name), safe="/;+&=,!:@~$*[]()|<>'\" ")]

    for spelling in spellings:
        resource = shelf.read(f"skill://deploy/{spelling}")

        assert bytes_of(resource.content, resource.encoding) == data
        assert resource.encoding == ("base64" if name in ("image.png", "latin.txt") else "utf-8")
        assert (resource.uri, resource.path) == (f"skill://deploy/{spelling}", f"{folder}/{name}")
        assert (resource.size, resource.digest) == (len(data), "sha256:" + sha256(data).hexdigest())


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("Release Notes", "skill://Release%20Notes"),
        ("Release Notes", "skill://Release Notes/"),
        ("café", "skill://caf%c3%a9"),
        ("日本語", "skill://日本語"),
        ("a;b+c&d", "skill://a;b+c&d"),
        ("100%", "skill://100%25"),
        ("what?", "skill://what%3F"),
        ("deploy", "skill://%64%65ploy"),
    ],
)
@pytest.mark.parametrize("profile", ["standard", "omp"])
def test_the_name_of_a_skill_is_decoded_too(machine: Machine, profile: str, name: str, address: str) -> None:
    text = f"---\nname: '{name}'\ndescription: d\n---\nBody\n"
    write_skill(machine.home / ".agents" / "skills", name, text)

    assert machine.shelf(profile).read(address).content == text


def test_an_address_of_a_folder_lists_its_files_and_folders_but_no_links(tree: Machine) -> None:
    shelf = tree.shelf()

    listing = shelf.read("skill://deploy/references")

    assert listing.content.splitlines() == ["..notes.md", "deep/", "style.md"]
    assert listing.content_type == "text/plain"
    assert listing.digest == "sha256:" + sha256(listing.content.encode()).hexdigest()
    assert shelf.read("skill://deploy/references/").content == listing.content
    assert shelf.read("skill://deploy/references/deep/er/").content.splitlines() == ["still.md"]


def test_a_name_in_a_listing_cannot_forge_another_entry_or_break_it(machine: Machine) -> None:
    folder = write_skill(machine.home / ".agents" / "skills", "deploy").parent / "references"
    folder.mkdir()
    (folder / "good.md").write_text("x")
    (folder / "a\nforged.md").write_text("x")
    if os.uname().sysname == "Linux":
        Path(os.fsdecode(os.fsencode(folder) + b"/\xff.md")).write_text("x")

    lines = machine.shelf().read("skill://deploy/references").content.splitlines()

    assert "good.md" in lines
    assert "forged.md" not in lines


def test_a_listing_is_bounded_and_says_so(machine: Machine) -> None:
    folder = write_skill(machine.home / ".agents" / "skills", "deploy").parent / "references"
    folder.mkdir()
    names = [f"{number:03}.md" for number in range(600)]
    for name in names:
        (folder / name).touch()

    lines = machine.shelf().read("skill://deploy/references").content.splitlines()

    assert [line for line in lines if line in names] == names[:512]
    assert [line for line in lines if line not in names] != []


def test_two_skills_of_a_name_are_ambiguous_where_the_profile_keeps_both(machine: Machine) -> None:
    paths = [write_skill(folder / ".agents" / "skills", "deploy") for folder in (machine.repo, machine.home)]

    with pytest.raises(AmbiguousSkill) as refusal:
        machine.shelf("codelia").read("skill://deploy")

    assert refusal.value.paths == tuple(map(str, paths))


# Limits -------------------------------------------------------------------------------------------


def test_a_file_is_read_up_to_the_limit_and_refused_one_byte_above(machine: Machine) -> None:
    folder = write_skill(machine.home / ".agents" / "skills", "deploy").parent
    (folder / "fits").write_bytes(b"x" * 1024 * 1024)
    (folder / "large").write_bytes(b"x" * (1024 * 1024 + 1))
    shelf = machine.shelf()

    assert shelf.read("skill://deploy/fits").size == 1024 * 1024
    with pytest.raises(LimitExceeded, match="large has 1048577 bytes; at most 1048576 are read"):
        shelf.read("skill://deploy/large")
    result = shelf.session().call("skill_read", {"uri": "skill://deploy/large"})
    assert result.error is not None
    assert result.error.code == "too_large"
    assert shelf.read("skill://deploy/large", limit=2 * 1024 * 1024).size == 1024 * 1024 + 1


def test_a_large_file_is_refused_by_its_size_and_not_read(machine: Machine) -> None:
    folder = write_skill(machine.home / ".agents" / "skills", "deploy").parent
    with (folder / "sparse").open("wb") as file:
        file.truncate(1 << 32)

    with pytest.raises(LimitExceeded, match=str(1 << 32)):
        machine.shelf().read("skill://deploy/sparse")


def test_an_address_has_at_most_4096_characters_32_segments_and_255_bytes_a_name(machine: Machine) -> None:
    skill = write_skill(machine.home / ".agents" / "skills", "deploy").parent
    long = Path(*["a" * 255] * 6)
    deep = Path(*["d"] * 32)
    for path in (long, deep):
        (skill / path).parent.mkdir(parents=True)
        (skill / path).write_text(str(path))
    # Each encoded character is two characters longer; this number gives an address of exactly the maximal length.
    plain = f"skill://deploy/{long}"
    longest = plain.replace("a", "%61", (4096 - len(plain)) // 2)
    shelf = machine.shelf()

    assert len(longest) == 4096
    assert shelf.read(longest).content == str(long)
    assert shelf.read(f"skill://deploy/{deep}").content == str(deep)
    for beyond in (longest + "/", f"skill://deploy/{deep}/d"):
        with pytest.raises(LimitExceeded):
            shelf.read(beyond)
    with pytest.raises(PathEscape):
        shelf.read("skill://deploy/" + "a" * 256)


# Content types ------------------------------------------------------------------------------------


@pytest.mark.req("O-57", "O-58")
@pytest.mark.parametrize(
    ("name", "by_extension", "markdown_or_plain"),
    [
        ("references/style.md", "text/markdown", "text/markdown"),
        ("UPPER.MD", "text/markdown", "text/markdown"),
        ("no-extension", "text/plain", "text/plain"),
        ("crlf.txt", "text/plain", "text/plain"),
        ("image.png", "image/png", "text/plain"),
        ("references", "text/plain", "text/plain"),
    ],
)
def test_the_content_type_is_the_profiles_business(
    tree: Machine, name: str, by_extension: str, markdown_or_plain: str
) -> None:
    found = {name: tree.shelf(name) for name in ("standard", "strict", "rip", "omp")}
    types = {profile: shelf.read(f"skill://deploy/{name}").content_type for profile, shelf in found.items()}

    assert types == {**dict.fromkeys(("standard", "strict", "rip"), by_extension), "omp": markdown_or_plain}


# One requirement each -----------------------------------------------------------------------------


def omp_read(machine: Machine, address: str) -> Any:
    """Return the result of the `read` tool of that profile for an address."""
    return machine.shelf("omp").session().call("read", {"path": address})


@pytest.mark.req("O-02", "O-49", "O-50")
def test_a_name_is_the_skill_file_and_a_path_is_a_file_in_its_folder(tree: Machine) -> None:
    folder = f"{tree.home}/.agents/skills/deploy"

    whole, part = omp_read(tree, "skill://deploy"), omp_read(tree, "skill://deploy/references/style.md")

    assert (whole.text, whole.data["path"]) == (Path(folder, "SKILL.md").read_text(), f"{folder}/SKILL.md")
    assert (part.text, part.data["path"]) == ("# Style\n", f"{folder}/references/style.md")


@pytest.mark.req("O-51")
@pytest.mark.parametrize("name", ["Deploy", "DEPLOY", "deplo", "deploy-", "deploy ", "ｄｅｐｌｏｙ"])
def test_a_skill_is_found_by_its_exact_name_only(tree: Machine, name: str) -> None:
    result = omp_read(tree, f"skill://{name}")

    assert result.error.code == "not_found"
    assert result.error.message.startswith(f"Skill not found: {name}")


@pytest.mark.req("O-52")
def test_a_path_is_decoded_exactly_once(tree: Machine) -> None:
    assert omp_read(tree, "skill://deploy/with%20two%20%20blanks.md").text == "blanks\n"
    assert omp_read(tree, "skill://deploy/%2541.md").text == "encoded once more\n"
    assert omp_read(tree, "skill://deploy/%41.md").error.code == "not_found"


@pytest.mark.req("O-53", "O-54")
@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/etc/passwd", "Absolute paths are not allowed"),
        ("%2Fetc/passwd", "Absolute paths are not allowed"),
        (f"../{SECRET}", "Path traversal (..) is not allowed"),
        ("references/../references/style.md", "Path traversal (..) is not allowed"),
        ("%2e%2e/x", "Path traversal (..) is not allowed"),
        ("references/..%5c..%5cx", "Path traversal (..) is not allowed"),
    ],
)
def test_an_absolute_path_and_a_way_up_are_refused_for_what_they_are(tree: Machine, path: str, reason: str) -> None:
    result = omp_read(tree, f"skill://deploy/{path}")

    assert result.error.code == "invalid_params"
    assert result.error.message.startswith(reason)


@pytest.mark.req("O-55")
@pytest.mark.parametrize("path", ["link-file", f"link-folder/{SECRET}", f"link-up/{SECRET}", "references/link-deep"])
def test_no_link_leads_out_of_the_skill(tree: Machine, path: str) -> None:
    result = omp_read(tree, f"skill://deploy/{path}")

    assert (result.ok, result.data, TOKEN in result.text) == (False, {}, False)


@pytest.mark.req("O-56", "O-59")
def test_a_missing_file_is_said_to_be_missing_and_looked_for_nowhere_else(machine: Machine) -> None:
    root = machine.home / ".agents" / "skills"
    for folder in ("deploy/references", "deploy/assets", "other", "."):
        (root / folder).mkdir(parents=True, exist_ok=True)
        (root / folder / "style.md").write_text("of another place")
    (machine.repo / "style.md").write_text("of another place")
    for name in ("deploy", "other"):
        write_skill(root, name)

    result = omp_read(machine, "skill://deploy/style.md")

    assert (result.error.code, result.error.message) == ("not_found", "File not found: style.md")
    assert result.text == "Error: File not found: style.md"


@pytest.mark.req("K-30", "K-32")
def test_a_load_names_the_files_of_a_skill_and_each_of_them_takes_a_call_of_its_own(machine: Machine) -> None:
    trace = machine.base / "trace"
    body = f"Read references/style.md, @references/style.md and !`touch {trace}`; run scripts/run.sh.\n"
    text = f"---\nname: deploy\ndescription: d\n---\n{body}"
    folder = write_skill(machine.repo / ".agents" / "skills", "deploy", text).parent
    for name, content in {"references/style.md": "Past tense.\n", "scripts/run.sh": f"touch {trace}\n"}.items():
        (folder / name).parent.mkdir()
        (folder / name).write_text(content)
        (folder / name).chmod(0o755)
    session = machine.shelf("rip").session()

    load = session.call("skill_load", {"name": "deploy"})
    reads = [
        session.call("skill_read", {"uri": f"skill://deploy/{name}"})
        for name in ("references/style.md", "scripts/run.sh", "references")
    ]

    assert body in load.text
    assert load.data["files"] == ["references/style.md", "scripts/run.sh"]
    assert "Past tense." not in load.text
    assert [read.text for read in reads] == ["Past tense.\n", f"touch {trace}\n", "style.md"]
    assert not trace.exists()


# Links inside a skill -----------------------------------------------------------------------------


def with_links(machine: Machine, root: str) -> Path:
    """A skill with links of every kind; returns its folder."""
    folder = write_skill(machine.repo / root, "deploy").parent
    (folder / "references/old").mkdir(parents=True)
    (folder / "references/v2.md").write_text("version 2")
    (folder / "references/old/v1.md").write_text("version 1")
    (machine.base / SECRET).write_text(TOKEN)
    for name, target in {
        "latest.md": "references/v2.md",
        "references/first.md": "./old/../old/v1.md",
        "references/old/newest.md": "../v2.md",
        "chain.md": "latest.md",
        "absolute.md": f"{folder}/references/v2.md",
        "docs": "references",
        "whole": ".",
        "out.md": f"../../../../{SECRET}",
        "out-absolute.md": f"{machine.base}/{SECRET}",
        "up": "..",
        "round.md": f"references/../../deploy/../../../../{SECRET}",
        "beside.md": f"{folder}-not/x",
        "loop.md": "loop.md",
        "broken.md": "nothing.md",
    }.items():
        (folder / name).symlink_to(target)
    return folder


INSIDE = {
    "latest.md": "version 2",
    "references/first.md": "version 1",
    "references/old/newest.md": "version 2",
    "chain.md": "version 2",
    "absolute.md": "version 2",
    "docs/v2.md": "version 2",
    "docs/old/v1.md": "version 1",
    "whole/docs/first.md": "version 1",
}


@pytest.mark.req("O-55")
@pytest.mark.parametrize("profile", sorted(PROJECT_ROOTS))
def test_a_link_to_a_file_of_the_same_skill_is_read_in_every_profile(machine: Machine, profile: str) -> None:
    with_links(machine, PROJECT_ROOTS[profile])
    shelf = machine.shelf(profile)

    assert {path: shelf.read(f"skill://deploy/{path}").content for path in INSIDE} == INSIDE


@pytest.mark.req("O-55")
@pytest.mark.parametrize(
    "path",
    ["out.md", "out-absolute.md", "up", "up/deploy/SKILL.md", "round.md", "beside.md", "loop.md"],
)
def test_a_link_that_leaves_the_skill_or_never_ends_is_refused(machine: Machine, path: str) -> None:
    with_links(machine, ".agents/skills")

    with pytest.raises(PathEscape):
        machine.shelf().read(f"skill://deploy/{path}")


@pytest.mark.req("O-55")
@pytest.mark.req("O-55")
@pytest.mark.parametrize("target", ["../other/SKILL.md", "../other"])
def test_no_link_leads_a_model_to_the_instructions_of_another_skill(machine: Machine, target: str) -> None:
    folder = write_skill(machine.repo / ".agents/skills", "deploy").parent
    write_skill(machine.repo / ".agents/skills", "other")
    (folder / "link").symlink_to(target)
    session = machine.shelf().session()
    path = "link" if target.endswith(".md") else "link/SKILL.md"
    result = session.call("skill_read", {"uri": f"skill://deploy/{path}"})

    assert (result.ok, session.active) == (False, ())
    assert "not a regular file" in result.text


def test_a_listing_has_the_links_that_can_be_read_and_a_dead_one_is_missing(machine: Machine) -> None:
    with_links(machine, ".agents/skills")
    shelf = machine.shelf()

    assert shelf.read("skill://deploy/whole").content.split() == [
        *("SKILL.md", "absolute.md", "chain.md", "docs/", "latest.md", "references/", "whole/")
    ]
    assert shelf.read("skill://deploy/docs").content.split() == ["first.md", "old/", "v2.md"]
    with pytest.raises(PathEscape, match=r"not a regular file: broken\.md \(link\)"):
        shelf.read("skill://deploy/broken.md")
