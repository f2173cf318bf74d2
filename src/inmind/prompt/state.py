"""State of the prompt: the last sent prompt, the anchor, and token usage.

It is the fold of the prompt events. Together with the conversation it determines a prompt completely, so any past
prompt can be rebuilt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime
from functools import lru_cache
from typing import Any

from inmind.core.encoding import digest, digest_of
from inmind.core.events.base import Event
from inmind.core.events.session import (
    AnchoredBlock,
    AnchorMoved,
    Compacted,
    CompactionUndone,
    HistorySpliced,
    PromptPrepared,
    SystemSet,
    TailChanged,
    ToolsSet,
    UsageReported,
    WordingSet,
)
from inmind.core.frozen import frozen
from inmind.core.messages import FORMATS
from inmind.core.tokens import Calibration, Usage
from inmind.prompt.anchor import Anchor, MemoryChanges

System = str | Sequence[Mapping[str, Any]] | None
Tools = Sequence[Mapping[str, Any]] | None


@frozen
class LastPrompt:
    """The part of the last prompt with which the next one can share a prefix."""

    prefix_digests: tuple[str, ...] = ()
    """Digests of the parts before the history, in order."""
    message_count: int = 0
    """Leading messages of the conversation that were in it and are unchanged."""
    counted_tokens: int = 0
    """Size by our count, which the provider's usage report corrects. 0 in a thread: the report counts all of it."""
    thread: str = ""
    """The thread that it continued."""


