"""Install the built wheel into empty environments, and run the first README block in each.

`make wheel` runs this file with the wheel as its argument. One environment has no extras and one has `[all]`; both are
in `build/` and have the versions of constraints.txt.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from tempfile import TemporaryDirectory

from pages import PROJECT, TIMEOUT_SECONDS, Step, matches, steps, trim_lines

ENVIRONMENTS = {"bare": "", "all": "[all]"}
"""Name of the environment, and the extras that it has."""


def main(wheel: Path) -> int:
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    first = next(step for step in steps(readme) if step.kind == "python")
    failures = 0
    for name, extras in ENVIRONMENTS.items():
        python = install(wheel, PROJECT / "build" / "wheel" / name, extras)
        if failure := run(first, python):
            failures += 1
            print(f"{wheel.name}{extras}: {failure}", file=sys.stderr)
        else:
            print(f"{wheel.name}{extras}: the first block of the README runs")
    return min(failures, 1)


def install(wheel: Path, folder: Path, extras: str) -> Path:
    """Return the interpreter of a new environment that has the wheel with these extras."""
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    options = ["--quiet", "--disable-pip-version-check", "--constraint", str(PROJECT / "constraints.txt")]
    subprocess.run([python, "-m", "pip", "install", *options, f"{wheel}{extras}"], check=True)
    return python


def run(step: Step, python: Path) -> str:
    """Run the block in an empty folder and return the difference from the README, or ""."""
    with TemporaryDirectory() as folder:
        environment = {"PATH": os.defpath, "HOME": folder, "INMIND_HOME": f"{folder}/home", "PYTHONUTF8": "1"}
        done = subprocess.run(
            [python, "-I", "-c", step.code],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    if done.returncode != 0:
        return f"exit status {done.returncode}\n{done.stdout}"
    if not matches(trim_lines(done.stdout.splitlines()), step.expected or ()):
        return f"printed\n{done.stdout}\nand not\n" + "\n".join(step.expected or ())
    return ""


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
