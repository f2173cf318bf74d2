"""What all of it runs on: versions, and which extras are there."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterable
from importlib import metadata

from inmind.apps.doctor.result import Check, Finding, Subject

VERSIONS = Check(Subject.SOFTWARE, "versions")
EXTRAS = Check(Subject.SOFTWARE, "extras")

_FOR_WORK_ON_INMIND = frozenset({"all", "bench", "dev", "docs"})
_OF_AN_EXTRA = re.compile(r"""^(?P<package>[\w.-]+)[^;]*;.*\bextra\s*==\s*['"](?P<extra>[\w-]+)['"]""")


def versions() -> Finding:
    return VERSIONS.ok(f"inmind {_version('inmind')}, Python {platform.python_version()}, {platform.system()}")


def extras() -> Finding:
    """As the package itself declares them; one that was not installed as a package, or not for us, declares none."""
    try:
        declared = metadata.requires("inmind") or ()
    except metadata.PackageNotFoundError:
        return EXTRAS.ok("not told: inmind is not installed as a package here")
    missing = missing_of(declared)
    there = ", ".join(extra for extra, packages in missing.items() if not packages) or "none"
    lacking = ",".join(extra for extra, packages in missing.items() if packages)
    return EXTRAS.ok(f'{there}; `pip install "inmind[{lacking}]"` brings the rest' if lacking else there)


def missing_of(requirements: Iterable[str]) -> dict[str, list[str]]:
    """Each extra that is for users, and the packages of it that are not installed."""
    missing: dict[str, list[str]] = {}
    for requirement in requirements:
        found = _OF_AN_EXTRA.match(requirement)
        if found and found["extra"] not in _FOR_WORK_ON_INMIND:
            packages = missing.setdefault(found["extra"], [])
            if not _version(found["package"]):
                packages.append(found["package"])
    return missing


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
