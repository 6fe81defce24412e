"""Uplift: success with a lesson and without it, and how sure that is."""

import pytest

from bank.model import UpliftBasis
from bank.uplift import Arm, counted, uplift, wilson


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
