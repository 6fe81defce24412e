"""Milvus refuses or hangs: writes are acknowledged, the status says so, and all becomes searchable without a restart."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest
from pymilvus import MilvusException

import bank.asking
import bank.lite
import bank.sync
from api.settings import Settings
from bank.integrity import Integrity
from bank.milvus import KEYS, LESSONS, MEMORIES, IndexAway
from bank.sync import Sync
from graph.model import embedding_id
from tests.milvus import MilvusServer
from tests.ports import free_port
from tests.service import Refused, Service, serving

ASKED = """query($q: String!) {
  searchMemories(query: $q, limit: 50) { vectorScore bm25Score why memory { id } }
  searchLessons(query: $q) { via lesson { rbId } }
  recall(input: {query: $q}) { degraded context memories { why memory { id } via { text } } paths { text } lessons { via lesson { rbId } } } }"""
SOON = 30  # seconds: it takes a few, on a busy machine more
STATUS = "{ status { ready pending stores { name up detail } } }"


@pytest.fixture(scope="module")
async def milvus(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[MilvusServer]:
    server = MilvusServer(tmp_path_factory.mktemp("milvus"))
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
async def elsewhere(settings: Settings, milvus: MilvusServer) -> AsyncIterator[Service]:
    """A service whose Milvus is a server that can be stopped."""
    own = {"milvus_uri": milvus.uri, "milvus_database": "", "port": free_port(), "tenant": f"{settings.tenant}-m"}
    async with serving(settings.model_copy(update=own)) as service:
        yield service


async def _index(cairn: Service) -> dict[str, Any]:
    status = (await cairn.ask(STATUS))["status"]
    return {"pending": status["pending"], **next(store for store in status["stores"] if store["name"] == "index")}


async def _answered(cairn: Service, query: str) -> tuple[dict[str, Any], str | None]:
    """What is found by search and by recall, and what the answer says it had to do without."""
    said = (await cairn.http.post("/graphql", json={"query": ASKED, "variables": {"q": query}})).json()
    assert "errors" not in said, said
    degraded = said.get("extensions", {}).get("degraded")
    assert said["data"]["recall"]["degraded"] == degraded
    return said["data"], degraded


async def _found(cairn: Service, query: str) -> list[str]:
    """Found in Milvus, by meaning and by words."""
    data, degraded = await _answered(cairn, query)
    return [] if degraded else [hit["memory"]["id"] for hit in data["searchMemories"]]


async def _until_found(cairn: Service, query: str, wanted: set[str], seconds: float) -> float:
    started = time.monotonic()
    while not wanted <= set(await _found(cairn, query)):
        assert time.monotonic() - started < seconds, "not searchable again"
        await asyncio.sleep(0.2)
    return time.monotonic() - started


async def _writes_while_away(cairn: Service, name: str) -> None:
    """Created, changed and deleted while Milvus is away: all acknowledged, none of it lost."""
    started = time.monotonic()
    await cairn.remember(
        memories=[{"event": {"id": f"{name}-{n}", "text": f"{name} happened, part {n}."}} for n in range(3)],
        lessons=[
            {
                "rbId": "81",
                "keyLesson": f"{name} taught patience.",
                "contextToPrefer": "Outages.",
                "linkNodes": [f"{name}-0"],
            }
        ],
        edges=[
            {"id": f"{name}-e", "source": f"{name}-0", "target": "BEHIND", "text": "It led to this.", "weight": 0.9}
        ],
    )
    assert time.monotonic() - started < 8  # one time-out of Milvus, and an answer
    started = time.monotonic()
    await cairn.ask(
        'mutation($id: ID!) { updateMemory(id: $id, patch: {text: "It was changed meanwhile."}) { id } }',
        id=f"{name}-1",
    )
    await cairn.ask("mutation($id: ID!) { deleteMemory(id: $id) { deleted } }", id="BEFORE")
    assert time.monotonic() - started < 8  # known to be away by now: nobody waits for it
    index = await _index(cairn)
    assert index["up"] is False and index["detail"] and index["pending"] >= 5
    assert (await cairn.ask("query($id: ID!) { memory(id: $id) { text lessons { rbId } } }", id=f"{name}-0"))["memory"][
        "lessons"
    ]
    await _answers_from_words_and_graph(cairn, name)


async def _answers_from_words_and_graph(cairn: Service, name: str) -> None:
    """Search and recall answer without Milvus, soon, with what was written meanwhile, and say what was missing."""
    await _answered(cairn, name)  # one time-out, at most
    started = time.monotonic()
    data, degraded = await _answered(cairn, f"What did {name} teach: part 2?")
    assert time.monotonic() - started < 5  # known to be away by now
    assert degraded and "Milvus is away" in degraded
    found = {hit["memory"]["id"]: hit for hit in data["searchMemories"]}
    assert {f"{name}-0", f"{name}-2"} <= set(found) and "BEFORE" not in found
    assert all(hit["vectorScore"] is None and hit["why"] == "Found by words." for hit in found.values())
    assert [hit["lesson"]["rbId"] for hit in data["searchLessons"]] == ["81"]
    recalled = {hit["memory"]["id"]: hit for hit in data["recall"]["memories"]}
    assert "It led to this." in recalled["BEHIND"]["why"] and recalled["BEHIND"]["via"]
    assert data["recall"]["lessons"][0]["via"] == [f"{name}-0"] and data["recall"]["context"]
    for odd in (
        "the of and",
        "?!",
        f'{name}" OR * AND text:(^~2 [a TO b] \\',
        "부산항은 왜 닫혔습니까",
        "x" * 10_000,
        "word " * 2_000,
    ):
        assert (await _answered(cairn, odd))[1]


async def _all_is_well(cairn: Service, name: str) -> None:
    await _until_found(cairn, f"{name} happened", {f"{name}-0", f"{name}-2"}, SOON)
    report = await cairn.settled()
    assert report["ok"], report
    assert f"{name}-1" in await _found(cairn, "changed meanwhile")
    assert "BEFORE" not in await _found(cairn, "before the outage")
    assert (await _index(cairn))["up"] is True


async def test_repair_on_a_server_mends_what_was_written_a_moment_ago(elsewhere: Service) -> None:
    """Its marks could be another process's business, which repair does not wait for."""
    await elsewhere.remember(
        memories=[{"event": {"id": "YOUNG", "text": "A moment ago."}}],
        lessons=[{"rbId": "82", "keyLesson": "Young.", "contextToPrefer": "A moment ago."}],
    )
    vectors = elsewhere.cairn.vectors
    await vectors.delete(MEMORIES, [embedding_id(elsewhere.cairn.graph.tenant, "YOUNG")])
    await vectors.delete(LESSONS, [82])
    report = (await elsewhere.ask("mutation { repair(dryRun: false) { ok missingVectors pending } }"))["repair"]
    assert report == {"ok": True, "missingVectors": 0, "pending": 0}
    assert "YOUNG" in await _found(elsewhere, "a moment ago")


