"""What inmind is measured beside: installed apart from it, each in its own process, all asked in the same words."""
