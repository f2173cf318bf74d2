"""The search index: derived from the journal, one logic for SQLite and PostgreSQL."""
