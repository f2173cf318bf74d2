-- What was last written to each live file: the difference between a stale copy and a person's edit.
CREATE TABLE live_files (
    stream INTEGER NOT NULL REFERENCES streams (id),
    path TEXT NOT NULL,
    digest TEXT NOT NULL,
    PRIMARY KEY (stream, path)
) STRICT, WITHOUT ROWID;
