"""inmind's parameters in a database URL, and URLs of the same server for other roles.

URLs are built so that `paths.check_database_url` can recognise the password in them, for any role name.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from urllib.parse import quote, urlencode

from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Conninfo

from inmind.core.frozen import frozen
from inmind.core.paths import check_database_url
from inmind.errors import InvalidInput

_CONNECTIONS, _SECONDS = "inmind_connections", "inmind_seconds"
_OWN_PARAMETERS = (_CONNECTIONS, _SECONDS)

_PERSONAL_PARAMETERS = (
    "user",
    "password",
    "passfile",
    "options",
    "sslcert",
    "sslkey",
    "sslpassword",
    "application_name",
    *_OWN_PARAMETERS,
)
"""Parameters that belong to one role and must not be passed on to another."""


@frozen(kw_only=True)
class UrlLimits:
    """Limits that the URL sets; None if it does not."""

    connections: int | None
    seconds: int | None
    """Timeout of a call."""


def limits_in(url: str) -> UrlLimits:
    parameters = _own_parameters(url)
    return UrlLimits(
        connections=_parse_limit(parameters, _CONNECTIONS, 1_000), seconds=_parse_limit(parameters, _SECONDS, 86_400)
    )


def invalid_parameters(url: str) -> InvalidInput:
    """Return the error for a URL that the driver refuses.

    The driver's message may contain the password.
    """
    known = [*_OWN_PARAMETERS, *(option.keyword.decode() for option in Conninfo.get_defaults())]
    for name in (pair.partition("=")[0] for pair in check_database_url(url, "url").partition("?")[2].split("&")):
        if name and name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f": did you mean {near[0]!r}?" if near else ""
            return InvalidInput(field="url", value=name, expected=f"known parameters{hint}")
    return InvalidInput(field="url", expected="postgresql://user:password@host:port/database?…")


def driver_url(url: str) -> str:
    """Return the URL without inmind's parameters."""
    address, _, query = url.partition("?")
    rest = "&".join(pair for pair in query.split("&") if pair.partition("=")[0] not in _OWN_PARAMETERS)
    return f"{address}?{rest}" if rest else address


def url_with_role(url: str, role: str) -> str:
    """Return a URL with the same credential that switches to another role on connecting."""
    parameters = _parameters(url)
    escaped = "".join(f"\\{letter}" if letter == "\\" or letter.isspace() else letter for letter in role)
    parameters["options"] = f"{parameters.get('options', '')} -c role={escaped}".strip()
    return _build_url(parameters)


def url_for_login(url: str, role: str, password: str, *, defaults: Mapping[str, str]) -> str:
    """Return a URL of the same database for another credential.

    `defaults`: values for parts that the URL leaves out.
    """
    parameters = {name: value for name, value in _parameters(url).items() if name not in _PERSONAL_PARAMETERS}
    host_defaults = {"host": parameters["hostaddr"]} if "hostaddr" in parameters else defaults
    return _build_url(
        {**host_defaults, **defaults, **parameters, "user": role, **({"password": password} if password else {})}
    )


def _parameters(url: str) -> dict[str, str]:
    parameters = {name: str(value) for name, value in conninfo_to_dict(driver_url(url)).items() if value is not None}
    return {**parameters, **_own_parameters(url)}


def _own_parameters(url: str) -> dict[str, str]:
    pairs = (pair.partition("=") for pair in url.partition("?")[2].split("&"))
    return {name: value for name, _, value in pairs if name in _OWN_PARAMETERS}


def _parse_limit(parameters: Mapping[str, str], name: str, maximum: int) -> int | None:
    if (value := parameters.get(name)) is None:
        return None
    if not value.isascii() or not value.isdigit() or not 1 <= int(value[:9]) <= maximum:
        raise InvalidInput(field=name, value=value, expected=f"a whole number from 1 to {maximum}")
    return int(value)


def _build_url(parameters: Mapping[str, str]) -> str:
    rest = dict(parameters)
    credentials = quote(rest.pop("user", ""), safe="")
    credentials += f":{quote(rest.pop('password'), safe='')}" if "password" in rest else ""
    address = ""
    if (host := rest.get("host", "")) and host.isascii() and host.replace(".", "").replace("-", "").isalnum():
        address = rest.pop("host") + (f":{rest.pop('port')}" if "port" in rest else "")
    name = quote(rest.pop("dbname", ""), safe="")
    query = f"?{urlencode(rest, quote_via=quote, safe='')}" if rest else ""
    return f"postgresql://{credentials}{'@' if credentials else ''}{address}/{name}{query}"
