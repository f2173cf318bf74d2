-- Roles and their schemas, for operators. `tenant.` stands for one tenant's schema.

-- name: operator
-- Who asks, and what of a server that is.
SELECT rolsuper, rolcreaterole, current_database(), current_setting('server_version_num')::integer
FROM pg_catalog.pg_roles WHERE rolname = current_user;

-- name: tenants
-- A tenant is a role with no powers, with a schema of its own name: ours, or empty as long as it is being made.
SELECT role.rolname, role.rolcanlogin, (
    SELECT coalesce(sum(pg_catalog.pg_total_relation_size(class.oid)), 0)::bigint FROM pg_catalog.pg_class AS class
    WHERE class.relnamespace = schema.oid AND class.relkind IN ('r', 'm', 'p', 'S')
)
FROM pg_catalog.pg_roles AS role
JOIN pg_catalog.pg_namespace AS schema ON schema.nspname = role.rolname AND schema.nspowner = role.oid
WHERE ($1::text IS NULL OR role.rolname = $1)
    AND NOT (role.rolsuper OR role.rolcreaterole OR role.rolcreatedb OR role.rolreplication OR role.rolbypassrls)
    AND role.rolname NOT IN (current_user, session_user)
    AND (
        EXISTS (
            SELECT FROM pg_catalog.pg_class WHERE relnamespace = schema.oid AND relname = 'inmind_steps'
        ) OR NOT role.rolcanlogin AND NOT EXISTS (
            SELECT FROM pg_catalog.pg_class WHERE relnamespace = schema.oid
        )
    )
ORDER BY role.rolname COLLATE "C";

-- name: identity
-- A server is told from others by when it was started.
SELECT pg_catalog.pg_postmaster_start_time(), pg_database.oid::bigint, pg_roles.oid::bigint
FROM pg_catalog.pg_database, pg_catalog.pg_roles WHERE datname = current_database() AND rolname = $1;

-- name: late_delegates
-- Of operators who were killed, a day ago or longer.
SELECT rolname FROM pg_catalog.pg_roles WHERE rolname LIKE $1 AND rolvaliduntil < now()
    AND NOT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = rolname);

-- name: is_taken
SELECT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = $1),
    EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1);

-- name: may_become_16
SELECT pg_catalog.pg_has_role(current_user, $1::name, 'SET');

-- name: may_become_15
SELECT pg_catalog.pg_has_role(current_user, $1::name, 'MEMBER');

-- name: may_connect
SELECT pg_catalog.has_database_privilege($1::name, current_database(), 'CONNECT');

-- name: open_doors
-- Where everybody may make things, which somebody else's statements could find instead of PostgreSQL's own.
SELECT 'DATABASE', current_database()::text
WHERE pg_catalog.has_database_privilege('public', current_database(), 'CREATE')
UNION ALL SELECT 'SCHEMA', nspname::text FROM pg_catalog.pg_namespace
WHERE pg_catalog.has_schema_privilege('public', oid, 'CREATE') AND nspname !~ '^pg_(toast_)?temp_';

-- name: granted
-- What an operator has given to a role beside its own schema.
SELECT 'DATABASE', datname::text FROM pg_catalog.pg_database, pg_catalog.aclexplode(datacl) AS given
WHERE datname = current_database() AND given.grantee = $1::oid
UNION SELECT 'SCHEMA', nspname::text FROM pg_catalog.pg_namespace, pg_catalog.aclexplode(nspacl) AS given
WHERE given.grantee = $1::oid;

-- name: vectors
-- The schema of the extension, and whether a role may look into it.
SELECT nspname, pg_catalog.has_schema_privilege($1::name, pg_namespace.oid, 'USAGE')
FROM pg_catalog.pg_extension JOIN pg_catalog.pg_namespace ON pg_namespace.oid = extnamespace WHERE extname = 'vector';

-- name: vectors_are_available
SELECT EXISTS (SELECT FROM pg_catalog.pg_available_extensions WHERE name = 'vector');

-- name: has_tables
SELECT pg_catalog.to_regclass($1) IS NOT NULL;

-- name: hold
-- Nobody can append any more; who reads still can.
LOCK TABLE tenant.streams IN EXCLUSIVE MODE;

-- name: versions
SELECT name, version FROM tenant.streams;

-- name: keys
SELECT name, pg_catalog.count(*) FROM tenant.keys JOIN tenant.streams ON streams.id = keys.stream GROUP BY name;

-- name: end_connections
SELECT pg_catalog.pg_terminate_backend(pid, 5000) FROM pg_catalog.pg_stat_activity
WHERE usename = $1 AND pid <> pg_catalog.pg_backend_pid();

-- name: role_number
SELECT oid::bigint FROM pg_catalog.pg_roles WHERE rolname = $1;

-- name: left_of
-- Whatever is still there of a role: itself, its schema, what it owns, what others were given to it.
SELECT 'the role' WHERE EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = $1 OR oid = $2)
UNION ALL SELECT 'the schema' WHERE EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1 OR nspowner = $2)
UNION ALL SELECT relname::text FROM pg_catalog.pg_class WHERE relowner = $2
UNION ALL SELECT 'a function' WHERE EXISTS (SELECT FROM pg_catalog.pg_proc WHERE proowner = $2)
UNION ALL SELECT 'a right' WHERE EXISTS (
    SELECT FROM pg_catalog.pg_shdepend WHERE refclassid = 'pg_catalog.pg_authid'::regclass AND refobjid = $2
);
