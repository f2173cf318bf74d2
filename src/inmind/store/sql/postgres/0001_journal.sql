-- The journal: streams of events, each with an owner, and the keys of appends that must not happen twice.
--
-- `position` comes from one sequence and is taken while the owner's row is locked. So the positions of one owner are in
-- commit order, and a reader that follows them misses none. Writers of different owners never wait for each other.
-- `owner` is the first column of every key of `events`, so that the table can be partitioned by it.
CREATE SEQUENCE tenant.positions;
CREATE TABLE tenant.owners (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    position bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 70);
CREATE TABLE tenant.streams (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    owner bigint REFERENCES tenant.owners (id),
    version bigint NOT NULL DEFAULT 0,
    written bigint NOT NULL DEFAULT 0,
    hour bigint GENERATED ALWAYS AS (written / 3600000000) STORED
) WITH (fillfactor = 70);
CREATE INDEX streams_by_owner ON tenant.streams (owner, name);
-- The last written streams of all owners are found by the hour: an index by microsecond would change with every append.
CREATE INDEX streams_by_hour ON tenant.streams (hour DESC);
CREATE TABLE tenant.events (
    owner bigint NOT NULL,
    position bigint NOT NULL,
    stream bigint NOT NULL,
    seq bigint NOT NULL,
    at bigint NOT NULL,
    kind text COLLATE "C" NOT NULL,
    origin text COLLATE "C" NOT NULL,
    trust smallint NOT NULL,
    opens boolean NOT NULL,
    sources text COLLATE "C",
    body text COLLATE "C" NOT NULL,
    PRIMARY KEY (owner, position),
    UNIQUE (owner, stream, seq)
);
CREATE TABLE tenant.keys (
    stream bigint NOT NULL REFERENCES tenant.streams (id),
    key text COLLATE "C" NOT NULL,
    request text COLLATE "C" NOT NULL,
    first bigint NOT NULL,
    last bigint NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (stream, key)
);
CREATE TABLE tenant.snapshots (
    stream bigint PRIMARY KEY REFERENCES tenant.streams (id),
    seq bigint NOT NULL,
    fold bigint NOT NULL,
    body text COLLATE "C" NOT NULL
);
CREATE TABLE tenant.live_files (
    stream bigint NOT NULL REFERENCES tenant.streams (id),
    path text COLLATE "C" NOT NULL,
    digest text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    PRIMARY KEY (stream, path)
);

