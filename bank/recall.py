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

from bank import context, cover
from bank.again import Said, SecondSearch
from bank.answer import Found, Walk, tell
from bank.asking import Asking
from bank.cover import Question, Source
from bank.edges import Edges, EdgesOf, MetUntrue, known_edges
from bank.looking import Looking
from bank.model import FoundLesson, FoundMemory, LessonQuery, RecallQuery, Standing, ToldPath
from bank.offers import Offers
from bank.search import POINTERS, Search, offered, rank_lessons
from bank.sync import Sync
from bank.words import WordCache, Words, spellings
from graph.ids import mint, readable
from graph.session import Graph
from graph.store import Memories
from graph.tasks import ahead, under_way
from graph.walk import Way

TEACHING = 3  # lessons that seed the memories they were learnt from
TAUGHT = 0.05  # the energy of a memory that the best lesson was learnt from
LED_TO = 0.5  # how much of a memory's score makes the lesson fit that it points at
LessonHits = tuple[dict[int, Standing], dict[int, float]]  # as `Search.lesson_hits` returns them


class Told(NamedTuple):
    """The memories of an answer, the paths to them, and, on their way, the lessons that they point at."""

    memories: Sequence[FoundMemory] = ()
    paths: Sequence[ToldPath] = ()
    pointed: asyncio.Task[dict[int, Standing]] | None = None


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
    def __init__(self, graph: Graph, sync: Sync, search: Search, offers: Offers, words: WordCache) -> None:
        self._graph = graph
        self._search = search
        self._offers = offers
        self._memories = Memories(graph)
        self._looking = Looking(graph, sync, words)
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
        withholds = self._offers.withholds()
        try:
            found = await self._memories_and_lessons(asked, asking, trusting=True, nameless=withholds)
        except MetUntrue:
            found = await self._memories_and_lessons(asked, asking, trusting=False, nameless=withholds)
        told, (standings, semantic) = found
        lessons, withheld = await self._lessons(asking, asked.lessons(), standings, semantic, told, withholds)
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
        self, asked: RecallQuery, asking: Asking, trusting: bool, nameless: bool
    ) -> tuple[Told, LessonHits]:
        lessons = ahead(self._search.lesson_hits(asking, asked.lessons()))
        if asked.hops == 0:
            found = await self._search.memories(asking, asked.known_then(), asked.limit)
            return Told(found), await lessons
        if asked.filter.types == ():
            return Told(), await lessons
        # What tags and `textContains` say of a memory only the graph knows.
        trusting = trusting and not asked.tags and asked.filter.text_contains is None
        while True:
            seen = Found(trusting=trusting, nameless=nameless)
            await self._looking.first_search(asked, asking, seen)
            if await asking.worth_again(seen.changed):
                continue
            told = await self._walked(asked, asking, seen, lessons)
            if not await asking.worth_again(seen.changed):
                return told, await lessons

    # ------------------------------------------------------------ the walk

    async def _walked(self, asked: RecallQuery, asking: Asking, seen: Found, lessons: asyncio.Task[LessonHits]) -> Told:
        """What the first search found is enough to search once more. Meanwhile the walk goes along the edges as they were
        read last. If it turns out that they have changed, it goes once more along those that there are."""
        spelt = spellings(asked.query)
        question = Question(spelt, seen.rarity)
        itself = cover.by_the_best({id: _said_at_once(seen.words[id], question) for id in seen.best})
        _weigh(seen.words, question, itself, seen)
        seeds = cover.choose_seeds(seen.direct, seen.covered, question)[: cover.SEEDS_AGAIN]
        again = SecondSearch(self._looking, asked, asking, spelt, question, seeds, seen)
        await under_way()
        edges = Edges(self._graph, self._edges, asked, seen.stamps, seen.trusting)
        for assume in (True, False):
            sentences = ahead(self._said_at_edges(edges, question, seen, assume))
            (seen.walk, confirmed), scored = await asyncio.gather(
                self._walk_from_the_best(asked, question, lessons, again, sentences, edges, seen, assume),
                again.scored(sentences),
            )
            learnt = bool((await lessons)[0])
            seen.again = again.gained(scored, seen.walk.energy)
            told, whole = await self._chosen(asked, spelt, question, seen, learnt)
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
        seen: Found,
        learnt: bool,
    ) -> tuple[Told, bool]:
        """The answer, by all that the walk and the second search have found, and whether all of it could be told. `learnt`:
        there are lessons, so that those which its memories point at are read along with these."""
        energy = seen.walk.energy
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
        again: SecondSearch,
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
        await edges.fetch([source.id for source in (*walk.seeds, *again.seeds)], assume)
        await self._walk(asked, question, walk, edges, seen, assume)
        return walk, ahead(self._confirmed(edges, again))

    async def _confirmed(self, edges: Edges, again: SecondSearch) -> bool:
        """Behind the second search, for which everybody waits and which it would slow down; afterwards a processor is idle."""
        await again.answered()
        return await edges.confirmed()

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
            seen.cover({way.target for way in ways}, question)
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
        met: dict[str, int] = {}  # memories that only an edge says to be there, in the revision that it names
        shares: dict[str, float] = {}
        for source in sorted(source.id for source in sources):
            for edge, target, weight, forward, revision, sentence, shared in edges[source].edges:
                if edge in walked:
                    continue
                on_edge, on_target = shared or (0, 0)
                heavier = min(1.0, weight * (1 + cover.EDGE_TAGS * on_edge / tags)) if on_edge else weight
                ways.append(Way(edge, source, target, heavier, forward))
                walk.weights[edge] = weight
                walk.sentences[edge] = sentence
                if target not in seen.words:
                    met[target], shares[target] = revision, on_target / tags
        for id, revision in met.items():
            if (kept := self._looking.words.last(id)) is not None and kept[0][0] == revision:
                seen.stamps[id], seen.words[id] = kept
                seen.shared[id] = shares[id]
                walk.brought.add(id)
        await self._looking.look(dict.fromkeys(met.keys() - seen.words.keys()), asked, seen)
        return [way for way in ways if way.target in seen.words]

    # ------------------------------------------------------------ lessons

    async def _lessons(
        self,
        asking: Asking,
        query: LessonQuery,
        standings: dict[int, Standing],
        semantic: dict[int, float],
        told: Told,
        withholds: bool,
    ) -> tuple[list[FoundLesson], list[int]]:
        """Those that were found and those that the memories point at, ranked together. A lesson that the search did
        not find fits as well as half the score of the best memory that led to it. Also those that are withheld: one, if
        this recall `withholds`."""
        if query.limit == 0:
            return [], []
        via: dict[int, list[str]] = {}
        led_to: dict[int, float] = {}
        for found in told.memories:
            for rb_id in found.memory.reasoning_pointer_ids[-POINTERS:]:
                via.setdefault(rb_id, []).append(found.memory.id)
                led_to[rb_id] = max(led_to.get(rb_id, 0.0), LED_TO * found.score)
        known = {} if told.pointed is None else await told.pointed
        unknown = led_to.keys() - standings.keys() - known.keys()
        known |= await self._search.offered_lessons(unknown, query)
        standings = offered({rb_id: known[rb_id] for rb_id in led_to.keys() & known.keys()}, query) | standings
        fits = {rb_id: max(semantic.get(rb_id, 0.0), led_to.get(rb_id, 0.0)) for rb_id in standings}
        chosen = await self._search.chosen_lessons(asking, standings, fits, query, via)
        whole = [one.lesson.rb_id for one in chosen if not one.required_by]
        if not whole or not withholds:
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
