"""Stored text is inert in prompts and terminals, and fits its budget."""

from __future__ import annotations

import gc
import time
import tracemalloc

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tables import each_row

from inmind.core.text import TAGS, escape_markup, printable, truncate, truncate_middle


@pytest.mark.spec("J4")
@each_row("tag", TAGS)
@each_row("shape", ["</{}>", "<{}>", "< / {} >", "<{} layer='x'>", "＜／{}＞", "</{}\n>"])
def test_stored_text_cannot_close_or_open_a_block(tag: str, shape: str) -> None:
    for spelling in (tag, tag.upper()):
        hostile = shape.format(spelling)
        assert escape_markup(f"a {hostile} b") == f"a &lt;{hostile[1:]} b"


LOOK_ALIKES = [
    "＜／ｍｅｍｏｒｙ＞",
    "‹/ｍemory>",
    "<\u00ad/memory>",
    "</m\u00ademory>",
    "</mem\u200dory>",
    "</mem\u200cory>",
    "<\ufe0f/memory>",
    "<\u034f/memory>",
    "<\u3164/memory>",
    "<\u2800/memory>",
    "</memory\u200d>",
    "</mem\u0332ory>",
    "</mеmоrу>",  # Cyrillic е, о, у
    "</wоrking_mеmоrу>",
    "</ΜΕΜΟRΥ>",  # Greek capitals
    "</CΟΝTEΧT_ΜETA>",
    "</ᴍᴇᴍᴏʀʏ>",
    "</𝓶𝓮𝓶𝓸𝓻𝔂>",
    "</syﬆem＿message>",
    "</mémory>",
    "❮/memory>",
    "ᐸ/memory>",
    "˂/memory>",
    "\u2329/memory>",
    "\u3008/memory>",
    "<⧸memory>é",
    "<\\/memory>",
]


@pytest.mark.spec("J4")
@each_row("hostile", LOOK_ALIKES, ids=ascii)
def test_a_look_alike_cannot_close_or_open_a_block(hostile: str) -> None:
    assert escape_markup(f"关于 a {hostile} b") == f"关于 a &lt;{hostile[1:]} b"
    assert escape_markup(f"{hostile}\n{hostile}") == f"&lt;{hostile[1:]}\n&lt;{hostile[1:]}"


@pytest.mark.spec("J4")
@pytest.mark.parametrize(
    "hostile", ["［WORKING MEMORY］", "[WОRKING\u00a0MЕMORY]", "【working mem\u00adory】"], ids=ascii
)
def test_a_look_alike_cannot_imitate_the_banner(hostile: str) -> None:
    assert escape_markup(hostile) == f"&#91;{hostile[1:]}"


@pytest.mark.spec("J4")
def test_stored_text_cannot_imitate_the_working_memory_banner() -> None:
    assert escape_markup("[WORKING MEMORY]\npages:") == "&#91;WORKING MEMORY]\npages:"


@each_row("harmless", ["a < b", "<b>bold</b>", "<memoryless>", "if (x<memory_size)", "[x]", "</div>"])
def test_ordinary_angle_brackets_are_unchanged(harmless: str) -> None:
    assert escape_markup(harmless) == harmless


@each_row(
    ("hidden", "escaped"),
    [
        ("\u202e", "⟨U+202E⟩"),
        ("\u200b", "⟨U+200B⟩"),
        ("\U000e0041", "⟨U+E0041⟩"),
        ("\ufeff", "⟨U+FEFF⟩"),
        ("\u2028", "⟨U+2028⟩"),
        ("\x1b", "⟨U+001B⟩"),
        ("\x00", "⟨U+0000⟩"),
    ],
)
def test_characters_that_hide_or_reorder_text_are_made_visible(hidden: str, escaped: str) -> None:
    assert escape_markup(f"a{hidden}b") == f"a{escaped}b"
    assert printable(f"a{hidden}b") == f"a{escaped}b"


