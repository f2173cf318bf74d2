"""Finds the endpoint of a chat: in the options, config.toml or the environment.

The choice is a pure function of these three, in this order. The model and its context window are then requested from
the endpoint if they are not set. API keys stay in the environment; only the name of the variable is used here.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple
from urllib.parse import urlsplit

from inmind.apps.chat.providers import PROVIDERS, ChatProtocol
from inmind.core.frozen import frozen
from inmind.core.http import HttpEndpoint, Json, RequestRefused, object_field, object_list
from inmind.core.settings import ModelSettings
from inmind.dreams.models.anthropic import DEFAULT_URL as ANTHROPIC_URL
from inmind.dreams.models.anthropic import KEY_ENV as ANTHROPIC_KEY
from inmind.dreams.models.openai import KEY_ENV as OPENAI_KEY
from inmind.errors import InmindError, InvalidInput, ModelFailed
from inmind.memory.session_opener import DEFAULT_WINDOW, MIN_WINDOW


class ProviderDefaults(NamedTuple):
    """Default URL of a provider, and its environment variables."""

    key_env: str
    url_env: str
    url: str


PROVIDER_DEFAULTS: Mapping[str, ProviderDefaults] = {
    "openai": ProviderDefaults(OPENAI_KEY, "OPENAI_BASE_URL", "https://api.openai.com/v1"),
    "anthropic": ProviderDefaults(ANTHROPIC_KEY, "ANTHROPIC_BASE_URL", ANTHROPIC_URL),
}

MAX_NAMED_MODELS = 8
"""Maximum number of models in a message."""

MODEL_NAMES: Mapping[str, re.Pattern[str]] = {
    "openai": re.compile(r"(chat)?gpt-(?!oss)|o\d"),  # gpt-oss runs on any server
    "anthropic": re.compile("claude"),
}
"""Prefixes of model names by provider."""

LIST_SECONDS = 5.0
"""Timeout of the list of models."""

SETUP_HELP = """\
A chat needs a model at an endpoint. Use one of these:

  a provider's key   export ANTHROPIC_API_KEY=…
                     inmind chat --model claude-…
                     export OPENAI_API_KEY=…
                     inmind chat --model gpt-…
  Ollama             ollama pull qwen3
                     OLLAMA_CONTEXT_LENGTH=32768 ollama serve
                     inmind chat --base-url http://127.0.0.1:11434/v1 --window 32768
  llama.cpp          llama-server --jinja -m model.gguf
                     inmind chat --base-url http://127.0.0.1:8080/v1

To save it, set [model] in the home's config.toml: provider, url, name, key_env, window.
"""

DEMO_COMMAND = "inmind demo"


@frozen(kw_only=True)
class EndpointOptions:
    """Options of the command line; empty if not given."""

    provider: str = ""
    url: str = ""
    model: str = ""
    key_env: str = ""
    window: int = 0


@frozen(kw_only=True)
class ChatEndpoint:
    provider: str
    url: str
    model: str = ""
    key_env: str = ""
    window: int = 0
    """Context window in tokens; 0 if unknown."""
    is_window_assumed: bool = False
    """The endpoint did not report the window; it is a guess."""
    prices: tuple[float, float] = (0.0, 0.0)
    """Price per million input and output tokens; 0 if unknown."""

    def __str__(self) -> str:
        is_file = self.model.startswith("/")  # some servers use the path of the model file
        name = self.model.rpartition("/")[2] if is_file else self.model
        return f"{name} at {self.url}"

    @property
    def protocol(self) -> ChatProtocol:
        return PROVIDERS[self.provider]


class ModelNotChosen(InvalidInput):
    """No model is set, and the endpoint does not have exactly one."""

    def __init__(self, url: str, models: Sequence[str]) -> None:
        expected = _model_choices(models, url)
        InmindError.__init__(self, f"--model: expected {expected}")
        self.field, self.value, self.expected = "--model", "", expected


ChooseModel = Callable[[Sequence[str]], str]
"""Returns the model that the user picks; empty for none."""


def find_endpoint(
    options: EndpointOptions, settings: ModelSettings, environment: Mapping[str, str]
) -> ChatEndpoint | None:
    """The endpoint to use; None if none is configured."""
    if options.provider and options.provider not in PROVIDERS:
        raise InvalidInput(field="--provider", value=options.provider, expected=f"one of {', '.join(PROVIDERS)}")
    for field, window in (("--window", options.window), ("settings.model.window", settings.window)):
        if window and window < MIN_WINDOW:
            raise InvalidInput(field=field, value=window, expected=f"{MIN_WINDOW} tokens or more")
    if options.key_env and not environment.get(options.key_env):
        raise InvalidInput(field="--key-env", value=options.key_env, expected="an environment variable that is set")
    endpoint = _from_options(options) if options.url else None
    endpoint = endpoint or _from_settings(options, settings) or _from_environment(options, environment)
    if endpoint is None:
        return None
    return replace(
        endpoint,
        model=options.model or endpoint.model,
        key_env=options.key_env or endpoint.key_env,
        window=options.window or endpoint.window,
    )


def missing_key(options: EndpointOptions) -> str:
    """Variable whose key is missing for the given provider or model; empty if none is implied."""
    provider = options.provider or _provider_of_model(options.model)
    return PROVIDER_DEFAULTS[provider].key_env if provider else ""


def exposes_key(endpoint: ChatEndpoint, environment: Mapping[str, str]) -> bool:
    """True if the API key would be sent unencrypted to another machine."""
    parts = urlsplit(endpoint.url)
    return parts.scheme == "http" and bool(environment.get(endpoint.key_env)) and not _is_local(parts.hostname or "")


def complete_endpoint(
    endpoint: ChatEndpoint, server: HttpEndpoint, *, choose: ChooseModel | None = None
) -> ChatEndpoint:
    """Fill in the model and the window from the endpoint's list of models."""
    if endpoint.model and endpoint.window:
        return endpoint
    try:
        response = server.request(
            endpoint.protocol.models_path, None, headers=endpoint.protocol.headers, seconds=LIST_SECONDS
        )
    except ModelFailed:
        if not endpoint.model:
            raise
        response = Json()
    return apply_model_list(endpoint, response, choose=choose)


