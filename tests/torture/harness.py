"""How a fault is made, and how its consequences are looked at: always from another process.

An actor is a plain function in one of this folder's modules. It runs in a process of its own and tells what it has
done over a socket, so that what it told before it died is known exactly; `send` on a socket is also none of the
system calls that faults are injected into. Whatever the dice decide comes from one seed, which is printed: set
TORTURE_SEED to see the same again.
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
from fork_server import Warm

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


class Voice:
    """An actor's end of the wire."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._incoming = b""

    def tell(self, *words: object) -> None:
        self._socket.sendall(json.dumps(words).encode() + b"\n")

    def wait(self) -> None:
        """Until the test says go on: a barrier for several actors."""
        self.tell("waiting")
        if not self._socket.recv(1):
            sys.exit("the test has gone away")


@dataclass(frozen=True)
class Outcome:
    """How an actor ended, and everything it told before."""

    code: int
    told: list[list[Any]]
    said: str
    calls: list[str] = field(default_factory=list[str])
    """The lines of the trace, when there was one."""

    @property
    def killed(self) -> bool:
        return self.code == -signal.SIGKILL

    @property
    def answer(self) -> Any:
        assert self.code == 0, f"the actor failed ({self.code}): {self.said}"
        return self.told[-1][1]

    def all(self, word: str) -> list[list[Any]]:
        return [words[1:] for words in self.told if words[0] == word]


class Running:
    """An actor at work, in a process that has opened nothing yet."""

    def __init__(self, actor: Actor, *, fresh: bool = False, wrapped: Sequence[str] = (), **arguments: Any) -> None:
        """`fresh`: with an interpreter of its own, to its regular end; `wrapped`: the command to run that under."""
        self._socket, theirs = socket.socketpair()
        self._socket.settimeout(SECONDS)
        self._incoming = b""
        self._told: list[list[Any]] = []
        name = f"{actor.__module__}:{actor.__name__}"
        if fresh or wrapped:
            self._process: _Process = _Started(wrapped, name, arguments, theirs)
        else:
            self._process = _Forked(name, arguments, theirs)
        theirs.close()

    def hear(self) -> list[Any] | None:
        """The next thing it tells; None when it has nothing more to tell."""
        while b"\n" not in self._incoming:
            more = self._socket.recv(1 << 16)
            if not more:
                return None
            self._incoming += more
        line, _, self._incoming = self._incoming.partition(b"\n")
        self._told.append(json.loads(line))
        return self._told[-1]

    def hear_until(self, word: str) -> list[Any]:
        while (words := self.hear()) is not None:
            if words[0] == word:
                return words[1:]
        said = self.finish().said
        raise AssertionError(f"the actor ended without {word!r}: {said}")

    def go_on(self) -> None:
        self._socket.send(b"!")

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        self._process.kill()

    def abandon(self) -> None:
        """The test has failed already."""
        self.kill()
        with contextlib.suppress(OSError, ValueError, AssertionError):
            self.finish()

    def finish(self) -> Outcome:
        try:
            while self.hear() is not None:
                pass
            code, said = self._process.end()
        except (TimeoutError, subprocess.TimeoutExpired) as late:
            self.kill()
            _, said = self._process.end()
            raise AssertionError(f"the actor hangs; it told {self._told[-3:]} and said {said}") from late
        finally:
            self._socket.close()
        return Outcome(code=code, told=self._told, said=said)


class _Process(Protocol):
    @property
    def pid(self) -> int: ...
    def kill(self) -> None: ...
    def end(self) -> tuple[int, str]: ...


class _Started:
    """With an interpreter of its own."""

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
        """The whole group: what it was wrapped in, and what it has started itself."""
        os.killpg(self._process.pid, signal.SIGKILL)

    def end(self) -> tuple[int, str]:
        said, _ = self._process.communicate(timeout=SECONDS)
        return self._process.returncode, said.decode(errors="replace")


class _Forked:
    """Forked off a process that has imported all of this folder."""

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
def _stage() -> Warm:
    return Warm("torture.harness:set_stage", env=_environment())


def run(actor: Actor, **arguments: Any) -> Outcome:
    return Running(actor, **arguments).finish()


def ask(actor: Actor, **arguments: Any) -> Any:
    """What an actor answers, when nothing is meant to go wrong."""
    return run(actor, **arguments).answer


