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
from inmind.prompt.layers.base import Budget, Layer, LayerContext, LayerText, PlainLayer, Slot, Spawn, unwrap_view

if TYPE_CHECKING:
    from inmind.documents.scratchpad.merge3 import ScratchpadMerge
    from inmind.documents.scratchpad.schema import ScratchpadSchema

DEFAULT_NAME = "working-memory"
SCRATCHPAD_PATH = "scratchpad"
"""The path under which the model reads all of it."""

DELETE_KEY = "delete"
MAX_SHOWN_CHARACTERS = 4_000
"""Characters of what has changed that an answer shows."""
MAX_NAMED_FIELDS = 20
"""Fields that an answer names; of more it says how many."""
DEFAULT_BUDGET = Budget(min=200, max=1_500)

_NAME_PATTERN = re.compile(r"[a-zA-Z][\w-]{0,49}", re.ASCII)


@frozen
class ScratchpadRevision:
    """What an update comes to: events, none if it changes nothing, and what to tell whoever asked."""

    payloads: tuple[EventPayload, ...]
    message: str
    stale: bool = False
    """It would have overwritten what was never seen; then it changes nothing."""
    is_complete: bool = False
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
        name: str = DEFAULT_NAME,
        slot: int = Slot.SCRATCHPAD,
        budget: Budget = DEFAULT_BUDGET,
    ) -> None:
        if scope not in get_args(Scope):
            raise InvalidInput(field="scope", value=scope, expected=" or ".join(get_args(Scope)))
        if not isinstance(name, str) or not _NAME_PATTERN.fullmatch(name):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(field="name", value=name, expected="letters, digits, - and _, at most 50")
        if not isinstance(read_only, bool):  # pyright: ignore[reportUnnecessaryIsInstance] -- hosts are not all typed
            raise InvalidInput(field="read_only", value=read_only, expected="True or False")
        self.name, self.slot, self.budget, self.read_only = name, slot, budget, read_only
        self.scope: Scope = scope
        self._spawn: Spawn = "fork" if scope == "resource" else "none"
        self.schema: ScratchpadSchema | None = None if schema is None else _compile_schema(schema)
        self._template = self._initial_state(template)
        self._checked_state: tuple[ScratchpadState, str] = ({}, "")
        """The state that was last held against the schema: what was merged fits, and is not asked about again."""
        self._state_size: tuple[ScratchpadState, int] = ({}, 0)
        """The state that an update last led to, and what it takes at most."""
        self._rendered_state: tuple[ScratchpadState, str] = ("", "")
        """The state that was last written out for the model, which asks for it with every prompt."""

    def current_state(self, scratchpads: Scratchpads) -> ScratchpadState:
        """What was saved, else the template, else nothing. What does not fit the schema is as good as nothing."""
        pad = scratchpads.get(self.name)
        if pad is None:
            return self._template
        return {} if self.mismatch_reason(scratchpads) else pad.state

    def mismatch_reason(self, scratchpads: Scratchpads) -> str:
        """Why what was saved does not fit the schema; empty if it does."""
        pad = scratchpads.get(self.name)
        if pad is None or self.schema is None:
            return ""
        judged, why = self._checked_state
        if not json_equal(judged, pad.state):
            why = self.schema.mismatch_reason(pad.state)
            self._checked_state = (pad.state, why)
        return why

    def source(self, stream: str, scratchpads: Scratchpads) -> str:
        """The event that wrote what is held; the beginning of the stream where nobody has."""
        pad = scratchpads.get(self.name)
        return pad.source if pad else f"{stream}#0"

    def read_only_reason(self, scratchpads: Scratchpads) -> str:
        """Why nothing is written here; empty if it is."""
        if self.read_only:
            return "it is read-only here"
        if self.schema is None and not isinstance(self.current_state(scratchpads), str):
            return "it holds an object, and the session was opened without its schema"
        return ""

    def text(self, scratchpads: Scratchpads) -> str:
        return self._render(self.current_state(scratchpads))

    def recall(self, context: LayerContext) -> LayerText | None:
        pads = context.scratchpads[self.scope]
        state = self.current_state(pads)
        text = self._render(state)
        if not text:
            return None
        pad = pads.get(self.name)
        return LayerText(
            text,
            sources=(pad.source,) if pad else (),
            trust=pad.trust if pad else Trust.OPERATOR,
            tag="working_memory",
            shorten=lambda budget, count: render_within(state, budget=budget, count=count, path=SCRATCHPAD_PATH),
        )

    def spawn(self) -> Spawn:
        """What belongs to the resource is copied for a child, what belongs to this conversation is not."""
        return self._spawn

    def for_session(self) -> ScratchpadLayer:
        """The same pad, kept by one session alone: in a child, and where there is nobody whose it could be."""
        return self._copy_with(scope="thread")

    def as_read_only(self) -> ScratchpadLayer:
        return self._copy_with(read_only=True)

    def revise(
        self, scratchpads: Scratchpads, values: object, *, delete: object = (), append: object = False
    ) -> ScratchpadRevision:
        """What a host's update comes to, taken literally."""
        if not isinstance(append, bool):
            raise InvalidInput(field="append", value=append, expected="True or False")
        return self._revise(scratchpads, values, delete, append=append)

    def revise_by_model(
        self, scratchpads: Scratchpads, arguments: Mapping[str, Any], seen: ScratchpadState | None
    ) -> ScratchpadRevision:
        """What a model's call comes to, in which the fields that it merely filled in are told from those it meant.

        `seen`: what it was last shown. What has changed since, by somebody else, is shown to it and not overwritten.
        """
        if isinstance(self.current_state(scratchpads), str):
            text = arguments.get("text", arguments.get("memory", arguments))
            return self._revise(
                scratchpads, text, (), append=parse_bool(arguments, "append"), may_have_filler=True, seen=seen
            )
        key = self.schema.delete_key if self.schema else DELETE_KEY
        values = {name: value for name, value in arguments.items() if name != key}
        return self._revise(scratchpads, values, arguments.get(key), may_have_filler=True, seen=seen)

    def revise_by_child(self, scratchpads: Scratchpads, merge: ScratchpadMerge) -> tuple[EventPayload, ...]:
        """What a child brings home, which must fit the schema together with what is here."""
        if merge.text is not None:
            return self._revise(scratchpads, merge.text, ()).payloads
        if merge.values or merge.delete:
            return self._revise(scratchpads, merge.values, merge.delete, allow_removals=True).payloads
        return ()

    def _revise(
        self,
        scratchpads: Scratchpads,
        values: object,
        delete: object,
        *,
        append: bool = False,
        may_have_filler: bool = False,
        allow_removals: bool = False,
        seen: ScratchpadState | None = None,
    ) -> ScratchpadRevision:
        """`judged`: whatever is removed was rightly removed elsewhere."""
        if reason := self.read_only_reason(scratchpads):
            raise ReadOnly(place=f"the scratchpad {self.name}", reason=reason)
        current, mismatch = self.current_state(scratchpads), self.mismatch_reason(scratchpads)
        if isinstance(current, str):
            if delete:
                raise InvalidInput(field="delete", value=delete, expected="nothing, since this scratchpad holds text")
            update = plan_text_update(current, values, append=append, may_have_filler=may_have_filler)
        else:
            if append:
                raise InvalidInput(
                    field="append", value=append, expected="False, since this scratchpad holds an object"
                )
            sized, size = self._state_size
            update = plan_object_update(
                current,
                values,
                delete,
                may_have_filler=may_have_filler,
                size=size if json_equal(sized, current) else MAX_DOCUMENT_BYTES,
            )
            if update.changed:
                self._check(update.state, {} if allow_removals else current, update.delete)
                self._state_size = (update.state, update.size)
            if self.schema is not None:
                self.schema.check_known_fields(update.values)
        if may_have_filler and update.changed and (stale := _stale_revision(update, seen, current)):
            return stale
        whole = update.text is not None and not update.append
        if not update.changed:
            return ScratchpadRevision((), _result_message(update, changed=False))
        first: tuple[EventPayload, ...] = ()
        if mismatch:
            first = (ScratchpadSetAside(self.name, mismatch),)
        elif scratchpads.get(self.name) is None and current:
            first = (ScratchpadStarted(self.name, current),)
        return ScratchpadRevision(
            (*first, update.event(self.name)), _result_message(update, changed=True), is_complete=whole
        )

    def _initial_state(self, template: object) -> ScratchpadState:
        empty: ScratchpadState = "" if self.schema is None else {}
        if template is None:
            return empty
        if self.schema is None:
            return plan_text_update("", template).state
        update = plan_object_update({}, template)
        self.schema.check_known_fields(update.values)
        self._check(update.state, {})
        return update.state

    def _render(self, state: ScratchpadState) -> str:
        shown, text = self._rendered_state
        if shown is not state:
            text = render_state(state)
            self._rendered_state = (state, text)
        return text

    def _check(self, state: ScratchpadState, before: ScratchpadState, delete: Sequence[Sequence[str]] = ()) -> None:
        if self.schema is not None and isinstance(state, Mapping):
            self.schema.check(state, before, [tuple(path) for path in delete])
            self._checked_state = (state, "")

    def _copy_with(self, *, scope: Scope | None = None, read_only: bool | None = None) -> ScratchpadLayer:
        twin = copy(self)
        twin.scope = self.scope if scope is None else scope
        twin.read_only = self.read_only if read_only is None else read_only
        return twin


