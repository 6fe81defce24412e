"""The only importer of `pymilvus`: the connection to Milvus, and the two collections in it."""

import asyncio
import contextlib
import importlib.metadata
import json
import logging
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import grpc
import numpy as np
import numpy.typing as npt
from pymilvus import AsyncMilvusClient, DataType, Function, FunctionType, MilvusException
from pymilvus.client.utils import check_status
from pymilvus.grpc_gen.common_pb2 import DslType, KeyValuePair, PlaceholderGroup, PlaceholderType, PlaceholderValue
from pymilvus.grpc_gen.milvus_pb2 import SearchRequest

from bank.lite import MilvusLite
from graph.errors import SetupError, Unavailable

MEMORIES = "graphembeddings"
LESSONS = "reasoningbank"
KEYS = {MEMORIES: "embedding_id", LESSONS: "rb_id"}

SECONDS = 5.0  # a call that takes longer counts as "Milvus is away"
T = TypeVar("T")
Vector = npt.NDArray[np.float32]

logging.getLogger("pymilvus").setLevel(logging.CRITICAL)  # what goes wrong is reported by us, once


class IndexAway(Unavailable):
    """Milvus does not answer, or not for this."""


class LeanClient(AsyncMilvusClient):  # type: ignore[misc]
    """Its searches speak Milvus' protocol themselves and return hits as they came, in columns. pymilvus looks at dozens of
    options of each search (0.3 ms) and makes two dicts of each hit (3 ms a recall); it has no public word for less, and the
    lock file fixes its version. What fails is asked once more in its way, which knows what to try again and for how long.
    """

    async def search(
        self,
        collection_name: str,
        data: Sequence[Vector] | Sequence[str],
        *,
        anns_field: str,
        filter: str,
        limit: int,
        output_fields: list[str],
    ) -> Any:
        connection = await self._get_connection()
        worded = isinstance(data[0], str)
        values = [one.encode() if isinstance(one, str) else one.astype("<f4").tobytes() for one in data]
        kind = PlaceholderType.VarChar if worded else PlaceholderType.FloatVector
        wanted = PlaceholderGroup(placeholders=[PlaceholderValue(tag="$0", type=kind, values=values)])
        parameters = {"anns_field": anns_field, "topk": str(limit), "round_decimal": "-1", "params": "{}"}
        request = SearchRequest(
            collection_name=collection_name,
            dsl=filter,
            dsl_type=DslType.BoolExprV1,
            placeholder_group=wanted.SerializeToString(),
            nq=len(values),
            output_fields=output_fields,
            search_params=[KeyValuePair(key=key, value=value) for key, value in parameters.items()],
            use_default_consistency=True,
        )
        try:
            return await self._found(connection, request, [("dbname", self._config.db_name)])
        except (MilvusException, grpc.RpcError):
            return await super().search(
                collection_name,
                list(data),
                anns_field=anns_field,
                filter=filter,
                limit=limit,
                output_fields=output_fields,
            )

    async def _connect(self) -> None:
        await super()._connect()
        connection = self._handler

        async def columns(request: Any, *_: Any, context: Any, **__: Any) -> Any:
            return await self._found(connection, request, context.to_grpc_metadata())

        connection._execute_search = columns

    async def _found(self, connection: Any, request: Any, metadata: Any) -> Any:
        answer = await connection._async_stub.Search(request, timeout=SECONDS, metadata=metadata)
        check_status(answer.status)
        return answer.results


