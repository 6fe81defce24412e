"""Looking over the bank: contradictions, links that suggest themselves, and what was said of suggestions before.

Each call goes on for a limited time and says where it stopped, so that the next goes on from there.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from bank.clashes import Clash, clash_of
from bank.lesson_links import check_pair, lock_pair
from bank.lessons import Lessons
from bank.model import Lesson, LinkType
from bank.neighbours import Near, Neighbours, Wanted
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
        async def judge(pairs: Sequence[Near]) -> list[tuple[Near, Contradiction]]:
            clashes = [(near, clash) for near, clash in await compared(pairs, clash_near) if clash is not None]
            known = await self.verdicts(near.ids for near, _ in clashes)
            whole = await self._lessons.by_id(rb_id for near, _ in clashes for rb_id in near.ids)
            return [
                (
                    near,
                    Contradiction(
                        one=whole[near.one.rb_id],
                        other=whole[near.other.rb_id],
                        clash=clash,
                        linked=known[near.ids].conflicts,
                    ),
                )
                for near, clash in clashes
                if near.one.rb_id in whole and near.other.rb_id in whole
            ]

        return await self._walk(Wanted(NEAR_ENOUGH_TO_CLASH, namespace), judge, first, after)

    # ------------------------------------------------------------ suggestions

    async def suggestions(self, namespace: str | None, first: int, after: str | None) -> Page[Suggestion]:
        return await self._walk(Wanted(RELATED_MEANING, namespace, sources=True), self._suggested, first, after)

    async def suggestions_for(
        self, rb_id: int, namespace: str | None, first: int, after: str | None
    ) -> Page[Suggestion]:
        """Of one lesson, the strongest first; with a namespace, those to a lesson in it."""
        shown = decode_cursor(after, float, int, int) if after else (-2.0, 0, 0)
        if not await self._lessons.by_id([rb_id]):
            raise NotFound.ids("lesson", "rbId", [str(rb_id)])
        found = await self._suggested(await self._neighbours.of(rb_id, Wanted(RELATED_MEANING, namespace)))
        places = {(-one.strength, one.source, one.target): one for _, one in found}
        rest = [place for place in sorted(places) if place > shown]
        return Page[Suggestion](
            nodes=tuple(places[place] for place in rest[:first]),
            has_next_page=len(rest) > first,
            end_cursor=encode_cursor(*rest[:first][-1]) if rest else None,
        )

    async def _suggested(self, pairs: Sequence[Near]) -> list[tuple[Near, Suggestion]]:
        """What suggests itself; not where there is a link already, nor what was rejected before."""
        found = [(near, one) for near, one in await compared(pairs, suggested_near) if one is not None]
        known = await self.verdicts(near.ids for near, _ in found)
        return [
            (near, one)
            for near, one in found
            if not known[near.ids].linked and one.type not in known[near.ids].rejected
        ]

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
        wanted = Wanted(RELATED_MEANING, sources=True)
        page = await self._neighbours.page(after, wanted)
        found = [one for _, one in await self._new(after, wanted, await self._suggested(page.pairs))]
        now = datetime.now(UTC)
        for place in range(0, len(found), KEPT_AT_ONCE):
            some = [one.model_dump() for one in found[place : place + KEPT_AT_ONCE]]
            await self._graph.run("keep_suggestions", rows=some, now=now)
        # Both ends of a pair have been met where its larger id is: what this sweep has not found until then is over.
        await self._graph.run("forget_suggestions", ids=list(page.ids))
        return page.looked_at, len(found), page.last

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

    async def _new(self, after: int, wanted: Wanted, found: Sequence[tuple[Near, T]]) -> list[tuple[Near, T]]:
        """What was found on a page, without what an earlier page has found already."""
        new = {near.ids for near in await self._neighbours.not_told_before(after, [near for near, _ in found], wanted)}
        return [(near, one) for near, one in found if near.ids in new]

    async def _walk(
        self,
        wanted: Wanted,
        judge: Callable[[Sequence[Near]], Awaitable[list[tuple[Near, T]]]],
        first: int,
        after: str | None,
    ) -> Page[Any]:
        """Pages until enough was found, or the time is over. What a page finds stands in the order of the ids; the cursor
        names where the page begins, and the pair that was shown last, whatever becomes of those before it."""
        last, *shown = decode_cursor(after, int, int, int) if after else (0, 0, 0)
        until = time.monotonic() + SECONDS_A_CALL
        nodes: list[T] = []
        while True:
            page = await self._neighbours.page(last, wanted)
            rest = [near for near in page.pairs if near.ids > tuple(shown)]
            for near, one in await self._new(last, wanted, await judge(rest)):
                if len(nodes) == first:
                    return Page[Any](nodes=tuple(nodes), has_next_page=True, end_cursor=encode_cursor(last, *shown))
                nodes.append(one)
                shown = list(near.ids)
            if page.last is None:
                return Page[Any](nodes=tuple(nodes), has_next_page=False, end_cursor=None)
            last, shown = page.last, [0, 0]
            if time.monotonic() > until:
                return Page[Any](nodes=tuple(nodes), has_next_page=True, end_cursor=encode_cursor(last, 0, 0))


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
