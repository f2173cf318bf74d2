"""`Memory`: opens a folder or a database, and lists, edits, exports and imports what is in it."""
