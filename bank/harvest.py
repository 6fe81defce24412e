"""From what a distiller learnt to lessons in the bank: what is known already, what came from the bank, what is suspect.

All of it is one transaction, guarded by the claim of the worker: the lessons, their links, and the session's last state.
One worker at a time stores lessons of a namespace, so that two that learnt the same at the same moment make one lesson.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from bank.distil import Distilled, DistillerFailed, RulesDistiller
from bank.embed import Embedder
from bank.learn import START_FROM_FAILURE, START_FROM_SUCCESS, Learning
from bank.lessons import check_lessons, lock_lessons, put_lessons, revise
from bank.likeness import GivenLessons, mean_the_same, repeats_given, share_words
from bank.model import Lesson, LessonDraft, LessonStatus, Outcome, SignalKind
from bank.sessions import SessionState
from bank.signals import append
from bank.suspicion import suspect
from bank.sync import Change, Sync
from bank.vectors import Vectors
from bank.work import Learnt, Work
from graph.checks import LINKS, Checks
from graph.ids import mint
from graph.session import Graph, Row, Transaction
from graph.store import MintedTwice

START = {Outcome.SUCCESS: START_FROM_SUCCESS, Outcome.FAILURE: START_FROM_FAILURE}
NEAREST = 20  # lessons that are looked at more closely
NOTHING = "Nothing in it was worth keeping."

Vector = npt.NDArray[np.float32]


class LostClaim(Exception):
    """The session is the worker's no longer: it was taken by another, or deleted."""


@dataclass
class Sorted:
    """What was learnt, by what becomes of it."""

    new: list[LessonDraft] = field(default_factory=list)
    support: dict[int, list[str]] = field(default_factory=dict)  # a lesson that is there already -> further sources
    repeated: set[int] = field(default_factory=set)  # lessons that the session had been given

    def reason(self) -> str | None:
        """What became of it, where there is more to say than the lessons do."""
        quarantined = sum(draft.status is LessonStatus.QUARANTINED for draft in self.new)
        said = []
        if quarantined:
            said.append(f"{quarantined} of its lessons repeat an instruction in its text and are QUARANTINED.")
        if self.support:
            said.append(f"Known already, and supported by it: {', '.join(map(str, sorted(self.support)))}.")
        if self.repeated:
            said.append(f"It repeats lessons that it had been given: {', '.join(map(str, sorted(self.repeated)))}.")
        if not said and not self.new:
            return NOTHING
        return " ".join(said) or None


