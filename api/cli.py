"""The command line: `python -m api run`, `setup`, `reembed`, `link`. Every failure it can foresee says what to change."""

import argparse
import asyncio
import contextlib
import fcntl
import gc
import logging
import os
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import uvicorn
import uvloop
from pydantic import ValidationError

from api.app import create_app, neo4j_server, running
from api.settings import Settings
from bank.embed import default_onnx_folder
from bank.warmup import warm_up
from graph.errors import CairnError, SetupError
from graph.server import USER, fetch_jars, require_free_port
from graph.tasks import ahead, end

LINKED_AT_ONCE = 200  # memories in one transaction


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="cairn", description="A knowledge-graph memory with a linked lesson bank.")
    parser.add_argument("command", choices=["run", "setup", "reembed", "link"], help="run: start the service")
    command = parser.parse_args(arguments).command
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for quiet in ("httpx", "httpx2", "openai", "neo4j", "asyncio"):
        logging.getLogger(quiet).setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", "pkg_resources is deprecated")  # milvus-lite's; setuptools is pinned for it
    try:
        settings = read_settings()
        prepare(settings)
        if command == "run":
            uvloop.run(serve(settings))
        elif command == "reembed":
            asyncio.run(reembed(settings))
        elif command == "link":
            asyncio.run(link(settings))
    except (CairnError, OSError) as error:
        print(f"\ncairn: {error}", file=sys.stderr)
        return 1
    except (KeyboardInterrupt, asyncio.CancelledError):
        return 130
    return 0


def read_settings() -> Settings:
    try:
        return Settings()
    except ValidationError as error:
        wrong = "; ".join(f"CAIRN_{str(one['loc'][0]).upper()}: {one['msg']}" for one in error.errors())
        raise SetupError(f"A setting is wrong. {wrong}. The README lists all settings.") from error


def prepare(settings: Settings) -> None:
    """Fetches what is not here yet, and shows how far it is."""
    if settings.embedded_neo4j:
        line = Progress("Neo4j Community 5.26 and its Browser")
        fetch_jars(line)
        line.end()
    if settings.embedder == "onnx" and settings.onnx_model is None:
        started = time.monotonic()
        missing = not (settings.data / "models").exists()
        if missing:
            say("Fetching the embedding model (bge-small-en-v1.5, 34 MB) …")
        default_onnx_folder(settings.data / "models")
        if missing:
            say(f"  done in {time.monotonic() - started:.0f} s")


class Server(uvicorn.Server):
    """Leaves the signals to `serve`, which has more to stop than HTTP."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def serve(settings: Settings) -> None:
    stop_on_signals()
    with locked(settings.data), contextlib.suppress(asyncio.CancelledError):
        require_free_port(settings.host, settings.port, "CAIRN_PORT")
        started = time.monotonic()
        async with running(settings, say) as cairn:
            require_free_port(settings.host, settings.port, "CAIRN_PORT")  # by now Neo4j has taken its own
            server = Server(
                uvicorn.Config(
                    create_app(cairn),
                    host=settings.host,
                    port=settings.port,
                    log_level="warning",
                    lifespan="off",
                    timeout_graceful_shutdown=10,
                )
            )
            spare_the_collector()
            serving = asyncio.create_task(server.serve())
            warming: asyncio.Task[None] | None = None
            try:
                while not server.started and not serving.done():
                    await asyncio.sleep(0.02)
                if server.started:
                    welcome(settings, time.monotonic() - started)
                    seconds = settings.warm_up_seconds if settings.embedded_neo4j else 0.0
                    warming = ahead(
                        warm_up(
                            cairn.graph,
                            cairn.remember,
                            cairn.recall,
                            cairn.reading,
                            seconds,
                            asking=cairn.embedder.local,
                        )
                    )
                await asyncio.shield(serving)
            finally:
                await end((warming,))
                say("Stopping …")
                server.should_exit = True
                await serving
    say("Stopped.")


def spare_the_collector() -> None:
    """What is there now stays; looking through it for garbage again and again is a tenth of a recall's work."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def stop_on_signals() -> None:
    """The first Ctrl-C or SIGTERM ends the service in order; a second one does not disturb that."""
    task = asyncio.current_task()
    assert task is not None
    loop = asyncio.get_running_loop()

    def stop() -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, lambda: say("Still stopping …"))
        task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)


def welcome(settings: Settings, seconds: float) -> None:
    host = "127.0.0.1" if settings.host in ("0.0.0.0", "::") else settings.host
    where = f"http://{host}:{settings.port}/graphql"
    lines = [
        f"Cairn is up after {seconds:.1f} s.",
        "",
        f"  GraphQL        {where}   (open it in a browser to try queries)",
    ]
    if settings.embedded_neo4j:
        server = neo4j_server(settings).settings
        lines += [
            f"  Neo4j Browser  {server.browser_url}",
            f"                 connect to {server.bolt_uri} as {USER}, password in {server.password_file}",
        ]
    else:
        lines.append(f"  Neo4j          {settings.neo4j_uri}")
    lines += [
        f"  Milvus         {settings.milvus_target}",
        f"  Data           {settings.data.absolute()}",
        "",
        "  Try            curl -s " + where + " -H 'Content-Type: application/json' \\",
        """                   -d '{"query": "{ status { ready embedder stores { name engine up } } }"}'""",
        "",
        "  Ctrl-C stops everything.",
    ]
    say("\n".join(lines))


async def reembed(settings: Settings) -> None:
    stop_on_signals()
    with locked(settings.data):
        async with running(settings, say, check_index=False) as cairn:
            line = Progress("Indexing")
            total = await cairn.sync.reembed(line)
            line.end()
            say(f"{total} records are indexed with {cairn.embedder.name} ({cairn.embedder.dimensions} dimensions).")


async def link(settings: Settings) -> None:
    """Joins the memories of a store that exists by what they share; done again, it changes nothing."""
    stop_on_signals()
    with locked(settings.data):
        async with running(settings, say, check_index=False) as cairn:
            line = Progress("Linking")
            (counts,) = await cairn.graph.read("memory_counts")
            done, made, last = 0, 0, ""
            while rows := await cairn.graph.read("memory_keys", after=last, limit=LINKED_AT_ONCE):
                last = rows[-1]["key"]
                made += len(await cairn.bank.link_topics([row["key"] for row in rows]))
                done += len(rows)
                line(done, counts["nodes"])
            line.end()
            say(f"{made} edges were made between {done} memories.")


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Holds the data folder: two services on one folder would spoil each other's Neo4j and Milvus Lite."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            owner = file.read().strip() or "unknown"
            raise SetupError(
                f"The data folder {folder.absolute()} is in use by another Cairn (process {owner}). "
                "Stop that one, or set CAIRN_DATA to another folder."
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


class Progress:
    """One line that shows how far a step is: redrawn on a terminal, at most every few seconds in a log."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._started = time.monotonic()
        self._shown = self._started
        self._drawn = False

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        terminal = sys.stderr.isatty()
        if now - self._shown < (0.1 if terminal else 3.0) and not (self._drawn and done == total):
            return
        self._shown = now
        self._drawn = True
        end = "\r" if terminal else "\n"
        print(f"{self._what}: {done} of {total}", end=end, file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._drawn:
            print(
                f"{self._what}: done in {time.monotonic() - self._started:.0f} s          ", file=sys.stderr, flush=True
            )


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
