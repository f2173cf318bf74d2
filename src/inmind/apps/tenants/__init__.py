"""For operators: tenants made, moved and erased, in a database or in a folder of homes."""

from __future__ import annotations

from pathlib import Path

from inmind.core.paths import is_database, shown_url
from inmind.errors import InvalidInput
from inmind.store.tenants import Tenants


def tenants_at(place: str | Path) -> Tenants:
    """Those of a folder of homes, or of a database by an operator's URL."""
    if not is_database(place):
        from inmind.apps.tenants.folders import TenantHomes

        return TenantHomes(Path(place))
    try:
        from inmind.store.postgres.tenants import TenantRoles
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("psycopg"):
            raise
        expected = 'the extra that databases need: pip install "inmind[postgres]"'
        raise InvalidInput(field="url", value=shown_url(str(place)), expected=expected) from error
    return TenantRoles(str(place))
