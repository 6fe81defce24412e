"""Lessons that are near each other, page by page over the whole bank: never all pairs, never all lessons in memory.

A page is a few lessons in the order of their ids. Their vectors come from the index, several are searched at once, and
each lesson meets its nearest whatever their ids: in a crowd of like lessons only one of two may have the other among its
nearest. A pair that both pages meet is told by the first of them. What the index finds the graph confirms.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
class Met:
    """How near two lessons are by the index, and of which revisions its rows are: of others this is not true. `shared`: they
    were learnt from the same memory, whatever the index says."""

    similarity: float = 0.0
    revisions: Mapping[int, int] = field(default_factory=dict)
    shared: bool = False

    def holds(self, lessons: Mapping[int, Gist]) -> bool:
        return all(lessons[rb_id].revision == revision for rb_id, revision in self.revisions.items())


@dataclass(frozen=True)
class NearPage:
    """`ids`: the lessons whose neighbours these are; `looked_at`: how many lessons, in whatever status or namespace;
    `last`: where to go on; None: there are no more lessons."""

    ids: tuple[int, ...]
    pairs: tuple[Near, ...]
    looked_at: int
    last: int | None


@dataclass(frozen=True)
class Wanted:
    """Which pairs: at least so near in meaning; with a lesson of this namespace. `sources`: also pairs that were learnt
    from the same memory. `within`: only pairs of one namespace, however many are nearer in others."""

    least: float
    namespace: str | None = None
    sources: bool = False
    within: bool = False

    def has(self, lesson: Gist) -> bool:
        return lesson.status == LessonStatus.ACTIVE and self.namespace in (None, lesson.namespace)


class Neighbours:
    def __init__(self, graph: Graph, vectors: Vectors) -> None:
        self._graph = graph
        self._vectors = vectors
        self._at_once = AT_ONCE

    async def page(self, after: int, wanted: Wanted) -> NearPage:
        """The pairs of the next lessons."""
        rows: list[Any] = await self._graph.read("gists_in_order", after=after, limit=PAGE)
        found = [Gist(*row) for row in rows]
        lessons = {one.rb_id: one for one in found if wanted.has(one)}
        pairs = await self._confirmed(lessons, await self._met(lessons, wanted))
        return NearPage(tuple(lessons), pairs, len(found), found[-1].rb_id if len(found) == PAGE else None)

    async def not_told_before(self, after: int, pairs: Sequence[Near], wanted: Wanted) -> list[Near]:
        """Of the pairs of the page behind this id, those that no earlier page has met. Only few are worth asking for:
        those of which something is to be told."""
        earlier = {near.one.rb_id: near.one for near in pairs if near.one.rb_id <= after and wanted.has(near.one)}
        told = (
            {near.ids for near in await self._confirmed(earlier, await self._met(earlier, wanted))}
            if earlier
            else set()
        )
        return [near for near in pairs if near.one.rb_id > after or near.ids not in told]

    async def of(self, rb_id: int, wanted: Wanted) -> tuple[Near, ...]:
        """The pairs of one lesson; with a namespace, those whose other end is in it."""
        near = await self._near([rb_id], wanted.least, wanted.namespace)
        near |= _shared(near, await self._same_sources([rb_id], only_later=False))
        found = await self._confirmed({}, near)
        return tuple(one for one in found if wanted.has(one.other if one.one.rb_id == rb_id else one.one))

    async def _met(self, lessons: Mapping[int, Gist], wanted: Wanted) -> dict[tuple[int, int], Met]:
        near: dict[tuple[int, int], Met] = {}
        for own in {one.namespace for one in lessons.values()} if wanted.within else {None}:
            some = [rb_id for rb_id, one in lessons.items() if own is None or one.namespace == own]
            near |= await self._near(some, wanted.least, own)
        if wanted.sources:
            found = await self._same_sources(lessons, only_later=True, namespace=wanted.namespace)
            near |= _shared(near, found)
        return near

    async def _near(self, lessons: Iterable[int], least: float, namespace: str | None) -> dict[tuple[int, int], Met]:
        vectors = await self._vectors.vectors_of_lessons(lessons)
        ids = sorted(vectors)
        near: dict[tuple[int, int], Met] = {}
        while ids:
            some, ids = ids[: self._at_once], ids[self._at_once :]
            began = time.monotonic()
            wanted = [vectors[rb_id][1] for rb_id in some]
            lists = await self._vectors.near_lessons(wanted, namespace, NEAREST + 1, LessonStatus.ACTIVE)
            self._adapt(time.monotonic() - began)
            for rb_id, hits in zip(some, lists, strict=True):
                own = vectors[rb_id][0]
                near |= {
                    _pair(rb_id, key): Met(score, {rb_id: own, key: hits.stamps[key][0]})
                    for key, score in hits.scores.items()
                    if score >= least and key != rb_id
                }
        return near

    def _adapt(self, took: float) -> None:
        if took > CALL_SECONDS:
            self._at_once = max(1, self._at_once // 2)
        elif took < CALL_SECONDS / 4:
            self._at_once = min(AT_ONCE, self._at_once * 2)

    async def _same_sources(
        self, lessons: Iterable[int], only_later: bool, namespace: str | None = None
    ) -> set[tuple[int, int]]:
        rows = await self._graph.read(
            "lessons_of_same_sources", ids=list(lessons), only_later=only_later, namespace=namespace, limit=NEAREST
        )
        return {_pair(row["rb_id"], other) for row in rows for other in row["others"]}

    async def _confirmed(self, lessons: Mapping[int, Gist], near: dict[tuple[int, int], Met]) -> tuple[Near, ...]:
        others = sorted({end for pair in near for end in pair} - lessons.keys())
        rows: list[Any] = await self._graph.read("gists_of_lessons", ids=others) if others else []
        found = (*lessons.values(), *(Gist(*row) for row in rows))
        known = {one.rb_id: one for one in found if one.status == LessonStatus.ACTIVE}
        return tuple(
            Near(known[one], known[other], met.similarity if met.holds(known) else 0.0)
            for (one, other), met in sorted(near.items(), key=lambda pair: pair[0])
            if one in known and other in known and (met.shared or met.holds(known))
        )


def _shared(near: Mapping[tuple[int, int], Met], pairs: Iterable[tuple[int, int]]) -> dict[tuple[int, int], Met]:
    return {pair: replace(near.get(pair, Met()), shared=True) for pair in pairs}


def _pair(one: int, other: int) -> tuple[int, int]:
    return (one, other) if one < other else (other, one)
