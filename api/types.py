"""The GraphQL types. Resolvers return the model's frozen values; these classes say which of their attributes are seen.

`self` in a resolver is such a value, which is why it has every attribute that a class below declares.
"""

from datetime import UTC, date, datetime
from typing import Any

import strawberry
from strawberry.types import Info

import bank.model
import graph.model
from api.context import Context
from api.loaders import EdgesWanted, SignalsWanted
from bank.model import LessonStatus, LinkType, Outcome, Scope, SignalKind, UpliftBasis
from bank.sessions import SessionState
from bank.uplift import uplift
from graph.checks import Checks
from graph.model import Direction, EdgeBand, MemoryType

# Registers the model's enums with strawberry; they are used under their own names.
strawberry.enum(MemoryType)
strawberry.enum(Direction)
strawberry.enum(
    EdgeBand,
    description="CORE: weight 0.8 and up. BRIDGE: 0.5 and up. TOPICAL: below. No weight is without a band.",
)
strawberry.enum(Outcome)
strawberry.enum(
    Scope, description="Whom a lesson is for: its own namespace, every namespace of the same team, the whole tenant."
)
strawberry.enum(LessonStatus)
strawberry.enum(
    UpliftBasis,
    description="WITHHELD: recalls that offered it beside recalls that withheld it by chance. "
    "NAMED: outcomes that name it beside outcomes that do not, of recalls that offered it.",
)
strawberry.enum(
    SignalKind, description="What was said of a lesson: by feedback, by an outcome, by what became of it later."
)
strawberry.enum(SessionState)
strawberry.enum(LinkType)

Asked = Info[Context, None]
MOST_PER_PAGE = 500


def parse_moment(text: Any) -> datetime:
    """RFC 3339 with an offset."""
    if not isinstance(text, str):
        raise ValueError("a time is a string, like 2025-01-31T09:00:00Z")
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is no time; write it like 2025-01-31T09:00:00Z") from None
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no offset; write it like 2025-01-31T09:00:00Z or …+02:00")
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{text!r} is outside the years 1 to 9999") from None


def parse_day(text: Any) -> date:
    try:
        if len(text) != 10:  # other ways of ISO 8601 to write a day
            raise ValueError
        return date.fromisoformat(text)
    except (ValueError, TypeError):
        raise ValueError(f"{text!r} is no day; write it like 2025-01-31") from None


DateTime = strawberry.scalar(
    name="DateTime",
    description="RFC 3339 with an offset.",
    serialize=lambda moment: moment.isoformat(),
    parse_value=parse_moment,
)
Date = strawberry.scalar(
    name="Date", description="YYYY-MM-DD.", serialize=lambda day: day.isoformat(), parse_value=parse_day
)


def page_arguments(first: int) -> None:
    checks = Checks()
    checks.between("first", first, 1, MOST_PER_PAGE)
    checks.done()


@strawberry.type
class PageInfo:
    has_next_page: bool
    end_cursor: str | None


@strawberry.interface
class Memory:
    id: strawberry.ID = strawberry.field(description="N1001: unique over all six types within a tenant.")
    type: MemoryType
    conv_id: str = strawberry.field(description="The conversation it belongs to.")
    text: str = strawberry.field(description="What an agent reads.")
    tags: list[str]
    ingestion_time: datetime
    update_time: datetime = strawberry.field(description="When its content last changed.")
    embedding_id: str = strawberry.field(description="emb_N1001: the row in the vector store.")
    reasoning_pointer_ids: list[strawberry.ID] = strawberry.field(description="The lessons this memory points at.")

    @classmethod
    def resolve_type(cls, value: graph.model.Memory, *_: Any) -> str:
        """Told at once: asking each of the six whether it is its own takes longer than all else about a memory."""
        return value.type.value

    @strawberry.field(
        description="reasoningPointerIds, resolved: the join. Only ACTIVE ones, and none that a recall of the same request "
        "has withheld; lessons(filter: {linkedTo: …}) lists all."
    )
    async def lessons(self, info: Asked) -> list["Lesson"]:
        found = await info.context.loaders.lessons.load_many([int(one) for one in self.reasoning_pointer_ids])
        info.context.budget.spend(len(found))
        return [
            lesson
            for lesson in found
            if lesson is not None and lesson.status == LessonStatus.ACTIVE and lesson.rb_id not in info.context.withheld
        ]

    @strawberry.field(description="Strongest first.")
    async def edges(
        self,
        info: Asked,
        direction: Direction = Direction.BOTH,
        min_weight: float = 0,
        tags: list[str] | None = None,
        first: int = 20,
        after: str | None = None,
    ) -> "EdgePage":
        checks = Checks()
        checks.between("first", first, 1, MOST_PER_PAGE)
        checks.share("minWeight", min_weight)
        checks.names("tags", tags or [])
        checks.done()
        wanted = EdgesWanted(self.id, direction, min_weight, tuple(tags or ()), first, after)
        page = await info.context.loaders.edges.load(wanted)
        info.context.budget.spend(len(page.nodes))
        return page  # type: ignore[no-any-return]


