"""meta.json: what a session list shows, for people and tools that look into the folder."""

from __future__ import annotations

import json

from inmind.errors import InmindError
from inmind.mind import Mind
from inmind.stores.files import Folder

FILE = "meta.json"

EVERY = 200
"""Events between two writings while a session runs; it is also written when the session opens and closes."""


class MetaFile:
    def __init__(self, folder: Folder, session: str) -> None:
        self._folder, self._session = folder, session
        self._written = -1

    def lags(self, mind: Mind) -> bool:
        return self._written < 0 or mind.seq - self._written >= EVERY

    def write(self, mind: Mind) -> str:
        """Answers with what went wrong, if anything: a view may lag, a call must not fail."""
        if mind.seq == self._written or mind.opened is None:
            return ""
        meta = {
            "id": self._session,
            "resource": mind.opened.resource,
            "cwd": mind.opened.cwd,
            "language": mind.opened.language,
            "parent": mind.opened.parent or None,
            "messages_in_history": len(mind.line),
            "calls": mind.standing.calls,
            "version": mind.seq,
            "asked": mind.standing.asked.isoformat() if mind.standing.asked else None,
        }
        try:
            with self._folder.locked():
                self._folder.replace(FILE, (json.dumps(meta, ensure_ascii=False, indent=2) + "\n").encode())
        except InmindError as error:
            return f"{FILE} could not be brought up to date: {error}"
        self._written = mind.seq
        return ""
