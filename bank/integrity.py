"""Compares the two stores, online, and marks what disagrees; `bank/sync.py` then brings the index up to the graph."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bank.milvus import LESSONS, MEMORIES
from bank.vectors import Vectors, comparable
from graph.ids import mint
from graph.model import Value, embedding_id
from graph.session import Graph

PAGE = 1_000


class Disagreements(Value):
    """What a comparison of both stores found."""

    nodes: int
    edges: int
    lessons: int
    node_vectors: int
    lesson_vectors: int
    dangling_pointers: int
    dangling_links: int
    one_sided_links: int
    missing_vectors: int
    orphan_vectors: int
    stale_vectors: int
    pending: int

    @property
    def ok(self) -> bool:
        return not any(
            (
                self.dangling_pointers,
                self.dangling_links,
                self.one_sided_links,
                self.missing_vectors,
                self.orphan_vectors,
                self.stale_vectors,
                self.pending,
            )
        )


LINKS_WRONG = ("dangling_pointers", "dangling_links", "one_sided_links")  # as the statements count them


@dataclass(frozen=True)
class Kind:
    """What differs between memories and lessons: the names of their statements."""

    collection: str
    pending: str
    mark: str
    page: str
    look: str
    settle: str
    first_key: Any


KINDS = (
    Kind(
        collection=MEMORIES,
        pending="pending_memories",
        mark="mark_memories",
        page="memory_keys",
        look="revisions_of_memories",
        settle="settle_memory_removals",
        first_key="",
    ),
    Kind(
        collection=LESSONS,
        pending="pending_lessons",
        mark="mark_lessons",
        page="lesson_keys",
        look="revisions_of_lessons",
        settle="settle_lesson_removals",
        first_key=-1,
    ),
)


class Integrity:
    """Reads both stores a page at a time, so that it needs little memory and disturbs nobody."""

    def __init__(self, graph: Graph, vectors: Vectors) -> None:
        self._graph = graph
        self._vectors = vectors

    def primary_key(self, kind: Kind, key: Any) -> Any:
        """The index row of a record, by the record's own id (a lesson's may come as text)."""
        return embedding_id(self._graph.tenant, key) if kind.collection == MEMORIES else int(key)

    async def pending(self) -> int:
        """Index work that is left."""
        row = (await self._graph.read("pending_count"))[0]
        return int(row["memories"] + row["lessons"] + row["removals"])

    async def lacks_rows(self) -> bool:
        """Whether the index has fewer rows than there are records that nobody has marked, as where an older file of it was put
        back: told by their numbers, without looking at them."""
        (records,), (pending,) = await asyncio.gather(
            self._graph.read("record_counts"), self._graph.read("pending_count")
        )
        marked = {MEMORIES: pending["memories"], LESSONS: pending["lessons"]}
        rows = {name: await self._vectors.count(name) for name in marked}
        return any(rows[name] < records[name] - marked[name] for name in rows)

    async def compare(self, mend: bool = False) -> Disagreements:
        """Compares both stores, online, a page at a time. `mend`: marks and notes what disagrees, for the next drain."""
        memories, lessons = await self._counts()
        if any(counts[name] for counts in (memories, lessons) for name in LINKS_WRONG if name in counts):
            # Both sides of a link are read one after the other, and it may be written in between. What is really wrong is
            # still so a moment later: of two looks the kinder one is right.
            again = await self._counts()
            memories, lessons = (
                {name: min(value, other[name]) if name in LINKS_WRONG else other[name] for name, value in one.items()}
                for one, other in zip((memories, lessons), again, strict=True)
            )
        verdicts: dict[str, str] = {}
        vectors: dict[str, int] = {}
        twins = strays = 0
        for kind in KINDS:
            seen = 0
            async for page in self._vectors.keys(kind.collection):
                seen += len(page)
                strays += await self._strays(kind, [key for key, owner in page if owner is None], mend)
                verdicts |= await self._suspects(kind, [owner for _, owner in page if owner is not None], mend)
            after: Any = kind.first_key
            while rows := await self._graph.read(kind.page, after=after, limit=PAGE):
                after = rows[-1]["key"]
                verdicts |= await self._suspects(kind, [row["key"] for row in rows], mend)
            vectors[kind.collection] = await self._vectors.count(kind.collection)
            if vectors[kind.collection] > seen:
                twins += await self._twins(kind, mend)
        found = list(verdicts.values())
        return Disagreements(
            **memories | lessons | {"one_sided_links": memories["one_sided_links"] + lessons["one_sided_links"]},
            node_vectors=vectors[MEMORIES],
            lesson_vectors=vectors[LESSONS],
            missing_vectors=found.count("missing"),
            orphan_vectors=found.count("orphan") + strays,
            stale_vectors=found.count("stale") + twins,
            pending=await self.pending(),
        )

    async def _counts(self) -> tuple[dict[str, int], dict[str, int]]:
        (memories,) = await self._graph.read("memory_counts")
        (lessons,) = await self._graph.read("lesson_counts")
        return memories, lessons

    async def _suspects(self, kind: Kind, keys: Sequence[Any], mend: bool) -> dict[str, str]:
        """Looks twice: between the two reads of a first look a write may have gone through."""
        verdict = await self.judge(kind, keys)
        verdict = await self.judge(kind, list(verdict)) if verdict else verdict
        if mend:
            await self.mend(kind, verdict)
        return {f"{kind.collection}/{key}": word for key, word in verdict.items()}

    async def judge(self, kind: Kind, keys: Sequence[Any]) -> dict[Any, str]:
        """Which of these are in no state of the table: the row is an orphan, stale, or missing. A record that somebody
        made by hand may have no revision, or name another row than its own: no mark tells that either."""
        primary = {self.primary_key(kind, key): key for key in keys}
        indexed = await self._vectors.revisions_of(kind.collection, list(primary))
        row_of = {key: indexed.get(name) for name, key in primary.items()}
        verdict: dict[Any, str] = {}
        for known in await self._graph.read(kind.look, keys=list(keys)):
            key, row = known["key"], row_of[known["key"]]
            if known["values"] is None:
                if row is not None and not known["removal"]:
                    verdict[key] = "orphan"
            elif (
                None in (known["values"][0]["revision"], known["values"][0]["version"])
                or known["name"] not in (None, self.primary_key(kind, key))
                or (not known["marked"] and row not in [comparable(one) for one in known["values"]])
            ):
                verdict[key] = "missing" if row is None else "stale"
        return verdict

    async def mend(self, kind: Kind, verdict: dict[Any, str]) -> None:
        orphans = [str(key) for key, word in verdict.items() if word == "orphan"]
        others = [key for key, word in verdict.items() if word != "orphan"]
        if orphans:
            await self._graph.run("note_removals", collection=kind.collection, keys=orphans)
        if others:
            await self.mark(kind, others)

    async def mark(self, kind: Kind, keys: Sequence[Any]) -> None:
        rows = [[key, self.primary_key(kind, key)] for key in keys]
        await self._graph.run(kind.mark, rows=rows, revision=mint())

    async def _strays(self, kind: Kind, keys: Sequence[Any], mend: bool) -> int:
        """Rows under keys that no record can have. Nobody else would ever move them, so they are removed at once."""
        if mend:
            await self._vectors.delete(kind.collection, keys)
        return len(keys)

    async def _twins(self, kind: Kind, mend: bool) -> int:
        """Keys that have two rows. The record is marked, and its row then replaces both."""
        found: list[Any] = []
        async for page in self._vectors.keys(kind.collection):
            heaps = [[row for row in page if row[1] is not None]]
            while heaps:
                heap = heaps.pop()
                if not heap or await self._vectors.count(kind.collection, [key for key, _ in heap]) <= len(heap):
                    continue
                if len(heap) == 1:
                    found.append(heap[0][1])
                else:
                    heaps += [heap[: len(heap) // 2], heap[len(heap) // 2 :]]
        if mend and found:
            await self.mark(kind, found)
        return len(found)

    async def mend_links(self) -> None:
        """Makes both sides of every link agree; nothing that either side knows is lost."""
        for statement, start in (("mend_pointers", ""), ("mend_links", -1)):
            after: Any = start
            while after is not None:
                rows = await self._graph.run(statement, after=after, limit=PAGE, revision=mint())
                after = rows[0]["last"]
