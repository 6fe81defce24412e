"""From what a distiller learnt to lessons in the bank: what is known already, what came from the bank, what is suspect.

All of it is one transaction, guarded by the claim of the worker: the lessons, their links, and the session's last state.
One worker at a time stores lessons of a namespace, so that two that learnt the same at the same moment make one lesson.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from bank.distil import Distilled, DistillerFailed, RulesDistiller
from bank.embed import Embedder
from bank.learn import START_FROM_FAILURE, START_FROM_SUCCESS, Learning
from bank.lessons import add_sources, check_lessons, lock_lessons, put_lessons
from bank.likeness import GivenLessons, mean_the_same, repeats_given, share_words
from bank.model import Lesson, LessonDraft, LessonStatus, Outcome, SignalKind
from bank.sessions import SessionState
from bank.signals import append
from bank.stated import PREFERENCE, same_preference
from bank.suspicion import suspect
from bank.sync import Change, Sync
from bank.vectors import Vectors
from bank.work import Learnt, Work
from graph.checks import LINKS, TAGS, Checks
from graph.ids import mint
from graph.session import Graph, Row, StartAgain, Transaction
from graph.store import MintedTwice

START = {Outcome.SUCCESS: START_FROM_SUCCESS, Outcome.FAILURE: START_FROM_FAILURE}
NEAREST = 20  # lessons that are looked at more closely
SUPPORTERS = 10  # sessions whose sources and signals a lesson keeps beside what it began with; further ones are counted
NOTHING = "Nothing in it was worth keeping."

Vector = npt.NDArray[np.float32]


class LostClaim(Exception):
    """The session is the worker's no longer: it was taken by another, or deleted."""


@dataclass
class Sorted:
    """What was learnt, by what becomes of it."""

    new: list[LessonDraft] = field(default_factory=list)
    support: dict[int, list[str]] = field(default_factory=dict)  # a lesson that is there already -> further sources
    retired: set[int] = field(default_factory=set)  # lessons that were there and are no longer to be offered
    repeated: set[int] = field(default_factory=set)  # lessons that the session had been given

    def reason(self, supported: Sequence[Row], stored: Mapping[int, Lesson]) -> str | None:
        """What became of it, where there is more to say than the lessons do. `supported` is what is supported now,
        which may be what a lesson has become."""
        quarantined = sum(lesson.status == LessonStatus.QUARANTINED for lesson in stored.values())
        said = []
        if quarantined:
            said.append(f"{quarantined} of its lessons are QUARANTINED: a person is to look at them first.")
        if active := _ids(row for row in supported if _is_active(row)):
            said.append(f"Known already, and supported by it: {active}.")
        if aside := _ids(row for row in supported if not _is_active(row)):
            said.append(f"Known already, and QUARANTINED: {aside}.")
        if self.retired:
            said.append(f"Known already, and retired: {', '.join(map(str, sorted(self.retired)))}.")
        if self.repeated:
            said.append(f"It repeats lessons that it had been given: {', '.join(map(str, sorted(self.repeated)))}.")
        if len(stored) < len(self.new):
            said.append("What it taught is not kept: the memories behind it have been deleted meanwhile.")
        if not said and not stored:
            return NOTHING
        return " ".join(said) or None


def _is_active(row: Row) -> bool:
    return LessonStatus(row["properties"]["status"]) is LessonStatus.ACTIVE


