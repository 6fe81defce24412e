"""The first file to read: settings -> clients -> Graph -> Bank -> routes. The whole object graph is wired here."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable

from starlette.applications import Starlette

import graph.session
from api.context import Cairn
from api.http import routes
from api.settings import Settings
from bank.bank import Bank
from bank.consolidate import Consolidation
from bank.distil import Distiller, RulesDistiller
from bank.distil_rules import compare
from bank.embed import Embedder, Model, OnnxModel, WordLlamaModel, default_onnx_folder
from bank.harvest import Harvest
from bank.learn import RULES, Learning
from bank.lesson_links import LessonLinks
from bank.milvus import Milvus
from bank.neighbours import Neighbours
from bank.offers import Offers
from bank.prune import Prune
from bank.queue import Workers
from bank.reading import ReadAhead
from bank.recall import Recall
from bank.remember import Remember
from bank.scopes import Scopes
from bank.search import Search
from bank.sessions import Sessions
from bank.signals import Signals
from bank.sweeps import SweepKind, Sweeps
from bank.sync import Sync
from bank.upkeep import Upkeep
from bank.vectors import Vectors
from bank.words import WordCache
from graph.errors import SetupError
from graph.schema import apply_schema
from graph.server import USER, Neo4jServer, ServerSettings
from graph.tasks import end

log = logging.getLogger("cairn")

REMOTE_QUERY_SECONDS = 5.0  # how long a question waits for its vector; then it is answered without one


def neo4j_server(settings: Settings) -> Neo4jServer:
    return Neo4jServer(
        ServerSettings(
            home=settings.data / "neo4j",
            bolt_port=settings.neo4j_bolt_port,
            http_port=settings.neo4j_http_port,
            heap=settings.neo4j_heap,
        )
    )


def load_model(settings: Settings) -> Model:
    if settings.embedder == "wordllama":
        return WordLlamaModel()
    if settings.embedder == "openai":
        from bank.openai_embedder import OpenAIModel  # most of a second that only this embedder needs

        key = settings.openai_api_key
        return OpenAIModel(
            model=settings.openai_model,
            dimensions=settings.openai_dimensions,
            api_key=key.get_secret_value() if key else None,
            base_url=settings.openai_base_url,
            timeout=settings.openai_timeout,
        )
    return OnnxModel(settings.onnx_model or default_onnx_folder(settings.data / "models"))


def load_distiller(settings: Settings) -> Distiller:
    if settings.distiller == "openai":
        from bank.distil_openai import OpenAIDistiller  # most of a second that only this distiller needs

        key, base_url = settings.distiller_endpoint
        return OpenAIDistiller(settings.distiller_model, key, base_url, settings.distiller_timeout)
    return RulesDistiller(compare)


@contextlib.asynccontextmanager
async def running(
    settings: Settings, say: Callable[[str], None] = lambda line: None, check_index: bool = True
) -> AsyncIterator[Cairn]:
    """Everything that the service is made of, started in order and stopped in the opposite one."""
    async with contextlib.AsyncExitStack() as stack:
        settings.data.mkdir(parents=True, exist_ok=True)
        loading = asyncio.create_task(asyncio.to_thread(load_model, settings))  # while Neo4j starts
        stack.push_async_callback(_settle, loading)
        if settings.embedded_neo4j:
            server = neo4j_server(settings)
            stack.push_async_callback(server.stop)
            say("Neo4j is starting …")
            await server.start()
            watching = asyncio.create_task(server.watch(), name="cairn-neo4j")
            stack.push_async_callback(end, (watching,))
            uri, user, password = server.settings.bolt_uri, USER, server.password
        else:
            assert settings.neo4j_uri is not None
            uri, user, password = settings.neo4j_uri, settings.neo4j_user, settings.neo4j_secret()
        the_graph = await graph.session.connect(uri, user, password, settings.tenant, settings.neo4j_database)
        stack.push_async_callback(the_graph.close)
        await apply_schema(the_graph, say=say)
        learning = Learning(RULES[settings.confidence_rule], settings.most_from_one_source)
        offers = Offers(the_graph, settings.withhold_share)
        stack.push_async_callback(offers.stop)
        signals = Signals(the_graph, learning, offers)
        await signals.settle_rule(say)
        embedder = Embedder(
            await loading, query_seconds=REMOTE_QUERY_SECONDS if settings.embedder == "openai" else None
        )
        say("Milvus is starting …")
        milvus = Milvus(
            settings.milvus_target,
            settings.milvus_token.get_secret_value(),
            settings.milvus_database,
            embedder.name,
            embedder.dimensions,
        )
        stack.push_async_callback(milvus.close)
        vectors = Vectors(milvus, settings.tenant)
        words = WordCache()
        reading = ReadAhead(words)
        stack.push_async_callback(reading.stop)
        sync = Sync(the_graph, vectors, embedder, reading, alone=milvus.local)
        await sync.open(check_index)
        stack.push_async_callback(sync.stop)
        search = Search(the_graph, vectors, embedder, sync, offers)
        harvest = Harvest(the_graph, sync, vectors, embedder, learning)
        distiller = load_distiller(settings)
        stack.push_async_callback(distiller.close)
        workers = Workers(the_graph, harvest, distiller, settings.workers, settings.worker_lease)
        if check_index:
            workers.start()
        stack.push_async_callback(workers.stop)
        neighbours = Neighbours(the_graph, vectors)
        upkeep = Upkeep(the_graph, neighbours)
        consolidation = Consolidation(the_graph, sync, neighbours, upkeep, learning)
        prune = Prune(the_graph, sync, learning)
        steps = {
            SweepKind.PRUNE: prune.step,
            SweepKind.CONSOLIDATE: consolidation.step,
            SweepKind.SUGGEST: upkeep.keep_suggestions,
        }
        sweeps = Sweeps(the_graph, steps, settings.sweep_hours)
        if check_index:
            sweeps.open()
        stack.push_async_callback(sweeps.stop)
        yield Cairn(
            settings=settings,
            graph=the_graph,
            vectors=vectors,
            embedder=embedder,
            sync=sync,
            remember=Remember(the_graph, sync, learning),
            bank=Bank(the_graph, sync),
            signals=signals,
            links=LessonLinks(the_graph),
            offers=offers,
            prune=prune,
            scopes=Scopes(the_graph, sync),
            upkeep=upkeep,
            consolidation=consolidation,
            sweeps=sweeps,
            search=search,
            recall=Recall(the_graph, sync, search, offers, words),
            reading=reading,
            sessions=Sessions(the_graph, sync, learning, workers.wake),
        )


def create_app(cairn: Cairn) -> Starlette:
    return Starlette(routes=routes(cairn))


async def _settle(task: "asyncio.Task[Model]") -> None:
    with contextlib.suppress(asyncio.CancelledError, SetupError):
        await task
