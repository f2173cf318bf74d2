"""Other search systems for comparison, installed separately, each in a separate process."""
