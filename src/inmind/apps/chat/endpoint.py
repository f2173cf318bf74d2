"""Whom a chat is held with: by what is asked for, else by config.toml, else by what the environment has keys for.

Deciding that is a pure function over the three; what is left open, the endpoint is asked itself: which model it has,
and how much that takes. A key stays in the environment: here is only the name of its variable.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple
from urllib.parse import urlsplit

from inmind.apps.chat.providers import PROVIDERS, Provider
from inmind.core.frozen import frozen
from inmind.core.http import Json, Refused, Server
from inmind.core.settings import ModelSettings
from inmind.dreams.models.anthropic import DEFAULT_URL as ANTHROPIC_URL
from inmind.dreams.models.anthropic import KEY_ENV as ANTHROPIC_KEY
from inmind.dreams.models.openai import KEY_ENV as OPENAI_KEY
from inmind.dreams.models.response import object_field, object_list
from inmind.errors import InmindError, InvalidInput, ModelFailed
from inmind.memory.session_opener import DEFAULT_WINDOW, MIN_WINDOW


class Known(NamedTuple):
    """Where a provider is, and which variables of the environment say otherwise."""

    key_env: str
    url_env: str
    url: str


KNOWN: Mapping[str, Known] = {
    "openai": Known(OPENAI_KEY, "OPENAI_BASE_URL", "https://api.openai.com/v1"),
    "anthropic": Known(ANTHROPIC_KEY, "ANTHROPIC_BASE_URL", ANTHROPIC_URL),
}

MOST_NAMED = 8
"""Models that are named to whoever has to choose among them."""

MADE_BY: Mapping[str, re.Pattern[str]] = {
    "openai": re.compile(r"(chat)?gpt-(?!oss)|o\d"),  # gpt-oss is served by everybody
    "anthropic": re.compile("claude"),
}
"""How the models of a provider are called, by how their names begin."""

LOOKING = 5.0
"""Seconds for a list of models. Whoever named a model waits for nothing else."""

HOW_TO = """\
A chat needs a model that answers at some endpoint. Any of these will do:

  a provider's key   export ANTHROPIC_API_KEY=…
                     inmind chat --model claude-…
                     export OPENAI_API_KEY=…
                     inmind chat --model gpt-…
  Ollama             ollama pull qwen3
                     OLLAMA_CONTEXT_LENGTH=32768 ollama serve
                     inmind chat --base-url http://127.0.0.1:11434/v1 --window 32768
  llama.cpp          llama-server --jinja -m model.gguf
                     inmind chat --base-url http://127.0.0.1:8080/v1

