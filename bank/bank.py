"""The bank: what agents write and ask, over both stores. Writes go to the graph first; the index follows."""

import json
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from bank.keys import claim_key, digest_of
from bank.learn import Learning
from bank.lessons import (
    TITLE_BYTES,
    Lessons,
    check_lessons,
    lock_drafted,
    lock_lesson,
    missing_sources,
    pass_on,
    put_lessons,
    revise,
    stored_sources,
)
from bank.model import Lesson, LessonDraft, LessonStatus, first_words
from bank.sync import Change, Sync
from bank.topics import find_topics, link_topics
from graph.checks import (
    ITEMS,
    LINKS,
    TEXT_BYTES,
    Checks,
    camel,
    check_edges,
    check_memories,
    check_own_fields,
    check_twins,
    check_window,
    is_storable,
)
from graph.errors import BadInput, Conflict, NotFound, Problem
from graph.ids import mint
from graph.model import (
    Edge,
    EdgeDraft,
    Event,
    Memory,
    MemoryDraft,
    MemoryType,
    Value,
    memory_from_row,
    own_fields,
)
from graph.session import Graph, Row, Transaction
from graph.store import (
    Memories,
    MintedTwice,
    Written,
    changed,
    edge_changes,
    lock_memories,
    make_memory,
    put_edges,
    put_memories,
    unknown_ends,
    with_ids,
)


class RememberCall(Value):
    """One atomic write."""

    memories: tuple[MemoryDraft, ...] = ()
    edges: tuple[EdgeDraft, ...] = ()
    lessons: tuple[LessonDraft, ...] = ()
    idempotency_key: str | None = None
    link_topics: bool = False

    def texts(self) -> list[str]:
        """What is embedded of it."""
        lessons = [text for draft in self.lessons for text in (draft.key_lesson, draft.context_to_prefer)]
        return [draft.text for draft in self.memories] + lessons

    def digest(self) -> str:
        return digest_of(self.model_dump(mode="json", exclude={"idempotency_key"}))


class Remembered(Value):
    memories: tuple[Memory, ...]
    edges: tuple[Edge, ...]
    lessons: tuple[Lesson, ...]
    created: int
    updated: int
    unchanged: int


class Deleted(Value):
    id: str
    deleted: bool
    edges_removed: int = 0
    pointers_removed: int = 0


Rehearsed = Callable[[Transaction, Remembered], Awaitable[None]]


