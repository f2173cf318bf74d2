"""Checks of config.toml, the model for dreams, and the installed software.

Dreams fall back to rules, so a problem with the model is only a warning. An invalid config.toml is trouble: it prevents
opening the home.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from inmind.apps.doctor.result import Check, DoctorFinding, Subject
from inmind.core.paths import CONFIG
from inmind.core.settings import ModelSettings, Settings, load_settings
from inmind.dreams.models import Question, model_from_settings
from inmind.errors import OMITTED, InmindError, InvalidInput

CONFIG_CHECK = Check(Subject.PLACE, CONFIG)
ENDPOINT = Check(Subject.MODEL, "endpoint")

MODEL_TIMEOUT_SECONDS = 5.0
"""Timeout of the test call."""

_QUESTION = Question(system="Answer with one word.", prompt="Say: ready", max_tokens=1)


def check_settings(home: Path) -> tuple[Settings | None, DoctorFinding]:
    """Parse config.toml. An unknown setting is trouble: opening the home refuses it."""
    path = home / CONFIG
    if path.exists() and not path.is_file():  # opening a pipe would block
        return None, CONFIG_CHECK.trouble(
            f"{path} is not a regular file", f"`{shlex.join(['mv', str(path), f'{path}.aside'])}`"
        )
    try:
        parsed = load_settings(home)
    except InvalidInput as error:
        return None, CONFIG_CHECK.trouble(
            describe_setting_error(error), f"correct it in {path}, or move the file away to use the defaults"
        )
    return parsed, CONFIG_CHECK.ok("all settings are valid" if path.exists() else "none: using the defaults")


def describe_setting_error(error: InvalidInput) -> str:
    """The invalid setting and its expected value."""
    name = error.field.removeprefix("settings.")
    setting = error.value if name == CONFIG else name if error.value is OMITTED else f"{name} = {error.value!r}"
    return f"{setting}: expected {error.expected}"


def check_model(settings: ModelSettings, *, online: bool) -> DoctorFinding:
    try:
        model = model_from_settings(settings)
    except InvalidInput as error:
        return ENDPOINT.warning(f"{error.field}: expected {error.expected}", f"set that under [model] in {CONFIG}")
    if model is None:
        return ENDPOINT.ok("none: dreams use rules")
    if settings.key_env and not os.environ.get(settings.key_env):
        return ENDPOINT.warning(
            f"{model.name}: its key is looked for in ${settings.key_env}, which is not set",
            f"`export {settings.key_env}=…`",
        )
    if not online:
        return ENDPOINT.ok(f"{model.name} at {settings.url or 'its provider'}, not called")
    try:
        model.ask(_QUESTION, seconds=MODEL_TIMEOUT_SECONDS)
    except InmindError as error:
        reason = getattr(error, "reason", str(error))
        fix = f"start it, or correct url, name and key_env under [model] in {CONFIG}; dreams use rules until then"
        return ENDPOINT.warning(f"{model.name}: {reason}", fix)
    return ENDPOINT.ok(f"{model.name} answers")


VERSIONS = Check(Subject.SOFTWARE, "versions")
EXTRAS = Check(Subject.SOFTWARE, "extras")

_DEVELOPMENT_EXTRAS = frozenset({"all", "bench", "dev", "docs"})
_EXTRA_REQUIREMENT = re.compile(r"""^(?P<package>[\w.-]+)[^;]*;.*\bextra\s*==\s*['"](?P<extra>[\w-]+)['"]""")


def check_versions() -> DoctorFinding:
    return VERSIONS.ok(f"inmind {_version('inmind')}, Python {platform.python_version()}, {platform.system()}")


def check_extras() -> DoctorFinding:
    """Installed and missing extras, as declared by the installed package."""
    try:
        declared = metadata.requires("inmind") or ()
    except metadata.PackageNotFoundError:
        return EXTRAS.ok("unknown: inmind is not installed as a package")
    missing = missing_packages(declared)
    installed = ", ".join(extra for extra, packages in missing.items() if not packages) or "none"
    not_installed = ",".join(extra for extra, packages in missing.items() if packages)
    return EXTRAS.ok(
        f'{installed}; `pip install "inmind[{not_installed}]"` installs the rest' if not_installed else installed
    )


def missing_packages(requirements: Iterable[str]) -> dict[str, list[str]]:
    """For each user-facing extra, its packages that are not installed."""
    missing: dict[str, list[str]] = {}
    for requirement in requirements:
        match = _EXTRA_REQUIREMENT.match(requirement)
        if match and match["extra"] not in _DEVELOPMENT_EXTRAS:
            packages = missing.setdefault(match["extra"], [])
            if not _version(match["package"]):
                packages.append(match["package"])
    return missing


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
