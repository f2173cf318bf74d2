"""Export of a home, or of one resource, to a single zip file, and its import.

    manifest.json   the contents, with the length and the SHA-256 of every entry
    journal.jsonl   every event, one per line, in the order in which they were stored
    keys.jsonl      idempotency keys, so that a retry after the import is still recognised
    kept/…          files of the home that cannot be rebuilt from the journal

Live files, snapshots and the index are not in it: they are rebuilt from the journal after an import.
"""
