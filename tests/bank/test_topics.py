"""What two texts share, so that an edge may say it: pure functions, the same whichever text comes first."""

import pytest

from bank.topics import shared_terms, terms_of


def _shared(one: str, other: str) -> list[str]:
    mine, theirs = terms_of(one, []), terms_of(other, [])
    found = sorted(term.text for term in shared_terms(mine, theirs))
    assert found == sorted(term.text for term in shared_terms(theirs, mine))
    return found


@pytest.mark.parametrize(
    "other",
    [
        "There was rust on the gate.",
        "Rust was on the gate.",
        "It is old. Rust was on the gate.",
        "He said: Rust is on the gate.",
        "He said “Rust is on the gate”.",
        "It is old (Rust is on the gate).",
        "To do:\n1. Oil it.\n2. Rust is on the gate.",
        "That was plan B\nRust is on the gate.",
        "THE RUST IS ON THE GATE!",
        "the gate is full of rust",
    ],
)
def test_a_name_is_shared_only_where_both_write_it_as_one(other: str) -> None:
    """A small letter makes none, nor one that is large because a sentence begins or all of it is large."""
    assert _shared("The service is written in Rust.", other) == []
    assert _shared("The service is written in Rust.", other + " We like Rust.") == ["Rust"]


def test_a_name_is_shared_as_it_is_spelt() -> None:
    """Capitals tell names apart, and a word of the same stem is another; what is both is shared as both texts have it."""
    assert _shared("Money from the US.", "All of it, Tell Us More.") == []
    assert _shared("Good marks for Mark.", "They shop at the Marks store.") == []
    assert _shared("In Turkey they had turkey.", "We roasted a turkey.") == ["turkey"]
    assert _shared("In Turkey they had turkey.", "Is Turkey far?") == ["Turkey"]


def test_a_code_is_shared_in_small_letters_too() -> None:
    """One of the two must write it large: v2 of a menu is not v2 of an interface."""
    assert _shared("The EV9 is late.", "the ev9 came") == ["EV9"]
    assert _shared("we eat from v2", "we call v2") == []


@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        ("delivery", "deliveries", "delivery"),
        ("model", "models", "model"),
        ("movies", "movie", "movie"),
        ("boxer", "boxers", "boxer"),
        ("process", "processes", "process"),
        ("holiday", "holidays", "holiday"),
        ("gravel", "gravel", "gravel"),
    ],
)
def test_one_and_many_are_the_same_word(one: str, other: str, told: str) -> None:
    """The shorter form is told, but not one that is large because a sentence begins."""
    assert _shared(f"we saw the {one}", f"we saw two {other}") == [told]
    assert _shared(f"{one.title()} we saw", f"we saw two {other}") == [other]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("general", "generous"),
        ("experiment", "experience"),
        ("informative", "information"),
        ("market", "marketing"),
        ("university", "universe"),
        ("princes", "princess"),
        ("organ", "organization"),
        ("tests", "test"),
    ],
)
def test_a_stem_alone_is_not_shared(one: str, other: str) -> None:
    """Words that were made from one another mean different things; and what is too short says nothing, in any form."""
    assert _shared(f"we saw the {one}", f"we saw the {other}") == []


def test_a_word_in_two_forms_is_shared_once() -> None:
    """Otherwise one word would count for two, and join by itself."""
    assert _shared("a model among models", "models of a model") == ["model"]
    assert _shared("a generous general", "two generals") == ["general"]
