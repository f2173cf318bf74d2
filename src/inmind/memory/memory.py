"""`Memory`: opens a folder or a database, and gives access to its sessions and resources."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Self

from inmind.core.events.base import Draft, Origin
from inmind.core.events.crystals import CrystalPinned
from inmind.core.fork import Closing
from inmind.core.paths import (
    SESSION_PREFIX,
    check_file,
    check_name,
    default_place,
    is_database,
    require_resource,
    working_directory,
)
from inmind.core.tokens import Counter, estimator
from inmind.entities.entity import DEFAULT_RULES, EntityRules
from inmind.entities.serialize import deserialize
from inmind.errors import InvalidInput, NotFound
from inmind.history.compaction.policy import DEFAULT_POLICY, CompressionPolicy, Summarizer
from inmind.memory.backends import open_folder
from inmind.memory.context import MemoryContext
from inmind.memory.documents import PageInput
from inmind.memory.listing import SessionInfo, checked_limit, is_known_resource, list_resources, list_sessions
from inmind.memory.resource import Resource
from inmind.memory.session_opener import (
    DEFAULT_WINDOW,
    SessionOpener,
    checked_counter,
    checked_seconds,
    checked_type,
    default_layers,
    window_limits,
)
from inmind.prompt.anchor import CACHE_SECONDS
from inmind.prompt.layers.base import Layer, check_layers
from inmind.session.context import Backend, SessionConfig
from inmind.store.protocol import Clock, Store
from inmind.store.stream import key_for

if TYPE_CHECKING:
    from inmind.core.settings import Settings
    from inmind.dreams.models import Model, ModelReply
    from inmind.jobs.dream_history import Dream
    from inmind.jobs.upkeep import Upkeep, UpkeepScheduler
    from inmind.memory.bundle.export_bundle import Exported
    from inmind.memory.bundle.import_bundle import Imported
    from inmind.search.crystal import Crystal
    from inmind.search.embedders.base import Embedder
    from inmind.session.session import Session

MAX_UPKEEP_INTERVAL_SECONDS = 366 * 86_400
"""A thread cannot wait for arbitrarily long."""


class Memory(PageInput, Closing):
    """All sessions and resources of one home folder or database. Use it as a context manager."""

    def __init__(self, backend: Backend, **options: Any) -> None:
        """Hosts call `open`. `options`: those of `MemoryContext`."""
        super().__init__(MemoryContext(backend, **options), None)
        self._sessions = SessionOpener(self._context)

    @classmethod
    def open(
        cls,
        home: str | Path | None = None,
        *,
        clock: Clock | None = None,
        embedder: str | Embedder | None = "auto",
        model: Model | Callable[[str], str | ModelReply] | None = None,
        settings: Settings | Mapping[str, Any] | None = None,
    ) -> Self:
        """Open a home folder, which is created if missing, or a database by its URL: postgresql://…

        The default is the database in $INMIND_DB, the folder in $INMIND_HOME, or ~/.inmind.

        `embedder` adds search by meaning to search by words: "auto" uses the embedder of the extra `vectors` if it is
        installed, None uses none; see `inmind.search.embedders` for the others. `model` proposes what dreams write: one
        of `inmind.dreams.models`, or a function from a prompt to a text; without one, rules do. `settings` take
        precedence over the config.toml of the home: see `inmind.core.settings`.
        """
        location = default_place() if home is None else home
        return cls._open_at(location, settings, create=True, clock=clock, embedder=embedder, model=model)

    @classmethod
    def _open_at(
        cls, location: str | Path, settings: Settings | Mapping[str, Any] | None, *, create: bool, **options: Any
    ) -> Self:
        """`create`: create a missing memory; else NotFound. `options`: those of `MemoryContext`."""
        if is_database(location):
            from inmind.memory.backends import open_database as open_backend
        else:
            open_backend = open_folder
        backend, current = open_backend(location, settings, create)
        try:
            return cls(backend, settings=current, overrides=settings or {}, **options)
        except BaseException:
            backend.store.close()
            raise

    @property
    def home(self) -> Path | None:
        """The home folder; None for a database."""
        return self._context.backend.home

    @property
    def location(self) -> str:
        """The home folder, or the URL of the database without its password."""
        return str(self._context.backend)

    @property
    def settings(self) -> Settings:
        """The current settings."""
        return self._context.settings

    # -- sessions and resources ----------------------------------------------------------------------------

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
        """Open the session with this id, or create it. Ids are unique in a home.

        An existing session keeps its folder, language and resource. Naming another resource is refused: it would give
        one user's memory to another. A host that does not call `record` turns `memory_tools` off: otherwise the model
        is offered tools that are never executed. `compression` says when the history is compacted automatically;
        `summarizer`, a function from a prompt to a text, writes the summaries of `compact`.
        """
        self._context.check_open()
        if summarizer is not None and not callable(summarizer):
            raise InvalidInput(field="summarizer", value=summarizer, expected="a function from a prompt to a text")
        setup = SessionConfig(
            layers=default_layers() if layers is None else check_layers(layers),
            limits=window_limits(window, reserve, cache_seconds, exact=counter is not None),
            counter=estimator() if counter is None else checked_counter(counter),
            entities=checked_type(entities, EntityRules, "entities", "EntityRules"),
            memory_tools=checked_type(memory_tools, bool, "memory_tools", "True or False"),
            compression=checked_type(compression, CompressionPolicy, "compression", "a CompressionPolicy"),
            summarizer=summarizer,
            affect=self.settings.affect.enabled,
        )
        return self._sessions.open(id, resource=resource, cwd=cwd, language=language, setup=setup)

    def import_entities(
        self,
        data: object,
        id: str | None = None,
        *,
        resource: str | None = None,
        entities: EntityRules = DEFAULT_RULES,
    ) -> Session:
        """Open a session with the entities of `Session.export_entities`, of any version.

        Without an id a session is created; an existing one gets them in front of its own. Invalid data is refused
        before a session is created.
        """
        deserialize(data)
        name = f"restored-{os.urandom(6).hex()}" if id is None else id
        session = self.session(name, resource=resource, entities=entities)
        session.import_entities(data)
        return session

    def sessions(
        self, *, cwd: str | Path | None = None, resource: str | None = None, limit: int | None = None
    ) -> list[SessionInfo]:
        """The sessions, the most recently used first, with those of older single files.

        `cwd` selects those started in this folder, `resource` those of one resource. With `limit` and without a
        resource, only the 5,000 most recently used sessions are searched.
        """
        folder = None if cwd is None else working_directory(cwd)
        owner = None if resource is None else check_name(resource, "resource")
        return list_sessions(self._context.backend, cwd=folder, resource=owner, limit=checked_limit(limit))

    def latest(self, *, cwd: str | Path | None = None, resource: str | None = None) -> SessionInfo | None:
        """The most recently used session of a folder, by default of the current folder.

        Child sessions are skipped. Without a resource, only the 5,000 most recently used sessions are searched.
        """
        owner = None if resource is None else check_name(resource, "resource")
        folder = working_directory(cwd)
        sessions = list_sessions(self._context.backend, cwd=folder, resource=owner, limit=1, children=False)
        return sessions[0] if sessions else None

    def resource(self, name: str) -> Resource:
        """The resource with this name. Nothing is stored before something is written for it."""
        return Resource(self._context, name)

    def resources(self) -> list[str]:
        """The names of all resources that have a session, a note or a document."""
        return list(list_resources(self._context.store))

    def has_resource(self, resource: str) -> bool:
        """True if a resource has a session, a note or a document."""
        return is_known_resource(self._context.store, resource)

    def __contains__(self, id: object) -> bool:
        """True if a session with this id exists."""
        if not isinstance(id, str) or not id.isprintable():
            return False
        context = self._context
        return context.store.version(SESSION_PREFIX + id) > 0 or bool(context.backend.legacy_sessions(id.__eq__))

    # -- search --------------------------------------------------------------------------------------------

    def get(self, id: str) -> Crystal:
        """The note, message or page part with this id, as it is now; NotFound if there is none."""
        if not isinstance(id, str):  # pyright: ignore[reportUnnecessaryIsInstance] -- hosts are not all typed
            raise InvalidInput(field="id", value=id, expected="the id of a crystal")
        self._context.search.store_searches()
        return self._context.search.engine.crystal(id)

    def pin(self, id: str, *, key: str | None = None) -> Crystal:
        """Exempt a crystal from expiry."""
        return self._set_pinned(id, key, pinned=True)

    def unpin(self, id: str, *, key: str | None = None) -> Crystal:
        """Let a pinned crystal expire again."""
        return self._set_pinned(id, key, pinned=False)

    # -- dreams and upkeep ---------------------------------------------------------------------------------

    def dream(
        self,
        resource: str,
        *,
        watch: Callable[[str, str], None] | None = None,
        cancelled: Callable[[], bool] | None = None,
        key: str | None = None,
    ) -> Dream:
        """Short for `memory.resource(resource).dream(…)`."""
        return self.resource(resource).dream(watch=watch, cancelled=cancelled, key=key)

    def run_upkeep(self, *, seconds: float = 60.0) -> Upkeep:
        """Do the upkeep that is due: index, consolidations, dreams, embeddings.

        It stops after about `seconds`; a dream that has started is finished. Returns the result.
        """
        return self._context.upkeep().run(checked_seconds(seconds, "seconds"))

    def start_upkeep(self, *, every: float = 60.0) -> None:
        """Run upkeep in a background thread, every `every` seconds, until the memory is closed."""
        if not 0 < checked_seconds(every, "every") <= MAX_UPKEEP_INTERVAL_SECONDS:
            expected = f"more than 0 seconds, and at most {MAX_UPKEEP_INTERVAL_SECONDS:,}"
            raise InvalidInput(field="every", value=every, expected=expected)
        self._context.upkeep().start(every)

    def flush(self) -> None:
        """Wait for background tasks: records of searches, embeddings, live files of notes."""
        self._context.search.flush()

    # -- bundles -------------------------------------------------------------------------------------------

    def export(
        self,
        to: str | Path,
        *,
        resource: str | None = None,
        overwrite: bool = False,
        watch: Callable[[int, int], None] | None = None,
    ) -> Exported:
        """Write the whole memory, or one resource, to a bundle file, and check it.

        Other processes may continue to write. Edits of live files are read first. `watch` is called with the number of
        events done and their total.
        """
        from inmind.memory.bundle.export_bundle import write_bundle

        context = self._context
        context.check_open()
        path = check_file(to, "to")
        owner = "" if resource is None else require_resource(resource)
        if owner and not self.has_resource(owner):
            raise NotFound(what="resource", name=resource, hint="no session names it, and it has no notes")
        context.search.store_searches()
        context.backend.read_edits(owner, context.clock)
        now = context.clock()
        return write_bundle(context.backend, path, resource=owner, now=now, overwrite=overwrite, watch=watch)

    def import_bundle(
        self,
        bundle: str | Path | BinaryIO,
        *,
        only_new: bool = False,
        watch: Callable[[int, int], None] | None = None,
    ) -> Imported:
        """Import a bundle written by `export`: all of it or nothing.

        Importing the same bundle again changes nothing. Streams of the bundle that continue ours are extended; diverged
        ones raise BundleDiverged. `only_new`: refuse if this memory is not empty.
        """
        from inmind.memory.bundle.import_bundle import import_into, open_bundle

        context = self._context
        context.check_open()
        with (
            open_bundle(check_file(bundle, "bundle")) if isinstance(bundle, str | Path) else nullcontext(bundle) as file
        ):
            now, fold = context.clock(), context.stream_named
            return import_into(file, context.backend, fold=fold, only_new=only_new, now=now, watch=watch)

    # -- closing -------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close all sessions and the store. Committed data is safe without this.

        It also writes the live files that only a closed session has.
        """
        context = self._context
        context.stop_background()
        with context.lock:
            if context.closed:
                return
            context.closed = True
            try:
                self._sessions.close_all()
            finally:
                context.close_store()

    def __repr__(self) -> str:
        return f"<Memory at {self.location!r}{', closed' if self._context.closed else ''}>"

    def _set_pinned(self, id: str, key: str | None, *, pinned: bool) -> Crystal:
        crystal = self.get(id)
        draft = Draft(payload=CrystalPinned(id, pinned), origin=Origin.OPERATOR)
        stream = self._context.resource_stream(crystal.resource)
        stream.append(draft, key=key_for(key, "freeze", id, pinned))
        return self.get(id)

    def _owner_of_session(self, id: str) -> str:
        if id not in self:
            raise NotFound(what="session", name=id, hint="a page is written in an existing session")
        return self.session(id).resource


def upkeep_runner_of(memory: Memory) -> UpkeepScheduler:
    """The upkeep of a memory, for workers: see `apps/worker`."""
    return memory._context.upkeep()  # pyright: ignore[reportPrivateUsage] -- only workers of this package need it


def open_existing(
    location: str | Path, *, embedder: str | Embedder | None, settings: Settings | Mapping[str, Any] | None
) -> Memory:
    """Open a memory without creating one; NotFound if there is none."""
    return Memory._open_at(location, settings, create=False, embedder=embedder)  # pyright: ignore[reportPrivateUsage] -- only commands that read need it


def suggest_name(memory: Memory, name: str, *nearest: Callable[[Store, str], str]) -> str:
    """The most similar existing name, for "did you mean"; empty if none is similar."""
    store = memory._context.store  # pyright: ignore[reportPrivateUsage] -- only the command line needs it
    return next(filter(None, (look(store, name) for look in nearest)), "")
