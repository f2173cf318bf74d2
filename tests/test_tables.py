"""A table test fails if one of its rows fails, and reports each of them."""

from __future__ import annotations

import pytest
from tables import each_row


def test_every_row_runs_and_every_failing_row_is_reported() -> None:
    seen: list[int] = []

    @each_row("number, expected", [(1, 1), (2, 3), (3, 3), (4, 5)])
    def check(number: int, expected: int) -> None:
        seen.append(number)
        assert number == expected

    with pytest.raises(ExceptionGroup) as caught:
        check()
    assert seen == [1, 2, 3, 4]
    assert str(caught.value).splitlines()[0] == "2 of 4 rows failed"
    assert [error.__notes__ for error in caught.value.exceptions] == [["in the row 2, 3"], ["in the row 4, 5"]]


def test_a_missing_expected_exception_fails_its_row() -> None:
    @each_row("key", ["a", "b"], ids=["present", "absent"])
    def check(key: str) -> None:
        with pytest.raises(KeyError):
            {"a": 1}[key]

    with pytest.raises(BaseExceptionGroup, match=r"1 of 2 rows failed\n  present: Failed: DID NOT RAISE"):
        check()


def test_a_table_without_rows_is_an_error() -> None:
    with pytest.raises(ValueError, match="no rows"):
        each_row("number", [])


class TestParameters:
    @each_row("letter", "ab")
    @each_row("number", [1, 2])
    def test_tables_can_be_stacked_and_used_with_fixtures(self, tmp_path: object, letter: str, number: int) -> None:
        assert tmp_path
        assert f"{letter}{number}" in {"a1", "a2", "b1", "b2"}
