"""A content management system in one process: pages, sections, collections, images.

All ids come from here. Deleted things stay deleted, an image that a section shows cannot be deleted, and a request for
something that does not exist fails.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from world.loop import TEXT, Tool, ToolFailed

Json = dict[str, Any]

NAME_FIELDS = {"page": "title", "section": "heading", "collection": "name", "entry": "title", "image": "filename"}
"""The field with the name of each kind of thing."""

IMAGES = ("lake-dawn.jpg", "lake-noon.jpg", "lake-night.jpg", "forest.jpg", "harbour.jpg")


@dataclass
class Cms:
    things: dict[str, Json] = field(default_factory=dict[str, Json])
    """By id; `kind` is the kind of thing."""
    _counts: Counter[str] = field(default_factory=Counter[str])

    def __post_init__(self) -> None:
        for filename in IMAGES:
            self._create("image", filename)

    def name_of(self, id: str) -> str | None:
        """The current name of a thing; None if it does not exist."""
        thing = self.things.get(id)
        return thing[NAME_FIELDS[thing["kind"]]] if thing else None

    def tools(self) -> list[Tool]:
        """The tools of an agent."""
        page, section, entry, image = ({name: TEXT} for name in ("pageId", "pageSectionId", "entryId", "imageId"))
        return [
            Tool("cms_createPage", "Create a page.", {"title": TEXT}, self.create_page),
            Tool("cms_getPage", "Show a page with its sections.", page, self.get_page),
            Tool("cms_updatePage", "Give a page another title.", {**page, "title": TEXT}, self.update_page),
            Tool("cms_deletePage", "Delete a page with all its sections.", page, self.delete_page),
            Tool("cms_addSection", "Add a section to a page.", {**page, "heading": TEXT}, self.add_section),
            Tool("cms_getSectionContent", "Show a section.", section, self.get_section),
            Tool("cms_searchImages", "Find images by a word in their names.", {"query": TEXT}, self.search_images),
            Tool("cms_updateSectionImage", "Show an image in a section.", {**section, **image}, self.set_image),
            Tool("cms_deleteImage", "Delete an image that no section shows.", image, self.delete_image),
            Tool("cms_createCollection", "Start a collection of entries.", {"name": TEXT}, self.create_collection),
            Tool(
                "cms_createEntry",
                "Put an entry into a collection.",
                {"collectionId": TEXT, "title": TEXT},
                self.create_entry,
            ),
            Tool("cms_publishEntry", "Publish an entry.", entry, self.publish_entry),
        ]

    def create_page(self, title: str) -> Json:
        return _ok(self._create("page", title))

    def get_page(self, page: str) -> Json:
        page_result = _ok(self._require("page", page))
        return {**page_result, "sections": [_public(section) for section in self._sections_of(page)]}

    def update_page(self, page: str, title: str) -> Json:
        self._require("page", page)["title"] = title
        return _ok(self.things[page])

    def delete_page(self, page: str) -> Json:
        deleted = self._require("page", page)
        for section in list(self._sections_of(page)):
            del self.things[section["id"]]
        del self.things[page]
        return _ok(deleted)

    def add_section(self, page: str, heading: str) -> Json:
        self._require("page", page)
        return _ok(self._create("section", heading, pageId=page))

    def get_section(self, section: str) -> Json:
        return _ok(self._require("section", section))

    def search_images(self, query: str) -> Json:
        images = (thing for thing in self.things.values() if thing["kind"] == "image")
        return {"success": True, "matches": [_public(one) for one in images if query.lower() in one["filename"]]}

    def set_image(self, section: str, image: str) -> Json:
        self._require("image", image)
        self._require("section", section)["imageId"] = image
        return _ok(self.things[section])

    def delete_image(self, image: str) -> Json:
        deleted = self._require("image", image)
        for thing in self.things.values():
            if thing.get("imageId") == image:
                raise ToolFailed(f"{deleted['filename']} is shown in the section {thing['heading']!r} ({thing['id']})")
        del self.things[image]
        return _ok(deleted)

    def create_collection(self, name: str) -> Json:
        return _ok(self._create("collection", name))

    def create_entry(self, collection: str, title: str) -> Json:
        self._require("collection", collection)
        return _ok(self._create("entry", title, collectionId=collection, status="draft"))

    def publish_entry(self, entry: str) -> Json:
        self._require("entry", entry)["status"] = "published"
        return _ok(self.things[entry])

    def _create(self, kind: str, name: str, **more: str) -> Json:
        self._counts[kind] += 1
        id = f"{_PREFIX.get(kind, kind)}-{100 + self._counts[kind]}"
        self.things[id] = {"kind": kind, "id": id, NAME_FIELDS[kind]: name, **more}
        return self.things[id]

    def _require(self, kind: str, id: str) -> Json:
        thing = self.things.get(id)
        if thing is None or thing["kind"] != kind:
            raise ToolFailed(f"there is no {kind} {id!r}")
        return thing

    def _sections_of(self, page: str) -> Iterator[Json]:
        return (thing for thing in self.things.values() if thing.get("pageId") == page)


_PREFIX = {"section": "sec", "collection": "col", "image": "img"}


def _ok(thing: Json) -> Json:
    return {"success": True, thing["kind"]: _public(thing)}


def _public(thing: Json) -> Json:
    return {name: value for name, value in thing.items() if name != "kind"}
