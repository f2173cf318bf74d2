-- The schema of the index and its queries, with the same names as in the SQLite index. The index is derived from the
-- journal and may be dropped at any time; if its schema changes, its version is raised and it is rebuilt. It holds numbers
-- and word stems, no text. Queries of `crystals.*` name each column: see `records`.
--
-- A resource has the id of its owner and is indexed separately: the indexing transaction locks its row. All other keys
-- start with the resource, so that a search never reads another resource's rows.

-- name: tables
-- Existing tables of `schema`. Indexing starts with the resources: dropping that table first waits for all indexers. Read
-- from the catalogue, because to_regclass() may return a result from before a lock was waited for.
SELECT relname, format('%I.%I', $1::text, relname) FROM pg_catalog.pg_class
WHERE relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = $1) AND relkind IN ('r', 'p')
    AND relname IN ('resources', 'followed', 'series', 'crystals', 'speakers', 'shown', 'passages', 'embedders',
    'embedded', 'vectors')
ORDER BY relname <> 'resources', relname;

-- name: schema
-- `identity` changes with each rebuild; `swept` is the owner up to which stale owners have been marked since then.
CREATE TABLE tenant.followed (
    version integer NOT NULL,
    identity bytea NOT NULL DEFAULT uuid_send(gen_random_uuid()),
    swept bigint NOT NULL DEFAULT 0
);
-- `upto` is the position up to which the owner's events are indexed, and `at` the time of the event there, to recognise it.
-- `newest` and `last` are the newest crystal and the last passage, which must exist.
CREATE TABLE tenant.resources (
    id bigint PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    upto bigint NOT NULL DEFAULT 0,
    at bigint,
    passages bigint NOT NULL DEFAULT 0,
    hidden bigint NOT NULL DEFAULT 0,
    newest bigint NOT NULL DEFAULT 0,
    last bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 70);
CREATE TABLE tenant.series (
    resource bigint NOT NULL,
    id bigint NOT NULL,
    stream text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    length bigint NOT NULL,
    asks smallint NOT NULL,
    shows smallint NOT NULL,
    PRIMARY KEY (resource, id),
    UNIQUE (stream, name)
) WITH (fillfactor = 70);
-- `made` only grows within a resource, so embedding can follow it.
CREATE TABLE tenant.crystals (
    made bigint GENERATED ALWAYS AS IDENTITY,
    number bigint NOT NULL,
    event text COLLATE "C" NOT NULL,
    part bigint NOT NULL,
    resource bigint NOT NULL,
    kind text COLLATE "C" NOT NULL,
    source text COLLATE "C" NOT NULL,
    origin text COLLATE "C" NOT NULL,
    trust smallint NOT NULL,
    at bigint NOT NULL,
    role text COLLATE "C" NOT NULL,
    speaker text COLLATE "C" NOT NULL,
    named smallint NOT NULL,
    words bigint NOT NULL,
    answers smallint NOT NULL,
    importance double precision NOT NULL,
    valence double precision NOT NULL,
    about text COLLATE "C" NOT NULL,
    echoes text COLLATE "C",
    gone bigint,
    accesses bigint NOT NULL DEFAULT 0,
    accessed bigint,
    valid_from bigint,
    ends bigint,
    valid_to bigint,
    superseded_by text COLLATE "C" NOT NULL DEFAULT '',
    merged_into text COLLATE "C" NOT NULL DEFAULT '',
    lineage text COLLATE "C",
    lifecycle text COLLATE "C" NOT NULL DEFAULT 'generated',
    PRIMARY KEY (resource, made),
    UNIQUE (resource, number),
    UNIQUE (event, part)
);
CREATE INDEX ON tenant.crystals (resource, at, made);
CREATE INDEX ON tenant.crystals (resource, number) WHERE gone IS NOT NULL OR lifecycle IN ('archived', 'expired');
CREATE TABLE tenant.speakers (
    resource bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    messages bigint NOT NULL,
    PRIMARY KEY (resource, name)
);
CREATE TABLE tenant.shown (
    resource bigint NOT NULL,
    series bigint NOT NULL,
    run bigint NOT NULL,
    PRIMARY KEY (resource, series, run)
);
-- The words of each passage, prefixed with the id of its resource: `42 ferri`. The index has no pending list, which each
-- search would have to read.
CREATE TABLE tenant.passages (
    made bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    number bigint NOT NULL,
    words tsvector NOT NULL
);
CREATE INDEX ON tenant.passages USING gin (words) WITH (fastupdate = off);
-- `swept` is the resource up to which this embedder has rows in `embedded`. Later resources get one when they grow.
CREATE TABLE tenant.embedders (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    swept bigint NOT NULL DEFAULT 0,
    used bigint NOT NULL
);
-- The last embedded crystal of a resource for each embedder, and the newest crystal, so that resources that lag are found
-- quickly. Both are in one row, so that concurrent updates are not lost. `held`: since when a process is embedding the
-- next.
CREATE TABLE tenant.embedded (
    embedder bigint NOT NULL,
    resource bigint NOT NULL,
    upto bigint NOT NULL,
    newest bigint NOT NULL,
    held bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (embedder, resource)
);
CREATE INDEX ON tenant.embedded (embedder, resource) WHERE newest > upto;