class Milvus:
    """A Milvus with our two collections. Everything in them can be made again from the graph.

    `uri` is a server's address or, without "://", the path of a file that Milvus Lite keeps.
    """

    def __init__(self, uri: str, token: str, database: str, embedder: str, dimensions: int) -> None:
        self._uri = uri
        self._token = token
        self._database = database
        self._embedder = embedder
        self._dimensions = dimensions
        self._open_client: AsyncMilvusClient | None = None
        self.local = "://" not in uri
        self._lite = MilvusLite(Path(uri)) if self.local else None
        self.engine = "Milvus Lite" if self.local else "Milvus"

    # ------------------------------------------------------------ the connection

    @property
    def client(self) -> AsyncMilvusClient:
        if self._open_client is None:
            raise IndexAway("Milvus is not connected")
        return self._open_client

    async def connect(self) -> None:
        """Connects, anew if it was connected before: a client that lost its server may take minutes to look again."""
        await self.close()
        try:
            address = await asyncio.to_thread(self._lite.start) if self._lite else self._uri
            client = LeanClient(
                uri=address,
                dedicated=True,  # a connection of our own: one that others share is not ours to change
                token=self._token,
                db_name="" if self.local else self._database,
                timeout=SECONDS,
                # Milvus Lite hangs up on a client that pings it while nothing is going on.
                grpc_options={"grpc.keepalive_time_ms": 2**31 - 1} if self.local else {},
            )
        except (MilvusException, grpc.RpcError, TimeoutError, OSError) as error:
            raise IndexAway(f"Milvus at {self._uri} does not answer: {_short(error)}") from error
        self._open_client = client
        self.engine = await self._name_of_engine(client)

    async def _name_of_engine(self, client: AsyncMilvusClient) -> str:
        if self.local:
            return f"Milvus Lite {importlib.metadata.version('milvus-lite')}"
        try:
            async with asyncio.timeout(SECONDS):
                return f"Milvus {await client.get_server_version(timeout=SECONDS)}"
        except (MilvusException, grpc.RpcError, TimeoutError, OSError):
            return "Milvus"  # one that does not tell its version

    async def close(self) -> None:
        if self._open_client is not None:
            client, self._open_client = self._open_client, None
            with contextlib.suppress(MilvusException, grpc.RpcError, TimeoutError, OSError):
                async with asyncio.timeout(SECONDS):
                    await client.close()
        if self._lite:
            await asyncio.to_thread(self._lite.stop)

    async def put_aside_if_damaged(self) -> bool:
        """Whether Milvus Lite answered from a damaged file, which it has to be started without."""
        return self._lite is not None and await asyncio.to_thread(self._lite.put_aside_if_damaged)

    async def check(self) -> str | None:
        """None when Milvus answers, otherwise why not."""
        try:
            missing = await self.missing_collections()
        except Unavailable as error:
            return str(error)
        return f"no collection {', '.join(missing)}; run the mutation repair(dryRun: false)" if missing else None

    async def call(self, call: Awaitable[T], seconds: float = SECONDS) -> T:
        try:
            async with asyncio.timeout(seconds):
                return await call
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # gRPC cancels what is under way on a connection that is closed, as happens when it is made anew.
            raise IndexAway("Milvus did not answer before it was connected to again") from error
        except (MilvusException, grpc.RpcError, TimeoutError, OSError) as error:
            raise IndexAway(f"Milvus does not answer: {_short(error)}") from error

    # ------------------------------------------------------------ collections

    async def open(self) -> None:
        """Makes the collections that are missing; refuses those that another embedder has filled."""
        missing = await self.missing_collections()
        await asyncio.gather(*(self._create(name) for name in missing))
        for name in (name for name in KEYS if name not in missing):
            described = await self.call(self.client.describe_collection(name, timeout=SECONDS))
            stored = _embedder_of(described.get("description", ""))
            if stored != (self._embedder, self._dimensions):
                raise SetupError(
                    f"The index was made with the embedder {stored[0]} ({stored[1]} dimensions); this service is set "
                    f"to {self._embedder} ({self._dimensions}). Set CAIRN_EMBEDDER back, or stop the service and run "
                    "`make reembed` to index everything anew."
                )
            await self.call(self.client.load_collection(name, timeout=SECONDS))

    async def rebuild(self) -> None:
        """Drops both collections and makes them anew, empty."""
        for name in KEYS:
            if await self.call(self.client.has_collection(name, timeout=SECONDS)):
                await self.call(self.client.drop_collection(name, timeout=60), 60)
        await asyncio.gather(*(self._create(name) for name in KEYS))

    async def missing_collections(self) -> list[str]:
        return [name for name in KEYS if not await self.call(self.client.has_collection(name, timeout=SECONDS))]

    async def load(self) -> None:
        """Makes sure that both collections can be searched."""
        if missing := await self.missing_collections():
            raise IndexAway(f"Milvus has no collection {', '.join(missing)}")
        for name in KEYS:
            await self.call(self.client.load_collection(name, timeout=SECONDS))

    async def _create(self, name: str) -> None:
        description = json.dumps({"embedder": self._embedder, "dimensions": self._dimensions})
        schema = self.client.create_schema(auto_id=False, enable_dynamic_field=False, description=description)
        dense: tuple[str, ...]
        if name == MEMORIES:
            schema.add_field("embedding_id", DataType.VARCHAR, is_primary=True, max_length=1024)
            schema.add_field("pointer_to_node", DataType.VARCHAR, max_length=512)
            words, sparse, dense = "text", "sparse_vector", ("dense_vector",)
            for field in ("type", "conv_id"):
                schema.add_field(field, DataType.VARCHAR, max_length=512)
            for field in ("ingestion_time", "window_start", "window_end"):
                schema.add_field(field, DataType.INT64)
        else:
            schema.add_field("rb_id", DataType.INT64, is_primary=True)
            schema.add_field("key_lesson", DataType.VARCHAR, max_length=65_535)
            words, sparse = "context_to_prefer", "context_sparse_vector"
            dense = ("key_lesson_vector", "context_to_prefer_vector")
            for field in ("namespace", "team", "scope", "outcome", "status"):
                schema.add_field(field, DataType.VARCHAR, max_length=512)
            schema.add_field(
                "link_nodes", DataType.ARRAY, element_type=DataType.VARCHAR, max_capacity=4_096, max_length=512
            )
        schema.add_field(
            words, DataType.VARCHAR, max_length=65_535, enable_analyzer=True, analyzer_params={"type": "english"}
        )
        schema.add_field(sparse, DataType.SPARSE_FLOAT_VECTOR)
        for field in dense:
            schema.add_field(field, DataType.FLOAT_VECTOR, dim=self._dimensions)
        schema.add_field("tags", DataType.ARRAY, element_type=DataType.VARCHAR, max_capacity=4_096, max_length=512)
        schema.add_field("tenant", DataType.VARCHAR, max_length=512)
        schema.add_field("version", DataType.INT64)
        schema.add_field("revision", DataType.INT64)
        schema.add_function(
            Function(
                name=f"{words}_bm25",
                function_type=FunctionType.BM25,
                input_field_names=[words],
                output_field_names=[sparse],
            )
        )
        await self.call(self.client.create_collection(name, schema=schema, consistency_level="Strong", timeout=60), 60)
        # All at once: pymilvus waits half a second for each.
        indexes = [self._index(name, field, "AUTOINDEX", "COSINE") for field in dense]
        indexes.append(self._index(name, sparse, "SPARSE_INVERTED_INDEX", "BM25"))
        await asyncio.gather(*indexes)
        await self.call(self.client.load_collection(name, timeout=60), 60)

    async def _index(self, name: str, field: str, kind: str, metric: str) -> None:
        index = self.client.prepare_index_params()
        index.add_index(field, index_type=kind, metric_type=metric)
        await self.call(self.client.create_index(name, index, timeout=60), 60)


def _embedder_of(description: str) -> tuple[str, int]:
    try:
        said = json.loads(description)
        return str(said["embedder"]), int(said["dimensions"])
    except (ValueError, KeyError, TypeError):
        return "an unknown one", 0


def _short(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__} {text[:200]}".strip()
