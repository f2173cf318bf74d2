"""What is measured, for whoever has OpenTelemetry: counters and histograms of dreams and jobs, gauges of a queue.

Only its interface is used, and only where it is installed: a host says where the numbers go, and without a host that
does, or without the package, nothing happens here. Names of others' conventions are theirs: `gen_ai.…`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Final

OPERATION: Final = {"gen_ai.operation.name": "invoke_workflow", "gen_ai.workflow.name": "dream"}
"""What a dream is, in the conventions for generative AI."""

_PROVIDERS = ("anthropic", "openai")
"""Which stand before the names of our models, and whose interface is spoken; as the conventions call them."""

_SCOPE = "inmind"


def dreamt(
    *,
    outcome: str,
    by: str,
    trigger: str,
    seconds: float,
    tokens: tuple[int, int] = (0, 0),
    price: float = 0.0,
) -> None:
    """A dream that came to an end, or was left off. `outcome`: done, LEFT, or the code of what it failed of."""
    instruments = _instruments()
    if not instruments:
        return
    told = {**OPERATION, "inmind.dream.by": by, "inmind.dream.outcome": outcome, "inmind.dream.trigger": trigger}
    instruments["inmind.dreams"].add(1, told)
    instruments["inmind.dream.duration"].record(seconds, told)
    if any(tokens):
        asked = {**OPERATION, **_model(by)}
        for kind, count in zip(("input", "output"), tokens, strict=True):
            instruments["inmind.dream.tokens"].record(count, {**asked, "gen_ai.token.type": kind})
        instruments["inmind.dream.price"].record(price, asked)


def _model(by: str) -> dict[str, str]:
    """Whose it is, and its own name. Of a host's own model nobody says whose it is."""
    provider, _, name = by.partition(":")
    if provider in _PROVIDERS and name:
        return {"gen_ai.provider.name": provider, "gen_ai.request.model": name}
    return {"gen_ai.request.model": by}


def worked(*, task: str, outcome: str) -> None:
    """A job that came to an end: done, again later, left off, or failed for good."""
    if instruments := _instruments():
        instruments["inmind.jobs"].add(1, {"inmind.job.task": task, "inmind.job.outcome": outcome})


def watch_queue(look: Callable[[], Mapping[str, float]]) -> None:
    """Gauges of a queue, asked once whenever somebody collects: `waiting`, `running`, `lag`; one that is not told is
    not observed. For the life of a process."""
    meter = _meter()
    if meter is None:
        return
    from opentelemetry.metrics import CallbackOptions, Observation

    seen: dict[str, float] = {}

    def gauge(name: str) -> Callable[[CallbackOptions], Iterable[Observation]]:
        def observe(_: CallbackOptions) -> Iterable[Observation]:
            if name == _GAUGES[0][0]:  # they are asked in the order in which they were made
                seen.clear()
                seen.update(look())
            return [Observation(seen[name])] if name in seen else []

        return observe

    for name, unit, description in _GAUGES:
        meter.create_observable_gauge(
            f"inmind.queue.{name}", callbacks=[gauge(name)], unit=unit, description=description
        )


_GAUGES = (
    ("waiting", "{job}", "Jobs that wait for a worker."),
    ("running", "{job}", "Jobs that a worker has."),
    ("lag", "s", "For how long the first job that waits has been there."),
)


@cache
def _instruments() -> dict[str, Any]:
    """By their names; none where there is no OpenTelemetry."""
    meter = _meter()
    if meter is None:
        return {}
    return {
        "inmind.dreams": meter.create_counter("inmind.dreams", "{dream}", "Dreams that came to an end."),
        "inmind.dream.duration": meter.create_histogram("inmind.dream.duration", "s", "How long a dream took."),
        "inmind.dream.tokens": meter.create_histogram(
            "inmind.dream.tokens", "{token}", "Tokens that a model read or wrote for a dream."
        ),
        "inmind.dream.price": meter.create_histogram(
            "inmind.dream.price", "{currency}", "What a dream has cost, in the currency of the settings."
        ),
        "inmind.jobs": meter.create_counter("inmind.jobs", "{job}", "Jobs that came to an end."),
    }


@cache
def _meter() -> Any:
    try:
        from opentelemetry import metrics
    except ImportError:
        return None
    return metrics.get_meter(_SCOPE)
