"""Search by meaning and by words: Milvus finds, the graph verifies, nothing else is shown."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import numpy as np

from bank import fuse
from bank.asking import Asking
from bank.embed import Embedder
from bank.hits import Hits, Stamp, newest, stamps_of, untrue
from bank.lesson_links import (
    MOST_STEPS,
    LessonLinks,
    Links,
    alternatives_of,
    each_behind_its_reason,
    known_then,
    required,
    with_word,
    without_second_places,
)
from bank.lessons import Lessons
from bank.milvus import LESSONS, MEMORIES
from bank.model import FoundLesson, FoundMemory, Lesson, LessonQuery, LessonStatus, Scope, Standing, team_of
from bank.offers import Offers
from bank.sync import Sync
from bank.vectors import Vectors
from graph.model import Memory, MemoryFilter, memory_from_row
from graph.session import Graph
from graph.store import Memories
from graph.tasks import ahead

CANDIDATES = 100  # rows asked of each list of memories
LESSON_CANDIDATES = 50  # of each list of lessons
MOST_CANDIDATES = 16_384  # what Milvus answers at most
# A context is short and names its subject outright, so its words tell more than they do in a memory: measured on lessons
# of 812 tasks, half and half found 2.5 points less among the first five than words alone, a quarter for meaning 0.8 less.
LESSON_MEANING, LESSON_WORDS = 0.125, 0.75  # of the lesson and of its context each; of the context's words
# Lessons among which diversity chooses. One that only meaning has found must be among the so many that fit best.
RANKED = 20
CHANCES = 20  # times that a lesson nobody has used is offered in the place kept for it
UNTRIED = 5  # lessons that nobody has used, among which one is looked for
POINTERS = 50  # lessons that a memory brings, those that were linked last
LEAST_PLACES = 3  # an answer of fewer lessons keeps no place for one
SCOPE_WEIGHTS = {Scope.TEAM: 0.9, Scope.ORG: 0.8}
K = TypeVar("K", str, int)


class Search:
    def __init__(self, graph: Graph, vectors: Vectors, embedder: Embedder, sync: Sync, offers: Offers) -> None:
        self._graph = graph
        self._vectors = vectors
        self._embedder = embedder
        self._sync = sync
        self._offers = offers
        self._memories = Memories(graph)
        self._lessons = Lessons(graph)
        self._links = LessonLinks(graph)

    def asking(self, text: str) -> Asking:
        """A question on its way; afterwards it says what its answer had to do without."""
        return Asking(text, self._graph, self._vectors, self._embedder, self._sync)

    async def memories(self, asking: Asking, filter: MemoryFilter, limit: int) -> list[FoundMemory]:
        if filter.types == ():
            return []
        wanted = max(CANDIDATES, limit)
        while True:
            dense, words = await asking.search_memories(filter, wanted)
            changed: set[int] = set()
            found = await self._true_memories(asking, dense, words, filter, limit, changed)
            if await asking.worth_again(changed):
                continue
            # A stale row or a filter that only the graph knows has taken too many: ask for more.
            if len(found) >= limit or max(len(dense), len(words)) < wanted or wanted >= MOST_CANDIDATES:
                return found
            wanted = min(wanted * 4, MOST_CANDIDATES)

    async def _true_memories(
        self, asking: Asking, dense: Hits, words: Hits, filter: MemoryFilter, limit: int, changed: set[int]
    ) -> list[FoundMemory]:
        """The best of the hits that are true: they exist, as what they were found, and pass the filter. `changed` is
        told the revisions of those that exist in another one."""
        stamps = stamps_of([dense, words])
        if not stamps:
            return []
        by_meaning, by_words, fused = _fused(dense, words, stamps, asking.words_share)
        best = _best(fused, limit)
        # The answer depends on those that would be shown, and on the ends of both lists, by which scores are brought to
        # 0..1: if these are true, it does not matter what the others are. If one is not, all of them are looked at.
        ends = [key for hits in (dense, words) for key in (*list(hits.scores)[:1], *list(hits.scores)[-1:])]
        looked_at = stamps.keys() if filter.text_contains is not None else {*best, *ends}
        true, memories = await self._looked_at(looked_at, stamps, best, filter, changed)
        if len(true) < len(looked_at):
            if len(looked_at) < len(stamps):
                true, memories = await self._looked_at(stamps.keys(), stamps, best, filter, changed)
            by_meaning, by_words, fused = _fused(dense, words, true, asking.words_share)
            best = _best(fused, limit)
            if missing := [key for key in best if key not in memories]:
                memories |= await self._memories.by_id(missing)
        # Not deleted, nor changed into something that the filter may not admit, between two questions.
        shown = [key for key in best if key in memories and memories[key].revision == stamps[key][0]]
        changed |= {memories[key].revision for key in best if key in memories} - {stamps[key][0] for key in shown}
        return [
            FoundMemory(
                memory=memories[key],
                score=fused[key],
                vector_score=by_meaning.get(key),
                bm25_score=by_words.get(key),
                why=found_by(by_meaning.get(key), by_words.get(key)),
            )
            for key in shown
        ]

    async def _looked_at(
        self,
        keys: Collection[str],
        stamps: Mapping[str, Stamp],
        shown: Sequence[str],
        filter: MemoryFilter,
        changed: set[int],
    ) -> tuple[set[str], dict[str, Memory]]:
        """Which of these hits are true, and the memories that are to be shown."""
        rows: list[Any] = await self._graph.read(
            "true_memories",
            ids=sorted(keys),
            shown=list(shown),
            **filter.parameters(),
        )
        found = {key: stamps[key] for key in keys}
        self._sync.met_untrue(MEMORIES, untrue(found, {id: (revision, version) for id, revision, version, *_ in rows}))
        changed |= {revision for id, revision, *_ in rows if revision != stamps[id][0]}
        true = {id for id, revision, version, passes, *_ in rows if passes and (revision, version) == stamps[id]}
        memories = {
            row[0]: memory_from_row({"type": row[4], "properties": row[5]}) for row in rows if row[5] is not None
        }
        return true, memories

    async def lessons(self, asking: Asking, query: LessonQuery) -> list[FoundLesson]:
        standings, semantic = await self.lesson_hits(asking, query)
        found = await self.chosen_lessons(asking, standings, semantic, query)
        self._offers.offered(found)
        return found

    async def lesson_hits(self, asking: Asking, query: LessonQuery) -> tuple[dict[int, Standing], dict[int, float]]:
        """Lessons that the index finds, the graph confirms and may be offered, and how well each fits, 0 to 1. What words
        have found, which is most of it, the graph confirms while the question is embedded and looked for by meaning."""
        wanted = max(LESSON_CANDIDATES, query.limit)
        while True:
            meaning = ahead(asking.lessons_by_meaning(query, wanted))
            words = await asking.lessons_by_words(query, wanted)
            worded = words.stamps
            changed: set[int] = set()
            confirming = ahead(self._true_lessons(worded, query, changed))
            # What is chosen differs by the vectors, and mostly of these: they come meanwhile.
            asking.expect_lesson_vectors(words.first(RANKED))
            by_lesson, by_context, words = newest([*await meaning, words])
            lists = (by_lesson, by_context, words)
            stamps = stamps_of(lists)
            best = _best(_fits(lists, stamps, asking), max(RANKED, 4 * query.limit))
            read, true = worded, await confirming
            # Of those that meaning alone has found the best are confirmed, too; all, where too few may be offered.
            for keys in (best, stamps):
                unread = {key: stamps[key] for key in keys if read.get(key) != stamps[key]}
                read, true = read | unread, true | await self._true_lessons(unread, query, changed)
                if len(fitting := offerable(true, query, asking)) >= query.limit:
                    break
            if await asking.worth_again(changed):
                continue
            if len(fitting) >= query.limit or max(map(len, lists)) < wanted or wanted >= MOST_CANDIDATES:
                fits = _fits(lists, true, asking)
                return fitting, {rb_id: fits[rb_id] for rb_id in fitting}
            wanted = min(wanted * 4, MOST_CANDIDATES)

    async def chosen_lessons(
        self,
        asking: Asking,
        standings: Mapping[int, Standing],
        semantic: Mapping[int, float],
        query: LessonQuery,
        via: Mapping[int, Sequence[str]] = MappingProxyType({}),
    ) -> list[FoundLesson]:
        """The best by four factors, one place kept for a lesson never used. `via`: the memories that led to a lesson."""
        ranked = rank_lessons(standings, semantic, query.namespace, datetime.now(UTC))
        untried = best_untried(ranked)
        ranked = ranked[: max(RANKED, 4 * query.limit)]
        looked_at = [*ranked, *(one for one in untried if one not in ranked)]
        vectors, own = await asyncio.gather(
            asking.lesson_vectors({one.standing.rb_id: one.standing.stamp for one in looked_at}),
            self._links.of(one.standing.rb_id for one in looked_at if one.standing.linked),
        )
        links = known_then(own, query.as_of)
        kept, left_out = without_second_places([one.standing.rb_id for one in looked_at], links)
        untried = [one for one in untried if one.standing.rb_id in kept][:1]
        ranked += [one for one in untried if one not in ranked]
        best = choose_diverse([one for one in ranked if one.standing.rb_id in kept], vectors, query.limit)
        found = await self._found(give_a_chance(best, untried, vectors, query.limit), via, [one for one, _ in best])
        found = [one for one in found if has_all(one, query.tags)]  # the index has said so, which may be mistaken
        return await self._with_linked(found, links, left_out, semantic, query, via)

    async def _found(
        self,
        chosen: Sequence[tuple["Ranked", float]],
        via: Mapping[int, Sequence[str]] = MappingProxyType({}),
        best: Collection["Ranked"] | None = None,
    ) -> list[FoundLesson]:
        """`best`: those that are not on trial; all of them, if it is not given."""
        read = {
            one.standing.rb_id: Lesson.from_row(one.standing.whole)
            for one, _ in chosen
            if one.standing.whole is not None
        }
        missing = [one.standing.rb_id for one, _ in chosen if one.standing.rb_id not in read]
        lessons = read | await self._lessons.by_id(missing)
        return [
            FoundLesson(
                lesson=lessons[one.standing.rb_id],
                score=one.scope_weight * (one.base + fuse.DIVERSITY * diversity),
                semantic=one.semantic,
                reliability=one.standing.confidence,
                recency=one.recency,
                diversity=diversity,
                via=tuple(via.get(one.standing.rb_id, ())),
                on_trial=best is not None and one not in best,
            )
            for one, diversity in chosen
            # Not deleted, nor changed into something that may not be offered, between the two questions.
            if one.standing.rb_id in lessons and lessons[one.standing.rb_id].revision == one.standing.revision
        ]

    async def _with_linked(
        self,
        found: list[FoundLesson],
        links: Links,
        left_out: dict[int, list[int]],
        semantic: Mapping[int, float],
        query: LessonQuery,
        via: Mapping[int, Sequence[str]],
    ) -> list[FoundLesson]:
        """Brings along what the lessons require, at most as many again, and says what their links say of each other."""
        brought: dict[int, FoundLesson] = {}
        last = [one.lesson.rb_id for one in found]
        offered = set(last)
        for _ in range(MOST_STEPS):
            wanted = [rb_id for rb_id in required(last, links) if rb_id not in offered]
            standings = await self.offered_lessons(wanted, query)
            links = {**links, **known_then(await self._links.of(standings), query.as_of)}
            fits = {}
            for rb_id in wanted:
                if rb_id in standings:
                    if other := alternatives_of(rb_id, links, offered):
                        left_out.setdefault(other[0], []).append(rb_id)
                    else:
                        fits[rb_id] = semantic.get(rb_id, 0.0)
            ranked = rank_lessons(standings, fits, query.namespace, datetime.now(UTC))
            # It was not chosen for being different, so that factor gives it nothing.
            along = [one for one in await self._found([(one, 0.0) for one in ranked], via) if has_all(one, query.tags)]
            along = sorted(along, key=lambda one: wanted.index(one.lesson.rb_id))[: query.limit - len(brought)]
            if not along:
                break
            last = [one.lesson.rb_id for one in along]
            brought |= {one.lesson.rb_id: one for one in along}
            offered = offered | brought.keys()
        return with_word(each_behind_its_reason(found, brought, links), links, left_out)

    async def offered_lessons(self, ids: Collection[int], query: LessonQuery) -> dict[int, Standing]:
        """Those of these lessons that may be an answer, though no search has found them."""
        return offered(await self._standings(sorted(ids), query) if ids else {}, query)

    async def pointed_lessons(self, memories: Sequence[str], query: LessonQuery) -> dict[int, Standing]:
        """The lessons that memories point at, whether they may be an answer or not."""
        return await self._standings([], query, memories)

    async def _standings(
        self, ids: Sequence[int], query: LessonQuery, memories: Sequence[str] = ()
    ) -> dict[int, Standing]:
        """Of lessons by their ids, best first, and of those that memories point at."""
        shown = ids[: likely_shown(query)]
        rows: list[Any] = await self._graph.read(
            "standing_of_lessons", ids=ids, shown=shown, memories=memories, pointers=POINTERS
        )
        return {row[0]: Standing(*row) for row in rows}

    async def _true_lessons(
        self, found: Mapping[int, Stamp], query: LessonQuery, changed: set[int]
    ) -> dict[int, Standing]:
        """Those of these hits, best first, that are true: the lesson exists, as what it was found. `changed` is told the
        revisions of those that exist in another one."""
        if not found:
            return {}
        known = await self._standings(list(found), query)
        self._sync.met_untrue(LESSONS, untrue(found, {key: one.stamp for key, one in known.items()}))
        changed |= {one.revision for key, one in known.items() if one.revision != found[key][0]}
        return {key: one for key, one in known.items() if one.stamp == found[key]}


def likely_shown(query: LessonQuery) -> int:
    """Of how many lessons the texts are read before they are ranked: the best by what fits, which mostly stay the best."""
    return 3 * query.limit


def _fits(lists: Sequence[Hits], among: Collection[int], asking: Asking) -> dict[int, float]:
    """How well each of these lessons fits the question, 0 to 1."""
    by_lesson, by_context, by_words = (hits.among(among) for hits in lists)
    worded = LESSON_WORDS if asking.degraded is None else 1.0
    return fuse.combine((LESSON_MEANING, by_lesson), (LESSON_MEANING, by_context), (worded, by_words))


def _fused(
    dense: Hits, words: Hits, among: Collection[str], words_share: float
) -> tuple[dict[str, float], dict[str, float], dict[str, float]]:
    """The scores of the hits that count: by meaning, by words, and both in one."""
    by_meaning, by_words = dense.among(among), words.among(among)
    return by_meaning, by_words, fuse.combine((0.5, by_meaning), (words_share, by_words))


def _best(scores: Mapping[K, float], limit: int) -> list[K]:
    return sorted(scores, key=lambda key: (-scores[key], key))[:limit]


def offerable(standings: Mapping[int, Standing], query: LessonQuery, asking: Asking) -> dict[int, Standing]:
    """Those that may be an answer. What is hidden until it is indexed only an answer without the index can have found."""
    whole = asking.degraded is None
    return {key: one for key, one in standings.items() if may_be_offered(one, query) and (whole or not one.hidden)}


def offered(standings: Mapping[int, Standing], query: LessonQuery) -> dict[int, Standing]:
    """Of lessons that no search has found those that may be an answer."""
    return {key: one for key, one in standings.items() if not one.hidden and may_be_offered(one, query)}


def may_be_offered(lesson: Standing, query: LessonQuery) -> bool:
    """All that a search for lessons asks but for tags, which only the index is asked for."""
    namespace = query.namespace
    return (
        lesson.status == LessonStatus.ACTIVE
        and lesson.confidence >= query.min_confidence
        and (query.outcome is None or lesson.outcome == query.outcome)
        and (query.scope is None or lesson.scope == query.scope)
        and (query.as_of is None or lesson.created_at <= query.as_of)
        and (
            namespace is None
            or lesson.namespace == namespace
            or lesson.scope == Scope.ORG
            or (lesson.scope == Scope.TEAM and team_of(lesson.namespace) == team_of(namespace))
        )
    )


def has_all(found: FoundLesson, tags: Sequence[str]) -> bool:
    return set(tags) <= set(found.lesson.tags)


def found_by(vector_score: float | None, bm25_score: float | None) -> str:
    """Why a search found a memory, as a sentence."""
    ways = [name for name, score in (("words", bm25_score), ("meaning", vector_score)) if score is not None]
    return f"Found by {' and '.join(ways)}." if ways else ""


class Ranked(NamedTuple):
    """A lesson on its way to the answer: three of its four factors, and how it is seen from the caller's namespace."""

    standing: Standing
    semantic: float
    recency: float
    scope_weight: float
    base: float  # the three factors in one


