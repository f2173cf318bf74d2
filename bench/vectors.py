"""Nearest vector search: inmind, brute force in numpy, usearch and sqlite-vec, in one run.

Texts cluster by subject, and random vectors do not. So the vectors are wordllama's, of one to three consecutive
sentences of real conversations; if there are too few, points between two neighbouring sentences are added, with a small
random offset. The queries are the questions of the conversations. A vector of 384 dimensions is one of 256 with half of
its neighbour's appended. Random vectors are measured once, as the worst case: all distances are about equal.

The conversations are not part of this project: INMIND_DATA names the folder that contains locomo, longmemeval and beam.
INMIND_BENCH_SIZES=10000,100000 sets the numbers of vectors. usearch and sqlite-vec are measured if installed.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from itertools import cycle
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.question_sets import SETS, load_haystacks
from bench.table import Row, Table
from bench.timing import TimedCall, Timings, format_duration
from inmind.search.embedders import create_embedder
from inmind.search.nearest import MAX_EXACT, NearestVectors

SIZES = (10_000, 100_000, 1_000_000)
MIN_RECALL = 0.97
MAX_VECTOR_BYTES = 400
"""For each vector of 256 dimensions, above the size that is kept exactly."""
MAX_GRAPH_SIZE = 100_000
"""A larger graph takes longer to build than all other measurements."""

QUERIES = 100
_MAX_TIMING_SECONDS = 120.0
_MAX_RECALL_SECONDS = 20.0
"""If methods are slow, fewer queries are measured."""
_DEPTHS = (10, 100)
_BATCH_SIZE = 16_384
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_MIN_SENTENCE_CHARACTERS = 12

Vectors = NDArray[np.float32]
Search = Callable[[Vectors, int], Sequence[int]]
"""Returns the keys of the nearest vectors, at most `limit`."""
Method = Callable[[Vectors, Path], Search]
"""Stores numbered vectors, with a folder for its files, and returns the search."""


def run() -> list[Table]:
    data = os.environ.get("INMIND_DATA", "")
    haystacks = [haystack for name in SETS if data for haystack in load_haystacks(Path(data), name)]
    if not haystacks:
        return [Table("nearest vectors", [], ["Nothing was measured: INMIND_DATA names no folder with conversations."])]
    sizes = [int(size) for size in os.environ.get("INMIND_BENCH_SIZES", "").split(",") if size] or SIZES
    passages = {
        passage: None for haystack in haystacks for turn in haystack.turns for passage in _split_passages(turn.text)
    }
    questions = [question.text for haystack in haystacks for question in haystack.questions]
    narrow, narrow_queries = _extend(_embed(list(passages)), max(sizes)), _embed(questions)
    inputs = {
        "256 dimensions": (narrow, narrow_queries),
        "384 dimensions": (_widen(narrow, np.roll(narrow, 1, axis=0)), _widen(narrow_queries, narrow_queries)),
    }
    tables = [
        Table(f"the nearest of {size:,} vectors, {title}", rows)
        for title, (vectors, queries) in inputs.items()
        for size, rows in _measure_sizes(vectors, queries, sizes).items()
    ]
    [(size, rows)] = _measure_sizes(
        _random_vectors(max(sizes), 256), _random_vectors(QUERIES, 256), [max(sizes)]
    ).items()
    rows_without_bar = [replace(row, bar="", met=None) for row in rows]
    notes = (
        "Found: of the exact 10 and 100 nearest. Each process has one BLAS thread. "
        f"No graph above {MAX_GRAPH_SIZE:,}. Medians, interleaved.",
    )
    return [*tables, Table(f"the nearest of {size:,} vectors, 256 random numbers", rows_without_bar, notes)]


def _split_passages(text: str) -> Iterator[str]:
    sentences = [sentence for sentence in _SENTENCE.split(text) if len(sentence) >= _MIN_SENTENCE_CHARACTERS]
    for begin in range(len(sentences)):
        for end in range(begin + 1, min(begin + 3, len(sentences)) + 1):
            yield " ".join(sentences[begin:end])


def _embed(texts: Sequence[str]) -> Vectors:
    model = create_embedder("wordllama")
    assert model is not None
    parts = [model.embed(texts[begin : begin + _BATCH_SIZE]) for begin in range(0, len(texts), _BATCH_SIZE)]
    return np.concatenate([np.asarray(part, np.float32) for part in parts])


def _extend(vectors: Vectors, count: int) -> Vectors:
    random = np.random.default_rng(0)
    missing = max(0, count - len(vectors))
    first = random.integers(0, len(vectors), missing)
    second = (first + random.integers(1, 60, missing)) % len(vectors)
    share = random.random((missing, 1), np.float32)
    off = random.standard_normal((missing, vectors.shape[1]), np.float32) * np.float32(0.02)
    between = vectors[second] + share * (vectors[first] - vectors[second]) + off
    return np.concatenate([vectors, _normalize(np.asarray(between, np.float32))])


def _widen(vectors: Vectors, others: Vectors) -> Vectors:
    return _normalize(np.concatenate([vectors, others[:, : vectors.shape[1] // 2]], axis=1))


def _random_vectors(count: int, dimensions: int) -> Vectors:
    return _normalize(np.random.default_rng(count).standard_normal((count, dimensions), np.float32))


def _normalize(vectors: Vectors) -> Vectors:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.finfo(np.float32).tiny)


# -- methods ----------------------------------------------------------------------------------------------


def _methods(count: int) -> Mapping[str, Method]:
    methods: dict[str, Method] = {
        "ours": _ours,
        "numpy, 32 bits": _brute,
        "numpy, 8 bits": _brute_in_8_bits,
    }
    if find_spec("usearch"):
        methods["usearch, exact"] = _usearch
        if count <= MAX_GRAPH_SIZE:
            methods["usearch, graph of 16 bits"] = _usearch_graph
    if find_spec("sqlite_vec"):
        methods["sqlite-vec"] = _sqlite_vec
    return methods


def _ours(vectors: Vectors, _: Path) -> Search:
    nearest = NearestVectors(vectors.shape[1])
    for part in _batches(len(vectors)):
        nearest.add(np.arange(len(vectors))[part], vectors[part])
    return lambda query, limit: [key for key, _ in nearest.nearest(query, limit)]


def _by_argpartition(cosines: Vectors, limit: int) -> Sequence[int]:
    likely = np.argpartition(cosines, -limit)[-limit:]
    return likely[np.argsort(-cosines[likely])].tolist()


def _brute(vectors: Vectors, _: Path) -> Search:
    stored = vectors.copy()
    return lambda query, limit: _by_argpartition(np.vecdot(stored, query), limit)


def _brute_in_8_bits(vectors: Vectors, _: Path) -> Search:
    steps = np.abs(vectors).max(axis=1) / 127
    stored = np.empty(vectors.shape, np.int8)
    for part in _batches(len(vectors)):
        stored[part] = np.rint(vectors[part] / steps[part, None])
    return lambda query, limit: _by_argpartition(
        np.concatenate([np.vecdot(stored[part].astype(np.float32), query) for part in _batches(len(stored))]) * steps,
        limit,
    )


def _usearch(vectors: Vectors, _: Path) -> Search:
    usearch, stored = import_module("usearch.index"), vectors.copy()
    return lambda query, limit: usearch.search(
        stored, query, limit, usearch.MetricKind.Cos, exact=True, threads=1
    ).keys.tolist()


def _usearch_graph(vectors: Vectors, folder: Path) -> Search:
    graph = import_module("usearch.index").Index(ndim=vectors.shape[1], metric="cos", dtype="f16")
    graph.add(np.arange(len(vectors)), vectors, threads=2)
    graph.save(str(folder / "graph"))
    return lambda query, limit: graph.search(query, limit).keys.tolist()


def _sqlite_vec(vectors: Vectors, folder: Path) -> Search:
    database: Any = import_module("apsw").Connection(str(folder / "vectors.db"))
    database.enable_load_extension(True)
    database.load_extension(import_module("sqlite_vec").loadable_path())
    kind = f"float[{vectors.shape[1]}] distance_metric=cosine"
    database.execute(f"CREATE VIRTUAL TABLE held USING vec0(vector {kind})")
    with database:
        database.executemany(
            "INSERT INTO held(rowid, vector) VALUES (?, ?)", ((key, row.tobytes()) for key, row in enumerate(vectors))
        )
    wanted = "SELECT rowid FROM held WHERE vector MATCH ? AND k = ? ORDER BY distance"
    return lambda query, limit: [key for (key,) in database.execute(wanted, (query.tobytes(), limit))]


def _batches(count: int) -> Iterator[slice]:
    return (slice(begin, begin + _BATCH_SIZE) for begin in range(0, count, _BATCH_SIZE))


# -- timing ----------------------------------------------------------------------------------------------


def _measure_sizes(vectors: Vectors, queries: Vectors, sizes: Sequence[int]) -> Mapping[int, list[Row]]:
    """Measure each size in a separate process, for its memory use and its BLAS threads."""
    order = np.random.default_rng(1)
    with TemporaryDirectory() as folder:
        np.save(Path(folder) / "vectors.npy", order.permutation(vectors))
        np.save(Path(folder) / "queries.npy", order.permutation(queries)[:QUERIES])
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "bench.vectors", folder]
        outputs = {
            size: subprocess.run([*command, str(size)], env=environment, check=True, stdout=subprocess.PIPE).stdout
            for size in sizes
        }
    return {size: [Row(**row) for row in json.loads(output)] for size, output in outputs.items()}


def _measure_size(folder: Path, size: int) -> list[Row]:
    vectors = np.array(np.load(folder / "vectors.npy", mmap_mode="r")[:size])
    queries: Vectors = np.load(folder / "queries.npy")
    nearest = [_by_argpartition(np.vecdot(vectors, query), max(_DEPTHS)) for query in queries]
    methods, timings = _methods(size), Timings()
    with TemporaryDirectory() as place:
        searches: dict[str, Search] = {}
        costs: dict[str, dict[str, float]] = {}
        for name, method in methods.items():
            method_folder = Path(place) / name
            method_folder.mkdir()
            before, started = _resident(), perf_counter()
            searches[name] = method(vectors, method_folder)
            costs[name] = {
                "seconds to add": perf_counter() - started,
                "bytes in memory": (_resident() - before) / size,
                "bytes on disk": sum(file.stat().st_size for file in method_folder.iterdir()) / size,
            }
        timed_calls = {name: _search_call(search, queries) for name, search in searches.items()}
        timings.run(timed_calls, repetitions=1)  # warm-up
        timings.samples.clear()
        end = perf_counter() + _MAX_TIMING_SECONDS
        for _ in queries:
            if perf_counter() < end:
                timings.run(timed_calls, repetitions=1)
        recalls = {
            name: [_recall(search, queries, nearest, depth) for depth in _DEPTHS] for name, search in searches.items()
        }
    return [_row(name, timings, costs[name], recalls[name], size=size, dimensions=vectors.shape[1]) for name in methods]


def _search_call(search: Search, queries: Vectors) -> TimedCall:
    turns = cycle(queries)
    return TimedCall(lambda: search(next(turns), _DEPTHS[0]))


def _recall(search: Search, queries: Vectors, nearest: Sequence[Sequence[int]], depth: int) -> float:
    end = perf_counter() + _MAX_RECALL_SECONDS
    shares: list[float] = []
    for query, exact in zip(queries, nearest, strict=True):
        if perf_counter() < end:
            shares.append(len({*search(query, depth)} & {*exact[:depth]}) / depth)
    return mean(shares)


def _row(
    name: str, timings: Timings, costs: Mapping[str, float], recalls: Sequence[float], *, size: int, dimensions: int
) -> Row:
    recall_text = " / ".join(f"{recall:.3f}" for recall in recalls)
    measured = (
        f"{format_duration(timings.median(name))}, p99 {format_duration(timings.p99(name))}; found {recall_text}; "
        f"added in {costs['seconds to add']:.1f} s; {costs['bytes in memory']:.0f} bytes each, "
        f"{costs['bytes on disk']:.0f} on disk"
    )
    figures = {"seconds": timings.median(name), "p99": timings.p99(name), **costs}
    figures |= {f"recall@{depth}": recall for depth, recall in zip(_DEPTHS, recalls, strict=True)}
    if name != "ours":
        return Row(what=name, measured=measured, figures=figures)
    if size <= MAX_EXACT:
        return Row(what=name, measured=measured, bar="all found", met=min(recalls) == 1.0, figures=figures)
    allowed = MAX_VECTOR_BYTES * dimensions // 256
    return Row(
        what=name,
        measured=measured,
        bar=f"found >= {MIN_RECALL}, <= {allowed} bytes",
        met=recalls[0] >= MIN_RECALL and costs["bytes in memory"] <= allowed,
        figures=figures,
    )


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    print(json.dumps([row.as_json() for row in _measure_size(Path(sys.argv[1]), int(sys.argv[2]))]))