def together(actors: Sequence[Running]) -> list[Outcome]:
    """Let all of them go at the same moment, then wait for each."""
    try:
        for actor in actors:
            actor.hear_until("waiting")
    except BaseException:
        for actor in actors:
            actor.abandon()
        raise
    for actor in actors:
        actor.go_on()
    ended = side_by_side(Running.finish, actors)
    assert [one.code for one in ended] == [0] * len(ended), "\n".join(one.said for one in ended if one.code)
    return ended


def side_by_side(function: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """Threads, since the work is done by other processes: to wait for one must not hold up another."""
    with ThreadPoolExecutor(max_workers=max(len(items), 1)) as pool:
        return list(pool.map(function, items))


def two_at_a_time(function: Callable[[T], R], items: Sequence[T]) -> list[R]:
    with ThreadPoolExecutor(max_workers=2) as pool:
        return list(pool.map(function, items))


# -- faults at system calls --------------------------------------------------------------------------------


@dataclass(frozen=True, order=True)
class Point:
    """Right before the number-th call of this name."""

    call: str
    number: int

    def __str__(self) -> str:
        return f"{self.call}:{self.number}"


def traced(actor: Actor, inject: str = "", *, trace: Path, **arguments: Any) -> Outcome:
    """Run under strace, with a fault if one is given, from the actor's first own call on.

    strace counts each kind of call apart, so `when=3` over several kinds is the first third call of any of them:
    a point names one kind.
    """
    running = Running(held, name=f"{actor.__module__}:{actor.__name__}", arguments=arguments)
    running.hear_until("waiting")
    command = ["strace", "-f", "-o", str(trace), "-e", f"trace={','.join(WRITING)}", "-p", str(running.pid)]
    if inject:
        command += ["-e", f"inject={inject}"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as strace:
        assert strace.stderr
        said = strace.stderr.readline()
        running.go_on()
        ended = running.finish()
    assert "attached" in said, said
    lines = trace.read_text(errors="replace").splitlines()
    return Outcome(code=ended.code, told=ended.told, said=ended.said, calls=lines)


def held(voice: Voice, *, name: str, arguments: dict[str, Any]) -> Any:
    """An actor that waits until a tracer has been attached to it, which most systems allow only if it agrees."""
    ctypes.CDLL(None).prctl(_PR_SET_PTRACER, ctypes.c_ulong(-1 % (1 << 64)), 0, 0, 0)
    voice.wait()
    return _actor(name)(voice, **arguments)


_PR_SET_PTRACER = 0x59616D61


def points_of(outcome: Outcome) -> list[Point]:
    """Every place at which this run could have been stopped, in the order in which it came by them."""
    passed: Counter[str] = Counter()
    points: list[Point] = []
    for line in outcome.calls:
        name = line.split(None, 1)[1].split("(", 1)[0] if "(" in line else ""
        if name in WRITING:
            passed[name] += 1
            points.append(Point(name, passed[name]))
    return points


def some(points: Sequence[Point], number: int, dice: random.Random) -> list[Point]:
    """The first and the last, and others from all over the run."""
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


def idle(voice: Voice) -> None:
    voice.tell("done")


def need_strace() -> None:
    """At a desk it may be missing; a build that skips all this would be green and would have tested nothing."""
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


def dice() -> random.Random:
    seed = int(os.environ.get("TORTURE_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"TORTURE_SEED={seed}")
    return random.Random(seed)


def _environment() -> dict[str, str]:
    places = [str(TESTS), *(place for place in sys.path if place)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(places), "PYTHONDONTWRITEBYTECODE": "1"}


# -- the other side ----------------------------------------------------------------------------------------

_OURSELVES = (sys.executable, "-m", "torture.harness")


def act(name: str, descriptor: int, arguments: dict[str, Any]) -> None:
    """The actor's process: find the function, run it, tell its answer."""
    voice = Voice(descriptor)
    voice.tell("answer", _actor(name)(voice, **arguments))


def _actor(name: str) -> Actor:
    module, _, function = name.partition(":")
    return getattr(importlib.import_module(module), function)


def set_stage() -> None:
    """Everything has been imported, and nothing opened."""
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
    except BaseException:  # whatever it is belongs into the report
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
