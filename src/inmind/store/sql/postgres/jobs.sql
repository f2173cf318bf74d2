-- name: schema_version
-- Empty before the first worker.
SELECT coalesce(max(number), 0), coalesce(min(identity) FILTER (WHERE number = 1), '') FROM tenant.job_steps;

-- name: add_migration
INSERT INTO tenant.job_steps (number, name) VALUES ($1, $2);

-- name: procrastinate_version
SELECT step, version FROM tenant.engine;

-- name: set_procrastinate_version
WITH before AS (DELETE FROM tenant.engine) INSERT INTO tenant.engine (step, version) VALUES ($1, $2);

-- name: lock_migrations
-- One transaction at a time creates tables. Only roles with access to the schema can take this lock.
LOCK TABLE tenant.inmind_steps IN SHARE UPDATE EXCLUSIVE MODE;

-- name: lock_queue
-- One transaction at a time adds jobs to the queue.
SELECT looked FROM tenant.looking FOR UPDATE;

-- name: claim_scan
-- Uses the server's clock. $1: minimum seconds since the last scan.
UPDATE tenant.looking SET looked = clock_timestamp()
WHERE looked <= clock_timestamp() - make_interval(secs => $1) RETURNING true;

-- name: count_todo
-- Jobs that can be done now.
SELECT count(*) FROM tenant.procrastinate_jobs
WHERE status = 'todo' AND (scheduled_at IS NULL OR scheduled_at <= now());

-- name: enqueue_due
-- A job for each owner that is due or has new events, and has no job yet. $1: now; $2: limit; $3: limit for owners whose
-- dreams wait for a free slot. All of them are found by an index, up to the limit. Owners that wait for a dream come
-- first, the longest wait first; then owners that are due; then owners with new events.
WITH by_waiting AS (
    SELECT owner AS id FROM tenant.tending WHERE waits > 0 ORDER BY waits, owner LIMIT $3
), by_the_clock AS (
    SELECT tending.owner AS id FROM tenant.tending JOIN tenant.owners ON owners.id = tending.owner
    WHERE tending.waits = 0 AND tending.due <= $1 AND NOT EXISTS (
        SELECT FROM tenant.procrastinate_jobs AS jobs
        WHERE jobs.lock = 'tend ' || owners.name AND jobs.status IN ('todo', 'doing')
    ) ORDER BY tending.due LIMIT $2
), by_news AS (
    SELECT owners.id FROM tenant.owners
    WHERE untended AND tenant.is_tended(name)
    AND NOT EXISTS (SELECT FROM tenant.tending WHERE tending.owner = owners.id AND tending.reason <> '')
    AND NOT EXISTS (
        SELECT FROM tenant.procrastinate_jobs AS jobs
        WHERE jobs.lock = 'tend ' || owners.name AND jobs.status IN ('todo', 'doing')
    ) ORDER BY owners.id LIMIT $2
), found AS (
    SELECT 'tend ' || owners.name AS lock, owners.name, owners.id, tending.due, coalesce(tending.waits, 0) AS waits
    FROM tenant.owners LEFT JOIN tenant.tending ON tending.owner = owners.id
    WHERE owners.id IN (SELECT id FROM by_waiting UNION SELECT id FROM by_the_clock UNION SELECT id FROM by_news)
        AND NOT EXISTS (
            SELECT FROM tenant.procrastinate_jobs AS jobs
            WHERE jobs.lock = 'tend ' || owners.name AND jobs.status IN ('todo', 'doing')
        )
    ORDER BY nullif(coalesce(tending.waits, 0), 0) NULLS LAST, tending.due NULLS FIRST, owners.id LIMIT $2
), deferred AS (
    SELECT unnest(tenant.procrastinate_defer_jobs_v1(array_agg(
        ROW('inmind', 'tend', (waits > 0 OR coalesce(due <= $1, false))::integer, lock, lock,
            jsonb_build_object('owner', name), NULL)
        ::tenant.procrastinate_job_to_defer_v1 ORDER BY nullif(waits, 0) NULLS LAST, due NULLS FIRST, id
    ))) FROM found HAVING count(*) > 0
) SELECT count(*) FROM deferred;

