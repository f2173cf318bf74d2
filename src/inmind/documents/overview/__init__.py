"""overview.md: the page on which the agent keeps its current state."""

from inmind.documents.overview.content import is_maintained, written_lines
from inmind.documents.overview.template import LANGUAGES, template

__all__ = ["LANGUAGES", "is_maintained", "template", "written_lines"]