-- name: pgvector
-- The schema of pgvector, if it is installed and this role may use it.
SELECT quote_ident(nspname) FROM pg_catalog.pg_extension
JOIN pg_catalog.pg_namespace ON pg_namespace.oid = extnamespace
WHERE extname = 'vector' AND has_schema_privilege(nspname, 'USAGE')
    AND EXISTS (SELECT FROM pg_catalog.pg_type WHERE typname = 'halfvec' AND typnamespace = extnamespace);

-- name: add_vectors
-- Two bytes for each number, as in the SQLite index, so that results are the same. Embedders have different dimensions, so
-- the column has none.
CREATE TABLE tenant.vectors (
    embedder bigint NOT NULL,
    resource bigint NOT NULL,
    passage bigint NOT NULL,
    numbers pgvector.halfvec NOT NULL,
    PRIMARY KEY (embedder, resource, passage)
);
ALTER TABLE tenant.vectors ALTER COLUMN numbers SET STORAGE MAIN;

-- name: lock
-- One transaction at a time creates tables. Only roles with access to the schema can take this lock.
LOCK TABLE tenant.inmind_steps IN SHARE UPDATE EXCLUSIVE MODE;

-- name: add_state
INSERT INTO tenant.followed (version) VALUES ($1);

-- name: state
SELECT version, identity FROM tenant.followed;

-- name: owner_progress
-- Progress of some owners: whether there are unindexed events, and whether the last indexed one is unchanged. Then the
-- columns of `scopes` for those with rows here. Without EXISTS: tables with one row are never analysed, and for the row
-- count that is assumed then, all events would be read into a hash.
SELECT owners.id, owners.name, owners.news OR coalesce(resources.upto, 0) < owners.position,
    identity IS NOT NULL AND (resources.id IS NULL OR (
        resources.name = owners.name AND resources.upto <= owners.position
        AND (resources.upto = 0 OR (
            SELECT true FROM tenant.events
            WHERE events.owner = owners.id AND events.position = resources.upto AND events.at = resources.at) IS TRUE)
        AND (resources.newest = 0 OR (
            SELECT true FROM tenant.crystals WHERE crystals.resource = resources.id AND made = resources.newest
            LIMIT 1) IS TRUE)
        AND (last = 0 OR (SELECT true FROM tenant.passages WHERE made = last LIMIT 1) IS TRUE))),
    identity, resources.id, resources.name, passages, hidden, ARRAY (
        SELECT speakers.name FROM tenant.speakers WHERE speakers.resource = resources.id AND messages > 1
        ORDER BY messages DESC, speakers.name LIMIT $3),
    resources.newest, coalesce(embedded.upto, 0), identity
FROM tenant.owners LEFT JOIN tenant.followed ON true LEFT JOIN tenant.resources ON resources.id = owners.id
LEFT JOIN tenant.embedders ON embedders.name = $2
LEFT JOIN tenant.embedded ON embedded.embedder = embedders.id AND embedded.resource = resources.id
WHERE owners.name = ANY ($1::text[]);

