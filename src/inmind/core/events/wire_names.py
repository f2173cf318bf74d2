"""Field names in stored events that differ from the names in the code.

An event is stored as JSON with one key for each field. Renaming a field in the code must not change what is on disk,
so the stored name of a renamed field is listed here, by class.
"""

from __future__ import annotations

from collections.abc import Mapping

STORED_NAMES: Mapping[str, Mapping[str, str]] = {
    "SessionOpened": {"inheritance": "handed"},
    "SessionImported": {"started_at": "began"},
    "MessageAdded": {"from_memory": "ours", "shown_versions": "shown"},
    "Stub": {"message_ranges": "of", "messages": "wires", "is_block": "block"},
    "CompactionUndone": {"compaction_seq": "of"},
    "Retained": {"retain": "kept"},
    "ToolsSet": {"layer_tools": "offered"},
    "ChildMerged": {"taken": "brought", "combined": "joined", "entities": "things", "scratchpad_seq": "pad"},
    "DocumentSetAside": {"saved_as": "kept_as"},
    "OverviewEvent": {"event_type": "what", "subject": "about"},
    "ScratchpadStarted": {"scratchpad": "pad"},
    "ScratchpadWritten": {"scratchpad": "pad"},
    "ScratchpadMerged": {"scratchpad": "pad"},
    "ScratchpadSetAside": {"scratchpad": "pad"},
    "EntitySighting": {"omitted_parts": "more"},
    "EntitiesSeen": {"sightings": "things"},
    "EntitiesEvicted": {"sightings": "things"},
    "EntitiesRestored": {"sightings": "things"},
    "TailChanged": {"new_blocks": "fresh"},
    "PromptPrepared": {"messages_after_tail": "behind", "cache_marks": "marks", "shown_versions": "shown"},
    "CrystalCreated": {"category": "about"},
    "NoteAdded": {"category": "about"},
    "SearchRecorded": {"hits": "found"},
    "Consolidated": {"last_crystal": "upto"},
    "CrystalPinned": {"pinned": "frozen"},
    "DreamStarted": {"lease_until": "until", "proposer": "by"},
    "DreamResumed": {"lease_until": "until", "proposer": "by"},
    "DreamProgressed": {"lease_until": "until", "released": "left"},
    "DreamGathered": {
        "lease_until": "until",
        "last_seq": "upto",
        "journal_position": "position",
        "as_of": "at",
        "user_notes_digest": "typed",
    },
    "DreamAnswered": {"lease_until": "until", "proposer": "by", "truncated": "cut"},
    "DreamProposed": {"lease_until": "until", "proposer": "by", "fallback_reason": "fell_back"},
    "DreamChecked": {"lease_until": "until"},
    "DreamCommitted": {
        "proposer": "by",
        "last_seq": "upto",
        "journal_position": "position",
        "user_lines": "theirs",
        "fallback_reason": "fell_back",
    },
    "DreamFailed": {"proposer": "by"},
    "DreamUndone": {
        "previous_dream": "last",
        "last_seq": "upto",
        "journal_position": "position",
        "user_lines": "theirs",
        "adopted_entries": "seed",
    },
    "AffectSpiked": {"reason": "why", "subject": "about"},
    "TradeRecorded": {"trade_type": "what", "counterparty": "with_whom", "date": "on"},
}
"""Class name, then field name in the code, then key in the stored JSON."""
