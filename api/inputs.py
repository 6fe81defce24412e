"""The GraphQL inputs, and what they mean to the model."""

from collections.abc import Mapping
from datetime import date, datetime
from functools import lru_cache
from typing import Any, TypeVar

import strawberry
from strawberry import UNSET
from strawberry.schema.name_converter import NameConverter
from strawberry.types import get_object_definition
from strawberry.types.arguments import InputContext

import bank.model
import graph.model
from bank.lessons import check_lessons, check_namespace, parse_rb_id
from bank.model import LessonStatus, Outcome, Scope
from bank.remember import RememberCall
from bank.sessions import SessionDraft, SessionState, StepDraft
from graph.checks import Checks, check_edges, check_memories
from graph.errors import BadInput
from graph.model import MemoryType

MOST_PATHS = 100
MOST_FOUND = 200
MOST_RECALL_HOPS = 5
MOST_CONTEXT_TOKENS = 100_000


T = TypeVar("T")


def _nothing() -> list[str]:
    return []


def read_quickly(kind: type[T]) -> type[T]:
    """For inputs that a call may bring a thousand of. strawberry works out the names and types of all fields anew for each
    of them, which took a tenth of a large `remember`; GraphQL itself has read the values of leaves already."""
    kind.__strawberry_definition__.from_input = _from_input  # type: ignore[attr-defined]
    return kind


def _from_input(kind: Any, value: Mapping[str, Any], context: InputContext) -> Any:
    fields = _fields(kind)
    given = {}
    for name, one in value.items():
        field, nested = fields[name]
        given[field] = one if nested is None else context.convert(one, nested, name)
    return kind(**given)


@lru_cache
def _fields(kind: Any) -> dict[str, tuple[str, Any]]:
    """By its name in GraphQL: a field's own name, and its type where that is an input itself."""
    names, found = NameConverter(), {}
    for field in kind.__strawberry_definition__.fields:
        inner = get_object_definition(getattr(field.type, "of_type", field.type))
        found[names.from_field(field)] = (field.python_name, field.type if inner is not None else None)
    return found


@read_quickly
@strawberry.input
class UserRequestInput:
    id: strawberry.ID | None = None
    text: str
    tags: list[str] = strawberry.field(default_factory=_nothing)
    conv_id: str | None = None
    ingestion_time: datetime | None = None
    user_role: str | None = None
    user_id: str | None = None


@read_quickly
@strawberry.input
class UserPreferenceInput:
    id: strawberry.ID | None = None
    text: str
    tags: list[str] = strawberry.field(default_factory=_nothing)
    conv_id: str | None = None
    ingestion_time: datetime | None = None
    preference_type: str | None = None


@read_quickly
@strawberry.input
class AgentAnswerInput:
    id: strawberry.ID | None = None
    text: str
    tags: list[str] = strawberry.field(default_factory=_nothing)
    conv_id: str | None = None
    ingestion_time: datetime | None = None
    analysis_types: list[str] = strawberry.field(default_factory=_nothing)
    metrics: list[str] = strawberry.field(default_factory=_nothing)


@read_quickly
@strawberry.input
class AgentActionInput:
    id: strawberry.ID | None = None
    text: str
    tags: list[str] = strawberry.field(default_factory=_nothing)
    conv_id: str | None = None
    ingestion_time: datetime | None = None
    status: str | None = None
    parameter_field: str | None = None
    result: str | None = None


@read_quickly
@strawberry.input
class EventInput:
    id: strawberry.ID | None = None
    text: str
    tags: list[str] = strawberry.field(default_factory=_nothing)
    conv_id: str | None = None
    ingestion_time: datetime | None = None
    source_type: str | None = None
    start_date: date | None = None
    end_date: date | None = None


@read_quickly
@strawberry.input
class DataSourceInput:
    id: strawberry.ID | None = None
    text: str
    tags: list[str] = strawberry.field(default_factory=_nothing)
    conv_id: str | None = None
    ingestion_time: datetime | None = None
    source_type: str | None = None
    doc_pointer: str | None = None
    relevant_parts: str | None = None


