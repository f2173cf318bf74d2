"""Embedding by workers: all resources, in concurrent jobs, and each text once."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence

import pytest
from torture.workers import open_worker

from inmind import Memory
from inmind.apps.worker import postgres
from inmind.search.embedders import FunctionEmbedder

pytest.importorskip("numpy")

MANY = 12


@pytest.mark.spec("J9", "H4")
def test_several_jobs_embed_many_texts_and_none_twice(tenant_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Memory.open(tenant_url, embedder=None) as memory:
        for number in range(MANY):
            for kind in ("cat", "dog"):
                memory.resource(f"owner-{number}").note(f"A {kind} of {number}")
    calls, active, lock, together = Counter[str](), 0, threading.Lock(), threading.Event()

    def embed(texts: Sequence[str]) -> list[list[float]]:
        nonlocal active
        with lock:
            is_first = not calls
            calls.update(texts)
            active += 1
            if active > 1:
                together.set()
        if not is_first:  # more jobs start after the first batch
            together.wait(timeout=10)
        with lock:
            active -= 1
        return [[1.0] for _ in texts]

    monkeypatch.setattr(postgres, "ONCE_SLICE_SECONDS", 0.0)
    embedder = FunctionEmbedder(embed, name="toy", dimensions=1)
    with open_worker(tenant_url, concurrency=4, embedder=embedder) as worker:
        worker.run_once()
    with Memory.open(tenant_url, embedder=embedder) as memory:
        assert memory._context.search.engine.count_without_vectors(99) == 0  # pyright: ignore[reportPrivateUsage] -- as in `status`
    assert together.is_set()
    assert len(calls) == 2 * MANY
    assert set(calls.values()) == {1}
