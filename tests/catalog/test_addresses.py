"""`skill://` addresses that lead outside their skill, or nowhere, are refused by every surface."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.addresses import ATTACKS, CODES, FILES, SECRET, STATUS, TOKEN, bytes_of, lay_out
from support.examples import examples
from support.trees import Machine

from skillshelf import Shelf, SkillError


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    """The tree above; the tests only read it."""
    return lay_out(tmp_path_factory.mktemp("addresses"))


def test_there_are_at_least_a_hundred_attacks_and_thirty_honest_addresses() -> None:
    assert len(ATTACKS) >= 100
    assert len(FILES) >= 30


@pytest.fixture(scope="module")
def shelves(tree: Machine) -> dict[str, Shelf]:
    """One shelf for each profile that has a tool for addresses, for all tests."""
    return {profile: tree.shelf(profile) for profile in ("standard", "omp")}


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: ascii(attack[:60]))
def test_an_attack_is_refused_by_every_surface_and_tells_nothing(
    tree: Machine, shelves: dict[str, Shelf], attack: str
) -> None:
    address, expected = attack.replace("{base}", str(tree.base)), ATTACKS[attack]
    for profile, tool, parameter in (("standard", "skill_read", "uri"), ("omp", "read", "path")):
        shelf = shelves[profile]
        with pytest.raises(SkillError) as refusal:
            shelf.read(address)
        assert type(refusal.value) is expected

        result = shelf.session().call(tool, {parameter: address})
        assert result.error is not None
        # An empty text counts as a missing parameter, not as an invalid address.
        assert result.error.code == (CODES[expected] if address else "invalid_params")
        for output in (str(refusal.value), repr(result)):
            assert TOKEN not in output
            assert str(tree.base) not in output


SAMPLE = [attack for attack in ATTACKS if attack and "\0" not in attack and ATTACKS[attack] in STATUS][::12]


@pytest.mark.parametrize("attack", SAMPLE, ids=lambda attack: ascii(attack[:60]))
def test_the_command_refuses_it_with_one_line_and_no_output(tree: Machine, attack: str) -> None:
    done = tree.run("read", attack.replace("{base}", str(tree.base)))

    assert (done.returncode, done.stdout) == (STATUS[ATTACKS[attack]], "")
    assert len(done.stderr.splitlines()) == 1
    assert TOKEN not in done.stderr
    assert str(tree.base) not in done.stderr


# Mutations ----------------------------------------------------------------------------------------

PIECES = ["/", "//", "..", "../", ".", "%", "%2e", "%2F", "%5c", "%00", "%25", "\\", "\0", "?", "#", "\n", "．", "é"]
PIECES += ["skill://", "deploy", "other", "link-up", "link-folder", SECRET, "references"]
PIECES += ["\ud800", "%ff", " ", ":", "@"]


@st.composite
def mutated_addresses(draw: st.DrawFn) -> str:
    """An honest address or an attack after a few cuts, insertions and encodings."""
    honest = [f"skill://deploy/{quote(os.fsencode(name))}" for name in FILES] + [
        "skill://deploy/references",
        "skill://deploy",
    ]
    attacks = [attack for attack in ATTACKS if len(attack) < 200]
    text = draw(st.sampled_from(honest) | st.sampled_from(attacks))
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 3)))
        encoded = "".join(f"%{byte:02x}" for byte in text[start:end].encode("utf-8", "replace"))
        piece = draw(st.sampled_from(PIECES) | st.text(max_size=3))
        text = text[:start] + draw(st.sampled_from([encoded, text[start:end], piece, ""])) + text[end:]
    return text


@settings(max_examples=examples(200), deadline=None, derandomize=True, database=None)
@given(address=mutated_addresses())
def test_no_mutation_of_an_address_gives_bytes_from_outside(shelves: dict[str, Shelf], address: str) -> None:
    shelf = shelves["standard"]
    folders = [Path(skill.dir) for skill in shelf.catalog.skills]

    try:
        resource = shelf.read(address)
    except SkillError as refusal:
        output = str(refusal)
    else:
        output = resource.content
        # `other` is a skill too, and its secret is a file of its own.
        (inside,) = [folder for folder in folders if Path(resource.path).is_relative_to(folder)]
        data = bytes_of(resource.content, resource.encoding)
        assert resource.digest == "sha256:" + sha256(data).hexdigest()
        if Path(resource.path).is_dir():
            assert {line.rstrip("/") for line in resource.content.splitlines()} <= set(os.listdir(resource.path))
        else:
            assert data == Path(resource.path).read_bytes()
        if inside.name == "other":
            return
    assert TOKEN not in output
