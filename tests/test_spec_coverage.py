"""Each promise and fault of the specification is named by a test that `make test` runs.

A test names an id in its docstring or with `@pytest.mark.spec("A1")`; a `pytestmark` names it for a whole module. Tests
marked `exhaustive` or `torture` do not count. Tests are read as syntax trees: nothing has to be importable. Tests that
this machine skips count.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parent

# An id joins the list with the change that delivers it. D9 is a promise, D09 is a fault.
PROMISES = (
    "A1 A2 A3 A4 A5 A6 B1 B2 B3 B4 B5 B6 B7 B8 B9 B10 B11 C1 C2 C3 C4 C5 C6 C7 C8 C9 D1 D2 D3 D4 D5 D6 D7 D8 D9 D11 "
    "E1 E2 E3 E4 E5 E6 E7 E8 E9 E10 E11 E12 F1 F2 F3 F4 F5 G1 G2 G3 G4 G5 G6 G7 G8 G9 G10 G11 G12 G13 G14 G15 "
    "H1 H2 H3 H4 H5 H6 H7 I1 I2 I3 I8 J1 J2 J3 J4 J8"
).split()
FAULTS = (
    "B47 C02 C04 C05 C06 C08 D09 K14 K16 K17 K20 K22 K23 K24 K25 M35 M36 M39 M40 M41 N56 N57 N63 N64 N67 P29 "
    "P30 P31 P33 P34"
).split()

EXCLUDED_MARKS = ("pytest.mark.exhaustive", "pytest.mark.torture")

ID = re.compile(r"\b[A-Z]\d{1,2}\b")

Test = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def test_every_delivered_promise_is_named_by_a_test() -> None:
    missing = untested(PROMISES, TESTS)
    assert not missing, f"no test names {' '.join(missing)}"


def test_every_survived_fault_is_named_by_a_test() -> None:
    missing = untested(FAULTS, TESTS)
    assert not missing, f"no test names {' '.join(missing)}"


def untested(ids: Sequence[str], root: Path) -> list[str]:
    named = ids_named_below(root)
    return [name for name in ids if name not in named]


@cache
def ids_named_below(root: Path) -> frozenset[str]:
    return frozenset(name for path in root.rglob("*.py") for name in ids_named_in(path))


def ids_named_in(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    if not ID.search(text):
        return
    tree = ast.parse(text, filename=str(path))
    module_marks = [node for node in tree.body if isinstance(node, ast.Assign) and assigns_marks(node)]
    if any(is_excluded(mark.value) for mark in module_marks):
        return
    tests = list(nodes_below(tree))
    for test in tests:
        yield from ID.findall(ast.get_docstring(test) or "")
        for decorator in test.decorator_list:
            yield from ids_marked(decorator)
    if tests:
        yield from (name for mark in module_marks for value in ast.walk(mark.value) for name in ids_marked(value))


def nodes_below(node: ast.Module | ast.ClassDef) -> Iterator[Test]:
    """The test functions and classes that `make test` runs."""
    for child in node.body:
        if isinstance(child, Test) and is_test(child) and not any(map(is_excluded, child.decorator_list)):
            yield child
            if isinstance(child, ast.ClassDef):
                yield from nodes_below(child)


def is_test(node: Test) -> bool:
    return node.name.startswith("Test" if isinstance(node, ast.ClassDef) else "test_")


def assigns_marks(node: ast.Assign) -> bool:
    return [ast.unparse(target) for target in node.targets] == ["pytestmark"]


def is_excluded(marks: ast.expr) -> bool:
    """Whether a mark excludes a test from `make test`; a mark on single parameters does not."""
    listed = marks.elts if isinstance(marks, ast.List) else [marks]
    return any(ast.unparse(mark) in EXCLUDED_MARKS for mark in listed)


def ids_marked(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.spec":
        for argument in node.args:
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                yield argument.value


EXAMPLE_MODULE = '''
"""A1 is only mentioned here."""
pytestmark = [pytest.mark.embedded, pytest.mark.spec("A2")]

@pytest.mark.spec("D9", "K14")
def test_marked(): ...

class TestGrouped:
    async def test_in_a_class(self):
        """Covers J3 (and J40, which is no id of the list)."""

@pytest.mark.exhaustive
@pytest.mark.spec("B1")
def test_that_only_make_test_all_runs(): ...

@pytest.mark.torture
class TestLong:
    def test_that_only_make_torture_runs(self):
        """Covers B2."""

def helper():
    """A3 in a helper does not count."""
'''


def test_an_id_without_a_test_is_reported(tmp_path: Path) -> None:
    folder = tmp_path / "unit"
    folder.mkdir()
    (folder / "test_made_up.py").write_text(EXAMPLE_MODULE, encoding="utf-8")
    wanted = ["A1", "A2", "A3", "B1", "B2", "D9", "D09", "J3", "J4", "K14"]
    assert untested(wanted, tmp_path) == ["A1", "A3", "B1", "B2", "D09", "J4"]
