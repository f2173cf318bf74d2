"""The README does what it says.

A reader copies a block, runs it and compares; so does this. The conventions, which the README never has to mention:

- a `python` block runs on its own, and a `text` block right after it (or after a line ending in "prints:") is what
  it prints; a block marked `python no-run` only has to be valid Python;
- in a `console` block the lines after "$ " are run, and the lines under one are what it prints;
- a line of `sh` is run too, and shows no output;
- a lone "…" stands for any number of lines;
- lines that install something (pip, make, git clone) would reach out of the test: they are read, not run.

Everything runs in one scratch folder, with an empty home: what the reader has after doing it in order.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

PROJECT = Path(__file__).parents[1]
README = PROJECT / "README.md"

# Generous: this is a guard against hanging, not a measurement.
SECONDS = 120

ANY_LINES = "…"
FENCE = re.compile(r"^(?P<ticks>`{3,})(?P<info>[^`]*)$")
INSTALLERS = re.compile(r"^(pip|pipx|uv|make|git|cd|python3? -m (pip|venv)|source|\.) ")


def test_the_readme_does_what_it_says(tmp_path: Path) -> None:
    assert complaints(README.read_text(encoding="utf-8"), Place.under(tmp_path)) == []


def test_the_readme_shows_how_to_run_it_and_how_to_test_it() -> None:
    lines = [step.code for step in steps(README.read_text(encoding="utf-8"))]
    assert {"make run", "make test"} <= {part.strip() for line in lines for part in line.split("&&")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing the reader does. `expected` is None where the README shows no output."""

    line: int
    kind: str
    code: str
    expected: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced block, with the prose since the block before it."""

    line: int
    info: str
    lines: tuple[str, ...]
    prose_before: str

    @property
    def kind(self) -> str:
        return {"bash": "sh", "shell": "sh"}.get(self.info, self.info)

    @property
    def shows_output(self) -> bool:
        """Of the block before it. Prose in between makes it an example of something else."""
        return self.kind == "text" and (not self.prose_before or self.prose_before.endswith("prints:"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the README is followed."""

    scratch: Path
    home: Path
    memory: Path

    @classmethod
    def under(cls, folder: Path) -> Place:
        place = cls(scratch=folder / "scratch", home=folder / "home", memory=folder / "memory")
        place.scratch.mkdir()
        place.home.mkdir()
        return place

    def environment(self) -> dict[str, str]:
        """Nothing of the developer's own, and a terminal of fixed width without colours."""
        binaries = Path(sys.executable).parent
        return {
            "PATH": f"{binaries}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "HOME": str(self.home),
            "INMIND_HOME": str(self.memory),
            "LANG": "C.UTF-8",
            "PYTHONUTF8": "1",
            "TERM": "dumb",
            "NO_COLOR": "1",
            "COLUMNS": "100",
        }


def complaints(readme: str, place: Place) -> list[str]:
    """Everything that the README says and that is not so, in its order."""
    return [complaint for step in steps(readme) for complaint in complaints_about(step, place)]


def complaints_about(step: Step, place: Place) -> Iterator[str]:
    where = f"README.md:{step.line}: {step.code.splitlines()[0] if step.code else step.kind}"
    if step.kind == "python no-run":
        try:
            compile(step.code, "README.md", "exec")
        except SyntaxError as error:
            yield f"{where}: {error}"
    elif step.kind == "sh" and INSTALLERS.match(step.code):
        yield from (f"{where}: {complaint}" for complaint in malformed(step.code))
    else:
        done = follow(step, place)
        if done.returncode != 0:
            yield f"{where}: exit status {done.returncode}\n{done.stdout}"
        elif step.expected is not None and not matches(trimmed(done.stdout.splitlines()), step.expected):
            yield f"{where}: printed\n{done.stdout}\nand not\n" + "\n".join(step.expected)


def follow(step: Step, place: Place) -> subprocess.CompletedProcess[str]:
    """Errors are part of what a reader sees, so both streams are one."""
    command = [sys.executable, "-c", step.code] if step.kind == "python" else ["sh", "-c", step.code]
    return subprocess.run(
        command,
        cwd=place.scratch,
        env=place.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=SECONDS,
        check=False,
    )


def steps(readme: str) -> Iterator[Step]:
    found = blocks(readme)
    for block, after in zip(found, [*found[1:], None], strict=True):
        if block.kind in {"python", "python no-run"}:
            expected = trimmed(after.lines) if after and after.shows_output else None
            yield Step(line=block.line, kind=block.kind, code="\n".join(block.lines), expected=expected)
        elif block.kind == "console":
            yield from console_steps(block)
        elif block.kind == "sh":
            yield from sh_steps(block)


def console_steps(block: Block) -> Iterator[Step]:
    starts = [number for number, line in enumerate(block.lines) if line.startswith("$ ")]
    for start, end in zip(starts, [*starts[1:], len(block.lines)], strict=True):
        last = start
        while block.lines[last].endswith("\\") and last + 1 < end:
            last += 1
        code = "\n".join(block.lines[start : last + 1]).removeprefix("$ ")
        yield Step(line=block.line + start, kind="sh", code=code, expected=trimmed(block.lines[last + 1 : end]) or None)


def sh_steps(block: Block) -> Iterator[Step]:
    for number, line in enumerate(block.lines):
        code = line.partition(" #")[0].strip()
        if code and not code.startswith("#"):
            yield Step(line=block.line + number, kind="sh", code=code)


