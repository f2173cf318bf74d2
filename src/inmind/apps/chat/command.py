"""`inmind chat`: finds the endpoint, opens the memory and starts the chat."""

from __future__ import annotations

import os
import secrets
import sys
from contextlib import nullcontext
from datetime import datetime
from getpass import getuser
from pathlib import Path
from typing import Any

import click

from inmind.apps.chat.conversation import ChatConversation
from inmind.apps.chat.endpoint import (
    SETUP_HELP,
    ChatEndpoint,
    complete_endpoint,
    explain_error,
    exposes_key,
    find_endpoint,
    missing_key,
)
from inmind.apps.chat.loop import Chat
from inmind.apps.chat.terminal import ChatOutput, line_editor, pipe_reader, read_messages, terminal_reader
from inmind.apps.cli.console import complete_resources, complete_sessions, json_option, read_settings, selected_place
from inmind.apps.cli.exit_codes import exit_with
from inmind.apps.signals import InterruptHandler
from inmind.core import http
from inmind.errors import InvalidInput, ModelFailed, NotFound
from inmind.memory.memory import Memory
from inmind.session.session import Session

DEFAULT_USER = "me"
"""Resource if the system has no user name."""


@click.option("--model", metavar="NAME", default="", help="Model; default: the only one of the endpoint.")
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
    "--timeout", metavar="SECONDS", type=click.FloatRange(min=0), default=0.0, help="Timeout without any data."
)
@click.option("--no-tools", is_flag=True, help="Offer no tools, for a model that cannot call them.")
@json_option
def chat(
    session: str | None,
    continue_last: bool,
    resource: str | None,
    timeout: float,
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
    settings = read_settings().model
    output = ChatOutput(interactive=sys.stdin.isatty() and sys.stdout.isatty() and not as_json, as_json=as_json)
    options = ChatEndpoint(**endpoint_options)
    selected = find_endpoint(options, settings, os.environ)
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
            return memory.session(id, resource=owner, window=endpoint.window, memory_tools=not no_tools)

        is_resumed = id in memory
        conversation = ChatConversation(
            open_session() if is_resumed else open_session,
            endpoint,
            server,
            output,
            interrupts,
            timeout=timeout or settings.seconds,
        )
        loop = Chat(memory, conversation, output, interrupts)
        with interrupts.install(), line_editor(memory.home) if output.interactive else nullcontext():
            if output.interactive:
                memory.start_upkeep()
                loop.greet(id, is_resumed=is_resumed)
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
