"""Looking after lessons: contradictions reported, links suggested, accepted and rejected; nothing is changed by looking."""

from typing import Any

import pytest

from bank.milvus import LESSONS
from bank.rows import lesson_row
from tests.service import Refused, Service

CONFLICTS = """query($namespace: String, $first: Int! = 20, $after: String) {
  lessonConflicts(namespace: $namespace, first: $first, after: $after) {
    nodes { one { rbId status } other { rbId status } words linked } pageInfo { hasNextPage endCursor } } }"""
SUGGEST = """query($rbId: ID, $namespace: String, $first: Int! = 100, $after: String) {
  suggestLessonLinks(rbId: $rbId, namespace: $namespace, first: $first, after: $after) {
    nodes { source { rbId } target { rbId } type strength evidence } pageInfo { hasNextPage endCursor } } }"""
KEPT = "{ linkSuggestions(first: 100) { nodes { source { rbId } target { rbId } type } } }"
CONNECT = """mutation($source: ID!, $target: ID!, $type: LinkType!) {
  connectLessons(source: $source, target: $target, type: $type) { type } }"""
REJECT = """mutation($source: ID!, $target: ID!, $type: LinkType!) {
  rejectLessonLink(source: $source, target: $target, type: $type) }"""

Pairs = dict[tuple[str, str], tuple[str, str]]


def lesson(rb_id: int, text: str, context: str, **more: Any) -> dict[str, Any]:
    return {"rbId": str(rb_id), "keyLesson": text, "contextToPrefer": context, **more}


@pytest.fixture(scope="module", autouse=True)
async def records(cairn: Service) -> None:
    await cairn.remember(
        memories=[{"event": {"id": "M1", "text": "The mixer stopped."}}, {"event": {"id": "M2", "text": "It ran again."}}],
        lessons=[
            lesson(1, "Always rinse the mixer with hot water.", "The mixer is cleaned at night.", namespace="plant/a"),
            lesson(2, "Never rinse the mixer with hot water.", "The mixer is cleaned at night.", namespace="plant/b"),
            lesson(3, "Set the pump pressure to 4 bar.", "The pump starts.", namespace="plant/a"),
            lesson(4, "Set the pump pressure to 6 bar.", "The pump starts.", namespace="plant/a"),
            lesson(5, "Weigh the flour before mixing.", "A new batch of dough is made.", namespace="plant/a"),
            lesson(6, "Before mixing, weigh the flour.", "A new batch of dough is made.", namespace="bakery"),
            lesson(7, "Forecasts need a year of orders.", "Demand is planned.", linkNodes=["M1"], outcome="FAILURE", namespace="office"),
            lesson(8, "Ask the sales team about fairs.", "A quarter begins.", linkNodes=["M1", "M2"], namespace="office"),
            lesson(9, "Wear gloves when fresh yeast is stored.", "Yeast is delivered.", tags=["yeast", "safety", "x"], namespace="plant/a"),
            lesson(10, "Store fresh yeast in the cold room.", "Yeast is delivered.", tags=["safety", "yeast"], namespace="plant/a"),
            lesson(11, "Write the new label by hand.", "The labels were printed with the wrong date.", namespace="plant/a"),
            lesson(12, "Print the labels with date.", "Boxes are packed.", namespace="plant/a"),
        ],
    )  # fmt: skip


async def suggestions(cairn: Service, **asked: Any) -> Pairs:
    page = (await cairn.ask(SUGGEST, **asked))["suggestLessonLinks"]
    assert not page["pageInfo"]["hasNextPage"]
    assert all(0 < one["strength"] <= 1 for one in page["nodes"])
    return {(one["source"]["rbId"], one["target"]["rbId"]): (one["type"], one["evidence"]) for one in page["nodes"]}


# ---------------------------------------------------------------- contradictions


