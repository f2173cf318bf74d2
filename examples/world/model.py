"""The model of an agent: a real one, or a scripted one.

Both are servers that get the same request, so the agents need not know which it is. A host with a client library does
not need this file: `client.chat.completions.create(model=…, **prompt.request)`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from inmind import InmindError, Prompt
from inmind.core.http import HttpEndpoint, bearer
from world.scripted import Move, serve_script

Provider = Literal["openai", "anthropic"]

TIMEOUT_SECONDS = 120
"""Per reply."""
MAX_TOKENS = 4_096
"""Per reply: small models may not stop."""


@dataclass(frozen=True, kw_only=True)
class Model:
    name: str
    provider: Provider
    server: HttpEndpoint

    def ask(self, prompt: Prompt) -> dict[str, Any]:
        """Return the provider's unchanged reply, as `session.record` takes it."""
        if self.provider == "anthropic":
            body = {"model": self.name, "max_tokens": MAX_TOKENS, **prompt.request}
            return self.server.request("v1/messages", body, headers=_anthropic, seconds=TIMEOUT_SECONDS)
        body = {"model": self.name, "max_completion_tokens": MAX_TOKENS, **prompt.request}
        return self.server.request("chat/completions", body, headers=bearer, seconds=TIMEOUT_SECONDS)


@contextmanager
def open_model(about: str, script: Sequence[Move]) -> Generator[Model]:
    """The model named on the command line; by default the script.

    The script needs no network and no key. An error ends the program with one line.
    """
    options = _options(about)
    try:
        if options.model is None:
            with serve_script(script) as url:
                yield Model(name="scripted", provider="openai", server=HttpEndpoint(url=url))
        else:
            yield _named(options.model, options.provider, options.base_url)
    except InmindError as error:
        sys.exit(f"{error.code}: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


def _options(about: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=about.partition("\n")[0],
        epilog="Without --model its replies are scripted, and nothing leaves this machine. Keys are read from "
        "OPENAI_API_KEY and ANTHROPIC_API_KEY; a local server may need none.",
    )
    parser.add_argument("--model", metavar="NAME", help="use this model instead of the script")
    parser.add_argument("--base-url", metavar="URL", help="a server with the API of OpenAI or Anthropic")
    parser.add_argument("--provider", choices=("openai", "anthropic"), help="by default chosen by the model's name")
    options = parser.parse_args()
    if options.model is None and (options.base_url or options.provider):
        parser.error("--base-url and --provider need --model")
    return options


def _named(name: str, provider: Provider | None, url: str | None) -> Model:
    if (provider or ("anthropic" if name.startswith("claude") else "openai")) == "anthropic":
        address = url or os.environ.get("ANTHROPIC_BASE_URL") or "https://api.anthropic.com"
        return Model(name=name, provider="anthropic", server=HttpEndpoint(url=address, key_env="ANTHROPIC_API_KEY"))
    address = url or os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1"
    return Model(name=name, provider="openai", server=HttpEndpoint(url=address, key_env="OPENAI_API_KEY"))


def _anthropic(key: str) -> dict[str, str]:
    return {"anthropic-version": "2023-06-01", **({"x-api-key": key} if key else {})}
