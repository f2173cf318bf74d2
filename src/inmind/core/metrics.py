"""Metrics of dreams, jobs and the queue, through the OpenTelemetry API.

Only the API is used, and only if it is installed. Without an exporter configured by the host, nothing is recorded.
Attributes named `gen_ai.…` follow the conventions for generative AI.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Final

DREAM_ATTRIBUTES: Final = {"gen_ai.operation.name": "invoke_workflow", "gen_ai.workflow.name": "dream"}
"""Attributes of a dream in the conventions for generative AI."""

_PROVIDERS = ("anthropic", "openai")
"""Prefixes of our model names that are provider names in the conventions."""

_SCOPE = "inmind"


def count_dream(
    *,
    outcome: str,
    by: str,
    trigger: str,
    seconds: float,
    tokens: tuple[int, int] = (0, 0),
    price: float = 0.0,
) -> None:
    """Count a dream that ended or was released. `outcome` is done, LEFT, or an error code."""
    instruments = _instruments()
    if not instruments:
        return
    attributes = {
        **DREAM_ATTRIBUTES,
        "inmind.dream.by": by,
        "inmind.dream.outcome": outcome,
        "inmind.dream.trigger": trigger,
    }
    instruments["inmind.dreams"].add(1, attributes)
    instruments["inmind.dream.duration"].record(seconds, attributes)
    if any(tokens):
        model_attributes = {**DREAM_ATTRIBUTES, **_model_attributes(by)}
        for kind, count in zip(("input", "output"), tokens, strict=True):
            instruments["inmind.dream.tokens"].record(count, {**model_attributes, "gen_ai.token.type": kind})
        instruments["inmind.dream.price"].record(price, model_attributes)


def _model_attributes(by: str) -> dict[str, str]:
    """Provider and name of a model. The provider of a host's own model is unknown."""
    provider, _, name = by.partition(":")
    if provider in _PROVIDERS and name:
        return {"gen_ai.provider.name": provider, "gen_ai.request.model": name}
    return {"gen_ai.request.model": by}


def count_job(*, task: str, outcome: str) -> None:
    """Count a job that ended: done, to be retried, released, or failed for good."""
    if instruments := _instruments():
        instruments["inmind.jobs"].add(1, {"inmind.job.task": task, "inmind.job.outcome": outcome})


def observe_queue(read_queue: Callable[[], Mapping[str, float]]) -> None:
    """Register gauges of a queue for the life of the process: `waiting`, `running`, `lag`.

    `read_queue` is called once per collection; a gauge it does not return is not observed.
    """
    meter = _meter()
    if meter is None:
        return
    from opentelemetry.metrics import CallbackOptions, Observation

    seen: dict[str, float] = {}

    def gauge(name: str) -> Callable[[CallbackOptions], Iterable[Observation]]:
        def observe(_: CallbackOptions) -> Iterable[Observation]:
            if name == _GAUGES[0][0]:  # gauges are collected in the order in which they were created
                seen.clear()
                seen.update(read_queue())
            return [Observation(seen[name])] if name in seen else []

        return observe

    for name, unit, description in _GAUGES:
        meter.create_observable_gauge(
            f"inmind.queue.{name}", callbacks=[gauge(name)], unit=unit, description=description
        )


_GAUGES = (
    ("waiting", "{job}", "Jobs that wait for a worker."),
    ("running", "{job}", "Jobs that a worker runs."),
    ("lag", "s", "Age of the oldest waiting job."),
)


@cache
def _instruments() -> dict[str, Any]:
    """Instruments by name; empty without OpenTelemetry."""
    meter = _meter()
    if meter is None:
        return {}
    return {
        "inmind.dreams": meter.create_counter("inmind.dreams", "{dream}", "Dreams that ended."),
        "inmind.dream.duration": meter.create_histogram("inmind.dream.duration", "s", "How long a dream took."),
        "inmind.dream.tokens": meter.create_histogram(
            "inmind.dream.tokens", "{token}", "Tokens that a model read or wrote for a dream."
        ),
        "inmind.dream.price": meter.create_histogram(
            "inmind.dream.price", "{currency}", "Cost of a dream, in the currency of the settings."
        ),
        "inmind.jobs": meter.create_counter("inmind.jobs", "{job}", "Jobs that ended."),
    }


@cache
def _meter() -> Any:
    try:
        from opentelemetry import metrics
    except ImportError:
        return None
    return metrics.get_meter(_SCOPE)