async def test_contradictions_are_reported_with_their_words(cairn: Service) -> None:
    """In one namespace or across them; it reports, and both lessons stay ACTIVE."""
    page = (await cairn.ask(CONFLICTS))["lessonConflicts"]
    found = {(one["one"]["rbId"], one["other"]["rbId"]): one for one in page["nodes"]}
    assert set(found) == {("1", "2"), ("3", "4")}
    assert found["1", "2"]["words"] == ["always rinse", "never rinse"]
    assert found["3", "4"]["words"] == ["4", "6"]
    assert all(end["status"] == "ACTIVE" for one in found.values() for end in (one["one"], one["other"]))
    inside = (await cairn.ask(CONFLICTS, namespace="office"))["lessonConflicts"]
    assert inside["nodes"] == []


async def test_contradictions_come_in_pages(cairn: Service) -> None:
    """The next page begins where the one before ended, and nothing is shown twice."""
    first = (await cairn.ask(CONFLICTS, first=1))["lessonConflicts"]
    assert first["pageInfo"]["hasNextPage"]
    second = (await cairn.ask(CONFLICTS, first=1, after=first["pageInfo"]["endCursor"]))["lessonConflicts"]
    assert [one["one"]["rbId"] for page in (first, second) for one in page["nodes"]] == ["1", "3"]
    assert not second["pageInfo"]["hasNextPage"]


async def test_a_retired_lesson_contradicts_nobody(cairn: Service) -> None:
    """Only active lessons are looked at."""
    status = "mutation($status: LessonStatus!) { updateLesson(rbId: 4, patch: {status: $status}) { rbId } }"
    await cairn.ask(status, status="RETIRED")
    page = (await cairn.ask(CONFLICTS))["lessonConflicts"]
    assert [one["one"]["rbId"] for one in page["nodes"]] == ["1"]
    await cairn.ask(status, status="ACTIVE")


# ---------------------------------------------------------------- suggestions


async def test_links_are_suggested_with_a_reason(cairn: Service) -> None:
    """From contradicting words, the same text elsewhere, a text in a context, shared sources and shared tags."""
    found = await suggestions(cairn)
    assert {pair: type for pair, (type, _) in found.items()} == {
        ("1", "2"): "CONFLICTS",
        ("3", "4"): "CONFLICTS",
        ("5", "6"): "ALTERNATIVE",
        ("7", "8"): "CAUSES",
        ("9", "10"): "ENHANCES",
        ("11", "12"): "REQUIRES",
    }
    assert found["1", "2"][1] == "About the same thing one says “always rinse”, the other “never rinse”."
    assert found["7", "8"][1] == "The failure and what works were both learnt from M1."
    assert found["9", "10"][1].startswith("Both carry the tags yeast, safety and are near in meaning")
    assert await suggestions(cairn) == found
    assert (await cairn.ask("{ lesson(rbId: 1) { links { type } } }"))["lesson"]["links"] == []


async def test_a_shared_source_suggests_a_link_whatever_the_index_says(cairn: Service) -> None:
    """The row of one of the two is of an older text, near to the other: that they were learnt from the same memory the graph
    knows."""
    service = cairn.cairn
    found = await service.bank.lessons.by_id([7, 8])
    near, nearer = await service.embedder.passages([found[7].key_lesson, found[7].context_to_prefer])
    stale = lesson_row(found[8], service.graph.tenant, near, nearer)
    await service.vectors.upsert(LESSONS, [stale | {"revision": stale["revision"] - 1}])
    assert (await suggestions(cairn, rbId="7"))["7", "8"][0] == "CAUSES"
    assert (await suggestions(cairn))["7", "8"][0] == "CAUSES"
    await cairn.ask("mutation { repair(dryRun: false) { ok } }")


async def test_suggestions_of_one_lesson_or_one_namespace(cairn: Service) -> None:
    """Whatever the ids of the others; with a namespace, of its lessons and those they meet."""
    assert set(await suggestions(cairn, rbId="6")) == {("5", "6")}
    assert set(await suggestions(cairn, rbId="8")) == {("7", "8")}
    assert set(await suggestions(cairn, namespace="office")) == {("7", "8")}
    with pytest.raises(Refused) as refused:
        await suggestions(cairn, rbId="99")
    assert (refused.value.code, refused.value.fields) == ("NOT_FOUND", ["rbId"])


