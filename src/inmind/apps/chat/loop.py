"""The chat loop and its commands, such as /show and /undo.

On a terminal an error is printed and the chat continues. In a pipe the first error ends the process, with its exit
code.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext, redirect_stdout
from typing import Any, NamedTuple

from click.exceptions import Exit

from inmind.apps.chat.conversation import ChatConversation
from inmind.apps.chat.endpoint import explain_error
from inmind.apps.chat.terminal import ChatOutput, ChatTurn, describe_exchange, status_line
from inmind.apps.cli import resource_commands
from inmind.apps.cli.console import print_lines, print_text
from inmind.apps.cli.exit_codes import MODEL, print_error
from inmind.apps.cli.session_commands import describe_compaction
from inmind.apps.cli.show import show_entities, show_overview, show_prompt, show_scratchpad, show_state
from inmind.apps.signals import InterruptHandler
from inmind.core.events.base import Origin
from inmind.core.frozen import frozen
from inmind.core.paths import ANONYMOUS
from inmind.core.text import count_noun, shorten
from inmind.documents.notes_page import format_timestamp
from inmind.errors import InmindError, InvalidInput, ModelFailed
from inmind.memory.memory import Memory
from inmind.search.render import render_hits

PREFIX = "/"
QUIT_WORDS = ("exit", "quit")
"""Words that quit the chat, with or without a slash."""


@frozen
class Chat:
    memory: Memory
    conversation: ChatConversation
    output: ChatOutput
    interrupts: InterruptHandler

    def greet(self, id: str, *, is_resumed: bool) -> None:
        """Print the endpoint, the session id, and for a resumed session its last exchange."""
        conversation, output = self.conversation, self.output
        output.print_note(f"{conversation.endpoint}, session {id}{' (resumed)' if is_resumed else ''}.")
        output.print_note("/help lists commands, Ctrl-D quits.")
        if conversation.endpoint.is_window_assumed:
            window = conversation.endpoint.window
            output.print_note(f"Context window unknown, assuming {window:,} tokens: set --window or window of [model].")
        if is_resumed:
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
        if self.conversation.is_started:
            self.output.print_note(f"Saved. `inmind chat --session {self.conversation.session.id}` continues it.")

    def show_turn(self, turn: ChatTurn) -> None:
        """Print the notes and the status after an answer."""
        for notice in (*turn.notices, *([f"({turn.end_reason})"] if turn.end_reason else [])):
            self.output.print_note(notice)
        if self.output.as_json:
            self.output.print_json(self._answer_json(turn))
        else:
            names = [entity.name or entity.id for entity in self.conversation.session.entities]
            prices = self.conversation.endpoint.prices
            self.output.print_note(status_line(turn, names, prices, width=self.output.width))
        if turn.end_reason == "stopped" and not self.output.interactive:
            raise KeyboardInterrupt

    def _answer_json(self, turn: ChatTurn | None, error: Mapping[str, str] | None = None) -> dict[str, Any]:
        """JSON of an answer; without a turn all values of the answer are null."""
        report = turn and turn.report
        return {
            "session": self.conversation.session.id if self.conversation.is_started else None,
            "call": report and report.call,
            "text": turn and turn.text,
            "tools": turn
            and [{"name": use.name, "arguments": use.parsed_arguments, "error": use.error} for use in turn.tools],
            "ended": turn and turn.end_reason,
            "tokens": turn and turn.tokens,
            "cached_share": turn and round(turn.cached_share, 3),
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
        print_error(error.code, f"{why} The message is saved in session {self.conversation.session.id}.")
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
        if command.needs_session and not self.conversation.is_started:
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
    "prompt": show_prompt,
    "entities": show_entities,
    "scratchpad": show_scratchpad,
    "overview": show_overview,
    "state": show_state,
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
    print_text(f"Session {session.id} of {session.resource}, with {chat.conversation.endpoint}.")
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
