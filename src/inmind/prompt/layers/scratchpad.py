"""The scratchpad layer: rendering, and updates by host, model and child sessions.

All updates pass here, so the same rules decide what is accepted, refused and reported.
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
from inmind.documents.document import Scope
from inmind.documents.scratchpad.render import render_state, render_within
from inmind.documents.scratchpad.state import (
    Scratchpads,
    ScratchpadState,
    ScratchpadUpdate,
    json_equal,
    leaf_values,
    plan_object_update,
    plan_text_update,
)
from inmind.documents.scratchpad.values import ABSENT, format_path, is_object, value_at
from inmind.errors import InvalidInput, ReadOnly
from inmind.prompt.layers.base import Budget, Layer, LayerContext, LayerText, PlainLayer, Slot, Spawn, unwrap_view

if TYPE_CHECKING:
    from inmind.documents.scratchpad.schema import ScratchpadSchema
    from inmind.documents.scratchpad.state import ScratchpadMerge

DEFAULT_NAME = "working-memory"
SCRATCHPAD_PATH = "scratchpad"
"""Path under which the model reads the complete scratchpad."""

DELETE_KEY = "delete"
MAX_SHOWN_CHARACTERS = 4_000
"""Characters of changed content in an answer."""
MAX_NAMED_FIELDS = 20
"""Fields named in an answer; more are counted."""
DEFAULT_BUDGET = Budget(min=200, max=1_500)

_NAME_PATTERN = re.compile(r"[a-zA-Z][\w-]{0,49}", re.ASCII)


@frozen
class ScratchpadRevision:
    """Result of an update: payloads to store, if any, and the message for the caller."""

    payloads: tuple[EventPayload, ...]
    message: str
    stale: bool = False
    """The update would overwrite content that the model has not seen; it changes nothing."""
    is_complete: bool = False
    """The complete scratchpad is in the update or in the message."""


class ScratchpadLayer(PlainLayer):
    """The agent's scratchpad: a text, or with a schema an object that always matches it."""

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
        self.schema: ScratchpadSchema | None = None
        if schema is not None:
            from inmind.documents.scratchpad.schema import compile_schema  # only a pad that has one needs it

            self.schema = compile_schema(schema)
        self._template = self._initial_state(template)
        self._checked_state: tuple[ScratchpadState, str] = ({}, "")
        """The last state checked against the schema and the mismatch; a merged state is not checked again."""

    def current_state(self, scratchpads: Scratchpads) -> ScratchpadState:
        """Return the saved state, else the template.

        The result is empty if the saved state does not match the schema.
        """
        pad = scratchpads.get(self.name)
        if pad is None:
            return self._template
        return {} if self.mismatch_reason(scratchpads) else pad.state

    def mismatch_reason(self, scratchpads: Scratchpads) -> str:
        """Return why the saved state does not match the schema; empty if it does."""
        pad = scratchpads.get(self.name)
        if pad is None or self.schema is None:
            return ""
        checked, why = self._checked_state
        if not json_equal(checked, pad.state):
            why = self.schema.mismatch_reason(pad.state)
            self._checked_state = (pad.state, why)
        return why

    def source(self, stream: str, scratchpads: Scratchpads) -> str:
        """Return the event that wrote the current state; event 0 of the stream if there is none."""
        pad = scratchpads.get(self.name)
        return pad.source if pad else f"{stream}#0"

    def read_only_reason(self, scratchpads: Scratchpads) -> str:
        """Return why writing is not possible; empty if it is."""
        if self.read_only:
            return "it is read-only in this session"
        if self.schema is None and not isinstance(self.current_state(scratchpads), str):
            return "it holds an object, but the session was opened without its schema"
        return ""

    def text(self, scratchpads: Scratchpads) -> str:
        return render_state(self.current_state(scratchpads))

    def recall(self, context: LayerContext) -> LayerText | None:
        pads = context.scratchpads[self.scope]
        state = self.current_state(pads)
        text = render_state(state)
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
        """A scratchpad of the resource is copied for a child; one of the session is not."""
        return self._spawn

    def for_session(self) -> ScratchpadLayer:
        """Return the same scratchpad owned by one session.

        It is used for a child session, and for a session without a resource.
        """
        layer = copy(self)
        layer.scope = "thread"
        return layer

    def as_read_only(self) -> ScratchpadLayer:
        layer = copy(self)
        layer.read_only = True
        return layer

    def revise(
        self, scratchpads: Scratchpads, values: object, *, delete: object = (), append: object = False
    ) -> ScratchpadRevision:
        """Apply a host's update, taken literally."""
        if not isinstance(append, bool):
            raise InvalidInput(field="append", value=append, expected="True or False")
        return self._revise(scratchpads, values, delete, append=append)

    def revise_by_model(
        self, scratchpads: Scratchpads, arguments: Mapping[str, Any], seen: ScratchpadState | None
    ) -> ScratchpadRevision:
        """Apply a model's update, ignoring filler values.

        `seen`: the state that the model last saw. Content changed since then by another writer is shown and not
        overwritten.
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
        """Apply the merged changes of a child; the result must match the schema."""
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
        """Check and apply an update.

        `allow_removals`: required fields may be removed, because the child's update was checked.
        """
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
            update = plan_object_update(current, values, delete, may_have_filler=may_have_filler)
            if update.changed:
                self._check(update.state, {} if allow_removals else current, update.delete)
            if self.schema is not None:
                self.schema.check_known_fields(update.values)
        if may_have_filler and update.changed and (stale := _stale_revision(update, seen, current)):
            return stale
        if not update.changed:
            return ScratchpadRevision((), _result_message(update))
        payloads: list[EventPayload] = [update.event(self.name)]
        if mismatch:
            payloads.insert(0, ScratchpadSetAside(self.name, mismatch))
        elif scratchpads.get(self.name) is None and current:
            payloads.insert(0, ScratchpadStarted(self.name, current))
        is_complete = update.text is not None and not update.append
        return ScratchpadRevision(tuple(payloads), _result_message(update), is_complete=is_complete)

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

    def _check(self, state: ScratchpadState, before: ScratchpadState, delete: Sequence[Sequence[str]] = ()) -> None:
        if self.schema is not None and isinstance(state, Mapping):
            self.schema.check(state, before, [tuple(path) for path in delete])
            self._checked_state = (state, "")


def parse_bool(arguments: Mapping[str, Any], key: str) -> bool:
    """Parse a boolean argument of a model.

    Some models send "true" as text, and reading it as false would lose data.
    """
    value = arguments.get(key)
    if isinstance(value, str) and value.lower() in ("true", "false", ""):
        return value.lower() == "true"
    if value is not None and not isinstance(value, bool):
        raise InvalidInput(field=key, value=value, expected="true or false")
    return value is True


def find_scratchpad(layers: Sequence[Layer]) -> ScratchpadLayer | None:
    """Return the only scratchpad among the layers.

    With two, the model's tool would be ambiguous.
    """
    pads = [layer for layer in layers if isinstance(layer, ScratchpadLayer)]
    if len(pads) > 1:
        raise InvalidInput(field="layers", value=[pad.name for pad in pads], expected="at most one scratchpad")
    return pads[0] if pads else None


def find_visible_scratchpad(layers: Sequence[Layer]) -> tuple[ScratchpadLayer, int] | None:
    """Return the visible scratchpad and the number of generations up.

    The number is 0 for a scratchpad of the session itself.
    """
    kept = (unwrap_view(layer) for layer in layers)
    return next(((layer, height) for layer, height in kept if isinstance(layer, ScratchpadLayer)), None)


def _result_message(update: ScratchpadUpdate) -> str:
    """Return the answer to the model: what changed, and what was ignored and why."""
    sentences = [_describe_update(update) if update.changed else "Nothing to change."]
    if update.filler and update.text is not None:
        sentences.append("Not changed: an empty text is treated as filler. To replace the text, write the new one.")
    elif update.filler:
        sentences.append(
            "Not changed, since empty values next to others are treated as filler: "
            f"{_name_fields(update.filler)}. To clear a field, send it alone or also list it in delete."
        )
    if update.missing:
        sentences.append(f"Not found, not removed: {_name_fields(update.missing)}.")
    if update.dropped:
        sentences.append(f"Dropped, not allowed as keys: {_name_fields(update.dropped)}.")
    return " ".join(sentences)


def _stale_revision(
    update: ScratchpadUpdate, seen: ScratchpadState | None, current: ScratchpadState
) -> ScratchpadRevision | None:
    """Return a refusal if the update would overwrite content unseen by the model, else None."""
    if isinstance(current, str):
        if update.append or not current or seen == current:
            return None
        message = f"You have not seen all of the current scratchpad. It is now:\n{_shorten(current)}"
        return ScratchpadRevision((), message, stale=True, is_complete=len(current) <= MAX_SHOWN_CHARACTERS)
    if not isinstance(seen, Mapping):
        return None
    touched = [*(path for path, _ in leaf_values(update.values)), *update.delete]
    paths = dict.fromkeys(_replaced_path(current, path) for path in touched)
    changed = [path for path in paths if not json_equal(value_at(seen, path), value_at(current, path))]
    if not changed:
        return None
    removed = [path for path in changed if value_at(current, path) is ABSENT]
    news = [f"{format_path(path)} is now {to_json(value_at(current, path))}" for path in changed if path not in removed]
    news += [f"{format_path(path)} was removed" for path in removed]
    return ScratchpadRevision((), f"Changed since you last saw it: {_shorten('; '.join(news))}.", stale=True)


def _replaced_path(state: Mapping[str, Any], path: Sequence[str]) -> tuple[str, ...]:
    """Return the prefix of the path that exists: a value at its end would replace that."""
    ends = (length for length in range(1, len(path)) if not is_object(value_at(state, path[:length])))
    return tuple(path[: next(ends, len(path))])


def _name_fields(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - MAX_NAMED_FIELDS} more" if len(paths) > MAX_NAMED_FIELDS else ""
    return ", ".join(paths[:MAX_NAMED_FIELDS]) + more


def _shorten(text: str) -> str:
    if len(text) <= MAX_SHOWN_CHARACTERS:
        return text
    return f"{text[:MAX_SHOWN_CHARACTERS]}… (read {SCRATCHPAD_PATH} for the rest)"


def _describe_update(update: ScratchpadUpdate) -> str:
    if update.text is not None:
        return "Added." if update.append else "Written."
    removed = [format_path(path) for path in update.delete if path[:1] != path or path[0] not in update.values]
    updated = [format_path([key]) for key in update.values]
    lists = {"Updated": updated, "Removed": removed}
    return " ".join(f"{verb}: {', '.join(names)}." for verb, names in lists.items() if names)
