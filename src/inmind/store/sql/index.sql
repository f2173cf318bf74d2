-- The schema of the index and its queries. The index is derived from the journal and may be deleted at any time; if its
-- schema changes, its version is raised and it is rebuilt. It holds numbers and word stems, no text.
-- Queries of `crystals.*` name each column: see `records`.

-- name: schema
-- `upto` is the last indexed position of the journal, stored with the event there. `identity` changes with each rebuild.
CREATE TABLE followed (upto INTEGER NOT NULL, event TEXT NOT NULL, at INTEGER NOT NULL, identity BLOB NOT NULL) STRICT;
INSERT INTO followed VALUES (0, '', 0, randomblob(16));
CREATE TABLE resources (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    passages INTEGER NOT NULL DEFAULT 0,
    hidden INTEGER NOT NULL DEFAULT 0,
    newest INTEGER NOT NULL DEFAULT 0
) STRICT;
-- Ordered series: the conversation of a session, the notes of a resource, the parts of a page. `shows`: memory content was
-- shown there.
CREATE TABLE series (
    resource INTEGER NOT NULL,
    id INTEGER NOT NULL,
    stream TEXT NOT NULL,
    name TEXT NOT NULL,
    length INTEGER NOT NULL,
    asks INTEGER NOT NULL,
    shows INTEGER NOT NULL,
    PRIMARY KEY (resource, id),
    UNIQUE (stream, name)
) STRICT, WITHOUT ROWID;
-- `made` only grows, so embedding can follow it. `number` encodes a crystal's series and its index there. `gone`: when it
-- was undone or superseded. `named`: the speaker comes from the message's name field, not from the start of its text.
-- `ends` is the declared end; `valid_to` may come from a later statement.
CREATE TABLE crystals (
    made INTEGER PRIMARY KEY,
    number INTEGER NOT NULL,
    event TEXT NOT NULL,
    part INTEGER NOT NULL,
    resource INTEGER NOT NULL,
    kind TEXT NOT NULL,
    source TEXT NOT NULL,
    origin TEXT NOT NULL,
    trust INTEGER NOT NULL,
    at INTEGER NOT NULL,
    role TEXT NOT NULL,
    speaker TEXT NOT NULL,
    named INTEGER NOT NULL,
    words INTEGER NOT NULL,
    answers INTEGER NOT NULL,
    importance REAL NOT NULL,
    valence REAL NOT NULL,
    about TEXT NOT NULL,
    echoes TEXT,
    gone INTEGER,
    accesses INTEGER NOT NULL DEFAULT 0,
    accessed INTEGER,
    valid_from INTEGER,
    ends INTEGER,
    valid_to INTEGER,
    superseded_by TEXT NOT NULL DEFAULT '',
    merged_into TEXT NOT NULL DEFAULT '',
    lineage TEXT,
    lifecycle TEXT NOT NULL DEFAULT 'generated',
    UNIQUE (event, part),
    UNIQUE (resource, number)
) STRICT;
CREATE INDEX crystals_by_resource ON crystals (resource);
-- Crystals that were undone, merged or expired. `resources.hidden` counts changes, so that a reader with a cached copy
-- knows when to read it again.
CREATE INDEX crystals_hidden ON crystals (resource, number)
WHERE gone IS NOT NULL OR lifecycle IN ('archived', 'expired');
CREATE INDEX crystals_by_time ON crystals (resource, at);
CREATE TABLE speakers (
    resource INTEGER NOT NULL,
    name TEXT NOT NULL,
    messages INTEGER NOT NULL,
    PRIMARY KEY (resource, name)
) STRICT, WITHOUT ROWID;
-- Word sequences that memory has shown in a conversation.
CREATE TABLE shown (
    resource INTEGER NOT NULL,
    series INTEGER NOT NULL,
    run INTEGER NOT NULL,
    PRIMARY KEY (resource, series, run)
) STRICT, WITHOUT ROWID;
-- Passages that contain a word, as concatenated 8-byte numbers in small chunks, so that adding one is cheap. Words are
-- stored per resource, so that a search never reads another resource's passages.
CREATE TABLE held (
    resource INTEGER NOT NULL,
    word TEXT NOT NULL,
    chunk INTEGER NOT NULL,
    passages BLOB NOT NULL,
    PRIMARY KEY (resource, word, chunk)
) STRICT, WITHOUT ROWID;
CREATE TABLE embedders (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, used INTEGER NOT NULL) STRICT;
-- The last embedded crystal of a resource for each embedder, and since when a process is embedding the next.
CREATE TABLE embedded (
    embedder INTEGER NOT NULL,
    resource INTEGER NOT NULL,
    upto INTEGER NOT NULL,
    held INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (embedder, resource)
) STRICT, WITHOUT ROWID;
CREATE TABLE vectors (
    made INTEGER PRIMARY KEY,
    embedder INTEGER NOT NULL,
    resource INTEGER NOT NULL,
    passage INTEGER NOT NULL,
    numbers BLOB NOT NULL,
    UNIQUE (embedder, resource, passage)
) STRICT;
CREATE INDEX vectors_by_resource ON vectors (embedder, resource, made);

-- name: position
SELECT upto FROM followed;

-- name: last_event
SELECT upto, event, at FROM followed;

-- name: set_position
UPDATE followed SET upto = ?1, event = ?2, at = ?3;

