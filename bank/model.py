"""Frozen values of the bank: lessons, what is asked of them, and what a search finds."""

from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from bank.hits import Stamp
from graph.model import Edge, Memory, MemoryFilter, Value


class Outcome(StrEnum):
    SUCCESS = "SUCCESS"
    FAILURE = "FAILURE"


class Scope(StrEnum):
    PROJECT = "PROJECT"
    TEAM = "TEAM"
    ORG = "ORG"

    @property
    def width(self) -> int:
        return list(Scope).index(self)


class LessonStatus(StrEnum):
    ACTIVE = "ACTIVE"
    QUARANTINED = "QUARANTINED"
    RETIRED = "RETIRED"


class SignalKind(StrEnum):
    """What was said of a lesson: by feedback, by the outcome of work, by what became of it later."""

    HELPFUL = "HELPFUL"
    NOT_HELPFUL = "NOT_HELPFUL"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    STABLE = "STABLE"
    REVERTED = "REVERTED"
    SUPPORTED = "SUPPORTED"  # other work taught the same


LEARNED_BY_HAND = "hand"  # who learnt a lesson, where no distiller did


class LinkType(StrEnum):
    """How one lesson bears on another."""

    CAUSES = "CAUSES"
    REQUIRES = "REQUIRES"
    CONFLICTS = "CONFLICTS"
    ENHANCES = "ENHANCES"
    ALTERNATIVE = "ALTERNATIVE"

    @property
    def both_ways(self) -> bool:
        """Whether it says the same of both lessons, so that it is one link whichever way it is given."""
        return self in (LinkType.CONFLICTS, LinkType.ALTERNATIVE)


class UpliftBasis(StrEnum):
    """What a lesson's uplift rests on: recalls that withheld it by chance, or outcomes that did not name it."""

    WITHHELD = "WITHHELD"
    NAMED = "NAMED"


def team_of(namespace: str) -> str:
    """`team/project`; a name without a slash is a team of its own."""
    return namespace.split("/", 1)[0]


class Lesson(Value):
    """What was learnt, when it applies, and the memories it was learnt from (`lost_sources`: those deleted since)."""

    rb_id: int
    title: str
    key_lesson: str
    context_to_prefer: str
    tags: tuple[str, ...] = ()
    link_nodes: tuple[str, ...] = ()
    lost_sources: tuple[str, ...] = ()
    outcome: str = Outcome.SUCCESS
    namespace: str = "default"
    scope: str = Scope.PROJECT
    status: str = LessonStatus.ACTIVE
    confidence: float = 0.8
    usage_count: int = 0
    learned_by: str = LEARNED_BY_HAND
    version: int = 1
    revision: int = 0
    created_at: datetime
    updated_at: datetime
    last_used_at: datetime | None = None
    start_confidence: float = 0.8
    offered_count: int = 0
    worked: tuple[int, ...] = ()  # outcomes of the recalls that it was chosen for: see bank/uplift.py
    merged_into: int | None = None
    merged_from: tuple[int, ...] = ()


class Gist(NamedTuple):
    """What is compared of a lesson, in the order of `gists_of_lessons`. A sweep reads each lesson some twenty times,
    once for each it is near to: whole, that is most of its work."""

    rb_id: int
    revision: int
    status: str
    namespace: str
    scope: str
    outcome: str
    key_lesson: str
    context_to_prefer: str
    tags: list[str]
    link_nodes: list[str]


class Uplift(Value):
    """How often work succeeded with a lesson and without it; the difference lies between `low` and `high`."""

    with_lesson: float
    without_lesson: float
    difference: float
    low: float
    high: float
    calls_with: int
    calls_without: int
    basis: UpliftBasis


class Pruned(Value):
    """A lesson below the confidence that is asked for, and why it is."""

    lesson: Lesson
    reasons: tuple[str, ...]


class PruneReport(Value):
    dry_run: bool
    found: int
    retired: int
    lessons: tuple[Pruned, ...]  # the first of those found


class Promotion(Value):
    """A lesson that should be for more than it is, and the namespaces in which it proved itself."""

    lesson: Lesson
    scope: Scope
    namespaces: tuple[str, ...]


class Signal(Value):
    """One thing that was said of a lesson; it never changes. `source`: who said it, as far as the caller told;
    `namespace`: where it was used; `recall_id` and `fit`: the recall that offered it, and how well it fitted there;
    `work`: the piece of work that it came of, of which other lessons may have been told too."""

    id: str
    rb_id: int
    kind: SignalKind
    comment: str | None = None
    conv_id: str | None = None
    source: str | None = None
    namespace: str | None = None
    recall_id: str | None = None
    work: str | None = None
    fit: float | None = None
    created_time: datetime


class ConfidencePoint(Value):
    """A lesson's confidence from a moment on, and why."""

    time: datetime
    value: float
    why: str


class Standing(NamedTuple):
    """What ranks a lesson, in the order in which `standing_of_lessons` returns it. A search looks at hundreds of them: its
    times stay as they came, until somebody asks."""

    rb_id: int
    revision: int
    version: int
    status: str
    namespace: str
    scope: str
    outcome: str
    link_nodes: list[str]  # the first few
    created: str
    moved: float  # seconds since 1970: when it was used last, or else changed
    confidence: float
    usage_count: int
    offered_count: int
    linked: bool  # to other lessons
    hidden: bool  # until it is indexed
    whole: dict[str, Any] | None  # the lesson itself, where it was likely to be shown

    @property
    def stamp(self) -> Stamp:
        """What a row of the index must say of itself to be believed."""
        return self.revision, self.version

    @property
    def created_at(self) -> datetime:
        return datetime.fromisoformat(self.created)


