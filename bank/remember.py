"""One atomic write of memories, edges and lessons: all of it is stored, or nothing."""

import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from bank.keys import claim_key, digest_of
from bank.learn import Learning
from bank.lessons import (
    Lessons,
    check_lessons,
    lock_drafted,
    missing_sources,
    pass_on,
    put_lessons,
    stored_sources,
)
from bank.model import Lesson, LessonDraft
from bank.sync import Change, Sync
from bank.topics import find_topics, link_topics
from graph.checks import ITEMS, Checks, check_edges, check_memories, check_twins, is_storable
from graph.errors import BadInput, Conflict, Problem
from graph.ids import mint
from graph.model import Edge, EdgeDraft, Memory, MemoryDraft, Value
from graph.session import Graph, Transaction
from graph.store import (
    Memories,
    MintedTwice,
    Written,
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


Rehearsed = Callable[[Transaction, Remembered], Awaitable[None]]


class Remember:
    def __init__(self, graph: Graph, sync: Sync, learning: Learning) -> None:
        self._graph = graph
        self._sync = sync
        self._learning = learning
        self._memories = Memories(graph)
        self._lessons = Lessons(graph)

    async def write(self, call: RememberCall) -> Remembered:
        checks = _check_call(call)
        if checks.problems:
            checks.problems += await self._unknown_names(call)
        checks.done()
        self._sync.expect(call.texts())
        while True:
            try:
                async with self._sync.writing() as revision:
                    answer, changes = await self._write_call(call, revision)
                    await self._sync.index(revision, changes, (*answer.memories, *answer.lessons))
                return answer
            except MintedTwice:
                continue
            except Conflict as conflict:
                await self._name_taken(call, conflict)
                raise

    async def record_lesson(self, draft: LessonDraft) -> Lesson:
        checks = Checks()
        check_lessons(checks, [draft], "input")
        checks.done()
        (lesson,) = (await self.write(RememberCall(lessons=(draft,)))).lessons
        return lesson

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
            if retold := [id for id, one in memory_log.items() if one.retold]:
                await tx.run("forget_topics", ids=retold)
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
        known |= set(await self._memories.by_id(name for name in named if name not in known))
        return unknown_ends(call.edges, known) + missing_sources(call.lessons, known)

    async def _answer_again(self, kept: str) -> Remembered:
        """What was answered under an idempotency key; what has been deleted since stays deleted."""
        said: dict[str, Any] = json.loads(kept)
        memories = await self._memories.by_id(said["memories"])
        edges = await self._memories.edges_by_id(said["edges"])
        lessons = await self._lessons.by_id(said["lessons"])
        return Remembered(
            memories=tuple(memories[key] for key in said["memories"] if key in memories),
            edges=tuple(edges[key] for key in said["edges"] if key in edges),
            lessons=tuple(lessons[key] for key in said["lessons"] if key in lessons),
            created=said["created"],
            updated=said["updated"],
            unchanged=said["unchanged"],
        )


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
