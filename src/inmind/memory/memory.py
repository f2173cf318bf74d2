"""The home of all memory, a folder or a database: opens it, hands out sessions, closes it."""

from __future__ import annotations

import logging
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import date, datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Self, cast

from inmind.core.background import BackgroundQueue
from inmind.core.events.base import Draft, Origin
from inmind.core.events.crystals import CrystalPinned
from inmind.core.events.documents import DocumentWritten
from inmind.core.events.session import SessionImported, SessionOpened, SessionTitled
from inmind.core.fork import tell_after_fork
from inmind.core.paths import (
    DATABASE,
    checked_file,
    checked_home,
    checked_name,
    checked_url,
    default_place,
    is_database,
    require_resource,
    working_directory,
)
from inmind.core.settings import SOURCES
from inmind.core.streams import ANONYMOUS, RESOURCE_PREFIX, SESSION_PREFIX, owner_of
from inmind.core.tokens import Counter, estimator
from inmind.documents.document import OVERVIEW, resolve
from inmind.documents.overview import LANGUAGES, template
from inmind.entities.config import DEFAULT_RULES, EntityRules
from inmind.entities.serialize import deserialize
from inmind.errors import Closed, InvalidInput, ModelFailed, NotFound, UnsafeStorage
from inmind.history.compaction.policy import DEFAULT_POLICY, CompressionPolicy, Summarizer
from inmind.memory.documents import SETTINGS_PATHS, DocumentEditor, Page
from inmind.memory.folder_backend import FolderBackend
from inmind.memory.listing import SessionInfo, belongs_to_folder, is_known_resource, list_resources, list_sessions
from inmind.prompt.anchor import CACHE_SECONDS
from inmind.prompt.layers.base import DocumentLayer, EntityLayer, Layer, NotesLayer, StateLayer, checked_layers
from inmind.prompt.plan import Limits
from inmind.search.note import IMPORTANCE, checked_note
from inmind.session.backend import Backend, DocumentFiles
from inmind.session.context import SessionConfig, SessionContext
from inmind.session.legacy_files import LegacySession, read_messages
from inmind.session.sibling_entities import SiblingEntities
from inmind.session.state import ResourceFold, ResourceState, SessionFold, SessionState
from inmind.store.atomic_files import make_private
from inmind.store.protocol import Clock, Store
from inmind.store.sqlite import SqliteStore
from inmind.store.stream import Decision, Stream, key_for

if TYPE_CHECKING:
    from inmind.core.settings import Settings
    from inmind.dreams.model import Model
    from inmind.jobs.consolidation import Consolidation, Consolidator
    from inmind.jobs.dreaming.history import Dream, Dreams
    from inmind.jobs.dreaming.model_call import Asked
    from inmind.jobs.rate_limits import Allowances
    from inmind.jobs.upkeep import Housekeeping, Upkeep
    from inmind.memory.bundle.export_bundle import Exported
    from inmind.memory.bundle.import_bundle import Imported
    from inmind.search.crystal import Crystal
    from inmind.search.embedders.base import Embedder
    from inmind.search.engine import DeepMemory
    from inmind.search.note import Note
    from inmind.search.query import Hit, Query
    from inmind.session.affect import Affect
    from inmind.session.economics import Economics
    from inmind.session.notes import NoteWriter
    from inmind.session.session import Session

log = logging.getLogger("inmind")

MAX_UPKEEP_INTERVAL_SECONDS = 366 * 86_400
"""Seconds between two rounds of upkeep, at most: a thread cannot wait for any number of them."""
EMBEDDING_SLICE_SECONDS = 1.0
"""Seconds of embedding at a time: whoever closes a memory waits for no more."""
DEFAULT_WINDOW = 128_000
DEFAULT_RESERVE = 4_096
"""Kept free for the model's answer."""
MIN_WINDOW = 1_000


def default_layers(*own: Layer) -> tuple[Layer, ...]:
    """What a session has in mind when the host names no layers; own ones beside them, or in place of their namesakes.

    `default_layers(ScratchpadLayer(schema=Task))` is everything usual, with a scratchpad that a schema checks.
    """
    from inmind.prompt.layers.scratchpad import ScratchpadLayer

    overview = DocumentLayer(name="overview", path=OVERVIEW)
    usual = (StateLayer(), NotesLayer(), ScratchpadLayer(), overview, EntityLayer())
    names = {layer.name for layer in checked_layers(own)}
    return checked_layers([*(layer for layer in usual if layer.name not in names), *own])


