-- The version last written to each live file, to tell a stale copy from a person's edit.
-- `seq` is the version of the journal then: a later version was not confirmed as written.
CREATE TABLE live_files (
    stream INTEGER NOT NULL REFERENCES streams (id),
    path TEXT NOT NULL,
    digest TEXT NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (stream, path)
) STRICT, WITHOUT ROWID;
