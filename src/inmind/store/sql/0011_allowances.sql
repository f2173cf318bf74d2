-- How much of something was used in a stretch of time, for whoever may use only so much of it.
CREATE TABLE allowances (
    name TEXT NOT NULL,
    start INTEGER NOT NULL,
    used INTEGER NOT NULL,
    PRIMARY KEY (name, start)
) STRICT, WITHOUT ROWID;
