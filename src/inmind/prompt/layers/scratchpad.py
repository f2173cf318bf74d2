"""The scratchpad as a layer: what the model reads of it, and what an update of it comes to.

The agent's own pad, text or an object with a schema. Hosts, the model's tool and children that come home all change it
through here, so that one set of rules decides what is taken, what is refused, and what is told about it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, get_args

from inmind.core.encoding import to_json
from inmind.core.events.base import EventPayload, Trust
from inmind.core.events.documents import ScratchpadSetAside, ScratchpadStarted
from inmind.core.frozen import frozen
from inmind.documents.document import MAX_DOCUMENT_BYTES, Scope
from inmind.documents.scratchpad.filler_values import leaf_values
from inmind.documents.scratchpad.merge import json_equal
from inmind.documents.scratchpad.paths import ABSENT, format_path, is_object, value_at
from inmind.documents.scratchpad.render import render_state, render_within
from inmind.documents.scratchpad.state import Scratchpads, ScratchpadState
from inmind.documents.scratchpad.update import ScratchpadUpdate, plan_object_update, plan_text_update
from inmind.errors import InvalidInput, ReadOnly
from inmind.prompt.layers.base import Budget, Layer, Moment, PlainLayer, Recalled, Slot, Spawn, looked_through

if TYPE_CHECKING:
    from inmind.documents.scratchpad.merge3 import ScratchpadMerge
    from inmind.documents.scratchpad.schema import ScratchpadSchema

NAME = "working-memory"
SCRATCHPAD = "scratchpad"
"""The path under which the model reads all of it."""

DELETE = "delete"
MOST_SHOWN = 4_000
"""Characters of what has changed that an answer shows."""
MOST_NAMED = 20
"""Fields that an answer names; of more it says how many."""
BUDGET = Budget(min=200, max=1_500)

_NAMED = re.compile(r"[a-zA-Z][\w-]{0,49}", re.ASCII)


@frozen
class Revision:
    """What an update comes to: events, none if it changes nothing, and what to tell whoever asked."""

    happened: tuple[EventPayload, ...]
    told: str
    stale: bool = False
    """It would have overwritten what was never seen; then it changes nothing."""
    whole: bool = False
    """All of the pad is in it, or in what is told."""


class ScratchpadLayer(PlainLayer):
    """A pad that the agent keeps by itself. Without a schema it is text; with one, an object that always fits it."""

    def __init__(
        self,
        *,
        schema: Any = None,
        template: ScratchpadState | None = None,
        scope: Scope = "thread",
        read_only: bool = False,
        name: str = NAME,
        slot: int = Slot.SCRATCHPAD,
        budget: Budget = BUDGET,
    ) -> None:
        if scope not in get_args(Scope):
            raise InvalidInput(field="scope", value=scope, expected=" or ".join(get_args(Scope)))
        if not isinstance(name, str) or not _NAMED.fullmatch(name):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(field="name", value=name, expected="letters, digits, - and _, at most 50")
        if not isinstance(read_only, bool):  # pyright: ignore[reportUnnecessaryIsInstance] -- hosts are not all typed
            raise InvalidInput(field="read_only", value=read_only, expected="True or False")
        self.name, self.slot, self.budget, self.read_only = name, slot, budget, read_only
        self.scope: Scope = scope
        self._policy: Spawn = "fork" if scope == "resource" else "none"
        self.shape: ScratchpadSchema | None = None if schema is None else _shape(schema)
        self._template = self._beginning(template)
        self._judged: tuple[ScratchpadState, str] = ({}, "")
        """The state that was last held against the schema: what was merged fits, and is not asked about again."""
        self._sized: tuple[ScratchpadState, int] = ({}, 0)
        """The state that an update last led to, and what it takes at most."""
        self._shown: tuple[ScratchpadState, str] = ("", "")
        """The state that was last written out for the model, which asks for it with every prompt."""

    def held(self, pads: Scratchpads) -> ScratchpadState:
        """What was saved, else the template, else nothing. What does not fit the schema is as good as nothing."""
        pad = pads.get(self.name)
        if pad is None:
            return self._template
        return {} if self.misfit(pads) else pad.state

    def misfit(self, pads: Scratchpads) -> str:
        """Why what was saved does not fit the schema; empty if it does."""
        pad = pads.get(self.name)
        if pad is None or self.shape is None:
            return ""
        judged, why = self._judged
        if not json_equal(judged, pad.state):
            why = self.shape.mismatch_reason(pad.state)
            self._judged = (pad.state, why)
        return why

    def source(self, stream: str, pads: Scratchpads) -> str:
        """The event that wrote what is held; the beginning of the stream where nobody has."""
        pad = pads.get(self.name)
        return pad.source if pad else f"{stream}#0"

    def closed(self, pads: Scratchpads) -> str:
        """Why nothing is written here; empty if it is."""
        if self.read_only:
            return "it is read-only here"
        if self.shape is None and not isinstance(self.held(pads), str):
            return "it holds an object, and the session was opened without its schema"
        return ""

    def text(self, pads: Scratchpads) -> str:
        return self._text(self.held(pads))

    def recall(self, moment: Moment) -> Recalled | None:
        pads = moment.pads[self.scope]
        state = self.held(pads)
        text = self._text(state)
        if not text:
            return None
        pad = pads.get(self.name)
        return Recalled(
            text,
            sources=(pad.source,) if pad else (),
            trust=pad.trust if pad else Trust.OPERATOR,
            tag="working_memory",
            shorten=lambda budget, count: render_within(state, budget=budget, count=count, path=SCRATCHPAD),
        )

    def spawn(self) -> Spawn:
        """What belongs to the resource is copied for a child, what belongs to this conversation is not."""
        return self._policy

    def owned(self) -> ScratchpadLayer:
        """The same pad, kept by one session alone: in a child, and where there is nobody whose it could be."""
        return self._like(scope="thread")

    def viewed(self) -> ScratchpadLayer:
        return self._like(read_only=True)

    def revised(self, pads: Scratchpads, given: object, *, delete: object = (), append: object = False) -> Revision:
        """What a host's update comes to, taken literally."""
        if not isinstance(append, bool):
            raise InvalidInput(field="append", value=append, expected="True or False")
        return self._revision(pads, given, delete, append=append)

    def revised_by_model(
        self, pads: Scratchpads, arguments: Mapping[str, Any], seen: ScratchpadState | None
    ) -> Revision:
        """What a model's call comes to, in which the fields that it merely filled in are told from those it meant.

        `seen`: what it was last shown. What has changed since, by somebody else, is shown to it and not overwritten.
        """
        if isinstance(self.held(pads), str):
            text = arguments.get("text", arguments.get("memory", arguments))
            return self._revision(pads, text, (), append=truth(arguments, "append"), padded=True, seen=seen)
        key = self.shape.delete_key if self.shape else DELETE
        values = {name: value for name, value in arguments.items() if name != key}
        return self._revision(pads, values, arguments.get(key), padded=True, seen=seen)

    def revised_by_child(self, pads: Scratchpads, came: ScratchpadMerge) -> tuple[EventPayload, ...]:
        """What a child brings home, which must fit the schema together with what is here."""
        if came.text is not None:
            return self._revision(pads, came.text, ()).happened
        if came.values or came.delete:
            return self._revision(pads, came.values, came.delete, judged=True).happened
        return ()

    def _revision(
        self,
        pads: Scratchpads,
        given: object,
        delete: object,
        *,
        append: bool = False,
        padded: bool = False,
        judged: bool = False,
        seen: ScratchpadState | None = None,
    ) -> Revision:
        """`judged`: whatever is removed was rightly removed elsewhere."""
        if closed := self.closed(pads):
            raise ReadOnly(place=f"the scratchpad {self.name}", reason=closed)
        held, aside = self.held(pads), self.misfit(pads)
        if isinstance(held, str):
            if delete:
                raise InvalidInput(field="delete", value=delete, expected="nothing, since this scratchpad holds text")
            update = plan_text_update(held, given, append=append, may_have_filler=padded)
        else:
            if append:
                raise InvalidInput(
                    field="append", value=append, expected="False, since this scratchpad holds an object"
                )
            sized, size = self._sized
            update = plan_object_update(
                held,
                given,
                delete,
                may_have_filler=padded,
                size=size if json_equal(sized, held) else MAX_DOCUMENT_BYTES,
            )
            if update.changed:
                self._check(update.state, {} if judged else held, update.delete)
                self._sized = (update.state, update.size)
            if self.shape is not None:
                self.shape.check_known_fields(update.values)
        if padded and update.changed and (stale := _stale(update, seen, held)):
            return stale
        whole = update.text is not None and not update.append
        if not update.changed:
            return Revision((), _told(update, changed=False))
        first: tuple[EventPayload, ...] = ()
        if aside:
            first = (ScratchpadSetAside(self.name, aside),)
        elif pads.get(self.name) is None and held:
            first = (ScratchpadStarted(self.name, held),)
        return Revision((*first, update.event(self.name)), _told(update, changed=True), whole=whole)

    def _beginning(self, template: object) -> ScratchpadState:
        empty: ScratchpadState = "" if self.shape is None else {}
        if template is None:
            return empty
        if self.shape is None:
            return plan_text_update("", template).state
        update = plan_object_update({}, template)
        self.shape.check_known_fields(update.values)
        self._check(update.state, {})
        return update.state

    def _text(self, state: ScratchpadState) -> str:
        shown, text = self._shown
        if shown is not state:
            text = render_state(state)
            self._shown = (state, text)
        return text

    def _check(self, state: ScratchpadState, before: ScratchpadState, delete: Sequence[Sequence[str]] = ()) -> None:
        if self.shape is not None and isinstance(state, Mapping):
            self.shape.check(state, before, [tuple(path) for path in delete])
            self._judged = (state, "")

    def _like(self, *, scope: Scope | None = None, read_only: bool | None = None) -> ScratchpadLayer:
        twin = copy(self)
        twin.scope = self.scope if scope is None else scope
        twin.read_only = self.read_only if read_only is None else read_only
        return twin


