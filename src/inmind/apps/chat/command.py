"""`inmind chat`: the chat loop and its commands, such as /show and /undo.

On a terminal an error is printed and the chat continues. In a pipe the first error ends the process, with its exit
code.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext, redirect_stdout
from datetime import datetime
from getpass import getuser
from pathlib import Path
from typing import Any, NamedTuple

import click
from click.exceptions import Exit

from inmind.apps.chat.conversation import ChatConversation
from inmind.apps.chat.endpoint import (
    SETUP_HELP,
    complete_endpoint,
    describe_endpoint,
    explain_error,
    exposes_key,
    find_endpoint,
    missing_key,
)
from inmind.apps.chat.terminal import (
    ChatOutput,
    ChatTurn,
    describe_exchange,
    line_editor,
    pipe_reader,
    read_messages,
    status_line,
    terminal_reader,
)
from inmind.apps.cli import resource_commands, show
from inmind.apps.cli.console import (
    complete_resources,
    complete_sessions,
    json_option,
    print_lines,
    print_text,
    read_settings,
    selected_place,
)
from inmind.apps.cli.exit_codes import MODEL, exit_with, print_error
from inmind.apps.cli.session_commands import describe_compaction
from inmind.apps.signals import InterruptHandler
from inmind.core import http
from inmind.core.events.base import Origin
from inmind.core.frozen import frozen
from inmind.core.paths import ANONYMOUS
from inmind.core.settings import ModelSettings
from inmind.core.text import count_noun, shorten
from inmind.documents.notes_page import format_timestamp
from inmind.errors import InmindError, InvalidInput, ModelFailed, NotFound
from inmind.memory.memory import Memory
from inmind.memory.session_opener import DEFAULT_WINDOW
from inmind.search.render import render_hits
from inmind.session.session import Session

DEFAULT_USER = "me"
"""Resource if the system has no user name."""


@click.option("--model", "name", metavar="NAME", default="", help="Model; default: the only one of the endpoint.")
@click.option(
    "--base-url", "url", metavar="URL", default="", help="URL of the endpoint, such as http://127.0.0.1:8080/v1."
)
@click.option("--provider", metavar="openai|anthropic", default="", help="Protocol of the endpoint.")
@click.option("--session", metavar="SESSION", help="Continue or create this session.", shell_complete=complete_sessions)
@click.option("--continue", "continue_last", is_flag=True, help="Continue the last session of this folder.")
@click.option(
    "--resource",
    metavar="RESOURCE",
    help="Owner of the memory; default: your user name.",
    shell_complete=complete_resources,
)
@click.option(
    "--key-env",
    metavar="NAME",
    default="",
    help="Environment variable with the API key; default: the provider's.",
)
@click.option("--window", metavar="TOKENS", default=0, help="Context window; default: as the endpoint reports.")
@click.option(
    "--timeout",
    "seconds",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    default=0.0,
    help="Timeout without any data.",
)
@click.option("--no-tools", is_flag=True, help="Offer no tools, for a model that cannot call them.")
@json_option
def chat(
    session: str | None,
    continue_last: bool,
    resource: str | None,
    no_tools: bool,
    as_json: bool,
    **endpoint_options: Any,
) -> None:
    """Chat with a model that has working memory.

    The endpoint is taken from the options, else from [model] in config.toml, else from the environment: OPENAI_API_KEY
    with OPENAI_BASE_URL, or ANTHROPIC_API_KEY with ANTHROPIC_BASE_URL. A local server needs no key. If stdin is a pipe,
    each line is a message and only the answers are printed, with --json one object per line. /help lists the commands
    of the chat.
    """
    output = ChatOutput(interactive=sys.stdin.isatty() and sys.stdout.isatty() and not as_json, as_json=as_json)
    options = ModelSettings(**endpoint_options)
    selected = find_endpoint(options, read_settings().model, os.environ)
    if selected is None:
        if variable := missing_key(options):
            exit_with("NOT_FOUND", f"{variable} is not set; --base-url can name an endpoint without a key")
        print(SETUP_HELP, file=sys.stderr)
        exit_with("NOT_FOUND", "no endpoint configured; `inmind demo` needs none")
    if exposes_key(selected, os.environ):
        print(f"inmind: {selected.key_env} is sent to {selected.url} unencrypted", file=sys.stderr)
    # A user can retry; a pipe cannot, so the client does.
    retry_delays = () if output.interactive else http.RETRY_DELAYS_SECONDS
    server = http.HttpEndpoint(url=selected.url, key_env=selected.key_env, retry_delays=retry_delays)
    try:
        endpoint = complete_endpoint(selected, server)
    except ModelFailed as error:
        exit_with(error.code, explain_error(error, selected))
    with Memory.open(selected_place()) as memory:
        id, interrupts = _session_id(memory, session, resource, continue_last=continue_last), InterruptHandler()

        def open_session() -> Session:
            # A new session belongs to the user of this system, so that the next chat shares its memory.
            owner = resource if resource is not None or id in memory else _user_name()
            window = endpoint.window or DEFAULT_WINDOW
            return memory.session(id, resource=owner, window=window, memory_tools=not no_tools)

        conversation = ChatConversation(open_session, endpoint, server, output, interrupts)
        loop = Chat(id, memory, conversation, output, interrupts)
        with interrupts.install(), line_editor(memory.home) if output.interactive else nullcontext():
            if output.interactive:
                memory.start_upkeep()
                loop.greet()
            read = terminal_reader(interrupts) if output.interactive else pipe_reader(interrupts)
            loop.run(read_messages(read))


def _session_id(memory: Memory, session: str | None, resource: str | None, *, continue_last: bool) -> str:
    if session is not None and continue_last:
        raise InvalidInput(field="--continue", expected="no --session: the two cannot be combined")
    if session is not None:
        return session
    if not continue_last:
        return f"chat-{datetime.now():%Y-%m-%d}-{secrets.token_hex(3)}"
    latest = memory.latest(resource=resource)
    if latest is None:
        raise NotFound(what="session in", name=str(Path.cwd()), hint="without --continue a new one is created")
    return latest.id


def _user_name() -> str:
    try:
        return getuser()
    except (KeyError, OSError):  # for example in a container without an entry for the user id
        return DEFAULT_USER


PREFIX = "/"
QUIT_WORDS = ("exit", "quit")
"""Words that quit the chat, with or without a slash."""


@frozen
class Chat:
    id: str
    """Id of the session, which is created with the first message."""
    memory: Memory
    conversation: ChatConversation
    output: ChatOutput
    interrupts: InterruptHandler

    @property
    def is_started(self) -> bool:
        return self.id in self.memory

    def greet(self) -> None:
        """Print the endpoint, the session id, and for a resumed session its last exchange."""
        conversation, output = self.conversation, self.output
        output.print_note(
            f"{describe_endpoint(conversation.endpoint)}, session {self.id}{' (resumed)' if self.is_started else ''}."
        )
        output.print_note("/help lists commands, Ctrl-D quits.")
        if not conversation.endpoint.window:
            assumed = f"Context window unknown, assuming {DEFAULT_WINDOW:,} tokens"
            output.print_note(f"{assumed}: set --window or window of [model].")
        if self.is_started:
            title = conversation.session.state.title
            for line in describe_exchange(title, conversation.last_exchange(), width=output.width):
                output.print_note(line)

    def run(self, messages: Iterator[str]) -> None:
        for message in messages:
            is_quit = self.output.interactive and message in QUIT_WORDS
            if is_quit or message in [f"{PREFIX}{word}" for word in QUIT_WORDS]:
                break
            try:
                if is_command(message):
                    with redirect_stdout(sys.stderr) if self.output.as_json else nullcontext():
                        self._run_command(message)
                else:
                    # A doubled slash is the way to send one.
                    text = message.removeprefix(PREFIX) if message.startswith(PREFIX * 2) else message
                    self.show_turn(self.conversation.say(text))
            except InmindError as error:
                self._report_error(error)
        if self.is_started:
            self.output.print_note(f"Saved. `inmind chat --session {self.id}` continues it.")

    def show_turn(self, turn: ChatTurn) -> None:
        """Print the notes and the status after an answer."""
        for notice in (*turn.notices, *([f"({turn.end_reason})"] if turn.end_reason else [])):
            self.output.print_note(notice)
        if self.output.as_json:
            self.output.print_json(self._answer_json(turn))
        else:
            names = [entity.name or entity.id for entity in self.conversation.session.entities]
            endpoint = self.conversation.endpoint
            prices = (endpoint.input_price, endpoint.output_price)
            self.output.print_note(status_line(turn, names, prices, width=self.output.width))
        if turn.end_reason == "stopped" and not self.output.interactive:
            raise KeyboardInterrupt

    def _answer_json(self, turn: ChatTurn | None, error: Mapping[str, str] | None = None) -> dict[str, Any]:
        """JSON of an answer; without a turn all values of the answer are null."""
        report = turn and turn.report
        return {
            "session": self.id if self.is_started else None,
            "call": report and report.call,
            "text": turn and turn.text,
            "tools": turn
            and [{"name": use.name, "arguments": use.parsed_arguments, "error": use.error} for use in turn.tools],
            "ended": turn and turn.end_reason,
            "tokens": turn and turn.tokens,
            "cached_share": turn and round(turn.usage.cached_share, 3),
            "percent": report and round(report.tokens_percent, 1),
            "band": report and report.band,
            "error": error,
        }

    def _report_error(self, error: InmindError) -> None:
        by_model = isinstance(error, ModelFailed)
        why = explain_error(error, self.conversation.endpoint) if by_model else str(error)
        if self.output.interactive:
            self.output.print_error(f"{why} Your message is saved; /retry asks again." if by_model else why)
            return
        if self.output.as_json:
            self.output.print_json(self._answer_json(None, {"code": error.code, "message": why}))
        if not by_model:
            raise error
        print_error(error.code, f"{why} The message is saved in session {self.id}.")
        raise Exit(MODEL)

    def _run_command(self, line: str) -> None:
        """Run a command; an unknown one raises InvalidInput with the list of commands."""
        name, _, rest = line.removeprefix(PREFIX).partition(" ")
        command = COMMANDS.get(name)
        if command is None:
            available = " ".join(f"{PREFIX}{one}" for one in COMMANDS)
            raise InvalidInput(field="command", value=f"{PREFIX}{name}", expected=f"one of {available}")
        if command.argument and not command.argument.startswith("[") and not rest.strip():
            raise InvalidInput(field=f"{PREFIX}{name}", value=rest, expected=command.argument)
        if command.needs_session and not self.is_started:
            print_text("No messages yet.")
            return
        command.run(self, rest.strip())


def is_command(message: str) -> bool:
    """True for a line that starts with one slash. A path has another slash, and // escapes one."""
    return message.startswith(PREFIX) and PREFIX not in message.split()[0].removeprefix(PREFIX)