class Harvest:
    def __init__(self, graph: Graph, sync: Sync, vectors: Vectors, embedder: Embedder, learning: Learning) -> None:
        self._learning = learning
        self._graph = graph
        self._sync = sync
        self._vectors = vectors
        self._embedder = embedder

    async def store(self, session: str, token: str, work: Work, distilled: Distilled, learned_by: str) -> None:
        """Stores what was learnt and ends the session. Nothing is stored where the claim was lost."""
        if not distilled.lessons:
            await self.end(session, token, SessionState.NOTHING_LEARNED, None, distilled.tokens_used, learned_by)
            return
        suspects = await asyncio.to_thread(suspect, distilled.lessons, work)
        drafts = [
            _draft(learnt, work, learned_by, aside) for learnt, aside in zip(distilled.lessons, suspects, strict=True)
        ]
        _check(drafts, distilled.tokens_used)
        vectors = await self._vectors_of(drafts)

        async def transaction(tx: Transaction) -> list[Change]:
            await tx.run("hold_namespace", namespace=work.namespace)
            learnt = await self._sorted(tx, work, drafts, vectors)
            changes, taught = await _write(tx, learnt, revision, self._learning)
            supported = [rb_id for rb_id, supporting in taught if supporting]
            if supported:
                rows = await tx.run("lock_known_lessons", ids=supported)
                # Nobody vouches for a lesson that is put aside by sending the same text again.
                active = [row for row in rows if row["properties"]["status"] == LessonStatus.ACTIVE.value]
                locked = {row["rb_id"]: row for row in active}
                said = {"comment": None, "conv_id": work.conv_id, "source": learned_by, "namespace": work.namespace}
                if locked:
                    await append(tx, locked, SignalKind.SUPPORTED, said, datetime.now(UTC), self._learning)
            if not await tx.run("lock_claim", id=session, token=token):
                raise LostClaim
            await tx.run(
                "finish_session",
                id=session,
                state=(SessionState.DONE if taught else SessionState.NOTHING_LEARNED).value,
                error=None,
                reason=learnt.reason(),
                tokens=distilled.tokens_used,
                learned_by=learned_by,
                lessons=taught,
            )
            return changes

        while True:
            try:
                async with self._sync.writing() as revision:
                    changes = await self._graph.write(transaction)
                    await self._sync.index(revision, changes)
                return
            except MintedTwice:
                continue

    async def end(
        self,
        session: str,
        token: str,
        state: SessionState,
        error: str | None,
        tokens: int,
        learned_by: str | None = None,
    ) -> None:
        """Ends a session that brought no lesson."""

        async def transaction(tx: Transaction) -> None:
            if not await tx.run("lock_claim", id=session, token=token):
                raise LostClaim
            await tx.run(
                "finish_session",
                id=session,
                state=state.value,
                error=error,
                reason=NOTHING if state is SessionState.NOTHING_LEARNED else None,
                tokens=tokens,
                learned_by=learned_by,
                lessons=[],
            )

        await self._graph.write(transaction)

    # ------------------------------------------------------------ what is known already

    async def _sorted(
        self, tx: Transaction, work: Work, drafts: Sequence[LessonDraft], vectors: Mapping[str, Vector]
    ) -> Sorted:
        """First what is marked as still to be indexed is read, then the index is asked: a lesson of another worker,
        who had the namespace before, is in one of the two."""
        marked = await tx.run("lessons_to_index", namespace=work.namespace)
        hits = await self._vectors.near_lessons(
            [vectors[draft.key_lesson] for draft in drafts], work.namespace, NEAREST
        )
        given = await asyncio.to_thread(GivenLessons, work)
        near = {hit.key for some in hits for hit in some} | set(given.mentioned)
        found = await tx.run("lessons_by_id", ids=sorted(near)) if near else []
        rows = [*(row["properties"] for row in found), *marked]
        known = {row["rb_id"]: Lesson.from_row(row) for row in rows}.values()
        givens = [lesson for lesson in known if given.has(lesson)]
        alike = [lesson for lesson in known if any(_may_be_twins(draft, lesson) for draft in drafts)]
        vectors = {**vectors, **await self._vectors_of([*givens, *alike])}
        learnt = Sorted()
        for draft in drafts:
            twin = next((lesson for lesson in alike if _are_twins(draft, lesson, vectors)), None)
            repeated = next((lesson for lesson in givens if _repeats(draft, lesson, vectors)), None)
            if repeated is not None:
                learnt.repeated.add(repeated.rb_id)
            elif twin is not None:
                learnt.support.setdefault(twin.rb_id, []).extend(draft.link_nodes)
            elif not any(_are_twins(draft, other, vectors) for other in learnt.new):
                learnt.new.append(draft)
        return learnt

    async def _vectors_of(self, lessons: Sequence[Lesson | LessonDraft]) -> dict[str, Vector]:
        """Of their texts, by text."""
        texts = [text for one in lessons for text in (one.key_lesson, one.context_to_prefer)]
        return dict(zip(texts, await self._embedder.passages(texts), strict=True)) if texts else {}


def _may_be_twins(draft: LessonDraft, lesson: Lesson | LessonDraft) -> bool:
    """The same kind of lesson in like words. A suspect one is compared with suspect ones, so that it is put aside once."""
    same_kind = (
        lesson.namespace == draft.namespace
        and lesson.outcome == draft.outcome.value
        and lesson.status == draft.status.value
    )
    return same_kind and (_same_finding(draft, lesson) or share_words(draft.key_lesson, lesson.key_lesson))


