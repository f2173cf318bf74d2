"""`inmind tenant`: for operators who run memory for several isolated tenants.

--db and --home name an operator's URL or a folder of homes here. A tenant's address is printed once, on stdout only: in
a database it contains a credential.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import click

from inmind.apps.cli.console import (
    json_option,
    one_line_console,
    plain_table,
    print_json,
    print_text,
    progress_bar,
    select_place,
    selected_place,
)
from inmind.apps.cli.exit_codes import exit_with
from inmind.apps.tenants import open_tenants
from inmind.apps.tenants.move import TenantCopy, create, move
from inmind.core.paths import default_home, is_database
from inmind.core.text import count_noun, printable
from inmind.errors import InvalidInput, StoreError
from inmind.store.tenants import Inventory, Tenants

name_argument = click.argument("name", help="Tenant, as listed by `inmind tenant list`.")
password_option = click.option(
    "--password-stdin",
    is_flag=True,
    help="Read the password from the first line of stdin; default: generate one.",
)


@click.argument("name", help="Name of the new tenant.")
@password_option
@json_option
def create_(name: str, password_stdin: bool, as_json: bool) -> None:
    """Create a tenant: a role and a schema, or a home.

    Prints its address, with the password, once.
    """

    def print_address(address: str) -> None:
        if as_json:
            return print_json({"tenant": name, "address": address})
        return print(printable(address), flush=True)

    with _open_tenants() as tenants:
        create(
            name,
            tenants,
            password=_read_password(supported=_uses_database(), from_stdin=password_stdin),
            on_address=print_address,
        )
        _warn_if_incomplete(name, tenants)


@json_option
def list_(as_json: bool) -> None:
    """List the tenants. Their memories are not opened."""
    with _open_tenants() as tenants:
        listed = tenants.list_all()
        place = tenants.place
    if as_json:
        return print_json(
            [{"name": entry.name, "admitted": entry.can_log_in, "bytes": entry.bytes} for entry in listed]
        )
    if not listed:
        return print_text(f"No tenants in {place}.")
    table = plain_table("tenant", "size", "")
    for entry in listed:
        table.add_row(printable(entry.name), f"{entry.bytes:,} bytes", "" if entry.can_log_in else "no access")
    return one_line_console().print(table)


@name_argument
@click.argument("file", help="Target file; - is stdout.")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@json_option
def export(name: str, file: str, force: bool, as_json: bool) -> None:
    """Export a tenant into one file, like `inmind export`. The tenant may be in use."""
    from inmind.apps.cli.export_import import export as export_memory

    with _open_tenants() as tenants, tenants.open_as_operator(name) as place:
        select_place(place if isinstance(place, Path) else None, place if isinstance(place, str) else None)
        export_memory(file, None, force, as_json)


@name_argument
@click.option("--to", required=True, metavar="URL|DIR", help="Target: an operator's URL, or a folder of homes.")
@click.option("--keep", is_flag=True, help="Copy only: erase nothing at the source.")
@password_option
@json_option
def move_(name: str, to: str, keep: bool, password_stdin: bool, as_json: bool) -> None:
    """Move a tenant to another database or folder.

    The tenant is copied and verified, gets access there, and is then erased here. Prints the new address before
    anything is erased. One of the two places always has everything: if the move is interrupted, run it again and it
    continues. Writers wait meanwhile, and then get an error that the tenant is gone. Its agents need the new address.
    """

    def print_address(address: str, copied: TenantCopy) -> None:
        if is_database(address) and not urlsplit(address).password:
            message = "the tenant already has access there: its password is the one printed then; set a new one"
            print(f"inmind: {message} with --password-stdin", file=sys.stderr, flush=True)
        if not as_json:
            return print(printable(address), flush=True)
        counts = {"streams": len(copied.inventory.versions), "events": copied.inventory.events}
        counts |= {"keys": copied.inventory.keys, "sha256": copied.sha256, "left_out": copied.left_out}
        return print_json({"tenant": name, "address": address, **counts})

    with _open_tenants() as source, _open_tenants_at(to, "--to") as target, progress_bar("moving") as watch:
        password = _read_password(supported=is_database(to), from_stdin=password_stdin)
        moved = move(name, source, target, keep=keep, password=password, on_address=print_address, watch=watch)
        places = source.place, target.place
        _warn_if_incomplete(name, target)
    if moved.copy.left_out and not keep:
        files = ", ".join(moved.copy.left_out)
        exit_with(
            "FAILED", f"copied to {places[1]} except {files}, which cannot be stored there; nothing was erased here"
        )
    if not as_json:
        done = "Moved" if moved.erased else "Copied"
        print_text(
            f"{done} {_inventory_text(moved.copy.inventory)} of tenant {name!r} from {places[0]} to {places[1]}."
        )


@name_argument
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@json_option
def erase(name: str, yes: bool, as_json: bool) -> None:
    """Erase a tenant permanently: its schema and role, or its home.

    Other tenants are not touched.
    """
    with _open_tenants() as tenants:
        if not yes and not _confirm(
            f"Erase tenant {name!r} in {tenants.place} permanently ({_contents_text(tenants, name)})?"
        ):
            exit_with("FAILED", "not erased")
        inventory = tenants.erase(name)
    if as_json:
        streams = len(inventory.versions)
        return print_json({"tenant": name, "streams": streams, "events": inventory.events, "keys": inventory.keys})
    return print_text(f"Erased tenant {name!r}: {_inventory_text(inventory)}.")


tenant = {"create": create_, "list": list_, "export": export, "move": move_, "erase": erase}


@contextmanager
def _open_tenants() -> Generator[Tenants]:
    with _open_tenants_at(selected_place(), "--home") as tenants:
        yield tenants


@contextmanager
def _open_tenants_at(place: str | Path, field: str) -> Generator[Tenants]:
    """Open the tenants of a database or folder.

    The default home is refused: it belongs to one user.
    """
    if not is_database(place) and Path(place).expanduser().absolute() == default_home().absolute():
        expected = "a folder of homes, not the default home; or an operator's URL (--db)"
        raise InvalidInput(field=field, value=str(place), expected=expected)
    try:
        opened = open_tenants(place)
    except InvalidInput as error:
        flag = "--db" if field == "--home" and is_database(place) else field
        raise InvalidInput(field=flag, value=error.value, expected=error.expected) from error
    with opened as tenants:
        yield tenants


def _warn_if_incomplete(name: str, tenants: Tenants) -> None:
    if warning := tenants.missing_features(name):
        print(printable(f"inmind: {warning}"), file=sys.stderr, flush=True)


def _uses_database() -> bool:
    return is_database(selected_place())


def _read_password(*, supported: bool, from_stdin: bool) -> str | None:
    if not from_stdin:
        return None
    if not supported:
        raise InvalidInput(field="--password-stdin", expected="a database: a home has no password")
    if sys.stdin.isatty():
        raise InvalidInput(field="--password-stdin", expected="a password on stdin, not a terminal")
    return sys.stdin.readline().rstrip("\r\n")


def _confirm(question: str) -> bool:
    if not sys.stdin.isatty():
        exit_with("INVALID_INPUT", "stdin is not a terminal: pass --yes")
    print(printable(f"{question} [y/N] "), end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().casefold() in ("y", "yes")


def _contents_text(tenants: Tenants, name: str) -> str:
    try:
        return _inventory_text(tenants.inventory(name))
    except StoreError as error:
        return f"contents unknown: {error}"


def _inventory_text(inventory: Inventory) -> str:
    return f"{count_noun(len(inventory.versions), 'stream')}, {count_noun(inventory.events, 'event')}"
