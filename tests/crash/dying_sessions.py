"""A service that dies at a chosen step of a session's way, from `submitSession` to the lesson in the index, many times over:
`python -m tests.crash.dying_sessions <first step> <every how many> <teaching or supporting>`.

As tests/crash/dying.py does it: settings as JSON on standard input, a JSON line a trial on standard output, a process a trial.
A trial first does what a client does that got no answer: it hands in the session of the death before it again, with its key.
A session that dies supporting has one before it in its trial that taught the lesson.
"""

import asyncio
import json
import sys
from functools import partial
from typing import Any

import bank.distil_openai  # noqa: F401  before the forks: most of a second
from api.app import running
from api.context import Cairn, Context
from api.schema import schema
from api.settings import Settings
from bank.distil import RulesDistiller
from bank.distil_openai import OpenAIDistiller
from bank.embed import Embedder
from bank.vectors import Vectors
from graph.session import Graph, Transaction
from tests.crash.dying import Death, Tell, forked, load_once

SUBMIT = """mutation { submitSession(input: {convId: "{p}", namespace: "{p}", request: "{p} asks for a refund.", outcome: SUCCESS,
  steps: [{action: "refund in cash", result: "Error: not possible"}, {action: "refund to the card", result: "done"}],
  answer: "{p} is refunded.", idempotencyKey: "{p} {key}"}) { id } }"""
ENDED = '{ session(id: "{id}") { state } }'
SNAPSHOT = """{ session(id: "{id}") { state error lessons { keyLesson status sources { text } } memories { text } }
  conversation(convId: "{p}") { memories { text lessons { keyLesson } } edges { text } }
  lessons(filter: {namespace: "{p}"}) { nodes { keyLesson version confidence signals { nodes { kind } } } }
  searchLessons(query: "refund", namespace: "{p}") { lesson { keyLesson } } }"""


# A death inside a transaction takes all of it back, wherever it is: these stand for the others (tests/crash/dying.py can try all).
STATEMENTS = {
    "put_session",
    "keep_answer",
    "claim_sessions",
    "hold_namespace",
    "put_lessons",
    "add_links",
    "append_signals",
    "finish_session",
}


def watch_statements(death: Death) -> None:
    run = Transaction.run

    async def watched(self: Transaction, name: str, /, **parameters: Any) -> Any:
        if name in STATEMENTS:
            death.step()
        return await run(self, name, **parameters)

    Transaction.run = watched  # type: ignore[method-assign]


async def ask(cairn: Cairn, query: str, trial: int, session: str = "", key: str = "") -> Any:
    text = query.replace("{p}", f"trial{trial}x").replace("{id}", session).replace("{key}", key)
    result = await schema.execute(text, context_value=Context(cairn))
    assert not result.errors, result.errors
    return result.data


async def to_its_end(cairn: Cairn, trial: int, key: str = "dies") -> dict[str, Any]:
    """Hands a trial's session in, and looks at all that came of it when it is over and indexed."""
    session = (await ask(cairn, SUBMIT, trial, key=key))["submitSession"]["id"]
    for _ in range(600):
        state = (await ask(cairn, ENDED, trial, session))["session"]["state"]
        if state not in ("QUEUED", "RUNNING") and await cairn.sync.pending() == 0:
            report = await cairn.sync.compare()
            if report.ok:  # the index follows a session's end by a moment
                break
        await asyncio.sleep(0.05)
    seen = await ask(cairn, SNAPSHOT, trial, session)
    return {
        "seen": json.dumps(seen, sort_keys=True).replace(f"trial{trial}x", "{p}"),
        "ok": report.ok,
        "report": report.model_dump(),
    }


async def trial(settings: Settings, number: int, at: int, supporting: bool, tell: Tell) -> None:
    death = Death()
    watch_statements(death)
    death.watch(Graph, "write", both=True)
    death.watch(Embedder, "passages")
    for distiller in (OpenAIDistiller, RulesDistiller):
        death.watch(distiller, "distil", both=True)
    for name in ("insert", "upsert", "delete"):
        death.watch(Vectors, name, both=True)
    async with running(settings) as cairn:
        if number:
            tell({"left": await to_its_end(cairn, number - 1)})
        if at:
            if supporting:
                await to_its_end(cairn, number, "teaches")
            death.at = at
            whole = await to_its_end(cairn, number)
            death.at = None
            tell({"whole": whole, "steps": death.steps})


def main() -> None:
    settings = Settings(**json.loads(sys.stdin.readline()))
    at, every = map(int, sys.argv[1:3])
    load_once()
    number, over = 0, False
    while not over:
        outcome = forked(partial(trial, settings, number, at, sys.argv[3] == "supporting"))
        print(json.dumps({"at": at, **outcome}), flush=True)
        number += 1
        over = outcome["exit"] != 9
        at += every


if __name__ == "__main__":
    main()
