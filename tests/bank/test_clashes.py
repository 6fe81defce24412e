"""Whether two lessons contradict each other: counted over pairs of which half are harmless."""

from collections.abc import Sequence

import pytest

from bank.clashes import Clash, clash_of
from bank.model import Gist, Outcome
from tests.bank.conflict_pairs import DEVELOPED, HELD_OUT, Pair


def lesson(text: str, context: str = "", outcome: Outcome = Outcome.SUCCESS) -> Gist:
    return Gist(1, 1, "ACTIVE", "default", "PROJECT", outcome, text, context, [], [])


def found(pair: Pair) -> Clash | None:
    one = lesson(pair.one, pair.one_context, pair.one_outcome)
    other = lesson(pair.other, pair.other_context, pair.other_outcome)
    clash = clash_of(one, other)
    assert (clash is None) == (clash_of(other, one) is None), "which lesson comes first makes no difference"
    return clash


@pytest.mark.parametrize(("name", "pairs", "floor"), [("developed", DEVELOPED, 0.95), ("held out", HELD_OUT, 0.9)])
def test_few_false_alarms_and_few_missed(name: str, pairs: Sequence[Pair], floor: float) -> None:
    """Of at least forty pairs, half of them harmless, hardly any alarm is false and hardly any contradiction is missed."""
    assert len(pairs) >= 40 and sum(pair.clash for pair in pairs) * 2 == len(pairs)
    alarms = [pair for pair in pairs if found(pair) is not None]
    right = sum(pair.clash for pair in alarms)
    precision, recall = right / len(alarms), right / sum(pair.clash for pair in pairs)
    print(f"{name}: {len(pairs)} pairs, precision {precision:.3f}, recall {recall:.3f}")
    for pair in pairs:
        if pair.clash != (pair in alarms):
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
    ],
)
def test_the_words_that_clash_are_named(one: str, other: str, words: tuple[str, str]) -> None:
    """A reader sees at once what it is about."""
    clash = clash_of(lesson(one), lesson(other))
    assert clash is not None and (clash.one, clash.other) == words


def test_strange_texts_are_no_reason_to_fail() -> None:
    """Whatever a lesson says: an answer, and the same one again."""
    texts = ["", " ", "not", "never never never", "1", "12:30:45", "1,000.5 %", "at least", "…", "if", "when, then", "before", "prefer over", "a" * 5_000, "never " * 2_000, "1.2.3.4", "٣ seconds"]  # fmt: skip
    for one in texts:
        for other in texts:
            assert clash_of(lesson(one), lesson(other)) == clash_of(lesson(one), lesson(other))
