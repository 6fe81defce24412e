"""Signals in the graph: appended under the lesson's lock, never changed; confidence follows in the same transaction."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from bank.keys import claim_key, digest_of
from bank.learn import START_BY_HAND, Confidence, Learning, learn, once_each
from bank.lessons import check_namespace, learnt_properties, lock_wholes
from bank.model import ConfidencePoint, Lesson, Signal, SignalKind
from bank.offers import Offers
from bank.scopes import proven_in, suggested_scope
from bank.uplift import arms_of, counted
from graph.checks import Checks
from graph.errors import NotFound, Problem
from graph.ids import is_young, mint, readable
from graph.model import Page, native
from graph.paging import decode_cursor, encode_cursor
from graph.session import Graph, Row, Transaction

LESSONS_AT_ONCE = 100  # in one outcome
TOLD = "told"  # what is kept under an idempotency key; the answer is the lessons as they are
YOUNG_SECONDS = 3.0  # within which the receipt of a recall is written, by whichever process
LOOK_AGAIN_SECONDS = 0.3
BATCH = 500  # lessons that are learnt anew in one transaction


class Signals:
    def __init__(self, graph: Graph, learning: Learning, offers: Offers) -> None:
        self._graph = graph
        self._offers = offers
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
        recall_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> list[Lesson]:
        """Says the same of several lessons in one transaction; the lessons as they are then, in the order given.
        `recall_id`: the recall that offered them, whose other lessons were not used, then."""
        checks = Checks()
        if len(rb_ids) > LESSONS_AT_ONCE:
            checks.add(field, f"has {len(rb_ids):,} items; at most {LESSONS_AT_ONCE} are allowed")
        checks.optional("comment", comment)
        names = {"convId": conv_id, "source": source, "recallId": recall_id, "idempotencyKey": idempotency_key}
        for name, value in names.items():
            if value is not None:
                checks.name(name, value)
        if namespace is not None:
            check_namespace(checks, "namespace", namespace)
        checks.done()
        wanted = list(dict.fromkeys(rb_ids))

        if recall_id is not None:
            await self._offers.flush()  # the receipt may be a moment old

        told_of = [kind, *wanted, comment, conv_id, source, namespace, recall_id]

        async def work(tx: Transaction) -> list[Lesson]:
            if idempotency_key is not None:
                if await claim_key(tx, idempotency_key, digest_of(told_of)) is not None:
                    return await _as_they_are(tx, wanted, field)
                await tx.run("keep_answer", key=idempotency_key, answer=TOLD)
            receipt = await _receipt(tx, recall_id)
            chosen = [*receipt["offered"], *receipt["withheld"]]
            known = await tx.run("lock_known_lessons", ids=sorted({*wanted, *chosen}))
            locked = {row["rb_id"]: row for row in known}
            if missing := [str(rb_id) for rb_id in wanted if rb_id not in locked]:
                raise NotFound.ids("lesson", field, missing)
            now = datetime.now(UTC)
            if recall_id is not None and receipt["succeeded"] is None:
                await _count_work(tx, recall_id, receipt, wanted, locked, kind is SignalKind.SUCCEEDED)
            said = {
                "comment": comment,
                "conv_id": conv_id,
                "source": source,
                "namespace": namespace or receipt["namespace"],
                "recall_id": recall_id,
            }
            fits = dict(zip(receipt["offered"], receipt["fits"], strict=True))
            told = {rb_id: locked[rb_id] for rb_id in wanted}
            lessons = await append(tx, told, kind, said, now, self.learning, fits)
            return [lessons[rb_id] for rb_id in wanted]

        while True:
            try:
                return await self._graph.write(work)
            except NotFound as error:
                if recall_id is None or error.problems[0].field != "recallId" or not is_young(recall_id, YOUNG_SECONDS):
                    raise
            await asyncio.sleep(LOOK_AGAIN_SECONDS)  # another process has answered it, and is about to keep the receipt

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
            ids = [row["key"] for row in await self._graph.read("lesson_keys", after=last, limit=BATCH)]
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
    fits: Mapping[int, float] = MappingProxyType({}),
) -> dict[int, Lesson]:
    """Says the same of each of these lessons, which are locked, and so of what they became part of: whoever was given
    one before a merge speaks of the merged lesson. `said`: comment, conv_id, source, namespace, recall_id; `fits`: how
    well they fitted the recall that offered them. Returns all that were told."""
    everyone = dict(locked)
    wholes = await lock_wholes(tx, everyone)
    ids = {rb_id: readable("S", mint()) for rb_id in locked}
    work = said.get("recall_id") or next(iter(ids.values()), None)
    rows = [
        {
            "rb_id": rb_id,
            "wholes": wholes.get(rb_id, []),
            "properties": {
                **said,
                "kind": kind.value,
                "created_time": now,
                "id": ids[rb_id],
                "rb_id": rb_id,
                "work": work,
                "fit": fits.get(rb_id),
            },
        }
        for rb_id in locked
    ]
    await tx.run("append_signals", rows=rows)
    return await relearn(tx, everyone, now, learning)


async def _as_they_are(tx: Transaction, wanted: Sequence[int], field: str) -> list[Lesson]:
    rows = await tx.run("lessons_by_id", ids=list(wanted))
    lessons = {row["properties"]["rb_id"]: Lesson.from_row(row["properties"]) for row in rows}
    if missing := [str(rb_id) for rb_id in wanted if rb_id not in lessons]:
        raise NotFound.ids("lesson", field, missing)
    return [lessons[rb_id] for rb_id in wanted]


async def _receipt(tx: Transaction, recall_id: str | None) -> Row:
    """The receipt, locked. Receipts are locked before lessons, and nobody locks two of them."""
    if recall_id is None:
        return {"namespace": None, "offered": [], "fits": [], "withheld": [], "succeeded": None}
    rows = await tx.run("lock_receipt", id=recall_id)
    if not rows:
        raise NotFound(
            f"No recall has the id {recall_id}; receipts are kept for 90 days. Leave recallId out to tell the outcome alone.",
            [Problem("recallId", f"no recall has the id {recall_id}")],
        )
    return rows[0]


async def _count_work(
    tx: Transaction, id: str, receipt: Row, used: Sequence[int], locked: dict[int, Row], succeeded: bool
) -> None:
    """What came of a recall counts for every lesson that was chosen for it and is still there, and for what it became
    part of since."""
    wholes = await lock_wholes(tx, locked)
    chosen = {*receipt["offered"], *receipt["withheld"]}
    arms = arms_of(receipt["offered"], receipt["withheld"], used, wholes)
    told = sorted(arms.keys() & locked.keys())
    for rb_id in told:
        properties = locked[rb_id]["properties"]
        properties["worked"] = counted(properties.get("worked", ()), arms[rb_id], succeeded)
    await tx.run(
        "put_lessons", rows=[{"rb_id": x, "changes": {"worked": locked[x]["properties"]["worked"]}} for x in told]
    )
    rows = [[rb_id, int(arms[rb_id]), rb_id not in chosen or None] for rb_id in told]
    await tx.run("settle_receipt", id=id, succeeded=succeeded, used=list(used), counted=rows)


async def relearn(tx: Transaction, locked: dict[int, Row], now: datetime, learning: Learning) -> dict[int, Lesson]:
    """Computes the confidence of lessons that are locked from all that was ever said of them. The index knows nothing
    of it, so that nothing is indexed anew; nor is it another version of the lesson."""
    lessons: dict[int, Lesson] = {}
    changes: list[dict[str, Any]] = []
    for row in await tx.run("signals_of_lessons", ids=list(locked)):
        old = locked[row["rb_id"]]["properties"]
        own = learnt_properties(learnt_of(row, learning, telling=False), now)
        proven = proven_in(old["namespace"], signals_of(row))
        own["proven_in"], own["suggested_scope"] = proven, suggested_scope(old["namespace"], old["scope"], proven)
        changes.append({"rb_id": row["rb_id"], "changes": own})
        lessons[row["rb_id"]] = Lesson.from_row({**old, **own})
    await tx.run("put_lessons", rows=changes)
    return lessons


def signals_of(row: Row) -> list[Signal]:
    """From a row of `signals_of_lessons`: what counts of it."""
    signals = [
        Signal.model_construct(
            id=id,
            rb_id=rb_id,
            kind=SignalKind(kind),
            created_time=native("created_time", time),
            source=source,
            namespace=namespace,
            fit=fit,
            work=work,
        )
        for id, kind, time, source, namespace, fit, rb_id, work in row["signals"]
    ]
    return once_each(signals)


def learnt_of(row: Row, learning: Learning, telling: bool = True) -> Confidence:
    """From a row of `signals_of_lessons`."""
    start = START_BY_HAND if row["start"] is None else row["start"]
    return learn(start, native("created_at", row["recorded_at"]), signals_of(row), learning, telling)
