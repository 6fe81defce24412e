"""Links between lessons: made, taken away and read, and what they change in an answer.

What a chosen lesson REQUIRES comes along. Two that are in CONFLICT are offered only with a word about it. Of two that
are an ALTERNATIVE to each other the better one is offered and the other is named.

A merged lesson has the links of its parts as copies, which go when the merge is undone; what it was given itself stays.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import product
from typing import Any

from bank.bank import Deleted
from bank.lessons import lock_wholes
from bank.model import FoundLesson, LessonLink, LinkType
from graph.checks import Checks
from graph.errors import LimitExceeded, NotFound
from graph.session import Graph, Row, Transaction

MOST_LINKS = 1_000  # of one lesson
MOST_STEPS = 3  # along REQUIRES

Links = Mapping[int, Sequence[LessonLink]]


class LessonLinks:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def of(self, ids: Iterable[int]) -> dict[int, list[LessonLink]]:
        """One query for many lessons; each one's links, the strongest first."""
        wanted = sorted(set(ids))
        rows = await self._graph.read("links_of_lessons", ids=wanted) if wanted else []
        return {row["rb_id"]: [LessonLink.from_row(link) for link in row["links"]] for row in rows}

    async def connect(
        self, source: int, target: int, type: LinkType, strength: float, evidence: str | None
    ) -> LessonLink:
        """Makes the link, or changes the one that is there."""
        checks = Checks()
        checks.share("strength", strength)
        if evidence is not None:
            checks.text("evidence", evidence)
        check_pair(checks, source, target)
        checks.done()
        row: Row = {"source": source, "target": target, "type": type.value, "strength": strength, "evidence": evidence}

        async def work(tx: Transaction) -> LessonLink:
            (link,) = await connect(tx, [row], await lock_pair(tx, source, target), datetime.now(UTC))
            return link

        return await self._graph.write(work)

    async def disconnect(self, source: int, target: int, type: LinkType) -> Deleted:
        """Takes the link away; also from what the lessons became part of, if no other part has it."""
        row: Row = {"source": source, "target": target, "type": type.value, "strength": 0.0, "evidence": None}

        async def work(tx: Transaction) -> int:
            known = await tx.run("lock_known_lessons", ids=sorted({source, target}))
            wholes = await lock_wholes(tx, {one["rb_id"]: one for one in known})
            links = [row, *copies([row], wholes)]
            said: dict[str, Any] = {"type": type.value, "both_ways": type.both_ways}
            deleted = [
                await tx.run(
                    "disconnect_lessons", source=one["source"], target=one["target"], copies=one is not row, **said
                )
                for one in links
            ]
            return int(deleted[0][0]["deleted"])

        deleted = await self._graph.write(work)
        return Deleted(id=f"{source} {type} {target}", deleted=deleted > 0, edges_removed=deleted)


def check_pair(checks: Checks, source: int, target: int) -> None:
    if source == target:
        checks.add("target", f"is {target}, its own source; a link joins two lessons")


async def lock_pair(tx: Transaction, source: int, target: int) -> dict[int, Row]:
    found = {row["rb_id"]: row for row in await tx.run("lock_known_lessons", ids=sorted([source, target]))}
    for field, rb_id in (("source", source), ("target", target)):
        if rb_id not in found:
            raise NotFound.ids("lesson", field, [str(rb_id)])
    return found


async def connect(tx: Transaction, rows: Sequence[Row], locked: dict[int, Row], now: datetime) -> list[LessonLink]:
    """Writes links between lessons that are locked, and copies of them for what these lessons became part of."""
    wholes = await lock_wholes(tx, locked)
    links = await put_links(tx, rows, now)
    if more := copies(rows, wholes):
        await put_links(tx, more, now)
    return links


def copies(links: Iterable[Row], wholes: Mapping[int, Sequence[int]]) -> list[Row]:
    """The links of parts as links of what they became, and where the other end is a part too, also between the two that
    they became; of several of a kind the strongest. `wholes`: what each lesson became part of."""
    found: dict[tuple[int, int, str], Row] = {}
    for link in sorted(links, key=lambda link: link["strength"]):
        sources, targets = ([link[end], *wholes.get(link[end], ())] for end in ("source", "target"))
        if set(sources) & set(targets):  # within one merge
            continue
        for source, target in product(sources, targets):
            if (source, target) != (link["source"], link["target"]):
                said = {key: link[key] for key in ("type", "strength", "evidence")}
                found[source, target, link["type"]] = {"source": source, "target": target, **said, "copied": True}
    return list(found.values())


