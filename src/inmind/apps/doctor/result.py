"""What an examination finds: one line each, with the one line that mends it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path

from inmind.core.frozen import frozen


class Verdict(StrEnum):
    OK = "ok"
    WARNING = "warning"
    """It works, and not as it should; or it will pass by itself."""
    TROUBLE = "trouble"
    """Something cannot be opened, kept or believed."""


class Subject(StrEnum):
    """What a finding is about, in the order in which they are told."""

    PLACE = "place"
    JOURNAL = "journal"
    PAGES = "pages"
    DREAMS = "dreams"
    SEARCH = "search"
    MODEL = "model"
    SOFTWARE = "software"


@frozen(kw_only=True)
class Finding:
    subject: Subject
    check: str
    verdict: Verdict
    seen: str
    mend: str = ""
    """The step that mends it: a command where there is one."""

    def __post_init__(self) -> None:
        if self.verdict is not Verdict.OK and not self.mend:
            raise ValueError("whoever finds something wrong says how to mend it")


@frozen(kw_only=True)
class Examination:
    home: Path | str
    """The folder, or the URL of the database without its password."""
    findings: tuple[Finding, ...]
    """By subject; of a check that found nothing wrong, one that says so."""

    @property
    def verdict(self) -> Verdict:
        """The worst of all."""
        found = {finding.verdict for finding in self.findings}
        return next(verdict for verdict in (Verdict.TROUBLE, Verdict.WARNING, Verdict.OK) if verdict in {*found, "ok"})

    def of(self, verdict: Verdict) -> list[Finding]:
        return [finding for finding in self.findings if finding.verdict is verdict]


@frozen
class Check:
    """One thing that is looked at: how it is told whatever was found."""

    subject: Subject
    name: str

    def ok(self, seen: str, mend: str = "") -> Finding:
        return Finding(subject=self.subject, check=self.name, verdict=Verdict.OK, seen=seen, mend=mend)

    def warning(self, seen: str, mend: str) -> Finding:
        return Finding(subject=self.subject, check=self.name, verdict=Verdict.WARNING, seen=seen, mend=mend)

    def trouble(self, seen: str, mend: str) -> Finding:
        return Finding(subject=self.subject, check=self.name, verdict=Verdict.TROUBLE, seen=seen, mend=mend)


def with_sound(findings: Sequence[Finding], sound: Mapping[Check, str]) -> list[Finding]:
    """The findings, and for each of these checks that found nothing wrong what it has gone through."""
    found = {(finding.subject, finding.check) for finding in findings}
    return [*findings, *(check.ok(seen) for check, seen in sound.items() if (check.subject, check.name) not in found)]


def in_order(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """By subject, and what one check has found together: checks go from stream to stream, and people do not."""
    subjects, checks = list(Subject), list(dict.fromkeys(finding.check for finding in findings))
    return tuple(sorted(findings, key=lambda one: (subjects.index(one.subject), checks.index(one.check))))
