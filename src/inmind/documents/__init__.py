"""Texts that people can edit: documents, the overview, the notes page, the scratchpad."""