-- name: owners_of
-- Owners of streams.
SELECT DISTINCT owners.name FROM tenant.streams JOIN tenant.owners ON owners.id = streams.owner
WHERE streams.name = ANY ($1::text[]);

-- name: add_owner
INSERT INTO tenant.resources (id, name) SELECT id, name FROM tenant.owners WHERE id = $1 ON CONFLICT DO NOTHING;

-- name: lock_owner
-- Position up to which it is indexed, read after locking it, and at least the position of its owner.
SELECT upto, (SELECT position FROM tenant.owners WHERE owners.id = resources.id)
FROM tenant.resources WHERE resources.id = $1 FOR UPDATE;

-- name: position_of
SELECT upto FROM tenant.resources WHERE id = $1;

-- name: set_position
-- Clears the owner's flag, unless an event was stored in between.
WITH told AS (UPDATE tenant.owners SET news = false WHERE id = $1 AND position = $2 AND news)
UPDATE tenant.resources SET upto = $2, last = greatest(last, $3),
    at = (SELECT events.at FROM tenant.events WHERE owner = $1 AND position = $2)
WHERE id = $1;

-- name: stale_owners
SELECT name FROM tenant.owners WHERE news AND name > $1 ORDER BY name LIMIT $2;

-- name: mark_stale_owners
-- After a rebuild: mark those of the next owners as stale that are not indexed completely.
WITH next AS (
    SELECT id, position FROM tenant.owners WHERE id > (SELECT swept FROM tenant.followed) ORDER BY id LIMIT $1
), told AS (
    UPDATE tenant.owners SET news = true FROM next LEFT JOIN tenant.resources ON resources.id = next.id
    WHERE owners.id = next.id AND NOT owners.news AND next.position > coalesce(resources.upto, 0)
)
UPDATE tenant.followed SET swept = (SELECT max(id) FROM next) WHERE EXISTS (SELECT FROM next) RETURNING swept;

-- name: delete_resource
-- All rows of a resource. A running search sees by the identity that the index has changed.
WITH words AS (DELETE FROM tenant.passages WHERE words @@ $2::tsquery),
    crystals AS (DELETE FROM tenant.crystals WHERE resource = $1),
    series AS (DELETE FROM tenant.series WHERE resource = $1),
    speakers AS (DELETE FROM tenant.speakers WHERE resource = $1),
    shown AS (DELETE FROM tenant.shown WHERE resource = $1),
    embedded AS (DELETE FROM tenant.embedded WHERE resource = $1),
    resources AS (DELETE FROM tenant.resources WHERE id = $1),
    news AS (UPDATE tenant.owners SET news = true WHERE id = $1)
UPDATE tenant.followed SET identity = uuid_send(gen_random_uuid());

-- name: delete_vectors
DELETE FROM tenant.vectors WHERE embedder = ANY (ARRAY (SELECT id FROM tenant.embedders)) AND resource = $1;

-- name: resource_names
SELECT name FROM tenant.resources WHERE EXISTS (SELECT FROM tenant.series WHERE series.resource = resources.id)
ORDER BY name;

-- name: scopes
SELECT resources.id, resources.name, passages, hidden, ARRAY (
        SELECT speakers.name FROM tenant.speakers WHERE speakers.resource = resources.id AND messages > 1
        ORDER BY messages DESC, speakers.name LIMIT $3),
    resources.newest, coalesce(embedded.upto, 0), identity
FROM tenant.resources CROSS JOIN tenant.followed
LEFT JOIN tenant.embedders ON embedders.name = $2
LEFT JOIN tenant.embedded ON embedded.embedder = embedders.id AND embedded.resource = resources.id
WHERE resources.name = ANY ($1::text[]);

