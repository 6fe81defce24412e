"""THE AGREEMENT of the two stores: the graph is the record, Milvus follows, and nothing else moves an index row.

A record (a memory or a lesson) is in one of these states; `revision` names one content of it for ever.

  state     graph                         index row            how it goes on
  --------  ----------------------------  -------------------  ---------------------------------------------------
  marked    there, to_index               none, old or new     indexed: row := the record; then the mark is cleared
                                                               if the revision is still the one indexed; if not, this
                                                               row may have replaced a newer one, so the record gets
                                                               a new revision and stays marked; a Removal is noted if
                                                               it is gone (marks are cleared a moment later, many at
                                                               once)
  settled   there, no mark                of that revision     a write changes the revision and sets the mark, in
                                                               one transaction
  leaving   gone, a Removal is noted      any                  row deleted; then the Removal is dropped, if it was not
                                                               noted anew; a record that came back meanwhile, whose
                                                               row that may have been, gets a new revision and a mark
  back      there, a Removal is noted     none, old or new     the Removal is dropped, if the record is still there:
                                                               its own write has marked it, and its row replaces
                                                               the old one
  gone      gone, nothing noted           none                 a write makes it anew, with a new revision

A new revision where another process may have been at the row: the mark that this process clears late is meant for the
old one. Where no other process moves rows, nobody can have been, and nobody gets one.

The graph transaction that moves a record to `marked` or `leaving` is the acknowledgement. A row whose revision or
version is not the record's is never an answer, so every state but `settled` only costs recall, never truth. A crash
leaves a mark or a Removal, which the next round takes up. What no mark tells (an indexer that slept, woke late,
overwrote a newer row and died before it could look again) the sweep finds: it compares revisions on both sides, at
start and now and then. Without a crash there is nothing for it to find.

`ACTORS` below says the same as data: who does what in which order, a step being one transaction or one call to Milvus.
A test walks through every interleaving of these steps, with crashes and late wake-ups.
"""

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from bank.embed import Embedder
from bank.integrity import KINDS, PAGE, Disagreements, Integrity, Kind
from bank.milvus import LESSONS, MEMORIES, SECONDS, IndexAway
from bank.model import Lesson
from bank.reading import ReadAhead
from bank.rows import lesson_row, memory_row
from bank.vectors import WRITE_SECONDS, Vectors
from graph.errors import CairnError, Unavailable
from graph.ids import COUNTER_BITS, mint
from graph.model import Memory, MemoryType, memory_from_row
from graph.session import Graph
from graph.tasks import end

log = logging.getLogger("cairn.sync")


class Pair(NamedTuple):
    """Both stores' view of one record."""

    record: int | None = None  # its revision in the graph; None: there is none
    marked: bool = False
    removal: int | None = None  # which note of a Removal it is; None: none is noted
    row: int | None = None  # its revision in the index; None: no row
    last: int = 0  # the last number that was given to a revision or a note


# What an actor holds from its steps before: a revision, a row's revision, or a note and whether the record was back.
Held = int | tuple[int, bool] | None
# A step: from what both stores hold, and what the actor holds, to the same afterwards.
Step = Callable[[Pair, Held], tuple[Pair, Held]]


def _renewed(pair: Pair) -> Pair:
    return pair._replace(record=pair.last + 1, marked=True, last=pair.last + 1)


def _noted(pair: Pair) -> Pair:
    return pair._replace(removal=pair.last + 1, last=pair.last + 1)


def _read_marked(pair: Pair, held: Held) -> tuple[Pair, Held]:
    return pair, pair.record if pair.marked else None


def _put_row(pair: Pair, held: Held) -> tuple[Pair, Held]:
    assert isinstance(held, int)
    return pair._replace(row=held), held


def _clear_mark(pair: Pair, held: Held) -> tuple[Pair, Held]:
    if pair.record is None:
        return _noted(pair), None
    return (pair._replace(marked=False) if pair.record == held else _renewed(pair)), None


def _read_removal(pair: Pair, held: Held) -> tuple[Pair, Held]:
    return pair, None if pair.removal is None else (pair.removal, pair.record is not None)


