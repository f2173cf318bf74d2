"""`Memory`: opens a folder or a database; lists, edits, exports and imports its content."""
