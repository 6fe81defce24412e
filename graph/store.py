"""The memories and edges of a tenant: what is written inside a transaction, and what is read."""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from graph.errors import NotFound, Problem
from graph.ids import mint_edge_id, mint_memory_id
from graph.model import (
    Direction,
    Edge,
    EdgeBand,
    EdgeDraft,
    Memory,
    MemoryDraft,
    MemoryFilter,
    Page,
    Path,
    embedding_id,
    memory_from_row,
    native,
)
from graph.paging import decode_cursor, encode_cursor
from graph.session import Graph, Row, StartAgain, Transaction
from graph.walk import best_paths

# A conversation is read whole; one with more memories than this is read by pages of `memories`.
CONVERSATION_MEMORIES = 10_000
# A memory with more edges than this takes part in a path over its strongest ones.
EDGES_OF_A_HUB = 2_000
FEW = 1_000  # memories that are rather sorted than looked for by their time
_END_OF_TIME = datetime.max.replace(tzinfo=UTC)


class MintedTwice(Exception):
    """A minted id exists already: the write starts again with others."""


@dataclass(frozen=True)
class Written:
    """What a write did to one record. `fresh`: the vector store has no row of it yet. `retold`: it was there, and says
    something else now."""

    created: bool
    changed: bool
    fresh: bool = False
    retold: bool = False


# ---------------------------------------------------------------- writing, inside a transaction


async def lock_memories(
    tx: Transaction, drafts: Sequence[MemoryDraft], others: Iterable[str], now: datetime, revision: int
) -> tuple[dict[str, Row], dict[str, Row]]:
    """Locks the memories of a write: those it writes (made if they are new) and those it only names.
    In the order of their ids, so that two writes do not wait for each other in a circle."""
    rows = memory_rows(tx.tenant, drafts)
    written = {}
    if rows:
        found = await tx.run("lock_memories", rows=rows, now=now, revision=revision)
        written = {row["id"]: row for row in found}
    if len(written) < len(rows) or None in written:
        raise StartAgain
    named = sorted(set(others) - {row["id"] for row in rows})
    known = {row["id"]: row for row in await tx.run("lock_known_memories", ids=named)} if named else {}
    return written, known


def memory_rows(tenant: str, drafts: Sequence[MemoryDraft]) -> list[dict[str, Any]]:
    """What `lock_memories` makes of the drafts that are new, in the order of their ids."""
    own: dict[str, dict[str, Any]] = {}
    for draft in drafts:
        if draft.id and draft.id not in own:
            own[draft.id] = {"id": draft.id, "type": draft.type.value, "properties": _made(tenant, draft)}
    return [own[id] for id in sorted(own)]


async def make_memory(graph: Graph, draft: MemoryDraft, now: datetime, revision: int) -> tuple[Memory, bool] | None:
    """Stores one memory in one round trip, and says whether it is fresh. None: nothing is stored, for it is there already,
    or was deleted while its lock was waited for."""
    try:
        rows = await graph.repeat("lock_memories", rows=memory_rows(graph.tenant, [draft]), now=now, revision=revision)
    except StartAgain:
        return None
    if not rows or rows[0]["id"] is None or rows[0].get("type") is not None:
        return None
    properties = {**_new(graph.tenant, draft, now, revision), "id": draft.id}
    memory = memory_from_row({"type": draft.type.value, "properties": properties})
    return memory, not rows[0]["removal"]


def _new(tenant: str, draft: MemoryDraft, now: datetime, revision: int) -> dict[str, Any]:
    """All the properties of a new memory, as `lock_memories` sets them."""
    return {"ingestion_time": now, "update_time": now, "revision": revision, **_made(tenant, draft)}


def _made(tenant: str, draft: MemoryDraft) -> dict[str, Any]:
    """The properties of a new memory, but for what all of its write share."""
    assert draft.id is not None
    given = {} if draft.ingestion_time is None else {"ingestion_time": draft.ingestion_time}
    return {
        **_told(draft),
        **given,
        "reasoning_pointer_ids": [],
        "embedding_id": embedding_id(tenant, draft.id),
        "version": 1,
    }


