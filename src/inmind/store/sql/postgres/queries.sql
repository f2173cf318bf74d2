-- Statements of PostgreSQL alone.

-- name: append
SELECT repeated, request, first, last, at
FROM tenant.append($1::integer, $2, $3, $4::bigint, $5::bigint, $6, $7, $8::jsonb);

-- name: append_one
SELECT tenant.append_one($1::integer, $2, $3::bigint, $4::bigint, $5, $6, $7::smallint, $8, $9);

-- name: append_with_companion
SELECT repeated, request, first, last, at
FROM tenant.append_beside(
    $1::integer, $2, $3, $4::bigint, $5::bigint, $6, $7, $8::jsonb, $9, $10, $11::bigint, $12::jsonb
);

-- name: refuse_newer_schema
SELECT tenant.refuse_older($1::integer);

-- name: events
SELECT seq, at, kind, origin, trust, opens, sources, body
FROM tenant.streams JOIN tenant.events ON events.owner = streams.owner AND events.stream = streams.id
WHERE streams.name = $1 AND seq > $2 AND seq <= $3 AND ($4::text IS NULL OR kind = $4) ORDER BY seq;

-- name: events_since
-- Events of some kinds of all streams, in the order in which they were stored.
SELECT events.position, streams.name, seq, at, kind, origin, trust, opens, sources, body
FROM tenant.events JOIN tenant.streams ON streams.id = events.stream
WHERE events.position > $1 AND kind = ANY ($2) ORDER BY events.position LIMIT $3;

-- name: events_since_of_owner
-- The same for one owner: it reads that owner's part of the primary key.
SELECT events.position, streams.name, seq, at, kind, origin, trust, opens, sources, body
FROM tenant.events JOIN tenant.streams ON streams.id = events.stream
WHERE events.owner = (SELECT id FROM tenant.owners WHERE owners.name = $4)
    AND events.position > $1 AND kind = ANY ($2) ORDER BY events.position LIMIT $3;

-- name: all_events
-- In the order of the primary key, after a key: each batch costs the same.
SELECT events.owner, events.position, streams.name, seq, at, kind, origin, trust, opens, sources, body
FROM tenant.events JOIN tenant.streams ON streams.id = events.stream
WHERE (events.owner, events.position) > ($1::bigint, $2::bigint) AND events.position <= $3
    AND ($4::text IS NULL OR events.owner = (SELECT id FROM tenant.owners WHERE owners.name = $4))
ORDER BY events.owner, events.position LIMIT $5;

-- name: last_position
SELECT coalesce(max(position), 0) FROM tenant.owners WHERE $1::text IS NULL OR name = $1;

-- name: owners
SELECT name FROM tenant.owners WHERE position > 0 AND ($1::text IS NULL OR name > $1) ORDER BY name LIMIT $2;

-- name: version
SELECT version FROM tenant.streams WHERE name = $1;

-- name: stream_names
-- Streams with a prefix. A range instead of LIKE, so that no character is a wildcard.
SELECT name FROM tenant.streams
WHERE name >= $1 AND name < $2
    AND ($4::text IS NULL OR owner = (SELECT id FROM tenant.owners WHERE owners.name = $4))
ORDER BY name LIMIT $3;

-- name: stream_infos
-- Selected by the rows of streams; the first event is read only for the result. Streams of all owners are read by the
-- hour, from the last one back, until there are enough; those of one owner are all read.
SELECT lately.name, lately.version, lately.written, opening.seq, opening.at, opening.kind, opening.origin, opening.trust,
    opening.opens, opening.sources, opening.body
FROM (
    SELECT id, owner, name, version, written FROM tenant.streams
    WHERE name >= $1 AND name < $2 AND version > 0
        AND ($4::text IS NULL OR owner = (SELECT id FROM tenant.owners WHERE owners.name = $4))
    ORDER BY CASE WHEN $4::text IS NULL THEN hour END DESC, written DESC, name LIMIT $3
) AS lately
CROSS JOIN LATERAL (
    SELECT * FROM tenant.events WHERE (owner, stream, seq) = (lately.owner, lately.id, 1) LIMIT 1
) AS opening
ORDER BY lately.written DESC, lately.name;

-- name: summary
SELECT kind, count(*), max(at)
FROM tenant.streams JOIN tenant.events ON events.owner = streams.owner AND events.stream = streams.id
WHERE streams.name = $1 GROUP BY kind;

-- name: lock_stream
-- Create a stream if there is none, and lock it.
INSERT INTO tenant.streams AS met (name) VALUES ($1)
ON CONFLICT (name) DO UPDATE SET name = excluded.name
RETURNING id, coalesce(owner, 0), version;

-- name: lock_owner
-- Create an owner if there is none, and lock it.
INSERT INTO tenant.owners AS met (name) VALUES ($1)
ON CONFLICT (name) DO UPDATE SET name = excluded.name
RETURNING id, position;

-- name: lock_owner_by_id
SELECT id, position FROM tenant.owners WHERE id = $1 FOR NO KEY UPDATE;

-- name: event_at
SELECT position, seq, at, kind, origin, trust, opens, sources, body FROM tenant.events
WHERE owner = $1 AND stream = $2 AND seq = $3;

-- name: reserve_positions
SELECT nextval('tenant.positions') FROM generate_series(1, $1);

-- name: add_events
COPY tenant.events (owner, position, stream, seq, at, kind, origin, trust, opens, sources, body) FROM STDIN;

-- name: update_streams
UPDATE tenant.streams SET owner = grown.owner, version = grown.version, written = (
    SELECT at FROM tenant.events
    WHERE (events.owner, events.stream, events.seq) = (grown.owner, grown.id, grown.version)
)
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS grown (id, owner, version) WHERE streams.id = grown.id;

-- name: update_owners
UPDATE tenant.owners SET position = greatest(owners.position, grown.position)
FROM unnest($1::bigint[], $2::bigint[]) AS grown (id, position) WHERE owners.id = grown.id;

-- name: receipt_by_id
SELECT request, first, last, at FROM tenant.keys WHERE stream = $1 AND key = $2;

