-- One snapshot for each stream, so that reopening does not fold from the beginning.
CREATE TABLE snapshots (
    stream INTEGER PRIMARY KEY REFERENCES streams (id),
    seq INTEGER NOT NULL,
    fold INTEGER NOT NULL,
    body TEXT NOT NULL
) STRICT;