class Memory:
    """All sessions and resources of one home, or of one database. Use it as a context manager."""

    def __init__(
        self,
        place: Backend,
        *,
        clock: Clock | None = None,
        embedder: str | Embedder | None = "auto",
        model: Model | Callable[..., Any] | None = None,
        settings: Settings | None = None,
    ) -> None:
        from inmind.core.settings import Settings  # whoever only imports us has nothing to set

        self._backend, self._store = place, place.store
        self.settings = settings or Settings()
        self._given: object = self.settings
        """Settings that go before those in config.toml."""
        self._embedder, self._model = embedder, model
        self._deep_memory: DeepMemory | None = None
        self._unembedded: set[str] = set()
        """Of whom something is new here that vectors may not have been made of."""
        self._housekeeping: Housekeeping | None = None
        self._background = BackgroundQueue()
        self._siblings = SiblingEntities(self._store)
        self._clock: Clock = _telling(clock) if clock else place.clock
        self._lock = threading.RLock()
        self._sessions: weakref.WeakSet[Session] = weakref.WeakSet()
        self._closed = False
        tell_after_fork(self)

    def after_fork(self) -> None:
        self._lock = threading.RLock()

    @classmethod
    def open(
        cls,
        home: str | Path | None = None,
        *,
        clock: Clock | None = None,
        embedder: str | Embedder | None = "auto",
        model: Model | Callable[..., Any] | None = None,
        settings: Settings | Mapping[str, Any] | None = None,
    ) -> Self:
        """Open a home folder, making it if need be, or a database by its URL: postgresql://…

        By default the database in $INMIND_DB, the folder in $INMIND_HOME, or ~/.inmind.

        `embedder` finds by meaning beside words: "auto" is the one that the extra `vectors` brings, if it is there; see
        `inmind.search.embedders` for the others. Without one, None, search goes by words alone. `model` is asked what
        dreams make of what was lived through: one of `inmind.dreams.models`, or a function from a prompt to a text;
        without one they go by rules. `settings` go before those in the home's config.toml: see `inmind.core.settings`.
        """
        where = default_place() if home is None else home
        return cls._at(where, clock=clock, embedder=embedder, model=model, settings=settings)

    @classmethod
    def _at(
        cls,
        where: str | Path,
        *,
        clock: Clock | None = None,
        embedder: str | Embedder | None,
        model: Model | Callable[..., Any] | None = None,
        settings: Settings | Mapping[str, Any] | None,
        make: bool = True,
    ) -> Self:
        """`make`: one, where there is none; else that is NotFound."""
        opening = _in_database if is_database(where) else _in_folder
        place, told = opening(where, settings, make)
        try:
            memory = cls(place, clock=clock, embedder=embedder, model=model, settings=told)
        except BaseException:
            place.store.close()
            raise
        memory._given = settings
        return memory

    @property
    def home(self) -> Path | None:
        """The folder that it is in; None where it is in a database."""
        return self._backend.home

    @property
    def location(self) -> str:
        """Where it is, in words: the folder, or the URL of the database without its password."""
        return str(self._backend)

    def session(
        self,
        id: str,
        *,
        resource: str | None = None,
        layers: Sequence[Layer] | None = None,
        window: int = DEFAULT_WINDOW,
        reserve: int | None = None,
        counter: Counter | None = None,
        cache_seconds: float = CACHE_SECONDS,
        cwd: str | Path | None = None,
        language: str = "en",
        entities: EntityRules = DEFAULT_RULES,
        memory_tools: bool = True,
        compression: CompressionPolicy = DEFAULT_POLICY,
        summarizer: Summarizer | None = None,
    ) -> Session:
        """Open a session, or begin it, under an id that is unique in this home.

        An existing one keeps the folder and language it began with, and belongs to the resource it began with:
        naming another is refused, since its memory would be handed to somebody else. A host that does not `record`
        replies turns `memory_tools` off: its model must not be offered what nobody would carry out. `compression` says
        when memory compacts the history by itself, and `summarizer`, a function from a prompt to a text, writes the
        summaries that `compact` is asked for.
        """
        if self._closed:
            raise Closed
        name = checked_name(id, "id")
        owner = checked_name(ANONYMOUS if resource is None else resource, "resource")
        limits = _limits(window, reserve, cache_seconds, exact=counter is not None)
        count = estimator() if counter is None else _counting(counter)
        if language not in LANGUAGES:
            raise InvalidInput(field="language", value=language, expected=f"one of {', '.join(LANGUAGES)}")
        if not isinstance(entities, EntityRules):  # pyright: ignore[reportUnnecessaryIsInstance] -- hosts are not all typed
            raise InvalidInput(field="entities", value=entities, expected="EntityRules")
        if not isinstance(memory_tools, bool):  # pyright: ignore[reportUnnecessaryIsInstance] -- hosts are not all typed
            raise InvalidInput(field="memory_tools", value=memory_tools, expected="True or False")
        if not isinstance(compression, CompressionPolicy):  # pyright: ignore[reportUnnecessaryIsInstance] -- hosts are not all typed
            raise InvalidInput(field="compression", value=compression, expected="a CompressionPolicy")
        if summarizer is not None and not callable(summarizer):
            raise InvalidInput(field="summarizer", value=summarizer, expected="a function from a prompt to a text")
        chosen = default_layers() if layers is None else checked_layers(layers)
        private = _with_a_private_scratchpad(chosen)
        setup = SessionConfig(
            layers=chosen,
            limits=limits,
            counter=count,
            entities=entities,
            memory_tools=memory_tools,
            compression=compression,
            summarizer=summarizer,
            affect=self.settings.affect.enabled,
        )
        opening = SessionOpened(resource=owner, cwd=working_directory(cwd), language=language)
        stream = self._begun(name, opening, ())
        opened = stream.state.opened or opening
        if resource is not None and opened.resource != owner:
            raise InvalidInput(field="resource", value=resource, expected="the resource that this session began with")
        reached = self._handed_down(private if opened.resource == ANONYMOUS else chosen, opened)
        return self._opened(name, stream, opened, replace(setup, layers=reached))

    def import_entities(
        self,
        data: object,
        id: str | None = None,
        *,
        resource: str | None = None,
        entities: EntityRules = DEFAULT_RULES,
    ) -> Session:
        """A session with the things of a checkpoint in mind, as `Session.serialize` gave it in any version.

        Without an id a new one is begun; an existing one has them in front of what it has. A window of another size
        is told by `entities`, as to `session`. What is refused begins no session.
        """
        deserialize(data)
        name = f"restored-{os.urandom(6).hex()}" if id is None else id
        session = self.session(name, resource=resource, entities=entities)
        session.import_entities(data)
        return session

    def sessions(
        self, *, cwd: str | Path | None = None, resource: str | None = None, limit: int | None = None
    ) -> list[SessionInfo]:
        """The sessions of this home, the most recently used first; older single-file ones among them.

        With `cwd`, those that began in this folder; with `resource`, those that belong to it; with `limit`, so many. So
        many of a folder's are looked for among the 5,000 that were used last, unless a resource is named.
        """
        here = None if cwd is None else working_directory(cwd)
        owner = None if resource is None else checked_name(resource, "resource")
        if limit is not None and (type(limit) is not int or limit < 1):
            raise InvalidInput(field="limit", value=limit, expected="a whole number of 1 or more")
        return list_sessions(self._backend, cwd=here, resource=owner, most=limit)

    def latest(self, *, cwd: str | Path | None = None, resource: str | None = None) -> SessionInfo | None:
        """The session to go on with in a folder, the current one by default: the most recently used.

        Those that were spawned from another are passed over: a sub-agent's talk is nobody's to go on with. It is looked
        for among all that a named resource has, or among the 5,000 of everybody that were used last.
        """
        owner = None if resource is None else checked_name(resource, "resource")
        found = list_sessions(self._backend, cwd=working_directory(cwd), resource=owner, most=1, children=False)
        return found[0] if found else None

    def resources(self) -> list[str]:
        """Everybody whom something belongs to here: by sessions of theirs, or by what was written down for them."""
        return list(list_resources(self._store))

    def has_resource(self, resource: str) -> bool:
        """Whether anything belongs to a resource: a session, or something that was written down for it."""
        return is_known_resource(self._store, resource)

    def belongings__R(self, resource: str) -> ResourceState:
        """What a resource owns, shared by all of its sessions: its pages, its scratchpads, what it feels and dreams."""
        stream = self._resource_stream(checked_name(resource, "resource"))
        self._resource_files(resource, stream).read_edits()
        return stream.state

    # -- documents -----------------------------------------------------------------------------------------

    def page(self, path: str, *, session: str | None = None, resource: str | None = None) -> Page:
        """A document as it stands now, with whatever people have just written into its file.

        overview.md, detail/… and archive/… are a session's; MEMORY.md and memory/scratch.md a resource's, which may be
        named by one of its sessions; config.toml is everybody's.
        """
        if path in SETTINGS_PATHS:
            _check_unnamed(session, resource)
            config = self._backend.read_config(path)
            return Page(path=path, text=config.text, version=config.version)
        return self._editing(path, session, resource).read()

    def edit(self, page: Page, text: str) -> Page:
        """Write a document anew, as a person does in its file. Answers with the page as it is then.

        If it has moved on since `page` was read, that is a Conflict with both texts, and nothing is overwritten.
        """
        if not isinstance(page, Page):  # pyright: ignore[reportUnnecessaryIsInstance] -- hosts are not all typed
            raise InvalidInput(field="page", value=page, expected="a Page, as `page` answers with")
        if page.path in SETTINGS_PATHS:
            version = self._backend.write_config(text, base=page.version, at=self._clock(), name=page.path)
            return replace(page, text=text, version=version)
        return self._editing(page.path, page.session or None, page.resource or None).write(page, text)

    def _editing(
        self, path: str, session: str | None, resource: str | None
    ) -> DocumentEditor[SessionState] | DocumentEditor[ResourceState]:
        if self._closed:
            raise Closed
        if session is None:
            scope, name = resolve(path)
            if resource is None or scope == "thread":
                whose = "session" if scope == "thread" else "resource"
                raise InvalidInput(field=whose, expected=f"the {whose} whose {name} is meant")
            return self._editing_shared(name, require_resource(resource))
        _check_unnamed(resource)
        if session not in self:
            raise NotFound(what="session", name=session, hint="a page is written in one that is there")
        owner = self.session(session).resource
        scope, name = resolve(path, alone=owner == ANONYMOUS)
        if scope == "resource":
            return self._editing_shared(name, owner)
        stream = self._stream(session)
        opened = stream.state.opened
        files = self._backend.session_files(session, opened.cwd if opened else "", stream).files
        return DocumentEditor(Page(path=name, text="", version=0, session=session), stream, files)

    def _editing_shared(self, path: str, resource: str) -> DocumentEditor[ResourceState]:
        stream = self._resource_stream(resource)
        blank = Page(path=path, text="", version=0, resource=resource)
        return DocumentEditor(blank, stream, self._resource_files(resource, stream))

    # -- deep memory ---------------------------------------------------------------------------------------

    def note__R(
        self,
        resource: str,
        text: str,
        *,
        importance: float = IMPORTANCE,
        kind: str = "general",
        valence: float = 0.0,
        valid_from: date | str | None = None,
        valid_to: date | str | None = None,
        origin: Origin = Origin.ASSISTANT,
        key: str | None = None,
    ) -> Note:
        """Keep something for a resource, as `Session.note` does, where no session is at hand; there need be none."""
        what = checked_note(
            text, importance=importance, kind=kind, valence=valence, valid_from=valid_from, valid_to=valid_to
        )
        if self._closed:
            raise Closed
        stream = self._resource_stream(owner := require_resource(resource))
        return self._notebook(stream, self._resource_files(owner, stream), owner).add(what, origin=origin, key=key)

    def search__R(self, query: str, *, resource: str | None = None, **filters: Any) -> list[Hit]:
        """Find what was ever said, noted or seen, the best first: of one resource, or in all of this home.

        Filters: `limit`, `kinds`, `sources`, `since`, `until`, `session`, and `as_of`, the day to look back from.
        Unlike a session's own search this leaves no trace: whoever looks in from outside makes nothing more important.
        """
        from inmind.search.query import checked_filters, checked_query

        asked = checked_query(query, **checked_filters(filters))
        return self._search(asked, None if resource is None else [checked_name(resource, "resource")])

    def get(self, id: str) -> Crystal:
        """One crystal by its id, as it stands now."""
        if not isinstance(id, str):  # pyright: ignore[reportUnnecessaryIsInstance] -- hosts are not all typed
            raise InvalidInput(field="id", value=id, expected="the id of a crystal")
        return self._search_engine().crystal(id)

    def pin(self, id: str, *, key: str | None = None) -> Crystal:
        """Let a crystal never fade, whatever it is worth."""
        return self._frozen(id, key, frozen=True)

    def unpin(self, id: str, *, key: str | None = None) -> Crystal:
        """Let it fade again as others do."""
        return self._frozen(id, key, frozen=False)

    def consolidate__R(self, resource: str, *, seconds: float | None = None) -> Consolidation:
        """Merge what says the same, mark what was said anew, and let go of what has faded.

        With `seconds`, for about so long, and for as long as it takes to read through all notes: the next one goes on
        where this one stopped.
        """
        limit = None if seconds is None else _seconds(seconds, "seconds")
        return self._upkeep_runner().consolidate(checked_name(resource, "resource"), limit)

    def run_upkeep(self, *, seconds: float = 60.0) -> Upkeep:
        """What keeps a memory fit, when there is time: the index, consolidations and dreams that are due, vectors.

        It takes about so many seconds at most, but for a dream; the answer says what was done.
        """
        return self._upkeep_runner().run(_seconds(seconds, "seconds"))

    def start_upkeep(self, *, every: float = 60.0) -> None:
        """Let a thread in the background see to that, every so many seconds, until this memory is closed."""
        if not 0 < _seconds(every, "every") <= MAX_UPKEEP_INTERVAL_SECONDS:
            raise InvalidInput(
                field="every", value=every, expected=f"more than 0 seconds, and at most {MAX_UPKEEP_INTERVAL_SECONDS:,}"
            )
        self._upkeep_runner().begin(every)

    # -- dreams --------------------------------------------------------------------------------------------

    def dream(
        self,
        resource: str,
        *,
        watch: Callable[[str, str], None] | None = None,
        cancelled: Callable[[], bool] | None = None,
        key: str | None = None,
    ) -> Dream:
        """Bring a resource's MEMORY.md up to its notes and to all that was lived through since the last dream.

        By the model that this memory was opened with, or by rules. Where guards refuse what was proposed nothing is
        changed, and the answer says why; DreamRunning if somebody else dreams for it. A dream whose process has died is
        finished instead, and so is always the one that this `key` has begun. `watch` is told of each phase, `cancelled`
        is asked now and then.
        """
        owner = require_resource(resource)
        if not self.has_resource(owner) and not self._backend.has_resource_files(owner):
            hint = "no session names it, and nothing was written down for it"
            raise NotFound(what="resource", name=resource, hint=hint)
        return self._dream(owner, "asked", watch=watch, cancelled=cancelled, key=key)

    def dreams__R(self, resource: str) -> list[Dream]:
        """The dreams of a resource, the newest first, with what each did and why."""
        return self._dreams(require_resource(resource)).all()

    def undo_dream__R(self, resource: str, dream: int | None = None, *, key: str | None = None) -> Dream:
        """Take back the last dream: MEMORY.md is as before, with what people wrote since, and its notes wait again."""
        owner = require_resource(resource)
        files = self._resource_files(owner, stream := self._resource_stream(owner))
        files.read_edits()
        undone = self._dreams(owner, stream).undo(dream, key_for(key, "undo_dream", owner, dream))
        files.publish()
        return undone

    def cancel_dream__R(self, resource: str, *, key: str | None = None) -> bool:
        """End the dream that is going on, in whichever process: it changes nothing any more. False if there is none."""
        owner = require_resource(resource)
        return self._dreams(owner).call_off(key_for(key, "call_off_dream", owner))

    def affect__R(self, resource: str) -> Affect:
        """How things have been going for a resource: the levels now, their mood in words, and their history."""
        from inmind.session.affect import Affect

        owner = require_resource(resource)
        stream = self._resource_stream(owner)
        show = self._resource_files(owner, stream).publish
        return Affect(stream, self._store, self._clock, enabled=self.settings.affect.enabled, show=show)

    @property
    def ledger__R(self) -> Economics:
        """What resources have earned, spent and offered: `record` and `report`."""
        from inmind.session.economics import Economics

        return Economics(
            lambda resource: self._resource_stream(require_resource(resource)),
            self._store,
            self._clock,
            lambda: self.settings.affect.enabled,
        )

    # -- carried elsewhere ---------------------------------------------------------------------------------

    def export(
        self,
        to: str | Path,
        *,
        resource: str | None = None,
        overwrite: bool = False,
        watch: Callable[[int, int], None] | None = None,
    ) -> Exported:
        """Write all of this home, or of one resource, into one file, while others go on; then read it back and check.

        What people have typed into live files is taken in first. `watch` is told how much is done, of how much.
        """
        from inmind.memory.bundle.export_bundle import export

        if self._closed:
            raise Closed
        place = checked_file(to, "to")
        owner = "" if resource is None else require_resource(resource)
        if owner and not self.has_resource(owner):
            raise NotFound(what="resource", name=resource, hint="no session names it, and nothing was written for it")
        self._backend.read_edits(owner, self._stream, self._resource_stream)
        told, now = watch or _unwatched, self._clock()
        return export(self._backend, place, resource=owner, now=now, overwrite=overwrite, watch=told)

    def import_bundle(
        self,
        bundle: str | Path | BinaryIO,
        *,
        only_new: bool = False,
        watch: Callable[[int, int], None] | None = None,
    ) -> Imported:
        """Bring in what `export` wrote: all of it or nothing, and twice is once.

        Streams that go on from ours are continued, those that have parted from ours are a Conflict. `only_new`: refuse
        a home that has anything in it.
        """
        from inmind.memory.bundle.import_bundle import bring_in, opened

        if self._closed:
            raise Closed
        told = watch or _unwatched
        with opened(checked_file(bundle, "bundle")) if isinstance(bundle, str | Path) else nullcontext(bundle) as file:
            now = self._clock()
            return bring_in(file, self._backend, fold=self._folded, only_new=only_new, now=now, watch=told)

    def flush(self) -> None:
        """Come back when what is done in the background is done: vectors of what is new, pages of notes."""
        self._background.flush()
        if self._deep_memory is not None:
            try:
                self._embed()
            except ModelFailed as error:
                log.warning("what is new has no vectors: %s", error)

    def __contains__(self, id: object) -> bool:
        """Whether there is a session of this id, so that opening it would not begin one."""
        if not isinstance(id, str) or not id.isprintable():
            return False
        return self._store.version(SESSION_PREFIX + id) > 0 or bool(self._backend.legacy_sessions(id))

    def __repr__(self) -> str:
        return f"<Memory at {self.location!r}{', closed' if self._closed else ''}>"

    def close(self) -> None:
        """Write the last views and let go. What was acknowledged is durable with or without this."""
        if self._housekeeping is not None:
            self._housekeeping.end()
        self._background.close()
        with self._lock:
            if self._closed:
                return
            self._closed = True
            try:
                for session in list(self._sessions):
                    session.close()
            finally:
                if self._deep_memory is not None:
                    self._deep_memory.close()
                self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _begun(self, id: str, opening: SessionOpened, handed: Sequence[Draft]) -> Stream[SessionState]:
        stream = self._stream(id)
        stream.commit(lambda mind, _: Decision(self._opening(mind, id, opening, handed), None))
        return stream

    def _beget(self, id: str, opening: SessionOpened, handed: Sequence[Draft], setup: SessionConfig) -> Session:
        """A child of one of our sessions, set up as its parent is; the one that is there already, if it is its own."""
        if self._closed:
            raise Closed
        name = checked_name(id, "id")
        stream = self._begun(name, opening, handed)
        opened = stream.state.opened or opening
        if opened.parent != opening.parent:
            raise InvalidInput(field="id", value=id, expected="a new id, or one of this session's own children")
        return self._opened(name, stream, opened, replace(setup, layers=_handed_on(setup.layers, opened)))

    def _opened(self, id: str, stream: Stream[SessionState], opened: SessionOpened, setup: SessionConfig) -> Session:
        from inmind.prompt.layers.retained import RETAINED, RetainedLayer
        from inmind.session.session import Session  # what sessions alone need comes with the first one

        if RETAINED not in {layer.name for layer in setup.layers}:
            setup = replace(setup, layers=checked_layers([*setup.layers, RetainedLayer()]))
        parts = self._parts(id, stream, opened, setup)
        parts.meta.read_title()
        session = Session(parts, self._beget)
        with self._lock:
            self._sessions.add(session)
        return session

    def _search_engine(self) -> DeepMemory:
        """Deep memory, put together when somebody first asks for it."""
        from inmind.search.embedders import embedder
        from inmind.search.engine import DeepMemory, reader
        from inmind.session.tools.tools import is_memory_tool

        if self._closed:
            raise Closed
        with self._lock:
            if self._deep_memory is None:
                read = reader(is_memory_tool)
                index = self._backend.index(read)
                self._deep_memory = DeepMemory(index, self._store, read, self._clock, embedder(self._embedder))
            return self._deep_memory

    def _search(self, query: Query, resources: Sequence[str] | None) -> list[Hit]:
        deep = self._search_engine()
        if not query.sources:
            query = replace(query, sources=self._where())
        hits = deep.search(query, resources)
        if deep.behind:
            self._embed_soon(deep.behind)
        return hits

    def _where(self) -> tuple[str, ...]:
        """The sources that searches are kept to; none where that is all of them, which takes no looking at each hit."""
        sources = self.settings.search.sources
        return () if sources == SOURCES else sources

    def _embed_soon(self, owners: Iterable[str], *, begin: bool = False) -> None:
        """Make vectors of what is new of some, in the background; `begin`: even where nobody has searched so far."""
        if self._deep_memory.vectors if self._deep_memory else begin and self._embedder is not None:
            self._unembedded.update(owners)
            self._background.submit("vectors", partial(self._embed, seconds=EMBEDDING_SLICE_SECONDS))

    def _embed(self, seconds: float | None = None) -> None:
        """As long as there is time; what is left is gone on with in a moment, or with the next change."""
        owners, self._unembedded = self._unembedded, set()
        finished = False
        try:
            finished = self._search_engine().embed(sorted(owners), seconds=seconds)
        finally:
            if not finished:
                self._unembedded |= owners
        if not finished:
            self._embed_soon(())

    def _notebook(self, stream: Stream[Any], files: DocumentFiles, owner: str) -> NoteWriter:
        from inmind.session.notes import NoteWriter

        keep_found = partial(self._embed_soon, [owner], begin=True)
        return NoteWriter(stream, files, soon=self._background.submit, keep_found=keep_found)

    def _consolidator(self, resource: str) -> Consolidator:
        from inmind.jobs.consolidation import Consolidator

        return Consolidator(self._search_engine(), self._store, self._resource_stream(resource), resource, self._clock)

    def _resource_stream(self, resource: str) -> Stream[ResourceState]:
        name = f"{RESOURCE_PREFIX}{resource}"
        return Stream(self._store, name, ResourceFold(name), self._clock)

    def _upkeep_runner(self) -> Housekeeping:
        from inmind.jobs.upkeep import Housekeeping

        if self._closed:
            raise Closed
        with self._lock:
            if self._housekeeping is None:
                self._housekeeping = Housekeeping(
                    store=self._store,
                    deep=self._search_engine,
                    belongings=self._resource_stream,
                    consolidator=self._consolidator,
                    dream=self._dream,
                    allowances=self._allowances(),
                    settings=self.settings,
                    read_settings=self._read_settings,
                    clock=self._clock,
                )
            return self._housekeeping

    def _dream(
        self,
        resource: str,
        trigger: str,
        *,
        asks: bool = True,
        watch: Callable[[str, str], None] | None = None,
        cancelled: Callable[[], bool] | None = None,
        key: str | None = None,
    ) -> Dream:
        from inmind.jobs.dreaming.runner import Dreamer

        if self._closed:
            raise Closed
        stream = self._resource_stream(resource)
        dreamer = Dreamer(
            resource=resource,
            stream=stream,
            files=self._resource_files(resource, stream),
            back_up=partial(self._backend.back_up_state, resource),
            store=self._store,
            deep=self._search_engine(),
            clock=self._clock,
            sources=self._where(),
        )
        named = key_for(key, "dream", resource)
        asked = self._asked() if asks and self._may_spend(stream.state) else None
        number = dreamer.dream(trigger, asked, watch=watch, cancelled=cancelled, key=named)
        return self._dreams(resource, stream).one(number)

    def _read_settings(self) -> Settings:
        """As config.toml has them by now."""
        from inmind.core.settings import settings_in

        self.settings = settings_in(self._backend.read_config().text, self._given)
        return self.settings

    def _may_spend(self, owned: ResourceState) -> bool:
        most = self.settings.model.daily_tokens
        return not most or owned.dreams.spent_on(self._clock()) < most

    def _asked(self) -> Asked | None:
        """The model that dreams ask: the one that this was opened with, or the one that the settings name."""
        from inmind.dreams.models import as_model, model_from_settings
        from inmind.jobs.dreaming.model_call import Asked

        told = self.settings.model
        model = as_model(self._model) if self._model is not None else model_from_settings(told)
        if model is None:
            return None
        prices = (told.input_price / 1e6, told.output_price / 1e6)
        return Asked(model=self._allowances().limited(model, prices), seconds=told.seconds, prices=prices)

    def _allowances(self) -> Allowances:
        from inmind.jobs.rate_limits import Allowances

        return Allowances(self._store, self.settings.limits, self._clock)

    def _dreams(self, resource: str, stream: Stream[ResourceState] | None = None) -> Dreams:
        from inmind.jobs.dreaming.history import Dreams

        return Dreams(resource, stream or self._resource_stream(resource), self._store, self._clock)

    def _frozen(self, id: str, key: str | None, *, frozen: bool) -> Crystal:
        crystal = self.get(id)
        name = f"{RESOURCE_PREFIX}{crystal.resource}"
        draft = Draft(payload=CrystalPinned(id, frozen), origin=Origin.OPERATOR)
        Stream(self._store, name, ResourceFold(name), self._clock).append(draft, key=key_for(key, "freeze", id, frozen))
        return self.get(id)

    def _resource_files(self, resource: str, stream: Stream[ResourceState]) -> DocumentFiles:
        return self._backend.resource_files(resource, stream)

    def _stream(self, id: str) -> Stream[SessionState]:
        return Stream(self._store, SESSION_PREFIX + id, SessionFold(SESSION_PREFIX + id), self._clock)

    def _ancestors(self, opened: SessionOpened) -> Iterator[Stream[SessionState]]:
        """The sessions that one comes from, its parent first."""
        above: SessionOpened | None = opened
        while above is not None and above.parent:
            stream = self._stream(above.parent)
            yield stream
            above = stream.state.opened

    def _handed_down(self, layers: tuple[Layer, ...], opened: SessionOpened) -> tuple[Layer, ...]:
        """A host's layers as they reach this session, through all that it comes from."""
        line = [opened, *(stream.state.opened for stream in self._ancestors(opened))]
        for one in reversed(line):
            if one is not None and one.parent:
                layers = _handed_on(layers, one)
        return layers

    def _parts(
        self, id: str, stream: Stream[SessionState], opened: SessionOpened, setup: SessionConfig
    ) -> SessionContext:
        from inmind.session.entities import EntityTracker
        from inmind.session.scratchpad import scratchpad_among
        from inmind.session.tools.tools import is_memory_tool

        views = self._backend.session_files(id, opened.cwd, stream)
        resource = self._resource_stream(opened.resource)
        ancestors = tuple(self._ancestors(opened))
        files, shared = views.files, self._resource_files(opened.resource, resource)
        alone, owner = opened.resource == ANONYMOUS, owner_of(stream.name, opened.resource)
        return SessionContext(
            id=id,
            store=self._store,
            stream=stream,
            resource=resource,
            files=files,
            resource_files=shared,
            transcript=views.transcript,
            meta=views.meta,
            entities=EntityTracker(stream, self._store, self._siblings, setup.entities, is_memory_tool),
            scratchpad=scratchpad_among(setup.layers, (stream, *ancestors), resource, self._store),
            ancestors=ancestors,
            config=setup,
            session_stream=self._stream,
            notes=self._notebook(stream, files, owner) if alone else self._notebook(resource, shared, owner),
            search=self._search,
            schedule_embedding=partial(self._embed_soon, [owner]),
        )

    def _folded(self, stream: str) -> Stream[SessionState] | Stream[ResourceState]:
        kind, _, name = stream.partition("/")
        return self._stream(name) if f"{kind}/" == SESSION_PREFIX else self._resource_stream(name)

    def _opening(self, mind: SessionState, id: str, opening: SessionOpened, handed: Sequence[Draft]) -> list[Draft]:
        """The first events of a session; none for one that has them."""
        if mind.opened is not None:
            return []
        legacy = None if opening.parent else self._older(id, opening.cwd)
        if legacy is not None and legacy.cwd:
            opening = replace(opening, cwd=legacy.cwd)
        page = DocumentWritten(path=OVERVIEW, text=template(opening.language))
        inherited = any(isinstance(d.payload, DocumentWritten) and d.payload.path == OVERVIEW for d in handed)
        return [
            Draft(payload=opening, origin=Origin.OPERATOR),
            *([Draft(payload=_imported(legacy), origin=Origin.FILE)] if legacy else []),
            *([] if inherited else [Draft(payload=page, origin=Origin.OPERATOR)]),
            *handed,
            *([Draft(payload=SessionTitled(legacy.title), origin=Origin.FILE)] if legacy and legacy.title else []),
            *(read_messages(legacy) if legacy else ()),
        ]

    def _older(self, id: str, cwd: str) -> LegacySession | None:
        """The session of the older kind that is meant: of several with one id, the one that belongs to this folder.

        An id is unique in a home by now, so the others cannot be opened under theirs, and that is said.
        """
        found = sorted(self._backend.legacy_sessions(id), key=lambda one: not belongs_to_folder(one, cwd))
        for other in found[1:]:
            log.warning("%s has the id of another session and stays only in its file: rename it to open it", other.file)
        return found[0] if found else None


