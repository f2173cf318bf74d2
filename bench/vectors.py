"""Which way to the nearest vectors: ours, brute force in numpy, usearch or sqlite-vec, all in one race.

Texts gather around subjects, and vectors of random numbers do not, so these are wordllama's, of one to three sentences
in a row out of real conversations; where those run out, points between two that were said close to each other, a little
off the line. Asked are the questions that come with the conversations. Of 384 dimensions is such a vector with half of
its neighbour's behind it. Random numbers are there once, as the worst that can happen: everything is equally far apart.

The conversations are not part of this project: INMIND_DATA names the folder that holds locomo, longmemeval and beam.
INMIND_BENCH_SIZES=10000,100000 says how many vectors there are. usearch and sqlite-vec are in the race where installed.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
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

from bench.question_sets import SETS, haystacks
from bench.table import Row, Table
from bench.timing import Contender, Race, spoken
from inmind.search.embedders import create_embedder
from inmind.search.nearest import MAX_EXACT, NearestVectors

SIZES = (10_000, 100_000, 1_000_000)
LEAST_RECALL = 0.97
MOST_BYTES = 400
"""For each vector of 256 dimensions, where there are more than are kept whole."""
MOST_IN_A_GRAPH = 100_000
"""A larger one takes longer to build than all the rest of this."""

QUERIES = 100
_LONGEST_RACE = 120.0
_LONGEST_JUDGED = 20.0
"""Seconds. Where everybody, or somebody, is slow, fewer questions are asked."""
_DEPTHS = (10, 100)
_AT_A_TIME = 16_384
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_SHORTEST = 12

Vectors = NDArray[np.float32]
Ask = Callable[[Vectors, int], Sequence[int]]
"""The keys that are nearest to a query, so many of them."""
Way = Callable[[Vectors, Path], Ask]
"""Takes the vectors in, with a folder for what it keeps on disk; they are numbered through."""


def run() -> list[Table]:
    data = os.environ.get("INMIND_DATA", "")
    found = [haystack for name in SETS if data for haystack in haystacks(Path(data), name)]
    if not found:
        return [Table("nearest vectors", [], ["Nothing was measured: INMIND_DATA names no folder with conversations."])]
    sizes = [int(size) for size in os.environ.get("INMIND_BENCH_SIZES", "").split(",") if size] or SIZES
    said = {piece: None for haystack in found for turn in haystack.turns for piece in _pieces_of(turn.text)}
    asked = [question.text for haystack in found for question in haystack.questions]
    narrow, narrow_asked = _as_many(_embedded(list(said)), max(sizes)), _embedded(asked)
    courses = {
        "256 dimensions": (narrow, narrow_asked),
        "384 dimensions": (_wider(narrow, np.roll(narrow, 1, axis=0)), _wider(narrow_asked, narrow_asked)),
    }
    tables = [
        Table(f"the nearest of {size:,} vectors, {title}", rows)
        for title, (vectors, queries) in courses.items()
        for size, rows in _raced(vectors, queries, sizes).items()
    ]
    [(size, rows)] = _raced(_random(max(sizes), 256), _random(QUERIES, 256), [max(sizes)]).items()
    unjudged = [replace(row, bar="", met=None) for row in rows]
    notes = (
        "Found: of the exact 10 and 100 nearest. Each process has one thread of BLAS; 'two threads' halves the rows. "
        f"No graph of more than {MOST_IN_A_GRAPH:,}. Medians, taking turns.",
    )
    return [*tables, Table(f"the nearest of {size:,} vectors, 256 random numbers", unjudged, notes)]


def _pieces_of(text: str) -> Iterator[str]:
    sentences = [sentence for sentence in _SENTENCE.split(text) if len(sentence) >= _SHORTEST]
    for begin in range(len(sentences)):
        for end in range(begin + 1, min(begin + 3, len(sentences)) + 1):
            yield " ".join(sentences[begin:end])


def _embedded(texts: Sequence[str]) -> Vectors:
    model = create_embedder("wordllama")
    assert model is not None
    parts = [model.embed(texts[begin : begin + _AT_A_TIME]) for begin in range(0, len(texts), _AT_A_TIME)]
    return np.concatenate([np.asarray(part, np.float32) for part in parts])


def _as_many(vectors: Vectors, count: int) -> Vectors:
    chance = np.random.default_rng(0)
    missing = max(0, count - len(vectors))
    first = chance.integers(0, len(vectors), missing)
    second = (first + chance.integers(1, 60, missing)) % len(vectors)
    share = chance.random((missing, 1), np.float32)
    off = chance.standard_normal((missing, vectors.shape[1]), np.float32) * np.float32(0.02)
    between = vectors[second] + share * (vectors[first] - vectors[second]) + off
    return np.concatenate([vectors, _unit(np.asarray(between, np.float32))])


def _wider(vectors: Vectors, others: Vectors) -> Vectors:
    return _unit(np.concatenate([vectors, others[:, : vectors.shape[1] // 2]], axis=1))


def _random(count: int, dimensions: int) -> Vectors:
    return _unit(np.random.default_rng(count).standard_normal((count, dimensions), np.float32))


def _unit(vectors: Vectors) -> Vectors:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.finfo(np.float32).tiny)


# -- the ways ----------------------------------------------------------------------------------------------


def _ways(count: int) -> Mapping[str, Way]:
    ways: dict[str, Way] = {
        "ours": _ours,
        "numpy, 32 bits": partial(_brute, product=np.vecdot),
        "numpy, 32 bits, by partition": partial(_brute, product=np.vecdot, best=_by_partition),
        "numpy, 32 bits, product of matrices": partial(_brute, product=np.matmul),
        "numpy, 32 bits, two threads": _brute_in_two,
        "numpy, 16 bits": _brute_in_16_bits,
        "numpy, 8 bits": _brute_in_8_bits,
    }
    if find_spec("usearch"):
        ways["usearch, exact"] = _usearch
        if count <= MOST_IN_A_GRAPH:
            ways["usearch, graph of 16 bits"] = _usearch_graph
    if find_spec("sqlite_vec"):
        ways["sqlite-vec"] = _sqlite_vec
    return ways


def _ours(vectors: Vectors, _: Path) -> Ask:
    nearest = NearestVectors(vectors.shape[1])
    for part in _parts(len(vectors)):
        nearest.add(np.arange(len(vectors))[part], vectors[part])
    return lambda query, most: [key for key, _ in nearest.nearest(query, most)]


def _by_argpartition(cosines: Vectors, most: int) -> Sequence[int]:
    likely = np.argpartition(cosines, -most)[-most:]
    return likely[np.argsort(-cosines[likely])].tolist()


def _by_partition(cosines: Vectors, most: int) -> Sequence[int]:
    likely = np.flatnonzero(cosines >= np.partition(cosines, -most)[-most])
    return likely[np.argsort(-cosines[likely])][:most].tolist()


def _brute(
    vectors: Vectors,
    _: Path,
    *,
    product: Callable[[Vectors, Vectors], Vectors],
    best: Callable[[Vectors, int], Sequence[int]] = _by_argpartition,
) -> Ask:
    held = vectors.copy()
    return lambda query, most: best(product(held, query), most)


def _brute_in_two(vectors: Vectors, _: Path) -> Ask:
    held, threads, middle = vectors.copy(), ThreadPoolExecutor(2), len(vectors) // 2

    def ask(query: Vectors, most: int) -> Sequence[int]:
        halves = threads.map(np.vecdot, (held[:middle], held[middle:]), (query, query))
        return _by_argpartition(np.concatenate(list(halves)), most)

    return ask


def _brute_in_16_bits(vectors: Vectors, _: Path) -> Ask:
    held = vectors.astype(np.float16)
    return lambda query, most: _by_argpartition(
        np.concatenate([np.vecdot(held[part].astype(np.float32), query) for part in _parts(len(held))]), most
    )


def _brute_in_8_bits(vectors: Vectors, _: Path) -> Ask:
    steps = np.abs(vectors).max(axis=1) / 127
    held = np.empty(vectors.shape, np.int8)
    for part in _parts(len(vectors)):
        held[part] = np.rint(vectors[part] / steps[part, None])
    return lambda query, most: _by_argpartition(
        np.concatenate([np.vecdot(held[part].astype(np.float32), query) for part in _parts(len(held))]) * steps, most
    )


def _usearch(vectors: Vectors, _: Path) -> Ask:
    usearch, held = import_module("usearch.index"), vectors.copy()
    return lambda query, most: usearch.search(
        held, query, most, usearch.MetricKind.Cos, exact=True, threads=1
    ).keys.tolist()


def _usearch_graph(vectors: Vectors, folder: Path) -> Ask:
    graph = import_module("usearch.index").Index(ndim=vectors.shape[1], metric="cos", dtype="f16")
    graph.add(np.arange(len(vectors)), vectors, threads=2)
    graph.save(str(folder / "graph"))
    return lambda query, most: graph.search(query, most).keys.tolist()


def _sqlite_vec(vectors: Vectors, folder: Path) -> Ask:
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
    return lambda query, most: [key for (key,) in database.execute(wanted, (query.tobytes(), most))]


def _parts(count: int) -> Iterator[slice]:
    return (slice(begin, begin + _AT_A_TIME) for begin in range(0, count, _AT_A_TIME))


# -- the race ----------------------------------------------------------------------------------------------


def _raced(vectors: Vectors, queries: Vectors, sizes: Sequence[int]) -> Mapping[int, list[Row]]:
    """Each in a process of its own, so that memory is what these take, and BLAS has the threads that it is told."""
    order = np.random.default_rng(1)
    with TemporaryDirectory() as folder:
        np.save(Path(folder) / "vectors.npy", order.permutation(vectors))
        np.save(Path(folder) / "queries.npy", order.permutation(queries)[:QUERIES])
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        course = [sys.executable, "-m", "bench.vectors", folder]
        ran = {
            size: subprocess.run([*course, str(size)], env=environment, check=True, stdout=subprocess.PIPE).stdout
            for size in sizes
        }
    return {size: [Row(**row) for row in json.loads(answered)] for size, answered in ran.items()}


def _measured(folder: Path, size: int) -> list[Row]:
    vectors = np.array(np.load(folder / "vectors.npy", mmap_mode="r")[:size])
    queries: Vectors = np.load(folder / "queries.npy")
    right = [_by_argpartition(np.vecdot(vectors, query), max(_DEPTHS)) for query in queries]
    ways, race = _ways(size), Race()
    with TemporaryDirectory() as place:
        asks: dict[str, Ask] = {}
        taken: dict[str, dict[str, float]] = {}
        for name, way in ways.items():
            own = Path(place) / name
            own.mkdir()
            before, begun = _resident(), perf_counter()
            asks[name] = way(vectors, own)
            taken[name] = {
                "seconds to add": perf_counter() - begun,
                "bytes in memory": (_resident() - before) / size,
                "bytes on disk": sum(file.stat().st_size for file in own.iterdir()) / size,
            }
        course = {name: _asking(ask, queries) for name, ask in asks.items()}
        race.run(course, repetitions=1)  # to touch everything once
        race.samples.clear()
        end = perf_counter() + _LONGEST_RACE
        for _ in queries:
            if perf_counter() < end:
                race.run(course, repetitions=1)
        recalls = {name: [_recall(ask, queries, right, depth) for depth in _DEPTHS] for name, ask in asks.items()}
    return [_row(name, race, taken[name], recalls[name], size=size, dimensions=vectors.shape[1]) for name in ways]


def _asking(ask: Ask, queries: Vectors) -> Contender:
    turns = cycle(queries)
    return Contender(lambda: ask(next(turns), _DEPTHS[0]))


def _recall(ask: Ask, queries: Vectors, right: Sequence[Sequence[int]], depth: int) -> float:
    end = perf_counter() + _LONGEST_JUDGED
    shares: list[float] = []
    for query, exact in zip(queries, right, strict=True):
        if perf_counter() < end:
            shares.append(len({*ask(query, depth)} & {*exact[:depth]}) / depth)
    return mean(shares)


def _row(
    name: str, race: Race, taken: Mapping[str, float], recalls: Sequence[float], *, size: int, dimensions: int
) -> Row:
    shown = " / ".join(f"{recall:.3f}" for recall in recalls)
    measured = (
        f"{spoken(race.median(name))}, p99 {spoken(race.p99(name))}; found {shown}; "
        f"added in {taken['seconds to add']:.1f} s; {taken['bytes in memory']:.0f} bytes each, "
        f"{taken['bytes on disk']:.0f} on disk"
    )
    figures = {"seconds": race.median(name), "p99": race.p99(name), **taken}
    figures |= {f"recall@{depth}": recall for depth, recall in zip(_DEPTHS, recalls, strict=True)}
    if name != "ours":
        return Row(what=name, measured=measured, figures=figures)
    if size <= MAX_EXACT:
        return Row(what=name, measured=measured, bar="all found", met=min(recalls) == 1.0, figures=figures)
    allowed = MOST_BYTES * dimensions // 256
    return Row(
        what=name,
        measured=measured,
        bar=f"found >= {LEAST_RECALL}, <= {allowed} bytes",
        met=recalls[0] >= LEAST_RECALL and taken["bytes in memory"] <= allowed,
        figures=figures,
    )


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    print(json.dumps([row.as_json() for row in _measured(Path(sys.argv[1]), int(sys.argv[2]))]))