@strawberry.type
class UserRequest(Memory):
    user_role: str | None
    user_id: str | None

    @classmethod
    def is_type_of(cls, value: Any, _: Any) -> bool:
        return isinstance(value, graph.model.UserRequest)


@strawberry.type
class UserPreference(Memory):
    preference_type: str | None

    @classmethod
    def is_type_of(cls, value: Any, _: Any) -> bool:
        return isinstance(value, graph.model.UserPreference)


@strawberry.type
class AgentAnswer(Memory):
    analysis_types: list[str]
    metrics: list[str]

    @classmethod
    def is_type_of(cls, value: Any, _: Any) -> bool:
        return isinstance(value, graph.model.AgentAnswer)


@strawberry.type
class AgentAction(Memory):
    status: str | None
    parameter_field: str | None = strawberry.field(description="The exact SQL, API request or parameters.")
    result: str | None = strawberry.field(description="What came of it, whole.")

    @classmethod
    def is_type_of(cls, value: Any, _: Any) -> bool:
        return isinstance(value, graph.model.AgentAction)


@strawberry.type
class Event(Memory):
    source_type: str | None
    start_date: date | None
    end_date: date | None

    @classmethod
    def is_type_of(cls, value: Any, _: Any) -> bool:
        return isinstance(value, graph.model.Event)


@strawberry.type
class DataSource(Memory):
    source_type: str | None
    doc_pointer: str | None
    relevant_parts: str | None

    @classmethod
    def is_type_of(cls, value: Any, _: Any) -> bool:
        return isinstance(value, graph.model.DataSource)


MEMORY_TYPES = (UserRequest, UserPreference, AgentAnswer, AgentAction, Event, DataSource)


@strawberry.type
class Edge:
    id: strawberry.ID = strawberry.field(description="E3001: unique within a tenant.")
    text: str = strawberry.field(description="The sentence that says why the two belong together: the edge's meaning.")
    weight: float = strawberry.field(description="0 to 1.")
    band: EdgeBand
    tags: list[str]
    created_time: datetime
    machine_made: bool = strawberry.field(
        description="Nobody wrote it: Cairn found that the two share rare words, names or tags."
    )

    @strawberry.field
    async def source(self, info: Asked) -> Memory:
        info.context.budget.spend(1)
        return await info.context.loaders.memories.load(_ends(self).source)  # type: ignore[no-any-return]

    @strawberry.field
    async def target(self, info: Asked) -> Memory:
        info.context.budget.spend(1)
        return await info.context.loaders.memories.load(_ends(self).target)  # type: ignore[no-any-return]


def _ends(edge: Any) -> graph.model.Edge:
    """The model's edge has the ids where the GraphQL type has the memories."""
    assert isinstance(edge, graph.model.Edge)
    return edge


def page_info(root: Any) -> PageInfo:
    return PageInfo(has_next_page=root.has_next_page, end_cursor=root.end_cursor)


@strawberry.type
class MemoryPage:
    nodes: list[Memory]
    page_info: PageInfo = strawberry.field(resolver=page_info)


@strawberry.type
class EdgePage:
    nodes: list[Edge]
    page_info: PageInfo = strawberry.field(resolver=page_info)


@strawberry.type
class LessonPage:
    nodes: list["Lesson"]
    page_info: PageInfo = strawberry.field(resolver=page_info)


@strawberry.type(description="A conversation's memories, oldest first, and the edges among them.")
class Conversation:
    conv_id: str
    memories: list[Memory]
    edges: list[Edge]


