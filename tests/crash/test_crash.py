"""The process dies before every step of a mutation: nothing acknowledged is lost, nothing half-written is seen.

The usual run tries every second step of the mutations in USUAL, which stand for the others; `CAIRN_TEST_EVERY_DEATH=1`
tries every step of all."""

import asyncio
import itertools
import json
import os
import sys
from collections import Counter
from collections.abc import Collection
from typing import Any

from api.schema import schema
from api.settings import Settings
from graph.queries import CYPHER
from tests.crash.dying import BEGINNINGS, EVERY_DEATH, INDEXED, MUTATIONS

ROOT = CYPHER.parent
# One of each kind: several records of every sort, one in a single round trip, a removal, one record with signals, several
# transactions, those taken back, a removal of many, and a repair of what no mark tells. The others take the same ways.
USUAL = [
    "remember",
    "consolidate",
    "deleteSession",
    "undoConsolidation",
    "rememberOne",
    "deleteMemory",
    "recordOutcome",
    "repair",
]


def test_every_mutation_dies() -> None:
    """Whatever the schema has, has its death in dying.py."""
    mutation = schema._schema.mutation_type
    assert mutation is not None
    assert set(MUTATIONS) == set(mutation.fields) | {"rememberOne"} and set(USUAL) <= set(MUTATIONS)


async def test_death_at_every_step(settings: Settings) -> None:
    """Every second one of the usual mutations, or every one of all if that is asked for. After each restart the trial's records are as before the
    mutation or as after it, whole, and as after it if it was acknowledged, also right after the start; both stores agree
    once the index work is done; every mutation completes when nobody dies."""
    names = list(MUTATIONS) if EVERY_DEATH in os.environ else USUAL
    series = await asyncio.gather(*(_series(settings, 1_000 * (start + 1), names[start::4]) for start in range(4)))
    whole = {trial["mutation"]: trial for trials in series for trial in trials if "after" in trial}
    assert set(whole) == set(names)
    assert all(trial["at"] > trial["steps"] for trial in whole.values())
    deaths = 0
    for trial, following in (pair for trials in series for pair in itertools.pairwise(trials)):
        if trial["exit"] != 9:
            continue
        deaths += 1
        where = f"{trial['mutation']} died before step {trial['at']}"
        left = following["left"]
        assert left["ok"], (where, left["report"])
        before, after = trial["before"], whole[trial["mutation"]]["after"]
        done = trial.get("acknowledged") and trial["mutation"] not in BEGINNINGS
        allowed = [after] if done else [before, after]
        assert left["state"] in allowed, (where, *(_differing(left["state"], state) for state in allowed))
        seen = [_without(state, INDEXED) for state in allowed]  # right after the start, before any index work is done
        if trial["mutation"] in BEGINNINGS and trial.get("acknowledged"):
            assert left["sweeps"] == ["CONSOLIDATE"], where
        assert left["at_once"] in seen, (where, *(_differing(left["at_once"], state) for state in seen))
    assert deaths >= (4 if EVERY_DEATH in os.environ else 2) * len(names)
    died = Counter(trial["mutation"] for trials in series for trial in trials if trial["exit"] == 9)
    print(f"{deaths} deaths in {len(names)} mutations: {dict(died)}")


def _without(state: str, parts: Collection[str]) -> str:
    return json.dumps({name: value for name, value in json.loads(state).items() if name not in parts}, sort_keys=True)


def _differing(one: str, other: str) -> dict[str, Any]:
    """What two snapshots say otherwise, each its own."""
    own, others = json.loads(one), json.loads(other)
    return {name: (own[name], others[name]) for name in own if own[name] != others[name]}


async def _series(settings: Settings, first: int, mutations: list[str]) -> list[dict[str, Any]]:
    """One death after the other, on a tenant and an index of its own."""
    own = settings.model_dump(mode="json", include={"neo4j_uri", "neo4j_user", "port"}) | {
        "neo4j_password": settings.neo4j_secret(),
        "tenant": f"{settings.tenant}-{mutations[0]}",
        "data": str(settings.data / mutations[0]),
        "embedder": "wordllama",
        "workers": 0,  # a session that was handed in stays as it is
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.crash.dying", str(first), *mutations),
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate((json.dumps(own) + "\n").encode())
    trials = [json.loads(line) for line in output.splitlines() if line.startswith(b"{")]
    assert [trial["error"] for trial in trials if "error" in trial] == []
    assert process.returncode == 0
    return trials
