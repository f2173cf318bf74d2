"""Every way a call can fail, as one tree with stable codes.

    InmindError
    ├── InvalidInput        INVALID_INPUT      a value from outside does not fit; names field, value, expectation
    │   └── InvalidPath     INVALID_PATH       a path that is not one of the session's documents
    ├── SchemaViolation     SCHEMA_VIOLATION   a scratchpad would not fit its schema; names the path and why
    ├── NotFound            NOT_FOUND          no such session, call or document
    ├── Conflict            CONFLICT           somebody else wrote first; carries both versions
    │   └── PartedWays      PARTED_WAYS        a bundle and this home have gone on differently; nothing was imported
    ├── KeyReused           KEY_REUSED         an idempotency key, or a message's id, came back with other content
    ├── LayerFailed         LAYER_FAILED       a host's layer raised, or answered with something else than it should
    ├── ExtractorFailed     EXTRACTOR_FAILED   a host's extractor raised, or answered with something else than entities
    ├── ModelFailed         MODEL_FAILED       a model that a host has given raised; nothing was stored
    ├── SummaryRefused      SUMMARY_REFUSED    a model's summary cannot stand for what it would replace
    ├── DreamRunning        DREAM_RUNNING      somebody dreams for this resource already; nothing was begun
    ├── DreamRejected       DREAM_REJECTED     the state that a dream proposed did not pass its guards
    ├── DreamOvertaken      DREAM_OVERTAKEN    a dream took too long, or was called off; it can change nothing any more
    ├── ContextOverflow     CONTEXT_OVERFLOW   the prompt cannot fit the window, whatever is cut
    ├── PromptNotRebuilt    PROMPT_NOT_REBUILT a past prompt renders to other bytes than were sent
    ├── Closed              CLOSED             the memory was closed before the call
    └── StoreError
        ├── StorageFull     STORAGE_FULL       no room on the disk; nothing was stored, try again when there is
        ├── NotDurable      NOT_DURABLE        the disk refused to confirm; writing stops until reopened
        ├── ReadOnly        READ_ONLY          this store takes no writes: newer schema, an earlier NOT_DURABLE, or a
        │                                      scratchpad that was opened read-only
        ├── StoreBusy       STORE_BUSY         another writer held the store longer than the timeout
        ├── StoreUnavailable STORE_UNAVAILABLE the database cannot be reached, or has this tenant no more;
        │                                      nothing was stored
        ├── OutcomeUnknown  OUTCOME_UNKNOWN    the answer of the database got lost: the change may be there or not
        ├── UnsafeStorage   UNSAFE_STORAGE     the folder or the SQLite library cannot keep the promises
        └── Damaged         DAMAGED            stored bytes do not read back; nothing was changed

A code never changes its meaning; hosts switch on `code`, people read the message. The message says what
happened, with which values, and what to do next.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

_MAX_VALUE_CHARS = 120
OMITTED = object()
"""In the place of a value that is not named: there is none, or it may be a secret, and messages end up in logs."""


class InmindError(Exception):
    """The root: catch this to catch everything that inmind raises on purpose."""

    code: ClassVar[str] = "INMIND"


class InvalidInput(InmindError):
    """A value from outside does not fit. Raised before anything is stored.

    Where it is about what was not given, no value is named: nobody has typed None.
    """

    code = "INVALID_INPUT"

    def __init__(self, *, field: str, value: object = OMITTED, expected: str) -> None:
        super().__init__(f"{field}: expected {expected}" + ("" if value is OMITTED else f", got {short_repr(value)}"))
        self.field, self.value, self.expected = field, value, expected


class InvalidPath(InvalidInput):
    """A path that is not one of the memory's documents. The message never names a place outside them."""

    code = "INVALID_PATH"


class SchemaViolation(InmindError):
    """A scratchpad would not fit its schema after this. The state that was there is untouched."""

    code = "SCHEMA_VIOLATION"

    def __init__(self, *, path: str, reason: str) -> None:
        super().__init__(f"{path or 'the scratchpad'} does not fit the schema: {reason}")
        self.path, self.reason = path, reason


class NotFound(InmindError):
    """No such session, call, event or document."""

    code = "NOT_FOUND"

    def __init__(self, *, what: str, name: object, hint: str = "") -> None:
        super().__init__(f"no {what} {short_repr(name)}" + (f": {hint}" if hint else ""))
        self.what, self.name = what, name


