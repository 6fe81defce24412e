"""Scores into one order: pure arithmetic, no I/O."""

import math
from collections.abc import Hashable, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

import numpy as np
import numpy.typing as npt

K = TypeVar("K", bound=Hashable)

# The four factors of a lesson's score.
SEMANTIC, RELIABILITY, RECENCY, DIVERSITY = 0.4, 0.3, 0.2, 0.1
RECENCY_PER_DAY = 0.1


def min_max(scores: Mapping[K, float]) -> dict[K, float]:
    """Scores brought to 0..1 by their own smallest and largest; all 1 where they are equal."""
    if not scores:
        return {}
    low, high = min(scores.values()), max(scores.values())
    if high - low <= 0:
        return dict.fromkeys(scores, 1.0)
    return {key: (score - low) / (high - low) for key, score in scores.items()}


def combine(*lists: tuple[float, Mapping[K, float]]) -> dict[K, float]:
    """The convex combination of min-max-normalised lists; what a list has not found counts 0 there."""
    total: dict[K, float] = {}
    for weight, scores in lists:
        for key, score in min_max(scores).items():
            total[key] = total.get(key, 0.0) + weight * score
    return total


def recency(last: float, now: datetime) -> float:
    """`last`: in seconds since 1970."""
    days = max(0.0, (now.timestamp() - last) / 86_400)
    return math.exp(-RECENCY_PER_DAY * days)


def diversity(similarity: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """From cosines, 1 to 0. By their squares: two lessons of one subject are hardly held against each other, two that say
    the same are."""
    return 1 - np.clip(similarity, 0.0, 1.0) ** 2


def choose_diverse(
    base: Sequence[float], scope_weights: Sequence[float], vectors: npt.NDArray[np.float32], limit: int
) -> list[tuple[int, float]]:
    """Chooses `limit` items one at a time by base score plus diversity from what is chosen already. `base` is the sum of
    the other three factors. Returns (place, diversity) in the order chosen."""
    own, weights, diverse = np.array(base), np.array(scope_weights), np.ones(len(base))
    chosen: list[tuple[int, float]] = []
    for _ in range(min(limit, len(base))):
        best = int((weights * (own + DIVERSITY * diverse)).argmax())  # of equals the first
        chosen.append((best, float(diverse[best])))
        own[best] = -np.inf
        diverse = np.minimum(diverse, diversity(vectors @ vectors[best]))
    return chosen
