"""The skills extension: listings, entries, reads and refusals."""

from __future__ import annotations

import json
from base64 import b64decode, urlsafe_b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from support.mcps import ERAS, INVALID_PARAMS, ask, client_of, code_of, run, text_of
from support.trees import Machine, write_skill

EXTENSION = "io.modelcontextprotocol/skills"


def digest(data: bytes) -> str:
    return "sha256:" + sha256(data).hexdigest()


def user_root(machine: Machine) -> Path:
    return machine.home / ".agents/skills"


def file_of(data: bytes, uri: str) -> dict[str, Any]:
    return {"uri": uri, "digest": digest(data), "size": len(data)}


@pytest.mark.parametrize("era", ERAS)
def test_the_extension_is_declared_and_only_the_newer_era_has_members_for_caches(machine: Machine, era: str) -> None:
    file = write_skill(user_root(machine), "alpha")

    async def check() -> None:
        async with client_of(machine, era) as client:
            if era == "older":
                declared = client.server_capabilities.model_dump(by_alias=True)
            else:
                declared = (await ask(client, "server/discover"))["capabilities"]
            page = await ask(client, "skills/list")
            one = await ask(client, "skills/get", uri="skill://alpha/SKILL.md")

        entry = {
            "uri": "skill://alpha/SKILL.md",
            "frontmatter": {"name": "alpha", "description": "Does alpha things. Use when alpha is asked for."},
            "resources": [file_of(file.read_bytes(), "skill://alpha/SKILL.md")],
        }
        cached = {"ttlMs": 2000, "cacheScope": "private", "resultType": "complete"} if era == "newer" else {}
        assert declared["extensions"] == {EXTENSION: {"directoryRead": True}}
        assert page == {"skills": [entry], **cached}
        assert one == {"skill": entry, **cached}

    run(check)


CONTENTS = {
    "plain.md": b"# Page\n",
    "empty.txt": b"",
    "noise.bin": bytes(range(256)),
    "marked.txt": b"\xef\xbb\xbfwith a byte order mark\r\nand CRLF\r\n",
    "half.txt": b"cut off: \xc3",
    "deep/er/ä name with blanks.md": "ä\n".encode(),
    ".hidden": b"part of the skill\n",
}


def test_every_file_is_in_the_entry_and_a_read_gives_exactly_its_bytes(machine: Machine) -> None:
    folder = write_skill(user_root(machine), "alpha").parent
    for path, data in CONTENTS.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)

    async def check() -> None:
        async with client_of(machine) as client:
            entry = (await ask(client, "skills/get", uri="skill://alpha/SKILL.md"))["skill"]
            read = {}
            for file in entry["resources"]:
                (contents,) = (await ask(client, "resources/read", uri=file["uri"]))["contents"]
                data = b64decode(contents["blob"]) if "blob" in contents else contents["text"].encode()
                read[file["uri"]] = file_of(data, file["uri"])

        assert list(read.values()) == entry["resources"]
        assert [file["digest"] for file in entry["resources"]] == [
            digest((folder / path).read_bytes()) for path in sorted((*CONTENTS, "SKILL.md"))
        ]
        assert "skill://alpha/deep/er/%C3%A4%20name%20with%20blanks.md" in read

    run(check)


def test_files_of_tools_and_links_are_neither_listed_nor_read(machine: Machine) -> None:
    folder = write_skill(user_root(machine), "alpha").parent
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__/x.pyc").write_bytes(b"x")
    (folder / ".git").mkdir()
    (folder / ".git/config").write_text("secret")
    (folder / "link.md").symlink_to("/etc/passwd")

    async def check() -> None:
        async with client_of(machine) as client:
            entry = (await ask(client, "skills/get", uri="skill://alpha/SKILL.md"))["skill"]
            children = (await ask(client, "resources/directory/read", uri="skill://alpha"))["resources"]
            refused = [
                await code_of(client, "resources/read", uri=f"skill://alpha/{path}")
                for path in ("__pycache__/x.pyc", ".git/config", "link.md")
            ]

        assert [file["uri"] for file in entry["resources"]] == ["skill://alpha/SKILL.md"]
        assert [child["name"] for child in children] == ["SKILL.md"]
        assert refused == [INVALID_PARAMS] * 3

    run(check)


