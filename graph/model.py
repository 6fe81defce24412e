"""Frozen values of the graph: the six kinds of memory, the edges between them, and what is asked of them."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from enum import StrEnum
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

from pydantic import BaseModel, ConfigDict

T = TypeVar("T")

DEFAULT_TENANT = "default"


class MemoryType(StrEnum):
    UserRequest = "UserRequest"
    UserPreference = "UserPreference"
    AgentAnswer = "AgentAnswer"
    AgentAction = "AgentAction"
    Event = "Event"
    DataSource = "DataSource"


class Direction(StrEnum):
    OUT = "OUT"
    IN = "IN"
    BOTH = "BOTH"


class EdgeBand(StrEnum):
    CORE = "CORE"
    BRIDGE = "BRIDGE"
    TOPICAL = "TOPICAL"

    @classmethod
    def of(cls, weight: float) -> "EdgeBand":
        if weight >= 0.8:
            return cls.CORE
        return cls.BRIDGE if weight >= 0.5 else cls.TOPICAL


class Value(BaseModel):
    """A value: it never changes, and it is equal to another with the same content."""

    model_config = ConfigDict(frozen=True)

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """From a store's row. What a store returns was validated when it was written."""
        return cls.model_construct(**{key: native(key, value) for key, value in row.items()})


# The statements return moments as text, which Python reads a hundred times faster than the driver reads a DateTime.
MOMENTS = frozenset(
    {
        *("ingestion_time", "update_time", "created_time", "created_at", "updated_at", "last_used_at"),
        *("started_at", "heard_at", "finished_at", "due_at"),
    }
)


def native(key: str, value: Any) -> Any:
    """A stored value as Python's own: moments from text, the driver's days as dates, lists as tuples."""
    if isinstance(value, str):
        return datetime.fromisoformat(value).astimezone(UTC) if key in MOMENTS else value
    if isinstance(value, list):
        return tuple(value)
    to_native = getattr(value, "to_native", None)
    return value if to_native is None else to_native()


class Memory(Value):
    """One thing that happened. `version` counts its contents; `revision` names one content for ever, also
    across a deletion and a new start. An index row must carry both to be believed."""

    type: ClassVar[MemoryType]

    id: str
    conv_id: str
    text: str
    tags: tuple[str, ...] = ()
    ingestion_time: datetime
    update_time: datetime
    reasoning_pointer_ids: tuple[int, ...] = ()
    embedding_id: str
    version: int = 1
    revision: int = 0


class UserRequest(Memory):
    type = MemoryType.UserRequest
    user_role: str | None = None
    user_id: str | None = None


class UserPreference(Memory):
    type = MemoryType.UserPreference
    preference_type: str | None = None


class AgentAnswer(Memory):
    type = MemoryType.AgentAnswer
    analysis_types: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()


class AgentAction(Memory):
    type = MemoryType.AgentAction
    status: str | None = None
    parameter_field: str | None = None
    result: str | None = None


class Event(Memory):
    type = MemoryType.Event
    source_type: str | None = None
    start_date: date | None = None
    end_date: date | None = None


class DataSource(Memory):
    type = MemoryType.DataSource
    source_type: str | None = None
    doc_pointer: str | None = None
    relevant_parts: str | None = None


MEMORY_CLASSES: dict[MemoryType, type[Memory]] = {
    cls.type: cls for cls in (UserRequest, UserPreference, AgentAnswer, AgentAction, Event, DataSource)
}


def own_fields(kind: MemoryType) -> frozenset[str]:
    """The fields that this type has and a memory in general has not."""
    return frozenset(MEMORY_CLASSES[kind].model_fields) - frozenset(Memory.model_fields)


def memory_from_row(row: Mapping[str, Any]) -> Memory:
    """From `{type, properties}`, as every statement that returns a memory returns it."""
    return MEMORY_CLASSES[MemoryType(row["type"])].from_row(row["properties"])


def embedding_id(tenant: str, memory_id: str) -> str:
    """The memory's row in the vector store, where the tenants share one collection. Milvus Lite puts keys into SQL as
    they are, so what would end a literal there is spelt as in a URL; so is a slash, which ends the tenant's name."""
    spelt = memory_id.replace("%", "%25").replace("'", "%27").replace("/", "%2F")
    return f"emb_{spelt}" if tenant == DEFAULT_TENANT else f"emb_{tenant}/{spelt}"


def memory_of(tenant: str, row: str) -> str | None:
    """The memory whose row of the vector store this is; None: of no memory of this tenant."""
    start = "emb_" if tenant == DEFAULT_TENANT else f"emb_{tenant}/"
    if not row.startswith(start):
        return None
    spelt = row[len(start) :]
    if "%" not in spelt and "'" not in spelt and "/" not in spelt:
        return spelt
    memory_id = spelt.replace("%2F", "/").replace("%27", "'").replace("%25", "%")
    return memory_id if embedding_id(tenant, memory_id) == row else None


class Edge(Value):
    """Two memories and the sentence that says why they belong together. `label` is a caption for drawings;
    `machine_made`: nobody wrote it, Cairn found that the two share something rare."""

    id: str
    source: str
    target: str
    text: str
    weight: float
    tags: tuple[str, ...] = ()
    created_time: datetime
    label: str = ""
    machine_made: bool = False

    @property
    def band(self) -> EdgeBand:
        return EdgeBand.of(self.weight)


class MemoryDraft(Value):
    """A memory as a writer gives it: no id means a new one, no time means now. `own`: the fields of its type."""

    type: MemoryType
    id: str | None = None
    text: str
    tags: tuple[str, ...] = ()
    conv_id: str
    ingestion_time: datetime | None = None
    own: dict[str, Any] = {}


class EdgeDraft(Value):
    id: str | None = None
    source: str
    target: str
    text: str
    weight: float
    tags: tuple[str, ...] = ()
    created_time: datetime | None = None


class DateRange(Value):
    start: date
    end: date


class MemoryFilter(Value):
    """Every condition given must hold; `tags`: it carries all of them."""

    types: tuple[MemoryType, ...] | None = None
    conv_id: str | None = None
    tags: tuple[str, ...] = ()
    text_contains: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    overlaps: DateRange | None = None

    def parameters(self) -> dict[str, Any]:
        """As the statements that filter memories take it."""
        return {
            "types": None if self.types is None else [kind.value for kind in self.types],
            "conv_id": self.conv_id,
            "tags": list(self.tags),
            "text_contains": None if self.text_contains is None else self.text_contains.lower(),
            "since": self.since,
            "until": self.until,
            "overlap_start": None if self.overlaps is None else self.overlaps.start,
            "overlap_end": None if self.overlaps is None else self.overlaps.end,
        }


class Step(NamedTuple):
    """One step of a path: where it arrived, over which edge (none for the first), along it or against it."""

    memory: str
    edge: str | None
    forward: bool
    energy: float


class Path(NamedTuple):
    score: float
    steps: tuple[Step, ...]


class Page(Value, Generic[T]):
    """One page of a listing, and where the next one starts."""

    nodes: tuple[T, ...]
    has_next_page: bool
    end_cursor: str | None
