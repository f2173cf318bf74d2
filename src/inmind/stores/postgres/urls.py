"""URLs of one server for others than whom an operator's URL names.

They are written so that `home.checked_url` can tell what in them is a password, whatever anybody is called.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote, urlencode

from psycopg.conninfo import conninfo_to_dict

_PERSONAL = ("user", "password", "passfile", "options", "sslcert", "sslkey", "sslpassword", "application_name")
"""What one who connects says of itself, and no other should."""


def acting_as(url: str, role: str) -> str:
    """The same credential, with another role in force from the first statement on."""
    told = _told(url)
    escaped = "".join(f"\\{letter}" if letter == "\\" or letter.isspace() else letter for letter in role)
    told["options"] = f"{told.get('options', '')} -c role={escaped}".strip()
    return _url(told)


def let_in(url: str, role: str, password: str, *, usual: Mapping[str, str]) -> str:
    """The same database with another credential. `usual`: what the URL leaves open, and another machine cannot know."""
    told = {name: value for name, value in _told(url).items() if name not in _PERSONAL}
    there = {"host": told["hostaddr"]} if "hostaddr" in told else usual
    return _url({**there, **usual, **told, "user": role, **({"password": password} if password else {})})


def _told(url: str) -> dict[str, str]:
    return {name: str(value) for name, value in conninfo_to_dict(url).items() if value is not None}


def _url(told: Mapping[str, str]) -> str:
    rest = dict(told)
    who = quote(rest.pop("user", ""), safe="")
    who += f":{quote(rest.pop('password'), safe='')}" if "password" in rest else ""
    where = ""
    if (host := rest.get("host", "")) and host.isascii() and host.replace(".", "").replace("-", "").isalnum():
        where = rest.pop("host") + (f":{rest.pop('port')}" if "port" in rest else "")
    name = quote(rest.pop("dbname", ""), safe="")
    asked = f"?{urlencode(rest, quote_via=quote, safe='')}" if rest else ""
    return f"postgresql://{who}{'@' if who else ''}{where}/{name}{asked}"
