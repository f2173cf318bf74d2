"""All compared search systems, inmind among them, with the same methods.

Each is set up as in its documentation, with everything that improves recall without a language model. A message is one
entry, complete, after the name of its speaker. inmind gets the same messages through its API, as sessions on their
dates.
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
from bench.question_sets import ChatSession, Turn

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


class SearchSystem(ABC):
    """Stores messages and searches them. Filled messages are numbered from 0."""

    @abstractmethod
    def fill(self, chat_sessions: Sequence[ChatSession]) -> None:
        """Add many messages, in the fastest way."""

    @abstractmethod
    def search(self, query: str, limit: int, at: datetime) -> list[int]:
        """Return the numbers of the best messages, best first."""

    @abstractmethod
    def add(self, text: str) -> None:
        """Add one message, which is on disk on return."""

    def wait_until_ready(self) -> None:  # noqa: B027 -- most are ready at once
        """Return when all filled messages can be found."""

    def close(self) -> None:  # noqa: B027 -- most have nothing to close
        """Close it and stop its background work."""


class Inmind(SearchSystem):
    """Used as by a host: one session per chat session, all of one resource."""

    def __init__(self, folder: Path, embedder: Embedder | None = None) -> None:
        from inmind import Memory
        from inmind.testing import ManualClock

        self._clock = ManualClock()
        self._memory = Memory.open(folder / "home", clock=self._clock, embedder=embedder)
        self._numbers: dict[str, int] = {}
        self._names = count()
        self._note_session: Session | None = None

    def fill(self, chat_sessions: Sequence[ChatSession]) -> None:
        from inmind.core.events.session import MessageAdded

        for chat_session in chat_sessions:
            self._clock.now = chat_session.at
            session = self._memory.session(f"session-{next(self._names)}", resource="bench", cwd="/bench")
            session.add([_as_message(turn) for turn in chat_session.turns])
            ids = [event.id for event in session.events() if isinstance(event.payload, MessageAdded)]
            self._numbers |= {id: len(self._numbers) + place for place, id in enumerate(ids)}

    def wait_until_ready(self) -> None:
        """Wait for all vectors, or fail: a search without some of them would go unnoticed."""
        self._memory.flush()
        assert self._memory._context.search.engine.embed()  # pyright: ignore[reportPrivateUsage] -- hosts need not wait for this
        self.search("ready?", 1, self._clock.now)

    def search(self, query: str, limit: int, at: datetime) -> list[int]:
        self._clock.now = at
        hits = self._memory.resource("bench").search(query, limit=limit)
        return [self._numbers[hit.crystal.id] for hit in hits if hit.crystal.id in self._numbers]

    def add(self, text: str) -> None:
        if self._note_session is None:
            self._note_session = self._memory.session("notes", resource="bench", cwd="/bench")
        self._note_session.note(text)

    def close(self) -> None:
        self._memory.close()


def _as_message(turn: Turn) -> dict[str, str]:
    return {"role": turn.role, "content": turn.text} | ({"name": turn.name} if turn.name else {})


class Bare(SearchSystem):
    """The minimum of SQLite work that stores a text equally safely. It cannot search."""

    def __init__(self, folder: Path, embedder: Embedder | None = None) -> None:
        from bench.prepare import BareJournal

        del embedder
        self._journal = BareJournal(folder / "bare.db")

    def fill(self, chat_sessions: Sequence[ChatSession]) -> None:
        self._journal.commit(list(_lines(chat_sessions)))

    def search(self, query: str, limit: int, at: datetime) -> list[int]:
        raise NotImplementedError

    def add(self, text: str) -> None:
        self._journal.commit([text])


class Fts5(SearchSystem):
    """SQLite's full text search with stemming: any word of the query except stop words."""

    def __init__(self, folder: Path, embedder: Embedder | None = None) -> None:
        del embedder
        self._connection: Any = apsw.Connection(str(folder / "fts5.db"))
        self._connection.pragma("journal_mode", "wal")
        self._connection.pragma("synchronous", "full")
        self._connection.execute("CREATE VIRTUAL TABLE talk USING fts5(text, tokenize = 'porter unicode61')")
        self._numbers = count()

    def fill(self, chat_sessions: Sequence[ChatSession]) -> None:
        with self._connection:
            self._connection.executemany(
                "INSERT INTO talk (rowid, text) VALUES (?, ?)",
                ((next(self._numbers), line) for line in _lines(chat_sessions)),
            )

    def search(self, query: str, limit: int, at: datetime) -> list[int]:
        del at
        words = dict.fromkeys(_words(query))
        terms = [word for word in words if word not in STOP_WORDS] or list(words)
        if not terms:
            return []
        results = self._connection.execute(
            "SELECT rowid FROM talk WHERE talk MATCH ? ORDER BY rank LIMIT ?",
            (" OR ".join(f'"{word}"' for word in terms), limit),
        )
        return [number for (number,) in results]

    def add(self, text: str) -> None:
        self._connection.execute("INSERT INTO talk (rowid, text) VALUES (?, ?)", (next(self._numbers), text))