For good, [model] in the home's config.toml names it: provider, url, name, key_env, window.
"""

DEMO = "inmind demo"


@frozen(kw_only=True)
class Wanted:
    """What was asked for by name; nothing is asked for where it is empty."""

    provider: str = ""
    url: str = ""
    model: str = ""
    key_env: str = ""
    window: int = 0


@frozen(kw_only=True)
class Endpoint:
    provider: str
    url: str
    model: str = ""
    key_env: str = ""
    window: int = 0
    """Tokens that the model takes; 0 until somebody has said so."""
    assumed: bool = False
    """Nobody has said so, not even the endpoint: the window is a guess."""
    prices: tuple[float, float] = (0.0, 0.0)
    """For a million tokens, read and written; nothing where nobody has said what they cost."""

    def __str__(self) -> str:
        a_file = self.model.startswith("/")  # that a server has read
        name = self.model.rpartition("/")[2] if a_file else self.model
        return f"{name} at {self.url}"

    @property
    def protocol(self) -> Provider:
        return PROVIDERS[self.provider]


class Unnamed(InvalidInput):
    """Nobody has said which model is meant, and what the endpoint lists does not decide it."""

    def __init__(self, url: str, models: Sequence[str]) -> None:
        expected = _choice(models, url)
        InmindError.__init__(self, f"--model: expected {expected}")
        self.field, self.value, self.expected = "--model", "", expected


Choose = Callable[[Sequence[str]], str]
"""Somebody who says which of several models is meant; nothing where he does not."""


def endpoint_of(wanted: Wanted, told: ModelSettings, environment: Mapping[str, str]) -> Endpoint | None:
    """The endpoint that is meant; None where nothing says which."""
    if wanted.provider and wanted.provider not in PROVIDERS:
        raise InvalidInput(field="--provider", value=wanted.provider, expected=f"one of {', '.join(PROVIDERS)}")
    for field, window in (("--window", wanted.window), ("settings.model.window", told.window)):
        if window and window < MIN_WINDOW:
            raise InvalidInput(field=field, value=window, expected=f"tokens, {MIN_WINDOW} or more")
    if wanted.key_env and not environment.get(wanted.key_env):
        raise InvalidInput(field="--key-env", value=wanted.key_env, expected="a variable that holds a key")
    found = _named(wanted) if wanted.url else None
    found = found or _configured(wanted, told) or _in_environment(wanted, environment)
    if found is None:
        return None
    return replace(
        found,
        model=wanted.model or found.model,
        key_env=wanted.key_env or found.key_env,
        window=wanted.window or found.window,
    )


def missing_key(wanted: Wanted) -> str:
    """The variable whose key would have been enough, where a name says whose; empty where none does."""
    provider = wanted.provider or _maker(wanted.model)
    return KNOWN[provider].key_env if provider else ""


def exposed(endpoint: Endpoint, environment: Mapping[str, str]) -> bool:
    """Does a key leave this machine for everybody on its way to read?"""
    parts = urlsplit(endpoint.url)
    return parts.scheme == "http" and bool(environment.get(endpoint.key_env)) and not _is_here(parts.hostname or "")


def completed(endpoint: Endpoint, server: Server, *, choose: Choose | None = None) -> Endpoint:
    """With what nobody has said, as far as the endpoint says it itself."""
    if endpoint.model and endpoint.window:
        return endpoint
    try:
        listed = server.ask(endpoint.protocol.models, None, headers=endpoint.protocol.headers, seconds=LOOKING)
    except ModelFailed:
        if not endpoint.model:
            raise
        listed = Json()
    return with_what_it_lists(endpoint, listed, choose=choose)


def with_what_it_lists(endpoint: Endpoint, listed: Json, *, choose: Choose | None = None) -> Endpoint:
    """The only model that is there, or the chosen one, if none was named; and how much it takes, where the list says
    that."""
    models = [one for one in object_list(listed, "data") if isinstance(one.get("id"), str)]
    if not endpoint.model:
        names = [str(one["id"]) for one in models]
        name = names[0] if len(names) == 1 else choose(names) if names and choose else ""
        if not name:
            raise Unnamed(endpoint.url, names)
        endpoint = replace(endpoint, model=name)
    window = endpoint.window or next(_windows(models, endpoint.model), 0)
    return replace(endpoint, window=window or DEFAULT_WINDOW, assumed=not window)


def explained(error: ModelFailed, endpoint: Endpoint) -> str:
    """What went wrong, and what to do about it beside trying again."""
    reason = error.reason if error.reason.endswith((".", "!", "?")) else f"{error.reason}."
    status, said = (error.status, error.said) if isinstance(error, Refused) else (0, _without_places(error.reason))
    if status in (401, 403):
        return f"{reason} It wants another key: set {endpoint.key_env}."
    if status == 404:
        return " ".join([reason, *_not_there(endpoint)])
    if _ABOUT_TOOLS.search(said):
        return f"{reason} A model that cannot call tools is talked to with --no-tools."
    if "(ConnectError" in error.reason:
        return f"{reason} Is the server running?"
    return reason


def _not_there(endpoint: Endpoint) -> Iterator[str]:
    """What may be wrong where an endpoint knows nothing of what it was asked for: first its address."""
    bare = endpoint.provider == "openai" and urlsplit(endpoint.url).path in ("", "/")
    if bare:
        yield f"Is {endpoint.url.rstrip('/')}/v1 meant?"
    if endpoint.model:
        yield f"{'Or else, is' if bare else 'Is'} {endpoint.model!r} a model of {'it' if bare else endpoint.url}?"


_ABOUT_TOOLS = re.compile(r"\btools?(?:\b|_)|\bjinja\b", re.IGNORECASE)


def _without_places(reason: str) -> str:
    """What a server said, without where it was asked: a host may be called anything."""
    return re.sub(r"https?://\S+", "", reason)


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _named(wanted: Wanted) -> Endpoint:
    provider = wanted.provider or "openai"
    return Endpoint(provider=provider, url=wanted.url, key_env=KNOWN[provider].key_env)


def _configured(wanted: Wanted, told: ModelSettings) -> Endpoint | None:
    """What config.toml names, unless somebody else is asked for."""
    if not (told.name or told.url) or wanted.provider not in ("", told.provider):
        return None
    known, same = KNOWN[told.provider], wanted.model in ("", told.name)
    return Endpoint(
        provider=told.provider,
        url=told.url or known.url,
        model=told.name,
        key_env=told.key_env or known.key_env,
        window=told.window if same or not told.name else 0,
        prices=(told.input_price, told.output_price) if same else (0.0, 0.0),
    )


def _in_environment(wanted: Wanted, environment: Mapping[str, str]) -> Endpoint | None:
    """By what there is a key for. Where there is one for either, the name of the model decides."""
    there = {
        name: environment.get(known.url_env) or (known.url if environment.get(known.key_env) else "")
        for name, known in KNOWN.items()
    }
    liked = wanted.provider or _maker(wanted.model) or "openai"
    others = [] if wanted.provider else [one for one in there if one != liked]
    provider = next((one for one in (liked, *others) if there[one]), None)
    if provider is None:
        return None
    return Endpoint(provider=provider, url=there[provider], key_env=KNOWN[provider].key_env)


def _maker(model: str) -> str:
    """Whose model it is by its name; empty where that says nothing."""
    return next((provider for provider, named in MADE_BY.items() if named.match(model)), "")


def _choice(models: Sequence[str], url: str) -> str:
    if not models:
        return f"the name of a model, since {url} lists none"
    names = ", ".join(models[:MOST_NAMED])
    more = f" and {len(models) - MOST_NAMED} more" if len(models) > MOST_NAMED else ""
    return f"one of the models of {url}: {names}{more}"


def _windows(models: list[Json], name: str) -> Iterator[int]:
    """How much a model takes, by the names that servers have for it: what it runs with before what it was made for."""
    for model in models:
        if model["id"] == name or len(models) == 1:  # a server that has only one takes any name for it
            meta = object_field(model, "meta")
            run_with = (model.get("max_model_len"), meta.get("n_ctx"))
            made_for = (model.get("context_length"), model.get("max_input_tokens"), meta.get("n_ctx_train"))
            yield from (size for size in (*run_with, *made_for) if type(size) is int and size >= MIN_WINDOW)