def _ids(rows: Iterable[Row]) -> str:
    return ", ".join(str(row["rb_id"]) for row in rows)


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
            nothing = distilled.nothing or NOTHING
            await self.end(
                session, token, SessionState.NOTHING_LEARNED, None, distilled.tokens_used, learned_by, nothing
            )
            return
        suspects = await asyncio.to_thread(suspect, distilled.lessons, work)
        drafts = [
            _draft(learnt, work, learned_by, aside) for learnt, aside in zip(distilled.lessons, suspects, strict=True)
        ]
        _check(drafts, distilled.tokens_used)
        if learned_by != RulesDistiller.name:  # what the rules say is mostly known by its title
            await self._vectors_of(drafts)  # before the namespace is held, and others wait

        async def transaction(tx: Transaction) -> list[Change]:
            learnt = await self._sorted(tx, work, drafts)
            written = await _write(tx, learnt, revision, self._learning)
            # Nobody vouches for a lesson that is put aside by sending the same text again.
            active = {row["rb_id"]: row for row in written.counted if _is_active(row)}
            if active:
                said: dict[str, str | None] = {"source": learned_by, "session": session}
                said |= {"conv_id": work.conv_id, "namespace": work.namespace}
                await append(tx, active, SignalKind.SUPPORTED, said, datetime.now(UTC), self._learning)
            taught = written.taught()
            await _finish(
                tx,
                id=session,
                token=token,
                state=(SessionState.DONE if taught else SessionState.NOTHING_LEARNED).value,
                error=None,
                reason=learnt.reason(written.supported, written.stored),
                tokens=distilled.tokens_used,
                learned_by=learned_by,
                lessons=taught,
            )
            return written.changes

        while True:
            try:
                async with self._sync.writing() as revision:
                    changes = await self._graph.write(transaction)
                    self._sync.index_soon(revision, changes)
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
        reason: str | None = None,
    ) -> None:
        """Ends a session that brought no lesson."""

        async def transaction(tx: Transaction) -> None:
            await _finish(
                tx,
                id=session,
                token=token,
                state=state.value,
                error=error,
                reason=reason,
                tokens=tokens,
                learned_by=learned_by,
                lessons=[],
            )

        await self._graph.write(transaction)

    # ------------------------------------------------------------ what is known already

    async def _sorted(self, tx: Transaction, work: Work, drafts: Sequence[LessonDraft]) -> Sorted:
        """First what is marked as still to be indexed is read, then the index is asked: a lesson of another worker,
        who had the namespace before, is in one of the two. What the rules have found before is known by its title;
        neither the embedder nor the index is asked for it."""
        await tx.run("hold_namespace", namespace=work.namespace)
        rows = await tx.run("lessons_unsearched", namespace=work.namespace, titles=_titles(drafts))
        held = sorted(map(Lesson.from_row, rows), key=_standing, reverse=True)  # of one title, what is in use is last
        found = {draft.title: lesson for draft in drafts for lesson in held if _found_before(draft, lesson)}
        others = [draft for draft in drafts if draft.title not in found]
        vectors = await self._vectors_of(others)
        hits = await self._vectors.near_lessons(
            [vectors[draft.key_lesson] for draft in others], work.namespace, NEAREST
        )
        given = await asyncio.to_thread(GivenLessons, work)
        near = {rb_id for some in hits for rb_id in some.scores} | set(given.mentioned)
        rows = await tx.run("lessons_to_compare", ids=sorted(near)) if near else []
        known = {lesson.rb_id: lesson for lesson in (*map(Lesson.from_row, rows), *held)}.values()
        givens = [lesson for lesson in known if given.has(lesson)]
        alike = [lesson for lesson in known if any(_may_be_twins(draft, lesson) for draft in others)]
        alike.sort(key=_standing)  # where one is in use, that is the one
        vectors |= await self._vectors_of([*givens, *alike])
        learnt = Sorted()
        for draft in drafts:
            twin = found.get(draft.title) or next((one for one in alike if _are_twins(draft, one, vectors)), None)
            repeated = next((lesson for lesson in givens if _repeats(draft, lesson, vectors)), None)
            if twin is not None and _is_retired(twin):
                learnt.retired.add(twin.rb_id)
            elif repeated is not None:
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


def _titles(drafts: Sequence[LessonDraft]) -> list[str]:
    """The rules name a lesson after what they found; how often they found it is in its text and changes."""
    return [draft.title for draft in drafts if draft.title and draft.learned_by == RulesDistiller.name]


def _by_rules(draft: LessonDraft, lesson: Lesson | LessonDraft) -> bool:
    """Sentences of the rules share their pattern whatever they say: two of them are compared by what was found."""
    return lesson.learned_by == draft.learned_by == RulesDistiller.name


def _same_finding(draft: LessonDraft, lesson: Lesson | LessonDraft) -> bool:
    return _by_rules(draft, lesson) and lesson.title == draft.title


def _same_wish(draft: LessonDraft, lesson: Lesson | LessonDraft) -> bool:
    titles = (draft.title or "", lesson.title or "")
    one, other = (title.removeprefix(PREFERENCE) for title in titles)
    return all(title.startswith(PREFERENCE) for title in titles) and same_preference(one, other)


def _same_kind(draft: LessonDraft, lesson: Lesson | LessonDraft) -> bool:
    """A suspect lesson is compared with suspect ones, so that it is put aside once, and with those in use, which a
    person may have accepted; what was retired, pruned or rejected, does not come back by being learnt again."""
    return (
        lesson.namespace == draft.namespace
        and lesson.outcome == draft.outcome.value
        and (lesson.status in (LessonStatus.ACTIVE, draft.status) or _is_retired(lesson))
    )


def _found_before(draft: LessonDraft, lesson: Lesson | LessonDraft) -> bool:
    return _same_kind(draft, lesson) and _same_finding(draft, lesson)


def _may_be_twins(draft: LessonDraft, lesson: Lesson | LessonDraft) -> bool:
    if not _same_kind(draft, lesson):
        return False
    if _by_rules(draft, lesson):
        return _same_wish(draft, lesson)
    return share_words(draft.key_lesson, lesson.key_lesson)


