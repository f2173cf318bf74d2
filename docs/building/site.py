"""The site: what is written, and what is generated, laid out as in the repository.

A page stands in the site where it stands in the repository, so that a link that works in one works in the other. The
pages are copied to a stage, since the reference is made there beside them and must not be committed.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path

from docs.building.reference import reference

SOURCES = ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "GLOSSARY.md", "docs", "examples")
CONFIG, STAGE, SITE = "zensical.toml", "stage", "site"

# Code first: `calls[name](given)` is no link.
CODE_OR_LINK = re.compile(
    r"(?P<code>^(?P<fence>`{3,}).*?^(?P=fence)`*$|`[^`\n]+`)|\[(?P<text>[^\]]+)\]\((?P<to>[^)\s]+)\)",
    re.MULTILINE | re.DOTALL,
)
RUN_MARK = re.compile(r"^(?P<fence>`{3,}python) no-run$", re.MULTILINE)

# What a browser fetches by itself; a link that somebody has to click may lead anywhere.
FETCH_ATTRIBUTES = {"img": "src", "script": "src", "link": "href", "iframe": "src", "source": "src"}
LINK_RELATIONS = {"canonical", "next", "prev", "alternate", "edit"}


def build(project: Path, into: Path) -> int:
    """Stage all pages, let zensical make a site of them, and look whether it is whole and needs nobody else."""
    pages = staged_pages(project)
    stage(pages, into / STAGE)
    shutil.copy(project / CONFIG, into / CONFIG)  # beside the stage: zensical keeps its cache where its settings are
    shutil.rmtree(into / SITE, ignore_errors=True)
    making = [sys.executable, "-m", "zensical", "build", "--strict", "--clean", "--config-file", CONFIG]
    made = subprocess.run(making, cwd=into, check=False)  # noqa: S603 -- nothing of it comes from outside
    complaints = [*missing_pages(into / SITE, {*pages, *menu_pages(project)}), *external_fetches(into / SITE)]
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    print(f"{len(pages)} pages: {into / SITE / 'index.html'}")
    return made.returncode or (1 if complaints else 0)


def staged_pages(project: Path) -> dict[str, str]:
    """Every page by its path: those that somebody wrote, and the reference."""
    written = {str(path.relative_to(project)): path.read_text("utf-8") for path in _source_files(project)}
    return {path: strip_for_site(text) for path, text in written.items()} | dict(reference())


def strip_for_site(text: str) -> str:
    """What only the tests read in a fence goes, and what leads to no page is text: the site has pages only."""
    return CODE_OR_LINK.sub(_code_or_link, RUN_MARK.sub(lambda mark: mark["fence"], text))


def _code_or_link(found: re.Match[str]) -> str:
    """A link to a program, a licence or a folder is right in the repository alone."""
    if found["code"] or found["to"].startswith(("https://", "http://", "#")):
        return found[0]
    return found[0] if found["to"].partition("#")[0].endswith(".md") else found["text"]


def stage(pages: Mapping[str, str], folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for path, text in pages.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, "utf-8")


def menu_pages(project: Path) -> Iterator[str]:
    """The pages that the site's menu names, which zensical passes over where there is none."""
    yield from re.findall(r"=\s*\"([^\"]+\.md)\"", (project / CONFIG).read_text("utf-8"))


def missing_pages(site: Path, pages: Iterable[str]) -> Iterator[str]:
    """Pages that should be in the site and are not."""
    for path in sorted(pages):
        page = Path(path)
        name = "index.html" if page.name == "README.md" else f"{page.stem}.html"
        if not (site / page.parent / name).is_file():
            yield f"{path} is not in the site"


def external_fetches(site: Path) -> Iterator[str]:
    """Whatever a browser would fetch from another host than the one that the site is on."""
    for path in sorted(site.rglob("*.html")):
        reader = _FetchParser()
        reader.feed(path.read_text("utf-8"))
        yield from (f"{path.relative_to(site)} fetches {address}" for address in reader.outside)
    for path in sorted(site.rglob("*.css")):
        found = re.findall(r"(?:url\(|@import\s+)[\"']?((?:https?:)?//[^\"')\s]+)", path.read_text("utf-8"))
        yield from (f"{path.relative_to(site)} fetches {address}" for address in found)


class _FetchParser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.outside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        address = given.get(FETCH_ATTRIBUTES.get(tag, "")) or ""
        if re.match(r"(https?:)?//", address) and given.get("rel") not in LINK_RELATIONS:
            self.outside.append(address)


def _source_files(project: Path) -> Iterator[Path]:
    for name in SOURCES:
        place = project / name
        yield from sorted(place.rglob("*.md")) if place.is_dir() else [place]
