"""THE JOIN: one question in; the memories that answer it together, the paths that join them and the lessons that apply.

The index finds candidates, the graph confirms them. The best of them, chosen to differ, seed a walk along the edges
and search once more with what they name; `bank/cover.py` says how much each memory gains by it. A lesson that was
found seeds the memories it was learnt from; a memory that was found brings the lessons that it points at.
"""

import asyncio
import random
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import NamedTuple

from bank import context, cover, fuse
from bank.answer import Again, Found, Walk, tell
from bank.asking import Asking
from bank.cover import Question, Source
from bank.edges import Edges, EdgesOf, MetUntrue, known_edges
from bank.looking import Looking, revisions_of
from bank.model import FoundLesson, FoundMemory, LessonQuery, RecallQuery, Standing, ToldPath
from bank.offers import Offers
from bank.search import CANDIDATES, Search, offered, rank_lessons
from bank.sync import Sync
from bank.vectors import Hit
from bank.words import LONGEST_WORD, Words, spellings
from graph.ids import mint, readable
from graph.session import Graph
from graph.store import Memories
from graph.tasks import ahead, under_way
from graph.walk import Way

TEACHING = 3  # lessons that seed the memories they were learnt from
TAUGHT = 0.05  # the energy of a memory that the best lesson was learnt from
LED_TO = 0.5  # how much of a memory's score makes the lesson fit that it points at
REPEATED, REPEATED_KNOWN, REPEATED_NAME = 10, 3, 6  # a word n times in a BM25 query counts n times
NAMES = 64  # of a seed that names more, its first names
LessonHits = tuple[dict[int, Standing], dict[int, float]]  # as `Search.lesson_hits` returns them
Said = dict[str, dict[str, float]]  # from a memory to its neighbours, the share of the question that the edges say


class Told(NamedTuple):
    """The memories of an answer, the paths to them, and, on their way, the lessons that they point at."""

    memories: Sequence[FoundMemory] = ()
    paths: Sequence[ToldPath] = ()
    pointed: asyncio.Task[dict[int, Standing]] | None = None


class Scored(NamedTuple):
    """What a seed's second search found: how well it fits, and its similarity by meaning and by words."""

    scores: dict[str, float]
    by_meaning: dict[str, float]
    by_words: dict[str, float]


@dataclass(frozen=True)
class Recalled:
    """The answer of recall: each list best first. The context is written when it is asked for."""

    id: str
    query: str
    memories: tuple[FoundMemory, ...]
    paths: tuple[ToldPath, ...]
    lessons: tuple[FoundLesson, ...]
    withheld: tuple[int, ...]
    token_budget: int
    degraded: str | None
    took_ms: float

    @property
    async def context(self) -> str:
        return (await self._written)[0]

    @property
    async def tokens(self) -> int:
        return (await self._written)[1]

    @cached_property
    def _written(self) -> asyncio.Task[tuple[str, int]]:
        """In a thread: reading long texts and counting their tokens takes its time. Once, whichever is asked first."""

        def write() -> tuple[str, int]:
            return context.build(self.memories, context.applying(self.lessons, self.query), self.token_budget)

        return asyncio.create_task(asyncio.to_thread(write), name="context")