class Conflict(InmindError):
    """Somebody else wrote first. Both versions are here, and for a document both texts, so nobody has to guess."""

    code = "CONFLICT"

    def __init__(
        self, *, stream: str, expected: int, actual: int, mine: str | None = None, theirs: str | None = None
    ) -> None:
        super().__init__(
            f"{stream} is at version {actual}, this change was decided on {expected}: read it again and retry"
        )
        self.stream, self.expected, self.actual = stream, expected, actual
        self.mine, self.theirs = mine, theirs


class BundleDiverged(Conflict):
    """Something has gone on here and in a bundle, each in its own way. Nothing was brought in."""

    code = "PARTED_WAYS"

    def __init__(self, what: str, how: str, *, expected: int = 0, actual: int = 0) -> None:
        InmindError.__init__(
            self, f"{what} {how}: nothing was imported; `inmind --home DIR import …` brings it into a home of its own"
        )
        self.stream, self.expected, self.actual = what, expected, actual
        self.mine, self.theirs = None, None


class KeyReused(InmindError):
    """A key is a promise that the call is the same; this one came with other content."""

    code = "KEY_REUSED"

    def __init__(self, *, key: str, what: str = "idempotency key") -> None:
        super().__init__(f"{what} {short_repr(key)} was used before with other content: take a new one")
        self.key = key


class LayerFailed(InmindError):
    """A layer is a host's code: what it raised is the cause of this, and nothing was stored."""

    code = "LAYER_FAILED"

    def __init__(self, *, layer: str, reason: str) -> None:
        super().__init__(f"layer {short_repr(layer)} failed: {reason}")
        self.layer, self.reason = layer, reason


class ModelFailed(InmindError):
    """A model is a host's code: what it raised is the cause of this, and nothing was stored."""

    code = "MODEL_FAILED"

    def __init__(self, *, reason: str, tokens: tuple[int, int] = (0, 0), free: bool = False) -> None:
        """`free`: it is known that nothing was read or written for it."""
        super().__init__(f"the model failed: {reason}; nothing was changed")
        self.reason, self.tokens, self.free = reason, tokens, free


class ExtractorFailed(InmindError):
    """An extractor is a host's code: what it raised is the cause of this, and nothing was stored."""

    code = "EXTRACTOR_FAILED"

    def __init__(self, *, pattern: str, tool: str, reason: str) -> None:
        super().__init__(f"the extractor for {short_repr(pattern)} failed on {short_repr(tool)}: {reason}")
        self.pattern, self.tool, self.reason = pattern, tool, reason


class SummaryRefused(InmindError):
    """A model's summary is no text, no summary, or not safe to send. The messages that it was to replace stay."""

    code = "SUMMARY_REFUSED"

    def __init__(self, *, reason: str) -> None:
        super().__init__(f"the summary was refused: {reason}; the history stays as it is")
        self.reason = reason


class DreamRunning(InmindError):
    """Somebody dreams for this resource already. Nothing was begun."""

    code = "DREAM_RUNNING"

    def __init__(self, *, resource: str, dream: int, until: str) -> None:
        super().__init__(
            f"dream {dream} of {short_repr(resource)} is running, until {until} at least: wait for it, or call it off"
        )
        self.resource, self.dream, self.until = resource, dream, until


class DreamRejected(InmindError):
    """The state that a dream proposed did not pass its guards. State, notes and crystals are as they were."""

    code = "DREAM_REJECTED"

    def __init__(self, *, reasons: Sequence[str]) -> None:
        super().__init__(f"the dream was rejected: {'; '.join(reasons)}; nothing was changed")
        self.reasons = tuple(reasons)


class DreamOvertaken(InmindError):
    """A dream took too long and another has begun, or somebody has called it off. It can change nothing any more."""

    code = "DREAM_OVERTAKEN"

    def __init__(self, *, dream: int, reason: str) -> None:
        super().__init__(f"dream {dream} {reason}: it has changed nothing")
        self.dream, self.reason = dream, reason


class ContextOverflow(InmindError):
    """The prompt cannot fit the window, whatever is cut. Nothing was stored."""

    code = "CONTEXT_OVERFLOW"

    def __init__(self, *, needed: int, spendable: int) -> None:
        super().__init__(
            f"the prompt needs {needed} tokens without any memory, {spendable} are spendable: "
            "shorten the messages, raise the window or lower the reserve"
        )
        self.needed, self.spendable = needed, spendable


