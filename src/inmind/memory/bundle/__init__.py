"""A whole home in one file, to be kept elsewhere or carried there: the journal, and what no journal could bring back.

    manifest.json   what is in it, with the length and the SHA-256 of every entry
    journal.jsonl   every event, a line each, in the order in which they were stored
    keys.jsonl      idempotency keys, so that a retry is still one after the journey
    kept/…          files of the home that are nobody's view

Live files, snapshots and the index are made of the journal, and so they are made anew where it is brought in.
"""
