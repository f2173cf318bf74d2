"""The real tokenizers that estimates are compared with, with installed vocabularies."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from importlib import import_module
from typing import Protocol, cast

FAMILIES = ("o200k", "cl100k")


class _Tokenizer(Protocol):
    def count(self, text: str) -> int: ...


@cache
def tokenizer(family: str) -> _Tokenizer:
    module = import_module("rs_bpe.bpe").openai
    return cast(_Tokenizer, getattr(module, f"{family}_base")())


@cache
def counter(family: str) -> Callable[[str], int]:
    """Return a cached token counter: a prompt repeats nearly all of the previous one."""
    return lru_cache(maxsize=None)(tokenizer(family).count)
