"""Words and sentences of English and Chinese, for every rule that reads text."""
