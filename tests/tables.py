"""Table tests: many rows, one test item.

`@each_row` takes the arguments of `@pytest.mark.parametrize`. It runs the test for each row and reports every row that
fails. A test item costs milliseconds in each worker, a row costs microseconds. Rows share the fixtures of the test, so
a test whose fixtures hold state uses `parametrize`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any

import pytest

Test = Callable[..., None]


def each_row(
    names: str | Sequence[str], rows: Iterable[Any], *, ids: Iterable[object] | Callable[[Any], object] | None = None
) -> Callable[[Test], Test]:
    """Run the decorated test for each row; `names` are its parameters, separated by commas."""
    parameters = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    table = [_values(row, len(parameters)) for row in rows]
    if not table:
        raise ValueError(f"the table of {parameters} has no rows")
    names_of_rows = None if ids is None or callable(ids) else [str(name) for name in ids]

    def label(index: int) -> str:
        """Name a row in a failure. A row may be large, so this is computed only for failing rows."""
        if names_of_rows is not None:
            return names_of_rows[index]
        words = [repr(value) if ids is None or not callable(ids) else str(ids(value)) for value in table[index]]
        return _shorten(", ".join(words))

    def decorate(test: Test) -> Test:
        signature = inspect.signature(test)

        @wraps(test)
        def run(*args: Any, **kwargs: Any) -> None:
            failures: list[BaseException] = []
            summary: list[str] = []
            for index, values in enumerate(table):
                try:
                    test(*args, **kwargs, **dict(zip(parameters, values, strict=True)))
                except (Exception, pytest.fail.Exception) as error:
                    error.add_note(f"in the row {label(index)}")
                    failures.append(error)
                    summary.append(f"{label(index)}: {type(error).__name__}: {_first_line(error)}")
            if failures:
                lines = "\n  ".join([f"{len(failures)} of {len(table)} rows failed", *summary])
                raise BaseExceptionGroup(lines, failures)

        remaining = [each for name, each in signature.parameters.items() if name not in parameters]
        run.__signature__ = signature.replace(parameters=remaining)  # pyright: ignore[reportAttributeAccessIssue]
        return run

    return decorate


def _values(row: Any, count: int) -> tuple[Any, ...]:
    values: tuple[Any, ...] = (row,) if count == 1 else tuple(row)
    if len(values) != count:
        raise ValueError(f"a row has {len(values)} values for {count} parameters: {row!r}")
    return values


def _shorten(text: str, length: int = 100) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def _first_line(error: BaseException) -> str:
    return _shorten(str(error).strip().partition("\n")[0])
