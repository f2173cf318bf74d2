"""Fault injection, and checks of the consequences from another process.

An actor is a function in one of this folder's modules. It runs in a separate process and reports over a socket, so that
its reports before its death are known exactly; `send` on a socket is not one of the system calls that faults are
injected into. All random choices come from one seed, which is printed: set TORTURE_SEED to repeat a run.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any, NoReturn, Protocol, TypeVar

import pytest
from fork_server import ForkServer

TESTS = Path(__file__).parents[1]
TIMEOUT_SECONDS = 60.0
"""Timeout of an actor; none needs a tenth of it."""

# Each of these can leave the disk in another state. Writing to a mapping is no system call; kills at random moments
# cover that.
WRITING = (
    "write writev pwrite64 pwritev fsync fdatasync ftruncate fallocate rename renameat renameat2 link linkat unlink "
    "unlinkat mkdir mkdirat rmdir"
).split()

Actor = Callable[..., Any]
T = TypeVar("T")
R = TypeVar("R")


class ActorChannel:
    """An actor's end of the socket."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._incoming = b""

    def report(self, *words: object) -> None:
        self._socket.sendall(json.dumps(words).encode() + b"\n")

    def wait(self) -> None:
        """Wait for the test: a barrier for several actors."""
        self.report("waiting")
        if not self._socket.recv(1):
            sys.exit("the test has ended")


@dataclass(frozen=True)
class Outcome:
    """The exit code of an actor, and everything that it reported."""

    code: int
    reports: list[list[Any]]
    output: str
    calls: list[str] = field(default_factory=list[str])
    """The lines of the trace, if there was one."""

    @property
    def killed(self) -> bool:
        return self.code == -signal.SIGKILL

    @property
    def answer(self) -> Any:
        assert self.code == 0, f"the actor failed ({self.code}): {self.output}"
        return self.reports[-1][1]

    def all(self, word: str) -> list[list[Any]]:
        return [words[1:] for words in self.reports if words[0] == word]


class RunningActor:
    """An actor in a separate process."""

    def __init__(self, actor: Actor, *, fresh: bool = False, wrapped: Sequence[str] = (), **arguments: Any) -> None:
        """`fresh`: in a new interpreter, to its regular end; `wrapped`: the command to run it with."""
        self._socket, theirs = socket.socketpair()
        self._socket.settimeout(TIMEOUT_SECONDS)
        self._incoming = b""
        self._reports: list[list[Any]] = []
        name = f"{actor.__module__}:{actor.__name__}"
        if fresh or wrapped:
            self._process: _Process = _StartedProcess(wrapped, name, arguments, theirs)
        else:
            self._process = _ForkedProcess(name, arguments, theirs)
        theirs.close()

    def receive(self) -> list[Any] | None:
        """Return the next report; None at the end."""
        while b"\n" not in self._incoming:
            more = self._socket.recv(1 << 16)
            if not more:
                return None
            self._incoming += more
        line, _, self._incoming = self._incoming.partition(b"\n")
        self._reports.append(json.loads(line))
        return self._reports[-1]

    def receive_until(self, word: str) -> list[Any]:
        while (words := self.receive()) is not None:
            if words[0] == word:
                return words[1:]
        output = self.finish().output
        raise AssertionError(f"the actor ended without {word!r}: {output}")

    def resume(self) -> None:
        self._socket.send(b"!")

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        self._process.kill()

    def abandon(self) -> None:
        """Kill it: the test has already failed."""
        self.kill()
        with contextlib.suppress(OSError, ValueError, AssertionError):
            self.finish()

    def finish(self) -> Outcome:
        try:
            while self.receive() is not None:
                pass
            code, output = self._process.end()
        except (TimeoutError, subprocess.TimeoutExpired) as error:
            self.kill()
            _, output = self._process.end()
            raise AssertionError(f"the actor hangs; last reports: {self._reports[-3:]}; output: {output}") from error
        finally:
            self._socket.close()
        return Outcome(code=code, reports=self._reports, output=output)


class _Process(Protocol):
    @property
    def pid(self) -> int: ...
    def kill(self) -> None: ...
    def end(self) -> tuple[int, str]: ...


