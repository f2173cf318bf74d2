"""Output of `inmind replay`: a table with a row per file, a comparison, and JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from statistics import mean, median
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from inmind import InmindError
from inmind.apps.cli.console import progress_bar
from inmind.apps.cli.exit_codes import SeveralErrors
from inmind.apps.replay import (
    Recording,
    ReplayReport,
    join_recordings,
    read_recordings,
    replay,
    short_name,
    sum_reports,
)
from inmind.apps.replay.report import AgentCost, IdUses, percentile
from inmind.core.text import count_noun, printable, shorten
from inmind.history.compaction.policy import CompressionPolicy
from inmind.types import Rates

MAX_LISTED_IDS = 20
"""Maximum number of ids that are printed; the JSON has all of them."""

SHORT_PROMPT_RATIO = 4
"""A prompt below this multiple of the tokens that memory adds is too short for a meaningful ratio."""

LEGEND = (
    "tokens, price: ratio with memory to without. cached: share of tokens, with memory.",
    "held: ids in the entity window when the agent used them. lost/without: ids missing",
    "in the prompt, with memory / without. ms: median time of prepare.",
)

FileReports = list[tuple[str, list[ReplayReport]]]


def replay_files(
    paths: Sequence[str],
    *,
    window: int,
    limit: int | None = None,
    as_one: bool = False,
    cost_saving: Rates | None = None,
    memory_tools: bool = True,
    keep: Path | None = None,
) -> FileReports:
    """Replay all files; with `cost_saving` also with the default policy, for comparison."""
    recorded = list(_read_all(paths, limit))
    if as_one:
        recorded = [
            (path, [join_recordings(several, name=short_name(path))] if several else []) for path, several in recorded
        ]
    recordings = [recording for _, several in recorded for recording in several]
    if cost_saving is None:
        results = replay(recordings, window=window, memory_tools=memory_tools, keep=keep)
    else:
        early = CompressionPolicy.when_it_pays(cost_saving)
        early_results = replay(recordings, window=window, compression=early, memory_tools=memory_tools, keep=keep)
        default_results = replay(recordings, window=window, memory_tools=memory_tools)
        pairs = zip(early_results, default_results, strict=True)
        results = (replace(report_early, when_full=report_default.memory) for report_early, report_default in pairs)
    with progress_bar("replaying") as update:
        reports: list[ReplayReport] = []
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


def show_replay(console: Console, replayed: FileReports, *, rates: Rates, each: bool = False) -> None:
    files = [sum_reports(reports, name=short_name(path)) for path, reports in replayed]
    whole = sum_reports(files, name="total")
    rows = [report for _, reports in replayed for report in reports] if each else files
    console.print(_table([*rows, whole] if len(rows) != 1 else rows, rates))
    console.print()
    if whole.prompts or whole.memory.did_not_fit:
        for line in LEGEND:
            console.print(line, style="dim")
        console.print()
        console.print(_comparison(whole, rates))
        console.print()
    for sentence in (*_skipped_recordings(replayed), *_summary(whole, rates)):
        console.print(Text(printable(sentence)))
    for line in _list_problems(whole):
        console.print(Text(printable(line)), soft_wrap=True)


def replay_json(replayed: FileReports, *, rates: Rates, window: int) -> dict[str, Any]:
    files = [sum_reports(reports, name=path) for path, reports in replayed]
    return {
        "window": window,
        "price_of_a_million": {
            "input": round(rates.uncached * 1e6, 6),
            "cached": round(rates.cached * 1e6, 6),
            "written": round(rates.written * 1e6, 6),
        },
        "files": [
            {**file.as_json(rates), "each": [report.as_json(rates) for report in reports]}
            for file, (_, reports) in zip(files, replayed, strict=True)
        ],
        "total": sum_reports(files, name="total").as_json(rates),
    }


def _table(rows: Sequence[ReplayReport], rates: Rates) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("recording", overflow="fold", ratio=1)
    for heading in ("prompts", "tokens", "cached", "price", "ids", "held", "lost/without", "ms"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        style = "bold" if row is rows[-1] and row.name == "total" else ""
        table.add_row(Text(printable(row.name)), *_row_cells(row, rates), style=style)
    return table


def _row_cells(report: ReplayReport, rates: Rates) -> tuple[str, ...]:
    bare = report.bare.usage.tokens
    return (
        f"{report.prompts}",
        _format_ratio(report.memory.usage.tokens / bare if bare else None),
        f"{report.memory.usage.cached_share:.0%}",
        _format_ratio(report.price_ratio(rates)),
        f"{len(report.ids)}",
        _format_share(report.ids.held_share),
        f"{report.ids.lost}/{report.ids.lost_without_memory}",
        f"{1000 * median(report.seconds):.1f}" if report.seconds else "-",
    )


def _comparison(report: ReplayReport, rates: Rates) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("", no_wrap=True)
    for heading in ("with memory", "without", "ratio", "full history", "ratio"):
        table.add_column(heading, justify="right", no_wrap=True)

    def row(
        label: str, format_cost: Callable[[AgentCost], str], ratio: Callable[[AgentCost], float | None] | None = None
    ) -> None:
        others = (
            (format_cost(other), _format_ratio(ratio(other)) if ratio else "") for other in (report.bare, report.full)
        )
        table.add_row(label, format_cost(report.memory), *chain.from_iterable(others))

    row("tokens sent", lambda side: f"{side.usage.tokens:,}", lambda side: report.token_ratio(against=side))
    row("served from cache", lambda side: f"{side.usage.cached_share:.1%}")
    row("price", lambda side: f"${side.usage.price(rates):,.4f}", lambda side: report.price_ratio(rates, against=side))
    table.add_row("ids lost", f"{report.ids.lost:,}", f"{report.ids.lost_without_memory:,}", "", "0")
    row("messages cut", lambda side: f"{side.cut_messages:,}")
    row("tokens cut", lambda side: f"{side.cut_tokens:,}")
    row("calls that did not fit", lambda side: f"{side.did_not_fit:,}")
    return table


def _summary(report: ReplayReport, rates: Rates) -> Iterator[str]:
    if report.prompts:
        yield from _describe_uses(report.ids, "id")
        yield from _describe_uses(report.names, "name") if report.names else ()
        yield from _describe_sizes(report)
        yield from _describe_compactions(report, rates)
        yield from _describe_prompts(report)
        yield (
            f"prepare: {1000 * median(report.seconds):.1f} ms (median), "
            f"{1000 * percentile(report.seconds, 95):.1f} ms (p95)."
        )
    if report.left_out:
        yield f"Left out: {', '.join(f'{count} {kind}' for kind, count in sorted(report.left_out.items()))}."


def _describe_uses(uses: IdUses, noun: str) -> Iterator[str]:
    if not uses:
        yield f"The tool calls use no {noun}s."
        return
    yield (
        f"Of {count_noun(len(uses), noun)} in tool calls {uses.known} had appeared before "
        f"({uses.user_given} first from the user): {uses.held} held, {uses.visible} only in the history."
    )
    if uses.lost:
        yield f"{uses.lost} were missing in the prompt, {uses.lost_though_held} of them held but cut from the block."


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
    compactions = report.compactions
    if compactions:
        reasons = ", ".join(f"{count} because {reason}" for reason, count in sorted(compactions.by_reason.items()))
        yield (
            f"{count_noun(len(compactions), 'compaction')} ({reasons}) moved "
            f"{count_noun(compactions.messages, 'message')} with {compactions.tokens:,} tokens into "
            f"{count_noun(compactions.archives, 'archive page')}; the largest stub has "
            f"{compactions.largest_stub:,} tokens."
        )
    if report.when_full is not None:
        ratio = report.price_ratio(rates, against=report.when_full)
        yield f"Compacting as soon as it saves cost costs {_format_ratio(ratio)} of compacting only a full window."


def _describe_prompts(report: ReplayReport) -> Iterator[str]:
    yield (
        f"Of {count_noun(report.prompts, 'prompt')} {report.over_window} exceeded the window; {report.unpaired} calls "
        f"or results were unpaired; {len(report.missing)} of {report.expected_items:,} retained items were missing."
    )
    if report.omitted:
        yield f"{report.omitted:,} more did not fit, and the prompt stated that."


def _skipped_recordings(replayed: FileReports) -> Iterator[str]:
    """Files and recordings without anything to replay."""
    for path, reports in replayed:
        file_report = sum_reports(reports, name=short_name(path))
        skip_reasons = Counter(report.skip_reason for report in reports if report.skip_reason)
        if file_report.skip_reason:
            yield f"Nothing was replayed in {file_report.name}: {file_report.skip_reason}."
        else:
            for why, count in skip_reasons.items():
                recordings = count_noun(len(reports), "recording")
                yield f"Nothing was replayed in {count} of {recordings} of {file_report.name}: {why}."


def _list_problems(report: ReplayReport) -> Iterator[str]:
    lost = [use for use in report.ids.each if use.lost]
    lost_names = [use for use in report.names.each if use.lost]
    invented = [use for use in report.ids.each if use.never_seen]
    for problem, noun, uses in (
        ("Lost", "id", lost),
        ("Lost", "name", lost_names),
        ("Never seen before", "id", invented),
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


def _format_share(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"
