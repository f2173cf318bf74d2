"""A process that says of notes that they are safe before they are, and dies in between: what the demonstration is
there to find out.

It stands where `inmind.apps.demo.crash_child` does, and has the same names.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from inmind import Memory
from inmind.apps.demo.crash_child import NOTE_COUNT, RESOURCE, SESSION, note_text

__all__ = ["RESOURCE", "SESSION", "NOTE_COUNT", "note_text"]

KEPT = NOTE_COUNT - 3

if __name__ == "__main__":
    with Memory.open(Path(sys.argv[1]), embedder=None) as memory:
        session = memory.session(SESSION, resource=RESOURCE)
        for number in range(1, NOTE_COUNT + 1):
            print(number, flush=True)
            if number <= KEPT:
                session.note(note_text(number) if number > 1 else note_text(number)[:20])
        os.kill(os.getpid(), signal.SIGKILL)