class Bank:
    """Every write of the service. Each is one graph transaction; its commit is the acknowledgement."""

    def __init__(self, graph: Graph, sync: Sync, learning: Learning) -> None:
        self._graph = graph
        self._sync = sync
        self._learning = learning
        self.memories = Memories(graph)
        self.lessons = Lessons(graph)

    # ------------------------------------------------------------ remember

    async def remember(self, call: RememberCall) -> Remembered:
        checks = _check_call(call)
        if checks.problems:
            checks.problems += await self._unknown_names(call)
        checks.done()
        self._sync.expect(call.texts())
        while True:
            try:
                async with self._sync.writing() as revision:
                    answer, changes = await self._write_call(call, revision)
                    await self._sync.index(revision, changes)
                return answer
            except MintedTwice:
                continue
            except Conflict as conflict:
                await self._name_taken(call, conflict)
                raise

    async def rehearse(self, call: RememberCall, then: Rehearsed) -> None:
        """Runs a write, and in its transaction what comes then; all of it is rolled back: nothing is stored, nor ever seen
        by others."""
        await self._write_call(call, mint(), then)

    async def _name_taken(self, call: RememberCall, conflict: Conflict) -> None:
        """A lesson's id is its key in an index that tenants may share, so it is unique over all of them."""
        given = [draft.rb_id for draft in call.lessons if draft.rb_id is not None]
        if taken := [str(row["rb_id"]) for row in await self._graph.read("lessons_of_others", ids=given)]:
            raise Conflict(
                f"Another tenant has the lesson id {', '.join(taken)}: leave rbId out, or choose another.",
                [Problem("rbId", f"another tenant has the lesson id {one}") for one in taken],
            ) from conflict

    async def _write_call(
        self, call: RememberCall, revision: int, rehearsed: Rehearsed | None = None
    ) -> tuple[Remembered, list[Change]]:
        memory_drafts, edge_drafts, minted = with_ids(call.memories, call.edges)
        minted_lessons = {place: mint() for place, draft in enumerate(call.lessons) if draft.rb_id is None}
        lesson_drafts = [
            draft.model_copy(update={"rb_id": minted_lessons[place]}) if place in minted_lessons else draft
            for place, draft in enumerate(call.lessons)
        ]
        named = {end for edge in edge_drafts for end in (edge.source, edge.target)}
        named |= {node for lesson in lesson_drafts for node in lesson.link_nodes}
        told = {draft.id: (draft.text, draft.tags) for draft in memory_drafts if draft.id}
        alone = len(memory_drafts) == 1 and not edge_drafts and not lesson_drafts and rehearsed is None
        if alone and call.idempotency_key is None and not call.link_topics:
            made = await make_memory(self._graph, memory_drafts[0], datetime.now(UTC), revision)
            if made is not None:
                memory, fresh = made
                answer = Remembered(memories=(memory,), edges=(), lessons=(), created=1, updated=0, unchanged=0)
                return answer, [Change(memory, fresh)]
        topics = await find_topics(self._graph, told) if call.link_topics else []

        async def work(tx: Transaction) -> tuple[Remembered, list[Change]]:
            now = datetime.now(UTC)
            if call.idempotency_key is not None:
                kept = await claim_key(tx, call.idempotency_key, call.digest())
                if kept is not None:
                    return await self._answer_again(kept), []
            others = named | await stored_sources(tx, call.lessons)
            written_rows, known_rows = await lock_memories(tx, memory_drafts, others, now, revision)
            lesson_rows = await lock_drafted(tx, lesson_drafts, others | told.keys())
            if any(row.get("type") is not None and key in minted for key, row in written_rows.items()) or any(
                "version" in lesson_rows[rb_id]["properties"] for rb_id in minted_lessons.values()
            ):
                raise MintedTwice
            there = set(written_rows) | set(known_rows)
            problems = unknown_ends(edge_drafts, there) + missing_sources(lesson_drafts, there)
            memories, memory_log, wrong_types = await put_memories(tx, memory_drafts, written_rows, now, revision)
            edges, edge_log, wrong_ends = await put_edges(tx, edge_drafts, minted, now)
            problems += wrong_types + wrong_ends
            if problems:
                raise BadInput.of(problems)  # and nothing of what was written so far stays
            if rewritten := [id for id, one in memory_log.items() if one.changed and not one.created]:
                await tx.run("forget_topics", ids=rewritten)
            made = await link_topics(tx, topics, told, now) if topics else []
            lessons, lesson_log, pointers = await put_lessons(
                tx, lesson_drafts, lesson_rows, now, revision, self._learning
            )
            wholes = await pass_on(tx, lesson_rows, lessons.values(), now, revision)
            lessons |= {rb_id: whole for rb_id, whole in wholes.items() if rb_id in lessons}
            for whole in wholes.values():
                for memory_id in pointers.keys() & set(whole.link_nodes):
                    pointers[memory_id] += [whole.rb_id]
            for memory_id, rb_ids in pointers.items():
                if memory_id in memories:
                    old = memories[memory_id]
                    kept_ids = tuple(x for x in old.reasoning_pointer_ids if x not in rb_ids)
                    memories[memory_id] = old.model_copy(update={"reasoning_pointer_ids": (*kept_ids, *rb_ids)})
            log = [*memory_log.values(), *edge_log.values(), *lesson_log.values()]
            log += [Written(created=True, changed=True)] * len(made)
            answer = Remembered(
                memories=tuple(memories[draft.id] for draft in memory_drafts if draft.id),
                edges=(*(edges[draft.id] for draft in edge_drafts if draft.id), *made),
                lessons=tuple(lessons[draft.rb_id] for draft in lesson_drafts if draft.rb_id),
                created=sum(one.created for one in log),
                updated=sum(one.changed and not one.created for one in log),
                unchanged=sum(not one.changed for one in log),
            )
            if call.idempotency_key is not None:
                await tx.run("keep_answer", key=call.idempotency_key, answer=_kept(answer))
            changes = [*_changes(memories, memory_log), *_changes(lessons, lesson_log)]
            told_of = {rb_id for rb_id, one in lesson_log.items() if one.changed}
            return answer, [*changes, *(Change(one) for rb_id, one in wholes.items() if rb_id not in told_of)]

        if rehearsed is None:
            return await self._graph.write(work)

        async def rehearsal(tx: Transaction) -> tuple[Remembered, list[Change]]:
            answer, changes = await work(tx)
            await rehearsed(tx, answer)
            return answer, changes

        return await self._graph.rehearse(rehearsal)

    async def _unknown_names(self, call: RememberCall) -> list[Problem]:
        """For a call that is refused anyway: which memories it names that are neither in it nor in the graph."""
        named = [end for edge in call.edges for end in (edge.source, edge.target)]
        named += [node for lesson in call.lessons for node in lesson.link_nodes]
        known = {draft.id for draft in call.memories if draft.id}
        known |= {name for name in named if not is_storable(name)}  # named as a problem already
        known |= set(await self.memories.by_id(name for name in named if name not in known))
        return unknown_ends(call.edges, known) + missing_sources(call.lessons, known)

    async def _answer_again(self, kept: str) -> Remembered:
        """What was answered under an idempotency key; what has been deleted since stays deleted."""
        said: dict[str, Any] = json.loads(kept)
        memories = await self.memories.by_id(said["memories"])
        edges = await self.memories.edges_by_id(said["edges"])
        lessons = await self.lessons.by_id(said["lessons"])
        return Remembered(
            memories=tuple(memories[key] for key in said["memories"] if key in memories),
            edges=tuple(edges[key] for key in said["edges"] if key in edges),
            lessons=tuple(lessons[key] for key in said["lessons"] if key in lessons),
            created=said["created"],
            updated=said["updated"],
            unchanged=said["unchanged"],
        )

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
            await self._sync.index(revision, [Change(memory)] if has_changed else [])
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

    async def record_lesson(self, draft: LessonDraft) -> Lesson:
        checks = Checks()
        check_lessons(checks, [draft], "input")
        checks.done()
        (lesson,) = (await self.remember(RememberCall(lessons=(draft,)))).lessons
        return lesson

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
            await self._sync.index(revision, changes)
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
            await self._sync.index(revision, changes)
        return lesson


