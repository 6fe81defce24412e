"""The index: its rows, and the searches by meaning and by words."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from bank import expressions
from bank.gate import Gate
from bank.hits import Hits, Stamp
from bank.kept import Kept
from bank.milvus import KEYS, LESSONS, MEMORIES, SECONDS, Milvus, Vector
from bank.model import LessonQuery, LessonStatus
from graph.errors import Unavailable
from graph.model import MemoryFilter, embedding_id, memory_of

COMPARED = {MEMORIES: ("revision", "version", "type"), LESSONS: ("revision", "version", "link_nodes")}

WRITE_SECONDS = 8.0  # for what nobody waits for
PAGE = 1_000
PAGE_SECONDS = 30.0
KEPT_VECTORS = 48_000_000  # bytes of them: 30,000 of 384 dimensions


class Vectors:
    """One tenant's rows in Milvus."""

    def __init__(self, milvus: Milvus, tenant: str) -> None:
        self.milvus = milvus
        self._tenant = tenant
        self._kept: Kept[tuple[str, Any, Stamp], Vector] = Kept(KEPT_VECTORS, lambda vector: vector.nbytes)
        self._gate = Gate()
        self._filled: set[str] = set()  # collections that had rows when they were searched last
        self._empty: set[str] = set()  # those that have none, as far as only this process writes to them
        self._written = 0

    # ------------------------------------------------------------ rows

    async def insert(self, collection: str, rows: list[dict[str, Any]], seconds: float = WRITE_SECONDS) -> None:
        """Adds rows that are not there yet: cheap at any size."""
        if rows:
            try:
                await self.milvus.call(self.milvus.client.insert(collection, rows, timeout=seconds), seconds)
            finally:
                self._no_longer_empty(collection)

    async def upsert(self, collection: str, rows: list[dict[str, Any]], seconds: float = WRITE_SECONDS) -> None:
        """Replaces rows, or adds them. Milvus Lite takes the old ones away first, so that for a moment neither is there: no
        search of ours looks then. A server replaces them in one."""
        if rows:

            async def replace() -> None:
                async with self._gate.replacing() if self.milvus.local else contextlib.nullcontext():
                    await self.milvus.client.upsert(collection, rows, timeout=seconds)

            try:
                await self.milvus.call(replace(), seconds)
            finally:
                self._no_longer_empty(collection)

    def _no_longer_empty(self, collection: str) -> None:
        """Also where a write got no answer: it may have been done."""
        self._written += 1
        self._empty.discard(collection)

    async def delete(self, collection: str, keys: Sequence[Any]) -> None:
        if keys:
            ours = expressions.of_rows(self._tenant, KEYS[collection], keys)
            delete = self.milvus.client.delete(collection, filter=ours, timeout=WRITE_SECONDS)
            await self.milvus.call(delete, WRITE_SECONDS)

    async def count(self, collection: str, keys: Sequence[Any] | None = None) -> int:
        """How many rows there are, of these keys or in all; a key that was inserted twice counts twice."""
        expression = (
            expressions.of_tenant(self._tenant)
            if keys is None
            else expressions.of_rows(self._tenant, KEYS[collection], keys)
        )
        return await self._count(collection, expression)

    async def keys(self, collection: str) -> AsyncIterator[list[tuple[Any, Any]]]:
        """Every row's primary key and whose it is, by pages in the order of the keys."""
        key = KEYS[collection]
        last: Any = "" if collection == MEMORIES else -1
        while True:
            rows = await self._query(
                collection,
                expressions.of_rows_after(self._tenant, key, last),
                [key],
                PAGE_SECONDS,
                limit=PAGE,
                # As pymilvus' own iterator asks, which only its blocking client has: otherwise a server may answer with
                # any rows that fit.
                iterator="True",
                reduce_stop_for_best="True",
            )
            if not rows:
                return
            yield [(row[key], self._owner(collection, row[key])) for row in rows]
            last = max(row[key] for row in rows)

    async def revisions_of(self, collection: str, keys: Sequence[Any]) -> dict[Any, dict[str, Any]]:
        """What is indexed, by primary key: the revision, and what else can be compared without reading texts."""
        if not keys:
            return {}
        key = KEYS[collection]
        ours = expressions.of_rows(self._tenant, key, keys)
        rows = await self._query(collection, ours, [key, *COMPARED[collection]])
        rows = sorted(rows, key=lambda row: int(row["revision"]))  # of two of one key the later
        return {row[key]: comparable({name: row[name] for name in COMPARED[collection]}) for row in rows}

    async def _query(
        self, collection: str, expression: str, fields: list[str], seconds: float = SECONDS, **more: Any
    ) -> list[dict[str, Any]]:
        query = self.milvus.client.query(collection, filter=expression, output_fields=fields, timeout=seconds, **more)
        rows: list[dict[str, Any]] = await self.milvus.call(query, seconds)
        return rows

    async def _count(self, collection: str, expression: str) -> int:
        (row,) = await self._query(collection, expression, ["count(*)"])
        return int(row["count(*)"])

    # ------------------------------------------------------------ searches

    async def memories_by_meaning(self, vectors: Sequence[Vector], filter: MemoryFilter, limit: int) -> list[Hits]:
        """Several questions in one call."""
        return await self._searches(
            MEMORIES, "dense_vector", vectors, expressions.of_memories(self._tenant, filter), limit
        )

    async def memories_by_words(self, texts: Sequence[str], filter: MemoryFilter, limit: int) -> list[Hits]:
        """Several questions in one call. A word that stands n times in a text counts n times."""
        return await self._searches(
            MEMORIES, "sparse_vector", texts, expressions.of_memories(self._tenant, filter), limit
        )

    async def memory_vectors(self, stamps: Mapping[str, Stamp]) -> dict[str, Vector]:
        """By id; a memory that is indexed as something else is left out."""
        return await self._stored_vectors(MEMORIES, "dense_vector", stamps)

    async def lessons_by_meaning(self, vector: Vector, query: LessonQuery, limit: int) -> tuple[Hits, Hits]:
        """By the meaning of the lesson, and by that of its context."""
        expression = expressions.of_lessons(self._tenant, query)
        (by_lesson,), (by_context,) = await asyncio.gather(
            self._searches(LESSONS, "key_lesson_vector", [vector], expression, limit),
            self._searches(LESSONS, "context_to_prefer_vector", [vector], expression, limit),
        )
        return by_lesson, by_context

    async def lessons_by_words(self, query: LessonQuery, limit: int) -> Hits:
        """By the words of their contexts."""
        expression = expressions.of_lessons(self._tenant, query)
        (found,) = await self._searches(LESSONS, "context_sparse_vector", [query.query], expression, limit)
        return found

    async def near_lessons(
        self, vectors: Sequence[Vector], namespace: str | None, limit: int, status: LessonStatus | None = None
    ) -> list[Hits]:
        """The lessons of a namespace or of all, whatever their status unless one is asked for, that are nearest in meaning
        to each of these vectors."""
        expression = expressions.of_namespace(self._tenant, namespace, status)
        return await self._searches(LESSONS, "key_lesson_vector", vectors, expression, limit)

    async def lesson_vectors(self, stamps: Mapping[int, Stamp]) -> dict[int, Vector]:
        """By rb_id; a lesson that is indexed as something else is left out."""
        return await self._stored_vectors(LESSONS, "key_lesson_vector", stamps)

    async def vectors_of_lessons(self, rb_ids: Iterable[int]) -> dict[int, tuple[int, Vector]]:
        """By rb_id, with the revision in which it is indexed; for whoever goes through all of them: nothing is kept."""
        rows = await self._rows_with_vectors(LESSONS, "key_lesson_vector", rb_ids)
        return {row["rb_id"]: (row["revision"], np.asarray(row["key_lesson_vector"], np.float32)) for row in rows}

    async def _stored_vectors(self, collection: str, field: str, stamps: Mapping[Any, Stamp]) -> dict[Any, Vector]:
        """Those asked for last are kept: a revision names one content for ever, and so one vector."""
        kept = {key: self._kept.get((collection, key, stamp)) for key, stamp in stamps.items()}
        found = {key: vector for key, vector in kept.items() if vector is not None}
        missing = [key for key in stamps if key not in found]
        for row in await self._rows_with_vectors(collection, field, missing):
            key, stamp = self._owner(collection, row[KEYS[collection]]), (row["revision"], row["version"])
            vector = np.asarray(row[field], np.float32)
            self._kept.put((collection, key, stamp), vector)
            if stamp == stamps[key]:
                found[key] = vector
        return found

    def _owner(self, collection: str, key: Any) -> Any:
        """Whose row this is: a memory's id, or a lesson's; None: of no memory."""
        return memory_of(self._tenant, key) if collection == MEMORIES else key

    async def _rows_with_vectors(self, collection: str, field: str, owners: Iterable[Any]) -> list[dict[str, Any]]:
        keys = [embedding_id(self._tenant, one) if collection == MEMORIES else one for one in owners]
        if not keys:
            return []
        ours = expressions.of_rows(self._tenant, KEYS[collection], keys)
        return await self._query(collection, ours, [KEYS[collection], "revision", "version", field])

    async def _searches(
        self, collection: str, field: str, wanted: Sequence[Vector] | Sequence[str], expression: str, limit: int
    ) -> list[Hits]:
        """A list of hits for each thing wanted."""
        if not wanted:
            return []
        if await self._is_empty(collection):
            return [Hits() for _ in wanted]

        async def look() -> Any:
            async with self._gate.looking():
                # Without `timeout`, for which pymilvus makes a task: `call` and the request itself have one.
                return await self.milvus.client.search(
                    collection,
                    wanted,
                    anns_field=field,
                    filter=expression,
                    limit=limit,
                    output_fields=["revision", "version"],
                )

        try:
            found = await self.milvus.call(look())
        except Unavailable:
            self._filled.discard(collection)  # its last row may be gone
            if isinstance(wanted[0], str) and await self._is_empty(collection):
                return [Hits() for _ in wanted]
            raise
        return _hits(found, collection, self._tenant)

    async def _is_empty(self, collection: str) -> bool:
        """Without rows Milvus Lite cannot compute BM25, and complains aloud: it is not asked then."""
        if collection in self._filled:
            return False
        if collection in self._empty:
            return True
        written = self._written
        if await self._count(collection, expression="") == 0:
            if self.milvus.local and written == self._written:
                self._empty.add(collection)
            return True
        self._filled.add(collection)
        return False


def _hits(found: Any, collection: str, tenant: str) -> list[Hits]:
    """The lists of hits in what a search returned in columns, one list after the other. Whose a row is its key says, whatever
    record it names; one whose key no memory can have is nobody's."""
    fields = {field.field_name: field.scalars.long_data.data for field in found.fields_data}
    if not fields:
        return [Hits() for _ in found.topks]
    ends = list(itertools.accumulate(found.topks, initial=0))
    columns = [fields["revision"], fields["version"], found.scores]
    if collection == LESSONS:
        columns.insert(0, found.ids.int_id.data)
    else:
        columns.insert(0, owners := [memory_of(tenant, key) for key in found.ids.str_id.data])
        if None in owners:
            named = [id is not None for id in owners]
            columns = [list(itertools.compress(column, named)) for column in columns]
            ends = [sum(named[:end]) for end in ends]
    return [Hits.of(*(column[a:b] for column in columns)) for a, b in itertools.pairwise(ends)]


def comparable(values: Mapping[str, Any]) -> dict[str, Any]:
    """Lists in one order, whichever store they come from. Somebody may have put anything into a record by hand."""
    return {name: sorted(value, key=repr) if isinstance(value, list) else value for name, value in values.items()}
