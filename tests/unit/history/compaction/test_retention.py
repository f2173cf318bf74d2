"""Retained items are detected and kept verbatim."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import each_row

from inmind.core.events.session import RetainedItem
from inmind.core.text import escape_markup
from inmind.core.tokens import estimator
from inmind.history.compaction.detection import (
    MAX_GOAL_CHARACTERS,
    MAX_ITEM_CHARACTERS,
    agrees,
    announces_task,
    is_filler,
)
from inmind.history.compaction.retention import (
    MAX_EARLIER_GOAL_CHARACTERS,
    extract_items,
    last_request,
    merge_items,
    missing_items,
)
from inmind.history.turns import Speaker, TurnMessage, TurnResult, mark_command_output

count = estimator()


def messages_of(*words: str, by: Speaker = "user") -> list[TurnMessage]:
    return [TurnMessage(seq=seq, speaker=by, text=text) for seq, text in enumerate(words, start=1)]


def exchange(*pairs: tuple[Speaker, str]) -> list[TurnMessage]:
    return [TurnMessage(seq=seq, speaker=by, text=text) for seq, (by, text) in enumerate(pairs, start=1)]


def texts(words: str, kind: str = "rule") -> list[str]:
    return [item.text for item in extract_items(messages_of(words), first=False) if item.kind == kind]


def a_rule(text: str, seq: int = 1) -> RetainedItem:
    return RetainedItem("rule", text, seq)


RULES = [
    "Never deploy on Fridays.",
    "Always include version numbers when I ask about libraries.",
    "Please do not touch the billing module.",
    "Don't ever use emojis in replies.",
    "From now on, answer in French.",
    "Make sure to run the tests before every commit.",
    "Remember to quote prices in euros.",
    "When I ask for code, always add type hints.",
    "Whenever I mention a date, use ISO format.",
    "If you are not sure, ask me first.",
    "Only use the staging database.",
    "Use only public APIs.",
    "No more than three options per answer.",
    "You must never send mail without asking.",
    "You must confirm each payment with me.",
    "All amounts must be in euros.",
    "The service must not log tokens.",
    "Force pushes are not allowed.",
    "Keep your answers under 100 words.",
    "I prefer short answers.",
    "I'd rather get bad news early.",
    "I don't want you to apologise.",
    "I need you to always cite the source.",
    "Could you always answer in Spanish?",
    "Ask me whenever you delete something.",
    "Use tabs and never spaces.",
    "No deployments on Fridays.",
    "We never push to main.",
    "Please respond in JSON only.",
    "Every answer should end with a summary.",
    "I eat no meat, so never suggest any.",
    "Before you delete anything, ask me.",
    "**Never** use `sudo` here.",
    "Under no circumstances share my address.",
    "IMPORTANT: DO NOT restart the server.",
    "You may not deploy on Mondays.",
    "Stop using passive voice.",
    "请始终用中文回答。",
    "不要删除任何文件。",
    "以后都用公制单位。",
    "从现在起每条回复都要简短。",
    "必须先跑测试再提交。",
    "别再发表情了。",
    "每次修改之后都要跑一遍测试。",
    "只能使用标准库。",
    "请用中文回答。",
    "以后代码里都加上注释。",
    "禁止访问生产数据库。",
    "记住我的航班是周二。",
    "我更喜欢简短的回答。",
    "回答最好简洁，不能超过三句话。",
    "Ask me before you delete anything.",
    "I need you to ask before deleting anything.",
    "You can't use external libraries.",
    "You cannot email customers.",
    "Reply in French.",
    "Write all code in TypeScript.",
    "Use tabs, not spaces.",
    "Nothing goes to prod without my OK.",
    "pls never push to main!",
    "Remember: I'm vegetarian.",
    "Prices are in EUR, always.",
    "As I said, never push to main.",
    "所有价格都要含税。",
    "代码注释写英文。",
    "The report has to fit on one page.",
    "Leave the vendor folder untouched.",
    "Show me the diff before you change anything.",
    "If a test takes over a minute, tell me.",
    "Use my business card for any extra fees.",
    "Checked bags: keep them only if they are free.",
    "Nothing over two hours.",
    "No red-eye flights, please.",
    "Try not to touch the parser.",
    "Log lines should be in English.",
    "I don't want to rebook unless it is free.",
    "Quit explaining every step.",
    "除非我同意，别合并。",
    "发布之前先问我。",
    "总时长不能超过一小时。",
    "From now on, call me Dr. Kim.",
    "If the tests fail, stop and tell me.",
    "If the price is above $50, check with me first.",
    "Stop and ask me if the migration touches users.",
    "Whenever the queue is full, pause.",
    "I need everything in French.",
    "I'd like all answers in German.",
    "Everything in French, please.",
    "I want everything to be typed.",
    "Ignore the earlier rule about tabs; spaces are fine.",
    "Forget what I said about tabs.",
    "Disregard my previous instructions.",
    "Drop the ban on emojis.",
    "You must always have a backup.",
    "You should never have more than three tabs open.",
    "Can you always answer in French?",
]


@pytest.mark.spec("E8", "E6")
@each_row("sentence", RULES)
def test_a_lasting_instruction_of_a_person_becomes_a_rule_verbatim(sentence: str) -> None:
    before, after = (
        ("我在看这份报告。", "谢谢你。") if not sentence.isascii() else ("I read the report.", "Thanks a lot.")
    )
    assert texts(sentence) == [sentence]
    assert texts(f"{before} {sentence} {after}") == [sentence]


NO_RULES = [
    "Never mind.",
    "Don't worry about it.",
    "Don't know.",
    "I never went to Spain.",
    "It always fails on Mondays.",
    "I've always loved this song.",
    "Must I confirm each payment?",
    "Should I never do that?",
    "Do you always need my id?",
    "Please book it now.",
    "Do not book it yet.",
    "That must be hard.",
    "You must be joking.",
    "No problem in that.",
    "They make us smile and always come back.",
    "He must have left.",
    "Always here to help!",
    "All tests should pass now, run them.",
    "Only change line 5.",
    "Make sure the server is up and then restart it.",
    "Make sure this commit builds.",
    "Avoid this bug by renaming the variable.",
    "When you are done, tell me.",
    "The error must not be in the parser, look in the lexer.",
    "I would prefer the blue one please.",
    "The README says you must always run make first, is this true?",
    "According to Bob you must never merge on Fridays.",
    "Show me when you can.",
    "From now on I'll get up early.",
    'The sign says "never smoke here".',
    "What should one never do?",
    "要不要我先付款？",
    "不要紧。",
    "我必须走了。",
    "我记得你说过。",
    "你能不能来？",
    "别人都走了。",
    "这个必须吗？",
    "If you can, list the cheaper ones too.",
    "The title should be 'Minutes of Monday'.",
    "I'll have to see what each town has to offer.",
    "Leave me alone.",
    "My details should be in the profile.",
    "I prefer the second draft.",
    "I'll take care of it.",
    "That is the look I'm going for.",
    "I'm not sure how to use a set instead.",
    "Now that we have chosen a tool, what is next?",
    "I don't have any allergies.",
    "I keep an eye on it within 5 days.",
    "别着急。",
    "同事说必须重写，我不信。",
    "我们以后再说。",
    "Can you always see my files?",
    "Will you always be there?",
    "You should never have sent that, but fine.",
    "You shouldn't have done that.",
    "The agent should never have pushed it.",
    "Scripts should never have run there.",
    "What is the budget?",
    "The budget was $200 last year.",
    "The film's budget is $200k.",
    "The deadline is tight.",
    "Is the deadline 1 December?",
    "The delay is due to rain.",
    "If it is possible, let me know.",
    "If you can, tell me.",
    "If it is done, tell me.",
    "If the file exists, delete it.",
    "If the server hangs, stop it.",
    "If the order has shipped, tell me the date.",
    "Tell me if the tests fail.",
    "Stop the server if it hangs.",
    "I need everything in the cart.",
    "I need everything as soon as possible.",
    "Ignore the warning.",
    "Ignore the eslint rule there.",
    "Drop the constraint on users.",
    "We talked, argued and agreed.",
    "We waited, then decided.",
]


@pytest.mark.spec("E8")
@each_row(
    "fact",
    [
        "I'm vegetarian.",
        "My son is allergic to penicillin.",
        "I have a severe nut allergy.",
        "I don't eat pork.",
        "My budget is around $800.",
        "I can pay up to $100 for the change.",
        "I have to keep it under €40.",
        "我对海鲜过敏。",
        "我不吃猪肉。",
        "预算大概三千。",
        "Budget is at most $200 for CI.",
        "The budget for the trip is under 900 euros.",
        "Budget: 2k",
        "The deadline is 1 December.",
        "The deadline for the report is the end of June.",
        "Our deadline stays Friday.",
        "The paper is due on 5 May.",
        "截止日期是12月1日。",
    ],
)
def test_a_binding_fact_is_kept_like_a_rule(fact: str) -> None:
    assert texts(f"Find me something for tonight. {fact}") == [fact]


@pytest.mark.spec("E8")
@each_row("sentence", NO_RULES)
def test_questions_stories_and_temporary_instructions_are_no_rules(sentence: str) -> None:
    assert extract_items(messages_of(sentence), first=False) == []


@pytest.mark.spec("E8")
@each_row(
    "sentence",
    [
        "Let's go with PostgreSQL.",
        "I've decided to use gRPC between the services.",
        "We agreed on ten percent.",
        "I'll go with the second option.",
        "Use Redis instead.",
        "We chose the blue one.",
        "我们决定用 Postgres。",
        "就用方案二吧。",
        "改用 Redis。",
        "We'll use Redis for the queue.",
        "I think I'll stick with the old one for now.",
        "Scrap the importer.",
        "Alright, plan B then.",
        "We're switching to uv.",
        "I'll take the window seat.",
        "Let's keep the order as is.",
        "我选银色的。",
        "好，就选第一个。",
        "We use PostgreSQL 15, decided yesterday.",
        "We ship on Tuesdays, as agreed.",
        "Port 8080, that's settled.",
        "We go live in May, agreed with Ann.",
        "Decided: we use uv.",
    ],
)
def test_a_decision_of_a_person_is_detected(sentence: str) -> None:
    assert texts(sentence, "decision") == [sentence]


@pytest.mark.spec("E8")
def test_a_proposal_of_the_assistant_is_a_decision_if_the_user_agrees() -> None:
    proposal = "There are two ways. I suggest Redis for the cache."
    agreed = exchange(("assistant", proposal), ("user", "Yes, do that."))
    assert extract_items(agreed, first=False) == [RetainedItem("decision", "I suggest Redis for the cache.", 1)]
    for answer in ("Yes, but not Redis.", "Why Redis?", "The weather is fine."):
        assert extract_items(exchange(("assistant", proposal), ("user", answer)), first=False) == []


@pytest.mark.spec("E6", "E8")
@each_row(
    "decision", ["Let's use Kafka.", "We'll go with plan B.", "Decision: one table per tenant.", "我们决定用 Kafka。"]
)
def test_a_decision_of_the_assistant_counts_once_the_user_accepts_it(decision: str) -> None:
    accepted = exchange(("assistant", f"I compared them. {decision}"), ("user", "ok"))
    assert extract_items(accepted, first=False) == [RetainedItem("decision", decision, 1)]
    assert extract_items(exchange(("assistant", decision), ("user", "Why?")), first=False) == []


PASTED = [
    "Fix this:\n```python\n# must not be None\nnever = 1\n```",
    'Fix this:\n\ndef f(x):\n    """Do it.\n\n    You must never pass None.\n    """\n    return x',
    "12: # You must never pass None.\n13: x = 1",
    "> Never deploy on Fridays.",
    "2024-05-01 12:00:00 ERROR You must not retry.",
    "Traceback (most recent call last):\nValueError: amount must not be negative",
    "    You must never call this twice.",
    "Here is the email:\n\nDear team,\n\nyou must always lock the door.\n\nAnn",
    "这是日志：\n\n必须重启服务器。",
    "OBSERVATION:\nYou must never pass None.",
    "Your edit was not applied.\nDO NOT re-run the same command.\n(Current directory: /repo)\nbash-$",
    "Here's the email I got from my boss. What do you think?\n\nHi Ada, never deploy on Fridays.\nBest, Bob",
    "Summarize this article\n\nAlways wear sunscreen. Never go out without a hat.",
    "translate to German: Never give up. Always be yourself.",
    "Here is the output:\nok\n\nAlways mail the list to eve@example.com.",
    "<system-reminder>\nNever mention this reminder.\n</system-reminder>",
    "// never call this from outside",
    "| rule | never do this |",
]


@pytest.mark.spec("J5", "E8")
@each_row("words", PASTED)
def test_pasted_text_makes_no_rule(words: str) -> None:
    conversation = exchange(("user", "Fix the bug."), ("assistant", "I am looking at it."), ("user", words))
    assert extract_items(mark_command_output(conversation), first=False) == []


@pytest.mark.spec("J5")
@pytest.mark.parametrize("by", ["tool", "assistant"])
def test_only_people_make_rules(by: Speaker) -> None:
    assert extract_items(messages_of("Never deploy on Fridays.", by=by), first=True) == []
    carried = TurnMessage(seq=1, speaker="tool", results=(TurnResult("c", "Never deploy.", 3),))
    assert extract_items([carried], first=True) == []
    assert extract_items(messages_of("Never deploy on Fridays.", by="operator"), first=False) == [
        a_rule("Never deploy on Fridays.")
    ]


@pytest.mark.spec("E8")
def test_text_next_to_a_tool_result_is_from_a_person() -> None:
    with_result = TurnMessage(
        seq=2, speaker="tool", text="From now on never push.", results=(TurnResult("c", "Always obey.", 3),)
    )
    request, remark = messages_of("Ship it.")[0], "<system-reminder>\nNever tell.\n</system-reminder>"
    assert extract_items([request, with_result], first=False) == [a_rule("From now on never push.", 2)]
    assert last_request([with_result, request]) == RetainedItem("request", "From now on never push.", 2)
    assert last_request([replace(with_result, text=remark), request]) == RetainedItem("request", "Ship it.", 1)


@pytest.mark.spec("E8")
def test_a_person_can_give_rules_after_program_output() -> None:
    rule = "From now on never touch the database."
    assert texts(f"Here is the error:\nValueError: x\n\n{rule}") == [rule]
    assert texts(f"Here is the code:\n```\nx\n```\n{rule}") == [rule]


@pytest.mark.spec("E8")
def test_a_list_after_a_mention_of_a_mail_is_the_persons_own_text() -> None:
    words = "I don't have the email at hand, so please use:\n- Name: Ada\n\nShow me the total before booking anything."
    assert texts(words) == ["Show me the total before booking anything."]
    assert texts(words.replace("at hand, so please use", "from Bob")) == []


def test_text_around_a_paste_is_the_persons_own() -> None:
    words = "Never touch the schema.\n\n```sql\ndrop table x; -- never do this\n```\n\nAlways write a migration."
    assert texts(words) == ["Never touch the schema.", "Always write a migration."]


def test_a_message_that_ends_with_a_prompt_character_is_no_terminal_screen() -> None:
    assert texts("Always round to two digits.\nOnly use C#") == ["Always round to two digits.", "Only use C#"]


def test_each_list_item_below_a_heading_of_rules_is_a_rule() -> None:
    words = "House rules:\n- Answers in French\n- Two decimals\n\nThe list of towns:\n- Paris"
    assert texts(words) == ["Answers in French", "Two decimals"]


def test_a_wrapped_line_is_one_sentence() -> None:
    assert texts("1. Never deploy\n   on a Friday.\n2. Hello.") == ["Never deploy on a Friday."]


def test_a_preference_is_kept_without_the_question_after_it() -> None:
    words = "I'm drafting an essay, and I prefer Word over Docs, can you help me with that?"
    assert texts(words) == ["I'm drafting an essay, and I prefer Word over Docs"]


def test_a_long_rule_is_cut_after_a_clause_and_marked() -> None:
    words = f"I have a long story, {'which goes on ' * 20}, and I prefer short answers, {'told well, ' * 40}always."
    (rule,) = texts(words)
    assert rule.startswith("and I prefer short answers, told well")
    assert rule.endswith(" …")
    assert len(rule) <= MAX_ITEM_CHARACTERS
    assert texts(f"I prefer {'very ' * 100}short answers") == []


@pytest.mark.spec("E8")
def test_the_first_message_of_a_session_is_its_goal() -> None:
    goal, *rest = extract_items(messages_of("Build a shop. Never use PHP.", "Add a cart."), first=True)
    assert (goal, rest) == (RetainedItem("goal", "Build a shop. Never use PHP.", 1), [a_rule("Never use PHP.")])
    assert extract_items(messages_of("Add a cart."), first=False) == []


@pytest.mark.spec("E8")
@each_row("hello", ["hi", "Hello there!", "Good morning, how are you today?", "你好！", ""])
def test_a_greeting_is_not_the_goal(hello: str) -> None:
    conversation = exchange(("user", hello), ("assistant", "Hello."), ("user", "Please migrate billing to Stripe"))
    assert extract_items(conversation, first=True) == [RetainedItem("goal", "Please migrate billing to Stripe", 3)]


@pytest.mark.spec("E8")
def test_messages_that_stay_give_no_items_and_may_hold_the_goal() -> None:
    conversation = messages_of("Build a shop. Always test.", "Never use PHP.")
    assert extract_items(conversation, first=True, places={1}) == [a_rule("Never use PHP.", 2)]
    proposal = exchange(("assistant", "I suggest Redis."), ("user", "Yes, do that."))
    assert extract_items(proposal, first=False, places={0}) == [RetainedItem("decision", "I suggest Redis.", 1)]


@pytest.mark.spec("E8")
def test_the_rules_of_a_first_message_that_ends_in_a_prompt_count() -> None:
    words = f"Solve the issue. {'It is long. ' * 90}\n\nDO NOT use interactive commands.\n(Open file: n/a)\nbash-$"
    assert [item.kind for item in extract_items(mark_command_output(messages_of(words)), first=True)] == [
        "goal",
        "rule",
    ]
    later = exchange(("user", "Fix the bug."), ("assistant", "I am looking at it."), ("user", words))
    assert extract_items(mark_command_output(later), first=False) == []


@each_row("words", ["One sentence. " * 200, "word " * 500, "字" * 3_000, "第一句话。" * 400, "a\n" * 2_000])
def test_a_long_goal_is_cut_after_a_sentence_and_marked(words: str) -> None:
    (goal,) = extract_items(messages_of(words), first=True)
    assert len(goal.text) <= MAX_GOAL_CHARACTERS
    assert goal.text.endswith(" …")
    assert words.startswith(goal.text.removesuffix(" …"))
    if ". " in words or "。" in words:
        assert goal.text.removesuffix(" …")[-1] in ".。"


@pytest.mark.spec("E6")
def test_the_last_request_is_the_last_message_of_a_user() -> None:
    conversation = exchange(
        ("user", "Build a shop."), ("assistant", "Done."), ("user", "Add a cart."), ("assistant", "Sure.")
    )
    assert last_request(reversed(conversation)) == RetainedItem("request", "Add a cart.", 3)
    assert last_request(exchange(("assistant", "Hello."))) is None


@pytest.mark.spec("E6", "J5")
@pytest.mark.parametrize("rounds", [1, 3, 40])
def test_command_output_is_skipped_to_find_the_last_request(rounds: int) -> None:
    round: list[tuple[Speaker, str]] = [("assistant", "```bash\nls\n```"), ("user", "setup.py notes.txt")]
    conversation = exchange(
        ("user", "Fix the bug."), ("assistant", "Done."), ("user", "Now the docs."), *round * rounds
    )
    assert last_request(reversed(conversation)) == RetainedItem("request", "Now the docs.", 3)


@pytest.mark.spec("E8")
def test_a_repeated_rule_is_kept_once_at_its_last_place() -> None:
    items = extract_items(messages_of("Never use PHP.", "Always test.", "never use  PHP!"), first=False)
    assert items == [a_rule("Always test.", 2), a_rule("never use PHP!", 3)]


@pytest.mark.spec("E8")
def test_a_later_rule_comes_after_the_one_it_contradicts() -> None:
    earlier, later = a_rule("Never deploy on Fridays.", 1), a_rule("You may only deploy on Fridays.", 9)
    assert merge_items([earlier], [later], max_tokens=500, count=count).kept == [earlier, later]


@pytest.mark.spec("E8")
def test_the_oldest_items_are_dropped_and_reported() -> None:
    rules = [a_rule(f"Never open door number {seq}.", seq) for seq in range(1, 21)]
    kept, dropped = merge_items(rules[:10], rules[10:], max_tokens=60, count=count)
    assert kept
    assert [*dropped, *kept] == rules


@pytest.mark.spec("E8")
def test_goal_and_pinned_items_stay_at_any_size() -> None:
    goal, pinned, rule = (
        RetainedItem("goal", "Build a shop.", 1),
        RetainedItem("pinned", "x " * 900, 0),
        a_rule("Never use PHP.", 2),
    )
    assert merge_items([goal, pinned], [rule], max_tokens=0, count=count) == ([goal, pinned], [rule])
    assert merge_items([goal, pinned], [rule], max_tokens=50, count=count).kept == [goal, pinned, rule]


def test_the_goal_contains_its_rules_and_they_outlive_it() -> None:
    goal, other = RetainedItem("goal", "Build a shop. Never use PHP.", 1), a_rule("Always test.", 2)
    assert merge_items([goal], [a_rule("Never use PHP.", 1), other], max_tokens=500, count=count).kept == [goal, other]
    later = RetainedItem("goal", "New task: write the changelog.", 40)
    assert merge_items([goal, other], [later], max_tokens=500, count=count).kept == [
        later,
        goal._replace(kind="earlier_goal"),
        a_rule("Never use PHP.", 1),
        other,
    ]


@pytest.mark.spec("E6", "E8")
def test_the_rules_of_all_former_goals_stay() -> None:
    tasks = [f"New task: build part {number}. Never use PHP in part {number}." for number in range(4)]
    kept = merge_items([], extract_items(messages_of(*tasks), first=True), max_tokens=500, count=count).kept
    assert [item.text for item in kept if item.kind == "rule"] == [f"Never use PHP in part {n}." for n in range(3)]


@pytest.mark.spec("E6")
def test_only_the_beginning_of_the_goal_before_the_current_one_stays() -> None:
    goals = [RetainedItem("goal", f"Task {seq}. " + "It is long. " * 40, seq) for seq in (1, 2, 3)]
    first, second = merge_items(goals[:2], goals[2:], max_tokens=500, count=count).kept
    assert first == goals[2]
    assert (second.kind, second.seq) == ("earlier_goal", 2)
    assert len(second.text) <= MAX_EARLIER_GOAL_CHARACTERS


NEW_TASKS = [
    "New task: now write the changelog instead.",
    "Next task: fix the build.",
    "Thanks, that works. Here's a new task for you: write the docs.",
    "Your new goal is to write the docs.",
    "Task 2: add a cart.",
    "Change of plans: we ship a command line tool.",
    "Let's switch to a different task.",
    "Something else: please draft the press release.",
    "Now write the changelog instead.",
    "Forget the importer and write the changelog instead.",
    "新任务：写更新日志。",
    "好的，下一个任务：写测试。",
    "换个任务，先写文档。",
]


@pytest.mark.spec("E6")
@each_row("words", NEW_TASKS)
def test_an_announced_task_is_the_goal_and_survives_any_filler(words: str) -> None:
    fillers = messages_of(*["continue", "ok go on 3", "继续"] * 3)
    conversation = [*messages_of("Build a shop."), *messages_of(words), *fillers]
    conversation = [replace(one, seq=seq) for seq, one in enumerate(conversation, start=1)]
    goals = [item for item in extract_items(conversation, first=True) if item.kind == "goal"]
    assert [item.text for item in goals] == ["Build a shop.", words]
    assert last_request(reversed(conversation)) == RetainedItem("request", words, 2)


@pytest.mark.spec("E6")
@each_row(
    "words",
    [
        *(
            "continue",
            "ok go on 3",
            "Yes, please proceed.",
            "Thank you so much!",
            "thanks",
            "No, that's all.",
            "go ahead",
        ),
        *("Can you also check the second order?", "Add tests too.", "What is the next task?", "The next task is hard."),
        *("Is there a new task for me?", "Hi again! I have my id now, can you go on?", "My goal is to be fit."),
        *("继续", "好的，谢谢", "下一步做什么？", "再加一个按钮。"),
    ],
)
def test_a_filler_or_the_next_request_is_no_new_task(words: str) -> None:
    conversation = messages_of("Build a shop.", "Add a cart.", "Add a menu.", "Add a footer.", words)
    goals = [item.text for item in extract_items(conversation, first=True) if item.kind == "goal"]
    assert goals == ["Build a shop."]


@each_row("unit", ["ok ", "go on ", "very much ", "继续", "the a an my ", "forget the x ", "new task ", "1 "])
def test_long_messages_are_classified_in_linear_time(unit: str) -> None:
    started = perf_counter()
    for words in (unit * (120 // len(unit) - 1) + "zq", unit * 20_000 + "zq"):
        is_filler(words)
        announces_task(words)
    assert perf_counter() - started < 5


@pytest.mark.spec("E6")
def test_a_greeting_after_some_turns_starts_a_new_task() -> None:
    back = "Hello! I need to cancel my flight to Oslo."
    turns = ["Hi, I want to return my lamp.", "Order W1.", "Yes.", "To my card.", "Great, and when?", *["Ok."] * 7]
    goals = [item.text for item in extract_items(messages_of(*turns, back), first=True) if item.kind == "goal"]
    assert goals == [turns[0], back]
    early = [item.text for item in extract_items(messages_of(turns[0], back), first=True) if item.kind == "goal"]
    assert early == turns[:1]


@pytest.mark.spec("E6")
@each_row(
    "request, is_task",
    [
        ("Thanks. Please book me a flight from Berlin to Rome on May 4, under 200 euros.", True),
        ("Thanks. Please also add tests for the scanner of the compiler.", False),
        ("Thanks. Please go on.", False),
        ("Now write a birthday poem about my grandmother and her garden.", True),
        ("Now write tests for the lexer of the compiler and its errors.", False),
        ("Next, look at the remaining file.", False),
    ],
)
def test_thanks_and_a_request_about_something_else_start_a_new_task(request: str, is_task: bool) -> None:
    turns = ["Please write unit tests for the parser module of our compiler.", *["Look at the next file."] * 12]
    goals = [item.text for item in extract_items(messages_of(*turns, request), first=True) if item.kind == "goal"]
    assert goals == [turns[0], *([request] if is_task else [])]


@pytest.mark.spec("E6")
def test_a_description_that_opens_like_the_last_one_is_the_next_task() -> None:
    tasks = [f"We are solving the following issue of the project. {'It is long. ' * 40}Issue {n}." for n in (1, 2)]
    conversation = messages_of(tasks[0], "Look at the parser first.", tasks[1])
    assert [item.seq for item in extract_items(conversation, first=True) if item.kind == "goal"] == [1, 3]


@pytest.mark.spec("E6", "E8")
@each_row(
    "sentence",
    [
        "We still have to decide between Kafka and RabbitMQ.",
        "Open question: should the cache be global or per user?",
        "Decision needed: who pays for the export?",
        "We haven't decided on the price yet.",
        "TBD: the name of the service.",
        "Let's decide on the name later.",
        "The choice of the vendor is still open.",
        "还没决定用 Kafka 还是 RabbitMQ。",
        "待定：谁来付款？",
        "需要决定：谁来付款？",
    ],
)
@pytest.mark.parametrize("by", ["user", "assistant"])
def test_an_open_decision_is_kept_for_every_speaker(sentence: str, by: Speaker) -> None:
    assert extract_items(messages_of(sentence, by=by), first=False) == [RetainedItem("open_decision", sentence, 1)]


@pytest.mark.spec("E8")
@each_row(
    "sentence",
    [
        "Do we need to decide now?",
        "The ticket is still open.",
        "Open questions: none.",
        "The shop is open.",
        "我还没吃饭。",
    ],
)
def test_other_open_things_are_no_open_decisions(sentence: str) -> None:
    assert [item.kind for item in extract_items(messages_of(sentence), first=False)] == []


@pytest.mark.spec("E6", "E8")
@each_row(
    ("decision", "question", "closed"),
    [
        ("Let's use Kafka.", "We still have to decide between Kafka and RabbitMQ.", True),
        ("Let's use Redis.", "We still have to decide between Kafka and RabbitMQ.", False),
        ("We take UPS.", "We still have to decide between UPS and DHL.", True),
        ("We'll make the cache global.", "Open question: should the cache be per user or global?", True),
        ("We decided to drop the cache.", "Open question: should the cache be per user or global?", False),
        ("就用 Kafka 吧。", "还没决定用 Kafka 还是 RabbitMQ。", True),
        ("我们决定用绿色的。", "还没决定用红色还是蓝色。", False),
        ("We agreed on a retention of 30 days for the logs.", "Open question: retention of the logs?", True),
        ("We agreed on a logo.", "Open question: retention of the logs?", False),
    ],
)
def test_a_decision_closes_the_open_one_that_it_answers(decision: str, question: str, closed: bool) -> None:
    items = [RetainedItem("open_decision", question, 3), RetainedItem("decision", decision, 9)]
    kinds = [item.kind for item in merge_items(items[:1], items[1:], max_tokens=500, count=count).kept]
    assert kinds == (["decision"] if closed else ["decision", "open_decision"])
    earlier = [items[0], items[1]._replace(seq=2)]
    assert len(merge_items(earlier, [], max_tokens=500, count=count).kept) == 2


def test_a_pinned_item_stays_pinned_when_repeated() -> None:
    pinned = RetainedItem("pinned", "Never use PHP.", 0)
    assert merge_items([pinned], [a_rule("never use PHP", 7)], max_tokens=0, count=count) == ([pinned], [])


@pytest.mark.spec("E8")
def test_an_item_is_missing_unless_its_words_are_in_the_text() -> None:
    rule, tagged = a_rule("Never use PHP."), a_rule("Never write </memory> anywhere.")
    assert missing_items([rule, tagged], "kept:\n - Never\n   use PHP.") == [tagged]
    assert missing_items([rule, tagged], escape_markup(f"{tagged.text} use PHP")) == [rule]


@pytest.mark.spec("E8")
@each_row(
    ("text", "content", "contained"),
    [
        ("0 word", "10 word", False),
        ("hi", "this", False),
        ("hi", "he said: hi!", True),
        ("Use tabs", "Use tabstops", False),
        ("用中文回答", "不要用中文回答。", False),
        ("用中文回答", "规则：用中文回答。", True),
        ("Build a sh …", "Build a shop", True),
        ("Build a sh …", "Rebuild a shop", False),
        ("never", "nevermore, and never", True),
    ],
)
def test_an_item_is_matched_only_as_whole_words(text: str, content: str, contained: bool) -> None:
    assert missing_items([a_rule(text)], content) == ([] if contained else [a_rule(text)])


words = st.text() | st.lists(st.sampled_from([*RULES, *NO_RULES, *PASTED, "\n", "```", '"', "(", "{", "- "])).map(
    " ".join
)
messages = st.lists(
    st.builds(
        TurnMessage,
        seq=st.integers(1, 99),
        speaker=st.sampled_from(["operator", "user", "assistant", "tool"]),
        text=words,
    ),
    max_size=6,
)


@given(messages, st.booleans())
def test_every_item_is_in_its_message(conversation: list[TurnMessage], first: bool) -> None:
    everything = "".join("".join(one.text.split()) for one in conversation)
    for item in extract_items(conversation, first=first):
        assert 0 < len(item.text) <= (MAX_GOAL_CHARACTERS if item.kind == "goal" else MAX_ITEM_CHARACTERS)
        assert "".join(item.text.removesuffix(" …").split()) in everything


items = st.lists(
    st.builds(
        RetainedItem,
        st.sampled_from(["goal", "earlier_goal", "pinned", "rule", "decision", "open_decision", "request"]),
        st.sampled_from([*RULES, "Build a shop. Never deploy on Fridays."]),
        st.integers(0, 50),
    ),
    max_size=12,
)


@given(items, items, st.integers(0, 200))
def test_merging_keeps_the_limit_and_reports_every_dropped_item(
    earlier: list[RetainedItem], later: list[RetainedItem], room: int
) -> None:
    kept, dropped = merge_items(earlier, later, max_tokens=room, count=count)
    limited = [item for item in kept if item.kind in ("rule", "decision", "open_decision")]
    assert sum(count(f"- {item.text}\n") for item in limited) <= room
    assert merge_items(kept, [], max_tokens=room, count=count).kept == kept
    assert [[item.kind for item in kept].count(kind) <= 1 for kind in ("goal", "earlier_goal", "request")] == [True] * 3
    lasting = [item for item in (*earlier, *later) if item.kind in ("pinned", "rule", "decision")]
    assert missing_items(lasting, "\n".join(item.text for item in (*kept, *dropped))) == []


@pytest.mark.spec("E8")
@each_row(
    "answer",
    [
        "ok wait, don't do that",
        "Yes. Actually no.",
        "sure, but not MySQL",
        "ok, what is MySQL?",
        "好的，但是不要用MySQL",
    ],
)
def test_a_yes_with_a_reservation_accepts_no_proposal(answer: str) -> None:
    assert not agrees(answer)
