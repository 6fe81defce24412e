"""The only importer of `pymilvus`: the two collections, their rows, and the searches by meaning and by words."""

import asyncio
import contextlib
import importlib.metadata
import itertools
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import grpc
import numpy as np
import numpy.typing as npt
from pymilvus import AsyncMilvusClient, DataType, Function, FunctionType, MilvusException
from pymilvus.client.utils import check_status
from pymilvus.grpc_gen.common_pb2 import DslType, KeyValuePair, PlaceholderGroup, PlaceholderType, PlaceholderValue
from pymilvus.grpc_gen.milvus_pb2 import SearchRequest

from bank import expressions
from bank.gate import Gate
from bank.hits import Hits, Stamp
from bank.kept import Kept
from bank.lite import MilvusLite
from bank.model import LessonQuery, LessonStatus
from graph.errors import SetupError, Unavailable
from graph.model import MemoryFilter, embedding_id, memory_of

MEMORIES = "graphembeddings"
LESSONS = "reasoningbank"
KEYS = {MEMORIES: "embedding_id", LESSONS: "rb_id"}
COMPARED = {MEMORIES: ("revision", "version", "type"), LESSONS: ("revision", "version", "link_nodes")}

SECONDS = 5.0  # a call that takes longer counts as "Milvus is away"
WRITE_SECONDS = 8.0  # for what nobody waits for
PAGE = 1_000
KEPT_VECTORS = 48_000_000  # bytes of them: 30,000 of 384 dimensions
T = TypeVar("T")
Vector = npt.NDArray[np.float32]

logging.getLogger("pymilvus").setLevel(logging.CRITICAL)  # what goes wrong is reported by us, once


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


def _hits(found: Any, collection: str, tenant: str) -> list[Hits]:
    """The lists of hits in what a search returned in columns, one list after the other. Whose a row is its key says, whatever
    record it names; one whose key no memory can have is nobody's."""
    fields = {field.field_name: field.scalars.long_data.data for field in found.fields_data}
    if not fields:
        return [Hits() for _ in found.topks]
    ends = list(itertools.accumulate(found.topks, initial=0))
    columns = [fields["revision"], fields["version"], found.scores]
    if collection == LESSONS:
        columns.insert(0, found.ids.int_id.data)
    else:
        columns.insert(0, owners := [memory_of(tenant, key) for key in found.ids.str_id.data])
        if None in owners:
            named = [id is not None for id in owners]
            columns = [list(itertools.compress(column, named)) for column in columns]
            ends = [sum(named[:end]) for end in ends]
    return [Hits.of(*(column[a:b] for column in columns)) for a, b in itertools.pairwise(ends)]


def comparable(values: Mapping[str, Any]) -> dict[str, Any]:
    """Lists in one order, whichever store they come from."""
    return {
        name: value if value is None or isinstance(value, str | int) else sorted(value)
        for name, value in values.items()
    }


class IndexAway(Unavailable):
    """Milvus does not answer, or not for this."""


