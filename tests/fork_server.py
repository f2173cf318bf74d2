"""A fork server: a process with many imports that forks others within milliseconds.

A forked process is like any other, with its own arguments, folder, environment, streams and exit, including the
interpreter's regular shutdown. Only its imports were done before. So tests of interpreter start, PYTHON… variables or
import order need a new interpreter.
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
"""Timeout of a forked process."""


class ForkServer:
    """A process prepared by `module:function` that lives as long as this one."""

    def __init__(self, ready: str, *, env: Mapping[str, str] | None = None) -> None:
        self._folder = TemporaryDirectory(prefix="warm-")
        self.address = f"{self._folder.name}/socket"
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(self.address)
            listening.listen(64)
            number = listening.fileno()
            command = [sys.executable, __file__, "serve", str(number), ready]
            self._process = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, pass_fds=[number])
        atexit.register(self._close)

    def fork(self, function: str, request: Any, *descriptors: int) -> ForkedProcess:
        """Fork a process that calls `module:function` with the request and these descriptors."""
        return ForkedProcess(self.address, function, request, descriptors)

    def start(
        self,
        code: str,
        *arguments: str,
        streams: Sequence[int],
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> ForkedProcess:
        """Start code like `python -c`, on these three streams."""
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
        """Run code like `python -c` to its end. `together`: stderr goes to stdout."""
        with contextlib.ExitStack() as stack:
            in_reader, in_writer = _open_pipe(stack)
            out_reader, out = _open_pipe(stack)
            err_reader, err = _open_pipe(stack)
            streams = [in_reader.fileno(), out.fileno(), (out if together else err).fileno()]
            process = self.start(code, *arguments, streams=streams, cwd=cwd, env=env)
            for end in (in_reader, out, err):
                end.close()
            readers = [_StreamReader(out_reader), _StreamReader(err_reader)]
            with contextlib.suppress(BrokenPipeError):
                in_writer.write(stdin)
            in_writer.close()
            output, errors = (each.all() for each in readers)
            return subprocess.CompletedProcess([code, *arguments], process.wait(), output, errors)

    def command(self, name: str, code: str) -> str:
        """Create a script of this name that runs the code like `run`."""
        command = shlex.join([sys.executable, "-I", "-S", __file__, "ask", self.address, code, name])
        return f'#!/bin/sh\nexec {command} "$@"\n'

    def _close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        self._folder.cleanup()


class ForkedProcess:
    """A forked process, which leads a session, and the connection that reports its exit."""

    def __init__(self, address: str, function: str, request: Any, descriptors: Sequence[int]) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(SECONDS)
        self._socket.connect(address)
        request_bytes = json.dumps([function, request]).encode()
        socket.send_fds(self._socket, [len(request_bytes).to_bytes(8, "big")], list(descriptors))
        self._socket.sendall(request_bytes)
        self._reports = self._socket.makefile("rb")
        self.pid = int(self._reports.readline())
        self._code: int | None = None

    def terminate(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        """Kill it with all processes that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def wait(self, seconds: float = SECONDS) -> int:
        """Its exit code, as in subprocess."""
        if self._code is None:
            self._socket.settimeout(seconds)
            self._code = int(self._reports.readline())
            self._reports.close()
            self._socket.close()
        return self._code


def text(output: bytes) -> str:
    """Decode output like a program in text mode."""
    return io.TextIOWrapper(io.BytesIO(output)).read()


