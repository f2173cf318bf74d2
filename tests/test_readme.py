"""The code blocks of the README run and print the shown output (see tests/pages.py)."""

from __future__ import annotations

from pathlib import Path

import pytest
from pages import PROJECT, PageFolders, blocks, complaints, matches, steps
from provider import Provider, reply_with
from tables import each_row

README = PROJECT / "README.md"


def test_the_blocks_of_the_readme_run_and_print_the_shown_output(tmp_path: Path) -> None:
    with Provider() as provider:
        provider.will(reply_with("Hello, Ada."), reply_with("On its way to you."))
        place = PageFolders.under(tmp_path, OPENAI_BASE_URL=provider.openai, OPENAI_API_KEY="none")
        assert complaints(README.read_text(encoding="utf-8"), place) == []
        assert (provider.unused, provider.failures) == (0, [])


def test_the_readme_shows_how_to_run_it_and_how_to_test_it() -> None:
    lines = [step.code for step in steps(README.read_text(encoding="utf-8"))]
    assert {"make run", "make test"} <= {part.strip() for line in lines for part in line.split("&&")}


# The checker, tested on small READMEs.

GOOD = """
# Made up

```sh
pip install "inmind[cli]"
make run   # plays the demonstration
```

```python
print("one")
print("two")
```

It prints:

```text
one
two
```

```python no-run
client = wrap(OpenAI())
```

```python title="seven.py"
print("seven")
```

```console
$ git clone https://example.org/someone/inmind && cd inmind
$ printf 'a\\nb\\nc\\n' | \\
    tee kept
a
…
c

$ cat kept; echo "$HOME" | grep -c home; ls -A ~
a
b
c
1
$ python seven.py
seven
$ echo not shown, not compared > "$INMIND_HOME"
```

Prose about something else.

```text
not the output of anything
```
"""


def test_a_correct_readme_has_no_errors(tmp_path: Path) -> None:
    assert complaints(GOOD, PageFolders.under(tmp_path)) == []
    assert len(list(steps(GOOD))) == 10


@pytest.mark.parametrize(
    ("readme", "complaint"),
    [
        ("```python\nprint(1)\n```\n```text\n2\n```", "README.md:2: print(1): printed\n1"),
        ("```python\nprint(1)\n```\n\nThis prints:\n\n```text\n1\n1\n```", "printed\n1"),
        ("```python\nraise SystemExit('so sad')\n```", "exit status 1\nso sad"),
        ("```python no-run\nif\n```", "invalid syntax"),
        ('```python title="a.py"\nif\n```', "README.md:2: if: invalid syntax"),
        ("text\n\n```console\n$ true\n$ echo a\nb\n```", "README.md:5: echo a: printed\na"),
        ("```console\n$ printf 'a\\nc\\n'\na\n…\nb\n```", "printed\na\nc"),
        ("```console\n$ echo said >&2; exit 3\nsaid\n```", "exit status 3\nsaid"),
        ("```sh\nfalse\n```", "exit status 1"),
        ("```sh\nmake tset\n```", "the Makefile has no target tset"),
        ("```sh\npip install imnind\n```", "imnind is not inmind"),
        ("```sh\npip install 'inmind[clu]'\n```", "asks for an extra"),
        ("```sh\npip install inmind[cli]\n```", "needs quotes"),
        ("```sh\ngit clone inmind\n```", "is not an https address"),
        ("```sh\npip install inmind && inmind demo\n```", "'inmind demo' is on the same line"),
    ],
)
def test_a_wrong_readme_is_reported(tmp_path: Path, readme: str, complaint: str) -> None:
    [error] = complaints(readme, PageFolders.under(tmp_path))
    assert complaint in error


@each_row(
    ("printed", "expected", "same"),
    [
        ("a b c", "a b c", True),
        ("a b c", "a …", True),
        ("a b c", "… c", True),
        ("a b c", "a … b c", True),
        ("a b c", "…", True),
        ("", "…", True),
        ("a b c", "a c", False),
        ("a b c", "a b", False),
        ("a.c", "abc", False),
        ("abc", "a.c", False),
    ],
)
def test_an_ellipsis_matches_any_number_of_lines(printed: str, expected: str, same: bool) -> None:
    assert matches(printed.split(), expected.split()) is same


def test_a_longer_fence_contains_a_shorter_one() -> None:
    [block] = blocks("````markdown\n```python\nraise\n```\n````")
    assert (block.kind, block.line, len(block.lines)) == ("markdown", 2, 3)
