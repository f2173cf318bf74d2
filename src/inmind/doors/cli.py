"""The `inmind` command: finds the commands, or says what to install."""

from __future__ import annotations

import sys


def main() -> None:
    try:
        from inmind.doors.commands import app
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("typer", "rich"):
            raise
        sys.exit('inmind: the command line needs its extra: pip install "inmind[cli]"')
    app()
