"""The real tokenizer that estimates are compared with, with an installed vocabulary."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from importlib import import_module
from typing import Protocol, cast


class _Tokenizer(Protocol):
    def count(self, text: str) -> int: ...


@cache
def tokenizer() -> _Tokenizer:
    """Return o200k."""
    return cast(_Tokenizer, import_module("rs_bpe.bpe").openai.o200k_base())


@cache
def counter() -> Callable[[str], int]:
    """Return a cached token counter: a prompt repeats nearly all of the previous one."""
    return lru_cache(maxsize=None)(tokenizer().count)
