-- Wraps each migration of procrastinate, which names no schema: it runs in this one until the transaction ends.
SELECT pg_catalog.set_config('search_path', pg_catalog.quote_ident(current_user), true);

-- ---- the step ----

-- No process listens, and NOTIFY would make the commits of all tenants of a database wait for each other. With many jobs,
-- the next one is found by its lock.
DROP TRIGGER IF EXISTS procrastinate_jobs_notify_queue_job_inserted_v1 ON procrastinate_jobs;
DROP TRIGGER IF EXISTS procrastinate_jobs_notify_queue_job_aborted_v1 ON procrastinate_jobs;
CREATE INDEX IF NOT EXISTS jobs_by_lock ON procrastinate_jobs (lock);

-- Its functions use this schema, whatever the caller's search path.
DO $$
DECLARE made oid;
BEGIN
    FOR made IN
        SELECT oid FROM pg_catalog.pg_proc
        WHERE pronamespace = current_schema()::regnamespace AND proname LIKE 'procrastinate\_%'
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path FROM CURRENT', made::regprocedure);
    END LOOP;
END $$;
