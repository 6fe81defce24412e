"""How much a lesson helps: how often work succeeded with it and without it, among comparable calls. Pure.

Comparable are the recalls for which the lesson was chosen (so that it fitted the question) and whose outcome was told.
Each counts in one of three ways: it was offered and the outcome names it, it was offered and the outcome does not name
it, or it was withheld by chance. Where enough were withheld, all that were offered are compared with those: chance alone
parted them. Otherwise those that name it are compared with those that do not: a hint, for agents choose what they use.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum

from bank.model import Uplift, UpliftBasis

LEAST = 5  # calls on each side before anything is said
Z = 1.96  # 95 %


class Arm(IntEnum):
    """What became of a lesson that was chosen for a recall. A lesson keeps two counts for each: work that succeeded,
    and work that failed."""

    NAMED = 0
    NOT_NAMED = 1
    WITHHELD = 2


def counted(worked: Sequence[int], arm: Arm, succeeded: bool) -> list[int]:
    """The counts with one call more."""
    counts = [*worked] or [0] * (2 * len(Arm))
    counts[2 * arm + (not succeeded)] += 1
    return counts


def arms_of(
    offered: Iterable[int], withheld: Iterable[int], used: Sequence[int], wholes: Mapping[int, Sequence[int]]
) -> dict[int, Arm]:
    """How a recall counts for each lesson that was chosen for it, and for what those became part of since. `wholes`: what
    a lesson became part of. A merged lesson counts once, in the first of the three ways that one of its parts does;
    whoever names a part names the whole, and the other way round."""
    named = {whole for rb_id in used for whole in (rb_id, *wholes.get(rb_id, ()))}
    arms: dict[int, Arm] = {}

    def count(rb_id: int, arm: Arm) -> None:
        for one in (rb_id, *wholes.get(rb_id, ())):
            arms[one] = min(arm, arms.get(one, arm))

    for rb_id in offered:
        is_named = rb_id in named or not set(used).isdisjoint(wholes.get(rb_id, ()))
        count(rb_id, Arm.NAMED if is_named else Arm.NOT_NAMED)
    for rb_id in withheld:
        count(rb_id, Arm.WITHHELD)
    return arms


def together(parts: Iterable[Sequence[int]], shared: Iterable[tuple[Sequence[int], bool]]) -> list[int]:
    """The counts of several lessons as those of one. `shared`: of each recall that counts for several of them in which
    ways, and whether it succeeded; it counts once, in the first of them."""
    counts = [sum(column) for column in zip(*(worked for worked in parts if worked), strict=True)]
    for arms, succeeded in shared:
        for arm in sorted(arms)[1:]:
            counts[2 * arm + (not succeeded)] -= 1
    return counts


def uplift(worked: Sequence[int]) -> Uplift | None:
    """None while there is too little to say. The interval is Newcombe's, of two Wilson intervals."""
    if not worked:
        return None
    named, other, withheld = ((worked[2 * arm], worked[2 * arm] + worked[2 * arm + 1]) for arm in Arm)
    offered = (named[0] + other[0], named[1] + other[1])
    by_chance = withheld[1] >= LEAST
    (good, calls), (good_without, calls_without) = (offered, withheld) if by_chance else (named, other)
    if min(calls, calls_without) < LEAST:
        return None
    rate, without = good / calls, good_without / calls_without
    low, high = wilson(good, calls)
    low_without, high_without = wilson(good_without, calls_without)
    return Uplift(
        with_lesson=rate,
        without_lesson=without,
        difference=rate - without,
        low=rate - without - math.hypot(rate - low, high_without - without),
        high=rate - without + math.hypot(high - rate, without - low_without),
        calls_with=calls,
        calls_without=calls_without,
        basis=UpliftBasis.WITHHELD if by_chance else UpliftBasis.NAMED,
    )


def wilson(good: int, calls: int) -> tuple[float, float]:
    """Where the true rate lies, with 95 % certainty."""
    rate = good / calls
    middle = rate + Z**2 / (2 * calls)
    spread = Z * math.sqrt(rate * (1 - rate) / calls + Z**2 / (4 * calls**2))
    whole = 1 + Z**2 / calls
    return (middle - spread) / whole, (middle + spread) / whole
