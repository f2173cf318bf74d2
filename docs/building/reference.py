"""Generated pages of the reference: every public name, error, setting, command and tool.

They are generated with each build of the site from docstrings and schemas, and are not committed.
"""

from __future__ import annotations

from collections.abc import Iterator

from docs.building.commands import commands_page
from docs.building.names import PAGES, async_page, names_page
from docs.building.tools import tools_page

FOLDER = "docs/reference/names"


def reference() -> Iterator[tuple[str, str]]:
    """Each page of the reference by its path."""
    index = ["# Every name", "", "Generated from the docstrings by `make docs`.", ""]
    for name, page in PAGES.items():
        index.append(f"- [{page.title}]({name}.md): {page.about}")
        yield f"{FOLDER}/{name}.md", async_page() if name == "async" else names_page(page)
    index.append("- [Every option](commands.md): the command line, command by command.")
    index.append("- [Tools](tools.md): the tools of the model, in a session and over MCP.")
    yield f"{FOLDER}/commands.md", commands_page()
    yield f"{FOLDER}/tools.md", tools_page()
    yield f"{FOLDER}/README.md", "\n".join(index) + "\n"