def test_a_skill_inside_a_skill_has_an_entry_of_its_own_and_is_part_of_the_outer_one(machine: Machine) -> None:
    outer = write_skill(user_root(machine), "outer")
    inner = write_skill(outer.parent / "parts", "inner")
    (inner.parent / "note.md").write_text("note\n")
    write_skill(outer.parent / "parts", "other-name", folder="elsewhere")

    async def check() -> None:
        async with client_of(machine) as client:
            page = await ask(client, "skills/list")

        addresses = {skill["uri"]: [file["uri"] for file in skill["resources"]] for skill in page["skills"]}
        assert addresses == {
            "skill://outer/SKILL.md": [
                "skill://outer/SKILL.md",
                "skill://outer/parts/elsewhere/SKILL.md",
                "skill://outer/parts/inner/SKILL.md",
                "skill://outer/parts/inner/note.md",
            ],
            "skill://outer/parts/inner/SKILL.md": [
                "skill://outer/parts/inner/SKILL.md",
                "skill://outer/parts/inner/note.md",
            ],
        }
        (left_out,) = page["_meta"]["skillshelf.server/left-out"]
        assert left_out == {
            "uri": "skill://outer/parts/elsewhere/SKILL.md",
            "reason": "its name is 'other-name', but its address requires 'elsewhere'",
        }

    run(check)


LEFT_OUT = {
    "repaired": (
        "---\nname: repaired\ndescription: Use: when broken\n---\n",
        "its frontmatter is not valid YAML at line 3",
    ),
    "Bad_Name": ("---\nname: Bad_Name\ndescription: Bad.\n---\n", "its name 'Bad_Name' is not valid"),
    "12": ("---\nname: 12\ndescription: A number.\n---\n", "its frontmatter has no `name`, or it is not text"),
    "wordy": (
        f"---\nname: wordy\ndescription: {'x' * 1025}\n---\n",
        "its `description` has 1025 characters; the standard allows 1024",
    ),
    "picky": (
        f"---\nname: picky\ndescription: Picky.\ncompatibility: {'x' * 501}\n---\n",
        "its `compatibility` has 501 characters; the standard allows 500",
    ),
}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_a_skill_that_the_extension_does_not_allow_is_left_out_with_the_reason_and_served_by_the_tools(
    machine: Machine, name: str
) -> None:
    text, reason = LEFT_OUT[name]
    write_skill(user_root(machine), name, text + "# The body\n")

    async def check() -> None:
        async with client_of(machine) as client:
            page = await ask(client, "skills/list")
            code = await code_of(client, "skills/get", uri=f"skill://{name}/SKILL.md")
            listed = (await ask(client, "resources/list"))["resources"]
            loaded = await text_of(client, "skill_load", name=name)

        (left_out,) = page["_meta"]["skillshelf.server/left-out"]
        assert page["skills"] == listed == []
        assert left_out["uri"] == f"skill://{name}/SKILL.md"
        assert left_out["reason"].startswith(reason)
        assert code == INVALID_PARAMS
        assert "# The body" in loaded

    run(check)


