"""Vectors made by workers: of everybody, beside each other, and of each text once."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence

import pytest
from torture.workers import a_worker

from inmind import Memory
from inmind.apps.worker import postgres
from inmind.search.embedders import FunctionEmbedder

pytest.importorskip("numpy")

MANY = 12


@pytest.mark.spec("J9", "H4")
def test_where_much_is_left_several_jobs_embed_it_and_none_of_it_twice(
    tenant_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Memory.open(tenant_url, embedder=None) as memory:
        for number in range(MANY):
            for kind in ("cat", "dog"):
                memory.resource(f"owner-{number}").note(f"A {kind} of {number}")
    paid, working, lock, together = Counter[str](), 0, threading.Lock(), threading.Event()

    def embed(texts: Sequence[str]) -> list[list[float]]:
        nonlocal working
        with lock:
            is_first = not paid
            paid.update(texts)
            working += 1
            if working > 1:
                together.set()
        if not is_first:  # by then it is known that one does not suffice
            together.wait(timeout=10)
        with lock:
            working -= 1
        return [[1.0] for _ in texts]

    monkeypatch.setattr(postgres, "ONCE_SLICE_SECONDS", 0.0)
    embedder = FunctionEmbedder(embed, name="toy", dimensions=1)
    with a_worker(tenant_url, most=4, embedder=embedder) as worker:
        worker.run_once()
    with Memory.open(tenant_url, embedder=embedder) as memory:
        assert memory._context.search_engine().count_without_vectors(99) == 0  # pyright: ignore[reportPrivateUsage] -- as `status` tells
    assert together.is_set()
    assert len(paid) == 2 * MANY
    assert set(paid.values()) == {1}
