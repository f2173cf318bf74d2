"""The pages that nobody writes: every public name, error, setting, command and tool.

They are made anew with every site, so they cannot say what the code does not, and they are not committed.
"""

from __future__ import annotations

from collections.abc import Iterator

from docs.building.commands import commands_page
from docs.building.names import PAGES, names_page, twins_page
from docs.building.tools import tools_page

FOLDER = "docs/reference/names"


def reference() -> Iterator[tuple[str, str]]:
    """Each page of the reference by its path."""
    index = ["# Every name", "", "Made of the docstrings, by `make docs`.", ""]
    for name, page in PAGES.items():
        index.append(f"- [{page.title}]({name}.md): {page.about}")
        yield f"{FOLDER}/{name}.md", names_page(page)
    index.append("- [Async](aio.md): the same names, awaited.")
    index.append("- [Every option](commands.md): the command line, command by command.")
    index.append("- [Tools](tools.md): what a model may call, by itself or over MCP.")
    yield f"{FOLDER}/aio.md", twins_page()
    yield f"{FOLDER}/commands.md", commands_page()
    yield f"{FOLDER}/tools.md", tools_page()
    yield f"{FOLDER}/README.md", "\n".join(index) + "\n"