class PromptNotRebuilt(InmindError):
    """A past prompt no longer renders to the bytes that were sent; its events are intact and can be read."""

    code = "PROMPT_NOT_REBUILT"

    def __init__(self, *, call: int, sent: str, rebuilt: str) -> None:
        super().__init__(f"call {call} was sent as {sent} but renders as {rebuilt}: another version of inmind sent it")
        self.call, self.sent, self.rebuilt = call, sent, rebuilt


class Closed(InmindError):
    """The memory was closed before the call."""

    code = "CLOSED"

    def __init__(self) -> None:
        super().__init__("this memory is closed: open it again with Memory.open()")


class StoreError(InmindError):
    """The place where memory is kept did not do as asked."""

    code = "STORE"


class StorageFull(StoreError):
    """There is no room. Nothing was stored, and writing goes on by itself once there is."""

    code = "STORAGE_FULL"

    def __init__(self, *, place: str) -> None:
        super().__init__(f"no room left for {place}: nothing was stored; free some space and call again")
        self.place = place


class NotDurable(StoreError):
    """The disk did not confirm. The change may or may not be there, so this store takes no more writes.

    A second fsync after a failed one can succeed without having written anything: retrying would turn a loud
    loss into a silent one.
    """

    code = "NOT_DURABLE"

    def __init__(self, *, place: str, reason: str) -> None:
        super().__init__(f"{place} could not be made durable ({reason}): check the disk, then open the memory again")
        self.place, self.reason = place, reason


class ReadOnly(StoreError):
    """Nothing is written here: a newer schema, an earlier NotDurable, or a pad that was opened so."""

    code = "READ_ONLY"

    def __init__(self, *, place: str, reason: str) -> None:
        super().__init__(f"{place} can be read but not written: {reason}")
        self.place, self.reason = place, reason


class StoreBusy(StoreError):
    """Another writer held the store for longer than we wait, or it had too much else to do. Nothing was stored."""

    code = "STORE_BUSY"

    def __init__(self, *, place: str, seconds: float, reason: str = "") -> None:
        """`reason`: where it was not another writer."""
        why = f"is busy ({reason})" if reason else f"was held by another writer for {seconds:g} s"
        super().__init__(f"{place} {why}: nothing was stored; call again")
        self.place, self.seconds, self.reason = place, seconds, reason


class StoreUnavailable(StoreError):
    """The database cannot be reached, or is just starting or leaving. Nothing was stored, and it recovers by itself."""

    code = "STORE_UNAVAILABLE"

    def __init__(self, *, place: str, reason: str, gone: bool = False) -> None:
        """`gone`: it was reached, and has this tenant no more; then nothing recovers by itself."""
        moved = "has no such tenant any more: it was moved or erased, or its password has changed"
        said = f"{moved} ({reason})" if gone else f"cannot be reached ({reason})"
        then = "its operator knows its address" if gone else "call again"
        super().__init__(f"{place} {said}: nothing was stored; {then}")
        self.place, self.reason = place, reason


class OutcomeUnknown(StoreError):
    """The connection ended before the database's answer came: the change was stored whole, or not at all.

    A call with a key finds out by itself. Without one, look before you call again.
    """

    code = "OUTCOME_UNKNOWN"

    def __init__(self, *, place: str, reason: str) -> None:
        super().__init__(
            f"the answer of {place} got lost ({reason}): the change may be there or not; "
            "look before you call again, and give a key so that calling twice is calling once"
        )
        self.place, self.reason = place, reason


class UnsafeStorage(StoreError):
    """The folder, a file in it, or SQLite itself cannot keep what we promise."""

    code = "UNSAFE_STORAGE"

    def __init__(self, *, place: str, reason: str) -> None:
        super().__init__(f"{place} cannot hold a memory safely: {reason}")
        self.place, self.reason = place, reason


class Damaged(StoreError):
    """Stored bytes do not read back. Nothing was changed."""

    code = "DAMAGED"

    def __init__(self, *, place: str, reason: str) -> None:
        super().__init__(f"{place} does not read back: {reason}; nothing was changed, restore it from a copy")
        self.place, self.reason = place, reason


def short_repr(value: object) -> str:
    """A value as it may stand in a message: short, on one line, whatever it is."""
    try:
        text = repr(value)
    except Exception as error:  # a foreign __repr__ may raise anything, and an error report must not
        text = f"<{type(value).__name__} whose repr raised {type(error).__name__}>"
    return text if len(text) <= _MAX_VALUE_CHARS else f"{text[:_MAX_VALUE_CHARS]}… ({len(text)} characters)"
