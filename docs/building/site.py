"""The site: written and generated pages, in the layout of the repository.

A page has the same path in the site as in the repository, so that links work in both. The pages are copied to a staging
folder, because the generated reference is added there and must not be committed.
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

# Attributes that a browser fetches without a click. Links that a reader clicks may lead to any host.
FETCH_ATTRIBUTES = {"img": "src", "script": "src", "link": "href", "iframe": "src", "source": "src"}
LINK_RELATIONS = {"canonical", "next", "prev", "alternate", "edit"}


def build(project: Path, into: Path) -> int:
    """Stage all pages, run zensical, and report missing pages and uses of other hosts."""
    pages = staged_pages(project)
    stage(pages, into / STAGE)
    shutil.copy(project / CONFIG, into / CONFIG)  # next to the stage: zensical keeps its cache with its settings
    shutil.rmtree(into / SITE, ignore_errors=True)
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean", "--config-file", CONFIG]
    build = subprocess.run(command, cwd=into, check=False)  # noqa: S603 -- no outside input
    complaints = [*missing_pages(into / SITE, {*pages, *menu_pages(project)}), *external_fetches(into / SITE)]
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    print(f"{len(pages)} pages: {into / SITE / 'index.html'}")
    return build.returncode or (1 if complaints else 0)


def staged_pages(project: Path) -> dict[str, str]:
    """Return all pages by path: written pages and the reference."""
    written = {str(path.relative_to(project)): path.read_text("utf-8") for path in _source_files(project)}
    return {path: strip_for_site(text) for path, text in written.items()} | dict(reference())


def strip_for_site(text: str) -> str:
    """Remove test markers from code fences, and the links that lead to no page."""
    return CODE_OR_LINK.sub(_code_or_link, RUN_MARK.sub(lambda mark: mark["fence"], text))


def _code_or_link(match: re.Match[str]) -> str:
    """Links to programs, licences and folders work only in the repository."""
    if match["code"] or match["to"].startswith(("https://", "http://", "#")):
        return match[0]
    return match[0] if match["to"].partition("#")[0].endswith(".md") else match["text"]


def stage(pages: Mapping[str, str], folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for path, text in pages.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")


def menu_pages(project: Path) -> Iterator[str]:
    """Yield the pages of the site's menu. zensical ignores missing ones."""
    yield from re.findall(r"=\s*\"([^\"]+\.md)\"", (project / CONFIG).read_text("utf-8"))


def missing_pages(site: Path, pages: Iterable[str]) -> Iterator[str]:
    """Report pages that are not in the site."""
    for path in sorted(pages):
        page = Path(path)
        name = "index.html" if page.name == "README.md" else f"{page.stem}.html"
        if not (site / page.parent / name).is_file():
            yield f"{path} is not in the site"


def external_fetches(site: Path) -> Iterator[str]:
    """Report everything that a browser would fetch from another host."""
    for path in sorted(site.rglob("*.html")):
        parser = _FetchParser()
        parser.feed(path.read_text("utf-8"))
        yield from (f"{path.relative_to(site)} fetches {address}" for address in parser.external)
    for path in sorted(site.rglob("*.css")):
        addresses = re.findall(r"(?:url\(|@import\s+)[\"']?((?:https?:)?//[^\"')\s]+)", path.read_text("utf-8"))
        yield from (f"{path.relative_to(site)} fetches {address}" for address in addresses)


class _FetchParser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.external: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        address = attributes.get(FETCH_ATTRIBUTES.get(tag, "")) or ""
        if re.match(r"(https?:)?//", address) and attributes.get("rel") not in LINK_RELATIONS:
            self.external.append(address)


def _source_files(project: Path) -> Iterator[Path]:
    for name in SOURCES:
        place = project / name
        yield from sorted(place.rglob("*.md")) if place.is_dir() else [place]
