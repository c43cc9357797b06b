"""Lists and locks of other programs: what they mean here, whether their hashes still hold, and writing them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support.host_runs import Run, json_output
from support.needs import needs_program
from support.trees import Machine

from skillshelf.catalog.lock import LockedSkill
from skillshelf.catalog.source import ExecutableFile
from skillshelf.core.environment import Environment
from skillshelf.errors import ConfigurationError, ResourceNotFound, SourceRefused
from skillshelf.install.foreign import (
    ExportFormat,
    ForeignDigest,
    ForeignSkill,
    export_lock,
    folder_hash,
    git_tree,
    is_as_recorded,
    read_foreign,
)
from skillshelf.install.reference import parse_reference

CONTENTS: dict[str, bytes] = {
    "SKILL.md": (
        b"---\nname: multi\ndescription: Several files. Use when testing.\n---\n# Multi\n\n[run](scripts/run.sh)\n"
    ),
    "scripts/run.sh": ExecutableFile(b"#!/bin/sh\necho hi\n"),
}
# Recorded by `npx skills` 1.7.4 for exactly these files, and by `git write-tree`.
COMPUTED_HASH = "86cfc3bce43cf321b6e662b94ed6507af7ec2412b6e2d084f4aab537961d84dd"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def read(folder: Path, name: str, content: Any) -> list[ForeignSkill]:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    found = read_foreign(str(path))
    for skill in found:
        if skill.source is not None:
            # What is imported is in our grammar.
            parse_reference(skill.source, Environment("/", "/", {}), path=skill.path or None, ref=skill.ref)
    return found


# Reading ------------------------------------------------------------------------------------------


def test_a_project_lock_of_skills_is_read(tmp_path: Path) -> None:
    skills = {
        "pdf": {"source": "anthropics/skills", "sourceType": "github", "ref": "v1", "skillPath": "skills/pdf/SKILL.md"},
        "git": {"source": "x", "sourceUrl": "git@gitlab.com:a/b.git", "sourceType": "git", "skillPath": "SKILL.md"},
        "near": {"source": "tools/near", "sourceType": "local", "computedHash": "abc"},
        "site": {"source": "docs.example.com", "sourceType": "well-known"},
        "old": {"source": "wellknown/docs.example.com", "sourceType": "well-known"},
        "package": {"source": "left-pad", "sourceType": "node_modules"},
        "odd": {"source": "?", "sourceType": "telepathy"},
        "../x": {"source": "a/b", "sourceType": "github"},
    }
    found = {one.name: one for one in read(tmp_path, "skills-lock.json", {"version": 1, "skills": skills})}

    assert found["pdf"] == ForeignSkill("pdf", "git+https://github.com/anthropics/skills", "skills/pdf", "v1")
    assert found["git"] == ForeignSkill("git", "git+ssh://git@gitlab.com/a/b.git")
    assert found["near"] == ForeignSkill("near", "./tools/near", "", None, ForeignDigest("computed-hash", "abc"))
    assert found["site"].source == found["old"].source == "https://docs.example.com"
    assert [found[name].source for name in ("package", "odd", "../x")] == [None, None, None]
    assert all(found[name].problem for name in ("package", "odd", "../x"))


def test_the_lock_of_the_user_is_read_with_the_trees_of_git(tmp_path: Path) -> None:
    row = {
        "source": "o/r",
        "sourceType": "github",
        "sourceUrl": "https://github.com/o/r.git",
        "skillPath": "a/SKILL.md",
        "skillFolderHash": COMMIT,
        "pinnedRef": "v2",
        "installedAt": "2026-01-01",
    }
    document = {"version": 3, "skills": {"a": row}, "dismissed": {}}

    assert read(tmp_path, ".skill-lock.json", document) == [
        ForeignSkill("a", "git+https://github.com/o/r", "a", "v2", ForeignDigest("git-tree", COMMIT))
    ]


APM = """
name: shop
version: 1.0.0
dependencies:
  apm:
    - anthropics/skills/skills/pdf#v1.4
    - microsoft/apm-sample-package
    - gitlab.com/team/rules
    - ./packages/near
    - https://example.com/a/b.git#main
    - github/awesome/prompts/review.prompt.md
    - git: https://gitlab.com/acme/coding.git
      path: skills/security
      ref: v2.0
    - name: gopls
      marketplace: official
  mcp:
    - io.github.x/y