def upkeep_runner_of(memory: Memory) -> Housekeeping:
    """For workers, who look after it: see `doors/worker`."""
    return memory._upkeep_runner()  # pyright: ignore[reportPrivateUsage] -- hosts have no use for it, so it is no method


def open_existing(
    where: str | Path, *, embedder: str | Embedder | None, settings: Settings | Mapping[str, Any] | None
) -> Memory:
    """For whoever only looks: NotFound where there is none."""
    return Memory._at(where, embedder=embedder, settings=settings, make=False)  # pyright: ignore[reportPrivateUsage] -- hosts that want a memory have one made


def suggest_name(memory: Memory, name: str, *nearest: Callable[[Store, str], str]) -> str:
    """What somebody may have meant who has mistyped a name: see `listing`. Empty where nothing resembles it."""
    return next(filter(None, (look(memory._store, name) for look in nearest)), "")  # pyright: ignore[reportPrivateUsage] -- for the command line, whose users type


def _in_folder(where: object, settings: object, make: bool) -> tuple[Backend, Settings]:
    from inmind.core.settings import settings_of

    home = checked_home(where)
    if not make and not _has_journal(home):
        raise NotFound(what="memory at", name=str(home))
    try:
        make_private(home)
    except OSError as error:
        raise UnsafeStorage(place=str(home), reason=os.strerror(error.errno or 0)) from error
    if not os.access(home, os.R_OK | os.X_OK):
        raise UnsafeStorage(place=str(home), reason="it is somebody else's: only its owner may look into it")
    told = settings_of(home, settings)
    return FolderBackend(home.resolve(), SqliteStore(home.resolve() / DATABASE)), told