async def test_a_rejected_suggestion_does_not_come_back_and_an_accepted_one_is_a_link(cairn: Service) -> None:
    """Not when asked again, not for one lesson, not in the sweep; until somebody makes the link."""
    await cairn.ask(REJECT, source="9", target="10", type="ENHANCES")
    await cairn.ask(CONNECT, source="2", target="1", type="CONFLICTS")
    left = {("3", "4"), ("5", "6"), ("7", "8"), ("11", "12")}
    assert set(await suggestions(cairn)) == left
    assert await suggestions(cairn, rbId="10") == {}
    conflicts = (await cairn.ask(CONFLICTS))["lessonConflicts"]["nodes"]
    assert [one["linked"] for one in conflicts] == [True, False]
    started = (await cairn.ask("mutation { startSweep(kind: SUGGEST) { state total } }"))["startSweep"]
    assert started["total"] == 12
    done = await swept(cairn, "SUGGEST")
    assert (done["state"], done["examined"], done["found"], done["error"]) == ("DONE", 12, 4, None)
    kept = (await cairn.ask(KEPT))["linkSuggestions"]["nodes"]
    assert {(one["source"]["rbId"], one["target"]["rbId"]) for one in kept} == left
    await cairn.ask(REJECT, source="6", target="5", type="ALTERNATIVE")
    await cairn.ask(CONNECT, source="7", target="8", type="CAUSES")
    kept = (await cairn.ask(KEPT))["linkSuggestions"]["nodes"]
    assert {(one["source"]["rbId"], one["target"]["rbId"]) for one in kept} == {("3", "4"), ("11", "12")}
    await cairn.ask("mutation { startSweep(kind: SUGGEST) { state } }")
    assert (await swept(cairn, "SUGGEST"))["found"] == 2


async def test_a_sweep_forgets_what_no_longer_suggests_itself(cairn: Service) -> None:
    """A lesson that says something else now: what was suggested of it before is not offered any more."""
    change = "mutation($text: String!) { updateLesson(rbId: 4, patch: {keyLesson: $text}) { rbId } }"
    await cairn.ask(change, text="Grease the bearings.")
    await cairn.ask("mutation { startSweep(kind: SUGGEST) { state } }")
    await swept(cairn, "SUGGEST")
    kept = (await cairn.ask(KEPT))["linkSuggestions"]["nodes"]
    assert {(one["source"]["rbId"], one["target"]["rbId"]) for one in kept} == {("11", "12")}
    await cairn.ask(change, text="Set the pump pressure to 6 bar.")


# ---------------------------------------------------------------- crowds, namespaces and pages


async def pages(cairn: Service, query: str, name: str, **asked: Any) -> list[dict[str, Any]]:
    """All that the pages show, one after the other."""
    seen: list[dict[str, Any]] = []
    after = None
    while True:
        page = (await cairn.ask(query, **asked, after=after))[name]
        seen += page["nodes"]
        if not page["pageInfo"]["hasNextPage"]:
            return seen
        after = page["pageInfo"]["endCursor"]


async def crowd(cairn: Service, said: str, namespace: str, start: int, opposite: int, many: int) -> None:
    """Many lessons that are all alike, and one that contradicts them."""
    towns = [f"{chr(65 + n % 26)}{'aeiou'[n // 26 % 5]}{'lmnrst'[n // 130]}burg" for n in range(many)]
    lessons = [
        lesson(start + n, f"Always {said} with the certified scale in {town}.", f"To {said}.", namespace=namespace)
        for n, town in enumerate(towns)
    ]
    lessons.append(lesson(opposite, f"Never {said}.", f"To {said}.", namespace=namespace))
    await cairn.remember(lessons=lessons)