-- name: dreams_ahead
-- Number of owners that have waited for a dream longer than this one, at most $2.
SELECT count(*) FROM (
    SELECT FROM tenant.tending AS other WHERE other.waits > 0 AND NOT EXISTS (
        SELECT FROM tenant.tending AS mine JOIN tenant.owners ON owners.id = mine.owner
        WHERE owners.name = $1 AND mine.waits > 0 AND (mine.waits, mine.owner) <= (other.waits, other.owner)
    ) ORDER BY other.waits, other.owner LIMIT $2
) AS found;

-- name: analyze
-- The query for the next job depends on the table's statistics: if they say that it is empty, it takes seconds.
ANALYZE tenant.procrastinate_jobs;

-- name: enqueue
-- Jobs of a task, up to $2 that may run at once, less those already waiting.
SELECT tenant.procrastinate_defer_jobs_v1(ARRAY (
    SELECT ROW('inmind', $1::text, 0, lane, lane, '{}'::jsonb, NULL)::tenant.procrastinate_job_to_defer_v1
    FROM generate_series(1, $2::integer) AS number, concat($1::text, ' ', number) AS lane
    WHERE NOT EXISTS (SELECT FROM tenant.procrastinate_jobs WHERE queueing_lock = lane AND status = 'todo')
));

-- name: owner_status
SELECT owners.position, coalesce(tending.seen, -1), coalesce(tending.tended, 0)
FROM tenant.owners LEFT JOIN tenant.tending ON tending.owner = owners.id WHERE owners.name = $1;

-- name: mark_maintained
-- $6: its dream waits for a free slot, from now on unless it already did.
WITH owner AS (
    UPDATE tenant.owners SET untended = position > $2 WHERE name = $1 RETURNING id
)
INSERT INTO tenant.tending AS kept (owner, seen, tended, due, reason, waits)
SELECT id, $2, $3, $4, $5, CASE WHEN $6 THEN $3 ELSE 0 END FROM owner
ON CONFLICT (owner) DO UPDATE
SET seen = excluded.seen, tended = excluded.tended, due = excluded.due, reason = excluded.reason,
    waits = CASE WHEN $6 AND kept.waits > 0 THEN kept.waits ELSE excluded.waits END;

-- name: stalled
-- Jobs of workers that are gone or have sent no heartbeat for $1 seconds (last column); jobs that have run for $2 seconds;
-- and the jobs $3, which their workers do not know.
SELECT jobs.id, jobs.task_name, coalesce(jobs.args ->> 'owner', ''), jobs.attempts, workers.id IS NULL
FROM tenant.procrastinate_jobs AS jobs LEFT JOIN tenant.procrastinate_workers AS workers
    ON workers.id = jobs.worker_id AND workers.last_heartbeat >= now() - make_interval(secs => $1)
WHERE jobs.status = 'doing' AND (
    workers.id IS NULL OR (
        SELECT max(events.at) FROM tenant.procrastinate_events AS events
        WHERE events.job_id = jobs.id AND events.type = 'started'
    ) < now() - make_interval(secs => $2)
    OR jobs.id = ANY($3::bigint[])
) ORDER BY jobs.id FOR UPDATE OF jobs SKIP LOCKED;

-- name: jobs_of_worker
SELECT id FROM tenant.procrastinate_jobs WHERE status = 'doing' AND worker_id = $1;

-- name: retry
-- Retry at once, unless the same job is already waiting.
SELECT CASE WHEN EXISTS (
    SELECT FROM tenant.procrastinate_jobs AS gone JOIN tenant.procrastinate_jobs AS waiting USING (queueing_lock)
    WHERE gone.id = $1 AND waiting.status = 'todo'
) THEN tenant.procrastinate_finish_job_v1($1, 'aborted', true)::text
ELSE tenant.procrastinate_retry_job_v2($1, now(), NULL, NULL, NULL)::text END;

