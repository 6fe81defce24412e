"""Scores into one order: what each factor of a lesson is worth, by hand."""

import math
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from bank import fuse

NOW = datetime(2026, 1, 31, tzinfo=UTC)


def test_lists_are_brought_to_one_scale() -> None:
    """The best of a list counts 1, its last 0, what it has not found 0; equals count 1."""
    assert fuse.min_max({"a": 7.0, "b": 5.0, "c": 3.0}) == {"a": 1.0, "b": 0.5, "c": 0.0}
    assert fuse.min_max({"a": 2.0, "b": 2.0}) == {"a": 1.0, "b": 1.0} and fuse.min_max({}) == {}
    assert fuse.combine((0.5, {"a": 9.0, "b": 1.0}), (0.5, {"b": 4.0, "c": 2.0})) == {"a": 0.5, "b": 0.5, "c": 0.0}


@pytest.mark.parametrize(("days", "worth"), [(0, 1.0), (10, math.exp(-1)), (30, math.exp(-3)), (-5, 1.0)])
def test_recency_falls_by_a_tenth_a_day(days: int, worth: float) -> None:
    """exp(-0.1 * days); what was used in somebody else's future is as good as new."""
    assert fuse.recency((NOW - timedelta(days=days)).timestamp(), NOW) == pytest.approx(worth)


def test_what_says_the_same_is_chosen_later() -> None:
    """One at a time: the twin of what is chosen adds nothing, what is unlike it adds a tenth; the weight of a scope counts
    for all of a lesson's score."""
    vectors = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], np.float32)
    assert fuse.choose_diverse([0.50, 0.49, 0.42], [1.0, 1.0, 1.0], vectors, 3) == [(0, 1.0), (2, 1.0), (1, 0.0)]
    assert fuse.choose_diverse([0.50, 0.49, 0.35], [1.0, 1.0, 1.0], vectors, 3) == [(0, 1.0), (1, 0.0), (2, 1.0)]
    assert fuse.choose_diverse([0.50, 0.49, 0.42], [0.8, 1.0, 1.0], vectors, 1) == [(1, 1.0)]
