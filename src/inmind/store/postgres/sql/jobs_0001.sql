-- Jobs: what workers have to do, and the owners that they look after. Made by the first worker, since a memory needs none.

-- Which steps of this kind were taken: a newer procrastinate that wants other tables comes with the next one. `identity`
-- tells these jobs from those of another database, whose numbers are the same.
CREATE TABLE tenant.job_steps (
    number integer PRIMARY KEY,
    name text NOT NULL,
    at timestamptz NOT NULL DEFAULT now(),
    identity text NOT NULL DEFAULT md5(random()::text || clock_timestamp()::text)
);

-- When somebody last looked who has something to be done; its one row is held by whoever puts jobs into the queue.
CREATE TABLE tenant.looking (looked timestamptz NOT NULL);
INSERT INTO tenant.looking VALUES ('-infinity');

-- Up to which of its events an owner was looked after, when that was, and when to look again whether or not anything is
-- new. `reason`: why it has failed so often that nobody tries before then; empty where it has not.
-- `waits`: since when a dream waits until dreams_per_hour has room for it; 0 where none does.
CREATE TABLE tenant.tending (
    owner bigint PRIMARY KEY REFERENCES tenant.owners (id),
    seen bigint NOT NULL,
    tended bigint NOT NULL,
    due bigint NOT NULL,
    reason text NOT NULL DEFAULT '',
    waits bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 70);
CREATE INDEX tending_that_failed ON tenant.tending (owner) WHERE reason <> '';
CREATE INDEX tending_by_due ON tenant.tending (due) WHERE waits = 0;
CREATE INDEX tending_that_waits ON tenant.tending (waits, owner) WHERE waits > 0;

-- Who has news for workers stands by the owner, so that whoever looks around meets nobody else, however many there are. An
-- append pays for it only where nothing was new before. What belongs to nobody in particular is not looked after.
ALTER TABLE tenant.owners ADD COLUMN untended boolean NOT NULL DEFAULT true;
CREATE FUNCTION tenant.is_tended(name text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN name <> '' AND name <> 'default' AND left(name, 1) <> chr(1);
CREATE INDEX owners_untended ON tenant.owners (id) WHERE untended AND tenant.is_tended(name);
CREATE FUNCTION tenant.is_untended() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.untended := true;
    RETURN NEW;
END $$;
CREATE TRIGGER owners_are_untended BEFORE UPDATE OF position ON tenant.owners
FOR EACH ROW WHEN (NOT old.untended) EXECUTE FUNCTION tenant.is_untended();

-- procrastinate's own tables are made by its own steps: see engine.sql. This is the last of them that was taken, and by which
-- version.
CREATE TABLE tenant.engine (step text NOT NULL, version text NOT NULL);
