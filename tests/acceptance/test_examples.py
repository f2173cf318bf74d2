"""The examples run as they stand, without a network or a key, and print what a reader will see."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"

PRINTED = {
    "borrowed_history": """\
Where is order 118?
  call 1: 368 tokens, 0 of them as before
  call 2: 420 tokens, 295 of them as before
  It is packed.
What is in it?
  call 3: 436 tokens, 347 of them as before
  It holds tea and two mugs.
The user wants that answer again.
  call 4: 436 tokens, 363 of them as before
  Tea, two mugs.
6 messages in the conversation, 7 in the journal
Served from cache: 61%
""",
    "own_layer": """\
<memory layer="failures">
- Error: host web-5 is out of disk space, build 118 not copied.
- Error: host web-4 is out of disk space, build 118 not copied.
[older failures are in the conversation]
</memory>
cut: failures: 4 lines
  103  guide               included
   15  memory:house rules  included
  135  memory:overview     included
   55  memory:failures     cut
  218  history             included
   64  changes             included
   73  context_meta        included
""",
}


def test_every_example_is_run_here() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(PRINTED)


@pytest.mark.spec("D1", "D4", "D8")
@pytest.mark.parametrize("name", PRINTED)
def test_an_example_prints_what_it_always_did(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / f"{name}.py"],
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert (done.stdout, done.stderr, done.returncode) == (PRINTED[name], "", 0)
    assert list(tmp_path.iterdir()) == []
