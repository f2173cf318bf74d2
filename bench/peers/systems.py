"""Everything that is measured, ours among them, behind the same few methods.

Each is set up as its own documentation does it, and gets what makes it find more without a language model. A message
is one entry everywhere: whole, behind the name of who said it. Ours gets the same messages by its own door, as sessions
on their dates.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw

from bench.peers.vectors import as_lists
from bench.question_sets import Sitting, Turn

if TYPE_CHECKING:
    from inmind import Session
    from inmind.search.embedders import Embedder

STOP_WORDS = frozenset(
    """
    a about after again all also am an and any are as at be because been before being between both but by can could
    did do does doing don down during each ever few for from further get got had has have having he her here hers him
    his how i if in into is it its just know ll many me mention mentioned more most much my no nor not now of off on
    once only or other our ours out over own please recently remind s same she should so some such t tell than that the
    their theirs them then there these they this those through to too under until up us used using ve very was we were
    what when where which while who whom why will with would you your yours
    """.split()
)


class Finder(ABC):
    """Somewhere to keep messages and to find them again. What it is filled with is numbered from 0."""

    @abstractmethod
    def fill(self, sittings: Sequence[Sitting]) -> None:
        """Many at once, in whichever way is quickest."""

    @abstractmethod
    def search(self, query: str, most: int, at: datetime) -> list[int]:
        """The numbers of the best, best first."""

    @abstractmethod
    def add(self, text: str) -> None:
        """One more, which is on disk when this returns."""

    def ready(self) -> None:  # noqa: B027 -- most are ready at once
        """Return when everything that it was filled with can be found."""

    def close(self) -> None:  # noqa: B027 -- most have nothing open that would disturb the next one
        """Leave it, and what it does in the background."""


class Inmind(Finder):
    """As a host uses it: a session for each sitting, all of one resource."""

    def __init__(self, folder: Path, embedder: Embedder | None = None) -> None:
        from inmind import Memory
        from inmind.testing import ManualClock

        self._clock = ManualClock()
        self._memory = Memory.open(folder / "home", clock=self._clock, embedder=embedder)
        self._numbers: dict[str, int] = {}
        self._names = count()
        self._desk: Session | None = None

    def fill(self, sittings: Sequence[Sitting]) -> None:
        from inmind.core.events.session import MessageAdded

        for sitting in sittings:
            self._clock.now = sitting.at
            session = self._memory.session(f"sitting-{next(self._names)}", resource="bench", cwd="/bench")
            session.add([_as_message(turn) for turn in sitting.turns])
            said = [event.id for event in session.events() if isinstance(event.payload, MessageAdded)]
            self._numbers |= {id: len(self._numbers) + place for place, id in enumerate(said)}

    def ready(self) -> None:
        """With all vectors, or it fails: searching with half of them would be measured in silence."""
        self._memory.flush()
        assert self._memory._context.search_engine().embed()  # pyright: ignore[reportPrivateUsage] -- no host has to wait for this
        self.search("ready?", 1, self._clock.now)

    def search(self, query: str, most: int, at: datetime) -> list[int]:
        self._clock.now = at
        hits = self._memory.resource("bench").search(query, limit=most)
        return [self._numbers[hit.crystal.id] for hit in hits if hit.crystal.id in self._numbers]

    def add(self, text: str) -> None:
        if self._desk is None:
            self._desk = self._memory.session("desk", resource="bench", cwd="/bench")
        self._desk.note(text)

    def close(self) -> None:
        self._memory.close()


def _as_message(turn: Turn) -> dict[str, str]:
    return {"role": turn.role, "content": turn.text} | ({"name": turn.name} if turn.name else {})


class Bare(Finder):
    """The least that SQLite can be asked to keep a text as safe. It finds nothing."""

    def __init__(self, folder: Path, embedder: Embedder | None = None) -> None:
        from bench.prepare import BareJournal

        del embedder
        self._journal = BareJournal(folder / "bare.db")

    def fill(self, sittings: Sequence[Sitting]) -> None:
        self._journal.commit(list(_lines(sittings)))

    def search(self, query: str, most: int, at: datetime) -> list[int]:
        raise NotImplementedError

    def add(self, text: str) -> None:
        self._journal.commit([text])


class Fts5(Finder):
    """SQLite's own full text search, stemmed: any of the words of the query that are no stop words."""

    def __init__(self, folder: Path, embedder: Embedder | None = None) -> None:
        del embedder
        self._connection: Any = apsw.Connection(str(folder / "fts5.db"))
        self._connection.pragma("journal_mode", "wal")
        self._connection.pragma("synchronous", "full")
        self._connection.execute("CREATE VIRTUAL TABLE talk USING fts5(text, tokenize = 'porter unicode61')")
        self._numbers = count()

    def fill(self, sittings: Sequence[Sitting]) -> None:
        with self._connection:
            self._connection.executemany(
                "INSERT INTO talk (rowid, text) VALUES (?, ?)",
                ((next(self._numbers), line) for line in _lines(sittings)),
            )

    def search(self, query: str, most: int, at: datetime) -> list[int]:
        del at
        words = dict.fromkeys(_words(query))
        wanted = [word for word in words if word not in STOP_WORDS] or list(words)
        if not wanted:
            return []
        found = self._connection.execute(
            "SELECT rowid FROM talk WHERE talk MATCH ? ORDER BY rank LIMIT ?",
            (" OR ".join(f'"{word}"' for word in wanted), most),
        )
        return [number for (number,) in found]

    def add(self, text: str) -> None:
        self._connection.execute("INSERT INTO talk (rowid, text) VALUES (?, ?)", (next(self._numbers), text))


