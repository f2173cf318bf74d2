"""Checks of search: the index, the embedder and the embeddings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from inmind.apps.doctor.result import RETRY_HINT, Check, DoctorFinding, FixHints, Subject
from inmind.apps.doctor.sqlite_readonly import IndexStatus, ReadMode, ReadOnlyIndex, ReadOnlyStore, read_undisturbed
from inmind.apps.doctor.streams import CheckedStream
from inmind.core.events.codec import DECODE_ERRORS
from inmind.core.events.session import MessageAdded
from inmind.core.paths import INDEX
from inmind.core.text import count_noun
from inmind.errors import InmindError, InvalidInput, StoreBusy, StoreError
from inmind.search.crystal_texts import message_reader
from inmind.search.embedders import create_embedder as embedder_of
from inmind.search.embedders.base import Embedder
from inmind.search.embedding import MAX_MISSING
from inmind.search.index.base import BATCH_SIZE
from inmind.search.index.indexer import INDEXED_KINDS
from inmind.session.tools.registry import is_memory_tool

INDEXED = Check(Subject.SEARCH, "index")
EMBEDDER = Check(Subject.SEARCH, "embedder")
VECTORS = Check(Subject.SEARCH, "vectors")
SKIPPED = Check(Subject.SEARCH, "unreadable messages")

_read = message_reader(is_memory_tool)
"""Reads messages like the index does."""


def check_index(home: Path, store: ReadOnlyStore, hints: FixHints) -> tuple[IndexStatus | None, DoctorFinding]:
    """Check the index. It is derived from the journal, so a damaged one loses nothing."""
    message = read_undisturbed(home / INDEX, lambda mode: _check_index(mode, store, hints))
    return message or (
        None,
        INDEXED.ok("it changed during every attempt to read it", RETRY_HINT),
    )


def _check_index(mode: ReadMode, store: ReadOnlyStore, hints: FixHints) -> tuple[IndexStatus | None, DoctorFinding]:
    upkeep = hints.inmind("upkeep")
    if not mode.path.exists():
        if len(store.events_since(0, kinds=INDEXED_KINDS, limit=BATCH_SIZE)) < BATCH_SIZE:
            return None, INDEXED.ok("none: the next search builds it")
        return None, INDEXED.warning("missing: the next search has to wait while it is built", upkeep)
    opened = ReadOnlyIndex(mode, store, _read)
    try:
        flaws = opened.flaws()
        status = None if flaws else opened.status()
    except StoreBusy:
        return None, INDEXED.warning(f"{INDEX} is locked by another process", RETRY_HINT)
    except StoreError as error:
        status, flaws = None, [getattr(error, "reason", str(error))]
    finally:
        opened.close()
    if status is None:
        files = sorted(mode.path.parent.glob(f"{INDEX}*"))
        rebuild = f"{hints.shell('rm', *files)}, then {upkeep}, which rebuilds it from the journal"
        return None, INDEXED.warning(f"damaged: {' '.join(flaws[0].split())}", rebuild)
    if not status.is_current:
        return None, INDEXED.warning("version or journal changed: the next search rebuilds it", upkeep)
    if status.events_behind >= BATCH_SIZE:
        return status, INDEXED.warning(
            f"{BATCH_SIZE} or more events behind: the next search has to wait for them", upkeep
        )
    lag = f", {count_noun(status.events_behind, 'event')} behind" if status.events_behind else ""
    return status, INDEXED.ok(f"intact{lag}")


def check_unreadable_messages(checked: CheckedStream[Any], hints: FixHints) -> Iterator[DoctorFinding]:
    """Messages that cannot be decoded, for example after a manual change of the database.

    The index skips them.
    """
    for event in checked.events:
        if isinstance(event.payload, MessageAdded):
            try:
                _read(event.payload)
            except DECODE_ERRORS as error:
                message = f"{event.id} cannot be read ({type(error).__name__}: {error}); search skips it"
                yield SKIPPED.warning(message, hints.restore_backup)


def check_embedder(choice: str | Embedder | None, *, online: bool) -> tuple[Embedder | None, DoctorFinding]:
    """Find the embedder and check that it works."""
    try:
        embedder = embedder_of(choice)
        if embedder is None:
            if choice == "auto":
                return None, EMBEDDER.ok('none: keyword search only (`pip install "inmind[vectors]"` installs one)')
            return None, EMBEDDER.ok("none: keyword search only")
        if not online and choice != "auto":  # the automatic one is local; any other may be remote
            return embedder, EMBEDDER.ok(f"{embedder.name}, not called")
        embedder.embed(["test"])
    except InvalidInput as error:
        return None, EMBEDDER.warning(
            f"{choice} cannot be used: expected {error.expected}", "fix it, or choose another embedder"
        )
    except InmindError as error:
        return None, EMBEDDER.warning(f"{error}; keyword search only until then", "fix it, or choose another embedder")
    return embedder, EMBEDDER.ok(f"{embedder.name} answers")


def check_embeddings(status: IndexStatus, embedder: Embedder, hints: FixHints) -> Iterator[DoctorFinding]:
    upkeep = hints.inmind("upkeep")
    others = [name for name in status.embedders if name != embedder.name]
    done = status.embedders.get(embedder.name, 0)
    if others and done < status.crystals:
        message = f"created by {', '.join(others)}, but {embedder.name} is in use: keyword search only until rebuilt"
        yield VECTORS.warning(message, upkeep)
    elif done + MAX_MISSING < status.crystals:
        message = f"{count_noun(status.crystals - done, 'crystal')} without embeddings: found by keywords only"
        yield VECTORS.warning(message, upkeep)
    elif status.crystals:
        yield VECTORS.ok(f"for {done:,} of {count_noun(status.crystals, 'crystal')}")
