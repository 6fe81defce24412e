"""Comparing sessions: what successful tries of like requests did and failed ones did not, and the reverse. Pure.

A trait is something a session did or did not do. A trait counts among the sessions where it could show at all: "`a` came
before `b`" among those that did `b`. How far the two sides differ is judged by Fisher's exact test, one-sided: how often
chance alone would deal the trait so unevenly. At three sessions that is 1/3 at best, and less than that is no evidence."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from bank.steps import Done, Reading

MOST_CHANCE = 1 / 3  # of three sessions, one is unlike the other two
MOST_CHANCE_OF_DETAIL = 1 / 6  # two against two: there are far more details than steps, and some differ by chance
LEAST_GAP = 0.6  # between the shares of the two sides
MOST_ACTIONS = 40  # of a session, the first ones: what is compared grows with their square


class Kind(IntEnum):
    """In the order in which one of several that say the same thing is kept."""

    DID = 1  # (action)
    BEFORE = 2  # (earlier, later)
    MORE = 3  # (action), more than once, not always with the same parameters
    WITH = 4  # (action, parameter)
    VALUE = 5  # (action, parameter, how it is said)
    PART = 6  # (action, parameter, part of a query)
    MISHAP = 7  # (action, kind of error)
    NOTHING = 8  # no step at all


@dataclass(frozen=True, slots=True, order=True)
class Trait:
    kind: Kind
    names: tuple[str, ...] = ()

    @property
    def among(self) -> str | None:
        """The action without which it cannot show; None where it can in every session."""
        if self.kind in (Kind.DID, Kind.NOTHING):
            return None
        return self.names[1] if self.kind is Kind.BEFORE else self.names[0]


@dataclass(frozen=True, slots=True)
class Contrast:
    """Traits that the very same sessions have. `follow`: successes have them; otherwise failures do."""

    traits: tuple[Trait, ...]
    follow: bool
    successes: int  # with the traits,
    of_successes: int  # of so many
    failures: int
    of_failures: int
    chance: float
    sessions: tuple[Reading, ...]
    memories: tuple[str, ...]  # the steps that show the traits

    @property
    def strength(self) -> float:
        """In bits; a side with few sessions cannot say much, however many the other has."""
        return min(-math.log2(self.chance), 1 + min(self.of_successes, self.of_failures))

    def mirrors(self, other: "Contrast") -> bool:
        """Whether it says the same from the other side: the sessions that have the one lack the other."""
        return (
            self.sessions == other.sessions
            and self.follow != other.follow
            and self.successes + other.successes == self.of_successes
            and self.failures + other.failures == self.of_failures
        )


def traits_of(reading: Reading) -> dict[Trait, list[str]]:
    """The traits of a session, each with the memories of the steps that show it."""
    shown: dict[Trait, list[str]] = {}
    if not reading.steps:
        return {Trait(Kind.NOTHING): []}
    first: dict[str, Done] = {}
    calls: dict[str, list[Done]] = {}
    for step in reading.steps:
        if step.action not in first and len(first) == MOST_ACTIONS:
            continue
        first.setdefault(step.action, step)
        calls.setdefault(step.action, []).append(step)
    order = list(first.values())
    for place, earlier in enumerate(order):
        for later in order[place + 1 :]:
            shown[Trait(Kind.BEFORE, (earlier.action, later.action))] = [earlier.memory, later.memory]
    for action, steps in calls.items():
        shown[Trait(Kind.DID, (action,))] = [steps[0].memory]
        if len({_exact(step) for step in steps}) > 1:
            shown[Trait(Kind.MORE, (action,))] = [step.memory for step in steps[:5]]
        for step in steps:
            for name, given in step.given.items():
                traits = [Trait(Kind.WITH, (action, name))]
                if given.literal:
                    traits.append(Trait(Kind.VALUE, (action, name, given.said)))
                traits += [Trait(Kind.PART, (action, name, part)) for part in given.parts]
                for trait in traits:
                    shown.setdefault(trait, [step.memory])
            if step.mishap is not None and not step.mishap.empty:
                shown.setdefault(Trait(Kind.MISHAP, (action, step.mishap.kind)), [step.memory])
    return shown


def contrasts(new: Reading, others: Sequence[Reading]) -> list[Contrast]:
    """Those in which the new session is on the telling side, the least likely by chance first."""
    readings = [new, *others]
    if len({reading.work.succeeded for reading in readings}) < 2:
        return []
    shown = [traits_of(reading) for reading in readings]
    did = [{step.action for step in reading.steps} for reading in readings]
    everywhere = tuple(range(len(readings)))
    where = {action: tuple(place for place in everywhere if action in did[place]) for action in did[0]}
    # What cannot show in the new session tells nothing about it.
    possible = {trait for traits in shown for trait in traits if trait.among is None or trait.among in where}
    grouped: dict[tuple[bool, tuple[int, ...], tuple[int, ...]], list[Trait]] = {}
    for trait in sorted(possible):
        among = everywhere if trait.among is None else where[trait.among]
        having = tuple(place for place in among if trait in shown[place])
        follow = (0 in having) == new.work.succeeded
        grouped.setdefault((follow, among, having), []).append(trait)
    found = []
    for (follow, among, having), alike in grouped.items():
        good = [place for place in among if readings[place].work.succeeded]
        with_good = sum(place in having for place in good)
        with_bad = len(having) - with_good
        bad = len(among) - len(good)
        chance, gap = _uneven(with_good, len(good), with_bad, bad, follow)
        traits = _kept(alike)
        if traits[0].kind is Kind.NOTHING and follow:
            continue  # that doing nothing went well is no advice
        enough = MOST_CHANCE if traits[0].among is None else MOST_CHANCE_OF_DETAIL
        if chance <= enough + 1e-9 and gap >= LEAST_GAP and (traits[0].among is None or min(len(good), bad) > 1):
            found.append(
                Contrast(
                    traits=traits,
                    follow=follow,
                    successes=with_good,
                    of_successes=len(good),
                    failures=with_bad,
                    of_failures=bad,
                    chance=chance,
                    sessions=tuple(readings[place] for place in among),
                    memories=_memories(traits, (shown[place] for place in having)),
                )
            )
    found.sort(key=lambda contrast: (-contrast.strength, contrast.traits[0].kind, not contrast.follow, contrast.traits))
    return found


def _kept(traits: Sequence[Trait]) -> tuple[Trait, ...]:
    """Of traits that the same sessions have, those of the plainest kind."""
    plainest = traits[0].kind
    return tuple(trait for trait in traits if trait.kind is plainest)


def _uneven(good_with: int, good: int, bad_with: int, bad: int, follow: bool) -> tuple[float, float]:
    """Fisher's exact test, one-sided, and by how much the shares of the two sides differ."""
    if not good or not bad:
        return 1.0, 0.0
    gap = good_with / good - bad_with / bad
    if not follow:  # the same question with the sides changed
        good_with, good, bad_with, bad, gap = bad_with, bad, good_with, good, -gap
    having = good_with + bad_with
    ways = sum(
        math.comb(good, count) * math.comb(bad, having - count)
        for count in range(good_with, min(good, having) + 1)
        if having - count <= bad
    )
    return ways / math.comb(good + bad, having), gap