class _StartedProcess:
    """A new interpreter."""

    def __init__(self, wrapped: Sequence[str], name: str, arguments: dict[str, Any], channel: socket.socket) -> None:
        self._process = subprocess.Popen(
            [*wrapped, *_COMMAND, "act", name, str(channel.fileno()), json.dumps(arguments)],
            env=_environment(),
            pass_fds=[channel.fileno()],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        """Kill the whole group: the wrapper, and the processes it started."""
        os.killpg(self._process.pid, signal.SIGKILL)

    def end(self) -> tuple[int, str]:
        output, _ = self._process.communicate(timeout=TIMEOUT_SECONDS)
        return self._process.returncode, output.decode(errors="replace")


class _ForkedProcess:
    """A fork of a process that has imported all modules of this folder."""

    def __init__(self, name: str, arguments: dict[str, Any], channel: socket.socket) -> None:
        self._output = TemporaryFile()  # noqa: SIM115 -- closed by `end`
        descriptors = [channel.fileno(), self._output.fileno()]
        self._process = _actor_server().fork("torture.harness:run_forked", [name, arguments], *descriptors)

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        self._process.kill()

    def end(self) -> tuple[int, str]:
        with self._output:
            code = self._process.wait(TIMEOUT_SECONDS)
            self._output.seek(0)
            return code, self._output.read().decode(errors="replace")


@cache
def _actor_server() -> ForkServer:
    return ForkServer("torture.harness:import_actors", env=_environment())


def run(actor: Actor, **arguments: Any) -> Outcome:
    return RunningActor(actor, **arguments).finish()


def ask(actor: Actor, **arguments: Any) -> Any:
    """Run an actor without faults and return its result."""
    return run(actor, **arguments).answer


def run_together(actors: Sequence[RunningActor]) -> list[Outcome]:
    """Release all actors at the same moment, then wait for each."""
    try:
        for actor in actors:
            actor.receive_until("waiting")
    except BaseException:
        for actor in actors:
            actor.abandon()
        raise
    for actor in actors:
        actor.resume()
    outcomes = in_threads(RunningActor.finish, actors)
    assert [one.code for one in outcomes] == [0] * len(outcomes), "\n".join(one.output for one in outcomes if one.code)
    return outcomes


def start_all(actors: Sequence[RunningActor]) -> RunningActor:
    """Start actors that wait for each other. One gets ahead and waits again; the others answer DREAM_RUNNING."""
    for actor in actors:
        actor.receive_until("waiting")
    for actor in actors:
        actor.resume()
    replies = [(actor, actor.receive()) for actor in actors]
    ahead = [actor for actor, words in replies if words == ["waiting"]]
    assert len(ahead) == 1, replies
    assert ["DREAM_RUNNING" in str(words) for _, words in replies].count(True) == len(actors) - 1, replies
    return ahead[0]


def in_threads(function: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """Run in threads: the work is done by other processes, which must not wait for each other."""
    with ThreadPoolExecutor(max_workers=max(len(items), 1)) as pool:
        return list(pool.map(function, items))


def two_at_a_time(function: Callable[[T], R], items: Sequence[T]) -> list[R]:
    with ThreadPoolExecutor(max_workers=2) as pool:
        return list(pool.map(function, items))


# -- faults at system calls --------------------------------------------------------------------------------


@dataclass(frozen=True, order=True)
class CallPoint:
    """The moment right before the number-th call of this name."""

    call: str
    number: int

    def __str__(self) -> str:
        return f"{self.call}:{self.number}"


def traced(actor: Actor, inject: str = "", *, trace: Path, **arguments: Any) -> Outcome:
    """Run under strace, optionally with a fault, from the first call of the actor.

    strace counts each kind of call separately, so `when=3` over several kinds is the first third call of any of them: a
    point names one kind.
    """
    running = RunningActor(wait_for_tracer, name=f"{actor.__module__}:{actor.__name__}", arguments=arguments)
    running.receive_until("waiting")
    command = ["strace", "-f", "-o", str(trace), "-e", f"trace={','.join(WRITING)}", "-p", str(running.pid)]
    if inject:
        command += ["-e", f"inject={inject}"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as strace:
        assert strace.stderr
        attached = strace.stderr.readline()
        running.resume()
        outcome = running.finish()
    assert "attached" in attached, attached
    lines = trace.read_text(errors="replace").splitlines()
    return Outcome(code=outcome.code, reports=outcome.reports, output=outcome.output, calls=lines)


def wait_for_tracer(channel: ActorChannel, *, name: str, arguments: dict[str, Any]) -> Any:
    """Let a tracer attach, which most systems forbid by default, and wait for it."""
    ctypes.CDLL(None).prctl(_PR_SET_PTRACER, ctypes.c_ulong(-1 % (1 << 64)), 0, 0, 0)
    channel.wait()
    return _actor(name)(channel, **arguments)


_PR_SET_PTRACER = 0x59616D61


def points_of(outcome: Outcome) -> list[CallPoint]:
    """Every point at which this run can be stopped, in order."""
    counts: Counter[str] = Counter()
    points: list[CallPoint] = []
    for line in outcome.calls:
        name = line.split(None, 1)[1].split("(", 1)[0] if "(" in line else ""
        if name in WRITING:
            counts[name] += 1
            points.append(CallPoint(name, counts[name]))
    return points


def sample_points(points: Sequence[CallPoint], number: int, rng: random.Random) -> list[CallPoint]:
    """Return the first, the last, and random others."""
    if len(points) <= number:
        return list(points)
    inner = range(1, len(points) - 1)
    stride = len(inner) / (number - 2)
    chosen = {inner[int((n + rng.random()) * stride) % len(inner)] for n in range(number - 2)}
    return [points[0], *(points[index] for index in sorted(chosen)), points[-1]]


@cache
def _strace_problem() -> str:
    if not shutil.which("strace"):
        return "strace is not installed"
    try:
        with TemporaryDirectory() as folder:
            traced(idle, trace=Path(folder) / "trace")
    except (AssertionError, OSError) as error:
        return f"tracing is not permitted here: {error}"
    return ""


def idle(channel: ActorChannel) -> None:
    channel.report("done")


def need_strace() -> None:
    """Skip locally if strace is missing; on CI fail, since a skip would test nothing."""
    if reason := _strace_problem():
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)


@cache
def _namespace_problem() -> str:
    result = subprocess.run(
        ["unshare", "-Urm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, text=True, check=False
    )
    return f"mounting a file system is not permitted here: {result.stderr.strip()}" if result.returncode else ""


def need_namespaces() -> None:
    if not shutil.which("unshare"):
        pytest.skip("unshare is not installed")
    if reason := _namespace_problem():
        pytest.skip(reason)


def seeded_random() -> random.Random:
    seed = int(os.environ.get("TORTURE_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"TORTURE_SEED={seed}")
    return random.Random(seed)


def _environment() -> dict[str, str]:
    paths = [str(TESTS), *(place for place in sys.path if place)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"}


# -- the process of the actor ----------------------------------------------------------------------------------------

_COMMAND = (sys.executable, "-m", "torture.harness")


def act(name: str, descriptor: int, arguments: dict[str, Any]) -> None:
    """The actor's process: find the function, run it, report its result."""
    channel = ActorChannel(descriptor)
    channel.report("answer", _actor(name)(channel, **arguments))


def _actor(name: str) -> Actor:
    module, _, function = name.partition(":")
    return getattr(importlib.import_module(module), function)


def import_actors() -> None:
    """Import everything and open nothing."""
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        if not path.stem.startswith("test_") and path.stem != "conftest":
            importlib.import_module(".".join(path.relative_to(TESTS).with_suffix("").parts))


def run_forked(request: list[Any], channel: int, output: int) -> NoReturn:
    code = 1
    try:
        os.dup2(output, 1)
        os.dup2(output, 2)
        name, arguments = request
        act(name, channel, arguments)
        code = 0
    except BaseException:  # any error goes into the report
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def main() -> None:
    match sys.argv[1:]:
        case ["act", name, descriptor, arguments]:
            act(name, int(descriptor), json.loads(arguments))
        case _:
            sys.exit("only the torture tests run this module")


if __name__ == "__main__":
    main()
