"""What recall has found, told: each memory with the best path to it and a sentence that says why it is there."""

import asyncio
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rank_bm25 import BM25Plus

from bank import context
from bank.cover import Energy, Question, Source
from bank.hits import Stamp
from bank.model import FoundMemory, RecallQuery, ToldPath
from bank.paths import told
from bank.search import found_by
from bank.words import Idf, Words, as_written, names_in, spellings, stems_in_place
from graph.model import Memory, Path
from graph.store import Memories
from graph.tasks import ahead, under_way
from graph.walk import Way, best_routes

ROUTES = 3  # ways to a memory among which their sentences choose
MANY_WAYS = 2_000  # edges among which they are found in a thread, so that others are answered meanwhile
NAMED_CHARACTERS = 4_000  # of a text, in which a single word must be written as a name to be told as one
LEAD_CHARACTERS = 1_000  # of a text, in which the words of its lead are looked up as they are written


class Again(NamedTuple):
    """A hit of a seed's second search: what it gained, and its similarity by meaning and by words."""

    seed: str
    gain: float
    by_meaning: float | None
    by_words: float | None


@dataclass
class Walk:
    """Where a walk along the edges led."""

    direct: dict[str, float]  # what speaks for a memory by itself, lessons and the sentences at its edges included
    seeds: list[Source] = field(default_factory=list)
    energy: Energy = field(default_factory=Energy)
    ways: list[Way] = field(default_factory=list)
    weights: dict[str, float] = field(default_factory=dict)  # of their edges, as they were read
    sentences: dict[str, str] = field(default_factory=dict)  # the beginnings of these
    # Memories that only an edge says to be there, in the revision that it names.
    brought: set[str] = field(default_factory=set)


@dataclass
class Found:
    """What one recall has found so far, memory by memory."""

    trusting: bool = False  # that rows of the index are true, until they matter
    nameless: bool = False  # reasons name no lesson: one of them may be withheld
    words: dict[str, Words] = field(default_factory=dict)  # of all that is true and passes the filter
    stamps: dict[str, Stamp] = field(default_factory=dict)  # as what it was true and passed
    changed: set[int] = field(default_factory=set)  # revisions of what has changed since it was indexed
    shared: dict[str, float] = field(default_factory=dict)  # the share of the question's tags that it carries
    rarity: Idf = field(default_factory=Idf)  # of the words of what the first search found
    by_meaning: dict[str, float] = field(default_factory=dict)
    by_words: dict[str, float] = field(default_factory=dict)
    hybrid: dict[str, float] = field(default_factory=dict)  # both together, 0 to 1
    best: list[str] = field(default_factory=list)  # the first few by that
    covered: dict[str, int] = field(default_factory=dict)  # the words of the question that it has
    direct: dict[str, float] = field(default_factory=dict)  # what speaks for it by itself, as far as the search knows
    taught: dict[str, int] = field(default_factory=dict)  # the lesson that was learnt from it
    again: dict[str, list[Again]] = field(default_factory=dict)  # what each seed's second search gave it
    walk: Walk = field(default_factory=lambda: Walk({}))

    def cover(self, ids: Iterable[str], question: Question) -> None:
        """What memories cover of the question, of those whose words are known."""
        for id in ids:
            if id not in self.covered and (words := self.words.get(id)) is not None:
                self.covered[id] = question.covered(words.all)

    def forget(self, ids: Iterable[str]) -> None:
        """These memories may be others than was thought."""
        for id in ids:
            known: MutableMapping[str, Any]
            for known in (self.words, self.stamps, self.shared, self.covered):
                known.pop(id, None)


async def tell(
    stored: Memories, asked: RecallQuery, spelt: Mapping[str, str], answer: Sequence[tuple[str, float]], seen: Found
) -> tuple[list[FoundMemory], list[ToldPath]]:
    """The memories of an answer, and the best of the paths that led to them; without these, and without a reason, where
    nobody asks for either."""
    searched = seen.by_meaning.keys() | seen.by_words.keys()
    starts = {seed.id: seed.strength for seed in seen.walk.seeds if seed.id in searched}
    by_lessons = {seed.id: seed.strength for seed in seen.walk.seeds if seed.id not in searched}
    ids = [id for id, _ in answer]

    def find() -> dict[str, list[Path]]:
        routes = best_routes(starts, seen.walk.ways, set(ids), asked.hops, ROUTES)
        # From a seed that only a lesson brought, where nothing that the search found leads there.
        if by_lessons and (rest := set(ids) - routes.keys() - starts.keys()):
            routes |= best_routes(by_lessons, seen.walk.ways, rest, asked.hops, ROUTES)
        return routes

    routes: dict[str, list[Path]] = {}
    asked_again: set[str] = set()
    if asked.explained:
        routes = find() if len(seen.walk.ways) <= MANY_WAYS else await asyncio.to_thread(find)
        asked_again = {one.seed for id in ids for one in seen.again.get(id, ())}
    steps = [step for id in ids for path in routes.get(id, ()) for step in path.steps]
    walked = sorted({step.edge for step in steps if step.edge is not None})
    reading = ahead(stored.by_ids([*ids, *(step.memory for step in steps), *asked_again], walked))
    await under_way()
    fits = _sentence_fits(spelt, {edge: seen.walk.sentences[edge] for edge in walked})
    best_of = {id: sorted((_fitted(path, fits) for path in own), key=_best_path_first) for id, own in routes.items()}
    memories, edges = await reading
    # What was deleted or changed since it was looked at is not told: its new text was neither found nor filtered.
    seen.changed |= {memory.revision for id, memory in memories.items() if memory.revision != seen.stamps[id][0]}
    memories = {id: memory for id, memory in memories.items() if memory.revision == seen.stamps[id][0]}
    edges = {id: edge for id, edge in edges.items() if edge.weight == seen.walk.weights[id]}
    question = frozenset(spelt)
    found = []
    for id, score in answer:
        if id not in memories:
            continue
        via = next((one for path in best_of.get(id, ()) if (one := told(path, memories, edges)) is not None), None)
        why = _why(id, via, question, memories, seen) if asked.explained else ""
        if asked.explained and not why:
            continue  # all that led to it are edges which are gone by now
        energy = seen.walk.energy.along_edges(id)
        found.append(
            FoundMemory(
                memory=memories[id],
                score=score,
                vector_score=seen.by_meaning.get(id),
                bm25_score=seen.by_words.get(id),
                path_score=energy if energy > 0 else None,
                via=via,
                why=why,
            )
        )
    paths = sorted((one.via for one in found if one.via is not None), key=lambda path: (-path.score, path.text))
    return found, paths[: asked.path_limit]


