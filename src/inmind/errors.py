"""All errors that inmind raises, as one tree with stable codes.

    InmindError
    ├── InvalidInput        INVALID_INPUT      an argument is invalid; names the field, the value and what was expected
    │   └── InvalidPath     INVALID_PATH       the path is not one of the session's documents
    ├── SchemaViolation     SCHEMA_VIOLATION   the scratchpad would not match its schema; names the path and the reason
    ├── NotFound            NOT_FOUND          no such session, call or document
    ├── Conflict            CONFLICT           another writer was first; carries both versions
    │   └── BundleDiverged  BUNDLE_DIVERGED    the bundle and this home have diverged; nothing was imported
    ├── KeyReused           KEY_REUSED         an idempotency key, or a message id, was used before with other content
    ├── LayerFailed         LAYER_FAILED       a custom layer raised or returned an invalid value
    ├── ExtractorFailed     EXTRACTOR_FAILED   a custom extractor raised or returned an invalid value
    ├── ModelFailed         MODEL_FAILED       a model passed in by the host raised; nothing was stored
    ├── SummaryRefused      SUMMARY_REFUSED    a model's summary cannot replace the messages it was written for
    ├── DreamRunning        DREAM_RUNNING      a dream for this resource is already running; none was started
    ├── DreamRejected       DREAM_REJECTED     the page that a dream proposed did not pass the guards
    ├── DreamOvertaken      DREAM_OVERTAKEN    the dream lost its lease or was cancelled; it can no longer commit
    ├── ContextOverflow     CONTEXT_OVERFLOW   the prompt does not fit the context window, even without memory
    ├── PromptNotRebuilt    PROMPT_NOT_REBUILT a past prompt renders to other bytes than were sent
    ├── Closed              CLOSED             the memory was closed before the call
    └── StoreError
        ├── StorageFull     STORAGE_FULL       no space left on the disk; nothing was stored, free space and retry
        ├── NotDurable      NOT_DURABLE        the disk did not confirm a write; reopen the memory to write again
        ├── ReadOnly        READ_ONLY          writes are refused: newer schema, an earlier NOT_DURABLE, or a
        │                                      scratchpad that was opened read-only
        ├── StoreBusy       STORE_BUSY         another writer held the store longer than the timeout
        ├── StoreUnavailable STORE_UNAVAILABLE the database cannot be reached, or the tenant no longer exists;
        │                                      nothing was stored
        ├── OutcomeUnknown  OUTCOME_UNKNOWN    the database's reply was lost: the change is stored or it is not
        ├── UnsafeStorage   UNSAFE_STORAGE     the folder or the SQLite library cannot store a memory durably
        └── Damaged         DAMAGED            stored bytes cannot be decoded; nothing was changed

A code never changes its meaning: hosts switch on `code`, people read the message. The message says what happened, with
which values, and what to do next.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

_MAX_VALUE_CHARS = 120
OMITTED = object()
"""Passed as `value` if there is no value, or if it may be a secret: messages end up in logs."""


class InmindError(Exception):
    """Base class of every error that inmind raises on purpose."""

    code: ClassVar[str] = "INMIND"


class InvalidInput(InmindError):
    """An argument is invalid. Raised before anything is stored.

    The message leaves the value out if the argument was missing: the caller did not pass None.
    """

    code = "INVALID_INPUT"

    def __init__(self, *, field: str, value: object = OMITTED, expected: str) -> None:
        super().__init__(f"{field}: expected {expected}" + ("" if value is OMITTED else f", got {short_repr(value)}"))
        self.field, self.value, self.expected = field, value, expected


class InvalidPath(InvalidInput):
    """The path is not one of the memory's documents.

    The message never names a path outside them.
    """

    code = "INVALID_PATH"


class SchemaViolation(InmindError):
    """The scratchpad would not match its schema after this change. Its state is unchanged."""

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
    """Another writer was first. Carries both versions and, for a document, both texts."""

    code = "CONFLICT"

    def __init__(
        self, *, stream: str, expected: int, actual: int, mine: str | None = None, theirs: str | None = None
    ) -> None:
        super().__init__(
            f"{stream} is at version {actual}, this change is based on version {expected}: read it again and retry"
        )
        self.stream, self.expected, self.actual = stream, expected, actual
        self.mine, self.theirs = mine, theirs


class BundleDiverged(Conflict):
    """This home and the bundle have diverged: each has events that the other has not.

    Nothing was imported.
    """

    code = "BUNDLE_DIVERGED"

    def __init__(self, what: str, how: str, *, expected: int = 0, actual: int = 0) -> None:
        InmindError.__init__(
            self, f"{what} {how}: nothing was imported; `inmind --home DIR import …` imports it into another home"
        )
        self.stream, self.expected, self.actual = what, expected, actual
        self.mine, self.theirs = None, None


class KeyReused(InmindError):
    """The idempotency key was used before with other content."""

    code = "KEY_REUSED"

    def __init__(self, *, key: str, what: str = "idempotency key") -> None:
        super().__init__(f"{what} {short_repr(key)} was used before with other content: use a new one")
        self.key = key


class LayerFailed(InmindError):
    """A custom layer failed; its exception is the cause of this one. Nothing was stored."""

    code = "LAYER_FAILED"

    def __init__(self, *, layer: str, reason: str) -> None:
        super().__init__(f"layer {short_repr(layer)} failed: {reason}")
        self.layer, self.reason = layer, reason


class ModelFailed(InmindError):
    """A model passed in by the host failed; its exception is the cause of this one.

    Nothing was stored.
    """

    code = "MODEL_FAILED"

    def __init__(self, *, reason: str, tokens: tuple[int, int] = (0, 0), free: bool = False) -> None:
        """`tokens`: read and written before the failure.

        `free`: the request is known to have cost nothing.
        """
        super().__init__(f"the model failed: {reason}; nothing was changed")
        self.reason, self.tokens, self.free = reason, tokens, free


class ExtractorFailed(InmindError):
    """A custom extractor failed; its exception is the cause of this one. Nothing was stored."""

    code = "EXTRACTOR_FAILED"

    def __init__(self, *, pattern: str, tool: str, reason: str) -> None:
        super().__init__(f"the extractor for {short_repr(pattern)} failed on {short_repr(tool)}: {reason}")
        self.pattern, self.tool, self.reason = pattern, tool, reason


class SummaryRefused(InmindError):
    """A model's summary is empty, not a summary, or not safe to send.

    The messages stay as they are.
    """

    code = "SUMMARY_REFUSED"

    def __init__(self, *, reason: str) -> None:
        super().__init__(f"the summary was refused: {reason}; the history is unchanged")
        self.reason = reason


class DreamRunning(InmindError):
    """A dream for this resource is already running. No new dream was started."""

    code = "DREAM_RUNNING"

    def __init__(self, *, resource: str, dream: int, until: str) -> None:
        super().__init__(
            f"dream {dream} of {short_repr(resource)} is already running, at least until {until}: "
            "wait for it, or cancel it"
        )
        self.resource, self.dream, self.until = resource, dream, until


class DreamRejected(InmindError):
    """The page that a dream proposed did not pass the guards.

    State, notes and crystals are unchanged.
    """

    code = "DREAM_REJECTED"

    def __init__(self, *, reasons: Sequence[str]) -> None:
        super().__init__(f"the dream was rejected: {'; '.join(reasons)}; nothing was changed")
        self.reasons = tuple(reasons)


class DreamOvertaken(InmindError):
    """The dream's lease expired and another dream started, or the dream was cancelled.

    It can no longer commit.
    """

    code = "DREAM_OVERTAKEN"

    def __init__(self, *, dream: int, reason: str) -> None:
        super().__init__(f"dream {dream} {reason}: nothing was changed")
        self.dream, self.reason = dream, reason


class ContextOverflow(InmindError):
    """The prompt does not fit the context window, even without memory. Nothing was stored."""

    code = "CONTEXT_OVERFLOW"

    def __init__(self, *, needed: int, spendable: int, memory_tools: int = 0) -> None:
        fits_without = needed - spendable <= memory_tools
        option = f", or set memory_tools=False, which saves {memory_tools} tokens" if fits_without else ""
        super().__init__(
            f"the prompt needs {needed} tokens without any memory, {spendable} are available: "
            f"shorten the messages, raise the window or lower the reserve{option}"
        )
        self.needed, self.spendable = needed, spendable


class PromptNotRebuilt(InmindError):
    """A past prompt no longer renders to the bytes that were sent.

    Its events are intact and readable.
    """

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
    """Base class of errors of the store."""

    code = "STORE"


class StorageFull(StoreError):
    """No space left on the disk. Nothing was stored; writes work again once there is space."""

    code = "STORAGE_FULL"

    def __init__(self, *, place: str) -> None:
        super().__init__(f"no space left for {place}: nothing was stored; free some space and retry")
        self.place = place


class NotDurable(StoreError):
    """The disk did not confirm a write.

    The change may be stored or not; further writes are refused.

    A second fsync after a failed one can succeed without having written anything, so a retry could hide the loss.
    """

    code = "NOT_DURABLE"

    def __init__(self, *, place: str, reason: str) -> None:
        super().__init__(f"{place} could not be made durable ({reason}): check the disk, then open the memory again")
        self.place, self.reason = place, reason


class ReadOnly(StoreError):
    """Writes are refused: newer schema, earlier NotDurable, or scratchpad opened read-only."""

    code = "READ_ONLY"

    def __init__(self, *, place: str, reason: str) -> None:
        super().__init__(f"{place} can be read but not written: {reason}")
        self.place, self.reason = place, reason


class StoreBusy(StoreError):
    """Another writer held the store longer than the timeout, or it was overloaded.

    Nothing was stored.
    """

    code = "STORE_BUSY"

    def __init__(self, *, place: str, seconds: float, reason: str = "") -> None:
        """`reason`: set if the cause was not another writer."""
        why = f"is busy ({reason})" if reason else f"was held by another writer for {seconds:g} s"
        super().__init__(f"{place} {why}: nothing was stored; retry")
        self.place, self.seconds, self.reason = place, seconds, reason


class StoreUnavailable(StoreError):
    """The database cannot be reached, is starting or is shutting down.

    Nothing was stored; retry later.
    """

    code = "STORE_UNAVAILABLE"

    def __init__(self, *, place: str, reason: str, gone: bool = False) -> None:
        """`gone`: the server says that the tenant is unknown or the password is wrong."""
        if gone:
            problem = f"tenant not found (moved, erased, or wrong password): {reason}"
            next_step = "ask the operator for the new URL"
        else:
            problem, next_step = f"cannot be reached ({reason})", "retry"
        super().__init__(f"{place} {problem}: nothing was stored; {next_step}")
        self.place, self.reason = place, reason


class OutcomeUnknown(StoreError):
    """The connection ended before the database replied.

    The whole change is stored, or nothing is.

    Retrying with the same key is safe. Without a key, read the state first.
    """

    code = "OUTCOME_UNKNOWN"

    def __init__(self, *, place: str, reason: str) -> None:
        super().__init__(
            f"the reply of {place} was lost ({reason}): the change may be stored or not; "
            "read the state before retrying, and pass a key to make retries safe"
        )
        self.place, self.reason = place, reason


class UnsafeStorage(StoreError):
    """The folder, a file in it, or the SQLite library cannot store a memory durably."""

    code = "UNSAFE_STORAGE"

    def __init__(self, *, place: str, reason: str) -> None:
        super().__init__(f"{place} cannot store a memory safely: {reason}")
        self.place, self.reason = place, reason


class Damaged(StoreError):
    """Stored bytes cannot be decoded. Nothing was changed."""

    code = "DAMAGED"

    def __init__(self, *, place: str, reason: str) -> None:
        super().__init__(f"{place} is damaged: {reason}; nothing was changed, restore it from a copy")
        self.place, self.reason = place, reason


def short_repr(value: object) -> str:
    """Return the repr of a value for use in a message: on one line and cut to 120 characters."""
    try:
        text = repr(value)
    except Exception as error:  # a foreign __repr__ may raise anything, and an error report must not
        text = f"<{type(value).__name__} whose repr raised {type(error).__name__}>"
    return text if len(text) <= _MAX_VALUE_CHARS else f"{text[:_MAX_VALUE_CHARS]}… ({len(text)} characters)"