@pytest.mark.parametrize(
    ("said", "namespace", "start", "opposite", "many"),
    [
        ("weigh the sealed containers at the harbour gate", "port/a", 2001, 2999, 30),
        ("measure fresh milk before noon", "port/b", 3001, 3000, 30),
        ("photograph damaged bicycles of every customer", "port/c", 4001, 4999, 150),
    ],
)
async def test_a_crowd_hides_no_contradiction(
    cairn: Service, said: str, namespace: str, start: int, opposite: int, many: int
) -> None:
    """Whether it comes first or last, and over many pages: found, and each pair once."""
    await crowd(cairn, said, namespace, start, opposite, many)
    seen = await pages(cairn, CONFLICTS, "lessonConflicts", namespace=namespace, first=7)
    found = [(one["one"]["rbId"], one["other"]["rbId"]) for one in seen]
    assert len(found) >= 20 and len(set(found)) == len(found)
    assert all(str(opposite) in pair for pair in found)
    suggested = await pages(cairn, SUGGEST, "suggestLessonLinks", namespace=namespace, first=9)
    assert {(one["source"]["rbId"], one["target"]["rbId"]) for one in suggested} == set(found)
    assert len(suggested) == len(found)


async def test_a_pair_of_two_namespaces_is_found_from_either(cairn: Service) -> None:
    """Whichever of the two lessons is older; by its words and by what they were learnt from."""
    await cairn.remember(
        memories=[{"event": {"id": "M5", "text": "The board met."}}],
        lessons=[
            lesson(5001, "Enable the query cache for the board.", "Dashboards are slow.", namespace="asym/x"),
            lesson(5002, "Disable the query cache for the board.", "Dashboards are slow.", namespace="asym/y"),
            lesson(5003, "Print handouts.", "A meeting is near.", namespace="asym/x", linkNodes=["M5"]),
            lesson(5004, "Order some coffee.", "Guests come.", namespace="asym/y", linkNodes=["M5"]),
        ],
    )
    for namespace in ("asym/x", "asym/y"):
        conflicts = await pages(cairn, CONFLICTS, "lessonConflicts", namespace=namespace)
        assert [(one["one"]["rbId"], one["other"]["rbId"]) for one in conflicts] == [("5001", "5002")]
        found = await suggestions(cairn, namespace=namespace)
        assert {pair: type for pair, (type, _) in found.items()} == {("5001", "5002"): "CONFLICTS", ("5003", "5004"): "ENHANCES"}  # fmt: skip


@pytest.mark.parametrize("settle", [CONNECT, REJECT])
async def test_what_is_settled_between_two_pages_hides_nothing(cairn: Service, settle: str) -> None:
    """Each suggestion is settled as soon as it is shown; the next page goes on behind it."""
    namespace, start = ("settled/a", 6001) if settle == CONNECT else ("settled/b", 6101)
    tools = ("hammer ladder chisel drill saw" if settle == CONNECT else "piano violin trumpet flute harp").split()
    await cairn.remember(
        lessons=[
            lesson(start + 2 * n + side, f"{verb} the {tool} outside.", f"The {tool} is wet.", namespace=namespace)
            for n, tool in enumerate(tools)
            for side, verb in enumerate(("Always dry", "Never dry"))
        ]
    )
    seen: list[str] = []
    after, more = None, True
    while more:
        page = (await cairn.ask(SUGGEST, namespace=namespace, first=1, after=after))["suggestLessonLinks"]
        for one in page["nodes"]:
            ends = {"source": one["source"]["rbId"], "target": one["target"]["rbId"]}
            seen.append(ends["source"])
            await cairn.ask(settle, **ends, type=one["type"])
        after, more = page["pageInfo"]["endCursor"], page["pageInfo"]["hasNextPage"]
    assert seen == [str(start + 2 * n) for n in range(len(tools))]


