"""`inmind replay`: the effect of memory on recorded conversations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from statistics import mean, median
from typing import Any

import click
from rich.table import Column, Table
from rich.text import Text

from inmind.apps.cli.console import CommandResult, Line, prints_result, progress_bar, right_aligned, table
from inmind.apps.cli.exit_codes import SeveralErrors
from inmind.apps.replay import (
    Recording,
    ReplayReport,
    join_recordings,
    read_recordings,
    short_name,
    sum_reports,
)
from inmind.apps.replay import replay as replay_recordings
from inmind.apps.replay.report import AgentCost, percentile
from inmind.core.text import count_noun, shorten
from inmind.core.tokens import Rates
from inmind.errors import InmindError
from inmind.history.compaction.policy import CompressionPolicy
from inmind.memory.session_opener import DEFAULT_WINDOW

PRICE = click.FloatRange(min=0)

MAX_LISTED_IDS = 20
"""Maximum number of ids that are printed; the JSON has all of them."""

SHORT_PROMPT_RATIO = 4
"""A prompt below this multiple of the tokens that memory adds is too short for a meaningful ratio."""

LEGEND = (
    "tokens, price: ratio with memory to without. cached: share of tokens, with memory. held: ids in the entity window "
    "when the agent used them. lost/without: ids missing in the prompt, with memory / without. ms: median time of "
    "prepare."
)

FileReports = list[tuple[str, list[ReplayReport]]]
Ratio = Callable[[AgentCost], str]


@click.argument(
    "files", metavar="FILE…", nargs=-1, required=True, help="Recorded conversations, also as .gz or .zst; - is stdin."
)
@click.option("--window", default=DEFAULT_WINDOW, help="Context window in tokens; a small one shows what is cut.")
@click.option("--limit", type=click.IntRange(min=1), help="Maximum number of recordings per file.")
@click.option("--joined", "as_one", is_flag=True, help="Replay all recordings of a file as one long session.")
@click.option("--cost-saving", is_flag=True, help="Compact as soon as it saves cost, and report the saving.")
@click.option("--memory-tools/--no-memory-tools", default=True, help="Count the memory tool that a session offers.")
@click.option(
    "--keep",
    type=Path,
    metavar="DIR",
    help="Save the sessions in this new folder, for `inmind --home DIR show prompt …`.",
)
@click.option("--each", is_flag=True, help="Print a row per recording instead of per file.")
@click.option("--input", "input_price", type=PRICE, default=3.0, help="Price per million input tokens.")
@click.option(
    "--cached", "cached_price", type=PRICE, help="Price per million cached tokens; default: a tenth of --input."
)
@click.option(
    "--written",
    "written_price",
    type=PRICE,
    help="Price per million tokens written to the cache; default: 1.25 of --input.",
)
@prints_result
def replay(
    files: tuple[str, ...],
    each: bool,
    cost_saving: bool,
    input_price: float,
    cached_price: float | None,
    written_price: float | None,
    **options: Any,
) -> CommandResult:
    """Replay recorded conversations through memory.

    Compares tokens, price and ids with and without memory.
    Reads OpenAI chat lists, Anthropic messages, sessions of Claude Code, runs of tau-bench, tau2-bench, AgentDojo and
    SWE-agent, and BEAM chats. No model is called, and nothing is saved without --keep.
    """
    rates = Rates.per_million(input=input_price, cached=cached_price, written=written_price)
    replayed = _replay_files(files, cost_saving=rates if cost_saving else None, **options)
    whole = sum_reports(chain.from_iterable(reports for _, reports in replayed), name="total")
    prices = {"input": rates.uncached, "cached": rates.cached, "written": rates.written}
    data = {
        "window": options["window"],
        "price_of_a_million": {name: round(price * 1e6, 6) for name, price in prices.items()},
        "files": [
            {**sum_reports(reports, name=path).as_json(rates), "each": [report.as_json(rates) for report in reports]}
            for path, reports in replayed
        ],
        "total": whole.as_json(rates),
    }
    return data, _describe_replay(replayed, whole, rates, each=each)


def _replay_files(
    paths: Sequence[str], limit: int | None, as_one: bool, cost_saving: Rates | None, keep: Path | None, **options: Any
) -> FileReports:
    """Replay all files; with `cost_saving` also with the default policy, for comparison."""
    recorded = list(_read_all(paths, limit))
    if as_one:
        recorded = [
            (path, [join_recordings(several, name=short_name(path))] if several else []) for path, several in recorded
        ]
    recordings = [recording for _, several in recorded for recording in several]
    policy: dict[str, Any] = {} if cost_saving is None else {"compression": CompressionPolicy.when_it_pays(cost_saving)}
    results = replay_recordings(recordings, keep=keep, **options, **policy)
    if cost_saving is not None:
        default = replay_recordings(recordings, **options)
        results = (replace(early, when_full=late.memory) for early, late in zip(results, default, strict=True))
    reports: list[ReplayReport] = []
    with progress_bar("replaying") as update:
        for report in results:
            reports.append(report)
            update(len(reports), len(recordings))
    next_report = iter(reports)
    return [(path, [next(next_report) for _ in several]) for path, several in recorded]


def _read_all(paths: Sequence[str], limit: int | None) -> Iterator[tuple[str, list[Recording]]]:
    """Read all files before the replay, so that broken files are reported at once."""
    broken: list[InmindError] = []
    for path in paths:
        try:
            yield path, read_recordings(path, limit=limit)
        except InmindError as error:
            broken.append(error)
    if broken:
        raise SeveralErrors(*broken)


def _describe_replay(replayed: FileReports, whole: ReplayReport, rates: Rates, *, each: bool) -> Iterator[Line]:
    files = [sum_reports(reports, name=short_name(path)) for path, reports in replayed]
    rows = [report for _, reports in replayed for report in reports] if each else files
    headings = right_aligned("prompts", "tokens", "cached", "price", "ids", "held", "lost/without", "ms")
    columns = (Column("recording", overflow="fold", ratio=1), *headings)
    cells: list[Sequence[str | Text]] = [_cells(row, rates) for row in rows]
    if len(rows) != 1:
        cells.append([Text(cell, "bold") for cell in _cells(whole, rates)])
    yield table(columns, cells)
    yield ""
    if whole.prompts or whole.memory.did_not_fit:
        yield table([Column()], [[LEGEND]], show_header=False, style="dim")
        yield ""
        yield _comparison(whole, rates)
        yield ""
    sentences = (*_skipped_recordings(replayed, files), *_summary(whole, rates))
    yield table([Column()], ([sentence] for sentence in sentences), show_header=False)
    yield from _list_problems(whole)


def _cells(report: ReplayReport, rates: Rates) -> list[str]:
    ids, bare = report.id_counts(), report.bare.usage.tokens
    return [
        report.name,
        f"{report.prompts}",
        _format_ratio(report.memory.usage.tokens / bare if bare else None),
        f"{report.memory.usage.cached_share:.0%}",
        _format_ratio(report.price_ratio(rates)),
        f"{ids['used']}",
        f"{ids['held_share']:.0%}" if ids["known"] else "-",
        f"{ids['lost']}/{ids['lost_without_memory']}",
        f"{1000 * median(report.seconds):.1f}" if report.seconds else "-",
    ]


def _comparison(report: ReplayReport, rates: Rates) -> Table:
    def row(label: str, format_cost: Callable[[AgentCost], str], ratio: Ratio = lambda _: "") -> list[str]:
        others = ((format_cost(other), ratio(other)) for other in (report.bare, report.full))
        return [label, format_cost(report.memory), *chain.from_iterable(others)]

    ids = report.id_counts()
    rows = (
        row(
            "tokens sent",
            lambda side: f"{side.usage.tokens:,}",
            lambda side: _format_ratio(report.token_ratio(against=side)),
        ),
        row("served from cache", lambda side: f"{side.usage.cached_share:.1%}"),
        row(
            "price",
            lambda side: f"${side.usage.price(rates):,.4f}",
            lambda side: _format_ratio(report.price_ratio(rates, against=side)),
        ),
        ["ids lost", f"{ids['lost']:,}", f"{ids['lost_without_memory']:,}", "", "0"],
        row("messages cut", lambda side: f"{side.cut_messages:,}"),
        row("tokens cut", lambda side: f"{side.cut_tokens:,}"),
        row("calls that did not fit", lambda side: f"{side.did_not_fit:,}"),
    )
    return table(("", *right_aligned("with memory", "without", "ratio", "full history", "ratio")), rows)


def _summary(report: ReplayReport, rates: Rates) -> Iterator[str]:
    if report.prompts:
        yield from _describe_uses(report.id_counts(), "id")
        if (names := report.id_counts(names=True))["used"]:
            yield from _describe_uses(names, "name")
        yield from _describe_sizes(report)
        yield from _describe_compactions(report, rates)
        yield (
            f"Of {count_noun(report.prompts, 'prompt')} {report.over_window} exceeded the window; {report.unpaired} "
            f"calls or results were unpaired; {len(report.missing)} of {report.expected_items:,} retained items were "
            "missing."
        )
        if report.omitted:
            yield f"{report.omitted:,} more did not fit, and the prompt stated that."
        yield (
            f"prepare: {1000 * median(report.seconds):.1f} ms (median), "
            f"{1000 * percentile(report.seconds, 95):.1f} ms (p95)."
        )
    if report.left_out:
        yield f"Left out: {', '.join(f'{count} {kind}' for kind, count in sorted(report.left_out.items()))}."


def _describe_uses(counts: dict[str, Any], noun: str) -> Iterator[str]:
    if not counts["used"]:
        yield f"The tool calls use no {noun}s."
        return
    yield (
        f"Of {count_noun(counts['used'], noun)} in tool calls {counts['known']} had appeared before "
        f"({counts['user_given']} first from the user): {counts['held']} held, {counts['visible']} only in the history."
    )
    if counts["lost"]:
        held = counts["lost_though_held"]
        yield f"{counts['lost']} were missing in the prompt, {held} of them held but cut from the block."


def _describe_sizes(report: ReplayReport) -> Iterator[str]:
    added = mean(report.memory_tokens)
    yield (
        f"Memory adds {added:.0f} tokens to a prompt on average: its tool with {report.tool_tokens}, guide, overview, "
        f"meter, and entities with {mean(report.entity_tokens):.0f} ({max(report.entity_tokens)} at most)."
    )
    bare = report.bare.usage
    average = bare.tokens / bare.calls if bare.calls else 0
    if 0 < average < SHORT_PROMPT_RATIO * added:
        yield (
            f"Long conversations add about the same number. Prompts here have {average:.0f} tokens without memory, so "
            "the ratios say little about long conversations."
        )


def _describe_compactions(report: ReplayReport, rates: Rates) -> Iterator[str]:
    counts = report.compactions
    if counts["count"]:
        reasons = ", ".join(f"{count} because {reason}" for reason, count in sorted(counts["by_reason"].items()))
        messages, archives = count_noun(counts["messages"], "message"), count_noun(counts["archives"], "archive page")
        yield (
            f"{count_noun(counts['count'], 'compaction')} ({reasons}) moved {messages} with {counts['tokens']:,} "
            f"tokens into {archives}; the largest stub has {counts['largest_stub']:,} tokens."
        )
    if report.when_full is not None:
        ratio = report.price_ratio(rates, against=report.when_full)
        yield f"Compacting as soon as it saves cost costs {_format_ratio(ratio)} of compacting only a full window."


def _skipped_recordings(replayed: FileReports, files: Sequence[ReplayReport]) -> Iterator[str]:
    """Files and recordings without anything to replay."""
    for file, (_, reports) in zip(files, replayed, strict=True):
        if file.skip_reason:
            yield f"Nothing was replayed in {file.name}: {file.skip_reason}."
            continue
        for why, count in Counter(report.skip_reason for report in reports if report.skip_reason).items():
            yield f"Nothing was replayed in {count} of {count_noun(len(reports), 'recording')} of {file.name}: {why}."


def _list_problems(report: ReplayReport) -> Iterator[str]:
    for problem, noun, uses in (
        ("Lost", "id", report.lost()),
        ("Lost", "name", report.lost(names=True)),
        ("Never seen before", "id", report.never_seen),
    ):
        if uses:
            yield f"{problem}: {count_noun(len(uses), noun)}"
        for use in uses[:MAX_LISTED_IDS]:
            yield f"  {use.id}  {use.tool}({use.argument}), prompt {use.prompt} of {use.recording}"
        if len(uses) > MAX_LISTED_IDS:
            yield f"  and {len(uses) - MAX_LISTED_IDS} more: see --json"
    for one in report.missing[:MAX_LISTED_IDS]:
        yield f"Missing: {one.kind} {shorten(one.text, 60)!r}, prompt {one.prompt} of {one.recording}"


def _format_ratio(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f}x"