@read_quickly
@strawberry.input(one_of=True)
class MemoryInput:
    user_request: UserRequestInput | None = UNSET
    user_preference: UserPreferenceInput | None = UNSET
    agent_answer: AgentAnswerInput | None = UNSET
    agent_action: AgentActionInput | None = UNSET
    event: EventInput | None = UNSET
    data_source: DataSourceInput | None = UNSET

    def draft(self, conv_id: str) -> graph.model.MemoryDraft:
        name, given = next((name, value) for name, value in vars(self).items() if value is not UNSET)
        kind = graph.model.MemoryType("".join(part.capitalize() for part in name.split("_")))
        own = {field: _frozen(getattr(given, field)) for field in graph.model.own_fields(kind)}
        return graph.model.MemoryDraft.model_construct(
            type=kind,
            id=given.id,
            text=given.text,
            tags=_unique(given.tags),
            conv_id=given.conv_id if given.conv_id is not None else conv_id,
            ingestion_time=given.ingestion_time,
            own=own,
        )


@read_quickly
@strawberry.input
class EdgeInput:
    id: strawberry.ID | None = None
    source: strawberry.ID
    target: strawberry.ID
    text: str
    weight: float
    tags: list[str] = strawberry.field(default_factory=_nothing)
    created_time: datetime | None = None

    def draft(self) -> graph.model.EdgeDraft:
        return graph.model.EdgeDraft.model_construct(
            id=self.id,
            source=self.source,
            target=self.target,
            text=self.text,
            weight=self.weight,
            tags=_unique(self.tags),
            created_time=self.created_time,
        )


@read_quickly
@strawberry.input(description="An rbId that is given makes the call repeatable; one that is not is minted.")
class LessonInput:
    rb_id: strawberry.ID | None = None
    title: str | None = None
    key_lesson: str
    context_to_prefer: str
    tags: list[str] = strawberry.field(default_factory=_nothing)
    link_nodes: list[strawberry.ID] = strawberry.field(default_factory=_nothing)
    outcome: Outcome = Outcome.SUCCESS
    namespace: str = "default"
    scope: Scope = Scope.PROJECT

    def draft(self, checks: Checks, field: str) -> bank.model.LessonDraft:
        return bank.model.LessonDraft.model_construct(
            rb_id=None if self.rb_id is None else parse_rb_id(checks, f"{field}.rbId", self.rb_id),
            title=self.title,
            key_lesson=self.key_lesson,
            context_to_prefer=self.context_to_prefer,
            tags=_unique(self.tags),
            link_nodes=_unique(self.link_nodes),
            outcome=self.outcome,
            namespace=self.namespace,
            scope=self.scope,
        )


@strawberry.input
class RememberInput:
    conv_id: str
    memories: list[MemoryInput] = strawberry.field(default_factory=list)
    edges: list[EdgeInput] = strawberry.field(default_factory=list)
    lessons: list[LessonInput] = strawberry.field(default_factory=list)
    idempotency_key: str | None = None
    link_topics: bool = strawberry.field(
        default=False,
        description="Also joins each memory of the call to those that it shares rare words, names or tags with: weak "
        "edges marked machineMade, at most 5 of one memory, none where an edge is already. They are in the payload.",
    )

    def call(self) -> RememberCall:
        checks = Checks()
        inherited = self.conv_id if checks.name("convId", self.conv_id) else "-"  # its problem is named once
        call = RememberCall.model_construct(
            memories=tuple(memory.draft(inherited) for memory in self.memories),
            edges=tuple(edge.draft() for edge in self.edges),
            lessons=tuple(lesson.draft(checks, f"lessons[{place}]") for place, lesson in enumerate(self.lessons)),
            idempotency_key=self.idempotency_key,
            link_topics=self.link_topics,
        )
        if checks.problems:  # the bank refuses what it finds; refused here, the call must be told of all of it, too
            if self.idempotency_key is not None:
                checks.name("idempotencyKey", self.idempotency_key)
            check_memories(checks, call.memories)
            check_edges(checks, call.edges)
            check_lessons(checks, call.lessons)
        checks.done()
        return call


