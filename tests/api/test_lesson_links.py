"""Links between lessons: connected, read, taken away; and what they change in recall and searchLessons."""

from typing import Any

import pytest

from tests.service import Refused, Service

LINK = "source { rbId } target { rbId } type strength evidence"
CONNECT = f"""mutation($source: ID!, $target: ID!, $type: LinkType!, $strength: Float! = 0.5, $evidence: String) {{
  connectLessons(source: $source, target: $target, type: $type, strength: $strength, evidence: $evidence) {{ {LINK} }} }}"""
DISCONNECT = """mutation($source: ID!, $target: ID!, $type: LinkType!) {
  disconnectLessons(source: $source, target: $target, type: $type) { deleted edgesRemoved } }"""
LINKS = f"query($rbId: ID!) {{ lesson(rbId: $rbId) {{ links {{ {LINK} }} }} }}"
RECALL = """query($input: RecallInput!) { recall(input: $input) {
  lessons { requiredBy conflictsWith alternatives score lesson { rbId } } context } }"""
SEARCH = """query($query: String!, $limit: Int!, $tags: [String!]) { searchLessons(query: $query, limit: $limit, tags: $tags) {
  requiredBy conflictsWith alternatives lesson { rbId } } }"""


def lesson(rb_id: int, text: str, context: str, **more: Any) -> dict[str, Any]:
    return {"rbId": str(rb_id), "keyLesson": text, "contextToPrefer": context, **more}


async def connect(cairn: Service, source: int, target: int, type: str, **more: Any) -> dict[str, Any]:
    data = await cairn.ask(CONNECT, source=str(source), target=str(target), type=type, **more)
    link: dict[str, Any] = data["connectLessons"]
    return link


async def links(cairn: Service, rb_id: int) -> list[tuple[str, str, str, float, str | None]]:
    found = (await cairn.ask(LINKS, rbId=str(rb_id)))["lesson"]["links"]
    return [
        (one["source"]["rbId"], one["type"], one["target"]["rbId"], one["strength"], one["evidence"]) for one in found
    ]


async def recall(cairn: Service, query: str, limit: int = 5, **more: Any) -> tuple[dict[str, dict[str, Any]], str]:
    asked = {"query": query, "lessonLimit": limit, **more}
    found = (await cairn.ask(RECALL, input=asked))["recall"]
    return {one["lesson"]["rbId"]: one for one in found["lessons"]}, found["context"]


# ---------------------------------------------------------------- made, read, taken away


@pytest.fixture(scope="module", autouse=True)
async def records(cairn: Service) -> None:
    await cairn.remember(
        lessons=[lesson(n, f"Plain lesson number {n}.", f"Whenever case {n} comes up.") for n in range(1, 8)]
    )


async def test_a_link_is_seen_from_both_ends(cairn: Service) -> None:
    """Connected once, it stands in the links of both lessons, the strongest first."""
    assert await connect(cairn, 1, 2, "CAUSES", strength=0.4, evidence="Seen in two runs.") == {
        "source": {"rbId": "1"},
        "target": {"rbId": "2"},
        "type": "CAUSES",
        "strength": 0.4,
        "evidence": "Seen in two runs.",
    }
    await connect(cairn, 3, 1, "ENHANCES", strength=0.9)
    assert await links(cairn, 1) == [("3", "ENHANCES", "1", 0.9, None), ("1", "CAUSES", "2", 0.4, "Seen in two runs.")]
    assert await links(cairn, 2) == [("1", "CAUSES", "2", 0.4, "Seen in two runs.")]


async def test_the_same_link_again_is_one_link(cairn: Service) -> None:
    """Source, target and type name a link: strength and evidence are replaced. Another type, or the other way, is another."""
    await connect(cairn, 4, 5, "REQUIRES", strength=0.2, evidence="first")
    await connect(cairn, 4, 5, "REQUIRES", strength=0.8, evidence="second")
    assert await links(cairn, 4) == [("4", "REQUIRES", "5", 0.8, "second")]
    await connect(cairn, 5, 4, "REQUIRES", strength=0.1)
    await connect(cairn, 4, 5, "ENHANCES", strength=0.3)
    assert [one[:3] for one in await links(cairn, 4)] == [
        ("4", "REQUIRES", "5"),
        ("4", "ENHANCES", "5"),
        ("5", "REQUIRES", "4"),
    ]
    for source, target, type in (("4", "5", "REQUIRES"), ("5", "4", "REQUIRES"), ("4", "5", "ENHANCES")):
        await cairn.ask(DISCONNECT, source=source, target=target, type=type)
    assert await links(cairn, 4) == []


@pytest.mark.parametrize("type", ["CONFLICTS", "ALTERNATIVE"])
async def test_what_says_the_same_of_both_is_one_link_either_way(cairn: Service, type: str) -> None:
    """Given the other way round it is the same link, and it can be taken away either way."""
    await connect(cairn, 6, 7, type, strength=0.2)
    turned = await connect(cairn, 7, 6, type, strength=0.6)
    assert turned["strength"] == 0.6
    assert await links(cairn, 6) == [("6", type, "7", 0.6, None)]
    pair = {"source": "7", "target": "6", "type": type}
    assert (await cairn.ask(DISCONNECT, **pair))["disconnectLessons"] == {"deleted": True, "edgesRemoved": 1}
    assert await links(cairn, 7) == []
    assert (await cairn.ask(DISCONNECT, **pair))["disconnectLessons"]["deleted"] is False


