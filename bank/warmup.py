"""Makes the first calls as quick as those that follow. Neo4j plans a statement when it is run first, and Java compiles
what it has run often: a read that takes 1.5 ms after some thousands takes 8 after the first hundred, whatever it reads.

Writes are rehearsed, and what is asked of the graph is asked of what they wrote: in transactions that are rolled back.
Recalls ask for what is there already, and leave no receipt. So nothing is stored by any of it.
"""

import itertools
import logging
import time
from collections.abc import Sequence
from typing import Any

from bank.edges import EDGES_OF_A_MEMORY, SENTENCE_CHARACTERS
from bank.model import LessonDraft, RecallQuery, first_words
from bank.reading import ReadAhead
from bank.recall import Recall
from bank.remember import Remember, RememberCall, Remembered
from bank.search import POINTERS
from graph.errors import CairnError
from graph.ids import mint_edge_id, mint_memory_id
from graph.model import EdgeDraft, MemoryDraft, MemoryFilter, MemoryType
from graph.session import Graph, Transaction
from graph.store import Memories

log = logging.getLogger("cairn.warmup")

READ_BACK = 4  # times: reads are more frequent than writes, and cost less
RECORDS = 20  # memories and lessons of a rehearsed write: as many as a search confirms
NEWEST = 500  # memories whose words are read ahead; in one page, which may be of long texts
QUESTIONS = 40  # the next recall then took 0.1 s on 6,000 memories; without them 1.2 to 4 s


async def warm_up(
    graph: Graph, remember: Remember, recall: Recall, reading: ReadAhead, seconds: float, asking: bool = True
) -> None:
    """For a task that is cancelled at the end. `seconds` for rehearsals, of which there is one in any case; `asking`:
    questions, too; an embedder that is elsewhere may cost money."""
    try:
        await _rehearse(graph, remember)  # which takes some seconds by itself, for every statement is planned
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            await _rehearse(graph, remember)
        if asking:
            await (await recall.answered(RecallQuery(query="What is known?"))).context
            newest = await Memories(graph).page(MemoryFilter(), NEWEST, None)
            for memory in newest.nodes[:QUESTIONS]:
                await recall.answered(RecallQuery(query=first_words(memory.text)))
            reading.expect(reversed(newest.nodes))
    except CairnError as error:
        log.debug("not warmed up: %s", error)  # a store is away, which others tell
    except Exception:  # nobody waits for it
        log.exception("not warmed up")


async def _rehearse(graph: Graph, remember: Remember) -> None:
    """A write, reads of what it wrote, and the same reads as they are made outside a write, of what nobody has."""
    await remember.rehearse(_some_write(), _read_back)
    for name, parameters in _reads([mint_memory_id()], [mint_edge_id()], [0]):
        await graph.read(name, **parameters)


def _some_write() -> RememberCall:
    """Of every kind of record, so that every statement of a write is run."""
    ids = [mint_memory_id() for _ in range(RECORDS)]
    return RememberCall(
        memories=tuple(
            MemoryDraft(type=MemoryType.Event, id=id, conv_id="rehearsal", text="A rehearsal.") for id in ids
        ),
        edges=tuple(
            EdgeDraft(source=source, target=target, text="Both are rehearsed.", weight=0.5)
            for source, target in itertools.pairwise(ids)
        ),
        lessons=tuple(
            LessonDraft(key_lesson="Rehearse.", context_to_prefer="Before the first call.", link_nodes=(id,))
            for id in ids
        ),
    )


async def _read_back(tx: Transaction, written: Remembered) -> None:
    memories, edges = [one.id for one in written.memories], [one.id for one in written.edges]
    for name, parameters in READ_BACK * _reads(memories, edges, [one.rb_id for one in written.lessons]):
        await tx.run(name, **parameters)


def _reads(memories: Sequence[str], edges: Sequence[str], lessons: Sequence[int]) -> list[tuple[str, dict[str, Any]]]:
    """What calls that somebody waits for ask of the graph, about these records."""
    everything = MemoryFilter().parameters()
    walk = {"min_weight": 0.0, "as_of": None, "limit": EDGES_OF_A_MEMORY, "sentence": SENTENCE_CHARACTERS, **everything}
    return [
        ("memories_by_id", {"ids": memories}),
        ("lessons_by_id", {"ids": lessons}),
        ("memories_and_edges", {"ids": memories, "edge_ids": edges}),
        ("true_memories", {"ids": memories, "shown": memories, **everything}),
        ("standing_of_lessons", {"ids": lessons, "shown": lessons, "memories": [], "pointers": POINTERS}),
        ("recall_memories", {"wanted": [[id, None] for id in memories], "shared": [], **everything}),
        ("recall_edges", {"ids": memories, "shared": [], **walk}),
    ]
