-- The journal: streams of events, each of them somebody's, and the keys of appends that must not happen twice.
--
-- `position` comes from one sequence, taken while the owner's row is held: so the positions of one owner are in the order
-- in which its events were committed, and whoever follows them misses none. Writers of different owners never wait for
-- each other. `owner` leads every key of `events`, so that the table can be partitioned by it.
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
    version bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 70);
CREATE INDEX streams_by_owner ON tenant.streams (owner, name);
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

-- The row of an owner, made where there is none.
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

-- An append: one batch or two, decided on versions, all of it or nothing. A stream that has moved on is IM001, with the
-- number of its batch and where it is now; a key that was used is answered with what it did then.
-- Rows are held in one order, whoever appends what beside what, so that nobody waits in a circle.
--
-- {"at": …, "key": …, "request": …, "batches": [{"stream": …, "owner": …, "expected": …, "events":
-- [[kind, origin, trust, sources, body], …]}, …]}, as one value: it is read in a fraction of the time of many arrays.
CREATE FUNCTION tenant.append(
    wanted jsonb, OUT repeated boolean, OUT request text, OUT first bigint, OUT last bigint, OUT at bigint
) LANGUAGE plpgsql SET lock_timeout = '25s' AS $$
#variable_conflict use_column
DECLARE
    batch jsonb;
    one jsonb;
    number integer := 0;
    met record;
    stamp bigint := wanted ->> 'at';
    grown bigint;
    placed bigint;
    ids bigint[] := '{}';
    owner_ids bigint[] := '{}';
BEGIN
    IF jsonb_array_length(wanted -> 'batches') > 1 THEN
        PERFORM 1 FROM tenant.streams
        WHERE name IN (SELECT value ->> 'stream' FROM jsonb_array_elements(wanted -> 'batches'))
        ORDER BY name FOR NO KEY UPDATE;
    END IF;
    FOR batch IN SELECT value FROM jsonb_array_elements(wanted -> 'batches') LOOP
        number := number + 1;
        SELECT id, owner, version INTO met FROM tenant.streams WHERE name = batch ->> 'stream' FOR NO KEY UPDATE;
        IF NOT FOUND AND (batch ->> 'expected')::bigint = 0 THEN
            INSERT INTO tenant.streams (name) VALUES (batch ->> 'stream') ON CONFLICT (name) DO NOTHING;
            SELECT id, owner, version INTO met FROM tenant.streams WHERE name = batch ->> 'stream' FOR NO KEY UPDATE;
        END IF;
        IF number = 1 AND wanted ->> 'key' IS NOT NULL THEN
            SELECT true, keys.request, keys.first, keys.last, keys.at INTO repeated, request, first, last, at
            FROM tenant.keys WHERE keys.stream = met.id AND keys.key = wanted ->> 'key';
            IF repeated THEN
                RETURN;
            END IF;
        END IF;
        IF met.version IS DISTINCT FROM (batch ->> 'expected')::bigint THEN
            RAISE EXCEPTION USING ERRCODE = 'IM001', MESSAGE = 'somebody was faster',
                DETAIL = number || ' ' || coalesce(met.version, 0);
        END IF;
        IF met.version = 0 AND jsonb_array_length(batch -> 'events') > 0 THEN
            met.owner := tenant.owner_row(batch ->> 'owner');
        END IF;
        ids := ids || met.id;
        owner_ids := owner_ids || met.owner;
    END LOOP;
    PERFORM 1 FROM tenant.owners WHERE id = ANY (owner_ids) ORDER BY id FOR NO KEY UPDATE;
    number := 0;
    FOR batch IN SELECT value FROM jsonb_array_elements(wanted -> 'batches') LOOP
        number := number + 1;
        grown := batch ->> 'expected';
        FOR one IN SELECT value FROM jsonb_array_elements(batch -> 'events') LOOP
            grown := grown + 1;
            placed := nextval('tenant.positions');
            INSERT INTO tenant.events (owner, position, stream, seq, at, kind, origin, trust, opens, sources, body)
            VALUES (owner_ids[number], placed, ids[number], grown, stamp, one ->> 0, one ->> 1, (one ->> 2)::smallint,
                grown = (batch ->> 'expected')::bigint + 1, one ->> 3, one ->> 4);
        END LOOP;
        IF number = 1 THEN
            repeated := false;
            first := (batch ->> 'expected')::bigint + 1;
            last := grown;
            at := stamp;
        END IF;
        IF grown > (batch ->> 'expected')::bigint THEN
            UPDATE tenant.streams SET version = grown, owner = owner_ids[number] WHERE id = ids[number];
            UPDATE tenant.owners SET position = placed WHERE id = owner_ids[number];
        END IF;
    END LOOP;
    IF wanted ->> 'key' IS NOT NULL THEN
        INSERT INTO tenant.keys (stream, key, request, first, last, at)
        VALUES (ids[1], wanted ->> 'key', wanted ->> 'request', append.first, append.last, stamp);
    END IF;
END $$;
