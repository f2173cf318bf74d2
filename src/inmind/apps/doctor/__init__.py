"""Checks of a home, with a fix for each problem. Read-only: changes no byte and no date.

`run_checks` checks everything that a home depends on, whether or not the home can be opened. Each finding comes with
the step that fixes it; a test carries out each of these steps and checks that the finding is gone.
"""

from inmind.apps.doctor.result import DoctorFinding, DoctorReport, Subject, Verdict
from inmind.apps.doctor.run import run_checks

__all__ = ["DoctorFinding", "DoctorReport", "Subject", "Verdict", "run_checks"]
