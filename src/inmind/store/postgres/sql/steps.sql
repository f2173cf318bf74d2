-- Which steps this schema has taken, each with the program that took it.
CREATE TABLE tenant.inmind_steps (
    number integer PRIMARY KEY,
    name text NOT NULL,
    at timestamptz NOT NULL DEFAULT now()
);
