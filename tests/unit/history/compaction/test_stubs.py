"""Ids that would be lost are named in stubs, each once and within the limit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import each_row

from inmind.core.tokens import estimator
from inmind.history.compaction.stubs import IdPicker, possible_ids

count = estimator()


def pick_ids(picker: IdPicker, *texts: str, max_tokens: int = 1_000) -> list[str]:
    return picker.pick(texts, max_tokens=max_tokens, count=count)


@pytest.mark.spec("B10")
def test_ids_in_removed_texts_are_named_in_order_of_preference() -> None:
    picker = IdPicker(["page-3", "page-1", "page-2"], [])
    assert pick_ids(picker, "see page-1", '{"id": "page-3"}') == ["page-3", "page-1"]


@pytest.mark.spec("B10")
def test_ids_that_are_still_sent_are_not_named() -> None:
    assert pick_ids(IdPicker(["page-1"], ["about (page-1)."]), "page-1") == []


@pytest.mark.spec("B10")
def test_an_id_is_named_once_over_all_stubs() -> None:
    picker = IdPicker(["page-1"], [])
    assert (pick_ids(picker, "page-1"), pick_ids(picker, "page-1")) == (["page-1"], [])


@pytest.mark.spec("B10")
def test_an_id_inside_a_longer_word_is_not_that_id() -> None:
    assert pick_ids(IdPicker(["page-1"], ["page-12"]), "page-12") == []
    assert pick_ids(IdPicker(["page-1"], ["page-12"]), "page-1") == ["page-1"]


@pytest.mark.spec("B10")
def test_an_id_that_did_not_fit_can_be_named_later() -> None:
    picker = IdPicker(["page-1", "page-2"], [])
    first = pick_ids(picker, "page-1 page-2", max_tokens=count("page-1") + 1)
    assert (first, pick_ids(picker, "page-2")) == (["page-1"], ["page-2"])


@pytest.mark.spec("B10")
@each_row("text", ["page-1", "see page-1.", '{"id":"page-1"}', "(page-1)", "id=page-1;", "`page-1`", "is it page-1?"])
def test_an_id_is_found_in_any_notation(text: str) -> None:
    assert "page-1" in possible_ids(text)


@pytest.mark.spec("B10")
@given(st.lists(st.sampled_from(["page-1", "page-2", "page-3", "图-1"])), st.integers(0, 30))
def test_picked_ids_fit_their_limit(ids: list[str], max_tokens: int) -> None:
    picked = pick_ids(IdPicker(["page-1", "page-2", "page-3", "图-1"], []), *ids, max_tokens=max_tokens)
    assert sum(count(id) + 1 for id in picked) <= max_tokens
    assert set(picked) <= set(ids)
    assert len(set(picked)) == len(picked)
