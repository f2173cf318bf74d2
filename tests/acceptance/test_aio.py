"""The async classes: the same names as the sync ones, and an event loop that is never blocked."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import inspect
import os
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, assert_type

import openai
import pytest
from builders import Home, user
from event_loop import ASYNC_CLASSES, DEADLINE, run, until
from provider import Provider, a_tool_call, reply_with
from tables import each_row

from inmind import AsyncMemory, AsyncSession, Hit, Memory, Prompt, Session, wrap
from inmind.errors import Closed, InvalidInput, NotFound
from inmind.layers import TextLayer
from inmind.memory.aio.wrapper import MAX_THREADS, awaited_property
from inmind.testing import ManualClock
from inmind.types import AsyncAffect, AsyncEconomics, AsyncScratchpad, Entities

PLAIN_ATTRIBUTES = {
    "Memory": {"home", "location", "settings"},
    "Resource": {"name", "affect", "economics"},
    "Session": {"id", "resource", "memory_tools", "scratchpad"},
    "Affect": {"enabled"},
}
ASYNC_NAMES = {
    "__contains__": "contains",
    "__enter__": "__aenter__",
    "__exit__": "__aexit__",
    "__repr__": "__repr__",
    "__str__": "__repr__",
}
NOT_AWAITED = {"open", "resource"}
INTERNAL_NAMES = {
    "after_fork",
    "__init__",
    "__module__",
    "__doc__",
    "__dict__",
    "__weakref__",
    "__abstractmethods__",
    "__slots__",
}


# -- the same names ----------------------------------------------------------------------------------------


@pytest.mark.spec("I1")
@each_row(("sync", "async_class"), ASYNC_CLASSES.items(), ids=[sync.__name__ for sync in ASYNC_CLASSES])
def test_every_async_class_has_the_names_and_arguments_of_its_sync_class(sync: type, async_class: type) -> None:
    for name, member in inspect.getmembers_static(sync, lambda member: member not in vars(object).values()):
        if name in INTERNAL_NAMES or (name.startswith("_") and not name.startswith("__")):
            continue
        async_member = inspect.getattr_static(async_class, ASYNC_NAMES.get(name, name), None)
        if name.startswith("__"):
            assert name in ASYNC_NAMES, f"{sync.__name__}.{name} has no async counterpart yet"
            assert async_member is not None
        elif isinstance(member, property):
            expected = property if name in PLAIN_ATTRIBUTES.get(sync.__name__, ()) else awaited_property
            assert isinstance(async_member, expected), f"{sync.__name__}.{name} is missing, or should be awaited"
            assert isinstance(async_member, property) or async_member.__doc__ == member.__doc__
        else:
            call = getattr(async_class, name, None)
            assert callable(call), f"{sync.__name__}.{name} is missing"
            assert shape(call) == shape(getattr(sync, name)), name
            assert name in NOT_AWAITED or inspect.iscoroutinefunction(call), f"{sync.__name__}.{name} is not awaited"


def shape(function: Callable[..., Any]) -> list[tuple[str, object, object]]:
    arguments = inspect.signature(function).parameters.values()
    return [(one.name, one.kind, one.default) for one in arguments]


@pytest.mark.spec("I1")
def test_attributes_of_the_sync_object_are_on_its_wrapper_after_close(home: Home) -> None:
    async def main() -> None:
        async with AsyncMemory.open(home) as memory:
            session = await memory.session("s", resource="ada")
            affect = memory.resource("ada").affect
        for wrapper in (memory, session, affect):
            attributes = {name for name in vars(wrapper.sync) if not name.startswith("_")}
            assert attributes <= PLAIN_ATTRIBUTES[type(wrapper.sync).__name__]
            for name in attributes:
                assert getattr(wrapper, name) == getattr(wrapper.sync, name)
        assert (session.resource, session.memory_tools) == ("ada", True)
        assert isinstance(session.scratchpad, AsyncScratchpad)
        assert isinstance(memory.resource("ada").economics, AsyncEconomics)
        assert repr(session) == "<AsyncSession 's' of 'ada': 0 messages, 0 calls>"

    run(main())


@pytest.mark.spec("I1")
def test_an_awaited_property_is_read_when_it_is_awaited(home: Home) -> None:
    async def main() -> None:
        async with AsyncMemory.open(home) as memory:
            session = await memory.session("s", resource="ada")
            assert all(hasattr(session, name) for name in dir(session))
            assert dict(inspect.getmembers(session)).keys() >= {"entities", "overview", "state"}
            overview, mood = session.overview, memory.resource("ada").affect.mood
            await session.write("overview.md", "# New")
            assert await asyncio.wait_for(overview, DEADLINE) == "# New"
            assert await asyncio.gather(overview, mood) == ["# New", await mood]
            with pytest.raises(TypeError, match=r"AsyncSession\.overview has to be awaited"):
                _ = "some" if overview else "none"
            with pytest.raises(TypeError, match="not iterable"):
                _ = list(overview)  # pyright: ignore[reportArgumentType, reportUnknownVariableType] -- not awaited
            assert repr(overview) == "<AsyncSession.overview, not awaited yet>"

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run(main())
        gc.collect()
    assert [str(one.message) for one in caught if "never awaited" in str(one.message)] == []


@pytest.mark.spec("I1")
def test_a_type_checker_knows_arguments_and_results(home: Home) -> None:
    """`make check` fails if a type is wrong, or if an expected type error does not occur."""

    async def main() -> None:
        async with AsyncMemory.open(home) as memory:
            assert_type(memory, AsyncMemory)
            session = await memory.session("s", resource="ada")
            assert_type(session, AsyncSession)
            assert_type(await session.prepare([user("Hi.")]), Prompt)
            assert_type(await session.entities, Entities)
            assert_type(await session.add([]), None)
            assert_type(await session.search("Hi", limit=3), list[Hit])
            assert_type(await session.spawn("child"), AsyncSession)
            assert_type(await session.overview, str)
            assert_type(await memory.contains("s"), bool)
            assert_type(memory.resource("ada").affect, AsyncAffect)
            with pytest.raises(InvalidInput):
                await session.prepare(format=3)  # pyright: ignore[reportArgumentType] -- not a string
            with pytest.raises(TypeError):
                await session.prepare(formt="openai")  # pyright: ignore[reportCallIssue] -- no such argument
            with pytest.raises(TypeError):
                await session.note()  # pyright: ignore[reportCallIssue] -- the text is missing
            with pytest.raises(TypeError):
                _ = "s" in memory  # pyright: ignore[reportOperatorIssue] -- it would have to be awaited

    run(main())


@pytest.mark.spec("I1")
def test_sync_and_async_calls_leave_the_same_journal(tmp_path: Path) -> None:
    def run_sync(home: Path) -> list[object]:
        with Memory.open(home, clock=ManualClock(), embedder=None) as memory:
            session = memory.session("s", resource="ada", cwd="/w")
            session.observe("create_page", {}, {"page": {"id": "page-1", "name": "About Us"}})
            session.prepare([user("add a hero to it")])
            session.record({"role": "assistant", "content": "Done."})
            session.scratchpad.update("about page-1")
            child = session.spawn("child")
            child.write("detail/d.md", "found")
            session.merge_back(child)
            memory.resource("ada").economics.record("earning", amount=3)
            results = [str(entity) for entity in session.entities.window], session.scratchpad.snapshot, session.overview
            return [*results, memory.resource("ada").affect.levels, "s" in memory, journal_of(session)]

    async def run_async(home: Path) -> list[object]:
        async with AsyncMemory.open(home, clock=ManualClock(), embedder=None) as memory:
            session = await memory.session("s", resource="ada", cwd="/w")
            await session.observe("create_page", {}, {"page": {"id": "page-1", "name": "About Us"}})
            await session.prepare([user("add a hero to it")])
            await session.record({"role": "assistant", "content": "Done."})
            await session.scratchpad.update("about page-1")
            child = await session.spawn("child")
            await child.write("detail/d.md", "found")
            await session.merge_back(child)
            await memory.resource("ada").economics.record("earning", amount=3)
            things = [str(entity) for entity in (await session.entities).window]
            results = things, await session.scratchpad.snapshot, await session.overview
            levels = await memory.resource("ada").affect.levels
            return [*results, levels, await memory.contains("s"), journal_of(session.sync)]

    assert asyncio.run(run_async(tmp_path / "a")) == run_sync(tmp_path / "b")


def journal_of(session: Session) -> list[object]:
    return [event.payload for event in session.events()]


def test_importing_inmind_loads_neither_asyncio_nor_a_memory() -> None:
    heavy = "{'asyncio', 'inmind.memory.memory', 'inmind.session.session'}"
    code = f"import sys, inmind; print({heavy} & sys.modules.keys())"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "set()\n"


# -- threads -----------------------------------------------------------------------------------------------

LOCK_THE_STORE = """
import sys, apsw
connection = apsw.Connection(sys.argv[1])
connection.set_busy_timeout(10_000)
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.readline()
connection.execute("ROLLBACK")
"""


@pytest.mark.embedded
@pytest.mark.spec("I1")
def test_the_loop_is_not_blocked_while_a_commit_waits_for_another_process(home: Path) -> None:
    async def main() -> None:
        async with AsyncMemory.open(home) as memory:
            session = await memory.session("s", resource="ada")
            holder = await asyncio.create_subprocess_exec(
                sys.executable,
                "-c",
                LOCK_THE_STORE,
                str(home / "inmind.db"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            assert holder.stdin is not None
            assert holder.stdout is not None
            assert await holder.stdout.readline() == b"held\n"
            adding = asyncio.create_task(session.add([user("Hi.")]))
            for _ in range(50):
                await asyncio.sleep(0.002)
                assert not adding.done(), "the call did not wait, or the loop was blocked"
            holder.stdin.write(b"\n")
            await adding
            await holder.wait()

    run(main())


@pytest.mark.spec("I1")
def test_the_default_executor_is_neither_used_nor_waited_for(home: Home) -> None:
    async def main() -> None:
        busy = threading.Event()
        with ThreadPoolExecutor(1) as pool:
            asyncio.get_running_loop().set_default_executor(pool)
            theirs = asyncio.get_running_loop().run_in_executor(None, busy.wait, DEADLINE)
            async with AsyncMemory.open(home) as memory:
                session = await memory.session("s")
                await session.add([user("Hi.")])
                assert not theirs.done()
                names = {thread.name for thread in threading.enumerate()}
                assert any(name.startswith("inmind-aio") for name in names)
            busy.set()
            await theirs

    run(main())


@pytest.mark.spec("I1")
def test_many_concurrent_calls_use_a_bounded_number_of_threads(home: Home) -> None:
    async def main() -> None:
        before, gate, under_way = set(threading.enumerate()), threading.Event(), list[int]()

        def work(number: int) -> int:
            under_way.append(number)
            gate.wait(DEADLINE)
            return number

        async with AsyncMemory.open(home) as memory:
            calls = [asyncio.create_task(memory.run_in_thread(work, number)) for number in range(3 * MAX_THREADS)]
            await until(lambda: len(under_way) == MAX_THREADS)
            assert len(set(threading.enumerate()) - before) <= MAX_THREADS
            gate.set()
            assert await asyncio.gather(*calls) == list(range(3 * MAX_THREADS))
        await until(lambda: not [one for one in set(threading.enumerate()) - before if "aio" in one.name])

    run(main())


@pytest.mark.spec("I1")
def test_calls_of_one_session_keep_their_order(home: Home) -> None:
    async def main() -> None:
        async with AsyncMemory.open(home) as memory:
            session = await memory.session("s", resource="ada")
            messages = [user(f"{number}") for number in range(40)]
            both = (
                [session.add([one]) for one in messages],
                [session.scratchpad.update(one["content"]) for one in messages],
            )
            await asyncio.gather(*(call for pair in zip(*both, strict=True) for call in pair))
            assert [entry.wire for entry in (await session.state).conversation] == messages
            assert await session.scratchpad.snapshot == "39"

    run(main())


@pytest.mark.spec("I1")
def test_a_session_does_not_wait_for_another_one(home: Home) -> None:
    async def main() -> None:
        gate, model_called = threading.Event(), threading.Event()

        def summarizer(_: str) -> str:
            model_called.set()
            gate.wait(DEADLINE)
            return "They talked."

        async with AsyncMemory.open(home) as memory:
            slow, quick = await memory.session("slow"), await memory.session("quick")
            await slow.add([message for n in range(8) for message in (user(f"{n}?"), numbered_reply(n))])
            compacting = asyncio.create_task(slow.compact(strategy="summarize", keep_recent=1, model=summarizer))
            await until(model_called.is_set)
            queued = asyncio.create_task(slow.add([user("queued")]))
            await quick.add([user("Hi.")])
            assert len((await quick.state).conversation) == 1
            assert not compacting.done()
            assert not queued.done()
            gate.set()
            assert (await compacting).messages > 0
            await queued

    run(main())


def numbered_reply(number: int) -> dict[str, Any]:
    return {"role": "assistant", "content": f"{number}."}


def test_a_call_runs_in_the_context_of_its_caller(home: Home) -> None:
    request: contextvars.ContextVar[str] = contextvars.ContextVar("request", default="none")
    seen_requests: list[str] = []

    class RecordingLayer(TextLayer):
        def recall(self, context: Any) -> Any:
            seen_requests.append(request.get())
            return super().recall(context)

    async def prepare_as(name: str, session: AsyncSession) -> None:
        request.set(name)
        await session.prepare([user("Hi.")])

    async def main() -> None:
        async with AsyncMemory.open(home) as memory:
            session = await memory.session("s", layers=[RecordingLayer(name="rules", text="Be kind.")])
            await asyncio.gather(prepare_as("a", session), prepare_as("b", session))
            assert list(dict.fromkeys(seen_requests)) == ["a", "b"]
            assert request.get() == "none"

    run(main())


def test_a_stop_iteration_of_a_call_is_reported_and_does_not_hang(home: Home) -> None:
    async def main() -> None:
        async with AsyncMemory.open(home) as memory:
            with pytest.raises(RuntimeError, match="StopIteration"):
                await memory.run_in_thread(next, iter(()))
            with pytest.raises(NotFound, match="no call 7"):
                await (await memory.session("s")).prompt(7)

    run(main())


# -- loops, forks ------------------------------------------------------------------------------------------


@pytest.mark.both_stores
@pytest.mark.spec("I1")
@pytest.mark.parametrize("shared", [True, False], ids=["one memory", "two memories"])
def test_event_loops_in_two_threads_can_use_one_home(home: Home, shared: bool) -> None:
    ours = asyncio.run(open_memory(home))

    async def talk(name: str) -> None:
        memory = ours if shared else await AsyncMemory.open(home)
        mine, both = await memory.session(name), await memory.session("both")
        for number in range(10):
            await asyncio.gather(mine.add([user(f"{number}")]), both.add([user(f"{name} {number}")]))
        if not shared:
            await memory.close()

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(asyncio.run, talk(name)) for name in ("a", "b")]:
            done.result(timeout=DEADLINE)
    texts = {
        name: [entry.wire["content"] for entry in ours.sync.session(name).state.conversation]
        for name in ("a", "b", "both")
    }
    assert texts["a"] == texts["b"] == [f"{number}" for number in range(10)]
    for name in ("a", "b"):
        assert [text for text in texts["both"] if text.startswith(name)] == [f"{name} {number}" for number in range(10)]
    asyncio.run(ours.close())


async def open_memory(home: Home) -> AsyncMemory:
    return await AsyncMemory.open(home)


@pytest.mark.both_stores
@pytest.mark.spec("K23")
def test_a_forked_process_starts_its_own_threads(home: Home) -> None:
    async def begin() -> tuple[AsyncMemory, AsyncSession]:
        memory = await AsyncMemory.open(home)
        session = await memory.session("s")
        await session.add([user("before")])
        return memory, session

    memory, session = asyncio.run(begin())
    if (child := os.fork()) == 0:
        code = 1
        try:
            signal.alarm(int(DEADLINE))
            asyncio.run(session.add([user("in the child")]))
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    asyncio.run(session.add([user("after")]))
    assert [entry.wire["content"] for entry in session.sync.state.conversation] == ["before", "in the child", "after"]
    asyncio.run(memory.close())


# -- closing -----------------------------------------------------------------------------------------------


@pytest.mark.spec("I1")
def test_close_waits_for_earlier_calls_and_refuses_later_ones(home: Home) -> None:
    async def main() -> None:
        memory = await AsyncMemory.open(home)
        session, gate = await memory.session("s"), threading.Event()
        under_way = asyncio.create_task(session.run_in_thread(gate.wait, DEADLINE))
        queued = asyncio.create_task(session.add([user("queued")]))
        await asyncio.sleep(0)  # start both, in this order
        closing = [asyncio.create_task(memory.close()) for _ in range(2)]
        await asyncio.sleep(0)
        for call in (session.add([user("late")]), session.entities, memory.sessions(), session.scratchpad.snapshot):
            with pytest.raises(Closed):
                await call
        assert not any(one.done() for one in (under_way, queued, *closing))
        gate.set()
        assert await under_way
        await queued
        await asyncio.gather(*closing)
        await memory.close()
        with pytest.raises(Closed):
            await memory.session("t")

    run(main())
    with Memory.open(home) as memory:
        assert [entry.wire["content"] for entry in memory.session("s").state.conversation] == ["queued"]


@pytest.mark.spec("I1")
def test_async_with_closes_the_memory_after_an_error(home: Home) -> None:
    async def main() -> None:
        kept: list[AsyncMemory] = []

        async def fail() -> None:
            async with AsyncMemory.open(home) as memory:
                kept.append(memory)
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await fail()
        with pytest.raises(Closed):
            await kept[0].resources()
        async with await AsyncMemory.open(home) as memory:
            assert await memory.resources() == []
        with pytest.raises(InvalidInput):
            await AsyncMemory.open("")

    run(main())


# -- clients -----------------------------------------------------------------------------------------------


@pytest.mark.spec("I1")
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_an_async_client_accepts_an_async_session(home: Home, streams: bool) -> None:
    async def main(provider: Provider) -> None:
        provider.will(
            reply_with("One moment.", a_tool_call("working_memory_update", {"text": "Ada asks."})),
            reply_with("Hello, Ada."),
        )
        async with (
            AsyncMemory.open(home) as memory,
            openai.AsyncOpenAI(base_url=provider.openai, api_key="none", max_retries=0) as client,
        ):
            session = await memory.session("s", resource="ada")
            chat = wrap(client, session).chat.completions
            question: Any = [user("Hi, I am Ada.")]
            if streams:
                chunks = [chunk async for chunk in await chat.create(model="m", messages=question, stream=True)]
                text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
            else:
                text = str((await chat.create(model="m", messages=question)).choices[0].message.content)
            assert text.endswith("Hello, Ada.")
            assert await session.scratchpad.snapshot == "Ada asks."
            assert (await session.state).prompt.calls == 2

    with Provider() as provider:
        run(main(provider))
        assert provider.failures == []


@pytest.mark.spec("I1")
def test_a_sync_client_refuses_an_async_session(home: Home) -> None:
    async def main() -> None:
        async with AsyncMemory.open(home) as memory:
            session = await memory.session("s")
            with openai.OpenAI(base_url="http://127.0.0.1:9", api_key="none") as client:
                with pytest.raises(InvalidInput, match=r"session: expected session\.sync"):
                    wrap(client, session)
                assert wrap(client, session.sync)

    run(main())
