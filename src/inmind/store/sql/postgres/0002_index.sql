-- Owners with events that the search index may not have processed yet. The flag is in the owner's row, so that finding
-- them takes one short query however many owners there are; while it is set, another append changes no index.
ALTER TABLE tenant.owners ADD COLUMN news boolean NOT NULL DEFAULT true;
CREATE INDEX owners_with_news ON tenant.owners (name) WHERE news;
CREATE FUNCTION tenant.has_news() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.news := true;
    RETURN NEW;
END $$;
CREATE TRIGGER owners_have_news BEFORE UPDATE OF position ON tenant.owners
FOR EACH ROW WHEN (NOT old.news) EXECUTE FUNCTION tenant.has_news();
