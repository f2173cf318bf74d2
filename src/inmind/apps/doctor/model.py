"""The model that dreams ask: whether config.toml can be read, names one, and whether that one answers.

No dream depends on it, so nothing that is wrong with it is trouble; only what keeps the home from being opened is.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from inmind.apps.doctor.result import Check, Finding, Subject
from inmind.core.paths import CONFIG
from inmind.core.settings import ModelSettings, Settings, settings_of
from inmind.dreams.models import Question, model_from_settings
from inmind.errors import OMITTED, InmindError, InvalidInput

CONFIGURED = Check(Subject.PLACE, CONFIG)
ENDPOINT = Check(Subject.MODEL, "endpoint")

SECONDS = 5.0
"""That somebody waits for the answer to one word."""

_QUESTION = Question(system="Answer with one word.", prompt="Say: ready", max_tokens=1)


def settings(home: Path) -> tuple[Settings | None, Finding]:
    """What nobody knows is refused when a home is opened, so it keeps everybody out."""
    path = home / CONFIG
    if path.exists() and not path.is_file():  # whoever opens a pipe to read it waits for ever
        return None, CONFIGURED.trouble(
            f"{path} is not a plain file", f"`{shlex.join(['mv', str(path), f'{path}.aside'])}`"
        )
    try:
        told = settings_of(home)
    except InvalidInput as error:
        return None, CONFIGURED.trouble(
            refused(error), f"correct that in {path}, or move the file away: all of it has defaults"
        )
    return told, CONFIGURED.ok("every setting is known" if path.exists() else "none: all settings are the usual ones")


def refused(error: InvalidInput) -> str:
    """Which setting it is, and what it should be."""
    name = error.field.removeprefix("settings.")
    what = error.value if name == CONFIG else name if error.value is OMITTED else f"{name} = {error.value!r}"
    return f"{what}: expected {error.expected}"


def endpoint(told: ModelSettings, *, online: bool) -> Finding:
    try:
        model = model_from_settings(told)
    except InvalidInput as error:
        return ENDPOINT.warning(f"{error.field}: expected {error.expected}", f"set that under [model] in {CONFIG}")
    if model is None:
        return ENDPOINT.ok("none: dreams go by rules")
    if told.key_env and not os.environ.get(told.key_env):
        return ENDPOINT.warning(
            f"{model.name}: its key is looked for in ${told.key_env}, which is not set", f"`export {told.key_env}=…`"
        )
    if not online:
        return ENDPOINT.ok(f"{model.name} at {told.url or 'its provider'}, not asked")
    try:
        model.ask(_QUESTION, seconds=SECONDS)
    except InmindError as error:
        reason = getattr(error, "reason", str(error))
        mend = f"start it, or correct url, name and key_env under [model] in {CONFIG}; dreams go by rules meanwhile"
        return ENDPOINT.warning(f"{model.name}: {reason}", mend)
    return ENDPOINT.ok(f"{model.name} answers")
