"""Metrics as a collector reads them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from builders import Home
from opentelemetry import metrics as otel
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from inmind import Memory
from inmind.core import metrics
from inmind.dreams.models import ModelReply, Question
from inmind.jobs.dream_lease import LeaseReleased
from inmind.testing import ManualClock

pytestmark = pytest.mark.both_stores


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemoryMetricReader]:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    monkeypatch.setattr(otel, "get_meter", provider.get_meter)
    _reset_metrics()
    yield reader
    provider.shutdown()
    _reset_metrics()


def _reset_metrics() -> None:
    metrics._meter.cache_clear()  # pyright: ignore[reportPrivateUsage] -- the cached meter has another provider
    metrics._instruments.cache_clear()  # pyright: ignore[reportPrivateUsage]


def collect(reader: InMemoryMetricReader) -> dict[str, tuple[str, list[Any]]]:
    """Unit and points of each metric, by name."""
    data = reader.get_metrics_data()
    assert data is not None
    collected = [
        metric for resource in data.resource_metrics for scope in resource.scope_metrics for metric in scope.metrics
    ]
    return {metric.name: (metric.unit or "", list(metric.data.data_points)) for metric in collected}


class Model:
    name = "some-model"

    def ask(self, question: Question, /, *, seconds: float) -> ModelReply:  # noqa: ARG002 -- required by the protocol
        return ModelReply(text='{"edits": []}', tokens=(900, 100))


def test_a_dream_is_counted_with_its_outcome_and_duration(tmp_path: Path, reader: InMemoryMetricReader) -> None:
    with Memory.open(tmp_path, embedder=None, model=Model(), settings={"model.input_price": 2.0}) as memory:
        memory.resource("ada").note("Just so")
        memory.dream("ada", key="once")
        memory.dream("ada", key="once")  # a failed start is not a dream
    collected = collect(reader)
    unit, (point,) = collected["inmind.dreams"]
    assert (unit, point.value) == ("{dream}", 1)
    assert dict(point.attributes) == {
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.workflow.name": "dream",
        "inmind.dream.by": "some-model",
        "inmind.dream.outcome": "done",
        "inmind.dream.trigger": "asked",
    }
    unit, (point,) = collected["inmind.dream.duration"]
    assert (unit, point.count) == ("s", 1)
    unit, points = collected["inmind.dream.tokens"]
    assert unit == "{token}"
    assert {point.attributes["gen_ai.token.type"]: point.sum for point in points} == {"input": 900, "output": 100}
    _, (point,) = collected["inmind.dream.price"]
    assert point.sum == pytest.approx(0.0018)


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("openai:gpt-5-mini", {"gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-5-mini"}),
        ("anthropic:claude", {"gen_ai.provider.name": "anthropic", "gen_ai.request.model": "claude"}),
        ("openai:qwen3:8b", {"gen_ai.provider.name": "openai", "gen_ai.request.model": "qwen3:8b"}),
        ("mine:8b", {"gen_ai.request.model": "mine:8b"}),
    ],
)
def test_a_model_is_reported_by_name_and_provider(
    reader: InMemoryMetricReader, by: str, expected: dict[str, str]
) -> None:
    metrics.count_dream(outcome="done", by=by, trigger="asked", seconds=1, tokens=(9, 1))
    collected = collect(reader)
    for name in ("inmind.dream.tokens", "inmind.dream.price"):
        for point in collected[name][1]:
            assert {
                key: value for key, value in point.attributes.items() if key.endswith((".provider.name", ".model"))
            } == expected


def test_a_failed_dream_is_counted_by_its_error_code(tmp_path: Path, reader: InMemoryMetricReader) -> None:
    with Memory.open(tmp_path, embedder=None) as memory:
        memory.resource("ada").note("Just so")
        with pytest.raises(RuntimeError):
            memory.dream("ada", watch=_fail)
        memory.dream("ada", cancelled=lambda: True)
    _, points = collect(reader)["inmind.dreams"]
    assert sorted(point.attributes["inmind.dream.outcome"] for point in points) == ["DREAM_OVERTAKEN", "RuntimeError"]


def _fail(phase: str, _: str) -> None:
    raise RuntimeError(phase)


def test_the_cost_of_a_dream_is_counted_by_the_process_that_paid(home: Home, reader: InMemoryMetricReader) -> None:
    """The cost is counted once, even if another process resumes the dream."""
    clock = ManualClock()
    with Memory.open(home, embedder=None, model=Model(), clock=clock) as memory:
        memory.resource("ada").note("Just so")
        with pytest.raises(LeaseReleased):
            memory.dream("ada", watch=_release_lease)
        memory.dream("ada")
    collected = collect(reader)
    _, points = collected["inmind.dream.tokens"]
    assert {point.attributes["gen_ai.token.type"]: point.sum for point in points} == {"input": 900, "output": 100}
    _, points = collected["inmind.dreams"]
    assert sum(point.value for point in points) == 2


def _release_lease(phase: str, _: str) -> None:
    if phase == "check":
        raise LeaseReleased


def test_an_unreachable_queue_is_not_reported_as_empty(reader: InMemoryMetricReader) -> None:
    reads: list[int] = []

    def read_queue() -> dict[str, float]:
        reads.append(1)
        return {"waiting": 1, "running": 2, "lag": 3} if len(reads) == 1 else {}

    metrics.observe_queue(read_queue)
    assert len([name for name in collect(reader) if ".queue." in name]) == 3
    assert len(reads) == 1
    assert reader.get_metrics_data() is None


def test_jobs_are_counted_and_the_queue_is_read_on_collection(reader: InMemoryMetricReader) -> None:
    metrics.count_job(task="tend", outcome="done")
    metrics.count_job(task="tend", outcome="done")
    metrics.count_job(task="tend", outcome="again")
    seen = [{"waiting": 7, "running": 2, "lag": 1.5}]
    metrics.observe_queue(lambda: seen[-1])
    collected = collect(reader)
    unit, points = collected["inmind.jobs"]
    assert unit == "{job}"
    assert {point.attributes["inmind.job.outcome"]: point.value for point in points} == {"done": 2, "again": 1}
    gauges = {name: (unit, points[0].value) for name, (unit, points) in collected.items() if ".queue." in name}
    assert gauges == {
        "inmind.queue.waiting": ("{job}", 7),
        "inmind.queue.running": ("{job}", 2),
        "inmind.queue.lag": ("s", 1.5),
    }


def test_without_opentelemetry_nothing_is_measured_and_nothing_fails() -> None:
    code = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "from inmind.core import metrics\n"
        "metrics.count_job(task='tend', outcome='done'); metrics.observe_queue(dict)\n"
        "metrics.count_dream(outcome='done', by='rules', trigger='asked', seconds=1)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_importing_inmind_does_not_import_opentelemetry() -> None:
    code = "import sys, inmind; from inmind import Memory; assert 'opentelemetry' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
