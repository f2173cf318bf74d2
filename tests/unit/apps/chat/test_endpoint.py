"""Whom a chat is held with: what is named goes before what is configured, and that before what there is a key for."""

from __future__ import annotations

from typing import Any

import pytest
from tables import each_row

from inmind.apps.chat.endpoint import (
    PROVIDER_DEFAULTS,
    ChatEndpoint,
    EndpointOptions,
    apply_model_list,
    explain_error,
    exposes_key,
    find_endpoint,
    missing_key,
)
from inmind.core.http import RequestRefused
from inmind.core.settings import ModelSettings
from inmind.dreams.models.anthropic import DEFAULT_URL as ANTHROPIC_URL
from inmind.errors import InvalidInput, ModelFailed
from inmind.memory.session_opener import DEFAULT_WINDOW

pytestmark = pytest.mark.spec("I2")

NOTHING = ModelSettings()
OPENAI, ANTHROPIC = {"OPENAI_API_KEY": "sk-1"}, {"ANTHROPIC_API_KEY": "sk-2"}
CONFIGURED = ModelSettings(url="http://127.0.0.1:8080/v1", name="qwen", key_env="MY_KEY", input_price=1.0)


def found(
    wanted: EndpointOptions, told: ModelSettings = NOTHING, *there: dict[str, str]
) -> tuple[str, str, str, str] | None:
    endpoint = find_endpoint(wanted, told, {name: value for one in there for name, value in one.items()})
    return endpoint and (endpoint.provider, endpoint.url, endpoint.model, endpoint.key_env)


def test_without_anything_there_is_none() -> None:
    assert found(EndpointOptions(model="gpt")) is None
    assert found(EndpointOptions(provider="anthropic"), NOTHING, OPENAI) is None


def test_a_named_endpoint_is_taken_whatever_else_there_is() -> None:
    wanted = EndpointOptions(url="http://127.0.0.1:11434/v1", model="qwen3")
    expected = ("openai", "http://127.0.0.1:11434/v1", "qwen3", "OPENAI_API_KEY")
    assert found(wanted, CONFIGURED, OPENAI, ANTHROPIC) == expected


def test_config_goes_before_the_environment_and_a_named_model_before_its_own() -> None:
    assert found(EndpointOptions(), CONFIGURED, OPENAI) == ("openai", "http://127.0.0.1:8080/v1", "qwen", "MY_KEY")
    assert found(EndpointOptions(model="other"), CONFIGURED) == (
        "openai",
        "http://127.0.0.1:8080/v1",
        "other",
        "MY_KEY",
    )
    claude = ModelSettings(provider="anthropic", name="claude-x")
    assert found(EndpointOptions(), claude, OPENAI) == ("anthropic", ANTHROPIC_URL, "claude-x", "ANTHROPIC_API_KEY")
    assert found(EndpointOptions(provider="anthropic"), CONFIGURED, ANTHROPIC) == (
        "anthropic",
        ANTHROPIC_URL,
        "",
        "ANTHROPIC_API_KEY",
    )


def test_prices_are_those_of_the_configured_model_and_of_no_other() -> None:
    [own, other] = [find_endpoint(EndpointOptions(model=model), CONFIGURED, {}) for model in ("qwen", "other")]
    assert own is not None
    assert other is not None
    assert (own.prices, other.prices) == ((1.0, 0.0), (0.0, 0.0))


def test_the_environment_decides_by_its_keys_and_between_two_by_the_name_of_the_model() -> None:
    assert found(EndpointOptions(), NOTHING, OPENAI) == (
        "openai",
        PROVIDER_DEFAULTS["openai"].url,
        "",
        "OPENAI_API_KEY",
    )
    assert found(EndpointOptions(), NOTHING, ANTHROPIC) == ("anthropic", ANTHROPIC_URL, "", "ANTHROPIC_API_KEY")
    assert found(EndpointOptions(model="claude-x"), NOTHING, OPENAI, ANTHROPIC) == (
        "anthropic",
        ANTHROPIC_URL,
        "claude-x",
        "ANTHROPIC_API_KEY",
    )
    local = found(EndpointOptions(), NOTHING, {"OPENAI_BASE_URL": "http://127.0.0.1:8080/v1"})
    assert local == ("openai", "http://127.0.0.1:8080/v1", "", "OPENAI_API_KEY")


@each_row(
    ("wanted", "variable"),
    [
        (EndpointOptions(model="gpt-5"), "OPENAI_API_KEY"),
        (EndpointOptions(model="o3-mini"), "OPENAI_API_KEY"),
        (EndpointOptions(model="claude-x"), "ANTHROPIC_API_KEY"),
        (EndpointOptions(provider="anthropic"), "ANTHROPIC_API_KEY"),
        (EndpointOptions(model="gpt-oss:20b"), ""),
        (EndpointOptions(model="olmo-2"), ""),
        (EndpointOptions(), ""),
    ],
)
def test_a_model_name_tells_which_key_is_missing(wanted: EndpointOptions, variable: str) -> None:
    assert find_endpoint(wanted, NOTHING, {}) is None
    assert missing_key(wanted) == variable


