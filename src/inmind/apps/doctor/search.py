"""Search: whether its index is there, sound and current, and whether meaning is found by the vectors that are there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from inmind.apps.doctor.fix_hints import AGAIN, Steps
from inmind.apps.doctor.result import Check, Finding, Subject
from inmind.apps.doctor.sqlite_readonly import IndexLookedAt, IndexStanding, StoreLookedAt, Way, undisturbed
from inmind.apps.doctor.streams import Folded
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
from inmind.session.tools.tools import is_memory_tool

INDEXED = Check(Subject.SEARCH, "index")
EMBEDDER = Check(Subject.SEARCH, "embedder")
VECTORS = Check(Subject.SEARCH, "vectors")
PASSED_OVER = Check(Subject.SEARCH, "passed over")

_read = reader(is_memory_tool)
"""As the index reads messages."""


def index(home: Path, store: StoreLookedAt, steps: Steps) -> tuple[IndexStanding | None, Finding]:
    """It is made of the journal, so whatever is wrong with it loses nothing."""
    seen = undisturbed(home / INDEX, lambda way: _index(way, store, steps))
    return seen or (None, INDEXED.ok("somebody began to write to it or ceased to, each time it was looked at", AGAIN))


def _index(way: Way, store: StoreLookedAt, steps: Steps) -> tuple[IndexStanding | None, Finding]:
    again = steps.inmind("upkeep")
    if not way.path.exists():
        if len(store.since(0, kinds=FOLLOWED, most=AT_A_TIME)) < AT_A_TIME:
            return None, INDEXED.ok("none: the next search makes it")
        return None, INDEXED.warning("there is none: the next search waits until it is made", again)
    looked_at = IndexLookedAt(way, store, _read)
    try:
        flaws = looked_at.flaws()
        standing = None if flaws else looked_at.standing()
    except StoreBusy:
        return None, INDEXED.warning(f"{INDEX} was held by another program all the time", AGAIN)
    except StoreError as error:
        standing, flaws = None, [getattr(error, "reason", str(error))]
    finally:
        looked_at.close()
    if standing is None:
        files = sorted(way.path.parent.glob(f"{INDEX}*"))
        anew = f"{steps.shell('rm', *files)}, then {again}: it is made of the journal"
        return None, INDEXED.warning(f"damaged: {' '.join(flaws[0].split())}", anew)
    if not standing.is_ours:
        return None, INDEXED.warning(
            "of another version, or of another journal: it is made anew by the next search", again
        )
    if standing.behind >= AT_A_TIME:
        return standing, INDEXED.warning(f"{AT_A_TIME} events or more behind: the next search waits for them", again)
    behind = f", {counted(standing.behind, 'event')} behind" if standing.behind else ""
    return standing, INDEXED.ok(f"sound{behind}")


def passed_over(of: Folded[Any], steps: Steps) -> Iterator[Finding]:
    """Messages that nobody can read, as a hand in the database may leave them: the index goes on without them."""
    for event in of.events:
        if isinstance(event.payload, MessageAdded):
            try:
                _read(event.payload)
            except DECODE_ERRORS as error:
                seen = f"{event.id} cannot be read ({type(error).__name__}: {error}), and search passes it over"
                yield PASSED_OVER.warning(seen, steps.bring_back)


def embedder(named: str | Embedder | None, *, online: bool) -> tuple[Embedder | None, Finding]:
    """Which one there is, and whether it answers."""
    try:
        found = embedder_of(named)
        if found is None:
            if named == "auto":
                return None, EMBEDDER.ok(
                    'none: search goes by words alone (`pip install "inmind[vectors]"` brings one)'
                )
            return None, EMBEDDER.ok("none: search goes by words alone")
        if not online and named != "auto":  # that one is here; of any other nobody knows where it is
            return found, EMBEDDER.ok(f"{found.name}, not asked")
        found.embed(["Is anybody there?"])
    except InvalidInput as error:
        return None, EMBEDDER.warning(
            f"{named} cannot be used: expected {error.expected}", "see to that, or name another"
        )
    except InmindError as error:
        return None, EMBEDDER.warning(f"{error}; search goes by words meanwhile", "see to that, or name another")
    return found, EMBEDDER.ok(f"{found.name} answers")


def vectors(standing: IndexStanding, found: Embedder, steps: Steps) -> Iterator[Finding]:
    again = steps.inmind("upkeep")
    others = [name for name in standing.embedders if name != found.name]
    upto = standing.embedders.get(found.name, 0)
    if others and upto < standing.crystals:
        seen = f"made by {', '.join(others)}, and {found.name} is in use here: found by words until they are made anew"
        yield VECTORS.warning(seen, again)
    elif upto + FEW_MISSING < standing.crystals:
        seen = f"{counted(standing.crystals - upto, 'crystal')} without: found by their words alone"
        yield VECTORS.warning(seen, again)
    elif standing.crystals:
        yield VECTORS.ok(f"of {upto:,} of {counted(standing.crystals, 'crystal')}")