-- Raises IM002, with the schema version, if the caller knows fewer migrations than the schema has. Reading the table
-- also locks it, so that no migration runs until the caller's transaction ends.
CREATE FUNCTION tenant.refuse_older(known integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE taken integer;
BEGIN
    SELECT max(number) INTO taken FROM tenant.inmind_steps;
    IF taken > known THEN
        RAISE EXCEPTION USING ERRCODE = 'IM002', MESSAGE = 'a newer inmind was here', DETAIL = taken;
    END IF;
END $$;

-- The row of an owner, created if there is none.
CREATE FUNCTION tenant.owner_row(wanted text) RETURNS bigint LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE found_id bigint;
BEGIN
    SELECT id INTO found_id FROM tenant.owners WHERE name = wanted;
    IF found_id IS NULL THEN
        INSERT INTO tenant.owners (name) VALUES (wanted) ON CONFLICT (name) DO NOTHING;
        SELECT id INTO STRICT found_id FROM tenant.owners WHERE name = wanted;
    END IF;
    RETURN found_id;
END $$;

-- Append events to a stream at an expected version, all or none. Another version raises IM001 with the stream's name and
-- version; a key that was used before returns the result of that append. Events are
-- [[kind, origin, trust, sources, body], …]: parsing one value is much faster than many arrays.
CREATE FUNCTION tenant.append(
    known integer,
    stream_name text, owner_name text, expected bigint, stamp bigint, wanted_key text, wanted_request text, events jsonb,
    OUT repeated boolean, OUT request text, OUT first bigint, OUT last bigint, OUT at bigint
) LANGUAGE plpgsql SET lock_timeout = '25s' AS $$
#variable_conflict use_column
DECLARE
    met record;
    added bigint;
BEGIN
    PERFORM tenant.refuse_older(known);
    SELECT id, owner, version INTO met FROM tenant.streams WHERE name = stream_name FOR NO KEY UPDATE;
    IF NOT FOUND AND expected = 0 THEN
        INSERT INTO tenant.streams (name) VALUES (stream_name) ON CONFLICT (name) DO NOTHING;
        SELECT id, owner, version INTO met FROM tenant.streams WHERE name = stream_name FOR NO KEY UPDATE;
    END IF;
    IF wanted_key IS NOT NULL THEN
        SELECT true, keys.request, keys.first, keys.last, keys.at INTO repeated, request, first, last, at
        FROM tenant.keys WHERE keys.stream = met.id AND keys.key = wanted_key;
        IF repeated THEN
            RETURN;
        END IF;
    END IF;
    IF met.version IS DISTINCT FROM expected THEN
        RAISE EXCEPTION USING ERRCODE = 'IM001', MESSAGE = 'somebody was faster',
            DETAIL = coalesce(met.version, 0) || ' ' || stream_name;
    END IF;
    IF expected = 0 AND jsonb_array_length(events) > 0 THEN
        met.owner := tenant.owner_row(owner_name);
    END IF;
    PERFORM 1 FROM tenant.owners WHERE id = met.owner FOR NO KEY UPDATE;
    INSERT INTO tenant.events (owner, position, stream, seq, at, kind, origin, trust, opens, sources, body)
    SELECT met.owner, nextval('tenant.positions'), met.id, expected + ordinality, stamp, value ->> 0, value ->> 1,
        (value ->> 2)::smallint, ordinality = 1, value ->> 3, value ->> 4
    FROM jsonb_array_elements(events) WITH ORDINALITY;
    GET DIAGNOSTICS added = ROW_COUNT;
    IF added > 0 THEN
        UPDATE tenant.streams SET version = expected + added, owner = met.owner, written = stamp WHERE id = met.id;
        UPDATE tenant.owners SET position = currval('tenant.positions') WHERE id = met.owner;
    END IF;
    repeated := false;
    first := expected + 1;
    last := expected + added;
    at := stamp;
    IF wanted_key IS NOT NULL THEN
        INSERT INTO tenant.keys (stream, key, request, first, last, at)
        VALUES (met.id, wanted_key, wanted_request, append.first, append.last, stamp);
    END IF;
END $$;

-- The most frequent append: one event, without a key, to a stream at the expected version. Rows are locked by updating
-- them; if another transaction holds the owner's row, the update waits, and the position is taken after that. Returns
-- False without any effect in all other cases: `append` then does it, or raises.
CREATE FUNCTION tenant.append_one(
    known integer, stream_name text, expected bigint, stamp bigint,
    kind text, origin text, trust smallint, sources text, body text
) RETURNS boolean LANGUAGE plpgsql SET lock_timeout = '25s' AS $$
#variable_conflict use_variable
BEGIN
    WITH met AS (
        UPDATE tenant.streams SET version = expected + 1, written = stamp
        WHERE name = stream_name AND version = expected
            AND NOT EXISTS (SELECT FROM tenant.inmind_steps WHERE number > known)
        RETURNING streams.id, streams.owner
    ), placed AS (
        UPDATE tenant.owners SET position = nextval('tenant.positions') FROM met WHERE owners.id = met.owner
        RETURNING owners.id AS owner, owners.position, met.id AS stream
    )
    INSERT INTO tenant.events (owner, position, stream, seq, at, kind, origin, trust, opens, sources, body)
    SELECT placed.owner, placed.position, placed.stream, expected + 1, stamp, kind, origin, trust, true, sources, body
    FROM placed;
    RETURN FOUND;
END $$;

-- Two appends, together or not at all; the key belongs to the first. Rows are locked in a fixed order, so that
-- concurrent calls cannot deadlock.
CREATE FUNCTION tenant.append_beside(
    known integer,
    stream_name text, owner_name text, expected bigint, stamp bigint, wanted_key text, wanted_request text, events jsonb,
    beside_name text, beside_owner text, beside_expected bigint, beside_events jsonb,
    OUT repeated boolean, OUT request text, OUT first bigint, OUT last bigint, OUT at bigint
) LANGUAGE plpgsql SET lock_timeout = '25s' AS $$
#variable_conflict use_column
BEGIN
    PERFORM tenant.refuse_older(known);
    IF expected = 0 OR beside_expected = 0 THEN
        INSERT INTO tenant.streams (name)
        SELECT name FROM (VALUES (stream_name, expected), (beside_name, beside_expected)) AS wanted (name, version)
        WHERE wanted.version = 0 AND NOT EXISTS (SELECT FROM tenant.streams WHERE streams.name = wanted.name)
        ORDER BY name ON CONFLICT (name) DO NOTHING;
    END IF;
    PERFORM 1 FROM tenant.streams WHERE name IN (stream_name, beside_name) ORDER BY name FOR NO KEY UPDATE;
    PERFORM 1 FROM tenant.owners
    WHERE id IN (SELECT owner FROM tenant.streams WHERE name IN (stream_name, beside_name))
        OR name IN (owner_name, beside_owner)
    ORDER BY id FOR NO KEY UPDATE;
    SELECT done.repeated, done.request, done.first, done.last, done.at INTO repeated, request, first, last, at
    FROM tenant.append(known, stream_name, owner_name, expected, stamp, wanted_key, wanted_request, events) AS done;
    IF repeated THEN
        DELETE FROM tenant.streams WHERE name = beside_name AND version = 0
            AND NOT EXISTS (SELECT FROM tenant.keys WHERE keys.stream = streams.id);
    ELSE
        PERFORM tenant.append(known, beside_name, beside_owner, beside_expected, stamp, NULL, NULL, beside_events);
    END IF;
END $$;
