"""The demonstration of `make run`: five promises, each kept before the eyes of whoever watches."""
