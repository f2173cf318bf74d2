"""Recognises ids: by their key, by their shape, in arguments and in text."""
