"""Costs and limits of a memory in PostgreSQL. Each part can be run alone.

A server is started for each part, with its data on a disk and full durability; TMPDIR sets the disk.
$INMIND_TEST_POSTGRES names another server by a superuser's URL; measurements that restart a server are omitted then.
INMIND_BENCH_QUICK=1 runs everything in small sizes: those numbers are no results, and their tables say so.
"""
