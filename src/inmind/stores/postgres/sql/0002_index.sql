-- The index of deep memory comes with its own part.
SELECT 1;
