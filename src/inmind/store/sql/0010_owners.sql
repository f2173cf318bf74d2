-- The owner of each stream, from its first event: empty if that event names none, NULL if there is no event yet.
ALTER TABLE streams ADD COLUMN owner TEXT;
UPDATE streams SET owner = CASE
    WHEN name >= 'resource/' AND name < 'resource0' THEN substr(name, 10)
    ELSE coalesce((
        SELECT CASE json_extract(body, '$.resource') WHEN 'default' THEN char(1) || streams.name
            ELSE json_extract(body, '$.resource') END
        FROM events WHERE stream = streams.id AND seq = 1 AND kind = 'opened'
    ), '') END
WHERE EXISTS (SELECT 1 FROM events WHERE stream = streams.id AND seq = 1);
CREATE INDEX streams_by_owner ON streams (owner, name);
