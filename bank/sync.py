"""THE AGREEMENT of the two stores: the graph is the record, Milvus follows, and nothing else moves an index row.

A record (a memory or a lesson) is in one of these states; `revision` names one content of it for ever.

  state     graph                         index row            how it goes on
  --------  ----------------------------  -------------------  ---------------------------------------------------
  marked    there, to_index               none, old or new     indexed: row := the record; then the mark is cleared
                                                               if the revision is still the one indexed
  settled   there, no mark                of that revision     a write changes the revision and sets the mark, in
                                                               one transaction
  leaving   gone, a Removal is noted      any                  row deleted; then the Removal is dropped, and a record
                                                               that came back meanwhile is marked
  gone      gone, nothing noted           none                 a write makes it anew, with a new revision

The graph transaction that moves a record to `marked` or `leaving` is the acknowledgement. A row whose revision is not
the record's is never an answer, so every state but `settled` only costs recall, never truth. A crash leaves a mark or a
Removal, which the next round takes up. What no mark tells (an indexer that slept, woke late and overwrote a newer row)
the sweep finds: it compares revisions on both sides, at start and now and then.
"""

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bank.embed import Embedder
from bank.model import Lesson
from bank.vectors import LESSONS, MEMORIES, Vectors, lesson_row, memory_row
from graph.errors import CairnError, Unavailable
from graph.ids import COUNTER_BITS, mint
from graph.model import Memory, Value, embedding_id, memory_from_row
from graph.session import Graph

log = logging.getLogger("cairn.sync")

ROUND = 128  # records embedded and written at once: small enough that a short write need not wait long for a long one
ANOTHERS_SECONDS = 30.0  # a mark younger than this may be the business of another process that is still at it
IDLE_SECONDS = 1.0
SWEEP_SECONDS = 600.0
PAGE = 1_000


@dataclass(frozen=True)
class Change:
    """A record that was written. `fresh`: the index has no row of it."""

    record: Memory | Lesson
    fresh: bool = False


@dataclass
class Job:
    """What one request wrote, and the promise it waits for."""

    revision: int
    changes: deque[Change]
    done: asyncio.Future[bool]


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


@dataclass(frozen=True)
class Kind:
    """What differs between memories and lessons: the names of their statements."""

    collection: str
    pending: str
    clear: str
    mark: str
    page: str
    look: str
    settle: str
    first_key: Any


KINDS = (
    Kind(
        collection=MEMORIES,
        pending="pending_memories",
        clear="clear_memory_marks",
        mark="mark_memories",
        page="memory_revisions",
        look="revisions_of_memories",
        settle="settle_memory_removals",
        first_key="",
    ),
    Kind(
        collection=LESSONS,
        pending="pending_lessons",
        clear="clear_lesson_marks",
        mark="mark_lessons",
        page="lesson_revisions",
        look="revisions_of_lessons",
        settle="settle_lesson_removals",
        first_key=-1,
    ),
)


