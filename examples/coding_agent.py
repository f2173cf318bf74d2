"""A coding agent whose run is more than twice as long as its context window.

It makes the failing tests of a small, real project pass, in dozens of calls; the output of one test run is more than a
third of the window. Its loop has no code for that: `prepare` archives old messages before the window is full. The plan
is on a scratchpad with a schema, the overview is written from events, files are entities with their paths, and the rule
not to touch a test is retained word for word.

    python examples/coding_agent.py                                     # scripted: no key, no network
    python examples/coding_agent.py --model claude-sonnet-4-5           # with ANTHROPIC_API_KEY

Code that a real model writes is run on this machine, with your rights, in a temporary folder.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel
from world.loop import Agent, Tool, arguments_of
from world.model import Provider, open_model
from world.project import Project
from world.scripted import Move, calls, match, says

from inmind import HostCall, Memory, Prompt, Session, Usage, default_layers
from inmind.apps.replay import Recording, replay
from inmind.core.messages import FORMATS
from inmind.core.messages.model import Wire
from inmind.layers import ScratchpadLayer
from inmind.session.tools.registry import is_memory_tool
from inmind.types import Rates

WINDOW, RESERVE = 16_000, 2_000
RATES = Rates.per_million(input=3.00)
"""Dollars, as in common price lists: cache reads cost a tenth, cache writes a quarter more."""

SYSTEM = "You work on a Python project with the tools. Keep your plan current with working_memory_update."
TASK = "The tests of this project fail. Find out why, module by module, and fix it. Never change a file below tests/."
QUESTION = "Thanks! How did your very first run of the tests end?"


class Plan(BaseModel):
    goal: str = ""
    modules: dict[str, Literal["open", "fixed"]] = {}
    causes: dict[str, str] = {}


def update_plan(**update: Any) -> Move:
    return calls("working_memory_update", **update)


def reads(path: str) -> Move:
    return calls("read_file", path=path)


def edits(path: str, old: str, new: str) -> Move:
    return calls("edit_file", path=path, old=old, new=new)


def mark_fixed(module: str, cause: str) -> Move:
    return update_plan(modules={module: "fixed"}, causes={module: cause})


RUNS_TESTS = calls("run_tests")
FAILED = r"FAILED \(failures=\d+, errors=\d+\)"

SCRIPT = (
    calls("list_files"),
    RUNS_TESTS,
    update_plan(goal="All tests pass", modules=dict.fromkeys(("money", "dates", "rows", "totals", "report"), "open")),
    reads("tests/test_money.py"),
    reads("tally/money.py"),
    edits("tally/money.py", "float(text) * 100", 'float(text.replace(",", "")) * 100'),
    RUNS_TESTS,
    edits(
        "tally/money.py",
        'return int(float(text.replace(",", "")) * 100)',
        'plain = text.strip().replace(",", "")\n'
        '    if plain.startswith("("):\n'
        '        return -cents(plain.strip("()"))\n'
        "    return round(Decimal(plain) * 100)",
    ),
    edits("tally/money.py", 'fraction of one."""\n', 'fraction of one."""\n\nfrom decimal import Decimal\n'),
    RUNS_TESTS,
    edits(
        "tally/money.py",
        'f"{amount // 100}.{amount % 100:02}"',
        "f\"{'-' if amount < 0 else ''}{abs(amount) // 100:,}.{abs(amount) % 100:02}\"",
    ),
    mark_fixed("money", "Amounts went through floats, and neither commas nor signs were thought of."),
    RUNS_TESTS,
    reads("tests/test_dates.py"),
    reads("tally/dates.py"),
    edits("tally/dates.py", 'month, number, year = text.split(".")', 'number, month, year = text.split(".")'),
    edits("tally/dates.py", "Q{when.month // 3}", "Q{(when.month + 2) // 3}"),
    RUNS_TESTS,
    mark_fixed("dates", "With points the day comes first, and March was in the second quarter."),
    calls("search_files", words="import"),
    reads("tests/test_rows.py"),
    reads("tally/rows.py"),
    edits(
        "tally/rows.py",
        'for line in sheet.split("\\n"):\n        when, what, amount = line.split(",")\n        yield',
        "for row in filter(None, list(csv.reader(sheet.splitlines()))[1:]):\n        when, what, amount = row\n"
        "        yield",
    ),
    edits("tally/rows.py", "from collections.abc", "import csv\nfrom collections.abc"),
    RUNS_TESTS,
    mark_fixed("rows", "It split at commas inside of quotes, and took headings and blank lines for expenses."),
    reads("tests/test_totals.py"),
    reads("tally/totals.py"),
    edits(
        "tally/totals.py",
        'for row in rows:\n        totals[f"{row.when.month}"] = row.amount',
        'for row in sorted(rows):\n        name = f"{row.when:%Y-%m}"\n'
        "        totals[name] = totals.get(name, 0) + row.amount",
    ),
    RUNS_TESTS,
    mark_fixed("totals", "Only the last row of a month counted, whatever the year."),
    reads("tests/test_report.py"),
    reads("tally/report.py"),
    edits("tally/report.py", "100 * amount // whole for", "round(100 * amount / whole) if whole else 0 for"),
    RUNS_TESTS,
    edits(
        "tally/report.py",
        'lines = [f"{name} {render(amount)}" for name, amount in totals.items()]\n'
        '    return "\\n".join([*lines, f"sum {render(sum(totals.values()))}"])',
        'rows = [*totals.items(), ("sum", sum(totals.values()))]\n'
        "    names, amounts = max(len(name) for name, _ in rows), max(len(render(amount)) for _, amount in rows)\n"
        '    lines = [f"{name:<{names}}  {render(amount):>{amounts}}" for name, amount in rows]\n'
        '    return "\\n".join([*lines[:-1], "-" * (names + 2 + amounts), lines[-1]])',
    ),
    RUNS_TESTS,
    mark_fixed("report", "Columns had no width, and shares were cut instead of rounded."),
    says("All tests pass. No test was changed."),
    calls("memory_read", path=match(r"archive/001(?!\d)")),
    says(lambda sent: f"It ended with {sent.find(FAILED)}."),
)


def describe_call(call: HostCall, result: str) -> None:
    """One line per call; for a test run, its result."""
    arguments = arguments_of(call)
    about = arguments.get("path") or arguments.get("words") or ""
    outcome = re.search(r"^(OK|FAILED.*)$", result, re.MULTILINE) if call.name == "run_tests" else None
    print(f"  {call.name} {outcome[0] if outcome else about}".rstrip())


def show_compactions(prompt: Prompt) -> None:
    for one in prompt.report.compactions:
        size = f"{one.messages} of its messages, {one.tokens:,} tokens"
        print(f"  -- call {prompt.call}: {one.reason}. {size}: now in {', '.join(one.archives)}")


def show_memory(session: Session, project: Project) -> None:
    plan = Plan.model_validate(session.scratchpad.snapshot)
    print("\nThe plan, on the scratchpad:")
    print(*(f"  {name:<8}{state:<8}{plan.causes.get(name, '')}" for name, state in plan.modules.items()), sep="\n")
    print("overview.md, written from events:")
    print(*(f"  {line}" for line in session.overview.splitlines() if line.startswith("- ")), sep="\n")
    print("Retained word for word:")
    print(*(f"  {item.kind}: {item.text}" for item in session.retained), sep="\n")
    paths = project.list_files().split("\n")
    checks = [session.check_call("read_file", {"path": path}) for path in paths]
    known = sum(each.status in ("in_window", "known") for check in checks for each in check.findings)
    print(f"Files known by their paths: {known} of {len(paths)}")


def undo_last_compaction(session: Session, provider: Provider) -> None:
    """Undo the last compaction in a larger window: compaction changes only what is sent."""
    if not session.state.history.compactions:
        return
    before = results_in(session.prepare(format=provider))
    undone = session.undo_compaction()
    print(f"In a larger window the last compaction is undone. {undone}")
    print(f"Tool results that are sent: {before} before, {results_in(session.prepare(format=provider))} now")


def results_in(prompt: Prompt) -> int:
    fmt = FORMATS[prompt.format]
    return sum(len(fmt.read(message).results) for message in prompt.messages)


def show_price(session: Session, provider: Provider, tools: Sequence[Tool]) -> None:
    """The cost of this run, and the cost of the same conversation without memory."""
    messages = without_memory_messages(session.messages, provider)
    declared = [tool.declaration(provider) for tool in tools]
    recording = Recording(name=session.id, format=provider, messages=messages, system=SYSTEM, tools=declared)
    (other,) = replay([recording], window=WINDOW)
    calls, bare = other.full.usage.calls, other.bare
    print(f"\nWith memory, in a window of {WINDOW:,}: {bill(session.usage)}")
    print(f"Without, in a window without end:   {bill(other.full.usage)}")
    print(f"Without, in the same window:        {bare.did_not_fit} of {calls} calls do not fit")


def without_memory_messages(messages: Sequence[Wire], provider: Provider) -> list[Wire]:
    """The conversation without calls of memory tools."""
    fmt = FORMATS[provider]
    parsed = [fmt.read(wire) for wire in messages]
    memory_calls = {
        call.id for one in parsed if any(is_memory_tool(call.name) for call in one.calls) for call in one.calls
    }
    return [
        wire
        for wire, one in zip(messages, parsed, strict=True)
        if memory_calls.isdisjoint(each.id for each in (*one.calls, *one.results))
    ]


def bill(ledger: Usage) -> str:
    return (
        f"{ledger.calls} calls, {ledger.tokens:>7,} tokens, {ledger.cached_share:.0%} of them from cache, "
        f"${ledger.price(RATES):.3f}"
    )


def main() -> None:
    with (
        open_model(__doc__ or "", SCRIPT) as model,
        tempfile.TemporaryDirectory() as folder,
        tempfile.TemporaryDirectory() as home,
        Memory.open(home, embedder=None) as memory,
    ):
        project = Project.create(Path(folder))
        tools = project.tools()
        layers = default_layers(ScratchpadLayer(schema=Plan))
        session = memory.session("tally", resource="ada", layers=layers, window=WINDOW, reserve=RESERVE)
        agent = Agent(
            session=session,
            model=model,
            system=SYSTEM,
            tools=tools,
            on_prompt=show_compactions,
            on_result=describe_call,
        )
        for text in (TASK, QUESTION):
            print(text)
            print(agent.answer(text))
        show_memory(session, project)
        show_price(session, model.provider, tools)
        undo_last_compaction(memory.session("tally", layers=layers, window=128_000), model.provider)
        passed, untouched = project.run_tests().endswith("exit code 0"), project.tests_are_untouched()
    print(f"\nThe tests pass: {yes_or_no(passed)}. No test was changed: {yes_or_no(untouched)}.")
    sys.exit(not (passed and untouched))


def yes_or_no(fact: bool) -> str:
    return "yes" if fact else "no"


if __name__ == "__main__":
    main()
