"""The chat loop: answers messages, runs commands and prints notes until the user quits.

On a terminal an error is printed and the chat continues. In a pipe the first error ends the process, with its exit
code.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext, redirect_stdout
from functools import partial
from typing import Any

from click.exceptions import Exit

from inmind.apps.chat.conversation import ChatConversation
from inmind.apps.chat.endpoint import explain_error
from inmind.apps.chat.output import ChatOutput
from inmind.apps.chat.slash_commands import QUIT_WORDS, QuitChat, is_command, run_command, unescape
from inmind.apps.chat.status import describe_last_exchange, describe_other_changes, status_line
from inmind.apps.chat.turn import ChatTurn
from inmind.apps.cli.exit_codes import MODEL, print_error
from inmind.apps.signals import InterruptHandler
from inmind.core.frozen import frozen
from inmind.errors import InmindError, ModelFailed
from inmind.memory.memory import Memory
from inmind.session.session import Session

RETRY_HINT = "Your message is saved; /retry asks again."


@frozen
class Chat:
    memory: Memory
    conversation: ChatConversation
    output: ChatOutput
    interruptions: InterruptHandler

    @property
    def session(self) -> Session:
        return self.conversation.session

    def greet(self, id: str) -> None:
        """Print the endpoint, the session id, and for a resumed session its last exchange."""
        endpoint, resumed = self.conversation.endpoint, self.conversation.is_started
        self.output.print_note(f"{endpoint}, session {id}{' (resumed)' if resumed else ''}.")
        self.output.print_note("/help lists commands, Ctrl-D quits.")
        if endpoint.is_window_assumed:
            self.output.print_note(
                f"Context window unknown, assuming {endpoint.window:,} tokens: set --window or window of [model]."
            )
        if resumed:
            for line in describe_last_exchange(
                self.session.state.title, self.conversation.last_exchange, width=self.output.width
            ):
                self.output.print_note(line)

    def run(self, messages: Iterator[str]) -> None:
        for message in messages:
            try:
                for line in describe_other_changes(self.conversation.poll_other_changes(), width=self.output.width):
                    self.output.print_note(line)
                if self.output.interactive and message in QUIT_WORDS:
                    break
                if is_command(message):
                    with redirect_stdout(sys.stderr) if self.output.as_json else nullcontext():
                        run_command(self, message)
                else:
                    self.answer(partial(self.conversation.say, unescape(message)))
            except QuitChat:
                break
            except InmindError as error:
                self._report_error(error)
        if self.conversation.is_started:
            self.output.print_note(f"Saved. `inmind chat --session {self.session.id}` continues it.")

    def answer(self, ask: Callable[[], ChatTurn]) -> None:
        """Run one turn and print its notes and status."""
        turn = ask()
        for notice in turn.notices:
            self.output.print_note(notice)
        if turn.end_reason:
            self.output.print_note(f"({turn.end_reason})")
        if self.output.as_json:
            self.output.print_json({**self._empty_answer, **_turn_json(turn)})
        else:
            things = [entity.name or entity.id for entity in self.session.entities]
            self.output.print_note(
                status_line(turn, things, self.conversation.endpoint.prices, width=self.output.width)
            )
        if turn.is_stopped and not self.output.interactive:
            raise KeyboardInterrupt

    def _report_error(self, error: InmindError) -> None:
        by_model = isinstance(error, ModelFailed)
        why = explain_error(error, self.conversation.endpoint) if by_model else str(error)
        if self.output.interactive:
            self.output.print_error(f"{why} {RETRY_HINT}" if by_model else why)
            return
        if self.output.as_json:
            self.output.print_json({**self._empty_answer, "error": {"code": error.code, "message": why}})
        if not by_model:
            raise error
        print_error(error.code, f"{why} The message is saved in session {self.session.id}.")
        raise Exit(MODEL)

    @property
    def _empty_answer(self) -> dict[str, Any]:
        """JSON of an answer with all keys empty."""
        nothing = dict.fromkeys(
            ("call", "text", "tools", "ended", "tokens", "cached_share", "percent", "band", "error")
        )
        return {"session": self.session.id if self.conversation.is_started else None, **nothing}


def _turn_json(turn: ChatTurn) -> dict[str, Any]:
    return {
        "call": turn.report.call,
        "text": turn.text,
        "tools": [
            {"name": use.name, "arguments": _parse_arguments(use.arguments), "error": use.output.error}
            for use in turn.tools
        ],
        "ended": turn.end_reason,
        "tokens": turn.tokens,
        "cached_share": round(turn.cached_share, 3),
        "percent": round(turn.report.tokens_percent, 1),
        "band": turn.report.band,
    }


def _parse_arguments(arguments: str) -> Any:
    """Parsed arguments, or the text if it is not JSON."""
    try:
        return json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        return arguments