async def test_a_milvus_server_that_stops_and_comes_back(elsewhere: Service, milvus: MilvusServer) -> None:
    """Killed and started again on its data."""
    await elsewhere.remember(
        memories=[
            {"event": {"id": "BEFORE", "text": "Before the outage."}},
            {"event": {"id": "BEHIND", "text": "Mosses."}},
        ]
    )
    milvus.stop()
    await _writes_while_away(elsewhere, "Refusal")
    milvus.start()
    await _all_is_well(elsewhere, "Refusal")


async def test_a_milvus_server_that_hangs_and_wakes_up(elsewhere: Service, milvus: MilvusServer) -> None:
    """Stopped in the middle of things, then going on."""
    await elsewhere.remember(
        memories=[
            {"event": {"id": "BEFORE", "text": "Before the outage."}},
            {"event": {"id": "BEHIND", "text": "Mosses."}},
        ]
    )
    milvus.hang()
    asked, stop = [], asyncio.Event()

    async def ask_now_and_then() -> None:
        """Also when the connection is made anew, which ends the calls that are under way on it."""
        while not stop.is_set():
            asked.append(asyncio.create_task(elsewhere.http.post("/graphql", json={"query": STATUS})))
            await asyncio.sleep(0.5)

    asking = asyncio.create_task(ask_now_and_then())
    started = time.monotonic()
    with pytest.raises(Refused) as refused:
        await elsewhere.integrity()
    assert refused.value.code == "UNAVAILABLE" and time.monotonic() - started < 8
    await _writes_while_away(elsewhere, "Silence")
    await asyncio.sleep(6)  # it has been connected to again, or was tried
    milvus.wake()
    await _all_is_well(elsewhere, "Silence")
    stop.set()
    await asking
    for answer in await asyncio.gather(*asked):
        assert answer.status_code == 200 and "errors" not in answer.json(), answer.text


