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
SECONDS = 60.0
"""After this long an actor hangs; none needs a tenth of it."""

# Each of these can leave the disk in a state that no other leaves. Writing to a mapping is no call and cannot be
# stopped at; the loop that kills at random moments is for that.
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

    def tell(self, *words: object) -> None:
        self._socket.sendall(json.dumps(words).encode() + b"\n")

    def wait(self) -> None:
        """Wait for the test: a barrier for several actors."""
        self.tell("waiting")
        if not self._socket.recv(1):
            sys.exit("the test has gone away")


@dataclass(frozen=True)
class Outcome:
    """How an actor ended, and everything that it reported."""

    code: int
    told: list[list[Any]]
    output: str
    calls: list[str] = field(default_factory=list[str])
    """The lines of the trace, when there was one."""

    @property
    def killed(self) -> bool:
        return self.code == -signal.SIGKILL

    @property
    def answer(self) -> Any:
        assert self.code == 0, f"the actor failed ({self.code}): {self.output}"
        return self.told[-1][1]

    def all(self, word: str) -> list[list[Any]]:
        return [words[1:] for words in self.told if words[0] == word]


class RunningActor:
    """An actor in a process that has not opened anything yet."""

    def __init__(self, actor: Actor, *, fresh: bool = False, wrapped: Sequence[str] = (), **arguments: Any) -> None:
        """`fresh`: in a new interpreter, to its regular end; `wrapped`: the command to run it with."""
        self._socket, theirs = socket.socketpair()
        self._socket.settimeout(SECONDS)
        self._incoming = b""
        self._told: list[list[Any]] = []
        name = f"{actor.__module__}:{actor.__name__}"
        if fresh or wrapped:
            self._process: _Process = _StartedProcess(wrapped, name, arguments, theirs)
        else:
            self._process = _ForkedProcess(name, arguments, theirs)
        theirs.close()

    def receive(self) -> list[Any] | None:
        """The next report; None if there is none."""
        while b"\n" not in self._incoming:
            more = self._socket.recv(1 << 16)
            if not more:
                return None
            self._incoming += more
        line, _, self._incoming = self._incoming.partition(b"\n")
        self._told.append(json.loads(line))
        return self._told[-1]

    def receive_until(self, word: str) -> list[Any]:
        while (words := self.receive()) is not None:
            if words[0] == word:
                return words[1:]
        said = self.finish().output
        raise AssertionError(f"the actor ended without {word!r}: {said}")

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
            code, said = self._process.end()
        except (TimeoutError, subprocess.TimeoutExpired) as late:
            self.kill()
            _, said = self._process.end()
            raise AssertionError(f"the actor hangs; it told {self._told[-3:]} and said {said}") from late
        finally:
            self._socket.close()
        return Outcome(code=code, told=self._told, output=said)


class _Process(Protocol):
    @property
    def pid(self) -> int: ...
    def kill(self) -> None: ...
    def end(self) -> tuple[int, str]: ...


