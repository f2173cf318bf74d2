"""The examples run unchanged, without network or key, and print the expected output."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import pytest
from fork_server import text
from provider import Provider, ScriptedFailure, ScriptedReply, a_tool_call, reply_with
from terminal import warm_inmind

from inmind.core.http import HttpEndpoint, RequestRefused, bearer
from inmind.errors import ModelFailed

EXAMPLES = Path(__file__).parents[2] / "examples"

EXPECTED_OUTPUT = {
    "references": """\
[cms_createPage]
  'add a hero section to it' is page-123, "About Us" (95%: the only entity in the window)
[cms_createPage]
  'now the other one' is page-123, "About Us" (80%: the one that is not "Contact")
[cms_searchImages]
  'take the second image' is img-2, "team-2.jpg" (80%: "the second image" in the last list)
[cms_updatePage]
  'open the about page' is page-123, "Our Team" (85%: "about" was in its earlier name)
[cms_deletePage]
  'rename it' is page-123, "Our Team" (55%: "Contact" was just deleted, and this is the only other page)
  'restore the deleted page' is page-124, "Contact" (80%: the page that was deleted last)
cms_updatePage: 1 unknown id
  pageId: page-213 was never seen; did you mean page-123 (page "Our Team") or page-124 (page "Contact")?
  imageId: img-2 is in the window
<memory layer="entities">
[WORKING MEMORY]
pages:
  - "Our Team" (page-123)
  - "Contact" (page-124) [deleted]
images:
  - "team-1.jpg" (img-1)
    also listed: team-4.jpg img-4, team-5.jpg img-5
  - "team-2.jpg" (img-2)
  - "team-3.jpg" (img-3)
</memory>
""",
    "host_history": """\
Where is order 118?
  call 1: 110 tokens, 0 of them cached
  call 2: 162 tokens, 57 of them cached
  It is packed.
What is in it?
  call 3: 178 tokens, 109 of them cached
  It holds tea and two mugs.
The user wants that answer again.
  call 4: 178 tokens, 125 of them cached
  Tea, two mugs.
6 messages in the conversation, 7 in the journal
Served from cache: 46%
""",
    "long_run": """\
Call 7: the window was full. 3 of 6 outputs are sent complete.
  [pruned: archive/001:5-87] 1: a line of urls.py 2: a line of urls.py 3…
  [pruned: archive/001:89-171] 1: a line of users.py 2: a line of users.…
  [pruned: archive/001:173-255] 1: a line of forms.py 2: a line of forms…
Read again:
  ## 13: tool
  ...
  80: the last line of users.py
  [lines 89 to 171 of 256; read on from_line 172]
Call 9: the window was full. 2 of 8 outputs are sent complete.
  [pruned: archive/001:5-87] 1: a line of urls.py 2: a line of urls.py 3…
  [pruned: archive/001:89-171] 1: a line of users.py 2: a line of users.…
  [pruned: archive/001:173-255] 1: a line of forms.py 2: a line of forms…
  [pruned: archive/002:5-87] 1: a line of views.py 2: a line of views.py…
  [pruned: archive/002:89-171] 1: a line of session.py 2: a line of sess…
  [pruned: archive/002:173-255] 1: a line of settings.py 2: a line of se…
users.py makes a slug of the name before it looks for the user.
Restored in a larger window: 8 of 8 outputs are sent complete.
""",
    "own_layer": """\
<memory layer="failures">
- Error: host web-6 is out of disk space, build 118 not copied.
- Error: host web-5 is out of disk space, build 118 not copied.
[older failures are in the conversation]
</memory>
cut: failures: 4 lines
   19  guide               included
   15  memory:house rules  included
   55  memory:failures     cut
  218  history             included
   54  context_meta        included
""",
    "deep_memory": """\
Consolidated: 0 merged, 1 superseded, 0 expired
How did we solve CORS?
  2026-03-10, user: Since the upgrade browsers refuse every call: it is CORS again.
  2026-03-10, assistant: Fixed by allowing the shop's new origin on the gateway.
When is the deadline for the API?
  2026-03-17, fact: The deadline for the API moved to April 2.
  2026-03-10, fact, until 2026-03-17: The deadline for the API is March 20.
The same, as of March 11
  2026-03-10, fact: The deadline for the API is March 20.
What Mei likes
  2026-03-17, preference: Mei wants to be called, and never mailed, when the gateway is down.
Said in March about the night
  2026-03-10, user: Good. And who looks after the gateway at night?
""",
    "dreams": """\
