"""Lessons that are near each other, page by page over the whole bank: never all pairs, never all lessons in memory.

A page is a few lessons in the order of their ids. Their vectors come from the index, several are searched at once, and
each lesson meets only lessons with larger ids, so that a pair is met once. What the index finds the graph confirms.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from bank.model import Gist, LessonStatus
from bank.vectors import Vectors
from graph.session import Graph

PAGE = 128
AT_ONCE = 16  # vectors in one call, at most
CALL_SECONDS = 0.5  # a call that takes longer keeps the searches of others waiting: the next one has fewer vectors
NEAREST = 20


@dataclass(frozen=True)
class Near:
    """Two lessons, the one with the smaller id first, and how near they are in meaning."""

    one: Gist
    other: Gist
    similarity: float

    @property
    def ids(self) -> tuple[int, int]:
        return self.one.rb_id, self.other.rb_id


@dataclass(frozen=True)
class NearPage:
    """`ids`: the lessons that were looked at; `last`: where to go on; None: there are no more lessons."""

    ids: tuple[int, ...]
    pairs: tuple[Near, ...]
    last: int | None


class Neighbours:
    def __init__(self, graph: Graph, vectors: Vectors) -> None:
        self._graph = graph
        self._vectors = vectors
        self._at_once = AT_ONCE

    async def page(
        self, after: int, namespace: str | None, least: float, sources: bool = False, within: bool = False
    ) -> NearPage:
        """The pairs of the next lessons. `sources`: also pairs that were learnt from the same memory. `within`: only
        pairs of one namespace, however many are nearer in others."""
        rows: list[Any] = await self._graph.read("gists_in_order", after=after, limit=PAGE)
        found = [Gist(*row) for row in rows]
        lessons = {one.rb_id: one for one in found if _counts(one, namespace)}
        near: dict[tuple[int, int], float] = {}
        for own in {one.namespace for one in lessons.values()} if within else {None}:
            some = [rb_id for rb_id, one in lessons.items() if own is None or one.namespace == own]
            near |= await self._near(some, after, least, own)
        if sources:
            near |= {pair: near.get(pair, 0.0) for pair in await self._same_sources(lessons, only_later=True)}
        pairs = await self._confirmed(lessons, near)
        return NearPage(tuple(lessons), pairs, found[-1].rb_id if len(found) == PAGE else None)

    async def of(self, rb_id: int, least: float) -> tuple[Near, ...]:
        """The pairs of one lesson, whatever the ids of the others."""
        near = await self._near([rb_id], -1, least, None)
        near |= {pair: near.get(pair, 0.0) for pair in await self._same_sources([rb_id], only_later=False)}
        return await self._confirmed({}, near)

    async def _near(
        self, lessons: Iterable[int], after: int, least: float, namespace: str | None
    ) -> dict[tuple[int, int], float]:
        vectors = await self._vectors.vectors_of_lessons(lessons)
        ids = sorted(vectors)
        near: dict[tuple[int, int], float] = {}
        while ids:
            some, ids = ids[: self._at_once], ids[self._at_once :]
            began = time.monotonic()
            wanted = [vectors[rb_id] for rb_id in some]
            lists = await self._vectors.later_lessons_near(wanted, after, namespace, NEAREST + 1)
            self._adapt(time.monotonic() - began)
            for rb_id, hits in zip(some, lists, strict=True):
                near |= {
                    _pair(rb_id, hit.key): hit.score
                    for hit in hits
                    if hit.score >= least and hit.key != rb_id and (after < 0 or hit.key > rb_id)
                }
        return near

    def _adapt(self, took: float) -> None:
        if took > CALL_SECONDS:
            self._at_once = max(1, self._at_once // 2)
        elif took < CALL_SECONDS / 4:
            self._at_once = min(AT_ONCE, self._at_once * 2)

    async def _same_sources(self, lessons: Iterable[int], only_later: bool) -> set[tuple[int, int]]:
        rows = await self._graph.read(
            "lessons_of_same_sources", ids=list(lessons), only_later=only_later, limit=NEAREST
        )
        return {_pair(row["rb_id"], other) for row in rows for other in row["others"]}

    async def _confirmed(self, lessons: dict[int, Gist], near: dict[tuple[int, int], float]) -> tuple[Near, ...]:
        others = sorted({end for pair in near for end in pair} - lessons.keys())
        rows: list[Any] = await self._graph.read("gists_of_lessons", ids=others) if others else []
        found = (*lessons.values(), *(Gist(*row) for row in rows))
        known = {one.rb_id: one for one in found if one.status == LessonStatus.ACTIVE}
        return tuple(
            Near(known[one], known[other], similarity)
            for (one, other), similarity in sorted(near.items())
            if one in known and other in known
        )


def _counts(lesson: Gist, namespace: str | None) -> bool:
    return lesson.status == LessonStatus.ACTIVE and (namespace is None or lesson.namespace == namespace)


def _pair(one: int, other: int) -> tuple[int, int]:
    return (one, other) if one < other else (other, one)
