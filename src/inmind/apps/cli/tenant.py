"""`inmind tenant`: for whoever runs memory for others, who never see each other.

An operator's URL, or a folder of homes, is what --db and --home name here. A tenant's own address is printed once, on
stdout and nowhere else: in a database it is a credential.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from inmind.apps.cli.console import (
    JsonOption,
    one_line_console,
    plain_table,
    print_json,
    print_text,
    progress_bar,
    select_place,
    selected_place,
)
from inmind.apps.cli.exit_codes import exit_with
from inmind.apps.tenants import tenants_at
from inmind.apps.tenants.move import Copied, create, move
from inmind.core.paths import default_home, is_database
from inmind.core.text import counted, printable
from inmind.errors import InvalidInput, StoreError
from inmind.store.tenants import Inventory, Tenants

tenant = typer.Typer(
    help="Keep several tenants apart, in one database or in one folder.",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
)

TenantName = Annotated[str, typer.Argument(metavar="NAME", help="Of the tenant, as listed by `inmind tenant list`.")]
PasswordStdin = Annotated[
    bool, typer.Option("--password-stdin", help="Take its password from the first line of stdin; else one is made.")
]


@tenant.command("create")
def create_(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Of the new tenant.")],
    password_stdin: PasswordStdin = False,
    as_json: JsonOption = False,
) -> None:
    """Make a tenant: a role with a schema of its own, or a home. Prints its address, with its password, this once."""

    def tell(address: str) -> None:
        if as_json:
            return print_json({"tenant": name, "address": address})
        return print(printable(address), flush=True)

    with _open_tenants() as tenants:
        create(name, tenants, password=_read_password(supported=_uses_database(), from_stdin=password_stdin), tell=tell)
        _warn_if_incomplete(name, tenants)


@tenant.command("list")
def list_(as_json: JsonOption = False) -> None:
    """List the tenants there are. Their memories are not looked into."""
    with _open_tenants() as tenants:
        found = tenants.all()
        place = tenants.place
    if as_json:
        return print_json([asdict(one) for one in found])
    if not found:
        return print_text(f"No tenants in {place}.")
    table = plain_table("tenant", "size", "")
    for one in found:
        table.add_row(printable(one.name), f"{one.bytes:,} bytes", "" if one.admitted else "shut out")
    return one_line_console().print(table)


@tenant.command("export")
def export(
    name: TenantName,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Where to; - is stdout.")],
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file that is there.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Put all of a tenant into one file, as `inmind export` does, while it is in use."""
    from inmind.apps.cli.export_import import export as export_memory

    with _open_tenants() as tenants, tenants.entered(name) as place:
        select_place(place if isinstance(place, Path) else None, place if isinstance(place, str) else None)
        export_memory(file, force=force, as_json=as_json)


@tenant.command("move")
def move_(
    name: TenantName,
    to: Annotated[str, typer.Option("--to", metavar="URL|DIR", help="An operator's URL, or a folder of homes.")],
    keep: Annotated[bool, typer.Option("--keep", help="Copy: erase nothing here, whether or not it is used.")] = False,
    password_stdin: PasswordStdin = False,
    as_json: JsonOption = False,
) -> None:
    """Move a tenant to another database or folder: copied, read back, let in there, and only then erased here.

    Prints its new address before anything is erased. Whatever happens meanwhile, one of the two has all of it: call
    again, and it goes on. What the tenant writes meanwhile is copied too; for the last of it who writes has to wait,
    and is then told that it is gone. Its agents have to be told the new address.
    """

    def tell(address: str, copied: Copied) -> None:
        if is_database(address) and not urlsplit(address).password:
            said = "it was let in there before: its password is the one that was printed then, or set another"
            print(f"inmind: {said} by --password-stdin", file=sys.stderr, flush=True)
        if not as_json:
            return print(printable(address), flush=True)
        told = {"streams": len(copied.inventory.versions), "events": copied.inventory.events}
        told |= {"keys": copied.inventory.keys, "sha256": copied.sha256, "left_out": copied.left_out}
        return print_json({"tenant": name, "address": address, **told})

    with _open_tenants() as source, _open_tenants_at(to, "--to") as target, progress_bar("moving") as watch:
        password = _read_password(supported=is_database(to), from_stdin=password_stdin)
        moved = move(name, source, target, keep=keep, password=password, tell=tell, watch=watch)
        places = source.place, target.place
        _warn_if_incomplete(name, target)
    if moved.copied.left_out and not keep:
        files = ", ".join(moved.copied.left_out)
        exit_with("FAILED", f"all but {files} is in {places[1]}; these have no place there, so nothing was erased here")
    if not as_json:
        done = "Moved" if moved.erased else "Copied"
        print_text(
            f"{done} {_inventory_text(moved.copied.inventory)} of tenant {name!r} from {places[0]} to {places[1]}."
        )


@tenant.command("erase")
def erase(
    name: TenantName,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Erase all of a tenant, for good: its schema and its role, or its home. No other tenant is touched."""
    with _open_tenants() as tenants:
        if not yes and not _confirm(
            f"Erase tenant {name!r} in {tenants.place}: {_contents_text(tenants, name)}, for good?"
        ):
            exit_with("FAILED", "not erased")
        was = tenants.erase(name)
    if as_json:
        streams = len(was.versions)
        return print_json({"tenant": name, "streams": streams, "events": was.events, "keys": was.keys})
    return print_text(f"Erased tenant {name!r}: {_inventory_text(was)}. Nothing is left of it.")


@contextmanager
def _open_tenants() -> Generator[Tenants]:
    with _open_tenants_at(selected_place(), "--home") as tenants:
        yield tenants


@contextmanager
def _open_tenants_at(place: str | Path, field: str) -> Generator[Tenants]:
    """The usual home is somebody's, and no folder of homes."""
    if not is_database(place) and Path(place).expanduser().absolute() == default_home().absolute():
        expected = "a folder of homes, which the usual home is not; or an operator's URL (--db)"
        raise InvalidInput(field=field, value=str(place), expected=expected)
    try:
        opened = tenants_at(place)
    except InvalidInput as error:
        flag = "--db" if field == "--home" and is_database(place) else field
        raise InvalidInput(field=flag, value=error.value, expected=error.expected) from error
    with opened as tenants:
        yield tenants


def _warn_if_incomplete(name: str, tenants: Tenants) -> None:
    if lacks := tenants.lacks(name):
        print(printable(f"inmind: {lacks}"), file=sys.stderr, flush=True)


def _uses_database() -> bool:
    return is_database(selected_place())


def _read_password(*, supported: bool, from_stdin: bool) -> str | None:
    if not from_stdin:
        return None
    if not supported:
        raise InvalidInput(field="--password-stdin", expected="a database: a home has no password")
    if sys.stdin.isatty():
        raise InvalidInput(field="--password-stdin", expected="a password in a pipe, not a terminal")
    return sys.stdin.readline().rstrip("\r\n")


def _confirm(question: str) -> bool:
    if not sys.stdin.isatty():
        exit_with("INVALID_INPUT", "say --yes: nobody can be asked here")
    print(printable(f"{question} [y/N] "), end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().casefold() in ("y", "yes")


def _contents_text(tenants: Tenants, name: str) -> str:
    try:
        return _inventory_text(tenants.inventory(name))
    except StoreError as error:
        return f"what cannot be counted ({error})"


def _inventory_text(inventory: Inventory) -> str:
    return f"{counted(len(inventory.versions), 'stream')}, {counted(inventory.events, 'event')}"
