"""The `inmind` command: finds the commands, or says what to install."""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn

INTERRUPTED, TERMINATED = 130, 143


def main() -> None:
    _have_all_streams()
    signal.signal(signal.SIGTERM, _leave)
    try:
        from inmind.apps.cli.app import app

        app()
    except KeyboardInterrupt:  # while it was still being loaded
        sys.exit(INTERRUPTED)
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):  # a part of one that is missing is another version of it, and no extra
            raise
        sys.exit('inmind: the command line needs its extra: pip install "inmind[cli]"')


def _have_all_streams() -> None:
    """Whoever starts us without one of the three gets nothing there.

    Otherwise the next file that is opened would get its number, and what goes to a stderr that is not there goes to
    stdout in Python.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))


def _leave(*_: object) -> NoReturn:
    """Whatever a command has begun is ended as after Ctrl-C: files that were only its own are removed."""
    sys.exit(TERMINATED)
