"""The edges along which recall walks. They are kept as they were read last, so that a walk need not wait for them; what
it has used is then read again, all of it in one round trip, and only if that is still the same does the walk count."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from bank.hits import Stamp
from bank.kept import Kept
from bank.model import RecallQuery
from bank.words import stems_of
from graph.session import Graph

EDGES_OF_A_MEMORY = 100
SENTENCE_CHARACTERS = 500  # of an edge's sentence, that are compared with the question
KEPT_EDGES = 100_000

# [edge id, neighbour id, weight, whether it leads away, the neighbour's revision, the sentence, how many of the question's
# tags the edge and the neighbour carry (None where it has none)], as `cypher/read/recall_edges` returns it.
LeanEdge = list[Any]


class MetUntrue(Exception):
    """A row of the index that was trusted is not true: everything is looked at."""


class EdgesOf(NamedTuple):
    """The edges of a memory in one of its revisions (None: it is gone), and which of their sentences have a word."""

    revision: int | None
    edges: list[LeanEdge]
    speaking: dict[str, list[int]]

    @classmethod
    def read(cls, revision: int | None, edges: list[LeanEdge]) -> "EdgesOf":
        speaking: dict[str, list[int]] = {}
        for place, edge in enumerate(edges):
            for word in set(stems_of(edge[5])):
                speaking.setdefault(word, []).append(place)
        return cls(revision, edges, speaking)


KnownEdges = Kept[tuple[Any, ...], EdgesOf]  # by the conditions of a question and a memory's id


def known_edges(most: int = KEPT_EDGES) -> KnownEdges:
    return Kept(most, lambda known: 1 + len(known.edges))


class Edges:
    """The edges that one recall uses: of a memory the heaviest, to neighbours that pass its filter. `stamps`: as what
    memories were found; `trusting`: nobody else has confirmed these yet."""

    def __init__(
        self, graph: Graph, known: KnownEdges, asked: RecallQuery, stamps: Mapping[str, Stamp], trusting: bool
    ) -> None:
        self._graph = graph
        self._known = known
        self._stamps = stamps
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
        # To whoever else asks so, they are the same. The values alone: models are compared slowly.
        self._asked = (asked.min_weight, asked.as_of, asked.tags, *dict(filter).values())
        self._at_hand: dict[str, EdgesOf] = {}
        self._assumed: dict[str, EdgesOf] = {}  # those of them that were not read for this recall

    def __getitem__(self, id: str) -> EdgesOf:
        return self._at_hand[id]

    async def fetch(self, ids: Iterable[str], assume: bool) -> None:
        """Has the edges of these memories at hand; where `assume` allows it, as they were read last."""
        missing = [id for id in dict.fromkeys(ids) if id not in self._at_hand]
        if assume:
            for id in missing:
                known = self._known.get((*self._asked, id))
                if known is not None and known.revision == self._stamps[id][0]:
                    self._at_hand[id] = self._assumed[id] = known
            missing = [id for id in missing if id not in self._at_hand]
        if missing:
            await self._read(missing)

    async def confirmed(self) -> bool:
        """Whether all that was assumed is so. One round trip; afterwards what is at hand was read for this recall."""
        assumed, self._assumed = self._assumed, {}
        if assumed:
            await self._read(list(assumed))
        return all(self._at_hand[id] is before for id, before in assumed.items())

    async def _read(self, ids: list[str]) -> None:
        """It also confirms the memories themselves. What is as it was known before stays that very object."""
        rows = await self._graph.read("recall_edges", ids=ids, **self._wanted)
        read = {row["memory"]: (row["revision"], row["edges"]) for row in rows}
        if self._trusting and any(id not in read or read[id][0] != self._stamps[id][0] for id in ids):
            raise MetUntrue  # also where a memory has no row: it was deleted
        for id in ids:
            revision, edges = read.get(id, (None, []))
            known = self._at_hand.get(id)
            if known is None or known.revision != revision or known.edges != edges:
                # What is deleted while it is read comes without its id or its weight.
                whole = [edge for edge in edges if None not in edge[:4]]
                known = self._at_hand[id] = EdgesOf.read(revision, whole)
                self._known.put((*self._asked, id), known)
