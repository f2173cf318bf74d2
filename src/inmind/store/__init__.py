"""Stores of events: the protocol, SQLite, PostgreSQL, and atomic files."""
