"""THE JOIN: one question in; the memories that answer it together, the paths that join them and the lessons that apply.

The index finds candidates, the graph confirms them. The best of them, chosen to differ, seed a walk along the edges
and search once more with what they name; `bank/cover.py` says how much each memory gains by it. A lesson that was
found seeds the memories it was learnt from; a memory that was found brings the lessons that it points at.
"""

import asyncio
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property

from rank_bm25 import BM25Plus

from bank import context, cover, fuse
from bank.asking import Asking
from bank.cover import Energy, Question, Source
from bank.model import FoundLesson, FoundMemory, LessonQuery, RecallQuery, Standing, ToldPath
from bank.offers import Offers
from bank.paths import told
from bank.search import CANDIDATES, MOST_CANDIDATES, Search, found_by, rank_lessons, untrue
from bank.sync import Sync
from bank.vectors import MEMORIES, Hit
from bank.words import LONGEST_WORD, Idf, WordCache, Words, spellings, words_of
from graph.ids import mint, readable
from graph.model import Edge, Memory, Path
from graph.session import Graph, Row
from graph.store import Memories
from graph.walk import Way, best_routes

EDGES_OF_A_SEED = 300
TEACHING = 3  # lessons that seed the memories they were learnt from
TAUGHT = 0.05  # the energy of a memory that the best lesson was learnt from
LED_TO = 0.5  # how much of a memory's score makes the lesson fit that it points at
SEED_IN_VECTOR = 0.5  # how far a seed draws the question's vector towards itself
REPEATED, REPEATED_KNOWN, REPEATED_NAME = 10, 3, 6  # a word n times in a BM25 query counts n times
NAMES = 64  # of a seed that names more, its first names
ROUTES = 3  # ways to a memory among which their sentences choose


@dataclass(frozen=True)
class Recalled:
    """The answer of recall: each list best first. The context is written when it is asked for."""

    id: str
    memories: tuple[FoundMemory, ...]
    paths: tuple[ToldPath, ...]
    lessons: tuple[FoundLesson, ...]
    withheld: tuple[int, ...]
    token_budget: int
    degraded: str | None
    took_ms: float

    @property
    def context(self) -> str:
        return self._written[0]

    @property
    def tokens(self) -> int:
        return self._written[1]

    @cached_property
    def _written(self) -> tuple[str, int]:
        return context.build(self.memories, self.lessons, self.token_budget)


@dataclass
class Found:
    """What one recall has found so far, memory by memory."""

    words: dict[str, Words] = field(default_factory=dict)  # of all that is true and passes the filter
    revisions: dict[str, int] = field(default_factory=dict)  # in which it was true and passed
    shared: dict[str, float] = field(default_factory=dict)  # the share of the question's tags that it carries
    by_meaning: dict[str, float] = field(default_factory=dict)
    by_words: dict[str, float] = field(default_factory=dict)
    taught: dict[str, int] = field(default_factory=dict)  # the lesson that was learnt from it
    again: dict[str, dict[str, float]] = field(default_factory=dict)  # what each seed's second search gave it
    named: dict[str, frozenset[str]] = field(default_factory=dict)  # what a seed names
    ways: list[Way] = field(default_factory=list)
    seeds: list[Source] = field(default_factory=list)
    energy: Energy = field(default_factory=Energy)


