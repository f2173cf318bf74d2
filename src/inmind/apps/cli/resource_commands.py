"""Commands about a resource: `dream`, `affect` and `economics`."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, fields
from typing import Any, get_args

import click
from rich.table import Column
from rich.text import Text

from inmind.apps.cli.console import (
    CommandResult,
    choice_option,
    collapse_whitespace,
    complete_choices,
    console,
    json_option,
    open_existing_memory,
    optional_resource_argument,
    print_json,
    print_lines,
    print_text,
    resolve_resource,
    resource_argument,
    resource_command,
    table,
)
from inmind.apps.cli.exit_codes import exit_with
from inmind.apps.signals import handle_signals
from inmind.core.text import count_noun, printable
from inmind.documents.notes_page import format_timestamp
from inmind.dreams.affect import BASELINES, SPIKES
from inmind.dreams.economics import CurrencyTotals, format_amount
from inmind.dreams.page.page import parse_page
from inmind.dreams.state import LIMIT_REACHED
from inmind.errors import DreamOvertaken, InvalidInput, NotFound
from inmind.jobs.dream_history import Dream
from inmind.memory.resource import Resource
from inmind.memory.resource_ledger import MIN_MINUTES, TradeKind

RULES_ONLY = {"model.name": ""}
"""Setting that disables the model of config.toml."""

_DIFF_COLOURS = {"-": "red", "+": "green", "@": "cyan"}

ENTRY_KINDS: tuple[str, ...] = get_args(TradeKind)

CURVE_POINTS = 36
"""Points of a curve; the whole line fits 80 columns."""
BAR_WIDTH = 20

_LEVEL_COLOURS = {"dopamine": "green", "cortisol": "red", "oxytocin": "blue"}
_HEIGHTS = "▁▂▃▄▅▆▇█"

number_argument = click.argument(
    "number", metavar="[N]", required=False, type=int, help="Number of the dream; default: the newest."
)


@optional_resource_argument
@click.option("--rules", "by_rules", is_flag=True, help="Use rules only, even if config.toml names a model.")
@json_option
def run(resource: str | None, by_rules: bool, as_json: bool) -> None:
    """Update MEMORY.md with the waiting notes and new activity.

    Ctrl-C cancels and changes nothing.
    """
    with open_existing_memory(RULES_ONLY if by_rules else None) as memory:
        name = resolve_resource(memory, resource)
        with _cancel_on_signal() as cancelled, nullcontext() if as_json else _show_phases() as watch:
            result = memory.dream(name, watch=watch, cancelled=cancelled)
            stopped = cancelled()
        if as_json:
            print_json(dream_json(result))
        if result.status != "done":
            reason = result.reason or f"another process took the dream over: {' '.join(describe_dream(result))}"
            exit_with("INTERRUPTED" if stopped else result.code or DreamOvertaken.code, reason)
        if not as_json:
            print_lines(describe_dream(result))


@resource_argument
@resource_command
def list_dreams(resource: Resource) -> CommandResult:
    """List past dreams, newest first."""
    dreams = resource.dreams()

    def row(one: Dream) -> tuple[object, ...]:
        began, seconds = f"{one.began:%Y-%m-%d %H:%M:%S}", f"{one.seconds:.2f}"
        counts = len(one.notes), len(one.lines)
        return (one.id, began, one.status, one.by, one.trigger, *counts, seconds, one.reason)

    headings = ("dream", "began (UTC)", "status", "by", "trigger", "notes", "lines", "seconds")
    drawn = table((*headings, Column("why", no_wrap=True, ratio=1)), map(row, dreams), wide=True)
    return map(dream_summary_json, dreams), [drawn] if dreams else f"No dreams of {resource.name} yet."


@resource_argument
@number_argument
@resource_command
def show_dream(resource: Resource, number: int | None) -> CommandResult:
    """Show the inputs, the changes and the guard results of a dream."""
    one = _get_dream(resource, number)
    return dream_json(one), [*describe_dream(one), *_describe_inputs(one)]


@resource_argument
@number_argument
@resource_command
def diff_dream(resource: Resource, number: int | None) -> CommandResult:
    """Show the change of MEMORY.md as a diff."""
    one = _get_dream(resource, number)
    data = {"id": one.id, "before": one.before, "after": one.after, "diff": one.diff}
    return data, color_diff(one.diff) if one.diff else f"Dream {one.id} did not change MEMORY.md."


@resource_argument
@number_argument
@resource_command
def undo_dream(resource: Resource, number: int | None) -> CommandResult:
    """Undo the last dream: restores MEMORY.md but keeps later edits by users.

    Its notes wait for the next dream again.
    """
    undone = resource.undo_dream(number)
    wait = "waits" if len(undone.notes) == 1 else "wait"
    notes = f", and its {count_noun(len(undone.notes), 'note')} {wait} again" if undone.notes else ""
    return dream_json(undone), f"Dream {undone.id} of {undone.resource} is undone: MEMORY.md is as before it{notes}."


dream = {"run": run, "list": list_dreams, "show": show_dream, "diff": diff_dream, "undo": undo_dream}


def describe_dream(dream: Dream) -> Iterator[str]:
    """One line for the outcome, then changed lines, failed guards, refused edits and the cost."""
    name = f"Dream {dream.id} of {dream.resource}"
    match dream.status:
        case "running":
            yield f"{name} has been running since {format_timestamp(dream.began)}: {dream.phase}."
        case "abandoned":
            yield f"{name} was abandoned at {dream.phase} and changed nothing."
        case "failed":
            yield f"{name} changed nothing ({dream.code} at {dream.phase}): {collapse_whitespace(dream.reason)}"
        case "done" | "undone":
            undone = ", since undone" if dream.status == "undone" else ""
            added, removed = _added_lines(dream.before, dream.after), _added_lines(dream.after, dream.before)
            yield (
                f"{name} is done, by {dream.by} in {dream.seconds:.2f} s{undone}: "
                f"{count_noun(len(dream.notes), 'note')} merged, {count_noun(len(added), 'line')} added to MEMORY.md, "
                f"{len(removed)} removed."
            )
            yield from (f"+ {line}" for line in added)
            yield from (f"- {line}" for line in removed)
            if dream.reason.startswith(LIMIT_REACHED):
                yield f"By rules, without a model call: {collapse_whitespace(dream.reason)}"
            elif dream.reason:
                yield f"By rules, because the model failed: {collapse_whitespace(dream.reason)}"
    yield from (f"Guard {one.guard}: {collapse_whitespace(one.detail)}" for one in dream.verdicts if not one.passed)
    yield from (f"Refused: {collapse_whitespace(reason)}" for reason in dream.refused)
    if any(dream.tokens):
        read_tokens, written_tokens = dream.tokens
        yield f"The model read {read_tokens:,} tokens and wrote {written_tokens:,}: ${dream.price:.4f}."


def dream_json(dream: Dream) -> dict[str, Any]:
    return {**dream_summary_json(dream), "before": dream.before, "after": dream.after, "diff": dream.diff}


def dream_summary_json(dream: Dream) -> dict[str, Any]:
    values = {one.name: getattr(dream, one.name) for one in fields(dream) if one.name not in ("before", "after")}
    return {
        **values,
        "began": dream.began.isoformat(),
        "ended": dream.ended.isoformat() if dream.ended else None,
        "lines": [line._asdict() for line in dream.lines],
        "verdicts": [verdict._asdict() for verdict in dream.verdicts],
    }


def color_diff(diff: str) -> Iterator[Text]:
    """The lines of a unified diff, styled."""
    return (Text(line, _DIFF_COLOURS.get(line[:1], "")) for line in printable(diff).split("\n"))


def _describe_inputs(dream: Dream) -> Iterator[str]:
    ended = f", ended {format_timestamp(dream.ended)}" if dream.ended else ""
    yield f"Began {format_timestamp(dream.began)} ({dream.trigger}){ended}."
    inputs = dream.inputs or {}
    if crystals := {kind: count for kind, count in inputs.get("crystals", {}).items() if count}:
        yield f"New crystals: {', '.join(f'{count} {kind}' for kind, count in crystals.items())}."
    if levels := inputs.get("levels"):
        yield f"Mood: {dream.mood} ({', '.join(f'{name} {level:.2f}' for name, level in levels.items())})."
    if inputs.get("rebased"):
        yield "MEMORY.md changed during the dream; the edits were applied to the new text."
    if dream.verdicts and all(verdict.passed for verdict in dream.verdicts):
        yield f"Guards passed: {', '.join(verdict.guard for verdict in dream.verdicts)}."


def _added_lines(before: str, after: str) -> list[str]:
    """Entries of `after` that are not in `before`, each with its section."""
    known = {entry for _, entry in parse_page(before).all_entries()}
    return [
        f"{section}: {collapse_whitespace(entry)}" if section else collapse_whitespace(entry)
        for section, entry in parse_page(after).all_entries()
        if entry not in known
    ]


def _get_dream(resource: Resource, number: int | None) -> Dream:
    try:
        return resource.get_dream(number)
    except NotFound:
        name = resource.name
        hint = f"`inmind dream list {name}` lists all" if resource.dreams(limit=1) else f"no dreams of {name} yet"
        raise NotFound(what="dream", name=name if number is None else number, hint=hint) from None


@contextmanager
def _show_phases() -> Generator[Callable[[str, str], None]]:
    """Show the current phase: one updated line on a terminal, one line per phase in a pipe."""
    screen = console()
    if not screen.is_terminal:
        yield lambda phase, detail: print_text(f"{phase}: {detail}" if detail else phase)
        return
    with screen.status("dreaming") as status:
        yield lambda phase, detail: status.update(Text(printable(f"{phase}  {detail}")))


@contextmanager
def _cancel_on_signal() -> Generator[Callable[[], bool]]:
    """Yield a function that is True after SIGINT or SIGTERM.

    The first signal lets the dream stop at a safe point and record why; the second raises KeyboardInterrupt.
    """
    cancelled = threading.Event()

    def cancel(*_: object) -> None:
        if cancelled.is_set():
            raise KeyboardInterrupt
        cancelled.set()

    with handle_signals(cancel, signal.SIGINT, signal.SIGTERM):
        yield cancelled.is_set


@optional_resource_argument
@click.option("--hours", default=24.0, help="Hours that the curves show.")
@choice_option("--spike", choices=SPIKES, help="Record this spike first.")
@click.option("--why", help="Reason of the spike; only with --spike.")
@resource_command
def affect(resource: Resource, hours: float, spike: str | None, why: str | None) -> CommandResult:
    """Show the affect levels, mood and recent history of a resource."""
    owned = resource.affect
    if spike is None and why is not None:
        raise InvalidInput(field="--why", value=why, expected="--spike with it")
    if spike is not None and not owned.spike(spike, why or ""):
        raise InvalidInput(field="--spike", value=spike, expected="affect to be enabled in config.toml")
    levels, mood, enabled = owned.levels.by_name, owned.mood, owned.enabled
    past = owned.history(hours, max(hours * 60 / CURVE_POINTS, MIN_MINUTES))
    history = [{"at": point.at.isoformat() if point.at else None, **point.by_name} for point in past]
    lines: list[str | Text] = [f"{resource.name} is {mood}." if enabled else "Affect is disabled in config.toml."]
    for level, value in levels.items():
        curve = _curve([point.by_name[level] for point in past], maximum=1.0)
        full = "█" * round(value * BAR_WIDTH)
        drawn = (f"{full:░<{BAR_WIDTH}}", _LEVEL_COLOURS[level])
        lines.append(Text.assemble(f"{level:<9} ", drawn, f" {value:.2f}", (f"  {curve}", _LEVEL_COLOURS[level])))
    rest = ", ".join(f"{level} {base:.2f}" for level, base in BASELINES.items())
    lines.append(f"Range 0 to 1; last {hours:g} hours. Baselines: {rest}.")
    return {"resource": resource.name, "enabled": enabled, "mood": mood, "levels": levels, "history": history}, lines


@resource_argument
@click.argument(
    "what",
    metavar=f"[{'|'.join(ENTRY_KINDS)}]",
    required=False,
    help="Kind of entry to record; without it, print the report.",
    shell_complete=complete_choices(ENTRY_KINDS),
)
@click.argument("amount", required=False, help="Exact amount, such as 12.50.")
@click.option("--currency", default="USD", help="Currency code.")
@click.option("--skill", default="", help="Skill that was sold, bought or offered.")
@click.option("--buyer", default="", help="Buyer of an earning.")
@click.option("--seller", default="", help="Seller of a spending.")
@click.option("--note", default="", help="Free text.")
@click.option("--on", metavar="DAY", help="Day of the entry; default: now.")
@resource_command
def economics(resource: Resource, what: str | None, amount: str | None, currency: str, **details: Any) -> CommandResult:
    """Show or record income, spending and offers of a resource.

    The next dream adds them to The Niche.
    """
    if what is not None:
        kind: Any = what  # validated by record()
        entry = resource.economics.record(kind, amount=amount or "0", currency=currency, **details)
        return {"id": entry}, f"Recorded as {entry}."
    for field, value in details.items():
        if value:
            raise InvalidInput(field=f"--{field}", value=value, expected="a kind of entry with it")
    report = resource.economics.report()
    lines = [line for totals in report for line in _economics_lines(totals)]
    return map(economics_json, report), lines or f"No entries for {resource.name} yet."


def _economics_lines(economics: CurrencyTotals) -> Iterator[str]:
    yield economics.currency
    sales, buyers = count_noun(economics.earnings, "sale"), count_noun(economics.buyers, "buyer")
    yield f"  earned   {format_amount(economics.earned)} in {sales}, {buyers}"
    if economics.spendings:
        yield f"  spent    {format_amount(economics.spent)}, {count_noun(economics.spendings, 'time')}"
    if economics.listed:
        yield f"  offered  {', '.join(economics.listed)}"
    if economics.top:
        yield f"  best     {', '.join(f'{skill} {format_amount(earned)}' for skill, earned in economics.top)}"
    curve = _curve([float(day) for day in economics.days], maximum=float(max(economics.days)) or 1.0)
    week, before = format_amount(economics.week), format_amount(economics.week_before)
    yield f"  7 days   {week} {curve} after {before} in the 7 days before"


def economics_json(economics: CurrencyTotals) -> dict[str, Any]:
    return {**asdict(economics), "top": dict(economics.top)}


def _curve(values: Sequence[float], maximum: float) -> str:
    """A one-line curve, scaled from 0 to `maximum`."""
    return "".join(_HEIGHTS[round(value / maximum * (len(_HEIGHTS) - 1))] for value in values)
