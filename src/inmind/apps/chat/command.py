"""`inmind chat`: finds out whom to talk to, opens what there is to remember, and begins."""

from __future__ import annotations

import os
import secrets
import sys
from contextlib import nullcontext
from datetime import datetime
from functools import partial
from getpass import getuser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from inmind.apps.cli.console import JsonOption, complete_resources, complete_sessions, read_settings, selected_place
from inmind.apps.cli.exit_codes import exit_with
from inmind.errors import InvalidInput, ModelFailed, NotFound

if TYPE_CHECKING:
    from inmind.apps.chat.output import Screen
    from inmind.memory.memory import Memory
    from inmind.session.session import Session

NAMELESS = "me"
"""Whose memory it is, where the system has no name for its user."""


def chat(
    model: Annotated[str, typer.Option(metavar="NAME", help="By default the only one that the endpoint has.")] = "",
    base_url: Annotated[str, typer.Option(metavar="URL", help="Of the endpoint, like http://127.0.0.1:8080/v1.")] = "",
    provider: Annotated[str, typer.Option(metavar="openai|anthropic", help="Whose protocol it speaks.")] = "",
    session: Annotated[
        str | None,
        typer.Option(metavar="SESSION", help="Go on with this one, or begin it.", autocompletion=complete_sessions),
    ] = None,
    go_on: Annotated[bool, typer.Option("--continue", help="Go on with the last session of this folder.")] = False,
    resource: Annotated[
        str | None,
        typer.Option(
            metavar="RESOURCE",
            help="Whose memory it is; by default that of your user name.",
            autocompletion=complete_resources,
        ),
    ] = None,
    key_env: Annotated[
        str, typer.Option(metavar="NAME", help="Of the variable with the key, if not that of the provider.")
    ] = "",
    window: Annotated[
        int,
        typer.Option(metavar="TOKENS", help="What the model takes, if not what the endpoint says.", show_default=False),
    ] = 0,
    timeout: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0, help="Of silence, after which it is given up.", show_default=False),
    ] = 0.0,
    allow_writes: Annotated[bool, typer.Option("--allow-writes", help="Let files be written without asking.")] = False,
    no_tools: Annotated[bool, typer.Option("--no-tools", help="For a model that cannot call any.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Talk to an agent that has working memory. It can list, read, search and write files of the working directory.

    The endpoint is the one that is named here, else that of [model] in config.toml, else what there is a key for in the
    environment: OPENAI_API_KEY with OPENAI_BASE_URL, ANTHROPIC_API_KEY with ANTHROPIC_BASE_URL. A local server needs
    none. In a pipe each line is a message, and the answers alone are the output, with --json an object a line. /help
    lists what can be asked of the chat itself.
    """
    from inmind.apps.chat.chat import Chat
    from inmind.apps.chat.endpoint import Wanted, completed, endpoint_of, explained, exposed, missing_key
    from inmind.apps.chat.file_tools import Workplace
    from inmind.apps.chat.input import messages, piped, remembered, typed
    from inmind.apps.chat.output import Screen
    from inmind.apps.chat.sigint import Interruptions
    from inmind.apps.chat.turn import Conversation
    from inmind.core.http import WAITS, Server
    from inmind.memory.memory import Memory

    told = read_settings().model
    screen = Screen(interactive=sys.stdin.isatty() and sys.stdout.isatty() and not as_json, as_json=as_json)
    wanted = Wanted(provider=provider, url=base_url, model=model, key_env=key_env, window=window)
    found = endpoint_of(wanted, told, os.environ)
    if found is None:
        if variable := missing_key(wanted):
            exit_with("NOT_FOUND", f"{variable} is not set; --base-url names an endpoint that needs none")
        return _offer_the_demo(screen)
    if exposed(found, os.environ):
        print(f"inmind: {found.key_env} goes to {found.url} for everybody on the way to read", file=sys.stderr)
    # A person decides himself whether to try again; in a pipe nobody can.
    server = Server(url=found.url, key_env=found.key_env, waits=() if screen.interactive else WAITS)
    interruptions = Interruptions()
    try:
        endpoint = completed(found, server, choose=screen.chooses if screen.interactive else None)
    except ModelFailed as error:
        exit_with(error.code, explained(error, found))
    with Memory.open(selected_place()) as memory:
        id = _session_id(memory, session, resource, go_on=go_on)
        refuses = None if allow_writes else screen.refuses
        workplace = (
            None
            if no_tools
            else Workplace(Path.cwd(), home=memory.home, refuses=refuses, may_stop=interruptions.may_stop)
        )
        begin = partial(_opened, memory, id, resource, window=endpoint.window, tools=not no_tools)
        conversation = Conversation(
            begin() if id in memory else begin,
            endpoint,
            server,
            workplace,
            listener=screen,
            interruptions=interruptions,
            patience=timeout or told.seconds,
        )
        talk = Chat(memory, conversation, screen, interruptions)
        with interruptions.heeded(), remembered(memory.home) if screen.interactive else nullcontext():
            if screen.interactive:
                memory.start_upkeep()
                talk.greet(id)
            read = typed(interruptions) if screen.interactive else piped(interruptions)
            talk.hold(messages(read))
    return None


def _offer_the_demo(screen: Screen) -> None:
    from inmind.apps.chat.endpoint import DEMO, HOW_TO

    print(HOW_TO, file=sys.stdout if screen.interactive else sys.stderr)
    if not screen.interactive:
        exit_with("NOT_FOUND", f"nothing says which endpoint to talk to; `{DEMO}` needs none")
    if screen.confirms("See the demonstration instead, which needs none?"):
        from inmind.apps.demo.command import demo

        demo()


def _session_id(memory: Memory, named: str | None, resource: str | None, *, go_on: bool) -> str:
    if named is not None and go_on:
        raise InvalidInput(field="--continue", expected="nothing beside --session")
    if named is not None:
        return named
    if not go_on:
        return f"chat-{datetime.now():%Y-%m-%d}-{secrets.token_hex(3)}"
    latest = memory.latest(resource=resource)
    if latest is None:
        raise NotFound(what="session in", name=str(Path.cwd()), hint="without --continue one is begun")
    return latest.id


def _opened(memory: Memory, id: str, resource: str | None, *, window: int, tools: bool) -> Session:
    """The session, begun if need be for whoever sits here: who chats twice wants to be known the second time."""
    owner = resource if resource is not None or id in memory else _user()
    return memory.session(id, resource=owner, window=window, memory_tools=tools)


def _user() -> str:
    try:
        return getuser()
    except (KeyError, OSError):  # in a container, where the number of its user has no name
        return NAMELESS
