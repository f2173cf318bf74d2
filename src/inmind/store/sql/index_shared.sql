-- Statements of the index that are the same in both databases. In SQLite `tenant.` is left out, `$1` becomes `?1`,
-- and an array becomes a JSON list.

-- name: identity
SELECT identity FROM tenant.followed;

-- name: name_of
SELECT name FROM tenant.resources WHERE id = $1;

-- name: series_of_streams
SELECT stream, name, id, length, asks, shows, resource FROM tenant.series WHERE stream = ANY ($1::text[]);

-- name: count_series
SELECT coalesce(max(id), 0) / 2 FROM tenant.series WHERE resource = $1;

-- name: hide_earlier
-- Hide an earlier statement about the same subject in the same series.
UPDATE tenant.crystals SET gone = $5
WHERE resource = $1 AND number BETWEEN $2 AND $3 AND about = $4 AND gone IS NULL RETURNING made;

-- name: of_stream
SELECT resource, made, event, about, gone FROM tenant.crystals WHERE event > $1 AND event < $2;

-- name: find_shown_runs
SELECT run FROM tenant.shown WHERE resource = $1 AND series = $2 AND run = ANY ($3::bigint[]);

-- name: hidden
SELECT number FROM tenant.crystals
WHERE resource = $1 AND (gone IS NOT NULL OR lifecycle IN ('archived', 'expired'));

-- name: series_of
SELECT id FROM tenant.series WHERE resource = $1 AND stream = $2;

-- name: crystals_by_number
SELECT crystals.* FROM tenant.crystals WHERE resource = $1 AND number = ANY ($2::bigint[]) ORDER BY number;

-- name: crystal_by_event
SELECT crystals.* FROM tenant.crystals WHERE event = $1 AND part = $2;

-- name: of_events
SELECT crystals.* FROM tenant.crystals WHERE event = ANY ($1::text[]) ORDER BY made;

-- name: numbers_in_span
SELECT number FROM tenant.crystals WHERE resource = $1 AND at >= $2 AND at < $3 AND gone IS NULL
ORDER BY at DESC, made DESC LIMIT $4;

-- name: fading_crystals
-- Messages of sessions that can expire. More important crystals never do.
SELECT crystals.* FROM tenant.crystals WHERE resource = $1 AND made > $2 AND source = 'sessions' AND gone IS NULL
    AND importance < 0.2 AND lifecycle IN ('generated', 'activated', 'consolidated') ORDER BY made LIMIT $3;

-- name: other_embedders
SELECT id FROM tenant.embedders WHERE name <> $1 AND used < $2;

-- name: embedded_by
SELECT resource FROM tenant.embedded WHERE embedder = $1 ORDER BY resource LIMIT $2;

-- name: drop_vectors
DELETE FROM tenant.vectors WHERE embedder = $1 AND resource = ANY ($2::bigint[]);

-- name: drop_embedded
DELETE FROM tenant.embedded WHERE embedder = $1 AND resource = ANY ($2::bigint[]);

-- name: drop_embedder
DELETE FROM tenant.embedders WHERE id = $1;

-- name: release_claim
UPDATE tenant.embedded SET held = 0
WHERE embedder = (SELECT id FROM tenant.embedders WHERE name = $1) AND resource = $2;

-- name: count_since
SELECT count(*) FROM (SELECT 1 FROM tenant.crystals WHERE resource = $1 AND at > $2 AND gone IS NULL LIMIT $3) AS newer;

-- name: unembedded
SELECT crystals.* FROM tenant.crystals WHERE resource = $2 AND made > coalesce((
    SELECT upto FROM tenant.embedded JOIN tenant.embedders ON embedders.id = embedder
    WHERE name = $1 AND embedded.resource = $2), 0)
ORDER BY made LIMIT $3;
