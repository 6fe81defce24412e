"""Uplift: success with a lesson and without it, and how sure that is."""

import pytest

from bank.model import UpliftBasis
from bank.uplift import Arm, arms_of, counted, together, uplift, wilson


@pytest.mark.parametrize(
    ("good", "calls", "low", "high"),
    [(0, 10, 0.0, 0.2775), (5, 10, 0.2366, 0.7634), (10, 10, 0.7225, 1.0), (81, 263, 0.2553, 0.3662)],
)
def test_wilson(good: int, calls: int, low: float, high: float) -> None:
    """Published values of the score interval."""
    assert wilson(good, calls) == pytest.approx((low, high), abs=1e-4)


def test_the_interval_of_the_difference() -> None:
    """56 of 70 beside 48 of 80: Newcombe's published example (0.2, from 0.0524 to 0.3339)."""
    found = uplift([56, 14, 48, 32, 0, 0])
    assert found is not None
    assert (found.difference, found.low, found.high) == pytest.approx((0.2, 0.0524, 0.3339), abs=1e-4)
    assert (found.calls_with, found.calls_without, found.basis) == (70, 80, UpliftBasis.NAMED)


@pytest.mark.parametrize("worked", [[], [4, 0, 9, 9, 0, 0], [9, 9, 4, 0, 0, 0], [9, 9, 0, 0, 4, 0]])
def test_too_little_to_say(worked: list[int]) -> None:
    """Fewer than five calls on either side are no evidence."""
    assert uplift(worked) is None


def test_chance_is_the_better_judge() -> None:
    """Where enough were withheld, all that were offered, named or not, are compared with those."""
    found = uplift([9, 1, 5, 5, 3, 7])
    assert found is not None and found.basis is UpliftBasis.WITHHELD
    assert (found.with_lesson, found.without_lesson, found.calls_with, found.calls_without) == (0.7, 0.3, 20, 10)


def test_each_call_counts_once() -> None:
    """In its arm, as a success or as a failure."""
    counts = counted(counted([], Arm.WITHHELD, True), Arm.NAMED, False)
    assert counts == [0, 1, 0, 0, 1, 0]


@pytest.mark.parametrize(
    ("offered", "withheld", "used", "arms"),
    [
        ([1, 2], [3], [1], {1: Arm.NAMED, 2: Arm.NOT_NAMED, 3: Arm.WITHHELD}),
        ([11, 12], [], [11], {11: Arm.NAMED, 12: Arm.NOT_NAMED, 10: Arm.NAMED, 9: Arm.NAMED}),
        ([11, 12], [], [], {11: Arm.NOT_NAMED, 12: Arm.NOT_NAMED, 10: Arm.NOT_NAMED, 9: Arm.NOT_NAMED}),
        ([11], [12], [], {11: Arm.NOT_NAMED, 12: Arm.WITHHELD, 10: Arm.NOT_NAMED, 9: Arm.NOT_NAMED}),
        ([11], [], [10], {11: Arm.NAMED, 10: Arm.NAMED, 9: Arm.NAMED}),  # told after the merge
        ([10], [], [11], {10: Arm.NAMED, 9: Arm.NAMED}),  # by its old name
    ],
)
def test_a_recall_counts_once_for_a_merged_lesson(
    offered: list[int], withheld: list[int], used: list[int], arms: dict[int, Arm]
) -> None:
    """11 and 12 became part of 10, and that of 9."""
    assert arms_of(offered, withheld, used, {11: [10, 9], 12: [10, 9], 10: [9]}) == arms


def test_the_counts_of_several_lessons_as_one() -> None:
    """What counts for both counts once, in the first of the ways."""
    assert together([(3, 1, 2, 0, 0, 0), (), (2, 0, 0, 0, 1, 0)], []) == [5, 1, 2, 0, 1, 0]
    shared = [([Arm.NAMED, Arm.NAMED], True), ([Arm.WITHHELD, Arm.NAMED], True)]
    assert together([(3, 1, 2, 0, 0, 0), (2, 0, 0, 0, 1, 0)], shared) == [4, 1, 2, 0, 0, 0]
    assert together([(), ()], []) == []
