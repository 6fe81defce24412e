"""Near-duplicates become one lesson, which keeps every source, signal and link of its parts; and back again.

The parts stay as they are, with their own sources, signals and links, but RETIRED and pointing at the merged lesson. So
a merge is undone by turning the states round. The text is that of the part with the best confidence, never a new one.
What the merged lesson has of its parts is marked as a copy. What it was given itself goes back, when it is undone, to
the part whose text it showed; to every part that is left, if that one is gone.
"""

import time
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from itertools import combinations
from typing import Any

from bank.learn import Learning
from bank.lesson_links import connect, copies, put_links
from bank.lessons import Lessons, lock_lessons, put_lessons, revise, revise_all
from bank.model import Gist, Lesson, LessonDraft, LessonStatus, Outcome, Scope
from bank.neighbours import Near, Neighbours, Wanted
from bank.relations import SAME_MEANING, say_the_same
from bank.signals import relearn
from bank.sync import Change, Sync
from bank.upkeep import SECONDS_A_CALL, Upkeep, compared
from bank.uplift import Arm, counted, together
from graph.checks import LINKS, TAGS
from graph.errors import BadInput, Conflict, LimitExceeded, NotFound, Problem
from graph.ids import mint
from graph.model import Page, Value
from graph.paging import decode_cursor, encode_cursor
from graph.session import Graph, Row, Transaction

MOST_PARTS = 20
MERGED_AT_ONCE = 32  # in one transaction: what takes the time is the statements, not what they do


class Merge(Value):
    """Lessons that say the same, the one whose text is kept, and the lesson they became (None: only proposed)."""

    parts: tuple[Lesson, ...]
    keeps: Lesson
    merged: Lesson | None = None


