"""Systems that inmind is compared with: installed separately, each in its own process, with the same calls."""
