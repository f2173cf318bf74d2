-- How much of something was used in a stretch of time, for whoever may use only so much of it.
CREATE TABLE tenant.allowances (
    name text COLLATE "C" NOT NULL,
    start bigint NOT NULL,
    used bigint NOT NULL,
    PRIMARY KEY (name, start)
) WITH (fillfactor = 70);
