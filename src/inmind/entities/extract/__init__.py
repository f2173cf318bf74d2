"""Which things are spoken of: in what tools do (`things`, out of `records`), and in what people say (`mentions`)."""
