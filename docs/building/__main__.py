"""Build the site: `python -m docs.building`."""

from __future__ import annotations

import sys
from pathlib import Path

from docs.building.site import build

PROJECT = Path(__file__).parents[2]

if __name__ == "__main__":
    sys.exit(build(PROJECT, into=PROJECT / "build"))
