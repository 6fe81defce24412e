"""A service that dies at a chosen step of a mutation, many times over: `python -m tests.crash.dying 1000 remember …`.

A step is a call at a border: a transaction and its inside, a commit, the embedder, Milvus. The settings come as JSON on standard input; a JSON
line for each trial goes to standard output. Every trial is a process of its own, forked before any thread or connection exists,
so that a death costs a second instead of three. A trial first looks at what the death before it has left.
"""

import asyncio
import io
import json
import os
import sys
import threading
import warnings
from collections.abc import Callable, Collection, Coroutine
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from api.app import running
from api.context import Cairn, Context
from api.schema import schema
from api.settings import Settings
from bank.embed import Embedder, WordLlamaModel
from bank.milvus import LESSONS, MEMORIES
from bank.rows import lesson_row, memory_row
from bank.sweeps import SweepState
from bank.vectors import Vectors
from graph.model import embedding_id
from graph.session import Graph, Transaction

STUCK_SECONDS = 300
Tell = Callable[[dict[str, Any]], None]
EVERY_DEATH = "CAIRN_TEST_EVERY_DEATH"

# What is there before, and the mutation that dies. {p}: the prefix of all names of a trial, {r}: its lessons' ids.
BEFORE = """mutation { remember(input: {convId: "{p}",
  memories: [{event: {id: "{p}A", text: "{p} alpha happened."}}, {event: {id: "{p}B", text: "{p} beta happened."}}],
  edges: [{id: "{p}E", source: "{p}A", target: "{p}B", text: "{p} led to it.", weight: 0.7}],
  lessons: [{rbId: "{r}1", keyLesson: "{p} teaches.", contextToPrefer: "{p} context.", tags: ["{p}"], linkNodes: ["{p}A"]},
            {rbId: "{r}4", keyLesson: "{p} says it twice.", contextToPrefer: "{p} context.", namespace: "{p}"},
            {rbId: "{r}5", keyLesson: "{p} says it twice.", contextToPrefer: "{p} context.", namespace: "{p}"}]
  }) { created }
  connectLessons(source: "{r}1", target: "{r}4", type: REQUIRES) { type } }"""
SUBMIT = """mutation { submitSession(input: {convId: "{p}s", namespace: "{p}s", request: "{p} asks.", outcome: SUCCESS,
  steps: [{action: "refund", result: "done"}], answer: "{p} is refunded.", idempotencyKey: "{p}s"}) { id } }"""
