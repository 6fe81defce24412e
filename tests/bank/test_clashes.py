"""Whether two lessons contradict each other: counted over pairs of which half are harmless."""

from collections.abc import Sequence

import pytest

from bank.clashes import clash_of
from tests.bank.conflict_pairs import DEVELOPED, HELD_OUT, Pair, judged, lesson


@pytest.mark.parametrize(("name", "pairs", "floor"), [("developed", DEVELOPED, 0.95), ("held out", HELD_OUT, 0.9)])
def test_few_false_alarms_and_few_missed(name: str, pairs: Sequence[Pair], floor: float) -> None:
    """Of at least forty pairs, half of them harmless, hardly any alarm is false and hardly any contradiction is missed."""
    assert len(pairs) >= 40 and sum(pair.clash for pair in pairs) * 2 == len(pairs)
    precision, recall, wrong = judged(pairs)
    print(f"{name}: {len(pairs)} pairs, precision {precision:.3f}, recall {recall:.3f}")
    for pair in wrong:
        print("  wrong:", pair.one, "|", pair.other)
    assert precision >= 0.95
    assert recall >= floor


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        ("Always lock the row.", "Never lock the row.", ("always lock", "never lock")),
        ("Set the timeout to 30 seconds.", "Set the timeout to 2 minutes.", ("30 seconds", "2 minutes")),
        ("Enable the query cache.", "Disable the query cache.", ("enable", "disable")),
        ("Clean the data before the join.", "Clean the data after the join.", ("before", "after")),
        ("Use net prices rather than gross prices.", "Use gross prices rather than net prices.", ("net", "gross")),
        ("Read from the replica, not the primary.", "Read from the primary, not the replica.", ("replica", "primary")),
        ("Check totals first, then send.", "Send first, then check totals.", ("check totals", "send")),
        ("Answer in English, not in German.", "Answer in German.", ("rather than german", "german")),
        ("Raise the limit to 60 seconds.", "Lower the limit to 5 seconds.", ("60 seconds", "5 seconds")),
    ],
)
def test_the_words_that_clash_are_named(one: str, other: str, words: tuple[str, str]) -> None:
    """A reader sees at once what it is about."""
    clash = clash_of(lesson(one), lesson(other))
    assert clash is not None and (clash.one, clash.other) == words


def test_a_wider_context_hides_no_contradiction_and_may_have_its_own_numbers() -> None:
    """What holds whenever a file is loaded holds at night too; but a timeout may be another one then."""
    wide, narrow, other = "Loading files", "Loading a big file at night into the warehouse", "Closing the month"
    always, never = "Always validate the schema.", "Never validate the schema."
    assert clash_of(lesson(always, wide), lesson(never, narrow)) is not None
    assert clash_of(lesson(always, wide), lesson(never, other)) is None
    short, long = "Set the timeout to 30 seconds.", "Set the timeout to 90 seconds."
    assert clash_of(lesson(short, wide), lesson(long, narrow)) is None
    assert clash_of(lesson(short, wide), lesson(long, wide)) is not None


def test_strange_texts_are_no_reason_to_fail() -> None:
    """Whatever a lesson says: an answer, and the same one again."""
    texts = ["", " ", "not", "never never never", "1", "12:30:45", "1,000.5 %", "at least", "…", "if", "when, then", "before", "prefer over", "rather than 5", "names, not prices", "not names", "prices", "a" * 5_000, "never " * 2_000, "1.2.3.4", "٣ seconds"]  # fmt: skip
    for one in texts:
        for other in texts:
            assert clash_of(lesson(one), lesson(other)) == clash_of(lesson(one), lesson(other))
