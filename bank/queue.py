"""THE QUEUE of sessions to learn from. It is in the graph; every service process has workers that take from it.

  state            due_at                 how it goes on
  ---------------  ---------------------  ----------------------------------------------------------------------
  QUEUED           when it may be taken   taken: RUNNING, one attempt more, with a token that only its worker has
  RUNNING          when its lease ends    renewed by its worker; finished by it; taken by another if the lease ended
  DONE             none                   lessons came of it
  NOTHING_LEARNED  none                   `reason` says why; retrySession: QUEUED
  FAILED           none                   `error` says why; retrySession: QUEUED

Every step of a worker names its token: one that slept too long, and whose session was taken by another, finds that its
token fits no more, and what it has learnt is dropped. The lessons and the final state are one transaction, so that a
worker that dies leaves either a session that is done or one whose lease ends. Moments are the database's, so that the
clocks of two service processes need not agree.
"""

import asyncio
import contextlib
import logging
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass

from bank.distil import Distiller, DistillerFailed
from bank.harvest import Harvest, LostClaim
from bank.likeness import without_recalled
from bank.search import Search
from bank.sessions import SessionState, works_from_rows
from bank.work import Work
from graph.errors import CairnError, Unavailable
from graph.model import MemoryFilter, MemoryType
from graph.session import Graph
from graph.tasks import end

log = logging.getLogger("cairn.queue")

MOST_ATTEMPTS = 5
FIRST_PAUSE_SECONDS = 2.0  # before the second attempt; then four times as long each time
PAUSE_GROWS = 4
AWAY_SECONDS = 2.0  # a store is away: that is no attempt
LOOK_SECONDS = 1.0
AHEAD = 1  # session that is taken while the one before is read, where only a few are read at once
LIKE_REQUESTS = 100  # found by meaning and words
LIKE_SESSIONS = 25  # of them, those that a distiller compares with
GIVEN_UP = f"Its workers died {MOST_ATTEMPTS} times. retrySession tries again."


@dataclass(frozen=True)
class Claim:
    session: str
    token: str
    attempts: int


