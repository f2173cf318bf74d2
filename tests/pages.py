"""Runs the code blocks of documentation pages and compares their output. Conventions:

- a `python` block runs on its own, and a `text` block right after it (or after a line ending in "prints:") is what
  it prints; a block marked `python no-run` only has to be valid Python;
- a block with a title, `python title="agent.py"`, is a file: it is saved under that name, and run only by a later
  line;
- in a `console` block the lines after "$ " are run, and the lines under one are what it prints;
- a line of `sh` is run too, and shows no output;
- a lone "…" stands for any number of lines;
- lines that install something (pip, make, git clone) would reach out of the test: they are read, not run.

Everything of a page runs in one scratch folder, with an empty home: what the reader has after doing it in order.
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

from terminal import INMIND, warm_inmind

PROJECT = Path(__file__).parents[1]

# Generous: this is a guard against hanging, not a measurement.
SECONDS = 120

ANY_LINES = "…"
FENCE = re.compile(r"^(?P<ticks>`{3,})(?P<info>[^`]*)$")
TITLED = re.compile(r"^\w+ title=\"(?P<name>[\w.-]+)\"$")
INSTALLERS = re.compile(r"^(pip|pipx|uv|make|git|cd|python3? -m (pip|venv)|source|\.) ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing the reader does. `expected` is None where the page shows no output."""

    line: int
    kind: str
    code: str
    expected: tuple[str, ...] | None = None
    name: str = ""
    """Of the file that the code is saved as, where it is one."""


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
class PageFolders:
    """Folders in which a page is run."""

    scratch: Path
    home: Path
    memory: Path
    variables: tuple[tuple[str, str], ...] = ()
    """Additional environment variables, for example the URL of a model."""

    @classmethod
    def under(cls, folder: Path, **variables: str) -> PageFolders:
        given = tuple(variables.items())
        place = cls(scratch=folder / "scratch", home=folder / "home", memory=folder / "memory", variables=given)
        place.scratch.mkdir()
        place.home.mkdir()
        place.commands.mkdir()
        (place.commands / "inmind").write_text(warm_inmind().command("inmind", INMIND))
        (place.commands / "inmind").chmod(0o755)
        return place

    @property
    def commands(self) -> Path:
        """Folder with an `inmind` command that starts fast, because it is imported already."""
        return self.home.parent / "commands"

    def environment(self) -> dict[str, str]:
        """Nothing of the developer's own, and a terminal of fixed width without colours."""
        places = [str(self.commands), str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
        return {
            "PATH": os.pathsep.join(places),
            "HOME": str(self.home),
            "INMIND_HOME": str(self.memory),
            "LANG": "C.UTF-8",
            "PYTHONUTF8": "1",
            "TERM": "dumb",
            "NO_COLOR": "1",
            "COLUMNS": "100",
            **dict(self.variables),
        }


def complaints(text: str, place: PageFolders, *, page: str = "README.md") -> list[str]:
    """Everything that a page says and that is not so, in its order."""
    return [f"{page}:{complaint}" for step in steps(text) for complaint in complaints_about(step, place)]


def complaints_about(step: Step, place: PageFolders) -> Iterator[str]:
    where = f"{step.line}: {step.code.splitlines()[0] if step.code else step.kind}"
    if step.kind == "file":
        (place.scratch / step.name).write_text(step.code + "\n", encoding="utf-8")
        yield from (f"{where}: {complaint}" for complaint in invalid(step.code) if step.name.endswith(".py"))
    elif step.kind == "python no-run":
        yield from (f"{where}: {complaint}" for complaint in invalid(step.code))
    elif step.kind == "sh" and INSTALLERS.match(step.code):
        yield from (f"{where}: {complaint}" for complaint in check_install_line(step.code))
    else:
        done = follow(step, place)
        if done.returncode != 0:
            yield f"{where}: exit status {done.returncode}\n{done.stdout}"
        elif step.expected is not None and not matches(trim_lines(done.stdout.splitlines()), step.expected):
            yield f"{where}: printed\n{done.stdout}\nand not\n" + "\n".join(step.expected)


def invalid(code: str) -> Iterator[str]:
    try:
        compile(code, "page", "exec")
    except SyntaxError as error:
        yield str(error)


def follow(step: Step, place: PageFolders) -> subprocess.CompletedProcess[str]:
    """Errors are part of what a reader sees, so both streams are one."""
    if step.kind == "python":
        ran = warm_inmind().run(step.code, cwd=place.scratch, env=place.environment(), together=True)
        return subprocess.CompletedProcess(ran.args, ran.returncode, ran.stdout.decode())
    return subprocess.run(
        ["sh", "-c", step.code],
        cwd=place.scratch,
        env=place.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=SECONDS,
        check=False,
    )


def steps(text: str) -> Iterator[Step]:
    found = blocks(text)
    for block, after in zip(found, [*found, None][1:], strict=True):
        if titled := TITLED.match(block.info):
            yield Step(line=block.line, kind="file", code="\n".join(block.lines), name=titled["name"])
        elif block.kind in {"python", "python no-run"}:
            expected = trim_lines(after.lines) if after and after.shows_output else None
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
        yield Step(
            line=block.line + start, kind="sh", code=code, expected=trim_lines(block.lines[last + 1 : end]) or None
        )


def sh_steps(block: Block) -> Iterator[Step]:
    for number, line in enumerate(block.lines):
        code = line.partition(" #")[0].strip()
        if code and not code.startswith("#"):
            yield Step(line=block.line + number, kind="sh", code=code)


def blocks(text: str) -> list[Block]:
    """The fenced blocks. Longer fences may hold shorter ones, as they do in Markdown."""
    found: list[Block] = []
    prose: list[str] = []
    inside: list[str] = []
    opened: re.Match[str] | None = None
    for number, line in enumerate(text.splitlines(), start=1):
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


def trim_lines(lines: Sequence[str]) -> tuple[str, ...]:
    """Return the lines without trailing spaces and trailing empty lines."""
    return tuple("\n".join(line.rstrip() for line in lines).rstrip().splitlines())


def matches(printed: Sequence[str], expected: Sequence[str]) -> bool:
    """True if the lines are the expected ones; a lone "…" matches any number of lines."""
    pattern = "".join(r"(?:.*\n)*" if line.strip() == ANY_LINES else re.escape(line) + r"\n" for line in expected)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in printed)) is not None


def check_install_line(line: str) -> Iterator[str]:
    """Yield problems of an install line, which is not run: unknown names."""
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
            yield from check_requirements(part, words[words.index(installing.pop()) + 1 :])


def check_requirements(part: str, requirements: Sequence[str]) -> Iterator[str]:
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
    return set(re.findall(r"^([a-z-]+):", (PROJECT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def extras() -> set[str]:
    return set(
        tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    )