class Recall:
    def __init__(self, graph: Graph, sync: Sync, search: Search, offers: Offers) -> None:
        self._graph = graph
        self._search = search
        self._offers = offers
        self._memories = Memories(graph)
        self._looking = Looking(graph, sync)
        self._edges = known_edges()

    async def recall(self, asked: RecallQuery) -> Recalled:
        """The answer, with a receipt of what it offered."""
        answer = await self.answered(asked)
        self._offers.recalled(answer.id, asked.namespace, answer.lessons, answer.withheld)
        return answer

    async def answered(self, asked: RecallQuery) -> Recalled:
        """The answer, of which nothing is kept."""
        started = time.perf_counter()
        asking = self._search.asking(asked.query)
        try:
            found = await self._memories_and_lessons(asked, asking, trusting=True)
        except MetUntrue:
            found = await self._memories_and_lessons(asked, asking, trusting=False)
        told, (standings, semantic) = found
        lessons, withheld = await self._lessons(asking, asked.lessons(), standings, semantic, told)
        return Recalled(
            id=readable("R", mint()),
            query=asked.query,
            memories=tuple(told.memories),
            paths=tuple(told.paths),
            lessons=tuple(lessons),
            withheld=tuple(withheld),
            token_budget=asked.token_budget,
            degraded=asking.degraded,
            took_ms=(time.perf_counter() - started) * 1_000,
        )

    async def _memories_and_lessons(
        self, asked: RecallQuery, asking: Asking, trusting: bool
    ) -> tuple[Told, LessonHits]:
        lessons = ahead(self._search.lesson_hits(asking, asked.lessons()))
        if asked.hops == 0:
            found = await self._search.memories(asking, asked.known_then(), asked.limit)
            return Told(found), await lessons
        if asked.filter.types == ():
            return Told(), await lessons
        # What tags and `textContains` say of a memory only the graph knows.
        seen = Found(trusting=trusting and not asked.tags and asked.filter.text_contains is None)
        await self._looking.first_search(asked, asking, seen)
        return await self._walked(asked, asking, seen, lessons), await lessons

    # ------------------------------------------------------------ the walk

    async def _walked(self, asked: RecallQuery, asking: Asking, seen: Found, lessons: asyncio.Task[LessonHits]) -> Told:
        """What the first search found is enough to search once more. Meanwhile the walk goes along the edges as they were
        read last. If it turns out that they have changed, it goes once more along those that there are."""
        spelt = spellings(asked.query)
        question = Question(spelt, seen.rarity)
        itself = cover.by_the_best({id: _said_at_once(seen.words[id], question) for id in seen.best})
        _weigh(seen.words, question, itself, seen)
        again = cover.choose_seeds(seen.direct, seen.covered, question)[: cover.SEEDS_AGAIN]
        searched = ahead(self._search_again(asked, asking, spelt, question, again, seen))
        await under_way()
        edges = Edges(self._graph, self._edges, asked, seen.revisions, seen.trusting)
        for assume in (True, False):
            sentences = ahead(self._said_at_edges(edges, question, seen, assume))
            (seen.walk, confirmed), scored = await asyncio.gather(
                self._walk_from_the_best(asked, question, lessons, again, sentences, edges, seen, assume),
                self._score_again(asked, searched, question, again, sentences, seen),
            )
            learnt = bool((await lessons)[0])
            told, whole = await self._chosen(asked, spelt, question, again, scored, seen, learnt)
            if await confirmed:
                break
            seen.forget(seen.walk.brought)
        if seen.trusting and not whole:
            raise MetUntrue
        return told

    async def _chosen(
        self,
        asked: RecallQuery,
        spelt: Mapping[str, str],
        question: Question,
        again: Sequence[Source],
        scored: Sequence[Scored],
        seen: Found,
        learnt: bool,
    ) -> tuple[Told, bool]:
        """The answer, by all that the walk and the second search have found, and whether all of it could be told. `learnt`:
        there are lessons, so that those which its memories point at are read along with these."""
        energy = seen.walk.energy
        seen.again = {}
        for seed, hits in zip(again, scored, strict=True):
            for id, gain in energy.found_again(seed, hits.scores, seen.covered, question).items():
                hit = Again(seed.id, gain, hits.by_meaning.get(id), hits.by_words.get(id))
                seen.again.setdefault(id, []).append(hit)
        answer = cover.choose_answer(
            {id: energy.of(id) * (1 + seen.shared[id]) for id in energy.gains},
            seen.hybrid,
            seen.walk.direct,
            seen.covered,
            seen.words,
            question,
            asked.limit,
        )
        if not answer:
            return Told(), True
        if seen.best and seen.best[0] not in dict(answer):
            answer[-1] = (seen.best[0], answer[-1][1])  # what plain search finds first no walk may lose
        pointed = None
        if learnt and asked.lesson_limit:
            pointed = ahead(self._search.pointed_lessons([id for id, _ in answer], asked.lessons()))
        found, paths = await tell(self._memories, asked, spelt, answer, seen)
        return Told(found, paths, pointed), len(found) == len(answer)

    async def _said_at_edges(self, edges: Edges, question: Question, seen: Found, assume: bool) -> Said:
        """Of the best, what the sentences of their edges say of the question; as soon as these are there."""
        await edges.fetch(seen.best, assume)
        return {id: _said(edges[id], question) for id in seen.best}

    async def _walk_from_the_best(
        self,
        asked: RecallQuery,
        question: Question,
        lessons: asyncio.Task[LessonHits],
        searching: Sequence[Source],
        sentences: asyncio.Task[Said],
        edges: Edges,
        seen: Found,
        assume: bool,
    ) -> tuple[Walk, asyncio.Task[bool]]:
        """Seeds of the walk are chosen by lessons and by the sentences of edges, too. Confirmed, while others go on, are all
        that lead on, also those that only search once more; False: edges have changed since they were read last."""
        standings, semantic = await lessons
        teaching = rank_lessons(standings, semantic, asked.namespace, datetime.now(UTC))[:TEACHING]
        for one in reversed(teaching):
            seen.taught |= dict.fromkeys(one.standing.link_nodes, one.standing.rb_id)
        await self._looking.look(dict.fromkeys(seen.taught), asked, seen)
        taught = {id: semantic[rb_id] for id, rb_id in seen.taught.items() if id in seen.words}
        _weigh(taught.keys() - seen.direct.keys(), question, {}, seen)
        walk = Walk(direct=dict(seen.direct))
        for id, fits in taught.items():
            walk.direct[id] += cover.LESSON * fits
            walk.energy.gains.setdefault(id, []).append(TAUGHT * fits**4)
        for id, said in cover.said_at(await sentences).items():
            if id in walk.direct:
                walk.direct[id] += cover.SENTENCE * said
        walk.seeds = cover.choose_seeds(walk.direct, seen.covered, question)
        walk.energy.start(walk.seeds)
        await edges.fetch([source.id for source in (*walk.seeds, *searching)], assume)
        await self._walk(asked, question, walk, edges, seen, assume)
        return walk, ahead(edges.confirmed())

    async def _walk(
        self, asked: RecallQuery, question: Question, walk: Walk, edges: Edges, seen: Found, assume: bool
    ) -> None:
        """Along the edges of the seeds, then of the best that they led to: at most one round trip a hop."""
        sources = walk.seeds
        passed: dict[str, Source] = {}
        walked: set[str] = set()
        for _ in range(asked.hops):
            await edges.fetch([source.id for source in sources], assume)
            ways = await self._ways(sources, asked, walked, edges, walk, seen)
            leaving: dict[str, list[Way]] = {}
            for way in ways:
                leaving.setdefault(way.source, []).append(way)
                if way.target not in seen.covered:
                    seen.covered[way.target] = question.covered(seen.words[way.target].all)
            for source in sources:
                walk.energy.walk(source, leaving.get(source.id, ()), seen.covered, question)
            walk.ways += ways
            walked |= {way.edge for way in ways}
            passed |= {source.id: source for source in sources}
            sources = walk.energy.next_sources(passed, ways, seen.covered)
            if not sources:
                return

    async def _ways(
        self,
        sources: Sequence[Source],
        asked: RecallQuery,
        walked: set[str],
        edges: Edges,
        walk: Walk,
        seen: Found,
    ) -> list[Way]:
        """The edges that were not walked yet, to memories whose words are known now."""
        tags = max(1, len(asked.tags))
        ways: list[Way] = []
        unread: dict[str, int | None] = {}
        for source in sorted(source.id for source in sources):
            for edge, target, weight, forward, revision, _, shared in edges[source].edges:
                if edge in walked:
                    continue
                on_edge, on_target = shared or (0, 0)
                heavier = min(1.0, weight * (1 + cover.EDGE_TAGS * on_edge / tags))
                ways.append(Way(edge, source, target, heavier, forward))
                walk.weights[edge] = weight
                if target in seen.words:
                    continue
                if (words := self._looking.words.get(target, revision)) is not None:
                    seen.words[target] = words
                    seen.revisions[target] = revision
                    seen.shared[target] = on_target / tags
                    walk.brought.add(target)
                else:
                    unread[target] = None
        await self._looking.look(unread, asked, seen)
        return [way for way in ways if way.target in seen.words]

    # ------------------------------------------------------------ the second search

    async def _search_again(
        self,
        asked: RecallQuery,
        asking: Asking,
        spelt: Mapping[str, str],
        question: Question,
        seeds: Sequence[Source],
        seen: Found,
    ) -> tuple[list[list[Hit]], list[list[Hit]]]:
        """The best seeds ask once more: for what they name, and for what lies between them and the question."""
        if not seeds or not spelt:
            return [[] for _ in seeds], [[] for _ in seeds]
        texts = [
            _repeated(spelt, question, seen.words[seed.id], cover.names_for(seen.words[seed.id], question))
            for seed in seeds
        ]
        dense, words = await asking.search_again(
            {seed.id: seen.revisions[seed.id] for seed in seeds}, texts, asked.known_then(), CANDIDATES
        )
        return dense, words

    async def _score_again(
        self,
        asked: RecallQuery,
        searched: asyncio.Task[tuple[list[list[Hit]], list[list[Hit]]]],
        question: Question,
        seeds: Sequence[Source],
        sentences: asyncio.Task[Said],
        seen: Found,
    ) -> list[Scored]:
        """How well the hits of each seed fit."""
        dense, words = await searched
        await self._looking.look(revisions_of([*dense, *words]), asked, seen)
        said = await sentences
        scored = []
        for seed, near, worded in zip(seeds, dense, words, strict=True):
            by_words = {hit.key: hit.score for hit in worded if hit.key in seen.words and hit.key != seed.id}
            by_meaning = {hit.key: hit.score for hit in near if hit.key in seen.words and hit.key != seed.id}
            for id in by_words.keys() | by_meaning.keys():
                if id not in seen.covered:
                    seen.covered[id] = question.covered(seen.words[id].all)
            scores = cover.scores_again(
                by_words,
                fuse.min_max(by_meaning),
                seen.words,
                seen.words[seed.id],
                frozenset(cover.names_for(seen.words[seed.id], question)),
                said.get(seed.id, {}),
                question,
            )
            scored.append(Scored(scores, by_meaning, by_words))
        return scored

    # ------------------------------------------------------------ lessons

    async def _lessons(
        self,
        asking: Asking,
        query: LessonQuery,
        standings: dict[int, Standing],
        semantic: dict[int, float],
        told: Told,
    ) -> tuple[list[FoundLesson], list[int]]:
        """Those that were found and those that the memories point at, ranked together. A lesson that the search did
        not find fits as well as half the score of the best memory that led to it. Also those that are withheld."""
        if query.limit == 0:
            return [], []
        via: dict[int, list[str]] = {}
        led_to: dict[int, float] = {}
        for found in told.memories:
            for rb_id in found.memory.reasoning_pointer_ids:
                via.setdefault(rb_id, []).append(found.memory.id)
                led_to[rb_id] = max(led_to.get(rb_id, 0.0), LED_TO * found.score)
        known = {} if told.pointed is None else await told.pointed
        unknown = led_to.keys() - standings.keys() - known.keys()
        known |= await self._search.offered_lessons(unknown, query)
        standings = offered({rb_id: known[rb_id] for rb_id in led_to.keys() & known.keys()}, query) | standings
        fits = {rb_id: max(semantic.get(rb_id, 0.0), led_to.get(rb_id, 0.0)) for rb_id in standings}
        chosen = await self._search.chosen_lessons(asking, standings, fits, query, via)
        whole = [one.lesson.rb_id for one in chosen if not one.required_by]
        if not whole or not self._offers.withholds():
            return chosen, []
        withheld = random.choice(whole)
        rest = {rb_id: fit for rb_id, fit in fits.items() if rb_id != withheld}
        chosen = await self._search.chosen_lessons(asking, standings, rest, query, via)
        return chosen, [withheld] if withheld not in [one.lesson.rb_id for one in chosen] else []