MERGE = 'mutation { consolidate(dryRun: false, namespace: "{p}") { nodes { merged { rbId } } } }'
MUTATIONS = {
    # The first, for it looks at the lessons of every trial before it.
    "startSweep": "mutation { startSweep(kind: CONSOLIDATE) { state } }",
    "remember": """mutation { remember(input: {convId: "{p}",
      memories: [{event: {id: "{p}C", text: "{p} gamma happened."}},
                 {event: {id: "{p}A", text: "{p} alpha happened otherwise."}}],
      edges: [{id: "{p}F", source: "{p}C", target: "{p}A", text: "{p} explains it.", weight: 0.9},
              {id: "{p}E", source: "{p}A", target: "{p}B", text: "{p} led to it after all.", weight: 0.8}],
      lessons: [{rbId: "{r}2", keyLesson: "{p} teaches more.", contextToPrefer: "{p} context.", tags: ["{p}"],
                 linkNodes: ["{p}C", "{p}B"]},
                {rbId: "{r}1", keyLesson: "{p} teaches.", contextToPrefer: "{p} context.", tags: ["{p}"],
                 linkNodes: ["{p}B"]}],
      idempotencyKey: "{p}"}) { created updated unchanged } }""",
    "rememberOne": 'mutation { remember(input: {convId: "{p}", memories: [{event: {id: "{p}C", text: "{p} gamma happened."}}]}) { created } }',
    "updateMemory": 'mutation { updateMemory(id: "{p}A", patch: {text: "{p} delta happened."}) { id } }',
    "deleteMemory": 'mutation { deleteMemory(id: "{p}A") { deleted } }',
    "updateEdge": 'mutation { updateEdge(id: "{p}E", text: "{p} changed.", weight: 0.2) { id } }',
    "deleteEdge": 'mutation { deleteEdge(id: "{p}E") { deleted } }',
    "recordLesson": """mutation { recordLesson(input: {rbId: "{r}3", keyLesson: "{p} recorded.", contextToPrefer: "{p} context.",
      tags: ["{p}"], linkNodes: ["{p}A", "{p}B"]}) { rbId } }""",
    "updateLesson": 'mutation { updateLesson(rbId: "{r}1", patch: {keyLesson: "{p} revised.", status: QUARANTINED}) { rbId } }',
    "deleteLesson": 'mutation { deleteLesson(rbId: "{r}1") { deleted } }',
    "linkLesson": 'mutation { linkLesson(rbId: "{r}1", nodeIds: ["{p}B"]) { rbId } }',
    "giveFeedback": 'mutation { giveFeedback(rbId: "{r}1", helpful: false, comment: "{p}") { rbId } }',
    "recordOutcome": 'mutation { recordOutcome(rbIds: ["{r}1"], succeeded: true, convId: "{p}") { rbId } }',
    "recordStability": 'mutation { recordStability(rbId: "{r}1", reverted: true) { rbId } }',
    "promoteLesson": 'mutation { promoteLesson(rbId: "{r}1", scope: ORG) { rbId } }',
    "prune": "mutation { prune(dryRun: false, below: 0.9) { retired } }",
    "connectLessons": 'mutation { connectLessons(source: "{r}4", target: "{r}1", type: CAUSES, evidence: "{p}") { type } }',
    "disconnectLessons": 'mutation { disconnectLessons(source: "{r}1", target: "{r}4", type: REQUIRES) { deleted } }',
    "rejectLessonLink": 'mutation { rejectLessonLink(source: "{r}4", target: "{r}5", type: ALTERNATIVE) }',
    "consolidate": MERGE,
    "undoConsolidation": 'mutation { undoConsolidation(rbId: "{m}") { rbId } }',
    "submitSession": SUBMIT,
    "retrySession": 'mutation { retrySession(id: "{m}") { state } }',
    "deleteSession": 'mutation { deleteSession(id: "{m}") { deleted } }',
    "repair": "mutation { repair(dryRun: false) { ok } }",
    "unlinkLesson": 'mutation { unlinkLesson(rbId: "{r}1", nodeIds: ["{p}A"]) { rbId } }',
}
# The text of the rows that the index gets before a repair.
SPOILT = "A row that nobody has."
# Of these it is acknowledged that they have begun. A sweep that dies is begun anew by whoever asks for it, or by the clock.
BEGINNINGS = {"startSweep"}
SNAPSHOT = """{
  conversation(convId: "{p}") { memories { id text embeddingId reasoningPointerIds lessons { rbId } }
    edges { id text weight source { id } target { id } } }
  one: lesson(rbId: "{r}1") { keyLesson status linkNodes lostSources sources { id }
    usageCount confidence scope signals { nodes { kind comment convId } } links { type evidence } }
  suggestLessonLinks(rbId: "{r}4") { nodes { type } }
  sessions(first: 100) { nodes { convId state attempts error } }
  work: conversation(convId: "{p}s") { memories { text } edges { text } }
  found: searchMemories(query: "{p} asks refund", filter: {convId: "{p}s"}, limit: 20) { memory { text } }
  two: lesson(rbId: "{r}2") { keyLesson status linkNodes lostSources sources { id } }
  three: lesson(rbId: "{r}3") { keyLesson status linkNodes lostSources sources { id } }
  merging: lessons(filter: {namespace: "{p}"}) { nodes { keyLesson status mergedFrom signals { nodes { kind } } } }
  searchMemories(query: "{p} happened", filter: {convId: "{p}"}, limit: 20) { memory { id text } }
  searchLessons(query: "{p} teaches", tags: ["{p}"], limit: 20) { lesson { rbId keyLesson } }
}"""

# Of it: what only the index tells. What is searched for is there at once: what the index may lack words find in the graph.
INDEXED = frozenset({"suggestLessonLinks"})


first = 1_000  # from which the trials are numbered where their lessons are: ids of lessons are unique over all tenants


def named(text: str, trial: int) -> str:
    return text.replace("{p}", f"trial{trial}x").replace("{r}", str(first + trial))


async def ask(cairn: Cairn, query: str, trial: int) -> Any:
    result = await schema.execute(named(query, trial), context_value=Context(cairn))
    assert not result.errors, result.errors
    return result.data


