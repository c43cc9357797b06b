"""Records have every member of a named tuple of `typing`, and cost a tenth of one to make."""

from __future__ import annotations

import ast
import copy
import inspect
import pickle
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

import pytest

import skillshelf
from skillshelf.core import records

SOURCE = Path(skillshelf.__file__).parent


class Ours(records.NamedTuple):
    """A record."""

    first: int
    second: str = "two"
    third: list[int] | None = None

    @property
    def sum(self) -> int:
        """A property of its own."""
        return self.first + 1


class Theirs(NamedTuple):
    """A record."""

    first: int
    second: str = "two"
    third: list[int] | None = None


class Derived(Ours):
    """One with an attribute that is no field."""

    note: str = ""


class Empty(records.NamedTuple):
    """One without fields."""


@pytest.mark.parametrize("arguments", [((1,), {}), ((1, "x", [2]), {}), ((), {"first": 1, "third": [3]})])
def test_a_record_is_what_a_named_tuple_is(arguments: tuple[tuple[Any, ...], dict[str, Any]]) -> None:
    args, keywords = arguments
    ours, theirs = Ours(*args, **keywords), Theirs(*args, **keywords)

    assert tuple(ours) == tuple(theirs)
    assert (ours.first, ours.second, ours.third) == (theirs.first, theirs.second, theirs.third)
    assert repr(ours) == repr(theirs).replace("Theirs", "Ours")
    assert ours._asdict() == theirs._asdict()
    assert tuple(ours._replace(second="z")) == tuple(theirs._replace(second="z"))
    assert hash(Ours(1)) == hash(Theirs(1))
    assert ours.sum == 2


@pytest.mark.parametrize("wrong", [((), {}), ((1, "x", None, 4), {}), ((1,), {"fourth": 4}), ((1,), {"first": 2})])
def test_wrong_arguments_are_refused(wrong: tuple[tuple[Any, ...], dict[str, Any]]) -> None:
    args, keywords = wrong
    with pytest.raises(TypeError):
        Ours(*args, **keywords)
    # From Python 3.13 on a TypeError.
    with pytest.raises((TypeError, ValueError), match="unexpected field names"):
        Ours(1)._replace(fourth=4)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="Expected 3 arguments, got 1"):
        Ours._make([1])


def test_the_class_has_the_members_of_a_named_tuple() -> None:
    for name in ("_fields", "_field_defaults", "__match_args__"):
        assert getattr(Ours, name) == getattr(Theirs, name)
    assert get_type_hints(Ours) == get_type_hints(Theirs)
    assert [*inspect.signature(Ours).parameters] == ["first", "second", "third"]
    assert Ours.__doc__ == "A record."
    assert not hasattr(Ours(1), "__dict__")
    assert Empty() == ()
    match Ours(1):
        case Ours(1, second):
            assert second == "two"


def test_records_are_copied_pickled_and_derived_from() -> None:
    derived = Derived(1)
    derived.note = "n"

    assert pickle.loads(pickle.dumps(Ours(1, "x"))) == copy.copy(Ours(1, "x")) == Ours(1, "x")
    assert (type(derived), derived.note, derived.first) == (Derived, "n", 1)


def test_every_record_of_the_package_is_made_the_quick_way() -> None:
    """Only the exceptions, which import nothing of ours, take the other one."""
    wrong = [
        path.relative_to(SOURCE).as_posix()
        for path in sorted(SOURCE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module == "typing" and "NamedTuple" in [a.name for a in node.names]
    ]
    assert sorted(set(wrong)) == ["core/records.py", "errors.py"]
