"""One batch a request and level: what the resolvers of one level ask for is fetched by one query."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from strawberry.dataloader import DataLoader

from bank.lesson_links import LessonLinks
from bank.lessons import Lessons
from bank.signals import Signals
from graph.errors import LimitExceeded
from graph.model import Direction, Memory, Page
from graph.store import Memories

RECORDS = 20_000  # what one request may read in all


class Budget:
    """How many records a request has been answered. Nested lists multiply; here they end."""

    def __init__(self) -> None:
        self.read = 0

    def spend(self, records: int) -> None:
        self.read += records
        if self.read > RECORDS:
            raise LimitExceeded(
                f"This request reads more than {RECORDS:,} records. Ask for smaller pages (`first`), or nest less deeply."
            )


class EdgesWanted(NamedTuple):
    memory: str
    direction: Direction
    min_weight: float
    tags: tuple[str, ...]
    first: int
    after: str | None


class SignalsWanted(NamedTuple):
    rb_id: int
    first: int
    after: str | None


class Loaders:
    """The values are the model's; the GraphQL types read their attributes, hence Any."""

    def __init__(self, memories: Memories, lessons: Lessons, signals: Signals, links: LessonLinks) -> None:
        self._memories = memories
        self._lessons = lessons
        self._signals = signals
        self._links = links
        self.memories: DataLoader[str, Any] = DataLoader(self._load_memories, max_batch_size=2_000)
        self.lessons: DataLoader[int, Any] = DataLoader(self._load_lessons, max_batch_size=2_000)
        self.lesson_links: DataLoader[int, Any] = DataLoader(self._load_links, max_batch_size=2_000)
        self.edges: DataLoader[EdgesWanted, Any] = DataLoader(self._load_edges, max_batch_size=2_000)
        self.signals: DataLoader[SignalsWanted, Any] = DataLoader(self._load_signals, max_batch_size=2_000)
        self.histories: DataLoader[int, Any] = DataLoader(self._load_histories, max_batch_size=100)

    def hold(self, memories: Iterable[Memory]) -> None:
        """These stand in the answer already: whoever asks for them by id, as an edge does for its ends, gets them as they
        stand there, though they may be deleted by now."""
        for memory in memories:
            self.memories.prime(memory.id, memory)

    async def _load_memories(self, ids: list[str]) -> list[Any]:
        found = await self._memories.by_id(ids)
        return [found.get(one) for one in ids]

    async def _load_lessons(self, ids: list[int]) -> list[Any]:
        found = await self._lessons.by_id(ids)
        return [found.get(one) for one in ids]

    async def _load_links(self, ids: list[int]) -> list[Any]:
        found = await self._links.of(ids)
        return [found.get(one, []) for one in ids]

    async def _load_edges(self, wanted: list[EdgesWanted]) -> list[Any]:
        """Usually all ask for the same kind of page, and one query serves them."""
        groups: dict[tuple[Any, ...], list[str]] = {}
        for one in wanted:
            groups.setdefault(one[1:], []).append(one.memory)
        pages: dict[EdgesWanted, Any] = {}
        for arguments, ids in groups.items():
            found = await self._memories.edges_of(ids, *arguments)
            pages |= {EdgesWanted(memory, *arguments): page for memory, page in found.items()}
        nothing: Page[Any] = Page(nodes=(), has_next_page=False, end_cursor=None)
        return [pages.get(one, nothing) for one in wanted]

    async def _load_signals(self, wanted: list[SignalsWanted]) -> list[Any]:
        groups: dict[tuple[Any, ...], list[int]] = {}
        for one in wanted:
            groups.setdefault(one[1:], []).append(one.rb_id)
        pages: dict[SignalsWanted, Any] = {}
        for arguments, ids in groups.items():
            found = await self._signals.pages(ids, *arguments)
            pages |= {SignalsWanted(rb_id, *arguments): page for rb_id, page in found.items()}
        nothing: Page[Any] = Page(nodes=(), has_next_page=False, end_cursor=None)
        return [pages.get(one, nothing) for one in wanted]

    async def _load_histories(self, ids: list[int]) -> list[Any]:
        found = await self._signals.histories(ids)
        return [found.get(one, ()) for one in ids]