The first dream takes in 2 and changes:
  +- Mei prefers to be called, and never mailed.
  +- The deadline for the API is March 20.
A week later takes in 1 and changes:
  -- The deadline for the API is March 20.
  +- The deadline for the API moved to April 2.
After fifty notes more it has at most 6,000 characters: True. Of Mei it says:
  - Mei is on leave in August.
  - Mei prefers to be called, and never mailed.
Faded facts have a pointer:
  - Past: The deadline for the API moved to April 2.; Host Amsel stands in rack 0 by now, since fan…
with keywords for a search: `April API Amsel stands`. They find:
  The deadline for the API moved to April 2.
After another dream, and its undo, the page is as before: True
""",
    "task_scratchpad": """\
Deploy v2 of the shop.
  memory: Updated: current_goal, completed_steps, blockers.
  memory: Updated: completed_steps. Not changed, since empty values next to others are treated as filler: \
blockers. To clear a field, send it alone or also list it in delete.
  I have asked Mei, and wait for her approval.
Try it on staging.
  memory: Updated: completed_steps.
  Staging runs v2.
Mei says yes.
  memory: Error: Nothing was changed. completed_steps does not fit the schema: Input should be a valid array
  memory: Updated: blockers.
  memory: Updated: completed_steps.
  Then production is next.
Merged the helper: completed_steps combined, 0 conflicts
{
  "current_goal": "Deploy v2",
  "completed_steps": [
    "write tests",
    "ask Mei",
    "approved",
    "v2 runs on staging"
  ],
  "blockers": []
}
""",
    "async_agent": """\
The English page greets no one by name.
The Chinese page has no title.
In mind: page-1, page-2
The user gives up, and asks again: Both pages need work: a greeting in English, a title in Chinese.
Asked in all: 1
""",
    "cms_agent": """\

you     Create a page called About Us.
tool    cms_createPage(title="About Us")
agent   The page About Us is there.

you     Add a section to it with the heading Welcome.
memory  "it" is page-101, "About Us" (95%: the only entity in the window)
tool    cms_addSection(pageId="page-101", heading="Welcome")
agent   It has a section Welcome.

you     We also need a page called Contact.
tool    cms_createPage(title="Contact")
agent   The page Contact is there.

you     The other one should be called Our Team.
memory  "The other one" is page-101, "About Us" (80%: the one that is not "Contact")
tool    cms_updatePage(pageId="page-101", title="Our Team")
agent   About Us is now called Our Team.

you     Find images of the lake.
tool    cms_searchImages(query="lake")
agent   There are three: at dawn, at noon, at night.

you     Put the second image into the Welcome section.
memory  "the second image" is img-102, "lake-noon.jpg" (80%: "the second image" in the last list)
memory  "the Welcome section" is sec-101, "Welcome" (90%: "Welcome" is its name)
tool    cms_updateSectionImage(pageSectionId="sec-101", imageId="img-102")
agent   Welcome shows the lake at noon.

you     Start a collection called News, with an entry We are open.
tool    cms_createCollection(name="News")
tool    cms_createEntry(collectionId="col-101", title="We are open")
agent   Both are there.

you     Publish it.
memory  "it" is entry-101, "We are open" (90%: the most recent entity)
tool    cms_publishEntry(entryId="entry-101")
agent   It is published.

you     Delete the lake image.
memory  not clear: "lake" fits 3 of them
agent   Which image: lake-noon.jpg, lake-dawn.jpg or lake-night.jpg?

you     The noon one.
memory  "The noon one" is img-102, "lake-noon.jpg" (85%: "noon" is in its name)
tool    cms_deleteImage(imageId="img-102")
        refused: lake-noon.jpg is shown in the section 'Welcome' (sec-101)
agent   It is shown in a section, so it stays.

you     Then the night one.
memory  "the night one" is img-103, "lake-night.jpg" (85%: "night" is in its name)
tool    cms_deleteImage(imageId="img-103")
agent   The lake at night is deleted.

you     Delete the Contact page.
memory  "the Contact page" is page-102, "Contact" (90%: "Contact" is its name)
tool    cms_deletePage(pageId="page-120")
        refused: pageId: page-120 was never seen; did you mean page-102 (page "Contact") or page-101 (page)?
tool    cms_deletePage(pageId="page-102")
agent   Contact is deleted.

you     Now add a section Find us to that page.
memory  "that page" is page-101, "Our Team" (55%: "Contact" was just deleted, and this is the only other page)
tool    cms_addSection(pageId="page-101", heading="Find us")
agent   Our Team has a section Find us.

