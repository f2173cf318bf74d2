-- Statements of SQLite alone. Those that take a stream take its name.

-- name: add_stream
-- The owner is that of the first event; a stream without events has none.
INSERT INTO streams (name, owner) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET owner = excluded.owner RETURNING id;

-- name: stream_id
SELECT id FROM streams WHERE name = ?1;

-- name: stream_names
-- Streams with a prefix. A range instead of LIKE, so that no character is a wildcard.
SELECT name FROM streams WHERE name >= ?1 AND name < ?2 AND (?4 IS NULL OR owner = ?4)
ORDER BY name LIMIT coalesce(?3, -1);

-- name: stream_infos
SELECT streams.name, latest.seq, latest.at, opening.seq, opening.at, opening.kind, opening.origin, opening.trust,
    opening.opens, opening.sources, opening.body
FROM streams
JOIN events AS opening ON opening.stream = streams.id AND opening.seq = 1
JOIN events AS latest ON latest.stream = streams.id
    AND latest.seq = (SELECT max(seq) FROM events WHERE stream = streams.id)
WHERE name >= ?1 AND name < ?2 AND (?4 IS NULL OR owner = ?4)
ORDER BY latest.at DESC, name LIMIT coalesce(?3, -1);

-- name: owners
SELECT DISTINCT owner FROM streams WHERE owner IS NOT NULL AND (?1 IS NULL OR owner > ?1)
ORDER BY owner LIMIT coalesce(?2, -1);

-- name: version
SELECT coalesce(max(seq), 0) FROM events WHERE stream = (SELECT id FROM streams WHERE name = ?1);

-- name: add_event
INSERT INTO events (stream, seq, at, kind, origin, trust, opens, sources, body)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9);

-- name: events
SELECT seq, at, kind, origin, trust, opens, sources, body FROM events
WHERE stream = (SELECT id FROM streams WHERE name = ?1) AND seq > ?2 AND seq <= ?3 AND (?4 IS NULL OR kind = ?4)
ORDER BY seq;

-- name: events_since
-- Events of some kinds of all streams, in the order in which they were stored.
SELECT events.position, streams.name, seq, at, kind, origin, trust, opens, sources, body
FROM events JOIN streams ON streams.id = events.stream
WHERE events.position > ?1 AND kind IN (SELECT value FROM json_each(?2)) ORDER BY events.position LIMIT ?3;

-- name: events_since_of_owner
-- The same for the streams of one owner.
SELECT events.position, streams.name, seq, at, kind, origin, trust, opens, sources, body
FROM events JOIN streams ON streams.id = events.stream
WHERE events.position > ?1 AND kind IN (SELECT value FROM json_each(?2)) AND streams.owner = ?4
ORDER BY events.position LIMIT ?3;

-- name: all_events
-- By position alone: PostgreSQL's order by owner, for which the first column stands, costs a scan for each batch here.
SELECT 0, events.position, streams.name, seq, at, kind, origin, trust, opens, sources, body
FROM events JOIN streams ON streams.id = events.stream
WHERE events.position > ?2 AND events.position <= ?3 AND (?4 IS NULL OR streams.owner = ?4)
ORDER BY events.position LIMIT ?5;

-- name: event_at
SELECT position, seq, at, kind, origin, trust, opens, sources, body FROM events WHERE stream = ?1 AND seq = ?2;

-- name: last_position
SELECT CASE WHEN ?1 IS NULL THEN (SELECT coalesce(max(position), 0) FROM events) ELSE (
    SELECT coalesce(max((SELECT position FROM events WHERE stream = streams.id ORDER BY seq DESC LIMIT 1)), 0)
    FROM streams WHERE owner = ?1
) END;

-- name: summary
SELECT kind, count(*), max(at) FROM events WHERE stream = (SELECT id FROM streams WHERE name = ?1) GROUP BY kind;
