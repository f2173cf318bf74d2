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
    CommandResult,
    json_option,
    print_json,
    print_text,
    prints_result,
    progress_bar,
    select_place,
    selected_place,
    table,
)
from inmind.apps.cli.exit_codes import exit_with
from inmind.apps.cli.home_commands import export as export_memory
from inmind.apps.tenants import TenantCopy, create, move, open_tenants
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
    with _open_tenants() as tenants:
        password = _read_password(selected_place()) if password_stdin else None
        create(name, tenants, password=password, on_address=lambda address: _print_address(address, name, as_json))
        _warn_if_incomplete(name, tenants)


@prints_result
def list_() -> CommandResult:
    """List the tenants. Their memories are not opened."""
    with _open_tenants() as tenants:
        listed, place = tenants.list_all(), tenants.place
    data = [{"name": entry.name, "admitted": entry.can_log_in, "bytes": entry.bytes} for entry in listed]
    rows = ((entry.name, f"{entry.bytes:,} bytes", "" if entry.can_log_in else "no access") for entry in listed)
    return data, [table(("tenant", "size", ""), rows, wide=True)] if listed else f"No tenants in {place}."


@name_argument
@click.argument("to", metavar="FILE", help="Target file; - is stdout.")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@json_option
def export(name: str, to: str, force: bool, as_json: bool) -> None:
    """Export a tenant into one file, like `inmind export`. The tenant may be in use."""
    with _open_tenants() as tenants, tenants.open_as_operator(name) as place:
        select_place(place if isinstance(place, Path) else None, place if isinstance(place, str) else None)
        export_memory(to, None, force, as_json)


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
        counts = {**_counts(copied.inventory), "sha256": copied.sha256, "left_out": copied.left_out}
        _print_address(address, name, as_json, **counts)

    with _open_tenants() as source, _open_tenants(to, "--to") as target, progress_bar("moving") as watch:
        password = _read_password(to) if password_stdin else None
        moved = move(name, source, target, keep=keep, password=password, on_address=print_address, watch=watch)
        _warn_if_incomplete(name, target)
    if moved.left_out and not keep:
        files = ", ".join(moved.left_out)
        message = f"copied to {target.place} except {files}, which cannot be stored there; nothing was erased here"
        exit_with("FAILED", message)
    if not as_json:
        done, what = "Moved" if moved.erased else "Copied", _describe_inventory(moved.inventory)
        print_text(f"{done} {what} of tenant {name!r} from {source.place} to {target.place}.")


@name_argument
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@prints_result
def erase(name: str, yes: bool) -> CommandResult:
    """Erase a tenant permanently: its schema and role, or its home.

    Other tenants are not touched.
    """
    with _open_tenants() as tenants:
        if not yes:
            try:
                contents = _describe_inventory(tenants.inventory(name))
            except StoreError as error:
                contents = f"contents unknown: {error}"
            _confirm(f"Erase tenant {name!r} in {tenants.place} permanently ({contents})?")
        inventory = tenants.erase(name)
    return {"tenant": name, **_counts(inventory)}, f"Erased tenant {name!r}: {_describe_inventory(inventory)}."


tenant = {"create": create_, "list": list_, "export": export, "move": move_, "erase": erase}


@contextmanager
def _open_tenants(place: str | Path | None = None, field: str = "--home") -> Generator[Tenants]:
    """Open the tenants of a database or folder; by default, of the selected one.

    The default home is refused: it belongs to one user.
    """
    place = place or selected_place()
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


def _print_address(address: str, name: str, as_json: bool, **facts: object) -> None:
    if as_json:
        return print_json({"tenant": name, "address": address, **facts})
    return print_text(address)


def _warn_if_incomplete(name: str, tenants: Tenants) -> None:
    if warning := tenants.missing_features(name):
        print(printable(f"inmind: {warning}"), file=sys.stderr, flush=True)


def _read_password(place: str | Path) -> str:
    """The first line of stdin, as the password of a tenant in this place."""
    if not is_database(place):
        raise InvalidInput(field="--password-stdin", expected="a database: a home has no password")
    if sys.stdin.isatty():
        raise InvalidInput(field="--password-stdin", expected="a password on stdin, not a terminal")
    return sys.stdin.readline().rstrip("\r\n")


def _confirm(question: str) -> None:
    if not sys.stdin.isatty():
        exit_with("INVALID_INPUT", "stdin is not a terminal: pass --yes")
    print(printable(f"{question} [y/N] "), end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().casefold() not in ("y", "yes"):
        exit_with("FAILED", "not erased")


def _counts(inventory: Inventory) -> dict[str, int]:
    return {"streams": len(inventory.versions), "events": inventory.events, "keys": inventory.keys}


def _describe_inventory(inventory: Inventory) -> str:
    return f"{count_noun(len(inventory.versions), 'stream')}, {count_noun(inventory.events, 'event')}"