class Workers:
    """Takes sessions from the queue, as many at a time as there are workers."""

    def __init__(
        self, graph: Graph, search: Search, harvest: Harvest, distiller: Distiller, workers: int, lease: float
    ) -> None:
        self._graph = graph
        self._search = search
        self._harvest = harvest
        self._distiller = distiller
        self._workers = workers if distiller.at_once is None else min(workers, distiller.at_once)
        self._most_taken = self._workers + (0 if distiller.at_once is None else AHEAD)
        self._lease = lease
        self._turns = asyncio.Semaphore(max(1, self._workers))
        self._work = asyncio.Event()
        self._running: set[asyncio.Task[None]] = set()
        self._loop: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._workers:
            self._loop = asyncio.create_task(self._run(), name="cairn-queue")

    def wake(self) -> None:
        self._work.set()

    async def stop(self) -> None:
        """Whoever is at a session leaves it; it is given back, or its lease ends."""
        await end((self._loop,))
        await end(self._running)

    async def _run(self) -> None:
        away = False
        while True:
            try:
                claims = await self._take(self._most_taken - len(self._running))
                away = False
            except Exception as error:  # whatever it is: this loop must not end
                if not away:
                    log.warning("the queue waits: %s", error, exc_info=not isinstance(error, CairnError))
                away, claims = True, []
            for claim in claims:
                task = asyncio.create_task(self._attempt(claim))
                self._running.add(task)
                task.add_done_callback(self._ended)
            if not claims or len(self._running) >= self._most_taken:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_SECONDS):
                        await self._work.wait()
                self._work.clear()

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._running.discard(task)
        self._work.set()

    async def _take(self, most: int) -> list[Claim]:
        if most <= 0:
            return []
        due = [row["id"] for row in await self._graph.read("due_sessions", limit=most)]
        if not due:
            return []
        token = secrets.token_hex(16)
        taken = await self._graph.run(
            "claim_sessions",
            ids=sorted(due),
            token=token,
            lease=self._lease,
            most=MOST_ATTEMPTS,
            given_up=GIVEN_UP,
        )
        return [Claim(row["id"], token, row["attempts"]) for row in taken]

    # ------------------------------------------------------------ one session

    async def _attempt(self, claim: Claim) -> None:
        """One attempt, to its end: the session is finished, given back, or somebody else's."""
        try:
            async with self._renewing(claim), self._turns:
                await self._learn(claim)
        except asyncio.CancelledError:  # the service stops, or the claim was lost
            with contextlib.suppress(CairnError):
                await asyncio.shield(self._release(claim, None, 0.0, counts=False))
            raise
        except LostClaim:
            log.info("session %s is another worker's now, or deleted", claim.session)
        except DistillerFailed as error:
            await self._failed(claim, str(error), error.tokens_used)
        except Unavailable as error:  # a store is away, which is not the session's fault
            with contextlib.suppress(CairnError):
                await self._release(claim, str(error), AWAY_SECONDS, counts=False)
        except (
            Exception
        ) as error:  # a fault of ours ends the attempt, not the worker: the log has it, the session says so
            reference = secrets.token_hex(6)
            log.error("session %s failed: %s", claim.session, reference, exc_info=error)
            await self._failed(claim, f"Something went wrong inside Cairn. Its log has more under {reference}.", 0)

    async def _learn(self, claim: Claim) -> None:
        works = works_from_rows(await self._graph.read("works_by_id", ids=[claim.session]))
        if not works:
            gone = "Its request has been deleted; there is nothing to learn from."
            await self._harvest.end(claim.session, claim.token, SessionState.FAILED, gone, 0)
            return
        work = works[0]
        like = await self._like(work) if self._distiller.compares else []
        distilled = await self._distiller.distil(without_recalled(work), like)
        await self._harvest.store(claim.session, claim.token, work, distilled, self._distiller.name)

    async def _like(self, work: Work) -> list[Work]:
        """Sessions of the same namespace with like requests, nearest first."""
        only = MemoryFilter(types=(MemoryType.UserRequest,))
        found = await self._search.nearest_ids(self._search.asking(work.request), only, LIKE_REQUESTS)
        rows = await self._graph.read(
            "works_like",
            requests=found,
            namespace=work.namespace,
            but=work.session,
            limit=LIKE_SESSIONS,
        )
        return [without_recalled(one) for one in works_from_rows(rows)]

    async def _failed(self, claim: Claim, error: str, tokens: int) -> None:
        with contextlib.suppress(Unavailable, LostClaim):  # Neo4j is away: the lease ends
            if claim.attempts < MOST_ATTEMPTS:
                pause = FIRST_PAUSE_SECONDS * PAUSE_GROWS ** (claim.attempts - 1)
                await self._release(claim, error, pause, counts=True, tokens=tokens)
            else:
                await self._harvest.end(claim.session, claim.token, SessionState.FAILED, error, tokens)

    async def _release(self, claim: Claim, error: str | None, pause: float, counts: bool, tokens: int = 0) -> None:
        await self._graph.run(
            "release_session",
            id=claim.session,
            token=claim.token,
            error=error,
            tokens=tokens,
            pause=pause,
            counts=counts,
        )

    @contextlib.asynccontextmanager
    async def _renewing(self, claim: Claim) -> AsyncIterator[None]:
        """Renews the lease; a claim that was lost ends the attempt."""
        attempt = asyncio.current_task()

        async def renew() -> None:
            while True:
                await asyncio.sleep(self._lease / 3)
                with contextlib.suppress(Unavailable):
                    if not await self._graph.run(
                        "renew_session", id=claim.session, token=claim.token, lease=self._lease
                    ):
                        assert attempt is not None
                        attempt.cancel()
                        return

        renewing = asyncio.create_task(renew())
        try:
            yield
        finally:
            await end((renewing,))