def truth(arguments: Mapping[str, Any], key: str) -> bool:
    """Whether a model has said yes. Some write it as text; taken for a no, it would overwrite what it was to add to."""
    value = arguments.get(key)
    if isinstance(value, str) and value.lower() in ("true", "false", ""):
        return value.lower() == "true"
    if value is not None and not isinstance(value, bool):
        raise InvalidInput(field=key, value=value, expected="true or false")
    return value is True


def scratchpad_of(layers: Sequence[Layer]) -> ScratchpadLayer | None:
    """The one scratchpad among these layers. With two, the model's one tool would not say which it means."""
    pads = [layer for layer in layers if isinstance(layer, ScratchpadLayer)]
    if len(pads) > 1:
        raise InvalidInput(field="layers", value=[pad.name for pad in pads], expected="at most one scratchpad")
    return pads[0] if pads else None


def scratchpad_in_sight(layers: Sequence[Layer]) -> tuple[ScratchpadLayer, int] | None:
    """The scratchpad that these layers show, and how many generations up it is kept: 0 for a session's own."""
    kept = (looked_through(layer) for layer in layers)
    return next(((layer, height) for layer, height in kept if isinstance(layer, ScratchpadLayer)), None)


def _shape(schema: object) -> ScratchpadSchema:
    from inmind.documents.scratchpad.schema import compile_schema  # only a pad that has one needs it

    return compile_schema(schema)


