"""What was offered: a receipt of each recall, and how often each lesson was offered. Kept behind the answer's back.

Nothing waits for it, many are written at once, and what a dying process had not written yet (a second's worth) is lost:
a recall that is lost is one that no outcome can name. A receipt is kept for 90 days.
"""

import asyncio
import logging
import random
from collections import Counter, deque
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from bank.model import FoundLesson
from graph.errors import CairnError
from graph.session import Graph, Transaction
from graph.tasks import end

log = logging.getLogger("cairn.offers")

FLUSH_SECONDS = 1.0
MOST_HELD = 10_000  # receipts, while Neo4j is away; the oldest go first
KEPT = timedelta(days=90)
FORGOTTEN_AT_ONCE = 1_000


class Offers:
    """`withhold_share`: of the recalls, in which one lesson is left out to have something to compare with."""

    def __init__(self, graph: Graph, withhold_share: float = 0.0) -> None:
        self._graph = graph
        self.withhold_share = withhold_share
        self._receipts: deque[dict[str, Any]] = deque(maxlen=MOST_HELD)
        self._offered: Counter[int] = Counter()
        self._later: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()

    def withholds(self) -> bool:
        """Whether this recall is one of those that withhold a lesson."""
        return self.withhold_share > 0 and random.random() < self.withhold_share

    def offered(self, lessons: Iterable[FoundLesson]) -> None:
        self._offered.update(found.lesson.rb_id for found in lessons)
        self._flush_later()

    def recalled(self, id: str, namespace: str | None, lessons: Iterable[FoundLesson], withheld: Iterable[int]) -> None:
        found = list(lessons)
        self._receipts.append(
            {
                "id": id,
                "created_time": datetime.now(UTC),
                "namespace": namespace,
                "offered": [one.lesson.rb_id for one in found],
                "fits": [one.semantic for one in found],
                "withheld": list(withheld),
            }
        )
        self.offered(found)

    async def flush(self) -> None:
        """Writes what is held."""
        async with self._turn:
            receipts, offered = list(self._receipts), self._offered
            if not receipts and not offered:
                return
            self._receipts.clear()
            self._offered = Counter()

            async def work(tx: Transaction) -> None:
                await tx.run("count_offered", rows=sorted(offered.items()))
                await tx.run("keep_receipts", rows=receipts)
                await tx.run("forget_receipts", before=datetime.now(UTC) - KEPT, limit=FORGOTTEN_AT_ONCE)

            kept = False
            try:
                await self._graph.write(work)
                kept = True
            except CairnError:
                pass  # Neo4j is away, which others tell: it is tried again
            except Exception:  # nobody waits for it: it is tried again, whatever it is
                log.exception("receipts wait")
            finally:
                if not kept:
                    self._receipts = deque([*receipts, *self._receipts], MOST_HELD)
                    self._offered.update(offered)

    async def stop(self) -> None:
        await end((self._later,))
        await self.flush()

    def _flush_later(self) -> None:
        if self._later is None or self._later.done():
            self._later = asyncio.create_task(self._wait_and_flush(), name="cairn-offers")

    async def _wait_and_flush(self) -> None:
        while self._receipts or self._offered:
            await asyncio.sleep(FLUSH_SECONDS)
            await self.flush()