@strawberry.input
class SessionFilter:
    state: SessionState | None = None


@read_quickly
@strawberry.input(description="One step of the work: what was done, with what, and what came of it.")
class SessionStepInput:
    action: str
    parameters: str | None = None
    result: str | None = None


@strawberry.input
class SessionInput:
    conv_id: str
    request: str = strawberry.field(description="What was asked.")
    outcome: Outcome
    steps: list[SessionStepInput]
    answer: str | None = strawberry.field(default=None, description="What was answered.")
    tags: list[str] = strawberry.field(default_factory=_nothing)
    namespace: str = "default"
    idempotency_key: str | None = strawberry.field(default=None, description="The same key twice is one session.")

    def draft(self) -> SessionDraft:
        return SessionDraft.model_construct(
            conv_id=self.conv_id,
            request=self.request,
            outcome=self.outcome,
            steps=tuple(
                StepDraft.model_construct(action=step.action, parameters=step.parameters, result=step.result)
                for step in self.steps
            ),
            answer=self.answer,
            tags=_unique(self.tags),
            namespace=self.namespace,
            idempotency_key=self.idempotency_key,
        )


@strawberry.input(description="Only the fields of the memory's own type may be given; another is BAD_USER_INPUT.")
class MemoryPatch:
    text: str | None = UNSET
    tags: list[str] | None = UNSET
    user_role: str | None = UNSET
    user_id: str | None = UNSET
    preference_type: str | None = UNSET
    analysis_types: list[str] | None = UNSET
    metrics: list[str] | None = UNSET
    status: str | None = UNSET
    parameter_field: str | None = UNSET
    result: str | None = UNSET
    source_type: str | None = UNSET
    start_date: date | None = UNSET
    end_date: date | None = UNSET
    doc_pointer: str | None = UNSET
    relevant_parts: str | None = UNSET


@strawberry.input
class LessonPatch:
    title: str | None = UNSET
    key_lesson: str | None = UNSET
    context_to_prefer: str | None = UNSET
    tags: list[str] | None = UNSET
    outcome: Outcome | None = UNSET
    scope: Scope | None = UNSET
    status: LessonStatus | None = UNSET


def given(patch: MemoryPatch | LessonPatch) -> dict[str, Any]:
    """Only what the caller wrote."""
    return {name: _frozen(value) for name, value in vars(patch).items() if value is not UNSET}


@strawberry.input(description="Events whose window overlaps it; an event with one date is one day long.")
class DateRange:
    start: date
    end: date


@strawberry.input(description="Every condition given must hold; `tags`: it carries all of them.")
class MemoryFilter:
    types: list[MemoryType] | None = None
    conv_id: str | None = None
    tags: list[str] | None = None
    text_contains: str | None = strawberry.field(default=None, description="Upper and lower case are the same.")
    since: datetime | None = None
    until: datetime | None = None
    overlaps: DateRange | None = None


@strawberry.input
class LessonFilter:
    tags: list[str] | None = None
    linked_to: strawberry.ID | None = None
    outcome: Outcome | None = None
    namespace: str | None = None
    scope: Scope | None = None
    status: LessonStatus | None = None
    min_confidence: float | None = None