@strawberry.type(description="One thing that was said of a lesson; it never changes.")
class Signal:
    id: strawberry.ID
    kind: SignalKind
    comment: str | None
    conv_id: str | None = strawberry.field(description="The conversation in which it was used.")
    source: str | None = strawberry.field(description="Who said it, as far as the caller told.")
    namespace: str | None = strawberry.field(description="Where it was used, as far as the caller told.")
    created_time: datetime


@strawberry.type
class SignalPage:
    nodes: list[Signal]
    page_info: PageInfo = strawberry.field(resolver=page_info)


@strawberry.type(description="A lesson's confidence from a moment on, and why.")
class ConfidencePoint:
    time: datetime
    value: float
    why: str


@strawberry.type(
    description="How often work succeeded with a lesson and without it, among recalls that it was chosen for. "
    "The difference lies between low and high with 95 % certainty."
)
class Uplift:
    with_lesson: float
    without_lesson: float
    difference: float
    low: float
    high: float
    calls_with: int
    calls_without: int
    basis: UpliftBasis


@strawberry.type
class Lesson:
    rb_id: strawberry.ID = strawberry.field(
        description="INT64 in the stores, a string here: JSON numbers lose digits past 2^53."
    )
    title: str = strawberry.field(description="A short name; the first words of keyLesson where the writer gave none.")
    key_lesson: str
    context_to_prefer: str = strawberry.field(description="When the lesson applies.")
    tags: list[str]
    link_nodes: list[strawberry.ID]
    lost_sources: list[strawberry.ID] = strawberry.field(
        description="The memories it was learnt from that have been deleted since."
    )
    outcome: Outcome = strawberry.field(description="A pattern to follow, or one to avoid.")
    namespace: str = strawberry.field(description="team/project; a name without a slash is a team of its own.")
    scope: Scope
    status: LessonStatus
    confidence: float = strawberry.field(description="0 to 1, computed from its signals.")
    start_confidence: float = strawberry.field(description="Where its confidence started.")
    usage_count: int = strawberry.field(description="How often feedback or an outcome named it.")
    learned_by: str = strawberry.field(description="hand, or the distiller that learnt it, with its model.")
    offered_count: int = strawberry.field(description="How often recall or searchLessons returned it; a second late.")
    version: int
    created_at: datetime
    updated_at: datetime
    last_used_at: datetime | None

    @strawberry.field(description="Null while there is too little to say: fewer than 5 calls on either side.")
    def uplift(self) -> Uplift | None:
        return uplift(self.worked)  # type: ignore[attr-defined,return-value]

    @strawberry.field(description="linkNodes, resolved: the memories it was learnt from.")
    async def sources(self, info: Asked) -> list[Memory]:
        found = await info.context.loaders.memories.load_many([str(one) for one in self.link_nodes])
        info.context.budget.spend(len(found))
        return [memory for memory in found if memory is not None]

    @strawberry.field(description="Newest first.")
    async def signals(self, info: Asked, first: int = 20, after: str | None = None) -> SignalPage:
        page_arguments(first)
        info.context.budget.spend(first)
        return await info.context.loaders.signals.load(SignalsWanted(int(self.rb_id), first, after))  # type: ignore[no-any-return]

    @strawberry.field(description="The latest `last` moves of its confidence and the reason of each, oldest first.")
    async def confidence_history(self, info: Asked, last: int = 100) -> list[ConfidencePoint]:
        checks = Checks()
        checks.between("last", last, 1, MOST_PER_PAGE)
        checks.done()
        info.context.budget.spend(last)
        points = await info.context.loaders.histories.load(int(self.rb_id))
        return list(points[-last:])

    merged_into: strawberry.ID | None = strawberry.field(description="The lesson that it became part of.")
    merged_from: list[strawberry.ID] = strawberry.field(description="The lessons that it was made of.")

    @strawberry.field(
        description="To other lessons and from them, the strongest first. Those to QUARANTINED lessons are left out, "
        "unless this one is QUARANTINED itself; so are those to lessons that a recall of the same request has withheld."
    )
    async def links(self, info: Asked) -> list["LessonLink"]:
        rb_id = int(self.rb_id)
        found = await info.context.loaders.lesson_links.load(rb_id)
        info.context.budget.spend(len(found))
        others = await info.context.loaders.lessons.load_many([link.other(rb_id) for link in found])
        return [link for link, other in zip(found, others, strict=True) if _may_be_met(info, self, other)]


