"""overview.md: what the agent itself keeps on top of its mind."""

from inmind.documents.overview.coverage import is_maintained, written_part
from inmind.documents.overview.template import LANGUAGES, template

__all__ = ["LANGUAGES", "is_maintained", "template", "written_part"]