async def test_the_service_starts_while_milvus_is_away(settings: Settings, milvus: MilvusServer) -> None:
    """It takes writes at once, and indexes them when Milvus is there."""
    milvus.stop()
    own = {"milvus_uri": milvus.uri, "milvus_database": "", "port": free_port(), "tenant": f"{settings.tenant}-s"}
    async with serving(settings.model_copy(update=own)) as service:
        await service.remember(memories=[{"event": {"id": "EARLY", "text": "Written before the index was there."}}])
        assert (await _index(service))["up"] is False
        milvus.start()
        await _until_found(service, "before the index", {"EARLY"}, SOON)


async def test_what_an_earlier_service_left_is_not_hidden(
    settings: Settings, milvus: MilvusServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was acknowledged while Milvus was away, and the service that starts next finds it away, too: when it is back, answers
    come from the graph and say so until what was left is indexed."""
    own = {"milvus_uri": milvus.uri, "milvus_database": "", "tenant": f"{settings.tenant}-l"}
    async with serving(settings.model_copy(update={**own, "port": free_port()})) as service:
        milvus.stop()
        await service.remember(memories=[{"event": {"id": "LEFT", "text": "Left behind by the first one."}}])
    with monkeypatch.context() as patch:
        go_on = _hold(patch, Sync, "drain")
        async with serving(settings.model_copy(update={**own, "port": free_port()})) as service:
            milvus.start()
            started, degraded = time.monotonic(), "Milvus is away"
            while "is away" in degraded:
                found, said = await _answered(service, "left behind")
                assert [hit["memory"]["id"] for hit in found["searchMemories"]] == ["LEFT"] and said is not None
                assert time.monotonic() - started < SOON, "it does not look for Milvus again"
                degraded = said
                await asyncio.sleep(0.1)
            assert "is behind" in degraded
            go_on.set()
            await _until_found(service, "left behind", {"LEFT"}, SOON)


async def test_an_older_index_with_as_many_rows_is_noticed(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sweep that follows each start finds that rows are of older texts; from then on, until they are not, answers come
    from the graph and say so."""
    own = _on_a_file(settings, tmp_path, "older")
    async with serving(own) as cairn:
        await cairn.remember(memories=[{"event": {"id": f"O{n}", "text": f"Ferry {n} left."}} for n in range(5)])
        assert (await cairn.settled())["ok"]
    file = tmp_path / "milvus.db"
    older = file.read_bytes()
    async with serving(own) as cairn:
        await cairn.remember(
            memories=[{"event": {"id": f"O{n}", "text": f"A zeppelin took off, {n}."}} for n in range(5)]
        )
        assert (await cairn.settled())["ok"]
    file.write_bytes(older)
    with monkeypatch.context() as patch:
        go_on = _hold(patch, Sync, "drain")
        async with serving(own) as cairn:
            started = time.monotonic()
            while (answer := await _answered(cairn, "zeppelin"))[1] is None:
                assert time.monotonic() - started < SOON, "it is not noticed"
                await asyncio.sleep(0.05)
            assert len(answer[0]["searchMemories"]) == 5 and "is behind" in str(answer[1])
            go_on.set()
            await _until_found(cairn, "zeppelin", {f"O{n}" for n in range(5)}, SOON)


def _on_a_file(settings: Settings, folder: Path, name: str) -> Settings:
    """The settings of a service whose index is a file in this folder."""
    if settings.milvus_uri is not None:
        pytest.skip("this run uses a Milvus server, not Milvus Lite")
    own = {"data": folder, "tenant": f"{settings.tenant}-{name}", "port": free_port(), "neo4j_http_port": free_port()}
    return settings.model_copy(update=own)


def _hold(patch: pytest.MonkeyPatch, owner: type, name: str) -> asyncio.Event:
    """From here on this method waits until it is told to go on."""
    method, go_on = getattr(owner, name), asyncio.Event()

    async def when_told(*given: Any, **named: Any) -> Any:
        await go_on.wait()
        return await method(*given, **named)

    patch.setattr(owner, name, when_told)
    return go_on


async def test_milvus_lite_is_started_again(cairn: Service, settings: Settings) -> None:
    """The embedded index dies: the service starts it again by itself."""
    if settings.milvus_uri is not None:
        pytest.skip("this run uses a Milvus server, not Milvus Lite")
    await cairn.remember(memories=[{"event": {"id": "BEFORE", "text": "Before the outage."}}])
    (lite,) = [p for p in psutil.Process().children() if str(settings.data) in " ".join(p.cmdline())]
    os.kill(lite.pid, signal.SIGKILL)
    await cairn.remember(memories=[{"event": {"id": "DURING", "text": "While the index was dead."}}])
    await _until_found(cairn, "while the index was dead", {"DURING", "BEFORE"}, SOON)
    assert (await cairn.settled())["ok"]


async def test_milvus_lite_that_cannot_be_started_for_a_while(
    cairn: Service, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full when it is to be started again, and a thing nobody thought of happens: it is tried until it works."""
    if settings.milvus_uri is not None:
        pytest.skip("this run uses a Milvus server, not Milvus Lite")
    start, troubles = bank.lite.spawn, [OSError(28, "No space left on device"), ValueError("unheard of")]

    def spawn(*how: Any) -> Any:
        if troubles:
            raise troubles.pop(0)
        return start(*how)

    monkeypatch.setattr(bank.lite, "spawn", spawn)
    (lite,) = [p for p in psutil.Process().children() if str(settings.data) in " ".join(p.cmdline())]
    os.kill(lite.pid, signal.SIGKILL)
    await cairn.remember(memories=[{"event": {"id": "FULL", "text": "While the disk was full."}}])
    await _until_found(cairn, "while the disk was full", {"FULL"}, SOON)
    assert not troubles
    assert (await cairn.settled())["ok"]


@pytest.mark.parametrize("damage", ["half of it is gone", "it is no database", "a quarter of it is something else"])
async def test_a_damaged_file_of_milvus_lite_is_put_aside(
    cairn: Service, settings: Settings, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    """The machine lost its power while the file was written: the index is made anew by itself, and the file is kept."""
    if settings.milvus_uri is not None:
        pytest.skip("this run uses a Milvus server, not Milvus Lite")
    await cairn.remember(
        memories=[{"event": {"id": f"BEFORE-{n}", "text": f"Before the power failed, {n}."}} for n in range(200)]
    )
    start, file, damaged = bank.lite.spawn, settings.data / "milvus.db", []

    def spawn(*how: Any) -> Any:
        if not damaged:
            whole = file.read_bytes()
            half, rest = whole[: len(whole) // 2], whole[-len(whole) // 4 :]
            some = b"\xa5" * (len(whole) - len(half) - len(rest))
            kinds = {"half": half, "it": b"not a database" * 1_000, "a": half + some + rest}
            damaged.append(kinds[damage.split()[0]])
            file.write_bytes(damaged[0])
        return start(*how)

    monkeypatch.setattr(bank.lite, "spawn", spawn)
    (lite,) = [p for p in psutil.Process().children() if str(settings.data) in " ".join(p.cmdline())]
    os.kill(lite.pid, signal.SIGKILL)
    await cairn.remember(memories=[{"event": {"id": "AFTER", "text": "After the power failed."}}])
    await _until_found(cairn, "the power failed", {"AFTER"}, SOON)
    report = await cairn.settled()
    assert report["ok"] and report["nodes"] == report["nodeVectors"], report
    assert "BEFORE-7" in await _found(cairn, "before the power failed, 7")
    aside = settings.data / "milvus.db.damaged"
    assert aside.read_bytes()[:1_000] == damaged[0][:1_000]
    aside.unlink()


@pytest.mark.parametrize("put_back", [False, True], ids=["it was lost", "an older one was put back"])
async def test_an_index_that_is_gone_at_the_start_hides_nothing(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, put_back: bool
) -> None:
    """The file was lost while the service was stopped, or replaced by an older copy: until the index is whole, answers come
    from the graph and say so, and something is pending."""
    own = _on_a_file(settings, tmp_path, f"gone-{put_back}")
    ferries = [{"event": {"id": f"GONE-{n}", "text": f"Ferry {n} left Calais."}} for n in range(20)]
    lesson = {"rbId": "7777", "keyLesson": "Look at the tides.", "contextToPrefer": "A ferry left late."}
    async with serving(own) as cairn:
        assert (await _answered(cairn, "anything"))[1] is None  # an index of nothing lacks nothing
        await cairn.remember(memories=ferries[:10])
        assert (await cairn.settled())["ok"]
    file = tmp_path / "milvus.db"
    older = file.read_bytes()
    async with serving(own) as cairn:
        await cairn.remember(memories=ferries[10:], lessons=[lesson])
        assert (await cairn.settled())["ok"]
    if put_back:
        file.write_bytes(older)
    else:
        file.unlink()
    with monkeypatch.context() as patch:
        go_on = _hold(patch, Integrity, "compare")
        async with serving(own) as cairn:
            found, degraded = await _answered(cairn, "ferry Calais")
            assert len(found["searchMemories"]) == 20 and found["recall"]["memories"]
            assert [one["lesson"]["rbId"] for one in found["searchLessons"]] == ["7777"]
            assert degraded is not None and "behind" in degraded
            assert (await _index(cairn))["pending"] > 0
            go_on.set()
            report = await cairn.settled()
            assert report["ok"] and report["nodeVectors"] == 20 and report["lessonVectors"] == 1
            assert (await _answered(cairn, "ferry Calais"))[1] is None
            await cairn.ask('mutation { deleteLesson(rbId: "7777") { deleted } }')


async def test_dropped_collections_are_rebuilt_with_the_same_answers(cairn: Service) -> None:
    """Both gone: repair makes them anew, and a question is answered as before."""
    await cairn.remember(
        memories=[
            {"event": {"id": f"R{n}", "text": f"Ship {n} brought {('cars', 'grain', 'steel')[n % 3]} to port {n % 7}."}}
            for n in range(60)
        ],
        lessons=[
            {"rbId": str(900 + n), "keyLesson": f"Ask port {n} twice.", "contextToPrefer": f"Ship {n} is late.", "linkNodes": [f"R{n}"]}
            for n in range(20)
        ],
        edges=[
            {"source": f"R{n}", "target": f"R{(n * 7 + 5) % 60}", "text": f"Both came on day {n % 9}.", "weight": 0.5 + n / 120}
            for n in range(60) if n != (n * 7 + 5) % 60
        ],
    )  # fmt: skip
    query = """{ searchMemories(query: "steel for port 5", limit: 20) { score memory { id } }
      searchLessons(query: "the ship is late", limit: 10) { semantic lesson { rbId } }
      recall(input: {query: "Which ship brought steel to port 5?"}) { context paths { text }
        memories { score why via { text } memory { id } } lessons { via lesson { rbId } } } }"""
    before = await cairn.ask(query)
    client = cairn.cairn.vectors.milvus.client
    await client.drop_collection("graphembeddings")
    await client.drop_collection("reasoningbank")
    assert "repair" in (await _index(cairn))["detail"]
    report = (await cairn.ask("mutation { repair(dryRun: false) { ok nodes nodeVectors lessons lessonVectors } }"))[
        "repair"
    ]
    assert report["ok"] and report["nodes"] == report["nodeVectors"] and report["lessons"] == report["lessonVectors"]
    after = await cairn.ask(query)
    for old, new in ((before, after), (before["recall"], after["recall"])):
        for name in ("searchMemories", "memories"):
            hits = list(zip(old.get(name, ()), new.get(name, ()), strict=True))
            assert all(one | {"score": 0} == other | {"score": 0} for one, other in hits)
            assert all(other["score"] == pytest.approx(one["score"], abs=1e-4) for one, other in hits)
    assert after["recall"]["lessons"] == before["recall"]["lessons"]
    assert after["recall"]["context"] == before["recall"]["context"]
    assert after["recall"]["paths"] == before["recall"]["paths"]
    assert after["recall"]["memories"] and after["recall"]["lessons"] and after["recall"]["paths"]
    assert [hit["lesson"] for hit in after["searchLessons"]] == [hit["lesson"] for hit in before["searchLessons"]]
    fits = [[hit["semantic"] for hit in answer["searchLessons"]] for answer in (after, before)]
    assert fits[0] == pytest.approx(fits[1], abs=1e-4)


def _slow_upserts(cairn: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    upsert = cairn.cairn.vectors.upsert

    async def slowly(*what: Any) -> None:
        await asyncio.sleep(0.5)
        await upsert(*what)

    monkeypatch.setattr(cairn.cairn.vectors, "upsert", slowly)


async def test_milvus_answers_but_takes_nothing(cairn: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written is acknowledged, counted and found by words; it is indexed as soon as Milvus takes it."""

    async def refuse(*_: Any, **__: Any) -> None:
        raise MilvusException(message="no more rows today")

    with monkeypatch.context() as refusing:
        for name in ("insert", "upsert"):
            refusing.setattr(type(cairn.cairn.vectors.milvus.client), name, refuse)
        await cairn.remember(
            memories=[{"event": {"id": "REFUSED", "text": "A barge was refused at the lock."}}],
            lessons=[{"rbId": "83", "keyLesson": "Ask the lock keeper.", "contextToPrefer": "A refused barge."}],
        )
        for _ in range(3):
            index = await _index(cairn)
            assert index["pending"] >= 2 and "no more rows today" in index["detail"]
            data, degraded = await _answered(cairn, "refused barge")
            assert degraded and "REFUSED" in {hit["memory"]["id"] for hit in data["searchMemories"]}
            assert "83" in {hit["lesson"]["rbId"] for hit in data["searchLessons"]}
            await asyncio.sleep(0.7)
    await _until_found(cairn, "refused barge", {"REFUSED"}, SOON)
    report = await cairn.settled()
    assert report["ok"], report


async def test_how_far_a_repair_is(
    cairn: Service, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """While the index is made anew, the status says how much is left, less and less; the log says how much there was."""
    written = 400
    await cairn.remember(memories=[{"event": {"id": f"P{n}", "text": f"Parcel {n}."}} for n in range(written)])
    await cairn.settled()
    _slow_upserts(cairn, monkeypatch)
    caplog.set_level("INFO", "cairn.sync")
    for name in KEYS:
        await cairn.cairn.vectors.milvus.client.drop_collection(name)
    repair = asyncio.create_task(cairn.ask("mutation { repair(dryRun: false) { ok } }"))
    seen = []
    while not repair.done():
        seen.append((await _index(cairn))["pending"])
        await asyncio.sleep(0.05)
    assert (await repair)["repair"]["ok"]
    left = seen[seen.index(max(seen)) :]
    assert max(seen) > 250 and left == sorted(left, reverse=True) and len(set(left)) >= 3, seen
    assert "records are to be indexed anew" in caplog.text


@pytest.mark.parametrize("way", ["repair", "catching up"])
async def test_a_write_does_not_wait_for_a_long_repair(
    cairn: Service, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """What is mended behind everybody's back, or on request, is mended in batches: writes have their turn between two,
    and are found at once."""
    await cairn.remember(memories=[{"event": {"id": f"Q{n}", "text": f"Quarry {n}."}} for n in range(1_000)])
    await cairn.settled()
    _slow_upserts(cairn, monkeypatch)
    names = [[f"Q{n}", embedding_id(cairn.cairn.graph.tenant, f"Q{n}")] for n in range(1_000)]
    await cairn.cairn.graph.run("mark_memories", rows=names, revision=1)
    repair = asyncio.create_task(cairn.ask("mutation { repair(dryRun: false) { ok } }")) if way == "repair" else None
    cairn.cairn.sync.removed()
    for n in range(2):
        await asyncio.sleep(0.3)
        await cairn.remember(memories=[{"event": {"id": f"QUICK-{way}-{n}", "text": f"Quick {way} {n}."}}])
        assert f"QUICK-{way}-{n}" in await _found(cairn, f"quick {way} {n}")
        assert (await _index(cairn))["pending"] > 200
    if repair is not None:
        assert not repair.done()
        assert (await repair)["repair"]["ok"]
    report = await cairn.settled()
    assert report["ok"] and report["nodes"] == report["nodeVectors"]


async def test_a_search_waits_for_the_index_only_so_long(cairn: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that was acknowledged ahead of the index and does not get there for a while is found in the graph, and the
    answer says so; when it has got there, all is as ever."""
    monkeypatch.setattr(bank.asking, "PATIENT_SECONDS", 0.3)
    embedder, released = cairn.cairn.embedder, asyncio.Event()
    passages = embedder.passages

    async def late(texts: Sequence[str]) -> Any:
        await released.wait()
        return await passages(texts)

    monkeypatch.setattr(embedder, "passages", late)
    await cairn.remember(memories=[{"event": {"id": "LATE", "text": "The tardy barge came at dusk."}}])
    data, degraded = await _answered(cairn, "tardy barge")
    assert degraded and "behind" in degraded
    assert data["searchMemories"][0]["memory"]["id"] == data["recall"]["memories"][0]["memory"]["id"] == "LATE"
    released.set()
    data, degraded = await _answered(cairn, "tardy barge")
    assert degraded is None and data["searchMemories"][0]["memory"]["id"] == "LATE"
    assert (await cairn.settled())["ok"]


async def test_writes_without_a_pause_keep_nothing_else_waiting(
    cairn: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While writes follow each other without end, it is still noticed that Milvus is back, and rows are removed."""
    monkeypatch.setattr(bank.sync, "OTHERS_SECONDS", 0.3)
    passages = cairn.cairn.embedder.passages

    async def slow(texts: Sequence[str]) -> Any:
        await asyncio.sleep(0.1)  # while one write is indexed the next ones come
        return await passages(texts)

    monkeypatch.setattr(cairn.cairn.embedder, "passages", slow)
    writing = True

    async def writer(name: str, size: int) -> int:
        number = 0
        while writing:
            number += 1
            await cairn.remember(memories=[{"event": {"id": f"{name}-{number}-{n}", "text": f"{name} {number} {n}."}} for n in range(size)])  # fmt: skip
        return number

    # Of several batches each, and not the same number: one of them always waits for its next.
    writers = [asyncio.create_task(writer(f"ENDLESS{n}", size)) for n, size in enumerate((100, 170, 230, 310))]
    try:
        await asyncio.sleep(1)
        cairn.cairn.sync.met_away(IndexAway("Milvus did not answer this once"))
        assert (await _answered(cairn, "endless"))[1]
        await _until_found(cairn, "ENDLESS0 1", {"ENDLESS0-1-0"}, 10)
    finally:
        writing = False
        counts = await asyncio.gather(*writers)
    assert all(counts)
    assert (await cairn.settled())["ok"]
