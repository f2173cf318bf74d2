-- Usage counted per time window, for rate limits.
CREATE TABLE allowances (
    name TEXT NOT NULL,
    start INTEGER NOT NULL,
    used INTEGER NOT NULL,
    PRIMARY KEY (name, start)
) STRICT, WITHOUT ROWID;