def test_a_skill_is_left_out_with_the_reason_if_a_rule_denies_reading_its_files(machine: Machine) -> None:
    for name in ("alpha", "beta"):
        write_skill(user_root(machine), name)
    rule = {"deny": [{"tool": "skill_read", "skill_name": "alpha"}]}

    async def check() -> None:
        async with client_of(machine, policy=rule) as client:
            page = await ask(client, "skills/list")
            listed = (await ask(client, "resources/list"))["resources"]
            code = await code_of(client, "resources/read", uri="skill://alpha/SKILL.md")

        assert [entry["uri"] for entry in page["skills"]] == ["skill://beta/SKILL.md"]
        assert [resource["uri"] for resource in listed] == ["skill://beta/SKILL.md"]
        assert page["_meta"]["skillshelf.server/left-out"] == [
            {"uri": "skill://alpha/SKILL.md", "reason": "a rule denies reading its files"}
        ]
        assert code == INVALID_PARAMS

    run(check)


def test_standard_error_names_the_first_skills_that_are_left_out_and_where_to_find_the_others(
    machine: Machine, capfd: pytest.CaptureFixture[str]
) -> None:
    for number in range(30):
        write_skill(user_root(machine), f"Bad_{number:02}")

    async def check() -> None:
        async with client_of(machine) as client:
            for _ in range(2):
                page = await ask(client, "skills/list")
        assert len(page["_meta"]["skillshelf.server/left-out"]) == 30

    run(check)
    lines = capfd.readouterr().err.splitlines()
    assert [line.split(": ")[2] for line in lines[:-1]] == [f"skill://Bad_{n:02}/SKILL.md" for n in range(20)]
    assert lines[-1].startswith("skillshelf: more skills are not in skills/list")


def test_a_skill_with_too_many_files_is_left_out_with_the_reason(machine: Machine) -> None:
    folder = write_skill(user_root(machine), "many").parent
    for number in range(512):
        (folder / f"{number}.txt").write_text("")

    async def check() -> None:
        async with client_of(machine) as client:
            page = await ask(client, "skills/list")

        assert page["skills"] == []
        assert page["_meta"]["skillshelf.server/left-out"][0]["reason"] == "it has more than 512 files"

    run(check)


NO_SKILLS = (
    *("skill://nothing/SKILL.md", "skill://alpha", "skill://alpha/", "skill://alpha/SKILL.md/", "", "alpha"),
    *("skill://alpha/references/page.md", "skill://%61lpha/SKILL.md", "skill://alpha/./SKILL.md"),
    *("skill://alpha/references/../SKILL.md", "SKILL://alpha/SKILL.md", "skill://stranger/SKILL.md"),
)
NO_FILES = (
    *("skill://alpha/../../secret", "skill://alpha/%2e%2e/%2e%2e/secret", "skill://alpha//etc/passwd"),
    *("file:///etc/passwd", "skill://alpha/nothing.md", "skill://alpha", "skill://alpha/references"),
    *("skill://stranger/SKILL.md", "skill://alpha/SKILL.md%00", "skill://alpha/SKILL.md?x", "skill://"),
)


@pytest.mark.parametrize(("method", "addresses"), [("skills/get", NO_SKILLS), ("resources/read", NO_FILES)])
def test_only_the_canonical_address_of_a_file_is_served(
    machine: Machine, method: str, addresses: tuple[str, ...]
) -> None:
    folder = write_skill(user_root(machine), "alpha").parent
    (folder / "references").mkdir()
    (folder / "references/page.md").write_text("page")
    write_skill(machine.repo / ".agents/skills", "stranger")
    (machine.home / ".agents/secret").write_text("secret")

    async def check() -> None:
        async with client_of(machine) as client:
            codes = {uri: await code_of(client, method, uri=uri) for uri in addresses}
            assert codes == dict.fromkeys(addresses, INVALID_PARAMS)
            assert await code_of(client, method) == INVALID_PARAMS

    run(check)


