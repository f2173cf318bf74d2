-- Who has news: something was stored of which the index of deep memory may know nothing yet. It stands by the owner, so
-- that finding them is one short look however many owners there are; while it stands, another append changes no index.
ALTER TABLE tenant.owners ADD COLUMN news boolean NOT NULL DEFAULT true;
CREATE INDEX owners_with_news ON tenant.owners (name) WHERE news;
CREATE FUNCTION tenant.has_news() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.news := true;
    RETURN NEW;
END $$;
CREATE TRIGGER owners_have_news BEFORE UPDATE OF position ON tenant.owners
FOR EACH ROW WHEN (NOT old.news) EXECUTE FUNCTION tenant.has_news();