def rank_lessons(
    standings: Mapping[int, Standing], semantic: Mapping[int, float], namespace: str | None, now: datetime
) -> list[Ranked]:
    """By three factors, times the weight of the scope through which the lesson is seen; the fourth is diversity."""
    ranked = []
    for key, fit in semantic.items():
        one = standings[key]
        recency = fuse.recency(one.moved, now)
        base = fuse.SEMANTIC * fit + fuse.RELIABILITY * one.confidence + fuse.RECENCY * recency
        ranked.append(Ranked(one, fit, recency, scope_weight(one, namespace), base))
    return sorted(ranked, key=lambda one: (-one.scope_weight * one.base, one.standing.rb_id))


def choose_diverse(ranked: Sequence[Ranked], vectors: Mapping[int, Any], limit: int) -> list[tuple[Ranked, float]]:
    """Adds the fourth factor, one lesson at a time. Best first. A lesson without a vector is like no other."""
    if not ranked:
        return []
    unlike = np.zeros_like(next(iter(vectors.values()), np.zeros(1, np.float32)))
    chosen = fuse.choose_diverse(
        [one.base for one in ranked],
        [one.scope_weight for one in ranked],
        np.stack([vectors.get(one.standing.rb_id, unlike) for one in ranked]),
        limit,
    )
    return _best_first([(ranked[place], diversity) for place, diversity in chosen])