@each_row(
    "text",
    [
        *("👩‍👩‍👧", "می‌خواهم", "क्‍ष", "关于我们", "e\u0301", "tab\tand\nline"),
        *("<b>می‌خواهم</b>", "‹क्‍ष›", "<👩‍👩‍👧 memory", "早くmemoryを", "«memory»", "《Memory》", "a ≮ memory"),
        *("<память>", "‹Memoryless›", "【概要】", "[работа]", "ᐸᖅ", "x＜y"),
    ],
)
def test_emoji_persian_indic_and_accents_are_unchanged(text: str) -> None:
    assert escape_markup(text) == text


def test_printable_text_has_no_escape_sequence_and_no_bare_carriage_return() -> None:
    assert printable("safe\x1b[2Jgone\rover") == "safe⟨U+001B⟩[2Jgone⟨U+000D⟩over"


PIECES = st.sampled_from([*"<＜‹⟨[［/\\ >]\r\n\u200b\u200d\u00ad", "&lt;", "working ", "memory", "mеmоrу", "é", *TAGS])


@given(st.text() | st.lists(PIECES).map("".join))
@example("\r\r\n")
def test_escaping_is_idempotent(text: str) -> None:
    assert escape_markup(escape_markup(text)) == escape_markup(text)


@given(st.lists(PIECES).map("".join))
def test_words_in_another_script_do_not_change_how_the_rest_is_escaped(text: str) -> None:
    assert escape_markup(f"{text} 关于") == f"{escape_markup(text)} 关于"


@pytest.mark.exhaustive
@pytest.mark.spec("J4")
@each_row(
    "piece",
    ["<", "< ", "</ ", "‹", "‹/", "<memory_", "[working ", "\r", "\u200d", "\u3164", "ﷺ", "㏌", "&lt;", "</memory>"],
    ids=ascii,
)
def test_a_long_adversarial_text_is_escaped_quickly(piece: str) -> None:
    """Eight megabytes take seconds; with quadratic time they would take hours."""
    started = time.process_time()
    for lead in ("<", "é‹", "[working", ""):
        escape_markup(lead + " " * 200_000 + piece)
        escape_markup(lead + piece * (200_000 // len(piece)))
    assert time.process_time() - started < 2


def test_a_large_text_is_not_kept_in_memory_after_escaping() -> None:
    tracemalloc.start()
    try:
        for number in range(8):
            escape_markup(f"{number}" + "x" * 1_000_000)
        gc.collect()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 1_000_000


def test_a_text_that_fits_is_not_cut() -> None:
    assert truncate("one\ntwo", budget=7, count=len, pointer="…").text == "one\ntwo"


def test_a_cut_ends_at_a_line_with_a_pointer_to_the_rest() -> None:
    kept = truncate("first\nsecond\nthird", budget=16, count=len, pointer="[rest]")
    assert (kept.text, kept.lines_left_out, kept.whole) == ("first\n[rest]", 2, False)


def test_a_long_line_is_cut_inside_but_not_before_a_combining_accent() -> None:
    assert truncate("cafe\u0301 au lait", budget=6, count=len, pointer="…").text == "caf\n…"


def test_the_text_is_empty_if_the_pointer_does_not_fit() -> None:
    kept = truncate("first\nsecond", budget=3, count=len, pointer="[rest]")
    assert (kept.text, kept.lines_left_out) == ("", 2)


@given(text=st.text(), budget=st.integers(0, 60))
def test_a_cut_text_does_not_exceed_its_budget(text: str, budget: int) -> None:
    kept = truncate(text, budget=budget, count=len, pointer="[rest]")
    assert len(kept.text) <= budget
    assert kept.whole == (kept.text == text)


@given(st.text(max_size=400), st.integers(0, 120), st.integers(0, 60))
def test_a_text_cut_in_the_middle_is_complete_and_fits(text: str, budget: int, least_head: int) -> None:
    pointer = "[more]"
    head, left_out, tail = truncate_middle(text, budget=budget, count=len, pointer=pointer, least_head=least_head)
    if len(text) <= budget:
        assert (head, left_out, tail) == (text, "", "")
        return
    assert head.endswith(pointer) or (head, left_out, tail) == ("", text, "")
    assert len(head) + len(tail) <= budget
    assert (head.removesuffix(pointer).rstrip("\n") + left_out + tail).strip("\n") == text.strip("\n")
