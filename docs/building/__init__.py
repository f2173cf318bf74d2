"""The generator of the documentation site: `make docs`, which runs `python -m docs.building`."""
