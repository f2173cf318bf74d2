"""overview.md: the page on which the agent keeps its current state."""

from inmind.documents.overview.page import LANGUAGES, is_maintained, template, written_lines

__all__ = ["LANGUAGES", "is_maintained", "template", "written_lines"]