def parse_bool(arguments: Mapping[str, Any], key: str) -> bool:
    """Whether a model has said yes. Some write it as text; taken for a no, it would overwrite what it was to add to."""
    value = arguments.get(key)
    if isinstance(value, str) and value.lower() in ("true", "false", ""):
        return value.lower() == "true"
    if value is not None and not isinstance(value, bool):
        raise InvalidInput(field=key, value=value, expected="true or false")
    return value is True


def find_scratchpad(layers: Sequence[Layer]) -> ScratchpadLayer | None:
    """The one scratchpad among these layers. With two, the model's one tool would not say which it means."""
    pads = [layer for layer in layers if isinstance(layer, ScratchpadLayer)]
    if len(pads) > 1:
        raise InvalidInput(field="layers", value=[pad.name for pad in pads], expected="at most one scratchpad")
    return pads[0] if pads else None


def find_visible_scratchpad(layers: Sequence[Layer]) -> tuple[ScratchpadLayer, int] | None:
    """The scratchpad that these layers show, and how many generations up it is kept: 0 for a session's own."""
    kept = (unwrap_view(layer) for layer in layers)
    return next(((layer, height) for layer, height in kept if isinstance(layer, ScratchpadLayer)), None)


def _compile_schema(schema: object) -> ScratchpadSchema:
    from inmind.documents.scratchpad.schema import compile_schema  # only a pad that has one needs it

    return compile_schema(schema)


