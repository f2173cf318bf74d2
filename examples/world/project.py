"""A small Python project with failing tests, and the tools of an agent for it.

Everything is real: files are read and edited on disk, and the tests run in a separate process. `tally` adds up expenses
from CSV; each of its five modules has a bug.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

from world.loop import TEXT, Tool, ToolFailed

TIMEOUT_SECONDS = 60
"""For all tests."""


@dataclass(frozen=True)
class Project:
    root: Path

    @classmethod
    def create(cls, root: Path) -> Project:
        for path, source in FILES.items():
            place = root / path
            place.parent.mkdir(exist_ok=True)
            place.write_text(_text(source), "utf-8")
        return cls(root.resolve())

    def tools(self) -> list[Tool]:
        path = {"path": TEXT}
        return [
            Tool("list_files", "List all files of the project.", {}, self.list_files),
            Tool("read_file", "Read a file, with line numbers.", path, self.read_file),
            Tool("search_files", "Find lines with these words.", {"words": TEXT}, self.search_files),
            Tool(
                "edit_file",
                "Replace a piece of a file, which must occur exactly once.",
                {**path, "old": TEXT, "new": TEXT},
                self.edit_file,
            ),
            Tool("run_tests", "Run all tests, and return their output.", {}, self.run_tests),
        ]

    def list_files(self) -> str:
        return "\n".join(path.relative_to(self.root).as_posix() for path in self._files())

    def read_file(self, path: str) -> str:
        lines = self._inside(path).read_text("utf-8").splitlines()
        return "\n".join(f"{number:>3}  {line}" for number, line in enumerate(lines, start=1))

    def search_files(self, words: str) -> str:
        matches = (
            f"{path.relative_to(self.root)}:{number}: {line.strip()}"
            for path in self._files()
            for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1)
            if words in line
        )
        return "\n".join(matches) or "nothing found"

    def edit_file(self, path: str, old: str, new: str) -> str:
        place = self._inside(path)
        text = place.read_text("utf-8")
        if (times := text.count(old)) != 1:
            raise ToolFailed(f"the old text occurs {times} times in {path}, expected once")
        place.write_text(text.replace(old, new), "utf-8")
        return f"{path} is changed."

    def run_tests(self) -> str:
        # A cached module of the same second and size would hide an edit. Columns would only lengthen tracebacks.
        python = [sys.executable, "-B", "-X", "no_debug_ranges", "-m", "unittest", "--verbose"]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        try:
            ran = subprocess.run(  # noqa: S603 -- the project that this module has written
                python,
                cwd=self.root,
                env=environment,
                capture_output=True,
                text=True,
                timeout=TIMEOUT_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise ToolFailed(f"the tests have not ended after {TIMEOUT_SECONDS} seconds") from error
        output = ran.stderr.replace(f"{self.root}/", "")
        return f"{re.sub(r' in [0-9.]+s', '', output)}exit code {ran.returncode}"

    def tests_are_untouched(self) -> bool:
        tests = {path: source for path, source in FILES.items() if path.startswith("tests/")}
        return all((self.root / path).read_text("utf-8") == _text(source) for path, source in tests.items())

    def _files(self) -> list[Path]:
        return sorted(path for path in self.root.rglob("*.py") if path.is_file())

    def _inside(self, path: str) -> Path:
        place = (self.root / path).resolve()
        if not place.is_relative_to(self.root) or not place.is_file():
            raise ToolFailed(f"there is no file {path!r} in the project")
        return place


def _text(source: str) -> str:
    return dedent(source).lstrip("\n")


FILES = {
    "tally/__init__.py": '''
        """Adds up expenses."""
        ''',
    "tally/money.py": '''
        """Amounts of money, in cents, so that no sum is a fraction of one."""


        def cents(text: str) -> int:
            """1,234.50 is 123450, and (12.00) is money that came back: -1200."""
            return int(float(text) * 100)


        def render(amount: int) -> str:
            """An amount as people write it: 1,234.50, and -12.00 for what came back."""
            return f"{amount // 100}.{amount % 100:02}"
        ''',
    "tally/dates.py": '''
        """Days as they are written in expense sheets."""

        from datetime import date


        def day(text: str) -> date:
            """2026-03-01, 1.3.2026 or 03/01/2026."""
            if "." in text:
                month, number, year = text.split(".")
            elif "/" in text:
                month, number, year = text.split("/")
            else:
                year, month, number = text.split("-")
            return date(int(year), int(month), int(number))


        def quarter(when: date) -> str:
            return f"{when.year} Q{when.month // 3}"
        ''',
    "tally/rows.py": '''
        """An expense sheet, row by row."""

        from collections.abc import Iterator
        from typing import NamedTuple

        from tally.dates import date, day
        from tally.money import cents


        class Row(NamedTuple):
            when: date
            what: str
            amount: int


        def rows(sheet: str) -> Iterator[Row]:
            """After a line of headings: day, what it was for, amount. Blank lines are skipped."""
            for line in sheet.split("\\n"):
                when, what, amount = line.split(",")
                yield Row(day(when), what, cents(amount))
        ''',
    "tally/totals.py": '''
        """Sums of rows."""

        from collections.abc import Iterable

        from tally.dates import quarter
        from tally.rows import Row


        def by_month(rows: Iterable[Row]) -> dict[str, int]:
            """Months as 2026-03, in their order."""
            totals: dict[str, int] = {}
            for row in rows:
                totals[f"{row.when.month}"] = row.amount
            return totals


        def by_quarter(rows: Iterable[Row]) -> dict[str, int]:
            totals: dict[str, int] = {}
            for row in rows:
                name = quarter(row.when)
                totals[name] = totals.get(name, 0) + row.amount
            return totals
        ''',
    "tally/report.py": '''
        """Totals, as a table."""

        from collections.abc import Mapping

        from tally.money import render


        def table(totals: Mapping[str, int]) -> str:
            """A line for each, amounts below each other, and their sum below a rule."""
            lines = [f"{name} {render(amount)}" for name, amount in totals.items()]
            return "\\n".join([*lines, f"sum {render(sum(totals.values()))}"])


        def shares(totals: Mapping[str, int]) -> dict[str, int]:
            """Percent of the sum; 0 if the sum is 0."""
            whole = sum(totals.values())
            return {name: 100 * amount // whole for name, amount in totals.items()}
        ''',
    "tests/__init__.py": "",
    "tests/test_money.py": """
        from unittest import TestCase

        from tally.money import cents, render

        AMOUNTS = {
            "0": 0, "7": 700, "12.00": 1200, "0.05": 5, "1.15": 115, "8.20": 820, "19.99": 1999, "1,234.50": 123450,
            "1,000,000.00": 100000000, "(12.00)": -1200, "(1,234.50)": -123450, " 3.10 ": 310,
        }
        WRITTEN = {
            0: "0.00", 5: "0.05", 700: "7.00", 123450: "1,234.50", -1200: "-12.00", -5: "-0.05", -123450: "-1,234.50",
        }


        class Money(TestCase):
            def test_an_amount_is_read_as_cents(self) -> None:
                for text, amount in AMOUNTS.items():
                    with self.subTest(text=text):
                        self.assertEqual(cents(text), amount)

            def test_an_amount_is_written_as_people_do(self) -> None:
                for amount, text in WRITTEN.items():
                    with self.subTest(amount=amount):
                        self.assertEqual(render(amount), text)
        """,
    "tests/test_dates.py": """
        from datetime import date
        from unittest import TestCase

        from tally.dates import day, quarter

        DAYS = ("2026-03-01", "1.3.2026", "01.03.2026", "03/01/2026", "3/1/2026")
        QUARTERS = {1: "2026 Q1", 2: "2026 Q1", 3: "2026 Q1", 4: "2026 Q2", 6: "2026 Q2", 9: "2026 Q3", 12: "2026 Q4"}


        class Dates(TestCase):
            def test_a_day_is_read_however_it_is_written(self) -> None:
                for text in DAYS:
                    with self.subTest(text=text):
                        self.assertEqual(day(text), date(2026, 3, 1))

            def test_a_day_is_in_a_quarter(self) -> None:
                for month, name in QUARTERS.items():
                    with self.subTest(month=month):
                        self.assertEqual(quarter(date(2026, month, 15)), name)
        """,
    "tests/test_rows.py": '''
        from datetime import date
        from unittest import TestCase

        from tally.rows import rows

        SHEET = """day,what,amount
        2026-03-01,Train to Basel,49.00
        2026-03-02,"Hotel, two nights","1,210.00"

        2026-03-09,Train given back,(49.00)
        """.replace("        ", "")


        class Rows(TestCase):
            def test_a_sheet_has_a_row_for_each_expense(self) -> None:
                what = ["Train to Basel", "Hotel, two nights", "Train given back"]
                self.assertEqual([row.what for row in rows(SHEET)], what)

            def test_a_row_knows_its_day_and_amount(self) -> None:
                self.assertEqual([row.amount for row in rows(SHEET)], [4900, 121000, -4900])
                self.assertEqual([row.when for row in rows(SHEET)], [date(2026, 3, day) for day in (1, 2, 9)])

            def test_an_empty_sheet_has_none(self) -> None:
                self.assertEqual(list(rows("day,what,amount\\n")), [])
        ''',
    "tests/test_totals.py": """
        from datetime import date
        from unittest import TestCase

        from tally.rows import Row
        from tally.totals import by_month, by_quarter

        ROWS = [
            Row(date(2025, 12, 30), "Paper", 900), Row(date(2025, 3, 1), "Train", 4900),
            Row(date(2026, 3, 1), "Train", 5100), Row(date(2026, 3, 9), "Train given back", -5100),
            Row(date(2026, 4, 2), "Hotel", 12000),
        ]


        class Totals(TestCase):
            def test_a_month_has_the_sum_of_its_rows(self) -> None:
                self.assertEqual(by_month(ROWS)["2026-03"], 0)

            def test_the_same_month_of_two_years_is_two_months(self) -> None:
                self.assertEqual(by_month(ROWS)["2025-03"], 4900)

            def test_months_come_in_their_order(self) -> None:
                self.assertEqual(list(by_month(ROWS)), ["2025-03", "2025-12", "2026-03", "2026-04"])

            def test_a_quarter_has_the_sum_of_its_rows(self) -> None:
                self.assertEqual(by_quarter(ROWS), {"2025 Q4": 900, "2025 Q1": 4900, "2026 Q1": 0, "2026 Q2": 12000})
        """,
    "tests/test_report.py": """
        from unittest import TestCase

        from tally.report import shares, table

        TOTALS = {"2025-12": 900, "2026-03": 123450, "2026-04": -1200}


        class Report(TestCase):
            def test_amounts_are_aligned(self) -> None:
                lines = table(TOTALS).split("\\n")
                self.assertEqual({len(line) for line in lines}, {len("2026-03  1,234.50")}, "\\n" + table(TOTALS))

            def test_the_sum_is_below_a_rule(self) -> None:
                end = ["-----------------", "sum      1,231.50"]
                self.assertEqual(table(TOTALS).split("\\n")[-2:], end, "\\n" + table(TOTALS))

            def test_shares_are_rounded_and_not_cut(self) -> None:
                self.assertEqual(shares({"a": 2, "b": 1}), {"a": 67, "b": 33})

            def test_nothing_has_no_shares(self) -> None:
                self.assertEqual(shares({"a": 0}), {"a": 0})
        """,
}
"""The files before the agent starts."""
