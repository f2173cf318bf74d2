"""The port to a language model, for what dreams ask of one.

Dreams do without. Where there is one, it is asked while no lock is held, so however long it takes it keeps nobody
waiting; and what it answers is a proposal, checked like anything that comes from outside.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from inmind.core.frozen import frozen


@frozen(kw_only=True)
class Question:
    """What a model is asked, once and for itself: no conversation goes on behind it."""

    system: str
    prompt: str
    schema: Mapping[str, Any] | None = None
    """JSON Schema of the answer, for models that can be held to one. Others are told in the prompt."""
    max_tokens: int = 4_096
    """Of the answer."""


@frozen(kw_only=True)
class ModelReply:
    """What it answered."""

    text: str
    tokens: tuple[int, int] = (0, 0)
    """Read and written, as far as it says."""
    truncated: bool = False
    """It had more to say than it was allowed to."""


@runtime_checkable
class Model(Protocol):
    """A model that can be asked.

    Its promises, each a test in tests/acceptance/test_models.py: an answer within `seconds` and of at most a megabyte,
    or ModelFailed; what may pass is tried again, twice at most; nobody reads its key in an error or a `repr`.

    `inmind.dreams.models.as_model` makes one of a function.
    """

    @property
    def name(self) -> str:
        """As it stands in the record of a dream."""
        ...

    def ask(self, question: Question, /, *, seconds: float) -> ModelReply: ...
