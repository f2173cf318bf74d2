"""Models for dreams: OpenAI-compatible servers, Anthropic, or a function.

    OpenAICompatible("http://localhost:11434/v1", "qwen3")
    Anthropic("claude-sonnet-4-5")
    lambda prompt: my_model(prompt)

Without a model, nothing leaves the machine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from inmind.core.settings import ModelSettings
from inmind.dreams.model import Model, ModelReply, Question
from inmind.dreams.models.anthropic import Anthropic
from inmind.dreams.models.function import FunctionModel
from inmind.dreams.models.openai import OpenAICompatible
from inmind.errors import InvalidInput

__all__ = [
    "Anthropic",
    "FunctionModel",
    "Model",
    "ModelReply",
    "OpenAICompatible",
    "Question",
    "as_model",
    "model_from_settings",
]


def as_model(model: Model | Callable[..., Any] | None) -> Model | None:
    """Return the Model for a host's argument: a Model, a function, or None."""
    if model is None or isinstance(model, Model):
        return model
    if callable(model) and not isinstance(model, type):
        return FunctionModel(model)
    expected = "OpenAICompatible(…), Anthropic(…), a function from a prompt to an answer, or None"
    raise InvalidInput(field="model", value=model, expected=expected)


def model_from_settings(settings: ModelSettings) -> Model | None:
    """The model named in the settings, or None."""
    if not settings.name:
        return None
    if settings.provider == "anthropic":
        return Anthropic(settings.name, url=settings.url, key_env=settings.key_env)
    if not settings.url:
        expected = 'the address of a server, like "http://localhost:11434/v1"'
        raise InvalidInput(field="settings.model.url", value=settings.url, expected=expected)
    return OpenAICompatible(settings.url, settings.name, key_env=settings.key_env)
