"""Replays recorded conversations through memory, call by call, and reports the differences."""

from inmind.apps.replay.files import Recording, join_recordings
from inmind.apps.replay.player import replay
from inmind.apps.replay.readers import read_recordings, short_name
from inmind.apps.replay.report import ReplayReport, sum_reports

__all__ = ["Recording", "ReplayReport", "join_recordings", "read_recordings", "replay", "short_name", "sum_reports"]
