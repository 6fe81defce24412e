"""Sweeps over all lessons: on request or by the clock, a page at a time, with a pause after each for those who ask.

How far a sweep is stands in the graph, so that every service of a tenant can tell, and one kind runs once at a time. A
sweep that dies with its service is begun anew by the next request or the clock.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from graph.errors import CairnError, Conflict, Unavailable
from graph.model import Value
from graph.session import Graph
from graph.tasks import end

log = logging.getLogger("cairn.sweeps")

# From the id after which to go on, to: lessons looked at, what was found, and where it goes on (None: it is over).
Step = Callable[[int], Awaitable[tuple[int, int, int | None]]]

REST = 0.25  # the pause after a page, as a share of the time it took
TOLD_SECONDS = 5.0
PAUSES = (1.0, 4.0, 15.0, 30.0)  # seconds, while a store is away
SILENT = timedelta(minutes=2)  # a sweep that is not heard of for so long has died
LOOK_SECONDS = 60.0  # how often the clock is looked at, at most


class SweepKind(StrEnum):
    CONSOLIDATE = "CONSOLIDATE"
    PRUNE = "PRUNE"
    SUGGEST = "SUGGEST"


class SweepState(StrEnum):
    RUNNING = "RUNNING"
    DONE = "DONE"
    FAILED = "FAILED"
    STOPPED = "STOPPED"


class Sweep(Value):
    """How far a sweep is, or how the last one of its kind ended."""

    kind: str
    state: str
    examined: int
    found: int
    total: int
    started_at: datetime
    heard_at: datetime
    finished_at: datetime | None = None
    error: str | None = None


class Sweeps:
    def __init__(self, graph: Graph, steps: Mapping[SweepKind, Step], hours: float | None) -> None:
        self._graph = graph
        self._steps = steps
        self._every = None if hours is None else timedelta(hours=hours)
        self._running: set[asyncio.Task[None]] = set()
        self._clock: asyncio.Task[None] | None = None

    def open(self) -> None:
        if self._every is not None:
            self._clock = asyncio.create_task(self._by_the_clock(self._every), name="cairn-sweeps")

    async def stop(self) -> None:
        await end((self._clock,))
        await end(self._running)

    async def start(self, kind: SweepKind) -> Sweep:
        """Begins a sweep behind the answer's back."""
        if not await self._claim(kind, None):
            raise Conflict(f"{kind} runs already; `sweeps` says how far it is.")
        task = asyncio.create_task(self._run(kind), name=f"cairn-sweep-{kind.lower()}")
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return next(sweep for sweep in await self.states() if sweep.kind == kind)

    async def states(self) -> list[Sweep]:
        sweeps = [Sweep.from_row(row) for row in await self._graph.read("sweeps")]
        silent = datetime.now(UTC) - SILENT
        return [
            sweep.model_copy(update={"state": SweepState.STOPPED})
            if sweep.state == SweepState.RUNNING and sweep.heard_at < silent
            else sweep
            for sweep in sorted(sweeps, key=lambda sweep: sweep.kind)
        ]

    async def _by_the_clock(self, every: timedelta) -> None:
        """One after the other, each when its time has come: also a time that came while no service ran."""
        while True:
            for kind in self._steps:
                try:
                    if await self._claim(kind, datetime.now(UTC) - every):
                        await self._run(kind)
                except Exception as error:  # whatever it is: the clock goes on, nobody else looks at it
                    log.warning("the sweep %s waits: %s", kind, error, exc_info=not isinstance(error, CairnError))
            await asyncio.sleep(min(LOOK_SECONDS, every.total_seconds()))

    async def _claim(self, kind: SweepKind, due_before: datetime | None) -> bool:
        now = datetime.now(UTC)
        (row,) = await self._graph.run(
            "claim_sweep", kind=kind.value, now=now, heard_since=now - SILENT, due_before=due_before
        )
        return bool(row["claimed"])

    async def _run(self, kind: SweepKind) -> None:
        examined = found = 0
        last: int | None = 0
        told = time.monotonic()
        log.info("the sweep %s begins", kind)
        try:
            while last is not None:
                began = time.monotonic()
                looked_at, more, last = await self._patiently(kind, last)
                examined, found = examined + looked_at, found + more
                await self._note(kind, SweepState.RUNNING, examined, found)
                if time.monotonic() - told > TOLD_SECONDS:
                    told = time.monotonic()
                    log.info("the sweep %s has looked at %s lessons and found %s", kind, examined, found)
                await asyncio.sleep(REST * (time.monotonic() - began))
        except asyncio.CancelledError:
            with contextlib.suppress(CairnError):
                await self._note(kind, SweepState.STOPPED, examined, found, "the service was stopped")
            raise
        except Exception as error:  # nobody waits for it: it is told by its state
            known = isinstance(error, CairnError)
            log.warning("the sweep %s failed: %s", kind, type(error).__name__, exc_info=not known)
            with contextlib.suppress(CairnError):
                await self._note(kind, SweepState.FAILED, examined, found, str(error) if known else "see the log")
        else:
            await self._note(kind, SweepState.DONE, examined, found)
            log.info("the sweep %s is done: %s lessons, %s found", kind, examined, found)

    async def _patiently(self, kind: SweepKind, after: int) -> tuple[int, int, int | None]:
        """One step. A store that is away is waited for, a little longer each time."""
        for pause in PAUSES:
            try:
                return await self._steps[kind](after)
            except Unavailable as error:
                log.info("the sweep %s waits: %s", kind, error)
                await asyncio.sleep(pause)
        return await self._steps[kind](after)

    async def _note(
        self, kind: SweepKind, state: SweepState, examined: int, found: int, error: str | None = None
    ) -> None:
        now = datetime.now(UTC)
        await self._graph.run(
            "note_sweep",
            kind=kind.value,
            state=state.value,
            examined=examined,
            found=found,
            now=now,
            finished_at=None if state is SweepState.RUNNING else now,
            error=error,
        )
