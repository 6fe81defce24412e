"""What is stored is changed, linked and deleted, in the graph first; the index follows."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from bank.lessons import TITLE_BYTES, Lessons, lock_lesson, pass_on, revise
from bank.model import Lesson, LessonStatus, first_words
from bank.sync import Change, Sync
from bank.topics import find_topics, link_topics
from graph.checks import LINKS, TEXT_BYTES, Checks, camel, check_own_fields, check_window
from graph.errors import BadInput, NotFound, Problem
from graph.model import Edge, Event, Memory, MemoryType, Value, memory_from_row, own_fields
from graph.session import Graph, Row, Transaction
from graph.store import Memories, changed, edge_changes


class Deleted(Value):
    id: str
    deleted: bool
    edges_removed: int = 0
    pointers_removed: int = 0


class Bank:
    """Each change is one graph transaction; its commit is the acknowledgement."""

    def __init__(self, graph: Graph, sync: Sync) -> None:
        self._graph = graph
        self._sync = sync
        self.memories = Memories(graph)
        self.lessons = Lessons(graph)

    # ------------------------------------------------------------ memories and edges

    async def update_memory(self, memory_id: str, patch: dict[str, Any]) -> Memory:
        """`patch`: only what is to change; None clears an optional field."""
        checks = Checks()
        checks.name("id", memory_id)
        _check_patch(checks, patch)
        checks.done()

        async def work(tx: Transaction) -> tuple[Memory, bool]:
            await tx.run("lock_known_memories", ids=[memory_id])
            rows = await tx.run("memories_by_id", ids=[memory_id])
            if not rows:
                raise NotFound.ids("memory", "id", [memory_id])
            kind, old = MemoryType(rows[0]["type"]), rows[0]["properties"]
            _check_patch_of_type(kind, memory_id, patch, memory_from_row(rows[0]))
            wanted = {key: list(value) if isinstance(value, tuple) else value for key, value in patch.items()}
            changes = changed(old, wanted)
            if changes:
                changes |= {
                    "revision": revision,
                    "to_index": True,
                    "update_time": datetime.now(UTC),
                    "version": old["version"] + 1,
                }
                await tx.run("put_memories", rows=[{"id": memory_id, "type": kind.value, "changes": changes}])
                if "text" in changes or "tags" in changes:
                    await tx.run("forget_topics", ids=[memory_id])
            return memory_from_row({"type": kind.value, "properties": {**old, **changes}}), bool(changes)

        async with self._sync.writing() as revision:
            memory, has_changed = await self._graph.write(work)
            await self._sync.index(revision, [Change(memory)] if has_changed else [], [memory])
        return memory

    async def link_topics(self, ids: Sequence[str]) -> list[Edge]:
        """Joins memories that are there to those they share something rare with; returns the edges that were made."""

        read = await self.memories.by_id(sorted(ids))
        topics = await find_topics(self._graph, {id: (one.text, one.tags) for id, one in read.items()})

        async def work(tx: Transaction) -> list[Edge]:
            await tx.run("lock_known_memories", ids=sorted(ids))
            now = {
                row["properties"]["id"]: row["properties"] for row in await tx.run("memories_by_id", ids=sorted(ids))
            }
            same = {
                id: (one.text, one.tags) for id, one in read.items() if now.get(id, {}).get("revision") == one.revision
            }
            return await link_topics(tx, [one for one in topics if one.source in same], same, datetime.now(UTC))

        return await self._graph.write(work)

    async def delete_memory(self, memory_id: str) -> Deleted:
        async with self._sync.writing() as revision:
            rows = await self._graph.run("delete_memory", id=memory_id, revision=revision)
            if not rows:
                return Deleted(id=memory_id, deleted=False)
            orphaned = [Lesson.from_row(properties) for properties in rows[0]["lessons"]]
            self._sync.removed()
            await self._sync.index(revision, [Change(lesson) for lesson in orphaned])
        return Deleted(id=memory_id, deleted=True, edges_removed=rows[0]["edges"], pointers_removed=len(orphaned))

    async def update_edge(
        self, edge_id: str, text: str | None, weight: float | None, tags: Sequence[str] | None
    ) -> Edge:
        checks = Checks()
        checks.name("id", edge_id)
        if text is not None:
            checks.text("text", text)
        if weight is not None:
            checks.share("weight", weight)
        if tags is not None:
            checks.names("tags", tags)
        checks.done()
        given = {"text": text, "weight": weight, "tags": None if tags is None else list(tags)}
        wanted = {key: value for key, value in given.items() if value is not None}

        async def work(tx: Transaction) -> Edge:
            rows = await tx.run("lock_edges", ids=[edge_id])
            if not rows:
                raise NotFound.ids("edge", "id", [edge_id])
            changes = edge_changes(rows[0]["properties"], wanted)
            if changes:
                await tx.run("change_edges", rows=[{"id": edge_id, "changes": changes}])
            return Edge.from_row(
                {"source": rows[0]["source"], "target": rows[0]["target"], **rows[0]["properties"], **changes}
            )

        return await self._graph.write(work)

    async def delete_edge(self, edge_id: str) -> Deleted:
        (row,) = await self._graph.run("delete_edge", id=edge_id)
        return Deleted(id=edge_id, deleted=row["deleted"] > 0, edges_removed=row["deleted"])

    # ------------------------------------------------------------ lessons

    async def update_lesson(self, rb_id: int, patch: dict[str, Any]) -> Lesson:
        checks = Checks()
        for key, limit in (("title", TITLE_BYTES), ("key_lesson", TEXT_BYTES), ("context_to_prefer", TEXT_BYTES)):
            if key in patch:
                checks.text(camel(key), patch[key], limit)
        for key in ("tags", "outcome", "scope", "status"):
            if key in patch and patch[key] is None:
                checks.add(camel(key), "cannot be null; leave it out to keep it as it is")
        if patch.get("tags") is not None:
            checks.names("tags", patch["tags"])
        checks.done()

        async def work(tx: Transaction) -> tuple[Lesson, list[Change]]:
            now = datetime.now(UTC)
            row = await lock_lesson(tx, rb_id)
            wanted = {key: list(value) if isinstance(value, tuple) else value for key, value in patch.items()}
            if "key_lesson" in patch and "title" not in patch:
                old = row["properties"]
                wanted |= first_title(old["title"], old["key_lesson"], patch["key_lesson"])
            if wanted.get("status") == LessonStatus.ACTIVE and row["properties"]["status"] == LessonStatus.RETIRED:
                wanted["reinstated"] = True  # what has retired it does not retire it again by itself
                if row["properties"].get("merged_into") is not None:
                    wanted["merged_into"] = None  # it stands for itself again, and is not merged once more
                    await tx.run("leave_merge", part=rb_id, now=now)
            vouches = wanted.keys() != {"status"} or wanted["status"] == LessonStatus.ACTIVE
            if vouches and changed(row["properties"], wanted):
                wanted["kept_by_hand"] = True  # it is no longer only what a session taught
            return await _revised(tx, row, wanted, now, revision)

        async with self._sync.writing() as revision:
            lesson, changes = await self._graph.write(work)
            await self._sync.index(revision, changes, [lesson])
        return lesson

    async def delete_lesson(self, rb_id: int) -> Deleted:
        rows = await self._graph.run("delete_lesson", ids=[rb_id])
        if not rows:
            return Deleted(id=str(rb_id), deleted=False)
        self._sync.removed()
        return Deleted(id=str(rb_id), deleted=True, pointers_removed=rows[0]["pointers"])

    async def link_lesson(self, rb_id: int, node_ids: Sequence[str]) -> Lesson:
        return await self._relink(rb_id, node_ids, lambda old: [*old, *(x for x in node_ids if x not in old)])

    async def unlink_lesson(self, rb_id: int, node_ids: Sequence[str]) -> Lesson:
        return await self._relink(rb_id, node_ids, lambda old: [x for x in old if x not in node_ids])

    async def _relink(self, rb_id: int, node_ids: Sequence[str], change: Any) -> Lesson:
        checks = Checks()
        checks.names("nodeIds", node_ids, most=LINKS, limit=256)
        checks.done()

        async def work(tx: Transaction) -> tuple[Lesson, list[Change]]:
            found = {row["id"] for row in await tx.run("lock_known_memories", ids=sorted(set(node_ids)))}
            if missing := [node for node in dict.fromkeys(node_ids) if node not in found]:
                raise NotFound.ids("memory", "nodeIds", missing)
            row = await lock_lesson(tx, rb_id)
            nodes = list(dict.fromkeys(change(row["properties"]["link_nodes"])))
            if len(nodes) > LINKS:
                raise BadInput.of(
                    [Problem("nodeIds", f"the lesson would have {len(nodes):,} sources; {LINKS:,} at most")]
                )
            linked = {"link_nodes": nodes}
            vouched = {"kept_by_hand": True} if changed(row["properties"], linked) else {}
            return await _revised(tx, row, linked | vouched, datetime.now(UTC), revision)

        async with self._sync.writing() as revision:
            lesson, changes = await self._graph.write(work)
            await self._sync.index(revision, changes, [lesson])
        return lesson


# ---------------------------------------------------------------- the parts of a write


def _check_patch(checks: Checks, patch: dict[str, Any]) -> None:
    if "text" in patch:
        checks.text("patch.text", patch["text"])
    for key in ("tags", "analysis_types", "metrics"):
        if key in patch and patch[key] is None:
            checks.add(f"patch.{camel(key)}", "cannot be null; [] empties it")
    if patch.get("tags") is not None:
        checks.names("patch.tags", patch["tags"])
    check_own_fields(checks, "patch", {key: value for key, value in patch.items() if key not in ("text", "tags")})


def _check_patch_of_type(kind: MemoryType, memory_id: str, patch: dict[str, Any], old: Memory) -> None:
    checks = Checks()
    for key in patch:
        if key not in ("text", "tags") and key not in own_fields(kind):
            checks.add(f"patch.{camel(key)}", f"{memory_id} is a {kind.value}, which has no such field")
    if isinstance(old, Event):
        check_window(checks, "patch", patch.get("start_date", old.start_date), patch.get("end_date", old.end_date))
    checks.done()


async def _revised(
    tx: Transaction, row: Row, wanted: dict[str, Any], now: datetime, revision: int
) -> tuple[Lesson, list[Change]]:
    """The lesson with these changes, and all that changes by it."""
    lesson, has_changed = await revise(tx, row, wanted, now, revision)
    wholes = await pass_on(tx, {lesson.rb_id: row}, [lesson], now, revision)
    return lesson, [Change(one) for one in ([lesson] if has_changed else []) + list(wholes.values())]


def first_title(old_title: str, old_lesson: str, new_lesson: str) -> dict[str, str]:
    """A title that was made of the lesson's first words follows the lesson; one that was given stays."""
    return {"title": first_words(new_lesson)} if old_title == first_words(old_lesson) else {}