def test_a_folder_gives_its_children_and_an_empty_one_none(machine: Machine) -> None:
    folder = write_skill(user_root(machine), "alpha").parent
    (folder / "references/deeper").mkdir(parents=True)
    (folder / "references/page.md").write_text("page")

    async def check() -> None:
        async with client_of(machine) as client:
            top = (await ask(client, "resources/directory/read", uri="skill://alpha"))["resources"]
            below = (await ask(client, "resources/directory/read", uri="skill://alpha/references"))["resources"]
            nothing = (await ask(client, "resources/directory/read", uri="skill://alpha/references/deeper"))[
                "resources"
            ]
            codes = [
                await code_of(client, "resources/directory/read", uri=uri)
                for uri in ("skill://alpha/SKILL.md", "skill://alpha/references/", "skill://alpha/none", "skill://none")
            ]

        size = len((folder / "SKILL.md").read_bytes())
        assert top == [
            {"uri": "skill://alpha/SKILL.md", "name": "SKILL.md", "mimeType": "text/markdown", "size": size},
            {"uri": "skill://alpha/references", "name": "references", "mimeType": "inode/directory"},
        ]
        assert [(child["name"], child["mimeType"]) for child in below] == [
            ("deeper", "inode/directory"),
            ("page.md", "text/markdown"),
        ]
        assert nothing == []
        assert codes == [INVALID_PARAMS] * 4

    run(check)


@pytest.mark.parametrize("method", ["skills/list", "resources/list"])
def test_the_pages_of_a_listing_have_each_skill_once_while_skills_are_added_and_removed(
    machine: Machine, method: str
) -> None:
    for number in range(120):
        write_skill(user_root(machine), f"skill-{number:03}")

    async def check() -> None:
        member = "skills" if method == "skills/list" else "resources"
        async with client_of(machine) as client:
            page = await ask(client, method)
            found = [entry["uri"] for entry in page[member]]
            (user_root(machine) / "skill-049/SKILL.md").unlink()
            write_skill(user_root(machine), "skill-000a")
            while "nextCursor" in page:
                page = await ask(client, method, cursor=page["nextCursor"])
                found += [entry["uri"] for entry in page[member]]

        assert found == [f"skill://skill-{number:03}/SKILL.md" for number in range(120)]

    run(check)


def test_the_children_of_a_folder_are_listed_in_pages_too(machine: Machine) -> None:
    folder = write_skill(user_root(machine), "alpha").parent
    for number in range(70):
        (folder / f"{number:03}.md").write_text("")

    async def check() -> None:
        async with client_of(machine) as client:
            first = await ask(client, "resources/directory/read", uri="skill://alpha")
            second = await ask(client, "resources/directory/read", uri="skill://alpha", cursor=first["nextCursor"])

        names = [child["name"] for page in (first, second) for child in page["resources"]]
        assert names == sorted(["SKILL.md", *(f"{number:03}.md" for number in range(70))])
        assert "nextCursor" not in second

    run(check)


@pytest.mark.parametrize(
    "method",
    [
        *("skills/list", "resources/list", "resources/directory/read"),
        *("tools/list", "prompts/list", "resources/templates/list"),
    ],
)
def test_a_cursor_that_the_server_did_not_return_is_refused(machine: Machine, method: str) -> None:
    write_skill(user_root(machine), "alpha")
    # The last ones say the right listing, and then a number or no key at all.
    made_up = [urlsafe_b64encode(json.dumps([method, *rest]).encode()).decode() for rest in ([1, 2], ["a", None], [])]
    cursors = ("", "nonsense", "bm9uc2Vuc2U=", "W10=", "x" * 10_000, *made_up)

    async def check() -> None:
        async with client_of(machine) as client:
            given = {"uri": "skill://alpha"} if "directory" in method else {}
            codes = {cursor: await code_of(client, method, cursor=cursor, **given) for cursor in cursors}
            assert codes == dict.fromkeys(cursors, INVALID_PARAMS)

    run(check)


