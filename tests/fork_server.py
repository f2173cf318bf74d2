"""A Python that is warm: a process that has imported a lot and opened nothing, and forks others within milliseconds.

What is run here is a process as any other, with arguments, a folder, an environment, streams and an end of its own, the
interpreter's regular end included. Only its imports were made before. So whatever is about how an interpreter starts,
what it is told in PYTHON… or what is imported when, is for an interpreter of its own.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import gc
import importlib
import io
import json
import os
import select
import shlex
import signal
import socket
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import IO, Any, NoReturn, TextIO, cast

SECONDS = 120.0
"""After this long something hangs."""


class ForkServer:
    """A process that `module:function` has made ready, and that lives as long as this one."""

    def __init__(self, ready: str, *, env: Mapping[str, str] | None = None) -> None:
        self._folder = TemporaryDirectory(prefix="warm-")
        self.address = f"{self._folder.name}/socket"
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(self.address)
            listening.listen(64)
            number = listening.fileno()
            serving = [sys.executable, __file__, "serve", str(number), ready]
            self._process = subprocess.Popen(serving, env=env, stdin=subprocess.PIPE, pass_fds=[number])
        atexit.register(self._leave)

    def fork(self, function: str, request: Any, *descriptors: int) -> ForkedProcess:
        """Let a process of its own call `module:function` with the request and with these descriptors."""
        return ForkedProcess(self.address, function, request, descriptors)

    def start(
        self,
        code: str,
        *arguments: str,
        streams: Sequence[int],
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> ForkedProcess:
        """Begin what `python -c` does with the code, on these three streams."""
        environment = dict(os.environ if env is None else env)
        return self.fork(
            "fork_server:program", [code, ["-c", *arguments], str(cwd or Path.cwd()), environment], *streams
        )

    def run(
        self,
        code: str,
        *arguments: str,
        stdin: bytes = b"",
        together: bool = False,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        """What `python -c` does with the code, to its end. `together`: errors go where the output goes."""
        with contextlib.ExitStack() as open_here:
            given, ours = _a_pipe(open_here)
            said, out = _a_pipe(open_here)
            complained, err = _a_pipe(open_here)
            streams = [given.fileno(), out.fileno(), (out if together else err).fileno()]
            process = self.start(code, *arguments, streams=streams, cwd=cwd, env=env)
            for theirs in (given, out, err):
                theirs.close()
            heard = [_StreamReader(said), _StreamReader(complained)]
            with contextlib.suppress(BrokenPipeError):
                ours.write(stdin)
            ours.close()
            output, errors = (each.all() for each in heard)
            return subprocess.CompletedProcess([code, *arguments], process.wait(), output, errors)

    def command(self, name: str, code: str) -> str:
        """A script that does with the code what `run` does, as a command of this name."""
        asking = shlex.join([sys.executable, "-I", "-S", __file__, "ask", self.address, code, name])
        return f'#!/bin/sh\nexec {asking} "$@"\n'

    def _leave(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        self._folder.cleanup()


class ForkedProcess:
    """A process that was forked, by the connection over which it and its keeper tell of it. It leads a session."""

    def __init__(self, address: str, function: str, request: Any, descriptors: Sequence[int]) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(SECONDS)
        self._socket.connect(address)
        said = json.dumps([function, request]).encode()
        socket.send_fds(self._socket, [len(said).to_bytes(8, "big")], list(descriptors))
        self._socket.sendall(said)
        self._told = self._socket.makefile("rb")
        self.pid = int(self._told.readline())
        self._code: int | None = None

    def terminate(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        """With all that it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def wait(self, seconds: float = SECONDS) -> int:
        """Its exit code, as subprocess has it."""
        if self._code is None:
            self._socket.settimeout(seconds)
            self._code = int(self._told.readline())
            self._told.close()
            self._socket.close()
        return self._code


def text(said: bytes) -> str:
    """As a program reads it that asks for text."""
    return io.TextIOWrapper(io.BytesIO(said)).read()


