"""The endpoint of a chat comes from options, then the configuration, then the environment."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tables import each_row

from inmind.apps.chat.endpoint import (
    PROVIDERS,
    apply_model_list,
    explain_error,
    exposes_key,
    find_endpoint,
    missing_key,
)
from inmind.core.http import RequestRefused
from inmind.core.settings import ModelSettings
from inmind.dreams.models import ANTHROPIC_URL
from inmind.errors import InvalidInput, ModelFailed

pytestmark = pytest.mark.spec("I2")

NOTHING = ModelSettings()
OPENAI, ANTHROPIC = {"OPENAI_API_KEY": "sk-1"}, {"ANTHROPIC_API_KEY": "sk-2"}
CONFIGURED = ModelSettings(url="http://127.0.0.1:8080/v1", name="qwen", key_env="MY_KEY", input_price=1.0)


def given(**options: Any) -> ModelSettings:
    """The options that are given."""
    return replace(ModelSettings(provider="", seconds=0.0), **options)


def endpoint_for(
    options: ModelSettings, settings: ModelSettings = NOTHING, *environments: dict[str, str]
) -> tuple[str, str, str, str] | None:
    endpoint = find_endpoint(
        options, settings, {name: value for environment in environments for name, value in environment.items()}
    )
    return endpoint and (endpoint.provider, endpoint.url, endpoint.name, endpoint.key_env)


def test_without_options_settings_or_keys_no_endpoint_is_found() -> None:
    assert endpoint_for(given(name="gpt")) is None
    assert endpoint_for(given(provider="anthropic"), NOTHING, OPENAI) is None


def test_an_endpoint_named_by_options_has_priority() -> None:
    options = given(url="http://127.0.0.1:11434/v1", name="qwen3")
    expected = ("openai", "http://127.0.0.1:11434/v1", "qwen3", "OPENAI_API_KEY")
    assert endpoint_for(options, CONFIGURED, OPENAI, ANTHROPIC) == expected


def test_config_has_priority_over_the_environment_and_a_named_model_over_config() -> None:
    assert endpoint_for(given(), CONFIGURED, OPENAI) == (
        "openai",
        "http://127.0.0.1:8080/v1",
        "qwen",
        "MY_KEY",
    )
    assert endpoint_for(given(name="other"), CONFIGURED) == (
        "openai",
        "http://127.0.0.1:8080/v1",
        "other",
        "MY_KEY",
    )
    claude = ModelSettings(provider="anthropic", name="claude-x")
    assert endpoint_for(given(), claude, OPENAI) == (
        "anthropic",
        ANTHROPIC_URL,
        "claude-x",
        "ANTHROPIC_API_KEY",
    )
    assert endpoint_for(given(provider="anthropic"), CONFIGURED, ANTHROPIC) == (
        "anthropic",
        ANTHROPIC_URL,
        "",
        "ANTHROPIC_API_KEY",
    )


def test_configured_prices_apply_only_to_the_configured_model() -> None:
    [own, other] = [find_endpoint(given(name=model), CONFIGURED, {}) for model in ("qwen", "other")]
    assert own is not None
    assert other is not None
    assert (own.input_price, other.input_price) == (1.0, 0.0)


def test_keys_in_the_environment_choose_the_provider_and_the_model_name_breaks_ties() -> None:
    assert endpoint_for(given(), NOTHING, OPENAI) == (
        "openai",
        PROVIDERS["openai"].url,
        "",
        "OPENAI_API_KEY",
    )
    assert endpoint_for(given(), NOTHING, ANTHROPIC) == ("anthropic", ANTHROPIC_URL, "", "ANTHROPIC_API_KEY")
    assert endpoint_for(given(name="claude-x"), NOTHING, OPENAI, ANTHROPIC) == (
        "anthropic",
        ANTHROPIC_URL,
        "claude-x",
        "ANTHROPIC_API_KEY",
    )
    local = endpoint_for(given(), NOTHING, {"OPENAI_BASE_URL": "http://127.0.0.1:8080/v1"})
    assert local == ("openai", "http://127.0.0.1:8080/v1", "", "OPENAI_API_KEY")


@each_row(
    ("options", "variable"),
    [
        (given(name="gpt-5"), "OPENAI_API_KEY"),
        (given(name="o3-mini"), "OPENAI_API_KEY"),
        (given(name="claude-x"), "ANTHROPIC_API_KEY"),
        (given(provider="anthropic"), "ANTHROPIC_API_KEY"),
        (given(name="gpt-oss:20b"), ""),
        (given(name="olmo-2"), ""),
        (given(), ""),
    ],
)
def test_a_model_name_tells_which_key_is_missing(options: ModelSettings, variable: str) -> None:
    assert find_endpoint(options, NOTHING, {}) is None
    assert missing_key(options) == variable


@each_row("provider", PROVIDERS)
def test_the_url_of_every_provider_can_be_set_in_the_environment(provider: str) -> None:
    environment = {PROVIDERS[provider].url_env: "http://127.0.0.1:9"}
    assert endpoint_for(given(), NOTHING, environment) == (
        provider,
        "http://127.0.0.1:9",
        "",
        PROVIDERS[provider].key_env,
    )


def test_an_unknown_provider_is_refused() -> None:
    with pytest.raises(InvalidInput, match="openai, anthropic"):
        find_endpoint(given(provider="acme"), NOTHING, {})


def test_a_key_can_be_read_from_any_variable_that_is_set() -> None:
    options = given(url="http://127.0.0.1:1/v1", key_env="MY_KEY")
    assert endpoint_for(options, NOTHING, OPENAI, {"MY_KEY": "sk-3"}) == (
        "openai",
        "http://127.0.0.1:1/v1",
        "",
        "MY_KEY",
    )
    with pytest.raises(InvalidInput, match=r"--key-env: expected an environment variable that is set, got 'MY_KEY'"):
        endpoint_for(options, NOTHING, OPENAI)


@each_row(
    ("url", "is_exposed"),
    [
        ("http://10.0.0.7:8080/v1", True),
        ("http://models.example/v1", True),
        ("http://localhost.example/v1", True),
        ("https://models.example/v1", False),
        ("http://127.0.0.1:8080/v1", False),
        ("http://[::1]:8080/v1", False),
        ("http://localhost:8080/v1", False),
    ],
)
@pytest.mark.spec("J4")
def test_a_key_sent_over_plain_http_is_warned_about(url: str, is_exposed: bool) -> None:
    endpoint = given(provider="openai", url=url, key_env="OPENAI_API_KEY")
    assert exposes_key(endpoint, OPENAI) == is_exposed
    assert not exposes_key(endpoint, {})


def test_the_window_can_be_set_in_the_configuration_and_by_option() -> None:
    named = ModelSettings(url="http://127.0.0.1:8080/v1", name="qwen", window=32_768)
    unnamed = ModelSettings(url="http://127.0.0.1:8080/v1", window=32_768)
    cases = [
        (named, given(), 32_768),
        (named, given(window=8_000), 8_000),
        (named, given(name="other"), 0),
    ]
    for settings, options, window in [*cases, (unnamed, given(name="other"), 32_768)]:
        endpoint = find_endpoint(options, settings, {})
        assert endpoint is not None
        assert endpoint.window == window
    with pytest.raises(InvalidInput, match=r"settings\.model\.window"):
        find_endpoint(given(), ModelSettings(name="qwen", window=10), {})


@each_row(
    ("error", "hint"),
    [
        (
            ModelFailed(reason="http://toolbox.invalid/v1 cannot be reached (ConnectError: no)"),
            "Is the server running?",
        ),
        (ModelFailed(reason="http://toolbox.invalid/v1 answered 500: 'out of memory'"), "memory'."),
        (ModelFailed(reason="http://a/v1 answered 500: 'tools param requires --jinja flag'"), "pass --no-tools."),
        (
            RequestRefused(reason="http://a/v1 answered 400: 'no tools'", status=400, body="no tools"),
            "pass --no-tools.",
        ),
        (RequestRefused(reason="http://toolbox/v1 answered 400: 'bad'", status=400, body="bad"), "'bad'."),
    ],
)
def test_a_failure_is_explained_by_the_reply_of_the_server_and_ends_as_a_sentence(
    error: ModelFailed, hint: str
) -> None:
    endpoint = given(provider="openai", url="http://toolbox.invalid/v1", name="m", key_env="SOME_KEY")
    assert explain_error(error, endpoint).endswith(hint)


@pytest.mark.parametrize(
    ("provider", "url", "hint"),
    [
        (
            "openai",
            "http://127.0.0.1:11434",
            "Did you mean http://127.0.0.1:11434/v1? Otherwise, is 'm' a model of it?",
        ),
        (
            "openai",
            "http://127.0.0.1:11434/",
            "Did you mean http://127.0.0.1:11434/v1? Otherwise, is 'm' a model of it?",
        ),
        ("openai", "http://127.0.0.1:11434/v1", ": ''. Is 'm' a model of http://127.0.0.1:11434/v1?"),
        ("anthropic", "http://127.0.0.1:11434", ": ''. Is 'm' a model of http://127.0.0.1:11434?"),
    ],
)
def test_a_url_without_a_path_is_questioned_before_the_model_name(provider: str, url: str, hint: str) -> None:
    endpoint = given(provider=provider, url=url, name="m")
    assert explain_error(RequestRefused(reason=f"{url} answered 404: ''", status=404, body=""), endpoint).endswith(hint)
    unnamed = explain_error(
        RequestRefused(reason="It answered 404.", status=404, body=""), given(provider=provider, url=url)
    )
    assert "a model of" not in unnamed


def model_list(*models: Any) -> dict[str, Any]:
    return {"data": list(models)}


def test_a_single_listed_model_is_used_and_one_of_several_must_be_named() -> None:
    endpoint = given(provider="openai", url="http://127.0.0.1:1/v1")
    assert apply_model_list(endpoint, model_list({"id": "only"})).name == "only"
    several = model_list({"id": "a"}, {"id": "b"})
    with pytest.raises(InvalidInput, match=r"^--model: expected one of the models of .*: a, b$"):
        apply_model_list(endpoint, several)
    with pytest.raises(InvalidInput, match=r"lists none$"):
        apply_model_list(endpoint, {})


@each_row(
    ("listing_fields", "window"),
    [
        ({"meta": {"n_ctx": 8192, "n_ctx_train": 32768}}, 8192),
        ({"max_model_len": 16_000}, 16_000),
        ({"context_length": 200_000}, 200_000),
        ({"context_length": "large"}, 0),
        ({"meta": {"n_ctx": 3}}, 0),
        ({}, 0),
    ],
)
def test_the_window_is_taken_from_the_model_list(listing_fields: dict[str, Any], window: int) -> None:
    endpoint = given(provider="openai", url="http://127.0.0.1:1/v1")
    assert apply_model_list(endpoint, model_list({"id": "m", **listing_fields})).window == window
    named = given(provider="openai", url="http://127.0.0.1:1/v1", name="alias", window=4_000)
    assert apply_model_list(named, model_list({"id": "m", **listing_fields})).window == 4_000
