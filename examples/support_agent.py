"""A support agent that consults two specialists, and recognises its customer days later.

The support agent talks to the customer. It consults sub-agents, one for orders and one for refunds, which each get the
part of its memory that they need: a copy of the case, a view, or nothing. Their changes are merged back, and the report
has both values of a conflict. Notes belong to the customer, not to the conversation: a dream writes them to a page
overnight, and the next conversation starts with that page.

    python examples/support_agent.py                                     # scripted: no key, no network
    python examples/support_agent.py --model gpt-5-mini                  # with OPENAI_API_KEY
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from pydantic import BaseModel
from world.loop import TEXT, Agent, Json, Tool, format_call
from world.model import Model, open_model
from world.scripted import Request, calls, match, says
from world.shop import Shop

from inmind import HostCall, Memory, Session, default_layers
from inmind.layers import ScratchpadLayer
from inmind.testing import ManualClock
from inmind.types import MergeReport

DAY = 86_400
CUSTOMER = "ada"
SCRATCH = "memory/scratch.md"

SYSTEM = """You are the support desk of a shop, and talk to the customer ada. Keep the case current with \
working_memory_update. Note what must outlast the conversation: preferences, promises, the ids of refunds. \
Consult the specialists, settle what they disagree on, then answer in two sentences."""

MONDAY = "The teapot of my order W2041 came broken, and where are my mugs? Please write, and never phone: I am at work."
FRIDAY = "Hello again! Has my money arrived?"


class Case(BaseModel):
    problem: str
    facts: list[str]
    next_step: str


@dataclass(frozen=True)
class Specialist:
    """A sub-agent: its instructions, its tools, and what it inherits of each layer."""

    system: str
    tools: tuple[str, ...]
    policy: Mapping[str, str]


SPECIALISTS = {
    "orders": Specialist(
        "You look after orders and parcels. Enter what you find into the case with working_memory_update.",
        ("list_orders", "track_parcel"),
        {"working-memory": "fork", "entities": "fork", "overview": "none"},
    ),
    "refunds": Specialist(
        "You pay money back where that is right. Enter what you did into the case with working_memory_update.",
        ("create_refund", "get_refund"),
        {"working-memory": "fork", "entities": "view", "overview": "none"},
    ),
}
"""Both get a copy of the case. Of the entities, orders gets a copy and refunds a view."""

UPDATE, NOTE = "working_memory_update", "working_memory_note"
REFUND = r"rf-\d+"


def refund_note(sent: Request) -> str:
    return f"Ada's broken teapot of order W2041 is paid back by refund {sent.find(REFUND)}: 38.00."


SCRIPT = (
    # Monday, the support agent
    calls(UPDATE, problem="The teapot of W2041 is broken; the mugs have not come.", next_step="Consult both."),
    calls(NOTE, note="Ada prefers to be written to, and never phoned: she is at work.", importance=0.9),
    calls("consult", orders="Where are ada's mugs?", refunds="The teapot of W2041 came broken. Pay it back."),
    # orders
    calls("list_orders", customer="ada"),
    calls("track_parcel", order_id=match(r'"id": "(W\d+)", "customer": "ada", "item": "two mugs"')),
    calls(UPDATE, facts=["W2057, the mugs, is in customs"], next_step="Write to her when customs are through."),
    says("The mugs of W2057 are in customs."),
    # refunds, with one digit too many at first
    calls("create_refund", order_id=match(r"teapot of (W\d+)"), amount=380.0),
    calls("create_refund", order_id=match(r"teapot of (W\d+)"), amount=38.0),
    calls(UPDATE, facts=["W2041, the teapot, is paid back"], next_step="Tell her that her money is on its way."),
    calls(NOTE, note=refund_note),
    says(lambda sent: f"Paid back, by {sent.find(REFUND)}."),
    # the support agent again
    calls(UPDATE, next_step="Tell her that her money is on its way; write to her when customs are through."),
    says("Your 38.00 are on their way. Your mugs are in customs; we will write, and not phone, when they are through."),
    # Friday, another conversation
    calls("get_refund", refund_id=match(REFUND)),
    says("Yes: the 38.00 for your teapot have arrived. We will write about the mugs."),
)


class SupportAgent:
    """The agent that talks to the customer, in one conversation."""

    def __init__(self, session: Session, model: Model, shop: Shop) -> None:
        self._session, self._model, self._shop = session, model, shop
        tasks = {name: {**TEXT, "description": "what you want to know or have done"} for name in SPECIALISTS}
        consult = Tool("consult", "Ask all specialists at once.", tasks, self.consult)
        tools = [consult, *shop.tools("list_orders", "track_parcel", "get_refund")]
        self._agent = Agent(session=session, model=model, system=SYSTEM, tools=tools, on_result=print_call)

    def answer(self, text: str) -> None:
        print(f"customer  {text}")
        print(f"desk      {self._agent.answer(text)}")

    def consult(self, *tasks: str) -> Json:
        """All specialists start with the current case; then the changes of each are merged back."""
        # The id is that of the tool call: after a crash, a repeated call gets the same child session.
        call = self._session.usage.calls
        children = {
            name: self._session.spawn(f"{self._session.id}.{name}-{call}", policy=specialist.policy)
            for name, specialist in SPECIALISTS.items()
        }
        answers = {
            name: self._delegate(name, child, task) for (name, child), task in zip(children.items(), tasks, strict=True)
        }
        reports = [self._session.merge_back(child) for child in children.values()]
        for report in reports:
            print_merge(report)
        to_settle = [
            f"{conflict.path}: {conflict.ours!r} or {conflict.theirs!r}"
            for report in reports
            for conflict in report.conflicts
        ]
        return {"success": True, "answers": answers, "to_settle": to_settle}

    def _delegate(self, name: str, child: Session, task: str) -> str:
        print(f"  to {name}: {task}")
        specialist = SPECIALISTS[name]
        tools = self._shop.tools(*specialist.tools)
        agent = Agent(session=child, model=self._model, system=specialist.system, tools=tools, on_result=print_call)
        answer = agent.answer(task)
        print(f"  from {name}: {answer}")
        return answer


def print_call(call: HostCall, result: str) -> None:
    if call.name == "consult":
        return
    outcome = json.loads(result)
    print(f"    {format_call(call)}" + ("" if outcome["success"] else f": refused, {outcome['error']}"))


def print_merge(report: MergeReport) -> None:
    taken, combined = ", ".join(report.taken) or "nothing", ", ".join(report.combined) or "nothing"
    print(f"  merged {report.child}: taken {taken}, combined {combined}, {len(report.conflicts)} conflicts")
    for conflict in report.conflicts:
        print(f"    {conflict.path} was {conflict.base!r}")
        print(f"      the desk's stays: {conflict.ours!r}\n      the child has:    {conflict.theirs!r}")


def dream_overnight(memory: Memory, session: Session) -> None:
    notes = session.read(SCRATCH) if SCRATCH in session.documents() else ""
    print("\nNotes about the customer, until a dream takes them in:")
    print(*(f"  {line}" for line in notes.splitlines() if line.startswith("- ")), sep="\n")
    dreamt = memory.dream(CUSTOMER)
    print(f"A dream, by {dreamt.by}. MEMORY.md:")
    print(*(f"  {line}" for line in dreamt.diff.splitlines() if line.startswith(("+- ", "-- "))), sep="\n")


def main() -> None:
    clock = ManualClock(datetime(2026, 3, 2, 9, tzinfo=UTC))
    shop = Shop(clock)
    with (
        open_model(__doc__ or "", SCRIPT) as model,
        tempfile.TemporaryDirectory() as home,
        Memory.open(home, embedder=None, clock=clock) as memory,
    ):
        layers = default_layers(ScratchpadLayer(schema=Case))
        print(f"{clock.now:%A, %d %B}")
        session = memory.session("ticket-1", resource=CUSTOMER, layers=layers)
        SupportAgent(session, model, shop).answer(MONDAY)
        print("the case  " + json.dumps(session.scratchpad.snapshot, indent=2).replace("\n", "\n" + " " * 10))
        clock.advance(seconds=DAY / 2)
        dream_overnight(memory, session)
        clock.advance(seconds=3.5 * DAY)
        print(f"\n{clock.now:%A, %d %B}, another conversation: what it knows of her is MEMORY.md")
        SupportAgent(memory.session("ticket-2", resource=CUSTOMER, layers=layers), model, shop).answer(FRIDAY)


if __name__ == "__main__":
    main()
