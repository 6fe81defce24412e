"""Looking over the bank: contradictions, links that suggest themselves, and what was said of suggestions before.

Each call goes on for a limited time and says where it stopped, so that the next goes on from there.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from bank.clashes import Clash, clash_of
from bank.lesson_links import check_pair, lock_pair
from bank.lessons import Lessons
from bank.model import Lesson, LinkType
from bank.neighbours import Near, Neighbours
from bank.relations import RELATED_MEANING, Suggestion, suggested
from graph.checks import Checks
from graph.errors import NotFound
from graph.model import Page, Value
from graph.paging import decode_cursor, encode_cursor
from graph.session import Graph, Transaction

SECONDS_A_CALL = 10.0
NEAR_ENOUGH_TO_CLASH = 0.55
IN_A_ROW = 25  # pairs that are compared before others get their turn
KEPT_AT_ONCE = 500

T = TypeVar("T")


class Contradiction(Value):
    """Two active lessons that say the opposite; `linked`: somebody has noted it as a link."""

    one: Lesson
    other: Lesson
    clash: Clash
    linked: bool


class Verdict(Value):
    """What is known of a pair already."""

    linked: bool = False
    conflicts: bool = False
    rejected: frozenset[str] = frozenset()
    kept_apart: bool = False


class Upkeep:
    def __init__(self, graph: Graph, neighbours: Neighbours) -> None:
        self._graph = graph
        self._neighbours = neighbours
        self._lessons = Lessons(graph)

    # ------------------------------------------------------------ contradictions

    async def conflicts(self, namespace: str | None, first: int, after: str | None) -> Page[Contradiction]:
        async def judge(pairs: Sequence[Near]) -> list[Contradiction]:
            clashes = [(near, clash) for near, clash in await compared(pairs, clash_near) if clash is not None]
            known = await self.verdicts(near.ids for near, _ in clashes)
            whole = await self._lessons.by_id(rb_id for near, _ in clashes for rb_id in near.ids)
            return [
                Contradiction(
                    one=whole[near.one.rb_id],
                    other=whole[near.other.rb_id],
                    clash=clash,
                    linked=known[near.ids].conflicts,
                )
                for near, clash in clashes
                if near.one.rb_id in whole and near.other.rb_id in whole
            ]

        return await self._walk(namespace, NEAR_ENOUGH_TO_CLASH, False, judge, first, after)

    # ------------------------------------------------------------ suggestions

    async def suggestions(self, namespace: str | None, first: int, after: str | None) -> Page[Suggestion]:
        return await self._walk(namespace, RELATED_MEANING, True, self._suggested, first, after)

    async def suggestions_for(self, rb_id: int, first: int) -> Page[Suggestion]:
        if not await self._lessons.by_id([rb_id]):
            raise NotFound.ids("lesson", "rbId", [str(rb_id)])
        found = await self._suggested(await self._neighbours.of(rb_id, RELATED_MEANING))
        best = sorted(found, key=lambda one: (-one.strength, one.source, one.target))
        return Page[Suggestion](nodes=tuple(best[:first]), has_next_page=False, end_cursor=None)

    async def _suggested(self, pairs: Sequence[Near]) -> list[Suggestion]:
        """What suggests itself; not where there is a link already, nor what was rejected before."""
        found = [(near, one) for near, one in await compared(pairs, suggested_near) if one is not None]
        known = await self.verdicts(near.ids for near, _ in found)
        return [one for near, one in found if not known[near.ids].linked and one.type not in known[near.ids].rejected]

    async def reject(self, source: int, target: int, type: LinkType) -> None:
        """This link is not suggested again."""
        checks = Checks()
        check_pair(checks, source, target)
        checks.done()

        async def work(tx: Transaction) -> None:
            await lock_pair(tx, source, target)
            await tx.run("reject_link", source=source, target=target, type=type.value, now=datetime.now(UTC))

        await self._graph.write(work)

    async def keep_suggestions(self, after: int) -> tuple[int, int, int | None]:
        """One step of the sweep: how many lessons were looked at, how much was found, and where it goes on."""
        page = await self._neighbours.page(after, None, RELATED_MEANING, sources=True)
        found = await self._suggested(page.pairs)
        now = datetime.now(UTC)
        for place in range(0, len(found), KEPT_AT_ONCE):
            some = [one.model_dump() for one in found[place : place + KEPT_AT_ONCE]]
            await self._graph.run("keep_suggestions", rows=some, now=now)
        # A pair is met where its smaller id is: what was kept of these lessons before and is not found now is over.
        await self._graph.run("forget_suggestions", ids=list(page.ids), found_before=now)
        return len(page.ids), len(found), page.last

    async def kept_suggestions(self, first: int, after: str | None) -> Page[Suggestion]:
        """What the sweep has found and nobody has settled, strongest first."""
        strength, source, target, type = decode_cursor(after, float, int, int, str) if after else (2.0, 0, 0, "")
        rows = await self._graph.read(
            "kept_suggestions", strength=strength, source=source, target=target, type=type, limit=first + 1
        )
        nodes = tuple(Suggestion.from_row(row) for row in rows[:first])
        cursor = None
        if nodes:
            last = nodes[-1]
            cursor = encode_cursor(last.strength, last.source, last.target, last.type)
        return Page[Suggestion](nodes=nodes, has_next_page=len(rows) > first, end_cursor=cursor)

    # ------------------------------------------------------------ what both need

    async def verdicts(self, pairs: Iterable[tuple[int, int]]) -> dict[tuple[int, int], Verdict]:
        """What is known of each pair of ids; nothing of one that has been deleted meanwhile."""
        wanted = list(pairs)
        rows = await self._graph.read("verdicts_of_pairs", pairs=[list(ids) for ids in wanted]) if wanted else []
        return dict.fromkeys(wanted, Verdict()) | {
            (row["one"], row["other"]): Verdict(
                linked=bool(row["links"]),
                conflicts=LinkType.CONFLICTS in row["links"],
                rejected=frozenset(row["rejected"]),
                kept_apart=row["kept_apart"],
            )
            for row in rows
        }

    async def _walk(
        self,
        namespace: str | None,
        least: float,
        sources: bool,
        judge: Callable[[Sequence[Near]], Any],
        first: int,
        after: str | None,
    ) -> Page[Any]:
        """Pages until enough was found, or the time is over. What is found stands in the order of the smaller id; the
        cursor names a lesson all of whose findings were shown, and how many of the next one's."""
        last, skip = decode_cursor(after, int, int) if after else (0, 0)
        until = time.monotonic() + SECONDS_A_CALL
        nodes: list[Any] = []
        while True:
            page = await self._neighbours.page(last, namespace, least, sources)
            found = await judge(page.pairs)
            for place, one in enumerate(found):
                if place < skip:
                    continue
                if len(nodes) == first:
                    return Page[Any](nodes=tuple(nodes), has_next_page=True, end_cursor=encode_cursor(last, place))
                nodes.append(one)
            if page.last is None:
                return Page[Any](nodes=tuple(nodes), has_next_page=False, end_cursor=None)
            last, skip = page.last, 0
            if time.monotonic() > until:
                return Page[Any](nodes=tuple(nodes), has_next_page=True, end_cursor=encode_cursor(last, 0))


def clash_near(near: Near) -> Clash | None:
    return clash_of(near.one, near.other)


def suggested_near(near: Near) -> Suggestion | None:
    return suggested(near.one, near.other, near.similarity)


async def compared(pairs: Sequence[Near], compare: Callable[[Near], T]) -> list[tuple[Near, T]]:
    """Compares pairs by their words, with a pause now and then in which others are answered."""
    found = []
    for place, near in enumerate(pairs):
        found.append((near, compare(near)))
        if place % IN_A_ROW == IN_A_ROW - 1:
            await asyncio.sleep(0)
    return found
