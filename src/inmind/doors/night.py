"""The second part of the demonstration: a day leaves notes and a mood, and a dream makes a state of them.

All that flows between the agent, memory/scratch.md, MEMORY.md and the next prompt flows once, for everybody to see.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from inmind import Memory, Prompt, Session
from inmind.documents import SCRATCH
from inmind.doors.diffs import coloured
from inmind.doors.resources import bar
from inmind.doors.story import Said, assistant, call, result, shown, user
from inmind.dreams import Dream
from inmind.frozen import frozen
from inmind.notes import notes_in
from inmind.text import counted, printable

QUESTION = "alt texts"

NOTES_IT = call("n1", "working_memory_note", note="Ada prefers alt texts in English.")

HAPPENS = (
    (call("p1", "cms_publish", page="page-123"), result("p1", error="img-789 has no alt text")),
    (call("p2", "cms_publish", page="page-123"), result("p2", page={"id": "page-123", "status": "published"})),
    (assistant("About Us is online."), user("Perfect, great work!")),
)
"""Before each of the agent's next calls."""


@frozen(kw_only=True)
class Night:
    """What came of it."""

    waiting: tuple[str, ...]
    """Notes that waited for the dream."""
    dream: Dream
    left: int
    """Notes that wait after it."""
    found: str


def spend(console: Console, memory: Memory, session: Session, messages: Sequence[Said]) -> Night:
    """From the last message of a day to the first prompt of the next."""
    said = [*messages, *_noted(console, session)]
    _lived(console, memory, session, said)
    waiting = _notes(session)
    _bullets(console, f"{SCRATCH}, which stands in every prompt until a dream:", waiting)
    dream = _dreamt(console, memory, session.resource)
    left = len(_notes(session))
    console.print(f"  Taken in: {counted(len(dream.notes), 'note')}. Left in {SCRATCH}: {left}.")
    found = _woken(console, memory, session.resource)
    return Night(waiting=waiting, dream=dream, left=left, found=found)


def _noted(console: Console, session: Session) -> list[Said]:
    _title(console, "The agent notes what must outlast the conversation.")
    noted = [NOTES_IT, *map(dict, session.record(NOTES_IT).results)]
    console.print(*map(shown, noted), sep="\n")
    return noted


def _lived(console: Console, memory: Memory, session: Session, said: list[Said]) -> None:
    _title(console, "A call fails, then works, and the user is glad of it. That is felt.")
    for more in HAPPENS:
        said += more
        session.prepare(said)
        console.print(*map(shown, more), sep="\n")
    felt = memory.affect(session.resource)
    for level, value in felt.levels.named.items():
        console.print(Text("  ").append(bar(level, value)))
    console.print(f"  mood: {felt.mood}")


def _dreamt(console: Console, memory: Memory, resource: str) -> Dream:
    phases: list[str] = []
    dream = memory.dream(resource, watch=lambda phase, _: phases.append(phase))
    _title(console, f"A dream, {' → '.join(phases)}, by {dream.by}. MEMORY.md:")
    for line in list(coloured(dream.diff))[2:]:
        if line.plain.strip("+ "):
            console.print(Text("  ").append(line))
    return dream


def _woken(console: Console, memory: Memory, resource: str) -> str:
    _title(console, "The next morning, a new session: its first prompt has the state.")
    morning = memory.session("next-morning", resource=resource)
    for line in _state_in(morning.prepare([user("Add a picture of the lake.")])):
        console.print(Text(f"  {printable(line)}", style="dim"))
    found = next((hit.passage for hit in morning.search(QUESTION, limit=1, sources=["memory"])), "")
    _bullets(console, f"and memory_search({QUESTION!r}) finds the note itself:", [found])
    return found


def _notes(session: Session) -> tuple[str, ...]:
    return tuple(note.text for note in notes_in(session.belongings.documents.text(SCRATCH)))


def _state_in(prompt: Prompt) -> list[str]:
    """The block as the model reads it, without its headings."""
    text = "\n".join(str(message["content"]) for message in prompt.messages)
    block = text.partition('<memory layer="state">')[2].partition("</memory>")[0]
    return [line for line in block.splitlines() if line.startswith(("-", "_"))]


def _title(console: Console, text: str) -> None:
    console.print()
    console.print(Text(text, style="bold"))


def _bullets(console: Console, heading: str, texts: Sequence[str]) -> None:
    console.print(Text(f"  {heading}", style="dim"))
    for text in texts:
        console.print(Text(f"    - {printable(text)}", style="dim"))
