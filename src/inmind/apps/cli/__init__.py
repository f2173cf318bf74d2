"""Entry point of the `inmind` command.

It prints an install hint if the `cli` extra is missing.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn

EXIT_SIGINT, EXIT_SIGTERM = 130, 143


def main() -> None:
    _open_missing_streams()
    signal.signal(signal.SIGTERM, _exit_on_sigterm)
    try:
        from inmind.apps.cli.app import app

        app()
    except KeyboardInterrupt:  # during the imports
        sys.exit(EXIT_SIGINT)
    except ModuleNotFoundError as error:
        if error.name not in ("click", "rich"):  # a missing submodule means a wrong version, not a missing extra
            raise
        sys.exit('inmind: the command line needs the cli extra: pip install "inmind[cli]"')


def _open_missing_streams() -> None:
    """Open /dev/null for each of stdin, stdout and stderr that the parent process has closed.

    Otherwise the next opened file would get the free descriptor, and Python would print to stdout instead of a missing
    stderr.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))


def _exit_on_sigterm(*_: object) -> NoReturn:
    """Exit like on Ctrl-C, so that `finally` blocks remove temporary files."""
    sys.exit(EXIT_SIGTERM)
