"""The size of a catalog, from the sizes of its parts, is that of its text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillshelf.catalog.prompt import TextSizes, catalog_size, catalog_text
from skillshelf.config.hosts import HOSTS
from skillshelf.config.settings import Settings
from skillshelf.core.values import CatalogSkill

WORDS = st.text(st.sampled_from("ab <&>\"'\n\t é…\u200b\u2028\x7f-:"), max_size=40)
LONG = st.builds(lambda text, times: text * times, WORDS, st.integers(1, 60))


def skill(name: str, description: str, number: int, *, is_hidden: bool) -> CatalogSkill:
    path = f"/home/a & b/{number}-{name.replace('/', '')}/SKILL.md"
    return CatalogSkill(
        name=name,
        description=description,
        path=path,
        real_path=path,
        real_dir="",
        scope="user",
        source="",
        root=0,
        mtime_ns=0,
        size=0,
        enabled=True,
        trusted=True,
        hidden="disable-model-invocation" if is_hidden else None,
        frontmatter={},
    )


@pytest.mark.parametrize("host", HOSTS)
@given(texts=st.lists(st.tuples(WORDS, LONG, st.integers(0, 5)), max_size=30), budget=st.integers(1, 9_000))
def test_a_size_is_that_of_the_text(host: str, texts: list[tuple[str, str, int]], budget: int) -> None:
    profile = HOSTS[host]
    if profile.budget_chars:
        profile = profile._replace(budget_chars=budget)
    skills = [skill(name, about, n, is_hidden=kind == 0) for n, (name, about, kind) in enumerate(texts)]

    text = catalog_text(skills, profile, Settings())
    size = catalog_size(skills, profile, Settings(), TextSizes())

    assert (size.chars, size.tokens, size.entries) == (text.chars, text.tokens, text.entries)
    assert (size.omitted, size.cut) == (text.omitted, text.cut)
