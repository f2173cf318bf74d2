-- The journal: streams of events, and the keys of appends that must not happen twice. A key has its own time,
-- because its append may have stored no event.
-- `position` only grows, so rows are always added at the end of the table, whatever the number of streams. It is the
-- order in which derived indexes read the journal.
CREATE TABLE streams (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;
CREATE TABLE events (
    position INTEGER PRIMARY KEY,
    stream INTEGER NOT NULL REFERENCES streams (id),
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    origin TEXT NOT NULL,
    trust INTEGER NOT NULL,
    opens INTEGER NOT NULL,
    sources TEXT,
    body TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX events_by_stream ON events (stream, seq);
CREATE TABLE keys (
    stream INTEGER NOT NULL REFERENCES streams (id),
    key TEXT NOT NULL,
    request TEXT NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (stream, key)
) STRICT, WITHOUT ROWID;