class Bm25s(SearchSystem):
    """An index in numpy that is rebuilt for each added message."""

    def __init__(self, folder: Path, embedder: Embedder | None = None) -> None:
        del embedder
        self._bm25s, self._stemmer = import_module("bm25s"), import_module("Stemmer").Stemmer("english")
        self._folder, self._texts = folder, list[str]()
        self._index: Any = None

    def fill(self, chat_sessions: Sequence[ChatSession]) -> None:
        self._texts += _lines(chat_sessions)

    def wait_until_ready(self) -> None:
        self._index = self._bm25s.BM25()
        self._index.index(self._tokens(self._texts), show_progress=False)
        self._index.save(str(self._folder / "bm25s"), corpus=self._texts)

    def search(self, query: str, limit: int, at: datetime) -> list[int]:
        del at
        results, _ = self._index.retrieve(self._tokens(query), k=min(limit, len(self._texts)), show_progress=False)
        return [int(number) for number in results[0]]

    def add(self, text: str) -> None:
        self._texts.append(text)
        self.wait_until_ready()

    def _tokens(self, texts: str | Sequence[str]) -> Any:
        return self._bm25s.tokenize(texts, stopwords="en", stemmer=self._stemmer, show_progress=False)


class Chroma(SearchSystem):
    """A persistent collection with cosine distance and given vectors."""

    _BATCH_SIZE = 5_000

    def __init__(self, folder: Path, embedder: Embedder) -> None:
        chromadb = import_module("chromadb")
        self._embed = as_lists(embedder)
        client = chromadb.PersistentClient(path=str(folder), settings=chromadb.Settings(anonymized_telemetry=False))
        self._collection: Any = client.create_collection(
            "talk", configuration={"hnsw": {"space": "cosine"}}, embedding_function=None
        )
        self._numbers = count()

    def fill(self, chat_sessions: Sequence[ChatSession]) -> None:
        for texts in _batches(list(_lines(chat_sessions)), self._BATCH_SIZE):
            ids = [str(next(self._numbers)) for _ in texts]
            self._collection.add(ids=ids, documents=texts, embeddings=self._embed(texts))

    def search(self, query: str, limit: int, at: datetime) -> list[int]:
        del at
        results = self._collection.query(query_embeddings=self._embed([query]), n_results=limit, include=[])
        return [int(id) for id in results["ids"][0]]

    def add(self, text: str) -> None:
        self._collection.add(ids=[str(next(self._numbers))], documents=[text], embeddings=self._embed([text]))


class LangGraph(SearchSystem):
    """Its persistent store on SQLite, indexed by an embedding function."""

    _BATCH_SIZE = 500
    _NAMESPACE = ("bench", "talk")

    def __init__(self, folder: Path, embedder: Embedder) -> None:
        sqlite3: Any = import_module("sqlite3")
        if not hasattr(sqlite3.Connection, "enable_load_extension"):
            sys.modules["sqlite3"] = sqlite3 = import_module("pysqlite3")
        base = import_module("langgraph.store.base")
        self._put: Callable[..., Any] = base.PutOp
        connection = sqlite3.connect(str(folder / "store.db"), check_same_thread=False, isolation_level=None)
        # Its documentation says "fields", which this store ignores: it would embed the JSON.
        index = {"dims": embedder.dimensions, "embed": as_lists(embedder), "text_fields": ["text"]}
        self._store: Any = import_module("langgraph.store.sqlite").SqliteStore(connection, index=index)
        self._store.setup()
        self._numbers = count()

    def fill(self, chat_sessions: Sequence[ChatSession]) -> None:
        for texts in _batches(list(_lines(chat_sessions)), self._BATCH_SIZE):
            self._store.batch([self._put(self._NAMESPACE, str(next(self._numbers)), {"text": text}) for text in texts])

    def search(self, query: str, limit: int, at: datetime) -> list[int]:
        del at
        return [int(item.key) for item in self._store.search(self._NAMESPACE, query=query, limit=limit)]

    def add(self, text: str) -> None:
        self._store.put(self._NAMESPACE, str(next(self._numbers)), {"text": text})


