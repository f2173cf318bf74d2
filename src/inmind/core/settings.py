"""What a memory can be told to do otherwise: config.toml, or `Memory.open(settings=…)`.

In a home it is a file; a database has it as a document, for all who work on it.

    [dream]
    enabled = true
    interval_minutes = 120
    min_crystals = 5

    [consolidation]
    interval_minutes = 30

    [search]
    sources = ["memory", "sessions"]

    [affect]
    enabled = true

    [model]                       # that dreams ask, and chats talk to; none: dreams are made by rules
    provider = "openai"           # or "anthropic"; any server that speaks like it
    url = "http://127.0.0.1:8080/v1"
    name = "some-model"
    key_env = "SOME_API_KEY"      # the name of a variable, never a key
    window = 32768                # tokens that it takes, where the server does not say

    [limits]                      # of all that works on this memory together; 0: none
    model_calls_per_minute = 60
    price_per_day = 5.0

    [worker]
    stalled_seconds = 30

A setting that nobody knows is refused: whoever misspells `enabled` would believe that something is off.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import field
from functools import cache
from pathlib import Path
from typing import Any, Final, cast

from inmind.core.frozen import frozen
from inmind.core.paths import CONFIG
from inmind.errors import InvalidInput

PROVIDERS = ("openai", "anthropic")

SOURCES: Final = ("memory", "sessions")
"""Where a crystal comes from: what was written down (notes, pages, dreams, things), or what was said in sessions."""

MOST = 10**9


@frozen(kw_only=True)
class DreamSettings:
    """When dreams come by themselves."""

    enabled: bool = True
    interval_minutes: float = 120.0
    min_crystals: int = 5
    """New crystals without which no dream comes by itself."""
    first_minutes: float = 5.0
    """After a process has started, before it dreams by itself."""
    spike_minutes: float = 10.0
    """Between dreams that come early."""


@frozen(kw_only=True)
class ConsolidationSettings:
    """How often what says the same is merged, and what has faded let go."""

    interval_minutes: float = 30.0


@frozen(kw_only=True)
class SearchSettings:
    """Where search looks unless it is told."""

    sources: tuple[str, ...] = SOURCES


@frozen(kw_only=True)
class AffectSettings:
    """Whether anything is felt."""

    enabled: bool = True


@frozen(kw_only=True)
class ModelSettings:
    """The model that dreams ask, and that `inmind chat` talks to; without a name dreams go by rules."""

    provider: str = "openai"
    url: str = ""
    name: str = ""
    key_env: str = ""
    seconds: float = 120.0
    """For one answer to a dream; for the silence in one to a person."""
    window: int = 0
    """Tokens that it takes of a chat. 0: what the endpoint says."""
    daily_tokens: int = 0
    """That dreams of one resource may take on one day, and go by rules from there on. 0: as many as it takes."""
    input_price: float = 0.0
    output_price: float = 0.0
    """For a million tokens."""


@frozen(kw_only=True)
class LimitSettings:
    """What all processes that work on a memory may use together. 0: as much as it takes."""

    model_calls_per_minute: int = 0
    """Dreams wait for the next minute where it is reached."""
    tokens_per_day: int = 0
    """Read and written by the models that dreams ask."""
    price_per_day: float = 0.0
    """By the prices of `model`. Where one of these two is reached, dreams go by rules for the rest of the day."""
    dreams_per_hour: int = 0
    """That come by themselves. What is more waits for the next hour."""


@frozen(kw_only=True)
class WorkerSettings:
    """How workers on a database take turns."""

    poll_seconds: float = 2.0
    """Between two looks for a job, where there was none."""
    stalled_seconds: float = 30.0
    """For which nothing has been heard of a worker before others take over its jobs."""
    tries: int = 5
    """Of a job, before it is given up for a while."""


@frozen(kw_only=True)
class Settings:
    """All that a home can be told, by subject: `settings.dream.interval_minutes`."""

    dream: DreamSettings = field(default_factory=DreamSettings)
    consolidation: ConsolidationSettings = field(default_factory=ConsolidationSettings)
    search: SearchSettings = field(default_factory=SearchSettings)
    affect: AffectSettings = field(default_factory=AffectSettings)
    model: ModelSettings = field(default_factory=ModelSettings)
    limits: LimitSettings = field(default_factory=LimitSettings)
    worker: WorkerSettings = field(default_factory=WorkerSettings)


def settings_of(home: Path, given: object = None) -> Settings:
    """What config.toml in the home says, and over that what is given: nested, or by dotted names."""
    return given if isinstance(given, Settings) else settings_in(_in_file(home / CONFIG), given)


def settings_in(text: str, given: object = None) -> Settings:
    """What a config.toml of this text says, and over that what is given."""
    if isinstance(given, Settings):
        return given
    if given is not None and not isinstance(given, Mapping):
        raise InvalidInput(field="settings", value=given, expected="Settings, or a mapping of names to values")
    told = {**_flat(_parsed(text)), **_flat(cast(Mapping[str, Any], given or {}))}
    groups: dict[str, dict[str, Any]] = {}
    for name, value in told.items():
        group, _, key = name.partition(".")
        groups.setdefault(group, {})[key] = _checked(name, value)
    return Settings(**{group: _KINDS[group](**values) for group, values in groups.items()})


def _in_file(path: Path) -> str:
    try:
        if not path.is_file():  # to read from a pipe is to wait for somebody who writes
            path.lstat()
            raise InvalidInput(field=CONFIG, value=str(path), expected="a plain file of TOML")
        return path.read_text("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(field=CONFIG, value=str(error), expected="a readable file of TOML") from error


def _parsed(text: str) -> Mapping[str, Any]:
    if not text:
        return {}
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(field=CONFIG, value=str(error), expected="a readable file of TOML") from error


def _flat(given: Mapping[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in given.items():
        if isinstance(value, Mapping):
            flat |= {f"{name}.{key}": one for key, one in cast(Mapping[str, Any], value).items()}
        else:
            flat[str(name)] = value
    return flat


def _checked(name: str, value: Any) -> Any:
    defaults = _defaults()
    default = defaults.get(name)
    if default is None:
        from difflib import get_close_matches

        near = get_close_matches(name, defaults, n=1)
        known = f"did you mean {near[0]}?" if near else f"one of {', '.join(defaults)}"
        if isinstance(value, str) and any(word in name.lower() for word in _SECRET):
            known = "a key is never written down here: model.key_env names the variable that has it"
        raise InvalidInput(field=f"settings.{name}", expected=f"a setting that there is: {known}")
    if isinstance(value, Mapping):
        raise InvalidInput(field=f"settings.{name}", expected="a value, not a table")
    if name == "model.key_env" and isinstance(value, str) and value and not value.isidentifier():
        raise InvalidInput(field=f"settings.{name}", expected="the name of a variable, never a key")
    if name == "search.sources":
        given = [value] if isinstance(value, str) else value
        if not isinstance(given, list | tuple) or not given or any(one not in SOURCES for one in given):  # pyright: ignore[reportUnknownVariableType] -- from a file
            raise InvalidInput(field=f"settings.{name}", value=value, expected=f"some of {', '.join(SOURCES)}")
        return tuple(cast(list[str], given))
    if name == "model.provider" and value not in PROVIDERS:
        raise InvalidInput(field=f"settings.{name}", value=value, expected=f"one of {', '.join(PROVIDERS)}")
    if isinstance(default, bool | str):
        if type(value) is not type(default):
            expected = "true or false" if isinstance(default, bool) else "a text"
            raise InvalidInput(field=f"settings.{name}", value=value, expected=expected)
        return value
    whole = isinstance(default, int)
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float) or not 0 <= value <= MOST:
        expected = f"a {'whole ' if whole else ''}number from 0 to {MOST}"
        raise InvalidInput(field=f"settings.{name}", value=value, expected=expected)
    if name.endswith(_NEVER_ZERO) and value <= 0:
        raise InvalidInput(field=f"settings.{name}", value=value, expected="more than 0")
    return value if whole else float(value)


_SECRET = ("key", "token", "secret", "password")
"""In the names of what should not be in a file."""

_NEVER_ZERO = ("interval_minutes", "spike_minutes", ".seconds", "poll_seconds", "stalled_seconds", ".tries")
"""What would never stop, or never begin."""

_KINDS: dict[str, Any] = {
    "dream": DreamSettings,
    "consolidation": ConsolidationSettings,
    "search": SearchSettings,
    "affect": AffectSettings,
    "model": ModelSettings,
    "limits": LimitSettings,
    "worker": WorkerSettings,
}


@cache
def _defaults() -> dict[str, Any]:
    """Every setting by its dotted name, as it is where nobody says otherwise."""
    return {f"{group}.{one.name}": one.default for group, kind in _KINDS.items() for one in dataclasses.fields(kind)}