-- name: grow_resource
WITH grown AS (
    SELECT id, more, changed,
        coalesce((SELECT max(made) FROM tenant.crystals WHERE crystals.resource = one.id), 0) AS newest
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS one (id, more, changed)
), to_embed AS (
    INSERT INTO tenant.embedded (embedder, resource, upto, newest)
    SELECT embedders.id, grown.id, 0, grown.newest FROM tenant.embedders CROSS JOIN grown WHERE more > 0
    ON CONFLICT (embedder, resource) DO UPDATE SET newest = excluded.newest
)
UPDATE tenant.resources SET passages = passages + grown.more, hidden = hidden + grown.changed, newest = grown.newest
FROM grown WHERE resources.id = grown.id;

-- name: save_series
INSERT INTO tenant.series (resource, id, stream, name, length, asks, shows)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::bigint[], $6::smallint[], $7::smallint[])
ON CONFLICT (resource, id) DO UPDATE SET length = excluded.length, asks = excluded.asks, shows = excluded.shows;

-- name: add_crystal
INSERT INTO tenant.crystals (number, event, part, resource, kind, source, origin, trust, at, role, speaker, named, words,
    answers, importance, valence, about, echoes, valid_from, ends, valid_to, lifecycle)
SELECT number, event, part, resource, kind, source, origin, trust, at, role, speaker, named, words, answers, importance,
    valence, about, echoes, valid_from, ends, valid_to, lifecycle
FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::smallint[],
    $9::bigint[], $10::text[], $11::text[], $12::smallint[], $13::bigint[], $14::smallint[], $15::float8[],
    $16::float8[], $17::text[], $18::text[], $19::bigint[], $20::bigint[], $21::bigint[], $22::text[]) WITH ORDINALITY
    AS one (number, event, part, resource, kind, source, origin, trust, at, role, speaker, named, words, answers,
    importance, valence, about, echoes, valid_from, ends, valid_to, lifecycle, place)
ORDER BY place;

-- name: add_words
-- Returns the last one.
WITH held AS (
    INSERT INTO tenant.passages (number, words)
    SELECT number, array_to_tsvector(string_to_array(words, E'\n'))
    FROM unnest($1::bigint[], $2::text[]) WITH ORDINALITY AS one (number, words, place) ORDER BY place RETURNING made
)
SELECT max(made) FROM held;

-- name: word_matches
-- Number of passages with each word, and the newest of them as concatenated 8-byte numbers.
SELECT asked.place, held.count, held.numbers FROM unnest($1::text[]) WITH ORDINALITY AS asked (word, place)
CROSS JOIN LATERAL (
    SELECT max(total) AS count, string_agg(int8send(number), ''::bytea ORDER BY made) AS numbers FROM (
        SELECT made, number, count(*) OVER () AS total FROM tenant.passages WHERE words @@ asked.word::tsquery
        ORDER BY made DESC LIMIT $2
    ) AS newest
) AS held WHERE held.count > 0;

-- name: set_gone
-- With the time since when it is no longer valid.
UPDATE tenant.crystals SET gone = one.gone
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS one (resource, made, gone)
WHERE crystals.resource = one.resource AND crystals.made = one.made;

-- name: count_speaker
INSERT INTO tenant.speakers AS known (resource, name, messages)
SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[])
ON CONFLICT (resource, name) DO UPDATE SET messages = known.messages + excluded.messages;

-- name: add_shown_runs
INSERT INTO tenant.shown (resource, series, run) SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[])
ON CONFLICT DO NOTHING;

-- name: crystals_of_events
-- Locked: the indexers of a resource and of the anonymous owner may update the same crystal.
SELECT crystals.* FROM tenant.crystals WHERE event = ANY ($1::text[]) ORDER BY made FOR UPDATE;

-- name: update_crystal
UPDATE tenant.crystals SET accesses = one.accesses, accessed = one.accessed, valid_to = one.valid_to,
    superseded_by = one.superseded_by, merged_into = one.merged_into, lineage = one.lineage, lifecycle = one.lifecycle
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::text[], $7::text[], $8::text[],
    $9::text[])
    AS one (resource, made, accesses, accessed, valid_to, superseded_by, merged_into, lineage, lifecycle)
WHERE crystals.resource = one.resource AND crystals.made = one.made;

