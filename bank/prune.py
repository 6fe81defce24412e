"""Retires lessons that nobody should follow any more. Nothing is erased, and whoever brings one back is heard."""

from collections import Counter
from datetime import UTC, datetime

from bank.learn import MONTH, PRUNED_BELOW, Learning
from bank.lessons import revise_all
from bank.model import Lesson, LessonStatus, Pruned, PruneReport, SignalKind
from bank.signals import learnt_of
from bank.sync import Change, Sync
from graph.session import Graph, Row, Transaction

PAGE = 2_000  # lessons looked at in one query
BATCH = 200  # lessons retired in one transaction


class Prune:
    """Looks at all lessons, a page at a time; only the ids of those that are found are held."""

    def __init__(self, graph: Graph, sync: Sync, learning: Learning) -> None:
        self._graph = graph
        self._sync = sync
        self._learning = learning

    async def prune(self, dry_run: bool, below: float, first: int) -> PruneReport:
        """Finds the active lessons below a confidence, tells of the `first` of them why, and retires them all unless it
        is a dry run. A lesson that was brought back by hand stays until something new is said of it."""
        found = await self._found(below)
        pruned = await self._told(found[:first], below)
        retired = 0
        if not dry_run:
            for start in range(0, len(found), BATCH):
                retired += await self._retire(found[start : start + BATCH], below)
        return PruneReport(dry_run=dry_run, found=len(found), retired=retired, lessons=tuple(pruned))

    async def step(self, after: int) -> tuple[int, int, int | None]:
        """One step of the sweep: how many lessons were looked at, how many were retired, and where it goes on."""
        (page,) = await self._graph.read("prunable_lessons", after=after, below=PRUNED_BELOW, limit=PAGE)
        batches = [page["ids"][start : start + BATCH] for start in range(0, len(page["ids"]), BATCH)]
        retired = sum([await self._retire(batch, PRUNED_BELOW) for batch in batches])
        return page["many"], retired, page["last"]

    async def _found(self, below: float) -> list[int]:
        found: list[int] = []
        after = 0
        while True:
            (page,) = await self._graph.read("prunable_lessons", after=after, below=below, limit=PAGE)
            if page["last"] is None:
                return found
            found += page["ids"]
            after = page["last"]

    async def _told(self, ids: list[int], below: float) -> list[Pruned]:
        if not ids:
            return []
        now = datetime.now(UTC)
        said = {row["rb_id"]: row for row in await self._graph.read("signals_of_lessons", ids=ids)}
        rows = await self._graph.read("lessons_by_id", ids=ids)
        lessons = [Lesson.from_row(row["properties"]) for row in rows]
        return [
            Pruned(lesson=one, reasons=self._reasons(one, said[one.rb_id], below, now))
            for one in lessons
            if one.rb_id in said
        ]

    def _reasons(self, lesson: Lesson, row: Row, below: float, now: datetime) -> tuple[str, ...]:
        learnt = learnt_of(row, self._learning)
        times = Counter(SignalKind(kind) for _, kind, *_ in row["signals"])
        reasons = [
            f"Its confidence, {lesson.confidence:.2f}, is below {below:.2f}; it started at {learnt.points[0].value:.2f}."
        ]
        for bad, good, words in (
            (SignalKind.NOT_HELPFUL, SignalKind.HELPFUL, "found not helpful"),
            (SignalKind.FAILED, SignalKind.SUCCEEDED, "work with it failed"),
            (SignalKind.REVERTED, SignalKind.STABLE, "reverted"),
        ):
            if times[bad]:
                reasons.append(f"{words.capitalize()} in {times[bad]} of {times[bad] + times[good]} signals.")
        months = (int(now.timestamp()) - learnt.idle_since) // MONTH
        if months > 0:
            reasons.append(f"Not used for {months} month{'' if months == 1 else 's'}.")
        return tuple(reasons)

    async def _retire(self, ids: list[int], below: float) -> int:
        async def work(tx: Transaction) -> list[Lesson]:
            rows = await tx.run("lock_known_lessons", ids=sorted(ids))
            due = [
                row
                for row in rows
                if row["properties"]["status"] == LessonStatus.ACTIVE
                and row["properties"]["confidence"] < below  # as it is now, under the lock
                and not row["properties"].get("reinstated")
            ]
            wanted = {row["rb_id"]: {"status": LessonStatus.RETIRED.value} for row in due}
            return await revise_all(tx, due, wanted, datetime.now(UTC), revision)

        async with self._sync.writing() as revision:
            retired = await self._graph.write(work)
            await self._sync.index(revision, [Change(lesson) for lesson in retired])
        return len(retired)