def _may_be_met(info: Asked, lesson: Any, other: Any) -> bool:
    """Whether a lesson's links lead to another: what waits for review is met only by whoever reviews."""
    if other is None or other.rb_id in info.context.withheld:
        return False
    return bool(other.status != LessonStatus.QUARANTINED or lesson.status == LessonStatus.QUARANTINED)


@strawberry.type(description="CONFLICTS and ALTERNATIVE say the same of both lessons.")
class LessonLink:
    type: LinkType
    strength: float = strawberry.field(description="0 to 1.")
    evidence: str | None
    created_time: datetime

    @strawberry.field
    async def source(self, info: Asked) -> Lesson:
        return await _end(info, self, "source")

    @strawberry.field
    async def target(self, info: Asked) -> Lesson:
        return await _end(info, self, "target")


async def _end(info: Asked, link: Any, end: str) -> Lesson:
    """The model's link has the ids where the GraphQL type has the lessons."""
    assert isinstance(link, bank.model.LessonLink)
    info.context.budget.spend(1)
    return await info.context.loaders.lessons.load(getattr(link, end))  # type: ignore[no-any-return]


@strawberry.type
class PrunedLesson:
    lesson: Lesson
    reasons: list[str]


@strawberry.type
class PruneReport:
    dry_run: bool
    found: int = strawberry.field(description="Active lessons below the confidence asked for.")
    retired: int = strawberry.field(description="How many of them are RETIRED now.")
    lessons: list[PrunedLesson] = strawberry.field(description="The first of them, and why.")


@strawberry.type(description="A lesson that should be for more than it is: it proved itself in several namespaces.")
class PromotionSuggestion:
    lesson: Lesson
    scope: Scope
    namespaces: list[str]


@strawberry.type(
    description="The first step, the seed, has no edge. `forward` is false where the edge was walked against its direction."
)
class PathStep:
    memory: Memory
    edge: Edge | None
    forward: bool
    energy: float


@strawberry.type(description="text reads as prose: (memory) -[why]-> (memory).")
class MemoryPath:
    score: float
    steps: list[PathStep]
    text: str


@strawberry.type
class RecalledMemory:
    memory: Memory
    score: float
    vector_score: float | None
    bm25_score: float | None = strawberry.field(name="bm25Score")
    path_score: float | None = strawberry.field(description="The energy that came to it along edges.")
    via: MemoryPath | None = strawberry.field(description="The best way to it, where the walk reached it.")
    why: str = strawberry.field(description="Why it is in the answer, as a sentence.")


@strawberry.type
class RecalledLesson:
    lesson: Lesson
    score: float
    semantic: float
    reliability: float
    recency: float
    diversity: float
    via: list[strawberry.ID]
    required_by: list[strawberry.ID] = strawberry.field(
        description="The lessons in this answer that require it; it may have come along for their sake."
    )
    conflicts_with: list[strawberry.ID] = strawberry.field(
        description="The lessons in this answer that it contradicts."
    )
    alternatives: list[strawberry.ID] = strawberry.field(
        description="Lessons that were left out, because this one is an alternative to them and better."
    )
    on_trial: bool = strawberry.field(description="It has the place that is kept for a lesson never used.")


@strawberry.type
class Recall:
    id: strawberry.ID = strawberry.field(description="The receipt's id.")
    memories: list[RecalledMemory] = strawberry.field(description="Best first.")
    paths: list[MemoryPath] = strawberry.field(
        description="Best first: the ways from what the vectors found to what the walk found."
    )
    lessons: list[RecalledLesson] = strawberry.field(
        description="Best first: found by meaning and words, or pointed at by the memories above."
    )
    context: str = strawberry.field(
        description="Ready for a prompt, within tokenBudget. Stored text stands on one line between quotes."
    )
    withheld: list[strawberry.ID] = strawberry.field(
        description="Lessons that were left out by chance, to see how work goes without them (CAIRN_WITHHOLD_SHARE)."
    )
    tokens: int = strawberry.field(description="Of the context, by the tokenizer of Llama 2.")
    degraded: str | None = strawberry.field(
        description="What the answer had to do without because Milvus or the embedder is away; null: nothing."
    )
    took_ms: float


