"""Finished work: handed in, kept as a path in the graph, looked at, tried again, deleted.

A session is stored in one transaction: the request as a UserRequest, each step as an AgentAction, the answer as an
AgentAnswer, the sentences that join them, and `(:Session)-[:RECORDED {place}]->(:Memory)`. From then on it is in the
queue: see `bank/queue.py`. The lessons that came of it are at the end of `(:Session)-[:TAUGHT]->(:Lesson)`.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, NamedTuple

from bank.keys import claim_key, digest_of
from bank.learn import Learning
from bank.lessons import check_namespace
from bank.mishaps import failed
from bank.model import Lesson, Outcome, first_words
from bank.signals import relearn
from bank.sync import Change, Sync
from bank.work import Work, WorkStep
from graph.checks import Checks
from graph.errors import Conflict, NotFound, Problem
from graph.ids import mint, mint_edge_id, mint_memory_id, readable
from graph.model import EdgeDraft, MemoryDraft, MemoryType, Page, Value
from graph.paging import decode_cursor, encode_cursor
from graph.session import Graph, Row, StartAgain, Transaction
from graph.store import MintedTwice, lock_memories, put_edges, put_memories

MOST_STEPS = 500
REQUEST_BYTES = 65_535
ACTION_BYTES = 16_384
DETAIL_BYTES = 65_535  # of parameters, and of a result
SESSION_BYTES = 4_000_000
RESULT_IN_TEXT = 2_000  # characters of a result that are read and searched with its step; all of it is in `result`

# One step follows from the other: whoever finds one is meant to find the next, so all of them are CORE. An answer that
# did not do what was asked is tied to the request less: a BRIDGE.
FIRST_STEP, NEXT_STEP, LAST_STEP = 0.9, 0.85, 0.9
ANSWERED = {Outcome.SUCCESS: 0.9, Outcome.FAILURE: 0.6}


class SessionState(StrEnum):
    QUEUED = "QUEUED"
    RUNNING = "RUNNING"
    DONE = "DONE"
    NOTHING_LEARNED = "NOTHING_LEARNED"
    FAILED = "FAILED"


class StepDraft(Value):
    action: str
    parameters: str | None = None
    result: str | None = None


class SessionDraft(Value):
    """Finished work as an agent hands it in."""

    conv_id: str
    request: str
    outcome: Outcome
    steps: tuple[StepDraft, ...]
    answer: str | None = None
    tags: tuple[str, ...] = ()
    namespace: str = "default"
    idempotency_key: str | None = None

    def digest(self) -> str:
        return digest_of(["session", self.model_dump(mode="json", exclude={"idempotency_key"})])


class Session(Value):
    """`error`: why an attempt failed. `reason`: why nothing was learnt, or what became of what was."""

    id: str
    state: str
    attempts: int = 0
    error: str | None = None
    reason: str | None = None
    conv_id: str
    namespace: str
    outcome: str
    tags: tuple[str, ...] = ()
    learned_by: str | None = None
    tokens_used: int = 0
    created_at: datetime
    updated_at: datetime
    due_at: datetime | None = None
    memory_ids: tuple[str, ...] = ()
    lesson_ids: tuple[int, ...] = ()


class DeletedSession(Value):
    id: str
    deleted: bool
    memories_removed: int = 0
    edges_removed: int = 0
    lessons_removed: int = 0
    kept_memories: tuple[str, ...] = ()
    kept_lessons: tuple[int, ...] = ()


class Sessions:
    """`wake`: called when there is something in the queue."""

    def __init__(self, graph: Graph, sync: Sync, learning: Learning, wake: Callable[[], None] = lambda: None) -> None:
        self._graph = graph
        self._sync = sync
        self._learning = learning
        self._wake = wake

    async def submit(self, draft: SessionDraft) -> Session:
        check_session(draft)
        while True:
            try:
                return await self._store(draft)
            except MintedTwice:
                continue

    async def _store(self, draft: SessionDraft) -> Session:
        session_id, memories, edges = readable("W", mint()), *trajectory(draft)
        self._sync.expect([memory.text for memory in memories])

        async def work(tx: Transaction) -> tuple[str, Session | None, list[Change]]:
            if draft.idempotency_key is not None:
                kept = await claim_key(tx, draft.idempotency_key, draft.digest())
                if kept is not None:
                    return kept, None, []
            now = datetime.now(UTC)
            locked, _ = await lock_memories(tx, memories, (), now, revision)
            if any(row.get("type") is not None for row in locked.values()):
                raise MintedTwice
            stored, log, _ = await put_memories(tx, memories, locked, now, revision)
            await put_edges(tx, edges, {edge.id for edge in edges if edge.id}, now)
            properties = draft.model_dump(mode="json", include={"conv_id", "namespace", "outcome", "tags"})
            properties |= {"state": SessionState.QUEUED.value, "attempts": 0, "tokens_used": 0}
            word = asked_in(tx.tenant, draft.namespace, draft.outcome)
            rows = await tx.run(
                "put_session", id=session_id, properties=properties, memories=list(stored), asked_in=word
            )
            if draft.idempotency_key is not None:
                await tx.run("keep_answer", key=draft.idempotency_key, answer=session_id)
            return session_id, session_from_row(rows[0]), [Change(stored[key], one.fresh) for key, one in log.items()]

        async with self._sync.writing() as revision:
            stored_id, session, changes = await self._graph.write(work)
            await self._sync.index(revision, changes)
        self._wake()
        if session is None:  # handed in before, perhaps a moment ago
            await self._sync.all_arrive()
            session = await self.by_id(stored_id)
        if session is None:
            raise Conflict(
                f"The session that was handed in with idempotencyKey {draft.idempotency_key!r} has been deleted. "
                "Take a new key to hand it in again.",
                [Problem("idempotencyKey", "belongs to a session that has been deleted")],
            )
        return session

    async def by_id(self, session_id: str) -> Session | None:
        rows = await self._graph.read("sessions_by_id", ids=[session_id])
        return session_from_row(rows[0]) if rows else None

    async def page(self, state: SessionState | None, first: int, after: str | None) -> Page[Session]:
        """Newest id first."""
        before = decode_cursor(after, str)[0] if after else None
        states = [one.value for one in SessionState] if state is None else [state.value]
        rows = await self._graph.read("sessions_page", states=states, before=before, limit=first + 1)
        nodes = tuple(map(session_from_row, rows[:first]))
        cursor = encode_cursor(nodes[-1].id) if nodes else None
        return Page[Session](nodes=nodes, has_next_page=len(rows) > first, end_cursor=cursor)

    async def retry(self, session_id: str) -> Session:
        """Puts a session that ended without a lesson back into the queue."""
        rows = await self._graph.run("retry_session", id=session_id)
        session = await self.by_id(session_id)
        if not rows or session is None:
            raise NotFound.ids("session", "id", [session_id])
        if not rows[0]["retried"]:
            raise Conflict(
                f"The session {session_id} is {rows[0]['state']}; only one that FAILED, or that NOTHING was LEARNED "
                "from, can be tried again.",
                [Problem("id", f"is {rows[0]['state']}")],
            )
        self._wake()
        return session

    async def delete(self, session_id: str) -> DeletedSession:
        """Deletes a session with all that came only from it. What it said of lessons goes, and its memories are taken
        out of those that a distiller learnt; such a lesson goes with the last session behind it, unless a person had a
        hand in it. A memory stays if an edge that somebody wrote leads from it to another's memory, or if a lesson that
        was recorded by hand was learnt from it. What stays is named."""

        async def work(tx: Transaction) -> tuple[DeletedSession, list[Change]]:
            seen = await tx.run("session_use", id=session_id)
            if not seen:
                return DeletedSession(id=session_id, deleted=False), []
            await tx.run("lock_known_memories", ids=sorted(one["id"] for one in seen[0]["memories"]))
            known = await tx.run("lock_known_lessons", ids=[one["rb_id"] for one in seen[0]["lessons"]])
            locked = {row["rb_id"]: row for row in known}
            use = await tx.run("session_use", id=session_id)
            if not use or any(one["rb_id"] not in locked for one in use[0]["lessons"]):
                raise StartAgain
            leaving = _leaving(use[0])
            await tx.run("delete_lesson", ids=leaving.lessons)
            told = {row["rb_id"] for row in await tx.run("delete_signals_of_session", session=session_id)}
            now = datetime.now(UTC)
            await relearn(tx, {rb_id: locked[rb_id] for rb_id in sorted(told)}, now, self._learning)
            changed = await tx.run("withdraw_session", rows=leaving.parted, revision=revision)
            (removed,) = await tx.run("delete_unused_memories", ids=leaving.memories)
            await tx.run("delete_session", id=session_id)
            answer = DeletedSession(
                id=session_id,
                deleted=True,
                memories_removed=removed["memories"],
                edges_removed=removed["edges"],
                lessons_removed=len(leaving.lessons),
                kept_memories=tuple(leaving.kept_memories),
                kept_lessons=tuple(leaving.kept_lessons),
            )
            return answer, [Change(Lesson.from_row(row["properties"])) for row in changed]

        async with self._sync.writing() as revision:
            answer, changes = await self._graph.write(work)
            self._sync.removed()
            await self._sync.index(revision, changes)
        return answer


class _Leaving(NamedTuple):
    """What becomes of all that a session had a part in, by their ids; `parted`: rows of `withdraw_session`."""

    lessons: list[int]
    kept_lessons: list[int]
    memories: list[str]
    kept_memories: list[str]
    parted: list[Row]


def _leaving(use: Row) -> _Leaving:
    held = {id for lesson in use["lessons"] if lesson["by_hand"] for id in lesson["own"]}
    stays = {memory["id"]: memory["others"] or memory["id"] in held for memory in use["memories"]}
    lessons = [one["rb_id"] for one in use["lessons"] if not one["kept"] and not one["behind"]]
    staying = [one for one in use["lessons"] if one["rb_id"] not in lessons]
    return _Leaving(
        lessons=lessons,
        kept_lessons=[one["rb_id"] for one in staying if one["came"] or not one["by_hand"]],
        memories=[id for id, kept in stays.items() if not kept],
        kept_memories=[id for id, kept in stays.items() if kept],
        parted=[
            {
                "rb_id": one["rb_id"],
                "nodes": one["own"],
                "lost": [id for id in one["own"] if not stays[id]],
                "supporters": int(one["counted"]),
            }
            for one in staying
            if (one["own"] or one["counted"]) and not one["by_hand"]
        ],
    )


# ---------------------------------------------------------------- what is handed in, as memories and sentences


def check_session(draft: SessionDraft) -> None:
    checks = Checks()
    checks.name("convId", draft.conv_id)
    checks.text("request", draft.request, REQUEST_BYTES)
    if draft.answer is not None:
        checks.text("answer", draft.answer, REQUEST_BYTES)
    checks.names("tags", draft.tags)
    check_namespace(checks, "namespace", draft.namespace)
    if draft.idempotency_key is not None:
        checks.name("idempotencyKey", draft.idempotency_key)
    if len(draft.steps) > MOST_STEPS:
        checks.add("steps", f"has {len(draft.steps):,} items; at most {MOST_STEPS} fit into one session")
        checks.done()
    for place, step in enumerate(draft.steps):
        checks.text(f"steps[{place}].action", step.action, ACTION_BYTES)
        for name, value in (("parameters", step.parameters), ("result", step.result)):
            if value is not None:
                checks.storable(f"steps[{place}].{name}", value, DETAIL_BYTES)
    checks.done()
    size = sum(
        len(text.encode()) for step in draft.steps for text in (step.action, step.parameters, step.result) if text
    )
    if size > SESSION_BYTES:
        checks.add("steps", f"are {size:,} bytes in all; at most {SESSION_BYTES:,} are allowed: shorten the results")
    checks.done()


def asked_in(tenant: str, namespace: str, outcome: Outcome) -> str:
    """One word for where a session asked and how it ended, which no text holds and no analyzer changes."""
    place = json.dumps([tenant, namespace, outcome.value])
    return f"in{hashlib.sha256(place.encode()).hexdigest()[:30]}0"


def trajectory(draft: SessionDraft) -> tuple[list[MemoryDraft], list[EdgeDraft]]:
    """The path that a session is kept as, each memory and each sentence with an id; the ids are in the order of the work."""

    def memory(kind: MemoryType, text: str, **own: Any) -> MemoryDraft:
        return MemoryDraft(type=kind, id=mint_memory_id(), text=text, tags=draft.tags, conv_id=draft.conv_id, own=own)

    def edge(source: MemoryDraft, target: MemoryDraft, text: str, weight: float) -> EdgeDraft:
        assert source.id and target.id
        return EdgeDraft(
            id=mint_edge_id(), source=source.id, target=target.id, text=text, weight=weight, tags=draft.tags
        )

    asked, many = first_words(draft.request, 80), len(draft.steps)
    request = memory(MemoryType.UserRequest, draft.request)
    path, edges = [request], []
    for number, step in enumerate(draft.steps, 1):
        text = step.action + _result_in_text(step.result)
        status = None if step.result is None else "failed" if failed(step.result) else "done"
        path.append(
            memory(MemoryType.AgentAction, text, parameter_field=step.parameters, result=step.result, status=status)
        )
        sentence = f"Step {number} of {many} for the request: {asked}"
        edges.append(edge(path[-2], path[-1], sentence, FIRST_STEP if number == 1 else NEXT_STEP))
    if draft.answer is not None:
        answer = memory(MemoryType.AgentAnswer, draft.answer)
        said = first_words(draft.answer, 80)
        if draft.steps:
            steps = "The only step" if many == 1 else f"The last of {many} steps"
            edges.append(edge(path[-1], answer, f"{steps} led to the answer: {said}", LAST_STEP))
        done = "was answered, as asked" if draft.outcome is Outcome.SUCCESS else "was answered, but not as asked"
        edges.append(edge(request, answer, f"The request {done}: {said}", ANSWERED[draft.outcome]))
        path.append(answer)
    return path, edges


def _result_in_text(result: str | None) -> str:
    if not result or not result.strip():
        return ""
    return f"\nResult: {result if len(result) <= RESULT_IN_TEXT else result[:RESULT_IN_TEXT] + ' …'}"


# ---------------------------------------------------------------- from rows


def session_from_row(row: Mapping[str, Any]) -> Session:
    return Session.from_row(
        {
            **{key: value for key, value in row["properties"].items() if key in Session.model_fields},
            "memory_ids": row["memories"],
            "lesson_ids": row["lessons"],
        }
    )


def works_from_rows(rows: Iterable[Row]) -> list[Work]:
    """What was handed in, read back from the memories that keep it. A session whose request was deleted is left out."""
    return [work for row in rows if (work := _work(row["session"], row["memories"])) is not None]


def _work(session: Row, memories: Sequence[Row]) -> Work | None:
    of_type: dict[str, list[Row]] = {}
    for memory in memories:
        of_type.setdefault(memory["type"], []).append(memory["properties"])
    requests, answers = of_type.get(MemoryType.UserRequest, []), of_type.get(MemoryType.AgentAnswer, [])
    if not requests:
        return None
    return Work(
        session=session["id"],
        conv_id=session["conv_id"],
        request=requests[0]["text"],
        outcome=Outcome(session["outcome"]),
        steps=tuple(
            WorkStep(
                action=step["text"].removesuffix(_result_in_text(step["result"])),
                parameters=step["parameter_field"],
                result=step["result"],
                memory=step["id"],
            )
            for step in of_type.get(MemoryType.AgentAction, [])
        ),
        answer=answers[0]["text"] if answers else None,
        tags=tuple(session["tags"]),
        namespace=session["namespace"],
        request_memory=requests[0]["id"],
        answer_memory=answers[0]["id"] if answers else None,
    )