async def snapshot(cairn: Cairn, trial: int, without: Collection[str] = ()) -> str:
    """All that a client can see of a trial, with its names taken out."""
    seen = await ask(cairn, SNAPSHOT, trial)
    for found in ("searchMemories", "searchLessons", "found"):
        seen[found] = sorted(json.dumps(hit) for hit in seen[found])
    seen["sessions"] = [one for one in seen["sessions"]["nodes"] if one["convId"] == f"trial{trial}xs"]
    seen["conversation"]["memories"].sort(key=lambda memory: memory["id"])
    seen["conversation"]["edges"].sort(key=lambda edge: edge["id"])
    seen["work"]["edges"].sort(key=lambda edge: edge["text"])
    seen["merging"]["nodes"].sort(key=lambda lesson: (lesson["status"], lesson["keyLesson"], str(lesson["mergedFrom"])))
    seen = {name: value for name, value in seen.items() if name not in without}
    # The tenant's name first: its digits may be those of a trial.
    plain = json.dumps(seen, sort_keys=True).replace(cairn.graph.tenant, "{t}")
    return plain.replace(f"trial{trial}x", "{p}").replace(str(first + trial), "{r}")


async def prepare(cairn: Cairn, mutation: str, trial: int) -> str:
    """What comes before a mutation: the {m} that it names."""
    if mutation == "undoConsolidation":
        return str((await ask(cairn, MERGE, trial))["consolidate"]["nodes"][0]["merged"]["rbId"])
    if mutation in ("deleteSession", "retrySession"):
        session = str((await ask(cairn, SUBMIT, trial))["submitSession"]["id"])
        if mutation == "retrySession":  # which a worker would have done
            failed = "MATCH (s:Session {tenant: $tenant, id: $id}) SET s.state = 'FAILED', s.error = 'no luck', s.attempts = 5"
            await cairn.graph._driver.execute_query(failed, tenant=cairn.graph.tenant, id=session)
        return session
    if mutation == "repair":
        await spoil(cairn, trial)
    if mutation == "startSweep":  # the one that died with the last trial has not been heard of for a while
        silent = "MATCH (s:Sweep {tenant: $tenant}) SET s.heard_at = s.heard_at - duration('PT1H')"
        await cairn.graph._driver.execute_query(silent, tenant=cairn.graph.tenant)
    return ""


async def spoil(cairn: Cairn, trial: int) -> None:
    """Both collections lack a record, have another in an old version, and a row that nobody has: what no mark tells."""
    await cairn.sync.settle()
    tenant, vectors = cairn.graph.tenant, cairn.vectors
    names, lessons = [named(f"{{p}}{one}", trial) for one in "AB"], [int(named(f"{{r}}{one}", trial)) for one in (1, 4)]
    memory = (await cairn.bank.memories.by_id(names))[names[1]]
    lesson = (await cairn.bank.lessons.by_id(lessons))[lessons[1]]
    (vector,) = await cairn.embedder.passages([SPOILT])
    # In no conversation of the trial: a search that met it would have it mended before the repair.
    old_memory = memory_row(memory, tenant, vector) | {"version": 0, "text": SPOILT, "conv_id": "nobody"}
    old_lesson = lesson_row(lesson, tenant, vector, vector) | {"version": 0, "context_to_prefer": SPOILT}
    ghost = old_memory | {"embedding_id": embedding_id(tenant, named("{p}G", trial))}
    await vectors.delete(MEMORIES, [embedding_id(tenant, names[0])])
    await vectors.delete(LESSONS, [lessons[0]])
    await vectors.upsert(MEMORIES, [old_memory, ghost])
    await vectors.upsert(
        LESSONS, [old_lesson, old_lesson | {"rb_id": int(named("{r}9", trial)), "namespace": "nobody"}]
    )


class Death:
    """Ends the process before the step with this number, without a word to anybody."""

    def __init__(self) -> None:
        self.steps = 0
        self.at: int | None = None

    def step(self) -> None:
        if self.at is not None:
            self.steps += 1
            if self.steps == self.at:
                os._exit(9)

    def watch(self, owner: type, name: str, both: bool = False) -> None:
        """Counts the calls of a method as steps; `both`: its return too."""
        method: Callable[..., Any] = getattr(owner, name)

        async def watched(*arguments: Any, **named_arguments: Any) -> Any:
            self.step()
            answer = await method(*arguments, **named_arguments)
            if both:
                self.step()
            return answer

        setattr(owner, name, watched)

    def watch_statements(self) -> None:
        """A step before the second statement of a transaction. Whatever a transaction has done before its commit, a death
        undoes all of it: one death inside stands for all, unless every one is asked for."""
        method = Transaction.run
        every = EVERY_DEATH in os.environ
        ran: WeakKeyDictionary[Transaction, int] = WeakKeyDictionary()

        async def watched(transaction: Transaction, *arguments: Any, **named_arguments: Any) -> Any:
            ran[transaction] = ran.get(transaction, 0) + 1
            if every or ran[transaction] == 2:
                self.step()
            return await method(transaction, *arguments, **named_arguments)

        Transaction.run = watched  # type: ignore[method-assign]