async def test_suggestions_of_one_lesson_come_in_pages(cairn: Service) -> None:
    """The strongest first; with a namespace, those to lessons in it."""
    everything = list(await suggestions(cairn, rbId="2999"))
    assert len(everything) >= 20
    seen = await pages(cairn, SUGGEST, "suggestLessonLinks", rbId="2999", first=6)
    assert [(one["source"]["rbId"], one["target"]["rbId"]) for one in seen] == everything
    assert list(await suggestions(cairn, rbId="2999", namespace="port/a")) == everything
    assert await suggestions(cairn, rbId="2999", namespace="office") == {}


@pytest.mark.parametrize("kind", ["PRUNE", "SUGGEST", "CONSOLIDATE"])
async def test_a_sweep_tells_how_far_it_is_to_the_end(cairn: Service, kind: str) -> None:
    """Every lesson counts that was there when it began, whatever its status."""
    await cairn.ask("mutation { updateLesson(rbId: 12, patch: {status: RETIRED}) { rbId } }")
    await cairn.ask("mutation($kind: SweepKind!) { startSweep(kind: $kind) { state } }", kind=kind)
    done = await swept(cairn, kind)
    assert (done["state"], done["examined"]) == ("DONE", done["total"])


@pytest.mark.parametrize(
    ("given", "code", "fields"),
    [
        ({"source": "1", "target": "1"}, "BAD_USER_INPUT", ["target"]),
        ({"source": "1", "target": "99"}, "NOT_FOUND", ["target"]),
    ],
)
async def test_a_wrong_rejection_is_refused(
    cairn: Service, given: dict[str, Any], code: str, fields: list[str]
) -> None:
    """As a wrong link is."""
    with pytest.raises(Refused) as refused:
        await cairn.ask(REJECT, type="CAUSES", **given)
    assert (refused.value.code, refused.value.fields) == (code, fields)


async def test_wrong_arguments_are_refused(cairn: Service) -> None:
    """The field is named."""
    for asked, fields in (
        ({"first": 0}, ["first"]),
        ({"namespace": "a//b"}, ["namespace"]),
        ({"after": "x"}, ["after"]),
    ):
        for query in (CONFLICTS, SUGGEST):
            with pytest.raises(Refused) as refused:
                await cairn.ask(query, **asked)
            assert refused.value.fields == fields


async def swept(cairn: Service, kind: str) -> dict[str, Any]:
    """The sweep once it is over."""
    import asyncio

    for _ in range(600):
        sweeps = (await cairn.ask("{ sweeps { kind state examined found total error finishedAt } }"))["sweeps"]
        (sweep,) = [one for one in sweeps if one["kind"] == kind]
        if sweep["state"] != "RUNNING":
            assert sweep["finishedAt"]
            return sweep  # type: ignore[no-any-return]
        await asyncio.sleep(0.05)
    raise AssertionError("the sweep does not end")


async def test_what_is_near_by_an_old_row_is_not_suggested(cairn: Service) -> None:
    """A row of the index that is not the lesson's any more says nothing of how near two lessons are."""
    await cairn.remember(
        lessons=[
            lesson(90, "Polish the brass bell every Friday.", "The bell is dull.", tags=["x", "y"], namespace="tower"),
            lesson(
                91, "Count the tickets before the doors open.", "A concert begins.", tags=["x", "y"], namespace="tower"
            ),
        ]
    )
    vectors, embedder = cairn.cairn.vectors, cairn.cairn.embedder
    lessons = await cairn.cairn.bank.lessons.by_id([90, 91])
    like_the_first, _ = await embedder.passages([lessons[90].key_lesson, lessons[91].key_lesson])
    (context,) = await embedder.passages([lessons[91].context_to_prefer])
    row = lesson_row(lessons[91], cairn.cairn.graph.tenant, like_the_first, context)
    await vectors.upsert(LESSONS, [{**row, "revision": 7}])
    assert await suggestions(cairn, rbId="90") == {}
    assert await suggestions(cairn, rbId="91") == {}
    assert await suggestions(cairn, namespace="tower") == {}
