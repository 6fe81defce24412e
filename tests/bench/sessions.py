"""Finished work: how many sessions are learnt from in a minute, how that grows, and what recall costs meanwhile.

`python -m tests.bench sessions [rates] [rules|openai] [onnx|wordllama] [growth] [1000 10000]`: how fast with each distiller and
embedder, and how that grows, at which sizes. The openai distiller speaks to a server on this machine that answers after one second.
"""

import asyncio
import random
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.bank.chat import ChatServer, completion, lessons, record_of
from tests.bench.service import Measured, measured, times

SIZES = (1_000, 10_000)
COUNTED = 100  # sessions that a rate is taken from
WARM = 30  # before: a JVM that has just started is slow
CLIENTS = 8
SUBMIT = "mutation($input: SessionInput!) { submitSession(input: $input) { id } }"
RECALL = "query($q: String!) { recall(input: {query: $q, limit: 10}) { memories { score memory { id text } } lessons { score lesson { rbId keyLesson } } context } }"
TASKS = "refund exchange cancellation rebooking upgrade baggage voucher invoice address subscription".split()
THINGS = "order ticket parcel flight hotel laptop phone contract licence seat car insurance".split()
TOOLS = (
    "get_customer get_order list_payments check_policy calculate_fee search_stock send_message update_record".split()
)
ERRORS = ("Error: not found", "Error: amount does not add up", "Error: payment method not allowed", "Error: timed out")


def session(chance: random.Random) -> dict[str, Any]:
    """Six to ten steps with a slip now and then; which tools are used depends on the task, and some tasks fail without one."""
    task, thing = chance.choice(TASKS), chance.choice(THINGS)
    needed = TOOLS[TASKS.index(task) % len(TOOLS)]
    tools = [*chance.sample(TOOLS, chance.randint(4, 6)), f"do_{task}"]
    steps = []
    for tool in tools:
        parameters = f'{{"{thing}": "{chance.randrange(10**6)}", "amount": {chance.randrange(900)}}}'
        if chance.random() < 0.15:
            steps.append({"action": tool, "parameters": parameters, "result": chance.choice(ERRORS)})
        steps.append(
            {
                "action": tool,
                "parameters": parameters,
                "result": f"{tool} gave {chance.randrange(10**6)} for the {thing}",
            }
        )
    return {
        "convId": f"bench-{chance.randrange(10**9)}",
        "namespace": "bench",
        "request": f"Please do the {task} of my {thing} number {chance.randrange(10**6)}.",
        "outcome": "SUCCESS" if needed in tools or chance.random() < 0.2 else "FAILURE",
        "steps": steps,
        "answer": f"The {task} of the {thing} is taken care of.",
    }


async def hand_in(service: Measured, count: int, chance: random.Random) -> list[str]:
    ids: list[str] = []

    async def client() -> None:
        while left:
            ids.append((await service.ask(SUBMIT, input=left.pop()))["submitSession"]["id"])
            shown("handed in", len(ids), count)

    left = [session(chance) for _ in range(count)]
    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    return ids


async def is_open(service: Measured, id: str) -> bool:
    """Whether it is still in the queue."""
    found = await service.ask("query($id: ID!) { session(id: $id) { state } }", id=id)
    return found["session"]["state"] in ("QUEUED", "RUNNING")


async def until_ended(service: Measured, ids: list[str]) -> None:
    """One is asked for at a time, so that asking costs next to nothing; the last ones first, for they are taken last."""
    for place, one in enumerate(reversed(ids)):
        while await is_open(service, one):
            shown("still to be learnt from", len(ids) - place, len(ids))
            await asyncio.sleep(0.05)


@dataclass(frozen=True)
class Rate:
    """Sessions a minute that are handed in, and that are handed in and learnt from; what that cost of all processors."""

    handed_in: float
    learnt: float
    processor: float

    def __str__(self) -> str:
        return (
            f"handed in {self.handed_in:,.0f}/min, learnt from {self.learnt:,.0f}/min "
            f"({self.processor:.2f} s of processor a session)"
        )