-- name: resource
SELECT id FROM resources WHERE name = ?1;

-- name: resource_names
SELECT name FROM resources ORDER BY name;

-- name: scopes
SELECT resources.id, resources.name, passages, hidden,
    (SELECT json_group_array(name) FROM (
        SELECT name FROM speakers WHERE resource = resources.id AND messages > 1 ORDER BY messages DESC, name LIMIT ?3)),
    newest, coalesce(embedded.upto, 0), identity
FROM json_each(?1) AS wanted JOIN resources ON resources.name = wanted.value CROSS JOIN followed
LEFT JOIN embedders ON embedders.name = ?2
LEFT JOIN embedded ON embedded.embedder = embedders.id AND embedded.resource = resources.id;

-- name: add_resource
INSERT INTO resources (name) VALUES (?1) RETURNING id;

-- name: grow_resource
UPDATE resources SET passages = passages + ?2, hidden = hidden + ?3,
    newest = (SELECT coalesce(max(made), 0) FROM crystals WHERE resource = ?1) WHERE id = ?1;

-- name: save_series
INSERT INTO series (resource, id, stream, name, length, asks, shows) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (resource, id) DO UPDATE SET length = excluded.length, asks = excluded.asks, shows = excluded.shows;

-- name: add_crystal
INSERT INTO crystals (number, event, part, resource, kind, source, origin, trust, at, role, speaker, named, words,
    answers, importance, valence, about, echoes, valid_from, ends, valid_to, lifecycle)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22);

-- name: last_chunk
SELECT chunk, length(passages) FROM held WHERE resource = ?1 AND word = ?2 ORDER BY chunk DESC LIMIT 1;

-- name: add_words
INSERT INTO held (resource, word, chunk, passages) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (resource, word, chunk) DO UPDATE SET passages = CAST(passages || excluded.passages AS BLOB);

-- name: word_matches
-- Passages that contain a word, newest chunk first.
SELECT passages FROM held WHERE resource = ?1 AND word = ?2 ORDER BY chunk DESC LIMIT ?3;

-- name: set_gone
-- With the time since when it is no longer valid.
UPDATE crystals SET gone = ?3 WHERE made = ?2 AND resource = ?1;

-- name: count_speaker
INSERT INTO speakers (resource, name, messages) VALUES (?1, ?2, ?3)
ON CONFLICT (resource, name) DO UPDATE SET messages = messages + excluded.messages;

-- name: add_shown_runs
INSERT OR IGNORE INTO shown (resource, series, run) VALUES (?1, ?2, ?3);

-- name: crystals_of_events
SELECT crystals.* FROM crystals WHERE event IN (SELECT value FROM json_each(?1)) ORDER BY made;

-- name: update_crystal
UPDATE crystals SET accesses = ?3, accessed = ?4, valid_to = ?5, superseded_by = ?6, merged_into = ?7, lineage = ?8,
    lifecycle = ?9 WHERE made = ?2 AND resource = ?1;

-- name: written_crystals
-- Notes and crystals of dreams, in the order in which they were indexed. Pages and entities have their own versions and
-- are not merged.
SELECT crystals.* FROM crystals JOIN series ON series.resource = crystals.resource AND series.id = crystals.number >> 20
WHERE crystals.resource = ?1 AND rtrim(series.name, char(1)) = 'notes' AND gone IS NULL ORDER BY made;

-- name: embedders
-- Number of embedded crystals for each embedder.
SELECT embedders.name, count(crystals.made) FROM embedders
LEFT JOIN embedded ON embedded.embedder = embedders.id
LEFT JOIN crystals ON crystals.resource = embedded.resource AND crystals.made <= embedded.upto
GROUP BY embedders.name ORDER BY embedders.name;

-- name: count_crystals
SELECT count(*) FROM crystals;

-- name: add_embedder
INSERT INTO embedders (name, used) VALUES (?1, ?2)
ON CONFLICT (name) DO UPDATE SET used = max(used, excluded.used) RETURNING id;

-- name: lagging_resources
SELECT resources.id FROM resources LEFT JOIN embedders ON embedders.name = ?1
LEFT JOIN embedded ON embedded.embedder = embedders.id AND embedded.resource = resources.id
WHERE newest > coalesce(embedded.upto, 0) AND (?3 IS NULL OR abs(coalesce(held, 0) - ?3) >= ?4)
ORDER BY resources.id LIMIT ?2;

-- name: claim
-- Returns no row if another process has a recent claim. Clocks differ, so its time may be in the future.
INSERT INTO embedded (embedder, resource, upto, held) VALUES (?1, ?2, 0, ?3)
ON CONFLICT (embedder, resource) DO UPDATE SET held = excluded.held WHERE abs(held - ?3) >= ?4 RETURNING held;

-- name: set_embedded_upto
INSERT INTO embedded (embedder, resource, upto) VALUES (?1, ?2, ?3)
ON CONFLICT (embedder, resource) DO UPDATE SET upto = max(upto, excluded.upto), held = 0;

-- name: add_vector
INSERT OR REPLACE INTO vectors (embedder, resource, passage, numbers) VALUES (?1, ?2, ?3, ?4);

-- name: vectors
SELECT made, passage, numbers FROM vectors
WHERE embedder = (SELECT id FROM embedders WHERE name = ?1) AND resource = ?2 AND made > ?3 ORDER BY made LIMIT ?4;
