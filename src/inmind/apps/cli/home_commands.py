"""Commands about a whole home: `doctor`, `export` and `import`."""

from __future__ import annotations

import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import date
from itertools import groupby
from pathlib import Path
from typing import BinaryIO, cast

import click
from click.exceptions import Exit
from rich.text import Text

from inmind.apps.cli.console import (
    CommandResult,
    json_option,
    open_existing_memory,
    print_json,
    print_lines,
    prints_result,
    progress_bar,
    resource_option,
    selected_place,
)
from inmind.apps.cli.exit_codes import STORAGE
from inmind.apps.doctor import DoctorReport, Verdict, run_checks
from inmind.core.paths import redact_url
from inmind.core.text import count_noun, printable
from inmind.errors import InvalidInput
from inmind.memory.bundle.export_bundle import Exported, remove_leftovers, staging_folder
from inmind.memory.bundle.import_bundle import Imported, open_bundle
from inmind.memory.memory import Memory
from inmind.store.file_operations import fsync_folder, make_private_folder

STDIO = "-"

_MAX_SIMILAR = 5
"""Findings of one check that are printed; --json has all of them."""

_COLOURS = {"ok": "dim", "warning": "yellow", "trouble": "bold red"}
_INDENT = " " * 11


@click.option("--offline", is_flag=True, help="Make no network requests.")
@json_option
def doctor(offline: bool, as_json: bool) -> None:
    """Check a home for problems and print how to fix them. Changes nothing.

    Works even if the home cannot be opened. Exits with 0 if there are no problems or only warnings, and with 5 if
    something cannot be opened, stored or trusted.
    """
    with progress_bar("checking") as update, _mute_log_warnings():
        report = run_checks(
            selected_place(), online=not offline, watch=lambda step, done, total: update(done, total, step)
        )
    if as_json:
        findings = [
            {"subject": one.subject, "check": one.check, "verdict": one.verdict, "seen": one.message, "fix": one.fix}
            for one in report.findings
        ]
        print_json({"home": str(report.home), "verdict": report.verdict, "findings": findings})
    else:
        print_lines(Text(printable(line), style) for line, style in _report_lines(report))
    if report.verdict is Verdict.TROUBLE:
        raise Exit(STORAGE)


def _report_lines(report: DoctorReport) -> Iterator[tuple[str, str]]:
    """Each line with its style."""
    for subject, about in groupby(report.findings, key=lambda finding: finding.subject):
        yield f"{subject}", "bold"
        for _, similar in groupby(about, key=lambda finding: (finding.check, finding.verdict)):
            findings = list(similar)
            for one in findings[:_MAX_SIMILAR]:
                yield f"  {one.verdict:<8} {one.check:<12} {one.message}", _COLOURS[one.verdict]
                if one.fix:
                    yield f"{_INDENT}fix: {one.fix}", ""
            if more := len(findings[_MAX_SIMILAR:]):
                yield f"{_INDENT}and {more} more of this kind; --json lists all", "dim"
        yield "", ""
    counts = {verdict: sum(one.verdict == verdict for one in report.findings) for verdict in ("trouble", "warning")}
    summary = ", ".join(count_noun(count, verdict) for verdict, count in counts.items() if count)
    yield f"{report.home}: {summary or 'no problems found'}.", _COLOURS[report.verdict] if summary else "green"


@contextmanager
def _mute_log_warnings() -> Generator[None]:
    """Hide log warnings that repeat a finding, unless debug logs are on."""
    log = logging.getLogger("inmind")
    before = log.level
    if not log.isEnabledFor(logging.DEBUG):
        log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)


@click.argument("to", metavar="[FILE]", required=False, help="Target file; - is stdout. Default: inmind-DATE.inmind.")
@resource_option
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@json_option
def export(to: str | None, resource: str | None, force: bool, as_json: bool) -> None:
    """Export a home, or one resource, into one file. The home may be in use.

    Edits that users made to live files are imported first. The file is read back and verified before it gets its name.
    With --resource, the file has everything of that resource: pages, dreams and all sessions.
    """
    if to == STDIO:
        return _export_to_stdout(resource, as_json=as_json)
    file = to or f"inmind-{date.today().isoformat()}.inmind"
    with open_existing_memory(embedder=None) as memory, progress_bar("exporting") as watch:
        exported = memory.export(file, resource=resource, overwrite=force, watch=watch)
    return print_json(asdict(exported)) if as_json else print_lines(_describe_export(exported))