class _StreamReader:
    """Reads a stream to its end in a thread."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._output = b""
        self._thread = threading.Thread(target=self._read, args=(stream,), daemon=True)
        self._thread.start()

    def all(self) -> bytes:
        self._thread.join(SECONDS)
        assert not self._thread.is_alive(), f"the program hangs; output: {self._output!r}"
        return self._output

    def _read(self, stream: IO[bytes]) -> None:
        while more := os.read(stream.fileno(), 1 << 16):
            self._output += more


def _open_pipe(stack: contextlib.ExitStack) -> tuple[IO[bytes], IO[bytes]]:
    reads, writes = os.pipe()
    return (
        stack.enter_context(os.fdopen(reads, "rb", buffering=0)),
        stack.enter_context(os.fdopen(writes, "wb", buffering=0)),
    )


# -- the server process ----------------------------------------------------------------------------------------


def serve(listening: socket.socket, ready: str) -> None:
    """Prepare, and fork until the other end of the input is closed."""
    atexit.register(_exit_at_once)  # registered first, called last
    _function(ready)()
    gc.collect()
    gc.freeze()
    while True:
        ready_sources, _, _ = select.select([listening, sys.stdin], [], [])
        if listening not in ready_sources:
            return
        connection, _ = listening.accept()
        if os.fork() == 0:
            listening.close()
            _fork_and_wait(connection)
            return
        connection.close()
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass


def _fork_and_wait(connection: socket.socket) -> None:
    """Fork the requested process, wait for it, report its exit. Returns in that process."""
    size, descriptors, _, _ = socket.recv_fds(connection, 8, 16)
    size_wanted, data = int.from_bytes(size, "big"), b""
    while len(data) < size_wanted:
        data += connection.recv(size_wanted - len(data))
    pid = os.fork()
    if pid == 0:
        os.setsid()  # so that its children can be killed with it
        connection.sendall(b"%d\n" % os.getpid())
        connection.close()
        name, request = json.loads(data)
        _function(name)(request, *descriptors)
        return
    for each in descriptors:
        os.close(each)
    _, status = os.waitpid(pid, 0)
    with contextlib.suppress(OSError):  # the other end may be closed
        connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def _function(name: str) -> Callable[..., Any]:
    module, _, function = name.partition(":")
    return getattr(importlib.import_module(module), function)


def program(request: list[Any], *streams: int) -> NoReturn:
    """Run like `python -c`, on its own terminal if the input is one."""
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
        exec(compile(code, "<string>", "exec"), main.__dict__)  # noqa: S102 -- code of a test
    except SystemExit as exit:
        _exit_with(exit.code)
    except Exception as error:
        traceback = error.__traceback__
        sys.excepthook(
            type(error), error.with_traceback(traceback and traceback.tb_next), traceback
        )  # without this frame
        _exit_with(1)
    _exit_with(None)


def _opened(number: int, mode: str, before: TextIO, *, buffering: int = -1) -> TextIO:
    """Open a stream like a starting interpreter: a pipe, a file or a terminal."""
    opened = open(number, mode, buffering, encoding=before.encoding, errors=before.errors, closefd=False)  # noqa: SIM115
    return cast(TextIO, opened)


def _exit_with(code: object) -> NoReturn:
    """Shut the interpreter down with threads and exit functions, without module teardown."""
    if not isinstance(code, int | None):
        print(code, file=sys.stderr)
        code = 1
    _exit_codes.append(code or 0)
    sys.exit(code)


def _exit_at_once() -> None:
    if _exit_codes:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except OSError:
            os._exit(120)
        os._exit(_exit_codes[0])


_exit_codes: list[int] = []


def ask(address: str, code: str, arguments: Sequence[str]) -> NoReturn:
    """Run the requested command with the streams of this process, and exit with its code."""
    request = [code, arguments, str(Path.cwd()), dict(os.environ)]
    status = ForkedProcess(address, "fork_server:program", request, [0, 1, 2]).wait()
    if status < 0:
        os.kill(os.getpid(), -status)
    sys.exit(status)


def main() -> None:
    match sys.argv[1:]:
        case ["serve", number, ready]:
            with socket.socket(fileno=int(number)) as listening:
                importlib.import_module("fork_server").serve(listening, ready)  # programs get a new `__main__`
        case ["ask", address, code, *arguments]:
            ask(address, code, arguments)
        case _:
            sys.exit("only the tests run this module")


if __name__ == "__main__":
    main()
