"""A team server refuses every hostile archive that is uploaded to it, each by its rule and with nothing written."""

from __future__ import annotations

import pytest
from hostile_archives import HEALTHY, HOSTILE, Healthy, Hostile

from skillshelf.catalog.store import listed_files
from skillshelf.catalog.tree import tree_digest
from skillshelf.errors import SourceRefused
from skillshelf.servers.team.upload import read_upload, unpacked_artifact


@pytest.mark.parametrize("case", HOSTILE, ids=[case.name for case in HOSTILE])
def test_a_hostile_archive_is_no_release(case: Hostile) -> None:
    with pytest.raises(SourceRefused):
        read_upload(case.make())


def _is_one_skill(case: Healthy) -> bool:
    return case.kind in ("zip", "tar.gz") and sum(path.endswith("SKILL.md") for path in case.files) == 1


@pytest.mark.parametrize("case", [c for c in HEALTHY if _is_one_skill(c)], ids=lambda case: case.name)
def test_what_is_kept_of_a_release_are_exactly_the_files_of_its_tree(case: Healthy) -> None:
    upload = read_upload(case.make())
    assert tree_digest(listed_files(unpacked_artifact(upload.artifact))) == upload.tree