class Recall:
    def __init__(self, graph: Graph, sync: Sync, search: Search, offers: Offers) -> None:
        self._graph = graph
        self._sync = sync
        self._search = search
        self._offers = offers
        self._memories = Memories(graph)
        self._words = WordCache()

    async def recall(self, asked: RecallQuery) -> Recalled:
        started = time.perf_counter()
        asking = await self._search.asking(asked.query)
        (memories, paths), (standings, semantic) = await self._memories_and_lessons(asked, asking)
        lessons, withheld = await self._lessons(asking, asked.lessons(), standings, semantic, memories)
        id = readable("R", mint())
        self._offers.recalled(id, asked.namespace, lessons, withheld)
        return Recalled(
            id=id,
            memories=tuple(memories),
            paths=tuple(paths),
            lessons=tuple(lessons),
            withheld=tuple(withheld),
            token_budget=asked.token_budget,
            degraded=asking.degraded,
            took_ms=(time.perf_counter() - started) * 1_000,
        )

    async def _memories_and_lessons(
        self, asked: RecallQuery, asking: Asking
    ) -> tuple[tuple[list[FoundMemory], list[ToldPath]], tuple[dict[int, Standing], dict[int, float]]]:
        lessons = self._search.lesson_hits(asking, asked.lessons())
        if asked.hops == 0:
            found, hits = await asyncio.gather(self._search.memories(asking, asked.known_then(), asked.limit), lessons)
            return (found, []), hits
        seen = Found()
        if asked.filter.types == ():
            return ([], []), await lessons
        _, hits = await asyncio.gather(self._first_search(asked, asking, seen), lessons)
        return await self._walked(asked, asking, seen, *hits), hits

    # ------------------------------------------------------------ looking at memories

    async def _first_search(self, asked: RecallQuery, asking: Asking, seen: Found) -> None:
        filter = asked.known_then()
        wanted = max(CANDIDATES, asked.limit)
        while True:
            dense, words = await asking.search_memories(filter, wanted)
            await self._look(_revisions([dense, words]), asked, seen)
            # A stale row or a filter that only the graph knows has taken too many: ask for more.
            short = len(seen.words) < asked.limit
            if not short or max(len(dense), len(words)) < wanted or wanted >= MOST_CANDIDATES:
                break
            wanted = min(wanted * 4, MOST_CANDIDATES)
        seen.by_meaning = {hit.key: hit.score for hit in dense if hit.key in seen.words}
        seen.by_words = {hit.key: hit.score for hit in words if hit.key in seen.words}

    async def _look(self, revisions: Mapping[str, int | None], asked: RecallQuery, seen: Found) -> None:
        """Confirms memories: they exist, in the revision that was found (None: in any), and pass the filter."""
        wanted = sorted(revisions.keys() - seen.words.keys())
        if not wanted:
            return
        held = {id: kept for id in wanted if (kept := self._words.last(id)) is not None}
        rows = await self._graph.read(
            "recall_memories",
            wanted=[[id, held[id][0] if id in held else None] for id in wanted],
            shared=list(asked.tags),
            **asked.known_then().parameters(),
        )
        known = {row["id"]: row["revision"] for row in rows}
        found = {id: revision for id in wanted if (revision := revisions[id]) is not None}
        self._sync.met_untrue(MEMORIES, untrue(found, known))
        for row in rows:
            id, revision = row["id"], row["revision"]
            if not row["passes"] or revision != (found.get(id) or revision):
                continue
            words = held[id][1] if row["text"] is None else words_of(row["text"])
            self._words.put(id, revision, words)
            seen.words[id] = words
            seen.revisions[id] = revision
            seen.shared[id] = row["shared"] / max(1, len(asked.tags))

    # ------------------------------------------------------------ the walk

    async def _walked(
        self,
        asked: RecallQuery,
        asking: Asking,
        seen: Found,
        standings: Mapping[int, Standing],
        semantic: Mapping[int, float],
    ) -> tuple[list[FoundMemory], list[ToldPath]]:
        teaching = rank_lessons(standings, semantic, asked.namespace, datetime.now(UTC))[:TEACHING]
        for one in reversed(teaching):
            seen.taught |= dict.fromkeys(one.standing.link_nodes, one.standing.rb_id)
        await self._look(dict.fromkeys(seen.taught), asked, seen)
        if not seen.words:
            return [], []
        spelt = spellings(asked.query)
        question = Question(spelt, Idf(seen.words.values()))
        covered = {id: question.covered(words.all) for id, words in seen.words.items()}
        hybrid = fuse.combine((0.5, seen.by_meaning), (asking.words_share, seen.by_words))
        taught = {id: semantic[rb_id] for id, rb_id in seen.taught.items() if id in seen.words}
        direct = {
            id: hybrid.get(id, 0.0)
            + cover.LEAD * question.lead_match(words)
            + cover.TAGS * seen.shared[id]
            + cover.LESSON * taught.get(id, 0.0)
            for id, words in seen.words.items()
        }
        seen.seeds = cover.choose_seeds(direct, covered, question)
        seen.energy.start(seen.seeds)
        for id, fits in taught.items():
            seen.energy.gains.setdefault(id, []).append(TAUGHT * fits**4)
        await asyncio.gather(
            self._walk(asked, question, covered, seen),
            self._search_again(asked, asking, spelt, question, covered, seen),
        )
        energies = {id: seen.energy.of(id) * (1 + seen.shared[id]) for id in seen.energy.gains}
        answer = cover.choose_answer(energies, direct, covered, question)[: asked.limit]
        return await self._told(asked, spelt, answer, seen)

    async def _walk(self, asked: RecallQuery, question: Question, covered: dict[str, int], seen: Found) -> None:
        """One round trip a hop: the edges of the seeds, then of the best that they led to."""
        sources = seen.seeds
        passed: dict[str, Source] = {}
        walked: set[str] = set()
        for _ in range(asked.hops):
            rows = await self._graph.read(
                "recall_edges",
                ids=[source.id for source in sources],
                min_weight=asked.min_weight,
                as_of=asked.as_of,
                shared=list(asked.tags),
                limit=EDGES_OF_A_SEED,
                **asked.known_then().parameters(),
            )
            ways = await self._ways(rows, asked, walked, seen)
            for way in ways:
                if way.target not in covered:
                    covered[way.target] = question.covered(seen.words[way.target].all)
            for source in sources:
                own = [way for way in ways if way.source == source.id]
                seen.energy.walk(source, own, covered, question)
            seen.ways += ways
            walked |= {way.edge for way in ways}
            passed |= {source.id: source for source in sources}
            sources = seen.energy.next_sources(passed, ways, covered)
            if not sources:
                return

    async def _ways(self, rows: Sequence[Row], asked: RecallQuery, walked: set[str], seen: Found) -> list[Way]:
        """The edges that were not walked yet, to memories whose words are known now."""
        tags = max(1, len(asked.tags))
        ways: list[Way] = []
        unread: dict[str, int | None] = {}
        for row in sorted(rows, key=lambda row: str(row["memory"])):
            for edge, target, weight, forward, revision, on_edge, on_target in row["edges"]:
                if edge in walked:
                    continue
                heavier = min(1.0, weight * (1 + cover.EDGE_TAGS * on_edge / tags))
                ways.append(Way(edge, row["memory"], target, heavier, forward))
                if target in seen.words:
                    continue
                if (words := self._words.get(target, revision)) is not None:
                    seen.words[target] = words
                    seen.revisions[target] = revision
                    seen.shared[target] = on_target / tags
                else:
                    unread[target] = None
        await self._look(unread, asked, seen)
        return [way for way in ways if way.target in seen.words]

    async def _search_again(
        self,
        asked: RecallQuery,
        asking: Asking,
        spelt: Mapping[str, str],
        question: Question,
        covered: dict[str, int],
        seen: Found,
    ) -> None:
        """The best seeds ask once more: for what they name, and for what lies between them and the question."""
        seeds = seen.seeds[: cover.SEEDS_AGAIN]
        if not seeds or not spelt:
            return
        own = await asking.memory_vectors([seed.id for seed in seeds])
        names = {seed.id: cover.names_for(seen.words[seed.id], question) for seed in seeds}
        vector = asking.vector
        dense, words = await asking.search_memories_for(
            [vector + SEED_IN_VECTOR * own[seed.id] if seed.id in own else vector for seed in seeds]
            if vector is not None
            else [],
            [_repeated(spelt, question, seen.words[seed.id], names[seed.id]) for seed in seeds],
            asked.known_then(),
            CANDIDATES,
        )
        await self._look(_revisions([*dense, *words]), asked, seen)
        for seed, near, worded in zip(seeds, dense, words, strict=True):
            by_words = {hit.key: hit.score for hit in worded if hit.key in seen.words and hit.key != seed.id}
            by_meaning = {hit.key: hit.score for hit in near if hit.key in seen.words and hit.key != seed.id}
            for id in by_words.keys() | by_meaning.keys():
                if id not in covered:
                    covered[id] = question.covered(seen.words[id].all)
            seen.named[seed.id] = frozenset(names[seed.id])
            scores = cover.scores_again(by_words, fuse.min_max(by_meaning), seen.words, seen.named[seed.id], question)
            for id, gain in seen.energy.found_again(seed, scores, covered, question).items():
                seen.again.setdefault(id, {})[seed.id] = gain

    # ------------------------------------------------------------ telling

    async def _told(
        self, asked: RecallQuery, spelt: Mapping[str, str], answer: Sequence[tuple[str, float]], seen: Found
    ) -> tuple[list[FoundMemory], list[ToldPath]]:
        searched = seen.by_meaning.keys() | seen.by_words.keys()
        starts = {seed.id: seed.strength for seed in seen.seeds if seed.id in searched}
        by_lessons = {seed.id: seed.strength for seed in seen.seeds if seed.id not in searched}
        ids = [id for id, _ in answer]
        routes = best_routes(by_lessons, seen.ways, set(ids), asked.hops, ROUTES) if by_lessons else {}
        routes |= best_routes(starts, seen.ways, set(ids), asked.hops, ROUTES)
        steps = [step for id in ids for path in routes.get(id, ()) for step in path.steps]
        memories, edges = await asyncio.gather(
            self._memories.by_id([*ids, *(step.memory for step in steps)]),
            self._memories.edges_by_id(step.edge for step in steps if step.edge is not None),
        )
        # What was deleted or changed since it was looked at is not told: its new text was neither found nor filtered.
        memories = {id: memory for id, memory in memories.items() if memory.revision == seen.revisions[id]}
        fits = _sentence_fits(spelt, edges)
        found = []
        for id, score in answer:
            if id not in memories:
                continue
            via = _best_told([_fitted(path, fits) for path in routes.get(id, ())], memories, edges)
            walked = seen.energy.along_edges(id)
            found.append(
                FoundMemory.model_construct(
                    memory=memories[id],
                    score=score,
                    vector_score=seen.by_meaning.get(id),
                    bm25_score=seen.by_words.get(id),
                    path_score=walked if walked > 0 else None,
                    via=via,
                    why=_why(id, via, seen),
                )
            )
        paths = sorted((one.via for one in found if one.via is not None), key=lambda path: (-path.score, path.text))
        return found, paths[: asked.path_limit]

    # ------------------------------------------------------------ lessons

    async def _lessons(
        self,
        asking: Asking,
        query: LessonQuery,
        standings: dict[int, Standing],
        semantic: dict[int, float],
        memories: Sequence[FoundMemory],
    ) -> tuple[list[FoundLesson], list[int]]:
        """Those that were found and those that the memories point at, ranked together. A lesson that the search did
        not find fits as well as half the score of the best memory that led to it. Also those that are withheld."""
        if query.limit == 0:
            return [], []
        via: dict[int, list[str]] = {}
        led_to: dict[int, float] = {}
        for found in memories:
            for rb_id in found.memory.reasoning_pointer_ids:
                via.setdefault(rb_id, []).append(found.memory.id)
                led_to[rb_id] = max(led_to.get(rb_id, 0.0), LED_TO * found.score)
        pointed = await self._search.offered_lessons(led_to.keys() - standings.keys(), query)
        standings = standings | pointed
        fits = {rb_id: max(semantic.get(rb_id, 0.0), led_to.get(rb_id, 0.0)) for rb_id in standings}
        chosen = await self._search.chosen_lessons(asking, standings, fits, query, via)
        whole = [one.lesson.rb_id for one in chosen if not one.required_by]
        if not whole or not self._offers.withholds():
            return chosen, []
        withheld = random.choice(whole)
        rest = {rb_id: fit for rb_id, fit in fits.items() if rb_id != withheld}
        chosen = await self._search.chosen_lessons(asking, standings, rest, query, via)
        return chosen, [withheld] if withheld not in [one.lesson.rb_id for one in chosen] else []