# ---------------------------------------------------------------- the parts of a write


def _check_call(call: RememberCall) -> Checks:
    checks = Checks()
    items = len(call.memories) + len(call.edges) + len(call.lessons)
    if items > ITEMS:
        checks.add("input", f"has {items:,} items; at most {ITEMS:,} fit into one call: send several")
        checks.done()
    if call.idempotency_key is not None:
        checks.name("idempotencyKey", call.idempotency_key)
    check_memories(checks, call.memories)
    check_edges(checks, call.edges)
    check_lessons(checks, call.lessons)
    check_twins(checks, "memories", ((draft.id, draft) for draft in call.memories))
    check_twins(checks, "edges", ((draft.id, draft) for draft in call.edges))
    check_twins(checks, "lessons", ((str(d.rb_id) if d.rb_id else None, d) for d in call.lessons))
    return checks


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


def _changes(records: dict[Any, Any], log: dict[Any, Written]) -> list[Change]:
    return [Change(records[key], one.fresh) for key, one in log.items() if one.changed]


def _kept(answer: Remembered) -> str:
    return json.dumps(
        {
            "memories": [memory.id for memory in answer.memories],
            "edges": [edge.id for edge in answer.edges],
            "lessons": [lesson.rb_id for lesson in answer.lessons],
            "created": answer.created,
            "updated": answer.updated,
            "unchanged": answer.unchanged,
        }
    )