@strawberry.input
class RecallInput:
    query: str
    tags: list[str] = strawberry.field(
        default_factory=_nothing, description="Edges and memories that share them weigh more; none is excluded."
    )
    filter: MemoryFilter | None = strawberry.field(
        default=None, description="Only memories that pass; the walk keeps to them too."
    )
    namespace: str | None = strawberry.field(
        default=None, description="Lessons: null means every namespace of the tenant."
    )
    hops: int = strawberry.field(
        default=3,
        description="How far the search walks from what the vectors found. 0: vectors only. At most 5.",
    )
    min_weight: float = 0
    limit: int = 10
    path_limit: int = 10
    lesson_limit: int = 5
    outcome: Outcome | None = None
    min_confidence: float = 0
    token_budget: int = strawberry.field(default=2000, description="For `context`.")
    as_of: datetime | None = strawberry.field(default=None, description="Only what was there then, in today's words.")

    def asked(self, explained: bool) -> bank.model.RecallQuery:
        checks = Checks()
        checks.text("query", self.query)
        checks.names("tags", self.tags)
        if self.namespace is not None:
            check_namespace(checks, "namespace", self.namespace)
        checks.between("hops", self.hops, 0, MOST_RECALL_HOPS)
        checks.share("minWeight", self.min_weight)
        checks.between("limit", self.limit, 1, MOST_FOUND)
        checks.between("pathLimit", self.path_limit, 0, MOST_PATHS)
        checks.between("lessonLimit", self.lesson_limit, 0, MOST_FOUND)
        checks.share("minConfidence", self.min_confidence)
        checks.between("tokenBudget", self.token_budget, 0, MOST_CONTEXT_TOKENS)
        try:
            filter = memory_filter(self.filter)
        except BadInput as error:
            checks.problems += error.problems
        checks.done()
        return bank.model.RecallQuery(
            query=self.query,
            tags=_unique(self.tags),
            filter=filter,
            namespace=self.namespace,
            hops=self.hops,
            min_weight=self.min_weight,
            limit=self.limit,
            path_limit=self.path_limit,
            lesson_limit=self.lesson_limit,
            outcome=self.outcome,
            min_confidence=self.min_confidence,
            token_budget=self.token_budget,
            as_of=self.as_of,
            explained=explained,
        )


def memory_filter(wanted: MemoryFilter | None) -> graph.model.MemoryFilter:
    if wanted is None:
        return graph.model.MemoryFilter()
    checks = Checks()
    if wanted.conv_id is not None:
        checks.name("filter.convId", wanted.conv_id)
    checks.names("filter.tags", wanted.tags or [])
    if wanted.text_contains is not None:
        checks.storable("filter.textContains", wanted.text_contains)
    if wanted.since and wanted.until and wanted.until < wanted.since:
        checks.add("filter.until", "is before filter.since")
    if wanted.overlaps is not None and wanted.overlaps.end < wanted.overlaps.start:
        checks.add("filter.overlaps.end", "is before filter.overlaps.start")
    checks.done()
    overlaps = wanted.overlaps
    return graph.model.MemoryFilter(
        types=None if wanted.types is None else tuple(wanted.types),
        conv_id=wanted.conv_id,
        tags=_unique(wanted.tags or []),
        text_contains=wanted.text_contains,
        since=wanted.since,
        until=wanted.until,
        overlaps=None if overlaps is None else graph.model.DateRange(start=overlaps.start, end=overlaps.end),
    )


def lesson_filter(wanted: LessonFilter | None) -> bank.model.LessonFilter:
    if wanted is None:
        return bank.model.LessonFilter()
    checks = Checks()
    checks.names("filter.tags", wanted.tags or [])
    if wanted.linked_to is not None:
        checks.name("filter.linkedTo", wanted.linked_to)
    if wanted.namespace is not None:
        check_namespace(checks, "filter.namespace", wanted.namespace)
    if wanted.min_confidence is not None:
        checks.share("filter.minConfidence", wanted.min_confidence)
    checks.done()
    return bank.model.LessonFilter(
        tags=_unique(wanted.tags or []),
        linked_to=wanted.linked_to,
        outcome=wanted.outcome,
        namespace=wanted.namespace,
        scope=wanted.scope,
        status=wanted.status,
        min_confidence=wanted.min_confidence or 0.0,
    )


def _unique(values: list[str] | list[strawberry.ID]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