class _StartedProcess:
    """A new interpreter."""

    def __init__(self, wrapped: Sequence[str], name: str, arguments: dict[str, Any], voice: socket.socket) -> None:
        self._process = subprocess.Popen(
            [*wrapped, *_OURSELVES, "act", name, str(voice.fileno()), json.dumps(arguments)],
            env=_environment(),
            pass_fds=[voice.fileno()],
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
        said, _ = self._process.communicate(timeout=SECONDS)
        return self._process.returncode, said.decode(errors="replace")


class _ForkedProcess:
    """A fork of a process that has imported all modules of this folder."""

    def __init__(self, name: str, arguments: dict[str, Any], voice: socket.socket) -> None:
        self._said = TemporaryFile()  # noqa: SIM115 -- closed by `end`
        descriptors = [voice.fileno(), self._said.fileno()]
        self._process = _stage().fork("torture.harness:play", [name, arguments], *descriptors)

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        self._process.kill()

    def end(self) -> tuple[int, str]:
        with self._said:
            code = self._process.wait(SECONDS)
            self._said.seek(0)
            return code, self._said.read().decode(errors="replace")


@cache
def _stage() -> ForkServer:
    return ForkServer("torture.harness:set_stage", env=_environment())


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
    ended = in_threads(RunningActor.finish, actors)
    assert [one.code for one in ended] == [0] * len(ended), "\n".join(one.output for one in ended if one.code)
    return ended


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
    """Right before the number-th call of this name."""

    call: str
    number: int

    def __str__(self) -> str:
        return f"{self.call}:{self.number}"


def traced(actor: Actor, inject: str = "", *, trace: Path, **arguments: Any) -> Outcome:
    """Run under strace, optionally with a fault, from the actor's first own call on.

    strace counts each kind of call separately, so `when=3` over several kinds is the first third call of any of them: a
    point names one kind.
    """
    running = RunningActor(held, name=f"{actor.__module__}:{actor.__name__}", arguments=arguments)
    running.receive_until("waiting")
    command = ["strace", "-f", "-o", str(trace), "-e", f"trace={','.join(WRITING)}", "-p", str(running.pid)]
    if inject:
        command += ["-e", f"inject={inject}"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as strace:
        assert strace.stderr
        said = strace.stderr.readline()
        running.resume()
        ended = running.finish()
    assert "attached" in said, said
    lines = trace.read_text(errors="replace").splitlines()
    return Outcome(code=ended.code, told=ended.told, output=ended.output, calls=lines)


def held(voice: ActorChannel, *, name: str, arguments: dict[str, Any]) -> Any:
    """An actor that waits for a tracer to attach, which most systems allow only with its consent."""
    ctypes.CDLL(None).prctl(_PR_SET_PTRACER, ctypes.c_ulong(-1 % (1 << 64)), 0, 0, 0)
    voice.wait()
    return _actor(name)(voice, **arguments)


_PR_SET_PTRACER = 0x59616D61


def points_of(outcome: Outcome) -> list[CallPoint]:
    """Every point at which this run can be stopped, in order."""
    passed: Counter[str] = Counter()
    points: list[CallPoint] = []
    for line in outcome.calls:
        name = line.split(None, 1)[1].split("(", 1)[0] if "(" in line else ""
        if name in WRITING:
            passed[name] += 1
            points.append(CallPoint(name, passed[name]))
    return points


def sample_points(points: Sequence[CallPoint], number: int, dice: random.Random) -> list[CallPoint]:
    """The first, the last, and others from the whole run."""
    if len(points) <= number:
        return list(points)
    inner = range(1, len(points) - 1)
    stride = len(inner) / (number - 2)
    chosen = {inner[int((n + dice.random()) * stride) % len(inner)] for n in range(number - 2)}
    return [points[0], *(points[index] for index in sorted(chosen)), points[-1]]


@cache
def _why_no_strace() -> str:
    if not shutil.which("strace"):
        return "strace is not installed"
    try:
        with TemporaryDirectory() as folder:
            traced(idle, trace=Path(folder) / "trace")
    except (AssertionError, OSError) as error:
        return f"tracing is not permitted here: {error}"
    return ""


def idle(voice: ActorChannel) -> None:
    voice.tell("done")


def need_strace() -> None:
    """Skip locally if strace is missing; on CI fail, since a skip would test nothing."""
    if why := _why_no_strace():
        if os.environ.get("CI"):
            pytest.fail(why)
        pytest.skip(why)


@cache
def _why_no_namespaces() -> str:
    tried = subprocess.run(
        ["unshare", "-Urm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, text=True, check=False
    )
    return f"a file system of one's own is not permitted here: {tried.stderr.strip()}" if tried.returncode else ""


def need_namespaces() -> None:
    if not shutil.which("unshare"):
        pytest.skip("unshare is not installed")
    if why := _why_no_namespaces():
        pytest.skip(why)


def seeded_random() -> random.Random:
    seed = int(os.environ.get("TORTURE_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"TORTURE_SEED={seed}")
    return random.Random(seed)


def _environment() -> dict[str, str]:
    places = [str(TESTS), *(place for place in sys.path if place)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(places), "PYTHONDONTWRITEBYTECODE": "1"}


# -- the other side ----------------------------------------------------------------------------------------

_OURSELVES = (sys.executable, "-m", "torture.harness")


def act(name: str, descriptor: int, arguments: dict[str, Any]) -> None:
    """The actor's process: find the function, run it, report its result."""
    voice = ActorChannel(descriptor)
    voice.tell("answer", _actor(name)(voice, **arguments))


def _actor(name: str) -> Actor:
    module, _, function = name.partition(":")
    return getattr(importlib.import_module(module), function)


def set_stage() -> None:
    """Import everything and open nothing."""
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        if not path.stem.startswith("test_") and path.stem != "conftest":
            importlib.import_module(".".join(path.relative_to(TESTS).with_suffix("").parts))


def play(request: list[Any], voice: int, said: int) -> NoReturn:
    code = 1
    try:
        os.dup2(said, 1)
        os.dup2(said, 2)
        name, arguments = request
        act(name, voice, arguments)
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
            sys.exit("this is for the tests beside it")


if __name__ == "__main__":
    main()
