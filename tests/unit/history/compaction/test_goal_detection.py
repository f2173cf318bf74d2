"""A message that turns to something else starts a new task; the next step of a task does not."""

from __future__ import annotations

from time import perf_counter

import pytest
from tables import each_row

from inmind.history.compaction.detection import find_choices, find_goals, find_proposals, find_rules, is_filler
from inmind.history.compaction.retention import extract_items
from inmind.history.compaction.summary import summary_points
from inmind.history.turns import TurnMessage

GOAL = "Build the importer for the shop of our customer, with a page for its tax rates."
GOAL_IN_CHINESE = "帮我写一个商店的导入程序，要支持税率。"


def goals(goal: str, request: str, *, reply: str = "Done, it works.") -> list[str]:
    conversation = [
        TurnMessage(seq=1, speaker="user", text=goal),
        TurnMessage(seq=2, speaker="assistant", text=reply),
        TurnMessage(seq=3, speaker="user", text=request),
    ]
    return [item.text for item in extract_items(conversation, first=True) if item.kind == "goal"]


NEW_TASKS = [
    "Now write the changelog.",
    "Great, thanks! Now write the changelog. It should list every release.",
    "Now please book a hotel in Rome instead",
    "Now plan a trip to Rome for my parents.",
    "Something else: can you look at my invoice",
    "Something else: can you look at my invoice?",
    "Next, please fix the login bug",
    "Next, can you draft a mail to Ann?",
    "Next up: prepare the slides for Monday.",
    "Another thing: please book me a table at Luigi's.",
    "One more thing, I need you to find a dentist in Oslo.",
    "On to the next: write a poem for my grandmother.",
    "Forget that, let's plan the holidays.",
    "Never mind, let's write the press release.",
    "Different topic: could you explain photosynthesis?",
    "Different topic: I am looking for a new car.",
    "Let's change the subject: what do whales eat?",
    "Great. Now can you help me find some cool Dubstep songs?",
    "Ok, now help me with my cover letter for Acme.",
]
NEW_TASKS_IN_CHINESE = [
    "接下来请写更新日志。",
    "接下来，帮我订一家罗马的酒店。",
    "另外一件事：帮我看看我的发票。",
    "还有一件事，请准备周一的会议。",
    "换个话题：鲸鱼吃什么？",
    "换个话题，聊聊旅行。",
    "现在请写一首关于奶奶的诗。",
    "好的，谢谢。现在帮我安排去上海的行程。",
    "算了，我们来规划假期吧。",
]
NEXT_STEPS = [
    "now add a test for it",
    "now run it again",
    "next",
    "Next file.",
    "next one please",
    "now change its title to X",
    "and another thing about it",
    "Another thing: it must be fast.",
    "Another thing: the button is too small.",
    "Another thing, can you explain the second step?",
    "Now write the tests.",
    "Now write unit tests.",
    "Now write the documentation.",
    "Now fix the bug.",
    "Now find the cheapest one.",
    "Now create the second file.",
    "Now make it blue instead.",
    "Now create a list instead.",
    "Now build the rest.",
    "Now write that down.",
    "Now fix this in the login page.",
    "Now compare with Redis.",
    "Now translate to French.",
    "Now summarize the findings.",
    "Now commit and push.",
    "Now deploy to staging.",
    "Next, run the linter.",
    "Next, write the importer for the other shop.",
    "Now build the tax rates page.",
    "Now build the login page.",
    "Now implement the cache.",
    "Now write the parser.",
    "Now create the database schema.",
    "Next book, please.",
    "perfect, now please book the event tickets for me",
    "Now what?",
    "Next, should I book a hotel?",
    "Now the docs.",
    "Now I need the same for France.",
    "Forget that, let's use Redis.",
    "Forget it, let's fix it later.",
    "Never mind, it works.",
    "Now do the file number 3 with all of its columns.",
    "Is this a different topic?",
    "Do something else: no idea what it is.",
    "The next thing is to test it.",
]
NEXT_STEPS_IN_CHINESE = [
    "接下来呢？",
    "接下来请继续。",
    "接下来写测试。",
    "现在给它加一个测试。",
    "现在再跑一遍。",
    "现在请写这个函数的说明。",
    "接下来请写税率的页面。",
    "现在把标题改成X。",
    "另外一件事：按钮太小了。",
    "下一个",
    "现在请修复上面的错误。",
    "算了，我们用 Redis 吧。",
]


