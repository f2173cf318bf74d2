"""A process that acknowledges notes before they are stored, and dies in between.

The demonstration must detect it. It replaces the child process of `inmind.apps.demo.crash`.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from inmind import Memory
from inmind.apps.demo.crash import NOTE_COUNT, RESOURCE, SESSION, note_text

KEPT = NOTE_COUNT - 3

if __name__ == "__main__":
    with Memory.open(Path(sys.argv[1]), embedder=None) as memory:
        session = memory.session(SESSION, resource=RESOURCE)
        for number in range(1, NOTE_COUNT + 1):
            print(number, flush=True)
            if number <= KEPT:
                session.note(note_text(number) if number > 1 else note_text(number)[:20])
        os.kill(os.getpid(), signal.SIGKILL)