@each_row("provider", PROVIDER_DEFAULTS)
def test_every_provider_may_be_elsewhere(provider: str) -> None:
    there = {PROVIDER_DEFAULTS[provider].url_env: "http://127.0.0.1:9"}
    assert found(EndpointOptions(), NOTHING, there) == (
        provider,
        "http://127.0.0.1:9",
        "",
        PROVIDER_DEFAULTS[provider].key_env,
    )


def test_an_unknown_provider_is_refused() -> None:
    with pytest.raises(InvalidInput, match="openai, anthropic"):
        find_endpoint(EndpointOptions(provider="acme"), NOTHING, {})


def test_a_key_may_be_in_any_variable_that_has_one() -> None:
    wanted = EndpointOptions(url="http://127.0.0.1:1/v1", key_env="MY_KEY")
    assert found(wanted, NOTHING, OPENAI, {"MY_KEY": "sk-3"}) == ("openai", "http://127.0.0.1:1/v1", "", "MY_KEY")
    with pytest.raises(InvalidInput, match=r"--key-env: expected an environment variable that is set, got 'MY_KEY'"):
        found(wanted, NOTHING, OPENAI)


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
    endpoint = ChatEndpoint(provider="openai", url=url, key_env="OPENAI_API_KEY")
    assert exposes_key(endpoint, OPENAI) == is_exposed
    assert not exposes_key(endpoint, {})


def test_how_much_a_model_takes_can_be_configured_and_said() -> None:
    told = ModelSettings(url="http://127.0.0.1:8080/v1", name="qwen", window=32_768)
    unnamed = ModelSettings(url="http://127.0.0.1:8080/v1", window=32_768)
    cases = [
        (told, EndpointOptions(), 32_768),
        (told, EndpointOptions(window=8_000), 8_000),
        (told, EndpointOptions(model="other"), 0),
    ]
    for settings, wanted, window in [*cases, (unnamed, EndpointOptions(model="other"), 32_768)]:
        endpoint = find_endpoint(wanted, settings, {})
        assert endpoint is not None
        assert endpoint.window == window
    with pytest.raises(InvalidInput, match=r"settings\.model\.window"):
        find_endpoint(EndpointOptions(), ModelSettings(name="qwen", window=10), {})


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
            RequestRefused(reason="http://a/v1 answered 400: 'no tools'", status=400, said="no tools"),
            "pass --no-tools.",
        ),
        (RequestRefused(reason="http://toolbox/v1 answered 400: 'bad'", status=400, said="bad"), "'bad'."),
    ],
)
def test_a_failure_is_explained_by_what_the_server_said_and_ends_as_a_sentence(error: ModelFailed, hint: str) -> None:
    endpoint = ChatEndpoint(provider="openai", url="http://toolbox.invalid/v1", model="m", key_env="SOME_KEY")
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
def test_an_address_without_a_path_is_asked_about_before_the_model_is(provider: str, url: str, hint: str) -> None:
    endpoint = ChatEndpoint(provider=provider, url=url, model="m")
    assert explain_error(RequestRefused(reason=f"{url} answered 404: ''", status=404, said=""), endpoint).endswith(hint)
    unnamed = explain_error(
        RequestRefused(reason="It answered 404.", status=404, said=""), ChatEndpoint(provider=provider, url=url)
    )
    assert "a model of" not in unnamed


def listing(*models: Any) -> dict[str, Any]:
    return {"data": list(models)}


def test_the_only_model_is_the_one_and_of_several_one_has_to_be_named() -> None:
    endpoint = ChatEndpoint(provider="openai", url="http://127.0.0.1:1/v1")
    assert apply_model_list(endpoint, listing({"id": "only"})).model == "only"
    several = listing({"id": "a"}, {"id": "b"})
    with pytest.raises(InvalidInput, match=r"^--model: expected one of the models of .*: a, b$"):
        apply_model_list(endpoint, several)
    with pytest.raises(InvalidInput, match=r"lists none$"):
        apply_model_list(endpoint, {}, choose=lambda names: names[0])
    assert apply_model_list(endpoint, several, choose=lambda names: names[1]).model == "b"
    with pytest.raises(InvalidInput, match=r": a, b$"):
        apply_model_list(endpoint, several, choose=lambda _: "")


@each_row(
    ("told", "window"),
    [
        ({"meta": {"n_ctx": 8192, "n_ctx_train": 32768}}, 8192),
        ({"max_model_len": 16_000}, 16_000),
        ({"context_length": 200_000}, 200_000),
        ({"context_length": "large"}, DEFAULT_WINDOW),
        ({"meta": {"n_ctx": 3}}, DEFAULT_WINDOW),
        ({}, DEFAULT_WINDOW),
    ],
)
def test_how_much_a_model_takes_is_what_its_server_says(told: dict[str, Any], window: int) -> None:
    endpoint = ChatEndpoint(provider="openai", url="http://127.0.0.1:1/v1")
    listed = apply_model_list(endpoint, listing({"id": "m", **told}))
    assert (listed.window, listed.is_window_assumed) == (window, window == DEFAULT_WINDOW)
    named = ChatEndpoint(provider="openai", url="http://127.0.0.1:1/v1", model="alias", window=4_000)
    said = apply_model_list(named, listing({"id": "m", **told}))
    assert (said.window, said.is_window_assumed) == (4_000, False)
