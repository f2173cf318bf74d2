-- No table: from here on streams may hold events of the kinds compacted, lifted, retained, titled and imported, which an
-- older version does not know. It must see a newer schema and not damage.
SELECT 1;
