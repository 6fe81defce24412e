"""Texts as words: what is too long for a word is none, and is kept nowhere."""

from bank.words import LONGEST_WORD, as_written, plain_words, spellings, stem, words_of


def test_what_is_too_long_for_a_word_is_none() -> None:
    """A word of sixty thousand letters counts for nothing beside the others, whoever asks."""
    longest, longer = "X" + "k" * (LONGEST_WORD - 1), "Z" + "q" * 60_000
    text = f"Harbour {longer} {longest} news"
    stems = {"harbour", longest.lower(), "news"}
    before = stem.cache_info().currsize
    words = words_of(text)
    assert words.all == words.lead == stems
    assert {name for name, _ in words.names} == {"harbour", longest.lower()}
    assert set(as_written(text)) == set(spellings(text)) == stems
    assert plain_words(text) == ["harbour", longest.lower(), "news"]
    assert stem.cache_info().currsize - before <= len(stems)
