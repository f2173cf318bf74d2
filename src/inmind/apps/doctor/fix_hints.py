"""Steps that mend, as they are typed into a shell: for this home, wherever it is and whatever it is called."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from inmind.core.frozen import frozen

AGAIN = "examine it again in a moment"


@frozen
class Steps:
    home: Path
    is_usual: bool
    """It is where the command line looks by itself."""

    def inmind(self, *arguments: str) -> str:
        where = () if self.is_usual else ("--home", str(self.home))
        return f"`{shlex.join(('inmind', *where, *arguments))}`"

    def shell(self, *words: str | Path) -> str:
        return f"`{shlex.join(map(str, words))}`"

    def taken_over(self, user: int) -> str:
        """All of the home becomes a user's."""
        return self.shell("sudo", "chown", "-R", str(user), self.home)

    def alone(self, file: Path) -> str:
        """Gives a file with several names bytes of its own."""
        copy = f"{file}.alone"
        return f"`{shlex.join(['cp', '-p', str(file), copy])} && {shlex.join(['mv', copy, str(file)])}`"

    @property
    def elsewhere(self) -> str:
        """To another disk."""
        return f"while nobody uses it, {self.shell('cp', '-a', self.home, '/on/a/local/disk')}, and name that by --home"

    def sql(self, statement: str, database: str) -> str:
        """By the SQLite that memory uses itself: another one may be of those that damage what several share."""
        return self.shell(sys.executable, "-m", "apsw", self.home / database, statement)

    @property
    def any_opening(self) -> str:
        """The least that opens the home, and with it brings up and recovers what needs that."""
        return self.inmind("sessions")

    def opening(self, session: str) -> str:
        """Brings the pages of a session and of its resource together with the journal."""
        return self.inmind("show", "overview", session)

    @property
    def bring_back(self) -> str:
        """Into a new home: what is damaged stays, for whoever wants to look into it."""
        return "keep it as it is, and take the last `inmind export` into a new home: `inmind --home NEW import FILE`"
