"""The edges along which recall walks. They are kept as they were read last, so that a walk need not wait for them; what
it has used is then read again, all of it in one round trip, and only if that is still the same does the walk count."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any

from bank.model import RecallQuery
from graph.session import Graph

EDGES_OF_A_MEMORY = 100
SENTENCE_CHARACTERS = 500  # of an edge's sentence, that are compared with the question
KEPT_EDGES = 100_000  # some 50 MB

# [edge id, neighbour id, weight, whether it leads away, the neighbour's revision, tags of the question on the edge, and on
# the neighbour, the sentence], as `cypher/read/recall_edges` returns it.
LeanEdge = list[Any]
Read = tuple[int | None, list[LeanEdge]]  # a memory's revision and its edges


class MetUntrue(Exception):
    """A row of the index that was trusted is not true: everything is looked at."""


class KnownEdges:
    """Of the memories asked for last: their revision and their edges, as they were read."""

    def __init__(self, most: int = KEPT_EDGES) -> None:
        self._most = most
        self._size = 0
        self._kept: OrderedDict[Any, Read] = OrderedDict()

    def get(self, key: Any) -> Read | None:
        if (kept := self._kept.get(key)) is not None:
            self._kept.move_to_end(key)
        return kept

    def put(self, key: Any, read: Read) -> None:
        if (old := self._kept.pop(key, None)) is not None:
            self._size -= 1 + len(old[1])
        self._kept[key] = read
        self._size += 1 + len(read[1])
        while self._size > self._most and len(self._kept) > 1:
            _, (_, gone) = self._kept.popitem(last=False)
            self._size -= 1 + len(gone)


class Edges:
    """The edges that one recall uses: of a memory the heaviest, to neighbours that pass its filter. `revisions`: in which
    memories were found; `trusting`: nobody else has confirmed these yet."""

    def __init__(
        self, graph: Graph, known: KnownEdges, asked: RecallQuery, revisions: Mapping[str, int], trusting: bool
    ) -> None:
        self._graph = graph
        self._known = known
        self._revisions = revisions
        self._trusting = trusting
        filter = asked.known_then()
        self._wanted = {
            "min_weight": asked.min_weight,
            "as_of": asked.as_of,
            "shared": list(asked.tags),
            "limit": EDGES_OF_A_MEMORY,
            "sentence": SENTENCE_CHARACTERS,
            **filter.parameters(),
        }
        self._asked = (asked.min_weight, asked.as_of, asked.tags, filter)  # to whom else asks so, they are the same
        self._at_hand: dict[str, Read] = {}
        self._assumed: dict[str, Read] = {}  # those of them that were not read for this recall

    def __getitem__(self, id: str) -> list[LeanEdge]:
        return self._at_hand[id][1]

    async def fetch(self, ids: Iterable[str], assume: bool) -> None:
        """Has the edges of these memories at hand; where `assume` allows it, as they were read last."""
        missing = [id for id in dict.fromkeys(ids) if id not in self._at_hand]
        if assume:
            for id in missing:
                known = self._known.get((self._asked, id))
                if known is not None and known[0] == self._revisions[id]:
                    self._at_hand[id] = self._assumed[id] = known
            missing = [id for id in missing if id not in self._at_hand]
        if missing:
            await self._read(missing)

    async def confirmed(self) -> bool:
        """Whether all that was assumed is so. One round trip; afterwards what is at hand was read for this recall."""
        assumed, self._assumed = self._assumed, {}
        if assumed:
            await self._read(list(assumed))
        return all(self._at_hand[id] == before for id, before in assumed.items())

    async def _read(self, ids: list[str]) -> None:
        """It also confirms the memories themselves."""
        rows = await self._graph.read("recall_edges", ids=ids, **self._wanted)
        # What is deleted while it is read comes without its id or its weight.
        read: dict[str, Read] = {
            row["memory"]: (row["revision"], [edge for edge in row["edges"] if None not in edge[:4]]) for row in rows
        }
        if self._trusting and any(id not in read or read[id][0] != self._revisions[id] for id in ids):
            raise MetUntrue  # also where a memory has no row: it was deleted
        for id in ids:
            self._at_hand[id] = read.get(id, (None, []))
            self._known.put((self._asked, id), self._at_hand[id])