async def put_links(tx: Transaction, rows: Sequence[Row], now: datetime) -> list[LessonLink]:
    """Writes links between lessons that are locked. One that says the same of both is kept the way it was first given."""
    ends = {end for row in rows for end in (row["source"], row["target"])}
    there = {row["rb_id"]: row["links"] for row in await tx.run("links_of_lessons", ids=sorted(ends))}
    known = {(link["source"], link["target"], link["type"]) for links in there.values() for link in links}
    turned = []
    for row in rows:
        backwards = (row["target"], row["source"], row["type"])
        if LinkType(str(row["type"])).both_ways and backwards in known:
            row = {**row, "source": row["target"], "target": row["source"]}
        turned.append(row)
        known.add((row["source"], row["target"], row["type"]))
    for end in ends:
        if sum(end in link[:2] for link in known) > MOST_LINKS:
            raise LimitExceeded(f"Lesson {end} would have more than {MOST_LINKS:,} links. Disconnect some first.")
    return [LessonLink.from_row(link) for link in await tx.run("put_lesson_links", rows=turned, now=now)]


# ---------------------------------------------------------------- in an answer


def known_then(links: Links, as_of: datetime | None) -> Links:
    """Only links that were made by then."""
    if as_of is None:
        return links
    return {rb_id: [link for link in own if link.created_time <= as_of] for rb_id, own in links.items()}


def without_second_places(ranked: Sequence[int], links: Links) -> tuple[list[int], dict[int, list[int]]]:
    """Of lessons, best first, those that are no ALTERNATIVE to a better one; and in whose favour the others went."""
    kept: list[int] = []
    left_out: dict[int, list[int]] = {}
    for rb_id in ranked:
        better = [one for one in _others(links, rb_id, LinkType.ALTERNATIVE) if one in kept]
        if better:
            left_out.setdefault(better[0], []).append(rb_id)
        else:
            kept.append(rb_id)
    return kept, left_out


def required(chosen: Iterable[int], links: Links) -> list[int]:
    """What these lessons REQUIRE, in their order, the strongest first."""
    found = (
        link.target
        for rb_id in chosen
        for link in links.get(rb_id, ())
        if link.type == LinkType.REQUIRES and link.source == rb_id
    )
    return list(dict.fromkeys(found))


def alternatives_of(rb_id: int, links: Links, among: Collection[int]) -> list[int]:
    return [one for one in _others(links, rb_id, LinkType.ALTERNATIVE) if one in among]


def each_behind_its_reason(
    chosen: Sequence[FoundLesson], brought: Mapping[int, FoundLesson], links: Links
) -> list[FoundLesson]:
    """The chosen lessons in their order, and behind each what it brought along."""
    left = dict(brought)
    answer: list[FoundLesson] = []

    def tell(one: FoundLesson) -> None:
        answer.append(one)
        for rb_id in required([one.lesson.rb_id], links):
            if rb_id in left:
                tell(left.pop(rb_id))

    for one in chosen:
        tell(one)
    return answer


def with_word(found: Sequence[FoundLesson], links: Links, left_out: Mapping[int, Sequence[int]]) -> list[FoundLesson]:
    """Each lesson with what its links say of the others in the answer."""
    offered = {one.lesson.rb_id for one in found}
    told = []
    for one in found:
        rb_id = one.lesson.rb_id
        requiring = [
            link.source for link in links.get(rb_id, ()) if link.type == LinkType.REQUIRES and link.target == rb_id
        ]
        required_by = tuple(rb_id for rb_id in dict.fromkeys(requiring) if rb_id in offered)
        conflicts_with = tuple(x for x in _others(links, rb_id, LinkType.CONFLICTS) if x in offered)
        alternatives = tuple(x for x in dict.fromkeys(left_out.get(rb_id, ())) if x not in offered)
        told.append(one._replace(required_by=required_by, conflicts_with=conflicts_with, alternatives=alternatives))
    return told


def _others(links: Links, rb_id: int, type: LinkType) -> list[int]:
    return list(dict.fromkeys(link.other(rb_id) for link in links.get(rb_id, ()) if link.type == type))