@pytest.mark.spec("E6")
@each_row("request", NEW_TASKS)
def test_a_request_that_turns_to_something_else_starts_a_new_task(request: str) -> None:
    assert goals(GOAL, request) == [GOAL, request]


@pytest.mark.spec("E6")
@each_row("request", NEW_TASKS_IN_CHINESE)
def test_a_chinese_request_that_turns_to_something_else_starts_a_new_task(request: str) -> None:
    assert goals(GOAL_IN_CHINESE, request) == [GOAL_IN_CHINESE, request]


@pytest.mark.spec("E6")
@each_row("request", [*NEXT_STEPS, *NEXT_STEPS_IN_CHINESE])
def test_the_next_step_of_a_task_does_not_replace_the_goal(request: str) -> None:
    for goal in (GOAL, GOAL_IN_CHINESE):
        if goal.isascii() == request.isascii():
            assert goals(goal, request) == [goal]


@pytest.mark.spec("E6")
@each_row(
    "reply, request",
    [
        ("Done. Shall I write the changelog?", "Yes, now write the changelog."),
        ("I can book flights, hotels and cars.", "Now please book a hotel."),
        ("写好了。要我写更新日志吗？", "现在请写更新日志。"),
    ],
)
def test_a_request_for_what_the_reply_before_it_names_is_the_next_step(reply: str, request: str) -> None:
    assert goals(GOAL, request, reply=reply) == [GOAL]


FILLERS = """
ok go on|continue|yes|Yes, go on.|ok, continue please|go on with it|continue where you left off|carry on with the work
yes, let's do it|ok let's continue|yes I confirm|keep at it|go for it|yes, go ahead with this|Ok. Continue working.
continue from there|yes that is correct|yes it is|OK, go on with the next one|yes, continue with the rest|ok, next step
I'm ready, continue|Yes, you can proceed|you may continue now|sure thing|Great job, keep going!|fine by me|all good
Yes, I'd like to proceed.|Yes, I want to proceed with it|you're welcome|yes, all of them|continue the work
继续|好，继续吧|请继续执行|继续做|继续下一步|行，接着来|没问题，继续进行|ok继续|可以，你继续吧|好的，开始吧
""".replace("\n", "|").strip("|")


@pytest.mark.spec("E6", "E7")
@each_row("words", FILLERS.split("|"))
def test_a_message_that_only_says_to_go_on_is_no_request(words: str) -> None:
    assert is_filler(words)
    assert summary_points([TurnMessage(seq=1, speaker="user", text=words)], []).requests == []
    assert list(find_goals([(TurnMessage(seq=1, speaker="user", text=words), "")], None, place_of=int)) == []


@each_row(
    "words",
    [
        "Continue with the parser.",
        "Yes, the blue one.",
        "Do the next one.",
        "Next file.",
        "I want to stop the server.",
        "You can delete it.",
        "ok, go on with chapter 3 of the book",
        "all of the files",
        "继续写第三章。",
        "and now?",
    ],
)
def test_a_message_with_an_object_of_its_own_is_no_filler(words: str) -> None:
    assert not is_filler(words)


@each_row(
    "unit",
    ["now ", "next, please ", "forget that, ", "can you ", "let's ", "现在", "请", "thanks! ", "Ok. ", ".", "!", "\n"],
)
def test_long_requests_are_classified_in_linear_time(unit: str) -> None:
    started = perf_counter()
    long = f"{unit * 20_000}zq"
    assert goals(GOAL, long) == [GOAL]
    assert find_proposals(long) == []
    assert [*find_rules(long), *find_choices(long, ["UPS or DHL?"])] == []
    assert perf_counter() - started < 5
