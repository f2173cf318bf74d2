"""A conversation in the terminal, and beside it what a model would be sent.

The plot: somebody builds a page by talking about "it", and what stays of that day is dreamt of. No model is called;
the replies are written here. All that is shown, the prompts, the tokens, the cache, the price and the dream, is what
the library really did, in a home that is thrown away afterwards.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from inmind import Memory, Prompt, Rates, Session
from inmind.doors.night import Night, spend
from inmind.doors.story import Said, assistant, call, content, result, shown, user
from inmind.frozen import frozen
from inmind.text import printable

RATES = Rates.per_million(input=3.00)
"""Dollars for a million tokens, as common price lists have it: cache reads a tenth, cache writes a quarter more."""

_COLOURS = {"cached": "green", "written": "yellow", "uncached": "red"}
_MARKS = {"cached": "█", "written": "▓", "uncached": "░"}

SYSTEM = "You edit a website. Use the tools; answer in one sentence."

TOOLS = [
    {"type": "function", "function": {"name": name, "description": text, "parameters": {"type": "object"}}}
    for name, text in (
        ("cms_createPage", "Create a page."),
        ("cms_addSection", "Add a section to a page."),
        ("cms_searchImages", "Find images by a word."),
        ("cms_setImage", "Put an image into a section."),
    )
]


@frozen
class Step:
    """What happens before the model is asked again."""

    title: str
    messages: Sequence[Said] = ()
    overview: tuple[str, str] = ("", "")
    """A heading of overview.md and the line to put below it."""
    person_edits: str = ""
    """A line that somebody types into the file itself."""
    regenerate: int = 0
    """How many messages at the end are thrown away first, as when a user asks for another answer."""


STORY = (
    Step("A user asks for a page.", [user("Create a page called About Us.")]),
    Step(
        "The tool has answered; the agent notes the page in overview.md.",
        [call("c1", "cms_createPage", title="About Us"), result("c1", page={"id": "page-123", "title": "About Us"})],
        overview=("## Known facts", "- The page About Us is page-123."),
    ),
    Step('"It" is the page.', [assistant("The page About Us is there."), user("Now add a hero section to it.")]),
    Step(
        "Another id comes in.",
        [
            call("c2", "cms_addSection", page="page-123", kind="hero"),
            result("c2", section={"id": "sec-456", "heading": "Welcome"}),
        ],
        overview=("## Known facts", "- Its hero section is sec-456."),
    ),
    Step(
        "Somebody opens overview.md in an editor and types a rule.",
        [assistant("The hero section is in."), user("Find a picture of mountains for it.")],
        person_edits="- Images must have alt texts in English.",
    ),
    Step(
        "A search comes back.",
        [
            call("c3", "cms_searchImages", query="mountains"),
            result("c3", matches=[{"id": "img-789", "filename": "mountain.jpg"}, {"id": "img-790"}]),
        ],
    ),
    Step("The user chooses.", [assistant("There are two. Which one?"), user("Use the first one.")]),
    Step(
        "The user edits that message: a branch, not a corruption.",
        [user("Use the first one, with the alt text Mountains at dawn.")],
        regenerate=1,
    ),
)


def play(console: Console, *, as_json: bool = False) -> None:
    """Run the story once, from an empty home to the bill."""
    with tempfile.TemporaryDirectory(prefix="inmind-demo-") as home, Memory.open(Path(home)) as memory:
        session = memory.session("demo", resource="ada", cwd="/website")
        messages: list[Said] = [{"role": "system", "content": SYSTEM}]
        prompts: list[Prompt] = []
        if not as_json:
            console.print(_legend())
        for number, step in enumerate(STORY, start=1):
            _happen(session, memory.home, messages, step)
            prompts.append(session.prepare(messages, tools=TOOLS))
            if not as_json:
                _show_step(console, number, step, prompts)
        summary = _summary(session, prompts)
        if not as_json:
            _show_bill(console, session, prompts)
        night = spend(Console(quiet=True) if as_json else console, memory, session, messages)
        if as_json:
            console.print_json(data={**summary, "dream": _of_dream(night)})
        else:
            _show_what_is_next(console)


def _happen(session: Session, home: Path, messages: list[Said], step: Step) -> None:
    if step.regenerate:
        del messages[-step.regenerate :]
    messages += step.messages
    heading, line = step.overview
    if heading:
        session.write("overview.md", session.overview.replace(heading, f"{heading}\n{line}"))
    if step.person_edits:
        file = next(home.glob("sessions/*/demo/working-memory/overview.md"))
        text = file.read_text("utf-8")
        file.write_text(text.replace("## Key decisions", f"## Key decisions\n{step.person_edits}"), "utf-8")


def _show_step(console: Console, number: int, step: Step, prompts: Sequence[Prompt]) -> None:
    prompt = prompts[-1]
    console.print()
    console.print(Text(f"{number}. {step.title}", style="bold"))
    for message in step.messages:
        console.print(shown(message))
    console.print(_bar(prompt, width=console.width - 4))
    console.print(_numbers(prompt))
    console.print(_parts(prompt), soft_wrap=True)
    if prompt.report.anchor_moved and number > 1:
        console.print(f"  memory sent anew in the prefix: {prompt.report.anchor_moved}", style="dim")
    if number == 1:
        console.print("  the whole prompt, this once:", style="dim")
        new = [*prompt.messages]
    else:
        console.print("  new at its end:", style="dim")
        new = prompt.messages[-1:]
    for message in new:
        text = printable(content(message)).replace("\n", "\n    ")
        console.print(Text(f"    {text}", style="dim"), soft_wrap=True)


def _show_bill(console: Console, session: Session, prompts: Sequence[Prompt]) -> None:
    ledger = session.ledger
    rebuilt = session.prompt(2).request == prompts[1].request
    session.undo()
    console.print()
    console.print(Text("The bill", style="bold"))
    console.print(
        f"  {ledger.calls} calls, {ledger.tokens} tokens, {ledger.cached_share:.0%} from cache: "
        f"${ledger.price(RATES):.5f}; uncached: ${ledger.tokens * RATES.uncached:.5f}"
    )
    console.print(f"  call 2 rebuilt from the journal, byte for byte: {'yes' if rebuilt else 'no'}")
    console.print(f'  undo: the last message is again "{session.mind.line[-1].wire["content"]}"; nothing was deleted')


def _show_what_is_next(console: Console) -> None:
    console.print()
    console.print("Next: put the ten lines at the top of README.md into your own agent. Then")
    console.print("`inmind sessions` and `inmind show prompt SESSION` look into its memory")
    console.print("(they are in .venv/bin, if you came here by `make run`).")


def _summary(session: Session, prompts: Sequence[Prompt]) -> dict[str, Any]:
    ledger = session.ledger
    calls = [
        {
            "call": prompt.call,
            "tokens": dict(prompt.report.tokens),
            "tokens_used": prompt.report.tokens_used,
            "cached_prefix_tokens": prompt.report.cached_prefix_tokens,
            "anchor_moved": prompt.report.anchor_moved,
        }
        for prompt in prompts
    ]
    return {"calls": calls, "ledger": ledger.freeze(), "price": ledger.price(RATES)}


def _of_dream(night: Night) -> dict[str, Any]:
    notes = {"taken_in": list(night.waiting), "left": night.left}
    return {"by": night.dream.by, "notes": notes, "diff": night.dream.diff, "found": night.found}


def _served(prompt: Prompt) -> dict[str, int]:
    """Tokens by how the provider serves them."""
    report = prompt.report
    tail = report.tokens["changes"] + report.tokens["context_meta"]
    cached = 0 if report.cold else report.cached_prefix_tokens
    return {"cached": cached, "written": sum(report.tokens.values()) - tail - cached, "uncached": tail}


def _bar(prompt: Prompt, *, width: int) -> Text:
    served = _served(prompt)
    total = sum(served.values())
    bar, so_far = Text("  "), 0
    for kind, tokens in served.items():
        drawn = so_far * width // total
        so_far += tokens
        bar.append(_MARKS[kind] * (so_far * width // total - drawn), _COLOURS[kind])
    return bar


def _legend() -> Text:
    legend = Text("What the model would be sent: ")
    for kind, meaning in (("cached", "from cache"), ("written", "new"), ("uncached", "the tail, new on every call")):
        legend.append(f"{_MARKS[kind]} {meaning}  ", _COLOURS[kind])
    return legend


def _numbers(prompt: Prompt) -> Text:
    served = _served(prompt)
    price = sum(getattr(RATES, kind) * tokens for kind, tokens in served.items())
    line = Text(f"  {sum(served.values())} tokens: ")
    line.append(f"{served['cached']} from cache", _COLOURS["cached"]).append(", ")
    line.append(f"{served['written']} new", _COLOURS["written"]).append(", ")
    line.append(f"{served['uncached']} in the tail", _COLOURS["uncached"])
    return line.append(f"   ${price:.6f}")


def _parts(prompt: Prompt) -> Text:
    named = (f"{name.removeprefix('memory:')} {tokens}" for name, tokens in prompt.report.tokens.items() if tokens)
    return Text(f"  {' · '.join(named)}", style="dim")
