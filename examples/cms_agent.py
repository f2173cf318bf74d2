"""An assistant for a web site: users say "it" or "the other one", tools need ids.

The site runs in this process, with real state and real errors. The lines marked `memory` resolve references, ask if
several entities fit, and stop a call with an id that was never seen. At the end the entities of the session are
compared with the site.

    python examples/cms_agent.py                                     # scripted: no key, no network
    python examples/cms_agent.py --model gpt-5-mini                  # with OPENAI_API_KEY
    python examples/cms_agent.py --model qwen3 --base-url http://localhost:11434/v1
"""

from __future__ import annotations

import json
import sys
import tempfile

from world.cms import Cms
from world.loop import Agent, format_call
from world.model import open_model
from world.scripted import calls, id_of, says

from inmind import HostCall, Memory, Session

SYSTEM = "You edit a web site with the tools. Do what is asked and no more; then say in one sentence what you did."

STORY = (
    "Create a page called About Us.",
    "Add a section to it with the heading Welcome.",
    "We also need a page called Contact.",
    "The other one should be called Our Team.",
    "Find images of the lake.",
    "Put the second image into the Welcome section.",
    "Start a collection called News, with an entry We are open.",
    "Publish it.",
    "Delete the lake image.",
    "The noon one.",
    "Then the night one.",
    "Delete the Contact page.",
    "Now add a section Find us to that page.",
)

SCRIPT = (
    calls("cms_createPage", title="About Us"),
    says("The page About Us is there."),
    calls("cms_addSection", pageId=id_of("About Us"), heading="Welcome"),
    says("It has a section Welcome."),
    calls("cms_createPage", title="Contact"),
    says("The page Contact is there."),
    calls("cms_updatePage", pageId=id_of("About Us"), title="Our Team"),
    says("About Us is now called Our Team."),
    calls("cms_searchImages", query="lake"),
    says("There are three: at dawn, at noon, at night."),
    calls("cms_updateSectionImage", pageSectionId=id_of("Welcome"), imageId=id_of("lake-noon.jpg")),
    says("Welcome shows the lake at noon."),
    calls("cms_createCollection", name="News"),
    calls("cms_createEntry", collectionId=id_of("News"), title="We are open"),
    says("Both are there."),
    calls("cms_publishEntry", entryId=id_of("We are open")),
    says("It is published."),
    calls("cms_deleteImage", imageId=id_of("lake-noon.jpg")),
    says("It is shown in a section, so it stays."),
    calls("cms_deleteImage", imageId=id_of("lake-night.jpg")),
    says("The lake at night is deleted."),
    calls("cms_deletePage", pageId="page-120"),  # an invented id, as models send
    calls("cms_deletePage", pageId=id_of("Contact")),
    says("Contact is deleted."),
    calls("cms_addSection", pageId=id_of("Our Team"), heading="Find us"),
    says("Our Team has a section Find us."),
)


def talk(agent: Agent, text: str) -> None:
    """One turn. If the words fit several entities, the user is asked instead of the model."""
    print_line("\nyou", text)
    resolution = agent.session.resolve(text)
    for reference in resolution.references:
        if reference.verdict == "resolved":
            things = " and ".join(map(str, reference.entities))
            print_line("memory", f'"{reference.text}" is {things} ({reference.confidence:.0%}: {reference.why})')
    if resolution.verdict == "ambiguous":
        print_line("memory", f"not clear: {resolution.why}")
        agent.session.add([{"role": "user", "content": text}, {"role": "assistant", "content": resolution.question}])
        print_line("agent", resolution.question)
    else:
        print_line("agent", agent.answer(text))


def print_call(call: HostCall, result: str) -> None:
    print_line("tool", format_call(call))
    outcome = json.loads(result)
    if not outcome["success"]:
        print_line("", f"refused: {outcome['error']}")


def compare(session: Session, cms: Cms) -> bool:
    """Check that all entities of the window are in the last prompt, and match the site."""
    sent = json.dumps(session.prompt(session.usage.calls).request)
    agree = len(session.entities) > 0
    print_line("\nmemory", "entities in the last prompt, and on the site:")
    for thing in session.entities:
        current = cms.name_of(thing.id)
        same = thing.id in sent and current == (None if thing.deleted else thing.name)
        agree &= same
        print_line("", f"{thing.id:<11}{'(deleted)' if thing.deleted else thing.name:<17}{current or '(not there)'}")
    return agree


def print_line(speaker: str, text: str) -> None:
    print(f"{speaker:<{8 + speaker.count(chr(10))}}{text}")


def main() -> None:
    cms = Cms()
    with (
        open_model(__doc__ or "", SCRIPT) as model,
        tempfile.TemporaryDirectory() as home,
        Memory.open(home, embedder=None) as memory,
    ):
        session = memory.session("site", resource="ada")
        agent = Agent(session=session, model=model, system=SYSTEM, tools=cms.tools(), on_result=print_call)
        for text in STORY:
            talk(agent, text)
        agree = compare(session, cms)
    print("\nMemory and the site agree." if agree else "\nMemory and the site do not agree.")
    sys.exit(not agree)


if __name__ == "__main__":
    main()