memory  entities in the last prompt, and on the site:
        sec-102    Find us          Find us
        page-101   Our Team         Our Team
        page-102   (deleted)        (not there)
        entry-101  We are open      We are open
        col-101    News             News
        img-102    lake-noon.jpg    lake-noon.jpg
        sec-101    Welcome          Welcome
        img-101    lake-dawn.jpg    lake-dawn.jpg
        img-103    (deleted)        (not there)

Memory and the site agree.
""",
    "support_agent": """\
Monday, 02 March
customer  The teapot of my order W2041 came broken, and where are my mugs? Please write, and never phone: I am at work.
  to orders: Where are ada's mugs?
    list_orders(customer="ada")
    track_parcel(order_id="W2057")
  from orders: The mugs of W2057 are in customs.
  to refunds: The teapot of W2041 came broken. Pay it back.
    create_refund(order_id="W2041", amount=380.0): refused, 38.00 of W2041 can be paid back, and not 380.00
    create_refund(order_id="W2041", amount=38.0)
  from refunds: Paid back, by rf-701.
  merged ticket-1.orders-3: taken next_step, facts, combined nothing, 0 conflicts
  merged ticket-1.refunds-3: taken nothing, combined facts, 1 conflicts
    next_step was 'Consult both.'
      the desk's stays: 'Write to her when customs are through.'
      the child has:    'Tell her that her money is on its way.'
desk      Your 38.00 are on their way. Your mugs are in customs; we will write, and not phone, when they are through.
the case  {
            "problem": "The teapot of W2041 is broken; the mugs have not come.",
            "next_step": "Tell her that her money is on its way; write to her when customs are through.",
            "facts": [
              "W2057, the mugs, is in customs",
              "W2041, the teapot, is paid back"
            ]
          }

Notes about the customer, until a dream takes them in:
  - [2026-03-02T09:00:00Z] (importance: 0.9) Ada prefers to be written to, and never phoned: she is at work.
  - [2026-03-02T09:00:00Z] (importance: 0.7) Ada's broken teapot of order W2041 is paid back by refund rf-701: 38.00.
A dream, by rules. MEMORY.md:
  +- Ada prefers to be written to, and never phoned: she is at work.
  +- User: Please write, and never phone: I am at work.
  +- Ada's broken teapot of order W2041 is paid back by refund rf-701: 38.00.

Friday, 06 March, another conversation: what it knows of her is MEMORY.md
customer  Hello again! Has my money arrived?
    get_refund(refund_id="rf-701")