@strawberry.type(description="strength: the product of the weights along the path.")
class SourceTrace:
    origin: Memory
    path: MemoryPath = strawberry.field(description="From a memory that the lesson was learnt from to the origin.")
    strength: float


@strawberry.type
class Provenance:
    lesson: Lesson
    traces: list[SourceTrace] = strawberry.field(
        description="Every way from the lesson back to a DataSource, UserRequest or Event, strongest first."
    )
    missing: list[strawberry.ID] = strawberry.field(description="Sources that have been deleted since.")
    complete: bool = strawberry.field(
        description="It has sources, none is missing, and each reaches a DataSource or a UserRequest."
    )
    truncated: bool = strawberry.field(
        description="There are more ways than an answer holds or a search looks at: 1,000 traces, "
        "10,000 memories, the 2,000 strongest edges of one memory."
    )


@strawberry.type
class IntegrityReport:
    nodes: int
    edges: int
    lessons: int
    node_vectors: int
    lesson_vectors: int
    dangling_pointers: int = strawberry.field(description="A reasoning pointer with no lesson.")
    dangling_links: int = strawberry.field(description="A link node with no memory.")
    one_sided_links: int = strawberry.field(description="A pointer without its link, or a link without its pointer.")
    missing_vectors: int
    orphan_vectors: int
    stale_vectors: int
    pending: int = strawberry.field(description="Writes acknowledged and not searchable yet.")
    ok: bool


@strawberry.type
class StoreStatus:
    name: str
    engine: str
    up: bool
    detail: str | None


@strawberry.type
class Status:
    version: str
    ready: bool
    stores: list[StoreStatus] = strawberry.field(
        description="Each store: its name, what answers there (name and version), whether it is up."
    )
    embedder: str
    dimensions: int
    pending: int


@strawberry.type(description="Finished work that was handed in, and what came of it.")
class Session:
    id: strawberry.ID
    state: SessionState
    attempts: int = strawberry.field(
        description="How often a worker took it; at most 5 times. A model or a store that was away does not count."
    )
    error: str | None = strawberry.field(description="Why the last attempt failed.")
    reason: str | None = strawberry.field(description="Why nothing was learnt, or what became of what was.")
    conv_id: str
    namespace: str
    outcome: Outcome
    tags: list[str]
    learned_by: str | None = strawberry.field(description="The distiller that read it, with its model.")
    tokens_used: int = strawberry.field(description="What a model used for it, in all attempts.")
    created_at: datetime
    updated_at: datetime
    due_at: datetime | None = strawberry.field(
        description="From when a worker may take it, or take it over; null: it has ended."
    )
    memory_ids: strawberry.Private[tuple[str, ...]]
    lesson_ids: strawberry.Private[tuple[int, ...]]

    @strawberry.field(description="The lessons that it brought, and those that it supports.")
    async def lessons(self, info: Asked) -> list[Lesson]:
        found = await info.context.loaders.lessons.load_many(list(self.lesson_ids))
        info.context.budget.spend(len(found))
        return [lesson for lesson in found if lesson is not None]

    @strawberry.field(description="The request, the steps, the answer.")
    async def memories(self, info: Asked) -> list[Memory]:
        found = await info.context.loaders.memories.load_many(list(self.memory_ids))
        info.context.budget.spend(len(found))
        return [memory for memory in found if memory is not None]


@strawberry.type
class SessionPage:
    nodes: list[Session]
    page_info: PageInfo = strawberry.field(resolver=page_info)


@strawberry.type
class DeleteSessionPayload:
    id: strawberry.ID
    deleted: bool
    memories_removed: int
    edges_removed: int
    lessons_removed: int
    kept_memories: list[strawberry.ID] = strawberry.field(
        description="An edge leads from them to another's memory, or a lesson recorded by hand was learnt from them."
    )
    kept_lessons: list[strawberry.ID] = strawberry.field(
        description="Other sessions stand behind them, or a person had a hand in them; merged ones too."
    )


@strawberry.type
class RememberPayload:
    memories: list[Memory]
    edges: list[Edge]
    lessons: list[Lesson]
    created: int
    updated: int
    unchanged: int


@strawberry.type
class DeletePayload:
    id: strawberry.ID
    deleted: bool
    edges_removed: int
    pointers_removed: int
