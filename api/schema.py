"""Query and Mutation: what each field asks of the bank."""

import importlib.metadata
import tomllib
from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path

import strawberry
from graphql import GraphQLError
from strawberry.extensions import AddValidationRules, MaxTokensLimiter, ParserCache, ValidationCache
from strawberry.scalars import JSON
from strawberry.schema.config import StrawberryConfig
from strawberry.types import ExecutionContext

import api.types as t
from api.inputs import (
    MOST_FOUND,
    MOST_PATHS,
    LessonFilter,
    LessonInput,
    LessonPatch,
    MemoryFilter,
    MemoryPatch,
    RecallInput,
    RememberInput,
    SessionFilter,
    SessionInput,
    given,
    lesson_filter,
    memory_filter,
)
from api.limits import MOST_TOKENS, DepthRule
from api.loaders import RECORDS
from api.selection import asks_for
from api.status import status_of
from api.upkeep import UpkeepMutation, UpkeepQuery
from bank.learn import PRUNED_BELOW
from bank.lessons import check_namespace, parse_rb_id
from bank.model import LessonQuery, Outcome, Scope, SignalKind
from bank.paths import told_paths
from bank.provenance import provenance
from graph.checks import Checks

MOST_HOPS = 6
EXPLAINS = frozenset({"why", "via", "paths", "context", "tokens"})  # of a recall: what needs its paths and reasons
SAID = "Says whether a lesson helped. It is kept as a signal, and the lesson's confidence follows."
SOURCE = "`source` says who tells it; one source moves a lesson only so far."
WHERE = "`namespace`: where the lesson was used."
ONCE = "Sent again with the same `idempotencyKey` it counts once."
MOST_QUERY_BYTES = 65_535
KEPT_QUERY = 20_000  # characters of a query that is kept, parsed, for the next time


def checked_id(field: str, value: str) -> str:
    checks = Checks()
    checks.name(field, value)
    checks.done()
    return value


def checked_rb_id(value: str) -> int:
    checks = Checks()
    rb_id = parse_rb_id(checks, "rbId", value)
    checks.done()
    return rb_id


