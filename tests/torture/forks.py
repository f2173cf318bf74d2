"""Actors that fork with an open memory, like servers that preload before they fork."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from torture.harness import ActorChannel
from torture.writers import opened, session_of

from inmind import Memory
from inmind.session.session import Session

faulthandler.register(signal.SIGUSR1)


def both_write(channel: ActorChannel, *, home: str, number: int, exit: str) -> None:
    """Parent and child continue with the session that was open before the fork."""
    memory = opened(home)
    session = session_of(memory)
    session.add([_message("before", 0)])
    pid = os.fork()
    name = "parent" if pid else "child"
    for n in range(number):
        session.add([_message(name, n)])
        session.observe("tool", {}, f"{name}-{n}", id=f"{name}-o{n}")
        if n % 5 == 0:
            session.write(f"detail/{name}.md", f"{name} {n}\n")
    if pid == 0:
        if exit == "closed":
            memory.close()
        if exit != "killed":
            sys.exit(0)  # runs the destructors of everything inherited
        os.kill(os.getpid(), signal.SIGKILL)
    _reap([pid], killed=exit == "killed")
    session.add([_message("after", 0)])
    memory.close()
    channel.report("done")


def pool_writes(channel: ActorChannel, *, home: str, number: int) -> None:
    """Fork with multiprocessing, which also ends the children."""
    memory = opened(home)
    session = session_of(memory)
    session.add([_message("before", 0)])
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=_write_some, args=(session, f"child{n}", number)) for n in range(3)]
    for child in children:
        child.start()
    _write_some(session, "parent", number)
    for child in children:
        child.join(timeout=30)
    assert [child.exitcode for child in children] == [0, 0, 0]
    session.add([_message("after", 0)])
    memory.close()
    channel.report("done")


def fork_during_writes(channel: ActorChannel, *, home: str, forks: int) -> int:
    """Fork while other threads write."""
    memory = opened(home)
    stop = threading.Event()
    written = [0, 0, 0]

    def write(thread: int) -> None:
        session = session_of(memory)
        while not stop.is_set():
            n = written[thread]
            session.add([_message(f"thread{thread}", n)])
            session.write(f"detail/thread{thread}.md", f"{n}\n")
            written[thread] += 1
            time.sleep(0.005)  # fast growth is tested elsewhere

    threads = [threading.Thread(target=write, args=(n,)) for n in range(2)]
    opening = threading.Thread(target=_open_and_close, args=(home, stop))
    for thread in [*threads, opening]:
        thread.start()
    session = session_of(memory)
    pids: list[int] = []
    for n in range(forks):
        time.sleep(0.002)
        pid = os.fork()
        if pid == 0:
            _write_some(session, f"child{n}", 2)
            os._exit(0)
        pids.append(pid)
        channel.report("forked", n)
        if len(pids) == 8:
            _reap([pids.pop(0)])
    _reap(pids)
    stop.set()
    for thread in [*threads, opening]:
        thread.join(timeout=30)
        assert not thread.is_alive(), "a thread of the parent hangs"
    memory.close()
    return sum(written)


def exit_parent(channel: ActorChannel, *, home: str) -> None:
    """Like a daemon: open, fork, and end the parent; only the child holds locks then."""
    memory = opened(home)
    session = session_of(memory)
    session.add([_message("parent", 0)])
    if os.fork():
        os._exit(0)
    session.add([_message("child", 0)])
    channel.report("wrote", "child-0")
    channel.wait()
    for n in range(1, 4):
        session.add([_message("child", n)])
        channel.report("wrote", f"child-{n}")
    channel.wait()
    os._exit(0)


def report_locks(channel: ActorChannel, *, home: str) -> dict[str, bool]:
    """Return whether the system knows of a lock of the child on the database."""
    memory = opened(home)
    session = session_of(memory)
    session.overview  # noqa: B018 -- so that the connection has been used
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        session.state  # noqa: B018
        os.write(writer, b"1" if _holds_a_lock(home) else b"0")
        os._exit(0)
    child = os.read(reader, 1) == b"1"
    _reap([pid])
    session.state  # noqa: B018
    parent = _holds_a_lock(home)
    memory.close()
    channel.report("looked")
    return {"parent": parent, "child": child}


def _holds_a_lock(home: str) -> bool:
    inodes = {os.stat(file).st_ino for file in Path(home).glob("inmind.db*")}
    for line in Path("/proc/locks").read_text().splitlines():
        words = line.replace("->", "").split()
        if int(words[4]) == os.getpid() and int(words[5].split(":")[2]) in inodes:
            return True
    return False


def _open_and_close(home: str, stop: threading.Event) -> None:
    while not stop.is_set():
        Memory.open(home).close()


def _write_some(session: Session, name: str, number: int) -> None:
    for n in range(number):
        session.add([_message(name, n)])
        session.write(f"detail/{name}.md", f"{n}\n")


def _message(name: str, n: int) -> dict[str, Any]:
    return {"role": "user", "content": f"{name}-{n}", "id": f"{name}-{n}"}


def _reap(pids: list[int], *, killed: bool = False) -> None:
    """Wait for children with a timeout; a hanging one is killed and reported."""
    waiting = dict.fromkeys(pids)
    deadline = time.monotonic() + 40
    while waiting and time.monotonic() < deadline:
        for pid in list(waiting):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                del waiting[pid]
                code = os.waitstatus_to_exitcode(status)
                assert code == (-signal.SIGKILL if killed else 0), f"a child ended with {code}"
        time.sleep(0.002)
    for pid in waiting:
        os.kill(pid, signal.SIGUSR1)  # prints its stack
        time.sleep(0.1)
        os.kill(pid, signal.SIGKILL)
    assert not waiting, f"{len(waiting)} children hang"
