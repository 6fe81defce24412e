"""Search by meaning and by words: Milvus finds, the graph verifies, nothing else is shown."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from bank import fuse
from bank.embed import Embedder
from bank.lessons import Lessons
from bank.model import FoundLesson, FoundMemory, Lesson, LessonQuery, LessonStatus, Scope, team_of
from bank.sync import Sync
from bank.vectors import LESSONS, MEMORIES, Hit, Vectors
from graph.model import Memory, MemoryFilter, memory_from_row
from graph.session import Graph

CANDIDATES = 100  # rows asked of each list
MOST_CANDIDATES = 16_384  # what Milvus answers at most
SCOPE_WEIGHTS = {Scope.TEAM: 0.9, Scope.ORG: 0.8}


class Search:
    def __init__(self, graph: Graph, vectors: Vectors, embedder: Embedder, sync: Sync) -> None:
        self._graph = graph
        self._vectors = vectors
        self._embedder = embedder
        self._sync = sync
        self._lessons = Lessons(graph)

    async def memories(self, query: str, filter: MemoryFilter, limit: int) -> list[FoundMemory]:
        if filter.types == ():
            return []
        vector = await self._embedder.query(query)
        wanted = max(CANDIDATES, limit)
        while True:
            dense, words = await self._vectors.search_memories(vector, query, filter, wanted)
            true = await self._verified_memories([*dense, *words], filter)
            # A stale row or a filter that only the graph knows has taken too many: ask for more.
            if len(true) >= limit or max(len(dense), len(words)) < wanted or wanted >= MOST_CANDIDATES:
                break
            wanted = min(wanted * 4, MOST_CANDIDATES)
        by_meaning = {hit.key: hit.score for hit in dense if hit.key in true}
        by_words = {hit.key: hit.score for hit in words if hit.key in true}
        fused = fuse.combine((0.5, by_meaning), (0.5, by_words))
        best = sorted(fused, key=lambda key: (-fused[key], key))[:limit]
        return [
            FoundMemory(
                memory=true[key], score=fused[key], vector_score=by_meaning.get(key), bm25_score=by_words.get(key)
            )
            for key in best
        ]

    async def _verified_memories(self, hits: Sequence[Hit], filter: MemoryFilter) -> dict[str, Memory]:
        """The memories of the hits that are true: they exist, in the revision that was found, and pass the filter."""
        revisions = {hit.key: hit.revision for hit in hits}
        if not revisions:
            return {}
        rows = await self._graph.read("verify_memories", ids=list(revisions), **filter.parameters())
        known = {row["properties"]["id"]: row for row in rows}
        self._sync.met_untrue(MEMORIES, _untrue(revisions, known, lambda row: row["properties"]["revision"]))
        return {
            key: memory_from_row(row)
            for key, row in known.items()
            if row["passes"] and row["properties"]["revision"] == revisions[key]
        }

    async def lessons(self, query: LessonQuery) -> list[FoundLesson]:
        vector = await self._embedder.query(query.query)
        wanted = max(CANDIDATES, query.limit)
        while True:
            lists = await self._vectors.search_lessons(vector, query, wanted)
            true = await self._verified_lessons([hit for hits in lists for hit in hits], query)
            if len(true) >= query.limit or max(map(len, lists)) < wanted or wanted >= MOST_CANDIDATES:
                break
            wanted = min(wanted * 4, MOST_CANDIDATES)
        scores = [{hit.key: hit.score for hit in hits if hit.key in true} for hits in lists]
        by_lesson, by_context, by_words = scores
        semantic = fuse.combine((0.25, by_lesson), (0.25, by_context), (0.5, by_words))
        vectors = {hit.key: hit.vector for hits in lists for hit in hits if hit.vector is not None}
        return rank_lessons(true, semantic, vectors, query.namespace, query.limit, datetime.now(UTC))

    async def _verified_lessons(self, hits: Sequence[Hit], query: LessonQuery) -> dict[int, Lesson]:
        revisions = {hit.key: hit.revision for hit in hits}
        known = await self._lessons.by_id(revisions)
        self._sync.met_untrue(LESSONS, _untrue(revisions, known, lambda lesson: lesson.revision))
        return {
            key: lesson
            for key, lesson in known.items()
            if lesson.revision == revisions[key]
            and lesson.status == LessonStatus.ACTIVE
            and lesson.confidence >= query.min_confidence
        }


def rank_lessons(
    lessons: Mapping[int, Lesson],
    semantic: Mapping[int, float],
    vectors: Mapping[int, Any],
    namespace: str | None,
    limit: int,
    now: datetime,
) -> list[FoundLesson]:
    """By four factors, times the weight of the scope through which the lesson is seen."""
    keys = sorted(semantic, key=lambda key: (-semantic[key], key))
    if not keys:
        return []
    recencies = [fuse.recency(lessons[key].last_used_at or lessons[key].updated_at, now) for key in keys]
    scopes = [scope_weight(lessons[key], namespace) for key in keys]
    base = [
        fuse.SEMANTIC * semantic[key] + fuse.RELIABILITY * lessons[key].confidence + fuse.RECENCY * recent
        for key, recent in zip(keys, recencies, strict=True)
    ]
    chosen = fuse.choose_diverse(base, scopes, np.stack([vectors[key] for key in keys]), limit)
    found = [
        FoundLesson(
            lesson=lessons[keys[place]],
            score=scopes[place] * (base[place] + fuse.DIVERSITY * diversity),
            semantic=semantic[keys[place]],
            reliability=lessons[keys[place]].confidence,
            recency=recencies[place],
            diversity=diversity,
        )
        for place, diversity in chosen
    ]
    return sorted(found, key=lambda one: -one.score)


def scope_weight(lesson: Lesson, namespace: str | None) -> float:
    """Its own namespace's lessons count whole, the team's and the organisation's a little less."""
    if namespace is None or lesson.namespace == namespace:
        return 1.0
    if lesson.scope == Scope.TEAM and team_of(lesson.namespace) == team_of(namespace):
        return SCOPE_WEIGHTS[Scope.TEAM]
    return SCOPE_WEIGHTS[Scope.ORG]


def _untrue(revisions: Mapping[Any, int], known: Mapping[Any, Any], revision_of: Callable[[Any], int]) -> list[Any]:
    """The keys of rows whose record is gone or in another revision."""
    return [key for key, revision in revisions.items() if key not in known or revision_of(known[key]) != revision]
