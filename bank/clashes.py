"""Whether two lessons about the same thing say the opposite: by their words alone, without a model. Pure.

Few false alarms come first. Two claims are about the same thing if neither has a word of its own beside the other's
(one may say more), under the same condition and in a like context. Then they clash if one is for it and the other
against it, if they name opposites, turn an order round, or give other numbers. A context that says more than the other
may have numbers of its own.
"""

from collections.abc import Sequence
from dataclasses import replace

from bank.claims import CONTRASTS, Claim, Number, claims_of, has_counterpart, opposite, same
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
    like = _like(one.context_to_prefer, other.context_to_prefer)
    if like is None:
        return None
    for first in _claims(one):
        for second in _claims(other):
            if (found := _clash(first, second, numbers=like)) is not None:
                return found
    return None


def _claims(lesson: Gist) -> Sequence[Claim]:
    """A FAILURE that is told without a word of advice is a pattern to avoid."""
    found = claims_of(lesson.key_lesson)
    if lesson.outcome != Outcome.FAILURE:
        return found
    mark = f"({Outcome.FAILURE.value})"
    avoided = [replace(claim, negative=True, marks=(mark,)) for claim in found if not claim.marks]
    return avoided + [claim for claim in found if claim.marks]


def _like(one: str, other: str) -> bool | None:
    """Whether two contexts may be the same one; False where one says more than the other, None where they may not."""
    narrower = None
    for first in claims_of(one):
        for second in claims_of(other):
            mine, others = {*first.words, *first.condition}, {*second.words, *second.condition}
            shared, left, right, turned = _matched(mine, others)
            against = first.negative ^ first.condition_negative ^ second.negative ^ second.condition_negative
            if len(shared) >= LIKE_CONTEXTS * len(mine | others):
                return None if turned or against else True
            if len(shared) >= LEAST_SHARED and not (left and right) and not turned and not against:
                narrower = False
    return narrower if claims_of(one) and claims_of(other) else True


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


def _clash(one: Claim, other: Claim, numbers: bool) -> Clash | None:
    """`numbers`: whether two numbers for the same thing are a clash."""
    if (one.order_word in CONTRASTS) != (other.order_word in CONTRASTS):
        one, other = _side(one, other), _side(other, one)
    shared, left, right, turned = _matched(set(one.words), set(other.words))
    most = max(len(one.words), len(other.words))
    whole = len(shared) + len(left) + len(right)
    if not shared or len(shared) < min(LEAST_SHARED, most) or len(shared) < 0.5 * most:
        return None
    if left and right and (len(shared) < NEARLY_ALL * whole or _labels(left) != _labels(right)):
        return None
    if not _same_condition(one, other) or (turned and all(a in one.which and b in other.which for a, b in turned)):
        return None
    crossed = _crossed(one, other)
    against = one.negative ^ other.negative ^ (len(turned) % 2 == 1) ^ crossed
    bounds = [{number.bound for number in claim.numbers} for claim in (one, other)]
    if against and bounds[0] != bounds[1] and {"<", ">"} <= bounds[0] | bounds[1]:
        return None  # up to a number one thing holds, and beyond it another
    differing = _differing(one.numbers, other.numbers)
    if differing is not None:
        # "not 5" and "8" agree, and so do few for small ones and many for large ones; "raise to 8" and "lower to 5" do not.
        begins = [(next(iter(one.words)), next(iter(other.words)))]
        agree = against and not (turned == begins and one.negative == other.negative)
        return None if agree or not numbers else Clash(one=differing[0].text, other=differing[1].text)
    if not against:
        return None
    if turned:
        return Clash(one=one.words[turned[0][0]], other=other.words[turned[0][1]])
    if crossed:
        return Clash(one=_first(one, other), other=_first(other, one))
    refused, wanted = (one, other) if one.negative else (other, one)
    if refused.whole and not wanted.whole:
        return None  # not all is not none
    about = next((stem for stem in refused.words if stem in wanted.words), "")
    return Clash(one=_said(one, other, about), other=_said(other, one, about))


def _side(claim: Claim, other: Claim) -> Claim:
    """Of "names rather than prices", what the other speaks of: for the names, or against the prices."""
    if claim.order is None or claim.order_word not in CONTRASTS:
        return claim
    first, second = claim.order
    rejects = bool((second - first) & other.words.keys())
    unsaid = first - other.words.keys() if rejects else second - first
    named_first = sorted(claim.words, key=lambda stem: stem not in second - first)
    return replace(
        claim,
        words={stem: claim.words[stem] for stem in named_first if stem not in unsaid},
        negative=claim.negative ^ rejects,
        marks=(*claim.marks, claim.order_word) if rejects else claim.marks,
        order=None,
        order_word="",
    )


def _labels(words: set[str]) -> set[str]:
    """The numbers that say which: of a tier, a version, a year."""
    return {word for word in words if any(map(str.isdigit, word))}


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
    if one.order is None or other.order is None or (one.order_word in CONTRASTS) != (other.order_word in CONTRASTS):
        return False
    first, second = one.order[0] - one.order[1], one.order[1] - one.order[0]
    their_first, their_second = other.order[0] - other.order[1], other.order[1] - other.order[0]
    there, back = first & their_second, second & their_first
    return bool(there and back) and len(there) + len(back) > len(second & their_second)


def _differing(one: Sequence[Number], other: Sequence[Number]) -> tuple[Number, Number] | None:
    """The first numbers for the same thing that do not agree."""
    if len(one) == len(other) == 1:
        return None if one[0].agrees(other[0]) else (one[0], other[0])
    for mine in one:
        named = [theirs for theirs in other if theirs.anchor == mine.anchor]
        if named and not any(mine.agrees(theirs) for theirs in named):
            return mine, named[0]
    return None


def _first(claim: Claim, other: Claim) -> str:
    """What a claim puts first and the other does not, in the words of its order."""
    assert claim.order is not None and other.order is not None
    first, second = claim.order
    own = [word for stem, word in claim.words.items() if stem in first - second - other.order[0]]
    return claim.order_word if claim.order_word in ("before", "after") else " ".join(own)


def _said(claim: Claim, other: Claim, about: str) -> str:
    """The words that make a claim be for or against, those that the other does not have too, and what they are about."""
    own = [mark for mark in claim.marks if mark not in other.marks]
    return " ".join([*own, claim.words.get(about, "")])
