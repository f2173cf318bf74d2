"""Search over crystals: everything that was said, noted or seen, indexed and ranked."""
