-- Statements that are the same in both databases. In SQLite `tenant.` is left out, and `$1` becomes `?1`.

-- name: receipt
-- Result of an earlier append with this key.
SELECT request, first, last, at FROM tenant.keys JOIN tenant.streams ON streams.id = keys.stream
WHERE streams.name = $1 AND key = $2;

-- name: receipts
-- Keys after a key, or all: NULL is needed for the start, since an empty text is a valid key.
SELECT key, request, first, last, at FROM tenant.keys JOIN tenant.streams ON streams.id = keys.stream
WHERE streams.name = $1 AND (CAST($2 AS text) IS NULL OR key > $2) ORDER BY key LIMIT $3;

-- name: all_receipts
-- Keys after a key of a stream. Stream ids start at 1.
SELECT keys.stream, streams.name, key, request, first, last, at
FROM tenant.keys JOIN tenant.streams ON streams.id = keys.stream
WHERE (keys.stream, key) > (CAST($1 AS bigint), CAST($2 AS text)) ORDER BY keys.stream, key LIMIT $3;

-- name: add_key
INSERT INTO tenant.keys (stream, key, request, first, last, at) VALUES ($1, $2, $3, $4, $5, $6);

-- name: snapshot
SELECT seq, fold, body FROM tenant.snapshots JOIN tenant.streams ON streams.id = snapshots.stream
WHERE streams.name = $1 AND fold = $2 AND seq <= $3;

-- name: save_snapshot
-- Replaced only by a newer snapshot, or one of another fold version.
INSERT INTO tenant.snapshots AS kept (stream, seq, fold, body)
SELECT id, $2, $3, $4 FROM tenant.streams WHERE name = $1
ON CONFLICT (stream) DO UPDATE SET seq = excluded.seq, fold = excluded.fold, body = excluded.body
WHERE excluded.seq > kept.seq OR excluded.fold <> kept.fold;

-- name: published_versions
SELECT path, digest, live_files.seq FROM tenant.live_files JOIN tenant.streams ON streams.id = live_files.stream
WHERE streams.name = $1;

-- name: mark_published
INSERT INTO tenant.live_files (stream, path, digest, seq) SELECT id, $2, $3, $4 FROM tenant.streams WHERE name = $1
ON CONFLICT (stream, path) DO UPDATE SET digest = excluded.digest, seq = excluded.seq;

-- name: delete_expired_usage
-- Windows that are over.
DELETE FROM tenant.allowances WHERE name = $1 AND start < $2;

-- name: try_consume
-- Returns no row if the limit would be exceeded.
INSERT INTO tenant.allowances AS counted (name, start, used) SELECT $1, $2, $3 WHERE $3 <= $4
ON CONFLICT (name, start) DO UPDATE SET used = counted.used + excluded.used
WHERE counted.used + excluded.used <= $4
RETURNING used;

-- name: adjust_usage
UPDATE tenant.allowances SET used = CASE WHEN used + $3 < 0 THEN 0 ELSE used + $3 END WHERE name = $1 AND start = $2;

-- name: usage
SELECT used FROM tenant.allowances WHERE name = $1 AND start = $2;
