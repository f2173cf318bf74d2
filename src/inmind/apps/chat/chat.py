"""The chat as a whole: message by message, with what a person is shown after each, until somebody leaves.

On a terminal whatever fails is a line, and the chat goes on. In a pipe nobody could say what to do about it, so the
first failure is the end, with the exit code that every command has for it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext, redirect_stdout
from functools import partial
from typing import Any

import typer

from inmind.apps.chat.endpoint import explained
from inmind.apps.chat.output import Screen
from inmind.apps.chat.resume import told, where_it_was
from inmind.apps.chat.sigint import Interruptions
from inmind.apps.chat.slash_commands import LEAVING, Leave, is_command, obey, unescaped
from inmind.apps.chat.status import status_line
from inmind.apps.chat.turn import Conversation, Turn
from inmind.apps.cli.exit_codes import MODEL, print_error
from inmind.core.frozen import frozen
from inmind.errors import InmindError, ModelFailed
from inmind.memory.memory import Memory
from inmind.session.session import Session

AGAIN = "What was said is kept; /retry asks again."


@frozen
class Chat:
    memory: Memory
    conversation: Conversation
    screen: Screen
    interruptions: Interruptions

    @property
    def session(self) -> Session:
        return self.conversation.session

    def greet(self, id: str) -> None:
        """Whom one talks to, and where one was; `id` is what the session is called, or will be."""
        endpoint, begun = self.conversation.endpoint, self.conversation.begun
        self.screen.aside(f"{endpoint}, session {id}{' again' if begun else ''}.")
        self.screen.aside("/help lists commands, Ctrl-D leaves.")
        if endpoint.assumed:
            self.screen.aside(
                f"Window unknown, {endpoint.window:,} tokens assumed: --window or [model] window says it."
            )
        if begun:
            for line in where_it_was(self.session.state.title, self.conversation.last, width=self.screen.width):
                self.screen.aside(line)

    def hold(self, messages: Iterator[str]) -> None:
        for message in messages:
            try:
                for line in told(self.conversation.meanwhile(), width=self.screen.width):
                    self.screen.aside(line)
                if self.screen.interactive and message in LEAVING:
                    break
                if is_command(message):
                    with redirect_stdout(sys.stderr) if self.screen.as_json else nullcontext():
                        obey(self, message)
                else:
                    self.answer(partial(self.conversation.say, unescaped(message)))
            except Leave:
                break
            except InmindError as error:
                self._fail(error)
        if self.conversation.begun:
            self.screen.aside(f"Kept: `inmind chat --session {self.session.id}` goes on with it.")

    def answer(self, ask: Callable[[], Turn]) -> None:
        """Hear one answer, and see what it took."""
        turn = ask()
        for notice in turn.notices:
            self.screen.aside(notice)
        if turn.ended:
            self.screen.aside(f"({turn.ended})")
        if self.screen.as_json:
            self.screen.tells({**self._unsaid, **_in_full(turn)})
        else:
            things = [entity.name or entity.id for entity in self.session.entities]
            self.screen.aside(status_line(turn, things, self.conversation.endpoint.prices, width=self.screen.width))
        if turn.stopped and not self.screen.interactive:
            raise KeyboardInterrupt

    def _fail(self, error: InmindError) -> None:
        by_model = isinstance(error, ModelFailed)
        why = explained(error, self.conversation.endpoint) if by_model else str(error)
        if self.screen.interactive:
            self.screen.complain(f"{why} {AGAIN}" if by_model else why)
            return
        if self.screen.as_json:
            self.screen.tells({**self._unsaid, "error": {"code": error.code, "message": why}})
        if not by_model:
            raise error
        print_error(error.code, f"{why} What was said is kept in session {self.session.id}.")
        raise typer.Exit(MODEL)

    @property
    def _unsaid(self) -> dict[str, Any]:
        """An answer in JSON before there is one."""
        nothing = dict.fromkeys(
            ("call", "text", "tools", "ended", "tokens", "cached_share", "percent", "band", "error")
        )
        return {"session": self.session.id if self.conversation.begun else None, **nothing}


def _in_full(turn: Turn) -> dict[str, Any]:
    return {
        "call": turn.report.call,
        "text": turn.text,
        "tools": [
            {"name": used.name, "arguments": _read(used.arguments), "error": used.outcome.error} for used in turn.tools
        ],
        "ended": turn.ended,
        "tokens": turn.tokens,
        "cached_share": round(turn.cached_share, 3),
        "percent": round(turn.report.tokens_percent, 1),
        "band": turn.report.band,
    }


def _read(arguments: str) -> Any:
    """As the model meant them, or as it wrote them where that is no JSON."""
    try:
        return json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        return arguments
