"""Sweeps over all lessons: how long each takes, how it grows, what it holds in memory, and what reads cost meanwhile."""

import asyncio
import random
import statistics
import sys
import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from tests.bench.service import Measured, measured

SIZES = (10_000, 50_000)
BATCH = 1_000
NAMESPACES = 20
NEAR_DUPLICATES, CONTRADICTIONS, WITH_SOURCE = 0.04, 0.01, 0.1  # shares of the lessons
KINDS = ("PRUNE", "CONSOLIDATE", "SUGGEST")
VERBS = (
    "check compare count join filter split load export validate archive refresh sample rank merge label audit".split()
)
THINGS = (
    "orders deliveries invoices returns claims prices budgets forecasts surveys tickets contracts shipments stocks leads visits "
    "payments refunds batches reports segments campaigns margins vouchers quotas routes permits sensors meters backups logs"
).split()
PLACES = (
    "Oslo Porto Lyon Turin Graz Bergen Malmo Gdansk Riga Vilnius Cork Leeds Basel Ghent Bilbao Seville Tartu Brno Split Varna"
).split()
REMEMBER = "mutation($input: RememberInput!) { remember(input: $input) { created } }"
SEARCH = "query($q: String!) { searchLessons(query: $q, limit: 5) { score lesson { rbId keyLesson } } }"
RECALL = "query($q: String!) { recall(input: {query: $q, limit: 5}) { memories { memory { id } } lessons { lesson { rbId } } } }"
READS = {"searchLessons": SEARCH, "recall": RECALL}
SWEEPS = "{ sweeps { kind state examined found finishedAt error } }"


def lesson(number: int, chance: random.Random) -> dict[str, Any]:
    verb, (one, other, third), place = chance.choice(VERBS), chance.sample(THINGS, 3), chance.choice(PLACES)
    code = chance.randrange(10**6)
    return {
        "rbId": str(number),
        "keyLesson": f"{verb.capitalize()} {one} of {place} with {other} before {third} are closed, as in case {code}.",
        "contextToPrefer": f"{third.capitalize()} in {place} differ from {one} in case {code}.",
        "namespace": f"team{number % NAMESPACES}/project",
        "tags": chance.sample(THINGS, 2),
        "linkNodes": [f"N{number % 500}"] if chance.random() < WITH_SOURCE else [],
    }


def lessons(start: int, end: int, chance: random.Random) -> list[dict[str, Any]]:
    """Most are like no other; some say what another one says, in another order, or the opposite of it."""
    made: list[dict[str, Any]] = []
    for number in range(start, end):
        if made and chance.random() < NEAR_DUPLICATES + CONTRADICTIONS:
            old = chance.choice(made)
            twin = {**lesson(number, chance), **{key: old[key] for key in ("contextToPrefer", "namespace")}}
            same = chance.random() < NEAR_DUPLICATES / (NEAR_DUPLICATES + CONTRADICTIONS)
            text = old["keyLesson"][0].lower() + old["keyLesson"][1:]
            made.append({**twin, "keyLesson": f"Always {text}" if same else f"Never {text}"})
        else:
            made.append(lesson(number, chance))
    return made


async def load(service: Measured, made: Sequence[dict[str, Any]]) -> float:
    start = time.perf_counter()
    for place in range(0, len(made), BATCH):
        await service.ask(REMEMBER, input={"convId": "bench", "lessons": made[place : place + BATCH]})
        print(f"\rloading {place + BATCH:,} of {len(made):,} lessons …", end="", file=sys.stderr, flush=True)
    while (await service.ask("{ status { pending } }"))["status"]["pending"]:
        await asyncio.sleep(0.2)
    print(file=sys.stderr)
    return len(made) / (time.perf_counter() - start)


class Reads:
    """What agents ask meanwhile, in turn: each question's times in milliseconds."""

    def __init__(self, service: Measured, questions: Sequence[str]) -> None:
        self._service = service
        self._questions = questions
        self._taken: dict[str, list[float]] = {name: [] for name in READS}

    async def one(self) -> None:
        name = min(self._taken, key=lambda name: len(self._taken[name]))
        question = self._questions[len(self._taken[name]) % len(self._questions)]
        start = time.perf_counter()
        await self._service.ask(READS[name], q=question)
        self._taken[name].append((time.perf_counter() - start) * 1000)

    def told(self) -> str:
        p50s = [f"{name} {statistics.median(taken):.0f} ms" for name, taken in self._taken.items() if taken]
        return f"{', '.join(p50s)} (p50 of {sum(map(len, self._taken.values()))})"


async def sweep(service: Measured, kind: str, reads: Reads) -> dict[str, Any]:
    """Runs one sweep, and asks meanwhile: seconds, what it found, the memory before, at most and afterwards."""
    before, cpu = service.memory(), service.processor()
    most = dict(before)
    began = time.perf_counter()
    await service.ask(f"mutation {{ startSweep(kind: {kind}) {{ state }} }}")
    while True:
        await reads.one()
        most = {name: max(most[name], used) for name, used in service.memory().items() if name in most}
        (state,) = [one for one in (await service.ask(SWEEPS))["sweeps"] if one["kind"] == kind]
        if state["finishedAt"]:
            break
        await asyncio.sleep(0.2)
    if state["state"] != "DONE":
        raise RuntimeError(state)
    after = service.memory()
    return {
        "seconds": time.perf_counter() - began,
        "cpu": service.processor() - cpu,
        "examined": state["examined"],
        "found": state["found"],
        "memory": ", ".join(f"{name} {before[name]:.0f} / {most[name]:.0f} / {after[name]:.0f}" for name in before),
    }


async def run(sizes: tuple[int, ...] = SIZES) -> None:
    chance = random.Random(7)
    taken: dict[str, list[tuple[int, float, float]]] = {}
    async with measured("wordllama") as service:
        memories = [{"event": {"id": f"N{n}", "text": f"Event number {n}."}} for n in range(500)]
        await service.ask(REMEMBER, input={"convId": "bench", "memories": memories})
        done = 0
        for size in sizes:
            rate = await load(service, lessons(done + 1, size + 1, chance))
            done = size
            questions = [lesson(n, chance)["keyLesson"] for n in range(50)]
            for _ in range(10):
                await Reads(service, questions).one()  # the first ones do not count
            idle = Reads(service, questions)
            for _ in range(60):
                await idle.one()
            print(f"{size:,} lessons, loaded at {rate:,.0f} a second; reads when nothing else runs: {idle.told()}")
            for kind in KINDS:
                reads = Reads(service, questions)
                told = await sweep(service, kind, reads)
                taken.setdefault(kind, []).append((told["examined"], told["seconds"], told["cpu"]))
                print(
                    f"  {kind:<12}{told['seconds']:8.1f} s ({told['cpu']:.0f} s of processor time), "
                    f"{told['examined']:,} looked at, {told['examined'] / told['seconds']:,.0f} a second, "
                    f"{told['found']:,} found\n"
                    f"{'':14}reads meanwhile: {reads.told()}\n"
                    f"{'':14}MB before / at most / afterwards: {told['memory']}",
                    flush=True,
                )
    for kind, measures in taken.items():
        for (small, first, first_cpu), (large, second, second_cpu) in pairwise(measures):
            print(
                f"{kind}: {large / small:.1f} times the lessons took {second / first:.1f} times as long, "
                f"{second_cpu / first_cpu:.1f} times the processor time"
            )
