-- No table: from here on streams may hold events of the kind note_withdrawn, which an older version does not know. It must
-- see a newer schema and not damage.
SELECT 1;
