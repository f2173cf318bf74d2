"""The commands: parse, one call, present. An error is one line and an exit code."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, cast

import apsw
import typer
from rich.table import Column
from rich.text import Text

from inmind import CompactionReport, Memory, Mind, Origin, Rates
from inmind.crystals.crystal import KINDS, SOURCES
from inmind.crystals.note import IMPORTANCE
from inmind.crystals.query import Hit
from inmind.crystals.telling import told
from inmind.doors.demo import play
from inmind.doors.dreams import dream
from inmind.doors.replay import as_json as replay_as_json
from inmind.doors.replay import replay_files, show_replay
from inmind.doors.resources import affect, ledger, show_state
from inmind.doors.terminal import (
    AsJson,
    SessionId,
    console,
    existing_memory,
    existing_session,
    failing_in_one_line,
    known_session,
    line_by_line,
    look_into,
    on_one_line,
    plain_table,
    print_json,
    say,
)
from inmind.doors.upkeep import upkeep, worker
from inmind.entities.block import block
from inmind.errors import InvalidInput, NotFound
from inmind.frozen import frozen
from inmind.history.compact import TARGETS
from inmind.history.room import KEEP_ASKED
from inmind.journal import encode
from inmind.memory import WINDOW
from inmind.notes import stamp
from inmind.prompt.compacting.report import KeptItem, Lifted
from inmind.prompt.compacting.wanted import STRATEGIES
from inmind.replay.files import STDIN
from inmind.scratchpad.block import text_of
from inmind.text import counted, printable

app = typer.Typer(
    name="inmind",
    help="Working memory for LLM agents: look at it, and see it work.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
show = typer.Typer(help="Show what a session or a resource has in mind.", no_args_is_help=True)
app.add_typer(show, name="show")
app.add_typer(dream, name="dream")
show.command("state")(show_state)
for command in (affect, ledger, upkeep, worker):
    app.command()(command)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"inmind {version('inmind')}, SQLite {apsw.sqlite_lib_version()}")
        raise typer.Exit


@app.callback()
def options(
    home: Annotated[
        Path | None, typer.Option(help="Where memory is kept; by default $INMIND_HOME, else ~/.inmind.")
    ] = None,
    show_version: Annotated[  # noqa: ARG001 -- its callback has done the work
        bool, typer.Option("--version", help="Print the version and leave.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    look_into(home)


@app.command()
def demo(as_json: AsJson = False) -> None:
    """Play a conversation: what is sent, what it costs, what came from cache."""
    with failing_in_one_line():
        play(console(), as_json=as_json)


@app.command()
def replay(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE…", help="Recorded conversations, also as .gz or .zst; - is stdin.")
    ],
    window: Annotated[int, typer.Option(help="Tokens that the model takes; a small one shows what is cut.")] = WINDOW,
    limit: Annotated[int | None, typer.Option(min=1, help="Play only the first so many of each file.")] = None,
    as_one: Annotated[
        bool, typer.Option("--joined", help="Play all recordings of a file as one long session.")
    ] = False,
    thrifty: Annotated[
        bool, typer.Option("--thrifty", help="Compact as soon as it pays, and say what that saved.")
    ] = False,
    keep: Annotated[
        Path | None, typer.Option(help="Keep the sessions in this new folder, for `inmind --home DIR show prompt …`.")
    ] = None,
    each: Annotated[bool, typer.Option("--each", help="A row for each recording instead of each file.")] = False,
    input_price: Annotated[float, typer.Option("--input", min=0, help="Price of a million input tokens.")] = 3.0,
    cached_price: Annotated[
        float | None, typer.Option("--cached", min=0, help="Of a million from the cache; a tenth by default.")
    ] = None,
    written_price: Annotated[
        float | None, typer.Option("--written", min=0, help="Of a million written to it; a quarter more by default.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Play recorded conversations through memory: tokens, price and ids, with memory and without.

    Reads OpenAI chat lists, Anthropic messages, sessions of Claude Code, runs of tau-bench, tau2-bench,
    AgentDojo and SWE-agent, and BEAM chats. No model is called, and nothing is kept without --keep.
    """
    with failing_in_one_line():
        rates = Rates.per_million(input=input_price, cached=cached_price, written=written_price)
        replayed = replay_files(
            files, window=window, limit=limit, as_one=as_one, thrifty=rates if thrifty else None, keep=keep
        )
        if as_json:
            return print_json(replay_as_json(replayed, rates=rates, window=window))
        show_replay(console(), replayed, rates=rates, each=each)
    return None