def _memories(traits: Iterable[Trait], shown: Iterable[Mapping[Trait, list[str]]]) -> tuple[str, ...]:
    """In each session's own order, each once."""
    wanted = set(traits)
    found: dict[str, None] = {}
    for session in shown:
        for trait, memories in session.items():
            if trait in wanted:
                found.update(dict.fromkeys(memories))
    return tuple(found)


def _exact(step: Done) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, given.exact) for name, given in step.given.items()))


def common_way(readings: Sequence[Reading], most: int = 12) -> list[str]:
    """The actions that all of them did, in an order that all of them kept, repetitions told once."""
    ways = [list(dict.fromkeys(step.action for step in reading.steps))[:MOST_ACTIONS] for reading in readings]
    if not ways:
        return []
    way = ways[0]
    for other in ways[1:]:
        way = _common(way, other)
    return way[:most]


def _common(one: list[str], two: list[str]) -> list[str]:
    """The longest common subsequence."""
    best = [[0] * (len(two) + 1) for _ in range(len(one) + 1)]
    for i in range(len(one) - 1, -1, -1):
        for j in range(len(two) - 1, -1, -1):
            best[i][j] = best[i + 1][j + 1] + 1 if one[i] == two[j] else max(best[i + 1][j], best[i][j + 1])
    way, i, j = [], 0, 0
    while i < len(one) and j < len(two):
        if one[i] == two[j]:
            way.append(one[i])
            i, j = i + 1, j + 1
        elif best[i + 1][j] >= best[i][j + 1]:
            i += 1
        else:
            j += 1
    return way