async def test_a_link_that_points_one_way_is_not_taken_away_the_other_way(cairn: Service) -> None:
    """CAUSES from 6 to 7 is not CAUSES from 7 to 6."""
    await connect(cairn, 6, 7, "CAUSES")
    wrong = (await cairn.ask(DISCONNECT, source="7", target="6", type="CAUSES"))["disconnectLessons"]
    assert wrong["deleted"] is False
    assert (await cairn.ask(DISCONNECT, source="6", target="7", type="CAUSES"))["disconnectLessons"]["deleted"]


@pytest.mark.parametrize(
    ("given", "code", "fields"),
    [
        ({"source": "1", "target": "1"}, "BAD_USER_INPUT", ["target"]),
        ({"source": "1", "target": "99"}, "NOT_FOUND", ["target"]),
        ({"source": "98", "target": "1"}, "NOT_FOUND", ["source"]),
        ({"source": "x", "target": "-1"}, "BAD_USER_INPUT", ["source", "target"]),
        ({"source": "1", "target": "2", "strength": 1.5}, "BAD_USER_INPUT", ["strength"]),
        ({"source": "1", "target": "2", "evidence": " "}, "BAD_USER_INPUT", ["evidence"]),
    ],
)
async def test_a_wrong_link_is_refused(cairn: Service, given: dict[str, Any], code: str, fields: list[str]) -> None:
    """The field is named and nothing is stored."""
    before = await links(cairn, 1)
    with pytest.raises(Refused) as refused:
        await cairn.ask(CONNECT, type="CONFLICTS", **given)
    assert (refused.value.code, refused.value.fields) == (code, fields)
    assert await links(cairn, 1) == before


async def test_a_deleted_lesson_takes_its_links_along(cairn: Service) -> None:
    """And one that is written anew under its id has none."""
    await cairn.remember(lessons=[lesson(8, "Short-lived.", "Now.")])
    await connect(cairn, 8, 2, "CONFLICTS")
    await cairn.ask('mutation { deleteLesson(rbId: "8") { deleted } }')
    assert all("8" not in one for one in await links(cairn, 2))
    await cairn.remember(lessons=[lesson(8, "Short-lived.", "Now.")])
    assert await links(cairn, 8) == []


async def test_links_of_many_lessons_are_one_query(cairn: Service) -> None:
    """A page of lessons, their links, the lessons at both ends: three round trips, whatever is on the page."""
    asked = "query($first: Int!) { lessons(first: $first) { nodes { links { source { rbId } target { rbId } } } } }"
    graph = cairn.cairn.graph

    async def trips(first: int) -> int:
        before = graph.round_trips
        await cairn.ask(asked, first=first)
        return graph.round_trips - before

    # The service looks after its marks now and then, and after its index when it has started, which may fall among them.
    assert min([await trips(20) for _ in range(20)]) == 3


# ---------------------------------------------------------------- in an answer


async def test_what_a_lesson_requires_comes_along(cairn: Service) -> None:
    """Over several steps, behind the lesson that needs it, marked with the reason; in the context too."""
    await cairn.remember(
        lessons=[
            lesson(11, "Calibrate the torque wrench before assembly.", "Torque readings of the wrench drift."),
            lesson(12, "Book the metrology lab a week ahead.", "Anything has to be measured exactly."),
            lesson(13, "Bring the asset number along.", "Somebody visits a laboratory."),
            lesson(14, "A retired step.", "Somebody visits a laboratory long ago."),
            lesson(15, "Another project's step.", "Nobody asks for this one.", namespace="other/project"),
        ]
    )
    await connect(cairn, 11, 12, "REQUIRES", strength=0.9)
    await connect(cairn, 12, 13, "REQUIRES")
    await connect(cairn, 11, 14, "REQUIRES")
    await connect(cairn, 11, 15, "REQUIRES")
    await cairn.ask('mutation { updateLesson(rbId: "14", patch: {status: RETIRED}) { rbId } }')
    found, context = await recall(cairn, "torque readings of the wrench drift", limit=2, namespace="default")
    places = list(found)
    assert places[places.index("11") :][:3] == ["11", "12", "13"]
    assert found["12"]["requiredBy"] == ["11"] and found["13"]["requiredBy"] == ["12"]
    assert found["11"]["requiredBy"] == []
    assert not {"14", "15"} & found.keys()
    assert "(lesson 12; needed by lesson 11)" in context
    everywhere, _ = await recall(cairn, "torque readings of the wrench drift", limit=2)
    assert "15" in everywhere and "14" not in everywhere
    searched = (await cairn.ask(SEARCH, query="torque readings of the wrench", limit=1))["searchLessons"]
    assert [one["lesson"]["rbId"] for one in searched] == ["11", "12"]  # at most as many again as were asked for


