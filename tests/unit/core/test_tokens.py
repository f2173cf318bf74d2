"""Token estimates without a tokenizer, calibrated by reported usage."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inmind.core.tokens import Calibration, estimator

ENGLISH = (
    "When the tests pass on a fresh clone, the change is merged and everybody who works on the page sees it at the "
    "next build. Nobody has to remember which branch was the newest, because the journal says so. If a reviewer asks "
    "for another answer, the old one stays where it was and can be looked at later."
)
CHINESE = (
    "测试在全新的克隆上通过之后，修改就会被合并，所有参与这个页面的人都会在下一次构建时看到它。没有人需要记住哪个分支最新，"
    "因为日志里写得清清楚楚。如果审阅者要求换一个答案，旧的答案仍然保留在原处，以后可以随时查看。"
)
JSON = (
    '{"order_id":"#W2378156","user_id":"yusuf_rossi_9620","status":"delivered","items":[{"name":"Mechanical Keyboard",'
    '"item_id":"1151293680","price":272.33,"options":{"switch type":"linear","backlight":"RGB","size":"full size"}},'
    '{"name":"Smart Thermostat","item_id":"4983901480","price":262.47,"options":{"compatibility":"Apple HomeKit",'
    '"color":"black"}}]}'
)
CODE = (
    'def allocate(wishes, room):\n    """Minimums first, the rest by headroom."""\n'
    "    floors = [wish.floor for wish in wishes]\n    if sum(floors) >= room:\n        return share(floors, room)\n"
    "    headroom = [wish.need - wish.floor for wish in wishes]\n    extra = share(headroom, room - sum(floors))\n"
    "    return [floor + more for floor, more in zip(floors, extra)]\n"
)


@pytest.mark.spec("D6")
@pytest.mark.parametrize(("text", "counted"), [(ENGLISH, 65), (CHINESE, 76), (JSON, 101), (CODE, 96)])
def test_an_estimate_is_near_the_count_of_the_tokenizer(text: str, counted: int) -> None:
    """`make bench` holds whole corpora to 15% against the real tokenizers."""
    assert estimator()(text) == pytest.approx(counted, rel=0.15)


@given(st.text())
def test_longer_text_does_not_count_fewer_tokens(text: str) -> None:
    count = estimator()
    assert count(text) >= 0
    assert count(text + "x") >= count(text)


def test_the_first_report_sets_the_factor_and_later_ones_move_it() -> None:
    learned = Calibration().learn(counted=100, reported=120)
    assert learned.correct(1_000) == 1_200
    assert learned.learn(counted=100, reported=100).factor == pytest.approx(1.16)


def test_an_implausible_report_changes_nothing() -> None:
    for reported in (0, 3, 10_000):
        assert Calibration().learn(counted=100, reported=reported) == Calibration()


def test_a_factor_below_one_is_used_for_hard_limits_only_after_several_reports() -> None:
    learned = Calibration()
    for _ in range(3):
        assert learned.cautious == 1.0
        learned = learned.learn(counted=100, reported=80)
    assert learned.cautious == pytest.approx(0.8)


@given(true=st.floats(0.5, 2.0), sizes=st.lists(st.integers(200, 100_000), min_size=30, max_size=30))
def test_steady_reports_converge_to_the_true_count(true: float, sizes: list[int]) -> None:
    learned = Calibration()
    for size in sizes:
        learned = learned.learn(counted=size, reported=round(size * true))
    assert learned.factor == pytest.approx(true, rel=0.02)
