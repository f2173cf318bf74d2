"""What is wrong with a home, and how to fix it. Looking changes nothing: not a byte, not a date.

`examine` goes through everything that a home stands on, whether or not it can be opened. Whatever it finds is told with
the one step that mends it, and each of these hints is carried out by a test that sees the finding go away.
"""

from inmind.apps.doctor.result import DoctorFinding, DoctorReport, Subject, Verdict
from inmind.apps.doctor.run import run_checks

__all__ = ["DoctorReport", "DoctorFinding", "Subject", "Verdict", "run_checks"]
