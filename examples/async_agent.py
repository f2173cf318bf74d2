"""An async agent with two concurrent helpers and a cancelled call.

Nothing is lost or stored twice. The names are those of the sync memory, awaited. The model is a list of scripted
replies, so this runs without a network or a key; `reply` stands for `await client.chat.completions.create(...)`. With a
client, `inmind.wrap(AsyncOpenAI(), session)` is shorter.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from typing import Any

from inmind import AsyncMemory, AsyncSession

Message = dict[str, Any]


def looks_up(page: str) -> Message:
    call = {"id": f"look-{page}", "type": "function"}
    function = {"name": "get_page", "arguments": json.dumps({"id": page})}
    return {"role": "assistant", "content": None, "tool_calls": [{**call, "function": function}]}


def says(text: str) -> Message:
    return {"role": "assistant", "content": text}


SCRIPT = {
    "english": [looks_up("page-1"), says("The English page greets no one by name.")],
    "chinese": [looks_up("page-2"), says("The Chinese page has no title.")],
    "main": [says("Both pages need work: a greeting in English, a title in Chinese.")],
}
PAGES = {"page-1": {"id": "page-1", "title": "Welcome"}, "page-2": {"id": "page-2", "title": ""}}


async def reply(session: AsyncSession, request: Message) -> Message:
    """The next scripted reply, chosen by the length of the conversation in the request."""
    await asyncio.sleep(0)  # the network
    replies = [message for message in request["messages"] if message["role"] == "assistant"]
    return SCRIPT[session.id][len(replies)]


async def turn(session: AsyncSession, question: str) -> str:
    """One turn: from a question to its answer."""
    await session.add([{"role": "user", "content": question}], key=question)
    while True:
        prompt = await session.prepare()
        recorded = await session.record(await reply(session, prompt.request))
        for call in recorded.host_calls:
            page = json.dumps({"page": PAGES[call.arguments["id"]]})
            await session.add([{"role": "tool", "tool_call_id": call.id, "content": page}])
        if not recorded.host_calls:
            return recorded.text


async def run_helper(session: AsyncSession, name: str) -> str:
    """A helper has its own conversation, and its findings are merged back."""
    helper = await session.spawn(name)
    summary = await turn(helper, f"Look through the {name} page.")
    await session.merge_back(helper)
    return summary


async def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        async with AsyncMemory.open(home) as memory:
            session = await memory.session("main", resource="ada")
            for summary in await asyncio.gather(run_helper(session, "english"), run_helper(session, "chinese")):
                print(summary)
            print("In mind:", ", ".join(sorted(entity.id for entity in (await session.entities).window)))

            question = "What is left to do?"
            impatient = asyncio.create_task(turn(session, question))
            await asyncio.sleep(0)
            impatient.cancel()
            await asyncio.wait([impatient])
            print("The user gives up, and asks again:", await turn(session, question))
            print("Asked in all:", sum(entry.wire["role"] == "user" for entry in (await session.state).conversation))


if __name__ == "__main__":
    asyncio.run(main())
