"""Architecture rules: which package may import which, and what no package may do.

The checks read the source as syntax trees and import nothing, so an import inside a function or under TYPE_CHECKING
counts too. Every check takes a folder, so that the tests at the end can run it on code that breaks a rule.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
SOURCE = PROJECT / "src" / "inmind"

# A package may import packages of the lines above it, but not of the same line. `inmind` is the __init__ of the
# whole package: only packages below it may use the public names.
ORDER = """
errors
core
store
documents
entities search
history
dreams
prompt
session
jobs
memory
testing integrations
inmind layers types
apps
__main__
"""
RANK = {room: rank for rank, line in enumerate(ORDER.split("\n")) for room in line.split()}

# These packages may import optional libraries at import time; others import them inside functions.
ADAPTER_PACKAGES = (
    "apps/",
    "integrations/",
    "search/embedders/",
    "store/postgres/",
    "search/index/postgres",
    "search/nearest",
)

UNSAFE_MODULES = {"pickle", "marshal", "shelve", "dill", "cloudpickle"}
UNSAFE_CALLS = {"eval", "exec", "yaml.load", "yaml.load_all", "yaml.unsafe_load", "yaml.unsafe_load_all"}

# POSIX drops all locks of a process on a file when the process closes any descriptor of it: after one read of the
# database file outside of SQLite, two processes could write concurrently.
FILE_OPENERS = {"open", "read_bytes", "read_text", "write_bytes", "write_text", "copy", "copy2", "copyfile"}


def test_imports_point_one_way() -> None:
    assert wrong_imports(SOURCE) == []


def test_importing_inmind_needs_only_core_libraries() -> None:
    assert early_libraries(SOURCE, core=core_libraries()) == []


def test_every_file_named_in_the_architecture_page_exists() -> None:
    named = re.findall(r"`((?:[\w-]+/)+[\w-]+\.(?:py|sql|jsonl))`", (PROJECT / "ARCHITECTURE.md").read_text())
    assert len(named) > 60
    assert [name for name in named if not any((place / name).exists() for place in (PROJECT, SOURCE))] == []


def test_no_code_executes_data() -> None:
    assert unsafe_code(SOURCE) == []


def test_only_sqlite_opens_the_database_file() -> None:
    assert opened_files(SOURCE) == []


def wrong_imports(root: Path) -> list[str]:
    """Imports against the order, and packages that are missing in ORDER."""
    violations: list[str] = []
    for path, tree in modules(root):
        room = room_of(path, root)
        if room not in RANK:
            violations.append(f"{relative_name(path, root)}: the package {room!r} is not in ORDER: add it")
            continue
        for line, target in internal_imports(path, tree, root):
            if target != room and RANK.get(target, len(RANK)) >= RANK[room]:
                violations.append(f"{relative_name(path, root)}:{line}: {room} may not import {target}")
    return violations


def early_libraries(root: Path, *, core: set[str]) -> list[str]:
    """Imports at import time of libraries that a bare install does not have."""
    allowed = core | sys.stdlib_module_names | {root.name}
    violations: list[str] = []
    for path, tree in modules(root, with_facade=True):
        if not relative_name(path, root).startswith(ADAPTER_PACKAGES):
            for node in import_time_imports(tree):
                violations += [
                    f"{relative_name(path, root)}:{node.lineno}: imports {name} at import time"
                    for name in imported_names(node)
                    if name.partition(".")[0] not in allowed
                ]
    return violations


def unsafe_code(root: Path) -> list[str]:
    """Imports and calls that execute data as code."""
    violations: list[str] = []
    for path, tree in modules(root, with_facade=True):
        for node in ast.walk(tree):
            names = imported_names(node)
            if isinstance(node, ast.Call):
                names += [called for called in [ast.unparse(node.func)] if called in UNSAFE_CALLS]
            violations += [
                f"{relative_name(path, root)}:{line_of(node)}: uses {name}"
                for name in names
                if name in UNSAFE_CALLS or name.partition(".")[0] in UNSAFE_MODULES
            ]
    return violations


def opened_files(root: Path) -> list[str]:
    """Calls in the SQLite store that open a file without SQLite."""
    return [
        f"{relative_name(path, root)}:{node.lineno}: calls {ast.unparse(node.func)}()"
        for path, tree in modules(root)
        if re.match(r"store/sqlite(\.py|/)", relative_name(path, root))
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and opens_file(node.func)
    ]


def opens_file(called: ast.expr) -> bool:
    """Whether this is `open(…)`, `path.open(…)` or a similar call.

    `cls.open` and `SqliteStore.open` are methods of inmind, and a package resource is never the database.
    """
    if isinstance(called, ast.Name):
        return called.id in FILE_OPENERS
    if not isinstance(called, ast.Attribute) or called.attr not in FILE_OPENERS:
        return False
    owner = called.value.id if isinstance(called.value, ast.Name) else ""
    ours = owner in {"cls", "self"} or (owner[:1].isupper() and owner != "Path")
    copies_a_value = called.attr.startswith("copy") and owner != "shutil"
    return not (ours or copies_a_value or is_package_resource(called.value))


def is_package_resource(owner: ast.expr) -> bool:
    """`(files("inmind.store") / "queries.sql")`, read through importlib.resources."""
    return any(
        isinstance(node, ast.Call) and ast.unparse(node.func) in {"files", "package_files", "resources.files"}
        for node in ast.walk(owner)
    )


def modules(root: Path, *, with_facade: bool = False) -> Iterator[tuple[Path, ast.Module]]:
    """Every module as a tree. The top-level __init__ may import everything, so it is optional."""
    for path in sorted(root.rglob("*.py")):
        if with_facade or path != root / "__init__.py":
            yield path, parsed(path)


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def internal_imports(path: Path, tree: ast.Module, root: Path) -> Iterator[tuple[int, str]]:
    """The packages that a module imports, with the line; relative imports are resolved."""
    package = [root.name, *path.relative_to(root).parent.parts]
    for node in ast.walk(tree):
        for name in imported_names(node, package):
            first, *rest = name.split(".")
            if first == root.name:
                yield line_of(node), rest[0] if rest and is_room(rest[0], root) else root.name


def imported_names(node: ast.AST, package: list[str] | None = None) -> list[str]:
    """Full dotted names: `from inmind import core` is inmind.core, like `import inmind.core`."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    base = [node.module] if node.module else []
    if node.level:
        home = package or ["inmind"]
        base = home[: len(home) - node.level + 1] + base
    return [".".join([*base, alias.name]) for alias in node.names]


