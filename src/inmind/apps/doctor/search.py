"""Search: whether its index is there, sound and current, and whether meaning is found by the vectors that are there."""

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
from inmind.core.text import counted
from inmind.errors import InmindError, InvalidInput, StoreBusy, StoreError
from inmind.search.embedders import embedder as embedder_of
from inmind.search.embedders.base import Embedder
from inmind.search.embedding import FEW_MISSING
from inmind.search.engine import reader
from inmind.search.index.base import AT_A_TIME
from inmind.search.index.indexer import FOLLOWED
from inmind.session.tools.registry import is_memory_tool

INDEXED = Check(Subject.SEARCH, "index")
EMBEDDER = Check(Subject.SEARCH, "embedder")
VECTORS = Check(Subject.SEARCH, "vectors")
SKIPPED = Check(Subject.SEARCH, "passed over")

_read = reader(is_memory_tool)
"""As the index reads messages."""


def check_index(home: Path, store: ReadOnlyStore, hints: FixHints) -> tuple[IndexStatus | None, DoctorFinding]:
    """It is made of the journal, so whatever is wrong with it loses nothing."""
    message = read_undisturbed(home / INDEX, lambda mode: _check_index(mode, store, hints))
    return message or (
        None,
        INDEXED.ok("somebody began to write to it or ceased to, each time it was looked at", RETRY_HINT),
    )


def _check_index(mode: ReadMode, store: ReadOnlyStore, hints: FixHints) -> tuple[IndexStatus | None, DoctorFinding]:
    upkeep = hints.inmind("upkeep")
    if not mode.path.exists():
        if len(store.events_since(0, kinds=FOLLOWED, limit=AT_A_TIME)) < AT_A_TIME:
            return None, INDEXED.ok("none: the next search makes it")
        return None, INDEXED.warning("there is none: the next search waits until it is made", upkeep)
    opened = ReadOnlyIndex(mode, store, _read)
    try:
        flaws = opened.flaws()
        status = None if flaws else opened.status()
    except StoreBusy:
        return None, INDEXED.warning(f"{INDEX} was held by another program all the time", RETRY_HINT)
    except StoreError as error:
        status, flaws = None, [getattr(error, "reason", str(error))]
    finally:
        opened.close()
    if status is None:
        files = sorted(mode.path.parent.glob(f"{INDEX}*"))
        rebuild = f"{hints.shell('rm', *files)}, then {upkeep}: it is made of the journal"
        return None, INDEXED.warning(f"damaged: {' '.join(flaws[0].split())}", rebuild)
    if not status.is_current:
        return None, INDEXED.warning(
            "of another version, or of another journal: it is made anew by the next search", upkeep
        )
    if status.behind >= AT_A_TIME:
        return status, INDEXED.warning(f"{AT_A_TIME} events or more behind: the next search waits for them", upkeep)
    behind = f", {counted(status.behind, 'event')} behind" if status.behind else ""
    return status, INDEXED.ok(f"sound{behind}")


def check_unreadable_messages(checked: CheckedStream[Any], hints: FixHints) -> Iterator[DoctorFinding]:
    """Messages that nobody can read, as a hand in the database may leave them: the index goes on without them."""
    for event in checked.events:
        if isinstance(event.payload, MessageAdded):
            try:
                _read(event.payload)
            except DECODE_ERRORS as error:
                message = f"{event.id} cannot be read ({type(error).__name__}: {error}), and search passes it over"
                yield SKIPPED.warning(message, hints.restore_backup)


def check_embedder(choice: str | Embedder | None, *, online: bool) -> tuple[Embedder | None, DoctorFinding]:
    """Which one there is, and whether it answers."""
    try:
        found = embedder_of(choice)
        if found is None:
            if choice == "auto":
                return None, EMBEDDER.ok(
                    'none: search goes by words alone (`pip install "inmind[vectors]"` brings one)'
                )
            return None, EMBEDDER.ok("none: search goes by words alone")
        if not online and choice != "auto":  # that one is here; of any other nobody knows where it is
            return found, EMBEDDER.ok(f"{found.name}, not asked")
        found.embed(["Is anybody there?"])
    except InvalidInput as error:
        return None, EMBEDDER.warning(
            f"{choice} cannot be used: expected {error.expected}", "see to that, or name another"
        )
    except InmindError as error:
        return None, EMBEDDER.warning(f"{error}; search goes by words meanwhile", "see to that, or name another")
    return found, EMBEDDER.ok(f"{found.name} answers")


def check_embeddings(status: IndexStatus, found: Embedder, hints: FixHints) -> Iterator[DoctorFinding]:
    upkeep = hints.inmind("upkeep")
    others = [name for name in status.embedders if name != found.name]
    done = status.embedders.get(found.name, 0)
    if others and done < status.crystals:
        message = (
            f"made by {', '.join(others)}, and {found.name} is in use here: found by words until they are made anew"
        )
        yield VECTORS.warning(message, upkeep)
    elif done + FEW_MISSING < status.crystals:
        message = f"{counted(status.crystals - done, 'crystal')} without: found by their words alone"
        yield VECTORS.warning(message, upkeep)
    elif status.crystals:
        yield VECTORS.ok(f"of {done:,} of {counted(status.crystals, 'crystal')}")
