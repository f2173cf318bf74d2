"""What makes a site of the pages: `make docs`, which is `python -m docs.building`."""