def _revisions(lists: Sequence[Sequence[Hit]]) -> dict[str, int | None]:
    return {hit.key: hit.revision for hits in lists for hit in hits}


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


def _sentence_fits(spelt: Mapping[str, str], edges: Mapping[str, Edge]) -> dict[str, float]:
    """How well each edge's sentence fits the question, 0 to 1, by BM25 among these sentences."""
    ids = sorted(edges)
    # The last text is empty: BM25+ gives something even to a text without any of the words, and this is how much.
    texts = [[*spellings(edges[id].text)] for id in ids] + [[]]
    if not ids or not spelt or not any(texts):
        return dict.fromkeys(ids, 0.0)
    *scores, nothing = BM25Plus(texts).get_scores(list(spelt))
    most = max(scores) - nothing
    return {id: float((score - nothing) / most) if most > 0 else 0.0 for id, score in zip(ids, scores, strict=True)}


def _fitted(path: Path, fits: Mapping[str, float]) -> Path:
    """A path's score is its energy, up to half of it for sentences that fit the question."""
    own = [fits.get(step.edge, 0.0) for step in path.steps if step.edge is not None]
    return path.model_copy(update={"score": path.score * (0.5 + 0.5 * sum(own) / len(own))})


def _best_told(paths: Sequence[Path], memories: Mapping[str, Memory], edges: Mapping[str, Edge]) -> ToldPath | None:
    for path in sorted(paths, key=lambda path: -path.score):
        if (one := told(path, memories, edges)) is not None:
            return one
    return None


def _why(id: str, via: ToldPath | None, seen: Found) -> str:
    """Why a memory is in the answer: every way that led to it."""
    reasons = [found_by(seen.by_meaning.get(id), seen.by_words.get(id))]
    if via is not None:
        last, edge = via.steps[-2].memory.id, via.steps[-1].edge
        assert edge is not None
        reasons.append(f"Reached from {last} because {context.quoted(edge.text)}.")
    if again := seen.again.get(id):
        seed = max(sorted(again), key=again.__getitem__)
        names = bool(seen.words[id].lead & seen.named[seed])
        reasons.append(f"Named in {seed}." if names else f"Found by asking again with {seed}.")
    if id in seen.taught:
        reasons.append(f"Lesson {seen.taught[id]} was learnt from it.")
    return " ".join(reason for reason in reasons if reason)
