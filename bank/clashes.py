"""Whether two lessons about the same thing say the opposite: by their words alone, without a model. Pure.

Few false alarms come first. Two claims are about the same thing if neither has a word of its own beside the other's
(one may say more), under the same condition and in a like context. Then they clash if one is for it and the other
against it, if they name opposites, turn an order round, or give other numbers.
"""

from collections.abc import Sequence

from bank.claims import Claim, Number, claims_of, has_counterpart, opposite, same
from bank.model import Gist, Outcome
from graph.model import Value

LIKE_CONTEXTS = 0.45  # the share of words that two contexts have in common
NEARLY_ALL = 0.75  # two claims that share this much may each have a word of their own
LEAST_SHARED = 2


class Clash(Value):
    """The words with which two lessons contradict each other."""

    one: str
    other: str


def clash_of(one: Gist, other: Gist) -> Clash | None:
    if not _like(one.context_to_prefer, other.context_to_prefer):
        return None
    for first in _claims(one):
        for second in _claims(other):
            if (found := _clash(first, second)) is not None:
                return found
    return None


def _claims(lesson: Gist) -> Sequence[Claim]:
    """A FAILURE that is told without a word of advice is a pattern to avoid."""
    found = claims_of(lesson.key_lesson)
    if lesson.outcome != Outcome.FAILURE:
        return found
    avoided = [
        Claim(
            claim.words,
            True,
            (f"({Outcome.FAILURE.value})",),
            claim.condition,
            claim.condition_negative,
            claim.numbers,
            claim.order,
            claim.order_word,
        )
        for claim in found
        if not claim.marks
    ]
    return avoided + [claim for claim in found if claim.marks]


def _like(one: str, other: str) -> bool:
    """Whether two contexts may be the same one."""
    for first in claims_of(one):
        for second in claims_of(other):
            mine, others = {*first.words, *first.condition}, {*second.words, *second.condition}
            shared, _, _, turned = _matched(mine, others)
            if len(shared) >= LIKE_CONTEXTS * len(mine | others):
                against = first.negative ^ first.condition_negative ^ second.negative ^ second.condition_negative
                return not turned and not against
    return not claims_of(one) or not claims_of(other)


def _matched(one: set[str], other: set[str]) -> tuple[set[str], set[str], set[str], list[tuple[str, str]]]:
    """What two sets of words share, what is left on either side, and which words are opposites of each other."""
    shared = one & other
    left, right = one - shared, other - shared
    turned: list[tuple[str, str]] = []
    if not any(map(has_counterpart, left)) and not any(map(has_counterpart, right)):
        return shared, left, right, turned  # most pairs: the loops below take nearly all the time of a comparison
    for mine in sorted(left):
        for theirs in sorted(right):
            if opposite(mine, theirs) or same(mine, theirs):
                if opposite(mine, theirs):
                    turned.append((mine, theirs))
                left, right, shared = left - {mine}, right - {theirs}, shared | {mine}
                break
    return shared, left, right, turned


def _clash(one: Claim, other: Claim) -> Clash | None:
    shared, left, right, turned = _matched(set(one.words), set(other.words))
    most = max(len(one.words), len(other.words))
    whole = len(shared) + len(left) + len(right)
    if len(shared) < min(LEAST_SHARED, most) or len(shared) < 0.5 * most:
        return None
    if left and right and len(shared) < NEARLY_ALL * whole:
        return None
    if not _same_condition(one, other):
        return None
    crossed = _crossed(one, other)
    against = one.negative ^ other.negative ^ (len(turned) % 2 == 1) ^ crossed
    differing = _differing(one.numbers, other.numbers)
    if differing is not None:
        # "not 5" and "8" agree; two different numbers for the same thing do not.
        return None if against else Clash(one=differing[0].text, other=differing[1].text)
    if not against:
        return None
    if turned:
        return Clash(one=one.words[turned[0][0]], other=other.words[turned[0][1]])
    if crossed:
        return Clash(one=_first(one), other=_first(other))
    return Clash(one=_said(one, other), other=_said(other, one))


def _same_condition(one: Claim, other: Claim) -> bool:
    """Both unconditional, or under the same condition."""
    if not one.condition and not other.condition:
        return True
    shared, left, right, turned = _matched(set(one.condition), set(other.condition))
    if turned or not shared or one.condition_negative != other.condition_negative:
        return False
    return not (left and right) or len(shared) >= NEARLY_ALL * (len(shared) + len(left) + len(right))


def _crossed(one: Claim, other: Claim) -> bool:
    """Whether what comes first in one comes second in the other."""
    if one.order is None or other.order is None:
        return False
    (first, second), (their_first, their_second) = one.order, other.order
    straight = len(first & their_first) + len(second & their_second)
    turned = len(first & their_second) + len(second & their_first)
    return turned > straight


def _differing(one: Sequence[Number], other: Sequence[Number]) -> tuple[Number, Number] | None:
    """The first numbers for the same thing that do not agree."""
    if len(one) == len(other) == 1:
        return None if one[0].agrees(other[0]) else (one[0], other[0])
    for mine in one:
        named = [theirs for theirs in other if theirs.anchor == mine.anchor]
        if named and not any(mine.agrees(theirs) for theirs in named):
            return mine, named[0]
    return None


def _first(claim: Claim) -> str:
    """What a claim puts first, in the words of its order."""
    assert claim.order is not None
    first, second = claim.order
    own = [word for stem, word in claim.words.items() if stem in first - second]
    return claim.order_word if claim.order_word in ("before", "after") else " ".join(own)


def _said(claim: Claim, other: Claim) -> str:
    """The words that make a claim be for or against, those that the other does not have too, and what they are about."""
    own = [mark for mark in claim.marks if mark not in other.marks]
    word = next((claim.words[stem] for stem in claim.words if stem in other.words), "")
    return " ".join([*own, word])
