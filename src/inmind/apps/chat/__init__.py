"""`inmind chat`: an agent in the terminal, with working memory, on whichever endpoint there is."""
