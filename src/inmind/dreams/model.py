"""The protocol of a language model for dreams.

A model is optional. It is called without holding a lock, so a slow model blocks nothing else. Its answer is a proposal
and is validated like any external input.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from inmind.core.frozen import frozen


@frozen(kw_only=True)
class Question:
    """A single request to a model, without a conversation."""

    system: str
    prompt: str
    schema: Mapping[str, Any] | None = None
    """JSON Schema of the answer, for models that support one. The prompt describes the format too."""
    max_tokens: int = 4_096
    """Maximum tokens of the answer."""


@frozen(kw_only=True)
class ModelReply:
    """The answer of a model."""

    text: str
    tokens: tuple[int, int] = (0, 0)
    """Input and output tokens, as reported by the model."""
    truncated: bool = False
    """True if the answer was cut at the token limit."""


@runtime_checkable
class Model(Protocol):
    """A language model that answers single questions.

    Implementations guarantee, with a test for each in tests/acceptance/test_models.py: an answer within `seconds` and
    of at most one megabyte, or ModelFailed; at most two retries of temporary errors; no API key in errors or `repr`.

    `inmind.dreams.models.as_model` wraps a function as a Model.
    """

    @property
    def name(self) -> str:
        """The name stored with a dream."""
        ...

    def ask(self, question: Question, /, *, seconds: float) -> ModelReply: ...


@frozen
class ModelCost:
    """Tokens and price of calls."""

    tokens: tuple[int, int] = (0, 0)
    """Input and output tokens."""
    price: float = 0.0

    def __add__(self, other: ModelCost) -> ModelCost:
        read, written = (first + second for first, second in zip(self.tokens, other.tokens, strict=True))
        return ModelCost((read, written), self.price + other.price)
