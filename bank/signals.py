"""Signals in the graph: appended under the lesson's lock, never changed; confidence follows in the same transaction."""

import logging
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from bank.learn import BY_HAND, Learning, Learnt, learn
from bank.lessons import check_namespace, learnt_properties
from bank.model import ConfidencePoint, Lesson, Signal, SignalKind
from graph.checks import Checks
from graph.errors import NotFound
from graph.ids import mint, readable
from graph.model import Page, native
from graph.paging import decode_cursor, encode_cursor
from graph.session import Graph, Row, Transaction

log = logging.getLogger("cairn")

LESSONS_AT_ONCE = 100  # in one outcome
BATCH = 500  # lessons that are learnt anew in one transaction


class Signals:
    def __init__(self, graph: Graph, learning: Learning) -> None:
        self._graph = graph
        self.learning = learning

    # ------------------------------------------------------------ writing

    async def give(
        self,
        rb_ids: Sequence[int],
        kind: SignalKind,
        field: str = "rbId",
        *,
        comment: str | None = None,
        conv_id: str | None = None,
        source: str | None = None,
        namespace: str | None = None,
    ) -> list[Lesson]:
        """Says the same of several lessons in one transaction; the lessons as they are then, in the order given."""
        checks = Checks()
        if len(rb_ids) > LESSONS_AT_ONCE:
            checks.add(field, f"has {len(rb_ids):,} items; at most {LESSONS_AT_ONCE} are allowed")
        checks.optional("comment", comment)
        for name, value in (("convId", conv_id), ("source", source)):
            if value is not None:
                checks.name(name, value)
        if namespace is not None:
            check_namespace(checks, "namespace", namespace)
        checks.done()
        wanted = list(dict.fromkeys(rb_ids))

        async def work(tx: Transaction) -> list[Lesson]:
            locked = {row["rb_id"]: row for row in await tx.run("lock_known_lessons", ids=sorted(wanted))}
            if missing := [str(rb_id) for rb_id in wanted if rb_id not in locked]:
                raise NotFound.ids("lesson", field, missing)
            said = {"comment": comment, "conv_id": conv_id, "source": source, "namespace": namespace}
            lessons = await append(tx, locked, kind, said, datetime.now(UTC), self.learning)
            return [lessons[rb_id] for rb_id in wanted]

        return await self._graph.write(work)

    # ------------------------------------------------------------ reading

    async def pages(self, ids: Sequence[int], first: int, after: str | None) -> dict[int, Page[Signal]]:
        """A page of signals for each of several lessons, newest first, in one query."""
        time, last_id = decode_cursor(after, datetime, str) if after else (None, None)
        rows = await self._graph.read(
            "signals_page", ids=list(ids), before_time=time, before_id=last_id, limit=first + 1
        )
        pages = {}
        for row in rows:
            nodes = tuple(map(Signal.from_row, row["signals"][:first]))
            cursor = encode_cursor(nodes[-1].created_time, nodes[-1].id) if nodes else None
            pages[row["rb_id"]] = Page[Signal](
                nodes=nodes, has_next_page=len(row["signals"]) > first, end_cursor=cursor
            )
        return pages

    async def histories(self, ids: Iterable[int]) -> dict[int, tuple[ConfidencePoint, ...]]:
        """How the confidence of each lesson came to be, oldest first."""
        now = datetime.now(UTC)
        rows = await self._graph.read("signals_of_lessons", ids=list(ids))
        return {row["rb_id"]: learnt_of(row, self.learning).history(now) for row in rows}

    # ------------------------------------------------------------ another rule

    async def settle_rule(self, say: Callable[[str], None] = lambda line: None) -> int:
        """Computes every confidence anew where the rule is not the one they were computed by. How many."""
        rows = await self._graph.read("learning_rule")
        if rows and rows[0]["name"] == self.learning.name:
            return 0
        done, last = 0, 0
        while True:
            ids = [row["key"] for row in await self._graph.read("lesson_revisions", after=last, limit=BATCH)]
            if not ids:
                break
            await self._graph.write(lambda tx, ids=ids: self._relearn_batch(tx, ids))  # type: ignore[misc]
            done, last = done + len(ids), ids[-1]
            say(f"The confidence of {done:,} lessons is computed anew by the rule {self.learning.rule.name} …")
        await self._graph.run("keep_learning_rule", name=self.learning.name)
        return done

    async def _relearn_batch(self, tx: Transaction, ids: list[int]) -> None:
        locked = {row["rb_id"]: row for row in await tx.run("lock_known_lessons", ids=ids)}
        await relearn(tx, locked, datetime.now(UTC), self.learning)


async def append(
    tx: Transaction,
    locked: dict[int, Row],
    kind: SignalKind,
    said: dict[str, str | None],
    now: datetime,
    learning: Learning,
) -> dict[int, Lesson]:
    """Says the same of each of these lessons, which are locked. `said`: comment, conv_id, source, namespace."""
    rows = [
        {
            "rb_id": rb_id,
            "properties": {
                **said,
                "kind": kind.value,
                "created_time": now,
                "id": readable("S", mint()),
                "rb_id": rb_id,
            },
        }
        for rb_id in locked
    ]
    await tx.run("append_signals", rows=rows)
    return await relearn(tx, locked, now, learning)


async def relearn(tx: Transaction, locked: dict[int, Row], now: datetime, learning: Learning) -> dict[int, Lesson]:
    """Computes the confidence of lessons that are locked from all that was ever said of them. The index knows nothing
    of it, so that nothing is indexed anew; nor is it another version of the lesson."""
    lessons: dict[int, Lesson] = {}
    changes: list[dict[str, Any]] = []
    for row in await tx.run("signals_of_lessons", ids=list(locked)):
        learnt = learnt_of(row, learning)
        own = learnt_properties(learnt, now)
        changes.append({"rb_id": row["rb_id"], "changes": own})
        lessons[row["rb_id"]] = Lesson.from_row({**locked[row["rb_id"]]["properties"], **own})
    await tx.run("put_lessons", rows=changes)
    return lessons


def learnt_of(row: Row, learning: Learning) -> Learnt:
    """From a row of `signals_of_lessons`."""
    signals = [
        Signal.model_construct(
            id=id,
            rb_id=row["rb_id"],
            kind=SignalKind(kind),
            created_time=native("created_time", time),
            source=source,
            namespace=namespace,
            fit=fit,
        )
        for id, kind, time, source, namespace, fit in row["signals"]
    ]
    start = BY_HAND if row["start"] is None else row["start"]
    return learn(start, native("created_at", row["recorded_at"]), signals, learning)
