-- Roles and their schemas, for operators. `tenant.` stands for one tenant's schema.

-- name: operator
-- The operator's rights, the database and the server's version.
SELECT rolsuper, rolcreaterole, current_database(), current_setting('server_version_num')::integer
FROM pg_catalog.pg_roles WHERE rolname = current_user;

-- name: tenants
-- A tenant is a role without special rights and with a schema of the same name that holds our tables, or is still empty.
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
-- The start time distinguishes a server from others.
SELECT pg_catalog.pg_postmaster_start_time(), pg_database.oid::bigint, pg_roles.oid::bigint
FROM pg_catalog.pg_database, pg_catalog.pg_roles WHERE datname = current_database() AND rolname = $1;

-- name: expired_delegates
-- Delegates of operators that were killed at least a day ago.
SELECT rolname FROM pg_catalog.pg_roles WHERE rolname LIKE $1 AND rolvaliduntil < now()
    AND NOT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = rolname);

-- name: name_exists
SELECT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = $1),
    EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1);

-- name: may_become_16
SELECT pg_catalog.pg_has_role(current_user, $1::name, 'SET');

-- name: may_become_15
SELECT pg_catalog.pg_has_role(current_user, $1::name, 'MEMBER');

-- name: may_connect
SELECT pg_catalog.has_database_privilege($1::name, current_database(), 'CONNECT');

-- name: public_create_grants
-- Places where PUBLIC may create objects, which could shadow PostgreSQL's own in other statements.
SELECT 'DATABASE', current_database()::text
WHERE pg_catalog.has_database_privilege('public', current_database(), 'CREATE')
UNION ALL SELECT 'SCHEMA', nspname::text FROM pg_catalog.pg_namespace
WHERE pg_catalog.has_schema_privilege('public', oid, 'CREATE') AND nspname !~ '^pg_(toast_)?temp_';

-- name: grants_to_role
-- Grants to a role outside its schema.
SELECT 'DATABASE', datname::text FROM pg_catalog.pg_database, pg_catalog.aclexplode(datacl) AS given
WHERE datname = current_database() AND given.grantee = $1::oid
UNION SELECT 'SCHEMA', nspname::text FROM pg_catalog.pg_namespace, pg_catalog.aclexplode(nspacl) AS given
WHERE given.grantee = $1::oid;

-- name: pgvector_schema
-- The schema of the extension, and whether a role may use it.
SELECT nspname, pg_catalog.has_schema_privilege($1::name, pg_namespace.oid, 'USAGE')
FROM pg_catalog.pg_extension JOIN pg_catalog.pg_namespace ON pg_namespace.oid = extnamespace WHERE extname = 'vector';

-- name: pgvector_available
SELECT EXISTS (SELECT FROM pg_catalog.pg_available_extensions WHERE name = 'vector');

-- name: has_tables
SELECT pg_catalog.to_regclass($1) IS NOT NULL;

-- name: lock_tables
-- Appends wait, reads do not.
LOCK TABLE tenant.streams IN EXCLUSIVE MODE;

-- name: versions
SELECT name, version FROM tenant.streams;

-- name: keys
SELECT name, pg_catalog.count(*) FROM tenant.keys JOIN tenant.streams ON streams.id = keys.stream GROUP BY name;

-- name: end_connections
SELECT pg_catalog.pg_terminate_backend(pid, 5000) FROM pg_catalog.pg_stat_activity
WHERE usename = $1 AND pid <> pg_catalog.pg_backend_pid();

-- name: role_oid
SELECT oid::bigint FROM pg_catalog.pg_roles WHERE rolname = $1;

-- name: remaining_objects
-- Remains of a role: the role, its schema, objects that it owns, and its grants.
SELECT 'the role' WHERE EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = $1 OR oid = $2)
UNION ALL SELECT 'the schema' WHERE EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1 OR nspowner = $2)
UNION ALL SELECT relname::text FROM pg_catalog.pg_class WHERE relowner = $2
UNION ALL SELECT 'a function' WHERE EXISTS (SELECT FROM pg_catalog.pg_proc WHERE proowner = $2)
UNION ALL SELECT 'a right' WHERE EXISTS (
    SELECT FROM pg_catalog.pg_shdepend WHERE refclassid = 'pg_catalog.pg_authid'::regclass AND refobjid = $2
);