def end_if_stuck(number: int, tell: Tell) -> None:
    """A trial that does not end tells where each of its tasks waits."""
    loop = asyncio.get_running_loop()

    def stuck() -> None:
        where = io.StringIO()
        for task in asyncio.all_tasks(loop):
            task.print_stack(limit=6, file=where)
        tell({"trial": number, "error": f"stuck for {STUCK_SECONDS} s: {where.getvalue()}"})
        os._exit(1)

    timer = threading.Timer(STUCK_SECONDS, stuck)
    timer.daemon = True
    timer.start()


async def trial(settings: Settings, number: int, mutation: str, at: int, spoilt: bool, tell: Tell) -> None:
    """`spoilt`: the index was, before the last death, and what the repair left of it the sweep of the next start mends."""
    end_if_stuck(number, tell)
    death = Death()
    death.watch_statements()
    death.watch(Graph, "write", both=True)
    death.watch(Graph, "repeat", both=True)
    death.watch(Embedder, "passages")
    for name in ("insert", "upsert", "delete"):
        death.watch(Vectors, name, both=True)
    async with running(settings) as cairn:
        left = None
        if number:
            at_once = await snapshot(cairn, number - 1, INDEXED)
            for _ in range(1200):
                if await cairn.sync.pending() == 0:
                    break
                await asyncio.sleep(0.05)
            report = await cairn.sync.compare()
            for _ in range(600):
                if report.ok or not spoilt:
                    break
                await asyncio.sleep(0.05)
                report = await cairn.sync.compare()
            state = await snapshot(cairn, number - 1)
            sweeps = [str(sweep.kind) for sweep in await cairn.sweeps.states()]
            left = {
                "at_once": at_once,
                "state": state,
                "sweeps": sweeps,
                "ok": report.ok,
                "report": report.model_dump(),
            }
        await ask(cairn, BEFORE, number)
        made = await prepare(cairn, mutation, number)
        tell({"trial": number, "left": left, "before": await snapshot(cairn, number)})
        if mutation:
            death.at = at
            await ask(cairn, MUTATIONS[mutation].replace("{m}", made), number)
            tell({"trial": number, "acknowledged": True})
            await asyncio.sleep(0)
            # What follows the acknowledgement has steps, too.
            while await cairn.sync.pending() or SweepState.RUNNING in [
                one.state for one in await cairn.sweeps.states()
            ]:
                await asyncio.sleep(0.02)
            death.at = None
            tell({"trial": number, "after": await snapshot(cairn, number), "steps": death.steps})


def load_once() -> None:
    """The model is loaded before the forks."""
    warnings.filterwarnings("ignore", "pkg_resources is deprecated")
    model = WordLlamaModel()
    import api.app

    api.app.load_model = lambda settings: model


def forked(work: Callable[[Tell], Coroutine[Any, Any, None]]) -> dict[str, Any]:
    """Runs one trial in a process of its own: how it ended, and all that it told."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)

        def tell(line: dict[str, Any]) -> None:
            os.write(writing, (json.dumps(line) + "\n").encode())

        try:
            asyncio.run(work(tell))
        except BaseException as error:  # noqa: BLE001  told to the test, which fails with it
            tell({"error": repr(error)})
            os._exit(1)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as lines:
        said = [json.loads(line) for line in lines]
    _, status = os.waitpid(child, 0)
    outcome: dict[str, Any] = {"exit": os.waitstatus_to_exitcode(status)}
    for line in said:
        outcome |= line
    return outcome


def main() -> None:
    settings = Settings(**json.loads(sys.stdin.readline()))
    global first
    first = int(sys.argv[1])
    mutations = [*sys.argv[2:], ""]  # the last trial only looks at what the one before it left
    load_once()
    # In the usual run every second step, from the first of one mutation and the second of the next.
    stride = 1 if EVERY_DEATH in os.environ else 2
    number, place, at, spoilt = 0, 0, 1, False
    while place < len(mutations):
        outcome = forked(partial(trial, settings, number, mutations[place], at, spoilt))
        spoilt = mutations[place] == "repair"
        print(json.dumps({"mutation": mutations[place], "at": at, **outcome}), flush=True)
        number += 1
        if outcome["exit"] == 9:
            at += stride
        else:
            place += 1
            at = 1 + place % stride


if __name__ == "__main__":
    main()