desk      Yes: the 38.00 for your teapot have arrived. We will write about the mugs.
""",
}


def test_every_example_is_run_here() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {*EXPECTED_OUTPUT, "coding_agent"}


@pytest.mark.spec("B2", "B4", "B6", "B7", "B8", "C2", "C5", "C6", "C8", "D1", "D4", "D8", "E3", "E5", "E9", "G3", "G8")
@pytest.mark.spec("H3", "H5", "H7")
@pytest.mark.parametrize("name", EXPECTED_OUTPUT)
def test_an_example_prints_its_expected_output(name: str, tmp_path: Path) -> None:
    result = run(name, tmp_path)
    assert (result.stdout, result.stderr, result.returncode) == (EXPECTED_OUTPUT[name], "", 0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spec("B10", "C2", "D4", "E5", "E6", "E8", "E9", "F5")
def test_the_coding_agent_finishes_its_task_after_several_compactions(tmp_path: Path) -> None:
    """Checks events, not token counts: the length of a traceback depends on the Python version."""
    result = run("coding_agent", tmp_path)
    assert (result.stderr, result.returncode) == ("", 0)
    test_runs = re.findall(r"^  run_tests (.*)$", result.stdout, re.MULTILINE)
    assert (len(test_runs), test_runs[0], test_runs[-1]) == (9, "FAILED (failures=16, errors=10)", "OK")
    assert len(re.findall(r"^  -- call \d+: the window was full", result.stdout, re.MULTILINE)) >= 3
    assert f"It ended with {test_runs[0]}." in result.stdout  # read again, from the archive
    assert "goal: The tests of this project fail. Find out why" in result.stdout
    assert "Files known by their paths: 12 of 12" in result.stdout
    with_memory, without_memory = map(float, re.findall(r"\$([\d.]+)$", result.stdout, re.MULTILINE))
    assert with_memory < without_memory
    before, now = number_pair(r"sent: (\d+) before, (\d+) now", result.stdout)
    assert before < now
    assert result.stdout.endswith("The tests pass: yes. No test was changed: yes.\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spec("D7", "D9")
@pytest.mark.parametrize(
    "name",
    [*(pytest.param(name, marks=pytest.mark.exhaustive) for name in ("cms_agent", "coding_agent")), "support_agent"],
)
def test_an_agent_prints_the_same_with_another_provider(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [str(EXAMPLES), *sys.path])
    script = import_module(name).SCRIPT
    with Provider() as provider:
        provider.will(*map(anthropic_move, script))
        arguments = ("--model", "claude-x", "--base-url", provider.anthropic)
        result = run(name, tmp_path, *arguments, ANTHROPIC_API_KEY="made-up")
        assert (result.stderr, result.returncode, provider.failures, provider.unused) == ("", 0, [], 0)
    assert {(request.path, request.headers["x-api-key"]) for request in provider.requests} == {
        ("/v1/messages", "made-up")
    }
    if name in EXPECTED_OUTPUT:
        assert result.stdout == EXPECTED_OUTPUT[name]


def test_a_refused_model_request_is_reported_in_one_line(tmp_path: Path) -> None:
    with Provider() as provider:
        provider.will(ScriptedFailure(401, "no such key"))
        result = run("support_agent", tmp_path, "--model", "x", "--base-url", provider.openai, OPENAI_API_KEY="made-up")
    (line,) = result.stderr.splitlines()
    assert line.startswith("MODEL_FAILED: the model failed: http://127.0.0.1:")
    assert "no such key" in line
    assert result.returncode == 1


def test_a_base_url_without_a_model_is_a_usage_error(tmp_path: Path) -> None:
    result = run("support_agent", tmp_path, "--base-url", "http://127.0.0.1:9/v1")
    assert result.stderr.endswith("error: --base-url and --provider need --model\n")
    assert (result.stdout, result.returncode) == ("", 2)


def test_a_scripted_model_answers_only_from_its_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(EXAMPLES), *sys.path])
    world = import_module("world.scripted")
    script = [world.calls("open", id=world.id_of(name)) for name in ("About Us", "Contact")]
    request = {"messages": [{"role": "tool", "content": '{"page": {"id": "page-1", "title": "About Us"}}'}]}
    with world.serve_script(script) as url:
        message = ask(url, request)["choices"][0]["message"]
        with pytest.raises(RequestRefused, match="Contact"):
            ask(url, request)
    assert [json.loads(call["function"]["arguments"]) for call in message["tool_calls"]] == [{"id": "page-1"}]


def test_unused_moves_of_a_script_are_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(EXAMPLES), *sys.path])
    world = import_module("world.scripted")
    with (
        pytest.raises(ModelFailed, match="2 of its 2 moves"),
        world.serve_script([world.says("One."), world.says("Two.")]),
    ):
        pass


def run(name: str, folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    path = EXAMPLES / f"{name}.py"
    code = (
        "import runpy, sys, warnings\n"
        "warnings.simplefilter('error')\n"
        f"sys.argv[0], sys.path[0] = {str(path)!r}, {str(EXAMPLES)!r}\n"
        f"runpy.run_path({str(path)!r}, run_name='__main__')\n"
    )
    process = warm_inmind().run(code, *arguments, cwd=folder, env={**os.environ, **environment})
    return subprocess.CompletedProcess(process.args, process.returncode, text(process.stdout), text(process.stderr))


def anthropic_move(move: Callable[[Any], dict[str, Any]]) -> Callable[[dict[str, Any]], ScriptedReply]:
    """Convert a move of a script to a reply of Anthropic's API."""

    def answer(body: dict[str, Any]) -> ScriptedReply:
        read = [{"content": text} for text in texts_in([body.get("system"), body["messages"]])]
        message = move(import_module("world.scripted").Request({"messages": read}))
        functions = [call["function"] for call in message.get("tool_calls", ())]
        return reply_with(message["content"] or "", *(a_tool_call(one["name"], one["arguments"]) for one in functions))

    return answer


def texts_in(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            yield from texts_in(list(cast("dict[str, object]", value).values()))
        case list():
            for one in cast("list[object]", value):
                yield from texts_in(one)
        case _:
            pass


def ask(url: str, request: dict[str, Any]) -> dict[str, Any]:
    return HttpEndpoint(url=url).request("chat/completions", request, headers=bearer, seconds=10)


def number_pair(pattern: str, text: str) -> tuple[int, int]:
    match = re.search(pattern, text)
    assert match
    return int(match[1]), int(match[2])
