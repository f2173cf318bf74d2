"""A cached final prefix never changes the sent messages."""

from __future__ import annotations

from builders import an_event
from hypothesis import given
from hypothesis import strategies as st
from strategies import anthropic_wires, chat_wires, responses_wires

from inmind.core.events.session import MessageAdded
from inmind.core.messages import FORMATS
from inmind.core.messages.model import ParsedMessage
from inmind.core.messages.pairing import to_provider_list
from inmind.history.history import Conversation
from inmind.history.view import ViewBuilder

MESSAGES = st.one_of(
    st.tuples(st.just("openai"), chat_wires()),
    st.tuples(st.just("openai"), chat_wires()),
    st.tuples(st.just("anthropic"), anthropic_wires()),
    st.tuples(st.just("responses"), responses_wires()),
)


@given(st.sampled_from(sorted(FORMATS)), st.lists(st.lists(MESSAGES, max_size=4), max_size=6), st.integers(0, 5))
def test_a_cached_view_equals_a_fresh_one(
    format: str, calls: list[list[tuple[str, dict[str, object]]]], of_one_format: int
) -> None:
    """D7: with open calls, late results and repeated ids, in one format or mixed."""
    view, line, parsed, seq = ViewBuilder(), Conversation(), list[ParsedMessage](), 0
    for messages in calls:
        for name, wire in messages:
            if of_one_format and name != format:
                continue
            seq += 1
            line = line.apply(an_event(MessageAdded(wire=wire, format=name), seq))
            parsed.append(ParsedMessage(name, wire, FORMATS[name].read(wire)))
        whole = to_provider_list(parsed, FORMATS[format])
        sent = [FORMATS[format].strip_local_fields(wire) for wire in whole.wires]
        seen = view.build(line, format)
        assert seen.wires == sent
        assert seen.prefix_digests == ViewBuilder().build(line, format).prefix_digests