def _show(chat: Chat, part: str) -> None:
    command = _SHOW_COMMANDS.get(part or "entities")
    if command is None:
        raise InvalidInput(field="/show", value=part, expected=f"one of {', '.join(_SHOW_COMMANDS)}")
    command(chat.conversation.session.id)


_SHOW_COMMANDS: Mapping[str, Callable[[str], None]] = {
    "prompt": show.show_prompt,
    "entities": show.show_entities,
    "scratchpad": show.show_scratchpad,
    "overview": show.show_overview,
    "state": show.show_state,
}


def _undo(chat: Chat, _: str) -> None:
    removed = chat.conversation.remove_last_exchange()
    if not removed:
        print_text("Nothing to undo.")
        return
    print_text(f"Removed {count_noun(len(removed), 'message')}: {shorten(removed[0].text, 60)}")
    print_text("Notes and pages that were written are not changed.")


def _retry(chat: Chat, _: str) -> None:
    chat.show_turn(chat.conversation.retry())


def _compact(chat: Chat, _: str) -> None:
    print_lines(describe_compaction(chat.conversation.session.compact()))


def _dream(chat: Chat, _: str) -> None:
    resource = chat.conversation.session.resource
    if resource == ANONYMOUS:
        raise InvalidInput(field="/dream", value=resource, expected="a chat with --resource")
    try:
        with chat.interrupts.cancellable() as cancelled:
            dream = chat.memory.dream(resource, cancelled=cancelled)
    except KeyboardInterrupt:  # the second Ctrl-C, while waiting for the model
        if not chat.output.interactive:
            raise
        chat.memory.resource(resource).cancel_dream()
        dream = chat.memory.resource(resource).dreams()[0]
    print_lines(resource_commands.describe_dream(dream))