"""


def test_a_manifest_of_apm_is_read_one_level_deep(tmp_path: Path) -> None:
    found = read(tmp_path, "apm.yml", APM)

    assert [one[:4] for one in found if one.problem is None] == [
        ("pdf", "git+https://github.com/anthropics/skills", "skills/pdf", "v1.4"),
        ("apm-sample-package", "git+https://github.com/microsoft/apm-sample-package", "", None),
        ("rules", "git+https://gitlab.com/team/rules", "", None),
        ("near", "./packages/near", "", None),
        ("b", "git+https://example.com/a/b.git", "", "main"),
        ("security", "git+https://gitlab.com/acme/coding.git", "skills/security", "v2.0"),
    ]
    assert [one.name for one in found if one.problem is not None] == ["review.prompt.md", "gopls"]


APM_LOCK = f"""
lockfile_version: "2"
generated_at: "2026-11-16"
dependencies:
  - repo_url: anthropics/skills
    host: github.com
    resolved_commit: {COMMIT}
    resolved_ref: main
    virtual_path: skills/pdf
    package_type: claude_skill
  - repo_url: a/instructions
    package_type: apm_package
  - repo_url: deep/one
    depth: 2
    package_type: claude_skill
  - repo_url: _local/near
    source: local
    local_path: ./near
    package_type: claude_skill
