"""Commands of the chat, such as /show and /undo, with the output of the `inmind` commands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from inmind.apps.chat.input import remove_from_history
from inmind.apps.cli import dreams
from inmind.apps.cli.compact import print_compaction
from inmind.apps.cli.console import print_lines, print_text
from inmind.apps.cli.resource_commands import show_state
from inmind.apps.cli.show import show_entities, show_overview, show_prompt, show_scratchpad
from inmind.core.events.base import Origin
from inmind.core.frozen import frozen
from inmind.core.stream_names import ANONYMOUS
from inmind.core.text import count_noun, shorten
from inmind.documents.notes_page import format_timestamp
from inmind.errors import InvalidInput, NotFound
from inmind.search.render import render_hits

if TYPE_CHECKING:
    from inmind.apps.chat.chat import Chat
    from inmind.apps.chat.turn import ChatExchange

PREFIX = "/"

QUIT_WORDS = ("exit", "quit")
"""Words that quit the chat, with or without a slash."""


class QuitChat(Exception):
    """The user quits."""


def is_command(message: str) -> bool:
    """True for a line that starts with one slash. A path has another slash, and // escapes one."""
    return message.startswith(PREFIX) and PREFIX not in message.split()[0].removeprefix(PREFIX)


def unescape(message: str) -> str:
    return message.removeprefix(PREFIX) if message.startswith(PREFIX * 2) else message


@frozen(kw_only=True)
class SlashCommand:
    argument: str = ""
    """Its argument in the help; optional if in brackets."""
    help: str
    needs_session: bool = True
    """It has no meaning before the first message; it must not create a session."""
    run: Callable[[Chat, str], None]


def run_command(chat: Chat, line: str) -> None:
    """Run a command; an unknown one raises InvalidInput with the list of commands."""
    name, _, rest = line.removeprefix(PREFIX).partition(" ")
    command = COMMANDS.get("quit" if name in QUIT_WORDS else name)
    if command is None:
        available = " ".join(f"{PREFIX}{one}" for one in COMMANDS)
        raise InvalidInput(field="command", value=f"{PREFIX}{name}", expected=f"one of {available}")
    if command.argument and not command.argument.startswith("[") and not rest.strip():
        raise InvalidInput(field=f"{PREFIX}{name}", value=rest, expected=command.argument)
    if command.needs_session and not chat.conversation.is_started:
        print_text("No messages yet.")
        return
    command.run(chat, rest.strip())


def _show(chat: Chat, part: str) -> None:
    command = _SHOW_COMMANDS.get(part or "entities")
    if command is None:
        raise InvalidInput(field="/show", value=part, expected=f"one of {', '.join(_SHOW_COMMANDS)}")
    command(chat.session.id)


_SHOW_COMMANDS: Mapping[str, Callable[[str], None]] = {
    "prompt": show_prompt,
    "entities": show_entities,
    "scratchpad": show_scratchpad,
    "overview": show_overview,
    "state": show_state,
}


def _undo(chat: Chat, _: str) -> None:
    last = chat.conversation.last_exchange
    if last is None:
        print_text("Nothing to undo.")
        return
    if not last.is_from_this_chat and not _confirm_undo(chat, last):
        return
    question, messages = chat.conversation.remove_last_exchange()
    remove_from_history(question)
    print_text(f"Removed {count_noun(messages, 'message')}: {shorten(question, 60)}")
    print_text("Files, notes and pages that were written are not changed.")


def _confirm_undo(chat: Chat, last: ChatExchange) -> bool:
    """Ask before an exchange of another chat is removed: it may still be running there."""
    if not chat.output.interactive:
        hint = "the last one is from another chat; on a terminal /undo asks for confirmation"
        raise NotFound(what="exchange of this chat to undo in", name=chat.session.id, hint=hint)
    try:
        with chat.interruptions.interruptible():
            return chat.output.confirm(f"From another chat: {shorten(last.question, 40)}\nRemove it?")
    except KeyboardInterrupt:
        print_text("")
        return False


def _dream(chat: Chat, _: str) -> None:
    resource = chat.session.resource
    if resource == ANONYMOUS:
        raise InvalidInput(field="/dream", value=resource, expected="a chat with --resource")
    chat.output.show_waiting()
    try:
        with chat.interruptions.cancellable() as cancelled:
            dream = chat.memory.dream(resource, cancelled=cancelled)
    except KeyboardInterrupt:  # the second Ctrl-C, while waiting for the model
        if not chat.output.interactive:
            raise
        chat.memory.resource(resource).cancel_dream()
        dream = chat.memory.resource(resource).dreams()[0]
    finally:
        chat.output.end_answer()
    print_lines(dreams.describe_dream(dream))


def _compact(chat: Chat, _: str) -> None:
    print_compaction(chat.session.compact())


def _note(chat: Chat, text: str) -> None:
    note = chat.session.note(text, origin=Origin.USER)
    print_text(f"Saved at {format_timestamp(note.date)} as {note.id}.")


def _search(chat: Chat, words: str) -> None:
    hits = chat.session.search(words)
    print_text(render_hits(hits) if hits else "No hits.")


def _session(chat: Chat, _: str) -> None:
    session = chat.session
    print_text(f"Session {session.id} of {session.resource}, with {chat.conversation.endpoint}.")
    print_text(
        f"`inmind chat --session {session.id}` continues it, `inmind show prompt {session.id}` shows its prompt."
    )


def _retry(chat: Chat, _: str) -> None:
    chat.answer(chat.conversation.retry)


def _help(_: Chat, __: str) -> None:
    for name, command in COMMANDS.items():
        print_text(f"  {f'{PREFIX}{name} {command.argument}':<16} {command.help}")
    print_text("  A backslash at the end of a line continues it; // at the start sends a slash.")
    print_text("  Ctrl-C stops an answer.")


def _quit(_: Chat, __: str) -> None:
    raise QuitChat


COMMANDS: Mapping[str, SlashCommand] = {
    "show": SlashCommand(argument="[WHAT]", help=f"Show {', '.join(_SHOW_COMMANDS)}.", run=_show),
    "note": SlashCommand(argument="TEXT", help="Save a note.", needs_session=False, run=_note),
    "search": SlashCommand(argument="WORDS", help="Search everything that was said, noted or seen.", run=_search),
    "retry": SlashCommand(help="Ask for the last answer again.", run=_retry),
    "undo": SlashCommand(help="Remove the last exchange.", run=_undo),
    "compact": SlashCommand(help="Archive old messages.", run=_compact),
    "dream": SlashCommand(help="Update MEMORY.md now.", run=_dream),
    "session": SlashCommand(help="Show the session id and how to continue.", run=_session),
    "help": SlashCommand(help="This list.", needs_session=False, run=_help),
    "quit": SlashCommand(help="Quit, like /exit and Ctrl-D; everything is saved.", needs_session=False, run=_quit),
}