@click.argument("file", help="A file written by `inmind export`; - is stdin.")
@click.option("--into-new-home", "only_new", is_flag=True, help="Fail if the home is not empty.")
@prints_result
def import_(file: str, only_new: bool = False) -> CommandResult:
    """Import a file written by `inmind export`, all of it or nothing.

    Events that exist already are skipped, and streams that the file continues are continued; importing a file twice has
    no further effect. If a stream has diverged, the import is refused and the stream is named. The home is locked for
    writers during the import, so import a large file while no agents run. Only import files that you trust as much as
    this memory: a bundle declares the origin of every text.
    """
    with _open_bundle(file) as bundle, _open_target() as memory, progress_bar("importing") as watch:
        imported = memory.import_bundle(bundle, only_new=only_new, watch=watch)
    place = selected_place()
    home = redact_url(place) if isinstance(place, str) else str(place)
    return {"home": home, **asdict(imported)}, _describe_import(imported, home)


def _export_to_stdout(resource: str | None, *, as_json: bool) -> None:
    """Write, read back and verify the bundle before its first byte is sent to stdout."""
    if as_json:
        raise InvalidInput(field="--json", expected="a FILE: it cannot be combined with a bundle on stdout")
    if sys.stdout.isatty():
        raise InvalidInput(field="FILE", value=STDIO, expected="stdout to be a pipe or a file, not a terminal")
    with staging_folder(Path(tempfile.gettempdir()) / "bundle") as folder:
        with open_existing_memory(embedder=None) as memory, progress_bar("exporting") as watch:
            exported = memory.export(folder / "bundle", resource=resource, watch=watch)
        with exported.path.open("rb") as written:
            shutil.copyfileobj(written, sys.stdout.buffer)
    sys.stdout.buffer.flush()
    for line in exported.left_out:
        print(printable(f"inmind: left out: {line}"), file=sys.stderr)


@contextmanager
def _open_bundle(file: str) -> Generator[BinaryIO]:
    """A seekable file: a bundle is read twice, so stdin is copied to a temporary file first."""
    if file != STDIO:
        with open_bundle(Path(file)) as bundle_file:
            yield bundle_file
        return
    if sys.stdin.isatty():
        raise InvalidInput(field="FILE", value=STDIO, expected="a bundle on stdin, not a terminal")
    with tempfile.TemporaryFile() as spooled:
        shutil.copyfileobj(sys.stdin.buffer, spooled)
        spooled.flush()
        yield cast(BinaryIO, spooled)


@contextmanager
def _open_target() -> Generator[Memory]:
    """The memory to import into.

    A new home is built in a staging folder and renamed when it is complete.
    """
    place = selected_place()
    if isinstance(place, Path):
        place = place.expanduser().absolute()
        if not os.path.exists(place):
            make_private_folder(place.parent)
            with staging_folder(place) as folder:
                with Memory.open(staged := folder / "home", embedder=None) as memory:
                    yield memory
                os.rename(staged, place)
                fsync_folder(place.parent)
            return
        remove_leftovers(place)
    with Memory.open(place, embedder=None) as memory:
        yield memory


def _describe_export(exported: Exported) -> Iterator[str]:
    counted = {"session": exported.sessions, "resource": exported.resources, "event": exported.events}
    counts = ", ".join(count_noun(number, noun) for noun, number in counted.items())
    extra_files = f" and {count_noun(exported.extra_files, 'extra file')}" if exported.extra_files else ""
    yield f"Exported {counts}{extra_files} to {exported.path}: {exported.bytes:,} bytes, verified."
    yield f"SHA-256 {exported.sha256}"
    for name in exported.left_out:
        yield f"Left out: {name} (too large, not a regular file, or a name that differs from another only in case)"


def _describe_import(imported: Imported, home: str) -> Iterator[str]:
    if imported.events or imported.keys or imported.extra_files:
        streams = f"{imported.added} new, {imported.extended} continued, {imported.unchanged} unchanged"
        yield f"Imported {count_noun(imported.events, 'event')} into {home}; sessions and resources: {streams}."
    else:
        yield f"Everything is in {home} already; nothing was changed."
    for name in imported.extra_files:
        yield f"Extra file: {name}"
    for name in imported.left_out:
        yield f"Left out: {name} (a database cannot store extra files)"
    if imported.missing_sources:
        yield f"{count_noun(imported.missing_sources, 'event')} without their source events."
