"""THE QUEUE of sessions to learn from. It is in the graph; every service process has workers that take from it.

  state            due_at                 how it goes on
  ---------------  ---------------------  ----------------------------------------------------------------------
  QUEUED           when it may be taken   taken: RUNNING, one attempt more, with a token that only its worker has
                                          (given back because a store or a model was away: the attempt is taken back)
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
from itertools import chain, zip_longest

from bank.asking import lucene
from bank.distil import Distilled, Distiller, DistillerAway, DistillerFailed
from bank.harvest import Harvest, LostClaim
from bank.likeness import without_recalled
from bank.model import Outcome
from bank.sessions import SessionState, asked_in, works_from_rows
from bank.work import Work
from graph.errors import CairnError, Unavailable
from graph.session import Graph
from graph.tasks import end

log = logging.getLogger("cairn.queue")

MOST_ATTEMPTS = 5
FIRST_PAUSE_SECONDS = 2.0  # before the second attempt; then four times as long each time
PAUSE_GROWS = 4
LONGEST_PAUSE_SECONDS = 300.0  # while a store or the model is away, which is no attempt
MOST_AWAY_HOURS = 24.0  # after which a session is not kept waiting for a model any longer
LONGEST_HOLD_SECONDS = 30.0  # between two tries to store what was learnt
LOOK_SECONDS = 1.0
AHEAD = 1  # session that is taken while the one before is read, where only a few are read at once
LIKE_REQUESTS = 500  # of each outcome, that the index finds: of many with the same words the newest are wanted
LIKE_SESSIONS = 25  # that a distiller compares with, about half of each outcome
GIVEN_UP = f"Its workers died {MOST_ATTEMPTS} times. retrySession tries again."


@dataclass
class Claim:
    """A session that is this worker's. `aways`, `away_seconds`: how often in a row, and for how long, it was given back
    because something was away. `spent`: tokens of this attempt. `waits`: why it is not stored yet."""

    session: str
    token: str
    attempts: int
    aways: int
    away_seconds: float
    spent: int = 0
    waits: str | None = None


class Workers:
    """Takes sessions from the queue, as many at a time as there are workers."""

    def __init__(self, graph: Graph, harvest: Harvest, distiller: Distiller, workers: int, lease: float) -> None:
        self._graph = graph
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
        return [Claim(row["id"], token, row["attempts"], row["aways"], row["away_seconds"]) for row in taken]

    # ------------------------------------------------------------ one session

    async def _attempt(self, claim: Claim) -> None:
        """One attempt, to its end: the session is finished, given back, or somebody else's."""
        try:
            async with self._renewing(claim), self._turns:
                await self._learn(claim)
        except asyncio.CancelledError:  # the service stops, or the claim was lost
            with contextlib.suppress(CairnError):
                await asyncio.shield(self._release(claim, None, 0.0))
            raise
        except LostClaim:
            log.info("session %s is another worker's now, or deleted", claim.session)
            if claim.spent:
                with contextlib.suppress(CairnError):
                    await self._release(claim, None, 0.0)
        except DistillerFailed as error:
            await self._failed(claim, str(error))
        except DistillerAway as error:
            if claim.away_seconds > MOST_AWAY_HOURS * 3600:
                await self._end(claim, f"{error} It was so for {MOST_AWAY_HOURS:g} hours.")
            else:
                await self._away(claim, error)
        except Unavailable as error:  # a store is away, which is not the session's fault
            await self._away(claim, error)
        except Exception as error:  # a fault of ours ends the attempt, not the worker: the log and the session say so
            reference = secrets.token_hex(6)
            log.error("session %s failed: %s", claim.session, reference, exc_info=error)
            await self._failed(claim, f"Something went wrong inside Cairn. Its log has more under {reference}.")

    async def _learn(self, claim: Claim) -> None:
        works = works_from_rows(await self._graph.read("works_by_id", ids=[claim.session]))
        if not works:
            gone = "Its request has been deleted; there is nothing to learn from."
            await self._harvest.end(claim.session, claim.token, SessionState.FAILED, gone, 0)
            return
        work = works[0]
        like = await self._like(work) if self._distiller.compares else []
        try:
            distilled = await self._distiller.distil(without_recalled(work), like)
        except DistillerFailed as error:
            claim.spent = error.tokens_used
            raise
        claim.spent = distilled.tokens_used
        await self._store(claim, work, distilled)

    async def _store(self, claim: Claim, work: Work, distilled: Distilled) -> None:
        """Tries until a store that is away is back, or the claim is lost: what was paid for is not asked for again."""
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                await self._harvest.store(claim.session, claim.token, work, distilled, self._distiller.name)
                return
            except Unavailable as error:
                if claim.waits is None:
                    log.warning("what session %s taught waits to be stored: %s", claim.session, error)
                claim.waits = str(error)
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_HOLD_SECONDS)

    async def _like(self, work: Work) -> list[Work]:
        """Sessions of the same namespace whose requests share most words with this one's, as many that succeeded as that
        failed where there are so many: otherwise the many would hide the few that they are to be compared with."""
        words = lucene(work.request)
        if not words:
            return []
        rows = await self._graph.read(
            "like_requests",
            questions=[
                f"+asked_in:{asked_in(self._graph.tenant, work.namespace, outcome)} +text:({words})"
                for outcome in Outcome
            ],
            nearest=LIKE_REQUESTS,
            limit=LIKE_SESSIONS + 1,
        )
        in_turn = chain.from_iterable(zip_longest(*(row["ids"] for row in rows)))
        rows = await self._graph.read(
            "works_like",
            requests=[id for id in in_turn if id is not None],
            namespace=work.namespace,
            but=work.session,
            limit=LIKE_SESSIONS,
        )
        return [without_recalled(one) for one in works_from_rows(rows)]

    async def _failed(self, claim: Claim, error: str) -> None:
        if claim.attempts >= MOST_ATTEMPTS:
            await self._end(claim, error)
            return
        with contextlib.suppress(Unavailable):  # Neo4j is away: the lease ends
            await self._release(claim, error, _pause(claim.attempts - 1), counts=True)

    async def _away(self, claim: Claim, error: CairnError) -> None:
        with contextlib.suppress(CairnError):
            await self._release(claim, str(error), min(_pause(claim.aways), LONGEST_PAUSE_SECONDS), away=True)

    async def _end(self, claim: Claim, error: str) -> None:
        with contextlib.suppress(Unavailable, LostClaim):
            await self._harvest.end(claim.session, claim.token, SessionState.FAILED, error, claim.spent)

    async def _release(
        self, claim: Claim, error: str | None, pause: float, counts: bool = False, away: bool = False
    ) -> None:
        await self._graph.run(
            "release_session",
            id=claim.session,
            token=claim.token,
            error=error,
            tokens=claim.spent,
            pause=pause,
            counts=counts,
            away=away,
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
                        "renew_session", id=claim.session, token=claim.token, lease=self._lease, error=claim.waits
                    ):
                        assert attempt is not None
                        attempt.cancel()
                        return

        renewing = asyncio.create_task(renew())
        try:
            yield
        finally:
            await end((renewing,))


def _pause(times: int) -> float:
    return FIRST_PAUSE_SECONDS * float(PAUSE_GROWS ** min(times, 10))
