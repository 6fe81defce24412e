"""How well and how fast things are found: BM25 alone, dense alone, hybrid, and hybrid with the walk.

Hybrid (`recall` with hops: 0) and the walk (hops: 3) are asked over HTTP, each of a service that has started some seconds
ago, so that no question was embedded before. Then the service is stopped and its stores are opened here: BM25 and dense alone
are the index's own lists, the reference is the recipe that recall was made from (reference.py), and the bare parts are the
calls that recall made (embedding, searches, the seeds' edges), made again alone, one after the other.
"""

import asyncio
import contextlib
import logging
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from pymilvus import AsyncMilvusClient

from api.app import running
from api.cli import spare_the_collector
from api.context import Cairn
from api.settings import Settings
from bank import cover
from bank.cover import Source
from bank.model import LessonQuery, RecallQuery
from graph.model import MemoryFilter
from tests.bench import picture, sets
from tests.bench.reference import Reference
from tests.bench.service import Measured, Round, measured, new_folder, stolen, undisturbed
from tests.bench.sets import DATA, Question, QuestionSet
from tests.bench.stores import REMEMBER, shown
from tests.ports import free_port

PICTURE = Path(__file__).parents[2] / ".docs" / "recall.svg"
BATCH = 500
RECALL = "query($input: RecallInput!) { recall(input: $input) { memories { memory { id convId } } } }"
LESSONS = "query($q: String!) { searchLessons(query: $q, limit: 12) { lesson { title } } }"
HOPS = {"hybrid": 0, "hybrid + walk": 3}
REFERENCE = "reference"
NAMES = (*sets.FILES, sets.MADE)
EMBEDDERS = ("onnx", "wordllama")
WARM_ROUNDS = 2
WARM_UP_SECONDS = (
    15  # after which a service that has just started is as quick as it will be: it warms up behind its start
)


@dataclass(frozen=True)
class Row:
    """A line of the table: how one way of asking did on one set."""

    set: str
    embedder: str
    arm: str
    found: tuple[float, ...]  # recall@2, @5, @10, any@5, all@5 in percent; nothing where only times are measured
    p50: float
    p95: float


async def run(sizes: Sequence[int] = (), only: Sequence[str] = ()) -> None:
    """`sizes`: how many questions of each set, instead of all. `only`: of these sets, with these embedders."""
    logging.disable(logging.INFO)  # wordllama switches everybody's on
    if not DATA.is_dir():
        print("Retrieval is not measured: the question sets are not here.")
        return
    if unknown := set(only) - {*NAMES, *EMBEDDERS}:
        raise SystemExit(f"There is no {', '.join(sorted(unknown))}; there are {', '.join((*NAMES, *EMBEDDERS))}.")
    most = sizes[0] if sizes else None
    rows: list[Row] = []
    notes: list[str] = []
    for name in [name for name in NAMES if name in only] or NAMES:
        asked = sets.load(name, DATA, most)
        embedders = [embedder for embedder in EMBEDDERS if embedder in only] or EMBEDDERS
        for embedder in embedders if name != sets.MADE else embedders[-1:]:
            with new_folder() as folder:
                rows += await _over_http(asked, embedder, folder, notes)
                rows += await _on_the_stores(asked, embedder, folder, rows, notes)
            shown(f"{name}, {embedder}: done", 1, 1)
    print(f"\nRetrieval, {'all' if most is None else f'the first {most}'} questions of each set; {sys.platform}\n")
    print(table(rows))
    print("\n" + "\n".join(notes))
    if {row.embedder for row in rows} == set(EMBEDDERS):
        PICTURE.write_text(picture.drawn(row for row in rows if row.arm != REFERENCE), encoding="utf-8")
        print(f"\nThe picture is {PICTURE.parent.name}/{PICTURE.name}")