@frozen
class PromptState:
    """The fold of all prompt events of a session."""

    system: System = None
    system_format: str = ""
    system_digest: str = ""
    tools: Tools = None
    """Tools of the host."""
    layer_tools: Sequence[Mapping[str, Any]] = ()
    """Tools of layers, placed after those of the host."""
    tools_digest: str = ""
    sources: Mapping[str, str] = field(default_factory=dict[str, str])
    """Ids of the events that set system prompt, tools and guide."""
    wording: Mapping[str, str] = field(default_factory=dict[str, str])
    anchor: Anchor | None = None
    changes: tuple[MemoryChanges, ...] = ()
    """Changes since the anchor, in the order of the messages that carry them."""
    known_blocks: tuple[AnchoredBlock, ...] = ()
    """The blocks as the model knows them: those of the anchor, with all changes."""
    earlier_blocks: tuple[AnchoredBlock, ...] | None = None
    """The same without the last change, in case its message is edited; None if that is not known."""
    tail: str = ""
    """Changes at the end of each prompt, as older versions sent them."""
    new_blocks: tuple[AnchoredBlock, ...] = ()
    """New blocks at the end of each prompt, as older versions sent them."""
    tail_sources: tuple[str, ...] = ()
    tail_tokens_since_anchor: int = 0
    """Sum of the changes in all prompts since the anchor was set."""
    spliced: bool = False
    """Messages were removed from the conversation since the anchor was set."""
    compacted: bool = False
    """Messages were compacted or restored since then, so the history is written to the cache again anyway."""
    calls: int = 0
    last_call_at: datetime | None = None
    last_prompt: LastPrompt = field(default_factory=LastPrompt)
    token_usage: Usage = field(default_factory=Usage)
    usage: UsageReported | None = None
    """The last usage report of the provider."""
    calibration: Calibration = field(default_factory=Calibration)

    @property
    def all_tools(self) -> list[Mapping[str, Any]] | None:
        return [*(self.tools or ()), *self.layer_tools] or None

    @property
    def blocks(self) -> tuple[AnchoredBlock, ...]:
        return self.anchor.blocks if self.anchor else ()

    @property
    def format(self) -> str:
        """Format of the last prompt; empty before the first."""
        return self.last_prompt.prefix_digests[0].partition(":")[0] if self.last_prompt.prefix_digests else ""

    def system_in(self, format: str) -> System:
        """The host's system prompt as given; as plain text in another provider's format."""
        if self.system_format in ("", format):
            return self.system
        return FORMATS[self.system_format].system_text(self.system) or None

    @property
    def change_sources(self) -> tuple[str, ...]:
        """Ids of the events that the changes since the anchor come from."""
        return (*self.tail_sources, *(source for one in self.changes for source in one.sources))

    def prefix_digests(self, format: str) -> tuple[str, ...]:
        """Digests of the parts before the history, in the order in which providers cache them."""
        blocks = (f"{block.layer}:{_text_digest(block.banner + block.text)}" for block in self.blocks)
        return (f"{format}:{self.tools_digest}", self.system_digest, _text_digest(self.wording["guide"]), *blocks)

    def apply(self, event: Event, *, message_count: int, common_length: int | None = None) -> PromptState:
        """Return the state after an event.

        `message_count`: sent messages. `common_length`: leading messages unchanged by a rewrite; None if all are.
        """
        if common_length is not None:
            return self._after_rewrite(event, common_length)
        match event.payload:
            case PromptPrepared() as payload:
                return self._after_prompt(payload, event, message_count)
            case SystemSet(system=system, format=format):
                name, sources = digest_of([format, system]), {**self.sources, "system": event.id}
                return replace(self, system=system, system_format=format, system_digest=name, sources=sources)
            case ToolsSet(tools=tools, layer_tools=layer_tools):
                name, sources = digest_of([tools, layer_tools]), {**self.sources, "tools": event.id}
                return replace(self, tools=tools, layer_tools=layer_tools, tools_digest=name, sources=sources)
            case WordingSet(wording=wording):
                return replace(self, wording=wording, sources={**self.sources, "guide": event.id})
            case AnchorMoved() as payload:
                anchor = Anchor(blocks=payload.blocks, reason=payload.reason, seq=event.seq, call=self.calls + 1)
                return replace(self.with_anchor(anchor), tail_tokens_since_anchor=0, spliced=False, compacted=False)
            case TailChanged(place=None) as payload:
                return replace(self, tail=payload.text, new_blocks=payload.new_blocks, tail_sources=event.sources)
            case TailChanged() as payload:
                return self.with_changes(payload, event.sources)
            case UsageReported() as payload:
                return self._after_usage_report(payload)
            case _:
                return self

    def with_anchor(self, anchor: Anchor) -> PromptState:
        """Return the state with other blocks in the prefix, and no changes of them."""
        unchanged = replace(self, anchor=anchor, changes=(), known_blocks=anchor.blocks, earlier_blocks=None)
        return replace(unchanged, tail="", new_blocks=(), tail_sources=())

    def with_changes(self, payload: TailChanged, sources: tuple[str, ...]) -> PromptState:
        """Return the state after changes were added, without those whose message is gone."""
        place, kept = payload.place or 0, self.changes[: payload.kept]
        known = self.known_blocks if len(kept) == len(self.changes) else self.earlier_blocks or self.blocks
        current = replace(self, tail="", new_blocks=(), tail_sources=())
        if not payload.text and not payload.new_blocks:
            return replace(current, changes=kept, known_blocks=known, earlier_blocks=None)
        added = MemoryChanges(place, payload.view_digest, payload.text, payload.new_blocks, sources)
        now = {block.layer: block for block in (*known, *payload.changed_blocks, *payload.new_blocks)}
        return replace(current, changes=(*kept, added), known_blocks=tuple(now.values()), earlier_blocks=known)

    def revert_to_past(self, present: PromptState, common_length: int) -> PromptState:
        """Return this past state for use after an undo.

        Prompt content reverts. Call count, usage and calibration keep their current values.
        """
        last_prompt = replace(present.last_prompt, message_count=min(present.last_prompt.message_count, common_length))
        return replace(
            self,
            calls=present.calls,
            last_call_at=present.last_call_at,
            last_prompt=last_prompt,
            token_usage=present.token_usage,
            usage=present.usage,
            calibration=present.calibration,
        )

    def _after_rewrite(self, event: Event, common_length: int) -> PromptState:
        """Return the state after messages were removed, inserted or replaced by stubs."""
        payload = event.payload
        last_prompt = replace(self.last_prompt, message_count=min(self.last_prompt.message_count, common_length))
        if isinstance(payload, Compacted) and payload.is_thread:  # the provider has the changes with their messages
            return replace(self, last_prompt=last_prompt, changes=(), earlier_blocks=None)
        removed = isinstance(payload, Compacted) or (
            isinstance(payload, HistorySpliced) and payload.stop > payload.start
        )
        compacted = self.compacted or isinstance(payload, Compacted | CompactionUndone)
        return replace(self, last_prompt=last_prompt, spliced=self.spliced or removed, compacted=compacted)

    def _after_prompt(self, prepared: PromptPrepared, event: Event, messages: int) -> PromptState:
        correct = self.calibration.correct
        token_usage = replace(
            self.token_usage,
            calls=self.token_usage.calls + 1,
            cached=self.token_usage.cached + correct(prepared.cached),
            written=self.token_usage.written + correct(prepared.written),
            uncached=self.token_usage.uncached + correct(prepared.uncached),
        )
        last_prompt = LastPrompt(
            prefix_digests=self.prefix_digests(prepared.format),
            message_count=messages - prepared.messages_after_tail,
            counted_tokens=0 if prepared.thread else prepared.used,
            thread=prepared.thread,
        )
        return replace(
            self,
            calls=self.calls + 1,
            last_call_at=event.at,
            last_prompt=last_prompt,
            token_usage=token_usage,
            tail_tokens_since_anchor=self.tail_tokens_since_anchor + prepared.changes,
        )

    def _after_usage_report(self, report: UsageReported) -> PromptState:
        """Return the state after a usage report; a second report for a call replaces the first."""
        first = self.usage if self.usage is not None and self.usage.call == report.call else None
        if first == report:
            return self
        token_usage = self.token_usage if first is None else self.token_usage.with_usage(first, times=-1)
        calibration = self.calibration.learn(counted=report.counted, reported=report.prompt_tokens)
        return replace(self, token_usage=token_usage.with_usage(report), usage=report, calibration=calibration)


@lru_cache(maxsize=256)
def _text_digest(text: str) -> str:
    return digest(text)
