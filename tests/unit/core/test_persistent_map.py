"""A persistent map behaves like a dictionary that is copied at every step."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from inmind.core.frozen import PersistentMap

KEYS = st.sampled_from("abc")
VALUES = st.sampled_from([1, 2, None])


def a_map(*entries: tuple[str, int | None]) -> PersistentMap[str, int | None]:
    return PersistentMap(entries)


@given(st.lists(st.tuples(st.integers(0, 20), KEYS, VALUES), max_size=20))
def test_every_version_stays_unchanged_when_others_are_derived_from_it(
    steps: list[tuple[int, str, int | None]],
) -> None:
    states: list[tuple[PersistentMap[str, int | None], dict[str, int | None]]] = [(PersistentMap(), {})]
    for start, key, value in steps:
        version, model = states[start % len(states)]
        remaining = {k: v for k, v in model.items() if k != key or v == value}
        states.append((version.put(key, value), remaining | {key: value}))
    for version, model in states:
        present = {key: value for key, value in model.items() if value is not None}
        assert dict(version) == present
        assert {key: version.get(key) for key in "abc"} == {key: model.get(key) for key in "abc"}
        assert [key for key in "abc" if key in version] == sorted(present)


def test_the_most_recent_key_comes_first() -> None:
    known = a_map(("a", 1), ("b", 2)).put("a", 3)
    assert list(known) == [("a", 3), ("b", 2)]


def test_removed_and_missing_keys_are_equivalent() -> None:
    assert a_map(("a", 1)).put("b", 2).put("b", None) == a_map(("a", 1))


def test_repeating_a_change_copies_nothing() -> None:
    """A call folds its events before they are stored and again afterwards."""
    start = a_map(("a", 1), ("b", 2))
    first = start.put("x", 1).put("y", 2)
    again = start.put("x", 1).put("y", 2)
    assert again == first
    assert again._entries is first._entries  # pyright: ignore[reportPrivateUsage] -- the sharing is tested
    assert start.put("z", 3)._entries is not first._entries  # pyright: ignore[reportPrivateUsage]
