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
    AsJson,
    chosen_place,
    line_by_line,
    look_into,
    plain_table,
    print_json,
    progress,
    say,
)
from inmind.apps.cli.exit_codes import leave
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

Name = Annotated[str, typer.Argument(metavar="NAME", help="Of the tenant, as listed by `inmind tenant list`.")]
PasswordStdin = Annotated[
    bool, typer.Option("--password-stdin", help="Take its password from the first line of stdin; else one is made.")
]


@tenant.command("create")
def create_(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Of the new tenant.")],
    password_stdin: PasswordStdin = False,
    as_json: AsJson = False,
) -> None:
    """Make a tenant: a role with a schema of its own, or a home. Prints its address, with its password, this once."""

    def tell(address: str) -> None:
        if as_json:
            return print_json({"tenant": name, "address": address})
        return print(printable(address), flush=True)

    with _tenants() as tenants:
        create(name, tenants, password=_password(tenants_have_some=_in_a_database(), asked=password_stdin), tell=tell)
        _say_what_lacks(name, tenants)


@tenant.command("list")
def list_(as_json: AsJson = False) -> None:
    """List the tenants there are. Their memories are not looked into."""
    with _tenants() as tenants:
        found = tenants.all()
        place = tenants.place
    if as_json:
        return print_json([asdict(one) for one in found])
    if not found:
        return say(f"No tenants in {place}.")
    table = plain_table("tenant", "size", "")
    for one in found:
        table.add_row(printable(one.name), f"{one.bytes:,} bytes", "" if one.admitted else "shut out")
    return line_by_line().print(table)


@tenant.command("export")
def export(
    name: Name,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Where to; - is stdout.")],
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file that is there.")] = False,
    as_json: AsJson = False,
) -> None:
    """Put all of a tenant into one file, as `inmind export` does, while it is in use."""
    from inmind.apps.cli.export_import import export as export_memory

    with _tenants() as tenants, tenants.entered(name) as place:
        look_into(place if isinstance(place, Path) else None, place if isinstance(place, str) else None)
        export_memory(file, force=force, as_json=as_json)


@tenant.command("move")
def move_(
    name: Name,
    to: Annotated[str, typer.Option("--to", metavar="URL|DIR", help="An operator's URL, or a folder of homes.")],
    keep: Annotated[bool, typer.Option("--keep", help="Copy: erase nothing here, whether or not it is used.")] = False,
    password_stdin: PasswordStdin = False,
    as_json: AsJson = False,
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

    with _tenants() as source, _tenants_at(to, "--to") as target, progress("moving") as watch:
        password = _password(tenants_have_some=is_database(to), asked=password_stdin)
        moved = move(name, source, target, keep=keep, password=password, tell=tell, watch=watch)
        places = source.place, target.place
        _say_what_lacks(name, target)
    if moved.copied.left_out and not keep:
        files = ", ".join(moved.copied.left_out)
        leave("FAILED", f"all but {files} is in {places[1]}; these have no place there, so nothing was erased here")
    if not as_json:
        done = "Moved" if moved.erased else "Copied"
        say(f"{done} {_told(moved.copied.inventory)} of tenant {name!r} from {places[0]} to {places[1]}.")


@tenant.command("erase")
def erase(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Erase all of a tenant, for good: its schema and its role, or its home. No other tenant is touched."""
    with _tenants() as tenants:
        if not yes and not _confirmed(f"Erase tenant {name!r} in {tenants.place}: {_there(tenants, name)}, for good?"):
            leave("FAILED", "not erased")
        was = tenants.erase(name)
    if as_json:
        streams = len(was.versions)
        return print_json({"tenant": name, "streams": streams, "events": was.events, "keys": was.keys})
    return say(f"Erased tenant {name!r}: {_told(was)}. Nothing is left of it.")


@contextmanager
def _tenants() -> Generator[Tenants]:
    with _tenants_at(chosen_place(), "--home") as tenants:
        yield tenants


@contextmanager
def _tenants_at(place: str | Path, field: str) -> Generator[Tenants]:
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


def _say_what_lacks(name: str, tenants: Tenants) -> None:
    if lacks := tenants.lacks(name):
        print(printable(f"inmind: {lacks}"), file=sys.stderr, flush=True)


def _in_a_database() -> bool:
    return is_database(chosen_place())


def _password(*, tenants_have_some: bool, asked: bool) -> str | None:
    if not asked:
        return None
    if not tenants_have_some:
        raise InvalidInput(field="--password-stdin", expected="a database: a home has no password")
    if sys.stdin.isatty():
        raise InvalidInput(field="--password-stdin", expected="a password in a pipe, not a terminal")
    return sys.stdin.readline().rstrip("\r\n")


def _confirmed(question: str) -> bool:
    if not sys.stdin.isatty():
        leave("INVALID_INPUT", "say --yes: nobody can be asked here")
    print(printable(f"{question} [y/N] "), end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().casefold() in ("y", "yes")


def _there(tenants: Tenants, name: str) -> str:
    try:
        return _told(tenants.inventory(name))
    except StoreError as error:
        return f"what cannot be counted ({error})"


def _told(inventory: Inventory) -> str:
    return f"{counted(len(inventory.versions), 'stream')}, {counted(inventory.events, 'event')}"
