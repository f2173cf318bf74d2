"""How things have been going, in three levels that rise with what happens and fall back by themselves."""