class Consolidation:
    def __init__(self, graph: Graph, sync: Sync, neighbours: Neighbours, upkeep: Upkeep, learning: Learning) -> None:
        self._graph = graph
        self._sync = sync
        self._neighbours = neighbours
        self._upkeep = upkeep
        self._learning = learning
        self._lessons = Lessons(graph)

    async def consolidate(self, dry_run: bool, namespace: str | None, first: int, after: str | None) -> Page[Merge]:
        """Proposes merges, or makes them, until there are enough or the time is over; the cursor says how to go on."""
        last, shown = decode_cursor(after, int, int) if after else (0, 0)
        until = time.monotonic() + SECONDS_A_CALL
        nodes: list[Merge] = []
        taken: set[int] = set()
        while True:
            wanted = Wanted(SAME_MEANING, namespace, within=True)
            page = await self._neighbours.page(last, wanted)
            groups = await self._groups(last, page.pairs, wanted, taken)
            groups = [group for group in groups if group[0].rb_id > shown]  # each by the lesson that leads it
            place = 0
            while place < len(groups):
                if len(nodes) == first or (not dry_run and time.monotonic() > until):
                    # What was merged is no longer met; what was only proposed is.
                    cursor = encode_cursor(last, shown if dry_run else 0)
                    return Page[Merge](nodes=tuple(nodes), has_next_page=True, end_cursor=cursor)
                some = groups[place : place + min(first - len(nodes), MERGED_AT_ONCE)]
                place, shown = place + len(some), some[-1][0].rb_id
                for group, merged in zip(some, [None] * len(some) if dry_run else await self.merge(some), strict=True):
                    if dry_run or merged is not None:
                        nodes.append(Merge(parts=tuple(group), keeps=best_of(group), merged=merged))
            if page.last is None:
                return Page[Merge](nodes=tuple(nodes), has_next_page=False, end_cursor=None)
            last, shown = page.last, 0
            if time.monotonic() > until:
                return Page[Merge](nodes=tuple(nodes), has_next_page=True, end_cursor=encode_cursor(last, 0))

    async def step(self, after: int) -> tuple[int, int, int | None]:
        """One step of the sweep: how many lessons were looked at, how many merges were made, and where it goes on."""
        wanted = Wanted(SAME_MEANING, within=True)
        page = await self._neighbours.page(after, wanted)
        groups = await self._groups(after, page.pairs, wanted, set())
        merged: list[Lesson | None] = []
        for start in range(0, len(groups), MERGED_AT_ONCE):
            merged += await self.merge(groups[start : start + MERGED_AT_ONCE])
        return page.looked_at, sum(one is not None for one in merged), page.last

    async def _groups(self, after: int, pairs: Sequence[Near], wanted: Wanted, taken: set[int]) -> list[list[Lesson]]:
        """The groups among these pairs, whole, without those in which a lesson has changed meanwhile."""
        same = [near for near, is_same in await compared(pairs, _may_become_one) if is_same]
        same = await self._neighbours.not_told_before(after, same, wanted)
        found: dict[int, list[int]] = {}
        for near in same:
            found.setdefault(near.one.rb_id, []).append(near.other.rb_id)
        # Whoever joins a group must go with all of it, also with those that are met on another page.
        met = {pair for leader, others in found.items() for pair in combinations(sorted([leader, *others]), 2)}
        known = await self._upkeep.verdicts(met)
        apart = {pair for pair, verdict in known.items() if verdict.kept_apart or verdict.conflicts}
        groups = groups_of(same, apart, taken)
        whole = await self._lessons.by_id(one.rb_id for group in groups for one in group)
        return [
            [whole[one.rb_id] for one in group]
            for group in groups
            if all(one.rb_id in whole and whole[one.rb_id].revision == one.revision for one in group)
        ]

    # ------------------------------------------------------------ merging

    async def merge(self, groups: Sequence[Sequence[Lesson]]) -> list[Lesson | None]:
        """Several merges, which share no lesson, in one transaction. None where a part has changed meanwhile, or where
        the whole would hold more than a lesson can."""
        parts = {mint(): group for group in groups}
        drafts = {rb_id: _draft(rb_id, group) for rb_id, group in parts.items()}
        parts = {rb_id: group for rb_id, group in parts.items() if _fits(drafts[rb_id])}
        self._sync.expect([text for one in parts for text in (drafts[one].key_lesson, drafts[one].context_to_prefer)])
        async with self._sync.writing() as revision:
            try:
                changes = await self._graph.write(lambda tx: self._merged(tx, drafts, parts, revision))
            except LimitExceeded:  # more links than one lesson may have; alone, the others are well
                if len(groups) == 1:
                    return [None]
                return [merged for group in groups for merged in await self.merge([group])]
            await self._sync.index(revision, changes)
        made = {change.record.rb_id: change.record for change in changes if isinstance(change.record, Lesson)}
        return [made.get(rb_id) for rb_id in drafts]

    async def _merged(
        self, tx: Transaction, drafts: dict[int, LessonDraft], parts: dict[int, Sequence[Lesson]], revision: int
    ) -> list[Change]:
        """`parts`: of each merged lesson, by its id. What is changed: these, and their parts."""
        now = datetime.now(UTC)
        ids = sorted(part.rb_id for group in parts.values() for part in group)
        await tx.run("lock_known_memories", ids=sorted({node for one in parts for node in drafts[one].link_nodes}))
        linked = await tx.run("links_of_lessons", ids=ids)
        ends = {link[end] for row in linked for link in row["links"] for end in ("source", "target")}
        rows = await tx.run("lock_known_lessons", ids=sorted(ends.union(ids)))
        locked = {row["rb_id"]: row for row in rows}
        parts = {
            rb_id: group
            for rb_id, group in parts.items()
            if all(
                part.rb_id in locked and locked[part.rb_id]["properties"]["revision"] == part.revision for part in group
            )
        }
        if not parts:
            return []
        into = {part.rb_id: rb_id for rb_id, group in parts.items() for part in group}
        named = {rb_id: sorted(part.rb_id for part in group) for rb_id, group in parts.items()}
        of = [{"merged": rb_id, "parts": own} for rb_id, own in named.items()]
        new = await lock_lessons(tx, parts)
        lessons, _, _ = await put_lessons(tx, [drafts[rb_id] for rb_id in parts], new, now, revision, self._learning)
        shared = {row["merged"]: row["shared"] for row in await tx.run("share_receipts", rows=of)}
        kept = {rb_id: {"merged_from": named[rb_id], **_kept(group, shared[rb_id])} for rb_id, group in parts.items()}
        await tx.run("put_lessons", rows=[{"rb_id": rb_id, "changes": own} for rb_id, own in kept.items()])
        await tx.run("share_signals", rows=of)
        written = {rb_id: {"properties": {**lessons[rb_id].model_dump(), **kept[rb_id]}} for rb_id in parts}
        learnt = await relearn(tx, written, now, self._learning)
        own = [link for row in await tx.run("links_of_lessons", ids=sorted(into)) for link in row["links"]]
        if links := copies(own, {rb_id: [merged] for rb_id, merged in into.items()}):
            await put_links(tx, links, now)
        texts = {best_of(group).rb_id for group in parts.values()}
        before = [
            {
                "rb_id": rb_id,
                "merged": merged,
                "updated_at": locked[rb_id]["properties"]["updated_at"],
                "keeps": rb_id in texts,
            }
            for rb_id, merged in into.items()
        ]
        wanted = {
            rb_id: {"status": LessonStatus.RETIRED.value, "merged_into": merged} for rb_id, merged in into.items()
        }
        retired = await revise_all(tx, [locked[rb_id] for rb_id in sorted(into)], wanted, now, revision)
        await tx.run("note_merge", parts=before, now=now)
        await tx.run("share_verdicts", rows=of)
        return [*(Change(learnt[rb_id], fresh=True) for rb_id in parts), *(Change(part) for part in retired)]

    async def undo(self, rb_id: int) -> list[Lesson]:
        """The parts are as they were before, with what was said of them and of the merged lesson since; the merged lesson
        is RETIRED, and they are not merged again."""

        async def work(tx: Transaction) -> list[Change]:
            now = datetime.now(UTC)
            # Memories are locked before lessons: what the lesson is given meanwhile is not among them.
            nodes = [node for row in await tx.run("lessons_by_id", ids=[rb_id]) for node in own_sources(row)]
            there = {row["id"] for row in await tx.run("lock_known_memories", ids=sorted(nodes))}
            merged = await _lock_merged(tx, rb_id)
            given = [node for node in own_sources(merged) if node in there]
            parts = {row["rb_id"]: row for row in await tx.run("parts_of_merged", merged=rb_id)}
            if not parts:
                raise Conflict(
                    f"Every lesson that {rb_id} was made of has been deleted: nothing is left to go back to. "
                    f"Keep {rb_id}, or set it RETIRED."
                )
            heirs = [part for part, row in parts.items() if row["keeps"]] or sorted(parts)
            links = [link for row in await tx.run("links_of_lessons", ids=[rb_id]) for link in row["links"]]
            own = _given_to(heirs, rb_id, [link for link in links if not link["copied"]], parts)
            restored: dict[int, Lesson] = {}
            for row in await tx.run("lock_known_lessons", ids=sorted(parts)):
                part = row["rb_id"]
                wanted: dict[str, Any] = {"merged_into": None}
                if row["properties"]["status"] == LessonStatus.RETIRED:
                    wanted["status"] = LessonStatus.ACTIVE.value
                new = [x for x in given if part in heirs and x not in row["properties"]["link_nodes"]]
                if new:
                    wanted["link_nodes"] = [*row["properties"]["link_nodes"], *new][:LINKS]
                restored[part], _ = await revise(tx, row, wanted, now, revision)
                if not new:
                    again = {"updated_at": _moment(parts[part]["updated_before"])}
                    await tx.run("put_lessons", rows=[{"rb_id": part, "changes": again}])
                    restored[part] = restored[part].model_copy(update=again)
            pairs = [list(pair) for pair in combinations(sorted([rb_id, *parts]), 2)]
            await tx.run("undo_merge", merged=rb_id, pairs=pairs, now=now)
            restored |= await self._inherit(tx, rb_id, heirs, now)
            if own:
                ends = {link[end] for link in own for end in ("source", "target")}
                rows = await tx.run("lock_known_lessons", ids=sorted(ends))
                await connect(tx, own, {row["rb_id"]: row for row in rows}, now)
            wanted = {"status": LessonStatus.RETIRED.value, "merged_from": [], "copied_sources": None}
            lesson, _ = await revise(tx, merged, wanted, now, revision)
            return [*(Change(restored[part]) for part in sorted(parts)), Change(lesson)]

        async with self._sync.writing() as revision:
            changes = await self._graph.write(work)
            await self._sync.index(revision, changes)
        return [change.record for change in changes[:-1] if isinstance(change.record, Lesson)]

    async def _inherit(self, tx: Transaction, merged: int, heirs: Sequence[int], now: datetime) -> dict[int, Lesson]:
        """What was said of the merged lesson itself counts for these."""
        told = {row["rb_id"]: row["counted"] for row in await tx.run("inherit", merged=merged, heirs=list(heirs))}
        locked = {row["rb_id"]: row for row in await tx.run("lock_known_lessons", ids=sorted(heirs))}
        for rb_id, row in locked.items():
            for arm, succeeded in told[rb_id]:
                row["properties"]["worked"] = counted(row["properties"].get("worked", ()), Arm(arm), succeeded)
        rows = [{"rb_id": x, "changes": {"worked": locked[x]["properties"]["worked"]}} for x in locked if told[x]]
        await tx.run("put_lessons", rows=rows)
        return await relearn(tx, locked, now, self._learning)


