-- Jobs of workers, and the owners they maintain. Created by the first worker, since a memory works without them.

-- Applied migrations of the job tables. `identity` distinguishes these jobs from those of another database with the same
-- ids.
CREATE TABLE tenant.job_steps (
    number integer PRIMARY KEY,
    name text NOT NULL,
    at timestamptz NOT NULL DEFAULT now(),
    identity text NOT NULL DEFAULT md5(random()::text || clock_timestamp()::text)
);

-- Time of the last scan for work. Its single row is locked while jobs are added to the queue.
CREATE TABLE tenant.looking (looked timestamptz NOT NULL);
INSERT INTO tenant.looking VALUES ('-infinity');

-- The event up to which an owner was maintained, when that was, and when it is due again even without new events.
-- `reason`: why its maintenance is suspended until then; empty if it is not.
-- `waits`: since when a dream waits for dreams_per_hour; 0 if none does.
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

-- The flag for new events is in the owner's row, so that a scan reads only owners with work, however many there are. An
-- append changes it only if it was not set. Streams without an owner are not maintained.
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

-- procrastinate's tables are created by its own migrations: see engine.sql. This is the last one applied, and the version
-- that applied it.
CREATE TABLE tenant.engine (step text NOT NULL, version text NOT NULL);
