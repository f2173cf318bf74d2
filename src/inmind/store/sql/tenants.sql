-- The inventory of a home, for moving or erasing it.

-- name: versions
SELECT streams.name, coalesce(max(events.seq), 0)
FROM streams LEFT JOIN events ON events.stream = streams.id
GROUP BY streams.id;

-- name: keys
SELECT streams.name, count(*) FROM keys JOIN streams ON streams.id = keys.stream GROUP BY streams.id;

-- name: tables
SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\';
