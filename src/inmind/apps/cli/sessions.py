"""`inmind sessions`: list the sessions."""

from __future__ import annotations

from typing import Any

import click

from inmind.apps.cli.console import (
    check_exists,
    collapse_whitespace,
    json_option,
    one_line_console,
    open_existing_memory,
    plain_table,
    print_json,
    print_text,
    resource_option,
)
from inmind.core.text import printable


@click.option("--here", is_flag=True, help="Only sessions started in the current folder.")
@resource_option
@click.option("--limit", type=int, metavar="N", help="Maximum number of sessions.")
@json_option
def sessions(here: bool, resource: str | None, limit: int | None, as_json: bool) -> None:
    """List the sessions, most recently used first."""
    with open_existing_memory() as memory:
        from rich.table import Column
        from rich.text import Text

        check_exists(memory, resource=resource)
        infos = memory.sessions(cwd="." if here else None, resource=resource, limit=limit)
        if as_json:
            return print_json([{**_info_fields(info), "folder": info.folder and str(info.folder)} for info in infos])
        if not infos:
            print_text(
                f"No matching sessions in {memory.location}."
                if here or resource
                else f"No sessions in {memory.location} yet."
            )
            return None
        columns = [Column(name, no_wrap=True) for name in ("session", "resource", "msgs", "calls", "last used (UTC)")]
        title, cwd = (
            Column(name, no_wrap=True, ratio=share) for name, share in (("title", 2), ("working directory", 1))
        )
        table = plain_table(columns[0], title, *columns[1:], cwd, expand=True)
        for info in infos:
            last_used = info.updated[:16].replace("T", " ")
            row = (
                info.id,
                collapse_whitespace(info.title),
                info.resource,
                str(info.messages),
                str(info.calls),
                last_used,
                collapse_whitespace(info.cwd),
            )
            table.add_row(*(Text(printable(cell)) for cell in row))  # a plain string would be parsed as markup
        one_line_console().print(table)
    return None


def _info_fields(info: Any) -> dict[str, Any]:
    return {name: getattr(info, name) for name in info.__slots__}
