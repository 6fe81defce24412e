"""Texts as words: what stands in them, what they name, and that what is too long for a word is none."""

from bank.words import (
    LONGEST_WORD,
    SENTENCES_CHARACTERS,
    as_written,
    plain_words,
    spellings,
    stem,
    stems_by_sentence,
    words_of,
)


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


def test_a_text_as_words_names_and_things() -> None:
    """Runs of words written large are things, initials and hyphens within them; a word that is large inside is no name;
    letters that are two in lower case are found whole and in parts."""
    words = words_of("J. K. Rowling met Jean-Luc in the eBay office; Rowling laughed. Élan İstanbul")
    assert words.names == (
        ("j", "j"), ("k", "k"), ("rowl", "rowling"), ("jean", "jean"), ("luc", "luc"), ("élan", "élan"), ("i̇stanbul", "i̇stanbul"),
    )  # fmt: skip
    assert words.things == tuple(map(frozenset, (["j", "k", "rowl"], ["jean", "luc"], ["rowl"], ["élan", "i̇stanbul"])))
    assert words.all == {
        "j",
        "k",
        "rowl",
        "met",
        "jean",
        "luc",
        "ebay",
        "offic",
        "laugh",
        "élan",
        "i̇stanbul",
        "stanbul",
    }
    assert words.lead == {"j"}
    assert set(spellings("İSTANBUL")) <= words.all | {"i"}


def test_sentences_of_a_text() -> None:
    """By full stops, question marks and line breaks, in other scripts too; no stop words, and nothing else is lost."""
    text = "Sales fell. Why?  A strike of 3.5 Days!\n\n- the port\r\n価格が上がった。船は遅れた。"
    assert stems_by_sentence(text) == (("sale", "fell"), ("strike", "3", "5", "day"), ("port",), ("価格が上がった",), ("船は遅れた",))  # fmt: skip
    assert stems_by_sentence("") == stems_by_sentence("...\n") == ()


def test_words_and_sentences_of_a_long_text() -> None:
    """All words of it, however long it is; sentences of its beginning only."""
    short = words_of("Sales fell. A strike closed the port.")
    assert short.sentences == (("sale", "fell"), ("strike", "close", "port")) and short.all == set().union(*short.sentences)  # fmt: skip
    long = words_of("Sales fell. " * (SENTENCES_CHARACTERS // 12 + 1) + "A strike closed the port.")
    assert long.all == short.all and not {"strike", "close", "port"} & set().union(*long.sentences)
