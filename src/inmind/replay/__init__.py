"""Recorded conversations through memory, call by call, with a report of what that changes."""

from inmind.replay.joining import joined
from inmind.replay.play import replay
from inmind.replay.readers import read, short
from inmind.replay.recording import Recording
from inmind.replay.report import ReplayReport, total

__all__ = ["Recording", "ReplayReport", "joined", "read", "replay", "short", "total"]