def apply_model_list(endpoint: ChatEndpoint, response: Json, *, choose: ChooseModel | None = None) -> ChatEndpoint:
    """Set the model to the only or chosen one, and the window if the list has it."""
    models = [one for one in object_list(response, "data") if isinstance(one.get("id"), str)]
    if not endpoint.model:
        names = [str(one["id"]) for one in models]
        name = names[0] if len(names) == 1 else choose(names) if names and choose else ""
        if not name:
            raise ModelNotChosen(endpoint.url, names)
        endpoint = replace(endpoint, model=name)
    window = endpoint.window or next(_context_windows(models, endpoint.model), 0)
    return replace(endpoint, window=window or DEFAULT_WINDOW, is_window_assumed=not window)


def explain_error(error: ModelFailed, endpoint: ChatEndpoint) -> str:
    """The reason of a failure, with a hint other than to retry."""
    reason = error.reason if error.reason.endswith((".", "!", "?")) else f"{error.reason}."
    status, message = (
        (error.status, error.body) if isinstance(error, RequestRefused) else (0, _without_urls(error.reason))
    )
    if status in (401, 403):
        return f"{reason} Set a valid key in {endpoint.key_env}."
    if status == 404:
        return " ".join([reason, *_not_found_hints(endpoint)])
    if _TOOLS_ERROR.search(message):
        return f"{reason} If the model cannot call tools, pass --no-tools."
    if "(ConnectError" in error.reason:
        return f"{reason} Is the server running?"
    return reason


def _not_found_hints(endpoint: ChatEndpoint) -> Iterator[str]:
    """Possible causes of a 404: first the URL, then the model."""
    without_path = endpoint.provider == "openai" and urlsplit(endpoint.url).path in ("", "/")
    if without_path:
        yield f"Did you mean {endpoint.url.rstrip('/')}/v1?"
    if endpoint.model:
        start, server = ("Otherwise, is", "it") if without_path else ("Is", endpoint.url)
        yield f"{start} {endpoint.model!r} a model of {server}?"


_TOOLS_ERROR = re.compile(r"\btools?(?:\b|_)|\bjinja\b", re.IGNORECASE)


def _without_urls(reason: str) -> str:
    """The message without URLs: a host name may contain anything."""
    return re.sub(r"https?://\S+", "", reason)


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _from_options(options: EndpointOptions) -> ChatEndpoint:
    provider = options.provider or "openai"
    return ChatEndpoint(provider=provider, url=options.url, key_env=PROVIDER_DEFAULTS[provider].key_env)


def _from_settings(options: EndpointOptions, settings: ModelSettings) -> ChatEndpoint | None:
    """The endpoint of config.toml, unless the options name another provider."""
    if not (settings.name or settings.url) or options.provider not in ("", settings.provider):
        return None
    defaults, same = PROVIDER_DEFAULTS[settings.provider], options.model in ("", settings.name)
    return ChatEndpoint(
        provider=settings.provider,
        url=settings.url or defaults.url,
        model=settings.name,
        key_env=settings.key_env or defaults.key_env,
        window=settings.window if same or not settings.name else 0,
        prices=(settings.input_price, settings.output_price) if same else (0.0, 0.0),
    )


def _from_environment(options: EndpointOptions, environment: Mapping[str, str]) -> ChatEndpoint | None:
    """The endpoint of the environment; if both providers have keys, the model's name decides."""
    urls = {
        name: environment.get(defaults.url_env) or (defaults.url if environment.get(defaults.key_env) else "")
        for name, defaults in PROVIDER_DEFAULTS.items()
    }
    preferred = options.provider or _provider_of_model(options.model) or "openai"
    others = [] if options.provider else [one for one in urls if one != preferred]
    provider = next((one for one in (preferred, *others) if urls[one]), None)
    if provider is None:
        return None
    return ChatEndpoint(provider=provider, url=urls[provider], key_env=PROVIDER_DEFAULTS[provider].key_env)


def _provider_of_model(model: str) -> str:
    """Provider of a model by its name; empty if unknown."""
    return next((provider for provider, pattern in MODEL_NAMES.items() if pattern.match(model)), "")


def _model_choices(models: Sequence[str], url: str) -> str:
    if not models:
        return f"the name of a model, because {url} lists none"
    names = ", ".join(models[:MAX_NAMED_MODELS])
    more = f" and {len(models) - MAX_NAMED_MODELS} more" if len(models) > MAX_NAMED_MODELS else ""
    return f"one of the models of {url}: {names}{more}"


def _context_windows(models: list[Json], name: str) -> Iterator[int]:
    """Context window by the fields that servers use: the runtime size before the trained one."""
    for model in models:
        if model["id"] == name or len(models) == 1:  # a server with one model accepts any name
            meta = object_field(model, "meta")
            runtime_sizes = (model.get("max_model_len"), meta.get("n_ctx"))
            trained_sizes = (model.get("context_length"), model.get("max_input_tokens"), meta.get("n_ctx_train"))
            yield from (size for size in (*runtime_sizes, *trained_sizes) if type(size) is int and size >= MIN_WINDOW)
