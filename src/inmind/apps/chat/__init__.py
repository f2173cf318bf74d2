"""`inmind chat`: an agent with working memory in the terminal."""