def _told(draft: MemoryDraft) -> dict[str, Any]:
    own = {key: list(value) if isinstance(value, tuple) else value for key, value in draft.own.items()}
    return {"text": draft.text, "tags": list(draft.tags), "conv_id": draft.conv_id, **own}


async def put_memories(
    tx: Transaction, drafts: Sequence[MemoryDraft], locked: Mapping[str, Row], now: datetime, revision: int
) -> tuple[dict[str, Memory], dict[str, Written], list[Problem]]:
    """Writes what has changed. The drafts carry ids; the rows are those of `lock_memories`, which made what is new."""
    memories: dict[str, Memory] = {}
    written: dict[str, Written] = {}
    problems: list[Problem] = []
    rows = []
    for place, draft in enumerate(drafts):
        assert draft.id is not None
        if draft.id in memories:
            continue
        row = locked[draft.id]
        created = row.get("type") is None
        if created:
            properties = changes = _new(tx.tenant, draft, now, revision)
        elif row["type"] != draft.type.value:
            problems.append(
                Problem(f"memories[{place}].id", f"{draft.id} is a {row['type']} already and cannot be a {draft.type}")
            )
            continue
        else:
            wanted = _told(draft)
            if draft.ingestion_time is not None:
                wanted["ingestion_time"] = draft.ingestion_time
            changes = changed(row["properties"], wanted)
            if changes:
                changes |= {"revision": revision, "to_index": True}
                changes |= {"update_time": now, "version": row["properties"]["version"] + 1}
                rows.append({"id": draft.id, "type": draft.type.value, "changes": changes})
            properties = row["properties"] | changes
        memories[draft.id] = memory_from_row({"type": draft.type.value, "properties": properties | {"id": draft.id}})
        retold = not created and not changes.keys().isdisjoint(("text", "tags"))
        written[draft.id] = Written(created, bool(changes), fresh=created and not row["removal"], retold=retold)
    if rows and not problems:
        await tx.run("put_memories", rows=rows)
    return memories, written, problems


async def put_edges(
    tx: Transaction, drafts: Sequence[EdgeDraft], minted: set[str], now: datetime
) -> tuple[dict[str, Edge], dict[str, Written], list[Problem]]:
    """Writes what has changed. The drafts carry ids; both ends are locked and known to exist."""
    given = sorted({draft.id for draft in drafts if draft.id and draft.id not in minted})
    locked = {row["properties"]["id"]: row for row in await tx.run("lock_edges", ids=given)} if given else {}
    edges: dict[str, Edge] = {}
    written: dict[str, Written] = {}
    problems: list[Problem] = []
    new, changes = [], []
    for place, draft in enumerate(drafts):
        assert draft.id is not None
        if draft.id in edges:
            continue
        row = locked.get(draft.id)
        wanted = {"text": draft.text, "weight": draft.weight, "tags": list(draft.tags)}
        if row is None:
            properties = {**wanted, "id": draft.id, "label": EdgeBand.of(draft.weight).value.lower()}
            if draft.created_time is not None:
                properties["created_time"] = draft.created_time
            new.append({"source": draft.source, "target": draft.target, "properties": properties})
            properties = {"created_time": now, **properties}
        else:
            if (row["source"], row["target"]) != (draft.source, draft.target):
                problems.append(
                    Problem(
                        f"edges[{place}].id",
                        f"{draft.id} joins {row['source']} to {row['target']} already; "
                        "delete it first, or give this edge another id",
                    )
                )
                continue
            if draft.created_time is not None:
                wanted["created_time"] = draft.created_time
            difference = edge_changes(row["properties"], wanted)
            if difference:
                changes.append({"id": draft.id, "changes": difference})
            properties = {**row["properties"], **difference}
        edges[draft.id] = Edge.from_row({"source": draft.source, "target": draft.target, **properties})
        written[draft.id] = Written(row is None, row is None or bool(difference))
    if not problems:
        if new:
            await tx.run("put_edges", rows=new, now=now)
        if changes:
            await tx.run("change_edges", rows=changes)
    return edges, written, problems


