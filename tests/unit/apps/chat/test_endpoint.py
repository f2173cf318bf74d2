"""Whom a chat is held with: what is named goes before what is configured, and that before what there is a key for."""

from __future__ import annotations

from typing import Any

import pytest
from tables import each_row

from inmind.apps.chat.endpoint import (
    KNOWN,
    Endpoint,
    Wanted,
    endpoint_of,
    explained,
    exposed,
    missing_key,
    with_what_it_lists,
)
from inmind.core.http import Refused
from inmind.core.settings import ModelSettings
from inmind.dreams.models.anthropic import DEFAULT_URL as ANTHROPIC_URL
from inmind.errors import InvalidInput, ModelFailed
from inmind.memory.session_opener import DEFAULT_WINDOW

pytestmark = pytest.mark.spec("I2")

NOTHING = ModelSettings()
OPENAI, ANTHROPIC = {"OPENAI_API_KEY": "sk-1"}, {"ANTHROPIC_API_KEY": "sk-2"}
CONFIGURED = ModelSettings(url="http://127.0.0.1:8080/v1", name="qwen", key_env="MY_KEY", input_price=1.0)


def found(wanted: Wanted, told: ModelSettings = NOTHING, *there: dict[str, str]) -> tuple[str, str, str, str] | None:
    endpoint = endpoint_of(wanted, told, {name: value for one in there for name, value in one.items()})
    return endpoint and (endpoint.provider, endpoint.url, endpoint.model, endpoint.key_env)


def test_without_anything_there_is_none() -> None:
    assert found(Wanted(model="gpt")) is None
    assert found(Wanted(provider="anthropic"), NOTHING, OPENAI) is None


def test_a_named_endpoint_is_taken_whatever_else_there_is() -> None:
    wanted = Wanted(url="http://127.0.0.1:11434/v1", model="qwen3")
    expected = ("openai", "http://127.0.0.1:11434/v1", "qwen3", "OPENAI_API_KEY")
    assert found(wanted, CONFIGURED, OPENAI, ANTHROPIC) == expected


def test_config_goes_before_the_environment_and_a_named_model_before_its_own() -> None:
    assert found(Wanted(), CONFIGURED, OPENAI) == ("openai", "http://127.0.0.1:8080/v1", "qwen", "MY_KEY")
    assert found(Wanted(model="other"), CONFIGURED) == ("openai", "http://127.0.0.1:8080/v1", "other", "MY_KEY")
    claude = ModelSettings(provider="anthropic", name="claude-x")
    assert found(Wanted(), claude, OPENAI) == ("anthropic", ANTHROPIC_URL, "claude-x", "ANTHROPIC_API_KEY")
    assert found(Wanted(provider="anthropic"), CONFIGURED, ANTHROPIC) == (
        "anthropic",
        ANTHROPIC_URL,
        "",
        "ANTHROPIC_API_KEY",
    )


def test_prices_are_those_of_the_configured_model_and_of_no_other() -> None:
    [own, other] = [endpoint_of(Wanted(model=model), CONFIGURED, {}) for model in ("qwen", "other")]
    assert own is not None
    assert other is not None
    assert (own.prices, other.prices) == ((1.0, 0.0), (0.0, 0.0))


def test_the_environment_decides_by_its_keys_and_between_two_by_the_name_of_the_model() -> None:
    assert found(Wanted(), NOTHING, OPENAI) == ("openai", KNOWN["openai"].url, "", "OPENAI_API_KEY")
    assert found(Wanted(), NOTHING, ANTHROPIC) == ("anthropic", ANTHROPIC_URL, "", "ANTHROPIC_API_KEY")
    assert found(Wanted(model="claude-x"), NOTHING, OPENAI, ANTHROPIC) == (
        "anthropic",
        ANTHROPIC_URL,
        "claude-x",
        "ANTHROPIC_API_KEY",
    )
    local = found(Wanted(), NOTHING, {"OPENAI_BASE_URL": "http://127.0.0.1:8080/v1"})
    assert local == ("openai", "http://127.0.0.1:8080/v1", "", "OPENAI_API_KEY")


@each_row(
    ("wanted", "variable"),
    [
        (Wanted(model="gpt-5"), "OPENAI_API_KEY"),
        (Wanted(model="o3-mini"), "OPENAI_API_KEY"),
        (Wanted(model="claude-x"), "ANTHROPIC_API_KEY"),
        (Wanted(provider="anthropic"), "ANTHROPIC_API_KEY"),
        (Wanted(model="gpt-oss:20b"), ""),
        (Wanted(model="olmo-2"), ""),
        (Wanted(), ""),
    ],
)
def test_whoever_names_a_model_is_told_which_key_its_maker_wants(wanted: Wanted, variable: str) -> None:
    assert endpoint_of(wanted, NOTHING, {}) is None
    assert missing_key(wanted) == variable


@each_row("provider", KNOWN)
def test_every_provider_may_be_elsewhere(provider: str) -> None:
    there = {KNOWN[provider].url_env: "http://127.0.0.1:9"}
    assert found(Wanted(), NOTHING, there) == (provider, "http://127.0.0.1:9", "", KNOWN[provider].key_env)


def test_a_provider_that_nobody_knows_is_refused() -> None:
    with pytest.raises(InvalidInput, match="openai, anthropic"):
        endpoint_of(Wanted(provider="acme"), NOTHING, {})


