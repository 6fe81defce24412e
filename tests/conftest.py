"""Real Neo4j, real Milvus, real HTTP. One Neo4j for the whole run; a service of its own, with a tenant and an index of
its own, for each test module. CAIRN_TEST_NEO4J_URI and CAIRN_TEST_MILVUS_URI run the same suite on servers elsewhere."""

import os
import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from api.settings import Settings
from graph.server import USER, Neo4jServer, ServerSettings
from graph.session import connect
from tests.ports import free_port
from tests.service import Service, serving

# In a short run Neo4j is mostly busy with compiling its own code and with planning statements anew as the data grows.
# The quick compiler alone, and plans that are kept, spare most of that. A user's Neo4j runs with neither. With the quick
# compiler Java has room for 48 MB of code, which the statements of a whole run fill; a user's has the 240 of both.
os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m")
os.environ.setdefault("CAIRN_WARM_UP_SECONDS", "0")  # for what is started by its command line
KEPT_PLANS = "dbms.cypher.min_replan_interval=1h\n"
SHARED = Path(__file__).parent.parent.parent / "shared"


# What takes longest comes first, so that the workers of a parallel run end together.
LONGEST_FIRST = (
    "crash/test_crash.py",
    "crash/test_sessions_crash.py",
    "api/test_cli.py",
    "api/test_recall_arms.py",
    "crash/test_neo4j_away.py",
    "crash/test_schedules.py",
    "crash/test_two_services.py",
    "crash/test_milvus_away.py",
    "hostile/test_fuzz.py",
    "bank/test_reembed.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {Path(__file__).parent / name: place for place, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))


@pytest.fixture(scope="session")
async def neo4j(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[dict[str, str]]:
    """The settings that lead to a Neo4j."""
    if uri := os.environ.get("CAIRN_TEST_NEO4J_URI"):
        yield {
            "neo4j_uri": uri,
            "neo4j_user": os.environ.get("CAIRN_TEST_NEO4J_USER", USER),
            "neo4j_password": os.environ.get("CAIRN_TEST_NEO4J_PASSWORD", ""),
        }
        return
    home = tmp_path_factory.mktemp("neo4j")
    server = Neo4jServer(
        ServerSettings(
            home=home,
            bolt_port=free_port(),
            http_port=free_port(),
            archive_classes=False,
            more_configuration=KEPT_PLANS,
        )
    )
    await server.start()
    yield {"neo4j_uri": server.settings.bolt_uri, "neo4j_user": USER, "neo4j_password": server.password}
    await server.stop()


@pytest.fixture(scope="module")
async def settings(neo4j: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Settings]:
    """The settings of a service with nothing in it: a new tenant, a new index. Afterwards nothing is left of that tenant,
    nor of those whose names begin with its: lesson ids are unique in a database, and the next module wants them too."""
    milvus = {}
    if uri := os.environ.get("CAIRN_TEST_MILVUS_URI"):
        milvus = {"milvus_uri": uri, "milvus_token": os.environ.get("CAIRN_TEST_MILVUS_TOKEN", "")}
    tenant = f"test-{secrets.token_hex(4)}"
    yield Settings(
        **neo4j,
        **milvus,
        data=tmp_path_factory.mktemp("data"),
        tenant=tenant,
        port=free_port(),
        embedder="wordllama",
    )
    graph = await connect(neo4j["neo4j_uri"], neo4j["neo4j_user"], neo4j["neo4j_password"], tenant)
    await graph.define(
        f"MATCH (n) WHERE n.tenant STARTS WITH '{tenant}' CALL (n) {{ DETACH DELETE n }} IN TRANSACTIONS"
    )
    await graph.close()


@pytest.fixture(scope="module")
async def cairn(settings: Settings) -> AsyncIterator[Service]:
    """A running service and a client that speaks to it over HTTP."""
    async with serving(settings) as service:
        yield service