def _best_first(chosen: list[tuple[Ranked, float]]) -> list[tuple[Ranked, float]]:
    return sorted(chosen, key=lambda pair: -pair[0].scope_weight * (pair[0].base + fuse.DIVERSITY * pair[1]))


def best_untried(ranked: Sequence[Ranked]) -> list[Ranked]:
    """Those that fit best of the lessons that nobody has used yet; one that was offered often enough had its chance. A few,
    for some may be no more than an alternative to a better one."""
    untried = [one for one in ranked if one.standing.usage_count == 0 and one.standing.offered_count < CHANCES]
    return sorted(untried, key=lambda one: (-one.semantic, one.standing.rb_id))[:UNTRIED]


def give_a_chance(
    chosen: list[tuple[Ranked, float]], untried: Sequence[Ranked], vectors: Mapping[int, Any], limit: int
) -> list[tuple[Ranked, float]]:
    """Where every place is taken by a lesson that was used before, the last goes to the untried one, if that fits the
    question at least as well. So no track record keeps a new lesson away for ever."""
    used = all(one.standing.usage_count for one, _ in chosen)
    if not untried or not used or len(chosen) < max(limit, LEAST_PLACES):
        return chosen
    (new,), (last, _) = untried, chosen[-1]
    if new.semantic < last.semantic:
        return chosen
    pairs = [(vectors.get(one.standing.rb_id), vectors.get(new.standing.rb_id)) for one, _ in chosen[:-1]]
    likeness = [0.0 if own is None or its is None else own @ its for own, its in pairs]
    return _best_first([*chosen[:-1], (new, float(fuse.diversity(np.asarray(likeness)).min()))])


def scope_weight(lesson: Standing, namespace: str | None) -> float:
    """Its own namespace's lessons count whole, the team's and the organisation's a little less."""
    if namespace is None or lesson.namespace == namespace:
        return 1.0
    if lesson.scope == Scope.TEAM and team_of(lesson.namespace) == team_of(namespace):
        return SCOPE_WEIGHTS[Scope.TEAM]
    return SCOPE_WEIGHTS[Scope.ORG]