class Mem0(SearchSystem):
    """Messages unchanged (infer=False), in its default local qdrant."""

    _USER: Mapping[str, str] = {"user_id": "bench"}

    def __init__(self, folder: Path, embedder: Embedder) -> None:
        self._embedder = _Mem0Embedder(embedder)
        unused = {"api_key": "no model is called"}
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
        """Return its marker for "no keywords": the extra for them is not installed with mem0."""
        del folder
        return False

    def fill(self, chat_sessions: Sequence[ChatSession]) -> None:
        """Insert into its vector store, as `add` does after embedding, without a sync per point."""
        self._wait_for_disk(False)
        lemmatize = import_module("mem0.utils.lemmatization").lemmatize_for_bm25
        identify = import_module("uuid").uuid4
        for texts in _batches(list(_lines(chat_sessions)), 500):
            entries = [
                {"data": text, "text_lemmatized": lemmatize(text), "number": next(self._numbers), **self._USER}
                for text in texts
            ]
            ids = [str(identify()) for _ in texts]
            self._memory.vector_store.insert(vectors=self._embedder.embed_batch(texts), payloads=entries, ids=ids)

    def wait_until_ready(self) -> None:
        self._wait_for_disk(True)

    def _wait_for_disk(self, wait: bool) -> None:
        for collection in self._memory.vector_store.client._client.collections.values():
            collection.storage.storage.execute(f"PRAGMA synchronous = {'FULL' if wait else 'OFF'}")

    def search(self, query: str, limit: int, at: datetime) -> list[int]:
        del at
        results = self._memory.search(query, filters=dict(self._USER), top_k=limit, threshold=0.0)
        return [item["metadata"]["number"] for item in results["results"]]

    def add(self, text: str) -> None:
        messages = [{"role": "user", "content": text}]
        self._memory.add(messages, **self._USER, metadata={"number": next(self._numbers)}, infer=False)


class Mem0WithKeywords(Mem0):
    """Mem0 with its extra for keywords, and with given stop words instead of a download."""

    def _keywords(self, folder: Path) -> Any:
        model = import_module("fastembed.sparse.bm25")
        return model.Bm25("Qdrant/bm25", specific_model_path=str(folder), stopwords=set(STOP_WORDS))


class _Mem0Embedder:
    """The interface of mem0's embedding models."""

    def __init__(self, embedder: Embedder) -> None:
        self._embed = as_lists(embedder)

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        del memory_action
        return self._embed([text])[0]

    def embed_batch(self, texts: Sequence[str], memory_action: str | None = None) -> list[list[float]]:
        del memory_action
        return self._embed(texts)


SYSTEMS: Mapping[str, Callable[[Path, Any], SearchSystem]] = {
    "inmind": Inmind,
    "bare": Bare,
    "fts5": Fts5,
    "bm25s": Bm25s,
    "chroma": Chroma,
    "langgraph": LangGraph,
    "mem0": Mem0,
    "mem0+bm25": Mem0WithKeywords,
}


def _lines(chat_sessions: Sequence[ChatSession]) -> Iterator[str]:
    return (turn.line for chat_session in chat_sessions for turn in chat_session.turns)


def _batches(texts: Sequence[str], limit: int) -> Iterator[Sequence[str]]:
    return (texts[first : first + limit] for first in range(0, len(texts), limit))


def _words(text: str) -> list[str]:
    return "".join(letter if letter.isalnum() else " " for letter in text.lower()).split()