def _told(update: ScratchpadUpdate, *, changed: bool) -> str:
    """What the model is answered with: what was done, and what of its words was not taken, and why."""
    said = [_done(update) if changed else "Nothing to change."]
    if update.filler and update.text is not None:
        said.append(
            "Left as it was, since an empty text is taken for padding. To be rid of it, write what is true now."
        )
    elif update.filler:
        said.append(
            f"Left as they were, since an empty value beside others is taken for padding: {_named(update.filler)}. "
            "To empty a field, send it alone, or name it in delete as well."
        )
    if update.missing:
        said.append(f"Not there, so not removed: {_named(update.missing)}.")
    if update.dropped:
        said.append(f"Not allowed as keys, and dropped: {_named(update.dropped)}.")
    return " ".join(said)


def _stale(update: ScratchpadUpdate, seen: ScratchpadState | None, held: ScratchpadState) -> Revision | None:
    """What the model is told where it would overwrite something that it has never seen; None where it would not."""
    if isinstance(held, str):
        if update.append or not held or seen == held:
            return None
        told = f"You have not seen all of your scratchpad as it is now. It reads:\n{_short(held)}"
        return Revision((), told, stale=True, whole=len(held) <= MOST_SHOWN)
    if not isinstance(seen, Mapping):
        return None
    touched = [*(path for path, _ in leaf_values(update.values)), *update.delete]
    places = dict.fromkeys(_reached(held, path) for path in touched)
    changed = {
        path: value_at(held, path) for path in places if not json_equal(value_at(seen, path), value_at(held, path))
    }
    if not changed:
        return None
    shown = [f"{format_path(path)} is now {to_json(value)}" for path, value in changed.items() if value is not ABSENT]
    gone = [f"{format_path(path)} is gone" for path, value in changed.items() if value is ABSENT]
    return Revision((), f"Changed since you last saw it: {_short('; '.join([*shown, *gone]))}.", stale=True)


def _reached(state: Mapping[str, Any], path: Sequence[str]) -> tuple[str, ...]:
    """As far as a path leads through objects: what stands there is what a value at its end would replace."""
    ends = (length for length in range(1, len(path)) if not is_object(value_at(state, path[:length])))
    return tuple(path[: next(ends, len(path))])


def _named(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - MOST_NAMED} more" if len(paths) > MOST_NAMED else ""
    return ", ".join(paths[:MOST_NAMED]) + more


def _short(text: str) -> str:
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}… (memory_read {SCRATCHPAD} shows the rest)"


def _done(update: ScratchpadUpdate) -> str:
    if update.text is not None:
        return "Added." if update.append else "Written."
    gone = [format_path(path) for path in update.delete if path[:1] != path or path[0] not in update.values]
    done = [f"Updated: {', '.join(format_path([key]) for key in update.values)}." if update.values else ""]
    done += [f"Removed: {', '.join(gone)}." if gone else ""]
    return " ".join(filter(None, done))