class Sync:
    """Brings the index up to the graph. One loop a process moves all rows, so that it never races with itself.

    `alone`: no other process writes to this index (Milvus Lite). Then every mark is ours, and a new record can be
    inserted, which costs the same at any size; otherwise rows are upserted, so that two indexers of one record cannot
    leave two rows.
    """

    def __init__(self, graph: Graph, vectors: Vectors, embedder: Embedder, alone: bool) -> None:
        self._graph = graph
        self._vectors = vectors
        self._embedder = embedder
        self._alone = alone
        self._jobs: deque[Job] = deque()
        self._under_way: set[int] = set()  # revisions that a request of ours is writing or waiting for
        self._given_up: set[int] = set()  # revisions of ours that Milvus was away for
        self._work = asyncio.Event()
        self._turn = asyncio.Lock()
        self._loop: asyncio.Task[None] | None = None
        self._swept = float("-inf")
        self._background: set[asyncio.Task[None]] = set()
        self.trouble: str | None = None  # why the index cannot be written just now

    async def open(self, start: bool = True) -> None:
        """Opens the index and starts the loop. A Milvus that is away is no reason not to start: it is looked for again.
        `start` False: whatever is in the index, it is about to be made anew."""
        try:
            await self._vectors.connect()
            if start:
                await self._vectors.open()
        except Unavailable as error:
            if not start:
                raise
            log.warning("the index waits: %s", error)
            self.trouble = str(error)
        if start:
            self._loop = asyncio.create_task(self._run(), name="cairn-sync")

    async def stop(self) -> None:
        """Ends the loop; whoever waits is answered, the marks stay for the next start."""
        for task in (self._loop, *self._background):
            if task is not None:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        self._give_up_waiting()

    # ------------------------------------------------------------ what a request does

    @contextlib.asynccontextmanager
    async def writing(self) -> AsyncIterator[int]:
        """Gives a write its revision. Until the write is indexed, or given up, no drain of ours takes its marks."""
        revision = mint()
        self._under_way.add(revision)
        try:
            yield revision
        finally:
            if not any(job.revision == revision for job in self._jobs):
                self._under_way.discard(revision)

    async def index(self, revision: int, changes: Sequence[Change]) -> bool:
        """Indexes what a committed write changed and waits for it. False: Milvus is away; the marks stay."""
        if not changes:
            return True
        if self.trouble is not None:
            self._given_up.add(revision)
            return False
        job = Job(revision, deque(changes), asyncio.get_running_loop().create_future())
        self._jobs.append(job)
        self._work.set()
        return await job.done

    def removed(self) -> None:
        """A deletion was committed: its row is removed soon. Until then no search shows it."""
        self._work.set()

    def met_untrue(self, collection: str, keys: Sequence[Any]) -> None:
        """A search met rows that are not true: they are mended, behind the answer's back."""
        if keys:
            task = asyncio.create_task(self._mend_met(collection, list(keys)))
            self._background.add(task)
            task.add_done_callback(self._background.discard)

    async def pending(self) -> int:
        row = (await self._graph.read("pending_count"))[0]
        return int(row["memories"] + row["lessons"] + row["removals"])

    # ------------------------------------------------------------ the loop

    async def _run(self) -> None:
        while True:
            try:
                await self._round()
                if not self._jobs:
                    if await self.pending():
                        await self.drain()
                    if time.monotonic() - self._swept > SWEEP_SECONDS:
                        await self.sweep()
                self.trouble = None
            except CairnError as error:
                if self.trouble is None:
                    log.warning("the index waits: %s", error)
                self.trouble = str(error)
                self._give_up_waiting()
                await asyncio.sleep(IDLE_SECONDS)
                await self._look_again()
                continue
            if not self._jobs:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._work.wait(), IDLE_SECONDS)
                self._work.clear()

    async def _look_again(self) -> None:
        """Milvus was away, or is: connects anew."""
        if await self._vectors.check() is None:
            return
        try:
            async with self._turn:
                await self._vectors.connect()
                await self._vectors.open()
        except CairnError as error:
            self.trouble = str(error)

    async def _round(self) -> None:
        """A fair share of every waiting request."""
        if not self._jobs:
            return
        async with self._turn:
            share = max(1, ROUND // len(self._jobs))
            taken = [(job, [job.changes.popleft() for _ in range(min(share, len(job.changes)))]) for job in self._jobs]
            await self._write_rows([change for _, changes in taken for change in changes])
            for job, _ in taken:
                if not job.changes:
                    self._resolve(job, True)
            self._jobs = deque(job for job in self._jobs if job.changes)

    def _give_up_waiting(self) -> None:
        """Whoever waits is answered: the write is stored and marked, it becomes searchable later."""
        for job in self._jobs:
            self._given_up.add(job.revision)
            self._resolve(job, False)
        self._jobs.clear()

    def _resolve(self, job: Job, indexed: bool) -> None:
        self._under_way.discard(job.revision)
        if not job.done.done():
            job.done.set_result(indexed)

    async def _write_rows(self, changes: Sequence[Change]) -> None:
        """marked -> settled"""
        memories = [(change.record, change.fresh) for change in changes if isinstance(change.record, Memory)]
        lessons = [(change.record, change.fresh) for change in changes if isinstance(change.record, Lesson)]
        texts = [memory.text for memory, _ in memories]
        texts += [text for lesson, _ in lessons for text in (lesson.key_lesson, lesson.context_to_prefer)]
        vectors = iter(await self._embedder.passages(texts))
        tenant = self._graph.tenant
        rows: dict[tuple[str, bool], list[dict[str, Any]]] = {}
        for memory, fresh in memories:
            row = memory_row(memory, tenant, next(vectors))
            rows.setdefault((MEMORIES, fresh and self._alone), []).append(row)
        for lesson, fresh in lessons:
            row = lesson_row(lesson, tenant, next(vectors), next(vectors))
            rows.setdefault((LESSONS, fresh and self._alone), []).append(row)
        for (collection, fresh), some in rows.items():
            await (self._vectors.insert if fresh else self._vectors.upsert)(collection, some)
        if memories:
            indexed = sorted([memory.id, memory.revision] for memory, _ in memories)
            await self._graph.run("clear_memory_marks", rows=indexed)
        if lessons:
            learnt = sorted([lesson.rb_id, lesson.revision] for lesson, _ in lessons)
            await self._graph.run("clear_lesson_marks", rows=learnt)

    # ------------------------------------------------------------ what others left

    async def drain(self, progress: Callable[[int], None] = lambda done: None) -> None:
        """Indexes every marked record that nobody is at, and removes every row that is noted for removal."""
        done = 0
        async with self._turn:
            for kind in KINDS:
                while due := await self._due(kind):
                    await self._write_rows([Change(record) for record in due])
                    done += len(due)
                    progress(done)
                while keys := [
                    row["key"]
                    for row in await self._graph.read("pending_removals", collection=kind.collection, limit=PAGE)
                ]:
                    await self._vectors.delete(kind.collection, [self._primary(kind, key) for key in keys])
                    await self._graph.run(kind.settle, keys=keys)
            self._given_up.clear()

    async def _due(self, kind: Kind) -> list[Memory | Lesson]:
        rows = await self._graph.read(
            kind.pending,
            limit=ROUND,
            under_way=list(self._under_way),
            all=self._alone,
            given_up=list(self._given_up),
            older_than=mint() - (int(ANOTHERS_SECONDS * 1000) << COUNTER_BITS),
        )
        if kind.collection == MEMORIES:
            return [memory_from_row(row) for row in rows]
        return [Lesson.from_row(row["properties"]) for row in rows]

    def _primary(self, kind: Kind, key: Any) -> Any:
        return embedding_id(self._graph.tenant, key) if kind.collection == MEMORIES else int(key)

    async def _mend_met(self, collection: str, keys: list[Any]) -> None:
        kind = next(kind for kind in KINDS if kind.collection == collection)
        with contextlib.suppress(Unavailable):  # the next sweep does it
            await self._mend(kind, await self._judge(kind, keys))
            self._work.set()

    # ------------------------------------------------------------ comparing and mending

    async def compare(self, mend: bool = False) -> Disagreements:
        """Compares both stores, online, a page at a time. `mend`: marks and notes what disagrees, for the next drain."""
        (memories,) = await self._graph.read("memory_counts")
        (lessons,) = await self._graph.read("lesson_counts")
        verdicts: dict[str, str] = {}
        vectors: dict[str, int] = {}
        twins = 0
        for kind in KINDS:
            seen = 0
            async for page in self._vectors.revisions(kind.collection):
                seen += len(page)
                verdicts |= await self._suspects(kind, [owner for _, owner, _ in page], mend)
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
            orphan_vectors=found.count("orphan"),
            stale_vectors=found.count("stale") + twins,
            pending=await self.pending(),
        )

    async def _suspects(self, kind: Kind, keys: Sequence[Any], mend: bool) -> dict[str, str]:
        """Looks twice: between the two reads of a first look a write may have gone through."""
        verdict = await self._judge(kind, keys)
        verdict = await self._judge(kind, list(verdict)) if verdict else verdict
        if mend:
            await self._mend(kind, verdict)
        return {f"{kind.collection}/{key}": word for key, word in verdict.items()}

    async def _judge(self, kind: Kind, keys: Sequence[Any]) -> dict[Any, str]:
        """Which of these are in no state of the table: the row is an orphan, stale, or missing."""
        primary = {self._primary(kind, key): key for key in keys}
        indexed = await self._vectors.revisions_of(kind.collection, list(primary))
        row_of = {key: indexed.get(name) for name, key in primary.items()}
        verdict: dict[Any, str] = {}
        for known in await self._graph.read(kind.look, keys=list(keys)):
            key, row = known["key"], row_of[known["key"]]
            if known["revision"] is None:
                if row is not None and not known["removal"]:
                    verdict[key] = "orphan"
            elif not known["marked"] and row != known["revision"]:
                verdict[key] = "missing" if row is None else "stale"
        return verdict

    async def _mend(self, kind: Kind, verdict: dict[Any, str]) -> None:
        orphans = [str(key) for key, word in verdict.items() if word == "orphan"]
        others = [key for key, word in verdict.items() if word != "orphan"]
        if orphans:
            await self._graph.run("note_removals", collection=kind.collection, keys=orphans)
        if others:
            await self._graph.run(kind.mark, keys=others)

    async def _twins(self, kind: Kind, mend: bool) -> int:
        """Keys that have two rows. A removal takes both, and marks the record, which is then indexed once."""
        found: list[Any] = []
        async for page in self._vectors.revisions(kind.collection):
            heaps = [page]
            while heaps:
                heap = heaps.pop()
                if await self._vectors.count(kind.collection, [key for key, _, _ in heap]) <= len(heap):
                    continue
                if len(heap) == 1:
                    found.append(heap[0][1])
                else:
                    heaps += [heap[: len(heap) // 2], heap[len(heap) // 2 :]]
        if mend and found:
            await self._graph.run("note_removals", collection=kind.collection, keys=[str(key) for key in found])
        return len(found)

    async def sweep(self) -> None:
        """Finds and mends what no mark tells."""
        if missing := await self._vectors.missing_collections():
            log.warning("the collection %s is gone; it is made anew", ", ".join(missing))
            await self._vectors.open()
        found = await self.compare(mend=True)
        self._swept = time.monotonic()
        if not found.ok:
            log.info("the sweep mends %s", found.model_dump())

    async def repair(self) -> Disagreements:
        """Mends every disagreement: links on both sides, rows that are missing, stale or without a record."""
        for statement, start in (("mend_pointers", ""), ("mend_links", -1)):
            after: Any = start
            while after is not None:
                rows = await self._graph.run(statement, after=after, limit=PAGE, revision=mint())
                after = rows[0]["last"]
        await self.sweep()
        await self.drain()
        return await self.compare()

    async def reembed(self, progress: Callable[[int, int], None]) -> int:
        """Drops the index, marks everything and indexes it with the embedder that is set."""
        await self._vectors.rebuild()
        total = 0
        for kind in KINDS:
            after: Any = kind.first_key
            while rows := await self._graph.read(kind.page, after=after, limit=PAGE):
                after = rows[-1]["key"]
                await self._graph.run(kind.mark, keys=[row["key"] for row in rows])
                total += len(rows)
        await self.drain(progress=lambda done: progress(done, total))
        return total
