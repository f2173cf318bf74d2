"""The map of the source, kept honest: which room may know which, and what no room may do.

A rule that lives only in a document is broken by the first hurried import. Everything here reads the source as
a syntax tree and never imports it, so an import inside a function or under TYPE_CHECKING counts like any other:
knowing a name is knowing the room. Every check takes a folder, so that the tests at the end can show it failing.
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

# A room may import rooms of the lines above its own. Rooms of one line are strangers: what both need lives above
# them, as a value. `inmind` is the package's own __init__: only what stands below it may use the public names.
ORDER = """
errors
core
store
documents
history entities search
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

# These rooms exist to meet other people's libraries; everywhere else those are imported by whoever needs them, late.
MEETS_LIBRARIES = (
    "apps/",
    "integrations/",
    "search/embedders/",
    "store/postgres/",
    "search/index/postgres",
    "search/nearest",
)

UNSAFE_MODULES = {"pickle", "marshal", "shelve", "dill", "cloudpickle"}
UNSAFE_CALLS = {"eval", "exec", "yaml.load", "yaml.load_all", "yaml.unsafe_load", "yaml.unsafe_load_all"}

# POSIX drops every lock a process holds on a file when it closes any descriptor of it: one innocent read of the
# database file, beside SQLite's own, and two processes write at once.
OPENS_A_FILE = {"open", "read_bytes", "read_text", "write_bytes", "write_text", "copy", "copy2", "copyfile"}


def test_imports_point_one_way() -> None:
    assert wrong_imports(SOURCE) == []


def test_no_library_is_needed_to_import_inmind_but_the_core_ones() -> None:
    assert early_libraries(SOURCE, core=core_libraries()) == []


def test_every_file_that_the_map_names_is_there() -> None:
    named = re.findall(r"`((?:[\w-]+/)+[\w-]+\.(?:py|sql|jsonl))`", (PROJECT / "ARCHITECTURE.md").read_text())
    assert len(named) > 60
    assert [name for name in named if not any((place / name).exists() for place in (PROJECT, SOURCE))] == []


def test_nothing_runs_what_it_reads() -> None:
    assert unsafe_code(SOURCE) == []


def test_the_database_file_is_opened_by_sqlite_alone() -> None:
    assert opened_files(SOURCE) == []


def wrong_imports(root: Path) -> list[str]:
    """The imports that point up or sideways, and the rooms that have no place in the order."""
    found: list[str] = []
    for path, tree in modules(root):
        room = room_of(path, root)
        if room not in RANK:
            found.append(f"{shown(path, root)}: the room {room!r} is not in ORDER: give it a place there")
            continue
        for line, target in internal_imports(path, tree, root):
            if target != room and RANK.get(target, len(RANK)) >= RANK[room]:
                found.append(f"{shown(path, root)}:{line}: {room} may not know {target}")
    return found


def early_libraries(root: Path, *, core: set[str]) -> list[str]:
    """The imports that run with the module and need something that a bare install does not bring."""
    welcome = core | sys.stdlib_module_names | {root.name}
    found: list[str] = []
    for path, tree in modules(root, with_facade=True):
        if not shown(path, root).startswith(MEETS_LIBRARIES):
            for node in run_on_import(tree):
                found += [
                    f"{shown(path, root)}:{node.lineno}: imports {name} with the module"
                    for name in imported_names(node)
                    if name.partition(".")[0] not in welcome
                ]
    return found


def unsafe_code(root: Path) -> list[str]:
    """The imports and calls that turn data into running code."""
    found: list[str] = []
    for path, tree in modules(root, with_facade=True):
        for node in ast.walk(tree):
            names = imported_names(node)
            if isinstance(node, ast.Call):
                names += [called for called in [ast.unparse(node.func)] if called in UNSAFE_CALLS]
            found += [
                f"{shown(path, root)}:{line_of(node)}: uses {name}"
                for name in names
                if name in UNSAFE_CALLS or name.partition(".")[0] in UNSAFE_MODULES
            ]
    return found


def opened_files(root: Path) -> list[str]:
    """The calls in the SQLite store that would open a file behind SQLite's back."""
    return [
        f"{shown(path, root)}:{node.lineno}: calls {ast.unparse(node.func)}()"
        for path, tree in modules(root)
        if re.match(r"store/sqlite(\.py|/)", shown(path, root))
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and opens_a_file(node.func)
    ]