def import_time_imports(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Imports at import time: not in functions, and not under TYPE_CHECKING."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        elif isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
            for statement in child.orelse:
                yield from import_time_imports(ast.Module(body=[statement], type_ignores=[]))
        elif not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from import_time_imports(child)


def core_libraries() -> set[str]:
    """The libraries of a bare `pip install inmind`, as named in pyproject.toml."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {re.split(r"[^\w-]", requirement)[0].replace("-", "_") for requirement in project["dependencies"]}


def room_of(path: Path, root: Path) -> str:
    return path.relative_to(root).parts[0].removesuffix(".py")


def is_room(name: str, root: Path) -> bool:
    return name in RANK or (root / name).is_dir() or (root / f"{name}.py").is_file()


def relative_name(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix()


def line_of(node: ast.AST) -> int:
    return getattr(node, "lineno", 0)


# Tests of the checks: each of these packages breaks one rule, and the check has to report the line.

Check = Callable[[Path], list[str]]


def early(root: Path) -> list[str]:
    return early_libraries(root, core={"apsw"})


@pytest.mark.parametrize(
    ("check", "file", "code", "complaint"),
    [
        (wrong_imports, "core/json.py", "from inmind.session.session import Session", "1: core may not import session"),
        (wrong_imports, "core/json.py", "from inmind import session", "1: core may not import session"),
        (wrong_imports, "core/json.py", "import inmind.store.protocol", "1: core may not import store"),
        (wrong_imports, "core/json.py", "def f():\n    from ..memory import Memory", "2: core may not import memory"),
        (wrong_imports, "dreams/page/guards.py", "from ...prompt import plan", "1: dreams may not import prompt"),
        (wrong_imports, "dreams/page/guards.py", "from ... import prompt", "1: dreams may not import prompt"),
        (
            wrong_imports,
            "core/text.py",
            "if TYPE_CHECKING:\n    from inmind import store",
            "2: core may not import store",
        ),
        (wrong_imports, "session/session.py", "from inmind import Memory", "1: session may not import inmind"),
        (wrong_imports, "utils.py", "", "the package 'utils' is not in ORDER"),
        (early, "tokens.py", "import tiktoken", "1: imports tiktoken"),
        (
            early,
            "history/token_meter.py",
            "try:\n    from numpy import array\nexcept ImportError: pass",
            "2: imports numpy",
        ),
        (early, "__init__.py", "import rich.console", "1: imports rich.console"),
        (unsafe_code, "store/protocol.py", "def f():\n    import pickle", "2: uses pickle"),
        (unsafe_code, "store/protocol.py", "from marshal import loads", "1: uses marshal.loads"),
        (unsafe_code, "tools.py", "eval('1')", "1: uses eval"),
        (unsafe_code, "dreams/page/page.py", "yaml.load(text)", "1: uses yaml.load"),
        (opened_files, "store/sqlite/store.py", "open(path)", "1: calls open()"),
        (opened_files, "store/sqlite/store.py", "os.open(path, 0)", "1: calls os.open()"),
        (opened_files, "store/sqlite/store.py", "self.path.read_bytes()", "1: calls self.path.read_bytes()"),
        (opened_files, "store/sqlite/backup.py", "shutil.copyfile(a, b)", "1: calls shutil.copyfile()"),
    ],
)
def test_a_broken_rule_is_reported(tmp_path: Path, check: Check, file: str, code: str, complaint: str) -> None:
    [violation] = check(create_package(tmp_path, file, code))
    assert violation.startswith(file)
    assert complaint in violation


@pytest.mark.parametrize(
    ("check", "file", "code"),
    [
        (wrong_imports, "session/session.py", "from inmind.core.events.base import Event"),
        (wrong_imports, "dreams/page/guards.py", "from .sections import Section"),
        (wrong_imports, "memory/memory.py", "from ..session.session import Session"),
        (wrong_imports, "apps/cli.py", "from inmind import Memory"),
        (wrong_imports, "__init__.py", "from inmind.memory import Memory"),
        (early, "tokens.py", "import apsw, json\ndef f():\n    import tiktoken"),
        (early, "tokens.py", "if TYPE_CHECKING:\n    import openai"),
        (early, "apps/cli.py", "import click"),
        (unsafe_code, "store/sqlite/store.py", "connection.execute('select 1')"),
        (opened_files, "store/sqlite/store.py", "SqliteStore.open(home); cls.open(home); values.copy()"),
        (opened_files, "store/sqlite/store.py", "(files('inmind.store') / 'queries.sql').read_text()"),
        (opened_files, "store/atomic_files.py", "open(path)"),
    ],
)
def test_allowed_code_is_not_reported(tmp_path: Path, check: Check, file: str, code: str) -> None:
    assert check(create_package(tmp_path, file, code)) == []


def create_package(place: Path, file: str, code: str) -> Path:
    root = place / "inmind"
    (root / file).parent.mkdir(parents=True)
    (root / file).write_text(code, encoding="utf-8")
    return root
