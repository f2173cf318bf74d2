"""The search index: derived from the journal, with one logic for SQLite and PostgreSQL."""
