"""GraphQL for looking after the bank: contradictions, suggested links, consolidation, and the sweeps that do it all."""

from datetime import datetime
from typing import Any

import strawberry

import api.types as t
from bank.lessons import check_namespace, parse_rb_id
from bank.model import LinkType
from bank.sweeps import SweepKind, SweepState
from graph.checks import Checks

strawberry.enum(SweepKind)
strawberry.enum(SweepState, description="STOPPED: its service ended first; start it again.")

MOST_AT_ONCE = 100


def checked(namespace: str | None, first: int) -> None:
    checks = Checks()
    checks.between("first", first, 1, MOST_AT_ONCE)
    if namespace is not None:
        check_namespace(checks, "namespace", namespace)
    checks.done()


def checked_rb_id(field: str, value: str) -> int:
    checks = Checks()
    rb_id = parse_rb_id(checks, field, value)
    checks.done()
    return rb_id


def checked_pair(source: str, target: str) -> tuple[int, int]:
    checks = Checks()
    pair = parse_rb_id(checks, "source", source), parse_rb_id(checks, "target", target)
    checks.done()
    return pair


def _words(root: Any) -> list[str]:
    return [root.clash.one, root.clash.other]


@strawberry.type(description="Two active lessons about the same thing that say the opposite.")
class LessonConflict:
    one: t.Lesson
    other: t.Lesson
    words: list[str] = strawberry.field(
        resolver=_words, description="The words that clash: those of the one, those of the other."
    )
    linked: bool = strawberry.field(description="Whether they are linked by CONFLICTS, so that recall says so.")


@strawberry.type
class LessonConflictPage:
    nodes: list[LessonConflict]
    page_info: t.PageInfo = strawberry.field(resolver=t.page_info)


@strawberry.type(description="Accept it with connectLessons, or reject it with rejectLessonLink.")
class LinkSuggestion:
    type: LinkType
    strength: float
    evidence: str

    @strawberry.field
    async def source(self, info: t.Asked) -> t.Lesson | None:
        return await _lesson(info, self, "source")

    @strawberry.field
    async def target(self, info: t.Asked) -> t.Lesson | None:
        return await _lesson(info, self, "target")


async def _lesson(info: t.Asked, suggestion: Any, end: str) -> t.Lesson | None:
    info.context.budget.spend(1)
    return await info.context.loaders.lessons.load(getattr(suggestion, end))  # type: ignore[no-any-return]


@strawberry.type
class LinkSuggestionPage:
    nodes: list[LinkSuggestion]
    page_info: t.PageInfo = strawberry.field(resolver=t.page_info)


@strawberry.type
class Merge:
    parts: list[t.Lesson] = strawberry.field(description="Lessons that say the same; merged, they are RETIRED.")
    keeps: t.Lesson = strawberry.field(description="The part whose text is kept: the one with the best confidence.")
    merged: t.Lesson | None = strawberry.field(description="What they became; null where it is only proposed.")


@strawberry.type
class MergePage:
    nodes: list[Merge]
    page_info: t.PageInfo = strawberry.field(resolver=t.page_info)


@strawberry.type(description="How far a sweep over all lessons is, or how the last one of its kind ended.")
class Sweep:
    kind: SweepKind
    state: SweepState
    examined: int = strawberry.field(description="Lessons looked at so far, in whatever status.")
    found: int = strawberry.field(description="Merges made, lessons pruned, or suggestions kept.")
    total: int = strawberry.field(description="Lessons there were when it began, in whatever status.")
    started_at: datetime
    finished_at: datetime | None
    error: str | None


GOES_ON = (
    "A call looks for ten seconds at most; where hasNextPage is true, go on with endCursor, also after an empty page."
)