class Bm25s(Finder):
    """An index in numpy, which has to be made anew for each message that is added."""

    def __init__(self, folder: Path, embedder: Embedder | None = None) -> None:
        del embedder
        self._bm25s, self._stemmer = import_module("bm25s"), import_module("Stemmer").Stemmer("english")
        self._folder, self._texts = folder, list[str]()
        self._index: Any = None

    def fill(self, sittings: Sequence[Sitting]) -> None:
        self._texts += _lines(sittings)

    def ready(self) -> None:
        self._index = self._bm25s.BM25()
        self._index.index(self._tokens(self._texts), show_progress=False)
        self._index.save(str(self._folder / "bm25s"), corpus=self._texts)

    def search(self, query: str, most: int, at: datetime) -> list[int]:
        del at
        found, _ = self._index.retrieve(self._tokens(query), k=min(most, len(self._texts)), show_progress=False)
        return [int(number) for number in found[0]]

    def add(self, text: str) -> None:
        self._texts.append(text)
        self.ready()

    def _tokens(self, texts: str | Sequence[str]) -> Any:
        return self._bm25s.tokenize(texts, stopwords="en", stemmer=self._stemmer, show_progress=False)


class Chroma(Finder):
    """A persistent collection by cosine, with the vectors handed in."""

    _MOST = 5_000

    def __init__(self, folder: Path, embedder: Embedder) -> None:
        chromadb = import_module("chromadb")
        self._embed = as_lists(embedder)
        client = chromadb.PersistentClient(path=str(folder), settings=chromadb.Settings(anonymized_telemetry=False))
        self._collection: Any = client.create_collection(
            "talk", configuration={"hnsw": {"space": "cosine"}}, embedding_function=None
        )
        self._numbers = count()

    def fill(self, sittings: Sequence[Sitting]) -> None:
        for texts in _portions(list(_lines(sittings)), self._MOST):
            ids = [str(next(self._numbers)) for _ in texts]
            self._collection.add(ids=ids, documents=texts, embeddings=self._embed(texts))

    def search(self, query: str, most: int, at: datetime) -> list[int]:
        del at
        found = self._collection.query(query_embeddings=self._embed([query]), n_results=most, include=[])
        return [int(id) for id in found["ids"][0]]

    def add(self, text: str) -> None:
        self._collection.add(ids=[str(next(self._numbers))], documents=[text], embeddings=self._embed([text]))


class LangGraph(Finder):
    """Its store on SQLite, indexed by an embedding function: the one that outlives the process."""

    _MOST = 500
    _NAMESPACE = ("bench", "talk")

    def __init__(self, folder: Path, embedder: Embedder) -> None:
        sqlite3: Any = import_module("sqlite3")
        if not hasattr(sqlite3.Connection, "enable_load_extension"):
            sys.modules["sqlite3"] = sqlite3 = import_module("pysqlite3")
        base = import_module("langgraph.store.base")
        self._put: Callable[..., Any] = base.PutOp
        connection = sqlite3.connect(str(folder / "store.db"), check_same_thread=False, isolation_level=None)
        # Its documentation says "fields", which this one of its stores does not read: it would embed the JSON.
        index = {"dims": embedder.dimensions, "embed": as_lists(embedder), "text_fields": ["text"]}
        self._store: Any = import_module("langgraph.store.sqlite").SqliteStore(connection, index=index)
        self._store.setup()
        self._numbers = count()

    def fill(self, sittings: Sequence[Sitting]) -> None:
        for texts in _portions(list(_lines(sittings)), self._MOST):
            self._store.batch([self._put(self._NAMESPACE, str(next(self._numbers)), {"text": text}) for text in texts])

    def search(self, query: str, most: int, at: datetime) -> list[int]:
        del at
        return [int(item.key) for item in self._store.search(self._NAMESPACE, query=query, limit=most)]

    def add(self, text: str) -> None:
        self._store.put(self._NAMESPACE, str(next(self._numbers)), {"text": text})