def opens_a_file(called: ast.expr) -> bool:
    """`open(…)`, `path.open(…)` and their kin.

    `cls.open` and `SqliteStore.open` are names of our own, and a resource of the package is never the database.
    """
    if isinstance(called, ast.Name):
        return called.id in OPENS_A_FILE
    if not isinstance(called, ast.Attribute) or called.attr not in OPENS_A_FILE:
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
    """Every module as a tree. The package's own __init__ gathers names from everywhere: it has no rank of its own."""
    for path in sorted(root.rglob("*.py")):
        if with_facade or path != root / "__init__.py":
            yield path, parsed(path)


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def internal_imports(path: Path, tree: ast.Module, root: Path) -> Iterator[tuple[int, str]]:
    """The rooms that a module imports, with the line. Relative imports are spelled out first."""
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


def run_on_import(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports that run when the module does: not those in functions, nor those for the type checker only."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        elif isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
            for otherwise in child.orelse:
                yield from run_on_import(ast.Module(body=[otherwise], type_ignores=[]))
        elif not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from run_on_import(child)


def core_libraries() -> set[str]:
    """What a bare `pip install inmind` brings, by the names in pyproject.toml."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {re.split(r"[^\w-]", requirement)[0].replace("-", "_") for requirement in project["dependencies"]}


def room_of(path: Path, root: Path) -> str:
    return path.relative_to(root).parts[0].removesuffix(".py")


def is_room(name: str, root: Path) -> bool:
    return name in RANK or (root / name).is_dir() or (root / f"{name}.py").is_file()


def shown(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix()


def line_of(node: ast.AST) -> int:
    return getattr(node, "lineno", 0)


# The checks, checked: each of these little trees breaks one rule, and the check has to say where.

Check = Callable[[Path], list[str]]


def early(root: Path) -> list[str]:
    return early_libraries(root, core={"apsw"})


@pytest.mark.parametrize(
    ("check", "file", "code", "complaint"),
    [
        (wrong_imports, "core/json.py", "from inmind.session.session import Session", "1: core may not know session"),
        (wrong_imports, "core/json.py", "from inmind import session", "1: core may not know session"),
        (wrong_imports, "core/json.py", "import inmind.store.protocol", "1: core may not know store"),
        (wrong_imports, "core/json.py", "def f():\n    from ..memory import Memory", "2: core may not know memory"),
        (wrong_imports, "dreams/page/guards.py", "from ...prompt import plan", "1: dreams may not know prompt"),
        (wrong_imports, "dreams/page/guards.py", "from ... import prompt", "1: dreams may not know prompt"),
        (
            wrong_imports,
            "core/text.py",
            "if TYPE_CHECKING:\n    from inmind import store",
            "2: core may not know store",
        ),
        (wrong_imports, "session/session.py", "from inmind import Memory", "1: session may not know inmind"),
        (wrong_imports, "utils.py", "", "the room 'utils' is not in ORDER"),
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
        (unsafe_code, "dreams/page/sections.py", "yaml.load(text)", "1: uses yaml.load"),
        (opened_files, "store/sqlite/store.py", "open(path)", "1: calls open()"),
        (opened_files, "store/sqlite/store.py", "os.open(path, 0)", "1: calls os.open()"),
        (opened_files, "store/sqlite/store.py", "self.path.read_bytes()", "1: calls self.path.read_bytes()"),
        (opened_files, "store/sqlite/backup.py", "shutil.copyfile(a, b)", "1: calls shutil.copyfile()"),
    ],
)
def test_a_broken_rule_is_found(tmp_path: Path, check: Check, file: str, code: str, complaint: str) -> None:
    [found] = check(a_tree(tmp_path, file, code))
    assert found.startswith(file)
    assert complaint in found


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
        (early, "apps/cli.py", "import typer"),
        (unsafe_code, "store/sqlite/store.py", "connection.execute('select 1')"),
        (opened_files, "store/sqlite/store.py", "SqliteStore.open(home); cls.open(home); values.copy()"),
        (opened_files, "store/sqlite/store.py", "(files('inmind.store') / 'queries.sql').read_text()"),
        (opened_files, "store/atomic_files.py", "open(path)"),
    ],
)
def test_what_is_allowed_is_let_through(tmp_path: Path, check: Check, file: str, code: str) -> None:
    assert check(a_tree(tmp_path, file, code)) == []


def a_tree(place: Path, file: str, code: str) -> Path:
    root = place / "inmind"
    (root / file).parent.mkdir(parents=True)
    (root / file).write_text(code, encoding="utf-8")
    return root
