"""What can be asked of the chat itself, between two messages. What `inmind` shows elsewhere is shown here the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from inmind.apps.chat.input import forget
from inmind.apps.cli import dreams
from inmind.apps.cli.compact import print_compaction
from inmind.apps.cli.console import print_lines, print_text
from inmind.apps.cli.resource_commands import show_state
from inmind.apps.cli.show import show_entities, show_overview, show_prompt, show_scratchpad
from inmind.core.events.base import Origin
from inmind.core.frozen import frozen
from inmind.core.streams import ANONYMOUS
from inmind.core.text import counted, shortened
from inmind.documents.notes_page import format_timestamp
from inmind.errors import InvalidInput, NotFound
from inmind.search.render import render_hits

if TYPE_CHECKING:
    from inmind.apps.chat.chat import Chat
    from inmind.apps.chat.turn import Exchange

SIGN = "/"

LEAVING = ("exit", "quit")
"""What people say to leave, with a slash or without."""


class Leave(Exception):
    """The person has had enough."""


def is_command(message: str) -> bool:
    """Is this for the chat itself? A path begins with a slash too, and has another; two of them say one."""
    return message.startswith(SIGN) and SIGN not in message.split()[0].removeprefix(SIGN)


def unescaped(message: str) -> str:
    return message.removeprefix(SIGN) if message.startswith(SIGN * 2) else message


@frozen(kw_only=True)
class Command:
    takes: str = ""
    """What stands behind its name; required unless it is in brackets."""
    help: str
    looks: bool = True
    """It is about what was said, and means nothing before anything was: looking must not begin a session."""
    run: Callable[[Chat, str], None]


def obey(chat: Chat, line: str) -> None:
    """Do what a line asks for. One that asks for nothing there is says what there is."""
    name, _, rest = line.removeprefix(SIGN).partition(" ")
    command = COMMANDS.get("quit" if name in LEAVING else name)
    if command is None:
        there = " ".join(f"{SIGN}{one}" for one in COMMANDS)
        raise InvalidInput(field="command", value=f"{SIGN}{name}", expected=f"one of {there}")
    if command.takes and not command.takes.startswith("[") and not rest.strip():
        raise InvalidInput(field=f"{SIGN}{name}", value=rest, expected=command.takes)
    if command.looks and not chat.conversation.begun:
        print_text("Nothing was said yet.")
        return
    command.run(chat, rest.strip())


def _show(chat: Chat, what: str) -> None:
    shown = _SHOWN.get(what or "entities")
    if shown is None:
        raise InvalidInput(field="/show", value=what, expected=f"one of {', '.join(_SHOWN)}")
    shown(chat.session.id)


_SHOWN: Mapping[str, Callable[[str], None]] = {
    "prompt": show_prompt,
    "entities": show_entities,
    "scratchpad": show_scratchpad,
    "overview": show_overview,
    "state": show_state,
}


def _undo(chat: Chat, _: str) -> None:
    last = chat.conversation.last
    if last is None:
        print_text("Nothing is left to take back.")
        return
    if not last.here and not _may_go(chat, last):
        return
    said, messages = chat.conversation.take_back()
    forget(said)
    print_text(f"Taken back, {counted(messages, 'message')} in all: {shortened(said, 60)}")
    print_text("The conversation goes on before it. Files, notes and pages that were written stay as they are.")


def _may_go(chat: Chat, last: Exchange) -> bool:
    """Whether an exchange may be taken back that was not said here: somebody may be in the middle of it."""
    if not chat.screen.interactive:
        hint = "the last one was said before it, or elsewhere; at a terminal /undo asks about it"
        raise NotFound(what="exchange of this chat to take back in", name=chat.session.id, hint=hint)
    try:
        with chat.interruptions.may_stop():
            return chat.screen.confirms(f"Not said here: {shortened(last.said, 40)}\nTake it back?")
    except KeyboardInterrupt:
        print_text("")
        return False


def _dream(chat: Chat, _: str) -> None:
    resource = chat.session.resource
    if resource == ANONYMOUS:
        raise InvalidInput(field="/dream", value=resource, expected="a chat that was begun with --resource")
    chat.screen.waits()
    try:
        with chat.interruptions.called_off() as called_off:
            dreamt = chat.memory.dream(resource, cancelled=called_off)
    except KeyboardInterrupt:  # the second one, while a model was waited for
        if not chat.screen.interactive:
            raise
        chat.memory.resource(resource).cancel_dream()
        dreamt = chat.memory.resource(resource).dreams()[0]
    finally:
        chat.screen.has_heard()
    print_lines(dreams.describe_dream(dreamt))


def _compact(chat: Chat, _: str) -> None:
    print_compaction(chat.session.compact())


def _note(chat: Chat, text: str) -> None:
    taken = chat.session.note(text, origin=Origin.USER)
    print_text(f"Noted at {format_timestamp(taken.date)} as {taken.id}.")


def _search(chat: Chat, words: str) -> None:
    hits = chat.session.search(words)
    print_text(render_hits(hits) if hits else "Nothing was found.")


def _session(chat: Chat, _: str) -> None:
    session = chat.session
    print_text(f"Session {session.id} of {session.resource}, with {chat.conversation.endpoint}.")
    print_text(
        f"`inmind chat --session {session.id}` goes on with it, `inmind show prompt {session.id}` looks into it."
    )


def _retry(chat: Chat, _: str) -> None:
    chat.answer(chat.conversation.again)


def _help(_: Chat, __: str) -> None:
    for name, command in COMMANDS.items():
        print_text(f"  {f'{SIGN}{name} {command.takes}':<16} {command.help}")
    print_text("  A backslash at the end of a line goes on in the next; // at its beginning says a slash.")
    print_text("  Ctrl-C stops an answer.")


def _quit(_: Chat, __: str) -> None:
    raise Leave


COMMANDS: Mapping[str, Command] = {
    "show": Command(takes="[WHAT]", help=f"What is in mind: {', '.join(_SHOWN)}.", run=_show),
    "note": Command(takes="TEXT", help="Keep something beyond this chat.", looks=False, run=_note),
    "search": Command(takes="WORDS", help="Find what was ever said, noted or seen.", run=_search),
    "retry": Command(help="Ask for the last answer again.", run=_retry),
    "undo": Command(help="Take back the last exchange.", run=_undo),
    "compact": Command(help="Archive what is old, and make room.", run=_compact),
    "dream": Command(help="Bring MEMORY.md up to date, now.", run=_dream),
    "session": Command(help="What this chat is called, and how to come back to it.", run=_session),
    "help": Command(help="This list.", looks=False, run=_help),
    "quit": Command(help="Leave, as /exit and Ctrl-D do; everything is kept.", looks=False, run=_quit),
}