def _drop_row(pair: Pair, held: Held) -> tuple[Pair, Held]:
    assert isinstance(held, tuple)
    _, back = held
    return (pair if back else pair._replace(row=None)), held


def _settle_removal(pair: Pair, held: Held) -> tuple[Pair, Held]:
    assert isinstance(held, tuple)
    note, back = held
    if pair.removal == note and not (back and pair.record is None):
        pair = pair._replace(removal=None)
    return (_renewed(pair) if pair.record is not None and not back else pair), None


def _read_row(pair: Pair, held: Held) -> tuple[Pair, Held]:
    return pair, pair.row


def _judge(pair: Pair, held: Held) -> tuple[Pair, Held]:
    if pair.record is None:
        return (_noted(pair) if held is not None and pair.removal is None else pair), None
    settled = pair.marked or held == pair.record
    return (pair if settled else pair._replace(marked=True)), None


ACTORS: dict[str, tuple[Step, ...]] = {
    "indexer": (_read_marked, _put_row, _clear_mark),
    "remover": (_read_removal, _drop_row, _settle_removal),
    "sweeper": (_read_row, _judge),
}


def written(pair: Pair) -> Pair:
    """The transaction of a write: its commit is the acknowledgement."""
    return _renewed(pair)


def deleted(pair: Pair) -> Pair:
    return _noted(pair._replace(record=None, marked=False))


ROUND = 128  # records embedded and written at once: small enough that a short write need not wait long for a long one
FEW = 8  # new memories on their way to the index that a search would wait for rather than their writers
MOMENT_SECONDS = 0.5
AHEAD = 256  # texts embedded before their write is stored; the rest follows with it
LAST = 2**63 - 1
ANOTHERS_SECONDS = 10.0  # a mark younger than this may be the business of another process that is still at it
CLEARED = 512  # marks that are cleared at once while writes come in
QUIET_SECONDS = 0.2  # without a write, after which they are cleared however few they are
IDLE_SECONDS = 1.0
OTHERS_SECONDS = 5.0  # the longest that writes which follow each other keep the loop from looking at anything else
SWEEP_SECONDS = 600.0
LATE_SECONDS = 30.0  # after which a call to Milvus that got no answer is done, if ever


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
    ahead: bool  # its writer has its answer already, and whoever searches waits for it


