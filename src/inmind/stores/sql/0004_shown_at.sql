-- How far the journal was when a live file was last written: a version that came later was not confirmed to be shown.
ALTER TABLE live_files ADD COLUMN seq INTEGER NOT NULL DEFAULT 0;
