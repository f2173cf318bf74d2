"""Settings: config.toml, or `Memory.open(settings=…)`.

In a home config.toml is a file; in a database it is a document, shared by all processes.

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

    [model]                       # for dreams and chats; without it dreams use rules
    provider = "openai"           # or "anthropic"; any compatible server
    url = "http://127.0.0.1:8080/v1"
    name = "some-model"
    key_env = "SOME_API_KEY"      # the name of a variable, never a key
    window = 32768                # context window, if the server does not report it

    [limits]                      # for all processes together; 0: no limit
    model_calls_per_minute = 60
    price_per_day = 5.0

    [worker]
    stalled_seconds = 30

An unknown setting is refused: a misspelt `enabled` would otherwise be ignored.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Final, cast

from inmind.core.frozen import frozen
from inmind.core.paths import CONFIG
from inmind.errors import InvalidInput

PROVIDERS = ("openai", "anthropic")

SOURCES: Final = ("memory", "sessions")
"""Sources of crystals: `memory` (notes, pages, dreams, entities) and `sessions` (messages)."""

MAX_VALUE = 10**9


@frozen(kw_only=True)
class DreamSettings:
    """When dreams start automatically."""

    enabled: bool = True
    interval_minutes: float = 120.0
    min_crystals: int = 5
    """New crystals that a scheduled dream needs."""
    first_minutes: float = 5.0
    """Delay of the first scheduled dream after a process starts."""
    spike_minutes: float = 10.0
    """Minimum time between early dreams."""


@frozen(kw_only=True)
class ConsolidationSettings:
    """How often crystals are consolidated."""

    interval_minutes: float = 30.0


@frozen(kw_only=True)
class SearchSettings:
    """Defaults of search."""

    sources: tuple[str, ...] = SOURCES


@frozen(kw_only=True)
class AffectSettings:
    """Switches affect on or off."""

    enabled: bool = True


@frozen(kw_only=True)
class ModelSettings:
    """The model for dreams and `inmind chat`. Without a name, dreams use rules."""

    provider: str = "openai"
    url: str = ""
    name: str = ""
    key_env: str = ""
    seconds: float = 120.0
    """Timeout of an answer in a dream, or of a pause in an answer in a chat."""
    window: int = 0
    """Context window in a chat. 0: as the endpoint reports."""
    daily_tokens: int = 0
    """Tokens that dreams of one resource may use per day; after that they use rules. 0: no limit."""
    input_price: float = 0.0
    output_price: float = 0.0
    """Prices of a million tokens."""


@frozen(kw_only=True)
class LimitSettings:
    """Limits for all processes of a memory together. 0: no limit."""

    model_calls_per_minute: int = 0
    """At the limit, dreams wait for the next minute."""
    tokens_per_day: int = 0
    """Tokens read and written by the models of dreams."""
    price_per_day: float = 0.0
    """By the prices of `model`. At this limit or `tokens_per_day`, dreams use rules for the rest of the day."""
    dreams_per_hour: int = 0
    """Scheduled dreams per hour; more of them wait for the next hour."""


@frozen(kw_only=True)
class WorkerSettings:
    """How workers on a database share jobs."""

    poll_seconds: float = 2.0
    """Delay between two polls for a job."""
    stalled_seconds: float = 30.0
    """Time without a heartbeat after which other workers take over the jobs of a worker."""
    tries: int = 5
    """Attempts for a job before it is postponed."""


@frozen(kw_only=True)
class Settings:
    """All settings, by group: `settings.dream.interval_minutes`."""

    dream: DreamSettings = field(default_factory=DreamSettings)
    consolidation: ConsolidationSettings = field(default_factory=ConsolidationSettings)
    search: SearchSettings = field(default_factory=SearchSettings)
    affect: AffectSettings = field(default_factory=AffectSettings)
    model: ModelSettings = field(default_factory=ModelSettings)
    limits: LimitSettings = field(default_factory=LimitSettings)
    worker: WorkerSettings = field(default_factory=WorkerSettings)


def load_settings(home: Path, given: object = None) -> Settings:
    """Read config.toml of a home. The given settings, nested or by dotted names, override it."""
    return given if isinstance(given, Settings) else parse_settings(_read_config(home / CONFIG), given)


def parse_settings(text: str, given: object = None) -> Settings:
    """Parse a config.toml. The given settings override it."""
    if isinstance(given, Settings):
        return given
    if given is not None and not isinstance(given, Mapping):
        raise InvalidInput(field="settings", value=given, expected="Settings, or a mapping of names to values")
    merged = {**_flatten(_parse_toml(text)), **_flatten(cast(Mapping[str, Any], given or {}))}
    groups: dict[str, dict[str, Any]] = {}
    for name, value in merged.items():
        group, _, key = name.partition(".")
        groups.setdefault(group, {})[key] = _check_setting(name, value)
    return Settings(**{group: _GROUPS[group](**values) for group, values in groups.items()})


def _read_config(path: Path) -> str:
    try:
        if not path.is_file():  # reading from a pipe would block
            path.lstat()
            raise InvalidInput(field=CONFIG, value=str(path), expected="a plain file of TOML")
        return path.read_text("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(field=CONFIG, value=str(error), expected="a readable file of TOML") from error


def _parse_toml(text: str) -> Mapping[str, Any]:
    if not text:
        return {}
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(field=CONFIG, value=str(error), expected="a readable file of TOML") from error


def _flatten(given: Mapping[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in given.items():
        if isinstance(value, Mapping):
            flat |= {f"{name}.{key}": one for key, one in cast(Mapping[str, Any], value).items()}
        else:
            flat[str(name)] = value
    return flat


def _check_setting(name: str, value: Any) -> Any:
    default = _DEFAULTS.get(name)
    if default is None:
        raise _unknown_setting(name, value)
    if isinstance(value, Mapping):
        raise InvalidInput(field=f"settings.{name}", expected="a value, not a table")
    if name == "model.key_env" and not str(value or "unset").isidentifier():
        raise InvalidInput(field=f"settings.{name}", expected="the name of a variable, never a key")
    if name == "search.sources":
        given = cast(Sequence[object], value if type(value) in (list, tuple) else [value])
        fits, expected = given and all(one in SOURCES for one in given), f"some of {', '.join(SOURCES)}"
        result: Any = tuple(given)
    elif name == "model.provider":
        fits, expected, result = value in PROVIDERS, f"one of {', '.join(PROVIDERS)}", value
    elif isinstance(default, bool | str):
        expected = "true or false" if isinstance(default, bool) else "a text"
        fits, result = type(value) is type(default), value
    else:
        kinds, what = ((int,), "whole number") if isinstance(default, int) else ((int, float), "number")
        fits, expected = type(value) in kinds and 0 <= value <= MAX_VALUE, f"a {what} from 0 to {MAX_VALUE}"
        if fits and not value and name.endswith(_POSITIVE_SETTINGS):
            fits, expected = False, "more than 0"
        result = type(default)(value) if fits else value
    if not fits:
        raise InvalidInput(field=f"settings.{name}", value=value, expected=expected)
    return result


def _unknown_setting(name: str, value: object) -> InvalidInput:
    from difflib import get_close_matches

    near = get_close_matches(name, _DEFAULTS, n=1)
    known = f"did you mean {near[0]}?" if near else f"one of {', '.join(_DEFAULTS)}"
    if isinstance(value, str) and any(word in name.lower() for word in _SECRET_WORDS):
        known = "keys are not stored here; model.key_env names the environment variable"
    return InvalidInput(field=f"settings.{name}", expected=f"a known setting: {known}")


_SECRET_WORDS = ("key", "token", "secret", "password")
"""Words in names of values that must not be in a file."""

_POSITIVE_SETTINGS = ("interval_minutes", "spike_minutes", ".seconds", "poll_seconds", "stalled_seconds", ".tries")
"""Settings that must be greater than 0."""

_GROUPS: dict[str, Any] = {group.name: group.default_factory for group in dataclasses.fields(Settings)}

_DEFAULTS = {f"{group}.{one.name}": one.default for group, kind in _GROUPS.items() for one in dataclasses.fields(kind)}
"""Default of every setting, by its dotted name."""
