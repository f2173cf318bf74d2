"""overview.md: what the agent itself keeps on top of its mind."""

from inmind.overview.coverage import written_part
from inmind.overview.template import LANGUAGES, is_maintained, template

__all__ = ["LANGUAGES", "is_maintained", "template", "written_part"]