class Vectors:
    """The index. Everything in it can be made again from the graph.

    `uri` is a server's address or, without "://", the path of a file that Milvus Lite keeps.
    """

    def __init__(self, uri: str, token: str, database: str, tenant: str, embedder: str, dimensions: int) -> None:
        self._uri = uri
        self._token = token
        self._database = database
        self._tenant = tenant
        self._embedder = embedder
        self._dimensions = dimensions
        self._open_client: AsyncMilvusClient | None = None
        self._kept: Kept[tuple[str, Any, Stamp], Vector] = Kept(KEPT_VECTORS, lambda vector: vector.nbytes)
        self._gate = Gate()
        self._filled: set[str] = set()  # collections that had rows when they were searched last
        self._empty: set[str] = set()  # those that have none, as far as only this process writes to them
        self._written = 0
        self.local = "://" not in uri
        self._lite = MilvusLite(Path(uri)) if self.local else None
        self.engine = "Milvus Lite" if self.local else "Milvus"

    # ------------------------------------------------------------ the connection

    @property
    def _client(self) -> AsyncMilvusClient:
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

    async def _call(self, call: Awaitable[T], seconds: float = SECONDS) -> T:
        try:
            async with asyncio.timeout(seconds):
                return await call
        except (MilvusException, grpc.RpcError, TimeoutError, OSError) as error:
            raise IndexAway(f"Milvus does not answer: {_short(error)}") from error

    # ------------------------------------------------------------ collections

    async def open(self) -> bool:
        """Makes the collections that are missing, and says whether there were any; refuses those that another embedder has
        filled."""
        missing = await self.missing_collections()
        await asyncio.gather(*(self._create(name) for name in missing))
        for name in (name for name in KEYS if name not in missing):
            described = await self._call(self._client.describe_collection(name, timeout=SECONDS))
            stored = _embedder_of(described.get("description", ""))
            if stored != (self._embedder, self._dimensions):
                raise SetupError(
                    f"The index was made with the embedder {stored[0]} ({stored[1]} dimensions); this service is set "
                    f"to {self._embedder} ({self._dimensions}). Set CAIRN_EMBEDDER back, or stop the service and run "
                    "`make reembed` to index everything anew."
                )
            await self._call(self._client.load_collection(name, timeout=SECONDS))
        return bool(missing)

    async def rebuild(self) -> None:
        """Drops both collections and makes them anew, empty."""
        for name in KEYS:
            if await self._call(self._client.has_collection(name, timeout=SECONDS)):
                await self._call(self._client.drop_collection(name, timeout=60), 60)
        await asyncio.gather(*(self._create(name) for name in KEYS))

    async def missing_collections(self) -> list[str]:
        return [name for name in KEYS if not await self._call(self._client.has_collection(name, timeout=SECONDS))]

    async def load(self) -> None:
        """Makes sure that both collections can be searched."""
        if missing := await self.missing_collections():
            raise IndexAway(f"Milvus has no collection {', '.join(missing)}")
        for name in KEYS:
            await self._call(self._client.load_collection(name, timeout=SECONDS))

    async def _create(self, name: str) -> None:
        description = json.dumps({"embedder": self._embedder, "dimensions": self._dimensions})
        schema = self._client.create_schema(auto_id=False, enable_dynamic_field=False, description=description)
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
        await self._call(
            self._client.create_collection(name, schema=schema, consistency_level="Strong", timeout=60), 60
        )
        # All at once: pymilvus waits half a second for each.
        indexes = [self._index(name, field, "AUTOINDEX", "COSINE") for field in dense]
        indexes.append(self._index(name, sparse, "SPARSE_INVERTED_INDEX", "BM25"))
        await asyncio.gather(*indexes)
        await self._call(self._client.load_collection(name, timeout=60), 60)

    async def _index(self, name: str, field: str, kind: str, metric: str) -> None:
        index = self._client.prepare_index_params()
        index.add_index(field, index_type=kind, metric_type=metric)
        await self._call(self._client.create_index(name, index, timeout=60), 60)

    # ------------------------------------------------------------ rows

    async def insert(self, collection: str, rows: list[dict[str, Any]], seconds: float = WRITE_SECONDS) -> None:
        """Adds rows that are not there yet: cheap at any size."""
        if rows:
            try:
                await self._call(self._client.insert(collection, rows, timeout=seconds), seconds)
            finally:
                self._no_longer_empty(collection)

    async def upsert(self, collection: str, rows: list[dict[str, Any]], seconds: float = WRITE_SECONDS) -> None:
        """Replaces rows, or adds them. Milvus Lite takes the old ones away first, so that for a moment neither is there: no
        search of ours looks then. A server replaces them in one."""
        if rows:

            async def replace() -> None:
                async with self._gate.replacing() if self.local else contextlib.nullcontext():
                    await self._client.upsert(collection, rows, timeout=seconds)

            try:
                await self._call(replace(), seconds)
            finally:
                self._no_longer_empty(collection)

    def _no_longer_empty(self, collection: str) -> None:
        """Also where a write got no answer: it may have been done."""
        self._written += 1
        self._empty.discard(collection)

    async def delete(self, collection: str, keys: Sequence[Any]) -> None:
        if keys:
            ours = expressions.of_rows(self._tenant, KEYS[collection], keys)
            await self._call(self._client.delete(collection, filter=ours, timeout=WRITE_SECONDS), WRITE_SECONDS)

    async def count(self, collection: str, keys: Sequence[Any] | None = None) -> int:
        """How many rows there are, of these keys or in all; a key that was inserted twice counts twice."""
        expression = (
            expressions.of_tenant(self._tenant)
            if keys is None
            else expressions.of_rows(self._tenant, KEYS[collection], keys)
        )
        rows = await self._call(
            self._client.query(collection, filter=expression, output_fields=["count(*)"], timeout=SECONDS)
        )
        return int(rows[0]["count(*)"])

    async def keys(self, collection: str) -> AsyncIterator[list[tuple[Any, Any]]]:
        """Every row's primary key and whose it is, by pages in the order of the keys."""
        key = KEYS[collection]
        last: Any = "" if collection == MEMORIES else -1
        while True:
            rows = await self._call(
                self._client.query(
                    collection,
                    filter=expressions.of_rows_after(self._tenant, key, last),
                    output_fields=[key],
                    limit=PAGE,
                    timeout=30,
                    # As pymilvus' own iterator asks, which only its blocking client has: otherwise a server may answer
                    # with any rows that fit.
                    iterator="True",
                    reduce_stop_for_best="True",
                ),
                30,
            )
            if not rows:
                return
            yield [(row[key], self._owner(collection, row[key])) for row in rows]
            last = max(row[key] for row in rows)

    async def revisions_of(self, collection: str, keys: Sequence[Any]) -> dict[Any, dict[str, Any]]:
        """What is indexed, by primary key: the revision, and what else can be compared without reading texts."""
        if not keys:
            return {}
        key = KEYS[collection]
        rows = await self._call(
            self._client.query(
                collection,
                filter=expressions.of_rows(self._tenant, KEYS[collection], keys),
                output_fields=[key, *COMPARED[collection]],
                timeout=SECONDS,
            )
        )
        rows = sorted(rows, key=lambda row: int(row["revision"]))  # of two of one key the later
        return {row[key]: comparable({name: row[name] for name in COMPARED[collection]}) for row in rows}

    # ------------------------------------------------------------ searches

    async def memories_by_meaning(self, vectors: Sequence[Vector], filter: MemoryFilter, limit: int) -> list[Hits]:
        """Several questions in one call."""
        return await self._searches(
            MEMORIES, "dense_vector", vectors, expressions.of_memories(self._tenant, filter), limit
        )

    async def memories_by_words(self, texts: Sequence[str], filter: MemoryFilter, limit: int) -> list[Hits]:
        """Several questions in one call. A word that stands n times in a text counts n times."""
        return await self._searches(
            MEMORIES, "sparse_vector", texts, expressions.of_memories(self._tenant, filter), limit
        )

    async def memory_vectors(self, stamps: Mapping[str, Stamp]) -> dict[str, Vector]:
        """By id; a memory that is indexed as something else is left out."""
        return await self._stored_vectors(MEMORIES, "dense_vector", stamps)

    async def lessons_by_meaning(self, vector: Vector, query: LessonQuery, limit: int) -> tuple[Hits, Hits]:
        """By the meaning of the lesson, and by that of its context."""
        expression = expressions.of_lessons(self._tenant, query)
        (by_lesson,), (by_context,) = await asyncio.gather(
            self._searches(LESSONS, "key_lesson_vector", [vector], expression, limit),
            self._searches(LESSONS, "context_to_prefer_vector", [vector], expression, limit),
        )
        return by_lesson, by_context

    async def lessons_by_words(self, query: LessonQuery, limit: int) -> Hits:
        """By the words of their contexts."""
        expression = expressions.of_lessons(self._tenant, query)
        (found,) = await self._searches(LESSONS, "context_sparse_vector", [query.query], expression, limit)
        return found

    async def near_lessons(
        self, vectors: Sequence[Vector], namespace: str | None, limit: int, status: LessonStatus | None = None
    ) -> list[Hits]:
        """The lessons of a namespace or of all, whatever their status unless one is asked for, that are nearest in meaning
        to each of these vectors."""
        expression = expressions.of_namespace(self._tenant, namespace, status)
        return await self._searches(LESSONS, "key_lesson_vector", vectors, expression, limit)

    async def lesson_vectors(self, stamps: Mapping[int, Stamp]) -> dict[int, Vector]:
        """By rb_id; a lesson that is indexed as something else is left out."""
        return await self._stored_vectors(LESSONS, "key_lesson_vector", stamps)

    async def vectors_of_lessons(self, rb_ids: Iterable[int]) -> dict[int, Vector]:
        """By rb_id, in whatever revision it is indexed; for whoever goes through all of them: nothing is kept."""
        rows = await self._rows_with_vectors(LESSONS, "key_lesson_vector", rb_ids)
        return {row["rb_id"]: np.asarray(row["key_lesson_vector"], np.float32) for row in rows}

    async def _stored_vectors(self, collection: str, field: str, stamps: Mapping[Any, Stamp]) -> dict[Any, Vector]:
        """Those asked for last are kept: a revision names one content for ever, and so one vector."""
        kept = {key: self._kept.get((collection, key, stamp)) for key, stamp in stamps.items()}
        found = {key: vector for key, vector in kept.items() if vector is not None}
        missing = [key for key in stamps if key not in found]
        for row in await self._rows_with_vectors(collection, field, missing):
            key, stamp = self._owner(collection, row[KEYS[collection]]), (row["revision"], row["version"])
            vector = np.asarray(row[field], np.float32)
            self._kept.put((collection, key, stamp), vector)
            if stamp == stamps[key]:
                found[key] = vector
        return found

    def _owner(self, collection: str, key: Any) -> Any:
        """Whose row this is: a memory's id, or a lesson's; None: of no memory."""
        return memory_of(self._tenant, key) if collection == MEMORIES else key

    async def _rows_with_vectors(self, collection: str, field: str, owners: Iterable[Any]) -> list[dict[str, Any]]:
        keys = [embedding_id(self._tenant, one) if collection == MEMORIES else one for one in owners]
        if not keys:
            return []
        rows: list[dict[str, Any]] = await self._call(
            self._client.query(
                collection,
                filter=expressions.of_rows(self._tenant, KEYS[collection], keys),
                output_fields=[KEYS[collection], "revision", "version", field],
                timeout=SECONDS,
            )
        )
        return rows

    async def _searches(
        self, collection: str, field: str, wanted: Sequence[Vector] | Sequence[str], expression: str, limit: int
    ) -> list[Hits]:
        """A list of hits for each thing wanted."""
        if not wanted:
            return []
        if await self._is_empty(collection):
            return [Hits() for _ in wanted]

        async def look() -> Any:
            async with self._gate.looking():
                # Without `timeout`, for which pymilvus makes a task: `_call` and the request itself have one.
                return await self._client.search(
                    collection,
                    wanted,
                    anns_field=field,
                    filter=expression,
                    limit=limit,
                    output_fields=["revision", "version"],
                )

        try:
            found = await self._call(look())
        except Unavailable:
            self._filled.discard(collection)  # its last row may be gone
            if isinstance(wanted[0], str) and await self._is_empty(collection):
                return [Hits() for _ in wanted]
            raise
        return _hits(found, collection, self._tenant)

    async def _is_empty(self, collection: str) -> bool:
        """Without rows Milvus Lite cannot compute BM25, and complains aloud: it is not asked then."""
        if collection in self._filled:
            return False
        if collection in self._empty:
            return True
        written = self._written
        rows = await self._call(self._client.query(collection, filter="", output_fields=["count(*)"], timeout=SECONDS))
        if int(rows[0]["count(*)"]) == 0:
            if self.local and written == self._written:
                self._empty.add(collection)
            return True
        self._filled.add(collection)
        return False


def _embedder_of(description: str) -> tuple[str, int]:
    try:
        said = json.loads(description)
        return str(said["embedder"]), int(said["dimensions"])
    except (ValueError, KeyError, TypeError):
        return "an unknown one", 0


def _short(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__} {text[:200]}".strip()