def _weigh(ids: Iterable[str], question: Question, itself: Mapping[str, float], seen: Found) -> None:
    """What memories cover of the question, and what speaks for them by themselves. `itself`: by one of their sentences."""
    for id in ids:
        words = seen.words[id]
        seen.covered[id] = question.covered(words.all)
        seen.direct[id] = (
            seen.hybrid.get(id, 0.0)
            + cover.LEAD * question.lead_match(words.lead, question.asked)
            + cover.SENTENCE * itself.get(id, 0.0)
            + cover.TAGS * seen.shared[id]
        )


def _said(own: EdgesOf, question: Question) -> dict[str, float]:
    """Of each neighbour, the share of the question that the best sentence to it says."""
    said: dict[str, float] = {}
    for place, share in question.shares(own.speaking).items():
        target = own.edges[place][1]
        said[target] = max(said.get(target, 0.0), share)
    return said


def _said_at_once(words: Words, question: Question) -> float:
    """The share of the question that one sentence of a text says by itself."""
    return max((question.share(question.covered(sentence)) for sentence in words.sentences), default=0.0)


def _repeated(spelt: Mapping[str, str], question: Question, seed: Words, names: Mapping[str, str]) -> str:
    """A BM25 query in which words are repeated by their weight."""
    parts: list[str] = []
    for word in question.words:
        if len(spelt[word]) <= LONGEST_WORD:
            parts += [spelt[word]] * (REPEATED_KNOWN if word in seed.all else REPEATED)
    for word, spelling in list(names.items())[:NAMES]:
        if word not in spelt and len(spelling) <= LONGEST_WORD:
            parts += [spelling] * REPEATED_NAME
    return " ".join(parts)