def _result_message(update: ScratchpadUpdate, *, changed: bool) -> str:
    """What the model is answered with: what was done, and what of its words was not taken, and why."""
    sentences = [_describe_update(update) if changed else "Nothing to change."]
    if update.filler and update.text is not None:
        sentences.append(
            "Left as it was, since an empty text is taken for padding. To be rid of it, write what is true now."
        )
    elif update.filler:
        sentences.append(
            f"Left as they were, since an empty value beside others is taken for padding: {_name_fields(update.filler)}. "
            "To empty a field, send it alone, or name it in delete as well."
        )
    if update.missing:
        sentences.append(f"Not there, so not removed: {_name_fields(update.missing)}.")
    if update.dropped:
        sentences.append(f"Not allowed as keys, and dropped: {_name_fields(update.dropped)}.")
    return " ".join(sentences)


def _stale_revision(
    update: ScratchpadUpdate, seen: ScratchpadState | None, current: ScratchpadState
) -> ScratchpadRevision | None:
    """What the model is told where it would overwrite something that it has never seen; None where it would not."""
    if isinstance(current, str):
        if update.append or not current or seen == current:
            return None
        told = f"You have not seen all of your scratchpad as it is now. It reads:\n{_shorten(current)}"
        return ScratchpadRevision((), told, stale=True, is_complete=len(current) <= MAX_SHOWN_CHARACTERS)
    if not isinstance(seen, Mapping):
        return None
    touched = [*(path for path, _ in leaf_values(update.values)), *update.delete]
    places = dict.fromkeys(_replaced_path(current, path) for path in touched)
    changed = {
        path: value_at(current, path)
        for path in places
        if not json_equal(value_at(seen, path), value_at(current, path))
    }
    if not changed:
        return None
    shown = [f"{format_path(path)} is now {to_json(value)}" for path, value in changed.items() if value is not ABSENT]
    gone = [f"{format_path(path)} is gone" for path, value in changed.items() if value is ABSENT]
    return ScratchpadRevision((), f"Changed since you last saw it: {_shorten('; '.join([*shown, *gone]))}.", stale=True)


def _replaced_path(state: Mapping[str, Any], path: Sequence[str]) -> tuple[str, ...]:
    """As far as a path leads through objects: what stands there is what a value at its end would replace."""
    ends = (length for length in range(1, len(path)) if not is_object(value_at(state, path[:length])))
    return tuple(path[: next(ends, len(path))])


def _name_fields(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - MAX_NAMED_FIELDS} more" if len(paths) > MAX_NAMED_FIELDS else ""
    return ", ".join(paths[:MAX_NAMED_FIELDS]) + more


def _shorten(text: str) -> str:
    return (
        text
        if len(text) <= MAX_SHOWN_CHARACTERS
        else f"{text[:MAX_SHOWN_CHARACTERS]}… (memory_read {SCRATCHPAD_PATH} shows the rest)"
    )


def _describe_update(update: ScratchpadUpdate) -> str:
    if update.text is not None:
        return "Added." if update.append else "Written."
    gone = [format_path(path) for path in update.delete if path[:1] != path or path[0] not in update.values]
    done = [f"Updated: {', '.join(format_path([key]) for key in update.values)}." if update.values else ""]
    done += [f"Removed: {', '.join(gone)}." if gone else ""]
    return " ".join(filter(None, done))