def test_after_a_change_entry_and_bytes_describe_the_same_state(machine: Machine) -> None:
    file = write_skill(user_root(machine), "alpha")
    page = file.parent / "page.md"
    page.write_text("one")

    async def check() -> None:
        async with client_of(machine) as client:
            for text in ("two", "six", "ten"):
                # The same size, and within one tick of many clocks.
                page.write_text(text)
                file.write_text(f"---\nname: alpha\ndescription: Says {text}.\n---\n")
                entry = (await ask(client, "skills/get", uri="skill://alpha/SKILL.md"))["skill"]
                read = [
                    digest((await ask(client, "resources/read", uri=found["uri"]))["contents"][0]["text"].encode())
                    for found in entry["resources"]
                ]
                assert read == [found["digest"] for found in entry["resources"]]
                assert read == [digest(file.read_bytes()), digest(page.read_bytes())]
                assert entry["frontmatter"]["description"] == f"Says {text}."

    run(check)


def test_the_frontmatter_is_given_as_it_is_written(machine: Machine) -> None:
    write_skill(
        user_root(machine),
        "alpha",
        "---\nname: alpha\nlicense: null\nmetadata:\n  a: yes\n  b: 010\n  c: 12:30:45\n  d: 2024-01-31\n"
        "  1: [1, 2.5]\n"
        'note: "\\ud83e\\uddfe"\nallowed-tools: [Read, Bash]\ndescription: >\n  Folded.\n---\n',
    )

    async def check() -> None:
        async with client_of(machine) as client:
            (entry,) = (await ask(client, "skills/list"))["skills"]

        assert entry["frontmatter"] == {
            "name": "alpha",
            "license": None,
            "metadata": {"a": "yes", "b": 10, "c": "12:30:45", "d": "2024-01-31", "1": [1, 2.5]},
            "note": "\N{RECEIPT}",
            "allowed-tools": ["Read", "Bash"],
            "description": "Folded.\n",
        }

    run(check)


def test_skills_of_the_same_name_have_different_addresses(machine: Machine) -> None:
    machine.configure('[profiles.lab]\nextends = "standard"\ncollision = "keep-all"\n')
    files = [write_skill(machine.home / root / "skills", "alpha") for root in (".agents", ".claude")]
    files[1].write_text("---\nname: alpha\ndescription: The other.\n---\n# Other\n")

    async def check() -> None:
        async with client_of(machine, profile="lab") as client:
            skills = (await ask(client, "skills/list"))["skills"]
            read = {
                skill["frontmatter"]["description"]: await ask(client, "resources/read", uri=skill["uri"])
                for skill in skills
            }
            other = next(skill for skill in skills if skill["frontmatter"]["description"] == "The other.")
            loaded = await text_of(client, "skill_load", name=other["uri"])

        assert len({skill["uri"] for skill in skills}) == 2
        assert all(skill["uri"].endswith("/alpha/SKILL.md") for skill in skills)
        assert read["The other."]["contents"][0]["text"] == files[1].read_text()
        assert {found["contents"][0]["text"] for found in read.values()} == {file.read_text() for file in files}
        assert "# Other" in loaded

    run(check)


def test_a_page_begins_after_a_removed_skill_and_omits_none_of_its_name(machine: Machine) -> None:
    machine.configure('[profiles.lab]\nextends = "standard"\ncollision = "keep-all"\n')
    for root in (".agents", ".claude"):
        write_skill(machine.home / root / "skills", "alpha").write_text(
            f"---\nname: alpha\ndescription: Of {root}.\n---\n"
        )

    async def check() -> None:
        async with client_of(machine, profile="lab", page_entries=1, refresh_seconds=0) as client:
            first = await ask(client, "skills/list")
            gone = first["skills"][0]["frontmatter"]["description"]
            root, stays = (".agents", ".claude") if gone == "Of .agents." else (".claude", ".agents")
            (machine.home / root / "skills/alpha/SKILL.md").unlink()
            second = await ask(client, "skills/list", cursor=first["nextCursor"])

        assert [skill["frontmatter"]["description"] for skill in second["skills"]] == [f"Of {stays}."]

    run(check)
