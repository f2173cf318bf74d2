-- No table: from here on streams may hold events of the kinds seeded, dream_begun, dream_went, dreamt, dream_failed,
-- dream_undone, affect and traded, which an older version does not know. It must see a newer schema and not damage.
SELECT 1;