def _has_journal(home: Path) -> bool:
    try:
        return (home / DATABASE).exists()
    except OSError:  # there is something that we may not look into: whoever opens it is told why
        return True


def _in_database(url: object, settings: object, make: bool) -> tuple[Backend, Settings]:
    from inmind.core.settings import Settings, settings_in
    from inmind.memory.postgres_backend import open_postgres

    place = open_postgres(checked_url(url, "home"), make=make)
    try:
        return place, settings_in("" if isinstance(settings, Settings) else place.config().text, settings)
    except BaseException:
        place.store.close()
        raise


def _with_a_private_scratchpad(layers: tuple[Layer, ...]) -> tuple[Layer, ...]:
    """For a session of nobody in particular: what would belong to its resource belongs to it alone."""
    from inmind.prompt.layers.scratchpad import scratchpad_of

    pad = scratchpad_of(layers)
    return tuple(pad.owned() if pad is not None and layer is pad else layer for layer in layers)


def _handed_on(layers: tuple[Layer, ...], opened: SessionOpened) -> tuple[Layer, ...]:
    from inmind.session.children.inherit import child_layers  # only those who have children need it

    return child_layers(layers, dict(opened.inheritance))


def _imported(legacy: LegacySession) -> SessionImported:
    began = legacy.began.isoformat() if legacy.began else ""
    return SessionImported(file=legacy.file, started_at=began, model=legacy.model)


