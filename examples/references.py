"""The resolver and the guard: users say "it", tools need ids, and the model invents one.

Tools and model are scripted, so this runs anywhere. The memory between them is real: it extracts the ids from tool
results, resolves references, and flags the id that was never seen.
"""

from __future__ import annotations

import tempfile
from typing import Any

from inmind import Memory, Session

TOOL_CALLS: list[tuple[str, dict[str, Any], Any]] = [
    ("cms_createPage", {"title": "About Us"}, {"success": True, "page": {"id": "page-123", "title": "About Us"}}),
    ("cms_createPage", {"title": "Contact"}, {"success": True, "page": {"id": "page-124", "title": "Contact"}}),
    (
        "cms_searchImages",
        {"query": "team"},
        {"matches": [{"id": f"img-{n}", "filename": f"team-{n}.jpg"} for n in range(1, 6)]},
    ),
    ("cms_updatePage", {"pageId": "page-123", "title": "Our Team"}, {"success": True}),
    ("cms_deletePage", {"pageId": "page-124"}, {"success": True}),
]


def observe(session: Session, number: int) -> None:
    tool, arguments, result = TOOL_CALLS[number]
    session.observe(tool, arguments, result)
    print(f"[{tool}]")


def resolve(session: Session, text: str) -> None:
    print(f"  {text!r} is {session.resolve(text)}")


def main() -> None:
    with tempfile.TemporaryDirectory() as home, Memory.open(home) as memory:
        session = memory.session("site", resource="ada")
        observe(session, 0)
        resolve(session, "add a hero section to it")
        observe(session, 1)
        resolve(session, "now the other one")
        observe(session, 2)
        resolve(session, "take the second image")
        observe(session, 3)
        resolve(session, "open the about page")
        observe(session, 4)
        resolve(session, "rename it")
        resolve(session, "restore the deleted page")
        print(session.check_call("cms_updatePage", {"pageId": "page-213", "imageId": "img-2"}))
        prompt = session.prepare([{"role": "user", "content": "Put the second image on it."}])
        print(prompt.messages[0]["content"].split("\n\n")[-1])


if __name__ == "__main__":
    main()