-- name: fail
SELECT tenant.procrastinate_finish_job_v1($1, 'failed', false);

-- name: delete_old_jobs
-- Jobs that failed long ago, with their events.
DELETE FROM tenant.procrastinate_jobs AS jobs WHERE status IN ('failed', 'cancelled', 'aborted') AND NOT EXISTS (
    SELECT FROM tenant.procrastinate_events AS events
    WHERE events.job_id = jobs.id AND events.at > now() - make_interval(days => $1)
);

-- name: queue_status
SELECT
    count(*) FILTER (WHERE status = 'todo' AND (scheduled_at IS NULL OR scheduled_at <= now())),
    count(*) FILTER (WHERE status = 'todo' AND scheduled_at > now()),
    count(*) FILTER (WHERE status = 'doing'),
    count(*) FILTER (WHERE status = 'failed'),
    count(*) FILTER (WHERE status = 'doing' AND NOT EXISTS (
        SELECT FROM tenant.procrastinate_workers AS workers
        WHERE workers.id = jobs.worker_id AND workers.last_heartbeat >= now() - make_interval(secs => $1)
    ))
FROM tenant.procrastinate_jobs AS jobs;

-- name: count_workers
SELECT count(*) FROM tenant.procrastinate_workers WHERE last_heartbeat >= now() - make_interval(secs => $1);

-- name: oldest_wait_seconds
-- Seconds that the oldest job has been waiting.
SELECT coalesce(extract(epoch FROM now() - min(coalesce(jobs.scheduled_at, events.at))), 0)::float
FROM tenant.procrastinate_jobs AS jobs JOIN tenant.procrastinate_events AS events
    ON events.job_id = jobs.id AND events.type = 'deferred'
WHERE jobs.status = 'todo' AND (jobs.scheduled_at IS NULL OR jobs.scheduled_at <= now());

-- name: count_due
-- Number of owners with work to do, at most $2, and since when the first one has. $1: now.
WITH found AS (
    (SELECT owners.id FROM tenant.owners LEFT JOIN tenant.tending ON tending.owner = owners.id
    WHERE owners.untended AND tenant.is_tended(owners.name) AND coalesce(tending.reason, '') = '' LIMIT $2)
    UNION (SELECT owner FROM tenant.tending WHERE waits = 0 AND due <= $1 LIMIT $2)
    UNION (SELECT owner FROM tenant.tending WHERE waits > 0 LIMIT $2)
)
SELECT (SELECT count(*) FROM (SELECT FROM found LIMIT $2) AS few),
    least((SELECT min(due) FROM tenant.tending WHERE waits = 0 AND due <= $1),
        (SELECT min(waits) FROM tenant.tending WHERE waits > 0));

-- name: count_waiting_dreams
-- Number of dreams that wait for a free slot, at most $1.
SELECT count(*) FROM (SELECT FROM tenant.tending WHERE waits > 0 LIMIT $1) AS few;

-- name: failing_owners
SELECT owners.name, tending.reason, tending.due FROM tenant.tending JOIN tenant.owners ON owners.id = tending.owner
WHERE tending.reason <> '' ORDER BY owners.name LIMIT $1;

-- name: sample_owners
SELECT name FROM tenant.owners WHERE position > 0 LIMIT $1;

-- name: working_owners
-- Owners with a running job.
SELECT args ->> 'owner' FROM tenant.procrastinate_jobs WHERE status = 'doing' AND task_name = 'tend' ORDER BY id LIMIT $1;

-- name: latest_owners
-- Owners with the latest events.
SELECT name FROM tenant.owners
WHERE position > 0 AND tenant.is_tended(name) ORDER BY position DESC LIMIT $1;