def _note(chat: Chat, text: str) -> None:
    note = chat.conversation.session.note(text, origin=Origin.USER)
    print_text(f"Saved at {format_timestamp(note.date)} as {note.id}.")


def _search(chat: Chat, words: str) -> None:
    hits = chat.conversation.session.search(words)
    print_text(render_hits(hits) if hits else "No hits.")


def _describe_session(chat: Chat, _: str) -> None:
    session = chat.conversation.session
    print_text(f"Session {session.id} of {session.resource}, with {describe_endpoint(chat.conversation.endpoint)}.")
    shows = f"`inmind show prompt {session.id}` shows its prompt."
    print_text(f"`inmind chat --session {session.id}` continues it, {shows}")


def _help(_: Chat, __: str) -> None:
    for name, command in COMMANDS.items():
        print_text(f"  {f'{PREFIX}{name} {command.argument}':<16} {command.help}")
    print_text(f"  {f'{PREFIX}quit':<16} Quit, like /exit and Ctrl-D; everything is saved.")
    print_text("  A backslash at the end of a line continues it; // at the start sends a slash.")
    print_text("  Ctrl-C stops an answer.")


class SlashCommand(NamedTuple):
    run: Callable[[Chat, str], None]
    help: str
    argument: str = ""
    """Its argument in the help; optional if in brackets."""
    needs_session: bool = True
    """It has no meaning before the first message; it must not create a session."""


COMMANDS: Mapping[str, SlashCommand] = {
    "show": SlashCommand(_show, f"Show {', '.join(_SHOW_COMMANDS)}.", "[WHAT]"),
    "note": SlashCommand(_note, "Save a note.", "TEXT", needs_session=False),
    "search": SlashCommand(_search, "Search everything that was said, noted or seen.", "WORDS"),
    "retry": SlashCommand(_retry, "Ask for the last answer again."),
    "undo": SlashCommand(_undo, "Remove the last exchange."),
    "compact": SlashCommand(_compact, "Archive old messages."),
    "dream": SlashCommand(_dream, "Update MEMORY.md now."),
    "session": SlashCommand(_describe_session, "Show the session id and how to continue."),
    "help": SlashCommand(_help, "This list.", needs_session=False),
}