def test_a_key_may_be_in_any_variable_that_has_one() -> None:
    wanted = Wanted(url="http://127.0.0.1:1/v1", key_env="MY_KEY")
    assert found(wanted, NOTHING, OPENAI, {"MY_KEY": "sk-3"}) == ("openai", "http://127.0.0.1:1/v1", "", "MY_KEY")
    with pytest.raises(InvalidInput, match=r"--key-env: expected a variable that holds a key, got 'MY_KEY'"):
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
def test_a_key_that_everybody_could_read_on_its_way_is_noticed(url: str, is_exposed: bool) -> None:
    endpoint = Endpoint(provider="openai", url=url, key_env="OPENAI_API_KEY")
    assert exposed(endpoint, OPENAI) == is_exposed
    assert not exposed(endpoint, {})


def test_how_much_a_model_takes_can_be_configured_and_said() -> None:
    told = ModelSettings(url="http://127.0.0.1:8080/v1", name="qwen", window=32_768)
    unnamed = ModelSettings(url="http://127.0.0.1:8080/v1", window=32_768)
    cases = [(told, Wanted(), 32_768), (told, Wanted(window=8_000), 8_000), (told, Wanted(model="other"), 0)]
    for settings, wanted, window in [*cases, (unnamed, Wanted(model="other"), 32_768)]:
        endpoint = endpoint_of(wanted, settings, {})
        assert endpoint is not None
        assert endpoint.window == window
    with pytest.raises(InvalidInput, match=r"settings\.model\.window"):
        endpoint_of(Wanted(), ModelSettings(name="qwen", window=10), {})


@each_row(
    ("error", "hint"),
    [
        (
            ModelFailed(reason="http://toolbox.invalid/v1 cannot be reached (ConnectError: no)"),
            "Is the server running?",
        ),
        (ModelFailed(reason="http://toolbox.invalid/v1 answered 500: 'out of memory'"), "memory'."),
        (ModelFailed(reason="http://a/v1 answered 500: 'tools param requires --jinja flag'"), "with --no-tools."),
        (Refused(reason="http://a/v1 answered 400: 'no tools'", status=400, said="no tools"), "with --no-tools."),
        (Refused(reason="http://toolbox/v1 answered 400: 'bad'", status=400, said="bad"), "'bad'."),
    ],
)
def test_a_failure_is_explained_by_what_the_server_said_and_ends_as_a_sentence(error: ModelFailed, hint: str) -> None:
    endpoint = Endpoint(provider="openai", url="http://toolbox.invalid/v1", model="m", key_env="SOME_KEY")
    assert explained(error, endpoint).endswith(hint)


@pytest.mark.parametrize(
    ("provider", "url", "hint"),
    [
        ("openai", "http://127.0.0.1:11434", "Is http://127.0.0.1:11434/v1 meant? Or else, is 'm' a model of it?"),
        ("openai", "http://127.0.0.1:11434/", "Is http://127.0.0.1:11434/v1 meant? Or else, is 'm' a model of it?"),
        ("openai", "http://127.0.0.1:11434/v1", ": ''. Is 'm' a model of http://127.0.0.1:11434/v1?"),
        ("anthropic", "http://127.0.0.1:11434", ": ''. Is 'm' a model of http://127.0.0.1:11434?"),
    ],
)
def test_an_address_without_a_path_is_asked_about_before_the_model_is(provider: str, url: str, hint: str) -> None:
    endpoint = Endpoint(provider=provider, url=url, model="m")
    assert explained(Refused(reason=f"{url} answered 404: ''", status=404, said=""), endpoint).endswith(hint)
    unnamed = explained(Refused(reason="It answered 404.", status=404, said=""), Endpoint(provider=provider, url=url))
    assert "a model of" not in unnamed


def listing(*models: Any) -> dict[str, Any]:
    return {"data": list(models)}


def test_the_only_model_is_the_one_and_of_several_one_has_to_be_named() -> None:
    endpoint = Endpoint(provider="openai", url="http://127.0.0.1:1/v1")
    assert with_what_it_lists(endpoint, listing({"id": "only"})).model == "only"
    several = listing({"id": "a"}, {"id": "b"})
    with pytest.raises(InvalidInput, match=r"^--model: expected one of the models of .*: a, b$"):
        with_what_it_lists(endpoint, several)
    with pytest.raises(InvalidInput, match=r"lists none$"):
        with_what_it_lists(endpoint, {}, choose=lambda names: names[0])
    assert with_what_it_lists(endpoint, several, choose=lambda names: names[1]).model == "b"
    with pytest.raises(InvalidInput, match=r": a, b$"):
        with_what_it_lists(endpoint, several, choose=lambda _: "")


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
    endpoint = Endpoint(provider="openai", url="http://127.0.0.1:1/v1")
    listed = with_what_it_lists(endpoint, listing({"id": "m", **told}))
    assert (listed.window, listed.assumed) == (window, window == DEFAULT_WINDOW)
    named = Endpoint(provider="openai", url="http://127.0.0.1:1/v1", model="alias", window=4_000)
    said = with_what_it_lists(named, listing({"id": "m", **told}))
    assert (said.window, said.assumed) == (4_000, False)