def blocks(readme: str) -> list[Block]:
    """The fenced blocks. Longer fences may hold shorter ones, as they do in Markdown."""
    found: list[Block] = []
    prose: list[str] = []
    inside: list[str] = []
    opened: re.Match[str] | None = None
    for number, line in enumerate(readme.splitlines(), start=1):
        fence = FENCE.match(line)
        if opened is None and fence:
            opened, inside = fence, []
        elif opened is None:
            prose.append(line)
        elif fence and len(fence["ticks"]) >= len(opened["ticks"]) and not fence["info"].strip():
            first, info, before = number - len(inside), opened["info"].strip(), "\n".join(prose).strip()
            found.append(Block(line=first, info=info, lines=tuple(inside), prose_before=before))
            opened, prose = None, []
        else:
            inside.append(line)
    return found


def trimmed(lines: Sequence[str]) -> tuple[str, ...]:
    """Without the spaces at the ends of lines and the empty lines at the end, which nobody sees on a page."""
    return tuple("\n".join(line.rstrip() for line in lines).rstrip().splitlines())


def matches(printed: Sequence[str], expected: Sequence[str]) -> bool:
    """Whether the lines are the expected ones, a lone "…" standing for any number of them."""
    pattern = "".join(r"(?:.*\n)*" if line.strip() == ANY_LINES else re.escape(line) + r"\n" for line in expected)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in printed)) is not None


def malformed(line: str) -> Iterator[str]:
    """What is wrong with an install line that nobody runs: a name it uses that is not there."""
    for part in line.split("&&"):
        words = shlex.split(part)
        if not INSTALLERS.match(f"{part.strip()} "):
            yield f"{part.strip()!r} shares its line with an install and would never be run: give it its own line"
        elif words[0] == "make":
            yield from (f"the Makefile has no target {word}" for word in words[1:] if word not in make_targets())
        elif words[:2] == ["git", "clone"]:
            url = urlsplit(words[-1])
            if url.scheme != "https" or not url.hostname or not url.path.strip("/"):
                yield f"{words[-1]} is not an https address of a repository"
        elif installing := {"install", "add"}.intersection(words):
            yield from malformed_install(part, words[words.index(installing.pop()) + 1 :])


def malformed_install(part: str, requirements: Sequence[str]) -> Iterator[str]:
    known = extras()
    for requirement in requirements:
        named = re.fullmatch(r"(?P<name>[\w.-]+)(?:\[(?P<extras>[\w,-]+)\])?", requirement)
        if requirement.startswith("-"):
            continue
        if named is None or named["name"] not in {"inmind", "."}:
            yield f"{requirement} is not inmind"
        elif named["extras"] and not set(named["extras"].split(",")) <= known:
            yield f"{requirement} asks for an extra that pyproject.toml does not have"
        elif named["extras"] and f'"{requirement}"' not in part and f"'{requirement}'" not in part:
            yield f"{requirement} needs quotes: some shells expand the brackets"


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z]+):", (PROJECT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def extras() -> set[str]:
    return set(
        tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    )


# The machinery, checked on little READMEs of its own.

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
$ echo not shown, not compared > "$INMIND_HOME"
```

Prose about something else.

```text
not the output of anything
```
"""


def test_a_true_readme_is_believed(tmp_path: Path) -> None:
    assert complaints(GOOD, Place.under(tmp_path)) == []
    assert len(list(steps(GOOD))) == 8


@pytest.mark.parametrize(
    ("readme", "complaint"),
    [
        ("```python\nprint(1)\n```\n```text\n2\n```", "README.md:2: print(1): printed\n1"),
        ("```python\nprint(1)\n```\n\nThis prints:\n\n```text\n1\n1\n```", "printed\n1"),
        ("```python\nraise SystemExit('so sad')\n```", "exit status 1\nso sad"),
        ("```python no-run\nif\n```", "invalid syntax"),
        ("text\n\n```console\n$ true\n$ echo a\nb\n```", "README.md:5: echo a: printed\na"),
        ("```console\n$ printf 'a\\nc\\n'\na\n…\nb\n```", "printed\na\nc"),
        ("```console\n$ echo said >&2; exit 3\nsaid\n```", "exit status 3\nsaid"),
        ("```sh\nfalse\n```", "exit status 1"),
        ("```sh\nmake tset\n```", "the Makefile has no target tset"),
        ("```sh\npip install imnind\n```", "imnind is not inmind"),
        ("```sh\npip install 'inmind[clu]'\n```", "asks for an extra"),
        ("```sh\npip install inmind[cli]\n```", "needs quotes"),
        ("```sh\ngit clone inmind\n```", "is not an https address"),
        ("```sh\npip install inmind && inmind demo\n```", "'inmind demo' shares its line"),
    ],
)
def test_a_false_readme_is_not(tmp_path: Path, readme: str, complaint: str) -> None:
    [found] = complaints(readme, Place.under(tmp_path))
    assert complaint in found


@pytest.mark.parametrize(
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
def test_an_ellipsis_stands_for_any_number_of_lines(printed: str, expected: str, same: bool) -> None:
    assert matches(printed.split(), expected.split()) is same


def test_a_longer_fence_holds_a_shorter_one() -> None:
    [block] = blocks("````markdown\n```python\nraise\n```\n````")
    assert (block.kind, block.line, len(block.lines)) == ("markdown", 2, 3)
