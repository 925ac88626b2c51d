"""A copy of a frozen value is what ``dataclasses.replace`` makes, or an error."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
from dataclasses import dataclass, field

import pytest

from shardmerge.schemas.model.frozen import Hashed, hashed_once, made_at_once, replace


@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int = 0
    names: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Named(Point):
    name: str = ""


@dataclass(frozen=True)
class Open:
    x: int


@dataclass(frozen=True, slots=True)
class Checked:
    x: int

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError


@dataclass(frozen=True, slots=True)
class Summed:
    x: int
    _sum: int | None = field(default=None, init=False, compare=False)


@dataclass(frozen=True, slots=True)
class Unset:
    x: int
    y: int = field(init=False)


class Counted(int):
    """A number that counts how often its hash was computed."""

    asked = 0

    def __hash__(self) -> int:
        Counted.asked += 1
        return super().__hash__()


@hashed_once
@dataclass(frozen=True, slots=True)
class Place(Hashed):
    x: int
    y: int = 0


@dataclass(frozen=True, slots=True)
class Usual:
    x: int
    y: int = 1
    z: list[int] = field(default_factory=list)
    known: int | None = field(default=None, init=False)
    last: str = field(default="", kw_only=True)


@made_at_once
@dataclass(frozen=True, slots=True)
class AtOnce:
    x: int
    y: int = 1
    z: list[int] = field(default_factory=list)
    known: int | None = field(default=None, init=False)
    last: str = field(default="", kw_only=True)


@pytest.mark.parametrize(
    ("value", "changes"),
    [
        (Point(1), {}),
        (Point(1, 2, ("a",)), {"y": 3}),
        (Named(1, 2, ("a",), "b"), {"x": 4, "name": "c"}),
    ],
)
def test_a_copy_is_that_of_the_standard_library(value, changes):
    copied, expected = replace(value, **changes), dataclasses.replace(value, **changes)
    assert (copied, copied.names, type(copied)) == (expected, expected.names, type(expected))
    assert copied is not value


def test_a_copy_is_frozen_and_leaves_the_value_as_it_is():
    value = Point(1)
    copied = replace(value, x=2)
    assert value.x == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        copied.x = 3  # type: ignore[misc]


def test_a_field_that_the_class_does_not_have_is_refused():
    with pytest.raises(TypeError, match="Point has no field z"):
        replace(Point(1), z=2)  # type: ignore[call-arg]


@pytest.mark.parametrize("value", [Open(1), Checked(1)])
def test_a_class_whose_values_cannot_be_copied_field_by_field_is_refused(value):
    with pytest.raises(TypeError, match="__post_init__"):
        replace(value, x=-1)


def test_a_copy_begins_without_what_is_computed_from_the_fields():
    value = Summed(1)
    object.__setattr__(value, "_sum", 1)
    assert replace(value, x=2)._sum is None


def test_a_class_with_a_field_that_a_copy_cannot_begin_with_is_refused():
    value = Unset(1)
    object.__setattr__(value, "y", 1)
    with pytest.raises(TypeError, match="Unset has a field without init"):
        replace(value, x=2)


def test_a_hash_is_computed_once_and_not_copied():
    Counted.asked = 0
    value = Place(Counted(1))
    assert hash(value) == hash(value) == hash(Place(1))
    assert Counted.asked == 1
    assert hash(replace(value, y=2)) == hash(Place(1, 2)) != hash(value)
    assert pickle.loads(pickle.dumps(value)) == value
    assert {Place(1): "found"}[value] == "found"


@pytest.mark.parametrize(
    ("values", "named"),
    [((0,), {}), ((0, 2, [3]), {}), ((0,), {"z": [4], "last": "a"}), ((), {"x": 5, "y": 6})],
)
def test_a_value_made_at_once_is_that_of_the_standard_library(values, named):
    made, usual = AtOnce(*values, **named), Usual(*values, **named)
    assert dataclasses.astuple(made) == dataclasses.astuple(usual)
    assert type(made) is AtOnce
    assert made.z is not AtOnce(0).z
    assert pickle.loads(pickle.dumps(made)) == made
    assert replace(made, x=7) == dataclasses.replace(made, x=7) != made
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.x = 8  # type: ignore[misc]


@pytest.mark.parametrize(("values", "named"), [((), {}), ((1, 2, [], 4), {}), ((1,), {"a": 2})])
def test_a_value_made_at_once_takes_the_same_arguments(values, named):
    with pytest.raises(TypeError):
        Usual(*values, **named)
    with pytest.raises(TypeError):
        AtOnce(*values, **named)
    usual, made = inspect.signature(Usual), inspect.signature(AtOnce)
    assert [*made.parameters] == [*usual.parameters]


@pytest.mark.parametrize("kind", [Open, Checked])
def test_a_class_whose_values_cannot_be_made_field_by_field_is_refused(kind):
    with pytest.raises(TypeError, match="__post_init__"):
        made_at_once(kind)