@strawberry.type
class UpkeepQuery:
    @strawberry.field(
        description=f"Active lessons that contradict each other, found by their words. Nothing is changed by it. {GOES_ON}"
    )
    async def lesson_conflicts(
        self, info: t.Asked, namespace: str | None = None, first: int = 20, after: str | None = None
    ) -> LessonConflictPage:
        checked(namespace, first)
        info.context.budget.spend(2 * first)
        return await info.context.cairn.upkeep.conflicts(namespace, first, after)  # type: ignore[return-value]

    @strawberry.field(
        description="Links that suggest themselves, from shared sources, shared tags and text, across namespaces too: of one "
        "lesson (rbId), the strongest first and with a namespace those to lessons in it, or of all lessons of a namespace, or "
        f"of all. Nothing is changed by it. {GOES_ON}"
    )
    async def suggest_lesson_links(
        self,
        info: t.Asked,
        rb_id: strawberry.ID | None = None,
        namespace: str | None = None,
        first: int = 20,
        after: str | None = None,
    ) -> LinkSuggestionPage:
        checked(namespace, first)
        info.context.budget.spend(first)
        upkeep = info.context.cairn.upkeep
        if rb_id is not None:
            return await upkeep.suggestions_for(checked_rb_id("rbId", rb_id), namespace, first, after)  # type: ignore[return-value]
        return await upkeep.suggestions(namespace, first, after)  # type: ignore[return-value]

    @strawberry.field(description="What the sweep SUGGEST has found and nobody has settled, the strongest first.")
    async def link_suggestions(self, info: t.Asked, first: int = 20, after: str | None = None) -> LinkSuggestionPage:
        checked(None, first)
        info.context.budget.spend(first)
        return await info.context.cairn.upkeep.kept_suggestions(first, after)  # type: ignore[return-value]

    @strawberry.field
    async def sweeps(self, info: t.Asked) -> list[Sweep]:
        return await info.context.cairn.sweeps.states()  # type: ignore[return-value]


@strawberry.type
class UpkeepMutation:
    @strawberry.mutation(
        description="Links two lessons, or changes the link of this type that is there. CONFLICTS and ALTERNATIVE are one "
        "link whichever way they are given."
    )
    async def connect_lessons(
        self,
        info: t.Asked,
        source: strawberry.ID,
        target: strawberry.ID,
        type: LinkType,
        strength: float = 0.5,
        evidence: str | None = None,
    ) -> t.LessonLink:
        pair = checked_pair(source, target)
        return await info.context.cairn.links.connect(*pair, type, strength, evidence)  # type: ignore[return-value]

    @strawberry.mutation
    async def disconnect_lessons(
        self, info: t.Asked, source: strawberry.ID, target: strawberry.ID, type: LinkType
    ) -> t.DeletePayload:
        pair = checked_pair(source, target)
        return await info.context.cairn.links.disconnect(*pair, type)  # type: ignore[return-value]

    @strawberry.mutation(description="This link of the two lessons is not suggested again, until somebody makes it.")
    async def reject_lesson_link(
        self, info: t.Asked, source: strawberry.ID, target: strawberry.ID, type: LinkType
    ) -> bool:
        await info.context.cairn.upkeep.reject(*checked_pair(source, target), type)
        return True

    @strawberry.mutation(
        description="Finds lessons of one namespace, scope and outcome that say the same, and proposes to make one of them "
        "(dryRun) or does so. The merged lesson keeps every source, signal and link of its parts; the parts are RETIRED and "
        f"point to it. {GOES_ON}"
    )
    async def consolidate(
        self,
        info: t.Asked,
        dry_run: bool = True,
        namespace: str | None = None,
        first: int = 20,
        after: str | None = None,
    ) -> MergePage:
        checked(namespace, first)
        return await info.context.cairn.consolidation.consolidate(dry_run, namespace, first, after)  # type: ignore[return-value]

    @strawberry.mutation(
        description="Takes a merge back: the parts are as they were and are not merged with each other again; the merged "
        "lesson (rbId) is RETIRED. Answers the parts."
    )
    async def undo_consolidation(self, info: t.Asked, rb_id: strawberry.ID) -> list[t.Lesson]:
        return await info.context.cairn.consolidation.undo(checked_rb_id("rbId", rb_id))  # type: ignore[return-value]

    @strawberry.mutation(
        description="Begins a sweep over all lessons and returns at once; `sweeps` says how far it is."
    )
    async def start_sweep(self, info: t.Asked, kind: SweepKind) -> Sweep:
        return await info.context.cairn.sweeps.start(kind)  # type: ignore[return-value]