def own_sources(row: Row) -> list[str]:
    """The sources of a merged lesson that it does not have from its parts."""
    copied = set(row["properties"].get("copied_sources") or ())
    return [node for node in row["properties"]["link_nodes"] if node not in copied]


def _given_to(heirs: Sequence[int], merged: int, links: Sequence[Row], parts: Collection[int]) -> list[Row]:
    """The links of a merged lesson to others as links of these."""
    return [
        {
            "source": heir if link["source"] == merged else link["source"],
            "target": heir if link["target"] == merged else link["target"],
            **{key: link[key] for key in ("type", "strength", "evidence")},
        }
        for link in links
        if not {link["source"], link["target"]} & set(parts)
        for heir in heirs
    ]


async def _lock_merged(tx: Transaction, rb_id: int) -> Row:
    rows = await tx.run("lock_known_lessons", ids=[rb_id])
    if not rows:
        raise NotFound.ids("lesson", "rbId", [str(rb_id)])
    properties = rows[0]["properties"]
    if not properties.get("merged_from"):
        raise BadInput.of([Problem("rbId", f"{rb_id} was not made by consolidate, or has been undone")])
    if properties.get("merged_into"):
        raise Conflict(f"Lesson {rb_id} became part of lesson {properties['merged_into']}. Undo that one first.")
    return rows[0]


