"""What is up, and what answers there."""

from api.context import Cairn
from api.types import Status, StoreStatus
from graph.errors import CairnError


async def status_of(cairn: Cairn, version: str) -> Status:
    """Never fails: a store that is away is part of the answer."""
    graph_trouble: str | None = None
    engine, pending = "Neo4j", 0
    try:
        rows = await cairn.graph.read("server")
        engine = rows[0]["engine"] if rows else engine
        pending = await cairn.sync.pending()
    except CairnError as error:
        graph_trouble = str(error)
    milvus = cairn.vectors.milvus
    index_trouble = await milvus.check() or cairn.sync.trouble
    return Status(
        version=version,
        ready=graph_trouble is None,
        stores=[
            StoreStatus(name="graph", engine=engine, up=graph_trouble is None, detail=graph_trouble),
            StoreStatus(name="index", engine=milvus.engine, up=index_trouble is None, detail=index_trouble),
        ],
        embedder=cairn.embedder.name,
        dimensions=cairn.embedder.dimensions,
        pending=pending,
    )
