"""The cue check skips only patterns that cannot match."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import each_row

from inmind.core.language.rules import ALL_PATTERNS, patterns_for

# One short sentence for each form of a rule, so that a missing cue is not compensated by another word.
SENTENCES = """
never run it|always run it|do not run it|don't run it|dont run it|make sure it runs|be certain it runs|ensure it runs
avoid it|try to minimize it|try not to|prefer tabs|refrain from it|under no circumstances|stick to tabs|stop asking
quit asking|only run it|be brief|be concise|be terse|remember to run|keep in mind|in future, run|no longer than|max 3
at most 3|no tabs|nothing after|keep it short|leave it alone|if we run, use it|when a user runs, use it
for each run use it|ask me before
show me before running anything|reply in French|answer in French|cite every line|use it throughout
use it everywhere|you can't run|you cannot run|use it unless it runs|so never use it|prices must be|prices should be
the price has to be low|each price must be|you must run|you shall run|you may not run|you shouldn't run|it is forbidden
it is off-limits|it is banned|it is not permitted|you're not allowed|i prefer tabs|my preference is|i'd rather run
i need all|i want you to stop|i don't want any tabs|i can't accept|i won't eat|from now on|from tomorrow on|henceforth
at all times|no exceptions|let's not|we never run|our policy is|our convention is|i hate it when you|i'm vegan
i'm vegetarian|i'm diabetic|he is allergic to it|i am lactose intolerant|i have an allergy|i have allergies
my budget is $5|pay up to $5|spend more than $5|stay under $5|use it instead|go with it|decision: run|agreed, run
scrap the run|postpone the run|forget about the run|option 2|plan b|let's use it|lets use it|we decided to|i chose
we settled on|i opted for|i'll stick to|we're sticking with|i'm staying with|we're switching to|we'll use tabs
i'll use tabs|i'm going with it|we have chosen|whenever i run, use it|respond in French|speak in French|maximum 3
you may only run|it is prohibited|it is non-negotiable|you're never to|i'm celiac|keep it under $5
the deadline is friday|it's due friday|i will take tabs|made up my mind|so it is, as agreed|so it is, as settled
let's decide on tabs|i have decided: tabs
decided: run|if it fails, tell me|in case it fails, tell me|halt if it fails|pause whenever it fails
abort in case it fails|everything in French|i need answers in French|i want replies in French|i want responses in French
i need the output in csv|ignore the rule|disregard the rule|forget the rule
never mind what i said|drop the rule about it|lift the ban on it|revoke the ban on it|withdraw the ban on it
截止周五|今后|以后都|接下来都用|请用中文回答|不要跑|别跑|不能跑|切勿|严禁|不得跑|除非|必须
务必|一律|始终|记住|每次都|凡是|只能|最多|不超过|所有都要|删除前先问|一旦跑就停|语气正式|注释写英文|我更喜欢|不接受|我吃素|我不吃肉
我过敏|预算五千|决定用|就用它吧|敲定|改用|先用|我选它|那就跑|还是用
""".replace("\n", "|").strip("|")


@pytest.mark.spec("E8")
@each_row("sentence", SENTENCES.lower().split("|"))
def test_each_pattern_is_selected_by_its_cue(sentence: str) -> None:
    assert any(forms.match_end(sentence) is not None for forms in patterns_for(sentence))


@pytest.mark.spec("E8")
@given(st.lists(st.sampled_from(SENTENCES.lower().split("|")), max_size=3).map(", ".join))
def test_no_pattern_matches_a_sentence_without_its_cues(sentence: str) -> None:
    candidates = patterns_for(sentence)
    assert [forms for forms in ALL_PATTERNS if forms not in candidates and forms.match_end(sentence) is not None] == []


@pytest.mark.spec("E8")
def test_a_text_without_cues_is_matched_against_nothing() -> None:
    assert patterns_for("Cancel the order W100, please.") == []
    assert patterns_for("请取消订单。") == []
