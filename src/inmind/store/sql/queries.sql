-- name: stream_id
-- The id of a stream.
SELECT id FROM streams WHERE name = ?1;

-- name: add_stream
INSERT INTO streams (name) VALUES (?1) RETURNING id;

-- name: stream_names
-- Streams with a prefix. A range instead of LIKE, so that no character is a wildcard.
SELECT name FROM streams WHERE name >= ?1 AND name < ?2 AND (?3 IS NULL OR owner = ?3) ORDER BY name LIMIT ?4;

-- name: stream_infos
SELECT streams.name, latest.seq, latest.at, opening.seq, opening.at, opening.kind, opening.origin, opening.trust,
    opening.opens, opening.sources, opening.body
FROM streams
JOIN events AS opening ON opening.stream = streams.id AND opening.seq = 1
JOIN events AS latest ON latest.stream = streams.id
    AND latest.seq = (SELECT max(seq) FROM events WHERE stream = streams.id)
WHERE name >= ?1 AND name < ?2 AND (?3 IS NULL OR owner = ?3) ORDER BY latest.at DESC, name LIMIT ?4;

-- name: set_owner
UPDATE streams SET owner = ?2 WHERE id = ?1;

-- name: owners
SELECT DISTINCT owner FROM streams WHERE owner IS NOT NULL AND (?1 IS NULL OR owner > ?1) ORDER BY owner LIMIT ?2;

-- name: version
SELECT coalesce(max(seq), 0) FROM events WHERE stream = ?1;

-- name: add_event
INSERT INTO events (stream, seq, at, kind, origin, trust, opens, sources, body)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9);

-- name: events
SELECT seq, at, kind, origin, trust, opens, sources, body FROM events
WHERE stream = ?1 AND seq > ?2 AND seq <= ?3 ORDER BY seq;

-- name: events_of_kind
SELECT seq, at, kind, origin, trust, opens, sources, body FROM events
WHERE stream = ?1 AND seq > ?2 AND seq <= ?3 AND kind = ?4 ORDER BY seq;

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
SELECT events.position, streams.name, seq, at, kind, origin, trust, opens, sources, body
FROM events JOIN streams ON streams.id = events.stream
WHERE events.position > ?1 AND events.position <= ?2 AND (?3 IS NULL OR streams.owner = ?3)
ORDER BY events.position LIMIT ?4;

-- name: event_at
SELECT position, seq, at, kind, origin, trust, opens, sources, body FROM events WHERE stream = ?1 AND seq = ?2;

-- name: last_position
SELECT coalesce(max(position), 0) FROM events;

-- name: last_position_of
SELECT coalesce(max((SELECT position FROM events WHERE stream = streams.id ORDER BY seq DESC LIMIT 1)), 0)
FROM streams WHERE owner = ?1;

-- name: summary
SELECT kind, count(*), max(at) FROM events WHERE stream = ?1 GROUP BY kind;

-- name: receipt
-- Result of an earlier append with this key.
SELECT request, first, last, at FROM keys WHERE stream = ?1 AND key = ?2;

-- name: receipts
-- Keys after a key, or all: NULL is needed for the start, since an empty text is a valid key.
SELECT key, request, first, last, at FROM keys
WHERE stream = ?1 AND (?2 IS NULL OR key > ?2) ORDER BY key LIMIT ?3;

-- name: all_receipts
-- Keys after a key of a stream. Stream ids start at 1.
SELECT keys.stream, streams.name, key, request, first, last, at FROM keys JOIN streams ON streams.id = keys.stream
WHERE (keys.stream, key) > (?1, ?2) ORDER BY keys.stream, key LIMIT ?3;

-- name: add_key
INSERT INTO keys (stream, key, request, first, last, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6);

-- name: snapshot
SELECT seq, fold, body FROM snapshots WHERE stream = ?1 AND fold = ?2 AND seq <= ?3;

-- name: save_snapshot
-- Replaced only by a newer snapshot, or one of another fold version.
INSERT INTO snapshots (stream, seq, fold, body) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (stream) DO UPDATE SET seq = excluded.seq, fold = excluded.fold, body = excluded.body
WHERE excluded.seq > snapshots.seq OR excluded.fold <> snapshots.fold;

-- name: published_versions
SELECT path, digest, seq FROM live_files WHERE stream = ?1;

-- name: mark_published
INSERT INTO live_files (stream, path, digest, seq) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (stream, path) DO UPDATE SET digest = excluded.digest, seq = excluded.seq;

-- name: delete_expired_usage
-- Windows that are over.
DELETE FROM allowances WHERE name = ?1 AND start < ?2;

-- name: try_consume
-- Returns no row if the limit would be exceeded.
INSERT INTO allowances (name, start, used) SELECT ?1, ?2, ?3 WHERE ?3 <= ?4
ON CONFLICT (name, start) DO UPDATE SET used = allowances.used + excluded.used
WHERE allowances.used + excluded.used <= ?4
RETURNING used;

-- name: adjust_usage
UPDATE allowances SET used = max(0, used + ?3) WHERE name = ?1 AND start = ?2;

-- name: usage
SELECT used FROM allowances WHERE name = ?1 AND start = ?2;
