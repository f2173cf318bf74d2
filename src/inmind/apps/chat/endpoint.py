"""The model endpoint of a chat: options, then config.toml, then environment.

API keys stay in the environment; only the name of the variable is used here. Requests and replies of the two protocols
differ in little; `core.messages` reads a stream like a whole reply.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple
from urllib.parse import urlsplit

from inmind.core.http import HttpEndpoint, Json, RequestRefused, bearer, object_field, object_list
from inmind.core.settings import ModelSettings
from inmind.core.text import shorten
from inmind.dreams.models import ANTHROPIC_KEY_ENV, ANTHROPIC_URL, OPENAI_KEY_ENV, anthropic_headers
from inmind.errors import InvalidInput, ModelFailed
from inmind.memory.session_opener import DEFAULT_RESERVE, MIN_WINDOW


class ChatProvider(NamedTuple):
    """A protocol, and where its provider and key are found."""

    key_env: str
    url_env: str
    url: str
    reply_path: str
    """Path for replies, below the URL of the endpoint."""
    models_path: str
    headers: Callable[[str], Mapping[str, str]]
    request_fields: Json
    """Fields of a streamed request beside the model and the prompt."""
    model_names: re.Pattern[str]
    """Prefixes of its model names."""


STREAM_OPTIONS = "stream_options"
"""Field that requests usage at the end of a stream; a few servers reject it."""

PROVIDERS: Mapping[str, ChatProvider] = {
    "openai": ChatProvider(
        key_env=OPENAI_KEY_ENV,
        url_env="OPENAI_BASE_URL",
        url="https://api.openai.com/v1",
        reply_path="chat/completions",
        models_path="models",
        headers=bearer,
        request_fields={STREAM_OPTIONS: {"include_usage": True}},
        model_names=re.compile(r"(chat)?gpt-(?!oss)|o\d"),  # gpt-oss runs on any server
    ),
    "anthropic": ChatProvider(
        key_env=ANTHROPIC_KEY_ENV,
        url_env="ANTHROPIC_BASE_URL",
        url=ANTHROPIC_URL,
        reply_path="v1/messages",
        models_path="v1/models",
        headers=anthropic_headers,
        request_fields={"max_tokens": DEFAULT_RESERVE},
        model_names=re.compile("claude"),
    ),
}

MAX_NAMES_LENGTH = 200
"""Maximum length of the names of models in a message."""

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


def find_endpoint(
    options: ModelSettings, settings: ModelSettings, environment: Mapping[str, str]
) -> ModelSettings | None:
    """The endpoint to use; None if none is configured.

    Fields of the options that are not given are empty.
    """
    if options.provider and options.provider not in PROVIDERS:
        raise InvalidInput(field="--provider", value=options.provider, expected=f"one of {', '.join(PROVIDERS)}")
    for field, window in (("--window", options.window), ("settings.model.window", settings.window)):
        if window and window < MIN_WINDOW:
            raise InvalidInput(field=field, value=window, expected=f"{MIN_WINDOW} tokens or more")
    if options.key_env and not environment.get(options.key_env):
        raise InvalidInput(field="--key-env", value=options.key_env, expected="an environment variable that is set")
    if options.url:
        endpoint = ModelSettings(provider=options.provider or "openai", url=options.url)
    elif (settings.name or settings.url) and options.provider in ("", settings.provider):
        endpoint = settings
        if options.name not in ("", settings.name):  # the settings describe another model
            window = 0 if settings.name else settings.window
            endpoint = replace(settings, window=window, input_price=0.0, output_price=0.0)
    else:
        endpoint = _from_environment(options, environment)
    if endpoint is None:
        return None
    provider = PROVIDERS[endpoint.provider]
    return replace(
        endpoint,
        url=endpoint.url or provider.url,
        name=options.name or endpoint.name,
        key_env=options.key_env or endpoint.key_env or provider.key_env,
        window=options.window or endpoint.window,
        seconds=options.seconds or settings.seconds,
    )


def describe_endpoint(endpoint: ModelSettings) -> str:
    is_file = endpoint.name.startswith("/")  # some servers use the path of the model file
    return f"{endpoint.name.rpartition('/')[2] if is_file else endpoint.name} at {endpoint.url}"


def _from_environment(options: ModelSettings, environment: Mapping[str, str]) -> ModelSettings | None:
    """The endpoint of the environment; if both providers have keys, the model's name decides."""
    preferred = options.provider or _provider_of_model(options.name) or "openai"
    for name in (preferred, *(() if options.provider else PROVIDERS)):
        provider = PROVIDERS[name]
        if url := environment.get(provider.url_env) or (provider.url if environment.get(provider.key_env) else ""):
            return ModelSettings(provider=name, url=url)
    return None


