"""A function as a model: its argument and its possible answers."""

from __future__ import annotations

from typing import Any

import pytest
from tables import each_row

from inmind.core.settings import ModelSettings
from inmind.dreams.models import FunctionModel, Model, ModelReply, Question, as_model, model_from_settings
from inmind.errors import InvalidInput, ModelFailed

pytestmark = pytest.mark.spec("G12")

QUESTION = Question(system="You dream.", prompt="What now?")


def ask(function: Any) -> ModelReply:
    model = as_model(function)
    assert model is not None
    return model.ask(QUESTION, seconds=1)


def test_a_function_gets_the_whole_question_as_one_text() -> None:
    assert ask(lambda prompt: f"<{prompt}>").text == "<You dream.\n\nWhat now?>"  # pyright: ignore[reportUnknownLambdaType] -- as hosts write it


def test_a_function_may_return_a_reply_with_its_tokens() -> None:
    reply = ModelReply(text="tea", tokens=(5, 2), truncated=True)
    assert ask(lambda _: reply) == reply  # pyright: ignore[reportUnknownLambdaType] -- as hosts write it


@each_row("answer", [None, 3, b"{}", ["a"], {"edits": []}], ids=repr)
def test_another_return_type_is_a_failure(answer: Any) -> None:
    def says(_: str) -> Any:
        return answer

    with pytest.raises(ModelFailed, match="says returned"):
        ask(says)


@pytest.mark.filterwarnings("error")
def test_an_asynchronous_function_is_refused_and_not_left_unawaited() -> None:
    async def later(_: str) -> str:
        return ""

    with pytest.raises(ModelFailed, match="later is asynchronous: pass a synchronous function"):
        ask(later)


def test_a_builtin_is_called_with_a_text() -> None:
    assert FunctionModel(str, name="str").ask(QUESTION, seconds=1).text.endswith("What now?")


def test_as_model_returns_none_for_none_and_a_model_unchanged() -> None:
    model = FunctionModel(str, name="mine")
    assert as_model(None) is None
    assert as_model(model) is model
    assert isinstance(model, Model)
    assert model.name == "mine"


@pytest.mark.parametrize(
    "given", ["gpt", 3, object(), FunctionModel], ids=["a text", "a number", "an object", "a class"]
)
def test_an_invalid_model_is_rejected(given: Any) -> None:
    with pytest.raises(InvalidInput, match="model"):
        as_model(given)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (ModelSettings(), "None"),
        (ModelSettings(name="q", url="http://h/v1"), "OpenAICompatible('http://h/v1', 'q')"),
        (ModelSettings(provider="anthropic", name="c"), "Anthropic('c', url='https://api.anthropic.com')"),
        (ModelSettings(provider="anthropic", name="c", url="http://h"), "Anthropic('c', url='http://h')"),
    ],
)
def test_settings_name_a_model_or_none(settings: ModelSettings, expected: str) -> None:
    assert repr(model_from_settings(settings)) == expected


def test_settings_without_a_url_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"settings\.model\.url"):
        model_from_settings(ModelSettings(name="q"))
