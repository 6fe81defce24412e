"""The only importer of `neo4j`: statements by name, reads and atomic writes, retries, time limits, errors as ours."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from typing import Any, TypeVar

from neo4j import (
    READ_ACCESS,
    WRITE_ACCESS,
    AsyncDriver,
    AsyncGraphDatabase,
    AsyncManagedTransaction,
    Query,
    unit_of_work,
)
from neo4j.exceptions import (
    AuthError,
    ClientError,
    ConfigurationError,
    ConstraintError,
    DriverError,
    Neo4jError,
    ServiceUnavailable,
    TransientError,
)

from graph.errors import CairnError, Conflict, SetupError, Unavailable
from graph.pulse import Pulse
from graph.queries import statements

Row = dict[str, Any]
T = TypeVar("T")

# A call fails within five seconds when Neo4j is away: the last try starts before RETRY_SECONDS are over and connects or
# gives up within CONNECT_SECONDS. A lost leader is tried again after a tenth of a second, then two, four …
CONNECT_SECONDS = 1.5
ACQUIRE_SECONDS = 4.0
RETRY_SECONDS = 1.4
FIRST_PAUSE_SECONDS = 0.1
READ_SECONDS = 30.0
WRITE_SECONDS = 60.0
SILENT_SECONDS = 5.0  # after its time limit Neo4j should have ended a statement; one that says nothing is given up
PATIENT_SECONDS = 2.0  # then somebody who waits for his turn is told why
TURN_SECONDS = 3_600.0  # the indexes of a large store are made in a turn
MOST_STARTS = 20
# A start waits up to so long for each one before it: by chance, so that the same two do not meet again.
AGAIN_SECONDS = 0.05
# Other transactions are at the same records, and Neo4j is well.
DELETED = "Neo.ClientError.Statement.EntityNotFound"
DEADLOCK = "Neo.TransientError.Transaction.DeadlockDetected"
# Neo4j could not write its log, as on a full disk. From then on it starts no transaction until it is started again.
NOT_STARTED = "Neo.DatabaseError.Transaction.TransactionStartFailed"
NOT_WRITTEN = (NOT_STARTED, "Neo.DatabaseError.Transaction.TransactionLogError")
MOST_LOOKS = 3  # at records that are deleted while they are read; what is not whole by then is no record


class StartAgain(Exception):
    """A record that a transaction had found was deleted or changed by another before it could be locked, or the two
    waited for each other in a circle: begin anew."""


class TakenBack(Exception):
    """A transaction that was only rehearsed."""


class Transaction:
    """One open transaction; all that runs in it is stored, or none of it."""

    def __init__(self, tx: AsyncManagedTransaction, graph: "Graph") -> None:
        self._tx = tx
        self._graph = graph
        self.tenant = graph.tenant

    async def run(self, name: str, /, **parameters: Any) -> list[Row]:
        self._graph.round_trips += 1
        statement = statements()[name]
        return await _data(await self._tx.run(statement.text, {"tenant": self._graph.tenant, **parameters}))


class Graph:
    """A tenant's graph. Every statement carries the tenant."""

    def __init__(
        self,
        driver: AsyncDriver,
        tenant: str,
        database: str | None = None,
        pinging: AsyncDriver | None = None,
        routed: bool = False,
    ) -> None:
        """`pinging`: a second way to the same Neo4j, on which nobody waits for a long statement. `routed`: it may be another
        server of a cluster that answers the next time, so that we must tell it what we have written; a server that is alone
        knows, and telling it takes a tenth of a read."""
        self._driver = driver
        self._pinging = pinging or driver
        self._pulse = Pulse(self._ping)
        self._database = database
        self._bookmarks = AsyncGraphDatabase.bookmark_manager() if routed else None
        self.tenant = tenant
        self.round_trips = 0

    async def read(self, name: str, /, **parameters: Any) -> list[Row]:
        """Runs one statement of `cypher/read`. A record that was deleted while it was read comes without its type or its
        properties: then all of it is read again, so that a page is as long as it should be."""
        if statements()[name].mode != "read":
            raise ValueError(f"{name} writes")
        whole: list[Row] = []
        for _ in range(MOST_LOOKS):
            rows = await self._alone(name, READ_ACCESS, parameters)
            whole = [row for row in rows if _is_whole(row)]
            if len(whole) == len(rows):
                break
        return whole

    async def repeat(self, name: str, /, **parameters: Any) -> list[Row]:
        """Runs one statement of `cypher/write` that may safely be run twice, in one round trip: if the connection is lost
        and nobody knows whether it was stored, it is run again. StartAgain: nothing is stored, others were at the records."""
        return await self._alone(name, WRITE_ACCESS, parameters)

    async def _alone(self, name: str, access: str, parameters: dict[str, Any]) -> list[Row]:
        """Outside a transaction of its own, which would take a second round trip to end it."""
        query = Query(statements()[name].text, timeout=READ_SECONDS)
        values = {"tenant": self.tenant, **parameters}
        deadline, pause = time.monotonic() + RETRY_SECONDS, FIRST_PAUSE_SECONDS
        with _our_errors():
            async with asyncio.timeout(RETRY_SECONDS + READ_SECONDS + SILENT_SECONDS) as clock:
                with self._pulse.waits(clock):
                    while True:
                        self.round_trips += 1
                        try:
                            async with self._driver.session(
                                database=self._database, default_access_mode=access, bookmark_manager=self._bookmarks
                            ) as session:
                                with _met_others() if access == WRITE_ACCESS else nullcontext():
                                    return await _data(await session.run(query, values))
                        except (Neo4jError, DriverError) as error:
                            if not error.is_retryable() or time.monotonic() + pause > deadline:
                                raise
                        await asyncio.sleep(pause)
                        pause *= 2

    async def write(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Runs `work` in one transaction; a deadlock or a lost leader makes it start again from its beginning.

        The driver can send BEGIN together with the first statement, as its own `execute_query` does: a round trip less.
        It has no public word for that, so without the private one a write takes that round trip."""

        @unit_of_work(timeout=WRITE_SECONDS)
        async def attempt(tx: AsyncManagedTransaction) -> T:
            with _met_others():  # before the driver sees it, which tries again only while RETRY_SECONDS last
                return await work(Transaction(tx, self))

        for start in range(MOST_STARTS):
            if start:
                await asyncio.sleep(random.uniform(0.0, AGAIN_SECONDS * start))
            with _our_errors(), suppress(StartAgain), _met_others():  # also at the commit
                async with asyncio.timeout(WRITE_SECONDS + SILENT_SECONDS) as clock:
                    with self._pulse.waits(clock):
                        async with self._driver.session(
                            database=self._database, bookmark_manager=self._bookmarks
                        ) as session:
                            with getattr(session, "_pipelined_begin", nullcontext()):
                                return await session.execute_write(attempt)
        raise Unavailable(
            "The same records are being deleted and written over and over; nothing was stored. Try again."
        )

    async def rehearse(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Runs `work` in one transaction, which is then rolled back."""
        done: list[T] = []

        async def taken_back(tx: Transaction) -> None:
            done.append(await work(tx))
            raise TakenBack

        with suppress(TakenBack):
            await self.write(taken_back)
        return done[-1]

    async def run(self, name: str, /, **parameters: Any) -> list[Row]:
        """Runs one statement of `cypher/write` in a transaction of its own."""
        return await self.write(lambda tx: tx.run(name, **parameters))

    async def define(self, text: str) -> None:
        """Runs a statement that defines the schema, which takes a transaction of its own."""
        with _our_errors():
            async with self._driver.session(database=self._database) as session:
                try:
                    await (await session.run(Query(text))).consume()
                except Neo4jError as error:
                    if error.code is not None and error.code.endswith("AlreadyExists"):
                        raise Conflict("Somebody else defines the same at this moment.") from error
                    if error.code is not None and error.code.endswith("ConstraintCreationFailed"):
                        why = " ".join((error.message or "").split())
                        raise SetupError(f"What is stored breaks a rule of this version. {why}") from error
                    raise

    @asynccontextmanager
    async def turn(self, waiting: Callable[[], object]) -> AsyncIterator[None]:
        """One process at a time is in here, whatever its tenant; `waiting` is called where another one is for a while.
        An open transaction holds the lock: whoever dies in here leaves it, because Neo4j ends his transaction; so does,
        after TURN_SECONDS, a machine that went away without a word."""
        await self.define("CREATE CONSTRAINT turn IF NOT EXISTS FOR (t:CairnTurn) REQUIRE t.of IS UNIQUE")
        told = asyncio.get_running_loop().call_later(PATIENT_SECONDS, waiting)
        try:
            with _our_errors():
                async with (
                    self._driver.session(database=self._database) as session,
                    await session.begin_transaction(timeout=TURN_SECONDS) as tx,
                ):
                    await (await tx.run("MERGE (t:CairnTurn {of: 'schema'})")).consume()
                    told.cancel()
                    yield
        finally:
            told.cancel()

    async def explain(self, text: str, /, **parameters: Any) -> dict[str, Any]:
        """The plan that Neo4j makes for a statement."""
        with _our_errors():
            async with self._driver.session(database=self._database) as session:
                result = await session.run(Query("EXPLAIN " + text), {"tenant": self.tenant, **parameters})
                summary = await result.consume()
        return dict(summary.plan or {})

    async def _ping(self) -> None:
        async with self._pinging.session(database=self._database, default_access_mode=READ_ACCESS) as session:
            with suppress(Neo4jError):  # which is an answer
                await (await session.run("RETURN 1")).consume()

    async def close(self) -> None:
        await self._pulse.stop()
        await _close(self._driver, self._pinging)


async def _data(result: Any) -> list[Row]:
    """The rows. A statement that returns many collects them into one, `rows`: the driver spends its time on records."""
    found = [record async for record in result]
    if len(found) == 1 and found[0].keys() == ["rows"]:
        rows: list[Row] = found[0]["rows"]  # maps and lists already: `data` would copy every value of them
        return rows
    return [record.data() for record in found]


def _is_whole(row: Row) -> bool:
    """Whether a record has all that makes it one; a row of anything else is whole."""
    if not isinstance(row, dict) or "properties" not in row:
        return True
    properties = row["properties"]
    named = all(row.get(name, "") is not None for name in ("type", "source", "target"))
    return named and ("id" in properties or "rb_id" in properties)


async def connect(uri: str, user: str, password: str, tenant: str, database: str | None = None) -> Graph:
    """Opens a graph that answers, or says why it does not."""
    try:
        driver, pinging = _driver(uri, user, password), _driver(uri, user, password)
    except (ConfigurationError, ValueError) as error:
        raise SetupError(
            f"CAIRN_NEO4J_URI is {uri!r}, which is no address of a Neo4j ({error}). Write bolt://host:7687 or neo4j://host."
        ) from error
    try:
        await driver.verify_connectivity()
        await pinging.verify_connectivity()  # a connection that is open already when it is needed
    except AuthError as error:
        await _close(driver, pinging)
        raise SetupError(
            f"Neo4j at {uri} refused the user {user!r} with the password given. "
            "Set CAIRN_NEO4J_USER and CAIRN_NEO4J_PASSWORD (or CAIRN_NEO4J_PASSWORD_FILE)."
        ) from error
    except (ServiceUnavailable, DriverError, Neo4jError, OSError) as error:
        await _close(driver, pinging)
        raise Unavailable(f"Neo4j at {uri} does not answer: {error}") from error
    return Graph(driver, tenant, database, pinging, routed=uri.startswith("neo4j"))


def _driver(uri: str, user: str, password: str) -> AsyncDriver:
    return AsyncGraphDatabase.driver(
        uri,
        auth=(user, password),
        connection_timeout=CONNECT_SECONDS,
        connection_acquisition_timeout=ACQUIRE_SECONDS,
        max_transaction_retry_time=RETRY_SECONDS,
        initial_retry_delay=FIRST_PAUSE_SECONDS,
        keep_alive=True,
        liveness_check_timeout=30,
        notifications_min_severity="OFF",
        telemetry_disabled=True,
    )


async def _close(*drivers: AsyncDriver) -> None:
    for driver in drivers:
        await driver.close()


async def set_first_password(uri: str, user: str, password: str) -> None:
    """Replaces the password that a new Neo4j starts with. Done already: nothing happens."""
    driver = AsyncGraphDatabase.driver(uri, auth=(user, "neo4j"), connection_timeout=CONNECT_SECONDS)
    try:
        async with driver.session(database="system") as session:
            result = await session.run("ALTER CURRENT USER SET PASSWORD FROM 'neo4j' TO $password", password=password)
            await result.consume()
    except AuthError:
        pass
    finally:
        await driver.close()


async def answers(uri: str, user: str, password: str) -> bool:
    """Whether a Neo4j is up behind this address, whatever it thinks of the password."""
    driver = AsyncGraphDatabase.driver(uri, auth=(user, password), connection_timeout=CONNECT_SECONDS)
    try:
        await driver.verify_connectivity()
    except (AuthError, ClientError):
        return True
    except (ServiceUnavailable, DriverError, Neo4jError, OSError):
        return False
    finally:
        await driver.close()
    return True


async def is_stuck(uri: str, user: str, password: str) -> bool:
    """Whether a Neo4j answers, but only that it has to be started again."""
    driver = AsyncGraphDatabase.driver(uri, auth=(user, password), connection_timeout=CONNECT_SECONDS)
    try:
        async with asyncio.timeout(SILENT_SECONDS), driver.session() as session:
            await (await session.run("RETURN 1")).consume()
    except Neo4jError as error:
        return error.code == NOT_STARTED
    except (DriverError, OSError):  # it is away, or hangs
        return False
    finally:
        await driver.close()
    return False


@contextmanager
def _met_others() -> Iterator[None]:
    try:
        yield
    except Neo4jError as error:
        if error.code in (DELETED, DEADLOCK):
            raise StartAgain from error
        raise


@contextmanager
def _our_errors() -> Iterator[None]:
    try:
        yield
    except CairnError:
        raise
    except ConstraintError as error:
        raise Conflict("Another write took one of these ids at the same moment; send the call again.") from error
    except (ServiceUnavailable, TransientError, DriverError) as error:
        raise Unavailable("Neo4j does not answer just now; nothing is known to be stored. Try again.") from error
    except Neo4jError as error:
        if error.code in NOT_WRITTEN:
            raise Unavailable(
                "Neo4j cannot write, perhaps because the disk is full; nothing is known to be stored. Try again."
            ) from error
        if error.is_retryable():
            raise Unavailable("Neo4j does not answer just now; nothing is known to be stored. Try again.") from error
        raise
    except (TimeoutError, OSError) as error:
        raise Unavailable("Neo4j cannot be reached; nothing is known to be stored. Try again.") from error
