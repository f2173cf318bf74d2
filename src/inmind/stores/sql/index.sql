-- The schema of the index, and the queries over it. It is derived from the journal and may be deleted at any time; when
-- its shape changes, its version is raised and it is made anew. It holds numbers and stems of words, and no text.

-- name: schema
-- `upto` is how far the index has followed the journal, and beside it which event stood there. `identity` tells it from
-- what was here before.
CREATE TABLE followed (upto INTEGER NOT NULL, event TEXT NOT NULL, at INTEGER NOT NULL, identity BLOB NOT NULL) STRICT;
INSERT INTO followed VALUES (0, '', 0, randomblob(16));
CREATE TABLE resources (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    passages INTEGER NOT NULL DEFAULT 0,
    hidden INTEGER NOT NULL DEFAULT 0
) STRICT;
-- What stands in order: the conversation of a session, the notes of a resource, the parts of a page.
CREATE TABLE series (
    id INTEGER PRIMARY KEY,
    stream TEXT NOT NULL,
    name TEXT NOT NULL,
    resource INTEGER NOT NULL REFERENCES resources (id),
    length INTEGER NOT NULL DEFAULT 0,
    asks INTEGER NOT NULL DEFAULT 0,
    UNIQUE (stream, name)
) STRICT;
-- `made` only grows, so vectors can follow it. `number` says which series a crystal stands in, and at which place. `gone`
-- is when it was taken back, or said anew. `named`: the speaker is the message's own word, and not only what its text
-- begins with. `ends` is the end that was declared for it; `valid_to` may be one that came with what was said since.
CREATE TABLE crystals (
    made INTEGER PRIMARY KEY,
    number INTEGER NOT NULL UNIQUE,
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
    UNIQUE (event, part)
) STRICT;
-- What was taken back, merged or has faded. `resources.hidden` counts how often that changed, so that whoever holds on to
-- these numbers knows when to ask again.
CREATE INDEX crystals_hidden ON crystals (resource, number)
WHERE gone IS NOT NULL OR lifecycle IN ('archived', 'expired');
CREATE TRIGGER crystals_shown_or_hidden AFTER UPDATE OF gone, lifecycle ON crystals
WHEN (old.gone IS NULL AND old.lifecycle NOT IN ('archived', 'expired'))
    <> (new.gone IS NULL AND new.lifecycle NOT IN ('archived', 'expired'))
BEGIN
    UPDATE resources SET hidden = hidden + 1 WHERE id = new.resource;
END;
CREATE INDEX crystals_by_time ON crystals (resource, at);
CREATE TABLE speakers (
    resource INTEGER NOT NULL,
    name TEXT NOT NULL,
    messages INTEGER NOT NULL,
    PRIMARY KEY (resource, name)
) STRICT, WITHOUT ROWID;
-- Runs of words that memory has shown in a conversation.
CREATE TABLE shown (
    series INTEGER NOT NULL,
    run INTEGER NOT NULL,
    PRIMARY KEY (series, run)
) STRICT, WITHOUT ROWID;
-- Passages that hold a word, as numbers of 8 bytes end to end, a few together so that adding one is cheap. A word is
-- one resource's, so that one resource's search never meets another's passages.
CREATE TABLE held (
    resource INTEGER NOT NULL,
    word TEXT NOT NULL,
    chunk INTEGER NOT NULL,
    passages BLOB NOT NULL,
    PRIMARY KEY (resource, word, chunk)
) STRICT, WITHOUT ROWID;
CREATE TABLE embedders (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    upto INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE vectors (
    made INTEGER PRIMARY KEY,
    embedder INTEGER NOT NULL,
    resource INTEGER NOT NULL,
    passage INTEGER NOT NULL,
    numbers BLOB NOT NULL,
    UNIQUE (embedder, passage)
) STRICT;
CREATE INDEX vectors_by_resource ON vectors (embedder, resource, made);

-- name: upto
SELECT upto FROM followed;

-- name: identity
SELECT identity FROM followed;

-- name: followed
SELECT upto, event, at FROM followed;

-- name: follow
UPDATE followed SET upto = ?1, event = ?2, at = ?3;

-- name: resource
SELECT id, passages, hidden FROM resources WHERE name = ?1;

-- name: resource_names
SELECT name FROM resources ORDER BY id;

-- name: add_resource
INSERT INTO resources (name) VALUES (?1) RETURNING id;

-- name: grow_resource
UPDATE resources SET passages = passages + ?2 WHERE id = ?1;

-- name: series
SELECT id, resource, length, asks FROM series WHERE stream = ?1 AND name = ?2;

-- name: add_series
-- Conversations have odd numbers, so that a number alone tells whether its neighbours belong to it.
INSERT INTO series (id, stream, name, resource)
VALUES ((SELECT coalesce(max(id), 0) / 2 * 2 + 2 FROM series) + ?4, ?1, ?2, ?3) RETURNING id;

-- name: grow_series
UPDATE series SET length = ?2, asks = ?3 WHERE id = ?1;

-- name: add_crystal
INSERT INTO crystals (number, event, part, resource, kind, source, origin, trust, at, role, speaker, named, words,
    answers, importance, valence, about, echoes, valid_from, ends, valid_to, lifecycle)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22);

