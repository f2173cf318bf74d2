"""Exit codes and error lines of the command line.

Commands do not catch errors; this module catches all of them. Scripts switch on the exit code, or on the stable code
after `inmind:`; the rest of the line is for people.
"""

from __future__ import annotations

import logging
import os
import sys
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from io import TextIOWrapper
from typing import ClassVar, NoReturn, TextIO

from click import Abort, ClickException, Context
from click.exceptions import Exit

from inmind.apps.cli import EXIT_SIGINT, EXIT_SIGTERM
from inmind.core.text import printable
from inmind.errors import InmindError

FAILED, USAGE, NOT_FOUND, CONFLICT, STORAGE, MODEL, DEFECT, OUTPUT_FAILED, BROKEN_PIPE = 1, 2, 3, 4, 5, 6, 70, 74, 141

DOCTOR_CODES = ("UNSAFE_STORAGE", "DAMAGED")
"""Error codes for which `inmind doctor` has more details."""

_ERROR_CODES = {
    USAGE: ("INVALID_INPUT", "INVALID_PATH", "SCHEMA_VIOLATION", "KEY_REUSED"),
    NOT_FOUND: ("NOT_FOUND",),
    CONFLICT: ("CONFLICT", "BUNDLE_DIVERGED", "DREAM_RUNNING", "DREAM_OVERTAKEN", "STORE_BUSY"),
    STORAGE: (
        *("STORE", "STORAGE_FULL", "NOT_DURABLE", "READ_ONLY"),
        *("UNSAFE_STORAGE", "DAMAGED", "STORE_UNAVAILABLE", "OUTCOME_UNKNOWN"),
    ),
    MODEL: ("MODEL_FAILED",),
    EXIT_SIGINT: ("INTERRUPTED",),
}

EXIT_CODES = {error_code: code for code, error_codes in _ERROR_CODES.items() for error_code in error_codes}
"""Exit code by error code; any other error code is FAILED."""

EXIT_CODE_HELP = {
    0: "done",
    FAILED: "refused or failed",
    USAGE: "wrong arguments or input",
    NOT_FOUND: "home, session or resource not found",
    CONFLICT: "conflict, retry",
    STORAGE: "disk or store error",
    MODEL: "model error",
    DEFECT: "bug in inmind",
    OUTPUT_FAILED: "output could not be written",
    EXIT_SIGINT: "Ctrl-C",
    BROKEN_PIPE: "broken pipe",
    EXIT_SIGTERM: "SIGTERM",
}
"""Meaning of each exit code, as the help lists it."""

_debugging = False


class SeveralErrors(Exception):
    """Several errors at once, printed one per line."""

    def __init__(self, *errors: InmindError) -> None:
        super().__init__(*errors)
        self.errors = errors


def set_debug(enabled: bool) -> None:
    """Turn tracebacks and debug logs on or off."""
    global _debugging
    _debugging = enabled
    level = logging.DEBUG if enabled else logging.WARNING
    logging.basicConfig(level=level, format="inmind: %(levelname)s: %(message)s", force=True)


def exit_with(code: str, message: str) -> NoReturn:
    """Print the message and exit as for an error with this code."""
    _exit(exit_code(code), (code, message))


def exit_code(code: str) -> int:
    return EXIT_CODES.get(code, FAILED)


def print_error(code: str, message: str) -> None:
    try:
        print(printable(f"inmind: {code}: {' '.join(message.split())}"), file=sys.stderr, flush=True)
    except OSError:  # stderr is closed; the exit code remains
        _discard_stream(sys.stderr)


def guard_output() -> None:
    """Escape characters that stdout and stderr cannot encode, and record write failures."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if isinstance(out := sys.stdout, TextIOWrapper) and out is sys.__stdout__:
        sys.stdout = _GuardedStdout(
            out.buffer,  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType] -- untyped in typeshed
            encoding=out.encoding,
            errors=out.errors,
            line_buffering=out.line_buffering,
            write_through=out.write_through,
        )


class _GuardedStdout(TextIOWrapper):
    """Standard output that records write errors, such as a full disk, instead of raising them.

    The failure is reported at the end: raised at once it would interrupt a change halfway, or look like a change that
    failed. A broken pipe is still raised.
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
    """Turn any exception of the block into an error line and an exit code."""
    try:
        try:
            yield
        except Exit as exited:
            if not exited.exit_code:
                _check_output_written()
            raise
        _check_output_written()
    except (Exit, SystemExit):
        raise
    except InmindError as error:
        exit_with(error.code, _error_text(error))
    except SeveralErrors as several:
        _exit(exit_code(several.errors[0].code), *((error.code, _error_text(error)) for error in several.errors))
    except (KeyboardInterrupt, Abort):
        exit_with("INTERRUPTED", "stopped; acknowledged changes are saved")
    except BrokenPipeError:
        _exit(BROKEN_PIPE)
    except OSError as error:
        file = f" {error.filename}" if error.filename else ""
        _exit(FAILED, ("FAILED", f"{_reason(error)}{file}"))
    except ClickException:  # about the arguments: see `report_usage_error`
        raise
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
        _exit(DEFECT, ("DEFECT", f"{message}; this is a bug, please report it with the output of `inmind --debug …`"))


def show_help(error: ClickException) -> int:
    """Print the help if no command was given."""
    try:
        error.show()
    except OSError:
        _discard_stream(sys.stderr)
    return error.exit_code


def report_usage_error(error: ClickException) -> int:
    """Print one line about wrong arguments, with a pointer to --help."""
    context: Context | None = getattr(error, "ctx", None)
    path = context.command_path if context else "inmind"
    message = error.format_message().rstrip(".")
    print_error("USAGE", f"{message}{'' if message.endswith('?') else '.'} See `{path} --help`.")
    return USAGE


def _check_output_written() -> None:
    """Flush stdout now: an error during interpreter shutdown could not be reported."""
    sys.stdout.flush()
    if _GuardedStdout.failure is not None:
        _discard_stream(sys.stdout)
        message = f"done, but the output could not be written: {_reason(_GuardedStdout.failure)}"
        _exit(OUTPUT_FAILED, ("UNSAID", message))


def _reason(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else str(error)


def _error_text(error: InmindError) -> str:
    hint = "; run `inmind doctor` for details"
    return f"{error}{hint if error.code in DOCTOR_CODES and 'inmind doctor' not in str(error) else ''}"


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
    raise Exit(code)


def _discard_stream(stream: TextIO) -> None:
    """Redirect a broken stream to /dev/null, so that its buffer does not raise again at exit."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, stream.fileno())
    os.close(devnull)