class Sync:
    """Brings the index up to the graph. In a process one at a time moves rows, a batch each, so that it never races with
    itself and a write waits for one batch of a repair, not for all of it.

    `alone`: no other process writes to this index (Milvus Lite). Then every mark is ours, and a new record can be
    inserted, which costs the same at any size; otherwise rows are upserted, so that two indexers of one record cannot
    leave two rows.
    """

    def __init__(self, graph: Graph, vectors: Vectors, embedder: Embedder, reading: ReadAhead, alone: bool) -> None:
        self._graph = graph
        self._reading = reading
        self._vectors = vectors
        self._milvus = vectors.milvus
        self._embedder = embedder
        self._alone = alone
        self._integrity = Integrity(graph, vectors)
        self._jobs: deque[Job] = deque()
        self._under_way: set[int] = set()  # revisions that a request of ours is writing or waiting for
        self._queued: set[int] = set()  # those of them that the loop has not finished with
        self._arriving: dict[int, asyncio.Future[bool]] = {}  # those of them that the index does not have yet
        self._given_up = 0  # the last revision of ours that Milvus was away for
        self._incomplete = False  # the index lacks, or may lack, what was acknowledged before: a sweep will tell
        self._indexed: dict[str | int, Change] = {}  # in the index by their ids, their marks still to be cleared
        self._clearing: dict[str | int, Change] = {}  # those of them whose marks are being cleared
        self._with_row: set[str | int] = set()  # those that had changed by then: whatever is made anew, they have a row
        self._answered: list[Job] = []  # all that these wrote is in the index
        self._work = asyncio.Event()
        self._turn = asyncio.Lock()
        self._batches = 0  # of a repair or a catch-up, that have the turn or wait for it
        self._embedding = 0  # texts that are embedded before their write is stored
        self._settling = asyncio.Lock()
        self._unsettled = 0  # times that the graph did not answer meanwhile
        self._loop: asyncio.Task[None] | None = None
        self._swept = float("-inf")
        self._background: set[asyncio.Task[None]] = set()
        self.trouble: str | None = None  # why the index cannot be written just now
        self.index_away: str | None = None  # why it cannot be asked

    async def open(self, start: bool = True) -> None:
        """Opens the index and starts the loop. A Milvus that is away is no reason not to start: it is looked for again.
        `start` False: whatever is in the index, it is about to be made anew."""
        try:
            await self._milvus.connect()
            if start:
                await self._milvus.open()
                self._incomplete = await self._integrity.pending() > 0 or await self._integrity.lacks_rows()
        except Unavailable as error:
            if not start:
                raise
            self._incomplete = True  # nobody has seen what an earlier process left
            log.warning("the index waits: %s", error)
            self.trouble = str(error)
        if start:
            self._work.set()  # what the last run has left is taken up at once
            self._loop = asyncio.create_task(self._run(), name="cairn-sync")

    async def stop(self) -> None:
        """Ends the loop; whoever waits is answered, what is not indexed stays marked for the next start."""
        await self.caught_up(MOMENT_SECONDS)
        await end((self._loop, *self._background))
        self._give_up_waiting()
        await self._settle_later()

    # ------------------------------------------------------------ what a request does

    @contextlib.asynccontextmanager
    async def writing(self) -> AsyncIterator[int]:
        """Gives a write its revision. Until the write is indexed, or given up, no drain of ours takes its marks."""
        revision = mint()
        self._under_way.add(revision)
        self._arriving[revision] = asyncio.get_running_loop().create_future()
        try:
            yield revision
        finally:
            if revision not in self._queued:
                self._under_way.discard(revision)
                self._arrived(revision, True)

    def _arrived(self, revision: int, indexed: bool) -> None:
        if (arriving := self._arriving.pop(revision, None)) is not None:
            arriving.set_result(indexed)

    async def arrives(self, revisions: Iterable[int], seconds: float | None = None) -> bool | None:
        """Waits until the index has what our own writes of these revisions have changed, `seconds` at most, and says whether
        it has. None: none of them is on its way."""
        if not (waiting := [self._arriving[one] for one in revisions if one in self._arriving]):
            return None
        done, late = await asyncio.wait(waiting, timeout=seconds)
        return not late and all(one.result() for one in done)

    async def all_arrive(self) -> None:
        """Waits until the index has all that our own writes have changed by now, or they were given up."""
        await self.arrives(list(self._arriving))

    def expect(self, texts: Sequence[str]) -> None:
        """A write with these texts is on its way: they are embedded while the graph stores it."""
        if texts and self.trouble is None:
            self._start(self._embed_ahead(list(texts[:AHEAD])))

    async def _embed_ahead(self, texts: list[str]) -> None:
        self._embedding += len(texts)
        try:
            with contextlib.suppress(Unavailable):  # whoever needs the vectors is told
                await self._embedder.passages(texts)
        finally:
            self._embedding -= len(texts)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def index(self, revision: int, changes: Sequence[Change], met: Iterable[Memory | Lesson] = ()) -> None:
        """Indexes what a committed write changed and waits until it can be found, or Milvus is away and the marks stay. `met`:
        what the write was about; if another one has just made it what it is, that one is waited for as its writer does.
        A few new memories, which is quick at any size, are not waited for where nobody else asks this index: they are on
        their way, and whoever searches for memories waits for them instead (`caught_up`). Not so while something is going
        on that takes longer: a search should not have to wait for that."""
        few = len(changes) + sum(len(job.changes) for job in self._jobs) <= FEW
        quick = self._embedder.local and self._embedding <= FEW and not self._batches
        new = all(one.fresh and isinstance(one.record, Memory) for one in changes)
        ahead = self._alone and few and quick and new
        done = self.index_soon(revision, changes, ahead)
        if not ahead:
            await done
        await self.arrives({one.revision for one in met} - {revision})

    def index_soon(self, revision: int, changes: Sequence[Change], ahead: bool = False) -> "asyncio.Future[bool]":
        """The same for whoever need not wait. False: Milvus is away. `ahead`: whoever searches waits for it."""
        done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        if not changes or self.trouble is not None:
            done.set_result(not changes)
            self._arrived(revision, not changes)
            if changes:
                self._given_up = max(self._given_up, revision)
            return done
        self._reading.expect(one.record for one in changes if isinstance(one.record, Memory))
        # A writer that has hung up takes its promise along; its write goes on.
        done.add_done_callback(lambda one: self._arrived(revision, not one.cancelled() and one.result()))
        self._jobs.append(Job(revision, deque(changes), done, ahead))
        self._queued.add(revision)
        self._work.set()
        return done

    @property
    def behind(self) -> bool:
        """Whether the index lacks something that was acknowledged, or may do so: writes that could not be indexed when they
        were made, what an earlier process left, or all of it where the index had to be made anew."""
        return self._given_up > 0 or self._incomplete

    async def caught_up(self, seconds: float) -> bool:
        """Waits for what was acknowledged ahead of the index, `seconds` at most, and says whether all of it is there. If
        not, it is late, or was given up: then it is found by whoever asks the graph."""
        if not (waiting := [job.done for job in self._jobs if job.ahead]):
            return True
        done, late = await asyncio.wait(waiting, timeout=seconds)
        return not late and all(one.result() for one in done)

    def removed(self) -> None:
        """A deletion was committed: its row is removed soon. Until then no search shows it."""
        self._work.set()

    def met_untrue(self, collection: str, keys: Sequence[Any]) -> None:
        """A search met rows that are not true: they are mended, behind the answer's back."""
        if keys:
            self._start(self._mend_met(collection, list(keys)))

    def met_away(self, error: IndexAway) -> None:
        """A search got no answer: nobody asks Milvus again until the loop has seen that it is back."""
        if self.index_away is None:
            log.warning("the index is not asked: %s", error)
        self.index_away = str(error)
        self._work.set()

    async def pending(self) -> int:
        """How much is still to be indexed; where nobody has counted yet, at least one."""
        marked = await self._marked()
        return max(marked, 1) if self._incomplete else marked

    async def _marked(self) -> int:
        await self.caught_up(MOMENT_SECONDS)
        await self.settle()
        return await self._integrity.pending()

    # ------------------------------------------------------------ the loop

    async def _run(self) -> None:
        looked = time.monotonic()
        while True:
            try:
                if self.trouble is not None:
                    await self._look_again()
                if self._jobs and time.monotonic() - looked < OTHERS_SECONDS:
                    self._work.clear()  # what else there is to do is looked at when it is quiet, or overdue
                    await self._round()
                    continue
                if not self._jobs:
                    with contextlib.suppress(TimeoutError):
                        # Not `wait_for`: up to Python 3.11 it loses a cancellation that comes together with the event.
                        async with asyncio.timeout(QUIET_SECONDS if self._indexed else IDLE_SECONDS):
                            await self._work.wait()
                self._work.clear()
                if self.index_away is not None:
                    await self._milvus.load()
                    self.index_away = None
                if not self._jobs or time.monotonic() - looked >= OTHERS_SECONDS:
                    await self._serving_meanwhile(self._look_after_others())
                    looked = time.monotonic()
                self.trouble = None
            except Exception as error:  # whatever it is: this loop must not end, somebody waits for it
                if self.trouble is None:
                    log.warning("the index waits: %s", error, exc_info=not isinstance(error, CairnError))
                self.trouble = str(error) or type(error).__name__
                if isinstance(error, IndexAway):
                    self.index_away = self.trouble
                    # What got no answer may be done all the same, and late. Not at once: on a Milvus that is slow, sweep
                    # after sweep would be what makes it slow.
                    self._swept = min(self._swept, time.monotonic() - SWEEP_SECONDS + LATE_SECONDS)
                self._give_up_waiting()
                await asyncio.sleep(IDLE_SECONDS)

    async def _serving_meanwhile(self, work: Coroutine[Any, Any, None]) -> None:
        """Does what may take minutes; whoever writes meanwhile gets a turn between two batches of it."""
        task = asyncio.create_task(work, name="cairn-sync-others")
        task.add_done_callback(lambda _: self._work.set())
        if self._jobs:
            self._work.set()  # whoever waits already has the first turn
        woken = False
        try:
            while not task.done():
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(QUIET_SECONDS if self._indexed else None):
                        await self._work.wait()
                if not self._work.is_set():
                    await self._settle_later()
                    continue
                self._work.clear()
                woken = woken or not task.done()
                while self._jobs and not task.done():
                    await self._round()
            task.result()
        finally:
            await end((task,))
        if woken:
            self._work.set()  # what was removed meanwhile, say, the work may have been past already

    async def _look_after_others(self) -> None:
        """When nobody waits: what was left marked, what is to be removed, and now and then everything."""
        given_up = self._given_up
        if await self._marked():
            await self.drain()
        elif self._given_up == given_up:
            self._given_up = 0  # deleted since, or indexed by another process
        self.trouble = None  # a sweep may take minutes: what is written from now on is indexed as it comes
        if self._incomplete or time.monotonic() - self._swept > SWEEP_SECONDS:
            await self.sweep()
            if await self._marked():
                await self.drain()
            self._incomplete = False

    async def _look_again(self) -> None:
        """Milvus was away, or is, or refuses: connects anew, unless it is there again."""
        refuses = self.index_away is not None
        if await self._milvus.check() is None and not (refuses and await self._milvus.put_aside_if_damaged()):
            if refuses and not self._incomplete:  # a server may come back with an older copy of its data
                self._incomplete = await self._integrity.lacks_rows()
            return
        async with self._turn_of_a_batch():
            await self._milvus.connect()
            await self._milvus.open()
        self._incomplete = True  # whatever came back may have lost rows

    async def _round(self) -> None:
        """A fair share of every waiting request."""
        async with self._turn:
            share = max(1, ROUND // len(self._jobs))
            taken = [(job, [job.changes.popleft() for _ in range(min(share, len(job.changes)))]) for job in self._jobs]
            changes = [self._as_known(change) for _, some in taken for change in some]
            await self._put_rows(changes, SECONDS)
            done = [job for job, _ in taken if not job.changes]
            self._jobs = deque(job for job in self._jobs if job.changes)
            self._indexed |= {_key(change.record): change for change in changes}
            self._answered += done
            for job in done:  # it can be found: nobody need wait until the marks are cleared
                if not job.done.done():
                    job.done.set_result(True)
        if len(self._indexed) >= CLEARED:
            self._start(self._settle_later())

    def _as_known(self, change: Change) -> Change:
        """A record that was deleted and made anew may have a row all the same: that of its earlier self, put there after
        the deletion had been seen to. Until the marks of that row are cleared only this process knows of it."""
        key = _key(change.record)
        known = key in self._indexed or key in self._clearing or key in self._with_row
        return Change(change.record, change.fresh and not known)

    async def settle(self) -> None:
        """The second half of marked -> settled, for all that is in the index: a transaction for each write would cost
        as much as the write."""
        unsettled = self._unsettled
        async with self._settling:  # whoever has called it knows that no older call is under way
            if self._unsettled > unsettled:  # nor waits for the graph once more, which has kept the one before waiting
                raise Unavailable("Neo4j does not answer just now. Try again.")
            self._clearing, self._indexed = self._indexed, {}
            answered, self._answered = self._answered, []
            try:
                await self._clear_marks(list(self._clearing.values()))
            except BaseException as error:
                self._swept = float("-inf")  # a row whose record is gone may be there without a note of it
                self._unsettled += isinstance(error, Unavailable)
                raise
            finally:  # marks that could not be cleared are anybody's to take up
                self._clearing = {}
                for job in answered:
                    self._forget(job)

    async def _settle_later(self) -> None:
        with contextlib.suppress(Unavailable):  # what is still marked is indexed once more
            await self.settle()

    def _give_up_waiting(self) -> None:
        """Whoever waits is answered: the write is stored and marked, it becomes searchable later."""
        for job in self._jobs:
            self._given_up = max(self._given_up, job.revision)
            self._forget(job)
            if not job.done.done():
                job.done.set_result(False)
        self._jobs.clear()

    def _forget(self, job: Job) -> None:
        self._under_way.discard(job.revision)
        self._queued.discard(job.revision)

    async def _put_rows(self, changes: Sequence[Change], seconds: float) -> None:
        """The first half of marked -> settled: the rows are in the index, or Milvus has not answered within `seconds`."""
        memories, lessons = _latest(changes, Memory), _latest(changes, Lesson)
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
            await (self._vectors.insert if fresh else self._vectors.upsert)(collection, some, seconds)
        self._with_row -= {_key(change.record) for change in changes}

    async def _clear_marks(self, changes: Sequence[Change]) -> None:
        """What is still as it was indexed is settled."""
        memories, lessons = _latest(changes, Memory), _latest(changes, Lesson)
        if memories:
            indexed = sorted([memory.id, memory.revision] for memory, _ in memories)
            await self._look_back("clear_memory_marks", rows=indexed, ours=list(self._queued))
        if lessons:
            learnt = sorted([lesson.rb_id, lesson.revision] for lesson, _ in lessons)
            await self._look_back("clear_lesson_marks", rows=learnt, ours=list(self._queued))

    async def _look_back(self, statement: str, **parameters: Any) -> None:
        """After rows were put or removed: what was not as we had thought, and where another process may have been at it gets a
        new revision, which is indexed at once."""
        async with self.writing() as revision:
            renewed = None if self._alone else revision
            rows = await self._graph.run(statement, renewed=renewed, **parameters)
            changed = [memory_from_row(row) if "type" in row else Lesson.from_row(row["properties"]) for row in rows]
            self._with_row |= {_key(record) for record in changed}
            self.index_soon(revision, [Change(record) for record in changed if record.revision == renewed])

    # ------------------------------------------------------------ what others left

    @contextlib.asynccontextmanager
    async def _turn_of_a_batch(self) -> AsyncIterator[None]:
        self._batches += 1
        try:
            async with self._turn:
                yield
        finally:
            self._batches -= 1

    async def drain(self, progress: Callable[[int], None] = lambda done: None, before: int | None = None) -> None:
        """Indexes every marked record that nobody is at, and removes every row that is noted for removal. `before`: every
        revision older than this, also what another process may still be at."""
        done, given_up = 0, self._given_up
        for kind in KINDS:
            # Removals first: a record that came back is marked by them.
            while await self._remove_some(kind):
                pass
            while some := await self._index_some(kind, before):
                done += some
                progress(done)
        if self._given_up == given_up:
            self._given_up = 0

    async def _remove_some(self, kind: Kind) -> int:
        async with self._turn_of_a_batch():
            rows = await self._graph.read("pending_removals", collection=kind.collection, limit=PAGE)
            if rows:
                await self.settle()  # a mark that is cleared after its row was removed here would be lost
                # A record that is back may have its new row already: without it, it would not be found until it is
                # indexed again.
                removed = [row["key"] for row in rows if not row["back"]]
                await self._vectors.delete(kind.collection, [self._integrity.primary_key(kind, key) for key in removed])
                await self._look_back(kind.settle, rows=rows)
        return len(rows)

    async def _index_some(self, kind: Kind, before: int | None) -> int:
        """One batch, then whoever waits for the turn has it: it is given in the order of asking."""
        async with self._turn_of_a_batch():
            if changes := [Change(record) for record in await self._due(kind, before)]:
                await self._put_rows(changes, WRITE_SECONDS)
                # It goes again: what is written from now on is not left to a drain that might never end.
                self.trouble = None
                await self._clear_marks(changes)
        return len(changes)

    async def _due(self, kind: Kind, before: int | None) -> list[Memory | Lesson]:
        aged = before or mint() - (int(ANOTHERS_SECONDS * 1000) << COUNTER_BITS)
        types = {"types": list(MemoryType)} if kind.collection == MEMORIES else {}
        rows = await self._graph.read(
            kind.pending,
            limit=ROUND,
            under_way=list(self._under_way),
            # What we gave up is ours, and another's of that time would only be indexed twice.
            older_than=LAST if self._alone else max(aged, self._given_up + 1),
            **types,
        )
        # A write that was committed on the way there is in the answer, and is indexed by its own job: taken here as well,
        # it would be in the index twice.
        rows = [row for row in rows if row["properties"]["revision"] not in self._under_way]
        if kind.collection == MEMORIES:
            return [memory_from_row(row) for row in rows]
        return [Lesson.from_row(row["properties"]) for row in rows]

    async def _mend_met(self, collection: str, keys: list[Any]) -> None:
        kind = next(kind for kind in KINDS if kind.collection == collection)
        with contextlib.suppress(Unavailable):  # the next sweep does it
            await self._integrity.mend(kind, await self._integrity.judge(kind, keys))
            self._work.set()

    # ------------------------------------------------------------ comparing and mending

    async def sweep(self) -> None:
        """Finds and mends what no mark tells."""
        if missing := await self._milvus.missing_collections():
            log.warning("the collection %s is gone; it is made anew", ", ".join(missing))
            await self._milvus.open()
            self._incomplete = True
        found = await self._integrity.compare(mend=True)
        self._incomplete |= found.missing_vectors + found.stale_vectors > 0  # an older copy of the index, say
        self._swept = time.monotonic()
        if not found.ok:
            log.info("the sweep mends %s", found.model_dump())

    async def repair(self) -> Disagreements:
        """Mends every disagreement: links on both sides, rows that are missing, stale or without a record. How much is
        left of it stands in the status meanwhile, as for any index work, and in the log."""
        await self.caught_up(SECONDS)
        await self.settle()  # what is marked is not compared
        await self._integrity.mend_links()
        await self.sweep()
        total = await self._marked()
        log.info("repair: %s records are to be indexed anew or removed", total)
        await self.drain(progress=self._told(total), before=mint())
        self._incomplete = False
        return await self.compare()

    async def compare(self) -> Disagreements:
        if trouble := await self._milvus.check():  # a page may take long, this may not
            raise IndexAway(trouble)
        await self.caught_up(SECONDS)
        await self.settle()
        return await self._integrity.compare()

    def _told(self, total: int) -> Callable[[int], None]:
        """Progress for the log, every few seconds."""
        last = time.monotonic()

        def tell(done: int) -> None:
            nonlocal last
            if time.monotonic() - last > 2:
                last = time.monotonic()
                log.info("repair: %s of %s", done, total)

        return tell

    async def reembed(self, progress: Callable[[int, int], None]) -> int:
        """Drops the index, marks everything and indexes it with the embedder that is set."""
        total = 0
        await self._milvus.missing_collections()  # an index that is away keeps what it has
        for kind in KINDS:  # first: wherever this dies, what the index lacks is marked
            after: Any = kind.first_key
            while rows := await self._graph.read(kind.page, after=after, limit=PAGE):
                after = rows[-1]["key"]
                await self._integrity.mark(kind, [row["key"] for row in rows])
                total += len(rows)
        await self._milvus.rebuild()
        await self.drain(progress=lambda done: progress(done, total), before=mint())
        return total


R = TypeVar("R", Memory, Lesson)


def _key(record: Memory | Lesson) -> str | int:
    return record.id if isinstance(record, Memory) else record.rb_id


def _latest(changes: Sequence[Change], kind: type[R]) -> list[tuple[R, bool]]:
    """Each record once, as it was changed last: two rows of one key in one call would both be kept. Should the order
    have been another one, the mark is set again when it is to be cleared."""
    found: dict[Any, tuple[R, bool]] = {}
    for change in changes:
        if isinstance(change.record, kind):
            key = _key(change.record)
            fresh = change.fresh or (key in found and found[key][1])
            found[key] = (change.record, fresh)
    return list(found.values())