-- name: last_chunk
SELECT chunk, length(passages) FROM held WHERE resource = ?1 AND word = ?2 ORDER BY chunk DESC LIMIT 1;

-- name: hold
INSERT INTO held (resource, word, chunk, passages) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (resource, word, chunk) DO UPDATE SET passages = CAST(passages || excluded.passages AS BLOB);

-- name: overtake
-- An earlier word on the same thing, in the same series, is found no more.
UPDATE crystals SET gone = ?4 WHERE number BETWEEN ?1 AND ?2 AND about = ?3 AND gone IS NULL;

-- name: of_stream
SELECT made, event, about FROM crystals WHERE event > ?1 AND event < ?2;

-- name: stand
-- With a time, since when it does no longer: the first one stays.
UPDATE crystals SET gone = CASE WHEN ?2 IS NOT NULL THEN coalesce(gone, ?2) END WHERE made = ?1;

-- name: count_speaker
INSERT INTO speakers (resource, name, messages) VALUES (?1, ?2, 1)
ON CONFLICT (resource, name) DO UPDATE SET messages = messages + 1;

-- name: speakers
SELECT name FROM speakers WHERE resource = ?1 AND messages > 1 ORDER BY messages DESC LIMIT ?2;

-- name: show
INSERT OR IGNORE INTO shown (series, run) VALUES (?1, ?2);

-- name: is_shown
SELECT 1 FROM shown WHERE series = ?1 AND run = ?2;

-- name: anything_shown
SELECT 1 FROM shown WHERE series = ?1 LIMIT 1;

-- name: hidden
SELECT number FROM crystals WHERE resource = ?1 AND (gone IS NOT NULL OR lifecycle IN ('archived', 'expired'));

-- name: series_of
SELECT id FROM series WHERE stream = ?1;

-- name: holding
-- Passages that hold a word, the newest first.
SELECT passages FROM held WHERE resource = ?1 AND word = ?2 ORDER BY chunk DESC LIMIT ?3;

-- name: placed
SELECT * FROM crystals WHERE number IN (SELECT value FROM json_each(?1));

-- name: known
SELECT * FROM crystals WHERE event = ?1 AND part = ?2;

-- name: of_events
SELECT * FROM crystals WHERE event IN (SELECT value FROM json_each(?1));

-- name: fresh
SELECT count(*) FROM (SELECT 1 FROM crystals WHERE resource = ?1 AND at > ?2 AND gone IS NULL LIMIT ?3);

-- name: amid
SELECT number FROM crystals WHERE resource = ?1 AND at >= ?2 AND at < ?3 AND gone IS NULL ORDER BY at DESC LIMIT ?4;

-- name: after_crystal
UPDATE crystals SET accesses = ?2, accessed = ?3, valid_to = ?4, superseded_by = ?5, merged_into = ?6, lineage = ?7,
    lifecycle = ?8 WHERE made = ?1;

-- name: written
-- What was noted and what dreams have found, in the order in which it was taken in. Pages and things have versions of
-- their own, and take no part in merging.
SELECT crystals.* FROM crystals JOIN series ON series.id = crystals.number >> 20
WHERE crystals.resource = ?1 AND rtrim(series.name, char(1)) = 'notes' AND gone IS NULL ORDER BY made;

-- name: fading
-- What was said in sessions and can leave search: whatever is declared more important than that never does.
SELECT * FROM crystals WHERE +resource = ?1 AND made > ?2 AND source = 'sessions' AND gone IS NULL AND importance < 0.2
    AND lifecycle IN ('generated', 'activated', 'consolidated') ORDER BY made LIMIT ?3;

-- name: embedder
SELECT id, upto FROM embedders WHERE name = ?1;

-- name: embedders
SELECT name, upto FROM embedders ORDER BY name;

-- name: newest
SELECT coalesce(max(made), 0) FROM crystals;

-- name: add_embedder
INSERT INTO embedders (name) VALUES (?1) ON CONFLICT (name) DO UPDATE SET upto = upto RETURNING id, upto;

-- name: other_embedders
SELECT id FROM embedders WHERE name <> ?1;

-- name: drop_vectors
DELETE FROM vectors WHERE embedder = ?1;

-- name: drop_embedder
DELETE FROM embedders WHERE id = ?1;

-- name: unembedded
SELECT * FROM crystals WHERE made > ?1 ORDER BY made LIMIT ?2;

-- name: unembedded_of
-- The plus sign keeps SQLite from going through all that the resource has.
SELECT count(*) FROM (SELECT 1 FROM crystals WHERE made > ?1 AND +resource = ?2 LIMIT ?3);

-- name: embedded_upto
UPDATE embedders SET upto = ?2 WHERE id = ?1;

-- name: add_vector
INSERT OR REPLACE INTO vectors (embedder, resource, passage, numbers) VALUES (?1, ?2, ?3, ?4);

-- name: vectors
SELECT made, passage, numbers FROM vectors WHERE embedder = ?1 AND resource = ?2 AND made > ?3 ORDER BY made LIMIT ?4;
