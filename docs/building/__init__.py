"""The generator of the documentation site, run by `make docs`."""
