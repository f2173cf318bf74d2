"""Fixtures and options for all tests: a memory with a manual clock, and PostgreSQL servers."""

from __future__ import annotations

import gc
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import ExitStack
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import home_builders
import postgres
import profiles
import pytest
from builders import Home

from inmind import Memory, Session
from inmind.testing import ManualClock

if TYPE_CHECKING:
    import psycopg

    from inmind.store.postgres.jobs import Jobs

profiles.load()

# Without cached bytecode each run rewrites the assertions of all tests, and each child process compiles its imports.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# The tests flush thousands of small files: keep them in memory. xdist workers inherit the variable.
if "TMPDIR" not in os.environ and (in_memory := postgres.in_memory()):
    os.environ["TMPDIR"] = str(in_memory)
    tempfile.tempdir = None

# A background job of a shell ignores SIGINT, and so would each program that a test starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# All servers run on this machine. Loading the system's certificates takes longer than a request.
os.environ.pop("SSL_CERT_FILE", None)
os.environ["SSL_CERT_DIR"] = os.devnull


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--all-stores", action="store_true", help="run each test that opens a memory on SQLite and on PostgreSQL"
    )


def pytest_collection_finish() -> None:
    """Exclude modules and tests from garbage collection, since they stay until the end."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


STORES = ("sqlite", "postgres")


@pytest.hookimpl(trylast=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests on both stores: those marked `both_stores`, or all with --all-stores."""
    if "store_kind" not in metafunc.fixturenames or metafunc.definition.get_closest_marker("embedded"):
        return
    if metafunc.config.getoption("all_stores") or metafunc.definition.get_closest_marker("both_stores"):
        metafunc.parametrize("store_kind", STORES, indirect=True)


@pytest.fixture
def store_kind(request: pytest.FixtureRequest) -> str:
    """The store of the test: "sqlite" is a home in a folder, "postgres" a tenant in a database."""
    return getattr(request, "param", "sqlite")


@pytest.fixture
def new_home(store_kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> Generator[Callable[[], Home]]:
    """A function that returns an empty home of the test's store, a different one for each call."""
    if store_kind == "sqlite":
        names = chain(["home"], map("home-{}".format, count(2)))
        yield lambda: tmp_path / next(names)
        return
    tenants: postgres.Tenants = request.getfixturevalue("tenants")
    with ExitStack() as homes:
        yield lambda: homes.enter_context(tenants.reused())


@pytest.fixture
def home(new_home: Callable[[], Home]) -> Home:
    return new_home()


@pytest.fixture
def memory(home: Home, clock: ManualClock) -> Generator[Memory]:
    with Memory.open(home, clock=clock) as memory:
        yield memory


@pytest.fixture
def session(memory: Memory) -> Session:
    return memory.session("support-42", resource="ada", cwd="/website")


# -- PostgreSQL --------------------------------------------------------------------------------------------

_RUN = pytest.StashKey[postgres.Run]()


def pytest_configure(config: pytest.Config) -> None:
    folder: str | None = getattr(config, "workerinput", {}).get("run")
    config.stash[_RUN] = postgres.Run(Path(folder)) if folder else postgres.Run.begin()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Let an xdist worker use the servers of its controller."""
    node.workerinput["run"] = str(node.config.stash[_RUN].folder)


def pytest_unconfigure(config: pytest.Config) -> None:
    config.stash[_RUN].end()


@pytest.fixture(scope="session")
def postgres_run(pytestconfig: pytest.Config) -> postgres.Run:
    """Private servers that a test may stop: `with postgres_run.server(fsync="off") as server`."""
    if reason := postgres.missing_reason():
        pytest.skip(reason)
    return pytestconfig.stash[_RUN]


@pytest.fixture(scope="session")
def postgres_admin(request: pytest.FixtureRequest) -> str:
    """A superuser's URL of the server that all tests share. No test may stop it."""
    if given := os.environ.get(postgres.SERVER_VARIABLE):
        return given
    run: postgres.Run = request.getfixturevalue("postgres_run")
    return run.shared().url()


@pytest.fixture(scope="session")
def tenants(postgres_admin: str) -> Generator[postgres.Tenants]:
    """For tests that need several tenants: `with tenants.fresh() as url`."""
    tenants = postgres.Tenants(postgres_admin)
    home_builders.tenants.append(tenants)
    yield tenants
    home_builders.tenants.remove(tenants)
    tenants.close()


@pytest.fixture
def tenant_url(tenants: postgres.Tenants) -> Generator[str]:
    """The URL of a new tenant without tables."""
    with tenants.fresh() as url:
        yield url


@pytest.fixture
def jobs(tenant_url: str) -> Generator[Jobs]:
    """The job queue of the tenant, with its tables created."""
    from inmind.store.postgres import PostgresStore
    from inmind.store.postgres.jobs import Jobs

    store = PostgresStore.open(tenant_url)
    jobs = Jobs(store.database)
    jobs.create_tables()
    yield jobs
    store.close()


@pytest.fixture
def sql(tenant_url: str) -> Generator[psycopg.Connection[Any]]:
    """A connection as the tenant, in its schema."""
    import psycopg

    with psycopg.connect(tenant_url, autocommit=True) as connection:
        yield connection
