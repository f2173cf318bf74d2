"""The examination, from the ground up: the place, the database in it, the streams in that, and what is made of those.

What stands on something that does not hold is not looked at: a hundred findings about one broken page help nobody.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import apsw

from inmind.apps.doctor import database, dreams, folder, model, pages, search, streams, versions
from inmind.apps.doctor.fix_hints import Steps
from inmind.apps.doctor.postgres import examine_server
from inmind.apps.doctor.result import Examination, Finding, Verdict, in_order, with_sound
from inmind.apps.doctor.sqlite_readonly import StoreLookedAt, Way, undisturbed
from inmind.apps.doctor.streams import Folded
from inmind.core.frozen import frozen
from inmind.core.paths import DATABASE, checked_url, default_home, default_place, is_database
from inmind.core.streams import RESOURCE_PREFIX, SESSION_PREFIX
from inmind.core.text import counted
from inmind.errors import StoreBusy, StoreError
from inmind.search.embedders.base import Embedder
from inmind.session.state import ResourceState, SessionState
from inmind.store.filesystem import mount_of
from inmind.store.protocol import Clock
from inmind.store.sqlite import left_of

Watch = Callable[[str, int, int], None]


@frozen
class Patient:
    """The home that is examined, and how to speak of it."""

    home: Path
    steps: Steps
    clock: Clock
    survey: folder.Survey
    watch: Watch


def examine(
    home: str | Path | None = None,
    *,
    online: bool = True,
    embedder: str | Embedder | None = "auto",
    clock: Clock | None = None,
    watch: Watch | None = None,
) -> Examination:
    """Everything that is wrong with a home: the given one, that of the environment, or ~/.inmind. Nothing there is
    changed by it. Of a database, whether it can be worked with.

    Not `online`, nobody outside of this machine is asked anything. `embedder`: the one that the home is opened with.
    `watch` is told what is being looked at and how many events of it have been gone through, of how many; of 0 where
    that cannot be told.
    """
    named = default_place() if home is None else home
    if isinstance(named, str) and is_database(named):
        return examine_server(checked_url(named, "home"), online=online)
    usual, where = default_home().expanduser().absolute(), Path(named).expanduser().absolute()
    steps = Steps(where, is_usual=where == usual)
    there = folder.presence(where, steps)
    findings = [there, versions.versions(), versions.extras(), database.library(apsw.sqlite_lib_version())]
    if folder.may_be_walked(where):
        home = where.resolve()
        patient = Patient(home, steps, clock or _now, folder.walked(home), watch or _nobody)
        told, configured = model.settings(home)
        found, embedding = search.embedder(embedder, online=online)
        findings += [*_ground(patient), configured, embedding]
        findings += [model.endpoint(told.model, online=online)] if told else []
        findings += _journal(patient, found)
    return Examination(home=where, findings=in_order(findings))


def _ground(patient: Patient) -> Iterator[Finding]:
    home, steps, survey = patient.home, patient.steps, patient.survey
    mount, space = mount_of(home), folder.space_at(home)
    yield from folder.access(survey, home, steps, user=os.geteuid())
    if not (mount.read_only or space.read_only):  # where nobody may write anything, whoever he is
        yield from folder.rights(survey, home, steps, user=os.geteuid())
    yield from folder.shapes(survey, home, steps)
    yield from folder.disk(mount, space, home, steps)
    yield folder.sizes(survey, steps)


def _journal(patient: Patient, embedder: Embedder | None) -> list[Finding]:
    path = patient.home / DATABASE
    if not path.exists() or left_of(path):
        return []
    found = undisturbed(path, lambda way: _looked_at(patient, way, embedder))
    return [database.unsettled()] if found is None else found


def _looked_at(patient: Patient, way: Way, embedder: Embedder | None) -> list[Finding]:
    try:
        store = StoreLookedAt(way)
    except StoreError as error:
        return [database.unopened(error, way.path, patient.steps)]
    try:
        return list(_database(patient, store, embedder))
    finally:
        store.close()


def _database(patient: Patient, store: StoreLookedAt, embedder: Embedder | None) -> Iterator[Finding]:
    patient.watch("checking every page of the database", 0, 0)
    sound = database.soundness(store, patient.steps)
    yield sound
    if sound.verdict is not Verdict.OK:
        return
    try:
        schema = database.schema(store, patient.steps)
        yield schema
        if schema.verdict is not Verdict.OK:
            return
        gone = _streams(patient, store)
        patient.watch("checking the index of search", 0, 0)
        standing, index = search.index(patient.home, store, patient.steps)
        yield from _told(patient, store, gone)
        yield index
        if standing is not None and embedder is not None:
            yield from search.vectors(standing, embedder, patient.steps)
    except StoreError as error:
        yield database.unopened(error, store.path, patient.steps)


@frozen(kw_only=True)
class _Gone:
    """One stream, gone through."""

    name: str
    findings: Sequence[Finding]
    files: Sequence[Finding] = ()
    """What its pages look like. A page is never of the same moment as its stream: see `_confirmed`."""
    version: int = 0
    is_fresh: bool = False
    """Its newest event may not have been shown in its files yet."""
    notes: int = 0
    """That wait for a dream."""
    looks_after: Mapping[Path, str] = field(default_factory=dict[Path, str])
    """Of a session: the folders that opening it brings together with the journal."""


def _streams(patient: Patient, store: StoreLookedAt) -> list[_Gone]:
    """Sessions first: by opening one of them the pages of its resource are mended."""
    gone: list[_Gone] = []
    looked_after: dict[Path, str] = {}
    read, events = 0, store.position()
    for name in (*store.streams(SESSION_PREFIX), *store.streams(RESOURCE_PREFIX)):
        patient.watch("reading every event", read, events)
        gone.append(_through(patient, store, name, looked_after))
        looked_after |= gone[-1].looks_after
        read += gone[-1].version
    return gone


def _told(patient: Patient, store: StoreLookedAt, gone: Sequence[_Gone]) -> list[Finding]:
    survey, home, steps = patient.survey, patient.home, patient.steps
    looked_after = {folder: session for one in gone for folder, session in one.looks_after.items()}
    findings = [finding for one in gone for finding in one.findings]
    findings += [finding for one in gone for finding in _confirmed(patient, store, one, looked_after)]
    findings += pages.kept_aside(survey, home, steps)
    findings += pages.leftovers(folder.unchanged(survey.leftovers, home), home, steps, looked_after, patient.clock())
    sessions = sum(one.name.startswith(SESSION_PREFIX) for one in gone)
    both = f"{counted(sessions, 'session')} and {counted(len(gone) - sessions, 'resource')}"
    return with_sound(
        findings,
        {
            streams.EVENTS: f"all {sum(one.version for one in gone):,} of {both} read back, none missing",
            streams.SNAPSHOTS: "each says what its events add up to",
            streams.CLOCK: "nothing has happened in the future",
            pages.PAGES: "each file shows what the journal says",
            pages.ASIDE: "nothing",
            pages.PADS: "none set aside",
            pages.LEFTOVERS: "none",
            search.PASSED_OVER: "no message that cannot be read",
            dreams.LEASES: "none left behind",
            dreams.FAILURES: "none in a row",
            dreams.NOTES: f"{counted(sum(one.notes for one in gone), 'note')} waiting",
        },
    )


def _through(patient: Patient, store: StoreLookedAt, name: str, looked_after: Mapping[Path, str]) -> _Gone:
    """Whatever a stream leads to is a finding of that stream: all others are gone through as well."""
    try:
        with store.moment():
            return _at_one_moment(patient, store, name, looked_after)
    except StoreBusy:
        raise
    except Exception as error:  # events are data, and what folds and shows them may meet anything there
        return _Gone(name=name, findings=[streams.unfit(name, error, patient.steps)])


def _at_one_moment(patient: Patient, store: StoreLookedAt, name: str, looked_after: Mapping[Path, str]) -> _Gone:
    home, steps = patient.home, patient.steps
    found = streams.folded(store, name, patient.clock)
    now = patient.clock()
    findings = [
        *streams.snapshots(store, found, steps),
        *streams.ahead(found, now),
        *pages.set_aside(found),
        *search.passed_over(found, steps),
    ]
    gone = _Gone(name=name, findings=findings, version=found.stream.version, is_fresh=streams.is_fresh(found, now))
    if isinstance(found.stream.state, SessionState):
        session = cast("Folded[SessionState]", found)
        files = pages.session_pages(home, session, store, steps)
        return replace(gone, files=list(files), looks_after=pages.looked_after(home, session))
    resource = cast("Folded[ResourceState]", found)
    files = pages.resource_pages(home, resource, store, steps, looked_after)
    theirs = [*findings, *dreams.dreams(resource, now, steps)]
    return replace(gone, findings=theirs, files=list(files), notes=len(dreams.waiting(resource)))


def _confirmed(
    patient: Patient, store: StoreLookedAt, gone: _Gone, looked_after: Mapping[Path, str]
) -> Sequence[Finding]:
    """What a second look sees too, of a stream that stands still.

    Whoever writes commits first and shows it then, and an editor may empty a file before it fills it: in between, and
    while the journal is read here, a page differs from it. That somebody writes is all that can be said of that.
    """
    if not gone.files:
        return ()
    again = _through(patient, store, gone.name, looked_after)
    if again.is_fresh or again.version != store.version(gone.name):
        return [pages.in_use(gone.name)] if again.files else ()
    return [finding for finding in again.files if finding in gone.files]


def _now() -> datetime:
    return datetime.now(UTC)


def _nobody(_doing: str, _done: int, _total: int) -> None:
    pass