@app.command()
def sessions(
    here: Annotated[bool, typer.Option("--here", help="Only those that began in the current folder.")] = False,
    resource: Annotated[str | None, typer.Option(help="Only those that belong to it.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the sessions of this home, the most recently used first."""
    with failing_in_one_line(), existing_memory() as memory:
        found = memory.sessions(cwd="." if here else None, resource=resource)
        if as_json:
            return print_json([{**_fields(info), "folder": str(info.folder)} for info in found])
        if not found:
            say(f"No such sessions in {memory.home}." if here or resource else f"No sessions in {memory.home} yet.")
            return None
        whole = [Column(name, no_wrap=True) for name in ("session", "resource", "said", "calls", "last used (UTC)")]
        title, cwd = (
            Column(name, no_wrap=True, ratio=share) for name, share in (("title", 2), ("working directory", 1))
        )
        table = plain_table(whole[0], title, *whole[1:], cwd, expand=True)
        for info in found:
            used = info.updated[:16].replace("T", " ")
            row = (
                info.id,
                on_one_line(info.title),
                info.resource,
                str(info.messages),
                str(info.calls),
                used,
                info.cwd,
            )
            table.add_row(*(Text(printable(cell)) for cell in row))  # a plain string would be read as markup
        line_by_line().print(table)
    return None


@show.command("prompt")
def show_prompt(
    session: SessionId,
    call: Annotated[int | None, typer.Option(help="Which call; the last by default.")] = None,
    as_json: AsJson = False,
) -> None:
    """What a call sent and why each part is in it; --json prints the request, byte for byte."""
    with failing_in_one_line(), existing_session(session) as opened:
        calls = opened.mind.standing.calls
        if not calls:
            raise NotFound(what="prompt in session", name=session, hint="none was prepared yet")
        number = calls if call is None else call
        prompt = opened.prompt(number)
        if as_json:
            compactions = [_as_json(report) for report in prompt.report.compactions]
            return print_json(
                {"call": prompt.call, "format": prompt.format, "compactions": compactions, "request": prompt.request}
            )
        say(str(opened.explain(number)))
        for report in prompt.report.compactions:
            say(f"\n-- compacted before it: {report.reason}")
            _say_compaction(report)
        for name in ("instructions", "system"):
            for text in _texts(prompt.request.get(name)):
                say(f"\n-- {name}\n{text}")
        for message in prompt.messages:
            said = "\n".join(_texts(message.get("content"))) or json.dumps(_beside_role(message), ensure_ascii=False)
            say(f"\n-- {message.get('role') or message.get('type')}\n{said}")
        for tool in prompt.tools or []:
            say(f"\n-- tool\n{json.dumps(tool, ensure_ascii=False)}")
    return None


@show.command("entities")
def show_entities(session: SessionId, as_json: AsJson = False) -> None:
    """The things in mind, as the model reads them; --json prints them as a checkpoint."""
    with failing_in_one_line(), existing_session(session) as opened:
        if as_json:
            return print_json(opened.serialize())
        entities = opened.entities
        say(block(entities))
        if pinned := [entity for entity in entities if entity.pinned]:
            say(f"\nPinned: {'; '.join(on_one_line(str(entity)) for entity in pinned)}.")
        if beyond := list(entities.beyond):
            deleted = sum(entity.deleted for entity in beyond)
            say(f"\n{counted(len(beyond), 'thing')} more known, and out of mind; {deleted} of them deleted.")
    return None


@show.command("scratchpad")
def show_scratchpad(session: SessionId, as_json: AsJson = False) -> None:
    """The agent's scratchpad, its own and that of its resource, as the model reads it."""
    with failing_in_one_line(), existing_session(session) as opened:
        held = {"thread": opened.mind.pads.by_name, "resource": opened.belongings.pads.by_name}
        if as_json:
            return print_json({scope: {name: pad.state for name, pad in pads.items()} for scope, pads in held.items()})
        shown = [(scope, name, text_of(pad.state)) for scope, pads in held.items() for name, pad in pads.items()]
        for scope, name, text in shown:
            if len(shown) > 1:
                say(f"-- {name} of the {'session' if scope == 'thread' else 'resource'}")
            say(text or "(empty)")
        if not shown:
            say("Nothing was written on it yet.")
    return None


@show.command("overview")
def show_overview(session: SessionId, as_json: AsJson = False) -> None:
    """overview.md, as the next prompt will have it."""
    with failing_in_one_line(), existing_session(session) as opened:
        text = opened.overview
        if as_json:
            return print_json({"overview": text})
        say(text.removesuffix("\n"))
    return None


@show.command("retained")
def show_retained(session: SessionId, as_json: AsJson = False) -> None:
    """What must survive every compaction, and where each of it stands now."""
    with failing_in_one_line(), existing_session(session) as opened:
        unsaid = opened.mind.history.unsaid
        placed = [(item, "memory" if item in unsaid else "conversation") for item in opened.retained]
        items = [KeptItem(item.kind, item.text, where) for item, where in placed]
        if as_json:
            return print_json([asdict(item) for item in items])
        for line in _listed(items):
            say(line)
        if not items:
            say("Nothing was said or declared yet that has to.")
    return None


@show.command("journal")
def show_journal(
    session: SessionId,
    after: Annotated[int, typer.Option(help="Only events with a higher number.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Everything that happened, one event a line and as much of it as fits; --json prints all of it."""
    with failing_in_one_line(), existing_session(session) as opened:
        events = opened.journal(after=after)
        if as_json:
            rows = [
                {
                    "seq": event.seq,
                    "id": event.id,
                    "at": event.at.isoformat(),
                    "kind": event.kind,
                    "origin": event.origin.value,
                    "trust": event.trust.name.lower(),
                    "sources": list(event.sources),
                    "payload": json.loads(encode(event.what)),
                }
                for event in events
            ]
            return print_json(rows)
        screen = line_by_line()
        for event in events:
            line = (
                f"{event.seq:>5}  {event.at:%Y-%m-%d %H:%M:%S}  {event.kind:<13} {event.origin:<9} {encode(event.what)}"
            )
            screen.print(printable(line), markup=False, overflow="ellipsis", no_wrap=True)
    return None


@app.command()
def note(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to keep; - reads it from stdin.")],
    importance: Annotated[float, typer.Option(help="From 0 to 1.")] = IMPORTANCE,
    kind: Annotated[str, typer.Option(metavar="|".join(KINDS), help="What it is about.")] = "general",
    session: Annotated[str | None, typer.Option(metavar="SESSION", help="For whom this session is.")] = None,
    resource: Annotated[str | None, typer.Option(help="For it, as its last session would.")] = None,
    as_json: AsJson = False,
) -> None:
    """Keep something for ever; without --session or --resource, in the session last used in this folder."""
    with failing_in_one_line(), existing_memory() as memory:
        if session is not None and resource is not None:
            raise InvalidInput(field="--resource", value=resource, expected="nothing beside --session")
        opened = known_session(memory, session or _last_used(memory, resource))
        taken = opened.note(_given(text), importance=importance, kind=kind, origin=Origin.USER)
        if as_json:
            return print_json({"id": taken.id, "at": taken.at.isoformat(), "resource": opened.resource})
        say(f"Noted at {stamp(taken.at)} as {taken.id}.")
    return None


@app.command()
def search(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="A question, or a few words.")],
    limit: Annotated[int, typer.Option(help="How many hits, at most.")] = 10,
    resource: Annotated[str | None, typer.Option(help="Only what belongs to it.")] = None,
    session: Annotated[str | None, typer.Option(metavar="SESSION", help="Only what was said in it.")] = None,
    kind: Annotated[list[str] | None, typer.Option(metavar="|".join(KINDS), help="Only crystals of this kind.")] = None,
    source: Annotated[list[str] | None, typer.Option(metavar="|".join(SOURCES), help="Only from there.")] = None,
    since: Annotated[str | None, typer.Option(metavar="DAY", help="Not before this day or time.")] = None,
    until: Annotated[str | None, typer.Option(metavar="DAY", help="Not after it.")] = None,
    as_of: Annotated[str | None, typer.Option(metavar="DAY", help="What was known on that day.")] = None,
    as_json: AsJson = False,
) -> None:
    """Find what was ever said, noted or seen."""
    with failing_in_one_line(), existing_memory() as memory:
        hits = memory.search(
            query,
            resource=resource,
            limit=limit,
            kinds=kind,
            sources=source,
            since=since,
            until=until,
            session=session,
            as_of=as_of,
        )
        if as_json:
            return print_json([_hit_as_json(hit) for hit in hits])
        say(told(hits) if hits else "Nothing was found.")
    return None


def _hit_as_json(hit: Hit) -> dict[str, Any]:
    crystal = hit.crystal
    return {
        "id": crystal.id,
        "score": hit.score,
        "parts": dict(hit.parts),
        "text": hit.passage,
        "before": hit.before,
        "after": hit.after,
        "kind": crystal.kind,
        "source": crystal.source,
        "resource": crystal.resource,
        "session": crystal.session,
        "path": crystal.path,
        "speaker": crystal.speaker,
        "origin": crystal.origin.value,
        "trust": crystal.trust.name.lower(),
        "at": crystal.at.isoformat(),
        "importance": crystal.importance,
        "lifecycle": crystal.lifecycle,
        "superseded_by": crystal.superseded_by,
    }


def _last_used(memory: Memory, resource: str | None) -> str:
    """The session that a note goes to where none is named."""
    if resource is None:
        info, whose = memory.latest(), {"what": "session in", "name": str(Path.cwd())}
    else:
        info = next(iter(memory.sessions(resource=resource)), None)
        whose = {"what": "session of", "name": resource}
    if info is None:
        raise NotFound(**whose, hint="`inmind sessions` lists those there are")
    return info.id


def _given(text: str) -> str:
    if text != STDIN:
        return text
    try:
        return sys.stdin.buffer.read().decode().removesuffix("\n")
    except UnicodeDecodeError as error:
        raise InvalidInput(field="TEXT", value=error.object, expected="text in UTF-8") from error


@app.command()
def compact(
    given: typer.Context,
    session: SessionId,
    target: Annotated[
        str, typer.Option(metavar="|".join(TARGETS), help="What leaves: old turns, old outputs.")
    ] = "all",
    strategy: Annotated[
        str, typer.Option(metavar="|".join(STRATEGIES), help="Say only where it is, or tell it in short too.")
    ] = "archive",
    keep_recent: Annotated[
        int, typer.Option(help="Turns, rounds of the active one, and outputs of tools that stay.")
    ] = KEEP_ASKED,
    archive_to: Annotated[
        str | None, typer.Option(metavar="PATH", help="The page for it: archive/<name>.md or detail/<name>.md.")
    ] = None,
    undo: Annotated[
        bool, typer.Option("--undo", help="Instead, send again what the last compaction took out.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Take what is old out of what the model is sent. All of it is archived, and --undo brings it back."""
    with failing_in_one_line(), existing_session(session) as opened:
        if undo:
            _check_alone(given, "--undo")
            lifted = opened.undo_compaction()
            if as_json:
                return print_json({**asdict(lifted), "version": opened.mind.seq})
            say(str(lifted))
            return None
        report = opened.compact(target, strategy=strategy, keep_recent=keep_recent, archive_to=archive_to)
        if as_json:
            return print_json({**_as_json(report), "version": opened.mind.seq})
        _say_compaction(report)
    return None


@app.command()
def undo(session: SessionId, as_json: AsJson = False) -> None:
    """Take back the last change of a session, be it a compaction; it stays in the journal."""
    with failing_in_one_line(), existing_session(session) as opened:
        before = opened.mind
        went_to, after = opened.undo(), opened.mind
        taken = _TakenBack.of(before, after)
        if as_json:
            return print_json({"reverted_to": went_to, "version": after.seq, **asdict(taken)})
        say(f"Back to how it was after event {went_to}; the reversal is event {after.seq}.")
        for line in taken.told():
            say(line)
    return None


def _check_alone(given: typer.Context, option: str) -> None:
    """Beside this option the others of a command mean nothing, and whoever gives one expects something of it."""
    for name in ("target", "strategy", "keep_recent", "archive_to"):
        source = given.get_parameter_source(name)
        if source is not None and source.name != "DEFAULT":
            field = f"--{name.replace('_', '-')}"
            raise InvalidInput(field=field, value=given.params[name], expected=f"nothing beside {option}")


def _say_compaction(report: CompactionReport) -> None:
    say(str(report))
    for line in _listed(report.items):
        say(line)
    for item in report.left_out:
        say(f"- {item.kind}, in the archive alone: {on_one_line(item.text)}")


def _listed(items: Sequence[KeptItem]) -> Iterator[str]:
    for item in items:
        where = "in memory" if item.where == "memory" else "in the conversation"
        yield f"- {item.kind}, {where}: {on_one_line(item.text)}"


def _as_json(report: CompactionReport) -> dict[str, Any]:
    return {**asdict(report), "left_out": [item._asdict() for item in report.left_out]}


@frozen(kw_only=True)
class _TakenBack:
    """What an undo has changed, as far as a person would look for it: what is sent, what was said, the pages."""

    sent_again: tuple[Lifted, ...]
    """Compactions that are no longer in force."""
    archived_again: tuple[Lifted, ...]
    """Those that are again."""
    messages: int
    """Messages that are no longer in the conversation."""
    as_before: tuple[str, ...]
    """Pages that read as they did; those of the compactions are told there."""
    removed: tuple[str, ...]
    """Pages that there were not."""

    @classmethod
    def of(cls, before: Mind, after: Mind) -> _TakenBack:
        pages = after.documents.by_path
        then, now = ({one.seq: one.what for one in mind.history.compactions} for mind in (before, after))
        lifted = sorted(then.keys() - now.keys())
        told = {path for seq in lifted for path in then[seq].archives}
        changed = [path for path, page in sorted(before.documents.by_path.items()) if page != pages.get(path)]
        return cls(
            sent_again=tuple(
                Lifted.of(seq, then[seq], [path for path in then[seq].archives if path not in pages]) for seq in lifted
            ),
            archived_again=tuple(Lifted.of(seq, now[seq], ()) for seq in sorted(now.keys() - then.keys())),
            messages=len({entry.id for entry in before.line} - {entry.id for entry in after.line}),
            as_before=tuple(path for path in changed if path in pages and path not in told),
            removed=tuple(path for path in changed if path not in pages and path not in told),
        )

    def told(self) -> Iterator[str]:
        yield from map(str, self.sent_again)
        for one in self.archived_again:
            yield f"Archived again: {counted(one.messages, 'message')}, in {', '.join(one.stay)}."
        if self.messages:
            yield f"No longer in the conversation: {counted(self.messages, 'message')}."
        if pages := sorted((*self.as_before, *(f"{path} (removed)" for path in self.removed))):
            yield f"As before: {', '.join(pages)}."


def _texts(content: object) -> list[str]:
    """The texts of a system prompt or a message's content, as the model reads them; other parts as JSON."""
    if isinstance(content, str):
        return [content]
    parts = cast(list[Mapping[str, Any]], content) if isinstance(content, list) else []
    return [str(part["text"]) if "text" in part else json.dumps(part, ensure_ascii=False) for part in parts]


def _beside_role(message: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in message.items() if key not in ("role", "content")}


def _fields(info: Any) -> dict[str, Any]:
    return {name: getattr(info, name) for name in info.__slots__}
