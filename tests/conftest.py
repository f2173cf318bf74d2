"""What all tests share: how hard hypothesis looks, a memory of its own on a clock the test holds, and a PostgreSQL.

CI repeats itself, so a red build is the change's fault and not the dice's; at a desk every run looks somewhere new;
torture looks long, at all that is in tests/property. No profile has a deadline: a slow machine is not a failing test.
"""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Callable, Generator
from contextlib import ExitStack
from itertools import chain, count
from pathlib import Path
from typing import Any

import home_builders
import postgres
import psycopg
import pytest
from builders import Home
from hypothesis import HealthCheck, settings

from inmind import Memory, Session
from inmind.store.postgres import PostgresStore
from inmind.store.postgres.jobs import Jobs
from inmind.testing import ManualClock

_UNHURRIED = settings(deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
_SOON = settings(parent=_UNHURRIED, max_examples=60)

settings.register_profile("ci", parent=_SOON, derandomize=True)
settings.register_profile("desk", parent=_SOON)
settings.register_profile("torture", parent=_UNHURRIED, max_examples=2_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "desk"))


# Thousands of small files that are flushed one by one are best kept in memory. Workers have it from their controller.
if "TMPDIR" not in os.environ and (quick := postgres.in_memory()):
    os.environ["TMPDIR"] = str(quick)
    tempfile.tempdir = None

# Nobody here talks to anybody but this machine, and reading all certificates of the world takes longer than an answer.
os.environ.pop("SSL_CERT_FILE", None)
os.environ["SSL_CERT_DIR"] = os.devnull


def pytest_collection_finish() -> None:
    """What has been imported and collected stays: nobody has to look through it again and again for what has gone."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


STORES = ("sqlite", "postgres")


@pytest.hookimpl(trylast=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """What goes through a memory runs on both stores, unless it is about one of them."""
    if "store_kind" in metafunc.fixturenames and not metafunc.definition.get_closest_marker("embedded"):
        metafunc.parametrize("store_kind", STORES, indirect=True)


@pytest.fixture
def store_kind(request: pytest.FixtureRequest) -> str:
    """On what the test runs: a home in a folder, with SQLite, or a database of PostgreSQL."""
    return getattr(request, "param", "sqlite")


@pytest.fixture
def new_home(store_kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> Generator[Callable[[], Home]]:
    """Where a memory can be, with nothing in it, of the kind that the test runs on; each time another."""
    if store_kind == "sqlite":
        names = chain(["home"], map("home-{}".format, count(2)))
        yield lambda: tmp_path / next(names)
        return
    tenants: postgres.Tenants = request.getfixturevalue("tenants")
    with ExitStack() as afterwards:
        yield lambda: afterwards.enter_context(tenants.swept())


@pytest.fixture
def home(new_home: Callable[[], Home]) -> Home:
    return new_home()


@pytest.fixture
def memory(home: Home, clock: ManualClock) -> Generator[Memory]:
    with Memory.open(home, clock=clock) as opened:
        yield opened


@pytest.fixture
def session(memory: Memory) -> Session:
    return memory.session("support-42", resource="ada", cwd="/website")


# -- PostgreSQL --------------------------------------------------------------------------------------------

_RUN = pytest.StashKey[postgres.Run]()


def pytest_configure(config: pytest.Config) -> None:
    began: str | None = getattr(config, "workerinput", {}).get("run")
    config.stash[_RUN] = postgres.Run(Path(began)) if began else postgres.Run.begin()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """A worker of xdist takes part in the run that its controller has begun."""
    node.workerinput["run"] = str(node.config.stash[_RUN].folder)


def pytest_unconfigure(config: pytest.Config) -> None:
    config.stash[_RUN].end()


@pytest.fixture(scope="session")
def postgres_run(pytestconfig: pytest.Config) -> postgres.Run:
    """For a server of one's own: `with postgres_run.server(fsync="off") as server`."""
    if reason := postgres.missing():
        pytest.skip(reason)
    return pytestconfig.stash[_RUN]


@pytest.fixture(scope="session")
def postgres_admin(request: pytest.FixtureRequest) -> str:
    """A superuser's URL of the server that all tests share: nobody stops it."""
    if given := os.environ.get(postgres.GIVEN):
        return given
    run: postgres.Run = request.getfixturevalue("postgres_run")
    return run.shared().url()


@pytest.fixture(scope="session")
def tenants(postgres_admin: str) -> Generator[postgres.Tenants]:
    """For tests that need several tenants: `with tenants.fresh() as url`."""
    made = postgres.Tenants(postgres_admin)
    home_builders.tenants.append(made)
    yield made
    home_builders.tenants.remove(made)
    made.close()


@pytest.fixture
def tenant_url(tenants: postgres.Tenants) -> Generator[str]:
    """A tenant of the test's own, with nothing in it."""
    with tenants.fresh() as url:
        yield url


@pytest.fixture
def jobs(tenant_url: str) -> Generator[Jobs]:
    """Its queue, which is made by that."""
    store = PostgresStore.open(tenant_url)
    made = Jobs(store.database)
    made.make()
    yield made
    store.close()


@pytest.fixture
def sql(tenant_url: str) -> Generator[psycopg.Connection[Any]]:
    """As the tenant, in its own schema."""
    with psycopg.connect(tenant_url, autocommit=True) as connection:
        yield connection
