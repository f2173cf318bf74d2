-- What was last written to each live file: the difference between a stale copy and a person's edit.
-- `seq` is how far the journal was then: a version that came later was not confirmed to be shown.
CREATE TABLE live_files (
    stream INTEGER NOT NULL REFERENCES streams (id),
    path TEXT NOT NULL,
    digest TEXT NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (stream, path)
) STRICT, WITHOUT ROWID;