def _check_unnamed(*owners: str | None) -> None:
    if any(owner is not None for owner in owners):
        raise InvalidInput(field="resource", value=owners[-1], expected="nothing beside it: it is known whose that is")


def _unwatched(_done: int, _total: int) -> None:
    """Nobody has asked how far it is."""


def _telling(clock: Clock) -> Clock:
    """A clock that tells the time with its zone: asked once before anything depends on it."""
    now = cast(object, clock()) if callable(clock) else None
    if not isinstance(now, datetime) or now.tzinfo is None:
        raise InvalidInput(field="clock", value=now, expected="a function that answers with a datetime that has a zone")
    return clock


def _counting(counter: Counter) -> Counter:
    """A counter that counts: asked once before anything depends on it."""
    if not callable(counter):
        raise InvalidInput(field="counter", value=counter, expected="a function from text to a number")
    counted = cast(object, counter("two words"))
    if isinstance(counted, bool) or not isinstance(counted, int) or counted < 0:
        raise InvalidInput(field="counter", value=counted, expected="a function that answers with 0 or more")
    return counter


def _limits(window: object, reserve: object, cache_seconds: object, *, exact: bool) -> Limits:
    """Nobody's reserve is the usual one, or half of a window that is smaller than two of it."""
    if isinstance(window, bool) or not isinstance(window, int) or window < MIN_WINDOW:
        raise InvalidInput(field="window", value=window, expected=f"tokens, {MIN_WINDOW} or more")
    if reserve is None:
        reserve = min(DEFAULT_RESERVE, window // 2)
    if isinstance(reserve, bool) or not isinstance(reserve, int) or not 0 <= reserve < window:
        raise InvalidInput(field="reserve", value=reserve, expected="0 or more tokens, and less than the window")
    return Limits(window=window, reserve=reserve, exact=exact, cache_seconds=_seconds(cache_seconds, "cache_seconds"))


def _seconds(value: object, field: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        raise InvalidInput(field=field, value=value, expected="seconds, 0 or more")
    return float(value)