@strawberry.type
class Query(UpkeepQuery):
    @strawberry.field
    async def memory(self, info: t.Asked, id: strawberry.ID) -> t.Memory | None:
        return await info.context.loaders.memories.load(checked_id("id", id))  # type: ignore[no-any-return]

    @strawberry.field(description="Newest first.")
    async def memories(
        self, info: t.Asked, filter: MemoryFilter | None = None, first: int = 20, after: str | None = None
    ) -> t.MemoryPage:
        t.page_arguments(first)
        info.context.budget.spend(first)
        return await info.context.cairn.bank.memories.page(memory_filter(filter), first, after)  # type: ignore[return-value]

    @strawberry.field
    async def edge(self, info: t.Asked, id: strawberry.ID) -> t.Edge | None:
        found = await info.context.cairn.bank.memories.edges_by_id([checked_id("id", id)])
        return found.get(id)  # type: ignore[return-value]

    @strawberry.field
    async def conversation(self, info: t.Asked, conv_id: str) -> t.Conversation:
        memories, edges = await info.context.cairn.bank.memories.conversation(checked_id("convId", conv_id))
        info.context.budget.spend(len(memories) + len(edges))
        info.context.loaders.hold(memories)
        return t.Conversation(conv_id=conv_id, memories=memories, edges=edges)  # type: ignore[arg-type]

    @strawberry.field(description="Best product of weights first; edges are walked both ways; no memory twice.")
    async def paths(
        self,
        info: t.Asked,
        source: strawberry.ID,
        target: strawberry.ID,
        max_hops: int = 4,
        limit: int = 5,
        min_weight: float = 0,
    ) -> list[t.MemoryPath]:
        checks = Checks()
        checks.name("source", source)
        checks.name("target", target)
        checks.between("maxHops", max_hops, 1, MOST_HOPS)
        checks.between("limit", limit, 1, MOST_PATHS)
        checks.share("minWeight", min_weight)
        checks.done()
        memories = info.context.cairn.bank.memories
        info.context.budget.spend(limit * (max_hops + 1))
        found = await memories.paths(source, target, max_hops, limit, min_weight)
        told = await told_paths(memories, found)
        info.context.loaders.hold(step.memory for path in told for step in path.steps)
        return told  # type: ignore[return-value]

    @strawberry.field
    async def lesson(self, info: t.Asked, rb_id: strawberry.ID) -> t.Lesson | None:
        return await info.context.loaders.lessons.load(checked_rb_id(rb_id))  # type: ignore[no-any-return]

    @strawberry.field(description="Newest id first.")
    async def lessons(
        self, info: t.Asked, filter: LessonFilter | None = None, first: int = 20, after: str | None = None
    ) -> t.LessonPage:
        t.page_arguments(first)
        info.context.budget.spend(first)
        return await info.context.cairn.bank.lessons.page(lesson_filter(filter), first, after)  # type: ignore[return-value]

    @strawberry.field(description="By meaning and by words, best first.")
    async def search_memories(
        self, info: t.Asked, query: str, filter: MemoryFilter | None = None, limit: int = 10
    ) -> list[t.RecalledMemory]:
        checks = Checks()
        checks.text("query", query, MOST_QUERY_BYTES)
        checks.between("limit", limit, 1, MOST_FOUND)
        checks.done()
        info.context.budget.spend(limit)
        search = info.context.cairn.search
        wanted = memory_filter(filter)
        asking = search.asking(query)
        found = await search.memories(asking, wanted, limit)
        info.context.note(asking.degraded)
        return found  # type: ignore[return-value]

    @strawberry.field(
        description="By meaning and by words, ranked by four factors. `namespace`: its own lessons count whole, "
        "its team's 0.9, the organisation's 0.8; null: every namespace, all alike."
    )
    async def search_lessons(
        self,
        info: t.Asked,
        query: str,
        tags: list[str] | None = None,
        namespace: str | None = None,
        scope: Scope | None = None,
        outcome: Outcome | None = None,
        min_confidence: float = 0,
        limit: int = 5,
    ) -> list[t.RecalledLesson]:
        checks = Checks()
        checks.text("query", query, MOST_QUERY_BYTES)
        checks.names("tags", tags or [])
        if namespace is not None:
            check_namespace(checks, "namespace", namespace)
        checks.share("minConfidence", min_confidence)
        checks.between("limit", limit, 1, MOST_FOUND)
        checks.done()
        info.context.budget.spend(limit)
        search = info.context.cairn.search
        asking = search.asking(query)
        found = await search.lessons(
            asking,
            LessonQuery(
                query=query,
                tags=tuple(dict.fromkeys(tags or ())),
                namespace=namespace,
                scope=scope,
                outcome=outcome,
                min_confidence=min_confidence,
                limit=limit,
            ),
        )
        info.context.note(asking.degraded)
        return found  # type: ignore[return-value]

    @strawberry.field(
        description="One question in; the memories that answer it together, the paths that join them, the lessons "
        "that apply, and why, out."
    )
    async def recall(self, info: t.Asked, input: RecallInput) -> t.Recall:
        asked = input.asked(explained=asks_for(info._raw_info, EXPLAINS))
        info.context.budget.spend(asked.limit * (asked.hops + 1) + asked.lesson_limit)
        recalled = await info.context.cairn.recall.recall(asked)
        info.context.note(recalled.degraded)
        info.context.withheld.update(recalled.withheld)
        ways = [found.via for found in recalled.memories if found.via is not None]
        info.context.loaders.hold(step.memory for path in ways for step in path.steps)
        return recalled  # type: ignore[return-value]

    @strawberry.field
    async def session(self, info: t.Asked, id: strawberry.ID) -> t.Session | None:
        info.context.budget.spend(1)
        return await info.context.cairn.sessions.by_id(checked_id("id", id))  # type: ignore[return-value]

    @strawberry.field(description="Newest first.")
    async def sessions(
        self, info: t.Asked, filter: SessionFilter | None = None, first: int = 20, after: str | None = None
    ) -> t.SessionPage:
        t.page_arguments(first)
        info.context.budget.spend(first)
        return await info.context.cairn.sessions.page(filter.state if filter else None, first, after)  # type: ignore[return-value]

    @strawberry.field(
        description="Where a lesson comes from. Edges are followed both ways; a way visits no memory twice and goes on "
        "through an origin to others; maxHops counts edges."
    )
    async def provenance(self, info: t.Asked, rb_id: strawberry.ID, max_hops: int = 4) -> t.Provenance:
        checks = Checks()
        wanted = parse_rb_id(checks, "rbId", rb_id)
        checks.between("maxHops", max_hops, 0, MOST_HOPS)
        checks.done()
        found = await provenance(info.context.cairn.graph, wanted, max_hops)
        info.context.budget.spend(sum(len(trace.path.steps) for trace in found.traces))
        info.context.loaders.hold(step.memory for trace in found.traces for step in trace.path.steps)
        return found  # type: ignore[return-value]

    @strawberry.field(description="Lessons that proved themselves in more namespaces than they are for.")
    async def promotion_suggestions(self, info: t.Asked, first: int = 20) -> list[t.PromotionSuggestion]:
        t.page_arguments(first)
        info.context.budget.spend(first)
        return await info.context.cairn.scopes.suggestions(first)  # type: ignore[return-value]

    @strawberry.field(
        description="How the two stores disagree, counted online. Reads everything: not for every minute."
    )
    async def integrity(self, info: t.Asked) -> t.IntegrityReport:
        info.context.budget.spend(RECORDS // 2)  # it reads far more: twice in a request is enough
        return await info.context.cairn.sync.compare()  # type: ignore[return-value]

    @strawberry.field
    async def status(self, info: t.Asked) -> t.Status:
        info.context.budget.spend(RECORDS // 20)
        return await status_of(info.context.cairn, version())


@strawberry.type
class Mutation(UpkeepMutation):
    @strawberry.mutation(
        description="One atomic write of any number of memories, edges and lessons. Upserts by id: the same call twice "
        "changes nothing. An edge or a lesson may name ids given in the same call. All of it is stored, or none of it."
    )
    async def remember(self, info: t.Asked, input: RememberInput) -> t.RememberPayload:
        return await info.context.cairn.remember.write(input.call())  # type: ignore[return-value]

    @strawberry.mutation
    async def update_memory(self, info: t.Asked, id: strawberry.ID, patch: MemoryPatch) -> t.Memory:
        return await info.context.cairn.bank.update_memory(id, given(patch))  # type: ignore[return-value]

    @strawberry.mutation(description="Its edges, its vector and every pointer to it go with it.")
    async def delete_memory(self, info: t.Asked, id: strawberry.ID) -> t.DeletePayload:
        return await info.context.cairn.bank.delete_memory(checked_id("id", id))  # type: ignore[return-value]

    @strawberry.mutation
    async def update_edge(
        self,
        info: t.Asked,
        id: strawberry.ID,
        text: str | None = None,
        weight: float | None = None,
        tags: list[str] | None = None,
    ) -> t.Edge:
        return await info.context.cairn.bank.update_edge(id, text, weight, tags)  # type: ignore[return-value]

    @strawberry.mutation
    async def delete_edge(self, info: t.Asked, id: strawberry.ID) -> t.DeletePayload:
        return await info.context.cairn.bank.delete_edge(checked_id("id", id))  # type: ignore[return-value]

    @strawberry.mutation
    async def record_lesson(self, info: t.Asked, input: LessonInput) -> t.Lesson:
        checks = Checks()
        draft = input.draft(checks, "input")
        checks.done()
        return await info.context.cairn.remember.record_lesson(draft)  # type: ignore[return-value]

    @strawberry.mutation
    async def update_lesson(self, info: t.Asked, rb_id: strawberry.ID, patch: LessonPatch) -> t.Lesson:
        return await info.context.cairn.bank.update_lesson(checked_rb_id(rb_id), given(patch))  # type: ignore[return-value]

    @strawberry.mutation
    async def delete_lesson(self, info: t.Asked, rb_id: strawberry.ID) -> t.DeletePayload:
        return await info.context.cairn.bank.delete_lesson(checked_rb_id(rb_id))  # type: ignore[return-value]

    @strawberry.mutation(description="Sets both sides: link_nodes and reasoning_pointer_ids.")
    async def link_lesson(self, info: t.Asked, rb_id: strawberry.ID, node_ids: list[strawberry.ID]) -> t.Lesson:
        return await info.context.cairn.bank.link_lesson(checked_rb_id(rb_id), node_ids)  # type: ignore[return-value]

    @strawberry.mutation
    async def unlink_lesson(self, info: t.Asked, rb_id: strawberry.ID, node_ids: list[strawberry.ID]) -> t.Lesson:
        return await info.context.cairn.bank.unlink_lesson(checked_rb_id(rb_id), node_ids)  # type: ignore[return-value]

    @strawberry.mutation(description=f"{SAID} {SOURCE} {WHERE} {ONCE}")
    async def give_feedback(
        self,
        info: t.Asked,
        rb_id: strawberry.ID,
        helpful: bool,
        comment: str | None = None,
        source: str | None = None,
        namespace: str | None = None,
        idempotency_key: str | None = None,
    ) -> t.Lesson:
        (lesson,) = await info.context.cairn.signals.give(
            [checked_rb_id(rb_id)],
            SignalKind.HELPFUL if helpful else SignalKind.NOT_HELPFUL,
            comment=comment,
            source=source,
            namespace=namespace,
            idempotency_key=idempotency_key,
        )
        return lesson  # type: ignore[return-value]

    @strawberry.mutation(
        description="Work that used these lessons succeeded or failed: all of them are told, or none. "
        f"The answer is in the order of rbIds. {SOURCE} {WHERE} `recallId`: the recall that offered them; its other "
        f"lessons were not used, then. What is told first of a recall counts for `uplift`. {ONCE}"
    )
    async def record_outcome(
        self,
        info: t.Asked,
        rb_ids: list[strawberry.ID],
        succeeded: bool,
        conv_id: str | None = None,
        source: str | None = None,
        namespace: str | None = None,
        recall_id: strawberry.ID | None = None,
        idempotency_key: str | None = None,
    ) -> list[t.Lesson]:
        checks = Checks()
        wanted = [parse_rb_id(checks, f"rbIds[{place}]", one) for place, one in enumerate(rb_ids)]
        if not wanted and recall_id is None:
            checks.add("rbIds", "is empty; name the lessons that were used, or the recall whose lessons were not")
        checks.done()
        return await info.context.cairn.signals.give(  # type: ignore[return-value]
            wanted,
            SignalKind.SUCCEEDED if succeeded else SignalKind.FAILED,
            "rbIds",
            conv_id=conv_id,
            source=source,
            namespace=namespace,
            recall_id=recall_id,
            idempotency_key=idempotency_key,
        )

    @strawberry.mutation(description=f"What came of a lesson later: stable, or reverted. {SOURCE} {ONCE}")
    async def record_stability(
        self,
        info: t.Asked,
        rb_id: strawberry.ID,
        reverted: bool,
        source: str | None = None,
        idempotency_key: str | None = None,
    ) -> t.Lesson:
        (lesson,) = await info.context.cairn.signals.give(
            [checked_rb_id(rb_id)],
            SignalKind.REVERTED if reverted else SignalKind.STABLE,
            source=source,
            idempotency_key=idempotency_key,
        )
        return lesson  # type: ignore[return-value]

    @strawberry.mutation(description="Makes a lesson one of its team's or of the whole tenant's; it never narrows.")
    async def promote_lesson(self, info: t.Asked, rb_id: strawberry.ID, scope: Scope) -> t.Lesson:
        return await info.context.cairn.scopes.promote(checked_rb_id(rb_id), scope)  # type: ignore[return-value]

    @strawberry.mutation(
        description="Retires active lessons below a confidence. dryRun: only lists the `first` of them, with reasons. "
        "Nothing is erased: updateLesson(status: ACTIVE) brings one back, and it stays until something new is said of it."
    )
    async def prune(
        self, info: t.Asked, dry_run: bool = True, below: float = PRUNED_BELOW, first: int = 100
    ) -> t.PruneReport:
        checks = Checks()
        checks.share("below", below)
        checks.between("first", first, 1, t.MOST_PER_PAGE)
        checks.done()
        info.context.budget.spend(first)
        return await info.context.cairn.prune.prune(dry_run, below, first)  # type: ignore[return-value]

    @strawberry.mutation(description="Acknowledged once it is stored; lessons follow.")
    async def submit_session(self, info: t.Asked, input: SessionInput) -> t.Session:
        return await info.context.cairn.sessions.submit(input.draft())  # type: ignore[return-value]

    @strawberry.mutation(description="Puts a session that ended FAILED or NOTHING_LEARNED back into the queue.")
    async def retry_session(self, info: t.Asked, id: strawberry.ID) -> t.Session:
        return await info.context.cairn.sessions.retry(checked_id("id", id))  # type: ignore[return-value]

    @strawberry.mutation(
        description="With all that came only from it: its memories, its support of lessons, and lessons of a distiller "
        "that no other session stands behind and no person had a hand in. What stays is named."
    )
    async def delete_session(self, info: t.Asked, id: strawberry.ID) -> t.DeleteSessionPayload:
        return await info.context.cairn.sessions.delete(checked_id("id", id))  # type: ignore[return-value]

    @strawberry.mutation(
        description="Mends every disagreement of the two stores. dryRun: only counts them, as `integrity` does."
    )
    async def repair(self, info: t.Asked, dry_run: bool = True) -> t.IntegrityReport:
        sync = info.context.cairn.sync
        return await (sync.compare() if dry_run else sync.repair())  # type: ignore[return-value]


def version() -> str:
    try:
        return importlib.metadata.version("cairn")
    except importlib.metadata.PackageNotFoundError:  # run from a checkout, as `make run` does
        project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8"))
        return str(project["project"]["version"])


class ParsedShort(ParserCache):
    """Keeps parsed queries, but no long ones: 256 of those, with their arguments written into them, would take gigabytes."""

    def on_parse(self) -> Iterator[None]:
        if len(self.execution_context.query or "") > KEPT_QUERY:
            yield
        else:
            yield from super().on_parse()


class ValidatedShort(ValidationCache):
    def on_validate(self) -> Iterator[None]:
        if len(self.execution_context.query or "") > KEPT_QUERY:
            yield
        else:
            yield from super().on_validate()


class Schema(strawberry.Schema):
    def process_errors(self, errors: list[GraphQLError], execution_context: ExecutionContext | None = None) -> None:
        """Logs nothing: a refusal is the caller's, with the caller's text in it; api/problems.py logs what is ours."""


schema = Schema(
    query=Query,
    mutation=Mutation,
    types=(*t.MEMORY_TYPES, JSON),
    config=StrawberryConfig(scalar_map={datetime: t.DateTime, date: t.Date}),
    extensions=[
        lambda: MaxTokensLimiter(max_token_count=MOST_TOKENS),
        lambda: AddValidationRules([DepthRule]),
        lambda: ParsedShort(maxsize=256),
        lambda: ValidatedShort(maxsize=256),
    ],
)