# ---------------------------------------------------------------- which lessons, and what of them


def _may_become_one(near: Near) -> bool:
    one, other = near.one, near.other
    return (one.namespace, one.scope) == (other.namespace, other.scope) and say_the_same(one, other, near.similarity)


def groups_of(same: Sequence[Near], apart: Collection[tuple[int, int]], taken: set[int]) -> list[list[Gist]]:
    """Each lesson with the later ones that say the same, and none of which is to be kept apart from another of them."""
    found: dict[int, list[Near]] = {}
    for near in same:
        found.setdefault(near.one.rb_id, []).append(near)
    groups = []
    for leader, own in found.items():
        if leader in taken:
            continue
        group = [own[0].one]
        for near in sorted(own, key=lambda near: (-near.similarity, near.other.rb_id)):
            other = near.other
            if other.rb_id in taken or len(group) == MOST_PARTS:
                continue
            pairs = [(min(one.rb_id, other.rb_id), max(one.rb_id, other.rb_id)) for one in group]
            if not any(pair in apart for pair in pairs) and all(say_the_same(one, other, 1.0) for one in group):
                group.append(other)
        if len(group) > 1:
            taken |= {one.rb_id for one in group}
            groups.append(group)
    return groups


def best_of(parts: Sequence[Lesson]) -> Lesson:
    """The part whose text is kept: the best confidence, then the most use, then the oldest."""
    return max(parts, key=lambda one: (one.confidence, one.usage_count, -one.rb_id))


def _fits(draft: LessonDraft) -> bool:
    return len(draft.link_nodes) <= LINKS and len(draft.tags) <= TAGS


def _draft(rb_id: int, parts: Sequence[Lesson]) -> LessonDraft:
    best = best_of(parts)
    ordered = [best, *(part for part in parts if part is not best)]
    return LessonDraft(
        rb_id=rb_id,
        title=best.title,
        key_lesson=best.key_lesson,
        context_to_prefer=best.context_to_prefer,
        tags=tuple(dict.fromkeys(tag for part in ordered for tag in part.tags)),
        link_nodes=tuple(dict.fromkeys(node for part in ordered for node in part.link_nodes)),
        outcome=Outcome(best.outcome),
        namespace=best.namespace,
        scope=Scope(best.scope),
        start_confidence=best.start_confidence,
        learned_by=best.learned_by,
    )


def _kept(parts: Sequence[Lesson], shared: Sequence[tuple[Sequence[int], bool]]) -> dict[str, Any]:
    """What a draft does not say: since when the text is known, lost sources, and the counts of offers and outcomes.
    `shared`: the recalls that count for several of them."""
    there = dict.fromkeys(node for part in parts for node in part.link_nodes)
    twice = sum(max(0, sum(arm != Arm.WITHHELD for arm in arms) - 1) for arms, _ in shared)
    return {
        "created_at": best_of(parts).created_at,
        "lost_sources": list(dict.fromkeys(node for part in parts for node in part.lost_sources if node not in there)),
        "copied_sources": list(there),
        "offered_count": sum(part.offered_count for part in parts) - twice,
        "worked": together([part.worked for part in parts], shared),
    }


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