def _standing(lesson: Lesson) -> int:
    """In use, put aside, retired."""
    return list(LessonStatus).index(LessonStatus(lesson.status))


def _is_retired(lesson: Lesson | LessonDraft) -> bool:
    """Retired for good: a part of a merged lesson lives on in that one."""
    return lesson.status == LessonStatus.RETIRED and isinstance(lesson, Lesson) and lesson.merged_into is None


def _are_twins(draft: LessonDraft, lesson: Lesson | LessonDraft, vectors: Mapping[str, Vector]) -> bool:
    if not _may_be_twins(draft, lesson):
        return _found_before(draft, lesson)
    meaning = float(vectors[draft.key_lesson] @ vectors[lesson.key_lesson])
    context = float(vectors[draft.context_to_prefer] @ vectors[lesson.context_to_prefer])
    return _found_before(draft, lesson) or mean_the_same(meaning, context)


def _repeats(draft: LessonDraft, given: Lesson, vectors: Mapping[str, Vector]) -> bool:
    """A lesson of the rules repeats one that they found: what it was made of is seen, not told."""
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
        tags=tuple(dict.fromkeys(learnt.tags))[:TAGS],
        link_nodes=tuple(dict.fromkeys((work.request_memory, *learnt.sources)))[:LINKS],
        outcome=learnt.outcome,
        namespace=work.namespace,
        learned_by=learned_by,
        status=LessonStatus.QUARANTINED if aside else LessonStatus.ACTIVE,
        start_confidence=START[learnt.outcome],
        hidden_until_indexed=True,  # it is offered whole or not at all
    )


async def _finish(tx: Transaction, **ends: Any) -> None:
    if not await tx.run("finish_session", **ends):
        raise LostClaim


def _check(drafts: Sequence[LessonDraft], tokens_used: int) -> None:
    checks = Checks()
    check_lessons(checks, drafts)
    if checks.problems:
        raise DistillerFailed(f"The distiller gave a lesson that cannot be kept: {checks.problems[0]}", tokens_used)


@dataclass(frozen=True)
class Written:
    """What a session changed. `supported`: the lessons that it teaches again; `counted`: those of them that have taken its
    sources, for the others have enough."""

    changes: list[Change]
    stored: dict[int, Lesson]
    supported: list[Row]
    counted: list[Row]

    def taught(self) -> list[list[Any]]:
        """[rb_id, supporting, counted]."""
        counted = {row["rb_id"] for row in self.counted}
        supporting = [[row["rb_id"], True, row["rb_id"] in counted] for row in self.supported]
        return supporting + [[rb_id, False, False] for rb_id in self.stored]


async def _write(tx: Transaction, learnt: Sorted, revision: int, learning: Learning) -> Written:
    """Memories are locked first, then lessons, as everywhere."""
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
    supported, sources = await _lock_supported(tx, learnt.support)
    counted = [row for row in supported if row["properties"].get("supporters", 0) < SUPPORTERS]
    if counted:
        more = [
            {"rb_id": row["rb_id"], "changes": {"supporters": row["properties"].get("supporters", 0) + 1}}
            for row in counted
        ]
        await tx.run("put_lessons", rows=more)
    sources = {rb_id: [node for node in nodes if node in there] for rb_id, nodes in sources.items()}
    changes = [Change(lesson) for lesson in await add_sources(tx, counted, sources, now, revision)]
    lessons, written, _ = await put_lessons(tx, drafts, locked, now, revision, learning)
    changes += [Change(lessons[rb_id], one.fresh) for rb_id, one in written.items()]
    return Written(changes, lessons, supported, counted)


async def _lock_supported(tx: Transaction, support: Mapping[int, list[str]]) -> tuple[list[Row], dict[int, list[str]]]:
    """The lessons to support and their further sources. A lesson that became part of another since it was compared is
    supported there; where one was deleted or retired since, all are compared anew."""
    rows: dict[int, Row] = {}
    sources: dict[int, list[str]] = {}
    wanted = dict(support)
    while wanted:
        found = {row["rb_id"]: row for row in await tx.run("lock_known_lessons", ids=sorted(wanted))}
        further: dict[int, list[str]] = {}
        for rb_id, nodes in wanted.items():
            if rb_id not in found:
                raise StartAgain
            lesson = found[rb_id]["properties"]
            if lesson.get("merged_into") is not None:
                further.setdefault(lesson["merged_into"], []).extend(nodes)
            elif lesson["status"] == LessonStatus.RETIRED.value:
                raise StartAgain
            else:
                rows[rb_id] = found[rb_id]
                sources.setdefault(rb_id, []).extend(nodes)
        wanted = further
    return [rows[rb_id] for rb_id in sorted(rows)], sources