class _StreamReader:
    """A stream, read to its end while others are."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._said = b""
        self._thread = threading.Thread(target=self._read, args=(stream,), daemon=True)
        self._thread.start()

    def all(self) -> bytes:
        self._thread.join(SECONDS)
        assert not self._thread.is_alive(), f"the program hangs; it said {self._said!r}"
        return self._said

    def _read(self, stream: IO[bytes]) -> None:
        while more := os.read(stream.fileno(), 1 << 16):
            self._said += more


def _a_pipe(open_here: contextlib.ExitStack) -> tuple[IO[bytes], IO[bytes]]:
    reads, writes = os.pipe()
    return (
        open_here.enter_context(os.fdopen(reads, "rb", buffering=0)),
        open_here.enter_context(os.fdopen(writes, "wb", buffering=0)),
    )


# -- the other side ----------------------------------------------------------------------------------------


def serve(listening: socket.socket, ready: str) -> None:
    """Get ready, and fork until nobody holds the other end of the input."""
    atexit.register(_leave_at_once)  # the first that is registered is the last that is called
    _function(ready)()
    gc.collect()
    gc.freeze()
    while True:
        asked, _, _ = select.select([listening, sys.stdin], [], [])
        if listening not in asked:
            return
        asking, _ = listening.accept()
        if os.fork() == 0:
            listening.close()
            _fork_and_wait(asking)
            return
        asking.close()
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass


def _fork_and_wait(asking: socket.socket) -> None:
    """Fork the process that was asked for, wait for it, tell how it ended. Returns in that process."""
    size, descriptors, _, _ = socket.recv_fds(asking, 8, 16)
    wanted, said = int.from_bytes(size, "big"), b""
    while len(said) < wanted:
        said += asking.recv(wanted - len(said))
    pid = os.fork()
    if pid == 0:
        os.setsid()  # whatever it starts in its turn can be ended with it
        asking.sendall(b"%d\n" % os.getpid())
        asking.close()
        name, request = json.loads(said)
        _function(name)(request, *descriptors)
        return
    for each in descriptors:
        os.close(each)
    _, status = os.waitpid(pid, 0)
    with contextlib.suppress(OSError):  # nobody may want to know
        asking.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def _function(name: str) -> Callable[..., Any]:
    module, _, function = name.partition(":")
    return getattr(importlib.import_module(module), function)


def program(request: list[Any], *streams: int) -> NoReturn:
    """Be what `python -c` would have been, on a terminal of its own where the input is one."""
    code, arguments, folder, environment = request
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
    for descriptor in streams:
        os.close(descriptor)
    if os.isatty(0):
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    sys.stdin = sys.__stdin__ = _opened(0, "r", sys.stdin)
    sys.stdout = sys.__stdout__ = _opened(1, "w", sys.stdout)
    sys.stderr = sys.__stderr__ = _opened(2, "w", sys.stderr, buffering=1)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    sys.argv = arguments
    sys.path[0] = ""
    main = sys.modules["__main__"] = ModuleType("__main__")
    try:
        exec(compile(code, "<string>", "exec"), main.__dict__)  # noqa: S102 -- a test's own code
    except SystemExit as leaving:
        _end_with(leaving.code)
    except Exception as error:
        way = error.__traceback__
        sys.excepthook(type(error), error.with_traceback(way and way.tb_next), way)  # it begins with the code
        _end_with(1)
    _end_with(None)


def _opened(number: int, mode: str, before: TextIO, *, buffering: int = -1) -> TextIO:
    """A stream as an interpreter opens it that starts with this descriptor: as a pipe, a file or a terminal."""
    opened = open(number, mode, buffering, encoding=before.encoding, errors=before.errors, closefd=False)  # noqa: SIM115
    return cast(TextIO, opened)


def _end_with(code: object) -> NoReturn:
    """The interpreter's own end, threads and exit functions included, up to where it would take all modules apart."""
    if not isinstance(code, int | None):
        print(code, file=sys.stderr)
        code = 1
    _last.append(code or 0)
    sys.exit(code)


def _leave_at_once() -> None:
    if _last:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except OSError:
            os._exit(120)
        os._exit(_last[0])


_last: list[int] = []


def ask(address: str, code: str, arguments: Sequence[str]) -> NoReturn:
    """Be the command that is asked for, for whoever has started this process: its streams, its end."""
    request = [code, arguments, str(Path.cwd()), dict(os.environ)]
    ended = ForkedProcess(address, "fork_server:program", request, [0, 1, 2]).wait()
    if ended < 0:
        os.kill(os.getpid(), -ended)
    sys.exit(ended)


def main() -> None:
    match sys.argv[1:]:
        case ["serve", number, ready]:
            with socket.socket(fileno=int(number)) as listening:
                importlib.import_module("fork_server").serve(listening, ready)  # `__main__` is for the programs to be
        case ["ask", address, code, *arguments]:
            ask(address, code, arguments)
        case _:
            sys.exit("this is for the tests beside it")


if __name__ == "__main__":
    main()