async def test_a_filter_holds_for_what_comes_along(cairn: Service) -> None:
    """A search for a tag does not bring a lesson without it."""
    await cairn.remember(
        lessons=[
            lesson(16, "Grease the bearing.", "The spindle squeals loudly.", tags=["spindle"]),
            lesson(17, "Keep grease in stock.", "Purchasing asks what is needed."),
        ]
    )
    await connect(cairn, 16, 17, "REQUIRES")
    found = (await cairn.ask(SEARCH, query="the spindle squeals", limit=3, tags=["spindle"]))["searchLessons"]
    assert [one["lesson"]["rbId"] for one in found] == ["16"]


async def test_two_that_conflict_say_so(cairn: Service) -> None:
    """Both are marked, and the context names the other."""
    await cairn.remember(
        lessons=[
            lesson(21, "Ship the gearbox by air.", "The gearbox for Oslo is late."),
            lesson(22, "Ship the gearbox by sea.", "The gearbox for Oslo is late again."),
        ]
    )
    found, _ = await recall(cairn, "the gearbox for Oslo is late", limit=3)
    assert found["21"]["conflictsWith"] == [] and found["22"]["conflictsWith"] == []
    await connect(cairn, 22, 21, "CONFLICTS", strength=0.01)
    found, context = await recall(cairn, "the gearbox for Oslo is late", limit=3)
    assert found["21"]["conflictsWith"] == ["22"] and found["22"]["conflictsWith"] == ["21"]
    assert "CONTRADICTS lesson 22" in context and "CONTRADICTS lesson 21" in context
    alone, _ = await recall(cairn, "the gearbox for Oslo is late", limit=1)
    assert all(not one["conflictsWith"] for one in alone.values())


async def test_an_alternative_takes_no_second_place(cairn: Service) -> None:
    """The better one is offered and names the other, whose place another lesson gets."""
    await cairn.remember(
        lessons=[
            lesson(31, "Refill the coolant.", "The lathe overheats at noon."),
            lesson(32, "Lower the speed.", "The lathe overheats at noon, or later."),
            lesson(33, "Call maintenance.", "The lathe makes noise."),
        ]
    )
    before, _ = await recall(cairn, "the lathe overheats at noon", limit=2)
    assert set(before) == {"31", "32"}
    await connect(cairn, 31, 32, "ALTERNATIVE")
    found, context = await recall(cairn, "the lathe overheats at noon", limit=2)
    assert len(found) == 2
    (better,) = found.keys() & {"31", "32"}
    (other,) = {"31", "32"} - {better}
    assert found[better]["alternatives"] == [other]
    assert f"rather than lesson {other}" in context


async def test_an_alternative_that_is_required_too_is_named_once(cairn: Service) -> None:
    """It was left out of the ranking, and is not brought along either."""
    await cairn.remember(
        lessons=[
            lesson(35, "Tighten the belt.", "The saw whistles in the morning."),
            lesson(36, "Replace the belt.", "The saw whistles in the morning, or later."),
        ]
    )
    await connect(cairn, 35, 36, "ALTERNATIVE")
    await connect(cairn, 35, 36, "REQUIRES")
    await connect(cairn, 36, 35, "REQUIRES")
    found, _ = await recall(cairn, "the saw whistles in the morning", limit=2)
    (better,) = found.keys() & {"35", "36"}
    assert found[better]["alternatives"] == list({"35", "36"} - {better})


async def test_a_link_made_later_is_not_known_then(cairn: Service) -> None:
    """asOf holds for links too."""
    await cairn.remember(
        lessons=[
            lesson(41, "Paint the hull twice.", "The ferry's hull rusts."),
            lesson(42, "Sand it first.", "Old paint is to be removed somewhere."),
        ]
    )
    moment = (await cairn.ask('{ lesson(rbId: "42") { createdAt } }'))["lesson"]["createdAt"]
    await connect(cairn, 41, 42, "REQUIRES")
    now, _ = await recall(cairn, "the hull of the ferry rusts", limit=1)
    then, _ = await recall(cairn, "the hull of the ferry rusts", limit=1, asOf=moment)
    assert list(now) == ["41", "42"]
    assert list(then) == ["41"]


async def test_what_is_left_out_takes_no_place_of_what_is_required(cairn: Service) -> None:
    """Of three that a lesson requires, the strongest is an alternative to another one in the answer: the two others come."""
    await cairn.remember(
        lessons=[
            lesson(1101, "Ring plovers at dawn.", "Ringing a plover.", namespace="rr/x"),
            lesson(1102, "Hold the plover by its ring.", "Ringing a plover.", namespace="rr/x"),
            *(lesson(n, f"Bring the tool {n}.", f"Kit {n}.", namespace="rr/x") for n in (1103, 1104, 1105)),
        ]
    )
    for target, strength in ((1103, 0.9), (1104, 0.8), (1105, 0.7)):
        await connect(cairn, 1101, target, "REQUIRES", strength=strength)
    await connect(cairn, 1103, 1102, "ALTERNATIVE")
    found, _ = await recall(cairn, "ringing a plover", 2, namespace="rr/x")
    assert set(found) == {"1101", "1102", "1104", "1105"}
