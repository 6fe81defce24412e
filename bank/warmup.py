"""Makes the first calls as quick as those that follow. Neo4j plans a statement when it is run first, and Java compiles
what it has run often: without this the first write took two seconds, and the first recall on a large store four.

Writes are rehearsed: run in transactions that are rolled back. Recalls ask for what is there already, and leave no
receipt. So nothing is stored by any of it.
"""

import logging

from bank.bank import Bank, RememberCall
from bank.model import LessonDraft, RecallQuery, first_words
from bank.recall import Recall
from graph.errors import CairnError
from graph.ids import mint_memory_id
from graph.model import EdgeDraft, MemoryDraft, MemoryFilter, MemoryType

log = logging.getLogger("cairn.warmup")

WRITES = 5
QUESTIONS = 40  # the next recall then took 0.1 s on 6,000 memories; without them 1.2 to 4 s


async def warm_up(bank: Bank, recall: Recall, asking: bool = True) -> None:
    """For a task that is cancelled at the end. `asking`: questions, too; an embedder that is elsewhere may cost money."""
    try:
        await recall.rehearse()
        for _ in range(WRITES):
            await bank.rehearse(_some_write())
        if asking:
            await (await recall.answered(RecallQuery(query="What is known?"))).context
            newest = await bank.memories.page(MemoryFilter(), QUESTIONS, None)
            for memory in newest.nodes:
                await recall.answered(RecallQuery(query=first_words(memory.text)))
    except CairnError as error:
        log.debug("not warmed up: %s", error)  # a store is away, which others tell
    except Exception:  # nobody waits for it
        log.exception("not warmed up")


def _some_write() -> RememberCall:
    """Of every kind of record, so that every statement of a write is run."""
    source, target = mint_memory_id(), mint_memory_id()
    memories = tuple(
        MemoryDraft(type=MemoryType.Event, id=id, conv_id="rehearsal", text="A rehearsal.") for id in (source, target)
    )
    edge = EdgeDraft(source=source, target=target, text="Both are rehearsed.", weight=0.5)
    lesson = LessonDraft(key_lesson="Rehearse.", context_to_prefer="Before the first call.", link_nodes=(target,))
    return RememberCall(memories=memories, edges=(edge,), lessons=(lesson,))