"""


def test_a_lock_of_apm_is_read_with_its_commits(tmp_path: Path) -> None:
    found = read(tmp_path, "apm.lock.yaml", APM_LOCK)

    assert [one[:4] for one in found] == [
        ("pdf", "git+https://github.com/anthropics/skills", "skills/pdf", COMMIT),
        ("instructions", None, "", None),
        ("near", "./near", "", None),
    ]
    assert "not a skill" in str(found[1].problem)


def test_the_files_of_registries_are_read(tmp_path: Path) -> None:
    digest = "sha256:" + "1" * 64
    wishes = {"skills": [{"name": "a", "source": "ghcr.io/acme/a", "version": "1.0.0"}, {"name": "b"}]}
    source = {"registry": "ghcr.io", "repository": "acme/a", "tag": "1.0.0", "digest": digest}

    assert read(tmp_path, "skills.json", wishes)[0] == ForeignSkill("a", "oci://ghcr.io/acme/a", "", "1.0.0")
    assert read(tmp_path, "skills.json", wishes)[1].problem == "it names no repository"
    assert read(tmp_path, "skills.lock.json", {"lockfileVersion": 1, "skills": [{"name": "a", "source": source}]}) == [
        ForeignSkill("a", "oci://ghcr.io/acme/a", "", "1.0.0", ForeignDigest("manifest", digest))
    ]


def test_notes_in_the_folder_of_a_skill_are_read(tmp_path: Path) -> None:
    (tmp_path / "pdf").mkdir()
    note = {"source": "a/b", "sourceType": "git", "repoUrl": "https://github.com/a/b", "subpath": "skills/pdf"}
    (tmp_path / "pdf/.openskills.json").write_text(json.dumps(note))
    (tmp_path / "gh").mkdir()
    (tmp_path / "gh/SKILL.md").write_text(
        "---\nname: gh\ndescription: x\nmetadata:\n  github-repo: o/r\n  github-ref: refs/tags/v1\n"
        f"  github-tree-sha: {COMMIT}\n  github-path: skills/gh/SKILL.md\n---\n"
    )

    assert read_foreign(str(tmp_path / "pdf")) == [ForeignSkill("pdf", "git+https://github.com/a/b", "skills/pdf")]
    wanted = ForeignSkill("gh", "git+https://github.com/o/r", "skills/gh", "v1", ForeignDigest("git-tree", COMMIT))
    assert read_foreign(str(tmp_path / "gh")) == read_foreign(str(tmp_path / "gh/SKILL.md")) == [wanted]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("skills-lock.json", "{"),
        ("skills-lock.json", '{"version": 2, "skills": {}}'),
        ("skills-lock.json", '{"version": 1, "skills": []}'),
        ("skills-lock.json", '{"version": 1, "skills": {"a": 1}}'),
        ("skills-lock.json", '{"version": 1, "version": 1, "skills": {}}'),
        ("skills-lock.json", "[" * 100_000),
        (".skill-lock.json", '{"version": 4, "skills": {}}'),
        ("apm.lock.yaml", "lockfile_version: 9\n"),
        ("apm.lock.yaml", "a: &x [*x]\n"),
        ("apm.yml", "a: [\n"),
        ("skills.json", '{"skills": [{"source": "x"}]}'),
        (".openskills.json", "[]"),
        ("SKILL.md", "---\nname: x\ndescription: y\n---\n"),
    ],
)
def test_a_file_that_is_not_what_its_name_says_is_refused(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(SourceRefused):
        read(tmp_path, name, text)


def test_a_file_that_is_not_known_or_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="package\\.json"):
        read_foreign(str(tmp_path / "package.json"))
    with pytest.raises(ResourceNotFound):
        read_foreign(str(tmp_path / "skills-lock.json"))


# Hashes -------------------------------------------------------------------------------------------


def test_the_hash_of_skills_is_recomputed() -> None:
    assert folder_hash(CONTENTS) == COMPUTED_HASH
    assert is_as_recorded(ForeignDigest("computed-hash", COMPUTED_HASH), CONTENTS, None) is True
    assert is_as_recorded(ForeignDigest("computed-hash", COMPUTED_HASH), {**CONTENTS, "x": b""}, None) is False
    assert is_as_recorded(ForeignDigest("computed-hash", COMPUTED_HASH), {"\u00fc": b""}, None) is None


def test_two_different_skills_have_one_such_hash() -> None:
    one = {"SKILL.md": b"A", "z/notes.md": b"B"}
    other = {"SKILL.md": b"Az/notes.mdB"}

    assert folder_hash(one) == folder_hash(other)
    assert git_tree(one) != git_tree(other)


def test_a_manifest_is_compared_with_the_artifact() -> None:
    digest = ForeignDigest("manifest", "sha256:1")

    assert [is_as_recorded(digest, {}, artifact) for artifact in ("sha256:1", "sha256:2", None)] == [True, False, False]


@pytest.mark.slow
@needs_program("git")
def test_the_tree_of_git_is_recomputed(tmp_path: Path) -> None:
    contents = {**CONTENTS, "a/b/c.md": b"x", "a.md": b"y", "a-b": b"", "\u00fcber.md": b"z"}
    for path, data in contents.items():
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        file.chmod(0o755 if isinstance(data, ExecutableFile) else 0o644)
    env = {"HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1", "PATH": "/usr/local/bin:/usr/bin:/bin"}
    for words in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", *words], cwd=tmp_path, env=env, check=True, capture_output=True)
    done = subprocess.run(["git", "write-tree"], cwd=tmp_path, env=env, check=True, capture_output=True, text=True)

    assert git_tree(contents) == done.stdout.strip()
    assert is_as_recorded(ForeignDigest("git-tree", done.stdout.strip()), contents, None) is True


@pytest.mark.slow
@needs_program("node")
def test_paths_are_sorted_as_javascript_sorts_them() -> None:
    from skillshelf.install.foreign import collated

    letters = [chr(code) for code in range(0x20, 0x7F)]
    names = [*letters, *(a + b for a in letters for b in "aA_-./b1"), "SKILL.md", "scripts/a", "Scripts/b", "skill.MD"]
    program = "let d='';process.stdin.on('data',c=>d+=c).on('end',()=>"
    program += "console.log(JSON.stringify(JSON.parse(d).sort((a,b)=>a.localeCompare(b)))))"
    done = subprocess.run(["node", "-e", program], input=json.dumps(names), capture_output=True, text=True, check=True)

    assert sorted(names, key=collated) == json.loads(done.stdout)


# Writing ------------------------------------------------------------------------------------------


def locked(source: str, **changes: Any) -> LockedSkill:
    skill = LockedSkill(source, "", None, None, None, "sha256:" + "0" * 64, 2, 9, [])
    return skill._replace(**changes)


LOCK = {
    "git": locked("git+https://github.com/o/r", path="skills/git", ref="v1", commit=COMMIT),
    "near": locked("./tools", path="near"),
    "oci": locked("oci://ghcr.io/acme/oci", ref="1.0", artifact="sha256:" + "1" * 64),
    "site": locked("https://docs.example.com", path="site", artifact="sha256:" + "2" * 64),
}


def exported(form: ExportFormat, before: Mapping[str, bytes] | None = None) -> tuple[dict[str, Any], dict[str, str]]:
    result = export_lock(form, LOCK, lambda _: CONTENTS, (before or {}).get, "shop")
    return {name: data.decode() for name, data in result.files.items()}, result.refused


def test_a_lock_of_skills_is_written_and_keeps_what_others_put_there() -> None:
    old = {"version": 1, "skills": {"zoo": {"source": "a/b", "sourceType": "github", "computedHash": "x"}}}
    files, refused = exported("vercel", {"skills-lock.json": json.dumps(old).encode()})

    assert json.loads(files["skills-lock.json"]) == {
        "version": 1,
        "skills": {
            "git": {
                "source": "o/r",
                "ref": "v1",
                "sourceType": "github",
                "skillPath": "skills/git/SKILL.md",
                "computedHash": COMPUTED_HASH,
            },
            "near": {"source": "./tools/near", "sourceType": "local", "computedHash": COMPUTED_HASH},
            "site": {"source": "https://docs.example.com", "sourceType": "well-known", "computedHash": COMPUTED_HASH},
            "zoo": old["skills"]["zoo"],  # type: ignore[index]
        },
    }
    assert list(refused) == ["oci"]


def test_a_manifest_of_apm_is_written_with_commits() -> None:
    files, refused = exported("apm")

    assert files["apm.yml"] == (
        'name: "shop"\nversion: "1.0.0"\ndependencies:\n  apm:\n'
        f'    - git: "https://github.com/o/r"\n      path: "skills/git"\n      ref: "{COMMIT}"\n'
        '    - path: "./tools/near"\n'
    )
    assert list(refused) == ["oci", "site"]
    assert exported("apm", {"apm.yml": b"name: mine\n"})[0] == {}


def test_the_files_of_registries_are_written() -> None:
    files, refused = exported("oci")

    assert json.loads(files["skills.json"]) == {
        "skills": [{"name": "oci", "source": "ghcr.io/acme/oci", "version": "1.0"}]
    }
    (row,) = json.loads(files["skills.lock.json"])["skills"]
    assert (row["source"]["digest"], row["source"]["tag"]) == ("sha256:" + "1" * 64, "1.0")
    assert sorted(refused) == ["git", "near", "site"]


@pytest.mark.parametrize(
    ("form", "name"), [("vercel", "skills-lock.json"), ("apm", "apm.yml"), ("oci", "skills.lock.json")]
)
def test_what_is_written_is_read_as_the_same_sources(tmp_path: Path, form: ExportFormat, name: str) -> None:
    files, _ = exported(form)
    found = read(tmp_path, name, files[name])

    for skill in found:
        wanted = LOCK[skill.name]
        assert skill.source == (wanted.source if wanted.source != "./tools" else "./tools/near")
        assert skill.path == (wanted.path if wanted.source.startswith("git+") else "")


def test_export_reads_the_lock_of_the_project(machine: Machine, run: Run) -> None:
    (machine.repo / "near").mkdir()
    (machine.repo / "near/SKILL.md").write_text("---\nname: near\ndescription: Is near. Use when far.\n---\n# Near\n")
    assert run("export", "--format", "vercel")[0] == 2
    assert run("add", "./near", "--yes")[0] == 0

    plan = json_output(run, "export", "--format", "vercel", schema="publish")

    assert [(one["kind"], one["name"], one["from"]) for one in plan["actions"]] == [("export", "near", "./near")]
    written = json.loads((machine.repo / "skills-lock.json").read_text())
    assert written["skills"]["near"]["sourceType"] == "local"
    assert json_output(run, "export", "--format", "vercel", schema="publish")["actions"] == []
    assert run("export", "--format", "apm", "-o", "out/deep")[0] == 0
    assert '- path: "../../near"' in (machine.repo / "out/deep/apm.yml").read_text()
    status, _, err = run("export", "--format", "oci")
    assert status == 1, err
    assert run("export", "--format", "nope")[0] == 2
