"""How much of the graph a call looks at: Neo4j's own count of it (db hits), which no neighbour on the machine disturbs."""

from collections.abc import Awaitable, Callable
from typing import Any

from neo4j import READ_ACCESS, AsyncDriver

from bank.lessons import Lessons
from bank.model import LessonFilter
from bank.search import LESSON_CANDIDATES, POINTERS
from graph.model import Direction, MemoryFilter, MemoryType
from graph.queries import statements
from graph.session import Graph, Row, _data
from graph.store import Memories


class Counting(Graph):
    """Reads as the service does, and counts."""

    hits = 0

    async def read(self, name: str, /, **parameters: Any) -> list[Row]:
        async with self._driver.session(default_access_mode=READ_ACCESS) as session:
            result = await session.run("PROFILE " + statements()[name].text, {"tenant": self.tenant, **parameters})
            rows = await _data(result)
            self.hits += _hits((await result.consume()).profile)
        return rows


def _hits(plan: Any) -> int:
    """What a procedure looks at is not counted."""
    return int(plan.get("dbHits", 0)) + sum(map(_hits, plan.get("children", ())))


async def looked_at(driver: AsyncDriver, size: int) -> dict[str, int]:
    """Of each call that an index should serve whatever the size of the store, in a store of `size` memories as
    `tests/bench/stores.py` makes them."""
    graph = Counting(driver, "default")
    memories, lessons = Memories(graph), Lessons(graph)
    some = [f"N{n}" for n in range(0, size, size // 20)]
    learnt = [n + 1 for n in range(0, size, 10)][:LESSON_CANDIDATES]
    calls: dict[str, Callable[[], Awaitable[Any]]] = {
        "memory by id": lambda: memories.by_id(some[:1]),
        "a page of 20": lambda: memories.page(MemoryFilter(), 20, None),
        "the edges of 20 memories": lambda: memories.edges_of(some, Direction.BOTH, 0.0, (), 5, None),
        "a page of a tag that nobody has": lambda: memories.page(MemoryFilter(tags=("nobody",)), 20, None),
        "a page of a type that nobody is": lambda: memories.page(
            MemoryFilter(types=(MemoryType.UserPreference,)), 20, None
        ),
        "a page of a conversation": lambda: memories.page(MemoryFilter(conv_id="bench"), 20, None),
        "a page of lessons": lambda: lessons.page(LessonFilter(), 20, None),
        "a page of lessons of an empty namespace": lambda: lessons.page(LessonFilter(namespace="nobody/x"), 20, None),
        "the edges of 8 seeds": lambda: graph.read(
            "recall_edges",
            ids=some[:8],
            min_weight=0.0,
            as_of=None,
            shared=[],
            limit=100,
            sentence=0,
            **MemoryFilter().parameters(),
        ),
        "what ranks 50 lessons": lambda: graph.read(
            "standing_of_lessons", ids=learnt, shown=learnt[:15], memories=[], pointers=POINTERS
        ),
    }
    found = {}
    for name, call in calls.items():
        graph.hits = 0
        await call()
        found[name] = graph.hits
    return found
