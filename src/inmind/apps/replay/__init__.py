"""Recorded conversations through memory, call by call, with a report of what that changes."""

from inmind.apps.replay.concat import joined
from inmind.apps.replay.player import replay
from inmind.apps.replay.readers import read, short
from inmind.apps.replay.recording import Recording
from inmind.apps.replay.report import ReplayReport, total

__all__ = ["Recording", "ReplayReport", "joined", "read", "replay", "short", "total"]
