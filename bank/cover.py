"""The cover walk: pure arithmetic, no I/O. Memories answer a question together, each by the words the others lack.

Seeds are chosen to differ in what they cover of the question, a step along an edge counts more when it leads to words
that the seed lacks, and the answer is chosen in the same way. Every sum is an fsum and every tie is settled by id.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from bank.words import Idf, Words
from graph.walk import Way

QUESTION_WORDS = 128  # of a longer question the rarest
LEAD = 0.6  # what a memory gains whose first words are the question's
TAGS = 0.2  # what a memory gains that carries all the tags asked for
EDGE_TAGS = 0.5  # how much heavier an edge is that carries them all
LESSON = 0.3  # what a memory gains that the best lesson was learnt from
BEST = 40  # among how many seeds, and the answer, are chosen
SEEDS = 8
SEEDS_AGAIN = 3  # those that search once more
SEEN = 0.5  # how much of a seed's worth is lost when all it covers is covered
LEAST_WHOLE = 1.0  # a memory with weak edges only does not pass all of it on: alone, an edge carries its weight squared
PASSED_ON = 0.5  # the share of its energy that a memory passes on
FURTHER = 0.5  # a memory that was reached is half as strong as its energy says: at 1.0 far ones push near ones out
NEW_WORDS = 6.0  # how much more a step counts that leads to words the seed lacks
NAMES_DENSE, NAMES_LEAD, NAMES_JOINED, NAMES_BEST = 0.7, 0.3, 0.5, 20
SENTENCE = 0.4  # what a memory gains with a sentence that says most of the question; as much for one at its edges
SENTENCE_AGAIN = 0.8  # what a hit of a second search gains that such an edge joins to the seed
LOG_ENERGY = 0.7  # how much it counts in the answer where the energy ended up
# What a memory loses in the answer that the first search has not found, for each of the first four before it: a walk that
# went astray has the first places, not all of them.
NOT_FOUND_FIRST = 0.4
NEW_IN_ANSWER = 5.0
NAMED_IN_ANSWER, FIRST = 1.0, 5  # what a memory gains that the answer names; the first so many of it count
JOINED = 4.0  # the rarity (a sum of idf) of a thing that joins two texts as well as any
RAREST = 8  # words that stand for the names of a text without capital letters


class Question:
    """The words of a question, each with its share of the question's weight; sets of them are bit masks."""

    def __init__(self, words: Iterable[str], idf: Idf) -> None:
        rarest = sorted(set(words), key=lambda word: (-idf(word), word))[:QUESTION_WORDS]
        self.idf = idf
        self.words = tuple(rarest)
        self.asked = frozenset(rarest)
        self._bits = {word: 1 << place for place, word in enumerate(rarest)}
        whole = idf.mass(rarest)
        self._shares = [idf(word) / whole for word in rarest]
        self._known: dict[int, float] = {}
        self._leads: dict[frozenset[str], float] = {}
        self._rarities: dict[frozenset[str], float] = {}

    def covered(self, words: Iterable[str]) -> int:
        """Which of the question's words are among these."""
        return sum(map(self._bits.__getitem__, self.asked.intersection(words)))

    def shares(self, speaking: Mapping[str, Sequence[int]]) -> dict[int, float]:
        """Of some sentences, told by which of them have a word, the share of the question that each says, if any."""
        covered: dict[int, int] = {}
        for word, bit in self._bits.items():
            for place in speaking.get(word, ()):
                covered[place] = covered.get(place, 0) | bit
        return {place: self.share(mask) for place, mask in covered.items()}

    def share(self, mask: int) -> float:
        if mask not in self._known:
            self._known[mask] = math.fsum(share for place, share in enumerate(self._shares) if mask >> place & 1)
        return self._known[mask]

    def lead_match(self, lead: frozenset[str], among: frozenset[str]) -> float:
        """How much of a text's first words is among some words: the question's, or these and more."""
        if among.isdisjoint(lead):
            return 0.0
        if (whole := self._leads.get(lead)) is None:
            whole = self._leads[lead] = self.idf.mass(lead)
        return self.idf.mass(among & lead) / whole

    def joined(self, one: Words, other: Words) -> float:
        """How rare the rarest thing is, 0 to 1, that one text names and the other speaks of; the question's own words
        join nothing."""
        there = other.all
        most = max((self._rarity(thing) for thing in one.things if thing <= there), default=0.0)
        return min(1.0, most / JOINED)

    def _rarity(self, thing: frozenset[str]) -> float:
        if thing not in self._rarities:
            self._rarities[thing] = self.idf.mass(thing - self.asked)
        return self._rarities[thing]


