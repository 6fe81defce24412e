"""What the rules learn from real work: 200 trajectories of an airline's service desk, 50 tasks, four tries each.

All but one try of each task are handed in. The left-out try then asks, as if it were to begin, and it is counted how often
the first five lessons hold one from the task's other tries. Then it is handed in too, and the lessons are counted again."""

import asyncio
import gzip
import json
import sys
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bank.model import Outcome
from bank.work import Work, WorkStep
from tests.bench.service import Measured, measured

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "trajectories_taubench_airline.json.gz"


@dataclass(frozen=True)
class Try:
    """One try of a task: what was said and done. `opening`: the user's first message; `request`: all the user said."""

    task: int
    trial: int
    succeeded: bool
    opening: str
    request: str
    steps: tuple[dict[str, str], ...]
    answer: str | None

    @property
    def name(self) -> str:
        return f"task-{self.task}-try-{self.trial}"

    def session_input(self) -> dict[str, Any]:
        return {
            "convId": self.name,
            "request": self.request,
            "outcome": "SUCCESS" if self.succeeded else "FAILURE",
            "steps": list(self.steps),
            "answer": self.answer,
            "idempotencyKey": self.name,
        }

    def work(self) -> Work:
        """As the service keeps it, with ids that tell where they come from."""
        return Work(
            session=self.name,
            conv_id=self.name,
            request=self.request,
            outcome=Outcome.SUCCESS if self.succeeded else Outcome.FAILURE,
            steps=tuple(WorkStep(memory=f"{self.name}-step-{n}", **step) for n, step in enumerate(self.steps)),
            answer=self.answer,
            request_memory=f"{self.name}-request",
            answer_memory=None if self.answer is None else f"{self.name}-answer",
        )


def load() -> list[Try]:
    with gzip.open(DATA, "rt") as file:
        return [_try(trajectory) for trajectory in json.load(file)]


def _try(trajectory: dict[str, Any]) -> Try:
    said, steps, answer, calls = [], [], None, {}
    for message in trajectory["traj"]:
        if message["role"] == "user":
            said.append(message["content"].replace("###STOP###", "").strip())
        elif message["role"] == "tool":
            call = calls.pop(message["tool_call_id"])
            steps.append({"action": call["name"], "parameters": call["arguments"], "result": message["content"]})
        elif message["role"] == "assistant":
            for call in message.get("tool_calls") or ():
                calls[call["id"]] = call["function"]
            answer = message.get("content") or answer
    said = [text for text in said if text]
    return Try(
        task=trajectory["task_id"],
        trial=trajectory["trial"],
        succeeded=trajectory["reward"] == 1.0,
        opening=said[0],
        request="\n".join(said),
        steps=tuple(steps),
        answer=answer,
    )


SUBMIT = "mutation($input: SessionInput!) { submitSession(input: $input) { id } }"
STATE = "query($id: ID!) { session(id: $id) { state error lessons { rbId } } }"
LESSONS = """query($after: String) { lessons(first: 100, after: $after)
  { nodes { rbId title outcome sources { convId } } pageInfo { endCursor hasNextPage } } }"""
RECALL = (
    """query($input: RecallInput!) { recall(input: $input) { lessons { lesson { rbId title sources { convId } } } } }"""
)
TOP = 5


async def run() -> None:
    if not DATA.exists():
        print(f"trajectories: skipped, {DATA.name} is not there")
        return
    tries = load()
    left_out = [one for one in tries if one.trial == one.task % 4]
    print(
        f"\n{len(tries)} trajectories of {len({one.task for one in tries})} tasks, distiller `rules`, embedder `onnx`"
    )
    async with measured("onnx") as service:
        await _learn(service, [one for one in tries if one not in left_out])
        await _ask(service, left_out)
        await _learn(service, left_out)


async def _learn(service: Measured, tries: list[Try]) -> None:
    """Hands them in as they would come, the first tries of all tasks, then the second ones; each round is learnt from before
    the next begins."""
    start = time.perf_counter()
    ends: Counter[str] = Counter()
    for trial in sorted({one.trial for one in tries}):
        waiting = [
            (await service.ask(SUBMIT, input=one.session_input()))["submitSession"]["id"]
            for one in sorted(tries, key=lambda one: one.task)
            if one.trial == trial
        ]
        while waiting:
            if (end := (await service.ask(STATE, id=waiting[0]))["session"])["state"] in ("QUEUED", "RUNNING"):
                await asyncio.sleep(0.2)
                continue
            ends[end["state"]] += 1
            waiting.pop(0)
            print(f"\r  {ends.total()} of {len(tries)} sessions", end="", file=sys.stderr, flush=True)
    seconds = time.perf_counter() - start
    lessons = await _lessons(service)
    several = sum(len(_sessions(lesson)) > 1 for lesson in lessons)
    kinds = Counter(
        "an error" if lesson["title"].startswith("`") else lesson["title"].split(":")[0] for lesson in lessons
    )
    said = ", ".join(f"{count} {state}" for state, count in sorted(ends.items()))
    print(f"\r  {len(tries)} sessions handed in and learnt from in {seconds:.0f} s: {said}")
    print(f"  now {len(lessons)} lessons, {several} with evidence from more than one session")
    print("  " + ", ".join(f"{kind}: {count}" for kind, count in kinds.most_common()))


async def _lessons(service: Measured) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    after = None
    while True:
        page = (await service.ask(LESSONS, after=after))["lessons"]
        found += page["nodes"]
        if not page["pageInfo"]["hasNextPage"]:
            return found
        after = page["pageInfo"]["endCursor"]


def _sessions(lesson: dict[str, Any]) -> set[str]:
    """The conversations that its sources belong to; each session had one of its own."""
    return {source["convId"] for source in lesson["sources"]}


def _tasks(sessions: Iterable[str]) -> list[int]:
    return [int(session.split("-")[1]) for session in sessions]


async def _ask(service: Measured, left_out: list[Try]) -> None:
    """A hit: of the first five lessons, one has a source in a session of the same task. The same is counted more strictly
    (most of the sessions behind the lesson are of that task) and for a wrong task (one half the list away), which is what chance
    and likeness of tasks bring."""
    lessons = await _lessons(service)
    taught = {task for lesson in lessons for task in _tasks(_sessions(lesson))}
    possible = sum(one.task in taught for one in left_out)
    print(f"  {len(left_out)} left-out tries; {possible} of their tasks have a lesson at all")
    tasks = sorted({one.task for one in left_out})
    for name, query in (("the user's opening words", "opening"), ("all that the user said", "request")):
        found, mostly, wrong = 0, 0, 0
        for one in left_out:
            asked = {"query": getattr(one, query), "lessonLimit": TOP}
            recalled = (await service.ask(RECALL, input=asked))["recall"]["lessons"]
            behind = [_tasks(_sessions(hit["lesson"])) for hit in recalled]
            other = tasks[(tasks.index(one.task) + len(tasks) // 2) % len(tasks)]
            found += any(one.task in some for some in behind)
            mostly += any(2 * some.count(one.task) > len(some) for some in behind)
            wrong += any(other in some for some in behind)
        print(
            f"  asked with {name}: a lesson of the same task in the first {TOP} for {found} of {len(left_out)} "
            f"(most of its sessions of that task: {mostly}; for comparison, of one wrong task: {wrong})"
        )
