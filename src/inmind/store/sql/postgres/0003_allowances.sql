-- Usage counted per time window, for rate limits.
CREATE TABLE tenant.allowances (
    name text COLLATE "C" NOT NULL,
    start bigint NOT NULL,
    used bigint NOT NULL,
    PRIMARY KEY (name, start)
) WITH (fillfactor = 70);
