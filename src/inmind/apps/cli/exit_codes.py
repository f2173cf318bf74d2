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

from inmind.apps.cli import EXIT_SIGINT, EXIT_SIGTERM
from inmind.core.text import printable
from inmind.errors import InmindError

if TYPE_CHECKING:
    from typer._click.exceptions import ClickException

FAILED, USAGE, NOT_FOUND, CONFLICT, STORAGE, MODEL, DEFECT, OUTPUT_FAILED, BROKEN_PIPE = 1, 2, 3, 4, 5, 6, 70, 74, 141

DOCTOR_CODES = ("UNSAFE_STORAGE", "DAMAGED")
"""Codes of errors about a home of which a doctor can tell more."""

EXIT_CODES = {
    "INVALID_INPUT": USAGE,
    "INVALID_PATH": USAGE,
    "SCHEMA_VIOLATION": USAGE,
    "KEY_REUSED": USAGE,
    "NOT_FOUND": NOT_FOUND,
    "CONFLICT": CONFLICT,
    "BUNDLE_DIVERGECONFLICTAKEN,
    "DREAM_RUNNING": CONFLICT,
    "DREAM_OVERTAKEN": CONFLICT,
    "STORE_BUSY": CONFLICT,
    "STORE": STORAGE,
    "STORAGE_FULL": STORAGE,
    "NOT_DURABLE": STORAGE,
    "READ_ONLY": STORAGE,
    "UNSAFE_STORAGE": STORAGE,
    "DAMAGED": STORAGE,
    "STORE_UNAVAILABLE": STORAGE,
    "OUTCOME_UNKNOWN": STORAGE,
    "MODEL_FAILED": MODEL,
    "INTERRUPTED": EXIT_SIGINT,
}
"""By the code of an error; any other is FAILED."""

EXIT_CODE_HELP = {
    0: "done",
    FAILED: "refused or failed",
    USAGE: "wrong arguments or input",
    NOT_FOUND: "no such home, session or resource",
    CONFLICT: "somebody else was first: try again",
    STORAGE: "the disk or the store",
    MODEL: "the model",
    DEFECT: "a defect of inmind",
    OUTPUT_FAILED: "the output could not be written",
    EXIT_SIGINT: "Ctrl-C",
    BROKEN_PIPE: "nobody reads the output any more",
    EXIT_SIGTERM: "SIGTERM",
}
"""As the help lists them."""

_debugging = False


class SeveralErrors(Exception):
    """Several things went wrong at once, each with a line of its own."""

    def __init__(self, *errors: InmindError) -> None:
        super().__init__(*errors)
        self.errors = errors


def set_debug(enabled: bool) -> None:
    """Whether what leads to a failure is shown too, from now on."""
    global _debugging
    _debugging = enabled
    level = logging.DEBUG if enabled else logging.WARNING
    logging.basicConfig(level=level, format="inmind: %(levelname)s: %(message)s", force=True)


def exit_with(code: str, message: str) -> NoReturn:
    """End here, as an error with that code would."""
    _exit(exit_code(code), (code, message))


def exit_code(code: str) -> int:
    return EXIT_CODES.get(code, FAILED)


def print_error(code: str, message: str) -> None:
    try:
        print(printable(f"inmind: {code}: {' '.join(message.split())}"), file=sys.stderr, flush=True)
    except OSError:  # nobody hears it; the exit code says it too
        _discard_stream(sys.stderr)


def guard_output() -> None:
    """From now on, output shows what it can on any terminal, and failures of it are told from all others."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a terminal that cannot show a character shows which it was
            stream.reconfigure(errors="backslashreplace")
    if isinstance(out := sys.stdout, TextIOWrapper) and out is sys.__stdout__:
        sys.stdout = _GuardedStdout(
            out.buffer,  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType] -- its kind is told nowhere
            encoding=out.encoding,
            errors=out.errors,
            line_buffering=out.line_buffering,
            write_through=out.write_through,
        )


class _GuardedStdout(TextIOWrapper):
    """Standard output, which a full disk may be behind.

    That it cannot be written is remembered and told at the end: it must not stop a change in the middle, nor be taken
    for a change that failed. Only that nobody reads it any more is raised, as ever.
    """

    failure: ClassVar[OSError | None] = None

    def write(self, s: str, /) -> int:
        with _record_failure():
            return super().write(s)
        return len(s)

    def flush(self) -> None:
        with _record_failure():
            super().flush()


@contextmanager
def _record_failure() -> Generator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        _GuardedStdout.failure = _GuardedStdout.failure or error


@contextmanager
def map_errors_to_exit_codes() -> Generator[None]:
    """Whatever happens inside, it ends here as an exit code."""
    try:
        try:
            yield
        except typer.Exit as left:
            if not left.exit_code:
                _check_output_written()
            raise
        _check_output_written()
    except (typer.Exit, SystemExit):
        raise
    except InmindError as error:
        exit_with(error.code, _error_text(error))
    except SeveralErrors as several:
        _exit(exit_code(several.errors[0].code), *((error.code, _error_text(error)) for error in several.errors))
    except (KeyboardInterrupt, typer.Abort):
        exit_with("INTERRUPTED", "stopped; what was acknowledged is kept")
    except BrokenPipeError:
        _exit(BROKEN_PIPE)
    except OSError as error:
        where = f" {error.filename}" if error.filename else ""
        _exit(FAILED, ("FAILED", f"{_reason(error)}{where}"))
    except Exception as error:
        if _is_usage_error(error):
            raise
        what = f"{type(error).__name__}: {error}"
        _exit(DEFECT, ("DEFECT", f"{what}; `inmind --debug …` shows where, please report it"))


def show_help(error: ClickException) -> int:
    """Show how, where nothing was asked for."""
    try:
        error.show()
    except OSError:
        _discard_stream(sys.stderr)
    return error.exit_code


def report_usage_error(error: Exception) -> int:
    """Say in one line what is wrong with the arguments, and where to read on."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "inmind"
    message = str(getattr(error, "format_message", error.__str__)()).rstrip(".")
    print_error("USAGE", f"{message}{'' if message.endswith('?') else '.'} `{path} --help` shows how.")
    return USAGE


def _check_output_written() -> None:
    """What is wrong with the output has to show here, and not while Python shuts down."""
    sys.stdout.flush()
    if _GuardedStdout.failure is not None:
        _discard_stream(sys.stdout)
        message = f"done, but what it had to say could not be printed: {_reason(_GuardedStdout.failure)}"
        _exit(OUTPUT_FAILED, ("UNSAID", message))


def _reason(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else str(error)


def _error_text(error: InmindError) -> str:
    hint = "; `inmind doctor` says more"
    return f"{error}{hint if error.code in DOCTOR_CODES and 'inmind doctor' not in str(error) else ''}"


def _is_usage_error(error: Exception) -> bool:
    return hasattr(error, "format_message")


def _exit(code: int, *lines: tuple[str, str]) -> NoReturn:
    if _debugging:
        traceback.print_exc()
    for line in lines:
        print_error(*line)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            _discard_stream(stream)
    raise typer.Exit(code)


def _discard_stream(stream: TextIO) -> None:
    """Nobody reads it; what is left in its buffer must not raise again at exit."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, stream.fileno())
    os.close(devnull)
