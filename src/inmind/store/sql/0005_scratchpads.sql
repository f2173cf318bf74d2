-- No table: from here on streams may hold events of the kinds pad_begun, pad_written, pad_merged, pad_set_aside and
-- came_home, which an older version does not know. It must see a newer schema and not damage.
SELECT 1;
