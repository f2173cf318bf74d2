"""Workers: whoever looks after memory while nobody waits for it, in one process or in many, on a home or a database."""
