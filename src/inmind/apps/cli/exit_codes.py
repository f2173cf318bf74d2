"""How a command ends: one line for whatever went wrong, and an exit code that a script can go by.

Commands let errors pass through to here, the one place of this door that catches everything. Scripts switch on the
exit code, or on the stable word behind `inmind:`; people read the rest of the line.
"""

from __future__ import annotations

import logging
import os
import sys
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from io import TextIOWrapper
from typing import TYPE_CHECKING, ClassVar, NoReturn, TextIO

import typer

from inmind.apps.cli import INTERRUPTED, TERMINATED
from inmind.core.text import printable
from inmind.errors import InmindError

if TYPE_CHECKING:
    from typer._click.exceptions import ClickException

FAILED, USAGE, NOT_FOUND, TAKEN, STORAGE, MODEL, DEFECT, UNSAID, CLOSED_PIPE = 1, 2, 3, 4, 5, 6, 70, 74, 141

EXAMINED = ("UNSAFE_STORAGE", "DAMAGED")
"""Codes of errors about a home of which a doctor can tell more."""

EXIT_CODES = {
    "INVALID_INPUT": USAGE,
    "INVALID_PATH": USAGE,
    "SCHEMA_VIOLATION": USAGE,
    "KEY_REUSED": USAGE,
    "NOT_FOUND": NOT_FOUND,
    "CONFLICT": TAKEN,
    "PARTED_WAYS": TAKEN,
    "DREAM_RUNNING": TAKEN,
    "DREAM_OVERTAKEN": TAKEN,
    "STORE_BUSY": TAKEN,
    "STORE": STORAGE,
    "STORAGE_FULL": STORAGE,
    "NOT_DURABLE": STORAGE,
    "READ_ONLY": STORAGE,
    "UNSAFE_STORAGE": STORAGE,
    "DAMAGED": STORAGE,
    "STORE_UNAVAILABLE": STORAGE,
    "OUTCOME_UNKNOWN": STORAGE,
    "MODEL_FAILED": MODEL,
    "INTERRUPTED": INTERRUPTED,
}
"""By the code of an error; any other is FAILED."""

MEANINGS = {
    0: "done",
    FAILED: "refused or failed",
    USAGE: "wrong arguments or input",
    NOT_FOUND: "no such home, session or resource",
    TAKEN: "somebody else was first: try again",
    STORAGE: "the disk or the store",
    MODEL: "the model",
    DEFECT: "a defect of inmind",
    UNSAID: "the output could not be written",
    INTERRUPTED: "Ctrl-C",
    CLOSED_PIPE: "nobody reads the output any more",
    TERMINATED: "SIGTERM",
}
"""As the help lists them."""

_debugging = False


class Failed(Exception):
    """Several things went wrong at once, each with a line of its own."""

    def __init__(self, *errors: InmindError) -> None:
        super().__init__(*errors)
        self.errors = errors


def debug(wanted: bool) -> None:
    """Whether what leads to a failure is shown too, from now on."""
    global _debugging
    _debugging = wanted
    level = logging.DEBUG if wanted else logging.WARNING
    logging.basicConfig(level=level, format="inmind: %(levelname)s: %(message)s", force=True)


def leave(code: str, message: str) -> NoReturn:
    """End here, as an error with that code would."""
    _leave(exit_code(code), (code, message))


def exit_code(code: str) -> int:
    return EXIT_CODES.get(code, FAILED)


def complain(code: str, message: str) -> None:
    try:
        print(printable(f"inmind: {code}: {' '.join(message.split())}"), file=sys.stderr, flush=True)
    except OSError:  # nobody hears it; the exit code says it too
        _throw_away(sys.stderr)


def hear_output() -> None:
    """From now on, output shows what it can on any terminal, and failures of it are told from all others."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a terminal that cannot show a character shows which it was
            stream.reconfigure(errors="backslashreplace")
    if isinstance(out := sys.stdout, TextIOWrapper) and out is sys.__stdout__:
        sys.stdout = _Output(
            out.buffer,  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType] -- its kind is told nowhere
            encoding=out.encoding,
            errors=out.errors,
            line_buffering=out.line_buffering,
            write_through=out.write_through,
        )


class _Output(TextIOWrapper):
    """Standard output, which a full disk may be behind.

    That it cannot be written is remembered and told at the end: it must not stop a change in the middle, nor be taken
    for a change that failed. Only that nobody reads it any more is raised, as ever.
    """

    failure: ClassVar[OSError | None] = None

    def write(self, s: str, /) -> int:
        with _remembered():
            return super().write(s)
        return len(s)

    def flush(self) -> None:
        with _remembered():
            super().flush()


@contextmanager
def _remembered() -> Generator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        _Output.failure = _Output.failure or error


@contextmanager
def ending() -> Generator[None]:
    """Whatever happens inside, it ends here as an exit code."""
    try:
        try:
            yield
        except typer.Exit as left:
            if not left.exit_code:
                _check_all_is_said()
            raise
        _check_all_is_said()
    except (typer.Exit, SystemExit):
        raise
    except InmindError as error:
        leave(error.code, _in_words(error))
    except Failed as several:
        _leave(exit_code(several.errors[0].code), *((error.code, _in_words(error)) for error in several.errors))
    except (KeyboardInterrupt, typer.Abort):
        leave("INTERRUPTED", "stopped; what was acknowledged is kept")
    except BrokenPipeError:
        _leave(CLOSED_PIPE)
    except OSError as error:
        where = f" {error.filename}" if error.filename else ""
        _leave(FAILED, ("FAILED", f"{_reason(error)}{where}"))
    except Exception as error:
        if _is_of_usage(error):
            raise
        what = f"{type(error).__name__}: {error}"
        _leave(DEFECT, ("DEFECT", f"{what}; `inmind --debug …` shows where, please report it"))


def helped(error: ClickException) -> int:
    """Show how, where nothing was asked for."""
    try:
        error.show()
    except OSError:
        _throw_away(sys.stderr)
    return error.exit_code


def misused(error: Exception) -> int:
    """Say in one line what is wrong with the arguments, and where to read on."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "inmind"
    said = str(getattr(error, "format_message", error.__str__)()).rstrip(".")
    complain("USAGE", f"{said}{'' if said.endswith('?') else '.'} `{path} --help` shows how.")
    return USAGE


def _check_all_is_said() -> None:
    """What is wrong with the output has to show here, and not while Python shuts down."""
    sys.stdout.flush()
    if _Output.failure is not None:
        _throw_away(sys.stdout)
        said = f"done, but what it had to say could not be printed: {_reason(_Output.failure)}"
        _leave(UNSAID, ("UNSAID", said))


def _reason(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else str(error)


def _in_words(error: InmindError) -> str:
    more = "; `inmind doctor` says more"
    return f"{error}{more if error.code in EXAMINED and 'inmind doctor' not in str(error) else ''}"


def _is_of_usage(error: Exception) -> bool:
    return hasattr(error, "format_message")


def _leave(code: int, *lines: tuple[str, str]) -> NoReturn:
    if _debugging:
        traceback.print_exc()
    for line in lines:
        complain(*line)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            _throw_away(stream)
    raise typer.Exit(code)


def _throw_away(stream: TextIO) -> None:
    """Nobody reads it; what is left in its buffer must not raise again at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
