"""What a memory in PostgreSQL costs and carries. Each part measures one thing, and can be run alone.

A server is started for each part, on a disk, with everything flushed that is said to be kept: TMPDIR says on which.
$INMIND_TEST_POSTGRES names another by a superuser's URL; what has to restart a server is left out there.
INMIND_BENCH_QUICK=1 tries everything in small sizes: those numbers are no results, and their tables say so.
"""
