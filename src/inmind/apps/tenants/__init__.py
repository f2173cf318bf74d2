"""Create, move and erase tenants, in a database or in a folder of homes. For operators."""

from __future__ import annotations

from pathlib import Path

from inmind.core.paths import is_database, redact_url
from inmind.errors import InvalidInput
from inmind.store.tenants import Tenants


def open_tenants(place: str | Path) -> Tenants:
    """Tenants of a folder of homes, or of a database given by an operator's URL."""
    if not is_database(place):
        from inmind.apps.tenants.folders import TenantHomes

        return TenantHomes(Path(place))
    try:
        from inmind.store.postgres.tenants import TenantRoles
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("psycopg"):
            raise
        expected = 'the postgres extra: pip install "inmind[postgres]"'
        raise InvalidInput(field="url", value=redact_url(str(place)), expected=expected) from error
    return TenantRoles(str(place))
