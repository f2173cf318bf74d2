-- The journal: streams of events, and the keys of appends that must not happen twice. A key has its own time: the
-- append it stands for may have had nothing to store.
-- `position` only ever grows at the end of the table, so pages fill up whatever the number of streams,
-- and it is the order in which derived indexes catch up.
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