-- name: written_crystals
-- Notes and crystals of dreams, in the order in which they were indexed. Pages and entities have their own versions and
-- are not merged.
SELECT crystals.* FROM tenant.crystals
JOIN tenant.series ON series.resource = crystals.resource AND series.id = crystals.number >> 20
WHERE crystals.resource = $1 AND rtrim(series.name, E'\x01') = 'notes' AND gone IS NULL ORDER BY made;

-- name: add_embedder
-- Its row is written once an hour, because all embedding processes would wait for each other there.
WITH known AS (SELECT id FROM tenant.embedders WHERE name = $1), used AS (
    UPDATE tenant.embedders SET used = $2 WHERE name = $1 AND used < $2 - 3600000000
), added AS (
    INSERT INTO tenant.embedders (name, used) SELECT $1, $2 WHERE NOT EXISTS (SELECT FROM known)
    ON CONFLICT (name) DO UPDATE SET name = excluded.name RETURNING id
)
SELECT id FROM known UNION ALL SELECT id FROM added;

-- name: mark_stale_resources
-- A row for each of the next resources.
WITH next AS (
    SELECT id, newest FROM tenant.resources WHERE id > (SELECT swept FROM tenant.embedders WHERE name = $1)
    ORDER BY id LIMIT $2
), to_embed AS (
    INSERT INTO tenant.embedded AS known (embedder, resource, upto, newest)
    SELECT (SELECT id FROM tenant.embedders WHERE name = $1), id, 0, newest FROM next
    ON CONFLICT (embedder, resource) DO UPDATE SET newest = greatest(known.newest, excluded.newest)
)
UPDATE tenant.embedders SET swept = (SELECT max(id) FROM next) WHERE name = $1 AND EXISTS (SELECT FROM next)
RETURNING swept;

-- name: lagging_resources
SELECT resource FROM tenant.embedded
WHERE embedder = (SELECT id FROM tenant.embedders WHERE name = $1) AND newest > upto
    AND ($3::bigint IS NULL OR abs(held - $3::bigint) >= $4) ORDER BY resource LIMIT $2;

-- name: claim
-- Returns no row if another process has a recent claim. Clocks differ, so its time may be in the future.
INSERT INTO tenant.embedded AS known (embedder, resource, upto, newest, held)
SELECT $1, id, 0, newest, $3 FROM tenant.resources WHERE id = $2
ON CONFLICT (embedder, resource) DO UPDATE SET held = excluded.held WHERE abs(known.held - $3) >= $4 RETURNING held;

-- name: set_embedded_upto
INSERT INTO tenant.embedded AS known (embedder, resource, upto, newest) VALUES ($1, $2, $3, $3)
ON CONFLICT (embedder, resource) DO UPDATE
SET upto = greatest(known.upto, excluded.upto), newest = greatest(known.newest, excluded.newest), held = 0;

-- name: add_vector
INSERT INTO tenant.vectors (embedder, resource, passage, numbers)
SELECT embedder, resource, passage, numbers::pgvector.halfvec
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[]) AS one (embedder, resource, passage, numbers)
ON CONFLICT (embedder, resource, passage) DO UPDATE SET numbers = excluded.numbers;

-- name: nearest
-- Vectors have unit length or are zero, so the inner product is the cosine. Each is read once, and only the scores are
-- sorted. The best $5 are returned and scored again exactly, as for SQLite.
WITH measured AS MATERIALIZED (
    SELECT passage, numbers::pgvector.vector OPERATOR(pgvector.<#>) $3::pgvector.vector AS apart FROM tenant.vectors
    WHERE embedder = (SELECT id FROM tenant.embedders WHERE name = $1) AND resource = $2
)
SELECT nearest.passage, -apart, (SELECT count(*) FROM measured), pgvector.halfvec_send(numbers)
FROM (
    SELECT passage, apart, row_number() OVER (ORDER BY apart, passage) AS place FROM measured ORDER BY place LIMIT $4
) AS nearest LEFT JOIN tenant.vectors ON place <= $5 AND vectors.passage = nearest.passage AND resource = $2
    AND embedder = (SELECT id FROM tenant.embedders WHERE name = $1)
ORDER BY place;
