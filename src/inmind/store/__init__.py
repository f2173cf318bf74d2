"""Where memory outlives the process: the port, the SQLite store, the live files."""
