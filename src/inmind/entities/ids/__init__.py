"""What an id looks like: by the key it stands under, by its shape, and in running text."""
