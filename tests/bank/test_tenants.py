"""Two tenants on one Neo4j and one Milvus: neither's writes and deletions reach the other's rows."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from api.settings import Settings
from graph.model import DEFAULT_TENANT, embedding_id, memory_of
from tests.milvus import MilvusServer
from tests.ports import free_port
from tests.service import Refused, Service, serving

LESSON = {"rbId": "7001", "keyLesson": "Compare orders with deliveries.", "contextToPrefer": "A dip in sales."}
FOUND = '{ searchLessons(query: "dip in sales") { lesson { rbId keyLesson } } }'
DELETE = "mutation($id: ID!) { deleteLesson(rbId: $id) { deleted } }"


@pytest.fixture(scope="module")
async def tenants(
    settings: Settings, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[Service, Service]]:
    milvus = MilvusServer(tmp_path_factory.mktemp("milvus"))
    milvus.start()

    def own(name: str) -> Settings:
        data: Path = tmp_path_factory.mktemp(name)
        ours = {"milvus_uri": milvus.uri, "milvus_database": "", "port": free_port(), "data": data}
        return settings.model_copy(update={**ours, "tenant": f"{settings.tenant}-{name}"})

    try:
        async with serving(own("a")) as one, serving(own("b")) as other:
            yield one, other
    finally:
        milvus.stop()


async def _lessons(cairn: Service) -> list[str]:
    return [hit["lesson"]["keyLesson"] for hit in (await cairn.ask(FOUND))["searchLessons"]]


async def test_a_lesson_id_belongs_to_one_tenant(tenants: tuple[Service, Service]) -> None:
    """It is the key of a row that both would share. The second is told which id, and what to do; nothing is stored."""
    one, other = tenants
    await one.remember(lessons=[LESSON])
    theirs = {**LESSON, "keyLesson": "The other's own lesson."}
    for call in (
        other.remember(memories=[{"event": {"id": "N1", "text": "It fell."}}], lessons=[theirs]),
        other.ask("mutation($l: LessonInput!) { recordLesson(input: $l) { rbId } }", l=theirs),
    ):
        with pytest.raises(
            Refused, match=r"tenant has the lesson id 7001: leave rbId out, or choose another"
        ) as refused:
            await call
        assert (refused.value.code, refused.value.fields) == ("CONFLICT", ["rbId"])
    assert (await other.ask('{ memory(id: "N1") { id } }'))["memory"] is None
    minted = await other.remember(lessons=[{key: value for key, value in theirs.items() if key != "rbId"}])
    assert await _lessons(other) == [theirs["keyLesson"]] and await _lessons(one) == [LESSON["keyLesson"]]
    await other.ask(DELETE, id=minted["lessons"][0]["rbId"])
    for cairn in tenants:
        assert (await cairn.settled())["ok"]


async def test_an_id_that_was_given_up_can_be_taken_by_another(tenants: tuple[Service, Service]) -> None:
    """The deletion of the old row, which may come late, spares the new one."""
    one, other = tenants
    await one.remember(lessons=[{**LESSON, "rbId": "7002"}])
    await one.ask(DELETE, id="7002")
    await other.remember(lessons=[{**LESSON, "rbId": "7002", "keyLesson": "It is the other's now."}])
    for cairn in tenants:
        assert (await cairn.settled())["ok"]
    assert "It is the other's now." in await _lessons(other)


async def test_memories_may_have_the_same_id(tenants: tuple[Service, Service]) -> None:
    """Each finds, and deletes, its own."""
    for n, cairn in enumerate(tenants):
        await cairn.remember(memories=[{"event": {"id": "SAME", "text": f"Cranes, number {n}."}}])
    find = '{ searchMemories(query: "cranes") { memory { id text } } }'
    await tenants[0].ask('mutation { deleteMemory(id: "SAME") { deleted } }')
    assert (await tenants[0].settled())["ok"] and (await tenants[0].ask(find))["searchMemories"] == []
    assert [hit["memory"]["text"] for hit in (await tenants[1].ask(find))["searchMemories"]] == ["Cranes, number 1."]


def test_no_two_memories_have_one_key() -> None:
    """The default tenant's ids are plain; whatever they are, they do not meet those of a named tenant."""
    assert embedding_id(DEFAULT_TENANT, "N1001") == "emb_N1001"
    assert embedding_id("tb", "N1001") == "emb_tb/N1001"
    pairs = [
        (tenant, one)
        for tenant in (DEFAULT_TENANT, "tb", "tb2")
        for one in ("N1", "tb/N1", "tb%2FN1", "tb%252FN1", "/N1")
    ]
    assert len({embedding_id(*pair) for pair in pairs}) == len(pairs)
    for tenant, one in [*pairs, ("tb", ""), ("tb", "it's 100 %"), (DEFAULT_TENANT, "%27")]:
        assert memory_of(tenant, embedding_id(tenant, one)) == one
    assert memory_of("tb", "emb_N1001") is None and memory_of("tb", "emb_tb2/N1") is None
    assert memory_of(DEFAULT_TENANT, "emb_tb/N1") is None and memory_of(DEFAULT_TENANT, "N1") is None
    assert memory_of(DEFAULT_TENANT, "emb_100%") is None and memory_of(DEFAULT_TENANT, "emb_it's") is None
