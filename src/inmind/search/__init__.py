"""Deep memory: everything that was ever said, noted or seen, and how the right line of it is found again."""
