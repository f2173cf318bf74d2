"""Words and spans of languages, for every rule that reads text.

`spans` finds words, sentences, quotes and Chinese characters; `languages` says if a sentence is negated, hedged,
hypothetical, reported or a question; `prose` separates a person's own words from pasted text. The words of each
language are one file of tables (`english` with `english_dates`, `chinese`, `german`), a `Language` of `tables`.

A subject does not ask for the language of a text. It takes the union of a word list over all languages:

    from inmind.core.language.languages import any_word, is_negated

    if is_negated(sentence) or any_word("hedges", "reports").search(sentence.lower()): ...

To add a language, write its file of tables and add it to `LANGUAGES` in `languages`. A list that it leaves out is
empty, and the subject that reads it does not know that language. To add a kind of words, add a field to `Language`.
"""