class Mem0(Finder):
    """Messages as they are (infer=False), in the local qdrant that it sets up by itself."""

    _USER: Mapping[str, str] = {"user_id": "bench"}

    def __init__(self, folder: Path, embedder: Embedder) -> None:
        self._embedder = _ForMem0(embedder)
        unused = {"api_key": "no model is asked"}
        self._memory: Any = import_module("mem0").Memory.from_config(
            {
                "llm": {"provider": "openai", "config": unused},
                "embedder": {"provider": "openai", "config": unused},
                "vector_store": {
                    "provider": "qdrant",
                    "config": {
                        "path": str(folder / "qdrant"),
                        "on_disk": True,
                        "embedding_model_dims": embedder.dimensions,
                    },
                },
                "history_db_path": str(folder / "history.db"),
            }
        )
        self._memory.embedding_model = self._embedder
        self._memory.vector_store._bm25_encoder = self._keywords(folder)
        self._numbers = count()

    def _keywords(self, folder: Path) -> Any:
        """Its mark for "there are none": the extra that brings them is not installed with mem0."""
        del folder
        return False

    def fill(self, sittings: Sequence[Sitting]) -> None:
        """By way of its vector store, as `add` does after embedding; and the disk is not waited for, point by point."""
        self._wait_for_disk(False)
        lemmatize = import_module("mem0.utils.lemmatization").lemmatize_for_bm25
        identify = import_module("uuid").uuid4
        for texts in _portions(list(_lines(sittings)), 500):
            entries = [
                {"data": text, "text_lemmatized": lemmatize(text), "number": next(self._numbers), **self._USER}
                for text in texts
            ]
            ids = [str(identify()) for _ in texts]
            self._memory.vector_store.insert(vectors=self._embedder.embed_batch(texts), payloads=entries, ids=ids)

    def ready(self) -> None:
        self._wait_for_disk(True)

    def _wait_for_disk(self, wait: bool) -> None:
        for collection in self._memory.vector_store.client._client.collections.values():
            collection.storage.storage.execute(f"PRAGMA synchronous = {'FULL' if wait else 'OFF'}")

    def search(self, query: str, most: int, at: datetime) -> list[int]:
        del at
        found = self._memory.search(query, filters=dict(self._USER), top_k=most, threshold=0.0)
        return [item["metadata"]["number"] for item in found["results"]]

    def add(self, text: str) -> None:
        told = [{"role": "user", "content": text}]
        self._memory.add(told, **self._USER, metadata={"number": next(self._numbers)}, infer=False)


class Mem0WithKeywords(Mem0):
    """The same with its extra for keywords, and with the stop words that this would fetch."""

    def _keywords(self, folder: Path) -> Any:
        model = import_module("fastembed.sparse.bm25")
        return model.Bm25("Qdrant/bm25", specific_model_path=str(folder), stopwords=set(STOP_WORDS))


class _ForMem0:
    """What mem0 expects of an embedding model."""

    def __init__(self, embedder: Embedder) -> None:
        self._embed = as_lists(embedder)

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        del memory_action
        return self._embed([text])[0]

    def embed_batch(self, texts: Sequence[str], memory_action: str | None = None) -> list[list[float]]:
        del memory_action
        return self._embed(texts)


FINDERS: Mapping[str, Callable[[Path, Any], Finder]] = {
    "inmind": Inmind,
    "bare": Bare,
    "fts5": Fts5,
    "bm25s": Bm25s,
    "chroma": Chroma,
    "langgraph": LangGraph,
    "mem0": Mem0,
    "mem0+bm25": Mem0WithKeywords,
}


def _lines(sittings: Sequence[Sitting]) -> Iterator[str]:
    return (turn.line for sitting in sittings for turn in sitting.turns)


def _portions(texts: Sequence[str], most: int) -> Iterator[Sequence[str]]:
    return (texts[first : first + most] for first in range(0, len(texts), most))


def _words(text: str) -> list[str]:
    return "".join(letter if letter.isalnum() else " " for letter in text.lower()).split()