async def per_minute(service: Measured, chance: random.Random) -> Rate:
    start, used = time.perf_counter(), service.processor()
    ids = await hand_in(service, COUNTED, chance)
    handed_in = time.perf_counter() - start
    await until_ended(service, ids)
    learnt = time.perf_counter() - start
    return Rate(COUNTED / handed_in * 60, COUNTED / learnt * 60, (service.processor() - used) / COUNTED)


async def recall_beside(service: Measured, chance: random.Random) -> str:
    """p50 of recall with nothing else to do, and while sessions wait in the queue and all workers are busy."""

    async def ask(number: int) -> None:
        await service.ask(RECALL, q=f"{chance.choice(TASKS)} of my {chance.choice(THINGS)}")

    idle, _ = await times(ask, 40)
    waiting = await hand_in(service, 2 * COUNTED, chance)
    taken = []
    while await is_open(service, waiting[-1]):
        start = time.perf_counter()
        await ask(0)
        taken.append((time.perf_counter() - start) * 1_000)
    await until_ended(service, waiting)
    busy = statistics.median(taken) if taken else float("nan")
    return f"recall p50 {idle:.1f} ms idle, {busy:.1f} ms under a full queue ({len(taken)} calls)"


def one_lesson(body: dict[str, Any]) -> tuple[int, Any]:
    words = record_of(body).split("Please do the ")[-1].split(" number")[0]
    said = f"Check the policy before the {words} is done; without it the last step is refused."
    return 200, completion(lessons({"title": f"Policy for the {words}", "when_to_use": f"The {words}.", "content": said, "tags": [], "outcome": "SUCCESS", "steps": [1]}))  # fmt: skip


async def run(sizes: tuple[int, ...] = SIZES, only: Sequence[str] = ()) -> None:
    print(f"\nSessions: {COUNTED} at a time by {CLIENTS} clients, 6 to 10 steps each; {sys.platform}\n")
    parts = wanted(only, "rates", "growth")
    if "rates" in parts:
        await rates(random.Random(5), wanted(only, "rules", "openai"), wanted(only, "onnx", "wordllama"))
    if "growth" in parts:
        await growth(random.Random(6), sizes)


def wanted(only: Sequence[str], *names: str) -> list[str]:
    """Those of the names that were asked for, or all of them."""
    return [name for name in names if name in only] or list(names)


async def rates(chance: random.Random, distillers: Sequence[str], embedders: Sequence[str]) -> None:
    """Each distiller with each embedder."""
    chat = ChatServer()
    chat.always, chat.pause = one_lesson, 1.0
    chat.start()
    for distiller in distillers:
        for embedder in embedders:
            more = {"CAIRN_DISTILLER": distiller, "CAIRN_DISTILLER_BASE_URL": chat.url}
            async with measured(embedder, more) as service:
                await until_ended(service, await hand_in(service, WARM, chance))
                print(f"{distiller:7} {embedder:10} {await per_minute(service, chance)}", flush=True)
                print(f"{'':18} {await recall_beside(service, chance)}", flush=True)
    chat.stop()


async def growth(chance: random.Random, sizes: tuple[int, ...]) -> None:
    async with measured("wordllama") as service:
        there = 0
        for size in sizes:
            await until_ended(service, await hand_in(service, max(0, size - COUNTED - there), chance))
            print(f"{size:7,} sessions: {await per_minute(service, chance)}", flush=True)
            print(f"{'':18} {await recall_beside(service, chance)}", flush=True)
            there = size + 2 * COUNTED
            found = (await service.ask("{ integrity { nodes lessons } }"))["integrity"]
            print(f"{'':18} {found['nodes']:,} memories, {found['lessons']:,} lessons", flush=True)


def shown(what: str, done: int, of: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{what}: {done:,} of {of:,}          ", end="", file=sys.stderr, flush=True)