def unknown_ends(drafts: Sequence[EdgeDraft], known: Collection[str]) -> list[Problem]:
    return [
        Problem(f"edges[{place}].{end}", f"no memory has the id {name}")
        for place, draft in enumerate(drafts)
        for end, name in (("source", draft.source), ("target", draft.target))
        if name not in known
    ]


def edge_changes(old: Mapping[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """What differs; the caption follows the weight as long as nobody gave it another name."""
    changes = changed(old, wanted)
    if "weight" in changes and old.get("label") == EdgeBand.of(old["weight"]).value.lower():
        changes["label"] = EdgeBand.of(changes["weight"]).value.lower()
    if changes and old.get("machine_made"):
        changes["machine_made"] = False  # by now somebody has written it
    return changes


def changed(old: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """The part of `wanted` that is not so already; None removes a property."""
    return {key: value for key, value in wanted.items() if native(key, old.get(key)) != native(key, value)}


def with_ids(
    memories: Sequence[MemoryDraft], edges: Sequence[EdgeDraft]
) -> tuple[list[MemoryDraft], list[EdgeDraft], set[str]]:
    """The drafts with an id each, and which ids were minted."""
    minted: set[str] = set()

    def mint(make: Any) -> str:
        made: str = make()
        minted.add(made)
        return made

    return (
        [d if d.id else d.model_copy(update={"id": mint(mint_memory_id)}) for d in memories],
        [d if d.id else d.model_copy(update={"id": mint(mint_edge_id)}) for d in edges],
        minted,
    )


# ---------------------------------------------------------------- reading


class Memories:
    """Reads a tenant's memories and edges; one query for many."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def by_id(self, ids: Iterable[str]) -> dict[str, Memory]:
        wanted = list(dict.fromkeys(ids))
        rows = await self._graph.read("memories_by_id", ids=wanted) if wanted else []
        return {row["properties"]["id"]: memory_from_row(row) for row in rows}

    async def page(self, filter: MemoryFilter, first: int, after: str | None) -> Page[Memory]:
        """Newest first. An item written later than the first page never disturbs the pages after it."""
        time, last_id = decode_cursor(after, datetime, str) if after else (_END_OF_TIME, "")
        if filter.until is not None and filter.until < time:
            time, last_id = filter.until, "\U0010ffff"
        rows = await self._page_rows(filter, before_time=time, before_id=last_id, limit=first + 1)
        nodes = tuple(memory_from_row(row) for row in rows[:first])
        cursor = encode_cursor(nodes[-1].ingestion_time, nodes[-1].id) if nodes else None
        return Page[Memory](nodes=nodes, has_next_page=len(rows) > first, end_cursor=cursor)

    async def _page_rows(self, filter: MemoryFilter, **page: Any) -> list[Row]:
        """By the index that leaves the fewest to look at. Going through all by their time is quick where many pass, and the
        slower the larger the store where few do."""
        asked = {**filter.parameters(), **page}
        if filter.conv_id is not None:
            return await self._graph.read("conversation_page", **asked)
        ways: list[dict[str, Any]] = [{"tagged": [with_tags(filter.tags)], "typed": []}] if filter.tags else []
        ways += [{"tagged": [], "typed": asked["types"]}] if filter.types is not None else []
        for way in ways:
            rows = await self._graph.read("memories_page_of_few", **way, few=FEW, **asked)
            if rows != [{"many": True}]:
                return rows
        return await self._graph.read("memories_page", **asked)

    async def conversation(self, conv_id: str) -> tuple[list[Memory], list[Edge]]:
        """A conversation's memories, oldest first, and the edges among them."""
        rows = await self._graph.read("conversation", conv_id=conv_id, limit=CONVERSATION_MEMORIES)
        memories = [memory_from_row(row) for row in rows]
        edges = await self._graph.read("edges_among", ids=[memory.id for memory in memories]) if memories else []
        return memories, [edge_from_row(row) for row in edges]

    async def edges_by_id(self, ids: Iterable[str]) -> dict[str, Edge]:
        wanted = list(dict.fromkeys(ids))
        rows = await self._graph.read("edges_by_id", ids=wanted) if wanted else []
        return {row["properties"]["id"]: edge_from_row(row) for row in rows}

    async def by_ids(self, ids: Iterable[str], edges: Iterable[str]) -> tuple[dict[str, Memory], dict[str, Edge]]:
        """Memories and edges in one round trip."""
        wanted, wanted_edges = list(dict.fromkeys(ids)), list(dict.fromkeys(edges))
        if not wanted and not wanted_edges:
            return {}, {}
        rows = await self._graph.read("memories_and_edges", ids=wanted, edge_ids=wanted_edges)
        return (
            {row["properties"]["id"]: memory_from_row(row) for row in rows if "type" in row},
            {row["properties"]["id"]: edge_from_row(row) for row in rows if "type" not in row},
        )

    async def edges_of(
        self,
        ids: Sequence[str],
        direction: Direction,
        min_weight: float,
        tags: Sequence[str],
        first: int,
        after: str | None,
    ) -> dict[str, Page[Edge]]:
        """A page of edges for each of several memories, strongest first, in one query."""
        weight, last_id = decode_cursor(after, float, str) if after else (None, None)
        rows = await self._graph.read(
            "edges_of_memories",
            ids=list(ids),
            outgoing=direction is not Direction.IN,
            incoming=direction is not Direction.OUT,
            min_weight=min_weight,
            tags=list(tags),
            before_weight=weight,
            before_id=last_id,
            limit=first + 1,
        )
        pages = {}
        for row in rows:
            nodes = tuple(edge_from_row(edge) for edge in row["edges"][:first])
            cursor = encode_cursor(nodes[-1].weight, nodes[-1].id) if nodes else None
            pages[row["memory"]] = Page[Edge](nodes=nodes, has_next_page=len(row["edges"]) > first, end_cursor=cursor)
        return pages

    async def paths(self, source: str, target: str, max_hops: int, limit: int, min_weight: float) -> list[Path]:
        """The best ways from one memory to another: largest product of weights first, no memory twice."""
        ends = await self.by_id([source, target])
        missing = [name for name in (source, target) if name not in ends]
        if missing:
            raise NotFound.ids("memory", "source" if missing[0] == source else "target", missing)
        if source == target:
            return []
        edges: dict[str, list[list[Any]]] = {}
        # From both ends towards the middle, a query a hop: half the hops reach far fewer memories than all of them.
        fronts = {source: {source}, target: {target}}
        for hop in range(max_hops):
            side = source if hop % 2 == 0 else target
            wanted = [name for name in fronts[side] if name not in edges]
            if wanted:
                rows = await self._graph.read(
                    "neighbours", ids=sorted(wanted), min_weight=min_weight, limit=EDGES_OF_A_HUB
                )
                edges |= {row["memory"]: row["edges"] for row in rows}
            fronts[side] = {edge[1] for name in fronts[side] for edge in edges.get(name, [])}
        return await asyncio.to_thread(best_paths, edges, source, target, max_hops, limit)


def with_tags(tags: Iterable[str]) -> str:
    """A query to Neo4j's full-text index of tags: what carries all of these. Between quotes nothing of them is syntax."""
    escaped = (tag.replace("\\", "\\\\").replace('"', '\\"') for tag in tags)
    return " ".join(f'+"{tag}"' for tag in escaped)


def edge_from_row(row: Row) -> Edge:
    return Edge.from_row({"source": row["source"], "target": row["target"], **row["properties"]})