def _sentence_fits(spelt: Mapping[str, str], sentences: Mapping[str, str]) -> dict[str, float]:
    """How well each edge's sentence fits the question, 0 to 1, by BM25 among these sentences."""
    # The last text is empty: BM25+ gives something even to a text without any of the words, and this is how much.
    texts = [[*spellings(sentence)] for sentence in sentences.values()] + [[]]
    if not spelt or not any(texts):
        return dict.fromkeys(sentences, 0.0)
    *scores, nothing = BM25Plus(texts).get_scores(list(spelt))
    most = max(scores) - nothing
    return {id: float((one - nothing) / most) if most > 0 else 0.0 for id, one in zip(sentences, scores, strict=True)}


def _fitted(path: Path, fits: Mapping[str, float]) -> Path:
    """A path's score is its energy, up to half of it for sentences that fit the question."""
    own = [fits.get(step.edge, 0.0) for step in path.steps if step.edge is not None]
    return path._replace(score=path.score * (0.5 + 0.5 * sum(own) / len(own)))


def _best_path_first(path: Path) -> float:
    return -path.score


def _why(id: str, via: ToldPath | None, asked: frozenset[str], memories: Mapping[str, Memory], seen: Found) -> str:
    """Why a memory is in the answer: every way that led to it."""
    reasons = [found_by(seen.by_meaning.get(id), seen.by_words.get(id))]
    if via is not None:
        last, edge = context.name(via.steps[-2].memory.id), via.steps[-1].edge
        assert edge is not None
        if reasons[0] and any(seed.id == id for seed in seen.walk.seeds):
            # Found, and the walk only shows what joins it.
            reasons = [f"{reasons[0][:-1]}, and joined to {last} because {context.sentence(edge.text)}"]
        else:
            reasons.append(f"Reached from {last} because {context.sentence(edge.text)}")
    if again := seen.again.get(id):
        best = max(sorted(again), key=lambda one: one.gain)
        reasons.append(_found_again(id, best, asked, memories, seen))
    if id in seen.taught:
        reasons.append(f"{'A lesson' if seen.nameless else f'Lesson {seen.taught[id]}'} was learnt from it.")
    return " ".join(reason for reason in reasons if reason)


def _found_again(id: str, hit: Again, asked: frozenset[str], memories: Mapping[str, Memory], seen: Found) -> str:
    """What a seed's second search found: by what one of the two names and the other begins with, or without that."""
    seed = context.name(hit.seed)
    own, seeds = seen.words[id], seen.words[hit.seed]
    if hit.seed in memories:
        text, seeds_text = memories[id].text, memories[hit.seed].text
        if thing := _named(seeds, own, seeds_text, text, asked):
            return f"Named in {seed} ({context.quoted(thing)})."
        if thing := _named(own, seeds, text, seeds_text, asked):
            return f"It names what {seed} begins with ({context.quoted(thing)})."
    if id in seen.by_meaning or id in seen.by_words:
        return f"Found again by a search from {seed}."
    how = found_by(hit.by_meaning, hit.by_words).removeprefix("Found ")
    return f"Found by a second search from {seed}, {how}"


def _named(one: Words, other: Words, text: str, others_text: str, asked: frozenset[str]) -> str | None:
    """The longest thing that one text names and the other begins with, as it is written there. A thing made of the
    question's words alone is none, nor is a single word that is written large only where a sentence begins."""
    things = [thing for thing in one.things if thing <= other.lead and not thing <= asked]
    if not things:
        return None
    if all(len(thing) == 1 for thing in things):
        names = names_in(text[:NAMED_CHARACTERS]) | names_in(others_text[:NAMED_CHARACTERS])
        things = [thing for thing in things if thing <= names]
    words = stems_in_place(others_text[:LEAD_CHARACTERS])
    things = [thing for thing in things if _stands_together(thing, words)]
    if not things:
        return None
    longest = max(things, key=lambda thing: (len(thing), sorted(thing)))
    written = as_written(others_text[:LEAD_CHARACTERS])
    return " ".join(word for stem, word in written.items() if stem in longest) or None


def _stands_together(thing: frozenset[str], words: Sequence[str | None]) -> bool:
    """Whether the words of a name follow each other in a text: "Red Cross" is not named by "Cross at a red light"."""
    length = len(thing)
    return any(thing.issubset(words[place : place + length]) for place in range(len(words) - length + 1))
