"""A `frozen` class behaves like a frozen dataclass with slots."""

from __future__ import annotations

from copy import copy, deepcopy
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inmind.core.frozen import frozen


@frozen
class Coin:
    face: str
    worth: int = 1
    year: int = field(default=0, compare=False)
    secret: int = field(default=0, repr=False)


@dataclass(frozen=True, slots=True)
class Plain:
    face: str
    worth: int = 1
    year: int = field(default=0, compare=False)
    secret: int = field(default=0, repr=False)


@frozen
class Box:
    coins: list[Coin]


@frozen(kw_only=True)
class Nothing:
    pass


@frozen
class Loud(Coin):
    volume: int = 3

    def __repr__(self) -> str:
        return "LOUD"


SIDES = st.tuples(st.sampled_from("ab"), st.integers(0, 1), st.integers(0, 1), st.integers(0, 1))


@given(one=SIDES, other=SIDES)
def test_equality_hash_and_repr_match_a_dataclass(one: Any, other: Any) -> None:
    assert (Coin(*one) == Coin(*other)) == (Plain(*one) == Plain(*other))
    assert (hash(Coin(*one)) == hash(Coin(*other))) == (hash(Plain(*one)) == hash(Plain(*other)))
    assert repr(Coin(*one)) == repr(Plain(*one)).replace("Plain", "Coin")


def test_instances_of_different_classes_are_not_equal() -> None:
    assert Coin("a") != Plain("a")
    assert Loud("a") != Coin("a")
    assert Nothing() == Nothing()
    assert hash(Nothing()) == hash(Nothing())


def test_fields_cannot_be_assigned() -> None:
    coin = Coin("a")
    with pytest.raises(FrozenInstanceError):
        coin.worth = 2  # pyright: ignore[reportAttributeAccessIssue] -- assignment is tested
    with pytest.raises(FrozenInstanceError):
        del coin.worth  # pyright: ignore[reportAttributeAccessIssue] -- deletion is tested
    assert not hasattr(coin, "__dict__")


def test_a_copy_is_equal_and_shares_nothing_if_it_is_deep() -> None:
    box = Box([Coin("a")])
    assert copy(box) == deepcopy(box) == box
    assert copy(box).coins is box.coins
    assert deepcopy(box).coins is not box.coins


def test_it_is_recognised_as_a_dataclass() -> None:
    assert replace(Coin("a"), worth=5) == Coin("a", 5)
    assert asdict(Coin("a")) == asdict(Plain("a"))
    assert [item.name for item in fields(Loud)] == ["face", "worth", "year", "secret", "volume"]
    match Coin("a", 2):
        case Coin(face, worth):
            assert (face, worth) == ("a", 2)


def test_a_method_defined_by_the_class_is_kept() -> None:
    assert repr(Loud("a")) == "LOUD"
