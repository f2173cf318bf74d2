"""Runs the code blocks of documentation pages and compares their output.

- a `python` block runs in a new process, and a `text` block right after it (or after a line ending in "prints:") is
  its output; a block marked `python no-run` only has to be valid Python;
- a block with a title, `python title="agent.py"`, is a file: it is saved under that name, and run only by a later
  line;
- in a `console` block the lines after "$ " are run, and the lines below are their output;
- a line of `sh` is run too, and shows no output;
- a lone "…" matches any number of lines;
- lines that install packages (pip, make, git clone) are checked, not run.

All blocks of a page run in order, in one scratch folder with an empty home.
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

# Against hanging only.
TIMEOUT_SECONDS = 120

ANY_LINES = "…"
FENCE = re.compile(r"^(?P<ticks>`{3,})(?P<info>[^`]*)$")
TITLED = re.compile(r"^\w+ title=\"(?P<name>[\w.-]+)\"$")
INSTALLERS = re.compile(r"^(pip|pipx|uv|make|git|cd|python3? -m (pip|venv)|source|\.) ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One command or file of a page. `expected` is None if the page shows no output."""

    line: int
    kind: str
    code: str
    expected: tuple[str, ...] | None = None
    name: str = ""
    """The file name, if the code is saved as a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced block, with the prose before it."""

    line: int
    info: str
    lines: tuple[str, ...]
    prose_before: str

    @property
    def kind(self) -> str:
        return {"bash": "sh", "shell": "sh"}.get(self.info, self.info)

    @property
    def shows_output(self) -> bool:
        """Whether this is the output of the block before it; prose in between means that it is not."""
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
        pairs = tuple(variables.items())
        folders = cls(scratch=folder / "scratch", home=folder / "home", memory=folder / "memory", variables=pairs)
        folders.scratch.mkdir()
        folders.home.mkdir()
        folders.commands.mkdir()
        (folders.commands / "inmind").write_text(warm_inmind().command("inmind", INMIND))
        (folders.commands / "inmind").chmod(0o755)
        return folders

    @property
    def commands(self) -> Path:
        """Folder with an `inmind` command that starts fast, since the fork server has imported it."""
        return self.home.parent / "commands"

    def environment(self) -> dict[str, str]:
        """No variables of the developer, and a terminal of fixed width without colours."""
        paths = [str(self.commands), str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
        return {
            "PATH": os.pathsep.join(paths),
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
    """All errors of a page, in order."""
    return [f"{page}:{complaint}" for step in steps(text) for complaint in step_complaints(step, place)]


def step_complaints(step: Step, place: PageFolders) -> Iterator[str]:
    position = f"{step.line}: {step.code.splitlines()[0] if step.code else step.kind}"
    if step.kind == "file":
        (place.scratch / step.name).write_text(step.code + "\n", encoding="utf-8")
        yield from (f"{position}: {complaint}" for complaint in syntax_errors(step.code) if step.name.endswith(".py"))
    elif step.kind == "python no-run":
        yield from (f"{position}: {complaint}" for complaint in syntax_errors(step.code))
    elif step.kind == "sh" and INSTALLERS.match(step.code):
        yield from (f"{position}: {complaint}" for complaint in check_install_line(step.code))
    else:
        done = run_step(step, place)
        if done.returncode != 0:
            yield f"{position}: exit status {done.returncode}\n{done.stdout}"
        elif step.expected is not None and not matches(trim_lines(done.stdout.splitlines()), step.expected):
            yield f"{position}: printed\n{done.stdout}\nand not\n" + "\n".join(step.expected)


def syntax_errors(code: str) -> Iterator[str]:
    try:
        compile(code, "page", "exec")
    except SyntaxError as error:
        yield str(error)


def run_step(step: Step, place: PageFolders) -> subprocess.CompletedProcess[str]:
    """Run a step; stderr goes to stdout, since readers see both."""
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
        timeout=TIMEOUT_SECONDS,
        check=False,
    )


def steps(text: str) -> Iterator[Step]:
    all_blocks = blocks(text)
    for block, next_block in zip(all_blocks, [*all_blocks, None][1:], strict=True):
        if titled := TITLED.match(block.info):
            yield Step(line=block.line, kind="file", code="\n".join(block.lines), name=titled["name"])
        elif block.kind in {"python", "python no-run"}:
            expected = trim_lines(next_block.lines) if next_block and next_block.shows_output else None
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
    """The fenced blocks. Longer fences may contain shorter ones, as in Markdown."""
    result: list[Block] = []
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
            result.append(Block(line=first, info=info, lines=tuple(inside), prose_before=before))
            opened, prose = None, []
        else:
            inside.append(line)
    return result


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
            yield f"{part.strip()!r} is on the same line as an install and is not run: put it on another line"
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
