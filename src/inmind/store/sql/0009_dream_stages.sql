-- No table: from here on streams may hold events of the kinds dream_taken, dream_gathered, dream_answered,
-- dream_proposed and dream_checked, which an older version does not know. It must see a newer schema and not damage.
SELECT 1;