def _are_twins(draft: LessonDraft, lesson: Lesson | LessonDraft, vectors: Mapping[str, Vector]) -> bool:
    if not _may_be_twins(draft, lesson):
        return False
    meaning = float(vectors[draft.key_lesson] @ vectors[lesson.key_lesson])
    context = float(vectors[draft.context_to_prefer] @ vectors[lesson.context_to_prefer])
    return _same_finding(draft, lesson) or mean_the_same(meaning, context)


def _same_finding(draft: LessonDraft, lesson: Lesson | LessonDraft) -> bool:
    """The rules name a lesson after what they found; how often they found it is in its text and changes."""
    return lesson.learned_by == draft.learned_by == RulesDistiller.name and lesson.title == draft.title


def _repeats(draft: LessonDraft, given: Lesson, vectors: Mapping[str, Vector]) -> bool:
    """Sentences of the rules share their pattern whatever they say: they are compared by what was found."""
    if draft.learned_by == RulesDistiller.name:
        return _same_finding(draft, given)
    return repeats_given(
        draft.key_lesson, given.key_lesson, float(vectors[draft.key_lesson] @ vectors[given.key_lesson])
    )


def _draft(learnt: Learnt, work: Work, learned_by: str, aside: bool) -> LessonDraft:
    return LessonDraft(
        title=learnt.title,
        key_lesson=learnt.key_lesson,
        context_to_prefer=learnt.context_to_prefer,
        tags=tuple(dict.fromkeys(learnt.tags)),
        link_nodes=tuple(dict.fromkeys((work.request_memory, *learnt.sources)))[:LINKS],
        outcome=learnt.outcome,
        namespace=work.namespace,
        learned_by=learned_by,
        status=LessonStatus.QUARANTINED if aside else LessonStatus.ACTIVE,
        start_confidence=START[learnt.outcome],
    )


def _check(drafts: Sequence[LessonDraft], tokens_used: int) -> None:
    checks = Checks()
    check_lessons(checks, drafts)
    if checks.problems:
        raise DistillerFailed(f"The distiller gave a lesson that cannot be kept: {checks.problems[0]}", tokens_used)


async def _write(
    tx: Transaction, learnt: Sorted, revision: int, learning: Learning
) -> tuple[list[Change], list[list[Any]]]:
    """Memories are locked first, then lessons, as everywhere. Returns what is to be indexed, and [rb_id, supporting]."""
    now = datetime.now(UTC)
    named = {node for draft in learnt.new for node in draft.link_nodes}
    named |= {node for nodes in learnt.support.values() for node in nodes}
    there = {row["id"] for row in await tx.run("lock_known_memories", ids=sorted(named))} if named else set()
    drafts = [
        draft.model_copy(
            update={"rb_id": mint(), "link_nodes": tuple(node for node in draft.link_nodes if node in there)}
        )
        for draft in learnt.new
    ]
    drafts = [draft for draft in drafts if draft.link_nodes]  # what it was learnt from has been deleted
    locked = await lock_lessons(tx, [draft.rb_id for draft in drafts if draft.rb_id])
    if any("version" in row["properties"] for row in locked.values()):
        raise MintedTwice
    changes: list[Change] = []
    taught: list[list[Any]] = []
    supported: list[Row] = []
    if learnt.support:
        supported = await tx.run("lock_known_lessons", ids=sorted(learnt.support))
    for row in supported:
        old = row["properties"]["link_nodes"]
        nodes = [*old, *dict.fromkeys(x for x in learnt.support[row["rb_id"]] if x in there and x not in old)][:LINKS]
        lesson, has_changed = await revise(tx, row, {"link_nodes": nodes}, now, revision)
        if has_changed:
            changes.append(Change(lesson))
        taught.append([row["rb_id"], True])
    lessons, written, _ = await put_lessons(tx, drafts, locked, now, revision, learning)
    changes += [Change(lessons[rb_id], one.fresh) for rb_id, one in written.items()]
    taught += [[rb_id, False] for rb_id in lessons]
    return changes, taught