class LessonLink(Value):
    """One lesson bears on another, and why it is thought so."""

    source: int
    target: int
    type: str
    strength: float
    evidence: str | None = None
    created_time: datetime

    def other(self, rb_id: int) -> int:
        return self.target if rb_id == self.source else self.source


class LessonDraft(Value):
    """A lesson as a writer gives it: no id means a new one, no title means the first words of the lesson."""

    rb_id: int | None = None
    title: str | None = None
    key_lesson: str
    context_to_prefer: str
    tags: tuple[str, ...] = ()
    link_nodes: tuple[str, ...] = ()
    outcome: Outcome = Outcome.SUCCESS
    namespace: str = "default"
    scope: Scope = Scope.PROJECT
    # Of a lesson that is new; one that is there keeps its own.
    status: LessonStatus = LessonStatus.ACTIVE
    start_confidence: float = 0.8
    learned_by: str = LEARNED_BY_HAND
    hidden_until_indexed: bool = False


class LessonFilter(Value):
    tags: tuple[str, ...] = ()
    linked_to: str | None = None
    outcome: Outcome | None = None
    namespace: str | None = None
    scope: Scope | None = None
    status: LessonStatus | None = None
    min_confidence: float = 0.0


class LessonQuery(Value):
    """What a search for lessons asks. `namespace` None: every namespace of the tenant, all alike."""

    query: str
    tags: tuple[str, ...] = ()
    namespace: str | None = None
    scope: Scope | None = None
    outcome: Outcome | None = None
    min_confidence: float = 0.0
    limit: int = 5
    as_of: datetime | None = None  # only what was recorded by then


class ToldStep(NamedTuple):
    memory: Memory
    edge: Edge | None
    forward: bool
    energy: float


class ToldPath(NamedTuple):
    """A path with the records that it runs over, and as prose."""

    score: float
    steps: tuple[ToldStep, ...]
    text: str


class SourceTrace(NamedTuple):
    """One way from a memory that a lesson was learnt from to an origin; its strength is the product of the weights."""

    origin: Memory
    path: ToldPath
    strength: float


class Provenance(NamedTuple):
    """Where a lesson comes from, strongest trace first. `missing`: sources deleted since. `complete`: it has sources,
    none is missing, and each reaches a DataSource or a UserRequest. `truncated`: there may be more traces than these."""

    lesson: Lesson
    traces: tuple[SourceTrace, ...]
    missing: tuple[str, ...]
    complete: bool
    truncated: bool


class FoundMemory(NamedTuple):
    """A memory that was found, and why: its similarity by meaning and by words (None: not found that way), the energy
    that came to it along edges, the best way there, and all of it as a sentence."""

    memory: Memory
    score: float
    vector_score: float | None = None
    bm25_score: float | None = None
    path_score: float | None = None
    via: ToldPath | None = None
    why: str = ""


class FoundLesson(NamedTuple):
    """A lesson that a search found, with the four factors that its score is made of, and what its links say of the
    others in the answer. `alternatives`: those that were left out in its favour."""

    lesson: Lesson
    score: float
    semantic: float
    reliability: float
    recency: float
    diversity: float
    via: tuple[str, ...] = ()
    required_by: tuple[int, ...] = ()
    conflicts_with: tuple[int, ...] = ()
    alternatives: tuple[int, ...] = ()
    on_trial: bool = False  # it has the place that is kept for a lesson never used


class RecallQuery(Value):
    """What recall is asked. `tags` raise what carries them and exclude nothing; `filter` holds for all that is walked;
    `explained`: with the paths and the reasons, which take a tenth of its work and change nothing in what is found."""

    query: str
    tags: tuple[str, ...] = ()
    filter: MemoryFilter = MemoryFilter()
    namespace: str | None = None
    hops: int = 3
    min_weight: float = 0.0
    limit: int = 10
    path_limit: int = 10
    lesson_limit: int = 5
    outcome: Outcome | None = None
    min_confidence: float = 0.0
    token_budget: int = 2_000
    as_of: datetime | None = None
    explained: bool = True

    def known_then(self) -> MemoryFilter:
        """The filter, and nothing that came later than `as_of`."""
        if self.as_of is None:
            return self.filter
        until = self.as_of if self.filter.until is None else min(self.filter.until, self.as_of)
        return self.filter.model_copy(update={"until": until})

    def lessons(self) -> LessonQuery:
        return LessonQuery(
            query=self.query,
            namespace=self.namespace,
            outcome=self.outcome,
            min_confidence=self.min_confidence,
            limit=self.lesson_limit,
            as_of=self.as_of,
        )


def first_words(text: str, most: int = 60) -> str:
    """A short name for a text: its first words."""
    line = " ".join(text.split(maxsplit=most)[:most])  # so many words are longer than that: the rest is not read
    if len(line) <= most:
        return line
    return line[: most + 1].rsplit(" ", 1)[0].rstrip(",;:.")[:most] + " …"
