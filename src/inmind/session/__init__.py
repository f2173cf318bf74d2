"""`Session`, and everything that one commit of it does."""