@dataclass(frozen=True, slots=True)
class Source:
    """A memory that passes energy on: its strength (1 for the best seed), and what is covered on the way to it."""

    id: str
    strength: float
    covered: int


def best_first(scores: Mapping[str, float]) -> list[str]:
    """By their scores, of equals by their ids: two sorts, each by something at hand, are quicker than one by both."""
    return sorted(sorted(scores), key=scores.__getitem__, reverse=True)


def said_at(sentences: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """How much of the question the best edge at each memory says, 1 for the best of all. `sentences`: from a memory to
    its neighbours, the share of the question that the edge between them says."""
    best: dict[str, float] = {}
    for source, targets in sentences.items():
        for target, share in targets.items():
            for end in (source, target):
                best[end] = max(best.get(end, 0.0), share)
    return by_the_best(best)


def by_the_best(shares: Mapping[str, float]) -> dict[str, float]:
    """Shares by the largest of them; nothing where all are nothing."""
    most = max(shares.values(), default=0.0)
    return {id: share / most for id, share in shares.items()} if most > 0 else {}


def choose_seeds(direct: Mapping[str, float], covered: Mapping[str, int], question: Question) -> list[Source]:
    """Of the best, one at a time, those that cover what the others do not."""
    left = best_first({id: value for id, value in direct.items() if value > 0})[:BEST]
    chosen: list[tuple[str, float]] = []
    seen = 0

    def worth(id: str) -> float:
        own = question.share(covered[id])
        return direct[id] * (1 - SEEN * question.share(covered[id] & seen) / own if own > 0 else 1.0)

    while left and len(chosen) < SEEDS:
        best = max(left, key=worth)  # the first of equals: they are in the order of D, then of their ids
        chosen.append((best, worth(best)))
        left.remove(best)
        seen |= covered[best]
    most = max((value for _, value in chosen), default=1.0)
    return [Source(id, value / most, covered[id]) for id, value in chosen]


@dataclass
class Energy:
    """Where the energy ends up, kept as the single gains so that no sum depends on the order."""

    gains: dict[str, list[float]] = field(default_factory=dict)
    walked: dict[str, list[float]] = field(default_factory=dict)  # those of them that came along edges
    carried: dict[str, list[float]] = field(default_factory=dict)  # along edges, without what new words add

    def start(self, seeds: Sequence[Source]) -> None:
        for seed in seeds:
            self.gains.setdefault(seed.id, []).append(seed.strength**4)

    def walk(self, source: Source, ways: Sequence[Way], covered: Mapping[str, int], question: Question) -> None:
        """Half of what the source has goes along its edges, by the squares of their weights."""
        ways = [way for way in ways if way.target in covered]
        whole = max(LEAST_WHOLE, math.fsum(way.weight**2 for way in ways))
        passed_on = PASSED_ON * source.strength**4
        novelty: dict[int, float] = {}  # by what is covered: most neighbours have few of the question's words
        for way in ways:
            share = passed_on * way.weight**2 / whole
            if share <= 0:
                continue
            target, mask = way.target, covered[way.target]
            if mask not in novelty:
                novelty[mask] = _novelty(source, mask, question)
            gain = share * novelty[mask]
            self.gains.setdefault(target, []).append(gain)
            self.walked.setdefault(target, []).append(gain)
            self.carried.setdefault(target, []).append(share)

    def found_again(
        self, source: Source, scores: Mapping[str, float], covered: Mapping[str, int], question: Question
    ) -> dict[str, float]:
        """What a seed's second search found shares as much again. Returns what each of them gained."""
        best = best_first(scores)[:NAMES_BEST]
        whole = math.fsum(scores[id] ** 8 for id in best)
        if whole <= 0:
            return {}
        gained = {
            id: PASSED_ON * source.strength**2 * scores[id] ** 8 / whole * _novelty(source, covered[id], question)
            for id in best
        }
        for id, gain in gained.items():
            self.gains.setdefault(id, []).append(gain)
        return gained

    def of(self, id: str) -> float:
        return math.fsum(self.gains.get(id, ()))

    def along_edges(self, id: str) -> float:
        return math.fsum(self.walked.get(id, ()))

    def next_sources(
        self, before: Mapping[str, Source], ways: Sequence[Way], covered: Mapping[str, int]
    ) -> list[Source]:
        """The best memories that were reached and have not passed anything on yet."""
        reached = sorted(
            {way.target for way in ways if way.target in self.walked} - before.keys(),
            key=lambda id: (-self.along_edges(id), id),
        )[:SEEDS]
        on_the_way = dict.fromkeys(reached, 0)
        for way in ways:
            if way.target in on_the_way:
                on_the_way[way.target] |= before[way.source].covered
        return [
            Source(id, FURTHER * min(1.0, math.fsum(self.carried[id])) ** 0.25, covered[id] | on_the_way[id])
            for id in reached
        ]


def _novelty(source: Source, covered: int, question: Question) -> float:
    return math.exp(NEW_WORDS * source.strength**2 * question.share(covered & ~source.covered))


def names_for(words: Words, question: Question) -> dict[str, str]:
    """The names in a text; where it has no capital letters, its rarest words must do."""
    if words.names:
        return dict(words.names)
    rarest = sorted(words.all, key=lambda word: (-question.idf(word), word))[:RAREST]
    return {word: word for word in rarest}


def scores_again(
    by_words: Mapping[str, float],
    by_meaning: Mapping[str, float],
    words: Mapping[str, Words],
    seed: Words,
    names: frozenset[str],
    sentences: Mapping[str, float],
    question: Question,
) -> dict[str, float]:
    """How well the hits of a second search fit: by words, by meaning (0 to 1 each), by how they begin, and the best of
    them by what joins them to the seed: what both name, and the share of the question that an edge's sentence says."""
    most = max(by_words.values(), default=0.0)
    found = {id: score / most if most > 0 else 0.0 for id, score in by_words.items()}
    for id, closeness in by_meaning.items():
        found[id] = found.get(id, 0.0) + NAMES_DENSE * (0.25 + 0.75 * closeness)
    among = question.asked | names
    # Whom not even the best beginning would bring among the best need not be asked for it.
    least = sorted(found.values(), reverse=True)[:BEST][-1:]
    scores = {
        id: score + NAMES_LEAD * question.lead_match(words[id].lead, among)
        for id, score in found.items()
        if score + NAMES_LEAD >= least[0]
    }
    best = best_first(scores)[:BEST]
    return {
        id: scores[id]
        + NAMES_JOINED * (question.joined(seed, words[id]) + question.joined(words[id], seed))
        + SENTENCE_AGAIN * sentences.get(id, 0.0)
        for id in best
    }


def choose_answer(
    energy: Mapping[str, float],
    hybrid: Mapping[str, float],
    direct: Mapping[str, float],
    covered: Mapping[str, int],
    words: Mapping[str, Words],
    question: Question,
    limit: int,
) -> list[tuple[str, float]]:
    """At most so many, best first, with a score from 1 down to 0 that falls with the rank: of the best by energy those
    first that add most to the answer, whose first words the question or the answer so far names and, the further down the
    more, that the first search found; then the others by energy, then by what the first search said of them."""
    logs = {id: math.log(value) for id, value in energy.items() if value > 0}
    order = best_first(logs)
    left, seen = order[:BEST], 0
    own = {id: LOG_ENERGY * logs[id] for id in left}
    not_found = {id: NOT_FOUND_FIRST * (1 - hybrid.get(id, 0.0)) for id in left}
    named = dict.fromkeys(left, 0.0)  # what comes first comes for itself
    chosen: list[tuple[str, float]] = []
    value = math.inf
    while left and len(chosen) < limit:
        places = min(len(chosen), FIRST - 1)
        values = {
            id: own[id] + NEW_IN_ANSWER * question.share(covered[id] & ~seen) + named[id] - places * not_found[id]
            for id in left
        }
        best = max(left, key=values.__getitem__)
        value = min(value, values[best])  # what was named by the last one may be worth more than it
        chosen.append((best, value))
        left.remove(best)
        seen |= covered[best]
        if len(chosen) <= FIRST:
            names = question.asked.union(names_for(words[best], question))
            for id in left:
                named[id] = max(named[id], NAMED_IN_ANSWER * question.lead_match(words[id].lead, names))
    chosen += [(id, min(value, LOG_ENERGY * logs[id])) for id in order[BEST:]]
    top = chosen[0][1] if chosen else 0.0
    answer = [(id, 1 / (1 + max(0.0, top - value))) for id, value in chosen]
    rest = sorted(direct.keys() - logs.keys(), key=lambda id: (-direct[id], id))
    least, most = (answer[-1][1] if answer else 1.0), max(direct.values(), default=0.0)
    return (answer + [(id, least * direct[id] / (most + 1)) for id in rest])[:limit]
