"""A cancelled call runs completely or does not start, and can be repeated.

Every changing call is made four times, each in a separate home: undisturbed, cancelled at each point where it waits,
cancelled before a thread has started it, and cancelled while it runs. The journals are the same afterwards.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import apsw
import pytest
from builders import assistant, turns, user
from event_loop import ASYNC_CLASSES, DEADLINE, run, until
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples

from inmind import AsyncMemory
from inmind.core.events.dreams import DreamCommitted, DreamStarted
from inmind.errors import Closed, DreamOvertaken, NotFound
from inmind.memory.aio.wrapper import MAX_THREADS
from inmind.store.sqlite.store import SqliteStore
from inmind.testing import ManualClock
from inmind.types import Event

pytestmark = pytest.mark.both_stores

A = TypeVar("A")
Step = Callable[[], Coroutine[Any, Any, object]]


@dataclass
class Gate:
    """A clock that can block. It is read inside a commit, so a blocked call is inside one."""

    clock: ManualClock = field(default_factory=ManualClock)
    reached: threading.Event = field(default_factory=threading.Event)
    opened: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.opened.set()

    def __call__(self) -> datetime:
        if not self.opened.is_set():
            self.reached.set()
            self.opened.wait(DEADLINE)
        return self.clock()

    def hold(self) -> None:
        self.reached.clear()
        self.opened.clear()


@dataclass
class CancelledAt:
    """Awaits a call, and cancels the awaiting task when the call waits for the nth time."""

    call: Coroutine[Any, Any, object]
    nth: int
    waited: int = 0

    def __await__(self) -> Generator[Any, Any, object]:
        steps, error = self.call.__await__(), None
        while True:
            try:
                waits_for = next(steps) if error is None else steps.throw(error)
            except StopIteration as done:
                return done.value
            self.waited += 1
            if self.waited == self.nth:
                task = asyncio.current_task()
                assert task is not None
                task.cancel()
            try:
                yield waits_for
                error = None
            except BaseException as thrown:
                error = thrown


class Home:
    """A home with a conversation, and all changing calls in an order that makes sense."""

    def __init__(self, place: Path) -> None:
        self.place, self.gate = place, Gate()
        self._store: SqliteStore | None = None

    async def begin(self) -> dict[str, Step]:
        self.memory = await AsyncMemory.open(self.place, clock=self.gate, embedder=None)
        session = await self.memory.session("s", resource="ada", cwd="/w")
        await session.add(turns(6))
        preference = (await session.note("Ada prefers tea.", kind="preference")).id
        await self.memory.dream("ada")
        wrong = (await session.note("The ferry leaves at ten.")).id
        waiting = (await session.note("The ferry leaves at eleven.")).id
        child = await session.spawn("child", policy="fork")
        await child.write("detail/found.md", "found")
        checkpoint = {"entities": [{"id": "page-7", "type": "page", "name": "Seven"}]}
        affect = self.memory.resource("ada").affect
        self._store = SqliteStore(self.place / "inmind.db")
        reply = {**assistant("Done."), "tool_calls": [a_memory_call()]}
        return {
            "Session.add": lambda: session.add([user("Deploy it.")], key="k"),
            "Session.prepare": lambda: session.prepare(key="k"),
            "Session.record": lambda: session.record(reply, key="k"),
            "Session.report_usage": lambda: session.report_usage(prompt_tokens=400, key="k"),
            "Session.observe": lambda: session.observe("get_page", {}, {"page": {"id": "page-1"}}, key="k"),
            "Session.track": lambda: session.track([{"id": "page-2", "type": "page", "name": "Two"}], key="k"),
            "Session.pin": lambda: session.pin("page-2", key="k"),
            "Session.unpin": lambda: session.unpin("page-2", key="k"),
            "Session.import_entities": lambda: session.import_entities(checkpoint, key="k"),
            "Session.note": lambda: session.note("The ferry leaves at noon.", key="k"),
            "Session.withdraw": lambda: session.withdraw(wrong, key="k"),
            "Session.search": lambda: session.search("ferry", key="k"),
            "Session.call_tool": lambda: session.call_tool(
                "working_memory_note", {"note": "The port is closed."}, key="k"
            ),
            "Session.update_front_matter": lambda: session.update_front_matter({"phase": "two"}, key="k"),
            "Session.event": lambda: session.event("decision_made", "We take the ferry.", key="k"),
            "Session.write": lambda: session.write("detail/plan.md", "the plan", key="k"),
            "Session.rename": lambda: session.rename("The ferry", key="k"),
            "Session.spawn": lambda: session.spawn("another", key="k"),
            "Session.merge_back": lambda: session.merge_back(child, key="k"),
            "Session.compact": lambda: session.compact(keep_recent=1, key="k"),
            "Session.undo_compaction": lambda: session.undo_compaction(key="k"),
            "Session.retain": lambda: session.retain("Never by night.", key="k"),
            "Session.release": lambda: session.release("Never by night.", key="k"),
            "Session.undo": lambda: session.undo(key="k"),
            "Session.remove_last_messages": lambda: session.remove_last_messages(1, key="k"),
            "Scratchpad.update": lambda: session.scratchpad.update("at the port", key="k"),
            "Affect.spike": lambda: affect.spike("achievement", "it was found", key="k"),
            "Economics.record": lambda: self.memory.resource("ada").economics.record("earning", amount="3.50", key="k"),
            "Resource.note": lambda: self.memory.resource("ada").note("The port is open.", key="n"),
            "Memory.pin": lambda: self.memory.pin(preference, key="k"),
            "Memory.unpin": lambda: self.memory.unpin(preference, key="thaw"),
            "Resource.withdraw": lambda: self.memory.resource("ada").withdraw(waiting, key="w"),
            "Resource.undo_dream": lambda: self.memory.resource("ada").undo_dream(key="k"),
            "Resource.cancel_dream": lambda: self.memory.resource("ada").cancel_dream(key="k"),
        }

    async def events(self) -> list[Event]:
        """All stored events, read by another connection while no write is in progress.

        Searches are recorded a little later. So are live files, and that may hold the lock for a moment.
        """
        await self.memory.flush()
        assert self._store is not None
        others: Any = apsw.Connection(str(self.place / "inmind.db"))
        others.set_busy_timeout(5_000)
        others.execute("BEGIN IMMEDIATE; ROLLBACK")
        others.close()
        streams = sorted([*self._store.stream_names("session/"), *self._store.stream_names("resource/")])
        return [_without_timing(event) for stream in streams for event in self._store.read(stream)]

    async def end(self) -> None:
        if self._store is not None:
            self._store.close()
        await self.memory.close()


def _without_timing(event: Event) -> Event:
    """The event without the duration and the holder of a dream, which differ between runs."""
    match event.payload:
        case DreamCommitted() as dreamt:
            return replace(event, payload=replace(dreamt, seconds=0.0))
        case DreamStarted() as started:
            return replace(event, payload=replace(started, holder=""))
        case _:
            return event


def a_memory_call() -> dict[str, Any]:
    function = {"name": "working_memory_update", "arguments": '{"text": "to deploy"}'}
    return {"id": "c1", "type": "function", "function": function}


async def undisturbed(_: Home, step: Step) -> None:
    await step()


async def cancelled_at_each_wait(_: Home, step: Step) -> None:
    """Repeat the call with the same key until it is not cancelled."""
    nth, cancelled = 0, True
    while cancelled:
        nth += 1
        call = CancelledAt(step(), nth)
        cancelled = await is_cancelled(asyncio.ensure_future(awaiting(call)))
        assert cancelled == (call.waited >= nth)
    assert nth > 1, "the call never waited, so this tests nothing"


async def cancelled_before_a_thread_runs_it(home: Home, step: Step) -> None:
    before, gate, busy = await home.events(), threading.Event(), list[int]()

    def work() -> None:
        busy.append(1)
        gate.wait(DEADLINE)

    others = [asyncio.create_task(home.memory.run_in_thread(work)) for _ in range(MAX_THREADS)]
    await until(lambda: len(busy) == MAX_THREADS)
    call = asyncio.create_task(step())
    for _ in range(3):
        await asyncio.sleep(0)
    call.cancel()
    assert await is_cancelled(call)
    gate.set()
    await asyncio.gather(*others)
    assert await home.events() == before
    await step()


async def cancelled_during_the_commit(home: Home, step: Step) -> None:
    home.gate.hold()
    call = asyncio.create_task(step())
    await until(home.gate.reached.is_set)
    for _ in range(3):  # a second cancellation waits as well
        call.cancel()
        await asyncio.sleep(0)
        assert not call.done()
    home.gate.opened.set()
    assert await is_cancelled(call)
    after = await home.events()
    await step()
    assert await home.events() == after, "a stored change was stored again"


async def awaiting(call: Awaitable[A]) -> A:
    return await call


async def is_cancelled(call: asyncio.Future[Any]) -> bool:
    try:
        await call
    except asyncio.CancelledError:
        return True
    return False


async def events_after_each_step(place: Path, make: Callable[[Home, Step], Awaitable[None]]) -> dict[str, list[Event]]:
    """The stored events after each step."""
    home = Home(place)
    stored: dict[str, list[Event]] = {}
    for name, step in (await home.begin()).items():
        await make(home, step)
        stored[name] = await home.events()
    await home.end()
    return stored


@pytest.mark.spec("K24", "K25", "I1")
@pytest.mark.parametrize(
    "make",
    [cancelled_at_each_wait, cancelled_before_a_thread_runs_it, cancelled_during_the_commit],
    ids=lambda make: make.__name__,
)
def test_a_cancelled_and_repeated_change_is_stored_once(tmp_path: Path, make: Any) -> None:
    async def main() -> None:
        expected, actual = (
            await events_after_each_step(tmp_path / "a", undisturbed),
            await events_after_each_step(tmp_path / "b", make),
        )
        assert [name for name in expected if actual[name] != expected[name]] == []

    run(main())


@pytest.mark.spec("K24")
def test_every_call_that_takes_a_key_is_covered(tmp_path: Path) -> None:
    async def main() -> None:
        home = Home(tmp_path / "h")
        steps = await home.begin()
        await home.end()
        keyed = {
            f"{sync.__name__}.{name}"
            for sync in ASYNC_CLASSES
            for name, member in inspect.getmembers(sync, inspect.isfunction)
            if not name.startswith("_") and "key" in inspect.signature(member).parameters
        }
        assert keyed - {"Memory.dream", "Resource.dream"} == set(steps)  # dreams are cancelled, not finished: see below

    run(main())


@pytest.mark.spec("K24")
def test_a_timeout_is_raised_after_the_call_has_finished(home: Path | str) -> None:
    async def main() -> None:
        gate = Gate()
        async with AsyncMemory.open(home, clock=gate) as memory:
            session = await memory.session("s")
            gate.hold()
            call = asyncio.create_task(asyncio.wait_for(session.add([user("Hi.")], key="k"), timeout=0.01))
            await until(gate.reached.is_set)
            await asyncio.wait([call], timeout=0.05)
            assert not call.done()
            gate.opened.set()
            with pytest.raises(TimeoutError):
                await call
            await session.add([user("Hi.")], key="k")
            assert len((await session.state).conversation) == 1

    run(main())


@pytest.mark.spec("K24")
def test_an_error_of_a_cancelled_call_is_the_cause_of_the_cancellation(home: Path | str) -> None:
    async def main() -> None:
        gate, started = threading.Event(), threading.Event()

        def fail() -> None:
            started.set()
            gate.wait(DEADLINE)
            raise NotFound(what="anchor", name=7)

        async with AsyncMemory.open(home) as memory:
            call = asyncio.create_task(memory.run_in_thread(fail))
            await until(started.is_set)
            call.cancel()
            await asyncio.sleep(0)
            gate.set()
            with pytest.raises(asyncio.CancelledError) as cancelled:
                await call
            assert isinstance(cancelled.value.__cause__, NotFound)

    run(main())


@pytest.mark.spec("K24")
def test_a_cancelled_dream_changes_nothing_and_the_next_one_runs(home: Path | str) -> None:
    async def main() -> None:
        gate, model_called = threading.Event(), threading.Event()

        def model(_: str) -> str:
            model_called.set()
            gate.wait(DEADLINE)
            return "{}"

        async with AsyncMemory.open(home, model=model, embedder=None) as memory:
            session = await memory.session("s", resource="ada")
            await session.note("Ada prefers tea.", kind="preference")
            call = asyncio.create_task(memory.dream("ada"))
            await until(model_called.is_set)
            call.cancel()
            assert await is_cancelled(call)
            assert not gate.is_set(), "the cancelled dream waited for the model"
            assert [(dream.code, dream.diff) for dream in await memory.resource("ada").dreams()] == [
                (DreamOvertaken.code, "")
            ]
            gate.set()
            theirs = await memory.dream("ada", cancelled=lambda: True)
            assert theirs.code == DreamOvertaken.code
            phases: list[str] = []
            dream = await memory.dream("ada", watch=lambda phase, _: phases.append(phase), cancelled=lambda: False)
            assert phases
            assert dream.code != DreamOvertaken.code
            assert dream == (await memory.resource("ada").dreams())[0]

    run(main())


@pytest.mark.spec("K24")
def test_a_memory_whose_opening_was_cancelled_is_closed(tmp_path: Path) -> None:
    async def main() -> None:
        home, gate = tmp_path / "h", Gate()
        gate.hold()
        opening = asyncio.ensure_future(awaiting(AsyncMemory.open(home, clock=gate)))
        await until(gate.reached.is_set)
        assert open_files(home)
        opening.cancel()
        await asyncio.sleep(0)
        gate.opened.set()
        with pytest.raises(asyncio.CancelledError):
            await opening
        assert open_files(home) == []

    run(main())


@pytest.mark.spec("K24")
def test_a_cancelled_close_still_closes(tmp_path: Path) -> None:
    async def main() -> None:
        gate = threading.Event()
        memory = await AsyncMemory.open(tmp_path / "h")
        session = await memory.session("s")
        under_way = asyncio.create_task(session.run_in_thread(gate.wait, DEADLINE))
        await asyncio.sleep(0)
        closing = asyncio.create_task(memory.close())
        for _ in range(3):
            await asyncio.sleep(0)
            closing.cancel()
        assert not closing.done()
        gate.set()
        assert await is_cancelled(closing)
        assert await under_way
        assert open_files(tmp_path / "h") == []
        with pytest.raises(Closed):
            await session.state
        await memory.close()

    run(main())


def open_files(home: Path) -> list[str]:
    links: list[str] = []
    for one in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            links.append(os.readlink(one))
    return [link for link in links if link.startswith(str(home))]


@pytest.mark.spec("K24", "K25")
@settings(max_examples=examples(15))
@given(turns_of_the_loop=st.lists(st.integers(0, 40), min_size=1, max_size=12))
def test_calls_cancelled_at_any_time_and_repeated_are_stored_once(
    turns_of_the_loop: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    async def main() -> None:
        async with AsyncMemory.open(tmp_path_factory.mktemp("h") / "home") as memory:
            session = await memory.session("s")
            messages = [user(f"{number}") for number in range(len(turns_of_the_loop))]
            calls = [asyncio.create_task(session.add([one], key=one["content"])) for one in messages]
            for turn in range(max(turns_of_the_loop) + 1):
                for call, last in zip(calls, turns_of_the_loop, strict=True):
                    if last == turn:
                        call.cancel()
                await asyncio.sleep(0)
            repeated = [one for call, one in zip(calls, messages, strict=True) if await is_cancelled(call)]
            for one in repeated:
                await session.add([one], key=one["content"])
            stored = [entry.wire["content"] for entry in (await session.state).conversation]
            assert sorted(stored, key=int) == [one["content"] for one in messages]
            repeated_texts = {one["content"] for one in repeated}
            assert [one for one in stored if one not in repeated_texts] == sorted(set(stored) - repeated_texts, key=int)

    run(main())