def table(rows: Iterable[Row]) -> str:
    order = ["BM25", "dense", "hybrid", REFERENCE, "hybrid + walk"]
    lines = [
        "| set | embedder | searched by | recall@2 | recall@5 | recall@10 | any@5 | all@5 | p50 ms | p95 ms |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in sorted(rows, key=lambda row: (row.set, row.embedder, order.index(row.arm))):
        found = [f"{value:.1f}" for value in row.found] or ["" for _ in range(5)]
        cells = [row.set, row.embedder, row.arm, *found, f"{row.p50:.1f}", f"{row.p95:.1f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


# ---------------------------------------------------------------- over HTTP


async def _over_http(asked: QuestionSet, embedder: str, folder: Path, notes: list[str]) -> list[Row]:
    rows = []
    async with measured(embedder, folder=folder) as service:
        start = time.perf_counter()
        await _load(service, asked)
        notes.append(f"{asked.name}, {embedder}: loaded in {time.perf_counter() - start:.0f} s")
    for arm, hops in HOPS.items():
        if asked.of_lessons and hops:
            continue
        async with measured(embedder, folder=folder) as service:
            await asyncio.sleep(WARM_UP_SECONDS)

            async def ask(question: Question, hops: int = hops, service: Measured = service) -> list[str]:
                return await _asked(service.ask_alone, asked, question, hops)

            rows.append(await _row(asked, embedder, arm, ask))
            if hops:
                notes.append(f"{asked.name}, {embedder}: {await _sixteen(service, asked):,.0f} recalls/s by 16 clients")
    return rows


async def _load(service: Measured, asked: QuestionSet) -> None:
    for kind, items in (("memories", asked.memories), ("edges", asked.edges), ("lessons", asked.lessons)):
        for place in range(0, len(items), BATCH):
            await service.ask(REMEMBER, input={"convId": "bench", kind: items[place : place + BATCH]})
            shown(f"{asked.name}: loading {kind}", place + BATCH, len(items))
    while (await service.ask("{ status { pending } }"))["status"]["pending"]:
        await asyncio.sleep(0.2)


async def _asked(
    ask: Callable[..., Awaitable[dict[str, Any]]], asked: QuestionSet, question: Question, hops: int
) -> list[str]:
    """The names of what was found, best first."""
    if asked.of_lessons:
        answer = await ask(LESSONS, q=question.query)
        return [hit["lesson"]["title"] for hit in answer["searchLessons"]]
    wanted: dict[str, Any] = {"query": question.query, "hops": hops, "limit": _limit(asked)}
    if question.tag is not None:
        wanted["filter"] = {"tags": [question.tag]}
    memories = (await ask(RECALL, input=wanted))["recall"]["memories"]
    return _names(asked, [hit["memory"]["id"] for hit in memories])


def _limit(asked: QuestionSet) -> int:
    return 50 if asked.of_talks else 10


def _names(asked: QuestionSet, ids: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(id.rsplit("/", 1)[0] for id in ids)) if asked.of_talks else list(ids)


async def _row(asked: QuestionSet, embedder: str, arm: str, ask: Callable[[Question], Awaitable[Sequence[str]]]) -> Row:
    taken, answers = [], []
    for number, question in enumerate(asked.questions):
        start = time.perf_counter()
        answers.append(await ask(question))
        taken.append((time.perf_counter() - start) * 1000)
        shown(f"{asked.name}, {embedder}, {arm}", number + 1, len(asked.questions))
    taken = sorted(taken[min(20, len(taken) // 5) :])  # the first ones warm it up
    pairs = [(question, names) for question, names in zip(asked.questions, answers, strict=True) if question.gold]
    return Row(asked.name, embedder, arm, _found(pairs), statistics.median(taken), taken[int(len(taken) * 0.95)])


def _found(pairs: Sequence[tuple[Question, Sequence[str]]]) -> tuple[float, ...]:
    if not pairs:
        return ()
    shares = [
        [len(question.gold & question.first(names, most)) / len(question.gold) for question, names in pairs]
        for most in (2, 5, 10)
    ]
    in_five = [question.gold & question.first(names, 5) for question, names in pairs]
    any_of_it = [bool(found) for found in in_five]
    all_of_it = [found == question.gold for found, (question, _) in zip(in_five, pairs, strict=True)]
    return tuple(100 * statistics.fmean(values) for values in (*shares, any_of_it, all_of_it))


async def _sixteen(service: Measured, asked: QuestionSet) -> float:
    """Calls a second by 16 clients at once; an answer with errors ends the measurement."""
    waiting = list(asked.questions[:240])
    count, start = len(waiting), time.perf_counter()

    async def client() -> None:
        while waiting:
            one = waiting.pop()
            # One space more: the same question, but its embedding is not at hand.
            await _asked(service.ask, asked, Question(f"{one.query} ", one.gold, one.tag), HOPS["hybrid + walk"])

    await asyncio.gather(*(client() for _ in range(16)))
    return count / (time.perf_counter() - start)


# ---------------------------------------------------------------- on the stores


async def _on_the_stores(
    asked: QuestionSet, embedder: str, folder: Path, so_far: Sequence[Row], notes: list[str]
) -> list[Row]:
    settings = Settings(
        data=folder, embedder=embedder, port=free_port(), neo4j_bolt_port=free_port(), neo4j_http_port=free_port()
    )  # type: ignore[arg-type]
    async with running(settings) as cairn:
        spare_the_collector()  # as the service does
        rows = [
            await _row(asked, embedder, "BM25", lambda question: _by_words(cairn, asked, question)),
            await _row(asked, embedder, "dense", lambda question: _by_meaning(cairn, asked, question)),
        ]
        if not asked.of_lessons:
            reference = Reference(cairn)

            async def by_reference(question: Question) -> list[str]:
                # A space: dense alone has been asked, and the question's embedding is at hand.
                return _names(asked, await reference.ids(f"{question.query} ", _filter(question), _limit(asked)))

            rows.append(await _row(asked, embedder, REFERENCE, by_reference))
            (walk,) = [row for row in so_far if row.arm == "hybrid + walk" and (row.set, row.embedder) == (asked.name, embedder)]  # fmt: skip
            beside = await _beside_its_parts(cairn, reference, asked.questions)
            notes.append(f"{asked.name}, {embedder}: {beside}; p95 is {walk.p95 / walk.p50:.1f} times p50")
        return rows


async def _by_words(cairn: Cairn, asked: QuestionSet, question: Question) -> list[str]:
    if asked.of_lessons:
        words = await cairn.vectors.lessons_by_words(LessonQuery(query=question.query), 100)
        return [asked.titles[key] for key in words.scores]
    (words,) = await cairn.vectors.memories_by_words([question.query], _filter(question), 100)
    return _names(asked, words.scores)


async def _by_meaning(cairn: Cairn, asked: QuestionSet, question: Question) -> list[str]:
    vector = await cairn.embedder.query(question.query)
    if asked.of_lessons:
        dense, _ = await cairn.vectors.lessons_by_meaning(vector, LessonQuery(query=question.query), 100)
        return [asked.titles[key] for key in dense.scores]
    (hits,) = await cairn.vectors.memories_by_meaning([vector], _filter(question), 100)
    return _names(asked, hits.scores)


def _filter(question: Question) -> MemoryFilter:
    return MemoryFilter(tags=(question.tag,) if question.tag is not None else ())


@dataclass(frozen=True)
class Beside:
    """The medians of a recall, of one with paths and reasons, of the reference, and of a recall's parts alone, together and
    each, in milliseconds; and by how many of the questions: those during which the host took no processor away, if there
    were enough of them."""

    plain: float
    explained: float
    reference: float
    bare: float
    embedding: float
    searches: float
    edges: float
    quiet: int
    asked: int

    def __str__(self) -> str:
        return (
            f"recall takes {self.plain / self.bare:.2f} times its bare parts ({self.plain:.1f} and {self.bare:.1f} ms, in turn, "
            f"without HTTP; embedding {self.embedding:.1f}, searches {self.searches:.1f}, edges {self.edges:.1f}), with paths and reasons {self.explained / self.bare:.2f} times ({self.explained:.1f} ms); "
            f"{self.plain / self.reference:.2f} times the reference ({self.reference:.1f} ms); "
            f"the host took no processor away during {self.quiet} of {self.asked} questions"
        )


async def _beside_its_parts(cairn: Cairn, reference: Reference, questions: Sequence[Question]) -> Beside:
    """A recall as it is asked for above, one with paths and reasons, the reference, and a recall's parts alone (embedding the question, its
    searches by a plain client of Milvus, a lean fetch of its seeds' edges), one right after the other: from one minute to
    the next a machine may be half as fast. All are asked twice before: Java compiles what they run, and the words of the
    memories are read; the reference was asked all of them before. Which of the two recalls is first changes from question
    to question."""

    async def recalled(query: str, explained: bool) -> None:
        await cairn.recall.recall(RecallQuery(query=query, filter=_filter(question), explained=explained))

    async def timed(work: Awaitable[Any]) -> float:
        start = time.perf_counter()
        await work
        return 1000 * (time.perf_counter() - start)

    async def searched(calls: Sequence[Callable[[], Awaitable[Any]]]) -> None:
        for call in calls:
            await call()

    for _ in range(WARM_ROUNDS):
        for question in questions:
            await recalled(question.query, explained=True)
    rounds: list[Round] = []
    client = AsyncMilvusClient(
        uri=cairn.vectors.milvus.client._config.uri, grpc_options={"grpc.keepalive_time_ms": 2**31 - 1}
    )
    for number, question in enumerate(questions):
        before = stolen()
        # Spaces: the question's embedding is not at hand.
        explained = await timed(recalled(f"{question.query}  ", explained=True)) if number % 2 else 0.0
        with _noted(cairn, client) as calls:
            plain = await timed(recalled(f"{question.query} ", explained=False))
        parts = [
            await timed(work)
            for work in (cairn.embedder.query(f"{question.query}   "), searched(calls[:-1]), calls[-1]())
        ]
        explained = explained or await timed(recalled(f"{question.query}  ", explained=True))
        by_reference = await timed(reference.ids(f"{question.query}    ", _filter(question)))
        rounds.append((stolen() - before, [plain, explained, by_reference, sum(parts), *parts]))
    await client.close()
    quiet, kept = undisturbed(rounds)
    medians = (statistics.median(own) for own in zip(*kept, strict=True))
    return Beside(*medians, quiet=quiet, asked=len(questions))


@contextlib.contextmanager
def _noted(cairn: Cairn, plain: AsyncMilvusClient) -> Iterator[list[Callable[[], Awaitable[Any]]]]:
    """The searches that are made meanwhile, and a fetch of the edges of the walk's seeds, ready to be made again."""
    calls: list[Callable[[], Awaitable[Any]]] = []
    seeds: list[Source] = []
    search, read, choose = cairn.vectors.milvus.client.search, cairn.graph.read, cover.choose_seeds

    def searched(*wanted: Any, **options: Any) -> Awaitable[Any]:
        calls.append(lambda: plain.search(*wanted, **options))
        found: Awaitable[Any] = search(*wanted, **options)
        return found

    def chosen(*given: Any) -> list[Source]:
        seeds[:] = choose(*given)
        return list(seeds)

    def statement(name: str, /, **parameters: Any) -> Awaitable[Any]:
        fetch.update(parameters if name == "recall_edges" else {})
        return read(name, **parameters)

    fetch: dict[str, Any] = {}
    with (
        mock.patch.object(cairn.vectors.milvus.client, "search", searched),
        mock.patch.object(cairn.graph, "read", statement),
        mock.patch.object(cover, "choose_seeds", chosen),
    ):
        yield calls
    lean = {**fetch, "ids": [seed.id for seed in seeds], "sentence": 0}
    calls.append(lambda: read("recall_edges", **lean))
