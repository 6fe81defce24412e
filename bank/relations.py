"""What two lessons have to do with each other, by their words, tags and sources, without a model. Pure."""

from functools import lru_cache

from bank.clashes import clash_of
from bank.likeness import exact_parts
from bank.model import Gist, LinkType, Outcome
from bank.wording import say_it_alike
from bank.words import as_written
from graph.model import Value

SAME_MEANING, SAME_CONTEXT = 0.88, 0.4  # of two that say the same
IN_CONTEXT = 0.75  # of a lesson's words, in another's context
RELATED_MEANING = 0.45  # beside two tags in common
LEAST_WORDS = 3


class Suggestion(Value):
    """A link that is proposed, and why."""

    source: int
    target: int
    type: str
    strength: float
    evidence: str


def say_the_same(one: Gist, other: Gist, similarity: float) -> bool:
    """In meaning and in words, in a like context, with the same outcome, and without a contradiction."""
    return (
        one.outcome == other.outcome
        and similarity >= SAME_MEANING
        and _overlap(one.context_to_prefer, other.context_to_prefer) >= SAME_CONTEXT
        and exact_parts(one.context_to_prefer) == exact_parts(other.context_to_prefer)
        and say_it_alike(one.key_lesson, other.key_lesson)
        and clash_of(one, other) is None
    )


def suggested(one: Gist, other: Gist, similarity: float) -> Suggestion | None:
    """The link that fits two lessons best, if any does. `one` has the smaller id: it is the older one."""
    clash = clash_of(one, other)
    if clash is not None:
        return Suggestion(
            source=one.rb_id,
            target=other.rb_id,
            type=LinkType.CONFLICTS,
            strength=0.9,
            evidence=f"About the same thing one says “{clash.one}”, the other “{clash.other}”.",
        )
    if say_the_same(one, other, similarity):
        return Suggestion(
            source=one.rb_id,
            target=other.rb_id,
            type=LinkType.ALTERNATIVE,
            strength=_strength(similarity),
            evidence=f"They say nearly the same ({similarity:.2f}) in a like context.",
        )
    for first, second in ((one, other), (other, one)):
        share = _part_of_context(second, first)
        if share >= IN_CONTEXT:
            return Suggestion(
                source=first.rb_id,
                target=second.rb_id,
                type=LinkType.REQUIRES,
                strength=_strength(share),
                evidence=f"What lesson {second.rb_id} says to do is part of when lesson {first.rb_id} applies.",
            )
    shared = [node for node in one.link_nodes if node in set(other.link_nodes)]
    if shared:
        named = ", ".join(shared[:5]) + (" and more" if len(shared) > 5 else "")
        strength = _strength(len(shared) / min(len(one.link_nodes), len(other.link_nodes)))
        if one.outcome != other.outcome:
            failure, success = (one, other) if one.outcome == Outcome.FAILURE else (other, one)
            return Suggestion(
                source=failure.rb_id,
                target=success.rb_id,
                type=LinkType.CAUSES,
                strength=strength,
                evidence=f"The failure and what works were both learnt from {named}.",
            )
        return Suggestion(
            source=one.rb_id,
            target=other.rb_id,
            type=LinkType.ENHANCES,
            strength=strength,
            evidence=f"Both were learnt from {named}.",
        )
    tags = [tag for tag in one.tags if tag in set(other.tags)]
    if len(tags) >= 2 and similarity >= RELATED_MEANING:
        return Suggestion(
            source=one.rb_id,
            target=other.rb_id,
            type=LinkType.ENHANCES,
            strength=_strength(similarity * len(tags) / max(len(one.tags), len(other.tags))),
            evidence=f"Both carry the tags {', '.join(tags[:5])} and are near in meaning ({similarity:.2f}).",
        )
    return None


@lru_cache(maxsize=8_192)
def _words(text: str) -> frozenset[str]:
    return frozenset(as_written(text))


def _overlap(one: str, other: str) -> float:
    """The share of their words that two texts have in common."""
    first, second = _words(one), _words(other)
    return len(first & second) / len(first | second) if first or second else 0.0


def _part_of_context(lesson: Gist, other: Gist) -> float:
    """How much of what a lesson says stands in the context of another, and not in its own."""
    words = _words(lesson.key_lesson)
    context = _words(other.context_to_prefer) - _words(lesson.context_to_prefer)
    return len(words & context) / len(words) if len(words) >= LEAST_WORDS else 0.0


def _strength(share: float) -> float:
    return round(min(1.0, max(0.0, share)), 2)
