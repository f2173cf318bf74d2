"""`inmind demo`: a demonstration in five acts that check their own claims."""
