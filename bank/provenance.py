"""Where a lesson comes from: every way from the memories it was learnt from back to an origin.

A DataSource, a UserRequest and an Event are origins. Edges are followed both ways, as everywhere; one of weight 0 leads
nowhere. A way visits no memory twice, and does not end at the first origin: what lies behind an event may be the table
that tells of it. A source that is an origin itself is a way of one step. `cypher/browser/traces.cypher` finds the same.
"""

import asyncio

from bank.lessons import Lessons
from bank.model import Provenance, SourceTrace
from bank.paths import told_paths
from graph.errors import NotFound
from graph.model import MemoryType
from graph.session import Graph
from graph.store import EDGES_OF_A_HUB, Memories
from graph.walk import LeanEdge, every_way, within_reach

ORIGINS = (MemoryType.DataSource, MemoryType.UserRequest, MemoryType.Event)
ROOTS = (MemoryType.DataSource, MemoryType.UserRequest)  # what each source of a lesson must reach to be complete
# What an answer holds at most, and from how many memories it is searched; an answer that met a bound says so.
TRACES = 1_000
MEMORIES = 10_000


async def provenance(graph: Graph, rb_id: int, max_hops: int) -> Provenance:
    memories = Memories(graph)
    lesson = (await Lessons(graph).by_id([rb_id])).get(rb_id)
    if lesson is None:
        raise NotFound.ids("lesson", "rbId", [str(rb_id)])
    sources = await memories.by_id(lesson.link_nodes)
    kinds = {id: memory.type for id, memory in sources.items()}
    edges, cut_off = await _surroundings(graph, kinds, max_hops)
    origins = {id for id, kind in kinds.items() if kind in ORIGINS}
    # In a thread: among many edges it takes its time, and others are answered meanwhile.
    ways, more = await asyncio.to_thread(every_way, edges, sources, origins, max_hops, TRACES)
    roots = {id for id, kind in kinds.items() if kind in ROOTS}
    rooted = await asyncio.to_thread(within_reach, edges, roots, max_hops)
    # Also those that were deleted while this was read, or by hand.
    missing = tuple(dict.fromkeys((*lesson.lost_sources, *(id for id in lesson.link_nodes if id not in sources))))
    return Provenance(
        lesson=lesson,
        traces=tuple(
            SourceTrace(origin=path.steps[-1].memory, path=path, strength=path.score)
            for path in await told_paths(memories, ways)
        ),
        missing=missing,
        complete=bool(sources) and not missing and rooted >= sources.keys(),
        truncated=cut_off or more,
    )


async def _surroundings(
    graph: Graph, kinds: dict[str, MemoryType], max_hops: int
) -> tuple[dict[str, list[LeanEdge]], bool]:
    """The edges within reach, one query a hop; `kinds` gains the types of the memories met. Also whether a bound was.

    Of more memories than are looked at, those come first that the strongest way so far leads to.
    """
    edges: dict[str, list[LeanEdge]] = {}
    strongest = dict.fromkeys(kinds, 1.0)
    front = set(kinds)
    cut_off = False
    for hop in range(1, max_hops + 1):
        room = MEMORIES - len(edges)
        asked = sorted(front, key=lambda id: (-strongest[id], id))[:room]
        cut_off |= len(front) > room
        if not asked:
            break
        rows = await graph.read(
            "trace_edges",
            ids=asked,
            origins=[kind.value for kind in ORIGINS],
            only_origins=hop == max_hops,  # where the last step does not end at an origin, it leads to no trace
            limit=EDGES_OF_A_HUB + 1,
        )
        front = set()
        for row in rows:
            cut_off |= len(row["edges"]) > EDGES_OF_A_HUB
            edges[row["memory"]] = [edge[:4] for edge in row["edges"][:EDGES_OF_A_HUB]]
            for _, id, weight, _, kind in row["edges"][:EDGES_OF_A_HUB]:
                if id not in kinds:
                    kinds[id] = MemoryType(kind)
                    front.add(id)
                strongest[id] = max(strongest.get(id, 0.0), strongest[row["memory"]] * weight)
    return edges, cut_off