def missing_key(options: ModelSettings) -> str:
    """Variable whose key is missing for the given provider or model; empty if none is implied."""
    provider = options.provider or _provider_of_model(options.name)
    return PROVIDERS[provider].key_env if provider else ""


def _provider_of_model(model: str) -> str:
    """Provider of a model by its name; empty if unknown."""
    return next((name for name, provider in PROVIDERS.items() if provider.model_names.match(model)), "")


def exposes_key(endpoint: ModelSettings, environment: Mapping[str, str]) -> bool:
    """True if the API key would be sent unencrypted to another machine."""
    parts = urlsplit(endpoint.url)
    if parts.scheme != "http" or not environment.get(endpoint.key_env):
        return False
    host = parts.hostname or ""
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host != "localhost" and not host.endswith(".localhost")


def complete_endpoint(endpoint: ModelSettings, server: HttpEndpoint) -> ModelSettings:
    """Fill in the model and the window from the endpoint's list of models."""
    if endpoint.name and endpoint.window:
        return endpoint
    provider = PROVIDERS[endpoint.provider]
    try:
        response = server.request(provider.models_path, None, headers=provider.headers, seconds=LIST_SECONDS)
    except ModelFailed:
        if not endpoint.name:
            raise
        response = Json()
    return apply_model_list(endpoint, response)


def apply_model_list(endpoint: ModelSettings, response: Json) -> ModelSettings:
    """Set the model if the list has only one, and the window if the list has it."""
    models = {one["id"]: one for one in object_list(response, "data") if isinstance(one.get("id"), str)}
    if not endpoint.name and len(models) != 1:
        names = shorten(", ".join(models), MAX_NAMES_LENGTH)
        several, none = f"one of the models of {endpoint.url}: {names}", f"a name, because {endpoint.url} lists none"
        raise InvalidInput(field="--model", expected=several if models else none)
    model = endpoint.name or next(iter(models))
    # A server with one model accepts any name.
    listed = next(iter(models.values())) if len(models) == 1 else models.get(model, Json())
    return replace(endpoint, name=model, window=endpoint.window or _context_window(listed))


def _context_window(model: Json) -> int:
    """Context window by the fields that servers use; 0 if unknown."""
    meta = object_field(model, "meta")
    runtime_sizes = (model.get("max_model_len"), meta.get("n_ctx"))
    trained_sizes = (model.get("context_length"), model.get("max_input_tokens"), meta.get("n_ctx_train"))
    sizes = (size for size in (*runtime_sizes, *trained_sizes) if type(size) is int and size >= MIN_WINDOW)
    return next(sizes, 0)


_TOOLS_ERROR = re.compile(r"\btools?(?:\b|_)|\bjinja\b", re.IGNORECASE)


def explain_error(error: ModelFailed, endpoint: ModelSettings) -> str:
    """The reason of a failure, with a hint other than to retry."""
    reason = error.reason if error.reason.endswith((".", "!", "?")) else f"{error.reason}."
    # Without its URLs: a host name may contain anything.
    status, message = 0, re.sub(r"https?://\S+", "", error.reason)
    if isinstance(error, RequestRefused):
        status, message = error.status, error.body
    if status in (401, 403):
        return f"{reason} Set a valid key in {endpoint.key_env}."
    if status == 404:
        return " ".join([reason, *_not_found_hints(endpoint)])
    if _TOOLS_ERROR.search(message):
        return f"{reason} If the model cannot call tools, pass --no-tools."
    if "(ConnectError" in error.reason:
        return f"{reason} Is the server running?"
    return reason


def _not_found_hints(endpoint: ModelSettings) -> Iterator[str]:
    """Possible causes of a 404: first the URL, then the model."""
    without_path = endpoint.provider == "openai" and urlsplit(endpoint.url).path in ("", "/")
    if without_path:
        yield f"Did you mean {endpoint.url.rstrip('/')}/v1?"
    if endpoint.name:
        start, server = ("Otherwise, is", "it") if without_path else ("Is", endpoint.url)
        yield f"{start} {endpoint.name!r} a model of {server}?"
