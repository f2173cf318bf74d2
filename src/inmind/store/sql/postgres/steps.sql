-- Applied migrations, each with the program that applied it.
CREATE TABLE tenant.inmind_steps (
    number integer PRIMARY KEY,
    name text NOT NULL,
    at timestamptz NOT NULL DEFAULT now()
);
